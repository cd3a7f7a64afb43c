"""What a drill-down is about: an attention block, a kind of operator, an operator type or a module, as rows of the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from kb.diagnose.modules import module_names
from kb.diagnose.rules.unfused_elementwise import attention_rows
from kb.diagnose.thresholds import load_thresholds
from kb.diagnose.view import RankView
from kb.errors import NotFoundError
from kb.session.session import Array, Table

_ENDINGS: Final = ("_block", "_layer", "_module", "_ops", " block", " layer", " module")
_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "attention": ("fused_attention", "decode_attention"),
    "matmul": ("product", "quantised_product"),
    "conv": ("convolution",),
    "experts": ("moe",),
}
"""Everyday names of roles; any role of ``operator_classes.json`` serves as well."""
_SHOWN: Final = 12


def target_rows(view: RankView, kernels: Table, target: str) -> Array:
    """Compute kernels of the step that ``target`` names, ascending: all for an empty one, the attention with its unfused
    parts, a role, or operator types, kernels or modules whose name holds the words.

    Raises NotFoundError naming what there is.
    """
    rows = np.flatnonzero(~view.communication(kernels))
    wanted = target.strip().lower()
    if not wanted:
        return rows
    word = next((wanted.removesuffix(end) for end in _ENDINGS if wanted.endswith(end)), wanted)
    chosen = _by_role(view, kernels, word)
    if not chosen[rows].any():
        chosen = _by_name(view, kernels, rows, {wanted, word})
    if not chosen[rows].any():
        raise NotFoundError(f"nothing of this step is called {target}", allowed=_known(view, kernels, rows), do="name one of these")
    return rows[chosen[rows]]


def _by_role(view: RankView, kernels: Table, word: str) -> Array:
    chosen = np.zeros(len(kernels), np.bool_)
    for role in _ROLES.get(word, (word,)):
        if role in view.classes.types:
            chosen |= view.role(kernels, role)
    if word == "attention":
        chosen[attention_rows(view, load_thresholds())] = True
    return chosen


def _by_name(view: RankView, kernels: Table, rows: Array, words: set[str]) -> Array:
    def holds(text: str) -> bool:
        return any(word in text.lower() for word in words)

    texts = np.array([holds(text) for text in (*view.session.strings, "")])
    chosen = np.asarray(texts[kernels["op_type"]] | texts[kernels["name"]])
    if not chosen[rows].any():
        names = module_names(view, kernels, rows)
        chosen[rows] = [holds(str(name)) for name in names.tolist()]
    return chosen


def _known(view: RankView, kernels: Table, rows: Array) -> str:
    codes, counts = np.unique(kernels["op_type"][rows], return_counts=True)
    types = [view.session.text(code) for code in codes[np.argsort(-counts)].tolist() if code >= 0]
    return ", ".join(("attention", *(text for text in types[:_SHOWN] if text)))
