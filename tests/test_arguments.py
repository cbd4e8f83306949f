"""Arguments as people write them: filters and times as text, and what a wrong call is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.errors import InvalidArgumentError, InvalidFilterError
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
