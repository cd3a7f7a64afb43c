"""Filtered vector search inside a team store, over many records put there by the administrator's bulk copy."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import numpy as np
import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from benchmarks.store_speed import records
from benchmarks.team_server import BenchDatabase
from kb.domain.canonical import canonical, content_hash
from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.provenance import rank_of
from kb.domain.record import Record
from kb.store.facets import facets
from kb.store.postgres.store import open_store

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

DIM = 512
MODEL = "random@512"
BATCH = 2000
RARE = 0.05
"""Share of records of the family asked for."""
QUERIES = 60
_TABLES = {
    "content": ("sha256", "body"),
    "version": ("id", "origin", "slug", "line", "n", "sha256", "kind", "provenance", "tier", "author", "created_ns", "visibility",
                "language_share", "length", "generation", "owner", "audience"),
    "heads": ("audience", "slug", "version_id"),
    "facet": ("name", "value", "version_id", "audience"),
    "embedding": ("version_id", "field", "model_id", "dim", "generation", "audience", "vector"),
}  # fmt: skip


def search_times(
    database: BenchDatabase, count: int, fields: int, catalogue: Catalogue, seed: int
) -> tuple[dict[str, object], list[float]]:
    """Fill the store with ``count`` records of ``fields`` random unit vectors each and ask for the nearest of one chip family."""
    started = time.perf_counter()
    first = fill(database.admin_url, count, fields, catalogue, seed)
    filled_s = time.perf_counter() - started
    store = open_store(database.url, writable=False)
    dice = np.random.default_rng(seed + 1)
    query = CaseQuery(kinds=(), soc_families=("A3",))
    passing = len(store.candidates(query))
    times: list[float] = []
    before = server_cpu_s(database)
    for _ in range(QUERIES):
        vector = dice.standard_normal(DIM).astype(np.float32)
        vector /= np.linalg.norm(vector)
        started = time.perf_counter()
        found = store.nearest(vector, MODEL, query, 10)
        times.append(time.perf_counter() - started)
    after = server_cpu_s(database)
    if [row_id for row_id, _ in found] != truth(count, fields, catalogue, seed, first, vector, len(found)):
        raise SystemExit("the database found other neighbours than a product over all vectors")
    store.close()
    settled = times[len(times) // 4 :]
    figures: dict[str, object] = {
        "filtered_search_p50_ms": round(1e3 * median(settled), 2),
        "filtered_search_max_ms": round(1e3 * max(settled), 2),
        "filtered_search_server_cpu_ms": None if before is None or after is None else round(1e3 * (after - before) / QUERIES, 2),
        "search_records": count,
        "search_vectors": count * fields,
        "search_dim": DIM,
        "search_passing": passing,
        "search_exact": True,
        "fill_s": round(filled_s, 1),
    }
    return figures, times


def server_cpu_s(database: BenchDatabase) -> float | None:
    """Processor seconds of the sessions of this run's login so far; None where the server is another machine's."""
    if urlsplit(database.admin_url).hostname not in (None, "localhost", "127.0.0.1", "::1"):
        return None
    with psycopg.connect(database.admin_url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE usename LIKE 'kb_bench%' AND datname = current_database()"
        ).fetchall()
    try:
        spent = [(Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split() for (pid,) in rows]
    except OSError:
        return None
    return sum(int(words[11]) + int(words[12]) for words in spent) / os.sysconf("SC_CLK_TCK")


def truth(count: int, fields: int, catalogue: Catalogue, seed: int, first: int, asked: Vectors, k: int) -> list[int]:
    """The answer by a plain product over the same vectors, drawn once more: they would fill the memory."""
    values, best = np.random.default_rng(seed), list[tuple[float, int]]()
    for number, item in enumerate(varied(count, catalogue, seed, random.Random(seed))):
        own = max(float(vector @ asked) for vector in drawn(values, fields))
        if item.cases[0].context.soc_family == "A3":
            best.append((-own, first + number))
    return [row_id for _, row_id in sorted(best)[:k]]


def drawn(values: np.random.Generator, fields: int) -> list[Vectors]:
    """The next ``fields`` random unit vectors."""
    vectors = [values.standard_normal(DIM).astype(np.float32) for _ in range(fields)]
    return [vector / np.linalg.norm(vector) for vector in vectors]


def fill(admin_url: str, count: int, fields: int, catalogue: Catalogue, seed: int) -> int:
    """Rows as publishing makes them, without words, which play no part in a vector search; the first row id."""
    values, dice = np.random.default_rng(seed), random.Random(seed)
    with psycopg.connect(admin_url) as connection:
        connection.execute("SET search_path = casebook, public")
        register_vector(connection)
        (first,) = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM version").fetchone() or (1,)
        batch: list[tuple[int, Record]] = []
        for number, item in enumerate(varied(count, catalogue, seed, dice)):
            batch.append((first + number, item))
            if len(batch) == BATCH or number == count - 1:
                copy(connection, batch, fields, values)
                batch = []
                print(f"filled {number + 1}/{count}", file=sys.stderr, end="\r")
        connection.execute("SELECT setval(pg_get_serial_sequence('version', 'id'), max(id)) FROM version")
        connection.execute("UPDATE counter SET generation = generation + 1")
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE casebook.version, casebook.heads, casebook.facet, casebook.embedding")
    print(file=sys.stderr)
    return int(first)


def varied(count: int, catalogue: Catalogue, seed: int, dice: random.Random) -> Iterator[Record]:
    """Grown cases, one in twenty of the rare family."""
    for item in records(count, catalogue, seed, "grown"):
        family = "A3" if dice.random() < RARE else "A2"
        context = msgspec.structs.replace(item.cases[0].context, soc_family=family)
        yield msgspec.structs.replace(item, slug=f"v{item.slug}", cases=(msgspec.structs.replace(item.cases[0], context=context),))


def copy(
    connection: psycopg.Connection[tuple[object, ...]], batch: list[tuple[int, Record]], fields: int, values: np.random.Generator
) -> None:
    now = (connection.execute("SELECT generation + 1 FROM counter").fetchone() or (1,))[0]
    rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in _TABLES}
    for row_id, item in batch:
        sha256 = content_hash(item)
        rows["content"].append((sha256, canonical(item)))
        rows["version"].append((row_id, "team", item.slug, "", 1, sha256, item.kind, item.provenance, rank_of(item.provenance), "bench", 1,
                                "team", 0.5, 0, now, "bench", "team"))  # fmt: skip
        rows["heads"].append(("team", item.slug, row_id))
        rows["facet"] += [(name, value, row_id, "team") for name, value in facets(item)]
        for place, vector in enumerate(drawn(values, fields)):
            rows["embedding"].append((row_id, f"f{place}", MODEL, DIM, now, "team", Vector(vector)))
    for table, columns in _TABLES.items():
        binary = " (FORMAT BINARY)" if table == "embedding" else ""
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN{binary}".encode()) as target:
            if binary:
                target.set_types(["int8", "text", "text", "int4", "int8", "text", "vector"])
            for row in rows[table]:
                target.write_row(row)
