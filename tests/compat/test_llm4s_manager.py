"""The manager of the LLM4S layer: what it records, and the text that a prompt gets."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compat.conftest import Open

from recollect import RecollectWarning
from recollect.compat.llm4s import (
    EntityId,
    Memory,
    MemoryFilter,
    MemoryId,
    MemoryManager,
    MemoryStats,
    MemoryStore,
    MemoryType,
)
from recollect.errors import InvalidArgumentError
from recollect.models.embedding.base import Supplied

ADA = EntityId("ada")


@pytest.fixture
def manager(store: MemoryStore) -> MemoryManager:
    return MemoryManager.with_store(store)


class TestRecording:
    def test_records_have_the_metadata_of_the_specification(self, manager: MemoryManager) -> None:
        turn = manager.record_message({"role": "user", "content": "hi"}, "c1")
        fact = manager.record_entity_fact(ADA, "Ada", "wrote a program", "person")
        person = manager.record_user_fact("prefers tea", "ana")
        piece = manager.record_knowledge("text", "a.md", {"chapter": "2"})
        task = manager.record_task("book", "12A", False)
        assert [memory.memory_type.name for memory in (turn, fact, person, piece, task)] == [
            *("conversation", "entity", "user_fact", "knowledge", "task")
        ]
        assert turn.metadata == {"role": "user", "conversation_id": "c1"}
        assert fact.metadata == {"entity_id": "ada", "entity_name": "Ada", "entity_type": "person"}
        assert person.metadata == {"user_id": "ana"}
        assert piece.metadata == {"source": "a.md", "chapter": "2"}
        assert (task.content, task.metadata) == ("Task: book\nOutcome: 12A", {"success": "false"})
        assert [manager.store.get(each.id) for each in (turn, fact, person, piece, task)] == [
            *(turn, fact, person, piece, task)
        ]

    def test_the_same_piece_with_other_metadata_is_a_warning_of_this_layer_to_the_caller(
        self, manager: MemoryManager
    ) -> None:
        first = manager.record_knowledge("same text", "tea.txt", {"page": "2"})
        with pytest.warns(RecollectWarning, match=r"kept its metadata: update\(\) of the store") as caught:
            assert manager.record_knowledge("same text", "tea.txt", {"page": "3"}) == first
        assert caught[0].filename == __file__

    def test_a_query_that_is_not_text_is_an_error_of_ours(self, manager: MemoryManager) -> None:
        calls: list[Any] = [manager.relevant_context, manager.store.search]
        for call in calls:
            with pytest.raises(InvalidArgumentError, match=r"query .*must be text"):
                call(None)

    @pytest.mark.in_process
    def test_what_is_recorded_is_found_by_its_metadata(self, manager: MemoryManager) -> None:
        task = manager.record_task("book", "12A", False)
        manager.record_task("pay", "done", True)
        assert manager.store.recall(MemoryFilter.by_metadata("success", "false")) == [task]

    def test_a_conversation_is_recorded_once(self, manager: MemoryManager) -> None:
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        assert [each.content for each in manager.record_conversation(messages, "c")] == ["hi", "hello"]
        messages.append({"role": "user", "content": "bye"})
        assert [each.content for each in manager.record_conversation(messages, "c")] == ["hi", "hello", "bye"]
        assert [each.content for each in manager.store.conversation("c")] == ["hi", "hello", "bye"]
        first, *_, last = manager.store.memory.find(order="position")
        assert (first.importance, last.importance) == (0.5, 0.5)
        assert last.metadata == {"role": "user", "conversation_id": "c"}
        assert manager.store.memory.seq == 2  # one commit for each call that stored something

    def test_a_message_may_repeat_an_earlier_one(self, manager: MemoryManager) -> None:
        for _ in range(2):
            manager.record_message({"role": "user", "content": "ok"}, "c")
        assert manager.store.count() == 2

    def test_a_task_that_is_done_twice_is_stored_twice(self, manager: MemoryManager) -> None:
        first, second = (manager.record_task("Run tests", "passed", True) for _ in range(2))
        assert manager.store.count(MemoryFilter.tasks()) == 2
        assert first.id != second.id
        assert first.timestamp is not None
        assert second.timestamp is not None
        assert first.timestamp <= second.timestamp
        assert manager.store.memory.find(order="oldest")[0].metadata["success"] is True

    @pytest.mark.parametrize("wrong", [("", "done", True), ("book", None, True), ("book", "done", "yes")])
    def test_a_task_without_a_text_or_an_outcome_is_refused(self, manager: MemoryManager, wrong: Any) -> None:
        with pytest.raises(InvalidArgumentError):
            manager.record_task(*wrong)

    def test_pieces_of_one_source_are_all_stored(self, manager: MemoryManager) -> None:
        for piece in ("one", "two", "one"):
            manager.record_knowledge(piece, "a.md")
        assert {each.content for each in manager.store.recall()} == {"one", "two"}

    def test_what_is_recorded_is_embedded(self, open_store: Open) -> None:
        texts = ("hi", "fact", "person", "piece", "Task: a\nOutcome: b")
        model = Supplied("own/1", 1, {text: [1.0] for text in texts})
        manager = MemoryManager(open_store(embedder=model))
        manager.record_message({"role": "user", "content": "hi"}, "c")
        manager.record_conversation([{"role": "user", "content": "hi"}], "d")
        manager.record_entity_fact(ADA, "Ada", "fact")
        manager.record_user_fact("person", "ana")
        manager.record_knowledge("piece", "a.md")
        assert manager.record_task("a", "b", True).embedding == (1.0,)
        assert manager.stats().embedded_count == manager.store.count() == 6
        with pytest.warns(RecollectWarning, match="1 of 1 memories have no vector"):
            manager.record_user_fact("another", "ana")


class TestText:
    def test_a_conversation_is_shown_oldest_first(self, manager: MemoryManager) -> None:
        assert manager.conversation_context("c") == ""
        for at in range(3):
            manager.record_message({"role": "user" if at % 2 == 0 else "assistant", "content": f"text {at}"}, "c")
        expected = "Previous conversation:\n[user]: text 0\n[assistant]: text 1\n[user]: text 2"
        assert manager.conversation_context("c") == expected
        assert manager.conversation_context("c", 1) == "Previous conversation:\n[user]: text 2"

    def test_facts_are_shown_newest_first(self, manager: MemoryManager) -> None:
        assert manager.entity_context(ADA) == manager.user_context("ana") == ""
        for fact in ("wrote a program", "lived in London"):
            manager.record_entity_fact(ADA, "Ada", fact)
            manager.record_user_fact(fact, "ana")
        assert manager.entity_context(ADA) == "Known facts about Ada:\n- lived in London\n- wrote a program"
        assert manager.user_context("ana") == "Known facts about the user:\n- lived in London\n- wrote a program"

    def test_facts_of_all_users_are_never_returned_together(self, manager: MemoryManager) -> None:
        manager.record_user_fact("prefers tea", "ana")
        manager.record_user_fact("prefers coffee", "bo")
        manager.record_user_fact("without a user")
        assert manager.user_context("bo") == "Known facts about the user:\n- prefers coffee"
        with pytest.raises(InvalidArgumentError):
            manager.user_context(None)  # type: ignore[arg-type]


class TestContext:
    def test_the_text_is_that_of_the_specification(self, manager: MemoryManager) -> None:
        for text in ("k2", "k1"):  # of equal scores, the newest comes first
            manager.record_knowledge(text, "a.md")
        manager.record_entity_fact(ADA, "Ada", "e1")
        found = manager.relevant_context("k1 k2 e1")
        assert found == "# Retrieved Context\n## Relevant Knowledge\n- k1\n- k2\n\n## Entity Information\n- e1"
        assert type(found) is str

    def test_the_sections_have_the_order_of_the_specification(self, manager: MemoryManager) -> None:
        manager.store.store(Memory(MemoryId("r"), "tea recipe", MemoryType("Recipe")))
        manager.record_task("brew", "tea", True)
        manager.record_message({"role": "user", "content": "tea message"}, "c")
        manager.record_user_fact("tea fact", "ana")
        manager.record_entity_fact(ADA, "Ada", "tea entity")
        manager.record_knowledge("tea knowledge", "a.md")
        headings = [line for line in manager.relevant_context("tea").splitlines() if line.startswith("## ")]
        assert headings[:5] == [
            "## Relevant Knowledge",
            "## Entity Information",
            "## User Preferences",
            "## Previous Context",
            "## Past Tasks",
        ]
        assert headings[5:] == ["## Recipe"]

    def test_a_custom_type_is_a_heading_as_it_was_written(self, manager: MemoryManager) -> None:
        for name, kind in (("a", "SpecialType"), ("b", "specialType"), ("c", "SpecialType"), ("d", "Zoo")):
            manager.store.store(Memory(MemoryId(name), f"tea {name}", MemoryType(kind)))
        lines = manager.relevant_context("tea").splitlines()
        assert [line for line in lines if line.startswith("## ")] == ["## SpecialType", "## specialType", "## Zoo"]
        assert sorted(lines[2 : lines.index("")]) == ["- tea a", "- tea c"]

    @pytest.mark.parametrize("query", ["", "  ", "coffee"])
    def test_nothing_found_is_an_empty_text(self, manager: MemoryManager, query: str) -> None:
        manager.record_knowledge("tea", "a.md")
        assert manager.relevant_context(query) == ""

    def test_a_filter_limits_it(self, manager: MemoryManager) -> None:
        manager.record_user_fact("tea of ana", "ana")
        manager.record_user_fact("tea of bo", "bo")
        found = manager.relevant_context("tea", filter=MemoryFilter.by_metadata("user_id", "bo"))
        assert "tea of bo" in found
        assert "ana" not in found

    def test_it_never_exceeds_the_budget_and_a_long_memory_hides_no_short_ones(self, manager: MemoryManager) -> None:
        manager.record_knowledge("tea " + "and more words on it " * 200, "long.md")
        for at in range(20):
            manager.record_knowledge(f"tea is drunk in town number {at}", "a.md")
        for budget in (10, 50, 200):
            found = manager.relevant_context("tea", budget)
            assert len(found.encode()) <= 4 * budget
            assert budget < 50 or "in town number" in found
            words = manager.relevant_context("tea", budget, tokenizer=lambda text: text.split())
            assert len(words.split()) <= budget


class TestStats:
    def test_an_empty_store_has_no_times(self, manager: MemoryManager) -> None:
        assert manager.stats() == MemoryStats()

    def test_counts_are_those_of_the_specification(self, manager: MemoryManager) -> None:
        first = manager.record_message({"role": "user", "content": "hi"}, "c")
        manager.record_message({"role": "user", "content": "hi"}, "d")
        manager.record_entity_fact(ADA, "Ada", "one")
        manager.record_entity_fact(ADA, "Ada", "two")
        last = manager.record_user_fact("fact", "ana")
        manager.store.store(last.with_embedding([1.0]))
        assert manager.stats() == MemoryStats(
            total_memories=5,
            by_type={MemoryType.CONVERSATION: 2, MemoryType.ENTITY: 2, MemoryType.USER_FACT: 1},
            entity_count=1,
            conversation_count=2,
            embedded_count=1,
            oldest_memory=first.timestamp,
            newest_memory=last.timestamp,
        )


class TestOpening:
    def test_a_manager_has_a_store_in_memory_by_default(self) -> None:
        with MemoryManager.empty() as manager:
            manager.record_user_fact("fact", "ana")
            assert manager.store.count() == 1

    @pytest.mark.parametrize("wrong", [{"store": "agent.db"}, {"config": "testing"}])
    def test_a_wrong_argument_is_refused(self, wrong: dict[str, str]) -> None:
        with pytest.raises(InvalidArgumentError):
            MemoryManager(**wrong)  # type: ignore[arg-type]
