"""The in-memory store: the same ledger as on disk, in dicts, gone when it is closed.

For tests, for scratch work, and as the plainest reading of the protocol. One lock serves readers and the writer, so a
view is consistent because nobody else is inside; a failed transaction is undone step by step, last step first.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from recollect.errors import ClosedError, StoreBusyError
from recollect.filters.tree import Filter
from recollect.indexes.merkle import PUBLIC_KEY
from recollect.records.record import Record
from recollect.stores.base import Commit, Head, Line, Stored, Tally, check_seq, expired, in_order, tally_of


@dataclass
class _Ledger:
    """What is kept of one line."""

    live: dict[str, tuple[Stored, Record]] = field(default_factory=dict)
    versions: dict[bytes, bytes] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    log: list[Commit] = field(default_factory=list)


class MemoryStore:
    """A `Store` that lives in this process only."""

    path = ":memory:"

    def __init__(self, *, key: bytes = PUBLIC_KEY, timeout_s: float = 10.0) -> None:
        self.key = key
        self._timeout_s = timeout_s
        self._lock = threading.RLock()
        self._ledgers: dict[Line, _Ledger] = {}
        self._nodes: list[bytes] = [b""]  # place 0 means "no page"
        self._uuid = str(uuid.uuid4())
        self._closed = False

    @contextmanager
    def _entered(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self._timeout_s):
            raise StoreBusyError(self.path, f"waited {self._timeout_s:g} s")
        try:
            if self._closed:
                raise ClosedError("the memory")
            yield
        finally:
            self._lock.release()

    @contextmanager
    def read(self) -> Iterator[_MemoryView]:
        with self._entered():
            yield _MemoryView(self._ledgers, self._nodes)

    @contextmanager
    def write(self) -> Iterator[_MemoryTransaction]:
        with self._entered():
            transaction = _MemoryTransaction(self._ledgers, self._nodes)
            try:
                yield transaction
            except BaseException:
                transaction.undo()
                raise

    def facts(self) -> dict[str, Any]:
        return {"store": "memory", "path": self.path, "uuid": self._uuid, "durability": "none: gone when closed"}

    def check(self) -> list[str]:
        return []

    def probe(self) -> None:
        with self._entered():
            pass

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._ledgers.clear()
            self._nodes[1:] = []


class _MemoryView:
    def __init__(self, ledgers: dict[Line, _Ledger], nodes: list[bytes]) -> None:
        self._ledgers = ledgers
        self._nodes = nodes

    def _ledger(self, line: Line) -> _Ledger:
        return self._ledgers.get(line) or _Ledger()

    def lines(self) -> list[Line]:
        return sorted(line for line, ledger in self._ledgers.items() if ledger.log)

    def head(self, line: Line) -> Head:
        log = self._ledger(line).log
        return Head(log[-1].seq, log[-1].root, log[-1].micros) if log else Head()

    def get(self, line: Line, record_id: str) -> Stored | None:
        held = self._ledger(line).live.get(record_id)
        return held[0] if held else None

    def known(self, line: Line, record_id: str) -> bool:
        return record_id in self._ledger(line).known

    def select(
        self, line: Line, where: Filter, *, order: str = "newest", limit: int | None = None, now: int
    ) -> Iterator[Record]:
        live = (record for _, record in self._ledger(line).live.values())
        found = in_order((record for record in live if not expired(record, now) and where.matches(record)), order)
        yield from found if limit is None else found[:limit]

    def count(self, line: Line, where: Filter, *, now: int) -> int:
        return sum(1 for _ in self.select(line, where, order="id", now=now))

    def tally(self, line: Line, where: Filter, *, now: int) -> Tally:
        return tally_of(self.select(line, where, order="id", now=now))

    def payload(self, line: Line, version: bytes) -> bytes | None:
        return self._ledger(line).versions.get(version)

    def narrowed(self, line: Line, where: Filter) -> list[str] | None:
        return None

    def versions(self, line: Line) -> Iterator[tuple[str, Stored]]:
        for record_id, (stored, _) in self._ledger(line).live.items():
            yield record_id, stored

    def last_position(self, line: Line, conversation: str) -> int | None:
        turns = (record for _, record in self._ledger(line).live.values() if record.conversation == conversation)
        return max((record.position for record in turns if record.position is not None), default=None)

    def changed(self, line: Line, since: int) -> list[str]:
        commits = self._ledger(line).log[since:]
        return list(dict.fromkeys(change.id for commit in commits for change in commit.changes))

    def commits(self, line: Line, since: int = 0, limit: int | None = None) -> Iterator[Commit]:
        log = self._ledger(line).log[max(since, 0) :]
        yield from log if limit is None else log[:limit]

    def node(self, place: int) -> bytes:
        return self._nodes[place]


class _MemoryTransaction(_MemoryView):
    def __init__(self, ledgers: dict[Line, _Ledger], nodes: list[bytes]) -> None:
        super().__init__(ledgers, nodes)
        self._undo: list[Callable[[], object]] = []

    def _own(self, line: Line) -> _Ledger:
        if line not in self._ledgers:
            self._ledgers[line] = _Ledger()
            self._undo.append(lambda: self._ledgers.pop(line))
        return self._ledgers[line]

    def put(self, line: Line, record: Record, stored: Stored) -> None:
        ledger = self._own(line)
        self._remember(ledger, record.id)
        ledger.live[record.id] = (stored, record)
        if stored.version not in ledger.versions:
            ledger.versions[stored.version] = stored.payload
            self._undo.append(lambda: ledger.versions.pop(stored.version))
        if record.id not in ledger.known:
            ledger.known.add(record.id)
            self._undo.append(lambda: ledger.known.discard(record.id))

    def drop(self, line: Line, record_id: str) -> None:
        ledger = self._own(line)
        self._remember(ledger, record_id)
        del ledger.live[record_id]

    def _remember(self, ledger: _Ledger, record_id: str) -> None:
        """Note how to put back what the id has now."""
        before = ledger.live.get(record_id)
        if before is None:
            self._undo.append(lambda: ledger.live.pop(record_id, None))
        else:
            self._undo.append(lambda: ledger.live.update({record_id: before}))

    def add_node(self, body: bytes) -> int:
        self._nodes.append(body)
        self._undo.append(self._nodes.pop)
        return len(self._nodes) - 1

    def append(self, commit: Commit) -> None:
        line = Line(commit.namespace, commit.branch)
        check_seq(commit, self.head(line))
        log = self._own(line).log
        log.append(commit)
        self._undo.append(log.pop)

    def undo(self) -> None:
        for step in reversed(self._undo):
            step()
