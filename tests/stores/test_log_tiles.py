"""The saved tiles of a log tree: whatever happens to their file, heads and proofs are those of the log."""

from __future__ import annotations

import hashlib
import random
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.engine.test_proofs import both
from tests.examples import some

import recollect
from recollect import Memory
from recollect.engine import trees
from recollect.ledger.entries import entry_hash
from recollect.ledger.log_tree import head_of, leaf_of
from recollect.stores.sqlite_base import checksums

COMMITS = 600  # two complete tiles


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "a.db"
    with recollect.open(path, durability="normal") as memory:
        write(memory, COMMITS)
        memory.head()
    return path.parent


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy" / "a.db"


def write(memory: Memory, count: int) -> None:
    for number in range(memory.seq, memory.seq + count):
        memory.remember(f"fact {number}", id="a", if_exists="update")


def from_the_log(memory: Memory) -> str:
    """The head of the log, from its definition."""
    key = memory._executor.core.store.key  # type: ignore[attr-defined]
    leaves = [leaf_of(entry_hash(commit, key)) for commit in memory.changes()]
    return head_of(len(leaves), mth(leaves)).hex()


def mth(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def tiles_of(path: Path) -> Path:
    return Path(f"{path}.index", "log.db")


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The entries that were read for a tree."""
    entries: list[bytes] = []

    def noted(entry: bytes) -> bytes:
        entries.append(entry)
        return leaf_of(entry)

    monkeypatch.setattr(trees, "leaf_of", noted)
    return entries


@pytest.mark.in_process
class TestSavedTiles:
    def test_they_are_used_and_only_newer_commits_are_read(self, path: Path, hashed: list[bytes]) -> None:
        assert stat.S_IMODE(tiles_of(path).stat().st_mode) == 0o600
        with recollect.open(path) as memory:
            log = memory.head().log
            assert hashed == [commit.entry for commit in memory.changes(511)]
            assert log == from_the_log(memory)
            hashed.clear()
            memory.head()
            memory.prove("a")
            memory.prove("a", at=3)
            assert hashed == []
            write(memory, 2)
            assert memory.head().log == from_the_log(memory)
            assert hashed == [commit.entry for commit in memory.changes(COMMITS - 1)]
            assert len(hashed) == 3

    def test_a_write_does_not_touch_them(self, path: Path) -> None:
        before = tiles_of(path).read_bytes()
        tiles_of(path).unlink()
        with recollect.open(path) as memory:
            write(memory, 300)
            assert not tiles_of(path).exists()
            memory.head()
        assert len(tiles_of(path).read_bytes()) >= len(before)

    def test_if_they_are_deleted_they_are_computed_again(self, path: Path, hashed: list[bytes]) -> None:
        with recollect.open(path) as memory:
            right = memory.head().log
        shutil.rmtree(f"{path}.index")
        hashed.clear()
        with recollect.open(path) as memory:
            assert memory.head().log == right
            assert len(hashed) == COMMITS
            tiles_of(path).unlink()
            for seq in (1, 300, 599):
                assert both(memory.prove("a", at=seq), right or "")
            memory._executor.core.log_trees._trees.clear()  # type: ignore[attr-defined]
            assert memory.head().log == right
            assert tiles_of(path).exists()

    @pytest.mark.promise("proof.log")
    def test_if_they_are_damaged_they_are_computed_again(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with recollect.open(path) as memory:
            right = memory.head().log
        whole = tiles_of(path).read_bytes()
        rng = random.Random(1)
        for at in [0, 20, 100, *(rng.randrange(len(whole)) for _ in range(some(60)))]:
            tiles_of(path).write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            with recollect.open(path) as memory:
                for seq in (1, 300, 599):
                    assert both(memory.prove("a", at=seq), right or ""), at
        assert "cannot be used" in caplog.text

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE tiles SET hashes = zeroblob(8192) WHERE number = 1",
            "UPDATE tiles SET hashes = x'' WHERE number = 1",
            "UPDATE tiles SET top = zeroblob(32) WHERE number = 0",
            "UPDATE tiles SET number = 2 WHERE number = 0",
            "UPDATE tiles SET level = 1",
            "DELETE FROM tiles WHERE number = 0",
            "DELETE FROM logs",
            "UPDATE logs SET size = 256",
            "UPDATE logs SET size = -512",
            "UPDATE logs SET size = 511",
            "UPDATE logs SET size = 9223372036854775552",
            "UPDATE logs SET size = 'two'",
            "UPDATE logs SET tree = zeroblob(32)",
            "UPDATE logs SET tree = NULL",
            "DROP TABLE tiles",
            "CREATE TABLE other (x)",
        ],
    )
    def test_wrong_rows_change_no_head_and_raise_nothing(self, path: Path, change: str) -> None:
        with recollect.open(path) as memory:
            right = memory.head().log
        connection = checksums.connect(str(tiles_of(path)))
        connection.execute(change).fetchall()
        connection.close()
        for _ in range(2):
            with recollect.open(path, read_only=True) as memory:
                assert memory.head().log == right
        with recollect.open(path) as memory:
            for seq in (1, 300, 599):
                assert both(memory.prove("a", at=seq), right or "")
            assert memory.head().log == right

    def test_those_of_another_store_are_not_used(self, path: Path, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "b.db") as memory:
            write(memory, 300)
            right = memory.head().log
        shutil.copy(tiles_of(path), tiles_of(tmp_path / "b.db"))
        with recollect.open(tmp_path / "b.db") as memory:
            assert memory.head().log == right == from_the_log(memory)

    def test_a_reader_of_a_store_that_is_read_only_uses_them_and_writes_nothing(
        self, path: Path, hashed: list[bytes]
    ) -> None:
        with recollect.open(path) as memory:
            right = memory.head().log
        before = tiles_of(path).stat()
        hashed.clear()
        with recollect.open(path, read_only=True) as memory:
            assert memory.head().log == right
            assert len(hashed) == COMMITS - 511
            assert both(memory.prove("a", at=5), right or "")
        assert tiles_of(path).stat().st_mtime_ns == before.st_mtime_ns
        tiles_of(path).unlink()
        with recollect.open(path, read_only=True) as memory:
            assert memory.head().log == right
            assert both(memory.prove("a", at=5), right or "")
        assert not tiles_of(path).exists()

    @pytest.mark.parametrize("older", [300, 520])
    @pytest.mark.promise("proof.log")
    def test_an_older_copy_that_was_restored_has_a_log_of_its_own(self, path: Path, older: int) -> None:
        copied = path.parent / "older.db"
        shutil.rmtree(f"{path}.index")
        path.unlink()
        with recollect.open(path, durability="normal") as memory:
            write(memory, older)
            memory.backup(copied)
            write(memory, 700 - older)
            first = memory.head().log
        recollect.restore(copied, path, force=True)
        with recollect.open(path, durability="normal") as memory:
            assert memory.seq == older
            assert memory.head().log == from_the_log(memory)
            write(memory, 700 - older)
            assert memory.head().log == from_the_log(memory) != first
            for seq in (1, older, 699):
                assert both(memory.prove("a", at=seq), memory.head().log or "")

    def test_a_folder_that_cannot_be_written_is_no_error(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with recollect.open(path) as memory:
            right = memory.head().log
        shutil.rmtree(f"{path}.index")
        Path(f"{path}.index").write_text("a file")
        with recollect.open(path) as memory:
            assert memory.head().log == right
            assert both(memory.prove("a", at=5), right or "")
            assert "log.db cannot be used" in caplog.text

    def test_a_view_of_an_older_state_is_served_by_a_newer_tree(self, path: Path) -> None:
        with recollect.open(path) as memory:
            core = memory._executor.core  # type: ignore[attr-defined]
            with core.store.read() as view:
                before = core.log_trees.head(view, memory._branch)
                write(memory, 3)
                after = memory.head().log
                assert core.log_trees.head(view, memory._branch) == before != after
            assert memory.head().log == after

    def test_threads_and_processes_read_one_log(self, path: Path) -> None:
        with recollect.open(path) as memory, recollect.open(path) as other, ThreadPoolExecutor(4) as pool:
            done = [pool.submit(write, memory, 150)]
            done += [pool.submit(proved, each, 40) for each in (memory, other, memory)]
            for each in done:
                each.result()
            assert memory.head().log == other.head().log == from_the_log(memory)


def proved(memory: Memory, times: int) -> None:
    for _ in range(times):
        proof = memory.prove("a")
        assert both(proof, proof["log"]["head"])
