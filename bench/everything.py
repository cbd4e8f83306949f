"""`python -m bench all`: every measurement with a figure in docs/benchmarks.md, as JSON files in one folder.

Each runs in its own process, so that no measurement is affected by an earlier one. If one fails, this is reported and
the others run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measuring import ROOT

SIZES, LARGE = (10_000, 100_000), 1_000_000
#: The quick peers; at a million records rank_bm25 takes seconds for a question, and gigabytes.
LARGE_PEERS = "fts5,fts5_content,bm25s,tantivy"


def measurements(large: bool) -> Iterator[tuple[str, list[str]]]:
    """Name of the file, and the command."""
    for records in SIZES:
        yield f"recall-{records}", ["recall", "--records", str(records)]
        yield f"open-{records}", ["open", "--records", str(records)]
    yield "conversations", ["conversations"]
    yield "write", ["write"]
    yield "filters", ["filters"]
    yield "pauses", ["pauses"]
    yield "catch-up", ["catch-up"]
    yield "feed", ["feed"]
    yield "vectors", ["vectors"]
    yield "serve", ["serve"]
    yield "postgres", ["postgres"]
    yield "cold", ["cold"]
    yield "past", ["past"]
    yield "once", ["once"]
    if large:
        yield f"recall-{LARGE}", ["recall", "--records", str(LARGE), "--peers", LARGE_PEERS]
        yield f"open-{LARGE}", ["open", "--records", str(LARGE)]
        yield "namespaces", ["namespaces"]
        yield f"pauses-{LARGE}", ["pauses", "--records", str(LARGE)]


def everything(folder: Path, large: bool) -> list[str]:
    """Run them all into files of the folder; the names of those that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, command in measurements(large):
        print(f"== {' '.join(command)}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "bench", *command, "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            failed.append(name)
        else:
            (folder / f"{name}.json").write_text(done.stdout, encoding="utf-8")
    return failed
