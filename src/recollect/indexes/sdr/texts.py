"""Texts by their SDRs: the exact best for a question, by overlap or by the rule of sdr-memory.

By overlap, a text is as good as its best piece (`splitting`). By the rule, a text is one SDR of its 80 lowest bits,
and the score is 1 - hamming / 4096. Equal scores are ranked by the lowest number. Not thread-safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recollect.indexes.fixed_point import SHARE_BITS
from recollect.indexes.sdr.encoding import BITS, RULE, encoded, encoded_all
from recollect.indexes.sdr.index import SdrHit, SdrIndex
from recollect.indexes.sdr.splitting import split

#: The row of a piece is the number of its text times this, plus the number of the piece.
_MOST_PIECES = 1 << 20


class TextHit(NamedTuple):
    """A text that was found.

    Attributes:
        number: Its number.
        score: The score of the ranking, 0 to 1.
        rule_score: 1 - hamming / 4096 of its 80 lowest bits.
    """

    number: int
    score: float
    rule_score: float


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
        bits, rule_bits = encoded(question), set(encoded(question, RULE))
        asked = min(wanted, len(self._texts))
        while True:
            rows = self._index.overlapping(bits, asked) if asked else []
            best: dict[int, SdrHit] = {}
            for row in rows:
                best.setdefault(row.number // _MOST_PIECES, row)
            if len(best) >= wanted or len(rows) < asked or asked >= len(self._index):
                break
            asked = min(2 * asked + 16, len(self._index))  # several were pieces of one text
        hits = list(best.items())[:wanted]
        return [
            TextHit(number, row.score / (1 << SHARE_BITS), _rule_score(rule_bits, self._texts[number]))
            for number, row in hits
        ]

    def nearest(self, question: str, wanted: int) -> list[TextHit]:
        """Return the best texts by the rule of sdr-memory, best first. Every text is compared."""
        if self._rule is None:
            self._rule = SdrIndex()
            self._rule.add_all(list(self._texts), encoded_all(self._texts.values(), RULE))
        found = self._rule.nearest(encoded(question, RULE), min(wanted, len(self._texts)))
        scores = [(hit.number, 1 - hit.hamming / BITS) for hit in found]
        return [TextHit(number, score, score) for number, score in scores]


def _rule_score(question: set[int], text: str) -> float:
    return 1 - len(question ^ set(encoded(text, RULE))) / BITS
