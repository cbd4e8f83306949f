"""The store protocol: a ledger of commits, read in consistent views and written in transactions.

For each branch of a namespace a store keeps the log of commits, every version that was ever live (unless erased), and
the heads, which map each live id to its version. A branch can continue another one (`Base`): then a view shows the
commits of both as its log, and all that this log leads to. Readers get a `View`, a consistent snapshot; one writer at
a time gets a `Transaction`, a view that can also write. A store is accepted if it passes
`recollect.testing.StoreContract`. The meaning of the writes (ids, conditions, roots) is decided by the engine, not by
the store, so every store has the same contents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from recollect.errors import StoreError
from recollect.filters.tree import EVERYTHING, LINK_FIELDS, Filter
from recollect.ledger.commits import Branch, Commit, Head, Snapshot, Stored
from recollect.ledger.merkle import Live, Root
from recollect.records.record import Record
from recollect.stores.derived.files import DerivedFiles
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
)

#: Optional fields of a record for which stores have no column: only its payload has them.
FIELDS_WITHOUT_COLUMN = ("pinned", "searchable", "valid_from", "valid_to", *LINK_FIELDS)


class ReadView(Protocol):
    """The part of a view that reading operations use. A past moment has it, too (`engine.read.past_view`).

    Times are microseconds since 1970. Records whose `expires` is `now` or earlier are not returned.
    """

    def branches(self) -> list[Branch]:
        """Return all branches that have a commit, by namespace and name."""

    def head(self, branch: Branch) -> Head:
        """Return the newest commit.

        Cost:
            O(log n).
        """

    def head_at(self, branch: Branch, seq: int) -> Head | None:
        """Return a commit as the head that it was, without the page of its root; None if the branch has no such commit.

        Cost:
            O(log n).
        """

    def get(self, branch: Branch, record_id: str) -> Stored | None:
        """Return the live version of an id, whether expired or not.

        Cost:
            O(log n).
        """

    def several(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, Stored]:
        """Return the live versions of several ids, by id; ids that are not live are omitted.

        Cost:
            O(log n) for each id.
        """

    def known(self, branch: Branch, record_id: str) -> bool:
        """Return whether the id was ever stored: it is live, or a commit names it.

        Cost:
            O(log n).
        """

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
        """Yield the live records that match, in one of `operations.ORDERS`. The filter's own `matches` decides.

        "newest" sorts by descending time and position, with records that have no time last; "oldest" by ascending time
        and position; "position" by conversation, position and time; "last" by conversation, and by descending position
        and time.

        Args:
            where: The filter.
            limit: Maximum number of records.
            after: Only records whose `sort_key` follows this one in the order, whether a record has it or not.
            now: Records that have expired at this time are left out.

        Cost:
            Proportional to the number of records that the indexed part of the filter selects.
        """

    def last_commits(self, branch: Branch, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the times of the last commits that changed some records, in microseconds since 1970.

        An id without a commit is left out.

        Cost:
            Proportional to the number of changes of these records.
        """

    def count(self, branch: Branch, where: Filter, *, now: int) -> int:
        """Return the number of live records that match."""

    def tally(self, branch: Branch, where: Filter, *, now: int) -> Tally:
        """Return the `Tally` of the live records that match."""

    def payload(self, branch: Branch, version: bytes) -> bytes | None:
        """Return the canonical bytes of a version that any branch of the namespace has or had.

        None if it was never stored in the namespace or has been erased.
        """

    def nbytes(self, branch: Branch) -> int:
        """Return the total size of the live payloads, including expired ones, in bytes.

        Cost:
            O(records), without reading the payloads.
        """

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
        """Yield commits, oldest first.

        Args:
            since: Only commits with a greater seq.
            limit: Maximum number of commits.
            record_id: Only commits that changed this record.
            before: Only commits with a smaller seq.
            newest_first: Yield the newest first.

        Cost:
            Proportional to the commits that are yielded.
        """

    def root_at(self, branch: Branch, seq: int) -> bytes | None:
        """Return the root hash after a commit, without reading its changes; None if the branch has no such commit.

        Cost:
            O(log n).
        """

    def setting(self, name: str) -> str | None:
        """Return a setting stored outside the ledger; None if it is not set.

        Cost:
            O(log n).
        """

    def setting_names(self, first: str, before: str, limit: int | None = None) -> list[str]:
        """Return the names of settings from `first` on and before `before`, sorted.

        Cost:
            Proportional to the result. (A store in memory looks at all settings.)
        """


class View(ReadView, Protocol):
    """A snapshot view of a store: all reads through one view are consistent with each other.

    Times are microseconds since 1970. Records whose `expires` is `now` or earlier are not returned.
    """

    #: Whether the commits of the store bind all parts of a memory (`ledger.parts`), as they do since format 4.
    binds_parts: bool

    def base(self, branch: Branch) -> Base | None:
        """Return where a branch continues another one; None if it begins empty or does not exist."""

    def continuing(self, namespace: str) -> list[Continuing]:
        """Return the branches of a namespace that continue another one, also those without a commit, by name."""

    def resolve(self, branch: Branch, record_ids: Sequence[str], now: int) -> dict[str, Resolved]:
        """Return what is known of several ids, by id, with few queries.

        Cost:
            O(log n) for each id.
        """

    def last_commits(self, branch: Branch, record_ids: Sequence[str], upto: int = 2**62) -> dict[str, int]:
        """Return the same as `ReadView.last_commits`, of the commits up to a seq."""

    def settings(self, first: str, before: str) -> dict[str, str]:
        """Return the settings whose names are from `first` on and before `before`, by name.

        Cost:
            Proportional to the result. (A store in memory looks at all settings.)
        """

    def any_id(self, branch: Branch, first: str) -> bool:
        """Return whether any live id begins with the character `first`.

        Cost:
            O(log n).
        """

    def versions(self, branch: Branch) -> Iterator[tuple[str, Stored]]:
        """Yield every live id with its version, in no particular order."""

    def last_position(self, branch: Branch, conversation: str, within: Filter = EVERYTHING) -> int | None:
        """Return the greatest position among the live records of a conversation that match a filter."""

    def turns_at(self, branch: Branch, conversation: str, position: int) -> list[Stored]:
        """Return the live records of a conversation at a position.

        Cost:
            O(log n).
        """

    def due(self, branch: Branch, now: int, limit: int) -> list[str]:
        """Return the ids that have expired at `now`, by expiry time, then by id.

        Cost:
            Proportional to the size of the result.
        """

    def next_expiry(self, branch: Branch, after: int) -> int | None:
        """Return the time of the first expiry of a live record after a time; None if there is none.

        In a transaction, what it has written may be left out.

        Cost:
            O(log n).
        """

    def latest_time(self) -> int | None:
        """Return the time of the newest commit of all branches; None if no live record of any expires.

        In a transaction, what it has written may be left out.

        Cost:
            Proportional to the number of branches, if a record expires.
        """

    def changed(self, branch: Branch, since: int) -> list[str]:
        """Return the ids that the commits after `since` changed, each once.

        Cost:
            Proportional to those commits.
        """

    def last_touched(self, branch: Branch, since: int) -> dict[str, int]:
        """Return the ids that the commits after `since` changed, each with the time of the last such commit.

        Cost:
            Proportional to those commits.
        """

    def entries(self, branch: Branch, since: int) -> Iterator[bytes]:
        """Yield the entries of the commits after `since`, oldest first, without reading what they changed."""

    def numbered(self, branch: Branch, numbers: Sequence[int]) -> dict[int, Version]:
        """Return the versions that have these numbers; those that the namespace does not have are omitted.

        Cost:
            O(log n) for each number.
        """

    def node(self, page: int) -> bytes:
        """Return a page of the Merkle trie (`ledger.merkle.Pages`)."""

    def nodes(self, pages: Sequence[int]) -> dict[int, bytes]:
        """Return several pages of the Merkle trie, by number.

        Raises:
            DamagedStoreError: One is missing.

        Cost:
            O(log n) for each, with few queries.
        """

    def trimmed(self, branch: Branch) -> Trimmed:
        """Return how far the pages of old roots have been dropped."""

    def untrimmed(self, branch: Branch, first: int, last: int) -> list[Untrimmed]:
        """Return the commits from `first` to `last`, in ascending order. Their roots have stored pages.

        Cost:
            Proportional to the commits and their changes, without reading the changes.
        """

    def stored_root(self, branch: Branch, seq: int, *, newer: bool = False) -> tuple[int, Root]:
        """Return the newest commit up to `seq` whose root has stored pages, and the root; (0, Root()) if there is none.

        Args:
            seq: The number of a commit.
            newer: Return the oldest such commit from `seq` on instead.

        Cost:
            Proportional to the number of commits in between.
        """

    def forks(self, branch: Branch) -> set[int]:
        """Return the commits of a branch that others continue. The pages of their roots are kept if they are stored."""

    def count_changes(self, branch: Branch, after: int, upto: int, limit: int) -> int:
        """Return the number of changes in the commits after `after` up to `upto`, or `limit` if there are more.

        Cost:
            Proportional to the result.
        """

    def snapshots(self, branch: Branch) -> list[Snapshot]:
        """Return the snapshots of the branch, newest first."""

    def lives(self, branch: Branch, after: int, upto: int) -> dict[str, Live | None]:
        """Return the version after the commit `upto` of each id that the commits after `after` changed.

        None for an id that was not live then.

        Cost:
            Proportional to the changes of these commits.
        """

    # The past: a branch as it was after one of its commits

    def newest_with(self, branch: Branch, root: bytes) -> int | None:
        """Return the seq of the newest commit with a root, of the memory or of its records; None if there is none.

        Cost:
            O(commits), without reading their changes.
        """

    def versions_at(self, branch: Branch, record_ids: Sequence[str], seq: int) -> dict[str, bytes | None]:
        """Return the version of each id after a commit, None if it was not live; ids that were new later are omitted.

        Cost:
            O(log n) for each id.
        """

    def net_changes(self, branch: Branch, since: int, until: int) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Return the ids that differ between two commits, with the version of each after both of them.

        Args:
            since: The seq of the earlier commit; 0: before the first.
            until: The seq of the later commit.

        Cost:
            Proportional to the commits between.
        """

    # Erasure

    def has_erased(self, branch: Branch, since: int) -> bool:
        """Return whether a commit after `since` erased a record (cause "erased").

        Cost:
            Proportional to those commits.
        """

    def versions_of(self, branch: Branch, record_id: str) -> list[Version]:
        """Return every version that an id has or had, each once, in no particular order and without verifying it.

        Cost:
            Proportional to the commits that changed the record.
        """

    def all_versions(self, branch: Branch) -> Iterator[bytes]:
        """Yield the payload of every version that any branch of the namespace has or had, without verifying it.

        Cost:
            Reads all of them.
        """

    def removed(self, branch: Branch, versions: Sequence[bytes]) -> dict[bytes, RemovedPayload]:
        """Return why versions have no payload, by version; those that have one, or were never stored, are omitted.

        Cost:
            O(log n) for each.
        """

    def payloads(self, branch: Branch, versions: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what `payload` returns for several versions; those that have none are omitted.

        Cost:
            O(log n) for each, with few queries.
        """

    def redactions(self, branch: Branch, seq: int) -> dict[str, bytes]:
        """Return what stands for the actor and the reason of a commit if they were redacted (`Transaction.redact`)."""


class Transaction(View, Protocol):
    """A view that can write, and sees its own writes. They are invisible to others, and not durable, until it commits.

    A version that was put is kept only if a commit names it.
    """

    def continue_from(self, branch: Branch, base: Branch, seq: int) -> None:
        """Create a branch that continues another one of its namespace.

        Args:
            branch: The new branch.
            base: The branch that it continues, which begins empty or has commits of its own.
            seq: A commit of its own of that branch; 0 for its beginning.

        Cost:
            O(log n).
        """

    def take_heads(self, branch: Branch) -> dict[str, bytes]:
        """Give a branch that continues another one its own heads, before it is first written.

        Returns:
            The version of each id that is live after the commit that it continues, but erased since. It has no head,
            so the next commit must state that.

        Cost:
            Proportional to its records, in few statements.
        """

    def remove(self, branch: Branch, pages: Sequence[int]) -> None:
        """Remove a branch that continues another one: its commits, heads and snapshots, and texts that only it has.

        Args:
            branch: The branch. No other one continues it.
            pages: The pages that only its roots have.

        Cost:
            Proportional to its commits and records.
        """

    def put(self, branch: Branch, record: Record, stored: Stored) -> int:
        """Make this version the live one of its id, and return the number of the version."""

    def drop(self, branch: Branch, record_id: str) -> None:
        """Remove the head of an id, so that it is no longer live. Its versions and history stay."""

    def put_removed(self, branch: Branch, version: bytes, removed: RemovedPayload) -> int:
        """Store a version that has lost its payload elsewhere, as a copy of a history does, and return its number."""

    def add_node(self, body: bytes) -> int:
        """Store a page of the Merkle trie and return its number (`ledger.merkle.Pages`)."""

    def append(self, commit: Commit, replaced: Sequence[int] = ()) -> None:
        """Append the commit to the log of its branch. Its seq must follow the head's.

        Args:
            replaced: The pages of the previous root that the new one does not have (`Trie.replaced`).
        """

    def put_snapshot(self, branch: Branch, snapshot: Snapshot) -> None:
        """Store a snapshot under its number, which is not in use."""

    def drop_snapshot(self, branch: Branch, number: int) -> None:
        """Remove a snapshot. Its commit stays."""

    def drop_roots(self, branch: Branch, seqs: Sequence[int], pages: Sequence[int], trimmed: Trimmed) -> None:
        """Drop the pages of old roots.

        Args:
            seqs: The commits whose roots have no pages any more.
            pages: The numbers of the pages to remove. No other root needs them.
            trimmed: The new value of `View.trimmed`.
        """

    def erase(self, branch: Branch, record_id: str, versions: Sequence[bytes], *, redact: bool) -> None:
        """Remove payloads. The versions stay in the log and in the roots.

        Args:
            record_id: The id of the record.
            versions: Those of its versions that lose their payload. None of them is live.
            redact: Replace the id wherever the log has it (`merkle.redacted_id`).
        """

    def thin(self, branch: Branch, record_id: str, versions: Sequence[bytes]) -> None:
        """Remove payloads of former versions, as `erase` does, but with the cause "thinned": no commit states it.

        Args:
            record_id: The id of the record.
            versions: Those of its versions that lose their payload. None of them is live in any branch.
        """

    def redact(self, branch: Branch, seq: int, commitments: Mapping[str, bytes]) -> None:
        """Remove the "actor" or the "reason" of a commit, and store what stands for it in the commit's entry.

        Args:
            seq: The number of the commit.
            commitments: The commitment to each text (`entries.note_hash`), by its name.
        """

    def set_setting(self, name: str, value: str | None) -> None:
        """Set a setting; None removes it.

        Transactions of two families of branches must not depend on the value of the same setting, since a store may
        have a writer for each family: the name says which family it belongs to.
        """

    def remove_settings(self, first: str, before: str, limit: int | None = None) -> int:
        """Remove settings whose names are from `first` on and before `before`, and return how many.

        They may belong to any branch. Those that another transaction is writing may be left.

        Args:
            first: The first name.
            before: The first text after all names.
            limit: Maximum number; None: all.
        """


class Store(Protocol):
    """A durable store of records."""

    #: The path of the store, or ":memory:", or an address without secrets; used in messages.
    path: str
    #: The key from which the salts of versions are derived.
    key: bytes
    #: The key from which ids are derived; None if they do not depend on one.
    id_key: bytes | None
    #: The name of the time zone of the store (`recollect.common.zones`), which decides the days of its records.
    zone: str
    #: What the store can do.
    capabilities: Capabilities

    def read(self) -> AbstractContextManager[View]:
        """Open a view of the newest state.

        Raises:
            ClosedError: The store is closed.
            ForkedError: The store was opened by the parent process.
            StoreError: The store cannot be read.
        """

    def write(
        self, branch: Branch, *, shared: bool = False, ids: Sequence[str] = ()
    ) -> AbstractContextManager[Transaction]:
        """Open the writer's transaction. It is durable once the block has ended, and rolled back if the block raises.

        Args:
            branch: A branch of the only family (`Branch.family`) that the transaction may write to; the settings of
                its namespaces belong to it. All branches of these namespaces have one writer at a time.
            shared: The block is short and waits for no other thread, so that the transaction may share a durable
                commit with those of other threads (`Capabilities.group_commit`). Each sees what the earlier ones
                wrote, and is rolled back without the others if it raises. None returns before the commit is durable,
                and none is refused because of another's write before that write is durable. If the commit fails, all
                of them raise, and nothing that they wrote is stored.
            ids: Records of the branch that the transaction is going to look up. A store whose answers take long may
                look them up together with those of other threads that wait to write.

        Raises:
            StoreBusyError: The timeout has passed; nothing was written.
            ReadOnlyStoreError: The store must not be written.
            StoreError: Writing failed.
        """

    def version(self) -> int:
        """Return a number that changes with every commit of any process, this one included.

        Called several times a second while commits are waited for.

        Raises:
            UnsupportedError: Other processes cannot commit to the store (`Capabilities.watched`).
            ClosedError: The store is closed.
            ForkedError: The store was opened by the parent process.
            StoreError: The store cannot be read.

        Cost:
            Microseconds, without opening a view.
        """

    def derived(self) -> DerivedFiles:
        """Return the factory of what is derived from the store: in a folder of this machine, or in memory."""

    def facts(self) -> dict[str, Any]:
        """Return what `doctor` and `stats` report: kind, uuid, zone, format, versions, sizes in bytes, durability."""

    def check(self) -> CheckReport:
        """Return the problems that are found when everything is read and compared; [] if there are none.

        They include records that do not have the root of the newest commit.
        """

    def owned_by_caller(self) -> bool:
        """Return whether the current thread is inside a transaction that it has opened."""

    def renew(self, error: StoreError) -> bool:
        """Verify the store after an error that may mean no damage, and renew what was only not verifiable.

        Args:
            error: The error. The caller must not be in a transaction.

        Returns:
            Whether all of the store verifies, so that the call that raised the error can be repeated.
        """

    def compact(self) -> bool:
        """Rewrite the contents, so that no file has deleted rows and pages, or unused parts of pages, any more.

        Returns:
            Whether all of it was. False if a view that is open still needs the former pages.

        Raises:
            ReadOnlyStoreError: The store must not be written.
            StoreBusyError: The timeout has passed; nothing was changed.
            StoreError: Writing failed; nothing was lost.
        """

    def back_up(self, path: str, *, verify: bool, force: bool) -> Backup:
        """Copy a consistent snapshot of the store to `path` while writers continue.

        A file at `path` stays until the copy is durable.

        Args:
            path: The path of the copy.
            verify: Check the copy and recompute its roots before it replaces what is at `path`.
            force: Replace any file; otherwise only an older backup is replaced.

        Raises:
            UnsupportedError: The store cannot be copied (`Capabilities.copying`).
            InvalidArgumentError: `path` is not suitable.
            DamagedStoreError: The verified copy is corrupt.
            StoreError: Copying failed.
        """

    def truncate(self) -> bool:
        """Remove the former states of the contents from all files of the store.

        Returns:
            Whether that was possible. False if a reader still needs one of them.

        Raises:
            StoreError: Writing failed.
        """

    def copies_with(self, branch: Branch, versions: Sequence[bytes]) -> tuple[str, ...]:
        """Return what else has the payload of one of these versions: the paths of other stores in the same folder.

        Those that cannot be read are among them. No file is changed. A store on a server describes what the server
        keeps of versions that were erased.

        Args:
            branch: The branch that the versions belong to.
        """

    def probe(self) -> None:
        """Write something outside the ledger, durably, and read it back.

        Raises:
            StoreError: That failed.
        """

    def close(self) -> None:
        """Wait for calls in progress and release all resources. Closing twice is not an error."""
