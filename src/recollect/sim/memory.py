"""The memory of agents: a plugin behind a wrapper that records what each agent does with it.

A write has a version: the number of the write in the run. What is read or recalled is recorded with the version of the
last write of that key with that value, so that a validator can compare histories without seeing a value: 0 if there was
no value, -1 if no write of the key had it. No value is ever recorded.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any, TypeVar

from recollect.compat.nest import PluginRegistry
from recollect.errors import InvalidArgumentError, UnsupportedError
from recollect.sim.engine import Clock
from recollect.sim.scenario import MemoryLayer
from recollect.sim.trace import TraceWriter

#: A value up to this size is compared itself, a larger one by its hash.
_SHORT = 32
_PATH = "layers.memory"
T = TypeVar("T")


class Versions:
    """The versions of all values that were written in a run, and the counter of memory events."""

    def __init__(self, trace: TraceWriter, clock: Clock) -> None:
        self.trace = trace
        self.clock = clock
        self._seq = 0
        self._writes = 0
        self._known: dict[str, dict[bytes, int]] = {}

    def record(self, kind: str, agent: str, key: str, size: int, **fields: Any) -> None:
        """Write an event of memory to the trace."""
        self._seq += 1
        self.trace.record(kind, agent, self.clock.now, key=key, size=size, seq=self._seq, **fields)

    def add(self, key: str, value: bytes) -> int:
        """Return the version of a value that was written now."""
        self._writes += 1
        self._known.setdefault(key, {})[_identity(value)] = self._writes
        return self._writes

    def of(self, key: str, value: bytes | None) -> int:
        """Return the version of a value that was read."""
        return 0 if value is None else self._known.get(key, {}).get(_identity(value), -1)


def _identity(value: bytes) -> bytes:
    # The letter keeps a short value apart from a hash.
    return b"v" + value if len(value) <= _SHORT else b"h" + blake2b(value, digest_size=16).digest()


class WatchedPlugin:
    """A plugin, and what is in it by what was seen so far.

    Args:
        versions: What the run has in common.
        owner: The agent that it belongs to; "" if all share it.
    """

    def __init__(self, plugin: Any, versions: Versions, owner: str = "") -> None:
        self.plugin = plugin
        self.versions = versions
        self.owner = owner
        self.entries: dict[str, tuple[int, float, int]] = {}  # key -> version, when it was written, size
        # The plugins of this project keep their entries on a shelf, which reports what it evicts and what expires.
        shelf = getattr(plugin, "shelf", None)
        subscribe = getattr(shelf, "subscribe", None)
        self._events = None if subscribe is None else subscribe(kinds=("evicted", "expired"), queue=1 << 62)
        self._subscribers: dict[str, list[asyncio.Queue[bytes]]] = {}
        self._calls: dict[object, tuple[str, str, str]] = {}  # that have not returned: agent, call, key

    @property
    def reports_removals(self) -> bool:
        """True if the plugin says what it evicts and what expires."""
        return self._events is not None

    async def call(self, agent: str, name: str, key: str, work: Awaitable[T]) -> T:
        """Return what a call of the plugin returns, and know of it until then."""
        token = object()
        self._calls[token] = agent, name, key
        try:
            return await work
        finally:
            del self._calls[token]

    def end(self) -> None:
        """Record what happened since the last call, and which calls have never returned."""
        self.drain()
        for agent, name, key in self._calls.values():
            self.versions.record("hung", agent, key, 0, call=name)

    def drain(self) -> None:
        """Record what was evicted and what expired since the last call."""
        while self._events is not None and (event := self._events.take()) is not None:
            version, written_at, _ = self.entries.pop(event.key, (-1, 0.0, 0))
            of = {"owner": self.owner} if self.owner else {}
            self.versions.record(event.kind, "", event.key, event.size, version=version, written_at=written_at, **of)

    def wrote(self, agent: str, key: str, value: bytes, **fields: Any) -> None:
        """Record a write."""
        self.drain()
        version = self.versions.add(key, value)
        self.entries[key] = (version, self.versions.clock.now, len(value))
        self.versions.record("written", agent, key, len(value), version=version, **fields)
        for waiting in self._subscribers.get(key, ()):
            waiting.put_nowait(value)

    async def values_of(self, key: str) -> AsyncIterator[bytes]:
        """Yield the values that are written to a key from now on.

        A plugin on a shelf passes them on within the write. Another one may do so in a thread, whenever that runs; for
        the same trace on every run, its values are passed on here.
        """
        if self._events is not None:
            async for value in self.plugin.subscribe(key):
                yield value
            return
        waiting: asyncio.Queue[bytes] = asyncio.Queue()
        subscribers = self._subscribers.setdefault(key, [])
        subscribers.append(waiting)
        try:
            while True:
                yield await waiting.get()
        finally:
            subscribers.remove(waiting)

    def close(self) -> None:
        """Close the plugin, if it can be closed."""
        with suppress(AttributeError):
            self.plugin.close()


class TracedMemory:
    """A memory plugin as one agent sees it. See `recollect.compat.nest.Memory`."""

    def __init__(self, store: WatchedPlugin, agent: str) -> None:
        self._store = store
        self._agent = agent

    @property
    def can_recall(self) -> bool:
        """True if the plugin finds entries by what they say."""
        return callable(getattr(self._store.plugin, "recall", None))

    async def read(self, key: str) -> bytes | None:
        """Return the value of a key; None if there is none."""
        value: bytes | None = await self._call("read", key, self._store.plugin.read(key))
        self._store.drain()
        self._record("read", key, len(value or b""), version=self._store.versions.of(key, value))
        return value

    async def write(self, key: str, value: bytes) -> None:
        """Set the value of a key."""
        await self._call("write", key, self._store.plugin.write(key, value))
        self._store.wrote(self._agent, key, value)

    async def cas(self, key: str, expected: bytes | None, new: bytes) -> bool:
        """Set the value of a key if it has the expected one, and return whether it had."""
        done = bool(await self._call("cas", key, self._store.plugin.cas(key, expected, new)))
        was = self._store.versions.of(key, expected)
        if done:
            self._store.wrote(self._agent, key, new, cas=True, was=was)
        else:
            self._store.drain()
            self._record("cas_failed", key, len(new), was=was)
        return done

    async def subscribe(self, key: str) -> AsyncIterator[bytes]:
        """Yield the values that are written to a key from now on."""
        async for value in self._store.values_of(key):
            self._record("notified", key, len(value), version=self._store.versions.of(key, value))
            yield value

    async def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[Any]:
        """Return the entries that fit a question best, best first: each has a key, a value and a score.

        Raises:
            UnsupportedError: The plugin has no recall.
        """
        if not self.can_recall:
            raise UnsupportedError("recall", "this memory plugin has none")
        hits: list[Any] = list(await self._call("recall", "", self._store.plugin.recall(query, k, min_score)))
        self._store.drain()
        asked = len(query.encode("utf-8"))
        if not hits:
            self._record("recalled", "", 0, rank=0, score=0.0, size_of_query=asked, version=0)
        for rank, hit in enumerate(hits, 1):
            version, score = self._store.versions.of(hit.key, hit.value), float(hit.score)
            size = len(hit.value)
            self._record("recalled", hit.key, size, rank=rank, score=score, size_of_query=asked, version=version)
        return hits

    async def forget(self, key: str) -> bool:
        """Remove a key, and return whether there was one.

        Raises:
            UnsupportedError: The plugin cannot forget.
        """
        if not callable(getattr(self._store.plugin, "forget", None)):
            raise UnsupportedError("forget", "this memory plugin has none")
        done = bool(await self._call("forget", key, self._store.plugin.forget(key)))
        self._store.drain()
        if not done and self._store.reports_removals and key in self._store.entries:
            self._record("not_forgotten", key, 0, version=self._store.entries[key][0])
        if done:
            version, _, size = self._store.entries.pop(key, (-1, 0.0, 0))
            self._record("forgotten", key, size, version=version)
        return done

    def stats(self) -> dict[str, int]:
        """Return the statistics of the plugin."""
        out: dict[str, int] = self._store.plugin.stats()
        self._store.drain()
        return out

    async def _call(self, name: str, key: str, work: Awaitable[T]) -> T:
        return await self._store.call(self._agent, name, key, work)

    def _record(self, kind: str, key: str, size: int, **fields: Any) -> None:
        self._store.versions.record(kind, self._agent, key, size, **fields)


def plugin_maker(
    layer: MemoryLayer, clock: Clock, given: Callable[..., Any] | None = None
) -> Callable[[str | None], Any]:
    """Return what makes an instance of the plugin of a layer, for all agents (None) or for one.

    Args:
        clock: The virtual clock, which the plugin gets if it takes one.
        given: The class to use in place of the one that the layer names.

    Raises:
        InvalidArgumentError: There is no such plugin, or it does not have an option.
    """
    kind = given
    if kind is None:
        try:
            kind = PluginRegistry().resolve("memory", layer.use)
        except KeyError as error:
            raise InvalidArgumentError(_PATH, layer.use, f"names no plugin: {error.args[0]}") from None
    signature = inspect.signature(kind)
    options: dict[str, Any] = dict(layer.options)
    _check_options(layer.use, options, signature.parameters)
    if "now_fn" in signature.parameters:
        options["now_fn"] = lambda: clock.now

    def make(agent: str | None) -> Any:
        # An agent's id comes first, unless an option has this position, too.
        takes_id = agent is not None and _binds(signature, agent, options)
        try:
            return kind(agent, **options) if takes_id else kind(**options)
        except InvalidArgumentError as error:
            path = f"{_PATH}.{error.args[0]}"
            raise InvalidArgumentError(path, options.get(error.args[0]), error.args[2]) from None

    return make


def _check_options(use: str, options: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]) -> None:
    any_name = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    named = [name for name, each in parameters.items() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    for name, value in options.items():
        if name == "ttl" and "now_fn" not in parameters:
            rule = f"cannot be used with {use}, which does not take the virtual clock"
            raise InvalidArgumentError(f"{_PATH}.{name}", value, rule)
        if name not in named and not any_name:
            raise InvalidArgumentError(f"{_PATH}.{name}", value, f"is not an option of the plugin {use}")


def _binds(signature: inspect.Signature, agent: str, options: Mapping[str, Any]) -> bool:
    try:
        signature.bind(agent, **options)
    except TypeError:
        return False
    return True
