"""Full-text search under load: caps on what is asked, moments that agree, and searches that keep nobody out."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import recollect
from recollect.errors import ClosedError, InvalidQueryError, NoMemoryError, RecollectError
from recollect.memory import Memory
from recollect.stores.derived import database as derived
from recollect.stores.derived import fulltext
from recollect.stores.derived.fulltext import MOST_PHRASE_WORDS, MOST_WORDS, fts_query
from recollect.stores.memory import MemoryStore
from recollect.testing import memory_on
from recollect.testing.loopback import core_of, full_text_of

#: Longer than a test takes, so that one that waits for nothing fails.
PATIENCE_S = 60


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with recollect.open(tmp_path / "a.db") as opened:
        opened.remember("alpha beta", id="first")
        yield opened


# Caps

PARTS: dict[str, Callable[[int], str]] = {
    "words": lambda count: " ".join(["alpha"] * count),
    "alternatives": lambda count: " or ".join(["alpha"] * count),
    "exceptions": lambda count: "alpha" + " and not alpha" * (count - 1),
    "prefixes": lambda count: " ".join(["a*"] * count),
    "a phrase in quotes": lambda count: '"' + " ".join(["alpha"] * count) + '"',
    "a phrase of one word with hyphens": lambda count: "1-" * count,
    "a phrase of Han": lambda count: "喜" * count,
    "a phrase of one character that is many words": lambda count: "\ufdfa" * count,
    "brackets": lambda count: "(" * count + "alpha" + ")" * count,
}


@pytest.mark.promise("limits.queries")
@pytest.mark.parametrize("count", [1, 20, 63, 64, 65, 200, 255, 256, 257, 1000, 4000, 100_000])
@pytest.mark.parametrize("name", PARTS)
def test_a_query_of_any_size_is_answered_or_refused_by_name(memory: Memory, name: str, count: int) -> None:
    query = PARTS[name](count)
    refused = None
    try:
        memory.grep(query)
    except InvalidQueryError as error:
        refused = str(error)
        assert any(why in refused for why in ("the cap of 8192 bytes", "more than 256 words", "more than 64", "deeply"))
    phrase = "phrase" in name
    if len(query.encode()) > 8192 or count > (MOST_PHRASE_WORDS if phrase else MOST_WORDS):
        assert refused
    elif name not in ("exceptions", "brackets") and "many words" not in name:
        assert not refused
    assert [record.id for record in memory.grep("alpha")] == ["first"]


@pytest.mark.promise("limits.queries")
def test_the_cap_of_a_query_is_the_users_and_holds_in_a_batch_too() -> None:
    memory = memory_on(MemoryStore(), limits=recollect.Limits(query_bytes=5))
    memory.remember("alpha é")
    assert len(memory.grep("alpha")) == 1
    with pytest.raises(InvalidQueryError, match="the cap of 5 bytes"):
        memory.grep("alphaé")
    with memory.batch() as batch, pytest.raises(InvalidQueryError, match="the cap of 5 bytes"):
        batch.grep("alphas")


@pytest.mark.promise("limits.queries")
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_asked_sqlite_is_asked_for_few_words(seed: int) -> None:
    """A word costs a walk over all that a text has of it, one of a phrase the memory for them."""
    rng = random.Random(seed)
    tokens = [
        "1-",
        "1",
        "a'",
        "alpha",
        " ",
        " ",
        ' "',
        '" ',
        " or ",
        " and ",
        " not ",
        " (",
        ") ",
        "* ",
        "喜",
        "\ufdfa",
    ]
    taken = 0
    for _ in range(400):
        query = "".join(rng.choices(tokens, k=rng.choice((3, 100, 300, 1000))))
        query = query * rng.choice((1, 1, 20)) + ("x" if rng.random() < 0.3 else '"')
        try:
            wanted = fts_query(query)
        except InvalidQueryError:
            continue
        taken += 1
        assert wanted.count('"') // 2 <= MOST_WORDS
        assert all(phrase.count('"') // 2 <= MOST_PHRASE_WORDS for phrase in wanted.split(")"))
    assert taken


# Closing


@pytest.mark.parametrize("has_searched", [True, False])
@pytest.mark.parametrize("while_it_searches", [False, True])
def test_a_search_after_closing_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_searched: bool, while_it_searches: bool
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    memory = recollect.open(folder / "a.db")
    memory.remember("alpha")
    if has_searched:
        memory.grep("alpha")

    def ends() -> None:
        memory.close()
        shutil.rmtree(folder)

    if while_it_searches:
        real = fulltext.FullText.search

        def search(*arguments: Any) -> list[str]:
            ends()
            return real(*arguments)

        monkeypatch.setattr(fulltext.FullText, "search", search)
    else:
        ends()
    with pytest.raises(ClosedError):
        memory.grep("alpha")
    assert not folder.exists()


def test_a_search_after_closing_makes_no_index_in_memory() -> None:
    memory = memory_on(MemoryStore())
    memory.remember("alpha")
    assert len(memory.grep("alpha")) == 1
    memory.close()
    with pytest.raises(ClosedError):
        memory.grep("alpha")
    assert full_text_of(memory)._connection is None


# Memory


@pytest.mark.promise("damage.none")
def test_for_want_of_memory_no_index_is_thrown_away(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory.grep("alpha")
    for error in (apsw.NoMemError("out of memory"), MemoryError()):
        with monkeypatch.context() as patched:
            patched.setattr(fulltext.FullText, "_found", raising(error))
            with pytest.raises(NoMemoryError):
                memory.grep("alpha")
        assert len(memory.grep("alpha")) == 1
        assert caplog.text == ""
    with monkeypatch.context() as patched:  # the negative control: damage does throw it away
        patched.setattr(fulltext.FullText, "_found", raising(apsw.CorruptError("hurt"), times=1))
        assert len(memory.grep("alpha")) == 1
    assert caplog.text.count("it is rebuilt") == 1


def raising(error: Exception, times: int = 9) -> Any:
    """In place of `FullText._found`: raise so often, and then do as it does."""
    real, left = fulltext.FullText._found, [times]

    def found(*arguments: Any) -> list[str]:
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return real(*arguments)

    return staticmethod(found)


# Slow searches


class Stopped:
    """The first search stands still in the middle of its MATCH, until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        real = derived.connect

        def connect(*arguments: Any, **named: Any) -> apsw.Connection:
            connection = real(*arguments, **named)
            connection.exec_trace = lambda cursor, sql, bindings: self._stop(connection, sql)
            return connection

        monkeypatch.setattr(derived, "connect", connect)

    def _stop(self, connection: apsw.Connection, sql: str) -> bool:
        if "MATCH" in sql and not self.reached.is_set():
            connection.set_progress_handler(self._wait, 1)
        return True

    def _wait(self) -> bool:
        self.reached.set()
        assert self.go_on.wait(PATIENCE_S)
        return False


@contextmanager
def standing_still(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """While a search of another thread stands still; what it found, once the block has ended."""
    stopped, found = Stopped(monkeypatch), list[str]()
    thread = threading.Thread(target=lambda: found.extend(record.id for record in memory.grep("beta")))
    thread.start()
    try:
        assert stopped.reached.wait(PATIENCE_S)
        yield found
    finally:
        stopped.go_on.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


GREP = "import sys, recollect; m = recollect.open(sys.argv[1], timeout=0.1); m.remember('beta of a process', id='p'); "
GREP += "print(sorted(r.id for r in m.grep('beta')))"


@pytest.mark.files
@pytest.mark.promise("concurrent.grep")
def test_while_a_search_stands_still_others_search_and_catch_up(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with standing_still(memory, monkeypatch) as slow:
        memory.remember("beta of this handle", id="h")
        assert sorted(record.id for record in memory.grep("beta")) == ["first", "h"]
        with recollect.open(tmp_path / "a.db") as other:
            other.remember("beta of another", id="o")
            assert sorted(record.id for record in other.grep("beta")) == ["first", "h", "o"]
        done = subprocess.run(
            [sys.executable, "-c", GREP, str(tmp_path / "a.db")], capture_output=True, text=True, check=False
        )
        assert (done.stdout.strip(), done.stderr) == ("['first', 'h', 'o', 'p']", "")
        memory.forget("first")
        assert sorted(record.id for record in memory.grep("beta")) == ["h", "o", "p"]
        assert slow == []
    assert slow == ["first"]  # as it was when it began
    assert memory.check() == []


@pytest.mark.promise("concurrent.grep")
def test_a_search_that_stands_still_is_not_harmed_when_the_index_is_deleted(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with standing_still(memory, monkeypatch) as slow:
        for left in (tmp_path / "a.db.index").glob("text.db*"):
            left.unlink()
        memory.remember("beta again", id="again")
        assert sorted(record.id for record in memory.grep("beta")) == ["again", "first"]
    assert slow == ["first"]


# Moments


@pytest.mark.promise("concurrent.grep")
def test_where_another_process_brings_the_index_further_a_newer_moment_is_asked_for(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step of a search, another handle writes and greps: what is found is right for one moment all the same."""
    real = fulltext.FullText._catch_up
    written: list[str] = []

    def overtaken(self: Any, *arguments: Any) -> Any:
        reported = real(self, *arguments)
        if self is core_of(memory).fulltext and len(written) < 3:
            written.append(f"w{len(written)}")
            other.remember("beta", id=written[-1])
        return reported

    monkeypatch.setattr(fulltext.FullText, "_catch_up", overtaken)
    with recollect.open(tmp_path / "a.db") as other:
        memory.remember("beta two", id="two")
        found = {record.id for record in memory.grep("beta")}
        assert {"first", "two"} <= found <= {"first", "two", *written}
        assert {record.id for record in other.grep("beta")} == {"first", "two", *written}


@pytest.mark.promise("concurrent.grep")
def test_a_search_that_is_always_overtaken_holds_the_lock_in_the_end(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, rounds = fulltext.FullText._reached, 0

    def never(connection: apsw.Connection, line: Any) -> Any:
        nonlocal rounds
        reached = real(connection, line)
        if sys._getframe(1).f_code.co_name == "_search":  # not while it catches up
            rounds += 1
            return None if reached is None else (reached[0] - 1, b"")
        return reached

    monkeypatch.setattr(fulltext.FullText, "_reached", staticmethod(never))
    memory.remember("beta two", id="two")
    assert {record.id for record in memory.grep("beta")} == {"first", "two"}
    assert rounds == fulltext._ROUNDS


@pytest.mark.promise("concurrent.grep")
def test_an_index_that_another_process_is_just_creating_is_waited_for(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a.db.index"
    path = folder / "text.db"
    with closing(derived.connect(str(path), fulltext._TABLES)) as other:  # it has not switched to WAL mode yet
        other.execute("BEGIN IMMEDIATE")
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            other.execute("ROLLBACK")

        monkeypatch.setattr(time, "sleep", pause)
        assert [record.id for record in memory.grep("beta")] == ["first"]
    assert len(pauses) == 1


@pytest.mark.promise("concurrent.grep")
def test_what_is_found_is_always_of_one_moment_of_the_store(tmp_path: Path) -> None:
    """Each commit moves the one "beta" from one record to the other: every search finds exactly one."""
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("beta", id="a")
        memory.remember("gamma", id="b")
        wrong: list[Any] = []
        over = threading.Event()

        def look(handle: Memory) -> None:
            try:
                while not over.is_set():
                    found = [record.content for record in handle.grep("beta")]
                    if found != ["beta"]:
                        wrong.append(found)
            except RecollectError as error:
                wrong.append(error)

        with recollect.open(path) as other:
            threads = [threading.Thread(target=look, args=(each,)) for each in (memory, memory, other, other)]
            for thread in threads:
                thread.start()
            for number in range(60):
                has, lacks = ("a", "b") if number % 2 == 0 else ("b", "a")
                with memory.batch() as batch:
                    batch.update(has, content="gamma")
                    batch.update(lacks, content="beta")
            over.set()
            for thread in threads:
                thread.join(PATIENCE_S)
        assert wrong == []
