"""The actions of the daemon sdr-memory: ping, stats, store and query, on texts with sparse codes.

A text is judged before it is stored: what is no memory, such as an agent's narration of its own steps, is rejected
with the reason. Results have integer ids and the texts as they were stored. They are ordered by `score`, 1 - hamming /
4096, as the daemon orders them; with "rule": false by `confidence`, the calibrated score of `Sdr.query`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect import Memory
from recollect import __version__ as version
from recollect.errors import SOCKET_SALIENCE, ProtocolError, RejectedError
from recollect.policies import WHY, Level, judge
from recollect.wire import PROTOCOL, READ, WRITE, Right

#: Name -> the fields that it takes, apart from "action", and the right that it needs.
ACTIONS: dict[str, tuple[frozenset[str], Right]] = {
    "ping": (frozenset(), READ),
    "stats": (frozenset(), READ),
    "store": (frozenset(("text", "metadata")), WRITE),
    "query": (frozenset(("text", "limit", "rule", "minimum")), READ),
}
PONG: dict[str, Any] = {
    "ok": True,
    "pong": True,
    "version": version,
    "protocol": PROTOCOL,
    "seen": True,
    "compact": True,
}


def read_action(data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of an action and its fields.

    Raises:
        ProtocolError: There is no such action, or it has a field that it does not take, or lacks its text.
    """
    name = data["action"]
    if not isinstance(name, str) or name not in ACTIONS:
        raise ProtocolError(f"there is no action {name!r:.80}: the actions are {', '.join(ACTIONS)}")
    fields = {key: value for key, value in data.items() if key not in ("action", "in")}
    if unknown := sorted(fields.keys() - ACTIONS[name][0]):
        raise ProtocolError(f"the action {name} takes no {unknown[0]!r:.80}")
    if "text" in ACTIONS[name][0] and "text" not in fields:
        raise ProtocolError(f"the action {name} needs a text")
    return name, fields


def act(name: str, fields: Mapping[str, Any], memory: Memory, salience: Level) -> dict[str, Any]:
    """Execute an action and return its answer.

    Args:
        name: The action.
        memory: The memory whose texts it concerns.
        salience: How strictly texts are judged before they are stored; "off": not at all.

    Raises:
        RejectedError: The text is no memory. Nothing was stored.
        RecollectError: A field is invalid, or the store failed.
    """
    return {"ok": True, **_DONE[name](memory, dict(fields), salience)}


def _ping(_memory: Memory, _fields: dict[str, Any], _salience: Level) -> dict[str, Any]:
    return PONG


def _stats(memory: Memory, _fields: dict[str, Any], _salience: Level) -> dict[str, Any]:
    return {**memory.sdr.stats(), "version": version, "protocol": PROTOCOL}


def _store(memory: Memory, fields: dict[str, Any], salience: Level) -> dict[str, Any]:
    text = fields["text"]
    if isinstance(text, str) and salience != "off":
        verdict = judge(text, salience)
        if not verdict.accepted:
            raise RejectedError(SOCKET_SALIENCE, WHY[verdict.reason], verdict.reason)
    number = memory.sdr.store(text, fields.get("metadata"))
    stored = memory.sdr.get(number)  # a policy of the memory may have redacted it
    return {"id": number, "text": text if stored is None else stored["text"]}


def _query(memory: Memory, fields: dict[str, Any], _salience: Level) -> dict[str, Any]:
    by_rule = fields.pop("rule", True)
    results = []
    for hit in memory.sdr.query(fields.pop("text"), rule=by_rule, **fields):
        scores = {"score": hit["rule_score"]} | ({} if by_rule else {"confidence": hit["score"]})
        results.append({"id": hit["id"], "text": hit["text"], **scores, "metadata": hit["metadata"]})
    return {"results": results}


_DONE: dict[str, Callable[[Memory, dict[str, Any], Level], dict[str, Any]]] = {
    "ping": _ping,
    "stats": _stats,
    "store": _store,
    "query": _query,
}
