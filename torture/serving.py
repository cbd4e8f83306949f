"""`recollect serve` under load: killed while several clients write, and one of two servers of a store killed.

Clients write over the socket and over HTTP, each call with an idempotency key, and repeat what was not answered: after
the restart, or at the other server. Every text is stored as a turn of a conversation, which would be stored again if it
were written again. What must be stored afterwards follows from the calls and their answers (`problem_in`).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import recollect
from recollect.errors import CommitInDoubtError, ServerBusyError, StoreServerError
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.operations import ExecuteBatch, Operation, Remember, RememberAll
from torture.trials import Trial

NAME = "served.db"
#: Kills of each seed, one after the other on the same store.
KILLS = 2
#: Clients of each door.
CLIENTS = 2
#: The most answers after which a server is killed, and how long it runs at most after the last of them.
ANSWERS, _LATEST_S = 60, 0.01
#: How long a server may take to start, to answer or to end before it counts as hanging.
PATIENCE_S = 60.0


class Server:
    """A process `recollect serve` with a socket and HTTP.

    Args:
        path: The store.
        socket_path: The path of the socket.
        port: The port of HTTP; 0: any.

    Attributes:
        addresses: The addresses of its doors: that of the socket, and that of HTTP.
        port: The port of HTTP.
        log: The lines that it logged.
    """

    def __init__(self, path: Path, socket_path: Path, port: int = 0, *options: str) -> None:
        package = Path(recollect.__file__).parents[1]
        arguments = ["serve", "--db", str(path), "--socket", str(socket_path), "--http", f"127.0.0.1:{port}", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "recollect", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(path.parent), "PYTHONPATH": str(package)},
        )
        self.addresses: list[str] = []
        self.log: list[dict[str, Any]] = []
        self._logged = threading.Condition()
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            _, listens, address = self.log[-1]["event"].partition("listening on ")
            self.addresses += [address] if listens else []
            if len(self.addresses) == 2:
                break
        else:
            self.kill()
            raise AssertionError(f"the server did not start: {self.log}")
        self.port = int(self.addresses[1].rpartition(":")[2])
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with suppress(ValueError), self._logged:  # of a process that was killed within a line
                self.log.append(json.loads(line))
                self._logged.notify_all()

    def wait_for_log(self, text: str, count: int = 1) -> None:
        """Wait until a line with a text is logged, or some lines of several processes."""
        with self._logged:
            came = self._logged.wait_for(lambda: sum(text in line["event"] for line in self.log) >= count, PATIENCE_S)
            assert came, f"{text!r} was not logged: {self.log}"

    def kill(self) -> None:
        """Kill the process, if it still runs, and wait for its end."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Stop it as systemd does, and return its status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for its end, and return its status."""
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@dataclass
class Call:
    """A write, and whether it was answered.

    Attributes:
        operation: The write.
        texts: What it stores, each of them once. No other call stores one of them.
        key: Its idempotency key.
        answered: Whether an answer has come.
        positions: The texts with their positions, as the answer has them.
    """

    operation: Operation
    texts: tuple[str, ...]
    key: str
    answered: bool = False
    positions: frozenset[tuple[str, int | None]] = frozenset()


def problem_in(calls: Sequence[Call], stored: Counter[str]) -> str:
    """Return what is wrong with what is stored after some calls; "" if nothing is.

    Args:
        calls: All calls that were made.
        stored: How often each text is stored.
    """
    wanted = {text for call in calls for text in call.texts}
    for text, times in stored.items():
        if times > 1:
            return f"{text!r} is stored {times} times"
        if text not in wanted:
            return f"{text!r} is stored, and no call wanted it"
    for call in calls:
        there = [text for text in call.texts if text in stored]
        if call.answered and len(there) < len(call.texts):
            return f"{call.texts} was acknowledged, and {there} is stored"
        if there and len(there) < len(call.texts):
            return f"of {call.texts}, which was not acknowledged, {there} is stored"
    return ""


def stored_in(path: Path, calls: Sequence[Call]) -> tuple[Counter[str], str]:
    """Return how often each text is stored in a file, and what its check finds, or differs from the answers."""
    if not path.exists():
        return Counter(), ""
    with open_memory(path, embedder="none") as memory:
        found = [(str(record.content), record.position) for record in memory.find()]
        problem = "; ".join(memory.check())
    said = {each for call in calls for each in call.positions}
    if not problem and (wrong := said - set(found)):
        problem = f"answers tell of {sorted(wrong)[:3]}, which is not stored so"
    return Counter(text for text, _ in found), problem


class Load:
    """Clients that write until they are told to stop. What was not answered is repeated with its key.

    Args:
        seed: Determines what they write.
        keyed: Whether writes have idempotency keys. Without, what is repeated may be stored twice.

    Attributes:
        calls: All calls that were made.
        errors: What no client may see.
    """

    def __init__(self, seed: int, *, keyed: bool = True) -> None:
        self.calls: list[Call] = []
        self.errors: list[str] = []
        self._keyed = keyed
        self._seed = seed
        self._changed = threading.Condition()
        self._addresses: list[str] = []  # of the doors; empty while there is no server
        self._generation = 0  # of the addresses
        self._answers = self._waiting = 0
        self._stopping = False
        self._threads: list[threading.Thread] = []

    def start(self, count: int) -> None:
        """Start some clients, which take the doors in turn."""
        for number in range(count):
            self._threads.append(threading.Thread(target=self._client, args=(number,), daemon=True))
            self._threads[-1].start()

    def serve(self, addresses: list[str]) -> None:
        """Let the clients use these addresses once those that they use do not answer any more."""
        with self._changed:
            self._addresses = addresses
            self._generation += 1
            self._changed.notify_all()

    def wait_for(self, answers: int) -> None:
        """Wait until there are some more answers, or an error."""
        with self._changed:
            until = self._answers + answers
            came = self._changed.wait_for(lambda: self._answers >= until or self.errors, PATIENCE_S)
            assert came, f"fewer than {answers} answers in {PATIENCE_S:g} s"

    def settled(self) -> int:
        """Wait until no client waits for an answer, because there is no server, and return how many calls have none."""
        with self._changed:
            settled = self._changed.wait_for(
                lambda: self._waiting >= sum(thread.is_alive() for thread in self._threads), PATIENCE_S
            )
            assert settled, "a client of a server that is gone still waits for an answer"
            return sum(not call.answered for call in self.calls)

    def stop(self) -> None:
        """Let each client end once its call is answered."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a client has no answer"

    def _client(self, number: int) -> None:
        rng = random.Random(f"{self._seed} {number}")
        memory, generation, count = None, 0, 0
        try:
            while not self._stopping:
                count += 1
                call = self._next(rng, f"{number}.{count}")
                with self._changed:
                    self.calls.append(call)
                while not call.answered:
                    try:
                        if memory is None:
                            address, generation = self._address(number, generation)
                            memory = recollect.connect(address, timeout=PATIENCE_S, retries=rng.choice((0, 1)))
                        self.make(call, memory)
                    except (StoreServerError, CommitInDoubtError, ServerBusyError):
                        if memory is not None:
                            memory.close()
                        memory = None
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the trial's
            with self._changed:
                self.errors.append(f"{type(error).__name__}: {error}")
                self._changed.notify_all()
        finally:
            if memory is not None:
                memory.close()

    def _address(self, number: int, generation: int) -> tuple[str, int]:
        """Wait for addresses that are newer than those that a client has, and return one, and which ones they are."""
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
            came = self._changed.wait_for(lambda: self._generation > generation, PATIENCE_S)
            self._waiting -= 1
            assert came, "no server was started again"
            return self._addresses[number % len(self._addresses)], self._generation

    def _next(self, rng: random.Random, name: str) -> Call:
        texts = tuple(f"turn {name}.{each}" for each in range(rng.choice((1, 1, 2, 4))))
        # Some clients write to the same conversation, where each turn has a position of its own.
        fields = {"kind": "conversation", "conversation": rng.choice(("c", f"c{name}")), "role": "user"}
        turns = tuple(Remember(content=text, fields=fields) for text in texts)
        operation: Operation = turns[0]
        if len(turns) > 1:
            operation = ExecuteBatch(operations=turns) if rng.random() < 0.5 else RememberAll(items=turns)
        return Call(operation, texts, f"{self._seed}-{name}")

    def make(self, call: Call, memory: Memory) -> None:
        """Make a call, and note its answer."""
        result = memory.execute(call.operation, idempotency_key=call.key if self._keyed else None)
        outcomes = result if isinstance(result, list) else getattr(result, "results", None) or [result]
        with self._changed:
            call.answered = True
            call.positions = frozenset((str(each.record.content), each.record.position) for each in outcomes)
            self._answers += 1
            self._changed.notify_all()


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """A store whose server is killed several times, and then one of two servers."""
    rng = random.Random(seed)
    path, load = folder / NAME, Load(seed)
    with _sockets() as sockets:
        port = 0
        for number in range(KILLS):
            with Server(path, sockets / "a", port) as server:
                port = server.port
                if not number:
                    load.start(2 * CLIENTS)
                load.serve(server.addresses)
                _run_on(load, rng)
                server.kill()
            open_calls = load.settled()
            stored, problem = stored_in(path, load.calls)
            problem = "; ".join(load.errors) or problem or problem_in(load.calls, stored)
            yield Trial(seed, f"killed: {open_calls} in flight" if open_calls else "killed: idle", problem)
        with Server(path, sockets / "a", port) as killed, Server(path, sockets / "b") as other:
            load.serve([killed.addresses[0], other.addresses[1], killed.addresses[1], other.addresses[0]])
            _run_on(load, rng)
            killed.kill()
            load.serve([other.addresses[0], other.addresses[1]])
            load.wait_for(4 * CLIENTS)
            load.stop()
            status = other.end()
            yield Trial(seed, "the other server ends when it is told to", f"with status {status}" if status else "")
    stored, problem = stored_in(path, load.calls)
    problem = "; ".join(load.errors) or problem or problem_in(load.calls, stored)
    yield Trial(seed, "one of two servers was killed, and all is answered", problem or _unanswered(load.calls))
    logged = [line["event"] for line in (*killed.log, *other.log) if line["level"] not in ("info", "warning")]
    yield Trial(seed, "no error is logged", "; ".join(logged[:3]))


def _run_on(load: Load, rng: random.Random) -> None:
    """Wait until a server is to be killed."""
    load.wait_for(rng.randrange(1, ANSWERS))
    time.sleep(rng.random() * _LATEST_S)


def _unanswered(calls: Sequence[Call]) -> str:
    return next((f"{call.texts} was never answered" for call in calls if not call.answered), "")


@contextmanager
def _sockets() -> Iterator[Path]:
    """Provide a folder for sockets, whose paths must be short."""
    folder = tempfile.mkdtemp(prefix="recollect-")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
