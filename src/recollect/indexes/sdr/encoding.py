"""SDRs: sparse distributed representations, texts as a few active bits of 4096, by their character trigrams.

A text is folded (NFKC, case; what Unicode 14 does not know is opaque), its white space collapsed, two spaces put on
each side, and every trigram of it hashed to a bit. Texts that share wording share bits, whatever their language, and
no dictionary is asked. The same text gives the same bits on every machine and every Python.

Two encoders. `RULE` keeps the 80 lowest bits, as the rule of sdr-memory says; its hash is not public, so this is
compatible with the rule, not bit by bit. `WHOLE` keeps all bits, so any part of a text is found in it: the lowest 80
of a long text say nothing of most of its words (docs/decisions.md has the measurement).

`encoded` does one text in plain Python; `encoded_all` many at once in NumPy, with the same bits.
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
#: Texts are encoded in portions of so many and at most about so many characters, which bounds what is worked on.
_PORTION, _PORTION_CHARACTERS = 1024, 1 << 20


class Encoder(NamedTuple):
    """How a text becomes bits.

    most  of the active bits the lowest so many are kept; None for all
    """

    name: str
    most: int | None


RULE = Encoder("rule", 80)
WHOLE = Encoder("whole", None)


class Sdrs(NamedTuple):
    """The SDRs of some texts, as sparse rows.

    bits     the active bits of all, those of each text rising
    offsets  the bits of text i are `bits[offsets[i]:offsets[i + 1]]`
    """

    bits: NDArray[np.uint16]
    offsets: NDArray[np.int64]

    def row(self, place: int) -> NDArray[np.uint16]:
        return self.bits[self.offsets[place] : self.offsets[place + 1]]


def normalised(text: str) -> str:
    """The text as its trigrams are taken, without the padding.

    >>> normalised("  Straße\\tＡＢＣ ")
    'strasse abc'
    """
    return " ".join(fold(text).split())


def grams(text: str) -> list[str]:
    """The distinct character trigrams of a text, in the order of their first appearance; none of one that is blank.

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
    """The bit of a trigram: FNV-1a 64 of its UTF-8, modulo 4096."""
    return fnv1a(gram.encode("utf-8")) % BITS


def encoded(text: str, encoder: Encoder = WHOLE) -> list[int]:
    """The active bits of a text, rising.

    Raises: UnicodeEncodeError for a lone surrogate, which no UTF-8 can carry.
    """
    return sorted({bit_of(gram) for gram in grams(text)})[: encoder.most]


def encoded_all(texts: Iterable[str], encoder: Encoder = WHOLE) -> Sdrs:
    """The SDRs of texts, each as `encoded` gives it.

    Raises: UnicodeEncodeError for a lone surrogate, which no UTF-8 can carry.
    Cost:   one sort of the trigrams, in portions.
    """
    bits, sizes = [np.zeros(0, dtype=np.uint16)], [np.zeros(0, dtype=np.int64)]
    for portion in _portions(texts):
        rows, active = _portion(portion)
        size = np.bincount(rows, minlength=len(portion))
        if encoder.most is not None:
            places = np.arange(len(rows)) - np.repeat(np.cumsum(size) - size, size)
            active = active[places < encoder.most]
            size = np.minimum(size, encoder.most)
        bits.append(active.astype(np.uint16))
        sizes.append(size)
    return Sdrs(np.concatenate(bits), np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64))


def packed(bits: Sequence[int] | NDArray[np.uint16]) -> bytes:
    """An SDR as it is stored: 512 bytes, the first bit the most significant of the first byte.

    >>> packed([0, 9]).rstrip(bytes(1)).hex()
    '8040'
    """
    flags = np.zeros(BITS, dtype=np.bool_)
    flags[np.asarray(bits, dtype=np.int64)] = True
    return np.packbits(flags).tobytes()


def unpacked(row: bytes) -> list[int]:
    """The active bits of a stored SDR, rising.

    Raises: ValueError where it has not 512 bytes.
    """
    if len(row) != BYTES:
        raise ValueError(f"an SDR has {BYTES} bytes, not {len(row)}")
    out: list[int] = np.flatnonzero(np.unpackbits(np.frombuffer(row, dtype=np.uint8))).tolist()
    return out


def shared(question: str, texts: Iterable[str], encoder: Encoder = WHOLE) -> list[list[str]]:
    """For each text the trigrams that it shares with a question, in the question's order: why it is a hit.

    Only those whose bit is kept in both: what an encoder drops gives no overlap. (Bits can also be shared by different
    trigrams that fall on the same one. That is chance, and no reason.)

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
    """The texts, normalised, in portions."""
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
    """Rows and bits of the trigrams of normalised texts, each once, sorted."""
    joined = "".join([f"{_PAD}{text}{_PAD}" for text in texts if text])
    sizes = np.array([len(text) + 2 * len(_PAD) if text else 0 for text in texts], dtype=np.int64)
    rows = np.repeat(np.arange(len(texts)), sizes)
    hashes = _hashes(joined)
    whole = rows[: len(hashes)] == rows[_GRAM - 1 :]  # a trigram that reaches into the next text is none
    keys = rows[: len(hashes)][whole] * BITS + (hashes[whole] % BITS)
    keys = keys.astype(np.uint32)  # at most _PORTION * BITS; half as wide sorts twice as fast
    keys.sort()
    first = np.ones(len(keys), dtype=np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    keys = keys[first].astype(np.int64)
    return keys // BITS, keys % BITS


def _hashes(text: str) -> NDArray[np.uint16]:
    """The low 16 bits of FNV-1a of each three characters side by side.

    Multiplying and exclusive or never carry downwards, so the low bits of the hash need only the low bits of what came
    before, and 16 bits hold more than the 12 that are wanted.
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
    encoded_in = 1 + (points >= 0x80).astype(np.int8) + (points >= 0x800) + (points >= 0x10000)
    units = _utf8(points, encoded_in)
    for step in range(_GRAM):
        for place, unit in enumerate(units):
            there = encoded_in[step : step + count] > place
            out = np.where(there, (out ^ unit[step : step + count]) * prime, out)
    return out


def _utf8(points: NDArray[np.uint32], sizes: NDArray[np.int8]) -> list[NDArray[np.uint16]]:
    """The first, second, third and fourth byte of each code point; of those that it has not, anything.

    Source: RFC 3629, section 3.
    """
    leads = np.array([0x00, 0x00, 0xC0, 0xE0, 0xF0], dtype=np.uint16)[sizes]
    out: list[NDArray[np.uint16]] = []
    for place in range(4):
        shift = np.maximum(6 * (sizes.astype(np.int64) - 1 - place), 0).astype(np.uint32)
        part = (points >> shift).astype(np.uint16)
        out.append((part | leads if place == 0 else part & 0x3F | 0x80).astype(np.uint16))
    return out
