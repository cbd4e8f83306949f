"""The graph that a server caches: it follows the log of all processes, and knows nothing that was not committed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import StoreBusyError
from recollect.facets.entities.graph import Entity, Graph, Relation, node, observation
from recollect.server.mcp.graph import SharedGraph
from recollect.server.mcp.tools import Access

ANA = Entity("Ana", "person", ("likes tea", "lives in Oslo"))


def write(memory: recollect.Memory, graph: SharedGraph, *entities: Entity) -> list[Entity]:
    with memory.batch() as batch:
        return graph.writer(batch).create_entities(entities)


def graph_of(memory: recollect.Memory) -> SharedGraph:
    return SharedGraph(lambda: memory)


def test_two_caches_of_one_store_see_the_writes_of_each_other(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as one, recollect.open(tmp_path / "a.db") as other:
        first, second = graph_of(one), graph_of(other)
        assert write(one, first, ANA) == [ANA]
        assert second.refresh().entities() == [ANA]
        assert write(other, second, ANA, Entity("Bo", "cat", ())) == [Entity("Bo", "cat", ())]
        assert [each.name for each in first.refresh().entities()] == ["Ana", "Bo"]


def test_a_batch_that_fails_leaves_the_graph_as_it_was() -> None:
    with recollect.open(":memory:") as memory:
        graph = graph_of(memory)
        write(memory, graph, ANA)
        with pytest.raises(KeyError), memory.batch() as batch:
            writer = graph.writer(batch)
            writer.add_observations("Ana", ["is a ghost"])
            writer.delete_observations("Ana", ["likes tea"])
            writer.create_relations([Relation("Ana", "Bo", "knows")])
            writer.delete_entities(["Ana"])
            assert graph.refresh().entities() == [ANA]  # others do not see what is not committed
            raise KeyError
        assert graph.refresh().entities() == [ANA]
        assert graph.refresh().relations() == []
        assert write(memory, graph, ANA) == []


def test_updates_and_deletions_by_other_means_are_seen() -> None:
    with recollect.open(":memory:") as memory:
        graph = graph_of(memory)
        write(memory, graph, ANA)
        tea = next(each for each in memory.find("kind=entity") if each.content == "likes tea")
        memory.update(tea.id, content="likes coffee")
        assert graph.refresh().entities()[0].observations == ("likes coffee", "lives in Oslo")
        memory.forget(tea.id)
        assert graph.refresh().entities()[0].observations == ("lives in Oslo",)
        memory.clear()
        assert graph.refresh().entities() == []


def test_an_observation_whose_record_was_changed_can_be_added_again() -> None:
    with recollect.open(":memory:") as memory:
        graph = graph_of(memory)
        write(memory, graph, ANA)
        tea = next(each for each in memory.find("kind=entity") if each.content == "likes tea")
        memory.update(tea.id, content="likes coffee")
        with memory.batch() as batch:
            writer = graph.writer(batch)
            assert writer.add_observations("Ana", ["likes tea"]) == ["likes tea"]
        assert set(graph.refresh().entities()[0].observations) == {"likes coffee", "lives in Oslo", "likes tea"}


def test_many_changes_by_others_are_read_at_once() -> None:
    with recollect.open(":memory:") as memory:
        graph = graph_of(memory)
        write(memory, graph, ANA)
        memory.remember_all([{"content": f"fact {at}"} for at in range(3000)])
        memory.record_entity_fact("bo", "Bo", "is a cat")
        assert [each.name for each in graph.refresh().entities()] == ["Ana", "Bo"]


def test_a_change_is_reported_once_and_only_if_the_graph_changed() -> None:
    with recollect.open(":memory:") as memory:
        graph = graph_of(memory)
        graph.refresh()
        assert not graph.take_changed()
        memory.remember("no part of the graph")
        assert not graph.take_changed()
        memory.record_entity_fact("bo", "Bo", "is a cat")
        assert graph.take_changed()
        assert not graph.take_changed()


def test_a_graph_that_cannot_be_read_is_logged_once_until_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def opener(*, create: bool, read_only: bool) -> recollect.Memory:
        return recollect.open(tmp_path / "a.db", create=create, read_only=read_only)

    states: Iterator[bool] = iter([False, False, True, False])

    def changed(_graph: SharedGraph) -> bool:
        if not next(states):
            raise StoreBusyError("a.db")
        return True

    monkeypatch.setattr(SharedGraph, "take_changed", changed)
    access = Access(opener)
    assert [access.has_changed_graph() for _ in range(4)] == [False, False, True, False]
    assert [each.message[:17] for each in caplog.records] == ["changes of the kn"] * 2
    access.close()


def test_order_is_that_of_creation_even_if_the_clock_goes_back() -> None:
    now = [datetime(2026, 1, 2, tzinfo=UTC)]
    with recollect.open(":memory:", clock=lambda: now[0]) as memory:
        graph = graph_of(memory)
        for name in ("c", "a", "b"):
            write(memory, graph, Entity(name, "t", ("z", "y")))
            now[0] -= timedelta(days=1)
        assert [each.name for each in graph.refresh().entities()] == ["c", "a", "b"]
        assert {each.observations for each in graph.refresh().entities()} == {("z", "y")}
        assert [each.name for each in graph_of(memory).refresh().entities()] == ["c", "a", "b"]


def test_a_fact_of_the_future_does_not_date_what_is_created_later() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    with recollect.open(":memory:", clock=lambda: now) as memory:
        graph = graph_of(memory)
        memory.record_entity_fact("trip", "Trip", "ends", time="9998-12-31T23:59:59.999999Z")
        write(memory, graph, ANA, Entity("Bo", "cat", ()))
        times = [each.time for each in memory.find("kind=node", order="oldest")]
        assert [each.name for each in graph.refresh().entities()] == ["Ana", "Bo", "Trip"]
        assert all(time is not None and now <= time < now + timedelta(seconds=1) for time in times)


def test_a_graph_is_never_that_of_half_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(tmp_path / "a.db") as memory, recollect.open(tmp_path / "a.db") as other:
        graph = graph_of(memory)
        for name in ("Ana", "Bo"):
            other.record_entity_fact(name, name, "is here")
        graph.refresh()
        other.record_entity_fact("Ana", "Ana", "has news")
        find = recollect.Memory.find

        def forgotten_meanwhile(*arguments: Any, **options: Any) -> Any:
            monkeypatch.setattr(recollect.Memory, "find", find)
            other.forget_where("kind=entity")
            return find(*arguments, **options)

        monkeypatch.setattr(recollect.Memory, "find", forgotten_meanwhile)
        assert graph.refresh().entities() == []


def test_an_expired_fact_is_no_observation() -> None:
    now = [datetime(2026, 1, 2, tzinfo=UTC)]
    with recollect.open(":memory:", clock=lambda: now[0]) as memory:
        graph = graph_of(memory)
        memory.record_entity_fact("bo", "Bo", "is asleep", expires=now[0] + timedelta(hours=1))
        assert graph.refresh().entities() == [Entity("Bo", "unknown", ("is asleep",))]
        now[0] += timedelta(hours=2)
        assert graph.refresh().entities() == []


def test_the_graph_of_a_scope_is_that_of_its_user() -> None:
    with recollect.open(":memory:") as memory:
        ana, bo = memory.scoped(user="ana"), memory.scoped(user="bo")
        of_ana, of_bo, of_all = graph_of(ana), graph_of(bo), graph_of(memory)
        assert write(ana, of_ana, ANA) == write(bo, of_bo, ANA) == [ANA]
        with bo.batch() as batch:
            writer = of_bo.writer(batch)
            writer.delete_entities(["Ana"])
        assert (of_ana.refresh().entities(), of_bo.refresh().entities()) == ([ANA], [])
        assert of_all.refresh().entities() == [ANA]


def test_records_that_state_no_entity_are_ignored() -> None:
    plain = recollect.Record(id="1", content="no entity", kind="entity")
    binary = recollect.Record(id="2", content=b"x", media_type="image/png", kind="entity", entity="e")
    half = recollect.Record(id="3", content="a b", kind="relation", metadata={"from": "a", "to": 3})
    graph = Graph([plain, binary, half])
    assert (graph.entities(), graph.relations(), len(graph)) == ([], [], 0)


def test_ids_depend_only_on_what_a_record_states() -> None:
    # Stores contain these ids: another derivation would store known facts again. The digest is that of sha256sum.
    assert node("Ana", "person")["id"] == node("Ana", "robot")["id"] == "node-fa27ffd2ddd5df411d53baf7"
    assert observation("Ana", "t", "x")["id"] != observation("Ana x", "t", "")["id"]
