"""The writing half of the SQLite store, through SQLModel: one IMMEDIATE transaction a call, durable when it returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import sqlalchemy
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool
from sqlmodel import Session, col, create_engine, delete, insert, select, update

from kb.domain.event import Event
from kb.domain.protocols import Prepared, Publication, Published
from kb.domain.provenance import StoreOrigin, rank_of
from kb.domain.record import Record
from kb.domain.version import RESOLUTION, Version
from kb.errors import StoreError
from kb.store import statements
from kb.store.drafts import Draft, drafted, names_of, parent_conflict, unknown_subject, width_conflict
from kb.store.facets import facets
from kb.store.faults import store_error
from kb.store.tables import ContentRow, CounterRow, EventRow, FacetRow, HeadRow, StateRow, VectorRow, VersionRow


class SqliteWriter:
    """Writes of ``kb.domain.protocols.Store`` over one connection that is up to date with the migrations.

    ``clock`` gives UTC in ns; it labels rows and never decides their order.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, *, clock: Callable[[], int]) -> None:
        self._connection = connection
        self._path = path
        self._clock = clock
        self._engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        # sqlite3 itself begins nothing (isolation_level None); a deferred begin could not be upgraded to a write safely.
        sqlalchemy.event.listen(self._engine, "begin", _begin_immediate)

    def publish_all(self, items: Sequence[Publication]) -> tuple[Published, ...]:
        """Append versions, or find them: content equal to the newest version's returns that one, which makes a
        repeated call safe; vectors of a model it does not have yet are added to it."""
        drafts = [drafted(item) for item in items]
        with self._transaction(f"publishing {names_of(list(items))}") as session:
            return tuple(self._published(session, draft) for draft in drafts)

    def _published(self, session: Session, draft: Draft) -> Published:
        item, slug = draft.item, draft.item.record.slug
        _require_dim(session, item.prepared)
        newest = _newest(session, item.origin, slug)
        if newest is not None and newest.sha256 == draft.sha256:
            _add_vectors(session, newest, item.prepared, draft.vectors)
            _add_remarks(session, newest, item.remarks, only_missing=True)
            return Published(version=_version(newest, item.record), created=False)
        _require_parent(newest, item.expect_parent, slug)
        row = VersionRow(
            origin=item.origin,
            slug=slug,
            n=newest.n + 1 if newest else 1,
            sha256=draft.sha256,
            kind=item.record.kind,
            provenance=item.record.provenance,
            tier=rank_of(item.record.provenance),
            author=item.author,
            created_ns=self._clock() if item.created_ns is None else item.created_ns,
            visibility=item.visibility,
            parent=newest.sha256 if newest else None,
            language_share=item.prepared.language_share,
            length=sum(item.prepared.tokens.values()),
            generation=_advance(session),
        )
        _add_version(session, row, draft.body)
        _add_search_data(session, row, item.record, item.prepared, draft.vectors)
        _add_remarks(session, row, item.remarks)
        _refresh_head(session, slug)
        return Published(version=_version(row, item.record), created=True)

    def append(self, event: Event) -> Event:
        """Add an event about a known version. Raises NotFoundError for a hash no version has."""
        with self._transaction(f"recording {event.kind}") as session:
            slugs = session.exec(select(VersionRow.slug).where(VersionRow.sha256 == event.subject).distinct()).all()
            if not slugs:
                raise unknown_subject(event.subject)
            row = _event_row(event, generation=_advance(session))
            session.add(row)
            session.flush()
            if event.kind in ("yanked", "restored"):
                for slug in slugs:
                    _refresh_head(session, slug)
            return msgspec.structs.replace(event, id=row.id)

    def set_state(self, key: str, value: str) -> None:
        """Set a named value."""
        with self._transaction(f"setting {key}") as session:
            _advance(session)
            session.merge(StateRow(key=key, value=value))

    def rebuild_heads(self) -> None:
        """Derive the head of every slug anew from versions and events."""
        with self._transaction("rebuilding the heads") as session:
            _advance(session)
            for slug in session.connection().exec_driver_sql(statements.SLUGS).scalars().all():
                _refresh_head(session, slug)

    def close(self) -> None:
        """Close the connection; SQLite then folds the write-ahead log into the file."""
        self._engine.dispose()
        self._connection.close()

    @contextmanager
    def _transaction(self, doing: str) -> Iterator[Session]:
        try:
            with Session(self._engine, expire_on_commit=False) as session, session.begin():
                yield session
        except DBAPIError as error:
            if isinstance(error.orig, sqlite3.Error):
                raise store_error(error.orig, path=self._path, doing=doing) from error
            raise StoreError(f"{doing}: {error}", do="report this as a defect; nothing was written") from error


def _begin_immediate(connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _advance(session: Session) -> int:
    """The generation of this transaction: the lock is held, so it is one more than every committed one."""
    # Here and below the connection, not the session: the ORM's own path costs several times more a statement.
    connection = session.connection()
    connection.execute(update(CounterRow).values(generation=CounterRow.generation + 1))
    return int(connection.execute(select(CounterRow.generation)).scalar_one())


def _newest(session: Session, origin: StoreOrigin, slug: str) -> VersionRow | None:
    mine = select(VersionRow).where(VersionRow.origin == origin, VersionRow.slug == slug)
    return session.exec(mine.order_by(col(VersionRow.n).desc()).limit(1)).first()


def _require_parent(newest: VersionRow | None, expected: str | None, slug: str) -> None:
    if expected is None or (newest is not None and newest.sha256 == expected):
        return
    raise parent_conflict(slug, expected, (newest.n, newest.sha256) if newest else None)


def _require_dim(session: Session, prepared: Prepared) -> None:
    if not prepared.fields:
        return
    mine = select(VectorRow.dim).where(VectorRow.model_id == prepared.model_id).limit(1)
    dim = session.connection().execute(mine).scalar()
    if dim is not None and dim != prepared.dim:
        raise width_conflict(prepared.model_id, dim, prepared.dim)


def _add_version(session: Session, row: VersionRow, body: bytes) -> None:
    connection = session.connection()
    if connection.execute(select(ContentRow.sha256).where(ContentRow.sha256 == row.sha256)).first() is None:
        connection.execute(insert(ContentRow), [{"sha256": row.sha256, "body": body}])
    session.add(row)
    session.flush()
    published = Event(
        kind="published",
        subject=row.sha256,
        author=row.author,
        at_ns=row.created_ns,
        detail={"origin": row.origin, "slug": row.slug, "n": row.n},
    )
    session.add(_event_row(published, generation=row.generation))


def _add_remarks(session: Session, row: VersionRow, remarks: Sequence[Event], *, only_missing: bool = False) -> None:
    if only_missing:
        held = set(session.exec(select(EventRow.kind).where(EventRow.subject == row.sha256).distinct()).all())
        remarks = [remark for remark in remarks if remark.kind not in held]
        if remarks:
            generation = _advance(session)
    else:
        generation = row.generation
    for remark in remarks:
        session.add(_event_row(msgspec.structs.replace(remark, subject=row.sha256), generation=generation))


def _add_search_data(session: Session, row: VersionRow, record: Record, prepared: Prepared, vectors: Mapping[str, bytes]) -> None:
    postings = [(token, row.id, count, row.length) for token, count in sorted(prepared.tokens.items())]
    values = [{"name": name, "value": value, "version_id": row.id} for name, value in facets(record)]
    connection = session.connection()
    if postings:
        connection.exec_driver_sql(statements.INSERT_POSTING, postings)
    if values:
        connection.execute(insert(FacetRow), values)
    if vectors:
        connection.execute(insert(VectorRow), _vector_rows(row.id, prepared, vectors, row.generation))


def _add_vectors(session: Session, row: VersionRow, prepared: Prepared, vectors: Mapping[str, bytes]) -> None:
    mine = select(VectorRow.field).where(VectorRow.version_id == row.id, VectorRow.model_id == prepared.model_id)
    present = set(session.exec(mine).all())
    missing = {field: values for field, values in vectors.items() if field not in present}
    if missing:
        session.connection().execute(insert(VectorRow), _vector_rows(row.id, prepared, missing, _advance(session)))


def _vector_rows(
    version_id: int | None, prepared: Prepared, vectors: Mapping[str, bytes], generation: int
) -> list[dict[str, str | int | bytes | None]]:
    shared = {"version_id": version_id, "model_id": prepared.model_id, "dim": prepared.dim, "generation": generation}
    return [{**shared, "field": field, "values_f32": values} for field, values in vectors.items()]


def _event_row(event: Event, *, generation: int) -> EventRow:
    return EventRow(
        kind=event.kind,
        subject=event.subject,
        author=event.author,
        at_ns=event.at_ns,
        detail=msgspec.json.encode(event.detail, order="sorted").decode(),
        generation=generation,
    )


def _refresh_head(session: Session, slug: str) -> None:
    """Point the slug's head at its newest visible version, or remove it when all are withdrawn."""
    connection = session.connection()
    newest = sqlalchemy.text(statements.NEWEST_VISIBLE)
    connection.execute(delete(HeadRow).where(col(HeadRow.slug) == slug))
    for origin in RESOLUTION:
        row_id = connection.execute(newest, {"origin": origin, "slug": slug}).scalar()
        if row_id is not None:
            connection.execute(insert(HeadRow), [{"version_id": row_id, "slug": slug}])
            return


def _version(row: VersionRow, record: Record) -> Version:
    return Version(
        record=record,
        origin=row.origin,  # type: ignore[arg-type]  # the table's CHECK admits only StoreOrigin
        n=row.n,
        sha256=row.sha256,
        author=row.author,
        created_ns=row.created_ns,
        visibility=row.visibility,  # type: ignore[arg-type]  # likewise Visibility
        parent=row.parent,
        generation=row.generation,
    )
