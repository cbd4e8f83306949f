"""The routes of the server: one for every operation, and readable ones for the common calls.

Each is listed in `ROUTES` with what the description says of it (`server.http.openapi`).
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.responses import Response

from recollect import Memory, Outcome, Record
from recollect.arguments.tools import with_present_names
from recollect.errors import MissingArgumentError, ProtocolError, UnknownArgumentError, UnknownRecordError
from recollect.operations import Forget, Remember
from recollect.records.record import fields_from_json
from recollect.server.calls import reads
from recollect.server.http.answers import SCHEMAS
from recollect.server.http.batches import add_to_batch, begin_batch, commit_batch, undo_batch
from recollect.server.http.exchange import Exchange, Handler
from recollect.server.http.streams import changes, export, import_records
from recollect.wire import READ, WRITE, answer_json, check_size, encode, page, read_request, record_json

#: Query parameters that are numbers or lists.
_INTEGERS = frozenset(("k", "limit", "max_tokens"))
_NUMBERS = frozenset(("min_confidence", "recency", "importance"))
_FLAGS = frozenset(("concise",))
_LISTS = frozenset(("include",))


async def execute(exchange: Exchange) -> Response:
    data = await exchange.json()
    stated = dict(data)
    place = exchange.place(stated.pop("in", None))
    name = stated.get("op")

    def call() -> bytes:
        request = read_request(stated, place)
        return exchange.calls.answer(request, exchange.grant)

    if name == "wait":
        request = read_request(stated, place)
        exchange.grant.check(READ, place.branch)
        operation: Any = request.operation
        found = await exchange.while_connected(
            exchange.site.waits.wait(exchange.grant.placed(place), operation.since, operation.timeout)
        )
        return exchange.json_answer(answer_json(operation, found))
    name = name if isinstance(name, str) else "?"
    return exchange.answer(await exchange.run(name, call), is_read=reads(name))


async def remember(exchange: Exchange) -> Response:
    given = dict(await exchange.json())
    place = exchange.place(given.pop("in", None))
    content = _taken(given, "content")
    named = {name: given.pop(name) for name in ("id", "expect", "if_exists", "ttl") if name in given}

    def call(memory: Memory) -> Any:
        outcome: Outcome = memory.execute(Remember(content=content, fields=fields_from_json(given), **named))
        return outcome.checked()

    outcome = await exchange.on_memory("remember", WRITE, call, place)
    status = HTTPStatus.CREATED if outcome.status in ("created", "proposed") else HTTPStatus.OK
    return exchange.json_answer(outcome.to_json(), status)


async def add_messages(exchange: Exchange) -> Response:
    given = dict(await exchange.json())
    place = exchange.place(given.pop("in", None))
    messages = _taken(given, "messages")
    _check_names(given)
    report = await exchange.on_memory(
        "add_messages", WRITE, lambda memory: memory.add_messages(messages, **given), place
    )
    return exchange.json_answer(report.to_json())


async def recall(exchange: Exchange) -> Response:
    given, place = await _given(exchange)
    question = _taken(given, "question")
    hits = await exchange.on_memory("recall", READ, lambda memory: memory.recall(question, **given).to_json(), place)
    # Apart from when it was asked, the answer is the same until something that it depends on changes.
    same = {name: value for name, value in hits.items() if name not in ("time", "reference", "cursor")}
    raw = encode(hits)
    check_size("recall", raw)
    return exchange.answer(raw, same=encode(same), is_read=True)


async def context(exchange: Exchange) -> Response:
    given, place = await _given(exchange)
    question = _taken(given, "question")
    given.setdefault("max_tokens", 1000)
    given = with_present_names(given, {"time": "reference"})

    def call(memory: Any) -> Any:
        return memory.context(question, **given).to_json()

    raw = encode(await exchange.on_memory("context", READ, call, place))
    check_size("context", raw)
    return exchange.answer(raw, is_read=True)


async def records(exchange: Exchange) -> Response:
    given, place = await _given(exchange)
    limit = given.pop("limit", 100)

    def call(memory: Memory) -> bytes:
        if isinstance(limit, int) and limit > 0:
            return page(lambda count: memory.find(limit=count, **given), limit).encoded()
        return encode(memory.find(limit=limit, **given).to_json())  # raises

    return exchange.answer(await exchange.on_memory("find", READ, call, place))


async def record(exchange: Exchange) -> Response:
    record_id = exchange.parameter("id")
    exchange.check_query()
    found: Record | None = await exchange.on_memory("get", READ, lambda memory: memory.get(record_id))
    if found is None:
        raise UnknownRecordError(record_id, exchange.namespace)
    return exchange.json_answer(record_json(found))


async def change_record(exchange: Exchange) -> Response:
    record_id, given = exchange.parameter("id"), dict(await exchange.json())
    place = exchange.place(given.pop("in", None))
    _check_names(given, "id", "record_id")
    changed = await exchange.on_memory("update", WRITE, lambda memory: memory.update(record_id, **given), place)
    # A proposal beside the record, which is of a higher class of origin than the token.
    status = HTTPStatus.OK if changed.id == record_id else HTTPStatus.ACCEPTED
    return exchange.json_answer(record_json(changed), status)


async def forget_record(exchange: Exchange) -> Response:
    record_id = exchange.parameter("id")
    exchange.check_query("expect")
    expect = exchange.request.query_params.get("expect")
    outcome: Outcome = await exchange.on_memory(
        "forget", WRITE, lambda memory: memory.execute(Forget(id=record_id, expect=expect)), exchange.place()
    )
    if outcome.record is None:
        raise UnknownRecordError(record_id, exchange.namespace)
    return exchange.json_answer(outcome.to_json())


async def history(exchange: Exchange) -> Response:
    record_id = exchange.parameter("id")
    exchange.check_query()

    def call(memory: Any) -> Any:
        return {"versions": [version.to_json() for version in memory.history(record_id)]}

    raw = encode(await exchange.on_memory("history", READ, call))
    check_size("history", raw)
    return exchange.answer(raw)


async def _given(exchange: Exchange) -> tuple[dict[str, Any], Any]:
    """Return the arguments of a call, from the query of GET or the body of POST, and its place.

    In a query, user, agent and conversation are arguments of the call, as in the body; a list has commas.
    """
    if exchange.request.method == "POST":
        given = dict(await exchange.json())
        _check_names(given)
        return given, exchange.place(given.pop("in", None))
    given = {}
    for name, value in exchange.request.query_params.multi_items():
        if name in given:
            raise ProtocolError(f"the query has {name!r:.80} twice")
        given[name] = [part.strip() for part in value.split(",")] if name in _LISTS else _number(name, value)
    _check_names(given)
    return given, exchange.place(None)


def _check_names(given: Mapping[str, Any], *others: str) -> None:
    """Raise UnknownArgumentError for a name that is a parameter of the call in Python, and none of the request."""
    for name in ("self", *others):
        if name in given:
            raise UnknownArgumentError("the request", name)


def _number(name: str, value: str) -> Any:
    if name in _FLAGS and value in ("true", "false"):
        return value == "true"
    if name not in _INTEGERS | _NUMBERS or (name, value) == ("min_confidence", "auto"):
        return value
    try:
        return int(value) if name in _INTEGERS else float(value)
    except ValueError:
        raise ProtocolError(f"{name} must be a number, got {value!r:.80}") from None


def _taken(given: dict[str, Any], name: str) -> Any:
    if name not in given:
        raise MissingArgumentError("the request", name)
    return given.pop(name)


class Described(NamedTuple):
    """A route, and what the description says of it.

    Attributes:
        path: The path, below /v1/{namespace}.
        handler: What answers.
        summary: What it does, in a line.
        fields: The fields of the body, or the query parameters of GET, with their JSON types.
        required: The fields that must be there.
        cleared: The fields that may be null, which clears what is stored.
        answer: The schema of its answer (`answers`); "": none is described.
        creates: Whether the status is 201 if something was created.
    """

    path: str
    methods: tuple[str, ...]
    handler: Handler
    summary: str
    fields: Mapping[str, str] = {}
    required: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    answer: str = ""
    creates: bool = False


#: What a client can set of a record, of what is text or JSON.
_SET = {
    name: each["type"]
    for name, each in SCHEMAS["Record"]["properties"].items()
    if name not in ("hash", "data", "unknown")
}
#: What a client can change of a record that exists, and of that, what null clears.
_CHANGED = {name: each for name, each in _SET.items() if name != "id"}
_CLEARED = tuple(name for name in _CHANGED if name not in ("content", "kind"))
_CONDITIONS = {"expect": "string", "if_exists": "string", "ttl": "number"}
_OWNERS = {"user": "string", "agent": "string", "conversation": "string"}
_EXPORT = "Return all records as lines of JSON, of one moment; those of the other parts follow."
_RECALL = {
    "question": "string",
    "k": "integer",
    "where": "string",
    **_OWNERS,
    "reference": "string",
    "min_confidence": "number",
    "min_origin": "string",
    "language": "string",
    "concise": "boolean",
}
ROUTES = (
    Described(
        "/execute",
        ("POST",),
        execute,
        "Execute any operation in its JSON form.",
        {"op": "string"},
        ("op",),
        answer="Result",
    ),
    Described(
        "/remember",
        ("POST",),
        remember,
        "Store a text, and return its record.",
        {**_SET, **_CONDITIONS},
        ("content",),
        answer="Outcome",
        creates=True,
    ),
    Described(
        "/messages",
        ("POST",),
        add_messages,
        "Store the messages of a chat that are not stored yet.",
        {"messages": "array", "user": "string", "agent": "string", "conversation": "string"},
        ("messages",),
        answer="Report",
    ),
    Described(
        "/recall",
        ("GET", "POST"),
        recall,
        "Return the records that best answer a question.",
        _RECALL,
        ("question",),
        answer="Hits",
    ),
    Described(
        "/context",
        ("GET", "POST"),
        context,
        "Return what helps to answer a question as text for a prompt.",
        {
            "question": "string",
            "max_tokens": "integer",
            "where": "string",
            **_OWNERS,
            "include": "array",
            "reference": "string",
            "min_confidence": "number",
            "min_origin": "string",
            "concise": "boolean",
        },
        ("question",),
        answer="Context",
    ),
    Described(
        "/records",
        ("GET",),
        records,
        "Return records that match a filter, a page at a time.",
        {
            "where": "string",
            **_OWNERS,
            "min_origin": "string",
            "limit": "integer",
            "after": "string",
            "order": "string",
        },
        answer="Records",
    ),
    Described("/records/{id:path}", ("GET",), record, "Return a record.", answer="Record"),
    Described(
        "/records/{id:path}",
        ("PATCH",),
        change_record,
        "Change fields of a record. null clears a field. 202: a proposal was stored beside it.",
        {**_CHANGED, "expect": "string"},
        cleared=_CLEARED,
        answer="Record",
    ),
    Described(
        "/records/{id:path}",
        ("DELETE",),
        forget_record,
        "Forget a record. Its history stays.",
        {"expect": "string"},
        answer="Outcome",
    ),
    Described(
        "/history/{id:path}",
        ("GET",),
        history,
        "Return every version that a record had, oldest first.",
        answer="Versions",
    ),
    Described(
        "/changes",
        ("GET",),
        changes,
        "Return commits after a cursor; as text/event-stream, wait for further ones, too.",
        {"since": "string", "limit": "integer", "parts": "array", **_OWNERS},
        answer="Commits",
    ),
    Described("/export", ("GET",), export, _EXPORT, {"parts": "array", **_OWNERS}),
    Described("/export", ("POST",), export, _EXPORT, {"parts": "array"}),
    Described("/import", ("POST",), import_records, "Store records from lines of JSON, as an export has them."),
    Described("/batches", ("POST",), begin_batch, "Open a batch: it holds the write lock, for at most some seconds."),
    Described("/batches/{batch}/execute", ("POST",), add_to_batch, "Execute an operation in a batch."),
    Described("/batches/{batch}/commit", ("POST",), commit_batch, "Commit a batch."),
    Described("/batches/{batch}", ("DELETE",), undo_batch, "Undo a batch."),
)
