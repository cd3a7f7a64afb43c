"""How fast the store writes and reads.

    python benchmarks/store_speed.py [--store URL] [--count 10000] [--search-count 100000] [--embedder use] [--seed N] [--out rows.jsonl]

Publishing one record with its search data given and with embedding (median over ``--publishes``), importing ``--count`` records
from an export with embeddings, `kb show` of one of them in a new process, and the history of a record of 1,000 versions. On a server
(the URL of an administrator; the run makes and drops a database of its own) also the exact filtered vector search in the database
over ``--search-count`` records. ``t0_s`` is the time of ``python -c "import numpy"`` in the same run. The last line of standard output
is JSON; ``--out`` keeps every single time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import msgspec

from kb.domain.canonical import content_hash
from kb.domain.case import Case, CaseContext, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Publication
from kb.domain.quantity import Quantity
from kb.domain.record import Record
from kb.domain.text import Text
from kb.embed.choice import open_embedder
from kb.errors import UsageError
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.search.prepare import prepare
from kb.workflow.archive import FolderSource
from kb.workflow.casebook import Casebook, open_casebook, open_place
from kb.workflow.merge import import_from
from kb.workflow.transfer import MANIFEST, Manifest, VersionFile
from kb.workflow.workspace import Workspace, team_address

HISTORY = 1000
COLD = 9
ZH = (
    "注意力没有融合，中间结果来回写显存",
    "流水线各级不均，空泡很多",
    "数据加载跟不上，设备在等输入",
    "通信没有被计算掩盖，集合通信拖慢整步",
    "小算子受下发限制",
)
EN = (
    "attention is not fused and the score matrix goes through memory",
    "stages are uneven and the pipeline idles",
    "the loader is late and the device waits",
    "communication is exposed at the end of the step",
    "small kernels are bound by launches",
)


def records(count: int, catalogue: Catalogue, seed: int, prose: str) -> Iterator[Record]:
    """Records of two kinds. ``grown``: cases as they grow from runs, whose title and finding carry figures of their own and
    whose strategy texts repeat. ``distinct``: recipes of which no title, summary, finding, symptom or note is equal to another."""
    dice = random.Random(seed)
    causes, strategies = sorted(catalogue.causes), sorted(catalogue.strategies)
    for number in range(count):
        model, before = f"model-{dice.randrange(400)}-{dice.choice('abcdefgh')}", dice.randrange(50, 2000)
        english, chinese = (
            f"{model} run {number}: {'; '.join(dice.sample(EN, 3))}",
            f"{model} 第 {number} 次：{'，'.join(dice.sample(ZH, 3))}",
        )
        if prose == "grown":
            english, chinese = f"{model}: {dice.choice(EN)}, {before} ms", f"{model}：{dice.choice(ZH)}，{before} ms"
        title, finding = Text(zh=chinese, en=english), Text(zh=f"{chinese}，占一半", en=f"{english}, half of the step")
        own = prose == "distinct"
        outcome = Outcome(
            strategy=dice.choice(strategies),
            result="improved",
            metric="step_time",
            before=Quantity(before, "ms"),
            after=Quantity(before * 0.8, "ms"),
            note=Text(zh=f"{chinese}之后", en=f"afterwards {english}") if own else Text(),
        )
        case = Case(
            cause=dice.choice(causes),
            context=CaseContext(model=model, model_type="llm", soc_family="A2"),
            outcomes=(outcome,),
            finding=finding if own else title,
            symptoms=(Text(zh=f"{chinese}，很慢", en=f"slow: {english}"),) if own else (),
        )
        body = Text(zh=f"{chinese}\n\n" * 4, en=f"{english}.\n\n" * 4)
        yield Record(kind="recipe", slug=f"r{number}", title=title, summary=title, body=body, cases=(case,))


def export_of(items: Iterator[Record], folder: Path) -> None:
    """The records as `kb export` would write them."""
    folder.mkdir()
    (folder / MANIFEST).write_bytes(msgspec.json.encode(Manifest()))
    for item in items:
        place = folder / "workspace" / item.slug
        place.mkdir(parents=True)
        version = VersionFile(origin="workspace", n=1, sha256=content_hash(item), parent=None, author="bench", created_ns=1,
                              visibility="private", record=item)  # fmt: skip
        (place / "1.json").write_bytes(msgspec.json.encode(version, order="sorted"))


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def cold(words: list[str], environment: dict[str, str]) -> list[float]:
    return [timed(lambda: subprocess.run(words, env=environment, check=True, capture_output=True)) for _ in range(COLD)]


def progress(stage: str, done: int, total: int, /) -> None:
    print(f"{stage} {done}/{total}", file=sys.stderr, end="\r")


def publishing(book: Casebook, count: int, seed: int) -> tuple[list[float], list[float]]:
    """Seconds to publish a record whose search data is given, and from the record alone."""
    embedder = book.embedder()
    given, whole = [], []
    for item in records(count, book.catalogue, seed + 1, "distinct"):
        first = msgspec.structs.replace(item, slug=f"given-{item.slug}")
        data = prepare(first, embedder, book.catalogue)
        given.append(timed(lambda item=first, data=data: book.store.publish(item, data, origin="workspace", author="bench")))  # type: ignore[misc]
        second = msgspec.structs.replace(item, slug=f"whole-{item.slug}", summary=Text(zh=f"{item.summary.zh}。", en=f"{item.summary.en}."))
        whole.append(timed(lambda item=second: _published(book, item, embedder)))  # type: ignore[misc]
    return given, whole


def _published(book: Casebook, item: Record, embedder: object) -> None:
    data = prepare(item, embedder, book.catalogue)  # type: ignore[arg-type]  # an Embedder
    book.store.publish_all([Publication(record=item, prepared=data, origin="workspace", author="bench")])


def history(place: Workspace) -> tuple[float, float]:
    """Seconds to read the line of 1,000 versions, without and with their contents."""
    store = open_place(place, writable=True)
    template = next(records(1, load_catalogue(library_root()), 5, "distinct"))
    for first in range(0, HISTORY, 100):
        batch = [msgspec.structs.replace(template, slug="long", tags=(str(number),)) for number in range(first, first + 100)]
        store.publish_all([Publication(record=item, prepared=prepare(item, None), origin="workspace", author="bench") for item in batch])
    light = median(timed(lambda: store.revisions("long")) for _ in range(9))
    full = median(timed(lambda: store.history("long")) for _ in range(5))
    store.close()
    return light, full


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="", help="sqlite:///FOLDER/casebook.db or an admin's postgresql://…; default a temporary folder")
    parser.add_argument("--search-count", type=int, default=100_000, help="records of the filtered vector search, on a server")
    parser.add_argument("--fields", type=int, default=4, help="vectors of each of them")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--publishes", type=int, default=60)
    parser.add_argument("--embedder", default="use")
    parser.add_argument("--prose", choices=("grown", "distinct"), default="grown", help="see records()")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if team_address(options.store):
            result, rows = measured_on_server(options.store, Path(temporary), options)
        else:
            result, rows = measured(Workspace(home_of(options.store, Path(temporary))), Path(temporary), options)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(json.dumps(result))


def size_b(place: Workspace) -> int:
    """Bytes of the store on disk."""
    if not place.team_url:
        return place.database.stat().st_size
    import psycopg

    with psycopg.connect(place.team_url) as connection:
        (size,) = connection.execute("SELECT pg_database_size(current_database())").fetchone() or (0,)
    return int(size)


def home_of(url: str, temporary: Path) -> Path:
    if not url:
        return temporary / "home"
    path = Path(url.removeprefix("sqlite:///"))
    if path.name != "casebook.db":
        raise UsageError(f"--store {url}", allowed="sqlite:///FOLDER/casebook.db or postgresql://ADMIN@HOST/DATABASE", do="correct it")
    return path.parent


def measured_on_server(admin_url: str, temporary: Path, options: argparse.Namespace) -> tuple[dict[str, object], list[dict[str, object]]]:
    from benchmarks.team_search import search_times
    from benchmarks.team_server import bench_database

    with bench_database(admin_url) as database:
        place = Workspace(temporary / "home", store=database.url)
        result, rows = measured(place, temporary, options)
        catalogue = load_catalogue(library_root())
        more, times = search_times(database, options.search_count, options.fields, catalogue, options.seed)
    return {**result, **more}, [*rows, *({"what": "filtered_search_s", "seconds": value} for value in times)]


def measured(place: Workspace, temporary: Path, options: argparse.Namespace) -> tuple[dict[str, object], list[dict[str, object]]]:
    environment = {**os.environ, "KB_HOME": str(place.home), "KB_STORE": place.store, "KB_EMBEDDER": options.embedder}
    os.environ["KB_EMBEDDER"] = options.embedder
    with open_casebook(place, progress, writable=True) as book:
        open_embedder(options.embedder, cache=place.cache).encode_documents(["warm"])
        export_of(records(options.count, book.catalogue, options.seed, options.prose), temporary / "export")
        cpu, wall = time.process_time(), time.perf_counter()
        done = import_from(book, FolderSource(temporary / "export"), progress)
        import_s, import_cpu_s = time.perf_counter() - wall, time.process_time() - cpu
        given, whole = publishing(book, options.publishes, options.seed)
    print(file=sys.stderr)
    command = [sys.executable, "-c", "from kb_cli import main; main()", "show", "r1"]
    show, t0 = cold(command, environment), cold([sys.executable, "-c", "import numpy"], environment)
    light, full = history(place if place.team_url else Workspace(temporary, store=str(temporary / "history.db")))
    result: dict[str, object] = {
        "publish_prepared_p50_ms": round(1e3 * median(given), 2),
        "publish_p50_ms": round(1e3 * median(whole), 2),
        "import_10k_s": round(import_s * 10_000 / options.count, 1),
        "import_cpu_s": round(import_cpu_s, 1),
        "imported": done.versions,
        "prose": options.prose,
        "show_cold_s": round(median(show), 4),
        "show_cold_min_s": round(min(show), 4),
        "t0_s": round(median(t0), 4),
        "t0_min_s": round(min(t0), 4),
        "show_t0": round(median(show) / median(t0), 2),
        "history_1000_ms": round(1e3 * light, 2),
        "history_1000_with_contents_ms": round(1e3 * full, 2),
        "database_mb": round(size_b(place) / 1e6, 1),
    }
    named = (("publish_prepared_s", given), ("publish_s", whole), ("show_cold_s", show), ("t0_s", t0))
    return result, [{"what": name, "seconds": value} for name, values in named for value in values]


if __name__ == "__main__":
    main()
