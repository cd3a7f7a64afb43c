"""What ``profiler drill-down``, ``profiler path-map`` and ``kb drill-down`` share: the options, the job, the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kb.errors import ExitCode, UsageError
from kb.report.document import Document
from kb.report.drilldown import drilldown_document
from kb.report.labels import labels
from kb.report.markdown import MarkdownRenderer
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.report.story.charts import path_figure
from kb.workflow.diagnose import load_paths
from kb.workflow.drilldown import Drilled, drilled, levels_of
from kb.workflow.location import shipped_catalogue
from kb.workflow.recent import capture_named
from kb.workflow.workspace import workspace
from kb_cli.command import Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new

_ENDINGS = (".md", ".json", ".html")


@dataclass(frozen=True, kw_only=True)
class DrillOptions(Common):
    """What to look into, how deep, against what, and where the answer goes."""

    session: Annotated[str, Flag("--session", "A capture, by path or the beginning of its name; default the last one.", "NAME")] = ""
    target: Annotated[
        str, Flag("--target", "attention_block, matmul, another role, an operator type or a module; default the whole step.", "NAME")
    ] = ""
    baseline: Annotated[str, Flag("--baseline", "Show the changes from this capture of one rank.", "NAME")] = ""
    output: Annotated[Path | None, Flag("--output", "Write the answer to this new file: .md, .html or .json.", "FILE", short="-o")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def drill(options: DrillOptions, levels: str, console: Console, *, picture: bool) -> int:
    """Take the capture, build the trees, print and write."""
    if options.output is not None and options.output.suffix not in _ENDINGS:
        raise UsageError(f"{options.output.name}: no format ends like this", allowed=", ".join(_ENDINGS))
    paths = [_taken(options.session, console)] + ([_taken(options.baseline, console)] if options.baseline else [])
    sessions, baseline = load_paths(paths[:1]), load_paths(paths[1:]) if options.baseline else ()
    found = drilled(sessions, options.target, levels_of(levels), baseline)
    document = _document(found, console, picture=picture)
    if options.output is not None:
        write_new(options.output, _content(options.output, document, found), force=options.force, keep=paths)
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json(_payload(found))
    else:
        console.text(PlainRenderer().render(_document(found, console, picture=False)))
    return ExitCode.DONE


def _taken(name: str, console: Console) -> Path:
    taken = capture_named(name, workspace(), Path.cwd())
    if taken.remark.en:
        console.remark(taken.remark.zh, taken.remark.en)
    return taken.path


def _document(found: Drilled, console: Console, *, picture: bool) -> Document:
    document = drilldown_document(
        found.trees, found.findings, shipped_catalogue(), console.lang, compared=found.compared, simulated=found.simulated
    )
    if not picture:
        return document
    figures = tuple(path_figure(tree, labels(console.lang)) for tree in found.trees)
    return msgspec.structs.replace(document, blocks=(*document.blocks[:1], *figures, *document.blocks[1:]))


def _content(path: Path, document: Document, found: Drilled) -> str | bytes:
    if path.suffix == ".json":
        return msgspec.json.format(msgspec.json.encode(_payload(found)), indent=2)
    if path.suffix == ".html":
        from kb.report.html.renderer import HtmlRenderer

        return HtmlRenderer(interactive=False).render(document)
    return MarkdownRenderer().render(document)


def _payload(found: Drilled) -> dict[str, Any]:
    """Times in ns by key name; metrics carry their unit."""
    return {
        "simulated": found.simulated,
        "compared": found.compared,
        "trees": [plain(tree) for tree in found.trees],
        "findings": [plain(finding) for finding in found.findings],
    }
