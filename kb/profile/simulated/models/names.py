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
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models import decoder
from kb.profile.simulated.models.bert import BASE, LARGE, bert
from kb.profile.simulated.models.convolutional import YOLOV8N, YOLOV8S, resnet50, resnet50_training, yolov8
from kb.profile.simulated.models.diffusion import flux, sdxl
from kb.profile.simulated.models.sd3 import sd3
from kb.profile.simulated.options import Options

Build = Callable[[Options, Seat], Workload]


class ModelEntry(msgspec.Struct, frozen=True):
    """A model family of the product (``type``) and the function that builds the workload of one rank.

    ``dimensions`` are the ways it can be split over ranks.
    """

    type: str
    build: Build
    dimensions: tuple[str, ...] = ()


_DECODERS: Final[Mapping[str, decoder.DecoderShape]] = MappingProxyType(
    {
        "qwen3-0.6b": decoder.QWEN3_06B,
        "qwen2.5-7b": decoder.QWEN25_7B,
        "qwen3-14b": decoder.QWEN3_14B,
        "llama2-7b": decoder.LLAMA2_7B,
        "llama2-13b": decoder.LLAMA2_13B,
        "llama3-8b": decoder.LLAMA3_8B,
        "llama3-70b": decoder.LLAMA3_70B,
        "qwen3-30b-a3b": decoder.QWEN3_30B_A3B,
        "mixtral-8x7b": decoder.MIXTRAL_8X7B,
    }
)
_PHASES: Final = {"prefill": decoder.prefill, "decode": decoder.decode, "train": decoder.train}


def _decoders() -> dict[str, ModelEntry]:
    """Every decoder in every phase: NAME-prefill, NAME-decode, NAME-train."""
    return {
        f"{name}-{phase}": ModelEntry(
            "moe" if shape.experts else "llm",
            partial(build, shape),
            ("tensor", "pipeline", "data", "expert") if phase == "train" else ("tensor", "data", "expert"),
        )
        for name, shape in _DECODERS.items()
        for phase, build in _PHASES.items()
    }


MODELS: Final[Mapping[str, ModelEntry]] = MappingProxyType(
    {
        "sd3": ModelEntry("diffusion", sd3),
        "sdxl-unet": ModelEntry("diffusion", sdxl),
        "flux": ModelEntry("diffusion", flux),
        "bert-base": ModelEntry("encoder", partial(bert, BASE)),
        "bert-large": ModelEntry("encoder", partial(bert, LARGE)),
        "resnet50": ModelEntry("cnn", resnet50),
        "resnet50-train": ModelEntry("cnn", resnet50_training, ("data",)),
        "yolov8n": ModelEntry("detection", partial(yolov8, YOLOV8N)),
        "yolov8s": ModelEntry("detection", partial(yolov8, YOLOV8S)),
        **_decoders(),
    }
)


def model(name: str) -> ModelEntry:
    """The entry of that name. Raises NotFoundError naming the known models, the nearest first."""
    entry = MODELS.get(name)
    if entry is None:
        near = difflib.get_close_matches(name, MODELS, n=3, cutoff=0.4)
        ordered = [*near, *(known for known in MODELS if known not in near)]
        raise NotFoundError(f"no simulated model named {name!r}", allowed=", ".join(ordered), do="pick one of these models")
    return entry
