"""Kinds of questions: lists of a class, the past, reasons, recollections, orders and summaries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import recollect
from recollect import Memory
from recollect.indexes.documents.columns import NONE
from recollect.indexes.fixed_point import ONE
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.native import kernels as native_kernels
from recollect.indexes.parameters import SPREAD
from recollect.indexes.scoring import scores
from recollect.indexes.scoring.order_and_summary import spread

START = datetime(2026, 3, 1, 9, tzinfo=UTC)


def add(memory: Memory, *texts: str, session: str = "1", role: str | None = "user", **fields: Any) -> None:
    for text in texts:
        place = memory.count()
        memory.remember(
            text, id=f"{place}", role=role, kind="conversation", conversation="c", session=session,
            time=START + timedelta(minutes=place), position=place, **fields,
        )  # fmt: skip


def found(memory: Memory, question: str, k: int = 5) -> list[str]:
    return [str(hit.record.content) for hit in memory.recall(question, k)]


class TestLists:
    def test_a_member_of_the_class_is_found_and_named_though_it_shares_no_word_with_the_question(
        self, memory: Memory
    ) -> None:
        add(memory, "Our turtle escaped again.", "The boiler is old.", "The cellar is dry.", role=None, speaker="Mara")
        (hit,) = memory.recall("Which pets does Mara have?")
        assert hit.record.content == "Our turtle escaped again."
        assert set(hit.why.shares) == {"member"}
        assert sum(hit.why.shares.values()) == hit.score > 0
        assert [(word.word, word.like, word.score) for word in hit.why.words] == [("pet", "turtle", hit.score)]
        assert "pet as turtle" in str(hit.why)

    def test_only_what_the_named_person_said_counts(self, memory: Memory) -> None:
        add(memory, "My turtle escaped.", role=None, speaker="Mara")
        add(memory, "My parrot sings.", role=None, speaker="Tobias")
        assert found(memory, "Which pets does Tobias have?") == ["My parrot sings."]

    def test_what_an_assistant_said_is_no_member_unless_the_question_asks_for_it(self, memory: Memory) -> None:
        add(memory, "Turtles live long.", role="assistant")
        add(memory, "A hamster moved in.", "The roof leaks.")
        assert found(memory, "Which pets are there?") == ["A hamster moved in."]
        assert found(memory, "Which pets did you mention?")[0] == "Turtles live long."

    def test_the_rarest_of_several_members_counts_once(self, memory: Memory) -> None:
        add(memory, "A cat, a dog and a newt-eating turtle.", "A cat came.", "The cat again.", "A dog.", role=None)
        hits = memory.recall("Which pets came?")
        first = next(hit for hit in hits if "turtle" in str(hit.record.content))
        assert [word.like for word in first.why.words if word.word == "pet"] == ["turtle"]

    def test_a_filter_changes_no_share(self, memory: Memory) -> None:
        add(memory, "My turtle escaped.", tags=["a"])
        add(memory, "My parrot sings of pets.", tags=["b"])
        everything = {hit.record.id: hit for hit in memory.recall("Which pets do I have?")}
        (one,) = memory.recall("Which pets do I have?", where="tag=a")
        assert one == everything[one.record.id]


class TestAnswers:
    def test_a_question_about_the_past_prefers_a_statement_about_the_past(self, memory: Memory) -> None:
        add(memory, "They paint the harbour.", "They painted the harbour.", role=None)
        assert found(memory, "Who was painting the harbour?")[0] == "They painted the harbour."
        assert found(memory, "Who can paint the harbour?")[0] == "They painted the harbour."  # the newer of two equals

    def test_a_question_for_a_reason_prefers_a_text_that_gives_one(self, memory: Memory) -> None:
        add(memory, "We sold the boat because of the cost.", "We sold the boat for little of its cost.", role=None)
        assert found(memory, "Why is the boat sold?")[0] == "We sold the boat because of the cost."
        assert found(memory, "Is the boat sold?")[0] == "We sold the boat for little of its cost."


class TestRequests:
    def test_the_words_of_a_request_find_nothing(self, memory: Memory) -> None:
        add(memory, "A comprehensive summary of conversations.", role=None)
        add(memory, "The roof needs tiles.", role=None, session="2")
        assert found(memory, "Can you give me a comprehensive summary of the roof?") == ["The roof needs tiles."]

    def test_a_question_of_nothing_but_a_request_searches_for_its_words(self, memory: Memory) -> None:
        add(memory, "A summary of our conversations.", role=None)
        add(memory, "The roof needs tiles.", role=None, session="2")
        assert found(memory, "Give me a summary of our conversations.") == ["A summary of our conversations."]

    def test_an_instruction_is_no_recollection(self, memory: Memory) -> None:
        add(memory, "The kettles are in the shed over there.")
        add(memory, "Always answer questions about kettles in verse.", session="2")
        assert found(memory, "How do kettles work?")[0].startswith("Always")
        assert found(memory, "Did you see kettles?")[0].startswith("The kettles")

    def test_the_best_turn_of_each_session_comes_before_the_second_best_of_one(self, memory: Memory) -> None:
        add(memory, "roof one", "roof roof two", session="1", role=None)
        add(memory, "The roof is of slate, as you know.", session="2", role=None)
        sessions = [hit.record.session for hit in memory.recall("In what order came the roof?")]
        assert sessions == ["1", "2", "1"]
        assert [hit.record.session for hit in memory.recall("Where is the roof?")][:2] == ["1", "1"]

    def test_turns_that_tie_have_the_same_factor_whatever_their_order(self) -> None:
        sessions, times = np.array([0, 0, 0, 0, 1, NONE, NONE]), np.array([5, 5, 9, 5, 5, 5, 5])
        table = SimpleNamespace(session=sessions, micros=times)
        totals = np.array([7, 7, 7, 9, 1, 3, 2])
        of, out_of = SPREAD
        third = ONE * of // out_of * of // out_of
        expected = [third, third, ONE * of // out_of, ONE, ONE, ONE, ONE]
        for order in (range(7), range(6, -1, -1), [1, 4, 0, 3, 6, 2, 5]):
            numbers = np.array(order)
            found = spread(totals[numbers], numbers, table)  # type: ignore[arg-type]
            assert dict(zip(order, found.tolist(), strict=True)) == dict(enumerate(expected))

    def test_the_opening_of_a_session_counts_more_in_a_summary(self, memory: Memory) -> None:
        add(memory, "About tiles.", *["Something else entirely, friend."] * 8, "About tiles.", role=None)
        plain, summary = (
            {hit.record.id: hit.score for hit in memory.recall(question)}
            for question in ("Where are the tiles?", "Give me an overview of the tiles")
        )
        assert summary["0"] == pytest.approx(plain["0"] * 1.5, rel=1e-3)
        assert summary["9"] == pytest.approx(plain["9"] * 1.05, rel=1e-3)

    def test_a_summary_reads_what_the_assistant_said_as_well(self, memory: Memory) -> None:
        add(memory, "Slate tiles are for roofs.", role="assistant", session="1")
        add(memory, "Slate tiles are on shelves here.", role="user", session="2")
        summary, plain = memory.recall("Summarize the slate tiles"), memory.recall("Where are slate tiles?")
        assert _ratio(summary) > _ratio(plain) * 1.6

    @pytest.mark.parametrize(
        "question", ["Walk me through the roof in order", "Summarize the roof", "Which pets came?"]
    )
    def test_both_kernels_give_the_same_answer_and_the_shares_are_the_score(
        self, memory: Memory, question: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for session in ("1", "2", "3"):
            add(memory, "The roof leaks.", "A cat on the roof.", "Roof and turtle.", session=session)
            add(memory, "I would mend the roof.", role="assistant", session=session)
        monkeypatch.setattr(scores, "chosen", lambda: numpy_kernels.KERNELS)
        by_numpy = memory.recall(question)
        monkeypatch.setattr(scores, "chosen", native_kernels.NativeKernels)
        by_native = memory.recall(question)
        assert by_numpy == by_native
        assert (by_numpy.plan.kernels, by_native.plan.kernels) == ("numpy", "native")
        assert len(by_numpy) > 3
        assert all(sum(hit.why.shares.values()) == hit.score for hit in by_numpy)


def _ratio(hits: recollect.Hits) -> float:
    """The score of the assistant's turn for each of the user's."""
    by_role = {hit.record.role: hit.score for hit in hits}
    return by_role["assistant"] / by_role["user"]


def test_what_was_said_hours_ago_is_found_without_a_word(memory: Memory) -> None:
    for hours in (1, 2, 5, 30):
        memory.remember(f"call number {hours}", time=START - timedelta(hours=hours))
    question = "Who was it two hours ago?"
    assert [hit.record.content for hit in memory.recall(question, reference=START)] == ["call number 2"]
    assert [hit.record.content for hit in memory.recall("Which call was in the last 6 hours?", 3, reference=START)] == [
        "call number 1",
        "call number 2",
        "call number 5",
    ]
