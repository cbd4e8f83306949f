"""The operations on who said what (docs/trust.md).

They raise a class of origin, release records from quarantine, follow what was made from what, and look for attacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from recollect.arguments.checks import check_count, check_text
from recollect.errors import InvalidArgumentError
from recollect.filters.text_form import check_filter
from recollect.filters.tree import Everything, Filter, Nothing
from recollect.operations.base import READ, WRITE, Operation, checked_ids, expectation
from recollect.records.origins import Origin, check_origin
from recollect.records.record import record_id

#: What the audit finds.
AuditSignal = Literal["imperative", "addresses", "hidden", "rival", "burst", "proposal"]
SIGNALS: tuple[AuditSignal, ...] = get_args(AuditSignal)
#: Maximum number of records of a lineage or a taint.
MOST_LINKED = 10_000


@dataclass(frozen=True, kw_only=True)
class Endorse(Operation, name="endorse", right=WRITE, result="Outcome"):
    """Raise the class of origin of a record, at most to that of the caller. The result is an `Outcome`.

    Attributes:
        id: The record.
        origin: The class that it gets.
        expect: The hash that the record must have: that of the version that was read.
    """

    id: str
    origin: Origin = "user"
    expect: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        object.__setattr__(self, "origin", check_origin("origin", self.origin))
        if self.expect is not None:
            object.__setattr__(self, "expect", expectation(self.expect))


@dataclass(frozen=True, kw_only=True)
class Release(Operation, name="release", right=WRITE, result="Report"):
    """Store records that are in quarantine. The result is a `Report`, with an outcome for each that was there.

    Attributes:
        ids: The ids of the records.
    """

    ids: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", checked_ids(self.ids))


@dataclass(frozen=True, kw_only=True)
class Audit(Operation, name="audit", right=READ, result="list[AuditFinding]"):
    """Look for what may be an attack among what the user has not said. The result is a list of `AuditFinding`.

    Attributes:
        since: Only records that were changed after this commit: a seq, or a cursor.
        where: Only records that match.
        limit: Maximum number of records that are looked at, the newest first.
        signals: Only these (`SIGNALS`).
    """

    since: int | str = 0
    where: Filter = field(default_factory=Everything)
    limit: int = 1000
    signals: tuple[AuditSignal, ...] = SIGNALS

    def __post_init__(self) -> None:
        if not isinstance(self.since, str):
            check_count("since", self.since, least=0)
        check_filter(self.where)
        _check_limit(self.limit)
        if isinstance(self.signals, str) or not all(each in SIGNALS for each in self.signals):
            raise InvalidArgumentError("signals", self.signals, f"must be some of {', '.join(SIGNALS)}")
        object.__setattr__(self, "signals", tuple(self.signals))


@dataclass(frozen=True, kw_only=True)
class TraceLineage(Operation, name="lineage", right=READ, result="Lineage"):
    """Find what a record was made from, directly and through others. The result is a `Lineage`.

    Attributes:
        id: The record.
        limit: Maximum number of records.
    """

    id: str
    limit: int = MOST_LINKED

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", record_id(self.id))
        _check_limit(self.limit)


@dataclass(frozen=True, kw_only=True)
class TraceTaint(Operation, name="taint", right=READ, result="Taint"):
    """Find what was made from some records: what derives from them, and what from that. The result is a `Taint`.

    Attributes:
        ids: The records from which it begins.
        source: The records with this source, too.
        where: The records that match, too; default: none.
        limit: Maximum number of records.
    """

    ids: tuple[str, ...] = ()
    source: str | None = None
    where: Filter = field(default_factory=Nothing)
    limit: int = MOST_LINKED

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", checked_ids(self.ids))
        if self.source is not None:
            check_text("source", self.source)
        check_filter(self.where)
        _check_limit(self.limit)
        if not self.ids and self.source is None and isinstance(self.where, Nothing):
            raise InvalidArgumentError("ids", (), "name at least one record, a source or a filter")


def _check_limit(limit: object) -> None:
    check_count("limit", limit)
    if limit > MOST_LINKED:  # type: ignore[operator]
        raise InvalidArgumentError("limit", limit, f"must be at most {MOST_LINKED}")
