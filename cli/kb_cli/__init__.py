"""The command line: parse, call, print. Nothing imports it."""


def main() -> int:
    """Entry point of ``kb`` and ``diagnosis-recipes``."""
    return 0
