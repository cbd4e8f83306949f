"""HTTP: every operation, readable routes, ETags, streams, problems, and a description that lists what there is."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import Answer, Server, served

import recollect
from recollect import operations as op
from recollect.errors import ConflictError, IdempotencyError, InvalidRecordError
from recollect.operations.base import all_operations
from recollect.wire.client.http import HttpTransport
from recollect.wire.client.transport import LostError


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(tmp_path) as running:
        yield running


def problem(answer: Answer) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "code", "args"} <= answer.json.keys()
    assert answer.json["status"] == answer.status
    return answer.status, answer.json["code"]


class TestCalls:
    def test_a_day_of_an_agent_by_readable_routes(self, server: Server) -> None:
        made = server("POST", "/v1/team/remember", {"content": "Ana prefers window seats", "user": "ana", "id": "seat"})
        assert (made.status, made.json["record"]["id"]) == (201, "seat")
        again = server(
            "POST", "/v1/team/remember", {"content": "Ana prefers window seats", "user": "ana", "id": "seat"}
        )
        assert (again.status, again.json["status"]) == (200, "unchanged")
        messages = [{"role": "user", "content": "I moved to Oslo."}, {"role": "assistant", "content": "Noted."}]
        report = server("POST", "/v1/team/messages", {"messages": messages, "user": "bob", "conversation": "c"})
        assert (report.json["created"], report.json["failed"]) == (2, [])
        hits = server("GET", "/v1/team/recall?question=which+seat+for+Ana&k=1").json["hits"]
        assert [hit["record"]["id"] for hit in hits] == ["seat"]
        assert server("POST", "/v1/team/recall", {"question": "Oslo?", "where": "user=bob"}).json["hits"]
        assert "Oslo" in server("GET", "/v1/team/context?question=Oslo&max_tokens=200&user=bob").json["text"]
        assert server("GET", "/v1/team/context?question=Oslo&user=ana").json["text"].count("Oslo") == 0
        found = server("GET", "/v1/team/records?where=user%3Dana&limit=1").json
        assert [each["id"] for each in found["records"]] == ["seat"]
        assert server("GET", "/v1/team/records/seat").json["content"] == "Ana prefers window seats"
        changed = server("PATCH", "/v1/team/records/seat", {"content": "Ana prefers aisle seats"})
        assert changed.json["content"] == "Ana prefers aisle seats"
        assert len(server("GET", "/v1/team/history/seat").json["versions"]) == 2
        assert server("DELETE", "/v1/team/records/seat").json["status"] == "forgotten"
        assert problem(server("GET", "/v1/team/records/seat")) == (404, "unknown_record")
        assert [each["seq"] for each in server("GET", "/v1/team/changes?since=1&limit=2").json["commits"]] == [2, 3]
        assert server("GET", "/v1/default/records").json == {"records": [], "cursor": None}

    def test_every_operation_is_executed_in_its_json_form(self, server: Server) -> None:
        write = op.Remember(content="tea", id="a").to_json()
        done = server("POST", "/v1/default/execute", {**write, "in": {"scope": {"user": "ana"}, "actor": "me"}})
        assert (done.status, done.json["ok"], done.json["result"]["record"]["user"]) == (200, True, "ana")
        assert server("POST", "/v1/default/execute", op.Count().to_json()).json == {"ok": True, "result": 1}
        assert server.memory().log()[0].actor == "me"
        found = server("POST", "/v1/default/execute", op.Wait(since=0, timeout=5).to_json())
        assert found.json == {"ok": True, "result": True}

    def test_an_id_may_contain_slashes_and_signs(self, server: Server) -> None:
        server("POST", "/v1/default/remember", {"content": "x", "id": "a/b c?ü"})
        assert server("GET", "/v1/default/records/a/b%20c%3F%C3%BC").json["content"] == "x"

    def test_a_repeated_write_with_a_key_gives_the_first_answer(self, server: Server) -> None:
        turn = {"content": "ok", "kind": "conversation", "conversation": "c", "role": "user"}
        key = {"Idempotency-Key": "k1"}
        first, again = (server("POST", "/v1/default/remember", turn, headers=key) for _ in range(2))
        assert first.json == again.json
        assert server.memory().count() == 1
        other = server("POST", "/v1/default/remember", {**turn, "content": "no"}, headers=key)
        assert problem(other) == (422, IdempotencyError.code)
        messages = {"messages": [{"role": "user", "content": "ok"}], "conversation": "d"}
        bodies = {
            server("POST", "/v1/default/messages", messages, headers={"Idempotency-Key": "k2"}).body for _ in "ab"
        }
        assert len(bodies) == 1

    @pytest.mark.parametrize(
        ("method", "path", "body", "expected"),
        [
            ("POST", "/v1/default/remember", {}, (400, "missing_argument")),
            ("POST", "/v1/default/remember", {"content": 5}, (400, "invalid_record")),
            ("POST", "/v1/default/remember", {"content": "x", "usr": "a"}, (400, "unknown_argument")),
            ("POST", "/v1/default/remember", [], (400, "protocol")),
            ("POST", "/v1/default/remember", b"{", (400, "protocol")),
            ("POST", "/v1/default/execute", {"op": "nope"}, (400, "invalid_operation")),
            ("POST", "/v1/default/execute", {"op": 5}, (400, "invalid_operation")),
            ("POST", "/v1/default/execute", {"op": "count", "in": {"namespace": "other"}}, (400, "protocol")),
            ("POST", "/v1/default/execute", {"op": "count", "in": {"x": 1}}, (400, "protocol")),
            (
                "POST",
                "/v1/default/execute",
                {"op": "update", "id": "none", "changes": {"content": "x"}},
                (404, "unknown_record"),
            ),
            ("GET", "/v1/default/recall", None, (400, "missing_argument")),
            ("GET", "/v1/default/recall?question=x&k=0", None, (400, "invalid_argument")),
            ("GET", "/v1/default/recall?question=x&k=many", None, (400, "protocol")),
            ("GET", "/v1/default/recall?question=x&question=y", None, (400, "protocol")),
            ("GET", "/v1/default/recall?question=x&where=user%3D", None, (400, "invalid_filter")),
            ("GET", "/v1/default/changes?since=nonsense", None, (400, "invalid_argument")),
            ("GET", "/nowhere", None, (404, "protocol")),
            ("GET", "/v1/default/export?bogus=1", None, (400, "protocol")),
            ("GET", "/v1/default/changes?bogus=1", None, (400, "protocol")),
            ("GET", "/v1/default/records/a?user=ana", None, (400, "protocol")),
            ("POST", "/v1/default/remember?user=zoe", {"content": "x"}, (400, "protocol")),
            ("DELETE", "/v1/default/remember", None, (405, "protocol")),
            ("DELETE", "/v1/default/records/none", None, (404, "unknown_record")),
            ("POST", "/v1/default/batches/none/commit", {}, (409, "closed")),
        ],
    )
    def test_what_is_wrong_is_a_problem_with_a_code(
        self, server: Server, method: str, path: str, body: Any, expected: tuple[int, str]
    ) -> None:
        assert problem(server(method, path, body)) == expected

    def test_a_conflict_says_what_is_stored(self, server: Server) -> None:
        server("POST", "/v1/default/remember", {"content": "x", "id": "a"})
        refused = server("POST", "/v1/default/remember", {"content": "y", "id": "a", "expect": "absent"})
        assert problem(refused) == (409, ConflictError.code)
        assert refused.json["unchanged"] is True


@pytest.mark.files
def test_a_store_that_is_replaced_is_opened_again(server: Server, tmp_path: Path) -> None:
    server("POST", "/v1/default/remember", {"content": "old", "id": "a"})
    server.memory().backup(str(tmp_path / "b.backup"))
    with recollect.open(tmp_path / "other.db") as other:
        other.remember("new", id="a")
    for name in ("-wal", "-shm"):
        (tmp_path / f"served.db{name}").unlink()
    os.replace(tmp_path / "other.db", tmp_path / "served.db")
    assert server("GET", "/v1/default/records/a").json["content"] == "new"  # the first request, too


@pytest.mark.files
@pytest.mark.parametrize("batch", [False, True])
def test_the_first_write_after_the_store_was_deleted_creates_another(
    server: Server, tmp_path: Path, batch: bool
) -> None:
    server("POST", "/v1/default/remember", {"content": "old", "id": "a"})
    for name in ("", "-wal", "-shm"):
        (tmp_path / f"served.db{name}").unlink()
    if batch:  # which cannot be begun again: its client opens another one
        refused = server("POST", "/v1/default/batches", {})
        assert problem(refused) == (503, "store_replaced")
    key = {"Idempotency-Key": "k1"}
    assert server("POST", "/v1/default/remember", {"content": "new", "id": "b"}, headers=key).status == 201
    assert [each["id"] for each in server("GET", "/v1/default/records").json["records"]] == ["b"]


@pytest.mark.files
def test_control_without_a_second_try_the_first_request_fails(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "recollect.server.calls.ClientCalls._note"
    monkeypatch.setattr(note, lambda calls, error: bool(calls.failed(error)) and False)
    server("POST", "/v1/default/remember", {"content": "old", "id": "a"})
    for name in ("", "-wal", "-shm"):
        (tmp_path / f"served.db{name}").unlink()
    statuses = [server("POST", "/v1/default/remember", {"content": "new"}).status for _ in range(2)]
    assert statuses == [503, 201]


class TestCaching:
    def test_an_answer_that_the_client_has_is_not_sent_again(self, server: Server) -> None:
        server("POST", "/v1/default/remember", {"content": "Ana likes tea", "id": "a"})
        for path in ("records/a", "records", "history/a", "changes", "recall?question=tea"):
            first = server("GET", f"/v1/default/{path}")
            tag = first.headers["etag"]
            again = server("GET", f"/v1/default/{path}", headers={"If-None-Match": f'"other", {tag}'})
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag), path
            server("PATCH", "/v1/default/records/a", {"content": f"Ana likes tea from {path}"})
            assert server("GET", f"/v1/default/{path}", headers={"If-None-Match": tag}).status == 200, path


class TestStreams:
    def test_commits_are_events_and_a_client_that_returns_misses_none(self, server: Server) -> None:
        memory = server.memory()
        for number in range(3):
            memory.remember(f"fact {number}")
        events = _events(server, 3, "?since=0")
        assert [each["data"]["seq"] for each in events] == [1, 2, 3]
        memory.remember("fact 3")
        (resumed,) = _events(server, 1, "", {"Last-Event-ID": events[-1]["id"]})
        assert resumed["data"]["seq"] == 4
        later = threading.Thread(target=lambda: memory.remember("fact 4"))
        (new,) = _events(server, 1, "?since=4", started=later.start)
        later.join()  # the event may come before the answer, for which the server must still be there
        assert new["data"]["seq"] == 5

    def test_events_of_a_user_are_those_of_the_user(self, server: Server) -> None:
        memory = server.memory()
        for number, user in enumerate(("ana", "bob", "ana")):
            memory.remember(f"secret {number} of {user}", user=user)
        events = _events(server, 2, "?user=ana&since=0")
        assert all("seq" not in each["data"] for each in events)

    def test_an_export_is_of_one_moment_and_can_be_imported(self, server: Server) -> None:
        memory = server.memory()
        memory.remember_all(
            [{"content": f"fact {number}", "id": f"{number:04}", "tags": ["x"]} for number in range(450)]
        )
        answer = server("GET", "/v1/default/export")
        lines = answer.body.splitlines()
        assert json.loads(lines[0]) == {"root": memory.head().parts["records"], "count": 450, "parts": []}
        assert len(lines) == 451
        done = server("POST", "/v1/copy/import", answer.body)
        assert done.json == {"created": 450, "updated": 0, "unchanged": 0, "refused": 0, "failed": []}
        assert server.memory("copy").root == memory.root
        assert server("POST", "/v1/copy/import", answer.body).json["unchanged"] == 450

    def test_an_export_of_a_user_has_the_records_of_the_user(self, server: Server) -> None:
        memory = server.memory()
        for user in ("ana", "bob"):
            memory.remember(f"a secret of {user}", user=user)
        body = server("GET", "/v1/default/export?user=ana").body
        assert b"of ana" in body
        assert b"of bob" not in body

    def test_bad_lines_of_an_import_are_reported_and_the_others_stored(self, server: Server) -> None:
        lines = [b'{"id": "a", "content": "one"}', b"nonsense", b'{"id": "b"}', b"", b'{"id": "c", "content": "three"}']
        done = server("POST", "/v1/default/import", b"\n".join(lines)).json
        assert (done["created"], [each["line"] for each in done["failed"]]) == (2, [2, 3])
        assert {each["error"] for each in done["failed"]} == {"protocol", InvalidRecordError.code}

    def test_a_line_of_an_import_that_is_too_long_is_reported_by_its_number(self, tmp_path: Path) -> None:
        lines = [b'{"id": "1", "content": "one"}', b"", b"x" * 3000, b'{"id": "4", "content": "four"}']
        with served(tmp_path, body_bytes=1000) as server:
            body = iter(part.encode() for part in b"\n".join(lines).decode())  # a byte at a time
            done = server("POST", "/v1/default/import", body).json
            assert (done["created"], [each["line"] for each in done["failed"]]) == (2, [3])
            assert "longer than 1000 bytes" in done["failed"][0]["message"]

    def test_an_import_counts_all_refused_lines_and_lists_the_first(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.server.http.streams._LISTED", 3)
        monkeypatch.setattr("recollect.server.http.streams._STORED", 2)
        lines = ["x", '{"id": "a", "content": "one"}', '{"id": "b"}', "y", "z"]
        done = server("POST", "/v1/default/import", "\n".join(lines)).json
        assert (done["created"], done["refused"], [each["line"] for each in done["failed"]]) == (1, 4, [1, 3, 4])

    def test_an_import_stores_long_lines_a_few_at_a_time(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("recollect.server.http.streams._STORED_BYTES", 100_000)
        lines = [json.dumps({"id": str(number), "content": f"{number} " * 15_000}) for number in range(10)]
        assert server("POST", "/v1/default/import", "\n".join(lines)).json["created"] == 10
        assert server.memory().seq == 3  # of up to 4 lines each


def _events(
    server: Server,
    count: int,
    query: str,
    headers: Mapping[str, str] | None = None,
    started: Callable[[], object] = lambda: None,
) -> list[dict[str, Any]]:
    connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=30)
    connection.request("GET", f"/v1/default/changes{query}", headers={"Accept": "text/event-stream", **(headers or {})})
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    out: list[dict[str, Any]] = []
    event: dict[str, Any] = {}
    started()
    while len(out) < count:
        line = response.readline().decode().rstrip("\n")
        name, _, value = line.partition(": ")
        if name == "id":
            event["id"] = value
        elif name == "data":
            event["data"] = json.loads(value)
        elif not line and "data" in event:
            out.append(event)
            event = {}
    connection.close()
    return out


class TestDescription:
    def test_it_lists_every_route_and_every_operation(self, server: Server) -> None:
        described = server("GET", "/openapi.json").json
        assert described["openapi"].startswith("3.")
        listed = {each["title"] for each in described["components"]["schemas"]["Operation"]["oneOf"]}
        assert listed == set(all_operations())
        assert "/v1/{namespace}/execute" in described["paths"]
        for path, methods in described["paths"].items():
            for method in methods:
                concrete = path.replace("{namespace}", "default").replace("{id}", "none").replace("{batch}", "none")
                assert server(method.upper(), concrete, b"{}").status not in (404, 405) or "none" in concrete, path

    def test_it_has_the_parts_that_the_routes_of_a_whole_memory_accept(self, server: Server) -> None:
        paths = server("GET", "/openapi.json").json["paths"]
        for path in ("changes", "export"):
            described = paths[f"/v1/{{namespace}}/{path}"]["get"]["parameters"]
            queries = {each["name"] for each in described if each["in"] == "query"}
            assert {"parts", "user", "agent", "conversation"} <= queries
            for name in queries:
                problem = server("GET", f"/v1/default/{path}?{name}=&nothing=1").json
                assert "nothing" in problem["detail"]
                assert f"'{name}'" not in problem["detail"]
        body = paths["/v1/{namespace}/export"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert set(body["properties"]) == {"parts", "in"}
        assert server("POST", "/v1/default/export", {"parts": ["keys"], "in": {}}).status == 200

    def test_the_page_shows_it_without_anything_from_elsewhere(self, server: Server) -> None:
        page = server("GET", "/")
        text = page.body.decode()
        assert page.headers["content-type"].startswith("text/html")
        assert "openapi.json" in text
        assert "http://" not in text
        assert "https://" not in text

    @pytest.mark.files
    def test_health_readiness_and_metrics(self, server: Server) -> None:
        assert server("GET", "/healthz").json == server("GET", "/readyz").json == {"ok": True}
        server("POST", "/v1/default/remember", {"content": "a secret text", "id": "secret-id"})
        server("POST", "/v1/default/execute", {"op": "secret-operation"})
        text = server("GET", "/metrics").body.decode()
        assert 'recollect_requests_total{door="http",error="",operation="remember"} 1.0' in text
        assert 'operation="other"' in text
        assert "recollect_store_file_bytes" in text
        server("GET", "/v1/default/recall?question=text")
        server("POST", "/v1/default/remember", {"content": "another text"})
        server("GET", "/v1/default/recall?question=text")
        text = server("GET", "/metrics").body.decode()
        for name, number in (("cached", 1), ("builds_total", 1), ("catch_ups_total", 1), ("evictions_total", 0)):
            assert f'recollect_index_{name}{{index="words"}} {number}.0' in text
        assert "secret" not in text


class TestPaths:
    def test_a_slash_within_a_namespace_or_an_id_is_a_part_of_it(self, server: Server) -> None:
        memory = server.memory("team/a")
        memory.remember("tea", id="notes/1")
        assert (memory.namespaces(), server.memory("team").count()) == (["team/a"], 0)
        for path in (
            "/v1/team%2Fa/records/notes%2F1",
            "/v1/team%2fa/records/notes/1",
            "/v1/team%2Fa/history/notes%2F1",
        ):
            assert server("GET", path).status == 200
        assert server("GET", "/v1/team/a/records/notes/1").status == 404

    def test_another_method_is_answered_with_the_known_ones(self, server: Server) -> None:
        answer = server("POST", "/v1/default/records/x")
        assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, PATCH")

    @pytest.mark.parametrize("path", ["/changes", "/export"])
    def test_the_head_of_a_stream_has_an_end(self, server: Server, path: str) -> None:
        answer = server("HEAD", f"/v1/default{path}", headers={"Accept": "text/event-stream"})
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["content-type"].startswith(("text/event-stream", "application/x-ndjson"))

    @pytest.mark.parametrize(
        ("method", "path", "body", "word"),
        [
            ("PATCH", "/records/x", {"id": "y"}, "'id'"),
            ("PATCH", "/records/x", {"self": 1}, "'self'"),
            ("POST", "/messages", {"messages": [], "self": 1}, "'self'"),
            ("POST", "/recall", {"question": "x", "self": 1}, "'self'"),
            ("GET", "/recall?question=x&self=1", None, "'self'"),
            ("GET", "/changes?limit=1&limit=2", None, "'limit' twice"),
        ],
    )
    def test_a_name_that_is_no_parameter_is_refused_in_the_words_of_the_request(
        self, server: Server, method: str, path: str, body: Any, word: str
    ) -> None:
        answer = server(method, f"/v1/default{path}", body)
        assert answer.status == 400
        assert word in answer.json["detail"]
        assert "position" not in answer.json["detail"]


class TestBatches:
    def test_a_commit_that_is_sent_again_is_answered_again(self, server: Server) -> None:
        number = server("POST", "/v1/default/batches", {}).json["result"]["batch"]
        path = f"/v1/default/batches/{number}"
        assert server("POST", f"{path}/execute", {"op": "remember", "content": "tea"}).status == 200
        assert [server("POST", f"{path}/commit", {}).status for _ in range(3)] == [200] * 3
        assert server("POST", f"{path}/execute", {"op": "count"}).status == 409
        assert server("DELETE", path).status == 409
        assert server.memory().seq == 1

    def test_a_commit_whose_answer_is_lost_is_sent_again(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        request, lost = HttpTransport._request, ["once"]

        def once_lost(transport: HttpTransport, method: str, path: str, *rest: Any) -> Any:
            answer = request(transport, method, path, *rest)
            if path.endswith("/commit") and lost:
                raise LostError("the connection broke", sent=bool(lost.pop()))
            return answer

        monkeypatch.setattr(HttpTransport, "_request", once_lost)
        memory = server.memory()
        with memory.batch() as batch:
            batch.remember("tea")
        assert (memory.seq, lost) == (1, [])

    def test_a_key_that_a_batch_would_ignore_is_refused(self, server: Server) -> None:
        key = {"Idempotency-Key": "k"}
        assert server("POST", "/v1/default/batches", {}, headers=key).status == 400
        path = f"/v1/default/batches/{server('POST', '/v1/default/batches', {}).json['result']['batch']}"
        assert server("POST", f"{path}/commit", {}, headers=key).status == 400
        assert server("POST", f"{path}/commit", {}).status == 200
        paths = server("GET", "/openapi.json").json["paths"]
        of_batches = [item for path, methods in paths.items() if "/batches" in path for item in methods.values()]
        assert len(of_batches) == 4
        assert not any(each["name"] == "Idempotency-Key" for item in of_batches for each in item["parameters"])

    def test_other_requests_of_its_token_do_not_keep_a_batch_from_ending(self, tmp_path: Path) -> None:
        with served(tmp_path, most_running=1) as server:
            path = f"/v1/default/batches/{server('POST', '/v1/default/batches', {}).json['result']['batch']}"
            with closing(http.client.HTTPConnection(server.address.removeprefix("http://"))) as waiting:
                waiting.request("POST", "/v1/default/execute", '{"op":"remember","content":"it waits for the lock"}')
                while not server.running():
                    pass
                assert server("GET", "/v1/default/records").status == 429
                assert server("POST", f"{path}/execute", {"op": "remember", "content": "tea"}).status == 200
                assert server("POST", "/v1/default/batches/another/execute", {}).status == 429
                assert server("POST", f"{path}/commit", {}).status == 200
                assert waiting.getresponse().status == 200
            assert server.memory().count() == 2

    def test_a_batch_is_not_opened_for_a_client_that_has_left(self, server: Server) -> None:
        path = f"/v1/default/batches/{server('POST', '/v1/default/batches', {}).json['result']['batch']}"
        with closing(http.client.HTTPConnection(server.address.removeprefix("http://"))) as leaving:
            leaving.request("POST", "/v1/default/batches", "{}")
            while not server.running():
                pass
        while server.running():
            pass
        assert server("DELETE", path).status == 200
        assert server("POST", "/v1/default/remember", {"content": "tea"}).status == 201  # no call has the lock
        assert server.batches() == 0

    def test_a_batch_is_one_commit_that_others_see_at_the_end(self, server: Server) -> None:
        memory, other = server.memory(), server.memory()
        with memory.batch(reason="both") as batch:
            first = batch.remember("one")
            assert batch.get(first.id) == first
            batch.remember("two")
            assert other.count() == 0
        assert (memory.seq, other.count(), memory.log()[0].reason) == (1, 2, "both")

    def test_a_batch_whose_time_is_over_is_undone_and_others_go_on(self, tmp_path: Path) -> None:
        with served(tmp_path, batch_s=0.05) as server:
            memory = server.memory()
            with pytest.raises(recollect.errors.ClosedError), memory.batch() as batch:
                batch.remember("lost")
                server.memory().remember("waits until the lock is free")
                batch.remember("too late")
            assert [each.content for each in memory.find()] == ["waits until the lock is free"]

    def test_an_exception_undoes_it(self, server: Server) -> None:
        memory = server.memory()
        with pytest.raises(KeyError), memory.batch() as batch:
            batch.remember("one")
            raise KeyError
        assert memory.count() == 0


def test_the_client_needs_no_server_packages(server: Server) -> None:
    code = f"""
import sys
for name in ("starlette", "uvicorn", "prometheus_client"):
    sys.modules[name] = None
import recollect
with recollect.connect({server.address!r}) as memory:
    memory.remember("from another process")
    print(memory.count())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_whose_records_are_read_is_said_in_a_query_as_in_a_body(server: Server) -> None:
    for owner in ("ana", "bob", None):
        server("POST", "/v1/default/remember", {"content": f"a note of {owner}", "user": owner})
    for name in ("ana", "x or user=bob"):
        expected = {"a note of None"} | ({"a note of ana"} if name == "ana" else set())
        query = urllib.parse.urlencode({"user": name})
        records = server("GET", f"/v1/default/records?{query}").json["records"]
        assert {each["content"] for each in records} == expected
        for answer in (
            server("GET", f"/v1/default/recall?question=note&{query}"),
            server("POST", "/v1/default/recall", {"question": "note", "user": name}),
            server("POST", "/v1/default/recall", {"question": "note", "where": ["user=? or not user", name]}),
        ):
            assert {each["record"]["content"] for each in answer.json["hits"]} == expected
    assert server("GET", "/v1/default/recall?question=note&min_confidence=auto").status == 200
    assert server("GET", "/v1/default/recall?question=note&min_confidence=much").status == 400
    for include, found in (("records,outline", True), ("glossary", False)):
        text = server("GET", f"/v1/default/context?question=note&user=ana&include={include}").json["text"]
        assert ("a note of ana" in text) == found
    assert server("GET", "/v1/default/context?question=note&include=everything").status == 400
    only = server("POST", "/v1/default/recall", {"question": "note", "in": {"scope": {"user": "ana"}}}).json["hits"]
    assert [each["record"]["content"] for each in only] == ["a note of ana"]


def test_the_former_name_of_the_time_of_asking_is_accepted(server: Server) -> None:
    server("POST", "/v1/default/remember", {"content": "The kettle was repaired yesterday", "time": "2026-03-02"})
    named = [
        server("GET", f"/v1/default/context?question=kettle+yesterday&{name}=2026-03-03").json
        for name in ("reference", "time")
    ]
    assert named[0] == named[1]
    both = "/v1/default/context?question=kettle&reference=2026-03-03&time=2026-03-03"
    assert server("GET", both).json["code"] == "invalid_argument"
