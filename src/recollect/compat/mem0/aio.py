"""`AsyncMemory` with the names of mem0."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Self, TypeVar

import recollect
from recollect.compat.mem0.memory import Extractor, Memory
from recollect.compat.opening import Place
from recollect.compat.threads import completed

T = TypeVar("T")


def _awaited(function: Callable[..., T]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Return a call of `Memory` as a coroutine of `AsyncMemory`."""

    @wraps(function)
    async def call(self: AsyncMemory, *args: Any, **kwargs: Any) -> T:
        return await completed(function, self._memory, *args, **kwargs)

    return call


class AsyncMemory:
    """`Memory` for asyncio, with the same arguments, calls, results and errors.

    The calls run in threads. If the caller of a write is cancelled, the write is completed first.
    """

    def __init__(self, config: Any = None, *, memory: Place | None = None, extractor: Extractor | None = None) -> None:
        self._memory = Memory(config, memory=memory, extractor=extractor)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **options: Any) -> Self:
        """Return a memory with a configuration. See `Memory.from_config`."""
        return cls(config_dict, **options)

    @property
    def memory(self) -> recollect.Memory:
        """The memory with all its calls."""
        return self._memory.memory

    add = _awaited(Memory.add)
    update = _awaited(Memory.update)
    delete = _awaited(Memory.delete)
    delete_all = _awaited(Memory.delete_all)
    reset = _awaited(Memory.reset)
    get = _awaited(Memory.get)
    get_all = _awaited(Memory.get_all)
    search = _awaited(Memory.search)
    history = _awaited(Memory.history)
    chat = _awaited(Memory.chat)

    def close(self) -> None:
        """Close the memory. See `Memory.close`."""
        self._memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
