"""A capture is called good only when nothing is missing that could hide a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kb.domain.soc import SocRef
from kb.domain.text import Text
from kb.profile.sources import load
from kb.report.diagnosis import diagnosis_document
from kb.report.health import health_document
from kb.report.markdown import MarkdownRenderer
from kb.session.builder import Strings
from kb.session.builder import session as made_session
from kb.session.builder import table as made_table
from kb.session.health import Health, assess, load_checks
from kb.session.meta import Capture, Missing, SessionMeta, Violation
from kb.session.schema import TABLES
from kb.session.session import Session
from kb.workflow.diagnose import diagnose_paths
from kb.workflow.location import shipped_catalogue

Columns = Mapping[str, Sequence[Any]]
KERNELS: Columns = {"start_ns": [0, 100], "duration_ns": [50, 50], "name": ["a", "b"], "op_type": ["A", "B"], "core": ["AI_CORE"] * 2,
           "stream": [2, 2], "step_id": ["1", "1"]}  # fmt: skip
TOTALS: Columns = {"step_id": ["1"], "computing_ns": [100], "comm_not_overlapped_ns": [0], "overlapped_ns": [0], "communication_ns": [0],
          "free_ns": [0], "stage_ns": [100], "bubble_ns": [0]}  # fmt: skip
STEPS: Columns = {"step_id": ["1"], "warmup": [0]}
META = SessionMeta(name="r0", origin="measured", capture=Capture(format="x"), rank=0, world_size=1, soc=SocRef(id="910b2"))


def session(tables: Mapping[str, Columns] | None = None, meta: SessionMeta = META) -> Session:
    strings = Strings()
    chosen: Mapping[str, Columns] = {"kernels": KERNELS, "step_trace": TOTALS, "steps": STEPS} if tables is None else tables
    return made_session(meta, [made_table(name, columns, strings) for name, columns in chosen.items()], strings)


def changed(**changes: Any) -> SessionMeta:
    return msgspec.structs.replace(META, **changes)


def said(health: Health) -> str:
    return " | ".join(reason.en for reason in health.reasons)


def test_a_complete_single_rank_is_good() -> None:
    health = assess([session()])
    assert (health.verdict, health.reasons, health.captured_ranks, health.world_size) == ("good", (), (0,), 1)
    assert (health.sessions[0].kernels, health.sessions[0].steps, health.sessions[0].overlapping) == (2, 1, 0)


@pytest.mark.parametrize("tables", [{}, {"counters": {"start_ns": [1], "name": ["a"], "value": [1.0]}}])
def test_neither_kernels_nor_totals_is_unusable(tables: Mapping[str, Columns]) -> None:
    health = assess([session(tables)])
    assert health.verdict == "unusable"
    assert "no kernels and no step totals" in said(health)


def test_no_session_at_all_is_unusable() -> None:
    assert assess([]).verdict == "unusable"


def test_one_usable_session_keeps_the_input_usable_but_never_good() -> None:
    health = assess([session(meta=changed(world_size=2)), session({}, changed(name="r1", rank=1, world_size=2))])
    assert health.verdict == "usable"
    assert "r1: no kernels and no step totals" in said(health)


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (changed(capture=Capture(format="x", dropped_rows=2)), "2 damaged rows"),
        (changed(violations=(Violation(oracle="a = b", detail="", difference_ns=9),)), "a = b"),
        (changed(soc=SocRef()), "the chip is unknown"),
        (changed(soc=SocRef(cores=20)), "the chip is unknown"),
        (changed(world_size=None), "world size is unknown"),
        (changed(world_size=8), "1 of 8 ranks"),
    ],
)
def test_what_is_unknown_or_damaged_is_never_good(meta: SessionMeta, reason: str) -> None:
    health = assess([session(meta=meta)])
    assert health.verdict == "usable"
    assert reason in said(health)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"step_trace": TOTALS, "steps": STEPS}, "no kernels, only step totals"),
        ({"kernels": KERNELS}, "no complete step"),
        ({"kernels": KERNELS, "steps": STEPS}, "1 incomplete steps: 1"),
        ({"kernels": {**KERNELS, "duration_ns": [150, 50]}, "step_trace": TOTALS}, "1 kernels overlap"),
        ({"kernels": {**KERNELS, "duration_ns": [-1, 50]}, "step_trace": TOTALS}, "1 negative durations"),
    ],
)
def test_gaps_in_the_tables_are_reasons(tables: Mapping[str, Columns], reason: str) -> None:
    health = assess([session(tables)])
    assert health.verdict == "usable"
    assert reason in said(health)


def test_kernels_of_different_streams_may_overlap() -> None:
    tables = {"kernels": {**KERNELS, "duration_ns": [150, 50], "stream": [2, 3]}, "step_trace": TOTALS}
    assert assess([session(tables)]).sessions[0].overlapping == 0


def test_without_streams_overlap_is_unknown() -> None:
    tables = {"kernels": {name: values for name, values in KERNELS.items() if name != "stream"}, "step_trace": TOTALS}
    assert assess([session(tables)]).sessions[0].overlapping is None


def test_a_marked_step_with_begin_and_end_is_complete_without_totals() -> None:
    steps = {**STEPS, "start_ns": [0], "end_ns": [200]}
    assert assess([session({"kernels": KERNELS, "steps": steps})]).verdict == "good"


def test_the_same_rank_twice_is_no_whole_cluster() -> None:
    meta = changed(world_size=2)
    health = assess([session(meta=meta), session(meta=meta)])
    assert health.verdict == "usable"
    assert "more than once: 0" in said(health)
    assert "1 of 2 ranks" in said(health)


def test_ranks_that_disagree_about_the_world_are_reported() -> None:
    assert "different world sizes" in said(assess([session(meta=changed(world_size=2)), session(meta=changed(rank=1, world_size=4))]))


def test_checks_without_their_data_are_listed_with_the_capture() -> None:
    meta = changed(missing=(Missing(what="host_ops", why=Text("", "no trace"), capture=Text("", "keep the trace")),))
    disabled = {check.check: check for check in assess([session(meta=meta)]).disabled}
    assert disabled["host_bound"].capture == (Text("", "keep the trace"),)
    assert disabled["pipe_utilization"].lacks == ("kernels.aic_mac_ratio",)
    assert "step_accounting" not in disabled
    assert "operator_causes" not in disabled


def test_a_check_one_rank_allows_is_not_disabled() -> None:
    disabled = {check.check for check in assess([session(), session({}, changed(rank=1))]).disabled}
    assert "operator_causes" not in disabled


def test_an_empty_column_disables_like_an_absent_one() -> None:
    tables = {"kernels": {**KERNELS, "op_type": [None, None]}}
    assert "operator_causes" in {check.check for check in assess([session(tables)]).disabled}


def test_checks_need_tables_and_columns_that_exist_and_speak_both_languages() -> None:
    for check in load_checks():
        assert check.name.zh
        assert check.name.en
        for need in check.needs:
            table, _, column = need.partition(".")
            assert not column or TABLES[table].column(column) is not None


def test_real_captures_are_judged_as_documented(shared: Path) -> None:
    folder = shared / "data" / "profiles" / "ascend"
    qwen = assess(load(folder / "qwen3-0.6b-train-pp2-dp2"))
    assert (qwen.verdict, qwen.captured_ranks, qwen.world_size) == ("usable", (0, 1, 2, 3), 4)
    assert [part.verdict for part in qwen.sessions] == ["good", "usable", "good", "usable"]
    cut = assess(load(folder / "formats-2023"))
    assert cut.sessions[0].dropped_rows == 1
    assert cut.verdict == "usable"


def test_ranks_that_communication_names_count_where_no_file_states_the_world(checkout: Path) -> None:
    health = assess(load(checkout / "tests" / "data" / "cnn-ddp-rank0"))
    assert (health.world_size, health.group_size, health.captured_ranks) == (None, 8, (0,))
    assert "its communication names 8 ranks, 1 of them captured" in said(health)
    shown = MarkdownRenderer().render(health_document(health, "en"))
    diagnosed = diagnosis_document(diagnose_paths([checkout / "tests" / "data" / "cnn-ddp-rank0"]).diagnosis, shipped_catalogue(), "en")
    assert "1 of 8 ranks captured" in shown
    assert "1 of ? ranks" not in shown + MarkdownRenderer().render(diagnosed)


def test_a_file_that_is_there_is_not_said_to_be_missing(checkout: Path) -> None:
    (part,) = assess(load(checkout / "tests" / "data" / "cnn-ddp-rank0")).sessions
    (why,) = [item.why.en for item in part.missing if item.what == "host_ops"]
    assert "holds any" in why
    assert "is here" not in why


def test_no_peer_named_gives_no_group() -> None:
    assert assess([session()]).group_size is None
