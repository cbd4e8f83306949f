"""The result of a search by similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from recollect.arguments.json_form import JsonForm
from recollect.records.record import Record

Measure = Literal["cosine", "confidence"]


class SimilarRecord(NamedTuple):
    """A record and how similar it is, 0 to 1."""

    record: Record
    similarity: float


@dataclass(frozen=True, slots=True)
class Similar(JsonForm, what="what is similar"):
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
