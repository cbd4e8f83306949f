"""Terms as points: an id, a payload and a sparse vector, whose product with that of a question is BM25.

A component of a term's vector is BM25's share of a token: (k1 + 1) tf / (tf + k1 (1 - b + b length / `LENGTH`)). The
server multiplies it by the token's IDF among the terms of the agent. It knows no mean length of an agent's terms, so
the length is compared with a constant. A token's number is a hash of 32 bits; two tokens of one number count as one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from recollect.errors import DamagedStoreError, InvalidRecordError
from recollect.facets.glossary.index.index import K1, B, tokens
from recollect.facets.glossary.records import entry_of, term_fields
from recollect.facets.glossary.values import StatedTerm
from recollect.records.record import Record

#: The length of a term, in tokens, that is neither rewarded nor penalized.
LENGTH = 16
#: Of a longer name only the first tokens are in the payload. `occurs` looks at all of it.
MOST_TOKENS = 8
_BETWEEN = " "


class TermPoint(NamedTuple):
    """A term as the server stores it.

    Attributes:
        id: The id of the term.
        payload: Its agent, its fields, and how its names begin.
        vector: The weight of each of its tokens, by the number of the token.
    """

    id: str
    payload: dict[str, Any]
    vector: dict[int, float]


def point_of(term: StatedTerm, agent: str, tokenize: Callable[[str], Sequence[str]]) -> TermPoint:
    """Return the point of a term.

    Raises:
        InvalidRecordError: A text is too long, or the agent is not a name.
    """
    record = _record(agent, term)
    entry = entry_of(record)
    assert entry is not None
    names = [list(tokens(name)) for name in (entry.key, *entry.aliases)]
    payload = {
        "agent_id": agent,
        "key": entry.key,
        "value": entry.value,
        "category": entry.category,
        "aliases": list(entry.aliases),
        "description": entry.description,
        "names": sorted({_BETWEEN.join(name[:MOST_TOKENS]) for name in names if name}),
    }
    return TermPoint(record.id, payload, weights(tokenize(entry.text)))


def record_of(payload: Mapping[str, Any] | None, point_id: object) -> Record:
    """Return the record of a point.

    Raises:
        DamagedStoreError: It is not that of a term.
    """
    try:
        said = dict(payload or {})
        term = StatedTerm(said["key"], said["value"], said["category"], tuple(said["aliases"]), said["description"])
        return _record(said["agent_id"], term)
    except (KeyError, TypeError, InvalidRecordError) as error:
        raise DamagedStoreError("the glossary", f"the point {point_id} is not a term: {error}") from None


def _record(agent: str, term: StatedTerm) -> Record:
    return Record(**term_fields(agent, *term[:5]))


def weights(found: Sequence[str]) -> dict[int, float]:
    """Return the vector of a text with some tokens.

    >>> weights(["tea", "cup", "tea"])[token_number("cup")] < weights(["tea", "cup"])[token_number("cup")]
    True
    """
    norm = K1 * (1 - B + B * len(found) / LENGTH)
    out: dict[int, float] = {}
    for number, count in counts(found).items():
        out[number] = count * (K1 + 1) / (count + norm)
    return out


def counts(found: Sequence[str]) -> dict[int, int]:
    """Return how often each token occurs, by its number: the vector of a question."""
    return dict(sorted(Counter(map(token_number, found)).items()))


def token_number(token: str) -> int:
    """Return the number of a token, below 2**32.

    >>> token_number("tea")
    532194854
    """
    return int.from_bytes(hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big")


def beginnings(question: str) -> tuple[str, list[str]]:
    """Return the tokens of a question, with a space between them, and how a name that occurs in it can begin."""
    said = list(tokens(question))
    runs = {
        _BETWEEN.join(said[start : start + size])
        for size in range(1, min(MOST_TOKENS, len(said)) + 1)
        for start in range(len(said) - size + 1)
    }
    return _BETWEEN.join(said), sorted(runs)


def occurs(record: Record, said: str) -> bool:
    """Return whether a name of a term occurs in the tokens of a question."""
    entry = entry_of(record)
    assert entry is not None
    spelt = (_BETWEEN.join(tokens(name)) for name in (entry.key, *entry.aliases))
    return any(name and f" {name} " in f" {said} " for name in spelt)
