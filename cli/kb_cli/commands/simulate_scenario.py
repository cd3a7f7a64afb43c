"""``kb simulate scenario``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kb.domain.catalogue import Catalogue
from kb.errors import ExitCode
from kb.report.document import Block, Bullets, Document, Heading, Note, Paragraph, TableBlock
from kb.report.labels import labels
from kb.report.markdown import MarkdownRenderer
from kb.report.numbers import signed_percent
from kb.report.payload import plain
from kb.report.pipeline import pipeline_document, pipeline_payload
from kb.report.plain import PlainRenderer
from kb.session.codec import to_bytes
from kb.tune.telling import tuning_document, tuning_payload
from kb.workflow.casebook import open_casebook
from kb.workflow.scenario import NO_COUNTERPART, Line, Played, PlayedPipeline, play, shown
from kb.workflow.scenario_data import scenario_names
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A case study, and what is kept of it."""

    name: Annotated[str, Argument("Case study; a wrong name lists all.", "NAME")]
    output: Annotated[Path | None, Flag("--output", "Also write it to this new Markdown file.", "FILE.md")] = None
    sessions: Annotated[
        Path | None, Flag("--sessions", "Keep both runs in this folder, as NAME-before.prof and -after.prof.", "FOLDER")
    ] = None
    force: Annotated[bool, Flag("--force", "Overwrite output files.")] = False


def run(options: Options, console: Console) -> int:
    """Baseline, closed loop, claims beside simulated figures. Exit status 5 when the article's limits are not met."""
    with open_casebook(workspace(), console.progress()) as casebook:
        played = play(casebook, options.name, console.progress())
        document = Document((*_document(played, console), *_account(played, casebook.catalogue, console)), lang=console.lang)
    if options.sessions is not None and isinstance(played, Played):
        for moment, session in (("before", played.before), ("after", played.after)):
            write_new(options.sessions / f"{played.name}-{moment}.prof", to_bytes(session), force=options.force)
    if options.output is not None:
        write_new(options.output, MarkdownRenderer().render(document), force=options.force)
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json(_payload(played))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE if isinstance(played, PlayedPipeline) or played.tuning.met else ExitCode.INFEASIBLE


def _account(played: Played | PlayedPipeline, catalogue: Catalogue, console: Console) -> tuple[Block, ...]:
    """What was done to the run: the loop's rounds, or the pipeline's findings and plan."""
    if isinstance(played, Played):
        return tuning_document(played.name, played.tuning, catalogue, console.lang).blocks
    return pipeline_document(played.analysis, console.lang).blocks


def _document(played: Played | PlayedPipeline, console: Console) -> tuple[Block, ...]:
    words = labels(console.lang)
    case = played.case
    header = (
        words.either("量", "figure"), words.either("声称：前", "claimed before"), words.either("声称：后", "claimed after"),
        words.either("声称：变化", "claimed change"), words.either("仿真：前", "simulated before"),
        words.either("仿真：后", "simulated after"), words.either("仿真：变化", "simulated change"), words.either("存疑", "doubts"),
    )  # fmt: skip
    blocks: list[Block] = [
        Heading(2, f"{case.title.pick(console.lang)} ({played.name})"),
        Note("simulated", words("simulated")),
        Paragraph(f"{words.either('配置', 'Configuration')}: {case.configuration.pick(console.lang)}"),
        TableBlock(header, tuple(_row(line) for line in played.lines), right=(1, 2, 3, 4, 5, 6)),
    ]
    lacking = [line.name for line in played.lines if line.simulated_before is None]
    if lacking:
        blocks.append(Paragraph(f"-: {NO_COUNTERPART.pick(console.lang)}: {', '.join(lacking)}"))
    if played.notes:
        blocks.append(Heading(3, words.either("声称的数字为何存疑", "Why claimed figures are in doubt")))
        said = (f"[{number}] {note.severity}: {note.text.pick(console.lang)}" for number, note in enumerate(played.notes, start=1))
        blocks.append(Bullets(tuple(said)))
    return tuple(blocks)


def _row(line: Line) -> tuple[str, ...]:
    change = line.simulated_change
    return (
        line.name,
        line.claimed_before or (line.limit and f"({line.limit})") or "-",
        line.claimed_after or "-",
        line.claimed_change or "-",
        shown(line.simulated_before),
        shown(line.simulated_after),
        "-" if change is None else signed_percent(change),
        " ".join(f"[{number}]" for number in line.doubts),
    )


def _payload(played: Played | PlayedPipeline) -> dict[str, Any]:
    found: dict[str, Any] = {
        "scenario": played.name,
        "origin": "simulated",
        "title": plain(played.case.title),
        "configuration": plain(played.case.configuration),
        "record": played.case.record,
        "figures": [
            {
                **plain(line),
                "simulated_change_fraction": line.simulated_change,
                "provenance": {"claimed": "claimed", "simulated": "simulated"},
            }
            for line in played.lines
        ],
        "audit": [plain(note) for note in played.notes],
    }
    if isinstance(played, PlayedPipeline):
        return {**found, "pipeline": pipeline_payload(played.analysis)}
    case = played.case
    own = {"model": case.model, "soc": case.soc, "options": msgspec.structs.asdict(case.options)}
    return {**found, **own, "tuning": tuning_payload(played.tuning)}


COMMAND = Command(
    f"Run a case study of the articles: claimed figures beside simulated ones. Names: {', '.join(scenario_names())}.",
    Options,
    run,
    (
        "kb simulate scenario bert-large",
        "kb simulate scenario sd3 --sessions runs --output sd3.md",
        "kb simulate scenario resnet50-8 --json",
    ),
)
