"""Damaged captures of every format end in our errors, naming the file, or in sessions that still obey the schema."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from profiles.ascend_writer import OUTPUT, write_rank
from profiles.mutations import corpus, mutations_of

from kb.errors import KbError, MalformedInputError, UnusableCaptureError
from kb.profile.sources import load
from kb.session.codec import to_bytes

BATCHES = 6
PER_BATCH = 500
LONGEST_SECONDS = 20
ARCHIVES = ("one.zip", "one.tar.gz")


def refusal(root: Path) -> UnusableCaptureError | None:
    """Our error, or None for sessions that obey the schema and survive their file."""
    try:
        for session in load(root):
            assert session.self_check() == []
            to_bytes(session)
    except UnusableCaptureError as error:
        return error
    return None


def names_file_and_row(error: KbError, name: str) -> bool:
    place = error.what.find(f"{name}:")
    return place >= 0 and error.what[place + len(name) + 1].isdigit()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damage_ends_in_our_errors(tmp_path: Path, batch: int) -> None:
    captures = corpus(tmp_path)
    sound = {name: path.read_bytes() for name, (_, path) in captures.items()}
    rng = random.Random(batch)
    refused = 0
    for _ in range(PER_BATCH):
        name = rng.choice(list(captures))
        root, path = captures[name]
        path.write_bytes(rng.choice(mutations_of(name))(sound[name], rng))
        begin = time.monotonic()
        error = refusal(root)
        assert error is None or name in ARCHIVES or path.name in error.what, error
        refused += error is not None
        assert time.monotonic() - begin < LONGEST_SECONDS
        path.write_bytes(sound[name])
    assert 0 < refused < PER_BATCH


@pytest.mark.parametrize(
    "name", [f"{OUTPUT}/kernel_details.csv", f"{OUTPUT}/memory_record.csv", "profiler_metadata.json", "profiler_info_0.json"]
)
def test_a_folder_in_place_of_any_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(MalformedInputError) as caught:
        load(folder)
    assert names_file_and_row(caught.value, Path(name).name)
