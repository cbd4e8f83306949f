"""Opening a store whose index an earlier process wrote: the time to the first answer, and the memory.

Every figure is from a separate process. `open_and_first_recall` begins after the package and its dependencies are
imported; `process start to answer` is the whole run of the command `recollect recall`, and `in_starts_of_numpy` its
processor time in units of a process that imports NumPy, alternating. The memory of a record is the
difference between a process after 101 recalls and one that did the same with an empty store, divided by the records.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import recollect
from bench import stores
from bench.corpus import corpus, questions
from bench.measuring import IMPORT_NUMPY, ROOT, in_fresh_process, milliseconds, processor_seconds, repeated, versions

RECALLS, SECONDS = 100, 15.0

#: What a fresh process runs: argument 1 is the store, 2 the questions as JSON.
_OPENING = """
import json, sys, time
import recollect
from bench.measuring import resident_bytes
path, asked = sys.argv[1], json.loads(sys.argv[2])
with recollect.open(":memory:") as memory:  # the package imports its parts when they are first used
    memory.recall("anything")
began = time.perf_counter()
memory = recollect.open(path, read_only=True)
opened = time.perf_counter()
memory.recall(asked[0])
answered = time.perf_counter()
after_first = resident_bytes()
for question in asked[1:]:
    memory.recall(question)
print(json.dumps({
    "open_ms": (opened - began) * 1000,
    "open_and_first_recall_ms": (answered - began) * 1000,
    "rss_after_first_bytes": after_first,
    "rss_bytes": resident_bytes(),
}))
memory.close()
"""


def opened(path: Path, asked: list[str]) -> dict[str, float]:
    """What a fresh process measures that opens the store at a path and asks."""
    figures: dict[str, float] = json.loads(in_fresh_process(_OPENING, str(path), json.dumps(asked)))
    return figures


def openings(records: int, runs: int = 7) -> dict[str, Any]:
    """The figures of a store of so many records, medians of at most so many runs: fewer where they are slow."""
    source = corpus()
    path = stores.plain(source, records)
    asked = questions(source.texts(records), 1 + RECALLS)
    command = [sys.executable, "-m", "recollect", "--db", str(path), "recall", asked[0], "--json"]

    def answered() -> float:
        return milliseconds(lambda: subprocess.run(command, check=True, cwd=ROOT, capture_output=True))

    processor_seconds(command), processor_seconds(IMPORT_NUMPY)  # each leaves its bytecode
    starts = [(processor_seconds(command), processor_seconds(IMPORT_NUMPY)) for _ in range(runs)]

    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder) / "empty.db"
        recollect.open(nothing).close()
        empty = opened(nothing, asked)
    whole = opened(path, asked)
    firsts = repeated(lambda: opened(path, asked[:1])["open_and_first_recall_ms"], runs, SECONDS)
    return {
        "command": "open",
        "records": records,
        "open_and_first_recall_ms": statistics.median([whole["open_and_first_recall_ms"], *firsts]),
        "open_ms": whole["open_ms"],
        "process_start_to_answer_ms": statistics.median(repeated(answered, runs, SECONDS)),
        "process_start_to_answer_cpu_ms": statistics.median(own for own, _ in starts) * 1000,
        "in_starts_of_numpy": statistics.median(own / unit for own, unit in starts),
        "rss_bytes": whole["rss_bytes"],
        "rss_empty_bytes": empty["rss_bytes"],
        "rss_bytes_per_record": (whole["rss_bytes"] - empty["rss_bytes"]) / records,
        "file_bytes_per_record": _file_bytes(path) / records,
        "runs": 1 + len(firsts),
        **source.to_json(),
        "versions": versions(),
    }


def _file_bytes(path: Path) -> int:
    """The store with all that lies beside it: index and log."""
    return sum(each.stat().st_size for each in path.parent.rglob("*") if each.is_file())
