"""Jobs that say something about a version without changing it."""

from __future__ import annotations

import re
import time
from typing import Final, Literal, get_args

from kb.domain.case import Result
from kb.domain.event import Event, EventKind
from kb.domain.protocols import Store
from kb.domain.version import LATEST, Ref, Version
from kb.errors import ConflictError, UsageError

Reason = Literal[
    "wrong", "harmful", "irreproducible", "superseded", "duplicate", "licence", "private_data", "removed_from_library", "other"
]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
_ALIAS: Final = re.compile(r"[a-z][a-z0-9-]{1,30}\Z")
Detail = dict[str, str | int | float | None]


def yank(store: Store, ref: Ref, *, author: str, reason: Reason, note: str = "", replacement: Ref | None = None) -> Event:
    """Hide a version from search and resolution; an exact pin still gets it, with a warning.

    Raises NotFoundError for a replacement that does not exist, ConflictError when it is withdrawn already.
    """
    version = store.get(ref)
    if status_of(store, version) == "yanked":
        raise ConflictError(f"{version.ref} is withdrawn already", do=f"see `kb log {ref.slug}`, or lift it with `kb yank --undo`")
    detail: Detail = {"reason": reason, "note": note, "replacement": _named(store, replacement)}
    return _said(store, version, "yanked", author, detail)


def unyank(store: Store, ref: Ref, *, author: str, note: str = "") -> Event:
    """Show a withdrawn or deprecated version again."""
    version = store.get(ref)
    if status_of(store, version) not in ("yanked", "deprecated"):
        raise ConflictError(f"{version.ref} is not withdrawn", do=f"see `kb log {ref.slug}`")
    return _said(store, version, "restored", author, {"note": note})


def deprecate(store: Store, ref: Ref, *, author: str, reason: Reason, note: str = "", replacement: Ref | None = None) -> Event:
    """Warn about a version that stays visible."""
    version = store.get(ref)
    return _said(store, version, "deprecated", author, {"reason": reason, "note": note, "replacement": _named(store, replacement)})


def alias(store: Store, ref: Ref, name: str, *, author: str) -> Event:
    """Let ``slug@name`` mean this version, until the alias is given to another one."""
    if _ALIAS.match(name) is None or name == LATEST:
        raise UsageError(
            f"{name!r} is no alias", allowed="2 to 31 of a-z, 0-9 and hyphens, beginning with a letter; not latest", do="for example stable"
        )
    return _said(store, store.get(ref), "aliased", author, {"alias": name})


def use(store: Store, ref: Ref, *, author: str, result: Result, gain_fraction: float | None = None, note: str = "") -> Event:
    """Record that somebody tried this version, and how it went. ``gain_fraction`` is of the step (-1..1)."""
    if gain_fraction is not None and not -1.0 <= gain_fraction < 1.0:
        raise UsageError(f"a gain of {gain_fraction}", allowed="a fraction of the step from -1 to below 1")
    return _said(store, store.get(ref), "used", author, {"result": result, "gain_fraction": gain_fraction, "note": note})


def status_of(store: Store, version: Version) -> str:
    """What the events about a version add up to."""
    return next(item.status for item in store.revisions(version.record.slug, version.origin) if item.ref.n == version.n)


def warning_of(store: Store, version: Version) -> Event | None:
    """The event a reader of this version must hear about: why it is withdrawn, deprecated or stale; None when all is well."""
    kind = {"yanked": "yanked", "deprecated": "deprecated", "stale": "stale"}.get(status_of(store, version))
    said = [event for event in store.events(version.sha256) if event.kind == kind and about(event, version)]
    return said[-1] if said else None


def about(event: Event, version: Version) -> bool:
    """Whether an event about this content speaks about this version: it names no origin, or this one."""
    return event.detail.get("origin") in (None, version.origin)


def _named(store: Store, replacement: Ref | None) -> str | None:
    return None if replacement is None else str(store.get(replacement).ref)


def _said(store: Store, version: Version, kind: EventKind, author: str, detail: Detail) -> Event:
    full: Detail = {"origin": version.origin, "n": version.n, **{key: value for key, value in detail.items() if value not in (None, "")}}
    return store.append(Event(kind=kind, subject=version.sha256, author=author, at_ns=time.time_ns(), detail=full))
