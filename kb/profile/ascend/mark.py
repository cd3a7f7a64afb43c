"""The origin mark: what an export of ours says about where its session came from, and putting it back at import."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from kb.errors import MalformedInputError
from kb.files import open_regular
from kb.profile.ascend.layout import RankFolder
from kb.session.meta import SessionMeta
from kb.session.session import Session, Table

FILE: Final = "session_origin.json"
LARGEST: Final = 64 << 20


class StepNote(msgspec.Struct, frozen=True):
    """What no exporter writes of a step: its kind and whether it is a warm-up step."""

    step: str
    kind: str | None
    warmup: bool


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """``format`` names this kind of file; ``meta`` is the metadata of the exported session."""

    format: str
    meta: SessionMeta
    steps: tuple[StepNote, ...] = ()


MARK: Final = "diagnosis-recipes origin"


def mark_bytes(session: Session) -> bytes:
    """The mark of a session."""
    steps = session.table("steps")
    notes = (
        tuple(
            StepNote(session.text(step) or "", session.text(kind), bool(warmup == 1))
            for step, kind, warmup in zip(steps["step_id"].tolist(), _kinds(steps), steps["warmup"].tolist(), strict=True)
        )
        if steps is not None
        else ()
    )
    return msgspec.json.format(msgspec.json.encode(Mark(format=MARK, meta=session.meta, steps=notes)), indent=1)


def _kinds(steps: Table) -> list[int]:
    kinds: list[int] = steps["kind"].tolist() if "kind" in steps else [-1] * len(steps)
    return kinds


def restored(session: Session, folder: RankFolder) -> Session:
    """The session with the metadata of the one that was exported, where the folder carries a mark: its origin above all,
    so that a simulated run stays a simulated run. What this import read and found wrong is kept."""
    path = folder.root / FILE
    if not path.is_file():
        return session
    mark = read_mark(path)
    before, meta = mark.meta, session.meta
    strings = list(session.strings)
    tables = {**session.tables, **({"steps": _noted(session.tables["steps"], mark, strings)} if "steps" in session.tables else {})}
    return Session(
        replace(
            before,
            capture=replace(before.capture, format=meta.capture.format, files=meta.capture.files, dropped_rows=meta.capture.dropped_rows),
            violations=meta.violations,
            missing=tuple({gap.what: gap for gap in (*meta.missing, *before.missing)}.values()),
        ),
        tables,
        tuple(strings),
    )


def _noted(steps: Table, mark: Mark, strings: list[str]) -> Table:
    notes = {note.step: note for note in mark.steps}
    found = [notes.get(strings[code] if code >= 0 else "") for code in steps["step_id"].tolist()]
    warmup = [int(note.warmup) if note else int(old) for note, old in zip(found, steps["warmup"].tolist(), strict=True)]
    kind = [_code(note.kind, strings) if note else old for note, old in zip(found, _kinds(steps), strict=True)]
    return Table("steps", {**steps.columns, "warmup": np.array(warmup, "<i4"), "kind": np.array(kind, "<i4")})


def _code(text: str | None, strings: list[str]) -> int:
    if text is None:
        return -1
    if text not in strings:
        strings.append(text)
    return strings.index(text)


def read_mark(path: Path) -> Mark:
    """The mark of an exported rank. Raises MalformedInputError: a damaged mark must not turn a simulated run into a measured one."""
    with open_regular(path) as handle:
        data = handle.read(LARGEST)
    try:
        mark = msgspec.json.decode(data, type=Mark)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedInputError(f"{path.name}:1: {error}", do="export the session again") from error
    if mark.format != MARK:
        raise MalformedInputError(f"{path.name}:1: format {mark.format[:60]!r}", allowed=MARK)
    return mark
