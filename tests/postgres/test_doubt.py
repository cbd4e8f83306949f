"""A connection that is lost at a commit: no caller hears of success for a lost commit, or of failure for a kept one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.postgres.proxy import CuttingProxy, Where

import recollect
from recollect.errors import CommitInDoubtError, RecollectError
from recollect.memory import Memory
from recollect.stores.postgres.doubt import Fate, Resolver
from recollect.stores.postgres.session import Session
from recollect.stores.write_queue import Shared
from recollect.testing.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(server.folder)
    yield proxy
    proxy.close()


def wrong(server: PostgresServer, proxy: CuttingProxy, namespace: str, cuts: list[Where], folder: Path) -> list[str]:
    """Write while connections are cut, and return what was not told rightly."""
    random_ = random.Random(namespace)
    told: dict[str, str] = {}
    with recollect.open(f"{proxy.dsn}&cache={folder}", namespace, embedder="none") as memory:
        memory.remember("first", id="first")
        for number, where in enumerate(cuts):
            proxy.cut_next(where)
            try:
                write(memory, random_, f"n{number}")
                told[f"n{number}"] = "stored"
            except CommitInDoubtError:
                told[f"n{number}"] = "in doubt"
            except RecollectError:
                told[f"n{number}"] = "not stored"
    with recollect.open(f"{server.dsn}&cache={folder}", namespace, embedder="none") as memory:
        assert memory.check() == []
        stored = {record.id for record in memory.find(limit=len(cuts) + 10)}
    return [
        f"{record_id} was said to be {said}, cut {cuts[int(record_id[1:])]}"
        for record_id, said in told.items()
        if said != "in doubt" and (said == "stored") is not (record_id in stored)
    ]


def write(memory: Memory, random_: random.Random, record_id: str) -> None:
    if random_.random() < 0.5:
        memory.remember(f"note {record_id}", id=record_id)
        return
    with memory.batch() as batch:
        batch.remember(f"note {record_id}", id=record_id)
        batch.recall("note")


@pytest.mark.parametrize("where", ["before", "at", "after"])
def test_a_cut_commit_is_told_rightly(
    where: Where, server: PostgresServer, proxy: CuttingProxy, tmp_path: Path
) -> None:
    assert wrong(server, proxy, where, [where] * 12, tmp_path) == []
    assert proxy.cuts >= 12


@pytest.mark.thorough
@pytest.mark.parametrize("where", ["before", "at", "after"])
def test_many_cut_commits_are_told_rightly(
    where: Where, server: PostgresServer, proxy: CuttingProxy, tmp_path: Path
) -> None:
    assert wrong(server, proxy, f"many {where}", [where] * 250, tmp_path) == []
    assert proxy.cuts >= 250


@pytest.mark.parametrize("fate", [Fate.STORED, Fate.NOT_STORED])
def test_a_resolver_that_guesses_is_noticed(
    fate: Fate, server: PostgresServer, proxy: CuttingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def guess(self: Resolver, lost: Any) -> Fate:
        return fate

    monkeypatch.setattr(Resolver, "resolve", guess)
    assert wrong(server, proxy, f"guess {fate}", ["before", "after"] * 3, tmp_path)


def test_a_commit_whose_thread_is_interrupted_is_in_doubt_for_all_who_share_it(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after the server has the commit, and before its answer was read."""
    real = Session.commit

    def interrupted(self: Session) -> None:
        real(self)
        raise KeyboardInterrupt

    with recollect.open(f"{server.dsn}&cache={tmp_path}", "interrupted", embedder="none") as memory:
        memory.remember("first", id="first")
        told: list[RecollectError | None] = []
        end = Shared.end

        def noted(shared: Shared, error: RecollectError | None) -> None:
            told.append(error)
            end(shared, error)

        monkeypatch.setattr(Shared, "end", noted)
        monkeypatch.setattr(Session, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            memory.remember("second", id="second")
        monkeypatch.undo()
        assert [type(error) for error in told] == [CommitInDoubtError]
        assert memory.get("second") is not None
        memory.remember("third")
