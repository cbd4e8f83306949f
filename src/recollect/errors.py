"""Every error that Recollect raises on purpose.

One base class, so that `except RecollectError` catches all of them; a stable `code` each, for programs and wires; the
fields in `args`, so that an error survives pickling and a socket. The message says what happened, what state things
are in, and what to do. Errors that have an obvious built-in counterpart are also that (an invalid value is a
`ValueError`), so that ordinary Python code need not know this module.
"""

from __future__ import annotations

import logging
from functools import wraps
from typing import Any, ClassVar


class RecollectError(Exception):
    """The base of all errors of this package."""

    code: ClassVar[str] = "error"

    def __init_subclass__(cls) -> None:
        """Let no message hold a character that a terminal obeys: what it tells of may come from anywhere.

        That is done here for every error, as each has texts from outside: paths, names, what a server says.
        """
        super().__init_subclass__()
        message = cls.__dict__.get("__str__")
        if message is not None:
            cls.__str__ = wraps(message)(lambda self: printable(message(self)))  # type: ignore[method-assign]

    def to_json(self) -> dict[str, Any]:
        """`{"error": code, "message": ..., "args": [...]}`, the form in which an error crosses a wire."""
        return {"error": self.code, "message": str(self), "args": [_plain(arg) for arg in self.args]}


def printable(text: object) -> str:
    """A text from outside as a message shows it: on one line, and valid Unicode whatever it was.

    >>> printable("a" + chr(10) + "b" + chr(0xD800) + chr(27))
    'a\\\\nb\\\\ud800\\\\x1b'
    """
    valid = str(text).encode("utf-8", "backslashreplace").decode("utf-8")
    if valid.isprintable():
        return valid
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in valid)


def _printable(record: logging.LogRecord) -> bool:
    """Let no line of the log hold such a character either: it tells of files and servers, and may go to a terminal."""
    record.msg, record.args = printable(record.getMessage()), ()
    return True


logging.getLogger("recollect").addFilter(_printable)


def _plain(arg: object) -> Any:
    return arg if isinstance(arg, (str, int, float, bool, type(None))) else shown(arg)


class Shown(str):
    """A value as it was shown once, so that it is not quoted again when its error is unpickled."""

    __slots__ = ()


def shown(value: object, limit: int = 80) -> str:
    """The value as an error message shows it: `repr`, cut to `limit` characters, never raising and never slow.

    A lone surrogate is shown escaped, so that the message itself can always be printed.
    """
    if isinstance(value, Shown):
        return value
    if isinstance(value, (str, bytes, list, tuple)) and len(value) > limit:
        value = value[:limit]
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ must not replace the error that is being reported
        text = f"<{type(value).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return Shown(text if len(text) <= limit else text[: limit - 3] + "...")


class InvalidArgumentError(RecollectError, ValueError):
    """An argument of a call is outside what the call takes."""

    code = "invalid_argument"

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(name, shown(value), rule)

    def __str__(self) -> str:
        return f"{self.args[0]} = {self.args[1]}: {self.args[2]}; nothing was changed"


class UnknownArgumentError(RecollectError, TypeError):
    """A keyword that the call does not know."""

    code = "unknown_argument"

    def __init__(self, call: str, name: str, similar: str = "") -> None:
        super().__init__(call, name, similar)

    def __str__(self) -> str:
        hint = f" (did you mean {self.args[2]!r}?)" if self.args[2] else ""
        return f"{self.args[0]} has no argument {self.args[1]!r}{hint}; nothing was changed"


class InvalidRecordError(RecollectError, ValueError):
    """A field of a record breaks its rule, so the record cannot exist."""

    code = "invalid_record"

    def __init__(self, field: str, value: object, rule: str) -> None:
        super().__init__(field, shown(value), rule)

    @property
    def field(self) -> str:
        return str(self.args[0])

    def __str__(self) -> str:
        return f"{self.args[0]} = {self.args[1]}: {self.args[2]}; nothing was changed"


class InvalidFilterError(RecollectError, ValueError):
    """A filter is malformed, in its JSON form, its text form or its values."""

    code = "invalid_filter"

    def __init__(self, what: object, rule: str) -> None:
        super().__init__(shown(what), rule)

    def __str__(self) -> str:
        return f"filter {self.args[0]}: {self.args[1]}; nothing was changed"


class InvalidOperationError(RecollectError, ValueError):
    """The JSON form of an operation is not one."""

    code = "invalid_operation"

    def __init__(self, what: object, rule: str) -> None:
        super().__init__(shown(what), rule)

    def __str__(self) -> str:
        return f"operation {self.args[0]}: {self.args[1]}; nothing was changed"


class InvalidQueryError(RecollectError, ValueError):
    """A full-text query (grep) cannot be read."""

    code = "invalid_query"

    def __init__(self, query: str, rule: str) -> None:
        super().__init__(shown(query), rule)

    def __str__(self) -> str:
        return f"query {self.args[0]}: {self.args[1]}; nothing was changed"


class UnsupportedError(RecollectError):
    """A thing that is right in itself cannot be done here."""

    code = "unsupported"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}; nothing was changed"


class CodecError(RecollectError, ValueError):
    """Bytes that should be a canonical encoding are not."""

    code = "codec"

    def __init__(self, rule: str, offset: int) -> None:
        super().__init__(rule, offset)

    def __str__(self) -> str:
        return f"not a canonical record: {self.args[0]} at byte {self.args[1]}; the bytes were left as they are"


class UnknownRecordError(RecollectError, LookupError):
    """No record of that id has ever been held here."""

    code = "unknown_record"

    def __init__(self, record_id: str, namespace: str) -> None:
        super().__init__(record_id, namespace)

    def __str__(self) -> str:
        return f"no record {shown(self.args[0])} in namespace {self.args[1]!r}; nothing was changed"


class RecordExistsError(RecollectError):
    """`if_exists="error"`, and the record is already there."""

    code = "record_exists"

    def __init__(self, record_id: str, current: str) -> None:
        super().__init__(record_id, current)

    def __str__(self) -> str:
        return (
            f"record {shown(self.args[0])} is already there with hash {self.args[1]}; nothing was changed: "
            "give another id, or use if_exists='keep' or 'update'"
        )


class ConflictError(RecollectError):
    """A condition (`expect`, `expect_head`) does not hold. Carries what is there now."""

    code = "conflict"

    def __init__(self, what: str, expected: str, current: str, satisfied: bool = False) -> None:
        super().__init__(what, expected, current, satisfied)

    @property
    def current(self) -> str:
        """The hash (or head) that is there now; "absent" where there is none."""
        return str(self.args[2])

    @property
    def satisfied(self) -> bool:
        """Whether the state already is what the call asked for, by an earlier attempt of the caller or by another."""
        return bool(self.args[3])

    def __str__(self) -> str:
        return f"{self.args[0]} was expected to be {self.args[1]} but is {self.args[2]}; nothing was changed: " + (
            "it already is as this call asked for" if self.satisfied else "read it again and decide"
        )


class QuotaError(RecollectError):
    """A namespace, or one of its users, would hold more than its quota.

    Within a scope that shares the quota with others, the limit and what is held are None. `owner` is whose quota it is
    where each user, agent or conversation has one of its own, such as "user 'ana'"; else "".
    """

    code = "quota"

    def __init__(
        self, namespace: str, what: str, limit: int | None, held: int | None, when_full: str, owner: str = ""
    ) -> None:
        super().__init__(namespace, what, limit, held, when_full, owner)

    def __str__(self) -> str:
        if self.args[2] is None:
            return f"the quota of {self.args[1]} of namespace {self.args[0]!r} is used up; nothing was changed"
        why = "" if self.args[4] == "refuse" else ", and nothing that may be evicted makes room enough"
        owner = f"{self.args[5]} in " if self.args[5] else ""
        whose = f"{owner}namespace {self.args[0]!r}"
        return (
            f"{whose} may hold {self.args[2]} {self.args[1]} and would hold {self.args[3]}{why}; "
            f"nothing was changed: forget something{' of it' if owner else ''}, or raise the quota"
        )


class ScopeError(RecollectError):
    """A call would reach outside the scope that the memory was narrowed to."""

    code = "scope"

    def __init__(self, what: str, scope: str) -> None:
        super().__init__(what, scope)

    def __str__(self) -> str:
        return f"{self.args[0]} lies outside the scope {self.args[1]}; nothing was changed"


class ClosedError(RecollectError):
    """The memory, batch or store has been closed."""

    code = "closed"

    def __init__(self, what: str) -> None:
        super().__init__(what)

    def __str__(self) -> str:
        return f"{self.args[0]} is closed; nothing was changed: open it again"


class ForkedError(RecollectError):
    """A memory was used in a process that was forked from the one that opened it."""

    code = "forked"

    def __init__(self, path: str, opened_in: int) -> None:
        super().__init__(path, opened_in)

    def __str__(self) -> str:
        return (
            f"{self.args[0]} was opened by process {self.args[1]}, of which this one is a fork; nothing was changed: "
            "open it again in this process"
        )


class MissingExtraError(RecollectError, ImportError):
    """An optional library that the call needs is not installed."""

    code = "missing_extra"

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(what, library, extra)

    def __str__(self) -> str:
        return (
            f"{self.args[0]} needs the library {self.args[1]}, which is not installed; nothing was changed: "
            f"pip install recollect[{self.args[2]}]"
        )


class EmbedderError(RecollectError):
    """An embedder gave no vectors, or not those that were asked for. The message never holds a key."""

    code = "embedder"

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(name, detail)

    def __str__(self) -> str:
        return f"the embedder {self.args[0]} failed: {self.args[1]}; no vector of these texts was stored"


class EmbedderRefusedError(EmbedderError):
    """The embedder refused these texts; others it may take (one is too long, say)."""

    code = "embedder_refused"


class EmbedderUnavailableError(EmbedderError):
    """The embedder cannot be used at all as it is set up: asking it again with other texts would not help."""

    code = "embedder_unavailable"


class ImportFormatError(RecollectError, ValueError):
    """A file to import is not of the format that was named."""

    code = "import_format"

    def __init__(self, path: str, place: str, rule: str) -> None:
        super().__init__(path, place, rule)

    def __str__(self) -> str:
        where = f", {self.args[1]}" if self.args[1] else ""
        return f"{self.args[0]}{where}: {self.args[2]}; nothing of it was imported"


class StoreError(RecollectError):
    """The base of what can go wrong with the file, disk or server below."""

    code = "store"

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(path, detail)

    @property
    def _detail(self) -> str:
        return f" ({self.args[1]})" if self.args[1] else ""


class StoreMissingError(StoreError):
    """There is no store at that place, and the call may not make one."""

    code = "store_missing"

    def __str__(self) -> str:
        return f"there is no store at {self.args[0]}{self._detail}; nothing was made: check the path"


class NotAStoreError(StoreError):
    """The path holds something else than a Recollect store."""

    code = "not_a_store"

    def __str__(self) -> str:
        return f"{self.args[0]} is not a Recollect store{self._detail}; it was not touched: give another path"


class NewerFormatError(StoreError):
    """The store was written by a later release that says this one must not open it."""

    code = "newer_format"

    def __str__(self) -> str:
        return f"{self.args[0]} was written by a newer Recollect{self._detail}; it was not touched: upgrade Recollect"


class OlderFormatError(StoreError):
    """The store was written by an earlier release, in a format that this one does not read any more."""

    code = "older_format"

    def __str__(self) -> str:
        return (
            f"{self.args[0]} was written by an older Recollect{self._detail}; it was not touched: run "
            "`recollect migrate`"
        )


class WrongKeyError(StoreError):
    """The store was made with another key."""

    code = "wrong_key"

    def __str__(self) -> str:
        return f"{self.args[0]} was made with another store key; it was not touched: open it with key=..."


class DamagedStoreError(StoreError):
    """The store's bytes contradict themselves."""

    code = "damaged_store"

    def __str__(self) -> str:
        return (
            f"{self.args[0]} is damaged{self._detail}; nothing was changed: keep a copy of it with its -wal; "
            "`recollect doctor --check` names what is hurt, `recollect rescue` saves the rest"
        )


class ReadOnlyStoreError(StoreError):
    """The store can be read but not written."""

    code = "read_only"

    def __str__(self) -> str:
        return f"{self.args[0]} is read-only{self._detail}; nothing was changed"


class StoreBusyError(StoreError):
    """Another writer held the store for longer than the timeout."""

    code = "busy"

    def __str__(self) -> str:
        return f"{self.args[0]} is being written by another{self._detail}; nothing was changed: try again"


class StoreFullError(StoreError):
    """The disk, or the store's size limit, is full."""

    code = "store_full"

    def __str__(self) -> str:
        return f"no room to write {self.args[0]}{self._detail}; nothing was changed: make room and try again"


class StoreReplacedError(StoreError):
    """The file of an open memory was deleted, moved or replaced."""

    code = "store_replaced"

    def __str__(self) -> str:
        return (
            f"{self.args[0]} was deleted, moved or replaced while it was open{self._detail}; what is there now was not "
            "changed: close this memory; opening it again takes what is there, and where nothing is makes a new store"
        )


class NoMemoryError(StoreError, MemoryError):
    """There is not enough memory for the call."""

    code = "no_memory"

    def __str__(self) -> str:
        return (
            f"not enough memory to work on {self.args[0]}{self._detail}; nothing was changed: free some and try again"
        )


class StoreIOError(StoreError):
    """The operating system refused to read or write."""

    code = "store_io"

    def __str__(self) -> str:
        return f"cannot read or write {self.args[0]}{self._detail}; nothing was changed"


class CommitInDoubtError(StoreIOError):
    """A commit was under way, and whether it is held is not sure: it was not made durable, or nobody could look."""

    code = "commit_in_doubt"

    def __str__(self) -> str:
        return (
            f"a commit to {self.args[0]} did not end well{self._detail}; it may or may not be held: close the memory, "
            "open it again, and read before you write that again"
        )
