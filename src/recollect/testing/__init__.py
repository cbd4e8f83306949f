"""What stores are tested with: public, so that other people's stores can be held to the same promises.

    from recollect.testing import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self, tmp_path): ...

`StoreContract` is the protocol as tests; `memory_machine` runs a memory on a store against an obvious model, restarts
included; `FaultyStore` fails at a chosen step. Needs the extra `recollect[testing]` (pytest and Hypothesis).
"""

from recollect.testing.contract import StoreContract, write
from recollect.testing.faults import FaultyStore, SteppedStore
from recollect.testing.machine import TickingClock, memory_machine, memory_on
from recollect.testing.strategies import filters, records

__all__ = [
    "FaultyStore",
    "SteppedStore",
    "StoreContract",
    "TickingClock",
    "filters",
    "memory_machine",
    "memory_on",
    "records",
    "write",
]
