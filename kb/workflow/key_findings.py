"""Job: the causes an author names in words of their own, and whether the diagnosis bears them out."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.diagnosis import Diagnosis
from kb.domain.text import Text
from kb.errors import NotFoundError
from kb.report.report import Report


class KeyFindings(msgspec.Struct, frozen=True):
    """``found`` are causes this diagnosis names, ``missing`` causes it does not, ``unknown`` words that name no cause."""

    found: tuple[CauseId, ...] = ()
    missing: tuple[CauseId, ...] = ()
    unknown: tuple[str, ...] = ()


def split_names(text: str) -> tuple[str, ...]:
    """The names in ``a, b,c``."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def key_findings(names: Iterable[str], diagnosis: Diagnosis, catalogue: Catalogue) -> KeyFindings:
    """Sort names (ids or aliases of causes) by what the diagnosis says about them."""
    seen = {finding.cause for finding in diagnosis.all_findings()}
    known = {name: _cause(name, catalogue) for name in names}
    causes = tuple(dict.fromkeys(cause for cause in known.values() if cause is not None))
    return KeyFindings(
        found=tuple(cause for cause in causes if cause in seen),
        missing=tuple(cause for cause in causes if cause not in seen),
        unknown=tuple(name for name, cause in known.items() if cause is None),
    )


def _cause(name: str, catalogue: Catalogue) -> CauseId | None:
    try:
        return catalogue.cause(name).id
    except NotFoundError:
        return None


def doubts(keys: KeyFindings, catalogue: Catalogue) -> tuple[Text, ...]:
    """What the author named and the capture does not show; nothing is left out of the report because of it."""
    named = tuple(
        Text(
            zh=f"{catalogue.cause(cause).name.zh}（{cause}）：本次采集中没有发现",
            en=f"{catalogue.cause(cause).name.en} ({cause}): this capture does not show it",
        )
        for cause in keys.missing
    )
    unknown = (
        Text(zh=f"{name}：不是目录中的原因，未作核查", en=f"{name}: no cause of the catalogue, not checked") for name in keys.unknown
    )
    return (*named, *unknown)


def with_doubts(report: Report, keys: KeyFindings, catalogue: Catalogue) -> Report:
    """The report with the doubts among its pitfalls, where a reader meets them."""
    return replace(report, pitfalls=(*doubts(keys, catalogue), *report.pitfalls))
