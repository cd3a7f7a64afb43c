"""Finding the shipped content: bundle, checkout, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import ExitCode, LibraryNotFoundError
from kb.library.location import FOLDERS, find_library, library_root


def _library(root: Path) -> Path:
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    return root


def test_the_checkout_around_the_package_is_used_when_there_is_no_bundle(tmp_path: Path) -> None:
    (_library(tmp_path) / "kb").mkdir()
    assert find_library(tmp_path / "kb") == tmp_path


def test_the_bundle_wins_over_the_checkout(tmp_path: Path) -> None:
    bundle = _library(_library(tmp_path) / "kb" / "_library")
    assert find_library(tmp_path / "kb") == bundle


def test_an_installation_without_content_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    with pytest.raises(LibraryNotFoundError) as caught:
        find_library(tmp_path / "kb")
    assert all(folder in caught.value.what for folder in FOLDERS)
    assert caught.value.exit_code is ExitCode.CANNOT
    assert caught.value.do


def test_an_incomplete_bundle_does_not_fall_through_to_the_checkout(tmp_path: Path) -> None:
    (_library(tmp_path) / "kb" / "_library" / "recipes").mkdir(parents=True)
    with pytest.raises(LibraryNotFoundError, match="cards, templates missing"):
        find_library(tmp_path / "kb")


def test_this_checkout_has_a_library(checkout: Path) -> None:
    assert library_root() == checkout
