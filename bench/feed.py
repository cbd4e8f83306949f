"""The feed of commits with many listeners, each on a namespace of its own.

How many threads they need, how many views one commit opens, how long it takes from a commit to its callback, what the
listeners cost a writer, and how long it takes until a commit of another process is delivered.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import recollect
from bench.measuring import ROOT, milliseconds, percentiles, versions
from recollect.testing.loopback import core_of

COMMITS, FOREIGN = 200, 50
#: Another process: for each line that it reads it commits, and prints when the commit was durable.
_OTHER = """
import sys, time, recollect
with recollect.open(sys.argv[1], "n0") as memory:
    print("ready", flush=True)
    for line in sys.stdin:
        memory.remember(line)
        print(time.monotonic(), flush=True)
"""


class _Heard:
    """A callback that notes when it was last called."""

    def __init__(self) -> None:
        self.at = 0.0
        self.called = threading.Event()

    def __call__(self, _commit: recollect.Commit) -> None:
        self.at = time.monotonic()
        self.called.set()


def feeds(listeners: int) -> dict[str, Any]:
    """`listeners` on as many namespaces of one file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "feed.db"
        with recollect.open(path, "n0") as memory:
            other = memory.namespace("unheard")
            without = _writes(other, "without")
            before, heard = threading.active_count(), _Heard()
            subscriptions = [memory.listen(heard)]
            subscriptions += [memory.namespace(f"n{number}").listen(_Heard()) for number in range(1, listeners)]
            for each in subscriptions:
                each.drain()
            threads = threading.active_count() - before
            with_listeners = _writes(other, "with")
            delivered: list[float] = []
            for number in range(COMMITS):
                heard.called.clear()
                memory.remember(f"The pilot went on board as number {number}")
                durable = time.monotonic()
                if not heard.called.wait(60):
                    raise TimeoutError("a commit was not delivered")
                delivered.append((heard.at - durable) * 1000)
                if number == COMMITS // 2:
                    threads = max(threads, threading.active_count() - before)
            views = {name: _views(each) for name, each in (("heard", memory), ("unheard", other))}
            foreign = _foreign(path, heard)
            closing = milliseconds(_close, subscriptions)
    return {
        "command": "feed",
        "listeners": listeners,
        "threads": threads,
        "views_of_a_commit": views,
        "commit_to_callback": percentiles(delivered),
        "write_without_listeners": percentiles(without),
        "write_with_listeners": percentiles(with_listeners),
        "commit_of_another_process_to_callback": percentiles(foreign) if foreign else "not delivered",
        "closing_ms": closing,
        "versions": versions(),
    }


def _close(subscriptions: list[recollect.Subscription]) -> None:
    for each in subscriptions:
        each.close()


def _writes(memory: recollect.Memory, how: str) -> list[float]:
    """Times of writes to a namespace without listeners."""
    return [milliseconds(memory.remember, f"The tide turned {how} them, entry {number}") for number in range(COMMITS)]


def _views(memory: recollect.Memory) -> float:
    """The views that threads other than the writer's open for a commit, on average."""
    store, opened = core_of(memory).store, list[str]()
    real = store.read

    def read() -> Any:
        opened.append(threading.current_thread().name)
        return real()

    commits = 3
    store.read = read  # type: ignore[method-assign]
    for number in range(commits):
        memory.remember(f"The lamp was lit on evening {number}")
        time.sleep(0.5)  # longer than the time between two polls
    store.read = real  # type: ignore[method-assign]
    return len([name for name in opened if name.startswith("recollect-")]) / commits


def _foreign(path: Path, heard: _Heard) -> list[float]:
    """Times from commits of another process to the callback, at random phases of the polling."""
    out, phases = list[float](), random.Random(6)
    command = [sys.executable, "-c", _OTHER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        for number in range(FOREIGN):
            heard.called.clear()
            process.stdin.write(f"A ship came in as number {number}\n")
            process.stdin.flush()
            durable = float(process.stdout.readline())
            if not heard.called.wait(5):
                break
            out.append((heard.at - durable) * 1000)
            time.sleep(phases.uniform(0, 0.5))  # so that the commits fall anywhere between two polls
        process.stdin.close()
    return out
