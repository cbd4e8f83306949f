"""The JSON form of the result of each operation, for executors in other processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from operator import methodcaller
from typing import Any, NamedTuple

from recollect.engine.entity_results import EntityGraph, EntitySummary, EntityView
from recollect.engine.history_results import Difference, Erased, RecordVersion, Replayed, Restored
from recollect.engine.outline_results import TreeEntry
from recollect.engine.policies import Policies
from recollect.engine.quota import Quota
from recollect.engine.results import (
    Export,
    Hits,
    Moment,
    NamespaceHead,
    Outcome,
    RecordList,
    Report,
    record_from_json,
    record_json,
)
from recollect.engine.sdr_results import FoundSdr
from recollect.engine.similar_results import Similar
from recollect.engine.term_results import Annotation, FoundTerm, SharedName
from recollect.ledger.commits import Commit, Snapshot
from recollect.operations import At, ExecuteBatch, Operation
from recollect.stores.reports import CheckReport, Compacted
from recollect.stores.values import Backup


class _Form(NamedTuple):
    """How the result of an operation is converted to JSON and back."""

    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]


#: The types of results that have a JSON form of their own, by name.
_KINDS: dict[str, _Form] = {
    kind.__name__: _Form(methodcaller("to_json"), kind.from_json)  # subclasses have forms of their own
    for kind in (
        Annotation,
        Backup,
        CheckReport,
        Commit,
        Compacted,
        Difference,
        EntityGraph,
        EntitySummary,
        EntityView,
        Erased,
        Export,
        FoundSdr,
        FoundTerm,
        Hits,
        Moment,
        NamespaceHead,
        Outcome,
        Policies,
        Quota,
        RecordList,
        RecordVersion,
        Replayed,
        Report,
        Restored,
        SharedName,
        Similar,
        Snapshot,
        TreeEntry,
    )
} | {
    "Record": _Form(record_json, record_from_json),
    "datetime": _Form(datetime.isoformat, datetime.fromisoformat),
    **dict.fromkeys(("None", "bool", "dict", "int", "str"), _Form(lambda result: result, lambda data: data)),
}


@cache
def _form(annotation: str) -> _Form:
    """Return the form of results of a type: a kind, or with "| None", "list[...]" or "dict[str, ...]" around it."""
    if annotation.endswith(" | None"):
        to_json, from_json = _form(annotation.removesuffix(" | None"))
        return _Form(
            lambda result: None if result is None else to_json(result),
            lambda data: None if data is None else from_json(data),
        )
    if annotation.startswith("list["):
        to_json, from_json = _form(annotation[5:-1])
        return _Form(lambda results: [*map(to_json, results)], lambda data: [*map(from_json, data)])
    if annotation.startswith("dict[str, "):
        to_json, from_json = _form(annotation[10:-1])
        return _Form(
            lambda results: {key: to_json(each) for key, each in results.items()},
            lambda data: {key: from_json(each) for key, each in data.items()},
        )
    return _KINDS[annotation]


def result_to_json(operation: Operation, result: Any) -> Any:
    """Return the JSON form of the result of an operation."""
    if isinstance(operation, ExecuteBatch):
        return [result_to_json(part, each) for part, each in zip(operation.operations, result, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return _form(operation.result).to_json(result)


def result_from_json(operation: Operation, data: Any) -> Any:
    """Rebuild the result of an operation from its JSON form."""
    if isinstance(operation, ExecuteBatch):
        return [result_from_json(part, each) for part, each in zip(operation.operations, data, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return _form(operation.result).from_json(data)
