"""The server: what a call over its socket and over HTTP costs more than in this process, and how many it answers.

Two copies of one store: `recollect serve` has one, this process the other. Pings, then the same questions with the same
`k`, once without reading the hits and once with every record and explanation read, then durable writes, with the
memories of `recollect.open` and `recollect.connect` by turns, as in `bench.recall`. HTTP connections are kept alive.

Then requests a second over the socket, for 1, 8 and 64 clients: each is a thread with a connection of its own, in one
process or four. They do not decode the answers (`bench.serve_clients`). The numbers of clients take turns, and the
figures of each are those of all its turns. Writes are durable, each a text of its own.

The server is pinned to the first core that the measurement may use, this process and the clients to the last one.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

import recollect
from bench import stores
from bench.corpus import cache_folder, corpus, questions
from bench.measuring import ROOT, first_core, milliseconds, percentile, percentiles, told, versions
from bench.peers import K
from bench.recall import WARM_UP, in_turn, warmed
from bench.serve_clients import answer, connected
from recollect.operations import Operation, Recall, Remember
from recollect.wire import Place, decode, encode, request_json

PINGS, WRITES = 2000, 400
#: Number of questions that many clients share, and of texts, of which none is written twice.
RECALLS, LINES = 2000, 30_000
CLIENTS, PROCESSES, TURNS, TURN_S = (1, 8, 64), 4, 3, 2.0
_PING = b'{"action":"ping"}\n'
_LISTENING = re.compile(r"listening on ([^\"]+)")


class Server(NamedTuple):
    """A server: the path of its socket, its address over HTTP, and its process."""

    socket: str
    http: str
    process: int

    @property
    def unix(self) -> str:
        return f"unix://{self.socket}"


@contextmanager
def served(store: str, folder: Path, *options: str, pinned: bool = True) -> Iterator[Server]:
    """`recollect serve` of a store, on the first core if it is pinned."""
    path = folder / "bench.sock"
    command = [sys.executable, "-m", "recollect", "serve", "--db", store, "--socket", str(path)]
    with first_core() if pinned else nullcontext():
        process = subprocess.Popen(
            [*command, "--http", "127.0.0.1:0", *options], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
    assert process.stderr is not None
    try:
        said = ""
        for line in process.stderr:
            said += line
            found = _LISTENING.search(line)
            if found and found[1].startswith("http"):
                break
        else:
            raise RuntimeError(f"the server did not start: {said}")
        rest = threading.Thread(target=process.stderr.read, daemon=True)  # so that the pipe never fills
        rest.start()
        yield Server(str(path), found[1], process.pid)
    finally:
        process.terminate()
        process.wait(60)


def serve(records: int, asked: int) -> dict[str, Any]:
    """The figures of a store of so many records."""
    source = corpus()
    texts = source.texts(records)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache_folder())))
        here, there = (_copy(stores.plain(source, records), folder / name) for name in ("here", "there"))
        server = stack.enter_context(served(str(there), folder))
        memories = {
            "in_process": stack.enter_context(recollect.open(here)),
            "socket": stack.enter_context(recollect.connect(server.unix)),
            "http": stack.enter_context(recollect.connect(server.http)),
        }
        for memory in memories.values():
            warmed(memory, questions(texts, WARM_UP, seed=5))
        ping = _pings(server)
        askers = {name: _recall(memory) for name, memory in memories.items()}
        askers |= {f"{name}, all read": _recall(memory, reads=True) for name, memory in memories.items()}
        recalls = in_turn(askers, questions(texts, asked))
        writes = in_turn({name: _remember(memory, name) for name, memory in memories.items()}, texts[:WRITES])
        with told("requests of many clients"):
            many = {
                "recall": _many(server, folder, lambda clients: recall_lines(questions(texts, RECALLS))),
                "write": _many(server, folder, lambda clients: _write_lines(texts, clients)),
            }
    return {
        "command": "serve",
        "records": records,
        "questions": asked,
        "ping": {f"{name[:-3]}_us": ms * 1000 for name, ms in percentiles(ping).items()},
        "recall": _compared({name: recalls[name] for name in memories}, ping),
        "recall, all read": _compared({name: recalls[f"{name}, all read"] for name in memories}, ping),
        "write": _compared(writes, ping),
        "clients": many,
        **source.to_json(),
        "versions": versions(),
    }


def _copy(store: Path, folder: Path) -> Path:
    """A copy of a store with its indexes."""
    shutil.copytree(store.parent, folder)
    return folder / store.name


def _pings(server: Server) -> list[float]:
    """Milliseconds of pings, with the answer decoded, after as many that are not counted."""
    with connected(server.socket) as channel:
        took = [milliseconds(lambda: decode(answer(channel, _PING))) for _ in range(2 * PINGS)]
    return took[PINGS:]


def _recall(memory: recollect.Memory, *, reads: bool = False) -> Callable[[str], object]:
    if not reads:
        return lambda question: memory.recall(question, K)

    def read(question: str) -> list[tuple[recollect.Record, recollect.Why]]:
        hits = memory.recall(question, K)
        return [(hit.record, hit.why) for hit in (*hits, *hits.standing)]

    return read


def _remember(memory: recollect.Memory, source: str) -> Callable[[str], object]:
    """What remembers a text that was not remembered before, with each call."""
    numbers = count()
    return lambda text: memory.remember(f"Entry {next(numbers)} of the book: {text}", source=source)


def _compared(took: dict[str, list[float]], ping: list[float]) -> dict[str, Any]:
    """The latencies of each, and the differences of the medians: in microseconds, and in pings of the same run."""
    figures = {name: percentiles(each) for name, each in took.items()}
    own, unit = figures["in_process"]["p50_ms"], percentile(ping, 0.5)
    more: dict[str, float] = {}
    for name, each in figures.items():
        if name != "in_process":
            extra = each["p50_ms"] - own
            more |= {f"{name}_more_us": extra * 1000, f"{name}_more_pings": extra / unit}
    return {**figures, **more}


def recall_lines(asked: Sequence[str]) -> list[bytes]:
    return [_line(Recall(question=question, k=K)) for question in asked]


def _write_lines(texts: Sequence[str], clients: int) -> list[bytes]:
    """More writes than so many clients get done."""
    numbered = zip(range(LINES), cycle(texts))
    return [_line(Remember(content=f"Line {number} of the log of {clients}: {text}")) for number, text in numbered]


def _line(operation: Operation) -> bytes:
    return encode(request_json(operation, Place())) + b"\n"


def _many(server: Server, folder: Path, lines: Callable[[int], list[bytes]]) -> dict[str, dict[str, float]]:
    """What the server answers so many clients: `lines` are the requests that these share."""
    took: dict[int, list[float]] = {clients: [] for clients in CLIENTS}
    with ExitStack() as stack:
        groups = {
            clients: stack.enter_context(clients_of(server, folder, clients, lines(clients))) for clients in CLIENTS
        }
        for turn in range(TURNS):
            for clients in (*CLIENTS[turn % len(CLIENTS) :], *CLIENTS[: turn % len(CLIENTS)]):
                took[clients] += round_of(groups[clients], TURN_S)
    return {
        str(clients): {
            "per_s": len(each) / (TURNS * TURN_S),
            "p50_ms": percentile(each, 0.5),
            "p99_ms": percentile(each, 0.99),
        }
        for clients, each in took.items()
    }


@contextmanager
def clients_of(server: Server, folder: Path, clients: int, lines: list[bytes]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes with so many clients together, connected."""
    processes = []
    for number in range(min(clients, PROCESSES)):
        file = folder / f"{clients}-{number}.lines"
        share = min(clients, PROCESSES)
        file.write_bytes(b"".join(lines[number::share]))
        command = [sys.executable, "-m", "bench.serve_clients", server.socket, str(clients // share), str(file)]
        processes.append(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for process in processes:
            if _said(process) != "ready\n":
                raise RuntimeError("the clients did not start")
        yield processes
    finally:
        for process in processes:
            process.communicate()


def round_of(processes: list[subprocess.Popen[str]], seconds: float) -> list[float]:
    """Let the clients of some processes send requests for so long, and return the latencies in ms."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{seconds}\n")
        process.stdin.flush()
    return [ms for process in processes for ms in json.loads(_said(process))]


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()
