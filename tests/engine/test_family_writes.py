"""What calls on all parts have in common with other writes: keys of idempotency, listeners, quotas and expiry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.engine.family import PARTS, changed, counts, fill, write

import recollect
from recollect import Commit, Memory
from recollect import filters as f
from recollect.errors import IdempotencyError, QuotaError, UnsupportedError
from recollect.operations import Clear, ForgetWhere, Rollback

on_all = pytest.mark.stores("memory", "sqlite", "loopback")


@on_all
@pytest.mark.parametrize(
    ("operation", "other"),
    [
        (Clear(), Clear(parts=["keys"])),
        (Clear(parts=["keys", "terms"]), Clear()),
        (ForgetWhere(where=f.everything()), ForgetWhere(where=f.everything(), parts=["records"])),
    ],
    ids=["clear", "clear of parts", "forget_where"],
)
def test_a_write_with_a_key_is_done_once_and_gives_the_counts_of_its_parts_again(
    memory: Memory, operation: Any, other: Any
) -> None:
    fill(memory)
    first = memory.execute(operation, idempotency_key="k")
    fill(memory, "b")
    seq = memory.seq
    again = memory.execute(operation, idempotency_key="k")
    assert (again, again.parts, memory.seq) == (first, first.parts, seq)
    assert first.parts == dict.fromkeys(operation.parts or PARTS, 1)
    with pytest.raises(IdempotencyError):
        memory.execute(other, idempotency_key="k")
    assert counts(memory)["sdrs"] >= 1


@on_all
def test_a_rollback_takes_no_key(memory: Memory) -> None:
    fill(memory)
    moment = memory._moment(0).token
    with pytest.raises(UnsupportedError):
        memory.execute(Rollback(moment=moment), idempotency_key="k")
    assert counts(memory) == dict.fromkeys(PARTS, 1)


@on_all
def test_listeners_get_commits_to_the_parts_once_and_in_order(memory: Memory) -> None:
    whole: list[Commit] = []
    some: list[Commit] = []
    with memory.listen(whole.append) as every, memory.listen(some.append, since=0, parts=["keys", "terms"]) as part:
        fill(memory)
        with memory.batch() as batch:
            batch.remember("b", id="b")
            batch.clear(parts=["keys"])
        write(memory, "records", "c")
        write(memory, "terms", "c")
        every.drain()
        part.drain()
    assert changed(whole) == [*[(each,) for each in PARTS], ("records", "keys"), ("records",), ("terms",)]
    assert changed(some) == [("keys",), ("terms",), ("keys",), ("terms",)]
    assert (whole, some) == (memory.changes(), memory.changes(parts=["keys", "terms"]))


@on_all
def test_a_quota_counts_the_parts_that_share_it(memory: Memory) -> None:
    memory.set_quota(records=7)
    fill(memory)
    used: Any = memory.stats()["quota"]
    # The record that counts the sparse codes is one, too.
    assert used["records_used"] == 6
    sizes = used["bytes_used"]
    memory.keyed.write("b", bytes(1000))
    later: Any = memory.stats(parts=["records"])["quota"]
    assert later["records_used"] == 7
    assert later["bytes_used"] > sizes + 1000
    for part in PARTS:
        with pytest.raises(QuotaError):
            write(memory, part, "more")
    with memory.batch() as batch:
        inside: Any = batch.stats()["quota"]
        assert inside == later
        assert batch.clear(parts=["keys"]) == 2
        emptied: Any = batch.stats()["quota"]
        assert emptied["records_used"] == 5
    memory.keyed.set_limits(capacity=1)
    for name in "xyz":
        memory.keyed.write(name, b"x")
    apart: Any = memory.stats()["quota"]
    assert (apart["records_used"], memory.stats()["parts"]["keys"]) == (5, 1)
    past: Any = memory.at(memory.seq).stats()["quota"]
    assert past == apart


@on_all
def test_clearing_makes_room_in_a_quota_and_a_rollback_needs_none(memory: Memory) -> None:
    fill(memory)
    full = memory.seq
    memory.set_quota(records=6)
    with pytest.raises(QuotaError):
        write(memory, "keys", "b")
    memory.clear()
    assert memory.stats()["quota"]["records_used"] == 1  # the record that counts
    for name in "abcde":
        write(memory, "keys", name)
    memory.rollback(full)
    assert counts(memory) == dict.fromkeys(PARTS, 1)
    assert memory.stats()["quota"]["records_used"] == 6
    with pytest.raises(QuotaError):
        write(memory, "terms", "b")


@pytest.mark.parametrize("where", ["memory", "file"])
def test_keys_that_have_expired_are_counted_exported_and_restored_no_more(where: str, tmp_path: Any) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    path = ":memory:" if where == "memory" else tmp_path / "a.db"
    with recollect.open(path, clock=lambda: now) as memory:
        memory.keyed.write("soon", b"x", ttl=60)
        memory.keyed.write("late", b"x", ttl=6000)
        memory.sdr.store("a text that expires", ttl=60)
        then = memory.seq
        assert memory.stats()["parts"] == {"records": 0, "keys": 2, "sdrs": 1}
        now += timedelta(seconds=120)
        assert memory.stats()["parts"] == {"records": 0, "keys": 1}
        assert memory.at(then).stats()["parts"] == {"records": 0, "keys": 2, "sdrs": 1}
        with memory.open_export() as export:
            assert {each.name: each.count for each in export.parts} == {"keys": 1, "sdrs": 1}  # and what counts
        with memory.at(then).open_export() as export:
            assert {each.name: each.count for each in export.parts} == {"keys": 2, "sdrs": 2}
            assert {each.name: each.root for each in export.parts} == {
                part: root for part, root in memory.at(then).head().parts.items() if part != "records"
            }
        assert memory.clear().parts == {"keys": 1}
        memory.rollback(then)
        assert memory.keyed.keys() == ["late"]
        assert memory.sdr.texts() == []
        assert memory.stats()["parts"] == {"records": 0, "keys": 1}
        assert memory.check() == []
