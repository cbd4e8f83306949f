"""Opening a store whose WAL another SQLite has checkpointed: all of it is verified, and its checksums are renewed.

Compared with the check of the same store (`recollect doctor --check`), and with opening it afterwards.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import recollect
from bench import stores
from bench.corpus import corpus
from bench.measuring import milliseconds, versions


def foreign(records: int) -> dict[str, Any]:
    """Return the figures of a store with this number of records."""
    source = corpus()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        shutil.copy(stores.plain(source, records), path)
        with closing(sqlite3.connect(path)) as other:
            other.execute("VACUUM")  # writes every page
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", recollect.RecollectWarning)
            memory = recollect.open(path, embedder="none")
        opened = time.perf_counter() - begun
        found = memory.stats()["store"]["renewed"]
        checked = milliseconds(memory.check)
        memory.close()
        again = milliseconds(lambda: recollect.open(path, embedder="none").close())
        return {
            "command": "foreign",
            "records": records,
            "open_s": opened,
            "check_s": checked / 1000,
            "open_again_ms": again,
            "file_bytes": path.stat().st_size,
            "found": found,
            **source.to_json(),
            "versions": versions(),
        }
