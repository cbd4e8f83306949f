"""The order "last", first pages that the index decides, and the times of last commits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import InvalidArgumentError
from recollect.operations import ORDERS, Find
from recollect.records.record import Record
from recollect.stores.sqlite.view import SqliteView
from recollect.stores.values import in_order
from recollect.testing import TickingClock

EVERYWHERE = pytest.mark.stores("memory", "sqlite", "loopback", clock=TickingClock)


def fill(memory: Memory, count: int = 300) -> None:
    """Records of three conversations and of none, with many equal times, positions and importances."""
    pick = random.Random(5)
    memory.remember_all(
        [
            {
                "content": f"note {number}",
                "id": f"id {number * 7919 % count:03}",
                "conversation": pick.choice(["a", "b", "c", None]),
                "position": pick.choice([None, *range(40)]),
                "time": f"2026-03-{pick.randint(1, 9):02}",
                "importance": pick.choice([None, 0.0, 0.5, 1.0]),
                "tags": pick.choice([["rare"], [], [], []]),
                "metadata": {"n": number % 10},
            }
            for number in range(count)
        ]
    )


@EVERYWHERE
@pytest.mark.parametrize("order", ORDERS)
def test_a_first_page_is_the_beginning_of_the_whole_order(memory: Memory, order: str) -> None:
    fill(memory)
    memory.recall("note 7")  # loads the index
    every = memory.find(order="id")
    conditions = (
        f.everything(),
        f.conversation("b"),
        f.conversation("b") & f.tag("rare"),
        f.tag("rare"),
        f.meta("n", 3),
        f.meta("n", at_least=8) & ~f.conversation("a", "b"),
    )
    for where in conditions:
        expected = [record.id for record in in_order(filter(where.matches, every), order)]
        for limit in (1, 5, 17, 200, None):
            page = memory.find(where, order=order, limit=limit)  # type: ignore[arg-type]
            assert [record.id for record in page] == expected[:limit]
            if page.cursor and limit is not None and limit < 100:
                following = memory.find(where, order=order, limit=limit, after=page.cursor)  # type: ignore[arg-type]
                assert [record.id for record in following] == expected[limit : 2 * limit]


@pytest.mark.in_process
@pytest.mark.parametrize("order", ["newest", "oldest", "last"])
def test_a_first_page_of_old_matches_reads_no_other_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all(
            [
                {"content": f"note {number}", "conversation": "c", "position": number, "tags": ["old"][: number < 300]}
                for number in range(2000)
            ]
        )
        memory.recall("note 7")  # loads the index
        read: list[int] = []
        select = SqliteView.select

        def counted(self: SqliteView, *args: Any, **kwargs: Any) -> Iterator[Record]:
            for record in select(self, *args, **kwargs):
                read.append(1)
                yield record

        monkeypatch.setattr(SqliteView, "select", counted)
        found = memory.find(f.tag("old"), limit=5, order=order)  # type: ignore[arg-type]
        first = [0, 1, 2, 3, 4] if order == "oldest" else [299, 298, 297, 296, 295]
        assert [record.position for record in found] == first
        assert len(read) == 5


@EVERYWHERE
def test_the_last_turns_come_first(memory: Memory) -> None:
    for position in (3, 0, 2, 1, 10):
        memory.remember(f"turn {position}", conversation="c", position=position, time="2026-03-01")
    memory.remember("elsewhere", conversation="d", position=99)
    found = memory.find(f.conversation("c"), order="last", limit=3)
    assert [record.content for record in found] == ["turn 10", "turn 3", "turn 2"]


@EVERYWHERE
def test_each_record_comes_with_the_time_of_its_last_commit(memory: Memory) -> None:
    memory.remember("one", id="a")
    memory.remember("two", id="b")
    before = memory.seq
    memory.update("a", content="three")
    times = {commit.seq: commit.time for commit in memory.log()}
    found = memory.find(order="id", with_commit=True)
    assert [record.id for record in found] == ["a", "b"]
    assert found.committed == (times[3], times[2])
    assert all(each is not None and each.utcoffset() == timedelta(0) for each in found.committed)
    assert memory.find().committed == ()
    assert memory.at(before).find(order="id", with_commit=True).committed == (times[1], times[2])


def test_a_list_of_several_answers_has_all_times(memory: Memory) -> None:
    """Over a server, 2,500 records are several answers."""
    memory.remember_all([f"note {number}" for number in range(2500)])
    found = memory.find(order="id", with_commit=True)
    assert len(found) == len(found.committed) == 2500
    times = {commit.time for commit in memory.log(limit=10)}
    assert set(found.committed) <= times
    assert len(memory.find(limit=1, with_commit=True).committed) == 1


@EVERYWHERE
def test_a_scope_has_the_times_of_its_own_records(memory: Memory) -> None:
    memory.scoped(user="eva").remember("hers", id="a")
    his = memory.scoped(user="tom")
    his.remember("first", id="b")
    his.remember("second", id="a")
    times = {commit.seq: commit.time for commit in memory.log()}
    for order in ORDERS:
        found = his.find(order=order, with_commit=True)
        committed = {record.id: time for record, time in zip(found, found.committed, strict=True)}
        assert committed == {"b": times[2], "a": times[3]}


def test_a_batch_has_no_time_yet_for_what_it_writes(memory: Memory) -> None:
    memory.remember("stored", id="a")
    with memory.batch() as batch:
        batch.remember("not yet", id="b")
        first, second = batch.find(order="id", with_commit=True).committed
        assert first is not None
        assert second is None


def test_with_commit_is_a_flag(memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError, match="with_commit"):
        memory.execute(Find(with_commit=1))  # type: ignore[arg-type]


def test_every_order_has_a_key_that_no_two_records_share() -> None:
    one, other = Record(id="a", content="x"), Record(id="b", content="x")
    for order in ORDERS:
        assert [record.id for record in in_order([other, one], order)] == ["a", "b"]
