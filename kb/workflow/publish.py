"""Job: publish a record as a new version."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kb.audit.claims import Note
from kb.domain.protocols import Artefacts, Publication
from kb.domain.provenance import Provenance
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Version, Visibility
from kb.errors import ConflictError, KbError, NotFoundError
from kb.search.prepare import prepare
from kb.session.codec import to_bytes
from kb.session.redaction import redact
from kb.session.session import Session
from kb.workflow.attribution import attributed
from kb.workflow.audit import audited
from kb.workflow.casebook import Casebook
from kb.workflow.claims import checked_claims
from kb.workflow.content import checked_content
from kb.workflow.evidence import evidence_of, with_tiers
from kb.workflow.vectors import keep_vectors


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """``created`` is False when the newest version already had this content. ``notes`` are the claim audit's doubts,
    ``remarks`` say what was changed on the way in, for example a tier the evidence does not carry."""

    version: Version
    created: bool
    notes: tuple[Note, ...] = ()
    remarks: tuple[Text, ...] = ()


def publish(
    casebook: Casebook,
    record: Record,
    *,
    author: str,
    visibility: Visibility = "private",
    expect_parent: str | None = None,
    overlay: bool = False,
) -> Published:
    """Publish into the workspace. The casebook must be open for writing. Durable when it returns.

    Tiers become what the attached sessions carry, recomputed; an outcome that they do not credit to its strategy is kept as suggested
    only. The claim audit's notes, and those doubts, are kept with the version. Raises
    ContentError for text that may not be published (raw HTML, forbidden links) and for cases nothing could use, and
    ConflictError for the name of a library record, unless ``overlay`` says that the new record shall stand in front of it:
    a plain ``slug@1`` then means the new one.
    """
    checked_claims(checked_content(record), casebook.catalogue)
    if not overlay:
        _own_slug(casebook, record)
    evidence = evidence_of(record, casebook.artefacts)
    kept, doubts = attributed(with_tiers(record, evidence), evidence, casebook.artefacts, casebook.catalogue)
    notes, remark = audited(kept, casebook.filed(visibility), casebook.catalogue, doubts)
    item = Publication(
        record=kept,
        prepared=prepare(kept, casebook.embedder(), casebook.catalogue),
        origin=casebook.filed(visibility),
        author=author,
        visibility=visibility,
        expect_parent=expect_parent,
        remarks=(remark,),
    )
    (made,) = casebook.store.publish_all([item])
    keep_vectors(casebook.store, casebook.workspace.vectors, item.prepared.model_id)
    return Published(version=made.version, created=made.created, notes=notes, remarks=_lowered(record, kept, evidence.reasons))


def _own_slug(casebook: Casebook, record: Record) -> None:
    taken = [version for version in _history(casebook, record.slug) if version.origin == "library"]
    if taken:
        raise ConflictError(
            f"the shipped library has a record named {record.slug}",
            allowed="a slug of your own",
            do=f"publish it under another name, or stand in front of the library's with --overlay (library:{record.slug} stays)",
        )


def _history(casebook: Casebook, slug: str) -> tuple[Version, ...]:
    try:
        return casebook.store.history(slug)
    except NotFoundError:
        return ()


def _lowered(stated: Record, kept: Record, reasons: tuple[Text, ...]) -> tuple[Text, ...]:
    if tiers_of(stated) == tiers_of(kept):
        return ()
    why = reasons or (Text(zh="没有附带可重算的采集", en="no sessions are attached to recompute it from"),)
    return tuple(
        Text(
            zh=f"来源等级按证据重算为 {kept.provenance}：{reason.zh}",
            en=f"the tier is recomputed from the evidence as {kept.provenance}: {reason.en}",
        )
        for reason in why
    )


def tiers_of(record: Record) -> tuple[Provenance, ...]:
    """The tier of the record and of each of its outcomes."""
    return (record.provenance, *(outcome.provenance for case in record.cases for outcome in case.outcomes))


def with_sessions(record: Record, sessions: Sequence[Session], artefacts: Artefacts) -> Record:
    """The record with redacted copies of the sessions attached by content hash."""
    names = tuple(artefacts.put(to_bytes(redact(session))) for session in sessions)
    if len(set(names)) < len(names):
        raise KbError(
            "the profile before and the profile after are the same capture", allowed="two captures", do="capture again after the change"
        )
    return replace(record, sessions=names)
