"""The indexes in the memory of a node, and how long its recalls wait: the rules that the simulation replays.

The rule of the engine (`engine.follower.Budget`): the least recently used index is evicted until the sum of all is
within the budget, and one always stays. It is repeated here without locks and values, because a simulation has tens of
millions of uses; a test compares the two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


class Cache:
    """Keys with sizes, the most recently used one last.

    Args:
        budget_bytes: Limit of the sum of the sizes. The most recently used key stays, whatever its size.
        sizes: The size of each key in bytes; keys are numbers from 0.
    """

    def __init__(self, budget_bytes: int, sizes: Sequence[int]) -> None:
        self._budget_bytes, self._sizes = budget_bytes, sizes
        self._entries: OrderedDict[int, None] = OrderedDict()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def keys(self) -> NDArray[np.int32]:
        """The keys, the least recently used first."""
        return np.fromiter(self._entries, np.int32, len(self._entries))

    def use(self, keys: Sequence[int]) -> NDArray[np.bool_]:
        """Use keys in order, and return for each whether it was missing, so that it had to be loaded.

        Cost: about a third of a microsecond for each key.
        """
        entries, sizes, budget, nbytes = self._entries, self._sizes, self._budget_bytes, self.nbytes
        missed = bytearray(len(keys))
        for at, key in enumerate(keys):
            if key in entries:
                entries.move_to_end(key)
                continue
            missed[at] = 1
            entries[key] = None
            nbytes += sizes[key]
            while nbytes > budget and len(entries) > 1:
                evicted, _ = entries.popitem(last=False)
                nbytes -= sizes[evicted]
        self.nbytes = nbytes
        return np.frombuffer(missed, np.bool_)


def finished(arrivals: Times, services: Times, free_at: float) -> Times:
    """Return when each of the calls is finished that one core serves in the order in which they arrive.

    Args:
        arrivals: When each arrives, in seconds, rising.
        services: How long each takes, in seconds.
        free_at: When the core has finished what was before.

    >>> finished(np.array([0.0, 1.0, 5.0]), np.array([2.0, 2.0, 1.0]), 0.0).tolist()
    [2.0, 4.0, 6.0]
    """
    taken = np.cumsum(services)
    # One that waits for no other begins at its arrival, and all after it that wait follow without a gap.
    begun = np.maximum.accumulate(np.maximum(arrivals - (taken - services), free_at))
    return np.asarray(begun + taken, np.float64)
