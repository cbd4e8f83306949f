"""The exact ten best of many SDRs, by overlap and by Hamming distance, compared with reading all rows and with a scan.

Reading all 512-byte rows once is the bound for a search that looks at every row: adding up their words, the best of
many runs. The scan is the obvious implementation: XOR with every row and a bit count, in NumPy. Questions run one after
the other, with the readings between rounds; the best round of each question counts, as does the best reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import recollect
from bench.corpus import corpus, questions
from bench.measuring import milliseconds, percentile, told, versions
from bench.reading import WORDS, best_ms, reading
from recollect.facets.sdr.index import with_native as native_sdr
from recollect.facets.sdr.index.encoding import BYTES, WHOLE, SparseRows, encoded, encoded_all, packed
from recollect.facets.sdr.index.index import SdrIndex

K = 10
ROUNDS, READINGS = 7, 10


def sdrs(records: int, count: int = 100) -> dict[str, Any]:
    """`count` questions put to an index of so many SDRs."""
    source = corpus()
    texts = source.texts(records)
    asked = [encoded(question) for question in questions(texts, count)]
    encoded_all(texts[:1000])  # NumPy loads what it needs
    encoding_ms = min(milliseconds(encoded_all, texts) for _ in range(3))
    index = SdrIndex(native_sdr.NativeSdr())
    with told("building the index and the rows"):
        found = encoded_all(texts)
        building_ms = milliseconds(index.add_all, range(records), found)
        rows = packed_rows(found)
    read = reading(rows)
    read_ms: list[float] = []
    overlaps, hammings = [float("inf")] * count, [float("inf")] * count
    for _ in range(ROUNDS):
        _better(overlaps, asked, lambda bits: index.overlapping(bits, K))
        _better(hammings, asked, lambda bits: index.nearest(bits, K))
        read_ms.append(best_ms(read, READINGS))
    scans = [float("inf")] * count
    _better(scans, [_row(bits) for bits in asked], lambda row: scanned(rows, row))
    read_all_ms, overlap_ms, hamming_ms = min(read_ms), percentile(overlaps, 0.5), percentile(hammings, 0.5)
    return {
        "command": "sdr",
        "records": records,
        "questions": count,
        "encoder": WHOLE.name,
        "bits_per_record": len(found.bits) / records,
        "read_all_rows_ms": read_all_ms,
        "overlap_p50_ms": overlap_ms,
        "overlap_p95_ms": percentile(overlaps, 0.95),
        "hamming_p50_ms": hamming_ms,
        "hamming_p95_ms": percentile(hammings, 0.95),
        "scan_ms": percentile(scans, 0.5),
        "ratio_overlap": read_all_ms / overlap_ms,
        "ratio_hamming": read_all_ms / hamming_ms,
        "encode_per_s": records / encoding_ms * 1000,
        "build_ms": building_ms,
        **_of_a_memory(texts, questions(texts, count)),
        **source.to_json(),
        "versions": versions(),
    }


def _of_a_memory(texts: Sequence[str], asked: Sequence[str]) -> dict[str, float]:
    """The same texts in a memory: whole calls, whose five hits are explained."""
    with recollect.open(":memory:") as memory, told("storing the texts in a memory"):
        memory.sdr.store_many((text, None) for text in texts)
        first_ms = milliseconds(memory.sdr.query, asked[0])
        times = [milliseconds(memory.sdr.query, each) for each in asked]
        memory.sdr.query(asked[0], rule=True)
        by_rule = [milliseconds(lambda text: memory.sdr.query(text, rule=True), each) for each in asked]
    return {
        "memory_first_ms": first_ms,
        "memory_p50_ms": percentile(times, 0.5),
        "memory_p95_ms": percentile(times, 0.95),
        "memory_rule_p50_ms": percentile(by_rule, 0.5),
    }


def packed_rows(sdrs: SparseRows) -> NDArray[np.uint64]:
    """The SDRs as they are stored, a row of 64 words each."""
    rows = [packed(sdrs.row(at)) for at in range(len(sdrs.offsets) - 1)]
    return np.frombuffer(b"".join(rows), dtype=np.uint64).reshape(-1, WORDS).copy()


def _row(bits: Sequence[int]) -> NDArray[np.uint64]:
    row = np.frombuffer(packed(bits), dtype=np.uint64)
    assert row.nbytes == BYTES
    return row


def scanned(rows: NDArray[np.uint64], row: NDArray[np.uint64]) -> list[tuple[int, int]]:
    """The nearest ten by Hamming: places and distances, of equal distances the lowest places first."""
    distances = np.bitwise_count(rows ^ row).sum(axis=1, dtype=np.int64)
    keys = distances * len(rows) + np.arange(len(rows))
    best = np.sort(np.partition(keys, min(K, len(keys)) - 1)[:K])
    return [(int(key % len(rows)), int(key // len(rows))) for key in best.tolist()]


def _better(best: list[float], asked: Sequence[Any], ask: Callable[[Any], object]) -> None:
    """Put every question once, and keep for each the shortest time so far."""
    for at, question in enumerate(asked):
        best[at] = min(best[at], milliseconds(ask, question))
