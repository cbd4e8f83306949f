"""Opening a memory: from a path or address to a store, an engine and a namespace."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path

from recollect.arguments.checks import MAX_COUNT, is_integer
from recollect.arguments.signatures import named
from recollect.calls.calls import RecollectWarning
from recollect.common.regexes import regex
from recollect.common.zones import ZONE_VARIABLE, name_of, zone_of, zone_of_machine
from recollect.engine.call_log import OnCall
from recollect.engine.core import INDEX_BYTES
from recollect.engine.engine import Engine
from recollect.engine.index.vectors import VECTOR_BYTES
from recollect.engine.write.drafts import Intake, Limits
from recollect.errors import InvalidArgumentError, RecollectError, StoreIOError, UnsupportedError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.memory.memory import Memory, namespace_name
from recollect.models.embedding.base import Embedder, floors_of
from recollect.models.embedding.environment import NO_EMBEDDER, embedder_from, embedder_of_environment
from recollect.operations import check_choice, check_tag, check_text, check_timeout
from recollect.records.record import utc_now
from recollect.stores import files
from recollect.stores.base import Store
from recollect.stores.sealing.keys import Secret, check_secret
from recollect.stores.sealing.secrets import secret_or_default
from recollect.stores.values import DURABILITIES, Durability
from recollect.text.unicode import has_surrogate

#: The environment variable with the path of the default store.
PATH_VARIABLE = "RECOLLECT_DB"
#: The environment variables with the defaults of `index_bytes` and `vector_bytes`.
INDEX_BYTES_VARIABLE = "RECOLLECT_INDEX_BYTES"
VECTOR_BYTES_VARIABLE = "RECOLLECT_VECTOR_BYTES"

#: The group of entry points with a function for each scheme of an address, which opens the store there. It takes the
#: address and by name `create`, `read_only`, `key`, `timeout_s`, `durability` and `zone` (the name of a time zone, or
#: None), and returns a `recollect.stores.base.Store`. `recollect.testing.StoreContract` is what it must pass.
STORES = "recollect.stores"
_MOST_OF_ADDRESS = 300
#: A path that is more likely the address of a server without its scheme, or several.
_SERVER = regex(
    r"([^/]*@[^/]+:\d{1,5}|(localhost|\d{1,3}(\.\d{1,3}){3}|([\w-]+\.)+(?!db|sqlite)[a-z]{2,}|\[[0-9a-f:]+\]):\d{2,5})"
    r"([/,].*)?|[^/]*\b(host|dbname|password)\s*=[^/]*",
    re.IGNORECASE | re.DOTALL,
)


def default_path() -> str:
    """Return the path of the default store: RECOLLECT_DB, or else `memory.db` in the user's data folder."""
    configured = os.environ.get(PATH_VARIABLE)
    if configured:
        return configured
    import platformdirs

    return str(Path(platformdirs.user_data_dir("recollect", appauthor=False)) / "memory.db")


@named
def open(  # noqa: A001 - recollect.open is the name
    path: str | os.PathLike[str] | None = None,
    namespace: str = "default",
    clock: Callable[[], datetime] | None = None,
    *,
    create: bool = True,
    read_only: bool = False,
    key: bytes | None = None,
    timeout: float = 10.0,
    durability: Durability = "full",
    limits: Limits | None = None,
    language: str | None = None,
    embedder: Embedder | str | None = None,
    index_bytes: int | None = None,
    vector_bytes: int | None = None,
    on_call: OnCall | None = None,
    zone: tzinfo | str | None = None,
    read_from: str | None = None,
    secret: Secret | None = None,
) -> Memory:
    """Open a memory: one namespace of a store. The store is created if there is none.

    Args:
        path: A file, "sqlite:///FILE", ":memory:", or the address of a store on a server, such as
            "postgresql://HOST/DATABASE" (docs/postgresql.md); default: the path in RECOLLECT_DB, or else `memory.db`
            in the user's data folder.
        namespace: The name of the namespace. Namespaces are isolated from each other: each has its own records,
            index, statistics, log and root.
        clock: A function that returns the current time as an aware datetime; default: the system clock.
        create: If False, a missing file is an error and is not created. A store on a server is created by
            `recollect store init` alone.
        read_only: If True, nothing is ever written.
        key: The key from which the salts of hashes are derived, 16 bytes or more. The default key is public, so anyone
            can reproduce the root of a store that uses it. With a key of your own, erased text cannot be confirmed by
            guessing it.
        timeout: Seconds that a writer waits for another one before it raises StoreBusyError, 0 to 86,400.
        durability: "full": acknowledged commits survive a power cut. "normal": a power cut may lose the newest
            commits. A memory in ":memory:" ends with its process, whichever it is.
        limits: Limits on the sizes of records, questions and queries; default: `recollect.Limits()`.
        language: The language of records and questions that do not state one, as a BCP 47 tag such as "de". It is
            stored with each new record. Default: the language is detected, or else English.
        embedder: The embedding model: an `Embedder`, or "provider/model" (`recollect.models.embedding.environment`).
            Default: the model that RECOLLECT_EMBEDDER names, or else none. "none" disables embedding.
        index_bytes: Memory limit of the word indexes of the store's namespaces together, in bytes. Beyond it, the least
            recently used index is evicted, and loaded again when it is needed; one index always stays. Default: the
            number in RECOLLECT_INDEX_BYTES, or else 2 GiB.
        vector_bytes: Memory limit of the vectors of the store's namespaces together, in bytes. Beyond it, those of the
            least recently used namespace are evicted, and loaded again when they are needed; those of one namespace
            always stay. Default: the number in RECOLLECT_VECTOR_BYTES, or else 2 GiB.
        on_call: Called with a `recollect.Call` when an operation has ended, in the thread of the caller: the name, the
            time, the number of results and the error, never content. For metrics and traces. An exception that it
            raises is logged and has no other effect.
        zone: The time zone of the store, in which "yesterday" is a day, dates and times without an offset are read, and
            times are shown: a name such as "Europe/Copenhagen" or "+05:30", or a tzinfo. It is stored when the store is
            created, and cannot be changed. Default for a new file: the zone that RECOLLECT_ZONE names, or else that of
            the machine; for ":memory:", UTC. A file that was created without one has UTC.
        read_from: The address of a standby of the server at `path`. Reads go there if it has every commit that this
            process, or the client of a server, has seen of the memory; else they wait for it, at most 50 ms, and then
            go to `path`.
        secret: What opens an encrypted file (docs/encryption.md): 32 bytes, a passphrase, or a function that asks a key
            service (`recollect.stores.sealing.keys.AskKey`). A file that is created with one is encrypted: the store,
            its WAL, its index files and its backups. Default: the secret in the file that RECOLLECT_SECRET_FILE names,
            or else none.

    Returns:
        The memory. Close it with `close()`, or use it as a context manager.

    Raises:
        InvalidArgumentError: An argument is invalid, or the store has another zone than `zone`.
        UnsupportedError: The path is an address of an unknown kind, or the store's time zone is not known here.
        StoreMissingError: There is no file at the path and it must not be created, or its folder does not exist.
        NotAStoreError: The file is not a Recollect store.
        NewerFormatError: The store was written by a newer release.
        OlderFormatError: The store has a format that this release no longer reads.
        WrongKeyError: The store was created with another key.
        SecretNeededError: The store is encrypted, and there is no secret.
        WrongSecretError: The store is encrypted, and the secret does not open it.
        KeyFileMissingError: The store is encrypted, and its key file is missing or corrupt.
        NotEncryptedError: The store is not encrypted, and there is a secret.
        MissingExtraError: The store is encrypted, and the library for that is not installed.
        StoreIOError: The file cannot be read or written.

    Cost:
        Milliseconds. Indexes are loaded or built on first use. A passphrase takes a tenth of a second and 64 MiB.
    """
    name = namespace_name(namespace)
    if clock is not None and not callable(clock):
        raise InvalidArgumentError("clock", clock, "must be a function that returns an aware datetime")
    if key is not None and (not isinstance(key, bytes) or len(key) < 16):
        raise InvalidArgumentError("key", "...", "must be 16 bytes or more")
    check_timeout(timeout)
    check_choice("durability", durability, DURABILITIES)
    if limits is not None and not isinstance(limits, Limits):
        raise InvalidArgumentError("limits", limits, "must be a recollect.Limits")
    if language is not None:
        check_tag(language)
    if on_call is not None and not callable(on_call):
        raise InvalidArgumentError("on_call", on_call, "must be a function of a call")
    if secret is not None:
        check_secret("secret", secret)
    stated = None if zone is None else name_of(zone)
    for_indexes = _memory_limit("index_bytes", index_bytes, INDEX_BYTES_VARIABLE, INDEX_BYTES)
    for_vectors = _memory_limit("vector_bytes", vector_bytes, VECTOR_BYTES_VARIABLE, VECTOR_BYTES)
    model = _embedder(embedder)
    store = open_store(path, create, read_only, key, timeout, durability, stated, read_from, secret)
    try:
        _check_zone(store, stated)
    except RecollectError:
        store.close()
        raise
    engine = Engine(
        store,
        clock or utc_now,
        Intake(limits or Limits(), language),
        model,
        index_bytes=for_indexes,
        vector_bytes=for_vectors,
        on_call=on_call,
    )
    return Memory(engine, Branch(name))


def _check_zone(store: Store, stated: str | None) -> None:
    """Raise an error if the time zone of a store is not known here, or is another one than the caller stated."""
    try:
        zone_of(store.zone)
    except InvalidArgumentError:
        from importlib.metadata import version  # not needed by most processes, and slow to import

        rule = f"the package tzdata {version('tzdata')} does not have it: upgrade tzdata"
        raise UnsupportedError(f"the time zone {store.zone!r} of the store {store.path}", rule) from None
    if stated not in (None, store.zone):
        rule = f"the store {store.path} was created with the time zone {store.zone}, which cannot be changed"
        raise InvalidArgumentError("zone", stated, rule)


def zone_of_new() -> str:
    """Return the time zone of a file that is created."""
    configured = os.environ.get(ZONE_VARIABLE)
    if not configured:
        return zone_of_machine()
    try:
        return name_of(configured)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(ZONE_VARIABLE, configured, error.args[2]) from None


def store_file(path: str | None = None) -> str:
    """Return the file of a path or address, or the default one.

    Raises:
        UnsupportedError: The address is not that of a file.
    """
    location = (path or default_path()).removeprefix("sqlite:///")
    if location == ":memory:" or "://" in location:
        what = f"{location.partition('://')[0]}://..." if "://" in location else location
        raise UnsupportedError(f"the address {what!r}", "this works on a file, not on a server or :memory:")
    return location


def _memory_limit(name: str, value: int | None, variable: str, default: int) -> int:
    if value is None:
        name, text = variable, os.environ.get(variable, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit()):
            raise InvalidArgumentError(name, text, "must be an integer of at least 1")
        value = int(text)
    if not is_integer(value, 1, MAX_COUNT - 1):
        raise InvalidArgumentError(name, value, "must be an integer of at least 1")
    return value


#: The members of an embedder, and how a message shows them.
_MEMBERS = {"name": "name", "dimension": "dimension", "embed": "embed(texts, *, asking=False)"}


def _embedder(value: Embedder | str | None) -> Embedder | None:
    if value is None:
        return embedder_of_environment()
    if isinstance(value, str):
        return None if value == NO_EMBEDDER else embedder_from(value)
    lacking = [text for name, text in _MEMBERS.items() if not hasattr(value, name)]
    what = ""
    if isinstance(value, type):
        what = "it is a class: pass an instance"
    elif lacking:
        what = f"it has no {' and no '.join(lacking)}"
    elif not _takes_asking(value.embed):
        what = "its embed() does not take asking="
    if what:
        rule = f"must be an Embedder (docs/vectors.md), or PROVIDER/MODEL as text; {what}"
        raise InvalidArgumentError("embedder", value, rule)
    check_text("embedder.name", value.name)
    floors_of(value)  # checks the floors
    return value


def _takes_asking(embed: object) -> bool:
    """Return whether a function can be called with `asking=`; True if that cannot be known."""
    try:
        parameters = inspect.signature(embed).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return callable(embed)
    named = parameters.get("asking")
    return (named is not None and named.kind is not named.POSITIONAL_ONLY) or any(
        each.kind is each.VAR_KEYWORD for each in parameters.values()
    )


def _open_address(
    address: str,
    create: bool,
    read_only: bool,
    key: bytes,
    timeout_s: float,
    durability: Durability,
    zone: str | None,
    read_from: str | None,
) -> Store:
    """Open the store at an address with the function that a package has for its scheme."""
    from importlib.metadata import distribution, entry_points

    scheme = address.partition("://")[0].lower()
    # This package first: to read what all others have takes longer than to open the store.
    found = {each.name: each for each in distribution("recollect").entry_points.select(group=STORES)}
    if scheme not in found:
        found = {each.name: each for each in entry_points(group=STORES)}
    if scheme not in found:
        known = ", ".join(f"{name}://" for name in sorted(found))
        rule = (
            f"a store is a file path, sqlite:///FILE, :memory: or the address of a server ({known}); "
            "recollect.connect() and commands also take the address of `recollect serve`, http://, https:// or unix://"
        )
        raise UnsupportedError(f"an address that begins with {scheme}://", rule)
    store: Store = found[scheme].load()(
        address,
        create=create,
        read_only=read_only,
        key=key,
        timeout_s=timeout_s,
        durability=durability,
        zone=zone,
        **({} if read_from is None else {"read_from": read_from}),
    )
    return store


def open_store(
    path: str | os.PathLike[str] | None,
    create: bool,
    read_only: bool,
    key: bytes | None,
    timeout_s: float,
    durability: Durability,
    zone: str | None,
    read_from: str | None = None,
    secret: Secret | None = None,
) -> Store:
    """Open a store without a memory on it. The arguments are those of `open`; `zone` is that of a new store."""
    if path is None:
        path = default_path()
        if create and not read_only and not os.environ.get(PATH_VARIABLE):
            try:
                files.make_folder(os.path.dirname(os.path.abspath(path)), lasting=True)
            except OSError as error:
                raise StoreIOError(path, error.strerror or str(error)) from error
    try:
        location = os.fspath(path)
    except TypeError:
        raise InvalidArgumentError("path", path, "must be a path or an address") from None
    if not isinstance(location, str) or not location or "\0" in location or has_surrogate(location):
        raise InvalidArgumentError("path", location, "must be a path or an address")
    if read_from is not None and "://" not in location.removeprefix("sqlite:///"):
        raise UnsupportedError("read_from", "it is for a store on a server, which can have standbys")
    if secret is not None and (location == ":memory:" or "://" in location.removeprefix("sqlite:///")):
        raise UnsupportedError(
            "secret", "it is for a store in a file: what is in memory or on a server is not encrypted"
        )
    if location == ":memory:":
        from recollect.stores.memory import MemoryStore

        return MemoryStore(key=key or PUBLIC_KEY, timeout_s=timeout_s, zone=zone or "UTC")
    if location.startswith("sqlite:///"):
        location = location.removeprefix("sqlite:///")
        if not location:
            raise InvalidArgumentError("path", path, "has no file name: the form is sqlite:///FILE")
    elif re.match("postgres(ql)?:(?!//)", location):
        raise InvalidArgumentError("path", location.partition(":")[0] + ":...", "an address begins with postgresql://")
    elif "://" in location:
        return _open_address(location, create, read_only, key or PUBLIC_KEY, timeout_s, durability, zone, read_from)
    elif len(location) < _MOST_OF_ADDRESS and _SERVER.fullmatch(location) and not os.path.exists(location):
        rule = (
            "looks like a server: recollect.connect() and commands take http://HOST:PORT, and a store on PostgreSQL is "
            "postgresql://HOST/DATABASE; before the name of a file, write ./"
        )
        raise InvalidArgumentError("path", location, rule)
    from recollect.stores.sqlite.store import SqliteStore

    store = SqliteStore(
        location,
        create=create,
        read_only=read_only,
        key=key,
        timeout_s=timeout_s,
        durability=durability,
        zone_of_new=zone_of_new if zone is None else lambda: zone,
        secret=secret_or_default(secret),
    )
    if store.renewed:
        warnings.warn(store.renewed, RecollectWarning, stacklevel=4)
    return store
