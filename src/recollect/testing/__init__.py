"""Tests for stores: public, so that stores of other people can be tested for the same promises.

    from recollect.testing import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self, tmp_path): ...

`StoreContract` tests the protocol; `memory_machine` compares a memory on a store with a simple model, including
restarts; `FaultyStore` fails at a chosen step. Needs the extra `recollect[testing]` (pytest and Hypothesis).
"""

from recollect.testing.contract import StoreContract, write
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
    "filters",
    "memory_machine",
    "memory_on",
    "records",
    "write",
]
