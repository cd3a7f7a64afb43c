"""Job: the gallery: records with what was said about them, filtered and sorted, and how good a contributor's records are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from kb.domain.case import RecordKind
from kb.domain.event import Event
from kb.domain.gallery import Contributor, GalleryEntry, GalleryPage
from kb.domain.protocols import Store, Summary
from kb.domain.provenance import Provenance, rank_of
from kb.domain.version import Version, Visibility
from kb.workflow.casebook import Casebook
from kb.workflow.impact import impact_of

SortBy = Literal["use", "verification", "impact", "newest", "name"]
VISIBLE: Final[Mapping[Visibility, tuple[Visibility, ...]]] = {
    "public": ("public",),
    "team": ("public", "team"),
    "private": ("public", "team", "private"),
}
"""Whom a gallery is for to the visibilities it may show; what shipped with the program is public."""
BAR: Final = 0.5
"""Share of a contributor's records that must be verified, reproduced or reused for one step of the ladder."""
LEAST: Final = 3
"""Records a contributor needs before any step is given."""


Impact = Callable[[Version], float | None]
"""A version's Tuning Impact Score (0..100), None where its outcomes allow none."""


def no_impact(version: Version) -> float | None:
    """No score for any version."""
    del version
    return None


def scored(casebook: Casebook) -> Impact:
    """Scores from the outcomes and attached sessions of the casebook's records."""
    return lambda version: impact_of(version, casebook.artefacts)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to show; empty = all. ``words`` must all occur in the record's texts, in either language."""

    words: str = ""
    kinds: tuple[RecordKind, ...] = ()
    cause: str = ""
    model_type: str = ""
    family: str = ""
    min_provenance: Provenance = "claimed"
    audience: Visibility = "private"
    sort: SortBy = "use"


def gallery(store: Store, wanted: Wanted, impact: Impact = no_impact) -> GalleryPage:
    """The newest visible version of every record that fits, sorted. ``impact`` gives a version's Tuning Impact Score."""
    entries = [entry for entry in entries_of(store, impact) if _fits(entry, wanted)]
    ordered = sorted(entries, key=_key(wanted.sort))
    return GalleryPage(entries=tuple(ordered), total=len(ordered))


def entries_of(store: Store, impact: Impact) -> tuple[GalleryEntry, ...]:
    """Every visible record with its events."""
    summaries = store.summaries()
    versions = store.versions([item.id for item in summaries])
    said = _by_slug(store)
    return tuple(_entry(item, versions[item.id], said.get((versions[item.id].origin, item.ref.slug), ()), impact) for item in summaries)


def ladder(entries: Iterable[GalleryEntry]) -> tuple[Contributor, ...]:
    """Contributors of own records by steps, then by records; the shipped library is nobody's."""
    by_author: dict[str, list[GalleryEntry]] = defaultdict(list)
    for entry in entries:
        if entry.origin != "library" and entry.author:
            by_author[entry.author].append(entry)
    found = (_contributor(author, items) for author, items in by_author.items())
    return tuple(sorted(found, key=lambda item: (-item.steps, -item.records, item.author)))


def _by_slug(store: Store) -> dict[tuple[str, str], list[Event]]:
    """Events by (origin, slug): publications say which hash belongs where, the others name the hash."""
    events = store.events()
    places: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for event in events:
        if event.kind == "published":
            places[event.subject].add((str(event.detail["origin"]), str(event.detail["slug"])))
    said: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        for place in places.get(event.subject, ()):
            if event.detail.get("origin") in (None, place[0]):
                said[place].append(event)
    return said


def _entry(item: Summary, version: Version, said: Sequence[Event], impact: Impact) -> GalleryEntry:
    record, kinds = version.record, Counter(event.kind for event in said)
    others = [event for event in said if event.author != version.author]
    contexts = [case.context for case in record.cases]
    outcomes = [outcome for case in record.cases for outcome in case.outcomes]
    checked = [check.cause for check in record.template.checks] if record.template is not None else []
    return GalleryEntry(
        slug=record.slug,
        n=version.n,
        origin=version.origin,
        kind=record.kind,
        title=record.title,
        provenance=item.provenance,
        summary=record.summary,
        tags=record.tags,
        causes=_distinct((*(case.cause for case in record.cases), *checked)),
        strategies=_distinct(outcome.strategy for outcome in outcomes),
        families=_distinct(context.soc_family for context in contexts if context.soc_family != "unknown"),
        model_types=_distinct((*(context.model_type for context in contexts), *(record.template.model_types if record.template else ()))),
        author=version.author,
        created_ns=version.created_ns,
        visibility="public" if version.origin == "library" else version.visibility,
        uses=kinds["used"],
        worked=sum(event.kind == "used" and event.detail.get("result") == "improved" for event in others),
        reproductions=sum(event.kind == "reproduced" for event in others),
        verified=_verified(version, said),
        impact=impact(version),
        status=item.status,
    )


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _verified(version: Version, said: Sequence[Event]) -> bool:
    """Whether the newest word on this version's evidence is that it holds."""
    deciding = [event.kind for event in said if event.subject == version.sha256 and event.kind in ("verified", "verification_withdrawn")]
    return bool(deciding) and deciding[-1] == "verified"


def _fits(entry: GalleryEntry, wanted: Wanted) -> bool:
    if wanted.kinds and entry.kind not in wanted.kinds:
        return False
    if rank_of(entry.provenance) < rank_of(wanted.min_provenance) or entry.visibility not in VISIBLE[wanted.audience]:
        return False
    asked = ((wanted.cause, entry.causes), (wanted.model_type, entry.model_types), (wanted.family, entry.families))
    if any(value and value not in held for value, held in asked):
        return False
    text = haystack(entry)
    return all(word in text for word in wanted.words.casefold().split())


def haystack(entry: GalleryEntry) -> str:
    """The text a reader's words are looked for in, folded."""
    parts = (entry.slug, entry.title.zh, entry.title.en, entry.summary.zh, entry.summary.en, *entry.tags, *entry.causes, *entry.strategies)
    return " ".join(parts).casefold()


def _key(sort: SortBy) -> Callable[[GalleryEntry], tuple[float, float, str]]:
    keys: Mapping[SortBy, Callable[[GalleryEntry], tuple[float, float, str]]] = {
        "use": lambda entry: (-entry.worked, -entry.uses, entry.slug),
        "verification": lambda entry: (-rank_of(entry.provenance) - 0.5 * entry.verified, -entry.reproductions, entry.slug),
        "impact": lambda entry: (-(entry.impact if entry.impact is not None else -1.0), 0.0, entry.slug),
        "newest": lambda entry: (-entry.created_ns, 0.0, entry.slug),
        "name": lambda entry: (0.0, 0.0, entry.slug),
    }
    return keys[sort]


def _contributor(author: str, items: Sequence[GalleryEntry]) -> Contributor:
    count = len(items)
    parts = (sum(item.verified for item in items), sum(item.reproductions > 0 for item in items), sum(item.worked > 0 for item in items))
    steps = sum(part >= BAR * count for part in parts) if count >= LEAST else 0
    return Contributor(author=author, records=count, verified=parts[0], reproduced=parts[1], reused=parts[2], steps=steps)
