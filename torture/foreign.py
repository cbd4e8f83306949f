"""Another SQLite at work on a store: it looks, checkpoints and copies at random moments, and the writer is killed.

A seed determines how often. A child writes with Recollect, and says what was acknowledged; another process, in which
Recollect is never imported, opens the file with Python's `sqlite3` again and again, reads, checkpoints in every mode,
and copies it by `.backup` and `VACUUM INTO`; the child itself opens and closes the file with that library, too. Then
the child is killed, and the other SQLite looks once more, or does not. Everything that was acknowledged must be there,
and in each copy what was committed before it was begun; every check must find nothing.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from recollect.errors import RecollectError
from recollect.memory import RecollectWarning
from recollect.memory.opening import open as open_memory
from torture.trials import Trial

KILLS = 4
#: Seconds that a child writes at most.
_LONGEST_S = 2.5
#: What the other process runs: argument 1 is the store, 2 a seed, 3 the folder for copies. It prints each copy with the
#: number of records that were committed when it was begun.
_OTHER = """
import random, sqlite3, sys
path, rng, folder = sys.argv[1], random.Random(int(sys.argv[2])), sys.argv[3]
modes = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"]
for number in range(10**6):
    try:
        c = sqlite3.connect(path, timeout=0.2, isolation_level=None)
        match rng.randrange(6):
            case 0 | 1: c.execute("SELECT count(*) FROM versions").fetchall()
            case 2: c.execute(f"PRAGMA wal_checkpoint({rng.choice(modes)})").fetchall()
            case 3: c.execute("PRAGMA quick_check").fetchall()
            case kind if number < 60:
                before = c.execute("SELECT count(*) FROM heads").fetchone()[0]
                copy = f"{folder}/copy{number}.db"
                if kind == 4:
                    with sqlite3.connect(copy) as target:
                        c.backup(target)
                    target.close()
                else:
                    c.execute("VACUUM INTO ?", (copy,))
                print(before, copy, flush=True)
        c.close()
    except sqlite3.DatabaseError:  # it is busy, or encrypted
        pass
"""


def _write(path: Path, seed: int, pipe: int) -> None:
    """What the child does until it is killed."""
    rng = random.Random(seed)
    memory = open_memory(path, embedder="none")
    for number in range(100_000):
        match rng.randrange(12):
            case 0:
                memory.recall(f"letter {number // 2}", k=3)
            case 1:
                with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path)) as own:
                    own.execute("SELECT count(*) FROM heads").fetchall()
            case 2:
                path.read_bytes()
            case 3:
                if memory.check():
                    os.write(pipe, f"{json.dumps('the check found ' + memory.check()[0])}\n".encode())
            case 4:
                memory.close()
                memory = open_memory(path, embedder="none")
            case _:
                done = memory.remember(f"letter {number} from {seed}", id=f"r{number}")
                os.write(pipe, f"{json.dumps([done.id])}\n".encode())


def _child(path: Path, seed: int) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            warnings.simplefilter("ignore", RecollectWarning)
            _write(path, seed, writing)
        except RecollectError as error:
            os.write(writing, f"{json.dumps(f'{type(error).__name__}: {error}')}\n".encode())
        finally:
            os._exit(1)
    os.close(writing)
    return pid, reading


def _one(folder: Path, seed: int, *, looks_last: bool) -> str:
    """What was wrong in one run; "" for nothing."""
    rng = random.Random(seed)
    path = folder / "shared.db"
    with open_memory(path, embedder="none") as memory:
        memory.remember("the first", id="first")
    other = subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(path), str(seed), str(folder)], stdout=subprocess.PIPE, text=True
    )
    pid, reading = _child(path, seed)
    time.sleep(_LONGEST_S * rng.random())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with os.fdopen(reading, encoding="utf-8") as lines:
        acknowledgements = [json.loads(line) for line in lines if line.endswith("\n")]
    other.kill()
    copies = [line.split(" ", 1) for line in other.communicate()[0].splitlines() if " " in line]
    if errors := [each for each in acknowledgements if isinstance(each, str)]:
        return errors[0]
    if looks_last:
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(path)) as connection:
            connection.execute("SELECT count(*) FROM heads").fetchall()
    acknowledged = {"first", *(each for line in acknowledgements for each in line)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)
        problem = _missing(path, acknowledged, len(acknowledged))
        for before, copy in copies:
            problem = problem or _missing(Path(copy), acknowledged, int(before))
    return problem


def _missing(path: Path, acknowledged: set[str], count: int) -> str:
    """Return what is wrong with a store: it must have `count` records or more, and no others but the last one."""
    try:
        with open_memory(path, embedder="none", create=False) as memory:
            found = {record.id for record in memory.find()}
            if problems := memory.check():
                return f"{path.name}: {problems[0]}"
    except RecollectError as error:
        return f"{path.name}: {type(error).__name__}: {error}"
    if len(found) < count:
        return f"{path.name} has {len(found)} records, and {count} were committed"
    return f"{path.name} has records that no process wrote" if len(found - acknowledged) > 1 else ""


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """A few runs."""
    logging.getLogger("recollect").setLevel(logging.ERROR)  # each renewal is a warning
    for number in range(KILLS):
        place = folder / f"run-{number}"
        place.mkdir()
        looks_last = number % 2 == 0
        where = "another SQLite looks after the kill" if looks_last else "no SQLite looks after the kill"
        yield Trial(seed, where, _one(place, seed + number, looks_last=looks_last))
