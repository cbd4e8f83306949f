"""Fixed-point arithmetic for scores: integers, so that sums are the same in any order and on every machine.

Logarithms and exponentials are correctly rounded, so they do not depend on the platform's libm, whose last bits differ.
The result of libm is used only if none of its possible errors could change the rounding. Otherwise `decimal` computes
the value; its results are correctly rounded by specification (General Decimal Arithmetic, ln and exp).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache

#: Bits of fraction of masses and weights.
BITS = 16
ONE = 1 << BITS
#: Bits of fraction of the shares of a score.
SHARE_BITS = 30
#: At least this far from a tie, rounding is safe: the errors of a few floating-point steps are far smaller, even after
#: multiplication by 2^16 for a logarithm or 10^6 for a probability.
_SAFE = 2.0**-20
_CONTEXT = Context(prec=24, rounding=ROUND_HALF_EVEN)


@lru_cache(maxsize=65_536)
def log_ratio(above: int, below: int) -> int:
    """Return ln(above / below) with 16 bits of fraction, rounded to nearest, for positive integers.

    >>> log_ratio(1, 1), round(log_ratio(10, 1) / ONE, 4)
    (0, 2.3026)
    """
    rough = (math.log(above) - math.log(below)) * ONE
    # Logarithms of integers below 2^64 are below 45, so errors in their last digits are far below this distance.
    if above < 1 << 64 and below < 1 << 64 and abs(abs(rough) % 1 - 0.5) > _SAFE:
        return round(rough)
    ratio = _CONTEXT.divide(Decimal(above), Decimal(below))
    # Every step uses this module's context: operators would use the caller's, which may have any precision.
    return int(_CONTEXT.to_integral_value(_CONTEXT.multiply(_CONTEXT.ln(ratio), Decimal(ONE))))


def logistic(score: int, mass: int, offset: str, slope: str) -> float:
    """Return 1 / (1 + exp(offset - slope f)) with f = score sqrt(mass), rounded to six decimals.

    Args:
        score: The score, with SHARE_BITS of fraction.
        mass: The mass of the question, with BITS of fraction.
        offset: A decimal number.
        slope: A decimal number.
    """
    return logistic_of(mass, offset, slope)(score)


def logistic_of(mass: int, offset: str, slope: str) -> Callable[[int], float]:
    """Return `logistic` as a function of the score; what does not depend on the score is computed once."""
    root, begin, steepness = math.sqrt(mass / ONE), float(offset), float(slope)

    def probability(score: int) -> float:
        rough = 1e6 / (1 + math.exp(min(begin - steepness * (score / (1 << SHARE_BITS) * root), 700.0)))
        if abs(rough % 1 - 0.5) > _SAFE:
            return round(rough) / 1e6
        return _exact_logistic(score, mass, offset, slope)

    return probability


def _exact_logistic(score: int, mass: int, offset: str, slope: str) -> float:
    context = _CONTEXT
    f = context.multiply(
        context.divide(Decimal(score), Decimal(1 << SHARE_BITS)),
        context.sqrt(context.divide(Decimal(mass), Decimal(ONE))),
    )
    power = context.exp(context.subtract(Decimal(offset), context.multiply(Decimal(slope), f)))
    probability = context.divide(Decimal(1), context.add(Decimal(1), power))
    return float(context.quantize(probability, Decimal("0.000001")))
