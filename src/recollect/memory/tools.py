"""`ToolSet`: the calls of a memory as function tools, in the forms of OpenAI's and Anthropic's APIs, with a dispatcher.

    tools = memory.tools()
    reply = client.chat.completions.create(model=..., messages=messages, tools=tools.openai())
    for call in reply.choices[0].message.tool_calls or ():
        messages.append(tools.answer(call))

A model's arguments are not trusted: they are checked, and an error is answered as JSON that the model can read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from recollect.arguments.tools import Mismatch, Tool, boolean, integer, mapping, mismatches, number, schema, string
from recollect.calls.calls import stored
from recollect.common.regexes import regex
from recollect.engine.results import Outcome
from recollect.errors import InvalidArgumentError, InvalidOperationError, RecollectError, UnknownArgumentError
from recollect.facets.glossary.records import DEFAULT_AGENT
from recollect.memory.context.styles import TRUST
from recollect.memory.context.validity import Validity, valid_hits
from recollect.memory.shared import MemoryCalls
from recollect.models.embedding.base import embedded
from recollect.models.embedding.similarity import cosine
from recollect.operations import Remember, Update
from recollect.policies import judge
from recollect.records.origins import ORIGINS
from recollect.records.record import Record

#: Maximum number of results of a tool, and of characters of a text in a result.
_MOST_RESULTS, _LONGEST = 50, 4000
#: The kinds that a model may state.
_KINDS = ("user_fact", "knowledge", "task")
Json = dict[str, Any]
_PREFIX = regex(r"[A-Za-z0-9_-]{0,40}")


def _limit(default: int) -> Json:
    description = f"Maximum number of results. Default: {default}."
    return integer(minimum=1, maximum=_MOST_RESULTS, description=description)


_MIN_ORIGIN = string(
    "Only what is from this class or a more trusted one: user leaves out what pages and tools say", enum=list(ORIGINS)
)


def _shown(record: Record, validity: Validity | None = None) -> Json:
    content = record.content if isinstance(record.content, str) else f"[{record.media_type}]"
    until = None if validity is None else validity.ended(record)
    times = {"time": record.time and record.time.isoformat(), "until": until and until.isoformat()}
    fields = {**times, "user": record.user, "speaker": record.speaker}
    fields |= {} if record.has_authority else {"origin": record.effective_origin}
    shown = {"id": record.id, "content": content[:_LONGEST], "kind": record.kind, **fields}
    return {name: value for name, value in shown.items() if value is not None}


def _remember(memory: MemoryCalls, given: Json) -> Any:
    fields: Any = {"kind": given.get("kind", "user_fact"), "importance": given.get("importance")}
    stated = {name: value for name, value in fields.items() if value is not None}
    return _outcome(memory.execute(Remember(content=given["content"], fields=stated)))


def _outcome(outcome: Outcome) -> Json:
    """Return the record of an outcome, with the status if it has no effect yet."""
    shown = _shown(stored(outcome))
    return {**shown, "status": outcome.status} if outcome.status in ("proposed", "quarantined") else shown


def _recall(memory: MemoryCalls, given: Json) -> Any:
    concise = given.get("concise", "k" not in given)
    asked = {"where": given.get("where"), "min_origin": given.get("min_origin")}
    found = valid_hits(memory, given["question"], given.get("k", 10), concise=concise, **asked)
    return [{**_shown(hit.record, found.validity), "confidence": round(hit.confidence, 3)} for hit in found.hits]


def _search(memory: MemoryCalls, given: Json) -> Any:
    """Return the hits of a question by the similarity of their meaning; without an embedder, by their confidence."""
    least = given.get("minimum_similarity", 0.0)
    valid = valid_hits(memory, given["question"], given.get("k", 10), min_origin=given.get("min_origin"))
    hits = valid.hits
    embedder = memory._executor.embedder
    measure, values = "confidence", [hit.confidence for hit in hits]
    if embedder is not None and hits:
        asked = embedded(embedder, [given["question"]], asking=True).vectors.get(0)
        known = embedded(embedder, [str(hit.record.content) for hit in hits]).vectors
        if asked is not None:
            measure = "cosine"
            values = [cosine(asked.tolist(), known[at].tolist()) if at in known else 0.0 for at in range(len(hits))]
    ranked = sorted(zip(values, hits, strict=True), key=lambda each: -each[0])
    found = [
        {**_shown(hit.record, valid.validity), "similarity": round(value, 3)} for value, hit in ranked if value >= least
    ]
    return {"measure": measure, "results": found}


def _context(memory: MemoryCalls, given: Json) -> Any:
    least = given.get("min_origin")
    return str(memory.context(given["question"], max_tokens=given.get("max_tokens", 1000), min_origin=least))


def _forget(memory: MemoryCalls, given: Json) -> Any:
    return {"id": given["id"], "forgotten": memory.forget(given["id"])}


def _update(memory: MemoryCalls, given: Json) -> Any:
    return _outcome(memory.execute(Update(id=given["id"], changes={"content": given["content"]})))


def _history(memory: MemoryCalls, given: Json) -> Any:
    return [version.to_json() for version in memory.history(given["id"])[-_MOST_RESULTS:]]


def _entity(memory: MemoryCalls, given: Json) -> Any:
    view = memory.entity(given["name"], limit=given.get("limit", 20))
    return None if view is None else view.to_json()


def _contradictions(memory: MemoryCalls, given: Json) -> Any:
    found = memory.contradictions()[: given.get("limit", 20)]
    return [
        {
            "subject": each.subject,
            "attribute": each.attribute,
            "values": list(each.values),
            "ids": [each.older.id, each.newer.id],
        }
        for each in found
    ]


def _agent_of(memory: MemoryCalls, given: Json) -> str:
    return str(given.get("agent_id") or memory.scope.get("agent") or DEFAULT_AGENT)


def _define_term(memory: MemoryCalls, given: Json) -> Any:
    agent = _agent_of(memory, given)
    category, description = given.get("category", ""), given.get("description")
    memory.glossary.memorize(given["key"], given["value"], category, agent, given.get("aliases"), description)
    return memory.glossary.get(given["key"], agent)


def _recall_terms(memory: MemoryCalls, given: Json) -> Any:
    found = memory.glossary.recall(given["question"], _agent_of(memory, given), given.get("k", 10), typos=True)
    return [{**term, "score": round(term["score"], 3)} for term in found]


def _terms_in_text(memory: MemoryCalls, given: Json) -> Any:
    found = memory.glossary.annotate(given["text"], _agent_of(memory, given))
    return list({term["entry_id"]: term for each in found for term in each.terms}.values())


def _forget_term(memory: MemoryCalls, given: Json) -> Any:
    return {"term": given["key"], "forgotten": memory.glossary.forget(given["key"], _agent_of(memory, given))}


def _import_outline(memory: MemoryCalls, given: Json) -> Any:
    done = memory.outline.ingest_text(given["text"], given["format"], given["source"])
    return {"id": done.root, "added": len(done.added), "changed": len(done.changed), "removed": len(done.removed)}


def _search_outline(memory: MemoryCalls, given: Json) -> Any:
    from recollect.facets.outline.reading import PRIVATE

    found = memory.outline.search(given["text"], given.get("k", 10), under=given.get("under"), private=PRIVATE)
    nodes = [
        {
            "id": each.node.id,
            "title": each.node.title,
            "text": (each.node.text or "")[:_LONGEST],
            "similarity": round(each.similarity, 3),
        }
        for each in found
    ]
    return {"measure": found.measure, "results": nodes}


def _focus_outline(memory: MemoryCalls, given: Json) -> Any:
    return str(memory.outline.focus(given.get("node_id"), given.get("max_tokens", 1000)))


def _judge(_: MemoryCalls, given: Json) -> Any:
    return judge(given["text"], given.get("level", "normal"))._asdict()


_AGENT = string("The agent whose glossary it is. Default: the agent of this memory, else the one that all share")
_ID = string("The id of the memory, as another tool returned it")
_SIZE = integer(minimum=1, maximum=8000, description="Size of the text")
TOOLS: tuple[Tool[Any, Any], ...] = (
    Tool(
        name="remember",
        description="Store one fact, so that it is known in later conversations. "
        "State it in a sentence that needs no context.",
        inputs={
            "content": string("The fact"),
            "kind": string("What it is: a fact about the user, knowledge, or a task", enum=list(_KINDS)),
            "importance": number(minimum=0, maximum=1, description="How important it is"),
        },
        required=("content",),
        former={"text": "content"},
        run=_remember,
    ),
    Tool(
        name="recall",
        description="Find what is remembered about a question, best first. What has an `until` is no longer true.",
        inputs={
            "question": string("The question"),
            "k": _limit(10),
            "where": string("A filter, such as user=ana"),
            "min_origin": _MIN_ORIGIN,
            "concise": boolean("Leave out what adds little to the first ones. Default: true, without k"),
        },
        required=("question",),
        former={"limit": "k"},
        run=_recall,
        reads=True,
    ),
    Tool(
        name="search",
        description="Find memories that are similar in meaning to a text, from a minimum similarity on.",
        inputs={
            "question": string("The text"),
            "k": _limit(10),
            "minimum_similarity": number(minimum=0, maximum=1, description="Leave out less similar ones"),
            "min_origin": _MIN_ORIGIN,
        },
        required=("question",),
        former={"query": "question", "limit": "k"},
        run=_search,
        reads=True,
    ),
    Tool(
        name="context",
        description=f"Return what helps to answer a question as one text. It quotes what was said: {TRUST}.",
        inputs={
            "question": string("The question or the task"),
            "max_tokens": _SIZE,
            "min_origin": _MIN_ORIGIN,
        },
        required=("question",),
        run=_context,
        reads=True,
    ),
    Tool(
        name="update",
        description="Correct the text of a memory. The former text stays in its history.",
        inputs={"id": _ID, "content": string("The corrected text")},
        required=("id", "content"),
        former={"text": "content"},
        run=_update,
    ),
    Tool(
        name="forget",
        description="Forget a memory that is wrong or that the user wants to be forgotten.",
        inputs={"id": _ID},
        required=("id",),
        run=_forget,
    ),
    Tool(
        name="history",
        description="Return all versions of a memory, oldest first.",
        inputs={"id": _ID},
        required=("id",),
        run=_history,
        reads=True,
    ),
    Tool(
        name="entity",
        description="Return when a person, place or thing was mentioned, together with what, and its relations.",
        inputs={"name": string("Its name"), "limit": _limit(20)},
        required=("name",),
        run=_entity,
        reads=True,
    ),
    Tool(
        name="contradictions",
        description="Return facts that disagree.",
        inputs={"limit": _limit(20)},
        required=(),
        run=_contradictions,
        reads=True,
    ),
    Tool(
        name="define_term",
        description="Store what a term, an abbreviation or a name means here. The same term in any casing is replaced.",
        inputs={
            "key": string("The term"),
            "value": string("What it means"),
            "aliases": schema("array", items=string(), description="Its other names"),
            "category": string("Its category, such as abbreviation"),
            "description": string("More about it"),
            "agent_id": _AGENT,
        },
        required=("key", "value"),
        former={"term": "key", "meaning": "value", "agent": "agent_id"},
        run=_define_term,
    ),
    Tool(
        name="recall_terms",
        description="Find the terms of the glossary that a question is about, best first.",
        inputs={"question": string("The question"), "k": _limit(10), "agent_id": _AGENT},
        required=("question",),
        former={"limit": "k", "agent": "agent_id"},
        run=_recall_terms,
        reads=True,
    ),
    Tool(
        name="terms_in_text",
        description="Return every term of the glossary that a text names, by its key or an alias, with its meaning.",
        inputs={"text": string("The text"), "agent_id": _AGENT},
        required=("text",),
        former={"agent": "agent_id"},
        run=_terms_in_text,
        reads=True,
    ),
    Tool(
        name="forget_term",
        description="Remove a term from the glossary. Its history stays.",
        inputs={"key": string("The term"), "agent_id": _AGENT},
        required=("key",),
        former={"term": "key", "agent": "agent_id"},
        run=_forget_term,
    ),
    Tool(
        name="import_outline",
        description="Store notes in Org or Markdown as a tree. Of a source that is stored, only changes are written.",
        inputs={
            "text": string("The whole text"),
            "format": string("Its format", enum=["org", "markdown"]),
            "source": string("Its name, such as the path of a file"),
        },
        required=("text", "format", "source"),
        run=_import_outline,
    ),
    Tool(
        name="search_outline",
        description="Find the headlines and texts of stored outlines that are most similar to a text.",
        inputs={
            "text": string("The text"),
            "k": _limit(10),
            "under": string("The id of a node: only it and what is below it"),
        },
        required=("text",),
        former={"query": "text", "limit": "k"},
        run=_search_outline,
        reads=True,
    ),
    Tool(
        name="focus_outline",
        description="Return an outline with one node and what is similar to it in full, and the rest by title. "
        "It quotes notes.",
        inputs={
            "node_id": string("The id of the node. Default: none: the titles of all outlines"),
            "max_tokens": _SIZE,
        },
        required=(),
        former={"node": "node_id"},
        run=_focus_outline,
        reads=True,
    ),
    Tool(
        name="judge_text",
        description="Say whether a text is worth remembering, by rules: narration of one's own steps is not.",
        inputs={"text": string("The text"), "level": string("How strictly", enum=["normal", "strict"])},
        required=("text",),
        run=_judge,
        reads=True,
    ),
)


class ToolSet:
    """The calls of a memory as function tools. Created by `Memory.tools`."""

    def __init__(self, memory: MemoryCalls, prefix: str, only: Collection[str] | None, *, read_only: bool) -> None:
        if not isinstance(prefix, str) or not all(
            char.isascii() and (char.isalnum() or char in "_-") for char in prefix
        ):
            raise InvalidArgumentError("prefix", prefix, "must consist of letters, digits, _ and -")
        names = {tool.name for tool in TOOLS}
        for name in () if only is None else only:
            if name not in names:
                raise InvalidArgumentError("only", name, f"must be one of {', '.join(sorted(names))}")
        self._memory = memory
        self._tools = {
            prefix + tool.name: tool
            for tool in TOOLS
            if (only is None or tool.name in only) and not (read_only and not tool.reads)
        }

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(self._tools)

    def openai(self) -> list[Json]:
        """Return the tools in the form of OpenAI's Chat Completions API, which most local servers read too."""
        return [
            {
                "type": "function",
                "function": {"name": name, "description": tool.description, "parameters": tool.input_schema()},
            }
            for name, tool in self._tools.items()
        ]

    def anthropic(self) -> list[Json]:
        """Return the tools in the form of Anthropic's Messages API."""
        return [
            {"name": name, "description": tool.description, "input_schema": tool.input_schema()}
            for name, tool in self._tools.items()
        ]

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> Any:
        """Run a tool and return its result, a JSON value.

        Args:
            name: The name of the tool.
            arguments: Its arguments, as an object or as JSON text.

        Raises:
            InvalidOperationError: There is no such tool, or the arguments are no JSON object.
            UnknownArgumentError: The tool has no such argument.
            InvalidArgumentError: An argument is missing, or has a wrong type or value.
            RecollectError: The call failed, as the call of the memory does.
        """
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise InvalidOperationError(name, f"is not one of {', '.join(self._tools)}")
        return tool.run(self._memory, _checked(name, tool, arguments))

    def answer(self, call: Any) -> Json:
        """Run the call of a tool that a model asked for, and return the message that answers it.

        An error is part of the message, so that the model can correct its call.

        Args:
            call: A `tool_call` of OpenAI's API or a `tool_use` block of Anthropic's, as an object or a dictionary.

        Returns:
            The message {"role": "tool", ...} for OpenAI's API; the block {"type": "tool_result", ...}, to be put in a
            message of the user, for Anthropic's.

        Raises:
            InvalidArgumentError: The value is not one of these.
        """
        function = _get(call, "function")
        call_id = _get(call, "id")
        if function is not None:
            content, _ = self._answered(_get(function, "name"), _get(function, "arguments"))
            return {"role": "tool", "tool_call_id": call_id, "content": content}
        if _get(call, "type") != "tool_use":
            raise InvalidArgumentError(
                "call", call, "must be a tool_call of OpenAI's API or a tool_use block of Anthropic's"
            )
        content, failed = self._answered(_get(call, "name"), _get(call, "input"))
        block: Json = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return {**block, "is_error": True} if failed else block

    def _answered(self, name: Any, arguments: Any) -> tuple[str, bool]:
        try:
            return json.dumps(self.call(name, arguments), ensure_ascii=False), False
        except RecollectError as error:
            return json.dumps({"error": error.code, "message": str(error)}, ensure_ascii=False), True


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


#: JSON type -> what an error calls its values.
_CALLED = {"string": "text", "integer": "a number", "number": "a number", "array": "a list of texts"}
#: The rules of which an error is reported first.
_FIRST = ("known", "required")


def _checked(name: str, tool: Tool[Any, Any], arguments: object) -> Json:
    """Return the arguments of a tool, which is called by a name, if they fit its schema."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise InvalidOperationError(arguments, "is not JSON") from None
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, Mapping):
        raise InvalidOperationError(arguments, "must be a JSON object of arguments")
    given = tool.passed({key: value for key, value in arguments.items() if value is not None})
    inputs = {key: tool.inputs[key] for key in (*given, *tool.inputs) if key in tool.inputs}  # in the order of `given`
    wrong = mismatches(mapping(inputs, required=tool.required, closed=True), given)
    first = min(wrong, key=lambda each: _FIRST.index(each.rule) if each.rule in _FIRST else len(_FIRST), default=None)
    if first is not None:
        raise _error(name, inputs, given, first)
    return given


def _error(tool: str, inputs: Json, given: Json, wrong: Mismatch) -> RecollectError:
    if wrong.rule == "known":
        return UnknownArgumentError(tool, str(wrong.key), "")
    argument = wrong.path.partition("[")[0]
    if wrong.rule == "required":
        return InvalidArgumentError(argument, None, f"is required by {tool}")
    expected = inputs[argument]
    if wrong.rule == "type":
        return InvalidArgumentError(argument, given[argument], f"must be {_CALLED[expected['type']]}")
    if wrong.rule == "enum":
        return InvalidArgumentError(argument, given[argument], f"must be one of {', '.join(expected['enum'])}")
    rule = f"must lie between {expected['minimum']} and {expected['maximum']}"
    return InvalidArgumentError(argument, given[argument], rule)
