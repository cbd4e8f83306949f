"""Validity in recall: what is true at the time in question comes before what it replaced.

A record is not valid outside of `valid_from` and `valid_to`, nor once another one replaces it (`replaced`), and then it
counts half. If a record that is valid replaces it, directly or through others, the new one gets at least its score: "is
the office in Rome?" finds where it is now, even if no word of the question is there. The old record stays a hit.

The time in question is the reference time, or the time that the question names ("where did Ana live in 2024?").
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time, timedelta

import numpy as np

from recollect.engine.read.replaced import Replacements
from recollect.indexes.documents.columns import NEVER, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import ONE
from recollect.indexes.parameters import LAPSED
from recollect.indexes.scoring.scores import NOTHING, Scores
from recollect.records.codec import microseconds
from recollect.text.dates import NamedDates

#: This many of the best records that are not valid pass their score to those that replace them.
MOST_REPLACED = 100


def time_in_question(dates: NamedDates, reference: datetime) -> tuple[int, int] | None:
    """Return the begin and the end (excluded) of the time that a question is about, in microseconds since 1970.

    None if it names months or days of no particular year.
    """
    if dates.moments:
        begins, ends = zip(*dates.moments, strict=True)
        return min(begins), max(ends)
    if dates.spans:
        first, last = min(span[0] for span in dates.spans), max(span[1] for span in dates.spans)
    elif dates.years:
        first, last = _of_years(dates)
    elif dates.months or dates.days:
        return None
    else:
        now = microseconds(reference)
        return now, now + 1
    midnight = time(tzinfo=reference.tzinfo)
    end = NEVER if last == date.max else microseconds(datetime.combine(last + timedelta(days=1), midnight))
    return microseconds(datetime.combine(first, midnight)), end


def _of_years(dates: NamedDates) -> tuple[date, date]:
    """Return the first and the last day of the days, months or years that a question names with years."""
    year, last_year = min(dates.years), max(dates.years)
    if dates.days:
        (month, day), (last_month, last_day) = min(dates.days), max(dates.days)
        day, last_day = min(day, monthrange(year, month)[1]), min(last_day, monthrange(last_year, last_month)[1])
    else:
        month, day = min(dates.months, default=1), 1
        last_month = max(dates.months, default=12)
        last_day = monthrange(last_year, last_month)[1]
    return date(year, month, day), date(last_year, last_month, last_day)


def lapsed_at(span: tuple[int, int], table: Table, replaced: Replacements) -> Ints:
    """Return the live documents that are valid at no time of a span, ascending."""
    lapsed = table.lapsed(*span)
    if not len(replaced.replacing[0]):
        return lapsed
    return np.union1d(lapsed, np.union1d(replaced.before(span[0]), replaced.later(span[1])))


def by_validity(scores: Scores, scored: Callable[[Ints], Scores], lapsed: Ints, replaced: Replacements) -> Scores:
    """Return the scores of the documents that a question reaches, and of those that replace them, with their validity.

    Args:
        scores: The scores of all documents that the question reaches, without their validity.
        scored: Returns the same if the documents that it is given count as reached, too.
        lapsed: The documents that are not valid at the time in question, ascending.
        replaced: Which documents are replaced by which.

    Cost:
        O(documents reached), and a look-up for each of at most MOST_REPLACED documents and what replaced it.
    """
    heirs = _heirs(scores, lapsed, replaced)
    admitted = np.union1d(np.array(sorted(heirs), dtype=np.int64), scores.numbers)
    if len(admitted) > len(scores.numbers):
        scores = scored(admitted)  # with all of the others, which the question may reach only by their month
    numbers, totals = scores.numbers, scores.totals
    replaces = NOTHING
    if heirs:
        inherited = np.array([heirs.get(number, 0) for number in numbers.tolist()], dtype=np.int64)
        replaces = np.maximum(inherited - totals, 0)
    placed = scores.placed if len(scores.placed) else np.full(len(numbers), ONE, dtype=np.int64)
    has_lapsed = np.isin(numbers, lapsed)
    placed = np.where(has_lapsed, placed * LAPSED[0] // LAPSED[1], placed)
    return replace(scores, placed=placed, replaces=replaces)


def _heirs(scores: Scores, lapsed: Ints, replaced: Replacements) -> dict[int, int]:
    """Map each valid document that replaces a reached one that is not to the best score of those that it replaces."""
    numbers, totals, table = scores.numbers, scores.totals, scores.query.view.table
    old = np.flatnonzero(np.isin(numbers, lapsed) & (totals > 0))
    ids = [table.id(number) for number in numbers[old].tolist()]
    best = sorted(zip((-totals[old]).tolist(), ids, numbers[old].tolist(), strict=True))[:MOST_REPLACED]
    not_valid = set(lapsed.tolist())
    heirs: dict[int, int] = {}
    passed: set[int] = set()
    for total, _, number in best:
        waiting = [number]
        while waiting:
            number = waiting.pop()
            if number in passed:  # by a record with a higher score
                continue
            passed.add(number)
            for heir in replaced.heirs_of(number):
                if heir in not_valid:
                    waiting.append(heir)
                else:
                    heirs[heir] = max(heirs.get(heir, 0), -total)
    return heirs
