"""The actor of a commit names the token, whatever a client states: over every operation, route and door that writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.http.serving import Server, served
from tests.http.test_access import Session

import recollect
from recollect.operations.base import READ, all_operations
from recollect.wire import Grant

STATED = "root-admin (token admin)"
SIGNED = f"{STATED} (token mobile)"
NOTE = {"op": "remember", "content": "a note", "id": "a"}
#: An operation of each kind that writes, in an order in which each changes something.
WRITES: list[dict[str, Any]] = [
    NOTE,
    {"op": "remember", "content": "another", "id": "b"},
    {"op": "remember_all", "items": [{"op": "remember", "content": each, "id": each} for each in "cd"]},
    {"op": "add_messages", "turns": [{"role": "user", "content": "hello"}], "fields": {"conversation": "x"}},
    {"op": "update", "id": "a", "changes": {"content": "a changed note"}},
    {"op": "supersede", "id": "b", "content": "a newer one"},
    {"op": "touch", "ids": ["b"], "ttl": 60},
    {"op": "forget_all", "ids": ["b"]},
    {"op": "merge", "content": "both", "sources": {"c": None, "d": None}},
    {"op": "revert", "seq": 1},
    {"op": "remember", "content": "a last one", "id": "e"},
    {"op": "forget", "id": "e"},
    {"op": "remember", "content": "one more", "id": "f", "fields": {"user": "ana"}},
    {"op": "forget_where", "where": {"user": "ana"}},
    {"op": "remember", "content": "to erase", "id": "g"},
    {"op": "erase", "id": "g"},
    {"op": "remember", "content": "a page", "id": "p", "fields": {"source": "https://site.example"}},
    {"op": "endorse", "id": "p"},
    {"op": "release", "ids": ["q"]},
    {"op": "batch", "operations": [NOTE | {"id": "h"}]},
    {"op": "batch", "operations": [NOTE | {"id": "i"}], "actor": STATED},
    {"op": "merge_branch", "branch": "other"},
    {"op": "clear"},
]
#: Those that make no commit in the log of the namespace, and rollback, which is a revert of several.
WITHOUT_COMMIT = frozenset(
    "apply_retention backup check compact create_branch drop_branch drop_snapshot embed_all probe rollback "
    "set_policies set_quota set_retention snapshot sweep".split()
)


def actors(server: Server, namespace: str) -> list[str | None]:
    with recollect.open(server._folder / "served.db", namespace) as memory:
        return [commit.actor for commit in memory.changes()]


def test_the_actor_of_every_operation_and_route_that_writes_ends_with_the_token(tmp_path: Path) -> None:
    assert {each["op"] for each in WRITES} == {
        name for name, kind in all_operations().items() if kind.right != READ
    } - WITHOUT_COMMIT
    with served(tmp_path, tokens=True, mcp=True) as server:
        token = server.token("mobile", "admin", branches=("*",))
        path = "/v1/default"
        where = {"in": {"actor": STATED}}

        def send(method: str, name: str, body: Any, *more: str) -> None:
            before = len(actors(server, "default"))
            headers = {"Idempotency-Key": more[0]} if more else {}
            answer = server(method, f"{path}/{name}", body, token=token, headers=headers)
            assert answer.status < 300, answer.body
            again = server(method, f"{path}/{name}", body, token=token, headers=headers) if more else answer
            assert again.json == answer.json
            new = actors(server, "default")[before:]
            assert new, name
            assert set(new) == {SIGNED}, (name, body)

        server("POST", f"{path}/remember", {"content": "the first"}, token=token)
        assert actors(server, "default") == ["mobile"]  # only the name
        policies = {"op": "set_policies", "origins": {"unknown": "quarantine"}}
        assert server("POST", f"{path}/execute", policies, token=token).status == 200
        kept = {"op": "remember", "content": "kept apart", "id": "q", "fields": {"origin": "unknown"}}
        assert server("POST", f"{path}/execute", kept, token=token).json["result"]["status"] == "quarantined"
        created = server("POST", f"{path}/execute", {"op": "create_branch", "branch": "other"}, token=token)
        assert created.status == 200, created.body
        other = {"Recollect-Branch": "other"}
        assert server("POST", f"{path}/execute", NOTE | {"id": "o"}, token=token, headers=other).status == 200
        for each in WRITES:
            send("POST", "execute", each if each.get("actor") else each | where)
        send("POST", "execute", NOTE | {"id": "key"} | where, "k1")
        send("POST", "execute", {"op": "batch", "operations": [NOTE | {"id": "k2"}], "actor": STATED}, "k2")
        send("POST", "remember", {"content": "by the route", "id": "r"} | where)
        send("POST", "messages", {"messages": [{"role": "user", "content": "hi"}], "conversation": "y"} | where)
        send("PATCH", "records/r", {"content": "changed"} | where)
        batch = server("POST", f"{path}/batches", where, token=token).json["result"]["batch"]
        server("POST", f"{path}/batches/{batch}/execute", NOTE | {"id": "z"}, token=token)
        send("POST", f"batches/{batch}/commit", {})
        memory = server.memory(token=token)
        memory.execute(recollect.operations.Remember(content="by a client"), actor=STATED)
        with memory.batch(actor=STATED) as opened:
            opened.remember("in its batch")
        assert actors(server, "default")[-2:] == [SIGNED] * 2
        count = len(actors(server, "default"))
        line = server("GET", f"{path}/records/r", token=token).json | {"id": "imported", "hash": None}
        done = server("POST", f"{path}/import", line, token=token)
        assert done.json["created"] == 1, done.json["failed"]
        assert server("DELETE", f"{path}/records/r", token=token).status == 200
        session = Session(server, token)  # its client is called "test"
        session("tools/call", {"name": "remember", "arguments": {"content": "over MCP"}})
        assert actors(server, "default")[count:] == ["mobile", "mobile", "test (token mobile)"]


def test_control_the_sweep_finds_a_server_that_believes_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Grant, "signed", lambda grant, stated: stated or grant.actor)
    with pytest.raises(AssertionError, match="root-admin"):
        test_the_actor_of_every_operation_and_route_that_writes_ends_with_the_token(tmp_path)


@pytest.mark.parametrize(
    ("name", "stated", "actor"),
    [
        ("mobile", None, "mobile"),
        ("mobile", "", "mobile"),
        ("mobile", "root-admin", "root-admin (token mobile)"),
        ("mobile", "x (token admin)", "x (token admin) (token mobile)"),
        ("ana (laptop)", None, "ana (laptop)"),
        ("ana (laptop)", "x", "x (token ana %28laptop%29)"),
        ("x (token admin)", None, "x %28token admin%29"),
        ("50%", "x", "x (token 50%25)"),
        (None, None, None),
        (None, "root-admin", "root-admin (token sha256:012345678901)"),
    ],
)
def test_the_last_parenthesis_is_that_of_the_server(name: str | None, stated: str | None, actor: str | None) -> None:
    grant = Grant(actor=name, client="sha256:" + "0123456789" * 6)
    assert grant.signed(stated) == actor
    assert grant.read_only().signed(stated) == actor


def test_a_client_without_a_token_is_believed() -> None:
    assert Grant().signed("root-admin") == "root-admin"
    assert Grant().signed(None) is None
