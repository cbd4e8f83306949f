"""A filtered recall is exact: the ranking without the filter, less what the filter turns away."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.filters import filter_trees as own

import recollect
from recollect import filters as f
from recollect.engine.index.keeper import IndexKeeper
from recollect.engine.results import Hit
from recollect.engine.write.staging import SWEPT
from recollect.errors import NoMemoryError
from recollect.filters import Filter
from recollect.filters.tree import AllOf, Is
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.native import kernels as native_kernels
from recollect.indexes.scoring import scores
from recollect.ledger.commits import Branch
from recollect.operations import ORDERS, Order
from recollect.records.record import Record
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.view import SqliteView
from recollect.testing import TickingClock, memory_on
from recollect.testing.loopback import core_of

KERNELS = {"numpy": numpy_kernels.KERNELS, "native": native_kernels.NativeKernels()}
QUESTIONS = (
    "java",
    "java JavaScript it's",
    "what did ana say about new java lines?",
    "Straße on 2 January 2026",
    "100%",
)


def shown(hits: Any) -> list[Any]:
    return [(hit.record, hit.score, hit.confidence, dict(hit.why.shares), hit.why.words) for hit in hits]


def matching(hits: Any, where: Filter) -> list[Hit]:
    return [hit for hit in hits if where.matches(hit.record)]


def holding(stored: list[Record], forgotten: int, store: Store | None = None) -> recollect.Memory:
    memory = memory_on(store or MemoryStore(), clock=TickingClock())
    stored = [
        record.changed(tags=(*record.tags, *["standing:instruction"][at % 3 :])) for at, record in enumerate(stored)
    ]
    # A word that all have, so that a question reaches most.
    stored = [record.changed(content=f"{record.text} java") if record.text else record for record in stored]
    memory.remember_all(stored[: len(stored) // 2])
    memory.recall("java")  # so that the rest comes into a tail
    memory.remember_all(stored[len(stored) // 2 :])
    for record in stored[:forgotten]:
        memory.forget(record.id)
    return memory


@pytest.mark.parametrize("kernels", KERNELS)
@settings(max_examples=some(150))
@given(
    stored=st.lists(own.records(), min_size=4, max_size=12, unique_by=lambda record: record.id),
    data=st.data(),
    question=st.sampled_from(QUESTIONS),
    k=st.integers(1, 5),
    forgotten=st.integers(0, 2),
    user=st.none() | own.names,
)
def test_a_filtered_recall_is_the_ranking_less_what_the_filter_turns_away(
    kernels: str, stored: list[Record], data: st.DataObject, question: str, k: int, forgotten: int, user: str | None
) -> None:
    where = data.draw(own.trees_about(stored))
    with patch.object(scores, "chosen", lambda: KERNELS[kernels]), holding(stored, forgotten) as whole:
        memory = whole.scoped(user=user) if user else whole
        ranking = memory.recall(question, k=1000)
        found = memory.recall(question, k=k, where=where)
        assert shown(found) == shown(matching(ranking, where)[:k])
        assert {hit.record.id for hit in found.standing} == {hit.record.id for hit in matching(ranking.standing, where)}
        assert found.plan.passed <= ranking.plan.passed
        if found.plan.narrowed is not None:
            assert len(found) <= found.plan.narrowed <= len(stored)


@pytest.mark.parametrize("kind", ["memory", "file"])
@settings(max_examples=some(60))
@given(
    stored=st.lists(own.records(), min_size=4, max_size=12, unique_by=lambda record: record.id),
    data=st.data(),
    order=st.sampled_from(ORDERS),
    limit=st.none() | st.integers(1, 3),
    user=st.none() | own.names,
)
@pytest.mark.in_process
def test_what_is_found_counted_and_forgotten_is_the_same_with_an_index_in_memory_and_without(
    kind: str, stored: list[Record], data: st.DataObject, order: Order, limit: int | None, user: str | None
) -> None:
    where = data.draw(own.trees_about(stored))
    marked = where & (f.tag("never") | ~f.tag("never"))  # true of all, and such as the index is asked for
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        store = MemoryStore() if kind == "memory" else SqliteStore(Path(folder) / "a.db")
        whole = stack.enter_context(holding(stored, 1, store))
        memory = whole.scoped(user=user) if user else whole
        assert loaded(whole)
        wanted = memory.find(where=f.custom(where.matches), order=order, limit=limit)
        assert memory.find(where=marked, order=order, limit=limit) == wanted
        assert memory.find(where=where, order=order, limit=limit) == wanted
        count = memory.count(f.custom(where.matches))
        assert memory.count(marked) == count
        kept = whole.find(where=f.custom(lambda record: not (where.matches(record) and user in (None, record.user))))
        assert memory.forget_where(marked) == count
        assert whole.find() == kept


def loaded(memory: recollect.Memory) -> bool:
    with core_of(memory).store.read() as view:
        return core_of(memory).keeper.loaded(view, memory._branch, in_file=True) is not None


def test_an_index_is_in_memory_from_the_first_recall_on_unless_it_is_far_behind(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        assert not loaded(memory)
        memory.remember_all([f"tea {at}" for at in range(3000)])
        assert not loaded(memory)
        memory.recall("tea")
        assert loaded(memory)
        memory.remember_all([f"more tea {at}" for at in range(1000)])
        assert loaded(memory)
        keeper, branch = core_of(memory).keeper, memory._branch
        keeper._merge_now(branch, keeper.entry(branch))
        cached = keeper.entry(branch).value
        assert cached is not None
        assert cached.view is None  # no question was asked since
        assert loaded(memory)
        memory.remember_all([f"most tea {at}" for at in range(1001)])
        assert not loaded(memory)
        memory.recall("tea")
        assert loaded(memory)
        with core_of(memory).store.read() as view:
            head = view.head(branch)  # from here on it sees nothing new
            memory.remember("tea in between")
            memory.recall("tea")
            assert keeper.entry(branch).seq == head.seq + 1
            assert keeper.loaded(view, branch, in_file=True) is None


@pytest.mark.files
def test_an_index_in_a_file_is_in_memory_unless_it_is_far_behind_or_of_another_history(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"

    def opened_with_it() -> bool:
        with recollect.open(path) as memory:
            return loaded(memory)

    with recollect.open(path) as memory:
        memory.remember_all([f"tea {at}" for at in range(1500)])
        memory.recall("tea")
        memory.backup(copy)
    assert opened_with_it()
    (kept,) = (tmp_path / "a.db.index").glob("*.seg")
    whole = kept.read_bytes()
    for damaged in (b"", whole[:20], whole[:100], b"x" + whole[1:], whole[:8] + b"\xff" * 8 + whole[16:]):
        kept.write_bytes(damaged)
        assert not opened_with_it()
    kept.write_bytes(whole)
    with recollect.open(path) as memory:
        memory.remember_all([f"more tea {at}" for at in range(900)])
    assert opened_with_it()
    with recollect.open(path) as memory:
        memory.remember_all([f"most tea {at}" for at in range(1001)])
    assert not opened_with_it()
    # The store is put back to what it was before the index, and something else comes.
    with recollect.open(path) as memory:
        memory.recall("tea")
        keeper, branch = core_of(memory).keeper, memory._branch
        keeper._merge_now(branch, keeper.entry(branch))
        seq = memory.seq
    assert opened_with_it()
    copy.replace(path)
    assert not opened_with_it()
    with recollect.open(path) as memory:
        while memory.seq < seq:
            memory.remember(f"the tea of another history, {memory.seq}")
        assert not loaded(memory)


@pytest.mark.files
def test_an_index_whose_file_is_damaged_is_not_rebuilt_for_reads_that_need_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember_all([{"content": f"tea {at}", "tags": (f"t{at % 100}",)} for at in range(1500)])
        memory.recall("tea")
    (kept,) = (tmp_path / "a.db.index").glob("*.seg")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-200] + b"x" * 200)
    with recollect.open(path) as memory, patch.object(IndexKeeper, "start", side_effect=AssertionError):
        for _ in range(3):
            assert len(memory.find(where=f.tag("t1"))) == memory.count(f.tag("t1")) == 15
        assert memory.forget_where(f.tag("t2")) == 15
        assert caplog.text.count("cannot be used") == 1  # nor read again each time
    with recollect.open(path) as memory:
        assert len(memory.recall("tea", k=2000)) == 1485


@pytest.mark.in_process  # a server finds a few first, for which the index is worth reading
def test_an_index_in_a_file_is_not_read_for_what_the_store_finds_by_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember_all([{"content": f"tea {at}", "tags": ("red",), "user": f"u{at}"} for at in range(1500)])
        memory.recall("tea")
    with recollect.open(path) as memory:
        for where in (f.user("u7") & f.tag("red"), f.id("x") & f.tag("red")):
            memory.find(where=where)
            memory.find(where=where, order="importance", limit=3)
            memory.forget_where(where & f.tag("blue"))
        memory.find(order="importance", limit=300)
        memory.scoped(user="u7").count(f.tag("red"))
        assert not list(core_of(memory).keeper.entries)
        memory.find(order="importance", limit=3)
        assert list(core_of(memory).keeper.entries)


@pytest.mark.parametrize("kind", ["memory", "file"])
@pytest.mark.in_process
def test_what_was_derived_from_a_record_is_found_among_4_000_without_reading_the_others(
    kind: str, tmp_path: Path
) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "a.db")
    with memory_on(store) as memory:
        memory.remember_all(
            [
                {"content": f"tea {at}", "derived_from": (f"s{at % 200}",), "supersedes": (f"r{at % 800}",)}
                for at in range(4_000)
            ]
        )
        memory.recall("tea")
        read = 0

        def counted(record: Record) -> bool:
            nonlocal read
            read += 1
            return True

        assert len(memory.find(where=f.custom(counted) & f.contains("777"))) == 4
        assert read == 4_000  # it counts
        for where, count in (
            (f.derived_from("s7"), 20),
            (f.supersedes("r7"), 5),
            (f.derived_from("s7") & f.supersedes("r7", "r207"), 10),
            (f.derived_from("s7", "s8") & ~f.supersedes("r7") & f.valid_at("2026-03-01"), 35),
        ):
            read = 0
            assert len(memory.find(where=f.custom(counted) & where)) == memory.count(where) == count
            assert read == count


def test_where_memory_does_not_suffice_for_an_index_the_store_answers_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all([{"content": f"tea {at}", "tags": ("red",)} for at in range(3)])
        memory.recall("tea")
        memory.remember("more tea", tags=("red",))
        with patch.object(IndexKeeper, "_bring", side_effect=MemoryError):
            assert len(memory.find(where=f.tag("red"))) == 4
            assert "changes no result" in caplog.text
            with pytest.raises(NoMemoryError):
                memory.recall("tea")
        assert len(memory.find(where=f.tag("red"))) == 4
        assert len(memory.recall("tea")) == 4


def test_what_a_batch_wrote_is_forgotten_by_tag_too(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all([{"content": f"tea {at}", "tags": ("red",)} for at in range(3)])
        memory.recall("tea")
        with memory.batch() as batch:
            batch.remember("red wine", tags=("red",))
            batch.update(memory.find(limit=1)[0].id, tags=("blue",))
            assert batch.forget_where(f.tag("red")) == 3
        assert [record.tags for record in memory.find()] == [("blue",)]


def test_those_that_are_due_go_with_those_that_are_forgotten_by_tag() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    memory = memory_on(MemoryStore(), clock=lambda: now[0])
    due = 2 * SWEPT  # more than any commit takes with it
    memory.remember_all([{"content": f"tea {at}", "tags": ("red",), "ttl": 60} for at in range(due)])
    memory.remember_all([{"content": f"more tea {at}", "tags": ("red",), "ttl": 120} for at in range(3)])
    memory.recall("tea")
    now[0] += timedelta(seconds=90)
    assert memory.forget_where(f.tag("red")) == 3
    assert Counter(change.cause for change in memory.changes()[-1].changes) == {"expired": due, "forgotten": 3}


@pytest.mark.parametrize("limit", [1, 2, 4, 7, 300])
def test_the_most_important_are_found_by_the_index_as_the_store_finds_them(limit: int, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        for at in range(30):
            memory.remember(f"tea {at}", id=f"{at * 7 % 30:02}", importance=(None, 0.5, 0.5, 0.9, 0.5)[at % 5])
        wanted = memory.find(order="importance", limit=limit)
        memory.recall("tea")
        assert loaded(memory)
        assert memory.find(order="importance", limit=limit) == wanted
        assert wanted == sorted(memory.find(), key=lambda each: (-(each.importance or -1.0), each.id))[:limit]


@pytest.mark.files
def test_some_that_are_the_most_important_are_named_to_the_store(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        for at in range(300):
            memory.remember(f"tea {at}", id=f"{at:03}", importance=at % 100 / 100)
        memory.recall("tea")
        with patch.object(SqliteView, "select", autospec=True, side_effect=SqliteView.select) as select:
            assert [record.id for record in memory.find(order="importance", limit=4)] == ["099", "199", "299", "098"]
        (where,) = [call.args[2] for call in select.call_args_list]
        assert isinstance(where, AllOf)
        assert isinstance(where.parts[0], Is)
        assert sorted(where.parts[0].values) == ["098", "099", "199", "299"]


@pytest.mark.files
def test_the_index_answers_for_tags_and_metadata_only_where_it_is_in_memory(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all([{"content": f"tea {at}", "tags": ("red",) if at % 50 == 0 else ()} for at in range(300)])
        asked: list[Filter] = []
        read = SqliteView.select

        def noting(view: SqliteView, branch: Branch, where: Filter, **more: Any) -> Any:
            asked.append(where)
            return read(view, branch, where, **more)

        with patch.object(SqliteView, "select", noting):
            first, count = memory.find(where=f.tag("red")), memory.count(f.tag("red"))
            assert asked == [AllOf((f.everything(), f.tag("red")))] * 2
            memory.recall("tea")
            asked.clear()
            assert (memory.find(where=f.tag("red")), memory.count(f.tag("red"))) == (first, count)
            assert memory.count(f.tag("red") & f.contains("tea")) == count
            assert memory.count(f.tag("blue") & f.contains("tea")) == 0
            assert len(asked) == 2  # where none is left, SQL counts none by itself
            for where in asked:
                assert isinstance(where, AllOf)
                named = where.parts[0]
                assert isinstance(named, Is)
                assert sorted(named.values) == sorted(record.id for record in first)
            # What names its records itself is no question for an index.
            asked.clear()
            wanted = f.id(first[0].id) & f.tag("red")
            assert memory.find(where=wanted) == [first[0]]
            assert asked == [AllOf.of(f.everything(), wanted)]
            asked.clear()
            assert memory.forget_where(f.tag("red")) == count
            (where,) = asked
            assert isinstance(where, AllOf)
            assert isinstance(where.parts[1], Is)


def test_the_plan_tells_how_many_records_the_index_admits_for_a_filter() -> None:
    stored = [
        {
            "content": "tea " * (1 + at % 7) + f"{at}",
            "tags": ("red",) if at % 2 else (),
            "metadata": {"n": at, "title": f"Cup {at}"},
        }
        for at in range(40)
    ]
    with recollect.open(":memory:") as memory:
        memory.remember_all(stored)
        for where, narrowed in (
            (f.everything(), None),
            (f.contains("tea 1"), None),
            (f.tag("red"), 20),
            (~f.tag("red"), 20),
            (f.tag("blue"), 0),
            (f.tag("red") & f.contains("tea 1"), 20),
            (f.tag("red") & f.meta("n"), 20),
            (f.meta("title", contains="cup"), 40),
            (f.meta("title", "Cup 7"), 1),
        ):
            for k in (3, 100):
                plan = memory.recall("tea", k, where=where).plan
                assert (plan.narrowed, plan.passed) == (narrowed, 40 if narrowed is None else narrowed)


@pytest.mark.parametrize("kernels", KERNELS)
def test_turns_that_a_filter_turns_away_limit_the_answers_next_to_them_as_without_it(
    kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "chosen", lambda: KERNELS[kernels])
    rng, limited = random.Random(5), 0
    said = ("I eat a rice", "I drive a bus to the lake", "I drive my van to the city on most days", "I like soup")
    replies = ("Yes.", "Oh, of course!", "Well, really nice, on most days I think so too", "Where do I drive my bus?")
    for _ in range(8):
        turns = [
            {
                "role": role,
                "content": f"{rng.choice(texts)}{' now' * (rng.random() < 0.2)}",
                "conversation": f"c{at // 6}",
                "kind": "conversation",
            }
            for at in range(60)
            for role, texts in [rng.choice([("user", said), ("assistant", replies)])]
        ]
        with memory_on(MemoryStore(), clock=TickingClock()) as memory:
            memory.remember_all(turns)
            for question in ("Where do I drive to?", "Do I drive a car to the lake?", "What do I eat on most days?"):
                every = {hit.record.id: (hit.score, dict(hit.why.shares)) for hit in memory.recall(question, 60)}
                for hit in (*memory.recall(question, 60, "role=assistant"), *memory.recall(question, 60, "role=user")):
                    assert (hit.score, dict(hit.why.shares)) == every[hit.record.id]
                    limited += "limit" in hit.why.shares
    assert limited > 5
