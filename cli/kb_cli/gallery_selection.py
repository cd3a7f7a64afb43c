"""Which records of the gallery, as options of a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args

from kb.domain.case import RecordKind
from kb.domain.catalogue import Catalogue
from kb.domain.provenance import TIERS
from kb.domain.version import Visibility
from kb.recommend.limits import read_family
from kb.workflow.gallery import SortBy, Wanted
from kb_cli.command import Common, Flag

_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
_SORTS: tuple[SortBy, ...] = get_args(SortBy)
AUDIENCES: tuple[Visibility, ...] = get_args(Visibility)


@dataclass(frozen=True, kw_only=True)
class Selection(Common):
    """Which records, in which order."""

    kind: Annotated[str, Flag("--kind", "Only this kind.", choices=_KINDS)] = ""
    cause: Annotated[str, Flag("--cause", "Only records of this cause.", "CAUSE")] = ""
    model_type: Annotated[str, Flag("--model-type", "Only records about this type of model.", "TYPE")] = ""
    soc: Annotated[str, Flag("--soc", "Only records about this chip family (A2, A3, 310P, ..).", "FAMILY")] = ""
    provenance: Annotated[str, Flag("--provenance", "At least this tier.", choices=TIERS)] = "claimed"
    sort: Annotated[str, Flag("--sort", "Order.", choices=_SORTS)] = "use"

    def wanted(self, words: str, audience: str, catalogue: Catalogue) -> Wanted:
        """The same in the domain's words; ``words`` must all occur, nothing less visible than ``audience`` is shown.

        Raises NotFoundError for an unknown cause or chip.
        """
        return Wanted(
            words=words,
            kinds=tuple(kind for kind in _KINDS if kind == self.kind),
            cause=catalogue.cause(self.cause).id if self.cause else "",
            model_type=self.model_type,
            family=read_family(self.soc, catalogue) or "",
            min_provenance=next(tier for tier in TIERS if tier == self.provenance),
            audience=next(value for value in AUDIENCES if value == audience),
            sort=next(sort for sort in _SORTS if sort == self.sort),
        )
