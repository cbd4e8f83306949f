"""The rules by which the words of a date become a time: dates, ordinals, what is relative to today or to a day, ranges.

The rules are the same in all languages. A language whose words have none of the categories of a rule does not use it.
`grammar` has how patterns are written, words/*.json has the categories of words, and `meanings`, `distances`,
`relations` and `lists` what becomes of them.
"""

from __future__ import annotations

from recollect.text.dates import distances as d
from recollect.text.dates import lists
from recollect.text.dates import meanings as m
from recollect.text.dates import relations as r
from recollect.text.dates.grammar import Rule

_X = "FIXED|YEARLY|YEAR"
_POINT = f"{_X}|SUREDAY|WEEKDAY"
_PART = "UNIT|WEEKDAY|HALFWORD"
#: After a number in digits, what says that it is no day.
_NO_DAY = "~other|designator|unit|measure|month|num"
RULES: tuple[Rule, ...] = (
    # No dates
    Rule("every num|ord? UNIT|WEEKDAY|WEEKDAYS|YEARLY|DAYPART", m.none),
    Rule("NODATE and|comma+ the|on* WEEKDAY", m.none),
    Rule("WEEKDAY DAYPARTS", m.none),
    Rule("title dot? YEARLY|WEEKDAY", m.none),
    Rule("designator NUMERIC|YEAR|YEARMONTH|YEARS|DAY|CLOCK|NUM", m.none),
    Rule("NUM|YEAR|PLAINYEAR and|to|dash NUM|YEAR|PLAINYEAR MEASURE", m.amount),
    Rule("NUM|YEAR|PLAINYEAR MEASURE", m.amount),
    Rule("currency|more|less YEAR", m.amount),
    Rule("< ambiguous > other|designator", m.none),
    # In digits
    Rule("NUMERIC", m.numeric),
    Rule("on|in|of|from|to|since|before|after|until|between|and < DASHED >", m.numeric),
    Rule("SEASON of? YEARS|YEARMONTH", m.season_of_years),
    Rule("YEARMONTH", m.yearmonth),
    Rule("DAYANDMONTH", m.day_and_month),
    Rule("YEARS UNIT?", m.years),
    Rule("DECADE unit", m.decade),
    Rule("DECADE", m.decade),
    Rule("DECADEWORD NUM|YEAR|SHORTYEAR", m.decade_by_number),
    # Days of a month
    Rule("between the? weekday? DAY and|dash the? weekday? DAY of? MONTH", m.days_of_month),
    Rule("from? the? weekday? DAY to|dash|until the? weekday? DAY of? MONTH", m.days_of_month),
    Rule("between MONTH dot? the? DAY and the? DAY", m.days_of_month, (1, 2, 0)),
    Rule("from? MONTH dot? the? DAY to|dash|until the? DAY untilpost?", m.days_of_month, (1, 2, 0)),
    Rule("~between|dash|until|the the? < DAY and|comma+ on|the* DAY > of* month", lists.of("DAY"), listing=True),
    Rule("month dot? the? < DAY and|comma+ the? SUREDAY >", lists.of("DAY"), listing=True),
    Rule(f"month dot? the? < DAY and|comma+ the? DAY > {_NO_DAY}", lists.of("DAY"), listing=True),
    Rule("DAY dash MONTH dash YEAR", m.day_of_month_in_year),
    Rule("~on|in|of|from|to|since|before|after|until|between|and|comma|weekday < NUM MONTH > other", m.things_of_month),
    Rule("DAY OF? MONTH", m.number_and_month),
    Rule("MONTH dot? the? DAY", m.day_of_month, (1, 0)),
    Rule(
        "~between|dash|the the? < YEARLY and|comma+ in|on|the|of* YEARLY > ~betweenpost", lists.yearlies, listing=True
    ),
    # A year beside a time
    Rule("UNIT YEAR|OLDYEAR", m.year_by_number),
    Rule("< DATE NUM > ~other|unit|measure|month|num|day", m.in_short_year),
    Rule("YEARLY dot? comma? of|in|slash? YEAR", m.in_year),
    Rule("YEARLY of|in? SHORTYEAR", m.in_year),
    Rule("YEAR of|slash|dash? YEARLY", m.in_year, (1, 0)),
    Rule("YEARLY of|in|comma? the? OFYEAR", m.in_year),
    Rule("OFYEAR of|in|on|comma* the? YEARLY", m.in_year, (1, 0)),
    Rule("in OLDYEAR", m.in_old_year),
    Rule("WEEKDAY dot? comma? the? DATE", m.weekday_and_date),
    Rule("weekday dot? comma? OFDAY", m.same),
    Rule("NEAR", m.near),
    Rule("NEARYEAR", m.year_by_word),
    # Days of the week
    Rule("between the|on* WEEKDAY and the|on* WEEKDAY", r.weekrange),
    Rule("WEEKDAY and WEEKDAY betweenpost", r.weekrange),
    Rule("from? the|on* WEEKDAY to|until|dash the|on* WEEKDAY untilpost?", r.weekrange),
    Rule("< ORD and|comma+ the? ORD > unit|weekday|counted", lists.of("ORD"), listing=True),
    Rule(
        "~between|dash|the the? < WEEKDAY and|comma+ on|the* WEEKDAY > ~betweenpost",
        lists.of("WEEKDAY"),
        listing=True,
    ),
    Rule("WEEKDAY dot? comma? the|on? SUREDAY", m.weekday_and_number),
    Rule("SUREDAY of? comma? WEEKDAY", m.weekday_and_number, (1, 0)),
    Rule(f"< WEEKDAY dot? comma? the? DAY > {_NO_DAY}|of|in|and", m.weekday_and_number),
    # Numbers of units
    Rule("NUM and the|num? halfword UNIT", d.number_and_a_half),
    Rule("~ord < num? halfword num? UNIT >", d.half_unit),
    Rule("between? NUM AND|DASH|TO|COMMA NUM UNIT", d.counted_between),
    Rule("NUM UNIT or NUM", d.counted_or_more),
    Rule("NUMS UNIT", d.counted_of_several),
    Rule("approx NUM UNIT", d.counted),
    Rule("NUM UNIT", d.counted),
    Rule("COUNTED and? the|num? halfword", d.and_a_half),
    Rule("COUNTED approxpost", d.same_distance),
    Rule("COUNTED plus|comma+ COUNTED", d.together),
    Rule("< COUNTED COUNTED > ago", d.together),
    # Parts of a time
    Rule(f"ORD COUNTED of|in* the? {_X}", m.nth_counted),
    Rule(f"ORD {_PART} of|in|dash* the? {_X}", m.nth),
    Rule(f"{_X} of? ORD COUNTED", m.nth_counted, (1, 2, 0)),
    Rule(f"~ord < PARTWORD of|in|dash* the? {_X} >", m.part),
    Rule(f"PARTOF of|in+ the? {_X}", m.part),
    Rule("DAY of|in+ the? OFMONTH", m.day_of),
    Rule("SUREDAY the? OFMONTH", m.day_of),
    Rule("OFMONTH of|on? the? SUREDAY", m.day_of, (1, 0)),
    Rule("WEEKDAY of|in|comma* the? OFWEEK", m.weekday_of),
    Rule("OFWEEK poss|of|on|comma* the? WEEKDAY", m.weekday_of, (1, 0)),
    Rule("WEEKRANGE of|in|comma* the? OFWEEK", m.weekrange_of),
    Rule("OFWEEK poss|of|on|comma|from* the? WEEKRANGE", m.weekrange_of, (1, 0)),
    # Before today
    Rule("back less COUNTED", d.less_ago),
    Rule("less COUNTED ago", d.less_ago),
    Rule("back more COUNTED", d.more_ago),
    Rule("more COUNTED ago", d.more_ago),
    Rule("COUNTED ago on|of? OFDAY", d.ago_to_a_day),
    Rule("back COUNTED OFDAY|TODAYWORD", d.ago_to_a_day),
    Rule("OFDAY back COUNTED", d.ago_to_a_day, (1, 0)),
    Rule("back OFDAY COUNTED", d.ago_to_a_day, (1, 0)),
    Rule("OFDAY comma? COUNTED ago", d.ago_to_a_day, (1, 0)),
    Rule(f"{_POINT} of? COUNTED AWAYPOST", r.away_from),
    Rule("COUNTED ago on? WEEKDAY", d.weekday_ago),
    Rule("on? WEEKDAY comma? COUNTED ago", d.weekday_ago, (1, 0)),
    Rule("on? WEEKDAY back COUNTED", d.weekday_ago, (1, 0)),
    Rule("on? WEEKDAY in|ahead COUNTED", d.weekday_hence, (1, 0)),
    Rule("back NUM WEEKDAYS|WEEKDAY", d.weekdays_ago),
    Rule("NUM WEEKDAYS|WEEKDAY ago", d.weekdays_ago),
    Rule("NUM YEARLY ago", d.yearlies_ago),
    Rule("back COUNTED", d.ago),
    Rule("COUNTED ago", d.ago),
    Rule("COUNTED hence", d.hence),
    Rule("ahead COUNTED", d.hence),
    Rule("NUM WHICH UNIT", d.number_within),
    Rule("WHICH COUNTED|PLURAL", d.within),
    Rule("COUNTED|PLURAL WHICHPOST", d.within, (1, 0)),
    Rule("THISWORD of? COUNTED", d.within),
    # Last, this, next
    Rule("UNIT|WEEKDAY|COUNTED|DAYPART SIDEWHICH YEARLY|WEEKDAY", r.beside_which),
    Rule(f"which UNIT|WEEKDAY SIDE the? {_POINT}", r.beside),
    Rule("on? OFDAY|WEEKDAY weeklater", m.week_later),
    Rule("WHICH WEEKDAY", m.which_weekday),
    Rule("WEEKDAY WHICHPOST", m.which_weekday, (1, 0)),
    Rule("WHICH YEARLY", m.which_yearly),
    Rule("YEARLY WHICHPOST", m.which_yearly, (1, 0)),
    Rule("own which UNIT", m.none),
    Rule(f"ORD {_PART} of|in+ the? UNIT", m.nth_of_this),
    Rule("ORD UNIT|WEEKDAY of the? other", m.of_something),
    Rule("UNIT WHICHPOST", m.which_unit, (1, 0)),
    Rule("past UNIT", d.past_unit),
    Rule("WHICH UNIT", m.which_unit),
    Rule("ORD UNIT", m.nth_quarter),
    # Parts of this month, week or year
    Rule("~ord < PARTWORD of|in* the? UNIT >", m.part_of_this),
    Rule("PARTOF of|in+ the? UNIT", m.part_of_this),
    Rule("UNIT PARTPOST", m.part_of_this, (1, 0)),
    Rule("HALFYEARPOST", m.half_year),
    Rule(f"{_X} of? HALFPOST|HALFYEARPOST", m.half, (1, 0)),
    Rule(f"{_X} of? PARTPOST", m.part, (1, 0)),
    Rule(f"{_X} of? ORD {_PART}", m.nth, (1, 2, 0)),
    Rule("DAY of|in+ the UNIT", m.day_of_this),
    Rule("OFWEEK of UNIT", m.weekend_of),
    Rule("OFYEAR of? OFDAY|OFWEEK|OFMONTH", m.today_in_year),
    Rule("OFDAY|OFWEEK|OFMONTH of? OFYEAR", m.today_in_year, (1, 0)),
    # What is beside a time
    Rule(f"the COUNTED SIDE the? {_POINT}", r.all_beside),
    Rule(f"UNIT|WEEKDAY|COUNTED|DAYPART SIDE the? {_POINT}", r.beside),
    Rule(f"{_POINT} of? SIDEPOST of|the* UNIT|WEEKDAY|COUNTED", r.beside, (2, 1, 0)),
    Rule(f"COUNTED from {_POINT}", r.from_day),
    Rule(f"DAYBESIDE of? the? {_POINT}", r.day_beside),
    Rule(f"{_POINT} of? DAYBESIDEPOST", r.day_beside, (1, 0)),
    Rule("UNIT of+ the? DATE|OFDAY", r.unit_of_day),
    Rule("DATE|OFDAY of+ UNIT", r.unit_of_day, (1, 0)),
    # Ranges
    Rule("fromthe DAY to|until the? DAY", r.range_between),
    Rule("PLAINYEAR to|dash YEAR", r.range_between),
    Rule(f"between the? {_POINT} and the? {_POINT}", r.range_between),
    Rule(f"{_POINT} and {_POINT} betweenpost", r.range_between),
    Rule(f"from the|on* {_POINT} to|until|dash the|on* {_POINT} untilpost?", r.range_between),
    Rule(f"{_POINT} to|until|dash the|on* {_POINT} untilpost?", r.range_between),
    Rule("WEEKRANGE", r.last_weekrange),
    # Bounds
    Rule(f"by the|on* {_POINT}", r.by_then),
    Rule(f"SINCE|BEFORE|AFTER the|on* {_POINT}|MOMENTS", r.bound),
    Rule(f"UNTIL the|on* {_POINT}", r.bound),
    Rule(f"{_POINT}|MOMENTS SINCEPOST|BEFOREPOST|AFTERPOST", r.bound, (1, 0)),
    Rule(f"{_POINT} UNTILPOST", r.bound, (1, 0)),
    # Days by themselves
    Rule("onday? WEEKDAY of|in YEARLY", m.none),
    Rule("onday WEEKDAY", m.on_weekday),
    Rule("WEEKDAY daypart", m.on_weekday),
    Rule("on the? UNIT", m.on_weekend),
    Rule("UNIT", m.bare_weekend),
    Rule("on the? < SUREDAY and|comma+ on|the* SUREDAY >", lists.of("DAY", "SUREDAY"), listing=True),
    Rule("< on the? SUREDAY > ~other|designator", m.on_day),
    Rule("weekword NUM", m.iso_week),
)
