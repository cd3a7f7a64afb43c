"""Inline SVG, the same for screen, print and PDF."""
