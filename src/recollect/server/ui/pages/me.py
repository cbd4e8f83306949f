"""The page for one person: what is kept about them, which they can find, correct, forget, erase and download."""

from __future__ import annotations

from typing import Any

from recollect import filters as f
from recollect.server.ui.pages.records import record
from recollect.server.ui.visit import Visit

_RECORDS = 20
#: What the memory keeps about records, and a person has not said.
_NO_STATEMENTS = f.kind("distinct")


def me(visit: Visit) -> dict[str, Any]:
    """Return a page of the records of one person: the newest, or those that a question finds."""
    if visit.is_whole:
        return {"person": "", "users": [each.value for each in visit.memory.values("user")]}
    memory, question = visit.memory, visit.text("q").strip()
    out: dict[str, Any] = {
        "person": ", ".join(memory.scope.values()),
        "count": memory.count(~_NO_STATEMENTS),
        "oldest": memory.stats()["oldest"],
        "question": question,
    }
    if question:
        found = memory.recall(question, _RECORDS, ~_NO_STATEMENTS)
        hits = list({hit.record.id: hit for hit in (*found, *found.standing)}.values())
        records = [{**hit.record.to_json(), "hash": hit.record.hash, "marks": list(hit.marks)} for hit in hits]
        return {**out, "records": records, "cursor": None}
    return {**out, **memory.find(~_NO_STATEMENTS, _RECORDS, after=visit.text("after") or None).to_json()}


def mine(visit: Visit) -> dict[str, Any]:
    """Return one record of a person, for correcting it, with what it said before.

    Raises:
        UnknownRecordError: There is none with this id.
    """
    shown = record(visit)
    texts = [number for number, each in enumerate(shown["versions"], 1) if each["record"] is not None]
    kept = {name: shown[name] for name in ("id", "record", "versions", "last", "part")}
    return {**kept, "former": texts[-2] if len(texts) > 1 else None}
