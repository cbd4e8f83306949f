"""Sessions of the OpenAI Agents SDK in SQLite, as our session would have stored them.

What that session returns after an import is in tests/frameworks/openai_session, which needs the SDK.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests import foreign
from tests.exports import exported

import recollect
from recollect import Memory, Record
from recollect import filters as f
from recollect.cli.app import app
from recollect.compat.item_log import item_of
from recollect.compat.session_items import session_log
from recollect.errors import ImportFormatError
from recollect.importers import ImportReport, import_path
from recollect.operations import GetPolicies
from recollect.records.factories import OTHER_BRANCH

Run = Callable[..., ImportReport]

CALL = {"type": "function_call", "call_id": "c1", "name": "book", "arguments": '{"seat": "window"}'}
ITEMS: list[Any] = [
    {"role": "user", "content": "I am allergic to peanuts"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Noted", "annotations": []}], "id": "m1"},
    CALL,
    {"role": "user", "content": ""},
    {"z": 1, "a": [None, True, 2**70, 1.5, {"": {}}], "content": "no role"},
    {"role": "user", "content": "half \ud800 of a pair"},
    {"role": "\ud800", "content": "said in no role"},
    {"role": "x" * 2000, "content": "said in no role"},
]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def turns(memory: Memory, conversation: str = "chat") -> list[Record]:
    return memory.find(f.conversation(conversation), order="position")


def items(memory: Memory, conversation: str = "chat") -> list[Any]:
    return [item_of(record) for record in turns(memory, conversation)]


def test_items_become_the_records_of_a_session_with_their_times(run: Run, memory: Memory, tmp_path: Path) -> None:
    report = run("openai-sessions", foreign.sessions(tmp_path / "a.db", {"chat": ITEMS}))
    assert (report.created, report.damaged, report.left_out) == (len(ITEMS), (), {})
    assert json.dumps(items(memory)) == json.dumps(ITEMS)
    with recollect.open(":memory:", clock=lambda: datetime(2026, 5, 4, 9, 30, tzinfo=UTC)) as other:
        session = session_log(other, "chat")
        for position, item in enumerate(ITEMS):
            other.execute(session.operation(position, item, other.execute(GetPolicies())))
        assert turns(memory) == turns(other)


def test_recall_finds_the_messages_and_no_calls(run: Run, memory: Memory, tmp_path: Path) -> None:
    run("openai-sessions", foreign.sessions(tmp_path / "a.db", {"chat": ITEMS}))
    assert memory.recall("which nuts: peanuts?", k=1)[0].record.text == "I am allergic to peanuts"
    assert not memory.recall("window seat book")


def test_sessions_of_a_user_and_an_agent_are_theirs(run: Run, memory: Memory, tmp_path: Path) -> None:
    path = foreign.sessions(tmp_path / "a.db", {"chat": ITEMS[:2]})
    run("openai-sessions", path, defaults={"user": "ana", "agent": "bot", "tags": ["moved"], "session": "s"})
    one, two = turns(memory)
    assert (one.user, one.agent, one.speaker, one.tags, one.session) == ("ana", "bot", "ana", ("moved",), "s")
    assert two.speaker == "bot"
    assert one.id == session_log(memory, "chat", user="ana", agent="bot").id_of(0)
    scoped = memory.scoped(user="bob")
    assert import_path(scoped, "openai-sessions", path).created == 2
    assert [record.user for record in scoped.find()] == ["bob", "bob"]
    assert import_path(scoped, "openai-sessions", path).unchanged == 2


def test_a_session_that_has_grown_in_the_source_or_here_goes_on(run: Run, memory: Memory, tmp_path: Path) -> None:
    path = foreign.sessions(tmp_path / "a.db", {"chat": ITEMS[:2]})
    run("openai-sessions", path)
    report = run("openai-sessions", foreign.sessions(path, {"chat": ITEMS}))
    assert (report.unchanged, report.created) == (2, len(ITEMS) - 2)
    policies = memory.execute(GetPolicies())
    memory.execute(session_log(memory, "chat").operation(len(ITEMS), user("here"), policies))
    assert run("openai-sessions", path).unchanged == len(ITEMS)
    assert items(memory)[-1] == user("here")


def test_two_histories_of_a_session_are_never_mixed(run: Run, memory: Memory, tmp_path: Path) -> None:
    path = foreign.sessions(tmp_path / "a.db", {"chat": [user("one"), user("two")]})
    run("openai-sessions", path)
    root = exported(memory)
    changed = foreign.sessions(path, {"chat": [user("one"), user("other"), user("three")], "new": [user("fine")]})
    report = run("openai-sessions", changed)
    assert (report.created, report.unchanged) == (1, 1)
    assert [damage.place for damage in report.damaged] == ["session 'chat', message 2", "session 'chat', message 3"]
    assert "other items of the session" in report.damaged[0].reason
    assert items(memory) == [user("one"), user("two")]
    assert exported(memory) != root, "control: the other session was imported"


def test_the_forms_of_an_id_are_one_session_here_and_are_not_mixed(run: Run, memory: Memory, tmp_path: Path) -> None:
    path = foreign.sessions(tmp_path / "a.db", {"e\u0301": [user("one"), user("two")], "é": [user("other")]})
    report = run("openai-sessions", path)
    assert (report.created, len(report.damaged)) == (2, 1)
    assert items(memory, "é") == [user("one"), user("two")]
    assert run("openai-sessions", path).damaged == report.damaged


def test_a_session_is_stored_in_one_commit_however_long_it_is(run: Run, memory: Memory, tmp_path: Path) -> None:
    many = [user(f"message {number}") for number in range(2500)]
    assert run("openai-sessions", foreign.sessions(tmp_path / "a.db", {"chat": many})).created == 2500
    assert memory.head().seq == 1
    assert items(memory) == many


def test_tables_of_other_names_are_found_by_their_columns(run: Run, memory: Memory, tmp_path: Path) -> None:
    schema = foreign.SESSIONS.replace("agent_", "bot's ").replace("TABLE bot's ", "TABLE \"bot's ")
    schema = schema.replace("sessions (\n", 'sessions" (\n').replace("messages (\n", 'messages" (\n')
    schema = schema.replace("REFERENCES bot's sessions", 'REFERENCES "bot\'s sessions"')
    path = foreign.made(
        tmp_path / "a.db", schema, **{'"bot\'s messages"': [{"session_id": "chat", "message_data": json.dumps(CALL)}]}
    )
    report = run("openai-sessions", path)
    assert (report.created, report.left_out) == (1, {})


def test_two_tables_with_one_session_are_not_mixed(run: Run, memory: Memory, tmp_path: Path) -> None:
    schema = foreign.SESSIONS + "CREATE TABLE others (id INTEGER PRIMARY KEY, session_id, message_data, created_at);"
    first = [{"session_id": "chat", "message_data": json.dumps(user(f"A{number}"))} for number in range(2)]
    second = [{"session_id": "chat", "message_data": json.dumps(user(f"B{number}"))} for number in range(4)]
    path = foreign.made(tmp_path / "a.db", schema, agent_messages=first, others=second)
    for _ in range(2):
        report = run("openai-sessions", path)
        assert [(each.place, "rename one of them" in each.reason) for each in report.damaged] == [
            ("table others, session 'chat', branch 'main'", True)
        ]
        assert items(memory) == [user("A0"), user("A1")]


def test_rows_that_are_no_items_are_reported_and_keep_their_position(run: Run, memory: Memory, tmp_path: Path) -> None:
    rows = [user("one"), "{", "[" * 100_000, '{"a": ' + "9" * 5000 + "}", user("two")]
    path = foreign.sessions(tmp_path / "a.db", {"chat": rows})
    report = run("openai-sessions", path)
    assert (report.created, len(report.damaged)) == (2, 3)
    assert items(memory) == [user("one"), user("two")], "as the SDK returns them"
    assert [record.position for record in turns(memory)] == [0, 4]
    assert run("openai-sessions", path).unchanged == 2


def test_values_of_columns_that_are_no_text_or_time_are_reported(run: Run, tmp_path: Path) -> None:
    text = json.dumps(user("x"))
    rows: list[dict[str, Any]] = [
        {"id": 1, "session_id": None, "message_data": text},
        {"id": 2, "session_id": 5, "message_data": text},
        {"id": 3, "session_id": b"\xff", "message_data": text},
        {"id": 4, "session_id": "a", "message_data": None},
        {"id": 5, "session_id": "b", "message_data": text, "created_at": "soon"},
        {"id": 6, "session_id": "fine", "message_data": text.encode(), "created_at": foreign.AT},
        {"id": 7, "session_id": "no time", "message_data": text},
    ]
    path = foreign.made(tmp_path / "a.db", foreign.loose(foreign.SESSIONS), agent_messages=rows)
    report = run("openai-sessions", path)
    assert (report.created, len(report.damaged)) == (2, 5)


class TestBranches:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A file of AdvancedSQLiteSession: at the second question, the branch "alt" leaves the main one."""
        texts = ["question 1", "answer 1", "question 2", "answer 2", "question 2b", "answer 2b", "in no branch"]
        places = [*(("main", at) for at in range(1, 5)), *(("alt", at) for at in (1, 2, 5, 6))]
        structure = [
            {
                "session_id": "chat",
                "message_id": number,
                "branch_id": branch,
                "message_type": "user",
                "sequence_number": at,
            }
            for at, (branch, number) in enumerate(places)
        ]
        return foreign.made(
            tmp_path / "a.db",
            foreign.SESSIONS + foreign.BRANCHES,
            agent_messages=[
                *({"session_id": "chat", "message_data": json.dumps(user(text))} for text in texts),
                {"session_id": "plain", "message_data": json.dumps(user("of an SQLiteSession"))},
            ],
            message_structure=structure,
            turn_usage=[{"session_id": "chat", "user_turn_number": 1}],
        )

    def test_the_main_branch_is_the_session_and_each_other_one_another_session(
        self, path: Path, run: Run, memory: Memory
    ) -> None:
        report = run("openai-sessions", path)
        assert (report.created, report.damaged) == (9, ())
        assert report.left_out == {"messages that are in no branch": 1, "rows of the table turn_usage": 1}

        def said(conversation: str) -> list[str]:
            return [item["content"] for item in items(memory, conversation)]

        assert said("chat") == ["question 1", "answer 1", "question 2", "answer 2"]
        assert said("chat/alt") == ["question 1", "answer 1", "question 2b", "answer 2b"]
        assert said("plain") == ["of an SQLiteSession"]
        assert run("openai-sessions", path).unchanged == 9

    def test_recall_finds_what_branches_have_in_common_once(self, path: Path, run: Run, memory: Memory) -> None:
        run("openai-sessions", path)
        found = [hit.record for hit in memory.recall("question 1", k=10) if hit.record.text == "question 1"]
        assert [record.conversation for record in found] == ["chat"]
        assert [OTHER_BRANCH in record.tags for record in turns(memory, "chat/alt")] == [True] * 4
        assert [record.searchable for record in turns(memory, "chat/alt")] == [False, False, True, True]


class TestOnly:
    def test_only_the_sessions_that_are_named_are_imported(self, tmp_path: Path) -> None:
        path = foreign.sessions(tmp_path / "a.db", {"one": [user("1")], "two": [user("2")], "three": [user("3")] * 3})
        command = ["import", "openai-sessions", str(path), "--db", str(tmp_path / "m.db"), "--only", "one"]
        done = CliRunner().invoke(app, [*command, "--only", "two"])
        assert done.exit_code == 0, done.output
        assert "2 remembered" in done.output
        assert "messages of other sessions (3)" in done.output

    def test_a_session_that_is_not_there_is_refused_with_the_names_of_those_that_are(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        path = foreign.sessions(tmp_path / "a.db", {"one": [user("1")], "two": [user("2")]})
        with pytest.raises(ImportFormatError, match="has no session 'three': it has one, two"):
            run("openai-sessions", path, only=["one", "three"])
        assert memory.namespaces() == []


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "text", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)
VALUES = ANYTHING.filter(lambda value: not isinstance(value, str))  # a text is stored as it is
NAMES = st.text(max_size=5).filter(lambda text: unicodedata.is_normalized("NFC", text))  # others may be one session
NAMED = st.dictionaries(NAMES, st.lists(VALUES, max_size=4), max_size=4)


@pytest.mark.in_process
@given(named=NAMED)
def test_any_items_come_back_in_their_order(
    named: dict[str, list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-sessions.db"
    foreign.sessions(path, named)
    with recollect.open(":memory:") as memory:
        report = import_path(memory, "openai-sessions", path)
        assert report.damaged == ()
        for name, wanted in named.items():
            session = session_log(memory, name)
            records = memory.get_all([session.id_of(position) for position in range(len(wanted))])
            assert json.dumps([record and item_of(record) for record in records]) == json.dumps(wanted)
        assert import_path(memory, "openai-sessions", path).unchanged == sum(map(len, named.values()))
        assert memory.check() == []
