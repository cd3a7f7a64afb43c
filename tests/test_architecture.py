"""The layers, and what the quick path may import: both are rules of the design, so both are tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kb_cli.boundary import run_program

_HEAVY = ("typer", "pydantic", "sqlmodel", "sqlalchemy", "yaml", "faiss", "torch", "sentence_transformers", "sklearn", "pandas")


def _loaded_after(code: str, checkout: Path) -> set[str]:
    """Heavy modules in ``sys.modules`` after ``code`` ran in a fresh process."""
    probe = f"{code}\nimport sys\nprint('LOADED', *[name for name in {_HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    return set(line.split()[1:])


def _call(*words: str) -> str:
    return f"from kb_cli.boundary import run_program\nstatus = run_program('kb', {list(words)!r})\nassert status == 0, status"


def test_imports_point_downwards(checkout: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    environment = {"PYTHONPATH": ".:cli", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kept, 0 broken" in done.stdout


@pytest.fixture(scope="module")
def warm_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose library is already synced."""
    home = tmp_path_factory.mktemp("warm")
    code = "from kb_cli.boundary import run_program; raise SystemExit(run_program('kb', ['list', '--json']))"
    subprocess.run([sys.executable, "-c", code], env={"KB_HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True, capture_output=True)
    return home


_QUICK_CALLS = [("search", "attention 没融合"), ("search", "--text-only", "attention"), ("show", "sd3-attention-unfused")]


@pytest.mark.parametrize("words", _QUICK_CALLS)
def test_search_and_show_load_nothing_heavy(
    words: tuple[str, ...], checkout: Path, warm_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_HOME", str(warm_home))
    assert _loaded_after(_call(*words), checkout) == set()


def test_diagnose_loads_nothing_heavy(checkout: Path, shared: Path) -> None:
    sample = shared / "data" / "profiles" / "ascend" / "qwen3-0.6b-train-pp2-dp2"
    assert _loaded_after(_call("diagnose", str(sample), "--json"), checkout) == set()


def test_importing_the_packages_runs_nothing_heavy(checkout: Path) -> None:
    assert _loaded_after("import kb, kb_cli, kb.domain, kb.session", checkout) == set()


@pytest.mark.parametrize("question", ["attention 没融合 L2 命中率低", "attention not fused, low L2 hit rate"])
def test_the_sd3_recipe_is_among_the_first_three_in_either_language(
    question: str, warm_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KB_HOME", str(warm_home))
    assert run_program("kb", ["search", question, "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert "sd3-attention-unfused" in [hit["slug"] for hit in hits[:3]]
