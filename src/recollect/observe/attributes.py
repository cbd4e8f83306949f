"""What the span of a call says: without contents for everybody, and contents where they are asked for.

What is said without contents is numbers, flags, names of operations and parts, and hashes of roots: nothing of what
callers wrote, asked or named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from recollect.engine.history_results import Erased, Restored
from recollect.engine.results import Hits, Outcome, Report, Similar, record_json
from recollect.engine.scope import Place
from recollect.engine.settings import Policies
from recollect.ledger.commits import Snapshot
from recollect.memory.context.values import Context
from recollect.observe import conventions as names
from recollect.operations import (
    AddMessages,
    At,
    Forget,
    ForgetAll,
    Merge,
    Operation,
    Remember,
    RememberAll,
    Supersede,
    Touch,
    Update,
)
from recollect.operations.base import WRITE
from recollect.operations.trust import Endorse, Release
from recollect.policies import redact, redact_json
from recollect.records.record import Record

Attributes: TypeAlias = dict[str, str | bool | int | float]
#: Maximum number of records whose contents a span has.
MOST_RECORDS = 100
#: The fields of searches that have what is searched for.
_QUERIES = ("question", "query", "text")


class Asked(NamedTuple):
    """What a call asks for.

    Attributes:
        call: The name of the operation, or "context".
        place: Where it is executed.
        policies: Reads the policies of the memory, of which it takes the place.
        operation: The operation; None for a call that consists of several.
        question: What such a call asks.
        past: Whether it reads a past moment.
    """

    call: str
    place: Place
    policies: Callable[[Place], Policies]
    operation: Operation | None = None
    question: str = ""
    past: bool = False

    @classmethod
    def of(cls, operation: Operation, place: Place, policies: Callable[[Place], Policies]) -> Asked:
        """Return what an operation asks for; of one in the past, what it asks of the moment."""
        if isinstance(operation, At):
            return cls(operation.operation.name, place, policies, operation.operation, past=True)
        return cls(operation.name, place, policies, operation)


def asked(what: Asked) -> Attributes:
    """Return what can be said of a call before it has a result."""
    out: Attributes = {names.SCOPED: bool(what.place.scope.fixed)}
    if what.place.branch.is_reserved:
        out[names.PART] = what.place.branch.reserved_name
    if what.past:
        out[names.PAST] = True
    if isinstance(k := getattr(what.operation, "k", None), int):
        out[names.K] = k
    if (count := _attempted(what.operation)) is not None:
        out[names.RECORD_COUNT] = count
    return out


def _attempted(operation: Operation | None) -> int | None:
    """Return how many records an operation tries to write or to delete; None if its result says so."""
    match operation:
        case Remember() | Update() | Supersede() | Merge() | Forget() | Endorse():
            return 1
        case RememberAll(items=several) | AddMessages(turns=several):
            return len(several)
        case ForgetAll(ids=several) | Touch(ids=several) | Release(ids=several):
            return len(several)
    return None


def answered(what: Asked, result: Any) -> Attributes:
    """Return what can be said of a result."""
    match result:
        case Hits(plan=plan):
            out: Attributes = {names.RECORD_COUNT: len(result), names.HITS: len(result)}
            if result.hits:
                out[names.TOP_CONFIDENCE] = result.hits[0].confidence
            if plan.narrowed is not None:
                out[names.NARROWED] = plan.narrowed
            if result.root:  # not within a scope, which learns nothing of other records
                out |= {names.SEQ: result.watermark, names.ROOT: result.root}
            return out
        case Context(items=items):
            included = sum(each.included for each in items)
            return {
                names.RECORD_COUNT: included,
                names.TOKENS: result.tokens,
                names.LEFT_OUT: len(items) - included,
            }
        case Outcome():
            return {names.STATUS: result.status}
        case Report():
            return {names.FAILED: len(result.failed)}
        case Snapshot():
            return {names.SEQ: result.seq, names.ROOT: result.root}
        case Restored():
            return {names.SEQ: result.seq}
        case Erased():
            return {names.RECORD_COUNT: len(result.ids)}
        case Similar():
            return {names.RECORD_COUNT: len(result.found)}
    if names.MEMORY_OPERATIONS.get(what.call) == names.SEARCH and isinstance(result, list):
        return {names.RECORD_COUNT: len(result)}
    if names.MEMORY_OPERATIONS.get(what.call) == names.DELETE and isinstance(result, int):
        return {} if isinstance(what.operation, ForgetAll) else {names.RECORD_COUNT: int(result)}
    return {}


def contents(what: Asked, result: Any, hidden: Collection[str]) -> Attributes:
    """Return the contents of a call.

    Args:
        result: The result; None: there is none.
        hidden: The categories that are redacted (`recollect.policies.CATEGORIES`).
    """
    out: Attributes = {names.NAMESPACE: shown(what.place.branch.owner.namespace, hidden)}
    query = what.question or next((value for name in _QUERIES if (value := getattr(what.operation, name, ""))), "")
    if query and names.MEMORY_OPERATIONS.get(what.call) == names.SEARCH:
        out[names.QUERY_TEXT] = shown(query, hidden)
    found = list(_records(result))
    if (named := _id(what.operation, result)) is not None:
        out[names.RECORD_ID] = shown(named, hidden)
    if found and names.MEMORY_OPERATIONS.get(what.call) not in (None, names.DELETE):
        described = [_described(record, score) for record, score in found[:MOST_RECORDS]]
        redacted = redact_json(described, hidden)[0] if hidden else described
        out[names.RECORDS] = json.dumps(redacted, ensure_ascii=False, separators=(",", ":"))
    return out


def shown(text: str, hidden: Collection[str]) -> str:
    """Return a text without what is redacted."""
    return redact(text, hidden).text if hidden else text


def _id(operation: Operation | None, result: Any) -> str | None:
    """Return the id of the one record that an operation is about: as it was stored, or as it was named."""
    if isinstance(result, Outcome) and result.record is not None:
        return result.record.id
    if operation is None or operation.right != WRITE or not isinstance(found := getattr(operation, "id", None), str):
        return None
    return found


def _records(result: Any) -> Iterator[tuple[Record, float | None]]:
    """Yield the records of a result, each with its score if it has one."""
    match result:
        case Record():
            yield result, None
        case Outcome():
            yield from _records(result.record)
        case Report():
            for each in result.results:
                yield from _records(each)
        case Context(items=items):
            yield from ((each.record, each.score) for each in items if each.included)
        case Hits():
            yield from ((hit.record, hit.score) for hit in (*result.standing, *result.hits))
        case Similar(found=found):
            yield from ((each.record, each.similarity) for each in found)
        case list():
            for each in result:
                if isinstance(record := getattr(each, "record", None), Record):  # a term or a text that was found
                    yield record, each.score
                elif isinstance(several := getattr(each, "records", each), Sequence):  # an occurrence of terms
                    yield from ((record, None) for record in several if isinstance(record, Record))
                else:
                    yield from _records(each)


def _described(record: Record, score: float | None) -> Mapping[str, Any]:
    """Return a record in the form of the conventions; bytes are shown by their media type, in brackets."""
    content = record.content if isinstance(record.content, str) else f"[{record.media_type}]"
    out = {"content": content, "id": record.id, "metadata": record_json(record).get("metadata", {})}
    return out if score is None else {**out, "score": score}
