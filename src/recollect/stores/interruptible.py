"""Blocks of `with` whose end can be told from outside, however they ended.

An interruption (Ctrl-C) can strike between any two steps of a thread, those included by which a block tidies up behind
itself. So what others wait for, or depend on, is not told by what the block does at its end alone.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
#: What a thread does in a block.
Steps: TypeAlias = "weakref.ref[GeneratorType[Any, Any, Any]]"


def watched(steps: Generator[T, None, None]) -> tuple[AbstractContextManager[T], Steps]:
    """The context manager of a generator, and what tells whether its block is over."""
    assert isinstance(steps, GeneratorType)
    return _block(steps), weakref.ref(steps)


@contextmanager
def _block(steps: Generator[T, None, None]) -> Generator[T, None, None]:
    return steps  # made elsewhere, so that there is something to watch


def ended(steps: Steps) -> bool:
    """Whether the block is over, however it ended."""
    generator = steps()
    return generator is None or generator.gi_frame is None
