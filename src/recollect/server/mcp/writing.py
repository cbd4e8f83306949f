"""Our own tools that write: remember, update, forget."""

from __future__ import annotations

from typing import Any

from recollect import EntityId, Outcome, Record
from recollect.arguments.tools import Schema, array, boolean, integer, number, result, string
from recollect.facets.entities.graph import NODE, RELATION
from recollect.operations import Forget, Remember, Update
from recollect.quoting import shown
from recollect.server.mcp.tools import McpTool, ToolCall, ToolError, ToolResult

#: The fields of a record that a client can set, with their schemas.
_FIELDS: dict[str, Schema] = {
    "kind": string(
        "user_fact (what is true of the user, or what they prefer), knowledge (other facts; the default), task (what "
        "was done, and how it ended), entity (a fact about a person or thing), or a name of your own"
    ),
    "tags": array(
        string(),
        'Labels for filters. "standing:instruction" and "standing:preference" mark what applies to every answer, '
        "once the user accepts it",
    ),
    "importance": number("0 to 1", minimum=0, maximum=1),
    "entity": string(
        "The name of the person or thing that it is about. Filters take it as an id, such as ada_lovelace"
    ),
    "conversation": string("The conversation of which it is a turn"),
    "speaker": string("The name of the author of a turn"),
    "role": string("The role of the author of a turn, such as user or assistant"),
    "source": string("Where it comes from: a path or an address"),
    "time": string("When it happened, in ISO 8601; default for a new record: now"),
    "valid_from": string("The start of the time for which it is true, in ISO 8601"),
    "valid_to": string("The end of the time for which it is true, in ISO 8601"),
    "supersedes": array(string(), "The ids of the records that it replaces; set their valid_to too"),
    "derived_from": array(string(), "The ids of the records from which it was derived"),
    "pinned": boolean("Never evict it"),
    "metadata": {"type": "object", "properties": {}, "description": "Further values, as a JSON object"},
}
_USER = string("The user to whom it belongs")
_OUTCOME = result(
    {"standing": boolean("Whether recall returns it with every question, as a standing instruction")},
    id=string(),
    status=string(enum=["created", "updated", "unchanged", "proposed", "quarantined"]),
    hash=string(),
)
_EXPECT = string("The hash of the version that you have read: if another one is stored, nothing is changed")


def _outcome(outcome: Outcome) -> ToolResult:
    record = outcome.checked().record
    if record is None:
        raise ToolError("A record like it was rejected by a person before; nothing was stored")
    notes = []
    if outcome.status == "proposed" and outcome.asked_id:
        notes.append(
            f"Nothing was changed: {outcome.asked_id!r} is of a class that this connection may not "
            f"overrule. It was stored beside it, as a proposal: `recollect endorse {record.id}` puts it in its place."
        )
    elif outcome.status == "quarantined":
        notes.append("It is kept apart, and no call finds it, until a person releases it: `recollect quarantine`.")
    elif outcome.asked_id:
        notes.append(
            f"Another text has the id {outcome.asked_id!r}, so it was stored as {record.id!r}: "
            "to replace a text, call update."
        )
    if differing := [name for name in outcome.differing if name != "origin"]:
        notes.append(f"It was stored already with other values of {', '.join(differing)}: call update.")
    governs = any(tag.startswith("standing:") for tag in record.tags)
    standing = {"standing": True} if governs and record.has_authority else {}
    asks = outcome.status == "proposed" and not outcome.asked_id
    if asks or ((governs or record.pinned) and not record.has_authority and outcome.status == "updated"):
        what = "is not a standing instruction" if governs else "is not pinned" if record.pinned else "replaces nothing"
        notes.append(
            f"It {what} yet, since this connection does not speak for the user: "
            f"`recollect endorse {record.id}` makes it so."
        )
    return ToolResult({"id": record.id, "status": outcome.status, "hash": record.hash, **standing}, notes=tuple(notes))


def _fields(arguments: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields of a record that were passed."""
    fields = {name: arguments[name] for name in (*_FIELDS, "user", *names) if name in arguments}
    if "entity" in fields:
        fields["entity"] = EntityId.from_name(fields["entity"])
    return fields


def _check_no_node(call: ToolCall, record: Record | None) -> None:
    """Refuse to change what only the tools of the knowledge graph can change as a whole.

    Raises:
        ToolError: The record is an entity or a relation of the graph.
    """
    if record is None or record.kind not in (NODE, RELATION):
        return
    what, tools = ("an entity", "delete_entities and create_entities")
    if record.kind == RELATION:
        what, tools = ("a relation", "delete_relations and create_relations")
    raise ToolError(
        f"{record.id!r} is {what} of the knowledge graph, which {call.tool} cannot change: nothing was changed; "
        f"call {tools}"
    )


def _remember(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    fields = _fields(arguments)
    if "entity" in arguments:
        fields["metadata"] = {"entity_name": arguments["entity"], **fields.get("metadata", {})}
    operation = Remember(
        content=arguments["content"],
        id=arguments.get("id"),
        fields=fields,
        ttl=arguments.get("ttl"),
        # An id is a name that the client relies on, so what has it already is not replaced.
        if_exists="update" if "id" not in arguments else "keep",
    )
    with call.commit() as batch:
        outcome: Outcome = batch.execute(operation)
    return _outcome(outcome)


def _update(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    changes = _fields(arguments, "content")
    for name in dict.fromkeys(arguments.get("remove", ())):
        if name in changes or name not in _FIELDS:
            known = ", ".join(_FIELDS)
            raise ToolError(f"{shown(name)} cannot be removed: name a field that is not set in this call, of: {known}")
        changes[name] = None
    if not changes:
        raise ToolError("Nothing to change: pass content or another field, or name fields in remove")
    operation = Update(id=arguments["id"], changes=changes, expect=arguments.get("expect"))
    with call.commit() as batch:
        _check_no_node(call, batch.get(arguments["id"]))
        outcome: Outcome = batch.execute(operation)
    return _outcome(outcome)


def _forget(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    with call.commit() as batch:
        record = batch.get(arguments["id"])
        _check_no_node(call, record if record is not None and record.kind == NODE else None)
        outcome: Outcome = batch.execute(Forget(id=arguments["id"], expect=arguments.get("expect")))
    return ToolResult({"id": arguments["id"], "forgotten": outcome.status == "forgotten"})


TOOLS = (
    McpTool(
        name="remember",
        title="Remember",
        description=(
            "Store one fact for later conversations. Call it as soon as the user states a preference, a decision, a "
            "fact about themselves, people or projects, or asks you to remember something. State one fact in a "
            "complete sentence that can be understood without the conversation. The same text again is not stored "
            "twice: its fields are updated."
        ),
        inputs={
            "content": string("The fact, as a complete sentence with names and dates"),
            "user": _USER,
            **_FIELDS,
            "id": string("An id of your own; a text that has it already stays. Default: derived from the content"),
            "ttl": integer("Seconds after which it expires", minimum=1, maximum=3_153_600_000),
        },
        required=("content",),
        outputs=_OUTCOME,
        run=_remember,
    ),
    McpTool(
        name="update",
        title="Update",
        description=(
            "Change a record: its text if the fact has changed, or other fields. Former versions stay in the log. "
            "Prefer it to storing a fact that contradicts an older one: find the id with recall."
        ),
        inputs={
            "id": string("The id of the record"),
            "content": string("The new text"),
            "user": _USER,
            **_FIELDS,
            "remove": array(string(), "Names of fields to remove"),
            "expect": _EXPECT,
        },
        required=("id",),
        outputs=_OUTCOME,
        run=_update,
        destructive=True,
    ),
    McpTool(
        name="forget",
        title="Forget",
        description=(
            "Forget a record: it is no longer returned by any call. Its history stays in the log. "
            "Call it if the user asks for it, or if a fact is wrong and there is no right one to update it to."
        ),
        inputs={"id": string("The id of the record"), "expect": _EXPECT},
        required=("id",),
        outputs=result(id=string(), forgotten=boolean()),
        run=_forget,
        destructive=True,
    ),
)
