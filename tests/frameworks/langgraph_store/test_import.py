"""The items of LangGraph's store in SQLite, imported, are those that our store returns."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.sqlite")

from langgraph.store.sqlite import SqliteStore

import recollect
from recollect.compat.langgraph import RecollectStore
from recollect.importers import import_path

ANA = ("users", "ana")
VALUES: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {
    (ANA, "seat"): {"text": "Ana prefers window seats", "n": [1, {"x": None}], "big": 2**60, "share": 1.5},
    (ANA, "tea"): {"text": "Ana drinks oolong", "": {}, "flag": True},
    (("users", "bob/x%2f"), "ключ"): {"t": "日本", "nul": "\x00"},
    (("users", "bob/x%2f"), "mail ana@example.com"): {},
    (("other",), ""): {"text": "an empty key"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that LangGraph's store has written."""
    with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        store.setup()
        for (namespace, key), value in VALUES.items():
            store.put(namespace, key, value, ttl=60 if key == "tea" else None)
        store.put(ANA, "gone", {"text": "expired"}, ttl=1e-6)
        store.put(ANA, "deleted", {"text": "deleted"})
        store.delete(ANA, "deleted")
    return tmp_path / "store.db"


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:") as memory:
        yield memory


def test_our_store_returns_the_items_with_their_times(path: Path, memory: recollect.Memory) -> None:
    report = import_path(memory, "langgraph", path)
    assert (report.created, report.expired, report.damaged) == (len(VALUES), 1, ())
    with SqliteStore.from_conn_string(str(path)) as theirs, RecollectStore(memory) as ours:
        for key, value in VALUES.items():
            found, wanted = ours.get(*key), theirs.get(*key)
            assert found is not None
            assert wanted is not None
            assert json.dumps(found.value) == json.dumps(value) == json.dumps(wanted.value)
            # Their times are texts without an offset, in UTC.
            times = [
                datetime.fromisoformat(str(each)).replace(tzinfo=UTC) for each in (wanted.created_at, wanted.updated_at)
            ]
            assert [found.created_at, found.updated_at] == times
        assert ours.list_namespaces() == sorted({namespace for namespace, _ in VALUES})
        assert {(each.namespace, each.key) for each in ours.search(())} == VALUES.keys()


def test_they_are_the_records_of_puts(path: Path, memory: recollect.Memory) -> None:
    import_path(memory, "langgraph", path)
    with recollect.open(":memory:") as other:
        put = RecollectStore(other)
        for (namespace, key), value in VALUES.items():
            put.put(namespace, key, value, ttl=60 if key == "tea" else None)

        def without_times(memory: recollect.Memory) -> dict[str, Any]:
            return {
                record.id: record.changed(
                    time=None,
                    expires=None,
                    metadata={name: each for name, each in record.metadata.items() if name != "created"},
                )
                for record in memory.find()
            }

        assert without_times(memory) == without_times(other)


def test_an_item_expires_when_it_would_have(path: Path, memory: recollect.Memory) -> None:
    import_path(memory, "langgraph", path)
    record = next(each for each in memory.find() if each.metadata["key"] == "tea")
    assert record.time is not None
    assert record.expires is not None
    assert math.isclose((record.expires - record.time).total_seconds(), 3600, abs_tol=2)  # `time` is in seconds


def test_a_put_after_the_import_is_newer_and_stays(path: Path, memory: recollect.Memory) -> None:
    import_path(memory, "langgraph", path)
    with RecollectStore(memory) as store:
        store.put(ANA, "seat", {"text": "Ana prefers aisle seats"})
        assert import_path(memory, "langgraph", path).differing == 1
        item = store.get(ANA, "seat")
        assert item is not None
        assert item.value == {"text": "Ana prefers aisle seats"}
        found = store.search(("users",), query="which seat should I book for Ana?")
        assert found[0].key == "seat"


def test_with_a_user_a_store_in_the_scope_of_the_user_returns_them(path: Path, memory: recollect.Memory) -> None:
    import_path(memory, "langgraph", path, defaults={"user": "ana"})
    assert len(RecollectStore(memory.scoped(user="ana")).search(())) == len(VALUES)
    assert RecollectStore(memory).search(()) == []
