"""Erasing: what it would remove, before anything is, and what proves it afterwards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from recollect import Erased, Memory, verify
from recollect import filters as f
from recollect.errors import InvalidArgumentError
from recollect.filters import Filter
from recollect.server.ui.visit import RECORDS, Visit, optional
from recollect.wire import record_json

#: Maximum number of records that are listed, of users that are named, and of commits whose erasures are proved.
_LISTED, _USERS, _COMMITS = 20, 200, 100
#: Maximum number of digits of the number of a commit.
_MOST_DIGITS = 15
#: The cause of a change that erased a record.
_ERASED = "erased"


def selected(visit: Visit) -> str | Filter | None:
    """Return what a request asks to erase: an id, or a filter; None: nothing yet.

    Raises:
        InvalidArgumentError: It names both.
    """
    stated = {name: visit.query[name] for name in ("id", "user", "where") if visit.query.get(name)}
    if visit.flag("all") and not visit.is_whole:  # all of one person
        stated["all"] = ""
    if len(stated) > 1:
        raise InvalidArgumentError("erase", ", ".join(stated), "names several things: an id, a user or a filter")
    if "user" in stated:
        return f.user(stated["user"])
    if "where" in stated:
        return f.parse(stated["where"])
    return f.everything() if "all" in stated else stated.get("id")


def options(visit: Visit) -> dict[str, Any]:
    """Return how it shall be erased, as arguments of the call."""
    out: dict[str, Any] = {"redact": visit.flag("redact"), "derived": visit.flag("derived")}
    if visit.text("id") and visit.text("part"):
        out["parts"] = [visit.text("part")]
    return out


def phrase(visit: Visit, count: int) -> str:
    """Return what a person must type to confirm: the id or the user, or the number of records if that is no word."""
    named = visit.text("id") or visit.text("user") or visit.present().scope.get("user", "")
    return named if named.isprintable() and named == named.strip() and named else str(count)


def preview(would: Erased) -> str:
    """Return a hash of what an erasure would remove, so that it removes only what was shown."""
    stated = [sorted(would.ids), would.versions, sorted(would.derived), sorted(would.parts.items())]
    return hashlib.sha256(json.dumps(stated).encode()).hexdigest()


def erase(visit: Visit) -> dict[str, Any]:
    """Return what would be erased, and some of it as it is now. Nothing is changed."""
    what = selected(visit)
    stated = visit.given("id", "user", "where", "part", "all")
    if what is None:
        return {"stated": stated, "would": None, "users": _users(visit)}
    present = visit.present()
    found = present.erase(what, dry_run=True, **options(visit))
    would = found.to_json()
    count = len(would["ids"]) + sum(would["parts"].values())
    live = visit.part(visit.memory).get_all(would["ids"][:_LISTED]) if would["ids"] else []
    return {
        "stated": stated,
        "would": {**would, "ids": would["ids"][:_LISTED]},
        "records": [record_json(each) for each in live if each is not None],
        "count": count,
        "derived": visit.flag("derived"),
        "redact": visit.flag("redact"),
        "phrase": phrase(visit, count),
        "expect": preview(found),
        "users": [] if count else _users(visit),
    }


def _users(visit: Visit) -> list[str]:
    """Return the users that there are, for a form; none within a scope."""
    return [each.value for each in visit.memory.values("user", limit=_USERS)] if visit.is_whole else []


def erased(visit: Visit) -> dict[str, Any]:
    """Return what proves that records are gone: for each a proof of absence, verified here.

    They are the ids of a request, or those that some commits erased. The first ones are shown as HTML, all as JSON.
    """
    present = visit.present()
    ids = [(visit.text("part") or RECORDS, each) for each in visit.text("id").split("\n") if each]
    stated = visit.text("commit").split(",")[:_COMMITS]
    commits = [each for each in stated if each.isascii() and each.isdigit() and len(each) <= _MOST_DIGITS]
    for seq in () if ids else map(int, commits):
        for commit in present.changes(seq - 1, limit=1):
            for each in (commit, *commit.part_commits):
                ids += [(each.part, change.id) for change in each.changes if change.cause == _ERASED]
    head = optional(present.head)
    proofs = []
    for part, record_id in dict.fromkeys(ids):
        proof = _proof(present, part, record_id)
        is_valid = None if proof is None or head is None else _is_absent(proof, head.root)
        left = len(present._part(part).history(record_id))
        proofs.append({"id": record_id, "part": part, "proof": proof, "valid": is_valid, "left": left})
    return {
        "proofs": proofs,
        "proved": bool(proofs) and all(each["valid"] for each in proofs),
        "head": None if head is None else head._asdict(),
        "commit": commits,
        "versions": visit.said.get("versions"),
        "copies": [each for each in visit.said.get("copies", "").split("\n") if each],
        "pending": "pending" in visit.said,
    }


def _proof(memory: Memory, part: str, record_id: str) -> Mapping[str, Any] | None:
    """Return a proof that a record is absent; None if the client may have none, or nothing is left of the part."""
    if part != RECORDS and part not in memory.stats()["parts"]:
        return None
    return optional(partial(memory.prove, record_id, part=part))


def _is_absent(proof: Mapping[str, Any], root: str) -> bool:
    """Return whether a proof proves that there is no such record. (One of presence can be valid, too.)"""
    return proof["proof"].startswith("recollect/absence/") and bool(verify(proof, root))
