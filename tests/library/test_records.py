"""Reading a whole library, and noticing that it changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kb.errors import ContentError, LibraryNotFoundError
from kb.library.records import fingerprint, read_records

BOTH = {"zh": "中文", "en": "English"}
TEMPLATE: dict[str, Any] = {
    "slug": "checks",
    "name": {"zh": "检查", "en": "Checks"},
    "description": {"zh": "顺序", "en": "Order"},
    "checks": [{"cause": "slow", "thresholds": {"limit": 0.5}, "reason": {"zh": "先查", "en": "First"}}],
    "models": ["SD3"],
    "model_types": ["diffusion"],
    "pitfalls": [BOTH],
}


def _template(library: Path, **fields: Any) -> None:
    (library / "templates" / "checks.json").write_text(json.dumps(TEMPLATE | fields), encoding="utf-8")


def _card(library: Path, name: str = "note", slug: str = "note", kind: str = "card", extra: str = "") -> None:
    text = (library / "recipes/one/recipe.md").read_text(encoding="utf-8")
    text = text.replace("kind: recipe", f"kind: {kind}{extra}").replace("slug: one", f"slug: {slug}")
    (library / "cards" / f"{name}.md").write_text(text, encoding="utf-8")


def test_recipes_cards_and_templates_are_read_in_order_of_slug(library: Path) -> None:
    _template(library)
    _card(library)
    assert [(record.slug, record.kind) for record in read_records(library)] == [("checks", "template"), ("note", "card"), ("one", "recipe")]


def test_a_recipe_may_stand_on_a_shelf(library: Path) -> None:
    (library / "recipes" / "field").mkdir()
    (library / "recipes" / "one").rename(library / "recipes" / "field" / "one")
    assert [record.slug for record in read_records(library)] == ["one"]


def test_a_template_becomes_a_record_that_lists_its_checks(library: Path) -> None:
    _template(library)
    record = read_records(library)[0]
    assert (record.title.en, record.summary.zh, record.cases) == ("Checks", "顺序", ())
    assert record.template is not None
    assert record.template.checks[0].thresholds == {"limit": 0.5}
    assert record.body.en == "1. `slow` (`limit` = 0.5): First"
    assert record.tags == ("SD3", "diffusion")
    assert len(record.pitfalls) == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"checks": []}, r"\$\.checks: empty"),
        ({"schema": 9}, r"\$\.schema"),
        ({"slug": "Bad Slug"}, r"\$\.slug"),
        ({"slug": "other"}, "is not its name"),
        ({"checks": [{"cause": 1}]}, r"\$\.checks\[0\]\.cause"),
        ({"name": {"zh": "检查"}}, "title has no text in en"),
        ({"author": 1}, "unknown field `author`"),
    ],
)
def test_a_bad_template_names_file_and_place(library: Path, fields: dict[str, Any], said: str) -> None:
    _template(library, **fields)
    with pytest.raises(ContentError, match=said) as caught:
        read_records(library)
    assert "checks.json" in caught.value.what


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({"slug": "other"}, "'other' is not its name"),
        ({"kind": "recipe"}, "kind recipe"),
        ({"name": "one", "slug": "one"}, "slug 'one' is taken by .*recipe.md"),
        ({"extra": "\nlinks: [nowhere]"}, "no record 'nowhere'"),
        ({"extra": "\nlinks: ['https://example.org']"}, "does not name a record"),
        ({"extra": "\nlinks: [one, 'library:one@2', note]\npitfalls: 3"}, "pitfalls"),
    ],
)
def test_a_record_that_does_not_fit_its_library_is_named(library: Path, card: dict[str, str], said: str) -> None:
    _card(library, **card)
    with pytest.raises(ContentError, match=said) as caught:
        read_records(library)
    assert "cards" in caught.value.what


def test_links_to_records_are_accepted_as_slugs_and_references(library: Path) -> None:
    _card(library, extra="\nlinks: [one, 'library:one@2']")
    assert len(read_records(library)) == 2


@pytest.mark.parametrize(("old", "name"), [("正文。", "body"), ("zh: 标题", "title"), ("zh: 摘要", "summary")])
def test_a_missing_translation_is_an_error(library: Path, old: str, name: str) -> None:
    path = library / "recipes/one/recipe.md"
    path.write_text(path.read_text(encoding="utf-8").replace(old, "zh: ''" if "zh" in old else ""), encoding="utf-8")
    with pytest.raises(ContentError, match=f"{name} has no text in zh"):
        read_records(library)


def test_a_folder_without_a_recipe_is_an_error(library: Path) -> None:
    (library / "recipes" / "two").mkdir()
    with pytest.raises(ContentError, match=r"two: no recipe\.md"):
        read_records(library)


def test_text_that_is_not_utf8_names_the_file(library: Path) -> None:
    (library / "recipes/one/recipe.md").write_bytes("---\nkind: 中".encode("gb18030"))
    with pytest.raises(ContentError, match=r"recipe\.md: not UTF-8"):
        read_records(library)


@pytest.mark.parametrize("folder", ["cards", "templates"])
def test_a_library_without_one_of_its_folders_is_an_error(library: Path, folder: str) -> None:
    (library / folder).rmdir()
    for read in (read_records, fingerprint):
        with pytest.raises(LibraryNotFoundError, match=folder):
            read(library)


def test_the_fingerprint_stays_while_nothing_changes(library: Path) -> None:
    first = fingerprint(library)
    (library / "cards" / ".hidden").write_text("editor's own")
    assert fingerprint(library) == first


@pytest.mark.parametrize("name", ["recipes/one/recipe.md", "recipes/catalogue/glossary.json", "recipes/catalogue/causes/slow.json"])
@pytest.mark.parametrize("how", ["longer", "touched", "renamed", "removed"])
def test_the_fingerprint_changes_with_any_content_file(library: Path, name: str, how: str) -> None:
    first, path = fingerprint(library), library / name
    if how == "longer":
        path.write_bytes(path.read_bytes() + b"\n")
    elif how == "touched":
        os.utime(path, ns=(1, 1))
    elif how == "renamed":
        path.rename(path.with_name("renamed.txt"))
    else:
        path.unlink()
    assert fingerprint(library) != first


def test_the_fingerprint_changes_with_a_new_file(library: Path) -> None:
    first = fingerprint(library)
    _template(library)
    assert fingerprint(library) != first


def test_a_dangling_link_is_an_error_and_not_a_crash(library: Path) -> None:
    (library / "cards" / "gone.md").symlink_to(library / "nowhere.md")
    for read in (read_records, fingerprint):
        with pytest.raises(ContentError, match=r"gone\.md"):
            read(library)
