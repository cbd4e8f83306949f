"""Plugins that compare vectors: with any embedder and index, with a provider's embeddings, on faiss and on Chroma."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.models.embedding.stub import Answer, StubServer, well

import recollect
from recollect.compat.nest import (
    AnthropicMemory,
    ArrayIndex,
    ChromaIndex,
    ChromaMemory,
    FaissIndex,
    FaissMemory,
    OpenAIMemory,
    RecallHit,
    SemanticMemory,
    VectorIndex,
    VectorMemory,
)
from recollect.errors import EmbedderError, EmbedderUnavailableError, MissingExtraError
from recollect.models.embedding.hashed import hashed_vector

GREETINGS = {
    "buyer-3:greet": b"hello, I want to buy apples",
    "buyer-7:greet": b"hi, looking for bananas",
    "buyer-9:greet": b"howdy, after some pears",
}
#: Those of the specification.
GOLDEN = [0.4288450139351179, 0.1072112534837795, 0.06019292654288461]
PROVIDERS = [(OpenAIMemory, "OPENAI"), (AnthropicMemory, "VOYAGE")]
INDEXES = [
    pytest.param((ArrayIndex, ""), id="array"),
    pytest.param((FaissIndex, "faiss"), id="faiss"),
    pytest.param((ChromaIndex, "chromadb"), id="chroma"),
]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def recalled(memory: Any, values: dict[str, bytes], query: str, k: int = 5, least: float = 0.0) -> list[Any]:
    for key, value in values.items():
        await memory.write(key, value)
    return list(await memory.recall(query, k, least))


@pytest.fixture
def server() -> Iterator[StubServer]:
    stub = StubServer()
    yield stub
    stub.close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECOLLECT_EMBEDDER", "LLM_EMBEDDING_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for _, provider in PROVIDERS:
        for what in ("API_KEY", "BASE_URL"):
            monkeypatch.delenv(f"{provider}_{what}", raising=False)


class Lists:
    """An index of vectors as a user brings it. It returns equal scores in the order of their last writes."""

    def __init__(self) -> None:
        self.vectors: dict[str, Any] = {}

    def put(self, key: str, vector: Any) -> None:
        self.vectors[key] = vector

    def drop(self, key: str) -> None:
        self.vectors.pop(key, None)

    def search(self, vector: Any, k: int) -> list[tuple[str, float]]:
        scores = [
            (key, float(sum(a * b for a, b in zip(vector, each, strict=True)))) for key, each in self.vectors.items()
        ]
        return sorted(scores, key=lambda each: -each[1])[:k]


def letters(text: str) -> list[float]:
    return [text.count("a"), text.count("b")]


class TestOwn:
    def test_a_memory_of_the_users_own_embedder_and_index_keeps_the_limits(self) -> None:
        index = Lists()
        memory = VectorMemory(embed=letters, index=index, capacity=2)
        found = run(recalled(memory, {"x": b"aaa", "y": b"bbb", "z": b"ab"}, "a", least=0.5))
        assert found == [RecallHit("z", b"ab", 1.0)]
        assert set(index.vectors) == {"y", "z"}

    def test_of_equal_scores_the_lowest_keys_come_first_whatever_the_index_returns(self) -> None:
        values = dict.fromkeys("gfedcba", b"a")
        for k in range(1, 9):
            found = run(recalled(VectorMemory(embed=letters, index=Lists()), values, "a", k))
            assert [hit.key for hit in found] == sorted(values)[:k]

    def test_a_value_is_found_by_its_last_write_and_a_forgotten_one_is_not(self) -> None:
        async def use() -> list[str]:
            memory = VectorMemory(embed=letters, index=Lists())
            await recalled(memory, {"x": b"aaa", "y": b"aa"}, "a")
            await memory.write("x", b"b")
            await memory.forget("y")
            return [hit.key for hit in await memory.recall("a", min_score=0.5)]

        assert run(use()) == []

    def test_a_value_without_a_usable_vector_is_never_found_and_a_warning_says_why(self) -> None:
        def embed(text: str) -> list[float]:
            return [math.nan, 1.0] if text == "bad" else letters(text)

        memory = VectorMemory(embed=embed, index=Lists())
        with pytest.warns(recollect.RecollectWarning, match="'x' cannot be found.*not finite"):
            found = run(recalled(memory, {"x": b"bad", "blank": b" ", "y": b"a"}, "a", least=-1.0))
        assert [hit.key for hit in found] == ["y"]
        with pytest.raises(EmbedderError, match="not finite"):
            run(memory.recall("bad"))
        assert run(memory.recall(" ")) == []

    def test_an_embedder_that_fails_is_asked_again(self) -> None:
        fails = [True]

        def embed(text: str) -> list[float]:
            if fails:
                fails.pop()
                raise OSError("gone")
            return letters(text)

        memory = VectorMemory(embed=embed, index=Lists())
        with pytest.raises(EmbedderError, match="gone"):
            run(recalled(memory, {"x": b"a"}, "a"))
        assert [hit.key for hit in run(memory.recall("a"))] == ["x"]


class TestProviders:
    @pytest.mark.parametrize(("plugin", "provider"), PROVIDERS)
    def test_without_a_key_it_cannot_be_made_and_the_message_names_the_variable(
        self, plugin: Any, provider: str
    ) -> None:
        for arguments in ((), ("agent-7",)):
            with pytest.raises(EmbedderUnavailableError, match=f"set {provider}_API_KEY"):
                plugin(*arguments)

    @pytest.mark.parametrize(("plugin", "provider"), PROVIDERS)
    def test_values_are_found_by_the_vectors_of_the_provider(
        self, plugin: Any, provider: str, server: StubServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(f"{provider}_BASE_URL", server.url)
        monkeypatch.setenv(f"{provider}_API_KEY", "secret")
        memory = plugin("agent-7", capacity_bytes=1000)
        assert server.asked == []
        found = run(recalled(memory, GREETINGS, "apple buyer"))
        assert [hit.key for hit in found] == sorted(GREETINGS)
        assert [hit.score for hit in found] == pytest.approx(GOLDEN, abs=1e-6)  # float32
        values, question = server.asked
        assert values.body["input"] == [each.decode() for each in GREETINGS.values()]  # in one request
        assert question.body["input"] == ["apple buyer"]
        assert {each.headers["authorization"] for each in server.asked} == {"Bearer secret"}
        memory.close()
        run(memory.recall("apple buyer"))
        assert len(server.asked) == 3  # the values are not embedded again
        memory.close()

    def test_another_model_can_be_named(self, server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with closing(OpenAIMemory(2, embed="openai/another")) as memory:
            run(recalled(memory, GREETINGS, "apple buyer"))
        assert server.asked[0].body["model"] == "another"
        with pytest.raises(ValueError, match="embedder"):
            OpenAIMemory(embed="nope")

    def test_a_server_that_refuses_is_an_error_of_the_recall(
        self, server: StubServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        server.script = [Answer(401), well]
        with closing(OpenAIMemory()) as memory:
            with pytest.raises(EmbedderUnavailableError):
                run(recalled(memory, GREETINGS, "apple buyer"))
            assert run(memory.recall("apple buyer", 1))[0].key == "buyer-3:greet"


class TestIndexes:
    @pytest.fixture(params=INDEXES)
    def index(self, request: pytest.FixtureRequest) -> VectorIndex:
        kind, library = request.param
        if library:
            pytest.importorskip(library)
        made: VectorIndex = kind()
        return made

    @settings(max_examples=some(60))
    @given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "cé", "d"]), st.integers(-1, 5)), max_size=20))
    @pytest.mark.parametrize("kind", INDEXES)
    def test_it_has_the_last_vector_of_each_key(
        self, kind: tuple[type[VectorIndex], str], steps: list[tuple[str, int]]
    ) -> None:
        if kind[1]:
            pytest.importorskip(kind[1])
        vectors = [[3, 0, 0], [0, 2, 0], [1, 1, 0], [0, 0, 5], [-1, 0, 0], [0, 0, 0]]
        index, model = kind[0](), dict[str, Sequence[float]]()
        for key, number in steps:
            if number < 0:
                index.drop(key)
                model.pop(key, None)
            else:
                index.put(key, vectors[number])
                model[key] = vectors[number]

        def cosine(vector: Sequence[float]) -> float:
            return vector[0] / math.hypot(*vector)  # with [1, 0, 0]

        expected = {key: cosine(each) for key, each in model.items() if any(each)}
        found = index.search([7, 0, 0], 10)
        assert dict(found) == pytest.approx(expected, abs=1e-6)
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        assert len(index.search([7, 0, 0], 2)) == min(2, len(expected))
        assert index.search([0, 0, 0], 2) == []

    def test_a_memory_on_it_has_the_published_scores_with_the_hashed_vectors(self, index: VectorIndex) -> None:
        found = run(recalled(VectorMemory(embed=hashed_vector, index=index), GREETINGS, "apple buyer"))
        assert [hit.key for hit in found] == sorted(GREETINGS)
        assert [hit.score for hit in found] == pytest.approx(GOLDEN, abs=1e-6)

    def test_two_of_a_kind_share_nothing(self, index: VectorIndex) -> None:
        index.put("a", [1.0, 0.0])
        assert type(index)().search([1.0, 0.0], 5) == []


class TestStores:
    @pytest.mark.parametrize(("plugin", "library"), [(FaissMemory, "faiss"), (ChromaMemory, "chromadb")])
    def test_a_plugin_is_built_as_scenarios_do_and_finds_values(self, plugin: Any, library: str) -> None:
        pytest.importorskip(library)
        for memory in (plugin(), plugin("agent-7"), plugin(2), plugin(embed=hashed_vector, ttl=10)):
            assert isinstance(memory, SemanticMemory)
            assert run(recalled(memory, GREETINGS, "bananas", 1))[0].key == "buyer-7:greet"
        assert plugin(2).stats()["capacity"] == 2

    @pytest.mark.parametrize(
        ("plugin", "library", "package"), [(FaissMemory, "faiss", "faiss-cpu"), (ChromaMemory, "chromadb", "chromadb")]
    )
    def test_a_library_that_is_missing_is_named_with_what_installs_it(
        self, plugin: Any, library: str, package: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
        with pytest.raises(MissingExtraError, match=rf"library {package}, .*: pip install 'recollect\[\w+\]"):
            plugin()
