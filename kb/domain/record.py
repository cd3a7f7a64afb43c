"""What is published: recipes, cards, templates and cases."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kb.domain.case import Case, RecordKind
from kb.domain.provenance import Provenance
from kb.domain.template import Template
from kb.domain.text import Text
from kb.errors import UsageError

RECORD_SCHEMA: Final = 1
SIMULATED_TAG: Final = "simulated"
"""Put on a record that states simulated figures but carries no sessions to recompute them from, so that the lower tier hides nothing."""
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,94}[a-z0-9])?\Z")


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a statement comes from. ``url`` is http(s) or relative."""

    title: str
    url: str = ""
    licence: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of one version: everything the hash covers.

    ``body`` is Markdown in both languages, without raw HTML. ``cases`` is what retrieval and
    recommendation read. ``parents`` are content hashes. ``sessions`` are hashes of attached ``.prof`` files.
    """

    kind: RecordKind
    slug: str
    title: Text
    summary: Text
    body: Text
    provenance: Provenance = "claimed"
    tags: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    template: Template | None = None
    pitfalls: tuple[Text, ...] = ()
    sources: tuple[Source, ...] = ()
    links: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    licence: str = "Apache-2.0"
    schema: int = RECORD_SCHEMA

    @property
    def simulated(self) -> bool:
        """Whether its figures come from the simulated backend, recomputed or only stated to."""
        return self.provenance == "simulated" or SIMULATED_TAG in self.tags


def checked_slug(slug: str) -> str:
    """``slug`` itself, or UsageError when it is not lower-case words joined by hyphens."""
    if _SLUG.match(slug) is None:
        raise UsageError(
            f"{slug!r} is not a slug", allowed="a-z, 0-9 and inner hyphens, 1 to 96 characters", do="for example sd3-attention"
        )
    return slug
