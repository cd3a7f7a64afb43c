"""The catalogue folder as one value: recipes/catalogue/{causes,strategies,metrics,soc}/<id>.json and glossary.json."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kb.domain.catalogue import Catalogue, Cause, GlossaryRow, Metric, Strategy
from kb.domain.soc import Soc
from kb.errors import ContentError
from kb.library.crosslinks import check_catalogue
from kb.library.decoding import decode_json, read_content
from kb.library.location import CATALOGUE

GLOSSARY: Final = "glossary.json"
_Entry = TypeVar("_Entry", Cause, Strategy, Metric, Soc)


def load_catalogue(root: Path) -> Catalogue:
    """Read and check the catalogue under ``root`` (see ``kb.library.location``).

    Raises ContentError naming file, place and what is allowed: for content that does not fit the types of
    ``kb.domain.catalogue``, a file name that is not the id, an unknown or one-sided link, a taken alias, a missing
    translation, an unknown unit, or an empty folder.
    """
    catalogue = read_catalogue(root)
    check_catalogue(catalogue, source=str(root.joinpath(*CATALOGUE)))
    return catalogue


def read_catalogue(root: Path) -> Catalogue:
    """The catalogue as its files say, without the checks between files. Raises ContentError for what does not decode."""
    folder = root.joinpath(*CATALOGUE)
    return Catalogue(
        causes=_entries(folder / "causes", Cause),
        strategies=_entries(folder / "strategies", Strategy),
        metrics=_entries(folder / "metrics", Metric),
        socs=_entries(folder / "soc", Soc),
        glossary=_glossary(folder / GLOSSARY),
    )


def _entries(folder: Path, kind: type[_Entry]) -> dict[str, _Entry]:
    decoder = msgspec.json.Decoder(kind)
    entries = {entry.id: entry for entry in (_entry(folder / name, decoder) for name in _json_names(folder))}
    if not entries:
        raise ContentError(f"{folder}: no .json file", do="restore the folder from the repository or install again")
    return entries


def _json_names(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))  # noqa: PTH208  # half the time of Path.iterdir
    except OSError as error:
        raise ContentError(f"{folder}: {error.strerror}", do="restore the folder from the repository or install again") from error


def _entry(path: Path, decoder: msgspec.json.Decoder[_Entry]) -> _Entry:
    entry = decode_json(read_content(path), decoder, source=str(path))
    if entry.id != path.name.removesuffix(".json"):
        raise ContentError(f"{path}: $.id: {entry.id!r} is not the file's name", do="make the id and the file name equal")
    return entry


def _glossary(path: Path) -> tuple[GlossaryRow, ...]:
    return decode_json(read_content(path), msgspec.json.Decoder(tuple[GlossaryRow, ...]), source=str(path))
