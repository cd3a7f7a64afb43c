"""A store in memory: the protocol's meaning in the plainest code, so that search is tested without a database."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import msgspec

from kb.domain.canonical import content_hash
from kb.domain.case import CaseQuery, RecordKind
from kb.domain.event import Event
from kb.domain.protocols import Changes, Collection, Entry, Listed, Posting, Prepared, Publication, Published, Summary, VectorBlock
from kb.domain.provenance import Provenance, StoreOrigin, rank_of
from kb.domain.record import Record
from kb.domain.version import RESOLUTION, Ref, Revision, Version, Visibility
from kb.errors import ConflictError, NotFoundError


@dataclass(slots=True)
class MemoryStore:
    """``kb.domain.protocols.Store``. Row ids count from 1 in order of publication."""

    rows: list[tuple[Version, Prepared]] = field(default_factory=list)
    facts: list[Event] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    writes: int = 0
    vector_reads: int = 0

    def publish(self, record: Record, prepared: Prepared, *, origin: StoreOrigin, author: str, visibility: Visibility = "private",
                expect_parent: str | None = None) -> Version:  # fmt: skip
        earlier = [version for version, _ in self.rows if (version.origin, version.record.slug) == (origin, record.slug)]
        parent = earlier[-1].sha256 if earlier else None
        if expect_parent is not None and expect_parent != parent:
            raise ConflictError(f"{record.slug} has another newest version")
        sha256 = content_hash(record)
        if parent == sha256:
            return earlier[-1]
        self.writes += 1
        version = Version(record=record, origin=origin, n=len(earlier) + 1, sha256=sha256, author=author, created_ns=self.writes,
                          visibility=visibility, parent=parent, generation=self.writes)  # fmt: skip
        self.rows.append((version, prepared))
        return version

    def publish_all(self, items: Sequence[Publication]) -> tuple[Published, ...]:
        made = []
        for item in items:
            count = len(self.rows)
            version = self.publish(item.record, item.prepared, origin=item.origin, author=item.author, visibility=item.visibility)
            made.append(Published(version=version, created=len(self.rows) > count))
        return tuple(made)

    def get(self, ref: Ref) -> Version:
        found = [version for version in self._newest_first(ref.slug) if ref.origin in (None, version.origin)]
        if ref.n is not None:
            found = [version for version in found if version.n == ref.n]
        if not found:
            raise NotFoundError(f"no record {ref}")
        return found[0]

    def history(self, slug: str, origin: StoreOrigin | None = None) -> tuple[Version, ...]:
        found = tuple(version for version, _ in self.rows if version.record.slug == slug and origin in (None, version.origin))
        if not found:
            raise NotFoundError(f"no record {slug}")
        return found

    def revisions(self, slug: str, origin: StoreOrigin | None = None) -> tuple[Revision, ...]:
        return tuple(
            Revision(ref=item.ref, sha256=item.sha256, author=item.author, created_ns=item.created_ns, visibility=item.visibility,
                     provenance=item.record.provenance, parent=item.parent, generation=item.generation, status="published")
            for item in self.history(slug, origin)
        )  # fmt: skip

    def summaries(self, *, kinds: tuple[RecordKind, ...] = (), min_provenance: Provenance = "claimed") -> tuple[Summary, ...]:
        return tuple(self.candidates(CaseQuery(kinds=kinds, min_provenance=min_provenance)))

    def append(self, event: Event) -> Event:
        self.writes += 1
        self.facts.append(msgspec.structs.replace(event, id=len(self.facts) + 1))
        return self.facts[-1]

    def events(self, subject: str | None = None) -> tuple[Event, ...]:
        return tuple(event for event in self.facts if subject in (None, event.subject))

    def generation(self) -> int:
        return self.writes

    def versions(self, ids: Sequence[int]) -> Mapping[int, Version]:
        return {row: self.rows[row - 1][0] for row in ids if 0 < row <= len(self.rows)}

    def candidates(self, query: CaseQuery) -> Sequence[Summary]:
        return [self._summary(row) for row in self._visible() if _passes(self.rows[row - 1][0].record, query)]

    def listing(self, query: CaseQuery) -> Sequence[Listed]:
        return [(row.id, row.language_share, row.provenance, row.created_ns, self._length(row.id)) for row in self.candidates(query)]

    def postings(self, tokens: Sequence[str]) -> Mapping[str, Sequence[Posting]]:
        return {token: [self._posting(row, token) for row in self._visible() if token in self.rows[row - 1][1].tokens] for token in tokens}

    def postings_among(self, tokens: Sequence[str], ids: Sequence[int]) -> Mapping[str, Sequence[Posting]]:
        return {token: [row for row in rows if row.id in ids] for token, rows in self.postings(tokens).items()}

    def collection(self) -> Collection:
        entries = tuple(self._entry(row) for row in self._visible())
        tokens = sorted({token for entry in entries for token in self.rows[entry.id - 1][1].tokens})
        found = self.postings(tokens)
        rows = [row for token in tokens for row in found[token]]
        return Collection(
            generation=self.writes,
            entries=entries,
            tokens=tuple(tokens),
            ends=tuple(accumulate(len(found[token]) for token in tokens)),
            ids=struct.pack(f"<{len(rows)}q", *(row.id for row in rows)),
            counts=struct.pack(f"<{len(rows)}I", *(row.count for row in rows)),
        )

    def changes_since(self, generation: int) -> Changes:
        """Every record, as if all had been touched: more work than needed, never a wrong answer."""
        entries = tuple(self._entry(row) for row in self._visible())
        ids = [entry.id for entry in entries]
        return Changes(generation=self.writes, gone=tuple(range(1, len(self.rows) + 1)), entries=entries, heads=(len(ids), sum(ids)))

    def vectors_since(self, generation: int, model_id: str) -> VectorBlock:
        self.vector_reads += 1
        held = [
            (row, prepared)
            for row, (version, prepared) in enumerate(self.rows, start=1)
            if version.generation > generation and prepared.model_id == model_id and prepared.fields
        ]
        ids = [row for row, prepared in held for _ in prepared.fields]
        return VectorBlock(
            generation=self.writes,
            model_id=model_id,
            dim=held[0][1].dim if held else 0,
            ids=struct.pack(f"<{len(ids)}q", *ids),
            vectors=b"".join(prepared.vectors for _, prepared in held),
            fields=tuple(name for _, prepared in held for name in prepared.fields),
        )

    def state(self, key: str) -> str | None:
        return self.states.get(key)

    def set_state(self, key: str, value: str) -> None:
        self.states[key] = value

    def close(self) -> None:
        self.rows = []

    def _newest_first(self, slug: str) -> list[Version]:
        found = [version for version, _ in self.rows if version.record.slug == slug]
        return sorted(found, key=lambda version: (RESOLUTION.index(version.origin), -version.n))

    def _visible(self) -> Iterable[int]:
        yanked = {event.subject for event in self.facts if event.kind == "yanked"}
        for row, (version, _) in enumerate(self.rows, start=1):
            standing = [other for other in self._newest_first(version.record.slug) if other.sha256 not in yanked]
            if standing and standing[0] is version:
                yield row

    def _length(self, row: int) -> int:
        return sum(self.rows[row - 1][1].tokens.values())

    def _entry(self, row: int) -> Entry:
        summary, record = self._summary(row), self.rows[row - 1][0].record
        return Entry(row, record.slug, summary.kind, summary.provenance, summary.language_share, summary.created_ns, self._length(row),
                     summary.status, ())  # fmt: skip

    def _posting(self, row: int, token: str) -> Posting:
        tokens = self.rows[row - 1][1].tokens
        return Posting(row, tokens[token], sum(tokens.values()))

    def _summary(self, row: int) -> Summary:
        version, prepared = self.rows[row - 1]
        kinds = [event.kind for event in self.facts if event.subject == version.sha256]
        return Summary(id=row, ref=version.ref, kind=version.record.kind, provenance=version.record.provenance,
                       language_share=prepared.language_share, status=kinds[-1] if kinds else "published",
                       created_ns=version.created_ns)  # fmt: skip


def _passes(record: Record, query: CaseQuery) -> bool:
    families = {case.context.soc_family for case in record.cases} or {"unknown"}
    types = {case.context.model_type for case in record.cases}
    causes = {cause for case in record.cases for cause in (case.cause, *case.context.causes)}
    return (
        (not query.kinds or record.kind in query.kinds)
        and rank_of(record.provenance) >= rank_of(query.min_provenance)
        and (not query.soc_families or bool(families & {*query.soc_families, "unknown"}))
        and (not query.model_types or bool(types & set(query.model_types)))
        and (not query.causes or bool(causes & set(query.causes)))
    )
