"""`RecollectMemoryService` in Google ADK, beside the services of ADK: what a search finds, and what it leaves out."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.cli.service_registry import get_service_registry
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types
from tests.frameworks.serving import Child, served

import recollect
from recollect.compat import adk
from recollect.compat.adk import RecollectMemoryService
from recollect.errors import InvalidArgumentError, InvalidRecordError

SqliteMemoryService = pytest.importorskip("google.adk.memory._sqlite_memory_service").SqliteMemoryService

NOON = 1_790_000_000.0
PEANUTS, TEA, FERRY = "I am allergic to peanuts.", "我喜欢乌龙茶", "The ferry leaves at nine."
SAID = [
    ("user", "Hi, I am planning dinner for Saturday."),
    ("host", "Great, what should I know?"),
    ("user", PEANUTS),
    ("host", "ok"),
    ("user", "ok"),
    ("user", TEA),
    ("host", FERRY),
]
OWNER: dict[str, Any] = {"app_name": "dinner", "user_id": "ana"}


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


def content(*texts: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text) for text in texts])


def event(text: str, number: int = 0, author: str = "user", **fields: Any) -> Event:
    defaults: dict[str, Any] = {"id": f"e{number}", "timestamp": NOON + number}
    return Event(author=author, **({"content": content(text)} | defaults | fields))


def events(*texts: str) -> list[Event]:
    return [event(text, number) for number, text in enumerate(texts)]


def session(said: list[Event], name: str = "s1", app: str = "dinner", user: str = "ana") -> Session:
    return Session(id=name, app_name=app, user_id=user, events=said)


CONVERSATION = [event(text, number, author) for number, (author, text) in enumerate(SAID)]


def found(service: BaseMemoryService, query: str, app: str = "dinner", user: str = "ana") -> list[str]:
    response = run(service.search_memory(app_name=app, user_id=user, query=query))
    return [entry.content.parts[0].text for entry in response.memories]


@pytest.fixture
def memory() -> Iterator[recollect.Memory]:
    with recollect.open(":memory:") as memory:
        yield memory


@pytest.fixture
def service(memory: recollect.Memory) -> RecollectMemoryService:
    return RecollectMemoryService(memory)


# --- the three services ---


@pytest.fixture(params=["in_memory", "sqlite", "ours", "ours over a socket"])
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, BaseMemoryService]]:
    """A service that was given one conversation three times while it grew."""
    services: dict[str, Callable[[Any], BaseMemoryService]] = {
        "in_memory": lambda _: InMemoryMemoryService(),
        "sqlite": lambda _: SqliteMemoryService(tmp_path / "theirs.db"),
        "ours": lambda _: RecollectMemoryService(tmp_path / "ours.db"),
        "ours over a socket": RecollectMemoryService,
    }
    with served(tmp_path / "served.db") if "socket" in request.param else nullcontext() as address:
        service = services[request.param](address)
        for length in (3, 5, len(CONVERSATION)):
            run(service.add_session_to_memory(session(CONVERSATION[:length])))
        yield request.param.partition(" ")[0], service
        if request.param != "in_memory":
            run(service.close())


#: Query -> what each service finds first; None is nothing. What theirs find is stated so that a change is seen.
ROWS: dict[str, dict[str, str | None]] = {
    "which allergy does she have?": {"in_memory": None, "sqlite": None, "ours": PEANUTS},
    "alergic": {"in_memory": None, "sqlite": None, "ours": PEANUTS},
    "乌龙": {"in_memory": TEA, "sqlite": None, "ours": TEA},
    "When does the ferry leave?": {"in_memory": FERRY, "sqlite": FERRY, "ours": FERRY},
    "peanuts": {"in_memory": PEANUTS, "sqlite": PEANUTS, "ours": PEANUTS},
    "": {"in_memory": None, "sqlite": None, "ours": None},
    " \n": {"in_memory": None, "sqlite": None, "ours": None},
    "?!": {"in_memory": None, "sqlite": None, "ours": None},
    "What is the capital of France?": {"in_memory": SAID[1][1], "sqlite": FERRY, "ours": None},
}


@pytest.mark.parametrize("query", ROWS)
def test_each_service_finds_first(each: tuple[str, BaseMemoryService], query: str) -> None:
    name, service = each
    results = found(service, query)
    assert (results[0] if results else None) == ROWS[query][name]
    assert len(results) == len(set(results))  # though the session was added three times
    if name == "ours":
        assert len(results) <= 1


def test_no_service_finds_anything_for_another_user_or_app(each: tuple[str, BaseMemoryService]) -> None:
    assert found(each[1], "peanuts ferry", user="bob") == []
    assert found(each[1], "peanuts ferry", app="travel") == []


def test_each_service_returns_who_said_it_and_when_as_iso_text(each: tuple[str, BaseMemoryService]) -> None:
    entry = run(each[1].search_memory(**OWNER, query="ferry")).memories[0]
    assert (entry.author, entry.content.role) == ("host", "user")
    assert datetime.fromisoformat(entry.timestamp).timestamp() == NOON + 6
    assert entry.id


def test_deleting_an_unknown_id_is_silent_where_it_is_supported(each: tuple[str, BaseMemoryService]) -> None:
    name, service = each
    if name == "sqlite":
        with pytest.raises(NotImplementedError):
            run(service.delete_memory(**OWNER, memory_id="unknown"))
        return
    for unknown in ("unknown", "", None, "@user=ana/x", "x" * 1000, "a\nb"):
        run(service.delete_memory(**OWNER, memory_id=unknown))
    assert found(service, "peanuts") == [PEANUTS]


def test_a_deleted_event_stays_away_when_its_session_is_added_again(each: tuple[str, BaseMemoryService]) -> None:
    name, service = each
    entry = run(service.search_memory(**OWNER, query="peanuts")).memories[0]
    if name == "sqlite":
        with pytest.raises(NotImplementedError):
            run(service.delete_memory(**OWNER, memory_id=entry.id))
        return
    run(service.delete_memory(app_name="dinner", user_id="bob", memory_id=entry.id))
    assert found(service, "peanuts") == [PEANUTS]
    run(service.delete_memory(**OWNER, memory_id=entry.id))
    run(service.add_session_to_memory(session(CONVERSATION)))
    assert PEANUTS not in found(service, "peanuts")


def test_only_ours_stores_memories_that_are_no_events(each: tuple[str, BaseMemoryService]) -> None:
    name, service = each
    entries = [MemoryEntry(content=content("Ana collects stamps."), id="m1")]
    if name != "ours":
        with pytest.raises(NotImplementedError):
            run(service.add_memory(**OWNER, memories=entries))
        return
    run(service.add_memory(**OWNER, memories=entries))
    assert found(service, "stamp") == ["Ana collects stamps."]


# --- what is returned ---

BETWEEN = [f"We talked about topic{n} and item{n * 7} in the morning." for n in range(300)]


@pytest.mark.parametrize(("query", "answer"), [("which allergy does she have?", PEANUTS), ("alergic", PEANUTS),
                                               ("乌龙", TEA), ("When does the ferry leave?", FERRY)])  # fmt: skip
def test_the_rows_are_found_in_a_large_memory_too(service: RecollectMemoryService, query: str, answer: str) -> None:
    for start in range(0, 300, 20):
        run(service.add_session_to_memory(session(events(*BETWEEN[start : start + 20]), f"other-{start}")))
    run(service.add_session_to_memory(session(CONVERSATION)))
    assert found(service, query)[0] == answer
    assert "ok" not in found(service, query)


def test_an_answer_without_a_word_of_the_query_is_found_after_its_question(service: RecollectMemoryService) -> None:
    said = events("Hello!", "What is your dog called?", "Rex, he is three.", "Good to know.", FERRY)
    run(service.add_session_to_memory(session([said[2], said[0], said[4]])))  # in the wrong order, in two parts
    run(service.add_session_to_memory(session(said[::-1])))
    assert found(service, "What is the name of her dog?") == ["Rex, he is three."]
    assert found(service, "When does the ferry leave?") == [FERRY]


def test_no_more_than_k_results_are_returned(memory: recollect.Memory) -> None:
    service = RecollectMemoryService(memory, k=2)
    said = ("A ferry goes to Oslo", "My ferry was late", "Which ferry is blue?", "The ferry to Bergen sank")
    run(service.add_session_to_memory(session(events(*said))))
    assert 0 < len(found(service, "ferry")) <= 2


def test_equal_events_are_returned_in_the_same_order_every_time(service: RecollectMemoryService) -> None:
    for name in ("s2", "s1", "s3"):
        run(service.add_session_to_memory(session(events("The ferry to Oslo"), name)))
    first = run(service.search_memory(**OWNER, query="ferry"))
    assert first.memories
    assert run(service.search_memory(**OWNER, query="ferry")) == first


def test_a_long_query_is_a_query(service: RecollectMemoryService) -> None:
    run(service.add_session_to_memory(session(CONVERSATION)))
    assert found(service, "ferry \ud800" + ". " * 100_000)[:1] == [FERRY]


def test_a_dotted_capital_i_is_found_in_lower_case(service: RecollectMemoryService) -> None:
    run(service.add_session_to_memory(session(events("İstanbul is my home town", "Paris is not"))))
    for query in ("istanbul", "İSTANBUL", "Istanbul", "i\u0307stanbul"):
        assert found(service, query)[:1] == ["İstanbul is my home town"]


# --- events ---


def test_a_session_that_is_added_again_changes_nothing(service: RecollectMemoryService) -> None:
    run(service.add_session_to_memory(session(CONVERSATION)))
    seq = service.memory.seq
    for order in (CONVERSATION, CONVERSATION[::-1], CONVERSATION * 2):
        run(service.add_session_to_memory(session(order)))
    run(service.add_events_to_memory(**OWNER, events=CONVERSATION[2:4], session_id="s1"))
    assert (service.memory.seq, service.memory.count()) == (seq, len(SAID))
    assert [commit.actor for commit in service.memory.log()] == ["google-adk"]


def test_events_have_the_order_of_their_times(service: RecollectMemoryService) -> None:
    for part in ([5, 1], [6, 3, 0], [2, 4]):
        run(service.add_events_to_memory(**OWNER, events=[CONVERSATION[n] for n in part], session_id="s1"))
    stored = service.memory.find(order="position")
    assert [record.content for record in stored] == [text for _, text in SAID]
    assert [record.speaker for record in stored] == [author for author, _ in SAID]
    assert stored[0].time == datetime.fromtimestamp(NOON, UTC)


def test_events_of_one_time_keep_their_order(service: RecollectMemoryService) -> None:
    said = [event(text, number, timestamp=0.0) for number, text in enumerate(["b", "a", "c"])]
    run(service.add_session_to_memory(session(said[:2])))
    run(service.add_session_to_memory(session(said)))
    assert [record.content for record in service.memory.find(order="position")] == ["b", "a", "c"]


def test_events_with_equal_ids_in_two_sessions_are_two(service: RecollectMemoryService) -> None:
    run(service.add_session_to_memory(session(events("The ferry to Oslo"), "a")))
    run(service.add_session_to_memory(session(events("The train to Rome"), "b")))
    run(service.add_events_to_memory(**OWNER, events=events("The bus to Bonn")))
    assert [found(service, query)[0] for query in ("Oslo", "Rome", "Bonn")] == [
        "The ferry to Oslo", "The train to Rome", "The bus to Bonn"
    ]  # fmt: skip


def test_events_without_ids_differ_by_author_time_and_text(service: RecollectMemoryService) -> None:
    said = [event("ok", 1, id=""), event("ok", 2, id=""), event("ok", 2, id="", author="host")]
    for _ in range(2):
        run(service.add_events_to_memory(**OWNER, events=said, session_id="s1"))
    assert service.memory.count() == 3


def test_an_event_that_has_changed_is_updated(service: RecollectMemoryService) -> None:
    run(service.add_session_to_memory(session(events("The ferry leaves at nine"))))
    run(service.add_session_to_memory(session(events("The ferry leaves at ten"))))
    assert found(service, "ferry") == ["The ferry leaves at ten"]


def test_events_without_text_reasoning_and_fragments_are_not_stored(service: RecollectMemoryService) -> None:
    call = types.Part(function_call=types.FunctionCall(name="book", args={"seat": 12}))
    thought = types.Part(text="She sounds impatient about the ferry", thought=True)
    said = [
        event("ferry", 1, content=None),
        event("ferry", 2, content=types.Content(parts=[call])),
        event("ferry", 3, content=types.Content(parts=[])),
        event("  \n ", 4),
        event("ferry", 5, content=types.Content(parts=[thought])),
        event("The fer", 6, partial=True),
        event("ferry", 7, content=types.Content(parts=[thought, types.Part(text="Booked."), call])),
    ]
    run(service.add_session_to_memory(session(said)))
    entry = run(service.search_memory(**OWNER, query="booked")).memories[0]
    assert service.memory.count() == 1
    assert entry.content.parts == [types.Part(text="Booked."), call]
    assert found(service, "impatient") == []


def test_content_comes_back_as_it_was_except_large_data(service: RecollectMemoryService) -> None:
    small, large = (types.Blob(data=b"\xff" * size, mime_type="image/png") for size in (10, 2**21))
    args = {"big": 2**70, "text": "\x00 \u0130", "list": [1.5, None, True]}
    call = types.Part(function_call=types.FunctionCall(name="book", args=args))
    parts = [types.Part(text="The ferry\x00 🍵"), types.Part(inline_data=small), call]
    run(service.add_session_to_memory(session([event("", 1, content=types.Content(role="model", parts=parts))])))
    assert run(service.search_memory(**OWNER, query="ferry")).memories[0].content.parts == parts
    parts = [types.Part(text="A train"), types.Part(inline_data=large)]
    run(service.add_session_to_memory(session([event("", 2, content=types.Content(role="model", parts=parts))])))
    assert found(service, "train") == ["A train"]


def test_a_lone_surrogate_does_not_stop_a_session(service: RecollectMemoryService) -> None:
    run(service.add_session_to_memory(session(events("The ferry \ud83d leaves"))))
    assert len(found(service, "ferry")) == 1


def test_if_an_event_is_too_long_none_is_stored(service: RecollectMemoryService) -> None:
    with pytest.raises(InvalidRecordError):
        run(service.add_session_to_memory(session(events("The ferry", "x" * 2**21))))
    assert service.memory.count() == 0


def test_what_a_policy_rejects_is_left_out_and_the_rest_is_stored(service: RecollectMemoryService) -> None:
    service.memory.set_policies(redaction="refuse", salience="normal")
    run(service.add_session_to_memory(session([*CONVERSATION, event("my key is AKIAIOSFODNN7EXAMPLE", 9)])))
    assert found(service, "peanuts") == [PEANUTS]
    assert service.memory.grep("AKIAIOSFODNN7EXAMPLE or ok") == []


def test_a_redacted_text_is_returned_redacted(service: RecollectMemoryService) -> None:
    service.memory.set_policies(redaction="redact")
    run(service.add_session_to_memory(session(events('The ferry: "\nana@example.com"'))))
    assert found(service, "ferry") == ['The ferry: "\n***@***.***"']


@pytest.mark.parametrize("name", ["a\nb", "x" * 2000, "s#1", "é", " "])
def test_any_session_id_is_a_session(service: RecollectMemoryService, name: str) -> None:
    run(service.add_session_to_memory(session(CONVERSATION, name)))
    run(service.add_session_to_memory(session(CONVERSATION, name)))
    entry = run(service.search_memory(**OWNER, query="ferry")).memories[0]
    assert entry.custom_metadata["session_id"] == name
    assert entry.custom_metadata["event_id"] == "e6"
    assert service.memory.count() == len(SAID)


# --- metadata ---


def test_custom_metadata_comes_back_and_ttl_ends_the_events(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "agent.db") as memory:
        service = RecollectMemoryService(memory)
        for number, ttl in enumerate((3600, "3600s", timedelta(hours=1), 3600.0)):
            custom = {"ttl": ttl, "topic": ["sea"]}
            added = [event(f"ferry number{number}", number)]
            run(service.add_events_to_memory(**OWNER, events=added, session_id="s1", custom_metadata=custom))
            entry = run(service.search_memory(**OWNER, query=f"number{number}")).memories[0]
            assert entry.custom_metadata["topic"] == ["sea"]
            assert "ttl" not in entry.custom_metadata
        ends = {record.expires - record.time for record in memory.find() if record.expires and record.time}
        assert len(ends) == 4
        seq = memory.seq
        run(service.add_events_to_memory(**OWNER, events=added, session_id="s1", custom_metadata={"ttl": 9}))
        assert memory.seq == seq  # an event that is added again does not live longer
        bad: Any
        for bad in ("soon", [], "1h", -1):
            with pytest.raises(InvalidArgumentError):
                run(service.add_events_to_memory(**OWNER, events=events("x"), custom_metadata={"ttl": bad}))
        with pytest.raises(InvalidRecordError):
            run(service.add_events_to_memory(**OWNER, events=events("x"), custom_metadata={"o": object()}))


def test_an_entry_with_a_known_id_takes_the_place_of_the_stored_one(service: RecollectMemoryService) -> None:
    for text in ("Ana collects stamps.", "Ana collects coins."):
        entry = MemoryEntry(content=content(text), id="hobby", author="host", timestamp="2026-05-01T09:00:00+02:00")
        run(service.add_memory(**OWNER, memories=[entry], custom_metadata={"source": "form", "ttl": "60s"}))
    (stored,) = run(service.search_memory(**OWNER, query="collects")).memories
    assert (stored.id, stored.author, stored.timestamp) == ("hobby", "host", "2026-05-01T09:00:00+02:00")
    assert stored.content == content("Ana collects coins.")
    assert stored.custom_metadata["source"] == "form"
    run(service.delete_memory(**OWNER, memory_id="hobby"))
    assert found(service, "collects") == []


@pytest.mark.parametrize("name", ["x" * 1000, "a\nb", "@user=bob/x", "id-1", "é", None])
def test_any_id_of_an_entry_is_returned_and_deletes_it(service: RecollectMemoryService, name: str | None) -> None:
    entry = MemoryEntry(content=content("Ana collects stamps."), id=name, timestamp="last summer")
    for _ in range(2):
        run(service.add_memory(**OWNER, memories=[entry, MemoryEntry(content=content(" "))]))
    (stored,) = run(service.search_memory(**OWNER, query="stamps")).memories
    assert stored.timestamp == "last summer"
    assert name is None or stored.id == name
    run(service.delete_memory(**OWNER, memory_id=stored.id))
    assert service.memory.count() == 0


def test_what_others_store_for_the_user_and_the_app_is_found_too(service: RecollectMemoryService) -> None:
    service.memory.remember(
        "Ana collects stamps.", user="ana", agent="dinner", kind="user_fact", metadata={"custom": 1}
    )
    service.memory.remember("Bob collects stamps.", user="bob", agent="dinner")
    (stored,) = run(service.search_memory(**OWNER, query="stamps")).memories
    assert stored.content.parts[0].text == "Ana collects stamps."
    run(service.delete_memory(**OWNER, memory_id=stored.id))
    assert service.memory.count() == 1


# --- at the same time, opening and closing ---


def test_threads_with_loops_of_their_own_add_one_growing_session(service: RecollectMemoryService) -> None:
    together = threading.Barrier(4)

    def add(_: int) -> None:
        together.wait()
        for length in range(1, len(CONVERSATION) + 1):
            run(service.add_session_to_memory(session(CONVERSATION[:length])))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    assert [record.content for record in service.memory.find(order="position")] == [text for _, text in SAID]


_ADDING = """
import asyncio, sys
from google.adk.events.event import Event
from google.genai import types
from recollect.compat.adk import RecollectMemoryService
path, name = sys.argv[1:]
service = RecollectMemoryService(path)
print("ready", flush=True)
input()
for number in range(20):
    said = types.Content(role="user", parts=[types.Part(text=f"ferry number {number}")])
    event = Event(id=f"e{number}", author="user", timestamp=1.0 + number, content=said)
    asyncio.run(service.add_events_to_memory(app_name="dinner", user_id="ana", events=[event], session_id="s1"))
    asyncio.run(service.add_events_to_memory(app_name="dinner", user_id=name, events=[event], session_id="s1"))
asyncio.run(service.close())
"""


def test_two_processes_add_the_same_events_once(tmp_path: Path) -> None:
    children = [Child(_ADDING, tmp_path / "agent.db", name) for name in ("bob", "cleo")]
    for child in children:
        child.wait_until_ready()
    with ThreadPoolExecutor(2) as threads:  # both may begin before one has ended
        list(threads.map(Child.result, children))
    with recollect.open(tmp_path / "agent.db") as memory:
        assert [memory.count(user=user) for user in ("ana", "bob", "cleo")] == [20, 20, 20]


def test_the_next_process_finds_what_was_said(tmp_path: Path) -> None:
    service = RecollectMemoryService(tmp_path / "agent.db")
    run(service.add_session_to_memory(session(CONVERSATION)))
    run(service.close())
    again = RecollectMemoryService(uri=f"recollect://{tmp_path}/agent.db", agents_dir="agents")
    assert found(again, "alergic") == [PEANUTS]
    run(again.close())


def test_it_closes_only_what_it_opened_and_refuses_calls_afterwards(tmp_path: Path) -> None:
    first, second = RecollectMemoryService(tmp_path / "a.db"), RecollectMemoryService(str(tmp_path / "a.db"))
    run(first.close())
    run(first.close())
    run(second.add_session_to_memory(session(CONVERSATION)))
    for call in (
        first.add_session_to_memory(session(CONVERSATION)),
        first.search_memory(**OWNER, query="ferry"),
        first.add_memory(**OWNER, memories=[MemoryEntry(content=content("x"))]),
        first.delete_memory(**OWNER, memory_id="x"),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            run(call)
    run(second.close())
    with recollect.open(tmp_path / "a.db") as memory:
        run(RecollectMemoryService(memory).close())
        assert memory.count() == len(SAID)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"memory": ":memory:", "uri": "recollect://:memory:"},
        {"uri": "sqlite://a.db"},
        {"uri": "recollect:a.db"},
        {"uri": "recollect://"},
        {"memory": ":memory:", "k": 0},
        {"memory": ":memory:", "min_confidence": 2},
        {"memory": 7},
    ],
)
def test_arguments_that_name_no_memory_or_no_limit_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        RecollectMemoryService(**arguments)


def test_an_app_or_a_user_without_a_name_is_refused(service: RecollectMemoryService) -> None:
    with pytest.raises(InvalidArgumentError):
        run(service.search_memory(app_name="dinner", user_id="", query="ferry"))


def test_a_uri_may_escape_a_path_and_may_name_a_server(tmp_path: Path) -> None:
    service = RecollectMemoryService(uri=f"recollect://{tmp_path}/my%20agent.db")
    run(service.add_session_to_memory(session(CONVERSATION)))
    run(service.close())
    assert (tmp_path / "my agent.db").exists()
    with served(tmp_path / "my agent.db") as address:
        service = RecollectMemoryService(uri=f"recollect://{address}")
        assert found(service, "ferry")[0] == FERRY
        run(service.close())


def test_the_missing_library_is_named_with_its_extra() -> None:
    script = """
import sys
sys.modules["google.adk"] = None
from recollect.errors import MissingExtraError
try:
    import recollect.compat.adk
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "recollect[adk]" in done.stdout


# --- in ADK ---


class Listening(BaseLlm):  # Any, where ADK is not installed
    """A model that answers "Noted." and stores what it was sent."""

    model: str = "listening"
    sent: list[str] = []  # noqa: RUF012 - pydantic copies it

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        texts = [part.text for each in llm_request.contents for part in each.parts or () if part.text]
        self.sent.append("\n".join(texts))
        yield LlmResponse(content=content("Noted.", role="model"))


def test_an_agent_is_sent_what_another_session_said_and_nothing_else(service: RecollectMemoryService) -> None:
    async def talk() -> str:
        model = Listening()
        agent = LlmAgent(name="host", model=model, tools=[PreloadMemoryTool()])
        sessions = InMemorySessionService()
        runner = Runner(app_name="dinner", agent=agent, session_service=sessions, memory_service=service)
        for name, said in (("one", [PEANUTS, "The sofa is green."]), ("two", ["Which allergy do I have?"])):
            await sessions.create_session(app_name="dinner", user_id="ana", session_id=name)
            for text in said:
                async for _ in runner.run_async(user_id="ana", session_id=name, new_message=content(text)):
                    pass
            full = await sessions.get_session(app_name="dinner", user_id="ana", session_id=name)
            await service.add_session_to_memory(full)
        return model.sent[-1]

    sent = run(talk())
    assert f"user: {PEANUTS}" in sent
    assert "sofa" not in sent
    assert "Noted" not in sent


def test_a_services_yaml_makes_the_service_from_its_uri(tmp_path: Path) -> None:
    from google.adk.cli import service_registry

    (tmp_path / "services.yaml").write_text(
        "services:\n  - {scheme: recollect, type: memory, class: recollect.compat.adk.RecollectMemoryService}\n"
    )
    service_registry.load_services_module(str(tmp_path))
    service = get_service_registry().create_memory_service(f"recollect://{tmp_path}/a.db", agents_dir=str(tmp_path))
    assert isinstance(service, RecollectMemoryService)
    run(service.close())


def test_an_event_that_was_deleted_and_erased_stays_away(service: RecollectMemoryService) -> None:
    run(service.add_session_to_memory(session(CONVERSATION)))
    entry = run(service.search_memory(**OWNER, query="peanuts")).memories[0]
    run(service.delete_memory(**OWNER, memory_id=entry.id))
    service.memory.scoped(user="ana", agent="dinner").erase(entry.id)
    run(service.add_session_to_memory(session(CONVERSATION)))
    assert PEANUTS not in found(service, "peanuts")


def test_a_deletion_between_the_look_and_the_write_is_not_undone(
    service: RecollectMemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = [event("I am allergic to peanuts, and to nuts.", 0)]
    run(service.add_session_to_memory(session(events(PEANUTS))))
    entry = run(service.search_memory(**OWNER, query="peanuts")).memories[0]
    scope_of = service._scope

    def deleting(app_name: str, user_id: str) -> Any:
        scope = scope_of(app_name, user_id)
        batch = scope.batch

        def late(**options: Any) -> Any:
            monkeypatch.undo()
            run(service.delete_memory(**OWNER, memory_id=entry.id))
            return batch(**options)

        monkeypatch.setattr(scope, "batch", late, raising=False)
        return scope

    monkeypatch.setattr(service, "_scope", deleting)
    service._add_turns("dinner", "ana", adk._turns(changed, "s1", {}), None)
    assert found(service, "peanuts nuts allergic") == []


def test_a_record_of_another_program_with_the_same_names_in_its_metadata_is_a_result(
    service: RecollectMemoryService,
) -> None:
    scope = service.memory.scoped(user="ana", agent="dinner")
    others: list[dict[str, Any]] = [{"content": "plain"}, {"content": {"foo": 1}}, {"id": 5, "timestamp": 7}]
    for number, metadata in enumerate(others):
        scope.remember(f"Ana prefers green tea number {number}", metadata=metadata)
    assert len(found(service, "green tea")) >= 1
