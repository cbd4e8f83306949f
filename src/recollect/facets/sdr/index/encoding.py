"""SDRs, sparse distributed representations: texts as a few active bits of 4096, by their character trigrams.

A text is folded (NFKC, case; code points that are unassigned in Unicode 14 are opaque), its white space is collapsed,
two spaces are added on each side, and each of its trigrams is hashed to a bit. Texts that share wording share bits, in
any language and without a dictionary. The same text gives the same bits on every machine and every Python.

There are two encoders. `RULE` keeps the 80 lowest bits, as the rule of sdr-memory says; its hash is not public, so this
is compatible with the rule, not bit by bit. `WHOLE` keeps all bits, so any part of a text can be found; the lowest 80
bits of a long text represent few of its words (docs/decisions.md has the measurement).

`encoded` encodes one text in plain Python; `encoded_all` encodes many at once in NumPy, with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.text.fnv import OFFSET, PRIME, fnv1a
from recollect.text.unicode import fold

BITS = 4096
BYTES = BITS // 8
_GRAM = 3
_PAD = "  "
#: Maximum texts, and approximate maximum characters, that are encoded at a time; this bounds the working memory.
_PORTION, _PORTION_CHARACTERS = 1024, 1 << 20


class Encoder(NamedTuple):
    """A rule that converts a text to bits.

    Attributes:
        name: The name of the rule.
        most: Number of the lowest active bits that are kept; None for all.
    """

    name: str
    most: int | None


RULE = Encoder("rule", 80)
WHOLE = Encoder("whole", None)


class SparseRows(NamedTuple):
    """The SDRs of some texts, as sparse rows.

    Attributes:
        bits: The active bits of all texts, ascending within each text.
        offsets: The bits of text i are `bits[offsets[i]:offsets[i + 1]]`.
    """

    bits: NDArray[np.uint16]
    offsets: NDArray[np.int64]

    def row(self, index: int) -> NDArray[np.uint16]:
        return self.bits[self.offsets[index] : self.offsets[index + 1]]


def normalised(text: str) -> str:
    """Return the form of a text from which its trigrams are taken, without the padding.

    >>> normalised("  Straße\\tＡＢＣ ")
    'strasse abc'
    """
    return " ".join(fold(text).split())


def grams(text: str) -> list[str]:
    """Return the distinct character trigrams of a text in order of first appearance; none for a blank text.

    >>> grams("Hello")
    ['  h', ' he', 'hel', 'ell', 'llo', 'lo ', 'o  ']
    """
    text = normalised(text)
    if not text:
        return []
    padded = f"{_PAD}{text}{_PAD}"
    return list(dict.fromkeys(padded[at : at + _GRAM] for at in range(len(padded) - _GRAM + 1)))


@lru_cache(maxsize=1 << 16)
def bit_of(gram: str) -> int:
    """Return the bit of a trigram: FNV-1a 64 of its UTF-8, modulo 4096."""
    return fnv1a(gram.encode("utf-8")) % BITS


def encoded(text: str, encoder: Encoder = WHOLE) -> list[int]:
    """Return the active bits of a text, ascending.

    Raises:
        UnicodeEncodeError: The text contains a lone surrogate, which UTF-8 cannot encode.
    """
    return sorted({bit_of(gram) for gram in grams(text)})[: encoder.most]


def encoded_all(texts: Iterable[str], encoder: Encoder = WHOLE) -> SparseRows:
    """Return the SDRs of texts, each the same as `encoded` returns.

    Raises:
        UnicodeEncodeError: A text contains a lone surrogate, which UTF-8 cannot encode.

    Cost:
        One sort of the trigrams, in portions.
    """
    bits, sizes = [np.zeros(0, dtype=np.uint16)], [np.zeros(0, dtype=np.int64)]
    for portion in _portions(texts):
        rows, active = _portion(portion)
        size = np.bincount(rows, minlength=len(portion))
        if encoder.most is not None:
            ranks = np.arange(len(rows)) - np.repeat(np.cumsum(size) - size, size)
            active = active[ranks < encoder.most]
            size = np.minimum(size, encoder.most)
        bits.append(active.astype(np.uint16))
        sizes.append(size)
    return SparseRows(np.concatenate(bits), np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64))


def packed(bits: Sequence[int] | NDArray[np.uint16]) -> bytes:
    """Return an SDR as it is stored: 512 bytes, the first bit is the most significant of the first byte.

    >>> packed([0, 9]).rstrip(bytes(1)).hex()
    '8040'
    """
    flags = np.zeros(BITS, dtype=np.bool_)
    flags[np.asarray(bits, dtype=np.int64)] = True
    return np.packbits(flags).tobytes()


def unpacked(row: bytes) -> list[int]:
    """Return the active bits of a stored SDR, ascending.

    Raises:
        ValueError: `row` does not have 512 bytes.
    """
    if len(row) != BYTES:
        raise ValueError(f"an SDR has {BYTES} bytes, not {len(row)}")
    out: list[int] = np.flatnonzero(np.unpackbits(np.frombuffer(row, dtype=np.uint8))).tolist()
    return out


def shared(question: str, texts: Iterable[str], encoder: Encoder = WHOLE) -> list[list[str]]:
    """Return for each text the trigrams that it shares with a question, in the question's order, to explain a hit.

    Only trigrams whose bit is kept in both are returned, since a dropped bit gives no overlap. (Different trigrams with
    the same bit also share it. Such collisions are not returned.)

    >>> shared("pool", ["Database connection pool exhausted", "Error 500"])
    [[' po', 'poo', 'ool', 'ol '], []]
    """
    query = grams(question)
    kept = set(encoded(question, encoder))
    out = []
    for text in texts:
        theirs, active = set(grams(text)), set(encoded(text, encoder)) & kept
        out.append([gram for gram in query if gram in theirs and bit_of(gram) in active])
    return out


def _portions(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the normalised texts in portions."""
    rest = iter(texts)
    portion: list[str] = []
    characters = 0
    while some := list(islice(rest, _PORTION)):
        for text in map(normalised, some):
            portion.append(text)
            characters += len(text)
            if len(portion) == _PORTION or characters > _PORTION_CHARACTERS:
                yield portion
                portion, characters = [], 0
    if portion:
        yield portion


def _portion(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and bits of the distinct trigrams of normalised texts, sorted."""
    joined = "".join([f"{_PAD}{text}{_PAD}" for text in texts if text])
    sizes = np.array([len(text) + 2 * len(_PAD) if text else 0 for text in texts], dtype=np.int64)
    rows = np.repeat(np.arange(len(texts)), sizes)
    hashes = _hashes(joined)
    inside = rows[: len(hashes)] == rows[_GRAM - 1 :]  # excludes trigrams that extend into the next text
    keys = rows[: len(hashes)][inside] * BITS + (hashes[inside] % BITS)
    keys = keys.astype(np.uint32)  # at most _PORTION * BITS; half as wide sorts twice as fast
    keys.sort()
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    keys = keys[first].astype(np.int64)
    return keys // BITS, keys % BITS


def _hashes(text: str) -> NDArray[np.uint16]:
    """Return the low 16 bits of FNV-1a of each three adjacent characters.

    Multiplication and exclusive or never carry downwards, so the low bits of the hash depend only on the low bits
    before, and 16 bits are more than the 12 that are needed.
    """
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    count = max(len(points) - _GRAM + 1, 0)
    out = np.full(count, OFFSET & 0xFFFF, dtype=np.uint16)
    prime = np.uint16(PRIME & 0xFFFF)
    if not len(points) or points.max() < 0x80:
        low = points.astype(np.uint16)
        for step in range(_GRAM):
            out = (out ^ low[step : step + count]) * prime
        return out
    byte_counts = 1 + (points >= 0x80).astype(np.int8) + (points >= 0x800) + (points >= 0x10000)
    units = _utf8(points, byte_counts)
    for step in range(_GRAM):
        for index, unit in enumerate(units):
            present = byte_counts[step : step + count] > index
            out = np.where(present, (out ^ unit[step : step + count]) * prime, out)
    return out


def _utf8(points: NDArray[np.uint32], sizes: NDArray[np.int8]) -> list[NDArray[np.uint16]]:
    """Return the first, second, third and fourth byte of each code point. Bytes that a code point lacks are undefined.

    Source:
        RFC 3629, section 3.
    """
    leads = np.array([0x00, 0x00, 0xC0, 0xE0, 0xF0], dtype=np.uint16)[sizes]
    out: list[NDArray[np.uint16]] = []
    for index in range(4):
        shift = np.maximum(6 * (sizes.astype(np.int64) - 1 - index), 0).astype(np.uint32)
        part = (points >> shift).astype(np.uint16)
        out.append((part | leads if index == 0 else part & 0x3F | 0x80).astype(np.uint16))
    return out
