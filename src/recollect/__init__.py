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
from typing import Any

from recollect._version import __version__ as __version__

#: Module -> the public names that it defines; `__init__.pyi` has their types. Public submodules are under "".
_HOMES = {
    "": ("errors", "filters", "observe", "operations", "policies"),
    "memory.awaited": ("AsyncMemory",),
    "memory.context.values": ("Context", "ContextItem"),
    "wire.client": ("connect",),
    "engine.call_log": ("Call",),
    "engine.listeners": ("Subscription",),
    "engine.streams": ("CommitStream",),
    "engine.write.drafts": ("Limits",),
    "engine.settings": ("Policies", "Quota"),
    "engine.results": (
        "Export",
        "ExportedPart",
        "Failed",
        "Hit",
        "Hits",
        "NamespaceHead",
        "Outcome",
        "PartCounts",
        "RecordList",
        "Report",
        "Why",
    ),
    "errors": ("RecollectError", "Verdict"),
    "memory": ("Batch", "Memory", "RecollectWarning"),
    "memory.bisection.values": ("Bisected", "HitChange"),
    "memory.consolidation": ("Consolidated", "Summary"),
    "memory.devices": ("MergedCopy", "merge_copy"),
    "memory.manager.duplicates": ("DuplicateGroup",),
    "memory.opening": ("open",),
    "operations": ("ABSENT",),
    "operations.retention": ("Due", "Retention", "RetentionRule"),
    "records.record": ("EntityId", "Record", "RecordId"),
    "stores.maintenance.backup": ("restore",),
    "stores.maintenance.encrypting": ("Rewritten", "decrypt", "encrypt"),
    "stores.maintenance.keys": ("StoreKeys",),
    "ledger.commits": ("Change", "Commit", "Snapshot"),
    "engine.branch_results": ("BranchInfo", "Conflict", "Merged"),
    "engine.history_results": (
        "ChangedRecord",
        "Deviation",
        "Difference",
        "Erased",
        "Lineage",
        "RecordVersion",
        "Replayed",
        "Restored",
        "Taint",
    ),
    "ledger.verifying": ("verify",),
    "stores.values": ("Backup", "CheckReport", "Compacted"),
    "stores.maintenance.migrate": ("Migrated", "migrate"),
    "stores.maintenance.rescue": ("RescueReport", "rescue"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = sorted(["__version__", *_HOME_OF])


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
    return __all__
