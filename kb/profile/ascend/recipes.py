"""The commands that capture or export what is not there. Source: the product documentation of torch_npu 7.x and msprof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kb.session.meta import Missing


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a complete text export gives, and how to get each part: tables, kernel columns, facts by name."""

    tables: tuple[Missing, ...]
    kernel_columns: tuple[Missing, ...]
    facts: Mapping[str, Missing]


def load_expected() -> Expected:
    """The expectations of the data file ``expected.json``."""
    return msgspec.json.decode(Path(__file__).with_name("expected.json").read_bytes(), type=Expected)


def load_commands() -> Mapping[str, tuple[str, ...]]:
    """Command lines by name; ``{path}`` stands for the folder."""
    return msgspec.json.decode(Path(__file__).with_name("recipes.json").read_bytes(), type=dict[str, tuple[str, ...]])


def command(name: str, path: Path | str) -> str:
    """The command ``name`` for ``path``."""
    return "\n".join(load_commands()[name]).replace("{path}", str(path))


def capture_commands() -> str:
    """How to capture a profile, with either tool."""
    commands = load_commands()
    return (
        "capture one"
        + _indented("torch_npu", commands["torch_npu"])
        + _indented("msprof", commands["msprof"])
        + _indented("MindSpore", commands["mindspore"])
        + _indented("vLLM", commands["vllm"])
    )


def _indented(tool: str, lines: Sequence[str]) -> str:
    return f"\n    with {tool}:" + "".join(f"\n      {line}" for line in lines)
