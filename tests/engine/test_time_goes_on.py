"""Expired records never return, in any part of a memory, whatever the clock does, reopened or not, killed or not."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.engine.housekeeping import Expiries
from recollect.errors import StoreBusyError
from recollect.facets.glossary.operations import RecallTerms
from recollect.facets.sdr.operations import RecallSdrs
from recollect.operations import Now
from recollect.testing.loopback import core_of

START = datetime(2026, 5, 1, tzinfo=UTC)
TTL = 10.0

#: How each part of a memory stores something that expires, and what it then has of it.
PARTS: dict[str, tuple[Callable[[Memory], object], Callable[[Memory], Any]]] = {
    "records": (lambda memory: memory.remember("a boat", id="boat", ttl=TTL), lambda memory: memory.get("boat")),
    "recall": (lambda memory: memory.remember("a boat", ttl=TTL), lambda memory: list(memory.recall("boat"))),
    "keyed": (lambda memory: memory.keyed.write("boat", b"1", ttl=TTL), lambda memory: memory.keyed.read("boat")),
    "glossary": (
        lambda memory: memory.glossary.memorize("boat", "it floats", "ships", "ana", ttl=TTL),
        lambda memory: memory.glossary.get("boat", "ana"),
    ),
    "sparse codes": (lambda memory: memory.sdr.store("a boat", ttl=TTL), lambda memory: memory.sdr.query("a boat")),
}
#: What tells the store that it is late.
TELLING: dict[str, Callable[[Memory, Callable[[Memory], Any]], object]] = {
    "a read of it": lambda memory, read: read(memory),
    "a commit elsewhere": lambda memory, read: memory.namespace("another").remember("late"),
    "the end of the process alone": lambda memory, read: memory.execute(Now()),
}

#: What reads each part in a batch, and the reserved namespace of its records.
READS: dict[str, tuple[str, Callable[[Memory], Any]]] = {
    "records": ("", lambda memory: memory.find('words = "lovelace"')),
    "recall": ("", lambda memory: list(memory.recall("boat"))),
    "full text": ("", lambda memory: memory.grep("boat")),
    "entities": ("", lambda memory: memory.entities()),
    "glossary": ("terms", lambda memory: memory.execute(RecallTerms(question="boat", agent="ana"))),
    "sparse codes": ("sdrs", lambda memory: memory.execute(RecallSdrs(text="a boat"))),
}


class Clock:
    """A clock that goes where a test sets it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def what_is_left(folder: Path, part: str, telling: str, ends: str) -> Any:
    """Return what a part has of what expired before the clock went back."""
    store, read = PARTS[part]
    clock = Clock()
    memory = recollect.open(folder / "a.db", clock=clock, embedder="none")
    store(memory)
    assert read(memory), "the control: it is there before"
    clock.now += timedelta(seconds=60)
    TELLING[telling](memory, read)
    path = folder / "a.db"
    if ends == "killed":
        core_of(memory)._expiries.close(0)
        path = folder / "killed.db"
        for suffix in ("", "-wal"):
            shutil.copy(f"{folder}/a.db{suffix}", f"{path}{suffix}")
    if ends != "not at all":
        memory.close()
        memory = recollect.open(path, clock=clock, embedder="none")
    clock.now = START - timedelta(hours=1)
    if ends != "not at all":  # the clock goes back while the store is closed
        memory.close()
        memory = recollect.open(path, clock=clock, embedder="none")
    with memory:
        memory.namespace("another").remember("a commit after the clock went back")
        left = read(memory)
        memory.remember("one more")
        return left or read(memory)


@pytest.mark.promise("fault.clock")
@pytest.mark.parametrize("ends", ["not at all", "closed", "killed"])
@pytest.mark.parametrize("telling", TELLING)
@pytest.mark.parametrize("part", PARTS)
def test_what_has_expired_does_not_return(tmp_path: Path, part: str, telling: str, ends: str) -> None:
    if ends == "killed" and telling == "the end of the process alone":
        pytest.skip("no call found it expired before the process was killed")
    assert not what_is_left(tmp_path, part, telling, ends)


@pytest.mark.parametrize("part", PARTS)
def test_a_store_that_begins_at_its_clock_brings_it_back(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Expiries, "begin", lambda self, view, now: now)
    assert what_is_left(tmp_path, part, "a commit elsewhere", "closed")


def test_a_store_without_expiries_is_not_written_by_reads(tmp_path: Path) -> None:
    clock = Clock()
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as memory:
        memory.remember("a boat", id="boat")
    before = (tmp_path / "a.db").read_bytes()
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as memory:
        for _ in range(3):
            clock.now += timedelta(days=1)
            memory.recall("boat")
            memory.find()
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_time_is_noted_once_for_each_expiry(tmp_path: Path) -> None:
    clock = Clock()
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as memory:
        for number in range(3):
            memory.remember(f"boat {number}", id=f"b{number}", ttl=TTL * (number + 1))
        noted = []
        for _ in range(40):
            clock.now += timedelta(seconds=1)
            memory.find()
            core = core_of(memory)
            core._expiries.close(0)
            with core.store.read() as view:
                noted.append(view.setting("clock"))
        assert len(set(noted)) == 4  # none, and one for each
        assert memory.count() == 0


def test_a_store_that_is_only_read_keeps_what_expired_away_too(tmp_path: Path) -> None:
    clock = Clock()
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as memory:
        memory.remember("a boat", id="boat", ttl=TTL)
        clock.now += timedelta(seconds=60)
        memory.find()
    clock.now = START
    os.chmod(tmp_path / "a.db", 0o400)
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none", read_only=True) as memory:
        assert memory.find() == []


def test_a_note_that_failed_is_written_later(tmp_path: Path) -> None:
    clock = Clock()
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none", timeout=0.01) as memory:
        memory.remember("a boat", id="boat", ttl=TTL)
        clock.now += timedelta(seconds=60)
        with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as other, other.batch() as batch:
            batch.remember("in the way")
            assert memory.get("boat") is None
            core_of(memory)._expiries.close(0)
    clock.now = START - timedelta(hours=1)
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as memory:
        assert memory.get("boat") is None


def test_a_memory_is_not_closed_within_its_batch_and_goes_on(tmp_path: Path) -> None:
    clock = Clock()
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none", timeout=600) as memory:
        memory.remember("a boat", id="boat", ttl=TTL)
        clock.now += timedelta(seconds=60)
        with memory.batch() as batch:
            batch.remember("one")
            with pytest.raises(StoreBusyError, match="inside a batch"):
                memory.close()
        assert memory.count() == 1


@pytest.mark.promise("fault.clock")
@pytest.mark.parametrize("fails", ["the thread cannot start", "the thread dies"])
def test_what_a_thread_could_not_note_is_noted_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    clock = Clock()
    memory = recollect.open(tmp_path / "a.db", clock=clock, embedder="none")
    memory.remember("a boat", id="boat", ttl=TTL)
    clock.now += timedelta(seconds=60)
    with monkeypatch.context() as patch:
        if fails == "the thread cannot start":
            patch.setattr(threading.Thread, "start", refusing(RuntimeError("can't start new thread")))
        else:
            patch.setattr(core_of(memory).store, "write", refusing(MemoryError()), raising=False)
            patch.setattr(threading, "excepthook", lambda _arguments: None)
        assert memory.get("boat") is None
        for thread in threading.enumerate():
            if thread.name == "recollect-clock":
                thread.join()
    memory.close()
    clock.now = START
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as reopened:
        assert reopened.get("boat") is None


def refusing(error: BaseException) -> Callable[..., object]:
    def refuse(*_arguments: object, **_named: object) -> object:
        raise error

    return refuse


@pytest.mark.parametrize("part", READS)
def test_a_batch_reads_as_of_its_beginning_whatever_is_read_meanwhile(part: str, tmp_path: Path) -> None:
    reserved, read = READS[part]
    clock = Clock()
    with recollect.open(tmp_path / "a.db", clock=clock, embedder="none") as memory:
        store = PARTS[part][0] if reserved else lambda memory: memory.remember("Ada Lovelace has a boat", ttl=TTL)
        store(memory)
        branch = memory._branch.reserved(reserved) if reserved else memory._branch
        records = Memory(memory._executor, branch)
        with records.batch() as batch:
            as_batch: Any = batch
            clock.now += timedelta(seconds=60)
            assert not read(records), "the control: it has expired"
            assert read(as_batch)
            assert not read(records)
            batch.remember("so that the batch has a change", id="change", agent="ana")
            assert read(as_batch)
        assert not read(records)
