"""The file of a gain model: the same model comes back, and nothing else is believed."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recommend.grown import WEIGHTS, quiet, table

from kb.errors import ContentError
from kb.recommend.experience import GainModel, estimates
from kb.recommend.fitting import fit_gains
from kb.recommend.gain_file import SHIPPED, from_bytes, read_gains, to_bytes


@pytest.fixture(scope="module")
def model() -> GainModel:
    return fit_gains(table(60), WEIGHTS, quiet)


def test_a_round_trip_keeps_the_answers(model: GainModel) -> None:
    data = to_bytes(model)
    again = from_bytes(data, "here")
    assert again.table.fingerprint == model.table.fingerprint == again.reliability.fingerprint
    assert to_bytes(again) == data
    shown = dict(zip(model.table.traits, (0.4, 0.2, 1.0, 0.2), strict=True))
    for name, estimate in estimates(model, shown, "A2").items():
        assert estimates(again, shown, "A2")[name].gain == pytest.approx(estimate.gain, abs=2e-3)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=4))
def test_damage_is_named_and_never_crashes(model: GainModel, place: int, junk: bytes) -> None:
    data = bytearray(to_bytes(model))
    at = place % len(data)
    data[at : at + len(junk)] = junk
    # Damage that the container's checksums do not cover may leave the model as it is.
    with suppress(ContentError):
        assert from_bytes(bytes(data), "here").table.fingerprint == model.table.fingerprint


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"{}", b"\x93NUMPY"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(ContentError, match="not a casebook"):
        from_bytes(data, "here")


def test_arrays_of_odd_shape_are_refused(model: GainModel) -> None:
    with np.load(io.BytesIO(to_bytes(model))) as file:
        arrays = {name: file[name] for name in file.files}
    for name, wrong in (("gains", arrays["gains"][:-1]), ("feature", arrays["feature"] + 1000), ("leaf", arrays["leaf"][:, :-1]),
                        ("importance", arrays["importance"][:, :1]), ("tried", arrays["tried"][:1])):  # fmt: skip
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{**arrays, name: wrong})
        with pytest.raises(ContentError, match="not a casebook"):
            from_bytes(buffer.getvalue(), "here")


def test_pickles_are_never_loaded() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ContentError):
        from_bytes(buffer.getvalue(), "here")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="No such file"):
        read_gains(tmp_path / "gains.npz")


def test_the_shipped_casebook_is_small_whole_and_says_how_it_was_made() -> None:
    assert SHIPPED.stat().st_size <= 2_000_000
    model = read_gains(SHIPPED)
    assert model.reliability.fingerprint == model.table.fingerprint
    assert model.table.cases >= 10_000
    assert model.table.made["command"].startswith("kb grow --sessions ")
    assert {"A2", "A3", "310P", "910"} <= set(model.table.families)
    assert len(set(model.table.groups)) >= 9
    gains = model.table.gains[model.table.tried & np.isfinite(model.table.gains)]
    assert (gains < -0.01).any()
    assert (np.abs(gains) < 0.01).any()
    assert model.reliability.error < 0.1
