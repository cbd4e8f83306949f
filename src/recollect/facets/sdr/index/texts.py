"""Texts by their SDRs: the exact best for a question, by overlap or by the rule of sdr-memory.

By overlap, a text is as good as its best piece (`split`). By the rule, a text is one SDR of its 80 lowest bits,
and the score is 1 - hamming / 4096. Equal scores are ranked by the lowest number. Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recollect.facets.sdr.index.encoding import BITS, RULE, encoded, encoded_all
from recollect.facets.sdr.index.index import FoundRow, SdrIndex
from recollect.indexes.fixed_point import ONE, SHARE_BITS, logistic_of
from recollect.text.pieces import SENTENCE_END

#: The row of a piece is the number of its text times this, plus the number of the piece.
_MOST_PIECES = 1 << 20
#: The score of an overlap o is 1 / (1 + exp(6.65 - 19.27 o)): the probability that the text is from a memory that can
#: answer the question, fitted like the confidence of recall (`scripts/fit_confidence.py DATA sdr`).
_CALIBRATED = logistic_of(ONE, "6.65", "19.27")


class TextHit(NamedTuple):
    """A text that was found.

    Attributes:
        score: The score of the ranking, 0 to 1. By overlap it is calibrated: see `_CALIBRATED`.
        rule_score: 1 - hamming / 4096 of its 80 lowest bits.
        overlap: The overlap of its best piece, in (0, 1]; 0 if it was not computed.
    """

    number: int
    score: float
    rule_score: float
    overlap: float = 0.0


class SdrTexts:
    """Texts by number.

    Args:
        texts: The texts, by numbers below 2^40.
    """

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._pieces = {number: len(split(text)) for number, text in texts.items()}
        self._index = SdrIndex()
        rows, pieces = [], []
        for number, text in texts.items():
            for at, piece in enumerate(split(text)):
                rows.append(number * _MOST_PIECES + at)
                pieces.append(piece)
        self._index.add_all(rows, encoded_all(pieces))
        self._rule: SdrIndex | None = None  # until it is asked for
        self._texts = dict(texts)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def rows(self) -> int:
        """The number of SDRs."""
        return len(self._index)

    def put(self, number: int, text: str) -> None:
        """Insert a text, or replace it."""
        self.remove(number)
        pieces = split(text)
        self._index.add_all([number * _MOST_PIECES + at for at in range(len(pieces))], encoded_all(pieces))
        self._pieces[number] = len(pieces)
        self._texts[number] = text
        if self._rule is not None:
            self._rule.add(number, encoded(text, RULE))

    def remove(self, number: int) -> None:
        """Remove a text, if it is there."""
        if self._texts.pop(number, None) is None:
            return
        for at in range(self._pieces.pop(number)):
            self._index.remove(number * _MOST_PIECES + at)
        if self._rule is not None:
            self._rule.remove(number)

    def overlapping(self, question: str, wanted: int) -> list[TextHit]:
        """Return the best texts by overlap (`sdr.index`), best first."""
        bits = encoded(question)
        asked = min(wanted, len(self._texts))
        while True:
            rows = self._index.overlapping(bits, asked) if asked else []
            best: dict[int, FoundRow] = {}
            for row in rows:
                best.setdefault(row.number // _MOST_PIECES, row)
            if len(best) >= wanted or len(rows) < asked or asked >= len(self._index):
                break
            asked = min(2 * asked + 16, len(self._index))  # several were pieces of one text
        hits = list(best.items())[:wanted]
        rule_scores = _rule_scores(question, [self._texts[number] for number, _ in hits])
        return [
            TextHit(number, _CALIBRATED(row.score), rule_score, row.score / (1 << SHARE_BITS))
            for (number, row), rule_score in zip(hits, rule_scores, strict=True)
        ]

    def nearest(self, question: str, wanted: int) -> list[TextHit]:
        """Return the best texts by the rule of sdr-memory, best first. Every text is compared."""
        if self._rule is None:
            self._rule = SdrIndex()
            self._rule.add_all(list(self._texts), encoded_all(self._texts.values(), RULE))
        found = self._rule.nearest(encoded(question, RULE), min(wanted, len(self._texts)))
        scores = [(hit.number, 1 - hit.hamming / BITS) for hit in found]
        return [TextHit(number, score, score) for number, score in scores]


def _rule_scores(question: str, texts: Sequence[str]) -> list[float]:
    asked, codes = np.array(encoded(question, RULE)), encoded_all(texts, RULE)
    different = (len(np.setxor1d(asked, codes.row(at), assume_unique=True)) for at in range(len(texts)))
    return [1 - count / BITS for count in different]


# Splitting: a long text as pieces that get an SDR each, so that any part of it is found like a short text.

#: Maximum number of characters of a piece.
LONGEST = 400
#: A piece is not ended before this many characters, if it can be longer.
_LEAST = 200


def split(text: str) -> list[str]:
    """Return the pieces of a text: as few as possible, each at most `LONGEST` characters, ended after a sentence if
    there is one, else at a blank.

    >>> split("One. Two."), [len(piece) for piece in split("word " * 100)]
    (['One. Two.'], [399, 99])
    >>> split(" ")
    []
    """
    return [piece for piece in map(str.strip, _split(text)) if piece]


def _split(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > LONGEST:
        window = text[start : start + LONGEST]
        ends = [found.end() for found in SENTENCE_END.finditer(window, _LEAST)]
        blanks = [at for at in range(len(window) - 1, _LEAST, -1) if window[at].isspace()][:1]
        end = ends[-1] if ends else blanks[0] if blanks else LONGEST
        yield window[:end]
        start += end
    yield text[start:]
