"""Commits, heads and changes: the values of the ledger."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from recollect.arguments.json_form import form_of, is_result, json_form
from recollect.ledger.merkle import Root
from recollect.ledger.parts import RECORDS, PartHead, stated_root
from recollect.records.codec import datetime_of, microseconds
from recollect.records.names import MAIN as MAIN

#: The possible causes of a change.
CAUSES = ("written", "forgotten", "expired", "evicted", "erased", "superseded", "kept", "rolled back")
#: The cause of a change by a rollback or a revert.
ROLLED_BACK = CAUSES[-1]
#: The cause of a change that leaves a record as it is, as a merge has decided; and all causes of such changes: an
#: erasure may concern former versions alone.
KEPT = "kept"
STATED = ("erased", KEPT)

#: The namespaces that a namespace can have for what belongs to its records, in order. Facets reserve them
#: (`engine.facets`).
RESERVED: list[str] = []
#: Between the name of a namespace and that of one that belongs to it. No caller can use it in a name.
_RESERVED_MARK = "\x1f"


def reserve(name: str) -> None:
    """Add a name to `RESERVED`. Their order does not depend on the order of the calls."""
    insort(RESERVED, name)


def reserved_namespace(owner: str, what: str) -> str:
    """Return the name of a namespace that belongs to another one."""
    return f"{owner}{_RESERVED_MARK}{what}"


class Branch(NamedTuple):
    """A branch of a namespace: one line of history, with a log and a head of its own.

    It begins empty, or continues another branch of its namespace from one of its commits on.
    """

    namespace: str
    name: str = MAIN

    def reserved(self, what: str) -> Branch:
        """Return the branch of the same name in a namespace that belongs to this one: one of `RESERVED`.

        It is not listed among the namespaces of the store, and counts towards the quota of its owner.
        """
        assert what in RESERVED, what
        return Branch(reserved_namespace(self.owner.namespace, what), self.name)

    @property
    def is_reserved(self) -> bool:
        """True if its namespace belongs to another one."""
        return _RESERVED_MARK in self.namespace

    @property
    def reserved_name(self) -> str:
        """One of `RESERVED`, if its namespace belongs to another one, or ""."""
        return self.namespace.partition(_RESERVED_MARK)[2]

    @property
    def owner(self) -> Branch:
        """The branch of the namespace that this one belongs to, or this one."""
        return Branch(self.namespace.partition(_RESERVED_MARK)[0], self.name) if self.is_reserved else self

    @property
    def family(self) -> tuple[Branch, ...]:
        """The branch of the owner, and those that belong to it."""
        return (self.owner, *map(self.reserved, RESERVED))


#: A parent of a commit: its branch and seq, and where it is of another branch, the hash of its entry.
Parent: TypeAlias = tuple[str, int] | tuple[str, int, bytes]


class Head(NamedTuple):
    """The newest commit of a branch. A branch without commits has seq 0 and the empty root.

    Attributes:
        seq: The number of the commit.
        root: The root of the namespace after it.
        micros: Its time, in microseconds since 1970.
        parts: The newest commits of the other parts of the memory after it, by name; None if it does not state them.
    """

    seq: int = 0
    root: Root = Root()
    micros: int = -(2**63)
    parts: tuple[PartHead, ...] | None = ()

    @property
    def memory_root(self) -> bytes:
        """The root that its entry binds (`parts.stated_root`)."""
        return stated_root(self.root.hash, self.parts)


class Stored(NamedTuple):
    """A stored version.

    Attributes:
        version: Its address (`merkle.version_hash`).
        payload: The canonical bytes of the record.
    """

    version: bytes
    payload: bytes


class Change(NamedTuple):
    """The effect of a commit on one id.

    Attributes:
        id: The id of the record.
        before: The version before the commit, 32 bytes; None if the id was not live.
        after: The version after the commit, 32 bytes; None if the id is not live any more. It is that of before if the
            cause is one of `STATED` and the record stays as it is.
        cause: One of `CAUSES`.
    """

    id: str
    before: bytes | None
    after: bytes | None
    cause: str


@is_result()
@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A commit that was marked, so that it can be found again by name or by how recent the mark is.

    Attributes:
        number: A number that counts up with each snapshot of the branch.
        name: Its name; None for an unnamed one.
        seq: The number of the commit; 0 for the state before the first one.
        root: The root hash of the namespace after the commit, as 64 hex digits.
        micros: When the snapshot was created, in microseconds since 1970.
    """

    number: int
    name: str | None
    seq: int
    root: str
    micros: int

    @property
    def time(self) -> datetime:
        """When the snapshot was created (UTC)."""
        return datetime_of(self.micros)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "number": self.number,
            "name": self.name,
            "seq": self.seq,
            "root": self.root,
            "time": self.time.isoformat(),
        }

    @classmethod
    @json_form("a snapshot")
    def from_json(cls, data: Mapping[str, Any]) -> Snapshot:
        """Rebuild a snapshot from its JSON form."""
        micros = microseconds(datetime.fromisoformat(data["time"]))
        return cls(number=data["number"], name=data["name"], seq=data["seq"], root=data["root"], micros=micros)


@is_result()
@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A set of changes that were applied atomically.

    Attributes:
        seq: Its number in its branch, from 1, without gaps.
        parents: (branch, seq) of the commits that it follows: none for the first, two for a merge. That of a commit of
            another branch has a third item, the hash of its entry: names of branches alone would bind nothing.
        micros: Its time, in microseconds since 1970; always later than its parent's.
        root: The root of the namespace after it. Its page is 0 if the root is empty or its pages have been dropped.
        entry: Its hash in the log, 32 bytes (`ledger.entries`); empty within a scope.
        parts: The newest commits of the other parts of the memory after it, by name. None for a commit that a release
            before format 4 wrote, which does not bind them.
        part_commits: The commits to other parts that it follows, if they were read with it (`Memory.changes`). Each
            has the log of its part: its seq, root and entry are those there.
    """

    namespace: str
    branch: str
    seq: int
    parents: tuple[Parent, ...]
    micros: int
    actor: str | None
    reason: str | None
    root: Root
    changes: tuple[Change, ...]
    entry: bytes = b""
    parts: tuple[PartHead, ...] | None = None
    part_commits: tuple[Commit, ...] = ()

    @property
    def part(self) -> str:
        """The name of the part of the memory that it belongs to: "records", or what a facet keeps."""
        return Branch(self.namespace, self.branch).reserved_name or RECORDS

    @property
    def time(self) -> datetime:
        """The time of the commit (UTC)."""
        return datetime_of(self.micros)

    @property
    def merged(self) -> tuple[str, int] | None:
        """The branch that it merges, and the newest commit of it; None if it merges none."""
        others = self.parents[1 if self.seq > 1 else 0 :]
        return others[0][:2] if others else None

    @property
    def memory_root(self) -> bytes:
        """The root that its entry binds: of the memory, or of the records alone if `parts` is None."""
        return stated_root(self.root.hash, self.parts)

    @property
    def cursor(self) -> str:
        """The position in the log after this commit, for `changes(since=)` and `listen(since=)`, also in a scope."""
        return str(self.seq)

    def touches(self, record_id: str | None) -> bool:
        """Return whether the commit changed the record; True if `record_id` is None."""
        return record_id is None or any(change.id == record_id for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "namespace": self.namespace,
            "branch": self.branch,
            "seq": self.seq,
            "parents": [[name, seq, *(entry.hex() for entry in entries)] for name, seq, *entries in self.parents],
            "time": self.time.isoformat(),
            "actor": self.actor,
            "reason": self.reason,
            "root": self.root.hash.hex(),
            "entry": self.entry.hex(),
            "changes": form_of(tuple[Change, ...]).to_json(self.changes),
            **({} if self.parts is None else {"parts": form_of(tuple[PartHead, ...]).to_json(self.parts)}),
            **self._part_commits(),
        }

    def _part_commits(self) -> dict[str, Any]:
        """Return the JSON form of the commits to other parts, if there are any."""
        return {"part_commits": [each.to_json() for each in self.part_commits]} if self.part_commits else {}

    @staticmethod
    @json_form("a commit")
    def from_json(data: Mapping[str, Any]) -> Commit:
        """Rebuild a commit, or a commit as seen within a scope, from its JSON form.

        The number of the page of its root is not part of it: the root has page 0.
        """
        common: dict[str, Any] = {
            "namespace": data["namespace"],
            "branch": data["branch"],
            "micros": microseconds(datetime.fromisoformat(data["time"])),
            "changes": form_of(tuple[Change, ...]).from_json(data["changes"]),
            "part_commits": tuple(map(Commit.from_json, data.get("part_commits", ()))),
        }
        if "seq" not in data:
            return ScopedCommit(seq=0, parents=(), actor=None, reason=None, root=Root(), token=data["cursor"], **common)
        return Commit(
            seq=data["seq"],
            parents=tuple((name, seq, *map(bytes.fromhex, entries)) for name, seq, *entries in data["parents"]),
            actor=data["actor"],
            reason=data["reason"],
            root=Root(bytes.fromhex(data["root"])),
            entry=bytes.fromhex(data["entry"]),
            parts=None if data.get("parts") is None else form_of(tuple[PartHead, ...]).from_json(data["parts"]),
            **common,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedCommit(Commit):
    """A commit as seen within a scope: without seq (0), parents, root, actor and reason, which would reveal others.

    Attributes:
        token: Its cursor.
    """

    token: str

    @property
    def cursor(self) -> str:
        """The position in the log after this commit, for `changes(since=)` in the same scope."""
        return self.token

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "namespace": self.namespace,
            "branch": self.branch,
            "cursor": self.token,
            "time": self.time.isoformat(),
            "changes": form_of(tuple[Change, ...]).to_json(self.changes),
            **self._part_commits(),
        }
