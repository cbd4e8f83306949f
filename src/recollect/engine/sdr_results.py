"""The result of a search by sparse codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from recollect.arguments.checks import json_form
from recollect.engine.results import record_from_json, record_json
from recollect.records.record import Record


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

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"record": record_json(self.record), "score": self.score, "rule_score": self.rule_score}

    @classmethod
    @json_form("a found text")
    def from_json(cls, data: Mapping[str, Any]) -> FoundSdr:
        """Rebuild it from its JSON form."""
        return cls(record_from_json(data["record"]), data["score"], data["rule_score"])
