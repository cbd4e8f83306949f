"""Ctrl-C at any line of a call: the call takes effect completely or not at all, and everything continues, including the
same handle.

A signal handler can run between any two steps of the interpreter, also during cleanup. So a trace function raises
KeyboardInterrupt at one line of our code after another; then the handle is used again, by this thread and another.
"""

from __future__ import annotations

import contextlib
import dis
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import recollect
from recollect.memory import Memory
from recollect.stores.sql import group_writer
from recollect.stores.sqlite import store as sqlite_store
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing.machine import memory_on
from torture.trials import Trial, store_at

#: Where a line may be interrupted: ours, and the context managers that ours are made of.
OURS = (os.path.dirname(recollect.__file__) + os.sep, contextlib.__file__)
#: The files whose lines run while a turn is held.
_WRITING = (sqlite_store.__file__, group_writer.__file__)
#: What a thread that waits then remembers.
OF_ANOTHER = "of another"
#: So many lines are interrupted for each seed.
_LINES = 40


class Interruption:
    """Raises KeyboardInterrupt at the n-th line of ours that this thread comes to, as a signal's handler would.

    Not on the way out of a `with`, whose line is come to once more then: the interpreter looks for signals after calls,
    and there is none between the end of the block and the lock that is let go.

    at      n, from 1
    before  called there first
    files   what the paths of the files begin with whose lines count
    line    where it struck; "" where it did not
    """

    def __init__(
        self, at: int, before: Callable[[FrameType], object] = lambda frame: None, files: tuple[str, ...] = OURS
    ) -> None:
        self.line = ""
        self._files = files
        self._left = at
        self._before = before

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(self._files):
            return None
        if event == "line" and frame.f_lasti <= _entries(frame.f_code).get(frame.f_lineno, frame.f_lasti):
            self._left -= 1
            if self._left == 0:
                sys.settrace(None)
                self.line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
                self._before(frame)
                raise KeyboardInterrupt
        return self

    def strikes(self, call: Callable[[], object]) -> bool:
        """Whether it struck while the call ran."""
        outer = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(outer)
        return bool(self.line)


@cache
def _entries(code: CodeType) -> dict[int, int]:
    """Where, in the code of each line of a `with`, its block is entered; what is behind that on the line, leaves it."""
    entries: dict[int, int] = {}
    for each in dis.get_instructions(code):
        if each.opname == "BEFORE_WITH" and each.positions is not None and each.positions.lineno is not None:
            entries.setdefault(each.positions.lineno, each.offset)
    return entries


def _batch(memory: Memory) -> None:
    with memory.batch() as batch:
        batch.remember("alpha", id="a", if_exists="update")
        batch.remember("beta", id="b")
        batch.forget("gone")


#: Calls, and what more is stored after each.
CALLS: dict[str, tuple[Callable[[Memory], object], set[str]]] = {
    "remember": (lambda memory: memory.remember("alpha", id="a"), {"alpha"}),
    "update": (lambda memory: memory.update("held", content="alpha"), {"alpha"}),
    "forget": (lambda memory: memory.forget("gone"), set()),
    "batch": (_batch, {"alpha", "beta"}),
    "bulk": (lambda memory: memory.remember_all(["alpha", "beta"]), {"alpha", "beta"}),
    "recall": (lambda memory: memory.recall("alpha beta held"), set()),
    "find": (lambda memory: memory.find(), set()),
}


def interrupted(memory: Memory, name: str, interruption: Interruption) -> str | None:
    """Interrupt a call of `CALLS` and look at what is left: what is wrong, "" for nothing; None where none struck."""
    call, new = CALLS[name]
    memory.clear()
    memory.remember("held", id="held")
    memory.remember("gone", id="gone")
    before = memory.root
    if not interruption.strikes(lambda: call(memory)):
        return None
    stored = {str(record.content) for record in memory.find()}
    if stored - {"held", "gone", OF_ANOTHER} not in (set(), new):
        return f"{interruption.line}: it holds {sorted(stored)}"
    if memory.root == before and stored != {"held", "gone"}:
        return f"{interruption.line}: it holds {sorted(stored)}, and the root says otherwise"
    memory.remember("afterwards", id="afterwards")
    found = [hit.record.id for hit in memory.recall("afterwards")]
    return "" if found == ["afterwards"] else f"{interruption.line}: afterwards it finds {found}"


def lines_of(memory: Memory, name: str) -> int:
    """At how many lines a call can be interrupted, about: the longest of some runs."""
    most = 0
    for _ in range(3):
        counter = Interruption(10**9)
        interrupted(memory, name, counter)
        most = max(most, 10**9 - counter._left)
    return most


class Waiter:
    """A thread that waits for its turn to write when another is interrupted. Raises nothing: `given` is what came."""

    def __init__(self, memory: Memory, store: SqliteStore) -> None:
        self.given: object = None
        self.waited = False
        self._store = store
        self._memory = memory
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.given = self._memory.remember(OF_ANOTHER, id="other").id
        except BaseException as error:  # noqa: BLE001 - it is what came
            self.given = error

    def come(self, frame: FrameType) -> None:
        """Begin to wait, where a turn is held and its guard is not: elsewhere nobody can come to wait."""
        queue = self._store._queue
        if queue.holder is not None and frame.f_code.co_filename in _WRITING:
            self._thread.start()
            while not queue.waiting and self._thread.is_alive():
                os.sched_yield()
            self.waited = True

    def end(self) -> object:
        """What came, once it has."""
        if self._thread.ident is None:
            self._thread.start()
        self._thread.join()
        return self.given


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """Interruptions at lines of one kind of call, while another thread comes to wait."""
    rng = random.Random(seed)
    name = rng.choice(sorted(CALLS))
    store = store_at(folder / "interrupted.db", timeout_s=600, durability="normal")
    memory = memory_on(store)
    count = lines_of(memory, name)
    for at in sorted(rng.sample(range(1, count + 1), min(_LINES, count))):
        waiter = Waiter(memory, store)
        interruption = Interruption(at, waiter.come)
        problem = interrupted(memory, name, interruption)
        given = waiter.end()
        if given != "other":
            problem = f"{interruption.line}: the thread that waited got {given!r}"
        yield Trial(seed, name, problem or "")
    yield Trial(seed, "check", "; ".join(memory.check()))
    memory.close()
