"""Causes and strategies for a problem told in words, learnt from the casebook's own cases and the catalogue's definitions."""
