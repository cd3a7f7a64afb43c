"""PDF through typst (extra ``pdf``)."""
