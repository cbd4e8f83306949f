"""Hostile lines and requests: each has an answer with a known code, nothing is logged, and the server goes on."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.examples import FULL
from tests.server.hostile import Hostile, codes
from tests.server.serving import PING, HttpClient, Served

from recollect.operations.base import all_operations

COUNT = 10_000 if FULL else 400
#: The types of answers that are not JSON.
OTHER_TYPES = ("text/html", "application/x-ndjson", "text/plain; version=0.0.4")


def problem_in(answer: Any, known: set[str]) -> str:
    """Return what is wrong with an answer to a line; "" if nothing is."""
    match answer:
        case {"ok": True, **rest} if rest:
            return ""
        case {"ok": False, "error": {"code": str(code), "message": str(message), "args": list()}}:
            if code not in known:
                return f"the code {code} is unknown"
            return f"{message}" if "internal error" in message or code == "damaged_store" else ""
    return f"{answer!r:.200} is no answer"


def problem_in_response(method: str, status: int, headers: dict[str, str], body: bytes, known: set[str]) -> str:
    """Return what is wrong with an answer over HTTP; "" if nothing is."""
    if status >= 500 and status not in (501, 503):
        return f"the status is {status}: {body[:200]!r}"
    if method == "HEAD" or status == 304:
        return "" if not body else "there is a body"
    if status < 400 and headers.get("content-type", "").startswith(OTHER_TYPES):
        return ""
    try:
        data = json.loads(body)
    except ValueError:
        return f"{body[:200]!r} is no JSON"
    if status < 400:
        return ""
    return problem_in({"ok": False, "error": {"message": data.get("detail"), **data}}, known)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    with Served(tmp_path / "store", guard_body_s=0.2) as server:
        yield server
        with server.line_client() as client:
            assert client.ask({"op": "remember", "content": "it goes on", "id": "last"})["ok"]
            assert client.ask({"op": "check"})["result"]["problems"] == []
        assert server.problems == []
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


@pytest.mark.promise("serve.hostile")
def test_whatever_a_line_says_it_has_an_answer_and_the_server_goes_on(served: Served) -> None:
    hostile, known = Hostile("lines"), codes()
    with served.line_client() as client:
        for number in range(COUNT):
            line = hostile.line()
            assert problem_in(client.ask(line), known) == "", line
            if number % 20 == 0:
                assert client.ask(PING.strip())["pong"] is True


@pytest.mark.promise("serve.hostile")
def test_whatever_lines_are_pipelined_each_has_an_answer(served: Served) -> None:
    hostile, known = Hostile("pipeline"), codes()
    with served.line_client() as client:
        for _ in range(COUNT // 100):
            lines = [hostile.line() for _ in range(99)]
            client.send(*lines, PING.strip())
            for line in lines:
                assert problem_in(client.answer(), known) == "", line
            assert client.answer()["pong"] is True


@pytest.mark.promise("serve.hostile")
def test_whatever_a_request_says_it_has_an_answer_and_the_server_goes_on(served: Served) -> None:
    hostile, known = Hostile("requests"), codes()
    with HttpClient(served.http) as other:
        for number in range(COUNT):
            method, data = hostile.request()
            with HttpClient(served.http) as client:
                answer = client.answer(data, method)
                assert problem_in_response(method, *answer, known) == "", data
            if number % 20 == 0:
                assert other.answer(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"ok": True, "result": 1}, ""),
        ({"ok": True}, "no answer"),
        ({"ok": False, "error": {"code": "protocol", "message": "x", "args": []}}, ""),
        ({"ok": False, "error": {"code": "nope", "message": "x", "args": []}}, "unknown"),
        ({"ok": False, "error": {"code": "server", "message": "internal error in x", "args": []}}, "internal error"),
        ([], "no answer"),
    ],
)
def test_the_checker_of_answers_sees_what_is_wrong(answer: Any, problem: str) -> None:
    found = problem_in(answer, codes())
    assert problem in found
    assert bool(found) is bool(problem)


def test_the_checker_of_responses_sees_what_is_wrong() -> None:
    good = json.dumps({"code": "protocol", "detail": "x", "args": []}).encode()
    assert problem_in_response("GET", 400, {}, good, codes()) == ""
    assert "no JSON" in problem_in_response("GET", 400, {"content-type": "text/plain"}, b"Invalid request", codes())
    assert "status" in problem_in_response("GET", 500, {}, good, codes())
    assert "no JSON" in problem_in_response("GET", 404, {"content-type": "text/html"}, b"<html>", codes())


def test_hostile_messages_follow_from_their_seed_and_reach_every_operation() -> None:
    one, two = Hostile("seed"), Hostile("seed")
    lines = [one.line() for _ in range(2000)]
    assert lines == [two.line() for _ in range(2000)]
    assert all(any(f'"op":"{name}"'.encode() in line for line in lines) for name in all_operations())
