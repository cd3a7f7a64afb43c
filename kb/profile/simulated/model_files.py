"""Any model file as a graph: ONNX, .om, or the JSON form, told apart by their first bytes."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kb.errors import MalformedInputError, NotFoundError, UsageError
from kb.files import open_regular
from kb.profile.simulated.graph_file import GraphFile, graph_from
from kb.profile.simulated.om.layout import MAGIC
from kb.profile.simulated.om.reading import read_om
from kb.profile.simulated.onnx.binding import Given
from kb.profile.simulated.onnx.lowering import graph_of_onnx
from kb.profile.simulated.wire import Data

SUFFIXES: Final = (".onnx", ".om", ".json")
_READ_WHOLE: Final = 16 << 20
"""B of a file that is read at once; of larger ones only the parts that are no weights are touched."""
LARGEST_JSON: Final = 256 << 20


def read_model(
    path: Path,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, tuple[int, ...]] | None = None,
) -> GraphFile:
    """The graph of a model file. ``shapes`` by input name ("" = the first), ``dims`` by symbol, ``values`` of steering inputs.

    Weights are never read. Raises NotFoundError without the file, MalformedInputError or ContentError for a damaged or
    unsupported one, UsageError for missing sizes.
    """
    given = Given(shapes=shapes or {}, dims=dims or {}, values=values or {})
    if not path.exists():
        raise NotFoundError(
            f"no model file {path}",
            allowed="an .onnx, .om or .json graph",
            do="check the path; kb simulate article DIR makes the files the articles name",
        )
    try:
        with open_regular(path) as handle:
            size = path.stat().st_size
            if size == 0:
                raise MalformedInputError(f"{path} is empty", do="export the model again")
            if size <= _READ_WHOLE:
                return _parsed(handle.read(), path, given)
            with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parsed(data, path, given)
    except OSError as error:
        raise MalformedInputError(f"{path}: cannot be read: {error.strerror}", do="check the file and its permissions") from error


def _parsed(data: Data, path: Path, given: Given) -> GraphFile:
    begin = bytes(data[:64])
    if begin[:4] == MAGIC:
        _refuse(given, path, "an .om file has fixed shapes")
        return read_om(data, str(path)).graph
    if begin.lstrip()[:1] == b"{" or path.suffix == ".json":
        _refuse(given, path, "a JSON graph has fixed shapes")
        if len(data) > LARGEST_JSON:
            raise MalformedInputError(f"{path}: larger than {LARGEST_JSON} bytes")
        return graph_from(bytes(data[:]), str(path))
    if path.suffix == ".om":
        raise MalformedInputError(
            f"{path} does not begin with the magic of an .om file", allowed="IMOD and a version", do="convert the model again"
        )
    if path.suffix == ".onnx":
        return graph_of_onnx(data, str(path), given)
    try:
        return graph_of_onnx(data, str(path), given)
    except MalformedInputError as error:
        raise MalformedInputError(
            f"{path} is no model file this version reads", allowed="an ONNX, .om or JSON graph", do="export the model as .onnx"
        ) from error


def _refuse(given: Given, path: Path, why: str) -> None:
    if given.dims or given.values or given.shapes.keys() - {""}:
        raise UsageError(f"{path}: {why}", do="leave out --dim and --value, or convert the model for other shapes")
