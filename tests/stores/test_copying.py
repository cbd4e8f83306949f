"""Copying a store into another one: the same history, or an error that says why not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.errors import DamagedStoreError, InvalidArgumentError, StoreFullError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import Root
from recollect.memory import Memory
from recollect.stores.base import Store
from recollect.stores.maintenance import copying
from recollect.stores.maintenance.copying import copy_store
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import FaultyStore, memory_on


def fill(memory: Memory) -> None:
    """Write some of everything that a store keeps."""
    memory.remember_all([f"note {number} of a long list" for number in range(150)])
    memory.remember("Ana drinks tea", id="tea", user="ana")
    memory.update("tea", content="Ana drinks coffee")
    memory.add_messages([{"role": "user", "content": f"turn {number}"} for number in range(12)], conversation="c")
    memory.remember("a secret", id="secret")
    memory.snapshot("before")
    memory.forget("secret")
    memory.erase("secret")
    memory.remember("another secret", id="name of a person")
    memory.erase("name of a person", redact=True)
    memory.glossary.memorize("LLM", "large language model", "abbreviation", "agent")
    memory.set_quota(records=1000)
    other = memory.namespace("other")
    other.remember("of another namespace")
    other.snapshot()


def contents(store: Store) -> object:
    """Everything that a store keeps, without the numbers that no hash covers."""
    with store.read() as view:
        out = []
        for branch in view.branches():
            log = [copying._plain(commit) for commit in view.commits(branch)]
            redactions = [view.redactions(branch, commit.seq) for commit in log]
            versions = sorted({each.after for commit in log for each in commit.changes if each.after is not None})
            out.append(
                (
                    branch,
                    log,
                    redactions,
                    view.payloads(branch, versions),
                    view.removed(branch, versions),
                    dict(view.versions(branch)),
                    view.snapshots(branch),
                )
            )
        return out, {name: value for name, value in view.settings("", "~").items() if not name.startswith("erasing")}


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Store]:
    with recollect.open(tmp_path / "source.db", embedder="none", zone="Europe/Copenhagen") as memory:
        fill(memory)
    with closing(SqliteStore(tmp_path / "source.db", read_only=True)) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: dict[str, Callable[[], Store]] = {
        "memory": lambda: MemoryStore(zone="Europe/Copenhagen"),
        "sqlite": lambda: SqliteStore(tmp_path / "target.db", zone_of_new=lambda: "Europe/Copenhagen"),
    }
    with closing(made[request.param]()) as store:
        yield store


def test_a_copy_has_the_same_history_and_a_copy_of_it_too(source: Store, target: Store, tmp_path: Path) -> None:
    done = copy_store(source, target)
    assert contents(target) == contents(source)
    assert (done.there, done.branches) == (0, 3)
    report, original = target.check(), source.check()
    assert (list(report), report.commits, report.erased) == ([], original.commits, original.erased)
    again = SqliteStore(tmp_path / "again.db", zone_of_new=lambda: "Europe/Copenhagen")
    with closing(again):
        copy_store(target, again)
        assert contents(again) == contents(source)
        assert again.check() == []


def test_a_copy_is_continued_with_what_was_written_since(tmp_path: Path, target: Store) -> None:
    path = tmp_path / "source.db"
    with recollect.open(path, embedder="none", zone="Europe/Copenhagen") as memory:
        for number in range(3):
            memory.remember(f"note {number}")
            memory.snapshot(f"s{number}")
            with closing(SqliteStore(path, read_only=True)) as store:
                done = copy_store(store, target)
                assert (done.commits, done.there) == (1, number)
                assert contents(target) == contents(store)
        memory.drop_snapshot("s1")
        with closing(SqliteStore(path, read_only=True)) as store:
            assert copy_store(store, target).commits == 0
            assert contents(target) == contents(store)
    with memory_on(target) as copied:
        assert copied.remember("note 3").content == "note 3"
        assert copied.count() == 4


def test_a_copy_that_failed_at_any_step_is_completed_by_the_next_one(
    source: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_AT_ONCE", 20)
    for step in range(1, 400, 37):
        path = tmp_path / f"{step}.db"
        with closing(SqliteStore(path, zone_of_new=lambda: "Europe/Copenhagen")) as target:
            faulty = FaultyStore(target, fail_at=step)
            try:
                copy_store(source, faulty)
            except StoreFullError:
                copy_store(source, target)
            assert contents(target) == contents(source)
            assert target.check() == []


def test_a_target_that_is_no_copy_of_the_source_is_refused(source: Store, target: Store) -> None:
    with memory_on(target) as memory:
        memory.remember("something else")
        with pytest.raises(InvalidArgumentError, match="another history"):
            copy_store(source, target)
        assert memory.count() == 1
        with pytest.raises(InvalidArgumentError, match="time zone"):
            copy_store(source, MemoryStore())
        with pytest.raises(InvalidArgumentError, match="another key"):
            copy_store(source, MemoryStore(key=b"a key of sixteen bytes"))
        memory.namespace("strange").remember("x")
        with pytest.raises(InvalidArgumentError, match="'strange'"):
            copy_store(source, target)


def test_a_copy_made_before_an_erasure_is_refused_and_not_left_with_the_text(tmp_path: Path, target: Store) -> None:
    path = tmp_path / "source.db"
    with recollect.open(path, embedder="none", zone="Europe/Copenhagen") as memory:
        memory.remember("a secret", id="a")
        with closing(SqliteStore(path, read_only=True)) as store:
            copy_store(store, target)
        memory.erase("a")
        store = SqliteStore(path, read_only=True)
        with closing(store), pytest.raises(InvalidArgumentError, match="erased in the source since"):
            copy_store(store, target)


def test_a_source_whose_history_does_not_lead_to_its_roots_is_not_copied() -> None:
    source = MemoryStore()
    with memory_on(source) as memory:
        fill(memory)
        log = source._contents.ledgers[Branch("default")].log
        log[2] = replace(log[2], root=Root(b"x" * 32, log[2].root.page))
        with pytest.raises(DamagedStoreError, match="commit 3 does not have its root or entry"):
            copy_store(source, MemoryStore())


def test_the_command_copies_a_file_and_continues(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        fill(memory)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["copy", str(tmp_path / "a.db"), str(tmp_path / "b.db"), *arguments])
        assert done.exit_code == 0, done.output
        return str(done.output)

    assert "every root was verified" in run()
    assert json.loads(run("--json"))["commits"] == 0
    with recollect.open(tmp_path / "b.db") as copied:
        assert copied.recall("coffee").hits[0].record.id == "tea"
        assert copied.check() == []
