"""Shapes of a model's inputs: what the file says, and what the caller gives for symbolic dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kb.errors import UsageError
from kb.profile.simulated.graph_file import MOST_ELEMENTS
from kb.profile.simulated.onnx.document import Dimension, ValueInfo

Shape = tuple[int, ...]


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller says of a model's inputs. ``shapes`` by input name ("" = the first input), ``dims`` by symbol, ``values``
    (numbers of small inputs that steer the model) by input name."""

    shapes: Mapping[str, Shape] = {}
    dims: Mapping[str, int] = {}
    values: Mapping[str, tuple[int, ...]] = {}


NOTHING: Final = Given()
IMAGE_AXES: Final = 4
IMAGE_EDGE: Final = 224
"""The edge an example shows for an image whose size is open."""


def given_from(shape: Sequence[str], dims: Sequence[str], values: Sequence[str]) -> Given:
    """From command-line texts: ``1,3,224,224`` or ``x:1,3,224,224;y:1,2``, ``batch=1``, ``sr=16000``.

    Raises UsageError for text that is none of these.
    """
    shapes: dict[str, Shape] = {}
    for text in shape:
        for part in filter(None, (item.strip() for item in text.split(";"))):
            name, colon, sizes = part.rpartition(":")
            shapes[name.strip() if colon else ""] = _sizes(sizes, part)
    pairs = {name: sizes[0] for name, sizes in (_pair(text) for text in dims)}
    if any(size < 1 for size in pairs.values()):
        raise UsageError(f"impossible dimension in {', '.join(dims)}", allowed="NAME=SIZE with a size from 1 up")
    return Given(shapes=shapes, dims=pairs, values=dict(map(_pair, values)))


def _pair(text: str) -> tuple[str, Shape]:
    name, equals, numbers = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"cannot read {text!r}", allowed="NAME=NUMBER, as in batch=1")
    return name.strip(), _integers(numbers, text)


def _integers(text: str, whole: str) -> Shape:
    try:
        return tuple(int(part) for part in (re.split(r"[,x]", text) if text.strip() else ()))
    except ValueError as error:
        raise UsageError(f"cannot read {whole!r}", allowed="whole numbers split by commas, as in 1,3,224,224") from error


def _sizes(text: str, whole: str) -> Shape:
    sizes = _integers(text, whole)
    if any(size < 1 for size in sizes):
        raise UsageError(f"impossible input shape {whole!r}", allowed="sizes from 1 up")
    return sizes


class Binder:
    """Sizes of symbols while a model's inputs are bound one after the other."""

    def __init__(self, given: Given, inputs: Sequence[ValueInfo], source: str) -> None:
        self._given, self._source = given, source
        self._sizes = dict(given.dims)
        self._inputs = inputs
        self._used: set[str] = set()

    def shape(self, info: ValueInfo, place: int) -> Shape | None:
        """The shape of an input; None while a dimension is unknown. Raises UsageError for a contradiction."""
        key = info.name if info.name in self._given.shapes else "" if place == 0 and "" in self._given.shapes else None
        asked = self._given.shapes[key] if key is not None else None
        if key is not None:
            self._used.add(key)
        if asked is not None and info.shape is not None and len(asked) != len(info.shape):
            raise UsageError(
                f"{self._source}: input {info.name} has {len(info.shape)} axes ({_spelt(info.shape)}), not {len(asked)}",
                do=f"give {len(info.shape)} sizes",
            )
        if info.shape is None:
            return asked
        sizes = [self._size(info, number, asked[number] if asked else None) for number in range(len(info.shape))]
        known = tuple(size for size in sizes if size is not None)
        if len(known) < len(sizes):
            return None
        if _count(known) > MOST_ELEMENTS:
            raise UsageError(f"{self._source}: input {info.name} of {list(known)} is too large", allowed=f"up to {MOST_ELEMENTS} elements")
        return known

    def _size(self, info: ValueInfo, place: int, asked: int | None) -> int | None:
        declared = (info.shape or ())[place]
        if isinstance(declared, int):
            if declared == 0:
                raise UsageError(
                    f"{self._source}: input {info.name} has a dimension of 0 ({_spelt(info.shape or ())})", allowed="sizes from 1 up"
                )
            if asked is not None and asked != declared:
                raise UsageError(
                    f"{self._source}: axis {place} of input {info.name} is {declared} in the model, not {asked}",
                    allowed=_spelt(info.shape or ()),
                )
            return declared
        usable = bool(declared) and declared != "?"
        if asked is not None:
            if usable and self._sizes.setdefault(declared, asked) != asked:
                raise UsageError(f"{self._source}: {declared} is {self._sizes[declared]} and {asked} at the same time")
            return asked
        return self._sizes.get(declared) if usable else None

    def unused(self) -> None:
        """Raises UsageError for a shape given to an input, or a size to a dimension, that is not there."""
        strange = [name for name in self._given.shapes if name not in self._used]
        if strange:
            names = ", ".join(info.name for info in self._inputs) or "none"
            raise UsageError(f"{self._source}: no input {strange[0]!r}", allowed=f"inputs: {names}")
        symbols = {size for info in self._inputs for size in info.shape or () if isinstance(size, str) and size}
        unknown = sorted(set(self._given.dims) - symbols)
        if unknown:
            raise UsageError(f"{self._source}: no dimension {unknown[0]!r}", allowed=f"dimensions: {', '.join(sorted(symbols)) or 'none'}")

    def dimension(self, size: Dimension) -> int | None:
        """A declared dimension as far as it is known."""
        return size if isinstance(size, int) else self._sizes.get(size)

    def unbound(self, missing: Sequence[ValueInfo]) -> UsageError:
        """The error that lists every input without a shape, with what to write."""
        example = ";".join(f"{info.name}:{','.join(_examples(info.shape or ('', '')))}" for info in missing)
        return UsageError(
            f"{self._source}: sizes are missing: {'; '.join(f'{info.name} ({_spelt(info.shape)})' for info in missing)}",
            allowed="a size for every symbolic dimension",
            do=f'give them, for example --input_shape "{example}" or --dim NAME=SIZE',
        )


def _examples(shape: tuple[Dimension, ...]) -> list[str]:
    """Sizes to show: the model's own, 1 for a batch, and an image's edge where one stands."""
    image = len(shape) == IMAGE_AXES
    return [str(size) if isinstance(size, int) else str(IMAGE_EDGE) if image and place > 1 else "1" for place, size in enumerate(shape)]


def _spelt(shape: tuple[Dimension, ...] | None) -> str:
    return ", ".join(str(size) if size != "" else "?" for size in shape) if shape is not None else "no shape declared"


def _count(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
