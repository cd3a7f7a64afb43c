"""Job: give every record vectors of another model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from kb.domain.protocols import Embedder, Progress, Publication
from kb.domain.version import Version
from kb.workflow.casebook import Casebook
from kb.workflow.vectors import keep_vectors

if TYPE_CHECKING:
    from kb.workflow.preparation import OnceEmbedder

STAGE = "vectors"


class Reembedded(msgspec.Struct, frozen=True, kw_only=True):
    """``embedded`` of ``records`` visible records got vectors of ``model_id`` now, ``held`` had them; ``passed_over`` are shown in an
    older version, as their newest one is withdrawn, and keep being found by words."""

    model_id: str
    dim: int
    records: int
    embedded: int
    held: int
    passed_over: tuple[str, ...]


def reembed(casebook: Casebook, embedder: Embedder, progress: Progress) -> Reembedded:
    """Embed every visible record that has no vectors of the embedder's model, and keep them; what was published stays as it is.

    Vectors of other models stay beside them, and a stopped run goes on where it ended. Raises ConflictError when a record is published
    anew meanwhile (run it again) and StoreError for a casebook that cannot be written.
    """
    from kb.search.dense import load_vectors
    from kb.workflow.preparation import OnceEmbedder, batches

    store = casebook.store
    held = set(load_vectors(store, embedder, casebook.workspace.vectors).ids.tolist())
    rows = store.summaries()
    missing = [row.id for row in rows if row.id not in held]
    versions = list(store.versions(missing).values())
    newest = [version for version in versions if _is_newest(casebook, version)]
    once, done = OnceEmbedder(embedder), 0
    progress(STAGE, done, len(newest))
    for records in batches([version.record for version in newest]):
        store.publish_all(list(_publications(newest[done : done + len(records)], once, casebook)))
        done += len(records)
        progress(STAGE, done, len(newest))
    keep_vectors(store, casebook.workspace.vectors, embedder.model_id)
    shown = {version.sha256 for version in newest}
    return Reembedded(
        model_id=embedder.model_id,
        dim=embedder.dim,
        records=len(rows),
        embedded=done,
        held=len(rows) - len(missing),
        passed_over=tuple(str(version.ref) for version in versions if version.sha256 not in shown),
    )


def _is_newest(casebook: Casebook, version: Version) -> bool:
    """Whether publishing the same content again would find this version rather than append one."""
    return casebook.store.revisions(version.record.slug, version.origin)[-1].sha256 == version.sha256


def _publications(versions: Sequence[Version], once: OnceEmbedder, casebook: Casebook) -> Iterator[Publication]:
    """The same contents again: the store finds them equal and adds the vectors. One that changed meanwhile is a conflict."""
    from kb.workflow.preparation import prepare_all

    prepared = prepare_all([version.record for version in versions], once, casebook.catalogue)
    for version, data in zip(versions, prepared, strict=True):
        yield Publication(record=version.record, prepared=data, origin=version.origin, author=version.author,
                          visibility=version.visibility, expect_parent=version.sha256)  # fmt: skip
