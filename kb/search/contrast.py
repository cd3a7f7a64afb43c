"""Cases that speak against a hit: its lever was tried elsewhere and did not help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kb.domain.case import Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Store
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Version
from kb.search.filters import Candidates
from kb.search.levers import AGAINST, against_token

READ: Final = 4
"""Records read for each lever, the newest: more than are shown, as their worse outcomes come first."""
SHOWN: Final = 2
"""Contrasting cases said beside one hit."""
_VERBS: Final[Mapping[str, Text]] = {"worse": Text(zh="反而变差", en="made it worse"), "no_gain": Text(zh="没有收益", en="gained nothing")}


def contrasts(hits: Sequence[Version], store: Store, catalogue: Catalogue, candidates: Candidates) -> dict[str, tuple[Text, ...]]:
    """By content hash of each hit with a lever that helped: what the same lever did where it did not help.

    Only candidates are looked at. Worse outcomes come first.
    """
    levers = {hit.sha256: _helpful(hit.record) for hit in hits}
    wanted = list(dict.fromkeys(lever for own in levers.values() for lever in own))
    if not wanted:
        return {}
    known = candidates.corpus.postings([against_token(lever) for lever in wanted])
    against = {lever: tuple(_against(lever, known[against_token(lever)][0], store, candidates)) for lever in wanted}
    others = {
        own: [found for lever in named for found in against[lever] if found[0].sha256 != own][:SHOWN] for own, named in levers.items()
    }
    return {own: tuple(_said(found, catalogue) for found in cases) for own, cases in others.items()}


def _helpful(record: Record) -> tuple[str, ...]:
    """Levers that a case of the record reports to have helped."""
    outcomes = (outcome for case in record.cases for outcome in case.outcomes)
    return tuple(dict.fromkeys(outcome.strategy for outcome in outcomes if outcome.result == "improved"))


def _against(lever: str, places: Iterable[int], store: Store, candidates: Candidates) -> Iterator[tuple[Version, Outcome]]:
    """Outcomes of the lever that are no gain, worse ones first."""
    ids = sorted(candidates.corpus.ids[place] for place in places if candidates.langs[place])[-READ:]
    if not ids:
        return
    found = [
        (version, outcome)
        for version in store.versions(ids).values()
        for case in version.record.cases
        for outcome in case.outcomes
        if outcome.strategy == lever and outcome.result in AGAINST
    ]
    yield from sorted(found, key=lambda pair: pair[1].result != "worse")


def _said(found: tuple[Version, Outcome], catalogue: Catalogue) -> Text:
    version, outcome = found
    entry = catalogue.strategies.get(outcome.strategy)
    name = entry.name if entry is not None else Text(zh=outcome.strategy, en=outcome.strategy)
    verb, title = _VERBS[outcome.result], version.record.title
    simulated = Text(zh="（仿真）", en=" (simulated)") if outcome.provenance == "simulated" else Text()
    return Text(
        zh=f"相反的案例：同一措施（{name.zh}）在 {version.ref}《{title.zh}》中{verb.zh}{simulated.zh}",
        en=f"contrasting case: the same lever ({name.en}) {verb.en} in {version.ref} ({title.en}){simulated.en}",
    )
