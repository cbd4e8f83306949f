"""The words and rules of dates, compared with the tables of other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import holidays
import pytest
from babel import Locale
from dateutil.easter import easter as easter_of_dateutil
from num2words import num2words

from recollect.text.dates.holidays import easter, holiday
from recollect.text.dates.lexicon import CODES, lexicon

YEARS = range(1990, 2061)


def values(code: str, text: str, category: str) -> list[object]:
    """The values of the words of a text that have a category."""
    return [word.of[category] for word in lexicon(code).divided(text) if category in word.of]


@pytest.mark.parametrize("code", CODES)
def test_months_and_days_of_the_week_are_those_of_cldr(code: str) -> None:
    locale = Locale(code)
    for number, name in locale.months["format"]["wide"].items():
        assert values(code, f"in {name}" if code not in ("zh", "ja") else name, "MONTH") == [number]
    for number, name in locale.days["format"]["wide"].items():
        assert values(code, name.lower(), "WEEKDAY") == [number]


@pytest.mark.parametrize("code", [code for code in CODES if code != "zh"])
def test_numbers_in_words_to_ninety_nine_are_those_of_num2words(code: str) -> None:
    unit = "天" if code == "ja" else " x"
    for number in range(1, 100):
        assert values(code, f"{num2words(number, lang=code)}{unit}", "NUM") == [number], number


@pytest.mark.parametrize("code", ["en", "de", "nl"])
def test_ordinal_numbers_to_thirty_one_are_those_of_num2words(code: str) -> None:
    for number in range(1, 32):
        written = num2words(number, to="ordinal", lang=code)
        assert values(code, written, "ORD") == [number], written


def test_easter_is_that_of_another_implementation() -> None:
    assert [easter(year) for year in range(1900, 2100)] == [easter_of_dateutil(year) for year in range(1900, 2100)]


#: Our holidays, the country whose calendar has them, and their names there.
SAME = {
    "christmas_day": ("US", "Christmas Day"),
    "second_christmas_day": ("DE", "Second Day of Christmas"),
    "new_year": ("US", "New Year's Day"),
    "epiphany": ("IT", "Epiphany"),
    "mlk_day": ("US", "Martin Luther King Jr. Day"),
    "presidents_day": ("US", "Washington's Birthday"),
    "memorial_day": ("US", "Memorial Day"),
    "independence_us": ("US", "Independence Day"),
    "labor_day_us": ("US", "Labor Day"),
    "columbus_day": ("US", "Columbus Day"),
    "veterans_day": ("US", "Veterans Day"),
    "thanksgiving": ("US", "Thanksgiving Day"),
    "labour_day_may": ("DE", "Labor Day"),
    "good_friday": ("DE", "Good Friday"),
    "easter_monday": ("DE", "Easter Monday"),
    "ascension": ("DE", "Ascension Day"),
    "pentecost_monday": ("DE", "Pentecost Monday"),
    "unity_de": ("DE", "German Unity Day"),
    "bastille": ("FR", "National Day"),
    "victory_fr": ("FR", "Victory Day"),
    "assumption": ("FR", "Assumption Day"),
    "all_saints": ("FR", "All Saints' Day"),
    "king_day_nl": ("NL", "King's Day"),
    "liberation_it": ("IT", "Liberation Day"),
    "republic_it": ("IT", "Republic Day"),
    "immaculate": ("IT", "Immaculate Conception"),
    "st_stephen": ("IT", "Saint Stephen's Day"),
    "corpus_christi": ("AT", "Corpus Christi"),
    "national_at": ("AT", "National Day"),
    "freedom_pt": ("PT", "Freedom Day"),
    "tiradentes": ("BR", "Tiradentes' Day"),
    "independence_br": ("BR", "Independence Day"),
    "republic_br": ("BR", "Republic Proclamation Day"),
    "aparecida": ("BR", "Our Lady of Aparecida"),
    "all_souls": ("BR", "All Souls' Day"),
    "canada_day": ("CA", "Canada Day"),
    "coming_of_age_jp": ("JP", "Coming of Age Day"),
    "culture_jp": ("JP", "Culture Day"),
    "childrens_jp": ("JP", "Children's Day"),
    "national_cn": ("CN", "National Day"),
    "lunar_new_years_day": ("CN", "Chinese New Year (Spring Festival)"),
    "tomb_sweeping": ("CN", "Tomb-Sweeping Day"),
    "dragon_boat_festival": ("CN", "Dragon Boat Festival"),
    "mid_autumn_festival": ("CN", "Mid-Autumn Festival"),
}


def days_of(country: str, name: str) -> Iterator[date]:
    found = holidays.country_holidays(country, years=range(2014, 2027), language="en_US")
    yield from (day for day, names in found.items() if name in names.split("; "))


@pytest.mark.parametrize("name", SAME)
def test_holidays_are_those_of_the_library_of_holidays(name: str) -> None:
    """In the years in which the library has them: some are younger than its first one, or fall on another holiday."""
    country, written = SAME[name]
    theirs = set(days_of(country, written))
    ours = {holiday(name).days(year)[0] for year in {day.year for day in theirs}}
    assert len(theirs) >= 8
    assert ours <= theirs, sorted(ours - theirs)


def test_a_holiday_on_another_day_is_found() -> None:
    assert {holiday("halloween").days(2025)[0]}.isdisjoint(days_of("US", "Christmas Day"))


def test_holidays_of_several_days_have_their_first_last_and_main_day() -> None:
    assert holiday("easter").days(2026) == (date(2026, 4, 3), date(2026, 4, 6))
    assert holiday("easter").main_day(2026) == (date(2026, 4, 5),) * 2
    assert holiday("turn_of_year").days(2025) == (date(2025, 12, 31), date(2026, 1, 1))
    assert holiday("advent_1").days(2026) == (date(2026, 11, 29),) * 2


def test_a_holiday_that_follows_the_moon_has_no_day_outside_of_its_table() -> None:
    with pytest.raises(ValueError, match="no such year"):
        holiday("fast_of_ramadan").days(2100)
