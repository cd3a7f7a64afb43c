"""Job: publish a record as a new version."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kb.domain.protocols import Artefacts
from kb.domain.record import Record
from kb.domain.version import Ref, Version, Visibility
from kb.errors import NotFoundError
from kb.search.prepare import prepare
from kb.session.codec import to_bytes
from kb.session.redaction import redact
from kb.session.session import Session
from kb.workflow.casebook import Casebook


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """``created`` is False when the newest version already had this content."""

    version: Version
    created: bool


def publish(
    casebook: Casebook, record: Record, *, author: str, visibility: Visibility = "private", expect_parent: str | None = None
) -> Published:
    """Publish into the workspace. The casebook must be open for writing. Durable when it returns."""
    before = _newest_number(casebook, record.slug)
    prepared = prepare(record, casebook.embedder(), casebook.catalogue)
    version = casebook.store.publish(
        record, prepared, origin="workspace", author=author, visibility=visibility, expect_parent=expect_parent
    )
    return Published(version=version, created=version.n > before)


def with_sessions(record: Record, sessions: Sequence[Session], artefacts: Artefacts) -> Record:
    """The record with redacted copies of the sessions attached by content hash."""
    names = tuple(artefacts.put(to_bytes(redact(session))) for session in sessions)
    return replace(record, sessions=names)


def _newest_number(casebook: Casebook, slug: str) -> int:
    try:
        return casebook.store.get(Ref(slug=slug, origin="workspace")).n
    except NotFoundError:
        return 0
