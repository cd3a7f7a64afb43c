"""Exit codes and the one error tree of the product.

Every message a user sees has three parts: what happened, what is allowed, what to do.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means to a script."""

    DONE = 0
    CANNOT = 1
    USAGE = 2
    UNUSABLE_CAPTURE = 3
    INTERNAL = 4
    INFEASIBLE = 5
    REGRESSION = 6
    INTERRUPTED = 130


class KbError(Exception):
    """Root of the errors we raise on purpose.

    ``what`` is the event, ``allowed`` the set or form that would have been accepted, ``do`` the
    next step for the reader. ``exit_code`` is the status of the command that meets it.
    """

    exit_code: ExitCode = ExitCode.CANNOT

    def __init__(self, what: str, *, allowed: str | None = None, do: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.allowed = allowed
        self.do = do

    def __str__(self) -> str:
        parts = [self.what]
        if self.allowed:
            parts.append(f"allowed: {self.allowed}")
        if self.do:
            parts.append(f"do: {self.do}")
        return "\n  ".join(parts)


class UsageError(KbError):
    """The call itself is wrong: an unknown flag, value or combination."""

    exit_code = ExitCode.USAGE


class UnusableCaptureError(KbError):
    """There is no profile here, or what is here cannot carry a diagnosis."""

    exit_code = ExitCode.UNUSABLE_CAPTURE


class MalformedInputError(UnusableCaptureError):
    """A profile file breaks its format; ``what`` names the file and, where known, the row."""


class NotFoundError(KbError):
    """A record, version or id that does not exist."""


class LibraryNotFoundError(KbError):
    """The shipped content folders are absent: an installation without them is broken, not empty."""


class ContentError(KbError):
    """A content file (recipe, card, template, catalogue) breaks its schema; names file and place."""


class StoreError(KbError):
    """The workspace store cannot be read or written; nothing acknowledged was lost."""


class ConflictError(StoreError):
    """Somebody else published first, or the same version exists with other content."""


class NotComparableError(KbError):
    """Two sessions differ in something that makes a timing verdict meaningless."""


class InternalFaultError(KbError):
    """A defect of ours, caught at a named boundary."""

    exit_code = ExitCode.INTERNAL


def install(extra: str) -> str:
    """How to add one of our optional extras: we are on no package index, so it comes from the clone (a wheel takes FILE.whl[extra])."""
    return f"pip install '.[{extra}]' in the folder of the clone, with the pip of this installation"
