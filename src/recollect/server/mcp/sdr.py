"""Tools for texts with sparse codes: store one, find the closest, and remove one."""

from __future__ import annotations

from typing import Any

from recollect.arguments.tools import array, boolean, integer, mapping, number, result, string
from recollect.server.mcp.tools import McpTool, ToolCall, ToolResult


def _store(call: ToolCall, given: dict[str, Any]) -> ToolResult:
    sdr = call.access.writing().sdr.by(call.actor, call.tool)
    return ToolResult({"id": sdr.store(given["text"])})


def _find(call: ToolCall, given: dict[str, Any]) -> ToolResult:
    found = call.memory.sdr.query(given["text"], given.get("limit", 5), minimum=given.get("minimum", 0.0))
    texts = [{"id": hit["id"], "text": hit["text"], "score": round(hit["score"], 3)} for hit in found]
    return ToolResult({"texts": texts})


def _forget(call: ToolCall, given: dict[str, Any]) -> ToolResult:
    sdr = call.access.writing().sdr.by(call.actor, call.tool)
    return ToolResult({"forgotten": sdr.forget(given["id"])})


TOOLS = (
    McpTool(
        name="store_text",
        title="Store a text",
        description="Store a text to be found by its wording, such as a log line. The same one again is a further one.",
        inputs={"text": string("The text")},
        required=("text",),
        outputs=result(id=integer()),
        run=_store,
        idempotent=False,
    ),
    McpTool(
        name="find_texts",
        title="Find texts",
        description="Find the stored texts whose wording is closest to a text, in any language and misspelt, too.",
        inputs={
            "text": string("The text"),
            "limit": integer("Maximum number of texts. Default: 5", minimum=1, maximum=100),
            "minimum": number("The least score. Default: 0", minimum=0, maximum=1),
        },
        required=("text",),
        former={"k": "limit"},
        outputs=result(
            texts=array(
                mapping({"id": integer(), "text": string(), "score": number()}, required=("id", "text", "score"))
            )
        ),
        run=_find,
        reads=True,
    ),
    McpTool(
        name="forget_text",
        title="Forget a text",
        description="Remove a stored text. Its history stays.",
        inputs={"id": integer("Its number, as another tool returned it", minimum=1)},
        required=("id",),
        outputs=result(forgotten=boolean()),
        run=_forget,
        destructive=True,
    ),
)
