"""SQLite files of other programs, read from a private copy.

The copy has what was committed, also what is only in the write-ahead log beside the file so far. The original is read
and nothing else: SQLite would create files beside it, or repair it after an interruption. What a program changes while
it is copied is noticed, and the copy is made again.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from recollect.errors import StoreIOError
from recollect.importers.base import Damage, Omission, format_error, open_file, why_unreadable
from recollect.quoting import printable
from recollect.records.messages.values import UnreadableError, kind_of

_MAGIC = b"SQLite format 3\0"
#: The files beside a database that have a part of its contents: the write-ahead log, and a transaction to undo.
_BESIDE = ("-wal", "-journal")
_COPIES = 5
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
#: What Python raises for files that are damaged. Names of columns may be no text.
_DAMAGED = (sqlite3.Error, UnicodeDecodeError, OverflowError)


def is_database(path: Path) -> bool:
    """Return whether a path is a regular file that begins as those of SQLite do."""
    try:
        with open_file(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """Open a database for a `with` block.

    Args:
        path: The file. It may be a link.

    Raises:
        ImportFormatError: It cannot be read, is no SQLite file, is damaged, or is being changed all the time.
        StoreIOError: There is no room for the copy.

    Cost:
        That of copying the file, into the folder for temporary files.
    """
    with tempfile.TemporaryDirectory(prefix="recollect-") as folder:
        copy = _copied(path, folder)
        try:
            connection = sqlite3.connect(copy, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise format_error(path, "", f"cannot be opened ({error})") from None
        with closing(connection):
            connection.text_factory = _text
            try:
                # Nothing in the file is executed, and a page that is corrupt is noticed.
                for setting in ("query_only=ON", "trusted_schema=OFF", "cell_size_check=ON"):
                    connection.execute(f"PRAGMA {setting}")
                tables = _tables(connection)
            except _DAMAGED as error:
                raise format_error(path, "", f"is a damaged SQLite file ({printable(error)})") from None
            yield Database(path, connection, tables)


class Database:
    """The tables of a database. Views and virtual tables, which can compute anything, are not among them.

    Attributes:
        tables: The names of the columns of each table, by its name.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> None:
        self._path, self._connection, self.tables = path, connection, tables

    def need(self, table: str, *columns: str) -> None:
        """Raise ImportFormatError if there is no intact table with these columns."""
        if missing := [name for name in columns if name not in self.tables.get(table, ())]:
            what = f"lacks the column {missing[0]}" if table in self.tables else "is missing"
            raise format_error(self._path, "", f"is another SQLite file: its table {table} {what}")
        try:
            ((found, *_), *_) = self._connection.execute(f"PRAGMA quick_check({quoted(table)})").fetchall()
        except _DAMAGED as error:
            found = error
        if found != "ok":
            raise format_error(self._path, "", f"is a damaged SQLite file ({printable(found)})")

    def has(self, table: str, *columns: str) -> bool:
        """Return whether there is a table with these columns."""
        return set(columns) <= set(self.tables.get(table, ())) and table in self.tables

    def rows(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query. Text that is not UTF-8 has lone surrogates in it.

        Raises:
            UnreadableError: The file is damaged there.
        """
        try:
            yield from self._connection.execute(query, values)
        except _DAMAGED as error:
            raise UnreadableError(f"cannot be read ({printable(error)})") from None

    def count(self, table: str) -> int:
        """Return the number of rows of a table; 0 if there is none.

        Raises:
            UnreadableError: The file is damaged there.
        """
        if table not in self.tables:
            return 0
        ((count,),) = self.rows(f"SELECT count(*) FROM {quoted(table)}")
        return int(count)

    def others(self, known: Collection[str]) -> Iterator[Omission | Damage]:
        """Yield what the tables contain that an importer does not know."""
        for table in self.tables:
            if table not in known:
                what = f"rows of the table {printable(table)}"
                try:
                    yield Omission(what, self.count(table))
                except UnreadableError as error:
                    yield Damage(what, str(error))


def quoted(name: str) -> str:
    """Return a name for a statement.

    >>> quoted('agent"s')
    '"agent""s"'
    """
    return '"' + name.replace('"', '""') + '"'


def text_of(value: Any, name: str) -> str:
    """Return a value of a row that must be text. Raises UnreadableError."""
    if isinstance(value, bytes):  # some programs write JSON as bytes
        value = _text(value)
    if not isinstance(value, str):
        raise UnreadableError(f"its {name} is {kind_of(value)}, not text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UnreadableError(f"its {name} is not text in UTF-8")
    return value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return the columns of each ordinary table, without those in which a virtual table keeps its contents."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in found if not sql or sql.upper().startswith("CREATE VIRTUAL")]
    return {
        name: tuple(row[1] for row in connection.execute(f"PRAGMA table_xinfo({quoted(name)})"))
        for name, _ in found
        if name not in virtual and not name.startswith(("sqlite_", *(f"{each}_" for each in virtual)))
    }


def _copied(path: Path, folder: str) -> str:
    """Return the path of a copy of a database in a folder."""
    target = os.path.join(folder, "copy")
    try:
        with open_file(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise format_error(path, "", "is no SQLite file")
        real = os.path.realpath(path)
        for _ in range(_COPIES):
            before = _state(real)
            for suffix in ("", *_BESIDE):
                _copy(real + suffix, target + suffix)
            if _state(real) == before:
                return target
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise StoreIOError(folder, f"a copy of {printable(path)} has no room here: {error.strerror}") from None
        raise format_error(path, "", why_unreadable(error)) from None
    raise format_error(path, "", "is being changed by another program: close that, and import the file again")


def _copy(path: str, target: str) -> None:
    """Copy a file; remove the target if there is none."""
    try:
        source = open_file(Path(path))
    except FileNotFoundError:
        Path(target).unlink(missing_ok=True)
        return
    with source, open(target, "wb") as file:
        shutil.copyfileobj(source, file, 2**20)


def _state(path: str) -> list[tuple[int, int, int] | None]:
    """Return what tells whether a database is as it was: size, time and number of its files."""
    out: list[tuple[int, int, int] | None] = []
    for suffix in ("", *_BESIDE):
        try:
            found = os.stat(path + suffix)
        except FileNotFoundError:
            out.append(None)
        else:
            out.append((found.st_size, found.st_mtime_ns, found.st_ino))
    return out
