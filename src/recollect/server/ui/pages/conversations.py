"""Conversations: their names, and one of them as it was said, with the evidence of an answer marked."""

from __future__ import annotations

from typing import Any

from recollect import filters as f
from recollect.server.ui.visit import Visit
from recollect.wire import record_json

_NAMES, _TURNS = 100, 40
#: Number of hits whose words are marked.
_HITS = 50


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
    """Return a page of the turns of a conversation: by default the one with the first hit that is asked for.

    With the question of a search, the words that it matched are marked.
    """
    name, question = visit.text("name"), visit.text("q").strip()
    turns = visit.memory.find(f.conversation(name), order="position") if name else []
    evidence = [each for each in visit.text("hit").split("\n") if each]
    wanted = evidence[0] if evidence else ""
    found = next((at for at, each in enumerate(turns) if each.id == wanted), 0)
    pages = max(-(-len(turns) // _TURNS), 1)
    page = visit.number("page", found // _TURNS + 1, pages)
    hits = visit.memory.recall(question, _HITS) if question else ()
    marks = {hit.record.id: [list(each) for each in hit.marks] for hit in hits}
    shown = turns[(page - 1) * _TURNS : page * _TURNS]
    return {
        "name": name,
        "turns": [{**record_json(each), "marks": marks.get(each.id, [])} for each in shown],
        "count": len(turns),
        "page": page,
        "pages": pages,
        "hit": evidence,
        "question": question,
    }
