"""Calls that a client left behind end soon after their limit, instead of computing on. The clock is the test's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import Server, served

import recollect
from recollect.common.deadlines import Deadline
from recollect.engine.read import recall as recalling
from recollect.errors import DeadlineError
from recollect.indexes.scoring import signals
from recollect.server.http import exchange
from recollect.server.limits import CALL_S

PATIENCE_S = 30.0
#: As long as the body of a request may be that is parsed without a thread: distinct words are the most costly ones.
WORST = " ".join(f"harbour{number}" for number in range(5000))[: exchange._SHORT - 100]
COUNT = 16


class Paused:
    """Questions that wait, once they are begun, until the test lets them go on.

    Attributes:
        elapsed_s: How much of the time of all deadlines is over.
        searched: Number of questions that were searched for, after they were let go on.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Semaphore(0), threading.Event()
        self.elapsed_s = 0.0
        self.searched = 0
        self._start = time.monotonic_ns()
        read, score = signals.read, signals.score

        def paused(*arguments: Any) -> Any:
            self.begun.release()
            assert self.go_on.wait(PATIENCE_S)
            return read(*arguments)

        def counted(*arguments: Any, **options: Any) -> Any:
            self.searched += 1
            return score(*arguments, **options)

        monkeypatch.setattr(recalling, "read", paused)
        monkeypatch.setattr(recalling, "score", counted)

    def deadline(self, seconds: float) -> Deadline:
        return Deadline(seconds, lambda: self._start + int(self.elapsed_s * 1e9))


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Iterator[Paused]:
    made = Paused(monkeypatch)
    yield made
    made.go_on.set()


def nothing_runs(server: Server) -> bool:
    """Wait until no call runs, and return whether none does."""
    server.calls.stopping = False
    ended: bool = asyncio.run_coroutine_threadsafe(server.calls.drained(PATIENCE_S), server.loop).result(PATIENCE_S)
    return ended and server.calls.running == 0


def ask_worst(server: Server, paused: Paused, elapsed_s: float) -> list[tuple[int, str]]:
    """Ask sixteen questions at once, let that time pass while they run or wait, and return their answers."""
    server.calls.deadline = paused.deadline
    start, arrived = server.calls.start, threading.Semaphore(0)

    def noted(door: str, name: str, *arguments: Any, **options: Any) -> Deadline | None:
        made = start(door, name, *arguments, **options)
        if name == "recall":
            arrived.release()
        return made

    server.calls.start = noted  # type: ignore[method-assign]
    with ThreadPoolExecutor(COUNT) as clients:
        asked = [
            clients.submit(server, "POST", "/v1/default/recall", {"question": WORST, "k": 3}) for _ in range(COUNT)
        ]
        assert all(arrived.acquire(timeout=PATIENCE_S) for _ in range(COUNT))
        assert paused.begun.acquire(timeout=PATIENCE_S)
        paused.elapsed_s = elapsed_s
        paused.go_on.set()
        answers = [each.result(PATIENCE_S) for each in asked]
    return [(each.status, each.json.get("code", "")) for each in answers]


@pytest.mark.promise("deadline.wire")
def test_sixteen_of_the_worst_questions_end_after_their_limit_and_nothing_runs_on(
    tmp_path: Path, paused: Paused
) -> None:
    with served(tmp_path) as server:
        server("POST", "/v1/default/remember", {"content": "the harbour"})
        assert ask_worst(server, paused, CALL_S) == [(504, "deadline")] * COUNT
        assert paused.searched == 0
        assert nothing_runs(server)


def test_control_without_the_look_they_run_on(tmp_path: Path, paused: Paused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deadline, "check", lambda self: None)
    with served(tmp_path) as server:
        server("POST", "/v1/default/remember", {"content": "the harbour"})
        assert ask_worst(server, paused, CALL_S) == [(200, "")] * COUNT
        assert paused.searched == COUNT


@pytest.mark.promise("deadline.wire")
def test_within_their_limit_they_are_answered(tmp_path: Path, paused: Paused) -> None:
    with served(tmp_path) as server:
        server("POST", "/v1/default/remember", {"content": "the harbour"})
        assert ask_worst(server, paused, CALL_S / 2) == [(200, "")] * COUNT


@pytest.mark.promise("deadline.wire")
def test_a_client_that_is_answered_that_it_takes_too_long_leaves_nothing_behind(tmp_path: Path, paused: Paused) -> None:
    """The answer of the server itself comes first, since the clock of the deadlines stands still."""
    with served(tmp_path) as server:
        server("POST", "/v1/default/remember", {"content": "the harbour"})
        server.calls.deadline = paused.deadline
        server.site.call_s = 0.01
        answer = server("POST", "/v1/default/recall", {"question": WORST, "k": 3})
        assert (answer.status, answer.json["code"]) == (504, "deadline")
        paused.go_on.set()
        assert nothing_runs(server)
        assert paused.searched == 0


@pytest.mark.promise("deadline.wire")
def test_a_client_that_leaves_leaves_nothing_behind(
    tmp_path: Path, paused: Paused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "LOOK_S", 0.0)
    with served(tmp_path) as server:
        server("POST", "/v1/default/remember", {"content": "the harbour"})
        ended = threading.Event()
        made: list[Deadline] = []

        class Noting(Deadline):
            def cancel(self) -> None:
                super().cancel()
                ended.set()

        def deadline(seconds: float) -> Deadline:
            made.append(Noting(seconds))
            return made[-1]

        server.calls.deadline = deadline
        server.left_after("POST", "/v1/default/recall", {"question": WORST, "k": 3}, paused.begun)
        assert ended.wait(PATIENCE_S)
        paused.go_on.set()
        assert nothing_runs(server)
        assert paused.searched == 0


def test_a_client_of_ours_raises_the_error(tmp_path: Path, paused: Paused) -> None:
    with served(tmp_path) as server:
        server.calls.deadline = lambda seconds: Deadline(-1.0)
        paused.go_on.set()
        with server.memory() as memory:
            memory.remember("the harbour")
            with pytest.raises(DeadlineError, match="ask for less at a time"):
                memory.recall("harbour")
            assert isinstance(memory, recollect.Memory)


def test_calls_that_may_take_minutes_are_answered_after_the_time_of_others(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.site.call_s = 0.0  # over at once
        assert server("POST", "/v1/default/execute", {"op": "check"}).status == 200
        other = server("POST", "/v1/default/remember", {"content": "a note"})
        assert other.json["code"] == "commit_in_doubt"
