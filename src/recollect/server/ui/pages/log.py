"""The log: commits, the time line by which any moment can be chosen, and how two moments differ."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from recollect import Commit, Memory
from recollect.server.ui.visit import RECORDS, Visit

_COMMITS = 30
#: Number of changes of a commit that are shown with their texts, and of characters of each.
_SHOWN, _TEXT = 5, 80
#: Number of parts of the time line.
_PARTS = 24
#: Maximum number of commits that are searched for those of an actor.
_SEARCHED = 2000
#: Maximum number of records that a difference lists of each kind.
_LISTED = 50


def log(visit: Visit) -> dict[str, Any]:
    """Return a page of commits, newest first, and how many there were in each part of the time."""
    memory, actor = visit.memory, visit.text("actor")
    before = visit.text("before")
    if before:
        memory = visit.present().at(visit.target(before))
    seen = 1 if before and not visit.is_whole else 0  # a cursor is that of the last commit that was shown
    limit = (_SEARCHED if actor else _COMMITS) + 1
    found = memory.log(limit + seen, where=visit.text("where") or None)[seen:]
    kept = [each for each in found[: limit - 1] if actor in (each.actor or "")][:_COMMITS]
    last = kept[-1] if len(kept) == _COMMITS else found[-2] if len(found) == limit else None
    older = None
    if last is not None and last is not found[-1]:
        older = str(last.seq - 1) if visit.is_whole else last.cursor
    commits = [_commit(each) for each in kept]
    if not actor and not visit.text("where"):
        _add_texts(memory, commits)
    return {
        "commits": commits,
        "older": older,
        "actor": actor,
        "where": visit.text("where"),
        "timeline": timeline(visit.present()) if visit.is_whole else None,
        "at": visit.memory.seq if visit.is_whole else None,
    }


def _commit(commit: Commit) -> dict[str, Any]:
    """Return the JSON form of a commit with its cursor, and its changes in all parts of the memory in one list."""
    changes = [
        {"part": part.part, **each} for part in (commit, *commit.part_commits) for each in part.to_json()["changes"]
    ]
    return {**commit.to_json(), "cursor": commit.cursor, "all_changes": changes}


def _add_texts(memory: Memory, commits: list[dict[str, Any]]) -> None:
    """Add their texts to the records that commits have changed last. (Texts of earlier commits are others.)"""
    newest: dict[str, dict[str, Any]] = {}
    for commit in commits:
        for number, change in enumerate(commit["all_changes"]):
            if change["part"] == RECORDS and change["id"] not in newest:
                newest[change["id"]] = change if number < _SHOWN else {}
    shown = [record_id for record_id, change in newest.items() if change]
    for record_id, record in zip(shown, memory.get_all(shown) if shown else [], strict=True):
        if record is not None:
            newest[record_id]["text"] = record.text[:_TEXT]


def timeline(memory: Memory) -> dict[str, Any] | None:
    """Return how many commits there were in each of some equal parts of the time from the first to the newest one."""
    head = memory.seq
    if not head:
        return None
    first, last = memory.changes(0, 1)[0].time, memory.log(1)[0].time
    step = max((last - first) / _PARTS, timedelta(microseconds=1))
    ends = [first + step * (number + 1) for number in range(_PARTS - 1)]
    seqs = [*(_seq_at(memory, end) for end in ends), head]
    starts = [0, *seqs[:-1]]
    return {
        "seq": head,
        "first": first.isoformat(),
        "last": last.isoformat(),
        "parts": [
            {"until": seq, "commits": seq - start, "time": (first + step * number).isoformat()}
            for number, (start, seq) in enumerate(zip(starts, seqs, strict=True))
        ],
    }


def _seq_at(memory: Memory, time: datetime) -> int:
    return memory.at(time).seq


def diff(visit: Visit) -> dict[str, Any]:
    """Return how two moments differ in each part of the memory, and how much of it there is."""
    a, b = visit.text("a"), visit.text("b")
    if not a:
        return {"a": "", "b": b}
    head = visit.head()  # before what is shown, so that a later change is noticed
    found = visit.present().diff(visit.target(a), visit.target(b) if b else None)
    parts = {}
    for name, each in found.each():
        whole = each.to_json()
        lists = {kind: whole[kind][:_LISTED] for kind in ("added", "changed", "removed", "erased")}
        parts[name] = {**lists, "counts": {kind: len(whole[kind]) for kind in lists}}
    return {"a": a, "b": b, "parts": parts, "differs": bool(found), "head": head}
