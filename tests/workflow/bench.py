"""A casebook of one's own for the jobs: a small library, real catalogue, hashing embedder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diagnose.factories import MS, made

from kb.domain.case import Case, CaseContext, Outcome, Result
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Store
from kb.domain.provenance import Provenance
from kb.domain.quantity import Quantity
from kb.domain.record import Record
from kb.domain.text import Text
from kb.library.markdown import write_markdown
from kb.session.session import Session
from kb.store.sqlite import open_store
from kb.workflow.casebook import Casebook
from kb.workflow.workspace import Workspace


def record(slug: str = "mine", text: str = "first", **more: object) -> Record:
    fields = {
        "kind": "recipe",
        "slug": slug,
        "title": Text("标题", "title"),
        "summary": Text("概要", "summary"),
        "body": Text(f"正文 {text}", text),
    }
    return Record(**{**fields, **more})  # type: ignore[arg-type]  # keywords of one test each


def quiet(stage: str, done: int, total: int, /) -> None:
    """Progress nobody looks at."""


@contextmanager
def casebook(home: Path, catalogue: Catalogue) -> Iterator[Casebook]:
    """A writable casebook without any library."""
    store: Store = open_store(home / "casebook.db", writable=True)
    try:
        yield Casebook(Workspace(home), store, catalogue, "hashing")
    finally:
        store.close()


def make_library(root: Path, *records: Record) -> Path:
    """A library of these recipes; the catalogue stays the shipped one."""
    for name in ("recipes", "cards", "templates"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for old in (root / "recipes").glob("*/recipe.md"):
        old.unlink()
        old.parent.rmdir()
    for item in records:
        folder = root / "recipes" / item.slug
        folder.mkdir()
        (folder / "recipe.md").write_text(write_markdown(item), encoding="utf-8")
    return root


def run_of(*steps_ms: int, **meta: Any) -> Session:
    """A session of steps of the given lengths, 60 % compute."""
    rows = [{"step_id": str(place), "computing_ns": 6 * step * MS // 10, "free_ns": step * MS - 6 * step * MS // 10}
            for place, step in enumerate(steps_ms)]  # fmt: skip
    return made(trace=rows, **meta)


def with_gain(slug: str, before_ms: float, after_ms: float, result: Result = "improved", provenance: Provenance = "simulated") -> Record:
    """A recipe that claims one gain of the step."""
    outcome = Outcome(
        strategy="use_fused_attention",
        result=result,
        metric="step_time",
        before=Quantity(before_ms, "ms"),
        after=Quantity(after_ms, "ms"),
        provenance=provenance,
    )
    case = Case(cause="unfused_attention", context=CaseContext(), outcomes=(outcome,))
    return record(slug, provenance=provenance, cases=(case,))
