"""Operations: every public call as a value.

The methods of `Memory` build these values and pass them to `memory.execute(operation)`, which is the only entry point.
Each operation has a JSON form, `{"op": name, ...}`, and `from_json` builds an equal operation from it, so that a client
can offer the same calls over a socket or HTTP. A custom filter or a function has no JSON form: `to_json` raises
UnsupportedError for it, and never leaves it out.

Facets add operations of their own, such as `RecallTerms`: they are here, too, once `recollect.memory` is imported.
"""

from __future__ import annotations

from typing import Any

from recollect.arguments.checks import (
    MAX_TTL_S,
    check_choice,
    check_count,
    check_key,
    check_label,
    check_text,
    check_timeout,
)
from recollect.operations.base import REGISTRY, SCOPED, Operation, Per, from_json, plain
from recollect.operations.history import (
    Diff,
    DropSnapshot,
    Erase,
    History,
    Revert,
    Rollback,
    Snapshots,
    TakeSnapshot,
)
from recollect.operations.past import At, Pin, target_of
from recollect.operations.reads import (
    AUTO_CONFIDENCE,
    MONTH_S,
    ORDERS,
    Changes,
    Count,
    Find,
    FindSimilar,
    Get,
    GetPolicies,
    GetQuota,
    Grep,
    MinConfidence,
    Namespaces,
    Now,
    OpenExport,
    Order,
    Prove,
    ProveLog,
    ReadHead,
    Recall,
    Stats,
    ValidUntil,
    Wait,
    Zone,
    least_confidence,
)
from recollect.operations.receipts import Receipt, Replay
from recollect.operations.upkeep import (
    WHEN_FULL,
    BackUp,
    Check,
    Compact,
    EmbedAll,
    Probe,
    Redaction,
    SetPolicies,
    SetQuota,
    VectorStats,
    WhenFull,
    check_low_water,
)
from recollect.operations.writes import (
    ABSENT,
    IF_EXISTS,
    MESSAGE_FIELDS,
    ON_ERROR,
    AddMessages,
    Clear,
    ExecuteBatch,
    Forget,
    ForgetWhere,
    IfExists,
    Merge,
    OnError,
    Remember,
    RememberAll,
    Supersede,
    Sweep,
    Update,
    expectation,
)
from recollect.text.languages import check_tag

__all__ = [
    "ABSENT",
    "AUTO_CONFIDENCE",
    "IF_EXISTS",
    "MAX_TTL_S",
    "MESSAGE_FIELDS",
    "MONTH_S",
    "ON_ERROR",
    "ORDERS",
    "REGISTRY",
    "SCOPED",
    "WHEN_FULL",
    "AddMessages",
    "At",
    "BackUp",
    "Changes",
    "Check",
    "Clear",
    "Compact",
    "Count",
    "Diff",
    "DropSnapshot",
    "EmbedAll",
    "Erase",
    "ExecuteBatch",
    "Find",
    "FindSimilar",
    "Forget",
    "ForgetWhere",
    "Get",
    "GetPolicies",
    "GetQuota",
    "Grep",
    "History",
    "IfExists",
    "Merge",
    "MinConfidence",
    "Namespaces",
    "Now",
    "OnError",
    "OpenExport",
    "Operation",
    "Order",
    "Per",
    "Pin",
    "Probe",
    "Prove",
    "ProveLog",
    "ReadHead",
    "Recall",
    "Receipt",
    "Redaction",
    "Remember",
    "RememberAll",
    "Replay",
    "Revert",
    "Rollback",
    "SetPolicies",
    "SetQuota",
    "Snapshots",
    "Stats",
    "Supersede",
    "Sweep",
    "TakeSnapshot",
    "Update",
    "ValidUntil",
    "VectorStats",
    "Wait",
    "WhenFull",
    "Zone",
    "check_choice",
    "check_count",
    "check_key",
    "check_label",
    "check_low_water",
    "check_tag",
    "check_text",
    "check_timeout",
    "expectation",
    "from_json",
    "least_confidence",
    "plain",
    "target_of",
]


def __getattr__(name: str) -> Any:
    """Return an operation of a facet by the name of its class."""
    for kind in REGISTRY.values():
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
