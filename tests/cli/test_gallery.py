"""The gallery counts what was said, hides what a reader may not see, and its site needs no network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli.program import Run

from kb.domain.event import Event
from kb.domain.protocols import Publication
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Visibility
from kb.search.prepare import prepare
from kb.store.sqlite import open_store
from kb.workflow.gallery import Wanted, gallery, ladder
from kb.workflow.workspace import workspace


def _record(slug: str) -> Record:
    words = Text(zh=f"{slug} 的故事", en=f"story of {slug}")
    return Record(kind="recipe", slug=slug, title=words, summary=words, body=words)


def _publish(slug: str, author: str, visibility: Visibility = "public", *said: Event) -> None:
    store = open_store(workspace().database, writable=True)
    item = _record(slug)
    made = store.publish_all(
        [Publication(record=item, prepared=prepare(item, None), origin="workspace", author=author, visibility=visibility)]
    )[0]
    for event in said:
        store.append(
            Event(
                kind=event.kind, subject=made.version.sha256, author=event.author, at_ns=1, detail={**event.detail, "origin": "workspace"}
            )
        )
    store.close()


def _event(kind: str, author: str, **detail: str) -> Event:
    return Event(kind=kind, subject="", author=author, at_ns=1, detail=detail)  # type: ignore[arg-type]  # a kind of the domain


def test_uses_by_others_count_and_ones_own_praise_does_not(kb: Run) -> None:
    assert kb("list").status == 0
    _publish("praised", "ann", "public", _event("used", "ann", result="improved"), _event("reproduced", "ann"))
    _publish(
        "tried",
        "ann",
        "public",
        _event("used", "bob", result="improved"),
        _event("used", "bob", result="worse"),
        _event("reproduced", "bob"),
    )
    store = open_store(workspace().database, writable=False)
    found = {entry.slug: entry for entry in gallery(store, Wanted()).entries}
    assert (found["praised"].uses, found["praised"].worked, found["praised"].reproductions) == (1, 0, 0)
    assert (found["tried"].uses, found["tried"].worked, found["tried"].reproductions) == (2, 1, 1)
    assert gallery(store, Wanted(sort="use")).entries[0].slug == "tried"
    store.close()


def test_a_step_of_the_ladder_needs_enough_records_and_half_of_them(kb: Run) -> None:
    assert kb("list").status == 0
    for at in range(4):
        said = (_event("used", "bob", result="improved"), _event("verified", "system")) if at < 2 else ()
        _publish(f"own-{at}", "ann", "public", *said)
    _publish("single", "eve", "public", _event("used", "bob", result="improved"), _event("verified", "system"), _event("reproduced", "bob"))
    store = open_store(workspace().database, writable=False)
    people = {person.author: person for person in ladder(gallery(store, Wanted()).entries)}
    store.close()
    assert (people["ann"].records, people["ann"].verified, people["ann"].reused, people["ann"].reproduced) == (4, 2, 2, 0)
    assert people["ann"].steps == 2
    assert people["eve"].steps == 0


@pytest.mark.parametrize(("audience", "shown"), [("public", {"open"}), ("team", {"open", "ours"}), ("private", {"open", "ours", "mine"})])
def test_an_audience_sees_nothing_less_visible(audience: Visibility, shown: set[str], kb: Run) -> None:
    assert kb("list").status == 0
    for slug, visibility in (("open", "public"), ("ours", "team"), ("mine", "private")):
        _publish(slug, "ann", visibility)  # type: ignore[arg-type]  # a visibility of the domain
    store = open_store(workspace().database, writable=False)
    slugs = {entry.slug for entry in gallery(store, Wanted(audience=audience)).entries if entry.origin == "workspace"}
    store.close()
    assert slugs == shown


def test_browsing_filters_and_sorts(kb: Run) -> None:
    found = kb("gallery", "browse", "attention", "--kind", "recipe", "--sort", "name", "--json").json()
    slugs = [entry["slug"] for entry in found["entries"]]
    assert slugs == sorted(slugs)
    assert all("attention" in str(entry).casefold() for entry in found["entries"])
    assert found["total"] >= len(slugs) > 0
    assert kb("gallery", "browse", "--cause", "unfused_attention", "--json").json()["total"] >= 2


def test_the_site_links_only_to_pages_it_has_and_loads_nothing(kb: Run, tmp_path: Path) -> None:
    site = tmp_path / "site"
    _sync_and_publish_private(kb)
    built = kb("gallery", "build", site, "--json").json()
    assert built["pages"] == len(list(site.rglob("*.html")))
    for page in site.rglob("*.html"):
        text = page.read_text()
        for link in re.findall(r'href="([^"#]+)"', text):
            if not re.match(r"https?:|mailto:", link):
                assert (page.parent / link).resolve().is_file(), (page, link)
        assert not re.search(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="https?:', text), page
    assert not list(site.rglob("secret-tale.html"))
    assert "secret-tale" not in (site / "en" / "index.html").read_text()


def _sync_and_publish_private(kb: Run) -> None:
    assert kb("list").status == 0
    _publish("secret-tale", "ann", "private")


def test_a_site_is_rebuilt_over_itself_and_nowhere_else(kb: Run, tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert kb("gallery", "build", site, "--kind", "card").status == 0
    before = set(site.rglob("*.html"))
    assert kb("gallery", "build", site, "--kind", "template").status == 0
    after = set(site.rglob("*.html"))
    assert before - after, "pages of records no longer shown stay"
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("do not touch")
    refused = kb("gallery", "build", other)
    assert refused.status == 1
    assert list(other.iterdir()) == [other / "thesis.txt"]
