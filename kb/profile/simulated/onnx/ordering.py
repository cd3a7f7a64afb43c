"""Launch order of a graph: every operator after those it reads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kb.errors import ContentError
from kb.profile.simulated.onnx.document import Node, OnnxGraph


def ordered(nodes: tuple[Node, ...], source: str) -> tuple[Node, ...]:
    """The nodes so that nobody reads what only a later one makes; the file's own order wherever it does.

    Raises ContentError naming the operators of a cycle, or two that make the same value.
    """
    makers: dict[str, int] = {}
    for place, node in enumerate(nodes):
        for name in filter(None, node.outputs):
            if name in makers:
                raise ContentError(f"{source}: {name!r} is made twice: by {nodes[makers[name]].label} and {node.label}")
            makers[name] = place
    needs = [{makers[name] for name in read(node) if name in makers} for node in nodes]
    if all(max(own, default=-1) < place for place, own in enumerate(needs)):
        return nodes
    users: list[list[int]] = [[] for _ in nodes]
    for place, own in enumerate(needs):
        for maker in own:
            users[maker].append(place)
    waiting = [len(own) for own in needs]
    ready = deque(place for place, count in enumerate(waiting) if not count)
    order: list[int] = []
    while ready:
        place = ready.popleft()
        order.append(place)
        for user in users[place]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if len(order) < len(nodes):
        left = [nodes[place].label for place, count in enumerate(waiting) if count]
        raise ContentError(
            f"{source}: the graph is cyclic: {len(left)} operators wait for each other, among them {', '.join(left[:3])}",
            do="check the model with onnx.checker and export it again",
        )
    return tuple(nodes[place] for place in order)


def read(node: Node) -> Iterator[str]:
    """Names a node reads, those its branches take from around them included."""
    yield from filter(None, node.inputs)
    for value in node.attributes.values():
        if isinstance(value, OnnxGraph):
            yield from _free(value)


def _free(graph: OnnxGraph) -> Iterator[str]:
    own = {name for node in graph.nodes for name in node.outputs} | set(graph.initialisers) | {info.name for info in graph.inputs}
    for node in graph.nodes:
        yield from (name for name in read(node) if name not in own)
    yield from (info.name for info in graph.outputs if info.name not in own)
