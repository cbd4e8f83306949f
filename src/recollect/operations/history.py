"""The operations on the history: snapshots, differences, versions, and what takes changes back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from recollect.arguments.checks import check_count, check_flag, check_text
from recollect.errors import InvalidArgumentError
from recollect.filters.text_form import check_filter
from recollect.filters.tree import Filter
from recollect.operations.base import ADMIN, READ, WRITE, Operation
from recollect.operations.past import target_of
from recollect.records.record import record_id


@dataclass(frozen=True, kw_only=True)
class TakeSnapshot(Operation, name="snapshot", right=WRITE, result="Snapshot", in_batch=False):
    """Mark the newest commit. The result is a `Snapshot`.

    Attributes:
        label: The name; None for an unnamed snapshot.
    """

    label: str | None = None

    def __post_init__(self) -> None:
        if self.label is None:
            return
        check_text("name", self.label)
        if not self.label or len(self.label) == 64:
            raise InvalidArgumentError("name", self.label, "must not be empty, nor as long as a root (64 characters)")
        if not isinstance(target_of(self.label, UTC), str):
            rule = f"reads as the number of a commit or as a time: use another name, such as 'before {self.label}'"
            raise InvalidArgumentError("name", self.label, rule)


@dataclass(frozen=True, kw_only=True)
class Snapshots(Operation, name="snapshots", right=READ, result="list[Snapshot]", in_batch=False):
    """List the snapshots, newest first. The result is a list."""


@dataclass(frozen=True, kw_only=True)
class DropSnapshot(Operation, name="drop_snapshot", right=WRITE, result="Snapshot", in_batch=False):
    """Remove a snapshot; its commit stays. The result is the snapshot.

    Attributes:
        label: Its name.
    """

    label: str

    def __post_init__(self) -> None:
        check_text("name", self.label)


@dataclass(frozen=True, kw_only=True)
class Rollback(Operation, name="rollback", right=WRITE, result="Restored", in_batch=False):
    """Restore the state of a moment, in a new commit. The result is a `Restored`.

    Attributes:
        moment: The token of the moment (`Moment.token`).
    """

    moment: str

    def __post_init__(self) -> None:
        check_text("moment", self.moment)


@dataclass(frozen=True, kw_only=True)
class Revert(Operation, name="revert", right=WRITE, result="Restored", in_batch=False):
    """Take back the changes of one commit, in a new commit. The result is a `Restored`.

    Attributes:
        seq: The number of the commit.
    """

    seq: int

    def __post_init__(self) -> None:
        check_count("seq", self.seq)


@dataclass(frozen=True, kw_only=True)
class Diff(Operation, name="diff", right=READ, result="Difference", in_batch=False):
    """Compare two moments. The result is a `Difference`.

    Attributes:
        old: The token of a moment (`Moment.token`).
        new: The token of another moment.
    """

    old: str
    new: str

    def __post_init__(self) -> None:
        check_text("old", self.old)
        check_text("new", self.new)


@dataclass(frozen=True, kw_only=True)
class History(Operation, name="history", right=READ, result="list[RecordVersion]", in_batch=False):
    """List the versions that a record had, oldest first. The result is a list of `RecordVersion`.

    Attributes:
        id: The id of the record.
    """

    id: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))


@dataclass(frozen=True, kw_only=True)
class Erase(Operation, name="erase", right=ADMIN, result="Erased", in_batch=False, atomic=False):
    """Permanently remove the contents of records, former versions included. The result is an `Erased`.

    Attributes:
        id: The id of the record; None if there is a filter.
        where: Which records: those of which any version matches; None if there is an id.
        redact: Remove the ids, and the actors and reasons of the commits that changed the records, too.
        derived: Erase what derives from the records, too.
    """

    id: str | None = None
    where: Filter | None = None
    redact: bool = False
    derived: bool = False

    def __post_init__(self) -> None:
        if (self.id is None) == (self.where is None):
            raise InvalidArgumentError("what", self.id, "must be an id or a filter")
        if self.id is not None:
            object.__setattr__(self, "id", record_id(self.id))
        else:
            check_filter(self.where)
        check_flag("redact", self.redact)
        check_flag("derived", self.derived)
