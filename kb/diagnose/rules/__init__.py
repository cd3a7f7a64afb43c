"""One rule a file: pure functions from a view and thresholds to judgements."""
