"""Bounds of filters in an index: a filter lies between them, and a scope is exact."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.filters import filter_trees as own
from tests.indexes import strategies as values

from recollect import filters as f
from recollect.engine.index.document_of import document_of
from recollect.engine.read.filter_bounds import bounds, of_scope
from recollect.engine.scope import Scope
from recollect.filters import Filter
from recollect.filters.tree import TEXT_FIELDS, Time
from recollect.indexes.documents.columns import Flags
from recollect.indexes.words.index import WordIndex, WordView
from recollect.indexes.words.merge import merged
from recollect.indexes.words.segment import Builder
from recollect.records.record import Record

records = st.lists(own.records(), max_size=8, unique_by=lambda record: record.id)


def views(stored: list[Record], split: int) -> list[WordView]:
    """The same records in a segment, in its tail, in a fork, and merged."""
    documents = [document_of(record, UTC) for record in stored]
    builder = Builder()
    for each in documents[:split]:
        builder.add(each)
    index = WordIndex(builder.segment())
    index.apply([], documents[split:])
    return [index.view(), index.fork().view(), WordIndex(merged(index.view())).view()]


def flags_of(found: Flags | None, view: WordView, stored: list[Record]) -> list[bool]:
    assert found is not None
    assert len(found) == view.table.count
    return [bool(found[view.table.number(record.id)]) for record in stored]


@given(records, st.data())
def test_a_filter_matches_all_in_its_lower_bound_and_none_outside_its_upper_one(
    stored: list[Record], data: st.DataObject
) -> None:
    where = data.draw(own.trees_about(stored))
    matching = [where.matches(record) for record in stored]
    decoded = st.sampled_from((None, 0, 1, 500))  # how many records are decoded for a condition on metadata
    for view, decode in product(
        views(stored, data.draw(st.integers(0, len(stored)))), data.draw(st.lists(decoded, min_size=1, max_size=2))
    ):
        found = bounds(where, view, decode=decode)
        if found.upper is not None:
            upper = flags_of(found.upper, view, stored)
            assert all(admitted for admitted, matches in zip(upper, matching, strict=True) if matches)
        if found.lower is not None:
            lower = flags_of(found.lower, view, stored)
            assert not any(sure for sure, matches in zip(lower, matching, strict=True) if not matches)
        if found.exact:
            assert flags_of(found.upper, view, stored) == matching


def test_long_tags_sessions_and_keys_are_read_like_short_ones() -> None:
    longs = ["x" * size for size in (63, 64, 65, 66, 300)]
    stored = [
        Record(id=str(at), content="tea", tags=(text,), session=text, metadata={text: text}, derived_from=(text[:255],))
        for at, text in enumerate(longs)
    ]
    for text in longs:
        for where in (f.tag(text), f.session(text), f.derived_from(text[:255]), f.meta(text), f.meta(text, text)):
            for view in views(stored, 3):
                found = bounds(where, view)
                assert found.exact
                assert flags_of(found.upper, view, stored) == [where.matches(record) for record in stored]


def test_nothing_else_of_a_filter_is_left_open_than_what_no_index_tells() -> None:
    view = WordIndex(Builder().segment()).view()
    found: list[Filter] = [
        *(getattr(f, name)("x") for name in TEXT_FIELDS),
        f.tag("x"),
        f.meta("x"),
        f.meta("x", 1),
        f.meta("x", contains="y"),
        f.meta(["x", "y"], above=1),
        f.importance_at_least(0.5),
        f.supersedes("x"),
        f.derived_from("x", "y"),
        f.valid_at("2026-03-01T00:00Z"),
        *map(f.has, ("pinned", "valid_from", "valid_to", "supersedes", "derived_from")),
        f.everything(),
        f.nothing(),
    ]
    for where in (*found, ~found[0], found[0] & ~found[3], found[1] | found[2]):
        assert bounds(where, view).exact
    open_: list[Filter] = [
        f.contains("x"),
        f.matches("x"),
        f.speaker("\0user"),
    ]
    for where in (*open_, ~open_[0], found[0] & open_[0], found[0] | open_[2], f.custom(lambda record: True)):
        assert not bounds(where, view).exact
    # Neither says more than it can.
    assert bounds(f.contains("x"), view) == bounds(~f.contains("x"), view) == (None, None)
    assert bounds(f.contains("x") | f.user("ana"), view).upper is None
    assert bounds(f.contains("x") & f.user("ana"), view).lower is None


def test_a_few_records_are_decoded_with_each_question_until_all_are() -> None:
    stored = [Record(id=str(at), content="tea", metadata={"n": at}) for at in range(10)]
    (view, *_), where = views(stored, 4), f.meta("n", at_least=7)
    admitted = [int(np.count_nonzero(bounds(where, view, decode=4).upper)) for _ in range(4)]  # type: ignore[arg-type]
    assert admitted == [9, 5, 3, 3]  # the newest first: 6 to 9, then 2 to 5, then the others
    found = bounds(where, view, decode=0)
    assert found.exact
    assert flags_of(found.upper, view, stored) == [where.matches(record) for record in stored]


def test_a_record_that_only_the_store_has_is_left_open() -> None:
    stored = [Record(id=str(at), content="tea " * (1 + 1000 * at), metadata={"n": 1}) for at in range(2)]
    for view in views(stored, 1):
        found = bounds(f.meta("n", 1), view, decode=None)
        assert flags_of(found.upper, view, stored) == [True, True]
        assert flags_of(found.lower, view, stored) == [True, False]
        assert bounds(f.meta("n", 2), view).upper is not None


@given(records, st.data())
def test_a_condition_that_the_index_tells_admits_just_what_it_matches(
    stored: list[Record], data: st.DataObject
) -> None:
    for where in [*(each for record in stored for each in own.true_of(record)), data.draw(own.conditions)]:
        for view in views(stored, data.draw(st.integers(0, len(stored)))):
            found = bounds(where, view)
            if found.exact:
                assert flags_of(found.upper, view, stored) == [where.matches(record) for record in stored]


@given(records, st.sampled_from(["after", "before", "between"]), values.times, values.times, st.data())
def test_a_condition_on_the_time_admits_just_what_it_matches(
    stored: list[Record], test: str, one: datetime, other: datetime, data: st.DataObject
) -> None:
    times = [each.time for each in stored if each.time is not None] + [one, other]
    start, end = sorted(data.draw(st.lists(st.sampled_from(times), min_size=2, max_size=2)))
    where = Time(test, start=None if test == "before" else start, end=None if test == "after" else end)
    for view in views(stored, data.draw(st.integers(0, len(stored)))):
        found = bounds(where, view)
        assert found.exact
        assert flags_of(found.upper, view, stored) == [where.matches(each) for each in stored]


@given(records, st.dictionaries(st.sampled_from(["user", "agent", "conversation"]), own.names, min_size=1), st.data())
def test_a_scope_is_just_what_it_admits(stored: list[Record], fixed: dict[str, Any], data: st.DataObject) -> None:
    scope = Scope().narrowed(**fixed)
    for view in views(stored, data.draw(st.integers(0, len(stored)))):
        inside = of_scope(scope, view.table)
        assert [bool(inside[view.table.number(record.id)]) for record in stored] == [
            scope.admits(each) for each in stored
        ]
