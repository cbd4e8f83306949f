"""Dates that questions name, in several languages, and the days that they mean on Wednesday, 28 October 2026."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from recollect.text.dates import named

TODAY = date(2026, 10, 28)

#: Phrases and the days that people mean, as "first last" or one day.
SPANS = {
    "en": """
        What happened on Monday? = 2026-10-26
        What did we do on Wednesday? = 2026-10-21
        on the 15th? = 2026-10-15
        What did I buy on the 31st? = 2026-08-31
        lunch on 10/15/2026 = 2026-10-15
        lunch on 15/10/2026 = 2026-10-15
        lunch on 15.10.2026 = 2026-10-15
        whom did I meet a fortnight ago = 2026-10-11 2026-10-17
        what did we do at the weekend = 2026-10-24 2026-10-25
        what is new since Monday = 2026-10-26 2026-10-28
        what is new since the 15th = 2026-10-15 2026-10-28
        what is new since yesterday = 2026-10-27 2026-10-28
        what is new since 7 May = 2026-05-07 2026-10-28
        what is new since May 2025 = 2025-05-01 2026-10-28
        the first week of October = 2026-10-01 2026-10-07
        the last week of February 2024 = 2024-02-23 2024-02-29
        between 10 and 12 October = 2026-10-10 2026-10-12
        between 30 October and 2 November = 2025-10-30 2025-11-02
        between December 30 and January 2 = 2025-12-30 2026-01-02
        from October 10 to 12, 2025 = 2025-10-10 2025-10-12
        before October 3 = 0001-01-01 2026-10-02
        after the 3rd of March = 2026-03-04 2026-10-28
    """,
    "de": """
        Was habe ich gestern gemacht? = 2026-10-27
        Wen habe ich vorgestern getroffen? = 2026-10-26
        Was war vor drei Tagen? = 2026-10-25
        Was war vor einer Woche? = 2026-10-18 2026-10-24
        Wo waren wir letzte Woche? = 2026-10-19 2026-10-25
        Was haben wir am Montag gemacht? = 2026-10-26
        Was ist seit dem 3. Mai neu? = 2026-05-03 2026-10-28
        Was war zwischen dem 10. und 12. Oktober? = 2026-10-10 2026-10-12
        Was haben wir am Wochenende gemacht? = 2026-10-24 2026-10-25
        Was war in der ersten Woche im Oktober? = 2026-10-01 2026-10-07
    """,
    "fr": """
        Qu'est-ce que j'ai fait hier ? = 2026-10-27
        Qu'avons-nous fait il y a trois jours ? = 2026-10-25
        Où étions-nous la semaine dernière ? = 2026-10-19 2026-10-25
        Qui ai-je vu lundi dernier ? = 2026-10-26
        Quoi de neuf depuis lundi ? = 2026-10-26 2026-10-28
        Qui ai-je vu avant-hier ? = 2026-10-26
        Ou etions-nous la semaine derniere ? = 2026-10-19 2026-10-25
        Qu'avons-nous fait entre le 10 et le 12 octobre ? = 2026-10-10 2026-10-12
    """,
    "es": """
        ¿Qué hice ayer? = 2026-10-27
        ¿Qué pasó hace tres días? = 2026-10-25
        ¿Qué hicimos la semana pasada? = 2026-10-19 2026-10-25
        ¿Qué pasó el mes pasado? = 2026-09-01 2026-09-30
        ¿A quién vi el lunes? = 2026-10-26
        ¿Qué hicimos el fin de semana? = 2026-10-24 2026-10-25
        ¿Qué hay de nuevo desde el lunes? = 2026-10-26 2026-10-28
        ¿Qué hicimos entre el 10 y el 12 de octubre? = 2026-10-10 2026-10-12
        ¿Qué pasó la primera semana de octubre? = 2026-10-01 2026-10-07
    """,
    "it": """
        Cosa ho fatto ieri? = 2026-10-27
        Chi ho visto l'altro ieri? = 2026-10-26
        Cosa è successo tre giorni fa? = 2026-10-25
        Cosa abbiamo fatto la settimana scorsa? = 2026-10-19 2026-10-25
        Chi ho visto lunedì scorso? = 2026-10-26
        Cosa abbiamo fatto nel fine settimana? = 2026-10-24 2026-10-25
        Che c'è di nuovo da lunedì? = 2026-10-26 2026-10-28
        Cosa abbiamo fatto tra il 10 e il 12 ottobre? = 2026-10-10 2026-10-12
    """,
    "nl": """
        Wat heb ik gisteren gedaan? = 2026-10-27
        Wat deed ik eergisteren? = 2026-10-26
        Wat gebeurde er drie dagen geleden? = 2026-10-25
        Wat deden we vorige week? = 2026-10-19 2026-10-25
        Wie zag ik op maandag? = 2026-10-26
        Wat deden we in het weekend? = 2026-10-24 2026-10-25
        Wat is er nieuw sinds maandag? = 2026-10-26 2026-10-28
        Wat deden we tussen 10 en 12 oktober? = 2026-10-10 2026-10-12
    """,
    "pt": """
        O que fiz ontem? = 2026-10-27
        O que aconteceu há três dias? = 2026-10-25
        O que fizemos na semana passada? = 2026-10-19 2026-10-25
        Quem vi na segunda-feira? = 2026-10-26
        O que fizemos no fim de semana? = 2026-10-24 2026-10-25
        O que há de novo desde segunda-feira? = 2026-10-26 2026-10-28
        O que fizemos entre 10 e 12 de outubro? = 2026-10-10 2026-10-12
    """,
    "zh": """
        我昨天做了什么？ = 2026-10-27
        三天前发生了什么？ = 2026-10-25
        上周我们做了什么？ = 2026-10-19 2026-10-25
        上周一我见了谁？ = 2026-10-19
        周末我们做了什么？ = 2026-10-24 2026-10-25
        10月10日到12日我们在哪里？ = 2026-10-10 2026-10-12
        5月以来有什么新消息？ = 2026-05-01 2026-10-28
        星期一以来有什么新消息？ = 2026-10-26 2026-10-28
        去年我们去了哪里？ = 2025-01-01 2025-12-31
        十月的第一周我们做了什么？ = 2026-10-01 2026-10-07
    """,
    "ja": """
        昨日は何をしましたか？ = 2026-10-27
        一昨日は誰に会いましたか？ = 2026-10-26
        三日前に何がありましたか？ = 2026-10-25
        先週は何をしましたか？ = 2026-10-19 2026-10-25
        先週の月曜日に誰に会いましたか？ = 2026-10-19
        週末は何をしましたか？ = 2026-10-24 2026-10-25
        10月10日から12日までどこにいましたか？ = 2026-10-10 2026-10-12
        月曜日から何が新しいですか？ = 2026-10-26 2026-10-28
        先月は何をしましたか？ = 2026-09-01 2026-09-30
        2か月前に何がありましたか？ = 2026-08-01 2026-08-31
    """,
}
CASES = [tuple(line.strip().split(" = ")) for lines in SPANS.values() for line in lines.strip().splitlines()]


@pytest.mark.parametrize(("question", "days"), CASES)
def test_a_phrase_of_time_means_days(question: str, days: str) -> None:
    first, last = (days.split() * 2)[:2]
    assert named(question, TODAY).spans == ((date.fromisoformat(first), date.fromisoformat(last)),)


def test_a_date_in_digits_that_could_be_two_days_is_both() -> None:
    both = named("lunch on 10/11/2026", TODAY).spans
    assert {first for first, _ in both} == {date(2026, 10, 11), date(2026, 11, 10)}


@pytest.mark.parametrize(
    ("question", "months", "days"),
    [
        ("Was war am 15. Oktober?", {10}, {(10, 15)}),
        ("Was haben wir im Mai gemacht?", {5}, set()),
        ("Qu'avons-nous fait le 15 octobre ?", {10}, {(10, 15)}),
        ("¿Qué hice en mayo?", {5}, set()),
        ("Cosa ho fatto il 15 ottobre?", {10}, {(10, 15)}),
        ("Wat deed ik op 15 oktober?", {10}, {(10, 15)}),
        ("O que fiz no dia 15 de outubro?", {10}, {(10, 15)}),
        ("10月15日我们买了什么？", {10}, {(10, 15)}),
        ("5月に何をしましたか？", {5}, set()),
        ("on the 15th of May", {5}, {(5, 15)}),
    ],
)
def test_a_date_without_a_year_recurs(question: str, months: set[int], days: set[tuple[int, int]]) -> None:
    found = named(question, TODAY)
    assert (set(found.months), set(found.days)) == (months, days)
    assert found.spans == ()


@pytest.mark.parametrize(
    "question",
    [
        "Wer war hier?",  # no French yesterday
        "What did an uncle say?",
        "Did the march end?",
        "the 15th",
        "monday",
        "1.2.3.2024",
        "31/31/2026",
    ],
)
def test_words_that_name_no_time_are_ordinary_words(question: str) -> None:
    found = named(question, TODAY)
    assert [*found.spans, *found.months, *found.days] == []


NOW = datetime(2026, 11, 25, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "begin", "end"),
    [
        ("What did I say 2 hours ago?", "07:00", "08:00"),
        ("Who called an hour ago?", "08:00", "09:00"),
        ("Who called 40 minutes ago?", "08:40", "09:00"),
        ("Who called in the last three hours?", "06:30", "09:30"),
        ("Who called before 2 hours ago?", "00:00", "07:30"),
        ("Was habe ich vor 2 Stunden gesagt?", "07:00", "08:00"),
        ("Was war in den letzten drei Stunden?", "06:30", "09:30"),
        ("Qu'est-ce que j'ai dit il y a deux heures ?", "07:00", "08:00"),
        ("¿Qué dije hace dos horas?", "07:00", "08:00"),
        ("Che cosa ho detto due ore fa?", "07:00", "08:00"),
        ("O que eu disse há duas horas?", "07:00", "08:00"),
        ("Wat zei ik twee uur geleden?", "07:00", "08:00"),
        ("两小时前我说了什么", "07:00", "08:00"),
        ("2時間前に何を言いましたか", "07:00", "08:00"),
    ],
)
def test_hours_are_counted_back_from_the_time_of_the_question(question: str, begin: str, end: str) -> None:
    ((first, last),) = (
        tuple(datetime.fromtimestamp(each // 10**6, UTC) for each in moment) for moment in named(question, NOW).moments
    )
    assert (first.strftime("%H:%M"), last.strftime("%H:%M")) == (begin, end)
    assert named(question, NOW).spans == ()
    assert named(question, NOW.date()) == named("", NOW.date())  # a day has no hours to count from


def test_hours_before_the_calendar_begins_are_no_time() -> None:
    assert named("999 hours ago", datetime(1, 1, 2, tzinfo=UTC)).moments == ()


@pytest.mark.parametrize(
    ("tag", "days"),
    [
        (None, {(10, 11), (11, 10)}),
        ("en", {(10, 11), (11, 10)}),
        ("en-US", {(10, 11)}),
        ("en-us", {(10, 11)}),
        ("en-GB", {(11, 10)}),
        ("en-CA", {(10, 11), (11, 10)}),
        ("en-u-co-phonebk", {(10, 11), (11, 10)}),
        ("en-x-us", {(10, 11), (11, 10)}),
        ("en-Latn-US-x-gb", {(10, 11)}),
        ("de", {(11, 10)}),
        ("es", {(11, 10)}),
        ("es-PR", {(10, 11)}),
        ("zh-Hans-CN", {(10, 11), (11, 10)}),
    ],
)
def test_a_date_with_slashes_is_read_as_where_the_asker_lives(tag: str | None, days: set[tuple[int, int]]) -> None:
    spans = named("what did we buy on 10/11/2026?", TODAY, tag).spans
    assert {(first.month, first.day) for first, _ in spans} == days


@pytest.mark.parametrize(("tag", "month"), [("en-US", 3), ("es-PR", 3), ("en-GB", 4), ("nl", 4), ("en", 4), (None, 4)])
def test_a_date_with_hyphens_begins_with_the_month_only_where_that_is_usual(tag: str | None, month: int) -> None:
    spans = named("what did we buy on 03-04-2026?", TODAY, tag).spans
    assert [first.month for first, _ in spans] == [month]


def test_years_before_1900_are_read_after_a_word_that_says_so() -> None:
    assert named("What happened in 1848?", TODAY).years == {1848}
    assert named("Was geschah im Jahr 1789?", TODAY).years == {1789}
    assert named("How many of the 1848 letters are left?", TODAY).years == set()
    assert named("How much is in 1848 g of flour?", TODAY).years == set()


def test_a_date_that_only_the_other_order_has_is_read_in_that_order() -> None:
    for tag in ("en-US", "en-GB", "de", None):
        for text in ("10/15/2026", "15/10/2026"):
            assert named(text, TODAY, tag).spans == ((date(2026, 10, 15), date(2026, 10, 15)),)


def test_the_language_of_the_question_decides_where_none_is_stated() -> None:
    spans = named("Wen habe ich am 10/11/2026 auf der Messe getroffen?", TODAY).spans
    assert spans == ((date(2026, 11, 10), date(2026, 11, 10)),)


@pytest.mark.parametrize(
    "text",
    [
        "What was fourteen days ago?",
        "Was war vor vierzehn Tagen?",
        "Qu'avons-nous fait il y a quatorze jours ?",
        "¿Qué hicimos hace catorce días?",
    ],
)
def test_days_are_counted_in_words_above_ten(text: str) -> None:
    assert named(text, TODAY).spans == ((date(2026, 10, 14), date(2026, 10, 14)),)
