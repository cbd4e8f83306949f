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
from pathlib import Path
from typing import Any

from recollect.errors import ImportFormatError, InvalidArgumentError, StoreIOError
from recollect.indexes.sdr.encoding import RULE, encoded, normalised, packed
from recollect.memory.sdr.sdr import SdrText

#: The name of the table that is written.
_TABLE = "memories"
_COLUMNS = ("id", "text", "bitvec", "active_bits", "metadata_json", "created_ts", "updated_ts")
_SCHEMA = f"""CREATE TABLE {_TABLE} (
    id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, bitvec BLOB NOT NULL, active_bits INTEGER NOT NULL,
    metadata_json TEXT NOT NULL, created_ts REAL NOT NULL, updated_ts REAL NOT NULL)"""


def write_table(path: str | os.PathLike[str], texts: Iterable[SdrText]) -> int:
    """Write texts to a new SQLite file in WAL mode, and return their number. The file appears when it is whole.

    Args:
        path: The path of the file. A file with such a table is replaced, any other is not.
        texts: The texts.

    Raises:
        InvalidArgumentError: There is another file at the path. It is as it was.
        StoreIOError: Writing failed.
    """
    target = Path(path)
    if target.exists() and not _has_table(target):
        raise InvalidArgumentError("path", str(target), "is a file that is no table of sdr-memory: it was not replaced")
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    count = 0
    try:
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part)) as database, database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(_SCHEMA)
            for each in texts:
                database.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)", _row(each))
                count += 1
        os.replace(part, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreIOError(str(target), str(error)) from error
    finally:
        part.unlink(missing_ok=True)
    return count


def read_table(path: str | os.PathLike[str]) -> list[SdrText]:
    """Return the texts of the table with these columns in an SQLite file, which is not changed.

    Raises:
        ImportFormatError: There is no such table, or a row is not as it must be; the message names it.
        StoreIOError: The file cannot be read.
    """
    try:
        with closing(_opened(Path(path))) as database:
            table = _table_of(database)
            if table is None:
                raise ImportFormatError(str(path), "the file", f"has no table with the columns {', '.join(_COLUMNS)}")
            columns = ", ".join(each for each in _COLUMNS if each not in ("bitvec", "active_bits"))
            rows = database.execute(f'SELECT {columns} FROM "{table}" ORDER BY id').fetchall()
    except (OSError, sqlite3.Error) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise ImportFormatError(str(path), "the file", "is no SQLite file") from error
        raise StoreIOError(str(path), str(error)) from error
    return [_text(str(path), row) for row in rows]


def _opened(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    # Without a WAL nothing is pending: SQLite then need not leave a WAL of its own beside the file.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "mode=ro&immutable=1"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)


def _has_table(path: Path) -> bool:
    try:
        with closing(_opened(path)) as database:
            return _table_of(database) is not None
    except (OSError, sqlite3.Error):
        return False


def _table_of(database: sqlite3.Connection) -> str | None:
    """Return the name of the first table with all columns."""
    names = database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    for (name,) in names:
        columns = database.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall()
        if '"' not in name and set(_COLUMNS) <= {column for (column,) in columns}:
            return str(name)
    return None


def _row(text: SdrText) -> tuple[Any, ...]:
    bits = encoded(text["text"], RULE)
    metadata = json.dumps(text["metadata"], ensure_ascii=False, sort_keys=True)
    times = text["created_ts"], text["updated_ts"]
    return text["id"], normalised(text["text"]), packed(bits), len(bits), metadata, *times


def _text(path: str, row: tuple[Any, ...]) -> SdrText:
    number, text, data, created, updated = row
    place = f"the row with the id {number}"
    if not isinstance(text, str) or not text.strip():
        raise ImportFormatError(path, place, "has no text")
    try:
        metadata = json.loads(data) if data else {}
    except (TypeError, ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise ImportFormatError(path, place, "has metadata_json that is not a JSON object")
    if not all(isinstance(each, (int, float)) for each in (created, updated)):
        raise ImportFormatError(path, place, "has times that are not seconds since 1970")
    return {"id": number, "text": text, "metadata": metadata, "created_ts": created, "updated_ts": updated}
