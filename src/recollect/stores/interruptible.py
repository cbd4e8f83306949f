"""`with` blocks whose end can be detected from outside, however they ended.

An interruption (Ctrl-C) can strike between any two steps of a thread, including the cleanup at the end of a block. What
other threads wait for must therefore not depend on that cleanup alone.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
#: A handle of a block: a weak reference to its generator.
Steps: TypeAlias = "weakref.ref[GeneratorType[Any, Any, Any]]"


def watched(steps: Generator[T, None, None]) -> tuple[AbstractContextManager[T], Steps]:
    """Return the context manager of a generator, and the handle with which `ended` detects the end of its block."""
    assert isinstance(steps, GeneratorType)
    return _block(steps), weakref.ref(steps)


@contextmanager
def _block(steps: Generator[T, None, None]) -> Generator[T, None, None]:
    return steps  # created by the caller, so that there is an object to watch


def ended(steps: Steps) -> bool:
    """Return whether the block is over, however it ended."""
    generator = steps()
    return generator is None or generator.gi_frame is None
