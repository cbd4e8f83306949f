"""The result of a search by similarity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from recollect.arguments.checks import json_form
from recollect.engine.results import record_from_json, record_json
from recollect.records.record import Record

Measure = Literal["cosine", "confidence"]


class SimilarRecord(NamedTuple):
    """A record and how similar it is, 0 to 1."""

    record: Record
    similarity: float


@dataclass(frozen=True, slots=True)
class Similar:
    """What is similar to a text, most similar first.

    Attributes:
        measure: What the similarities are: "cosine" of the embedder's vectors, rounded to three digits, or, without
            vectors, the "confidence" of the hits of `recall`.
        found: The records.
        notes: Why a text or the question has no vector.
    """

    measure: Measure
    found: tuple[SimilarRecord, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        found = [{"record": record_json(each.record), "similarity": each.similarity} for each in self.found]
        return {"measure": self.measure, "found": found, "notes": list(self.notes)}

    @classmethod
    @json_form("what is similar")
    def from_json(cls, data: Mapping[str, Any]) -> Similar:
        """Rebuild it from its JSON form."""
        found = (SimilarRecord(record_from_json(each["record"]), each["similarity"]) for each in data["found"])
        return cls(data["measure"], tuple(found), tuple(data["notes"]))
