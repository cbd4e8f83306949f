"""Arithmetic on vectors: the edge cases of the specification, and properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidArgumentError
from recollect.models.embedding.similarity import (
    cosine,
    euclidean_distance,
    normalize,
    similarity_score,
    top_k_by_similarity,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e6, 1e6).filter(lambda each: each == 0.0 or abs(each) > 1e-6)


def vectors(elements: st.SearchStrategy[float] = finite) -> st.SearchStrategy[list[float]]:
    return st.lists(elements, min_size=1, max_size=8)


def pairs(elements: st.SearchStrategy[float] = finite) -> st.SearchStrategy[tuple[list[float], list[float]]]:
    sized = st.integers(1, 8).map(lambda size: st.lists(elements, min_size=size, max_size=size))
    return sized.flatmap(lambda each: st.tuples(each, each))


def test_a_hit_scores_one_for_alike_a_half_for_unrelated_and_nothing_for_opposite() -> None:
    candidates = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)]
    assert [similarity_score(cosine((1.0, 0.0, 0.0), each)) for each in candidates] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0], [-math.inf, 0.0]])
def test_a_vector_without_direction_is_like_nothing(vector: list[float]) -> None:
    other = [1.0] * len(vector)
    assert cosine(vector, other) == cosine(other, vector) == cosine(vector, vector) == 0.0
    assert normalize(vector) == [0.0] * len(vector)


def test_vectors_of_unequal_lengths_are_refused() -> None:
    for function in (cosine, euclidean_distance):
        with pytest.raises(InvalidArgumentError, match="as many components"):
            function([1.0, 2.0], [1.0])


@given(pairs())
def test_a_cosine_lies_between_minus_one_and_one_and_knows_no_order(pair: tuple[list[float], list[float]]) -> None:
    a, b = pair
    assert -1.0 <= cosine(a, b) <= 1.0
    assert cosine(a, b) == cosine(b, a) == cosine(a[::-1], b[::-1])


@given(vectors(), st.sampled_from([1e-9, 0.5, 3.0, 1e9]))
def test_length_does_not_matter_to_a_cosine(vector: list[float], factor: float) -> None:
    longer = [each * factor for each in vector]
    if any(vector) and any(longer) and all(map(math.isfinite, longer)):
        least = min(abs(each) for each in (*vector, *longer) if each)
        if least > 1e-290:  # below, a product loses digits before we see it
            assert cosine(vector, longer) == pytest.approx(1.0)
            assert cosine(vector, [-each for each in longer]) == pytest.approx(-1.0)


def test_very_great_and_very_small_components_are_not_lost() -> None:
    assert cosine([1e300, 1e300], [1e300, 1e300]) == pytest.approx(1.0)
    assert cosine([5e-324, 0.0], [1e308, 0.0]) == 1.0
    assert normalize([3e-310, 4e-310]) == pytest.approx([0.6, 0.8])


@given(vectors())
def test_a_normalised_vector_has_length_one_or_none_at_all(vector: list[float]) -> None:
    length = math.hypot(*normalize(vector))
    assert length == pytest.approx(1.0) if any(vector) else length == 0.0


@given(pairs(moderate))
def test_the_distance_is_zero_for_the_same_point_and_the_same_both_ways(pair: tuple[list[float], list[float]]) -> None:
    a, b = pair
    assert euclidean_distance(a, a) == 0.0
    assert euclidean_distance(a, b) == euclidean_distance(b, a) >= 0.0
    assert (euclidean_distance(a, b) == 0.0) == (a == b)


@given(st.lists(st.lists(moderate, min_size=3, max_size=3), max_size=12), st.integers(0, 15))
def test_the_nearest_are_the_first_of_all_in_order(candidates: list[list[float]], k: int) -> None:
    query = [1.0, 2.0, 3.0]
    named = list(enumerate(candidates))
    whole = sorted(((number, cosine(query, each)) for number, each in named), key=lambda each: -each[1])
    assert top_k_by_similarity(query, named, k) == whole[:k]


def test_vectors_that_cannot_be_compared_are_passed_over() -> None:
    candidates = [("short", [1.0]), ("nan", [math.nan, 1.0]), ("inf", [math.inf, 1.0]), ("good", [1.0, 0.0])]
    assert top_k_by_similarity([1.0, 0.0], candidates, 10) == [("good", 1.0)]


@pytest.mark.parametrize("k", [-1, 1.0, True, "2"])
def test_a_k_that_is_no_count_is_refused(k: object) -> None:
    with pytest.raises(InvalidArgumentError, match="k must be an integer of at least 0, got "):
        top_k_by_similarity([1.0], [], k)  # type: ignore[arg-type]
