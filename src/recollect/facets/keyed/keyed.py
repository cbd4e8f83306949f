"""`Keyed`, keys with bytes that agents share: `memory.keyed`.

The entries are records in a namespace that belongs to the memory's, so they have a history, are in backups,
are reached through scopes and at past moments (`Memory.at`, also of a snapshot), and are covered by the root of the
memory: `Memory.prove("plan", part="keys")` proves one. Recall of the memory never finds them. Each write is a commit,
with what it evicts, so agents in any number of threads and processes see one order of writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from recollect.arguments.checks import check_seconds, is_number
from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls, stored
from recollect.calls.namespace import NamespaceCalls
from recollect.common.uncopied import Uncopied
from recollect.engine.history_results import Erased, RecordVersion
from recollect.engine.results import Hits
from recollect.engine.settings import Quota
from recollect.errors import InvalidArgumentError, UnknownRecordError
from recollect.facets.keyed.events import Announcer, announcer_of, events_of
from recollect.facets.keyed.records import content_of, entry_fields, former_id_of, id_of, key_of, value_of, writes_of
from recollect.facets.keyed.subscriptions import QUEUE, KeySubscription, checked_kinds
from recollect.facets.keyed.values import (
    EVICT,
    Event,
    EventKind,
    Evict,
    Found,
    checked_count,
    checked_importance,
    checked_key,
    checked_limit,
    checked_queue,
    checked_value,
)
from recollect.operations import (
    Find,
    Forget,
    Get,
    GetAll,
    GetQuota,
    Now,
    Operation,
    Recall,
    Remember,
    SetQuota,
    Stats,
    Update,
)
from recollect.records.record import Record


class _Unexpected(Exception):
    """Ends the batch of a `cas` whose key has another value."""


@all_named
class Keyed(Uncopied):
    """Keys with bytes that agents share. Returned by `Memory.keyed`.

        memory.keyed.write("plan", b"go north")
        memory.keyed.cas("plan", b"go north", b"go south")
        memory.keyed.recall("which direction?")

    Every call raises InvalidArgumentError for an invalid argument and StoreError if the store fails.
    """

    def __init__(self, entries: NamespaceCalls, actor: str | None = None, reason: str | None = None) -> None:
        self._entries = entries
        self._actor = actor
        self._reason = reason

    def by(self, actor: str | None, reason: str | None = None) -> Keyed:
        """Return this keyed memory with commits that name who makes a change, and why.

        Args:
            actor: Who makes it.
            reason: Why it is made.
        """
        return Keyed(self._entries, actor, reason)

    def read(self, key: str) -> bytes | None:
        """Return the value of a key, or None. This is a use of the entry.

        Args:
            key: The key: any text of valid Unicode.
        """
        record = self._entries.execute(Get(id=_id_of(self._entries.execute, checked_key(key))))
        return None if record is None else value_of(record)

    def write(
        self,
        key: str,
        value: bytes,
        *,
        ttl: float | timedelta | None = None,
        importance: float | None = None,
    ) -> None:
        """Set the value of a key. It is durable when this returns. The former value stays in the history.

        Others are evicted if there is no room (`set_limits`). The same value again is a write, too.

        Args:
            key: The key: any text of valid Unicode.
            value: The value: any bytes. UTF-8 is found by `recall`.
            ttl: Seconds or a timedelta after which the entry expires, by the memory's clock; None: never.
            importance: 0 to 1.

        Raises:
            InvalidRecordError: The value is too long.
            QuotaError: It does not fit in the limits, even if all others were evicted.
            RejectedError: A policy of the namespace does not allow the text.
            StoreBusyError: Others wrote until the timeout, or this thread is inside a batch of the store.
        """
        checked = checked_value("value", value)
        self._write(checked_key(key), checked, None, ttl, importance)

    def cas(
        self,
        key: str,
        expected: bytes | None,
        new: bytes,
        *,
        ttl: float | timedelta | None = None,
        importance: float | None = None,
    ) -> bool:
        """Set the value of a key if it has another one now, and return whether it had. Of several, one succeeds.

        Args:
            expected: What it must have now; None: there must be none.
            new: What it then has.
            ttl: As for `write`.
            importance: As for `write`.

        Raises:
            As `write`.
        """
        wanted = None if expected is None else checked_value("expected", expected)
        try:
            self._write(checked_key(key), checked_value("new", new), (wanted,), ttl, importance)
        except _Unexpected:
            self._announcer.failed_cas(self._entries, key)
            return False
        return True

    def forget(self, key: str) -> bool:
        """Remove a key, and return whether there was one. Its history stays."""
        forgotten = False
        for entry in _ids_of(checked_key(key)):
            with suppress(UnknownRecordError):
                outcome = self._entries.execute(Forget(id=entry), actor=self._actor, reason=self._reason)
                forgotten |= outcome.status == "forgotten"
        return forgotten

    def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[Found]:
        """Return the entries whose values answer a question best, best first. Each is a use, in this order.

        Args:
            query: The question.
            k: Maximum number of entries; with 0 or less, nothing happens.
            min_score: The least confidence, 0 to 1, which is the score.
        """
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgumentError("query", query, "must be text that is not blank")
        if not is_number(min_score, 0, 1):
            raise InvalidArgumentError("min_score", min_score, "must be from 0 to 1")
        if checked_count("k", k) <= 0:
            return []
        hits: Hits = self._entries.execute(Recall(question=query, k=k, min_confidence=min_score))
        self._announcer.recalls += 1
        return [Found(key_of(hit.record), value_of(hit.record), hit.confidence) for hit in hits]

    def subscribe(
        self, key: str | None = None, *, kinds: Iterable[EventKind] | None = None, queue: int = QUEUE
    ) -> KeySubscription:
        """Return the events from now on, of a key or of all: an iterator that waits, also for asyncio.

            with memory.keyed.subscribe("plan") as events:
                for event in events:
                    ...

        Writes of other processes are noticed within a second. A failed `cas` is an event in its own process only. One
        thread serves all subscriptions of the store.

        Args:
            key: The key; None: all of them.
            kinds: The kinds of events: "written", "forgotten", "evicted", "expired", "cas_failed"; None: all of them.
            queue: Maximum number of events that wait for the subscriber. Further ones are missed: it learns how many,
                and `events(since)` returns them.
        """
        if key is not None:
            key = checked_key(key)
        return self._announcer.subscribe(self._entries, key, checked_kinds(kinds), checked_queue(queue))

    def events(self, since: int | str = 0, limit: int = 1000) -> list[Event]:
        """Return the events after a commit, oldest first, for a subscriber that missed some.

        Args:
            since: The seq of an event; 0: the beginning.
            limit: Maximum number of commits that are read.

        Raises:
            InvalidArgumentError: The seq is not one of this memory.
            ScopeError: It is a number, and this memory is scoped.
        """
        return events_of(self._entries, self._entries.changes(since, limit), since)

    def stats(self) -> dict[str, int]:
        """Return the number of entries, their size, both limits (-1: none), and how often what has happened.

        "bytes" is the size of their records, or -1 without limits; "recalls" counts those of this process; "tick" is
        the number of commits.

        Cost:
            At first, the log is read; later, what is new in it.
        """
        counted = self._announcer.counted(self._entries)
        facts: Any = self._entries.execute(Stats())
        limits = self._limits()
        return {
            "size": facts["records"],
            "capacity": (limits and limits.records) or -1,
            "bytes": facts.get("quota", {}).get("bytes_used", -1),
            "capacity_bytes": (limits and limits.bytes) or -1,
            "writes": counted["written"],
            "recalls": self._announcer.recalls,
            "evictions": counted["evicted"],
            "expirations": counted["expired"],
            "tick": counted["commits"],
        }

    def set_limits(
        self,
        *,
        capacity: int | None = None,
        capacity_bytes: int | None = None,
        evict: Evict = "least recent",
    ) -> None:
        """Limit the entries, for every process. Without a limit, they count towards the quota of the namespace.

        What is due is removed first, then entries are evicted, in the write that needs the room. Reading, writing and
        recalling an entry are uses; which is the least recent is exact also where the clock stands still.

        Both limits are set together. One that is lowered is reached by the next writes, by up to 1,000 entries each.

        Args:
            capacity: Maximum number of entries; None: no limit.
            capacity_bytes: Maximum size of their records, in bytes; None: no limit.
            evict: Which entries make room: "least recent", or "least important" and of these the least recent.

        Raises:
            ScopeError: This memory is scoped.
        """
        if evict not in EVICT:
            raise InvalidArgumentError("evict", evict, f"must be one of {', '.join(EVICT)}")
        records, size = checked_limit("capacity", capacity), checked_limit("capacity_bytes", capacity_bytes)
        limited = records is not None or size is not None
        self._entries.execute(SetQuota(records=records, bytes=size, when_full=evict) if limited else SetQuota())

    def keys(self) -> list[str]:
        """Return the keys, sorted.

        Cost:
            All entries are read.
        """
        return sorted({key_of(record) for record in self._entries.execute(Find(order="id"))})

    def history(self, key: str) -> list[RecordVersion]:
        """Return every version that a key had, oldest first; [] if it never had one. See `Memory.history`."""
        try:
            return self._entries.history(_id_of(self._entries.execute, checked_key(key)))
        except UnknownRecordError:
            return []

    def erase(self, key: str) -> Erased:
        """Permanently remove the values of a key, of every version. See `Memory.erase`.

        Raises:
            UnknownRecordError: The key never had a value.
        """
        erased: list[Erased] = []
        for entry in _ids_of(checked_key(key)):
            with suppress(UnknownRecordError):
                erased.append(self._entries.erase(entry, actor=self._actor, reason=self._reason))
        if not erased:
            raise UnknownRecordError(key, "the keyed memory")
        ids = tuple(sorted(each for one in erased for each in one.ids))
        return replace(erased[-1], ids=ids, versions=sum(one.versions for one in erased))

    def _write(
        self,
        key: str,
        value: bytes,
        expected: tuple[bytes | None] | None,
        ttl: float | timedelta | None,
        importance: float | None,
    ) -> None:
        """Write an entry in one transaction; with `expected`, only if the key has this value."""
        seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
        if seconds is not None:
            check_seconds("ttl", seconds)
        important = checked_importance(importance)
        content, media_type = content_of(value)
        expires = None if seconds is None else self._entries.execute(Now()) + timedelta(seconds=seconds)
        for again in (False, True):
            with self._entries.batch(actor=self._actor, reason=self._reason) as batch:
                record = _current(batch, key)
                if expected is not None and (None if record is None else value_of(record)) != expected[0]:
                    raise _Unexpected
                if record is None and not again and _was_known(batch, key):
                    continue  # what was due has expired, in a commit of its own, before there is a new entry
                entry = _id_of(batch.execute, key)
                fields = entry_fields(key, entry, writes_of(record), important)
                fields |= {"media_type": media_type, "expires": expires}
                if record is None:
                    write: Operation = Remember(content=content, id=entry, fields=fields, if_exists="update")
                else:  # which also removes an expiry and an importance
                    write = Update(id=entry, changes={"content": content, **fields})
                stored(batch.execute(write))
                return

    def _limits(self) -> Quota | None:
        if self._entries.scope:
            return None
        limits: Quota | None = self._entries.execute(GetQuota())
        return limits

    @property
    def _announcer(self) -> Announcer:
        return announcer_of(self._entries)


def _ids_of(key: str) -> list[str]:
    """Return the id of a key, and the one that earlier releases gave its decomposed form."""
    return [each for each in (id_of(key), former_id_of(key)) if each is not None]


def _id_of(execute: Callable[[Operation], Any], key: str) -> str:
    """Return the id under which a key is stored, or would be."""
    former = former_id_of(key)
    if former is None:
        return id_of(key)
    here, before = execute(GetAll(ids=(id_of(key), former)))
    return former if here is None and before is not None else id_of(key)


def _current(batch: Calls, key: str) -> Record | None:
    found: Record | None = batch.execute(Get(id=_id_of(batch.execute, key)))
    return found


def _was_known(batch: Calls, key: str) -> bool:
    """Return whether a key that has no value had one before. One that is due is removed."""
    try:
        batch.execute(Forget(id=_id_of(batch.execute, key)))
    except UnknownRecordError:
        return False
    return True
