"""The built-in embedder gives the values that keyed memory's scores are defined by."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.models.embedding.base import Embedder, embedded
from recollect.models.embedding.hashed import DIMENSION, Hashed, features, hashed_similarity, hashed_vector
from recollect.models.embedding.similarity import cosine

#: Texts, a question, and the scores that it must have, best first.
GOLDEN = [
    (
        {
            "buyer-3": "hello, I want to buy apples",
            "buyer-7": "hi, looking for bananas",
            "buyer-9": "howdy, after some pears",
        },
        "apple buyer",
        [("buyer-3", 0.4288450139351179), ("buyer-7", 0.1072112534837795), ("buyer-9", 0.06019292654288461)],
    ),
    (
        {"a": "apples bananas", "b": "apples oranges pears", "c": "unrelated zebra giraffe"},
        "apples",
        [("b", 0.6598288790738581), ("a", 0.6416889479197478), ("c", 0.16116459280507603)],
    ),
]


@pytest.mark.parametrize(("texts", "question", "expected"), GOLDEN)
def test_scores_are_those_of_the_specification_to_the_bit(
    texts: dict[str, str], question: str, expected: list[tuple[str, float]]
) -> None:
    asked = hashed_vector(question)
    scores = {key: hashed_similarity(asked, hashed_vector(text)) for key, text in texts.items()}
    assert sorted(scores.items(), key=lambda each: (-each[1], each[0])) == expected


def test_features_are_all_tokens_then_the_trigrams_of_each() -> None:
    assert list(features("It's 4U, it's")) == [
        *("it's", "4u", "it's"),
        *("^it", "it'", "t's", "'s$"),
        *("^4u", "4u$"),
        *("^it", "it'", "t's", "'s$"),
    ]


@given(st.text())
def test_a_vector_has_length_one_or_is_zero_where_there_is_no_token(text: str) -> None:
    vector = hashed_vector(text)
    length = math.hypot(*vector)
    assert len(vector) == DIMENSION
    assert length == pytest.approx(1.0) or (length == 0.0)
    assert length == 0.0 or any(char.isascii() and (char.isalnum() or char == "'") for char in text)


def test_similar_texts_have_similar_vectors() -> None:
    near = cosine(hashed_vector("Ana prefers window seats"), hashed_vector("which window seat does Ana prefer?"))
    far = cosine(hashed_vector("Ana prefers window seats"), hashed_vector("the lighthouse was built in 1890"))
    assert near > 0.5 > far


def test_it_is_an_embedder_and_gives_float32_of_its_size() -> None:
    embedder: Embedder = Hashed()
    assert isinstance(embedder, Embedder)
    out = embedded(embedder, ["one", "two words", "我"])
    assert sorted(out.vectors) == [0, 1, 2]
    assert {(str(vector.dtype), len(vector)) for vector in out.vectors.values()} == {("float32", 256)}
    assert not out.vectors[2].any()
    assert embedded(embedder, []).vectors == {}
