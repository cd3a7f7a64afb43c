"""What every implementation of ``kb.domain.protocols.Store`` must do.

A test module subclasses ``StoreContract`` and provides the fixture ``place``: an empty store that can be opened.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest
from store.examples import MODEL, case, prepared, record

from kb.domain.canonical import canonical, content_hash
from kb.domain.case import CaseQuery
from kb.domain.event import Event, EventKind
from kb.domain.protocols import Posting, Publication, Store
from kb.domain.provenance import StoreOrigin
from kb.domain.template import Check, Template
from kb.domain.text import Text
from kb.domain.version import Ref
from kb.errors import ConflictError, KbError, NotFoundError, StoreError, UsageError


class Place(Protocol):
    """Where one store lives, whether or not it is open."""

    def open(self, *, writable: bool, clock: Callable[[], int] | None = None) -> Store:
        """The store; made when absent and ``writable``."""


def yank(store: Store, subject: str) -> Event:
    return store.append(Event(kind="yanked", subject=subject, author="ann", at_ns=5, detail={"reason": "wrong"}))


def publication(slug: str, text: str, **more: object) -> Publication:
    fields = {"record": record(slug, text), "prepared": prepared(), "origin": "workspace", "author": "ann", **more}
    return Publication(**fields)  # type: ignore[arg-type]  # keywords of one test each


def give(store: Store, name: str, n: int) -> None:
    version = store.get(Ref("a", n))
    detail: dict[str, str | int | float | None] = {"alias": name, "origin": version.origin, "n": n}
    store.append(Event(kind="aliased", subject=version.sha256, author="ann", at_ns=1, detail=detail))


def slugs(store: Store, query: CaseQuery | None = None) -> list[str]:
    found = store.summaries() if query is None else store.candidates(query)
    return sorted(str(item.ref) for item in found)


def every(**filters: object) -> CaseQuery:
    return CaseQuery(**{"kinds": (), **filters})  # type: ignore[arg-type]  # keywords of one test each


class StoreContract:
    """The suite; every test starts with an empty store."""

    @pytest.fixture
    def store(self, place: Place) -> Iterator[Store]:
        store = place.open(writable=True)
        yield store
        store.close()

    # Publishing

    def test_numbers_count_from_one_for_each_origin_and_slug(self, store: Store) -> None:
        order: tuple[tuple[StoreOrigin, str, str], ...] = (
            ("workspace", "a", "1"), ("workspace", "a", "2"), ("library", "a", "1"), ("workspace", "b", "1"),
        )  # fmt: skip
        made = [store.publish(record(slug, text), prepared(), origin=origin, author="ann") for origin, slug, text in order]
        assert [str(version.ref) for version in made] == ["workspace:a@1", "workspace:a@2", "library:a@1", "workspace:b@1"]
        assert [version.parent for version in made] == [None, made[0].sha256, None, None]

    def test_a_version_reads_back_as_published(self, store: Store, place: Place) -> None:
        made = store.publish(record(cases=[case()]), prepared(), origin="team", author="安", visibility="public")
        again = place.open(writable=False)
        assert again.get(Ref("sd3-attention")) == made
        assert (made.author, made.visibility, made.sha256) == ("安", "public", content_hash(record(cases=[case()])))
        again.close()

    def test_equal_content_is_published_once(self, store: Store) -> None:
        first = store.publish(record(), prepared(), origin="workspace", author="ann")
        before = store.generation()
        assert store.publish(record(), prepared(), origin="workspace", author="bob") == first
        assert store.generation() == before
        assert len(store.history("sd3-attention")) == 1

    def test_a_repeated_call_is_safe_even_when_its_parent_is_no_longer_the_newest(self, store: Store) -> None:
        first = store.publish(record(text="1"), prepared(), origin="workspace", author="ann")
        second = store.publish(record(text="2"), prepared(), origin="workspace", author="ann", expect_parent=first.sha256)
        assert store.publish(record(text="2"), prepared(), origin="workspace", author="ann", expect_parent=first.sha256) == second

    def test_content_of_an_older_version_is_a_new_version(self, store: Store) -> None:
        for text in ("1", "2", "1"):
            last = store.publish(record(text=text), prepared(), origin="workspace", author="ann")
        assert last.n == 3
        assert [version.record.body.en for version in store.history("sd3-attention")] == ["1", "2", "1"]

    @pytest.mark.parametrize("held", [True, False])
    def test_an_unexpected_parent_is_a_conflict_and_writes_nothing(self, store: Store, held: bool) -> None:
        if held:
            store.publish(record(text="1"), prepared(), origin="workspace", author="ann")
        before = store.generation()
        with pytest.raises(ConflictError, match="sd3-attention"):
            store.publish(record(text="2"), prepared(), origin="workspace", author="ann", expect_parent="0" * 64)
        assert store.generation() == before

    def test_an_older_version_keeps_its_bytes_when_a_newer_one_comes(self, store: Store) -> None:
        first = store.publish(record(text="1"), prepared(), origin="workspace", author="ann")
        before = canonical(store.get(Ref("sd3-attention", 1)).record)
        store.publish(record(text="2"), prepared(), origin="workspace", author="ann")
        assert canonical(store.get(Ref("sd3-attention", 1)).record) == before == canonical(first.record)

    def test_two_origins_may_hold_equal_content(self, store: Store) -> None:
        made = [store.publish(record(), prepared(), origin=origin, author="ann") for origin in ("library", "workspace")]
        assert made[0].sha256 == made[1].sha256
        assert [str(version.ref) for version in store.history("sd3-attention")] == ["library:sd3-attention@1", "workspace:sd3-attention@1"]

    # Several at once

    def test_several_are_published_in_one_transaction(self, store: Store) -> None:
        items = [publication(f"r{number}", "1") for number in range(3)] + [publication("r0", "2")]
        made = store.publish_all(items)
        assert [str(item.version.ref) for item in made] == [f"workspace:{name}" for name in ("r0@1", "r1@1", "r2@1", "r0@2")]
        assert [item.created for item in made] == [True] * 4
        again = store.publish_all([publication("r1", "1"), publication("r2", "new")])
        assert [(item.version.n, item.created) for item in again] == [(1, False), (2, True)]

    def test_a_conflict_in_one_leaves_all_unpublished(self, store: Store) -> None:
        with pytest.raises(ConflictError):
            store.publish_all([publication("a", "1"), publication("b", "1", expect_parent="0" * 64)])
        assert (store.generation(), store.summaries()) == (0, ())

    def test_created_says_so_also_after_a_withdrawal(self, store: Store) -> None:
        made = store.publish_all([publication("a", "1")])[0]
        yank(store, made.version.sha256)
        again = store.publish_all([publication("a", "1")])[0]
        assert (again.created, again.version) == (False, made.version)

    def test_a_moved_version_keeps_its_time_and_its_remarks(self, store: Store) -> None:
        remark = Event(kind="audited", subject="", author="audit", at_ns=8, detail={"notes": 0})
        made = store.publish_all([publication("a", "1", created_ns=7, remarks=(remark,))])[0].version
        store.publish_all([publication("a", "1", created_ns=9, remarks=(remark,))])
        assert made.created_ns == 7
        assert [event.kind for event in store.events(made.sha256)] == ["published", "audited"]

    def test_a_history_is_told_without_contents(self, store: Store) -> None:
        for text in "12":
            store.publish(record("a", text), prepared(), origin="workspace", author="ann")
        store.publish(record("a", "1"), prepared(), origin="library", author="kb", visibility="public")
        yank(store, store.get(Ref("a", 2)).sha256)
        told = store.revisions("a")
        assert [(str(item.ref), item.status) for item in told] == [
            ("workspace:a@1", "published"), ("workspace:a@2", "yanked"), ("library:a@1", "published"),
        ]  # fmt: skip
        assert [item.sha256 for item in told] == [version.sha256 for version in store.history("a")]
        with pytest.raises(NotFoundError):
            store.revisions("a", "team")

    # Names that move

    def test_an_alias_means_the_version_it_was_last_given_to(self, store: Store) -> None:
        for text in "123":
            store.publish(record("a", text), prepared(), origin="workspace", author="ann")
        for n in (3, 1, 2):
            give(store, "stable", n)
        assert store.get(Ref("a", alias="stable")).n == 2
        with pytest.raises(NotFoundError, match="no alias") as caught:
            store.get(Ref("a", alias="unstable"))
        assert "stable, latest" in str(caught.value)

    def test_an_alias_of_content_published_twice_means_the_number_it_was_given_to(self, store: Store) -> None:
        for text in ("1", "2", "1"):
            store.publish(record("a", text), prepared(), origin="workspace", author="ann")
        give(store, "stable", 3)
        assert store.get(Ref("a", alias="stable")).n == 3

    def test_a_bad_slug_is_refused(self, store: Store) -> None:
        with pytest.raises(UsageError, match="slug"):
            store.publish(record("../etc"), prepared(), origin="workspace", author="ann")

    @pytest.mark.parametrize(
        "broken",
        [
            prepared(tokens={"a": 0}),
            prepared(vectors={"title": (float("nan"), 0.0)}),
            prepared().__class__(tokens={}, vectors=b"1234", fields=("a", "b"), dim=1, model_id=MODEL, language_share=0),
            prepared().__class__(tokens={}, vectors=b"", fields=(), dim=0, model_id=MODEL, language_share=1.5),
        ],
        ids=["count", "nan", "size", "share"],
    )
    def test_search_data_that_contradicts_itself_is_refused(self, store: Store, broken: object) -> None:
        with pytest.raises(StoreError, match="nothing was published"):
            store.publish(record(), broken, origin="workspace", author="ann")  # type: ignore[arg-type]  # a Prepared each
        assert store.generation() == 0

    # Naming

    def test_the_overlay_prefers_workspace_over_team_over_library(self, store: Store) -> None:
        order: tuple[StoreOrigin, ...] = ("library", "team", "workspace")
        for origin in order:
            store.publish(record(text=origin), prepared(tokens={origin: 1}), origin=origin, author="ann")
            assert store.get(Ref("sd3-attention")).origin == origin
            assert slugs(store) == slugs(store, every()) == [f"{origin}:sd3-attention@1"]
            assert [token for token, found in store.postings(order).items() if found] == [origin]
        assert store.get(Ref("sd3-attention", origin="library")).record.body.en == "library"

    def test_an_unknown_slug_names_the_nearest(self, store: Store) -> None:
        store.publish(record(), prepared(), origin="workspace", author="ann")
        with pytest.raises(NotFoundError) as caught:
            store.get(Ref("sd3-atention"))
        assert "sd3-attention" in str(caught.value)

    def test_an_unknown_number_names_those_there_are(self, store: Store) -> None:
        store.publish(record(), prepared(), origin="workspace", author="ann")
        with pytest.raises(NotFoundError) as caught:
            store.get(Ref("sd3-attention", 7))
        assert "workspace:sd3-attention@1" in str(caught.value)

    def test_history_of_an_unknown_slug_is_not_found(self, store: Store) -> None:
        store.publish(record(), prepared(), origin="workspace", author="ann")
        with pytest.raises(NotFoundError):
            store.history("nothing")
        with pytest.raises(NotFoundError):
            store.history("sd3-attention", "library")

    # Withdrawal and other events

    def test_a_yanked_version_is_hidden_but_served_to_an_exact_pin(self, store: Store) -> None:
        store.publish(record(text="1"), prepared(tokens={"one": 1}), origin="workspace", author="ann")
        second = store.publish(record(text="2"), prepared(tokens={"two": 1}), origin="workspace", author="ann")
        yank(store, second.sha256)
        assert store.get(Ref("sd3-attention")).n == 1
        assert store.get(Ref("sd3-attention", 2)) == second
        assert slugs(store) == ["workspace:sd3-attention@1"]
        assert {token: len(found) for token, found in store.postings(["one", "two"]).items()} == {"one": 1, "two": 0}

    def test_a_withdrawal_in_one_origin_leaves_equal_content_of_another_visible(self, store: Store) -> None:
        made = store.publish(record(), prepared(), origin="library", author="kb")
        store.append(Event(kind="yanked", subject=made.sha256, author="kb", at_ns=1, detail={"origin": "library"}))
        store.publish(record(), prepared(), origin="workspace", author="ann")
        assert slugs(store) == ["workspace:sd3-attention@1"]
        assert [item.status for item in store.revisions("sd3-attention")] == ["yanked", "published"]
        with pytest.raises(NotFoundError, match="withdrawn"):
            store.get(Ref("sd3-attention", origin="library"))

    def test_a_restored_version_is_visible_again_and_can_be_withdrawn_again(self, store: Store) -> None:
        made = store.publish(record(), prepared(), origin="workspace", author="ann")
        seen = []
        kinds: tuple[EventKind, ...] = ("yanked", "restored", "yanked")
        for kind in kinds:
            store.append(Event(kind=kind, subject=made.sha256, author="ann", at_ns=1, detail={"origin": "workspace"}))
            seen.append(slugs(store))
        assert seen == [[], ["workspace:sd3-attention@1"], []]

    def test_a_record_with_every_version_yanked_gives_way_to_the_next_origin(self, store: Store) -> None:
        store.publish(record(text="shipped"), prepared(), origin="library", author="kb")
        mine = store.publish(record(text="mine"), prepared(), origin="workspace", author="ann")
        yank(store, mine.sha256)
        assert store.get(Ref("sd3-attention")).origin == "library"
        yank(store, store.get(Ref("sd3-attention")).sha256)
        assert slugs(store) == []
        with pytest.raises(NotFoundError, match="withdrawn"):
            store.get(Ref("sd3-attention"))

    def test_the_next_version_after_a_yanked_one_counts_on(self, store: Store) -> None:
        first = store.publish(record(text="1"), prepared(), origin="workspace", author="ann")
        yank(store, first.sha256)
        second = store.publish(record(text="2"), prepared(), origin="workspace", author="ann")
        assert (second.n, second.parent) == (2, first.sha256)

    def test_events_keep_their_order_and_subject(self, store: Store) -> None:
        made = store.publish(record(), prepared(), origin="workspace", author="ann")
        other = store.publish(record("other"), prepared(), origin="workspace", author="ann")
        used = store.append(Event(kind="used", subject=made.sha256, author="bob", at_ns=-1, detail={"gain": 0.25, "why": "试"}))
        assert [event.kind for event in store.events(made.sha256)] == ["published", "used"]
        assert store.events(made.sha256)[-1] == used
        assert [event.subject for event in store.events()] == [made.sha256, other.sha256, made.sha256]
        assert [event.id for event in store.events()] == sorted({event.id for event in store.events()})

    def test_an_event_about_nothing_is_not_found(self, store: Store) -> None:
        with pytest.raises(NotFoundError):
            yank(store, "0" * 64)

    @pytest.mark.parametrize(
        ("kinds", "status"),
        [
            ((), "published"),
            (("used",), "published"),
            (("verified",), "verified"),
            (("verified", "stale"), "stale"),
            (("verified", "stale", "verified"), "verified"),
            (("verified", "verification_withdrawn"), "published"),
            (("deprecated", "verified"), "deprecated"),
            (("verified", "deprecated", "restored"), "verified"),
        ],
    )
    def test_the_status_follows_the_events(self, store: Store, kinds: tuple[str, ...], status: str) -> None:
        made = store.publish(record(), prepared(), origin="workspace", author="ann")
        for kind in kinds:
            store.append(Event(kind=kind, subject=made.sha256, author="ann", at_ns=1))  # type: ignore[arg-type]  # an EventKind each
        assert [item.status for item in store.summaries()] == [status]

    # Filters

    def test_summaries_filter_by_kind_and_tier(self, store: Store) -> None:
        store.publish(record("a", kind="card"), prepared(), origin="workspace", author="ann")
        store.publish(record("b", provenance="measured"), prepared(), origin="workspace", author="ann")
        assert [item.ref.slug for item in store.summaries(kinds=("card", "case"))] == ["a"]
        assert [item.ref.slug for item in store.summaries(min_provenance="simulated")] == ["b"]

    def test_candidates_pass_every_exact_filter(self, store: Store) -> None:
        a3, template = case(family="A3", model_type="llm"), Template(slug="t", name=Text(), description=Text(), checks=(Check(cause="io"),))
        made = {
            "a2": record("a2", cases=[case(family="A2", model_type="diffusion")], provenance="simulated"),
            "a3": record("a3", cases=[a3, case("bubble", "A3")]),
            "both": record("both", cases=[a3, case("bubble", "unknown")]),
            "card": record("card", kind="card"),
            "case": record("case", kind="case", cases=[a3]),
            "template": record("template", kind="template", template=template),
        }
        for item in made.values():
            store.publish(item, prepared(), origin="workspace", author="ann")

        def found(query: CaseQuery) -> list[str]:
            return sorted(item.ref.slug for item in store.candidates(query))

        assert found(CaseQuery()) == ["a2", "a3", "both", "card", "template"]
        assert found(every()) == sorted(made)
        assert found(every(kinds=("case", "card"))) == ["card", "case"]
        assert found(every(soc_families=("A2",))) == ["a2", "both", "card", "template"]
        assert found(every(model_types=("llm",))) == ["a3", "both", "case", "template"]
        assert found(every(causes=("bubble", "io"))) == ["a3", "both", "template"]
        assert found(every(min_provenance="simulated")) == ["a2"]
        assert found(every(causes=("bubble",), soc_families=("A2",), model_types=("llm",))) == ["both"]
        assert found(every(causes=("bubble' OR 1=1 --",))) == []

    def test_only_the_newest_version_is_filtered(self, store: Store) -> None:
        store.publish(record(cases=[case(family="A2")]), prepared(), origin="workspace", author="ann")
        store.publish(record(cases=[case(family="A3")]), prepared(), origin="workspace", author="ann")
        assert slugs(store, every(soc_families=("A2",))) == []

    # Search data

    def test_postings_carry_count_and_length(self, store: Store) -> None:
        store.publish(record("a"), prepared(tokens={"x": 2, "融合": 3}), origin="workspace", author="ann")
        store.publish(record("b"), prepared(tokens={"x": 1}), origin="workspace", author="ann")
        ids = {item.ref.slug: item.id for item in store.summaries()}
        assert store.postings(["x", "融合", "absent", "x"]) == {
            "x": (Posting(ids["a"], 2, 5), Posting(ids["b"], 1, 1)),
            "融合": (Posting(ids["a"], 3, 5),),
            "absent": (),
        }

    def test_vectors_come_once_each_in_commit_order(self, store: Store) -> None:
        store.publish(record("a"), prepared(vectors={"title": (1, 0), "body": (0, 1)}), origin="workspace", author="ann")
        middle = store.vectors_since(0, MODEL)
        store.publish(record("b"), prepared(vectors={"title": (0.5, 0.5)}), origin="workspace", author="ann")
        ids = {item.ref.slug: item.id for item in store.summaries()}
        assert (middle.fields, middle.dim, middle.generation) == (("title", "body"), 2, 1)
        assert struct.unpack("<2q", middle.ids) == (ids["a"], ids["a"])
        assert struct.unpack("<4f", middle.vectors) == (1, 0, 0, 1)
        delta = store.vectors_since(middle.generation, MODEL)
        assert (struct.unpack("<q", delta.ids), struct.unpack("<2f", delta.vectors)) == ((ids["b"],), (0.5, 0.5))
        nothing = store.vectors_since(delta.generation, MODEL)
        assert (nothing.ids, nothing.vectors, nothing.dim, nothing.generation) == (b"", b"", 2, delta.generation)
        assert store.vectors_since(0, "other").dim == 0

    def test_publishing_again_with_another_model_adds_its_vectors(self, store: Store) -> None:
        first = store.publish(record(), prepared(), origin="workspace", author="ann")
        seen = store.generation()
        again = store.publish(record(), prepared(vectors={"title": (1, 0, 0)}, model_id="toy@2"), origin="workspace", author="ann")
        assert again == first
        assert store.generation() > seen
        assert store.vectors_since(seen, "toy@2").dim == 3
        assert store.vectors_since(seen, MODEL).ids == b""

    def test_a_model_has_one_dimension(self, store: Store) -> None:
        store.publish(record("a"), prepared(), origin="workspace", author="ann")
        with pytest.raises(ConflictError, match=MODEL):
            store.publish(record("b"), prepared(vectors={"title": (1, 0, 0)}), origin="workspace", author="ann")

    def test_a_record_may_have_no_vectors(self, store: Store) -> None:
        store.publish(record(), prepared(vectors={}), origin="workspace", author="ann")
        assert store.vectors_since(0, MODEL).ids == b""
        assert len(store.summaries()) == 1

    def test_versions_are_found_by_the_ids_of_summaries(self, store: Store) -> None:
        for number in range(5):
            store.publish(record(f"r{number}"), prepared(), origin="workspace", author="ann")
        ids = [item.id for item in store.summaries()]
        assert {row: version.record.slug for row, version in store.versions(ids[1:3]).items()} == {ids[1]: "r1", ids[2]: "r2"}
        assert store.versions([]) == {}

    # State, order, closing

    def test_state_is_kept(self, store: Store, place: Place) -> None:
        assert store.state("library") is None
        store.set_state("library", "a")
        store.set_state("library", "b")
        again = place.open(writable=False)
        assert again.state("library") == "b"
        again.close()

    def test_a_store_has_an_identity(self, store: Store) -> None:
        assert store.state("identity")

    def test_every_write_advances_the_generation_by_one(self, store: Store) -> None:
        seen = [store.generation()]
        made = store.publish(record(), prepared(), origin="workspace", author="ann")
        seen.append(store.generation())
        yank(store, made.sha256)
        seen.append(store.generation())
        store.set_state("key", "value")
        seen.append(store.generation())
        assert seen == [0, 1, 2, 3]
        assert made.generation == 1

    def test_a_clock_that_runs_backwards_changes_no_order(self, place: Place) -> None:
        times = iter(range(1000, 0, -7))
        store = place.open(writable=True, clock=lambda: next(times))
        for text in "abcde":
            store.publish(record(text=text), prepared(), origin="workspace", author="ann")
        assert [version.record.body.en for version in store.history("sd3-attention")] == list("abcde")
        assert store.get(Ref("sd3-attention")).record.body.en == "e"
        ids = struct.unpack("<5q", store.vectors_since(0, MODEL).ids)
        assert list(ids) == sorted(set(ids))
        store.close()

    def test_a_reader_sees_what_was_committed_after_it_opened(self, store: Store, place: Place) -> None:
        reader = place.open(writable=False)
        assert slugs(reader) == []
        store.publish(record(), prepared(), origin="workspace", author="ann")
        assert slugs(reader) == ["workspace:sd3-attention@1"]
        reader.close()

    @pytest.mark.parametrize("writable", [True, False])
    def test_a_closed_store_refuses_every_call(self, store: Store, place: Place, writable: bool) -> None:
        closed = place.open(writable=writable)
        closed.close()
        calls: tuple[Callable[[], object], ...] = (
            closed.generation,
            closed.summaries,
            lambda: closed.get(Ref("a")),
            lambda: closed.set_state("a", "b"),
            lambda: closed.publish(record(), prepared(), origin="workspace", author="ann"),
        )
        for call in calls:
            with pytest.raises(StoreError):
                call()

    def test_a_reader_refuses_to_write(self, store: Store, place: Place) -> None:
        reader = place.open(writable=False)
        with pytest.raises(KbError, match="reading only"):
            reader.publish(record(), prepared(), origin="workspace", author="ann")
        reader.close()
