"""Base of validators: a validator sees the events of a trace in order, collects faults, and gives a verdict."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from recollect.sim.validators.events import TraceEvent
from recollect.sim.validators.history import MemoryHistory

#: Maximum number of faults that a detail names.
_NAMED = 3


class Validation(NamedTuple):
    """The verdict of a validator.

    Attributes:
        name: The name of the validator.
        passed: Whether the trace shows nothing that is against it.
        detail: What was checked, with the bound; or the first faults and how many there are.
    """

    name: str
    passed: bool
    detail: str


class TraceCheck:
    """A validator at work on one trace. Subclasses say what they see, and what they have checked."""

    name: ClassVar[str]

    def __init__(self, history: MemoryHistory) -> None:
        self.history = history
        self._faults: list[str] = []
        self._count = 0

    def see(self, event: TraceEvent) -> None:
        """Look at an event. The history does not contain it yet."""
        raise NotImplementedError

    def end(self) -> None:
        """Look back at the whole trace."""

    def checked(self) -> str:
        """Return what was checked, for the detail of a trace that passes."""
        raise NotImplementedError

    def fault(self, text: str) -> None:
        """Note a fault."""
        self._count += 1
        if self._count <= _NAMED:
            self._faults.append(text)

    def verdict(self) -> Validation:
        """Return the verdict, after the end."""
        if not self._count:
            return Validation(self.name, True, self.checked())
        more = self._count - len(self._faults)
        return Validation(self.name, False, "; ".join(self._faults) + (f"; and {more} more" if more else ""))
