"""Branches over HTTP: where a request names one, and which a token may reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.http.serving import Server, served

import recollect
from recollect.errors import AccessError, UnknownBranchError


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with recollect.open(tmp_path / "served.db", embedder="none") as memory:
        memory.remember("Ana prefers window seats", id="seat")
        memory.branch("what-if").update("seat", content="Ana prefers aisle seats")
        memory.branch("other")
    with served(tmp_path, tokens=True) as running:
        yield running


def test_a_request_names_its_branch_in_its_place_or_in_a_header(server: Server) -> None:
    token = server.token("all", "admin", branches=("*",))
    body = {"op": "get", "id": "seat"}
    assert server("POST", "/v1/default/execute", body, token=token).json["result"]["content"].endswith("window seats")
    placed = body | {"in": {"branch": "what-if"}}
    assert server("POST", "/v1/default/execute", placed, token=token).json["result"]["content"].endswith("aisle seats")
    header = {"Recollect-Branch": "what-if"}
    answer = server("GET", "/v1/default/records/seat", token=token, headers=header)
    assert answer.json["content"] == "Ana prefers aisle seats"
    refused = server("POST", "/v1/default/execute", placed, token=token, headers={"Recollect-Branch": "other"})
    assert refused.status == 400
    missing = server("GET", "/v1/default/records/seat", token=token, headers={"Recollect-Branch": "none"})
    assert (missing.status, missing.json["code"]) == (404, "unknown_branch")


def test_a_client_has_the_calls_of_branches(server: Server) -> None:
    with server.memory(token=server.token("all", "admin", branches=("*",))) as memory:
        branch = memory.on("what-if")
        assert branch.recall("which seat")[0].record.content == "Ana prefers aisle seats"
        with branch.batch() as batch:
            batch.remember("Cy sails", id="sails")
        assert [each.seq for each in branch.log()] == [3, 2, 1]
        assert [each.name for each in memory.branches()] == ["main", "other", "what-if"]
        assert memory.merge_branch("what-if").taken == 2
        assert memory.get("sails") is not None
        made = memory.branch("new")
        with made.subscribe(since=made.seq) as commits:
            memory.remember("of main")
            made.remember("of the new one")
            assert [change.cause for change in next(commits).changes] == ["written"]
        memory.drop_branch("new")
        with pytest.raises(UnknownBranchError):
            made.count()


@pytest.mark.parametrize(
    ("allowed", "reached"), [((), {"main"}), (("other",), {"other"}), (("main", "other"), {"main", "other"})]
)
def test_a_token_reaches_its_branches_alone(server: Server, allowed: tuple[str, ...], reached: set[str]) -> None:
    token = server.token("some", "admin", branches=allowed)
    for name in ("main", "other", "what-if"):
        body = {"op": "count", "in": {"branch": name}}
        answer = server("POST", "/v1/default/execute", body, token=token)
        assert (answer.status == 200) is (name in reached), name
        assert name in reached or answer.json["code"] == "access"
        listed = server("GET", "/v1/default/records", token=token, headers={"Recollect-Branch": name})
        assert (listed.status == 200) is (name in reached)
        stream = server("HEAD", "/v1/default/changes", token=token, headers={"Recollect-Branch": name})
        assert (stream.status == 200) is (name in reached)
    within = {"branch": sorted(reached)[0]}
    found = server("POST", "/v1/default/execute", {"op": "branches", "in": within}, token=token)
    assert {each["name"] for each in found.json["result"]} == reached
    for operation in ("merge_branch", "drop_branch", "create_branch"):
        body = {"op": operation, "branch": "what-if", "in": within}
        assert server("POST", "/v1/default/execute", body, token=token).json["code"] == "access", operation


def test_a_client_without_the_right_is_refused(server: Server) -> None:
    with server.memory(token=server.token("main", "write")) as memory:
        with pytest.raises(AccessError, match="the branch 'what-if'"):
            memory.on("what-if")
        with pytest.raises(AccessError):
            memory.merge_branch("what-if")
    writer = server.token("all", "write", branches=("*",))
    with server.memory(token=writer) as memory, pytest.raises(AccessError, match="admin"):
        memory.drop_branch("what-if")
