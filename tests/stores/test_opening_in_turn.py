"""Several processes that create or open a store at the same time: each waits for its turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.errors import StoreBusyError
from recollect.stores.sqlite.store import SqliteStore


@pytest.mark.in_process
@pytest.mark.parametrize("exists", [False, True])
def test_a_file_that_is_busy_is_opened_again(tmp_path: Path, exists: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if exists:
        recollect.open(tmp_path / "a.db").close()
    real, left = SqliteStore._set_up, [3]

    def busy_at_first(store: Any, new: bool) -> None:
        if left[0]:
            left[0] -= 1
            raise StoreBusyError(store.path, "database is locked")
        real(store, new)

    monkeypatch.setattr(SqliteStore, "_set_up", busy_at_first)
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("a note")
        assert memory.check() == []
    assert left == [0]


@pytest.mark.in_process
def test_one_that_stays_busy_is_refused_after_the_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def busy(store: Any, new: bool) -> None:
        calls.append(new)
        raise StoreBusyError(store.path, "database is locked")

    monkeypatch.setattr(SqliteStore, "_set_up", busy)
    with pytest.raises(StoreBusyError):
        recollect.open(tmp_path / "a.db", timeout=0.02)
    assert len(calls) > 1
