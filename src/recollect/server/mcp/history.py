"""Our own tools on the history: log, history, diff, snapshot, rollback.

A moment is a text: the number of a commit, a time in ISO 8601 (in the time zone of the memory if it names none), a
root, or the name of a snapshot. Where the server fixes the user, only a time names one, and what concerns the whole
namespace is not offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect import Difference, Record
from recollect.arguments.tools import array, integer, mapping, result, string
from recollect.calls.calls import zone_of_store
from recollect.operations import target_of
from recollect.quoting import shown as quoted
from recollect.server.mcp.budget import CURSOR, PAGE, beginning, budget, fitting, page_of, tokens_of
from recollect.server.mcp.tools import McpTool, ToolCall, ToolError, ToolResult, compact

#: Default budget, in tokens.
_TOKENS = 1000
#: Maximum number of changes that are listed of one commit, and of ids of what could not be restored.
_MOST_CHANGES, _MOST_IDS = 20, 100
_MOMENT = "the number of a commit (see log), a time in ISO 8601, a root, or the name of a snapshot"


def _content(record: Record) -> str:
    return record.content if isinstance(record.content, str) else f"[{record.media_type}]"


def _log(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    start, state = page_of(arguments)
    limit = arguments.get("limit", 10)
    commits = call.memory.changes(limit=start + limit + 1, id=arguments.get("id"), newest_first=True)
    newest = commits[0].cursor if commits else ""
    entries: list[dict[str, Any]] = []
    rest = arguments.get("max_tokens", _TOKENS)
    for commit in commits[start : start + limit]:
        data = commit.to_json()
        changes = [
            {"id": change.id, "cause": change.cause, **({} if each is commit else {"part": each.part})}
            for each in (commit, *commit.part_commits)
            for change in each.changes
        ]
        entry = {key: data[key] for key in ("seq", "time", "actor", "reason") if data.get(key) is not None}
        entry["changes"] = changes[:_MOST_CHANGES]
        if len(changes) > _MOST_CHANGES:
            entry["further_changes"] = len(changes) - _MOST_CHANGES
        rest -= tokens_of(compact(entry))
        if rest < 0 and entries:
            break
        entries.append(entry)
    out: dict[str, Any] = {"commits": entries}
    if len(commits) > start + len(entries):
        out["cursor"] = f"{start + len(entries)}.{state or newest}"
    notes: tuple[str, ...] = ()
    if start and state != newest:
        notes = ("The memory has changed since the first page, so commits may be repeated.",)
    return ToolResult(out, notes=notes)


def _history(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    start, state = page_of(arguments)
    versions = call.memory.history(arguments["id"])[::-1]
    if not versions:
        raise ToolError(f"No record ever had the id {quoted(arguments['id'])}: log lists the ids that changed")
    newest = versions[0].commit.cursor
    items = []
    for version in versions[start:]:
        data = version.commit.to_json()
        item = {key: data[key] for key in ("seq", "time", "actor", "reason") if data.get(key) is not None}
        content = "" if version.record is None else _content(version.record)
        erased = {"erased": True} if version.erased else {}
        items.append({**item, "cause": version.cause, "content": content, **erased})
    shown = fitting(items, arguments.get("max_tokens", _TOKENS))
    out: dict[str, Any] = {"id": arguments["id"], "versions": shown}
    if start + len(shown) < len(versions):
        out["cursor"] = f"{start + len(shown)}.{state or newest}"
    notes: tuple[str, ...] = ()
    if start and state != newest:
        notes = ("The record has changed since the first page, so versions may be repeated.",)
    return ToolResult(out, notes=notes)


def _diff(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    start, _ = page_of(arguments)
    memory, most = call.memory, arguments.get("max_tokens", _TOKENS)
    zone = zone_of_store(memory)
    new = None if "new" not in arguments else target_of(arguments["new"], zone)
    found = memory.diff(target_of(arguments["old"], zone), new)
    items = [
        {**item, **({} if part is found else {"part": name})}
        for name, part in found.each()
        for item in _differences(part, most)
    ]
    shown = fitting(items[start:], most)
    counts = {
        name: sum(len(getattr(part, name)) for _, part in found.each()) for name in ("added", "changed", "removed")
    }
    out: dict[str, Any] = {**counts, "changes": shown}
    if start + len(shown) < len(items):
        out["cursor"] = f"{start + len(shown)}."
    return ToolResult(out)


def _differences(found: Difference, most: int) -> Iterator[dict[str, Any]]:
    """Yield what differs in a part of the memory."""
    yield from ({"change": "removed", "id": record.id, "content": _content(record)} for record in found.removed)
    yield from ({"change": "added", "id": record.id, "content": _content(record)} for record in found.added)
    for each in found.changed:
        before = {"before": beginning(_content(each.before), most // 4)} if "content" in each.fields else {}
        fields = list(each.fields)
        yield {"change": "changed", "id": each.id, "content": _content(each.after), "fields": fields, **before}
    yield from ({"change": "erased", "id": record_id, "content": ""} for record_id in found.erased)


def _snapshot(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    snapshot = call.access.writing().snapshot(arguments.get("name"))
    return ToolResult({key: value for key, value in snapshot.to_json().items() if value is not None})


def _rollback(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    memory = call.access.writing()
    restored = memory.rollback(target_of(arguments["to"], zone_of_store(memory)), actor=call.actor, reason=call.tool)
    out: dict[str, Any] = {"seq": restored.seq, "changed": sum(part.changed for _, part in restored.each())}
    notes = []
    for name in ("erased", "damaged", "conflicts"):
        ids = [record_id for _, part in restored.each() for record_id in getattr(part, name)]
        if ids:
            out[name] = ids[:_MOST_IDS]
            why = "of a higher class of origin than this connection" if name == "conflicts" else name
            notes.append(f"{len(ids)} records were not restored because they are {why}.")
    if out["changed"]:
        notes.append(f"To take this back, roll back to {restored.seq - 1}.")
    return ToolResult(out, notes=tuple(notes))


TOOLS = (
    McpTool(
        name="log",
        title="Log",
        description=(
            "Show what changed, newest first: who wrote, updated or forgot which records, and when. "
            "With an id, the history of one record."
        ),
        inputs={
            "id": string("Only commits that changed this record"),
            "limit": integer("Maximum number of commits. Default: 10", minimum=1, maximum=100),
            "max_tokens": budget(_TOKENS),
            "cursor": PAGE,
        },
        outputs=result({"cursor": CURSOR}, commits=array(mapping({"time": string()}, required=("time",)))),
        run=_log,
        reads=True,
    ),
    McpTool(
        name="history",
        title="History",
        description=(
            "Show the former versions of one record, newest first: what it said, when it changed, and by whom. Call it "
            "if the user asks what they said before, or to find a version that an update replaced."
        ),
        inputs={"id": string("The id of the record"), "max_tokens": budget(_TOKENS), "cursor": PAGE},
        required=("id",),
        outputs=result(
            {"cursor": CURSOR},
            id=string(),
            versions=array(
                mapping({"time": string(), "cause": string(), "content": string()}, required=("time", "cause"))
            ),
        ),
        run=_history,
        reads=True,
    ),
    McpTool(
        name="diff",
        title="Diff",
        description=(
            "Show what differs between two moments: which records were added, changed and removed. Call it to see what "
            "happened since a snapshot, or what a rollback would change."
        ),
        inputs={
            "old": string(f"A moment: {_MOMENT}"),
            "new": string("Another moment. Default: now"),
            "max_tokens": budget(_TOKENS),
            "cursor": PAGE,
        },
        required=("old",),
        outputs=result(
            {"cursor": CURSOR},
            added=integer(),
            changed=integer(),
            removed=integer(),
            changes=array(
                mapping({"change": string(), "id": string(), "content": string()}, required=("change", "id"))
            ),
        ),
        run=_diff,
        reads=True,
    ),
    McpTool(
        name="snapshot",
        title="Snapshot",
        description=(
            "Mark the present state of the whole memory with a name, so that diff and rollback can refer to it. It "
            "copies nothing. Call it before many changes."
        ),
        inputs={"name": string("The name. Default: none, and then only the newest 20 such marks are kept")},
        outputs=mapping({"seq": integer(), "name": string()}, required=("seq",)),
        run=_snapshot,
        idempotent=False,
        whole=True,
    ),
    McpTool(
        name="rollback",
        title="Rollback",
        description=(
            "Restore all records as they were at a moment, in a new commit, which can be taken back. It undoes what "
            "everybody has changed since: call it only if the user asks for it, after showing them the diff."
        ),
        inputs={"to": string(f"The moment: {_MOMENT}")},
        required=("to",),
        outputs=result(
            dict.fromkeys(("erased", "damaged", "conflicts"), array(string())), seq=integer(), changed=integer()
        ),
        run=_rollback,
        destructive=True,
        whole=True,
    ),
)
