"""A memory of a past moment gives what the memory gave when that moment was the present, to the bit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import OVER_LOOPBACK
from tests.examples import FULL, some

import recollect
from recollect import filters as f
from recollect import operations as ops
from recollect.calls.calls import remember_operation
from recollect.engine import readers
from recollect.engine.index import past as past_module
from recollect.engine.results import Hits
from recollect.errors import (
    InvalidArgumentError,
    InvalidOperationError,
    NoMemoryError,
    ReadOnlyMemoryError,
    RecollectError,
    ScopeError,
    UnknownTargetError,
)
from recollect.filters import Filter
from recollect.ledger.commits import Branch, Head
from recollect.memory.awaited import AsyncMemory
from recollect.models.embedding.hashed import Hashed
from recollect.operations import ORDERS, Now, Probe, Wait
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import filters, memory_on, records
from recollect.testing.commits import snapshot
from recollect.testing.loopback import core_of
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
    """Everything of hits but the notes, which also state what is of the present, which kernels answered, and when."""
    reported = hits.to_json()
    del reported["reference"], reported["time"]
    reported.pop("notes", None)
    del reported["plan"]["notes"], reported["plan"]["kernels"]
    return reported


def seen(memory: recollect.Memory, wheres: list[Filter], *, deep: bool = True) -> dict[str, Any]:
    """Return the results of the reading calls of a memory."""
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
        if kind == "forget" and batch.get(value) is not None:
            batch.forget(value)
        if kind == "sweep":
            batch.execute(ops.Sweep())


def opened(path: Path | None, clock: Clock) -> recollect.Memory:
    store = MemoryStore() if path is None else SqliteStore(path)
    return memory_on(store, clock=clock, loopback=OVER_LOOPBACK)


class TestTheBit:
    @pytest.mark.parametrize("on_disk", [False, True] if FULL else [True], ids=str)
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


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    with opened(None if request.param == "memory" else tmp_path / "a.db", Clock()) as made:
        yield made


def clock_of(memory: recollect.Memory) -> Clock:
    clock = core_of(memory).clock
    assert isinstance(clock, Clock)
    return clock


def history(memory: recollect.Memory) -> None:
    """Three commits, a day apart: a, then b, then a changed."""
    memory.remember("Ana prefers window seats", id="a", user="ana")
    clock_of(memory).time += timedelta(days=1)
    memory.remember("Bob collects stamps", id="b", user="bob")
    clock_of(memory).time += timedelta(days=1)
    memory.update("a", content="Ana prefers aisle seats")
    clock_of(memory).time += timedelta(days=1)


class TestTargets:
    def test_a_seq_a_time_and_a_root_name_the_same_moment(self, memory: recollect.Memory) -> None:
        history(memory)
        for seq in (1, 2, 3):
            time = START + timedelta(days=seq - 1)
            root = memory.at(seq).root
            for target in (seq, time, time + timedelta(hours=23, minutes=59), root, root.upper()):
                past = memory.at(target)
                assert (past.seq, past.root, past.count()) == (seq, root, min(seq, 2))
        assert memory.at(3).head() == memory.head()

    def test_before_the_first_commit_the_memory_is_empty(self, memory: recollect.Memory) -> None:
        empty = memory.head().root
        history(memory)
        for target in (0, START - timedelta(microseconds=1)):
            past = memory.at(target)
            assert (past.head()[:2], past.count(), past.find(), past.changes(), len(past.recall("seats"))) == (
                (0, empty),
                0,
                [],
                [],
                0,
            )

    def test_the_moment_before_the_first_commit_is_just_before_it_also_elsewhere(
        self, memory: recollect.Memory
    ) -> None:
        memory.namespace("earlier").remember("tea")
        clock_of(memory).time += timedelta(days=1)
        memory.namespace("later").remember("tea")
        clock_of(memory).time += timedelta(days=1)
        past = memory.namespace("later").at(0)
        assert past.execute(Now()) == START + timedelta(days=1) - timedelta(microseconds=1)
        assert past.namespaces() == ["earlier"]
        assert past.namespace("earlier").count() == 1

    def test_a_namespace_without_commits_has_the_moment_before_the_first(self, memory: recollect.Memory) -> None:
        assert memory.at(0).head() == memory.at(memory.root).head() == memory.at(START).head() == memory.head()
        with pytest.raises(UnknownTargetError):
            memory.at(1)

    def test_a_time_in_the_future_is_the_present(self, memory: recollect.Memory) -> None:
        memory.remember("soon over", id="a", expires=START + timedelta(days=2))
        past = memory.at(START + timedelta(days=5))
        assert past.execute(Now()) == START
        assert past.get("a") is not None
        clock_of(memory).time += timedelta(days=3)
        assert memory.at(START + timedelta(days=1)).get("a") is not None
        assert memory.at(START + timedelta(days=2)).get("a") is None, (
            "the time that was passed decides what had expired"
        )

    def test_of_equal_roots_the_newest_commit_counts(self, memory: recollect.Memory) -> None:
        memory.remember("tea", id="a", time=START)
        root = memory.root
        memory.remember("coffee", id="b")
        memory.forget("b")
        assert memory.root == root
        assert memory.at(root).seq == 3

    def test_a_snapshot_is_named_or_counted_from_the_newest(self, memory: recollect.Memory) -> None:
        history(memory)
        store, branch = core_of(memory).store, Branch("default")
        for number, (name, seq) in enumerate((("monday", 1), (None, 3), ("start", 0)), start=1):
            with store.write(branch) as transaction:
                head = transaction.head_at(branch, seq) or Head()
                transaction.put_snapshot(branch, snapshot(number, head, name))
        assert [memory.at(each).seq for each in ("monday", "start")] == [1, 0]
        assert [memory.at(index=each).seq for each in (0, 1, 2)] == [0, 3, 1]
        for index in (3, -1):
            with pytest.raises(UnknownTargetError, match=f"snapshot {index}"):
                memory.at(index=index)

    @pytest.mark.parametrize("target", [4, -1, "0" * 64, "friday", "3"])
    def test_an_unknown_target_is_an_error_that_changes_nothing(self, memory: recollect.Memory, target: Any) -> None:
        history(memory)
        before = memory.head()
        with pytest.raises(UnknownTargetError) as caught:
            memory.at(target)
        assert repr(target) in str(caught.value)
        with pytest.raises(UnknownTargetError, match="snapshot 0"):
            memory.at(index=0)
        assert memory.head() == before

    @pytest.mark.parametrize("target", [None, True, 1.5, datetime(2026, 1, 1), b"x", " "])
    def test_what_is_no_target_is_an_invalid_argument(self, memory: recollect.Memory, target: Any) -> None:
        with pytest.raises(InvalidArgumentError):
            memory.at(target)

    def test_either_a_target_or_an_index_is_passed(self, memory: recollect.Memory) -> None:
        with pytest.raises(InvalidArgumentError):
            memory.at(1, index=0)
        with pytest.raises(InvalidArgumentError):
            ops.Pin(seq=1, index=0)
        with pytest.raises(InvalidArgumentError):
            ops.Pin(seq="1")  # type: ignore[arg-type]

    def test_a_moment_within_a_moment_is_refused(self) -> None:
        head = ops.At(moment="x", operation=ops.ReadHead())
        for inner in (head, ops.Pin(seq=0), "head"):
            with pytest.raises(InvalidOperationError):
                ops.At(moment="x", operation=inner)  # type: ignore[arg-type]

    def test_a_moment_of_a_past_memory_is_found_in_the_whole_history(self, memory: recollect.Memory) -> None:
        history(memory)
        assert memory.at(1).at(3).seq == 3

    def test_a_token_of_another_namespace_or_store_is_refused(self, memory: recollect.Memory) -> None:
        history(memory)
        moment = memory.execute(ops.Pin(seq=1))
        assert moment.time == START
        get = ops.At(moment=moment.token, operation=ops.Get(id="a"))
        assert memory.execute(get).text == "Ana prefers window seats"
        for other in (memory.namespace("other"), memory_on(MemoryStore())):
            with pytest.raises(InvalidArgumentError, match="must be the token of a moment"):
                other.execute(get)

    def test_later_commits_do_not_change_what_it_shows(self, memory: recollect.Memory) -> None:
        history(memory)
        past = memory.at(clock_of(memory).time)
        shown = seen(past, [f.user("ana")])
        memory.clear()
        memory.remember("java", id="a", user="ana")
        assert differences(seen(past, [f.user("ana")]), shown) == []

    @pytest.mark.files
    def test_a_store_that_was_replaced_by_another_history_is_noticed(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db") as memory:
            memory.remember("one", id="a")
            memory.backup(tmp_path / "backup.db")
            memory.remember("two", id="b")
            gone = memory.execute(ops.Pin(seq=2))
        recollect.restore(tmp_path / "backup.db", tmp_path / "a.db", force=True)
        with recollect.open(tmp_path / "a.db") as memory:
            for operation in (ops.Get(id="a"), ops.Find(), ops.Grep(query="one"), ops.Recall(question="one")):
                with pytest.raises(UnknownTargetError, match="another history"):
                    memory.execute(ops.At(moment=gone.token, operation=operation))
            memory.remember("other", id="b")
            with pytest.raises(UnknownTargetError, match="another history"):
                memory.execute(ops.At(moment=gone.token, operation=ops.Get(id="a")))


class TestReadOnly:
    def test_every_call_that_writes_or_waits_is_refused(self, memory: recollect.Memory) -> None:
        history(memory)
        before, past = memory.head(), memory.at(2)
        calls: dict[str, Callable[[recollect.Memory], Any]] = {
            "remember": lambda m: m.remember("x"),
            "remember_all": lambda m: m.remember_all(["x"]),
            "add_messages": lambda m: m.add_messages([{"role": "user", "content": "x"}]),
            "update": lambda m: m.update("a", content="x"),
            "forget": lambda m: m.forget("a"),
            "forget_where": lambda m: m.forget_where(f.user("ana")),
            "clear": lambda m: m.clear(),
            "sweep": lambda m: m.sweep(),
            "set_quota": lambda m: m.set_quota(records=1),
            "batch": lambda m: m.batch().__enter__(),
            "a batch operation": lambda m: m.execute(ops.ExecuteBatch(operations=())),
            "listen": lambda m: m.listen(print),
            "subscribe": lambda m: m.subscribe(),
            "wait": lambda m: m.execute(Wait(since=0, timeout=0)),
            "backup": lambda m: m.backup("x"),
            "check": lambda m: m.check(),
            "embed_all": lambda m: m.embed_all(),
            "vector_stats": lambda m: m.vector_stats(),
            "probe": lambda m: m.execute(Probe()),
            "wait_for_vectors": lambda m: m.recall("seats", wait_for_vectors=True),
            "close": lambda m: m.close(),
        }
        for name, call in calls.items():
            with pytest.raises(ReadOnlyMemoryError, match="is not possible with a memory of a past moment"):
                call(past)
                pytest.fail(f"{name} is not refused")
        assert memory.head() == before

    def test_the_end_of_its_block_does_not_close_the_store(self, memory: recollect.Memory) -> None:
        history(memory)
        with memory.at(1) as past:
            assert past.count() == 1
        assert memory.count() == 2
        assert "as of 2026-01-01T00:00:00+00:00" in repr(past)

    def test_it_raises_when_the_store_is_closed(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db") as memory:
            memory.remember("one")
            past = memory.at(1)
            memory.remember("two")
        for call in (past.count, past.find, past.head):
            with pytest.raises(recollect.errors.ClosedError):
                call()

    @pytest.mark.in_process
    def test_an_export_of_the_past_ends_with_the_store_and_keeps_no_view_open(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db") as memory:
            memory.remember_all(f"note {n}" for n in range(readers._PAGE + 1))
            export = memory.at(1).open_export()
            next(export.records)
            memory.clear()
            for _ in range(readers._PAGE - 1):
                next(export.records)
        with pytest.raises(recollect.errors.ClosedError):
            next(export.records)

    def test_reading_the_past_is_no_use_of_a_record(self, memory: recollect.Memory) -> None:
        memory.set_quota(records=2, when_full="least recent")
        history(memory)  # a was written last
        past = memory.at(2)
        clock_of(memory).time += timedelta(days=1)
        assert past.get("b") is not None
        assert past.recall("stamps")
        memory.remember("a third", id="c")
        assert [memory.get(each) is not None for each in "abc"] == [True, False, True]


class TestScopes:
    def test_scopes_and_moments_combine_in_both_orders(self, memory: recollect.Memory) -> None:
        history(memory)
        time = START + timedelta(days=1, hours=1)
        for past in (
            memory.scoped(user="ana").at(time),
            memory.at(2).scoped(user="ana"),
            memory.at(time).scoped(user="ana"),
        ):
            assert [record.text for record in past.find()] == ["Ana prefers window seats"]
            assert [hit.record.id for hit in past.recall("seats stamps")] == ["a"]
            assert past.grep("stamps") == []
            assert [change.id for commit in past.changes() for change in commit.changes] == ["a"]
            assert past.get("b") is None
            assert "seq" not in past.stats()
            with pytest.raises(ScopeError):
                past.head()
            with pytest.raises(ScopeError):
                past.namespace("other")

    def test_a_scope_shows_what_lay_in_it_then(self, memory: recollect.Memory) -> None:
        history(memory)
        memory.update("b", user="ana")
        ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
        clock_of(memory).time += timedelta(days=1)
        time = START + timedelta(days=2)
        assert (ana.count(), bob.count(), ana.at(time).count(), bob.at(time).count()) == (2, 0, 1, 1)
        assert bob.at(time).get("b") is not None

    def test_in_a_scope_a_cursor_is_the_newest_commit_that_it_sees(self, memory: recollect.Memory) -> None:
        history(memory)
        ana = memory.scoped(user="ana")
        first, second = ana.changes()
        assert [ana.at(each.cursor).find()[0].text[12:] for each in (first, second)] == ["window seats", "aisle seats"]
        clock_of(memory).time += timedelta(days=1)
        memory.remember("Bob likes trains", user="bob")
        past = ana.at(ana.recall("seats").cursor)
        assert past.execute(Now()) == second.time, "the time of a commit of others is not shown"
        assert [record.text for record in past.find()] == ["Ana prefers aisle seats"]
        assert memory.scoped(user="cleo").at(memory.scoped(user="cleo").recall("x").cursor).count() == 0

    @pytest.mark.parametrize("target", [1, -1, "0" * 64])
    def test_in_a_scope_a_seq_and_a_root_are_refused(self, memory: recollect.Memory, target: Any) -> None:
        history(memory)
        with pytest.raises(ScopeError):
            memory.scoped(user="ana").at(target)
        with pytest.raises(InvalidArgumentError):
            memory.scoped(user="ana").at("friday")
        with pytest.raises(ScopeError):
            memory.scoped(user="ana").at(index=0)
        assert memory.scoped(user="ana").at(0).count() == 0

    def test_another_namespace_is_read_as_of_the_same_time(self, memory: recollect.Memory) -> None:
        history(memory)
        other = memory.namespace("other")
        other.remember("tea", id="t")
        assert memory.at(3).namespace("other").count() == 0
        assert memory.at(clock_of(memory).time).namespace("other").count() == 1
        assert memory.at(3).namespaces() == ["default"]
        assert memory.at(clock_of(memory).time).namespaces() == ["default", "other"]


class TestIndexes:
    """The indexes of the past do not change those of the present, and start from the nearest."""

    def test_the_index_of_the_present_is_neither_changed_nor_replaced(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", embedder=Hashed()) as memory:
            memory.remember_all({"content": f"note {n} of the harbour", "id": f"n{n}"} for n in range(300))
            for n in range(200):
                memory.update(f"n{n}", content=f"changed {n}")
            memory.embed_all()
            hits = memory.recall("harbour 250")
            core = core_of(memory)
            assert core.vectors is not None
            entry = core.keeper.entries.get(Branch("default"))
            assert entry is not None
            index, (vectors,) = entry.value, core.vectors._cached
            matrix = core.vectors._cached.peek(vectors)
            for seq in (1, 50, 150, 2, 120):
                past = memory.at(seq).recall("harbour 250")
                assert past[0].record.id == "n250"
                assert "dense" in past[0].why.shares
                assert past.plan.notes == ("the dense signal uses the vectors that are stored now",)
                assert past.plan.vectors == seq
            assert core.keeper.entries.get(Branch("default")) is entry
            assert entry.value is index
            assert core.vectors._cached.peek(vectors) is matrix
            assert memory.recall("harbour 250") == hits

    def test_vectors_of_the_past_are_found_before_any_recall_of_the_present(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", embedder=Hashed()) as memory:
            memory.remember("lighthouse stamps", id="a")
            memory.embed_all()
            recorded = comparable(memory.recall("lighthouses"))
            memory.remember("window seats", id="b")
            memory.embed_all()
            present = memory.recall("lighthouses")
        with recollect.open(tmp_path / "a.db", embedder=Hashed()) as memory:
            assert comparable(memory.at(1).recall("lighthouses")) == recorded
            assert memory.recall("lighthouses") == present
            assert comparable(memory.at(1).recall("lighthouses")) == recorded

    def test_vectors_that_are_made_later_are_used_for_the_past_as_for_the_present(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", embedder=Hashed()) as memory:
            memory.remember("lighthouse stamps", id="a")
            memory.embed_all()
            memory.remember("lighthouse keepers", id="b")
            memory.forget("b")
            past = memory.at(2)
            without = {hit.record.id: "dense" in hit.why.shares for hit in past.recall("lighthouses")}
            assert without == {"a": True, "b": False}
            memory.remember("lighthouse keepers", id="c")
            memory.embed_all()  # equal texts share a vector
            assert {hit.record.id: "dense" in hit.why.shares for hit in past.recall("lighthouses")} == {
                "a": True,
                "b": True,
            }

    @pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "sqlite"])
    def test_the_next_moment_starts_from_the_nearest_index(
        self, on_disk: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        undone: list[int] = []
        real = past_module.past_records

        def counting(view: Any, branch: Branch, versions: Any) -> Any:
            undone.append(len(versions))
            return real(view, branch, versions)

        monkeypatch.setattr(past_module, "past_records", counting)
        with opened(tmp_path / "a.db" if on_disk else None, Clock()) as memory:
            memory.remember_all({"content": f"note {n}", "id": f"n{n}"} for n in range(100))
            for n in range(60):
                memory.update(f"n{n}", content=f"changed {n}")
            for seq, expected in ((21, 40), (21, 40), (23, 2), (19, 2), (58, 3)):
                assert memory.at(seq).count(f.contains("changed")) == seq - 1
                assert undone[-1] == expected
            assert len(undone) == 4

    def test_where_more_changed_than_was_live_the_index_is_built_from_the_records(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        built: list[int] = []
        real = past_module.PastIndexes._from_records

        def building(self: past_module.PastIndexes, view: Any, branch: Branch, seq: int) -> Any:
            built.append(seq)
            return real(self, view, branch, seq)

        monkeypatch.setattr(past_module.PastIndexes, "_from_records", building)
        with opened(None, Clock()) as memory:
            memory.remember("the first note", id="first")
            recorded = seen(memory, [f.everything()])
            memory.remember_all({"content": f"note {n}", "id": f"n{n}"} for n in range(300))
            assert differences(seen(memory.at(1), [f.everything()]), recorded) == []
            assert built == [1]

    def test_an_index_with_many_changes_gets_a_segment_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(past_module, "_MERGED_FROM", 10)
        with opened(None, Clock()) as memory:
            memory.remember_all({"content": f"java note {n}", "id": f"r{n}"} for n in range(40))
            recorded = seen(memory, [f.contains("1")])
            for n in range(20):
                memory.update(f"r{n}", content=f"changed {n}")
            assert differences(seen(memory.at(1), [f.contains("1")]), recorded) == []
            merged = core_of(memory).past._entries.get((Branch("default"), 1))
            assert merged is not None
            assert merged.built is not None
            assert merged.built.index.segment is not core_of(memory).keeper.segment(Branch("default"))

    def test_an_index_that_does_not_fit_in_memory_is_an_error_and_the_next_call_tries_again(
        self, memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        history(memory)

        def full(*arguments: Any, **named: Any) -> Any:
            raise MemoryError

        with monkeypatch.context() as patched:
            patched.setattr(past_module, "apply_written", full)
            with pytest.raises(NoMemoryError):
                memory.at(1).find()
        assert memory.at(1).count() == 1

    def test_threads_read_moments_while_another_one_writes(self, memory: recollect.Memory) -> None:
        for n in range(30):
            memory.remember(f"note {n} of the harbour", id=f"n{n}")

        def read(step: int) -> list[tuple[int, int, int, int]]:
            found = []
            for seq in [each * step % 29 + 1 for each in range(1, 20)]:
                past = memory.at(seq)
                found.append((seq, past.count(), len(past.recall("harbour", k=50)), len(past.grep("harbour", 50))))
            return found

        def write() -> None:
            for n in range(100):
                memory.update(f"n{n % 30}", content=f"changed {n} of the harbour")

        with ThreadPoolExecutor(4) as pool:
            writing = pool.submit(write)
            for found in pool.map(read, (1, 3, 7)):
                assert all(seq == count == hits == matches for seq, count, hits, matches in found)
            writing.result()
        assert len(memory.recall("harbour", k=50)) == 30

    def test_past_indexes_are_evicted_within_their_budget(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", index_bytes=2**20) as memory:
            for n in range(20):
                memory.remember(f"note {n}", id=f"n{n}")
            for seq in range(1, 20):
                assert memory.at(seq).find(limit=1, order="newest")[0].id == f"n{seq - 1}"
            assert len(core_of(memory).past._entries) == 1
            assert memory.at(3).count() == 3

    def test_a_long_record_is_that_of_the_moment(self, memory: recollect.Memory) -> None:
        long = "the harbour at night " * 500  # not in the index, but in the store
        memory.remember(long, id="a")
        recorded = comparable(memory.recall("harbour"))
        memory.update("a", content=f"{long} changed")
        memory.forget("a")
        for past in (memory.at(1), memory.at(1)):
            assert comparable(past.recall("harbour")) == recorded
            assert past.find()[0].content == long
            with past.open_export() as export:
                assert [record.content for record in export.records] == [long]
        assert memory.at(2).find()[0].text.endswith("changed")

    def test_what_was_erased_since_is_absent_also_from_a_cached_index(self) -> None:
        store = MemoryStore()
        with memory_on(store, clock=Clock()) as memory:
            history(memory)
            past = memory.at(2)
            assert len(past.recall("window stamps")) == 2
            memory.forget("a")
            log = store._contents.ledgers[Branch("default")].log  # as erasing a record leaves it
            log[-1] = replace(log[-1], changes=tuple(change._replace(cause="erased") for change in log[-1].changes))
            for version, payload in list(store._contents.payloads.items()):
                if b"window" in payload:
                    del store._contents.payloads[version]
            for moment in (past, memory.at(1)):
                assert moment.get("a") is None
                assert "a" not in [record.id for record in moment.find()]
                assert len(moment.recall("window")) == 0
                assert moment.grep("window") == []
            assert memory.at(3).count() == 2, "the later version is not erased"


class TestOtherForms:
    def test_an_awaited_memory_of_the_past(self, tmp_path: Path) -> None:
        async def run() -> None:
            async with AsyncMemory(recollect.open(tmp_path / "a.db")) as memory:
                await memory.remember("one", id="a")
                await memory.remember("two", id="b")
                async with await memory.at(1) as past:
                    assert await past.count() == 1
                    assert (await past.recall("one"))[0].record.id == "a"
                    with pytest.raises(ReadOnlyMemoryError):
                        past.subscribe()
                    with pytest.raises(ReadOnlyMemoryError):
                        await past.remember("three")
                    async with past.open_export() as export:
                        assert [record.id async for record in export.records] == ["a"]
                assert await memory.count() == 2

        asyncio.run(run())

    def test_it_is_the_same_through_bytes(self) -> None:
        clock = Clock()
        store = MemoryStore()
        direct = memory_on(store, clock=clock)
        behind = memory_on(store, clock=clock, loopback=True)
        history(direct)
        wheres = [f.user("ana")]
        for target in (0, 1, 2, START + timedelta(hours=30), direct.at(1).root):
            assert differences(seen(direct.at(target), wheres), seen(behind.at(target), wheres)) == []
        calls: list[Callable[[recollect.Memory], Any]] = [lambda m: m.at(9), lambda m: m.at(1).remember("x")]
        for call in calls:
            with pytest.raises(RecollectError) as caught:
                call(behind)
            error = caught.value
            with pytest.raises(type(error)) as again:
                call(direct)
            assert again.value.args == error.args

    def test_a_reference_is_the_time_of_the_moment_with_the_offset_of_the_clock(self) -> None:
        clock = Clock()
        zone = timezone(timedelta(hours=3))
        clock.time = datetime(2026, 1, 5, 1, tzinfo=zone)  # still the 4th in UTC
        with opened(None, clock) as memory:
            memory.remember("the ferry left", id="a", time=datetime(2026, 1, 4, 12, tzinfo=zone))
            memory.remember("the ferry came", id="b", time=datetime(2026, 1, 3, 12, tzinfo=zone))
            recorded = comparable(memory.recall("what about the ferry yesterday?"))
            clock.time += timedelta(days=30)
            assert comparable(memory.at(2).recall("what about the ferry yesterday?")) == recorded
            memory.remember("another", id="c")
            assert comparable(memory.at(2).recall("what about the ferry yesterday?")) == recorded
