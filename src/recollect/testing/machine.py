"""A memory against a model: any order of calls, restarts included, must do what a dict would.

The model is as obvious as can be: id -> record, and a list of what each commit left. After every step the memory must
hold just that, its root must be the one computed from the definition, and recall must give what a memory made anew
from the same records gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recollect import filters as f
from recollect.engine.engine import Engine
from recollect.engine.write.drafts import Intake
from recollect.errors import ConflictError, UnknownRecordError
from recollect.filters.tree import Filter
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import root_of, version_hash
from recollect.memory.calls import remember_operation
from recollect.memory.memory import Memory
from recollect.operations import Remember
from recollect.records.record import Record
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.testing.strategies import filters, names, records, texts


class TickingClock:
    """A clock that moves on by a second at each look, so that runs repeat to the bit."""

    def __init__(self, start: datetime = datetime(2026, 1, 3, tzinfo=UTC)) -> None:
        self.time = start

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


def memory_on(
    store: Store, namespace: str = "default", clock: Callable[[], datetime] | None = None, **intake: Any
) -> Memory:
    """A memory on a store of your own."""
    return Memory(Engine(store, clock or TickingClock(), Intake(**intake)), Branch(namespace))


IDS = st.sampled_from([f"r{number}" for number in range(6)])


def memory_machine(
    open_store: Callable[[], Store], reopen: Callable[[Store], Store] | None = None
) -> type[RuleBasedStateMachine]:
    """A state machine for a memory on the store that `open_store` makes.

    reopen  closes a store and opens it again; None where a restart loses everything
    """

    class MemoryMachine(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.clock = TickingClock()
            self.store = open_store()
            self.memory = memory_on(self.store, clock=self.clock)
            self.model: dict[str, Record] = {}
            self.seq = 0

        def _committed(self, before: dict[str, Record]) -> None:
            """A commit sweeps what is due, except what it wrote itself."""
            if before != self.model:
                self.seq += 1
                for record_id, record in list(self.model.items()):
                    if before.get(record_id) == record and not self._live(record_id):
                        del self.model[record_id]

        def _live(self, record_id: str) -> Record | None:
            """The model's record, unless it is due. (The clock moves by seconds; records expire at midnights.)"""
            record = self.model.get(record_id)
            due = record is not None and record.expires is not None and record.expires <= self.clock.time
            return None if due else record

        @rule(record=records(IDS), exact=st.booleans())
        def remember_over(self, record: Record, exact: bool) -> None:
            """Remember a whole record under its id, replacing what is there."""
            before = dict(self.model)
            held = self._live(record.id)
            wanted = _remember(record, expect=held.hash if held else "absent", exact=exact)
            got = self.memory.execute(wanted).record
            if not exact:
                # What the memory adds by itself is a time, and a place where the record is a turn.
                record = record.changed(time=record.time or got.time)
                if record.kind == "conversation" and record.conversation:
                    record = record.changed(position=got.position if record.position is None else record.position)
            self.model[record.id] = record
            assert got == record
            self._committed(before)
            if not self._live(record.id):
                return  # it came expired
            try:
                self.memory.execute(wanted)
            except ConflictError as error:
                assert (error.current, error.satisfied) == (got.hash, True)
            else:
                assert held == got, "it was there already, and the expectation held"

        @rule(text=texts, user=names)
        def remember_twice(self, text: str, user: str) -> None:
            """The same fact twice is held once."""
            before = dict(self.model)
            first = self.memory.remember(text, user=user, kind="fact")
            self.model[first.id] = first
            self._committed(before)
            assert self.memory.remember(text, user=user, kind="fact") == first

        @rule(record_id=IDS, text=texts)
        def update(self, record_id: str, text: str) -> None:
            before = dict(self.model)
            held = self._live(record_id)
            try:
                got = self.memory.update(record_id, content=text, media_type=None)
            except UnknownRecordError:
                assert held is None
                return
            assert held is not None
            wanted = held.changed(content=text, media_type=None)
            self.model[record_id] = wanted
            assert got == wanted
            self._committed(before)

        @rule(record_id=IDS, text=texts)
        def update_with_a_stale_expectation(self, record_id: str, text: str) -> None:
            held = self._live(record_id)
            if held is None or (held.content == text and held.media_type is None):
                return
            try:
                self.memory.update(record_id, content=text, media_type=None, expect="0" * 64)
            except ConflictError as error:
                assert error.current == held.hash
            else:
                raise AssertionError("a stale expectation must be refused")

        @rule(record_id=IDS)
        def forget(self, record_id: str) -> None:
            before = dict(self.model)
            held = self._live(record_id)
            try:
                forgotten = self.memory.forget(record_id)
            except UnknownRecordError:
                assert held is None
                return
            assert forgotten == (held is not None)
            self.model.pop(record_id, None)  # also where it is due
            self._committed(before)

        @rule(where=filters())
        def forget_where(self, where: Filter) -> None:
            before = dict(self.model)
            gone = [each for each in list(self.model) if self._live(each) and where.matches(self.model[each])]
            assert self.memory.forget_where(where) == len(gone)
            for record_id in before:
                if where.matches(before[record_id]):  # also where it is due
                    del self.model[record_id]
            self._committed(before)

        @rule()
        def clear(self) -> None:
            before = dict(self.model)
            assert self.memory.clear() == sum(self._live(record_id) is not None for record_id in before)
            self.model.clear()
            self._committed(before)

        @rule(batch=st.lists(records(IDS), max_size=4, unique_by=lambda record: record.id), fails=st.booleans())
        def batch(self, batch: list[Record], fails: bool) -> None:
            """A batch is one commit, or none at all."""
            before = dict(self.model)
            staged: dict[str, Record] = {}
            try:
                with self.memory.batch(reason="batch") as inside:
                    for record in batch:
                        held = inside.get(record.id)
                        outcome = inside.execute(_remember(record, held.hash if held else "absent", exact=False))
                        staged[record.id] = outcome.record
                        assert inside.get(record.id) == outcome.record or outcome.record.expires is not None
                    if fails:
                        raise _GivenUp
            except _GivenUp:
                return
            self.model.update(staged)
            self._committed(before)

        @rule()
        def restart(self) -> None:
            if reopen is not None:
                self.memory.close()
                self.store = reopen(self.store)
                self.memory = memory_on(self.store, clock=self.clock)

        @rule(question=texts, where=filters())
        def recall(self, question: str, where: Filter) -> None:
            """Recall is a pure function of what is live: a memory made anew gives the same hits and scores."""
            live = [record for record in self.model.values() if self._live(record.id)]
            anew = MemoryStore(key=self.store.key)
            again = memory_on(anew, clock=TickingClock(self.clock.time))
            again.remember_all(live)
            got, wanted = self.memory.recall(question, 20, where), again.recall(question, 20, where)
            assert [(hit.record, hit.score, hit.why) for hit in got] == [
                (hit.record, hit.score, hit.why) for hit in wanted
            ]
            again.close()

        @rule(question=texts, user=names)
        def recall_within_a_scope(self, question: str, user: str) -> None:
            """A scope is as if there were nothing else: not a word, a length or a name of others has a part in it."""
            live = [record for record in self.model.values() if self._live(record.id) and record.user == user]
            again = memory_on(MemoryStore(key=self.store.key), clock=TickingClock(self.clock.time))
            again.remember_all(live)
            got, wanted = self.memory.scoped(user=user).recall(question, 20), again.recall(question, 20)
            assert [(hit.record, hit.score, hit.confidence, hit.why) for hit in got] == [
                (hit.record, hit.score, hit.confidence, hit.why) for hit in wanted
            ]
            again.close()

        @rule(where=filters())
        def find(self, where: Filter) -> None:
            wanted = {each for each in self.model if self._live(each) and where.matches(self.model[each])}
            assert {record.id for record in self.memory.find(where, order="id")} == wanted
            assert self.memory.count(where) == len(wanted)

        @invariant()
        def the_same_is_held(self) -> None:
            if not hasattr(self, "memory"):
                return
            held = {record.id: record for record in self.memory.find(f.everything())}
            assert held == {record_id: record for record_id, record in self.model.items() if self._live(record_id)}
            versions = {
                each: version_hash(each, record.to_bytes(), self.store.key) for each, record in self.model.items()
            }
            assert self.memory.root == root_of(versions).hex()
            assert self.memory.seq == self.seq

        def teardown(self) -> None:
            if hasattr(self, "memory"):
                assert self.memory.check() == []
                log = self.memory.changes()
                assert [commit.seq for commit in log] == list(range(1, self.seq + 1))
                self.memory.close()

    return MemoryMachine


class _GivenUp(Exception):
    pass


def _remember(record: Record, expect: str, exact: bool) -> Remember:
    return replace(remember_operation(record), expect=expect, exact=exact)
