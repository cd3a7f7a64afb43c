"""``profiler alert``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.text import Lang
from kb.errors import ExitCode
from kb.report.alert import alerts
from kb.workflow.named import diagnosis_of, report_in, session_report
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.speech import speak, voice


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to announce."""

    report: Annotated[Path | None, Flag("--report", "A report file of ours, or a saved diagnosis.", "FILE")] = None
    session: Annotated[str, Flag("--session", "A capture, by path or the beginning of its name; default the last one.", "NAME")] = ""
    voice: Annotated[str, Flag("--voice", "Also speak, in this language, with a voice of the system.", choices=("zh", "en"))] = ""
    most: Annotated[int, Flag("--most", "How many causes to name.", "N", least=1)] = 3


def run(options: Options, console: Console) -> int:
    """Print the announcement and speak it when asked; without a voice the text is the alert."""
    named = report_in(options.report) if options.report is not None else session_report(options.session, workspace(), Path.cwd())
    if named.remark.en:
        console.remark(named.remark.zh, named.remark.en)
    diagnosis = diagnosis_of(named, str(options.report or options.session))
    lang: Lang = "zh" if options.voice == "zh" else "en" if options.voice == "en" else console.lang
    sentences = alerts(diagnosis, named.catalogue, lang, most=options.most)
    program = voice() if options.voice else None
    if console.as_json:
        console.json({"lang": lang, "sentences": sentences, "voice": program, "simulated": named.report.simulated})
    else:
        for sentence in sentences:
            console.line(sentence)
    if options.voice and program is None:
        console.remark("系统没有语音程序（espeak-ng、say 等），仅显示文字", "no voice on this system (espeak-ng, say, ..): text only")
    elif program is not None and not speak(" ".join(sentences), lang, program):
        console.remark(f"{program} 未能播报", f"{program} could not speak")
    return ExitCode.DONE


COMMAND = Command(
    "Announce the bottlenecks of a report in a few sentences, aloud when the system has a voice.",
    Options,
    run,
    ('profiler alert --report bottleneck_report.json --voice "zh"', "profiler alert --session sd3_profiling --most 1"),
)
