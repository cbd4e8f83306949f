"""Searching SDRs in NumPy: see `sdr.types` for what is asked and given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.sdr.types import FACTOR_BITS, Base, Found, Query, Rows


class NumpySdr:
    name = "numpy"

    def best(self, base: Base, tail: Rows, query: Query, wanted: int) -> Found:
        shared = base.sizes.astype(np.int64) * -query.penalty
        for bit in query.bits.tolist():
            if base.common[bit] != NONE:
                shared += query.weights[bit] & base.flags[base.common[bit]]
            # No row stands twice among those of a bit.
            shared[base.postings[base.starts[bit] : base.starts[bit + 1]]] += query.weights[bit]
        sizes = np.concatenate([base.sizes.astype(np.int64), np.diff(tail.offsets)])
        shared = np.concatenate([shared, _sums(tail, query.weights) - query.penalty * np.diff(tail.offsets)])
        values = ((shared * query.inverse >> query.shift) * query.factors[sizes] >> FACTOR_BITS) + query.add
        numbers = np.concatenate([base.rows.numbers, tail.numbers])
        places = np.flatnonzero(np.concatenate([base.rows.alive, tail.alive]) & (values >= query.least))
        if len(places) > wanted:
            least = -np.partition(-values[places], wanted - 1)[wanted - 1]
            places = places[values[places] >= least]
            places = places[np.lexsort((numbers[places], -values[places]))[:wanted]]
        having = np.array([_in_both(base.rows, tail, place, query) for place in places.tolist()], dtype=np.int64)
        return Found(numbers[places], values[places], len(query.bits) + sizes[places] - 2 * having)


def _sums(rows: Rows, weights: NDArray[np.int32]) -> Ints:
    """The weights of each row's bits, added up."""
    running = np.concatenate([[0], np.cumsum(weights[rows.bits], dtype=np.int64)])
    out: Ints = running[rows.offsets[1:]] - running[rows.offsets[:-1]]
    return out


def _in_both(base: Rows, tail: Rows, place: int, query: Query) -> int:
    """How many bits of the question a row has; those of the tail are counted on from the base's."""
    rows, at = (base, place) if place < len(base.numbers) else (tail, place - len(base.numbers))
    return int(np.count_nonzero(query.weights[rows.bits[rows.offsets[at] : rows.offsets[at + 1]]]))


KERNELS = NumpySdr()
