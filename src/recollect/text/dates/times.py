"""Times that a phrase means: one that recurs every year, one on the calendar, and one that is counted in hours."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import NamedTuple

from recollect.text.dates import spans
from recollect.text.dates.holidays import Holiday
from recollect.text.dates.spans import Span


class Fixed(NamedTuple):
    """A time on the calendar.

    Attributes:
        span: Its first and last day.
        unit: The unit of the calendar that it is, or "span".
        year: Its year, if the phrase names a month, a day or a year by its number and nothing else.
        month: Its month, likewise.
        day: Its day, likewise.
        also: Other days that the phrase may mean, such as those of 10/11/2026.
        main: The most important day of it.
        around: The time around it, in which people may report it.
        words: Whether records of that time may have the words of the phrase.
    """

    span: Span
    unit: str = "span"
    year: int | None = None
    month: int | None = None
    day: int | None = None
    also: tuple[Span, ...] = ()
    main: Span | None = None
    around: Span | None = None
    words: bool = False


class Counted(NamedTuple):
    """A number of units.

    Attributes:
        number: How many. If they may be several numbers, the most probable.
        unit: A unit of the calendar, "hour" or "minute".
        least: The least number that is meant, if they may be several, or else 0.
        most: The greatest, likewise.
        rest: The units that are added ("a year and two months").
    """

    number: float
    unit: str
    least: float = 0
    most: float = 0
    rest: Counted | None = None

    @property
    def exact(self) -> bool:
        """Whether it is one number of one unit."""
        return not self.least and self.rest is None

    @property
    def mean(self) -> float:
        """The number, or that in the middle of several."""
        return (self.least + self.most) / 2 if self.least else self.number

    def plus(self, other: Counted) -> Counted:
        """Return the distance that is longer by another one."""
        return self._replace(rest=other if self.rest is None else self.rest.plus(other))


class Moments(NamedTuple):
    """A time in hours or minutes: how many ago (`rule` "ago") or within how many ("within"); `bound` is as in rules."""

    rule: str
    counted: Counted
    bound: str = ""


class Recurring(NamedTuple):
    """A time of each year.

    Attributes:
        of: Returns its span in a year.
        unit: See `Fixed`.
        month: The month, if the phrase names a month, or a day of one.
        day: The day of the month.
        main: See `Fixed`.
        around: See `Fixed`.
        words: See `Fixed`.
    """

    of: Callable[[int], Span]
    unit: str = "span"
    month: int | None = None
    day: int | None = None
    main: Callable[[int], Span | None] | None = None
    around: Callable[[int], Span] | None = None
    words: bool = False

    @classmethod
    def month_of(cls, number: int) -> Recurring:
        """Return a month by its number."""
        return cls(lambda year: spans.month_of(year, number), "month", number)

    @classmethod
    def day_of(cls, month: int, day: int) -> Recurring:
        """Return a day of a month."""
        return cls(lambda year: spans.one(date(year, month, day)), "day", month, day)

    @classmethod
    def season_of(cls, number: int) -> Recurring:
        """Return a season: spring 0, summer 1, autumn 2, winter 3, which ends in the next year."""
        return cls(lambda year: spans.months_from(date(year, 1, 1), 2 + 3 * number, 3), "season", words=True)

    @classmethod
    def quarter_of(cls, number: int) -> Recurring:
        """Return a quarter, 1 to 4."""
        return cls(lambda year: spans.months_from(date(year, 1, 1), 3 * number - 3, 3), "quarter", words=True)

    @classmethod
    def half_of(cls, number: int) -> Recurring:
        """Return a half of the year, 1 or 2."""
        return cls(lambda year: spans.months_from(date(year, 1, 1), 6 * number - 6, 6), "half", words=True)

    @classmethod
    def of_holiday(cls, holiday: Holiday) -> Recurring:
        """Return a holiday."""
        return cls(holiday.days, "span" if holiday.first != holiday.last else "day", main=holiday.main_day, words=True)

    def at(self, today: date, by: int | None = None) -> Fixed:
        """Return the last one that began by today, or the last that is over, this year's or the next (`by`).

        Raises:
            ValueError: There is none.
        """
        span = spans.last_of(today, self.of, by)
        return self._fixed(span, span[0].year)

    def in_year(self, year: int) -> Fixed:
        """Return the one of a year.

        Raises:
            ValueError: The year has none.
        """
        fixed = self._fixed(self.of(year), year)
        return fixed._replace(year=year, month=self.month, day=self.day) if self.month else fixed

    def _fixed(self, span: Span, year: int) -> Fixed:
        main = self.main(year) if self.main else None
        return Fixed(span, self.unit, main=main, around=self.around(year) if self.around else None, words=self.words)
