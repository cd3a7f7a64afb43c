"""Content files to records and the catalogue, and back."""
