"""Write src/recollect/_unicode14.py: which code points Unicode 14 knows, and which of them make up words.

Run it with a Python whose `unicodedata` is version 14.0.0 (CPython 3.11); any other is refused, because the
point of the table is that it never moves.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "recollect" / "_unicode14.py"


def ranges(wanted: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    start = None
    for point in range(0x110001):
        inside = point < 0x110000 and wanted(unicodedata.category(chr(point)))
        if inside and start is None:
            start = point
        elif not inside and start is not None:
            yield start, point - 1
            start = None


def packed(wanted: Callable[[str], bool]) -> str:
    """Ranges as `gap+length` pairs in base 36, so that the table stays short."""
    out, previous = [], 0
    for first, last in ranges(wanted):
        out.append(f"{base36(first - previous)}.{base36(last - first)}")
        previous = last
    lines, line = [], ""
    for item in out:
        if len(line) + len(item) > 100:
            lines.append(line)
            line = ""
        line += item + " "
    lines.append(line)
    return "\n".join(f'    "{line}"' for line in lines)


def base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (base36(number // 36) if number >= 36 else "") + digits[number % 36]


def main() -> None:
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"this Python has Unicode {unicodedata.unidata_version}; 14.0.0 is needed (CPython 3.11)")
    TARGET.write_text(
        '"""Unicode 14.0.0 in two tables, written by scripts/make_unicode_table.py: do not edit by hand.\n\n'
        "Each table is a list of code point ranges, as pairs `gap.length` in base 36: the distance from the end of\n"
        'the range before, and how many further code points the range holds.\n"""\n\n'
        f"UNKNOWN = (\n{packed(lambda category: category == 'Cn')}\n)\n\n"
        f"WORD = (\n{packed(lambda category: category[0] in 'LMN')}\n)\n",
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
