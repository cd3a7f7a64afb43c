"""Profiles in and out: backends that read or make sessions."""
