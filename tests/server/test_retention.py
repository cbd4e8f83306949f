"""The hourly task of a server, and the calls of retention of its clients."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.retention.clock import Clock, later

import recollect
from recollect import Memory, RetentionRule
from recollect.errors import StoreMissingError, StoreReplacedError
from recollect.server.retention import hourly, sweep_all
from recollect.server.served_memory import ServedMemory


@pytest.fixture
def served(tmp_path: Path) -> Any:
    clock = Clock()

    def opener(*, create: bool, read_only: bool) -> Memory:
        path = tmp_path / "a.db"
        if not create and not path.exists():
            raise StoreMissingError(str(path))
        return recollect.open(path, clock=clock, read_only=read_only)

    served = ServedMemory(opener)
    yield served
    served.close()


def with_rules(memory: Memory, count: int) -> None:
    memory.remember_all([{"content": f"text {number}"} for number in range(count)])
    memory.set_retention([RetentionRule("old", after="1d")])


def test_each_namespace_with_rules_is_swept_and_the_others_are_left_alone(served: ServedMemory) -> None:
    memory = served.writing()
    with_rules(memory, 1001)
    with_rules(memory.namespace("other"), 2)
    memory.namespace("third").remember("stays")
    memory.namespace("third").remember("no rule removes what has expired", ttl=60)
    later(memory, days=2)
    assert sweep_all(served) == {"default": 1001, "other": 2}
    assert sweep_all(served) == {}
    assert (memory.count(), memory.namespace("third").seq) == (0, 2)


def test_every_branch_is_swept_and_one_with_nothing_due_is_not_written(served: ServedMemory) -> None:
    memory = served.writing()
    empty = memory.branch("empty")
    with_rules(memory, 2)
    branch = memory.branch("what-if")
    branch.remember("of the branch alone")
    later(memory, days=2)
    assert sweep_all(served) == {"default": 5}
    assert (memory.count(), branch.count(), empty.seq) == (0, 0, 0)
    branch.remember("later")
    later(memory, days=2)
    memory.remember("and now")
    assert sweep_all(served) == {"default": 1}


def test_a_branch_with_the_commits_of_a_copy_is_not_swept(served: ServedMemory, tmp_path: Path) -> None:
    memory = served.writing()
    with_rules(memory, 1)
    memory.backup(tmp_path / "copy.db")
    with recollect.open(tmp_path / "copy.db", clock=Clock()) as copy:
        copy.remember("of the copy")
    memory.remember("of this store")
    recollect.merge_copy(memory, tmp_path / "copy.db")
    later(memory, days=2)
    sweep_all(served)
    assert (memory.count(), memory.on("copy").count()) == (0, 2)


def test_without_a_store_and_in_one_that_is_only_read_nothing_is_done(served: ServedMemory) -> None:
    assert sweep_all(served) == {}
    assert not served.is_open
    with_rules(served.writing(), 2)
    later(served.writing(), days=2)
    served.read_only = True
    assert sweep_all(served) == {}
    served.read_only = False
    assert sweep_all(served, lambda: True) == {}  # it stops
    assert sweep_all(served) == {"default": 2}


def test_it_runs_again_and_again_until_the_end_also_after_an_error(
    monkeypatch: pytest.MonkeyPatch, served: ServedMemory, caplog: pytest.LogCaptureFixture
) -> None:
    ran = threading.Event()
    results: Iterator[Any] = iter([StoreReplacedError("a.db"), {"default": 3}])

    def swept(*_: Any) -> dict[str, int]:
        found: Any = next(results, {})
        if isinstance(found, Exception):
            raise found
        if not found:
            ran.set()
        return dict(found)

    monkeypatch.setattr("recollect.server.retention.sweep_all", swept)
    with caplog.at_level(logging.INFO, "recollect.server"), hourly(served, 0, 0):
        assert ran.wait(60)
    said = [each.getMessage() for each in caplog.records]
    assert "were not applied now" in said[0]
    assert said[1] == "retention: 3 records removed"
    assert not [each for each in threading.enumerate() if each.name == "recollect-retention"]


def test_a_server_ends_at_once_while_it_waits_for_the_next_run(served: ServedMemory) -> None:
    with hourly(served):
        assert [each for each in threading.enumerate() if each.name == "recollect-retention"]
