"""Fixed-point arithmetic, judged by arithmetic of fifty digits."""

from __future__ import annotations

import decimal
import math
import threading
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.indexes.fixed_point import BITS, ONE, SHARE_BITS, log_ratio, logistic_of

FIFTY = decimal.Context(prec=50)
numbers = st.integers(1, 10**12) | st.integers(1, 300)


def exact(above: int, below: int) -> Decimal:
    return FIFTY.multiply(FIFTY.subtract(FIFTY.ln(Decimal(above)), FIFTY.ln(Decimal(below))), Decimal(2**16))


class TestLogRatio:
    def test_sixteen_bits_stand_behind_the_point(self) -> None:
        assert (BITS, ONE, SHARE_BITS) == (16, 65_536, 30)
        assert log_ratio(7, 7) == 0
        assert log_ratio(2, 1) == 45_426  # 0.693147... * 65536 = 45426.09...
        assert log_ratio(1, 2) == -45_426
        assert log_ratio(10**12, 1) == 1_810_827  # 27.631021115928... * 65536 = 1810826.6...

    @given(numbers, numbers)
    def test_it_is_within_half_a_unit_of_the_last_place(self, above: int, below: int) -> None:
        assert abs(log_ratio(above, below) - exact(above, below)) <= Decimal("0.5")

    @pytest.mark.parametrize("around", [1, 2, 3, 1000, 65_536, 10**9, 10**15])
    def test_it_is_so_for_ratios_near_one(self, around: int) -> None:
        for above in range(around, around + 20):
            assert abs(log_ratio(above, around) - exact(above, around)) <= Decimal("0.5")

    def test_it_is_so_for_every_small_number_however_near_the_half_it_falls(self) -> None:
        for above in range(1, 6_000):
            assert abs(log_ratio(above, 1) - exact(above, 1)) <= Decimal("0.5")

    @given(numbers, numbers, st.integers(1, 1000))
    def test_it_grows_with_what_stands_above(self, above: int, below: int, more: int) -> None:
        assert log_ratio(above + more, below) >= log_ratio(above, below)
        assert log_ratio(above, below + more) <= log_ratio(above, below)

    @given(numbers, numbers, st.integers(1, 1000))
    def test_only_the_ratio_counts(self, above: int, below: int, times: int) -> None:
        assert log_ratio(above * times, below * times) == log_ratio(above, below)


class TestLogistic:
    @pytest.mark.parametrize("f", [0.0, 0.8, 1.0, 1.2, 1.5445205, 2.5, 7.0])
    def test_it_is_the_calibration_of_the_specification(self, f: float) -> None:
        # P = 1 / (1 + exp(4.51 - 2.92 f)), f = score * sqrt(mass)
        score, mass = round(f / 2 * 2**30), 4 * 2**16
        expected = 1 / (1 + math.exp(4.51 - 2.92 * f))
        assert logistic_of(mass, "4.51", "2.92")(score) == pytest.approx(expected, abs=2e-6)

    def test_half_lies_where_the_exponent_is_zero(self) -> None:
        assert logistic_of(2**16, "2.5", "2.5")(2**30) == 0.5
        assert logistic_of(0, "0", "1")(0) == 0.5

    @given(st.integers(0, 2**31), st.integers(0, 2**24), st.integers(0, 2**20))
    def test_it_is_monotone_in_score_and_mass_and_a_probability(self, score: int, mass: int, more: int) -> None:
        chance = logistic_of(mass, "4.51", "2.92")(score)
        assert 0.0 <= chance <= logistic_of(mass, "4.51", "2.92")(score + more) <= 1.0
        assert chance <= logistic_of(mass + more, "4.51", "2.92")(score)

    @given(st.integers(0, 2**31), st.integers(0, 2**24))
    def test_it_has_six_decimals(self, score: int, mass: int) -> None:
        chance = logistic_of(mass, "4.51", "2.92")(score)
        assert chance == round(chance, 6)

    @pytest.mark.parametrize(("score", "mass"), [(2**40, 2**40), (0, 0), (2**62, 2**40)])
    def test_the_ends_are_reached_without_an_error(self, score: int, mass: int) -> None:
        assert logistic_of(mass, "4.51", "2.92")(score) in (0.010879, 1.0)  # 1 / (1 + 90.9218...)


def test_the_callers_decimal_context_changes_nothing() -> None:
    """The context belongs to the thread: someone else's precision must not reach a score."""
    expected = (log_ratio(10**6, 7), logistic_of(2**18, "4.51", "2.92")(2**29))
    odd = decimal.Context(prec=3, rounding=decimal.ROUND_UP, Emin=-5, Emax=5, traps=[decimal.Inexact, decimal.Rounded])
    with decimal.localcontext(odd):
        log_ratio.cache_clear()
        assert (log_ratio(10**6, 7), logistic_of(2**18, "4.51", "2.92")(2**29)) == expected


def test_threads_get_the_same_numbers() -> None:
    expected = {n: log_ratio(n, 3) for n in range(1, 2000)}
    log_ratio.cache_clear()
    wrong: list[int] = []

    def work() -> None:
        wrong.extend(n for n in range(1, 2000) if log_ratio(n, 3) != expected[n])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
