"""Indexes beside the store: loaded, caught up, merged and let go, and never seen in an answer."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import filters as f
from recollect.calls.calls import Calls
from recollect.engine.index import keeper as indexing
from recollect.engine.index.caches import cache_of
from recollect.engine.index.document_of import document_of
from recollect.engine.index.keeper import IndexKeeper
from recollect.errors import InvalidArgumentError
from recollect.indexes.words.merge import merged
from recollect.indexes.words.segment import Builder
from recollect.ledger.commits import Branch, Head
from recollect.ledger.merkle import EMPTY
from recollect.memory.memory import Memory
from recollect.stores.sqlite.view import SqliteView
from recollect.testing.loopback import core_of, index_of

WORDS = "boat harbour lighthouse tea anchor rope tide gull net sail mast keel storm calm chart".split()
QUESTIONS = ("which boat is in the harbour?", "lihgthouse tea", "rope", "gull storm 3")
DEFAULT = Branch("default")


def texts(count: int, start: int = 0) -> list[str]:
    return [
        f"The {WORDS[at % 15]} and the {WORDS[at * 7 % 13]} of day {at}, with {WORDS[at // 3 % 11]}"
        for at in range(start, start + count)
    ]


def answers(memory: Calls) -> list[Any]:
    """All that recall says, without what tells which kernels walked."""
    return [
        [(hit.record.id, hit.score, hit.confidence, dict(hit.why.shares), hit.why.words) for hit in hits]
        for hits in (memory.recall(question, k=20) for question in QUESTIONS)
    ]


def complete(memory: Memory) -> list[Any]:
    """The same of an index that is rebuilt."""
    core_of(memory).keeper.drop(DEFAULT)
    files, core_of(memory).keeper._files = core_of(memory).keeper._files, None
    try:
        return answers(memory)
    finally:
        core_of(memory).keeper._files = files
        core_of(memory).keeper.drop(DEFAULT)


def memory_head(memory: Memory) -> Head:
    with core_of(memory).store.read() as view:
        return view.head(DEFAULT)


def settled(keeper: IndexKeeper) -> None:
    """Wait until the worker has nothing left to do."""
    done = threading.Event()
    keeper._tasks.put(done.set)
    if keeper._worker is not None:
        done.wait()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "KEPT_FROM", 20)
    monkeypatch.setattr(indexing, "MERGED_FROM", 10)
    monkeypatch.setattr(indexing, "MERGED_REMOVED_FROM", 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def clock() -> Callable[[], datetime]:
    times = iter(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=at) for at in range(10**6))
    return lambda: next(times)


@pytest.fixture
def kept(path: Path, clock: Callable[[], datetime]) -> Path:
    """A store whose index an earlier process has left in a file."""
    with recollect.open(path, clock=clock) as memory:
        memory.remember_all(texts(60))
        memory.recall("boat")
    assert list(path.parent.glob("m.db.index/*.seg"))
    return path


def never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on an index that is rebuilt is an error."""

    def add(self: Builder, document: object) -> None:
        raise AssertionError("the index was rebuilt")

    monkeypatch.setattr(Builder, "add", add)


@pytest.mark.files
class TestFiles:
    def test_the_next_process_goes_on_from_the_file(self, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with recollect.open(kept) as memory:
            expected = complete(memory)
        never_made(monkeypatch)
        with recollect.open(kept) as memory:
            assert answers(memory) == expected

    def test_what_was_written_since_is_caught_up(self, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with recollect.open(kept) as memory:
            memory.remember_all(texts(5, 100))
            memory.forget(memory.find(limit=1)[0].id)
            memory.update(memory.find(order="oldest", limit=1)[0].id, content="a lighthouse in a storm")
            expected = complete(memory)
        never_made(monkeypatch)
        with recollect.open(kept) as memory:
            assert answers(memory) == expected

    def test_without_the_file_it_is_rebuilt(self, kept: Path) -> None:
        with recollect.open(kept) as memory:
            expected = answers(memory)
        shutil.rmtree(f"{kept}.index")
        with recollect.open(kept) as memory:
            assert answers(memory) == expected
        assert list(kept.parent.glob("m.db.index/*.seg"))  # and kept again

    def test_a_damaged_file_is_rebuilt_and_said_so(self, kept: Path, caplog: pytest.LogCaptureFixture) -> None:
        with recollect.open(kept) as memory:
            expected = answers(memory)
        (file,) = kept.parent.glob("m.db.index/*.seg")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
        with recollect.open(kept) as memory:
            assert answers(memory) == expected
        assert "corrupt" in caplog.text
        assert file.read_bytes() != bytes(data)

    def test_a_file_of_another_history_is_rebuilt(
        self, kept: Path, tmp_path: Path, clock: Callable[[], datetime], caplog: pytest.LogCaptureFixture
    ) -> None:
        copy = tmp_path / "copy.db"
        shutil.copy(kept, copy)
        with recollect.open(kept, clock=clock) as memory:
            memory.remember_all(texts(30, 200))
            answers(memory)
            settled(core_of(memory).keeper)
        with recollect.open(copy, clock=clock) as memory:
            memory.remember_all(texts(40, 300))
            expected = answers(memory)
        # The copy is put back, and the index of what it replaced still lies there.
        shutil.copy(copy, kept)
        with recollect.open(kept) as memory:
            assert answers(memory) == expected
        assert "another history" in caplog.text

    def test_what_is_opened_for_reading_uses_the_file_and_writes_none(
        self, kept: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with recollect.open(kept) as memory:
            expected = answers(memory)
        before = {each.name: each.stat().st_mtime_ns for each in kept.parent.glob("m.db.index/*")}
        never_made(monkeypatch)
        with recollect.open(kept, read_only=True) as memory:
            assert answers(memory) == expected
        assert {each.name: each.stat().st_mtime_ns for each in kept.parent.glob("m.db.index/*")} == before

    def test_an_index_with_digests_is_another_than_one_without(self, kept: Path) -> None:
        with recollect.open(kept, embedder="hashed") as memory:
            memory.embed_all()
            assert "dense" in memory.recall("boat")[0].why.shares
            settled(core_of(memory).keeper)
        with recollect.open(kept, embedder="hashed") as memory:
            assert "dense" in memory.recall("boat")[0].why.shares

    def test_two_processes_may_make_it_at_once(self, path: Path) -> None:
        with recollect.open(path) as memory:
            memory.remember_all(texts(60))
        code = (
            "import sys, recollect; from recollect.engine.index import keeper; keeper.KEPT_FROM = 20\n"
            "with recollect.open(sys.argv[1]) as m: print([h.record.id for h in m.recall('boat tea', k=20)])"
        )
        both = [
            subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(2)
        ]
        one, other = (each.communicate() for each in both)
        assert one == other
        assert one[1] == b""
        assert len(one[0]) > 100


class TestMerging:
    def test_what_came_since_is_merged_and_answers_stay(self, path: Path, clock: Callable[[], datetime]) -> None:
        with recollect.open(path, clock=clock) as memory:
            keeper = core_of(memory).keeper
            memory.remember_all(texts(40))
            for at in range(12):
                memory.remember_all(texts(7, 1000 + 20 * at))
                memory.forget(memory.find(order="oldest", limit=1)[0].id)
                now = answers(memory)
                settled(keeper)
                assert answers(memory) == now
            index = index_of(memory)
            assert index.segment is not None
            assert index.segment.count > 60  # more than what it began with
            assert answers(memory) == complete(memory)

    def test_where_more_comes_than_is_stored_both_are_rebuilt(self, path: Path, clock: Callable[[], datetime]) -> None:
        with recollect.open(path, clock=clock) as memory:
            memory.remember_all(texts(30))
            answers(memory)
            index = index_of(memory)
            with memory.batch() as batch:
                batch.remember_all(texts(200, 1000))
                batch.forget(memory.find(order="oldest", limit=1)[0].id)
                within = answers(batch)
            assert answers(memory) == within
            assert index_of(memory) is not index
            assert within == complete(memory)

    def test_the_dead_are_left_out(self, path: Path) -> None:
        with recollect.open(path) as memory:
            memory.remember_all(texts(60))
            memory.recall("boat")
            for record in memory.find(limit=40):
                memory.forget(record.id)
            memory.recall("boat")
            settled(core_of(memory).keeper)
            segment = index_of(memory).segment
            assert segment is not None
            assert segment.count == 20
            assert answers(memory) == complete(memory)

    def test_what_is_written_while_it_merges_is_not_lost(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, go_on = threading.Event(), threading.Event()
        real = merged

        def slow(view: Any) -> Any:
            begun.set()
            go_on.wait()
            return real(view)

        with recollect.open(path) as memory:
            memory.remember_all(texts(40))
            memory.recall("boat")
            settled(core_of(memory).keeper)
            monkeypatch.setattr(indexing, "merged", slow)
            memory.remember_all(texts(15, 100))
            memory.recall("boat")
            begun.wait()
            memory.remember_all(texts(30, 200))
            memory.forget(memory.find(limit=1)[0].id)
            before = answers(memory)
            go_on.set()
            settled(core_of(memory).keeper)
            assert answers(memory) == before == complete(memory)

    def test_a_merge_that_fails_changes_no_answer(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def failing(view: Any) -> Any:
            raise MemoryError("no room")

        with recollect.open(path) as memory:
            memory.remember_all(texts(40))
            memory.recall("boat")
            settled(core_of(memory).keeper)
            monkeypatch.setattr(indexing, "merged", failing)
            memory.remember_all(texts(15, 100))
            before = answers(memory)
            settled(core_of(memory).keeper)
            assert answers(memory) == before
        assert "could not be merged" in caplog.text

    @pytest.mark.files
    def test_no_worker_is_left_when_a_memory_is_closed(self, kept: Path) -> None:
        with recollect.open(kept) as memory:
            memory.remember_all(texts(30, 100))
            memory.recall("boat")
        assert not [each for each in threading.enumerate() if each.name == "recollect-indexes"]


class TestHistories:
    @pytest.mark.files
    def test_a_copy_that_has_gone_further_on_is_noticed_when_it_is_put_back(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "a.db", tmp_path / "copy.db"
        with recollect.open(path) as memory:
            memory.remember_all(texts(3))
            replaced(copy, path)
            memory.remember("a lost anchor")
            memory.recall("anchor")
            with recollect.open(copy) as other:
                for at in range(4):
                    other.remember(f"another gull {at}")
            replaced(path, copy)
            assert [hit.record.text for hit in memory.recall("lost anchor") if "lost" in hit.record.text] == []
            assert sum("another" in hit.record.text for hit in memory.recall("another gull")) == 4
            assert answers(memory) == complete(memory)

    @pytest.mark.files
    def test_what_was_written_before_a_copy_was_put_back_is_not_taken_for_what_came_after(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "a.db", tmp_path / "copy.db"
        with recollect.open(path) as memory:
            memory.remember("a boat")
            memory.backup(copy)
            memory.remember("a lost anchor")  # which no index has yet
            replaced(path, copy)
            with recollect.open(path) as other:
                other.remember("a gull")
                memory.remember("a rope")
                assert [hit.record.text for hit in memory.recall("lost anchor")] == []
                assert [hit.record.text for hit in memory.recall("gull")] == ["a gull"]
                assert answers(memory) == answers(other) == complete(memory)

    def test_a_batch_finds_what_is_stored_though_its_index_is_let_go_meanwhile(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with recollect.open(path) as memory:
            memory.remember("the harbour was held before")
            keeper, real = core_of(memory).keeper, IndexKeeper.at

            def let_go(self: IndexKeeper, view: Any, branch: Branch, key: Branch, **options: Any) -> Any:
                found = real(self, view, branch, key, **options)
                self.drop(branch)
                return found

            monkeypatch.setattr(IndexKeeper, "at", let_go)
            with memory.batch() as batch:
                batch.remember("the harbour is new")
                assert len(batch.recall("harbour")) == 2
            assert not list(keeper.entries)

    @pytest.mark.files
    @pytest.mark.in_process
    def test_without_a_thread_to_be_had_recall_and_close_go_on(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def refused(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        memory = recollect.open(path)
        memory.remember_all(texts(40))
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refused)
            assert memory.recall("boat")
        assert "can't start new thread" in caplog.text
        memory.remember_all(texts(20, 100))
        memory.recall("boat")
        settled(core_of(memory).keeper)
        memory.close()
        assert list(path.parent.glob("m.db.index/*.seg"))

    def test_bulk_work_leaves_the_garbage_collector_as_it_was(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        changed: list[str] = []
        others = gc.callbacks[:]  # of a server that ran in this process
        gc.callbacks.clear()
        for name in ("disable", "enable", "freeze", "collect", "set_threshold"):
            monkeypatch.setattr(gc, name, lambda *args, name=name: changed.append(name))
        with recollect.open(path) as memory:
            memory.remember_all(texts(1500))
            memory.recall("boat")
            memory.remember_all(texts(200, 2000))
            memory.recall("boat")
        gc.callbacks.extend(others)
        assert not changed


def replaced(path: Path, by: Path) -> None:
    """Put the contents of one SQLite file into another, as its backup does."""
    from recollect.stores.sqlite_base.checksums import connect

    one, other = connect(str(path)), connect(str(by))
    with one.backup("main", other, "main") as backup:
        backup.step()
    one.close()
    other.close()


class TestGet:
    @pytest.mark.files
    def test_a_record_is_read_from_the_index_where_that_is_current(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with recollect.open(path) as memory:
            memory.remember_all([{"content": text, "id": str(at)} for at, text in enumerate(texts(40))])
            scope = memory.scoped(user="ana")
            scope.remember("of ana", id="mine")
            memory.remember("soon gone", id="due", ttl=3600)
            memory.recall("boat")
            expected = [memory.get(str(at)) for at in range(45)]
            read: list[str] = []
            real = SqliteView.get

            def counted(view: SqliteView, branch: Branch, record_id: str) -> Any:
                read.append(record_id)
                return real(view, branch, record_id)

            monkeypatch.setattr(SqliteView, "get", counted)
            assert [memory.get(str(at)) for at in range(45)] == expected
            assert (expected[0] is not None, expected[44]) == (True, None)
            mine = scope.get("mine")
            assert mine is not None
            assert (mine.text, memory.get("mine"), scope.get("1")) == ("of ana", None, None)
            assert read == []
            memory.update("1", content="changed")
            changed = memory.get("1")
            assert changed is not None
            assert changed.text == "changed"
            assert read == ["1"]  # the index does not reflect the update yet

    def test_an_expired_record_is_not_read_from_the_index(self, path: Path) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        with recollect.open(path, clock=lambda: now[0]) as memory:
            memory.remember("soon gone", id="due", ttl=60)
            memory.recall("gone")
            assert memory.get("due") is not None
            now[0] += timedelta(seconds=61)
            assert memory.get("due") is None


class TestBudget:
    def test_namespaces_that_do_not_exist_and_large_records_take_no_room(self, path: Path) -> None:
        with recollect.open(path) as memory:
            for at in range(5):
                assert not memory.namespace(f"nobody-{at}").recall("boat")
            assert not list(core_of(memory).keeper.entries)
            memory.remember("boat " * 5000)
            memory.remember("a boat")
            assert len(memory.recall("boat", where=f.kind("knowledge"))) == 2  # a filter decodes records
            cache = cache_of(index_of(memory).documents.rows)
            assert [record.text for record in cache.known(range(9)).values()] == ["a boat"]

    def test_what_was_not_asked_for_the_longest_is_let_go_first(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with recollect.open(path) as memory:
            spaces = [memory.namespace(name) for name in "abc"]
            for space in spaces:
                space.remember_all(texts(30))
            keeper = core_of(memory).keeper
            before = [answers(space) for space in spaces]
            one = keeper.entry(Branch("c")).nbytes
            keeper.entries._budget_bytes = 2 * one + one // 2
            spaces[0].recall("boat")
            spaces[1].remember("one more boat")
            spaces[1].recall("boat")
            assert [branch.namespace for branch in keeper.entries] == ["a", "b"]
            keeper.entries._budget_bytes = 1  # at least the one that is asked is cached
            assert answers(spaces[2]) == before[2]
            assert [branch.namespace for branch in keeper.entries] == ["c"]
            assert answers(spaces[0]) == before[0]

    def test_the_limit_is_an_argument_or_a_variable(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def loaded(**options: Any) -> list[str]:
            with recollect.open(path, **options) as memory:
                for name in "abc":
                    memory.namespace(name).recall("boat")
                return [branch.namespace for branch in core_of(memory).keeper.entries]

        with recollect.open(path) as memory:
            for name in "abc":
                memory.namespace(name).remember_all(texts(30))
        assert loaded() == ["a", "b", "c"]
        assert loaded(index_bytes=1) == ["c"]
        monkeypatch.setenv("RECOLLECT_INDEX_BYTES", "1")
        assert loaded() == ["c"]
        assert loaded(index_bytes=2**40) == ["a", "b", "c"]

    @pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "9", 2**62])
    def test_a_limit_that_is_no_positive_integer_is_refused(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any
    ) -> None:
        with pytest.raises(InvalidArgumentError, match="index_bytes must be an integer of at least 1"):
            recollect.open(path, index_bytes=wrong)
        monkeypatch.setenv("RECOLLECT_INDEX_BYTES", "2 GiB" if wrong == "9" else str(wrong))
        with pytest.raises(InvalidArgumentError, match="RECOLLECT_INDEX_BYTES must be an integer of at least 1"):
            recollect.open(path)
        assert not path.exists()

    def test_what_is_counted_is_what_is_stored(self, path: Path) -> None:
        with recollect.open(path) as memory:
            spaces = [memory.namespace(name) for name in "abc"]
            keeper = core_of(memory).keeper
            for at in range(4):
                for space in spaces:
                    space.remember_all(texts(12, 100 * at))
                    answers(space)
            settled(keeper)
            for space in spaces:
                answers(space)
            assert keeper.entries.nbytes == sum(keeper.entry(branch).nbytes for branch in keeper.entries)
            keeper.drop(Branch("b"))
            assert keeper.entries.nbytes == sum(keeper.entry(branch).nbytes for branch in keeper.entries)

    def test_what_one_question_brings_to_hand_is_counted_at_once(self, path: Path) -> None:
        with recollect.open(path) as memory:
            memory.remember_all([f"{text} tea" for text in texts(200)])
            memory.recall("nothing of this")
            keeper = core_of(memory).keeper
            before = keeper.entries.nbytes
            assert len(memory.recall("tea", k=200, where=f.kind("knowledge"))) == 200  # a filter decodes records
            kept = keeper.entry(DEFAULT).value
            assert kept is not None
            assert kept.cached_bytes > 100_000
            assert keeper.entries.nbytes == before + kept.cached_bytes


class TestRecent:
    """The last writes of a process go into its index without being read back."""

    def test_nothing_is_read_back_of_what_this_process_wrote(
        self, path: Path, clock: Callable[[], datetime], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def asked(*_: object, **__: object) -> None:
            raise AssertionError("the store was asked")

        with recollect.open(path, clock=clock) as memory:
            with monkeypatch.context() as patched:
                patched.setattr(indexing, "read_back", asked)
                patched.setattr("recollect.stores.sqlite.view.SqliteView.versions", asked)
                memory.remember_all(texts(150))
                first = memory.remember("a calm boat")
                second = memory.remember("another calm boat")
                answers(memory)
                memory.update(first.id, content="a storm over the keel")
                memory.forget(second.id)
                memory.remember("a gull in the storm")
                found = answers(memory)
            assert found == complete(memory)

    def test_what_others_wrote_is(self, path: Path, clock: Callable[[], datetime]) -> None:
        with recollect.open(path, clock=clock) as memory, recollect.open(path, clock=clock) as other:
            for at in range(30):
                (memory, other, memory)[at % 3].remember(f"boat {at} in the harbour with tea")
                if at % 4 == 0:
                    assert answers(memory) == answers(other)
            assert answers(memory) == answers(other) == complete(memory)

    def test_a_write_that_was_undone_is_in_no_index(self, path: Path) -> None:
        with recollect.open(path) as memory:
            memory.remember("tea")
            with pytest.raises(RuntimeError), memory.batch() as batch:
                batch.remember("a boat that never was")
                raise RuntimeError
            memory.remember("a rope")
            assert not memory.recall("boat")

    def test_a_batch_too_large_to_keep_is_read_back(
        self, path: Path, clock: Callable[[], datetime], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("recollect.engine.write.staging._WRITTEN_BYTES", 1000)
        with recollect.open(path, clock=clock) as memory:
            with memory.batch() as batch:
                for text in texts(40):
                    batch.remember(text)
            assert core_of(memory).keeper._write_cache.since(DEFAULT, 0, EMPTY, memory_head(memory)) is None
            assert answers(memory) == complete(memory)

    @pytest.mark.in_process
    def test_records_of_a_class_of_the_callers_are_indexed_as_they_are_kept(self, path: Path) -> None:
        class Loud(recollect.Record):
            @property
            def text(self) -> str:
                return "a lighthouse"

        with recollect.open(path) as memory:
            stored = memory.remember("tea")
            memory.update(stored.id, lambda record: Loud(id=record.id, content="a boat", time=record.time))
            assert [hit.record.content for hit in memory.recall("boat")] == ["a boat"]
            assert not memory.recall("lighthouse")


def test_the_layout_names_what_is_made_of_records() -> None:
    """Where this fails, the rules have changed: raise `document_of._LAYOUT`, so that kept indexes are rebuilt."""
    import hashlib

    from recollect.engine.index.document_of import _LAYOUT
    from recollect.ledger.merkle import PUBLIC_KEY
    from recollect.records.record import Record

    said: list[tuple[str, dict[str, Any]]] = [
        ("Ana's cats don't like the ferries; we met on 3 May 2021, didn't we?", {"speaker": "Ana Smith"}),
        ("Wo ist der Schlüssel und wer hat ihn?", {"role": "assistant", "pinned": True}),
        ("Wir heizen mit Gas.", {}),
        ("She moved from C to C++ and called +49 30 1234567 about 3f2a9c1d77b0", {}),
        ("집을 샀다, ネコも. Résumé of Hà Nội, ١٢", {}),
        ("我喜欢猫 and the two lighthouses", {"tags": ("standing:instruction",)}),
        ("I always went running yesterday with Tobias", {"metadata": {"caption": "a red boat", "n": 1, "x": [0.5]}}),
        ("The ferry leaves at nine", {"valid_from": "2026-01-02", "valid_to": "2026-02-01", "supersedes": ["r0"]}),
        ("The boats are red", {"derived_from": ["r1", "x" * 70], "parent": "r2"}),
        ("# Tea", {"conversation": None, "metadata": {"title": "Our boats", "headings": ["Red boats", "Tea"]}}),
    ]
    builder = Builder()
    for at, (text, fields) in enumerate(said):
        time = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(days=at)
        fields = {"kind": "conversation", "conversation": "c", "position": at, "time": time, **fields}
        builder.add(document_of(Record(id=f"r{at}", content=text, **fields), UTC, PUBLIC_KEY))
    digest = hashlib.sha256()
    for name, array in sorted(builder.segment().arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
    assert (_LAYOUT, digest.hexdigest()[:16]) == (18, "ec255a669e47c04e")
