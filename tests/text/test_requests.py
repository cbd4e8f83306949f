"""Requests: orders, summaries and recollections, and the words that are no part of the subject; classes of things."""

from __future__ import annotations

from typing import Any

import pytest
from bench.daily import asked_otherwise
from bench.daily.questions import QUESTIONS
from tests.paths import LABELS

from recollect.text import answers, requests
from recollect.text import events as events_module
from recollect.text.answers import listed, singular, wanted
from recollect.text.classes import _members, members_of
from recollect.text.events import events
from recollect.text.requests import AskedFor, request_of, subject_of, without_kind
from recollect.text.words import runs

ORDER, SUMMARY = AskedFor(order=True, recollection=True), AskedFor(summary=True, recollection=True)


REQUESTS = {
    "In what order did I plan the garden?": ORDER,
    "Walk me through the move.": ORDER,
    "List the events of the trip chronologically.": ORDER,
    "In welcher Reihenfolge kamen die Gäste?": ORDER,
    "Dans quel ordre sont venus les invités ?": ORDER,
    "¿En qué orden llegaron los invitados?": ORDER,
    "In che ordine sono arrivati gli ospiti?": ORDER,
    "In welke volgorde kwamen de gasten?": ORDER,
    "Em que ordem chegaram os convidados?": ORDER,
    "客人是按什么顺序来的？": ORDER,
    "お客さんはどの順番で来ましたか": ORDER,
    "Give me an overview of the move.": SUMMARY,
    "Fass den Umzug bitte zusammen.": SUMMARY,
    "Fais-moi un résumé du déménagement.": SUMMARY,
    "Hazme un resumen de la mudanza.": SUMMARY,
    "Riassumi il trasloco.": SUMMARY,
    "Geef me een samenvatting van de verhuizing.": SUMMARY,
    "Faz um resumo da mudança.": SUMMARY,
    "总结一下搬家的事": SUMMARY,
    "引っ越しについて要約して": SUMMARY,
    "Have I ever been to Oslo?": AskedFor(recollection=True),
    "Was hast du mir empfohlen?": AskedFor(recollection=True),
    "How many orders are in the summary?": AskedFor(),
    "Buy bread in order to eat.": AskedFor(),
    "Where is my résumé?": AskedFor(),
    "Please resume the download.": AskedFor(),
    "When does the ferry leave?": AskedFor(),
}


@pytest.mark.parametrize(("question", "request_"), REQUESTS.items())
def test_a_request_is_recognised_in_nine_languages(question: str, request_: AskedFor) -> None:
    assert request_of(question) == request_


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Can you give me a short summary of the roof so far?", "the roof ?"),
        ("Throughout our conversations, which tiles did we discuss?", ", which tiles did we discuss?"),
        ("What did Ana say about different aspects of the roof I mentioned?", "What did Ana about the roof ?"),
        ("Mention only and only five items about the roof.", "about the roof."),
        ("Say it again", "Say it again"),
        ("Explain the roof", "Explain the roof"),
        ("Fass bitte den Umzug zusammen.", "bitte den Umzug ."),
        ("Wir wohnen zusammen", "Wir wohnen zusammen"),
    ],
)
def test_the_words_of_a_request_are_no_part_of_the_subject(question: str, subject: str) -> None:
    assert subject_of(question, request_of(question)).split() == subject.split()


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("What books has Ana read?", ("book",)),
        ("Which outdoor activities does she like?", ("outdoor", "activity")),
        ("How many kinds of dishes are there?", ("dish",)),
        ("What pieces of music did they play?", ("music",)),
        ("What does Ana like?", ()),
        ("What Ana likes", ()),
        ("Who came?", ()),
        ("what", ()),
    ],
)
def test_the_noun_of_a_list_ends_before_an_auxiliary_or_a_name(question: str, noun: tuple[str, ...]) -> None:
    assert listed(question) == noun


def test_the_singular_follows_from_the_ending() -> None:
    words = "activities dishes boxes classes pets movies people series glass bus gas".split()
    assert list(map(singular, words)) == "activity dish box class pet movie person series glass bus gas".split()


def test_each_member_has_the_name_of_the_class_that_the_question_names() -> None:
    members = members_of("Which instruments does Ben play?")
    assert members["violin"] == "instrument"
    assert "violin" not in members_of("Which pets does Ben have?")
    assert members_of("Which violins does Ben play?") == {}


def test_every_class_can_be_named_and_every_member_is_a_word() -> None:
    assert "jacket" in members_of("Which clothes did Ana buy?")
    assert "laptop" in members_of("What electronics does Ana own?")
    for name, members in _members().items():
        assert singular(name) == name
        assert all(len(runs(member)) == 1 for member in members), name


def _asked() -> list[str]:
    table = LABELS / "time_phrases.tsv"
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    sections = (*QUESTIONS.values(), *asked_otherwise.QUESTIONS.values())
    return [
        *(row[1] for row in rows),
        *(question for section in sections for question, _ in section),
        *REQUESTS,
        "Fassen Sie den Umzug bitte zusammen.",
        "What happened at the time of the fire?",
        "Cosa hai visto fino al trasloco?",
        "What kinds of tea are there?",
    ]


def test_the_words_that_rules_look_for_first_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> list[Any]:
        return [
            (request := request_of(each), subject_of(each, request), without_kind(each), events(each), wanted(each))
            for each in map(" ".join, map(str.split, _asked()))
        ]

    by_words = read()
    for module in (requests, events_module, answers):
        monkeypatch.setattr(module, "letters", lambda text: None)
    assert read() == by_words
