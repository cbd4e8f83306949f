"""The key file of an encrypted store, `FILE.keys`: its data keys, each encrypted with every secret that opens it.

A store is encrypted with a data key of random bytes. Each slot of the key file has that key encrypted with the key of
one secret: a passphrase (by Argon2id), 32 bytes, or what a function returns that asks a key service. So a secret is
added, removed or changed without writing the store. Without the key file, no secret opens the store, so it is written
durably before the store, and every copy of the store gets a copy of it.

The first data key stays in the file: the salts of hashes are derived from it, and roots must not change.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import uuid as uuids
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from recollect.errors import (
    InvalidArgumentError,
    KeyFileMissingError,
    StoreIOError,
    WrongSecretError,
)
from recollect.stores import files
from recollect.stores.sealing.cipher import KEY_BYTES, NotAuthenticError, decrypted, encrypted, stretched, subkey
from recollect.stores.sealing.pages import PageCipher

#: Returns 32 bytes for the name of a slot and what was stored with it; None for a slot that is none of its own. For a
#: new slot, for which nothing is stored, it returns 32 bytes, or 32 bytes and what to store, such as the same encrypted
#: by a key service.
AskKey = Callable[[str, bytes], "bytes | tuple[bytes, bytes] | None"]
#: What opens an encrypted store: 32 bytes, a passphrase, or a function.
Secret = bytes | str | AskKey
Kind = Literal["passphrase", "raw", "call"]

_FORMAT = 1
#: The longest key file that is read, in bytes.
MAX_BYTES = 2**16
_SALT_BYTES = 16
#: Memory in KiB, passes and lanes of Argon2id: for new slots (RFC 9106, second recommended option), and the least and
#: most that is accepted.
_NEW, _LEAST, _MOST = (2**16, 3, 4), (19 * 2**10, 2, 1), (2**21, 100, 64)
_MOST_OF_NAME = 100
#: What the key of the pages of a kind of file is derived for; and of those of the store itself.
_PAGES = "recollect.page.1 "
PAGES_OF_STORE = _PAGES + "db"
#: What parsing raises for bytes that are no key file.
INVALID = (LookupError, ValueError, TypeError, AttributeError)


def keys_path(path: str) -> str:
    """Return the path of the key file of a store. If that is a symbolic link, it is next to the file it points to."""
    return os.path.realpath(path) + ".keys"


def check_secret(name: str, secret: object) -> Kind:
    """Return the kind of a secret. Raise InvalidArgumentError if it is none. The message never contains it."""
    if isinstance(secret, bytes):
        if len(secret) != KEY_BYTES:
            raise InvalidArgumentError(name, "...", f"must be {KEY_BYTES} bytes, a passphrase, or a function")
        return "raw"
    if isinstance(secret, str):
        if not secret.strip():
            raise InvalidArgumentError(name, "...", "must not be an empty passphrase")
        try:
            secret.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(name, "...", "is no valid Unicode text") from None
        return "passphrase"
    if callable(secret):
        return "call"
    raise InvalidArgumentError(name, "...", f"must be {KEY_BYTES} bytes, a passphrase, or a function")


@dataclass(frozen=True, slots=True)
class Slot:
    """A secret that opens a store, without the secret.

    Attributes:
        id: Its name in the key file. For a function, the name that it is called with.
        kind: "passphrase", "raw" (32 bytes) or "call" (a function).
    """

    id: str
    kind: Kind


@dataclass(frozen=True, slots=True, repr=False)
class _Wrapped:
    """A data key, encrypted with the key of a slot.

    Attributes:
        slot: The name, the id and the kind of the slot.
        how: What the key of the slot is derived from: the parameters of Argon2id, or what a function stored.
        wrapped: The nonce, the ciphertext and the tag.
    """

    slot: Slot
    how: dict[str, Any]
    wrapped: bytes

    def to_json(self) -> dict[str, Any]:
        return {"id": self.slot.id, "kind": self.slot.kind, **self.how, "wrapped": _text(self.wrapped)}


@dataclass(frozen=True, slots=True, repr=False)
class _DataKey:
    id: int
    use: Literal["now", "next", "salt"]
    slots: tuple[_Wrapped, ...]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "use": self.use, "slots": [each.to_json() for each in self.slots]}


@dataclass(frozen=True, slots=True, repr=False)
class KeyFile:
    """The contents of a key file. `read` and `new` make one.

    Attributes:
        path: Where it is.
        uuid: The uuid of the store.
        keys: The encrypted data keys. The first one is that of the salts.
    """

    path: str
    uuid: str
    keys: tuple[_DataKey, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The secrets that open the store."""
        return tuple(each.slot for each in self._now.slots)

    @property
    def _now(self) -> _DataKey:
        return next(each for each in self.keys if each.use == "now")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which contains no secret and no data key."""
        return {"format": _FORMAT, "store": self.uuid, "deks": [each.to_json() for each in self.keys]}

    def unlock(self, secret: Secret) -> Unlocked:
        """Return the data keys.

        Raises:
            WrongSecretError: No slot opens with this secret.
            InvalidArgumentError: `secret` is not 32 bytes, a passphrase or a function; or the function returned no key.

        Cost:
            For a passphrase, a tenth of a second and 64 MiB of memory for each slot that is tried.
        """
        opened, error = self._opened_with(secret, first=True)
        if opened:
            slot, key = opened[0]
            return Unlocked(self, slot, key, self._keys_of(slot, key))
        if error is not None:
            raise error
        kind = check_secret("secret", secret)
        has = sorted({each.kind for each in self.slots})
        detail = (
            f"it opens none of the slots of the kind {kind}" if kind in has else f"it has slots of the kind {has[0]}"
        )
        raise WrongSecretError(self.path.removesuffix(".keys"), detail)

    def slots_of(self, secret: Secret) -> tuple[Slot, ...]:
        """Return the slots that a secret opens. The cost and the errors are those of `unlock`, for every slot."""
        opened, _ = self._opened_with(secret, first=False)
        return tuple(slot for slot, _ in opened)

    def _opened_with(self, secret: Secret, *, first: bool) -> tuple[list[tuple[Slot, bytes]], Exception | None]:
        """Return the slots that a secret opens, with their keys; and what its function raised, if it did."""
        kind = check_secret("secret", secret)
        opened: list[tuple[Slot, bytes]] = []
        raised: Exception | None = None
        for each in self._now.slots:
            if each.slot.kind != kind or (first and opened):
                continue
            try:
                key = _key_of(each, secret, self.uuid)
            except Exception as error:
                if kind != "call":
                    raise
                raised = raised or error  # a key service may know one slot and not another
                continue
            if key is not None and _unwrapped(each, key, self.uuid, self._now.id) is not None:
                opened.append((each.slot, key))
        return opened, raised

    def _keys_of(self, slot: Slot, key: bytes) -> dict[int, bytes]:
        """Return the data keys that a slot has: those of former and next use may lack it."""
        found = {
            one.id: _unwrapped(each, key, self.uuid, one.id)
            for one in self.keys
            for each in one.slots
            if each.slot == slot
        }
        return {number: data_key for number, data_key in found.items() if data_key is not None}

    def check_name(self, name: str) -> None:
        """Raise InvalidArgumentError if a new slot cannot have this name."""
        if not name or len(name) > _MOST_OF_NAME or not name.isprintable():
            raise InvalidArgumentError("name", name, f"must be 1 to {_MOST_OF_NAME} printable characters")
        if name in {each.id for each in self.slots}:
            raise InvalidArgumentError("name", name, "is already that of a slot: remove it first, or choose another")

    def free_name(self) -> str:
        """Return a name that no slot has."""
        names = {each.id for each in self.slots}
        return next(name for number in range(1, len(names) + 2) if (name := f"slot-{number}") not in names)


@dataclass(frozen=True, repr=False)
class Unlocked:
    """An opened key file: the data keys of a store. Its text form shows none of them.

    Attributes:
        file: The key file.
        slot: The slot that was opened.
    """

    file: KeyFile
    slot: Slot
    _secret_key: bytes
    _keys: dict[int, bytes]
    _ciphers: dict[str, PageCipher] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"<data keys of {self.file.path}>"

    def __reduce__(self) -> Any:
        raise TypeError("data keys cannot be copied into another process")

    @property
    def uuid(self) -> str:
        """The uuid of the store."""
        return self.file.uuid

    @property
    def salt_key(self) -> bytes:
        """The store key of a store that was created encrypted: the salts of its hashes are derived from it."""
        return subkey(self._keys[self.file.keys[0].id], self.uuid.encode(), "recollect.salt")

    def has(self, other: Unlocked) -> bool:
        """Return whether these are keys of the same store, with the one with which the other keys encrypt now."""
        return self.uuid == other.uuid and other._keys[other.file._now.id] in self._keys.values()

    def key(self, use: str) -> bytes:
        """Return the key for one use, such as a kind of file."""
        return subkey(self._keys[self.file._now.id], self.uuid.encode(), use)

    def pages(self, role: str) -> PageCipher:
        """Return the cipher of the pages of a kind of file: "db" for the store, else the name of what is derived."""
        found = self._ciphers.get(role)
        if found is None:
            found = self._ciphers[role] = PageCipher(self.key(_PAGES + role))
        return found

    def opening(self, first_page: bytes) -> Unlocked:
        """Return these keys with the one that opens the first page of a file as that of now.

        A process that died while it replaced the data key leaves a key file with both.
        """
        for each in self.file.keys:
            if each.id not in self._keys:
                continue
            candidate = self if each.use == "now" else self._using(each.id)
            try:
                candidate.pages("db").open(first_page, 1)
            except NotAuthenticError:
                continue
            return candidate
        if len(self._keys) < len(self.file.keys):
            detail = "its data key was replaced, and this secret has only the former one"
            raise WrongSecretError(self.file.path.removesuffix(".keys"), detail)
        return self

    def _using(self, number: int) -> Unlocked:
        """Return these keys with another one of them as that of now. The first key keeps its place."""
        former = self.file._now.id
        keys = tuple(
            _DataKey(each.id, "now" if each.id == number else "salt" if each.id == former else each.use, each.slots)
            for each in self.file.keys
        )
        return Unlocked(KeyFile(self.file.path, self.uuid, keys), self.slot, self._secret_key, self._keys)

    # Changes of the key file, which the caller writes

    def with_slot(self, name: str, secret: Secret) -> KeyFile:
        """Return the key file with one more slot, which has the data keys that the opened one has."""
        self.file.check_name(name)
        slot, key, how = _new_slot(name, secret, self.uuid)

        def more(each: _DataKey) -> tuple[_Wrapped, ...]:
            return (self._wrapped(slot, key, how, each.id),) if each.id in self._keys else ()

        keys = [_DataKey(each.id, each.use, (*each.slots, *more(each))) for each in self.file.keys]
        return KeyFile(self.file.path, self.uuid, tuple(keys))

    def _wrapped(self, slot: Slot, key: bytes, how: dict[str, Any], number: int) -> _Wrapped:
        return _Wrapped(slot, how, encrypted(key, self._keys[number], _about(self.uuid, number, slot.id)))

    def with_next_key(self) -> Unlocked:
        """Return these keys with a new data key, which no other slot than the opened one has."""
        file = KeyFile(self.file.path, self.uuid, tuple(each for each in self.file.keys if each.use != "next"))
        number = max(each.id for each in self.file.keys) + 1
        keys = {**self._keys, number: os.urandom(KEY_BYTES)}
        more = Unlocked(file, self.slot, self._secret_key, keys)
        how = next(each.how for each in file._now.slots if each.slot == self.slot)
        added = _DataKey(number, "next", (more._wrapped(self.slot, self._secret_key, how, number),))
        file = KeyFile(file.path, file.uuid, (*file.keys, added))
        return Unlocked(file, self.slot, self._secret_key, keys)

    def with_key_of_next(self) -> Unlocked:
        """Return these keys with the new data key as that of now. See `settled`."""
        file = settled(self.file)
        keys = {each.id: self._keys[each.id] for each in file.keys}
        return Unlocked(file, self.slot, self._secret_key, keys)


def settled(file: KeyFile) -> KeyFile:
    """Return a key file with the new data key as that of now, and with no other than that and that of the salts.

    All slots that do not have the new key are gone: their secrets would be needed to give it to them.
    """
    new = next(each for each in file.keys if each.use == "next")
    kept = {each.slot for each in new.slots}
    first = file.keys[0]
    salts = _DataKey(first.id, "salt", tuple(each for each in first.slots if each.slot in kept))
    return KeyFile(file.path, file.uuid, (salts, _DataKey(new.id, "now", new.slots)))


def without_slot(file: KeyFile, name: str) -> KeyFile:
    """Return a key file without a slot.

    Raises:
        InvalidArgumentError: There is none of this name, or it is the last one.
    """
    names = [each.id for each in file.slots]
    if name not in names:
        raise InvalidArgumentError("name", name, f"is not that of a slot; there are {', '.join(names)}")
    if len(names) == 1:
        rule = "is the last slot, without which no secret opens the store: add another one first, or destroy the keys"
        raise InvalidArgumentError("name", name, rule)
    keys = [_DataKey(each.id, each.use, tuple(one for one in each.slots if one.slot.id != name)) for each in file.keys]
    if not all(each.slots for each in keys):
        rule = (
            "is the only one with a data key that an interrupted rewrite has left: run `recollect key rotate --rewrite`"
        )
        raise InvalidArgumentError("name", name, rule)
    return KeyFile(file.path, file.uuid, tuple(keys))


def new(path: str, secret: Secret, *, name: str = "slot-1", uuid: str | None = None) -> Unlocked:
    """Return the data keys of a new key file, which the caller writes.

    Args:
        path: The path of the store, beside which the key file will be.
        secret: What will open it.
        name: The name of its slot.
        uuid: The uuid of a store that exists already.

    Raises:
        InvalidArgumentError: `secret` is not 32 bytes, a passphrase or a function; or the function returned no key.
        MissingExtraError: The library `cryptography` is not installed.

    Cost:
        For a passphrase, a tenth of a second and 64 MiB of memory.
    """
    uuid = uuid or str(uuids.uuid4())
    slot, key, how = _new_slot(name, secret, uuid)
    data_key = os.urandom(KEY_BYTES)
    wrapped = _Wrapped(slot, how, encrypted(key, data_key, _about(uuid, 1, slot.id)))
    file = KeyFile(keys_path(path), uuid, (_DataKey(1, "now", (wrapped,)),))
    return Unlocked(file, slot, key, {1: data_key})


def _new_slot(name: str, secret: Secret, uuid: str) -> tuple[Slot, bytes, dict[str, Any]]:
    """Return a new slot, its key, and what its key is derived from."""
    kind = check_secret("secret", secret)
    how: dict[str, Any] = {}
    if kind == "passphrase":
        memory, passes, lanes = _NEW
        how = {"kdf": "argon2id", "m": memory, "t": passes, "p": lanes, "salt": _text(os.urandom(_SALT_BYTES))}
    elif kind == "call":
        assert callable(secret)
        returned = secret(name, b"")
        key, stored = returned if isinstance(returned, tuple) else (returned, b"")
        if not isinstance(stored, bytes):
            raise InvalidArgumentError("secret", "...", "is a function that must return bytes to store")
        how = {"stored": _text(stored)}
        return Slot(name, kind), _slot_key(_asked(key), uuid), how
    slot = Slot(name, kind)
    slot_key = _key_of(_Wrapped(slot, how, b""), secret, uuid)
    assert slot_key is not None, "only a function returns no key"
    return slot, slot_key, how


def _unwrapped(wrapped: _Wrapped, key: bytes, uuid: str, number: int) -> bytes | None:
    """Return the data key in a slot; None if it has another key than this one."""
    try:
        return decrypted(key, wrapped.wrapped, _about(uuid, number, wrapped.slot.id))
    except NotAuthenticError:
        return None


def _key_of(wrapped: _Wrapped, secret: Secret, uuid: str) -> bytes | None:
    """Return the key of a slot; None if a function says that the slot is none of its own."""
    how = wrapped.how
    if isinstance(secret, str):
        return stretched(secret, _bytes(how["salt"]), memory_kib=how["m"], passes=how["t"], lanes=how["p"])
    if isinstance(secret, bytes):
        return _slot_key(secret, uuid)
    returned = secret(wrapped.slot.id, _bytes(how["stored"]))
    if returned is None:
        return None
    return _slot_key(_asked(returned[0] if isinstance(returned, tuple) else returned), uuid)


def _slot_key(key: bytes, uuid: str) -> bytes:
    return subkey(key, uuid.encode(), "recollect.slot.1")


def _asked(key: object) -> bytes:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise InvalidArgumentError("secret", "...", f"is a function that must return {KEY_BYTES} bytes")
    return key


def _about(uuid: str, number: int, slot: str) -> bytes:
    """Return what an encrypted data key belongs to."""
    return json.dumps([_FORMAT, uuid, number, slot]).encode()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


# The file


def read(path: str) -> KeyFile:
    """Return the key file of the store at a path.

    Raises:
        KeyFileMissingError: It is missing, or cannot be read.
    """
    where = keys_path(path)
    try:
        with open(files.open_regular(where, follow=True), "rb") as opened:
            data = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise KeyFileMissingError(path, f"{where} does not exist") from None
    except OSError as error:
        raise KeyFileMissingError(path, f"{where} cannot be read: {error.strerror or error}") from error
    try:
        return parsed(where, data)
    except INVALID as error:
        raise KeyFileMissingError(path, f"{where} is corrupt: {error}") from None


def parsed(where: str, data: bytes) -> KeyFile:
    """Return the key file in these bytes. Raise ValueError, LookupError or TypeError if they are none."""
    if len(data) > MAX_BYTES:
        raise ValueError("it is too long")
    try:
        found = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise TypeError("it is no object")
    if found["format"] != _FORMAT:
        raise ValueError(f"it has the format {found['format']!r}, and this release knows {_FORMAT}")
    keys = tuple(_data_key(each) for each in found["deks"])
    now = [each for each in keys if each.use == "now"]
    if len(now) != 1 or not now[0].slots or len({each.id for each in keys}) != len(keys):
        raise ValueError("it has no data key, or several")
    return KeyFile(where, str(uuids.UUID(found["store"])), keys)


def uuid_in(data: bytes) -> str:
    """Return the uuid of the store of the key file in these bytes; "" if they are none."""
    try:
        return parsed("", data).uuid
    except INVALID:
        return ""


def _data_key(found: dict[str, Any]) -> _DataKey:
    number, use = found["id"], found["use"]
    if type(number) is not int or use not in ("now", "next", "salt"):
        raise ValueError("a data key is invalid")
    return _DataKey(number, use, tuple(map(_slot, found["slots"])))


def _slot(found: dict[str, Any]) -> _Wrapped:
    name, kind = found["id"], found["kind"]
    if not isinstance(name, str) or kind not in ("passphrase", "raw", "call"):
        raise ValueError("a slot is invalid")
    how = {
        each: found[each] for each in {"passphrase": ("kdf", "m", "t", "p", "salt"), "call": ("stored",)}.get(kind, ())
    }
    if kind == "passphrase":
        costs = (how["m"], how["t"], how["p"])
        if how["kdf"] != "argon2id" or any(type(each) is not int for each in costs):
            raise ValueError("the derivation of a slot is unknown")
        if not all(least <= cost <= most for least, cost, most in zip(_LEAST, costs, _MOST, strict=True)):
            raise ValueError(f"the costs of a slot must be from {_LEAST} to {_MOST} (KiB, passes, lanes)")
        if len(_bytes(how["salt"])) < _SALT_BYTES:
            raise ValueError("the salt of a slot is too short")
    elif kind == "call":
        _bytes(how["stored"])
    return _Wrapped(Slot(name, kind), how, _bytes(found["wrapped"]))


def write(file: KeyFile, *, exclusive: bool = False) -> bool:
    """Write a key file durably and atomically, with mode 0600.

    Args:
        exclusive: Replace no other one. Return False if there is one.

    Raises:
        StoreIOError: Writing failed. The former file is still there.
    """
    data = json.dumps(file.to_json(), indent=1).encode() + b"\n"
    if len(data) > MAX_BYTES:  # it would not be read again
        raise InvalidArgumentError("secret", "...", f"would make the key file longer than {MAX_BYTES} bytes")
    part = f"{file.path}.{secrets.token_hex(8)}.part"
    try:
        try:
            files.write(part, [data], lasting=True)
            if not exclusive:
                files.replace(file.path, part)
            elif not _linked(file.path, part, data):
                return False
            files.sync_folder(os.path.dirname(file.path))
        finally:
            with suppress(OSError):
                files.remove(part)
    except OSError as error:
        raise StoreIOError(file.path, error.strerror or str(error)) from error
    return True


def _linked(path: str, part: str, data: bytes) -> bool:
    """Put a file at a path. Return False if there is one."""
    try:
        try:
            files.link(path, part)
        except FileExistsError:
            raise
        except OSError:  # the file system has no links
            files.write(path, [data], lasting=True)
    except FileExistsError:
        return False
    return True
