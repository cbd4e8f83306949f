"""One token cannot keep others from writing, or from being answered."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import Server, served
from tests.http.test_access import Session

import recollect
from recollect.engine.scope import Place
from recollect.errors import ClosedError, StoreBusyError
from recollect.server.calls import ClientCalls
from recollect.server.limits import BATCH_S, MOST_BATCH_S, TURN_S
from recollect.server.threads import FairThreads, Waiting
from recollect.wire import ClientBatch, Desk, Grant


def test_a_batch_is_shorter_than_what_a_write_waits() -> None:
    waits_s = inspect.signature(recollect.open).parameters["timeout"].default
    assert waits_s / 2 >= BATCH_S
    assert min(waits_s, TURN_S) > MOST_BATCH_S


@contextmanager
def batches_that_are_left(server: Server, count: int, clients: int = 1) -> Iterator[list[int]]:
    """Begin batches all the time, from several threads, and leave them; provide the statuses of the answers."""
    tokens = [server.token(f"loop{number}", "write", ("team",), user="ana") for number in range(clients)]
    over, statuses = threading.Event(), []

    def loop(token: str) -> None:
        while not over.is_set():
            statuses.append(server("POST", "/v1/team/batches", {}, token=token).status)

    threads = [threading.Thread(target=loop, args=[tokens[number % clients]]) for number in range(count)]
    for each in threads:
        each.start()
    while 201 not in statuses:
        pass
    try:
        yield statuses
    finally:
        over.set()
        for each in threads:
            each.join()


@pytest.mark.promise("serve.slow")
@pytest.mark.parametrize(("loops", "clients"), [(1, 1), (2, 1), (6, 1), (6, 6)])
def test_tokens_that_begin_batches_and_leave_them_delay_a_write_by_one_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loops: int, clients: int
) -> None:
    begun, begin = [], ClientBatch.begin
    before: list[int] = []  # how many batches began while each write waited, which is no matter of the network
    submit = FairThreads.submit

    def noted(batch: ClientBatch) -> None:
        begin(batch)
        begun.append(batch)

    def submitted(threads: FairThreads, waiting: Waiting) -> None:
        if not waiting.is_batch:
            run, arrived = waiting.run, len(begun)

            def running() -> object:
                before.append(len(begun) - arrived)
                return run()

            waiting.run = running
        submit(threads, waiting)

    monkeypatch.setattr(ClientBatch, "begin", noted)
    monkeypatch.setattr(FairThreads, "submit", submitted)
    with served(tmp_path, tokens=True, batch_s=0.2, timeout=0.5) as server:
        bob = server.token("bob", "write", ("other",))
        with batches_that_are_left(server, loops, clients) as statuses:
            for number in range(4):
                assert server("POST", "/v1/other/remember", {"content": f"note {number}"}, token=bob).status == 201
            assert len(before) == 4
            assert max(before) <= clients + 1  # one of each, and one that is being opened
        assert set(statuses) <= {201, 429}


@pytest.mark.files
def test_control_without_turns_the_writes_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submit = FairThreads.submit

    def at_once(threads: FairThreads, waiting: Waiting) -> None:
        if waiting.is_batch:
            waiting.run()
        else:
            submit(threads, waiting)

    monkeypatch.setattr(FairThreads, "submit", at_once)
    with served(tmp_path, tokens=True, batch_s=0.2, timeout=0.5) as server:
        bob = server.token("bob", "write", ("other",))
        with batches_that_are_left(server, 6, clients=6):
            while server.calls.beginning < 4:
                pass
            answers = [server("POST", "/v1/other/remember", {"content": "note"}, token=bob) for _ in range(4)]
    assert "busy" in [answer.json.get("code") for answer in answers]


def test_a_token_has_one_batch_that_is_open_or_waits(tmp_path: Path) -> None:
    with served(tmp_path, tokens=True, batch_s=60.0) as server:
        ana, bob = server.token("ana"), server.token("bob")
        number = server("POST", "/v1/team/batches", {}, token=ana).json["result"]["batch"]
        refused = server("POST", "/v1/other/batches", {}, token=ana)
        assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (429, "server_busy", "1")
        begun: list[Any] = []
        waits = threading.Thread(target=lambda: begun.append(server("POST", "/v1/team/batches", {}, token=bob)))
        waits.start()
        while server.calls.beginning < 1:
            pass
        assert server("POST", "/v1/team/batches", {}, token=bob).status == 429
        assert server("POST", f"/v1/team/batches/{number}/commit", {}, token=ana).status == 200
        waits.join()
        assert begun[0].status == 201
        path = f"/v1/team/batches/{begun[0].json['result']['batch']}"
        assert server("DELETE", path, token=bob).status == 200
        for token in (ana, bob):  # the former ones count no more
            with server.memory("team", token).batch() as batch:
                batch.remember("a note")


def test_without_tokens_clients_may_have_several_batches_which_take_turns(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        memories = [server.memory() for _ in range(4)]

        def write(memory: recollect.Memory, number: int) -> None:
            for part in range(3):
                with memory.batch() as batch:
                    batch.remember(f"note {number} {part}")

        threads = [threading.Thread(target=write, args=(each, number)) for number, each in enumerate(memories)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert memories[0].count() == 12


def test_a_write_that_waits_too_long_for_its_turn_is_refused_and_never_made(tmp_path: Path) -> None:
    with served(tmp_path, tokens=True, batch_s=60.0) as server:
        server.calls.turn_s = 0.05
        ana, bob = server.token("ana"), server.token("bob")
        path = "/v1/team/batches/" + server("POST", "/v1/team/batches", {}, token=ana).json["result"]["batch"]
        refused = server("POST", "/v1/team/remember", {"content": "late"}, token=bob)
        assert (refused.status, refused.json["code"]) == (503, "busy")
        assert server("POST", f"{path}/commit", {}, token=ana).status == 200
        assert server("GET", "/v1/team/records", token=bob).json["records"] == []
        assert server.calls.running == 0


def test_a_batch_whose_client_leaves_while_it_waits_is_given_up(tmp_path: Path) -> None:
    import http.client

    with served(tmp_path, tokens=True, batch_s=60.0) as server:
        ana, bob = server.token("ana"), server.token("bob")
        path = "/v1/team/batches/" + server("POST", "/v1/team/batches", {}, token=ana).json["result"]["batch"]
        leaving = http.client.HTTPConnection(server.address.removeprefix("http://"))
        leaving.request("POST", "/v1/team/batches", "{}", {"Authorization": f"Bearer {bob}"})
        while server.calls.beginning < 1:
            pass
        leaving.close()
        while server.calls.beginning:
            pass
        assert server("DELETE", path, token=ana).status == 200
        with server.memory("team", bob).batch() as batch:
            batch.remember("a note")


@pytest.mark.parametrize("mcp", [False, True])
def test_the_worst_questions_of_a_token_delay_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mcp: bool
) -> None:
    """Each waits until the small one is answered: with all threads in use, that would be never."""
    answered, recall = threading.Event(), recollect.Memory.recall

    def slow(memory: recollect.Memory, question: str, **options: Any) -> Any:
        if question == "worst":
            assert answered.wait(60)
        return recall(memory, question, **options)

    def ask(session: Session, question: str) -> Any:
        return session("tools/call", {"name": "recall", "arguments": {"question": question}})

    monkeypatch.setattr(recollect.Memory, "recall", slow)
    with served(tmp_path, tokens=True, mcp=mcp) as server:
        one, other = server.token("one", "read", ("default",)), server.token("other", "read", ("default",))
        asked: list[Callable[[], Any]]
        if mcp:
            asked = [partial(ask, Session(server, one), "worst") for _ in range(16)]
        else:
            asked = [partial(server, "GET", "/v1/default/recall?question=worst", token=one)] * 16
        threads = [threading.Thread(target=each) for each in asked]
        small = Session(server, other) if mcp else None
        for thread in threads:
            thread.start()
        while server.calls.running < 16:
            pass
        if small is not None:
            assert not ask(small, "small").get("isError")
        assert server("GET", "/v1/default/recall?question=small", token=other).status == 200
        answered.set()
        for thread in threads:
            thread.join()


def test_every_call_of_a_door_names_its_client() -> None:
    assert inspect.signature(ClientCalls.start).parameters["client"].default is inspect.Parameter.empty


def test_a_write_whose_turn_does_not_come_within_the_time_of_a_call_is_refused_and_not_made(tmp_path: Path) -> None:
    with served(tmp_path, tokens=True, batch_s=60.0) as server:
        ana, bob = server.token("ana"), server.token("bob")
        server.calls.call_s = 0.2  # not the site's: which of the two ends first would depend on the machine's load
        with server.memory("team", ana).batch() as batch:
            batch.remember("a note")
            answer = server("POST", "/v1/team/remember", {"content": "another note", "id": "another"}, token=bob)
            assert (answer.status, answer.json["code"]) == (503, "busy")
        assert server.memory("team", ana).get("another") is None


@pytest.mark.parametrize("is_kept_from_beginning", [True, False], ids=["", "control"])
def test_a_batch_that_its_client_left_does_not_begin_after_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept_from_beginning: bool
) -> None:
    if not is_kept_from_beginning:
        monkeypatch.setattr(ClientBatch, "_ended", property(lambda _: False, lambda _, ended: None), raising=False)
    with recollect.open(tmp_path / "left.db", timeout=0.01) as memory:
        batch = Desk(lambda writes: memory).batch(Place(), Grant(), None)
        gate = threading.Event()
        batch.submit(gate.wait)
        batch.abandon()
        begun = batch.submit(batch.begin)  # what waits for the thread still runs when it is shut down
        gate.set()
        begun.exception()
        if is_kept_from_beginning:
            memory.remember("tea")
            assert isinstance(begun.exception(), ClosedError)
        else:
            with pytest.raises(StoreBusyError):
                memory.remember("tea")
        del batch, begun  # an abandoned block, whose lock the store takes back
