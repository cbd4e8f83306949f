"""Memories of mem0: what `get_all` returns, the points of its collection in Qdrant, and its SQLite history.

The history has all texts that a memory had, and of whom it is not; the other two have its last text with its user. What
is imported from one of them is the same record as what is imported from another: its id is that of the memory.

A folder of Qdrant's local mode is not read: its points are pickled, and loading a pickle can run any program.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from recollect.arguments.checks import is_number
from recollect.common.regexes import regex
from recollect.errors import ImportFormatError
from recollect.importers.base import (
    Damage,
    Item,
    JsonValue,
    Omission,
    SeenIds,
    format_error,
    json_values,
    parse_json,
    read_text,
)
from recollect.importers.databases import Database, is_database, opened, quoted, text_of
from recollect.importers.versions import VERSIONS
from recollect.quoting import printable
from recollect.records.documents import bounded_id
from recollect.records.messages.parts import NOTHING
from recollect.records.messages.values import UnreadableError, instant, kind_of, within_years

#: Key of a memory -> field of a record.
_FIELDS = {
    "memory": "content",
    "user_id": "user",
    "agent_id": "agent",
    "run_id": "session",
    "categories": "tags",
    "created_at": "time",
    "actor_id": "speaker",
    "role": "role",
}
#: Keys of a point that mem0 computes from its text.
_COMPUTED = ("text_lemmatized",)
#: Columns of the history, with those that releases before 0.1.20 had; the best first.
_NEW, _OLD = ("new_memory", "new_value"), ("old_memory", "prev_value")
_CREATED = ("created_at", "timestamp")
#: Columns whose values become none of the metadata.
_EVENT = ("id", "memory_id", "event", "is_deleted", "actor_id", "role", *_NEW, *_OLD, *_CREATED)
_MESSAGE = ("id", "session_scope", "role", "content", "name", "created_at")
#: The file in which Qdrant's local mode has the points of a collection.
_STORAGE = "storage.sqlite"
_DAY = regex(r"\d{4}-\d\d-\d\d")
#: A program that prints the points of a folder, one in each line, where mem0 or qdrant-client is installed.
EXPORT = (
    "import json, sys, qdrant_client; client = qdrant_client.QdrantClient(path=sys.argv[1]); "
    "points, _ = client.scroll(sys.argv[2], limit=10**9); "
    "print(*(json.dumps(dict(id=each.id, payload=each.payload)) for each in points), sep=chr(10)); client.close()"
)


class Mem0:
    """`{"results": [{"id", "memory", "user_id", ...}]}`, points with a "payload", or a file with a table history."""

    name = "mem0"
    origin = "unknown"
    summary = "mem0: the JSON of get_all, points exported from Qdrant, or history.db; memories as facts of a user"

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage | Omission]:
        if os.path.isdir(path):
            raise _refused_folder(path)
        if is_database(path):
            with opened(path) as database:
                if database.has("points", "id", "point"):
                    raise _pickled(path.absolute().parent.parent.parent, path.absolute().parent.name)
                yield from _history(database, zone)
        else:
            yield from _listed(path, zone)


# What get_all returns, and points


def _listed(path: Path, zone: tzinfo) -> Iterator[Item | Damage | Omission]:
    memories, rest = _memories(path)
    if memories and not any(_is_memory(each.value) or _is_point(each.value) for each in memories):
        raise format_error(path, "", 'contains no object with a "memory", and no point with a "payload"')
    ids = SeenIds()
    computed = vectors = entities = 0
    for place, value in memories:
        memory = value
        if _is_point(value):
            computed += any(key in value["payload"] for key in _COMPUTED)
            vectors += value.get("vector") not in NOTHING
            if "linked_memory_ids" in value["payload"] and "entity_type" in value["payload"]:
                entities += 1
                continue
            memory = _of_point(value)
        try:
            if isinstance(memory, UnreadableError):
                raise memory
            yield Item(namespace=None, fields=_fields(memory, ids, zone), place=place, form=VERSIONS)
        except UnreadableError as error:
            yield Damage(place, str(error))
    yield Omission("vectors", vectors)
    yield Omission("texts for mem0's keyword search", computed)
    yield Omission("entities that mem0 found in memories", entities)
    yield from rest


def _memories(path: Path) -> tuple[list[JsonValue], list[Damage]]:
    """Return the memories or points of a file, each with its place, and what the file says is not in it.

    Raises:
        ImportFormatError: It has none of the forms.
    """
    text = read_text(path)
    try:
        pages = [JsonValue("", parse_json(text))]
    except UnreadableError as error:
        pages = list(json_values(text))
        if not any(_is_memory(each.value) or _points(each.value) is not None for each in pages):
            raise format_error(path, "", str(error)) from None
    if len(pages) == 1 and isinstance(pages[0].value, list):
        inside = pages[0].value
        pages = [JsonValue(f"page {number}", each) for number, each in enumerate(inside, 1)]
        if not any(_points(each) is not None and not _is_point(each) for each in inside):
            return [JsonValue(f"memory {number}", each) for number, each in enumerate(inside, 1)], []
    out: list[JsonValue] = []
    rest: list[Damage] = []
    for place, page in pages:
        results = page.get("results") if isinstance(page, dict) else None
        points = _points(page)
        before = f"{place}, " if place else ""
        if isinstance(results, list):
            out += [JsonValue(f"{before}memory {number}", each) for number, each in enumerate(results, 1)]
        elif isinstance(page, list):
            out += [JsonValue(f"{before}memory {number}", each) for number, each in enumerate(page, 1)]
        elif points is not None and not _is_point(page):
            out += [JsonValue(f"{before}point {number}", each) for number, each in enumerate(points, 1)]
        elif len(pages) == 1 and not _is_memory(page) and not _is_point(page):
            rule = 'must be a list of memories, an object with the list "results", or points of Qdrant'
            raise format_error(path, "", rule)
        else:
            out.append(JsonValue(place or "memory 1", page))
        if isinstance(page, dict) and page.get("relations"):
            rest.append(Damage(f"{before}relations", "relations of a graph are not imported"))
    last = pages[-1].value if pages else None
    found = last.get("result") if isinstance(last, dict) else None
    if isinstance(last, dict) and (last.get("next") or (isinstance(found, dict) and found.get("next_page_offset"))):
        rest.insert(0, Damage("next", "the file is one page of several: import the others too"))
    return out, rest


def _is_memory(value: Any) -> bool:
    return isinstance(value, dict) and "memory" in value


def _is_point(value: Any) -> bool:
    return isinstance(value, dict) and "memory" not in value and isinstance(value.get("payload"), dict)


def _points(value: Any) -> list[Any] | None:
    """Return the points of an answer of Qdrant's scroll, or the point that the value is; None if it is neither."""
    if _is_point(value):
        return [value]
    inside = value.get("result") if isinstance(value, dict) else None
    for each in (value, inside):
        if isinstance(each, dict) and isinstance(each.get("points"), list):
            points: list[Any] = each["points"]
            return points
    return None


def _of_point(point: dict[str, Any]) -> dict[str, Any]:
    """Return a point in the form of `get_all`."""
    payload = {key: value for key, value in point["payload"].items() if key not in _COMPUTED}
    named = point.get("id")
    own = str(named) if isinstance(named, int) and not isinstance(named, bool) else named
    return {"memory": payload.pop("data", None), **payload, "id": own}


def _fields(memory: Any, ids: SeenIds, zone: tzinfo) -> dict[str, Any]:
    if not isinstance(memory, dict):
        raise UnreadableError(f"is {kind_of(memory)}, not an object")
    rest = {key: value for key, value in memory.items() if value not in NOTHING}
    fields = {field: rest.pop(key) for key, field in _FIELDS.items() if key in rest}
    if not isinstance(fields.get("content"), str):
        raise UnreadableError(f'its "memory" is {kind_of(fields.get("content"))}, not text')
    if "time" in fields:
        fields["time"] = instant(fields["time"], zone)
    if "expiration_date" in rest:
        fields["valid_to"] = _end_of_day(rest["expiration_date"])  # as `recollect.compat.mem0` stores it
    stated = rest.pop("metadata", {})
    if not isinstance(stated, dict):
        raise UnreadableError(f"its metadata is {kind_of(stated)}, not an object")
    return {**fields, **ids.own(rest.pop("id", None)), "kind": "user_fact", "metadata": {**rest, **stated}}


def _end_of_day(value: Any) -> datetime:
    """Return until when a memory is true: the end of its last day, in UTC."""
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        raise UnreadableError('its "expiration_date" is not a day, such as 2027-01-31')
    return within_years(instant(value, UTC)) + timedelta(days=1)


# The history


def _history(database: Database, zone: tzinfo) -> Iterator[Item | Damage | Omission]:
    database.need("history", "memory_id", "event")
    columns = database.tables["history"]
    if not any(name in columns for name in _NEW):
        database.need("history", _NEW[0])
    query = f"SELECT memory_id, rowid, {', '.join(map(quoted, columns))} FROM history ORDER BY memory_id, rowid"
    known = ["history"]
    if has_messages := database.has("messages", *_MESSAGE):
        database.need("messages")
        known.append("messages")
    deleted, ids = 0, SeenIds()
    try:
        for memory_id, events in groupby(database.rows(query), lambda row: row[0]):
            states: list[dict[str, Any]] = []
            places: list[str] = []
            is_deleted = False
            for _, number, *row in events:
                place = f"history, row {number}"
                try:
                    event = dict(zip(columns, row, strict=True))
                    is_deleted = text_of(event["event"], "event").upper() == "DELETE" or event.get("is_deleted") == 1
                    states += [] if is_deleted else _states(event, zone, first=not states)
                    places += [place] * (len(states) - len(places))
                except UnreadableError as error:
                    yield Damage(place, str(error))
            deleted += is_deleted
            own = {} if is_deleted or not states else ids.own(text_of(memory_id, "memory_id"))
            for fields, place in () if is_deleted else zip(states, places, strict=True):
                group = f"memory {memory_id}"
                yield Item(namespace=None, fields={**fields, **own}, place=place, form=VERSIONS, group=group)
    except UnreadableError as error:
        yield Damage("the rest of the table history", str(error))
    yield Omission("memories that mem0 deleted", deleted)
    if has_messages:
        yield from _messages(database, zone)
    yield from database.others(known)


def _states(event: dict[str, Any], zone: tzinfo, *, first: bool) -> list[dict[str, Any]]:
    """Return the fields of a memory after an event, and before the first one if it had a text then, too.

    Raises:
        UnreadableError: The event has no text, or another value has another form.
    """
    text_of(event["memory_id"], "memory_id")
    texts = [text_of(_first(event, _NEW), _NEW[0])]
    old = _first(event, _OLD)
    if first and isinstance(old, str) and old.strip():  # the history begins later than the memory
        texts.insert(0, text_of(old, _OLD[0]))
    created = _first(event, _CREATED)
    about = {key: value for key, value in event.items() if key not in _EVENT and value is not None}
    fields: dict[str, Any] = {
        "kind": "user_fact",
        "metadata": {key: value if is_number(value) else text_of(value, key) for key, value in about.items()},
        **({} if created is None else {"time": instant(created, zone)}),
        **{_FIELDS[key]: text_of(event[key], key) for key in ("actor_id", "role") if event.get(key) not in NOTHING},
    }
    return [{**fields, "content": text} for text in texts]


def _first(row: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _messages(database: Database, zone: tzinfo) -> Iterator[Item | Damage]:
    """Yield the messages that mem0 kept, the last ones of each conversation, as turns."""
    query = f"SELECT {', '.join(_MESSAGE)} FROM messages ORDER BY session_scope, created_at, rowid"
    try:
        for number, row in enumerate(database.rows(query), 1):
            place = f"messages, row {number}"
            try:
                yield Item(namespace=None, fields=_turn(row, zone), place=place)
            except UnreadableError as error:
                yield Damage(place, str(error))
    except UnreadableError as error:
        yield Damage("the rest of the table messages", str(error))


def _turn(row: tuple[Any, ...], zone: tzinfo) -> dict[str, Any]:
    own, scope, role, content, name, created = row
    named = text_of(scope, "session_scope")
    pairs = (part.partition("=") for part in named.split("&"))
    owners = {_FIELDS[key]: unquote(value) for key, _, value in pairs if key in _FIELDS and value}
    fields = {"content": text_of(content, "content"), "role": text_of(role, "role"), "kind": "conversation"}
    if name not in NOTHING:
        fields["speaker"] = text_of(name, "name")
    time = {} if created is None else {"time": instant(created, zone)}
    return {"id": bounded_id(text_of(own, "id")), "conversation": named or "mem0", **fields, **owners, **time}


# Qdrant's local mode


def _refused_folder(path: Path) -> ImportFormatError:
    if os.path.exists(path / _STORAGE):
        return _pickled(path.absolute().parent.parent, path.absolute().name)
    found = sorted(path.glob(f"collection/*/{_STORAGE}"))
    if found:
        return _pickled(path, found[0].parent.name)
    return format_error(path, "", "is a folder, not a file: pass history.db, or what was exported as JSON")


def _pickled(folder: Path, name: str) -> ImportFormatError:
    command = shlex.join(["python", "-c", EXPORT, str(folder), name])
    rule = (
        "is a database of Qdrant's local mode, whose points are pickled: loading them could run any program, so an "
        f"import does not. Export the points where mem0 is installed: {printable(command)} > points.json"
    )
    return format_error(folder, "", rule)
