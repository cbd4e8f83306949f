"""Hits over a socket as bytes and lists: what a client gets equals what a process gets."""

from __future__ import annotations

import copy
import json
import pickle
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from tests.server.serving import Served

from recollect import Hits, Memory, Record
from recollect.errors import InvalidOperationError
from recollect.records.record import with_stored_names
from recollect.server.socket import actions
from recollect.wire import compact, decode, encode
from recollect.wire.client import unix

QUESTION = "where does Zoë keep the blue bicycle?"


def fill(memory: Memory) -> None:
    memory.remember("Zoë keeps the bicycle in the shed.", id="a", kind="conversation", conversation="c", position=0)
    memory.remember("It is the blue one.", id="b", kind="conversation", conversation="c", position=1)
    memory.remember(
        "The blue bicycle was sold.", id="x", metadata={"n": [1, 2.5]}, tags=["é"], supersedes=["a"], importance=0.5
    )
    memory.remember("Always answer Zoë in French.", id="s", tags=["standing:instruction"], user="zoë")


def everything(hits: Hits) -> dict[str, Any]:
    out = hits.to_json()
    return {name: value for name, value in out.items() if name not in ("time", "reference")}


def test_a_client_gets_the_same_hits(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    ask = unix._Connection.exchange

    def noted(connection: Any, data: bytes, timeout_s: float) -> Any:
        answer = ask(connection, data, timeout_s)
        sent.append(decode(data) | {"answer": copy.deepcopy(answer)})
        return answer

    monkeypatch.setattr(unix._Connection, "exchange", noted)
    with served.memory() as memory:
        fill(memory)
        hits = memory.recall(QUESTION, concise=False)
        assert sent[-1]["compact"] is True
        assert sent[-1]["answer"]["result"]["compact"] == 1
        monkeypatch.setitem(actions.PONG, "compact", False)
        with served.memory() as other:  # a server of an earlier release
            expected = other.recall(QUESTION, concise=False)
            assert "compact" not in sent[-1]
        assert len(hits) == 4
        assert len(hits.standing) == 1
        assert (hits, everything(hits)) == (expected, everything(expected))
        assert [hit.record.hash for hit in hits] == [hit.record.hash for hit in expected]
        for again in (copy.deepcopy(memory.recall(QUESTION)), pickle.loads(pickle.dumps(memory.recall(QUESTION)))):
            assert [(hit.record, hit.why) for hit in again] == [
                (hit.record, hit.why) for hit in memory.recall(QUESTION)
            ]
        scoped = memory.scoped(user="zoë")
        assert [hit.record.id for hit in scoped.recall("French").standing] == ["s"]


def test_a_program_that_does_not_ask_for_it_gets_fields(served: Served) -> None:
    with served.memory() as memory:
        fill(memory)
        with served.line_client() as client:
            result = client.ask({"op": "recall", "question": QUESTION})["result"]
            assert result["hits"][0]["record"]["content"]
            for wrong in (1, "yes", None):
                assert client.code({"op": "recall", "question": QUESTION, "compact": wrong}) == "protocol"
            assert client.ask({"op": "count", "compact": True})["result"] == 4


def test_records_with_names_of_an_earlier_release_keep_their_bytes() -> None:
    record = with_stored_names(Record(id="a", content="x", user="zoë"), {"user": "zoe\u0308"})
    hits = in_process()
    hits = replace(hits, hits=(replace(hits[0], record=record),))
    again = compact.hits_of(decode(encode(compact.compact_form(hits))))
    assert again[0].record.to_bytes() == record.to_bytes() != Record(id="a", content="x", user="zoë").to_bytes()


def in_process() -> Hits:
    import recollect

    with recollect.open(":memory:") as memory:
        fill(memory)
        return memory.recall(QUESTION)


def form() -> dict[str, Any]:
    out: dict[str, Any] = json.loads(encode(compact.compact_form(in_process())))
    return out


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, 7), (0, "@@@"), (1, "0.5"), (1, True), (2, None), (3, []), (4, {}), (5, "a")],
)
def test_what_is_not_in_this_form_is_an_error_at_once(at: int, value: Any) -> None:
    data = form()
    compact.hits_of(data)
    data["hits"][0][at] = value
    with pytest.raises(InvalidOperationError, match="is not the JSON form of hits"):
        compact.hits_of(data)
    wrongs: list[Any] = [{}, [], None, {"compact": 1}, {**form(), "hits": [[]]}]
    for wrong in wrongs:
        with pytest.raises(InvalidOperationError):
            compact.hits_of(wrong)


def test_a_record_or_an_explanation_that_is_none_is_an_error_when_it_is_read() -> None:
    data = form()
    data["hits"][0][0] = b64encode(b"\x01\x01\x01").decode()
    data["hits"][1][4] = [["word"]]
    data["hits"][2][3] = {"words": "much"}
    hits = compact.hits_of(data)
    with pytest.raises(InvalidOperationError, match="have a record that is none"):
        hits[0].record  # noqa: B018
    for hit in hits[1:3]:
        with pytest.raises(InvalidOperationError, match="is not the JSON form of an explanation"):
            hit.why  # noqa: B018
    assert hits[0].why == in_process()[0].why


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (4, [["word", "like", 1, 1, [], "title"]]),
        (4, [["word", None, 1, 1, [], 0]]),
        (4, [["word", "like", "1", 1, [], 0]]),
        (4, [["word", "like", 1, 1, "ids", 0]]),
        (4, [["word", "like", 1, 1, [7], 0]]),
        (5, [7]),
        (6, "0.5"),
    ],
)
def test_each_part_of_an_explanation_has_its_type(at: int, value: Any) -> None:
    data = form()
    data["hits"][0][at] = value
    hit = compact.hits_of(data)[0]
    with pytest.raises(InvalidOperationError, match="is not the JSON form of an explanation"):
        hit.why  # noqa: B018
