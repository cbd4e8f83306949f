"""Stores of a factory under test, with their calls: the synchronous ones, or the asynchronous ones, run to their end.

A case is written once and runs in both modes, so that a store is tested through the calls that its users make.
"""

from __future__ import annotations

import asyncio
import inspect
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, TypeVar

from langgraph.store.base import BaseStore, Item, Op, SearchItem

#: Makes a store under test (see the package).
Factory: TypeAlias = Callable[..., Any]
#: Which calls of the stores are made.
Mode: TypeAlias = Literal["sync", "async"]
T = TypeVar("T")


class StoreCalls:
    """The calls of one store.

    Args:
        store: The store.
        run: Runs a coroutine of the store to its end; None for the synchronous calls.
    """

    def __init__(self, store: BaseStore, run: Callable[[Coroutine[Any, Any, Any]], Any] | None) -> None:
        self.store = store
        self._run = run

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if self._run is None:
            return getattr(self.store, name)(*args, **kwargs)
        return self._run(getattr(self.store, f"a{name}")(*args, **kwargs))

    def get(self, namespace: Sequence[str], key: str, **kwargs: Any) -> Item | None:
        """Get an item."""
        item: Item | None = self._call("get", namespace, key, **kwargs)
        return item

    def item(self, namespace: Sequence[str], key: str, **kwargs: Any) -> Item:
        """Get an item that is there."""
        item = self.get(namespace, key, **kwargs)
        assert item is not None, f"no item under {key!r} in {namespace}"
        return item

    def value(self, namespace: Sequence[str], key: str) -> dict[str, Any]:
        """Get the value of an item that is there."""
        value: dict[str, Any] = self.item(namespace, key).value
        return value

    def put(self, namespace: Sequence[str], key: str, value: Any, **kwargs: Any) -> None:
        """Put an item."""
        self._call("put", namespace, key, value, **kwargs)

    def delete(self, namespace: Sequence[str], key: str) -> None:
        """Delete an item."""
        self._call("delete", namespace, key)

    def search(self, prefix: Sequence[str], /, **kwargs: Any) -> list[SearchItem]:
        """Search for items."""
        found: list[SearchItem] = self._call("search", prefix, **kwargs)
        return found

    def keys(self, prefix: Sequence[str], /, **kwargs: Any) -> list[str]:
        """Search, and return the sorted keys."""
        return sorted(item.key for item in self.search(prefix, **kwargs))

    def list_namespaces(self, **kwargs: Any) -> list[tuple[str, ...]]:
        """List namespaces."""
        found: list[tuple[str, ...]] = self._call("list_namespaces", **kwargs)
        return found

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        """Execute operations."""
        results: list[Any] = self._call("batch", ops)
        return results


class Stores:
    """Makes the stores of one case, and ends them after it.

    Args:
        factory: Makes a store.
        mode: Which of its calls are made.
    """

    def __init__(self, factory: Factory, mode: Mode) -> None:
        self.factory = factory
        self.mode = mode
        self._stack = ExitStack()
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> Self:
        self._runner = self._stack.enter_context(asyncio.Runner())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, in the event loop of the case."""
        assert self._runner is not None, "used as a context manager"
        return self._runner.run(coroutine)

    def folder(self) -> str:
        """Return a new folder, which is removed after the case."""
        return self._stack.enter_context(tempfile.TemporaryDirectory())

    def one(self, **options: Any) -> StoreCalls:
        """Return a new store that lives until the case ends."""
        return self._stack.enter_context(self.opened(**options))

    def opened(self, **options: Any) -> _Opened:
        """Return a new store for a `with` block."""
        return _Opened(self, options)


class _Opened(AbstractContextManager[StoreCalls]):
    """A store, with whatever a factory returns: a store, or a context manager of either kind."""

    def __init__(self, stores: Stores, options: dict[str, Any]) -> None:
        self._stores = stores
        self._options = options
        self._stack = ExitStack()

    def __enter__(self) -> StoreCalls:
        stores = self._stores
        made = stores.factory(**self._options)
        if inspect.isawaitable(made):
            made = stores.run(_awaited(made))
        if isinstance(made, BaseStore):
            store = made
        elif isinstance(made, AbstractAsyncContextManager):
            several = AsyncExitStack()
            store = stores.run(several.enter_async_context(made))
            self._stack.callback(lambda: stores.run(several.aclose()))
        else:
            store = self._stack.enter_context(made)
        return StoreCalls(store, stores.run if stores.mode == "async" else None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


async def _awaited(made: Any) -> Any:
    return await made
