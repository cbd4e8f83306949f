"""Machines share the segments of their indexes: a new one loads what another one has built, and checks it first."""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

import recollect
from recollect.engine.erasures import Erasures
from recollect.engine.index.keeper import IndexKeeper
from recollect.ledger.commits import Branch
from recollect.memory import Memory
from recollect.stores.derived import sharing
from recollect.stores.derived.sharing import SegmentSharing
from recollect.stores.postgres import derived as shared
from recollect.stores.postgres.derived import PostgresSegments
from recollect.testing.loopback import core_of

pytestmark = pytest.mark.postgres
NAME = "sharing"
RECORDS = 1200
SECRET = "quixotically"
QUESTIONS = ("what is said about the harbour", "note 77", f"who said {SECRET}")


def machine(address: str, folder: Path) -> Memory:
    """Open the store on a machine with a cache folder of its own."""
    return recollect.open(f"{address.partition('&cache=')[0]}&cache={folder}", NAME, embedder="none")


def remember(memory: Memory, first: int = 0, count: int = RECORDS) -> None:
    memory.remember_all(
        [
            {"content": f"note {number} about the harbour and {number % 37}", "id": f"n{number}", "time": "2026-01-01"}
            for number in range(first, first + count)
        ]
    )


def built(address: str, folder: Path) -> None:
    """Build the index on a machine, and wait until it has shared it."""
    with machine(address, folder) as memory:
        memory.recall("harbour")


def started(memory: Memory) -> int:
    """Return how many indexes were built from the ledger."""
    return core_of(memory).keeper.use.started


def answers(memory: Memory) -> Any:
    return [[(hit.record.id, hit.score, hit.why) for hit in memory.recall(each, k=20)] for each in QUESTIONS]


def rows(dsn: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def segments(dsn: str, schema: str) -> list[tuple[Any, ...]]:
    return rows(dsn, f"SELECT seq, part FROM {schema}.segments ORDER BY seq, part")


@pytest.fixture
def filled(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a store whose index another machine has shared, in several parts."""
    monkeypatch.setattr(sharing, "PART_BYTES", 50_000)
    with machine(address, tmp_path / "one") as memory:
        remember(memory)
    built(address, tmp_path / "one")
    return address


@pytest.mark.parametrize("is_shared", [True, False], ids=["", "control"])
def test_a_new_machine_loads_what_another_one_has_built(
    is_shared: bool, filled: str, dsn: str, schema: str, tmp_path: Path
) -> None:
    assert len(segments(dsn, schema)) > 3
    if not is_shared:
        rows(dsn, f"DELETE FROM {schema}.segments")
    with recollect.open(tmp_path / "file.db", NAME, embedder="none") as file, machine(filled, tmp_path / "two") as two:
        remember(file)
        assert answers(two) == answers(file)
        assert two.root == file.root
        assert started(two) == (0 if is_shared else 1)
    assert list((tmp_path / "two").rglob("*.seg")), "it has a file of its own now"
    rows(dsn, f"DELETE FROM {schema}.segments")
    with machine(filled, tmp_path / "two") as two:
        two.recall("harbour")
        assert started(two) == 0


def test_loading_reads_no_records(filled: str, tmp_path: Path) -> None:
    with machine(filled, tmp_path / "two") as two:
        traffic = core_of(two).store.traffic  # type: ignore[attr-defined]
        two.count()
        before = traffic.round_trips
        two.recall("harbour", k=1)
        parts = traffic.round_trips - before
    assert 4 <= parts <= 20


def test_a_new_machine_catches_up_with_what_was_written_since(
    filled: str, dsn: str, schema: str, tmp_path: Path
) -> None:
    before = segments(dsn, schema)
    with machine(filled, tmp_path / "one") as one:
        one.remember(f"Ana said it {SECRET}", id="last", time="2026-01-02")
        one.forget("n3")
        one.recall("harbour")
        expected = answers(one)
    assert segments(dsn, schema) == before, "so few changes are not worth another segment"
    with machine(filled, tmp_path / "two") as two:
        assert answers(two) == expected
        assert started(two) == 0
        remember(two, RECORDS, 1100)
        two.recall("harbour")
    assert segments(dsn, schema)[0][0] > before[0][0], "so many are"
    with machine(filled, tmp_path / "three") as three:
        three.recall("harbour")
        assert started(three) == 0


def test_a_small_index_is_not_shared(address: str, dsn: str, schema: str, tmp_path: Path) -> None:
    with machine(address, tmp_path / "one") as memory:
        remember(memory, 0, 99)
    built(address, tmp_path / "one")
    assert segments(dsn, schema) == []


_FLIP = "UPDATE {{s}}.segments SET body = set_byte(body, {0}, get_byte(body, {0}) # 1)"
#: What happened to the rows, and what the log says of it.
DAMAGE = {
    "nothing": ("SELECT 1", ""),
    "a byte": ("UPDATE {s}.segments SET body = set_byte(body, 999, get_byte(body, 999) # 1) WHERE part = 1", "corrupt"),
    "the header": (
        "UPDATE {s}.segments SET body = set_byte(body, 99, get_byte(body, 99) # 1) WHERE part = 0",
        "corrupt",
    ),
    "a part in the middle": ("DELETE FROM {s}.segments WHERE part = 2", "truncated"),
    "the last part": ("DELETE FROM {s}.segments WHERE part = (SELECT max(part) FROM {s}.segments)", "truncated"),
    "the first part": ("DELETE FROM {s}.segments WHERE part = 0", "corrupt"),
    "an empty part": ("UPDATE {s}.segments SET body = '' WHERE part = 1", "truncated"),
    "another branch": (
        "UPDATE {s}.segments SET branch = (SELECT b.number FROM {s}.branches b JOIN {s}.namespaces n "
        "ON n.number = b.namespace WHERE n.name = 'other')",
        "another store",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_corrupt_segment_is_not_used_and_is_replaced(
    name: str, filled: str, dsn: str, schema: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    statement, reason = DAMAGE[name]
    with machine(filled, tmp_path / "one") as one:
        expected = answers(one)
        one.namespace("other").remember_all([f"another note {number}" for number in range(2 * RECORDS)])
    rows(dsn, statement.format(s=schema))
    asked = "other" if name == "another branch" else NAME
    with machine(filled, tmp_path / "two") as two:
        two.namespace(asked).recall("harbour")
        assert started(two) == (0 if name == "nothing" else 1)
        assert answers(two) == expected
    assert reason in caplog.text
    assert ("the index of" in caplog.text) is (name != "nothing")
    with machine(filled, tmp_path / "three") as three:
        three.namespace(asked).recall("harbour")
        assert started(three) == 0


def test_a_segment_of_another_history_or_of_other_rules_is_not_used(
    filled: str,
    dsn: str,
    schema: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(IndexKeeper, "_merge", lambda self, branch: None)  # nothing is replaced
    with monkeypatch.context() as patch:
        patch.setattr("recollect.stores.postgres.view.PostgresView.root_at", lambda self, branch, seq: b"another")
        with machine(filled, tmp_path / "two") as two:
            two.recall("harbour")
            assert started(two) == 1
    assert "the shared index of 'sharing' belongs to another history" in caplog.text
    rows(dsn, f"UPDATE {schema}.segments SET rules = 'those of a later release'")
    with machine(filled, tmp_path / "three") as three:
        three.recall("harbour")
        assert started(three) == 1
    with machine(filled, tmp_path / "one") as one:  # control: a file is enough
        one.recall("harbour")
        assert started(one) == 0


def without_rest(dsn: str, schema: str) -> bool:
    """Return whether no row has the erased word."""
    assert segments(dsn, schema)
    found = rows(dsn, f"SELECT count(*) FROM {schema}.segments WHERE position('{SECRET}'::bytea IN body) > 0")
    return bool(found[0][0] == 0)


def test_an_erasure_removes_the_segments_that_have_it(address: str, dsn: str, schema: str, tmp_path: Path) -> None:
    with machine(address, tmp_path / "one") as one:
        remember(one)
        one.remember(f"Ana said it {SECRET}", id="secret")
    built(address, tmp_path / "one")
    assert not without_rest(dsn, schema), "control"
    with machine(address, tmp_path / "two") as two:
        two.recall("harbour")
        erased = two.erase("secret")
        assert not erased.pending
    assert without_rest(dsn, schema)
    with machine(address, tmp_path / "three") as three:
        three.recall("harbour")
        assert started(three) == 0, "an index without it is there already"


def test_an_erasure_does_not_remove_the_new_index_before_it_is_shared(
    address: str, dsn: str, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned, share, clean = threading.Event(), SegmentSharing.share, Erasures._clean_machine

    def late(self: SegmentSharing, *args: Any) -> None:
        assert cleaned.wait(30)
        share(self, *args)

    def noted(self: Erasures, *args: Any) -> None:
        clean(self, *args)
        cleaned.set()

    with machine(address, tmp_path / "one") as one:
        remember(one)
        one.remember(f"Ana said it {SECRET}", id="secret")
        one.recall("harbour")
        monkeypatch.setattr(SegmentSharing, "share", late)
        monkeypatch.setattr(Erasures, "_clean_machine", noted)
        one.erase("secret")
    assert without_rest(dsn, schema)
    assert list((tmp_path / "one").rglob("*.seg"))


@pytest.mark.parametrize("is_conditional", [True, False], ids=["", "control"])
def test_a_machine_with_an_old_index_does_not_write_it_back(
    is_conditional: bool,
    address: str,
    dsn: str,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It has begun to write when another machine erases: after its last part, and before it looks."""
    with machine(address, tmp_path / "one") as one:
        remember(one)
        one.remember(f"Ana said it {SECRET}", id="secret")
        erased: list[bool] = []
        lock = shared.SharedTables.lock

        def locked_late(self: shared.SharedTables, session: Any, namespace: str) -> None:
            if not erased:
                erased.append(True)
                one.erase("secret")
            lock(self, session, namespace)

        if not is_conditional:
            monkeypatch.setattr(shared, "_erased_since", lambda branch, seq: f"{branch} + {seq} < 0")
        with machine(address, tmp_path / "two") as two, monkeypatch.context() as patch:
            patch.setattr(shared.SharedTables, "lock", locked_late)
            two.recall("harbour")
            core_of(two).keeper.close()  # it waits for the worker
        assert erased
        found = rows(dsn, f"SELECT count(*) FROM {schema}.segments WHERE position('{SECRET}'::bytea IN body) > 0")
        assert (found[0][0] == 0) is is_conditional
        assert "is not shared" not in caplog.text, "nothing is wrong with that"


def test_an_erasure_waits_for_rows_that_cannot_be_removed(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(self: PostgresSegments, branch: Branch) -> None:
        raise recollect.errors.StoreServerError("the server", "it does not answer")

    with machine(filled, tmp_path / "one") as one:
        with monkeypatch.context() as patch:
            patch.setattr(PostgresSegments, "remove_erased", refused)
            assert one.erase("n5").pending
        assert "an erasure is not complete yet" in caplog.text
        one.remember("another write finishes it")
        assert not core_of(one).erasures.pending


@pytest.mark.parametrize("call", ["read", "accepts", "write"])
def test_an_error_of_the_shared_tables_fails_no_recall_and_no_write(
    call: str, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_: object) -> None:
        raise recollect.errors.StoreServerError("the server", "it does not answer")

    monkeypatch.setattr(PostgresSegments, call, failing)
    if call == "write":
        monkeypatch.setattr(PostgresSegments, "accepts", lambda *_: True)
    with machine(filled, tmp_path / "one" if call != "read" else tmp_path / "two") as memory:
        assert memory.recall("harbour")
        memory.remember("still written")
    assert "which changes no result" in caplog.text
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]


def test_what_a_machine_deletes_is_loaded_again(filled: str, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "one")
    with machine(filled, tmp_path / "one") as one:
        one.recall("harbour")
        assert started(one) == 0
