"""Job: recompute a record's gains from its attached sessions, and say so for as long as it is true."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from kb.audit.claims import Note
from kb.compare.comparison import compare
from kb.domain.comparison import Comparison
from kb.domain.event import Event, EventKind
from kb.domain.protocols import Publication
from kb.domain.provenance import StoreOrigin, capped, weakest
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Ref, Version
from kb.errors import ConflictError, NotComparableError
from kb.profile.sources import load
from kb.search.prepare import prepare
from kb.session.codec import to_bytes
from kb.session.redaction import redact
from kb.workflow.attribution import attributed
from kb.workflow.audit import audited
from kb.workflow.casebook import Casebook
from kb.workflow.compare import pair
from kb.workflow.events import Detail, about
from kb.workflow.evidence import RESULTS, STEP_METRIC, Evidence, evidence_of, with_tiers

_STANDING: Final[tuple[EventKind, ...]] = ("verified", "reproduced", "stale")
_EVIDENCE: Final[tuple[EventKind, ...]] = (*_STANDING, "verification_withdrawn")


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What verification found. ``verified``: every outcome that can be recomputed is carried beyond the noise. ``version`` is
    the one that states the right tier: the one asked for, or a new one when its tier had to change. ``event`` is what was
    recorded, if anything; ``comparison`` the recomputed gain."""

    asked: Version
    version: Version
    verified: bool
    comparison: Comparison | None
    event: Event | None
    reasons: tuple[Text, ...]


def verify(casebook: Casebook, ref: Ref, *, author: str, software: Mapping[str, str] | None = None) -> Verification:
    """Recompute, set the tier the sessions carry, and record it. The casebook must be open for writing.

    A tier that differs from what is stated becomes a new version (in the workspace, for a library record); an earlier
    verification that no longer holds is withdrawn. ``software`` (name to version) marks a verified record stale when its
    sessions ran on other versions of the same software.
    """
    asked = casebook.store.get(ref)
    evidence = evidence_of(asked.record, casebook.artefacts)
    verified = evidence.best is not None and evidence.tier != "claimed"
    kept, doubts = attributed(with_tiers(asked.record, evidence), evidence, casebook.artefacts, casebook.catalogue)
    version = asked if kept == asked.record else _republished(casebook, asked, kept, author, doubts)
    event = _recorded(casebook, asked, version, evidence, author) if verified else _withdrawn(casebook, asked, evidence, author)
    moved = _moved(evidence, software or {})
    if verified and moved:
        event = _said(casebook, version, "stale", author, {"software": "; ".join(moved)})
    return Verification(
        asked=asked, version=version, verified=verified, comparison=evidence.best, event=event, reasons=() if verified else evidence.reasons
    )


def reproduce(casebook: Casebook, ref: Ref, before: Path, after: Path, *, author: str) -> Verification:
    """Check a verified record against two captures of one's own: the same result beyond the noise, from other sessions.

    Raises ConflictError for sessions the record already rests on and NotComparableError where they cannot be compared.
    """
    asked = casebook.store.get(ref)
    sessions = pair(load(before), load(after))
    artefacts = casebook.artefacts
    data = [to_bytes(redact(session)) for session in sessions]
    names = [hashlib.sha256(item).hexdigest() for item in data]
    known = {*asked.record.sessions, *_reproduced_with(casebook, asked)}
    if known & set(names):
        raise ConflictError(f"{asked.ref} already rests on these sessions", allowed="captures of an independent run", do="profile again")
    comparison = compare(*sessions)
    if comparison.verdict == "not_comparable":
        raise NotComparableError("; ".join(reason.en for reason in comparison.reasons), do="capture the same work before and after")
    stated = [outcome for case in asked.record.cases for outcome in case.outcomes if outcome.metric == STEP_METRIC]
    agrees = bool(stated) and comparison.verdict != "inconclusive" and stated[0].result == RESULTS[comparison.verdict]
    event = None
    if agrees:
        for item in data:
            artefacts.put(item)
        tier = weakest(*(capped("reproduced", origin) for origin in comparison.origins))
        detail = {**_figures(comparison), "tier": tier, "before": names[0], "after": names[1]}
        event = _said(casebook, asked, "reproduced", author, detail)
    reason = Text(
        zh=f"重测判定为 {comparison.verdict}，与记录不符", en=f"the run of one's own is {comparison.verdict}, the record says otherwise"
    )
    return Verification(
        asked=asked, version=asked, verified=agrees, comparison=comparison, event=event, reasons=() if agrees else (reason,)
    )


def _republished(casebook: Casebook, asked: Version, kept: Record, author: str, doubts: tuple[Note, ...]) -> Version:
    """``kept`` as the next version. Raises ConflictError when a newer one than ``asked`` exists: its tier is not ours to set."""
    origin: StoreOrigin = "team" if asked.origin == "team" else casebook.filed(asked.visibility)
    if asked.origin == origin and casebook.store.revisions(kept.slug, origin)[-1].sha256 != asked.sha256:
        raise ConflictError(
            f"{asked.ref} states {asked.record.provenance}, its sessions carry {kept.provenance}, and it is not the newest version",
            allowed="the newest version",
            do=f"kb verify {kept.slug}",
        )
    item = Publication(
        record=replace(kept, parents=(*kept.parents, asked.sha256)) if asked.origin != origin else kept,
        prepared=prepare(kept, casebook.embedder(), casebook.catalogue),
        origin=origin,
        author=author,
        visibility=asked.visibility,
        remarks=(audited(kept, origin, casebook.catalogue, doubts)[1],),
    )
    return casebook.store.publish_all([item])[0].version


def _recorded(casebook: Casebook, asked: Version, version: Version, evidence: Evidence, author: str) -> Event | None:
    """A verification, unless the newest word about this version's evidence is the same one."""
    last = _last_word(casebook, version)
    if last is not None and last.kind in ("verified", "reproduced") and last.detail.get("evidence") in (evidence.token, None):
        return last
    figures = _figures(evidence.best) if evidence.best is not None else {}
    detail: Detail = {**figures, "tier": evidence.tier, "evidence": evidence.token, "sessions": len(asked.record.sessions)}
    if evidence.software:
        detail["software"] = "; ".join(f"{name} {number}" for name, number in evidence.software)
    return _said(casebook, version, "verified", author, detail)


def _withdrawn(casebook: Casebook, asked: Version, evidence: Evidence, author: str) -> Event | None:
    last = _last_word(casebook, asked)
    if last is None or last.kind not in _STANDING:
        return None
    return _said(
        casebook, asked, "verification_withdrawn", author, {"reason": "; ".join(reason.en for reason in evidence.reasons) or "no evidence"}
    )


def _last_word(casebook: Casebook, version: Version) -> Event | None:
    said = [event for event in casebook.store.events(version.sha256) if event.kind in _EVIDENCE and about(event, version)]
    return said[-1] if said else None


def _reproduced_with(casebook: Casebook, version: Version) -> set[str]:
    events = [event for event in casebook.store.events(version.sha256) if event.kind == "reproduced"]
    return {str(event.detail[side]) for event in events for side in ("before", "after") if side in event.detail}


def _figures(comparison: Comparison) -> Detail:
    low, high = comparison.interval
    return {
        "verdict": comparison.verdict,
        "gain_fraction": comparison.gain_fraction,
        "gain_low_fraction": low,
        "gain_high_fraction": high,
        "noise_fraction": comparison.noise_fraction,
        "before_step_ns": comparison.before_step_ns,
        "after_step_ns": comparison.after_step_ns,
        "before_steps": comparison.n[0],
        "after_steps": comparison.n[1],
    }


def _moved(evidence: Evidence, software: Mapping[str, str]) -> tuple[str, ...]:
    """Software that ran under the sessions in another version than the one given."""
    return tuple(f"{name} {was} -> {software[name]}" for name, was in evidence.software if name in software and software[name] != was)


def _said(casebook: Casebook, version: Version, kind: EventKind, author: str, detail: Detail) -> Event:
    full: Detail = {"origin": version.origin, "n": version.n, **detail}
    return casebook.store.append(Event(kind=kind, subject=version.sha256, author=author, at_ns=time.time_ns(), detail=full))
