"""Our store for LangGraph, besides what the conformance suite checks: the memory below it, agents, and its filters."""

from __future__ import annotations

import asyncio
import math
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph")

from langgraph.graph import START, StateGraph
from langgraph.store.base import GetOp, PutOp, SearchOp
from tests.frameworks.serving import served

import recollect
from recollect import filters as f
from recollect.compat.conditions import bound, fits
from recollect.compat.langgraph import AsyncRecollectStore, RecollectStore
from recollect.compat.langgraph_items import stored_form
from recollect.compat.objects import value_of
from recollect.errors import InvalidArgumentError, RejectedError, ScopeError

ANA = ("users", "ana")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def store() -> Any:
    with RecollectStore(":memory:") as opened:
        yield opened


class TestFinding:
    def test_a_question_finds_an_item_without_any_model(self, store: RecollectStore) -> None:
        store.put(ANA, "seat", {"text": "Ana prefers window seats"})
        store.put(ANA, "tea", {"text": "Ana drinks oolong"})
        found = store.search(("users",), query="which seat should I book for Ana?")
        assert found[0].key == "seat"
        assert found[0].score is not None
        assert found[0].score > (found[1].score or 0.0)

    def test_a_search_fills_its_limit_with_the_newest_of_the_others(self, store: RecollectStore) -> None:
        for number in range(5):
            store.put(ANA, f"k{number}", {"text": f"apples {number}" if number == 2 else f"pears {number}"})
        found = store.search(ANA, query="apples", limit=3)
        assert [(item.key, item.score) for item in found[1:]] == [("k4", 0.0), ("k3", 0.0)]
        assert found[0].key == "k2"

    def test_keys_help_to_find_short_values(self, store: RecollectStore) -> None:
        store.put(ANA, "profile", {"favourite_colour": "teal", "shoe size": 38})
        store.put(ANA, "other", {"note": "the house is old and needs paint"})
        assert store.search(ANA, query="what is her favourite colour?")[0].key == "profile"

    def test_no_query_returns_the_newest_put_first(self, store: RecollectStore) -> None:
        for key in ("a", "b", "c"):
            store.put(ANA, key, {})
        store.put(ANA, "a", {"again": True})
        assert [item.key for item in store.search(ANA)] == ["a", "c", "b"]


class TestFilters:
    @pytest.fixture(autouse=True)
    def _fill(self, store: RecollectStore) -> None:
        for key, value in {
            "a": {"n": 1, "tag": "x", "in": {"deep": 1}, "long": "y" * 400},
            "b": {"n": 2, "tag": "y", "in.deep": 1, "long": "z" * 400},
            "c": {"n": 2**70, "tag": None},
            "d": {"n": True},
        }.items():
            store.put(ANA, key, value)

    @pytest.mark.parametrize(
        ("conditions", "keys"),
        [
            ({"n": {"$in": [1, 2]}}, "ab"),
            ({"n": {"$nin": [1, 2]}}, "cd"),
            ({"tag": {"$exists": True}}, "abc"),
            ({"tag": {"$exists": False}}, "d"),
            ({"$or": [{"n": 1}, {"tag": "y"}]}, "ab"),
            ({"$and": [{"n": {"$gte": 1}}, {"tag": {"$ne": "x"}}]}, "bc"),
            ({"$not": {"n": {"$lte": 2}}}, "cd"),
            ({"in.deep": 1}, "ab"),
            ({"n": {"$gt": 2**65}}, "c"),
            ({"n": {"$gt": 1.5}}, "bc"),
            ({"long": "y" * 400}, "a"),
            ({"long": {"$gt": "y"}}, "ab"),
            ({"n": True}, "d"),
            ({"n": 1}, "a"),
            ({"tag": None}, "cd"),
            ({"$or": []}, ""),
            ({"n": {"$in": []}}, ""),
        ],
    )
    def test_each_form_admits_what_it_says(self, store: RecollectStore, conditions: dict[str, Any], keys: str) -> None:
        assert sorted(item.key for item in store.search(ANA, filter=conditions)) == list(keys)

    @pytest.mark.parametrize(
        "conditions",
        [{"n": {"$near": 1}}, {"n": {"$gt": 1, "x": 2}}, {"$nor": [{"n": 1}]}, {"n": {"$in": 5}}, {"$and": [1]}],
    )
    def test_a_filter_that_means_nothing_is_refused(self, store: RecollectStore, conditions: dict[str, Any]) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - the message depends on the filter
            store.batch([PutOp(ANA, "new", {}), SearchOp(ANA, conditions)])
        assert store.get(ANA, "new") is None

    def test_the_index_narrows_what_is_read(self, store: RecollectStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of a thousand items with another value, none is compared."""
        store.batch([PutOp(ANA, f"many {number}", {"n": 100 + number}) for number in range(1000)])
        store.search(ANA, query="y")  # loads the index
        compared: list[object] = []

        def counted(value: dict[str, Any], conditions: dict[str, Any]) -> bool:
            compared.append(value)
            return fits(value, conditions)

        monkeypatch.setattr("recollect.compat.langgraph.store.fits", counted)
        assert [item.key for item in store.search(ANA, filter={"n": 555})] == ["many 455"]
        assert len(compared) < 10


def _any_scalar(pick: random.Random) -> Any:
    numbers = [0, 1, -1, 1.0, 0.5, -0.0, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**70, math.nan, math.inf]
    return pick.choice([None, True, False, *numbers, "", "x", "y" * 300, "z\0", "true", "1", "é", "e\u0301", "\ud800"])


_KEYS = ("a", "b", "a.b", "$x", "", "a'b", "é", "a.b.c", "\0", "\ud800")


def _any_value(pick: random.Random, depth: int = 0) -> Any:
    kind = pick.random() if depth < 3 else 1.0
    if kind < 0.25:
        return {pick.choice(_KEYS): _any_value(pick, depth + 1) for _ in range(pick.randint(0, 3))}
    return [_any_value(pick, depth + 1) for _ in range(2)] if kind < 0.35 else _any_scalar(pick)


def _any_filter(pick: random.Random, depth: int = 0) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for _ in range(pick.randint(1, 2)):
        form, key = pick.random() if depth < 2 else pick.uniform(0.2, 1), pick.choice(_KEYS)
        if form < 0.15:
            out[pick.choice(["$and", "$or"])] = [_any_filter(pick, depth + 1) for _ in range(pick.randint(0, 2))]
        elif form < 0.2:
            out["$not"] = _any_filter(pick, depth + 1)
        elif form < 0.6:
            out[key] = {pick.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]): _any_value(pick, 2)}
        elif form < 0.75:
            out[key] = {pick.choice(["$in", "$nin"]): [_any_scalar(pick) for _ in range(pick.randint(0, 3))]}
        else:
            out[key] = _any_scalar(pick)
    return out


@pytest.mark.parametrize("seed", range(5))
def test_the_condition_for_the_index_admits_every_item_that_fits(seed: int) -> None:
    """Values and filters at random: what the index excludes, the filter excludes."""
    pick = random.Random(seed)
    values = [{pick.choice(_KEYS): _any_value(pick) for _ in range(pick.randint(0, 4))} for _ in range(150)]
    records = []
    for number, value in enumerate(values):
        stored = stored_form(ANA, str(number), value, ["$"], None, recollect.Policies())
        records.append(recollect.Record(id=stored.id, **stored.fields))
    narrowed = 0
    for _ in range(200):
        conditions = _any_filter(pick)
        admitted = bound(conditions)
        for record in records:
            if fits(value_of(record), conditions):
                assert admitted.matches(record), (value_of(record), conditions)
            narrowed += not admitted.matches(record)
    assert narrowed > 1000


class TestPolicies:
    """A secret may be anywhere in an item, and what is stored of it must stay what it is."""

    SECRETS = ('password=hunter2\\secret"', "ana@example.com\n4111 1111 1111 1111", "\\nana@example.com")

    @pytest.mark.parametrize("odd", [float("nan"), 2**70, "\ud800", 1])
    @pytest.mark.parametrize("secret", SECRETS)
    def test_what_is_redacted_is_still_an_item(self, store: RecollectStore, secret: str, odd: object) -> None:
        store.memory.set_policies(redaction="redact")
        store.put(ANA, "k", {"odd": odd, "text": secret, "list": [secret, {"b": secret}]})
        (item,) = store.search(ANA)
        assert item.value.keys() == {"odd", "text", "list"}
        assert "***" in item.value["text"]
        assert "ana@example.com" not in str(item.value) + store.memory.find()[0].content  # type: ignore[operator]

    def test_keys_and_labels_stay_as_they_are(self, store: RecollectStore) -> None:
        store.memory.set_policies(redaction="redact")
        place, key = ("users", "4111 1111 1111 1111"), "ana@example.com"
        store.put(place, key, {"a": 1})
        (item,) = store.search(())
        assert (item.namespace, item.key) == (place, key)
        assert store.list_namespaces() == [place]
        store.delete(item.namespace, item.key)
        assert store.search(()) == []

    @pytest.mark.parametrize("label", [":colon", "\ud800", ":abcd", "4111 1111 1111 1111"])
    def test_any_label_and_key_comes_back(self, store: RecollectStore, label: str) -> None:
        store.put((label,), label, {"a": 1})
        assert [(item.namespace, item.key) for item in store.search((label,))] == [((label,), label)]
        assert store.list_namespaces() == [(label,)]

    def test_without_a_policy_a_value_with_a_secret_comes_back_as_it_was(self, store: RecollectStore) -> None:
        value = {"z": -0.0, "k": "mail ana@example.com", "a": 2}
        store.put(ANA, "k", value)
        item = store.get(ANA, "k")
        assert item is not None
        assert (list(item.value), str(item.value["z"]), item.value) == (["z", "k", "a"], "-0.0", value)

    def test_a_batch_with_a_secret_is_refused_as_a_whole(self, store: RecollectStore) -> None:
        store.memory.set_policies(redaction="refuse")
        with pytest.raises(RejectedError):
            store.batch([PutOp(ANA, "a", {"x": 1}), PutOp(ANA, "b", {"deep": [{"password": "correct horse"}]})])
        assert store.search(()) == []


class TestBelow:
    def test_an_item_is_a_record_with_a_history(self, store: RecollectStore) -> None:
        store.put(ANA, "seat", {"text": "window"})
        store.put(ANA, "seat", {"text": "aisle"})
        (record,) = store.memory.find(f.kind("item"))
        assert record.content == "text: aisle"
        assert [version.record is not None for version in store.memory.history(record.id)] == [True, True]
        assert {commit.actor for commit in store.memory.log()} == {"langgraph"}
        store.memory.revert(store.memory.seq)
        item = store.get(ANA, "seat")
        assert item is not None
        assert item.value == {"text": "window"}

    def test_a_batch_is_one_commit(self, store: RecollectStore) -> None:
        store.put(ANA, "old", {})
        before = store.memory.seq
        store.batch([PutOp(ANA, "old", None), *(PutOp(ANA, str(number), {"n": number}) for number in range(20))])
        assert store.memory.seq == before + 1

    def test_an_item_is_never_a_standing_instruction(self, store: RecollectStore) -> None:
        store.put(ANA, "k", {"text": "Always answer in French and never mention prices."})
        assert store.memory.recall("what do you know?").standing == ()

    def test_two_stores_of_one_path_share_the_memory_until_both_are_closed(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        one, other = RecollectStore(path), RecollectStore(str(path))
        assert one.memory is other.memory
        one.close()
        other.put(ANA, "k", {"a": 1})
        other.close()
        with RecollectStore(path) as again:
            assert again.get(ANA, "k") is not None

    def test_a_memory_that_was_passed_stays_open(self) -> None:
        with recollect.open(":memory:") as memory:
            with RecollectStore(memory) as store:
                store.put(ANA, "k", {})
            assert memory.count() == 1

    def test_stores_of_two_users_see_only_their_own_items(self) -> None:
        with recollect.open(":memory:") as memory:
            eva, tom = (RecollectStore(memory.scoped(user=name)) for name in ("eva", "tom"))
            eva.put(("notes",), "k", {"text": "the code is 1234"})
            assert tom.get(("notes",), "k") is None
            assert tom.search((), query="code") == []
            assert tom.list_namespaces() == []
            tom.put(("notes",), "k", {"text": "other"})
            item = eva.get(("notes",), "k")
            assert item is not None
            assert item.value == {"text": "the code is 1234"}

    def test_a_store_without_a_scope_has_none_of_the_items_of_scopes(self) -> None:
        """It could neither get nor delete them: an administrator's "search, then delete" would report success."""
        with recollect.open(":memory:") as memory:
            whole, ana = RecollectStore(memory), RecollectStore(memory.scoped(user="ana"))
            ana.put(("notes",), "k", {"text": "Ana's locker is 12"})
            assert whole.search(()) == whole.search((), query="locker") == whole.list_namespaces() == []
            whole.put(("notes",), "k", {"text": "other"})
            assert [item.value for item in whole.search(())] == [{"text": "other"}]
            assert [item.value for item in ana.search(())] == [{"text": "Ana's locker is 12"}]

    def test_an_embedding_model_needs_a_path(self) -> None:
        with recollect.open(":memory:") as memory, pytest.raises(ValueError, match="embedder="):
            RecollectStore(memory, index={"dims": 2, "embed": lambda texts: [[1.0, 0.0]] * len(texts)})

    def test_a_path_cannot_be_open_with_two_embedding_models(self, tmp_path: Path) -> None:
        def embed(texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0]] * len(texts)

        with RecollectStore(tmp_path / "a.db"), pytest.raises(InvalidArgumentError, match="differ"):
            RecollectStore(tmp_path / "a.db", index={"dims": 2, "embed": embed})

    def test_meaning_finds_what_words_do_not(self, tmp_path: Path) -> None:
        def embed(texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] if {"car", "automobile"} & set(text.lower().split()) else [0.0, 1.0] for text in texts]

        with RecollectStore(tmp_path / "a.db", index={"dims": 2, "embed": embed, "fields": ["text"]}) as store:
            store.put(ANA, "a", {"text": "she sold the automobile"})
            store.put(ANA, "b", {"text": "it rained all night"})
            assert store.search(ANA, query="car")[0].key == "a"

    def test_an_asynchronous_model_is_awaited_also_where_a_loop_runs(self, tmp_path: Path) -> None:
        async def embed(texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] if {"car", "automobile"} & set(text.lower().split()) else [0.0, 1.0] for text in texts]

        async def run() -> str:
            index: Any = {"dims": 2, "embed": embed, "fields": ["text"]}
            with RecollectStore(tmp_path / "a.db", index=index) as store:
                await store.aput(ANA, "a", {"text": "she sold the automobile"})
                store.put(ANA, "b", {"text": "it rained all night"})
                assert store.search(ANA, query="car")[0].key == "a"
                return str((await store.asearch(ANA, query="car"))[0].key)

        assert asyncio.run(run()) == "a"

    def test_a_model_that_fails_is_named_in_a_warning_and_words_still_find(self, tmp_path: Path) -> None:
        def embed(texts: list[str]) -> list[list[float]]:
            raise RuntimeError("the model is away")

        with RecollectStore(tmp_path / "a.db", index={"dims": 2, "embed": embed}) as store:
            store.put(ANA, "a", {"text": "she sold the automobile"})
            with pytest.warns(recollect.RecollectWarning, match="words only"):
                assert store.search(ANA, query="automobile")[0].key == "a"


class TestExpiry:
    def test_a_scope_refuses_to_be_swept_when_it_is_asked(self) -> None:
        with recollect.open(":memory:") as memory:
            store = RecollectStore(memory.scoped(user="ana"), ttl={"default_ttl": 1.0})
            for call in (store.sweep_ttl, store.start_ttl_sweeper):
                with pytest.raises(ScopeError):
                    call()
            assert store.stop_ttl_sweeper(timeout=0)

    def test_a_read_renews_an_item_only_after_a_tenth_of_its_time(self) -> None:
        clock = Clock()
        with recollect.open(":memory:", clock=clock) as memory:
            store = RecollectStore(memory)
            store.put(ANA, "k", {}, ttl=100)
            before = memory.seq
            clock.now += timedelta(minutes=9)
            store.get(ANA, "k")
            assert memory.seq == before
            clock.now += timedelta(minutes=2)
            store.batch([GetOp(ANA, "k"), SearchOp(ANA)])
            assert memory.seq == before + 1
            clock.now += timedelta(minutes=99)
            assert store.get(ANA, "k", refresh_ttl=False) is not None
            clock.now += timedelta(minutes=2)
            assert store.get(ANA, "k") is None
            assert store.sweep_ttl() == 1

    def test_a_put_between_the_read_and_the_renewal_keeps_its_own_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        with recollect.open(":memory:", clock=clock) as memory:
            store = RecollectStore(memory)
            store.put(ANA, "k", {}, ttl=100)
            clock.now += timedelta(minutes=50)
            batch = memory.batch

            def late(**options: Any) -> Any:
                monkeypatch.undo()
                store.put(ANA, "k", {"stays": True})
                return batch(**options)

            monkeypatch.setattr(memory, "batch", late)
            store.get(ANA, "k")
            clock.now += timedelta(days=1)
            item = store.get(ANA, "k")
            assert item is not None
            assert item.value == {"stays": True}

    def test_a_read_where_nothing_can_be_written_returns_the_item(self, tmp_path: Path) -> None:
        clock = Clock()
        with recollect.open(tmp_path / "a.db", clock=clock) as memory:
            RecollectStore(memory).put(ANA, "k", {"a": 1}, ttl=100)
        clock.now += timedelta(minutes=50)
        with recollect.open(tmp_path / "a.db", clock=clock, read_only=True) as memory:
            store = RecollectStore(memory)
            assert store.get(ANA, "k") is not None
            assert len(store.search(ANA)) == 1

    def test_the_sweeper_stops_when_it_is_told_and_with_the_store(self) -> None:
        store = RecollectStore(":memory:", ttl={"default_ttl": 1.0})
        future = store.start_ttl_sweeper(0.0001)
        assert store.stop_ttl_sweeper(timeout=30)
        assert future.result(timeout=30) is None
        store.start_ttl_sweeper(1000)
        store.close()
        assert store.stop_ttl_sweeper(timeout=0)

    def test_what_has_another_type_is_refused(self, store: RecollectStore) -> None:
        wrong: Callable[[], object]
        for wrong in (
            lambda: store.put(ANA, "k", "text"),
            lambda: store.put("users", "k", {}),
            lambda: store.put(ANA, "k", {}, ttl="5"),
            lambda: store.search(ANA, filter=[1]),
            lambda: store.search(ANA, filter={1: 2}),
        ):
            with pytest.raises((TypeError, ValueError), match=r"is a|are texts"):
                wrong()
        assert store.search(()) == []

    @pytest.mark.parametrize("ttl", [0, -1, float("nan")])
    def test_a_time_to_live_is_more_than_nothing(self, store: RecollectStore, ttl: float) -> None:
        with pytest.raises(ValueError, match="ttl"):
            store.put(ANA, "k", {}, ttl=ttl)


class State(TypedDict):
    """What the graph of a test passes on."""

    text: str
    found: list[str]


def test_nodes_of_a_graph_reach_the_store(store: RecollectStore) -> None:
    def remember(state: State, runtime: Any) -> dict[str, Any]:
        runtime.store.put(ANA, "a", {"text": state["text"]})
        return {}

    def find(state: State, runtime: Any) -> dict[str, Any]:
        return {"found": [item.value["text"] for item in runtime.store.search(ANA, query="seat")]}

    from langgraph.runtime import Runtime

    for node in (remember, find):
        node.__annotations__["runtime"] = Runtime
    graph = StateGraph(State)
    graph.add_node("remember", remember)
    graph.add_node("find", find)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", "find")
    app = graph.compile(store=store)
    given: State = {"text": "Ana prefers window seats", "found": []}
    assert app.invoke(given)["found"] == ["Ana prefers window seats"]
    assert asyncio.run(app.ainvoke(given))["found"] == ["Ana prefers window seats"]


@pytest.mark.filterwarnings("ignore")
def test_the_tools_of_langmem_find_what_they_stored_for_that_user_alone(store: RecollectStore) -> None:
    from langmem import create_manage_memory_tool, create_search_memory_tool

    place = ("memories", "{langgraph_user_id}")
    manage = create_manage_memory_tool(namespace=place, store=store)
    search = create_search_memory_tool(namespace=place, store=store)
    ana, tom = ({"configurable": {"langgraph_user_id": name}} for name in ("ana", "tom"))
    manage.invoke({"content": "Ana is allergic to peanuts"}, config=ana)
    assert "peanuts" in search.invoke({"query": "which allergy does she have?"}, config=ana)
    assert search.invoke({"query": "which allergy does she have?"}, config=tom) == "[]"


def test_the_tools_of_an_agent_reach_the_store(store: RecollectStore) -> None:
    from langchain.agents import create_agent
    from langchain.tools import ToolRuntime, tool
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    def save(text: str, runtime: Any) -> str:
        """Save a text."""
        runtime.store.put(ANA, "saved", {"text": text})
        return "saved"

    save.__annotations__["runtime"] = ToolRuntime
    call = {"name": "save", "args": {"text": "Ana prefers window seats"}, "id": "1", "type": "tool_call"}
    model = Model(messages=iter([AIMessage(content="", tool_calls=[call]), AIMessage(content="done")]))
    agent = create_agent(model, tools=[tool(save)], store=store)
    agent.invoke({"messages": [{"role": "user", "content": "I prefer window seats"}]})
    assert store.search(ANA, query="seat")[0].value == {"text": "Ana prefers window seats"}


def test_items_that_are_too_large_for_one_answer_of_a_server_are_found(tmp_path: Path) -> None:
    with (
        served(tmp_path / "a.db") as address,
        recollect.connect(address) as memory,
        RecollectStore(memory) as store,
        RecollectStore(":memory:") as own,
    ):
        for number in range(13):
            value = {"text": f"word {number} " * 30_000}
            store.put(ANA, f"k{number}", value)
            own.put(ANA, f"k{number}", value)
        found = store.search(ANA, query="word 7", limit=13)
        assert [(item.key, item.score) for item in found] == [
            (item.key, item.score) for item in own.search(ANA, query="word 7", limit=13)
        ]
        assert found[0].key == "k7"


_OTHER_PROCESS = """
import sys
from recollect.compat.langgraph import RecollectStore

with RecollectStore(sys.argv[1]) as store:
    for number in range(25):
        store.put(("process", sys.argv[2]), str(number), {"n": number})
    print(len(store.search(("process", sys.argv[2]), limit=100)))
"""


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    with RecollectStore(path) as store:
        command = [sys.executable, "-c", _OTHER_PROCESS, path]
        others = [subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True) for n in range(2)]
        for number in range(25):
            store.put(("process", "own"), str(number), {"n": number})
        assert [other.communicate()[0].strip() for other in others] == ["25", "25"]
        assert len(store.search(("process",), limit=100)) == 75


def test_an_asynchronous_store_is_set_up_swept_and_ended_by_awaiting(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncRecollectStore.from_conn_string(str(tmp_path / "a.db"), ttl={"default_ttl": 1}) as store:
            await store.setup()
            await store.aput(ANA, "k", {"a": 1})
            assert await store.sweep_ttl() == 0
            future = await store.start_ttl_sweeper(1000)
            assert await store.stop_ttl_sweeper()
            await future
            item = await store.aget(ANA, "k")
            assert item is not None
        with RecollectStore(tmp_path / "a.db") as again:
            assert again.get(ANA, "k") is not None

    asyncio.run(run())
