"""The command line: parse, call, print. Nothing imports it."""

from __future__ import annotations


def main() -> int:
    """Entry point of ``kb`` and ``diagnosis-recipes``."""
    from kb_cli.boundary import run_program

    return run_program("kb")


def profiler() -> int:
    """Entry point of ``profiler``."""
    from kb_cli.boundary import run_program

    return run_program("profiler")


def cann_profile() -> int:
    """Entry point of ``cann-profile``."""
    from kb_cli.boundary import run_program

    return run_program("cann-profile")


def cann_tune() -> int:
    """Entry point of ``cann-tune``."""
    from kb_cli.boundary import run_program

    return run_program("cann-tune")
