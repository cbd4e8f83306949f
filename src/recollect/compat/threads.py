"""Calls of a memory from coroutines of any event loop, for adapters: they run in threads and are completed."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def awaited(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return a function or a method as a coroutine function, which calls it as `completed` does."""

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return await completed(function, *args, **kwargs)

    return call


async def completed(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread and return its result. If the caller is cancelled, wait for its end first.

    So what a cancelled caller started has happened as a whole, or not at all, when it goes on.
    """
    call = partial(contextvars.copy_context().run, partial(function, *args, **kwargs))
    future = asyncio.get_running_loop().run_in_executor(None, call)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return future.result()
    future.exception()  # the caller goes on without it: asyncio need not report it as lost
    raise cancelled
