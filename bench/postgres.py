"""The PostgreSQL store beside the SQLite store: what both do, alternating, in one process and on the same disk.

The server is the one of the tests, with fsync on, reached over a socket; it runs on the first core, the measuring
process on the last one. Each ratio is that of two medians. Round trips and bytes are exact counts.
"""

from __future__ import annotations

import logging
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import cache_folder
from bench.cost import questions, turns
from bench.measuring import first_core, milliseconds, versions
from recollect.memory import Memory
from recollect.testing.loopback import core_of
from recollect.testing.postgres import PostgresServer, create_store

BATCH = 500
THREADS, SECONDS = 8, 4.0
_KINDS = ("sqlite", "postgresql")
Addresses = dict[str, str]
Handles = dict[str, Memory]


def measured(records: int, small: int = 2200, seconds: float = SECONDS) -> dict[str, Any]:
    """Return the figures of both stores, and their ratios.

    Args:
        records: How many turns the larger stores have.
        small: How many turns the smaller stores have.
        seconds: How long the threads write, in seconds.
    """
    logging.getLogger("recollect").setLevel(logging.ERROR)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache_folder())))
        with first_core():
            server = PostgresServer({"fsync": "on", "shared_buffers": "512MB"})
            stack.callback(server.stop)
            server.start()
        addresses = {kind: _addresses(kind, server, folder) for kind in ("small", "large")}
        for kind, count in (("small", small), ("large", records)):
            _fill(addresses[kind], count)
        bytes_ = _bytes_a_record(addresses["large"], server, "large", records)
        return {
            "command": "postgres",
            "records": records,
            "round trips": _round_trips(addresses["small"]["postgresql"]),
            f"recall at {small}": _recalls(addresses["small"]),
            f"recall at {records}": _recalls(addresses["large"]),
            "get": _gets(addresses["large"]),
            "durable write": _writes(addresses["large"]),
            "recall after commits of another node": _catching_up(addresses["large"]),
            "first recall without files, and with them": _firsts(addresses["large"]),
            f"{THREADS} threads": _threads(addresses["small"], seconds),
            "bytes a record": bytes_,
            "versions": {**versions(), "postgresql": str(server.execute("SHOW server_version")[0][0])},
        }


def _addresses(name: str, server: PostgresServer, folder: Path) -> Addresses:
    return {
        "sqlite": str(folder / f"{name}.db"),
        "postgresql": f"{create_store(server.dsn, name)}&cache={folder / name}",
    }


def _opened(stack: ExitStack, addresses: Addresses) -> Handles:
    return {kind: stack.enter_context(recollect.open(addresses[kind], embedder="none")) for kind in _KINDS}


def _fill(addresses: Addresses, count: int) -> None:
    """Write turns in batches, and let each store write its files of derived data."""
    given = turns(count)
    with ExitStack() as stack:
        for memory in _opened(stack, addresses).values():
            for first in range(0, count, BATCH):
                memory.remember_all(given[first : first + BATCH])
            memory.recall(questions(1)[0])


def _compared(handles: Handles, call: Callable[[Memory, int], object], rounds: int) -> dict[str, Any]:
    """Call each store in turn, and return the medians and their ratio."""
    taken: dict[str, list[float]] = {kind: [] for kind in handles}
    for number in range(-3, rounds):  # the first calls are not counted
        for kind, memory in handles.items():
            took = milliseconds(call, memory, number)
            if number >= 0:
                taken[kind].append(took)
    return _ratio(taken)


def _ratio(taken: dict[str, list[float]]) -> dict[str, float]:
    medians = {kind: statistics.median(times) for kind, times in taken.items()}
    return {
        **{f"{kind}_ms": median for kind, median in medians.items()},
        "ratio": medians["postgresql"] / medians["sqlite"],
    }


def _recalls(addresses: Addresses) -> dict[str, Any]:
    asked = questions(203)
    with ExitStack() as stack:
        return _compared(_opened(stack, addresses), lambda memory, at: memory.recall(asked[at + 3]), 200)


def _gets(addresses: Addresses) -> dict[str, Any]:
    with ExitStack() as stack:
        handles = _opened(stack, addresses)
        ids = {memory: [record.id for record in memory.find(limit=250)] for memory in handles.values()}
        return _compared(handles, lambda memory, at: memory.get(ids[memory][at]), 200)


def _writes(addresses: Addresses) -> dict[str, Any]:
    with ExitStack() as stack:
        handles = _opened(stack, addresses)
        return _compared(handles, lambda memory, at: memory.remember(f"A single note, number {at}"), 200)


def _catching_up(addresses: Addresses) -> dict[str, Any]:
    """Recall after another node has written; what a store did before is done by both."""
    asked = questions(203)
    out = {}
    with ExitStack() as stack:
        writers, readers = _opened(stack, addresses), _opened(stack, addresses)
        for commits, rounds in ((1, 60), (10, 30), (100, 8)):
            taken: dict[str, list[float]] = {kind: [] for kind in readers}
            for at in range(rounds):
                for kind, writer in writers.items():
                    for number in range(commits):
                        writer.remember(f"Note {number} of round {at} after {commits} commits")
                    taken[kind].append(milliseconds(readers[kind].recall, asked[at]))
            traffic = core_of(readers["postgresql"]).store.traffic  # type: ignore[attr-defined]
            writers["postgresql"].remember(f"One more after {commits}")
            before = traffic.round_trips
            readers["postgresql"].recall(asked[0])
            out[str(commits)] = {**_ratio(taken), "round_trips_after_one": traffic.round_trips - before}
    return out


def _firsts(addresses: Addresses, rounds: int = 3) -> dict[str, Any]:
    """Time from opening to the first answer."""
    question = questions(1)[0]
    out = {}

    def first(kind: str) -> float:
        began = time.perf_counter()
        with recollect.open(addresses[kind], embedder="none") as memory:
            memory.recall(question)
            return (time.perf_counter() - began) * 1000

    for name in ("built", "loaded"):
        taken: dict[str, list[float]] = {kind: [] for kind in _KINDS}
        for _ in range(rounds if name == "built" else 3 * rounds):
            for kind in _KINDS:
                if name == "built":
                    _forget_files(addresses[kind])
                taken[kind].append(first(kind))
        out[name] = _ratio(taken)
    return out


def _forget_files(address: str) -> None:
    """Delete the derived data of a store."""
    shutil.rmtree(address.partition("&cache=")[2] or f"{address}.index")


def _threads(addresses: Addresses, seconds: float) -> dict[str, Any]:
    """Durable writes a second to one memory, of one thread and of several."""
    out: dict[str, Any] = {}
    with ExitStack() as stack:
        for kind, memory in _opened(stack, addresses).items():
            rates = [_rate(memory, threads, seconds) for threads in (1, THREADS, 1, THREADS)]
            one, many = rates[0] + rates[2], rates[1] + rates[3]
            out[kind] = {"one_thread_per_s": one / 2, "threads_per_s": many / 2, "ratio": many / one}
    return out


def _rate(memory: Memory, threads: int, seconds: float) -> float:
    until = time.perf_counter() + seconds
    counts = [0] * threads

    def write(thread: int) -> None:
        while time.perf_counter() < until:
            memory.remember(f"Note {counts[thread]} of thread {thread} of {threads}")
            counts[thread] += 1

    running = [threading.Thread(target=write, args=(thread,)) for thread in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    return sum(counts) / seconds


def _bytes_a_record(addresses: Addresses, server: PostgresServer, schema: str, records: int) -> dict[str, Any]:
    """The sizes of the stores without derived data: as they were written, and compacted."""
    size = f"SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_stat_user_tables WHERE schemaname = '{schema}'"

    def sizes() -> dict[str, float]:
        found = {
            "sqlite": Path(addresses["sqlite"]).stat().st_size / records,
            "postgresql": int(str(server.execute(size)[0][0])) / records,
        }
        return {**found, "ratio": found["postgresql"] / found["sqlite"]}

    written = sizes()
    for (table,) in server.execute(f"SELECT relname FROM pg_stat_user_tables WHERE schemaname = '{schema}'"):
        server.execute(f"VACUUM FULL {schema}.{table}")
    with recollect.open(addresses["sqlite"], embedder="none") as memory:
        memory.compact()
    return {"as written": written, "compacted": sizes()}


def _round_trips(address: str) -> dict[str, int]:
    """How often a call waits for the server, once the store is warm."""
    with recollect.open(address, embedder="none") as memory:
        traffic = core_of(memory).store.traffic  # type: ignore[attr-defined]

        def trips(call: Callable[[], object]) -> int:
            call()
            before = traffic.round_trips
            call()
            return int(traffic.round_trips - before)

        asked = questions(1)[0]
        record = memory.remember("A note that is read again")
        talk = [{"content": f"Turn {at}", "kind": "conversation", "conversation": "c"} for at in range(20)]
        return {
            "recall": trips(lambda: memory.recall(asked)),
            "write": trips(lambda: memory.remember("A single note")),
            "batch of 100": trips(lambda: memory.remember_all([f"Note {at}" for at in range(100)])),
            "20 turns": trips(lambda: memory.remember_all(talk)),
            "get": trips(lambda: memory.get(record.id)),
            "log of 20": trips(lambda: list(memory.log(limit=20))),
        }
