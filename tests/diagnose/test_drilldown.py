from __future__ import annotations

from collections.abc import Iterator

import pytest
from diagnose.cases import hosted, one, with_type
from diagnose.factories import view_of
from diagnose.scenes import Scene, busy, product

from kb.diagnose.drilldown import at_levels, drill_down, paired
from kb.domain.drilldown import DrillNode
from kb.errors import NotFoundError


def nodes(root: DrillNode) -> Iterator[DrillNode]:
    yield root
    for child in root.children:
        yield from nodes(child)


def test_children_never_sum_to_more_than_their_parent_and_the_step_is_covered() -> None:
    overlapping = busy().kernel("Add", 500.0, at=10.0, stream=3).kernel("Mul", 100.0, gap=50.0)
    for scene in (overlapping, hosted(), with_type("TransData", 400.0)):
        root = drill_down(view_of(one(scene)[0])).root
        assert sum(child.time_ns for child in root.children) == root.time_ns
        for node in nodes(root):
            assert sum(child.time_ns for child in node.children) <= node.time_ns
            assert all(child.time_ns >= 0 for child in node.children)


def test_the_levels_follow_each_other_and_events_can_be_looked_up() -> None:
    root = drill_down(view_of(one(busy())[0])).root
    levels = {node.level for node in nodes(root)}
    assert levels == {"session", "module", "operator", "hardware", "event"}
    assert all(node.evidence for node in nodes(root) if node.level == "event")
    assert all(node.metrics for node in nodes(root) if node.level in ("operator", "hardware", "event"))


def test_module_scopes_name_the_innermost_module() -> None:
    scene = Scene()
    scene.host("nn.Module: Block_0", 0.0, 100.0, layer="python").host("nn.Module: Linear_1", 10.0, 30.0, layer="python")
    scene.launched("MatMulV3", 50.0, launch_at=15.0, core="AI_CORE").launched("Add", 20.0, launch_at=60.0)
    names = {child.name for child in drill_down(view_of(one(scene)[0])).root.children if child.children}
    assert names == {"Linear_1", "Block_0"}


def test_without_scopes_equal_layers_fall_together_by_their_products() -> None:
    scene = Scene()
    for _ in range(3):
        product(scene)
        scene.kernel("Add", 10.0)
    (module,) = [child for child in drill_down(view_of(one(scene)[0])).root.children if child.children]
    assert module.name.startswith("MatMulV3")
    assert {child.name for child in module.children} == {"MatMulV3", "Add"}


def test_two_trees_are_paired_by_name_with_the_change_at_every_node() -> None:
    first, second = (drill_down(view_of(one(with_type("TransData", spent))[0])).root for spent in (400.0, 100.0))
    both = paired(first, second)
    assert both.metrics["change"].value == -300.0
    changed = [node for node in nodes(both) if node.name == "TransData" and node.level == "operator"]
    assert sum(node.metrics["change"].value for node in changed) == -300.0


def test_a_target_may_be_the_attention_a_role_a_type_or_a_module() -> None:
    scene = busy().kernel("FlashAttentionScore", 300.0, core="MIX_AIC", gap=5.0)
    view = view_of(one(scene)[0])
    attention = drill_down(view, "attention_block").root
    assert attention.time_ns == 300_000
    assert {node.name for node in nodes(attention) if node.level == "operator"} == {"FlashAttentionScore"}
    products = drill_down(view, "matmul").root
    assert products.time_ns == drill_down(view, "MatMulV3").root.time_ns > 0
    with pytest.raises(NotFoundError, match="nothing of this step is called conv") as caught:
        drill_down(view, "conv_block")
    assert "FlashAttentionScore" in str(caught.value)


def test_levels_left_out_give_their_children_to_the_level_above() -> None:
    root = drill_down(view_of(one(busy())[0])).root
    short = at_levels(root, ("operator", "event"))
    assert {node.level for node in nodes(short)} == {"session", "operator", "event"}
    whole = sum(node.time_ns for node in nodes(root) if node.level == "operator")
    assert sum(node.time_ns for node in nodes(short) if node.level == "operator") == whole
