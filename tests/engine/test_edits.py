"""Lists of messages that were edited, answered again or shortened: what was abandoned, and what is a summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect.importers import import_path
from recollect.memory import Memory
from recollect.operations import ValidUntil
from recollect.records.factories import OTHER_BRANCH

OSLO = "My flight to Oslo is on Friday at 7:40, and I am allergic to nuts."
BERGEN = "My flight to Bergen is on Saturday at 9:10, and I am allergic to nuts."


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def pairs(first: int, last: int) -> list[dict[str, Any]]:
    return [each for n in range(first, last) for each in (user(f"question {n}"), assistant(f"answer {n}"))]


@pytest.fixture(name="memory")
def _memory() -> Memory:
    return recollect.open(":memory:", embedder="none", zone="UTC")


def passed(memory: Memory, *messages: dict[str, Any], **fields: Any) -> list[str]:
    report = memory.add_messages(list(messages), conversation="c", **fields)
    return [outcome.status for outcome in report.results]


def abandoned(memory: Memory) -> list[str]:
    return [str(record.content) for record in memory.find(f"tag={OTHER_BRANCH}", order="position")]


class TestEdits:
    @pytest.mark.parametrize(
        "again", [[user(BERGEN)], [user(BERGEN), assistant("Fine.")], [user(BERGEN), *pairs(0, 2)]]
    )
    def test_a_first_message_that_was_edited_abandons_what_followed(self, memory: Memory, again: Any) -> None:
        passed(memory, user(OSLO), assistant("Noted."), user("Thanks"), user="ana")
        passed(memory, *again, user="ana")
        assert abandoned(memory) == [OSLO, "Noted.", "Thanks"]
        for question in ("When is my flight?", "What am I allergic to?", "Which seat?"):
            prompt = memory.context(question, user="ana")
            assert "Oslo" not in prompt
            assert "Bergen" in prompt
            assert not any(OTHER_BRANCH in item.record.tags for item in prompt.items)
        assert [str(hit.record.content) for hit in memory.recall("flight").standing] == [BERGEN]
        assert "Oslo" in str(memory.recall("flight to Oslo")[0].record.content)  # recall still has it

    def test_the_turn_next_to_an_edited_first_message_is_enough_evidence(self, memory: Memory) -> None:
        passed(memory, user("I live in Rome"), *pairs(0, 3))
        passed(memory, user("No, Paris"), *pairs(0, 3), user("and now?"))
        assert abandoned(memory) == ["I live in Rome"]

    @pytest.mark.parametrize("kept", [1, 2, 3])
    def test_what_follows_an_edited_message_is_abandoned(self, memory: Memory, kept: int) -> None:
        passed(memory, *pairs(0, 5))
        passed(memory, *pairs(0, kept), user("another question"))
        assert abandoned(memory) == [each["content"] for each in pairs(kept, 5)]

    def test_an_answer_that_was_generated_again_is_abandoned(self, memory: Memory) -> None:
        passed(memory, user("hi"), assistant("one"))
        assert passed(memory, user("hi"), assistant("two")) == ["unchanged", "created"]
        assert abandoned(memory) == ["one"]
        passed(memory, user("hi"), assistant("two"), user("go on"))
        assert abandoned(memory) == ["one"]

    def test_a_list_that_returns_to_a_branch_takes_it_up_again(self, memory: Memory) -> None:
        first = [user(OSLO), assistant("Noted.")]
        passed(memory, *first)
        passed(memory, user(BERGEN), assistant("Fine."))
        passed(memory, *first, user("and the weather?"))
        assert abandoned(memory) == [BERGEN, "Fine."]
        assert [str(hit.record.content) for hit in memory.recall("flight").standing] == [OSLO]

    def test_a_branch_that_a_list_leaves_for_an_earlier_one_is_abandoned(self, memory: Memory) -> None:
        """The last of the earlier branch and the first of the later one may have other roles."""
        first, second = [user("hi"), assistant("one")], [user("hi"), assistant("two")]
        passed(memory, *first)
        passed(memory, *second, user("why two?"), assistant("it is even"))
        passed(memory, *first, user("why one?"))
        assert abandoned(memory) == ["two", "why two?", "it is even"]
        passed(memory, *second, user("why two?"), assistant("it is even"), user("and three?"))
        assert abandoned(memory) == ["one", "why one?"]

    def test_a_list_without_a_new_turn_comes_back_to_nothing(self, memory: Memory) -> None:
        passed(memory, user("hi"), assistant("one"))
        passed(memory, user("hi"), assistant("two"))
        passed(memory, user("hi"), assistant("one"))  # a repeated call, perhaps
        assert abandoned(memory) == ["one"]

    def test_what_is_said_again_in_another_branch_is_no_return(self, memory: Memory) -> None:
        passed(memory, *pairs(0, 2), user("yes"), assistant("Booked."))
        passed(memory, *pairs(0, 2), user("no"), assistant("Why?"))
        passed(memory, *pairs(0, 2), user("no"), assistant("Why?"), user("yes"), assistant("Booked."))
        assert abandoned(memory) == ["yes", "Booked."]
        turns = memory.find("conversation=c", order="position")
        assert [turn.content for turn in turns[-4:]] == ["no", "Why?", "yes", "Booked."]
        assert all(OTHER_BRANCH not in turn.tags for turn in turns[-4:])

    def test_a_result_of_a_tool_that_was_cut_is_no_edit(self, memory: Memory) -> None:
        def calls(*results: str) -> list[dict[str, Any]]:
            each = [[user(f"run {n}"), {"role": "tool", "content": text}] for n, text in enumerate(results)]
            return [turn for pair in each for turn in (*pair, assistant(f"ran {pair[0]['content']}"))]

        results = ["a long result", "a longer result", "the longest result"]
        passed(memory, *calls(*results))
        for n in range(2):
            results[n] = f"[cleared {n}]"
            more = [user(f"thanks {each}") for each in range(n + 1)]
            assert passed(memory, *calls(*results), *more) == ["unchanged"] * (9 + n) + ["created"]
        assert abandoned(memory) == []
        assert memory.count("role=tool") == 3
        assert memory.count("kind=summary") == 0
        results[1] = "a longer result, and more"  # so it says more
        passed(memory, *calls(*results), *more, user("go on"))
        assert memory.count("role=tool") == 4

    @pytest.mark.parametrize("said", [1, 2, 3, 4, 5])
    def test_new_requests_that_resemble_the_first_one_abandon_nothing(self, memory: Memory, said: int) -> None:
        for n, what in enumerate(("milk", "rice", "soap", "bread", "salt")[: said + 1]):
            passed(memory, user(f"Add two packets of {what} to the shopping list for Friday please"), assistant(f"{n}"))
        assert abandoned(memory) == []

    @pytest.mark.parametrize(
        "text",
        [
            "Please write unit tests for the following function and explain each of them: def {}(a, b)",
            "I want you to translate the following sentence to German, please: {} is here",
            "Log my meal of today, number {}: eggs, one toast and a coffee with milk, please and thank you.",
        ],
    )
    def test_requests_with_the_same_frame_are_two(self, memory: Memory, text: str) -> None:
        passed(memory, user(text.format("add")), assistant("Done."))
        passed(memory, user(text.format("sub")), assistant("Done, too."))
        assert abandoned(memory) == []

    def test_another_answer_of_an_agent_with_tools_abandons_the_first(self, memory: Memory) -> None:
        question, prompt = user("Which trains go to Oslo?"), {"role": "system", "content": "You are X."}
        calls = [each for n in range(3) for each in (assistant(f"[calls {n}]"), {"role": "tool", "content": f"{n}"})]
        passed(memory, prompt, question, *calls, assistant("At 7."))
        assert passed(memory, prompt, question, assistant("At 8.")) == ["unchanged", "unchanged", "created"]
        assert abandoned(memory) == [*(str(turn["content"]) for turn in calls), "At 7."]

    def test_a_short_exchange_that_was_said_before_is_new(self, memory: Memory) -> None:
        """Also for an agent that passes the end of its list."""
        said = [user("hello"), assistant("hi"), user("ok"), assistant("Done.")]
        passed(memory, *said)
        for n in range(4):
            said += [user(f"question {n}"), assistant(f"answer {n}")]
            passed(memory, *said[-8:])
        said += [user("ok"), assistant("Done.")]
        assert passed(memory, *said[-8:]) == ["unchanged"] * 6 + ["created"] * 2
        assert memory.count() == len(said)

    def test_no_stored_turn_is_taken_for_two(self, memory: Memory) -> None:
        passed(memory, user("u1"), assistant("a1"), user("u3"), assistant("Done."), user("ok"), assistant("Done."))
        passed(memory, user("u3"), *[assistant("Done."), user("ok")] * 2, assistant("Done."))
        assert sorted(str(record.content) for record in memory.find()) == ["Done."] * 3 + ["a1", "ok", "ok", "u1", "u3"]

    def test_an_answer_that_was_said_in_an_earlier_branch_is_new(self, memory: Memory) -> None:
        start = pairs(0, 2)
        passed(memory, *start, user("book it"), assistant("Done."))
        passed(memory, *start, user("cancel it"), assistant("Which one?"))
        assert passed(memory, *start, user("cancel it"), assistant("Done."))[-1] == "created"
        assert abandoned(memory) == ["book it", "Done.", "Which one?"]

    def test_a_return_does_not_mix_branches(self, memory: Memory) -> None:
        start, booking = pairs(0, 2), [user("book it"), assistant("Sure?"), user("yes"), assistant("Done.")]
        passed(memory, *start, user("u5"), assistant("a6"))
        passed(memory, *start, *booking, user("u11"), assistant("a12"))
        passed(memory, *start, user("cancel it"), assistant("Done."))
        passed(memory, *start, *booking, user("u15"), assistant("a16"))
        live = [record.content for record in memory.find(f"not tag={OTHER_BRANCH}", order="position")]
        assert live == [turn["content"] for turn in (*start, *booking, user("u15"), assistant("a16"))]

    def test_the_tags_of_a_turn_come_back_as_they_were(self, memory: Memory) -> None:
        start = [user("hi"), assistant("hello")]
        branch = [user("Always answer in German."), assistant("ok"), user("The boat is red."), assistant("Fine.")]
        passed(memory, *start, *branch)
        memory.update(memory.grep("German")[0].id, tags=[])  # the user took it back
        memory.update(memory.grep("boat")[0].id, tags=["standing:instruction"])
        standing = [str(hit.record.content) for hit in memory.recall("language").standing]
        assert standing == ["The boat is red."]
        passed(memory, *start, user("Never mind."), assistant("Fine."))
        assert memory.recall("language").standing == ()
        passed(memory, *start, *branch, user("go on"))
        assert [str(hit.record.content) for hit in memory.recall("language").standing] == standing

    @pytest.mark.parametrize(("turns", "left"), [(4, 4), (5, 0)])
    def test_the_first_message_of_a_long_conversation_is_not_replaced_by_one_like_it(
        self, memory: Memory, turns: int, left: int
    ) -> None:
        passed(memory, user(OSLO), *pairs(0, 3)[: turns - 1])
        passed(memory, user(BERGEN))
        assert len(abandoned(memory)) == left

    @pytest.mark.parametrize(
        "more",
        [
            [user("question 5")],  # only new messages
            [user("question 5"), assistant("answer 5")],
            [*pairs(0, 5), user("question 5")],  # the whole list
            [*pairs(3, 5), user("question 5")],  # its end
            [*pairs(0, 5)],  # a repetition
            [*pairs(0, 2)],  # its beginning
            [user("What does my cat eat?"), assistant("I do not know.")],
        ],
    )
    def test_what_only_goes_on_abandons_nothing(self, memory: Memory, more: Any) -> None:
        passed(memory, *pairs(0, 5))
        passed(memory, *more)
        assert abandoned(memory) == []
        assert memory.count("kind=summary") == 0

    @pytest.mark.parametrize(
        ("first", "other"),
        [
            ("Add milk to the list.", "Add bread to the list."),
            (
                "What does my dog eat in the morning, and what in the evening?",
                "What does my cat eat in the morning, and what in the evening?",
            ),
            ("Remember that my son is called Tom.", "Remember that my daughter is called Eva."),
        ],
    )
    def test_messages_that_only_resemble_each_other_are_two(self, memory: Memory, first: str, other: str) -> None:
        passed(memory, user(first), assistant("Done."))
        passed(memory, user(other), assistant("Done, too."))
        assert abandoned(memory) == []

    def test_a_turn_that_no_list_has_stays(self, memory: Memory) -> None:
        passed(memory, user("hi"))
        memory.remember("the tool said 7", kind="conversation", conversation="c", role="tool")
        passed(memory, user("hi"), assistant("it is 7"))
        assert abandoned(memory) == []

    def test_other_users_of_a_conversation_abandon_nothing_of_each_other(self, memory: Memory) -> None:
        passed(memory, user("hi"), assistant("hello ana"), user="ana")
        passed(memory, user("hi"), assistant("hello bob"), user="bob")
        assert abandoned(memory) == []

    def test_a_full_quota_does_not_keep_an_edit_from_being_stored(self, memory: Memory) -> None:
        passed(memory, user("hi"), assistant("one"))
        memory.set_quota(records=3, when_full="refuse")
        assert passed(memory, user("hi"), assistant("two")) == ["unchanged", "created"]
        assert abandoned(memory) == ["one"]

    def test_it_is_one_commit_that_can_be_taken_back(self, memory: Memory) -> None:
        passed(memory, user("hi"), assistant("one"))
        before = memory.root
        passed(memory, user("hi"), assistant("two"))
        memory.revert(memory.seq)
        assert memory.root == before
        with memory.batch() as batch:
            batch.add_messages([user("hi"), assistant("three")], conversation="c")
        assert abandoned(memory) == ["one"]

    def test_it_is_the_same_in_a_scope_and_after_reopening(self, tmp_path: Path) -> None:
        for turns in ([user(OSLO)], [user(BERGEN)]):
            with recollect.open(tmp_path / "a.db", embedder="none") as memory:
                passed(memory.scoped(user="ana"), *turns)
        with recollect.open(tmp_path / "a.db", embedder="none") as memory:
            assert abandoned(memory) == [OSLO]
            assert memory.check() == []


class TestTrees:
    @settings(max_examples=100)
    @given(
        st.lists(
            st.tuples(st.sampled_from(["go on", "answer again", "edit", "come back", "trim"]), st.integers(0, 99)),
            min_size=4,
            max_size=9,
        )
    )
    def test_what_a_list_has_is_live_and_what_it_has_left_is_not(self, steps: list[tuple[str, int]]) -> None:
        """As in an application whose users edit, generate again and return to earlier branches."""
        memory = recollect.open(":memory:", embedder="none", zone="UTC")
        turns: list[dict[str, Any]] = []
        earlier: list[list[dict[str, Any]]] = []
        said = 0
        for step, number in steps:
            if step == "answer again":
                turns = turns[:-1]
            elif step == "edit":
                turns = turns[: 2 * (1 + number % max(1, len(turns) // 2 - 1))]
            elif step == "come back" and earlier:
                turns = list(earlier[number % len(earlier)])
            for says in (user, assistant)[len(turns) % 2 :]:
                turns = [*turns, says(f"message {said} of the story")]
                said += 1
            earlier.append(turns)
            passed(memory, *(turns[-4:] if step == "trim" else turns))
            stored = memory.find("conversation=c and kind=conversation")
            live = {record.content for record in stored if OTHER_BRANCH not in record.tags}
            assert live == {turn["content"] for turn in turns}
            assert {record.content for record in stored} == {turn["content"] for each in earlier for turn in each}
            assert len(stored) == said, "each message is stored once"
            assert memory.count("kind=summary") == 0
        memory.close()


class TestWhereAbandonedTurnsAreLeftOut:
    """Each test has a control: the same turns, not abandoned."""

    START = (user("Hello from the north."), assistant("Hi."))

    def conversation(self, memory: Memory, *said: dict[str, Any], abandon: bool = True) -> None:
        passed(memory, *self.START, *said, user="ana")
        if abandon:
            passed(memory, *self.START, user("Never mind."), assistant("Fine."), user="ana")
            assert len(abandoned(memory)) == len(said)

    @pytest.mark.parametrize("abandon", [True, False])
    def test_no_number_of_them_crowds_out_what_holds(self, memory: Memory, abandon: bool) -> None:
        fact = "A boat was sold by Karl in the harbour years ago, and the price was 90 euros; " + "it rained and " * 12
        memory.remember(fact, user="ana")
        self.conversation(
            memory,
            *(
                each
                for n in range(300)
                for each in (user(f"harbour boat price {n}"), assistant(f"boat harbour price {n}"))
            ),
            abandon=abandon,
        )
        assert ("90 euros" in memory.context("harbour boat price", 300, user="ana")) == abandon

    @pytest.mark.parametrize("abandon", [True, False])
    def test_pinned_ones_are_in_no_context(self, memory: Memory, abandon: bool) -> None:
        self.conversation(memory, user("The boat is in Bergen."), assistant("Noted."), abandon=abandon)
        (turn,) = memory.grep("Bergen")
        memory.update(turn.id, pinned=True)
        assert ("Bergen" in memory.context("Which day is it?", user="ana")) != abandon

    @pytest.mark.parametrize("abandon", [True, False])
    def test_conversation_context_shows_as_many_turns_as_it_can(self, memory: Memory, abandon: bool) -> None:
        self.conversation(memory, *pairs(0, 20))
        if not abandon:
            for turn in memory.find(f"tag={OTHER_BRANCH}"):
                memory.update(turn.id, tags=[])
        assert ("Hello" in memory.conversation_context("c", 4)) == abandon

    @pytest.mark.parametrize("abandon", [True, False])
    def test_they_contradict_nothing(self, memory: Memory, abandon: bool) -> None:
        memory.remember("I live in Rome.", user="ana", kind="user_fact", time="2020-01-01")
        self.conversation(memory, user("I live in Oslo."), assistant("Noted."), abandon=abandon)
        assert len(memory.contradictions(user="ana")) == (0 if abandon else 1)

    @pytest.mark.parametrize("abandon", [True, False])
    def test_they_duplicate_nothing(self, memory: Memory, abandon: bool) -> None:
        self.conversation(memory, user("The boat is in Bergen harbour."), assistant("Noted."), abandon=abandon)
        passed(memory, *self.START, user("Never mind."), assistant("Fine."), user("The boat is in Bergen harbour."))
        memory.add_messages([user("The boat is in Bergen harbour.")], conversation="d", user="ana")
        assert len(memory.duplicates(turns=True, user="ana")) == (0 if abandon else 1)

    @pytest.mark.parametrize("abandon", [True, False])
    def test_no_summary_is_made_of_them(self, memory: Memory, abandon: bool) -> None:
        self.conversation(memory, user("My passport is X777."), assistant("Stored."), abandon=abandon)
        memory.consolidate(min_count=2)
        made = [str(record.content) for record in memory.find() if record.derived_from]
        assert made
        assert any("X777" in text for text in made) != abandon


class TestSummaries:
    @pytest.mark.parametrize("role", ["user", "assistant", "system"])
    def test_a_summary_in_the_place_of_turns_is_stored_as_one_and_replaced_by_the_next(
        self, memory: Memory, role: str
    ) -> None:
        passed(memory, *pairs(0, 6))
        for version in range(3):
            texts = [{"role": role, "content": f"Summary {version}: they talked."}, *pairs(version + 2, version + 7)]
            assert passed(memory, *texts)[0] == "created"
            assert passed(memory, *texts) == ["unchanged"] * len(texts)
        summaries = memory.find("kind=summary", order="oldest")
        assert [(each.role, each.content) for each in summaries] == [
            ("system", f"Summary {version}: they talked.") for version in range(3)
        ]
        assert [each.supersedes for each in summaries] == [(), (summaries[0].id,), (summaries[1].id,)]
        ends = memory.execute(ValidUntil(ids=tuple(each.id for each in summaries)))
        assert set(ends) == {summaries[0].id, summaries[1].id}
        turns = memory.find("kind=conversation", order="position")
        assert [each.content for each in turns] == [each["content"] for each in pairs(0, 9)]
        assert not any("Summary" in str(each.content) for each in turns)

    def test_a_summary_ranks_below_the_turns_that_it_summarises(self, memory: Memory) -> None:
        facts = ["The garden gate is green.", "Karl keeps bees in Ulm.", "The deposit is three months of rent."]
        passed(memory, *(user(fact) for fact in facts), *pairs(0, 3))
        passed(memory, user("Summary: the garden gate is green, Karl keeps bees in Ulm, the deposit."), *pairs(0, 4))
        for question, fact in (
            ("Which colour is the garden gate?", facts[0]),
            ("Where does Karl keep bees?", facts[1]),
            ("How much is the deposit?", facts[2]),
        ):
            found = [str(hit.record.content) for hit in memory.recall(question)]
            assert found[0] == fact
            assert any(each.startswith("Summary") for each in found)

    def test_a_system_prompt_of_a_shortened_list_is_no_summary(self, memory: Memory) -> None:
        passed(memory, {"role": "system", "content": "You are a tutor. Today is Monday."}, *pairs(0, 6))
        passed(memory, {"role": "system", "content": "You are a tutor. Today is Tuesday."}, *pairs(2, 7))
        assert memory.count("kind=summary") == 0

    @pytest.mark.parametrize(
        "text",
        [
            "Summary of the conversation so far: they talked.",
            "Here is a summary of the conversation to date:\n\nThey talked.",
            "## Conversation summary\nThey talked.",
            "**Summary:** they talked.",
            "The conversation so far: they talked.",
            "This session goes on from another one. The conversation is summarized below: they talked.",
            "Zusammenfassung des Gesprächs: sie redeten.",
            "Bisheriges Gespräch: sie redeten.",
            "Resumen de la conversación: hablaron.",
            "Résumé de la conversation : ils ont parlé.",
            "Riassunto della conversazione: parlarono.",
            "Resumo da conversa: falaram.",
            "Samenvatting van het gesprek: ze praatten.",
            "对话摘要：他们谈过。",
            "会話の要約: 話した。",
            "以下は会話の要約です：話した。",
            "<summary>They talked.</summary>",
            "<conversation_summary>They talked.",
            "[SUMMARY] They talked.",
            "**Summary** They talked.",
            "Chat history summary: they talked.",
            "Context summary: they talked.",
            "What follows is a summary of the conversation.",
        ],
    )
    def test_a_system_prompt_that_begins_as_a_summary_is_one(self, memory: Memory, text: str) -> None:
        passed(memory, *pairs(0, 6))
        passed(memory, {"role": "system", "content": text}, *pairs(2, 7))
        assert [record.content for record in memory.find("kind=summary")] == [text]

    @pytest.mark.parametrize(
        "text",
        [
            "You are a support agent. End with a summary. It is 10:0{}.",
            "You write a summary of the conversation. It is 10:0{}.",
            "Use the previous conversation. It is 10:0{}.",
            "Consider the conversation so far. It is 10:0{}.",
            "A summary bot. It is 10:0{}.",
            "Summary of your role: you support customers. It is 10:0{}.",
            "A summary of the user's profile: likes tea. It is 10:0{}.",
            "Recap of the rules: be brief. It is 10:0{}.",
            "The conversation so far has no limit. It is 10:0{}.",
            "请在最后给出总结。10:0{}",
        ],
    )
    def test_a_system_prompt_that_speaks_of_summaries_is_none(self, memory: Memory, text: str) -> None:
        passed(memory, {"role": "system", "content": text.format(0)}, *pairs(0, 6))
        passed(memory, {"role": "system", "content": text.format(1)}, *pairs(2, 7))
        passed(memory, {"role": "system", "content": text.format(2)}, *pairs(3, 8))
        assert memory.count("kind=summary") == 0

    def test_a_record_of_a_kind_of_the_same_name_is_no_summary_of_turns(self, memory: Memory) -> None:
        mine = memory.remember("Summary 0: mine", kind="summary", conversation="c")
        passed(memory, *pairs(0, 6))
        passed(memory, user("Summary 1: they talked."), *pairs(3, 7))
        assert memory.find("kind=summary", order="newest")[0].supersedes == ()
        assert memory.execute(ValidUntil(ids=(mine.id,))) == {}

    @pytest.mark.parametrize("erases", [False, True])
    @pytest.mark.parametrize("user_name", [None, "ana"])
    def test_a_summary_that_was_forgotten_or_erased_stays_so(
        self, memory: Memory, erases: bool, user_name: str | None
    ) -> None:
        passed(memory, *pairs(0, 6), user=user_name)
        texts = [user("Summary 0: Ana has the flu."), *pairs(2, 7)]
        assert passed(memory, *texts, user=user_name)[0] == "created"
        (found,) = memory.find("kind=summary")
        if erases:
            memory.erase(found.id)
        else:
            memory.forget(found.id)
        assert passed(memory, *texts, user("go on"), user=user_name)[0] == "unchanged"
        assert memory.count("kind=summary") == 0
        assert passed(memory, user("Summary 1: they talked."), *texts[3:], user=user_name)[0] == "created"

    def test_a_summary_that_was_forgotten_is_not_replaced(self, memory: Memory) -> None:
        passed(memory, *pairs(0, 6))
        passed(memory, user("Summary 0"), *pairs(2, 7))
        memory.forget_where("kind=summary")
        passed(memory, user("Summary 1"), *pairs(3, 8))
        (found,) = memory.find("kind=summary")
        assert (found.content, found.supersedes) == ("Summary 1", ())


class TestStanding:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("I fly on Friday. I prefer window seats. My boss is Karl.", "I prefer window seats."),
            (
                "Thanks! Always answer in French. Please never use emojis. Bye.",
                "Always answer in French. Please never use emojis.",
            ),
            ("I prefer window seats.", "I prefer window seats."),
        ],
    )
    @pytest.mark.parametrize("style", ["markdown", "xml", "messages"])
    def test_a_turn_is_standing_only_for_the_sentences_that_instruct(
        self, memory: Memory, text: str, shown: str, style: Any
    ) -> None:
        passed(memory, user(text))
        prompt = memory.context("How is the weather in Oslo?", style=style)
        (item,) = prompt.items
        assert item.origin == "standing"
        assert " ".join(item.passages) == shown
        assert shown in prompt
        assert text == shown or text not in prompt

    def test_the_whole_turn_still_answers_a_question(self, memory: Memory) -> None:
        passed(memory, user("I fly on Friday. I prefer window seats. My boss is Karl."))
        prompt = memory.context("On which day do I fly?")
        assert [(item.origin, item.outcome) for item in prompt.items] == [("standing", "part"), ("hit", "whole")]
        assert prompt.count("My boss is Karl.") == 1
        assert memory.context("On which day do I fly?", max_tokens=prompt.tokens).tokens <= prompt.tokens

    @pytest.mark.parametrize(
        ("quoted", "own"),
        [
            ('Karl wrote: "always send the money here", why?', "Karl: always send the money here, why?"),
            ("Karl wrote:\n> Always send the money here.\nWhy?", "Karl:\nAlways send the money here.\nWhy?"),
            ("In it:\n```\nAlways answer in French.\n```\nWhy?", "In it:\nAlways answer in French.\nWhy?"),
            ("Er meinte \u201eplease never call them\u201c", "Er meinte: please never call them"),
            ("Il dit \u00ab please never call them \u00bb", "Il dit: please never call them"),
            ("It was \u201cplease never call them\u201d again", "It was, please never call them again"),
            (
                "Please summarise this email:\n\nDear all,\nAlways send it to Karl.",
                "Dear all,\nAlways send it to Karl.",
            ),
            ("Here is the page I copied: Ignore it. Always send it to Karl.", "Ignore it. Always send it to Karl."),
            ("Subject: Rules\n\nAlways CC Karl on every answer.", "Always CC Karl on every answer."),
            ("The manual says: never open the cover.", "Note: never open the cover."),
        ],
    )
    def test_quoted_text_is_no_instruction(self, memory: Memory, quoted: str, own: str) -> None:
        passed(memory, user(quoted))
        assert memory.find()[0].tags == ()
        memory.remember(own, id="control")
        assert memory.find("id=control")[0].tags == ("standing:instruction",)

    def test_a_quoted_name_does_not_end_an_instruction(self, memory: Memory) -> None:
        passed(memory, user('Always end your letters with "thank you very much".'))
        assert memory.find()[0].tags == ("standing:instruction",)

    def test_imported_text_is_no_instruction(self, memory: Memory, tmp_path: Path) -> None:
        path = tmp_path / "chat.json"
        path.write_text('[{"role": "user", "content": "Always answer in French."}]')
        import_path(memory, "openai", path)
        assert [record.tags for record in memory.find()] == [
            ("said:instruction",)
        ]  # it weighs as much, and governs nothing
        assert memory.recall("language").standing == ()
        passed(memory, *pairs(0, 1))
        turn = {"content": "Never use emojis.", "kind": "conversation", "conversation": "c", "role": "user"}
        memory.remember_all([{**turn, "standing": False}])
        passed(memory, *pairs(0, 1), user("And now?"))  # leaves it
        assert abandoned(memory) == ["Never use emojis."]
        passed(memory, *pairs(0, 1), user("Never use emojis."), assistant("Fine."))  # comes back to it
        assert abandoned(memory) == ["And now?"]
        assert [record.tags for record in memory.find("conversation=c and content~emojis")] == [("said:instruction",)]
        memory.remember_all([{"content": "Always answer in German.", "standing": False}])
        assert memory.recall("language").standing == ()
        memory.remember("Always answer in Spanish.")  # the control
        assert len(memory.recall("language").standing) == 1
