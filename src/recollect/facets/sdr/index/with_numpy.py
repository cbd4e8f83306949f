"""Search of SDRs in NumPy: see `types` for the interface."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.facets.sdr.index.types import FACTOR_BITS, BestRows, Query, SdrBase, SdrRows
from recollect.indexes.documents.columns import NONE, Ints


class NumpySdr:
    name = "numpy"

    def best(self, base: SdrBase, tail: SdrRows, query: Query, wanted: int) -> BestRows:
        shared = base.sizes.astype(np.int64) * -query.penalty
        for bit in query.bits.tolist():
            if base.common[bit] != NONE:
                shared += query.weights[bit] & base.flags[base.common[bit]]
            # The postings of a bit contain no row twice.
            shared[base.postings[base.starts[bit] : base.starts[bit + 1]]] += query.weights[bit]
        sizes = np.concatenate([base.sizes.astype(np.int64), np.diff(tail.offsets)])
        shared = np.concatenate([shared, _sums(tail, query.weights) - query.penalty * np.diff(tail.offsets)])
        values = ((shared * query.inverse >> query.shift) * query.factors[sizes] >> FACTOR_BITS) + query.add
        numbers = np.concatenate([base.rows.numbers, tail.numbers])
        indexes = np.flatnonzero(np.concatenate([base.rows.alive, tail.alive]) & (values >= query.least))
        if len(indexes) > wanted:
            least = -np.partition(-values[indexes], wanted - 1)[wanted - 1]
            indexes = indexes[values[indexes] >= least]
            indexes = indexes[np.lexsort((numbers[indexes], -values[indexes]))[:wanted]]
        having = np.array([_in_both(base.rows, tail, index, query) for index in indexes.tolist()], dtype=np.int64)
        return BestRows(numbers[indexes], values[indexes], len(query.bits) + sizes[indexes] - 2 * having)


def _sums(rows: SdrRows, weights: NDArray[np.int32]) -> Ints:
    """Return the sum of the weights of each row's bits."""
    running = np.concatenate([[0], np.cumsum(weights[rows.bits], dtype=np.int64)])
    out: Ints = running[rows.offsets[1:]] - running[rows.offsets[:-1]]
    return out


def _in_both(base: SdrRows, tail: SdrRows, index: int, query: Query) -> int:
    """Return how many bits of the question a row has. Indexes of the tail continue those of the base."""
    rows, at = (base, index) if index < len(base.numbers) else (tail, index - len(base.numbers))
    return int(np.count_nonzero(query.weights[rows.bits[rows.offsets[at] : rows.offsets[at + 1]]]))


KERNELS = NumpySdr()
