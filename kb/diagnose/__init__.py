"""Accounting and rules: from sessions to a diagnosis."""
