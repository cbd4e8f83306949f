"""Write src/recollect/text/dates/words/movable.json: the days of holidays that follow the moon, from 1990 to 2060.

Each is a month and a day for each year, 0000 for none. They are those of the library `holidays`, which has them from
tables; Islamic ones are estimated there after 2025. The days are fixed here, so that an answer does not depend on the
version of a library.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

from holidays.calendars.chinese import _ChineseLunisolar
from holidays.calendars.hebrew import _HebrewLunisolar
from holidays.calendars.hindu import _HinduLunisolar
from holidays.calendars.islamic import _IslamicLunar

TARGET = Path(__file__).parent.parent / "src/recollect/text/dates/words/movable.json"
YEARS = range(1990, 2061)


def calendars() -> dict[str, Callable[[int], date | None]]:
    chinese, hebrew, hindu, islamic = _ChineseLunisolar(), _HebrewLunisolar(), _HinduLunisolar(), _IslamicLunar()

    def one(found: tuple[date | None, bool]) -> date | None:
        return found[0]

    def first(year: int, found: object) -> date | None:
        return next((day for day, _ in found if day.year == year), None)  # type: ignore[attr-defined]

    return {
        "lunar_new_year": lambda year: one(chinese.lunar_new_year_date(year)),
        "qingming": lambda year: one(chinese.qingming_date(year)),
        "dragon_boat": lambda year: one(chinese.dragon_boat_date(year)),
        "mid_autumn": lambda year: one(chinese.mid_autumn_date(year)),
        "ramadan": lambda year: first(year, islamic.ramadan_beginning_dates(year)),
        "eid_al_fitr": lambda year: first(year, islamic.eid_al_fitr_dates(year)),
        "eid_al_adha": lambda year: first(year, islamic.eid_al_adha_dates(year)),
        "diwali": lambda year: one(hindu.diwali_india_date(year)),
        "hanukkah": lambda year: max((day for day in hebrew.hanukkah_date(year) if day), default=None),
        "passover": hebrew.passover_date,
        "rosh_hashanah": hebrew.rosh_hashanah_date,
        "yom_kippur": hebrew.yom_kippur_date,
    }


def main() -> None:
    table = {
        name: " ".join(f"{day:%m%d}" if day else "0000" for day in map(day_in, YEARS))
        for name, day_in in calendars().items()
    }
    TARGET.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
