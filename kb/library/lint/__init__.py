"""Checks of content beyond what the loaders demand, each problem with file and line."""
