"""Search by vector in the LLM4S layer: scores, order, what is passed over, and what happens without a usable vector."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compat.conftest import Open

import recollect
from recollect import RecollectWarning
from recollect.compat.llm4s import (
    Memory,
    MemoryFilter,
    MemoryId,
    MemoryManager,
    MemoryStore,
    MemoryType,
    ScoredMemory,
    VectorOps,
    index,
)
from recollect.errors import InvalidArgumentError, InvalidRecordError
from recollect.models.embedding import similarity
from recollect.models.embedding.base import Supplied, VectorLike

START = datetime(2026, 3, 1, tzinfo=UTC)
NAN = float("nan")


def memory(name: str, vector: Sequence[float] | None = None, days: int = 0, **metadata: str) -> Memory:
    time = START + timedelta(days=days)
    plain = Memory(MemoryId(name), f"content of {name}", MemoryType.KNOWLEDGE, metadata, time)
    return plain if vector is None else plain.with_embedding(vector)


def scores(found: Sequence[ScoredMemory]) -> dict[str, float]:
    return {hit.memory.id: hit.score for hit in found}


@pytest.fixture
def three(store: MemoryStore) -> MemoryStore:
    store.store_all([memory("left", [-1, 0, 0]), memory("up", [0, 1, 0]), memory("right", [1, 0, 0])])
    return store


class TestScores:
    def test_scores_are_those_of_the_specification(self, three: MemoryStore) -> None:
        found = three.search("anything", embedding=[1, 0, 0])
        assert list(scores(found).items()) == [("right", 1.0), ("up", 0.5), ("left", 0.0)]
        assert [hit.note for hit in found] == ["", "", ""]

    def test_the_best_ones_are_returned(self, three: MemoryStore) -> None:
        assert list(scores(three.search("anything", 1, embedding=[-2, 0, 0]))) == ["left"]

    def test_equal_scores_are_ordered_by_time_and_then_by_id(self, store: MemoryStore) -> None:
        store.store_all([memory("b", [1, 2]), memory("new", [2, 4], 1), memory("a", [3, 6]), memory("other", [0, 1])])
        assert list(scores(store.search("q", 3, embedding=[1, 2]))) == ["new", "a", "b"]
        assert list(scores(store.search("q", 1, embedding=[1, 2]))) == ["new"]

    def test_a_vector_of_zeros_has_the_score_of_an_unrelated_one(self, three: MemoryStore) -> None:
        three.store(memory("zero", [0, 0, 0]))
        assert scores(three.search("q", embedding=[1, 0, 0]))["zero"] == 0.5

    @pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e30, 3e38])
    def test_very_long_and_very_short_vectors_are_compared(self, store: MemoryStore, scale: float) -> None:
        store.store_all([memory("same", [scale, 0]), memory("across", [0, scale]), memory("back", [-scale, 0])])
        found = scores(store.search("q", embedding=[scale, 0]))
        assert list(found.items()) == [("same", 1.0), ("across", 0.5), ("back", 0.0)]


class TestPassedOver:
    def test_vectors_of_another_size_or_not_finite_are_passed_over_and_counted(self, three: MemoryStore) -> None:
        others = [
            memory("nan", [NAN, 0, 0]),
            memory("inf", [float("inf"), 0, 0]),
            memory("two", [1, 0]),
            memory("none"),
        ]
        three.store_all(others)
        found = three.search("q", embedding=[1, 0, 0])
        assert set(scores(found)) == {"right", "up", "left"}
        assert {hit.note for hit in found} == {
            "compared 3 of 7 memories: the others have no usable vector of 3 components"
        }
        assert [three.get(each.id) is not None for each in others] == [True] * 4
        assert list(scores(three.search("q", embedding=[2, 0]))) == ["two"]

    @pytest.mark.parametrize(
        ("vector", "reason"),
        [
            ([NAN, 0, 0], "not finite"),
            ([float("inf"), 0, 0], "not finite"),
            ([0, 0, 0], "zero"),
            ([1, 0], "no memory has a vector of 2 components"),
        ],
    )
    def test_an_unusable_query_vector_falls_back_to_words_and_says_so(
        self, three: MemoryStore, vector: list[float], reason: str
    ) -> None:
        three.store(memory("more"))
        found = three.search("content of right", embedding=vector)
        assert found[0].memory.id == "right"
        assert len(found) == 4
        assert all(reason in hit.note for hit in found)

    def test_a_vector_that_is_no_list_of_numbers_is_refused(self, three: MemoryStore) -> None:
        with pytest.raises(InvalidRecordError):
            three.search("q", embedding="abc")  # type: ignore[arg-type]


class TestFilters:
    def test_a_filter_limits_the_results(self, store: MemoryStore) -> None:
        store.store_all([memory("a", [1, 0], topic="x"), memory("b", [1, 1]), memory("c", [0, 1], topic="x")])
        assert list(scores(store.search("q", 10, MemoryFilter.has_metadata("topic"), embedding=[1, 0]))) == ["a", "c"]
        assert store.search("q", 10, MemoryFilter.NONE, embedding=[1, 0]) == []

    @pytest.mark.parametrize("rare", [1, 3, 30])
    def test_a_filter_that_few_of_many_memories_match_finds_them(self, store: MemoryStore, rare: int) -> None:
        chance = random.Random(7)
        memories = [memory(f"m{at:04}", [chance.gauss(0, 1) for _ in range(4)]) for at in range(600)]
        query = [1.0, 0.5, 0.0, 0.0]
        furthest = sorted(memories, key=lambda each: similarity.cosine(query, each.embedding or ()))[:rare]
        store.store_all([each.with_metadata("rare", "yes") if each in furthest else each for each in memories])
        found = store.search("q", 5, MemoryFilter.by_metadata("rare", "yes"), embedding=query)
        assert [hit.memory.id for hit in found] == [each.id for each in furthest[::-1][:5]]


class TestFollowing:
    def test_a_search_sees_what_was_written_since_the_last_one(self, three: MemoryStore) -> None:
        assert list(scores(three.search("q", 1, embedding=[1, 0, 0]))) == ["right"]
        three.delete("right")
        three.store(memory("left", [1, 0, 0]))  # replaced
        three.store(memory("up"))  # without a vector
        three.store(memory("new", [1, 1, 0]))
        found = three.search("q", embedding=[1, 0, 0])
        assert list(scores(found)) == ["left", "new"]
        assert "compared 2 of 3 memories" in found[0].note
        three.clear()
        three.store(memory("last", [0, 0, 1]))
        assert scores(three.search("q", embedding=[0, 0, 1])) == {"last": 1.0}

    def test_a_search_sees_what_another_store_on_the_memory_wrote(self, three: MemoryStore) -> None:
        other = MemoryStore(three.memory)
        assert len(other.search("q", embedding=[1, 0, 0])) == 3
        three.store_all([memory(f"m{at}", [1, 0, 0], at) for at in range(300)])
        assert len(other.search("q", 500, embedding=[1, 0, 0])) == 303

    def test_a_search_after_an_interrupted_one_finds_the_same(
        self, three: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        for _ in range(2):  # the first search, and one that follows the log
            three.store(memory("new", [1, 1, 0]))
            with monkeypatch.context() as patch:
                patch.setattr(index, "_unit", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    three.search("q", embedding=[1, 0, 0])
            assert list(scores(three.search("q", embedding=[1, 0, 0]))) == ["right", "new", "up", "left"]
            assert len(three._index.ranked([1, 0, 0]).ids) == 4
            three.store(memory("new"))
            three.search("q", embedding=[1, 0, 0])

    def test_expired_memories_are_not_found(self) -> None:
        now = [START]
        with recollect.open(":memory:", clock=lambda: now[0], embedder="none") as plain:
            store = MemoryStore(plain)
            stored = store.store(memory("a", [1.0]))
            store.store(memory("b", [0.5]))
            plain.update(stored.id, expires=START + timedelta(days=1))
            assert len(store.search("q", embedding=[1.0])) == 2
            now[0] += timedelta(days=2)
            assert list(scores(store.search("q", embedding=[1.0]))) == ["b"]

    @given(data=st.data())
    def test_after_any_writes_the_results_are_those_of_a_full_comparison(self, data: st.DataObject) -> None:
        vectors = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=2, max_size=2)
        with MemoryStore.in_memory("none") as store:
            expected: dict[str, Memory] = {}
            for _ in range(data.draw(st.integers(1, 4))):
                for name, vector in data.draw(
                    st.dictionaries(st.sampled_from("abcdefgh"), st.none() | vectors)
                ).items():
                    if data.draw(st.booleans()):
                        expected[name] = store.store(memory(name, vector))
                    elif name in expected:
                        del expected[name]
                        store.delete(name)
                query = data.draw(vectors)
                if not any(query) or not any(each.embedding for each in expected.values()):
                    continue
                full = {
                    name: similarity.similarity_score(similarity.cosine(query, each.embedding))
                    for name, each in expected.items()
                    if each.embedding is not None
                }
                best = sorted(full, key=lambda name: (-full[name], name))[:3]
                assert list(scores(store.search("q", 3, embedding=query)).items()) == [(n, full[n]) for n in best]


class Model:
    """An embedder of two components; a text with "bad" has no vector."""

    name, dimension = "test/model", 2

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.fails = False

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
        if self.fails:
            raise OSError("away")
        self.calls.append(len(texts))
        return [None if "bad" in text else [1.0, 0.0] if "tea" in text else [0.0, 1.0] for text in texts]


class TestEmbedders:
    def test_what_is_stored_and_the_query_are_embedded(self, open_store: Open) -> None:
        store = open_store(embedder=Model())
        stored = store.store(Memory.from_knowledge("green tea", "a"))
        assert stored.embedding == (1.0, 0.0)
        store.store_all(
            [Memory.from_knowledge("coffee", "a"), Memory.from_knowledge("own", "a").with_embedding([-1, 0])]
        )
        found = store.search("tea please")
        assert [(hit.memory.content, hit.score, hit.note) for hit in found] == [
            ("green tea", 1.0, ""),
            ("coffee", 0.5, ""),
            ("own", 0.0, ""),
        ]

    def test_a_failing_embedder_falls_back_to_words_and_says_so_in_each_hit(self, open_store: Open) -> None:
        model = Model()
        store = open_store(embedder=model)
        store.store_all([Memory.from_knowledge("green tea", "a"), Memory.from_knowledge("tea", "a")])
        model.fails = True
        found = store.search("green tea")
        assert [hit.memory.content for hit in found] == ["green tea", "tea"]
        assert all("OSError: away" in hit.note for hit in found)
        model.fails = False
        assert all("there is no vector" in hit.note for hit in store.search("bad tea"))

    def test_an_embedder_that_returns_nan_falls_back_to_words(self, open_store: Open) -> None:
        store = open_store(embedder=Supplied("own/1", 1, {"green tea": [1.0]}))
        store.store(Memory.from_knowledge("green tea", "a"))
        assert store.search("green tea")[0].score == 1.0

        class Broken(Model):
            def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
                return [[NAN, 0.0] for _ in texts]

        store = open_store(embedder=Broken())
        with pytest.warns(RecollectWarning, match="not finite"):
            store.store(Memory.from_knowledge("black tea", "a"))
        assert all("not finite" in hit.note for hit in store.search("black tea"))
        assert store.search("black tea")

    def test_a_warning_names_the_line_of_the_caller(self, open_store: Open) -> None:
        model = Model()
        store = open_store(embedder=model)
        model.fails = True
        calls: list[Callable[[], object]] = [
            lambda: store.store(memory("a")),
            lambda: store.store_all([memory("b")]),
            lambda: MemoryManager(store).record_user_fact("fact", "ana"),
        ]
        for call in calls:
            with pytest.warns(RecollectWarning) as warned:
                call()
            assert [each.filename for each in warned] == [__file__]

    def test_embed_all_embeds_what_has_no_vector_in_batches(self, open_store: Open) -> None:
        model = Model()
        store = open_store(embedder=model)
        _store_without_vectors(store, model, [memory(f"m{at}", days=at) for at in range(25)])
        store.store(memory("own", [5.0]))
        assert store.vector_stats() == (26, 1, (1,), 100.0 / 26)
        assert store.embed_all(10) == 25
        assert model.calls == [10, 10, 5]
        assert store.embed_all() == 0
        assert store.vector_stats() == (26, 26, (1, 2), 100.0)

    def test_a_text_that_cannot_be_embedded_is_reported(self, open_store: Open) -> None:
        model = Model()
        store = open_store(embedder=model)
        _store_without_vectors(store, model, [Memory.from_knowledge("bad", "a"), Memory.from_knowledge("good", "a")])
        with pytest.warns(RecollectWarning, match="1 of 2 memories have no vector: there is no vector"):
            assert store.embed_all() == 1

    @pytest.mark.parametrize("wrong", [0, True, "1"])
    def test_a_wrong_batch_size_is_refused(self, open_store: Open, wrong: object) -> None:
        with pytest.raises(InvalidArgumentError, match="batch_size"):
            open_store(embedder=Model()).embed_all(wrong)  # type: ignore[arg-type]

    def test_a_memory_that_was_replaced_while_it_was_embedded_keeps_the_new_text(self, open_store: Open) -> None:
        class Replacing(Model):
            def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
                if texts == ["old tea"]:
                    store.store(memory("a", [9.0, 9.0]))
                    store.delete("b")
                return super().embed(texts, asking=asking)

        store = open_store(embedder=Replacing())
        store.store(memory("b", [1.0, 1.0]))
        store.store(Memory(MemoryId("a"), "old tea", MemoryType.KNOWLEDGE))
        assert store.get("a") == memory("a", [9.0, 9.0])

    def test_the_coverage_of_an_empty_store_is_0(self, store: MemoryStore) -> None:
        assert store.vector_stats() == (0, 0, (), 0.0)


def _store_without_vectors(store: MemoryStore, model: Model, memories: Sequence[Memory]) -> None:
    model.fails = True
    with pytest.warns(RecollectWarning, match="have no vector: .*away"):
        store.store_all(memories)
    model.fails = False


def test_a_blank_query_with_a_vector_searches_by_it(store: MemoryStore) -> None:
    store.store(memory("a", [1, 0, 0]))
    assert scores(store.search("", 2, embedding=[1, 0, 0])) == {"a": 1.0}
    assert store.search(" ", 2, embedding=[NAN, 0, 0]) == store.search(" ") == []


@pytest.mark.parametrize(
    "candidates",
    [{"a": [1.0, 0.0]}, {(1.0, 0.0): "a"}, [("a", [1.0, 0.0])], [([1.0, 0.0], "a", 1)], ["ab"], [(["x", "y"], "a")]],
)
def test_candidates_that_are_not_pairs_of_a_vector_and_a_value_are_refused(candidates: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\(vector, value\) pairs"):
        VectorOps.top_k_by_similarity([1.0, 0.0], candidates, 1)


def test_the_representation_of_a_memory_has_the_size_of_its_vector() -> None:
    shown = repr(memory("a", [0.25] * 1000))
    assert "embedding=<1000 components>" in shown
    assert "content='content of a'" in shown
    assert len(shown) < 400
