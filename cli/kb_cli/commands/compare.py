"""``kb compare``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.comparison import comparison_document
from kb.report.markdown import MarkdownRenderer
from kb.report.payload import comparison_payload
from kb.report.plain import PlainRenderer
from kb.workflow.compare import compare_paths
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Two captures of the same work."""

    before: Annotated[Path, Argument("The profile before the change.", "BEFORE")]
    after: Annotated[Path, Argument("The profile after it.", "AFTER")]
    fail_on_regression: Annotated[bool, Flag("--fail-on-regression", "Exit with status 6 when the verdict is regressed.")] = False


def run(options: Options, console: Console) -> int:
    """Compare and print."""
    return show_comparison(options.before, options.after, console, fail_on_regression=options.fail_on_regression)


def show_comparison(before: Path, after: Path, console: Console, *, fail_on_regression: bool, output: Path | None = None) -> int:
    """Compare two paths, print the result, optionally write it as Markdown."""
    comparison = compare_paths(before, after)
    document = comparison_document(comparison, console.lang)
    if output is not None:
        write_new(output, MarkdownRenderer().render(document))
        console.remark(f"已写入 {output}", f"wrote {output}")
    if console.as_json:
        console.json(comparison_payload(comparison))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.REGRESSION if fail_on_regression and comparison.verdict == "regressed" else ExitCode.DONE


COMMAND = Command(
    "Did it get faster? Two captures side by side, with the noise taken seriously.",
    Options,
    run,
    ("kb compare before.prof after.prof", "kb compare run1 run2 --fail-on-regression"),
)
