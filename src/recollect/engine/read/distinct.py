"""The distinct values of a field among records, with the number of records that have each."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from recollect.arguments.checks import is_number
from recollect.common.deadlines import checked
from recollect.engine.results import ValueCount
from recollect.operations import DistinctValues


def ranked(value: Any) -> tuple[int, Any]:
    """Return the key by which values are sorted: truth values, then numbers, then texts by code point."""
    if isinstance(value, bool):
        return 0, value
    if is_number(value):  # 1.0 is 1: which of both is shown must not depend on the order of the records
        return 1, int(value) if value == (whole := value // 1) and abs(whole) <= 2**53 else value
    return 2, value


def counted(values: Iterable[Any], operation: DistinctValues) -> list[ValueCount]:
    """Return the distinct values, sorted, from the ones of each record. A list has each of its items as a value."""
    counts = Counter(key for value in checked(values) for key in {ranked(each) for each in _scalars(value)})
    if operation.prefix:
        counts = Counter({key: n for key, n in counts.items() if key[0] == 2 and key[1].startswith(operation.prefix)})
    keys = sorted(counts)
    first = 0 if operation.after is None else bisect_right(keys, ranked(operation.after))
    last = None if operation.limit is None else first + operation.limit
    return [ValueCount(key[1], counts[key]) for key in keys[first:last]]


def _scalars(value: Any) -> Iterator[Any]:
    """Yield the values that are listed: not null, and no objects."""
    for each in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(each, (str, bool)) or is_number(each):
            yield each
