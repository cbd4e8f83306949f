"""Answers are bounded: a part says how to ask for the rest, a client puts the parts together, and unread ones count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.server.serving import HttpClient, LineClient, Served, many
from tests.server.test_requests import EXECUTE, get, post

import recollect
from recollect import filters as f
from recollect import operations as op
from recollect.errors import AnswerTooLargeError, InvalidOperationError, ResultChangedError, ServerBusyError
from recollect.operations.base import all_operations
from recollect.server import lines as unread_module
from recollect.server.lines import MOST_EACH, SMALL, Unread
from recollect.wire import READ, Desk, Grant, Place, Request, answers, decode
from recollect.wire.client.pages import read_whole

#: Small limits, so that a few records are many.
RECORDS, PROBED, BYTES = 7, 3, 3000
#: The largest item of the store below, a commit of many terms, and what stands around the items of an answer.
ITEM = 3200


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "RECORDS", RECORDS)
    monkeypatch.setattr(answers, "_PROBED", PROBED)
    monkeypatch.setattr(answers, "ANSWER_BYTES", BYTES)


def fill(memory: recollect.Memory) -> None:
    for number in range(40):
        memory.remember(
            f"Ana met Bob{number} in Oslo{number % 5} {'x' * (number * 13 % 400)}", id=f"n{number:02}", user="ana"
        )
    for number in range(20):
        memory.update("n00", content=f"version {number} {'y' * 300}")
    for number in range(9):
        memory.snapshot(f"moment {number}")
        memory.namespace(f"space {number}").remember("z")
    memory.outline.ingest_text(
        "* root\n" + "".join(f"** node {n}\n{'text ' * 20}\n" for n in range(30)), "org", "a.org"
    )


def asked() -> dict[str, list[op.Operation]]:
    """Return requests to every operation that only reads, by its name."""
    moment = "?"  # set below
    some: dict[str, list[op.Operation]] = {
        "find": [op.Find(), op.Find(limit=5), op.Find(limit=7), op.Find(limit=8), op.Find(order="id", limit=33)],
        "changes": [
            op.Changes(), op.Changes(limit=5), op.Changes(limit=30), op.Changes(limit=7), op.Changes(since=3),
            op.Changes(newest_first=True), op.Changes(newest_first=True, limit=5), op.Changes(id="n00"),
            op.Changes(newest_first=True, limit=30), op.Changes(newest_first=True, limit=30, since=25),
            op.Changes(newest_first=True, limit=15, id="n00"),
            op.Changes(newest_first=True, limit=15, where=f.id("n00")),
        ],
        "history": [op.History(id="n00"), op.History(id="n01")],
        "grep": [op.Grep(query="Ana", limit=3)],
        "read_tree": [op.ReadTree()],
        "at": [op.At(moment=moment, operation=each) for each in (op.Find(), op.Changes(), op.Entities(limit=99))],
        "entities": [op.Entities(limit=99)],
        "entity": [op.EntityOf(entity="Ana", limit=2)],
        "neighbours": [op.Neighbours(entity="Ana", limit=3)],
        "paths": [op.Paths(source="Bob1", target="Bob2")],
        "get": [op.Get(id="n01"), op.Get(id="n39")],
        "recall": [op.Recall(question="Ana", k=1)],
    }  # fmt: skip
    return some


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("over", ["socket", "http"])
def test_a_client_gets_the_same_as_in_a_process_and_no_answer_is_too_large(
    served: Served, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    sizes: list[int] = []
    answer = answers.answer

    def measured(*args: Any, **kwargs: Any) -> bytes:
        out = answer(*args, **kwargs)
        sizes.append(len(out))
        return out

    monkeypatch.setattr("recollect.wire.desk.answer", measured)
    with recollect.open(served.path, embedder="none") as here:
        fill(here)
        there = served.memory(over)
        moment = here.execute(op.Pin(seq=here.seq)).token
        compared = 0
        for name, operations in asked().items():
            for each in operations:
                if isinstance(each, op.At):
                    each = op.At(moment=moment, operation=each.operation)
                sizes.clear()
                try:
                    found = there.execute(each)
                except AnswerTooLargeError as error:
                    assert error.args[1] > error.args[2] == BYTES, name
                    continue
                expected = here.execute(each)
                assert found == expected, each
                assert getattr(found, "cursor", None) == getattr(expected, "cursor", None), each
                assert max(sizes) <= BYTES + ITEM, each
                compared += len(sizes) > 1
        assert compared >= 10  # in parts
        with there.batch() as batch:  # within a batch, too
            assert batch.execute(op.Find()) == here.execute(op.Find())
        there.close()


@pytest.mark.usefixtures("small")
def test_every_operation_that_reads_is_bounded_or_refused(served: Served) -> None:
    """Whatever an operation returns, its answer is bounded: the sweep over all that can be built without arguments."""
    with recollect.open(served.path, embedder="none") as here:
        fill(here)
    listed = asked()
    with served.line_client() as client:
        for name, kind in sorted(all_operations().items()):
            if name in ("export", "wait", "at"):
                continue
            try:
                operations = listed.get(name) or [kind()]
            except (TypeError, recollect.RecollectError):
                continue
            for each in operations:
                if each.needs != READ:
                    continue
                answered = client.ask(each.to_json())
                if not answered["ok"]:
                    assert answered["error"]["code"] == "answer_too_large", (name, answered)
                elif name != "get":
                    assert len(json.dumps(answered)) <= BYTES + ITEM, name


@pytest.mark.usefixtures("small")
def test_a_part_says_so_and_a_whole_result_does_not(served: Served) -> None:
    with recollect.open(served.path, embedder="none") as here:
        fill(here)
    with served.line_client() as client:
        found = client.ask({"op": "find"})
        assert len(found["result"]["records"]) <= RECORDS
        assert found["more"] == {"after": found["result"]["cursor"]}
        assert "more" not in client.ask({"op": "find", "limit": 3})
        commits = client.ask({"op": "changes"})
        assert commits["more"] == {"since": str(commits["result"][-1]["seq"])}
        assert client.ask({"op": "changes", "newest_first": True})["more"] == {"newest_first": False}
        versions = client.ask({"op": "history", "id": "n00"})
        rest = versions["more"]["rest"]
        assert rest["from"] == len(versions["result"])
        ids = []
        while versions.get("more"):
            ids += versions["result"]
            versions = client.ask({"op": "history", "id": "n00", **versions["more"]})
        ids += versions["result"]
        assert len(ids) == 21
        client.ask({"op": "update", "id": "n00", "changes": {"content": "changed meanwhile"}})
        assert client.code({"op": "history", "id": "n00", "rest": rest}) == "result_changed"
        for wrong in (5, {}, {"from": -1, "of": ""}, {"from": True, "of": ""}, {"from": 1, "of": 1}, {**rest, "x": 1}):
            assert client.code({"op": "history", "id": "n00", "rest": wrong}) == "protocol"
    with HttpClient(served.http) as web:
        found = json.loads(web.answer(get("/v1/default/records?limit=8000"))[2])
        assert 0 < len(found["records"]) <= RECORDS
        ids = [each["id"] for each in found["records"]]
        while found["cursor"]:
            found = json.loads(web.answer(get(f"/v1/default/records?limit=8000&after={found['cursor']}"))[2])
            ids += [each["id"] for each in found["records"]]
        with served.memory() as memory:
            assert ids == [each.id for each in memory.find()]
        commits = json.loads(web.answer(get("/v1/default/changes?limit=8000"))[2])
        assert commits["more"] is True
        assert json.loads(web.answer(get("/v1/default/changes?limit=2"))[2])["more"] is False
        status, _, body = web.answer(get("/v1/default/history/n00"))
        assert (status, json.loads(body)["code"]) == (400, "answer_too_large")


@pytest.mark.usefixtures("small")
def test_control_a_client_that_ignores_more_gets_a_part(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.wire import read_answer

    monkeypatch.setattr(
        "recollect.wire.client.executor.read_whole",
        lambda operation, send, state: read_answer(operation, send(operation, None)),
    )
    with recollect.open(served.path, embedder="none") as here:
        fill(here)
        with served.memory() as there:
            assert len(there.find()) < len(here.find())


def test_the_reads_of_a_batch_state_how_much_they_return_and_nothing_is_done_otherwise(served: Served) -> None:
    with served.memory() as memory:
        write = op.Remember(content="a note", id="a")
        for reads in (
            [op.Find()],
            [op.Find(limit=600), op.Grep(query="x", limit=600)],
            [op.Recall(question="x", k=5000)],
        ):
            with pytest.raises(InvalidOperationError, match="at most 1000 records together"):
                memory.execute(op.ExecuteBatch(operations=(write, *reads)))
        assert memory.count() == 0
        assert len(memory.execute(op.ExecuteBatch(operations=(write, op.Find(limit=5), op.Count())))) == 3


def test_a_find_during_which_others_write_has_no_record_twice(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "RECORDS", RECORDS)
    with served.memory() as memory, served.memory() as other:
        memory.remember_all([{"content": f"note {number}", "id": f"n{number:02}"} for number in range(30)])
        page, writes = answers.page, iter(range(100))

        def meanwhile(*args: Any) -> Any:
            out = page(*args)
            if (number := next(writes, None)) is not None and number % 4 == 3:
                with recollect.open(served.path, embedder="none") as writer:
                    writer.update(f"n{number % 30:02}", importance=number / 100)
            return out

        monkeypatch.setattr(answers, "page", meanwhile)
        ids = [each.id for each in memory.find()]
        assert len(ids) == len(set(ids)) >= 29
        assert other.count() == 30


# What is not read


def counts() -> Iterator[tuple[str, int]]:
    yield from (("a", SMALL), ("a", 10), ("b", SMALL))


def test_small_answers_are_not_counted_and_large_ones_up_to_a_limit() -> None:
    room = Unread(most_each=10 * SMALL, most=15 * SMALL)
    assert [room.add(*each) for each in counts()] == [0, 0, 0]
    room.check("a", 50 * SMALL)  # who has read all may have one of any size
    first = room.add("a", 6 * SMALL)
    with pytest.raises(ServerBusyError, match="its client"):
        room.check("a", 5 * SMALL)
    room.check("b", 9 * SMALL)
    second = room.add("b", 9 * SMALL)
    with pytest.raises(ServerBusyError, match="clients"):
        room.check("c", 2 * SMALL)
    room.check("c", SMALL)
    room.remove("a", first)
    room.check("c", 2 * SMALL)
    room.remove("b", second)
    assert (room.total, len(room._of)) == (0, 0)


BIG = "x" * 900_000


@pytest.mark.promise("serve.slow")
@pytest.mark.parametrize("over", ["socket", "http"])
def test_clients_that_do_not_read_have_a_bounded_number_of_bytes_in_memory(
    served: Served, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    room = served.calls.unread
    room.most = 10 * 2**20
    most = room.most + 5 * 2**20  # the answers that were computed at the same time
    peak = 0
    add = room.add

    def noted(client: Any, size: int) -> int:
        nonlocal peak
        out = add(client, size)
        peak = max(peak, room.total)
        return out

    monkeypatch.setattr(room, "add", noted)
    with served.memory() as memory:
        for number in range(4):
            memory.remember(f"{number}{BIG}", id=f"big{number}")
    make: Any = served.line_client if over == "socket" else lambda: HttpClient(served.http)
    ask = b'{"op":"find"}\n' if over == "socket" else get("/v1/default/records?limit=8000")
    with many(25, make) as clients:
        for client in clients:
            client.socket.setsockopt(1, 8, 4096)  # SO_RCVBUF, so that little of it is in the system's buffers
            client.socket.sendall(ask)
        while served.look(lambda: served.calls.running) or served.look(lambda: room.total) < 5 * 2**20:
            pass
        with closing(make()) as other:  # others are served meanwhile
            if over == "socket":
                assert other.ask({"op": "count"})["result"] == 4
            else:
                assert other.answer(post(EXECUTE, {"op": "count"}))[0] == 200
                assert other.answer(get("/v1/default/records?limit=8000"))[0] == 503
        assert peak <= most
    while served.look(lambda: room.total):
        pass
    with closing(make()) as again:
        assert (again.ask({"op": "find"})["ok"] is True) if over == "socket" else (again.answer(ask)[0] == 200)


def test_control_without_the_limit_they_have_all(served: Served) -> None:
    room = served.calls.unread
    room.most = room.most_each = 2**40
    with served.memory() as memory:
        for number in range(4):
            memory.remember(f"{number}{BIG}", id=f"big{number}")
    with many(12, lambda: HttpClient(served.http)) as clients:
        for client in clients:
            client.socket.setsockopt(1, 8, 4096)
            client.socket.sendall(get("/v1/default/records?limit=8000"))
        while served.look(lambda: room.total) < 30 * 2**20:
            pass


def test_a_client_of_the_socket_that_does_not_read_is_cut_off(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_module, "READ_S", 0.05)
    with served.memory() as memory:
        for number in range(4):
            memory.remember(f"{number}{BIG}", id=f"big{number}")
    with served.line_client() as client:
        client.send({"op": "find"})
        while not served.look(lambda: served.calls.unread.total):
            pass
        while served.look(lambda: served.calls.unread.total):
            pass
        with pytest.raises((EOFError, ConnectionError)):
            client.answer()


def test_an_export_is_read_in_pages_of_bounded_size(served: Served) -> None:
    with served.memory() as memory:
        for number in range(4):
            memory.remember(f"{number}{BIG}", id=f"big{number}")
    with served.line_client() as client:
        assert client.ask({"export": "open"})["result"]["count"] == 4
        assert [len(client.ask({"export": "read"})["result"]) for _ in range(5)] == [1, 1, 1, 1, 0]


def test_the_limit_of_a_client_is_above_that_of_an_answer() -> None:
    assert answers.ANSWER_BYTES < MOST_EACH < unread_module.MOST
    assert isinstance(LineClient, type)


def test_the_reads_of_a_batch_are_bounded_by_bytes_and_undo_it(tmp_path: Path) -> None:
    large = "x" * 200_000
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all([{"content": f"{large} {number}", "id": f"r{number}"} for number in range(40)])
        operations = (op.Remember(content="undone", id="undone"), op.Find(limit=40))
        desk, place = Desk(lambda writes: memory), Place()
        with pytest.raises(AnswerTooLargeError, match="nothing was changed"):
            answers.answer(
                op.ExecuteBatch(operations=operations), lambda each: desk.execute(Request(each, place), Grant())
            )
        assert memory.get("undone") is None
        assert len(memory.execute(op.ExecuteBatch(operations=operations))) == 2  # in this process there is no limit


@pytest.mark.usefixtures("small")
def test_the_newest_commits_are_read_without_all_that_are_older(served: Served) -> None:
    with served.memory() as memory:
        for number in range(60):
            memory.remember(f"note {number}", id=f"n{number}")
    sent: list[Any] = []

    def send(operation: Any, rest: Any) -> Any:
        answer = decode(answers.answer(operation, here.execute))
        sent.extend(answer["result"])
        return answer

    with recollect.open(served.path, embedder="none") as here:
        found = read_whole(op.Changes(newest_first=True, limit=20), send, lambda: None)
        assert [each.seq for each in found] == [*range(here.seq, here.seq - 20, -1)]
    assert len(sent) <= 20 + RECORDS


@pytest.mark.parametrize("over", ["socket", "http"])
def test_reads_of_an_open_batch_are_bounded_one_by_one(served: Served, over: str) -> None:
    with served.memory(over) as memory:
        for number in range(8):
            memory.remember(f"{number} {'x' * 900_000}", id=f"r{number}")
        with memory.batch() as batch:
            assert [batch.get(f"r{number}").content[0] for number in range(8)] == list("01234567")  # type: ignore[union-attr]


def test_a_list_that_changes_between_its_parts_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(answers, "ANSWER_BYTES", 2000)
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("first", id="x")
        for number in range(30):
            memory.update("x", content=f"version {number}")
        sent = []

        def send(operation: Any, rest: Any) -> Any:
            sent.append(rest)
            if len(sent) == 2:
                memory.update("x", content="in between")
            raw = answers.answer(operation, memory.execute, None if rest is None else answers.Rest.from_json(rest))
            return decode(raw)

        def failing(operation: Any, rest: Any) -> Any:
            memory.update("x", content=f"again {len(sent)}")
            return send(operation, rest)

        assert len(read_whole(op.History(id="x"), send, lambda: None)) == 32
        assert sent.count(None) == 2
        with pytest.raises(ResultChangedError, match="ask for the first part again"):
            read_whole(op.History(id="x"), failing, lambda: None)
