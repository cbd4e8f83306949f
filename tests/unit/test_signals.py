"""The signals beside the words, against an independent float reading of the recipe, and the rules that feed them."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.engine.indexing import document_of
from recollect.indexes.documents import NONE
from recollect.indexes.fixed import SHARE_BITS
from recollect.indexes.signals import read, score
from recollect.indexes.words import WordIndex, WordView
from recollect.records.record import Record
from recollect.text.dates import named
from recollect.text.manner import asking_share, instructs, prefers, weight
from recollect.text.words import terms

WHOLE = 1 << SHARE_BITS
START = datetime(2023, 5, 7, 12, tzinfo=UTC)


def turn(place: int, text: str, session: str = "s1", **fields: Any) -> Record:
    fields = {"kind": "conversation", "conversation": "c", "time": START + timedelta(days=place), **fields}
    return Record(id=f"t{place}", content=text, session=session, position=place, **fields)


def view_of(*records: Record) -> WordView:
    index = WordIndex()
    index.apply((), [document_of(record) for record in records])
    return index.view()


def shares(view: WordView, question: str) -> dict[str, list[float]]:
    found = score(read(question, view, None), view)
    return {name: [int(value) / WHOLE for value in column] for name, column in found.shares.items()}


def plain(text: str) -> list[str]:
    return [term.term for term in terms(text)]


texts = st.lists(st.sampled_from("boat tea harbour key stove roof".split()), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=100)
@given(st.lists(st.tuples(texts, st.sampled_from(("s1", "s2", "s3"))), min_size=2, max_size=10), texts)
def test_session_and_pair_shares_are_those_of_the_formulas(said: list[tuple[str, str]], question: str) -> None:
    said = sorted(said, key=lambda each: each[1])
    view = view_of(*(turn(place, text, session) for place, (text, session) in enumerate(said)))
    got = shares(view, question)
    tokens = [plain(text) for text, _ in said]
    asked = plain(question)
    counts = Counter(asked)
    whole = sum(len(each) for each in tokens)

    def idf(term: str) -> float:
        df = sum(term in each for each in tokens)
        cf = sum(each.count(term) for each in tokens)
        return (math.log(1 + (len(said) - df + 0.5) / (df + 0.5)) + math.log(1 + whole / (cf + 1))) / 2

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
    index.apply((), [document_of(turn(0, "tea", "s1")), document_of(turn(1, "tea", "s2"))])
    index.apply(["t1"], [])
    alone = shares(view_of(turn(0, "tea", "s1")), "tea")
    assert [column[0] for column in shares(index.view(), "tea").values()] == [column[0] for column in alone.values()]


def test_a_date_counts_for_its_month_and_twice_for_its_day() -> None:
    view = view_of(*(turn(place, "tea", time=START + timedelta(days=31 * place)) for place in range(3)))
    assert shares(view, "tea in May")["date"] == pytest.approx([0.1, 0, 0], abs=1e-6)
    assert shares(view, "tea on 7 May 2023")["date"] == pytest.approx([0.2, 0, 0], abs=1e-6)
    assert shares(view, "tea in May 2022")["date"] == [0, 0, 0]
    assert shares(view, "tea on the 7th")["date"] == [0, 0, 0]


def test_the_day_is_the_local_one_of_the_record() -> None:
    late = datetime.fromisoformat("2023-05-31T23:30:00-05:00")  # already June in UTC
    assert shares(view_of(turn(0, "tea", time=late)), "tea on May 31")["date"] == pytest.approx([0.2], abs=1e-6)


def test_only_the_words_admit_a_hit() -> None:
    view = view_of(turn(0, "tea"), *(turn(place, "x y z") for place in range(1, 9)), turn(9, "boat", "s2"))
    found = score(read("tea in May", view, None), view)
    assert [bool(value) for value in found.total()] == [True] * 5 + [False] * 5


def test_the_speaker_who_is_named_counts_for_more() -> None:
    said = [turn(0, "I drink tea", "s1", speaker="Melanie"), turn(1, "I drink tea", "s2", speaker="Tobias")]
    view = view_of(*said)
    for question in ("what tea does Melanie drink?", "what tea does Mel drink?"):
        melanie, tobias = score(read(question, view, None), view).total()
        assert melanie / tobias == pytest.approx(1.25, abs=1e-4)
    both = score(read("do Melanie and Tobias drink tea?", view, None), view).total()
    assert both[0] == both[1]
    assert read("do they drink tea?", view, None).speaker == NONE


def test_i_is_the_user_where_there_is_one() -> None:
    said = [turn(0, "green tea", "s1", role="user"), turn(1, "green tea", "s2", role="assistant")]
    user, assistant = score(read("which tea do I drink?", view_of(*said), None), view_of(*said)).total()
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
    "text", ["Always use metric units.", "From now on, call me Jo", "Please never send emails", "ok, but always ask"]
)
def test_standing_instructions_are_recognised(text: str) -> None:
    assert instructs(text)


@pytest.mark.parametrize("text", ["We always had fun", "I never saw it", "He said hello", "The future is bright"])
def test_what_only_sounds_like_an_instruction_is_none(text: str) -> None:
    assert not instructs(text)


def test_preferences_are_recognised_and_an_assistants_are_not_counted() -> None:
    assert prefers("I\u2019d rather walk".replace("\u2019", "'"))
    assert prefers("I don't like mushrooms")
    assert not prefers("She prefers tea")
    assert weight("I prefer tea.", assistant=False) == Fraction(13, 10)
    assert weight("I prefer tea.", assistant=True) == Fraction(6, 10)


@pytest.mark.parametrize(
    ("question", "months", "years", "days"),
    [
        ("in May", {5}, set(), set()),
        ("what may happen", set(), set(), set()),
        ("on 3 may", {5}, set(), {3}),
        ("Sept 21st, 2023", {9}, {2023}, {21}),
        ("between June and july 2022", {6, 7}, {2022}, set()),
        ("2021", set(), {2021}, set()),
        ("the marching band in augustus", set(), set(), set()),
    ],
)
def test_dates_named_in_a_question(question: str, months: set[int], years: set[int], days: set[int]) -> None:
    assert [set(part) for part in named(question)] == [months, years, days]
