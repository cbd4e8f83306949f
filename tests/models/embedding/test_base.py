"""The output of an embedder is checked before it is stored or compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

import recollect
from recollect.errors import EmbedderError, InvalidArgumentError, MissingExtraError
from recollect.models.embedding.base import Embedder, Floors, Supplied, check_floors, embedded, floors_of
from recollect.models.embedding.hashed import Hashed


class Giving:
    """An embedder that gives what it was told to, or raises it."""

    name = "giving/1"

    def __init__(self, given: Any, dimension: int | None = None) -> None:
        self._given = given
        self.dimension = dimension

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Any:
        if isinstance(self._given, BaseException):
            raise self._given
        return self._given


UNSOUND = {
    "not finite": [float("nan"), 1.0],
    "component that is not finite": [float("inf"), 1.0],
    "3 components, not 2": [1.0, 2.0, 3.0],
    "list of numbers": ["a", "b"],
    "no vector for it": None,
    "shape": [],
    r"shape \(1, 2\)": [[1.0, 2.0]],
    "is not a list of": [None, {}],
    "component that is": [1e300, 1.0],
}


@pytest.mark.parametrize("reason", UNSOUND)
def test_a_vector_that_cannot_be_used_is_passed_over_with_its_reason(reason: str) -> None:
    embedder: Embedder = Giving([[1.0, 2.0], UNSOUND[reason], [3.0, 4.0]], 2)
    out = embedded(embedder, ["a", "b", "c"])
    assert [list(out.vectors[place]) for place in (0, 2)] == [[1.0, 2.0], [3.0, 4.0]]
    assert set(out.vectors) == {0, 2}
    assert set(out.refused) == {1}
    assert re.search(reason, out.refused[1])


def test_the_size_is_that_of_the_first_where_it_is_not_stated() -> None:
    out = embedded(Giving([[1.0, 2.0], [1.0]]), ["a", "b"])
    assert (set(out.vectors), out.refused) == ({0}, {1: "its vector has 1 components, not 2"})
    out = embedded(Giving([[1.0, 2.0], [1.0]]), ["a", "b"], dimension=1)
    assert set(out.vectors) == {1}


@pytest.mark.parametrize("given", [[], [[1.0]], [[1.0]] * 3, 7, None])
def test_an_answer_without_a_vector_for_each_text_is_an_error(given: Any) -> None:
    with pytest.raises(EmbedderError, match="giving/1"):
        embedded(Giving(given), ["a", "b"])


def test_what_an_embedder_raises_becomes_our_error_and_ours_stay_as_they_are() -> None:
    with pytest.raises(EmbedderError, match="ZeroDivisionError: oh"):
        embedded(Giving(ZeroDivisionError("oh")), ["a"])
    with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[x\]"):
        embedded(Giving(MissingExtraError("it", "y", "x")), ["a"])
    with pytest.raises(KeyboardInterrupt):
        embedded(Giving(KeyboardInterrupt()), ["a"])


def test_floors_are_the_embedders_own_or_the_usual_ones() -> None:
    assert floors_of(Giving([])) == Floors()
    assert floors_of(Hashed()) == Hashed.floors
    for wrong in (Floors(0.6, 0.5), Floors(-0.1, 0.5), Floors(0.5, 1.5), Floors(float("nan"), 1.0), (0.1, 0.2)):
        with pytest.raises(InvalidArgumentError, match="floors"):
            check_floors(wrong)


def test_supplied_vectors_are_checked_when_they_are_brought() -> None:
    own = Supplied("mine/1", 2, {"a": [1.0, 0.0]})
    for wrong in ([1.0], [float("nan"), 1.0], None, ["x", "y"]):
        with pytest.raises(InvalidArgumentError, match="vector"):
            own.put("b", wrong)  # type: ignore[arg-type]
    out = embedded(own, ["a", "b"])
    assert list(out.vectors[0]) == [1.0, 0.0]
    assert out.refused == {1: "there is no vector for it"}
    assert repr(own) == "<Supplied 'mine/1': 1 vectors of 2>"


@pytest.mark.parametrize("missing", ["name", "dimension", "embed"])
def test_an_embedder_without_a_member_is_refused_with_what_is_missing_and_where_the_protocol_is(missing: str) -> None:
    members: dict[str, Any] = {"name": "mine/1", "dimension": 2, "embed": lambda self, texts, *, asking=False: []}
    kind = type("Mine", (), {name: each for name, each in members.items() if name != missing})
    with pytest.raises(InvalidArgumentError, match=rf"docs/vectors\.md.*; it has no {missing}\b") as raised:
        recollect.open(":memory:", embedder=kind())
    assert " and no " not in str(raised.value)
    with pytest.raises(InvalidArgumentError, match="it has no name and no dimension and no embed"):
        recollect.open(":memory:", embedder=object())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="it is a class: pass an instance"):
        recollect.open(":memory:", embedder=type("Mine", (), members))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("embed", "taken"),
    [
        (lambda self, texts: [], False),
        (lambda self, texts, asking, /: [], False),
        (lambda self, texts, asking=False: [], True),
        (lambda self, texts, **options: [], True),
    ],
)
def test_an_embedder_that_cannot_be_told_what_is_a_question_is_refused(embed: Any, taken: bool) -> None:
    mine = type("Mine", (), {"name": "mine/1", "dimension": 2, "embed": embed})()
    if taken:
        recollect.open(":memory:", embedder=mine).close()
        return
    with pytest.raises(InvalidArgumentError, match=r"docs/vectors\.md.*; its embed\(\) does not take asking="):
        recollect.open(":memory:", embedder=mine)
