"""The report told from its values: what stands where, in either language."""
