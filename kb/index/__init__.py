"""Nearest neighbours: caches over the truth in the store."""
