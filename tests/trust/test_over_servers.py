"""Classes of origin over HTTP and MCP: every entry point by every class of writer, and the least class of what is read.

In process, over a socket and on PostgreSQL, tests/trust/test_entry_points.py does the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.http.serving import Server, served
from tests.mcp.clients import Connected, in_process
from tests.trust.test_entry_points import ENTRIES

import recollect
from recollect import Memory
from recollect.operations import Remember
from recollect.records.origins import ORIGINS, RANKS, implied, least

pytestmark = pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("trust"), tokens=True) as server:
        yield server


@pytest.fixture(scope="module")
def tokens(server: Server) -> dict[str, str]:
    """A token of each class; that of the owner needs the right admin."""
    rights: dict[str, Any] = {"owner": "admin"}
    return {each: server.token(f"of {each}", rights.get(each, "write"), origin=each) for each in ORIGINS}


@pytest.mark.parametrize("writer", ORIGINS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_over_http_a_record_is_of_the_class_of_its_entry_and_never_above_its_token(
    server: Server, tokens: dict[str, str], tmp_path: Path, entry: str, writer: Any
) -> None:
    store, of_user = ENTRIES[entry]
    place = f"{entry} by {writer}".replace(" ", "-").replace("'", "")
    memory: Any = server.memory(place, tokens[writer])
    if writer == "owner":
        memory = memory.as_origin("owner")  # who states nothing writes as the user
    record = memory.get(store(memory, tmp_path))
    assert RANKS[record.effective_origin] <= RANKS[writer]
    if writer != "owner":
        assert record.effective_origin == least((of_user, writer))
        assert (record.origin is None) == (record.effective_origin == implied(record.role, record.source, record.kind))


@pytest.mark.parametrize("writer", ORIGINS)
def test_over_http_no_token_states_a_higher_class(server: Server, tokens: dict[str, str], writer: str) -> None:
    for origin in ORIGINS:
        body = {"content": f"stated as {origin}", "origin": origin, "in": {"origin": writer}}
        answer = server("POST", f"/v1/stated-{writer}/remember", body, token=tokens[writer])
        if RANKS[origin] > RANKS[writer]:
            assert (answer.status, answer.json["code"]) == (403, "origin")
        else:
            assert answer.json["record"].get("origin", "user") == origin
        above = {"content": f"in the place of {origin}", "in": {"origin": origin}}
        placed = server("POST", f"/v1/stated-{writer}/remember", above, token=tokens[writer])
        if origin == "owner" != writer:
            assert (placed.status, placed.json["code"]) == (403, "origin")
        else:  # "at most": the token has less
            assert placed.json["record"].get("origin", "user") == least((origin, writer))


def test_over_http_a_least_class_is_a_filter_and_hits_say_their_class(server: Server, tokens: dict[str, str]) -> None:
    for origin in ORIGINS:
        body = {"content": f"The museum of {origin} opens at nine.", "id": origin, "in": {"origin": origin}}
        assert server("POST", "/v1/read/remember", body, token=tokens["owner"]).status == 201
    for least_class in ORIGINS:
        wanted = {each for each in ORIGINS if RANKS[each] >= RANKS[least_class]}
        asked: dict[str, Any] = {"question": "When does the museum open?", "k": 20, "min_origin": least_class}
        hits = server("GET", f"/v1/read/recall?{urlencode(asked)}", token=tokens["unknown"]).json["hits"]
        assert {each["record"]["id"] for each in hits} == wanted
        assert {each["record"]["id"]: each.get("origin") for each in hits} == {
            each: None if each in ("owner", "user") else each for each in wanted
        }
        listed = server("GET", f"/v1/read/records?min_origin={least_class}", token=tokens["unknown"]).json["records"]
        assert {each["id"] for each in listed} == wanted
        prompt: dict[str, Any] = {"question": asked["question"], "min_origin": least_class, "max_tokens": 4000}
        text = server("POST", "/v1/read/context", prompt, token=tokens["unknown"]).json["text"]
        assert {each for each in ORIGINS if f"museum of {each} " in text} == wanted


def test_a_token_of_the_class_assistant_changes_what_it_wrote_before_there_were_classes(server: Server) -> None:
    token = server.token("mobile", origin="assistant")
    remote = server.memory("before", token)
    with recollect.open(server._folder / "served.db", "before") as memory:
        for actor in ("mobile", "app (token mobile)", "app (token other)", "app"):
            memory.execute(Remember(content=f"said by {actor}", id=actor.replace(" ", "-")), actor=actor)
    cases: list[tuple[str, str | None, str]] = [
        ("mobile", None, "updated"),
        ("app-(token-mobile)", None, "proposed"),
        ("app-(token-mobile)", "app", "updated"),
        ("app-(token-other)", "app", "proposed"),
        ("app", "app", "proposed"),
    ]
    for record_id, by, status in cases:
        update = recollect.operations.Update(id=record_id, changes={"content": f"changed by {by}"})
        outcome = remote.execute(update, actor=by)
        assert outcome.status == status, (record_id, by)


#: Tool -> its set, its arguments, and the part that has what it stores.
TOOLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "remember": ("recollect", {"content": "The ferry leaves at nine."}, "records"),
    "create_entities": (
        "reference",
        {"entities": [{"name": "Ana", "entityType": "person", "observations": ["likes tea"]}]},
        "records",
    ),
    "define_term": ("glossary", {"key": "AP", "value": "access point", "agent_id": "a"}, "terms"),
    "import_outline": ("outline", {"text": "# Notes\n\nA text\n", "format": "markdown", "source": "a.md"}, "nodes"),
    "store_text": ("sdr", {"text": "some text here"}, "sdrs"),
}


@pytest.mark.stores("memory", "sqlite")
@pytest.mark.parametrize("writer", ORIGINS)
@pytest.mark.parametrize("tool", TOOLS)
def test_over_mcp_a_record_is_never_above_the_class_of_the_connection(memory: Memory, tool: str, writer: Any) -> None:
    name, arguments, part = TOOLS[tool]
    with in_process(memory, [name], origin=writer) as connected:
        connected.ok(tool, **arguments)
    found = memory._part(part).find() if part != "records" else memory.find()
    assert found
    for record in found:
        assert RANKS[record.effective_origin] <= RANKS[writer]
        if RANKS[writer] <= RANKS["assistant"] or tool == "remember":
            assert record.effective_origin == writer


@pytest.mark.stores("memory", "sqlite")
@pytest.mark.parametrize("writer", ORIGINS)
def test_over_mcp_no_connection_changes_what_is_above_it(memory: Memory, writer: Any) -> None:
    for origin in ORIGINS:
        memory.as_origin(origin).remember("The museum opens at nine.", id=origin)
    with in_process(memory, ["recollect"], origin=writer) as connected:
        for origin in ORIGINS:
            changed = connected.ok("update", id=origin, content=f"The museum of {origin} is shut.")
            assert (changed["status"] == "proposed") == (RANKS[origin] > RANKS[writer]), origin
            assert (memory.get(origin).text == "The museum opens at nine.") == (changed["status"] == "proposed")  # type: ignore[union-attr]


@pytest.mark.stores("memory", "sqlite")
@pytest.mark.parametrize("tools", ["daily", "recollect"])
@pytest.mark.parametrize("least_class", ORIGINS)
def test_over_mcp_a_least_class_is_a_filter_and_hits_say_their_class(
    memory: Memory, tools: str, least_class: Any
) -> None:
    for origin in ORIGINS:
        memory.as_origin(origin).remember(f"The museum of {origin} opens at nine.", id=origin)
    wanted = {each for each in ORIGINS if RANKS[each] >= RANKS[least_class]}

    def hits(connected: Connected) -> dict[str, str | None]:
        found = connected.ok("recall", question="When does the museum open?", k=20, min_origin=least_class)
        return {each["id"]: each.get("origin") for each in found["hits"]}

    with in_process(memory, [tools]) as connected:
        assert hits(connected) == {each: None if each in ("owner", "user") else each for each in wanted}
        text = connected.ok("context", question="When does the museum open?", min_origin=least_class)["context"]
        assert {each for each in ORIGINS if f"museum of {each} " in text} == wanted


def test_over_http_a_proposal_says_so(server: Server, tokens: dict[str, str]) -> None:
    path = "/v1/proposed"
    server("POST", f"{path}/remember", {"content": "The account is 4410.", "id": "pay"}, token=tokens["user"])
    same = server("PATCH", f"{path}/records/pay", {"content": "The account is 4411."}, token=tokens["user"])
    assert (same.status, same.json["id"]) == (200, "pay")
    other = server("PATCH", f"{path}/records/pay", {"content": "The account is 9917."}, token=tokens["assistant"])
    assert (other.status, other.json["supersedes"]) == (202, ["pay"])
    line = json.dumps({"content": "A wish", "id": "wish"}).encode()
    policies = {"op": "set_policies", "origins": {"assistant": "quarantine"}}
    assert server("POST", f"{path}/execute", policies, token=tokens["owner"]).status == 200
    done = server("POST", f"{path}/import", line, token=tokens["assistant"])
    assert (done.json["created"], done.json["quarantined"]) == (0, 1)


def test_over_http_who_may_write_as_the_user_has_no_exception_by_name(server: Server) -> None:
    token = server.token("ana", origin="user")
    server("POST", "/v1/of-ana/remember", {"content": "The account is 4410.", "id": "pay"}, token=token)
    for name in ("ana", None, "claude"):
        place = {"origin": "assistant", "client": "mcp", **({} if name is None else {"actor": name})}
        body = {"op": "update", "id": "pay", "changes": {"content": "The account is 9917."}, "in": place}
        answer = server("POST", "/v1/of-ana/execute", body, token=token)
        assert answer.json["result"]["status"] == "proposed", (name, answer.json)


@pytest.mark.stores("memory", "sqlite")
def test_over_mcp_what_a_client_wrote_for_the_user_it_does_not_change_as_a_model(memory: Memory) -> None:
    with in_process(memory, ["recollect"], origin="user") as trusted:
        trusted.ok("remember", content="The account is 4410.", id="pay")
    assert memory.log(1)[0].actor.endswith(" (as user)")  # type: ignore[union-attr]
    with in_process(memory, ["recollect"]) as model:
        assert model.ok("update", id="pay", content="The account is 9917.")["status"] == "proposed"
        seq = memory.seq
        memory.update("pay", content="The account is 4411.")
        done = model.ok("rollback", to=str(seq))
        assert done["conflicts"] == ["pay"]
