"""Bodies: no route ignores a field that it does not know, and a line that is no record is reported and ends nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import Server, served

from recollect.server.http.exchange import Exchange
from recollect.server.http.routes import ROUTES, Described

#: What a route needs in its body, so that nothing but the field is wrong.
NEEDED: dict[str, dict[str, Any]] = {
    "/execute": {"op": "count"},
    "/remember": {"content": "x"},
    "/messages": {"messages": [{"role": "user", "content": "x"}]},
    "/recall": {"question": "x"},
    "/context": {"question": "x"},
    "/batches/{batch}/execute": {"op": "count"},
}
#: Routes whose body is lines, and those that have none: what their body would say is refused by HTTP itself.
WITHOUT_FIELDS = {("POST", "/import"), ("DELETE", "/records/{id:path}")}
UNKNOWN = ("nobody_knows_this", "where ", "self", "")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(tmp_path) as running:
        yield running


def ignored(server: Server, routes: Iterable[Described] = ROUTES) -> Iterator[tuple[str, str, str]]:
    """Yield the routes that read a body and do not refuse a field that they do not know."""
    server("POST", "/v1/team/remember", {"content": "a note", "id": "a"})
    for route in routes:
        for method in {*route.methods} - {"GET"}:
            if (method, route.path) in WITHOUT_FIELDS:
                continue
            for name in UNKNOWN:
                number = ""
                if "{batch}" in route.path:
                    number = server("POST", "/v1/team/batches", {}).json["result"]["batch"]
                path = "/v1/team" + route.path.replace("{id:path}", "a").replace("{batch}", number)
                answer = server(method, path, NEEDED.get(route.path, {}) | {name: 1})
                if answer.status != 400:
                    yield method, route.path, name
                    number = answer.json["result"]["batch"] if route.path == "/batches" else number
                if number and server("DELETE", f"/v1/team/batches/{number}").status != 200:
                    yield method, route.path, "it ended the batch"


def test_every_route_that_reads_a_body_refuses_a_field_that_it_does_not_know(server: Server) -> None:
    assert list(ignored(server)) == []


def test_control_the_sweep_finds_routes_that_ignore_fields(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Exchange.json

    async def lenient(exchange: Exchange, known: Any = None) -> Any:
        return await read(exchange)

    monkeypatch.setattr(Exchange, "json", lenient)
    paths = {"/export", "/batches", "/batches/{batch}/commit"}
    routes = [route for route in ROUTES if route.path in paths]
    assert {path for _, path, _ in ignored(server, routes)} == paths


LINES = (b"null", b"[1]", b'"x"', b"5", b"true", b"[]", b"{", b"{}", b'{"id": 5}', b"\xff", b"[" * 500 + b"]" * 500)
DEEP = '{"a":' * 500 + "1" + "}" * 500


@pytest.mark.parametrize(
    "line", [*LINES, f'{{"id": "deep", "content": "x", "kind": "note", "metadata": {DEEP}}}'.encode()]
)
def test_a_line_that_is_no_record_is_listed_and_the_others_are_stored(server: Server, line: bytes) -> None:
    server("POST", "/v1/team/remember", {"content": "a note", "id": "a"})
    record = server("GET", "/v1/team/records/a").json | {"hash": None}
    others = [json.dumps(record | {"id": f"n{number}"}).encode() for number in range(2)]
    done = server("POST", "/v1/other/import", b"\n".join((others[0], line, others[1])))
    assert done.status == 200, done.body
    assert (done.json["created"], done.json["refused"]) == (2, 1)
    assert [each["line"] for each in done.json["failed"]] == [2]


@pytest.mark.parametrize("levels", [65, 500, 900])
def test_metadata_that_is_nested_too_deeply_is_refused_by_every_route_that_stores(server: Server, levels: int) -> None:
    server("POST", "/v1/team/remember", {"content": "a note", "id": "a"})
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    message = {"role": "user", "content": "x", "metadata": value}
    for method, path, body in (
        ("POST", "remember", {"content": "x", "metadata": value}),
        ("POST", "messages", {"messages": [message]}),
        ("POST", "messages", {"messages": [{"role": "user", "content": "x"}], "metadata": value}),
        ("PATCH", "records/a", {"metadata": value}),
        ("POST", "execute", {"op": "remember", "content": "x", "fields": {"metadata": value}}),
    ):
        for headers in ({}, {"Idempotency-Key": f"{levels} {path} {len(str(body))}"}):
            answer = server(method, f"/v1/team/{path}", body, headers=headers)
            assert answer.status == 400 or answer.json.get("failed"), (path, answer.body[:300])
