"""Calls that make no sense are refused before any work: numbers without bound, names nobody knows, outputs of the wrong kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Run, runner
from hypothesis import given
from hypothesis import strategies as st

from kb.domain.quantity import noted
from kb.errors import UsageError
from kb_cli.command import Flag, build, parameters
from kb_cli.programs import PROGRAMS, commands

Program = Callable[[str], Run]


@pytest.fixture
def program(kb: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    monkeypatch.chdir(tmp_path)
    return lambda name: runner(capsys, name)


@pytest.mark.parametrize(("program_name", "path"), [(name, path) for name, table in PROGRAMS.items() for path in table])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_option_takes_a_number_that_is_not_finite(program_name: str, path: str, value: float) -> None:
    options = commands(program_name)[path]().options
    given_values = {item.field: ([] if item.repeats else item.scalar()) for item in parameters(options) if item.required}
    for item in parameters(options):
        if isinstance(item.declared, Flag) and item.scalar is float:
            with pytest.raises(UsageError, match=item.declared.name):
                build(options, {**given_values, item.field: value})


REFUSED = [
    ("kb", "apply", "a.prof", "--after", "nosuch", "--wait", "nan"),
    ("kb", "apply", "a.prof", "--after", "nosuch", "--wait", "1e9"),
    ("kb", "apply", "a.prof", "--after", "nosuch", "--wait", "-1"),
    ("kb", "atc", "validate-precision", "--model", "sd3", "--metrics", "cosine", "--max-loss", "nan"),
    ("kb", "atc", "validate-precision", "--model", "sd3", "--metrics", "foo"),
    ("kb", "atc", "convert", "--model", "bert-base", "--output", "x.txt"),
    ("kb", "aoe", "tune", "--model", "bert-base", "--no-knobs"),
    ("kb", "simulate", "memory", "bert-base", "--pool-size", "-1MB"),
    ("kb", "simulate", "memory", "bert-base", "--techniques", ","),
    ("kb", "simulate", "energy", "bert-base", "--overhead", "inf"),
    ("kb", "simulate", "energy", "bert-base", "--overhead", "0.5"),
    ("kb", "simulate", "energy", "bert-base", "--input_shape", "1,3,224,224"),
    ("kb", "recommend", "--symptom", "slow", "--metric", "step_time=-90ms"),
    ("kb", "recommend", "--symptom", "slow", "--metric", "step_time=nanms"),
    ("kb", "compare", "a.prof", "b.prof", "--max-loss", "nan"),
    ("profiler", "alert", "--report", "a.json", "--most", "-1"),
]


@pytest.mark.parametrize("words", REFUSED)
def test_it_is_refused_as_a_wrong_call_and_leaves_nothing(words: tuple[str, ...], program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    result = program(words[0])(*words[1:])
    assert result.status == 2, result.err
    assert result.out == ""
    assert "allowed:" in result.err or "do:" in result.err
    assert [path.name for path in tmp_path.iterdir() if path.suffix not in (".json", "")] == []


def test_an_unknown_cause_of_the_gallery_names_the_nearest(program: Program) -> None:
    result = program("kb")("gallery", "browse", "--cause", "unfused_atention")
    assert result.status == 1
    assert "unfused_attention" in result.err


@pytest.mark.parametrize("text", ["90ms", "-5%", "-3 °C", "many", "info", "1e-3 s", "nanotubes", "12", "empty queue"])
def test_figures_people_note_are_taken_as_they_are(text: str) -> None:
    assert noted(f" {text} ") == text


@given(st.floats(max_value=-1e-9, allow_nan=False, allow_infinity=False), st.sampled_from(["ns", "ms", "GB", "/s", "W"]))
def test_no_time_size_or_rate_is_below_zero(value: float, unit: str) -> None:
    with pytest.raises(UsageError, match="below zero"):
        noted(f"{value!r}{unit}")


def negated(value: object) -> object:
    """Every number of a document set to -1."""
    if isinstance(value, dict):
        return {key: negated(item) for key, item in value.items()}
    if isinstance(value, list):
        return [negated(item) for item in value]
    return -1 if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_a_diagnosis_with_impossible_numbers_is_refused_everywhere(program: Program, tmp_path: Path) -> None:
    kb, profiler = program("kb"), program("profiler")
    assert kb("simulate", "model", "bert-base", "--set", "steps=2", "-o", "b.prof").status == 0
    saved = kb("diagnose", "b.prof", "--json")
    (tmp_path / "good.json").write_text(saved.out)
    (tmp_path / "neg.json").write_text(json.dumps(negated(saved.json())))
    assert kb("plan", "good.json").status == 0
    for run, words in (
        (profiler, ("visualize", "--report", "neg.json")),
        (profiler, ("alert", "--report", "neg.json")),
        (kb, ("plan", "neg.json")),
        (kb, ("report", "neg.json", "--output", "n.html")),
    ):
        result = run(*words)
        assert (result.status, result.out) == (3, ""), result.err
        assert "cannot be true" in result.err or "can be true" in result.err
    assert not (tmp_path / "n.html").exists()


def test_without_the_pdf_extra_the_page_is_written_and_the_lack_is_said(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert program("kb")("simulate", "model", "bert-base", "--set", "steps=2", "-o", "b.prof").status == 0
    monkeypatch.setattr("kb.report.pdf.renderer.find_spec", lambda _name: None)
    result = program("profiler")("report", "--session", "b.prof", "--format", "pdf,html", "--output", "r")
    assert result.status == 1
    assert "pip install '.[pdf]'" in result.err
    assert sorted(path.name for path in tmp_path.glob("r.*")) == ["r.html"]
    assert "r.html" in result.out
    for alone in (
        program("profiler")("report", "--session", "b.prof", "--output", "s.pdf"),
        program("kb")("report", "nosuch.prof", "--output", "s.pdf"),
    ):
        assert (alone.status, "pip install '.[pdf]'" in alone.err) == (1, True), "said before the work"


UNWRITABLE = [
    ("kb", "simulate", "model", "bert-base", "--output", "{}"),
    ("kb", "tune", "bert-base", "--output", "{}"),
    ("kb", "simulate", "scenario", "bert-large", "--output", "{}"),
    ("kb", "diagnose", "nosuch", "--output", "{}"),
    ("profiler", "report", "--session", "nosuch", "--output", "{}.html"),
]


@pytest.mark.parametrize("words", UNWRITABLE)
@pytest.mark.parametrize("place", ["plain.txt/x.prof", "there.prof"])
def test_an_output_that_cannot_be_is_refused_before_the_work(words: tuple[str, ...], place: str, program: Program, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("a file, no folder")
    (tmp_path / "there.prof").write_text("kept")
    (tmp_path / "there.prof.html").write_text("kept")
    result = program(words[0])(*(word.replace("{}", place) for word in words[1:]))
    assert result.status == 1, result.err
    assert place in result.err
    assert ".part" not in result.err
    assert (tmp_path / "there.prof").read_text() == "kept"


FILES = {"bad.json": "{bad", "list.json": "[1, 2]", "empty.json": "", "empty.prof": "", "other.json": '{"a": 1}', "model.bin": "\x0b\x0b"}
BAD_FILES = [
    ("profiler", "publish", "--report", "nosuch"),
    *(("profiler", "publish", "--report", name) for name in ("empty.prof", "empty.json", "list.json")),
    *(("profiler", "analyze", "--data", name) for name in ("bad.json", "list.json", "empty.json", "other.json")),
    *(("cann-tune", "--profile", name) for name in ("bad.json", "list.json")),
    *(("kb", "tune", name) for name in ("bad.json", "list.json", "empty.json", "other.json")),
    *(("kb", "atc", "convert", "--model", name) for name in ("list.json", "model.bin")),
]


@pytest.mark.parametrize("words", BAD_FILES)
def test_a_file_that_is_something_else_is_called_so_in_a_few_lines(words: tuple[str, ...], program: Program, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    result = program(words[0])(*words[1:])
    assert result.status in ((3,) if words[0] == "profiler" or words[0] == "cann-tune" else (1, 3)), result.err
    assert result.out == ""
    said = [line for line in result.err.splitlines() if ".." not in line]
    assert len(said) <= 4, result.err
    assert words[-1] in result.err
    assert "wire type" not in result.err
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == set(FILES)


def test_captures_that_cannot_be_compared_validate_nothing(program: Program) -> None:
    kb, profiler = program("kb"), program("profiler")
    for chip in ("910b2", "310p3"):
        assert kb("simulate", "model", "bert-base", "--set", "steps=2", "--soc", chip, "-o", f"{chip}.prof").status == 0
    result = profiler("validate-optimization", "--before", "910b2.prof", "--after", "310p3.prof")
    assert result.status == 1
    assert "not comparable" in result.err + result.out


def test_without_a_model_the_last_one_is_named_and_must_still_be_there(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb, profiler = program("kb"), program("profiler")
    nothing = profiler("collect")
    assert (nothing.status, "none was used before" in nothing.err) == (2, True)
    assert kb("atc", "convert", "--model", "bert-base", "--output", "b.om").status == 0
    assert profiler("collect", "--model", "b.om", "--steps", "2").status == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = profiler("collect", "--steps", "2")
    assert again.status == 0
    assert str(tmp_path / "b.om") in again.err
    (tmp_path / "b.om").unlink()
    for run, words in ((profiler, ("collect",)), (kb, ("atc", "convert", "...")), (kb, ("aoe", "tune", "..."))):
        gone = run(*words)
        assert (gone.status, f"is gone: {tmp_path / 'b.om'}" in gone.err) == (2, True), gone.err
    assert profiler("collect", "--model", "bert-base", "--steps", "2").status == 0
    assert "bert-base" in profiler("collect", "--steps", "2").err
