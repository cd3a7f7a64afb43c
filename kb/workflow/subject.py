"""Job: the model a command is about: a model file, or a built-in model by its own name or a usual spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.errors import NotFoundError, UsageError
from kb.profile.simulated.graph_file import packed
from kb.profile.simulated.model_files import SUFFIXES, read_model
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.workflow.recent import recent
from kb.workflow.simulate import chip
from kb.workflow.workspace import Workspace

_STATES: Final = ("converted", "optimized", "optimised", "fused", "baseline", "tuned", "graph", "final")
_FILES: Final = (*SUFFIXES, ".air", ".pb")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """``remark`` says which model was taken; empty when it was named in full."""

    setup: Setup
    remark: Text = Text()


class Named(msgspec.Struct, frozen=True):
    """A model by name or path. ``remark`` says which one was taken when none was named."""

    model: str
    remark: Text = Text()


def named_or_last(model: str, rest: Sequence[str], place: Workspace) -> Named:
    """The model that was named; without a name, or with the articles' literal ``...``, the one used last, if it is still there.

    Raises UsageError for other words than ``...``, when none was used yet, and when that one is gone.
    """
    foreign = [word for word in rest if word not in ("...", "…")]
    if foreign:
        raise UsageError(f"unexpected argument {foreign[0]!r}", do="name the model with --model")
    if model:
        return Named(model)
    last = recent(place).model or ""
    if not last:
        raise UsageError("no model given and none was used before", allowed="--model MODEL", do="name a model")
    if Path(last).is_file():
        return Named(last, Text(f"未指定模型，使用上次的文件 {last}", f"no model named: taking the file used last, {last}"))
    if Path(last).suffix in _FILES or builtin(last) is None:
        raise UsageError(f"no model given, and the one used last is gone: {last}", allowed="--model MODEL", do="name a model")
    return Named(last, Text(f"未指定模型，使用上次的内置模型 {last}", f"no model named: taking the built-in model used last, {last}"))


def subject(text: str, catalogue: Catalogue, *, soc: str, seed: int, options: Options) -> Subject:
    """The setup for a model named ``text``: a file that is there, else a built-in model.

    Raises NotFoundError when nothing by that name is known, and what the readers of model files raise.
    """
    path = Path(text)
    if text not in MODELS and path.is_file():
        graph = read_model(path)
        own = msgspec.structs.replace(options, batch=graph.batch)
        return Subject(setup=Setup(model=graph.name, soc=chip(catalogue, soc), options=own, seed=seed, graph=packed(graph)))
    if text not in MODELS and (path.suffix in _FILES or len(path.parts) > 1):
        raise NotFoundError(
            f"no model file {text}",
            allowed="a file that is there, or a built-in model",
            do="kb simulate article DIR makes the files of the articles; built-in models are " + ", ".join(MODELS),
        )
    name = builtin(text)
    if name is None:
        near = difflib.get_close_matches(text, MODELS, n=3, cutoff=0.3)
        raise NotFoundError(
            f"no model {text!r} here",
            allowed=f"a model file, or a built-in model, nearest: {', '.join(near) or 'none'}",
            do="name one of " + ", ".join(MODELS),
        )
    setup = Setup(model=name, soc=chip(catalogue, soc), options=options, seed=seed, name=f"{name}-{Path(soc).stem}")
    remark = Text()
    if name != text:
        remark = Text(f"{text} 即内置模型 {name}", f"{text} is the built-in model {name}")
    return Subject(setup=setup, remark=remark)


def builtin(stem: str) -> str | None:
    """The built-in model a name means: its own, a usual spelling, or either with a state of work behind it; None for none."""
    words = re.sub(r"[\s_]+", "-", stem.strip().lower())
    known = _spellings()
    while words:
        if words in MODELS:
            return words
        if words in known:
            return known[words]
        head, found, state = words.rpartition("-")
        if not found or state not in _STATES:
            return None
        words = head
    return None


def _spellings() -> Mapping[str, str]:
    data = resources.files("kb.workflow").joinpath("model_spellings.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, str])
