"""References, slugs, canonical bytes and tiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kb.domain.canonical import canonical, content_hash, parse_record
from kb.domain.case import Case, CaseContext
from kb.domain.provenance import TIERS, Origin, Provenance, capped, rank_of, weakest
from kb.domain.quantity import Quantity
from kb.domain.record import Record, checked_slug
from kb.domain.text import Text
from kb.domain.version import Ref, parse_ref
from kb.errors import ContentError, UsageError

_RECORD = Record(kind="recipe", slug="one", title=Text("一", "one"), summary=Text("概要", "summary"), body=Text("正文", "body"))


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("sd3", Ref("sd3")),
        ("sd3@2", Ref("sd3", 2)),
        ("library:sd3@12", Ref("sd3", 12, "library")),
        (" team:sd3 ", Ref("sd3", None, "team")),
    ],
)
def test_a_reference_names_slug_version_and_origin(text: str, ref: Ref) -> None:
    assert parse_ref(text) == ref
    assert parse_ref(str(ref)) == ref


@pytest.mark.parametrize("text", ["", "@1", "sd3@", "sd3@0", "sd3@x", "elsewhere:sd3", "a@1@2"])
def test_what_is_no_reference_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(UsageError, match="SLUG@N"):
        parse_ref(text)


@pytest.mark.parametrize("slug", ["", "-a", "a-", "A", "a b", "a/b", "../a", "a" * 97, "é", "a\n"])
def test_bad_slugs_are_refused(slug: str) -> None:
    with pytest.raises(UsageError):
        checked_slug(slug)


def test_a_record_reads_back_equal_with_the_same_hash() -> None:
    again = parse_record(canonical(_RECORD), source="x")
    assert again == _RECORD
    assert content_hash(again) == content_hash(_RECORD)


def test_equal_records_have_equal_bytes_whatever_the_type_of_their_numbers() -> None:
    whole, same = (replace(_RECORD, cases=(_case(value),)) for value in (50, 50.0))
    assert whole == same
    assert canonical(whole) == canonical(same) == canonical(parse_record(canonical(whole), source="x"))


def _case(value: float) -> Case:
    return Case(cause="c", context=CaseContext(metrics={"latency": Quantity(value, "ms")}))


def test_any_change_of_text_changes_the_hash() -> None:
    assert content_hash(replace(_RECORD, summary=Text("概要", "summary "))) != content_hash(_RECORD)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"kind":"novel"}', b'{"kind":"recipe","colour":1}'])
def test_a_broken_record_names_its_source(data: bytes) -> None:
    with pytest.raises(ContentError, match="somewhere"):
        parse_record(data, source="somewhere")


def test_a_newer_schema_says_upgrade() -> None:
    with pytest.raises(ContentError, match="upgrade"):
        parse_record(canonical(replace(_RECORD, schema=99)), source="x")


@given(st.sampled_from(TIERS), st.sampled_from(("measured", "simulated")))
def test_a_tier_never_rises_above_its_origin(tier: Provenance, origin: Origin) -> None:
    limited = capped(tier, origin)
    assert rank_of(limited) <= rank_of(tier)
    assert origin == "measured" or rank_of(limited) <= rank_of("simulated")


@given(st.lists(st.sampled_from(TIERS)))
def test_a_sum_of_evidence_is_as_strong_as_its_weakest(tiers: list[Provenance]) -> None:
    assert all(rank_of(weakest(*tiers)) <= rank_of(tier) for tier in tiers)
