"""The full-text index for people: exact words, phrases, prefixes and boolean queries, in order of time.

It is derived from the ledger, lazy, and never in the write path: when someone greps, it first catches up by seq. It
lives in a small SQLite FTS5 file beside the store (`FILE.index/text.db`), which may be deleted at any time, or in
memory where the store is in memory or cannot be written. Words are split and folded by our own tokenizer, so Chinese
phrases are found too; nothing is stemmed.

The write lock is held for catching up only. A search runs in a read transaction of its own, at a moment of the index
that is one of the store's; so a slow one keeps nobody from searching or catching up. (In memory there is but one
connection, and searches take turns.)
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import apsw

from recollect.errors import (
    ClosedError,
    InvalidQueryError,
    NoMemoryError,
    RecollectError,
    StoreBusyError,
    StoreFullError,
    StoreIOError,
)
from recollect.ledger.commits import Branch
from recollect.stores.derived import opening as derived
from recollect.stores.derived.opening import UnusableError
from recollect.stores.sqlite.errors import SQLITE_ERRORS, ours
from recollect.text.words import runs

_log = logging.getLogger("recollect")
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE reached (namespace TEXT, branch TEXT, seq INTEGER, root BLOB,
                                    PRIMARY KEY (namespace, branch));
CREATE TABLE texts (number INTEGER PRIMARY KEY, namespace TEXT, branch TEXT, id TEXT,
                                  UNIQUE (namespace, branch, id));
CREATE VIRTUAL TABLE words
    USING fts5(text, content='', contentless_delete=1, tokenize='unicode61');
"""
#: Changes when the tokenizer or the tables do: an index of another layout is made anew.
_LAYOUT = "3"
#: What SQLite says of a query that is too deep for it.
_TOO_DEEP = ("fts5: parser stack overflow", "fts5 expression tree is too large")
#: Errors that say nothing about the file.
_PASSING = (StoreBusyError, StoreFullError, NoMemoryError)
#: Maximum number of words of a query, and of one phrase in it. SQLite walks all occurrences of each word, and holds
#: those of a phrase in memory together: in a text of 1 MB that says nothing else, some 4 ms and 0.4 MB for each.
MOST_WORDS, MOST_PHRASE_WORDS = 256, 64
#: A search that finds the index at another moment than the store so often holds the write lock while it runs.
_ROUNDS = 5
#: Maximum number of connections that are kept for the next search.
_IDLE = 4
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

    Raises: InvalidQueryError, also for more than MOST_WORDS words, or MOST_PHRASE_WORDS in a phrase.

    >>> fts_query('window-seat or "middle of" ca*')
    '("window" + "seat") OR ("middle" + "of") AND ("ca" *)'
    """
    out: list[str] = []
    operand = False  # whether the last thing was an operand
    depth = at = count = 0
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
        count += len(words)
        if len(words) > MOST_PHRASE_WORDS:
            raise InvalidQueryError(query, f"a phrase has more than {MOST_PHRASE_WORDS} words: ask for part of it")
        if count > MOST_WORDS:
            raise InvalidQueryError(query, f"it has more than {MOST_WORDS} words: ask for fewer")
        out.append("(" + " + ".join(f'"{each}"' for each in words) + (" *" if star else "") + ")")
        operand = True
    if depth or not operand:
        raise InvalidQueryError(query, "( is not closed" if depth else "it ends with an operator, or is empty")
    return " ".join(out)


class Updates(NamedTuple):
    """What is newer than what the index reflects: (id, text, or None where it is not held any more) of each change.

    anew  the index reflects another history (the store was put back from a copy): these are all texts
    """

    seq: int
    root: bytes
    complete: bool
    changed: Iterable[tuple[str, str | None]]


#: From the seq and root that the index reflects (0 and None: nothing) to what is newer.
UpdatesSince = Callable[[int, bytes | None], Updates]


class FullText:
    """The full-text index of a store.

    folder  `FILE.index`, made with mode 0700 when first needed; None keeps the index in memory
    uuid    of the store: an index of another store that lies in that folder is made anew
    """

    def __init__(self, folder: str | None, uuid: str) -> None:
        self._path = None if folder is None else os.path.join(folder, "text.db")
        self._uuid = uuid
        self._lock = threading.Lock()  # to catch up; in memory, for whatever is done
        self._pool = threading.Lock()  # for what follows
        self._idle: list[apsw.Connection] = []
        self._file: tuple[int, int] | None = None  # that the connections are to
        self._life = 0  # of that file
        self._own: apsw.Connection | None = None  # the index in memory
        self._closed = False

    # Connections

    @contextmanager
    def _lent(self) -> Iterator[apsw.Connection]:
        """A connection to the file that is there now, while the block runs.

        Raises: apsw.Error, OSError, UnusableError; ClosedError, since a store may be closed while someone greps, and
        its folder be gone when this is reached: it must not be made again.

        Every one is good for searching and for catching up. There must be a file: see `_in_memory`.
        """
        assert self._path is not None
        with self._pool:
            self._check_open()
            if derived.identity(self._path) != self._file:
                self._drop()  # deleted, or made anew by another process: what these have is nobody's any more
            connection = self._idle.pop() if self._idle else self._opened(self._path)
            if self._file is None:
                self._file = derived.identity(self._path)
            life = self._life
        try:
            yield connection
        finally:
            if connection.in_transaction:
                with suppress(apsw.Error):
                    connection.execute("ROLLBACK")
            with self._pool:
                kept = life == self._life and len(self._idle) < _IDLE and not connection.in_transaction
                if kept:
                    self._idle.append(connection)
            if not kept:
                with suppress(apsw.Error):
                    connection.close()

    def _opened(self, path: str) -> apsw.Connection:
        connection = derived.connect(path, _TABLES)
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            # OFF would let a power cut leave an index that is whole for SQLite and lacks texts that it says it has.
            connection.execute("PRAGMA synchronous = NORMAL")
            if not self._is_ours(connection):
                with derived.writing(connection):
                    if not self._is_ours(connection):
                        self._begin(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_ours(self, connection: apsw.Connection) -> bool:
        about = dict(connection.execute("SELECT name, value FROM about"))
        return about == {"uuid": self._uuid, "layout": _LAYOUT}

    def _begin(self, connection: apsw.Connection) -> None:
        connection.execute("DELETE FROM about; DELETE FROM reached; DELETE FROM texts; DELETE FROM words").fetchall()
        connection.executemany("INSERT INTO about VALUES (?, ?)", [("uuid", self._uuid), ("layout", _LAYOUT)])

    def _drop(self) -> None:
        """Close the connections that nobody uses, and let the others be closed by those who do."""
        self._life += 1
        self._file = None
        idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(apsw.Error):  # it is derived: what could not be kept is made anew
                connection.close()

    def _remove(self) -> None:
        """Delete the files."""
        assert self._path is not None
        with self._pool:
            self._drop()
            derived.remove(self._path)

    def _in_memory(self) -> apsw.Connection:
        """The index in memory. Whoever asks has the turn. Raises: ClosedError."""
        self._check_open()
        if self._own is None:
            self._own = derived.in_memory(_TABLES)
        return self._own

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the memory")

    def close(self) -> None:
        """Close the connections. Searching is an error from then on."""
        with self._lock, self._pool:
            self._closed = True
            self._drop()
            if self._own is not None:
                self._own.close()
                self._own = None

    # Searching

    def search(self, branch: Branch, query: str, news: UpdatesSince) -> list[str]:
        """The ids of the texts that match, once the index is caught up. Raises: InvalidQueryError, StoreBusyError,
        NoMemoryError, StoreFullError, StoreIOError, ClosedError.

        news  is asked for what is newer than what the index reflects, and tells of a moment of the store, the newest
              then. What is found belongs to the moment that it told of last. It is mostly asked once, and again where
              the index has to be caught up, or another process has brought it further.
        """
        wanted = fts_query(query)
        if self._path is None or self._own is not None:
            return self._found_in_memory(branch, query, wanted, news)
        for _ in range(2):
            try:
                return self._search(branch, wanted, news)
            except (*SQLITE_ERRORS, OSError, UnusableError, MemoryError) as error:
                why = self._why_unusable(query, error)
            _log.warning("the full-text index %s cannot be used (%s); it is made anew", self._path, why)
            self._remove()
        _log.warning("there can be no full-text index at %s; it is kept in memory", self._path)
        return self._found_in_memory(branch, query, wanted, news)

    def _found_in_memory(self, branch: Branch, query: str, wanted: str, news: UpdatesSince) -> list[str]:
        with self._lock:
            try:
                return self._found_after_news(self._in_memory(), branch, wanted, news)
            except (*SQLITE_ERRORS, UnusableError, MemoryError) as error:
                why = self._why_unusable(query, error)
                raise StoreIOError(":memory:", f"the full-text index: {why}") from error

    def _why_unusable(self, query: str, error: Exception) -> str:
        """Why the index cannot be used. Raises: our error for one that says nothing about the index."""
        path = self._path or ":memory:"
        if isinstance(error, RecollectError):  # of the store, which was read for what is new
            raise error
        if isinstance(error, MemoryError):
            raise NoMemoryError(path, "while it was searched") from error
        if isinstance(error, apsw.SQLError) and str(error).startswith(_TOO_DEEP):
            raise InvalidQueryError(query, f"it is nested too deeply ({error})") from error
        if isinstance(error, SQLITE_ERRORS):
            told = ours(path, error)
            if isinstance(told, _PASSING):
                raise told from error
        return str(error)

    def _search(self, branch: Branch, wanted: str, news: UpdatesSince) -> list[str]:
        told: Updates | None = None
        for _ in range(_ROUNDS):
            with self._lent() as connection:
                connection.execute("BEGIN")
                reached = self._reached(connection, branch)  # the first that is read: this is the moment
                if told is None or not _agree(reached, told):
                    told = news(*(reached or (0, None)))
                if _agree(reached, told):
                    return self._found(connection, branch, wanted)
            with self._lock, self._lent() as connection, derived.writing(connection):
                told = self._catch_up(connection, branch, news)
        with self._lock, self._lent() as connection:
            return self._found_after_news(connection, branch, wanted, news)

    def _found_after_news(
        self, connection: apsw.Connection, branch: Branch, wanted: str, news: UpdatesSince
    ) -> list[str]:
        """What is found while nobody else can write to the index."""
        with derived.writing(connection):
            self._catch_up(connection, branch, news)
            return self._found(connection, branch, wanted)

    @staticmethod
    def _reached(connection: apsw.Connection, branch: Branch) -> tuple[int, bytes] | None:
        """The seq and root that the index reflects; None where it has nothing of the line. Raises: UnusableError."""
        query = "SELECT seq, root FROM reached WHERE namespace = ? AND branch = ?"
        row = connection.execute(query, branch).fetchone()
        if row is None:
            return None
        seq, root = row
        if not isinstance(seq, int) or not isinstance(root, bytes):
            raise UnusableError("what it reflects is not a commit")
        return seq, root

    def _catch_up(self, connection: apsw.Connection, branch: Branch, news: UpdatesSince) -> Updates:
        """Bring the index to the newest moment, in a transaction; which that is."""
        reached = self._reached(connection, branch)
        told = news(*(reached or (0, None)))
        if told.complete:
            self._forget(connection, branch)
        for record_id, text in told.changed:
            self._apply_one(connection, branch, record_id, text)
        if reached != (told.seq, told.root):
            connection.execute("INSERT OR REPLACE INTO reached VALUES (?, ?, ?, ?)", (*branch, told.seq, told.root))
        return told

    @staticmethod
    def _found(connection: apsw.Connection, branch: Branch, wanted: str) -> list[str]:
        rows = connection.execute(
            "SELECT t.id FROM words JOIN texts t ON t.number = words.rowid "
            "WHERE words MATCH ? AND t.namespace = ? AND t.branch = ?",
            (wanted, *branch),
        )
        found = [row[0] for row in rows]
        if not all(isinstance(each, str) for each in found):
            raise UnusableError("an id in it is not text")
        return found

    @staticmethod
    def _apply_one(connection: apsw.Connection, branch: Branch, record_id: str, text: str | None) -> None:
        found = connection.execute(
            "SELECT number FROM texts WHERE namespace = ? AND branch = ? AND id = ?", (*branch, record_id)
        ).fetchone()
        if found:
            connection.execute("DELETE FROM words WHERE rowid = ?", found)
            connection.execute("DELETE FROM texts WHERE number = ?", found)
        if text is not None:
            connection.execute("INSERT INTO texts (namespace, branch, id) VALUES (?, ?, ?)", (*branch, record_id))
            number = connection.last_insert_rowid()
            connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, " ".join(split(text))))

    @staticmethod
    def _forget(connection: apsw.Connection, branch: Branch) -> None:
        """Let the index of a line be empty."""
        connection.execute(
            "DELETE FROM words WHERE rowid IN (SELECT number FROM texts WHERE namespace = ? AND branch = ?)", branch
        )
        connection.execute("DELETE FROM texts WHERE namespace = ? AND branch = ?", branch)


def _agree(reached: tuple[int, bytes] | None, told: Updates) -> bool:
    """Whether the index stands at the moment that was told of."""
    return (told.seq == 0 and not told.complete) if reached is None else reached == (told.seq, told.root)
