"""Tests for stores: public, so that other store implementations can be tested for the same promises.

    from recollect.testing import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self, tmp_path): ...

`StoreContract` tests the protocol; `memory_machine` compares a memory on a store with a simple model, including
restarts, and `branch_machine` its branches; `FaultyStore` fails at a chosen step. These need the extra
`recollect[testing]` (pytest and Hypothesis); `Loopback` does not. Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.testing.branching import branch_machine
    from recollect.testing.commits import write
    from recollect.testing.contract import StoreContract
    from recollect.testing.faults import FaultyStore, SteppedStore
    from recollect.testing.loopback import Loopback
    from recollect.testing.machine import TickingClock, memory_machine, memory_on
    from recollect.testing.strategies import filters, records

__all__ = [
    "FaultyStore",
    "Loopback",
    "SteppedStore",
    "StoreContract",
    "TickingClock",
    "branch_machine",
    "filters",
    "memory_machine",
    "memory_on",
    "records",
    "write",
]

#: Module -> the public names that it defines.
_HOMES = {
    "branching": ("branch_machine",),
    "commits": ("write",),
    "contract": ("StoreContract",),
    "faults": ("FaultyStore", "SteppedStore"),
    "loopback": ("Loopback",),
    "machine": ("TickingClock", "memory_machine", "memory_on"),
    "strategies": ("filters", "records"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recollect.errors import MissingExtraError

    try:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in ("pytest", "hypothesis"):
            raise MissingExtraError(f"recollect.testing.{name}", error.name, "testing") from error
        raise
