"""The operations on the history: snapshots, differences, versions, the past, receipts, and what takes changes back."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from recollect.arguments.checks import MAX_COUNT, check_count, check_flag, check_text, is_integer, is_vector_text
from recollect.errors import InvalidArgumentError, InvalidOperationError, ReadOnlyMemoryError
from recollect.filters.text_form import check_filter
from recollect.filters.tree import Filter
from recollect.operations.base import ADMIN, READ, WRITE, Operation, Right, branch_name, checked_parts
from recollect.operations.reads import Recall
from recollect.records.record import check_instant, record_id
from recollect.text.unicode import nfc


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
        object.__setattr__(self, "label", nfc(self.label))


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
        parts: The parts of the memory that are concerned, by name: "records", or what a facet keeps. None: all.
    """

    moment: str
    parts: Collection[str] | None = None

    def __post_init__(self) -> None:
        check_text("moment", self.moment)
        object.__setattr__(self, "parts", checked_parts(self.parts))


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
        branch: The name of the branch that the other moment is of; None: that of the operation.
        parts: The parts of the memory that are concerned, by name: "records", or what a facet keeps. None: all.
    """

    old: str
    new: str
    branch: str | None = None
    parts: Collection[str] | None = None

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the other branches that it concerns."""
        return () if self.branch is None else (self.branch,)

    def __post_init__(self) -> None:
        if self.branch is not None:
            object.__setattr__(self, "branch", branch_name(self.branch, "branch"))
        check_text("old", self.old)
        check_text("new", self.new)
        object.__setattr__(self, "parts", checked_parts(self.parts))


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
        parts: With a filter: the parts of the memory that are concerned, by name. None: all. With an id: the one part
            that has it; None: the records.
        dry_run: Change nothing: the result is what would be erased.
    """

    id: str | None = None
    where: Filter | None = None
    redact: bool = False
    derived: bool = False
    parts: Collection[str] | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", checked_parts(self.parts))
        if (self.id is None) == (self.where is None):
            raise InvalidArgumentError("what", self.id, "must be an id or a filter")
        if self.id is not None:
            object.__setattr__(self, "id", record_id(self.id))
        else:
            check_filter(self.where)
        check_flag("redact", self.redact)
        check_flag("derived", self.derived)
        check_flag("dry_run", self.dry_run)


# The operations that read the past: finding a moment, and executing a reading operation as of it.


@dataclass(frozen=True, kw_only=True)
class Pin(Operation, name="pin", right=READ, result="Moment", in_batch=False):
    """Find a moment in the history. The result is a `Moment`. Exactly one field names it.

    Attributes:
        seq: The number of a commit; 0: before the first.
        time: A time: the newest commit at or before it.
        named: A root as 64 hex digits, the name of a snapshot, or, within a scope, a cursor.
        index: A snapshot by its age; 0: the newest.
        root: With `seq`: the root that the commit must have, as 64 hex digits.
        of: The token of a moment of the memory, for one of its other parts.
    """

    seq: int | None = None
    time: datetime | None = None
    named: str | None = None
    index: int | None = None
    root: str | None = None
    of: str | None = None

    def __post_init__(self) -> None:
        for name in ("root", "of"):
            if getattr(self, name) is not None:
                check_text(name, getattr(self, name))
        passed = [each for each in (self.seq, self.time, self.named, self.index, self.of) if each is not None]
        if len(passed) != 1:
            raise InvalidArgumentError("target", tuple(passed), "must be one seq, time, root or snapshot, or an index")
        for name in ("seq", "index"):
            value = getattr(self, name)
            if value is not None and not is_integer(value, -MAX_COUNT, MAX_COUNT):
                raise InvalidArgumentError(name, value, "must be an integer")
        if self.time is not None:
            object.__setattr__(self, "time", check_instant("time", self.time))
        if self.named is not None:
            check_text("named", self.named)

    @property
    def target(self) -> int | str | datetime:
        """The field that names the moment, for messages."""
        passed = (each for each in (self.seq, self.time, self.named) if each is not None)
        return next(passed, f"snapshot {self.index}")


def target_of(text: str, zone: tzinfo) -> int | str | datetime:
    """Return the moment that a text names: the number of a commit, a time, or else a root or the name of a snapshot.

    >>> from datetime import UTC
    >>> target_of("12", UTC), target_of("2026-03-01", UTC), target_of("before the trip", UTC)
    (12, datetime.datetime(2026, 3, 1, 0, 0, tzinfo=datetime.timezone.utc), 'before the trip')

    Args:
        zone: The time zone of a time in ISO 8601 without one.
    """
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return time if time.tzinfo else time.replace(tzinfo=zone)


@dataclass(frozen=True, kw_only=True)
class At(Operation, name="at", right=READ, in_batch=False):
    """Execute a reading operation as of a moment. The result is that of the operation.

    Attributes:
        moment: The token of the moment (`Moment.token`).
    """

    moment: str
    operation: Operation

    def __post_init__(self) -> None:
        check_text("moment", self.moment)
        if not isinstance(self.operation, Operation) or isinstance(self.operation, (At, Pin)):
            raise InvalidOperationError(self.operation, "cannot be executed as of a moment")
        if self.operation.name == "batch":  # nested too deeply for its JSON form, and it writes
            raise ReadOnlyMemoryError(self.operation.name)

    @property
    def needs(self) -> Right:
        """The right that the operation needs; `At` itself needs none."""
        return self.operation.needs

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of the other branches that the operation concerns."""
        return self.operation.branches

    @property
    def concerns_all(self) -> bool:
        """True if the operation concerns all namespaces of the store."""
        return self.operation.concerns_all


# The operations on receipts: what binds an answer to a commit, and asking the question again.


@dataclass(frozen=True, kw_only=True)
class Receipt(Operation, name="receipt", right=READ, result="dict", in_batch=False, in_past=True):
    """Write the receipt of an answer. The result is plain JSON (`ledger.receipts`).

    Attributes:
        operation: The question, with its reference time.
        time: The time of the answer, which decided which records had expired.
        seq: The commit that the answer was computed from.
        root: The root after it, as 64 hex digits.
        vectors: The seq up to which every text had a vector; None if no vectors were used.
        vector: The vector of the question (`Plan.vector`); "" if none was used.
        hits: The id and the score of each hit, the score in units of 2^-30.
        standing: The same of the standing instructions and preferences.
    """

    operation: Recall
    time: datetime
    seq: int
    root: str
    vectors: int | None = None
    vector: str = ""
    hits: Sequence[Sequence[Any]] = ()
    standing: Sequence[Sequence[Any]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.operation, Recall) or self.operation.reference is None:
            raise InvalidArgumentError("operation", self.operation, "must be a recall with a reference time")
        object.__setattr__(self, "time", check_instant("time", self.time))
        check_count("seq", self.seq, least=0)
        check_count("vectors", self.vectors, least=0, optional=True)
        check_text("root", self.root)
        if not is_vector_text(self.vector):
            raise InvalidArgumentError("vector", self.vector, "must be the vector of a plan, in base64")
        for name in ("hits", "standing"):
            listed = tuple(map(tuple, getattr(self, name)))
            if not all(len(each) == 2 and type(each[0]) is str and type(each[1]) is int for each in listed):
                raise InvalidArgumentError(name, getattr(self, name), "must be pairs of an id and a score")
            object.__setattr__(self, name, listed)


@dataclass(frozen=True, kw_only=True)
class Replay(Operation, name="replay", right=READ, result="Replayed", in_batch=False):
    """Ask the question of a receipt again, as of its commit. The result is a `Replayed`."""

    receipt: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.receipt, Mapping):
            raise InvalidArgumentError("receipt", self.receipt, "must be a JSON object")
