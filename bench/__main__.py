"""`python -m bench`: start-up, durable writes and recall on this machine, against raw disk and SQLite FTS5.

    python -m bench [--records N] [--json]

Texts are made from a seeded vocabulary with Zipf's frequencies, so that nothing is downloaded and runs repeat. FTS5 is
asked the same questions as an OR of the same words, ranked by its bm25(), ten hits: what its documentation suggests for
natural-language questions. Each figure is a median; peers take turns in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy

import recollect
from recollect.text.words import terms

QUESTIONS = 60


def texts(count: int, seed: int = 1) -> list[str]:
    """Sentences of 6 to 25 words."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "or", "us")]
    vocabulary = sorted({"".join(rng.choices(syllables, k=rng.randrange(2, 5))) for _ in range(30_000)})
    rng.shuffle(vocabulary)
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    return [" ".join(rng.choices(vocabulary, weights, k=rng.randrange(6, 26))) for _ in range(count)]


def questions(corpus: list[str], seed: int = 2) -> list[str]:
    """Three to ten words of one of the texts, in another order."""
    rng = random.Random(seed)
    out = []
    for text in rng.choices(corpus, k=QUESTIONS):
        words = text.split()
        out.append(" ".join(rng.sample(words, min(len(words), rng.randrange(3, 11)))))
    return out


def milliseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def start_up(folder: Path) -> dict[str, float]:
    """From process start: importing the package, and one answer of the command on a small file."""
    path = folder / "small.db"
    with recollect.open(path) as memory:
        memory.remember_all(texts(200))
    python, command = sys.executable, [sys.executable, "-m", "recollect", "--db", str(path), "recall", "bada kelor"]

    def run(arguments: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(arguments, check=True, capture_output=True)

    def of(arguments: list[str]) -> float:
        return statistics.median(milliseconds(run(arguments)) for _ in range(7))

    return {
        "python_ms": of([python, "-c", ""]),
        "import_ms": of([python, "-c", "import recollect"]),
        "command_recall_ms": of(command),
    }


def writes(folder: Path) -> dict[str, float]:
    """One durable write, beside appending the same bytes to a file and syncing it, in turn."""
    raw = os.open(folder / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    ours, theirs = [], []
    with recollect.open(folder / "writes.db") as memory:

        def append(data: bytes) -> None:
            os.write(raw, data)
            os.fdatasync(raw)

        for text in texts(300):
            ours.append(milliseconds(lambda text=text: memory.remember(text)))  # type: ignore[misc]
            theirs.append(milliseconds(lambda text=text: append(text.encode())))  # type: ignore[misc]
        bulk = texts(5000, seed=3)
        took = milliseconds(lambda: memory.remember_all(bulk))
    os.close(raw)
    one, other = statistics.median(ours), statistics.median(theirs)
    return {"recollect_ms": one, "raw_fsync_ms": other, "ratio": one / other, "bulk_per_s": 5000 / took * 1000}


def recalls(folder: Path, records: int) -> dict[str, float]:
    """Recall with explanations, beside FTS5, over the same texts and questions, in turn."""
    corpus = texts(records)
    peer = apsw.Connection(str(folder / "fts.db"))
    peer.execute("CREATE VIRTUAL TABLE t USING fts5(text)")
    with peer:
        peer.executemany("INSERT INTO t VALUES (?)", [(text,) for text in corpus])

    def fts(question: str) -> object:
        words = " OR ".join(f'"{term.word}"' for term in terms(question))
        return peer.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 10", (words,)).fetchall()

    ours, theirs = [], []
    with recollect.open(folder / "recall.db", durability="normal") as memory:
        memory.remember_all(corpus)
        first = milliseconds(lambda: memory.recall("anything"))
        for question in questions(corpus):
            ours.append(milliseconds(lambda question=question: memory.recall(question)))  # type: ignore[misc]
            theirs.append(milliseconds(lambda question=question: fts(question)))  # type: ignore[misc]
    one, other = statistics.median(ours), statistics.median(theirs)
    return {
        "records": records,
        "index_ms": first,
        "recollect_p50_ms": one,
        "recollect_p95_ms": statistics.quantiles(ours, n=20)[18],
        "fts5_p50_ms": other,
        "fts5_over_recollect": other / one,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found: dict[str, dict[str, Any]] = {
            "start-up": start_up(folder),
            "writes": writes(folder),
            "recall": recalls(folder, arguments.records),
            "versions": {
                "recollect": recollect.__version__,
                "python": platform.python_version(),
                "sqlite": apsw.sqlite_lib_version(),
                "numpy": numpy.__version__,
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            },
        }
    if arguments.json:
        print(json.dumps(found, indent=2))
        return
    for part, figures in found.items():
        print(part)
        for figure, value in figures.items():
            print(f"  {figure:24}{value:12.2f}" if isinstance(value, float) else f"  {figure:24}{value:>12}")


if __name__ == "__main__":
    main()
