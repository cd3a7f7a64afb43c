"""A report file carries its record and gives it back, whatever stands in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.samples import CATALOGUE, diagnosis, full_report

from kb.domain.record import Record
from kb.domain.text import Text
from kb.errors import MalformedInputError, UnusableCaptureError
from kb.report.archive import is_archive, read_archive, record_bytes, script_safe
from kb.report.formats import rendered
from kb.report.payload import diagnosis_payload
from kb.report.reading import diagnosis_in, is_diagnosis
from kb.report.report import Report

HOSTILE = '</script><script>alert(1)</script><!-- ]]> "quoted" \u2028 \u202e gnp.exe 🚀 مرحبا \x00'


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


@pytest.mark.parametrize("suffix", [".html", ".pdf", ".json"])
@pytest.mark.parametrize("text", ["run", HOSTILE])
def test_every_format_gives_back_the_report_it_was_made_from(suffix: str, text: str) -> None:
    if suffix == ".pdf":
        pytest.importorskip("typst")
    report = full_report(text=text)
    data = _bytes(rendered(report, suffix, CATALOGUE, "en"))
    assert is_archive(data)
    assert read_archive(data, source="file") == report


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=40))
def test_no_text_can_end_the_script_that_holds_the_record(text: str) -> None:
    report = Report(record=Record(kind="card", slug="a", title=Text(text, text), summary=Text(), body=Text()))
    inside = script_safe(record_bytes(report))
    assert b"<" not in inside
    assert json.loads(inside) == json.loads(record_bytes(report))
    assert read_archive(_bytes(rendered(report, ".html", CATALOGUE, "zh", interactive=False)), source="file").record == report.record


def test_a_foreign_file_is_not_ours() -> None:
    for data in (b"", b"<html></html>", b"%PDF-1.7 stream\nabc\nendstream", b'{"traceEvents": []}'):
        assert not is_archive(data)
        with pytest.raises(UnusableCaptureError, match="holds no report record"):
            read_archive(data, source="file")


def test_a_damaged_record_is_named_as_such() -> None:
    data = record_bytes(full_report())
    with pytest.raises(MalformedInputError, match="damaged"):
        read_archive(data[: len(data) // 2], source="cut.json")


def test_a_record_of_a_newer_version_is_refused() -> None:
    data = record_bytes(Report()).replace(b'"schema":1', b'"schema":99', 1)
    with pytest.raises(UnusableCaptureError, match="newer version"):
        read_archive(data, source="new.json")


def test_a_pdf_that_inflates_without_end_is_read_within_bounds() -> None:
    import zlib

    bomb = b"%PDF-1.7\nstream\n" + zlib.compress(b"\0" * 50_000_000) + b"\nendstream"
    assert not is_archive(bomb)


def test_a_saved_diagnosis_comes_back_whole() -> None:
    original = diagnosis()
    saved = json.loads(json.dumps(diagnosis_payload(original)))
    assert is_diagnosis(saved)
    read = diagnosis_in(saved, source="d.json")
    assert diagnosis_payload(read) == diagnosis_payload(original)


def test_a_broken_diagnosis_names_the_place() -> None:
    saved = json.loads(json.dumps(diagnosis_payload(diagnosis())))
    saved["sessions"][0]["step_ns"] = "long"
    with pytest.raises(MalformedInputError, match="step_ns"):
        diagnosis_in(saved, source="d.json")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"names":[', b'"names":[9999,', "columns of different length|outside its vocabulary"),
        (b'"roles":[0', b'"roles":[77', "outside its vocabulary"),
        (b'"y":[', b'"y":[1.0,', "different length"),
        (b'"count":1', b'"count":0', "without a task"),
    ],
)
def test_a_record_that_cannot_be_drawn_is_refused(old: bytes, new: bytes, reason: str) -> None:
    data = record_bytes(full_report())
    assert old in data
    changed = data.replace(old, new)
    with pytest.raises(MalformedInputError, match=f"{reason}|damaged"):
        read_archive(changed, source="file")


def test_a_record_nested_without_end_is_refused() -> None:
    head = record_bytes(Report())[:-1]
    deep = b'{"name":"a","value_ns":1,"role":"idle","count":0,"children":[' * 50_000 + b"]}" * 50_000
    with pytest.raises(MalformedInputError):
        read_archive(head.replace(b'"facts":[]', b'"facts":[{"flame":' + deep + b"}]") + b"}", source="file")
