"""A run of calls determined by a seed, and the expected contents of the store after each: for power cuts and faults.

The steps are writing calls of every kind: batches that are abandoned, texts larger than a transaction stages, threads
that write at once (one of which fails after it has written, inside the transaction of the others), expiring records,
recall and grep, so that indexes are built and saved, terms of the glossary, outlines, sparse codes and keyed memory,
which have logs of their own, what changes several of these in one commit (clear, rollback, revert), an import and an
erasure by a filter of any of them, and closing and reopening. The clock stands still during a step, so that concurrent
writes give the same root in any order.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from recollect import filters as f
from recollect.errors import RecollectError, StoreFullError
from recollect.importers import import_path, write_jsonl
from recollect.ledger.commits import Branch, Commit
from recollect.memory import Memory
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing.faults import SteppedStore
from recollect.testing.loopback import beside, core_of
from recollect.testing.machine import memory_on

#: A thread of this name fails at the end of its transaction.
FAILING = "failing"
#: More than a transaction stages: it is in the tables before the transaction ends.
_LARGE = 70_000
_OPAQUE = "application/octet-stream"  # which no index takes long over
_BEGIN = datetime(2026, 1, 3, tzinfo=UTC)
#: Whose glossary it is.
AGENT = "pilot"
#: What lies beside the records, each with a log of its own.
BESIDE = ("terms", "nodes", "sdrs", "keys")
PARTS = ("records", *BESIDE)


class _GivenUp(Exception):
    pass


class State(NamedTuple):
    """The numbers of commits and the roots of a memory's records, and of what lies beside them."""

    seqs: tuple[int, ...]
    roots: tuple[str, ...]

    @property
    def commits(self) -> int:
        """The number of commits of all: each to another part is followed by one of the memory."""
        return self.seqs[0]

    def after(self, commit: Commit) -> State:
        """The state after a commit of the memory, which states those of the other parts."""
        seqs, roots = list(self.seqs), list(self.roots)
        seqs[0], roots[0] = commit.seq, commit.memory_root.hex()
        for part in commit.parts or ():
            at = 1 + BESIDE.index(part.name)
            seqs[at], roots[at] = part.seq, part.root.hex()
        return State(tuple(seqs), tuple(roots))


def parts_of(memory: Memory) -> list[Memory]:
    """The records of a memory, and what lies beside them."""
    return [memory, *(beside(memory, what) for what in BESIDE)]


def state_of(memory: Memory) -> State:
    """What a memory has now."""
    parts = parts_of(memory)
    return State(tuple(each.seq for each in parts), tuple(each.root for each in parts))


@dataclass(frozen=True)
class Step:
    """One step. `do` is done by one thread; `at_once` are the texts, by id, of which each of several threads writes.

    What a step has committed `stays`, if an error can follow its commit: an import reads the root that it then has.
    """

    name: str
    do: Callable[[Memory], object] | None = None
    at_once: tuple[tuple[tuple[str, str], ...], ...] = ()
    reopens: bool = False
    stays: bool = False


class Script:
    """The steps of a seed, and the clock by which they are done."""

    def __init__(self, seed: int, count: int = 30) -> None:
        rng = random.Random(seed)
        of_parts = _steps_of_parts(seed, count)
        self.steps = [of_parts.get(number, step) for number, step in enumerate(_step(rng, n) for n in range(count))]
        self._time = _BEGIN

    def model(self) -> Memory:
        """A store in memory, to be led through the steps by `lead`."""
        return self.memory(MemoryStore())

    def roots(self) -> list[tuple[str, ...]]:
        """The roots before the first step, and after each, as a store in memory has them."""
        with self.model() as model:
            roots = [self.state_of(model).roots]
            for number, step in enumerate(self.steps):
                self.set_clock(number)
                lead(step, model)
                roots.append(self.state_of(model).roots)
            return roots

    def memories(self, memory: Memory) -> list[Memory]:
        """The memories that the steps write to."""
        return [memory]

    def state_of(self, memory: Memory) -> State:
        """What these have now."""
        return state_of(memory)

    def set_clock(self, number: int) -> None:
        """Let the clock stand where it does in a step."""
        self._time = _BEGIN + timedelta(hours=number)

    def memory(self, store: Store) -> Memory:
        """A memory by the clock of these steps."""
        return memory_on(store, clock=self.now)

    def now(self) -> datetime:
        """The clock."""
        return self._time


def _step(rng: random.Random, number: int) -> Step:
    text, other = f"fact {rng.randrange(30)} of {number}", f"fact {rng.randrange(30)}"
    match rng.randrange(30):
        case 0 | 1:
            items = [
                {"content": f"{text}, part {part} of the harbour", "tags": ["bulk"]}
                for part in range(rng.randrange(2, 30))
            ]
            return Step("bulk", lambda memory: memory.remember_all(items))
        case 2:
            return Step("batch", lambda memory: _batch(memory, text, other))
        case 3:
            return Step("batch given up", lambda memory: _given_up(memory, text))
        case 4:
            return Step(
                "update", lambda memory: [memory.update(each.id, content=text) for each in memory.find(limit=1)]
            )
        case 5:
            return Step("forget", lambda memory: [memory.forget(each.id) for each in memory.find(limit=1)])
        case 6:
            part = f.contains(f"part {rng.randrange(4)} ")
            return Step("forget where", lambda memory: memory.forget_where(part))
        case 7:
            due = _BEGIN + timedelta(hours=number + rng.randrange(1, 6), minutes=30)
            return Step("falls due", lambda memory: memory.remember(text, expires=due))
        case 8:
            large = text.encode() + bytes(_LARGE)
            return Step("large", lambda memory: memory.remember(large, media_type=_OPAQUE))
        case 9 | 10:
            threads = tuple(
                tuple((f"{number}-{thread}-{place}", f"fact at once {number} {thread} {place}") for place in range(2))
                for thread in range(rng.randrange(2, 5))
            )
            return Step("at once", at_once=threads)
        case 11 | 12:
            return Step("ask", lambda memory: [memory.recall("which fact is of the harbour?"), memory.grep("fact")])
        case 13:
            return Step("reopen", reopens=True)
        case 14:
            return Step("snapshot", lambda memory: memory.snapshot(f"before {number}"))
        case 15:
            age = rng.randrange(2)
            return Step("rollback", lambda memory: _rollback(memory, age))
        case 16:
            return Step("revert", _revert)
        case 17:
            return Step("supersede", lambda memory: _supersede(memory, text))
        case 18:
            return Step("compact", lambda memory: memory.compact())
        case 20 | 29 if number % 3:  # by the number, so that the sequence of random numbers stays what it was
            key = f"berth {number % 3}"
            if number % 5 == 0:
                return Step("forget a key", lambda memory: memory.keyed.forget(key))
            if number % 5 == 1:
                return Step("swap a key", lambda memory: memory.keyed.cas(key, None, b"\xff%d" % number))
            return Step("write a key", lambda memory: memory.keyed.write(key, text.encode()))
        case 19 | 20:
            return Step("consolidate", lambda memory: memory.consolidate(min_count=3))
        case 21 | 22:
            key, alias = (f"pier {rng.randrange(6)}" for _ in range(2))
            return Step("term", lambda memory: memory.glossary.memorize(key, text, "place", AGENT, aliases=[alias]))
        case 23:
            keys = [f"PIER {rng.randrange(6)}" for _ in range(3)]
            return Step("forget terms", lambda memory: memory.glossary.forget(keys, AGENT))
        case 24 | 25:
            lines = [f"{'*' * rng.randrange(1, 4)} quay {rng.randrange(5)}\n{text}\n" for _ in range(rng.randrange(6))]
            org = "".join(lines)
            return Step("outline", lambda memory: memory.outline.ingest_text(org, "org", "harbour.org"))
        case 26 | 27:
            return Step("codes", lambda memory: memory.sdr.store_many([(text, {"n": number}), (other, None)]))
        case 28:
            # One call, as each is a commit of its own: a kill may leave all of a call or nothing of it.
            count = rng.randrange(1, 6)
            if number % 2:
                return Step("change a code", lambda memory: memory.sdr.update(count, text))
            return Step("forget a code", lambda memory: memory.sdr.forget(count))
        case _:
            return Step("remember", lambda memory: memory.remember(text, kind="conversation", conversation="c"))


def _batch(memory: Memory, text: str, other: str) -> None:
    with memory.batch(reason="batch") as batch:
        batch.remember(text)
        batch.remember(other, if_exists="update", importance=0.5)
        for record in batch.find(f.tag("bulk"), limit=2):
            batch.forget(record.id)


def _rollback(memory: Memory, age: int) -> None:
    """Return to a snapshot. (Within a step that writes at once, the order of commits is not that of the seed.)"""
    if age < len(memory.snapshots()):
        memory.rollback(index=age)


#: The snapshot that the steps of several parts go back to.
_EARLY = "early"


def _steps_of_parts(seed: int, count: int) -> dict[int, Step]:
    """The steps that change several parts of the memory at once, by their places among so many: in each run, all."""
    part, other = PARTS[seed % 5], PARTS[seed // 5 % 5]
    some = None if seed % 2 else [part, other]
    matching = f.contains(f"fact {seed % 3}" if part == "records" else "fact")
    steps = {
        0.2: Step("snapshot", lambda memory: memory.snapshot(_EARLY)),
        0.5: Step("clear", lambda memory: memory.clear(parts=some)),
        0.6: Step("import", lambda memory: _import(memory, other), stays=True),
        0.7: Step("roll back parts", lambda memory: _to_early(memory, None if some is None else ["records", *some])),
        0.8: Step("erase where", lambda memory: memory.erase(matching, parts=[part])),
        0.95: Step("revert of parts", _revert_of_parts),
    }
    return {int(share * count): step for share, step in steps.items()}


def _to_early(memory: Memory, parts: list[str] | None) -> None:
    if _has_early(memory):
        memory.rollback(_EARLY, parts=parts)


def _has_early(memory: Memory) -> bool:
    """Whether there is the snapshot, which a fault may have refused."""
    return any(each.name == _EARLY for each in memory.snapshots())


def _import(memory: Memory, part: str) -> None:
    """Import a part as it was, in one commit: a kill may leave all of a call or nothing of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export.jsonl"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            write_jsonl(memory.at(_EARLY) if _has_early(memory) else memory, file, parts=[part])
        import_path(memory, "jsonl", path)


def _revert_of_parts(memory: Memory) -> None:
    """Take back the newest commit that changed several parts."""
    for commit in [each for each in memory.log(40) if len(each.part_commits) + bool(each.changes) > 1][:1]:
        memory.revert(commit.seq)


def _revert(memory: Memory) -> None:
    """Take back the newest batch."""
    for commit in [each for each in memory.log(40) if each.reason == "batch"][:1]:
        memory.revert(commit.seq)


def _supersede(memory: Memory, text: str) -> None:
    """Replace the newest record, unless another has replaced it."""
    for record in memory.find(limit=1):
        if record.valid_to is None:
            memory.supersede(record.id, text)


def _given_up(memory: Memory, text: str) -> None:
    """A batch that has written to the tables and is given up."""
    with suppress(_GivenUp), memory.batch() as batch:
        batch.remember(text.encode() + bytes(_LARGE), media_type=_OPAQUE)
        batch.remember("given up")
        batch.find(f.tag("bulk"), limit=1)  # now the second is in the tables, too
        raise _GivenUp


def lead(step: Step, model: Memory, stored: Callable[[str], bool] = lambda record_id: True) -> None:
    """Do a step on the model, one thread after the other; of what they tell, only what is held."""
    if step.do is not None:
        step.do(model)
    for texts in step.at_once:
        for record_id, text in texts:
            if stored(record_id):
                model.remember(text, id=record_id)


def failing_store(store: Store) -> SteppedStore:
    """A store in which the transactions of threads that are named so fail at their end."""

    def on_step(_number: int, name: str) -> None:
        if name == "commit" and threading.current_thread().name == FAILING:
            raise StoreFullError(store.path, "injected")

    return SteppedStore(store, on_step)


def play(
    step: Step,
    memory: Memory,
    acknowledge: Callable[[str], object],
    refused: Callable[[str, RecollectError], object] | None = None,
) -> object:
    """Do a step on a `failing_store`, and give what the call gave.

    acknowledge  is told of the id of each record that a thread was told to be held
    refused      and of the first that it was not, with the error; without it that is raised here
    """
    if step.do is not None:
        return step.do(memory)
    stepped = core_of(memory).store
    assert isinstance(stepped, SteppedStore)
    assert isinstance(stepped.inner, SqliteStore)
    store = stepped.inner

    errors: list[BaseException] = []

    def tell(texts: tuple[tuple[str, str], ...]) -> None:
        for record_id, text in texts:
            try:
                memory.remember(text, id=record_id)
            except BaseException as error:  # noqa: BLE001 - it is raised below
                if refused is not None and isinstance(error, RecollectError):
                    refused(record_id, error)
                else:
                    errors.append(error)
                return
            acknowledge(record_id)

    def fail() -> None:
        with suppress(RecollectError):
            memory.remember(bytes(_LARGE), media_type=_OPAQUE, id="failing")

    first, *others = step.at_once
    threads = [threading.Thread(target=tell, args=(first,)), threading.Thread(target=fail, name=FAILING)]
    threads += [threading.Thread(target=tell, args=(texts,)) for texts in others]
    started = []
    try:
        with store.write(Branch("default")):  # so that all of them wait when the first one begins
            for thread in threads:
                waiting = store._queue.waiting
                thread.start()
                started.append(thread)
                while store._queue.waiting == waiting and thread.is_alive():
                    os.sched_yield()
    finally:
        for thread in started:
            thread.join()
    for error in errors:
        raise error
    return None
