"""Replaying receipts: the question is asked again as of its commit, and the answers are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.engine.core import Core
from recollect.engine.history_results import Deviation, Replayed
from recollect.engine.read import rules
from recollect.engine.read.targets import PastPoint
from recollect.engine.readers import Past
from recollect.engine.reads import recall
from recollect.engine.receipts import listed, model_of, root_at
from recollect.engine.results import scored
from recollect.engine.scope import Place
from recollect.errors import InvalidArgumentError, RecollectError
from recollect.ledger import receipts
from recollect.ledger.commits import Branch
from recollect.operations import Recall, Replay
from recollect.operations import from_json as operation_from_json
from recollect.records.codec import microseconds
from recollect.stores.base import View


def replay(core: Core, place: Place, operation: Replay) -> Replayed:
    """Ask the question of a receipt again, as of its commit, and compare.

    Raises:
        InvalidArgumentError: The receipt is of another namespace, or was changed.
    """
    branch, given = place.branch, receipts.checked(operation.receipt)
    if Branch(given["namespace"], given["branch"]) != branch:
        raise InvalidArgumentError("receipt", given["namespace"], "is the receipt of another namespace")
    question, time = _question(given)
    changed = given["rules"] != rules.digest(core.zone)
    found: list[Deviation] = []
    with core.store.read() as view:
        root = root_at(view, branch, given["seq"])
        if root is None:
            newest = view.head(branch).seq
            found.append(Deviation("seq", None, given["seq"], newest, "the store has no such commit"))
            return Replayed(rules_changed=changed, deviations=tuple(found))
        log = core.log_trees.head(view, branch, given["seq"])
    for name, now in (("root", root.hex()), ("log", log)):
        if given[name] != now:
            found.append(Deviation(name, None, given[name], now, "the history was rewritten"))
    model = None if core.vectors is None else model_of(core.vectors.embedder)
    if given["embedder"] is not None and given["embedder"] != model:
        found.append(Deviation("embedder", None, given["embedder"], model, "the memory has another embedder"))
    if given["embedder"] is None and given["vectors"] is not None:
        found.append(
            Deviation("vectors", None, given["vectors"], None, "an answer without an embedder uses no vectors")
        )
    point = PastPoint(given["seq"], root, microseconds(time))
    hits = recall(Past(core, place, point, dense=given["embedder"] is not None), question)
    with core.store.read() as view:
        for name, again in (("hits", hits.hits), ("standing", hits.standing)):
            found_again = listed(view, branch, given["seq"], scored(again))
            found += _compared(name, given[name], found_again, view, branch)
    reach = hits.plan.vectors or 0
    if found and core.vectors is not None and given["vectors"] is not None and reach < given["vectors"]:
        found.insert(0, Deviation("vectors", None, given["vectors"], reach, "fewer texts have a vector: embed them"))
    return Replayed(rules_changed=changed, deviations=tuple(found))


def _question(given: receipts.Receipt) -> tuple[Recall, datetime]:
    """Return the question of a receipt, in the language that the memory had, and its time."""
    try:
        question = operation_from_json(json.loads(given["operation"]))
        time = datetime.fromisoformat(given["time"])
    except (ValueError, TypeError, RecollectError) as error:
        raise InvalidArgumentError("receipt", "...", f"has a question that cannot be read: {error}") from None
    if not isinstance(question, Recall) or question.reference is None or time.tzinfo is None:
        raise InvalidArgumentError("receipt", question, "has no question with a reference time")
    return replace(question, language=question.language or given["language"], wait_for_vectors=False), time


def _compared(name: str, given: list[Any], again: list[dict[str, Any]], view: View, branch: Branch) -> list[Deviation]:
    """Return how two lists of hits differ, rank by rank."""
    found = []
    for place in range(max(len(given), len(again))):
        one = given[place] if place < len(given) else None
        other = again[place] if place < len(again) else None
        if one != other:
            found.append(Deviation(name, place, one, other, _reason(one, view, branch)))
    return found


def _reason(hit: Any, view: View, branch: Branch) -> str:
    """Return why a hit of a receipt may be missing: its text was erased, or "" if it is stored."""
    try:
        version = bytes.fromhex(hit["version"])
    except (TypeError, LookupError, ValueError):
        return ""
    return "erased" if len(version) == 32 and view.payload(branch, version) is None else ""
