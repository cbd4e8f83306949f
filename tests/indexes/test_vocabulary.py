"""Words that resemble an unknown one, against every word compared in turn; and ranking, against a full sort."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.conversations import document, made_of

from recollect.indexes.documents.table import Table, TableBuilder
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.interface import Kernels
from recollect.indexes.kernels.native import kernels as native_kernels
from recollect.indexes.scoring.ranking import ranked
from recollect.indexes.words.fuzzy import Vocabulary
from recollect.indexes.words.index import query_terms
from recollect.indexes.words.segment import Builder
from recollect.indexes.words.surface_forms import comparable
from recollect.text.likeness import may_stand_for
from recollect.text.words import terms

KERNELS = (numpy_kernels.KERNELS, native_kernels.NativeKernels())
#: Of few letters, so that many are alike and many share a stem.
words = st.text("ab", min_size=1, max_size=8)


def grams(word: str) -> set[str]:
    marked = f"#{word}#"
    return {a + b + c for a, b, c in zip(marked, marked[1:], marked[2:], strict=False)}


def dice(one: str, other: str) -> Fraction:
    return Fraction(2 * len(grams(one) & grams(other)), len(grams(one)) + len(grams(other)))


def brute_force(known: set[str], word: str, used: set[str]) -> list[tuple[str, str, int]]:
    """Of each stem (here: the first two letters) the word most alike; of those the best three."""
    if len(word) < 4:
        return []
    alike = [
        each
        for each in known
        if len(each) >= 4
        and each in used
        and dice(word, each) >= Fraction(25, 100)
        and (each[:2] == word[:2] or len(grams(each) & grams(word)) >= max(len(grams(each)), len(grams(word))) - 4)
        and (may_stand_for(each, word) or may_stand_for(each[:2], word[:2]))
    ]
    alike.sort(key=lambda each: (-dice(word, each), each))
    best: dict[str, str] = {}
    for each in alike:
        best.setdefault(each[:2], each)
    return [(each, stem, int(dice(word, each) * 65_536)) for stem, each in list(best.items())[:3]]


@given(st.sets(words, max_size=30), words, st.data())
def test_similar_words_are_those_of_a_comparison_with_every_word(
    known: set[str], word: str, data: st.DataObject
) -> None:
    used = data.draw(st.sets(st.sampled_from(sorted(known)))) if known else set()
    vocabulary = Vocabulary()
    for each in data.draw(st.permutations(sorted(known))):
        vocabulary.add(each, each[:2])
        vocabulary.add(each, each[:2])
    assert [tuple(each) for each in vocabulary.similar(word, word[:2], lambda each, _: each in used)] == brute_force(
        known, word, used
    )


@given(st.sets(words, max_size=20), st.sets(words, max_size=20), words)
def test_words_of_a_segment_and_those_that_came_later_are_found_together(
    first: set[str], later: set[str], word: str
) -> None:
    builder = Builder()
    for each in sorted(first):
        builder.add(document(each, "")._replace(terms=[(each[:2], each)]))
    segment = builder.segment()
    vocabulary = Vocabulary(segment)
    for each in sorted(later):
        vocabulary.add(each, each[:2])
    assert [tuple(each) for each in vocabulary.similar(word, word[:2], lambda *_: True)] == brute_force(
        first | later, word, first | later
    )
    added = {each.word for some in vocabulary._by_trigram.values() for each in some}
    assert added == {each for each in later - first if comparable(each)}


@pytest.mark.parametrize(
    ("word", "takes_part"),
    [("boat", True), ("tea", False), ("b0at", False), ("1234", False), ("été", False), ("étés", True), ("", False)],
)
def test_only_words_of_four_letters_or_more_take_part(word: str, takes_part: bool) -> None:
    assert comparable(word) is takes_part
    vocabulary = Vocabulary()
    vocabulary.add(word, word)
    assert [each.word for each in vocabulary.similar(word, word, lambda each, stem: True)] == [word] * takes_part


def test_likeness_is_the_dice_coefficient_of_trigrams() -> None:
    vocabulary = Vocabulary()
    vocabulary.add("lighthouse", "lighthous")
    (found,) = vocabulary.similar("lihgthouse", "lihgthous", lambda each, stem: True)
    # #li lih ihg hgt gth tho hou ous use se# and #li lig igh ght hth tho hou ous use se#: six are shared.
    assert found == ("lighthouse", "lighthous", 65_536 * 12 // 20)


@pytest.mark.parametrize("spoken", ["kitten", "kitt"])
def test_a_word_has_a_stem_in_each_language_and_each_only_where_it_is_used(spoken: str) -> None:
    vocabulary = Vocabulary()
    vocabulary.add("kitten", "kitten")
    vocabulary.add("kitten", "kitt")
    assert [each.stem for each in vocabulary.similar("kiten", "kiten", lambda _, stem: stem == spoken)] == [spoken]


def test_likeness_counts_from_25_hundredths_on() -> None:
    # Twenty trigrams each, of which five are shared (10/40), or four (8/40).
    asked, at_the_limit, below = "abcdefghijklmnopqrst", "abcdefαβγδεζηθικλμνξ", "abcdeαβγδεζηθικλμνξο"
    vocabulary = Vocabulary()
    vocabulary.add(at_the_limit, "limit")
    vocabulary.add(below, "limit")
    assert [tuple(each) for each in vocabulary.similar(asked, "limit", lambda each, stem: True)] == [
        (at_the_limit, "limit", 65_536 * 25 // 100)
    ]


def test_a_word_that_two_unknown_ones_resemble_counts_as_much_as_for_the_likest() -> None:
    view = made_of([document("a", "they connected")]).view()
    near, far = dice("konnected", "connected"), dice("konnekted", "connected")
    assert near > far
    for question in ("konnected konnekted", "konnekted konnected"):
        asked = query_terms(view, terms(question))
        assert [(each.word, each.weight) for each in asked if each.term == "connect"] == [
            ("konnected", int(near * 65_536))
        ]
    asked = query_terms(view, terms("konnected connected connect"))
    assert [(each.word, each.weight, each.like) for each in asked if each.term == "connect"] == [
        ("connected", 2 * 65_536, "")
    ]


def test_an_unknown_word_stays_with_its_full_weight_beside_those_it_resembles() -> None:
    view = made_of([document("a", "the lighthouse"), document("b", "red boats")]).view()
    asked = query_terms(view, terms("lihgthouse, boat and boats"))
    assert {(each.term, each.word, each.weight, each.like) for each in asked} == {
        ("lihgthous", "lihgthouse", 65_536, ""),
        ("lighthous", "lihgthouse", 65_536 * 12 // 20, "lighthouse"),
        ("boat", "boat", 2 * 65_536, ""),
    }


def test_a_known_word_is_led_to_no_other() -> None:
    view = made_of([document("a", "boats boating float")]).view()
    assert [each.term for each in query_terms(view, [("boat", "boat")])] == ["boat"]


@given(
    st.lists(st.tuples(st.integers(0, 5) | st.integers(0, 2**40), st.integers(-1, 1)), max_size=60),
    st.integers(1, 12),
    st.randoms(),
)
def test_ranking_is_a_full_sort_with_ties_by_time_then_id(
    drawn: list[tuple[int, int]], times: int, order: object
) -> None:
    # Repeated, so that there are more than the first and the second step take, with many ties across their borders.
    items = [(score + (copy % 3 if score else 0), micros) for copy in range(times) for score, micros in drawn]
    names = [f"{at:04d}é" if at % 2 else f"{at:04d}" for at in range(len(items))]
    order.shuffle(names)  # type: ignore[attr-defined]
    documents = TableBuilder()
    for name, (_, micros) in zip(names, items, strict=True):
        documents.add(document(name, "tea", micros=micros))
    scores = np.array([score for score, _ in items], dtype=np.int64)
    expected = sorted(
        (at for at, (score, _) in enumerate(items) if score > 0),
        key=lambda at: (-items[at][0], -items[at][1], names[at].encode()),
    )
    for kernels in KERNELS:
        assert ranks(kernels, scores, documents.view()) == expected


def ranks(kernels: Kernels, scores: Any, table: Table) -> list[int]:
    """All that score above 0, best first, of documents whose numbers are their places."""
    numbers = np.arange(len(scores))

    def best(wanted: int) -> Any:
        places = kernels.best(scores, numbers, table, wanted)
        return places, scores[places]

    found = list(ranked(best, numbers, table, 10))
    assert [total for _, total in found] == [scores[place] for place, _ in found]
    return [place for place, _ in found]


def test_ranking_goes_on_to_the_last_of_thousands() -> None:
    documents = TableBuilder()
    for at in range(3_000):
        documents.add(document(f"{at:05d}", "tea", micros=-(2**63) if at % 7 == 0 else at % 5))
    scores = np.array([(at * 7919) % 101 for at in range(3_000)], dtype=np.int64)
    table = documents.view()
    expected = sorted(
        (int(at) for at in np.flatnonzero(scores)),
        key=lambda at: (-int(scores[at]), -int(table.micros[at]), table.id(at)),
    )
    for kernels in KERNELS:
        assert ranks(kernels, scores, table) == expected
    assert not scores[sorted(set(range(3_000)) - set(expected))].any()
