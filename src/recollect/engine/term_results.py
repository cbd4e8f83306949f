"""Results of searches in a glossary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recollect.arguments.checks import json_form
from recollect.engine.results import record_from_json, record_json
from recollect.records.record import Record


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term that answers a question.

    Attributes:
        record: Its record.
        score: Its score, on BM25's scale.
        exact: The names of it that the question contains.
        words: The tokens that it shares with the question.
    """

    record: Record
    score: float
    exact: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "record": record_json(self.record),
            "score": self.score,
            "exact": list(self.exact),
            "words": list(self.words),
        }

    @classmethod
    @json_form("a found term")
    def from_json(cls, data: Mapping[str, Any]) -> FoundTerm:
        """Rebuild it from its JSON form."""
        return cls(record_from_json(data["record"]), data["score"], tuple(data["exact"]), tuple(data["words"]))


@dataclass(frozen=True, slots=True)
class Annotation:
    """Where a term occurs in a text.

    Attributes:
        start: The offset of its first character.
        end: The offset after its last one.
        name: The key or alias that occurs.
        records: The records of the terms that have this name, those with this key first.
    """

    start: int
    end: int
    name: str
    records: tuple[Record, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        records = [record_json(record) for record in self.records]
        return {"start": self.start, "end": self.end, "name": self.name, "records": records}

    @classmethod
    @json_form("an annotation")
    def from_json(cls, data: Mapping[str, Any]) -> Annotation:
        """Rebuild it from its JSON form."""
        return cls(data["start"], data["end"], data["name"], tuple(map(record_from_json, data["records"])))


@dataclass(frozen=True, slots=True)
class SharedName:
    """A name that several terms have.

    Attributes:
        name: The name.
        keys: The keys of the terms, sorted.
    """

    name: str
    keys: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"name": self.name, "keys": list(self.keys)}

    @classmethod
    @json_form("a shared name")
    def from_json(cls, data: Mapping[str, Any]) -> SharedName:
        """Rebuild it from its JSON form."""
        return cls(data["name"], tuple(data["keys"]))
