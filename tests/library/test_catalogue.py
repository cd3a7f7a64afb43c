"""Loading the catalogue: correct content is read, every fault names file, place and what is allowed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb.errors import ContentError, NotFoundError
from kb.library.catalogue import load_catalogue
from kb.library.decoding import LARGEST_FILE

Change = Callable[..., Path]


def test_a_correct_catalogue_is_read_by_id(library: Path) -> None:
    catalogue = load_catalogue(library)
    assert catalogue.cause("Sluggish").id == "slow"
    assert catalogue.strategy("speed_up").addresses == ("slow",)
    assert catalogue.metrics["latency"].unit == "ms"
    assert catalogue.soc("chip").family == "A2"
    assert catalogue.glossary[0].zh == ("注意力",)


@pytest.mark.parametrize(
    ("name", "fields", "place", "allowed"),
    [
        ("causes/slow", {"layer": "cloud"}, "$.layer", "host"),
        ("causes/slow", {"layre": "host"}, "$", "layer"),
        ("causes/slow", {"evidence": None}, "$", "evidence"),
        ("causes/slow", {"aliases": "sluggish"}, "$.aliases", ""),
        ("causes/slow", {"name": {"zh": "慢", "en": " "}}, "$.name.en", "both languages"),
        ("causes/slow", {"name": {"zh": "慢", "en": "slow", "fr": "lent"}}, "$.name", "zh"),
        ("causes/slow", {"id": "fast"}, "$.id", ""),
        ("causes/slow", {"strategies": ["speed_down"]}, "$.strategies[0]", "speed_up"),
        ("causes/slow", {"strategies": []}, "$.strategies", "at least one"),
        ("causes/slow", {"strategies": ["speed_up", "speed_up"]}, "$.strategies[1]", "once"),
        ("strategies/speed_up", {"addresses": ["slow", "slower"]}, "$.addresses[1]", "slow"),
        ("strategies/speed_up", {"conflicts": ["speed_down"]}, "$.conflicts[0]", "speed_up"),
        ("strategies/speed_up", {"conflicts": ["speed_up"]}, "$.conflicts[0]", "both ways"),
        ("strategies/speed_up", {"effort": "heroic"}, "$.effort", "launch_script"),
        ("strategies/speed_up", {"verify": {"en": "Profile again."}}, "$.verify.zh", "both languages"),
        ("strategies/speed_up", {"commands": [{"tool": "atc", "txt": "atc"}]}, "$.commands[0]", "text"),
        ("metrics/latency", {"unit": "jiffies"}, "$.unit", "ms"),
        ("metrics/latency", {"healthy": [1]}, "$.healthy", ""),
        ("soc/chip", {"family": "A9"}, "$.family", "A2"),
    ],
)
def test_a_fault_names_file_place_and_what_is_allowed(
    library: Path, change: Change, name: str, fields: dict[str, Any], place: str, allowed: str
) -> None:
    path = change(name, **fields)
    with pytest.raises(ContentError) as caught:
        load_catalogue(library)
    assert str(path) in caught.value.what
    assert f"{place}:" in caught.value.what
    assert allowed in (caught.value.allowed or "")
    assert caught.value.do


def test_a_one_sided_link_names_the_other_file(library: Path, change: Change) -> None:
    change("causes/slow", strategies=["speed_up", "wait"])
    (library / "recipes/catalogue/strategies/wait.json").write_text(
        json.dumps({"id": "wait", "name": {"zh": "等", "en": "Wait"}, "definition": {"zh": "等", "en": "Wait"}, "addresses": ["other"]})
    )
    (library / "recipes/catalogue/causes/other.json").write_text(
        json.dumps(
            {k: {"zh": "a", "en": "a"} for k in ("name", "definition", "evidence")}
            | {"id": "other", "layer": "host", "strategies": ["wait"]}
        )
    )
    with pytest.raises(ContentError, match=r"wait does not address slow") as caught:
        load_catalogue(library)
    assert "strategies/wait.json" in str(caught.value)


def test_an_alias_may_belong_to_one_entry_only(library: Path, change: Change) -> None:
    (library / "recipes/catalogue/causes/other.json").write_text(
        json.dumps(
            {k: {"zh": "a", "en": "a"} for k in ("name", "definition", "evidence")}
            | {"id": "other", "layer": "host", "strategies": ["speed_up"], "aliases": ["SLOW"]}
        )
    )
    change("strategies/speed_up", addresses=["slow", "other"])
    with pytest.raises(ContentError, match=r"causes/other\.json: \$\.aliases\[0\]: 'SLOW' is taken by slow"):
        load_catalogue(library)


@pytest.mark.parametrize(
    "rows", [[{"id": "a", "zh": [], "en": ["a"]}], [{"id": "a", "zh": ["甲", "甲"], "en": ["a"]}], [{"id": "A", "zh": ["甲"], "en": ["a"]}]]
)
def test_a_bad_glossary_row_is_named(library: Path, rows: list[dict[str, Any]]) -> None:
    (library / "recipes/catalogue/glossary.json").write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(ContentError, match=r"glossary\.json: \$\[0\]"):
        load_catalogue(library)


@pytest.mark.parametrize(
    ("data", "said"), [(b'{\n "id": "slow",\n oops', r"slow\.json:3: "), (b"", "truncated"), (b'{"id": "\xff"}', "UTF-8|unicode|utf-8")]
)
def test_broken_json_names_the_line(library: Path, data: bytes, said: str) -> None:
    (library / "recipes/catalogue/causes/slow.json").write_bytes(data)
    with pytest.raises(ContentError, match=said):
        load_catalogue(library)


def test_a_huge_file_is_refused(library: Path) -> None:
    (library / "recipes/catalogue/causes/slow.json").write_bytes(b" " * (LARGEST_FILE + 1))
    with pytest.raises(ContentError, match="too many"):
        load_catalogue(library)


@pytest.mark.parametrize("folder", ["causes", "strategies", "metrics", "soc"])
def test_an_empty_or_absent_folder_is_an_error_and_not_an_empty_catalogue(library: Path, folder: str) -> None:
    target = library / "recipes" / "catalogue" / folder
    for file in target.iterdir():
        file.unlink()
    with pytest.raises(ContentError, match=folder):
        load_catalogue(library)
    target.rmdir()
    with pytest.raises(ContentError, match=folder):
        load_catalogue(library)


def test_reading_the_catalogue_loads_no_heavy_module(checkout: Path) -> None:
    code = (
        "import sys; from kb.library.catalogue import load_catalogue; from kb.library.location import library_root;"
        "from kb.library.records import fingerprint;"
        "from kb.text.tokens import tokenize; load_catalogue(library_root()); fingerprint(library_root()); tokenize('注意力');"
        "print(sorted({'yaml', 'typer', 'markdown_it', 'numpy', 'sqlmodel', 'pydantic', 'faiss', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_everything_is_found_by_each_of_its_names_in_both_languages(checkout: Path) -> None:
    catalogue = load_catalogue(checkout)
    for cause in catalogue.causes.values():
        for name in (cause.id, *cause.aliases, cause.name.zh, cause.name.en, cause.id.replace("_", "-").upper()):
            assert catalogue.cause(name).id == cause.id
    for strategy in catalogue.strategies.values():
        for name in (strategy.id, *strategy.aliases, strategy.name.zh, strategy.name.en):
            assert catalogue.strategy(name).id == strategy.id
    with pytest.raises(NotFoundError, match="unfused_attention"):
        catalogue.cause("注意力没融合")
