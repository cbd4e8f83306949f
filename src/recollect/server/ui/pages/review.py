"""The review: records in quarantine, proposals, and records that disagree or say the same, one case at a time."""

from __future__ import annotations

from typing import Any

from recollect.server.ui.visit import Visit
from recollect.wire import record_json

#: Maximum number of records of a case that are shown, and of records in quarantine and proposals that are cases.
_SHOWN, _MOST_KEPT = 8, 100


def review(visit: Visit) -> dict[str, Any]:
    """Return the number of cases, and the one that is looked at: quarantine, proposals, contradictions, duplicates."""
    cases = _cases(visit)
    number = min(visit.number("n", 1, 10**6), max(len(cases), 1))
    case = cases[number - 1] if cases else None
    if case is not None:  # what is decided concerns the records that are shown
        case = {**case, "all": len(case["records"]), "records": case["records"][:_SHOWN]}
    return {"count": len(cases), "n": number, "case": case}


def _cases(visit: Visit) -> list[dict[str, Any]]:
    memory = visit.memory
    kept = memory.quarantine(limit=_MOST_KEPT) if visit.may("release") else ()
    out: list[dict[str, Any]] = [{"kind": "quarantine", "records": [record_json(each)]} for each in kept]
    for asked in memory.audit(signals=["proposal"], limit=_MOST_KEPT) if visit.may("endorse") else ():
        records = [each for each in memory.get_all([asked.id, *asked.ids]) if each is not None]
        if records and records[0].id == asked.id:  # and was not forgotten meanwhile
            out.append({"kind": "proposal", "records": [record_json(each) for each in records]})
    for found in memory.contradictions():
        out.append(
            {"kind": "contradiction", **found.to_json(), "records": [*map(record_json, (found.older, found.newer))]}
        )
    for group in memory.duplicates():
        out.append({"kind": "duplicates", **group.to_json()})
    return out
