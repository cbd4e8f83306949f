"""Validity in what a model reads: what does not hold at the time in question is left out, or shown with its end.

The time in question is the reference time, or the time that the question names. A question about what was true before
("where did Ana live before?") gets everything, and what has ended says until when it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from recollect.calls.calls import Calls, zone_of_store
from recollect.engine.read.concise import concise
from recollect.engine.read.validity import time_in_question
from recollect.engine.results import Hit
from recollect.filters import all_of
from recollect.filters.text_form import as_filter, check_filter
from recollect.filters.tree import EVERYTHING, AllOf, AnyOf, Filter, Not, Tag, ValidAt
from recollect.operations import Now, ValidUntil
from recollect.records.codec import microseconds
from recollect.records.factories import OTHER_BRANCH
from recollect.records.record import Record
from recollect.text.change import Holds, asks_what_holds
from recollect.text.dates import named

#: What was said in a branch that was abandoned never holds. A condition of the query, so that no number of such turns
#: takes the places of what holds.
NOT_ABANDONED = Not(Tag(OTHER_BRANCH))


class Validity:
    """When records are valid, and whether that is at the time in question.

    Args:
        calls: The memory.
        records: The records. Others can be added later.
        question: The question; "" for none.
        reference: The time of the question.
        zone: The time zone in which a question names days.
        where: The condition of the caller. If it states when records are valid, that is the time in question.
    """

    def __init__(
        self,
        calls: Calls,
        records: Iterable[Record],
        question: str,
        reference: datetime,
        zone: tzinfo = UTC,
        where: Filter = EVERYTHING,
    ) -> None:
        question, now = " ".join(question.split()), reference.astimezone(zone)
        self._calls = calls
        self._now = microseconds(now)
        self._all = asks_what_holds(question) is Holds.BEFORE or _states_validity(where)
        span = time_in_question(named(question, now), now)
        self._all = self._all or span is None  # a day or a month of any year: what has ended says until when it was
        self._span = span or (self._now, self._now + 1)
        self._zone = zone
        self._ends: dict[str, datetime] = {}
        self.add(records)

    def add(self, records: Iterable[Record]) -> None:
        """Look up when more records end."""
        ids = list(dict.fromkeys(record.id for record in records))
        if ids:
            self._ends |= self._calls.execute(ValidUntil(ids=tuple(ids)))

    def holds(self, record: Record) -> bool:
        """Return whether a record is valid at the time in question, or what was true before is asked for.

        What was said in a branch that was abandoned never holds.
        """
        begin, end = self._span
        if OTHER_BRANCH in record.tags:
            return False
        if self._all:
            return True
        begins = record.valid_from or (record.time if record.supersedes else None)
        started = begins is None or microseconds(begins) < end
        until = self._ends.get(record.id)
        return started and (until is None or microseconds(until) > begin)

    def ended(self, record: Record) -> datetime | None:
        """Return until when a record was valid, in the time zone; None if it still is."""
        until = self._ends.get(record.id)
        return None if until is None or microseconds(until) > self._now else until.astimezone(self._zone)


def _states_validity(where: Filter) -> bool:
    """Return whether a condition states when records are valid."""
    if isinstance(where, (AllOf, AnyOf)):
        return any(map(_states_validity, where.parts))
    return _states_validity(where.part) if isinstance(where, Not) else isinstance(where, ValidAt)


class ValidHits(NamedTuple):
    """The hits of a question that hold at the time in question.

    Attributes:
        hits: The hits, best first.
        standing: Standing instructions and preferences.
        more: Whether there are more hits than were asked for.
        validity: Until when they hold.
        cursor: The state of the memory that they are of.
        notes: What the caller should know about the answer.
        left_out: How many hits a concise answer leaves out.
    """

    hits: list[Hit]
    standing: list[Hit]
    more: bool
    validity: Validity
    cursor: str
    notes: tuple[str, ...]
    left_out: int = 0


def valid_hits(calls: Calls, question: str, count: int, **arguments: Any) -> ValidHits:
    """Return at most `count` hits that hold, with the arguments of `recall`.

    Cost:
        A recall, and another one of twice as many hits for each time that too few of them hold.
    """
    is_concise = arguments.pop("concise", False)
    wanted, zone, where = count + 1, zone_of_store(calls), as_filter(arguments.get("where"))
    check_filter(where)
    arguments["where"] = all_of(where, NOT_ABANDONED)
    while True:
        found = calls.recall(question, k=wanted, **arguments)
        assert found.reference is not None, "recall sets it"
        records = [hit.record for hit in (*found, *found.standing)]
        validity = Validity(calls, records, question, found.reference, zone, where)
        hits = [hit for hit in found if validity.holds(hit.record)]
        if len(hits) > count or len(found) < wanted:
            standing = [hit for hit in found.standing if validity.holds(hit.record)]
            notes = tuple(found.plan.notes)
            best, more, cursor = hits[:count], len(hits) > count, found.cursor
            if is_concise:  # of those that hold: others must not take their place
                kept, left_out = concise(best)
                return ValidHits([*kept], standing, False, validity, cursor, notes, len(left_out))
            return ValidHits(best, standing, more, validity, cursor, notes)
        wanted *= 2


def still_valid(calls: Calls, records: Sequence[Record]) -> list[Record]:
    """Return the records that are valid now."""
    if not records:
        return []
    validity = Validity(calls, records, "", calls.execute(Now()))
    return [record for record in records if validity.holds(record)]
