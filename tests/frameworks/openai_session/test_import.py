"""The sessions of the SDK in SQLite, imported, are those that our session returns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents.memory.sqlite_session import SQLiteSession  # not the one that a plugin may have put in its place

import recollect
from recollect.compat.openai_agents import RecollectSession
from recollect.importers import import_path

run = asyncio.run
CALL = {"type": "function_call", "call_id": "c1", "name": "book", "arguments": '{"seat": "window"}'}
ITEMS: list[Any] = [
    {"role": "user", "content": "Grüße, I am allergic to peanuts \x00"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Noted", "annotations": []}], "id": "m1"},
    CALL,
    {"type": "function_call_output", "call_id": "c1", "output": "seat 12A is booked"},
    {"z": 1, "a": [None, True, 2**70, 1.5, {"": {}}], "content": "no role"},
    {"role": "user", "content": "\ud800 half of a pair"},
    {"role": "user", "content": ""},
]
NAMES = ["chat-1", "other \n chat", "x" * 2000, ""]


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:") as memory:
        yield memory


def written(path: Path, name: str, items: list[Any], **tables: str) -> None:
    session = SQLiteSession(name, path, **tables)
    run(session.add_items(items))
    session.close()


@pytest.mark.parametrize("owners", [{}, {"user": "ana"}, {"user": "ana", "agent": "bot"}])
@pytest.mark.parametrize("tables", [{}, {"sessions_table": "s", "messages_table": "m"}])
def test_our_session_returns_the_items_in_their_order(
    owners: dict[str, str], tables: dict[str, str], memory: recollect.Memory, tmp_path: Path
) -> None:
    for number, name in enumerate(NAMES):
        written(tmp_path / "a.db", name, ITEMS[number:], **tables)
    report = import_path(memory, "openai-sessions", tmp_path / "a.db", defaults=owners)
    assert (report.damaged, report.left_out) == ((), {})
    for number, name in enumerate(NAMES):
        back = run(RecollectSession(name, memory, **owners).get_items())
        assert back == ITEMS[number:]
        assert back == run(SQLiteSession(name, tmp_path / "a.db", **tables).get_items())
        assert [list(item) for item in back] == [list(item) for item in ITEMS[number:]]
    assert import_path(memory, "openai-sessions", tmp_path / "a.db", defaults=owners).created == 0


def test_the_conversation_goes_on_and_a_later_import_keeps_it(memory: recollect.Memory, tmp_path: Path) -> None:
    written(tmp_path / "a.db", "chat", ITEMS)
    import_path(memory, "openai-sessions", tmp_path / "a.db")
    session = RecollectSession("chat", memory)
    run(session.add_items([CALL]))
    assert import_path(memory, "openai-sessions", tmp_path / "a.db").unchanged == len(ITEMS)
    assert run(session.get_items()) == [*ITEMS, CALL]
    assert run(session.pop_item()) == CALL
    assert "peanuts" in memory.recall("what is the user allergic to: peanuts?", k=1)[0].record.text


def test_branches_are_sessions(memory: recollect.Memory, tmp_path: Path) -> None:
    advanced = pytest.importorskip("agents.extensions.memory.advanced_sqlite_session")

    def user(text: str) -> dict[str, Any]:
        return {"role": "user", "content": text}

    def assistant(text: str) -> dict[str, Any]:
        return {"role": "assistant", "content": text}

    async def talk() -> dict[str, Any]:
        session = advanced.AdvancedSQLiteSession(session_id="chat", db_path=tmp_path / "a.db", create_tables=True)
        await session.add_items([user("one"), assistant("1"), user("two"), assistant("2")])
        await session.create_branch_from_turn(2, branch_name="alt")
        await session.add_items([user("other"), assistant("3")])
        return {name: await session.get_items(branch_id=name) for name in ("main", "alt")}

    wanted = run(talk())
    assert import_path(memory, "openai-sessions", tmp_path / "a.db").damaged == ()
    assert run(RecollectSession("chat", memory).get_items()) == wanted["main"]
    assert run(RecollectSession("chat/alt", memory).get_items()) == wanted["alt"]
    assert len(wanted["alt"]) == 4
