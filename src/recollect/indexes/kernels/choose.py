"""Selection of kernels: those in C if the package was built with them, NumPy otherwise, with the same results.

The package is built with them where there is a C compiler, and its wheels contain them. The selection is made once for
a process. RECOLLECT_KERNELS=numpy or =native overrides it; if the native kernels are requested but missing, a warning
says so, and so does `recollect doctor`.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from importlib import import_module
from typing import Any

from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.kernels.blocks import Pruned, base_of, changes_of
from recollect.indexes.kernels.interface import Kernels
from recollect.indexes.kernels.types import RATIO_BITS, About, Reached, Wanted, Weights
from recollect.indexes.parameters import TOP
from recollect.indexes.words.postings import Postings

_log = logging.getLogger("recollect")
#: What to do without native kernels.
INSTALL = (
    "install a C compiler (Debian: apt install gcc python3-dev) and then the package again, with pip's options "
    "--force-reinstall and --no-cache-dir"
)
#: The values of RECOLLECT_KERNELS.
CHOICES = "auto", "native", "numpy"
_NATIVE = "recollect.indexes.kernels.native."


@cache
def missing() -> str:
    """Return why this process cannot use native kernels; "" if it can."""
    try:
        import_module(f"{_NATIVE}library")
    except ModuleNotFoundError as error:
        return f"the package was built without them ({error})"
    except ImportError as error:
        return f"they cannot be used ({error})"
    return ""


def requested() -> str:
    """Return what RECOLLECT_KERNELS requests, "auto" if it is not set or empty."""
    return os.environ.get("RECOLLECT_KERNELS") or "auto"


@cache
def uses_native() -> bool:
    """Return whether this process uses native kernels."""
    wanted = requested()
    if wanted not in CHOICES:
        _log.warning("RECOLLECT_KERNELS=%s is ignored: it is none of auto, native and numpy", wanted)
    if wanted == "native" and missing():
        _log.warning("RECOLLECT_KERNELS=native, but %s: NumPy gives the same results, slower; %s", missing(), INSTALL)
    return wanted != "numpy" and not missing()


def native(module: str) -> Any:
    """Import a module of `kernels.native`, if this process uses native kernels."""
    return import_module(_NATIVE + module)


@cache
def chosen() -> Kernels:
    """Return the kernels for words."""
    if uses_native():
        kernels: Kernels = native("kernels").NativeKernels()
        return kernels
    from recollect.indexes.kernels import with_numpy as numpy_kernels

    return numpy_kernels.KERNELS


# The best documents of a question, without computing the shares of all that it reaches (block-max pruning).
#
# Idea: each block of documents has a limit that no total in it exceeds. Blocks are computed in descending order of
# their limits, and the k best totals are in a heap. The worst of the k is the bar. As soon as the next limit is below
# the bar, no block that is left has one of the best. The bounds are floats, since they decide only what is computed;
# totals are integers, and a document that is computed gets the same bits as without blocks.
#
# Invariant: for each document d of a block B without changes, total(d) <= limit(B).
#
# Proof sketch. A total is the sum of d's shares, times d's factor: its weight, times what its speaker and kinds give.
# 1. Words: a term gives d at most weight * mass / (mass + K), with the mass that neighbours lend to d included. The
#    summary has the greatest such ratio times the weight of its document in B, rounded up, so a sum over the terms
#    bounds the sum for any d. The greatest may be in different documents, so the bound is loose but never low.
# 2. Sessions: d is in one session, so the greatest bound of a session in B suffices. The sessions' counts include
#    those of the tail, and dead documents, which can only raise them.
# 3. Pairs: the share of a pair is added once to each block in which its terms are near each other. Extras (dates,
#    classes) have a bound for each block.
# 4. Factor: the shares of 2 and 3 are multiplied by the greatest weight in B, and all shares by what the speaker and
#    the kinds of answers of B give, each taken by itself.
# 5. Rounding: each bound is multiplied by 1 + 1e-9 and increased by 1, more than floats and floors can take from it.
# A block whose documents have died, or have other lenders or more weight since, may break point 1: it is always
# computed first, with the tail; if there are many such blocks, everything is. A block is left out only if limit < bar,
# so documents that tie with the last one are found, and ties are decided as without blocks.
#
# The bounds are in `native/bounds.c`, the loop in `native/search.c`, and both in NumPy in `numpy_search.py`.
#
# Source: S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011. Lent masses,
# sessions and factors are ours.

#: Below this many documents in the base, all shares are computed.
LEAST = 2000
#: With at most this many occurrences all shares are computed, and if no document is a turn, with at most this many.
FEW, FEW_PLAIN = 200, 32_000
#: At most this fraction of the blocks may have changes.
CHANGED = 4


def reach_best(
    kernels: Kernels, postings: Postings, table: Table, weights: Weights, about: About, wanted: Wanted
) -> Reached:
    """Return at least the best documents that a question reaches, and all that tie with the last.

    They are ranked by the totals of `Kernels.weigh` with the shares of the extras. The best documents with standing
    tags (`Table.standing`) are included.

    Args:
        postings: The postings of the terms.
        table: The documents.
        weights: The weights of the terms.
        about: The subject of the question.
        wanted: What is wanted.
    """
    pruned = _pruned(kernels, postings, table, weights)
    return kernels.search(postings, table, weights, about, wanted, pruned)


def _pruned(kernels: Kernels, postings: Postings, table: Table, weights: Weights) -> Pruned | None:
    """Return with what blocks are left out; None if computing all shares is as fast, or necessary."""
    segment = postings.segment
    if segment is None or segment.count < LEAST:
        return None
    spans = postings.spans
    if int((spans[:, 1] - spans[:, 0]).sum()) <= (FEW if table.has_turns else FEW_PLAIN):
        return None
    base = base_of(segment, table)
    changes = changes_of(table, base)
    if len(changes.blocks) * CHANGED > base.blocks:
        return None
    titles = len(weights.terms) - len(weights.title_of)
    summaries = tuple(base.summary(kernels, postings, term, term >= titles) for term in range(len(weights.terms)))
    least = zip(weights.terms.tolist(), summaries, strict=True)
    if any(
        (weight * TOP[0] * each.least // (TOP[1] << RATIO_BITS)) << SHARE_BITS < weights.whole for weight, each in least
    ):
        return None  # a share that is rounded to 0 would leave unknown which documents are reached
    return Pruned(base, changes, summaries)


def session_counts(kernels: Kernels, postings: Postings, table: Table) -> list[int]:
    """Return the number of sessions that contain each term; all documents must be live and in the segment."""
    segment = postings.segment
    if segment is None or segment.count < LEAST:
        counts: list[int] = kernels.tally(postings, table)[:, 2].tolist()
        return counts
    base = base_of(segment, table)
    return [len(base.summary(kernels, postings, term, False).sessions) for term in range(len(postings.terms))]
