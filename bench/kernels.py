"""The kernel that finds the best documents by words, compared with reading the bytes that it touches at the bandwidth
of this core.

The bytes are counted as `independent.reach_best` works, since the corpus has no turns:

    8 + 2   for each occurrence of a term, with the length of its document
    8 + 8   for each document of a term: its row, a sum of shares and bits of terms, is read and written
    24      for each document that is reached: recorded and looked up (4 + 4), its row read and reset (8 + 8)

Lookups for the few documents that can be among the best are not counted. A ratio of 1 would be a kernel that only
reads, sequentially, with perfect prefetching.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import date
from typing import Any

from bench.corpus import corpus, questions
from bench.measuring import milliseconds, percentile, told, versions
from bench.peers import K
from bench.reading import bandwidth
from recollect.indexes.documents.columns import NEVER, Document
from recollect.indexes.kernels.native import kernels as native_kernels
from recollect.indexes.kernels.types import Wanted
from recollect.indexes.parameters import STANDING
from recollect.indexes.scoring.scores import NO_SUBJECT, WeightedQuery, weighed
from recollect.indexes.scoring.signals import read
from recollect.indexes.words.index import WordIndex, WordView
from recollect.indexes.words.segment import Builder
from recollect.text.words import terms

ROUNDS = 15
OCCURRENCE, OF_TERM, REACHED = 8 + 2, 8 + 8, 4 + 4 + 8 + 8


def kernels(records: int, count: int = 200) -> dict[str, Any]:
    """`count` questions put to the kernel alone, over an index of so many texts."""
    source = corpus()
    texts = source.texts(records)
    with told("building the index"):
        view = view_of(texts)
    compiled = native_kernels.NativeKernels()
    asked = []
    for question in questions(texts, count):
        told_by = read(question, view, date(2026, 1, 1))
        asked.append(dataclasses.replace(weighed(view, told_by.asked, told_by.sequence), kernels=compiled))
    times = [float("inf")] * len(asked)
    for _ in range(ROUNDS):
        for at, each in enumerate(asked):
            times[at] = min(times[at], milliseconds(each.reach_best, NO_SUBJECT, Wanted(K, STANDING)))
    touched = [bytes_of(each) for each in asked]
    rate = bandwidth()
    ideal_us = [each / rate * 1e6 for each in touched]
    took_us = [each * 1000 for each in times]
    return {
        "command": "kernels",
        "records": records,
        "questions": count,
        "bandwidth_gb_per_s": rate / 1e9,
        "bytes_p50": percentile(touched, 0.5),
        "kernel_us_p50": percentile(took_us, 0.5),
        "ideal_us_p50": percentile(ideal_us, 0.5),
        "ratio": percentile([took / ideal for took, ideal in zip(took_us, ideal_us, strict=True)], 0.5),
        "ns_per_occurrence_p50": percentile(
            [took * 1000 / _occurrences(each) for took, each in zip(took_us, asked, strict=True)], 0.5
        ),
        **source.to_json(),
        "versions": versions(),
    }


def view_of(texts: Sequence[str]) -> WordView:
    """The word index of texts that are no turns of any session."""
    builder = Builder()
    for at, text in enumerate(texts):
        builder.add(Document(f"{at:08}", terms(text), None, (0, at, f"{at:08}"), False, at, NEVER))
    return WordIndex(builder.segment()).view()


def _occurrences(asked: WeightedQuery) -> int:
    spans = asked.postings.spans
    return max(int((spans[:, 1::2] - spans[:, 0::2]).sum()), 1)


def bytes_of(asked: WeightedQuery) -> int:
    """The bytes that the kernel touches for a question: see above."""
    spans = asked.postings.spans
    walked = int((spans[:, 1::2] - spans[:, 0::2]).sum())
    of_terms = int(asked.kernels.tally(asked.postings, asked.view.table)[:, 0].sum())
    reached = asked.reach_best(NO_SUBJECT, Wanted(K, STANDING)).passed
    return walked * OCCURRENCE + of_terms * OF_TERM + reached * REACHED
