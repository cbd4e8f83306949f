"""The result of a search by sparse codes."""

from __future__ import annotations

from typing import NamedTuple

from recollect.arguments.json_form import is_result
from recollect.records.record import Record


@is_result("a found text")
class FoundSdr(NamedTuple):
    """A text that is close to another.

    Attributes:
        record: Its record.
        score: The score of the ranking, 0 to 1.
        rule_score: 1 - hamming / 4096 of the 80 lowest bits.
    """

    record: Record
    score: float
    rule_score: float
