"""Graphs that came without a launch order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import UsageError
from kb.profile.simulated.graph import Elementwise, Operator, tensor
from kb.profile.simulated.ordering import launch_order


def relu(source: int, target: int) -> Elementwise:
    return Elementwise(f"Relu{source}", (tensor(source, (4,), "FLOAT16"),), (tensor(target, (4,), "FLOAT16"),))


@given(st.integers(1, 30), st.randoms())
def test_a_shuffled_chain_is_put_in_order(length: int, shuffler: random.Random) -> None:
    chain: list[Operator] = [relu(number, number + 1) for number in range(length)]
    mixed = list(chain)
    shuffler.shuffle(mixed)
    assert list(launch_order(mixed)) == chain


def test_an_order_that_holds_is_kept_and_work_in_place_is_no_cycle() -> None:
    operators = (relu(0, 1), relu(5, 6), relu(1, 1), relu(1, 2))
    assert launch_order(operators) == operators


def test_cyclic_and_empty_graphs_are_refused() -> None:
    with pytest.raises(UsageError, match="cyclic graph: Relu1, Relu2 wait"):
        launch_order((relu(0, 5), relu(1, 2), relu(2, 1)))
    with pytest.raises(UsageError, match="empty graph"):
        launch_order(())
