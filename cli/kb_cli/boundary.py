"""The outermost boundary: the one place where every exception becomes an exit status and a readable message."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kb.errors import ExitCode, KbError
from kb_cli.command import Command, Common
from kb_cli.console import console_for
from kb_cli.files import check_new
from kb_cli.parsing import parse_quickly, typer_app
from kb_cli.programs import QUICK, asked, commands


def run_program(program: str, argv: list[str] | None = None) -> int:
    """Run one call of ``program`` and return its exit status. Never raises."""
    words = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # the shell closed it: nothing printed would arrive
        return _report("standard output is closed\n  do: run with an open standard output, or send it to a file", ExitCode.CANNOT)
    try:
        status = _dispatch(program, words)
        sys.stdout.flush()
    except KbError as error:
        return _report(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _report("interrupted; finished work is kept", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`); point stdout elsewhere so that the interpreter's last flush is quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except OSError as error:
        do = "free some space or choose another place" if error.errno in _FULL else "check that the path exists and that you may use it"
        return _report(f"{error.strerror or error}: {error.filename or 'output'}\n  do: {do}", ExitCode.CANNOT)
    except Exception as error:
        if os.environ.get("KB_DEBUG"):
            traceback.print_exc()
        text = f"internal error: {type(error).__name__}: {error}\n  do: run again with KB_DEBUG=1 and report the traceback"
        return _report(text, ExitCode.INTERNAL)
    return status


_FULL = (28, 27, 122)  # ENOSPC, EFBIG, EDQUOT


def _report(message: str, code: ExitCode) -> int:
    try:
        print(f"error: {message}", file=sys.stderr)  # noqa: T201  # the boundary is where errors are printed
    except OSError:
        # Standard error itself is gone; the status is all that is left to say.
        return code
    return code


def _dispatch(program: str, words: list[str]) -> int:
    words, store = _before_command(words)
    with _store_named(store):
        return _dispatch_command(program, words)


def _before_command(words: list[str]) -> tuple[list[str], str]:
    """The words without a leading ``--store URL``, and the URL: the one option that may stand before the command."""
    if len(words) > 1 and words[0] == "--store":
        return words[2:], words[1]
    if words and words[0].startswith("--store="):
        return words[1:], words[0].partition("=")[2]
    return words, ""


@contextmanager
def _store_named(store: str) -> Iterator[None]:
    """``--store`` is ``KB_STORE`` for one command: every part that opens the workspace looks there."""
    before = os.environ.get("KB_STORE")
    if store:
        os.environ["KB_STORE"] = store
    try:
        yield
    finally:
        if store:
            os.environ.pop("KB_STORE")
            os.environ.update({} if before is None else {"KB_STORE": before})


def _dispatch_command(program: str, words: list[str]) -> int:
    if program == "kb" and words and words[0] in QUICK:
        command = commands(program)[words[0]]()
        options = parse_quickly(command, words[1:])
        if options is not None:
            return _run(command, options)
    if words == ["--version"]:
        from kb import __version__

        print(f"diagnosis-recipes {__version__}")  # noqa: T201  # before any console exists
        return ExitCode.DONE
    return _parse_and_run(program, words)


def _parse_and_run(program: str, words: list[str]) -> int:
    chosen: list[tuple[Command[Any], Common]] = []
    try:
        typer_app(program, asked(program, words), chosen)(words, prog_name=program)
    except SystemExit as stop:
        if not chosen or stop.code:
            return stop.code if isinstance(stop.code, int) else ExitCode.USAGE
    command, options = chosen[0]
    return _run(command, options)


def _run(command: Command[Any], options: Common) -> int:
    for file in options.new_files():
        check_new(file, force=getattr(options, "force", True))
    with _store_named(options.store):
        return int(command.run(options, console_for(options.lang, as_json=options.as_json, quiet=options.quiet)))
