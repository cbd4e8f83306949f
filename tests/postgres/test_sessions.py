"""What threads, interruptions and a crashing server do to connections that are shared and lent again."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

import recollect
from recollect.errors import RecollectError, StoreIOError
from recollect.filters.tree import EVERYTHING
from recollect.ledger.commits import Branch
from recollect.stores.maintenance.copying import copy_store
from recollect.stores.postgres.session import Backend, Session
from recollect.stores.postgres.store import PostgresStore
from recollect.stores.postgres.wire import Wire
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.write_queue import WriteQueue
from recollect.testing.postgres import PostgresServer, create_store

pytestmark = pytest.mark.postgres
ANA = Branch("ana")
LATE = 2**60


@pytest.fixture
def store(address: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(address)) as store:
        yield store


def test_a_part_that_fails_undoes_no_part_of_another_thread(store: PostgresStore) -> None:
    """The first keeps the transaction open; the second and third wait to share it, and have sent nothing by its end."""
    with store.write(ANA) as transaction:
        transaction.set_setting("first/ana", "0")
    inside, go_on = threading.Event(), threading.Event()
    told: dict[str, str] = {}

    def first() -> None:
        with store.write(ANA, shared=True) as transaction:
            transaction.set_setting("one/ana", "1")
            inside.set()
            go_on.wait()

    def second() -> None:
        with store.write(ANA, shared=True) as transaction:
            transaction.set_setting("two/ana", "2")
        told["second"] = "stored"

    def third() -> None:
        with pytest.raises(ValueError, match="mine"), store.write(ANA, shared=True):
            raise ValueError("mine")
        told["third"] = "refused"

    queue: WriteQueue = store._writer("ana")._queue
    threads = [threading.Thread(target=work) for work in (first, second, third)]
    threads[0].start()
    inside.wait()
    for waiting, thread in enumerate(threads[1:], 1):
        thread.start()
        until = time.monotonic() + 60
        while queue.waiting < waiting:
            assert time.monotonic() < until
            threading.Event().wait(0.005)
    go_on.set()
    for thread in threads:
        thread.join()
    assert told == {"second": "stored", "third": "refused"}
    with store.read() as view:
        assert [view.setting(f"{name}/ana") for name in ("one", "two")] == ["1", "2"]


def test_rows_of_a_view_that_has_ended_disturb_no_later_one(store: PostgresStore, address: str) -> None:
    with recollect.open(address, "ana", embedder="none") as memory:
        memory.remember_all([f"fact {number}" for number in range(300)])
    with store.read() as view:
        left = view.select(ANA, EVERYTHING, order="id", now=LATE)
        next(left)
    with store.read() as view:
        rows = view.select(ANA, EVERYTHING, order="id", now=LATE)
        next(rows)
        left.close()  # type: ignore[attr-defined]
        assert len(list(rows)) == 299
    with store.read() as view:
        left = view.select(ANA, EVERYTHING, order="id", now=LATE)
        next(left)
    with store.write(ANA) as transaction:
        transaction.set_setting("kept/ana", "1")
        left.close()  # type: ignore[attr-defined]
    with store.read() as view:
        assert view.setting("kept/ana") == "1"


def test_a_value_that_cannot_be_sent_leaves_the_transaction_as_it_was(store: PostgresStore) -> None:
    with store.write(ANA) as transaction:
        with pytest.raises(RecollectError):
            transaction.setting("a\0b/ana")
        transaction.set_setting("kept/ana", "1")
        with store.read() as view:
            assert view.setting("kept/ana") is None, "it is not committed yet"
    with store.read() as view:
        assert view.setting("kept/ana") == "1"


def test_an_interrupted_exchange_closes_the_connection_and_frees_its_place(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Wire) -> None:
        raise KeyboardInterrupt

    with closing(PostgresStore(f"{address}&pool=1")) as store:
        with store.read() as view:
            assert view.setting("x") is None
        monkeypatch.setattr(Wire, "_flush", interrupted)
        with pytest.raises(KeyboardInterrupt), store.read() as view:
            view.setting("y")
        monkeypatch.undo()
        with store.read() as view:
            assert view.setting("x") is None


def test_a_record_that_was_erased_before_a_copy_is_remembered_again(address: str, tmp_path: Path) -> None:
    """Its version is there without its payload, and no commit names its id: the number must be looked up."""
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    with recollect.open(tmp_path / "a.db", "ana", embedder="none", clock=lambda: moment, zone="UTC") as memory:
        memory.remember("the secret word", id="secret", time=moment)
        memory.erase("secret")
    with closing(SqliteStore(tmp_path / "a.db", read_only=True)) as source, closing(PostgresStore(address)) as target:
        copy_store(source, target)
    with recollect.open(address, "ana", embedder="none", clock=lambda: moment) as memory:
        memory.remember("the secret word", id="secret", time=moment)
        record = memory.get("secret")
        assert record is not None
        assert record.content == "the secret word"
        assert memory.check() == []


def test_a_view_that_is_older_than_what_was_seen_is_no_loss(store: PostgresStore) -> None:
    bob = Branch("bob")
    with recollect.open(store.path, "bob", embedder="none") as memory:
        memory.remember("first")
        with store.read() as older:
            assert older.head(ANA).seq == 0  # it has begun
            memory.remember("second")
            with store.read() as newer:
                assert newer.head(bob).seq == 2
            assert older.head(bob).seq == 1
    assert store.facts()["lost_commits"] == 0


@pytest.mark.thorough
def test_a_crash_of_one_process_of_the_server_makes_no_lost_commit_look_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server recovers without a restart, and gives the number of the lost transaction to another one."""
    # WAL that is not synced is written late, so that the crash loses the transaction for certain.
    server = PostgresServer({"wal_writer_delay": "10000", "autovacuum": "off", "bgwriter_delay": "10000"}).start()
    real = Session.commit
    killed: list[Backend] = []
    try:
        address = f"{create_store(server.dsn)}&cache={tmp_path}"
        with (
            recollect.open(address, "ana", embedder="none") as memory,
            recollect.open(address, "bob", embedder="none") as other,
        ):
            memory.remember("first")
            other.remember("first")
            server.execute("CHECKPOINT")

            def commit(session: Session) -> None:
                if threading.current_thread().name == "victim" and not killed:
                    assert session.backend is not None
                    killed.append(session.backend)
                    os.kill(session.backend.pid, signal.SIGKILL)
                    _wait_for(server)
                    for number in range(3):
                        other.remember(f"another {number}")
                real(session)

            monkeypatch.setattr(Session, "commit", commit)
            told: list[object] = []

            def write() -> None:
                try:
                    told.append(memory.remember("the lost one", id="lost"))
                except RecollectError as error:
                    told.append(error)

            thread = threading.Thread(target=write, name="victim")
            thread.start()
            thread.join()
            [[status]] = server.execute(f"SELECT pg_xact_status('{killed[0].number}')")
            assert status == "committed", "the number is that of another transaction now"
            assert isinstance(told[0], StoreIOError)
            assert memory.get("lost") is None
            assert memory.check() == other.check() == []
    finally:
        server.stop()


def _wait_for(server: PostgresServer) -> None:
    until = time.monotonic() + 60
    recovered = False
    while not recovered:
        assert time.monotonic() < until
        threading.Event().wait(0.3)
        try:
            server.execute("SELECT 1")
            recovered = True
        except psycopg.OperationalError:
            pass
