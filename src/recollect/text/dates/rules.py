"""The rules by which the words of a date become a time: dates, ordinals, what is relative to today or to a day, ranges.

The rules are the same in all languages. A language whose words have none of the categories of a rule does not use it.
`grammar` has how patterns are written, words/*.json has the categories of words, and `meanings` and `relations` what
becomes of them.
"""

from __future__ import annotations

from recollect.text.dates import meanings as m
from recollect.text.dates import relations as r
from recollect.text.dates.grammar import Rule

_X = "FIXED|YEARLY|YEAR"
_POINT = f"{_X}|SUREDAY|WEEKDAY"
_PART = "UNIT|WEEKDAY|HALFWORD"
RULES: tuple[Rule, ...] = (
    # No dates
    Rule("every num|ord? UNIT|WEEKDAY|WEEKDAYS|YEARLY|DAYPART", m.none),
    Rule("designator NUMERIC|YEAR|YEARMONTH|YEARS|DAY|CLOCK|NUM", m.none),
    Rule("< ambiguous > other|designator", m.none),
    # In digits
    Rule("NUMERIC", m.numeric),
    Rule("on|in|of|from|to|since|before|after|until|between|and < DASHED >", m.numeric),
    Rule("SEASON of? YEARS|YEARMONTH", m.season_of_years),
    Rule("YEARMONTH", m.yearmonth),
    Rule("DAYANDMONTH", m.day_and_month),
    Rule("YEARS", m.years),
    Rule("DECADE", m.decade),
    # Days of a month
    Rule("between the? weekday? DAY and|dash the? weekday? DAY of? MONTH", m.days_of_month),
    Rule("from? the? weekday? DAY to|dash|until the? weekday? DAY of? MONTH", m.days_of_month),
    Rule("between MONTH dot? the? DAY and the? DAY", m.days_of_month, (1, 2, 0)),
    Rule("from? MONTH dot? the? DAY to|dash|until the? DAY untilpost?", m.days_of_month, (1, 2, 0)),
    Rule("DAY of? MONTH", m.day_of_month),
    Rule("MONTH dot? the? DAY", m.day_of_month, (1, 0)),
    # A year beside a time
    Rule("UNIT YEAR", m.year_by_number),
    Rule("YEARLY dot? comma? of|in|slash? YEAR", m.in_year),
    Rule("YEARLY of|in? SHORTYEAR", m.in_year),
    Rule("YEAR of|slash|dash? YEARLY", m.in_year, (1, 0)),
    Rule("YEARLY of|in|comma? the? OFYEAR", m.in_year),
    Rule("OFYEAR of|in|comma* the? YEARLY", m.in_year, (1, 0)),
    Rule("WEEKDAY dot? comma? the? DATE", m.weekday_and_date),
    Rule("weekday dot? comma? OFDAY", m.same),
    Rule("NEAR", m.near),
    # Days of the week
    Rule("between the|on* WEEKDAY and the|on* WEEKDAY", r.weekrange),
    Rule("from? the|on* WEEKDAY to|until|dash the|on* WEEKDAY untilpost?", r.weekrange),
    # Numbers of units
    Rule("NUM and the|num? halfword UNIT", m.number_and_a_half),
    Rule("~ord < num? halfword num? UNIT >", m.half_unit),
    Rule("NUM UNIT", m.counted),
    Rule("COUNTED and? the|num? halfword", m.and_a_half),
    # Parts of a time
    Rule(f"ORD COUNTED of|in* the? {_X}", m.nth_counted),
    Rule(f"ORD {_PART} of|in|dash* the? {_X}", m.nth),
    Rule(f"{_X} of? ORD COUNTED", m.nth_counted, (1, 2, 0)),
    Rule(f"~ord < PARTWORD of|in|dash* the? {_X} >", m.part),
    Rule(f"PARTOF of|in+ the? {_X}", m.part),
    Rule("DAY of|in+ the? OFMONTH", m.day_of),
    Rule("OFMONTH of? SUREDAY", m.day_of, (1, 0)),
    Rule("WEEKDAY of|in|comma* the? OFWEEK", m.weekday_of),
    Rule("OFWEEK poss|of|on|comma* the? WEEKDAY", m.weekday_of, (1, 0)),
    Rule("WEEKRANGE of|in|comma* the? OFWEEK", m.weekrange_of),
    Rule("OFWEEK poss|of|on|comma|from* the? WEEKRANGE", m.weekrange_of, (1, 0)),
    # Before today
    Rule("COUNTED ago on? OFDAY", m.ago_to_a_day),
    Rule("back COUNTED OFDAY|TODAYWORD", m.ago_to_a_day),
    Rule("OFDAY back COUNTED", m.ago_to_a_day, (1, 0)),
    Rule("back OFDAY COUNTED", m.ago_to_a_day, (1, 0)),
    Rule("OFDAY comma? COUNTED ago", m.ago_to_a_day, (1, 0)),
    Rule("COUNTED ago on? WEEKDAY", m.weekday_ago),
    Rule("on? WEEKDAY comma? COUNTED ago", m.weekday_ago, (1, 0)),
    Rule("on? WEEKDAY back COUNTED", m.weekday_ago, (1, 0)),
    Rule("back NUM WEEKDAYS|WEEKDAY", m.weekdays_ago),
    Rule("NUM WEEKDAYS|WEEKDAY ago", m.weekdays_ago),
    Rule("NUM YEARLY ago", m.yearlies_ago),
    Rule("back COUNTED", m.ago),
    Rule("COUNTED ago", m.ago),
    Rule("COUNTED hence", m.hence),
    Rule("ahead COUNTED", m.hence),
    Rule("NUM WHICH UNIT", m.number_within),
    Rule("WHICH COUNTED|PLURAL", m.within),
    Rule("COUNTED|PLURAL WHICHPOST", m.within, (1, 0)),
    Rule("THISWORD of? COUNTED", m.within),
    # Last, this, next
    Rule(f"which UNIT|WEEKDAY SIDE the? {_POINT}", r.beside),
    Rule("on? OFDAY|WEEKDAY weeklater", m.week_later),
    Rule("WHICH WEEKDAY", m.which_weekday),
    Rule("WEEKDAY WHICHPOST", m.which_weekday, (1, 0)),
    Rule("WHICH YEARLY", m.which_yearly),
    Rule("YEARLY WHICHPOST", m.which_yearly, (1, 0)),
    Rule("ORD UNIT|WEEKDAY of the? other", m.of_something),
    Rule("UNIT WHICHPOST", m.which_unit, (1, 0)),
    Rule("WHICH UNIT", m.which_unit),
    Rule("ORD UNIT", m.nth_quarter),
    # Parts of this month, week or year
    Rule(f"ORD {_PART} of|in+ the? UNIT", m.nth_of_this),
    Rule("~ord < PARTWORD of|in* the? UNIT >", m.part_of_this),
    Rule("PARTOF of|in+ the? UNIT", m.part_of_this),
    Rule("UNIT PARTPOST", m.part_of_this, (1, 0)),
    Rule("HALFYEARPOST", m.half_year),
    Rule(f"{_X} of? HALFPOST|HALFYEARPOST", m.half, (1, 0)),
    Rule(f"{_X} of? PARTPOST", m.part, (1, 0)),
    Rule(f"{_X} of? ORD {_PART}", m.nth, (1, 2, 0)),
    Rule("DAY of|in+ the UNIT", m.day_of_this),
    Rule("OFWEEK of UNIT", m.weekend_of),
    Rule("OFYEAR of OFDAY", m.today_in_year),
    Rule("OFDAY of? OFYEAR", m.today_in_year, (1, 0)),
    # What is beside a time
    Rule(f"UNIT|WEEKDAY|COUNTED SIDE the? {_POINT}", r.beside),
    Rule(f"{_POINT} of? SIDEPOST of|the* UNIT|WEEKDAY|COUNTED", r.beside, (2, 1, 0)),
    Rule(f"COUNTED from {_POINT}", r.from_day),
    Rule(f"DAYBESIDE of? the? {_POINT}", r.day_beside),
    Rule(f"{_POINT} of? DAYBESIDEPOST", r.day_beside, (1, 0)),
    # Ranges
    Rule("fromthe DAY to|until the? DAY", r.range_between),
    Rule("PLAINYEAR to|dash YEAR", r.range_between),
    Rule(f"between the? {_POINT} and the? {_POINT}", r.range_between),
    Rule(f"from the|on* {_POINT} to|until|dash the|on* {_POINT} untilpost?", r.range_between),
    Rule(f"{_POINT} to|until|dash the|on* {_POINT} untilpost?", r.range_between),
    Rule("WEEKRANGE", r.last_weekrange),
    # Bounds
    Rule(f"SINCE|BEFORE|AFTER the|on* {_POINT}|MOMENTS", r.bound),
    Rule(f"UNTIL the|on* {_POINT}", r.bound),
    Rule(f"{_POINT}|MOMENTS SINCEPOST|BEFOREPOST|AFTERPOST", r.bound, (1, 0)),
    Rule(f"{_POINT} UNTILPOST", r.bound, (1, 0)),
    # Days by themselves
    Rule("onday WEEKDAY", m.on_weekday),
    Rule("WEEKDAY daypart", m.on_weekday),
    Rule("on the? UNIT", m.on_weekend),
    Rule("UNIT", m.bare_weekend),
    Rule("on the? SUREDAY", m.on_day),
    Rule("weekword NUM", m.iso_week),
)
