"""Job: what grown outcomes teach: where it is kept, and fitting it again. Never touches the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kb.domain.protocols import Progress
from kb.errors import ContentError
from kb.files import write_whole
from kb.recommend.experience import GainModel
from kb.recommend.fitting import fit_gains
from kb.recommend.gain_file import SHIPPED, read_gains, to_bytes
from kb.recommend.gain_weights import load_gain_weights
from kb.workflow.workspace import Workspace


def keep(model: GainModel, path: Path) -> int:
    """Write the model to ``path``; returns its size in B. Raises ContentError when it cannot be written."""
    data = to_bytes(model)
    try:
        write_whole(path, [data])
    except OSError as error:
        raise ContentError(f"{path}: {error.strerror}", do="choose a file that can be written") from error
    return len(data)


def gains_path(place: Workspace) -> Path:
    """Where a workspace keeps what its own growth taught."""
    return place.home / "grown" / "gains.npz"


def gains_of(place: Workspace) -> GainModel:
    """What recommendations learn from: the workspace's own growth, else what is shipped. Raises ContentError for a damaged file."""
    own = gains_path(place)
    return read_gains(own if own.is_file() else SHIPPED)


def fit_gain(place: Workspace, progress: Progress) -> dict[str, Any]:
    """Fit the workspace's gain model anew from the outcomes it was made of, and say how reliable it is."""
    model = gains_of(place)
    again = fit_gains(model.table, load_gain_weights(), progress)
    size = keep(again, gains_path(place))
    return {"file": str(gains_path(place)), "bytes": size, **summary_of(again)}


def summary_of(model: GainModel) -> dict[str, Any]:
    """Figures of a model, with their units in their names."""
    found = model.reliability
    return {
        "runs": len(model.table), "cases": model.table.cases, "made": dict(model.table.made), "fingerprint": found.fingerprint,
        "calibration_error": round(found.error, 4), "interval_coverage": round(found.coverage, 4), "interval_level": found.level,
        "judged": found.judged, "provenance": "simulated",
    }  # fmt: skip
