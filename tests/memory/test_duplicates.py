"""Duplicates: what says the same, what only resembles it, and merging on request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect.errors import InvalidArgumentError
from recollect.memory.manager.duplicates import NEAR, _similar, _trigrams, found_in
from recollect.records.record import Record

SAME = [
    ("exact", "Ana prefers window seats", "ana prefers  window seats!"),
    ("exact", "The café opens at 9.", "the CAFÉ opens at 9"),
    ("near", "Ana prefers the window seats on every flight", "Ana prefers the windo seats on every flight"),
    ("restated", "Ana prefers window seats", "Window seats are what Ana prefers"),
    ("restated", "the invoice was paid by the accountant", "the accountant paid the invoice"),
]
DIFFERENT = [
    ("the budget is 500 euros", "the budget is 600 euros"),
    ("the meeting is at 9:30 in the large room", "the meeting is at 9:15 in the large room"),
    ("Ana likes flying at night very much", "Ana does not like flying at night very much"),
    ("the sister of Ana works in the large hospital", "the sister of Bob works in the large hospital"),
    ("never deploy on Fridays", "deploy on Fridays"),
    ("Ana likes tea", "Ana likes coffee"),
    ("dog bites man", "man bites cat"),
]


def records(*texts: str, **fields: Any) -> list[Record]:
    return [Record(id=f"r{number}", content=text, **fields) for number, text in enumerate(texts)]


@pytest.mark.parametrize(("likeness", "one", "other"), SAME)
def test_texts_that_say_the_same_are_found_with_their_likeness(likeness: Any, one: str, other: str) -> None:
    for texts in ((one, other), (other, one)):
        (group,) = found_in(records(*texts))
        assert group.likeness == likeness
    at = ("exact", "near", "restated").index(likeness)
    if at:
        assert found_in(records(one, other), ("exact", "near", "restated")[at - 1]) == []


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_differ_in_what_matters_are_never_duplicates(one: str, other: str) -> None:
    assert found_in(records(one, other)) == []


@pytest.mark.parametrize("field", ["user", "agent", "speaker", "entity", "kind"])
def test_records_of_different_owners_are_never_duplicates(field: str) -> None:
    one, other = records("Ana prefers window seats", "Ana prefers window seats")
    assert len(found_in([one, other])) == 1
    assert found_in([one, other.changed(**{field: "other"})]) == []


def test_a_group_has_the_likeness_of_its_least_similar_records() -> None:
    (group,) = found_in(
        records("Ana prefers window seats", "ana prefers window seats.", "Window seats are what Ana prefers")
    )
    assert (group.likeness, len(group.records)) == ("restated", 3)


def test_texts_without_words_are_compared_as_they_are() -> None:
    assert len(found_in(records(":-)", ":-)", ":-("))) == 1


words = st.sampled_from(["ana", "tea", "window", "seat", "prefers", "flight", "on", "every", "morning"])


@settings(max_examples=some(100))
@given(texts=st.lists(st.lists(words, min_size=1, max_size=8).map(" ".join), max_size=12))
def test_the_join_finds_the_pairs_that_comparing_all_finds(texts: list[str]) -> None:
    sets = [_trigrams(text.split()) for text in texts]
    linked = {(min(pair), max(pair)) for pair in _similar([("", each) for each in sets], NEAR)}
    groups = _components(linked, len(sets))
    expected = {
        (one, other)
        for other in range(len(sets))
        for one in range(other)
        if len(sets[one] & sets[other]) >= NEAR * len(sets[one] | sets[other])
    }
    assert groups == _components(expected, len(sets))
    assert linked <= expected


def _components(pairs: set[tuple[int, int]], count: int) -> set[frozenset[int]]:
    groups = [{at} for at in range(count)]
    for one, other in pairs:
        first = next(group for group in groups if one in group)
        second = next(group for group in groups if other in group)
        if first is not second:
            first |= second
            groups.remove(second)
    return set(map(frozenset, groups))


def test_turns_are_looked_at_on_request_and_nothing_is_changed() -> None:
    with recollect.open(":memory:") as memory:
        memory.add_messages([{"role": "user", "content": "yes, please do"}] * 2, conversation="c")
        memory.remember("Ana likes tea", kind="user_fact", user="ana")
        memory.remember("ana likes tea!", kind="user_fact", user="ana")
        root = memory.root
        (facts,) = memory.duplicates()
        assert [record.content for record in facts.records] == ["Ana likes tea", "ana likes tea!"]
        assert len(memory.duplicates(turns=True)) == 2
        assert memory.duplicates("user=bob") == []
        assert memory.root == root
        merged = memory.merge(facts.records, facts.records[-1].content)
        assert memory.duplicates() == []
        assert merged.derived_from == tuple(record.id for record in facts.records)


@pytest.mark.parametrize("arguments", [{"likeness": "similar"}, {"likeness": None}, {"turns": 1}, {"where": "user~"}])
def test_invalid_arguments_are_errors(arguments: dict[str, Any]) -> None:
    with recollect.open(":memory:") as memory, pytest.raises(recollect.RecollectError) as raised:
        memory.duplicates(**arguments)
    assert isinstance(raised.value, (InvalidArgumentError, recollect.errors.InvalidFilterError))


@pytest.mark.promise("input.linear")
def test_what_must_be_the_same_of_two_texts_is_hashed_once_for_each_and_not_for_each_word() -> None:
    """It contains all numbers of a text: hashed for each word, two long texts took time quadratic in their length."""
    hashed = []

    class Exact(tuple[str, ...]):
        __slots__ = ()

        def __hash__(self) -> int:
            hashed.append(self)
            return super().__hash__()

    words = [frozenset(f"{number}" for number in range(first, first + 200)) for first in range(3)]
    found = sorted(_similar([(Exact(("1", "2")), each) for each in words], NEAR))
    assert found == [(0, 1), (0, 2), (1, 2)]
    assert len(hashed) == len(words)
