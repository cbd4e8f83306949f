"""Conversations: their names, and one of them as it was said, with the evidence of an answer marked."""

from __future__ import annotations

from typing import Any

from recollect import filters as f
from recollect.server.ui.visit import Visit
from recollect.wire import record_json

_NAMES, _TURNS = 100, 40


def conversations(visit: Visit) -> dict[str, Any]:
    """Return a page of the names of conversations, each with its number of turns."""
    after = visit.text("after") or None
    found = visit.memory.values("conversation", prefix=visit.text("prefix"), limit=_NAMES + 1, after=after)
    return {
        "conversations": [{"value": each.value, "records": each.records} for each in found[:_NAMES]],
        "after": found[_NAMES - 1].value if len(found) > _NAMES else None,
        "prefix": visit.text("prefix"),
    }


def conversation(visit: Visit) -> dict[str, Any]:
    """Return a page of the turns of a conversation: by default the first one that has evidence."""
    name = visit.text("name")
    turns = visit.memory.find(f.conversation(name), order="position") if name else []
    evidence = [each for each in visit.text("hit").split("\n") if each]
    marked = next((at for at, each in enumerate(turns) if each.id in evidence), 0)
    pages = max(-(-len(turns) // _TURNS), 1)
    page = visit.number("page", marked // _TURNS + 1, pages)
    return {
        "name": name,
        "turns": [record_json(each) for each in turns[(page - 1) * _TURNS : page * _TURNS]],
        "count": len(turns),
        "page": page,
        "pages": pages,
        "hit": evidence,
    }
