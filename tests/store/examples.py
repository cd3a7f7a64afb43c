"""Small records and their search data."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from kb.domain.case import Case, CaseContext, RecordKind
from kb.domain.protocols import Prepared
from kb.domain.provenance import Provenance
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.domain.template import Template
from kb.domain.text import Text

MODEL = "toy@1"


def record(slug: str = "sd3-attention", text: str = "first", *, kind: RecordKind = "recipe", provenance: Provenance = "claimed",
           cases: Sequence[Case] = (), template: Template | None = None) -> Record:  # fmt: skip
    """A record whose body is ``text``."""
    return Record(
        kind=kind,
        slug=slug,
        title=Text(zh="注意力没有融合", en="attention not fused"),
        summary=Text(zh="摘要", en="summary"),
        body=Text(zh=f"正文 {text}", en=text),
        provenance=provenance,
        cases=tuple(cases),
        template=template,
    )


def case(cause: str = "unfused_attention", family: SocFamily = "unknown", model_type: str | None = None) -> Case:
    """A case of one cause."""
    return Case(cause=cause, context=CaseContext(soc_family=family, model_type=model_type))


def prepared(
    tokens: Mapping[str, int] | None = None, vectors: Mapping[str, Sequence[float]] | None = None, *, model_id: str = MODEL
) -> Prepared:
    """Search data; one vector named ``title`` unless given."""
    rows = {"title": (1.0, 0.0)} if vectors is None else vectors
    flat = [value for row in rows.values() for value in row]
    return Prepared(
        tokens={"attention": 2, "融合": 1} if tokens is None else tokens,
        vectors=struct.pack(f"<{len(flat)}f", *flat),
        fields=tuple(rows),
        dim=len(next(iter(rows.values()))) if rows else 0,
        model_id=model_id,
        language_share=0.5,
    )
