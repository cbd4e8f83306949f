"""Garbage collection in a server, whose indexes live long: it must not stop all calls to look at them again and again.

Python looks for cycles that nothing reaches. Each full collection traverses all that is alive, while every thread
waits: with the indexes of 3,000 namespaces 0.3 s, with more of them more than a second. What survives a collection that
took long is exempted from the next ones. Indexes have no cycles, so those that are evicted are freed all the same.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

#: What survives a full collection that took longer is exempted, in seconds.
_LONG_S = 0.02
#: After this number of exemptions nothing is exempt for one collection: cycles among it may be garbage by now.
_MOST = 500


class Exemptions:
    """Exempts what survives long collections. To be registered among `gc.callbacks`.

    Args:
        clock: Returns the time in seconds.

    Attributes:
        count: How often survivors were exempted since everything was looked at.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.count = 0
        self._clock = clock
        self._began = 0.0

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        """Note the beginning or the end of a collection."""
        if phase == "start":
            self._began = self._clock()
        elif info["generation"] == 2 and self._clock() - self._began > _LONG_S:
            self.count += 1
            if self.count > _MOST:
                self.count = 0
                gc.unfreeze()
            else:
                gc.freeze()


def exempt_what_lives_long() -> None:
    """Exempt what is loaded, and from now on what survives long collections. Does nothing again."""
    gc.freeze()
    if not any(isinstance(each, Exemptions) for each in gc.callbacks):
        gc.callbacks.append(Exemptions())
