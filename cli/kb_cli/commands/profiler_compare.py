"""``profiler compare``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.workflow.compare import compare_paths
from kb_cli.command import Command, Common, Flag
from kb_cli.commands.compare import show_comparison
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Two captures of the same work."""

    baseline: Annotated[Path, Flag("--baseline", "The profile before the change.", "PATH")]
    current: Annotated[Path, Flag("--current", "The profile after it.", "PATH")]
    output: Annotated[Path | None, Flag("--output", "Also write the comparison to this new Markdown file.", "FILE.md")] = None


def run(options: Options, console: Console) -> int:
    """Compare and print."""
    return show_comparison(compare_paths(options.baseline, options.current), console, fail_on_regression=False, output=options.output)


COMMAND = Command(
    "Compare a profile with its baseline.",
    Options,
    run,
    ("profiler compare --baseline sd3_converted_baseline.prof --current sd3_optimized.prof --output conversion_impact_report.md",),
)
