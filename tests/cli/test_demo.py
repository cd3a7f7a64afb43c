"""The demo: its own folder, true figures, other settings other figures."""

from __future__ import annotations

import re
from pathlib import Path

from cli.program import Run


def _story(kb: Run, *words: str) -> list[str]:
    result = kb("demo", "--json", *words)
    assert result.status == 0, result.err
    return [step["en"] for step in result.json()["steps"]]


def test_the_story_is_told_with_figures_and_its_tier(kb: Run, own_home: Path) -> None:
    story = "\n".join(_story(kb))
    for word in (
        "[simulated]",
        "Books:",
        "Attention not fused",
        "sd3-attention-unfused@1",
        "use_fused_attention",
        "improved",
        "provenance: simulated",
    ):
        assert word in story, word
    report = own_home / "demo" / "reports" / "report.md"
    assert report.is_file()
    assert "simulated" in report.read_text(encoding="utf-8")
    other = "\n".join(_story(kb, "--soc", "910b4", "--seed", "7"))
    assert re.findall(r"[\d.]+ m?s a step", story) != re.findall(r"[\d.]+ m?s a step", other)


def test_a_folder_the_demo_did_not_make_is_left_alone(kb: Run, own_home: Path) -> None:
    precious = own_home / "demo" / "mywork.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    result = kb("demo")
    assert result.status == 1
    assert "not made by the demo" in result.err
    assert precious.read_text() == "precious"


def test_a_real_profile_is_told_up_to_the_plan(kb: Run, shared: Path) -> None:
    story = "\n".join(_story(kb, "--profile", str(shared / "data/profiles/ascend/qwen3-0.6b-train-pp2-dp2")))
    assert "Pipeline imbalance" in story
    assert "compare" in story
    assert "[simulated]" not in story
