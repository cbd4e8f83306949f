"""Filters on trees of records: children by `parent`, and all below a record by `under`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import InvalidFilterError, UnsupportedError
from recollect.filters.tree import AllOf, Links, Under, from_json, resolved
from recollect.operations import Now
from recollect.records.record import Record

pytestmark = pytest.mark.stores("memory")


def grow(memory: Any, *edges: str, **fields: Any) -> None:
    """Store a record for each "child<parent", or for a single name one without a parent."""
    for edge in edges:
        child, _, parent = edge.partition("<")
        memory.remember(f"fact of {child}", id=child, parent=parent or None, **fields)


def ids(found: Any) -> list[str]:
    return sorted(record.id for record in found)


@pytest.mark.parametrize("indexed", [False, True])
def test_children_and_all_below_are_found(memory: Memory, indexed: bool) -> None:
    grow(memory, "a", "b<a", "c<b", "d<c", "e<a", "x", "y<x")
    if indexed:
        memory.recall("fact")
    assert ids(memory.find(where=f.parent("a"))) == ["b", "e"]
    assert ids(memory.find(where=f.parent("a", "x"))) == ["b", "e", "y"]
    assert ids(memory.find(where=f.under("a"))) == ["b", "c", "d", "e"] == ids(memory.find(where="under=a"))
    assert ids(memory.find(where=f.under("b", "x"))) == ["c", "d", "y"]
    assert ids(memory.find(where=f.has("parent") & ~f.under("a"))) == ["y"]
    assert ids(memory.find(where=~f.under("a") & ~f.id("a"))) == ["x", "y"]
    assert memory.count(f.under("a")) == 4
    assert ids(hit.record for hit in memory.recall("fact", where=f.under("b"))) == ["c", "d"]
    assert memory.find(where=f.under("d")) == memory.find(where=f.under("absent")) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_they_follow_every_change(memory: Memory, indexed: bool) -> None:
    grow(memory, "a", "b<a", "c<b", "d<c")
    if indexed:
        memory.recall("fact")
    memory.update("c", parent="a")
    memory.forget("b")
    assert ids(memory.find(where=f.under("a"))) == ["c", "d"]
    before = memory.execute(Now())
    assert memory.forget_where(f.under("a")) == 2
    assert memory.find(where=f.under("a")) == []
    assert ids(memory.at(before).find(where=f.under("a"))) == ["c", "d"]


def test_a_batch_sees_its_own_trees(memory: Memory) -> None:
    grow(memory, "a", "b<a")
    memory.recall("fact")
    with memory.batch() as batch:
        grow(batch, "c<b", "d<c")
        assert ids(batch.find(where=f.under("a"))) == ["b", "c", "d"]
        assert batch.forget_where(f.under("b")) == 2
        assert batch.count(f.under("a")) == 1
    assert ids(memory.find(where=f.under("a"))) == ["b"]


def test_a_cycle_of_parents_ends(memory: Memory) -> None:
    grow(memory, "a<c", "b<a", "c<b", "d<d")
    for _ in range(2):
        assert ids(memory.find(where=f.under("a"))) == ["a", "b", "c"]
        assert ids(memory.find(where=f.under("d"))) == ["d"]
        memory.recall("fact")


@pytest.mark.parametrize("indexed", [False, True])
def test_a_scope_sees_only_its_own_trees(memory: Memory, indexed: bool) -> None:
    ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
    grow(ana, "a", "b<a", "c<b")
    grow(bob, "a", "b<a", "d<b")
    if indexed:
        memory.recall("fact")
    assert ids(ana.find(where=f.under("a"))) == ["b", "c"]
    assert ids(bob.find(where=f.under("a"))) == ["b", "d"]
    assert ana.count(f.under("a") & f.user("bob")) == 0
    assert bob.forget_where(f.under("b")) == 1
    assert (ana.count(), bob.count()) == (3, 2)


def test_what_lies_below_is_read_without_the_other_records(memory: Memory) -> None:
    rows = [{"content": f"tea {n}", "id": f"n{n}", "parent": f"n{(n - 1) // 4}" if n else None} for n in range(6000)]
    memory.remember_all(rows)
    memory.recall("tea")
    read = 0

    def counted(record: Record) -> bool:
        nonlocal read
        read += 1
        return True

    assert len(memory.find(where=f.custom(counted) & f.contains("777"))) == 6
    assert read == 6000  # it counts
    for root in ("n5", "n6"):
        below = {root}
        for row in rows:
            if row["parent"] in below:
                below.add(str(row["id"]))
        read = 0
        found = memory.find(where=f.custom(counted) & f.under(root))
        assert ids(found) == sorted(below - {root})
        assert read == len(found) == memory.count(f.under(root))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("abcdefgh"), max_size=8),
    st.sampled_from("abcdefgh"),
    st.sampled_from([None, "id", "oldest", "newest"]),
)
@settings(max_examples=some(100))
def test_all_below_are_those_whose_parents_lead_there(parents: dict[str, str | None], root: str, order: Any) -> None:
    with recollect.open(":memory:") as memory:
        for child, parent in parents.items():
            memory.remember(f"fact of {child}", id=child, parent=parent)

        def leads(child: str) -> bool:
            seen: set[str] = set()
            at = parents.get(child)
            while at is not None and at not in seen and at != root:
                seen.add(at)
                at = parents.get(at)
            return at == root

        wanted = sorted(child for child in parents if leads(child))
        ordered = {} if order is None else {"order": order}
        assert ids(memory.find(where=f.under(root), **ordered)) == wanted
        memory.recall("fact")
        assert ids(memory.find(where=f.under(root), **ordered)) == wanted


def test_it_travels_as_json_and_as_text_and_a_single_record_does_not_answer_it() -> None:
    for where in (f.under("a"), f.under("a", "b"), ~f.under("a") & f.kind("task")):
        assert from_json(where.to_json()) == where
    assert f.parse("under=a and not under='b c'") == f.under("a") & ~f.under("b c")
    assert f.parse("parent=a") == f.parent("a") == Links("parent", ("a",))
    assert f.parent("a").matches(Record(id="b", content="x", parent="a"))
    assert not f.parent("a").matches(Record(id="a", content="x"))
    with pytest.raises(UnsupportedError, match="under"):
        f.under("a").matches(Record(id="b", content="x", parent="a"))
    for wrong in ((), (1,), ("\ud800",)):
        with pytest.raises(InvalidFilterError):
            f.under(*wrong)


def test_filters_without_it_stay_as_they_are() -> None:
    where = (f.tag("x") | f.kind("a")) & ~f.parent("b")
    assert resolved(where, lambda ids: Links("parent", ("never",))) is where
    part = resolved(AllOf((f.tag("x"), Under(("a",)))), lambda ids: Links("parent", (*ids, "b")))
    assert part == AllOf((f.tag("x"), Links("parent", ("a", "b"))))
