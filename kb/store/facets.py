"""The exact filter values of a record."""

from __future__ import annotations

from typing import Final, Literal

from kb.domain.record import Record

FacetName = Literal["cause", "model_type", "family"]
ANY_MODEL_TYPE: Final = ""
"""Value of a template without model types: it is for every model, so it passes every model-type filter."""


def facets(record: Record) -> tuple[tuple[FacetName, str], ...]:
    """Distinct (name, value) pairs, sorted.

    Causes come from cases, their contexts and template checks. A record without cases says nothing about
    chips: its family is ``unknown``, as that of a case which does not name one.
    """
    pairs: set[tuple[FacetName, str]] = set()
    for case in record.cases:
        pairs.add(("cause", case.cause))
        pairs.update(("cause", cause) for cause in case.context.causes)
        pairs.add(("family", case.context.soc_family))
        if case.context.model_type:
            pairs.add(("model_type", case.context.model_type))
    if not record.cases:
        pairs.add(("family", "unknown"))
    if record.template is not None:
        pairs.update(("cause", check.cause) for check in record.template.checks)
        pairs.update(("model_type", name) for name in record.template.model_types or (ANY_MODEL_TYPE,))
    return tuple(sorted(pairs))
