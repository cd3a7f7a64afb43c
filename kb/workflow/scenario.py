"""Job: run a case study, baseline and tuned under the article's limits, and set every claimed figure beside the simulated one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kb.audit.claims import Claim, Note, Sheet
from kb.audit.ruleset import audit
from kb.domain.catalogue import Catalogue
from kb.domain.pipeline import PipelineAnalysis, PipelineFigures
from kb.domain.protocols import Progress
from kb.domain.quantity import Quantity
from kb.domain.text import Text
from kb.profile.simulated.run import simulate
from kb.session.session import Session
from kb.tune.figures import figures_of
from kb.tune.loop import Tuning
from kb.tune.trials import Bounds
from kb.workflow.casebook import Casebook
from kb.workflow.pipeline import analysed_session, collect_pipeline, wanted_pipeline
from kb.workflow.scenario_data import PipelineCase, Scenario, scenario
from kb.workflow.scenario_figures import Measured, simulated_figure
from kb.workflow.simulate import DEFAULT_SOC
from kb.workflow.tune import default_journal, tune_setup

PRETTY = {"ratio": ("%", 100.0)}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity: what is claimed before and after (as printed, several where the article contradicts itself), the change it
    states, and what the simulator gets. ``doubts`` are numbers of the audit's notes that need this figure."""

    name: str
    claimed_before: str
    claimed_after: str
    claimed_change: str
    limit: str
    simulated_before: Quantity | None
    simulated_after: Quantity | None
    doubts: tuple[int, ...]

    @property
    def simulated_change(self) -> float | None:
        """after / before - 1, as a fraction."""
        if self.simulated_before is None or self.simulated_after is None or not self.simulated_before.value:
            return None
        return self.simulated_after.value / self.simulated_before.value - 1.0


@dataclass(frozen=True)
class Played:
    """A scenario that was run. ``tuning`` is the loop's account; both sessions are simulated."""

    name: str
    case: Scenario
    lines: tuple[Line, ...]
    notes: tuple[Note, ...]
    tuning: Tuning
    before: Session
    after: Session


@dataclass(frozen=True)
class PlayedPipeline:
    """A pipeline that was run; ``analysis`` holds its figures before and as planned."""

    name: str
    case: PipelineCase
    lines: tuple[Line, ...]
    notes: tuple[Note, ...]
    analysis: PipelineAnalysis


def play(casebook: Casebook, name: str, progress: Progress, *, keep_journal: bool = True) -> Played | PlayedPipeline:
    """Run the scenario ``name``. Raises NotFoundError for an unknown one."""
    case = scenario(name)
    if isinstance(case, PipelineCase):
        return _play_pipeline(case, name, casebook.catalogue)
    setup = case.setup(casebook.catalogue, name)
    constraints = case.limits.constraints()
    before, _truth = simulate(setup)
    tuning, after = tune_setup(
        casebook,
        setup,
        constraints,
        bounds=Bounds(trials=case.trials, knob_trials=case.knob_trials, devices=case.devices),
        progress=progress,
        journal=default_journal(casebook.workspace, setup, constraints) if keep_journal else None,
    )
    sheet = case.sheet()
    notes = audit([sheet], casebook.catalogue)
    runs = Measured(before, tuning.baseline, case), Measured(after, tuning.best, case)
    scaling = _scaling(case, casebook.catalogue, tuning) if case.scaling else None
    names = dict.fromkeys((claim.subject, claim.metric) for claim in sheet.claims)
    lines = tuple(_line(subject, metric, sheet, notes, runs, scaling, casebook.catalogue) for subject, metric in names)
    return Played(name, case, lines, notes, tuning, before, after)


def _play_pipeline(case: PipelineCase, name: str, catalogue: Catalogue) -> PlayedPipeline:
    spec = wanted_pipeline(case.pipeline, rate=None, trace=None, concurrency={})
    capture = collect_pipeline(spec, catalogue.soc(DEFAULT_SOC), seconds=case.seconds, seed=case.seed, data_types="")
    analysis = analysed_session(capture)
    sheet = case.sheet()
    notes = audit([sheet], catalogue)
    names = dict.fromkeys((claim.subject, claim.metric) for claim in sheet.claims)
    claimed = [_stated_line(subject, metric, sheet, notes, _of_pipeline(analysis, metric), catalogue) for subject, metric in names]
    unclaimed = [
        Line(
            name=metric, claimed_before="", claimed_after="", claimed_change="", limit="",
            simulated_before=pair[0], simulated_after=pair[1], doubts=(),
        )
        for metric in ("throughput, lowest", "throughput, highest", "latency, 99th percentile", "requests waiting, most")
        for pair in (_of_pipeline(analysis, metric),)
    ]  # fmt: skip
    return PlayedPipeline(name, case, (*claimed, *unclaimed), notes, analysis)


def _of_pipeline(analysis: PipelineAnalysis, metric: str) -> tuple[Quantity | None, Quantity | None]:
    """A figure of the pipeline before and as planned; None where there is none."""
    read: dict[str, Callable[[PipelineFigures], Quantity]] = {
        "throughput": lambda run: Quantity(run.throughput, "/s"),
        "throughput, lowest": lambda run: Quantity(run.throughput_low, "/s"),
        "throughput, highest": lambda run: Quantity(run.throughput_high, "/s"),
        "latency, 99th percentile": lambda run: Quantity(run.latency_p99_ms, "ms"),
        "requests waiting, most": lambda run: Quantity(float(run.waiting_max), "count"),
    }
    if metric not in read:
        return None, None
    planned = analysis.planned
    return read[metric](analysis.figures), None if planned is None else read[metric](planned)


def _line(
    subject: str,
    metric: str,
    sheet: Sheet,
    notes: tuple[Note, ...],
    runs: tuple[Measured, Measured],
    scaling: tuple[Quantity, Quantity] | None,
    catalogue: Catalogue,
) -> Line:
    if metric == "scaling_efficiency" and scaling is not None:
        return _stated_line(subject, metric, sheet, notes, scaling, catalogue)
    simulated = simulated_figure(subject, metric, runs[0]), simulated_figure(subject, metric, runs[1])
    return _stated_line(subject, metric, sheet, notes, simulated, catalogue)


def _stated_line(
    subject: str,
    metric: str,
    sheet: Sheet,
    notes: tuple[Note, ...],
    simulated: tuple[Quantity | None, Quantity | None],
    catalogue: Catalogue,
) -> Line:
    own = sheet.all(metric, subject=subject)
    return Line(
        name=f"{subject} {metric}".strip(),
        claimed_before=_stated(own, "before"),
        claimed_after=_stated(own, "after"),
        claimed_change=_stated(own, "change"),
        limit=_stated(own, "target"),
        simulated_before=simulated[0],
        simulated_after=simulated[1],
        doubts=_doubts(sheet, own, notes, catalogue),
    )


def _stated(claims: tuple[Claim, ...], when: str) -> str:
    return ", ".join(_printed(claim) for claim in claims if claim.when == when)


def _printed(claim: Claim) -> str:
    sign = {"max": "≤ ", "min": "≥ "}.get(claim.bound, "")
    change = "+" if claim.when == "change" and claim.value > 0 and claim.unit != "x" else ""
    return f"{sign}{change}{claim}"


def _doubts(sheet: Sheet, own: tuple[Claim, ...], notes: tuple[Note, ...], catalogue: Catalogue) -> tuple[int, ...]:
    """Numbers (from 1) of the notes that would not be raised without these claims."""
    rest = msgspec.structs.replace(sheet, claims=tuple(claim for claim in sheet.claims if claim not in own))
    without = {note.formula for note in audit([rest], catalogue)}
    return tuple(number for number, note in enumerate(notes, start=1) if note.formula not in without)


def _scaling(case: Scenario, catalogue: Catalogue, tuning: Tuning) -> tuple[Quantity, Quantity]:
    """Throughput of the job over that of as many single devices, before and after."""
    found = []
    for options, figures in ((case.options, tuning.baseline), (tuning.options, tuning.best)):
        single = msgspec.structs.replace(options, data_parallel=1)
        session, _truth = simulate(msgspec.structs.replace(case.setup(catalogue, "single"), options=single))
        alone = figures_of(session, single).throughput
        found.append(Quantity(figures.throughput / (alone * options.data_parallel), "ratio"))
    return found[0], found[1]


def shown(quantity: Quantity | None) -> str:
    """A simulated figure with three or four digits; "-" where there is none."""
    if quantity is None:
        return "-"
    unit, factor = PRETTY.get(quantity.unit, (quantity.unit, 1.0))
    value = quantity.value * factor
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:,.3g} {unit}"


NO_COUNTERPART = Text(
    "仿真中没有对应的量（业务、人力、精度或部件级陈述）",
    "no counterpart on the simulator (business, effort, accuracy, or a part it has not)",
)
