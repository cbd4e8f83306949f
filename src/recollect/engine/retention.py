"""What is due by the rules of retention: pure functions of rules, records, the log and a time.

A dry run and a sweep use the same ones, so a sweep removes exactly what a plan at the same time and state lists.
`retaining` executes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from recollect.arguments.durations import duration
from recollect.common.deadlines import checked
from recollect.engine.write.classes import QUARANTINED
from recollect.errors import CodecError
from recollect.filters.tree import AnyOf, Filter, Has, Not, Time
from recollect.ledger.commits import Branch
from recollect.operations.retention import RetentionRule
from recollect.records.codec import datetime_of, microseconds
from recollect.records.record import Record
from recollect.stores.base import View

#: The name in the metadata of a summary, which no rule consolidates again.
_SUMMARY = "consolidated_from"
_MICROSECOND = timedelta.resolution
#: Number of former versions that are examined together.
EXAMINED_AT_ONCE = 1000


class ResolvedRule(NamedTuple):
    """A rule with its filter as records are compared with it, without `Under`."""

    rule: RetentionRule
    where: Filter


class DueRecord(NamedTuple):
    """A record that a rule applies to, in order of its age.

    Attributes:
        since: The time from which its age counts, in microseconds since 1970.
        nbytes: The size of its canonical bytes.
    """

    since: int
    id: str
    nbytes: int


class Times(NamedTuple):
    """When records were written and used, in microseconds since 1970.

    Attributes:
        written: Returns when the newest versions of some ids were written.
        used: Returns when records were last got or recalled; those that never were are left out.
    """

    written: Callable[[Sequence[str]], Mapping[str, int]]
    used: Callable[[], Mapping[str, int]]


def is_exempt(record: Record, rule: RetentionRule) -> bool:
    """Return whether a rule leaves out a record because it is pinned. A hold applies to it, too.

    What less than the user has pinned is not exempt: a page could otherwise make its text stay.
    """
    return record.pinned and record.has_authority and not rule.include_pinned and rule.action != "hold"


def deciding(rules: Sequence[ResolvedRule], record: Record) -> RetentionRule | None:
    """Return the rule that decides about a record: the first one that applies to it; None if none does."""
    for rule, where in rules:
        if not is_exempt(record, rule) and where.matches(record):
            return rule
    return None


def rules_of_part(rules: Sequence[ResolvedRule], branch: Branch) -> list[ResolvedRule]:
    """Return the rules that apply to the records of a part: in quarantine, only what includes pinned ones, and holds.

    What is in quarantine waits for a decision, and cannot be summarised.
    """
    if not branch.is_reserved:
        return list(rules)
    assert branch.reserved_name == QUARANTINED, branch
    return [
        each
        for each in rules
        if each.rule.action == "hold" or (each.rule.include_pinned and each.rule.action != "consolidate")
    ]


def possibly_due(rules: Sequence[ResolvedRule], now: int) -> Filter | None:
    """Return a filter that all due records match, for the store to look only at these; None if no rule makes any due.

    Args:
        now: The time, in microseconds since 1970.
    """
    parts: list[Filter] = []
    for rule, where in rules:
        if rule.action == "hold":
            continue
        # With `keep_newest`, newer records count, too; a record without a time has the age of its writing.
        if rule.since == "time" and rule.after is not None and rule.keep_newest is None:
            limit = datetime_of(now) - rule.age + _MICROSECOND
            where = where & AnyOf((Time("before", end=limit), Not(Has("time"))))
        parts.append(where)
    return AnyOf.of(*parts) if parts else None


def due_records(
    rules: Sequence[ResolvedRule], records: Iterable[Record], times: Times, now: int
) -> dict[str, list[DueRecord]]:
    """Return the records that are due, by the name of the rule that decides about them, the oldest first.

    Args:
        rules: The rules, in their order.
        records: The live records, at least those that are `possibly_due`.
        times: When they were written and used.
        now: The time, in microseconds since 1970.

    Cost:
        Compares each record with each rule, up to the one that applies to it.
    """
    candidates: dict[str, list[DueRecord]] = {rule.name: [] for rule, _ in rules if rule.action != "hold"}
    undated: dict[str, list[str]] = {name: [] for name in candidates}
    for record in checked(records):
        rule = deciding(rules, record)
        if rule is None or rule.action == "hold":
            continue
        if rule.action == "consolidate" and _SUMMARY in record.metadata:
            continue
        dated = rule.since == "time" and record.time is not None
        since = microseconds(record.time) if dated and record.time is not None else 0
        candidates[rule.name].append(DueRecord(since, record.id, len(record.to_bytes())))
        if not dated:
            undated[rule.name].append(record.id)
    found = {}
    for rule, _ in rules:
        if rule.action != "hold":
            dates = _dates(rule, undated[rule.name], times)
            aged = [each._replace(since=dates.get(each.id, each.since)) for each in candidates[rule.name]]
            found[rule.name] = _due(rule, aged, now)
    return {name: due for name, due in found.items() if due}


def _dates(rule: RetentionRule, record_ids: Sequence[str], times: Times) -> dict[str, int]:
    """Return from when the age of records counts: when they were written, or last used if the rule says so."""
    if not record_ids:
        return {}
    dates = dict(times.written(record_ids))
    if rule.since == "used":
        used = times.used()
        for record_id in record_ids:
            if record_id in used:
                dates[record_id] = max(dates.get(record_id, used[record_id]), used[record_id])
    return dates


def _due(rule: RetentionRule, candidates: Iterable[DueRecord], now: int) -> list[DueRecord]:
    """Return which of the records that a rule decides about are due, the oldest first."""
    ordered = sorted(candidates)
    if rule.keep_newest is not None:
        ordered = ordered[: -rule.keep_newest]
    if rule.after is None:
        return ordered
    limit = now - rule.age // _MICROSECOND
    return [each for each in ordered if each.since <= limit]


# Former versions


class FormerVersion(NamedTuple):
    """A version that was replaced or removed, in order of that.

    Attributes:
        since: The time of the commit that did so, in microseconds since 1970.
        nbytes: The size of its payload.
    """

    since: int
    id: str
    version: bytes
    nbytes: int


class FormerVersions:
    """The former versions of a branch that are due: no moment that is to stay readable has them.

    A version is due if it was replaced or removed at least a time ago, and was not live at any time since. What a hold
    applies to, or has applied to in any of its versions, stays.

    Args:
        view: The view at which this begins. `refresh` continues at a later one.
        branch: The branch.
        age: How long former versions stay (`Retention.keep_versions`).
        holds: The conditions of the holds.
        now: The time, in microseconds since 1970.
    """

    def __init__(self, view: View, branch: Branch, age: str, holds: Sequence[Filter], now: int) -> None:
        self._branch = branch
        self._holds = holds
        cutoff, newest = now - duration(age) // _MICROSECOND, view.head(branch).seq
        #: The newest commit of which all former versions are due, unless they are needed.
        self.upto = bisect_right(range(1, newest + 1), cutoff, key=lambda seq: _micros(view, branch, seq))
        self._seen = self.upto  # the commit up to which `_needed` is known
        self._needed: set[bytes] = set()
        self.refresh(view)

    def refresh(self, view: View) -> None:
        """Take note of what has become live again since: to be called with each later view before `due`."""
        for commit in view.commits(self._branch, since=self._seen):
            self._needed.update(each.after for each in commit.changes if each.after is not None)
            self._seen = commit.seq

    def piece(self, view: View, since: int) -> tuple[int, dict[bytes, tuple[int, str]]]:
        """Return a seq, and what the commits after `since` up to it have replaced or removed: version -> time and id.

        They are about `EXAMINED_AT_ONCE` versions, and the seq is at most `upto`.
        """
        piece: dict[bytes, tuple[int, str]] = {}
        for commit in checked(view.commits(self._branch, since=since, before=self.upto + 1)):
            for change in commit.changes:
                if change.before is not None and change.before != change.after:
                    piece[change.before] = commit.micros, change.id
            if len(piece) >= EXAMINED_AT_ONCE:
                return commit.seq, piece
        return self.upto, piece

    def due(self, view: View, piece: Mapping[bytes, tuple[int, str]]) -> list[FormerVersion]:
        """Return those of a piece that are due, those that were replaced first at the beginning."""
        versions = [each for each in piece if each not in self._needed]
        payloads = view.payloads(self._branch, versions)
        ids = list(dict.fromkeys(piece[each][1] for each in payloads))
        kept = set(view.versions_at(self._branch, ids, self.upto).values())
        kept.update(self._of_other_branches(view, ids))
        on_hold = {each for each in ids if self._holds and self._is_on_hold(view, each)}
        return sorted(
            FormerVersion(*piece[version], version, len(payload))
            for version, payload in payloads.items()
            if version not in kept and piece[version][1] not in on_hold
        )

    def _of_other_branches(self, view: View, ids: Collection[str]) -> Iterator[bytes]:
        """Yield the versions of ids that other branches of the namespace have: a version is stored once for all."""
        namespace = self._branch.namespace
        own = (each for each in view.branches() if each.namespace == namespace)
        for other in {*own, *(each.branch for each in view.continuing(namespace))}:
            if other != self._branch:
                yield from (stored.version for stored in view.several(other, list(ids)).values())

    def _is_on_hold(self, view: View, record_id: str) -> bool:
        """Return whether a hold applies to any version of a record."""
        for each in view.versions_of(self._branch, record_id):
            record = None if each.payload is None else _decoded(each.payload)
            if record is not None and any(where.matches(record) for where in self._holds):
                return True
        return False


def _micros(view: View, branch: Branch, seq: int) -> int:
    head = view.head_at(branch, seq)
    assert head is not None, seq
    return head.micros


def _decoded(payload: bytes) -> Record | None:
    """Return the record of a payload; None if it is corrupt."""
    try:
        return Record.from_bytes(payload)
    except CodecError:
        return None
