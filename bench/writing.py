"""Durable writes: one at a time compared with the bare disk, bulk writes, and eight threads.

The bare disk is an append of the same bytes to a file and fdatasync, which every durable store needs. Between the two
is a transaction of one row in a SQLite file with the same settings, without ledger, proof or index. All files are in
the cache folder, because the folder for temporary files is often in memory, where a sync does nothing.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

import recollect
from bench.corpus import cache_folder, corpus, questions
from bench.measuring import milliseconds, percentiles, told, versions

ONE_BY_ONE, BULK, THREADS = 300, 20_000, 8
#: Number of texts that FTS5 gets one transaction at a time.
EACH = 1000


def single_writes(folder: Path, texts: Sequence[str]) -> dict[str, Any]:
    """`remember`, an append with fdatasync, and a row in SQLite, in turn."""
    raw = os.open(folder / "raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    # Not everywhere is there an fdatasync; fsync does no less.
    sync = getattr(os, "fdatasync", os.fsync)
    ours: list[float] = []
    theirs: list[float] = []
    rows: list[float] = []
    bare = apsw.Connection(str(folder / "bare.db"))
    bare.execute("PRAGMA journal_mode = WAL").fetchall()
    bare.execute("PRAGMA synchronous = FULL; CREATE TABLE rows (number INTEGER PRIMARY KEY, body BLOB) STRICT")

    def append(data: bytes) -> None:
        os.write(raw, data)
        sync(raw)

    def insert(data: bytes) -> None:
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("INSERT INTO rows (body) VALUES (?)", (data,))
        bare.execute("COMMIT")

    with recollect.open(folder / "single.db") as memory:
        for text in texts:
            ours.append(milliseconds(memory.remember, text))
            theirs.append(milliseconds(append, text.encode()))
            rows.append(milliseconds(insert, text.encode()))
    os.close(raw)
    bare.close()
    one, other = statistics.median(ours), statistics.median(theirs)
    return {
        "recollect_ms": one,
        "raw_fsync_ms": other,
        "ratio": one / other,
        "recollect": percentiles(ours),
        "raw_fsync": percentiles(theirs),
        "sqlite_row": percentiles(rows),
    }


def bulk_writes(folder: Path, texts: Sequence[str]) -> dict[str, float]:
    """`remember_all`, then the first recall: durable and searchable. FTS5 gets the same texts."""
    question = questions(texts, 1)[0]
    with recollect.open(folder / "bulk.db") as memory:
        store_ms = milliseconds(memory.remember_all, texts)
        recall_ms = milliseconds(memory.recall, question)
    in_one_ms, each_ms = fts5_ms(folder / "fts5.db", texts), fts5_ms(folder / "each.db", texts[:EACH], each=True)
    return {
        "bulk_records": len(texts),
        "bulk_per_s": len(texts) / (store_ms + recall_ms) * 1000,
        "bulk_store_per_s": len(texts) / store_ms * 1000,
        "bulk_first_recall_ms": recall_ms,
        "fts5_bulk_per_s": len(texts) / in_one_ms * 1000,
        "fts5_each_committed_per_s": min(EACH, len(texts)) / each_ms * 1000,
    }


def fts5_ms(path: Path, texts: Sequence[str], *, each: bool = False) -> float:
    """The milliseconds that FTS5 takes for the same texts: in one durable transaction, or one for each."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("PRAGMA synchronous = FULL; CREATE VIRTUAL TABLE texts USING fts5(text)")

    def insert() -> None:
        for text in texts:
            connection.execute("INSERT INTO texts VALUES (?)", (text,))

    def in_one() -> None:
        connection.execute("BEGIN IMMEDIATE")
        insert()
        connection.execute("COMMIT")

    try:
        return milliseconds(insert if each else in_one)
    finally:
        connection.close()


def threaded_writes(folder: Path, texts: Sequence[str]) -> dict[str, float]:
    """`remember` from several threads at once, on one memory."""
    with recollect.open(folder / "threads.db") as memory:

        def write(mine: Sequence[str]) -> None:
            for text in mine:
                memory.remember(text)

        threads = [threading.Thread(target=write, args=(texts[at::THREADS],)) for at in range(THREADS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        assert memory.count() == len(texts)
    return {f"threads{THREADS}_per_s": len(texts) / took}


def writes(bulk: int = BULK) -> dict[str, Any]:
    """All three, each on a store of its own."""
    source = corpus()
    texts = source.texts(bulk + 2 * ONE_BY_ONE)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as name:
        folder = Path(name)
        # A process's first call of each kind does what no later one has to.
        with told("warming up"), recollect.open(folder / "warm.db") as memory:
            memory.remember_all(texts[:100])
            memory.remember("a first sentence")
            memory.recall("sentence")
        return {
            "command": "write",
            "records": bulk,
            **single_writes(folder, texts[bulk : bulk + ONE_BY_ONE]),
            **threaded_writes(folder, texts[bulk + ONE_BY_ONE :]),
            **bulk_writes(folder, texts[:bulk]),
            **source.to_json(),
            "versions": versions(),
        }
