"""What calls give back: outcomes of writes, hits of recall, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

from recollect.errors import RecollectError
from recollect.indexes.words.index import QueryTerm
from recollect.records.record import Record


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write did to one record.

    record     as it is held now; of a forgotten one, as it was last (None where it was gone before)
    status     "created", "updated", "forgotten", or "unchanged": the state already was what was asked for
    differing  fields that were given another value than the one that was kept
    asked_id   the id that was asked for, where another text holds it and the record got one with a counter
    """

    record: Record | None
    status: str
    differing: tuple[str, ...] = ()
    asked_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        out: dict[str, Any] = {"status": self.status, "record": self.record and record_json(self.record)}
        if self.differing:
            out["differing"] = list(self.differing)
        if self.asked_id:
            out["asked_id"] = self.asked_id
        return out


class Failed(NamedTuple):
    """An item that was not held: the item as it was given, its place among the items (from 0), and the reason."""

    item: Any
    place: int
    reason: RecollectError


@dataclass(frozen=True, slots=True)
class Report:
    """What became of many items. `results` are in the order of the items, without those that failed."""

    results: tuple[Outcome, ...] = ()
    failed: tuple[Failed, ...] = ()

    def count(self, status: str) -> int:
        """How many outcomes have a status."""
        return sum(outcome.status == status for outcome in self.results)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            **{status: self.count(status) for status in ("created", "updated", "unchanged")},
            "failed": [{"place": failed.place, **failed.reason.to_json()} for failed in self.failed],
        }


class Word(NamedTuple):
    """A word of the question that a hit has, or is lent by the turns around it.

    word     as it was asked
    like     the word of the memory that stood in for it, where it is unknown or misspelt; else ""
    score    its part of the hit's score
    own      the part of that which the record's own text has
    lent_by  ids of the turns that lend the rest
    """

    word: str
    like: str
    score: float
    own: float
    lent_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """Why a record was recalled.

    shares  signal -> its share; the shares add up to the score, exactly
    words   the words that matched, weightiest first
    """

    shares: Mapping[str, float]
    words: tuple[Word, ...]

    def __str__(self) -> str:
        shares = " + ".join(f"{name} {share:.3f}" for name, share in self.shares.items())
        words = ", ".join(_described(word) for word in self.words)
        return f"{shares} ({words})" if words else shares

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"shares": dict(self.shares), "words": [word._asdict() for word in self.words]}


def _described(word: Word) -> str:
    out = f"{word.word} as {word.like}" if word.like else word.word
    if word.lent_by and word.own == 0.0:
        out += f" from {word.lent_by[0]}"
    return out


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that answers, with its score (the sum of `why.shares`) and its confidence (0 to 1)."""

    record: Record
    score: float
    confidence: float
    why: Why

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "record": record_json(self.record),
            "score": self.score,
            "confidence": self.confidence,
            "why": self.why.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question was read.

    terms     what was asked for, stand-ins for unknown words included
    weight    what the question weighs: the sum of its terms' IDF, each as often as it was asked
    passed    how many records the question reaches, of those that the index admits for the filter
    narrowed  how many records those are, before scoring; None where there is no filter, or the index says nothing of it
              and hits are asked one by one
    notes     what kept a signal from acting, in words
    vectors   the seq up to which every text has a vector; None where no embedder answered
    kernels   what walked the postings, "numpy" or "numba"; they give the same bits
    """

    question: str
    k: int
    terms: tuple[QueryTerm, ...]
    weight: float
    passed: int
    narrowed: int | None
    notes: tuple[str, ...] = ()
    vectors: int | None = None
    kernels: str = "numpy"


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """The hits of a question, best first, and what binds them to their moment.

    plan       how the question was read
    standing   standing instructions and preferences (records tagged "standing:..."), those that fit the question best
               first; a list of their own, so that they displace no hit
    watermark  the seq of the commit that the index reflects; 0 within a scope
    root       the root hash of the namespace at that commit, in hex; "" within a scope
    token      the cursor within a scope; "" outside
    """

    hits: tuple[Hit, ...]
    plan: Plan
    watermark: int
    root: str
    standing: tuple[Hit, ...] = field(default=())
    token: str = ""

    @property
    def cursor(self) -> str:
        """The commit that the index reflects, as `changes(since=)` takes it, also within a scope."""
        return self.token or str(self.watermark)

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Hit]: ...
    def __getitem__(self, at: int | slice) -> Hit | Sequence[Hit]:
        return self.hits[at]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "question": self.plan.question,
            "hits": [hit.to_json() for hit in self.hits],
            "standing": [hit.to_json() for hit in self.standing],
            "watermark": self.watermark,
            "root": self.root,
            "cursor": self.cursor,
            **({"notes": list(self.plan.notes)} if self.plan.notes else {}),
            **({} if self.plan.vectors is None else {"vectors": self.plan.vectors}),
        }


def record_json(record: Record) -> dict[str, Any]:
    """A record's JSON form with its hash, as calls give it."""
    return {**record.to_json(), "hash": record.hash}
