"""Supersession: a new fact replaces an old one from a time on, in one commit, and both stay."""

from __future__ import annotations

import asyncio
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import filters as f
from recollect.errors import (
    InvalidArgumentError,
    QuotaError,
    ScopeError,
    UnknownArgumentError,
    UnknownRecordError,
    ValidityError,
)
from recollect.operations import Now
from recollect.stores.memory import MemoryStore
from recollect.testing import TickingClock, memory_on

JANUARY, FEBRUARY, MARCH = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3))

pytestmark = pytest.mark.stores("memory", "sqlite", "loopback", clock=TickingClock)


def test_both_records_are_written_in_one_commit_which_says_so(memory: recollect.Memory) -> None:
    rome = memory.remember("Ana lives in Rome", kind="user_fact", user="ana", valid_from=JANUARY)
    oslo = memory.supersede(rome.id, "Ana lives in Oslo", at=MARCH)
    assert memory.seq == 2
    assert [(each.id, each.cause) for each in memory.changes(1)[0].changes] == [
        (oslo.id, "written"),
        (rome.id, "superseded"),
    ]
    assert memory.get(rome.id) == rome.changed(valid_to=MARCH)
    assert memory.get(oslo.id) == oslo
    assert (oslo.valid_from, oslo.valid_to, oslo.supersedes) == (MARCH, None, (rome.id,))
    assert memory.history(rome.id)[-1].cause == "superseded"
    assert memory.check() == []


@given(st.integers(0, 3), st.integers(-1, 4))
def test_at_each_moment_exactly_one_of_a_chain_of_replaced_facts_is_valid(links: int, day: int) -> None:
    memory = memory_on(MemoryStore(), clock=TickingClock())
    record = memory.remember("fact 0")
    for link in range(links):
        record = memory.supersede(record.id, f"fact {link + 1}", at=JANUARY + timedelta(days=link))
    moment = JANUARY + timedelta(days=day)
    expected = f"fact {min(max(day + 1, 0), links)}"
    assert [each.content for each in memory.find(f.valid_at(moment))] == [expected]
    assert [hit.record.content for hit in memory.recall("fact", where=f.valid_at(moment))] == [expected]


@pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")  # of a proposal
def test_the_new_record_has_the_fields_of_the_old_one_except_those_of_its_text(memory: recollect.Memory) -> None:
    old = memory.remember(
        "I always want a window seat",
        id="seat",
        kind="user_fact",
        user="ana",
        agent="planner",
        entity="seats",
        source="chat",
        tags=["travel"],
        metadata={"attribute": "seat"},
        importance=0.8,
        pinned=True,
        trust=0.5,
        time=JANUARY,
        derived_from=["x"],
        supersedes=["y"],
        valid_to=MARCH,
    )
    new = memory.supersede("seat", "An aisle seat will do", at=FEBRUARY, importance=0.3, source=None)
    taken = ("kind", "user", "agent", "entity", "metadata", "pinned", "trust")
    assert [getattr(new, name) for name in taken] == [getattr(old, name) for name in taken]
    assert (new.importance, new.source, new.tags) == (0.3, None, ("travel",))
    assert (new.derived_from, new.supersedes, new.valid_to) == ((), ("seat",), None)
    assert new.time is not None
    assert new.time > JANUARY


def test_a_standing_tag_follows_the_text_and_not_the_old_record(memory: recollect.Memory) -> None:
    old = memory.remember("Always answer in French.", user="ana")
    assert old.tags
    assert memory.supersede(old.id, "French is no longer needed", user="ana").tags == ()


def test_without_a_time_the_fact_is_replaced_now(memory: recollect.Memory) -> None:
    old = memory.remember("tea")
    new = memory.supersede(old.id, "coffee")
    closed = memory.get(old.id)
    assert closed is not None
    assert closed.valid_to == new.valid_from == new.time


def test_a_text_that_becomes_true_again_is_another_record(memory: recollect.Memory) -> None:
    first = memory.remember("Rome")
    second = memory.supersede(first.id, "Oslo", at=JANUARY)
    third = memory.supersede(second.id, "Rome", at=FEBRUARY)
    fourth = memory.supersede(third.id, "Oslo", at=MARCH)
    assert len({first.id, second.id, third.id, fourth.id}) == memory.count() == 4
    assert [record.content for record in memory.find(f.valid_at(FEBRUARY))] == ["Rome"]


def test_what_is_refused_changes_nothing(memory: recollect.Memory) -> None:
    old = memory.remember("tea", id="a", valid_from=JANUARY)
    memory.supersede("a", "coffee", at=MARCH)
    root = memory.root
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        (UnknownRecordError, {"id": "b", "content": "x"}),
        (ValidityError, {"id": "a", "content": "x", "at": MARCH}),
        (ValidityError, {"id": "a", "content": "x", "at": JANUARY - timedelta(microseconds=1)}),
        (InvalidArgumentError, {"id": "a", "content": "tea", "at": FEBRUARY}),
        (InvalidArgumentError, {"id": "a", "content": "x", "valid_from": FEBRUARY}),
        (InvalidArgumentError, {"id": "a", "content": "x", "supersedes": ["b"]}),
        (InvalidArgumentError, {"id": "a", "content": "x", "at": "in spring"}),
        (UnknownArgumentError, {"id": "a", "content": "x", "colour": "red"}),
    ]
    for error, arguments in refused:
        with pytest.raises(error):
            memory.supersede(**arguments)
    with pytest.raises(ValidityError, match=r"valid from 2026-01-01T00:00:00\+00:00 until 2026-03-01T00:00:00\+00:00"):
        memory.supersede("a", "x", at=MARCH)
    assert memory.root == root
    assert old.id == "a"


def test_a_record_replaced_by_a_correction_is_never_valid(memory: recollect.Memory) -> None:
    memory.remember("tea", id="a", valid_from=JANUARY)
    memory.supersede("a", "coffee", at=JANUARY)
    assert [record.content for record in memory.find(f.valid_at(JANUARY))] == ["coffee"]
    assert memory.get("a") is not None


def test_a_revert_takes_it_back(memory: recollect.Memory) -> None:
    old = memory.remember("tea")
    root = memory.root
    memory.supersede(old.id, "coffee")
    memory.revert(2)
    assert memory.root == root
    assert memory.find() == [old]


def test_in_a_batch_it_is_part_of_the_commit_and_is_seen(memory: recollect.Memory) -> None:
    memory.remember("tea", id="a")
    with memory.batch() as batch:
        coffee = batch.supersede("a", "coffee")
        water = batch.supersede(coffee.id, "water")
        assert batch.count() == 3
        with pytest.raises(ValidityError):
            batch.supersede("a", "milk")
    assert memory.seq == 2
    assert [record.content for record in memory.find(f"supersedes={coffee.id}")] == ["water"]
    assert memory.find("not valid_to") == [water]


def test_where_the_quota_has_room_for_one_of_two_writes_neither_is_made() -> None:
    for alone in (True, False):
        memory = memory_on(MemoryStore(), clock=TickingClock())
        memory.remember("tea", id="a")
        memory.set_quota(records=1, when_full="least recent")
        root = memory.root
        with pytest.raises(QuotaError):
            if alone:
                memory.supersede("a", "coffee")
            else:
                with memory.batch() as batch, pytest.raises(QuotaError):
                    batch.supersede("a", "coffee")
        assert memory.root == root


def test_what_is_evicted_to_make_room_is_a_third_record() -> None:
    memory = memory_on(MemoryStore(), clock=TickingClock())
    for name in ("a", "b"):
        memory.remember(f"tea {name}", id=name)
    memory.set_quota(records=2, when_full="least recent")
    new = memory.supersede("a", "coffee")
    assert {change.id: change.cause for change in memory.changes()[-1].changes} == {
        new.id: "written",
        "a": "superseded",
        "b": "evicted",
    }


def test_in_a_scope_it_names_the_record_as_the_scope_does(memory: recollect.Memory) -> None:
    memory.remember("tea", id="a", user="bob")
    ana = memory.scoped(user="ana")
    with pytest.raises(UnknownRecordError):
        ana.supersede("a", "coffee")
    ana.remember("Rome", id="a")
    oslo = ana.supersede("a", "Oslo")
    assert (oslo.user, oslo.supersedes) == ("ana", ("a",))
    assert ana.find(f.supersedes("a")) == [oslo]
    with pytest.raises(ScopeError):
        ana.supersede(oslo.id, "Paris", user="bob")
    assert memory.scoped(user="bob").find("valid_to") == []


def test_it_can_be_awaited(tmp_path: Path) -> None:
    async def run() -> list[str]:
        async with recollect.AsyncMemory(recollect.open(tmp_path / "a.db")) as memory:
            old = await memory.remember("tea")
            await memory.supersede(old.id, "coffee")
            return [record.text for record in await memory.find("not valid_to")]

    assert asyncio.run(run()) == ["coffee"]


def test_a_time_in_place_of_the_time_from_which_it_is_true_is_warned_of(memory: recollect.Memory) -> None:
    rome = memory.remember("Ana lives in Rome", valid_from="2024-05-01")
    with pytest.warns(recollect.RecollectWarning, match="Pass at= for the time from which it is true"):
        oslo = memory.supersede(rome.id, "Ana lives in Oslo", time="2026-01-01")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.supersede(oslo.id, "Ana lives in Bonn", time="2099-01-01", at=memory.execute(Now()))


@pytest.mark.parametrize("when", ["on 3 March", "in March", "in March 2026"])
def test_a_context_about_a_date_without_a_year_has_what_was_valid_then(when: str) -> None:
    memory = recollect.open(":memory:", embedder="none", zone="UTC")
    rome = memory.remember("Ana's office is in Rome", time="2026-01-10")
    memory.remember("Ana's office is in Oslo", time="2026-06-01", supersedes=[rome.id])
    prompt = memory.context(f"Where was Ana's office {when}?", reference="2026-09-01")
    assert "until 2026-06-01: Ana's office is in Rome" in prompt
