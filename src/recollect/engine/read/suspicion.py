"""Suspicion: what the other records of a memory say about one of a low class of origin.

- Rival: it says something else of what the user has said (`text.rivals`).
- Burst: records of its class of origin have said nearly the same, at least three of them within a day.
- Source: what its source said within a day, of the same subject, is in quarantine.

The text itself is judged elsewhere (`policies.flags`). None of these is a proof: a policy decides what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from recollect.common.deadlines import checked
from recollect.common.regexes import regex
from recollect.engine.history_results import AuditFinding
from recollect.engine.read.filter_bounds import bounds
from recollect.engine.read.queries import Reading
from recollect.engine.read.record_loader import Records
from recollect.engine.scope import scopes_of
from recollect.filters.tree import AllOf, AnyOf, Filter, Has, Is, Not, Nothing, Originates, Tag
from recollect.indexes.documents.columns import Ints
from recollect.indexes.words.index import WordView, query_terms
from recollect.indexes.words.segment import POSITION_BITS
from recollect.ledger.parts import RECORDS
from recollect.operations import Changes, Find, GetAll
from recollect.operations.trust import Audit
from recollect.policies.flags import flags
from recollect.records.origins import RANKS, at_least
from recollect.records.record import Record
from recollect.text.asking import only_asks
from recollect.text.manner import STANDING_TAGS
from recollect.text.rivals import is_rival, may_rival
from recollect.text.words import language_of, terms

#: Number of the records of the user that are compared, of their sentences each, and of records of the same class.
_COMPARED, _SENTENCES, _OTHERS = 8, 20, 20
#: How much of the terms of both nearly equal texts share, how many such texts are a burst, and within what time.
_ALIKE, _BURST, _DAY = (1, 2), 3, 86_400_000_000
#: How many terms texts of one subject share, and how many a text of a burst has: "Done." is often said.
_OF_SUBJECT, _LEAST_TERMS = 2, 4
#: How frequent a term may be to be looked for.
_MOST_COMMON = 5000
#: Number of characters of a text that are looked for.
_ASKED = 2000
_END = regex(r"(?<=[.!?])\s+|\n+")
#: Number of characters of a text that a finding shows.
_SHOWN = 300
_TRUSTED = Originates(at_least("user"))
_UNTRUSTED = Not(_TRUSTED)
#: What a proposal has.
_ASKING = AllOf.of(Not(Originates(("owner",))), AnyOf.of(Has("supersedes"), Has("pinned"), *map(Tag, STANDING_TAGS)))
_OF_WORDING = frozenset(("imperative", "addresses", "hidden"))


class Suspicion(NamedTuple):
    """Why a record is suspect.

    Attributes:
        signal: "rival", "burst" or "source".
        ids: The records, as the scope shows their ids, that say so: what it rivals, or its likes.
    """

    signal: str
    ids: tuple[str, ...]


def rivals(reading: Reading, record: Record) -> Suspicion | None:
    """Return which records of the user a less trusted one says something else of; None if there are none.

    Cost:
        In proportion to the postings of its terms (`_nearest`).
    """
    if not may_rival(record.text):
        return None
    found = _nearest(reading, record, _TRUSTED, _COMPARED, inexact=True)
    ids = tuple(each.id for each in found if _says_other(record.text, each.text))
    return Suspicion("rival", ids) if ids else None


def _says_other(text: str, trusted: str) -> bool:
    sentences = (each for each in _END.split(trusted)[:_SENTENCES] if each.strip() and not only_asks(each))
    return any(is_rival(text, each) for each in sentences)


def burst(reading: Reading, record: Record, now: int, *, others: int = _BURST - 1) -> Suspicion | None:
    """Return which records of the same class said nearly the same within the last day; None if they are too few.

    Args:
        reading: What is read: the records of the memory, or those in quarantine.
        record: The record.
        now: The time at which it was committed, in microseconds since 1970.
        others: Minimum number of such records.

    Cost:
        In proportion to the postings of its terms, and the last commit of each record that is nearly equal.
    """
    own = _terms(record.text)
    if len(own) < _LEAST_TERMS:
        return None
    least, of = _ALIKE
    shared = -(-len(own) * least // of)
    alike = [
        each
        for each in _nearest(reading, record, Originates((record.effective_origin,)), _OTHERS, shared)
        if len(own & (other := _terms(each.text))) * of >= least * len(own | other) > 0
    ]
    ids = _lately(reading, alike, now)
    return Suspicion("burst", ids) if len(ids) >= others else None


def of_source(reading: Reading, record: Record, now: int) -> Suspicion | None:
    """Return what the source of a record said of the same subject within the last day; None for nothing.

    Args:
        reading: What is read: the records of the memory, or those in quarantine.
        record: The record.
        now: The time at which it was committed, in microseconds since 1970.
    """
    where, own = source_of(record), _terms(record.text)
    if where is None:
        return None
    found = _nearest(reading, record, Originates((record.effective_origin,)), _OTHERS)
    same = [each for each in found if source_of(each) == where and len(own & _terms(each.text)) >= _OF_SUBJECT]
    ids = _lately(reading, same, now)
    return Suspicion("source", ids) if ids else None


def audit(reading: Reading, operation: Audit) -> list[AuditFinding]:
    """Return what may be an attack among the records that are not the word of the user or the owner, newest first.

    Cost:
        Two recalls for each record.
    """
    signals = frozenset(operation.signals)
    only_proposals = signals == {"proposal"}
    where = AllOf.of(operation.where, _ASKING if only_proposals else _UNTRUSTED)
    if operation.since:
        commits = reading.changes(Changes(since=operation.since, parts=(RECORDS,)))
        ids = dict.fromkeys(change.id for commit in commits for change in commit.changes)
        where = AllOf.of(where, Is("id", tuple(ids))) if ids else Nothing()
    # Most of what names another record proposes nothing, so all of it is looked at.
    found = reading.find(Find(where=where, limit=None if only_proposals else operation.limit))
    times = {} if only_proposals else _times(reading, found)
    findings = (
        finding
        for record in checked(found)
        for finding in _findings(reading, record, times.get(record.id, reading.now), signals)
    )
    return list(islice(findings, operation.limit) if only_proposals else findings)


def _findings(reading: Reading, record: Record, committed: int, signals: frozenset[str]) -> Iterator[AuditFinding]:
    origin = record.effective_origin
    if "proposal" in signals and (asks := _asks(reading, record)) is not None:
        yield AuditFinding(record.id, origin, "proposal", record.text[:_SHOWN], asks)
    for flag in flags(record.text) if signals & _OF_WORDING else ():
        if flag.signal in signals:
            yield AuditFinding(record.id, origin, flag.signal, flag.text[:_SHOWN])
    found = [rivals(reading, record)] if "rival" in signals else []
    found += [burst(reading, record, committed)] if "burst" in signals else []
    for suspicion in found:
        if suspicion is not None:
            yield AuditFinding(record.id, origin, suspicion.signal, record.text[:_SHOWN], suspicion.ids)


def _asks(reading: Reading, record: Record) -> tuple[str, ...] | None:
    """Return the records of a higher class that one would replace if it were endorsed; None if it asks for nothing."""
    least, ids = RANKS[record.effective_origin], record.supersedes
    named = reading.get_all(GetAll(ids=ids)) if ids else ()
    for scope in scopes_of(record) if None in named else ():  # the link is written as the scope of its writer shows it
        inside = replace(reading, scope=scope).get_all(GetAll(ids=ids))
        named = [one or other for one, other in zip(named, inside, strict=True)]
    above = tuple(
        id_ for id_, each in zip(ids, named, strict=True) if each is not None and RANKS[each.effective_origin] > least
    )
    governs = (record.pinned or any(tag in STANDING_TAGS for tag in record.tags)) and not record.has_authority
    return above if above or governs else None


def source_of(record: Record) -> str | None:
    """Return what a record is from: the host of a page, the folder of a document, or a tool; None if nothing says so.

    >>> source_of(Record(id="a", content="x", source="https://www.pages.example/a/b"))
    'www.pages.example'
    """
    if record.source is not None:
        host = urlsplit(record.source).netloc if "://" in record.source else ""
        return host.casefold() or record.source.rpartition("/")[0] or record.source
    tool = record.speaker or record.metadata.get("name")
    return f"{record.role}: {tool}" if isinstance(tool, str) and record.role is not None else None


def _nearest(
    reading: Reading,
    record: Record,
    condition: Filter,
    count: int,
    least: int = _OF_SUBJECT,
    *,
    inexact: bool = False,
) -> list[Record]:
    """Return the other records, of the same owners or of none, that share the rarest terms with a record, best first.

    This is no question: neither neighbours nor dates count. A write can afford it, and not a recall.

    Args:
        reading: What is read.
        record: The record.
        condition: Only records that match.
        count: Maximum number of records.
        least: How many terms they share at least. Terms that are too frequent to be looked for count as shared.
        inexact: Whether a word that no record has stands for those that resemble it, and a compound for its parts.

    Cost:
        In proportion to the postings of the terms, and to the records that are returned.
    """
    if not record.text.strip() or not record.searchable:
        return []
    words = reading.visible()
    table = words.table
    postings: list[Ints] = []
    weights: list[int] = []
    common = 0
    for term in sorted(_looked_for(words, record.text[:_ASKED]) if inexact else _terms(record.text)):
        numbers = words.occurrences(term) >> POSITION_BITS
        if 0 < len(numbers) <= _MOST_COMMON:
            postings.append(numbers[np.flatnonzero(np.diff(numbers, prepend=-1))])
            weights.append((table.count // len(postings[-1])).bit_length())
        else:
            common += len(numbers) > 0
    if not postings:
        return []
    numbers, which = np.unique(np.concatenate(postings), return_inverse=True)
    weight = np.bincount(which, np.repeat(weights, list(map(len, postings)))).astype(np.int64)
    owners: list[Filter] = [
        AnyOf.of(Is(name, (value,)), Not(Has(name)))
        for name in ("user", "agent")
        if (value := getattr(record, name)) is not None
    ]
    admitted = bounds(AllOf.of(condition, *owners), words).upper
    kept = (np.bincount(which) + common >= least) & (True if admitted is None else admitted[numbers])
    numbers, weight = numbers[kept], weight[kept]
    if len(numbers) > count:  # among equals, the ids decide, which are the same in every store
        best = weight >= np.partition(weight, -count - 1)[-count - 1]
        numbers, weight = numbers[best], weight[best]
    ranked = sorted(zip((-weight).tolist(), map(table.id, numbers.tolist()), numbers.tolist(), strict=True))
    ranked = [each for each in ranked if each[1] != record.id][:count]
    found = Records(reading.view, reading.branch, table).all(
        np.array([number for *_, number in ranked], dtype=np.int64)
    )
    return [reading.scope.shown(each) for _, each in found]


def _looked_for(words: WordView, text: str) -> set[str]:
    language = language_of(text)
    return {each.term for each in query_terms(words, terms(text, language), language)}


def _lately(reading: Reading, records: list[Record], now: int) -> tuple[str, ...]:
    """Return the ids of the records that were committed within the last day."""
    times = _times(reading, records)
    return tuple(each.id for each in records if each.id in times and now - times[each.id] <= _DAY)


def _times(reading: Reading, records: Iterable[Record]) -> dict[str, int]:
    """Return the times of the last commits of records, by the ids that the scope shows."""
    scope, view, branch = reading.scope, reading.view, reading.branch
    stored = {
        name: each.id
        for each in records
        for name in scope.stored_ids(each.id, lambda name: view.known(branch, name))
        if view.get(branch, name) is not None
    }
    return {stored[name]: micros for name, micros in view.last_commits(branch, list(stored)).items()}


def _terms(text: str) -> frozenset[str]:
    text = text[:_ASKED]
    return frozenset(term for term, _ in terms(text, language_of(text)))
