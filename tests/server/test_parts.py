"""All parts of a memory over a socket, at the level of lines and of clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.engine.family import PARTS, changed, fill, roots, write
from tests.server.serving import Served

from recollect import Memory
from recollect.errors import InvalidArgumentError, UnsupportedError
from recollect.server.lines import ExportPages
from recollect.wire import answers


@pytest.fixture(params=["socket", "http"])
def memory(request: pytest.FixtureRequest, served: Served) -> Iterator[Memory]:
    with served.memory(request.param) as connected:
        yield connected


def test_an_export_over_the_socket_is_read_part_by_part(served: Served) -> None:
    with served.memory() as memory:
        fill(memory)
        heads = roots(memory)
        with served.line_client() as client:
            head = client.ask({"export": "open"})["result"]
            assert {each["name"]: each["root"] for each in head["parts"]} | {"records": head["root"]} == heads
            fill(memory, "b")  # the export is of one moment
            for part in ("sdrs", "keys"):  # in any order
                page = client.ask({"export": "read", "part": part})["result"]
                assert len(page) == next(each["count"] for each in head["parts"] if each["name"] == part)
                assert client.ask({"export": "read", "part": part})["result"] == []
            assert [each["id"] for each in client.ask({"export": "read"})["result"]] == ["a"]
            for wrong in ("records", "outlines", "", 7, ["keys"], {"name": "keys"}):
                assert client.code({"export": "read", "part": wrong}) == "protocol"
            assert len(client.ask({"export": "read", "part": "terms"})["result"]) == 1
            assert client.ask({"export": "close"})["ok"]
            assert client.code({"export": "read", "part": "nodes"}) == "closed"
            for parts in ([], "keys", ["outlines"], 7, [None]):
                assert client.code({"export": "open", "parts": parts}) == "invalid_argument"
            chosen = client.ask({"export": "open", "parts": ["terms", "keys"]})["result"]
            assert ([each["name"] for each in chosen["parts"]], chosen["count"]) == (["keys", "terms"], 0)
            assert client.ask({"export": "read"})["result"] == []


def test_parts_of_an_export_are_read_page_by_page_and_in_turns(served: Served) -> None:
    with served.memory() as memory:
        memory.remember_all([{"content": f"fact {number}", "id": f"{number:04}"} for number in range(450)])
        memory.sdr.store_many([(f"text {number}", None) for number in range(450)])
        with memory.open_export() as export:
            (sdrs,) = export.parts
            pairs = list(zip(export.records, sdrs.records, strict=False))
            assert len(pairs) == 450
            assert [each.id for each, _ in pairs] == [f"{number:04}" for number in range(450)]
            assert len({each.id for _, each in pairs}) == 450


@pytest.mark.parametrize("over", ["socket", "http"])
def test_a_client_of_an_earlier_server_gets_the_records_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    begun = ExportPages.__init__

    def former(pages: ExportPages, *args: Any) -> None:
        begun(pages, *args)
        del pages.head["parts"]

    with served.memory(over) as memory:
        fill(memory)
        monkeypatch.setattr(ExportPages, "__init__", former)
        for parts in (None, ["keys"], ["keys", "records"]):
            with pytest.raises(UnsupportedError, match="of an earlier release"), memory.open_export(parts=parts):
                pass
        with memory.open_export(parts=["records"]) as export:
            assert ([each.id for each in export.records], export.parts) == (["a"], ())
        assert memory.count() == 1


def test_the_newest_commits_to_a_part_are_found_however_many_others_follow_them(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an answer has only some of them, the rest is read from the beginning of the log."""
    monkeypatch.setattr(answers, "ANSWER_BYTES", 2000)
    monkeypatch.setattr(answers, "RECORDS", 3)
    for number in range(24):
        write(memory, "records" if number % 3 else "keys", f"n{number}")
    newest = memory.log(6, parts=["keys"])
    assert [each.seq for each in newest] == [22, 19, 16, 13, 10, 7]
    assert memory.changes(parts=["keys"], newest_first=True) == memory.changes(parts=["keys"])[::-1]
    assert [each.seq for each in memory.log(6)] == [24, 23, 22, 21, 20, 19]
    assert [each.seq for each in memory.log(6, parts=["records"])] == [24, 23, 21, 20, 18, 17]


def test_subscribers_of_parts_get_their_commits_once_and_in_order(memory: Memory) -> None:
    with memory.subscribe(parts=["keys", "sdrs"]) as some, memory.subscribe() as whole:
        fill(memory)
        memory.clear(parts=["keys", "records"])
        write(memory, "keys", "b")
        found = [next(some) for _ in range(4)]
        every = [next(whole) for _ in range(7)]
        assert changed(found) == [("keys",), ("sdrs",), ("keys",), ("keys",)]
        assert changed(every) == [*[(part,) for part in PARTS], ("records", "keys"), ("keys",)]
        assert found == memory.changes(parts=["keys", "sdrs"])
        assert every == memory.changes()
    with memory.subscribe(since=found[1].cursor, parts=["keys"]) as rest:
        assert [next(rest).seq, next(rest).seq] == [each.seq for each in found[2:]]


def test_listening_to_a_part_that_there_is_not_is_refused_at_once(memory: Memory) -> None:
    for parts in (["outlines"], [], "keys"):
        with pytest.raises(InvalidArgumentError, match="parts"):
            memory.subscribe(parts=parts)
        with pytest.raises(InvalidArgumentError, match="parts"):
            memory.listen(print, parts=parts)
