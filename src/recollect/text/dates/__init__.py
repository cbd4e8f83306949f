"""Dates named in a question, in nine languages, in a form that can be compared with the day of a record."""

from __future__ import annotations

from recollect.text.dates.naming import MOST_DATES, NO_DATES, NamedDates, described, in_recent_days, named

__all__ = ["MOST_DATES", "NO_DATES", "NamedDates", "described", "in_recent_days", "named"]
