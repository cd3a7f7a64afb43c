"""Apply a strategy, check it, keep what helps."""
