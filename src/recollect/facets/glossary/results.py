"""Results of searches in a glossary."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.arguments.json_form import JsonForm
from recollect.records.record import Record


@dataclass(frozen=True, slots=True)
class FoundTerm(JsonForm, what="a found term"):
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


@dataclass(frozen=True, slots=True)
class Annotation(JsonForm, what="an annotation"):
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


@dataclass(frozen=True, slots=True)
class SharedName(JsonForm, what="a shared name"):
    """A name that several terms have.

    Attributes:
        name: The name.
        keys: The keys of the terms, sorted.
    """

    name: str
    keys: tuple[str, ...]
