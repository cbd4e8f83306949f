"""Encrypted stores: the errors, backups, rescues, exports, and that no file has what was stored."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests import fresh
from tests.examples import FULL, some
from tests.stores.rescues import roots_are_same

import recollect
from recollect.cli import diagnosing
from recollect.cli.app import app
from recollect.errors import (
    DamagedStoreError,
    ImportFormatError,
    InvalidArgumentError,
    KeyFileMissingError,
    MissingExtraError,
    NotEncryptedError,
    RecollectError,
    SecretNeededError,
    StoreError,
    UnsupportedError,
    WrongSecretError,
)
from recollect.importers.jsonl import JsonLines
from recollect.importers.run import Source, import_source
from recollect.models.embedding.hashed import Hashed
from recollect.stores.sealing import cipher
from recollect.stores.sealing.cipher import NotAuthenticError
from recollect.stores.sealing.pages import PageCipher
from recollect.stores.sqlite import store as sqlite_store
from recollect.stores.sqlite.store import SqliteStore

SECRET, OTHER, KEY = bytes(range(32)), bytes(32), b"a key of sixteen bytes or more"
#: Words that are in no program.
WORDS = ("periwinkle", "quagmirean", "zephyrhills")


def fill(memory: recollect.Memory) -> None:
    memory.remember(f"Ana walks her {WORDS[0]} dog", id="a", user=WORDS[1], tags=[WORDS[2]])
    memory.remember_all([{"content": f"{WORDS[0]} number {number}", "id": f"r{number}"} for number in range(200)])
    memory.remember(f"{WORDS[0]} " * 2000, id="long")
    memory.glossary.memorize(WORDS[1], f"a {WORDS[0]}", "", WORDS[2])
    memory.keyed.write(WORDS[2], WORDS[0].encode())
    memory.update("a", content=f"Ana walks her {WORDS[0]} cat")
    memory.snapshot(WORDS[2])
    memory.set_quota(records=5000)


def asked(memory: recollect.Memory) -> None:
    """Let everything be derived that is derived from what is stored."""
    memory.recall(f"who walks the {WORDS[0]}?")
    memory.grep(WORDS[0])


def with_words(folder: Path) -> set[str]:
    """Return the files in which a word is, in any of the forms in which it could be."""
    forms = []
    for word in WORDS:
        for text in (word, word.upper(), word.capitalize(), word[::-1]):
            forms += [text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be"), text.encode().hex().encode()]
    found = set()
    for each in folder.rglob("*"):
        with suppress(OSError):
            data = each.read_bytes() if each.is_file() else b""
            if any(form in data for form in forms) or any(word in each.name for word in WORDS):
                found.add(str(each.relative_to(folder)))
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with recollect.open(tmp_path / "a.db", secret=SECRET, embedder=Hashed()) as memory:
        fill(memory)
        asked(memory)
    return tmp_path / "a.db"


def test_no_file_has_what_was_stored_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    for variable in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(variable, str(temporary))
    moments = 0

    def nowhere() -> None:
        nonlocal moments
        assert with_words(tmp_path) == set()
        moments += 1

    path, backup, restored, rescued = (tmp_path / f"{name}.db" for name in ("a", "backup", "restored", "rescued"))
    with recollect.open(path, WORDS[0], secret=SECRET, embedder=Hashed()) as memory:
        fill(memory)
        nowhere()
        asked(memory)
        nowhere()
        memory.backup(backup, verify=True)
        memory.compact()
        nowhere()
        memory.erase("r1", actor="test", reason="asked")
        nowhere()
    nowhere()
    recollect.restore(backup, restored, secret=SECRET)
    recollect.rescue(path, rescued, secret=SECRET)
    nowhere()
    for each in (path, restored, rescued):
        with recollect.open(each, WORDS[0], secret=SECRET, embedder=Hashed()) as memory:
            asked(memory)
            assert memory.get("a") is not None
            nowhere()
    recollect.StoreKeys(path).rewrite(secret=SECRET)
    nowhere()
    assert moments == 10
    assert (tmp_path / "a.db.index" / "vectors.db").exists()


def test_the_search_finds_the_words_in_a_plain_store(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder=Hashed()) as memory:
        fill(memory)
        asked(memory)
    found = with_words(tmp_path)
    assert "a.db" in found
    assert any(each.endswith(".seg") for each in found)
    assert "a.db.index/text.db" in found


def test_the_name_of_an_index_file_does_not_tell_its_namespace(tmp_path: Path) -> None:
    names: list[set[str]] = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with recollect.open(folder / "a.db", secret=SECRET) as memory:
            fill(memory)
            asked(memory)
        names.append({each.name for each in (folder / "a.db.index").glob("*.seg")})
    assert names[0]
    assert not names[0] & names[1]


@pytest.mark.parametrize("read_only", [True, False])
def test_each_reason_why_a_store_does_not_open_has_its_own_error(path: Path, tmp_path: Path, read_only: bool) -> None:
    def error(**options: Any) -> type[BaseException]:
        with pytest.raises(RecollectError) as raised:
            recollect.open(path, read_only=read_only, **options)
        return raised.type

    before = path.read_bytes()
    assert error() is SecretNeededError
    assert error(secret=OTHER) is WrongSecretError
    assert error(secret="a passphrase") is WrongSecretError
    os.rename(f"{path}.keys", tmp_path / "keys")
    assert error(secret=SECRET) is KeyFileMissingError
    assert error() is SecretNeededError
    os.rename(tmp_path / "keys", f"{path}.keys")
    assert path.read_bytes() == before
    data = bytearray(before)
    data[4096 + 100] ^= 1
    path.write_bytes(data)
    assert error(secret=SECRET) is DamagedStoreError
    path.write_bytes(before)
    with recollect.open(path, secret=SECRET, read_only=read_only) as memory:
        assert memory.get("a") is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda path, other, secret: recollect.rescue(path, other, secret=secret),
        lambda path, other, secret: recollect.restore(path, other, secret=secret),
        lambda path, other, secret: recollect.migrate(path, secret=secret, dry_run=True),
        lambda path, other, secret: recollect.decrypt(path, secret=secret),
    ],
)
def test_calls_on_files_need_the_secret_too_and_change_nothing_without(path: Path, tmp_path: Path, call: Any) -> None:
    before, names = path.read_bytes(), {each.name for each in tmp_path.iterdir()}
    for secret, error in ((None, SecretNeededError), (OTHER, WrongSecretError)):
        with pytest.raises(error):
            call(path, tmp_path / "new.db", secret)
    os.rename(f"{path}.keys", tmp_path / "keys")
    with pytest.raises(KeyFileMissingError):
        call(path, tmp_path / "new.db", SECRET)
    os.rename(tmp_path / "keys", f"{path}.keys")
    assert {each.name for each in tmp_path.iterdir()} == names
    assert path.read_bytes() == before


def test_a_secret_for_a_plain_store_is_not_ignored(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("text")
    with pytest.raises(NotEncryptedError):
        recollect.open(tmp_path / "a.db", secret=SECRET)
    with pytest.raises(NotEncryptedError):
        recollect.rescue(tmp_path / "a.db", tmp_path / "b.db", secret=SECRET)
    assert not (tmp_path / "a.db.keys").exists()
    for address in (":memory:", "postgresql://host/database"):
        with pytest.raises(UnsupportedError):
            recollect.open(address, secret=SECRET)


def test_a_store_whose_creation_was_interrupted_is_not_created_without_encryption(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=SECRET):
        pass
    path.write_bytes(b"")  # the key file is written first
    with pytest.raises(SecretNeededError):
        recollect.open(path)
    with pytest.raises(WrongSecretError):
        recollect.open(path, secret=OTHER)
    with recollect.open(path, secret=SECRET) as memory:
        memory.remember("text")
        assert memory.check() == []


def test_without_the_library_an_encrypted_store_says_what_to_install(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cipher._aead.cache_clear()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers", None)
    try:
        with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[encrypted\]'"):
            recollect.open(path, secret=SECRET)
    finally:
        monkeypatch.undo()
        cipher._aead.cache_clear()


def test_a_plain_store_needs_no_cryptography(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["cryptography"] = None
import recollect
with recollect.open(sys.argv[1], embedder="none") as memory:
    memory.remember("text"); memory.recall("text"); memory.grep("text")
    memory.backup(sys.argv[1] + ".backup", verify=True)
print([name for name in sys.modules if name.startswith("cryptography.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.db")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def changed_places(size: int) -> Iterator[int]:
    rng = random.Random(5)
    yield from (rng.randrange(size) for _ in range(some(600)))


def test_every_changed_byte_of_the_file_is_found(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    pages = PageCipher(_page_key(path))
    for at in changed_places(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        number = at // 4096
        with pytest.raises(NotAuthenticError):  # the page is found, also where it is free and nobody reads it
            pages.open(bytes(changed[number * 4096 : (number + 1) * 4096]), number + 1)
    for at in [*range(100), *(4096 * page + 50 for page in range(len(data) // 4096))][:: 1 if FULL else 7]:
        changed = bytearray(data)
        changed[at] ^= 1
        place = tmp_path / "changed.db"
        place.write_bytes(changed)
        shutil.copy(f"{path}.keys", f"{place}.keys")
        found: object
        try:
            with recollect.open(place, secret=SECRET, read_only=True) as memory:
                found = memory.check() or memory.get("a") is not None
        except StoreError as error:
            found = error
        assert found, at  # a free page is not read
        if at < 100:
            assert isinstance(found, StoreError) or found, at


def _page_key(path: Path) -> bytes:
    with closing(SqliteStore(path, secret=SECRET)) as store:
        assert store.keys is not None
        return store.keys.key("recollect.page.1 db")


@pytest.mark.parametrize("kind", ["swapped", "older", "of another store"])
def test_a_page_from_elsewhere_is_found_at_once_or_by_the_check(path: Path, tmp_path: Path, kind: str) -> None:
    older = path.read_bytes()
    with recollect.open(path, secret=SECRET) as memory:
        for number in range(50):
            memory.update(f"r{number}", content=f"changed {number}")
    with recollect.open(tmp_path / "other.db", secret=SECRET) as memory:
        fill(memory)
    data, other = bytearray(path.read_bytes()), (tmp_path / "other.db").read_bytes()
    page = next(at for at in range(4096 * 5, len(older), 4096) if older[at : at + 4096] != data[at : at + 4096])
    if kind == "swapped":
        data[page : page + 4096], data[page + 4096 : page + 8192] = (
            data[page + 4096 : page + 8192],
            data[page : page + 4096],
        )
    else:
        data[page : page + 4096] = (older if kind == "older" else other)[page : page + 4096]
    path.write_bytes(data)
    try:
        with recollect.open(path, secret=SECRET, read_only=True) as memory:
            problems = list(memory.check())
    except DamagedStoreError as error:
        problems = [str(error)]
    assert problems
    if kind != "older":
        assert "not authentic" in " ".join(problems)


def test_a_backup_is_encrypted_and_opens_by_itself(path: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    with recollect.open(path, secret=SECRET) as memory:
        memory.remember("in the WAL", id="newest")
        done = memory.backup(place / "b.db", verify=True)
        root = memory.root
    assert done.verified
    assert sorted(each.name for each in place.iterdir()) == ["b.db", "b.db.keys"]
    with recollect.open(place / "b.db", secret=SECRET, read_only=True) as memory:
        assert memory.root == root
        assert memory.check() == []
    with recollect.open(path, secret=SECRET) as memory:
        memory.remember("later")
        memory.backup(place / "b.db")  # it replaces its own backup
    with recollect.open(tmp_path / "other.db", secret=SECRET) as memory, pytest.raises(InvalidArgumentError):
        memory.backup(place / "b.db")  # and no other's


def test_an_open_store_saves_a_key_file_that_was_lost(path: Path, tmp_path: Path) -> None:
    with recollect.open(path, secret=SECRET) as memory:
        os.unlink(f"{path}.keys")
        memory.backup(tmp_path / "b.db")
    shutil.copy(tmp_path / "b.db.keys", f"{path}.keys")
    with recollect.open(path, secret=SECRET) as memory:
        assert memory.check() == []


def test_a_restore_keeps_the_secrets_of_now(path: Path, tmp_path: Path) -> None:
    backup = tmp_path / "b.db"
    recollect.StoreKeys(path).add("former secret", secret=SECRET)
    with recollect.open(path, secret=SECRET) as memory:
        memory.backup(backup)
        memory.remember("later", id="later")
    recollect.StoreKeys(path).remove("slot-2")
    done = recollect.restore(backup, path, secret=SECRET, force=True)
    with pytest.raises(WrongSecretError):
        recollect.open(path, secret="former secret")
    with recollect.open(path, secret=SECRET) as memory:
        assert memory.get("later") is None
        assert memory.check() == []
    assert done.kept is not None
    with recollect.open(done.kept, secret=SECRET) as memory:
        assert memory.get("later") is not None


def test_a_restore_over_another_store_brings_its_key_file_and_keeps_the_other(path: Path, tmp_path: Path) -> None:
    backup, target = tmp_path / "b.db", tmp_path / "target.db"
    with recollect.open(path, secret=SECRET) as memory:
        memory.backup(backup)
    for secret in (OTHER, None):
        with recollect.open(target, secret=secret) as memory:
            memory.remember("of another", id="o")
        done = recollect.restore(backup, target, secret=SECRET, force=True)
        assert done.kept is not None
        with recollect.open(target, secret=SECRET) as memory:
            assert memory.get("a") is not None
        with recollect.open(done.kept, secret=secret) as memory:
            assert memory.get("o") is not None
        for suffix in ("", ".keys"):
            os.unlink(f"{target}{suffix}")


@pytest.mark.parametrize("share", [0, 10])
def test_a_rescue_of_an_encrypted_store_saves_as_much_as_of_a_plain_one(tmp_path: Path, share: int) -> None:
    saved = []
    for name, secret in (("plain", None), ("sealed", SECRET)):
        path, new = tmp_path / f"{name}.db", tmp_path / f"{name}-rescued.db"
        with recollect.open(path, secret=secret, key=None if secret is None else KEY) as memory:
            fill(memory)
            roots = memory.root
        data = bytearray(path.read_bytes())
        rng = random.Random(3)
        for page in range(len(data) // 4096 if share else 0):
            if page % share == share - 1:
                at = page * 4096 + rng.randrange(100, 4000)
                data[at : at + 8] = rng.randbytes(8)
        path.write_bytes(data)
        report = recollect.rescue(path, new, secret=secret, key=None if secret is None else KEY)
        if not share:
            assert all(roots_are_same(report).values())
            assert roots
        options: dict[str, Any] = {} if secret is None else {"secret": secret, "key": KEY}
        with recollect.open(new, **options) as memory:
            assert memory.check() == []
            saved.append(len(memory.find()))
    total = 202
    assert saved[0] == saved[1] == total if not share else abs(saved[0] - saved[1]) <= total // 4


def test_a_rescue_without_a_readable_header_needs_the_key_file_alone(path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[:4096] = bytes(4096)
    path.write_bytes(data)
    report = recollect.rescue(path, tmp_path / "new.db", secret=SECRET)
    assert report.records > 0
    with recollect.open(tmp_path / "new.db", secret=SECRET) as memory:
        assert memory.check() == []


def run(*arguments: str, **variables: str) -> Any:
    return CliRunner().invoke(app, list(arguments), env=variables, catch_exceptions=False)


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    (tmp_path / "secret").write_text(SECRET.hex())
    return str(tmp_path / "secret")


def test_a_sealed_export_has_no_text_and_comes_back_as_it_was(path: Path, tmp_path: Path, secret_file: str) -> None:
    out = tmp_path / "out.rcl"
    done = run("export", str(out), "--sealed", "--db", str(path), "--secret-file", secret_file)
    assert done.exit_code == 0, done.output
    assert str(out.relative_to(tmp_path)) not in with_words(tmp_path)
    with recollect.open(tmp_path / "b.db") as memory:
        import_source(memory, Source(JsonLines(SECRET), out))
        assert memory.get("a") is not None
        assert len(memory.find()) == 202
    for secret, error in ((None, SecretNeededError), (OTHER, WrongSecretError)):
        with pytest.raises(error):
            Source(JsonLines(secret), out)
    again = run("export", str(out), "--sealed", "--db", str(path), "--secret-file", secret_file)
    assert again.exit_code == 0, "it replaces an export"


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_sealed_export_that_was_cut_is_refused(tmp_path: Path, secret_file: str, kept: float) -> None:
    path, out = tmp_path / "a.db", tmp_path / "out.rcl"
    with recollect.open(path, secret=SECRET) as memory:
        memory.remember_all([{"content": random.Random(number).randbytes(500).hex()} for number in range(3000)])
    assert run("export", str(out), "--sealed", "--db", str(path), "--secret-file", secret_file).exit_code == 0
    out.write_bytes(out.read_bytes()[: int(out.stat().st_size * kept)])
    with recollect.open(tmp_path / "b.db") as memory:
        with pytest.raises(ImportFormatError, match="not authentic"):
            import_source(memory, Source(JsonLines(SECRET), out))
        assert len(memory.find()) == 0, "all of it is read before anything is imported"


def test_an_export_is_sealed_only_for_an_encrypted_store_and_into_a_file(tmp_path: Path, secret_file: str) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("text")
    plain = run("export", str(tmp_path / "x.rcl"), "--sealed", "--db", str(tmp_path / "a.db"))
    assert plain.exit_code == 1
    assert "is for an encrypted store" in plain.output
    assert run("export", "-", "--sealed", "--db", str(tmp_path / "a.db")).exit_code == 1


def test_an_erasure_names_the_encrypted_copies_that_still_have_the_text(path: Path, tmp_path: Path) -> None:
    with recollect.open(path, secret=SECRET) as memory:
        memory.backup(tmp_path / "with.db")
        erased = memory.erase("r1", actor="test", reason="asked")
        memory.backup(tmp_path / "without.db")
        later = memory.erase("r2", actor="test", reason="asked")
    assert [os.path.basename(each) for each in erased.copies] == ["with.db"]
    assert sorted(map(os.path.basename, later.copies)) == ["with.db", "without.db"]


def test_the_doctor_checks_an_encrypted_store_and_says_what_is_wrong(path: Path, secret_file: str) -> None:
    well = run("doctor", "--check", "--db", str(path), "--secret-file", secret_file)
    assert well.exit_code == 0, well.output
    data = bytearray(path.read_bytes())
    data[4096 * 3 + 7] ^= 1
    path.write_bytes(data)
    hurt = run("doctor", "--check", "--db", str(path), "--secret-file", secret_file, "--json")
    assert hurt.exit_code == 1
    assert "page 4" in json.dumps(json.loads(hurt.stdout))


def test_commands_take_the_secret_from_a_file_or_the_environment(path: Path, secret_file: str) -> None:
    assert run("get", "a", "--db", str(path)).exit_code == 1
    assert run("get", "a", "--db", str(path), "--secret-file", secret_file).exit_code == 0
    assert run("get", "a", "--db", str(path), RECOLLECT_SECRET_FILE=secret_file).exit_code == 0
    wrong = Path(secret_file).with_name("wrong")
    wrong.write_text("00" * 32)
    refused = run("get", "a", "--db", str(path), "--secret-file", str(wrong), RECOLLECT_SECRET_FILE=secret_file)
    assert refused.exit_code == 1
    assert "00" * 16 not in refused.output


def test_an_encrypted_store_is_not_copied_to_where_it_would_not_open(
    path: Path, tmp_path: Path, secret_file: str
) -> None:
    done = run("copy", str(path), str(tmp_path / "b.db"), "--secret-file", secret_file)
    assert done.exit_code == 1
    assert "recollect backup" in done.output
    assert not (tmp_path / "b.db").exists()


def test_pages_that_were_encrypted_are_counted_until_the_data_key_is_replaced(
    tmp_path: Path, secret_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "_COUNTED_EVERY", 50)
    path = tmp_path / "a.db"

    def counted() -> int:
        with recollect.open(path, secret=SECRET) as memory:
            return int(memory.stats()["store"]["encrypted_pages"])

    for number in range(2):
        before = counted() if number else 0
        with recollect.open(path, secret=SECRET) as memory:
            for each in range(20):
                memory.remember(f"text {number} {each}")
            assert memory.check() == []
        assert counted() >= before + 50
    monkeypatch.setattr(diagnosing, "_MANY_PAGES", 100)
    said = run("doctor", "--db", str(path), "--secret-file", secret_file)
    assert said.exit_code == 1
    assert "rotate --rewrite" in " ".join(said.output.split())
    recollect.StoreKeys(path).rewrite(secret=SECRET)
    assert counted() == 0


def test_an_erasure_does_not_name_encrypted_stores_that_are_others(path: Path, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "other.db", secret=OTHER) as memory:
        memory.remember("nothing to do with it")
    with recollect.open(path, secret=SECRET) as memory:
        assert memory.erase("r1", actor="test", reason="asked").copies == ()


def test_a_fork_does_not_use_the_store_of_its_parent(tmp_path: Path) -> None:
    code = """
import os, recollect
memory = recollect.open(folder / "a.db", secret=bytes(range(32)), embedder="none")
memory.remember("of the parent")
pid = os.fork()
if not pid:
    try:
        memory.remember("of the fork")
    except recollect.errors.ForkedError:
        os._exit(7)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), memory.count(), memory.check())
memory.close()
"""
    assert fresh.run(code, tmp_path) == "7 1 []"


def test_processes_and_threads_write_and_read_one_store(tmp_path: Path) -> None:
    code = """
import sys, recollect
from concurrent.futures import ThreadPoolExecutor
with recollect.open(sys.argv[1], secret=bytes(range(32)), embedder="none", timeout=60) as memory:
    def work(thread):
        for number in range(25):
            record_id = memory.remember(f"letter {number} of {sys.argv[2]} {thread}").id
            assert memory.get(record_id) is not None
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
"""
    path = str(tmp_path / "a.db")
    running = [subprocess.Popen([sys.executable, "-c", code, path, str(number)]) for number in range(2)]
    assert [each.wait() for each in running] == [0, 0]
    with recollect.open(path, secret=SECRET) as memory:
        assert memory.count() == 200
        assert memory.check() == []


def test_an_empty_path_of_a_secret_file_is_no_secret_that_is_left_out(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["remember", "text", "--db", str(tmp_path / "a.db"), "--secret-file", ""])
    assert done.exit_code == 2
    assert not (tmp_path / "a.db").exists()
