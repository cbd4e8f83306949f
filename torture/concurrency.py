"""Concurrency: processes and threads write, update on conditions, read and recall on one store, and log their results
and times. The store is a file, or on a server of PostgreSQL (`on_postgres`).

The history of each record must be linearizable, with recall as a read like any other, also for clients that leave
exports and calls half-way; counters incremented on condition must have the sum of the increments; two records that are
always written together must never be seen apart; no call may fail because the store is locked; and the WAL, which a
reader that stays for the whole run keeps from being restarted, must be short again soon after. Processes are forked, so
no other threads may run when a trial begins.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from recollect import filters as f
from recollect.engine import bulk
from recollect.errors import ConflictError, RecollectError
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.records.record import Record
from recollect.stores.sqlite.checkpoints import LONG_BYTES
from recollect.testing.loopback import core_of
from torture.linearizability import Call, linearizable
from torture.trials import Trial

PROCESSES, THREADS = 8, 8
#: Calls of each thread.
CALLS = 30
REGISTERS = [f"register{number}" for number in range(8)]
COUNTERS = [f"counter{number}" for number in range(2)]
PAIR = ("left", "right")
#: A conversation that takes several commits, stored by so many processes at once. It says the same now and then.
CHAT = [f"turn {number % 300}" for number in range(800)]
#: How many turns are a commit then: many commits, so that those of one process come between those of another.
CHAT_COMMIT = 40
TELLERS = 2
#: How often one thread reads a counter before it raises it: far more often than the others together write it meanwhile.
MOST_TRIES = 1000
#: How long a writer waits for others before it is told that the store is busy. (64 share two processors here.)
TIMEOUT_S = 120.0
#: How long a process may take, in seconds: one whose calls never end is a failure, too.
LONGEST_S = 300


class Worker:
    """One thread of one process."""

    def __init__(self, memory: Memory, name: str, seed: int) -> None:
        self._memory = memory
        self._name = name
        self._rng = random.Random(seed)
        self.lines: list[dict[str, object]] = []
        self._known: dict[str, str] = {}  # the hash that a register was last seen with
        self._left: list[object] = []

    def run(self) -> None:
        try:
            for number in range(CALLS):
                self._call(number)
        except RecollectError as error:
            self.lines.append({"error": f"{type(error).__name__}: {error}"})

    def _call(self, number: int) -> None:
        register = self._rng.choice(REGISTERS)
        match self._rng.randrange(22):
            case 0:
                self._raise_counter(self._rng.choice(COUNTERS))
            case 1:
                with self._memory.batch() as batch:
                    for each in PAIR:
                        batch.update(each, content=f"{self._name}-{number}")
            case 2:
                seen = {record.content for record in self._memory.find(f.id(*PAIR))}
                if len(seen) != 1:
                    self.lines.append({"error": f"a commit was seen in half: {seen}"})
            case 3 | 4 | 5 | 6:
                self._recall(register)
            case 7 | 8 | 9 | 10:
                begun = time.monotonic_ns()
                record = self._memory.get(register)
                self._note(register, begun, found="absent" if record is None else record.hash)
            case 11 | 12 | 13 if register in self._known:
                self._write(register, number, self._known[register])
            case 20 | 21:
                self._leave()
            case _:
                self._write(register, number, None)

    def _recall(self, register: str) -> None:
        begun = time.monotonic_ns()
        hits = self._memory.recall(register, k=3)
        found = next((hit.record for hit in hits if hit.record.id == register), None)
        self._note(register, begun, found="absent" if found is None else found.hash)

    def _leave(self) -> None:
        """Leave an export half-way and a call by an exception, and keep both: later reads must be of now."""
        try:
            with self._memory.open_export() as export:
                self._left.append(export)
                next(export.records)
            self._memory.find(f.custom(_refuse))
        except LookupError as error:
            self._left.append(error)

    def _write(self, register: str, number: int, expected: str | None) -> None:
        begun = time.monotonic_ns()
        text = f"{register} has what {self._name} wrote in {number}"
        try:
            written = self._memory.update(register, content=text, expect=expected).hash
        except ConflictError as error:
            self._note(register, begun, expected=expected, found=error.current)
        else:
            self._note(register, begun, expected=expected, written=written)

    def _note(self, register: str, begun: int, **given: str | None) -> None:
        ended = time.monotonic_ns()
        self._known[register] = given.get("written") or given["found"] or ""
        self.lines.append({"register": register, "begun": begun, "ended": ended, **given})

    def _raise_counter(self, counter: str) -> None:
        for _ in range(MOST_TRIES):
            record = self._memory.get(counter)
            assert record is not None
            try:
                self._memory.update(counter, content=str(_count(record) + 1), expect=record)
            except ConflictError:
                continue
            self.lines.append({"raised": counter})
            return
        self.lines.append({"error": f"{counter} is not what was read of it, {MOST_TRIES} times"})


def _refuse(record: Record) -> bool:
    raise LookupError(record.id)


def _count(counter: Record | None) -> int:
    return int(str(counter.content)) if counter else 0


def _process(path: str, number: int, seed: int, out: Path) -> None:
    """What a child does: open the store, let all threads run, write down what they were given."""
    signal.alarm(LONGEST_S)
    bulk.BULK = CHAT_COMMIT
    with open_memory(path, timeout=TIMEOUT_S, embedder="none") as memory:
        workers = [Worker(memory, f"{number}-{thread}", seed * 1000 + thread) for thread in range(THREADS)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        if number < TELLERS:
            threads.append(threading.Thread(target=_tell_chat, args=(memory, number, tuple(threads))))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    out.write_text("\n".join(json.dumps(line) for worker in workers for line in worker.lines), encoding="utf-8")


def _tell_chat(memory: Memory, number: int, others: Sequence[threading.Thread]) -> None:
    """Remember the whole chat; every process but the first begins when some of it is committed and more to come.

    Where the first one failed nothing comes: then it begins when the workers beside it are done.
    """
    while number and any(each.is_alive() for each in others) and not memory.count(f.conversation("chat")):
        time.sleep(0.001)
    memory.remember_all([{"content": text, "kind": "conversation", "conversation": "chat"} for text in CHAT])


def forked(process: Callable[[], object]) -> int:
    """Call a function in a child process, whose code tells whether it returned. Return the number of the process."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            process()
            code = 0
        finally:
            os._exit(code)
    return pid


def run(path: str, folder: Path, seed: int) -> tuple[list[dict[str, object]], dict[str, str], str]:
    """All processes on one store: what they wrote down, the registers' hashes at first, and what went wrong."""
    with open_memory(path, embedder="none") as memory:
        for each in REGISTERS:
            memory.remember(f"{each} is new", id=each)
        memory.remember_all([{"content": "0", "id": each} for each in (*COUNTERS, *PAIR)])
        initial = {each: memory.get(each).hash for each in REGISTERS}  # type: ignore[union-attr]
    outs = [folder / f"told-{number}.jsonl" for number in range(PROCESSES)]
    pids = [forked(partial(_process, path, number, seed + number, out)) for number, out in enumerate(outs)]
    problem = ""
    # Opened after the forks, and held for the whole run: a reader that stays does not stop anybody.
    with open_memory(path, embedder="none", read_only=True) as reader, core_of(reader).store.read() as view:
        before = view.count(reader._branch, f.everything(), now=0)
        for pid in pids:
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
                problem = "a process failed"
        if view.count(reader._branch, f.everything(), now=0) != before:
            problem = problem or "a reader saw another moment than its own"
    lines = [json.loads(line) for out in outs if out.exists() for line in out.read_text(encoding="utf-8").splitlines()]
    return lines, initial, problem


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """One run on a file, looked at in several ways."""
    path = folder / "shared.db"
    yield from _trials_on(str(path), seed, folder)
    with open_memory(path, embedder="none") as memory:
        for number in range(3):  # the first finds the log long and carries it over, so that the next begins it anew
            memory.remember(f"one more, {number}")
        nbytes = os.path.getsize(f"{path}-wal")
        yield Trial(seed, "the log is bounded", "" if nbytes <= 2 * LONG_BYTES else f"it has {nbytes} bytes")


def on_postgres(seed: int, folder: Path) -> Iterator[Trial]:
    """One run on a server."""
    from recollect.testing.postgres import PostgresServer, create_store

    server = PostgresServer({"max_connections": "200"}).start()
    try:
        yield from _trials_on(f"{create_store(server.dsn)}&cache={folder}", seed, folder)
    finally:
        server.stop()


def _trials_on(path: str, seed: int, folder: Path) -> Iterator[Trial]:
    lines, initial, problem = run(path, folder, seed)
    yield Trial(seed, "all processes end, a reader stays", problem)
    errors = [str(line["error"]) for line in lines if "error" in line]
    yield Trial(seed, "nobody is refused", errors[0] if errors else "")
    histories: dict[str, list[Call]] = defaultdict(list)
    raised: dict[str, int] = dict.fromkeys(COUNTERS, 0)
    for line in lines:
        if "register" in line:
            register = str(line.pop("register"))
            histories[register].append(Call(**line))  # type: ignore[arg-type]
        elif "raised" in line:
            raised[str(line["raised"])] += 1
    for register, calls in sorted(histories.items()):
        good = linearizable(calls, initial[register])
        yield Trial(seed, f"linearizable ({_size(len(calls))} calls)", "" if good else f"{register} is not")
    with open_memory(path, embedder="none") as memory:
        counted = {each: _count(memory.get(each)) for each in COUNTERS}
        yield Trial(seed, "no update is lost", "" if counted == raised else f"{counted} of {raised}")
        chat = [record.content for record in memory.find(f.conversation("chat"), order="position")]
        problem = "" if chat == CHAT else f"{len(chat)} turns of {len(CHAT)}"
        yield Trial(seed, "a conversation that several store is stored once", problem)
        yield Trial(seed, "check", "; ".join(memory.check()))


def _size(count: int) -> str:
    return f"{count // 50 * 50} to {count // 50 * 50 + 49}"
