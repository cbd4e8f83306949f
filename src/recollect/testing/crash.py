"""The kill test: a child process writes and is killed; what it acknowledged must be there, and nothing half.

The child does a list of calls that a seed decides, with a clock that a seed decides, and acknowledges each one on its
standard output once it has returned. So the root after each call is known beforehand: after a kill behind `n`
acknowledgements the store must hold the root after `n` calls or after `n + 1`, and `check()` must be clean. The kill is
a real SIGKILL, either at a named step inside a transaction or at whatever the child is doing when the parent has read
some number of acknowledgements.

    python -m recollect.testing.crash FILE SEED [STEP]      is the child
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recollect.filters import tag
from recollect.memory import Memory
from recollect.opening import open as open_memory
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite import SqliteStore
from recollect.testing.faults import SteppedStore
from recollect.testing.machine import TickingClock, memory_on

Call = Callable[[Memory], object]


def calls(seed: int, count: int = 40) -> list[Call]:
    """Calls of every writing kind, decided by the seed alone."""
    rng = random.Random(seed)
    return [_call(rng, number) for number in range(count)]


def _call(rng: random.Random, number: int) -> Call:
    text, other = f"fact {rng.randrange(30)} of {number}", f"fact {rng.randrange(30)}"
    match rng.randrange(7):
        case 0:
            items = [{"content": f"{text}, part {part}", "tags": ["bulk"]} for part in range(rng.randrange(2, 30))]
            return lambda memory: memory.remember_all(items)
        case 1:
            return lambda memory: _batch(memory, text, other)
        case 2:
            return lambda memory: [memory.update(record.id, content=text) for record in memory.recent(1)]
        case 3:
            return lambda memory: [memory.forget(record.id) for record in memory.recent(1)]
        case 4 if number % 3 == 0:
            return lambda memory: memory.forget_where(tag("bulk"))
        case _:
            return lambda memory: memory.remember(text, kind="conversation", conversation="c", speaker="ana")


def _batch(memory: Memory, text: str, other: str) -> None:
    with memory.batch(reason="batch") as batch:
        batch.remember(text)
        batch.remember(other, if_exists="update", importance=0.5)
        for record in batch.find(tag("bulk"), limit=2):
            batch.forget(record.id)


def roots(seed: int, count: int = 40) -> list[str]:
    """The root before the first call, and after each."""
    memory = memory_on(MemoryStore(), clock=TickingClock())
    out = [memory.root]
    for call in calls(seed, count):
        call(memory)
        out.append(memory.root)
    return out


@dataclass(frozen=True)
class Kill:
    """How a kill went: where it was meant, how many calls were acknowledged, and what was wrong ("" for nothing)."""

    seed: int
    where: str
    acknowledged: int
    problem: str


def kill_once(folder: Path, seed: int) -> Kill:
    """One child, one kill, one look at what is left. The seed decides the calls and the moment."""
    rng = random.Random(seed ^ 0x5EED)
    path = folder / f"kill-{seed}.db"
    at_step = rng.randrange(1, 400) if rng.random() < 0.7 else 0
    after = rng.randrange(1, 40)
    command = [sys.executable, "-m", "recollect.testing.crash", str(path), str(seed), str(at_step)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        acknowledged = 0
        while child.stdout.readline():
            acknowledged += 1
            if not at_step and acknowledged == after:
                child.kill()
        complaints = child.stderr.read().decode()
        child.wait()
    where = f"step {at_step}" if at_step else f"after {after} acknowledgements"
    if child.returncode not in (0, -signal.SIGKILL):
        return Kill(seed, where, acknowledged, f"the child failed: {complaints[-2000:]}")
    return Kill(seed, where, acknowledged, problem_in(path, roots(seed), acknowledged))


def problem_in(path: Path, expected: list[str], acknowledged: int) -> str:
    """What is wrong with a store after a kill behind so many acknowledgements; "" where nothing is."""
    if not path.exists():
        return "the file is gone" if acknowledged else ""
    with open_memory(path) as memory:
        problems = memory.check()
        if problems:
            return "; ".join(problems)
        root = memory.root
        if root in expected[acknowledged : acknowledged + 2]:
            return ""
        known = [number for number, each in enumerate(expected) if each == root]
        return f"the root is the one after {known or 'no'} calls, of which {acknowledged} were acknowledged"


def _child(path: str, seed: int, at_step: int) -> None:
    def on_step(number: int, _name: str) -> None:
        if number == at_step:
            os.kill(os.getpid(), signal.SIGKILL)

    memory = memory_on(SteppedStore(SqliteStore(path), on_step), clock=TickingClock())
    for number, call in enumerate(calls(seed)):
        call(memory)
        print(number, flush=True)


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
