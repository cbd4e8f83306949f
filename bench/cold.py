"""The first recall of a memory on PostgreSQL by a new node, in units of a warm recall of the same memory.

The node has the index in a file of its cache folder, or loads it from the table that machines share, or builds it from
the ledger. The three alternate in one process, the server as in `bench.postgres`. Opening the store is not counted.
"""

from __future__ import annotations

import logging
import shutil
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import cache_folder
from bench.cost import questions, turns
from bench.measuring import first_core, milliseconds, told, versions
from recollect.testing.postgres import PostgresServer, create_store

SIZES = (1_000, 10_000, 100_000)
BATCH, WARM, ROUNDS = 500, 200, 7


def measured(records: int) -> dict[str, Any]:
    """Return the figures of memories of up to this number of records."""
    logging.getLogger("recollect").setLevel(logging.ERROR)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache_folder())))
        with first_core():
            server = PostgresServer({"fsync": "on", "shared_buffers": "512MB"})
            stack.callback(server.stop)
            server.start()
        address = f"{create_store(server.dsn)}&cache={folder / 'cache'}"
        sizes = [size for size in SIZES if size <= records]
        return {
            "command": "cold",
            **{str(size): _firsts(address, server, folder / "cache", size) for size in sizes},
            "versions": {**versions(), "postgresql": str(server.execute("SHOW server_version")[0][0])},
        }


def _firsts(address: str, server: PostgresServer, cache: Path, count: int) -> dict[str, Any]:
    name, given, asked = f"of {count}", turns(count), questions(WARM)
    with told(f"writing {count} records"), recollect.open(address, name, embedder="none") as memory:
        for first in range(0, count, BATCH):
            memory.remember_all(given[first : first + BATCH])

    def first_ms() -> float:
        with recollect.open(address, name, embedder="none") as memory:
            memory.count()
            return milliseconds(memory.recall, asked[0])

    def without_folder() -> None:
        shutil.rmtree(cache, ignore_errors=True)

    def without_both() -> None:
        without_folder()
        server.execute("DELETE FROM recollect.segments")

    # Each leaves what the next one needs: an index that was built is shared, and one that was loaded is saved.
    kinds: dict[str, Callable[[], None]] = {"built": without_both, "table": without_folder, "file": lambda: None}
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS if count < SIZES[-1] else 3):
        for kind, prepare in kinds.items():
            prepare()
            taken[kind].append(first_ms())
    with recollect.open(address, name, embedder="none") as memory:
        memory.recall(asked[0])
        warm = statistics.median(milliseconds(memory.recall, each) for each in asked)
    medians = {kind: statistics.median(times) for kind, times in taken.items()}
    size = "SELECT coalesce(sum(length(body)), 0)::bigint, count(*) FROM recollect.segments"
    nbytes, parts = server.execute(size)[0]
    return {
        "warm_ms": warm,
        **{f"{kind}_ms": each for kind, each in medians.items()},
        **{f"{kind}_in_warm_recalls": each / warm for kind, each in medians.items()},
        "shared_bytes_a_record": int(str(nbytes)) / count if count >= SIZES[0] else 0.0,
        "parts": parts,
    }
