"""Speaking with a voice the system already has."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from kb.domain.text import Lang

LONGEST_S: Final = 60
"""A voice that does not return is stopped after this many seconds."""
_VOICES: Final[Mapping[str, Mapping[Lang, Sequence[str]]]] = {
    "espeak-ng": {"zh": ("-v", "cmn"), "en": ("-v", "en")},
    "espeak": {"zh": ("-v", "zh"), "en": ("-v", "en")},
    "spd-say": {"zh": ("--wait", "--language", "zh"), "en": ("--wait", "--language", "en")},
    "say": {"zh": ("-v", "Tingting"), "en": ()},
}
"""Program to its options for a language; the text follows ``--`` where the program knows it (all but ``say``)."""


def voice() -> str | None:
    """The first speech program found, None when the system has none."""
    return next((program for program in _VOICES if shutil.which(program)), None)


def speak(text: str, lang: Lang, program: str) -> bool:
    """Say ``text``; False when the program failed or took longer than ``LONGEST_S``."""
    words = [program, *_VOICES[program][lang], *(() if program == "say" else ("--",)), text]
    try:
        done = subprocess.run(words, check=False, capture_output=True, timeout=LONGEST_S)  # noqa: S603  # no shell; a fixed table of programs
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
