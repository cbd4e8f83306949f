"""Retries of a client: a write whose answer is lost, and a server whose queue is full."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.errors import (
    ClosedError,
    CommitInDoubtError,
    RecollectError,
    RejectedError,
    ServerBusyError,
    StoreBusyError,
    StoreServerError,
    TokenError,
)
from recollect.wire.client import transport
from recollect.wire.client.transport import LostError, Patience
from recollect.wire.client.unix import UnixTransport


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(transport, "_LONGEST_PAUSE_S", 0.0)


LOST, NOT_SENT, BUSY = LostError("lost", sent=True), LostError("no server", sent=False), ServerBusyError("busy", 1.0)


@pytest.mark.parametrize(
    ("failures", "changes", "error"),
    [
        ([LOST, NOT_SENT, NOT_SENT], True, CommitInDoubtError),
        ([LOST, BUSY, BUSY], True, CommitInDoubtError),
        ([NOT_SENT, NOT_SENT, LOST], True, CommitInDoubtError),
        ([NOT_SENT, NOT_SENT, NOT_SENT], True, StoreServerError),
        ([BUSY, BUSY, BUSY], True, ServerBusyError),
        ([LOST, NOT_SENT, LOST], False, StoreServerError),
        ([LOST, BUSY, BUSY], False, ServerBusyError),
        ([LOST, StoreBusyError("s")], True, CommitInDoubtError),
        ([LOST, TokenError("revoked")], True, CommitInDoubtError),
        ([LOST, ClosedError("the memory")], True, CommitInDoubtError),
        ([LOST, RejectedError("redaction", "contains a secret")], True, RejectedError),
        ([TokenError("revoked")], True, TokenError),
        ([LOST, TokenError("revoked")], False, TokenError),
    ],
)
def test_a_write_that_may_have_been_executed_is_in_doubt_whatever_became_of_later_attempts(
    failures: list[Exception], changes: bool, error: type[RecollectError]
) -> None:
    left = iter(failures)

    def attempt() -> None:
        raise next(left)

    with pytest.raises(RecollectError) as raised:
        Patience(1.0, 2).run("unix:///s", attempt, repeatable=True, changes=changes)
    assert type(raised.value) is error


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="recollect-") as name:
        yield Path(name)


def test_a_client_waits_for_a_server_whose_queue_of_connections_is_full(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(folder / "s"))
        server.listen(0)
        waiting: list[socket.socket] = []
        with pytest.raises(BlockingIOError):
            while True:
                waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                waiting[-1].setblocking(False)
                waiting[-1].connect(str(folder / "s"))
        connected: list[object] = []
        client = UnixTransport(str(folder / "s"), 60.0)
        thread = threading.Thread(target=lambda: connected.append(client.exchange({"op": "now"}, 60.0)))
        thread.start()
        for each in waiting[:-1]:  # those that were in the queue before
            server.accept()[0].close()
            each.close()
        waiting[-1].close()
        with server.accept()[0] as channel, channel.makefile("rwb") as file:
            for answer in (b'{"ok":true,"protocol":2}\n', b'{"ok":true,"result":1}\n'):
                assert file.readline()
                file.write(answer)
                file.flush()
        thread.join()
        client.close()
    assert connected == [{"ok": True, "result": 1}]
