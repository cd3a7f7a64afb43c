"""Rows to records: the truth of the casebook."""
