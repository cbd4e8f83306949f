"""Pages of `find`: none of the records that stay is seen twice or left out, in every order, store and scope."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect.errors import InvalidArgumentError
from recollect.operations import ORDERS, Find, Order, from_json
from recollect.testing import TickingClock

START = datetime(2026, 3, 1, tzinfo=UTC)

pytestmark = pytest.mark.stores("memory", "sqlite", clock=TickingClock)


def fields(number: int, user: str = "ana") -> dict[str, Any]:
    """Fields with many ties and gaps: some records have no time, position, importance or conversation."""
    return {
        "id": f"r{number * 37 % 101}",
        "content": f"Note {number}",
        "user": user,
        "time": None if number % 5 == 0 else START + timedelta(hours=number % 3),
        "position": None if number % 4 == 0 else number % 2,
        "importance": None if number % 3 == 0 else number % 4 / 4,
        "conversation": None if number % 2 == 0 else f"c{number % 3}",
    }


def record(number: int, user: str = "ana") -> recollect.Record:
    return recollect.Record(**fields(number, user))


def pages(memory: recollect.Memory, order: Order, limit: int, **given: Any) -> list[recollect.Record]:
    page = memory.find(limit=limit, order=order, **given)
    out = [*page]
    while page.cursor is not None:
        assert len(page) == limit
        page = memory.find(limit=limit, order=order, after=page.cursor, **given)
        out += page
    return out


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_the_pages_are_the_list_cut_into_pieces(memory: recollect.Memory, order: Order, indexed: bool) -> None:
    memory.remember_all([record(number) for number in range(40)])
    memory.remember_all([record(number, "bob") for number in range(40, 60)])
    if indexed:
        memory.recall("note")  # loads the index, which `find` then uses where the store would read every record
    for where in (None, "user=ana", "user=ana and content~3", "conversation=c1", "kind=knowledge and not user=bob"):
        everything = memory.find(where, order=order)
        assert everything.cursor is None
        for limit in (1, 3, 1000):
            assert pages(memory, order, limit, where=where) == everything


@pytest.mark.parametrize("order", ORDERS)
def test_a_scope_has_pages_of_its_own(memory: recollect.Memory, order: Order) -> None:
    scope = memory.scoped(user="ana")
    for number in range(12):
        chosen = fields(number)
        del chosen["user"]
        scope.remember(**{name: value for name, value in chosen.items() if value is not None})
        memory.remember(**{**chosen, "user": "bob"})
    memory.remember("Without a scope", id="plain", user="ana")
    assert pages(scope, order, 3) == scope.find(order=order)
    assert len(scope.find()) == 13
    cursor = scope.find(limit=3, order=order).cursor
    assert cursor is not None
    for other in (memory, memory.scoped(user="bob"), memory.namespace("other")):
        with pytest.raises(InvalidArgumentError, match="must be the cursor of an earlier page"):
            other.find(limit=3, order=order, after=cursor)


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=some(30))
@given(data=st.data())
def test_what_is_written_between_pages_neither_repeats_nor_hides_the_rest(order: Order, data: st.DataObject) -> None:
    with recollect.open(":memory:", clock=TickingClock()) as memory:
        before = [record(number) for number in range(12)]
        memory.remember_all(before)
        stay = {each.id for each in before}
        seen: list[str] = []
        cursor = None
        for step in range(100):
            page = memory.find(limit=2, order=order, after=cursor)
            seen += [each.id for each in page]
            cursor = page.cursor
            if cursor is None:
                break
            # Also the last record of the page, which the cursor names.
            for forgotten in data.draw(st.lists(st.sampled_from(sorted(stay | set(seen[-1:]))), max_size=2)):
                if memory.get(forgotten) is not None:
                    memory.forget(forgotten)
                stay.discard(forgotten)
            if step < 5:
                memory.remember_all([record(20 + step)])
        assert len(set(seen)) == len(seen)
        assert stay <= set(seen)


def test_an_awaited_find_and_a_batch_have_the_same_pages(memory: recollect.Memory) -> None:
    memory.remember_all([record(number) for number in range(6)])
    first = memory.find(limit=2)

    async def second() -> recollect.RecordList:
        return await recollect.AsyncMemory(memory).find(limit=2, after=first.cursor)

    assert asyncio.run(second()) == memory.find()[2:4]
    with memory.batch() as batch:
        batch.remember("Newer")
        assert batch.find(limit=2, after=first.cursor) == memory.find()[2:4]
        assert batch.find(limit=2).cursor is not None


def test_a_cursor_is_of_one_order_and_is_read_whole(memory: recollect.Memory) -> None:
    memory.remember_all([record(number) for number in range(6)])
    cursor = memory.find(limit=2, order="oldest").cursor
    assert cursor is not None
    assert memory.find(limit=2, order="oldest").cursor == cursor
    assert "r37" not in cursor
    wrong = ["x", "0", cursor[:-1], cursor[1:], cursor + "A", cursor.swapcase(), "é", "A" * 22]
    for text in wrong:
        with pytest.raises(InvalidArgumentError, match="must be the cursor of an earlier page"):
            memory.find(limit=2, order="oldest", after=text)
    with pytest.raises(InvalidArgumentError, match="in the same order"):
        memory.find(limit=2, order="newest", after=cursor)
    for no_text in (5, "", b"x"):
        with pytest.raises(InvalidArgumentError, match="after"):
            memory.find(limit=2, after=no_text)  # type: ignore[arg-type]


def test_a_page_has_a_cursor_only_if_it_is_full(memory: recollect.Memory) -> None:
    memory.remember_all([record(number) for number in range(4)])
    assert memory.find(limit=5).cursor is None
    assert memory.find().cursor is None
    last = memory.find(limit=4).cursor
    assert last is not None
    empty = memory.find(limit=4, after=last)
    assert (empty, empty.cursor) == ([], None)
    assert memory.grep("note").cursor is None
    assert memory.find(limit=2).cursor is not None


def test_a_find_with_a_cursor_has_a_json_form() -> None:
    sent = Find(limit=5, after="abc")
    assert sent.to_json() == {"op": "find", "limit": 5, "after": "abc"}
    assert from_json(sent.to_json()) == sent
