"""Two workers against one, many agents on one node, and what a server adds to a call (`bench.serve`).

`workers`: two servers on copies of one file, one with a single process, one with two. By turns, the same clients send
the same questions to each over its socket, as in `bench.serve`, and read the answers without decoding them. Rates, and
the processor time of all processes of a server for each answer. Nothing is pinned: a server may use every core, and the
clients take their share of them.

`agents`: one node on PostgreSQL with many namespaces, whose popularity is Zipf's. A thousand agents, each a connection,
send recalls at the times of a Poisson process, whether the earlier ones are answered or not (open loop): at first as
fast as the node answers, for its maximum, then at half of that. Latencies count from the time when a request was due.
Those of recalls in namespaces whose index was in memory are compared with those of the node when one namespace alone is
asked, at the same rate, by the same agents, in turns before and after.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import recollect
from bench.corpus import cache_folder
from bench.cost import questions, turns
from bench.measuring import ROOT, one_core, percentile, told, versions
from bench.serve import clients_of, recall_lines, round_of, serve, served
from recollect.testing.postgres import PostgresServer, create_store

BATCH, ASKED, K = 500, 500, 10
#: The size of the store of each part.
WORKERS_RECORDS, SERVER_RECORDS, SERVER_QUESTIONS = 20_000, 10_000, 400
#: Clients, and turns of each server in seconds.
CLIENTS, TURNS, TURN_S = 16, 7, 4.0
#: The exponent of Zipf's law, records of a namespace, agents, processes that they run in, and seconds of a phase.
EXPONENT, EACH, AGENTS, PROCESSES = 1.1, 20, 1000, 2
WARM_S, MEASURED_S = 60.0, 60.0


def processor_s(process: int) -> float:
    """Return the processor time of a process and of the processes that it has started, in seconds."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ticks = 0
    for each in (str(process), *children):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(parts: Sequence[str] | None, namespaces: int) -> dict[str, Any]:
    """Return the figures of some parts, or of all of them."""
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        "workers": lambda: workers(WORKERS_RECORDS),
        "agents": lambda: agents(namespaces),
        "server": _server,
    }
    return {"command": "cluster", **{part: measures[part]() for part in parts or measures}}


def _server() -> dict[str, Any]:
    one_core()  # the other parts use all
    return serve(SERVER_RECORDS, SERVER_QUESTIONS)


def workers(records: int) -> dict[str, Any]:
    """Return the rates of one worker and of two, on a file with this number of records."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache_folder())))
        with told(f"writing {records} records"):
            (folder / "one").mkdir()
            with recollect.open(folder / "one" / "a.db", embedder="none") as memory:
                given = turns(records)
                for first in range(0, records, BATCH):
                    memory.remember_all(given[first : first + BATCH])
                memory.recall("a question")
        shutil.copytree(folder / "one", folder / "two")
        lines = recall_lines(questions(ASKED))
        servers, groups = {}, {}
        for name, count in (("one", 1), ("two", 2)):
            servers[name] = stack.enter_context(
                served(str(folder / name / "a.db"), folder / name, "--workers", str(count), pinned=False)
            )
            groups[name] = stack.enter_context(clients_of(servers[name], folder / name, CLIENTS, lines))
            round_of(groups[name], TURN_S)
        rates: dict[str, list[float]] = {name: [] for name in servers}
        costs: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(TURNS):
            for name, server in servers.items():
                before = processor_s(server.process)
                answers = len(round_of(groups[name], TURN_S))
                rates[name].append(answers / TURN_S)
                costs[name].append((processor_s(server.process) - before) * 1000 / answers)
    return {
        "command": "cluster workers",
        "records": records,
        "clients": CLIENTS,
        **{f"{name}_per_s": statistics.median(each) for name, each in rates.items()},
        **{f"{name}_processor_ms": statistics.median(each) for name, each in costs.items()},
        "rate_ratios": sorted(two / one for one, two in zip(rates["one"], rates["two"], strict=True)),
        "processor_ratios": sorted(two / one for one, two in zip(costs["one"], costs["two"], strict=True)),
        "versions": versions(),
    }


def agents(namespaces: int) -> dict[str, Any]:
    """Return the figures of a thousand agents on one node with this number of namespaces."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=cache_folder())))
        database = PostgresServer({"shared_buffers": "512MB"})
        stack.callback(database.stop)
        database.start()
        address = f"{create_store(database.dsn)}&cache={folder / 'cache'}"
        with told(f"writing {namespaces} namespaces"):
            _fill(address, namespaces)
        node = stack.enter_context(served(address, folder, pinned=False))
        asked = folder / "questions"
        asked.write_text(json.dumps(questions(ASKED)))
        groups = [stack.enter_context(_agents(node.socket, number, asked, namespaces)) for number in range(PROCESSES)]
        with told("the maximum"):
            _phase(groups, seconds=WARM_S / 2)
            most = _phase(groups, seconds=WARM_S / 4)
        rate = most.per_s / 2
        with told(f"{rate:.0f} requests a second"):
            alone = [_phase(groups, seconds=MEASURED_S / 2, rate=rate, alone=0)]
            warming = _phase(groups, seconds=WARM_S, rate=rate)
            before = processor_s(node.process)
            many = _phase(groups, seconds=MEASURED_S, rate=rate)
            spent = processor_s(node.process) - before
            alone.append(_phase(groups, seconds=MEASURED_S / 2, rate=rate, alone=0))
        with recollect.connect(node.http) as memory:
            resident = _resident_bytes(node.process)
            stats = memory.stats()
        single = [ms for each in alone for ms in each.later]
        return {
            "command": "cluster agents",
            "namespaces": namespaces,
            "records_each": EACH,
            "agents": AGENTS,
            "maximum_per_s": most.per_s,
            "rate_per_s": rate,
            "errors": sum(each.errors for each in (most, warming, many, *alone)),
            "cold_share": len(many.first) / (len(many.first) + len(many.later)),
            "cold": _percentiles(many.first),
            "warm": _percentiles(many.later),
            "alone": _percentiles(single),
            "p99_ratio": percentile(many.later, 0.99) / percentile(single, 0.99),
            "node_processor_share": spent / MEASURED_S,
            "node_resident_bytes": resident,
            "store": stats["store"]["store"],
            "versions": versions(),
        }


class Phase(NamedTuple):
    """What the agents of all processes measured: latencies in ms, errors, and answers a second."""

    first: list[float]
    later: list[float]
    errors: int
    per_s: float


def _phase(groups: Sequence[subprocess.Popen[str]], **settings: float) -> Phase:
    for each in groups:
        assert each.stdin is not None
        each.stdin.write(json.dumps(settings) + "\n")
        each.stdin.flush()
    found = []
    for each in groups:
        assert each.stdout is not None
        found.append(json.loads(each.stdout.readline()))
    first, later = ([ms for each in found for ms in each[name]] for name in ("first", "later"))
    seconds = max(each["seconds"] for each in found)
    return Phase(first, later, sum(each["errors"] for each in found), (len(first) + len(later)) / seconds)


@contextmanager
def _agents(path: str, number: int, asked: Path, namespaces: int) -> Iterator[subprocess.Popen[str]]:
    """Connect a process with its share of the agents."""
    arguments = (path, AGENTS // PROCESSES, number, PROCESSES, asked, namespaces, EXPONENT)
    command = [sys.executable, "-m", "bench.cluster_agents", *map(str, arguments)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the agents did not connect")
        yield process
    finally:
        process.communicate()


def _fill(address: str, namespaces: int) -> None:
    """Write the namespaces, each with its own texts."""
    given = turns(5000)
    with recollect.open(address, embedder="none", durability="normal") as memory:

        def fill(part: int) -> None:
            for number in range(part, namespaces, 4):
                at = number * EACH % (len(given) - EACH)
                memory.namespace(f"n{number}").remember_all(given[at : at + EACH])

        threads = [threading.Thread(target=fill, args=(part,)) for part in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)} if times else {}


def _resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
