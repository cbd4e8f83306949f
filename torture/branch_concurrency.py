"""Concurrency on branches: processes and threads branch off, write, merge into main, drop, and erase on one store.

Each worker has branches of its own and merges them into main, where all meet: they change one record, each another key
of its metadata, so a merge that overlooks another one loses a key. One worker erases what has reached main. At the end,
main has what was merged and not erased, no branch has what was erased, and every branch that is left has its records.
The store is a file, or on a server of PostgreSQL (`on_postgres`).
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from recollect.errors import RecollectError
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from torture.concurrency import LONGEST_S, TIMEOUT_S, forked
from torture.trials import Trial

PROCESSES, THREADS = 4, 2
#: Branches of each worker, one after the other, records in each, and erasures of the one that erases.
BRANCHES, RECORDS, ERASURES = 4, 3, 12
SHARED = "shared"


class Worker:
    """One thread of one process."""

    def __init__(self, memory: Memory, name: str, seed: int) -> None:
        self._memory = memory
        self._name = name
        self._rng = random.Random(seed)
        self.lines: list[dict[str, str]] = []

    def run(self) -> None:
        try:
            for number in range(BRANCHES):
                self._branch_off(f"{self._name}-{number}", number)
        except RecollectError as error:
            self._note("error", f"{type(error).__name__}: {error}")

    def _branch_off(self, name: str, number: int) -> None:
        branch = self._memory.branch(name)
        self._note("created", name)
        for each in range(RECORDS):
            branch.remember(f"{name} has what {self._name} wrote as {each}", id=f"{name}-{each}")
            self._note("written", f"{name}-{each}")
        shared = branch.get(SHARED)
        assert shared is not None
        branch.update(SHARED, metadata={**shared.metadata, self._name: number})
        if self._rng.random() < 0.5:
            branch.merge_branch("main", on_conflict="ours")
        merged = self._memory.merge_branch(name, on_conflict="theirs")
        if merged:
            self._note("merged", name)
        if self._rng.random() < 0.5:
            self._memory.drop_branch(name)
            self._note("dropped", name)

    def erase(self) -> None:
        """Erase what has reached main."""
        try:
            done = set[str]()
            for _ in range(ERASURES * 50):
                there = [record.id for record in self._memory.find(limit=None) if record.id not in {SHARED, *done}]
                if there:
                    record_id = self._rng.choice(there)
                    self._memory.erase(record_id, redact=self._rng.random() < 0.5)
                    self._note("erased", record_id)
                    done.add(record_id)
                if len(done) == ERASURES:
                    return
        except RecollectError as error:
            self._note("error", f"{type(error).__name__}: {error}")

    def _note(self, what: str, value: str) -> None:
        self.lines.append({"what": what, "value": value})


def _process(path: str, number: int, seed: int, out: Path) -> None:
    """What a child does: open the store, let all threads run, write down what they did."""
    signal.alarm(LONGEST_S)
    with open_memory(path, timeout=TIMEOUT_S, embedder="none") as memory:
        workers = [Worker(memory, f"w{number}{thread}", seed * 1000 + thread) for thread in range(THREADS)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        if number == 0:
            workers.append(Worker(memory, "eraser", seed))
            threads.append(threading.Thread(target=workers[-1].erase))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    out.write_text("\n".join(json.dumps(line) for worker in workers for line in worker.lines), encoding="utf-8")


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """One run on a file, looked at in several ways."""
    yield from _trials_on(str(folder / "shared.db"), seed, folder)


def on_postgres(seed: int, folder: Path) -> Iterator[Trial]:
    """One run on a server."""
    from recollect.testing.postgres import PostgresServer, create_store

    server = PostgresServer({"max_connections": "200"}).start()
    try:
        yield from _trials_on(f"{create_store(server.dsn)}&cache={folder}", seed, folder)
    finally:
        server.stop()


def _trials_on(path: str, seed: int, folder: Path) -> Iterator[Trial]:
    with open_memory(path, embedder="none") as memory:
        memory.remember("what all of them change", id=SHARED)
    outs = [folder / f"told-{number}.jsonl" for number in range(PROCESSES)]
    pids = [forked(partial(_process, path, number, seed + number, out)) for number, out in enumerate(outs)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    yield Trial(seed, "all processes end", "" if not any(codes) else "a process failed")
    lines = [json.loads(line) for out in outs if out.exists() for line in out.read_text(encoding="utf-8").splitlines()]
    done = {what: [line["value"] for line in lines if line["what"] == what] for what in _WHATS}
    yield Trial(seed, "nobody is refused", done["error"][0] if done["error"] else "")
    with open_memory(path, embedder="none") as memory:
        for where, problem in problems(memory, done):
            yield Trial(seed, where, problem)


_WHATS = ("error", "created", "written", "merged", "dropped", "erased")


def problems(memory: Memory, done: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield each property of the end of a run, and in which way it does not hold; "" if it does.

    Args:
        memory: The store.
        done: What the workers were told to be done, by kind.
    """
    erased, merged = set(done["erased"]), set(done["merged"])
    expected = {each for each in done["written"] if each.rpartition("-")[0] in merged} - erased | {SHARED}
    found = {record.id for record in memory.find(limit=None)}
    yield "main has what was merged", "" if found == expected else f"it differs in {sorted(found ^ expected)}"
    shared = memory.get(SHARED)
    last: dict[str, int] = {}
    for name in done["merged"]:
        worker, _, number = name.rpartition("-")
        last[worker] = max(last.get(worker, 0), int(number))
    given = {} if shared is None else dict(shared.metadata)
    yield "no key is lost by a merge", "" if given == last else f"{given}, and not {last}"
    left = {each.name for each in memory.branches()} - {"main"}
    created = set(done["created"]) - set(done["dropped"])
    yield "the branches that were not dropped are there", "" if left == created else f"{sorted(left ^ created)}"
    problem = ""
    for name in left:
        there = {record.id for record in memory.on(name).find(limit=None)}
        own = {each for each in done["written"] if each.rpartition("-")[0] == name}
        if lost := own - erased - there:
            problem = f"branch {name} has lost {sorted(lost)}"
        if back := there & erased:
            problem = f"branch {name} has {sorted(back)}, which was erased"
    yield "each branch has its records, and nothing that was erased", problem
    yield "check", "; ".join(memory.check())
