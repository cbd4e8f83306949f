"""The factor by which a document's shares are multiplied."""

from __future__ import annotations

import numpy as np

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS
from recollect.indexes.kernels.types import About
from recollect.indexes.parameters import ANSWER


def factor_of(numbers: Ints, table: Table, about: About) -> Ints:
    """Return the factor of each document by its manner, speaker and kinds of answers, with 16 bits of fraction."""
    factor = table.weight[numbers].astype(np.int64)
    if about.speaker != NONE:
        theirs = table.speaker[numbers] == about.speaker
        factor[theirs] = factor[theirs] * about.favour >> BITS
    for kind in about.kinds:
        has = table.offers[numbers] & kind != 0
        factor[has] = factor[has] * ANSWER[0] // ANSWER[1]
    return factor
