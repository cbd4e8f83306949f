"""The JSON form of the result of each operation, for executors in other processes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
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
from recollect.operations import (
    AddMessages,
    AnnotateTerms,
    At,
    BackUp,
    Changes,
    Check,
    Clear,
    Compact,
    Count,
    Diff,
    DropSnapshot,
    EmbedAll,
    Entities,
    EntityOf,
    Erase,
    ExecuteBatch,
    Find,
    FindSimilar,
    Forget,
    ForgetWhere,
    Get,
    GetPolicies,
    GetQuota,
    Grep,
    History,
    Merge,
    Namespaces,
    Neighbours,
    Now,
    OpenExport,
    Operation,
    Paths,
    Pin,
    Probe,
    Prove,
    ProveLog,
    ReadHead,
    ReadTree,
    Recall,
    RecallSdrs,
    RecallTerms,
    Receipt,
    Remember,
    RememberAll,
    Replay,
    Revert,
    Rollback,
    SetPolicies,
    SetQuota,
    SharedNames,
    Snapshots,
    Stats,
    Supersede,
    Sweep,
    TakeSnapshot,
    Update,
    ValidUntil,
    VectorStats,
    Wait,
    Zone,
)
from recollect.stores.reports import CheckReport, Compacted
from recollect.stores.values import Backup


class _Form(NamedTuple):
    """How the result of an operation is converted to JSON and back."""

    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]


def _list_of(form: _Form) -> _Form:
    return _Form(lambda results: [form.to_json(each) for each in results], lambda data: list(map(form.from_json, data)))


def _optional(form: _Form) -> _Form:
    return _Form(
        lambda result: None if result is None else form.to_json(result),
        lambda data: None if data is None else form.from_json(data),
    )


#: Numbers, texts, and lists and dictionaries of these.
_PLAIN = _Form(lambda result: result, lambda data: data)
_RECORD = _Form(record_json, record_from_json)
_RECORDS = _Form(RecordList.to_json, RecordList.from_json)
_OUTCOME = _Form(Outcome.to_json, Outcome.from_json)
_SNAPSHOT = _Form(Snapshot.to_json, Snapshot.from_json)
_FORMS: dict[type[Operation], _Form] = {
    Remember: _OUTCOME,
    RememberAll: _Form(Report.to_json, Report.from_json),
    AddMessages: _Form(Report.to_json, Report.from_json),
    Update: _OUTCOME,
    Supersede: _OUTCOME,
    Merge: _OUTCOME,
    Forget: _OUTCOME,
    ForgetWhere: _PLAIN,
    Clear: _PLAIN,
    Sweep: _PLAIN,
    SetQuota: _PLAIN,
    SetPolicies: _PLAIN,
    Get: _optional(_RECORD),
    Find: _RECORDS,
    Count: _PLAIN,
    Recall: _Form(Hits.to_json, Hits.from_json),
    FindSimilar: _Form(Similar.to_json, Similar.from_json),
    Grep: _RECORDS,
    Entities: _list_of(_Form(EntitySummary.to_json, EntitySummary.from_json)),
    EntityOf: _optional(_Form(EntityView.to_json, EntityView.from_json)),
    Neighbours: _Form(EntityGraph.to_json, EntityGraph.from_json),
    Paths: _PLAIN,
    RecallTerms: _list_of(_Form(FoundTerm.to_json, FoundTerm.from_json)),
    AnnotateTerms: _list_of(_Form(Annotation.to_json, Annotation.from_json)),
    SharedNames: _list_of(_Form(SharedName.to_json, SharedName.from_json)),
    RecallSdrs: _list_of(_Form(FoundSdr.to_json, FoundSdr.from_json)),
    ReadTree: _list_of(_Form(TreeEntry.to_json, TreeEntry.from_json)),
    ReadHead: _Form(NamespaceHead.to_json, NamespaceHead.from_json),
    Stats: _PLAIN,
    ValidUntil: _Form(
        lambda ends: {each: end.isoformat() for each, end in ends.items()},
        lambda data: {each: datetime.fromisoformat(end) for each, end in data.items()},
    ),
    GetPolicies: _Form(Policies.to_json, Policies.from_json),
    GetQuota: _optional(_Form(Quota.to_json, Quota.from_json)),
    Namespaces: _PLAIN,
    Changes: _list_of(_Form(lambda commit: commit.to_json(), Commit.from_json)),
    Wait: _PLAIN,
    OpenExport: _Form(Export.to_json, Export.from_json),
    EmbedAll: _PLAIN,
    VectorStats: _PLAIN,
    Check: _Form(CheckReport.to_json, CheckReport.from_json),
    Compact: _Form(Compacted.to_json, Compacted.from_json),
    BackUp: _Form(Backup.to_json, Backup.from_json),
    Probe: _PLAIN,
    Receipt: _PLAIN,
    Replay: _Form(Replayed.to_json, Replayed.from_json),
    Prove: _PLAIN,
    ProveLog: _PLAIN,
    TakeSnapshot: _SNAPSHOT,
    Snapshots: _list_of(_SNAPSHOT),
    DropSnapshot: _SNAPSHOT,
    Rollback: _Form(Restored.to_json, Restored.from_json),
    Revert: _Form(Restored.to_json, Restored.from_json),
    Erase: _Form(Erased.to_json, Erased.from_json),
    Diff: _Form(Difference.to_json, Difference.from_json),
    History: _list_of(_Form(RecordVersion.to_json, RecordVersion.from_json)),
    Pin: _Form(Moment.to_json, Moment.from_json),
    Now: _Form(datetime.isoformat, datetime.fromisoformat),
    Zone: _PLAIN,
}


def result_to_json(operation: Operation, result: Any) -> Any:
    """Return the JSON form of the result of an operation."""
    if isinstance(operation, ExecuteBatch):
        return [result_to_json(part, each) for part, each in zip(operation.operations, result, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return _FORMS[type(operation)].to_json(result)


def result_from_json(operation: Operation, data: Any) -> Any:
    """Rebuild the result of an operation from its JSON form."""
    if isinstance(operation, ExecuteBatch):
        return [result_from_json(part, each) for part, each in zip(operation.operations, data, strict=True)]
    if isinstance(operation, At):
        operation = operation.operation
    return _FORMS[type(operation)].from_json(data)
