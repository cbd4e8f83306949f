"""Encrypting and decrypting a store that exists: it keeps its roots, and nothing is lost wherever that fails."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests import fresh
from tests.examples import FULL
from tests.sealing.test_encrypted_stores import OTHER, SECRET, WORDS, asked, fill, with_words
from torture.recording import recorded

import recollect
from recollect.cli.app import app
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NotEncryptedError,
    ReadOnlyStoreError,
    RecollectError,
    StoreBusyError,
    StoreError,
    StoreIOError,
    WrongKeyError,
    WrongSecretError,
)
from recollect.ledger.commits import Branch
from recollect.models.embedding.hashed import Hashed
from recollect.stores.maintenance import backup as restoring
from recollect.stores.maintenance import encrypting
from recollect.stores.sealing import keys as key_files
from recollect.stores.sqlite import copying
from recollect.stores.sqlite_base import checksums
from recollect.testing.loopback import core_of

KEY = b"a key of sixteen bytes or more"


class Counting(Hashed):
    """An embedder that counts the texts that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    def embed(self, texts: Any, *, asking: bool = False) -> Any:
        self.texts += 0 if asking else len(texts)
        return super().embed(texts, asking=asking)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with recollect.open(tmp_path / "a.db", embedder=Hashed()) as memory:
        fill(memory)
        asked(memory)
    return tmp_path / "a.db"


def state(path: Path, **options: Any) -> tuple[str, int, list[str]]:
    with recollect.open(path, create=False, **options) as memory:
        return memory.root, len(memory.find()), list(memory.check())


def test_an_encrypted_store_has_the_same_roots_and_no_text_in_any_file_but_the_one_kept(path: Path) -> None:
    before = state(path)
    done = recollect.encrypt(path, secret=SECRET)
    assert state(path, secret=SECRET) == before
    assert with_words(path.parent) == {os.path.basename(done.kept)}
    assert state(Path(done.kept)) == before
    with recollect.open(path, secret=SECRET) as memory:
        asked(memory)
    os.unlink(done.kept)
    assert with_words(path.parent) == set()


def test_vectors_are_kept_and_not_embedded_again(path: Path) -> None:
    recollect.encrypt(path, secret=SECRET)
    embedder = Counting()
    with recollect.open(path, secret=SECRET, embedder=embedder) as memory:
        asked(memory)
    assert embedder.texts == 0
    recollect.decrypt(path, secret=SECRET)
    with recollect.open(path, embedder=embedder) as memory:
        asked(memory)
    assert embedder.texts == 0


def test_a_store_is_decrypted_to_what_it_was(path: Path) -> None:
    before = state(path)
    recollect.encrypt(path, secret=SECRET)
    done = recollect.decrypt(path, secret=SECRET)
    assert done.store_key is None
    assert state(path) == before
    assert not Path(f"{path}.keys").exists()
    with recollect.open(path) as memory:
        assert memory.stats()["store"]["checksums"]
    assert state(Path(done.kept), secret=SECRET) == before


def test_a_store_that_was_created_encrypted_needs_its_store_key_once_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=SECRET) as memory:
        fill(memory)
    before = state(path, secret=SECRET)
    done = recollect.decrypt(path, secret=SECRET)
    assert done.store_key is not None
    with pytest.raises(WrongKeyError):
        recollect.open(path)
    key = Path(done.store_key).read_bytes()
    assert state(path, key=key) == before
    recollect.encrypt(path, secret=OTHER, key=key)
    assert state(path, secret=OTHER, key=key) == before
    with pytest.raises(WrongKeyError):
        recollect.open(path, secret=OTHER)


def test_a_store_with_a_key_of_its_own_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, key=KEY) as memory:
        fill(memory)
    before = state(path, key=KEY)
    with pytest.raises(WrongKeyError):
        recollect.encrypt(path, secret=SECRET)
    recollect.encrypt(path, secret=SECRET, key=KEY)
    assert state(path, secret=SECRET, key=KEY) == before
    assert recollect.decrypt(path, secret=SECRET, key=KEY).store_key is None
    assert state(path, key=KEY) == before


def test_what_cannot_be_encrypted_is_refused_and_stays(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="is needed"):
        recollect.encrypt(path)
    with recollect.open(path) as memory, pytest.raises(StoreBusyError):
        memory.remember("meanwhile")
        recollect.encrypt(path, secret=SECRET)
    with pytest.raises(NotEncryptedError):
        recollect.decrypt(path, secret=SECRET)
    recollect.encrypt(path, secret=SECRET)
    with pytest.raises(InvalidArgumentError, match="encrypted already"):
        recollect.encrypt(path, secret=SECRET)
    with recollect.open(path, secret=SECRET) as memory:
        with pytest.raises(StoreBusyError):
            recollect.decrypt(path, secret=SECRET)
        with pytest.raises(StoreBusyError):
            recollect.StoreKeys(path).rewrite(secret=SECRET)
        assert memory.get("a") is not None
    path.chmod(0o400)
    with pytest.raises(ReadOnlyStoreError):
        recollect.decrypt(path, secret=SECRET)


def test_a_corrupt_store_is_not_encrypted(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.rindex(WORDS[0].encode())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedStoreError):
        recollect.encrypt(path, secret=SECRET)
    assert path.read_bytes() == data
    assert not Path(f"{path}.keys").exists()


#: What is done to a store, the secret before and after, and how many of its operations on files fail in turn.
CALLS: dict[str, tuple[Callable[[Path], object], bytes | None, bytes | None]] = {
    "encrypt": (lambda path: recollect.encrypt(path, secret=SECRET), None, SECRET),
    "decrypt": (lambda path: recollect.decrypt(path, secret=SECRET), SECRET, None),
    "rewrite": (lambda path: recollect.StoreKeys(path).rewrite(secret=SECRET), SECRET, SECRET),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_wherever_it_fails_the_store_is_whole_before_or_after(tmp_path: Path, name: str) -> None:
    call, before, after = CALLS[name]
    model = tmp_path / "model"
    model.mkdir()
    with recollect.open(model / "a.db", embedder=Hashed()) as memory:
        memory.remember("Ana walks her dog", id="r")
        memory.recall("dog")
        root = memory.root
    if before is not None:
        os.unlink(recollect.encrypt(model / "a.db", secret=before).kept)
    counted = 0

    def count(kind: str, path: str) -> int | None:
        nonlocal counted
        counted += 1
        return None

    place = tmp_path / "count"
    shutil.copytree(model, place)
    with recorded(place, count):
        call(place / "a.db")
    assert counted > 50
    failed = 0
    for number in range(1, counted + 1, 1 if FULL else 7):
        place = tmp_path / f"fault-{number}"
        shutil.copytree(model, place)
        steps = iter(range(1, 10**6))

        def fails(kind: str, path: str, steps: Iterator[int] = steps, number: int = number) -> int | None:
            return errno.EIO if next(steps) >= number else None

        with recorded(place, fails):
            try:
                call(place / "a.db")
            except RecollectError:
                failed += 1
        found = None
        for secret in (after, before):
            try:
                found = state(place / "a.db", secret=secret)
                break
            except StoreError:
                continue
        assert found == (root, 1, []), number
        shutil.rmtree(place)
    assert failed > 5


KILLED = """
import os, signal, sys
import recollect
from torture.recording import recorded
secret, at = bytes(range(32)), int((folder / "at").read_text())
count = 0
def before(kind, path):
    global count
    count += 1
    if count == at:
        os.kill(os.getpid(), signal.SIGKILL)
pid = os.fork()
if not pid:
    with recorded(folder, before):
        call = (folder / "call").read_text()
        if call == "encrypt":
            recollect.encrypt(folder / "a.db", secret=secret)
        elif call == "decrypt":
            recollect.decrypt(folder / "a.db", secret=secret)
        else:
            recollect.StoreKeys(folder / "a.db").rewrite(secret=secret)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""


@pytest.mark.parametrize("name", list(CALLS))
def test_wherever_it_is_killed_the_store_is_whole_before_or_after(tmp_path: Path, name: str) -> None:
    _, before, after = CALLS[name]
    model = tmp_path / "model"
    model.mkdir()
    with recollect.open(model / "a.db", secret=before) as memory:
        memory.remember("Ana walks her dog", id="r")
        root = memory.root
    (model / "call").write_text(name)
    ends = 0
    for at in itertools.count(1, 1 if FULL else 61):
        place = tmp_path / f"kill-{at}"
        shutil.copytree(model, place)
        (place / "at").write_text(str(at))
        ends += fresh.run(KILLED, place) == "0"
        found = None
        for secret in (after, before):
            key = (place / "a.db.key").read_bytes() if (place / "a.db.key").exists() and secret is None else None
            try:
                found = state(place / "a.db", secret=secret, key=key)
                break
            except StoreError:
                continue
        assert found == (root, 1, []), at
        shutil.rmtree(place)
        if ends:
            break
    assert at > 100


def test_the_commands_encrypt_decrypt_and_change_keys(path: Path, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a first passphrase\n")
    (tmp_path / "two").write_text(SECRET.hex())
    one, two = ["--secret-file", str(tmp_path / "one")], ["--secret-file", str(tmp_path / "two")]

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, "--db", str(path)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    def refused(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, "--db", str(path)], catch_exceptions=False)
        assert done.exit_code == 1, done.output
        return done.output

    assert "encrypted" in run("encrypt", *one)
    assert "is encrypted" in refused("get", "a")
    assert WORDS[0] in run("get", "a", *one)
    assert run("key", "list").split() == ["slot-1", "passphrase"]
    new = ["--new-secret-file", str(tmp_path / "two")]
    assert "slot two: added" in run("key", "add", *new, "--name", "two", *one)
    assert "removed" in run("key", "remove", "slot-1")
    assert "does not open with this secret" in refused("get", "a", *one)
    assert "is needed" in refused("key", "rotate", *two)
    rotated = run("key", "rotate", "--new-secret-file", str(tmp_path / "one"), "--rewrite", *two)
    assert "new data key" in rotated
    assert WORDS[0] in run("get", "a", *one)
    run("key", "export", str(tmp_path / "kept.keys"))
    assert "decrypted" in run("decrypt", *one)
    assert WORDS[0] in run("get", "a")
    assert "is not encrypted" in refused("key", "list")
    run("encrypt", *two)
    assert "yes" in refused("key", "destroy")
    assert "deleted" in run("key", "destroy", "--yes")
    assert "no usable key file" in refused("get", "a", *two)


def test_a_reader_in_another_thread_reads_while_secrets_change(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    problems: list[object] = []
    with recollect.open(path, secret=SECRET) as memory:
        memory.remember("text", id="r")
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                if memory.get("r") is None:
                    problems.append("gone")

        thread = threading.Thread(target=read)
        thread.start()
        secrets = [SECRET, OTHER]
        for number in range(20):
            recollect.StoreKeys(path).rotate(secrets[(number + 1) % 2], secret=secrets[number % 2])
        done.set()
        thread.join()
    assert problems == []


def test_a_rewrite_that_fails_leaves_every_secret_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=SECRET) as memory:
        fill(memory)
    recollect.StoreKeys(path).add(OTHER, secret=SECRET)
    before = Path(f"{path}.keys").read_bytes()
    with recollect.open(path, secret=OTHER) as memory, pytest.raises(StoreBusyError):
        memory.remember("meanwhile")
        recollect.StoreKeys(path).rewrite(secret=SECRET)
    with pytest.raises(WrongKeyError):
        recollect.StoreKeys(path).rewrite(secret=SECRET, key=KEY)
    with monkeypatch.context() as patch:
        patch.setattr(encrypting, "verified", fail)
        with pytest.raises(StoreError):
            recollect.StoreKeys(path).rewrite(secret=SECRET)
    assert Path(f"{path}.keys").read_bytes() == before
    assert state(path, secret=OTHER) == state(path, secret=SECRET)


def fail(*arguments: object) -> None:
    raise StoreIOError("a.db", "injected")


def test_after_a_rewrite_that_was_killed_other_secrets_open_the_former_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=SECRET) as memory:
        fill(memory)
    recollect.StoreKeys(path).add(OTHER, secret=SECRET)
    both = key_files.read(str(path)).unlock(SECRET).with_next_key()
    key_files.write(both.file)  # what is there when it is killed before the store is replaced
    assert state(path, secret=OTHER) == state(path, secret=SECRET)
    with pytest.raises(InvalidArgumentError, match="interrupted rewrite"):
        recollect.StoreKeys(path).remove("slot-1")
    recollect.StoreKeys(path).rewrite(secret=OTHER)
    assert [each.id for each in recollect.StoreKeys(path).slots] == ["slot-2"]
    assert state(path, secret=OTHER)[2] == []
    # Killed after it, before the key file is written again: the new key is in one slot.
    key_files.write(key_files.read(str(path)).unlock(OTHER).with_slot("other", SECRET))
    unlocked = key_files.read(str(path)).unlock(OTHER)
    both = unlocked.with_next_key()
    with monkeypatch.context() as patch:
        patch.setattr(key_files.Unlocked, "with_next_key", lambda self: both)
        patch.setattr(key_files, "write", lambda file: None)
        recollect.StoreKeys(path).rewrite(secret=OTHER)
    key_files.write(both.file)
    assert state(path, secret=OTHER)[2] == []
    with pytest.raises(WrongSecretError, match="former"):
        recollect.open(path, secret=SECRET)
    with recollect.open(path, secret=OTHER) as memory:
        memory.remember("more")
    recollect.StoreKeys(path).rewrite(secret=OTHER)
    assert state(path, secret=OTHER)[2] == []


def test_a_store_with_a_key_of_its_own_is_rewritten_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=SECRET, key=KEY) as memory:
        fill(memory)
    before = state(path, secret=SECRET, key=KEY)
    recollect.StoreKeys(path).rewrite(secret=SECRET, key=KEY)
    assert state(path, secret=SECRET, key=KEY) == before


def test_the_times_of_uses_are_kept(path: Path) -> None:
    with recollect.open(path) as memory:
        memory.set_quota(records=300, when_full="least recent")
        memory.get("r7")
        core_of(memory).uses.write(Branch("default"))
        before = core_of(memory).uses.of(Branch("default"))
    assert before
    recollect.encrypt(path, secret=SECRET)
    with recollect.open(path, secret=SECRET) as memory:
        assert core_of(memory).uses.of(Branch("default")) == before


def test_links_are_followed_to_the_store(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "folder").symlink_to(disk)
    (tmp_path / "link.db").symlink_to(disk / "real.db")
    with recollect.open(tmp_path / "folder" / "real.db") as memory:
        fill(memory)
    before = state(disk / "real.db")
    done = recollect.encrypt(tmp_path / "link.db", secret=SECRET)
    assert Path(done.kept).parent == disk
    for path in (tmp_path / "link.db", tmp_path / "folder" / "real.db", disk / "real.db"):
        assert state(path, secret=SECRET) == before
        with recollect.open(path, secret=SECRET) as memory:
            asked(memory)
    assert (tmp_path / "link.db").is_symlink()
    recollect.StoreKeys(tmp_path / "link.db").rewrite(secret=SECRET)
    (tmp_path / "backup").symlink_to(disk / "backup.db")
    with recollect.open(tmp_path / "link.db", secret=SECRET) as memory:
        memory.backup(tmp_path / "backup")
    assert state(disk / "backup.db", secret=SECRET) == before
    recollect.restore(tmp_path / "backup", tmp_path / "link.db", secret=SECRET, force=True)
    assert state(tmp_path / "link.db", secret=SECRET) == before
    with recollect.open(tmp_path / "folder" / "new.db", secret=SECRET) as memory:
        memory.remember("new")
    recollect.decrypt(tmp_path / "link.db", secret=SECRET)
    assert state(disk / "real.db") == before


def test_a_restore_that_fails_keeps_the_key_file_of_the_store_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in (("a", SECRET), ("b", OTHER)):
        with recollect.open(tmp_path / f"{name}.db", secret=secret) as memory:
            fill(memory)
            memory.backup(tmp_path / f"{name}.backup")
    before = state(tmp_path / "a.db", secret=SECRET)

    def fails(part: str, path: str) -> None:
        raise OSError(errno.EIO, "injected")

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "replace_durably", fails)
        with pytest.raises(StoreError):
            recollect.restore(tmp_path / "b.backup", tmp_path / "a.db", force=True, secret=OTHER)
    assert state(tmp_path / "a.db", secret=SECRET) == before
    assert not (tmp_path / "a.db.replaced-1.keys").exists()
    with monkeypatch.context() as patch, recollect.open(tmp_path / "b.db", secret=OTHER) as memory:
        patch.setattr(copying, "replace_durably", fails)
        with pytest.raises(StoreError):
            memory.backup(tmp_path / "a.backup", force=True)
    assert state(tmp_path / "a.backup", secret=SECRET, read_only=True) == before


def test_no_key_file_is_replaced_by_that_of_another_store(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", secret=SECRET) as memory:
        fill(memory)
        (tmp_path / "out.keys").write_text("notes")
        with pytest.raises(InvalidArgumentError, match="needs the name"):
            memory.backup(tmp_path / "out")
        assert not (tmp_path / "out").exists()
        with pytest.raises(InvalidArgumentError, match="is the store itself"):
            memory.backup(tmp_path / "a.db.keys", force=True)
        memory.backup(tmp_path / "a.backup")
    with recollect.open(tmp_path / "b.db", secret=SECRET) as memory:
        os.rename(tmp_path / "a.backup.keys", tmp_path / "elsewhere.keys")
        with pytest.raises(InvalidArgumentError, match="another store"):
            memory.backup(tmp_path / "a.backup")
    os.rename(tmp_path / "elsewhere.keys", tmp_path / "a.backup.keys")
    os.rename(tmp_path / "b.db", tmp_path / "moved.db")
    recollect.restore(tmp_path / "a.backup", tmp_path / "b.db", secret=SECRET)
    kept = key_files.parsed("b", (tmp_path / "b.db.replaced-1.keys").read_bytes())
    assert kept.uuid != key_files.read(str(tmp_path / "b.db")).uuid


def test_a_plain_backup_over_an_encrypted_store_leaves_no_key_file(path: Path, tmp_path: Path) -> None:
    with recollect.open(path) as memory:
        memory.backup(tmp_path / "plain.backup")
    recollect.encrypt(path, secret=SECRET)
    done = recollect.restore(tmp_path / "plain.backup", path, force=True)
    assert not Path(f"{path}.keys").exists()
    assert state(path)[2] == []
    assert state(Path(str(done.kept)), secret=SECRET)[2] == []


def test_what_an_interrupted_decryption_left_is_removed_and_does_not_stop_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=SECRET) as memory:
        fill(memory)
        key = core_of(memory).store.key
    (tmp_path / "a.db.rewriting").write_bytes(WORDS[0].encode())
    with recollect.open(path, secret=SECRET, read_only=True):
        assert (tmp_path / "a.db.rewriting").exists()
    with recollect.open(path, secret=SECRET):
        assert not (tmp_path / "a.db.rewriting").exists()
    (tmp_path / "a.db.rewriting").write_bytes(WORDS[0].encode())
    (tmp_path / "a.db.key").write_bytes(b"another")
    with pytest.raises(InvalidArgumentError, match="needs the name"):
        recollect.decrypt(path, secret=SECRET)
    (tmp_path / "a.db.key").write_bytes(key)
    recollect.decrypt(path, secret=SECRET)
    assert state(path, key=key)[2] == []


def test_a_decryption_that_fails_after_the_store_was_replaced_keeps_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=SECRET, embedder=Hashed()) as memory:
        fill(memory)
        asked(memory)
    before = state(path, secret=SECRET)
    with monkeypatch.context() as patch:
        patch.setattr(encrypting, "remove", fail)
        with pytest.raises(StoreError):
            recollect.decrypt(path, secret=SECRET)
    assert state(path, key=Path(f"{path}.key").read_bytes()) == before


def test_a_store_that_was_replaced_before_it_was_locked_is_not_encrypted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = checksums.connect

    def connect(*arguments: Any, **options: Any) -> Any:
        connection = real(*arguments, **options)
        monkeypatch.undo()
        shutil.copy(path, path.with_name("new.db"))
        os.replace(path.with_name("new.db"), path)
        return connection

    monkeypatch.setattr(checksums, "connect", connect)
    with pytest.raises(StoreBusyError, match="replaced"):
        recollect.encrypt(path, secret=SECRET)
    assert state(path)[2] == []


def test_a_copy_into_an_encrypted_file_is_encrypted(path: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET.hex())

    def copied(*arguments: str) -> int:
        return CliRunner().invoke(app, ["copy", *arguments], catch_exceptions=False).exit_code

    secret = ["--secret-file", str(tmp_path / "secret")]
    for number, prefix in enumerate(("", "sqlite:///")):
        target = tmp_path / f"copy{number}.db"
        assert copied(str(path), f"{prefix}{target}", *secret) == 0
        assert state(target, secret=SECRET) == state(path)
    assert copied(str(path), str(path.with_name("plain.db"))) == 0
    assert copied(str(path), str(path.with_name("plain.db")), *secret) == 1, "neither is encrypted"
