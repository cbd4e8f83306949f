"""The tasks of the built-in scenarios: what their agents do. Each has a module."""

from __future__ import annotations

from importlib import import_module

from recollect.errors import InvalidArgumentError
from recollect.sim.tasks.base import Chat, Paced, Seat, Task

__all__ = ["TASKS", "Chat", "Paced", "Seat", "Task", "task_of"]
TASKS = (
    "chat",
    "concurrent_writers",
    "eviction_storm",
    "expiration_storm",
    "marketplace",
    "memory_swarm",
    "poisoned_recall",
)
#: Tasks of NEST's own scenarios, which use no memory, so that there is nothing to simulate here.
_OF_NEST = ("auction", "consensus", "reputation", "supply_chain", "voting")


def task_of(name: str) -> Task:
    """Return a task by its name.

    Raises:
        InvalidArgumentError: There is none.
    """
    if name not in TASKS:
        rule = f"must be one of {', '.join(TASKS)}"
        if name in _OF_NEST:
            rule += "; it is a task of NEST, in which `nest run` runs it with a memory of recollect.compat.nest by name"
        raise InvalidArgumentError("task.type", name, rule)
    found: Task = import_module(f"recollect.sim.tasks.{name}").TASK
    return found
