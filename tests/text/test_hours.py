"""Times of the day in questions: each word for one, in each language, and what is none."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from recollect.text.dates import NO_DATES, in_recent_days, named
from recollect.text.dates.hours import Window, windows_in

MONDAY = datetime(2026, 11, 23, 9, tzinfo=UTC)


def hours(begin: float, end: float) -> Window:
    return Window(int(begin * 60), int(end * 60))


#: Questions, by the part of the day that each names.
NAMED = {
    hours(4, 12): [
        "What did I do this morning?",
        "What did I do yesterday morning?",
        "Was habe ich heute Morgen gemacht?",
        "Was habe ich gestern früh gemacht?",
        "Was ist morgens passiert?",
        "¿Qué hice ayer por la mañana?",
        "Qu'est-ce que j'ai fait hier matin ?",
        "Cosa ho fatto ieri mattina?",
        "Cosa ho fatto stamattina?",
        "Wat deed ik gisterochtend?",
        "Wat deed ik vanochtend?",
        "O que fiz ontem de manhã?",
        "今天早上我做了什么？",
        "今朝何をした？",
    ],
    hours(8, 12): [
        "Was war am Vormittag?",
        "昨天上午我做了什么？",
        "昨日の午前に何をした？",
        "What was in the forenoon?",
    ],
    hours(11, 14): [
        "What did I eat around noon?",
        "What did I eat at lunchtime?",
        "Was war am Mittag?",
        "Was war mittags?",
        "¿Qué comí al mediodía?",
        "Qu'ai-je mangé à midi ?",
        "Cosa ho mangiato a mezzogiorno?",
        "O que comi ao meio-dia?",
        "Wat at ik vanmiddag?",
        "昨天中午我吃了什么？",
        "昨日の昼に何を食べた？",
    ],
    hours(12, 18): [
        "What did I do yesterday afternoon?",
        "Was war am Nachmittag?",
        "¿Qué hice ayer por la tarde?",
        "Qu'ai-je fait hier après-midi ?",
        "Cosa ho fatto ieri pomeriggio?",
        "O que fiz ontem à tarde?",
        "昨天下午我做了什么？",
        "昨日の午後に何をした？",
        "Wat deed ik in de namiddag?",
    ],
    hours(17, 24): [
        "What did we say on Monday evening?",
        "What did I do tonight?",
        "Was war am Montagabend?",
        "Was war abends?",
        "Qu'ai-je fait hier soir ?",
        "Cosa ho fatto ieri sera?",
        "Cosa ho fatto stasera?",
        "Wat deed ik maandagavond?",
        "Wat deed ik vanavond?",
        "昨天晚上我做了什么？",
        "昨日の夕方に何をした？",
    ],
    hours(20, 29): [
        "What did I say last night?",
        "Was war in der Nacht?",
        "¿Qué hice anoche?",
        "Qu'ai-je fait cette nuit ?",
        "Cosa ho fatto stanotte?",
        "Wat deed ik vannacht?",
        "O que fiz ontem à noite?",
        "昨夜何をした？",
    ],
    hours(23, 25): [
        "What did I do around midnight?",
        "Was war um Mitternacht?",
        "Qu'ai-je fait à minuit ?",
        "¿Qué hice a medianoche?",
        "Cosa ho fatto a mezzanotte?",
        "Wat deed ik om middernacht?",
        "O que fiz à meia-noite?",
    ],
    hours(0, 9): [
        "Who called before nine?",
        "Who called before 9?",
        "Who called before 9 a.m. yesterday?",
        "Wer rief vor neun Uhr an?",
        "¿Quién llamó antes de las nueve?",
        "Qui a appelé avant neuf heures ?",
        "Chi ha chiamato prima delle nove?",
        "Wie belde voor negen uur?",
        "Quem ligou antes das nove?",
    ],
    hours(18, 24): [
        "What did we decide after 6 pm?",
        "What did we decide after six in the evening?",
        "Was war nach 18 Uhr?",
        "Qu'ai-je fait après 18 heures ?",
        "Wat deed ik na 18 uur?",
        "What did we decide after six?",
    ],
    hours(6.25, 7.75): [
        "What did we say at 7:00?",
        "Was war um 7:00?",
        "What did I do around 7 in the morning?",
    ],
}


@pytest.mark.parametrize(("window", "question"), [(window, each) for window, some in NAMED.items() for each in some])
def test_the_words_of_each_language_name_a_part_of_the_day(window: Window, question: str) -> None:
    assert windows_in(question) == (window,)


@pytest.mark.parametrize(
    "question",
    [
        "Did I buy it before nine people came?",
        "When did I buy the 3 lamps at 5 euros?",
        "Did it fall by 9 percent?",
        "Was it around 9.5% or more?",
        "Who is my manager now?",
        "Which of the 9 seats is mine?",
        "What did Nightingale say about the Knights?",
        "Was kostet der Abendkleid-Verleih?",
        "How much is the deposit?",
        "Did we meet at 30?",
    ],
)
def test_other_numbers_and_words_name_none(question: str) -> None:
    assert windows_in(question) == ()


def of(question: str, time: datetime = MONDAY) -> list[tuple[str, str]]:
    found = named(question, time).moments
    return [tuple(datetime.fromtimestamp(each / 1e6, UTC).strftime("%d %H:%M") for each in pair) for pair in found]  # type: ignore[misc]


def test_a_part_of_a_named_day_is_a_time_and_the_day_is_not_meant_as_a_whole() -> None:
    assert of("What did we say on Monday evening?") == [("16 17:00", "17 00:00")]
    assert of("What did I say last night?") == [("22 20:00", "23 05:00")]
    assert of("What did we say on 7 May in the evening?") == [("07 17:00", "08 00:00")]
    assert not named("What did we say on Monday evening?", MONDAY).whole_days
    assert named("What did we say on Monday?", MONDAY).whole_days
    assert of("What did we say in May in the evening?") == []
    assert of("What did I do two hours ago?") == [("23 06:30", "23 07:30")]


def test_the_parts_of_a_day_are_those_of_the_clock_where_it_changes() -> None:
    from zoneinfo import ZoneInfo

    after = datetime(2026, 3, 30, 9, tzinfo=ZoneInfo("Europe/Vienna"))  # the clock changed on the 29th at 2:00
    assert of("What did I do on Saturday evening?", after) == [("28 16:00", "28 23:00")]
    assert of("What did I do yesterday evening?", after) == [("29 15:00", "29 22:00")]


def test_without_a_day_it_is_one_of_the_last_week_and_without_a_time_nothing() -> None:
    asked = named("What did we say around noon?", MONDAY)
    assert (asked.windows, asked.moments) == ((hours(11, 14),), ())
    recent = in_recent_days(asked, MONDAY)
    assert (recent.windows, len(recent.moments)) == ((), 8)
    assert named("What did we say around noon?", date(2026, 11, 23)) == NO_DATES
    early = datetime(1, 1, 2, tzinfo=UTC)
    assert len(in_recent_days(named("What did we say around noon?", early), early).moments) <= 8
