"""Access to the internals of a memory, for tests and benchmarks of Recollect itself."""

from __future__ import annotations

from recollect.engine.core import Core
from recollect.engine.engine import Engine
from recollect.memory.memory import Memory


def core_of(memory: Memory) -> Core:
    """Return the core of the engine that a memory uses in this process."""
    executor = memory._executor
    while not isinstance(executor, Engine):  # a wrapper, such as `Loopback`
        executor = executor.executor  # type: ignore[attr-defined]
    return executor.core
