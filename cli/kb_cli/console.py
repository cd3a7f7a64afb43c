"""Where output goes: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

import locale
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

import msgspec

from kb.domain.text import Lang, Text

_QUIET_SECONDS = 1.0


def locale_lang(environment: Mapping[str, str]) -> Lang:
    """Language of the user's locale: zh for a Chinese one, else en."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environment.get(name, "")
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    system = locale.getlocale()[0] or ""
    return "zh" if system.lower().startswith(("zh", "chinese")) else "en"


@dataclass
class Console:
    """Output of one command. ``lang`` picks the language of every Text."""

    lang: Lang
    as_json: bool = False
    quiet: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)

    def line(self, text: str = "") -> None:
        """A line of the result."""
        print(text, file=self.out)

    def text(self, rendered: str) -> None:
        """A rendered document, which brings its own final newline."""
        self.out.write(rendered.lstrip("\n"))

    def say(self, zh: str, en: str) -> None:
        """A line of the result in the reader's language."""
        self.line(Text(zh, en).pick(self.lang))

    def json(self, payload: Mapping[str, Any]) -> None:
        """The whole result as one JSON document."""
        self.line(msgspec.json.format(msgspec.json.encode(payload), indent=2).decode())

    def remark(self, zh: str, en: str) -> None:
        """A line beside the result, on standard error, unless the user wants quiet."""
        if self.quiet:
            return
        print(Text(zh, en).pick(self.lang), file=self.err)

    def progress(self) -> ProgressLine:
        """A progress display that stays silent for the first second."""
        return ProgressLine(self.err, quiet=self.quiet)


@dataclass
class ProgressLine:
    """Draws ``stage done/total`` once work has taken over a second: redrawn on a terminal, one line a stage elsewhere."""

    err: TextIO
    started: float = field(default_factory=time.monotonic)
    shown: str = ""
    quiet: bool = False

    def __call__(self, stage: str, done: int, total: int, /) -> None:
        """``done`` of ``total`` units of ``stage`` are finished."""
        if self.quiet or (time.monotonic() - self.started < _QUIET_SECONDS and not self.shown):
            return
        if self.err.isatty():
            end = "\n" if done >= total else ""
            print(f"\r{stage} {done}/{total}\x1b[K", end=end, file=self.err, flush=True)
        elif stage != self.shown:
            print(f"{stage} .. ({total})", file=self.err, flush=True)
        self.shown = stage


def console_for(lang: str, *, as_json: bool, quiet: bool = False) -> Console:
    """A console in the language asked for, else in the locale's."""
    chosen: Lang = "zh" if lang == "zh" else "en" if lang == "en" else locale_lang(os.environ)
    return Console(chosen, as_json=as_json, quiet=quiet)
