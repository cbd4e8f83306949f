"""Limits of a namespace: quotas, eviction, expiry and caps, on every store."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.examples import FULL, spread
from tests.exports import exported

import recollect
from recollect.engine.settings import Quota
from recollect.engine.write.quotas import Room, UsageTotals, UsageTotalsCache
from recollect.errors import (
    ConflictError,
    DamagedStoreError,
    InvalidArgumentError,
    InvalidRecordError,
    QuotaError,
    RecollectError,
    ScopeError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import root_of, version_hash
from recollect.memory import Memory
from recollect.operations import GetQuota, Per, Remember, WhenFull
from recollect.records.codec import encode_json
from recollect.stores.base import Store
from recollect.stores.derived.usage import UsageFile
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import TickingClock, memory_on
from recollect.testing.loopback import core_of

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(folder / "quota.db", durability="normal"),
}


@pytest.fixture(params=STORES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    return memory_on(STORES[request.param](tmp_path), clock=TickingClock())


def ids(memory: Memory) -> set[str]:
    return {record.id for record in memory.find()}


def causes(memory: Memory) -> list[tuple[str, str]]:
    return [(change.id, change.cause) for commit in memory.changes() for change in commit.changes if not change.after]


@pytest.mark.promise("quota.refused")
def test_a_write_beyond_the_quota_is_refused_inside_its_transaction_and_changes_nothing(memory: Memory) -> None:
    memory.set_quota(records=2)
    memory.remember("one", id="1")
    memory.remember("two", id="2")
    before = memory.root
    with pytest.raises(QuotaError, match="is 2 records, and this write would make it 3; nothing was changed"):
        memory.remember("three", id="3")
    with pytest.raises(QuotaError), memory.batch() as batch:
        batch.update("1", content="changed")
        batch.remember("three", id="3")
    assert (memory.root, ids(memory)) == (before, {"1", "2"})
    memory.remember("two", id="2")
    memory.update("2", content="changed")  # no more than before
    with memory.batch() as batch:
        batch.forget("1")
        batch.remember("three", id="3")
    assert ids(memory) == {"2", "3"}
    assert memory.check() == []


def test_in_bulk_what_fits_is_stored_and_the_rest_is_reported(memory: Memory) -> None:
    memory.set_quota(records=3)
    report = memory.remember_all(["a", "b", "c", "d", "e"])
    assert [outcome.status for outcome in report.results] == ["created"] * 3
    assert [(each.item, type(each.reason)) for each in report.failed] == [("d", QuotaError), ("e", QuotaError)]
    with pytest.raises(QuotaError):
        memory.remember_all(["f"], on_error="raise")


@pytest.mark.promise("quota.bytes")
def test_bytes_are_those_of_the_canonical_records(memory: Memory) -> None:
    record = memory.remember("x" * 100, id="1")
    memory.set_quota(bytes=len(record.to_bytes()) + 10)
    with pytest.raises(QuotaError, match="bytes"):
        memory.update("1", content="x" * 120)
    memory.update("1", content="x" * 105)
    assert memory.stats()["quota"]["bytes_used"] == len(record.to_bytes()) + 5


@pytest.mark.promise("evict.recent")
def test_the_least_recently_used_goes_first_and_recalling_and_getting_are_uses(memory: Memory) -> None:
    memory.set_quota(records=3, when_full="least recent")
    for text in ("apple", "pear", "plum"):
        memory.remember(text, id=text)
    assert memory.recall("apple")[0].record.id == "apple"
    memory.remember("quince", id="quince")
    assert ids(memory) == {"apple", "plum", "quince"}
    assert memory.get("plum")
    memory.remember("fig", id="fig")
    assert ids(memory) == {"plum", "quince", "fig"}
    assert causes(memory) == [("pear", "evicted"), ("apple", "evicted")]
    assert memory.check() == []


@pytest.mark.promise("evict.important")
def test_the_least_important_goes_first_and_of_those_the_longest_unused(memory: Memory) -> None:
    memory.set_quota(records=3, when_full="least important")
    memory.remember("a", id="a", importance=0.9)
    memory.remember("b", id="b", importance=0.1)
    memory.remember("c", id="c", importance=0.1)
    memory.recall("b")
    memory.remember("d", id="d", importance=0.5)
    memory.remember("e", id="e", importance=0.5)
    assert ids(memory) == {"a", "d", "e"}
    assert causes(memory) == [("c", "evicted"), ("b", "evicted")]


@pytest.mark.promise("evict.oldest")
def test_the_record_with_the_earliest_time_goes_first_however_it_was_used(memory: Memory) -> None:
    memory.set_quota(records=3, when_full="oldest")
    for name, day in (("second", 2), ("first", 1), ("third", 3)):
        memory.remember(name, id=name, time=f"2026-10-0{day}")
    assert memory.get("first")
    memory.remember("fourth", id="fourth", time="2026-10-04")
    memory.remember("ancient", id="ancient", time="1999-01-01")  # what is written now stays
    assert ids(memory) == {"third", "fourth", "ancient"}
    memory.remember("fifth", id="fifth", time="2026-10-05")
    assert causes(memory) == [(each, "evicted") for each in ("first", "second", "ancient")]


@pytest.mark.promise("evict.oldest")
def test_records_without_a_time_go_before_the_oldest(memory: Memory) -> None:
    memory.set_quota(records=2, when_full="oldest")
    memory.remember("dated", id="dated", time="1999-01-01")
    memory.execute(Remember(content="undated", id="undated", fields={"time": None}, exact=True))
    assert memory.find("id=undated")[0].time is None
    memory.remember("new", id="new", time="2026-10-01")
    assert ids(memory) == {"dated", "new"}


@pytest.mark.promise("evict.order")
def test_what_is_due_goes_before_anything_live_and_what_is_pinned_never(memory: Memory) -> None:
    memory.set_quota(records=3, when_full="least recent")
    memory.remember("pinned", id="pinned", pinned=True)
    memory.remember("old", id="old")
    memory.remember("due", id="due", ttl=1)
    memory.remember("new", id="new")
    assert ids(memory) == {"pinned", "old", "new"}
    assert causes(memory) == [("due", "expired")]
    memory.update("old", pinned=True)
    memory.update("new", pinned=True)
    before = memory.root
    with pytest.raises(QuotaError, match="evicting every record that may be evicted does not make enough room"):
        memory.remember("more", id="more")
    assert memory.root == before


def test_a_commit_does_not_evict_what_it_wrote_itself(memory: Memory) -> None:
    memory.set_quota(records=2, when_full="least recent")
    memory.remember("held", id="held")
    with pytest.raises(QuotaError), memory.batch() as batch:
        for number in range(3):
            batch.remember(f"text {number}", id=str(number))
    assert ids(memory) == {"held"}
    with memory.batch() as batch:
        for number in range(2):
            batch.remember(f"text {number}", id=str(number))
    assert ids(memory) == {"0", "1"}


def test_eviction_is_an_event_for_listeners_and_the_history_stays(memory: Memory) -> None:
    heard: list[recollect.Change] = []
    with memory.listen(lambda commit: heard.extend(commit.changes)) as subscription:
        memory.set_quota(records=1, when_full="least recent")
        memory.remember("first", id="1")
        memory.remember("second", id="2")
        subscription.drain()
    assert [(change.id, change.cause) for change in heard] == [("1", "written"), ("1", "evicted"), ("2", "written")]
    assert [hit.record.id for hit in memory.recall("first second")] == ["2"]


@pytest.mark.parametrize("per", [None, "user"])
def test_an_update_that_adds_no_record_is_made_beyond_a_quota_of_records(memory: Memory, per: Per | None) -> None:
    for number in range(3):
        memory.remember(f"Ana likes tea number {number}", id=f"r{number}", user="ana")
    memory.set_quota(records=1, per=per)
    assert memory.update("r1", importance=0.7, tags=["longer"]).importance == 0.7
    with pytest.raises(QuotaError, match="would make it 4"):
        memory.remember("Ana likes coffee", user="ana")
    size = sum(len(record.to_bytes()) for record in memory.find())
    memory.set_quota(records=1, bytes=size - 1, per=per)
    memory.update("r1", importance=None, tags=None)  # smaller
    memory.set_quota(bytes=10, per=per)
    memory.update("r2", content="Ana")
    with pytest.raises(QuotaError, match="bytes"):
        memory.update("r2", content="Ana likes green tea")


def test_a_quota_that_is_lowered_is_reached_in_steps_and_one_taken_away_binds_no_more(memory: Memory) -> None:
    memory.remember_all([f"text {number}" for number in range(2500)])
    memory.set_quota(records=10, when_full="least recent")
    memory.remember("one", id="one")
    assert memory.count() == 1501
    memory.remember("two", id="two")
    memory.remember("three", id="three")
    assert memory.count() == 10
    memory.set_quota()
    assert "quota" not in memory.stats()
    memory.remember_all([f"other text {number}" for number in range(50)])
    assert memory.count() == 60


def test_quotas_are_of_one_namespace_and_no_scope_can_change_them(memory: Memory) -> None:
    memory.set_quota(records=1)
    memory.remember("one")
    other = memory.namespace("other")
    other.remember_all(["one", "two"])
    with pytest.raises(ScopeError):
        memory.scoped(user="ana").set_quota()
    with pytest.raises(QuotaError):
        memory.scoped(user="ana").remember("two")


@pytest.mark.parametrize(
    "arguments",
    [
        {"records": 0},
        {"records": True},
        {"bytes": -1},
        {"bytes": 1.5},
        {"records": 1, "when_full": "lru"},
        {"when_full": "least recent"},
    ],
)
def test_a_quota_that_makes_no_sense_is_refused(memory: Memory, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        memory.set_quota(**arguments)


@pytest.mark.promise("quota.everyone")
def test_another_process_obeys_the_quota_and_knows_what_was_used(tmp_path: Path) -> None:
    path = tmp_path / "quota.db"
    clock = TickingClock()
    with recollect.open(path, clock=clock) as first:
        first.set_quota(records=3, when_full="least recent")
        for text in ("apple", "pear", "plum"):
            first.remember(text, id=text, time=datetime(2020, 1, 1, tzinfo=UTC))
        first.recall("apple")
    with recollect.open(path, clock=clock) as second, recollect.open(path, clock=clock) as third:
        second.remember("fig", id="fig")
        assert "apple" in ids(second)
        third.remember("kiwi", id="kiwi")
        second.remember("lime", id="lime")
        assert ids(second) == {"fig", "kiwi", "lime"}


@pytest.mark.promise("quota.everyone")
def test_a_memory_that_is_open_knows_what_others_used_since(tmp_path: Path) -> None:
    path = tmp_path / "quota.db"
    clock = TickingClock()
    with recollect.open(path, clock=clock) as memory:
        memory.set_quota(records=3, when_full="least recent")
        for name in "abc":
            memory.remember(f"text {name}", id=name)
        with recollect.open(path, clock=clock) as other:
            other.get("a")
        memory.remember("text d", id="d")
        assert ids(memory) == {"a", "c", "d"}


def test_the_file_of_uses_is_read_only_where_there_is_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(tmp_path / "quota.db") as memory:
        memory.set_quota(records=30, when_full="least recent")
        memory.remember("first")
        reads: list[Branch] = []
        read = UsageFile._read

        def counted(uses: UsageFile, branch: Branch) -> dict[str, int]:
            reads.append(branch)
            return read(uses, branch)

        monkeypatch.setattr(UsageFile, "_read", counted)
        for number in range(10):
            memory.remember(f"text {number}")
            memory.recall("text")
        assert len(reads) <= 1


def test_the_uses_of_what_went_are_forgotten(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.engine.write.quotas.STEP", 10)
    monkeypatch.setattr("recollect.stores.derived.usage._BATCH", 10)
    memory.set_quota(records=5, when_full="least recent")
    for number in range(100):
        memory.remember(f"text {number}", id=f"r{number}")
        assert memory.get(f"r{number}")
    assert len(core_of(memory).uses.of(memory._branch)) <= 2 * 5 + 10 + 2 * 10


@pytest.mark.promise("quota.refused")
def test_what_a_batch_forgot_and_took_back_still_counts(memory: Memory) -> None:
    memory.remember_all([{"content": name, "id": name} for name in "ab"])
    memory.set_quota(records=2)
    with pytest.raises(RuntimeError), memory.batch() as batch:
        batch.forget("a")
        batch.remember("c", id="c")
        raise RuntimeError
    with pytest.raises(QuotaError):
        memory.remember("d", id="d")
    assert ids(memory) == {"a", "b"}


@pytest.mark.in_process
def test_an_interruption_while_a_commit_is_counted_leaves_the_count_right(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.set_quota(records=3, when_full="least recent")
    memory.remember_all([{"content": name, "id": name} for name in "ab"])
    memory.remember("b", id="b")
    with monkeypatch.context() as patched:

        def interrupted(totals: UsageTotals, record_id: str, entry: object) -> None:
            totals._entries.pop(record_id, None)
            raise KeyboardInterrupt

        patched.setattr(UsageTotals, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            memory.update("a", content="changed")
    for name in "cdef":
        memory.remember(name, id=name)
    assert ids(memory) == {"d", "e", "f"}


def test_a_refused_write_does_not_make_the_next_one_count_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.set_quota(records=3)
    memory.remember_all([{"content": name, "id": name} for name in "abc"])
    memory.update("a", importance=0.5)
    started: list[Any] = []
    real = UsageTotalsCache.start

    def counted(cache: UsageTotalsCache, *given: Any) -> UsageTotals:
        started.append(given)
        return real(cache, *given)

    monkeypatch.setattr(UsageTotalsCache, "start", counted)
    with pytest.raises(QuotaError):
        memory.remember("d")
    with pytest.raises(ConflictError):
        memory.remember("a", id="a", expect="absent")
    memory.update("a", importance=0.7)
    assert started == []


def test_what_goes_in_one_commit_costs_no_more_for_each_than_in_many() -> None:
    looked = 0

    class Counting(UsageTotals):
        def evictable(self, group: str | None, start: int = 0) -> Iterator[str]:
            nonlocal looked
            for record_id in super().evictable(group, start):
                looked += 1
                yield record_id

    totals = Counting("least recent")
    records = [recollect.Record(id=f"r{number}", content="x") for number in range(2000)]
    for record in records[:1000]:
        totals.put(record.id, totals.entry(record, 0))
    room = Room(Branch("default"), Quota(records=1000, when_full="least recent"), totals, [], 1, list)
    for record in records[1000:]:
        for record_id, _ in room.to_evict(record):
            room.note(record_id, None)
        room.note(record.id, record)
    assert looked < 10_000


@pytest.mark.files
def test_a_damaged_file_of_uses_is_rebuilt_and_nothing_else_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "quota.db"
    with recollect.open(path) as memory:
        memory.set_quota(records=2, when_full="least recent")
        memory.remember_all([{"content": "a", "id": "a"}, {"content": "b", "id": "b"}])
        memory.recall("a")
    uses = tmp_path / "quota.db.index" / "usage.db"
    assert uses.stat().st_mode & 0o777 == 0o600
    uses.write_bytes(b"damaged" * 1000)
    with recollect.open(path) as memory:
        memory.remember("c", id="c")
        assert len(ids(memory)) == 2
        memory.recall("c")
    assert "last used" in caplog.text
    assert list(apsw.Connection(str(uses)).execute("SELECT id FROM uses")) == [("c",)]


class TestLowWater:
    """A write that exceeds a limit evicts down to a share of it, so that the next writes need not."""

    @pytest.mark.promise("evict.mark")
    def test_a_write_evicts_to_the_mark_in_one_commit_and_the_next_ones_do_not(self, memory: Memory) -> None:
        memory.set_quota(records=100, when_full="least recent", low_water=0.29)
        memory.remember_all([{"content": f"text {number}", "id": f"r{number:02}"} for number in range(100)])
        seq = memory.seq
        memory.remember("one", id="one")
        assert (memory.count(), memory.seq) == (29, seq + 1)
        evicted = [change.id for commit in memory.changes(since=seq) for change in commit.changes if not change.after]
        assert set(evicted) == {f"r{number:02}" for number in range(72)}
        assert {cause for _, cause in causes(memory)} == {"evicted"}
        for number in range(71):
            memory.remember(f"other text {number}")
        assert (memory.count(), len(causes(memory))) == (100, 72)
        memory.remember("one more")
        assert memory.count() == 29
        assert memory.check() == []

    def test_the_mark_of_a_large_quota_is_reached_by_one_write(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.engine.write.quotas.STEP", 10)
        memory.remember_all([f"text {number}" for number in range(200)])
        memory.set_quota(records=200, when_full="least recent", low_water=0.5)
        memory.remember("one")
        assert memory.count() == 100
        memory.set_quota(records=75, when_full="least recent", low_water=0.1)
        for expected in (91, 82, 7):  # a lowered limit is reached in steps
            memory.remember(f"{expected}")
            assert memory.count() == expected

    def test_bytes_have_a_mark_and_a_limit_that_is_not_exceeded_has_none(self, memory: Memory) -> None:
        memory.remember("x" * 3000, id="large")
        memory.remember_all([{"content": "x" * 100, "id": f"r{number}"} for number in range(9)])
        memory.set_quota(records=11, bytes=4500, when_full="least recent", low_water=0.5)
        assert 4000 < memory.stats()["quota"]["bytes_used"] <= 4500
        memory.remember("x" * 500, id="new")
        assert ids(memory) == {*(f"r{number}" for number in range(9)), "new"}  # 10 records, more than half of 11
        assert memory.stats()["quota"]["bytes_used"] <= 2250

    def test_pinned_records_and_those_being_written_stay_above_the_mark(self, memory: Memory) -> None:
        memory.set_quota(records=4, when_full="least recent", low_water=0.25)
        memory.remember_all([{"content": name, "id": name, "pinned": name in "ab"} for name in "abcd"])
        with memory.batch() as batch:
            batch.remember("e", id="e")
            batch.remember("f", id="f")
        assert ids(memory) == {"a", "b", "e", "f"}
        before = memory.root
        with pytest.raises(QuotaError), memory.batch() as batch:
            for name in "ghi":
                batch.remember(name, id=name)
        assert memory.root == before

    def test_expired_records_that_make_enough_room_spare_the_others(self, memory: Memory) -> None:
        memory.set_quota(records=4, when_full="least recent", low_water=0.5)
        memory.remember_all([{"content": name, "id": name} for name in "abc"])
        memory.remember("due", id="due", ttl=1)
        core_of(memory).clock.time += timedelta(hours=1)  # type: ignore[attr-defined]
        memory.remember("d", id="d")
        assert ids(memory) == set("abcd")
        memory.remember("e", id="e")
        assert ids(memory) == {"d", "e"}

    def test_each_user_is_evicted_to_a_mark_of_their_own(self, memory: Memory) -> None:
        memory.set_quota(records=4, per="user", when_full="least recent", low_water=0.5)
        for user in ("ana", "bob"):
            memory.remember_all([{"content": f"text {number}", "user": user} for number in range(4)])
        memory.scoped(user="ana").remember("one more")
        assert [memory.count(f"user={user}") for user in ("ana", "bob")] == [2, 4]

    @pytest.mark.parametrize("wrong", [0, -0.1, 1.01, float("nan"), True, "0.9", None])
    def test_a_mark_that_is_no_share_is_refused(self, memory: Memory, wrong: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="low_water"):
            memory.set_quota(records=10, when_full="least recent", low_water=wrong)
        with pytest.raises(InvalidArgumentError, match="low_water"):
            Quota(records=10, when_full="least recent", low_water=wrong)
        assert memory.execute(GetQuota()) is None

    def test_a_mark_where_nothing_is_evicted_is_refused(self, memory: Memory) -> None:
        with pytest.raises(InvalidArgumentError, match=r"low_water 0\.9 requires a quota that evicts"):
            memory.set_quota(records=10, low_water=0.9)
        with pytest.raises(InvalidArgumentError, match="low_water"):
            memory.set_quota(low_water=0.9)
        assert memory.execute(GetQuota()) is None

    def test_the_mark_is_shown_and_stored_with_the_quota(self, tmp_path: Path) -> None:
        path = tmp_path / "quota.db"
        with recollect.open(path) as memory:
            memory.set_quota(records=10, when_full="least recent", low_water=0.9)
            quota = Quota(records=10, when_full="least recent", low_water=0.9)
            assert memory.execute(GetQuota()) == quota == Quota.from_json(quota.to_json())
        with recollect.open(path) as memory:
            assert memory.execute(GetQuota()) == quota
            assert memory.stats()["quota"]["low_water"] == 0.9

    def test_a_quota_of_an_earlier_release_is_read_and_one_of_a_later_release_refused(self, memory: Memory) -> None:
        store, name = core_of(memory).store, "quota/default"
        earlier = '{"records": 10, "bytes": null, "when_full": "least recent", "per": null}'
        memory.set_quota(records=10, when_full="least recent")
        with store.read() as view:
            assert view.setting(name) == earlier  # without a mark, it is still written so
        with store.write(memory._branch) as transaction:
            transaction.set_setting(name, earlier)
        assert memory.execute(GetQuota()) == Quota(records=10, when_full="least recent")
        with store.write(memory._branch) as transaction:
            transaction.set_setting(name, earlier.replace("}", ', "grace": 5}'))
        for call in (lambda: memory.execute(GetQuota()), lambda: memory.remember("text")):
            with pytest.raises(DamagedStoreError, match="grace"):
                call()


class Model:
    """Eviction as it is written: of each group, who goes is the lowest of (importance, last use), and is not pinned."""

    def __init__(self, limit: int, when_full: str, per: str | None, mark: int) -> None:
        self.limit, self.when_full, self.per, self.mark = limit, when_full, per, mark
        self.records: dict[str, tuple[str | None, float, int, bool]] = {}

    def put(self, name: str, group: str | None, importance: float, pinned: bool, step: int) -> bool:
        """Return whether there is room; then the record is there, and what had to go is not."""
        group = group if self.per else None
        own = [each for each, value in self.records.items() if value[0] == group and each != name]
        if len(own) == self.limit and self.records.get(name, (object(),))[0] != group:
            free = [each for each in own if not self.records[each][3]]
            if not free:
                return False
            first = 1 if "important" in self.when_full else 2
            free.sort(key=lambda each: self.records[each][first:3])
            for each in free[: max(1, self.limit + 1 - self.mark)]:
                del self.records[each]
        self.records[name] = (group, importance, step, pinned)
        return True

    def use(self, name: str, step: int) -> None:
        group, importance, _, pinned = self.records[name]
        self.records[name] = (group, importance, step, pinned)


@pytest.mark.promise("evict.model")
@pytest.mark.promise("evict.restart")
@pytest.mark.promise("quota.each")
@pytest.mark.parametrize("seed", range(4 if FULL else 1))
@pytest.mark.parametrize(
    ("when_full", "per", "low_water", "kind"),
    spread(
        ("least recent", "least important", "oldest"),
        (None, "user"),
        (1, 0.7, 0.01),
        ("memory", "sqlite", "sqlite, opened again", "sqlite, its index deleted"),
        every=6,
    ),
)
def test_eviction_does_what_a_plain_model_of_it_does(
    tmp_path: Path, seed: int, when_full: WhenFull, per: Per | None, low_water: float, kind: str
) -> None:
    """Also where the memory is opened again at any step; without its index, only what was read is not known then."""
    rng = random.Random(seed)
    clock = TickingClock()
    limit = 3 if per else 6
    memory = memory_on(STORES[kind.partition(",")[0]](tmp_path), clock=clock)
    memory.set_quota(records=limit, when_full=when_full, per=per, low_water=low_water)
    model = Model(limit, when_full, per, int(limit * low_water))
    for step in range(120):
        name, user = f"r{rng.randrange(12)}", rng.choice((None, "ana", "bob"))
        match rng.randrange(7):
            case 0 if name in model.records:
                memory.forget(name)
                del model.records[name]
            case 1 if name in model.records and "deleted" not in kind:
                assert memory.get(name)
                model.use(name, step)
            case 2 if "," in kind:
                memory.close()
                if "deleted" in kind:
                    shutil.rmtree(tmp_path / "quota.db.index", ignore_errors=True)
                memory = memory_on(STORES["sqlite"](tmp_path), clock=clock)
            case _:
                importance, pinned = rng.randrange(3) / 2, rng.random() < 0.1
                fields: dict[str, Any] = {"importance": importance, "pinned": pinned, "user": user}
                # All of one old time: when they happened says nothing of when they were used.
                fields["time"] = datetime(2001, 1, 1, tzinfo=UTC)
                if model.put(name, user, importance, pinned, step):
                    whole = Remember(content=f"{step}", id=name, fields=fields, exact=True, if_exists="update")
                    memory.execute(whole)
                else:
                    with pytest.raises(QuotaError):
                        memory.remember(f"text {step}", id=name, **fields)
        assert ids(memory) == set(model.records)
    assert memory.check() == []
    memory.close()


@pytest.mark.promise("quota.each")
def test_a_quota_for_each_user_is_not_shared(memory: Memory) -> None:
    memory.set_quota(records=2, per="user", when_full="least recent")
    ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
    bob.remember_all(["one", "two"])
    ana.remember_all([f"text {number}" for number in range(9)])
    memory.remember_all(["of nobody", "of nobody, too", "of nobody, three"])
    assert [ana.count(), bob.count(), memory.count()] == [2, 2, 6]
    bob.remember("three", user="bob")
    memory.update(bob.find(order="oldest")[0].id, user="ana", content="moved")  # it is a new one to ana
    assert [ana.count(), bob.count()] == [2, 1]
    assert memory.stats()["quota"]["per"] == "user"
    memory.set_quota(records=2, per="user")
    with pytest.raises(
        QuotaError, match="the quota of user 'ana' in namespace 'default' is 2 records, and this write would make it 3"
    ):
        ana.remember("too many")  # all that it is about is hers
    with pytest.raises(QuotaError) as caught:
        ana.scoped(conversation="c").remember("too many")
    assert caught.value.args[2:4] == (None, None)
    wrongs: list[dict[str, Any]] = [{"per": "user"}, {"records": 1, "per": "kind"}]
    for wrong in wrongs:
        with pytest.raises(InvalidArgumentError, match="per"):
            memory.set_quota(**wrong)


# Expiry


@pytest.mark.promise("expiry.reads")
def test_a_ttl_counts_from_the_moment_of_telling_and_every_read_honours_it(memory: Memory) -> None:
    record = memory.remember("short", id="short", kind="conversation", conversation="c", ttl=3600)
    assert record.expires is not None
    assert record.time is not None
    assert record.expires - record.time == timedelta(hours=1)
    memory.remember_all([{"content": "bulk", "id": "bulk", "ttl": 3600}, {"content": "stays", "id": "stays"}])
    clock: Any = core_of(memory).clock
    clock.time += timedelta(hours=2)
    assert memory.get("short") is None
    assert memory.get("bulk") is None
    assert ids(memory) == {"stays"}
    assert memory.count() == 1
    assert [hit.record.id for hit in memory.recall("short bulk stays")] == ["stays"]
    assert [record.id for record in memory.grep("short OR bulk OR stays")] == ["stays"]
    assert memory.find(limit=10) == memory.find()
    assert memory.stats()["records"] == 1


def test_an_export_has_the_root_of_just_what_has_not_expired(memory: Memory) -> None:
    memory.remember_all([{"content": f"text {number}", "ttl": 60 + 60 * (number % 3)} for number in range(40)])
    memory.remember("stays")
    clock: Any = core_of(memory).clock
    for live in (41, 27, 14, 1):
        with memory.open_export() as export:
            records = list(export.records)
            assert (export.count, len(records)) == (live, live)
            versions = {each.id: version_hash(each.id, each.to_bytes(), core_of(memory).store.key) for each in records}
            assert export.root == root_of(versions).hex()
            assert (export.root == memory.head().parts["records"]) == (live == 41)
        clock.time += timedelta(minutes=1)


@pytest.mark.promise("expiry.swept")
def test_a_sweep_lets_go_of_what_is_due_in_bounded_steps(memory: Memory) -> None:
    memory.remember_all([{"content": f"text {number}", "ttl": 60} for number in range(30)])
    memory.remember("stays")
    clock: Any = core_of(memory).clock
    clock.time += timedelta(hours=1)
    assert [memory.sweep(limit=20), memory.sweep(limit=20), memory.sweep(limit=20)] == [20, 10, 0]
    assert {cause for _, cause in causes(memory)} == {"expired"}
    assert exported(memory)[0] == memory.head().parts["records"]


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), True, "3600", 10**12])
def test_a_ttl_that_is_no_time_is_refused(memory: Memory, ttl: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="ttl"):
        memory.remember("text", ttl=ttl)
    with pytest.raises(InvalidArgumentError, match="cannot be combined with expires"):
        memory.remember("text", ttl=60, expires=datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("amount", [0, -1, True, 1.5, "9", 2**62])
def test_a_quota_of_no_positive_integer_is_refused(memory: Memory, amount: Any) -> None:
    for wrong in ({"records": amount}, {"bytes": amount}):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            memory.set_quota(**wrong)
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            Quota(**wrong)


# Caps


@pytest.mark.promise("limits.caps")
def test_what_is_over_a_cap_is_refused_by_name_and_what_is_at_it_is_stored(tmp_path: Path) -> None:
    metadata = {"k": "123"}
    cap = len(encode_json(metadata))
    limits = recollect.Limits(content_bytes=10, media_bytes=4, metadata_bytes=cap, tags=2, question_bytes=10)
    memory = memory_on(MemoryStore(), limits=limits)
    memory.remember("x" * 10, id="a", tags=["1", "2"], metadata=metadata)
    over: dict[str, Any] = {"content": "é" * 6, "tags": ["1", "2", "3"], "metadata": {"k": "1234"}}
    for field, value in over.items():
        with pytest.raises(InvalidRecordError, match=f"^{field} .*cap of"):
            memory.update("a", **{field: value})
        with pytest.raises(InvalidRecordError, match=field):
            memory.remember(**{"content": "y", field: value})
    memory.remember(b"1234", media_type="image/png")
    with pytest.raises(InvalidRecordError, match=r"^content .*cap of 4 bytes"):
        memory.remember(b"12345", media_type="image/png")
    assert memory.recall("x" * 10) is not None
    with pytest.raises(InvalidArgumentError, match="question"):
        memory.recall("é" * 6)
    with pytest.raises(InvalidArgumentError, match="question"), memory.batch() as batch:
        batch.recall("é" * 6)
    with pytest.raises(InvalidArgumentError, match=r"limits\.tags"):
        recollect.Limits(tags=0)


def test_a_default_memory_refuses_a_question_of_a_megabyte() -> None:
    with recollect.open(":memory:") as memory, pytest.raises(RecollectError, match="65536"):
        memory.recall("word " * 200_000)
