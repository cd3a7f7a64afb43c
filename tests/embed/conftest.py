"""One converted model for the whole folder: conversion takes a second and a half."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.embed.use import UseEmbedder


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the converted model."""
    folder = tmp_path_factory.mktemp("model")
    UseEmbedder(folder)
    return folder


@pytest.fixture(scope="session")
def use(model_cache: Path) -> UseEmbedder:
    """The default embedder, from the converted file."""
    return UseEmbedder(model_cache)
