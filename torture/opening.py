"""Threads of several processes open, write to and close one store all the time.

To close a file drops the locks of the process on it, so a store that one thread closes must not take the locks from a
store that another thread is opening. Everything that was acknowledged must be there, no call may fail but for a store
that is busy, and the check must find nothing.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from recollect.errors import RecollectError, StoreBusyError
from recollect.memory.opening import open as open_memory
from torture.trials import Trial

PROCESSES, THREADS = 2, 3
#: How many times each thread opens the store.
ROUNDS = 60


def _write(path: Path, name: str, seed: int) -> list[str]:
    """Open, write and close, and return what failed. Print each id that was acknowledged."""
    rng = random.Random(f"{seed} {name}")
    problems = []
    for number in range(ROUNDS):
        try:
            with open_memory(path, embedder="none", durability="normal") as memory:
                for part in range(rng.choice((1, 1, 3))):
                    done = memory.remember(f"letter {number}", id=f"{name}-{number}-{part}")
                    sys.stdout.write(f"{done.id}\n")
        except StoreBusyError:
            continue
        except RecollectError as error:
            problems.append(f"{type(error).__name__}: {error}")
    return problems


def _threads(path: Path, name: str, seed: int) -> None:
    problems: list[str] = []
    threads = [
        threading.Thread(target=lambda each=each: problems.extend(_write(path, f"{name}{each}", seed)))
        for each in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in problems:
        print("failed:", problem)


def _one(path: Path, seed: int) -> str:
    """Return what was wrong in one run; "" for nothing."""
    open_memory(path, embedder="none").close()
    command = [sys.executable, "-m", "torture.opening", str(path)]
    processes = [
        subprocess.Popen([*command, chr(ord("a") + number), str(seed)], stdout=subprocess.PIPE, text=True)
        for number in range(PROCESSES)
    ]
    lines = [line for process in processes for line in process.communicate()[0].splitlines()]
    if problems := [line for line in lines if line.startswith("failed:")]:
        return f"{problems[0]} (and {len(problems) - 1} more)"
    if any(process.returncode for process in processes):
        return "a process died"
    try:
        with open_memory(path, embedder="none", create=False) as memory:
            lost = set(lines) - {record.id for record in memory.find()}
            if lost:
                return f"{len(lost)} of {len(lines)} acknowledged records are lost"
            return str(problems[0]) if (problems := [str(each) for each in memory.check()]) else ""
    except RecollectError as error:
        return f"{type(error).__name__}: {error}"


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """One run."""
    yield Trial(seed, "threads open and close", _one(folder / "shared.db", seed))


if __name__ == "__main__":
    _threads(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
