"""The search for an order that explains a history, against all orders tried one by one."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torture.linearizability import Call, linearizable


def explained(calls: list[Call], initial: str) -> bool:
    """The definition: some order that keeps to who ended before whom, in which each call gives what it gave."""
    for order in permutations(calls):
        if any(later.ended < earlier.begun for at, earlier in enumerate(order) for later in order[at + 1 :]):
            continue
        value: str | None = initial
        for call in order:
            value = None if value is None else call.after(value)
        if value is not None:
            return True
    return not calls


VALUES = st.sampled_from("ab")


@st.composite
def calls(draw: st.DrawFn) -> Call:
    begun = draw(st.integers(0, 12))
    ended = begun + draw(st.integers(0, 5))
    match draw(st.integers(0, 3)):
        case 0:
            return Call(begun, ended, found=draw(VALUES))
        case 1:
            return Call(begun, ended, written=draw(VALUES))
        case 2:
            return Call(begun, ended, expected=draw(VALUES), written=draw(VALUES))
    return Call(begun, ended, expected=draw(VALUES), found=draw(VALUES))


@given(st.lists(calls(), max_size=6))
def test_it_says_what_the_definition_says(history: list[Call]) -> None:
    assert linearizable(history, "a") == explained(history, "a")


@pytest.mark.parametrize(
    ("history", "good"),
    [
        ([Call(0, 1, written="b"), Call(2, 3, found="b")], True),
        ([Call(0, 1, written="b"), Call(2, 3, found="a")], False),  # a stale read
        ([Call(0, 9, written="b"), Call(1, 2, found="a"), Call(3, 4, found="b")], True),
        ([Call(0, 9, written="b"), Call(1, 2, found="b"), Call(3, 4, found="a")], False),  # it was seen, and not again
        ([Call(0, 5, expected="a", written="b"), Call(1, 6, expected="a", written="c")], False),  # both cannot have won
        ([Call(0, 5, expected="a", written="b"), Call(1, 6, expected="a", found="b")], True),
        ([Call(0, 1, expected="a", found="b")], False),  # refused for what never was
    ],
)
def test_what_goes_wrong_in_stores_is_seen(history: list[Call], good: bool) -> None:
    assert linearizable(history, "a") is good
    assert explained(history, "a") is good
