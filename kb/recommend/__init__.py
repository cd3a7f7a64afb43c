"""Strategies ranked under constraints, honest about the gain."""
