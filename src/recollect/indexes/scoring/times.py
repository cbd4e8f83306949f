"""The date signal: which documents are of the time that a question names, and their shares.

The day of a document is that of the time zone of the store.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from recollect.indexes.documents.columns import NO_TIME, Flags, Ints, Numbers, civil_of
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.parameters import DATE_SHARE
from recollect.text.dates import NamedDates
from recollect.text.dates.spans import Span

#: The share of a document of a month, year or span that the question names.
_SHARE = (DATE_SHARE << SHARE_BITS) // 100
#: Up to this many values, comparing with one after the other is faster than `np.isin`.
_FEW = 8


def within(dates: NamedDates, table: Table) -> Flags:
    """Return which documents, by number, are live and within the spans or times that a question names."""
    out: Flags = _of_spans(dates.spans, table.civil[: table.count]) | _of_moments(dates, table.micros[: table.count])
    return out & table.alive[: table.count]


def exact(dates: NamedDates, table: Table) -> Ints:
    """Return the live documents of the exact days and times that a question names, which are hits without a word."""
    of_days = _of_days(dates, table.civil[: table.count]) | _of_moments(dates, table.micros[: table.count])
    return np.flatnonzero(of_days & table.alive[: table.count])


def date_shares(dates: NamedDates, table: Table, numbers: Ints | Numbers) -> Ints:
    """Return one date share for a month, year or span that the question names, and two for an exact day or time.

    A day of which the question names a part is not exact. The time near a named one gets three quarters: what happened
    in the first week of a month may be reported later in it.
    """
    civil = table.civil[numbers]
    out = _span_shares(dates, civil)
    exact = _of_moments(dates, table.micros[numbers])
    if dates.whole_days:
        exact |= _of_days(dates, civil)
    out[exact] = 2 * _SHARE
    return out


def span_bounds(dates: NamedDates, first: Numbers, last: Numbers) -> tuple[Ints, Ints]:
    """Return lower and upper bounds of the date shares of documents of ranges of days.

    Exact days and times are not taken into account.
    """
    shares, same = _span_shares(dates, first), first == last
    return np.where(same, shares, 0), np.where(same, shares, _SHARE)


def _span_shares(dates: NamedDates, civil: Numbers) -> Ints:
    """Return the share of each day for the months, years and spans that a question names."""
    out: Ints = np.where(_of_spans(dates.nearby, civil), 3 * _SHARE // 4, 0)
    out[_of_spans(dates.spans, civil) | _of_spans(dates.around, civil)] = _SHARE
    if dates.months or dates.years:
        fits = np.ones(len(civil), dtype=np.bool_)
        if dates.months:
            fits &= _one_of(civil >> 5 & 15, dates.months)
        if dates.years:
            fits &= _one_of(civil >> 9, dates.years)
        out[fits] = _SHARE
    return out


def _one_of(values: Numbers, wanted: Iterable[int]) -> Flags:
    """Return which values are among some."""
    sought = list(wanted)
    if len(sought) > _FEW:
        return np.isin(values, sought)
    out: Flags = np.zeros(len(values), dtype=np.bool_)
    for each in sought:
        out |= values == each
    return out


def _of_spans(spans: Iterable[Span], civil: Numbers) -> Flags:
    """Return which days are in any of some spans."""
    out: Flags = np.zeros(len(civil), dtype=np.bool_)
    for first, last in {*spans}:  # a question may repeat a date many times
        out |= (civil >= civil_of(first)) & (civil <= civil_of(last))
    return out


def _of_moments(dates: NamedDates, micros: Ints) -> Flags:
    """Return which times are in the times of less than a day that a question names."""
    out: Flags = np.zeros(len(micros), dtype=np.bool_)
    for begin, end in {*dates.moments}:
        out |= (micros >= begin) & (micros < end)
    out &= micros != NO_TIME
    return out


def _of_days(dates: NamedDates, civil: Numbers) -> Flags:
    """Return which days are exact days that a question names."""
    out: Flags = np.zeros(len(civil), dtype=np.bool_)
    for first, last in {*dates.spans}:  # a question may repeat a date many times
        if first == last:
            out |= civil == civil_of(first)
    for first, last in {*dates.main}:
        out |= (civil >= civil_of(first)) & (civil <= civil_of(last))
    if dates.days:
        fits = _one_of(civil & 511, (month << 5 | day for month, day in dates.days))
        out |= fits & _one_of(civil >> 9, dates.years) if dates.years else fits
    return out
