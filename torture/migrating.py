"""Killed migrations: a process that migrates a store is killed at every step.

The store has format 1 and is migrated to the format of this release; and, since that change touches no table, to a
format that only this test knows, with another column, another table, and one table rewritten. A child process does it,
and is killed (SIGKILL) before a statement or between steps. The store must then have the old format or the new one,
with its contents intact, be readable by a release that knows the format, and be migrated by running it again.

    python -m torture.migrating FILE CHANGE STEP      is the child
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.embedding.environment import NO_EMBEDDER
from recollect.errors import StoreError
from recollect.ledger.commits import Branch
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.stores.base import BranchSummary
from recollect.stores.maintenance.migrate import MIGRATIONS, Migration, Step, migrate
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.copying import verified
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.testing.machine import TickingClock, memory_on
from torture.script import Script, lead
from torture.trials import Trial

#: The changes that are tried, by name: the format that the store has before, and the one that it has then.
CHANGES = {"real": (1, 2), "invented": (2, 3), "both": (1, 3)}
_KILLED = -signal.SIGKILL


def _rewrite(connection: apsw.Connection) -> None:
    for number, hash_ in connection.execute("SELECT number, hash FROM versions ORDER BY number").fetchall():
        connection.execute("INSERT INTO sizes SELECT ?, length(payload) FROM versions WHERE hash = ?", (number, hash_))


#: A change of format that was made for this test.
INVENTED = Migration(
    reader=2,
    steps=(
        Step("add a column", lambda connection: connection.execute("ALTER TABLE commits ADD COLUMN note TEXT")),
        Step("fill it", lambda connection: connection.execute("UPDATE commits SET note = 'of before ' || seq")),
        Step(
            "add a table",
            lambda connection: connection.execute("CREATE TABLE sizes (number INTEGER PRIMARY KEY, bytes INTEGER)"),
        ),
        Step("fill that", _rewrite),
    ),
)


@contextmanager
def release(of_format: int) -> Iterator[None]:
    """As if this were the release of a format: 1, this one's, or the invented one, which only reads what is older."""
    before = schema.FORMAT, schema.WRITES_FROM, MIGRATIONS.copy()
    schema.FORMAT = of_format
    if of_format == 3:
        schema.WRITES_FROM = 3
        MIGRATIONS[2] = INVENTED
    try:
        yield
    finally:
        schema.FORMAT, schema.WRITES_FROM = before[:2]
        MIGRATIONS.clear()
        MIGRATIONS.update(before[2])


def _fill(memory: Memory, seed: int, count: int = 12) -> None:
    for step in Script(seed, count).steps:
        lead(step, memory)


def make(path: Path, of_format: int, seed: int) -> None:
    """A store of a format, with a history."""
    keep = checksums.available
    try:
        if of_format == 1:
            checksums.available = lambda: False
        with release(of_format):
            memory = memory_on(SqliteStore(path), clock=TickingClock())
            _fill(memory, seed)
            _fill(memory.namespace("other"), seed + 1)
            memory.close()
    finally:
        checksums.available = keep


@cache
def steps_of(change: str) -> int:
    """At how many moments a migration can be killed."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "count.db"
        before, after = CHANGES[change]
        make(path, before, 1)
        names: list[str] = []
        with release(after):
            migrate(path, on_step=names.append)
        return len(names)


class Left(NamedTuple):
    """What is left after a kill."""

    format: int
    held: dict[Branch, BranchSummary]


def look(path: Path, at_most: int) -> Left:
    """What a store is, to a release of a format. Raises: StoreError where it is not whole."""
    with release(at_most):
        store = SqliteStore(path, read_only=True)
        of_format = store.format
        store.close()
        return Left(of_format, verified(str(path), SqliteStore, store.key))


def kill_once(folder: Path, seed: int, change: str, at: int) -> str:
    """One migration, killed at a moment; what is wrong then, "" for nothing."""
    before, after = CHANGES[change]
    path = folder / f"{change}-{at}.db"
    make(path, before, seed)
    whole = look(path, after)
    command = [sys.executable, "-m", "torture.migrating", str(path), change, str(at)]
    child = subprocess.run(command, capture_output=True, text=True)
    if child.returncode not in (0, _KILLED):
        return f"the child failed: {child.stderr[-1000:]}"
    try:
        return problem_in(path, whole, before, after, killed=child.returncode == _KILLED)
    except StoreError as error:
        return f"the store is not whole: {error}"


def problem_in(path: Path, whole: Left, before: int, after: int, *, killed: bool) -> str:
    """What is wrong with a store whose migration was killed. Raises: StoreError where it is not whole."""
    left = look(path, after)
    if left.format not in ((before, after) if killed else (after,)):
        return f"it has format {left.format}"
    if left.held != whole.held:
        return "it does not hold what it held"
    if left.format == before and before > 1:
        look(path, before)  # the older release reads it too
    backup = Path(f"{path}.format-{before}.backup")
    if left.format == after and look(backup, after) != whole:
        return "the backup does not hold what the store held"
    with release(after):
        again = migrate(path)
        if (again.before, again.after) != (left.format, after):
            return f"migrating again went from {again.before} to {again.after}"
        if look(path, after) != Left(after, whole.held):
            return "migrated again, it does not hold what it held"
        if after == 2 or before == 2:
            with open_memory(path, clock=TickingClock(), embedder=NO_EMBEDDER) as memory:
                if after == 2:
                    memory.remember("and it can be written")
                if problems := memory.check():
                    return "; ".join(problems)
    return ""


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """Some kills of each change, at moments that the seed decides."""
    rng = random.Random(seed)
    for change in CHANGES:
        at = rng.randrange(1, steps_of(change) + 1)
        yield Trial(seed, f"{change}, at a step", kill_once(folder, seed, change, at))
        for each in folder.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def _child(path: str, change: str, at: int) -> None:
    seen = 0

    def on_step(_name: str) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)

    with release(CHANGES[change][1]):
        migrate(path, on_step=on_step)


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], int(sys.argv[3]))
