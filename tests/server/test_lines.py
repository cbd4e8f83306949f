"""The socket: an error for each bad line, answers in order, bounded memory, and batches that end."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.server.serving import PING, Served, many

from recollect.errors import InvalidArgumentError, RecollectError
from recollect.server.socket import connection as connections
from recollect.server.socket import door as doors
from recollect.server.socket.connection import Connection
from recollect.server.socket.listening import SocketFile


def remember(content: str, **place: Any) -> dict[str, Any]:
    return {"op": "remember", "content": content, "id": content[:40].strip(), **({"in": place} if place else {})}


LONG = "x" * 20_000

BAD: list[tuple[bytes | dict[str, Any], str]] = [
    (b"", "protocol"),
    (b"   ", "protocol"),
    (b"{", "protocol"),
    (b"nonsense", "protocol"),
    (b"null", "protocol"),
    (b"[]", "protocol"),
    (b"5", "protocol"),
    (b'"ping"', "protocol"),
    (b"\xff\xfe", "protocol"),
    (b'{"action":"ping"', "protocol"),
    (b"[" * 100_000, "protocol"),
    ({}, "protocol"),
    ({"action": "nope"}, "protocol"),
    ({"action": None}, "protocol"),
    ({"action": ["ping"]}, "protocol"),
    ({"action": "ping", "op": "now"}, "protocol"),
    ({"action": "ping", "text": "x"}, "protocol"),
    ({"action": "store"}, "protocol"),
    ({"action": "query"}, "protocol"),
    ({"action": "store", "text": 5}, "invalid_argument"),
    ({"action": "query", "text": "x", "limit": 0}, "invalid_argument"),
    ({"action": "query", "text": "x", "limit": -1}, "invalid_argument"),
    ({"action": "query", "text": "x", "limit": "five"}, "invalid_argument"),
    ({"action": "query", "text": "x", "limit": True}, "invalid_argument"),
    ({"action": "stats", "in": []}, "protocol"),
    ({"action": "stats", "in": {"nope": 1}}, "protocol"),
    ({"op": "nope"}, "invalid_operation"),
    ({"op": None}, "invalid_operation"),
    ({"op": "now", "in": 0}, "protocol"),
    ({"op": "wait", "since": "x", "timeout": 0}, "invalid_argument"),
    ({"batch": "nope"}, "protocol"),
    ({"batch": "begin", "expect_head": "x"}, "protocol"),
    ({"batch": "commit"}, "closed"),
    ({"export": "nope"}, "protocol"),
    ({"export": "read"}, "closed"),
    ({"action": "nope", "text": LONG}, "protocol"),
]


@pytest.mark.parametrize(("line", "code"), BAD, ids=[str(at) for at in range(len(BAD))])
def test_a_bad_line_has_a_one_line_error_and_the_connection_lives_on(
    shared: Served, line: bytes | dict[str, Any], code: str
) -> None:
    with shared.line_client() as client:
        assert client.code(line) == code
        assert client.ask(PING.strip())["pong"] is True


def test_a_line_over_the_cap_is_skipped_and_the_next_one_is_answered(tmp_path: Path) -> None:
    with Served(tmp_path, door_line_bytes=1000) as served, served.line_client() as client:
        at_the_cap = b'{"action":"ping"}'.ljust(1000)
        client.send(at_the_cap, at_the_cap + b" ", b"x" * 3_000_000, PING.strip())
        assert client.answer()["pong"] is True
        assert "longer than 1000 bytes" in client.answer()["error"]["message"]
        assert "longer than 1000 bytes" in client.answer()["error"]["message"]
        assert client.answer()["pong"] is True


def test_pipelined_lines_are_answered_in_their_order_whatever_they_are(served: Served) -> None:
    kinds: list[tuple[bytes | dict[str, Any], Any]] = [
        (PING.strip(), lambda answer: answer["pong"]),
        (b"nonsense", lambda answer: answer["error"]["code"] == "protocol"),
        ({"action": "nope", "text": LONG}, lambda answer: "'nope'" in answer["error"]["message"]),
        (b"[" + b"1," * 20_000, lambda answer: answer["error"]["code"] == "protocol"),  # parsed in a thread
        ({"op": "count"}, lambda answer: isinstance(answer["result"], int)),
        ({"op": "wait", "since": 0, "timeout": 0}, lambda answer: answer["ok"]),
    ]
    with served.line_client() as client:
        lines, checks = [], []
        for number in range(300):
            line, check = kinds[number * 7 % len(kinds)]
            lines += [line, remember(f"{number} {LONG if number % 3 else ''}")]
            checks += [check, lambda answer, number=number: answer["result"]["record"]["id"].split()[0] == str(number)]
        sender = threading.Thread(target=client.send, args=lines)
        sender.start()
        assert all(check(client.answer()) for check in checks)
        sender.join()


def test_lines_after_a_long_line_that_is_refused_are_answered(served: Served) -> None:
    with served.line_client() as client:
        client.send(b"[" + b"1," * 20_000, PING.strip(), {"action": "nope", "text": LONG}, PING.strip())
        assert [client.answer()["ok"] for _ in range(4)] == [False, True, False, True]


def test_the_last_line_of_a_client_that_has_sent_all_is_answered(served: Served) -> None:
    with served.line_client() as client:
        client.send({"op": "count"}, {"action": "nope", "text": LONG})
        client.socket.shutdown(1)
        assert client.answer()["result"] == 0
        assert client.answer()["ok"] is False
        with pytest.raises(EOFError):
            client.answer()


class Silent:
    """A transport whose client reads nothing, and which counts what is written."""

    def __init__(self) -> None:
        self.answers = 0
        self.reads = True

    def write(self, data: bytes) -> None:
        self.answers += data.count(b"\n")

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int) -> None:
        pass


@pytest.mark.promise("serve.slow")
def test_a_client_with_thousands_of_lines_gives_others_a_turn(served: Served) -> None:
    transport: Any = Silent()

    def flood() -> tuple[int, int, bool]:
        flooding = Connection(served.door, lambda transport: "")
        flooding.connection_made(transport)
        flooding.data_received(PING * 10_000)
        served.loop.call_soon(lambda: turns.append(transport.answers))
        return transport.answers, len(flooding._waiting), transport.reads

    turns: list[int] = []
    found = served.look(flood)
    with served.line_client() as other:
        assert other.ask(PING.strip())["pong"] is True
    assert turns[0] <= 3 * connections._AT_ONCE
    served.look(served.door.connections.clear)
    assert found == (connections._AT_ONCE, 10_000 - connections._AT_ONCE, False)


@pytest.mark.promise("serve.slow")
def test_a_client_that_never_reads_is_not_read_any_more_and_delays_no_other(served: Served) -> None:
    sent = 0
    with served.line_client() as hostile, served.line_client() as other:
        hostile.socket.setblocking(False)
        try:
            while sent < 64 * 2**20:  # it ends when the server does not read
                sent += hostile.socket.send(PING * 3000)
                assert other.ask(PING.strip())["pong"] is True
        except BlockingIOError:
            pass
        assert sent < 16 * 2**20
        assert all(other.ask(PING.strip())["pong"] for _ in range(50))

        def memory() -> int:
            each = max(served.door.connections, key=lambda each: len(each._waiting))
            assert each._transport is not None
            return each._transport.get_write_buffer_size() + each._waiting_bytes + each._lines.size

        assert served.look(memory) < 4 * 2**20
        hostile.socket.setblocking(True)
        answers = 0
        while answers < sent // len(PING):  # whatever it sent whole is answered, once it reads
            assert hostile.answer()["pong"] is True
            answers += 1


@pytest.mark.promise("serve.slow")
def test_a_client_that_sends_a_byte_at_a_time_delays_no_other(served: Served) -> None:
    with served.line_client() as slow, served.line_client() as other:
        for byte in PING:
            slow.socket.sendall(bytes([byte]))
            assert other.ask(PING.strip())["pong"] is True
        assert slow.answer()["pong"] is True


@pytest.mark.promise("serve.slow")
def test_long_lines_of_all_clients_together_have_bounded_memory(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LONG_BYTES", 2_000_000)
    line = b'{"action":"ping","text":"' + b"x" * 900_000
    with many(10, served.line_client) as clients:
        for client in clients:
            client.socket.sendall(line)
            assert served.look(lambda: served.door.long_bytes) <= 2_000_000 + 2**18  # and what one read brings
        for client in clients:
            client.send(b'"}', PING.strip())
        codes = [client.answer()["error"]["code"] for client in clients]
        assert set(codes) == {"protocol", "server_busy"}  # ping takes no text; there was no room
        assert all(client.answer()["pong"] for client in clients)
        assert served.look(lambda: served.door.long_bytes) == 0
    with served.line_client() as client:
        assert client.code(line + b'"}') == "protocol"


def test_long_lines_that_wait_for_their_turn_are_counted_and_forgotten(served: Served) -> None:
    with served.line_client() as client:
        client.send(*[remember(f"{number} {LONG}") for number in range(20)])
        assert all(client.answer()["ok"] for _ in range(20))
        assert client.ask(PING.strip())["pong"] is True
        assert served.look(lambda: served.door.long_bytes) == 0
        client.send(*[remember(f"{number} {LONG}") for number in range(20)])
    with served.line_client() as client:
        assert client.ask({"op": "count"})["ok"]


def test_a_thousand_connections_at_once_each_get_an_answer(served: Served) -> None:
    with many(1000, served.line_client) as clients:
        for number, client in enumerate(clients):
            client.send(PING.strip(), {"op": "count"} if number % 10 else remember(f"of {number}"))
        assert all(client.answer()["pong"] for client in clients)
        assert all(client.answer()["ok"] for client in clients)
    with served.line_client() as client:
        assert client.ask({"op": "count"})["result"] == 100


def test_a_connection_too_many_is_refused_with_a_line(tmp_path: Path) -> None:
    with Served(tmp_path, door_most_connections=3) as served, many(3, served.line_client) as clients:
        assert all(client.ask(PING.strip())["pong"] for client in clients)
        with served.line_client() as refused:
            assert refused.answer()["error"]["code"] == "server_busy"
            with pytest.raises(EOFError):
                refused.answer()
        assert all(client.ask(PING.strip())["pong"] for client in clients)


def test_calls_that_are_refused_because_there_are_too_many_are_each_answered(tmp_path: Path) -> None:
    with Served(tmp_path, calls_most_waiting=0) as served, served.line_client() as client:
        threading.Thread(target=client.send, args=[{"op": "count"}] * 5000).start()
        codes = {client.answer()["error"]["code"] for _ in range(5000)}
        assert codes == {"server_busy"}
        assert served.problems == []


# Batches


@pytest.mark.promise("serve.batch")
def test_a_batch_whose_time_is_over_is_undone_and_nothing_of_it_is_executed_later(tmp_path: Path) -> None:
    with Served(tmp_path, calls_batch_s=0.2) as served, served.line_client() as client, served.line_client() as other:
        assert client.ask({"batch": "begin"})["ok"]
        assert client.ask(remember("in time"))["ok"]
        assert other.ask(remember("of another"))["ok"]  # it waits for the lock until the batch is undone
        late = [remember("too late"), {"action": "store", "text": "too late"}, {"batch": "begin"}, {"op": "count"}]
        assert client.code(late[0]) == "closed"
        assert client.code(late[1]) == "invalid_operation"
        assert client.code(late[2]) == "closed"
        assert client.code(late[3]) == "closed"
        assert client.code({"batch": "commit"}) == "closed"
        assert client.ask({"op": "count"})["result"] == 1  # and from now on, it is outside of the batch
        assert client.ask({"action": "stats"})["ok"]


@pytest.mark.promise("serve.batch")
def test_a_client_that_disappears_in_a_batch_loses_it(served: Served) -> None:
    client = served.line_client()
    assert client.ask({"batch": "begin"})["ok"]
    assert client.ask(remember("lost"))["ok"]
    client.close()
    with served.line_client() as other:
        assert other.ask(remember("another"))["ok"]
        assert other.ask({"op": "find"})["result"]["records"][0]["id"] == "another"


@pytest.mark.promise("serve.batch")
def test_what_is_no_operation_of_a_batch_is_refused_in_it_and_not_executed_beside_it(served: Served) -> None:
    with served.line_client() as client:
        assert client.ask({"batch": "begin"})["ok"]
        assert client.code({"action": "store", "text": "beside"}) == "invalid_operation"
        assert client.code({"op": "wait", "since": 0, "timeout": 0}) == "invalid_operation"
        assert client.code(remember("elsewhere", namespace="other")) == "protocol"
        assert client.code(remember("x", key="k")) == "protocol"
        assert client.ask(remember("here", namespace="default"))["ok"]
        assert client.ask({"batch": "commit"})["ok"]
        assert client.ask({"op": "count"})["result"] == 1
        assert client.ask({"op": "count", "in": {"namespace": "other"}})["result"] == 0
        assert client.ask({"action": "stats"})["ok"]


def test_a_client_that_disappears_while_its_batch_waits_for_the_lock_leaves_the_lock_free(served: Served) -> None:
    with served.line_client() as first, served.line_client() as other:
        assert first.ask({"batch": "begin"})["ok"]
        waiting = served.line_client().send({"batch": "begin"})
        while served.look(lambda: served.calls.running) < 1:
            pass
        waiting.close()
        assert first.ask({"batch": "undo"})["ok"]
        assert other.ask(remember("another"))["ok"]


@pytest.mark.promise("serve.batch")
@pytest.mark.parametrize(("name", "value"), [("most_waiting", 0), ("stopping", True)])
def test_the_calls_of_an_open_batch_are_not_refused_and_it_frees_the_lock(
    served: Served, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    with served.line_client() as client, served.line_client() as other:
        assert client.ask({"batch": "begin"})["ok"]
        with monkeypatch.context() as full:
            full.setattr(served.calls, name, value)
            assert other.code({"op": "count"}) == "server_busy"
            assert client.ask(remember("one"))["ok"]
            assert client.ask({"batch": "commit"})["ok"]
            assert client.code({"batch": "begin"}) == "server_busy"
        assert other.ask(remember("the lock is free"))["ok"]
        assert other.ask({"op": "count"})["result"] == 2


def test_more_batches_than_may_wait_for_the_lock_are_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.server.calls.MOST_BEGINNING", 1)
    with served.line_client() as first, served.line_client() as second, served.line_client() as third:
        assert first.ask({"batch": "begin"})["ok"]
        second.send({"batch": "begin"})
        while served.look(lambda: served.calls.beginning) < 1:
            pass
        assert third.code({"batch": "begin"}) == "server_busy"
        assert first.ask({"batch": "commit"})["ok"]
        assert second.answer()["ok"]
        assert served.look(lambda: served.calls.beginning) == 0
        assert second.ask({"batch": "undo"})["ok"]
        assert third.ask({"batch": "begin"})["ok"]


def test_a_fault_while_an_error_is_noted_leaves_no_client_without_an_answer(served: Served) -> None:
    def fails(error: RecollectError) -> None:
        raise OSError("the disk is gone")

    served.calls.failed = fails
    with served.line_client() as client:
        assert client.code({"op": "update", "id": "nothing", "changes": {"content": "x"}}) == "unknown_record"
        assert served.look(lambda: served.calls.running) == 0


@pytest.mark.files
def test_an_export_whose_client_is_gone_is_released(served: Served) -> None:
    with served.line_client() as client:
        client.send(*[remember(f"note {number}") for number in range(300)])
        assert all(client.answer()["ok"] for _ in range(300))
    with many(20, served.line_client) as clients:
        for number, client in enumerate(clients):
            client.send({"export": "open"}, *[{"export": "read"}] * (number % 4))
            if number % 2:
                assert client.answer()["result"]["count"] == 300
    while served.look(lambda: bool(served.door.connections) or served.calls.running > 0):
        pass
    with served.line_client() as client:
        assert client.ask({"export": "open"})["result"]["count"] == 300
        assert [len(client.ask({"export": "read"})["result"]) for _ in range(3)] == [200, 100, 0]
        assert client.ask({"export": "close"})["ok"]
        assert client.code({"export": "read"}) == "closed"


# The file of the socket


def test_only_its_owner_may_use_the_socket(served: Served) -> None:
    assert served.socket_path.stat().st_mode & 0o777 == 0o600


def test_a_peer_of_another_user_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "refused_peer", lambda transport: "the user 5 to use this socket")
    with served.line_client() as client:
        error = client.answer()["error"]
        assert (error["code"], "the user 5" in error["message"]) == ("access", True)
        with pytest.raises((EOFError, ConnectionResetError)):
            client.answer()


def test_a_stale_socket_file_is_replaced_and_any_other_never(tmp_path: Path, served: Served) -> None:
    folder = served.socket_path.parent
    stale = SocketFile(folder / "stale")
    stale.socket.close()  # as a server that was killed
    os.close(stale._lock)
    again = SocketFile(folder / "stale")
    with pytest.raises(InvalidArgumentError, match="has a server already"):
        SocketFile(folder / "stale")
    again.socket.close()
    again.close()
    assert not (folder / "stale").exists()
    (folder / "file").write_text("important")
    with pytest.raises(InvalidArgumentError, match="no socket"):
        SocketFile(folder / "file")
    assert (folder / "file").read_text() == "important"
    with pytest.raises(InvalidArgumentError, match="has a server already"):
        SocketFile(served.socket_path)


def test_of_two_servers_that_start_at_one_path_one_wins(tmp_path: Path, served: Served) -> None:
    path = served.socket_path.parent / "one"
    barrier = threading.Barrier(8)
    made: list[Any] = []

    def start() -> None:
        barrier.wait()
        try:
            made.append(SocketFile(path))
        except InvalidArgumentError as error:
            made.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [each for each in made if isinstance(each, SocketFile)]
    assert (len(made), len(winners)) == (8, 1)
    winners[0].socket.close()
    winners[0].close()


def test_every_answer_is_one_line(served: Served) -> None:
    with served.line_client() as client:
        client.send(remember("a\nb\u2028c\r\n"), {"op": "get", "id": "a\nb\u2028c\r\n"}, PING.strip())
        answers = [json.dumps(client.answer()) for _ in range(3)]
        assert '"pong": true' in answers[2]


@pytest.mark.promise("serve.slow")
def test_a_wait_ends_when_its_client_is_gone_and_not_when_it_has_only_sent_its_last_line(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.server.socket.connection._LOOK_S", 0.01)
    wait = {"op": "wait", "since": 0, "timeout": 80_000}
    with served.line_client() as patient:
        patient.send(wait)
        gone = served.line_client().send(wait)
        while len(served.connections()) < 2:
            pass
        patient.socket.shutdown(socket.SHUT_WR)
        gone.close()
        while len(served.connections()) > 1:
            pass
        with served.line_client() as other:
            assert other.ask(remember("news"))["ok"]
        assert patient.answer() == {"ok": True, "result": True}
