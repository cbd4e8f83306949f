"""Answers that are late, lost or cut off, at a client.

It is not taken for the answer to another call, and what a batch or a write came to is never guessed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.serving import Served

import recollect
from recollect.errors import CommitInDoubtError, RecollectError, StoreServerError
from recollect.operations import Operation, Remember
from recollect.server.lines import ExportPages
from recollect.wire import ClientBatch
from recollect.wire.client import unix
from recollect.wire.client.http import HttpTransport
from recollect.wire.client.transport import LostError


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The server answers to the text "late" in a batch when this is set."""
    answered = threading.Event()
    execute = ClientBatch.execute

    def executed(batch: ClientBatch, operation: Operation) -> Any:
        result = execute(batch, operation)
        if isinstance(operation, Remember) and operation.content == "late":
            answered.wait(60)
        return result

    monkeypatch.setattr(ClientBatch, "execute", executed)
    yield answered
    answered.set()


def _is_in_step(memory: recollect.Memory) -> bool:
    return all(memory.get("start").content == "start" and memory.count() == 1 for _ in range(5))  # type: ignore[union-attr]


@pytest.mark.parametrize("door", ["socket", "http"])
@pytest.mark.parametrize("caught", [True, False])
def test_a_batch_of_which_an_answer_is_late_is_undone(
    served: Served, late: threading.Event, door: str, caught: bool
) -> None:
    memory = served.memory(door, timeout=0.5)
    memory.remember("start", id="start")
    with pytest.raises(StoreServerError, match=r"no answer within 0.5 s; the batch is undone"), memory.batch() as batch:
        batch.remember("first")
        try:
            batch.remember("late")
        except StoreServerError:
            late.set()
            if not caught:
                raise
            with pytest.raises(StoreServerError, match="the batch is undone"):
                batch.remember("later")
    assert _is_in_step(served.memory("http"))
    assert _is_in_step(served.memory(door))
    assert _is_in_step(memory)


def test_a_line_that_is_cut_off_is_not_completed_by_the_next_message(served: Served) -> None:
    memory = served.memory(retries=0)
    memory.remember("start")

    class CutOff:
        """A channel that is interrupted in the middle of a message."""

        def __init__(self, channel: Any) -> None:
            self._channel = channel

        def sendall(self, data: bytes) -> None:
            is_whole = b"cut off" not in data
            self._channel.sendall(data if is_whole else data[: len(data) // 2])
            if not is_whole:
                raise KeyboardInterrupt

        def __getattr__(self, name: str) -> Any:
            return getattr(self._channel, name)

    transport: Any = memory._executor._transport  # type: ignore[attr-defined]
    for connection in transport._pool._idle:
        connection._channel = CutOff(connection._channel)
    with pytest.raises(KeyboardInterrupt), memory.batch() as batch:
        batch.remember("cut off")
    memory.remember("acknowledged")
    assert [each.content for each in served.memory("http").find()] == ["acknowledged", "start"]


def test_a_page_of_an_export_that_is_late_is_no_answer_to_what_follows(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    read = ExportPages.read

    def late_page(pages: ExportPages, part: str | None = None) -> Any:
        out = read(pages, part)
        answered.wait(60)
        return out

    monkeypatch.setattr(ExportPages, "read", late_page)
    memory = served.memory(timeout=0.5, retries=0)
    memory.remember("start", id="start")
    with pytest.raises(StoreServerError), memory.open_export() as export:
        list(export.records)
    answered.set()
    assert _is_in_step(memory)


def test_a_connection_with_a_message_without_answer_sends_nothing_any_more() -> None:
    class Silent:
        sent = b""

        def gettimeout(self) -> float:
            return 1.0

        def sendall(self, data: bytes) -> None:
            self.sent += data

        def recv(self, size: int) -> bytes:
            raise TimeoutError

    channel: Any = Silent()
    connection = unix._Connection(channel)
    for _ in range(2):
        with pytest.raises(LostError):
            connection.exchange(b"{}", 1.0)
    assert channel.sent == b"{}\n"


@pytest.mark.parametrize("sent", [True, False])
def test_a_commit_over_http_is_in_doubt_only_if_it_was_sent(
    served: Served, monkeypatch: pytest.MonkeyPatch, sent: bool
) -> None:
    request = HttpTransport._request

    def lost(transport: HttpTransport, method: str, path: str, *rest: Any) -> Any:
        if path.endswith("/commit"):
            raise LostError("no server", sent=sent)
        return request(transport, method, path, *rest)

    memory = served.memory("http")
    monkeypatch.setattr(HttpTransport, "_request", lost)
    with pytest.raises(RecollectError) as raised, memory.batch() as batch:
        batch.remember("x")
    assert type(raised.value) is (CommitInDoubtError if sent else StoreServerError)


def test_a_batch_whose_second_commit_has_no_answer_is_in_doubt(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one was not sent, so the batch would seem undone; the second one was executed."""
    memory = served.memory("http")
    request = HttpTransport._request
    lost = iter((LostError("not sent", sent=False), LostError("cut", sent=True)))

    def cut(transport: HttpTransport, method: str, path: str, *rest: Any, **named: Any) -> Any:
        if not path.endswith("/commit"):
            return request(transport, method, path, *rest, **named)
        error = next(lost)
        if error.sent:
            request(transport, method, path, *rest, **named)
        raise error

    monkeypatch.setattr(HttpTransport, "_request", cut)
    with pytest.raises(CommitInDoubtError), memory.batch() as batch:
        batch.remember("tea")
    assert served.memory("socket").count() == 1
