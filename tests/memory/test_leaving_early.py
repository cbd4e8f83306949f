"""A read is of now: whatever was left half-way before, the next read sees the caller's own writes.

Each way of leaving a generator, a stream, a page or a view early is tried in a memory that is used on afterwards, while
what was left, or the exception that ended it, is kept.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.doors import BehindDoor
from tests.examples import spread
from tests.exports import exported

import recollect
from recollect import Memory, RecollectError
from recollect import filters as f
from recollect.ledger.commits import Branch
from recollect.records.record import Record
from recollect.stores.derived import fulltext
from recollect.stores.sqlite import store
from recollect.testing.loopback import core_of

Way: TypeAlias = Callable[[Memory], object]
#: More than one page of anything.
RECORDS = 1200


class LeftError(Exception):
    """Ways in which a call ends half-way."""


def raising(after: int) -> f.Filter:
    """Return a filter that raises at its n-th record."""
    seen = 0

    def refuse(_record: Record) -> bool:
        nonlocal seen
        seen += 1
        if seen > after:
            raise LeftError
        return True

    return f.custom(refuse)


def export_within(memory: Memory) -> object:
    with memory.open_export() as export:
        for _record in export.records:
            break
    return export


def export_closed(memory: Memory) -> object:
    export = memory.open_export()
    list(islice(export.records, 3))
    export.close()
    return export


def export_open(memory: Memory) -> object:
    export = memory.open_export()
    list(islice(export.records, 3))
    return export


def export_not_begun(memory: Memory) -> object:
    with memory.open_export() as export:
        return export


def export_with_an_error(memory: Memory) -> object:
    export = memory.open_export()
    with suppress(LeftError), export:
        next(export.records)
        raise LeftError
    return export


def export_of_a_scope(memory: Memory) -> object:
    return export_within(memory.scoped(user="ana"))


def export_in_a_thread(memory: Memory) -> object:
    kept: list[object] = []
    thread = threading.Thread(target=lambda: kept.append(export_within(memory)))
    thread.start()
    thread.join()
    return kept


def export_in_a_task(memory: Memory) -> object:
    async def leave() -> object:
        async with recollect.AsyncMemory(memory).open_export() as export:
            async for _record in export.records:
                break
        return export

    return asyncio.run(leave())


def records_of_an_export(memory: Memory) -> object:
    records = iter(exported(memory)[1])
    return next(records), records


def stream(memory: Memory) -> object:
    with memory.subscribe(since=0) as commits:
        next(commits)
    return commits


def stream_open(memory: Memory) -> object:
    commits = memory.subscribe(since=0)
    next(commits)
    return commits


def stream_in_a_task(memory: Memory) -> object:
    async def leave() -> object:
        async with recollect.AsyncMemory(memory).subscribe(since=0) as commits:
            async for _commit in commits:
                break
        return commits

    return asyncio.run(leave())


def pages(memory: Memory) -> object:
    return [memory.find(limit=5), memory.changes(limit=1), memory.log(limit=1), iter(memory.find(limit=5))]


def past(memory: Memory) -> object:
    then = memory.at(1)
    return then, then.find(limit=5), then.recall("sentence 3")


#: What anybody can leave, also over a wire.
WAYS: dict[str, Way] = {
    each.__name__: each
    for each in (
        export_within,
        export_closed,
        export_open,
        export_not_begun,
        export_with_an_error,
        export_of_a_scope,
        export_in_a_thread,
        export_in_a_task,
        records_of_an_export,
        stream,
        stream_open,
        stream_in_a_task,
        pages,
        past,
    )
}
#: Calls that a filter can end, each with its exception kept. Filters that are functions cannot be sent.
ENDED: dict[str, Callable[[Memory, f.Filter], object]] = {
    "find": lambda memory, where: memory.find(where),
    "find a page": lambda memory, where: memory.find(where, limit=900),
    "count": lambda memory, where: memory.count(where),
    "recall": lambda memory, where: memory.recall("sentence", where=where),
    "grep": lambda memory, where: memory.grep("sentence", where=where),
    "context": lambda memory, where: memory.context("sentence", max_tokens=200, where=where),
    "erase": lambda memory, where: memory.erase(where),
    "forget_where": lambda memory, where: memory.forget_where(where),
    "past": lambda memory, where: memory.at(1).find(where),
    "duplicates": lambda memory, where: memory.duplicates(where=where),
    "contradictions": lambda memory, where: memory.contradictions(where=where),
    "consolidate": lambda memory, where: memory.consolidate(where=where),
}


def ended(call: Callable[[Memory, f.Filter], object]) -> Way:
    def leave(memory: Memory) -> object:
        try:
            call(memory, raising(3))
        except LeftError as error:
            return error  # with its frames, and so with what they were reading
        return None

    return leave


def in_a_batch(memory: Memory) -> object:
    try:
        with memory.batch() as batch:
            batch.remember("undone", id="undone")
            batch.find(raising(3))
    except LeftError as error:
        return error
    raise AssertionError("the filter did not raise")


def view_of_the_store(memory: Memory) -> object:
    branch = Branch("default")
    with core_of(memory).store.read() as view:
        left = [view.select(branch, f.everything(), now=0), view.commits(branch), view.versions(branch)]
        left += [view.entries(branch, 0), view.all_versions(branch)]
        for each in left:
            next(each)
    return left


def transaction_of_the_store(memory: Memory) -> object:
    branch = Branch("default")
    with core_of(memory).store.write(branch) as transaction:
        left = transaction.all_versions(branch)
        next(left)
    return left


LOCAL: dict[str, Way] = {
    **{f"{name} ended by its filter": ended(call) for name, call in ENDED.items()},
    "a batch ended by its filter": in_a_batch,
    "a view": view_of_the_store,
    "a transaction": transaction_of_the_store,
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store and its indexes, of which each test has a copy."""
    folder = tmp_path_factory.mktemp("filled")
    records = [{"content": f"sentence {each}", "id": f"s{each}", "user": "ana"} for each in range(RECORDS)]
    with recollect.open(folder / "a.db", embedder="none") as memory:
        memory.remember_all(records)
        memory.grep("sentence", limit=1)
        memory.recall("sentence 7")
    return folder


@pytest.fixture
def local(filled: Path, tmp_path: Path) -> Iterator[Memory]:
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    with recollect.open(tmp_path / "a.db", embedder="none") as opened:
        opened.grep("sentence", limit=1)
        opened.recall("sentence 7")
        yield opened


@pytest.fixture(params=["in process", "socket", "http"])
def memory(request: pytest.FixtureRequest, local: Memory) -> Iterator[Memory]:
    if request.param == "in process":
        yield local
        return
    door = BehindDoor(local._executor, request.param)  # type: ignore[arg-type]
    with Memory(door, Branch("default")) as behind:
        yield behind


def stale_reads(memory: Memory, way: Way) -> list[str]:
    """Leave something half-way a few times, and return which reads after a write of the caller do not see it."""
    found, kept = [], []
    for number in range(3):
        kept.append(way(memory))
        new = memory.remember(f"a new zephyr{number}", id=f"new{number}").id
        seq, count = memory.seq, memory.count()
        wrong = {
            "get": memory.get(new) is None,
            "exists": memory.get(new) is None,
            "find": [each.id for each in memory.find(f.id(new))] != [new],
            "recall": new not in [hit.record.id for hit in memory.recall(f"zephyr{number}", k=2)],
            "grep": [each.id for each in memory.grep(f"zephyr{number}")] != [new],
            "log": [each.seq for each in memory.log(limit=1)] != [seq],
            "changes": [change.id for commit in memory.changes(since=seq - 1) for change in commit.changes] != [new],
        }
        memory.update(new, content=f"another zephyr{number}")
        wrong["update"] = getattr(memory.get(new), "content", None) != f"another zephyr{number}"
        memory.forget(new)
        wrong["forget"] = memory.get(new) is not None or memory.count() != count - 1 or memory.seq != seq + 2
        found += [name for name, is_wrong in wrong.items() if is_wrong]
    return found


@pytest.mark.in_process
@pytest.mark.promise("concurrent.of-now")
@pytest.mark.parametrize("way", spread(list(WAYS), every=2))
def test_a_read_after_a_write_sees_it_whatever_was_left_half_way(memory: Memory, way: str) -> None:
    assert stale_reads(memory, WAYS[way]) == []


@pytest.mark.in_process
@pytest.mark.promise("concurrent.of-now")
@pytest.mark.parametrize("way", LOCAL.values(), ids=LOCAL)
def test_a_read_after_a_write_sees_it_whatever_ended_a_call(local: Memory, way: Way) -> None:
    assert stale_reads(local, way) == []
    assert local.erase("s1").pending is False  # nothing keeps a snapshot


@pytest.mark.in_process
@pytest.mark.parametrize("way", ["export_within", "export_closed", "export_with_an_error", "export_in_a_thread"])
def test_an_erasure_that_says_it_is_complete_has_removed_the_text(local: Memory, tmp_path: Path, way: str) -> None:
    local.remember("zephyrsecond", id="p1")
    kept = WAYS[way](local)
    assert local.erase("p1").pending is False
    assert [each.name for each in tmp_path.rglob("*") if each.is_file() and b"zephyrsecond" in each.read_bytes()] == []
    assert kept is not None


@pytest.mark.in_process
def test_an_open_export_makes_an_erasure_say_that_it_is_not_complete(local: Memory) -> None:
    local.remember("zephyrsecond", id="p1")
    kept: Any = export_open(local)
    assert local.erase("p1").pending is True
    kept.close()
    local.remember("something else")
    assert local.erase("s1").pending is False


@pytest.mark.in_process
def test_another_writer_is_not_kept_off_by_what_a_transaction_left(local: Memory, tmp_path: Path) -> None:
    kept = [transaction_of_the_store(local), in_a_batch(local)]
    with recollect.open(tmp_path / "a.db", embedder="none") as other:
        other.remember("of another", id="other")
        local.remember("mine", id="mine")
        assert other.get("mine") is not None
    assert local.get("other") is not None
    assert kept


@pytest.mark.in_process
@pytest.mark.parametrize("way", ["export_within", "find ended by its filter", "a view"])
def test_a_pool_that_trusts_a_flag_reads_the_past(local: Memory, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (store, fulltext):
        monkeypatch.setattr(module, "has_snapshot", lambda connection: connection.in_transaction)
    assert "get" in stale_reads(local, {**WAYS, **LOCAL}[way])


@pytest.mark.in_process
def test_a_view_that_has_ended_says_so(local: Memory) -> None:
    left: Any = view_of_the_store(local)
    with pytest.raises(RecollectError, match="the view is closed"):
        next(left[0])


@pytest.mark.in_process
def test_a_memory_is_closed_although_an_export_of_it_was_of_two_moments(
    local: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = export_open(local)
    opened = core_of(local).store
    drops = count()
    monkeypatch.setattr(opened._locks, "drops", lambda: next(drops))  # type: ignore[attr-defined]
    local.close()
    assert opened._closed  # type: ignore[attr-defined]
    assert export is not None
