"""What no single catalogue file can show: links both ways, unique names, both languages, known units."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from kb.domain.catalogue import Catalogue, Cause, GlossaryRow, Strategy
from kb.domain.quantity import UNITS
from kb.domain.soc import Soc, Sourced
from kb.domain.text import Text
from kb.errors import ContentError

_ID = re.compile(r"[a-z][a-z0-9_]*\Z")


class Fault(NamedTuple):
    """One thing wrong: the file below the catalogue folder, the place in it, what, and what would be right."""

    file: str
    path: str
    wrong: str
    allowed: str


def check_catalogue(catalogue: Catalogue, *, source: str) -> None:
    """Raise ContentError for the first fault, naming the file under ``source`` and how many more there are."""
    found = list(faults(catalogue))
    if found:
        first = found[0]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ContentError(f"{source}/{first.file}: {first.path}: {first.wrong}{more}", allowed=first.allowed, do="correct this field")


def faults(catalogue: Catalogue) -> Iterator[Fault]:
    """Every fault of the catalogue, in the order of its parts."""
    causes, strategies = catalogue.causes, catalogue.strategies
    for cause in causes.values():
        yield from _cause_faults(cause, strategies)
    for strategy in strategies.values():
        yield from _strategy_faults(strategy, causes, strategies)
    for metric in catalogue.metrics.values():
        file = f"metrics/{metric.id}.json"
        yield from _id_faults(file, metric.id)
        yield from _text_faults(file, {"name": metric.name}, {"definition": metric.definition})
        yield from _unit_faults(file, "$.unit", metric.unit)
    for soc in catalogue.socs.values():
        yield from _soc_faults(soc)
    for folder, entries in (("causes", causes), ("strategies", strategies), ("soc", catalogue.socs)):
        yield from _alias_faults(folder, entries.values())
    yield from _glossary_faults(catalogue.glossary)


def _cause_faults(cause: Cause, strategies: Mapping[str, Strategy]) -> Iterator[Fault]:
    file = f"causes/{cause.id}.json"
    yield from _id_faults(file, cause.id)
    yield from _text_faults(file, {"name": cause.name, "definition": cause.definition, "evidence": cause.evidence}, {})
    yield from _link_faults(file, "$.strategies", cause.strategies, strategies)
    for at, name in enumerate(cause.strategies):
        if name in strategies and cause.id not in strategies[name].addresses:
            yield Fault(file, f"$.strategies[{at}]", f"{name} does not address {cause.id}", f"links both ways: see strategies/{name}.json")


def _strategy_faults(strategy: Strategy, causes: Mapping[str, Cause], strategies: Mapping[str, Strategy]) -> Iterator[Fault]:
    file = f"strategies/{strategy.id}.json"
    yield from _id_faults(file, strategy.id)
    yield from _text_faults(
        file,
        {"name": strategy.name, "definition": strategy.definition},
        {"verify": strategy.verify, "roll_back": strategy.roll_back},
    )
    yield from _link_faults(file, "$.addresses", strategy.addresses, causes)
    yield from _link_faults(file, "$.conflicts", strategy.conflicts, strategies)
    for at, name in enumerate(strategy.addresses):
        if name in causes and strategy.id not in causes[name].strategies:
            yield Fault(file, f"$.addresses[{at}]", f"{name} does not list {strategy.id}", f"links both ways: see causes/{name}.json")
    for at, name in enumerate(strategy.conflicts):
        if name in strategies and (name == strategy.id or strategy.id not in strategies[name].conflicts):
            wrong = f"{name} does not list {strategy.id} as a conflict"
            yield Fault(file, f"$.conflicts[{at}]", wrong, f"links both ways: see strategies/{name}.json")


def _link_faults(file: str, path: str, names: tuple[str, ...], known: Collection[str]) -> Iterator[Fault]:
    if not names and path != "$.conflicts":
        yield Fault(file, path, "no link", "at least one id of the catalogue")
    for at, name in enumerate(names):
        if name not in known:
            yield Fault(file, f"{path}[{at}]", f"{name!r} is not in the catalogue", ", ".join(sorted(known)))
        elif name in names[:at]:
            yield Fault(file, f"{path}[{at}]", f"{name!r} is listed twice", "each id once")


def _id_faults(file: str, name: str) -> Iterator[Fault]:
    if _ID.match(name) is None:
        yield Fault(file, "$.id", f"{name!r} is not an id", "a-z, 0-9 and _, a letter first")


def _text_faults(file: str, needed: Mapping[str, Text], optional: Mapping[str, Text]) -> Iterator[Fault]:
    for name, text in {**needed, **optional}.items():
        for lang, mine, other in (("zh", text.zh, text.en), ("en", text.en, text.zh)):
            if not mine.strip() and (name in needed or other.strip()):
                yield Fault(file, f"$.{name}.{lang}", "empty", "a text in both languages")


def _unit_faults(file: str, path: str, unit: str) -> Iterator[Fault]:
    if unit not in UNITS:
        yield Fault(file, path, f"unknown unit {unit!r}", ", ".join(UNITS))


def _soc_faults(soc: Soc) -> Iterator[Fault]:
    for name in soc.__struct_fields__:
        value = getattr(soc, name)
        if isinstance(value, Sourced):
            yield from _unit_faults(f"soc/{soc.id}.json", f"$.{name}.unit", value.unit)


def _alias_faults(folder: str, entries: Iterable[Cause | Strategy | Soc]) -> Iterator[Fault]:
    listed = list(entries)
    owners = {entry.id.casefold(): entry.id for entry in listed}
    for entry in listed:
        for at, alias in enumerate(entry.aliases):
            owner = owners.setdefault(alias.casefold(), entry.id)
            if owner != entry.id:
                yield Fault(f"{folder}/{entry.id}.json", f"$.aliases[{at}]", f"{alias!r} is taken by {owner}", "a name nobody else has")


def _glossary_faults(rows: tuple[GlossaryRow, ...]) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, row in enumerate(rows):
        path = f"$[{at}]"
        if row.id in seen or _ID.match(row.id) is None:
            yield Fault("glossary.json", f"{path}.id", f"{row.id!r} is taken or not an id", "each id once; a-z, 0-9 and _")
        seen.add(row.id)
        for lang, terms in (("zh", row.zh), ("en", row.en)):
            if not terms or not all(term.strip() for term in terms) or len(set(terms)) < len(terms):
                yield Fault("glossary.json", f"{path}.{lang}", f"row {row.id} lacks a term or repeats one", "one or more different terms")
