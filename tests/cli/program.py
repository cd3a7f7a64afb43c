"""Runs a command in this process and keeps what it printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kb_cli.boundary import run_program


@dataclass(frozen=True)
class Result:
    """Exit status and both streams."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Run = Callable[..., Result]


def runner(capsys: pytest.CaptureFixture[str], program: str = "kb") -> Run:
    """A function that runs ``program`` with the given words."""

    def run(*words: str) -> Result:
        capsys.readouterr()
        status = run_program(program, [str(word) for word in words])
        streams = capsys.readouterr()
        return Result(status, streams.out, streams.err)

    return run
