"""Conversations that are passed again: the cached turns change no answer, and save reading the conversation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import Memory
from recollect.engine import bulk
from recollect.engine.scope import Scope
from recollect.engine.write import replay
from recollect.engine.write.replay import Conversation, StoredTurn, TurnCache, turns_of
from recollect.errors import RecollectError
from recollect.ledger.commits import Branch
from recollect.operations import Remember
from recollect.records.record import Record
from recollect.stores.base import Transaction
from recollect.testing.loopback import core_of

START = datetime(2024, 1, 1, tzinfo=UTC)


class Uncached(TurnCache):
    """Reads the conversation each time: what the cache must not be distinguishable from."""

    def live(self, transaction: Transaction, branch: Branch, scope: Scope, conversation: str, now: int) -> Conversation:
        records = transaction.select(branch, turns_of(scope, conversation), order="position", now=now)
        return Conversation(StoredTurn.of(record, scope) for record in records)


class World:
    """A store that two processes have open, with a clock."""

    def __init__(self, path: Path, *, cached: bool) -> None:
        self.now = START
        self.processes = [recollect.open(path, clock=lambda: self.now) for _ in range(2)]
        if not cached:
            for each in self.processes:
                core_of(each)._turns = Uncached()

    def do(self, step: tuple[Any, ...]) -> Any:
        kind, process, user, *arguments = step
        memory = self.processes[process]
        if user is not None:
            memory = memory.scoped(user=user)
        try:
            return getattr(self, kind)(memory, *arguments)
        except RecollectError as error:
            return error.code

    def replay(self, memory: Memory, conversation: str, texts: list[str], ttl: int | None) -> Any:
        return shown(memory.remember_all(turns(conversation, texts, ttl)))

    def add(self, memory: Memory, conversation: str, texts: list[str], start: int) -> Any:
        messages = [{"role": "user", "content": text} for text in texts[start:]]
        return shown(memory.add_messages(messages, conversation=conversation))

    def batch(self, memory: Memory, conversation: str, texts: list[str], number: int, undone: bool) -> Any:
        found = []
        try:
            with memory.batch() as batch:
                found.append(shown(batch.remember_all(turns(conversation, texts[:number], None))))
                self.forget(batch, conversation, number)
                found.append(shown(batch.remember_all(turns(conversation, texts, None))))
                if undone:
                    raise LookupError
        except LookupError:
            pass
        return found

    def forget(self, memory: Any, conversation: str, number: int) -> Any:
        found = memory.find(recollect.filters.conversation(conversation), order="position", limit=100)
        return memory.forget(found[number % len(found)].id) if found else None

    def update(self, memory: Memory, conversation: str, number: int, changes: dict[str, Any]) -> Any:
        found = memory.find(recollect.filters.conversation(conversation), order="position", limit=100)
        return memory.update(found[number % len(found)].id, **changes) if found else None

    def append(self, memory: Memory, conversation: str, text: str, own_id: str | None) -> Any:
        return memory.remember(text, id=own_id, kind="conversation", conversation=conversation)

    def wait(self, memory: Memory, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    def close(self) -> None:
        for each in self.processes:
            each.close()


def turns(conversation: str, texts: list[str], ttl: int | None) -> list[dict[str, Any]]:
    more = {} if ttl is None else {"ttl": ttl}
    return [{"content": text, "kind": "conversation", "conversation": conversation, **more} for text in texts]


def shown(report: recollect.Report) -> Any:
    results = [(each.status, each.record and each.record.id, each.differing) for each in report.results]
    return results, [(each.index, each.reason.code) for each in report.failed]


CONVERSATIONS = st.sampled_from(["c", "d"])
#: Mostly beginnings of one list, with repeated words; sometimes another order.
TEXTS = st.one_of(
    st.integers(1, 8).map(lambda count: ["hello", "ok", "boat", "ok", "tea", "hello", "bay", "ok"][:count]),
    st.lists(st.sampled_from(["hello", "ok", "boat", "new"]), min_size=1, max_size=5),
)
WHO = (st.integers(0, 1), st.sampled_from([None, None, "ana"]))
CHANGES = st.sampled_from(
    [
        {"content": "boat"},
        {"content": "other"},
        {"conversation": "d"},
        {"position": 0},
        {"user": "ana"},
        {"tags": ["a"]},
    ]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("replay"), *WHO, CONVERSATIONS, TEXTS, st.sampled_from([None, None, 5])),
        st.tuples(st.just("replay"), *WHO, CONVERSATIONS, TEXTS, st.none()),
        st.tuples(st.just("add"), *WHO, CONVERSATIONS, TEXTS, st.integers(0, 4)),
        st.tuples(st.just("batch"), *WHO, CONVERSATIONS, TEXTS, st.integers(0, 4), st.booleans()),
        st.tuples(st.just("forget"), *WHO, CONVERSATIONS, st.integers(0, 7)),
        st.tuples(st.just("update"), *WHO, CONVERSATIONS, st.integers(0, 7), CHANGES),
        st.tuples(st.just("append"), *WHO, CONVERSATIONS, st.sampled_from(["ok", "new"]), st.sampled_from([None, "x"])),
        st.tuples(st.just("wait"), *WHO, st.sampled_from([1, 6])),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=some(150))
@pytest.mark.filterwarnings("ignore::recollect.calls.calls.RecollectWarning")  # an id of another conversation
@given(steps=STEPS)
def test_cached_turns_change_no_outcome_and_no_root(steps: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        worlds = [World(Path(folder) / f"{cached}.db", cached=cached) for cached in (True, False)]
        try:
            for step in steps:
                cached, uncached = [world.do(step) for world in worlds]
                assert cached == uncached, step
            assert worlds[0].processes[0].root == worlds[1].processes[0].root
        finally:
            for world in worlds:
                world.close()


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """The payloads of the records that are decoded meanwhile."""
    decoded: list[bytes] = []
    load = Record.load

    def counted(data: bytes) -> Record:
        decoded.append(data)
        return load(data)

    with monkeypatch.context() as patch:
        patch.setattr(Record, "load", staticmethod(counted))
        yield decoded


def said(count: int) -> list[dict[str, Any]]:
    return turns("c", [f"message {number}" for number in range(count)], None)


def test_a_conversation_is_decoded_once_and_then_only_its_new_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all(said(2500))
    with recollect.open(tmp_path / "a.db") as memory:
        with counting(monkeypatch) as decoded:
            assert [each.status for each in memory.remember_all(said(2501)).results].count("created") == 1
        assert len(decoded) == 2500
        for number in range(2502, 2506):
            with counting(monkeypatch) as decoded:
                assert [each.status for each in memory.remember_all(said(number)).results].count("created") == 1
            assert len(decoded) == 1  # the turn that the previous call added
        with counting(monkeypatch) as decoded, memory.batch() as batch:
            batch.remember_all(said(2506))
        assert len(decoded) == 1


def test_what_another_process_changed_is_read_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(tmp_path / "a.db") as memory, recollect.open(tmp_path / "a.db") as other:
        records = [each.record for each in memory.remember_all(said(50)).results]
        memory.remember_all(said(50))
        assert records[3] is not None
        assert records[7] is not None
        other.update(records[3].id, importance=0.9)
        other.forget(records[7].id)
        other.remember_all([f"note {number}" for number in range(10)])
        with counting(monkeypatch) as decoded:
            results = memory.remember_all(said(51)).results
        assert len(decoded) == 11
        assert (results[3].record, results[7].record) == (other.get(records[3].id), None)
        assert [each.status for each in results] == ["unchanged"] * 50 + ["created"]


def test_many_changes_elsewhere_are_not_read_to_catch_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all(said(5))
        memory.remember_all(said(5))
        memory.remember_all([f"note {number}" for number in range(16)])
        with counting(monkeypatch) as decoded:
            memory.remember_all(said(5))
        assert len(decoded) == 5


def test_a_store_that_was_restored_from_a_copy_is_read_again(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "copy.db"
    with recollect.open(path) as memory:
        memory.remember_all(said(3))
        memory.backup(copy)
        memory.remember_all(said(5))
        cache = core_of(memory)._turns
        memory.remember_all(said(5))
        cached = cache.entry((Branch("default"), Scope(), "c")).value
        assert cached is not None
        assert len(cached.turns) == 5
    shutil.copy(copy, path)
    with recollect.open(path) as memory:
        for number in range(3):
            memory.remember("another history", id=f"x{number}")
        core_of(memory)._turns = cache
        results = memory.remember_all(said(5)).results
        assert [each.status for each in results] == ["unchanged"] * 3 + ["created"] * 2


def test_a_turn_that_expired_since_it_was_cached_stays_away() -> None:
    now = START
    with recollect.open(":memory:", clock=lambda: now) as memory:
        first, *others = turns("c", ["one", "two", "three"], None)
        memory.remember_all([{**first, "ttl": 5}, *others])
        memory.remember_all([first, *others])
        now += timedelta(seconds=6)
        results = memory.remember_all([first, *others]).results
        assert [each.status for each in results] == ["unchanged"] * 3
        assert [each.record is None for each in results] == [True, False, False]


@pytest.mark.parametrize("in_a_commit", [1, 100])
def test_a_turn_that_the_same_list_changes_first_is_reported_as_it_is(
    monkeypatch: pytest.MonkeyPatch, in_a_commit: int
) -> None:
    monkeypatch.setattr(bulk, "BULK", in_a_commit)
    with recollect.open(":memory:") as memory:
        ids = [each.record.id for each in memory.remember_all(said(3)).results if each.record is not None]
        change = Remember(content="message 1", id=ids[1], fields={"importance": 0.9}, if_exists="update")
        results = memory.remember_all([change, *said(3)]).results
        assert [each.record for each in results[1:]] == [memory.get(each) for each in ids]
        assert results[2].record is not None
        assert results[2].record.importance == 0.9


def test_new_conversations_are_not_cached_before_they_have_turns() -> None:
    with recollect.open(":memory:") as memory:
        memory.remember_all([turns(f"c{number}", ["hello"], None)[0] for number in range(50)])
        assert len(core_of(memory)._turns.entries) == 0
        memory.remember_all(turns("c7", ["hello", "again"], None))
        assert len(core_of(memory)._turns.entries) == 1


def test_the_cached_turns_stay_within_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        cached = core_of(memory)._turns.entries
        memory.remember_all(said(100))
        memory.remember_all(said(100))
        assert 100 * replay._TURN_BYTES < cached.nbytes < 100 * (replay._TURN_BYTES + 1000)
        monkeypatch.setattr(replay, "_CACHED_BYTES", cached.nbytes - 1)
        memory.remember("a note")
        memory.remember_all(said(101))
        assert len(cached) == 0
        assert [each.status for each in memory.remember_all(said(101)).results] == ["unchanged"] * 101
