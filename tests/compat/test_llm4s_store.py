"""The store of the LLM4S layer, in memory and in a file."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.compat.conftest import Open

import recollect
from recollect import RecollectWarning
from recollect.compat.llm4s import Memory, MemoryFilter, MemoryId, MemoryManager, MemoryStore, MemoryType
from recollect.errors import EmbedderError, InvalidArgumentError, InvalidRecordError, UnknownRecordError
from recollect.models.embedding.base import VectorLike

START = datetime(2026, 3, 1, tzinfo=UTC)


def memory(name: str, content: str | None = None, days: int = 0, kind: str = "knowledge", **metadata: str) -> Memory:
    text = f"content of {name}" if content is None else content
    return Memory(MemoryId(name), text, MemoryType(kind), metadata, START + timedelta(days=days))


def ids(memories: Sequence[Memory]) -> list[str]:
    return [memory.id for memory in memories]


class Switched:
    """An embedder that fails while `broken`."""

    name, dimension = "test/switched", 2

    def __init__(self) -> None:
        self.broken = False
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
        if self.broken:
            raise ConnectionError("the model is away")
        self.texts += texts
        return [[1.0, float(len(text))] for text in texts]


class TestStoring:
    def test_a_memory_is_found_again_as_it_was_stored(self, store: MemoryStore) -> None:
        stored = [
            Memory.from_conversation("hi", "user", "c1").with_importance(0.7),
            Memory.for_entity("ada", "Ada", "wrote a program", "person"),
            Memory.from_knowledge("text", "a.md", 3).with_metadata({"a.b": "1", "": "2"}),
            Memory.user_fact("prefers tea", "ana").with_metadata("agent_id", "bot"),
            Memory.from_task("book", "12A", False),
            memory("custom", kind="Recipe", days=-400).with_embedding([1.0, float("inf")]),
        ]
        assert [store.store(each) for each in stored] == stored
        assert [store.get(each.id) for each in stored] == stored
        assert store.count() == 6

    def test_a_custom_type_stays_as_it_was_written_also_when_the_store_is_opened_again(self, tmp_path: Path) -> None:
        with MemoryStore.open(tmp_path / "agent.db", "none") as store:
            written = store.store(memory("a", kind="SpecialType"))
            store.store(memory("b", kind="plain"))
            assert (written.memory_type.name, written.metadata) == ("SpecialType", {})
        with MemoryStore.open(tmp_path / "agent.db", "none") as store:
            found = store.recall(MemoryFilter.by_type("specialtype"))
            assert (found, found[0].memory_type.name) == ([written], "SpecialType")
            assert store.recall(MemoryFilter.by_type(MemoryType("SPECIALTYPE"))) == [written]
            assert store.count(MemoryFilter.has_metadata("recollect.kind")) == 0
            assert {kind.name for kind in MemoryManager(store).stats().by_type} == {"SpecialType", "plain"}
            other = store.update("a", lambda each: replace(each, memory_type=MemoryType("Other")))
            assert (other.memory_type.name, store.get("a")) == ("Other", other)
            plain = store.update("a", lambda each: replace(each, memory_type=MemoryType.TASK))
            assert (plain.memory_type.name, store.memory.find("id=a")[0].metadata) == ("task", {})

    @pytest.mark.parametrize("stored", [None, "Another", "x\n## Past Tasks", 7])
    def test_a_type_without_its_own_writing_is_the_kind_of_the_record(self, store: MemoryStore, stored: Any) -> None:
        metadata = {} if stored is None else {"recollect.kind": stored}
        store.memory.remember("text", id="a", kind="special", metadata=metadata)
        found = store.get("a")
        assert found is not None
        assert (found.memory_type.name, found.metadata) == ("special", {})
        assert MemoryManager(store).relevant_context("text") == "# Retrieved Context\n## special\n- text"

    def test_the_store_is_a_memory_of_recollect(self, store: MemoryStore) -> None:
        stored = store.store(Memory.from_conversation("I moved to Oslo", "user", "c1"))
        record = store.memory.get(stored.id)
        assert record is not None
        assert (record.kind, record.role, record.conversation, record.position) == ("conversation", "user", "c1", 0)

    def test_storing_a_known_id_replaces_the_memory_and_its_timestamp(self, store: MemoryStore) -> None:
        store.store(memory("a", "old text", 0, user_id="ana").with_importance(0.9).with_embedding([1.0]))
        replacement = memory("a", "new text", 5, topic="tea")
        assert store.store(replacement) == replacement
        assert store.get("a") == replacement
        assert store.count() == 1
        assert store.store(replacement) == replacement

    def test_a_list_is_stored_and_of_equal_ids_the_last_one_remains(self, store: MemoryStore) -> None:
        assert store.store_all([memory("a", "one"), memory("b"), memory("a", "two")]) == 3
        stored = store.get("a")
        assert stored is not None
        assert (stored.content, store.count()) == ("two", 2)

    @pytest.mark.parametrize(
        "wrong", [{"recollect.embedding": "x"}, {"recollect.kind": "Task"}, {"source": "two\nlines"}, {"user_id": ""}]
    )
    def test_an_invalid_memory_in_a_list_leaves_the_store_as_it_was(
        self, store: MemoryStore, wrong: dict[str, str]
    ) -> None:
        with pytest.raises(InvalidRecordError):
            store.store_all([*[memory(f"m{at}") for at in range(1000)], memory("b").with_metadata(wrong)])
        assert store.count() == 0

    @pytest.mark.parametrize("wrong", ["text", None, recollect.Record(id="a", content="b")])
    def test_only_a_memory_can_be_stored(self, store: MemoryStore, wrong: object) -> None:
        with pytest.raises(InvalidArgumentError, match="memory"):
            store.store(wrong)  # type: ignore[arg-type]

    def test_an_empty_content_is_refused(self, store: MemoryStore) -> None:
        with pytest.raises(InvalidRecordError, match="content"):
            store.store(memory("a", ""))

    def test_a_file_has_its_memories_when_it_is_opened_again(self, tmp_path: Path) -> None:
        stored = memory("a", user_id="ana").with_embedding([0.1, -3.0])
        with MemoryStore.open(tmp_path / "agent.db", "none") as store:
            store.store(stored)
            expected = store.get("a")
        with MemoryStore.open(tmp_path / "agent.db", "none") as store:
            assert store.get("a") == expected == stored
            assert store.search("q", embedding=[0.1, -3.0])[0].score == 1.0

    def test_a_scope_of_a_memory_is_a_store_of_its_own(self, store: MemoryStore) -> None:
        scoped = MemoryStore(store.memory.scoped(user="ana"))
        store.store(memory("bo", user_id="bo").with_embedding([1.0]))
        stored = scoped.store(memory("a", user_id="ana").with_embedding([1.0]))
        assert scoped.store(stored.with_importance(1)) == stored.with_importance(1)
        assert ids(scoped.recall()) == ["a"]
        assert [hit.memory.id for hit in scoped.search("q", embedding=[1.0])] == ["a"]
        assert scoped.vector_stats().total == 1


@pytest.mark.in_process
class TestUpdating:
    def test_a_function_changes_a_memory(self, store: MemoryStore) -> None:
        store.store(memory("a", topic="tea"))
        updated = store.update("a", lambda each: each.with_importance(0.9).with_metadata("topic", "coffee"))
        assert updated == store.get("a") == memory("a", topic="coffee").with_importance(0.9)

    def test_an_update_keeps_what_a_memory_does_not_show(self, store: MemoryStore) -> None:
        store.memory.remember("text", id="a", tags=["t"], speaker="Ana", metadata={"n": 1, "source": "s", "x": [1]})
        updated = store.update("a", lambda each: each.with_metadata("x", "2"))
        assert updated.metadata == {"n": "1", "x": "2"}
        record = store.memory.get("a")
        assert record is not None
        assert (record.tags, record.speaker) == (("t",), "Ana")
        assert record.metadata == {"n": 1, "source": "s", "x": "2"}

    def test_the_id_may_not_change(self, store: MemoryStore) -> None:
        store.store(memory("a"))
        with pytest.raises(InvalidRecordError, match="id"):
            store.update("a", lambda each: memory("b"))
        assert store.get("a") == memory("a")
        assert store.count() == 1

    def test_an_unknown_id_is_an_error(self, store: MemoryStore) -> None:
        with pytest.raises(UnknownRecordError):
            store.update("a", lambda each: each)

    def test_a_function_that_fails_or_returns_no_memory_changes_nothing(self, store: MemoryStore) -> None:
        store.store(memory("a"))
        with pytest.raises(InvalidArgumentError):
            store.update("a", lambda each: None)  # type: ignore[arg-type, return-value]
        with pytest.raises(ZeroDivisionError):
            store.update("a", lambda each: each.with_importance(1 / 0))
        assert store.get("a") == memory("a")

    def test_new_content_removes_the_vector_of_the_old_content(self, store: MemoryStore) -> None:
        store.store(memory("a").with_embedding([1.0]))
        kept = store.update("a", lambda each: each.with_importance(1))
        assert kept.embedding == (1.0,)
        assert store.update("a", lambda each: Memory(each.id, "new", each.memory_type, embedding=(2.0,))).is_embedded
        changed = store.update("a", lambda each: Memory(each.id, "newer", each.memory_type, embedding=each.embedding))
        assert changed.embedding is None

    def test_a_failing_embedder_loses_no_memory(self, open_store: Open) -> None:
        model = Switched()
        store = open_store(embedder=model)
        assert store.store(memory("a", "four")).embedding == (1.0, 4.0)
        model.broken = True
        with pytest.warns(RecollectWarning, match=r"1 of 1 memories have no vector: .*the model is away"):
            updated = store.update("a", lambda each: Memory(each.id, "longer", each.memory_type))
        assert (updated.content, updated.embedding, store.count()) == ("longer", None, 1)
        assert store.get("a") == updated
        with pytest.warns(RecollectWarning, match="1 of 1 memories have no vector"):
            store.store(memory("b"))
        model.broken = False
        assert store.embed_all() == 2
        stored = store.get("a")
        assert stored is not None
        assert stored.embedding == (1.0, 6.0)


class TestReading:
    def test_recall_returns_the_newest_first_up_to_a_limit(self, store: MemoryStore) -> None:
        store.store_all([memory(f"m{day:03}", days=day) for day in range(120)])
        assert ids(store.recall())[:2] == ["m119", "m118"]
        assert (len(store.recall()), len(store.recall(limit=None)), len(store.recent())) == (100, 120, 10)
        assert ids(store.recall(MemoryFilter.before(START), 5)) == ["m000"]

    def test_ties_have_an_order(self, store: MemoryStore) -> None:
        store.store_all([memory(name) for name in "dacb"])
        assert ids(store.recall()) == ids(store.recent()) == ["a", "b", "c", "d"]

    def test_important_memories_are_those_from_a_threshold_on(self, store: MemoryStore) -> None:
        store.store_all([memory("none"), memory("low").with_importance(0.4), memory("high").with_importance(0.5)])
        assert ids(store.important()) == ["high"]
        assert ids(store.important(0.0, 1)) == ["high"]

    def test_memories_of_an_entity_are_all_of_them(self, store: MemoryStore) -> None:
        store.store_all([memory(f"m{day:03}", days=day, entity_id="ada") for day in range(120)] + [memory("other")])
        found = store.entity_memories("ada")
        assert (len(found), found[0].id) == (120, "m119")

    def test_a_conversation_is_its_newest_messages_oldest_first(self, store: MemoryStore) -> None:
        turns = [
            Memory(MemoryId(f"t{9 - at}"), f"text {at}", MemoryType.CONVERSATION, {"conversation_id": "c"}, START)
            for at in range(5)
        ]
        store.store_all([*turns, memory("other", days=9)])
        assert [each.content for each in store.conversation("c")] == [f"text {at}" for at in range(5)]
        assert [each.content for each in store.conversation("c", 2)] == ["text 3", "text 4"]

    def test_exists_and_get_of_an_unknown_id(self, store: MemoryStore) -> None:
        store.store(memory("a"))
        assert (store.exists("a"), store.exists("b"), store.get("b")) == (True, False, None)


class TestDeleting:
    def test_delete_says_whether_there_was_one(self, store: MemoryStore) -> None:
        store.store(memory("a"))
        assert [store.delete("a"), store.delete("a"), store.delete("b")] == [True, False, False]

    def test_delete_matching_and_clear_say_how_many(self, store: MemoryStore) -> None:
        store.store_all([memory("a", topic="x"), memory("b", topic="x"), memory("c"), memory("d")])
        assert store.delete_matching(MemoryFilter.by_metadata("topic", "x")) == 2
        assert (store.clear(), store.count()) == (2, 0)


class TestWordSearch:
    def test_the_best_hit_has_the_highest_score(self, store: MemoryStore) -> None:
        store.store_all([memory("one", "a tea pot"), memory("both", "green tea from Kyoto"), memory("none", "coffee")])
        found = store.search("green tea")
        assert [hit.memory.id for hit in found] == ["both", "one"]
        assert 0.0 <= found[1].score < found[0].score <= 1.0
        assert [hit.note for hit in found] == ["", ""]

    def test_a_word_is_matched_as_a_whole(self, store: MemoryStore) -> None:
        store.store(memory("js", "javascript is a language"))
        assert store.search("java") == []
        store.store(memory("java", "java is an island"))
        assert [hit.memory.id for hit in store.search("java")] == ["java"]

    def test_memories_with_only_a_word_like_it_take_no_results_from_others(self, store: MemoryStore) -> None:
        store.store_all([Memory.from_knowledge("kubernetes", f"a{at}") for at in range(5)])
        store.store_all([Memory.from_knowledge(f"a cup of tea in garden number {at}", "b") for at in range(30)])
        query = "kubrnetes tea"
        assert {hit.record.content for hit in store.memory.recall(query, 3)} == {"kubernetes"}
        assert all("tea" in hit.memory.content for hit in store.search(query, 3))
        assert len(store.search(query, 3)) == 3

    @pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
    def test_a_blank_query_finds_nothing(self, store: MemoryStore, blank: str) -> None:
        store.store(memory("a").with_embedding([1.0]))
        assert store.search(blank) == []

    def test_equal_scores_are_ordered_by_time_and_then_by_id(self, store: MemoryStore) -> None:
        store.store_all([memory("b", "tea"), memory("new", "tea", 1), memory("a", "tea")])
        assert [hit.memory.id for hit in store.search("tea")] == ["new", "a", "b"]

    def test_a_filter_limits_the_results(self, store: MemoryStore) -> None:
        store.store_all([memory("a", "tea", topic="x"), memory("b", "tea")])
        assert [hit.memory.id for hit in store.search("tea", 10, MemoryFilter.has_metadata("topic"))] == ["a"]

    @pytest.mark.parametrize("wrong", [0, -1, True, "10"])
    def test_a_wrong_number_of_results_is_refused(self, store: MemoryStore, wrong: object) -> None:
        with pytest.raises(InvalidArgumentError, match="top_k"):
            store.search("tea", wrong)  # type: ignore[arg-type]


class TestThreads:
    def test_threads_store_replace_and_search_at_the_same_time(self, store: MemoryStore) -> None:
        start = threading.Barrier(4)

        def work(number: int) -> None:
            start.wait(60)
            for at in range(20):
                store.store(memory(f"own-{number}-{at}").with_embedding([1.0, float(at)]))
                store.store(memory("shared", f"text {number} {at}", at))
                assert store.search("content", embedding=[1.0, 0.0])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert store.count() == 81
        assert store.vector_stats().embedded == 80
        assert len(store.search("content", 100, embedding=[1.0, 0.0])) == 80
        shared = store.get("shared")
        assert shared is not None
        assert shared.content.endswith(" 19")

    @pytest.mark.in_process
    def test_updates_of_one_memory_by_threads_are_all_applied(self, store: MemoryStore) -> None:
        store.store(memory("a", n="0"))

        def work(_: int) -> None:
            for _ in range(20):
                store.update("a", lambda each: each.with_metadata("n", str(int(each.metadata["n"]) + 1)))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        stored = store.get("a")
        assert stored is not None
        assert stored.metadata["n"] == "80"


class TestOpening:
    def test_only_a_memory_of_recollect_can_be_a_store(self) -> None:
        with pytest.raises(InvalidArgumentError, match="memory"):
            MemoryStore("agent.db")  # type: ignore[arg-type]

    def test_the_memory_is_closed_if_the_settings_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="config"):
            MemoryStore.open(tmp_path / "agent.db", "none", "testing")  # type: ignore[arg-type]
        with MemoryStore.open(tmp_path / "agent.db", "none") as store:
            assert store.count() == 0

    def test_embedding_without_an_embedder_is_an_error(self, store: MemoryStore) -> None:
        with pytest.raises(recollect.errors.UnsupportedError, match="without an embedder"):
            store.embed_all()

    def test_an_embedder_that_fails_is_an_error_of_embed_all(self, open_store: Open) -> None:
        model = Switched()
        model.broken = True
        store = open_store(embedder=model)
        with pytest.warns(RecollectWarning):
            store.store(memory("a"))
        with pytest.raises(EmbedderError, match="the model is away"):
            store.embed_all()
