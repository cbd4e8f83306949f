"""A memory of a past moment gives what the memory gave when that moment was the present, to the bit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import OVER_LOOPBACK
from tests.examples import some

import recollect
from recollect import filters as f
from recollect import operations as ops
from recollect.embedding.hashed import Hashed
from recollect.engine.index import past as past_module
from recollect.engine.index.keeper import IndexKeeper
from recollect.engine.results import Hits
from recollect.errors import (
    InvalidArgumentError,
    InvalidOperationError,
    ReadOnlyMemoryError,
    RecollectError,
    ScopeError,
    UnknownTargetError,
)
from recollect.filters import Filter
from recollect.ledger.commits import Branch
from recollect.memory.awaited import AsyncMemory
from recollect.memory.calls import remember_operation
from recollect.operations import ORDERS
from recollect.records.record import Record
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import filters, memory_on, records
from recollect.testing.internals import core_of
from recollect.testing.strategies import START

QUESTIONS = ("java", "what did ana say about new java lines on 2 January 2026?", "100% Straße", "javascrpt it's")
IDS = [f"r{number}" for number in range(8)]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


def comparable(hits: Hits) -> Any:
    """Everything of hits but the notes, which also state what is of the present."""
    told = hits.to_json()
    told.pop("notes", None)
    told["plan"].pop("notes")
    return told


def seen(memory: recollect.Memory, wheres: list[Filter], *, deep: bool = True) -> dict[str, Any]:
    """What the reading calls of a memory return."""
    out: dict[str, Any] = {"changes": memory.changes(), "count": memory.count()}
    stats: dict[str, Any] = dict(memory.stats())
    stats.pop("store", None)
    out["stats"] = stats
    out["get"] = [memory.get(each) for each in IDS]
    with memory.open_export() as export:
        out["export"] = (export.root, export.count, list(export.records))
    out["grep"] = memory.grep("java or 100")
    if not memory.scope:
        out["head"] = memory.head()
    for where in wheres:
        key = repr(where)
        out[f"count {key}"] = memory.count(where)
        out[f"grep {key}"] = memory.grep("java or new", 2, where=where)
        for order in ORDERS:
            out[f"find {order} {key}"] = memory.find(where, order=order)
            page = memory.find(where, limit=2, order=order)
            pages = [list(page)]
            while page.cursor is not None:
                page = memory.find(where, limit=2, order=order, after=page.cursor)
                pages.append(list(page))
            out[f"pages {order} {key}"] = pages
        for question in QUESTIONS:
            out[f"recall {question} {key}"] = comparable(memory.recall(question, k=3, where=where))
    out["context"] = memory.context(QUESTIONS[1], max_tokens=200).to_json()
    for user in ("ana", "bob") if deep else ():
        scoped = memory.scoped(user=user)
        out[user] = seen(scoped, wheres, deep=False)
    return out


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [key for key in one.keys() | other.keys() if one.get(key) != other.get(key)]


steps = st.one_of(
    st.tuples(st.just("put"), records(st.sampled_from(IDS))),
    st.tuples(st.just("put"), records(st.sampled_from(IDS)).map(lambda record: record.changed(user="ana"))),
    st.tuples(st.just("forget"), st.sampled_from(IDS)),
    st.tuples(st.just("sweep"), st.none()),
    st.tuples(st.just("wait"), st.integers(1, 40)),
    st.tuples(st.just("batch"), st.lists(records(st.sampled_from(IDS)), min_size=2, max_size=5)),
)


def apply(memory: recollect.Memory, clock: Clock, kind: str, value: Any) -> None:
    """Take a step of a history. A step that is refused changes nothing."""
    if kind == "wait":
        clock.time += timedelta(hours=value)
        return
    with memory.batch() as batch:
        for record in value if kind == "batch" else [value] if kind == "put" else []:
            current = batch.get(record.id)
            batch.execute(replace(remember_operation(record), expect=current.hash if current else "absent"))
        if kind == "forget" and batch.exists(value):
            batch.forget(value)
        if kind == "sweep":
            batch.execute(ops.Sweep())


def opened(path: Path | None, clock: Clock) -> recollect.Memory:
    store = MemoryStore() if path is None else SqliteStore(path)
    return memory_on(store, clock=clock, loopback=OVER_LOOPBACK)


class TestTheBit:
    @pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "sqlite"])
    @given(data=st.data())
    @settings(max_examples=some(30))
    def test_every_moment_gives_what_it_gave_when_it_was_the_present(self, on_disk: bool, data: st.DataObject) -> None:
        clock = Clock()
        wheres = [f.everything(), *data.draw(st.lists(filters(custom=not OVER_LOOPBACK), max_size=2))]
        recorded: dict[int, dict[str, Any]] = {}
        with ExitStack() as stack:
            path = Path(stack.enter_context(TemporaryDirectory())) / "a.db" if on_disk else None
            memory = stack.enter_context(opened(path, clock))
            for kind, value in data.draw(st.lists(steps, min_size=2, max_size=10)):
                seq = memory.seq
                apply(memory, clock, kind, value)
                if memory.seq > seq:
                    recorded[memory.seq] = seen(memory, wheres)
            clock.time += timedelta(days=9)
            moments = [*recorded, *recorded]
            data.draw(st.randoms(use_true_random=False)).shuffle(moments)
            present = seen(memory, wheres)
            for seq in moments:
                assert differences(seen(memory.at(seq), wheres), recorded[seq]) == []
            assert differences(seen(memory, wheres), present) == []
