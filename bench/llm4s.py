"""`python -m bench.llm4s [MEMORIES COMPONENTS]`: the search by vector of the LLM4S layer, beside NumPy's product alone.

Random vectors in a file. Milliseconds, the median of 20 queries; the first search of a process is given in seconds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from bench.measuring import milliseconds
from recollect.compat.llm4s import Memory, MemoryFilter, MemoryStore

_QUERIES = 20
#: The memories have this many sources.
_SOURCES = 1000
#: Memories that are built at a time.
_PART = 1000


def main() -> None:
    memories, components = (int(each) for each in sys.argv[1:3]) if len(sys.argv) == 3 else (100_000, 384)
    chance = np.random.default_rng(1)
    vectors = chance.standard_normal((memories, components)).astype(np.float32)
    queries = chance.standard_normal((_QUERIES, components))
    with TemporaryDirectory() as folder, MemoryStore.open(Path(folder) / "bench.db", "none") as store:
        began = time.perf_counter()
        for start in range(0, memories, _PART):
            store.store_all(
                Memory.from_knowledge(f"text {at}", f"source {at % _SOURCES}").with_embedding(vectors[at])
                for at in range(start, min(start + _PART, memories))
            )
        print(f"store_all               {memories / (time.perf_counter() - began):9.0f} per s")
        began = time.perf_counter()
        store.search("text", embedding=queries[0])
        print(f"first search            {time.perf_counter() - began:9.2f} s")
        wheres = {
            "search": MemoryFilter.ALL,
            "search, all match": MemoryFilter.knowledge(),
            "search, 0.1 % match": MemoryFilter.by_metadata("source", "source 7"),
        }
        for name, where in wheres.items():
            store.search("text", 10, where, embedding=queries[0])
            times = [milliseconds(lambda q=q, w=where: store.search("text", 10, w, embedding=q)) for q in queries]
            print(f"{name:24}{median(times):9.1f} ms")
        product = [milliseconds(np.matmul, vectors, each.astype(np.float32)) for each in queries]
        print(f"NumPy's product alone   {median(product):9.1f} ms")


if __name__ == "__main__":
    main()
