"""Erasing: what it would remove, before anything is, and what proves it afterwards."""

from __future__ import annotations

from functools import partial
from typing import Any

from recollect import filters as f
from recollect import verify
from recollect.errors import InvalidArgumentError
from recollect.filters import Filter
from recollect.server.ui.visit import Visit, optional

#: Maximum number of ids that are listed, and that are proved to be absent.
_LISTED, _PROVED = 50, 5


def selected(visit: Visit) -> str | Filter | None:
    """Return what a request asks to erase: an id, or a filter; None: nothing yet.

    Raises:
        InvalidArgumentError: It names both.
    """
    stated = visit.given("id", "user", "where")
    if len(stated) > 1:
        raise InvalidArgumentError("erase", ", ".join(stated), "names several things: an id, a user or a filter")
    if "user" in stated:
        return f.user(stated["user"])
    if "where" in stated:
        return f.parse(stated["where"])
    if visit.flag("all") and not visit.is_whole:  # all of one person
        return f.everything()
    return stated.get("id")


def options(visit: Visit) -> dict[str, Any]:
    """Return how it shall be erased, as arguments of the call."""
    out: dict[str, Any] = {"redact": visit.flag("redact"), "derived": visit.flag("derived")}
    if visit.text("id") and visit.text("part"):
        out["parts"] = [visit.text("part")]
    return out


def phrase(visit: Visit, count: int) -> str:
    """Return what a person must type to confirm: the id or the user, or the number of records."""
    return visit.text("id") or visit.text("user") or visit.present().scope.get("user") or str(count)


def erase(visit: Visit) -> dict[str, Any]:
    """Return what would be erased. Nothing is changed."""
    what = selected(visit)
    stated = visit.given("id", "user", "where", "part", "all")
    if what is None:
        return {"stated": stated, "would": None}
    would = visit.present().erase(what, dry_run=True, **options(visit)).to_json()
    count = len(would["ids"]) + sum(would["parts"].values())
    return {
        "stated": stated,
        "would": {**would, "ids": would["ids"][:_LISTED]},
        "count": count,
        "derived": visit.flag("derived"),
        "redact": visit.flag("redact"),
        "phrase": phrase(visit, count),
    }


def erased(visit: Visit) -> dict[str, Any]:
    """Return what proves that records are gone: a proof of absence for each of the first ones, verified here."""
    present = visit.present()
    ids = [each for each in visit.text("id").split("\n") if each][:_PROVED]
    head = optional(present.head)
    proofs = []
    for each in ids:
        proof = optional(partial(present.prove, each))
        is_valid = None if proof is None or head is None else _is_proved(proof, head.root)
        versions = [version.to_json() for version in present.history(each)]
        proofs.append({"id": each, "proof": proof, "valid": is_valid, "versions": versions})
    return {
        "proofs": proofs,
        "head": None if head is None else head._asdict(),
        "commit": visit.text("commit"),
        "versions": visit.text("versions"),
        "copies": [each for each in visit.text("copies").split("\n") if each],
        "pending": visit.flag("pending"),
    }


def _is_proved(proof: Any, root: str) -> bool:
    return bool(optional(lambda: verify(proof, root)))
