"""Every command of both articles, as a reader would paste it, in order, in a folder that ``kb simulate article`` filled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cli.article_lines import article_lines, words_of
from cli.program import Run, runner

ARTICLES = ("profiler-article.txt", "tuning-article.txt")
NEEDS_SERVER = ("stream", "dashboard", "share", "cloud-submit", "cloud-download")
LEAST_COMMANDS = 30


def _is_json(data: bytes) -> bool:
    return isinstance(json.loads(data), dict)


def _says_simulated(data: bytes) -> bool:
    text = data.decode()
    return "仿真" in text or "simulated" in text


VALID: Mapping[str, Callable[[bytes], bool]] = {
    ".pdf": lambda data: data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF"),
    ".json": _is_json,
    ".md": _says_simulated,
    ".html": lambda data: data.startswith(b"<!doctype html>") and _says_simulated(data),
    ".prof": lambda data: data.startswith(b"PK"),
    "": lambda data: True,
}


def _commands(shared: Path) -> list[list[str]]:
    lines = [line for name in ARTICLES for line in article_lines((shared / "seeds" / name).read_text(encoding="utf-8"))]
    return [words_of(line) for line in lines]


def _outputs(words: list[str]) -> list[Path]:
    return [Path(words[at + 1]) for at, word in enumerate(words) if word == "--output"]


def _program(words: list[str]) -> tuple[str, list[str]]:
    """``atc`` and ``aoe`` are the simulated tools of ``kb``."""
    return ("kb", words) if words[0] in ("atc", "aoe") else (words[0], words[1:])


@pytest.mark.parametrize("lang", ["zh_CN.UTF-8"])
def test_every_command_of_the_articles_works_as_written(
    lang: str, kb: Run, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "article"
    assert kb("simulate", "article", folder).status == 0
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LC_ALL", lang)
    commands = _commands(shared)
    assert len(commands) >= LEAST_COMMANDS
    for words in commands:
        program, rest = _program(words)
        result = runner(capsys, program)(*rest)
        if len(words) > 1 and words[1] in NEEDS_SERVER:
            assert result.status == 1, words
            assert "team server" in result.err, words
            continue
        assert result.status == 0, (words, result.err)
        for output in _outputs(words):
            assert output.exists(), words
            files = [output] if output.is_file() else [path for path in output.rglob("*") if path.is_file()]
            assert files, words
            assert not output.is_file() or VALID[output.suffix](output.read_bytes()), (words, output)
    for left_behind in ("sd3_bottleneck_report.json", "report.json", "optimization_plan.md", "flux_diagnosis_report.pdf"):
        assert (folder / left_behind).is_file(), left_behind


@pytest.mark.parametrize(
    "words",
    [
        ("profiler", "collect", "--model", "missing_converted.om"),
        ("cann-profile", "--model", "missing.om", "--data", "test.bin", "--output", "r.html"),
        ("kb", "atc", "convert", "--model", "missing.onnx"),
        ("profiler", "template-apply", "--template", "diffusion-bottlenecks", "--model", "missing.om"),
    ],
)
def test_a_missing_model_file_is_an_error_that_names_where_to_get_one(
    words: tuple[str, ...], kb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.bin").write_bytes(b"\0")
    before = set(tmp_path.rglob("*"))
    result = runner(capsys, words[0])(*words[1:])
    assert result.status == 1
    assert "kb simulate article" in result.err
    assert {path for path in set(tmp_path.rglob("*")) - before if "kb-home" not in str(path)} == set(), "something was left behind"
