"""``kb grow``"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from kb.errors import ExitCode
from kb.files import write_whole
from kb.workflow.gains import gains_path, keep, summary_of
from kb.workflow.grow import fitted, grow, records_of
from kb.workflow.location import shipped_catalogue
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """How many runs of which seed, and where they go."""

    sessions: Annotated[int, Flag("--sessions", "Random runs; each gives about 23 outcomes.", "N")] = 450
    seed: Annotated[int, Flag("--seed", "Seed of the runs: equal seeds give equal runs.", "N")] = 1
    jobs: Annotated[int, Flag("--jobs", "Processes; 0 = one a processor.", "N")] = 0
    journal: Annotated[
        Path | None, Flag("--journal", "Finished runs, one a line; default grown/seed-N.jsonl in the workspace.", "FILE")
    ] = None
    out: Annotated[Path | None, Flag("--out", "What is learnt; default: the workspace's own, which kb recommend then uses.", "FILE")] = None
    records: Annotated[Path | None, Flag("--records", "Also write the runs as case records, one JSON document a line.", "FILE")] = None
    no_fit: Annotated[bool, Flag("--no-fit", "Only run and keep the journal.")] = False


def run(options: Options, console: Console) -> int:
    """Grow, then learn. Ctrl-C keeps what is finished; the same command goes on."""
    place = workspace()
    progress = console.progress()
    journal = options.journal or place.home / "grown" / f"seed-{options.seed}.jsonl"
    grown = grow(journal, sessions=options.sessions, seed=options.seed, jobs=options.jobs or os.cpu_count() or 1, progress=progress)
    payload: dict[str, object] = {"journal": str(journal), **msgspec.to_builtins(grown), "provenance": "simulated"}
    if options.records is not None:
        records = records_of(journal, seed=options.seed, sessions=options.sessions, catalogue=shipped_catalogue())
        write_whole(options.records, [msgspec.json.encode(record) + b"\n" for record in records])
        payload["records"] = str(options.records)
    if not options.no_fit:
        target = options.out or gains_path(place)
        model = fitted(journal, seed=options.seed, sessions=options.sessions, progress=progress)
        payload |= {"file": str(target), "bytes": keep(model, target), "learnt": summary_of(model)}
    _show(payload, console)
    return ExitCode.DONE


def _show(payload: dict[str, object], console: Console) -> None:
    if console.as_json:
        console.json(payload)
        return
    runs, cases, made, repeated = (payload[name] for name in ("runs", "cases", "made", "repeated"))
    console.say(
        f"{runs} 次仿真运行，{cases} 个结果（本次新增 {made} 次，设置重复 {repeated} 次）：{payload['journal']}",
        f"{runs} simulated runs, {cases} outcomes ({made} runs made now, {repeated} of repeated settings): {payload['journal']}",
    )
    learnt = payload.get("learnt")
    if isinstance(learnt, dict):
        console.say(
            f"已从中学习并写入 {payload['file']}（{payload['bytes']} 字节）；留出模型族时校准误差 {learnt['calibration_error']:.3f}",
            f"learnt from them: {payload['file']} ({payload['bytes']} bytes); calibration error on model families left out "
            f"{learnt['calibration_error']:.3f}",
        )


COMMAND = Command(
    "Grow the casebook on the simulated backend: random runs, every strategy tried on each, outcomes kept and learnt from.",
    Options,
    run,
    ("kb grow --sessions 450 --seed 1", "kb grow --sessions 50 --seed 2 --records cases.jsonl --json"),
)
