"""The factor by which a document's shares are multiplied."""

from __future__ import annotations

import numpy as np

from recollect.indexes.documents.columns import NONE, Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import BITS
from recollect.indexes.kernels.types import About
from recollect.indexes.parameters import ANSWER, ASKED, PAST_ANSWER, RECOLLECTED_INSTRUCTION
from recollect.text.answers import ASKS, INSTRUCTION, Kind

#: The factor for each kind of a document, as a fraction.
BY_KIND: dict[int, tuple[int, int]] = {
    Kind.TIME: ANSWER,
    Kind.NUMBER: ANSWER,
    Kind.NAME: ANSWER,
    Kind.PAST: PAST_ANSWER,
    Kind.REASON: ANSWER,
    INSTRUCTION: RECOLLECTED_INSTRUCTION,
    ASKS: ASKED,
}


def factor_of(numbers: Ints, table: Table, about: About) -> Ints:
    """Return the factor of each document by its manner, speaker and kinds of answers, with 16 bits of fraction."""
    factor = table.weight[numbers].astype(np.int64)
    if about.speaker != NONE:
        theirs = table.speaker[numbers] == about.speaker
        factor[theirs] = factor[theirs] * about.favour >> BITS
    for kind in about.kinds:
        has = table.offers[numbers] & kind != 0
        of, out_of = BY_KIND[kind]
        factor[has] = factor[has] * of // out_of
    return factor
