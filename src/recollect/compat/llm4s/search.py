"""Search by vector and by words, with scores in [0, 1]."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import recollect
from recollect import Hit, Record
from recollect import filters as f
from recollect.compat.llm4s.index import PAGE, RecordVectors, margin
from recollect.compat.llm4s.records import memory_of
from recollect.compat.llm4s.types import ScoredMemory
from recollect.compat.llm4s.vectors import Vector, vector_of
from recollect.filters import Filter
from recollect.models.embedding.similarity import cosine, similarity_score

#: If a filter leaves too few of this many best candidates, it is evaluated for all records at once.
_MANY = 400
#: The sort key of a record without a time, before all others.
_NO_TIME = datetime.min.replace(tzinfo=UTC)


def by_vector(
    memory: recollect.Memory, index: RecordVectors, query: Vector, top_k: int, where: Filter
) -> tuple[list[ScoredMemory] | None, str]:
    """Return the memories whose vectors are most similar to a query, or None with the reason why there are none.

    Candidates are read in the order of the index, until no further one can be among the best; their exact scores and
    then time and id decide.
    """
    if not all(map(math.isfinite, query)):
        return None, "the vector of the query has a component that is not finite"
    if not any(query):
        return None, "the vector of the query is zero, which has no direction"
    ranking = index.ranked(query)
    if not len(ranking.order):
        return None, f"no memory has a vector of {len(query)} components"
    total, compared = memory.count(), len(ranking.order)
    note = f"compared {compared} of {total} memories: the others have no usable vector of {len(query)} components"
    if compared >= total:
        note = ""
    found: list[tuple[float, Record]] = []
    start, size, narrowed = 0, min(2 * top_k, PAGE), where == f.everything()
    while start < len(ranking.order):
        if len(found) >= top_k and ranking.cosines[start] < found[top_k - 1][0] - margin(len(query)):
            break
        if start >= _MANY and not narrowed:  # the filter rejects most: evaluate it once for all
            ranking = ranking.among({record.id for record in memory.find(where)}, start)
            start, narrowed = 0, True
            continue
        for record in memory.find(f.id(*ranking.page(start, size)) & where):
            vector = vector_of(record)
            if vector is not None and len(vector) == len(query):  # it may have been replaced since
                found.append((cosine(query, vector), record))
        found = _ordered(found)
        start, size = start + size, min(2 * size, PAGE)
    del found[top_k:]
    for _, record in found:
        memory.get(record.id)  # a use, for a quota that evicts the least recently used
    return [ScoredMemory(memory_of(record), similarity_score(score), note) for score, record in found], ""


def by_words(memory: recollect.Memory, query: str, top_k: int, where: Filter, note: str) -> list[ScoredMemory]:
    """Return the hits of recall that share a word with the query, not only a word like one of it."""
    k = top_k
    while True:
        hits = memory.recall(query, k, where)
        kept = [hit for hit in hits if _shares_a_word(hit)]
        if len(kept) >= top_k or len(hits) < k:
            return [ScoredMemory(memory_of(hit.record), hit.confidence, note) for hit in kept[:top_k]]
        k *= 2


def _shares_a_word(hit: Hit) -> bool:
    return not hit.why.words or any(not word.like for word in hit.why.words)


def _ordered(found: list[tuple[float, Record]]) -> list[tuple[float, Record]]:
    """Return records by score, then the newest first, then by id."""
    by_id = sorted(found, key=lambda each: each[1].id.encode("utf-8"))
    newest_first = sorted(by_id, key=lambda each: each[1].time or _NO_TIME, reverse=True)
    return sorted(newest_first, key=lambda each: -each[0])
