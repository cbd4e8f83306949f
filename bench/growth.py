"""How much a file grows by single writes, and what a compaction gives back.

Most of a write's pages of the Merkle trie are those of an old root soon, and are dropped (`stores.roots`). What
stays is the version, the change and the commit.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import recollect
from bench.corpus import cache_folder, corpus
from bench.measuring import milliseconds, versions


def growth(records: int, writes: int) -> dict[str, Any]:
    """Bytes of the file for each of `writes` single writes over `records` records, before and after a compaction."""
    source, rng = corpus(), random.Random(1)
    texts = source.texts(records + writes)
    ids = [str(number) for number in range(records)]
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        path = Path(folder) / "a.db"
        with recollect.open(path, durability="normal") as memory:
            memory.remember_all([{"content": text, "id": each} for text, each in zip(texts, ids, strict=False)])
        at_first = path.stat().st_size
        with recollect.open(path, durability="normal") as memory:
            for text in texts[records:]:
                memory.update(rng.choice(ids), content=text)
        after_writes = path.stat().st_size
        with recollect.open(path, durability="normal") as memory:
            took = milliseconds(memory.compact)
            report = memory.check()
            assert report == []
        compacted = path.stat().st_size
    return {
        "command": "growth",
        "records": records,
        "writes": writes,
        "text_bytes": sum(len(text.encode("utf-8")) for text in texts[records:]) / writes,
        "file_bytes_a_write": after_writes / writes,
        "growth_bytes_a_write": (after_writes - at_first) / writes,
        "compacted_bytes_a_write": compacted / writes,
        "compact_ms": took,
        "roots_without_pages": report.dropped,
        **source.to_json(),
        "versions": versions(),
    }
