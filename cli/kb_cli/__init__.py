"""The command line: parse, call, print. Nothing imports it."""

from __future__ import annotations

_INTERRUPTED = 130


def main() -> int:
    """Entry point of ``kb`` and ``diagnosis-recipes``."""
    return _run("kb")


def profiler() -> int:
    """Entry point of ``profiler``."""
    return _run("profiler")


def cann_profile() -> int:
    """Entry point of ``cann-profile``."""
    return _run("cann-profile")


def cann_tune() -> int:
    """Entry point of ``cann-tune``."""
    return _run("cann-tune")


def _run(program: str) -> int:
    try:
        from kb_cli.boundary import run_program

        return run_program(program)
    except KeyboardInterrupt:
        # Pressed while modules were still loading, before the boundary could answer.
        return _INTERRUPTED
