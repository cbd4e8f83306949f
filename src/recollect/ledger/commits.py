"""Commits, heads and changes: the values of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recollect.ledger.merkle import Root
from recollect.records.codec import datetime_of

#: What can be the cause of a change.
CAUSES = ("written", "forgotten", "expired", "evicted", "erased", "superseded", "rolled back")


class Branch(NamedTuple):
    """A branch of a namespace: what has a log and a head of its own."""

    namespace: str
    name: str = "main"


class Head(NamedTuple):
    """The newest commit of a line. Of a line without commits: seq 0 and the empty root."""

    seq: int = 0
    root: Root = Root()
    micros: int = -(2**63)


class Stored(NamedTuple):
    """A version as it is kept: its address, and the canonical bytes of the record."""

    version: bytes
    payload: bytes


class Change(NamedTuple):
    """What a commit did to one id: the versions before and after (32 bytes; None where not held), and the cause."""

    id: str
    before: bytes | None
    after: bytes | None
    cause: str

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "before": self.before.hex() if self.before else None,
            "after": self.after.hex() if self.after else None,
            "cause": self.cause,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Changes applied as one.

    seq       its number in its line, from 1, without gaps
    parents   (branch, seq) of the commits that it follows: none for the first, two for a merge
    micros    its time, in microseconds of 1970; always later than its parent's
    root      the root of the namespace after it
    """

    namespace: str
    branch: str
    seq: int
    parents: tuple[tuple[str, int], ...]
    micros: int
    actor: str | None
    reason: str | None
    root: Root
    changes: tuple[Change, ...]

    @property
    def time(self) -> datetime:
        """When it was committed (UTC)."""
        return datetime_of(self.micros)

    @property
    def cursor(self) -> str:
        """Where the log goes on behind it: what `changes(since=)` and `listen(since=)` take, also within a scope."""
        return str(self.seq)

    def touches(self, record_id: str | None) -> bool:
        """Whether it changed the record; any, where no id is given."""
        return record_id is None or any(change.id == record_id for change in self.changes)

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "branch": self.branch,
            "seq": self.seq,
            "parents": [list(parent) for parent in self.parents],
            "time": self.time.isoformat(),
            "actor": self.actor,
            "reason": self.reason,
            "root": self.root.hash.hex(),
            "changes": [change.to_json() for change in self.changes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedCommit(Commit):
    """A commit as a scope sees it: without seq (0), parents, root, actor and reason, which tell of others.

    token  its cursor
    """

    token: str

    @property
    def cursor(self) -> str:
        return self.token

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "branch": self.branch,
            "cursor": self.token,
            "time": self.time.isoformat(),
            "changes": [change.to_json() for change in self.changes],
        }
