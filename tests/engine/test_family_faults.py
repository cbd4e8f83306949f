"""What went wrong with several parts once: moments, totals, refusals and rescues that knew one part only."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.engine.history_results import Erased
from recollect.engine.results import PartCounts
from recollect.errors import QuotaError
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing.machine import memory_on


def define(memory: Memory, key: str) -> None:
    memory.glossary.memorize(key, key.lower(), "abbreviation", "bot")


def keys(memory: Memory) -> list[str]:
    return [term["key"] for term in memory.glossary.list_all("bot")]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("seconds", [0, 5])
def test_what_is_written_after_a_snapshot_is_not_in_it_where_the_clock_stands_or_goes_back(
    tmp_path: Path, store: str, seconds: int
) -> None:
    now = [datetime(2026, 1, 3, tzinfo=UTC)]
    opened: Store = MemoryStore() if store == "memory" else SqliteStore(tmp_path / "a.db")
    with memory_on(opened, clock=lambda: now[0]) as memory:
        memory.remember("first", id="a")
        define(memory, "OLD")
        memory.snapshot("before")
        past = memory.at(memory.seq)
        now[0] -= timedelta(seconds=seconds)
        define(memory, "NEW")
        for moment in (memory.at("before"), past):
            assert (keys(moment), moment.stats()["parts"]["terms"]) == (["OLD"], 1)
        assert [each.metadata["key"] for each in memory.diff("before").parts["terms"].added] == ["NEW"]
        assert memory.rollback("before").parts["terms"].changed == 1
        assert keys(memory) == ["OLD"]


def test_a_batch_that_is_undone_leaves_a_quota_its_totals(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, embedder="none") as memory:
        memory.remember("a", id="a")
        define(memory, "ONE")
        define(memory, "TWO")
        memory.set_quota(records=4)
    with recollect.open(path, embedder="none") as memory:
        with pytest.raises(KeyError), memory.batch() as batch:
            batch.clear(parts=["terms"])
            batch.remember("b", id="b")
            raise KeyError
        memory.remember("c")
        with pytest.raises(QuotaError):
            memory.remember("d")
        assert memory.stats()["quota"]["records_used"] == 4


def test_a_filter_that_fails_in_one_part_forgets_nothing_of_another() -> None:
    def fails_on_a_term(record: recollect.Record) -> bool:
        if record.kind == "term":
            raise ValueError
        return True

    with recollect.open(":memory:", embedder="none") as memory:
        memory.remember("a", id="a")
        define(memory, "ONE")
        with memory.batch() as batch:
            with pytest.raises(ValueError, match=r"^$"):
                batch.forget_where(f.custom(fails_on_a_term))
            batch.remember("b", id="b")
        assert memory.stats()["parts"] == {"records": 2, "terms": 1}


def test_a_rescue_of_a_whole_store_reports_no_commit_that_only_follows_another_part(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        memory.remember("first")
        define(memory, "ONE")
        memory.remember("second")
        memory.keyed.write("plan", b"go")
        head = memory.head()
    assert recollect.rescue(tmp_path / "a.db", tmp_path / "b.db").lost == ()
    with recollect.open(tmp_path / "b.db", embedder="none") as memory:
        assert memory.head() == head


def test_the_results_of_earlier_releases_are_read() -> None:
    assert PartCounts.from_json(3).parts == {"records": 3}  # type: ignore[arg-type]
    data = Erased(ids=("a",), versions=1, parts={"terms": 2}).to_json()
    former = {**data, "beside": data["parts"]}
    del former["parts"]
    assert Erased.from_json(former) == Erased.from_json(data)
