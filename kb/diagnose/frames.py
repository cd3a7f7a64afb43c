"""Python call stacks: the frame a user would recognise."""

from __future__ import annotations

from typing import Final

_FOREIGN: Final = ("site-packages", "dist-packages", "/lib/python", "<built-in", "torch/")


def user_frame(stack: str) -> str:
    """The innermost frame outside installed packages and the standard library, without its folder; else the innermost."""
    frames = [frame.strip() for frame in stack.replace("\r\n", "").split(";") if frame.strip()]
    own = [frame for frame in frames if not any(part in frame for part in _FOREIGN)]
    return (own or frames or [""])[0].rsplit("/", 1)[-1]
