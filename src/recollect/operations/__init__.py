"""Operations: every public call as a value.

The methods of `Memory` build these values and pass them to `memory.execute(operation)`, which is the only entry point.
Each operation has a JSON form, `{"op": name, ...}`, and `from_json` builds an equal operation from it, so that a client
can offer the same calls over a socket or HTTP. A custom filter or a function has no JSON form: `to_json` raises
UnsupportedError for it, and never leaves it out.
"""

from __future__ import annotations

from recollect.operations.base import REGISTRY, Operation, from_json, plain
from recollect.operations.checks import MAX_TTL_S, check_choice, check_label, check_tag, check_text, check_timeout
from recollect.operations.reads import (
    ORDERS,
    Changes,
    Count,
    Export,
    Find,
    Get,
    GetQuota,
    Grep,
    Head,
    Namespaces,
    Now,
    Order,
    Recall,
    Stats,
    Wait,
)
from recollect.operations.upkeep import (
    SCOPED,
    WHEN_FULL,
    BackUp,
    Check,
    EmbedAll,
    Per,
    Probe,
    SetQuota,
    VectorStats,
    WhenFull,
)
from recollect.operations.writes import (
    ABSENT,
    IF_EXISTS,
    ON_ERROR,
    Batch,
    Clear,
    Forget,
    ForgetWhere,
    IfExists,
    OnError,
    Remember,
    RememberAll,
    Sweep,
    Update,
    expectation,
)

__all__ = [
    "ABSENT",
    "IF_EXISTS",
    "MAX_TTL_S",
    "ON_ERROR",
    "ORDERS",
    "REGISTRY",
    "SCOPED",
    "WHEN_FULL",
    "BackUp",
    "Batch",
    "Changes",
    "Check",
    "Clear",
    "Count",
    "EmbedAll",
    "Export",
    "Find",
    "Forget",
    "ForgetWhere",
    "Get",
    "GetQuota",
    "Grep",
    "Head",
    "IfExists",
    "Namespaces",
    "Now",
    "OnError",
    "Operation",
    "Order",
    "Per",
    "Probe",
    "Recall",
    "Remember",
    "RememberAll",
    "SetQuota",
    "Stats",
    "Sweep",
    "Update",
    "VectorStats",
    "Wait",
    "WhenFull",
    "check_choice",
    "check_label",
    "check_tag",
    "check_text",
    "check_timeout",
    "expectation",
    "from_json",
    "plain",
]
