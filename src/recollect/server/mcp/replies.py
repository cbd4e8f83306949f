"""What a server answers to the requests of a client, as JSON: the same over every transport.

Calls are made by the caller: in a thread of its own, in the order of the client.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from recollect.errors import RecollectError
from recollect.server.mcp import guidance, reference
from recollect.server.mcp.tools import Access, McpTool, ToolError, ToolResult
from recollect.server.mcp.toolsets import sets_with

Json = dict[str, Any]
#: The codes of JSON-RPC.
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
_DIALECT = "http://json-schema.org/draft-07/schema#"
_MOST_ACTOR = 100


class ReplyError(Exception):
    """A request that is answered with an error.

    Attributes:
        code: The code of JSON-RPC.
        text: The message.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text


class Replies:
    """The answers of a server.

    Args:
        access: What clients may reach.
        tools: The tools, by name.
    """

    def __init__(self, access: Access, tools: Mapping[str, McpTool]) -> None:
        self.access = access
        self._tools = tools
        self._former = {tool.former_name: tool for tool in tools.values() if tool.former_name}

    @property
    def instructions(self) -> str:
        """When to recall and when to remember."""
        return guidance.instructions(self._tools, read_only=self.access.read_only)

    @cached_property
    def tools(self) -> Json:
        """The list of the tools."""
        return {"tools": [_described(tool, self.access) for tool in self._tools.values()]}

    def tool(self, name: str) -> McpTool | None:
        """Return the tool of a name, or of a former one."""
        return self._tools.get(name) or self._former.get(name)

    def unknown_tool(self, name: str) -> Json:
        """Return the answer to a call of a tool that there is not."""
        # Not one that removes something: a model may follow the hint.
        safe = [name for name, each in self._tools.items() if not each.destructive]
        similar = difflib.get_close_matches(name.lower(), safe, 1)
        elsewhere = sets_with(name, read_only=self.access.read_only, scoped=self.access.user is not None)
        hint = [f"Did you mean {similar[0]}?"] if similar else []
        if elsewhere:
            hint = [f"This server does not offer it; with --tools {elsewhere[0]} it would."]
        return failure(f"MCP error -32602: Tool {name} not found", *hint)

    def call(self, tool: McpTool, arguments: Mapping[str, Any] | None, actor: str | None) -> Json:
        """Call a tool and return its result.

        Args:
            tool: The tool.
            arguments: What the client passes.
            actor: The name that the client states; None if it states none.

        Raises:
            ToolError: It cannot be done. The answer is `failure`.
        """
        result = tool.call(self.access, dict(arguments or {}), self.access.signed(actor))
        return {"content": _texts(*result.texts()), "structuredContent": result.structured, "isError": False}

    @property
    def resources(self) -> Json:
        """The list of the resources."""
        resource = {
            "uri": reference.RESOURCE,
            "name": "knowledge-graph",
            "title": "Knowledge Graph",
            "description": "The knowledge graph: its entities with their observations, and their relations",
            "mimeType": "application/json",
        }
        return {"resources": [resource]}

    @staticmethod
    def check_resource(uri: str) -> None:
        """Raise ReplyError unless there is a resource at an address."""
        if uri != reference.RESOURCE:
            raise ReplyError(INVALID_PARAMS, f"MCP error -32602: Resource {uri} not found")

    def resource(self) -> Json:
        """Return the contents of the knowledge graph.

        Raises:
            ReplyError: It cannot be read.
        """
        tool = next(each for each in reference.TOOLS if each.name == "read_graph")
        try:
            result: ToolResult = tool.call(self.access, {}, None)
        except ToolError as error:
            raise ReplyError(INTERNAL_ERROR, str(error)) from None
        text, *notes = result.texts()
        contents = [{"uri": reference.RESOURCE, "mimeType": "application/json", "text": text}]
        contents += [{"uri": reference.RESOURCE, "mimeType": "text/plain", "text": note} for note in notes]
        return {"contents": contents}

    @property
    def prompts(self) -> Json:
        """The list of the prompts."""
        arguments = [
            {"name": name, "description": description, "required": name == "task"}
            for name, description in guidance.prompt_arguments(self.access).items()
        ]
        prompt = {
            "name": guidance.PROMPT,
            "title": guidance.PROMPT_TITLE,
            "description": guidance.PROMPT_DESCRIPTION,
            "arguments": arguments,
        }
        return {"prompts": [prompt]}

    @staticmethod
    def check_prompt(name: str) -> None:
        """Raise ReplyError unless there is a prompt of a name."""
        if name != guidance.PROMPT:
            raise ReplyError(INVALID_PARAMS, f"no such prompt {name!r}: the only one is {guidance.PROMPT}")

    def prompt(self, arguments: Mapping[str, str] | None) -> Json:
        """Return the messages of the prompt.

        Raises:
            ReplyError: An argument is wrong, or the memory cannot be read.
        """
        try:
            text = guidance.prompt(self.access, dict(arguments or {}))
        except (ToolError, RecollectError) as error:
            if isinstance(error, RecollectError):
                self.access.failed(error)
            raise ReplyError(INVALID_PARAMS, str(error)) from None
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": guidance.PROMPT_DESCRIPTION, "messages": [message]}


def failure(*texts: str) -> Json:
    """Return the result of a call that failed."""
    return {"content": _texts(*texts), "isError": True}


def actor_of(stated: str) -> str | None:
    """Return the name that a client states, on one line and without control characters; None if nothing is left."""
    name = "".join(letter for letter in stated if letter.isprintable())
    return name.strip()[:_MOST_ACTOR] or None


def _texts(*texts: str) -> list[Json]:
    return [{"type": "text", "text": text} for text in texts]


def _described(tool: McpTool, access: Access) -> Json:
    out: Json = {
        "name": tool.name,
        "title": tool.title,
        "description": (tool.listed is not None and tool.summary) or tool.description,
        "inputSchema": {"$schema": _DIALECT, **tool.listed_schema(access)},
        "annotations": {
            "readOnlyHint": tool.reads,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
        "execution": {"taskSupport": "forbidden"},
    }
    if tool.listed is None:
        out["outputSchema"] = {"$schema": _DIALECT, **tool.outputs}
    return out
