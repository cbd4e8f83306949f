"""The background: how often words occur in general language, as texts that stand beside those of a memory.

In a memory of thirty facts "want" is as rare as "Kubernetes". So the rarity of a word is that in the memory's texts and
in 300 more of 40 words each, in which it is as frequent as in general language. In a large memory they weigh little.

The frequencies are in `frequencies/LANGUAGE.bin`, made by `scripts/make_frequencies.py`: MAGIC; then unsigned integers
of 32 bits, little-endian: the number of levels, the number of stems, for each level the expected number of texts, for
each level the expected number of occurrences (both times SCALE), and the hashes of the stems, ascending; then a byte
for each stem, its level. The files have a licence of their own, `frequencies/LICENSE.txt`.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from functools import cache
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

MAGIC = b"recollect.words\0"
#: The number of texts, and of words of each.
TEXTS, WORDS = 300, 40
#: The numbers of texts and occurrences are multiples of 1 / SCALE.
SCALE = 16


#: The beginnings of the SHA-256 of the files, by language. They are part of the rules that decide a score.
DIGESTS = {
    "da": "01e29fbc291b043e",
    "de": "f959ded375338618",
    "en": "89fa2f7e317f719f",
    "es": "4306701a223625d7",
    "fi": "b9e972e3b71dbd1a",
    "fr": "6e3a5f4cc1dd0964",
    "hu": "85f7fd6b0a1166a9",
    "it": "b13b48b536a446ec",
    "nl": "8672898a3fbd95c8",
    "no": "34c694662f62be36",
    "pt": "658fe55c309d21d8",
    "ro": "bbfc1a00feea6375",
    "ru": "6dc7286f4e522a79",
    "sv": "33e32a946d2f49a0",
    "tr": "9fd6bfb44f66f3f9",
}


class Expected(NamedTuple):
    """How often a word is expected in the background, times SCALE.

    Attributes:
        texts: The number of texts.
        occurrences: The number of occurrences.
    """

    texts: int
    occurrences: int


#: A word that is not among the frequent ones of its language.
RARE = Expected(0, 0)


class Background:
    """The background in a language."""

    def __init__(self, data: bytes) -> None:
        assert data.startswith(MAGIC)
        body = data[len(MAGIC) :]
        levels, stems = _numbers(body[:8])
        numbers = _numbers(body[8 : 4 * (2 + 2 * levels + stems)])
        self._levels = list(map(Expected, numbers[:levels], numbers[levels : 2 * levels]))
        self._keys = numbers[2 * levels :]
        self._level = body[4 * (2 + 2 * levels + stems) :]

    def expected(self, stem: str) -> Expected:
        """Return how often a stem is expected.

        >>> want, rare = background_of("en").expected("want"), background_of("en").expected("kubernet")
        >>> want.texts > 16 * SCALE, rare
        (True, Expected(texts=0, occurrences=0))

        Cost:
            O(log stems).
        """
        key = key_of(stem)
        at = bisect_left(self._keys, key)
        return self._levels[self._level[at]] if at < len(self._keys) and self._keys[at] == key else RARE


def key_of(stem: str) -> int:
    """Return the hash of a stem."""
    return crc32(stem.encode("utf-8", "surrogatepass"))


def _numbers(data: bytes) -> array[int]:
    numbers = array("I", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def file_of(language: str) -> Path:
    """Return the file of a language."""
    return Path(__file__).parent / "frequencies" / f"{language}.bin"


@cache
def background_of(language: str) -> Background | None:
    """Return the background in a language (`languages.CODES`); None for another one."""
    return Background(file_of(language).read_bytes()) if language in DIGESTS else None
