"""Job: what a command means by a short name, or by no name at all: the capture, model or pipeline used last.

The articles name a session by the beginning of its folder and leave ``--data`` out where the last command made it. What was
taken is always said.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from kb.domain.text import Text
from kb.errors import NotFoundError, UnusableCaptureError
from kb.files import write_whole
from kb.profile.sources import sniff
from kb.workflow.workspace import Workspace

_SHOWN: Final = 8


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """Absolute paths, or names of built-in models and pipelines, last used by a command; None = never."""

    capture: str | None = None
    model: str | None = None
    pipeline: str | None = None


class Taken(msgspec.Struct, frozen=True):
    """A capture and why it was this one; ``remark`` is empty when the user named it in full."""

    path: Path
    remark: Text = Text()


def recent(place: Workspace) -> Recent:
    """What was used last; nothing when the note is missing or damaged: it is a convenience, never the truth."""
    try:
        return msgspec.json.decode(_note(place).read_bytes(), type=Recent)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Recent()


def remember(place: Workspace, *, capture: Path | None = None, model: str | None = None, pipeline: str | None = None) -> None:
    """Keep what was given (the path of a model file in full), leave the rest.

    Raises StoreError when the workspace cannot be made; OSError passes through."""
    known = recent(place)
    kept = replace(
        known,
        capture=str(capture.absolute()) if capture is not None else known.capture,
        model=str(Path(model).absolute()) if model and Path(model).is_file() else model or known.model,
        pipeline=pipeline or known.pipeline,
    )
    if kept != known:
        write_whole(_note(place.prepared()), [msgspec.json.encode(kept)])


def capture_named(name: str, place: Workspace, folder: Path) -> Taken:
    """The capture ``name`` means: a path, a ``.prof`` file without its ending, or the beginning of the name of one capture in
    ``folder`` (the newest of several). An empty name is the capture used last, else the newest in ``folder``.

    Raises NotFoundError naming the captures there are.
    """
    if not name:
        return _last(place, folder)
    for path in (folder / name, folder / f"{name}.prof"):
        if path.exists():
            return Taken(path) if path.name == Path(name).name else Taken(path, _said(path))
    found = [path for path in _newest_first(folder) if path.name.startswith(name) and _is_capture(path)]
    if not found:
        raise NotFoundError(f"no capture is called {name}", allowed=_captures(folder), do="name a folder or a .prof file")
    return Taken(found[0], _said(found[0]))


def _last(place: Workspace, folder: Path) -> Taken:
    known = recent(place).capture
    if known is not None and Path(known).exists():
        return Taken(Path(known), _said(Path(known)))
    found = next((path for path in _newest_first(folder) if _is_capture(path)), None)
    if found is None:
        raise NotFoundError("no capture was named and none was made here yet", allowed=_captures(folder), do="name one with --data PATH")
    return Taken(found, _said(found))


def _newest_first(folder: Path) -> list[Path]:
    visible = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return sorted(visible, key=lambda path: (-path.lstat().st_mtime_ns, path.name))


def _is_capture(path: Path) -> bool:
    try:
        return (path.is_dir() or path.suffix == ".prof") and sniff(path) is not None
    except UnusableCaptureError:
        return False


def _captures(folder: Path) -> str:
    names = list(_named(folder))
    return f"here: {', '.join(names)}" if names else f"a capture; {folder} holds none"


def _named(folder: Path) -> Iterator[str]:
    yield from [path.name for path in _newest_first(folder) if _is_capture(path)][:_SHOWN]


def _said(path: Path) -> Text:
    return Text(zh=f"使用采集 {path.name}", en=f"taking the capture {path.name}")


def _note(place: Workspace) -> Path:
    return place.home / "recent.json"
