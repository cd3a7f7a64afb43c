"""The tables as the writer sees them. The schema itself is made by ``migrations``; a test compares both.

Importing this module costs most of a second: only ``writing`` does, and only when a store is opened for writing.
"""

from __future__ import annotations

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel


class CounterRow(SQLModel, table=True):
    """The store's commit counter, one row with id 1."""

    __tablename__ = "counter"
    id: int = Field(primary_key=True)
    generation: int = Field(sa_type=BigInteger)


class StateRow(SQLModel, table=True):
    """A named value."""

    __tablename__ = "state"
    key: str = Field(primary_key=True)
    value: str


class ContentRow(SQLModel, table=True):
    """Canonical bytes of a record by their sha256 (hex)."""

    __tablename__ = "content"
    sha256: str = Field(primary_key=True)
    body: bytes


class VersionRow(SQLModel, table=True):
    """One published revision; ``length`` is its number of lexical tokens, ``tier`` the rank of its provenance."""

    __tablename__ = "version"
    id: int | None = Field(default=None, primary_key=True)
    origin: str
    slug: str
    n: int
    sha256: str = Field(foreign_key="content.sha256")
    kind: str
    provenance: str
    tier: int
    author: str
    created_ns: int = Field(sa_type=BigInteger)
    visibility: str
    parent: str | None = None
    language_share: float
    length: int
    generation: int = Field(sa_type=BigInteger)


class HeadRow(SQLModel, table=True):
    """The newest visible version of each slug after the overlay: derived, kept in the same transaction."""

    __tablename__ = "head"
    version_id: int = Field(primary_key=True, foreign_key="version.id")
    slug: str


class FacetRow(SQLModel, table=True):
    """One filter value of a version."""

    __tablename__ = "facet"
    name: str = Field(primary_key=True)
    value: str = Field(primary_key=True)
    version_id: int = Field(primary_key=True, foreign_key="version.id")


class PostingRow(SQLModel, table=True):
    """A token's count in a version; ``length`` repeats the version's so that scoring needs no join."""

    __tablename__ = "posting"
    token: str = Field(primary_key=True)
    version_id: int = Field(primary_key=True, foreign_key="version.id")
    count: int
    length: int


class VectorRow(SQLModel, table=True):
    """One field's vector: ``dim`` little-endian float32."""

    __tablename__ = "vector"
    id: int | None = Field(default=None, primary_key=True)
    version_id: int = Field(foreign_key="version.id")
    field: str
    model_id: str
    dim: int
    generation: int = Field(sa_type=BigInteger)
    values_f32: bytes


class EventRow(SQLModel, table=True):
    """A fact about the version whose content hash is ``subject``; ``detail`` is JSON."""

    __tablename__ = "event"
    id: int | None = Field(default=None, primary_key=True)
    kind: str
    subject: str = Field(foreign_key="content.sha256")
    author: str
    at_ns: int = Field(sa_type=BigInteger)
    detail: str
    generation: int = Field(sa_type=BigInteger)
