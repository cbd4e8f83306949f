"""Recollect: long-term memory for LLM agents.

    import recollect
    memory = recollect.open("agent.db")
    memory.remember("Ana prefers window seats", kind="user_fact", user="ana", importance=0.8)
    for hit in memory.recall("which seat should I book for Ana?", k=5):
        print(hit.score, hit.record.content, hit.why)

Filters are in `recollect.filters`, operations in `recollect.operations`, record builders in
`recollect.records.factories`, and the test suite for other store implementations in `recollect.testing`.

Public names are imported on first use, so `import recollect` itself loads almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recollect._version import __version__

if TYPE_CHECKING:
    from recollect import errors, filters, operations, policies
    from recollect.client import connect
    from recollect.engine.call_log import Call
    from recollect.engine.history_results import (
        ChangedRecord,
        Deviation,
        Difference,
        Erased,
        RecordVersion,
        Replayed,
        Restored,
    )
    from recollect.engine.listeners import Subscription
    from recollect.engine.results import Export, Failed, Hit, Hits, NamespaceHead, Outcome, RecordList, Report, Why
    from recollect.engine.settings import Policies, Quota
    from recollect.engine.streams import CommitStream
    from recollect.engine.write.drafts import Limits
    from recollect.errors import RecollectError, Verdict
    from recollect.ledger.commits import Change, Commit, Snapshot
    from recollect.ledger.verifying import verify
    from recollect.memory import Batch, Memory, RecollectWarning
    from recollect.memory.awaited import AsyncMemory
    from recollect.memory.consolidation import Consolidated, Summary
    from recollect.memory.context.values import Context, ContextItem
    from recollect.memory.manager.duplicates import DuplicateGroup
    from recollect.memory.opening import open  # noqa: A004 - recollect.open is the name
    from recollect.memory.streams import AsyncCommitStream, AsyncSubscription
    from recollect.operations import ABSENT
    from recollect.records.record import EntityId, Record, RecordId
    from recollect.stores.maintenance.backup import restore
    from recollect.stores.maintenance.migrate import Migrated, migrate
    from recollect.stores.maintenance.rescue import RescueReport, rescue
    from recollect.stores.reports import CheckReport, Compacted
    from recollect.stores.values import Backup

__all__ = [
    "ABSENT",
    "AsyncCommitStream",
    "AsyncMemory",
    "AsyncSubscription",
    "Backup",
    "Batch",
    "Call",
    "Change",
    "ChangedRecord",
    "CheckReport",
    "Commit",
    "CommitStream",
    "Compacted",
    "Consolidated",
    "Context",
    "ContextItem",
    "Deviation",
    "Difference",
    "DuplicateGroup",
    "EntityId",
    "Erased",
    "Export",
    "Failed",
    "Hit",
    "Hits",
    "Limits",
    "Memory",
    "Migrated",
    "NamespaceHead",
    "Outcome",
    "Policies",
    "Quota",
    "RecollectError",
    "RecollectWarning",
    "Record",
    "RecordId",
    "RecordList",
    "RecordVersion",
    "Replayed",
    "Report",
    "RescueReport",
    "Restored",
    "Snapshot",
    "Subscription",
    "Summary",
    "Verdict",
    "Why",
    "__version__",
    "connect",
    "errors",
    "filters",
    "migrate",
    "open",
    "operations",
    "policies",
    "rescue",
    "restore",
    "verify",
]

#: Module -> the public names that it defines. Submodules that are public themselves are listed under "".
_HOMES = {
    "": ("errors", "filters", "operations", "policies"),
    "memory.awaited": ("AsyncMemory",),
    "memory.context.values": ("Context", "ContextItem"),
    "client": ("connect",),
    "engine.call_log": ("Call",),
    "engine.listeners": ("Subscription",),
    "engine.streams": ("CommitStream",),
    "memory.streams": ("AsyncCommitStream", "AsyncSubscription"),
    "engine.write.drafts": ("Limits",),
    "engine.settings": ("Policies", "Quota"),
    "engine.results": ("Export", "Failed", "Hit", "Hits", "NamespaceHead", "Outcome", "RecordList", "Report", "Why"),
    "errors": ("RecollectError", "Verdict"),
    "memory": ("Batch", "Memory", "RecollectWarning"),
    "memory.consolidation": ("Consolidated", "Summary"),
    "memory.manager.duplicates": ("DuplicateGroup",),
    "memory.opening": ("open",),
    "operations": ("ABSENT",),
    "records.record": ("EntityId", "Record", "RecordId"),
    "stores.maintenance.backup": ("restore",),
    "ledger.commits": ("Change", "Commit", "Snapshot"),
    "engine.history_results": (
        "ChangedRecord",
        "Deviation",
        "Difference",
        "Erased",
        "RecordVersion",
        "Replayed",
        "Restored",
    ),
    "ledger.verifying": ("verify",),
    "stores.values": ("Backup",),
    "stores.maintenance.migrate": ("Migrated", "migrate"),
    "stores.maintenance.rescue": ("RescueReport", "rescue"),
    "stores.reports": ("CheckReport", "Compacted"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    module = _HOME_OF[name]
    if not module:
        return import_module(f"recollect.{name}")
    value = getattr(import_module(f"recollect.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
