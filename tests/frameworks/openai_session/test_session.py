"""`RecollectSession` in the OpenAI Agents SDK: items, order, limits, processes, servers and cancellation."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents.memory import OpenAIResponsesCompactionSession
from agents.testing import ScriptedModel, assistant_message, function_call
from tests.frameworks.serving import Child, served

import recollect
from agents import Agent, Runner, Session, SessionSettings, function_tool
from recollect import filters as f
from recollect.compat.openai_agents import RecollectSession
from recollect.errors import InvalidArgumentError, InvalidRecordError, RejectedError, ScopeError

run = asyncio.run
CALL = {"type": "function_call", "call_id": "c1", "name": "book", "arguments": '{"seat": "window"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "seat 12A is booked"}
REASONING = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "She likes windows."}]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def texts(session: RecollectSession, limit: int | None = None) -> list[str]:
    return [item["content"] for item in run(session.get_items(limit))]


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:") as memory:
        yield memory


# --- items ---


def test_items_come_back_as_they_were_added(place: recollect.Memory) -> None:
    items: list[Any] = [
        user("Grüße, 我喜欢乌龙茶 \x00 \u0130"),
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": []}], "id": "m1"},
        CALL,
        OUTPUT,
        REASONING,
        {"z": 1, "a": [None, True, 2**70, 1.5, {"": {}}], "content": "no role"},
        user("\ud800 half of a pair"),
        user(""),
        user(" "),
    ]
    session = RecollectSession("chat", place)
    run(session.add_items(items))
    back = run(session.get_items())
    assert back == items
    assert list(back[5]) == list(items[5])


def test_a_repeated_message_is_stored_again_and_the_order_is_kept(place: recollect.Memory) -> None:
    session = RecollectSession("chat", place)
    for batch in (["ok", "ok"], ["ok", "bye"], ["ok"]):
        run(session.add_items([user(text) for text in batch]))
    assert texts(session) == ["ok", "ok", "ok", "bye", "ok"]
    assert [record.position for record in place.find(order="position")] == [0, 1, 2, 3, 4]


def test_the_latest_items_are_returned_oldest_first(place: recollect.Memory) -> None:
    session = RecollectSession("chat", place, SessionSettings(limit=2))
    run(session.add_items([user(str(number)) for number in range(12)]))
    assert texts(session) == ["10", "11"]
    assert texts(session, 3) == ["9", "10", "11"]
    assert texts(session, 0) == []
    assert texts(session, 100) == texts(session, -1) == [str(number) for number in range(12)]
    session.session_settings = None
    assert len(texts(session)) == 12


def test_settings_may_be_a_dictionary_and_unknown_ones_are_refused(memory: recollect.Memory) -> None:
    session = RecollectSession("chat", memory, session_settings={"limit": 1})
    run(session.add_items([user("a"), user("b")]))
    assert isinstance(session.session_settings, SessionSettings)
    assert texts(session) == ["b"]
    with pytest.raises(TypeError, match="limitt"):
        RecollectSession("chat", memory, session_settings={"limitt": 1})


def test_pop_removes_the_latest_item_and_the_next_one_takes_its_place(place: recollect.Memory) -> None:
    session = RecollectSession("chat", place)
    assert run(session.pop_item()) is None
    run(session.add_items([user("a"), CALL, user("b")]))
    assert run(session.pop_item()) == user("b")
    assert run(session.pop_item()) == CALL
    run(session.add_items([user("c"), user("d")]))
    assert texts(session) == ["a", "c", "d"]
    run(session.clear_session())
    assert run(session.pop_item()) is None
    run(session.add_items([user("a")]))
    assert texts(session) == ["a"]


def test_each_change_is_one_commit_that_names_the_framework(place: recollect.Memory) -> None:
    session = RecollectSession("chat", place)
    run(session.add_items([user("a"), user("b")]))
    run(session.pop_item())
    run(session.add_items([]))
    run(session.clear_session())
    run(session.clear_session())
    run(session.pop_item())
    assert [commit.actor for commit in place.log()] == ["openai-agents"] * 3


def test_more_items_than_a_server_stores_at_once_are_one_commit(place: recollect.Memory) -> None:
    session = RecollectSession("chat", place)
    run(session.add_items([user(f"message {number}") for number in range(2500)]))
    assert place.seq == 1
    assert texts(session) == [f"message {number}" for number in range(2500)]
    assert texts(session, 1500) == [f"message {number}" for number in range(1000, 2500)]


@pytest.mark.parametrize("bad", [{"role": "user", "content": object()}, user("x" * 2**21)])
def test_if_an_item_cannot_be_stored_none_is(place: recollect.Memory, bad: dict[str, Any]) -> None:
    session = RecollectSession("chat", place)
    run(session.add_items([user("before")]))
    with pytest.raises((TypeError, InvalidRecordError)):
        run(session.add_items([user("good"), bad]))
    assert texts(session) == ["before"]
    run(session.add_items([user("after")]))
    assert texts(session) == ["before", "after"]


# --- whose items ---

ALIKE = ["s", "s#1", "s-1", "S", "", " ", "a\nb", "a\tb", "é", "e", "x" * 1000, "x" * 1001, "x" * 1002, "\ud800"]


def test_sessions_with_similar_ids_are_different(memory: recollect.Memory) -> None:
    digest = RecollectSession("x" * 1001, memory)
    run(digest.add_items([user("0")]))
    posing = memory.find()[0].conversation
    assert posing is not None
    for name in [*ALIKE, posing]:
        session = RecollectSession(name, memory)
        run(session.add_items([user(f"first of {len(name)}"), user(ascii(name))]))
    for name in [*ALIKE, posing]:
        assert texts(RecollectSession(name, memory), 1) == [ascii(name)]
    assert memory.count() == 1 + 2 * (len(ALIKE) + 1)


def test_the_unicode_forms_of_an_id_are_one_session(memory: recollect.Memory) -> None:
    for form in ("é", "e\u0301"):
        run(RecollectSession(form, memory).add_items([user(ascii(form))]))
    for form in ("é", "e\u0301"):
        assert texts(RecollectSession(form, memory)) == [ascii("é"), ascii("e\u0301")]


def test_a_session_is_that_of_its_user_and_agent(place: recollect.Memory) -> None:
    owners = [{}, {"user": "ana"}, {"user": "bob"}, {"agent": "ana"}, {"user": "ana", "agent": "travel"}]
    for owner in owners:
        run(RecollectSession("main", place, **owner).add_items([user(str(owner))]))
    for owner in owners:
        assert texts(RecollectSession("main", place, **owner)) == [str(owner)]
    run(RecollectSession("main", place).clear_session())
    run(RecollectSession("main", place, user="ana").pop_item())
    assert [texts(RecollectSession("main", place, **owner)) for owner in owners] == [
        [], [], [str(owners[2])], [str(owners[3])], [str(owners[4])]
    ]  # fmt: skip


def test_a_scoped_memory_gives_a_session_its_user(memory: recollect.Memory) -> None:
    scoped = memory.scoped(user="ana")
    run(RecollectSession("main", scoped).add_items([user("hello")]))
    assert texts(RecollectSession("main", scoped, user="ana")) == ["hello"]
    assert texts(RecollectSession("main", memory, user="ana")) == ["hello"]
    assert texts(RecollectSession("main", memory)) == []
    with pytest.raises(ScopeError):
        RecollectSession("main", scoped, user="bob")


def test_a_session_of_a_scoped_memory_and_one_of_the_memory_append_to_the_same_list(memory: recollect.Memory) -> None:
    inside, outside = RecollectSession("main", memory.scoped(user="ana")), RecollectSession("main", memory, user="ana")
    for number, session in enumerate([inside, outside, outside, inside]):
        run(session.add_items([user(str(number))]))
    assert texts(inside) == texts(outside) == ["0", "1", "2", "3"]
    assert run(inside.pop_item()) == user("3")
    assert run(outside.pop_item()) == user("2")


@pytest.mark.parametrize(("name", "value"), [("user", ""), ("agent", ""), ("user", 7), ("session_id", 7)])
def test_owners_and_ids_that_are_no_text_are_refused_at_once(memory: recollect.Memory, name: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        RecollectSession(**{"session_id": "main", "db_path": memory, name: value})


# --- what recall finds ---


def test_recall_finds_messages_of_earlier_sessions_and_no_calls(place: recollect.Memory) -> None:
    session = RecollectSession("monday", place, user="ana", agent="travel")
    said = [{"type": "output_text", "text": "Noted, no peanuts."}, {"type": "refusal", "refusal": "No nuts at all."}]
    run(session.add_items([user("I am allergic to peanuts."), CALL, OUTPUT, REASONING]))
    run(session.add_items([{"role": "assistant", "content": said}]))
    hits = place.recall("What is Ana allergic to?", user="ana")
    assert hits[0].record.content == "I am allergic to peanuts."
    assert (hits[0].record.role, hits[0].record.speaker, hits[0].record.kind) == ("user", "ana", "conversation")
    answer = next(hit.record for hit in hits if hit.record.role == "assistant")
    assert (answer.content, answer.speaker) == ("Noted, no peanuts.\nNo nuts at all.", "travel")
    assert "allergic to peanuts" in str(place.context("What is Ana allergic to?", max_tokens=200, user="ana"))
    for question in ("window seat 12A", "likes windows", "booked"):
        assert [hit for hit in place.recall(question) if hit.record.searchable is False] == []
        assert not place.recall(question, min_confidence="auto")
    assert place.count(~f.has("searchable")) == 3


def test_a_popped_item_is_not_recalled(memory: recollect.Memory) -> None:
    session = RecollectSession("chat", memory)
    run(session.add_items([user("The ferry leaves at nine.")]))
    run(session.pop_item())
    assert not memory.recall("When does the ferry leave?")


def test_what_is_not_worth_remembering_stays_in_the_history_and_is_not_found(place: recollect.Memory) -> None:
    place.set_policies(salience="normal")
    items: list[Any] = [user("ok"), user("The outage was caused by a full disk."), CALL, user("Let me check the logs.")]
    session = RecollectSession("chat", place)
    run(session.add_items(items))
    assert run(session.get_items()) == items
    assert [hit.record.content for hit in place.recall("outage logs ok")] == [items[1]["content"]]
    assert len(place.log()) == 1


def test_a_refused_secret_refuses_all_items(place: recollect.Memory) -> None:
    place.set_policies(redaction="refuse")
    session = RecollectSession("chat", place)
    with pytest.raises(RejectedError):
        run(session.add_items([user("hello"), user("my key is AKIAIOSFODNN7EXAMPLE")]))
    assert run(session.get_items()) == []


def test_a_redacted_secret_is_nowhere_in_the_session(memory: recollect.Memory) -> None:
    memory.set_policies(redaction="redact")
    session = RecollectSession("chat", memory)
    call = {"type": "function_call", "call_id": "c", "name": "login", "arguments": '{"password": "hunter2 \\u00fc"}'}
    run(session.add_items([user('my key is "AKIAIOSFODNN7EXAMPLE"'), user("mail\nana@example.com\\"), call]))
    stored = run(session.get_items())
    assert stored[1] == user("mail\n***@***.***\\")
    assert [item.get("name") for item in stored] == [None, None, "login"]
    for secret in ("AKIA", "ana@", "hunter2"):
        assert secret not in str(stored) + str([record.to_json() for record in memory.find()])


def test_a_message_that_looks_like_a_secret_is_stored_losslessly_without_a_policy(place: recollect.Memory) -> None:
    items: list[Any] = [user("mail\nana@example.com\\"), {"password": "x y", "n": 2**70}, {"password": "x", "a": [1.5]}]
    session = RecollectSession("chat", place)
    run(session.add_items(items))
    assert run(session.get_items()) == items


# --- at the same time ---


def test_threads_with_loops_of_their_own_append_whole_lists(place: recollect.Memory) -> None:
    session = RecollectSession("chat", place)
    together = threading.Barrier(6)

    def append(name: int) -> None:
        together.wait()
        for turn in range(4):
            asyncio.run(session.add_items([user(f"{name}.{turn}.{part}") for part in range(3)]))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(append, range(6)))
    stored = texts(session)
    assert sorted(stored) == sorted(f"{n}.{turn}.{part}" for n in range(6) for turn in range(4) for part in range(3))
    lists = [stored[at : at + 3] for at in range(0, len(stored), 3)]
    assert all(each[0].rpartition(".")[0] == each[2].rpartition(".")[0] for each in lists)
    for name in range(6):
        assert [each[0] for each in lists if each[0].startswith(f"{name}.")] == [f"{name}.{t}.0" for t in range(4)]
    assert [record.position for record in place.find(order="position")] == list(range(72))


def test_one_loop_appends_and_pops_many_times_at_once(place: recollect.Memory) -> None:
    session = RecollectSession("chat", place)

    async def popped() -> list[str]:
        await session.add_items([user(str(number)) for number in range(10)])
        return [str(item) for item in await asyncio.gather(*(session.pop_item() for _ in range(10)))]

    assert sorted(run(popped())) == sorted(str(user(str(number))) for number in range(10))
    assert texts(session) == []


_APPENDING = """
import asyncio, sys
from recollect.compat.openai_agents import RecollectSession
path, name = sys.argv[1:]
session = RecollectSession("chat", path)
print("ready", flush=True)
input()
for turn in range(20):
    asyncio.run(session.add_items([{"role": "user", "content": f"{name}.{turn}.{part}"} for part in (0, 1)]))
session.close()
"""


def _append_from_two_processes(place: str) -> list[str]:
    children = [Child(_APPENDING, place, name) for name in ("a", "b")]
    for child in children:
        child.wait_until_ready()
    with ThreadPoolExecutor(2) as threads:  # both may begin before one has ended
        list(threads.map(Child.result, children))
    session = RecollectSession("chat", place)
    try:
        return texts(session)
    finally:
        session.close()


@pytest.mark.parametrize("over", ["file", "socket"])
def test_two_processes_lose_nothing_and_keep_their_lists_whole(tmp_path: Path, over: str) -> None:
    if over == "file":
        stored = _append_from_two_processes(str(tmp_path / "agent.db"))
    else:
        with served(tmp_path / "served.db") as address:
            stored = _append_from_two_processes(address)
    for name in ("a", "b"):
        expected = [f"{name}.{turn}.{part}" for turn in range(20) for part in (0, 1)]
        assert [text for text in stored if text.startswith(name)] == expected
    assert all(stored[at][:-1] == stored[at + 1][:-1] for at in range(0, 80, 2))


@pytest.mark.parametrize("change", ["add", "pop", "clear"])
def test_a_cancelled_change_is_completed_before_the_cancellation_is_raised(tmp_path: Path, change: str) -> None:
    with recollect.open(tmp_path / "agent.db") as memory:
        session = RecollectSession("chat", memory)
        run(session.add_items([user("first")]))
        changes = {
            "add": lambda: session.add_items([user("x")]),
            "pop": session.pop_item,
            "clear": session.clear_session,
        }
        locked, release = threading.Event(), threading.Event()

        def lock() -> None:
            with memory.batch():  # has the write lock, so that the change waits in the middle
                locked.set()
                release.wait()

        async def cancelled() -> None:
            locking = asyncio.create_task(asyncio.to_thread(lock))
            await asyncio.to_thread(locked.wait)
            task = asyncio.ensure_future(changes[change]())
            for _ in range(3):
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
            release.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert memory.seq == 2  # it is committed by now
            await locking

        run(cancelled())
        assert texts(session) == {"add": ["first", "x"], "pop": [], "clear": []}[change]


# --- opening and closing ---


def test_the_next_process_reads_the_session(tmp_path: Path) -> None:
    script = """
import asyncio, sys
from recollect.compat.openai_agents import RecollectSession
session = RecollectSession("chat", sys.argv[1], user="ana")
print(asyncio.run(session.get_items()), flush=True)
asyncio.run(session.add_items([{"role": "user", "content": "from " + sys.argv[2]}]))
session.close()
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / "agent.db"), name], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("one", "two", "three")
    ]
    assert outputs[0] == "[]"
    assert outputs[2] == str([user("from one"), user("from two")])


def test_a_closed_session_refuses_every_call(tmp_path: Path) -> None:
    session = RecollectSession("chat", tmp_path / "agent.db")
    session.close()
    session.close()
    for call in (
        session.get_items,
        lambda: session.get_items(0),
        lambda: session.add_items([]),
        lambda: session.add_items([user("a")]),
        session.pop_item,
        session.clear_session,
    ):
        with pytest.raises(RuntimeError, match="closed"):
            run(call())


def test_it_closes_only_what_it_opened(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    first, second = RecollectSession("a", path), RecollectSession("b", str(path))
    first.close()
    run(second.add_items([user("still open")]))
    second.close()
    with recollect.open(path) as memory:
        third = RecollectSession("b", memory)
        assert texts(third) == ["still open"]
        third.close()
        assert memory.count() == 1


def test_a_session_that_cannot_be_made_leaves_no_store_open(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        RecollectSession("a", tmp_path / "agent.db", user="")
    recollect.open(tmp_path / "agent.db", timeout=0.1).close()


def test_sessions_in_memory_share_nothing() -> None:
    first, second = RecollectSession("a"), RecollectSession("a")
    run(first.add_items([user("one")]))
    assert texts(second) == []
    first.close()
    second.close()


def test_the_missing_library_is_named_with_its_extra() -> None:
    script = """
import sys
sys.modules["agents"] = None
from recollect.errors import MissingExtraError
try:
    import recollect.compat.openai_agents
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "recollect[openai-agents]" in done.stdout


# --- in the SDK ---


def test_a_runner_remembers_calls_of_tools_and_answers(tmp_path: Path) -> None:
    def seat(row: int) -> str:
        """Book a seat."""
        return f"seat {row}A is booked"

    session = RecollectSession("chat", tmp_path / "agent.db", user="ana")
    assert isinstance(session, Session)
    model = ScriptedModel()
    agent = Agent(name="travel", model=model, tools=[function_tool(seat)])
    model.enqueue([function_call("seat", {"row": 12}, call_id="c1")])
    model.enqueue([assistant_message("You sit at a window.")])
    model.enqueue([assistant_message("12A.")])

    async def talk() -> str:
        await Runner.run(agent, "Please book row 12.", session=session)
        return str((await Runner.run(agent, "Which seat?", session=session)).final_output)

    assert run(talk()) == "12A."
    kinds = [item.get("type", item.get("role")) for item in run(session.get_items())]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user", "message"]
    sent = model.calls[-1].input
    assert [item.get("type", item.get("role")) for item in sent] == kinds[:5]
    session.close()


def test_the_session_for_compaction_takes_it_as_its_store(memory: recollect.Memory) -> None:
    class Client:  # the compaction itself is a call of the API
        pass

    wrapped = RecollectSession("chat", memory)
    session = OpenAIResponsesCompactionSession("chat", wrapped, client=Client())

    async def used() -> None:
        await session.add_items([user("a"), user("b")])
        assert await session.pop_item() == user("b")

    run(used())
    assert texts(wrapped) == ["a"]
