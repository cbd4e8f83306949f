"""Tools for the terms of a glossary, and for judging whether a text is worth remembering.

The terms are those of one agent: of the one that a call names, else of `DEFAULT_AGENT`, which all clients share.
"""

from __future__ import annotations

from typing import Any

from recollect.arguments.tools import array, boolean, integer, mapping, number, result, string
from recollect.facets.glossary.records import DEFAULT_AGENT
from recollect.policies import judge
from recollect.server.mcp.tools import McpTool, ToolCall, ToolResult

_AGENT = string(f"The agent whose glossary it is. Default: {DEFAULT_AGENT}")
_FORMER_AGENT = {"agent": "agent_id"}
_TERM = {
    "key": string(),
    "value": string("What it means"),
    "category": string(),
    "aliases": array(string()),
    "description": string(),
}


def _shown(term: Any) -> dict[str, Any]:
    return {name: term[name] for name in _TERM if term[name]}


def _define(call: ToolCall, given: dict[str, Any]) -> ToolResult:
    agent = given.get("agent_id", DEFAULT_AGENT)
    glossary = call.access.writing().glossary.by(call.actor, call.tool)
    glossary.memorize(
        given["key"],
        given["value"],
        given.get("category", ""),
        agent,
        given.get("aliases"),
        given.get("description"),
    )
    return ToolResult({"term": given["key"], "terms": len(glossary.list_all(agent))})


def _recall(call: ToolCall, given: dict[str, Any]) -> ToolResult:
    found = call.memory.glossary.recall(
        given["question"], given.get("agent_id", DEFAULT_AGENT), given.get("k", 10), typos=True
    )
    return ToolResult({"terms": [{**_shown(term), "score": round(term["score"], 2)} for term in found]})


def _in_text(call: ToolCall, given: dict[str, Any]) -> ToolResult:
    found = call.memory.glossary.annotate(given["text"], given.get("agent_id", DEFAULT_AGENT))
    terms = {term["entry_id"]: term for each in found for term in each.terms}
    return ToolResult({"terms": [_shown(term) for term in terms.values()]})


def _forget(call: ToolCall, given: dict[str, Any]) -> ToolResult:
    glossary = call.access.writing().glossary.by(call.actor, call.tool)
    return ToolResult({"forgotten": glossary.forget(given["key"], given.get("agent_id", DEFAULT_AGENT)) == 1})


def _judge(_call: ToolCall, given: dict[str, Any]) -> ToolResult:
    verdict = judge(given["text"], given.get("level", "normal"))
    return ToolResult({"accepted": verdict.accepted, "score": verdict.score, "reason": verdict.reason})


TOOLS = (
    McpTool(
        name="define_term",
        title="Define a term",
        description="Store what a term, an abbreviation or a name means here. The same term in any casing is replaced.",
        inputs={
            "key": string("The term"),
            "value": string("What it means"),
            "aliases": array(string(), "Its other names"),
            "category": string("Its category, such as abbreviation"),
            "description": string("More about it"),
            "agent_id": _AGENT,
        },
        required=("key", "value"),
        former={"term": "key", "meaning": "value", **_FORMER_AGENT},
        outputs=result(term=string(), terms=integer()),
        run=_define,
        destructive=True,
    ),
    McpTool(
        name="recall_terms",
        title="Recall terms",
        description="Find the terms of the glossary that a question is about, best first. Misspelt words are accepted.",
        inputs={
            "question": string("The question"),
            "k": integer("Maximum number of terms. Default: 10", minimum=1, maximum=100),
            "agent_id": _AGENT,
        },
        required=("question",),
        former=_FORMER_AGENT,
        outputs=result(terms=array(mapping({**_TERM, "score": number()}, required=("key", "value", "score")))),
        run=_recall,
        reads=True,
    ),
    McpTool(
        name="terms_in_text",
        title="Terms in a text",
        description="Return every term of the glossary that a text names, by its key or an alias, with its meaning.",
        inputs={"text": string("The text, such as a message or a document"), "agent_id": _AGENT},
        required=("text",),
        former=_FORMER_AGENT,
        outputs=result(terms=array(mapping(_TERM, required=("key", "value")))),
        run=_in_text,
        reads=True,
    ),
    McpTool(
        name="forget_term",
        title="Forget a term",
        description="Remove a term from the glossary. Its history stays.",
        inputs={"key": string("The term"), "agent_id": _AGENT},
        required=("key",),
        former={"term": "key", **_FORMER_AGENT},
        outputs=result(forgotten=boolean()),
        run=_forget,
        destructive=True,
    ),
)

JUDGE = (
    McpTool(
        name="judge_text",
        title="Judge a text",
        description="Say whether a text is worth remembering, by rules: narration of one's own steps is not.",
        inputs={"text": string("The text"), "level": string("Default: normal", enum=["normal", "strict"])},
        required=("text",),
        outputs=result(accepted=boolean(), score=number(), reason=string()),
        run=_judge,
        reads=True,
    ),
)
