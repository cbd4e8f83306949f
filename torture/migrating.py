"""Killed migrations: a process that migrates a store is killed at every step.

A store is migrated from format 3 to the format of this release, and to formats that only this test knows: the first has
another column, another table, and one table rewritten; the second begins and ends with a step that is a transaction of
its own. A child process
migrates, and is killed (SIGKILL) before a statement or between steps. The store must then have the old format or the
new one, with its contents intact, and be migrated by running it again, with the same result as a migration that nothing
interrupted.

    python -m torture.migrating FILE CHANGE STEP      is the child
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.errors import DamagedStoreError, StoreError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.models.embedding.environment import NO_EMBEDDER
from recollect.stores.maintenance.migrate import MIGRATIONS, Conversion, Migration, Step, migrate
from recollect.stores.sqlite import schema
from recollect.stores.sqlite.copying import verified
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.errors import translated
from recollect.testing.machine import TickingClock, memory_on
from torture.script import Script, lead
from torture.trials import Trial

#: The changes that are tried, by name: the format that the store has before, and the one that it has then.
CHANGES = {"real": (3, 4), "first": (4, 5), "second": (5, 6), "all": (3, 6)}
_KILLED = -signal.SIGKILL


def _rewrite(work: Conversion) -> None:
    for (number,) in work.connection.execute("SELECT number FROM versions ORDER BY number").fetchall():
        sql = "INSERT INTO sizes SELECT number, length(payload) FROM versions WHERE number = ?"
        work.connection.execute(sql, (number,))


def _running(sql: str) -> Callable[[Conversion], object]:
    return lambda work: work.connection.execute(sql)


#: Changes of format that were made for this test, by the format that they start from.
INVENTED = {
    4: Migration(
        reader=4,
        steps=(
            Step("add a column", _running("ALTER TABLE heads ADD COLUMN note TEXT")),
            Step("fill it", _running("UPDATE heads SET note = 'of ' || id")),
            Step("add a table", _running("CREATE TABLE sizes (number INTEGER PRIMARY KEY, bytes INTEGER)")),
            Step("fill that", _rewrite),
        ),
    ),
    5: Migration(
        reader=6,
        before=Step("rewrite the pages", _running("VACUUM")),
        steps=(Step("add an index", _running("CREATE INDEX heads_by_importance ON heads (branch, importance)")),),
        after=Step("give back free space", _running("VACUUM")),
    ),
}


@contextmanager
def release(of_format: int) -> Iterator[None]:
    """As if this were the release of a format: this one's, or an invented one."""
    real = schema.FORMAT, schema.READS_FROM, schema.LEAST_READER, MIGRATIONS.copy()
    schema.FORMAT = schema.READS_FROM = of_format
    schema.LEAST_READER = min(schema.LEAST_READER, of_format)
    MIGRATIONS.update({before: one for before, one in INVENTED.items() if before < of_format})
    try:
        yield
    finally:
        schema.FORMAT, schema.READS_FROM, schema.LEAST_READER = real[:3]
        MIGRATIONS.clear()
        MIGRATIONS.update(real[3])


def _fill(memory: Memory, seed: int, count: int = 12) -> None:
    for step in Script(seed, count).steps:
        lead(step, memory)


def make(path: Path, of_format: int, seed: int) -> None:
    """A store of a format, with a history."""
    with release(of_format):
        memory = memory_on(SqliteStore(path), clock=TickingClock())
        _fill(memory, seed)
        _fill(memory.namespace("other"), seed + 1)
        memory.close()


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
    """What is left after a kill: its format, and of each branch the newest commit, the count of records and the root.

    The root is that of the newest commit.
    """

    format: int
    stored: list[tuple[object, ...]]


def look(path: Path) -> Left:
    """What a store is. Raises: StoreError where it is not whole."""
    with translated(str(path)), closing(checksums.connect(str(path), apsw.SQLITE_OPEN_READWRITE)) as connection:
        of_format = int(connection.pragma("user_version"))
        meta = dict(connection.execute("SELECT name, value FROM meta"))
        problems = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
        stored = connection.execute(
            "SELECT n.name, b.name, c.seq, (SELECT count(*) FROM heads WHERE branch = b.number), hex(c.root) "
            "FROM branches b JOIN namespaces n ON n.number = b.namespace JOIN commits c ON c.branch = b.number "
            "WHERE c.seq = (SELECT max(seq) FROM commits WHERE branch = b.number) ORDER BY 1, 2"
        ).fetchall()
    if problems or meta["format"] != of_format:
        raise DamagedStoreError(str(path), "; ".join([f"meta says format {meta['format']}", *problems]))
    with release(of_format):
        verified(str(path), SqliteStore, PUBLIC_KEY, None)
    return Left(of_format, stored)


def kill_once(folder: Path, seed: int, change: str, at: int) -> str:
    """One migration, killed at a moment; what is wrong then, "" for nothing."""
    before, after = CHANGES[change]
    path, calm = folder / f"{change}-{at}.db", folder / f"{change}-{at}-calm.db"
    make(path, before, seed)
    whole = look(path)
    shutil.copyfile(path, calm)
    with release(after):
        migrate(calm)
    command = [sys.executable, "-m", "torture.migrating", str(path), change, str(at)]
    child = subprocess.run(command, capture_output=True, text=True)
    if child.returncode not in (0, _KILLED):
        return f"the child failed: {child.stderr[-1000:]}"
    try:
        return problem_in(path, whole, look(calm), killed=child.returncode == _KILLED)
    except StoreError as error:
        return f"the store is not whole: {error}"


def problem_in(path: Path, whole: Left, expected: Left, *, killed: bool) -> str:
    """What is wrong with a store whose migration was killed. Raises: StoreError where it is not whole.

    whole     the store before the migration
    expected  the result of a migration that nothing interrupted
    """
    left = look(path)
    if left.format not in ((whole.format, expected.format) if killed else (expected.format,)):
        return f"it has format {left.format}"
    if left not in (whole, expected):
        return "it does not hold what it held"
    if left == expected and look(Path(f"{path}.format-{whole.format}.backup")) != whole:
        return "the backup does not hold what the store held"
    with release(expected.format):
        again = migrate(path)
    if (again.before, again.after) != (left.format, expected.format):
        return f"migrating again went from {again.before} to {again.after}"
    if look(path) != expected:
        return "migrated again, it does not hold what it held"
    with release(expected.format), open_memory(path, clock=TickingClock(), embedder=NO_EMBEDDER) as memory:
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
