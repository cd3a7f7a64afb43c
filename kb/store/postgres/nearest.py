"""Nearest records in the database: exact among those that pass the filters, approximate only where that was measured to be as good."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from pgvector import Vector
from psycopg import sql

from kb.store.postgres.migrations import SCHEMA
from kb.store.postgres.pool import Connection

APPROXIMATE_FROM: Final = 500_000
"""Vectors of one model from which an index is considered: below, reading them all takes tens of milliseconds and misses nothing."""
WANTED_RECALL: Final = 0.99
NEIGHBOURS: Final = 10
SAMPLED: Final = 50
"""Stored vectors asked for their neighbours when recall is measured."""
_OVERFETCH: Final = 8
"""Vectors fetched for one record wanted: a record has several."""
_SEARCH_WIDTH: Final = 400
"""hnsw.ef_search."""

_EXACT: Final = """
SELECT e.version_id, max(-(e.vector <#> %(vector)s)) AS score FROM embedding e
WHERE e.model_id = %(model_id)s AND e.version_id = ANY (ARRAY({passing}))
GROUP BY e.version_id ORDER BY score DESC, e.version_id LIMIT %(k)s
"""
# The view ``head`` with what is known about the session as parameters, so that an index finds the few rows wanted.
_HEADS: Final = """
SELECT h.version_id FROM heads h {version} WHERE h.audience = ANY (%(audiences)s)
  AND NOT EXISTS (SELECT FROM heads m WHERE m.audience = %(mine)s AND m.slug = h.slug AND h.audience <> %(mine)s) {wanted}
"""
_VERSION: Final = "JOIN version v ON v.id = h.version_id"
_FACET: Final = " AND h.version_id IN (SELECT version_id FROM facet WHERE name = '{name}' AND value = ANY (%({key})s))"
_FACETS: Final = {"families": "family", "model_types": "model_type", "causes": "cause"}
_SESSION: Final = b"SELECT mine(), shared(), set_config('enable_bitmapscan', 'off', true), set_config('random_page_cost', '1.1', true)"
"""Vectors lie in order of their records and everything asked often is in memory: look up, never read all or sort pages."""
Found = tuple[tuple[int, float], ...]
Asked = tuple[str, dict[str, Any]]


class Considered(msgspec.Struct, frozen=True, kw_only=True):
    """``recall`` at 10 under the filter where it was worst; None where no index was tried."""

    model_id: str
    vectors: int
    kept: bool
    recall: float | None = None


def nearest(connection: Connection, vector: Vector, model_id: str, filters: Mapping[str, Any], k: int) -> Found:
    """The ``k`` records with the largest inner product, best first, ties by row id; filters come before ranking."""
    asked = _asked(connection, vector, model_id, filters, k)
    return _approximate(connection, *asked) if has_index(connection, model_id) else _exact(connection, *asked)


def _asked(connection: Connection, vector: Vector, model_id: str, filters: Mapping[str, Any], k: int) -> Asked:
    """The question for the row ids that pass ``filters``, as ``kb.store.reading.filters_of`` gives them, and all parameters."""
    row = connection.execute(_SESSION).fetchone()
    mine, shared = row[:2] if row else ("", "")
    values = {"vector": vector, "model_id": model_id, "k": k, "mine": mine, "audiences": [mine, shared], "tier": filters["tier"]}
    given = [key for key in (*_FACETS, "kinds") if filters[key] is not None]
    values |= {key: msgspec.json.decode(filters[key]) for key in given}
    wanted = "".join(_FACET.format(name=_FACETS[key], key=key) for key in given if key in _FACETS)
    of_version = (" AND v.tier >= %(tier)s" if filters["tier"] else "") + (" AND v.kind = ANY (%(kinds)s)" if "kinds" in given else "")
    return _HEADS.format(version=_VERSION if of_version else "", wanted=wanted + of_version), values


def _exact(connection: Connection, passing: str, values: Mapping[str, Any]) -> Found:
    """Every vector of the records that pass is read."""
    return tuple(connection.execute(_EXACT.format(passing=passing).encode(), values, binary=True).fetchall())


def has_index(connection: Connection, model_id: str) -> bool:
    """Whether an approximate index of this model was kept."""
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{SCHEMA}.{index_name(model_id)}",)).fetchone()
    return bool(row and row[0])


def index_name(model_id: str) -> str:
    """Name of a model's approximate index."""
    return f"embedding_hnsw_{hashlib.sha256(model_id.encode()).hexdigest()[:16]}"


def consider(connection: Connection, filters: Sequence[Mapping[str, Any]], *, at_least: int = APPROXIMATE_FROM,
             wanted: float = WANTED_RECALL) -> tuple[Considered, ...]:  # fmt: skip
    """For each model: build an index where there are many vectors, measure its recall under every filter, keep it only where the
    worst one is good enough. An administrator's job, within the caller's transaction."""
    models = connection.execute("SELECT model_id, count(*), min(dim) FROM embedding GROUP BY model_id ORDER BY model_id").fetchall()
    return tuple(_considered(connection, model_id, count, dim, filters, at_least, wanted) for model_id, count, dim in models)


def _considered(connection: Connection, model_id: str, count: int, dim: int, filters: Sequence[Mapping[str, Any]], at_least: int,
                wanted: float) -> Considered:  # fmt: skip
    name = sql.Identifier(SCHEMA, index_name(model_id))
    connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(name))
    if count < at_least:
        return Considered(model_id=model_id, vectors=count, kept=False)
    connection.execute(
        sql.SQL("CREATE INDEX {} ON embedding USING hnsw ((vector::vector({})) vector_ip_ops) WHERE model_id = {}").format(
            sql.Identifier(index_name(model_id)), sql.Literal(dim), sql.Literal(model_id)
        )
    )
    recall = min(_recall(connection, model_id, chosen) for chosen in filters)
    if recall < wanted:
        connection.execute(sql.SQL("DROP INDEX {}").format(name))
    return Considered(model_id=model_id, vectors=count, kept=recall >= wanted, recall=recall)


def _recall(connection: Connection, model_id: str, filters: Mapping[str, Any]) -> float:
    """Share of the exact neighbours that the index finds too, over vectors spread through the store."""
    rows = connection.execute(
        "SELECT vector FROM embedding WHERE model_id = %s ORDER BY md5(id::text) LIMIT %s",
        (model_id, SAMPLED),
    ).fetchall()
    hit = total = 0
    for (vector,) in rows:
        asked = _asked(connection, vector, model_id, filters, NEIGHBOURS)
        truth = {row_id for row_id, _ in _exact(connection, *asked)}
        hit += len(truth & {row_id for row_id, _ in _approximate(connection, *asked)})
        total += len(truth)
    return hit / total if total else 1.0


def _approximate(connection: Connection, passing: str, values: Mapping[str, Any]) -> Found:
    connection.execute(
        "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true), "
        "set_config('enable_sort', 'off', true)",
        (str(_SEARCH_WIDTH),),
    )
    # Model and width stand in the text, not in parameters: only so does the planner see that the partial index applies.
    text = sql.SQL(
        "WITH near AS MATERIALIZED (SELECT e.version_id, e.vector::vector({dim}) <#> %(vector)s::vector({dim}) AS distance "
        "FROM embedding e WHERE e.model_id = {model} AND e.version_id = ANY (ARRAY({passing})) "
        "ORDER BY e.vector::vector({dim}) <#> %(vector)s::vector({dim}) LIMIT {wide}) "
        "SELECT version_id, max(-distance) AS score FROM near GROUP BY version_id ORDER BY score DESC, version_id LIMIT %(k)s"
    ).format(
        passing=sql.SQL(passing),
        dim=sql.Literal(values["vector"].dimensions()),
        model=sql.Literal(values["model_id"]),
        wide=sql.Literal(_OVERFETCH * values["k"]),
    )
    rows = connection.execute(text, values, binary=True).fetchall()
    connection.execute("SELECT set_config('enable_sort', 'on', true)")
    return tuple(rows)
