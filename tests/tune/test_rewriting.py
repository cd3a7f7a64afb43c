"""Rewriting a graph: rules, validation, conflicts, roll back."""

from __future__ import annotations

import msgspec
import pytest

from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.errors import UsageError
from kb.profile.simulated.constants import Constants, load_constants
from kb.profile.simulated.graph import CubeOperator, FlashAttention, Graph
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.tune.entries import graph_of
from kb.tune.rewriting import RULES, Rule, problems_of, results_of, rewritten, rule_named, rules_named

CONSTANTS = load_constants()


def graph(shipped: Catalogue, model: str = "bert-base", **options: object) -> Graph:
    setup = Setup(model=model, soc=shipped.soc("910b2"), options=msgspec.convert(options, Options))
    return graph_of(setup)


def flop(graph: Graph) -> float:
    return sum(operator.flop for operator in graph.operators if isinstance(operator, CubeOperator | FlashAttention))


@pytest.mark.parametrize("model", ["bert-base", "sd3", "yolov8n", "resnet50", "qwen3-0.6b-decode", "flux"])
def test_every_rule_leaves_results_weights_and_arithmetic(shipped: Catalogue, model: str) -> None:
    before = graph(shipped, model)
    done = rewritten(before, tuple(RULES.values()), CONSTANTS)
    assert all(item.kept or not item.problems for item in done.applied)
    assert {name: value.shape for name, value in results_of(done.graph).items()} == {
        name: value.shape for name, value in results_of(before).items()
    }
    assert done.graph.weight_bytes() == before.weight_bytes()
    assert flop(done.graph) == flop(before)
    assert len(done.graph.operators) < len(before.operators)


def test_attention_becomes_one_kernel_a_layer(shipped: Catalogue) -> None:
    done = rewritten(graph(shipped), rules_named(["fuse_attention"]), CONSTANTS)
    assert sum(isinstance(operator, FlashAttention) for operator in done.graph.operators) == 12
    assert (done.applied[0].kept, done.applied[0].added) == (True, 12)


def test_needless_kernels_go_and_nothing_else(shipped: Catalogue) -> None:
    clean = graph(shipped)
    dirty = graph(shipped, extra_casts=2, layout_conversions=3, duplicates=4)
    done = rewritten(dirty, rules_named(["drop_round_trips", "drop_repeats"]), CONSTANTS)
    assert [item.kept for item in done.applied] == [True, True]
    assert sorted(operator.op_type for operator in done.graph.operators) == sorted(operator.op_type for operator in clean.operators)


def rule(name: str, change: object) -> Rule:
    def rewrite(graph: Graph, _constants: Constants) -> Graph:
        return Graph(change(graph.operators), graph.joins)  # type: ignore[operator]  # a function of operators

    return Rule(id=name, name=Text(name, name), spellings=(), rewrite=rewrite)


@pytest.mark.parametrize(
    ("name", "change", "word"),
    [
        ("loses the result", lambda operators: operators[:-1], "is lost"),
        ("runs backwards", lambda operators: tuple(reversed(operators)), "made later"),
        ("drops a maker", lambda operators: (*operators[:20], *operators[21:]), "no longer made"),
        ("empties", lambda _operators: (), "became empty"),
        (
            "forgets a weight",
            lambda operators: tuple(item for item in operators if item.op_type != "LayerNormV3"),
            "weights are no longer read",
        ),
        (
            "changes a shape",
            lambda operators: (
                *operators[:-1],
                msgspec.structs.replace(operators[-1], outputs=(msgspec.structs.replace(operators[-1].outputs[0], shape=(7,)),)),
            ),
            "another shape",
        ),
    ],
)
def test_a_rule_that_breaks_the_graph_is_rolled_back_and_the_rest_goes_on(shipped: Catalogue, name: str, change: object, word: str) -> None:
    before = graph(shipped)
    done = rewritten(before, (rule(name, change), *rules_named(["fuse_attention"])), CONSTANTS)
    broken, good = done.applied
    assert not broken.kept
    assert any(word in problem.en for problem in broken.problems), [problem.en for problem in broken.problems]
    assert good.kept
    assert done.graph == rewritten(before, rules_named(["fuse_attention"]), CONSTANTS).graph


def test_rules_on_the_same_operators_are_conflicts(shipped: Catalogue) -> None:
    before = graph(shipped, extra_casts=1)
    done = rewritten(before, rules_named(["fuse_elementwise", "drop_round_trips"]), CONSTANTS)
    assert done.applied[1].against == ("fuse_elementwise",)
    assert done.applied[0].against == ()


def test_nothing_to_do_is_not_kept(shipped: Catalogue) -> None:
    done = rewritten(graph(shipped, "resnet50"), rules_named(["fuse_attention"]), CONSTANTS)
    assert (done.applied[0].kept, done.applied[0].problems) == (False, ())


def test_a_graph_may_take_its_own_place(shipped: Catalogue) -> None:
    assert problems_of(graph(shipped), graph(shipped)) == ()


def test_names_of_the_tools_find_their_rules() -> None:
    assert rule_named('"MatMul + Softmax + MatMul"') is RULES["fuse_attention"]
    assert rule_named("fuse_attention_layers") is RULES["fuse_attention"]
    assert rule_named("SomethingElsePass") is None
    with pytest.raises(UsageError, match="no rewriting rule"):
        rules_named(["SomethingElsePass"])
