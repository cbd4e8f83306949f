"""The tools of every day, with small definitions: what most conversations need, for little of a model's context.

They are the tools of the same names in `reading` and `writing`. A definition lists the arguments that a model uses;
the others are accepted as well, so a prompt or program that names one goes on working.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recollect.arguments.tools import Schema, array, integer, string
from recollect.server.mcp import reading, writing
from recollect.server.mcp.tools import McpTool

_USER = string("Only what concerns this user")
_TOKENS = integer("Maximum size of the answer")
_FIELDS: dict[str, Schema] = {
    "kind": string("user_fact, knowledge (default), task, or a name of your own"),
    "tags": array(string(), '"standing:preference" and "standing:instruction" apply once the user accepts them'),
    "time": string("When it happened, in ISO 8601"),
    "valid_from": string("From when it is true"),
    "valid_to": string("Until when it is true"),
}

#: Tool -> its description, and the arguments that its definition lists.
_LISTED: Mapping[str, tuple[str, Mapping[str, Schema]]] = {
    "remember": (
        "Store one fact for later conversations: a preference, a decision, a fact about the user, people or projects. "
        "One complete sentence that is understood without the conversation. The same text again is not stored twice.",
        {
            "content": string("The fact, with names and dates"),
            "user": string("The user to whom it belongs"),
            "source": string("The page or file that says so, if the user does not"),
            **_FIELDS,
        },
    ),
    "recall": (
        "Find what helps to answer a question. Call it before you answer anything that may depend on earlier "
        "conversations, preferences, people, projects or decisions. Returns records with ids, and standing "
        "instructions, which always apply.",
        {
            "question": string("In natural language, with names and dates"),
            "user": _USER,
            "where": string("A filter, such as: kind=user_fact and not tag=old and time>=2026-05-01"),
            "max_tokens": _TOKENS,
            "cursor": string("The cursor of the page before"),
        },
    ),
    "context": (
        "Return one text with all that matters for a task: standing instructions, facts, and turns of earlier "
        "conversations. Call it once at the start of a task; use recall for single facts.",
        {"question": string("The task or question"), "user": _USER, "max_tokens": _TOKENS},
    ),
    "update": (
        "Change a record whose fact has changed, in place of storing another one: find its id with recall. Former "
        "versions stay in the history.",
        {"id": string("Its id, from recall"), "content": string("The new text"), **_FIELDS},
    ),
    "forget": (
        "Forget a record, if the user asks for it, or if it is wrong and nothing is right in its place.",
        {"id": string("Its id, from recall")},
    ),
}


def _small(tool: McpTool) -> McpTool:
    summary, listed = _LISTED[tool.name]
    return replace(tool, summary=summary, listed=listed)


TOOLS = tuple(_small(tool) for tool in (*writing.TOOLS, *reading.TOOLS) if tool.name in _LISTED)
