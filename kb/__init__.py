"""The engine of diagnosis-recipes: profiles in, findings, cases and verified gains out.

The package prints nothing and parses no command line; ``kb_cli`` does that.
"""

__version__ = "0.1.0"
