"""``profiler_info_<rank>.json`` and ``profiler_metadata.json``: rank, level, versions, parallel layout, environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import MalformedInputError
from kb.profile.ascend.document import read_json
from kb.session.meta import Group, Parallel

INFO_PATTERN = "profiler_info*.json"
METADATA = "profiler_metadata.json"
_PIPELINE = "pp"


class _Experimental(msgspec.Struct, frozen=True, rename={"level": "_profiler_level", "metrics": "_aic_metrics"}):
    level: str | None = None
    metrics: str | None = None


class _Config(msgspec.Struct, frozen=True):
    experimental_config: _Experimental = _Experimental()


class _Info(msgspec.Struct, frozen=True):
    config: _Config = _Config()
    rank_id: int | str | None = None
    torch_npu_version: str | None = None
    cann_version: str | None = None


class _Distributed(msgspec.Struct, frozen=True):
    tensor_model_parallel_size: int | None = None
    pipeline_model_parallel_size: int | None = None
    data_parallel_size: int | None = None
    context_parallel_size: int | None = None
    expert_model_parallel_size: int | None = None
    virtual_pipeline_model_parallel_size: int | None = None
    rank: int | None = None
    world_size: int | None = None


class _GroupInfo(msgspec.Struct, frozen=True):
    group_name: str = ""
    group_rank: int | None = None
    global_ranks: tuple[int, ...] = ()


class _Metadata(msgspec.Struct, frozen=True, rename={"environment": "ENV_VARIABLES"}):
    environment: dict[str, str | int | float | bool | None] = {}
    distributed_args: _Distributed = _Distributed()
    parallel_group_info: dict[str, _GroupInfo] = {}


class Info(msgspec.Struct, frozen=True):
    """What ``profiler_info`` states; None where it is silent. ``rank`` falls back to the number in the file name."""

    rank: int | None = None
    level: str | None = None
    metrics: str | None = None
    software: Mapping[str, str] = {}


class Metadata(msgspec.Struct, frozen=True):
    """What ``profiler_metadata`` states; ``stage`` is the rank's place in its pipeline group."""

    rank: int | None = None
    world_size: int | None = None
    stage: int | None = None
    parallel: Parallel = Parallel()
    environment: Mapping[str, str] = {}


def read_info(path: Path, label: str) -> Info:
    """Read ``profiler_info``. Raises MalformedInputError."""
    info, _ = read_json(path, label, _Info)
    versions = {"torch_npu": info.torch_npu_version, "cann": info.cann_version}
    experimental = info.config.experimental_config
    return Info(_rank(info.rank_id, path, label), experimental.level, experimental.metrics, {k: v for k, v in versions.items() if v})


def read_metadata(path: Path, label: str) -> Metadata:
    """Read ``profiler_metadata``. Raises MalformedInputError."""
    metadata, _ = read_json(path, label, _Metadata)
    return _stated(metadata)


def metadata_of_database(values: Mapping[str, str]) -> Metadata:
    """What META_DATA of a database states: the same documents, one JSON text a name. Unreadable ones are left out."""
    document = b"{" + b",".join(f'"{name}":{values[name]}'.encode() for name in _DOCUMENTS if _is_object(values.get(name))) + b"}"
    try:
        return _stated(msgspec.json.decode(document, type=_Metadata))
    except (msgspec.MsgspecError, RecursionError):
        return Metadata()


MOST_RANKS: Final = 2**31
"""Of one job; ranks are kept as 32-bit numbers."""
_DOCUMENTS: Final = ("ENV_VARIABLES", "distributed_args", "parallel_group_info")


def _is_object(text: str | None) -> bool:
    try:
        return text is not None and isinstance(msgspec.json.decode(text), dict)
    except (msgspec.MsgspecError, RecursionError):
        return False


def _stated(metadata: _Metadata) -> Metadata:
    sizes = metadata.distributed_args
    groups = tuple(
        Group(name=name, dimension=group.group_name, ranks=group.global_ranks) for name, group in metadata.parallel_group_info.items()
    )
    parallel = Parallel(
        tensor=sizes.tensor_model_parallel_size,
        pipeline=sizes.pipeline_model_parallel_size,
        data=sizes.data_parallel_size,
        context=sizes.context_parallel_size,
        expert=sizes.expert_model_parallel_size,
        groups=groups,
        virtual=sizes.virtual_pipeline_model_parallel_size,
    )
    stage = next((group.group_rank for group in metadata.parallel_group_info.values() if group.group_name == _PIPELINE), None)
    environment = {name: "" if value is None else str(value) for name, value in metadata.environment.items()}
    rank = sizes.rank if sizes.rank is not None and 0 <= sizes.rank < MOST_RANKS else None
    world = sizes.world_size if sizes.world_size is not None and 0 < sizes.world_size <= MOST_RANKS else None
    return Metadata(rank, world, stage, parallel, environment)


def rank_in_name(name: str) -> int | None:
    """The rank in a folder or file name such as ``rank_3_ascend_pt`` or ``profiler_info_3.json``."""
    match = re.search(r"(?:rank|info)_?(\d{1,6})(?!\d)", name, re.ASCII)
    return int(match[1]) if match else None


def _rank(value: int | str | None, path: Path, label: str) -> int | None:
    if value is None:
        return rank_in_name(path.name)
    text = str(value)
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise MalformedInputError(f"{label}:1: rank_id {text[:60]!r} is not a rank", allowed="an integer")
    # -1 is what a single-card run without a process group writes.
    return int(text) if int(text) >= 0 else None
