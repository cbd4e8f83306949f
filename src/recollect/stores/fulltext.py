"""The full-text index for people: exact words, phrases, prefixes and boolean queries, in order of time.

It is derived from the ledger, lazy, and never in the write path: when someone greps, it first catches up by seq. It
lives in a small SQLite FTS5 file beside the store (`FILE.index/text.db`), which may be deleted at any time, or in
memory where the store is in memory or cannot be written. Words are split and folded by our own tokenizer, so Chinese
phrases are found too; nothing is stemmed.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

import apsw

from recollect.errors import InvalidQueryError, StoreBusyError, StoreIOError
from recollect.stores import checksums, files
from recollect.stores.base import Line
from recollect.text.words import runs

_log = logging.getLogger("recollect")
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reached (namespace TEXT, branch TEXT, seq INTEGER, root BLOB,
                                    PRIMARY KEY (namespace, branch));
CREATE TABLE IF NOT EXISTS texts (number INTEGER PRIMARY KEY, namespace TEXT, branch TEXT, id TEXT,
                                  UNIQUE (namespace, branch, id));
CREATE VIRTUAL TABLE IF NOT EXISTS words
    USING fts5(text, content='', contentless_delete=1, tokenize='unicode61');
"""
#: Changes when the tokenizer or the tables do: an index of another layout is made anew.
_LAYOUT = "2"
#: What SQLite says of a query that it cannot hold at once; the index is not hurt then.
_TOO_DEEP = ("fts5: parser stack overflow", "fts5 expression tree is too large")
_QUERY = re.compile(r'\s*(?:([()])|"([^"]*)"(\*?)|([^\s()"]+))')


def split(text: str) -> list[str]:
    """The words of a text for full-text search; each character of a script without spaces is a word.

    >>> split("Don't panic: 我喜欢")
    ['don', 't', 'panic', '我', '喜', '欢']
    """
    out: list[str] = []
    for run, unspaced in runs(text):
        out.extend(run if unspaced else run.split("'"))
    return out


def fts_query(query: str) -> str:
    """A query in FTS5's own syntax, with everything that a person may type made safe.

    `and`, `or`, `not` (any case; `a not b` and `a and not b` are the same) and parentheses are operators; "..." is a
    phrase; a trailing * asks for a prefix; words side by side must all occur.

    Raises: InvalidQueryError.

    >>> fts_query('window-seat or "middle of" ca*')
    '("window" + "seat") OR ("middle" + "of") AND ("ca" *)'
    """
    out: list[str] = []
    operand = False  # whether the last thing was an operand
    depth = at = 0
    while at < len(query):
        found = _QUERY.match(query, at)
        if found is None:
            if query[at:].strip():
                raise InvalidQueryError(query, f"a quotation mark is not closed, at character {at + 1}")
            break
        at = found.end()
        bracket, phrase, star, word = found.groups()
        operator = word.upper() if word is not None and word.upper() in ("AND", "OR", "NOT") else ""
        if operator == "NOT" and out and out[-1] == "AND":
            out[-1] = operator  # "and not" is what FTS5 calls NOT
            continue
        if bracket == ")" or operator:
            if not operand:
                raise InvalidQueryError(query, f"{bracket or word} has nothing before it")
            if bracket:
                depth -= 1
                if depth < 0:
                    raise InvalidQueryError(query, ") has no (")
            out.append(bracket or operator)
            operand = bool(bracket)
            continue
        if operand:
            out.append("AND")
        if bracket == "(":
            depth += 1
            out.append("(")
            operand = False
            continue
        if phrase is None:
            phrase, star = (word[:-1], "*") if word.endswith("*") else (word, "")
        words = split(phrase)
        if not words:
            raise InvalidQueryError(query, f"{phrase!r} has no letter or digit")
        out.append("(" + " + ".join(f'"{each}"' for each in words) + (" *" if star else "") + ")")
        operand = True
    if depth or not operand:
        raise InvalidQueryError(query, "( is not closed" if depth else "it ends with an operator, or is empty")
    return " ".join(out)


class Told(NamedTuple):
    """What is newer than what the index reflects: (id, text, or None where it is not held any more) of each change.

    anew  the index reflects another history (the store was put back from a copy): these are all texts
    """

    seq: int
    root: bytes
    anew: bool
    changed: Iterable[tuple[str, str | None]]


#: From the seq and root that the index reflects (0 and None: nothing) to what is newer.
News = Callable[[int, bytes | None], Told]


class FullText:
    """The full-text index of a store.

    folder  `FILE.index`, made with mode 0700 when first needed; None keeps the index in memory
    uuid    of the store: an index of another store that lies in that folder is made anew
    """

    def __init__(self, folder: str | None, uuid: str) -> None:
        self._folder = folder
        self._uuid = uuid
        self._turn = threading.Lock()
        self._connection: apsw.Connection | None = None

    def _open(self) -> apsw.Connection:
        if self._connection is None:
            try:
                self._connection = self._opened(self._folder)
            except (apsw.Error, OSError) as error:
                if self._folder is None:
                    raise
                _log.warning("the full-text index in %s cannot be used (%s); it is made anew", self._folder, error)
                self._remove()
                try:
                    self._connection = self._opened(self._folder)
                except (apsw.Error, OSError) as again:
                    _log.warning("%s cannot hold a full-text index (%s); it is kept in memory", self._folder, again)
                    self._connection = self._opened(None)
        return self._connection

    def _opened(self, folder: str | None) -> apsw.Connection:
        path = ":memory:"
        if folder is not None:
            files.make_folder(folder)
            path = os.path.join(folder, "text.db")
            files.create(path)
        connection = checksums.connect(path)
        checksums.begin(connection)
        connection.set_busy_timeout(10_000)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        # OFF would let a power cut leave an index that is whole for SQLite and lacks texts that it says it has.
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute(_TABLES)
            about = dict(connection.execute("SELECT name, value FROM about"))
            if about != {"uuid": self._uuid, "layout": _LAYOUT}:
                connection.execute("DELETE FROM about; DELETE FROM reached; DELETE FROM texts; DELETE FROM words")
                connection.executemany("INSERT INTO about VALUES (?, ?)", [("uuid", self._uuid), ("layout", _LAYOUT)])
        return connection

    def search(self, line: Line, query: str, news: News) -> list[str]:
        """The ids of the texts that match, once the index is caught up. Raises: InvalidQueryError, StoreBusyError,
        StoreIOError.

        news  is asked, with the index locked, for what is newer than what the index reflects. So no other process can
              be ahead of what it tells, and what is found belongs to the moment that it told of.
        """
        wanted = fts_query(query)
        with self._turn:
            try:
                return self._search(line, wanted, news)
            except (apsw.BusyError, apsw.LockedError) as error:  # another process brings it up
                raise StoreBusyError(self._path, str(error)) from error
            except apsw.Error as error:
                if isinstance(error, apsw.SQLError) and str(error).startswith(_TOO_DEEP):
                    raise InvalidQueryError(query, f"it is nested too deeply ({error})") from error
                _log.warning("the full-text index %s is damaged (%s); it is made anew", self._path, error)
                self._remove()
            try:
                return self._search(line, wanted, news)
            except apsw.Error as error:
                raise StoreIOError(self._path, f"the full-text index: {error}") from error

    def _search(self, line: Line, wanted: str, news: News) -> list[str]:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            row = connection.execute(
                "SELECT seq, root FROM reached WHERE namespace = ? AND branch = ?", line
            ).fetchone()
            told = news(*(row or (0, None)))
            if told.anew:
                self._forget(connection, line)
            for record_id, text in told.changed:
                self._apply_one(connection, line, record_id, text)
            if not row or told.anew or told.seq != row[0]:
                connection.execute("INSERT OR REPLACE INTO reached VALUES (?, ?, ?, ?)", (*line, told.seq, told.root))
            rows = connection.execute(
                "SELECT t.id FROM words JOIN texts t ON t.number = words.rowid "
                "WHERE words MATCH ? AND t.namespace = ? AND t.branch = ?",
                (wanted, *line),
            )
            found = [str(row[0]) for row in rows]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return found

    @staticmethod
    def _apply_one(connection: apsw.Connection, line: Line, record_id: str, text: str | None) -> None:
        found = connection.execute(
            "SELECT number FROM texts WHERE namespace = ? AND branch = ? AND id = ?", (*line, record_id)
        ).fetchone()
        if found:
            connection.execute("DELETE FROM words WHERE rowid = ?", found)
            connection.execute("DELETE FROM texts WHERE number = ?", found)
        if text is not None:
            connection.execute("INSERT INTO texts (namespace, branch, id) VALUES (?, ?, ?)", (*line, record_id))
            number = connection.last_insert_rowid()
            connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, " ".join(split(text))))

    @staticmethod
    def _forget(connection: apsw.Connection, line: Line) -> None:
        """Let the index of a line be empty."""
        connection.execute(
            "DELETE FROM words WHERE rowid IN (SELECT number FROM texts WHERE namespace = ? AND branch = ?)", line
        )
        connection.execute("DELETE FROM texts WHERE namespace = ? AND branch = ?", line)

    def _remove(self) -> None:
        """Close the index and delete its files."""
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.close()
            self._connection = None
        if self._folder is not None:
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    files.remove(self._path + suffix)

    @property
    def _path(self) -> str:
        return ":memory:" if self._folder is None else os.path.join(self._folder, "text.db")

    def close(self) -> None:
        with self._turn:
            if self._connection is not None:
                with suppress(apsw.Error):  # it is derived: what could not be kept is made anew
                    self._connection.close()
                self._connection = None
