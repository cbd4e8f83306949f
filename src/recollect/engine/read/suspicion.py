"""Suspicion: what the other records of a memory say about one of a low class of origin.

- Rival: it says something else of what the user has said (`text.rivals`).
- Burst: records of its class of origin have said nearly the same, at least three of them within a day.
- Source: what its source said within a day, of the same subject, is in quarantine.

The text itself is judged elsewhere (`policies.flags`). None of these is a proof: a policy decides what follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from recollect.common.deadlines import checked
from recollect.engine.history_results import AuditFinding
from recollect.engine.read.queries import Reading
from recollect.filters.tree import AllOf, AnyOf, Filter, Has, Is, Not, Nothing, Originates
from recollect.ledger.parts import RECORDS
from recollect.operations import Changes, Find, Recall
from recollect.operations.trust import Audit
from recollect.policies.flags import flags
from recollect.records.codec import datetime_of
from recollect.records.origins import at_least
from recollect.records.record import Record
from recollect.text.asking import only_asks
from recollect.text.manner import STANDING_TAGS
from recollect.text.rivals import is_rival
from recollect.text.words import language_of, terms

#: Number of the records of the user that are compared, of their sentences each, and of records of the same class.
_COMPARED, _SENTENCES, _OTHERS = 3, 20, 20
#: How much of the terms of both nearly equal texts share, how many such texts are a burst, and within what time.
_ALIKE, _BURST, _DAY = (1, 2), 3, 86_400_000_000
#: How many terms texts of one subject share, and how many a text of a burst has: "Done." is often said.
_OF_SUBJECT, _LEAST_TERMS = 2, 4
#: Number of characters of a text that are looked for.
_ASKED = 2000
_END = re.compile(r"(?<=[.!?])\s+|\n+")
#: Number of characters of a text that a finding shows.
_SHOWN = 300
_TRUSTED = Originates(at_least("user"))
_UNTRUSTED = Not(_TRUSTED)


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
        One recall.
    """
    found = _found(reading, record, _TRUSTED, _COMPARED)
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
        One recall, and a look-up of the last commit of each record that is nearly equal.
    """
    own = _terms(record.text)
    if len(own) < _LEAST_TERMS:
        return None
    least, of = _ALIKE
    alike = [
        each
        for each in _found(reading, record, Originates((record.effective_origin,)), _OTHERS)
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
    found = _found(reading, record, Originates((record.effective_origin,)), _OTHERS)
    same = [each for each in found if source_of(each) == where and len(own & _terms(each.text)) >= _OF_SUBJECT]
    ids = _lately(reading, same, now)
    return Suspicion("source", ids) if ids else None


def audit(reading: Reading, operation: Audit) -> list[AuditFinding]:
    """Return what may be an attack among the records that are not the word of the user or the owner, newest first.

    Cost:
        Two recalls for each record.
    """
    where = AllOf.of(operation.where, _UNTRUSTED)
    if operation.since:
        commits = reading.changes(Changes(since=operation.since, parts=(RECORDS,)))
        ids = dict.fromkeys(change.id for commit in commits for change in commit.changes)
        where = AllOf.of(where, Is("id", tuple(ids))) if ids else Nothing()
    found = reading.find(Find(where=where, limit=operation.limit))
    times = _times(reading, found)
    return [
        finding
        for record in checked(found)
        for finding in _findings(reading, record, times.get(record.id, reading.now))
    ]


def _findings(reading: Reading, record: Record, committed: int) -> Iterator[AuditFinding]:
    origin = record.effective_origin
    if record.pinned or record.supersedes or any(tag in STANDING_TAGS for tag in record.tags):
        yield AuditFinding(record.id, origin, "proposal", record.text[:_SHOWN], record.supersedes)
    for flag in flags(record.text):
        yield AuditFinding(record.id, origin, flag.signal, flag.text[:_SHOWN])
    for suspicion in (rivals(reading, record), burst(reading, record, committed)):
        if suspicion is not None:
            yield AuditFinding(record.id, origin, suspicion.signal, record.text[:_SHOWN], suspicion.ids)


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


def _found(reading: Reading, record: Record, condition: Filter, count: int) -> list[Record]:
    """Return the other records that a question with the text of a record finds, of its owners or of none."""
    text = record.text
    if not text.strip() or not record.searchable:
        return []
    owners: list[Filter] = [
        AnyOf.of(Is(name, (value,)), Not(Has(name)))
        for name in ("user", "agent")
        if (value := getattr(record, name)) is not None
    ]
    where = AllOf.of(condition, *owners)
    asked = Recall(question=text[:_ASKED], k=count, where=where, reference=datetime_of(reading.now))
    own = reading.scope.shown_id(record.id)
    return [hit.record for hit in reading.recall(asked) if hit.record.id != own]


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
