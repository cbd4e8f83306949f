"""Opening of a memory for the adapters of frameworks: once per process for each place, and closed by the last user."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import recollect
from recollect.errors import InvalidArgumentError
from recollect.memory.opening import default_path

#: What an adapter is made with: a memory, a path, or the address of a store or a server.
Place: TypeAlias = recollect.Memory | str | os.PathLike[str]

_SERVERS = ("http://", "https://", "unix:")
_ALONE = ":memory:"


class Closing:
    """A context manager that closes itself at its end."""

    __slots__ = ()

    def close(self) -> None:
        """Close it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class _Shared:
    memory: recollect.Memory
    options: dict[str, Any]
    users: int = 0


_lock = threading.Lock()
_shared: dict[str, _Shared] = {}


@dataclass(slots=True)
class Opened:
    """A memory in use by an adapter.

    Attributes:
        memory: The memory.
    """

    memory: recollect.Memory
    _key: str | None = None
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._closed

    def scoped(self, *, user: str | None, agent: str | None) -> recollect.Memory:
        """Return the memory, scoped to a user and an agent if one of them is stated. Closes it if it cannot be.

        Raises:
            InvalidArgumentError: One is not a non-empty text.
            ScopeError: The memory is scoped to another one.
        """
        if user is None and agent is None:
            return self.memory
        try:
            return self.memory.scoped(user=user, agent=agent)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._key is None:
            return
        with _lock:
            entry = _shared.get(self._key)
            if entry is None or entry.memory is not self.memory:  # of the process from which this one was forked
                return
            entry.users -= 1
            if not entry.users:
                del _shared[self._key]
                entry.memory.close()


def _after_fork() -> None:
    """Forget the memories of the process that was forked: they cannot be used here, and their lock may be taken."""
    global _lock
    _lock = threading.Lock()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def opened(place: Place, **options: Any) -> Opened:
    """Open a memory for an adapter.

    Two adapters with the same path or address share one memory, so that a process never opens a store twice. A memory
    that is passed stays open; one in ":memory:" is never shared.

    Args:
        place: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of a
            server, "http://...", "https://..." or "unix:///...".
        **options: Arguments of `recollect.open`; only for a path.

    Raises:
        InvalidArgumentError: The place is none, or is open here with other options.
        RecollectError: What `recollect.open` or `recollect.connect` raises.
    """
    if isinstance(place, recollect.Memory):
        if options:
            raise InvalidArgumentError("options", sorted(options), "need a path: the memory is open already")
        return Opened(place)
    if not isinstance(place, (str, os.PathLike)):
        raise InvalidArgumentError("memory", place, "must be a memory, a path, or an address")
    path = os.fspath(place)
    connects = path.startswith(_SERVERS)
    return _opened(path, options, lambda: recollect.connect(path) if connects else recollect.open(path, **options))


def opened_default(**options: Any) -> Opened:
    """Open the default store for an adapter. The errors are those of `opened`."""
    return _opened(default_path(), options, lambda: recollect.open(**options))


def _opened(path: str, options: dict[str, Any], make: Callable[[], recollect.Memory]) -> Opened:
    key = path if "://" in path or path.startswith(_SERVERS) else str(Path(path).absolute().resolve())
    with _lock:
        entry = None if path == _ALONE else _shared.get(key)
        if entry is None:
            entry = _Shared(make(), options)
            key = f"{_ALONE}{id(entry)}" if path == _ALONE else key
            _shared[key] = entry
        elif entry.options != options:
            shown = "this address" if "://" in path else repr(path)  # an address may have a password
            rule = f"differ from those with which {shown} is open in this process: pass the same, or close it first"
            raise InvalidArgumentError("options", sorted(options), rule)
        entry.users += 1
        return Opened(entry.memory, key)
