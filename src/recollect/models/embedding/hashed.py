"""The built-in embedder: hashed words and letter trigrams, no model or library, the same vectors on every machine.

Each token, and each letter trigram of it, adds 1 to or subtracts 1 from one of 256 components. Its hash determines the
component and the sign; the vector is then scaled to length 1. Texts that share words or spellings have similar vectors.
The vectors do not represent meaning, so the words and trigram signals do better; the embedder exists for tests, for
keyed memory (whose scores it defines) and for trying out features that use vectors. Only tokens of ASCII letters and
digits are counted: texts in other scripts have zero vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from recollect.common.regexes import regex
from recollect.models.embedding.base import Floats, Floors
from recollect.text.fnv import fnv1a

DIMENSION = 256
_TOKEN = regex(r"[A-Za-z0-9']+")


def features(text: str) -> Iterator[str]:
    """Yield the tokens of a text, then the trigrams of each token with `^` before and `$` after it.

    >>> list(features("Go on"))
    ['go', 'on', '^go', 'go$', '^on', 'on$']
    >>> list(features("a"))
    ['a', '^a$']
    """
    tokens = [token.lower() for token in _TOKEN.findall(text)]
    yield from tokens
    for token in tokens:
        marked = f"^{token}$"
        yield from (marked[at : at + 3] for at in range(max(1, len(marked) - 2)))


@lru_cache(2**16)
def _signed(feature: str) -> tuple[int, int]:
    """Return the hash of a feature, whose remainder is its component, and the sign with which it counts."""
    value = fnv1a(feature.encode("utf-8"))
    return value, 1 if value >> 63 else -1


def hashed_vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """Return the vector of a text: `dimension` float64 components of length 1, or all 0 if the text has no token."""
    sums = [0] * dimension
    for value, sign in map(_signed, features(text)):
        sums[value % dimension] += sign
    length = math.sqrt(sum(each * each for each in sums))
    return [each / length for each in sums] if length else [0.0] * dimension


def hashed_similarity(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the cosine of two hashed vectors.

    The products are added in the order of the components, as the scores of keyed memory are defined.

    >>> round(hashed_similarity(hashed_vector("apples"), hashed_vector("apples bananas")), 12)
    0.64168894792
    """
    total = 0.0
    for one, other in zip(a, b, strict=True):
        total += one * other
    return total


class Hashed:
    """An `Embedder` for the vectors of this module."""

    name = "hashed/1"
    dimension = DIMENSION
    #: Unrelated texts have cosines up to about 0.2, since their features collide in only 256 components.
    floors = Floors(share=0.25, alone=0.5)

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        return np.array([hashed_vector(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)

    def __repr__(self) -> str:
        return f"<Hashed {self.name!r}>"
