"""The values of keyed memory: what happened to a key, what a recall found, and the checks of arguments."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from recollect.arguments.checks import is_integer, is_number
from recollect.errors import InvalidArgumentError
from recollect.text.unicode import nfc

EventKind: TypeAlias = Literal["written", "forgotten", "evicted", "expired", "cas_failed"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
#: Which entries make room for a new one: the least recently used; or the least important, and of these the least
#: recently used.
Evict: TypeAlias = Literal["least recent", "least important"]
EVICT: tuple[Evict, ...] = get_args(Evict)


class Event(NamedTuple):
    """Something that happened to a key.

    Attributes:
        seq: Its number: events are counted from 1; on a store it is that of the commit, or, within a scope, its cursor,
            and one of "cas_failed" has that of the commit before it.
        kind: "written", "forgotten", "evicted", "expired", or "cas_failed".
        time: When it happened, by the clock of the memory.
        size: The size of the value, in bytes; 0 for "cas_failed".
        value: The value that was written; None for any other kind, and if it was erased since.
    """

    seq: int | str
    kind: EventKind
    key: str
    time: float
    size: int
    value: bytes | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without the value."""
        return {"seq": self.seq, "kind": self.kind, "key": self.key, "time": self.time, "size": self.size}


class Found(NamedTuple):
    """A result of a recall.

    Attributes:
        score: How well it fits, by the scorer.
    """

    key: str
    value: bytes
    score: float


def checked_key(key: object) -> str:
    """Return a key, which is any text of valid Unicode, in NFC.

    Raises:
        InvalidArgumentError: The key is invalid.
    """
    if not isinstance(key, str):
        raise InvalidArgumentError("key", key, "must be text")
    try:
        key.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError("key", key, "contains a lone surrogate, which is not valid Unicode") from None
    return nfc(str.__str__(key))


def checked_value(name: str, value: object) -> bytes:
    """Return a value as bytes.

    Raises:
        InvalidArgumentError: `value` is not bytes.
    """
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise InvalidArgumentError(name, value, "must be bytes")
    return bytes(value)


def checked_limit(name: str, value: object) -> int | None:
    """Return a limit: an integer of at least 1, or None for none.

    Raises:
        InvalidArgumentError: The value is not valid.
    """
    if value is None:
        return None
    if not is_integer(value, 1):
        raise InvalidArgumentError(name, value, "must be an integer of at least 1, or None for no limit")
    return int(value)


def checked_queue(queue: object) -> int:
    """Return the size of a queue: an integer of at least 1.

    Raises:
        InvalidArgumentError: The value is not valid.
    """
    if not is_integer(queue, 1):
        raise InvalidArgumentError("queue", queue, "must be an integer of at least 1")
    return int(queue)


def checked_ttl(ttl: object) -> float | None:
    """Return a time to live: a number above 0, or None for ever.

    Raises:
        InvalidArgumentError: The value is not valid.
    """
    if ttl is None:
        return None
    if not is_number(ttl) or not 0 < ttl < float("inf"):
        raise InvalidArgumentError("ttl", ttl, "must be above 0, or None for no end")
    return ttl


def checked_importance(importance: object) -> float | None:
    """Return an importance: 0 to 1, or None.

    Raises:
        InvalidArgumentError: The value is not valid.
    """
    if importance is None:
        return None
    if not is_number(importance, 0, 1):
        raise InvalidArgumentError("importance", importance, "must be from 0 to 1")
    return float(importance)


def checked_count(name: str, value: object) -> int:
    """Return a number of results.

    Raises:
        InvalidArgumentError: `value` is not an integer.
    """
    if not is_integer(value):
        raise InvalidArgumentError(name, value, "must be an integer")
    return int(value)


def size_of(key: str, value: bytes) -> int:
    """Return what an entry counts towards a capacity in bytes: its key in UTF-8, and its value."""
    return len(key.encode("utf-8")) + len(value)
