"""Arguments as people write them: filters and times as text, and what a wrong call is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

import recollect
from recollect import filters as f
from recollect import operations
from recollect.engine.results import MemoryStats, QuotaUse, VectorCounts
from recollect.errors import InvalidArgumentError, InvalidFilterError
from recollect.records.record import FIELD_NAMES, FieldChanges, Fields
from recollect.testing import TickingClock


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    path = ":memory:" if request.param == "memory" else tmp_path / "a.db"
    with recollect.open(path, clock=TickingClock()) as opened:
        yield opened


class TestFiltersAsText:
    @pytest.fixture
    def memory(self, memory: recollect.Memory) -> recollect.Memory:
        memory.remember("Ana likes window seats", id="a", user="ana", tags=["old"])
        memory.remember("O'Brien likes aisle seats", id="b", user="O'Brien")
        return memory

    def test_every_call_with_a_filter_takes_its_text_form(self, memory: recollect.Memory) -> None:
        where = "user=O'Brien and not tag=old"
        with memory.batch() as batch:
            for calls in (memory, batch):
                assert [hit.record.id for hit in calls.recall("seats", where=where)] == ["b"]
                assert [record.id for record in calls.grep("seats", where=where)] == ["b"]
                assert [record.id for record in calls.find(where)] == ["b"]
                assert [record.id for record in calls.recent(5, where)] == ["b"]
                assert calls.count(where) == 1
            assert batch.forget_where("content~'window'") == 1
        assert memory.forget_where(where) == 1
        assert memory.count() == 0

    def test_the_awaited_calls_take_it_too(self, memory: recollect.Memory) -> None:
        async def count() -> int:
            return await recollect.AsyncMemory(memory).count("user='ana'")

        assert asyncio.run(count()) == 1

    @pytest.mark.parametrize("text", ["", "  ", "usr=ana", "user='ana"])
    def test_a_text_that_is_no_filter_is_refused_and_forgets_nothing(self, memory: recollect.Memory, text: str) -> None:
        for call in (memory.find, memory.count, memory.forget_where):
            with pytest.raises(InvalidFilterError):
                call(text)
        with pytest.raises(InvalidArgumentError, match="must be a filter"):
            memory.forget_where(None)  # type: ignore[arg-type]
        assert memory.count() == 2


class TestTimes:
    DAY = datetime(2026, 3, 1, tzinfo=UTC)

    @pytest.mark.parametrize("time", ["2026-03-01", "2026-03-01T00:00", "2026-03-01T01:00+01:00", date(2026, 3, 1)])
    def test_a_time_is_a_datetime_a_date_or_iso_8601_text(self, memory: recollect.Memory, time: str | date) -> None:
        made = memory.remember("Ana moved", time=time, valid_from=time, valid_to=time, expires="2099-01-01")
        assert (made.time, made.valid_from, made.valid_to) == (self.DAY, self.DAY, self.DAY)
        assert made.expires == datetime(2099, 1, 1, tzinfo=UTC)
        memory.update(made.id, time="2026-04-01", expires=None)
        changed = memory.get(made.id)
        assert changed is not None
        assert (changed.time, changed.expires) == (datetime(2026, 4, 1, tzinfo=UTC), None)
        report = memory.remember_all([{"content": "Bob moved", "time": time}])
        assert report.results[0].record is not None
        assert report.results[0].record.time == self.DAY
        assert [hit.record.content for hit in memory.recall("who moved yesterday?", reference="2026-03-02", k=1)] == [
            "Bob moved"
        ]
        assert len(memory.recall("who moved yesterday?", reference=date(2026, 3, 2))) == 2

    def test_a_ttl_is_seconds_or_a_timedelta(self, memory: recollect.Memory) -> None:
        for ttl in (86_400, timedelta(days=1)):
            made = memory.remember(f"Ana is away for {ttl}", ttl=ttl)
            assert made.expires is not None
            assert made.time is not None
            assert made.expires - made.time == timedelta(days=1)
        with pytest.raises(InvalidArgumentError, match="ttl must be above 0"):
            memory.remember("Bob is away", ttl=timedelta(0))

    def test_the_filters_of_times_take_them_too(self) -> None:
        assert f.after("2026-03-01") == f.after(date(2026, 3, 1)) == f.after(self.DAY)
        assert f.before("2026-03-01T02:00+02:00") == f.before(self.DAY)
        assert f.between("2026-03-01", "2026-03-01T00:00") == f.between(self.DAY, self.DAY)

    @pytest.mark.parametrize("end", ["2026-03-31", date(2026, 3, 31)])
    def test_between_includes_a_last_day_that_is_a_date(self, memory: recollect.Memory, end: str | date) -> None:
        memory.remember("late", time=datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC))
        memory.remember("later", time=datetime(2026, 4, 1, tzinfo=UTC))
        assert [record.content for record in memory.find(f.between("2026-03-01", end))] == ["late"]

    def test_what_is_no_time_is_refused_with_an_example(self, memory: recollect.Memory) -> None:
        for call in (
            lambda: memory.remember("a", time="last week"),
            lambda: memory.recall("a", reference="last week"),
            lambda: f.after("last week"),
            lambda: f.between("2026-03-01", "last week"),
        ):
            with pytest.raises(recollect.RecollectError, match="such as 2026-03-01 or 2026-03-01T09:30:00"):
                call()
        with pytest.raises(recollect.RecollectError, match=r"reference .* is naive"):
            memory.recall("a", reference=datetime(2026, 3, 1))

    def test_an_operation_with_a_date_passes_through_json(self) -> None:
        sent = operations.Remember(content="a", fields={"time": date(2026, 3, 1)}, ttl=timedelta(hours=1))  # type: ignore[arg-type]
        again = operations.from_json(sent.to_json())
        assert isinstance(again, operations.Remember)
        assert again.fields["time"] == self.DAY
        assert again.ttl == 3600.0
        asked = operations.Recall(question="a", reference="2026-03-01T09:00+01:00")  # type: ignore[arg-type]
        assert operations.from_json(asked.to_json()) == asked
        assert asked.reference == datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=1)))


class TestChoices:
    def test_the_typed_fields_are_those_of_a_record(self) -> None:
        assert {*Fields.__annotations__, "id", "content"} == set(FIELD_NAMES)
        assert {*FieldChanges.__annotations__, "id"} == set(FIELD_NAMES)

    @pytest.mark.parametrize("path", [":memory:", "a.db"])
    def test_an_unknown_durability_is_refused_for_every_store(self, tmp_path: Path, path: str) -> None:
        with pytest.raises(InvalidArgumentError, match="durability must be one of full, normal, got 'off'"):
            recollect.open(path if path == ":memory:" else tmp_path / path, durability="off")  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []

    def test_the_keys_of_stats_are_the_typed_ones(self, memory: recollect.Memory) -> None:
        memory.set_quota(records=5)
        memory.remember("a", user="ana")
        assert set(memory.stats()) == set(MemoryStats.__annotations__)
        assert set(memory.stats()["quota"]) == set(QuotaUse.__annotations__)
        assert set(memory.vector_stats()) == set(VectorCounts.__annotations__)
        scoped = memory.scoped(user="ana")
        assert set(scoped.stats()) == set(MemoryStats.__annotations__) - {"seq", "root", "quota", "store"}
        assert set(scoped.vector_stats()) == set(VectorCounts.__annotations__) - {"watermark", "models"}
