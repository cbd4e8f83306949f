"""Search of SDRs in C: see `types` for the interface, and `with_numpy` for the same in NumPy."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.facets.sdr.index.types import BestRows, Query, SdrBase, SdrRows
from recollect.indexes.documents.columns import Ints
from recollect.indexes.kernels.native.library import flags, ints, lib, numbers, passed, struct


class NativeSdr:
    name = "native"

    def __init__(self) -> None:
        # One column of sums is kept for the next question. `pop` and `append` of a deque are thread-safe.
        self._free: deque[NDArray[np.int32]] = deque(maxlen=1)

    def best(self, base: SdrBase, tail: SdrRows, query: Query, wanted: int) -> BestRows:
        count = len(base.sizes)
        try:
            sums = self._free.pop()
        except IndexError:
            sums = np.empty(0, dtype=np.int32)
        if len(sums) < count:
            sums = np.empty(count + count // 4, dtype=np.int32)
        room = max(min(wanted, count + len(tail.numbers)), 0)
        best: tuple[Ints, Ints, Ints] = tuple(np.empty(room, dtype=np.int64) for _ in range(3))  # type: ignore[assignment]
        size = 0
        if room:
            found = struct("rc_best_rows", **dict(zip(("numbers", "values", "hamming"), map(ints, best), strict=True)))
            of_base = struct(
                "rc_base",
                rows=_rows(base.rows),
                sizes=passed("shorts", base.sizes),
                postings=passed("places", base.postings),
                starts=ints(base.starts),
                common=ints(base.common),
                flags=passed("bytes", base.flags),
            )
            size = lib.rc_best_sdrs(
                of_base, struct("rc_rows", **_rows(tail)), _query(query), numbers(sums[:count]), found
            )
        self._free.append(sums)
        return BestRows(*(each[:size] for each in best))


def _rows(rows: SdrRows) -> dict[str, Any]:
    return {
        "numbers": ints(rows.numbers),
        "offsets": ints(rows.offsets),
        "bits": passed("shorts", rows.bits),
        "alive": flags(rows.alive),
    }


def _query(query: Query) -> Any:
    return struct(
        "rc_query",
        bits=ints(query.bits),
        factors=ints(query.factors),
        weights=numbers(query.weights),
        penalty=query.penalty,
        inverse=query.inverse,
        shift=query.shift,
        add=query.add,
        least=query.least,
    )
