"""Searches of adapters: the hits that fit a condition of the framework, and other records if these are too few."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import recollect
from recollect import Hit, RecollectWarning, Record
from recollect import filters as f
from recollect.compat.item_log import ITEM, SOURCES
from recollect.compat.objects import FIELDS, VALUE, clean, value_of
from recollect.errors import AnswerTooLargeError
from recollect.filters import Filter

#: The order in which records are read.
Order: TypeAlias = Literal["newest", "oldest"]

#: Records that are read at a time where a condition is decided by reading them.
_PAGE = 200
#: The size that a question has at most with default `Limits`, in bytes.
_MAX_QUESTION_BYTES = 2**16
#: How many times as many hits are asked for where too few fit.
_MORE = 4


@dataclass(frozen=True, slots=True)
class Condition:
    """What the records of a search must fit.

    Attributes:
        bound: A filter that admits all records that fit, and which the index decides as far as it can.
        fits: Whether a record that `bound` admits fits; None: each does. A pure function of the record.
    """

    bound: Filter = field(default_factory=f.everything)
    fits: Callable[[Record], bool] | None = None

    def within(self, where: Filter) -> Condition:
        """Return the condition for the records that a filter admits."""
        return replace(self, bound=where & self.bound)

    def holds(self, record: Record) -> bool:
        """Return whether a record that `bound` admits fits."""
        return self.fits is None or self.fits(record)


#: What adapters keep in the metadata of records of a kind.
_HIDDEN = {
    "memory_file": ("path", "entry", "token", "operation", "note"),
    "operation": ("fingerprint", "version", "existed"),
}
#: The fields of a record that say where it comes from.
_FIELDS = ("kind", "user", "agent", "conversation", "speaker", "role", "source", "time")


def own_metadata(record: Record) -> dict[str, Any]:
    """Return the metadata that a user stated for a record: without what an adapter keeps there for itself."""
    if isinstance(record.metadata.get(VALUE), str) and FIELDS in record.metadata:
        return value_of(record)
    hidden = (ITEM,) if record.source in SOURCES else _HIDDEN.get(record.kind, ())
    metadata: dict[str, Any] = record.to_json().get("metadata", {})
    return {key: value for key, value in metadata.items() if key not in hidden}


def found_metadata(hit: Hit) -> dict[str, Any]:
    """Return what is known of a hit besides its text, as JSON: its metadata, its fields, and why it was found."""
    record = hit.record
    fields = record.to_json()
    why = {"score": hit.score, "confidence": hit.confidence, "why": str(hit.why)}
    return {**own_metadata(record), **{name: fields[name] for name in _FIELDS if name in fields}, **why}


def question_of(text: str) -> str:
    """Return a text as recall takes it: lone surrogates are replaced, and what exceeds 64 KiB is not asked.

    A user may paste a file into a chat, and an agent must not fail for it.
    """
    return clean(text).encode("utf-8")[:_MAX_QUESTION_BYTES].decode("utf-8", "ignore")


class Searcher:
    """Searches a memory for an adapter.

    Args:
        memory: The memory.
        waits: Whether the texts that have no vector yet are embedded before each search; needs a memory with an
            embedder.
    """

    def __init__(self, memory: recollect.Memory, *, waits: bool = False) -> None:
        self._memory = memory
        self._waits = waits

    def recalled(self, query: str, condition: Condition, count: int, **options: Any) -> list[Hit]:
        """Return up to `count` hits that fit, best first; none for a blank query.

        Args:
            query: The question. Lone surrogates in it are replaced, and what exceeds 64 KiB is not asked.
            condition: What the hits must fit.
            count: Their maximum number.
            **options: Other arguments of `Memory.recall`.

        Raises:
            RecollectError: What `Memory.recall` raises.

        Cost:
            That of `Memory.recall`; where few hits fit, of several, each with four times as many hits.
        """
        question = question_of(query)
        if not question.strip() or not count:
            return []
        asked = count
        while True:
            hits = self._hits(question, condition.bound, asked, options)
            fitting = [hit for hit in hits if condition.holds(hit.record)]
            if len(fitting) >= count or len(hits) < asked:
                return fitting[:count]
            asked *= _MORE

    def newest(self, condition: Condition, count: int, known: Iterable[str] = ()) -> list[Record]:
        """Return up to `count` records that fit, the newest first, without those with known ids."""
        known = set(known)
        out: list[Record] = []
        if not count:
            return out
        read_on = condition.fits is not None or bool(known)
        for record in self._pages(condition, max(_PAGE, count) if read_on else count):
            if record.id not in known:
                out.append(record)
                if len(out) == count:
                    break
        return out

    def filled(self, query: str, condition: Condition, count: int, **options: Any) -> list[tuple[Record, Hit | None]]:
        """Return `count` records that fit if there are as many: first the hits, then others, the newest first.

        Where a framework's search returns as many records as it was asked for, whatever fits. Of the others, those come
        first that could have been found. The arguments, errors and cost are those of `recalled` and `newest`.
        """
        out: list[tuple[Record, Hit | None]] = [
            (hit.record, hit) for hit in self.recalled(query, condition, count, **options)
        ]
        for searchable in (f.has("searchable"), ~f.has("searchable")):
            if len(out) < count:
                known = {record.id for record, _ in out}
                others = self.newest(condition.within(searchable), count - len(out), known)
                out += [(record, None) for record in others]
        return out

    def all(self, condition: Condition, order: Order = "newest") -> Iterator[Record]:
        """Yield all records that fit. They are read in pages, so changes in between may be seen."""
        return self._pages(condition, _PAGE, order)

    def _pages(self, condition: Condition, size: int, order: Order = "newest") -> Iterator[Record]:
        after: str | None = None
        while True:
            page = self._memory.find(condition.bound, limit=size, order=order, after=after)
            yield from filter(condition.holds, page)
            if page.cursor is None:
                return
            after = page.cursor

    def _hits(self, question: str, where: Filter, count: int, options: dict[str, Any]) -> list[Hit]:
        """Return up to `count` hits, from a server in several answers if they are too large for one.

        A filter never changes the scores, so those after the first are the best of the others.
        """
        out: list[Hit] = []
        most = count
        while len(out) < count:
            asked = min(most, count - len(out))
            others = where & ~f.id(*(hit.record.id for hit in out)) if out else where
            try:
                hits = self._memory.recall(question, k=asked, where=others, wait_for_vectors=self._waits, **options)
            except AnswerTooLargeError:
                if asked == 1:
                    raise
                most = asked // 2
                continue
            if self._waits and hits.plan.notes and self._memory.vector_stats()["failed"]:
                words_only = "; ".join(hits.plan.notes)
                warnings.warn(f"the search used words only: {words_only}", RecollectWarning, stacklevel=2)
            out += hits
            if len(hits) < asked:
                break
        return out
