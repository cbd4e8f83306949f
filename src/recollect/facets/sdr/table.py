"""The table of sdr-memory in an SQLite file: written from texts with sparse codes, and read.

    id INTEGER PRIMARY KEY, text, bitvec (512 bytes), active_bits, metadata_json, created_ts, updated_ts (Unix seconds)

What is written has normalised texts and the codes of the rule. Codes that are read are not used: they follow from the
texts, and sdr-memory's hash is not public.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

from recollect.arguments.checks import file_path
from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.facets.sdr.index.encoding import RULE, encoded, normalised, packed
from recollect.facets.sdr.texts import SdrText, checked_number, checked_text, moment

#: The name of the table that is written.
_TABLE = "memories"
_COLUMNS = ("id", "text", "bitvec", "active_bits", "metadata_json", "created_ts", "updated_ts")
_INTERRUPTED = "the program that wrote it was interrupted: open the file with it, or with sqlite3, before it is read"
_SCHEMA = f"""CREATE TABLE {_TABLE} (
    id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, bitvec BLOB NOT NULL, active_bits INTEGER NOT NULL,
    metadata_json TEXT NOT NULL, created_ts REAL NOT NULL, updated_ts REAL NOT NULL)"""


def write_table(path: str | os.PathLike[str], texts: Iterable[SdrText]) -> int:
    """Write texts to an SQLite file in WAL mode, and return their number. The file appears when it is complete.

    Args:
        path: The path of the file. A file with such a table is replaced, any other is not.
        texts: The texts, as `Sdr.texts` returns them; metadata may be None.

    Raises:
        InvalidArgumentError: There is another file at the path, or one that is in use; or they are no such texts, or
            two of them have the same id. The file is as it was.
        StoreIOError: Writing failed.
    """
    target = Path(_path(path))
    if not isinstance(texts, Iterable):
        raise InvalidArgumentError("texts", texts, "must be texts, as Sdr.texts returns them")
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    numbers: set[int] = set()
    try:
        _check_replaceable(target)
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as database, database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(_SCHEMA)
            for at, each in enumerate(texts):
                row = _row(f"texts[{at}]", each)
                if row[0] in numbers:
                    raise InvalidArgumentError(f"texts[{at}].id", row[0], "is the id of another text, too")
                numbers.add(row[0])
                database.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        _check_unused(target)
        os.replace(part, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreIOError(str(target), str(error)) from error
    finally:
        part.unlink(missing_ok=True)
    return len(numbers)


def read_table(path: str | os.PathLike[str]) -> list[SdrText]:
    """Return the texts of the table with these columns in an SQLite file, which is not changed.

    Raises:
        InvalidArgumentError: The argument is not a path.
        ImportFormatError: There is no such table, or a row is not as it must be; the message names it.
        StoreIOError: The file cannot be read.
    """
    source = Path(_path(path))
    try:
        with closing(_opened(source)) as database:
            table = _table_of(database)
            if table is None:
                raise ImportFormatError(str(path), "the file", f"has no table with the columns {', '.join(_COLUMNS)}")
            columns = ", ".join(each for each in _COLUMNS if each not in ("bitvec", "active_bits"))
            rows = database.execute(f'SELECT {columns} FROM "{table}" ORDER BY id').fetchall()
    except (OSError, sqlite3.Error) as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_NOTADB:
            raise ImportFormatError(str(path), "the file", "is no SQLite file") from error
        if code == sqlite3.SQLITE_READONLY_ROLLBACK:
            raise StoreIOError(str(path), _INTERRUPTED) from error
        raise StoreIOError(str(path), str(error)) from error
    out = [_text(str(path), row) for row in rows]
    for one, other in pairwise(out):
        if one["id"] == other["id"]:
            raise ImportFormatError(str(path), f"the row with the id {one['id']}", "has the id of another row")
    return out


def _path(path: object) -> str:
    file_path("path", path)
    return os.fspath(path)  # type: ignore[call-overload, no-any-return]


def _beside(path: Path) -> list[str]:
    """Return the names of the files with changes that SQLite would apply to a file, or with its locks.

    The first byte is zero, or there is none, if SQLite has finished with such a file.
    """
    out = []
    for suffix in ("-wal", "-journal", "-shm"):
        other = path.with_name(path.name + suffix)
        try:
            with other.open("rb") as file:
                if file.read(1).strip(b"\0"):
                    out.append(other.name)
        except FileNotFoundError:
            pass
    return out


def _check_replaceable(target: Path) -> None:
    """Raise InvalidArgumentError if a file must not be replaced: it has no table, or is in use."""
    if target.is_dir():
        raise InvalidArgumentError("path", str(target), "is a folder: give the path of a file")
    if target.exists() and not any(name.endswith("-journal") for name in _beside(target)):
        if not _has_table(target):
            rule = "is a file that is no table of sdr-memory: it was not replaced"
            raise InvalidArgumentError("path", str(target), rule)
        _settle(target)
    _check_unused(target)


def _check_unused(target: Path) -> None:
    """Raise InvalidArgumentError if SQLite would apply changes of the present file to one that replaces it."""
    if beside := _beside(target):
        what = "is in use, or the program that wrote it was interrupted" if target.exists() else "is no file any more"
        rule = f"{what}: {' and '.join(beside)} would change what is written; nothing was replaced"
        raise InvalidArgumentError("path", str(target), rule)


def _settle(target: Path) -> None:
    """Write what is in the WAL of a file to the file. SQLite then removes the WAL, unless the file is in use.

    Raises:
        InvalidArgumentError: Another program is writing to the file.
    """
    try:
        with closing(sqlite3.connect(target, timeout=0, isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            database.execute("ROLLBACK")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        _raise_if_busy(target, error)  # any other error leaves the WAL, which is looked for next


def _raise_if_busy(path: Path, error: Exception) -> None:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        raise InvalidArgumentError("path", str(path), "is in use: nothing was replaced") from error


def _opened(path: Path) -> sqlite3.Connection:
    if path.is_dir():
        raise IsADirectoryError("it is a folder")
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    # Without a WAL and a journal nothing is pending: SQLite then need not leave a WAL of its own beside the file.
    pending = any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal"))
    mode = "mode=ro" if pending else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)


def _has_table(path: Path) -> bool:
    try:
        with closing(_opened(path)) as database:
            return _table_of(database) is not None
    except (OSError, sqlite3.Error) as error:
        _raise_if_busy(path, error)
        return False


def _table_of(database: sqlite3.Connection) -> str | None:
    """Return the name of the first table with all columns."""
    names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    for (name,) in names:
        columns = database.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall()
        if '"' not in name and set(_COLUMNS) <= {column for (column,) in columns}:
            return str(name)
    return None


def _row(name: str, text: object) -> tuple[Any, ...]:
    checked = checked_text(name, text)
    try:
        metadata = json.dumps(checked["metadata"], ensure_ascii=False, sort_keys=True, allow_nan=False)
        metadata.encode("utf-8")
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgumentError(f"{name}.metadata", checked["metadata"], "must be a JSON object") from None
    bits = encoded(checked["text"], RULE)
    times = checked["created_ts"], checked["updated_ts"]
    return checked["id"], normalised(checked["text"]), packed(bits), len(bits), metadata, *times


def _text(path: str, row: tuple[Any, ...]) -> SdrText:
    number, text, data, created, updated = row
    place = f"the row with the id {number}"
    if not isinstance(text, str) or not text.strip():
        raise ImportFormatError(path, place, "has no text")
    try:
        metadata = json.loads(data, parse_constant=_refused) if data else {}
    except (TypeError, ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise ImportFormatError(path, place, "has metadata_json that is not a JSON object")
    try:
        checked_number("id", number)
        moment("created_ts", created)
        moment("updated_ts", updated)
    except InvalidArgumentError as error:
        raise ImportFormatError(path, place, str(error)) from None
    return {"id": number, "text": text, "metadata": metadata, "created_ts": created, "updated_ts": updated}


def _refused(constant: str) -> None:
    raise ValueError(constant)
