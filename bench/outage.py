"""`make demo-cluster`: agents go on while a node and then the database's primary are killed.

PostgreSQL with a synchronous standby, two nodes (`recollect serve`), and agents that know both nodes' addresses. Each
agent stores a note, reads it back and asks a question, again and again. First one node is killed, then the primary, and
a second later the standby is promoted, as whoever watches the database would. At the end every note that was
acknowledged is looked up, and the store is checked.

All of it runs on one machine, so a killed server has lost its processes and not its disk.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import recollect
from bench.measuring import percentile, versions
from bench.serve import Server, served
from recollect.errors import RecollectError
from recollect.testing.postgres_pair import Pair

AGENTS, MEMORIES = 12, 6
#: When the node and the primary are killed, when the standby is promoted, and when it ends, in seconds.
NODE_S, PRIMARY_S, PROMOTE_S, END_S = 6.0, 12.0, 13.0, 24.0
#: How long after an event a pause in the answers counts as its effect, in seconds.
AROUND_S = 5.0
#: The width of a bar of the plot, in seconds.
BAR_S = 0.25


@dataclass
class Log:
    """What agents did. Times are seconds since the beginning."""

    began: float = field(default_factory=time.monotonic)
    stored: list[tuple[float, str, str]] = field(default_factory=list)  # when, in which memory, the id
    answered: list[float] = field(default_factory=list)
    slowest_s: float = 0.0
    failed: list[tuple[float, str, str]] = field(default_factory=list)  # when, the call, the code
    wrong: list[str] = field(default_factory=list)

    @property
    def now(self) -> float:
        return time.monotonic() - self.began


def agent(number: int, addresses: list[str], log: Log, over: threading.Event) -> None:
    """Store, read back and ask until it is over."""
    with recollect.connect(addresses, f"memory {number % MEMORIES}", retries=10) as memory:
        count = 0
        while not over.is_set():
            record_id, count = f"{number}-{count}", count + 1
            calls: dict[str, Callable[[], object]] = {
                "remember": partial(memory.remember, f"Agent {number} has noted {record_id}", id=record_id),
                "get": partial(memory.get, record_id),
                "recall": partial(memory.recall, f"what has agent {number} noted?", 3),
            }
            for call, work in calls.items():
                began = log.now
                try:
                    found = work()
                except RecollectError as error:
                    log.failed.append((log.now, call, error.code))
                    break
                log.answered.append(log.now)
                log.slowest_s = max(log.slowest_s, log.now - began)
                if call == "remember":
                    log.stored.append((log.now, memory.name, record_id))
                elif not found:
                    log.wrong.append(f"{record_id} was stored, and {call} did not find it")


def run(say: Any = print) -> dict[str, Any]:
    """Run it, and return what happened."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recollect-demo-")))
        say("starting PostgreSQL, a standby that must confirm each commit, and two nodes")
        pair = Pair()
        stack.callback(pair.stop)
        pair.confirm()
        nodes = []
        for name in ("a", "b"):
            (folder / name).mkdir()
            address = pair.address(folder / name / "cache")
            nodes.append(stack.enter_context(served(address, folder / name, pinned=False)))
        addresses = [each.http for each in nodes]
        log, over = Log(), threading.Event()
        agents = [
            threading.Thread(target=agent, args=(number, addresses, log, over), daemon=True) for number in range(AGENTS)
        ]
        for each in agents:
            each.start()
        events = _events(nodes, pair, log, say)
        over.wait(max(0.0, END_S - log.now))
        over.set()
        for each in agents:
            each.join(60)
        return _found(log, events, pair, folder, sum(each.is_alive() for each in agents))


def measured() -> dict[str, Any]:
    """Run it, say what happens on stderr, and return what happened."""
    return run(lambda text: print(text, file=sys.stderr, flush=True))


def _events(nodes: list[Server], pair: Pair, log: Log, say: Any) -> dict[str, float]:
    """Let happen what goes wrong, and return when."""
    events = {}
    for at, name, act in (
        (NODE_S, "a node is killed", lambda: os.kill(nodes[0].process, signal.SIGKILL)),
        (PRIMARY_S, "the primary is killed", pair.primary.kill),
        (PROMOTE_S, "the standby is promoted", lambda: pair.standby.execute("SELECT pg_promote(TRUE, 60)")),
    ):
        time.sleep(max(0.0, at - log.now))
        events[name] = log.now
        say(f"{log.now:5.1f} s  {name} ({len(log.stored)} notes are acknowledged)")
        act()
    return events


def _found(log: Log, events: dict[str, float], pair: Pair, folder: Path, hanging: int) -> dict[str, Any]:
    lost, problems = [], []
    with recollect.open(pair.address(folder / "cache"), embedder="none") as memory:
        for name in sorted({name for _, name, _ in log.stored}):
            there = {each.id for each in memory.namespace(name).find()}
            lost += [record_id for _, where, record_id in log.stored if where == name and record_id not in there]
        problems = list(memory.check())
    answered = sorted([0.0, *log.answered])
    gaps = [(before, after) for before, after in pairwise(answered)]
    pauses = {
        name: max((after - before for before, after in gaps if before <= at + AROUND_S and after >= at), default=0.0)
        for name, at in events.items()
    }
    bars = Counter(int(each / BAR_S) for each in log.answered)
    return {
        "command": "outage",
        "agents": AGENTS,
        "acknowledged": len(log.stored),
        "lost": len(lost),
        "problems": problems,
        "answers": len(log.answered),
        "failed": dict(Counter(code for _, _, code in log.failed)),
        "not_in_doubt": sum(code != "commit_in_doubt" for _, _, code in log.failed),
        "wrong": log.wrong[:5],
        "hanging": hanging,
        "no_answer_s": pauses,
        "slowest_call_s": log.slowest_s,
        "median_pause_ms": percentile([after - before for before, after in gaps], 0.5) * 1000,
        "events": events,
        "bar_s": BAR_S,
        "per_bar": [bars[number] for number in range(int(END_S / BAR_S))],
        "versions": versions(),
    }


def main() -> None:
    """Run the demo, and print what happened."""
    found = run(partial(print, flush=True))
    print(f"\nacknowledged notes   {found['acknowledged']}, of which lost: {found['lost']}")
    failed = ", ".join(f"{count} {code}" for code, count in found["failed"].items())
    print(f"answers              {found['answers']}; calls that failed: {failed or 'none'}")
    print(f"the store            {'; '.join(found['problems']) or 'has no problems'}")
    for name, seconds in found["no_answer_s"].items():
        print(f"{name:24} no agent had an answer for {seconds:.2f} s")
    print(f"slowest call         {found['slowest_call_s']:.2f} s")
    most = max(found["per_bar"]) or 1
    print("\nanswers in each quarter of a second:")
    for second in range(int(END_S)):
        bars = found["per_bar"][second * 4 : second * 4 + 4]
        marks = [name for name, at in found["events"].items() if second <= at < second + 1]
        print(f"{second:3} s  {'#' * round(sum(bars) / 4 / most * 60):60} {', '.join(marks)}")
    if found["lost"] or found["problems"] or found["wrong"] or found["hanging"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
