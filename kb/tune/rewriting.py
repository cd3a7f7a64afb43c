"""Safe rewriting of a graph: rules change it, the result is checked against the original, and what fails is rolled back.

A rule may change how values are made, never which values leave the graph, what shape and type they have, or which weights are
read. Rules that would change the same operators are conflicts: the first keeps them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from kb.domain.text import Text
from kb.errors import UsageError
from kb.profile.simulated.compilation import compiled
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import Elementwise, Graph, Operator, Rearrangement, Tensor, VectorOperator
from kb.profile.simulated.options import Options

Rewrite = Callable[[Graph, Constants], Graph]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rewrite and what it is called in the tools: patterns of fusion switch files and of the tuning article."""

    id: str
    name: Text
    spellings: tuple[str, ...]
    rewrite: Rewrite


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule did. ``kept`` False: rolled back for ``problems``, or in conflict with ``against``."""

    rule: str
    kept: bool
    removed: int
    added: int
    problems: tuple[Text, ...] = ()
    against: tuple[str, ...] = ()


class Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    """The graph after all rules that were kept, and the account of each rule."""

    graph: Graph
    applied: tuple[Applied, ...]


def rewritten(graph: Graph, rules: Sequence[Rule], constants: Constants) -> Rewritten:
    """Apply ``rules`` in order. Each is validated on the graph it changed, and undone when it breaks anything.

    A rule that was tried after another had already changed the operators it matches in the original graph is reported as a
    conflict with it, whether or not it still found something to do.
    """
    own = {rule.id: _touched(graph, rule.rewrite(graph, constants)) for rule in rules}
    state, account = graph, list[Applied]()
    kept: list[str] = []
    for rule in rules:
        against = tuple(other for other in kept if own[rule.id] & own[other])
        after = rule.rewrite(state, constants)
        removed, added = _counts(state, after)
        problems = problems_of(graph, after)
        good = not problems and (removed > 0 or added > 0)
        account.append(Applied(rule=rule.id, kept=good, removed=removed, added=added, problems=problems, against=against))
        if good:
            state = after
            kept.append(rule.id)
    return Rewritten(graph=state, applied=tuple(account))


def problems_of(before: Graph, after: Graph) -> tuple[Text, ...]:
    """Why ``after`` may not take the place of ``before``; empty when it may."""
    found = [*_unmade(after), *_results(before, after), *_weights(before, after)]
    if not after.operators:
        found.append(Text("图变空了", "the graph became empty"))
    return tuple(found)


def _unmade(graph: Graph) -> list[Text]:
    """Values read before the only operator that makes them: the order is broken."""
    makers: dict[int, int] = {}
    for place, operator in enumerate(graph.operators):
        for value in operator.outputs:
            makers.setdefault(value.id, place)
    late = [
        operator.op_type
        for place, operator in enumerate(graph.operators)
        for value in operator.inputs
        if not value.weight and makers.get(value.id, -1) > place
    ]
    return [Text(f"{name} 读取尚未产生的值", f"{name} reads a value that is made later") for name in dict.fromkeys(late)]


def inputs_of(graph: Graph) -> dict[int, Tensor]:
    """Values that no operator makes, weights left out."""
    made = {value.id for operator in graph.operators for value in operator.outputs}
    return {value.id: value for operator in graph.operators for value in operator.inputs if not value.weight and value.id not in made}


def results_of(graph: Graph) -> dict[int, Tensor]:
    """Values that are made and that nobody in the graph reads: what leaves it."""
    read = {value.id for operator in graph.operators for value in operator.inputs}
    return {value.id: value for operator in graph.operators for value in operator.outputs if value.id not in read}


def _results(before: Graph, after: Graph) -> list[Text]:
    first, second = results_of(before), results_of(after)
    problems = []
    for name, value in first.items():
        if name not in second:
            problems.append(Text(f"结果 {list(value.shape)} 丢失", f"the result {list(value.shape)} is lost"))
        elif (second[name].shape, second[name].dtype) != (value.shape, value.dtype):
            problems.append(Text("结果的形状或类型变了", f"a result of {list(value.shape)} {value.dtype} has another shape or type"))
    foreign = set(inputs_of(after)) - set(inputs_of(before))
    if foreign:
        problems.append(Text(f"{len(foreign)} 个值不再有来源", f"{len(foreign)} values are no longer made by anybody"))
    return problems


def _weights(before: Graph, after: Graph) -> list[Text]:
    lost = _weight_ids(before) - _weight_ids(after)
    return [Text(f"{len(lost)} 个权重不再被读取", f"{len(lost)} weights are no longer read")] if lost else []


def _weight_ids(graph: Graph) -> set[int]:
    return {value.id for operator in graph.operators for value in operator.inputs if value.weight}


def _touched(before: Graph, after: Graph) -> frozenset[int]:
    """Places in ``before`` whose operators are gone or changed in ``after``."""
    left = Counter(_mark(operator) for operator in after.operators)
    places = []
    for place, operator in enumerate(before.operators):
        if left[_mark(operator)]:
            left[_mark(operator)] -= 1
        else:
            places.append(place)
    return frozenset(places)


def _counts(before: Graph, after: Graph) -> tuple[int, int]:
    """Operators gone and operators new."""
    first, second = (Counter(_mark(operator) for operator in graph.operators) for graph in (before, after))
    return sum((first - second).values()), sum((second - first).values())


def _mark(operator: Operator) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    return operator.op_type, tuple(value.id for value in operator.inputs), tuple(value.id for value in operator.outputs)


def _fuse_attention(graph: Graph, constants: Constants) -> Graph:
    return compiled(graph, Options(fused_attention=True), constants)


def _fuse_chains(graph: Graph, constants: Constants) -> Graph:
    return compiled(graph, Options(fused_elementwise=True), constants)


def _drop_round_trips(graph: Graph, _constants: Constants) -> Graph:
    """A cast or layout change whose result goes straight back: both kernels go when nobody reads what is between."""
    between = _reads_until_made_again(graph)
    kept: list[int] = []
    for place, operator in enumerate(graph.operators):
        if kept and _returns(graph.operators[kept[-1]], operator) and between[kept[-1]] == 1:
            kept.pop()
        else:
            kept.append(place)
    return Graph(tuple(graph.operators[place] for place in kept))


def _reads_until_made_again(graph: Graph) -> list[int]:
    """For each operator how many read its first result before somebody else makes a value of that identity."""
    reads = [0] * len(graph.operators)
    maker: dict[int, int] = {}
    for place, operator in enumerate(graph.operators):
        for name in {value.id for value in operator.inputs}:
            if name in maker:
                reads[maker[name]] += 1
        for value in operator.outputs:
            maker[value.id] = place
    return reads


def _returns(there: Operator, back: Operator) -> bool:
    if not isinstance(there, Elementwise | Rearrangement) or there.op_type not in ("Cast", "TransData") or back.op_type != there.op_type:
        return False
    return back.inputs[0].id == there.outputs[0].id and back.outputs[0].id == there.inputs[0].id


def _drop_repeats(graph: Graph, _constants: Constants) -> Graph:
    """An operator that makes once more what it just made from the same values."""
    kept: list[Operator] = []
    for operator in graph.operators:
        repeated = bool(kept) and _mark(kept[-1]) == _mark(operator) and not _in_place(operator)
        if not repeated:
            kept.append(operator)
    return Graph(tuple(kept))


def _in_place(operator: Operator) -> bool:
    return isinstance(operator, VectorOperator) and any(value.id == operator.outputs[0].id for value in operator.inputs)


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        rule.id: rule
        for rule in (
            Rule(
                id="drop_round_trips",
                name=Text("去掉往返的类型与格式转换", "no casts or layout changes there and back"),
                spellings=("transdatacastfusion", "transdata+transdata", "cast+cast", "castremovefusionpass", "transdatafusionpass"),
                rewrite=_drop_round_trips,
            ),
            Rule(
                id="drop_repeats",
                name=Text("去掉重复计算", "nothing computed twice"),
                spellings=("commonsubexpressionelimination", "cse", "commonsubexpressioneliminationpass"),
                rewrite=_drop_repeats,
            ),
            Rule(
                id="fuse_attention",
                name=Text("融合注意力", "fused attention"),
                spellings=("fuse_attention_layers", "matmul+softmax+matmul", "fusedattention", "flashattentionfusionpass"),
                rewrite=_fuse_attention,
            ),
            Rule(
                id="fuse_elementwise",
                name=Text("融合逐元素算子链", "fused chains of elementwise kernels"),
                spellings=("replace_gelu", "fast_gelu", "elementwisefusionpass", "ub_fusion", "ubfusion", "softmaxaddmul"),
                rewrite=_fuse_chains,
            ),
        )
    }
)


def rule_named(name: str) -> Rule | None:
    """The rule of an id or spelling (case, blanks and underscores ignored); None for a pattern that is not modelled."""
    wanted = _folded(name)
    return next((rule for rule in RULES.values() if wanted in {_folded(text) for text in (rule.id, *rule.spellings)}), None)


def _folded(text: str) -> str:
    return text.casefold().replace(" ", "").replace("_", "").replace('"', "")


def rules_named(names: Sequence[str]) -> tuple[Rule, ...]:
    """The rules of several names. Raises UsageError for one that is not modelled."""
    found = []
    for name in names:
        rule = rule_named(name)
        if rule is None:
            raise UsageError(f"no rewriting rule {name!r}", allowed=", ".join(RULES))
        found.append(rule)
    return tuple(dict.fromkeys(found))
