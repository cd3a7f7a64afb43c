from __future__ import annotations

import struct
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.protocols import Collection, Entry
from kb.index.words import MANIFEST, DamagedWordsError, Words, facet_term, open_words, save_words

TOKENS = {"融合": {3: 2}, "attention": {3: 1, 7: 4}, "l2": {9: 1}}


def collection(tokens: dict[str, dict[int, int]], generation: int = 5) -> Collection:
    names = sorted(tokens, key=str.encode)
    rows = [(record, count) for name in names for record, count in sorted(tokens[name].items())]
    ids = sorted({record for record, _ in rows})
    entries = tuple(
        Entry(record, f"r{record}", "recipe", "claimed", 0.5, record * 10, 4, "published", (("cause", f"c{record % 2}"),)) for record in ids
    )
    return Collection(
        generation=generation,
        entries=entries,
        tokens=tuple(names),
        ends=tuple(accumulate(len(tokens[name]) for name in names)),
        ids=struct.pack(f"<{len(rows)}q", *(record for record, _ in rows)),
        counts=struct.pack(f"<{len(rows)}I", *(count for _, count in rows)),
    )


def opened(folder: Path, identity: str = "store") -> Words:
    words = open_words(folder, identity=identity)
    assert words is not None
    return words


def held(words: Words, token: str) -> dict[int, int]:
    places, counts = words.postings(token)
    return {words.ids[place]: count for place, count in zip(places, counts, strict=True)}


tables = st.dictionaries(
    st.text(min_size=1, max_size=6).filter(lambda text: text.isprintable()),
    st.dictionaries(st.integers(1, 10**9), st.integers(1, 10**6), min_size=1, max_size=5),
    min_size=1,
    max_size=20,
)


@given(tokens=tables)
def test_what_is_saved_is_read(tmp_path_factory: pytest.TempPathFactory, tokens: dict[str, dict[int, int]]) -> None:
    folder = tmp_path_factory.mktemp("words")
    save_words(folder, collection(tokens), identity="store")
    words = opened(folder)
    assert {token: held(words, token) for token in tokens} == tokens
    assert {token: words.frequency(token) for token in tokens} == {token: len(own) for token, own in tokens.items()}
    assert held(words, "no such token") == {}
    assert list(words.created) == [record * 10 for record in words.ids]


def test_filter_values_are_postings_no_text_can_give(tmp_path: Path) -> None:
    save_words(tmp_path, collection(TOKENS), identity="store")
    assert held(opened(tmp_path), facet_term("cause", "c1")) == {3: 1, 7: 1, 9: 1}
    assert held(opened(tmp_path), "cause") == {}


def test_a_cache_of_another_store_is_not_opened(tmp_path: Path) -> None:
    save_words(tmp_path, collection(TOKENS), identity="store")
    assert open_words(tmp_path, identity="other") is None
    assert open_words(tmp_path / "empty", identity="store") is None


def test_every_flipped_byte_shows(tmp_path: Path) -> None:
    """Of the manifest and the head at opening, of a posting when it is read."""
    save_words(tmp_path, collection(TOKENS), identity="store")
    for path in sorted(tmp_path.iterdir()):
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
            assert shows(tmp_path), f"{path.name}: byte {at}"
        for length in range(0, len(whole), 7):
            path.write_bytes(whole[:length])
            assert shows(tmp_path), f"{path.name}: {length} bytes"
        path.write_bytes(whole)
    assert not shows(tmp_path)


def shows(folder: Path) -> bool:
    words = open_words(folder, identity="store")
    if words is None:
        return True
    try:
        terms = (*TOKENS, facet_term("cause", "c0"), facet_term("cause", "c1"))
        return {token: held(words, token) for token in terms}.keys() != set(terms)
    except DamagedWordsError:
        return True


def test_an_opened_cache_outlives_the_next_one(tmp_path: Path) -> None:
    save_words(tmp_path, collection(TOKENS), identity="store")
    words = opened(tmp_path)
    save_words(tmp_path, collection({"new": {1: 1}}, generation=6), identity="store")
    for path in tmp_path.glob("5-*.words"):
        path.unlink()
    assert held(words, "attention") == TOKENS["attention"]
    assert opened(tmp_path).manifest.generation == 6
    assert (tmp_path / MANIFEST).is_file()
