"""The interfaces between the parts. Each has a contract test suite that every implementation passes.

Arrays are numpy, named only for type checkers so that the text-only path never imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec

from kb.domain.case import CaseQuery, RecordKind
from kb.domain.event import Event
from kb.domain.finding import Judgement
from kb.domain.provenance import Provenance, StoreOrigin
from kb.domain.record import Record
from kb.domain.sniff import Sniff
from kb.domain.thresholds import Thresholds
from kb.domain.version import Ref, Revision, Version, Visibility

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
    Ids = npt.NDArray[np.int64]

SessionT_co = TypeVar("SessionT_co", covariant=True)
ViewT_contra = TypeVar("ViewT_contra", contravariant=True)
DocumentT_contra = TypeVar("DocumentT_contra", contravariant=True)


class Backend(Protocol[SessionT_co]):
    """A source of sessions.

    ``sniff`` looks at names and first bytes only and returns None for what it does not know.
    ``load`` returns one session a rank, ordered by rank, each passing ``Session.self_check``; what was
    not captured is in ``Session.meta.missing``, never silently absent. It raises UnusableCaptureError
    when nothing usable is there and MalformedInputError naming file and row for a broken file. It
    writes nothing under ``path``.
    """

    @property
    def name(self) -> str:
        """What the table of backends and the contract tests call it."""

    def sniff(self, path: Path) -> Sniff | None:
        """What is at ``path``, or None."""

    def load(self, path: Path) -> Sequence[SessionT_co]:
        """The sessions at ``path``."""


class Rule(Protocol[ViewT_contra]):
    """A pure function of one view (a rank's or a cluster's) and the thresholds.

    It returns at least one judgement for each cause it is responsible for, so that nothing is skipped
    in silence. Findings carry evidence rows; gains never exceed exposed time.
    """

    def __call__(self, view: ViewT_contra, thresholds: Thresholds, /) -> tuple[Judgement, ...]:
        """The judgements of this rule."""


class Renderer(Protocol[DocumentT_contra]):
    """Turns a document into one file. ``binary`` says whether ``render`` returns bytes or str."""

    extension: str
    binary: bool

    def render(self, document: DocumentT_contra) -> str | bytes:
        """The file's content."""


class Embedder(Protocol):
    """Text to unit vectors.

    ``model_id`` changes whenever equal text could give another vector (weights, tokeniser, version);
    vectors of different ids are never compared. Thread-safe after construction; no network.
    """

    name: str
    dim: int
    model_id: str

    def encode_query(self, text: str) -> Vectors:
        """One query: shape (dim,), float32, length 1 (all zeros for text without content)."""

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Documents: shape (len(texts), dim), float32, rows of length 1 (or 0)."""


class Index(Protocol):
    """Nearest neighbours by inner product over vectors with integer ids. Several vectors may share an id."""

    kind: str
    dim: int

    def __len__(self) -> int: ...

    def search(self, query: Vectors, k: int, *, allowed: Ids | None = None) -> tuple[Ids, Vectors]:
        """The ``k`` best distinct ids for one query (shape (dim,)), best first, with their scores (an id's
        score is the maximum over its vectors). ``allowed`` restricts to these ids before ranking, so that
        filters never cost recall. Fewer than ``k`` rows when fewer exist. Ties are broken by smaller id."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What search needs of a record, computed outside the write transaction.

    ``tokens``: lexical token -> count. ``vectors``: float32 array (fields, dim) as little-endian bytes,
    one row a field named in ``fields``. ``language_share``: share (0..1) of Chinese in the text.
    """

    tokens: Mapping[str, int]
    vectors: bytes
    fields: tuple[str, ...]
    dim: int
    model_id: str
    language_share: float


class Posting(msgspec.Struct, frozen=True):
    """One record that holds a query token: ``count`` times among ``length`` tokens."""

    id: int
    count: int
    length: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a listing: the newest visible version of a record."""

    id: int
    ref: Ref
    kind: RecordKind
    provenance: Provenance
    language_share: float
    status: str
    created_ns: int


Listed = tuple[int, float, Provenance, int, int]
"""A record as search weighs it: row id, share of Chinese (0..1), provenance, time of publication (ns), tokens."""


class Entry(msgspec.Struct, frozen=True):
    """The newest visible version of a record as search weighs and filters it: ``length`` is its number of tokens, ``facets`` are
    its exact filter values as (name, value) pairs."""

    id: int
    slug: str
    kind: RecordKind
    provenance: Provenance
    language_share: float
    created_ns: int
    length: int
    status: str
    facets: tuple[tuple[str, str], ...]


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """All that search reads of the visible records, at one generation.

    ``entries`` in order of id. ``tokens`` ascending; the postings of ``tokens[i]`` are ``ends[i - 1]`` .. ``ends[i]`` of ``ids``
    (little-endian int64, ascending within a token) and ``counts`` (little-endian uint32).
    """

    generation: int
    entries: tuple[Entry, ...]
    tokens: tuple[str, ...]
    ends: tuple[int, ...]
    ids: bytes
    counts: bytes


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the records touched since a generation: ``gone`` are the ids of all their versions, ``entries`` what is visible
    of them now. ``heads`` are number and sum of ids of all visible records now, to check a cache by."""

    generation: int
    gone: tuple[int, ...]
    entries: tuple[Entry, ...]
    heads: tuple[int, int]


class VectorBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors added after a generation: ``ids`` as little-endian int64, ``vectors`` as (n, dim) float32."""

    generation: int
    model_id: str
    dim: int
    ids: bytes
    vectors: bytes
    fields: tuple[str, ...]


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """One version to publish among several.

    ``created_ns`` None = now; a version that is moved between stores keeps its own time. ``remarks`` are facts about the
    version (their ``subject`` is filled in) that become events of the same transaction, also when nothing new is published
    but only when the version has no event of that kind yet.
    """

    record: Record
    prepared: Prepared
    origin: StoreOrigin
    author: str
    visibility: Visibility = "private"
    expect_parent: str | None = None
    created_ns: int | None = None
    remarks: tuple[Event, ...] = ()


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """``created`` is False when the newest version already had this content."""

    version: Version
    created: bool


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """A stored version on its way to another store, with its search data: one ``Prepared`` a model, at least one."""

    version: Version
    prepared: tuple[Prepared, ...]


class Store(Protocol):
    """Versioned records and their events. The truth; every index is a cache of it.

    Ownership: a store object belongs to one thread; any number of processes may open the same store.
    Transactions: each writing method is one transaction, durable when it returns. Reading methods see one
    snapshot each. Every write increments ``generation``.
    """

    def publish(self, record: Record, prepared: Prepared, *, origin: StoreOrigin, author: str, visibility: Visibility = "private",
                expect_parent: str | None = None) -> Version:  # fmt: skip
        """Append the next version of ``record.slug`` in ``origin``.

        Content equal to the newest version returns that version unchanged. ``expect_parent`` (a content
        hash) must be the newest version's, else ConflictError. Raises StoreError when nothing was written.
        """

    def publish_all(self, items: Sequence[Publication]) -> tuple[Published, ...]:
        """Publish several versions in one transaction, all or none, each as ``publish`` would."""

    def get(self, ref: Ref) -> Version:
        """The version named: exactly ``n`` when given (also a yanked one), else the newest not yanked.
        Raises NotFoundError naming the nearest slugs."""

    def history(self, slug: str, origin: StoreOrigin | None = None) -> tuple[Version, ...]:
        """All versions of a slug, oldest first. Raises NotFoundError when there is none."""

    def revisions(self, slug: str, origin: StoreOrigin | None = None) -> tuple[Revision, ...]:
        """The same without contents, so that a long history is read quickly."""

    def summaries(self, *, kinds: tuple[RecordKind, ...] = (), min_provenance: Provenance = "claimed") -> tuple[Summary, ...]:
        """The newest visible version of every record after the overlay (workspace over team over library)."""

    def append(self, event: Event) -> Event:
        """Add an event; returns it with its id."""

    def events(self, subject: str | None = None) -> tuple[Event, ...]:
        """Events oldest first, all or of one version's hash. An event whose ``detail`` names an ``origin`` speaks about
        the versions of that origin only, one without about every version with that content."""

    def generation(self) -> int:
        """Commit counter: grows with every write, never falls."""

    def versions(self, ids: Sequence[int]) -> Mapping[int, Version]:
        """Versions by row id, for showing hits."""

    def candidates(self, query: CaseQuery) -> Sequence[Summary]:
        """Visible records that pass the query's exact filters."""

    def listing(self, query: CaseQuery) -> Sequence[Listed]:
        """The same records as ``candidates``, in the same order, without what only readers want: a tenth of its time."""

    def postings(self, tokens: Sequence[str]) -> Mapping[str, Sequence[Posting]]:
        """Records holding each token (newest visible versions only)."""

    def postings_among(self, tokens: Sequence[str], ids: Sequence[int]) -> Mapping[str, Sequence[Posting]]:
        """``postings`` of the visible records of ``ids`` only, without reading those of others."""

    def collection(self) -> Collection:
        """Everything ``listing`` and ``postings`` would give, in one snapshot: to make a cache of."""

    def changes_since(self, generation: int) -> Changes:
        """The records touched by a version or an event committed after ``generation``."""

    def vectors_since(self, generation: int, model_id: str) -> VectorBlock:
        """Vectors of ``model_id`` committed after ``generation`` (0 for all), with the generation read."""

    def state(self, key: str) -> str | None:
        """A named value kept beside the records (for example the fingerprint of the synced library)."""

    def set_state(self, key: str, value: str) -> None:
        """Set a named value."""

    def close(self) -> None:
        """Release files and connections; further calls are errors."""


class CarryingStore(Store, Protocol):
    """A store whose versions can be taken to another one."""

    def carry(self, slugs: Sequence[str]) -> tuple[Carried, ...]:
        """Every version of these slugs, oldest first, with what it was published with; unknown slugs have none."""


class Progress(Protocol):
    """Told how far long work is; the command line draws it on stderr, tests count it."""

    def __call__(self, stage: str, done: int, total: int, /) -> None:
        """``done`` of ``total`` units of ``stage`` are finished."""


class Artefacts(Protocol):
    """Content-addressed files beside the store (attached sessions)."""

    def put(self, data: bytes) -> str:
        """Keep ``data``; returns its sha256 in hex."""

    def get(self, sha256: str) -> bytes:
        """The bytes, checked against the name. Raises NotFoundError."""

    def names(self) -> Iterator[str]:
        """Hashes of everything kept."""


RuleKind = Literal["rank", "cluster"]
AnyRule = Rule[Any]
