"""Builders of the model graphs, one model family a module."""
