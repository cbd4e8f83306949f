"""A follower is at the view that it is asked for, whatever happened to the log, and costs what the log touched."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

from recollect.engine.follower import Follower, RecordFollower, changed_since, in_history
from recollect.ledger.commits import Branch, Head
from recollect.records.record import Record
from recollect.stores.base import View
from recollect.stores.memory import MemoryStore
from recollect.testing.commits import note, write

BRANCH = Branch("tenant")


class ScopedKey(NamedTuple):
    """A key with more than a branch."""

    branch: Branch
    scope: str


class Texts(Follower[Branch, dict[str, str]]):
    """The texts of all records by id, with what was read to know them."""

    def __init__(self, budget_bytes: int = 2**30) -> None:
        super().__init__(budget_bytes)
        self.started: list[str] = []
        self.read: list[str] = []
        self.fails = False

    def start(self, view: View, branch: Branch, key: Branch) -> dict[str, str]:
        self.started.append(branch.namespace)
        return {record_id: text_of(stored.payload) for record_id, stored in view.versions(branch)}

    def catch_up(
        self, value: dict[str, str], view: View, branch: Branch, key: Branch, tag: tuple[int, bytes]
    ) -> dict[str, str]:
        out = dict(value)
        for record_id in view.changed(branch, tag[0]):
            self.read.append(record_id)
            stored = view.get(branch, record_id)
            out.pop(record_id, None)
            if stored is not None:
                out[record_id] = text_of(stored.payload)
        if self.fails:
            raise KeyboardInterrupt
        return out

    def nbytes(self, value: dict[str, str]) -> int:
        return 100 * len(value)


def text_of(payload: bytes) -> str:
    return str(Record.load(payload).content)


def texts(view: View, branch: Branch = BRANCH) -> dict[str, str]:
    return {record_id: text_of(stored.payload) for record_id, stored in view.versions(branch)}


def value_at(follower: Texts, view: View, branch: Branch = BRANCH) -> dict[str, str]:
    entry = follower.at(view, branch, branch)
    assert entry is not None
    assert entry.value is not None
    return entry.value


writes = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(("one", "two", None)), st.booleans()), min_size=1, max_size=12
)


@given(writes)
@settings(max_examples=some(60))
def test_a_follower_is_at_each_view_and_reads_what_was_changed(steps: list[tuple[str, str | None, bool]]) -> None:
    store, follower = MemoryStore(), Texts()
    changed: set[str] = set()
    for record_id, content, looks in steps:
        with store.read() as view:
            live = view.get(BRANCH, record_id) is not None
        if content is not None:
            write(store, [note(record_id, content)])
        elif live:
            write(store, drops=[record_id])
        else:
            continue
        changed.add(record_id)
        if looks:
            follower.read.clear()
            with store.read() as view:
                assert value_at(follower, view) == texts(view)
            if len(follower.started) > 1 or follower.read:
                assert set(follower.read) == changed
            changed.clear()
    assert len(follower.started) <= 1


def test_a_view_that_is_older_than_the_value_gets_none_and_the_writer_starts_over() -> None:
    store, other, follower = MemoryStore(), MemoryStore(), Texts()
    write(store, [note("a")])
    write(store, [note("b")])
    write(other, [note("a")])
    with store.read() as view:
        value_at(follower, view)
    with other.read() as older:
        assert follower.at(older, BRANCH, BRANCH) is None
        entry = follower.at(older, BRANCH, BRANCH, newest=True)
        assert entry is not None
        assert entry.value == {"a": "text"}
    assert len(follower.started) == 2


def test_a_value_of_another_history_is_started_over() -> None:
    one, other, follower = MemoryStore(), MemoryStore(), Texts()
    write(one, [note("a", "one")])
    for text in ("other", "changed", "again"):
        write(other, [note("a", text)])
    with one.read() as view:
        assert value_at(follower, view) == {"a": "one"}
    with other.read() as view:
        assert value_at(follower, view) == {"a": "again"}
        assert changed_since(view, BRANCH, 1, one_root(one)) is None
        assert changed_since(view, BRANCH, 0, b"") is None
        assert changed_since(view, BRANCH, 9, view.head(BRANCH).root.hash) is None
        assert changed_since(view, BRANCH, 3, view.head(BRANCH).root.hash) == []
        first = view.root_at(BRANCH, 1)
        assert first is not None
        assert changed_since(view, BRANCH, 1, first) == ["a"]
        assert in_history(view, BRANCH, 1, first)
        assert not in_history(view, BRANCH, 2, first)


def one_root(store: MemoryStore) -> bytes:
    with store.read() as view:
        return view.head(BRANCH).root.hash


def test_a_value_whose_catching_up_was_interrupted_is_not_used_again() -> None:
    store, follower = MemoryStore(), Texts()
    write(store, [note("a")])
    with store.read() as view:
        value_at(follower, view)
    write(store, [note("b")])
    follower.fails = True
    with store.read() as view, pytest.raises(KeyboardInterrupt):
        follower.at(view, BRANCH, BRANCH)
    assert not list(follower.entries)
    follower.fails = False
    with store.read() as view:
        assert value_at(follower, view) == {"a": "text", "b": "text"}
    assert len(follower.started) == 2


def test_the_least_recently_used_values_are_evicted_and_one_always_stays() -> None:
    store, follower = MemoryStore(), Texts(250)
    branches = [Branch(name) for name in "abc"]
    for branch in branches:
        write(store, [note("x")], branch=branch)
    with store.read() as view:
        for branch in [*branches, branches[0]]:
            value_at(follower, view, branch)
        assert list(follower.entries) == [branches[2], branches[0]]
        assert follower.entries.nbytes == 200
        write_many = [note(str(number)) for number in range(5)]
    write(store, write_many, branch=branches[1])
    with store.read() as view:
        value_at(follower, view, branches[1])
    assert list(follower.entries) == [branches[1]]


class Empty:
    """A value that says that it takes no memory."""

    nbytes = 0


def followed(budget_bytes: int, keys: list[ScopedKey]) -> RecordFollower[ScopedKey, Any]:
    """Return a follower after it was asked for a value of each key."""
    store, follower = MemoryStore(), RecordFollower[ScopedKey, Any](budget_bytes, lambda _view, _key, _now: Empty())
    for key in keys:
        write(store, [note("x")], branch=key.branch)
    with store.read() as view:
        for key in keys:
            follower.at(view, key.branch, key)
    return follower


def test_what_is_cached_of_a_branch_is_dropped_whatever_its_scope_and_nothing_else() -> None:
    keys = [ScopedKey(Branch(name), scope) for name in "ab" for scope in ("", "user")]
    follower = followed(2**20, keys)
    assert list(follower.entries) == keys
    follower.drop_of(Branch("a"))
    assert list(follower.entries) == keys[2:]


def test_values_of_no_size_are_evicted_too() -> None:
    keys = [ScopedKey(Branch("a"), str(number)) for number in range(50)]
    assert keys[-1:] == list(followed(1, keys).entries)
    assert 2 < len(list(followed(10_000, keys).entries)) < 20


def test_a_value_that_was_taken_is_gone_until_it_is_put_back() -> None:
    store, follower = MemoryStore(), Texts()
    write(store, [note("a")])
    with store.read() as view:
        value = follower.take(view, BRANCH, BRANCH)
        assert not list(follower.entries)
        follower.put(BRANCH, value, view.head(BRANCH))
        assert value_at(follower, view) is value
    assert len(follower.started) == 1


def test_a_value_that_is_saved_elsewhere_is_loaded_and_caught_up() -> None:
    class Saved(Texts):
        saved: tuple[dict[str, str], int, bytes] | None = None

        def load(self, view: View, branch: Branch, key: Branch) -> tuple[dict[str, str], int, bytes] | None:
            return self.saved

    store, follower = MemoryStore(), Saved()
    write(store, [note("a")])
    with store.read() as view:
        head = view.head(BRANCH)
        follower.saved = (texts(view), head.seq, head.root.hash)
    write(store, [note("b")])
    with store.read() as view:
        assert value_at(follower, view) == {"a": "text", "b": "text"}
    assert (follower.started, follower.read) == ([], ["b"])
    follower.drop(BRANCH)
    follower.saved = ({"z": "of another history"}, 1, b"x" * 32)
    with store.read() as view:
        assert value_at(follower, view) == {"a": "text", "b": "text"}
    assert len(follower.started) == 1


def test_threads_get_the_same_value_which_is_derived_once() -> None:
    store, follower = MemoryStore(), Texts()
    write(store, [note(str(number)) for number in range(50)])
    found: list[Any] = []

    def look() -> None:
        with store.read() as view:
            found.append(value_at(follower, view))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(follower.started) == 1
    assert all(each is found[0] for each in found)


def test_an_empty_branch_has_an_empty_value() -> None:
    follower = Texts()
    with MemoryStore().read() as view:
        assert view.head(BRANCH) == Head()
        assert value_at(follower, view) == {}
