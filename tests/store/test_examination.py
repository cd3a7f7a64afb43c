"""Each kind of damage is named by its own check, and by no other; only derived rows are repaired."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from store.examples import case, prepared, record

from kb.domain.event import Event
from kb.errors import StoreError
from kb.store.backup import require_sound
from kb.store.examination import examine
from kb.store.migrations import guard_names
from kb.store.sqlite import open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    store = open_store(path, writable=True)
    for text in ("1", "2"):
        made = store.publish(record(text=text, cases=[case()]), prepared(), origin="workspace", author="ann")
    store.publish(record("other", cases=[case("bubble")]), prepared(), origin="library", author="kb")
    store.append(Event(kind="used", subject=made.sha256, author="ann", at_ns=1))
    store.close()
    return path


def wrong(path: Path) -> dict[str, bool]:
    """Names of the checks that fail, and whether a repair may mend them."""
    connection = sqlite3.connect(path)
    found = {item.name: item.repairable for item in examine(connection) if not item.ok}
    connection.close()
    return found


def spoil(path: Path, *statements: str) -> None:
    """Change rows behind the guards' back, and put the guards in again."""
    connection = sqlite3.connect(path)
    guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, text in guards:
        connection.execute(text)
    connection.commit()
    connection.close()


def test_a_sound_store_has_nothing_wrong(path: Path) -> None:
    assert wrong(path) == {}


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("UPDATE content SET body = CAST(replace(body, 'fused', 'fuzed') AS BLOB)", "contents"),
        ("UPDATE version SET n = 7 WHERE n = 2", "versions"),
        ("UPDATE version SET parent = NULL WHERE n = 2", "versions"),
        ("DELETE FROM event WHERE kind = 'published' AND id = 1", "versions"),
        ("DELETE FROM posting WHERE rowid IN (1) OR (token = 'attention' AND version_id = 1)", "words"),
        ("UPDATE facet SET value = 'elsewhere' WHERE name = 'cause' AND version_id = 1", "filters"),
        ("UPDATE counter SET generation = 1", "generation"),
        ("DELETE FROM head", "heads"),
        ("UPDATE head SET version_id = 1 WHERE slug = 'sd3-attention'", "heads"),
        ("UPDATE version SET sha256 = (SELECT sha256 FROM version WHERE id = 3) WHERE id = 1", "versions"),
    ],
)
def test_damage_is_named(path: Path, statement: str, name: str) -> None:
    spoil(path, statement.replace("rowid IN (1) OR ", ""))
    assert name in wrong(path)


def test_a_lost_guard_is_named(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"DROP TRIGGER {min(guard_names())}")
    connection.close()
    assert wrong(path) == {"guards": False}


def test_only_heads_can_be_repaired_and_are(path: Path) -> None:
    spoil(path, "DELETE FROM head")
    assert wrong(path) == {"heads": True}
    store = open_store(path, writable=True)
    store.rebuild_heads()
    assert [str(item.ref) for item in store.summaries()] == ["workspace:sd3-attention@2", "library:other@1"]
    store.close()
    assert wrong(path) == {}


def test_damaged_pages_are_an_error_or_named(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(8192, len(data), 4096):
        data[at + 8 : at + 60] = b"\xff" * 52
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        require_sound(path)
