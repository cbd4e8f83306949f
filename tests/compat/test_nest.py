"""The plugins for the simulator NEST: the published behaviour with its golden scores, and where it is better."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Coroutine
from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

from recollect.compat.nest import (
    Blackboard,
    MemoryPlugin,
    PluginRegistry,
    RecallHit,
    RecollectMemory,
    SemanticMemory,
)
from recollect.compat.nest.plugins import HashedTrigrams
from recollect.text.fnv import fnv1a

PLUGINS: list[Callable[[], Any]] = [Blackboard, SemanticMemory, RecollectMemory]
GREETINGS = {
    "buyer-3:greet": b"hello, I want to buy apples",
    "buyer-7:greet": b"hi, looking for bananas",
    "buyer-9:greet": b"howdy, after some pears",
}
FRUIT = {"a": b"apples bananas", "b": b"apples oranges pears", "c": b"unrelated zebra giraffe"}
texts = st.text(st.sampled_from("ab cde'FÄ7"), max_size=12)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def filled(memory: Any, values: dict[str, bytes]) -> Any:
    for key, value in values.items():
        await memory.write(key, value)
    return memory


def published(values: dict[str, bytes], query: str, k: int, min_score: float) -> list[tuple[str, float]]:
    """The scores of the specification, in plain Python."""

    def embed(text: str) -> list[float]:
        out = [0.0] * 256
        tokens = [token.lower() for token in re.findall("[A-Za-z0-9']+", text)]
        grams = [f"^{token}$" for token in tokens]
        features = tokens + [gram[at : at + 3] for gram in grams for at in range(max(1, len(gram) - 2))]
        for feature in features:
            value = 0xCBF29CE484222325
            for byte in feature.encode():
                value = ((value ^ byte) * 0x100000001B3) % 2**64
            out[value & 255] += 1.0 if value >> 63 else -1.0
        norm = math.sqrt(sum(each * each for each in out))
        return [each / norm for each in out] if norm else out

    def text_of(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()

    asked = embed(query)
    scores = []
    for key, value in values.items():
        total = 0.0
        for one, other in zip(asked, embed(text_of(value)), strict=True):
            total += one * other
        scores.append((key, total))
    return sorted((each for each in scores if each[1] >= min_score), key=lambda each: (-each[1], each[0]))[:k]


class TestScores:
    @pytest.mark.parametrize(
        ("text", "value"), [("", 0xCBF29CE484222325), ("a", 0xAF63DC4C8601EC8C), ("foobar", 0x85944171F73967E8)]
    )
    def test_the_hash_is_fnv_1a(self, text: str, value: int) -> None:
        assert fnv1a(text.encode("utf-8")) == value

    def test_the_published_examples_have_the_published_scores(self) -> None:
        async def recalled(values: dict[str, bytes], query: str, k: int) -> list[RecallHit]:
            found: list[RecallHit] = await (await filled(SemanticMemory(), values)).recall(query, k=k)
            return found

        found = run(recalled(GREETINGS, "apple buyer", 3))
        assert [hit.key for hit in found] == ["buyer-3:greet", "buyer-7:greet", "buyer-9:greet"]
        golden = [0.4288450139351179, 0.1072112534837795, 0.06019292654288461]
        assert [hit.score for hit in found] == pytest.approx(golden, abs=1e-12)
        found = run(recalled(FRUIT, "apples", 5))
        assert [hit.key for hit in found] == ["b", "a", "c"]
        golden = [0.6598288790738581, 0.6416889479197478, 0.16116459280507603]
        assert [hit.score for hit in found] == pytest.approx(golden, abs=1e-12)

    @settings(max_examples=some(150))
    @given(
        steps=st.lists(st.tuples(st.sampled_from("abcdefg"), st.none() | texts | st.just("\udcff")), max_size=25),
        query=texts,
        k=st.integers(1, 5),
        least=st.sampled_from([0.0, -1.0, 0.2]),
    )
    def test_any_values_have_the_scores_of_the_published_algorithm_to_the_last_bit(
        self, steps: list[tuple[str, str | None]], query: str, k: int, least: float
    ) -> None:
        scorer, values = HashedTrigrams(), dict[str, bytes]()
        for number, (key, text) in enumerate(steps):
            if text is None:
                scorer.drop(key)
                values.pop(key, None)
            else:
                values[key] = text.encode("utf-8", "surrogateescape")
                scorer.put(key, values[key])
            if number % 3 == 0:
                scorer.find(query, k, least)  # which embeds what is new
        assert scorer.find(query, k, least) == published(values, query, k, least)

    def test_text_without_letters_of_ascii_is_never_found_by_the_compatible_scorer_and_is_by_ours(self) -> None:
        async def found(memory: Any) -> list[str]:
            await memory.write("x", "договор подписан".encode())
            await memory.write("y", b"unrelated zebra giraffe")
            return [hit.key for hit in await memory.recall("договор", min_score=0.01)]

        assert run(found(SemanticMemory())) == []
        assert run(found(SemanticMemory(scorer="recollect"))) == ["x"]

    def test_our_scorer_keeps_the_contract_of_scorers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("recollect.compat.nest.plugins._FORMER", 20)
        memory = SemanticMemory(capacity=5, scorer="recollect")

        async def use() -> list[Any]:
            for number in range(200):
                await memory.write(f"k{number % 7}", b"the same text of a harbour")
            assert await memory.recall("") == []
            assert len(await memory.recall("harbour", min_score=-1.0)) == 5
            return [hit.key for hit in await memory.recall("harbour", k=3)]

        assert run(use()) == sorted(memory.shelf.keys())[:3]

    def test_what_the_published_scorer_gets_wrong_ours_gets_right(self) -> None:
        notes = {"note-1": b"agent alpha proposed price 42", "note-2": b"agent beta accepted at 40"}

        async def first(memory: Any) -> str:
            return str((await (await filled(memory, notes)).recall("what did beta say about price?"))[0].key)

        assert run(first(SemanticMemory())) == "note-1"
        assert run(first(SemanticMemory(scorer="recollect"))) == "note-2"
        assert run(first(RecollectMemory())) == "note-2"


class TestProtocol:
    @pytest.mark.parametrize("plugin", PLUGINS)
    def test_each_plugin_has_the_protocol_and_is_built_with_nothing_or_an_id(self, plugin: Any) -> None:
        async def use(memory: Any) -> None:
            assert isinstance(memory, MemoryPlugin)
            assert await memory.read("counter") is None
            await memory.write("counter", b"42")
            assert await memory.cas("counter", b"42", b"43")
            assert not await memory.cas("counter", b"42", b"44")
            assert await memory.read("counter") == b"43"

        for memory in (plugin(), plugin("agent-7")):
            run(use(memory))

    def test_a_number_by_position_is_the_capacity_and_a_text_the_id_of_an_agent(self) -> None:
        assert SemanticMemory(3).stats()["capacity"] == 3
        assert SemanticMemory("agent-7").stats()["capacity"] == -1

    def test_a_swap_on_an_absent_key_succeeds_only_on_the_blackboard(self) -> None:
        assert run(Blackboard().cas("k", None, b"v"))
        assert not run(SemanticMemory().cas("k", None, b"v"))
        assert not run(SemanticMemory().cas("k", b"", b"v"))

    @pytest.mark.parametrize("name", ["capacity", "ttl"])
    @pytest.mark.parametrize("value", [0, -1])
    def test_a_limit_of_nothing_is_refused_by_its_name(self, name: str, value: int) -> None:
        with pytest.raises(ValueError, match=name):
            SemanticMemory(**{name: value})  # type: ignore[arg-type]

    def test_statistics_count_what_happens_and_a_recall_of_nothing_does_not_count(self) -> None:
        async def use() -> dict[str, int]:
            memory = await filled(SemanticMemory(capacity=2), FRUIT)
            assert await memory.recall("apples", k=0) == await memory.recall("apples", k=-1) == []
            await memory.recall("apples")
            return dict(memory.stats())

        stats = run(use())
        expected = {"size": 2, "capacity": 2, "writes": 3, "recalls": 1, "evictions": 1, "expirations": 0, "tick": 3}
        assert expected.items() <= stats.items()

    def test_recalled_entries_stay_the_best_hit_the_first_of_them_to_go(self) -> None:
        async def use() -> list[str]:
            memory = await filled(SemanticMemory(capacity=3), FRUIT)
            await memory.recall("apples", k=2)  # b, then a
            await memory.write("d", b"four")
            await memory.write("e", b"five")
            return list(memory.shelf.keys())

        assert run(use()) == ["a", "d", "e"]

    def test_the_least_important_entry_makes_room_if_that_is_asked_for(self) -> None:
        async def use() -> list[str]:
            memory = SemanticMemory(capacity=2, evict="least important")
            await memory.write("low", b"1", importance=0.1)
            await memory.write("high", b"2", importance=0.9)
            await memory.read("low")
            await memory.write("new", b"3", importance=0.5)
            return sorted(memory.shelf.keys())

        assert run(use()) == ["high", "new"]

    def test_an_expired_key_is_not_forgotten_but_counted(self) -> None:
        now = [0]

        async def use() -> tuple[bool, int]:
            memory = SemanticMemory(ttl=5, now_fn=lambda: now[0])
            await memory.write("a", b"1")
            now[0] = 5
            return await memory.forget("a"), memory.stats()["expirations"]

        assert run(use()) == (False, 1)

    def test_a_live_entry_is_not_evicted_while_an_expired_one_is_there(self) -> None:
        now = [0]

        async def use() -> list[bytes | None]:
            memory = SemanticMemory(capacity=2, ttl=5, now_fn=lambda: now[0])
            await memory.write("live", b"1")
            await memory.write("due", b"2")
            now[0] = 4
            await memory.write("live", b"1")
            await memory.read("due")  # the most recently used
            now[0] = 5
            await memory.write("new", b"3")
            return [await memory.read(key) for key in ("live", "due", "new")]

        assert run(use()) == [b"1", None, b"3"]

    @pytest.mark.parametrize("plugin", PLUGINS)
    def test_subscribers_get_each_value_after_they_began(self, plugin: Any) -> None:
        async def use() -> list[bytes]:
            memory = plugin()
            await memory.write("k", b"before")
            values = memory.subscribe("k")
            first = asyncio.ensure_future(anext(values))
            await asyncio.sleep(0)
            for value in (b"one", b"one", b"two"):
                await memory.write("k", value)
            await memory.write("other", b"x")
            assert await memory.cas("k", b"two", b"three")
            out = [await first, *[await anext(values) for _ in range(3)]]
            await values.aclose()
            if isinstance(memory, RecollectMemory):
                memory.close()
            return out

        assert run(use()) == [b"one", b"one", b"two", b"three"]

    def test_a_subscriber_that_is_cancelled_leaves_nothing_behind(self) -> None:
        async def use() -> int:
            memory = SemanticMemory()
            tasks = [asyncio.ensure_future(anext(memory.subscribe("k"))) for _ in range(100)]
            await asyncio.sleep(0)
            assert len(memory.shelf._subscriptions) == 100
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)
            return len(memory.shelf._subscriptions)

        assert run(use()) == 0

    @pytest.mark.parametrize("plugin", PLUGINS)
    def test_a_subscriber_that_does_not_read_misses_no_value(self, plugin: Any) -> None:
        values = [b"%d" % number for number in range(1500)]

        async def use() -> list[bytes]:
            memory = plugin()
            found = memory.subscribe("k")
            first = asyncio.ensure_future(anext(found))
            await asyncio.sleep(0)
            for value in values:
                await memory.write("k", value)
            out = [await first, *[await anext(found) for _ in values[1:]]]
            await found.aclose()
            if isinstance(memory, RecollectMemory):
                memory.close()
            return out

        assert run(use()) == values

    def test_a_hit_is_a_frozen_dataclass_that_can_be_unpacked(self) -> None:
        (hit,) = run(recalled_from(SemanticMemory(), "apples"))
        assert asdict(hit) == {"key": "a", "value": b"apples", "score": hit.score}
        key, value, score = hit
        assert RecallHit(key, value, score) == hit
        with pytest.raises(FrozenInstanceError):
            hit.score = 1.0


async def recalled_from(memory: Any, query: str) -> list[RecallHit]:
    await memory.write("a", b"apples")
    return list(await memory.recall(query))


class TestRegistry:
    def test_names_are_found_in_the_entry_points_of_this_package(self) -> None:
        registry = PluginRegistry()
        assert registry.resolve("memory", "semantic") is SemanticMemory
        assert registry.resolve("memory", "recollect") is RecollectMemory
        for name in ("openai_embeddings", "anthropic_embeddings", "faiss", "chroma"):
            assert registry._found[name].value.startswith("recollect.compat.nest:")
            assert issubclass(registry.resolve("memory", name), SemanticMemory)
        assert (
            registry.resolve("memory", "recollect-blackboard") is registry.resolve("memory", "blackboard") is Blackboard
        )
        listed = registry.list_plugins("memory")
        assert ("memory", "semantic") in listed
        assert listed == sorted(listed) == registry.list_plugins()
        assert registry.list_plugins("transport") == []

    def test_a_package_that_names_a_plugin_replaces_ours(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Point:
            name = "blackboard"

            def load(self) -> Any:
                return dict

        monkeypatch.setattr("recollect.compat.nest.registry.entry_points", lambda group: [Point()])
        assert PluginRegistry().resolve("memory", "blackboard") is dict

    @pytest.mark.parametrize(
        ("layer", "name", "words"),
        [
            ("memory", "other", "'memory'.*'other'"),
            ("transport", "semantic", "'transport'.*'semantic'"),
            ("memory", "pgvector", "no store on one yet.*your own"),
        ],
    )
    def test_an_unknown_name_is_a_key_error_that_names_layer_and_name(self, layer: str, name: str, words: str) -> None:
        with pytest.raises(KeyError, match=words):
            PluginRegistry().resolve(layer, name)
