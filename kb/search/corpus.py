"""The visible records of a store by *place*: what filters and words look at, from the index cache or from the store itself."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kb.domain.provenance import rank_of
from kb.domain.text import Lang
from kb.index.words import DamagedWordsError, Words, facet_term

if TYPE_CHECKING:
    from kb.domain.case import CaseQuery
    from kb.domain.protocols import Entry, Listed, Posting, Store

CHINESE_ABOVE: Final = 0.5
"""A document counts as Chinese above this share of Chinese text."""
CODES: Final[Mapping[Lang, int]] = {"zh": 1, "en": 2}
"""Language of a place in ``Candidates.langs``; 0 is a place that is no candidate."""
ANY: Final[Mapping[str, str]] = {"family": "unknown", "model_type": ""}
"""Facet values that pass every filter of their name: a case of unknown chip, a template for any model."""
MOST_CHANGES: Final = 2000
"""Records changed since the cache from which reading the store is the quicker way."""

Ints = Sequence[int]
Postings = tuple[Ints, Ints]
"""Places that hold a token, and how often each."""


class Corpus(msgspec.Struct, frozen=True, eq=False):
    """Columns over the places ``0 .. len(ids)``, valid for the store's ``generation``.

    ``sound`` is 1 for a place that is visible; ``simulated`` 1 where the tier is that. ``postings`` and ``frequency`` answer for all
    places, also those not visible any more. ``words`` and ``added`` are what it was made from; None when it came from the store.
    """

    generation: int
    ids: Sequence[int]
    langs: bytes
    shares: Sequence[float]
    created: Ints
    lengths: Ints
    tiers: bytes
    simulated: bytes
    sound: bytes
    postings: Callable[[Sequence[str]], Mapping[str, Postings]]
    frequencies: Callable[[Sequence[str]], Mapping[str, int]]
    words: Words | None = None
    added: tuple[Entry, ...] = ()
    memo: dict[str, Any] = {}
    """Arrays that the numpy side makes of the columns once."""


def language_of(share: float) -> Lang:
    """The group a document is balanced in."""
    return "zh" if share > CHINESE_ABOVE else "en"


def listed_corpus(rows: Sequence[Listed], store: Store) -> Corpus:
    """A corpus of rows that the store gave, all of them visible; postings come from the store."""
    place_of = {row[0]: place for place, row in enumerate(rows)}

    def postings(tokens: Sequence[str]) -> Mapping[str, Postings]:
        return {token: _placed(found, place_of) for token, found in store.postings(tokens).items()} if tokens else {}

    ids, shares, provenances, created, lengths = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return Corpus(
        generation=-1,
        ids=ids,
        langs=_langs(shares),
        shares=shares,
        created=created,
        lengths=lengths,
        tiers=bytes(map(rank_of, provenances)),
        simulated=bytes(tier == "simulated" for tier in provenances),
        sound=b"\1" * len(ids),
        postings=postings,
        frequencies=lambda tokens: {token: len(found) for token, found in store.postings(tokens).items()},
    )


def cached_corpus(words: Words, store: Store) -> Corpus | None:
    """The corpus of a cache and of what the store committed since; None where they do not add up or too much has changed."""
    changes = store.changes_since(words.manifest.generation)
    base = words.ids
    known = dict.fromkeys(changes.gone)
    lost = [place for place, record in enumerate(base) if record in known] if known else []
    heads = words.manifest.heads
    left = (heads[0] - len(lost), heads[1] - sum(base[place] for place in lost))
    entries = changes.entries
    if (left[0] + len(entries), left[1] + sum(entry.id for entry in entries)) != changes.heads or len(known) > MOST_CHANGES:
        return None
    sound = bytearray(b"\1" * len(base) + b"\1" * len(entries))
    for place in lost:
        sound[place] = 0
    shares = (*words.shares, *(entry.language_share for entry in entries)) if entries else words.shares
    tiers = bytes(rank_of(tier) for tier in words.manifest.tiers)  # type: ignore[arg-type]  # written from typed records
    ranks = words.tiers.translate(tiers.ljust(256, b"\0")) + bytes(rank_of(entry.provenance) for entry in entries)
    return Corpus(
        generation=changes.generation,
        ids=_joined("q", words.ids, [entry.id for entry in entries]),
        langs=_langs(shares),
        shares=shares,
        created=_joined("q", words.created, [entry.created_ns for entry in entries]),
        lengths=_joined("I", words.lengths, [entry.length for entry in entries]),
        tiers=ranks,
        simulated=ranks.translate(bytes(rank == rank_of("simulated") for rank in range(256))),
        sound=bytes(sound),
        postings=_reader(words, store, entries),
        frequencies=_counter(words, store, entries),
        words=words,
        added=entries,
    )


def _joined(code: str, base: Any, more: list[int]) -> Sequence[int]:
    return array(code, [*base, *more]) if more else base


def _reader(words: Words, store: Store, entries: Sequence[Entry]) -> Callable[[Sequence[str]], Mapping[str, Postings]]:
    place_of = {entry.id: len(words) + place for place, entry in enumerate(entries)}

    def postings(tokens: Sequence[str]) -> Mapping[str, Postings]:
        found: dict[str, Postings] = {token: words.postings(token) for token in tokens}
        for token, rows in store.postings_among(tokens, list(place_of)).items() if place_of and tokens else ():
            if rows:
                places, counts = _placed(rows, place_of)
                found[token] = array("I", [*found[token][0], *places]), array("I", [*found[token][1], *counts])
        return found

    return postings


def _counter(words: Words, store: Store, entries: Sequence[Entry]) -> Callable[[Sequence[str]], Mapping[str, int]]:
    """How many records hold each token; records that were replaced since the cache still count."""

    def frequencies(tokens: Sequence[str]) -> Mapping[str, int]:
        more = store.postings_among(tokens, [entry.id for entry in entries]) if entries else {}
        return {token: words.frequency(token) + len(more.get(token, ())) for token in tokens}

    return frequencies


def _placed(rows: Sequence[Posting], place_of: Mapping[int, int]) -> Postings:
    held = [(place, row.count) for row in rows if (place := place_of.get(row.id)) is not None]
    return array("I", [place for place, _ in held]), array("I", [count for _, count in held])


def _langs(shares: Sequence[float]) -> bytes:
    zh, en = CODES["zh"], CODES["en"]
    return bytes([zh if share > CHINESE_ABOVE else en for share in shares])


def both(first: bytes, second: bytes) -> bytes:
    """Byte by byte ``first & second``, at the speed of whole numbers."""
    together = int.from_bytes(first, "little") & int.from_bytes(second, "little")
    return together.to_bytes(len(first), "little")


def passing(corpus: Corpus, query: CaseQuery) -> bytes:
    """1 for each place that is visible and passes the exact filters on kind, tier, chip family, model type and cause; those on
    language, time and verification are ``filters``' own. Only for a corpus that came from a cache."""
    words = corpus.words
    if words is None:
        return corpus.sound
    kinds = bytes(not query.kinds or kind in query.kinds for kind in words.manifest.kinds).ljust(256, b"\0")
    mask = words.kinds.translate(kinds) + bytes(not query.kinds or entry.kind in query.kinds for entry in corpus.added)
    least = rank_of(query.min_provenance)
    mask = both(mask, corpus.tiers.translate(bytes(rank >= least for rank in range(256))))
    for name, values in (("family", query.soc_families), ("model_type", query.model_types), ("cause", query.causes)):
        if values:
            mask = both(mask, _holding(corpus, words, name, {*values, *((ANY[name],) if name in ANY else ())}))
    return both(mask, corpus.sound)


def _holding(corpus: Corpus, words: Words, name: str, values: set[str]) -> bytes:
    """1 for each place with one of ``values`` of the facet ``name``."""
    held = bytearray(len(corpus.ids))
    for value in values:
        for place in words.postings(facet_term(name, value))[0]:
            held[place] = 1
    for place, entry in enumerate(corpus.added, start=len(words)):
        held[place] = any((name, value) in entry.facets for value in values)
    return bytes(held)


def in_state(corpus: Corpus, words: Words, state: str) -> bytes:
    """1 for each place whose status is ``state``."""
    codes = bytes(name == state for name in words.manifest.states).ljust(256, b"\0")
    return words.states.translate(codes) + bytes(entry.status == state for entry in corpus.added)


def believed(words: Words | None, store: Store) -> Corpus | None:
    """``cached_corpus`` for a cache that may be missing or damaged."""
    if words is None:
        return None
    try:
        return cached_corpus(words, store)
    except DamagedWordsError:
        return None
