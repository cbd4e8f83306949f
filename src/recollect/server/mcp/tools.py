"""Tools: what a client can call, independent of the protocol.

A tool checks its arguments against a schema, so that no argument is ignored, and returns a structured result and its
text. What a client did wrong is a `ToolError`, whose text a model reads. The texts about arguments name the path of
each, so that a model can correct its call; their wording is that of the reference memory server, which clients show.
"""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recollect import Batch, Memory
from recollect.arguments.tools import Mismatch, Schema, Tool, kind_of, mapping, mismatches
from recollect.errors import InvalidArgumentError, RecollectError
from recollect.quoting import shown
from recollect.records.origins import ASSISTANT, RANKS, USER, Origin
from recollect.server.mcp.graph import SharedGraph
from recollect.server.served_memory import Opener, ServedMemory

#: Default maximum size of what a tool of the reference server returns, in tokens.
GRAPH_TOKENS = 20_000


def of_client(memory: Memory, origin: Origin) -> Memory:
    """Return a memory as a class of origin writes it whose actor is the name of a client."""
    view = memory.as_origin(origin)
    view._place = view._place._replace(client="mcp")
    return view


class Access(ServedMemory):
    """The memory of a server and its settings. Thread-safe.

    Args:
        opener: Opens the memory.
        user: The user whose records a client can reach; None: all records of the namespace.
        read_only: Whether clients can only read.
        graph_tokens: Maximum size of a graph that a tool returns, in tokens.
        origin: The class of origin of what clients write, at most: a model calls the tools, and may do so because a
            page asks it to.
    """

    def __init__(
        self,
        opener: Opener,
        *,
        user: str | None = None,
        read_only: bool = False,
        graph_tokens: int = GRAPH_TOKENS,
        origin: Origin = ASSISTANT,
    ) -> None:
        def view(memory: Memory) -> Memory:
            narrowed = memory if user is None else memory.scoped(user=user)
            return narrowed if origin == USER else of_client(narrowed, origin)

        super().__init__(opener, read_only=read_only, view=view)
        self.user = user
        self._is_trusted = RANKS[origin] >= RANKS[USER]
        self.graph_tokens = graph_tokens
        self.graph = SharedGraph(self.reading)
        self._graph_failure: str | None = None  # the code of the error that was logged last

    def has_changed_graph(self) -> bool:
        """Return whether the graph has changed since the last call. If it cannot be read, that is logged once."""
        try:
            changed = self.graph.take_changed()
            self._graph_failure = None
            return changed
        except RecollectError as error:
            self.failed(error)
            if error.code != self._graph_failure:
                _log.warning("changes of the knowledge graph cannot be read: %s", error)
            self._graph_failure = error.code
            return False

    def signed(self, stated: str | None) -> str | None:
        """Return what commits name as the actor, of a client that states a name.

        What it writes for the user is not its own, which it may change as a model later.
        """
        return f"{stated} (as user)" if stated and self._is_trusted else stated


_log = logging.getLogger("recollect")
#: Maximum number of invalid arguments that an error lists: a call of a few megabytes can have a million.
_MOST_PROBLEMS = 20
#: Code of an error -> what a model can do.
_HINTS = {
    "unknown_record": "recall returns the ids of the records that there are.",
    "invalid_filter": (
        "Examples: user=ana and not tag=old; kind=user_fact or kind=task; importance>=0.5; content~Rome; "
        "time>=2026-05-01 and time<2026-06-01"
    ),
}


class ToolError(Exception):
    """A call that cannot be answered. Its text is for the model, and says what to do."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call.

    Attributes:
        structured: The result as a JSON object.
        text: The text of the result; default: `structured` as JSON.
        notes: Further texts, such as what was left out.
    """

    structured: dict[str, Any]
    text: str | None = None
    notes: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        """Return all texts of the result."""
        text = compact(self.structured) if self.text is None else self.text
        return (text, *self.notes)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The environment of a call: the memory, and the client that makes it.

    Attributes:
        access: What the client may reach.
        tool: The name of the tool; recorded in commits as their reason.
        actor: The name of the client; recorded in commits.
    """

    access: Access
    tool: str
    actor: str | None

    @property
    def memory(self) -> Memory:
        """The memory, for reading."""
        return self.access.reading()

    @property
    def graph(self) -> SharedGraph:
        """The knowledge graph of the memory, which `SharedGraph.refresh` brings up to date."""
        return self.access.graph

    @contextmanager
    def commit(self) -> Iterator[Batch]:
        """Combine writes into one commit, which names the client and the tool."""
        with self.access.writing().batch(actor=self.actor, reason=self.tool) as batch:
            yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool(Tool[ToolCall, ToolResult]):
    """A tool of the server. (The reference memory server ignores unknown arguments: its tools are not `closed`.)

    Attributes:
        title: Its name for people.
        outputs: The schema of its structured result.
        destructive: Whether it removes or replaces something.
        idempotent: Whether calling it again changes nothing more.
        graph: Whether it belongs to the knowledge graph, so that what it writes changes the resource.
        whole: Whether it concerns the whole namespace, so that it is not offered where the server fixes the user.
        former_name: The name that it had before, by which it can still be called; "" if it had none.
        listed: Argument -> the schema that its definition shows, and nothing of results: a small definition costs a
            model less of its context. All other arguments are accepted, too. None: the definition is whole.
        summary: The description in a small definition; "" for the whole one.
    """

    title: str
    outputs: Schema
    destructive: bool = False
    idempotent: bool = True
    graph: bool = False
    whole: bool = False
    former_name: str = ""
    listed: Mapping[str, Schema] | None = None
    summary: str = ""

    def offered_schema(self, access: Access) -> Schema:
        """Return the schema of the arguments. It lacks "user" if the server fixes the user."""
        return self.input_schema(() if access.user is None else ("user",))

    def listed_schema(self, access: Access) -> Schema:
        """Return the schema of the arguments in the definition of the tool."""
        if self.listed is None:
            return self.offered_schema(access)
        inputs = {name: each for name, each in self.listed.items() if name != "user" or access.user is None}
        return mapping(inputs, required=self.required)

    def call(self, access: Access, arguments: Mapping[str, Any], actor: str | None) -> ToolResult:
        """Check the arguments and run the tool.

        Raises:
            ToolError: The arguments are invalid, or the call cannot be answered.
        """
        if access.read_only and not self.reads:
            raise ToolError(f"{self.name} writes, and this server was started with --read-only: nothing was changed")
        try:
            passed = self.passed(arguments)
        except InvalidArgumentError as error:
            raise self._refused(str(error)) from error
        found = mismatches(self.offered_schema(access), passed)
        wrong = [_worded(each) for each in islice(found, _MOST_PROBLEMS)]
        if next(found, None) is not None:
            wrong.append("(further problems are not listed)")
        if wrong:
            raise self._refused("\n".join(wrong))
        call = ToolCall(access, self.name, actor)
        try:
            return self.run(call, passed)
        except RecollectError as error:
            if not access.failed(error):
                hint = _HINTS.get(error.code)
                raise ToolError(f"{error} [{error.code}]{f'. {hint}' if hint else ''}") from error
            if not self.reads:
                text = (
                    "the file of the memory was replaced or deleted while the server was running: nothing was changed"
                )
                raise ToolError(f"{text}; call again to write to the new file [{error.code}]") from error
        try:
            return self.run(call, passed)
        except RecollectError as error:
            raise ToolError(f"{error} [{error.code}]") from error

    def _refused(self, why: str) -> ToolError:
        return ToolError(f"MCP error -32602: Input validation error: Invalid arguments for tool {self.name}: {why}")


def _worded(wrong: Mismatch) -> str:
    rule, path, expected, value, key = wrong
    kind, at = expected["type"], f" at {path}" if path else ""
    if rule == "enum":
        return f"Invalid option: expected one of {'|'.join(map(str, expected['enum']))}{at}"
    if rule == "minimum":
        return f"Too small: expected {kind} to be >={expected['minimum']}{at}"
    if rule == "maximum":
        return f"Too big: expected {kind} to be <={expected['maximum']}{at}"
    if rule == "known":
        known = expected["properties"]
        missing = [each for each in known if each in expected.get("required", ()) and each not in value]
        similar = missing if len(missing) == 1 else difflib.get_close_matches(key, known, 1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"known: {', '.join(known) or 'none'}"
        return f"Unrecognized key: {shown(key)}{at} ({hint})"
    return f"Invalid input: expected {kind}, received {'undefined' if rule == 'required' else kind_of(value)}{at}"


def compact(value: object) -> str:
    """Return a value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def indented(value: object) -> str:
    """Return a value as JSON with an indent of two spaces, as JavaScript's `JSON.stringify(value, null, 2)` does."""
    return json.dumps(value, ensure_ascii=False, indent=2)
