"""Job: the knowledge graph of a casebook: causes, strategies, models, chips, and what happened when they met."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal
from xml.sax.saxutils import escape, quoteattr

import msgspec

from kb.domain.case import Case, CaseContext, Outcome, RecordKind, Result
from kb.domain.catalogue import Catalogue
from kb.domain.provenance import Provenance, rank_of
from kb.domain.text import Lang, Text
from kb.domain.version import Version
from kb.workflow.casebook import Casebook

FORMAT: Final = "kb-knowledge-graph/1"
NodeKind = Literal["cause", "strategy", "model", "soc", "outcome"]
EdgeKind = Literal["addresses", "conflicts", "shows", "runs_on", "of", "against", "with", "on"]
RESULTS: Final[tuple[Result, ...]] = ("improved", "no_gain", "worse", "unknown")
_KINDS: Final[tuple[RecordKind, ...]] = ("recipe", "case")
"""Cards and templates repeat what recipes say: they would count a source twice."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A thing. Outcome nodes gather every outcome of one strategy against one cause on one model and chip family: how often each
    result came (``counts`` in the order of ``RESULTS``), the median ``gain_fraction`` where gains are known, the best tier, and
    the records behind it."""

    id: str
    kind: NodeKind
    name: Text
    counts: tuple[int, ...] = ()
    gain_fraction: float | None = None
    provenance: Provenance | None = None
    records: tuple[str, ...] = ()


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """A directed relation; ``weight`` counts the cases behind it, 0 for what the catalogue states."""

    source: str
    target: str
    kind: EdgeKind
    weight: int = 0


class KnowledgeGraph(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes by kind and id, edges by their ends; every end is a node."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def count(self, kind: NodeKind) -> int:
        """Nodes of a kind."""
        return sum(node.kind == kind for node in self.nodes)


class Told(msgspec.Struct, frozen=True):
    """One case of one record."""

    record: str
    case: Case


def knowledge_graph(casebook: Casebook, *, around: str = "", min_provenance: Provenance = "claimed") -> KnowledgeGraph:
    """The graph of every visible recipe and case. ``around`` keeps what is next to one node (its id, or the id of a cause,
    strategy or chip). Raises NotFoundError for an unknown one.
    """
    summaries = [item for item in casebook.store.summaries() if item.kind in _KINDS]
    versions = casebook.store.versions([item.id for item in summaries])
    whole = graph_of_cases(_told(versions.values()), casebook.catalogue, min_provenance=min_provenance)
    return _near(whole, around, casebook.catalogue) if around else whole


def _told(versions: Iterable[Version]) -> Iterator[Told]:
    for version in versions:
        yield from (Told(version.record.slug, case) for case in version.record.cases)


def graph_of_cases(told: Iterable[Told], catalogue: Catalogue, *, min_provenance: Provenance = "claimed") -> KnowledgeGraph:
    """The graph of some cases over the whole catalogue."""
    building = _Building({node.id: node for node in _catalogue_nodes(catalogue)})
    for edge in _catalogue_edges(catalogue):
        building.edges[edge] += 0
    for item in told:
        if item.case.cause in catalogue.causes:
            building.add(item, catalogue, min_provenance)
    return building.graph()


Ends = tuple[str, str, str, str]
"""Strategy, cause, model and chip of an outcome; "" = not stated."""
_ENDS: Final[tuple[EdgeKind, ...]] = ("of", "against", "with", "on")


class _Building:
    """A graph while cases are added to it."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self.nodes = nodes
        self.edges: Counter[tuple[str, str, EdgeKind]] = Counter()
        self.met: dict[Ends, list[tuple[str, Outcome]]] = {}

    def add(self, item: Told, catalogue: Catalogue, least: Provenance) -> None:
        """One case: where its cause shows, and its outcomes."""
        cause, model, soc = f"cause:{item.case.cause}", _model(item.case.context), _soc(item.case.context, catalogue)
        for node in (model, soc):
            if node is not None:
                self.nodes.setdefault(node.id, node)
        if model is not None:
            self.edges[model.id, cause, "shows"] += 1
        if model is not None and soc is not None:
            self.edges[model.id, soc.id, "runs_on"] += 1
        for outcome in item.case.outcomes:
            if outcome.strategy in catalogue.strategies and rank_of(outcome.provenance) >= rank_of(least):
                ends = f"strategy:{outcome.strategy}", cause, model.id if model else "", soc.id if soc else ""
                self.met.setdefault(ends, []).append((item.record, outcome))

    def graph(self) -> KnowledgeGraph:
        """Everything added, outcomes gathered, in order."""
        for ends, outcomes in self.met.items():
            node = _outcome(ends, outcomes)
            self.nodes[node.id] = node
            for end, kind in zip(ends, _ENDS, strict=True):
                if end:
                    self.edges[node.id, end, kind] += len(outcomes)
        made = (Edge(source=source, target=target, kind=kind, weight=weight) for (source, target, kind), weight in self.edges.items())
        return KnowledgeGraph(
            nodes=tuple(sorted(self.nodes.values(), key=lambda node: (node.kind, node.id))),
            edges=tuple(sorted(made, key=lambda edge: (edge.source, edge.target, edge.kind))),
        )


def _catalogue_nodes(catalogue: Catalogue) -> Iterator[Node]:
    yield from (Node(id=f"cause:{item.id}", kind="cause", name=item.name) for item in catalogue.causes.values())
    yield from (Node(id=f"strategy:{item.id}", kind="strategy", name=item.name) for item in catalogue.strategies.values())


def _catalogue_edges(catalogue: Catalogue) -> Iterator[tuple[str, str, EdgeKind]]:
    for strategy in catalogue.strategies.values():
        yield from ((f"strategy:{strategy.id}", f"cause:{cause}", "addresses") for cause in strategy.addresses if cause in catalogue.causes)
        yield from (
            (f"strategy:{strategy.id}", f"strategy:{other}", "conflicts") for other in strategy.conflicts if other in catalogue.strategies
        )


def _model(context: CaseContext) -> Node | None:
    name = context.model or context.model_type
    return None if not name else Node(id=f"model:{name}", kind="model", name=Text(name, name))


def _soc(context: CaseContext, catalogue: Catalogue) -> Node | None:
    known = catalogue.known_soc(context.soc) if context.soc else None
    if known is not None:
        return Node(id=f"soc:{known.id}", kind="soc", name=Text(known.name, known.name))
    if context.soc_family == "unknown":
        return None
    return Node(id=f"soc:family-{context.soc_family}", kind="soc", name=Text(f"{context.soc_family} 系列", f"family {context.soc_family}"))


def _outcome(ends: tuple[str, str, str, str], outcomes: Sequence[tuple[str, Outcome]]) -> Node:
    results = Counter(outcome.result for _, outcome in outcomes)
    gains = [outcome.gain_fraction for _, outcome in outcomes if outcome.gain_fraction is not None]
    counts = tuple(results[result] for result in RESULTS)
    said = ", ".join(f"{result} {count}" for result, count in zip(RESULTS, counts, strict=True) if count)
    return Node(
        id="outcome:" + "|".join(end for end in ends if end),
        kind="outcome",
        name=Text(said, said),
        counts=counts,
        gain_fraction=statistics.median(gains) if gains else None,
        provenance=_best(outcomes),
        records=tuple(dict.fromkeys(record for record, _ in outcomes)),
    )


def _best(outcomes: Sequence[tuple[str, Outcome]]) -> Provenance:
    tiers: list[Provenance] = [outcome.provenance for _, outcome in outcomes]
    return max(tiers, key=rank_of)


def _near(whole: KnowledgeGraph, around: str, catalogue: Catalogue) -> KnowledgeGraph:
    """The node, what it touches, and for outcomes that touch it their other ends too."""
    ids = {node.id for node in whole.nodes}
    center = around if around in ids else _resolved(around, ids, catalogue)
    first = {center} | {end for edge in whole.edges if center in (edge.source, edge.target) for end in (edge.source, edge.target)}
    outcomes = {node.id for node in whole.nodes if node.kind == "outcome" and node.id in first}
    kept = first | {edge.target for edge in whole.edges if edge.source in outcomes}
    return KnowledgeGraph(
        nodes=tuple(node for node in whole.nodes if node.id in kept),
        edges=tuple(edge for edge in whole.edges if edge.source in kept and edge.target in kept),
    )


def _resolved(name: str, ids: set[str], catalogue: Catalogue) -> str:
    for cause in catalogue.causes.values():
        if name in (cause.id, *cause.aliases):
            return f"cause:{cause.id}"
    for strategy in catalogue.strategies.values():
        if name in (strategy.id, *strategy.aliases):
            return f"strategy:{strategy.id}"
    for prefix in ("model:", "soc:"):
        if prefix + name in ids:
            return prefix + name
    return f"cause:{catalogue.cause(name).id}"


def graph_json(graph: KnowledgeGraph) -> bytes:
    """Nodes and edges as JSON, indented."""
    nodes = [{**msgspec.to_builtins(node), "counts": dict(zip(RESULTS, node.counts, strict=False))} for node in graph.nodes]
    return msgspec.json.format(msgspec.json.encode({"format": FORMAT, "nodes": nodes, "edges": graph.edges}), indent=1)


_KEYS: Final = (
    ("kind", "node", "string"),
    ("name", "node", "string"),
    ("gain_fraction", "node", "double"),
    ("provenance", "node", "string"),
    ("records", "node", "string"),
    *((result, "node", "long") for result in RESULTS),
    ("relation", "edge", "string"),
    ("weight", "edge", "long"),
)


def graph_ml(graph: KnowledgeGraph, lang: Lang) -> str:
    """GraphML, which Gephi, yEd and networkx read; names in one language."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines += [f'  <key id="{name}" for="{where}" attr.name="{name}" attr.type="{kind}"/>' for name, where, kind in _KEYS]
    lines.append('  <graph id="casebook" edgedefault="directed">')
    for node in graph.nodes:
        lines.append(f"    <node id={_quoted(node.id)}>")
        lines += [f'      <data key="{key}">{escape(_plain(value))}</data>' for key, value in _data(node, lang)]
        lines.append("    </node>")
    for edge in graph.edges:
        lines.append(f"    <edge source={_quoted(edge.source)} target={_quoted(edge.target)}>")
        lines.append(f'      <data key="relation">{edge.kind}</data><data key="weight">{edge.weight}</data>')
        lines.append("    </edge>")
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def _data(node: Node, lang: Lang) -> Iterator[tuple[str, str]]:
    yield "kind", node.kind
    yield "name", node.name.pick(lang)
    if node.gain_fraction is not None:
        yield "gain_fraction", repr(node.gain_fraction)
    if node.provenance is not None:
        yield "provenance", node.provenance
    if node.records:
        yield "records", ", ".join(node.records)
    yield from ((result, str(count)) for result, count in zip(RESULTS, node.counts, strict=False))


def _quoted(text: str) -> str:
    return quoteattr(_plain(text))


def _plain(text: str) -> str:
    """XML knows no control characters but these three."""
    return "".join(character for character in text if character >= " " or character in "\n\t\r")
