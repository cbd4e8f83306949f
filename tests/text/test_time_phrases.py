"""More than nineteen hundred phrases of time in nine languages, the days that they mean, and questions that name none.

tests/labels/time_phrases*.tsv: the first has 306 phrases, the second, third, fifth and sixth 888 that were written
before any rule for them, the third by other people than those who wrote the rules, the fourth what was added with the
rules, the seventh what was read after them, the eighth kinds of phrases that a newcomer found unread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial

import pytest
from tests.paths import LABELS

import recollect
from recollect.text.dates import NO_DATES, NamedDates, named, naming
from recollect.text.dates.grammar import Cascade, Rule
from recollect.text.dates.lexicon import CODES, lexicon
from recollect.text.dates.lists import LISTED
from recollect.text.dates.meanings import MADE
from recollect.text.dates.rules import RULES

TODAY = date(2026, 10, 28)
#: The questions that are read otherwise than they are meant.
WRONG: set[str] = set()
#: The days that are compared.
DAYS = [date(1945, 1, 1) + timedelta(number) for number in range(84 * 365)]


def lines(name: str) -> list[list[str]]:
    read = (LABELS / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in read if not line.startswith("#")]


def rows() -> list[tuple[str, str, str]]:
    found = [line for table in sorted(LABELS.glob("time_phrases*.tsv")) for line in lines(table.name)]
    return [(language, question, meant) for language, question, meant in found]


@cache
def between(first: date, last: date) -> frozenset[date]:
    """The days that are compared from one to another."""
    return frozenset(DAYS[bisect_left(DAYS, first) : bisect_right(DAYS, last)])


@cache
def in_each(pattern: str) -> dict[str, frozenset[date]]:
    """The days that are compared, by what a pattern makes of them: such as those of each month for `%m`."""
    found = defaultdict(set)
    for day in DAYS:
        found[day.strftime(pattern)].add(day)
    return defaultdict(frozenset, {written: frozenset(days) for written, days in found.items()})


def all_in(pattern: str, *written: str) -> frozenset[date]:
    return frozenset().union(*(in_each(pattern)[each] for each in written))


def read(dates: NamedDates) -> frozenset[date]:
    """The days that were read: those of the spans, or else all that fit."""
    if dates.spans:
        return frozenset().union(*(between(first, last) for first, last in dates.spans))
    stated = {
        "%m-%d": [f"{month:02}-{day:02}" for month, day in dates.days],
        "%m": [f"{month:02}" for month in dates.months],
        "%Y": [f"{year:04}" for year in dates.years],
    }
    fitting = [all_in(pattern, *written) for pattern, written in stated.items() if written]
    return frozenset.intersection(*fitting) if fitting else frozenset()


@cache
def meaning(written: str) -> frozenset[date]:
    """The days of a cell of the table."""
    if "; " in written:
        return frozenset().union(*map(meaning, written.split("; ")))
    if written.startswith("*-"):
        return all_in("%m-%d" if "-" in written[2:] else "%m", written[2:])
    first, _, last = written.partition(" ")
    begin = date.min if first == "-" else date.fromisoformat(first)
    return between(begin, date.fromisoformat(last or first))


def test_the_tables_have_1900_phrases_and_450_questions_without_a_date() -> None:
    assert len({question for _, question, _ in rows()}) == len(rows()) >= 1900
    assert {language for language, _, _ in rows()} == set(CODES)
    without = [question for _, question in lines("no_dates.tsv")]
    assert len(set(without)) == len(without) >= 450


def test_at_least_97_of_100_phrases_are_read_as_they_are_meant_and_the_others_are_listed() -> None:
    wrong = {question for _, question, meant in rows() if read(named(question, TODAY)) != meaning(meant)}
    assert wrong == WRONG
    assert 100 * len(wrong) <= 3 * len(rows())


def test_a_wrong_meaning_is_found() -> None:
    assert read(named("What did Ana buy yesterday?", TODAY)) != meaning("2026-10-26")
    assert read(named("What did Ana buy?", TODAY)) == set()
    assert meaning("2026-10-01 2026-10-31") != meaning("2026-10-01 2026-10-30") != meaning("*-10")


def test_questions_with_words_of_dates_that_are_no_dates_name_none() -> None:
    assert {question: named(question, TODAY) for _, question in lines("no_dates.tsv")} == {
        question: NO_DATES for _, question in lines("no_dates.tsv")
    }


def ranking(memory: recollect.Memory, question: str) -> list[tuple[str, float]]:
    now = datetime(2026, 10, 28, 12, tzinfo=UTC)
    return [(hit.record.id, hit.score) for hit in memory.recall(question, k=50, reference=now)]


def filled_with(questions: list[str]) -> recollect.Memory:
    """A memory with a record of the words of each question on two days, of which one is a probable meaning."""
    memory = recollect.open(":memory:", embedder="none", zone="UTC")
    for number, question in enumerate(questions):
        for day in (date(2026, 10, 27), date(2024, 7, 3)):
            memory.remember(
                f"{question.strip('?¿？')}. It was so in {day.year}.",
                user=str(number % 3),
                time=datetime(*day.timetuple()[:3], tzinfo=UTC),
            )
    return memory


@pytest.mark.parametrize("part", range(4))
def test_such_questions_rank_records_as_if_no_dates_were_read(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [question for _, question in lines("no_dates.tsv")][part::4]
    with filled_with(questions) as memory:
        with_dates = [ranking(memory, question) for question in questions]
        monkeypatch.setattr("recollect.indexes.scoring.signals.named", lambda *_: NO_DATES)
        without = [ranking(memory, question) for question in questions]
        control = ranking(memory, "What did we say yesterday?")
        monkeypatch.undo()
        assert with_dates == without
        assert ranking(memory, "What did we say yesterday?") != control


def test_every_rule_is_used_by_a_phrase(monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()

    def noted(number: int, rule: Rule, *words: object) -> object:
        made = rule.action(*words)
        if made:
            used.add(number)
        return made

    rules = [rule._replace(action=partial(noted, number, rule)) for number, rule in enumerate(RULES)]
    cascades = {code: Cascade(rules, [*lexicon(code).sets, *MADE, *LISTED]) for code in CODES}
    monkeypatch.setattr(naming, "_cascade", cascades.__getitem__)
    for question in questions_of_all():
        named(question, TODAY)
    assert {rule.pattern for number, rule in enumerate(RULES) if number not in used} == set()


def questions_of_all() -> Iterator[str]:
    yield from (question for _, question, _ in rows())
    yield from (question for _, question in lines("no_dates.tsv"))


@pytest.mark.parametrize(
    "question",
    [
        "What did we do on the third Sunday of the wet season?",
        "What happened five and a third weeks ago?",
        "Who called the Monday after the party?",
        "What did I eat in the last week of the holiday?",
        "Who came on the hundred and third day ago?",
        "Was geschah am 31. Februar?",
        "What did we do on 29 February 2025?",
        "What did we do every Friday?",
    ],
)
def test_a_phrase_that_is_understood_in_part_names_no_day(question: str) -> None:
    assert named(question, TODAY) == NO_DATES


def test_a_time_of_each_year_means_the_last_one_most_and_earlier_ones_too() -> None:
    dates = named("What did we do at Easter?", TODAY)
    assert dates.spans == ((date(2026, 4, 3), date(2026, 4, 6)),)
    assert dates.main == ((date(2026, 4, 5), date(2026, 4, 5)),)
    assert (date(2025, 4, 18), date(2025, 4, 21)) in dates.nearby


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("What did I buy a week ago?", date(2026, 10, 21)),
        ("What did I buy two weeks ago?", date(2026, 10, 14)),
        ("Was kaufte ich vor zwei Wochen?", date(2026, 10, 14)),
        ("¿Qué compré hace una semana?", date(2026, 10, 21)),
        ("Qu'ai-je acheté il y a deux semaines ?", date(2026, 10, 14)),
        ("Che cosa ho comprato una settimana fa?", date(2026, 10, 21)),
        ("Wat kocht ik twee weken geleden?", date(2026, 10, 14)),
        ("O que comprei há uma semana?", date(2026, 10, 21)),
        ("一週間前に何を買いましたか", date(2026, 10, 21)),
        ("两周前我买了什么？", date(2026, 10, 14)),
        ("What did I buy on this day last year?", date(2025, 10, 28)),
    ],
)
def test_of_the_days_around_a_distance_the_one_so_far_away_is_meant_most(question: str, day: date) -> None:
    dates = named(question, TODAY)
    assert dates.main == ((day, day),)
    assert dates.spans == ((day - timedelta(3), day + timedelta(3)),)


@pytest.mark.parametrize("day", [date.min, date(4, 2, 29), date.max, date(9999, 1, 1)])
def test_no_day_of_the_calendar_is_too_early_or_late_to_ask(day: date) -> None:
    for question in questions_of_all():
        named(question, day)
