"""Calls that consist of several operations, and are one call for what observes them, such as traces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from recollect.engine.executor import whole_call
from recollect.engine.scope import Place

#: A batch, which has a place of its own, takes any.
_OF_BATCH = Place()
C = TypeVar("C", bound=Callable[..., Any])


def as_a_whole(call: C) -> C:
    """Let a method, whose first argument is a question, be one call for what observes calls."""

    @functools.wraps(call)
    def observed(self: Any, question: str, *args: Any, **kwargs: Any) -> Any:
        with whole_call(self._executor, call.__name__, question, getattr(self, "_place", _OF_BATCH)) as note:
            result = call(self, question, *args, **kwargs)
            note(result)
            return result

    return observed  # type: ignore[return-value]
