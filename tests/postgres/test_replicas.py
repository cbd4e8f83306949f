"""Reads from a standby: new enough for whoever reads, or from the primary, and never silently older."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import served

import recollect
from recollect.errors import (
    InvalidArgumentError,
    ReadOnlyStoreError,
    StaleReadError,
    StoreBusyError,
    StoreServerError,
    UnsupportedError,
)
from recollect.ledger.commits import Branch
from recollect.server.tokens import add_entry, entry, new_token
from recollect.stores.freshness import required
from recollect.stores.postgres.session import Session
from recollect.testing.loopback import core_of
from recollect.testing.postgres import create_store
from recollect.testing.postgres_pair import Pair, reached

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def shared() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.stop()


@pytest.fixture
def pair(shared: Pair, request: pytest.FixtureRequest) -> Iterator[Pair]:
    yield shared
    replay(shared)


def pause(pair: Pair) -> None:
    """Let the standby receive and not replay."""
    pair.standby.execute("SELECT pg_wal_replay_pause()")
    reached(lambda: pair.standby.execute("SELECT 1 WHERE pg_get_wal_replay_pause_state() = 'paused'"))


def replay(pair: Pair) -> None:
    """Let the standby catch up."""
    if pair.standby.execute("SELECT 1 WHERE pg_is_in_recovery()"):
        pair.standby.execute("SELECT pg_wal_replay_resume()")
        newest = pair.primary.execute("SELECT pg_current_wal_lsn()::text")[0][0]
        reached(lambda: pair.standby.execute(f"SELECT 1 WHERE pg_last_wal_replay_lsn() >= '{newest}'"))


@contextmanager
def opened(pair: Pair, cache: Path, namespace: str = "n", **options: Any) -> Iterator[recollect.Memory]:
    address = f"{pair.primary.dsn}&cache={cache}"
    with recollect.open(address, namespace, embedder="none", read_from=pair.standby.dsn, **options) as memory:
        yield memory


def facts(memory: recollect.Memory) -> dict[str, Any]:
    return dict(core_of(memory).store.facts())


def test_reads_go_to_the_standby_and_writes_to_the_primary(pair: Pair, tmp_path: Path) -> None:
    with opened(pair, tmp_path, "both") as memory:
        for number in range(50):
            memory.remember(f"note {number}", id=str(number))
            assert memory.get(str(number)) is not None
            assert memory.recall(f"note {number}", 1)[0].record.id == str(number)
        replay(pair)
        before = facts(memory)
        assert memory.count() == 50
        assert memory.recall("note 7", 1)[0].record.id == "7"
        after = facts(memory)
        assert after["replica_reads"] >= before["replica_reads"] + 2
        assert after["replica_behind"] == before["replica_behind"]
        assert memory.check() == []


def test_what_this_process_wrote_is_read_although_the_standby_lags(pair: Pair, tmp_path: Path) -> None:
    with opened(pair, tmp_path, "lag") as memory:
        memory.remember("before", id="before")
        replay(pair)
        pause(pair)
        memory.remember("after", id="after")
        assert memory.get("after") is not None
        assert [each.id for each in memory.find()] == ["after", "before"]
        assert facts(memory)["replica_behind"] >= 2
        with recollect.open(f"{pair.standby.dsn}&cache={tmp_path / 'c'}", "lag", embedder="none") as standby:
            assert standby.get("after") is None  # so it was not the standby that answered


def test_what_another_process_wrote_is_read_by_who_states_it(pair: Pair, tmp_path: Path) -> None:
    with opened(pair, tmp_path / "a", "other") as one, opened(pair, tmp_path / "b", "other") as other:
        one.remember("before", id="before")
        replay(pair)
        assert other.count() == 1
        pause(pair)
        with required("other", 0) as seen:
            one.remember("after", id="after")
        assert seen.found == 2
        assert other.get("after") is None  # nothing says that it should be there
        with required("other", seen.found):
            assert other.get("after") is not None
        assert other.get("after") is not None  # this process has seen it now
        with required("other", 3), pytest.raises(StaleReadError, match="it lacks commits of 'other'"):
            other.get("after")


def test_a_view_waits_for_a_standby_that_is_about_to_have_it(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.stores.postgres.replica.WAIT_S", 60.0)
    with opened(pair, tmp_path, "wait") as memory:
        memory.remember("before")
        replay(pair)
        pause(pair)
        memory.remember("after", id="after")
        found: list[Any] = []
        reading = threading.Thread(target=lambda: found.append(memory.get("after")))
        reading.start()
        replay(pair)
        reading.join(60)
        assert found[0].content == "after"
        assert facts(memory)["replica_waits"] >= 1


def test_listeners_hear_commits_of_others_when_the_standby_has_them(pair: Pair, tmp_path: Path) -> None:
    with opened(pair, tmp_path / "a", "heard") as one, opened(pair, tmp_path / "b", "heard") as other:
        one.remember("first")
        replay(pair)
        came = threading.Event()
        with other.subscribe(since=0) as commits:
            assert next(commits).seq == 1
            pause(pair)
            one.remember("second")
            listening = threading.Thread(target=lambda: came.set() if next(commits) else None)
            listening.start()
            assert not came.wait(0.6)  # more than two looks at the standby, which does not have it
            replay(pair)
            assert came.wait(60)
            listening.join()


def test_a_standby_that_is_gone_is_left_out_and_used_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair()
    try:
        with opened(pair, tmp_path, "gone") as memory:
            memory.remember("before", id="before")
            replay(pair)
            assert memory.count() == 1
            pair.standby.kill()
            with caplog.at_level(logging.WARNING, "recollect"):
                for number in range(5):
                    memory.remember(f"note {number}")
                    assert memory.count() == number + 2
            said = [each.message for each in caplog.records if "the replica" in each.message]
            assert ["cannot be read, so the primary is" in each for each in said] == [True]
            pair.standby.start()
            replica = core_of(memory).store._replica  # type: ignore[attr-defined]
            reads = replica.reads
            replica._clock = lambda: 10.0**9
            replay(pair)
            assert memory.count() == 6
            assert replica.reads > reads
            with pytest.raises(StoreServerError):
                pair.primary.kill()
                memory.namespace("never seen").remember("it cannot be written")
            assert memory.count() == 6  # what was seen is on the standby
    finally:
        pair.stop()


def test_what_fails_in_the_middle_of_a_view_is_read_again_from_the_primary(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(pair, tmp_path, "middle") as memory:
        memory.remember("note", id="note")
        replay(pair)
        assert memory.get("note") is not None
        replica = core_of(memory).store._replica  # type: ignore[attr-defined]
        answered = Session.several
        for error in (StoreBusyError, StoreServerError):
            raised: list[Exception] = []

            def several(session: Session, statements: Any, error: Any = error, raised: Any = raised) -> Any:
                if session._path == replica.path and not session.begins:  # in the middle of a view
                    raised.append(error(session._path, "canceling statement due to conflict with recovery"))
                    raise raised[-1]
                return answered(session, statements)

            with monkeypatch.context() as patched:
                patched.setattr(Session, "several", several)
                found = memory.get("note")
            assert found is not None
            assert len(raised) == 1  # the thread then read the primary
            replica._of_thread.avoided_until = replica._down_until = 0.0


def test_a_view_of_two_memories_goes_to_the_primary_if_the_second_one_lags(pair: Pair, tmp_path: Path) -> None:
    with opened(pair, tmp_path / "a", "first") as one, opened(pair, tmp_path / "b", "first") as other:
        one.remember("note")
        one.namespace("second").remember("before")
        replay(pair)
        assert other.count() == other.namespace("second").count() == 1
        pause(pair)
        with required("second", 0) as seen:
            one.namespace("second").remember("after")
        engine = core_of(other)
        with engine.store.read() as view, required("second", seen.found), pytest.raises(StoreBusyError) as caught:
            assert view.head(Branch("first")).seq == 1
            view.head(Branch("second"))
        assert engine.store.renew(caught.value)  # so the engine repeats the operation
        with engine.store.read() as view, required("second", seen.found):
            assert (view.head(Branch("first")).seq, view.head(Branch("second")).seq) == (1, 2)


def test_a_read_does_not_wait_for_a_connection_of_the_standby(pair: Pair, tmp_path: Path) -> None:
    address = f"{pair.primary.dsn}&cache={tmp_path}"
    standby = f"{pair.standby.dsn}&pool=1"
    with recollect.open(address, "crowd", embedder="none", read_from=standby, timeout=60) as memory:
        memory.remember("note", id="note")
        replay(pair)
        store = core_of(memory).store
        with store.read() as view:
            assert view.head(Branch("crowd")).seq == 1
            found: list[Any] = []
            reading = threading.Thread(target=lambda: found.append(memory.get("note")))
            reading.start()
            reading.join(30)
            assert found
        assert facts(memory)["replica_failures"] == 0


def test_servers_that_have_changed_places_are_logged(
    pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(f"{pair.primary.dsn}&cache={tmp_path}", embedder="none", read_from=pair.standby.dsn) as memory:
        memory.remember("note")
        replay(pair)
    assert "no standby" not in caplog.text, "control"
    assert "is a standby" not in caplog.text, "control"
    with recollect.open(
        f"{pair.standby.dsn}&cache={tmp_path}", embedder="none", read_from=pair.primary.dsn
    ) as changed_places:
        assert changed_places.count() == 1
        with pytest.raises(ReadOnlyStoreError, match="to write, open it on the primary server"):
            changed_places.remember("another note")
    assert "is a standby: it can be read, and not written" in caplog.text
    assert "is the primary, or a standby that was promoted, and no standby" in caplog.text


@pytest.mark.parametrize("address", ["standby.db", "", "http://localhost:1", "postgresql:/ana:secret@db/m", 5])
def test_what_is_no_address_of_a_server_is_refused_as_a_standby(pair: Pair, address: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="must be the postgresql:// address of a standby") as caught:
        recollect.open(pair.primary.dsn, read_from=address)
    assert "secret" not in str(caught.value)


def test_another_store_is_refused_as_a_standby(pair: Pair, tmp_path: Path) -> None:
    other = create_store(pair.primary.dsn, "another")
    with pytest.raises(InvalidArgumentError, match="has another store: it must be a standby"):
        recollect.open(f"{pair.primary.dsn}&cache={tmp_path}", read_from=other, embedder="none")
    with pytest.raises(UnsupportedError, match="it is for a store on a server"):
        recollect.open(tmp_path / "a.db", read_from=pair.standby.dsn)
    with pytest.raises(UnsupportedError):
        recollect.open(":memory:", read_from=pair.standby.dsn)


@contextmanager
def two_nodes(pair: Pair, folder: Path, **options: Any) -> Iterator[list[Any]]:
    """Two servers on one store, each of which reads from the standby."""
    with ExitStack() as stack:

        def node(name: str) -> Any:
            def opener(*, create: bool, read_only: bool) -> recollect.Memory:
                address = f"{pair.primary.dsn}&cache={folder / name}"
                return recollect.open(address, embedder="none", read_from=pair.standby.dsn)

            (folder / name).mkdir()
            return stack.enter_context(served(folder / name, opened=opener, **options))

        yield [node("a"), node("b")]


def test_a_client_of_two_nodes_reads_what_it_wrote_through_the_other_one(pair: Pair, tmp_path: Path) -> None:
    with two_nodes(pair, tmp_path) as (one, other), recollect.connect(one.address, "client") as memory:
        memory.remember("first", id="first")
        assert memory._executor._seen.stated("client") == "1"  # type: ignore[attr-defined]
        replay(pair)
        with recollect.connect(other.address, "client") as through_other:
            assert through_other.count() == 1
            pause(pair)
            memory.remember("second", id="second")
            with memory.batch() as batch:
                batch.remember("third", id="third")
            assert through_other.count() == 1  # another client, to which nothing says that there is more
            through_other._executor._seen = memory._executor._seen  # type: ignore[attr-defined]
            assert through_other.get("third") is not None
            assert [each.id for each in through_other.open_export().records] == ["first", "second", "third"]


def test_curl_passes_the_header_on_and_a_scope_learns_nothing_by_it(pair: Pair, tmp_path: Path) -> None:
    def send(node: Any, path: str, body: object, seen: str, token: str) -> tuple[Any, str | None]:
        host, _, port = node.address.removeprefix("http://").rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        headers = {"Recollect-Seen": seen, "Authorization": f"Bearer {token}"}
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        found = json.loads(response.read())
        connection.close()
        return found, response.headers["Recollect-Seq"]

    with two_nodes(pair, tmp_path, tokens=True) as (one, other):
        whole, scoped = new_token(), new_token()
        for node in ("a", "b"):
            add_entry(tmp_path / node / "tokens.toml", entry("whole", whole, "write", (), {}))
            add_entry(tmp_path / node / "tokens.toml", entry("scoped", scoped, "write", (), {"user": "ana"}))
        reached(lambda: send(other, "/v1/curl/execute", {"op": "count"}, "0", scoped)[0].get("ok"))
        _, first = send(one, "/v1/curl/remember", {"content": "tea", "id": "tea"}, "0", scoped)
        replay(pair)
        assert send(other, "/v1/curl/execute", {"op": "count"}, "0", scoped)[0]["result"] == 1
        pause(pair)
        _, second = send(one, "/v1/curl/remember", {"content": "milk", "id": "milk"}, str(first), scoped)
        count = {"op": "count"}
        assert send(other, "/v1/curl/execute", count, "0", scoped)[0]["result"] == 1
        answer, third = send(other, "/v1/curl/execute", count, f"{first},{second}", scoped)
        assert answer["result"] == 2
        assert len({first, second, third}) == 3  # equal commits have different tokens within a scope
        assert all(len(str(each)) == 32 for each in (first, second, third))
        assert send(other, "/v1/curl/execute", count, "2", whole) == ({"ok": True, "result": 2}, "2")
        assert send(other, "/v1/curl/execute", count, "7", whole)[0]["code"] == "stale_read"
        assert send(other, "/v1/curl/execute", count, str(second), whole)[0]["result"] == 2  # whatever its scope
        assert send(other, "/v1/curl/execute", count, "2", scoped)[0]["code"] == "protocol"  # it could guess numbers
        assert send(other, "/v1/curl/execute", count, "nonsense", scoped)[0]["code"] == "protocol"
        assert send(other, "/v1/curl/execute", count, "9" * 30, whole)[0]["code"] == "protocol"
        assert send(other, "/v1/curl/execute", count, "", whole)[0]["code"] == "protocol"
