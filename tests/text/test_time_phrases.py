"""Three hundred phrases of time in nine languages, and the days that they mean (tests/labels/time_phrases.tsv)."""

from __future__ import annotations

import re
from datetime import date, timedelta

from tests.paths import LABELS

from recollect.text.date_phrases import LANGUAGES
from recollect.text.dates import NamedDates, named

TODAY = date(2026, 10, 28)
TABLE = LABELS / "time_phrases.tsv"
#: The questions that are read otherwise than they are meant.
WRONG = {"Was geschah in der ersten Oktoberwoche?"}
#: The days that are compared.
DAYS = [date(2023, 1, 1) + timedelta(number) for number in range(4 * 365 + 1)]


def rows() -> list[tuple[str, str, str]]:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [(language, question, meant) for language, question, meant in (line.split("\t") for line in lines)]


def test_the_tables_have_800_phrases_and_200_questions_without_a_date() -> None:
    lines = [
        line.split("\t")
        for table in sorted(LABELS.glob("time_phrases*.tsv"))
        for line in table.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert len({question for _, question, _ in lines}) == len(lines) >= 800
    without = [line for line in (LABELS / "no_dates.tsv").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert len(set(without)) == len(without) >= 200


def read(dates: NamedDates) -> set[date]:
    """The days that were read: those of the spans, or else all that fit."""
    if dates.spans:
        return {day for day in DAYS if any(first <= day <= last for first, last in dates.spans)}
    if not (dates.days or dates.months or dates.years):
        return set()
    return {
        day
        for day in DAYS
        if (not dates.days or (day.month, day.day) in dates.days)
        and (not dates.months or day.month in dates.months)
        and (not dates.years or day.year in dates.years)
    }


def meaning(written: str) -> set[date]:
    """The days of a cell of the table."""
    if written.startswith("*-"):
        parts = written[2:].split("-")
        return {day for day in DAYS if [f"{day.month:02}", f"{day.day:02}"][: len(parts)] == parts}
    first, _, last = written.partition(" ")
    begin = date.min if first == "-" else date.fromisoformat(first)
    return {day for day in DAYS if begin <= day <= date.fromisoformat(last or first)}


def test_at_least_95_of_100_phrases_are_read_as_they_are_meant_and_the_others_are_listed() -> None:
    wrong = {question for _, question, meant in rows() if read(named(question, TODAY)) != meaning(meant)}
    assert wrong == WRONG
    assert len(rows()) >= 300
    assert len({language for language, _, _ in rows()}) == 9
    assert 20 * len(wrong) <= len(rows())


def test_a_wrong_meaning_is_found() -> None:
    assert read(named("What did Ana buy yesterday?", TODAY)) != meaning("2026-10-26")
    assert read(named("What did Ana buy?", TODAY)) == set()


#: The slots that the meaning of a rule reads.
NEEDED = {
    "near": {"near"}, "ago": {"count", "step"}, "within": {"count", "step"}, "which": {"unit"},
    "which day": {"which", "weekday"}, "day of week": {"which", "weekday"}, "which weekend": {"which"},
    "weekday": {"weekday"}, "weekend": set(), "day": {"day"}, "week of": {"ordinal", "month"},
    "between": {"day", "day2", "month2"}, "date": {"day", "month"}, "month": {"month"}, "year": {"year"},
}  # fmt: skip


def test_every_template_has_the_slots_that_its_meaning_reads() -> None:
    for language, phrases in LANGUAGES.items():
        for line in phrases.templates.strip().splitlines():
            rule, _, template = line.strip().partition(": ")
            slots = set(re.findall(r"\{(\w+)\}", template))
            if "month" in slots:  # of two months, one may be left out
                slots.add("month2")
            assert NEEDED[rule.rstrip("?")] <= slots, (language, line)
