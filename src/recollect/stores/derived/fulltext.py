"""The full-text index behind `grep`: exact words, phrases, prefixes and boolean queries.

The index is derived from the ledger and updated lazily, never on the write path: a search first catches up by seq. It
is stored in a small SQLite FTS5 file next to the store (`FILE.index/text.db`), which may be deleted at any time, or in
memory if the store is in memory or cannot be written. Words are split and folded by Recollect's own tokenizer, so
Chinese phrases are found too; words are not stemmed.

The index is locked for writing only while it catches up. A search runs in its own read transaction, on a state of the
index that matches a view of the store, so a slow search does not keep others from searching or catching up. (An index
in memory has a single connection, so its searches run one at a time.)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import apsw

from recollect.common.regexes import regex
from recollect.errors import (
    ClosedError,
    DamagedStoreError,
    InvalidQueryError,
    NoMemoryError,
    NotAStoreError,
    RecollectError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreIOError,
)
from recollect.ledger.commits import Branch
from recollect.stores.derived.database import DerivedDatabase, UnusableError, column, in_memory, purged, remove, writing
from recollect.stores.sealing.keys import Unlocked
from recollect.stores.sqlite_base.connections import has_snapshot
from recollect.stores.sqlite_base.errors import SQLITE_ERRORS, ours, translated
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
#: The start of SQLite's messages for a query that is nested too deeply.
_TOO_DEEP = ("fts5: parser stack overflow", "fts5 expression tree is too large")
#: Errors that do not mean that the file is unusable.
_TRANSIENT = (StoreBusyError, StoreFullError, NoMemoryError)
#: Maximum number of words in a query, and in one phrase of it. SQLite visits all occurrences of each word, and loads
#: those of a phrase together: in a text of 1 MB that only repeats the word, about 4 ms and 0.4 MB for each.
MOST_WORDS, MOST_PHRASE_WORDS = 256, 64
#: After this many attempts to search an index that agrees with the store, the search runs under the write lock.
_ROUNDS = 5
#: Maximum number of connections that are kept open for later searches.
_IDLE = 4
_QUERY = regex(r'\s*(?:([()])|"([^"]*)"(\*?)|([^\s()"]+))')


def split(text: str) -> list[str]:
    """Split a text into the words of full-text search; each character of a script without spaces is a word.

    >>> split("Don't panic: 我喜欢")
    ['don', 't', 'panic', '我', '喜', '欢']
    """
    out: list[str] = []
    for run, unspaced in runs(text):
        out.extend(run if unspaced else run.split("'"))
    return out


def fts_query(query: str) -> str:
    """Translate a query into FTS5's syntax; any input is safe.

    `and`, `or`, `not` (any case; `a not b` and `a and not b` are the same) and parentheses are operators; "..." is a
    phrase; a trailing * matches a prefix; adjacent words must all occur.

    Raises:
        InvalidQueryError: The syntax is invalid, or there are more than MOST_WORDS words, or more than
            MOST_PHRASE_WORDS in a phrase.

    >>> fts_query('window-seat or "middle of" ca*')
    '("window" + "seat") OR ("middle" + "of") AND ("ca" *)'
    """
    out: list[str] = []
    operand = False  # whether the last token was an operand
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
            out[-1] = operator  # FTS5 writes "and not" as NOT
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
            raise InvalidQueryError(query, f"a phrase has more than {MOST_PHRASE_WORDS} words: use a part of it")
        if count > MOST_WORDS:
            raise InvalidQueryError(query, f"it has more than {MOST_WORDS} words: use fewer")
        out.append("(" + " + ".join(f'"{each}"' for each in words) + (" *" if star else "") + ")")
        operand = True
    if depth or not operand:
        raise InvalidQueryError(query, "( is not closed" if depth else "it ends with an operator, or is empty")
    return " ".join(out)


class Updates(NamedTuple):
    """The changes since the state that a full-text index reflects.

    Attributes:
        seq: The commit that these changes lead to.
        root: The root after that commit.
        complete: The index reflects another history (the store was restored from a copy): `changed` has all texts, and
            the branch must be reindexed.
        changed: The changed ids, each with its text, or None if the record is not live any more.
    """

    seq: int
    root: bytes
    complete: bool
    changed: Iterable[tuple[str, str | None]]


#: Returns the updates since the seq and root that the index reflects (0 and None if it is empty).
UpdatesSince = Callable[[int, bytes | None], Updates]


class FullText(DerivedDatabase):
    """The full-text index of a store.

    Args:
        folder: `FILE.index`, created with mode 0700 when first needed; None keeps the index in memory.
        uuid: The uuid of the store. An index of another store in that folder is emptied and rebuilt.
    """

    NAME, TABLES = "text.db", _TABLES
    LAYOUT, CONTENTS = "3", ("reached", "texts", "words")  # the layout changes with the tokenizer, too
    WAL = True
    TIMEOUT_MS = 10_000
    WARNING = "the full-text index %s cannot be used (%s); it is rebuilt"

    def __init__(self, folder: str | None, uuid: str, *, keys: Unlocked | None = None) -> None:
        super().__init__(folder, uuid, keys=keys)
        # `_lock` is taken to catch up, and to use an index in memory: only that has `_connection`.
        self._pool = threading.Lock()  # for `_file`, on which the connections are open, and for the fields below
        self._idle: list[apsw.Connection] = []
        self._generation = 0  # of that file
        self._closed = False

    # Connections

    @contextmanager
    def _connected(self) -> Iterator[apsw.Connection]:
        """Provide a connection to the current file, for searching or catching up. Not for an index in memory.

        Raises:
            ClosedError: The store has been closed, perhaps during this search. Its folder may have been deleted since,
                and must not be created again.
            apsw.Error: SQLite failed.
            OSError: The file cannot be opened.
            UnusableError: The file has other contents.
        """
        with self._pool:
            self._check_open()
            if self._identity() != self._file:
                self._drop()  # deleted, or recreated by another process: these connections are open on the old file
            connection = self._idle.pop() if self._idle else self._connect()
            if self._file is None:
                self._file = self._identity()
            generation = self._generation
        try:
            yield connection
        finally:
            if connection.in_transaction:
                with suppress(apsw.Error):
                    connection.execute("ROLLBACK")
            with self._pool:
                reusable = generation == self._generation and len(self._idle) < _IDLE and not has_snapshot(connection)
                if reusable:
                    self._idle.append(connection)
            if not reusable:
                with suppress(apsw.Error):
                    connection.close()

    def _drop(self) -> None:
        """Close the idle connections. Those in use are closed when they are returned."""
        self._generation += 1
        self._file = None
        idle, self._idle = self._idle, []
        for connection in idle:
            with suppress(apsw.Error):
                connection.close()

    def _remove(self) -> None:
        with self._pool:
            self._drop()
            if self._path is not None:
                remove(self._path)

    def _in_memory(self) -> apsw.Connection:
        """Return the index in memory. The caller must hold `_lock`. Raise ClosedError if the store is closed."""
        self._check_open()
        if self._connection is None:
            self._connection = in_memory(_TABLES)
        return self._connection

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the memory")

    def clear(self) -> bool:
        """Remove everything, so that a later search indexes all texts again. Return False if others prevent that.

        Raises:
            StoreError: The index cannot be written.
        """
        with self._lock:
            self._check_open()
            self._disconnect()
            if self._identity() is None:
                return True
            try:
                with translated(self._where), self._connected() as connection:
                    with writing(connection):
                        connection.execute("INSERT INTO words (words) VALUES ('delete-all')").fetchall()
                        connection.execute("DELETE FROM reached; DELETE FROM texts").fetchall()
                    # No rewriting: tables that are emptied leave no part of a page as it was.
                    return purged(connection, rewrite=False)
            except StoreBusyError:
                return False
            except (DamagedStoreError, NotAStoreError, UnusableError) as error:
                _log.warning(self.WARNING, self._path, error)
                self._remove()
                return True
            except OSError as error:
                raise StoreIOError(self._where, str(error)) from error

    def drop(self, branch: Branch) -> None:
        """Remove the texts of a branch that was removed. If that fails, they stay until the next erasure."""
        with self._lock:
            if self._connection is not None:
                self._forget(self._connection, branch)
            if self._closed or self._identity() is None:
                return
            try:
                with translated(self._where), self._connected() as connection, writing(connection):
                    self._forget(connection, branch)
            except (StoreError, OSError) as error:
                _log.info("the texts of branch %r stay in the full-text index: %s", branch.name, error)

    def close(self) -> None:
        """Close the connections. A later search raises ClosedError."""
        with self._lock, self._pool:
            self._closed = True
            self._drop()
            self._disconnect()

    # Searching

    def search(self, branch: Branch, query: str, updates_since: UpdatesSince) -> list[str]:
        """Catch up, then return the ids of the texts that match, in no particular order.

        Args:
            updates_since: Opens a view of the newest state of the store and returns what is newer than the index. The
                result of the search belongs to the view of its last call. It is usually called once, and again if the
                index has to be caught up or another process has updated it.

        Raises:
            InvalidQueryError: The query is invalid.
            StoreBusyError: The index is locked by another process.
            NoMemoryError: Memory is exhausted.
            StoreFullError: The disk is full.
            StoreIOError: The index cannot be used even in memory.
            ClosedError: The store is closed.
        """
        expression = fts_query(query)
        if self._path is None or self._connection is not None:
            return self._found_in_memory(branch, query, expression, updates_since)
        for _ in range(2):
            try:
                return self._search(branch, expression, updates_since)
            except (*SQLITE_ERRORS, OSError, UnusableError, MemoryError) as error:
                why = self._why_unusable(query, error)
            _log.warning(self.WARNING, self._path, why)
            self._remove()
        _log.warning("no full-text index can be created at %s; it is kept in memory", self._path)
        return self._found_in_memory(branch, query, expression, updates_since)

    def _found_in_memory(self, branch: Branch, query: str, expression: str, updates_since: UpdatesSince) -> list[str]:
        with self._lock:
            try:
                return self._found_after_catching_up(self._in_memory(), branch, expression, updates_since)
            except (*SQLITE_ERRORS, UnusableError, MemoryError) as error:
                why = self._why_unusable(query, error)
                raise StoreIOError(":memory:", f"the full-text index: {why}") from error

    def _why_unusable(self, query: str, error: Exception) -> str:
        """Return why the index cannot be used. Raise a Recollect error if the index is not the cause."""
        if isinstance(error, RecollectError):  # from reading the store for updates
            raise error
        if isinstance(error, MemoryError):
            raise NoMemoryError(self._where, "during a full-text search") from error
        if isinstance(error, apsw.SQLError) and str(error).startswith(_TOO_DEEP):
            raise InvalidQueryError(query, f"it is nested too deeply ({error})") from error
        if isinstance(error, SQLITE_ERRORS):
            translated = ours(self._where, error)
            if isinstance(translated, _TRANSIENT):
                raise translated from error
        return str(error)

    def _search(self, branch: Branch, expression: str, updates_since: UpdatesSince) -> list[str]:
        updates: Updates | None = None
        for _ in range(_ROUNDS):
            with self._connected() as connection:
                connection.execute("BEGIN")
                reached = self._reached(connection, branch)  # the first read, which fixes the snapshot
                if updates is None or not _agree(reached, updates):
                    updates = updates_since(*(reached or (0, None)))
                if _agree(reached, updates):
                    return self._found(connection, branch, expression)
            with self._lock, self._connected() as connection, writing(connection):
                updates = self._catch_up(connection, branch, updates_since)
        with self._lock, self._connected() as connection:
            return self._found_after_catching_up(connection, branch, expression, updates_since)

    def _found_after_catching_up(
        self, connection: apsw.Connection, branch: Branch, expression: str, updates_since: UpdatesSince
    ) -> list[str]:
        """Catch up and search while no other connection can write to the index."""
        with writing(connection):
            self._catch_up(connection, branch, updates_since)
            return self._found(connection, branch, expression)

    @staticmethod
    def _reached(connection: apsw.Connection, branch: Branch) -> tuple[int, bytes] | None:
        """Return the seq and root that the index reflects; None if it has nothing of the branch."""
        query = "SELECT seq, root FROM reached WHERE namespace = ? AND branch = ?"
        row = connection.execute(query, branch).fetchone()
        if row is None:
            return None
        return column(int, row[0]), column(bytes, row[1])

    def _catch_up(self, connection: apsw.Connection, branch: Branch, updates_since: UpdatesSince) -> Updates:
        """Catch the index up to the newest state of the store, inside a transaction, and return the updates applied."""
        reached = self._reached(connection, branch)
        updates = updates_since(*(reached or (0, None)))
        if updates.complete:
            self._forget(connection, branch)
        for record_id, text in updates.changed:
            self._apply_one(connection, branch, record_id, text)
        if reached != (updates.seq, updates.root):
            connection.execute(
                "INSERT OR REPLACE INTO reached VALUES (?, ?, ?, ?)", (*branch, updates.seq, updates.root)
            )
        return updates

    @staticmethod
    def _found(connection: apsw.Connection, branch: Branch, expression: str) -> list[str]:
        rows = connection.execute(
            "SELECT t.id FROM words JOIN texts t ON t.number = words.rowid "
            "WHERE words MATCH ? AND t.namespace = ? AND t.branch = ?",
            (expression, *branch),
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
        """Remove all texts of a branch."""
        connection.execute(
            "DELETE FROM words WHERE rowid IN (SELECT number FROM texts WHERE namespace = ? AND branch = ?)", branch
        )
        connection.execute("DELETE FROM texts WHERE namespace = ? AND branch = ?", branch)
        connection.execute("DELETE FROM reached WHERE namespace = ? AND branch = ?", branch)


def _agree(reached: tuple[int, bytes] | None, updates: Updates) -> bool:
    """Return whether the index reflects exactly the state that the updates lead to."""
    return (updates.seq == 0 and not updates.complete) if reached is None else reached == (updates.seq, updates.root)
