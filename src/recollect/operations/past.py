"""The operations that read the past: finding a moment, and executing a reading operation as of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo

from recollect.arguments.checks import MAX_COUNT, check_text, is_integer
from recollect.errors import InvalidArgumentError, InvalidOperationError, ReadOnlyMemoryError
from recollect.operations.base import READ, Operation, Right
from recollect.records.record import check_instant


@dataclass(frozen=True, kw_only=True)
class Pin(Operation, name="pin", right=READ, result="Moment", in_batch=False):
    """Find a moment in the history. The result is a `Moment`. Exactly one field names it.

    Attributes:
        seq: The number of a commit; 0: before the first.
        time: A time: the newest commit at or before it.
        named: A root as 64 hex digits, the name of a snapshot, or, within a scope, a cursor.
        index: A snapshot by its age; 0: the newest.
        root: With `seq`: the root that the commit must have, as 64 hex digits.
    """

    seq: int | None = None
    time: datetime | None = None
    named: str | None = None
    index: int | None = None
    root: str | None = None

    def __post_init__(self) -> None:
        if self.root is not None:
            check_text("root", self.root)
        passed = [each for each in (self.seq, self.time, self.named, self.index) if each is not None]
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
        text: The text.
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
        operation: The operation.
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
    def concerns_all(self) -> bool:
        """True if the operation concerns all namespaces of the store."""
        return self.operation.concerns_all
