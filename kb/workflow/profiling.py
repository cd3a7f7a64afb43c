"""Job: profile a model in one go, and find the capture that a report was made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.errors import NotFoundError, UsageError
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.sources import load
from kb.report.archive import is_archive
from kb.session.session import Session
from kb.workflow.diagnose import Diagnosed, diagnose_sessions
from kb.workflow.report import saved_report
from kb.workflow.subject import subject


@dataclass(frozen=True)
class Profiled:
    """A simulated profile and its diagnosis; ``remark`` says what stands in for what."""

    session: Session
    diagnosed: Diagnosed
    remark: Text


def profile_model(model: str, catalogue: Catalogue, *, soc: str, seed: int, options: Options) -> Profiled:
    """Simulate the model (rank 0 of a job) and diagnose it."""
    found = subject(model, catalogue, soc=soc, seed=seed, options=options)
    session, _truth = simulate(found.setup)
    return Profiled(session, diagnose_sessions((session,), catalogue), found.remark)


def data_remark(data: Path | None) -> Text:
    """What is done with input data: nothing, since times do not depend on values. Empty without any."""
    if data is None:
        return Text()
    there = data.exists()
    return Text(
        f"{data}{'' if there else '（文件不在此处）'} 不会被读取：仿真只依赖形状",
        f"{data}{'' if there else ' (not here)'} is not read: simulated times depend on shapes only",
    )


def capture_behind(path: Path) -> Session:
    """The session behind a report of ``cann-profile`` (its .json, .html or .pdf), or in a capture itself.

    Raises NotFoundError when the capture no longer lies beside the report, UsageError when it holds another run or several.
    """
    if path.is_file() and is_archive(path.read_bytes()[:_HEAD]):
        return _beside(path)
    sessions = load(path)
    if len(sessions) != 1:
        raise UsageError(f"{path} holds {len(sessions)} sessions", allowed="one", do="name one rank")
    return sessions[0]


_HEAD = 4096


def _beside(path: Path) -> Session:
    report = saved_report(path)
    capture = path.with_suffix(".prof")
    if not capture.is_file():
        raise NotFoundError(
            f"{path.name} is a report without its capture",
            allowed=f"{capture.name} beside it",
            do="run cann-profile again, or name the .prof",
        )
    (session, *more) = load(capture)
    names = [item.name for item in report.diagnosis.sessions] if report is not None and report.diagnosis is not None else []
    if more or session.meta.name not in names:
        raise UsageError(
            f"{capture.name} holds {session.meta.name}, the report speaks about {', '.join(names) or 'nothing'}",
            allowed="the capture the report was made from",
            do="run cann-profile again",
        )
    return session
