"""The tools on the history, called by the official client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.mcp.clients import Connected, in_process, texts

import recollect
from recollect.server.mcp.budget import tokens_of
from recollect.testing import TickingClock

pytestmark = pytest.mark.stores(clock=TickingClock)


@pytest.fixture
def server(memory: recollect.Memory) -> Iterator[Connected]:
    with in_process(memory, ["recollect"], origin="user") as connected:
        yield connected


def test_the_versions_of_a_record_come_newest_first_with_who_changed_it(server: Connected) -> None:
    stored = server.ok("remember", content="Ana prefers window seats", id="seat")
    server.ok("update", id="seat", content="Ana prefers aisle seats")
    server.ok("forget", id="seat")
    found = server.ok("history", id="seat")
    assert found["id"] == stored["id"] == "seat"
    assert [(each["cause"], each["reason"], each["content"]) for each in found["versions"]] == [
        ("forgotten", "forget", ""),
        ("written", "update", "Ana prefers aisle seats"),
        ("written", "remember", "Ana prefers window seats"),
    ]
    assert [each["seq"] for each in found["versions"]] == [3, 2, 1]
    assert "log lists the ids" in server.refused("history", id="nothing")


def test_the_pages_of_a_history_have_every_version_once(memory: recollect.Memory, server: Connected) -> None:
    memory.remember("version 0", id="a")
    for number in range(1, 30):
        memory.update("a", content=f"version {number} " + "x" * 100)
    found, cursor = [], None
    while True:
        result = server.call("history", id="a", max_tokens=300, cursor=cursor)
        page = result.structured_content
        assert tokens_of(texts(result)[0]) < 400
        found += [each["seq"] for each in page["versions"]]
        cursor = page.get("cursor")
        if cursor is None:
            break
    assert found == list(range(30, 0, -1))


def test_a_diff_lists_what_differs_between_two_moments(memory: recollect.Memory, server: Connected) -> None:
    memory.remember("Ana prefers window seats", id="seat")
    memory.remember("Ana flies on Friday", id="flight")
    assert server.ok("snapshot", name="before the trip")["seq"] == 2
    memory.update("seat", content="Ana prefers aisle seats", importance=0.5)
    memory.forget("flight")
    memory.remember("Ana likes tea", id="tea")
    found = server.ok("diff", old="before the trip")
    assert (found["added"], found["changed"], found["removed"]) == (1, 1, 1)
    assert found["changes"] == [
        {"change": "removed", "id": "flight", "content": "Ana flies on Friday"},
        {"change": "added", "id": "tea", "content": "Ana likes tea"},
        {
            "change": "changed",
            "id": "seat",
            "content": "Ana prefers aisle seats",
            "fields": ["content", "importance"],
            "before": "Ana prefers window seats",
        },
    ]
    assert server.ok("diff", old="5", new="4")["removed"] == 1
    assert server.ok("diff", old="2999-01-01") == {"added": 0, "changed": 0, "removed": 0, "changes": []}
    assert "[unknown_target]" in server.refused("diff", old="no such snapshot")


def test_the_pages_of_a_diff_have_every_change_once(memory: recollect.Memory, server: Connected) -> None:
    memory.remember_all([{"content": f"note {number} " + "x" * 60, "id": f"{number:02}"} for number in range(40)])
    found, cursor = [], None
    while True:
        page = server.ok("diff", old="0", max_tokens=200, cursor=cursor)
        found += [each["id"] for each in page["changes"]]
        cursor = page.get("cursor")
        if cursor is None:
            break
    assert found == [f"{number:02}" for number in range(40)]


def test_a_long_text_in_a_diff_is_shortened_before_and_after(memory: recollect.Memory, server: Connected) -> None:
    memory.remember("long " * 5000, id="a")
    memory.update("a", content="longer " * 5000)
    result = server.call("diff", old="1", max_tokens=400)
    assert tokens_of(texts(result)[0]) < 500
    assert result.structured_content["changes"][0]["shortened"] == 35_000


def test_a_rollback_restores_a_moment_names_the_client_and_can_be_taken_back(
    memory: recollect.Memory, server: Connected
) -> None:
    memory.remember("Ana prefers window seats", id="seat")
    server.ok("snapshot", name="before")
    memory.update("seat", content="Ana prefers aisle seats")
    result = server.call("rollback", to="before")
    assert result.structured_content == {"seq": 3, "changed": 1}
    assert texts(result)[1] == "To take this back, roll back to 2."
    newest = memory.log(1)[0]
    assert (newest.reason, newest.changes[0].cause) == ("rollback", "rolled back")
    assert newest.actor is not None
    assert memory.find()[0].text == "Ana prefers window seats"
    server.ok("rollback", to="2")
    assert memory.find()[0].text == "Ana prefers aisle seats"
    assert server.ok("rollback", to="4") == {"seq": 4, "changed": 0}
    assert "[unknown_target]" in server.refused("rollback", to="99")


def test_a_client_of_one_user_sees_its_own_history_and_changes_no_other(memory: recollect.Memory) -> None:
    memory.remember("likes tea", user="bo", id="of-bo")
    with in_process(memory, ["recollect"], user="ana") as server:
        listed = {tool.name for tool in server.run(server.client.list_tools).tools}
        assert {"history", "diff"} <= listed
        assert not {"snapshot", "rollback"} & listed
        server.ok("remember", content="Ana likes tea", id="tea")
        assert [each["content"] for each in server.ok("history", id="tea")["versions"]] == ["Ana likes tea"]
        assert "seq" not in server.ok("history", id="tea")["versions"][0]
        server.refused("history", id="of-bo")
        found = server.ok("diff", old="2020-01-01T00:00:00Z")
        assert [each["id"] for each in found["changes"]] == ["tea"]
        assert "[scope]" in server.refused("diff", old="1")
