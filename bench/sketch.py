"""Whether the signs of a vector bound its cosine well enough to leave it out of an exact scan without losing an answer.

Of a vector of length 1 only the signs are known. Its product with a question is at most the length of that part of the
question whose signs agree, and some vector reaches that, so no sound bound by signs is lower. A vector is left out if
its bound is below the cosine that is wanted: that of the tenth best, the most that any search could know.

    python -m bench.sketch 100000
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from numpy.typing import NDArray

from bench.measuring import milliseconds, one_core
from recollect.indexes.kernels.native import vectors as native_vectors
from recollect.indexes.scoring.dense import quantised
from recollect.indexes.scoring.nearest import nearest, signs_of

DIMENSION, QUESTIONS, BLOCK, BEST = 384, 20, 10_000, 10


def drawn(count: int, clusters: int, spread: float) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Return vectors and questions: of no clusters, or around as many centres.

    Args:
        spread: How far from its centre a vector is: two of a cluster have a cosine of about 1 / (1 + spread^2).
    """
    draw = np.random.default_rng(7)
    centres = draw.standard_normal((max(clusters, 1), DIMENSION), dtype=np.float32) * (clusters > 0)
    out = np.empty((count, DIMENSION), dtype=np.int16)

    def some(number: int) -> NDArray[np.int16]:
        noise = draw.standard_normal((number, DIMENSION), dtype=np.float32)
        return quantised(noise * spread + centres[draw.integers(0, len(centres), number)])

    for start in range(0, count, BLOCK):
        out[start : start + BLOCK] = some(min(BLOCK, count - start))
    return out, some(QUESTIONS)


def measured(count: int, clusters: int, spread: float) -> str:
    """Return the line of a kind of vectors."""
    matrix, asked = drawn(count, clusters, spread)
    signs, rows = signs_of(matrix), np.arange(count)
    left_out, scans, sketches = [], [], []
    for question in asked:
        products = native_vectors.products(matrix, question)
        wanted = np.partition(products, -BEST)[-BEST] / 2**28
        squares = (question.astype(np.float64) / 2**14) ** 2
        sound = 0
        for start in range(0, count, BLOCK):
            agree = (matrix[start : start + BLOCK] > 0) == (question > 0)
            sound += int((np.sqrt(agree @ squares) < wanted).sum())
        left_out.append(sound / count)
        scans.append(milliseconds(native_vectors.products, matrix, question))
        sketches.append(milliseconds(nearest, matrix, question, signs, rows))
    scan, sketch = statistics.median(scans), statistics.median(sketches)
    return (
        f"{count:9,} vectors, {clusters:5,} clusters of spread {spread:.1f}: "
        f"left out {100 * statistics.median(left_out):5.1f} % (least {100 * min(left_out):.1f} %); "
        f"exact scan {scan:.2f} ms, the present sketch {sketch:.2f} ms"
    )


if __name__ == "__main__":
    one_core()
    parser = argparse.ArgumentParser(prog="python -m bench.sketch")
    parser.add_argument("counts", type=int, nargs="*", metavar="COUNT", default=[100_000], help="numbers of vectors")
    for number in parser.parse_args().counts:
        for kinds, distance in ((0, 1.0), (1000, 1.0), (1000, 0.6), (1000, 0.3)):
            print(measured(number, kinds, distance), flush=True)
