"""The exact scan of many vectors, from the vector of a question to the cosine of every document, compared with reading
all vectors once.

The vectors are random, from a seed: the figures say nothing about their quality. The precision is measured too: how
many of the ten nearest are the same as with floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.measuring import milliseconds, percentile, told, versions
from bench.reading import best_ms, reading
from recollect.indexes.kernels.native import vectors as native_vectors
from recollect.indexes.scoring.dense import DenseView, products, quantised

K = 10
DIMENSION = 384
ROUNDS = 5


def vectors(records: int, count: int = 50) -> dict[str, Any]:
    """`count` questions put to so many vectors of 384 components."""
    draw = np.random.default_rng(7)
    with told("making vectors"):
        given = draw.standard_normal((records, DIMENSION), dtype=np.float32)
        asked = draw.standard_normal((count, DIMENSION), dtype=np.float32)
        rows, units = quantised(given), quantised(asked)
    compiled = DenseView(rows, np.arange(records), native_vectors.products)
    plain = DenseView(rows, np.arange(records), products)
    times = [float("inf")] * count
    for _ in range(ROUNDS):
        for at, unit in enumerate(units):
            times[at] = min(times[at], milliseconds(compiled.cosines, unit))
    found = 0
    lengths = np.linalg.norm(given, axis=1)
    for question, unit in zip(asked, units, strict=True):
        exact = np.argsort(-(given.astype(np.float64) @ question) / lengths)[:K]
        found += len(np.intersect1d(exact, np.argsort(-compiled.cosines(unit))[:K]))
    read_ms = best_ms(reading(rows.view(np.uint64)), 10)
    return {
        "command": "vectors",
        "records": records,
        "dimension": DIMENSION,
        "questions": count,
        "scan_p50_ms": percentile(times, 0.5),
        "numpy_ms": min(milliseconds(plain.cosines, units[0]) for _ in range(ROUNDS)),
        "read_all_rows_ms": read_ms,
        "ratio": percentile(times, 0.5) / read_ms,
        "recall_at_10": found / (K * count),
        "versions": versions(),
    }
