"""Concise answers: those of the best hits that add something to the ones before them.

Ten hits for every question are many times the tokens of the one or two that answer it. How many those are differs: the
scores of some questions fall steeply after the first hit, those of others hardly. So each hit weighs the cube of its
score, and is kept as long as the hits before it have at most a part of the weight of all. A hit that covers more of the
question than those before it, such as another word, a date or the meaning, may come later. The constants were fitted to
keep 95 per cent of the evidence that ten hits have, with as few as possible (`python -m bench.concise`).
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.engine.results import Hit, LeftOut
from recollect.indexes.fixed_point import SHARE_BITS

#: The part of the weight of all hits that those before a hit may have, in hundredths, and what is added to it for a hit
#: that covers all of the question, when those before it cover nothing.
MOST, _MORE_FOR_NEW = 86, 30
#: The signals that cover a part of the question, beside its words.
_SIGNALS = ("date", "speaker", "dense")
#: A hit adds to the question if it covers at least this part of it, in hundredths: for the reason that is stated.
_SOMETHING = 1


def concise(hits: Sequence[Hit], most: int = MOST) -> tuple[tuple[Hit, ...], tuple[LeftOut, ...]]:
    """Return the hits that are kept, and the others with the reasons; all are best first.

    Args:
        hits: Hits of one question, best first.
        most: The part of the weight of all hits that those before a hit may have, in hundredths.

    Cost:
        O(hits x words).
    """
    weights = [_integer(hit.score) ** 3 for hit in hits]
    covering = [_covered(hit) for hit in hits]
    best: dict[str, int] = {}
    for each in covering:
        for part, amount in each.items():
            best[part] = max(best.get(part, 0), amount)
    whole, total = max(sum(best.values()), 1), max(sum(weights), 1)
    kept, left_out = [], []
    covered: dict[str, int] = {}
    before = 0
    for hit, weight, each in zip(hits, weights, covering, strict=True):
        new = sum(max(amount - covered.get(part, 0), 0) for part, amount in each.items())
        if 100 * before * whole <= (most * whole + _MORE_FOR_NEW * new) * total:
            kept.append(hit)
            for part, amount in each.items():
                covered[part] = max(covered.get(part, 0), amount)
        else:
            adds = 100 * new >= _SOMETHING * whole
            reason = "it adds little to the hits before it" if adds else "the hits before it cover what it does"
            left_out.append(LeftOut(hit.record.id, hit.score, hit.confidence, reason))
        before += weight
    return tuple(kept), tuple(left_out)


def _covered(hit: Hit) -> dict[str, int]:
    """Return how much of each part of the question a hit covers: of its words, its date, its speaker, its meaning."""
    out: dict[str, int] = {}
    for word in hit.why.words:
        out[word.word] = out.get(word.word, 0) + _integer(word.score)
    shares = hit.why.shares
    return {**out, **{f"\0{name}": _integer(shares[name]) for name in _SIGNALS if shares.get(name, 0.0) > 0}}


def _integer(score: float) -> int:
    """Return a score in the units in which it is an integer."""
    return int(score * (1 << SHARE_BITS))
