"""The structured record inside a report file: written into HTML, PDF and JSON, found again in each of them.

JSON: the file is the record. HTML: a data script of the page. PDF: an attached file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final

import msgspec

from kb.errors import MalformedInputError, UnusableCaptureError
from kb.report.report import FORMAT, SCHEMA, Report
from kb.report.soundness import breaches

SCRIPT_ID: Final = "kb-record"
ATTACHMENT: Final = "record.json"
LARGEST: Final = 256 << 20
"""Bytes of a record; more is refused when a file is opened."""
_OPENING: Final = b'<script type="application/json" id="' + SCRIPT_ID.encode() + b'">'
_CLOSING: Final = b"</script>"
_AGAIN: Final = "write the report again from the profile"
_STREAM: Final = re.compile(rb"stream\r?\n")
_MARK: Final = b'{"format":"' + FORMAT.encode() + b'"'


class _Head(msgspec.Struct, frozen=True):
    """What is looked at before the rest is believed."""

    format: str = ""
    schema: int = 0


def record_bytes(report: Report) -> bytes:
    """The record of ``report`` as JSON; not-a-number values become null, as JSON demands."""
    return msgspec.json.encode(report)


def script_safe(data: bytes) -> bytes:
    """JSON that cannot end the script it stands in nor open a comment there: every ``<`` is written as its escape."""
    return data.replace(b"<", b"\\u003c").replace("\u2028".encode(), b"\\u2028").replace("\u2029".encode(), b"\\u2029")


def is_archive(data: bytes) -> bool:
    """Whether a report file of ours begins here; says nothing about its soundness."""
    return _OPENING in data or data.startswith(_MARK) or (data.startswith(b"%PDF-") and _attached(data) is not None)


def read_archive(data: bytes, *, source: str) -> Report:
    """The report in a file's bytes; ``source`` names it in messages.

    Raises UnusableCaptureError for a file without a record or of a newer version, MalformedInputError for a damaged one.
    """
    record = _record(data)
    if record is None:
        raise UnusableCaptureError(
            f"{source} holds no report record", allowed="HTML, PDF or JSON written by kb report", do="name the profile"
        )
    try:
        head = msgspec.json.decode(record, type=_Head)
        if head.schema > SCHEMA:
            raise UnusableCaptureError(f"{source} was written by a newer version (schema {head.schema})", do="upgrade diagnosis-recipes")
        report = msgspec.json.decode(record, type=Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedInputError(f"{source}: its record is damaged: {error}", do=_AGAIN) from error
    breach = next(breaches(report), None)
    if breach is not None:
        raise MalformedInputError(f"{source}: its record cannot be shown: {breach}", do=_AGAIN)
    return report


def _record(data: bytes) -> bytes | None:
    if data.startswith(b"%PDF-"):
        return _attached(data)
    if data.startswith(_MARK):
        return data
    begin = data.find(_OPENING)
    if begin < 0:
        return None
    begin += len(_OPENING)
    end = data.find(_CLOSING, begin)
    return data[begin:end] if end >= 0 else None


def _attached(data: bytes) -> bytes | None:
    return next((content for content in _streams(data) if content.startswith(_MARK)), None)


def _streams(data: bytes) -> Iterator[bytes]:
    """Contents of a PDF's streams, decompressed where they are deflated; only those that begin like a record are read whole."""
    for match in _STREAM.finditer(data):
        begin = match.end()
        if data.startswith(_MARK, begin):
            yield data[begin : data.find(b"\nendstream", begin)].rstrip(b"\r")
            continue
        inflater = zlib.decompressobj()
        try:
            head = inflater.decompress(data[begin : begin + 4096], len(_MARK))
            if head == _MARK:
                yield head + inflater.decompress(inflater.unconsumed_tail + data[begin + 4096 :], LARGEST)
        except zlib.error:
            continue
