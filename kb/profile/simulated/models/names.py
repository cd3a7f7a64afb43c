"""Which models can be simulated, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

import msgspec

from kb.errors import NotFoundError
from kb.profile.simulated.graph import Workload
from kb.profile.simulated.models.bert import BASE, LARGE, bert
from kb.profile.simulated.models.sd3 import sd3
from kb.profile.simulated.options import Options


class ModelEntry(msgspec.Struct, frozen=True):
    """A model family of the product (``type``) and the function that builds its workload."""

    type: str
    build: Callable[[Options], Workload]


MODELS: Final[Mapping[str, ModelEntry]] = MappingProxyType(
    {
        "sd3": ModelEntry("diffusion", sd3),
        "bert-base": ModelEntry("encoder", partial(bert, BASE)),
        "bert-large": ModelEntry("encoder", partial(bert, LARGE)),
    }
)


def model(name: str) -> ModelEntry:
    """The entry of that name. Raises NotFoundError naming the known models, the nearest first."""
    entry = MODELS.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, MODELS, n=1, cutoff=0.4)
        ordered = [*near, *(known for known in MODELS if known not in near)]
        raise NotFoundError(f"no simulated model named {name!r}", allowed=", ".join(ordered), do="pick one of these models")
    return entry
