"""``kb compare``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.comparison import Comparison
from kb.errors import ExitCode, UsageError
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
    rest: Annotated[tuple[str, ...], Argument("The second value of --quality.", "[VALUE]")] = ()
    more_before: Annotated[tuple[Path, ...], Flag("--repeat-before", "Another capture of the program before; repeatable.", "PATH")] = ()
    more_after: Annotated[tuple[Path, ...], Flag("--repeat-after", "Another capture of the program after; repeatable.", "PATH")] = ()
    quality: Annotated[
        tuple[str, ...],
        Flag("--quality", "Output quality before and after: two numbers, or two JSON files of metrics by name.", "BEFORE AFTER"),
    ] = ()
    max_loss: Annotated[float, Flag("--max-loss", "Fraction by which a quality metric may get worse.", "FRACTION", least=0, most=1)] = 0.0
    fail_on_regression: Annotated[bool, Flag("--fail-on-regression", "Exit with status 6 when the verdict is regressed.")] = False


def run(options: Options, console: Console) -> int:
    """Compare and print."""
    comparison = compare_paths(
        options.before,
        options.after,
        more_before=options.more_before,
        more_after=options.more_after,
        quality=_quality(options),
        max_loss=options.max_loss,
    )
    return show_comparison(comparison, console, fail_on_regression=options.fail_on_regression)


def _quality(options: Options) -> tuple[str, ...]:
    """Both values of --quality: the flag takes one, the other follows it or comes with the flag once more."""
    if options.rest and not options.quality:
        raise UsageError(f"unexpected argument {options.rest[0]!r}", do="name repeats with --repeat-before and --repeat-after")
    return (*options.quality, *options.rest)


def show_comparison(comparison: Comparison, console: Console, *, fail_on_regression: bool, output: Path | None = None) -> int:
    """Print a comparison, optionally write it as Markdown."""
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
    (
        "kb compare before.prof after.prof",
        "kb compare run1 run2 --fail-on-regression",
        "kb compare a1 b1 --repeat-before a2 --repeat-before a3 --repeat-after b2 --repeat-after b3",
        "kb compare before.prof after.prof --quality 0.761 0.759 --max-loss 0.005",
    ),
)
