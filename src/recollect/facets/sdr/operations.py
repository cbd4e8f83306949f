"""The operation that searches sparse codes. It is executed on the reserved namespace that has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recollect.arguments.checks import check_count, check_flag, check_share, check_text
from recollect.arguments.json_form import is_result
from recollect.operations.base import READ, Operation
from recollect.records.record import Record


@dataclass(frozen=True, kw_only=True)
class RecallSdrs(Operation, name="recall_sdrs", right=READ, result="list[FoundSdr]"):
    """Find the texts whose sparse codes are closest to that of a text. The result is a list of `FoundSdr`, best first.

    Attributes:
        limit: Maximum number of texts.
        minimum: The least score, inclusive; 0 to 1.
        rule: Whether to rank by the rule of sdr-memory, 1 - hamming / 4096 of the 80 lowest bits.
    """

    text: str
    limit: int = 5
    minimum: float = 0.0
    rule: bool = False

    def __post_init__(self) -> None:
        check_text("text", self.text)
        check_count("limit", self.limit)
        check_share("minimum", self.minimum)
        check_flag("rule", self.rule)


# The result of a search by sparse codes.


@is_result("a found text")
class FoundSdr(NamedTuple):
    """A text that is close to another.

    Attributes:
        score: The score of the ranking, 0 to 1.
        rule_score: 1 - hamming / 4096 of the 80 lowest bits.
    """

    record: Record
    score: float
    rule_score: float
