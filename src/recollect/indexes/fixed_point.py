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

import numpy as np
from numpy.typing import NDArray

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


@lru_cache(maxsize=1)
def _roots() -> tuple[int, ...]:
    """Return 2^-(1/2), 2^-(1/4), ..., one for each of BITS, with SHARE_BITS of fraction."""
    roots, root = [], _CONTEXT.divide(Decimal(1), Decimal(2))
    for _ in range(BITS):
        root = _CONTEXT.sqrt(root)
        scaled = _CONTEXT.multiply(root, Decimal(1 << SHARE_BITS))
        roots.append(int(_CONTEXT.to_integral_value(scaled)))
    return tuple(roots)


def halved(ages: NDArray[np.int64], half_life: int) -> NDArray[np.int64]:
    """Return 2^-(age / half_life) with SHARE_BITS of fraction: 1 for an age of 0, half of that after each half-life.

    >>> [value / 2**30 for value in halved(np.array([0, 5, 10, 20, 10**15]), 10).tolist()]
    [1.0, 0.7071067811921239, 0.5, 0.25, 0.0]

    Args:
        ages: Ages, 0 or more.
        half_life: The half-life in the same unit, at least 1. It is used with 16 bits of fraction.
    """
    whole, rest = np.divmod(ages, half_life)
    # `rest` is below the half-life: both are shifted down together, so that the product fits.
    down = max(half_life.bit_length() - 46, 0)
    fraction = ((rest >> down) << BITS) // max(half_life >> down, 1)
    out = np.full(ages.shape, 1 << SHARE_BITS, dtype=np.int64)
    for bit, root in enumerate(_roots(), 1):
        out = np.where(fraction >> (BITS - bit) & 1, out * root >> SHARE_BITS, out)
    shifted: NDArray[np.int64] = out >> np.minimum(whole, SHARE_BITS + 1)
    return shifted


def logistic_of(mass: int, offset: str, slope: str) -> Callable[[int], float]:
    """Return the function from a score to 1 / (1 + exp(offset - slope f)) with f = score sqrt(mass), to six decimals.

    The score has SHARE_BITS of fraction.

    Args:
        mass: The mass of the question, with BITS of fraction.
        offset: A decimal number.
        slope: A decimal number.
    """
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
