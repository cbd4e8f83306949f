"""The key file: which secrets open a store, how they are changed, and that a file that is no key file opens nothing."""

from __future__ import annotations

import json
import os
import pickle
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect.errors import (
    InvalidArgumentError,
    KeyFileMissingError,
    NotEncryptedError,
    RecollectError,
    SecretNeededError,
    StoreError,
    StoreMissingError,
    WrongSecretError,
)
from recollect.stores.sealing import keys
from recollect.stores.sealing.keys import Secret
from recollect.stores.sealing.secrets import SECRET_VARIABLE, secret_in, secret_or_default

RAW, OTHER = bytes(range(32)), bytes(32)
PASSPHRASE = "correct horse battery staple"


class Service:
    """A key service: it gives out keys, and knows those that it gave out by what it stored of them."""

    def __init__(self) -> None:
        self.given: dict[bytes, bytes] = {}
        self.asked: list[tuple[str, bytes]] = []

    def __call__(self, name: str, stored: bytes) -> bytes | tuple[bytes, bytes]:
        self.asked.append((name, stored))
        if stored:
            return self.given[stored]
        key, blob = os.urandom(32), b"blob of " + name.encode()
        self.given[blob] = key
        return key, blob


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with recollect.open(tmp_path / "a.db", secret=RAW) as memory:
        memory.remember("Ana prefers window seats", id="r")
    return tmp_path / "a.db"


def opens(path: Path, secret: Secret) -> bool:
    try:
        with recollect.open(path, secret=secret, create=False) as memory:
            return memory.get("r") is not None
    except WrongSecretError:
        return False


def test_every_kind_of_secret_opens_a_store_and_no_other_one_does(tmp_path: Path) -> None:
    service = Service()
    secrets: list[Secret] = [RAW, PASSPHRASE, service]
    for number, secret in enumerate(secrets):
        path = tmp_path / f"{number}.db"
        with recollect.open(path, secret=secret) as memory:
            memory.remember("text", id="r")
        assert [each for each in secrets if opens(path, each)] == [secret]
        assert not opens(path, OTHER)
        assert not opens(path, PASSPHRASE + " ")
    assert service.asked[:2] == [("slot-1", b""), ("slot-1", b"blob of slot-1")]


def test_a_function_that_stores_nothing_is_asked_by_the_name_alone(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", secret=lambda name, stored: RAW) as memory:
        memory.remember("text", id="r")
    assert opens(tmp_path / "a.db", lambda name, stored: RAW if (name, stored) == ("slot-1", b"") else OTHER)


@pytest.mark.parametrize(
    "secret", [b"", b"short", bytes(31), bytes(33), "", "  \n", 7, object(), "\ud800", bytearray(32), ["x"]]
)
def test_what_is_no_secret_is_refused_and_creates_nothing(tmp_path: Path, secret: Any) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        recollect.open(tmp_path / "a.db", secret=secret)
    assert raised.value.args[0] == "secret"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("returned", [None, b"", bytes(31), "x" * 32, (bytes(32), "text"), (bytes(31), b"")])
def test_a_function_that_returns_no_key_is_refused(tmp_path: Path, returned: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="function"):
        recollect.open(tmp_path / "a.db", secret=lambda name, stored: returned)
    assert not (tmp_path / "a.db.keys").exists()


def test_the_error_of_a_key_service_reaches_the_caller_and_loses_nothing(path: Path) -> None:
    service = Service()
    recollect.StoreKeys(path).add(service, secret=RAW)

    def fails(name: str, stored: bytes) -> bytes:
        raise ConnectionError("the service does not answer")

    with pytest.raises(ConnectionError):
        recollect.open(path, secret=fails)
    assert opens(path, service)


def test_secrets_are_added_replaced_and_removed_without_writing_the_store(path: Path) -> None:
    before = path.read_bytes()
    store_keys = recollect.StoreKeys(path)
    assert [(each.id, each.kind) for each in store_keys.slots] == [("slot-1", "raw")]
    assert store_keys.add(PASSPHRASE, secret=RAW).id == "slot-2"
    assert store_keys.add(OTHER, secret=PASSPHRASE, name="spare").id == "spare"
    assert all(opens(path, each) for each in (RAW, PASSPHRASE, OTHER))
    store_keys.remove("slot-1")
    assert [opens(path, each) for each in (RAW, PASSPHRASE, OTHER)] == [False, True, True]
    assert store_keys.rotate(RAW, secret=PASSPHRASE).id == "slot-1"
    assert [opens(path, each) for each in (RAW, PASSPHRASE, OTHER)] == [True, False, True]
    assert [each.id for each in store_keys.slots] == ["spare", "slot-1"]
    assert path.read_bytes() == before


def test_the_last_secret_cannot_be_removed_and_names_are_unique(path: Path) -> None:
    store_keys = recollect.StoreKeys(path)
    with pytest.raises(InvalidArgumentError, match="last slot"):
        store_keys.remove("slot-1")
    with pytest.raises(InvalidArgumentError, match="not that of a slot"):
        store_keys.remove("slot-7")
    for name in ("slot-1", "", "a\nb", "x" * 101):
        with pytest.raises(InvalidArgumentError):
            store_keys.add(OTHER, secret=RAW, name=name)
    with pytest.raises(WrongSecretError):
        store_keys.add(OTHER, secret=OTHER)
    assert opens(path, RAW)
    assert len(store_keys.slots) == 1


def test_a_store_that_is_open_stays_open_when_its_secret_is_replaced(path: Path) -> None:
    with recollect.open(path, secret=RAW) as memory:
        recollect.StoreKeys(path).rotate(PASSPHRASE, secret=RAW)
        memory.remember("written since", id="since")
        memory.backup(path.with_name("b.db"), verify=True)
        assert memory.get("r") is not None
    assert opens(path, PASSPHRASE)
    assert opens(path.with_name("b.db"), PASSPHRASE), "a backup gets the key file as it is now"
    assert not opens(path.with_name("b.db"), RAW)


def test_threads_that_change_a_key_file_at_once_lose_no_slot(path: Path) -> None:
    errors: list[BaseException] = []

    def add(number: int) -> None:
        try:
            recollect.StoreKeys(path).add(bytes([number]) * 32, secret=RAW, name=f"thread {number}")
        except RecollectError as error:
            errors.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(1, 9)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert len(recollect.StoreKeys(path).slots) == 9
    assert all(opens(path, bytes([number]) * 32) for number in range(1, 9))


def test_a_new_data_key_reads_the_same_records_and_old_secrets_are_gone(path: Path) -> None:
    store_keys = recollect.StoreKeys(path)
    store_keys.add(PASSPHRASE, secret=RAW)
    with recollect.open(path, secret=RAW) as memory:
        root = memory.root
    old = keys.read(str(path)).unlock(RAW)
    for _ in range(2):
        done = store_keys.rewrite(secret=RAW)
        new = keys.read(str(path)).unlock(RAW)
        assert new.key("use") != old.key("use")
        assert new.salt_key == old.salt_key
        with recollect.open(path, secret=RAW) as memory:
            assert memory.root == root
            assert memory.check() == []
            memory.remember("more", id="more")
            memory.forget("more")
            root = memory.root
        assert [each.id for each in store_keys.slots] == ["slot-1"]
        assert not opens(path, PASSPHRASE)
        assert opens(Path(done.kept), RAW), "the former file is kept with its key file"
        old = new


def test_a_rewrite_that_died_before_the_key_file_was_written_again_is_opened(path: Path) -> None:
    recollect.StoreKeys(path).rewrite(secret=RAW)
    # The key file that a process leaves which dies after it has replaced the store: the new key is not yet that of now.
    data = json.loads(Path(f"{path}.keys").read_text())
    for each in data["deks"]:
        each["use"] = {"now": "next", "salt": "now"}[each["use"]]
    Path(f"{path}.keys").write_text(json.dumps(data))
    with recollect.open(path, secret=RAW) as memory:
        assert memory.get("r") is not None
        assert memory.check() == []


def test_a_slot_without_the_key_of_an_interrupted_rewrite_adds_and_replaces_secrets(path: Path) -> None:
    recollect.StoreKeys(path).add(PASSPHRASE, secret=RAW)
    keys.write(keys.read(str(path)).unlock(RAW).with_next_key().file)
    recollect.StoreKeys(path).add(OTHER, secret=PASSPHRASE)
    recollect.StoreKeys(path).rotate("another passphrase", secret=PASSPHRASE)
    assert all(opens(path, each) for each in (RAW, OTHER, "another passphrase"))
    assert not opens(path, PASSPHRASE)


def test_the_key_file_is_private_and_shows_no_key(path: Path) -> None:
    file = Path(f"{path}.keys")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    unlocked = keys.read(str(path)).unlock(RAW)
    data = b"".join(unlocked._keys.values())
    assert data not in file.read_bytes()
    for shown in (
        repr(unlocked),
        repr(unlocked.file),
        repr(unlocked.file.keys),
        str(vars(unlocked.slot) if False else 0),
    ):
        assert data.hex() not in shown
    with pytest.raises(TypeError):
        pickle.dumps(unlocked)


def change(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    file = Path(f"{path}.keys")
    data = json.loads(file.read_text())
    edit(data)
    file.write_text(json.dumps(data))


BROKEN: list[Callable[[dict[str, Any]], Any]] = [
    lambda data: data.clear(),
    lambda data: data.update(format=2),
    lambda data: data.update(store="no uuid"),
    lambda data: data.update(deks=[]),
    lambda data: data["deks"][0].update(use="next"),
    lambda data: data["deks"][0].update(slots=[]),
    lambda data: data["deks"].append(data["deks"][0]),
    lambda data: data["deks"][0]["slots"][0].update(wrapped="%"),
    lambda data: data["deks"][0]["slots"][0].update(kind="other"),
    lambda data: data["deks"][0]["slots"][0].update(kind="passphrase"),
]


@pytest.mark.parametrize("edit", BROKEN)
def test_a_key_file_that_is_none_is_reported_as_that(path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    change(path, edit)
    with pytest.raises(KeyFileMissingError, match="is corrupt"):
        recollect.open(path, secret=RAW)


def test_a_data_key_is_bound_to_its_store_and_its_slot(path: Path, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "b.db", secret=RAW):
        pass
    other = keys.read(str(tmp_path / "b.db"))
    change(path, lambda data: data.update(store=other.uuid))
    assert not opens(path, RAW)
    change(path, lambda data: data.update(store=keys.read(str(tmp_path / "b.db")).uuid))
    change(path, lambda data: data["deks"][0]["slots"][0].update(id="renamed"))
    assert not opens(path, RAW)


def test_the_key_file_of_another_store_does_not_open_this_one(path: Path, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "b.db", secret=RAW):
        pass
    Path(f"{path}.keys").write_bytes(Path(tmp_path / "b.db.keys").read_bytes())
    with pytest.raises(StoreError, match=r"not authentic|key file"):
        recollect.open(path, secret=RAW)


@pytest.mark.parametrize(("name", "value"), [("m", 1024), ("t", 1), ("p", 0), ("m", 2**30), ("t", 10**6), ("m", True)])
def test_costs_of_argon2_that_are_too_low_or_too_high_are_refused(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path, secret=PASSPHRASE):
        pass
    change(path, lambda data: data["deks"][0]["slots"][0].update({name: value}))
    with pytest.raises(KeyFileMissingError):
        recollect.open(path, secret=PASSPHRASE)


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
@settings(max_examples=some(200))
def test_any_bytes_in_place_of_a_key_file_raise_one_error(data: bytes) -> None:
    with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
        keys.parsed("a.keys", data)


def test_an_exported_key_file_opens_a_store_that_has_lost_its_own(path: Path, tmp_path: Path) -> None:
    exported = recollect.StoreKeys(path).export(tmp_path / "kept.keys")
    with pytest.raises(InvalidArgumentError, match="exists"):
        recollect.StoreKeys(path).export(exported)
    os.unlink(f"{path}.keys")
    with pytest.raises(KeyFileMissingError) as raised:
        recollect.open(path, secret=RAW)
    assert f"{path}.keys" in str(raised.value)
    os.rename(exported, f"{path}.keys")
    assert opens(path, RAW)


def test_destroyed_keys_open_neither_the_store_nor_its_copies_in_the_folder(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with recollect.open(path, secret=RAW) as memory:
        memory.backup(tmp_path / "b.db")
        memory.backup(elsewhere / "c.db")
    with recollect.open(tmp_path / "other.db", secret=RAW):
        pass
    recollect.StoreKeys(path).export(tmp_path / "kept elsewhere")
    store_keys = recollect.StoreKeys(path)
    assert sorted(map(os.path.basename, store_keys.copies())) == ["b.db.keys", "kept elsewhere"]
    assert recollect.StoreKeys(tmp_path / "b.db").destroy() == (str(tmp_path / "b.db.keys"),)
    assert opens(path, RAW), "to destroy the keys of a backup destroys no others"
    gone = store_keys.destroy(copies=True)
    assert sorted(map(os.path.basename, gone)) == ["a.db.keys", "kept elsewhere"]
    for name in ("a.db", "b.db"):
        with pytest.raises(KeyFileMissingError):
            recollect.open(tmp_path / name, secret=RAW)
    assert opens(elsewhere / "c.db", RAW)
    assert (tmp_path / "other.db.keys").exists()


def test_a_secret_is_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    for text, secret in ((RAW.hex(), RAW), (RAW.hex().upper() + "\n", RAW), (f"{PASSPHRASE}\r\n", PASSPHRASE)):
        file.write_text(text, newline="")
        assert secret_in(file) == secret
    for data in (b"", b"\n", b"\xff" * 32, b"x" * 5000):
        file.write_bytes(data)
        with pytest.raises(InvalidArgumentError, match="secret file"):
            secret_in(file)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        secret_in(tmp_path / "missing")
    assert secret_or_default(None) is None
    file.write_text(PASSPHRASE)
    monkeypatch.setenv(SECRET_VARIABLE, str(file))
    assert secret_or_default(None) == PASSPHRASE
    assert secret_or_default(RAW) == RAW
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("text", id="r")
    monkeypatch.delenv(SECRET_VARIABLE)
    with pytest.raises(SecretNeededError):
        recollect.open(tmp_path / "a.db")
    assert opens(tmp_path / "a.db", PASSPHRASE)


def test_a_key_file_that_would_be_too_long_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="longer"):
        recollect.open(tmp_path / "a.db", secret=lambda name, stored: RAW if stored else (RAW, bytes(60_000)))
    assert list(tmp_path.iterdir()) == []


def test_a_key_service_that_fails_leaves_no_file_that_would_be_plain(tmp_path: Path) -> None:
    def fails(name: str, stored: bytes) -> bytes:
        raise ConnectionError("the service does not answer")

    with pytest.raises(ConnectionError):
        recollect.open(tmp_path / "a.db", secret=fails)
    assert list(tmp_path.iterdir()) == []


def test_each_of_two_key_services_opens_the_store(path: Path) -> None:
    one, other = Service(), Service()
    store_keys = recollect.StoreKeys(path)
    store_keys.add(one, secret=RAW, name="one")
    store_keys.add(other, secret=one, name="other")  # each raises KeyError for what the other one has stored
    assert opens(path, one)
    assert opens(path, other)
    assert not opens(path, lambda name, stored: None)


def test_a_secret_has_one_slot_and_is_replaced_in_every_one(path: Path) -> None:
    store_keys = recollect.StoreKeys(path)
    with pytest.raises(InvalidArgumentError, match="opens the store already"):
        store_keys.add(RAW, secret=RAW)
    twice = keys.read(str(path)).unlock(RAW).with_slot("again", RAW)
    keys.write(twice)
    store_keys.rotate(OTHER, secret=RAW)
    assert not opens(path, RAW)
    assert opens(path, OTHER)


def test_the_keys_of_a_plain_or_missing_store_are_not_reported_as_lost(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db"):
        pass
    with pytest.raises(NotEncryptedError):
        recollect.StoreKeys(tmp_path / "a.db")
    with pytest.raises(StoreMissingError):
        recollect.StoreKeys(tmp_path / "missing.db")


def test_a_file_with_what_is_nearly_a_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    for text in (RAW.hex()[:-1], RAW.hex() + "0", f" {RAW.hex()}", RAW.hex()[:32]):
        file.write_text(text)
        with pytest.raises(InvalidArgumentError, match="hexadecimal digits"):
            secret_in(file)
    file.write_text(RAW.hex() + "\n\n")
    assert secret_in(file) == RAW
