"""Templates in the article's form: Chinese keys read and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kb.diagnose.thresholds import load_thresholds
from kb.domain.template import Check, Template
from kb.domain.text import Text
from kb.errors import ContentError
from kb.library.article_template import _phrases
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.library.templates import parse_template, template_record, write_template

ARTICLE: dict[str, Any] = {
    "template_name": "my_image_template",
    "适用模型": ["SDXL", "FLUX"],
    "诊断路径": [
        "1. 先看Attention有没有融合",
        "2. 卷积的 tile 合不合适",
        "3、时间线上有没有气泡",
        "4. L2 命中率",
        "5) `gc_pause`：有没有回收停顿",
    ],
    "关键指标阈值": {"Attention耗时占比": ">35% → 高风险", "L2缓存命中率": "<75%", "Stream气泡占比": ">15% → 需调整", "CLIP": "不掉点"},
    "避坑指南": ["小图要单独诊断"],
}


def _parsed(**fields: Any) -> Template:
    return parse_template(json.dumps(ARTICLE | fields, ensure_ascii=False).encode(), source="t.json")


def test_steps_become_checks_in_their_order() -> None:
    template = _parsed()
    causes = [check.cause for check in template.checks]
    assert causes == ["unfused_attention", "suboptimal_tiling", "stream_bubbles", "l2_pressure", "gc_pause"]
    assert template.slug == "my-image-template"
    assert template.models == ("SDXL", "FLUX")


def test_a_threshold_with_a_name_of_ours_becomes_a_number_and_any_other_stays_as_words() -> None:
    template = _parsed()
    by_cause = {check.cause: check for check in template.checks}
    assert by_cause["l2_pressure"].thresholds == {"l2_hit_low": 0.75}
    assert by_cause["stream_bubbles"].thresholds == {"stream_bubbles_least_share": 0.15}
    assert by_cause["unfused_attention"].thresholds == {}
    assert ">35%" in by_cause["unfused_attention"].reason.zh
    assert any("CLIP" in pitfall.zh for pitfall in template.pitfalls)


def test_the_record_of_such_a_template_has_both_languages() -> None:
    record = template_record(_parsed())
    for text in (record.title, record.summary, record.body):
        assert text.zh.strip()
        assert text.en.strip()


def test_a_step_without_a_clear_cause_names_the_step_and_what_would_do() -> None:
    with pytest.raises(ContentError, match=r"t\.json: \$\.诊断路径\[0\]") as caught:
        _parsed(诊断路径=["1. 看看心情"])
    assert "backticks" in (caught.value.do or "")
    assert "气泡" in (caught.value.allowed or "")


@pytest.mark.parametrize(("fields", "said"), [({"诊断路径": []}, "empty"), ({"诊断路径": "一步"}, "诊断路径"), ({"作者": "我"}, "作者")])
def test_what_the_form_does_not_have_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ContentError, match=said):
        _parsed(**fields)


def test_a_name_without_letters_still_gives_a_slug() -> None:
    first, second = _parsed(template_name="扩散模型"), _parsed(template_name="检测模型")
    assert first.slug.startswith("template-")
    assert first.slug != second.slug


def test_written_in_the_articles_form_checks_and_thresholds_come_back() -> None:
    template = Template(
        slug="checks",
        name=Text("检查", "Checks"),
        description=Text("顺序", "Order"),
        checks=(
            Check(cause="thermal_throttling", thresholds={"clock_drop": 0.05}, reason=Text("先看频率", "Clock first")),
            Check(cause="h2d_copy", reason=Text("再看拷贝", "Copies next")),
        ),
        models=("YOLOv8",),
        pitfalls=(Text("别只测开头", "Not only the start"),),
    )
    data = write_template(template, article=True)
    assert set(json.loads(data)) == {"template_name", "说明", "适用模型", "诊断路径", "关键指标阈值", "避坑指南"}
    again = parse_template(data, source="t.json")
    assert [(check.cause, check.thresholds, check.reason.zh) for check in again.checks] == [
        (check.cause, check.thresholds, check.reason.zh) for check in template.checks
    ]
    assert (again.slug, again.models) == (template.slug, template.models)


def test_every_shipped_template_survives_both_forms() -> None:
    paths = sorted((library_root() / "templates").glob("*.json"))
    for path in paths:
        template = parse_template(path.read_bytes(), source=path.name)
        assert parse_template(write_template(template), source=path.name) == template
        again = parse_template(write_template(template, article=True), source=path.name)
        assert [(check.cause, check.thresholds) for check in again.checks] == [(check.cause, check.thresholds) for check in template.checks]


def test_the_table_of_phrases_names_causes_and_thresholds_that_exist() -> None:
    phrases, catalogue, known = _phrases(), load_catalogue(library_root()), load_thresholds().values
    for phrase in (*phrases.steps, *phrases.thresholds):
        assert phrase.cause in catalogue.causes
        assert not phrase.threshold or phrase.threshold in known
        assert all(word == word.casefold() for word in phrase.words)


def test_a_template_command_reads_and_writes_the_form(tmp_path: Path, library_kb: Any) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(ARTICLE, ensure_ascii=False), encoding="utf-8")
    out = tmp_path / "out.json"
    assert library_kb("template", "export", str(path), "--keys", "zh", "--out", str(out)).status == 0
    assert "诊断路径" in msgspec.json.decode(out.read_bytes())
    assert library_kb("template", "export", str(path), "--out", str(out)).status != 0
