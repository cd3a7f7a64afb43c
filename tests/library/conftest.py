"""A small library that every loader test may damage."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.program import Run, runner

Json = dict[str, Any]
Both = {"zh": "中文", "en": "English"}
CAUSE: Json = {
    "id": "slow",
    "layer": "host",
    "name": Both,
    "definition": Both,
    "evidence": Both,
    "aliases": ["sluggish"],
    "strategies": ["speed_up"],
}
STRATEGY: Json = {"id": "speed_up", "name": Both, "definition": Both, "addresses": ["slow"], "verify": Both, "roll_back": Both}
METRIC: Json = {"id": "latency", "name": Both, "unit": "ms", "better": "lower"}
GLOSSARY: list[Json] = [{"id": "attention", "zh": ["注意力"], "en": ["attention"]}]
RECIPE = """---
kind: recipe
slug: one
title: {zh: 标题, en: Title}
summary: {zh: 摘要, en: Summary}
---

# English

Text.

# 中文

正文。
"""


def _sourced(value: float, unit: str) -> Json:
    return {"value": value, "unit": unit, "source": "test", "confidence": "low"}


def _soc() -> Json:
    sizes = {name: _sourced(64, "KiB") for name in ("l2", "l1", "l0a", "l0b", "l0c", "ub", "memory")}
    counts = {name: _sourced(8, "count") for name in ("cube_cores", "vector_cores", "flop_per_cycle_core", "l2_read_bytes_per_cycle_core")}
    rates = {"clock": _sourced(1000, "MHz"), "memory_bandwidth": _sourced(100, "GB/s")}
    return {"id": "chip", "name": "Chip", "family": "A2"} | sizes | counts | rates


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A correct library with one entry of each kind."""
    catalogue = tmp_path / "recipes" / "catalogue"
    for folder, entry in (("causes", CAUSE), ("strategies", STRATEGY), ("metrics", METRIC), ("soc", _soc())):
        (catalogue / folder).mkdir(parents=True)
        (catalogue / folder / f"{entry['id']}.json").write_text(json.dumps(entry), encoding="utf-8")
    (catalogue / "glossary.json").write_text(json.dumps(GLOSSARY), encoding="utf-8")
    for folder in ("cards", "templates", "recipes/one"):
        (tmp_path / folder).mkdir()
    (tmp_path / "recipes" / "one" / "recipe.md").write_text(RECIPE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def change(library: Path) -> Callable[..., Path]:
    """Update fields of a catalogue entry: ``change("causes/slow", layer="x")``; a value of None removes the field."""

    def write(name: str, /, **fields: Any) -> Path:
        path = library / "recipes" / "catalogue" / f"{name}.json"
        entry = json.loads(path.read_text(encoding="utf-8")) | fields
        path.write_text(json.dumps({key: value for key, value in entry.items() if value is not None}), encoding="utf-8")
        return path

    return write


@pytest.fixture
def library_kb(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``kb`` in this process, with the hashing embedder."""
    monkeypatch.setenv("KB_EMBEDDER", "hashing")
    return runner(capsys)
