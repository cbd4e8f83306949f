"""Requests and answers as JSON objects.

A request is an operation in its JSON form. Its key "in" says where and for whom it is executed: "namespace" ("default"
if absent), "beside" for what a facet stores beside the records, "scope", "actor", "reason", "key" (the idempotency key
of a write) and "origin" (the class of origin of what is written, "user" if absent, and at most that of the token):

    {"op": "recall", "question": "which seat?", "in": {"namespace": "team", "scope": {"user": "ana"}}}

An answer is `{"ok": true, "result": ...}`, with `"more"` if it is a part of the result (`wire.answers`), or
`{"ok": false, "error": {"code": ..., "message": ..., "args": [...]}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from recollect.engine.results import Failed, Report, result_from_json, result_to_json
from recollect.engine.scope import BY_TOKEN, MCP, Place, Scope
from recollect.errors import ProtocolError, RecollectError
from recollect.ledger.commits import MAIN, RESERVED, Branch
from recollect.memory.memory import namespace_name
from recollect.operations import SCOPED, Operation, Recall, RememberAll, branch_name, check_key, check_label
from recollect.operations import from_json as operation_from_json
from recollect.records.origins import USER, check_origin
from recollect.wire.answers import Rest
from recollect.wire.compact import hits_of, is_compact

#: The version of the messages. A change that an older program would misread has another one.
PROTOCOL = 2
_KEYS = frozenset(("namespace", "branch", "beside", "scope", "actor", "reason", "key", "origin", "client"))


def place_json(place: Place) -> dict[str, Any]:
    """Return the JSON form of a place, without what is absent."""
    owner = place.branch.owner
    beside = next((each for each in RESERVED if owner != place.branch and owner.reserved(each) == place.branch), None)
    out: dict[str, Any] = {"namespace": owner.namespace, "beside": beside, "scope": dict(place.scope.fixed)}
    out |= {"actor": place.actor, "reason": place.reason, "key": place.key}
    out |= {"origin": None if place.origin == USER else place.origin}  # earlier servers do not know it
    if place.client:
        out |= {"client": place.client}
    if owner.name != MAIN:  # earlier servers do not know it, and refuse it
        out |= {"branch": owner.name}
    return {name: value for name, value in out.items() if value not in (None, {})}


def read_place(data: object) -> Place:
    """Read the JSON form of a place.

    Raises:
        ProtocolError: `data` is not a place.
        InvalidArgumentError: A value is invalid.
    """
    if not isinstance(data, Mapping):
        raise ProtocolError('"in" must be a JSON object')
    if unknown := sorted(map(str, data.keys() - _KEYS)):
        raise ProtocolError(f'"in" has no key {unknown[0]!r}: its keys are {", ".join(sorted(_KEYS))}')
    name = branch_name(data.get("branch", MAIN))
    branch, beside = Branch(namespace_name(data.get("namespace", "default")), name), data.get("beside")
    if beside is not None:
        if beside not in RESERVED:
            raise ProtocolError(f'"beside" must be one of {", ".join(RESERVED)}')
        branch = branch.reserved(beside)
    for name in ("actor", "reason"):
        if data.get(name) is not None:
            check_label(name, data[name])
    if data.get("key") is not None:
        check_key(data["key"])
    scope = scope_from_json(data.get("scope") or {})
    origin = data.get("origin")
    origin = USER if origin is None else check_origin("origin", origin)
    client = data.get("client", "")
    if client not in ("", MCP, BY_TOKEN):
        raise ProtocolError(f'"client" must be "{MCP}" or "{BY_TOKEN}"')
    return Place(branch, scope, data.get("actor"), data.get("reason"), data.get("key"), origin, client)


class Request(NamedTuple):
    """An operation with the place where it is executed, the part of its result that is asked for, and its form."""

    operation: Operation
    place: Place
    rest: Rest | None = None
    compact: bool = False


def scope_from_json(data: object) -> Scope:
    """Read a scope: an object with a user, an agent or a conversation.

    Raises:
        ProtocolError: `data` is not a scope.
        InvalidArgumentError: A value is no text, or is empty.
    """
    if not isinstance(data, Mapping) or not data.keys() <= set(SCOPED):
        raise ProtocolError(f'"scope" must be a JSON object with some of {", ".join(SCOPED)}')
    return Scope().narrowed(**cast("Any", data)) if data else Scope()


def request_json(operation: Operation, place: Place) -> dict[str, Any]:
    """Return a request in its JSON form.

    Raises:
        UnsupportedError: The operation contains a custom filter or a function.
    """
    out = operation.to_json()
    if stated := place_json(place):
        out["in"] = stated
    return out


def read_request(data: object, place: Place | None = None) -> Request:
    """Read a request.

    Args:
        data: The parsed JSON.
        place: Where it is executed if it does not say so itself; None: it says so, or in the namespace "default".

    Raises:
        ProtocolError: `data` is not a JSON object, or its key "in" is invalid.
        RecollectError: The operation is invalid (InvalidOperationError, InvalidRecordError, ...).
    """
    if not isinstance(data, Mapping):
        raise ProtocolError("it is not a JSON object")
    stated = dict(data)
    where, rest = stated.pop("in", None), stated.pop("rest", None)
    placed = place or Place() if where is None else read_place(where)
    return Request(operation_from_json(stated), placed, None if rest is None else Rest.from_json(rest))


def answer_json(operation: Operation, result: Any) -> dict[str, Any]:
    """Return the answer to a request in its JSON form."""
    return {"ok": True, "result": result_to_json(operation, result)}


def error_json(error: RecollectError) -> dict[str, Any]:
    """Return an error as an answer in its JSON form."""
    stated = error.to_json()
    code = stated.pop("error")
    return {"ok": False, "error": {"code": code, **stated}}


def read_answer(operation: Operation, data: object) -> Any:
    """Return the result that an answer has.

    Raises:
        RecollectError: The answer is an error.
        ProtocolError: It is not an answer.
    """
    result = read_result(data)
    return (
        hits_of(result) if isinstance(operation, Recall) and is_compact(result) else result_from_json(operation, result)
    )


def read_result(data: object) -> Any:
    """Return the JSON form of the result that an answer has. Raises as `read_answer` does."""
    match data:
        case {"ok": True, "result": result}:
            return result
        case {"ok": False, "error": {"code": str(code), **rest}}:
            raise RecollectError.from_json({"error": code, "message": code, "args": [], **rest})
    raise ProtocolError("the answer is not one of this protocol")


def send_all(operation: Operation, send: Callable[[Operation], Any]) -> Any:
    """Send an operation and return its result.

    Args:
        send: Sends an operation, and returns its result.

    Raises:
        UnsupportedError: It has no JSON form, for another reason than an item of a report.
    """
    if not isinstance(operation, RememberAll) or operation.on_error == "raise":
        return send(operation)
    indexes: list[int] = []  # of the items that can be sent
    failed: list[Failed] = []
    for index, item in enumerate(operation.items):
        try:
            item.to_json()
            indexes.append(index)
        except RecollectError as error:
            failed.append(Failed(item, index, error))
    report = send(RememberAll(items=tuple(operation.items[index] for index in indexes)) if failed else operation)
    failed.extend(replace(each, index=indexes[each.index]) for each in report.failed)
    return Report(report.results, tuple(sorted(failed, key=lambda each: each.index)))
