"""A failover to a standby: a synchronous one loses nothing acknowledged, and what another one loses is noticed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.postgres.test_kills import lost

import recollect
from recollect.errors import CommitInDoubtError, ReadOnlyStoreError, RecollectError
from recollect.models.embedding.hashed import Hashed
from recollect.testing.loopback import core_of
from recollect.testing.postgres import PostgresServer
from recollect.testing.postgres_pair import Pair, has_replayed, reached

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]
_WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.stop()


class Writers:
    """Threads that remember until they are stopped, and what they were told of each note."""

    def __init__(self, address: str, count: int = 4) -> None:
        self.stored: set[str] = set()
        self.refused: set[str] = set()
        self.doubted: set[str] = set()
        self._address = address
        self._over = threading.Event()
        self._written = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._write, args=(name,)) for name in range(count)]
        for thread in self._threads:
            thread.start()

    def _write(self, name: int) -> None:
        with recollect.open(self._address, "failover", embedder="none", timeout=10) as memory:
            number = 0
            while not self._over.is_set():
                record_id, number = f"{name} {number}", number + 1
                try:
                    memory.remember(f"note {record_id}", id=record_id)
                    self.stored.add(record_id)
                    self._written.release()
                except CommitInDoubtError:
                    self.doubted.add(record_id)
                except RecollectError:
                    self.refused.add(record_id)

    def write(self, count: int) -> None:
        """Wait until so many more are acknowledged."""
        assert all(self._written.acquire(timeout=60) for _ in range(count))

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def test_a_failover_to_a_synchronous_standby_loses_nothing_acknowledged(pair: Pair, tmp_path: Path) -> None:
    pair.confirm()
    address = pair.address(tmp_path)
    writers = Writers(address)
    writers.write(200)
    pair.fail_over()
    writers.write(200)
    writers.stop()
    assert lost(address, "failover", writers.stored) == set()
    assert lost(address, "failover", writers.refused) == writers.refused, "what was refused is not there"


def test_a_failover_to_an_asynchronous_standby_that_lags_loses_commits_and_this_is_found(
    pair: Pair, tmp_path: Path
) -> None:
    address = pair.address(tmp_path)
    writers = Writers(address)
    writers.write(50)
    pair.standby.kill()
    writers.write(50)
    writers.stop()
    pair.primary.kill()
    pair.standby.start()
    pair.standby.execute("SELECT pg_promote(TRUE, 60)")
    assert lost(address, "failover", writers.stored)


def test_nodes_that_have_seen_lost_commits_say_so_and_serve_what_the_server_has(
    pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = pair.address(tmp_path)
    with (
        recollect.open(address, "lost", embedder="none") as first,
        recollect.open(address, "lost", embedder="none") as second,
    ):
        for number in range(5):
            first.remember(f"kept {number}")
        reached(lambda: has_replayed(pair))
        pair.standby.kill()
        for number in range(5):
            first.remember(f"gone {number}", id=f"gone {number}")
        assert second.get("gone 4") is not None
        assert len(second.recall("gone")) == 5
        pair.primary.kill()
        pair.standby.start()
        pair.standby.execute("SELECT pg_promote(TRUE, 60)")
        for memory in (first, second):
            assert memory.seq == 5
            assert memory.get("gone 4") is None
            assert {hit.record.content for hit in memory.recall("gone kept")} == {f"kept {each}" for each in range(5)}
            assert core_of(memory).store.facts()["lost_commits"] == 5
        assert caplog.text.count("has lost commits of 'lost': 10 was seen, and the newest one is now 5") == 2
        # Numbers of pages that are gone are used again: each node must read those that the other one has written.
        for number in range(6):
            (first, second)[number % 2].remember(f"new {number}")
        assert first.check() == second.check() == []
        with recollect.open(f"{pair.standby.dsn}&cache={tmp_path / 'other'}", "lost", embedder="none") as other:
            assert first.root == second.root == other.root
            assert first.count() == other.count() == 11


def test_a_standby_is_read_and_is_written_to_once_it_is_promoted(pair: Pair, tmp_path: Path) -> None:
    with recollect.open(f"{pair.primary.dsn}&cache={tmp_path / 'one'}", "both", embedder="none") as memory:
        memory.remember("first", id="first")
    reached(lambda: has_replayed(pair))
    with recollect.open(f"{pair.standby.dsn}&cache={tmp_path / 'two'}", "both", embedder="none") as memory:
        assert [hit.record.id for hit in memory.recall("first")] == ["first"]
        with pytest.raises(ReadOnlyStoreError, match="allows only reads"):
            memory.remember("second")
        assert memory.count() == 1
        pair.fail_over()
        memory.remember("second")
        assert memory.count() == 2
        assert memory.check() == []


def test_what_was_erased_after_lost_commits_leaves_the_machines_that_had_seen_them(pair: Pair, tmp_path: Path) -> None:
    address = pair.address(tmp_path / "one")
    with recollect.open(address, "erased", embedder=Hashed()) as first:
        first.remember("Ana said it quixotically", id="secret")
        reached(lambda: has_replayed(pair))
        pair.standby.kill()
        for number in range(5):
            first.remember(f"gone {number}")
        first.recall("quixotically")
        first.embed_all()
        vectors = core_of(first).vectors
        assert vectors is not None
        assert sum(count for _, count in vectors.store.models("erased")) == 6
        pair.primary.kill()
        pair.standby.start()
        pair.standby.execute("SELECT pg_promote(TRUE, 60)")
        with recollect.open(f"{pair.standby.dsn}&cache={tmp_path / 'two'}", "erased", embedder=Hashed()) as second:
            second.erase("secret")
        assert first.get("secret") is None
        assert sum(count for _, count in vectors.store.models("erased")) == 0


class standing_still:  # noqa: N801 - a context manager
    """Stop all processes of a server while the block runs."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def _send(self, number: signal.Signals) -> None:
        for process in self._server.processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def __enter__(self) -> None:
        self._send(signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        self._send(signal.SIGCONT)


def test_a_commit_whose_wait_for_a_standby_is_cancelled_is_in_doubt(pair: Pair, tmp_path: Path) -> None:
    """PostgreSQL says that it has committed, with a warning."""
    pair.confirm()
    told: list[object] = []
    with recollect.open(f"{pair.primary.dsn}&cache={tmp_path}", "doubt", embedder="none", timeout=1) as memory:
        memory.remember("first")

        def write() -> None:
            try:
                told.append(memory.remember("second", id="second"))
            except RecollectError as error:
                told.append(error)

        with standing_still(pair.standby):
            thread = threading.Thread(target=write)
            thread.start()
            reached(lambda: pair.primary.execute(_WAITING))
            pair.primary.execute(f"SELECT pg_cancel_backend(pid) FROM ({_WAITING}) waiting")
            thread.join()
        assert [type(each) for each in told] == [CommitInDoubtError]
        reached(lambda: not pair.primary.execute(_WAITING))
        memory.remember("third")
        assert memory.get("second") is not None
