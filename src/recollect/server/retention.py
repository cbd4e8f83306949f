"""The hourly task of a server: it removes what has expired and what is due by the rules of retention.

It concerns the namespaces that have rules. Each step is a short commit, so clients hardly wait for it, and it ends
between two steps when the server stops.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recollect.errors import RecollectError
from recollect.records.names import MAIN
from recollect.server.served_memory import ServedMemory

_log = logging.getLogger("recollect.server")
#: Seconds from the start of the server to the first run: a server that is often started again has a run, too.
FIRST_S = 60.0
#: Seconds between two runs.
INTERVAL_S = 3600.0
#: Maximum number of records that one step removes.
_AT_ONCE = 1000


def sweep_all(served: ServedMemory, stops: Callable[[], bool] = lambda: False) -> dict[str, int]:
    """Sweep the branches of each namespace that has rules, and return how many records were removed, by namespace.

    Those of copies of the store are left out: they go on with what the copies have.

    Args:
        served: The memory of the server. Nothing is done while there is no store.
        stops: Returns whether to end before the next step.
    """
    if not served.is_open or served.read_only:
        return {}
    memory = served.writing()
    removed: dict[str, int] = {}
    for name in memory.namespaces():
        main = memory if name == memory.name else memory.namespace(name)
        branches = [each.name for each in main.branches() if each.copy_of is None] if main.retention() else []
        for branch in branches:
            each, count = main if branch == MAIN else main.on(branch), _AT_ONCE
            while count == _AT_ONCE and not stops():
                count = each.sweep(_AT_ONCE)
                removed[name] = removed.get(name, 0) + count
    return {name: count for name, count in removed.items() if count}


@contextmanager
def hourly(served: ServedMemory, first_s: float = FIRST_S, interval_s: float = INTERVAL_S) -> Iterator[None]:
    """Sweep once an hour, in a thread, while the block runs. An error is logged, and the next run tries again."""
    stopped = threading.Event()

    def run() -> None:
        wait_s = first_s
        while not stopped.wait(wait_s):
            try:
                removed = sum(sweep_all(served, stopped.is_set).values())
            except RecollectError as error:
                served.failed(error)  # a store that was replaced is opened again
                _log.warning("the rules of retention were not applied now: %s", error)
            else:
                if removed:
                    _log.info("retention: %d records removed", removed)
            wait_s = interval_s

    thread = threading.Thread(target=run, name="recollect-retention", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
