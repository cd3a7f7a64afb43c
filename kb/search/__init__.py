"""Similar past cases, and why they are similar."""
