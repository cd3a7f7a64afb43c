"""Runs the tool that turns a raw capture into something readable, when it is installed and the user asked for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kb.errors import KbError
from kb.profile.ascend.backend import raw_captures
from kb.profile.ascend.layout import RawKind, Unread

_MODULES: Final[dict[RawKind, str]] = {"raw": "torch_npu", "raw_mindspore": "mindspore"}
_CODE: Final[dict[RawKind, str]] = {
    "raw": "import sys, torch_npu; torch_npu.profiler.profiler.analyse(sys.argv[1])",
    "raw_mindspore": "import sys; from mindspore.profiler.profiler import analyse; analyse(sys.argv[1])",
}
_MSPROF: Final = "msprof"
Run = Callable[[list[str]], int]


def export_raw(path: Path, run: Run | None = None) -> tuple[Path, ...]:
    """Export every raw capture at ``path`` with its own tool, which writes into the capture. Returns what was exported.

    Raises KbError when a tool is not installed or fails, naming the command.
    """
    captures = raw_captures(path)
    for capture in captures:
        arguments = command_line(capture)
        if (run or _run)(arguments):
            raise KbError(f"{capture.path}: the export failed", do=f"run it yourself: {' '.join(arguments)}")
    return tuple(capture.path for capture in captures)


def command_line(capture: Unread) -> list[str]:
    """The program and arguments for one capture. Raises KbError when the tool is not installed here."""
    if capture.kind == "raw_msprof":
        program = shutil.which(_MSPROF)
        if program is None:
            raise KbError(
                f"{capture.path}: {_MSPROF} is not installed here", do="install the CANN toolkit, or export where it is installed"
            )
        return [program, "--export=on", f"--output={capture.path}"]
    module = _MODULES[capture.kind]
    if find_spec(module) is None:
        raise KbError(f"{capture.path}: {module} is not installed here", do=f"install {module}, or analyse where it is installed")
    return [sys.executable, "-c", _CODE[capture.kind], str(capture.path)]


def _run(arguments: list[str]) -> int:
    return subprocess.run(arguments, check=False).returncode  # noqa: S603  # no shell; the user asked for this tool
