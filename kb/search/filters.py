"""Which records may be found, and what to say when a filter leaves none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Store
from kb.domain.soc import SocFamily
from kb.domain.text import Lang, Text
from kb.errors import NotFoundError
from kb.search.corpus import CODES, Corpus, both, in_state, listed_corpus, passing

CHINESE_ABOVE: Final = 0.25
ENGLISH_BELOW: Final = 0.6
"""Share of Chinese text from which a record counts as written in Chinese, and up to which in English: a text in both
languages has about .5, and a Chinese one full of operator names stays above .6."""
VERIFIED: Final = "verified"
"""The status of a version whose evidence holds."""
_NAMES: Final = ("kinds", "soc_families", "model_types", "causes", "min_provenance", "lang", "since_ns", "verified")
_OFF: Final = CaseQuery(kinds=())
_FLAGS: Final[Mapping[str, str]] = {"kinds": "--kind", "soc_families": "--soc", "model_types": "--model-type", "causes": "--cause",
                                    "min_provenance": "--provenance", "lang": "--written-in", "since_ns": "--since",
                                    "verified": "--verified"}  # fmt: skip


class Candidates(msgspec.Struct, frozen=True, eq=False):
    """Records that may be found, by their place in ``corpus``, and remarks for the reader.

    ``langs`` has the code of the language (``corpus.CODES``) of each candidate, 0 for every other place; ``sizes`` are their numbers.
    """

    corpus: Corpus
    langs: bytes
    sizes: Mapping[Lang, int]
    notes: tuple[Text, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.sizes.values())

    @property
    def whole(self) -> bool:
        """Whether every place of the corpus is a candidate."""
        return self.count == len(self.langs)

    def language(self, place: int) -> Lang:
        """The language of a candidate."""
        return "zh" if self.langs[place] == CODES["zh"] else "en"


def find_candidates(query: CaseQuery, store: Store, catalogue: Catalogue, corpus: Corpus | None = None) -> Candidates:
    """Apply the exact filters, the chip family of the session and the simulated flag; ``corpus`` None reads the store.

    The chip families of ``families_of`` are a hard key: records of other known families are left out, those of an
    unknown one stay. A language filter keeps the records with prose in that language.
    """
    asked, notes = named_by_id(query, catalogue)
    used, mask = _passing(store, corpus, msgspec.structs.replace(asked, soc_families=families_of(asked)))
    kept = mask if query.include_simulated else both(mask, used.simulated.translate(_NOT))
    hidden = mask.count(1) - kept.count(1)
    if hidden:
        notes += (Text(zh=f"隐藏了 {hidden} 条只有仿真结果的记录；需要时请求包含仿真记录。",
                       en=f"{hidden} records with simulated results only are hidden; ask for simulated ones to see them."),)  # fmt: skip
    if 1 not in mask:
        notes += tuple(_emptied(asked, store, corpus))
    langs = used.langs if 0 not in kept else both(kept.translate(_FULL), used.langs)
    return Candidates(used, langs, {lang: langs.count(code) for lang, code in CODES.items()}, notes)


_NOT: Final = bytes(value == 0 for value in range(256))
_FULL: Final = bytes(255 if value else 0 for value in range(256))


def families_of(query: CaseQuery) -> tuple[SocFamily, ...]:
    """The chip families an answer must apply to: the user's filter, else that of the session; empty = any."""
    family = query.context.soc_family if query.context is not None else "unknown"
    return query.soc_families or ((family,) if family != "unknown" else ())


def _passing(store: Store, corpus: Corpus | None, query: CaseQuery) -> tuple[Corpus, bytes]:
    """Records, and 1 for each that passes all filters: those the store leaves to its callers as well."""
    used = corpus if corpus is not None else listed_corpus(store.listing(query), store)
    mask = passing(used, query)
    if query.lang is not None:
        mask = both(mask, bytes([_written_in(query.lang, share) for share in used.shares]))
    if query.since_ns is not None:
        mask = both(mask, bytes([created >= query.since_ns for created in used.created]))
    if query.verified:
        mask = both(mask, _verified(store, used, query))
    return used, mask


def _verified(store: Store, corpus: Corpus, query: CaseQuery) -> bytes:
    if corpus.words is not None:
        return in_state(corpus, corpus.words, VERIFIED)
    holding = {row.id for row in store.candidates(query) if row.status == VERIFIED}
    return bytes(record in holding for record in corpus.ids)


def _written_in(lang: Lang, share: float) -> bool:
    return share > CHINESE_ABOVE if lang == "zh" else share < ENGLISH_BELOW


def named_by_id(query: CaseQuery, catalogue: Catalogue) -> tuple[CaseQuery, tuple[Text, ...]]:
    """Cause filters by alias become ids; one the catalogue does not know stays as it is, with a note naming near ones."""
    ids: list[str] = []
    notes: tuple[Text, ...] = ()
    for name in query.causes:
        try:
            ids.append(catalogue.cause(name).id)
        except NotFoundError as error:
            ids.append(name)
            notes += (
                Text(
                    zh=f"目录中没有名为 {name!r} 的原因；{error.allowed}", en=f"no cause named {name!r} in the catalogue; {error.allowed}"
                ),
            )
    return msgspec.structs.replace(query, causes=tuple(ids)), notes


def _emptied(query: CaseQuery, store: Store, corpus: Corpus | None) -> Iterator[Text]:
    def left(other: CaseQuery) -> int:
        return _passing(store, corpus, other)[1].count(1)

    total = left(_OFF)
    if not total:
        yield Text(zh="库中还没有记录：运行 kb doctor 检查同步。", en="the store holds no records yet: run kb doctor to check the sync.")
        return
    active = {name: getattr(query, name) for name in _NAMES if getattr(query, name) != getattr(_OFF, name)}
    guilty = [name for name, value in active.items() if not left(_only(name, value))]
    for name in guilty:
        said = f"{_FLAGS[name]} {_shown(name, active[name])}".strip()
        yield Text(zh=f"过滤条件 {said} 单独就排除了全部 {total} 条记录。", en=f"the filter {said} alone leaves none of {total} records.")
    if guilty:
        return
    joined = " ".join(f"{_FLAGS[name]} {_shown(name, value)}".strip() for name, value in active.items())
    yield Text(
        zh=f"过滤条件合在一起（{joined}）排除了全部 {total} 条记录。", en=f"the filters together ({joined}) leave none of {total} records."
    )
    if query.context is not None and not query.soc_families and query.context.soc_family != "unknown":
        family = query.context.soc_family
        yield Text(
            zh=f"其中芯片系列 {family} 来自所给的 profile。", en=f"the chip family {family} among them comes from the profile given."
        )


def _only(name: str, value: Any) -> CaseQuery:
    return msgspec.structs.replace(_OFF, **{name: value})


def _shown(name: str, value: Any) -> str:
    if name == "since_ns":
        return time.strftime("%Y-%m-%d", time.gmtime(value // 1_000_000_000))
    if name == "verified":
        return ""
    return ",".join(value) if isinstance(value, tuple) else str(value)
