"""Filters of any size and depth, asked of SQLite: every answer is the predicate's, and no store is called damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.examples import some

import recollect
from recollect import filters as f
from recollect.errors import RecollectError, StoreIOError
from recollect.filters import Filter
from recollect.filters.tree import MAX_DEPTH, AllOf, AnyOf, Not
from recollect.memory import Memory
from recollect.stores.sql import filters as sql_filters
from recollect.stores.sql.filters import FALSE, MOST_VALUES, TRUE, bounds

START = datetime(2026, 1, 1, tzinfo=UTC)
USERS = ("ana", "ben", "cem", None)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with recollect.open(tmp_path / "a.db") as opened:
        opened.remember_all(
            {
                "content": f"text {number}",
                "id": f"r{number}",
                "user": USERS[number % 4],
                "kind": "task" if number % 3 else "user_fact",
                "importance": (number % 5) / 4,
                "time": START + timedelta(days=number),
                "tags": ["even"] if number % 2 == 0 else [],
            }
            for number in range(40)
        )
        yield opened


def leaf(rng: random.Random, *, sayable: bool) -> Filter:
    """A condition; most compare with values that no record has.

    sayable  one that SQL can say: what it cannot makes all of a disjunction disappear from the statement
    """
    match rng.choice((0, 1, 2, 3, 4, 6, 7) if sayable else range(8)):
        case 0:
            return f.user(*(f"nobody {rng.randrange(99)}" for _ in range(rng.choice((1, 1, 3, 200)))))
        case 1:
            return f.user(rng.choice(("ana", "ben")), "nobody")
        case 2:
            return f.after(START + timedelta(days=rng.randrange(40)))
        case 3:
            return f.between(START, START + timedelta(days=rng.randrange(40)))
        case 4:
            return f.importance_at_least(rng.randrange(5) / 4)
        case 5:
            return f.tag(rng.choice(("even", "odd")))
        case 6:
            return f.id(*(f"r{rng.randrange(60)}" for _ in range(rng.choice((1, 1, 30, 400)))))
        case _:
            return f.kind(rng.choice(("task", "user_fact", "none")))


def large(rng: random.Random) -> Filter:
    """A filter of up to some thousand conditions, and up to as many levels as there may be."""
    sayable = rng.random() < 0.8
    where = leaf(rng, sayable=sayable)
    for level in range(rng.choice((1, 1, 6, 20, MAX_DEPTH))):
        if where.depth > MAX_DEPTH - 4:
            break
        parts = [leaf(rng, sayable=sayable) for _ in range(rng.choice((1, 60, 199, 199)))]
        rng.shuffle(parts)
        where = (f.any_of if level % 2 else f.all_of)(*parts[: len(parts) // 2], where, *parts[len(parts) // 2 :])
        if rng.random() < 0.3:
            where = ~where
    return where


@pytest.mark.promise("damage.none")
@pytest.mark.parametrize("seed", range(some(40)))
def test_a_filter_of_any_size_gives_what_its_predicate_does(memory: Memory, seed: int) -> None:
    where = large(random.Random(seed))
    stored = memory.find(order="id")
    matching = [record.id for record in stored if where.matches(record)]
    assert [record.id for record in memory.find(where, order="id")] == matching
    assert memory.count(where) == len(matching)
    scoped = memory.scoped(user="ana")
    assert [record.id for record in scoped.find(where, order="id")] == [
        record.id for record in stored if record.user == "ana" and where.matches(record)
    ]
    with memory.batch() as batch:
        assert batch.count(where) == len(matching)
        assert batch.forget_where(where) == len(matching)
    assert memory.count(where) == 0
    assert memory.count() == len(stored) - len(matching)
    assert memory.check() == []


def test_the_large_filters_are_large_deep_and_match_some_and_not_others(memory: Memory) -> None:
    made = [large(random.Random(seed)) for seed in range(40)]
    sizes = [sql_filters._size(where, {}) for where in made]
    assert sum(size > 2000 for size in sizes) > 10
    assert sum(size < MOST_VALUES for size in sizes) > 3
    assert max(where.depth for where in made) > 40
    assert sum(0 < memory.count(where) < 40 for where in made) > 5


@pytest.mark.files
def test_without_the_limit_a_filter_would_be_too_large_for_sqlite_and_that_is_no_damage(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: what the sweep would meet, and that even then nobody is sent to rescue a whole store."""
    monkeypatch.setattr(sql_filters, "MOST_VALUES", 10**9)
    deep = f.all_of(*(~f.kind(str(number)) for number in range(1500)))
    wide = f.any_of(*(f.all_of(*(f.user(f"{one} {two}") for two in range(200))) for one in range(200)))
    for where, found in ((deep, "Expression tree is too large"), (wide, "too many SQL variables")):
        with pytest.raises(StoreIOError, match=found):
            memory.find(where)
    assert memory.count() == 40
    assert memory.check() == []


def worst() -> Iterator[Filter]:
    """The filters of the largest expressions that a statement is made of."""
    names = [f.user(str(number)) for number in range(MOST_VALUES)]
    yield f.user(*map(str, range(MOST_VALUES)))
    yield f.all_of(*(~name for name in names[1:]))
    yield f.any_of(*names[1:])
    yield f.any_of(*(f.between(START, START + timedelta(days=number)) for number in range(MOST_VALUES // 2 - 1)))
    room = (MOST_VALUES - MAX_DEPTH) // 29
    where: Filter = names[0]
    for level in range(29):
        joined = (AllOf if level % 2 else AnyOf).of(where, *names[level * room : (level + 1) * room])
        where = Not(joined)
    yield where


@pytest.mark.parametrize("number", range(5))
def test_the_largest_filter_that_is_said_in_sql_is_one_that_sqlite_takes(memory: Memory, number: int) -> None:
    where = list(worst())[number]
    assert MOST_VALUES * 0.9 <= sql_filters._size(where, {}) <= MOST_VALUES
    assert bounds(where).upper not in (TRUE, FALSE)
    assert memory.count(where) == sum(where.matches(record) for record in memory.find())
    assert len(memory.scoped(user="ana").find(where)) == sum(map(where.matches, memory.scoped(user="ana").find()))


def test_of_a_conjunction_that_does_not_fit_the_small_parts_still_find() -> None:
    huge = f.any_of(*(f.tag(str(number)) | f.source(str(number)) for number in range(9000)))
    upper, lower = bounds(f.all_of(huge, f.user("ana"), f.kind("task")))
    assert (upper.text, upper.parameters) == ('(h."user" = ? AND h."kind" = ?)', ("ana", "task"))
    assert lower == FALSE
    assert bounds(huge) == (TRUE, FALSE)
    assert bounds(~huge) == (TRUE, FALSE)


def test_a_filter_whose_parts_are_shared_is_looked_at_part_by_part() -> None:
    """Written out it has 2**28 conditions."""
    where: Filter = f.user("ana")
    for _ in range(14):
        where = AnyOf((AllOf((where, f.user("a"))), AllOf((where, f.user("b")))))
    assert bounds(where) == (TRUE, FALSE)


@pytest.mark.parametrize("count", [MOST_VALUES - 1, MOST_VALUES, MOST_VALUES + 1])
def test_at_the_limit_and_beside_it_every_answer_is_the_same(memory: Memory, count: int) -> None:
    where = f.user("ana", *map(str, range(count - 1)))
    assert memory.count(where) == 10
    assert (bounds(where).upper == TRUE) == (count > MOST_VALUES)
    try:
        assert memory.count(~where) == 30
    except RecollectError as error:  # never, at any size
        pytest.fail(str(error))
