"""Opening a memory: from a path or address to a store, an engine and a namespace."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from recollect.arguments import named
from recollect.embedding.base import Embedder, floors_of
from recollect.embedding.environment import NO_EMBEDDER, embedder_from, embedder_of_environment
from recollect.engine.engine import Engine
from recollect.engine.write.drafts import Intake
from recollect.engine.write.limits import Limits
from recollect.errors import InvalidArgumentError, StoreIOError, UnsupportedError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.memory.memory import Memory, namespace_name
from recollect.operations import check_tag, check_text
from recollect.records.record import utc_now
from recollect.stores import files
from recollect.stores.base import Store
from recollect.stores.memory import MemoryStore
from recollect.text.unicode import has_surrogate

#: Names the default store, before the user's data folder.
PATH_VARIABLE = "RECOLLECT_DB"


def default_path() -> str:
    """Where the memory is when no path is given: RECOLLECT_DB, else `memory.db` in the user's data folder."""
    named = os.environ.get(PATH_VARIABLE)
    if named:
        return named
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
    durability: str = "full",
    limits: Limits | None = None,
    language: str | None = None,
    embedder: Embedder | str | None = None,
) -> Memory:
    """Open the memory at a path, making it where there is none.

    path        a file, "sqlite:///FILE" or ":memory:"; none: RECOLLECT_DB, else a file in the user's data folder
    namespace   the isolation boundary: nothing crosses it
    clock       gives the time, as an aware datetime; default: the system's, in UTC
    create      False: a missing file is an error and stays missing
    read_only   True: nothing is ever written
    key         from which the salts of hashes are derived. The default is public, so anyone can reproduce the root of
                such a store; with a key of your own (16 bytes or more), erased text cannot be confirmed by guessing
    timeout     how many seconds a writer waits for another before StoreBusyError
    durability  "full": what was acknowledged survives a power cut; "normal": the newest commits may be lost to one
    limits      how large a record and a question may be; default: `recollect.Limits()`
    language    a BCP 47 tag ("de"): what records and questions are written in that do not say so, kept with each record
                that is told from now on; default: each is read in the language that it seems to be in, else English
    embedder    the model for vectors, an `Embedder` or "provider/model" (`recollect.embedding.environment`). Default:
                what LLM_EMBEDDING_MODEL names, else none; "none" is none in any case

    Raises: StoreMissingError, NotAStoreError, NewerFormatError, WrongKeyError, StoreIOError, InvalidArgumentError.
    Cost: milliseconds; indexes are made when first asked for.
    """
    name = namespace_name(namespace)
    if clock is not None and not callable(clock):
        raise InvalidArgumentError("clock", clock, "must be a function that gives an aware datetime")
    if key is not None and (not isinstance(key, bytes) or len(key) < 16):
        raise InvalidArgumentError("key", "...", "must be 16 bytes or more")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 <= timeout <= 86_400:
        raise InvalidArgumentError("timeout", timeout, "must be seconds, 0 to 86400")
    if limits is not None and not isinstance(limits, Limits):
        raise InvalidArgumentError("limits", limits, "must be a recollect.Limits")
    if language is not None:
        check_tag(language)
    model = _embedder(embedder)
    store = _open_store(path, create, read_only, key or PUBLIC_KEY, timeout, durability)
    return Memory(Engine(store, clock or utc_now, Intake(limits or Limits(), language), model), Branch(name))


def store_file(path: str | None = None) -> str:
    """The file that a path or address names, or the default one. Raises: UnsupportedError where it names no file."""
    location = (path or default_path()).removeprefix("sqlite:///")
    if location == ":memory:" or "://" in location:
        raise UnsupportedError(f"the address {location!r}", "it names no file")
    return location


def _embedder(wanted: Embedder | str | None) -> Embedder | None:
    if wanted is None:
        return embedder_of_environment()
    if isinstance(wanted, str):
        return None if wanted == NO_EMBEDDER else embedder_from(wanted)
    if isinstance(wanted, type) or not isinstance(wanted, Embedder):
        raise InvalidArgumentError("embedder", wanted, "must be an Embedder, or PROVIDER/MODEL as text")
    check_text("embedder.name", wanted.name)
    floors_of(wanted)  # checks them
    return wanted


def _open_store(
    path: str | os.PathLike[str] | None, create: bool, read_only: bool, key: bytes, timeout_s: float, durability: str
) -> Store:
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
    if location == ":memory:":
        return MemoryStore(key=key, timeout_s=timeout_s)
    if location.startswith("sqlite:///"):
        location = location.removeprefix("sqlite:///")
        if not location:
            raise InvalidArgumentError("path", path, "names no file: sqlite:///FILE")
    elif "://" in location:
        raise UnsupportedError(f"the address {location!r}", "stores are files, sqlite:///FILE and :memory:")
    from recollect.stores.sqlite.store import SqliteStore

    return SqliteStore(
        location, create=create, read_only=read_only, key=key, timeout_s=timeout_s, durability=durability
    )
