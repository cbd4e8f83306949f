"""The feed of commits: listeners, streams, asynchronous streams, and what wakes them."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import fresh
from tests.examples import some

import recollect
from recollect.engine import feed
from recollect.errors import ClosedError, InvalidArgumentError, ScopeError, StoreBusyError
from recollect.operations import Wait
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import memory_on
from recollect.testing.loopback import core_of

#: How long to wait for what must happen, in seconds: far longer than it takes.
LONG_S = 60

pytestmark = pytest.mark.stores("memory", "sqlite")


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[recollect.Memory]:
    with recollect.open(tmp_path / "a.db") as memory:
        yield memory


before: list[threading.Thread] = []


@pytest.fixture(autouse=True)
def _threads_of_other_tests() -> None:
    """Those that have not ended yet do not count."""
    before[:] = threading.enumerate()


def ours() -> list[threading.Thread]:
    """The threads of feeds that this test has started: others may have left some, whose memories are not freed yet."""
    new = [each for each in threading.enumerate() if each not in before]
    return [each for each in new if each.name in ("recollect-feed", "recollect-listener")]


def threads() -> list[str]:
    return sorted(each.name for each in ours())


def count_views(memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that returns the thread of each view that was opened since its last call."""
    store = core_of(memory).store
    real, opened = store.read, list[str]()

    def read() -> Any:
        opened.append(threading.current_thread().name)
        return real()

    monkeypatch.setattr(store, "read", read)

    def since() -> list[str]:
        out = opened[:]
        del opened[: len(out)]
        return out

    return since


def elsewhere(path: Path, code: str) -> None:
    """Run code in another process, with the store at `path` as `memory`."""
    prelude = f"import recollect\nmemory = recollect.open({str(path)!r})\n"
    subprocess.run([sys.executable, "-c", prelude + code + "\nmemory.close()"], check=True, timeout=LONG_S)


def waiting(stream: recollect.CommitStream) -> threading.Event:
    """Return an event that is set when a thread waits for the next commit of the stream."""
    waits, real = threading.Event(), stream._waiter.wait

    def wait(*given: Any) -> None:
        waits.set()
        real(*given)

    stream._waiter.wait = wait  # type: ignore[assignment, method-assign]
    return waits


class Heard:
    """The ids of the commits that a callback was called with."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, commit: recollect.Commit) -> None:
        with self._changed:
            self.ids.extend(change.id for change in commit.changes)
            self._changed.notify_all()

    def wait(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.ids) >= count, LONG_S)


class TestThreads:
    def test_a_thousand_listeners_on_a_thousand_namespaces_share_two_threads(
        self, memory: recollect.Memory, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(feed, "PATIENCE_S", 3600.0)  # on a busy machine any callback may take long
        heard: dict[str, list[int]] = defaultdict(list)
        names = [f"n{number}" for number in range(1000)]
        listening = [memory.namespace(each).listen(lambda c: heard[c.namespace].append(c.seq)) for each in names]
        assert len(threads()) <= 2
        for name in names[::100]:
            memory.namespace(name).remember("news")
            assert len(threads()) <= 2
        for each in listening:
            each.drain()
        assert len(threads()) <= 2
        assert heard == {name: [1] for name in names[::100]}

    def test_the_threads_start_with_the_first_subscriber_and_end_with_the_last(self, memory: recollect.Memory) -> None:
        memory.remember("nobody listens")
        assert threads() == []
        first, second = memory.listen(print), memory.listen(print)
        running = [each for each in threading.enumerate() if each.name == "recollect-feed" and each not in before]
        assert len(running) == 1
        first.close()
        assert running[0].is_alive()
        second.close()
        running[0].join(LONG_S)
        assert not running[0].is_alive()
        heard = Heard()
        with memory.listen(heard):
            memory.remember("again", id="again")
            assert heard.wait(1)

    def test_no_thread_is_left_when_the_memory_is_closed(self, tmp_path: Path) -> None:
        memory = recollect.open(tmp_path / "a.db")
        memory.listen(Heard())
        stream = memory.subscribe()
        assert stream.wait(0.001) is None
        memory.remember("a")
        memory.close()
        assert threads() == []

    def test_a_memory_that_is_closed_by_a_callback_leaves_no_thread(self, tmp_path: Path) -> None:
        memory = recollect.open(tmp_path / "a.db")
        memory.listen(lambda commit: memory.close())
        memory.listen(heard := Heard())
        memory.remember("a", id="a")
        # (A thread may start another one before it ends.)
        while running := ours():
            running[0].join(LONG_S)
            assert not running[0].is_alive()
        assert heard.ids == ["a"]
        with pytest.raises(ClosedError):
            memory.remember("b")


class TestWaking:
    def test_a_commit_opens_a_view_for_the_listeners_of_its_own_branch_only(self, monkeypatch: Any) -> None:
        memory = memory_on(MemoryStore())
        listening = [memory.namespace(f"n{number}").listen(Heard()) for number in range(50)]
        for each in listening:
            each.drain()
        opened = count_views(memory, monkeypatch)
        memory.namespace("other").remember("nobody listens")
        for_nobody = opened()
        memory.namespace("n7").remember("one listens")
        listening[7].drain()
        assert "recollect-listener" not in for_nobody
        # One for the commit and one for `drain`, unless these fell together.
        assert opened().count("recollect-listener") in (1, 2)
        memory.close()

    def test_a_commit_without_listeners_costs_at_most_one_view_of_the_watcher(
        self, on_file: recollect.Memory, monkeypatch: Any
    ) -> None:
        listening = [on_file.namespace(f"n{number}").listen(Heard()) for number in range(50)]
        for each in listening:
            each.drain()
        looks, looked = list[int](), threading.Condition()
        real = SqliteStore.version

        def version(store: SqliteStore) -> int:
            with looked:
                looks.append(1)
                looked.notify_all()
            return real(store)

        def wait_for_looks(count: int) -> None:
            """Wait until that many looks at the version have begun, so that all but the last one are over."""
            with looked:
                target = len(looks) + count
                assert looked.wait_for(lambda: len(looks) >= target, LONG_S)

        monkeypatch.setattr(SqliteStore, "version", version)
        wait_for_looks(2)
        opened = count_views(on_file, monkeypatch)
        on_file.namespace("other").remember("nobody listens")
        wait_for_looks(3)
        views = opened()
        assert views.count("recollect-feed") == 1
        assert "recollect-listener" not in views

    def test_a_commit_of_another_process_is_delivered_without_a_write_of_this_one(
        self, on_file: recollect.Memory, tmp_path: Path
    ) -> None:
        heard, other = Heard(), Heard()
        with on_file.listen(heard), on_file.namespace("other").listen(other):
            elsewhere(tmp_path / "a.db", "memory.remember('x', id='x'); memory.remember('y', id='y')")
            assert heard.wait(2)
        assert (heard.ids, other.ids) == (["x", "y"], [])

    def test_a_stream_that_waits_gets_a_commit_of_another_process(
        self, on_file: recollect.Memory, tmp_path: Path
    ) -> None:
        with on_file.subscribe() as stream:
            elsewhere(tmp_path / "a.db", "memory.remember('before it waits', id='x')")
            assert _ids(stream.wait(LONG_S)) == ["x"]
            other = threading.Thread(target=elsewhere, args=(tmp_path / "a.db", "memory.remember('y', id='y')"))
            other.start()
            assert _ids(stream.wait(LONG_S)) == ["y"]
            other.join()

    def test_what_the_store_could_not_read_is_read_again_without_a_further_commit(
        self, memory: recollect.Memory, monkeypatch: Any
    ) -> None:
        heard = Heard()
        with memory.listen(heard) as subscription:
            subscription.drain()
            real, failures = core_of(memory).store.read, [StoreBusyError("x", "for now")] * 3

            def read() -> Any:
                if threading.current_thread().name == "recollect-listener" and failures:
                    raise failures.pop()
                return real()

            monkeypatch.setattr(core_of(memory).store, "read", read)
            memory.remember("a", id="a")
            assert heard.wait(1)
            assert isinstance(subscription.error, StoreBusyError)

    def test_a_listener_ends_when_the_file_is_replaced(
        self, on_file: recollect.Memory, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        heard = Heard()
        subscription = on_file.listen(heard)
        listener = subscription._listener
        os.rename(tmp_path / "a.db", tmp_path / "moved.db")
        subscription.wake()
        with listener._changed:
            assert listener._changed.wait_for(lambda: listener._ended, LONG_S)
        assert isinstance(subscription.error, recollect.errors.StoreReplacedError)
        assert "a listener has ended" in caplog.text
        subscription.drain()  # both return at once
        subscription.close()
        os.rename(tmp_path / "moved.db", tmp_path / "a.db")

    def test_a_stream_raises_when_the_file_is_replaced_while_it_waits(
        self, on_file: recollect.Memory, tmp_path: Path
    ) -> None:
        raised: list[BaseException] = []

        def consume() -> None:
            try:
                next(stream)
            except recollect.errors.StoreReplacedError as error:
                raised.append(error)

        stream = on_file.subscribe()
        waits, consumer = waiting(stream), threading.Thread(target=consume)
        consumer.start()
        assert waits.wait(LONG_S)
        os.rename(tmp_path / "a.db", tmp_path / "moved.db")
        consumer.join(LONG_S)
        os.rename(tmp_path / "moved.db", tmp_path / "a.db")
        assert len(raised) == 1

    def test_polling_leaves_no_snapshot_open_that_would_delay_a_checkpoint(self, on_file: recollect.Memory) -> None:
        store = core_of(on_file).store
        assert isinstance(store, SqliteStore)
        before = store.version()
        on_file.remember("a")
        assert store.version() != before
        with store._connect(writing=True) as connection:
            on_file.remember("b")
            assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0
        assert os.stat(store.path + "-wal").st_size == 0


class TestSlowListeners:
    def test_a_blocked_listener_delays_no_other_and_loses_nothing(self, memory: recollect.Memory) -> None:
        free, blocked, slow = threading.Event(), threading.Event(), Heard()

        def block(commit: recollect.Commit) -> None:
            blocked.set()
            free.wait()
            slow(commit)

        heard = [Heard() for _ in range(5)]
        with ExitStack() as stack:
            stack.enter_context(memory.listen(block))
            for each in heard:
                stack.enter_context(memory.listen(each))
            stack.callback(free.set)  # before the listeners are closed
            memory.remember("a", id="a")
            assert blocked.wait(LONG_S)
            assert all(each.wait(1) for each in heard)
            memory.remember("b", id="b")
            assert all(each.wait(2) for each in heard)
            assert slow.ids == []
            free.set()
        assert [each.ids for each in (slow, *heard)] == [["a", "b"]] * 6

    def test_many_blocked_listeners_delay_no_other(self, memory: recollect.Memory) -> None:
        free, heard = threading.Event(), Heard()
        with ExitStack() as stack:
            for _ in range(30):
                stack.enter_context(memory.listen(lambda commit: free.wait()))
            stack.enter_context(memory.listen(heard))
            stack.callback(free.set)
            memory.remember("a", id="a")
            assert heard.wait(1)

    def test_commits_of_another_process_are_noticed_while_a_listener_blocks(
        self, on_file: recollect.Memory, tmp_path: Path
    ) -> None:
        free, blocked, heard = threading.Event(), threading.Event(), Heard()

        def block(commit: recollect.Commit) -> None:
            blocked.set()
            free.wait()

        with ExitStack() as stack:
            stack.enter_context(on_file.listen(block))
            stack.enter_context(on_file.listen(heard))
            stack.callback(free.set)
            on_file.remember("a", id="a")
            assert blocked.wait(LONG_S)
            elsewhere(tmp_path / "a.db", "memory.remember('x', id='x')")
            assert heard.wait(2)

    def test_a_listener_is_never_called_by_two_threads_at_once(
        self, memory: recollect.Memory, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(feed, "PATIENCE_S", 0.0)  # every callback counts as slow
        inside, doubled, heard = threading.Lock(), list[str](), Heard()

        def callback(commit: recollect.Commit) -> None:
            if not inside.acquire(blocking=False):
                doubled.append("doubled")
                return
            os.sched_yield()
            heard(commit)
            inside.release()

        others = [memory.listen(Heard()) for _ in range(4)]
        with memory.listen(callback):
            _write_in_threads(memory, writers=4, each=25)
        assert doubled == []
        assert len(heard.ids) == len(set(heard.ids)) == 100
        for each in others:
            each.close()

    def test_a_closed_listener_is_not_called_even_if_a_wake_was_on_its_way(self, memory: recollect.Memory) -> None:
        heard, other = Heard(), memory.listen(Heard())
        subscription = memory.listen(heard)
        memory.remember("a", id="a")
        subscription.close()
        memory.remember("b", id="b")
        core_of(memory).feed.submit(subscription._listener)
        other.close()
        assert heard.ids == ["a"]

    def test_a_callback_may_drain_another_listener(self, memory: recollect.Memory) -> None:
        heard, done = Heard(), threading.Event()
        other = memory.listen(heard)

        def callback(commit: recollect.Commit) -> None:
            other.drain()
            done.set()

        with memory.listen(callback):
            memory.remember("a", id="a")
            assert done.wait(LONG_S)
        assert heard.ids == ["a"]

    @pytest.mark.parametrize("woken", [False, True])
    def test_a_long_backlog_is_delivered_page_by_page_between_the_others(
        self, memory: recollect.Memory, monkeypatch: Any, woken: bool
    ) -> None:
        monkeypatch.setattr(feed, "PATIENCE_S", 3600.0)  # no further thread helps
        commits = 3 * 256
        for number in range(commits):
            memory.namespace("long").remember(f"text {number}")
        begun, go, order = threading.Event(), threading.Event(), list[str]()

        def backlog(commit: recollect.Commit) -> None:
            order.append("backlog")
            begun.set()
            assert go.wait(LONG_S)

        with ExitStack() as listeners:
            other = listeners.enter_context(memory.listen(lambda commit: order.append("other")))
            other.drain()
            long = listeners.enter_context(memory.namespace("long").listen(backlog, since=0))
            assert begun.wait(LONG_S)
            if woken:  # as by a poll, while it delivers its first page
                long.wake()
            memory.remember("a")
            go.set()
        assert order.count("backlog") == commits
        assert order.index("other") <= 256


def _write_in_threads(memory: recollect.Memory, *, writers: int, each: int) -> None:
    def write(number: int) -> None:
        for item in range(each):
            memory.remember(f"{number} {item}", id=f"{number}-{item}", user=("ana", "bob")[item % 2])

    running = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def _ids(commit: recollect.Commit | None) -> list[str]:
    return [] if commit is None else [change.id for change in commit.changes]


class TestStreams:
    def test_a_stream_yields_each_commit_once_and_in_order(self, memory: recollect.Memory) -> None:
        memory.remember("before", id="before")
        with memory.subscribe() as stream:
            names = [memory.remember(f"text {number}", id=f"{number}").id for number in range(20)]
            assert [_ids(next(stream)) for _ in names] == [[name] for name in names]
            assert stream.wait(0) is None
            assert not stream.closed

    def test_a_stream_reads_a_log_of_several_pages(self, memory: recollect.Memory) -> None:
        for number in range(600):
            memory.remember(f"text {number}", id=f"{number}", user=("ana", "bob")[number == 599])
        with memory.subscribe(since=0) as stream:
            assert [next(stream).seq for _ in range(600)] == list(range(1, 601))
        with memory.scoped(user="bob").subscribe(since=0) as stream:
            assert _ids(next(stream)) == [change.id for change in memory.scoped(user="bob").changes()[0].changes]

    def test_a_new_stream_continues_from_the_cursor_of_the_last_commit(self, memory: recollect.Memory) -> None:
        for viewed in (memory, memory.scoped(user="ana")):
            with viewed.subscribe() as stream:
                memory.remember(f"a {viewed!r}", user="ana")
                cursor = next(stream).cursor
            memory.remember(f"bob's {viewed!r}", user="bob")
            expected = memory.remember(f"b {viewed!r}", user="ana")
            with viewed.subscribe(since=cursor) as stream:
                seen = [_ids(stream.wait(0)) for _ in range(3)]
            assert [expected.id] in seen
            assert len([each for each in seen if each]) == (2 if viewed is memory else 1)

    def test_a_stream_of_a_scope_yields_its_own_commits_only(self, memory: recollect.Memory) -> None:
        ana = memory.scoped(user="ana")
        with ana.subscribe() as stream:
            memory.remember("bob's", id="bobs", user="bob")
            assert stream.wait(0) is None
            memory.remember("ana's", id="anas", user="ana")
            commit = next(stream)
        assert (_ids(commit), commit.seq, commit.actor) == (["anas"], 0, None)
        with pytest.raises(ScopeError):
            ana.subscribe(since=1)
        with pytest.raises(InvalidArgumentError):
            memory.subscribe(since="no cursor")

    @pytest.mark.parametrize("closing", ["stream", "memory"])
    def test_closing_in_another_thread_ends_the_loop_that_waits(self, memory: recollect.Memory, closing: str) -> None:
        stream = memory.subscribe()
        seen: list[list[str]] = []
        first = threading.Event()

        def loop() -> None:
            for commit in stream:
                seen.append(_ids(commit))
                first.set()

        thread = threading.Thread(target=loop)
        thread.start()
        memory.remember("a", id="a")
        assert first.wait(LONG_S)
        (stream if closing == "stream" else memory).close()
        thread.join(LONG_S)
        assert not thread.is_alive()
        assert (seen, stream.closed) == ([["a"]], True)
        assert next(stream, None) is None

    def test_a_loop_that_begins_to_wait_while_the_memory_is_being_closed_ends(self, monkeypatch: Any) -> None:
        memory = memory_on(MemoryStore())
        stream = memory.subscribe()
        waits, consumer = waiting(stream), threading.Thread(target=list, args=(stream,))
        real = core_of(memory).store.close

        def close() -> None:
            consumer.start()
            assert waits.wait(LONG_S)
            real()

        monkeypatch.setattr(core_of(memory).store, "close", close)
        memory.close()
        consumer.join(LONG_S)
        assert not consumer.is_alive()

    def test_a_closed_stream_yields_nothing_even_if_commits_are_left(self, memory: recollect.Memory) -> None:
        for text in ("a", "b"):
            memory.remember(text)
        stream = memory.subscribe(since=0)
        assert next(stream).seq == 1
        stream.close()
        stream.close()
        assert list(stream) == []
        memory.close()
        with pytest.raises(ClosedError):
            memory.subscribe()

    def test_a_stream_that_is_dropped_is_forgotten_by_the_feed(self, memory: recollect.Memory) -> None:
        memory.remember("a")
        for _ in range(3):
            for _commit in memory.subscribe(since=0):
                break
        stream = memory.subscribe()
        assert stream.wait(0.001) is None
        assert len(core_of(memory).feed._all()) == 1
        del stream
        gc.collect()
        assert core_of(memory).feed._all() == ()

    def test_several_threads_may_share_a_stream(self, memory: recollect.Memory) -> None:
        stream = memory.subscribe()
        heard = Heard()

        def consume() -> None:
            for commit in stream:
                heard(commit)

        consumers = [threading.Thread(target=consume) for _ in range(4)]
        for thread in consumers:
            thread.start()
        _write_in_threads(memory, writers=2, each=50)
        assert heard.wait(100)
        stream.close()
        for thread in consumers:
            thread.join(LONG_S)
        assert len(heard.ids) == len(set(heard.ids)) == 100

    def test_waiting_for_a_commit_after_a_cursor_returns_whether_there_is_one(self, memory: recollect.Memory) -> None:
        assert not memory.execute(Wait(since=0, timeout=0))
        assert not memory.execute(Wait(since=0, timeout=0.001))
        memory.remember("a")
        assert memory.execute(Wait(since=0, timeout=0))
        assert not memory.execute(Wait(since=memory.seq, timeout=0))
        writer = threading.Timer(0.0, memory.remember, ("b",))
        seq = memory.seq
        writer.start()
        assert memory.execute(Wait(since=seq, timeout=LONG_S))
        writer.join()
        assert core_of(memory).feed._all() == ()


class TestNothingIsLost:
    def test_listeners_and_streams_that_join_while_others_write_get_each_commit_once(
        self, memory: recollect.Memory
    ) -> None:
        total = 4 * 50
        start = memory.seq
        joined: list[tuple[int, list[int]]] = []
        streams: list[tuple[int, recollect.CommitStream]] = []
        subscriptions: list[recollect.Subscription] = []
        writing = threading.Thread(target=_write_in_threads, args=(memory,), kwargs={"writers": 4, "each": 50})
        writing.start()
        while writing.is_alive() and len(joined) < 200:
            seq, heard = memory.seq, list[int]()
            subscriptions.append(memory.listen(lambda c, heard=heard: heard.append(c.seq), since=seq))  # type: ignore[misc]
            joined.append((seq, heard))
            streams.append((seq, memory.subscribe(since=seq)))
        writing.join()
        assert memory.seq == start + total
        for each in subscriptions:
            each.close()
        for seq, heard in joined:
            assert heard == list(range(seq + 1, start + total + 1))
        for seq, stream in streams:
            found = [commit.seq for _ in range(total - seq + start) if (commit := stream.wait(LONG_S)) is not None]
            assert found == list(range(seq + 1, start + total + 1))
            assert stream.wait(0) is None
            stream.close()

    @settings(max_examples=some(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.one_of(
                st.tuples(st.just("write"), st.sampled_from(["ana", "bob"])),
                st.tuples(st.sampled_from(["listen", "stream", "wake", "drain", "close"]), st.integers(0, 5)),
            ),
            max_size=25,
        )
    )
    def test_in_any_order_of_calls_each_subscriber_gets_what_it_should(self, steps: list[tuple[str, Any]]) -> None:
        with recollect.open(":memory:") as memory:
            scopes = [memory, memory.scoped(user="ana"), memory.scoped(user="bob")]
            log: list[tuple[str, str]] = []  # (user, id)
            subscribers: list[tuple[Any, int, int, list[str]]] = []  # (subscriber, scope, start, heard)
            closed: list[tuple[int, int, int, list[str]]] = []  # (scope, start, end, heard)

            def expected(scope: int, start: int, end: int) -> list[str]:
                return [name for user, name in log[start:end] if scope in (0, 1 + ["ana", "bob"].index(user))]

            def take(stream: Any) -> list[str]:
                out: list[str] = []
                while (commit := stream.wait(0)) is not None:
                    out += _ids(commit)
                return out

            def close(at: int) -> None:
                subscriber, scope, start, heard = subscribers.pop(at)
                if isinstance(subscriber, recollect.CommitStream):
                    heard += take(subscriber)
                subscriber.close()
                closed.append((scope, start, len(log), heard))

            for step, argument in steps:
                if step == "write":
                    name = f"r{len(log)}"
                    memory.remember(f"text {name}", id=name, user=argument)
                    log.append((argument, name))
                elif step in ("listen", "stream"):
                    scope, heard = argument % 3, list[str]()
                    if step == "stream":
                        subscribers.append((scopes[scope].subscribe(), scope, len(log), heard))
                    else:
                        hear = lambda commit, heard=heard: heard.extend(_ids(commit))  # noqa: E731
                        subscribers.append((scopes[scope].listen(hear), scope, len(log), heard))
                elif subscribers:
                    at = argument % len(subscribers)
                    subscriber, scope, start, heard = subscribers[at]
                    if step == "close":
                        close(at)
                    elif isinstance(subscriber, recollect.CommitStream):
                        heard += take(subscriber)
                        assert heard == expected(scope, start, len(log))
                    elif step == "wake":
                        subscriber.wake()
                    else:
                        subscriber.drain()
                        assert heard == expected(scope, start, len(log))
            while subscribers:
                close(0)
            for scope, start, end, heard in closed:
                assert heard == expected(scope, start, end)


class TestAsyncStreams:
    def test_two_hundred_waiting_streams_occupy_no_thread(self, tmp_path: Path) -> None:
        async def run() -> None:
            async with recollect.AsyncMemory(recollect.open(tmp_path / "a.db"), workers=2) as memory:
                streams = [memory.namespace(f"n{number % 2}").subscribe() for number in range(200)]
                waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
                while not all(stream._waiter.seen == 0 for stream in streams):
                    await memory.seq()
                await memory.namespace("n0").remember("a", id="a")  # there is a thread for it
                done = await asyncio.wait_for(asyncio.gather(*waiting[::2]), LONG_S)
                assert [_ids(commit) for commit in done] == [["a"]] * 100
                assert not any(each.done() for each in waiting[1::2])
                await memory.namespace("n1").remember("b", id="b")
                done = await asyncio.wait_for(asyncio.gather(*waiting[1::2]), LONG_S)
                assert [_ids(commit) for commit in done] == [["b"]] * 100

        asyncio.run(run())

    def test_an_awaited_listener_is_drained_and_closed_without_blocking_the_loop(
        self, memory: recollect.Memory
    ) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(memory)
            go_on = threading.Event()
            heard: list[list[str]] = []

            def callback(commit: recollect.Commit) -> None:
                assert go_on.wait(LONG_S)
                heard.append(_ids(commit))

            async with await awaited.listen(callback) as subscription:
                await awaited.remember("a", id="a")
                draining = asyncio.ensure_future(subscription.drain())
                await asyncio.sleep(0)
                assert not draining.done()
                go_on.set()  # by the loop, which goes on
                await asyncio.wait_for(draining, LONG_S)
                assert heard == [["a"]]
                await awaited.remember("b", id="b")
            assert heard == [["a"], ["b"]]  # delivered before it was closed
            await awaited.remember("c", id="c")
            assert len(heard) == 2
            assert subscription.error is None
            late = await awaited.listen(lambda commit: heard.append(_ids(commit)))
            await awaited.close()
            await late.close()
            await late.close()

        asyncio.run(run())

    def test_a_commit_between_the_call_and_the_first_await_is_not_left_out(self, memory: recollect.Memory) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(memory)
            await awaited.remember("before")
            for number in range(20):
                async with awaited.subscribe() as stream:
                    await awaited.remember(f"text {number}", id=f"{number}")
                    assert _ids(await asyncio.wait_for(anext(stream), LONG_S)) == [f"{number}"]

        asyncio.run(run())

    def test_wakes_that_arrive_late_and_out_of_order_lose_no_commit(self) -> None:
        memory = memory_on(MemoryStore())

        async def run() -> None:
            awaited = recollect.AsyncMemory(memory)
            real = core_of(memory).feed.wake
            late: list[Any] = []
            async with awaited.subscribe() as stream:
                core_of(memory).feed.wake = lambda *given: late.append(given)  # type: ignore[method-assign]
                for name in "abc":
                    await awaited.remember(name, id=name)
                for given in reversed(late):
                    real(*given)
                heard = [_ids(await asyncio.wait_for(anext(stream), LONG_S)) for _ in "abc"]
            assert heard == [["a"], ["b"], ["c"]]

        asyncio.run(run())

    def test_waiting_occupies_no_thread_and_ends_when_the_memory_is_closed(self) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(memory_on(MemoryStore()), workers=1)

            async def wait(since: int, timeout: float) -> bool:
                async with awaited.subscribe(since=since) as commits:
                    return await commits.awaited(timeout) is not None

            waits = [asyncio.ensure_future(wait(0, LONG_S)) for _ in range(20)]
            while len(core_of(awaited._wrapped).feed._all()) < len(waits):
                await asyncio.sleep(0)
            await awaited.remember("a")
            assert await asyncio.gather(*waits) == [True] * 20
            assert await wait(0, 0)
            assert not await wait(1, 0)
            late = asyncio.ensure_future(wait(1, LONG_S))
            while not core_of(awaited._wrapped).feed._all():
                await asyncio.sleep(0)
            await awaited.close()
            assert not await late

        asyncio.run(run())

    def test_a_timeout_that_is_no_number_of_seconds_is_refused(self, memory: recollect.Memory) -> None:
        async def run() -> None:
            async with recollect.AsyncMemory(memory).subscribe() as stream:
                with pytest.raises(InvalidArgumentError, match="timeout"):
                    await stream.awaited(float("nan"))
                assert await stream.awaited(0) is None

        asyncio.run(run())
        with memory.subscribe() as stream:
            for wrong in (float("nan"), -1, True, "x"):
                with pytest.raises(InvalidArgumentError, match="timeout"):
                    stream.wait(wrong)  # type: ignore[arg-type]

    def test_a_cursor_after_the_newest_commit_is_refused(self, memory: recollect.Memory) -> None:
        memory.remember("a")
        calls: list[Callable[[], Any]] = [
            lambda: memory.changes(2),
            lambda: memory.execute(Wait(since=2, timeout=0)),
            lambda: memory.subscribe(since="2"),
            lambda: memory.listen(print, since=2),
        ]
        for call in calls:
            with pytest.raises(InvalidArgumentError, match="newest commit"):
                call()
        assert memory.changes(1) == []

    def test_cancelling_the_wait_loses_nothing(self, memory: recollect.Memory) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(memory)
            async with awaited.subscribe() as stream:
                seen: list[int] = []
                for number in range(60):
                    waiting = asyncio.ensure_future(anext(stream))
                    for _ in range(number % 5):
                        await asyncio.sleep(0)
                    if number % 3 == 0:
                        await awaited.remember(f"text {number}")
                    waiting.cancel()
                    for result in await asyncio.gather(waiting, return_exceptions=True):
                        if isinstance(result, recollect.Commit):
                            seen.append(result.seq)
                while len(seen) < 20:
                    seen.append((await asyncio.wait_for(anext(stream), LONG_S)).seq)
            assert seen == list(range(1, 21))

        asyncio.run(run())

    @pytest.mark.parametrize("closing", ["stream", "memory"])
    def test_closing_ends_the_loop_that_waits(self, memory: recollect.Memory, closing: str) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(memory)
            stream = awaited.subscribe()
            first = asyncio.Event()
            seen: list[list[str]] = []

            async def loop() -> None:
                async for commit in stream:
                    seen.append(_ids(commit))
                    first.set()

            await stream.__aenter__()
            task = asyncio.ensure_future(loop())
            await awaited.remember("a", id="a")
            await asyncio.wait_for(first.wait(), LONG_S)
            await (stream.aclose() if closing == "stream" else awaited.close())
            await asyncio.wait_for(task, LONG_S)
            assert (seen, stream.closed) == ([["a"]], True)
            assert core_of(memory).feed._all() == ()

        asyncio.run(run())

    def test_a_stream_starts_at_a_cursor_and_several_tasks_may_share_it(self, memory: recollect.Memory) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(memory)
            for number in range(600):
                memory.remember(f"text {number}", user=("ana", "bob")[number == 599])
            async with awaited.subscribe(since=0) as stream:
                commits = await asyncio.gather(*(anext(stream) for _ in range(600)))
                assert [commit.seq for commit in commits] == list(range(1, 601))
            async with awaited.scoped(user="bob").subscribe(since=0) as stream:
                assert (await anext(stream)).seq == 0
            with pytest.raises(ScopeError):
                awaited.scoped(user="bob").subscribe(since=3)

        asyncio.run(run())

    def test_the_stream_of_a_memory_without_a_pool_is_read_by_tasks_and_threads(self, memory: recollect.Memory) -> None:
        async def run() -> None:
            with memory.subscribe() as stream:
                for name in "abc":
                    memory.remember(name, id=name)
                assert _ids(await anext(stream)) == ["a"]
                assert _ids(await asyncio.to_thread(stream.wait, LONG_S)) == ["b"]
                assert _ids(await stream.awaited(0)) == ["c"]
                assert await stream.awaited(0.001) is None
                waiting = asyncio.ensure_future(anext(stream, None))
                await asyncio.to_thread(memory.remember, "d", id="d")
                assert _ids(await asyncio.wait_for(waiting, LONG_S)) == ["d"]
            assert [commit async for commit in stream] == []

        asyncio.run(run())

    def test_a_stream_gets_a_commit_of_another_process(self, on_file: recollect.Memory, tmp_path: Path) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(on_file)
            async with awaited.subscribe() as stream:
                waiting = asyncio.ensure_future(anext(stream))
                await asyncio.to_thread(elsewhere, tmp_path / "a.db", "memory.remember('x', id='x')")
                assert _ids(await asyncio.wait_for(waiting, LONG_S)) == ["x"]

        asyncio.run(run())

    def test_a_stream_whose_loop_has_ended_disturbs_no_writer(self, memory: recollect.Memory) -> None:
        async def run() -> Any:
            return recollect.AsyncMemory(memory).subscribe(since=0)

        stream = asyncio.run(run())
        memory.remember("a")
        del stream
        gc.collect()
        assert core_of(memory).feed._all() == ()


FORK = """
import os, recollect, threading
from recollect.testing.loopback import core_of
memory = recollect.open({path})
begun, go = threading.Event(), threading.Event()
def callback(commit):
    begun.set()
    go.wait(60)
listening = memory.listen(callback)
stream = memory.subscribe()
assert stream.wait(0.001) is None
memory.remember("a", id="a")
begun.wait(60)
lock = core_of(memory).feed._lock
lock.acquire()  # as if another thread had it
child = os.fork()
if not child:
    listening.wake()
    listening.drain()
    listening.close()
    for call in (lambda: stream.wait(60), lambda: next(stream), memory.subscribe, lambda: memory.listen(print),
                 lambda: core_of(memory).feed.add(None)):
        try:
            call()
        except recollect.errors.ForkedError as error:
            print(type(error).__name__, flush=True)
        except Exception as error:
            print(repr(error), flush=True)
    stream.close()
    memory.close()
    os._exit(0)
lock.release()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
go.set()
print([change.id for change in stream.wait(60).changes])
memory.close()
"""


@pytest.mark.parametrize("path", ["str(folder / 'a.db')", "':memory:'"])
def test_a_fork_has_no_feed_and_does_not_touch_that_of_its_parent(tmp_path: Path, path: str) -> None:
    printed = fresh.run(FORK.format(path=path), tmp_path).splitlines()
    # A store in memory can be used in a fork, so a stream can be created there, but not waited for.
    assert printed.count("ForkedError") == (5 if "folder" in path else 4)
    assert printed[-1] == "['a']"
