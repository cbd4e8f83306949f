"""An erasure reaches the derived data of each machine: of the one that erases at once, of others as they next read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.engine.erasures import Erasures
from recollect.errors import StoreBusyError, StoreIOError
from recollect.memory import Memory
from recollect.models.embedding.hashed import Hashed
from recollect.testing.loopback import core_of

pytestmark = pytest.mark.postgres
SECRET = "quixotically"


def machine(address: str, folder: Path) -> Memory:
    """Open the store on a machine with a cache folder of its own."""
    return recollect.open(f"{address.partition('&cache=')[0]}&cache={folder}", "erasing", embedder=Hashed())


def filled(memory: Memory) -> None:
    """Derive all that there is from a memory."""
    memory.recall(SECRET)
    memory.grep(SECRET)
    memory.embed_all()


def traces(folder: Path) -> list[str]:
    """Return the files that contain the erased word."""
    while True:
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert files
        try:
            return [path.name for path in files if SECRET.encode() in path.read_bytes()]
        except FileNotFoundError:  # a segment that is being written got its name: list again
            continue


def vectors(memory: Memory) -> int:
    core = core_of(memory)
    assert core.vectors is not None
    return sum(count for _, count in core.vectors.store.models("erasing"))


def remember(memory: Memory) -> None:
    memory.remember_all([f"note {number} about the harbour" for number in range(300)])
    memory.remember(f"Ana said it {SECRET}", id="secret")


def test_a_machine_that_runs_removes_it_with_its_next_read(address: str, tmp_path: Path) -> None:
    with machine(address, tmp_path / "one") as one, machine(address, tmp_path / "two") as two:
        remember(one)
        filled(one)
        filled(two)
        before = vectors(two)
        assert before == vectors(one)
        erased = one.erase("secret")
        assert any("other machines" in copy for copy in erased.copies)
        assert vectors(one) == before - 1
        assert two.get("secret") is None
        assert vectors(two) == before - 1
        assert traces(tmp_path / "two") == []
    assert traces(tmp_path / "one") == traces(tmp_path / "two") == []


def test_a_machine_that_was_off_removes_it_when_it_next_uses_the_memory(address: str, tmp_path: Path) -> None:
    with machine(address, tmp_path / "one") as one:
        remember(one)
        with machine(address, tmp_path / "two") as two:
            filled(two)
            before = vectors(two)
        assert traces(tmp_path / "two")
        one.erase("secret")
        one.remember("something else")
        assert traces(tmp_path / "two")
        with machine(address, tmp_path / "two") as two:
            two.count()
            assert vectors(two) == before - 1
        assert traces(tmp_path / "two") == []


def test_what_could_not_be_removed_is_removed_by_the_next_process(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(self: Erasures, branches: Any, shared: bool = True) -> bool:
        raise StoreIOError("the cache", "the disk does not answer")

    with machine(address, tmp_path / "one") as one:
        remember(one)
        with machine(address, tmp_path / "two") as two:
            filled(two)
            before = vectors(two)
            one.erase("secret")
            monkeypatch.setattr(Erasures, "_clean_derived", failing)
            assert two.get("secret") is None
            assert "until the next start" in caplog.text
            monkeypatch.undo()
            assert vectors(two) == before
        with machine(address, tmp_path / "two") as two:
            two.count()
            assert vectors(two) == before - 1
        assert traces(tmp_path / "two") == []


def test_what_could_not_be_dropped_from_the_caches_is_dropped_by_the_next_read(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[str] = []
    forget = Erasures._forget

    def failing(self: Erasures, *args: Any) -> None:
        dropped.append("failed" if not dropped else "done")
        if dropped == ["failed"]:
            raise StoreBusyError("the store", "no connection is free")
        forget(self, *args)

    with machine(address, tmp_path / "one") as one:
        remember(one)
        monkeypatch.setattr(Erasures, "_forget", failing)
        one.erase("secret")
        one.count()
        assert dropped == ["failed", "done"]
