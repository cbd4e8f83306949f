"""Write src/recollect/text/unicode14.txt: the code points of Unicode 14, those that are part of words, and those that
can combine with a preceding character in normalisation.

Run it with a Python whose `unicodedata` has version 14.0.0 (CPython 3.11). Any other is refused, because the table must
never change.
"""

from __future__ import annotations

import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "recollect" / "text/unicode14.txt"


def ranges(wanted: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    start = None
    for point in range(0x110001):
        inside = point < 0x110000 and wanted(chr(point))
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
    return textwrap.fill(" ".join(out), 110)


def base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (base36(number // 36) if number >= 36 else "") + digits[number % 36]


def joins() -> Callable[[str], bool]:
    """Whether a character, decomposed, begins with a non-starter or with the second of a pair that is composed."""
    everything = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    pairs = [each for char in everything if len(each := unicodedata.normalize("NFD", char)) > 1]
    seconds = {char for pair in pairs for char in pair[1:]}

    def wanted(char: str) -> bool:
        first = {unicodedata.normalize(form, char)[0] for form in ("NFD", "NFKD")}
        return any(unicodedata.combining(each) or each in seconds for each in first)

    return wanted


def main() -> None:
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"this Python has Unicode {unicodedata.unidata_version}; 14.0.0 is needed (CPython 3.11)")
    tables = {
        "UNKNOWN": packed(lambda char: unicodedata.category(char) == "Cn"),
        "WORD": packed(lambda char: unicodedata.category(char)[0] in "LMN"),
        "JOINING": packed(joins()),
    }
    TARGET.write_text("\n\n".join(f"{name}\n{table}" for name, table in tables.items()) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
