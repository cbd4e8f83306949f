"""Importing chat messages in the forms of OpenAI and Anthropic."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from recollect import Memory, Record
from recollect.errors import ImportFormatError
from recollect.importers import ImportReport

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]
Turns = Callable[..., list[Record]]

BASE64 = "iVBORw0KGgoAAAANSUhEUgAA" * 50  # 1200 characters
OMITTED = "omitted: 1200 characters of base64"
SAID = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
BOTH = pytest.mark.parametrize("form", ["openai", "anthropic"])


def lines(*values: Any) -> str:
    return "".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values)


def only(turns: Turns) -> Record:
    (turn,) = turns()
    return turn


# Where messages are found


@BOTH
@pytest.mark.parametrize(
    ("name", "data", "conversations"),
    [
        ("chat.json", SAID, {"chat"}),
        ("chat.json", {"messages": SAID}, {"chat"}),
        ("chat.json", {"id": "c-7", "messages": SAID}, {"c-7"}),
        ("chat.json", {"conversation_id": 12, "messages": SAID}, {"12"}),
        ("chat.json", {"title": "Greetings", "messages": SAID}, {"Greetings"}),
        ("chat.json", [{"messages": SAID}, {"messages": SAID}], {"chat#0", "chat#1"}),
        ("chat.json", [{"messages": SAID}, {"id": "x", "messages": SAID}], {"chat#0", "x"}),
        ("chat.jsonl", lines(*SAID), {"chat"}),
        ("chat.jsonl", lines({"messages": SAID}, {"messages": SAID}), {"chat#0", "chat#1"}),
        ("chat.jsonl", lines({"messages": SAID}), {"chat#0"}),
        ("chat.txt", "\ufeff" + lines(*SAID).replace("\n", "\r\n\r\n"), {"chat"}),
        ("chat.json", SAID[1], {"chat"}),
    ],
)
def test_messages_are_found_in_lists_objects_and_lines(
    form: str, name: str, data: Any, conversations: set[str], write: Write, run: Run, turns: Turns
) -> None:
    path = write(name, data)
    report = run(form, path)
    assert report.damaged == ()
    stored = turns()
    assert {turn.conversation for turn in stored} == conversations
    assert all(turn.kind == "conversation" and turn.position in (0, 1) for turn in stored)
    assert {turn.content for turn in stored} <= {"Be brief.", "Hello"}
    assert (run(form, path).created, run(form, path).unchanged) == (0, len(stored))


def test_an_empty_list_holds_nothing(write: Write, run: Run) -> None:
    assert run("openai", write("chat.json", [])).created == 0


@BOTH
@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "[1,",
        "null",
        "5",
        '"text"',
        [1, 2],
        [[]],
        {},
        {"messages": "none"},
        {"mapping": {}},
        lines({"a": 1}, {}),
    ],
)
def test_what_holds_no_messages_is_refused_whole(form: str, data: Any, write: Write, run: Run, memory: Memory) -> None:
    with pytest.raises(ImportFormatError):
        run(form, write("chat.json", data))
    assert memory.namespaces() == []


@BOTH
def test_damaged_lines_in_the_middle_are_reported_by_their_number(
    form: str, write: Write, run: Run, turns: Turns
) -> None:
    path = write("chat.jsonl", lines(SAID[0], "{broken", "", [1], {"content": "no role"}, SAID[1], None, 7))
    report = run(form, path)
    assert [damage.place for damage in report.damaged] == ["line 2", "line 4", "line 5", "line 7", "line 8"]
    reasons = [damage.reason for damage in report.damaged]
    assert reasons[1:] == [
        "is a list, not an object",
        "has no role",
        "is missing, not an object",
        "is a number, not an object",
    ]
    assert [(turn.content, turn.position) for turn in turns()] == [("Be brief.", 0), ("Hello", 4)]


@BOTH
def test_damaged_messages_in_the_middle_are_reported_by_their_place(
    form: str, write: Write, run: Run, turns: Turns
) -> None:
    bad: list[Any] = [
        None,
        {"role": "user"},
        {"role": "user", "content": "  "},
        {"role": 5, "content": "x"},
        {"role": "user", "content": 5},
        {"role": "user", "content": [5]},
        {"role": "user", "content": [{"type": "text", "text": 5}]},
        {"role": "user", "content": "\udc00"},
        {"role": "user", "content": "x", "timestamp": float("nan")},
        {"role": "user", "content": "x", "timestamp": "yesterday"},
        {"role": "user", "content": "x", "timestamp": True},
        {"role": "user", "content": "x", "timestamp": 1e300},
        {"role": "user", "content": "x", "timestamp": "0001-01-01"},
        {"role": "user", "content": "x", "seed": 10**30},
        {"role": "user", "content": "x", "name": ["Ada"]},
        {"role": "user", "content": "x", "id": "a\nb"},
    ]
    path = write("logs.json", [{"messages": SAID}, {"messages": [SAID[0], *bad, SAID[1]]}])
    report = run(form, path)
    assert [damage.place for damage in report.damaged] == [f"conversation 2, message {n}" for n in range(2, 18)]
    assert [turn.position for turn in turns() if turn.conversation == "logs#1"] == [0, 17]


@BOTH
def test_a_longer_conversation_adds_only_its_new_turns(form: str, write: Write, run: Run, memory: Memory) -> None:
    def file_of(count: int) -> Path:
        return write("chat.json", [{"role": "user", "content": "ok" if n % 9 == 0 else str(n)} for n in range(count)])

    assert run(form, file_of(1500)).created == 1500
    root = memory.root
    assert (run(form, file_of(1500)).created, memory.root) == (0, root)
    assert run(form, file_of(1501)).created == 1


def test_a_file_of_conversations_that_grows_adds_only_the_new_one(write: Write, run: Run) -> None:
    first, second = {"messages": SAID}, {"messages": [{"role": "user", "content": "Another day"}]}
    assert run("openai", write("tuning.jsonl", lines(first))).created == 2
    assert run("openai", write("tuning.jsonl", lines(first, second))).created == 1


def test_conversations_of_one_title_stay_apart(write: Write, run: Run, turns: Turns) -> None:
    path = write("chats.json", [{"title": "New chat", "messages": SAID}] * 3)
    assert run("openai", path).created == 6
    assert {turn.conversation for turn in turns()} == {"New chat", "New chat#2", "New chat#3"}


def test_a_title_that_cannot_name_a_conversation_is_kept_with_its_first_turn(
    write: Write, run: Run, turns: Turns
) -> None:
    run("openai", write("chat.json", {"title": "two\nlines", "model": "m-1", "messages": SAID}))
    first, second = turns()
    assert first.conversation == "chat"
    assert first.metadata == {"conversation": {"title": "two\nlines", "model": "m-1"}}
    assert second.metadata == {}


# What a message becomes


def test_a_message_keeps_its_role_name_time_and_id(write: Write, run: Run, turns: Turns) -> None:
    message = {"role": "developer", "name": "Ada", "content": " as it\tstands ", "id": "m1", "created_at": 1767225600}
    run("openai", write("chat.json", [message]))
    turn = only(turns)
    assert (turn.id, turn.role, turn.speaker) == ("chat/m1", "system", "Ada")
    assert (turn.content, turn.metadata) == (" as it\tstands ", {})
    assert turn.time == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("key", ["created_at", "timestamp", "create_time"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1767225600.25, "2026-01-01T00:00:00.250000+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
        ("2026-01-01T08:30:00Z", "2026-01-01T08:30:00+00:00"),
        ("2026-01-01T08:30:00-05:00", "2026-01-01T08:30:00-05:00"),
        ("2026-01-01T08:30:00", "2026-01-01T08:30:00+01:00"),
        ("2026-07-01", "2026-07-01T00:00:00+02:00"),
    ],
)
def test_a_time_is_epoch_seconds_or_iso_text_in_the_users_zone(
    key: str, value: Any, expected: str, write: Write, run: Run, turns: Turns
) -> None:
    path = write("chat.json", [{"role": "user", "content": "x", key: value}])
    run("openai", path, zone=ZoneInfo("Europe/Oslo"))
    time = only(turns).time
    assert time is not None
    assert time.isoformat() == expected


def test_long_ids_are_shortened_to_the_same_one_every_time(write: Write, run: Run, turns: Turns) -> None:
    data = [{"role": "user", "content": f"text {n}", "id": "é" * 300 + str(n)} for n in range(2)]
    path = write("chat.json", data)
    assert (run("openai", path).created, run("openai", path).created) == (2, 0)
    assert all(len(turn.id.encode()) <= 255 for turn in turns())


def test_texts_are_joined_and_other_parts_are_kept(write: Write, run: Run, turns: Turns) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}", "detail": "low"}}
    audio = {"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}}
    content = [
        {"type": "text", "text": "What is this?"},
        image,
        {"type": "input_text", "text": "And this?"},
        audio,
        {"type": "output_text", "text": "A cat.", "annotations": [{"url": "https://example.org"}]},
        {"type": "text", "text": {"value": "Stored.", "annotations": []}},
    ]
    run("openai", write("chat.json", [{"role": "user", "content": content}]))
    turn = only(turns)
    assert turn.content == "What is this?\nAnd this?\nA cat.\nStored.\n[image: image/png] [audio]"
    assert turn.metadata["parts"] == [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{OMITTED}", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": OMITTED, "format": "wav"}},
        {"type": "output_text", "annotations": [{"url": "https://example.org"}]},
    ]


def test_short_base64_and_long_prose_are_kept_whole(write: Write, run: Run, turns: Turns) -> None:
    short, prose = BASE64[:1000], "so it goes, " * 200
    parts = [{"type": "image_url", "image_url": {"url": short}}, {"type": "note", "note": prose}]
    run("openai", write("chat.json", [{"role": "user", "content": [{"type": "text", "text": BASE64}, *parts]}]))
    turn = only(turns)
    text, line = turn.text.split("\n")
    assert text == BASE64
    assert line.startswith("[image] [note: so it goes, ")
    assert turn.metadata["parts"] == parts


def test_tool_calls_and_their_answers_are_turns_like_any_other(write: Write, run: Run, turns: Turns) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
    data = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "4 °C"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call, call], "refusal": None},
        {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": ""}},
        {"role": "function", "name": "now", "content": "noon"},
    ]
    assert run("openai", write("chat.json", data)).damaged == ()
    pure, answer, both, old, function = turns()
    assert (pure.content, pure.metadata) == ('[calls get_weather {"city": "Oslo"}]', {"tool_calls": [call]})
    assert (answer.role, answer.content, answer.metadata) == ("tool", "4 °C", {"tool_call_id": "call_1"})
    called = '[calls get_weather {"city": "Oslo"}]'
    assert (both.content, both.metadata) == (f"Let me see.\n{called} {called}", {"tool_calls": [call, call]})
    assert (old.content, old.metadata["function_call"]["name"]) == ("[calls now]", "now")
    assert (function.role, function.speaker, function.content) == ("tool", None, "noon")
    assert function.metadata == {"name": "now"}


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}, "[image]"),
        ({"content": [{"type": "input_image", "image_url": "https://example.org/a.png"}]}, "[image]"),
        ({"content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]}, "[audio]"),
        ({"content": [{"type": "file", "file": {"filename": "a.pdf"}}, {"type": "image"}]}, "[file: a.pdf] [image]"),
        ({"content": [{"type": "refusal", "refusal": "I cannot\nhelp."}]}, "[refusal: I cannot help.]"),
        ({"content": None, "refusal": "No."}, "[refusal: No.]"),
        ({"content": None, "audio": {"id": "a", "transcript": "Good day"}}, "[audio: Good day]"),
        ({"content": "", "attachments": [{"file_name": "notes.txt", "extracted_content": "x"}]}, "[file: notes.txt]"),
        ({"content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]}, "[thinking: Hm.]"),
        ({"content": [{"type": "redacted_thinking", "data": "AAAA"}]}, "[redacted_thinking]"),
        ({"content": [{"type": "document", "title": "Report", "source": {}}]}, "[document: Report]"),
        ({"content": [{"type": "something_new", "x": 1}]}, "[something_new]"),
        ({"content": [{"x": 1, "type": None}]}, "[part]"),
        (
            {"content": None, "tool_calls": [{"type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
            "[calls sh ls]",
        ),
        ({"content": None, "tool_calls": ["odd"]}, "[calls ? odd]"),
    ],
)
@BOTH
def test_a_message_without_text_says_in_one_line_what_it_is(
    form: str, message: dict[str, Any], content: str, write: Write, run: Run, turns: Turns
) -> None:
    assert run(form, write("chat.json", [{"role": "assistant", **message}])).damaged == ()
    turn = only(turns)
    assert turn.content == content
    assert turn.metadata  # the whole of it is there


def test_what_has_no_field_of_its_own_stays_in_the_metadata(write: Write, run: Run, turns: Turns) -> None:
    message = {
        "role": "user",
        "content": "x",
        "weight": 0,
        "usage": {"tokens": 3},
        "id": 17,
        "parts": ["own"],
        "none": [],
    }
    run("openai", write("chat.json", [message]))
    assert only(turns).metadata == {"weight": 0, "usage": {"tokens": 3}, "id": 17, "parts": ["own"]}


# Anthropic's own shapes


def test_the_system_prompt_is_the_first_turn(write: Write, run: Run, turns: Turns) -> None:
    for number, system in enumerate(
        ["Be kind.", [{"type": "text", "text": "Be kind.", "cache_control": {"type": "e"}}]]
    ):
        run("anthropic", write(f"{number}.json", {"model": "m", "system": system, "messages": SAID[1:]}))
    first, second = ([turn for turn in turns() if turn.conversation == name] for name in "01")
    for file_of in (first, second):
        assert [(turn.role, turn.content, turn.position) for turn in file_of] == [
            ("system", "Be kind.", 0),
            ("user", "Hello", 1),
        ]
    assert first[0].metadata == {"conversation": {"model": "m"}}
    assert second[0].metadata["parts"] == [{"type": "text", "cache_control": {"type": "e"}}]


def test_tool_use_and_its_result_are_kept(write: Write, run: Run, turns: Turns) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "4 °C"}
    blocks = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "wet"}, {"type": "image"}],
    }
    data = [
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, use]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result, blocks]},
        {"role": "user", "content": [result, {"type": "text", "text": "So?"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
    ]
    assert run("anthropic", write("chat.json", data)).damaged == ()
    both, pure, first, second, third, mixed, empty = turns()
    called = '[calls get_weather {"city": "Oslo"}]'
    assert (both.content, both.metadata) == (f"Let me see.\n{called}", {"parts": [use]})
    assert pure.content == called
    assert [(each.role, each.content) for each in (first, second, third)] == [
        ("tool", "4 °C"),
        ("tool", "wet\n[image]"),
        ("tool", "4 °C"),
    ]
    assert first.metadata == {"tool_use_id": "t1"}
    assert second.metadata == {"tool_use_id": "t1", "parts": [{"type": "image"}]}
    assert (mixed.role, mixed.content) == ("user", "So?")
    assert (empty.role, empty.content) == ("tool", "[no output]")


def test_thinking_is_kept_beside_the_text(write: Write, run: Run, turns: Turns) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": BASE64}
    data = [{"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]}]
    run("anthropic", write("chat.json", data))
    turn = only(turns)
    assert turn.content == "Yes."
    assert turn.metadata == {"parts": [{**thinking, "signature": OMITTED}]}


def exported(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    about = {"uuid": "c-1", "name": "Garden", "created_at": "2026-01-01T00:00:00Z", "account": {"uuid": "a-1"}}
    return {**about, "chat_messages": list(messages), **fields}


def test_an_export_of_claude_is_imported_with_its_uuids_and_times(write: Write, run: Run, turns: Turns) -> None:
    part = {"type": "text", "text": "Plan my garden", "citations": []}
    human = {"uuid": "m-1", "sender": "human", "text": "Plan my garden", "created_at": "2026-01-01T09:00:00.5Z"}
    data = [
        exported(
            {**human, "content": [part], "attachments": [], "files": []},
            {"uuid": "m-2", "sender": "assistant", "text": "With pleasure.", "created_at": "2026-01-01T09:00:02+00:00"},
            {"uuid": "m-3", "sender": "human", "text": "", "files": [{"file_name": "plan.png"}]},
            {
                "uuid": "m-4",
                "sender": "human",
                "text": "shown\n[unsupported]",
                "content": [{"type": "text", "text": "shown"}],
            },
            {"uuid": "m-5", "sender": "human", "text": "", "content": []},
        ),
        exported(uuid="c-2"),
    ]
    path = write("conversations.json", data)
    report = run("anthropic", path)
    assert (report.created, [damage.place for damage in report.damaged]) == (4, ["conversation 1, message 5"])
    first, second, third, fourth = turns()
    assert [(turn.id, turn.role, turn.content) for turn in (first, second)] == [
        ("m-1", "user", "Plan my garden"),
        ("m-2", "assistant", "With pleasure."),
    ]
    assert first.conversation == "c-1"
    assert first.time == datetime(2026, 1, 1, 9, 0, 0, 500_000, UTC)
    assert first.metadata["conversation"]["name"] == "Garden"
    assert (third.content, third.metadata) == ("[file: plan.png]", {"files": [{"file_name": "plan.png"}]})
    assert (fourth.content, fourth.metadata) == ("shown", {"text": "shown\n[unsupported]"})
    assert (run("anthropic", path).created, run("anthropic", path).differing) == (0, 0)
