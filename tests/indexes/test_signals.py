"""The signals beside the words, against an independent float reading of the recipe, and the rules that feed them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.text.conversations import share_of, total_of

from recollect.engine.index.document_of import document_of
from recollect.indexes.documents.columns import NONE, civil_of
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.kernels.types import SHARES
from recollect.indexes.scoring import times
from recollect.indexes.scoring.signals import read, score
from recollect.indexes.words import novelty
from recollect.indexes.words.index import WordIndex, WordView
from recollect.records.record import Record
from recollect.text import manner
from recollect.text.answers import Kind, offered, wanted
from recollect.text.dates import MOST_DATES, named
from recollect.text.manner import INSTRUCTION, PREFERENCE, asking_share, standing_tags, weight
from recollect.text.requests import without_kind
from recollect.text.words import terms

WHOLE = 1 << SHARE_BITS
START = datetime(2023, 5, 7, 12, tzinfo=UTC)


TODAY = date(2026, 3, 4)


@pytest.fixture(autouse=True, scope="module")
def _without_novelty() -> Iterator[None]:
    """Turns count as if all of their words had been said before: test_novelty.py is about new ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(novelty, "NOVEL", (0, 1))
        yield


def turn(place: int, text: str, session: str = "s1", **fields: Any) -> Record:
    fields = {"kind": "conversation", "conversation": "c", "time": START + timedelta(days=place), **fields}
    return Record(id=f"t{place}", content=text, session=session, position=place, **fields)


def view_of(*records: Record) -> WordView:
    index = WordIndex()
    index.apply((), [document_of(record, UTC) for record in records])
    return index.view()


def shares(view: WordView, question: str) -> dict[str, list[float]]:
    found = score(read(question, view, TODAY), view)
    count = view.table.count
    return {name: [share_of(found, number, name) / WHOLE for number in range(count)] for name in SHARES}


def totals(view: WordView, question: str, today: date = TODAY) -> list[int]:
    """The score of each document."""
    found = score(read(question, view, today), view)
    return [total_of(found, number) for number in range(view.table.count)]


def plain(text: str) -> list[str]:
    return [term for term, _ in terms(text)]


#: How many texts of the background have a word, times 16; it occurs as often. From the lists of wordfreq 3.1.1.
EXPECTED = {"boat": 28, "tea": 20, "harbour": 4, "key": 66, "stove": 2, "roof": 17}
texts = st.lists(st.sampled_from("boat tea harbour key stove roof".split()), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=some(100))
@given(st.lists(st.tuples(texts, st.sampled_from(("s1", "s2", "s3"))), min_size=2, max_size=10), texts)
def test_session_and_pair_shares_are_those_of_the_formulas(said: list[tuple[str, str]], question: str) -> None:
    said = sorted(said, key=lambda each: each[1])
    view = view_of(*(turn(place, text, session) for place, (text, session) in enumerate(said)))
    got = shares(view, question)
    tokens = [plain(text) for text, _ in said]
    asked = plain(question)
    counts = Counter(asked)
    flat = [term for each in tokens for term in each]

    def idf(term: str) -> float:
        of = Fraction(EXPECTED[term], 16)  # in 300 texts of 40 words of general language
        count, df, cf = len(said) + 300, of + sum(term in each for each in tokens), of + flat.count(term)
        return (math.log(1 + (count - df + 0.5) / (df + 0.5)) + math.log(1 + (len(flat) + 12_000) / (cf + 1))) / 2

    unit = 2.5 * sum(count * idf(term) for term, count in counts.items())
    sessions = sorted({session for _, session in said})
    bags = {
        s: Counter(t for each, (_, name) in zip(tokens, said, strict=True) if name == s for t in each) for s in sessions
    }
    mean = sum(bag.total() for bag in bags.values()) / len(bags)
    for place, (_, session) in enumerate(said):
        bag = bags[session]
        wanted = 0.0
        for term, count in counts.items():
            df = sum(term in each for each in bags.values())
            rarity = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
            wanted += count * rarity * 2.2 * bag[term] / (bag[term] + 1.2 * (0.25 + 0.75 * bag.total() / mean))
        near = 0.0
        for first, second in set(pairwise(asked)):
            at = tokens[place]
            if first != second and any(first == a and second in at[n + 1 : n + 3] for n, a in enumerate(at)):
                near += (idf(first) + idf(second)) / (2 * sum(idf(term) for term in asked))
        admitted = got["words"][place] + got["context"][place] + got["trigram"][place] > 0
        assert got["session"][place] == pytest.approx(0.7 * wanted / unit if admitted else 0.0, abs=2e-3)
        assert got["pair"][place] == pytest.approx(0.2 * near if admitted else 0.0, abs=2e-3)


def test_a_session_whose_turns_are_all_gone_counts_for_nothing() -> None:
    index = WordIndex()
    index.apply((), [document_of(turn(at, "tea", f"s{at + 1}"), UTC) for at in (0, 1)])
    index.apply(["t1"], [])
    alone = shares(view_of(turn(0, "tea", "s1")), "tea")
    assert [column[0] for column in shares(index.view(), "tea").values()] == [column[0] for column in alone.values()]


def test_a_date_counts_for_its_month_and_twice_for_its_day() -> None:
    view = view_of(*(turn(place, "tea", time=START + timedelta(days=31 * place)) for place in range(3)))
    assert shares(view, "tea in May")["date"] == pytest.approx([0.1, 0, 0], abs=1e-6)
    assert shares(view, "tea on 7 May 2023")["date"] == pytest.approx([0.2, 0, 0], abs=1e-6)
    assert shares(view, "tea in May 2022")["date"] == [0, 0, 0]
    assert shares(view, "tea on the 7th")["date"] == [0, 0, 0]


def test_the_day_is_that_of_the_zone_and_not_that_of_the_record() -> None:
    late = datetime.fromisoformat("2023-05-31T23:30:00-05:00")  # already June in UTC
    view = view_of(turn(0, "tea", time=late))
    assert shares(view, "tea on June 1")["date"] == pytest.approx([0.2], abs=1e-6)
    assert shares(view, "tea on May 31")["date"] == [0.0]


def test_only_the_words_admit_a_hit() -> None:
    view = view_of(turn(0, "tea"), *(turn(place, "x y z") for place in range(1, 9)), turn(9, "boat", "s2"))
    assert [bool(value) for value in totals(view, "tea in May")] == [True] * 5 + [False] * 5


def test_the_speaker_who_is_named_counts_for_more() -> None:
    said = [turn(0, "I drink tea", "s1", speaker="Melanie"), turn(1, "I drink tea", "s2", speaker="Tobias")]
    view = view_of(*said)
    for question in ("what tea does Melanie drink?", "what tea does Mel drink?"):
        melanie, tobias = totals(view, question)
        assert melanie / tobias == pytest.approx(1.25, abs=1e-4)
    both = totals(view, "do Melanie and Tobias drink tea?")
    assert both[0] / both[1] == pytest.approx(1.25, abs=1e-4)  # whom a question names first, it is about
    assert read("do they drink tea?", view, TODAY).speaker == NONE


def test_i_is_the_user_where_there_is_one() -> None:
    said = [turn(0, "green tea", "s1", role="user"), turn(1, "green tea", "s2", role="assistant")]
    user, assistant = totals(view_of(*said), "which tea do I drink?")
    assert user / assistant == pytest.approx(1.25 / 0.6, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Where is the boat?", Fraction(1)),
        ("The boat is red.", Fraction(0)),
        ("The boat is red. Where is yours?", Fraction(0)),  # "yours" is a stop-word: nothing is asked with content
        ("The boat sank. Which harbour?", Fraction(1, 3)),
        ("I moved to Oslo, where can I swim?", Fraction(0)),
        ("", Fraction(0)),
    ],
)
def test_the_asking_share_is_that_of_the_content_words_in_questions(text: str, share: Fraction) -> None:
    assert asking_share(text) == share


@pytest.mark.parametrize(
    "text",
    [
        "Always use metric units.",
        "From now on, call me Jo",
        "Please never send emails",
        "ok, but always ask",
        "I'd like you to always give sources.",
        "Whenever I mention a city, add its country.",
        "Reply in Danish.",
        "Going forward please keep it short",
        "Keep your answers short.",
        "Please don't use emojis",
    ],
)
def test_standing_instructions_are_recognised(text: str) -> None:
    assert INSTRUCTION in standing_tags(text)


@pytest.mark.parametrize(
    "text",
    [
        "We always had fun",
        "I never saw it",
        "He said hello",
        "The future is bright",
        "Always here to help!",
        "Never been there.",
        "Always looking forward to it",
        "Never mind.",
        "Never give up!",
        "Never say never!",
        "Please don't worry",
        "When I ask him he hides",
        "Always use metric units. " * 100,  # a document
    ],
)
def test_what_only_sounds_like_an_instruction_is_none(text: str) -> None:
    assert standing_tags(text) == ()


@pytest.mark.parametrize(
    "text", ["I\u2019d rather walk", "I don't like mushrooms", "I'm vegetarian", "I really can't stand noise"]
)
def test_preferences_are_recognised(text: str) -> None:
    assert standing_tags(text) == (PREFERENCE,)


def read_in_full(text: str) -> tuple[str, ...]:
    """The marks of a text by only the rules, each tried on all of it."""
    plain = re.sub(r"\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text.replace("\u2019", "'")))
    rules = ((INSTRUCTION, manner._INSTRUCTION), (PREFERENCE, manner._PREFERENCE))
    return tuple(tag for tag, rule in rules if rule.search(plain))


@settings(max_examples=some(400))
@given(
    st.one_of(
        [st.from_regex(re.compile(each.pattern, each.flags)) for each in (manner._INSTRUCTION, manner._PREFERENCE)]
    )
)
@example("I don't l\u0130ke it")
@example("I\u017fn't it; remember that \u0131 won't drin\u212a it")
@example("I can\u2019t  \t stand it")
@example("CALL ME ISHMAEL")
def test_no_text_that_the_rules_would_mark_is_passed_over_unread(text: str) -> None:
    assert standing_tags(text) == read_in_full(text)


def test_the_words_by_which_texts_are_passed_over_do_not_let_every_text_be_read() -> None:
    reported = "We went to the harbour on Tuesday and saw the new boats."
    assert not manner._may_instruct(reported.lower())
    assert not manner._may_prefer(reported.lower())


def test_a_mark_counts_where_a_person_is_marked_and_speaking_of_oneself_counts_a_little() -> None:
    assert standing_tags("She prefers tea") == ()
    assert weight("Tea, please.", assistant=False, tags=(PREFERENCE,)) == Fraction(13, 10)
    assert weight("I prefer tea.", assistant=False, tags=(PREFERENCE,)) == Fraction(13, 10) * Fraction(23, 20)
    assert weight("I prefer tea.", assistant=True, tags=(PREFERENCE,)) == Fraction(6, 10)


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("When does she move?", Kind.TIME),
        ("In which year did she move?", Kind.TIME | Kind.PAST),
        ("How many boats are there?", Kind.NUMBER),
        ("Who came?", Kind.NAME),
        ("What is the dog called?", Kind.NAME),
        ("Why did she move?", Kind.PAST | Kind.REASON),
        ("What made her move?", Kind.REASON),
        ("What book does she read?", Kind.NAME),
        ("What tea does she drink?", Kind(0)),
        ("Tell me when she moves", Kind(0)),
    ],
)
def test_a_question_asks_for_a_kind_of_answer(question: str, kinds: Kind) -> None:
    assert wanted(question) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("we left two weeks ago", Kind.TIME | Kind.NUMBER | Kind.PAST),
        ("it was in 2019", Kind.TIME | Kind.NUMBER | Kind.PAST),
        ("We also finally visited the mill", Kind.PAST),
        ("I've never eaten there, you need bread", Kind(0)),
        ("the excited crowd", Kind(0)),
        ("Since you like it, read it", Kind.TIME | Kind.REASON),
        ("that inspires me so I go", Kind.REASON),
        ("so long", Kind(0)),
        ("A walk with Ines", Kind.NAME),
        ("Walks. Boats.", Kind(0)),
        ("It opens on the first of December, a Monday", Kind.TIME),
        ("the café opens on a Monday", Kind.TIME),
        ("the café of Ines", Kind.NAME),
        ("score 3:1", Kind.NUMBER),  # a colon and digits, but no time
        ("", Kind(0)),
    ],
)
def test_a_text_offers_kinds_of_answers(text: str, kinds: Kind) -> None:
    assert offered(text) == kinds


def test_the_kind_of_answer_that_is_wanted_counts_for_more() -> None:
    said = [turn(0, "the boat left yesterday", "s1"), turn(1, "the boat left quietly", "s2")]
    view = view_of(*said)
    dated, plain = totals(view, "when was the boat?")
    assert dated / plain == pytest.approx(1.15, abs=1e-4)
    assert len(set(totals(view, "was the boat there?"))) == 1


def test_a_frame_is_no_word_to_look_for() -> None:
    assert without_kind("What kind of art?").split() == ["What", "art?"]
    assert without_kind("You are kind of late") == "You are kind of late"


@pytest.mark.parametrize(
    ("question", "months", "years", "days"),
    [
        ("in May", {5}, set(), set()),
        ("what may happen", set(), set(), set()),
        ("on 3 may", {5}, set(), {(5, 3)}),
        ("Sept 21st, 2023", {9}, {2023}, {(9, 21)}),
        ("30 May 2026 or the 4th of June", {5, 6}, {2026}, {(5, 30), (6, 4)}),
        ("may " * 3000, set(), set(), set()),
        ("2021", set(), {2021}, set()),
        ("the marching band in augustus", set(), set(), set()),
    ],
)
def test_dates_named_in_a_question(
    question: str, months: set[int], years: set[int], days: set[tuple[int, int]]
) -> None:
    assert [set(part) for part in named(question, TODAY)[:3]] == [months, years, days]


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did I do yesterday?", "2026-03-03", "2026-03-03"),
        ("the day  before\nyesterday", "2026-03-02", "2026-03-02"),
        ("Whom did we meet last week?", "2026-02-23", "2026-03-01"),
        ("last weekend", "2026-02-28", "2026-03-01"),
        ("last month", "2026-02-01", "2026-02-28"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last Wednesday", "2026-02-25", "2026-02-25"),
        ("last Monday", "2026-03-02", "2026-03-02"),
        ("next Friday", "2026-03-06", "2026-03-06"),
        ("two days ago", "2026-03-02", "2026-03-02"),
        ("3 weeks ago", "2026-02-08", "2026-02-14"),
        ("a couple of months ago", "2026-01-01", "2026-01-31"),
        ("in the last ten days", "2026-02-22", "2026-03-04"),
        ("on 2026-01-31", "2026-01-31", "2026-01-31"),
    ],
)
def test_times_counted_from_where_a_question_stands(question: str, first: str, last: str) -> None:
    assert named(question, TODAY).spans == ((date.fromisoformat(first), date.fromisoformat(last)),)


@pytest.mark.parametrize("question", ["at last", "week", "999 years ago in 1 AD", "on 2026-02-31", "the ago of last"])
def test_what_tells_no_time_is_passed_over(question: str) -> None:
    assert named(question, date(500, 1, 1)).spans == ()


def test_a_time_counted_from_now_is_a_soft_preference_and_the_very_day_is_enough() -> None:
    said = [turn(0, "we ate soup", "s1"), turn(7, "we ate soup", "s2"), turn(7, "a walk", "s3").changed(id="walk")]
    view = view_of(*said)
    asked = START.date() + timedelta(days=8)
    early, late, walk = totals(view, "what did we eat yesterday?", asked)
    assert late > early > 0
    assert walk > 0  # it was that day
    assert not totals(view, "what did we eat last week?", asked)[2]
    # Where no word leads anywhere, only the time does.
    assert totals(view, "last week?", asked)[:2] != [0, 0]
    # Where nothing was said at that time, the words are words.
    assert "yesterday" in {term.word for term in read("eat yesterday", view, date(2020, 1, 1)).asked}
    assert "yesterday" not in {term.word for term in read("eat yesterday", view, asked).asked}


def test_a_time_that_a_question_names_often_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[date] = []

    def noted(day: date) -> int:
        looked_for.append(day)
        return civil_of(day)

    view = view_of(turn(0, "the harbour is closed"))
    monkeypatch.setattr(times, "civil_of", noted)
    question = read("yesterday, three days ago, " * 500 + "harbour", view, TODAY)
    score(question, view)
    assert len(question.dates.spans) == MOST_DATES
    assert len(looked_for) <= 20
