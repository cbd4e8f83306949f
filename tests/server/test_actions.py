"""The actions of sdr-memory on the socket: texts as they were stored, in the order of the design's score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.serving import LineClient, Served

from recollect.errors import RejectedError
from recollect.policies import LEVELS
from recollect.sdr import encode, rule_score

NAMES = "The class FooBarBaz\n is in  /Srv/App of the HTTP API"
TEXTS = (
    "Error 500",
    "DNS timeout was the root cause of the outage",
    "Database connection pool exhausted",
    "Straße gesperrt",
    "A plan",
)


def stored(client: LineClient, text: str, **fields: Any) -> Any:
    return client.ask({"action": "store", "text": text, **fields})


def found(client: LineClient, text: str, **fields: Any) -> list[dict[str, Any]]:
    answer = client.ask({"action": "query", "text": text, **fields})
    assert answer["ok"], answer
    results: list[dict[str, Any]] = answer["results"]
    return results


def test_a_text_is_answered_and_found_as_it_was_stored(served: Served) -> None:
    with served.line_client() as client:
        assert stored(client, NAMES, metadata={"Host": "Web1"}) == {"ok": True, "id": 1, "text": NAMES}
        for rule in (True, False):
            (hit,) = found(client, "foobarbaz of the api", rule=rule)
            assert (hit["id"], hit["text"], hit["metadata"]) == (1, NAMES, {"Host": "Web1"})


def test_a_text_that_a_policy_redacts_is_answered_as_it_is_stored(served: Served) -> None:
    with served.line_client() as client:
        assert client.ask({"op": "set_policies", "redaction": "redact"})["ok"]
        assert "hunter2" not in stored(client, "The Password is hunter2")["text"]


def test_results_are_in_the_order_of_the_score_and_exactly_as_many_as_asked_for(served: Served) -> None:
    with served.line_client() as client:
        for text in TEXTS:
            stored(client, text)
        for limit in range(1, len(TEXTS) + 2):
            hits = found(client, "database timeout", limit=limit)
            assert len(hits) == min(limit, len(TEXTS))
            # The design: 1 - hamming / 4096 of the lowest 80 bits, best first.
            asked = encode("database timeout", rule=True)
            scores = [rule_score(asked, encode(hit["text"], rule=True)) for hit in hits]
            assert [hit["score"] for hit in hits] == scores == sorted(scores, reverse=True)
            assert all("confidence" not in hit for hit in hits)
        assert len(found(client, "database timeout")) == 5


def test_the_calibrated_order_is_there_if_it_is_asked_for(served: Served) -> None:
    with served.line_client() as client:
        for text in TEXTS:
            stored(client, text)
        hits = found(client, "database timeout", rule=False)
        assert [hit["text"] for hit in hits[:2]] == [TEXTS[2], TEXTS[1]]  # and not the shortest text
        confidences = [hit["confidence"] for hit in hits]
        assert confidences == sorted(confidences, reverse=True)
        assert TEXTS[0] not in [hit["text"] for hit in hits]  # it shares no trigram with the question
        assert client.code({"action": "query", "text": "x", "rule": "yes"}) == "invalid_argument"


def test_a_rejection_names_the_option_of_the_server_that_helps(tmp_path: Path) -> None:
    with Served(tmp_path) as served, served.line_client() as client:
        served.look(lambda: setattr(served.door, "salience", "normal"))
        error = stored(client, "let me check the logs")["error"]
        assert error["code"] == RejectedError.code
        assert "--salience" in error["message"]
        assert "set_policies" not in error["message"]
        assert "narrates" in error["message"]
        assert error["message"].partition("--salience ")[2] in LEVELS
        assert client.ask({"action": "stats"})["memories"] == 0
        assert stored(client, "The Disk is full")["ok"]
        assert str(RejectedError(*error["args"])) == error["message"]


def test_a_rejection_by_a_policy_of_the_memory_names_the_call_that_changes_it(served: Served) -> None:
    with served.line_client() as client:
        assert client.ask({"op": "set_policies", "redaction": "refuse"})["ok"]
        assert "set_policies()" in stored(client, "The password is hunter2")["error"]["message"]
        assert client.ask({"op": "set_policies", "salience": "normal"})["ok"]
        error = stored(client, "let me check the logs")["error"]
        assert (error["code"], error["args"][0]) == (RejectedError.code, "salience")
        assert "recollect policies" in error["message"]
        assert "--salience" not in error["message"]
        assert client.ask({"action": "stats"})["memories"] == 0
