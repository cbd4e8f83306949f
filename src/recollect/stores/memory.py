"""The in-memory store: the same ledger as on disk, in dicts; its contents are lost when it is closed.

It is meant for tests and scratch work, and is the simplest implementation of the protocol. A transaction stages its
writes and applies them when it ends, after waiting until no view is open. Until then no other thread sees them, and a
rollback only discards them.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import Any

from recollect.common.deadlines import checked
from recollect.errors import ClosedError, DamagedStoreError, StoreBusyError, StoreError, UnsupportedError
from recollect.filters.tree import EVERYTHING, AllOf, Everything, Filter, Is, Nothing
from recollect.ledger.commits import MAIN, Branch, Commit, Head, Snapshot, Stored
from recollect.ledger.merkle import EMPTY, PUBLIC_KEY, Live, Root, is_redacted, redacted_id
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.derived.files import DerivedFiles
from recollect.stores.roots import disagreements
from recollect.stores.values import (
    Backup,
    Base,
    Capabilities,
    CheckReport,
    Continuing,
    RemovedPayload,
    Resolved,
    SortKey,
    Tally,
    Trimmed,
    Untrimmed,
    Version,
    check_seq,
    expired,
    in_order,
    net,
    tally_of,
)
from recollect.stores.write_queue import Ticket, WriteQueue


@dataclass
class _Ledger:
    """The contents of one branch: of one that continues another one, only what is its own.

    Attributes:
        base: The branch that it continues, and the commit; None if it begins empty.
        own_heads: Whether `live` and what is derived from it are its own. Before, they are filled from the base when
            they are first read, and emptied when something is erased.
        filled: Whether they are filled.
    """

    base: tuple[Branch, int] | None = None
    own_heads: bool = True
    filled: bool = True
    live: dict[str, tuple[Stored, Record]] = field(default_factory=dict)
    history: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)  # id -> (seq, version), ascending
    log: list[Commit] = field(default_factory=list)
    turns: dict[str, dict[int, set[str]]] = field(default_factory=dict)  # conversation -> position -> ids
    expiring: list[tuple[int, str]] = field(default_factory=list)  # (expires, id), sorted
    initials: dict[str, set[str]] = field(default_factory=dict)  # live ids by their first character
    trimmed: Trimmed = field(default_factory=Trimmed)
    replaced: dict[int, Sequence[int]] = field(default_factory=dict)  # seq -> pages
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    redactions: dict[int, dict[str, bytes]] = field(default_factory=dict)  # seq -> commitments by name

    @property
    def begins(self) -> int:
        """The number of commits before its own ones."""
        return 0 if self.base is None else self.base[1]

    def empty(self) -> None:
        """Remove the heads."""
        for each in (self.live, self.turns, self.expiring, self.initials):
            each.clear()
        self.filled = False

    def redact_id(self, record_id: str) -> None:
        """Replace an id in the log."""
        stays = redacted_id(record_id)
        if record_id in self.history:
            versions = {*self.history.get(stays, ()), *self.history.pop(record_id)}
            self.history[stays] = sorted(versions, key=itemgetter(0))
        for at, commit in enumerate(self.log):
            if commit.touches(record_id):
                changes = tuple(each._replace(id=stays) if each.id == record_id else each for each in commit.changes)
                self.log[at] = replace(commit, changes=changes)

    def replace(self, record_id: str, current: tuple[Stored, Record] | None) -> None:
        """Set the live version of an id, or remove it. Idempotent, also after an attempt that was interrupted."""
        if record_id in self.live:
            before = self.live[record_id][1]
            if before.conversation is not None and before.position is not None:
                by_position = self.turns[before.conversation]
                by_position.get(before.position, set()).discard(record_id)
                if not by_position.get(before.position):
                    by_position.pop(before.position, None)
            if before.expires is not None:
                due = microseconds(before.expires), record_id
                if self._is_expiring(due):
                    del self.expiring[bisect_left(self.expiring, due)]
            self.initials[record_id[0]].discard(record_id)
            del self.live[record_id]
        if current is not None:
            if current[1].conversation is not None and current[1].position is not None:
                self.turns.setdefault(current[1].conversation, {}).setdefault(current[1].position, set()).add(record_id)
            if current[1].expires is not None and not self._is_expiring((microseconds(current[1].expires), record_id)):
                insort(self.expiring, (microseconds(current[1].expires), record_id))
            self.initials.setdefault(record_id[0], set()).add(record_id)
            self.live[record_id] = current

    def _is_expiring(self, due: tuple[int, str]) -> bool:
        at = bisect_left(self.expiring, due)
        return self.expiring[at : at + 1] == [due]


@dataclass
class _Contents:
    """The contents of a store."""

    ledgers: dict[Branch, _Ledger] = field(default_factory=dict)
    payloads: dict[tuple[str, bytes], bytes] = field(default_factory=dict)  # by namespace and version
    numbers: dict[tuple[str, bytes], int] = field(default_factory=dict)  # of the versions, by namespace and version
    numbered: dict[int, tuple[str, bytes]] = field(default_factory=dict)  # the versions that commits name, by number
    nodes: dict[int, bytes] = field(default_factory=dict)  # by page number
    next_page: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    removed: dict[tuple[str, bytes], RemovedPayload] = field(default_factory=dict)  # versions without payload

    def remove(self, branch: Branch, pages: Sequence[int]) -> None:
        """Remove a branch, and the versions that only its commits name."""
        gone = self.ledgers.pop(branch, _Ledger())
        named = {
            version
            for each, ledger in self.ledgers.items()
            if each.namespace == branch.namespace
            for versions in ledger.history.values()
            for _, version in versions
        }
        own = {version for versions in gone.history.values() for _, version in versions if version is not None}
        for key in [(branch.namespace, version) for version in own - named]:
            self.payloads.pop(key, None)
            self.removed.pop(key, None)
            self.numbered.pop(self.numbers[key], None)
        for page in pages:
            self.nodes.pop(page, None)


class MemoryStore:
    """A `Store` in the memory of this process.

    Args:
        key: The key from which salts are derived.
        timeout_s: Maximum time that a reader or a writer waits before StoreBusyError.
        zone: The name of the time zone.
    """

    path = ":memory:"
    capabilities = Capabilities(
        group_commit=False, copying=False, writers="store", snapshots=False, durable=False, watched=False
    )

    def __init__(self, *, key: bytes = PUBLIC_KEY, timeout_s: float = 10.0, zone: str = "UTC") -> None:
        self.key = key
        self.zone = zone
        self.id_key = key if key != PUBLIC_KEY else None
        self._timeout_s = timeout_s
        self._writers = WriteQueue()
        self._viewers = WriteQueue()  # locked by each view, and to apply a commit
        self._unapplied: _MemoryTransaction | None = None  # a commit that is not applied yet
        self._contents = _Contents()
        self._uuid = str(uuid.uuid4())
        self._closed = False

    def read(self) -> AbstractContextManager[_MemoryView]:
        ticket = Ticket(shares=False)
        return ticket.managed(self._viewing(ticket))

    def _viewing(self, ticket: Ticket) -> Generator[_MemoryView, None, None]:
        with self._locked(self._viewers, ticket):
            if self._unapplied is not None:  # applying it was interrupted
                self._apply(self._unapplied)
            yield _MemoryView(self._contents)

    def write(
        self, branch: Branch, *, shared: bool = False, ids: Sequence[str] = ()
    ) -> AbstractContextManager[_MemoryTransaction]:
        ticket = Ticket(shares=False)
        return ticket.managed(self._writing(ticket))

    def _writing(self, ticket: Ticket) -> Generator[_MemoryTransaction, None, None]:
        if self._writers.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch: use the batch's own calls")
        with self._locked(self._writers, ticket):
            with self.read():
                pass  # applies a commit whose application was interrupted
            transaction = _MemoryTransaction(self._contents)
            yield transaction
            with self.read():
                self._apply(transaction)

    def _apply(self, transaction: _MemoryTransaction) -> None:
        self._unapplied = transaction  # the transaction is committed from here on
        transaction.apply()
        self._unapplied = None

    @contextmanager
    def _locked(self, queue: WriteQueue, ticket: Ticket) -> Iterator[None]:
        """Hold a lock while the block runs; a thread that already has it enters at once."""
        if queue.owned_by_caller():
            yield
            return
        try:
            if not queue.take(ticket, self._timeout_s):
                raise StoreBusyError(self.path, f"waited {self._timeout_s:g} s")
            if self._closed:
                raise ClosedError("the memory")
            yield
        finally:
            if ticket.has_lock:
                queue.release(ticket)

    def version(self) -> int:
        raise UnsupportedError("watching", "no other process can commit to a store in memory")

    def derived(self) -> DerivedFiles:
        return DerivedFiles(None, self._uuid, self.key)

    def facts(self) -> dict[str, Any]:
        return {
            "store": "memory",
            "path": self.path,
            "uuid": self._uuid,
            "zone": self.zone,
            "durability": "none: lost when closed",
        }

    def check(self) -> CheckReport:
        with self.read():
            commits = [commit for ledger in self._contents.ledgers.values() for commit in ledger.log]
            causes = Counter(each.cause for each in self._contents.removed.values())
        dropped = sum(not commit.root.page and commit.root.hash != EMPTY for commit in commits)
        return CheckReport(disagreements(self), commits=len(commits), dropped=dropped, **causes)

    def owned_by_caller(self) -> bool:
        return self._writers.owned_by_caller()

    def renew(self, error: StoreError) -> bool:
        return False  # nothing can have written it

    def compact(self) -> bool:
        return True  # what is deleted takes no memory

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        raise UnsupportedError("a backup", "the store is in memory, not a file: export its records")

    def copies_with(self, branch: Branch, versions: Sequence[bytes]) -> tuple[str, ...]:
        return ()

    def truncate(self) -> bool:
        return True

    def probe(self) -> None:
        with self.write(Branch("probe")):
            pass

    def close(self) -> None:
        if self._writers.owned_by_caller():
            raise StoreBusyError(self.path, "this thread is inside a batch, which must end first")
        with suppress(ClosedError), self.write(Branch("close")), self.read():
            self._closed = True
            self._contents = _Contents()


class _MemoryView:
    #: See `View.binds_parts`.
    binds_parts = True

    def __init__(self, contents: _Contents) -> None:
        self._contents = contents

    def _ledger(self, branch: Branch) -> _Ledger:
        ledger = self._contents.ledgers.get(branch) or _Ledger()
        if not ledger.filled:
            self._fill(branch, ledger)
        return ledger

    def _fill(self, branch: Branch, ledger: _Ledger) -> None:
        """Fill the heads of a branch with those that its base had, without what was erased since."""
        assert ledger.base is not None
        ledger.empty()  # after an attempt that was interrupted
        for record_id, live in self.lives(*ledger.base[:1], 0, ledger.base[1]).items():
            payload = None if live is None or is_redacted(record_id) else self.payload(branch, live.version)
            if live is not None and payload is not None:
                ledger.replace(record_id, (Stored(live.version, payload), Record.load(payload)))
        ledger.filled = True

    def _base(self, branch: Branch) -> tuple[Branch, int] | None:
        return None if branch.name == MAIN else (self._contents.ledgers.get(branch) or _Ledger()).base

    def base(self, branch: Branch) -> Base | None:
        base = self._base(branch)
        return None if base is None else Base(*base, self._ledger(branch).own_heads)

    def _branches(self) -> Mapping[Branch, _Ledger]:
        """Return all branches, also those without a commit."""
        return self._contents.ledgers

    def continuing(self, namespace: str) -> list[Continuing]:
        own = sorted(each for each, own in self._branches().items() if own.base and each.namespace == namespace)
        found = ((each, self.base(each)) for each in own)
        return [Continuing(each, base, self.head(each).seq) for each, base in found if base is not None]

    def forks(self, branch: Branch) -> set[int]:
        return {own.base[1] for own in self._branches().values() if own.base is not None and own.base[0] == branch}

    def _live(self, branch: Branch) -> Iterable[tuple[Stored, Record]]:
        return self._ledger(branch).live.values()

    def setting(self, name: str) -> str | None:
        return self._contents.settings.get(name)

    def setting_names(self, first: str, before: str, limit: int | None = None) -> list[str]:
        return sorted(name for name in self._contents.settings if first <= name < before)[:limit]

    def settings(self, first: str, before: str) -> dict[str, str]:
        found = ((name, self.setting(name)) for name in self.setting_names(first, before))
        return {name: value for name, value in found if value is not None}

    def branches(self) -> list[Branch]:
        return sorted(branch for branch, ledger in self._contents.ledgers.items() if ledger.log)

    def head(self, branch: Branch) -> Head:
        log = (self._contents.ledgers.get(branch) or _Ledger()).log
        if not log and (base := self._base(branch)) is not None:
            log = list(islice(self._log(base[0], base[1] - 1), 1)) if base[1] else []
        return Head(log[-1].seq, log[-1].root, log[-1].micros, log[-1].parts) if log else Head()

    def _current(self, branch: Branch, record_id: str) -> tuple[Stored, Record] | None:
        return self._ledger(branch).live.get(record_id)

    def get(self, branch: Branch, record_id: str) -> Stored | None:
        current = self._current(branch, record_id)
        return current[0] if current else None

    def several(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, Stored]:
        found = ((record_id, self.get(branch, record_id)) for record_id in record_ids)
        return {record_id: stored for record_id, stored in found if stored is not None}

    def known(self, branch: Branch, record_id: str) -> bool:
        return bool(self._history(branch, record_id))

    def resolve(self, branch: Branch, record_ids: Sequence[str], now: int) -> dict[str, Resolved]:
        out = {}
        for record_id in record_ids:
            stored = self.get(branch, record_id)
            due = stored is not None and expired(Record.load(stored.payload), now)
            out[record_id] = Resolved(self.known(branch, record_id), stored, due)
        return out

    def select(
        self,
        branch: Branch,
        where: Filter,
        *,
        order: str = "newest",
        limit: int | None = None,
        after: SortKey | None = None,
        now: int,
    ) -> Iterator[Record]:
        live = self._candidates(branch, where)
        found = in_order(
            (record for record in checked(live) if not expired(record, now) and where.matches(record)), order, after
        )
        yield from found if limit is None else found[:limit]

    def _candidates(self, branch: Branch, where: Filter) -> list[Record]:
        """Return the records that may match, as a copy, because a custom filter may write to the store."""
        if isinstance(where, Nothing):
            return []
        parts = where.parts if isinstance(where, AllOf) else (where,)
        named = next((part.values for part in parts if isinstance(part, Is) and part.name == "id"), None)
        if named is None:
            return [record for _, record in self._live(branch)]
        found = (self._current(branch, record_id) for record_id in dict.fromkeys(named))
        return [current[1] for current in found if current is not None]

    def count(self, branch: Branch, where: Filter, *, now: int) -> int:
        return sum(1 for _ in self.select(branch, where, order="id", now=now))

    def tally(self, branch: Branch, where: Filter, *, now: int) -> Tally:
        return tally_of(self.select(branch, where, order="id", now=now))

    def payload(self, branch: Branch, version: bytes) -> bytes | None:
        return self._contents.payloads.get((branch.namespace, version))

    def versions(self, branch: Branch) -> Iterator[tuple[str, Stored]]:
        for stored, record in checked(self._live(branch)):
            yield record.id, stored

    def nbytes(self, branch: Branch) -> int:
        return sum(len(stored.payload) for stored, _ in self._live(branch))

    def last_position(self, branch: Branch, conversation: str, within: Filter = EVERYTHING) -> int | None:
        ledger = self._ledger(branch)
        turns = ledger.turns.get(conversation, {})
        if isinstance(within, Everything):
            return max(turns, default=None)
        return next((each for each in sorted(turns, reverse=True) if self._any(ledger, turns[each], within)), None)

    @staticmethod
    def _any(ledger: _Ledger, record_ids: Iterable[str], within: Filter) -> bool:
        """Return whether any of these live records matches."""
        return any(within.matches(ledger.live[each][1]) for each in record_ids)

    def turns_at(self, branch: Branch, conversation: str, position: int) -> list[Stored]:
        ledger = self._ledger(branch)
        return [ledger.live[each][0] for each in sorted(ledger.turns.get(conversation, {}).get(position, ()))]

    def due(self, branch: Branch, now: int, limit: int) -> list[str]:
        return [record_id for _, record_id in islice(self._due(branch, now), limit)]

    def _due(self, branch: Branch, now: int) -> Iterable[tuple[int, str]]:
        return takewhile(lambda each: each[0] <= now, self._ledger(branch).expiring)

    def next_expiry(self, branch: Branch, after: int) -> int | None:
        expiring = self._ledger(branch).expiring
        at = bisect_left(expiring, (after + 1, ""))
        return expiring[at][0] if at < len(expiring) else None

    def latest_time(self) -> int | None:
        ledgers = self._contents.ledgers.values()
        if not any(ledger.expiring for ledger in ledgers):
            return None
        return max(ledger.log[-1].micros for ledger in ledgers if ledger.log)

    def changed(self, branch: Branch, since: int) -> list[str]:
        commits = self._log(branch, max(since, 0))
        return list(dict.fromkeys(change.id for commit in commits for change in commit.changes))

    def any_id(self, branch: Branch, first: str) -> bool:
        return bool(self._ledger(branch).initials.get(first))

    def last_touched(self, branch: Branch, since: int) -> dict[str, int]:
        return {change.id: each.micros for each in self._log(branch, max(since, 0)) for change in each.changes}

    def last_commits(self, branch: Branch, record_ids: Sequence[str], upto: int = 2**62) -> dict[str, int]:
        out = {}
        for record_id in record_ids:
            seqs = [seq for seq, _ in self._history(branch, record_id) if seq <= upto]
            if seqs and (head := self.head_at(branch, seqs[-1])) is not None:
                out[record_id] = head.micros
        return out

    def commits(
        self,
        branch: Branch,
        since: int = 0,
        limit: int | None = None,
        record_id: str | None = None,
        *,
        before: int | None = None,
        newest_first: bool = False,
    ) -> Iterator[Commit]:
        log = self._log(branch, max(since, 0))
        if before is not None:
            log = takewhile(lambda commit: commit.seq < before, log)
        if newest_first:
            log = reversed(list(log))
        return islice((each for each in log if each.touches(record_id)), limit)

    def root_at(self, branch: Branch, seq: int) -> bytes | None:
        found = next(iter(self._log(branch, seq - 1)), None) if seq > 0 else None
        return None if found is None else found.root.hash

    def head_at(self, branch: Branch, seq: int) -> Head | None:
        found = next(iter(self._log(branch, seq - 1)), None) if seq > 0 else None
        return None if found is None else Head(found.seq, Root(found.root.hash), found.micros, found.parts)

    def newest_with(self, branch: Branch, root: bytes) -> int | None:
        found = (each.seq for each in self._log(branch, 0) if root in (each.root.hash, each.memory_root))
        return max(found, default=None)

    def versions_at(self, branch: Branch, record_ids: Sequence[str], seq: int) -> dict[str, bytes | None]:
        out = {}
        for record_id in record_ids:
            versions = self._history(branch, record_id)
            at = bisect_right(versions, seq, key=itemgetter(0))
            if at:
                out[record_id] = versions[at - 1][1]
        return out

    def _history(self, branch: Branch, record_id: str) -> list[tuple[int, bytes | None]]:
        own = (self._contents.ledgers.get(branch) or _Ledger()).history.get(record_id, [])
        if (base := self._base(branch)) is None:
            return own
        return [*takewhile(lambda each: each[0] <= base[1], self._history(base[0], record_id)), *own]

    def net_changes(self, branch: Branch, since: int, until: int) -> dict[str, tuple[bytes | None, bytes | None]]:
        commits = takewhile(lambda commit: commit.seq <= until, self._log(branch, since))
        return net((change.id, change.before, change.after) for commit in commits for change in commit.changes)

    def has_erased(self, branch: Branch, since: int) -> bool:
        return any(change.cause == "erased" for commit in self._log(branch, since) for change in commit.changes)

    def versions_of(self, branch: Branch, record_id: str) -> list[Version]:
        versions = dict.fromkeys(version for _, version in self._history(branch, record_id))
        return [Version(each, self.payload(branch, each)) for each in versions if each is not None]

    def all_versions(self, branch: Branch) -> Iterator[bytes]:
        return (payload for (name, _), payload in self._contents.payloads.items() if name == branch.namespace)

    def payloads(self, branch: Branch, versions: Sequence[bytes]) -> dict[bytes, bytes]:
        found = ((version, self.payload(branch, version)) for version in versions)
        return {version: payload for version, payload in found if payload is not None}

    def removed(self, branch: Branch, versions: Sequence[bytes]) -> dict[bytes, RemovedPayload]:
        found = ((version, self._contents.removed.get((branch.namespace, version))) for version in versions)
        return {version: each for version, each in found if each is not None}

    def redactions(self, branch: Branch, seq: int) -> dict[str, bytes]:
        if (base := self._base(branch)) is not None and seq <= base[1]:
            return self.redactions(base[0], seq)
        return self._ledger(branch).redactions.get(seq, {})

    def _log(self, branch: Branch, since: int) -> Iterable[Commit]:
        own = (self._contents.ledgers.get(branch) or _Ledger()).log
        if (base := self._base(branch)) is None:
            return islice(own, since, None)
        before = takewhile(lambda commit: commit.seq <= base[1], self._log(base[0], since))
        renamed = (replace(commit, branch=branch.name) for commit in before)
        return chain(renamed, islice(own, max(since - base[1], 0), None))

    def node(self, page: int) -> bytes:
        try:
            return self._contents.nodes[page]
        except KeyError:
            raise DamagedStoreError(":memory:", f"page {page} of its Merkle trie is missing") from None

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        return {page: self.node(page) for page in pages}

    def trimmed(self, branch: Branch) -> Trimmed:
        return self._ledger(branch).trimmed

    def entries(self, branch: Branch, since: int) -> Iterator[bytes]:
        return (commit.entry for commit in self._log(branch, max(since, 0)))

    def numbered(self, branch: Branch, numbers: Sequence[int]) -> dict[int, Version]:
        found = ((number, self._contents.numbered.get(number)) for number in numbers)
        return {
            number: Version(version[1], self.payload(branch, version[1]))
            for number, version in found
            if version is not None and version[0] == branch.namespace
        }

    def untrimmed(self, branch: Branch, first: int, last: int) -> list[Untrimmed]:
        replaced, below = dict(self._ledger(branch).replaced), branch
        while (base := self._base(below)) is not None:
            below = base[0]
            replaced |= {seq: pages for seq, pages in self._ledger(below).replaced.items() if seq <= base[1]}
        commits = takewhile(lambda commit: commit.seq <= last, self._log(branch, max(first - 1, 0)))
        return [
            Untrimmed(commit.seq, commit.root.page, replaced.get(commit.seq, ()), len(commit.changes))
            for commit in commits
        ]

    def stored_root(self, branch: Branch, seq: int, *, newer: bool = False) -> tuple[int, Root]:
        log = list(self._log(branch, 0))
        commits = log[max(seq, 1) - 1 :] if newer else reversed(log[: max(seq, 0)])
        stored = (each for each in commits if each.root.page or each.root.hash == EMPTY)
        found = next(stored, None)
        return (found.seq, found.root) if found else (0, Root())

    def count_changes(self, branch: Branch, after: int, upto: int, limit: int) -> int:
        return min(limit, sum(each.changes for each in self.untrimmed(branch, after + 1, upto)))

    def snapshots(self, branch: Branch) -> list[Snapshot]:
        return sorted(self._ledger(branch).snapshots.values(), key=lambda each: -each.number)

    def lives(self, branch: Branch, after: int, upto: int) -> dict[str, Live | None]:
        out: dict[str, Live | None] = {}
        for commit in takewhile(lambda commit: commit.seq <= upto, self._log(branch, max(after, 0))):
            for change in commit.changes:
                version = change.after
                out[change.id] = None if version is None else Live(version, self._number(branch, version))
        return out

    def _number(self, branch: Branch, version: bytes) -> int:
        return self._contents.numbers[branch.namespace, version]


class _MemoryTransaction(_MemoryView):
    """A view in which staged writes override what is committed."""

    def __init__(self, contents: _Contents) -> None:
        super().__init__(contents)
        self._staged: dict[Branch, dict[str, tuple[Stored, Record] | None]] = {}
        self._versions: list[tuple[Branch, Stored]] = []
        self._commits: list[Commit] = []
        self._replaced: list[Sequence[int]] = []
        self._set: dict[str, str | None] = {}
        self._pages: dict[int, bytes] = {}
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._snapshots: dict[tuple[Branch, int], Snapshot | None] = {}
        self._dropped: list[tuple[Branch, Sequence[int], Sequence[int], Trimmed]] = []
        self._erased: list[tuple[Branch, str, Sequence[bytes], bool]] = []
        self._thinned: list[tuple[Branch, str, Sequence[bytes]]] = []
        self._redacted: list[tuple[Branch, int, Mapping[str, bytes]]] = []
        self._removed: dict[tuple[str, bytes], RemovedPayload] = {}
        self._begun: dict[Branch, _Ledger] = {}  # branches that are created
        self._taken: list[Branch] = []  # branches that got heads of their own
        self._gone: list[tuple[Branch, Sequence[int]]] = []  # branches that are removed, with their pages

    def _ledger(self, branch: Branch) -> _Ledger:
        begun = self._begun.get(branch)
        if begun is None:
            return super()._ledger(branch)
        if not begun.filled:
            self._fill(branch, begun)
        return begun

    def _base(self, branch: Branch) -> tuple[Branch, int] | None:
        return self._begun[branch].base if branch in self._begun else super()._base(branch)

    def base(self, branch: Branch) -> Base | None:
        found = super().base(branch)
        return found._replace(own_heads=True) if found is not None and branch in self._taken else found

    def _branches(self) -> Mapping[Branch, _Ledger]:
        gone = {branch for branch, _ in self._gone}
        return {each: own for each, own in (*super()._branches().items(), *self._begun.items()) if each not in gone}

    def setting(self, name: str) -> str | None:
        return self._set[name] if name in self._set else super().setting(name)

    def setting_names(self, first: str, before: str, limit: int | None = None) -> list[str]:
        names = {name for name in super().setting_names(first, before) if name not in self._set}
        names |= {name for name, value in self._set.items() if value is not None and first <= name < before}
        return sorted(names)[:limit]

    def remove_settings(self, first: str, before: str, limit: int | None = None) -> int:
        names = self.setting_names(first, before, limit)
        for name in names:
            self.set_setting(name, None)
        return len(names)

    def set_setting(self, name: str, value: str | None) -> None:
        self._set[name] = value

    def branches(self) -> list[Branch]:
        return sorted({*super().branches(), *(Branch(commit.namespace, commit.branch) for commit in self._commits)})

    def head(self, branch: Branch) -> Head:
        for commit in reversed(self._commits):
            if (commit.namespace, commit.branch) == branch:
                return Head(commit.seq, commit.root, commit.micros, commit.parts)
        return super().head(branch)

    def _current(self, branch: Branch, record_id: str) -> tuple[Stored, Record] | None:
        staged = self._staged.get(branch, {})
        return staged[record_id] if record_id in staged else super()._current(branch, record_id)

    def any_id(self, branch: Branch, first: str) -> bool:
        staged = self._staged.get(branch, {})
        put = any(current is not None and record_id.startswith(first) for record_id, current in staged.items())
        return put or bool(self._ledger(branch).initials.get(first, set()) - staged.keys())

    def known(self, branch: Branch, record_id: str) -> bool:
        return self._staged.get(branch, {}).get(record_id) is not None or super().known(branch, record_id)

    def _live(self, branch: Branch) -> Iterable[tuple[Stored, Record]]:
        staged = self._staged.get(branch, {})
        yield from (current for record_id, current in self._ledger(branch).live.items() if record_id not in staged)
        yield from (current for current in staged.values() if current is not None)

    def _staged_turns(self, branch: Branch, conversation: str) -> list[tuple[Stored, Record]]:
        staged = self._staged.get(branch, {}).values()
        return [each for each in staged if each is not None and each[1].conversation == conversation]

    def last_position(self, branch: Branch, conversation: str, within: Filter = EVERYTHING) -> int | None:
        staged, ledger = self._staged.get(branch, {}), self._ledger(branch)
        by_position = ledger.turns.get(conversation, {})
        positions = [
            each[1].position
            for each in self._staged_turns(branch, conversation)
            if each[1].position is not None and within.matches(each[1])
        ]
        # Find the last position with a committed record that matches and is not staged.
        last = max(by_position, default=None)
        if last is not None and not self._any(ledger, by_position[last] - staged.keys(), within):
            matching = (each for each, ids in by_position.items() if self._any(ledger, ids - staged.keys(), within))
            last = max(matching, default=None)
        return max(positions if last is None else [*positions, last], default=None)

    def turns_at(self, branch: Branch, conversation: str, position: int) -> list[Stored]:
        staged = self._staged.get(branch, {})
        ids = self._ledger(branch).turns.get(conversation, {}).get(position, set()) - staged.keys()
        turns = [(each, self._ledger(branch).live[each][0]) for each in ids]
        turns += [
            (record.id, stored)
            for stored, record in self._staged_turns(branch, conversation)
            if record.position == position
        ]
        return [stored for _, stored in sorted(turns)]

    def _due(self, branch: Branch, now: int) -> Iterable[tuple[int, str]]:
        staged = self._staged.get(branch, {})
        own = (current[1] for current in staged.values() if current is not None)
        return sorted(
            [each for each in super()._due(branch, now) if each[1] not in staged]
            + [(microseconds(each.expires), each.id) for each in own if each.expires is not None and expired(each, now)]
        )

    def payload(self, branch: Branch, version: bytes) -> bytes | None:
        staged = (
            stored.payload
            for each, stored in self._versions
            if each.namespace == branch.namespace and stored.version == version
        )
        return next(staged, None) or super().payload(branch, version)

    def _log(self, branch: Branch, since: int) -> Iterable[Commit]:
        staged = [each for each in self._commits if (each.namespace, each.branch) == branch and each.seq > since]
        return (*super()._log(branch, since), *staged)

    def _history(self, branch: Branch, record_id: str) -> list[tuple[int, bytes | None]]:
        commits = (each for each in self._commits if (each.namespace, each.branch) == branch)
        staged = [(each.seq, change.after) for each in commits for change in each.changes if change.id == record_id]
        return [*super()._history(branch, record_id), *staged]

    def node(self, page: int) -> bytes:
        return self._pages[page] if page in self._pages else super().node(page)

    def continue_from(self, branch: Branch, base: Branch, seq: int) -> None:
        self._begun[branch] = _Ledger(base=(base, seq), own_heads=False, filled=False)

    def take_heads(self, branch: Branch) -> dict[str, bytes]:
        base = self._base(branch)
        assert base is not None
        live = self._ledger(branch).live
        self._taken.append(branch)
        lives = self.lives(base[0], 0, base[1])
        return {each: found.version for each, found in lives.items() if found is not None and each not in live}

    def remove(self, branch: Branch, pages: Sequence[int]) -> None:
        self._gone.append((branch, pages))

    def put(self, branch: Branch, record: Record, stored: Stored) -> int:
        self._staged.setdefault(branch, {})[record.id] = (stored, record)
        self._versions.append((branch, stored))
        return self._numbered(branch, stored.version)

    def put_removed(self, branch: Branch, version: bytes, removed: RemovedPayload) -> int:
        self._removed[branch.namespace, version] = removed
        return self._numbered(branch, version)

    def _numbered(self, branch: Branch, hashed: bytes) -> int:
        """Return the number of a version, a new one if it has none."""
        version = branch.namespace, hashed
        if version not in self._contents.numbers and version not in self._numbers:
            self._numbers[version] = len(self._contents.numbers) + len(self._numbers) + 1
        return self._number(branch, hashed)

    def _number(self, branch: Branch, version: bytes) -> int:
        staged = self._numbers.get((branch.namespace, version))
        return super()._number(branch, version) if staged is None else staged

    def drop(self, branch: Branch, record_id: str) -> None:
        self._staged.setdefault(branch, {})[record_id] = None

    def add_node(self, body: bytes) -> int:
        page = self._contents.next_page + len(self._pages)
        self._pages[page] = body
        return page

    def append(self, commit: Commit, replaced: Sequence[int] = ()) -> None:
        check_seq(commit, self.head(Branch(commit.namespace, commit.branch)))
        self._commits.append(commit)
        self._replaced.append(replaced)

    def drop_roots(self, branch: Branch, seqs: Sequence[int], pages: Sequence[int], trimmed: Trimmed) -> None:
        self._dropped.append((branch, seqs, pages, trimmed))

    def erase(self, branch: Branch, record_id: str, versions: Sequence[bytes], *, redact: bool) -> None:
        self._erased.append((branch, record_id, versions, redact))

    def thin(self, branch: Branch, record_id: str, versions: Sequence[bytes]) -> None:
        self._thinned.append((branch, record_id, versions))

    def redact(self, branch: Branch, seq: int, commitments: Mapping[str, bytes]) -> None:
        self._redacted.append((branch, seq, commitments))

    def put_snapshot(self, branch: Branch, snapshot: Snapshot) -> None:
        self._snapshots[branch, snapshot.number] = snapshot

    def drop_snapshot(self, branch: Branch, number: int) -> None:
        self._snapshots[branch, number] = None

    def snapshots(self, branch: Branch) -> list[Snapshot]:
        stored = {each.number: each for each in super().snapshots(branch)}
        merged = stored | {number: each for (own, number), each in self._snapshots.items() if own == branch}
        ordered = (merged[number] for number in sorted(merged, reverse=True))
        return [each for each in ordered if each is not None]

    def trimmed(self, branch: Branch) -> Trimmed:
        own = (trimmed for dropped, _, _, trimmed in reversed(self._dropped) if dropped == branch)
        return next(own, None) or super().trimmed(branch)

    def apply(self) -> None:
        """Apply the staged writes to the ledgers. Idempotent, also after an attempt that was interrupted."""
        self._contents.nodes.update(self._pages)
        self._contents.next_page = max(self._contents.next_page, max(self._pages, default=0) + 1)
        self._contents.numbers.update(self._numbers)
        self._contents.ledgers.update(self._begun)
        for branch in self._taken:
            taken = self._contents.ledgers[branch]
            if not taken.own_heads:
                taken.own_heads, taken.trimmed = True, Trimmed(taken.begins, taken.begins)
        for name, value in self._set.items():
            if value is None:
                self._contents.settings.pop(name, None)
            else:
                self._contents.settings[name] = value
        named = {(commit.namespace, change.after) for commit in self._commits for change in commit.changes}
        for branch, stored in self._versions:
            if (branch.namespace, stored.version) in named:
                self._contents.payloads[branch.namespace, stored.version] = stored.payload
                self._contents.removed.pop((branch.namespace, stored.version), None)
                number = self._contents.numbers[branch.namespace, stored.version]
                self._contents.numbered[number] = branch.namespace, stored.version
        for version, removed in self._removed.items():
            if version not in self._contents.payloads:
                self._contents.removed.setdefault(version, removed)
                self._contents.numbered[self._contents.numbers[version]] = version
        for branch, staged in self._staged.items():
            ledger = self._contents.ledgers.setdefault(branch, _Ledger())
            for record_id, current in staged.items():
                ledger.replace(record_id, current)
        for commit, replaced in zip(self._commits, self._replaced, strict=True):
            ledger = self._contents.ledgers.setdefault(Branch(commit.namespace, commit.branch), _Ledger())
            ledger.replaced[commit.seq] = replaced
            if commit.seq > ledger.begins + len(ledger.log):
                ledger.log.append(commit)
            for change in commit.changes:
                versions = ledger.history.setdefault(change.id, [])
                if not versions or versions[-1][0] < commit.seq:
                    versions.append((commit.seq, change.after))
        for (branch, number), snapshot in self._snapshots.items():
            ledger = self._contents.ledgers.setdefault(branch, _Ledger())
            if snapshot is None:
                ledger.snapshots.pop(number, None)
            else:
                ledger.snapshots[number] = snapshot
        for branch, seqs, pages, trimmed in self._dropped:
            ledger = self._contents.ledgers[branch]
            for seq in seqs:
                at = seq - 1 - ledger.begins
                ledger.log[at] = replace(ledger.log[at], root=Root(ledger.log[at].root.hash))
                ledger.replaced.pop(seq, None)
            for page in pages:
                self._contents.nodes.pop(page, None)
            ledger.trimmed = trimmed
        for branch, record_id, erased, redact in self._erased:
            for key in [(branch.namespace, version) for version in erased]:
                if self._contents.payloads.pop(key, None) is not None:
                    self._contents.removed[key] = RemovedPayload("erased", record_id)
            if redact:
                for key, each in list(self._contents.removed.items()):
                    if key[0] == branch.namespace and each.id == record_id:
                        self._contents.removed[key] = each._replace(id=None)
                self._contents.ledgers[branch].redact_id(record_id)
        for branch, record_id, thinned in self._thinned:
            for key in [(branch.namespace, version) for version in thinned]:
                if self._contents.payloads.pop(key, None) is not None:
                    self._contents.removed[key] = RemovedPayload("thinned", record_id)
        for ledger in self._contents.ledgers.values() if self._erased or self._thinned else ():
            if not ledger.own_heads:
                ledger.empty()
        for branch, seq, commitments in self._redacted:
            ledger = self._contents.ledgers[branch]
            while ledger.base is not None and seq <= ledger.begins:  # the commit is one that it continues
                ledger = self._contents.ledgers[ledger.base[0]]
            ledger.redactions[seq] = {**ledger.redactions.get(seq, {}), **commitments}
            texts: dict[str, Any] = dict.fromkeys(commitments)
            at = seq - 1 - ledger.begins
            ledger.log[at] = replace(ledger.log[at], **texts)
        for branch, pages in self._gone:
            self._contents.remove(branch, pages)
