"""Large collections for ``search_speed``: real index files over records that exist only when they are shown."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.domain.case import Case, CaseContext, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Changes, Collection, Embedder, Entry, Posting
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Ref, Revision, Version
from kb.index.words import open_words, save_words
from kb.search.corpus import Corpus, believed
from kb.search.dense import VectorView
from kb.search.prepare import prepare

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.domain.protocols import Vectors

    Choices = npt.NDArray[np.int64]

IDENTITY = "synthetic"
BLOCK = 100_000


def shuffled(number: int, sources: Sequence[Record], draw: random.Random) -> Record:
    """Title, summary, case and body of different shipped recipes: the words of real ones, in new company."""
    return mixed(number, draw.choices(sources, k=4), draw.choice, brief=False)


def mixed(number: int, chosen: Sequence[Record], choose: Any, *, brief: bool) -> Record:
    """A recipe of parts of four; ``brief``: title and summary only."""
    first, second, third, fourth = chosen
    if brief:
        return Record(kind="recipe", slug=f"speed-{number}", title=first.title, summary=second.summary, body=Text())
    case = choose(third.cases)
    context = CaseContext(model_type=case.context.model_type, phase=case.context.phase, soc_family=case.context.soc_family)
    outcomes = tuple(Outcome(strategy=outcome.strategy, result="unknown", metric="step_time") for outcome in case.outcomes[:1])
    own = Case(cause=case.cause, context=context, finding=case.finding, symptoms=case.symptoms, outcomes=outcomes)
    return Record(kind="recipe", slug=f"speed-{number}", title=first.title, summary=second.summary, body=fourth.body, cases=(own,))


@dataclass(frozen=True)
class Made:
    """A collection: its corpus from a real cache file, its vectors, and how to make a record."""

    corpus: Corpus
    view: VectorView
    sources: Sequence[Record]
    choices: Choices
    brief: bool


def synthetic(sources: Sequence[Record], count: int, vectors: int, embedder: Embedder, catalogue: Catalogue, folder: Path, seed: int, *,
              brief: bool) -> Made:  # fmt: skip
    """``count`` records, each of parts of four of ``sources`` chosen at random, with ``vectors`` random vectors each."""
    numbers = np.random.default_rng(seed)
    choices = numbers.integers(len(sources), size=(4, count))
    save_words(folder, _collection(sources, choices, catalogue, brief=brief), identity=IDENTITY)
    rows = np.concatenate([_unit(numbers, min(BLOCK, count * vectors - first), embedder.dim) for first in range(0, count * vectors, BLOCK)])
    ids = np.arange(1, count + 1)
    view = VectorView(1, embedder.model_id, ids, (ids - 1) * vectors, np.full(count, vectors), (rows,))
    corpus = believed(open_words(folder, identity=IDENTITY), _Unchanged(count))  # type: ignore[arg-type]  # only changes are asked for
    assert corpus is not None, "the cache just written must be believed"
    return Made(corpus, view, sources, choices, brief)


def _unit(numbers: np.random.Generator, count: int, dim: int) -> Vectors:
    rows = numbers.standard_normal((count, dim), dtype=np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


class _Unchanged:
    """A store in which nothing happened since the cache."""

    def __init__(self, count: int) -> None:
        self._heads = (count, count * (count + 1) // 2)

    def changes_since(self, generation: int) -> Changes:
        return Changes(generation=generation, gone=(), entries=(), heads=self._heads)


def _collection(sources: Sequence[Record], choices: Choices, catalogue: Catalogue, *, brief: bool) -> Collection:
    """The postings of all records, from those of each part of each source."""
    empty = Record(kind="recipe", slug="speed", title=Text(), summary=Text(), body=Text())
    nothing = Counter(prepare(empty, None, catalogue).tokens)
    parts = [
        [Counter(prepare(part, None, catalogue).tokens) - nothing for part in _parts(source, empty, brief=brief)] for source in sources
    ]
    members = [[np.flatnonzero(choices[at] == number) for number in range(len(sources))] for at in range(4)]
    lengths = sum(np.array([sum(own[at].values()) for own in parts])[choices[at]] for at in range(4))
    tokens = sorted({token for own in parts for part in own for token in part}, key=lambda token: token.encode())
    ids, counts, ends = array("q"), array("I"), []
    for token in tokens:
        places, often = _postings(token, parts, members)
        ids.frombytes((places + 1).astype("<i8").tobytes())
        counts.frombytes(often.astype("<u4").tobytes())
        ends.append(len(ids))
    shares = numbers_of_languages(choices[0])
    entries = tuple(
        Entry(number + 1, f"speed-{number}", "recipe", "claimed", shares[number], 0, int(lengths[number]), "published", ())
        for number in range(choices.shape[1])
    )
    return Collection(generation=1, entries=entries, tokens=tuple(tokens), ends=tuple(ends), ids=ids.tobytes(), counts=counts.tobytes())


def numbers_of_languages(choice: Choices) -> list[float]:
    """Shares of Chinese, one record in two on either side."""
    shares: list[float] = np.where(choice % 2 == 0, 0.7, 0.3).tolist()
    return shares


def _parts(source: Record, empty: Record, *, brief: bool) -> Iterator[Record]:
    from msgspec.structs import replace

    yield replace(empty, title=source.title)
    yield replace(empty, summary=source.summary)
    case = mixed(0, [empty, empty, source, empty], lambda cases: cases[0], brief=brief)
    yield replace(case, slug=empty.slug)
    yield empty if brief else replace(empty, body=source.body)


def _postings(token: str, parts: Sequence[Sequence[Mapping[str, int]]], members: Sequence[Sequence[Any]]) -> tuple[Any, Any]:
    """Places that hold the token, ascending, and how often."""
    held = [(members[at][number], own[at][token]) for number, own in enumerate(parts) for at in range(4) if token in own[at]]
    places = np.concatenate([found for found, _ in held])
    often = np.repeat([count for _, count in held], [len(found) for found, _ in held])
    order = np.argsort(places, kind="stable")
    places, often = places[order], often[order]
    starts = np.flatnonzero(np.concatenate(([True], np.diff(places) > 0)))
    return places[starts], np.add.reduceat(often, starts)


class Shown:
    """What a search asks of a store when everything else is cached: the versions shown, and their status."""

    def __init__(self, made: Made) -> None:
        self._made = made

    def generation(self) -> int:
        """Nothing changes."""
        return 1

    def versions(self, ids: Sequence[int]) -> Mapping[int, Version]:
        """Made anew, as a store would read them anew."""
        return {row: self._version(row) for row in ids}

    def revisions(self, slug: str, _origin: str | None = None) -> tuple[Revision, ...]:
        """One."""
        version = self._version(int(slug.removeprefix("speed-")) + 1)
        ref = Ref(slug, 1, "workspace")
        return (Revision(ref=ref, sha256=version.sha256, author="benchmark", created_ns=0, visibility="private", provenance="claimed",
                         parent=None, generation=1, status="published"),)  # fmt: skip

    def postings_among(self, tokens: Sequence[str], _ids: Sequence[int]) -> Mapping[str, Sequence[Posting]]:
        """Nothing was added."""
        return dict.fromkeys(tokens, ())

    def _version(self, row: int) -> Version:
        made = self._made
        chosen = [made.sources[int(number)] for number in made.choices[:, row - 1]]
        record = mixed(row - 1, chosen, lambda cases: cases[0], brief=made.brief)
        return Version(record=record, origin="workspace", n=1, sha256=f"{row:064x}", author="benchmark", created_ns=0)
