"""How well SDRs find the text that contains a question, by the choice of the bits that represent a long text.

A text is a number of consecutive sentences of the corpus; a question is 3 to 8 adjacent words of one of them. A text is
found if it is among the first ten, with ties counted against it. docs/decisions.md has the conclusion.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.corpus import corpus
from bench.measuring import told, versions
from recollect.facets.sdr.index.encoding import BITS, SparseRows, encoded
from recollect.facets.sdr.index.index import SdrIndex
from recollect.indexes.fixed_point import SHARE_BITS
from recollect.text.fnv import fnv1a

#: Sentences of a text: taken in turn.
SHAPES = {"1": (1,), "3": (3,), "10": (10,), "40": (40,), "1 to 40": (1, 3, 10, 40)}
#: A second hash of each bit: those with the smallest are kept, wherever in the row they stand.
_SECOND = [fnv1a(f"bit {bit}".encode()) for bit in range(BITS)]

Keep = Callable[[list[int]], list[int]]


def _smallest(count: int) -> Keep:
    return lambda bits: sorted(sorted(bits, key=_SECOND.__getitem__)[:count])


KEPT: dict[str, Keep] = {
    "lowest 80": lambda bits: bits[:80],
    "min-hash 80": _smallest(80),
    "min-hash 320": _smallest(320),
    "all": lambda bits: bits,
}


def sdr_encoders(count: int = 5_000, asked: int = 400) -> dict[str, Any]:
    """The share of questions whose text is found among the first ten, of `count` texts of each shape."""
    source = corpus()
    sentences = source.texts(40 * count)
    out: dict[str, Any] = {}
    for name, shape in SHAPES.items():
        with told(f"texts of {name} sentences"):
            rng = random.Random(1)
            rest = iter(sentences)
            texts = [[next(rest) for _ in range(shape[at % len(shape)])] for at in range(count)]
            questions = []
            for _ in range(asked):
                at = rng.randrange(count)
                words = rng.choice(texts[at]).split()
                size = min(len(words), rng.randrange(3, 9))
                begin = rng.randrange(len(words) - size + 1)
                questions.append((at, encoded(" ".join(words[begin : begin + size]))))
            whole = [encoded(" ".join(each)) for each in texts]
            out[name] = {
                "bits": sum(map(len, whole)) / count,
                **{kept: _found([keep(bits) for bits in whole], questions, keep) for kept, keep in KEPT.items()},
            }
    return {
        "command": "sdr-encoders",
        "texts": count,
        "questions": asked,
        "found": out,
        **source.to_json(),
        "versions": versions(),
    }


def _found(rows: list[list[int]], questions: list[tuple[int, list[int]]], keep: Keep) -> float:
    index = SdrIndex()
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    index.add_all(
        range(len(rows)), SparseRows(np.concatenate([np.array(row, dtype=np.uint16) for row in rows]), offsets)
    )
    found = 0
    for at, bits in questions:
        scores = {hit.number: hit.score / (1 << SHARE_BITS) for hit in index.overlapping(keep(bits), len(rows))}
        found += at in scores and sum(score >= scores[at] for score in scores.values()) <= 10
    return found / len(questions)
