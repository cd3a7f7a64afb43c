"""Writers that are killed, readers that never stop, caches that are spoilt: what is acknowledged must stay.

    python benchmarks/store_torture.py [--store URL] [--seconds N] [--acks N] [--seed N]

Phases, sharing the time: two writers, then four, each publishing as fast as it can and killed by SIGKILL at random moments;
searches while the index cache is written anew, cut, spoilt and deleted; a backup during writes. Ends with every check of
``kb doctor`` over the store. ``--store`` is a path or sqlite:///PATH, or the URL of a PostgreSQL administrator: then four and eight
writers at a time, in a database of this run's own, without a backup. Without it a temporary folder. The last line of standard output
is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import kb.store.writing  # noqa: F401  # before the forks, so that lives are short and kills land in the work
from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Publication
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Ref
from kb.embed.hashing import HashingEmbedder
from kb.index.cache import refresh
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.search.dense import load_vectors
from kb.search.prepare import prepare
from kb.search.query import search
from kb.store.backup import back_up, require_sound
from kb.workflow.casebook import open_place
from kb.workflow.workspace import Workspace, team_address

SHARED = "shared"
SEARCHES = 1000
GROUP = 12
"""Versions in one transaction, every other time."""
EMBEDDER = HashingEmbedder(64)


def record(slug: str, text: str) -> Record:
    return Record(kind="recipe", slug=slug, title=Text(zh="注意力没有融合", en="attention not fused"),
                  summary=Text(zh="摘要", en="summary"), body=Text(zh=f"正文 {text}", en=text))  # fmt: skip


def write(place: Workspace, log: Path, name: str) -> None:
    """Publish until killed: alternately one version and several in one transaction, on a slug all writers share and on ones of
    this writer's own. A line in ``log`` acknowledges each version, after its commit."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    store = open_place(place, writable=True)
    number = 0
    while True:
        number += 1
        items = [record(SHARED, f"{name} {number}")]
        if number % 2 == 0:
            items += [record(f"{name}-{place % 3}", f"{name} {number} {place}") for place in range(GROUP - 1)]
        made = store.publish_all(
            [Publication(record=item, prepared=prepare(item, EMBEDDER), origin="workspace", author=name) for item in items]
        )
        os.write(handle, "".join(f"{each.version.record.slug} {each.version.n} {each.version.sha256}\n" for each in made).encode())


def child(place: Workspace, log: Path, name: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        write(place, log, name)
    finally:
        os._exit(1)


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def killing(place: Workspace, log: Path, writers: int, seconds: float, acks: int, dice: random.Random) -> int:
    """Run ``writers`` at a time, each killed after a random life; until ``seconds`` and ``acks`` more acknowledgements are over."""
    end, goal, kills, born = time.monotonic() + seconds, lines(log) + acks, 0, 0
    alive: dict[int, float] = {}
    while time.monotonic() < end or lines(log) < goal:
        while len(alive) < writers:
            born += 1
            alive[child(place, log, f"w{writers}-{os.getpid()}-{born}")] = time.monotonic() + dice.uniform(0.05, 4.0)
        time.sleep(0.005)
        for pid in [pid for pid, until in alive.items() if time.monotonic() > until]:
            kills += reaped(pid)
            del alive[pid]
        if born % 20 == 0:
            print(f"{writers} writers: {lines(log)} acknowledged, {kills} killed", file=sys.stderr, end="\r")
    for pid in alive:
        kills += reaped(pid)
    print(file=sys.stderr)
    return kills


def reaped(pid: int) -> bool:
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def judged(place: Workspace, log: Path) -> tuple[int, int, int]:
    """Acknowledgements, those the store does not hold as acknowledged, and those given twice."""
    told = [line.split() for line in log.read_text().splitlines()]
    store = open_place(place, writable=False)
    held = {(slug, item.ref.n): item.sha256 for slug in {slug for slug, _, _ in told} for item in store.revisions(slug)}
    gaps = sum(len(store.revisions(slug)) != store.revisions(slug)[-1].ref.n for slug in {slug for slug, _, _ in told})
    store.close()
    lost = sum(held.get((slug, int(n))) != sha256 for slug, n, sha256 in told)
    twice = sum(count - 1 for count in Counter((slug, n) for slug, n, _ in told).values())
    return len(told), lost, twice + gaps


def spoil(folder: Path, dice: random.Random) -> str:
    """Damage one file of the cache."""
    files = sorted(path for path in folder.glob("*") if path.is_file())
    if not files:
        return "nothing"
    path = dice.choice(files)
    how = dice.choice(("flip", "cut", "delete", "empty"))
    size = path.stat().st_size
    if how == "delete":
        path.unlink()
    elif how in ("cut", "empty") or not size:
        os.truncate(path, dice.randrange(size) if how == "cut" and size else 0)
    else:
        with path.open("r+b") as file:
            file.seek(dice.randrange(size))
            file.write(bytes([dice.randrange(256)]))
    return how


def rebuilding(place: Workspace, folder: Path, until: int) -> int:
    """A process that writes the cache anew and spoils it, over and over, until killed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        dice, store = random.Random(until), open_place(place, writable=False)
        while True:
            refresh(store, folder, EMBEDDER.model_id)
            spoil(folder, dice)
    finally:
        os._exit(1)


def searching(place: Workspace, folder: Path, catalogue: Catalogue, count: int, log: Path) -> tuple[int, int]:
    """Searches that came back empty, and those whose answer changed, while caches come and go and a writer publishes."""
    store = open_place(place, writable=False)
    query = CaseQuery(text="attention not fused 注意力", limit=5)
    helpers = [rebuilding(place, folder, 1), child(place, log, f"beside-{os.getpid()}")]
    empty = wrong = 0
    for number in range(count):
        view = load_vectors(store, EMBEDDER, folder)
        answer = search(query, store=store, embedder=EMBEDDER, catalogue=catalogue, vectors=view)
        empty += not answer.hits
        if number % 50 == 0:
            truth = load_vectors(store, EMBEDDER)
            held = min(len(view.vectors), len(truth.vectors))
            wrong += not np.array_equal(view.vectors[:held], truth.vectors[:held])
            print(f"{number} searches", file=sys.stderr, end="\r")
    for pid in helpers:
        reaped(pid)
    store.close()
    return empty, wrong


def place_of(url: str, folder: Path) -> Workspace:
    """The workspace around a store in a file; a temporary one without a URL."""
    path = Path(url.removeprefix("sqlite:///")) if url else folder / "store.db"
    return Workspace(path.parent, store=str(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for the writers, both phases together")
    parser.add_argument("--acks", type=int, default=0, help="go on until so many acknowledgements, whatever the time")
    parser.add_argument("--searches", type=int, default=SEARCHES)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if team_address(options.store):
            from benchmarks.team_server import bench_database

            with bench_database(options.store) as database:
                result = torture(Workspace(folder, store=database.url), folder, options, (4, 8))
        else:
            result = torture(place_of(options.store, folder), folder, options, (2, 4))
    print(json.dumps({**result, "seconds": round(time.monotonic() - started, 1)}))
    sys.exit(bool(result["lost"] or result["duplicates"] or result["empty_answers"] or result["defects"]))


def torture(place: Workspace, folder: Path, options: argparse.Namespace, phases: tuple[int, int]) -> dict[str, object]:
    dice, log = random.Random(options.seed), folder / "acknowledged"
    catalogue = load_catalogue(library_root())
    kills = [killing(place, log, writers, options.seconds / 2, options.acks // 2, dice) for writers in phases]
    empty, wrong = searching(place, folder / "cache", catalogue, options.searches, log)
    if not place.team_url:
        backing_up(place, folder, log)
    acks, lost, duplicates = judged(place, log)
    store = open_place(place, writable=True)
    defects = [text for item in store.examine() for text in item.wrong]
    newest = store.get(Ref(SHARED)).n
    store.close()
    return {
        "writers": max(phases),
        "acks": acks,
        "lost": lost,
        "duplicates": duplicates,
        "empty_answers": empty,
        "wrong_vectors": wrong,
        "searches": options.searches,
        "kills": sum(kills),
        "versions_of_shared": newest,
        "defects": defects,
    }


def backing_up(place: Workspace, folder: Path, log: Path) -> None:
    """A backup while a writer publishes must be sound."""
    helper = child(place, log, "during-backup")
    time.sleep(0.5)
    back_up(place.database, folder / "backup.db")
    reaped(helper)
    require_sound(folder / "backup.db")


if __name__ == "__main__":
    main()
