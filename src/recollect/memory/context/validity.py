"""Validity in texts for a model: what does not hold at the time in question is left out, or shown with its end.

The time in question is the reference time, or the time that the question names. A question about what was true before
("where did Ana live before?") gets everything, and what has ended says until when it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo

from recollect.engine.read.validity import time_in_question
from recollect.memory.calls import Calls
from recollect.operations import Now
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.text.change import Holds, asks_what_holds
from recollect.text.dates import named


class Validity:
    """When records are valid, and whether that is at the time in question.

    Args:
        calls: The memory.
        records: The records. Others can be added later.
        question: The question; "" for none.
        reference: The time of the question.
        zone: The time zone in which a question names days.
    """

    def __init__(
        self, calls: Calls, records: Iterable[Record], question: str, reference: datetime, zone: tzinfo = UTC
    ) -> None:
        question, now = " ".join(question.split()), reference.astimezone(zone)
        self._calls = calls
        self._now = microseconds(now)
        self._history = asks_what_holds(question) is Holds.BEFORE
        self._span = time_in_question(named(question, now), now) or (self._now, self._now + 1)
        self._zone = zone
        self._ends: dict[str, datetime] = {}
        self.add(records)

    def add(self, records: Iterable[Record]) -> None:
        """Look up when more records end."""
        ids = list(dict.fromkeys(record.id for record in records))
        if ids:
            self._ends |= self._calls.valid_until(ids)

    def holds(self, record: Record) -> bool:
        """Return whether a record is valid at the time in question, or the question asks what was true before."""
        begin, end = self._span
        if self._history:
            return True
        begins = record.valid_from or (record.time if record.supersedes else None)
        started = begins is None or microseconds(begins) < end
        until = self._ends.get(record.id)
        return started and (until is None or microseconds(until) > begin)

    def ended(self, record: Record) -> datetime | None:
        """Return until when a record was valid, in the time zone; None if it still is."""
        until = self._ends.get(record.id)
        return None if until is None or microseconds(until) > self._now else until.astimezone(self._zone)


def still_valid(calls: Calls, records: Sequence[Record]) -> list[Record]:
    """Return the records that are valid now."""
    if not records:
        return []
    validity = Validity(calls, records, "", calls.execute(Now()))
    return [record for record in records if validity.holds(record)]
