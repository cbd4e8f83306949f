"""Settings of a namespace, and the health of the store."""

from __future__ import annotations

from typing import Any

from recollect import __version__ as version
from recollect.operations import GetPolicies, GetQuota
from recollect.policies import CATEGORIES, LEVELS
from recollect.server.ui.visit import Visit, optional

REDACTIONS = ("keep", "redact", "refuse")
FULL = ("refuse", "least recent", "least important", "oldest")
PER = ("user", "agent", "conversation")


def settings(visit: Visit) -> dict[str, Any]:
    """Return the quota, the policies and the snapshots of the namespace, and what they can be."""
    memory = visit.present()
    quota, policies = optional(lambda: memory.execute(GetQuota())), optional(lambda: memory.execute(GetPolicies()))
    return {
        "namespace": visit.namespace,
        "quota": None if quota is None else quota.to_json(),
        "policies": None if policies is None else policies.to_json(),
        "snapshots": [each.to_json() for each in optional(memory.snapshots) or []],
        "zone": str(visit.zone),
        "choices": {
            "when_full": FULL,
            "per": PER,
            "redaction": REDACTIONS,
            "salience": LEVELS,
            "categories": CATEGORIES,
        },
    }


def health(visit: Visit) -> dict[str, Any]:
    """Return facts about the store and its indexes."""
    memory = visit.present()
    stats = memory.stats()
    uses = {name: use._asdict() for name, use in visit.desk.indexes().items()} if visit.may("check") else {}
    return {
        "version": version,
        "store": stats.get("store"),
        "records": stats["records"],
        "parts": stats["parts"],
        "vectors": memory.vector_stats() if visit.flag("vectors") else None,
        "indexes": uses,
    }


def check(visit: Visit) -> dict[str, Any]:
    """Return what a check of the whole store finds."""
    found = visit.present().check()
    return {"problems": list(found), "commits": found.commits, "erased": found.erased, "dropped": found.dropped}
