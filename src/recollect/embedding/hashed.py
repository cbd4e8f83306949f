"""The built-in embedder: hashed words and letter trigrams. No model, no library, the same on every machine.

Each token, and each letter trigram of it, adds 1 to or takes 1 from one of 256 components, which its hash names; the
whole is brought to length 1. Texts that share words or spellings have alike vectors. It knows nothing of meaning, so
the words and trigram signals do better; it is there for tests, for keyed memory (whose scores it defines) and to try
out what uses vectors. Only tokens of ASCII letters and digits count: other scripts have zero vectors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from recollect.embedding.base import Floats, Floors
from recollect.text.fnv import fnv1a

DIMENSION = 256
_TOKEN = re.compile(r"[A-Za-z0-9']+")


def features(text: str) -> Iterator[str]:
    """The tokens of a text, then the trigrams of each, with a mark at both ends.

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


def hashed_vector(text: str) -> list[float]:
    """The vector of a text: 256 components in float64, of length 1, or all 0 where the text has no token."""
    sums = [0] * DIMENSION
    for feature in features(text):
        value = fnv1a(feature.encode("utf-8"))
        sums[value & DIMENSION - 1] += 1 if value >> 63 else -1
    length = math.sqrt(sum(each * each for each in sums))
    return [each / length for each in sums] if length else [0.0] * DIMENSION


def hashed_similarity(a: Sequence[float], b: Sequence[float]) -> float:
    """The cosine of two hashed vectors, summed in the order of the components, as keyed memory's scores are defined.

    >>> round(hashed_similarity(hashed_vector("apples"), hashed_vector("apples bananas")), 12)
    0.64168894792
    """
    total = 0.0
    for one, other in zip(a, b, strict=True):
        total += one * other
    return total


class Hashed:
    """The built-in embedder as an `Embedder`."""

    name = "hashed/1"
    dimension = DIMENSION
    #: Texts that have nothing in common have cosines up to about 0.2: there are only 256 components to fall on.
    floors = Floors(share=0.25, alone=0.5)

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
        return np.array([hashed_vector(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)

    def __repr__(self) -> str:
        return f"<Hashed {self.name!r}>"
