"""What the columns of an index say of a filter: never too little, and of a scope just what it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import filter_trees as own
from tests.unit import strategies as values

from recollect import filters as f
from recollect.engine.encoding import document_of
from recollect.engine.narrowing import admitted, of_scope
from recollect.engine.scope import Scope
from recollect.filters import Filter
from recollect.filters.tree import Time
from recollect.indexes.columns import FIELDS
from recollect.indexes.merging import merged
from recollect.indexes.segments import Builder
from recollect.indexes.words import WordIndex, WordView
from recollect.records.record import Record

records = st.lists(own.records(), max_size=8, unique_by=lambda record: record.id)


def views(held: list[Record], split: int) -> list[WordView]:
    """The same records in a segment, in its tail, in a fork, and merged."""
    documents = [document_of(record) for record in held]
    builder = Builder()
    for each in documents[:split]:
        builder.add(each)
    index = WordIndex(builder.segment())
    index.apply([], documents[split:])
    return [index.view(), index.fork().view(), WordIndex(merged(index.view())).view()]


@given(records, own.trees, st.data())
def test_all_that_a_filter_matches_are_among_those_that_the_columns_admit(
    held: list[Record], where: Filter, data: st.DataObject
) -> None:
    for view in views(held, data.draw(st.integers(0, len(held)))):
        among = admitted(where, view.table)
        if among is not None:
            assert len(among) == view.table.count
            assert all(among[view.table.number(record.id)] for record in held if where.matches(record))


@given(records, st.sampled_from(FIELDS), st.lists(own.names, min_size=1, max_size=3), st.data())
def test_a_condition_on_a_field_with_a_column_admits_just_what_it_matches(
    held: list[Record], name: str, values: list[str], data: st.DataObject
) -> None:
    where: Filter = getattr(f, name)(*values)
    for view in views(held, data.draw(st.integers(0, len(held)))):
        among = admitted(where, view.table)
        assert among is not None
        assert [bool(among[view.table.number(record.id)]) for record in held] == [where.matches(each) for each in held]


@given(records, st.sampled_from(["after", "before", "between"]), values.times, values.times, st.data())
def test_a_condition_on_the_time_admits_just_what_it_matches(
    held: list[Record], test: str, one: datetime, other: datetime, data: st.DataObject
) -> None:
    times = [each.time for each in held if each.time is not None] + [one, other]
    start, end = sorted(data.draw(st.lists(st.sampled_from(times), min_size=2, max_size=2)))
    where = Time(test, start=None if test == "before" else start, end=None if test == "after" else end)
    for view in views(held, data.draw(st.integers(0, len(held)))):
        among = admitted(where, view.table)
        assert among is not None
        assert [bool(among[view.table.number(record.id)]) for record in held] == [where.matches(each) for each in held]


@given(records, st.dictionaries(st.sampled_from(["user", "agent", "conversation"]), own.names, min_size=1), st.data())
def test_a_scope_is_just_what_it_admits(held: list[Record], fixed: dict[str, Any], data: st.DataObject) -> None:
    scope = Scope().narrowed(**fixed)
    for view in views(held, data.draw(st.integers(0, len(held)))):
        inside = of_scope(scope, view.table)
        assert [bool(inside[view.table.number(record.id)]) for record in held] == [scope.admits(each) for each in held]


def test_what_the_columns_do_not_know_they_say_nothing_of() -> None:
    table = WordIndex(Builder().segment()).view().table
    for where in (f.tag("tea"), ~f.user("ana"), f.user("ana") | f.tag("tea"), f.everything()):
        assert admitted(where, table) is None
    for where in (f.user("ana"), f.user("ana") & f.tag("tea"), f.user("ana") | f.agent("x")):
        among = admitted(where, table)
        assert among is not None
        assert not np.any(among)
