"""Text: tokens, language share, glossary expansion."""
