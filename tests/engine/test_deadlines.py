"""Deadlines: work that looks at them ends, changes nothing by that, and answers the same afterwards.

Nothing is timed. A deadline of these tests is over at its n-th look, for every n until the work is done before.
"""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from tests.examples import spread
from tests.exports import exported

import recollect
from recollect import filters as f
from recollect.calls.calls import store_all
from recollect.common import deadlines
from recollect.common.deadlines import Deadline, within
from recollect.engine.write.writer import Writer
from recollect.errors import DeadlineError
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.scoring import scores
from recollect.testing.loopback import core_of

FAR_S = 3600.0


class AtLook(Deadline):
    """A deadline that is over at its n-th look, counted from 0. Kernels in C do not count."""

    __slots__ = ("looks", "over_at")

    def __init__(self, over_at: int) -> None:
        super().__init__(FAR_S)
        self.over_at, self.looks = over_at, 0

    def check(self) -> None:
        self.looks += 1
        if self.looks > self.over_at:
            self.end()


def looks_of(work: Callable[[], object]) -> int:
    """Return how often some work looks."""
    deadline = AtLook(10**9)
    with within(deadline):
        work()
    return deadline.looks


def cut_at_each_look(work: Callable[[], object], most: int = 40) -> Iterator[int]:
    """End some work at each look, or at `most` of them that are spread over all, and yield after each time."""
    looks = looks_of(work)
    assert looks
    for at in sorted({round(each * (looks - 1) / most) for each in range(most + 1)}):
        with pytest.raises(DeadlineError), within(AtLook(at)):
            work()
        yield at


@pytest.fixture(params=["file", "memory"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    path = tmp_path / "a.db" if request.param == "file" else ":memory:"
    with recollect.open(path, embedder="none") as opened:
        opened.remember_all(
            [
                {"content": f"the harbour of town {number} lies beyond the mole", "id": f"r{number}"}
                for number in range(150)
            ]
        )
        opened.add_messages(
            [{"role": "user", "content": f"Ana moved to Oslo {number} days ago"} for number in range(30)],
            conversation="c",
        )
        yield opened


READS: dict[str, Callable[[recollect.Memory], object]] = {
    "recall": lambda memory: memory.recall("where did Ana move after the wedding, and which harbuor is on 7 May 2026?"),
    "recall with a filter": lambda memory: memory.recall("harbour", where=f.contains("town 14"), k=3),
    "context": lambda memory: memory.context("harbour", 500),
    "find": lambda memory: memory.find(order="id"),
    "count": lambda memory: memory.count(f.contains("mole")),
    "grep": lambda memory: memory.grep("harbour"),
    "export": lambda memory: exported(memory),
    "changes": lambda memory: memory.changes(),
    "duplicates": lambda memory: memory.duplicates(),
    "contradictions": lambda memory: memory.contradictions(),
    "consolidate": lambda memory: memory.consolidate(dry_run=True, min_count=2),
}


def without_cursors(answer: Any) -> object:
    """Return an answer in a form that can be compared."""
    return repr(answer)


@pytest.mark.promise("deadline.same")
@pytest.mark.parametrize("name", READS)
def test_a_read_that_was_ended_anywhere_answers_the_same_afterwards(memory: recollect.Memory, name: str) -> None:
    read = READS[name]
    expected = without_cursors(read(memory))
    for _ in cut_at_each_look(lambda: read(memory), most=15):
        assert without_cursors(read(memory)) == expected
    with within(FAR_S):
        assert without_cursors(read(memory)) == expected


@pytest.mark.promise("deadline.same")
def test_a_search_in_numpy_that_was_ended_anywhere_answers_the_same_afterwards(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = repr(memory.recall("where is the harbour of town 7?"))
    monkeypatch.setattr(scores, "chosen", lambda: numpy_kernels.KERNELS)
    with_numpy = repr(memory.recall("where is the harbour of town 7?"))
    assert with_numpy.replace("numpy", "native") == expected.replace("numpy", "native")
    for _ in cut_at_each_look(lambda: memory.recall("where is the harbour of town 7?")):
        assert repr(memory.recall("where is the harbour of town 7?")) == with_numpy


@pytest.mark.promise("deadline.same")
# Below and above the least for a search by blocks.
@pytest.mark.parametrize(("records", "kernel"), spread([200, 2500], ["tally", "reach", "search", "explained"], every=2))
def test_a_kernel_in_c_ends_when_the_time_is_over_and_answers_the_same_afterwards(records: int, kernel: str) -> None:
    native = pytest.importorskip("recollect.indexes.kernels.native.kernels").NativeKernels()
    with recollect.open(":memory:", embedder="none") as memory:
        turns = [{"role": "user", "content": f"harbour town {at % 50} mole {at % 7}"} for at in range(records)]
        memory.add_messages(turns, conversation="c")
        memory.recall("harbour")
        calls: list[tuple[Any, ...]] = []

        class Noting:
            name = "native"

            def __getattr__(self, name: str) -> Any:
                def noted(*arguments: Any) -> Any:
                    if name == kernel:
                        calls.append(arguments)
                    return getattr(native, name)(*arguments)

                return noted

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scores, "chosen", Noting)
            # A title makes the counts of terms unknown, so that they are tallied.
            memory.remember("the harbour", metadata={"title": "town"})
            memory.recall("harbour town 7 mole", k=5)
            memory.recall("harbour town 7 mole", k=5, recency=0.5)[0].why  # noqa: B018 - reading it computes it
    assert calls
    if kernel == "search":
        assert any((call[-1] is not None) == (records > 2000) for call in calls)
        calls = [call for call in calls if (call[-1] is not None) == (records > 2000)]
    postings, *rest = calls[-1]
    over, far = Deadline(-1.0), Deadline(FAR_S)
    expected = getattr(native, kernel)(postings._replace(ending=None), *rest)
    with pytest.raises(DeadlineError):
        getattr(native, kernel)(postings._replace(ending=over), *rest)
    far.cancel()
    with pytest.raises(DeadlineError, match="its client has left"):
        getattr(native, kernel)(postings._replace(ending=far), *rest)
    for ending in (None, Deadline(FAR_S)):
        found = getattr(native, kernel)(postings._replace(ending=ending), *rest)
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        assert all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.promise("deadline.whole")
def test_a_bulk_write_that_was_ended_anywhere_is_undone_as_a_whole_and_says_so(memory: recollect.Memory) -> None:
    before, seq = repr(memory.find(order="id")), memory.seq
    texts = [f"note {number} of the voyage" for number in range(300)]
    looks = 0
    for at in count():
        try:
            with within(AtLook(at)):
                memory.remember_all(texts, on_error="raise")
        except DeadlineError as error:
            assert error.unchanged
            assert "nothing was changed" in str(error)
            assert (repr(memory.find(order="id")), memory.seq) == (before, seq)
            looks += 1
        else:
            break
    assert looks > 5
    assert (memory.count(f.contains("voyage")), memory.seq) == (300, seq + 1)
    assert memory.check() == []


@pytest.mark.promise("deadline.whole")
def test_the_parts_of_a_write_that_were_not_stored_are_reported(memory: recollect.Memory) -> None:
    with within(AtLook(3)):
        report = store_all(memory, [f"note {number} of the voyage" for number in range(300)])
    assert {type(each.reason) for each in report.failed} == {DeadlineError}
    assert len(report.results) + len(report.failed) == 300
    assert memory.count(f.contains("voyage")) == len(report.results)


@pytest.mark.promise("deadline.whole")
def test_a_batch_in_which_a_call_was_ended_cannot_be_committed(memory: recollect.Memory) -> None:
    seq = memory.seq
    with pytest.raises(DeadlineError), memory.batch() as batch:
        batch.remember("first")
        with pytest.raises(DeadlineError), within(AtLook(1)):
            batch.remember_all([f"note {number}" for number in range(200)])
    assert memory.seq == seq


@pytest.mark.promise("deadline.whole")
def test_a_commit_is_never_cut_off(memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over as soon as the last record was written: the look before the commit sees it, and none after."""
    deadline = AtLook(10**9)
    looked: list[bool] = []
    commit = Writer.commit

    def noted(*arguments: Any) -> Any:
        found = commit(*arguments)
        looked.append(deadlines.current() is None)
        deadline.cancel()
        return found

    monkeypatch.setattr(Writer, "commit", noted)
    with within(deadline):
        memory.remember("one more", id="more")
        assert deadlines.current() is deadline
    assert looked == [True]
    assert memory.get("more") is not None


def test_control_without_the_look_before_it_a_late_write_is_committed(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.engine.core.check", lambda: None)
    monkeypatch.setattr("recollect.engine.write.batch.checked", lambda items: items)
    over = Deadline(-1.0)
    with within(over):
        memory.remember_all(["late"], on_error="raise")
    assert memory.count(f.contains("late")) == 1


@pytest.mark.promise("deadline.progress")
def test_an_index_is_caught_up_as_a_whole_whatever_the_deadline_of_who_needs_it(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        memory.remember_all([f"harbour {number}" for number in range(500)])
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        with pytest.raises(DeadlineError), within(Deadline(-1.0)):
            memory.recall("harbour")
        use = core_of(memory).keeper.use
        assert use.started == 1
        assert len(memory.recall("harbour", k=3)) == 3
        assert core_of(memory).keeper.use.started == 1


@pytest.mark.promise("deadline.same")
def test_an_export_that_was_ended_does_not_look_complete(memory: recollect.Memory) -> None:
    if not core_of(memory).store.capabilities.snapshots:
        return  # it lists the records at once
    with memory.open_export() as export:
        with within(AtLook(2)), pytest.raises(DeadlineError):
            list(export.records)
        with pytest.raises(DeadlineError):
            next(iter(export.records))


def test_a_statement_of_sqlite_that_takes_long_ends(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        memory.remember_all([{"content": f"harbour {number}", "kind": "knowledge"} for number in range(20_000)])
        over = Deadline(FAR_S)
        over.cancel()
        with pytest.raises(DeadlineError), within(over):
            memory.count(f.kind("knowledge") & f.before("2099-01-01"))
        assert memory.count(f.kind("knowledge") & f.before("2099-01-01")) == 20_000


def test_a_deadline_is_of_its_thread_and_its_block() -> None:
    seen: list[object] = []
    with within(1.0) as outer:
        thread = threading.Thread(target=lambda: seen.append(deadlines.current()))
        thread.start()
        thread.join()
        with within(None):
            seen.append(deadlines.current())
        seen.append(deadlines.current())
    assert seen == [None, None, outer]
    assert deadlines.current() is None
    deadlines.check()
    assert deadlines.overdue() is None


def test_it_is_over_by_the_clock_that_it_is_given() -> None:
    now = [0]
    deadline = Deadline(1.5, lambda: now[0])
    with within(deadline):
        now[0] = 1_499_999_999
        deadlines.check()
        assert not deadlines.is_over()
        now[0] = 1_500_000_000
        assert deadlines.is_over()
        with pytest.raises(DeadlineError, match=r"longer than 1\.5 s"):
            list(deadlines.checked([1]))
    again = pickle.loads(pickle.dumps(DeadlineError(1.5, True)))
    assert (again.args, again.code) == ((1.5, True), "deadline")


def test_without_a_deadline_a_recall_calls_at_most_five_functions_for_it(
    memory: recollect.Memory,
) -> None:
    for _ in range(3):
        memory.recall("where is the harbour?")
    looks = 0
    names = {"check", "checked", "within", "is_over", "overdue"}

    def counted(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal looks
        file = frame.f_code.co_filename
        is_ours = file.endswith(("common/deadlines.py", "words/index.py", "words/postings.py"))
        looks += event == "call" and is_ours and frame.f_code.co_name in names

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        memory.recall("where is the harbour?")
    finally:
        sys.setprofile(before)
    assert 1 <= looks <= 5
