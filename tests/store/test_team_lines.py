"""Lines that break and writers that meet: nothing is published twice, nothing acknowledged is missing."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from store.examples import prepared, record
from store.servers import Server, TeamDatabase, running_server, team_database

from kb.domain.event import Event
from kb.domain.version import Ref
from kb.errors import ConflictError, StoreError
from kb.store.postgres import pool
from kb.store.postgres.address import Address
from kb.store.postgres.pool import ConnectionPool, connect
from kb.store.postgres.store import PostgresStore, open_store

WRITERS = 8


class Breaking:
    """A connection whose line breaks around a commit: ``before`` the server hears it, or after it was done."""

    def __init__(self, connection: psycopg.Connection[Any], breaks: list[str]) -> None:
        self._connection, self._breaks = connection, breaks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, text: Any, *values: Any, **more: Any) -> Any:
        if text == "COMMIT" and self._breaks:
            if self._breaks.pop() == "after":
                self._connection.execute("COMMIT")
            self._connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return self._connection.execute(text, *values, **more)


def breaking_store(url: str, breaks: list[str]) -> PostgresStore:
    def make(address: Address) -> Any:
        return Breaking(connect(address), breaks)

    return open_store(url, writable=True, connect=make)


@pytest.mark.parametrize("breaks", [["after"], ["before"], ["before", "after"], ["after", "after", "before"]])
def test_a_line_that_breaks_at_the_commit_publishes_once(team: TeamDatabase, breaks: list[str]) -> None:
    store = breaking_store(team.urls["ann"], list(breaks))
    made = store.publish(record("a"), prepared(), origin="team", author="ann", visibility="team")
    said = store.append(Event(kind="used", subject=made.sha256, author="ann", at_ns=1))
    assert [version.n for version in store.history("a")] == [made.n] == [1]
    assert [event.kind for event in store.events()] == ["published", "used"]
    assert store.events()[-1] == said
    store.close()


def test_a_publication_that_was_overtaken_while_its_line_was_down_is_found_again(team: TeamDatabase) -> None:
    other = open_store(team.urls["bob"], writable=True)

    class Overtaking(Breaking):
        def execute(self, text: Any, *values: Any, **more: Any) -> Any:
            try:
                return super().execute(text, *values, **more)
            except psycopg.OperationalError:
                other.publish(record("a", "newer"), prepared(), origin="team", author="bob", visibility="team")
                raise

    breaks = ["after"]
    store = open_store(team.urls["ann"], writable=True, connect=lambda address: Overtaking(connect(address), breaks))  # type: ignore[arg-type,return-value]  # a Connection by its methods
    made = store.publish(record("a", "mine"), prepared(), origin="team", author="ann", visibility="team")
    assert made.n == 1
    assert [version.record.body.en for version in store.history("a")] == ["mine", "newer"]
    other.close()
    store.close()


def test_writers_at_once_get_numbers_of_their_own(team: TeamDatabase) -> None:
    made: list[tuple[int, str]] = []

    def write(name: str) -> None:
        store = open_store(team.urls["ann"], writable=True)
        for number in range(10):
            version = store.publish(
                record("shared", f"{name} {number}"), prepared({f"{name}": 1}), origin="team", author=name, visibility="team"
            )
            made.append((version.n, version.sha256))
        store.close()

    threads = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = open_store(team.urls["bob"], writable=False)
    held = [(item.ref.n, item.sha256) for item in store.revisions("shared")]
    assert held == sorted(made)
    assert [n for n, _ in held] == list(range(1, 10 * WRITERS + 1))
    assert store.generation() == 10 * WRITERS
    assert [event.detail["n"] for event in store.events()] == list(range(1, 10 * WRITERS + 1))
    store.close()


def test_of_writers_on_one_parent_exactly_one_wins(team: TeamDatabase) -> None:
    first = open_store(team.urls["ann"], writable=True)
    parent = first.publish(record("a", "0"), prepared(), origin="team", author="ann", visibility="team").sha256
    results: list[str] = []

    def write(name: str) -> None:
        store = open_store(team.urls["bob"], writable=True)
        try:
            store.publish(record("a", name), prepared(), origin="team", author=name, visibility="team", expect_parent=parent)
            results.append("won")
        except ConflictError:
            results.append("conflict")
        store.close()

    threads = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(results) == {"won": 1, "conflict": 5}
    assert len(first.revisions("a")) == 2
    first.close()


def test_threads_share_a_pool_and_wait_for_a_place(team: TeamDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(team.urls["ann"], writable=True, connections=2)
    store.publish(record("a"), prepared(), origin="team", author="ann", visibility="team")
    threads = [threading.Thread(target=lambda: [store.get(Ref("a")) for _ in range(20)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    with psycopg.connect(team.admin_url, autocommit=True) as admin:
        names = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE usename LIKE 'ann%%' AND datname = %s", (team.name,)).fetchone()
    for thread in threads:
        thread.join()
    assert names is not None
    assert names[0] <= 2
    store.close()
    monkeypatch.setattr(pool, "BORROW_TIMEOUT_S", 0.1)
    small = ConnectionPool(Address(team.urls["ann"], "shown", team.name))
    with (
        small.transaction("BEGIN", "holding"),
        pytest.raises(StoreError, match="no connection became free"),
        small.transaction("BEGIN", "waiting"),
    ):
        pass
    small.close()


def test_an_idle_connection_the_server_dropped_is_replaced(team: TeamDatabase) -> None:
    store = open_store(team.urls["ann"], writable=True)
    store.publish(record("a"), prepared(), origin="team", author="ann", visibility="team")
    with psycopg.connect(team.admin_url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'ann%'")
    assert store.get(Ref("a")).n == 1
    store.close()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of this test's own: it is stopped under others' feet."""
    with running_server() as server:
        if server.restart is None:
            pytest.skip("a server of one's own is not restarted by tests")
        yield server


def test_a_server_restarted_in_mid_transaction_loses_and_repeats_nothing(own_server: Server) -> None:
    with team_database(own_server, {"ann": "member", "bob": "member"}) as team:
        made: list[tuple[int, str]] = []
        stop = threading.Event()
        failures: list[Exception] = []

        def write(name: str) -> None:
            store = open_store(team.urls[name], writable=True)
            number = 0
            try:
                while not stop.is_set():
                    number += 1
                    version = store.publish(record("shared", f"{name} {number}"), prepared(), origin="team", author=name, visibility="team")
                    made.append((version.n, version.sha256))
            except StoreError as error:
                failures.append(error)
            store.close()

        threads = [threading.Thread(target=write, args=(name,)) for name in ("ann", "bob")]
        for thread in threads:
            thread.start()
        restart = own_server.restart
        assert restart is not None
        for _ in range(2):
            wait_for(made, len(made) + 20)
            restart()
        wait_for(made, len(made) + 20)
        stop.set()
        for thread in threads:
            thread.join()
        store = open_store(team.urls["ann"], writable=False)
        held = [(item.ref.n, item.sha256) for item in store.revisions("shared")]
        assert failures == []
        assert held == sorted(made)
        assert [n for n, _ in held] == list(range(1, len(held) + 1))
        assert len(store.events()) == len(held) == store.generation()
        assert all(check.ok for check in store.examine())
        store.close()


def wait_for(made: list[tuple[int, str]], count: int) -> None:
    end = time.monotonic() + 60
    while len(made) < count and time.monotonic() < end:
        time.sleep(0.01)
    assert len(made) >= count
