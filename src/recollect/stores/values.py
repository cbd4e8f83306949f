"""The values that stores return: counts, versions, summaries, reports, and what a store can do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from recollect.arguments.json_form import JsonForm, is_result, json_form
from recollect.ledger.commits import Branch, Commit, Head, Stored
from recollect.records.codec import microseconds
from recollect.records.record import Record

#: Which commits survive a power cut: every acknowledged one, or a consistent store, perhaps without the newest commits.
Durability: TypeAlias = Literal["full", "normal"]


DURABILITIES: tuple[Durability, ...] = get_args(Durability)


class Tally(NamedTuple):
    """Counts of records by kind, and of distinct users, conversations and entities.

    Attributes:
        oldest: The earliest time of a record, in microseconds since 1970; None if no record has a time.
        newest: The latest one.
    """

    kinds: dict[str, int]
    users: int
    conversations: int
    entities: int
    oldest: int | None
    newest: int | None


class Base(NamedTuple):
    """Where a branch begins that continues another one.

    Attributes:
        branch: The other branch, which begins empty or has commits of its own.
        seq: The commit of it that the branch continues; 0 for its beginning.
        own_heads: Whether the branch has heads of its own. Until it is first written, its records are those that the
            other branch had after the commit, without what was erased since.
    """

    branch: Branch
    seq: int
    own_heads: bool


class Continuing(NamedTuple):
    """A branch that continues another one.

    Attributes:
        branch: The branch.
        base: Where it begins.
        seq: The number of its newest commit: that of its base, if it has none of its own.
    """

    branch: Branch
    base: Base
    seq: int


class BranchSummary(NamedTuple):
    """The verified contents of a branch: the number of its newest commit, its root in hex, and the count of records."""

    seq: int
    root: str
    records: int


@is_result()
@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The result of a backup or of a restore.

    Attributes:
        path: The backup, or the restored store.
        bytes: Its size.
        verified: Whether every root was recomputed from the records and matches the log.
        branches: Its contents, if it was verified.
        kept: After a restore, the new path of the store that was replaced; None if there was none.
    """

    path: str
    bytes: int
    verified: bool
    branches: dict[Branch, BranchSummary]
    kept: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        branches = [
            {"namespace": branch.namespace, "branch": branch.name, **each._asdict()}
            for branch, each in self.branches.items()
        ]
        out = {"path": self.path, "bytes": self.bytes, "verified": self.verified, "branches": branches}
        return out if self.kept is None else {**out, "kept": self.kept}

    @classmethod
    @json_form("a backup")
    def from_json(cls, data: Mapping[str, Any]) -> Backup:
        """Rebuild a result from its JSON form."""
        branches = {
            Branch(each["namespace"], each["branch"]): BranchSummary(each["seq"], each["root"], each["records"])
            for each in data["branches"]
        }
        return cls(**{**data, "branches": branches})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of a store. A call that it cannot do raises UnsupportedError.

    Attributes:
        group_commit: Transactions that are opened with `shared=True` can share one durable commit.
        copying: `back_up` copies the store to a file.
        writers: How many transactions can be open at a time: one for the "store", or one for each "family"
            of branches (`ledger.commits.Branch.family`).
        snapshots: Others can read and write while a view is open. Otherwise they wait, so views must be short.
        durable: Commits survive the end of the process.
        watched: Other processes can commit to the store, and `version` notices it.
    """

    group_commit: bool
    copying: bool
    writers: str
    snapshots: bool
    durable: bool
    watched: bool


class Trimmed(NamedTuple):
    """The progress of dropping the trie pages of a branch's old roots.

    Pages are dropped in ascending order of commits. Those of the commit `seq` are stored, and those of older commits
    only if they were kept.

    Attributes:
        seq: The commit up to which the older ones have been examined; 0 for none.
        kept: The newest commit up to `seq` whose pages are kept; 0 for the empty root before the first commit.
        changes: The number of changes in the commits after `kept` up to `seq`.
    """

    seq: int = 0
    kept: int = 0
    changes: int = 0


class Version(NamedTuple):
    """A version, with or without its payload.

    Attributes:
        version: Its address (`merkle.version_hash`).
        payload: The canonical bytes of the record; None if they have been removed.
    """

    version: bytes
    payload: bytes | None


class RemovedPayload(NamedTuple):
    """Why a version has no payload any more.

    Attributes:
        cause: "erased" or "thinned".
        id: The id of its record; None if it was redacted.
    """

    cause: str
    id: str | None


class Untrimmed(NamedTuple):
    """A commit with what decides about the pages of the root before it.

    Attributes:
        seq: Its number.
        page: The number of the first page of its root; 0 for the empty root.
        replaced: The pages of the previous root that its root does not have.
        changes: The number of its changes.
    """

    seq: int
    page: int
    replaced: Sequence[int]
    changes: int


class Resolved(NamedTuple):
    """The state of an id in a store.

    Attributes:
        known: Whether the id was ever stored: it has a version now, or a commit names it.
        stored: The current version; None if there is none.
        due: Whether that version has expired.
    """

    known: bool
    stored: Stored | None
    due: bool


@is_result()
class CheckReport(list[str]):
    """The problems that a check found: an empty list if there are none.

    It also counts what is missing on purpose, which is no problem.

    Attributes:
        commits: The number of commits in all logs.
        dropped: The number of commits whose roots have no stored pages. Their roots can be recomputed from the log.
        erased: The number of versions whose text was erased.
        thinned: The number of versions whose text a retention policy removed.
    """

    def __init__(
        self, problems: Iterable[str] = (), *, commits: int = 0, dropped: int = 0, erased: int = 0, thinned: int = 0
    ) -> None:
        super().__init__(problems)
        self.commits = commits
        self.dropped = dropped
        self.erased = erased
        self.thinned = thinned

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"problems": list(self), **vars(self)}

    @classmethod
    @json_form("a report of a check")
    def from_json(cls, data: Mapping[str, Any]) -> CheckReport:
        """Rebuild a report from its JSON form."""
        counts = {name: int(data[name]) for name in ("commits", "dropped", "erased", "thinned")}
        return cls(map(str, data["problems"]), **counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(JsonForm, what="a compaction"):
    """The result of a compaction.

    Attributes:
        before: The size of the store with its WAL before, in bytes; None if it is not a file.
        after: Its size afterwards.
        complete: Whether all free space was given back. Otherwise a reader still needs the former pages.
    """

    before: int | None
    after: int | None
    complete: bool


# What every store computes alike: the orders of records, net changes, expiry and tallies.

#: The values by which an order sorts a record, the id last: no two records of a branch have the same (`sort_key`).
SortKey: TypeAlias = tuple[int | float | str, ...]


#: In the sort key of a record without a time, a position or an importance.
NO_TIME = -(2**63)


NO_POSITION = -1


NO_IMPORTANCE = -1.0


#: For each order, whether its first values, all but the id, are sorted in ascending (1) or descending (-1) order.
_DIRECTIONS = {
    "newest": (-1, -1),
    "oldest": (1, 1),
    "importance": (-1,),
    "position": (1, 1, 1),
    "last": (1, -1, -1),
    "id": (),
}


def sort_key(record: Record, order: str) -> SortKey:
    """Return the values by which one of `operations.ORDERS` sorts a record."""
    time = NO_TIME if record.time is None else microseconds(record.time)
    position = NO_POSITION if record.position is None else record.position
    if order in ("newest", "oldest"):
        return (time, position, record.id)
    if order == "importance":
        return (NO_IMPORTANCE if record.importance is None else record.importance, record.id)
    return (record.id,) if order == "id" else (record.conversation or "", position, time, record.id)


def ascending(key: SortKey, order: str) -> tuple[Any, ...]:
    """Return a sort key (`sort_key`) with values that ascend in the order."""
    pairs = zip(key, (*_DIRECTIONS[order], 1), strict=True)
    return tuple([each.encode("utf-8") if isinstance(each, str) else each * way for each, way in pairs])


def in_order(records: Iterable[Record], order: str, after: SortKey | None = None) -> list[Record]:
    """Sort records in one of `operations.ORDERS`: the reference that every store's `select` follows.

    With `after`, only the records that follow this sort key are returned.
    """
    keyed = [(ascending(sort_key(record, order), order), record) for record in records]
    if after is not None:
        first = ascending(after, order)
        keyed = [each for each in keyed if each[0] > first]
    keyed.sort(key=itemgetter(0))
    return [record for _, record in keyed]


def net(
    changes: Iterable[tuple[str, bytes | None, bytes | None]],
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Return the net effect of changes (id, before, after) in the order of the log: the result of `net_changes`."""
    out: dict[str, tuple[bytes | None, bytes | None]] = {}
    for record_id, before, after in changes:
        out[record_id] = (out[record_id][0] if record_id in out else before, after)
    return {record_id: (before, after) for record_id, (before, after) in out.items() if before != after}


def expired(record: Record, now: int) -> bool:
    """Return whether the record has expired at `now` (microseconds since 1970)."""
    return record.expires is not None and microseconds(record.expires) <= now


def check_seq(commit: Commit, head: Head) -> None:
    """Assert what every `append` requires: the log has no gaps, and time increases."""
    assert commit.seq == head.seq + 1, "a commit must follow the head"
    assert commit.micros > head.micros, "a commit must be later than the head"


def tally_of(records: Iterable[Record]) -> Tally:
    """Return the tally of records: the reference that every store's `tally` follows."""

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
