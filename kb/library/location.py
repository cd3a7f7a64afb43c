"""Where the shipped content lies: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kb.errors import LibraryNotFoundError

FOLDERS: Final = ("recipes", "cards", "templates")
BUNDLE: Final = "_library"
CATALOGUE: Final = ("recipes", "catalogue")


def library_root() -> Path:
    """The folder that holds recipes/, cards/ and templates/. Raises LibraryNotFoundError when there is none."""
    return find_library(Path(__file__).resolve().parents[1])


def find_library(package: Path) -> Path:
    """The content of the package at ``package``: its ``_library`` if that exists, else the folder around it.

    A bundle that lacks a folder is an error and never falls through to the checkout.
    """
    bundle = package / BUNDLE
    return checked_library(bundle if bundle.is_dir() else package.parent)


def checked_library(root: Path) -> Path:
    """``root`` itself. Raises LibraryNotFoundError naming the content folders it lacks."""
    missing = [name for name in FOLDERS if not (root / name).is_dir()]
    if missing:
        raise LibraryNotFoundError(
            f"{root} holds no content library: {', '.join(missing)} missing",
            allowed=f"a folder with {', '.join(FOLDERS)}",
            do="install diagnosis-recipes again, or run from a complete checkout",
        )
    return root
