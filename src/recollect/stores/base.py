"""The store protocol: a ledger of commits, read in consistent views and written in transactions.

A store keeps, for each line (a branch of a namespace), the log of commits, every version that was ever held, and the
heads: which version each live id has now. It gives a `View` (one moment, unchanged while it is open) to readers and a
`Transaction` (a view that can write) to one writer at a time. A store is accepted when it passes
`recollect.testing.StoreContract`. What the writes mean (ids, conditions, roots) is the engine's business, not the
store's, so that every store holds the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from recollect.filters.tree import EVERYTHING, Filter
from recollect.ledger.commits import Branch, Commit, Head, Stored
from recollect.records.codec import microseconds
from recollect.records.record import Record


class Tally(NamedTuple):
    """How many records there are of each kind, and of how many users, conversations and entities; times in micros."""

    kinds: dict[str, int]
    users: int
    conversations: int
    entities: int
    oldest: int | None
    newest: int | None


class BranchSummary(NamedTuple):
    """What a line was found to hold: the number of its newest commit, its root, and how many records."""

    seq: int
    root: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A backup that was made or put back.

    path      where it is
    verified  whether every root was computed again from the records and found to be the log's
    lines     what it holds, where it was verified
    kept      of one that was put back: where what was there before is now; None where nothing was
    """

    path: str
    bytes: int
    verified: bool
    branches: dict[Branch, BranchSummary]
    kept: str | None = None

    def to_json(self) -> dict[str, Any]:
        namespaces = {branch.namespace: each._asdict() for branch, each in self.branches.items()}
        out = {"path": self.path, "bytes": self.bytes, "verified": self.verified, "namespaces": namespaces}
        return out if self.kept is None else {**out, "kept": self.kept}


class View(Protocol):
    """One moment of a store. Everything read through one view belongs together.

    Times are microseconds of 1970; records whose `expires` is `now` or earlier are not given.
    """

    def branches(self) -> list[Branch]:
        """All lines that have a commit, by namespace and branch."""
        ...

    def head(self, branch: Branch) -> Head:
        """The newest commit. Cost: O(log n)."""
        ...

    def get(self, branch: Branch, record_id: str) -> Stored | None:
        """The version that is live now, expired or not. Cost: O(log n)."""
        ...

    def several(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, Stored]:
        """`get` for some ids at once: those that are live, by id. Cost: O(log n) each."""
        ...

    def known(self, branch: Branch, record_id: str) -> bool:
        """Whether the id was ever held: it is live, or a commit names it. Cost: O(log n)."""
        ...

    def select(
        self, branch: Branch, where: Filter, *, order: str = "newest", limit: int | None = None, now: int
    ) -> Iterator[Record]:
        """The live records that match, in one of `operations.ORDERS`. The filter's own `matches` has the last word.

        "newest" is by falling time and position, records without a time last; "oldest" by rising time and position;
        "position" by conversation, position and time. Cost: in proportion to what the filter's indexed part selects.
        """
        ...

    def count(self, branch: Branch, where: Filter, *, now: int) -> int:
        """How many live records match."""
        ...

    def tally(self, branch: Branch, where: Filter, *, now: int) -> Tally:
        """What the live records that match are made up of."""
        ...

    def any_id(self, branch: Branch, first: str) -> bool:
        """Whether a live id begins with a character. Cost: O(log n)."""
        ...

    def payload(self, branch: Branch, version: bytes) -> bytes | None:
        """The canonical bytes of a version that was ever held; None where it never was, or is erased."""
        ...

    def versions(self, branch: Branch) -> Iterator[tuple[str, Stored]]:
        """Every live id with its version, in no particular order."""
        ...

    def last_position(self, branch: Branch, conversation: str, within: Filter = EVERYTHING) -> int | None:
        """The greatest position among the live records of a conversation that match a filter."""
        ...

    def turns_at(self, branch: Branch, conversation: str, position: int) -> list[Stored]:
        """The live records of a conversation at a position. Cost: O(log n)."""
        ...

    def due(self, branch: Branch, now: int, limit: int) -> list[str]:
        """The ids that are due at `now`, the longest due first, then by id. Cost: in proportion to what is given."""
        ...

    def changed(self, branch: Branch, since: int) -> list[str]:
        """The ids that the commits after `since` touched, each once. Cost: in proportion to those commits."""
        ...

    def last_touched(self, branch: Branch, since: int) -> dict[str, int]:
        """The ids that the commits after `since` touched, each with the time of the last (microseconds of 1970).

        Cost: in proportion to those commits.
        """
        ...

    def commits(
        self, branch: Branch, since: int = 0, limit: int | None = None, record_id: str | None = None
    ) -> Iterator[Commit]:
        """The commits after `since`, oldest first; with `record_id` those that touched it, at a cost in proportion."""
        ...

    def root_at(self, branch: Branch, seq: int) -> bytes | None:
        """The root hash after a commit, without what it did; None where the line has no such commit. Cost: O(log n)."""
        ...

    def node(self, page: int) -> bytes:
        """A page of the Merkle trie (`ledger.merkle.Pages`)."""
        ...

    def setting(self, name: str) -> str | None:
        """A setting that is kept with the store, outside its ledger; None where there is none. Cost: O(log n)."""
        ...


class Transaction(View, Protocol):
    """A view that can write, and sees what it wrote. Nothing is seen by others, or durable, before it ends well.

    Of the versions that were put, only those that a commit names are kept.
    """

    def never_known(self, branch: Branch, record_ids: Sequence[str]) -> set[str]:
        """Those of some ids that are not `known`: one query for a bulk write."""
        ...

    def put(self, branch: Branch, record: Record, stored: Stored) -> None:
        """Make this version the live one of its id."""
        ...

    def drop(self, branch: Branch, record_id: str) -> None:
        """Let the id have no live version. Its versions and its history stay."""
        ...

    def add_node(self, body: bytes) -> int:
        """Keep a page of the Merkle trie (`ledger.merkle.Pages`)."""
        ...

    def append(self, commit: Commit) -> None:
        """Add the commit to the log of its line. Its seq follows the head's."""
        ...

    def set_setting(self, name: str, value: str | None) -> None:
        """Keep a setting; None takes it away."""
        ...


class Store(Protocol):
    """Where records are durable."""

    #: Where it is, for messages: a path, or ":memory:".
    path: str
    #: The key from which the salts of versions are derived.
    key: bytes

    def read(self) -> AbstractContextManager[View]:
        """A view of the newest moment. Raises: ClosedError, ForkedError, StoreError."""
        ...

    def write(self) -> AbstractContextManager[Transaction]:
        """The one writer's transaction: durable when the block ends well, undone when it raises.

        Raises: StoreBusyError after the timeout, with nothing written; ReadOnlyStoreError; other StoreErrors.
        """
        ...

    def facts(self) -> dict[str, Any]:
        """What `doctor` and `stats` tell: kind, uuid, format, versions, sizes in bytes, durability."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the store's own structure; [] where nothing is. Reads everything."""
        ...

    def probe(self) -> None:
        """Write something outside the ledger, durably, and read it back. Raises: StoreError."""
        ...

    def close(self) -> None:
        """Wait for the calls under way and give everything back. Closing twice is no error."""
        ...


@runtime_checkable
class SharingStore(Store, Protocol):
    """A store whose transactions can share one durable commit (group commit). Optional."""

    def write_shared(self) -> AbstractContextManager[Transaction]:
        """Like `write`, for what is short and waits for nobody.

        Threads that do it at once share a commit: each sees what those before it did, and is undone by itself when it
        raises. None returns before all of it is durable, nor is refused for what another wrote. Where that fails, each
        raises, and nothing of any is held.
        """
        ...


@runtime_checkable
class CopiedStore(Store, Protocol):
    """A store that can be copied into a file while writers continue. Optional."""

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        """Copy all of it, of one moment, while writers go on; what is at `path` stays until the copy is durable.

        verify  check the copy, and compute its roots again, before it is put there
        force   replace whatever file is there; else only an older backup is replaced

        Raises: InvalidArgumentError, DamagedStoreError, other StoreErrors.
        """
        ...


def in_order(records: Iterable[Record], order: str) -> list[Record]:
    """Records in one of `operations.ORDERS`: the definition that every store's `select` follows."""

    def micros(record: Record) -> int:
        return -(2**63) if record.time is None else microseconds(record.time)

    def page(record: Record) -> int:
        return -1 if record.position is None else record.position

    out = sorted(records, key=lambda record: record.id.encode("utf-8"))
    keys: dict[str, Any] = {
        "newest": lambda record: (-micros(record), -page(record)),
        "oldest": lambda record: (micros(record), page(record)),
        "importance": lambda record: (-1.0 if record.importance is None else record.importance) * -1,
        "position": lambda record: (
            (record.conversation or "").encode("utf-8"),
            page(record),
            micros(record),
        ),
        "id": lambda record: 0,
    }
    out.sort(key=keys[order])
    return out


def expired(record: Record, now: int) -> bool:
    """Whether the record is due at `now` (microseconds of 1970)."""
    return record.expires is not None and microseconds(record.expires) <= now


def check_seq(commit: Commit, head: Head) -> None:
    """What every `append` asserts: the log has no gaps and time moves on."""
    assert commit.seq == head.seq + 1, "a commit must follow the head"
    assert commit.micros > head.micros, "a commit must be later than the head"


def tally_of(records: Iterable[Record]) -> Tally:
    """The tally of records: the definition that every store's `tally` follows."""
    records = list(records)
    times = [microseconds(record.time) for record in records if record.time is not None]
    return Tally(
        kinds=dict(sorted(Counter(record.kind for record in records).items())),
        users=len({record.user for record in records} - {None}),
        conversations=len({record.conversation for record in records} - {None}),
        entities=len({record.entity for record in records} - {None}),
        oldest=min(times, default=None),
        newest=max(times, default=None),
    )
