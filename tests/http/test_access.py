"""Tokens, rights, hosts, origins and limits: what a client may not do has an answer, and reveals nothing of others."""

from __future__ import annotations

import http.client
import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.engine.operation_table import table
from tests.http.serving import Answer, Server, served
from tests.mcp.test_hostile import LISTEN, META
from tests.paths import ROOT

import recollect
from recollect import filters as f
from recollect import operations as op
from recollect.errors import AccessError, InvalidArgumentError, TokenError
from recollect.operations import Probe
from recollect.operations.base import all_operations
from recollect.server import limits
from recollect.server.addresses import allowed_hosts
from recollect.server.lines import ExportPages
from recollect.server.tokens import Tokens, add_entry, entry, hash_of, new_token
from recollect.wire import ALLOWED, OWN_OPERATIONS, READ, RIGHTS, WRITE

_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
#: What the fields of an operation can be that it must have. Nothing that is stored is meant.
_VALUES: dict[str, Any] = {
    "turns": (), "operations": (), "items": (), "ids": ("none",), "where": f.id("none"), "sources": {"none": None},
    "changes": {"content": "x"}, "operation": op.Recall(question="x", reference=_NOON), "time": _NOON,
    "seq": 1, "old": 1, "since": 0, "ttl": 1.0, "receipt": {}, "moment": "none", "hash": "0" * 64, "root": "0" * 64,
}  # fmt: skip


def examples() -> list[dict[str, Any]]:
    """Return an example of each operation, as JSON."""
    given: dict[str, Any] = {"erase": {"id": "none"}, "wait": {"timeout": 0}, "pin": {"time": _NOON}}
    given |= {
        "diff": {"old": "none", "new": "none"},
        "values": {"field": "tag"},
        "read_tree": {},
        "taint": {"ids": ("none",)},
    }
    kinds: list[tuple[str, Any]] = sorted(all_operations().items())
    out = []
    for name, kind in kinds:
        needed = [each.name for each in fields(kind) if each.default is each.default_factory is MISSING]
        values = {each: _VALUES.get(each, "none") for each in needed}
        out.append(kind(**{**values, **given.get(name, {})}).to_json())
    return out


EXAMPLES = examples()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(tmp_path, tokens=True) as running:
        yield running


def test_an_operation_needs_the_greatest_right_of_those_in_it() -> None:
    assert limits.RIGHTS == ALLOWED  # which the command line has without the wire
    assert op.ExecuteBatch(operations=(op.Get(id="a"),)).needs == WRITE
    assert op.At(moment="m", operation=op.Count()).needs == READ


def test_the_page_lists_every_operation_with_what_its_class_says() -> None:
    page = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
    assert table() in page
    assert table().count("\n") == len(all_operations()) + 1


class TestTokens:
    def test_without_a_token_nothing_is_answered_but_what_all_may_know(self, server: Server) -> None:
        for path in ("/v1/default/records", "/metrics", "/v1/default/export"):
            answer = server("GET", path)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        for path in ("/healthz", "/readyz", "/openapi.json", "/"):
            assert server("GET", path).status == 200
        assert server("GET", "/v1/default/records", token=new_token()).json["code"] == "token"
        assert server("GET", "/v1/default/records", headers={"Authorization": "Basic YTpi"}).status == 401
        with pytest.raises(TokenError):
            server.memory()

    def test_rights_are_kept_for_every_operation(self, server: Server) -> None:
        tokens = {right: server.token(right, right) for right in RIGHTS}
        for name in sorted(all_operations()):
            operation = all_operations()[name]
            try:
                needed = operation().needs
            except (TypeError, recollect.RecollectError):
                continue
            if name == "export":
                continue
            body = operation().to_json()
            for right, token in tokens.items():
                answer = server("POST", "/v1/default/execute", body, token=token)
                allowed = RIGHTS.index(right) >= RIGHTS.index(needed)
                assert (answer.json.get("code") != "access") is allowed, (name, right)

    def test_an_owner_may_do_nothing_but_with_records_of_their_own(self, server: Server) -> None:
        admin = server.memory("team", server.token("admin", "admin"))
        admin.remember("Ana likes tea", id="hers", user="ana")
        admin.remember("Bob likes tea", id="his", user="bob")
        admin.remember("All like tea", id="shared")
        own = server.token("ana herself", "own", ("team",), user="ana")
        allowed = set()
        for body in EXAMPLES:
            answer = server("POST", "/v1/team/execute", body, token=own)
            if answer.json.get("code") != "access":
                allowed.add(body["op"])
            at = {"op": "at", "moment": "0", "operation": body}
            code = server("POST", "/v1/team/execute", at, token=own).json.get("code")
            assert body["op"] in allowed or code in ("access", "invalid_operation", "read_only_memory"), body
        assert allowed == OWN_OPERATIONS
        hers = server.memory("team", own)
        assert [each.id for each in hers.find()] == ["hers"] == [hit.record.id for hit in hers.recall("tea")]
        assert hers.update("hers", content="Ana likes green tea").user == "ana"
        for call in (
            lambda: hers.remember("new"),
            lambda: hers.update("hers", user="bob"),
            lambda: hers.update("hers", derived_from=["his"]),
            lambda: hers.update("hers", pinned=True),
            lambda: hers.update("his", content="x"),
            lambda: hers.forget("shared"),
            lambda: hers.erase("his"),
            lambda: hers.namespace("other").count(),
            lambda: hers.changes(),
            lambda: hers.batch().__enter__(),
        ):
            with pytest.raises((AccessError, recollect.errors.ScopeError, recollect.errors.UnknownRecordError)):
                call()
        for method, path in (("GET", "changes"), ("POST", "import"), ("POST", "batches"), ("POST", "remember")):
            assert server(method, f"/v1/team/{path}", b"" if method == "POST" else None, token=own).status in (400, 403)
        assert server("GET", "/v1/team/export", token=own).body.count(b"\n") == 2
        server._folder.joinpath("older.db").write_bytes(server._folder.joinpath("served.db").read_bytes())
        (server._folder / "mcp").mkdir()
        with served(server._folder / "mcp", tokens=True, mcp=True) as other:
            mine = other.token("ana", "own", user="ana")
            listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            assert other("POST", "/mcp", listing, token=mine).json["code"] == "access"
        erased = hers.erase("hers")
        assert erased.ids == ("hers",)
        assert all(str(server._folder) not in copy for copy in erased.copies)
        assert [each.id for each in admin.find(order="id")] == ["his", "shared"]

    def test_an_owner_is_one_on_a_server_that_is_only_read_too(self, tmp_path: Path) -> None:
        with served(tmp_path, tokens=True) as written:
            written.memory(token=written.token("filler", "admin")).remember("Ana likes tea", id="hers", user="ana")
        with served(tmp_path, tokens=True, mcp=True, read_only=True) as server:
            own = server.token("ana", "own", user="ana")
            for body in EXAMPLES:
                code = server("POST", "/v1/default/execute", body, token=own).json.get("code")
                operation = all_operations()[body["op"]]
                allowed = body["op"] in OWN_OPERATIONS and (operation.right == READ or body["op"] == "at")
                assert (code != "access") is allowed, body
            for method, path in (("GET", "/v1/default/changes"), ("POST", "/mcp")):
                assert server(method, path, b"{}" if method == "POST" else None, token=own).status == 403

    def test_two_users_read_and_change_nothing_of_each_other(self, server: Server) -> None:
        ana, bob = (server.token(user, "write", ("team",), user=user) for user in ("ana", "bob"))
        of_ana, of_bob = server.memory("team", ana), server.memory("team", bob)
        of_ana.remember("a secret of Ana", id="note")
        of_ana.outline.ingest_text("* secret\n", "org", "n.org")
        paths = [
            "records", "records/note", "recall?question=secret", "history/note", "changes", "context?question=secret",
            "export",
        ]  # fmt: skip
        before = {path: server("GET", f"/v1/team/{path}", token=bob) for path in paths}
        of_ana.remember("another secret of Ana", id="second")
        of_ana.update("note", content="a changed secret of Ana")
        for path, answer in before.items():
            again = server("GET", f"/v1/team/{path}", token=bob)
            assert b"secret of" not in again.body, path
            assert again.headers.get("etag") == answer.headers.get("etag"), path
            if "context" not in path and "recall" not in path:
                assert again.body == answer.body, path
        assert (of_bob.count(), of_bob.stats()["records"], of_bob.outline.roots()) == (0, 0, [])
        with pytest.raises(recollect.errors.UnknownRecordError):
            of_bob.update("note", content="mine now")
        assert of_bob.remember("a note of Bob", id="note").id == "note"
        assert of_ana.get("note").content == "a changed secret of Ana"  # type: ignore[union-attr]
        for user in ("ana", None):
            body = {**op.Count().to_json(), "in": {"scope": {"user": user}} if user else {}}
            answer = server("POST", "/v1/team/execute", body, token=bob)
            assert answer.status == (403 if user else 200)
        with pytest.raises(
            AccessError, match=r"does not allow the scope user=ana, but only user=bob; nothing was done"
        ):
            of_bob.scoped(user="ana").count()
        assert server("GET", "/metrics", token=bob).status == 403
        assert of_ana.changes()[0].actor is None  # within a scope
        assert recollect.open(server._folder / "served.db", "team").log()[0].actor == "bob"

    def test_a_token_of_some_namespaces_learns_nothing_of_others(self, server: Server) -> None:
        one, admin = server.token("one", "read", ("one", "empty")), server.token("admin", "admin")
        for name in ("one", "two"):
            server.memory(name, admin).remember("x")
        of_one = server.memory("one", server.token("admin of one", "admin", ("one",)))
        for call in (
            of_one.check,
            of_one.compact,
            lambda: of_one.execute(Probe()),
            lambda: of_one.backup("/nowhere/a.backup"),
        ):
            with pytest.raises(AccessError, match="whole store"):
                call()
        assert "store" not in of_one.stats()
        of_one.set_quota(records=5)
        memory = server.memory("one", one)
        assert memory.namespaces() == ["one"]
        assert "store" not in memory.stats()
        assert "store" in server.memory("one", admin).stats()
        with pytest.raises(AccessError):
            server.memory("two", one)
        assert memory.namespace("empty").count() == 0
        with pytest.raises(AccessError):
            memory.namespace("two").count()

    def test_neither_a_batch_nor_a_moment_shows_other_namespaces(self, server: Server) -> None:
        one = server.token("admin of one", "admin", ("one",))
        for name in ("one", "two"):
            server.memory(name, server.token("admin", "admin")).remember("x")
        names = op.Namespaces()
        moment = server.memory("one", one).execute(op.Pin(seq=1)).token
        answer = server("POST", "/v1/one/execute", op.ExecuteBatch(operations=(names, op.Stats())).to_json(), token=one)
        assert answer.json["result"][0] == ["one"]
        assert "store" not in answer.json["result"][1]
        for asked in (names, op.Stats()):
            answer = server("POST", "/v1/one/execute", op.At(moment=moment, operation=asked).to_json(), token=one)
            assert (answer.status, b"two" in answer.body, b'"store"' in answer.body) == (200, False, False)
        batch = server("POST", "/v1/one/batches", {}, token=one).json["result"]["batch"]
        answer = server("POST", f"/v1/one/batches/{batch}/execute", names.to_json(), token=one)
        assert answer.json["result"] == ["one"]
        server("DELETE", f"/v1/one/batches/{batch}", token=one)

    def test_a_token_of_a_scope_does_nothing_that_concerns_the_whole_store(self, server: Server) -> None:
        of_ana = server.memory("team", server.token("ana", "admin", user="ana"))
        for call in (
            of_ana.check,
            of_ana.compact,
            lambda: of_ana.execute(Probe()),
            lambda: of_ana.backup("/nowhere/a.backup"),
        ):
            with pytest.raises(AccessError, match="whole store"):
                call()

    @pytest.mark.parametrize(("method", "path"), [("GET", "/v1/default/changes"), ("GET", "/mcp"), ("POST", "/mcp")])
    def test_a_stream_ends_when_its_token_is_revoked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str
    ) -> None:
        monkeypatch.setattr("recollect.server.tokens._LOOK_S", -1)
        monkeypatch.setattr("recollect.server.http.app._LOOK_S", 0.02)
        monkeypatch.setattr("recollect.server.http.streams._LOOK_S", 0.02)
        with served(tmp_path, tokens=True, mcp=True) as server:
            token = server.token("ana", "write")
            memory = server.memory(token=token)
            memory.remember("a fact")
            headers, body = {"Accept": "text/event-stream"}, None
            if path == "/mcp" and method == "GET":
                headers |= Session(server, token)._headers
            elif path == "/mcp":
                headers["Accept"] = "application/json, text/event-stream"
                headers |= {"Content-Type": "application/json", "MCP-Method": "subscriptions/listen"}
                headers["MCP-Protocol-Version"] = str(META["_meta"]["io.modelcontextprotocol/protocolVersion"])
                body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": LISTEN})
            with closing(http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=30)) as connection:
                connection.request(method, path, body, {**headers, "Authorization": f"Bearer {token}"})
                stream = connection.getresponse()
                assert stream.status == 200
                (tmp_path / "tokens.toml").write_text("")
                assert (b"event: error" in stream.read()) is (path != "/mcp")
            assert server("GET", path, token=token, headers=headers).status == 401

    def test_a_token_that_is_added_or_revoked_is_noticed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr("recollect.server.tokens._LOOK_S", -1)
        path, token = tmp_path / "t.toml", new_token()
        add_entry(path, entry("a", new_token(), "read", (), {}))
        tokens = Tokens(path)
        with pytest.raises(TokenError):
            tokens.grant(token)
        add_entry(path, entry('b "quoted" \\ ü\n', token, "write", ("n",), {"user": "ü"}))
        grant = tokens.grant(token)
        assert (grant.right, grant.namespaces, grant.actor) == ("write", frozenset("n"), 'b "quoted" \\ ü\n')
        path.write_text("")
        with pytest.raises(TokenError, match="does not know"):
            tokens.grant(token)
        path.write_text("nonsense")
        for _ in range(3):
            with pytest.raises(TokenError, match=r"no token is accepted: see the server's log") as refused:
                tokens.grant(token)
            assert str(path) not in str(refused.value)
        assert [each.getMessage().partition(":")[0] for each in caplog.records] == ["no token is accepted"]

    @pytest.mark.parametrize(
        ("text", "rule"),
        [
            ("x", "cannot be read"),
            ("a = 1", "tables"),
            ("[[token]]", "hash"),
            (f'[[token]]\nhash = "{hash_of("x")}"', "right"),
            (f'[[token]]\nhash = "{hash_of("x")}"\nright = "all"', "right"),
            (f'[[token]]\nhash = "{hash_of("x")}"\nright = "read"\nnamespaces = []', "namespaces"),
            (f'[[token]]\nhash = "{hash_of("x")}"\nright = "read"\nscope = {{ team = "x" }}', "scope"),
            (f'[[token]]\nhash = "{hash_of("x")}"\nright = "read"\nadmin = true', "other keys"),
            (f'[[token]]\nhash = "{hash_of("x")}"\nright = "read"\n' * 2, "twice"),
        ],
    )
    def test_a_file_that_is_wrong_is_refused_by_its_entry(self, tmp_path: Path, text: str, rule: str) -> None:
        path = tmp_path / "t.toml"
        path.write_text(text)
        path.chmod(0o600)
        with pytest.raises(InvalidArgumentError, match=rule):
            Tokens(path)

    def test_a_file_that_others_may_write_is_refused_and_a_new_one_is_its_owners(self, tmp_path: Path) -> None:
        path = tmp_path / "t.toml"
        add_entry(path, entry("a", new_token(), "read", (), {}))
        assert os.stat(path).st_mode & 0o777 == 0o600
        path.chmod(0o666)
        with pytest.raises(InvalidArgumentError, match="chmod"):
            Tokens(path)


class TestHostsAndOrigins:
    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"Host": "evil.example"}, 421),
            ({"Host": "127.0.0.1.evil.example:80"}, 421),
            ({"Host": "LOCALHOST:1"}, 200),
            ({"Host": "[::1]:80"}, 200),
            ({"Host": ""}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
        ],
    )
    def test_what_a_web_page_can_send_is_refused(self, tmp_path: Path, headers: dict[str, str], status: int) -> None:
        with served(tmp_path) as server:
            answer = server("GET", "/v1/default/records", headers=headers)
            assert answer.status == status
            if status == 403:
                assert "this server does not allow requests of web pages" in answer.json["detail"]
                assert "token" not in answer.json["detail"]

    def test_named_origins_and_hosts_are_served(self, tmp_path: Path) -> None:
        origin = "https://app.example"
        hosts = allowed_hosts("127.0.0.1", ("memory.example",))
        with served(tmp_path, origins=frozenset([origin]), hosts=hosts) as server:
            headers = {"Origin": origin, "Host": "memory.example"}
            answer = server("GET", "/v1/default/records", headers=headers)
            assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, origin)
            preflight = {**headers, "Access-Control-Request-Method": "POST"}
            assert server("OPTIONS", "/v1/default/remember", headers=preflight).status == 200


class TestLimits:
    def test_a_body_that_is_too_large_is_refused_before_it_is_read(self, tmp_path: Path) -> None:
        with served(tmp_path, body_bytes=1000) as server:
            answer = server("POST", "/v1/default/remember", {"content": "x" * 2000})
            assert (answer.status, answer.json["code"]) == (413, "protocol")
            chunked = server("POST", "/v1/default/remember", iter([b"x" * 600, b"x" * 600]))
            assert (chunked.status, chunked.json["code"]) == (413, "protocol")

    def test_more_requests_of_a_token_than_may_run_are_refused(self, tmp_path: Path) -> None:
        with served(tmp_path, most_running=0) as server:
            answer = server("GET", "/v1/default/records")
            assert (answer.status, answer.headers["retry-after"], answer.json["code"]) == (429, "1", "server_busy")

    def test_a_server_that_stops_refuses_calls(self, tmp_path: Path) -> None:
        with served(tmp_path) as server:
            server.calls.stopping = True
            answer = server("GET", "/v1/default/records")
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            server.calls.stopping = False

    def test_a_read_only_server_writes_nothing(self, tmp_path: Path) -> None:
        with served(tmp_path, read_only=True) as server:
            refused = server("POST", "/v1/default/remember", {"content": "x"}).json
            assert refused["code"] == "access"
            assert refused["detail"].startswith("this server, which was started with --read-only, does not allow")
            assert server("GET", "/v1/default/records").status == 200

    def test_the_operator_of_a_read_only_server_sees_its_metrics(self, tmp_path: Path) -> None:
        with served(tmp_path, tokens=True, read_only=True) as server:
            assert server("GET", "/metrics", token=server.token("admin", "admin")).status == 200
            assert server("GET", "/metrics", token=server.token("writer", "write")).status == 403

    def test_an_export_counts_as_a_request_while_it_lasts(self, tmp_path: Path) -> None:
        with served(tmp_path, most_running=1) as server:
            memory = server.memory()
            memory.remember_all([{"content": f"{'a long fact ' * 1000}{number}"} for number in range(1000)])
            with closing(http.client.HTTPConnection(server.address.removeprefix("http://"))) as slow:
                slow.request("GET", "/v1/default/export")
                begun = slow.getresponse()
                begun.read(100)  # and no more, so that the server waits
                assert server("GET", "/v1/default/records").status == 429
                begun.close()
            while server.running():
                pass
            assert server("GET", "/v1/default/records").status == 200

    def test_an_export_whose_client_leaves_before_it_begins_is_closed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened, closed = threading.Event(), threading.Event()
        left = threading.Event()

        class Watched(ExportPages):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args)
                opened.set()
                left.wait(30)

            def close(self) -> None:
                super().close()
                closed.set()

        monkeypatch.setattr("recollect.server.http.streams.ExportPages", Watched)
        with served(tmp_path) as server:
            server.memory().remember("tea")
            with closing(http.client.HTTPConnection(server.address.removeprefix("http://"))) as leaving:
                leaving.request("GET", "/v1/default/export")
                assert opened.wait(30)
            left.set()
            assert closed.wait(30)

    def test_a_wait_whose_client_has_left_leaves_room_for_others(self, tmp_path: Path) -> None:
        with served(tmp_path, most_running=1) as server:
            with closing(http.client.HTTPConnection(server.address.removeprefix("http://"))) as leaving:
                leaving.request("POST", "/v1/default/execute", '{"op":"wait","since":0,"timeout":86400}')
                while not server.running():
                    pass
                assert server("GET", "/v1/default/records").status == 429
            while server.running():
                pass
            assert server("GET", "/v1/default/records").status == 200

    @pytest.mark.parametrize("patient", [True, False])
    def test_an_answer_counts_until_its_client_has_read_it_or_is_cut_off(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patient: bool
    ) -> None:
        if not patient:
            monkeypatch.setattr("recollect.server.lines.READ_S", 0.05)
        with served(tmp_path, most_running=1) as server:
            server.memory().remember_all([{"content": f"{'a long fact ' * 4000}{number}"} for number in range(300)])
            with closing(http.client.HTTPConnection(server.address.removeprefix("http://"))) as slow:
                slow.request("GET", "/v1/default/records?limit=300")
                begun = slow.getresponse()
                begun.read(100)  # and no more, so that the server waits
                if patient:
                    assert server("GET", "/v1/default/records?limit=1").status == 429
                    assert begun.read().endswith(b"}")
                while server.running():
                    pass
                assert server("GET", "/v1/default/records?limit=1").status == 200

    def test_what_lies_beside_the_records_has_no_waits(self, tmp_path: Path) -> None:
        with served(tmp_path) as server:
            body = {"op": "wait", "since": 0, "timeout": 0, "in": {"beside": "terms"}}
            answer = server("POST", "/v1/default/execute", body)
            assert (answer.status, answer.json["code"]) == (400, "invalid_operation")


def test_mcp_clients_reach_what_their_token_allows(tmp_path: Path) -> None:
    with served(tmp_path, tokens=True, mcp=True) as server:
        ana = server.token("ana", "write", ("team",), user="ana")
        bob = server.token("bob", "read", ("team",), user="bob")
        server.memory("team", ana).remember("a secret of Ana")
        for token, writes in ((ana, True), (bob, False)):
            session = Session(server, token)
            names = {tool["name"] for tool in session("tools/list", {})["tools"]}
            assert ("remember" in names) is writes
            answer = session("tools/call", {"name": "recall", "arguments": {"question": "secret"}})
            assert ("a secret of Ana" in str(answer)) is writes
        session = Session(server, ana)
        session("tools/call", {"name": "remember", "arguments": {"content": "another"}})
        assert recollect.open(tmp_path / "served.db", "team").log()[0].actor == "test (token ana)"
        assert server("POST", "/mcp", {}).status == 401
        assert server("POST", "/mcp", {}, token=ana, headers={"Host": "evil.example"}).status == 421
        several = server.token("several", "read", ("one", "two"))
        tasks = server.tasks()
        for _ in range(5):
            assert server("POST", "/mcp", {}, token=several).json["code"] == "access"
        assert server.tasks() == tasks


def test_a_fault_of_ours_ends_the_requests_of_mcp_clients_and_the_next_one_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, mcp=True) as server:
        with monkeypatch.context() as broken:
            broken.setattr("recollect.server.mcp.mounted.tools_of", lambda *args, **options: 1 / 0)
            assert server("POST", "/mcp", {}).status == 500
        Session(server, "")


class Session:
    """An MCP session over HTTP, by hand."""

    def __init__(self, server: Server, token: str) -> None:
        self._server, self._token = server, token
        self._headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        self._numbers = count(1)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        answer = self._sent("initialize", client)
        self._headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        server(
            "POST",
            "/mcp",
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            token=token,
            headers=self._headers,
        )

    def __call__(self, method: str, parameters: dict[str, Any]) -> Any:
        data = next(line for line in self._sent(method, parameters).body.splitlines() if line.startswith(b"data: {"))
        return json.loads(data.removeprefix(b"data: "))["result"]

    def _sent(self, method: str, parameters: dict[str, Any]) -> Answer:
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": parameters}
        answer = self._server("POST", "/mcp", message, token=self._token, headers=self._headers)
        assert answer.status == 200, answer.body
        return answer
