"""`add_messages`: messages of chat APIs in any shape, handed over again and again, are stored once each."""

from __future__ import annotations

import asyncio
import enum
import random
import warnings
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import Memory, RecollectWarning
from recollect import filters as f
from recollect.engine.write.alignment import align
from recollect.errors import InvalidArgumentError, InvalidRecordError, ScopeError
from recollect.records.messages import Turn, UnreadableError, read_turns
from recollect.testing.loopback import core_of

Message = dict[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def chat(count: int, name: str = "") -> list[Message]:
    return [(assistant if n % 2 else user)(f"{name}message {n}") for n in range(count)]


def contents(memory: Memory, conversation: str = "c") -> list[str]:
    return [str(each.content) for each in memory.find(f.conversation(conversation), order="position")]


def statuses(report: recollect.Report) -> list[str]:
    return [each.status for each in report.results]


# Shapes

CALL = {"city": "Oslo"}
CALLED = '[calls get_weather {"city": "Oslo"}]'
#: The same exchange as Chat Completions, Anthropic's Messages and the Responses API have it, by their documentation.
CHAT_COMPLETIONS: list[Message] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is the weather?"}]},
    {
        "role": "assistant",
        "content": "Let me see.",
        "refusal": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "4 °C"},
    {"role": "assistant", "content": "It is 4 °C.", "annotations": []},
]
ANTHROPIC: list[Message] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is the weather?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "They want the weather.", "signature": "s"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": CALL},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "4 °C"}]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "It is 4 °C."}],
    },
]
RESPONSES: list[Message] = [
    {"type": "message", "role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "What is the weather?"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Oslo"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "4 °C"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 4 °C."}]},
]
EXCHANGE = [
    ("system", "Be brief."),
    ("user", "What is the weather?"),
    ("assistant", f"Let me see.\n{CALLED}"),
    ("tool", "4 °C"),
    ("assistant", "It is 4 °C."),
]
SHAPES = {"completions": CHAT_COMPLETIONS, "anthropic": ANTHROPIC, "responses": RESPONSES}


@pytest.mark.parametrize("first", SHAPES)
@pytest.mark.parametrize("second", SHAPES)
def test_the_same_text_in_another_shape_is_the_same_turn(first: str, second: str, memory: Memory) -> None:
    report = memory.add_messages(SHAPES[first], conversation="c")
    assert [(each.record.role, each.record.content) for each in report.results if each.record] == EXCHANGE
    root = memory.root
    again = memory.add_messages(SHAPES[second], conversation="c")
    assert statuses(again) == ["unchanged"] * 5
    assert memory.root == root


def test_objects_of_the_sdks_are_messages(memory: Memory) -> None:
    from anthropic.types import Message as Answer
    from openai.types.chat import ChatCompletionMessage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

    completion = ChatCompletionMessage.model_validate(CHAT_COMPLETIONS[2])
    answer = Answer.model_validate(
        {**ANTHROPIC[4], "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    )
    said = ResponseOutputMessage.model_validate(RESPONSES[3])
    call = ResponseFunctionToolCall.model_validate(RESPONSES[4])
    memory.add_messages([completion, answer], conversation="c")
    assert contents(memory) == [f"Let me see.\n{CALLED}", "It is 4 °C."]
    assert statuses(memory.add_messages([said, call, answer], conversation="c")) == ["unchanged"] * 2
    # What an agent appends to its list: Anthropic's content, a list of objects, in a dictionary.
    assert statuses(
        memory.add_messages([{"role": "assistant", "content": answer.content}, user("Thanks")], conversation="c")
    ) == ["unchanged", "created"]
    assert statuses(memory.add_messages(answer, conversation="alone")) == ["created"]


@pytest.mark.parametrize(
    ("part", "label"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            "[image: image/png]",
        ),
        ({"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}}, "[image: image/jpeg]"),
        ({"type": "input_image", "image_url": "data:image/webp;base64,AAAA"}, "[image: image/webp]"),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, "[image]"),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}},
            "[document: application/pdf]",
        ),
        (
            {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,AA"}},
            "[file: plan.pdf]",
        ),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "[audio]"),
    ],
)
def test_pictures_and_files_are_described_with_their_media_type(part: Message, label: str, memory: Memory) -> None:
    memory.add_messages([{"role": "user", "content": [{"type": "text", "text": "Look:"}, part]}], conversation="c")
    assert contents(memory) == [f"Look:\n{label}"]
    (record,) = memory.find()
    assert record.metadata["parts"] == [part]


def test_names_times_and_other_keys_are_kept(memory: Memory) -> None:
    message = {"role": "user", "name": "Ana", "content": "Hello", "id": "m1", "created_at": 1767225600, "weight": 2}
    memory.add_messages([message, assistant("Hi")], user="ana", agent="bot", session="s1", tags=["x"], conversation="c")
    first, second = memory.find(order="position")
    assert (first.speaker, first.user, first.agent, first.session, first.tags) == ("Ana", "ana", "bot", "s1", ("x",))
    assert first.time == datetime(2026, 1, 1, tzinfo=UTC)
    assert first.metadata == {"id": "m1", "weight": 2}
    assert (first.kind, first.position, second.position) == ("conversation", 0, 1)


def test_a_time_of_the_call_is_that_of_messages_without_one_in_their_order(memory: Memory) -> None:
    start = datetime(2026, 3, 1, 9, tzinfo=UTC)
    memory.add_messages(chat(3), conversation="c", time="2026-03-01T09:00")
    assert [each.time for each in memory.find(order="position")] == [
        start + timedelta(microseconds=n) for n in range(3)
    ]


def test_messages_that_cannot_be_read_are_reported_and_the_others_stored(memory: Memory) -> None:
    messages: list[Any] = [
        user("one"),
        None,
        {"role": "user", "content": " "},
        {"content": "x"},
        {"role": 5},
        user("two"),
    ]
    with pytest.warns(RecollectWarning, match=r"item 1 and 3 more could not be stored: messages\[1\] .* is missing"):
        report = memory.add_messages(messages, conversation="c")
    assert contents(memory) == ["one", "two"]
    assert [(each.index, each.item) for each in report.failed] == [(n, messages[n]) for n in (1, 2, 3, 4)]
    assert all(isinstance(each.reason, InvalidArgumentError) for each in report.failed)


def test_a_complete_answer_is_refused_with_what_to_pass(memory: Memory) -> None:
    answers: tuple[tuple[Message, str], ...] = (
        ({"choices": []}, r"response\.choices\[0\]\.message"),
        ({"output": []}, r"response\.output"),
    )
    for answer, what in answers:
        with pytest.warns(RecollectWarning, match=what):
            assert memory.add_messages([answer], conversation="c").failed


def test_a_message_over_the_limits_fails_with_its_own_index() -> None:
    with recollect.open(":memory:", limits=recollect.Limits(content_bytes=10)) as memory:
        with pytest.warns(RecollectWarning, match="item 2 could not be stored"):
            report = memory.add_messages(
                [user("a"), {"role": "system", "content": "b"}, user("c" * 11)], conversation="c"
            )
        assert [each.index for each in report.failed] == [2]
        assert contents(memory) == ["a", "b"]


def test_a_message_that_cannot_be_stored_does_not_repeat_those_after_it() -> None:
    with recollect.open(":memory:", limits=recollect.Limits(content_bytes=20)) as memory:
        messages = [user("one"), assistant("x" * 21)]
        for number in range(5):
            messages.append(user(f"more {number}"))
            with pytest.warns(RecollectWarning, match="item 1 could not be stored"):
                assert memory.add_messages(messages, conversation="c").count("created") == 1 + (number == 0)
        assert contents(memory) == ["one", *(f"more {number}" for number in range(5))]


@pytest.mark.parametrize("messages", ["text", b"bytes", 5, None])
def test_anything_but_messages_is_refused(messages: Any, memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a list of messages"):
        memory.add_messages(messages)


def test_invalid_fields_of_all_turns_are_refused_and_nothing_is_stored(memory: Memory) -> None:
    for fields in ({"user": ""}, {"tags": "x"}, {"time": "yesterday"}, {"conversation": "a\nb"}):
        with pytest.raises(InvalidRecordError):
            memory.add_messages(chat(2), **fields)  # type: ignore[arg-type]
    assert memory.count() == 0


# Lists that are handed over again


def test_a_growing_list_adds_only_its_new_turns(memory: Memory) -> None:
    for count in (1, 1, 2, 5, 5, 40):
        before = memory.count()
        report = memory.add_messages(chat(count), conversation="c")
        assert report.count("created") == count - before
        assert len(report.results) == count
    assert contents(memory) == [each["content"] for each in chat(40)]


@pytest.mark.parametrize("window", [2, 3, 10])
@pytest.mark.parametrize("system", [False, True])
def test_a_trimmed_list_is_aligned_on_its_overlap(window: int, system: bool, memory: Memory) -> None:
    said = chat(30)
    for count in range(1, 31):
        head = [{"role": "system", "content": f"It is day {count}."}] if system else []
        report = memory.add_messages(head + said[max(0, count - window) : count], conversation="c")
        assert statuses(report)[-1] == "created"
    assert [each for each in contents(memory) if "day" not in each] == [each["content"] for each in said]
    assert memory.count() == (60 if system else 30)


def test_a_summary_in_place_of_the_beginning_is_one_new_turn(memory: Memory) -> None:
    said = chat(10)
    memory.add_messages(said, conversation="c")
    for count in (11, 12):
        memory.add_messages([user("Summary: they talked."), *chat(count)[6:]], conversation="c")
    assert contents(memory).count("Summary: they talked.") == 1
    assert memory.count() == 13


@pytest.mark.parametrize("start", [0, 3])
def test_an_answer_that_was_generated_again_is_the_only_new_turn(start: int, memory: Memory) -> None:
    said = chat(6)
    memory.add_messages(said, conversation="c")
    again = [*said[start:5], assistant("another answer")]
    assert statuses(memory.add_messages(again, conversation="c"))[-1] == "created"
    assert memory.count() == 7
    again.append(user("thanks"))
    assert statuses(memory.add_messages(again, conversation="c"))[-1] == "created"
    assert contents(memory) == [*(each["content"] for each in said), "another answer", "thanks"]


def test_the_first_answer_generated_again_does_not_repeat_its_question(memory: Memory) -> None:
    memory.add_messages([user("hi"), assistant("hello")], conversation="c")
    memory.add_messages([user("hi"), assistant("good day")], conversation="c")
    assert contents(memory) == ["hi", "hello", "good day"]


def test_the_question_stored_before_its_answer_is_not_repeated(memory: Memory) -> None:
    memory.add_messages(chat(4), conversation="c")
    memory.add_messages([user("and now?")], conversation="c")
    memory.add_messages([user("and now?"), assistant("now this")], conversation="c")
    assert contents(memory)[4:] == ["and now?", "now this"]


def test_nothing_but_new_messages_is_appended_even_if_they_repeat_earlier_ones(memory: Memory) -> None:
    for text in ("ok", "more", "ok", "ok"):
        memory.add_messages([user(text)], conversation="c")
        memory.add_messages([assistant(f"done {memory.count()}")], conversation="c")
    assert [each for each in contents(memory) if "done" not in each] == ["ok", "more", "ok", "ok"]
    memory.add_messages([user("ok"), assistant("something new")], conversation="c")
    assert contents(memory)[-2:] == ["ok", "something new"]


def test_a_fresh_list_with_the_same_system_prompt_continues_the_conversation(memory: Memory) -> None:
    prompt = {"role": "system", "content": "Be brief."}
    memory.add_messages([prompt, *chat(4, "first ")], conversation="c")
    memory.add_messages([prompt, *chat(4, "second ")], conversation="c")
    assert memory.count() == 9


WORDS = st.lists(st.sampled_from(["ok", "boat", "tea"]), min_size=2, max_size=5)


@settings(max_examples=some(300), deadline=None)
@given(
    st.lists(WORDS | st.sampled_from(["forget", "clear", "roll back"]), max_size=7), st.randoms(use_true_random=False)
)
def test_a_list_that_was_just_passed_adds_nothing_whatever_happened_before(
    steps: list[Any], rng: random.Random
) -> None:
    with recollect.open(":memory:") as memory:
        for step in steps:
            records = memory.find()
            if step == "forget" and records:
                memory.forget(rng.choice(records).id)
            elif step == "clear":
                memory.clear()
            elif step == "roll back" and memory.seq:
                memory.rollback(rng.randrange(memory.seq))
            elif isinstance(step, list):
                said = [user(word) for word in step]
                memory.add_messages(said, conversation="c")
                assert statuses(memory.add_messages(said, conversation="c")) == ["unchanged"] * len(said)


def test_turns_that_a_rollback_removed_are_stored_again_when_they_are_passed_again(memory: Memory) -> None:
    memory.add_messages(chat(2), conversation="c")
    before = memory.seq
    memory.add_messages(chat(6), conversation="c")
    memory.rollback(before)
    assert len(contents(memory)) == 2
    memory.add_messages(chat(6), conversation="c")
    assert contents(memory) == [each["content"] for each in chat(6)]
    assert statuses(memory.add_messages(chat(6), conversation="c")) == ["unchanged"] * 6
    memory.revert(memory.seq)
    assert memory.add_messages(chat(6), conversation="c").count("created") == 4
    assert contents(memory) == [each["content"] for each in chat(6)]


def test_a_forgotten_turn_stays_forgotten_through_rollbacks(memory: Memory) -> None:
    memory.add_messages(chat(4), conversation="c")
    turn = memory.find(f.conversation("c"), order="position")[1]
    memory.forget(turn.id)
    without = memory.seq
    memory.rollback(without - 1)
    assert len(contents(memory)) == 4
    memory.rollback(without)
    memory.add_messages(chat(5), conversation="c")
    assert contents(memory) == ["message 0", "message 2", "message 3", "message 4"]


def test_forgotten_turns_stay_forgotten(memory: Memory) -> None:
    said = chat(8)
    memory.add_messages(said[:4], conversation="c", session="monday")
    for gone in ("message 1", "message 3"):
        memory.forget_where(f.contains(gone))
    for passed in (said[:6], said[:7], said[2:8]):
        memory.add_messages(passed, conversation="c", session="tuesday")
    assert contents(memory) == ["message 0", "message 2", "message 4", "message 5", "message 6", "message 7"]


def test_turns_of_other_users_and_agents_are_other_turns(memory: Memory) -> None:
    owners: tuple[dict[str, Any], ...] = ({"user": "ana"}, {"user": "bob"}, {"user": "ana", "agent": "a"})
    for who in owners:
        assert memory.add_messages(chat(3), conversation="c", **who).count("created") == 3
        assert memory.add_messages(chat(3), conversation="c", **who).count("created") == 0
    assert memory.scoped(user="bob").count() == 3


def test_a_session_is_that_of_the_new_turns(memory: Memory) -> None:
    memory.add_messages(chat(2), conversation="c", session="monday")
    memory.add_messages(chat(4), conversation="c", session="tuesday")
    assert [each.session for each in memory.find(order="position")] == ["monday"] * 2 + ["tuesday"] * 2


def test_without_a_conversation_one_is_derived_from_the_owners_and_the_first_message(memory: Memory) -> None:
    prompt = {"role": "system", "content": "Be brief."}
    memory.add_messages([prompt, *chat(2)], user="ana")
    memory.add_messages([{**prompt, "content": "Be kind."}, *chat(4)], user="ana")
    memory.add_messages([prompt, *chat(2, "other ")], user="ana")
    memory.add_messages([prompt, *chat(2)], user="bob")
    memory.scoped(user="ana").add_messages(chat(5))
    names = {each.conversation: memory.count(f.conversation(str(each.conversation))) for each in memory.find()}
    assert sorted(names.values()) == [3, 3, 7]


def test_a_scope_gives_its_fields_and_refuses_others(memory: Memory) -> None:
    ana = memory.scoped(user="ana", conversation="c")
    ana.add_messages(chat(2))
    assert statuses(ana.add_messages(chat(3))) == ["unchanged", "unchanged", "created"]
    assert memory.count(f.user("ana") & f.conversation("c")) == 3
    with pytest.raises(ScopeError):
        ana.add_messages(chat(2), user="bob")


def test_in_a_batch_and_awaited(memory: Memory) -> None:
    with memory.batch() as batch:
        batch.add_messages(chat(2), conversation="c")
        assert statuses(batch.add_messages(chat(3), conversation="c")) == ["unchanged", "unchanged", "created"]
    with pytest.raises(LookupError), memory.batch() as batch:
        batch.add_messages(chat(5), conversation="c")
        raise LookupError
    assert (memory.count(), memory.seq) == (3, 1)

    async def run() -> recollect.Report:
        wrapped = recollect.AsyncMemory(memory)
        async with wrapped.batch() as batch:
            await batch.add_messages(chat(4), conversation="c")
        return await wrapped.add_messages(chat(5), conversation="c")

    assert asyncio.run(run()).count("created") == 1


def test_a_list_longer_than_a_commit_is_stored_in_order() -> None:
    with recollect.open(":memory:") as memory:
        assert memory.add_messages(chat(2500), conversation="c").count("created") == 2500
        assert memory.seq == 3
        assert memory.add_messages(chat(2501), conversation="c").count("created") == 1
        assert contents(memory) == [each["content"] for each in chat(2501)]


@pytest.mark.in_process
def test_a_repeated_turn_is_not_drafted_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from recollect.engine.write.drafts import Draft
    from recollect.engine.write.messages import Addition

    memory.add_messages(chat(500), conversation="c")
    drafted = []
    draft = Addition.draft

    def noted(self: Addition, index: int) -> Draft:
        drafted.append(index)
        return draft(self, index)

    monkeypatch.setattr(Addition, "draft", noted)
    memory.add_messages(chat(502), conversation="c")
    assert drafted == [500, 501]
    memory.add_messages(chat(503)[480:], conversation="c")
    assert drafted == [500, 501, 22]
    assert core_of(memory)._turns.entries


@settings(max_examples=some(150), deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6), st.booleans()), min_size=1, max_size=12),
    words=st.lists(st.sampled_from(["ok", "hello", "boat"]), min_size=36, max_size=36),
    unique=st.booleans(),
)
def test_what_was_said_is_stored_once_and_in_order(
    steps: list[tuple[int, int, bool]], words: list[str], unique: bool
) -> None:
    """An agent adds messages and passes all of them, or a window that overlaps if texts are unique."""
    said: list[Message] = []
    with recollect.open(":memory:") as memory:
        for more, overlap, trims in steps:
            before = len(said)
            for word in words[before : before + more]:
                text = f"{word} {len(said)}" if unique else word
                said.append((assistant if len(said) % 2 else user)(text))
            start = max(0, before - overlap) if trims and unique else 0
            memory.add_messages(said[start:], conversation="c")
        assert contents(memory) == [each["content"] for each in said]


# Only the alignment: (stored, passed, what is known)


@pytest.mark.parametrize(
    ("stored", "passed", "known"),
    [
        ("", "abc", {}),
        ("abc", "abcd", {0: 0, 1: 1, 2: 2}),
        ("abc", "a", {}),  # one turn that is not the whole conversation is a repetition
        ("a", "a", {0: 0}),
        ("abc", "ab", {0: 0, 1: 1}),
        ("abcd", "cde", {0: 2, 1: 3}),
        ("abcd", "de", {0: 3}),
        ("abcd", "d", {}),
        ("abcd", "cd", {0: 2, 1: 3}),
        ("abcd", "abx", {0: 0, 1: 1}),  # generated again
        ("abcdx", "abx", {0: 0, 1: 1, 2: 4}),
        ("abcdx", "abxy", {0: 0, 1: 1, 2: 4}),
        ("abcd", "bcx", {0: 1, 1: 2}),
        ("abcd", "xcde", {1: 2, 2: 3}),  # a summary before the overlap
        ("abcdx", "xcdy", {0: 4, 1: 2, 2: 3}),
        ("abcd", "abcxdy", {0: 0, 1: 1, 2: 2, 4: 3}),  # the list has all stored turns
        ("abcd", "bx", {}),  # one turn in the middle is no overlap
        ("abcd", "xdy", {}),  # one turn at the end after a new one, either
        ("abcd", "wxyz", {}),
        ("aaaa", "aaaaa", {0: 0, 1: 1, 2: 2, 3: 3}),
    ],
)
def test_alignment(stored: str, passed: str, known: dict[int, int]) -> None:
    assert align(list(stored), list(passed), lambda index, near: False) == known


def test_a_list_that_is_passed_twice_adds_nothing_the_second_time() -> None:
    """Exhaustively, for short lists of few words; a single turn is a repetition by design."""
    for stored, passed in product(range(6), range(2, 6)):
        for known, said in product(product("ab", repeat=stored), product("ab", repeat=passed)):
            found = align(known, said, lambda index, near: False)
            after = [*known, *(word for index, word in enumerate(said) if index not in found)]
            assert len(align(after, said, lambda index, near: False)) == len(said), (known, said)


def test_alignment_leaves_forgotten_turns_out() -> None:
    def forgotten(passed: str, gone: str) -> Any:
        return lambda index, near: passed[index] in gone

    assert align(list("acd"), list("abcde"), forgotten("abcde", "b")) == {0: 0, 1: None, 2: 1, 3: 2}
    assert align(list("acd"), list("bcde"), forgotten("bcde", "b")) == {0: None, 1: 1, 2: 2}
    assert align(list("ab"), list("abcd"), forgotten("abcd", "c")) == {0: 0, 1: 1, 2: None}
    assert align([], list("ab"), forgotten("ab", "ab")) == {}


# Reading

_KEYS = st.sampled_from(["role", "content", "type", "text", "name", "output", "parts", "tool_calls", "call"])


@settings(max_examples=some(200))
@given(
    messages=st.lists(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=5)
            | st.binary(max_size=3)
            | st.sampled_from(["user", "tool_result", "function_call", "reasoning", "x_output", "message"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | st.text(max_size=3), inner, max_size=4),
            max_leaves=12,
        ),
        max_size=5,
    )
)
def test_any_json_is_a_turn_or_an_error_with_its_index(messages: list[Any]) -> None:
    for index, turn in read_turns(messages):
        assert 0 <= index < len(messages)
        assert isinstance(turn, UnreadableError) or (isinstance(turn, Turn) and turn.content.strip())


def test_a_message_is_no_item_of_remember_all(memory: Memory) -> None:
    report = memory.remember_all(
        [user("hi"), {**user("x"), "kind": "conversation"}, {**user("y"), "conversation": "c"}]
    )
    assert [each.index for each in report.failed] == [0]
    assert "pass messages to add_messages" in str(report.failed[0].reason)
    assert [each.record.kind for each in report.results if each.record] == ["conversation"] * 2


def test_a_text_with_a_conversation_is_a_turn_of_it(memory: Memory) -> None:
    items = [{"content": text, "conversation": "c"} for text in ("ok", "fine", "ok")]
    memory.remember_all(items)
    assert contents(memory) == ["ok", "fine", "ok"]
    assert memory.remember("a fact", kind="user_fact", conversation="c").kind == "user_fact"
    assert memory.scoped(conversation="c").remember("of the scope").kind == "knowledge"


def test_items_that_failed_are_warned_of_and_no_warning_is_given_for_others(memory: Memory) -> None:
    with pytest.warns(RecollectWarning, match=r"item 1 could not be stored: .* \(all are in report\.failed\)"):
        memory.remember_all(["fine", " "])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.remember_all(["fine", "too"])


# What a review found


def test_a_list_longer_than_a_commit_is_not_compared_with_its_own_first_part() -> None:
    with recollect.open(":memory:") as memory:
        memory.add_messages(chat(2, "earlier "), conversation="c")
        messages = chat(1500)
        for at in (998, 1300):
            messages[at : at + 2] = [user("thanks"), assistant("you are welcome")]
        assert memory.add_messages(messages, conversation="c").count("created") == 1500
        assert contents(memory)[2:] == [each["content"] for each in messages]


def test_lists_of_equal_turns_are_aligned_in_proportion_to_their_length() -> None:
    compared = 0

    class Key(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    for size in (500, 2000):
        compared = 0
        stored, passed = ([Key(first), *(Key("a") for _ in range(size))] for first in "xy")
        align(stored, passed, lambda index, near: False)
        assert compared < 200_000 + 300 * size


def test_an_answer_with_results_of_tools_keeps_all_of_its_turns(memory: Memory) -> None:
    content = [
        {"type": "text", "text": "Let me look."},
        {"type": "mcp_tool_use", "id": "t", "name": "find", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "t", "content": "42"},
        {"type": "text", "text": "It is 42."},
    ]
    memory.add_messages([{"type": "message", "role": "assistant", "content": content}], conversation="c")
    assert contents(memory) == ["42", "Let me look.\nIt is 42.\n[calls find]"]


class Odd:
    def model_dump(self) -> None:
        raise RuntimeError


class Role(str, enum.Enum):  # noqa: UP042 - the older form, whose `str` is its name
    USER = "user"


class Moment(datetime):
    pass


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "x", "odd": Odd()},
        {"role": "user", "content": "x", "seed": 10**5000},
        {"role": "user", "content": "x", "score": float("nan")},
        Odd(),
    ],
)
def test_odd_values_fail_their_own_message_only(message: Any, memory: Memory) -> None:
    with pytest.warns(RecollectWarning):
        report = memory.add_messages([user("one"), message, user("two")], conversation="c")
    assert [each.index for each in report.failed] == [1]
    assert contents(memory) == ["one", "two"]


def test_times_and_enumerations_of_other_types_are_read(memory: Memory) -> None:
    message = {"role": Role.USER, "content": "hi", "created_at": Moment(2026, 1, 1, tzinfo=UTC)}
    call = {"type": "tool_use", "id": "t", "name": "at", "input": {"day": datetime(2026, 1, 2, tzinfo=UTC)}}
    memory.add_messages([message, {"role": "assistant", "content": [call]}], conversation="c")
    first, second = memory.find(order="position")
    assert (first.role, first.time) == ("user", datetime(2026, 1, 1, tzinfo=UTC))
    assert second.content == '[calls at {"day": "2026-01-02T00:00:00+00:00"}]'
