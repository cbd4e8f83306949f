"""Our own tools that read the records: recall, context, get, find, stats.

Results are small by default: a budget of tokens limits them, and a cursor continues where one ended.
"""

from __future__ import annotations

from typing import Any

from recollect import Hit, Record
from recollect.agents import PARTS, Validity, valid_hits
from recollect.arguments.tools import array, boolean, integer, mapping, number, result, string
from recollect.calls.calls import zone_of_store
from recollect.facets.entities.graph import OBSERVATION
from recollect.operations import Now
from recollect.records.origins import ORIGINS
from recollect.server.mcp.budget import CURSOR, PAGE, budget, fitting, page_of, tokens_of
from recollect.server.mcp.tools import McpTool, ToolCall, ToolError, ToolResult, compact

#: Default budgets, in tokens.
_RECALL_TOKENS, _CONTEXT_TOKENS, _LIST_TOKENS, _GET_TOKENS = 1000, 1500, 1000, 4000
#: The fields of a record that lists and hits show. `get` shows all.
_SHOWN = (
    "kind",
    "user",
    "speaker",
    "role",
    "conversation",
    "entity",
    "source",
    "tags",
    "time",
    "valid_from",
    "valid_to",
    "supersedes",
    "derived_from",
    "importance",
)

_WHERE = string(
    "Only records that match this filter, such as: user=ana and kind=user_fact and not tag=old. "
    "Fields: id, kind, user, agent, conversation, session, speaker, role, entity, source, tag, time, "
    "valid_at, supersedes, derived_from"
)
#: The user whose records are read, besides those of no user.
OWNERS = {
    "user": string("The user who asks: records of other users are left out"),
    "agent": string("Leave out records of other agents"),
    "conversation": string("Leave out records of other conversations"),
    "min_origin": string(
        "Only what is from this class or a more trusted one. Default: all; what is not the user's says its origin",
        enum=list(ORIGINS),
    ),
}
_ITEM = mapping(
    {
        "id": string(),
        "content": string(),
        "shortened": integer("Characters of the whole content, if only its beginning is shown: call get"),
        "kind": string(),
        "until": string("When it stopped being true. Only what a question about the past asks for, and lists, have it"),
        "confidence": number("How sure it is that the record answers the question, 0 to 1; absent in a small memory"),
    },
    required=("id", "content", "kind"),
)


def _owners(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that say whose records are read."""
    return {name: arguments[name] for name in OWNERS if name in arguments}


def shown(record: Record) -> dict[str, Any]:
    """Return a record as lists and hits show it."""
    data = record.to_json()
    content = record.content if isinstance(record.content, str) else f"[{record.media_type}]"
    fields = {name: data[name] for name in _SHOWN if data.get(name) not in (None, "", [])}
    name = record.metadata.get("entity_name")
    named = {"entity_name": name} if isinstance(name, str) and record.kind == OBSERVATION else {}
    origin = {} if record.has_authority else {"origin": record.effective_origin}
    return {"id": record.id, "content": content, **fields, **named, **origin}


def _listed(record: Record, validity: Validity) -> dict[str, Any]:
    until = validity.ended(record)
    return {**shown(record), **({} if until is None else {"until": until.isoformat()})}


def _hit(hit: Hit, validity: Validity) -> dict[str, Any]:
    return {**_listed(hit.record, validity), "confidence": round(hit.confidence, 2)}


def _recall(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    start, state = page_of(arguments)
    if start and arguments.get("concise"):
        raise ToolError("A concise answer has one page: leave out cursor, or concise")
    k, concise = arguments.get("k", 10), arguments.get("concise", "k" not in arguments and not start)
    hits = valid_hits(
        call.memory,
        arguments["question"],
        start + k,
        where=arguments.get("where"),
        **_owners(arguments),
        min_confidence=arguments.get("min_confidence", 0.0),
        concise=concise,
    )
    budget = arguments.get("max_tokens", _RECALL_TOKENS)
    always = [_hit(hit, hits.validity) for hit in hits.standing] if not start else []
    standing = fitting(always, budget // 3)
    found = [_hit(hit, hits.validity) for hit in hits.hits[start:]]
    items = fitting(found, budget - sum(tokens_of(compact(each)) for each in standing))
    out: dict[str, Any] = {"hits": items}
    notes = []
    if standing:
        out["standing"] = standing
    if len(standing) < len(always):
        notes.append(f"{len(always) - len(standing)} more standing instructions apply: raise max_tokens to see them.")
    if concise and len(items) < len(found):
        notes.append(f"{len(found) - len(items)} more hits do not fit: raise max_tokens, or page with concise=false.")
    elif len(items) < len(found) or hits.more:
        out["cursor"] = f"{start + len(items)}.{state or hits.cursor}"
    if start and state != hits.cursor:
        notes.append("The memory has changed since the first page, so hits may be repeated or missing.")
    if any("shortened" in each for each in (*standing, *items)):
        notes.append("A text is shortened, with its length: raise max_tokens to see more of it.")
    if not items and not start:
        lower = "a lower min_confidence, " if arguments.get("min_confidence") else ""
        notes.append(f"Nothing was found. Try other words, {lower}or a wider filter.")
    if hits.left_out:
        notes.append(f"{hits.left_out} more hits add little and are left out: concise=false returns them.")
    notes += hits.notes
    return ToolResult(out, notes=tuple(notes))


def _context(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    context = call.memory.context(
        arguments["question"],
        arguments.get("max_tokens", _CONTEXT_TOKENS),
        where=arguments.get("where"),
        include=arguments.get("include", ("records",)),
        min_confidence=arguments.get("min_confidence", 0.0),
        concise=arguments.get("concise", False),
        **_owners(arguments),
    )
    ids = list(dict.fromkeys(item.record.id for item in context.items if item.included))
    return ToolResult({"context": str(context), "tokens": context.tokens, "ids": ids}, str(context))


def _get(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    record = call.memory.get(arguments["id"])
    if record is None:
        raise ToolError(f"There is no record {arguments['id']!r}: recall or find return the ids of those that exist")
    data = {**record.to_json(), "hash": record.hash}
    whole = record.content if isinstance(record.content, str) else f"[{record.media_type}]"
    data = {**{key: value for key, value in data.items() if key != "data"}, "content": whole}
    start = arguments.get("start", 0)
    budget = arguments.get("max_tokens", _GET_TOKENS)
    notes = []
    if "metadata" in data and tokens_of(compact(data["metadata"])) > budget // 2:
        size = tokens_of(compact(data.pop("metadata")))
        notes.append(f"Its metadata is left out: it has {size} tokens, and half of max_tokens is for it.")
    item = fitting([{**data, "content": whole[start:]}], budget)[0]
    item.pop("shortened", None)
    end = start + len(item["content"])
    if end < len(whole):
        item["next_start"] = end
    return ToolResult({"record": item}, notes=tuple(notes))


def _find(call: ToolCall, arguments: dict[str, Any]) -> ToolResult:
    where, order, after = arguments.get("where"), arguments.get("order", "newest"), arguments.get("cursor")
    memory = call.memory
    limit = arguments.get("limit", 20)
    while True:  # until the page is what is shown, so that its cursor continues there
        page = memory.find(where, limit=limit, order=order, after=after, **_owners(arguments))
        validity = Validity(memory, page, "", memory.execute(Now()), zone_of_store(memory))
        items = fitting((_listed(record, validity) for record in page), arguments.get("max_tokens", _LIST_TOKENS))
        if len(items) == len(page):
            return ToolResult({"records": items, **({"cursor": page.cursor} if page.cursor else {})})
        limit = len(items)


def _stats(call: ToolCall, _arguments: dict[str, Any]) -> ToolResult:
    stats = {key: value for key, value in call.memory.stats().items() if key != "store"}
    return ToolResult({"stats": stats})


TOOLS = (
    McpTool(
        name="recall",
        title="Recall",
        description=(
            "Search the memory for what helps to answer a question. Call it before answering anything that may depend "
            "on earlier conversations, the user's preferences, people, projects or decisions. Pass the question in "
            "natural language; names and dates help. Returns the best records with ids and confidences, and standing "
            "instructions of the user, which always apply."
        ),
        inputs={
            "question": string("The question, in natural language"),
            "k": integer("Maximum number of hits. Default: 10", minimum=1, maximum=100),
            **OWNERS,
            "where": _WHERE,
            "min_confidence": number(
                "Leave out hits with a lower confidence. 0.31 keeps 95 of 100 right answers. Default: 0",
                minimum=0,
                maximum=1,
            ),
            "concise": boolean(
                "Leave out hits that add little to the ones before them. Default: true, without k and cursor"
            ),
            "max_tokens": budget(_RECALL_TOKENS),
            "cursor": PAGE,
        },
        required=("question",),
        outputs=result({"standing": array(_ITEM), "cursor": CURSOR}, hits=array(_ITEM)),
        run=_recall,
        reads=True,
    ),
    McpTool(
        name="context",
        title="Context",
        description=(
            "Return one text with everything that matters for a question or task, filled up to a budget of tokens: "
            "standing instructions, facts and turns of earlier conversations. Use it at the start of a task; use "
            "recall for single facts."
        ),
        inputs={
            "question": string("The question or task, in natural language"),
            **OWNERS,
            "where": _WHERE,
            "include": array(string(enum=list(PARTS)), "Also terms that are named, and notes. Default: records"),
            "min_confidence": number("Show no hits if none has this confidence. Default: 0", minimum=0, maximum=1),
            "concise": boolean("Show only hits that add to the ones before them. Default: false"),
            "max_tokens": budget(_CONTEXT_TOKENS),
        },
        required=("question",),
        outputs=result(context=string(), tokens=integer(), ids=array(string())),
        run=_context,
        reads=True,
    ),
    McpTool(
        name="get",
        title="Get",
        description="Return one record with all its fields, by its id. A long content is returned in parts.",
        inputs={
            "id": string("The id of the record"),
            "start": integer("The character at which to begin; default: 0", minimum=0),
            "max_tokens": budget(_GET_TOKENS),
        },
        required=("id",),
        outputs=result(
            record=mapping(
                {
                    "id": string(),
                    "content": string(),
                    "kind": string(),
                    "hash": string("Pass it as `expect` to update or forget this very version"),
                    "next_start": integer("Pass it as `start` for the next part; absent in the last one"),
                },
                required=("id", "content", "kind", "hash"),
            )
        ),
        run=_get,
        reads=True,
    ),
    McpTool(
        name="find",
        title="Find",
        former_name="list",
        description="List records, newest first, optionally those that match a filter. For a question, use recall.",
        inputs={
            "where": _WHERE,
            **OWNERS,
            "order": string("Default: newest", enum=["newest", "oldest", "importance", "position", "last", "id"]),
            "limit": integer("Maximum number of records. Default: 20", minimum=1, maximum=1000),
            "max_tokens": budget(_LIST_TOKENS),
            "cursor": PAGE,
        },
        outputs=result({"cursor": CURSOR}, records=array(_ITEM)),
        run=_find,
        reads=True,
    ),
    McpTool(
        name="stats",
        title="Stats",
        description="Return how many records there are, by kind, with the oldest and the newest time.",
        inputs={},
        outputs=result(stats=mapping()),
        run=_stats,
        reads=True,
    ),
)
