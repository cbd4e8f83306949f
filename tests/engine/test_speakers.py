"""Questions about who said something: the speaker's turns first, in every language that is detected."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.text.frames import _DID, _FRAMES, _YOU, _by_language, frame_of
from recollect.text.languages import CODES

CHAT = [
    ("Mara", "My sister said the boiler is old."),
    ("Tobias", "I called the plumber."),
    ("Tobias", "We need a chimney cap."),
    ("Mara", "I told you in March."),
    ("Mara", "Tobias is a good cook."),
]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with recollect.open(":memory:") as memory:
        memory.remember_all(
            {"content": text, "speaker": speaker, "kind": "conversation", "conversation": "c"} for speaker, text in CHAT
        )
        yield memory


def texts(memory: Memory, question: str, k: int = 3) -> list[str]:
    return [str(hit.record.content) for hit in memory.recall(question, k=k)]


@pytest.mark.parametrize(
    "question",
    [
        "What did Tobias say?",
        "Tell me about Tobias",
        "Tobias",
        "messages from Tobias",
        "What do you know about Tobias?",
        "Hvad sagde Tobias?",
        "Was hat Tobias gesagt?",
        "¿Qué dijo Tobias?",
        "Mitä Tobias sanoi?",
        "Qu'est-ce que Tobias a dit ?",
        "Mit mondott Tobias?",
        "Che cosa ha detto Tobias?",
        "Wat heeft Tobias gezegd?",
        "Hva sa Tobias?",
        "O que disse Tobias?",
        "Ce a spus Tobias?",
        "Что сказал Tobias?",
        "Vad sa Tobias?",
        "Tobias ne dedi?",
        "Tobias说了什么？",
    ],
)
def test_what_a_person_said_comes_first_and_then_what_was_said_about_them(question: str, memory: Memory) -> None:
    assert texts(memory, question) == ["We need a chimney cap.", "I called the plumber.", "Tobias is a good cook."]


def test_a_misspelt_name_admits_its_speaker(memory: Memory) -> None:
    assert texts(memory, "What did Tobais mention?", 2) == ["We need a chimney cap.", "I called the plumber."]


def test_the_share_of_the_speaker_is_explained_and_the_shares_are_the_score(memory: Memory) -> None:
    hits = memory.recall("What did Tobias say?", k=3)
    assert [round(hit.why.shares.get("speaker", 0.0), 9) for hit in hits] == [2.0, 2.0, 0.0]
    for hit in hits:
        assert hit.score == pytest.approx(sum(hit.why.shares.values()))


def test_a_question_about_something_that_a_person_said_is_about_that(memory: Memory) -> None:
    hits = memory.recall("What did Tobias say about the plumber?", k=1)
    assert hits[0].record.content == "I called the plumber."
    assert "speaker" not in hits[0].why.shares
    assert [word.word for word in hits[0].why.words] == ["plumber"]
    assert texts(memory, "Who said the boiler is old?")[0] == "My sister said the boiler is old."


def test_a_named_speaker_admits_their_turns_if_nothing_else_is_left(memory: Memory) -> None:
    found = texts(memory, "Where is Tobias?", 5)
    assert found[0] == "Tobias is a good cook."  # about him
    assert {"We need a chimney cap.", "I called the plumber."} <= set(found)


def test_no_turn_outside_of_the_filter_or_the_scope_is_a_hit(memory: Memory) -> None:
    assert memory.recall("What did Tobias say?", where=f.speaker("Mara")).hits[0].record.speaker == "Mara"
    assert all(hit.record.speaker == "Mara" for hit in memory.recall("What did Tobias say?", where=f.speaker("Mara")))
    assert memory.scoped(user="bob").recall("What did Tobias say?").hits == ()


def test_the_newest_turns_come_first_and_a_date_decides() -> None:
    with recollect.open(":memory:") as memory:
        for day in range(1, 29):
            memory.remember(
                f"note {day}",
                speaker="Jonas",
                kind="conversation",
                conversation="c",
                time=datetime(2026, 2, day, 9, tzinfo=UTC),
            )
        assert texts(memory, "What did Jonas say?", 2) == ["note 28", "note 27"]
        assert texts(memory, "What did Jonas say on 2026-02-10?", 1) == ["note 10"]


def test_two_speakers_of_one_name_admit_no_one() -> None:
    with recollect.open(":memory:") as memory:
        for speaker in ("Ana Ruiz", "Ana Costa"):
            memory.remember("I like tea", speaker=speaker, kind="conversation", conversation="c")
        assert memory.recall("What did Ana say?").hits == ()
        assert [hit.record.speaker for hit in memory.recall("What did Costa say?")] == ["Ana Costa"]


def test_the_name_of_a_speaker_in_a_script_without_spaces() -> None:
    with recollect.open(":memory:") as memory:
        for speaker, text in (("小明", "我明天去北京。"), ("小红", "我喜欢喝茶。"), ("小红", "小明很高。")):
            memory.remember(text, speaker=speaker, kind="conversation", conversation="c")
        assert texts(memory, "小明说了什么？", 2) == ["我明天去北京。", "小明很高。"]
        assert texts(memory, "关于小红你知道什么？", 1) == ["小明很高。"]


@pytest.fixture
def assisted() -> Iterator[Memory]:
    with recollect.open(":memory:") as memory:
        memory.add_messages(
            [
                {"role": "user", "content": "Can you recommend a bakery near the office?"},
                {"role": "assistant", "content": "Try Kornblume on Market Street."},
                {"role": "user", "content": "And when do they open?"},
                {"role": "assistant", "content": "They open at 6:30."},
                {"role": "user", "content": "I would recommend the new library to everyone."},
            ]
        )
        yield memory


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What did you recommend?", "Try Kornblume on Market Street."),
        ("Which bakery did you recommend?", "Try Kornblume on Market Street."),
        ("What did you say about when they open?", "They open at 6:30."),
        ("When did you tell me they open?", "They open at 6:30."),
        ("Was hast du empfohlen?", "They open at 6:30."),  # the newest: no word is shared
        ("¿Qué recomendaste?", "They open at 6:30."),
    ],
)
def test_what_the_assistant_said_is_found(question: str, answer: str, assisted: Memory) -> None:
    assert texts(assisted, question, 1) == [answer]


def test_what_i_said_are_the_turns_of_the_user(assisted: Memory) -> None:
    assert {hit.record.role for hit in assisted.recall("What did I say?", k=3)} == {"user"}


def test_what_the_assistant_recommended_is_not_just_its_newest_turn() -> None:
    with recollect.open(":memory:") as memory:
        messages = [
            {"role": "user", "content": "Which running shoes do you recommend?"},
            {"role": "assistant", "content": "The Brooks Ghost, size 44."},
        ]
        for number in range(10):
            messages += [
                {"role": "user", "content": f"Play song {number}"},
                {"role": "assistant", "content": "Playing."},
            ]
        memory.add_messages(messages)
        first, second = memory.recall("What did you recommend?", k=2)
        assert first.record.content == "The Brooks Ghost, size 44."
        assert second.confidence < 0.9


def test_what_i_said_about_a_person_is_not_what_they_said() -> None:
    with recollect.open(":memory:") as memory:
        for speaker, text in (("Henrik", "Lunch at noon?"), ("Petra", "Henrik owes me twenty euros.")):
            memory.remember(text, speaker=speaker, kind="conversation", conversation="c")
        assert texts(memory, "What did I say about Henrik?", 1) == ["Henrik owes me twenty euros."]
        assert texts(memory, "What did Henrik say?", 1) == ["Lunch at noon?"]


def test_a_new_request_is_no_question_about_the_assistant(assisted: Memory) -> None:
    assert not frame_of("can you recommend a bakery".split(), "", set(), ["en"]).assistant
    assert not frame_of("could you tell me about my trip".split(), "", set(), ["en"]).assistant
    assert texts(assisted, "Can you recommend a library?", 1) == ["I would recommend the new library to everyone."]


def test_every_language_that_is_detected_has_frames() -> None:
    for listed in (_FRAMES, _DID, _YOU):
        assert _by_language(listed).keys() == set(CODES)


def test_a_long_question_without_spaces_is_read_in_linear_time(memory: Memory) -> None:
    """It has a word that is no part of a frame, and many ways to divide the rest would be tried."""
    assert memory.recall("話し" * 2000 + "山").hits == ()
