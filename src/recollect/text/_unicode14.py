"""Unicode 14.0.0 in three tables, from unicode14.txt, which scripts/make_unicode_table.py writes: do not edit it.

Each table is a list of code point ranges, as pairs `gap.length` in base 36: the distance from the end of the previous
range, and the number of code points that follow the first one of the range.
"""

from pathlib import Path

_tables = {
    name: " ".join(ranges) + " "
    for part in Path(__file__).with_name("unicode14.txt").read_text("ascii").split("\n\n")
    for name, *ranges in [part.split()]
}
#: The code points that Unicode does not know, those that are part of words, and those that can combine.
UNKNOWN, WORD, JOINING = _tables["UNKNOWN"], _tables["WORD"], _tables["JOINING"]
