"""The best documents of a question, without computing the shares of all that it reaches.

From the summaries of the terms follows for each block of documents an upper bound of a document's shares (block-max, as
in S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011). The shares are computed in
the blocks with the greatest bounds first, and then in other blocks as long as a bound is not below the worst of the
best so far. All results are exact. Blocks with changes, and the tail, are always computed; if these are many, all are.
"""

from __future__ import annotations

import numpy as np

from recollect.indexes.documents.columns import Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.kernels.blocks import base_of, changes_of
from recollect.indexes.kernels.types import RATIO_BITS, About, Kernels, Reached, Wanted, Weights
from recollect.indexes.parameters import TOP
from recollect.indexes.words.postings import Postings

#: Below this many documents in the base, all shares are computed.
LEAST = 2000
#: At most this fraction of the blocks may have changes.
CHANGED = 4
_NO_DOCUMENTS: Ints = np.zeros(0, dtype=np.int64)


def reach_best(
    kernels: Kernels, postings: Postings, table: Table, weights: Weights, about: About, wanted: Wanted
) -> Reached:
    """Return at least the best documents that a question reaches, and all that tie with the last.

    They are ranked by the totals of `Kernels.weigh` with the shares of the extras. The best documents with standing
    tags (`Table.standing`) are included.

    Args:
        kernels: The kernels.
        postings: The postings of the terms.
        table: The documents.
        weights: The weights of the terms.
        about: The subject of the question.
        wanted: What is wanted.
    """
    segment = postings.segment
    if segment is not None and segment.count >= LEAST:
        base = base_of(segment, table)
        changes = changes_of(table, base)
        if len(changes.blocks) * CHANGED <= base.blocks:
            titles = len(weights.terms) - len(weights.title_of)
            summaries = tuple(
                base.summary(kernels, postings, term, term >= titles) for term in range(len(weights.terms))
            )
            least = zip(weights.terms.tolist(), summaries, strict=True)
            # A share that is rounded to 0 would leave unknown which documents are reached.
            if all(weight * TOP[0] * summary.least >= TOP[1] << RATIO_BITS for weight, summary in least):
                return kernels.search(postings, table, weights, about, base, changes, summaries, wanted)
    reached = kernels.reach(postings, table, weights, _NO_DOCUMENTS if wanted.extras is None else wanted.extras.numbers)
    return reached if wanted.among is None else reached.within(wanted.among)


def session_counts(kernels: Kernels, postings: Postings, table: Table) -> list[int]:
    """Return the number of sessions that contain each term; all documents must be live and in the segment."""
    segment = postings.segment
    if segment is None or segment.count < LEAST:
        counts: list[int] = kernels.tally(postings, table)[:, 2].tolist()
        return counts
    base = base_of(segment, table)
    return [len(base.summary(kernels, postings, term, False).sessions) for term in range(len(postings.terms))]
