"""The memory service of Google ADK on a memory: sessions go in as turns, and a question finds what was said.

    from google.adk.runners import Runner
    from recollect.compat.adk import RecollectMemoryService

    runner = Runner(..., memory_service=RecollectMemoryService("agent.db"))

A search finds other forms of a word, typing errors and text without spaces, needs neither a model nor a network, and
returns no more than answers the query, as `PreloadMemoryTool` puts everything that it returns into the prompt. What is
stored for one user of one app is a scope of the memory, which no other user or app reads or changes.

This needs the extra `adk`. Sessions themselves are left to the session services of ADK.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from recollect import Batch, Hit, Memory, Record
from recollect.compat.opening import Place, opened
from recollect.compat.threads import completed
from recollect.errors import ClosedError, InvalidArgumentError, InvalidRecordError, MissingExtraError, RejectedError
from recollect.operations import MinConfidence, Recall, Remember, RememberAll
from recollect.policies import redact_json

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types
except ImportError as error:
    raise MissingExtraError("recollect.compat.adk", "google-adk", "adk") from error

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

__all__ = ["RecollectMemoryService"]

T = TypeVar("T")

_ACTOR = "google-adk"
#: What the ids of turns begin with.
_TURNS = "event-"
#: The kind of the records that say that a memory was deleted, and the name in the metadata of records of this adapter.
_DELETED, _OURS = "adk_deleted", "adk"
#: A hit that has no word of the query is an answer to a turn that has; it must have this part of the best confidence.
_LENT_PART = 0.5
#: A memory is no store of files: larger data in a part of an event is left out.
_MOST_DATA_BYTES = 2**16
_MOST_QUERY_BYTES = 2**15
_MOST_NAME_BYTES = 1000
#: Less than an id may have, since the scope is a part of it.
_MOST_ID_BYTES = 150
#: Names of `custom_metadata` that say how something is stored, or where a result comes from.
_TTL, _SESSION, _EVENT, _CONFIDENCE = "ttl", "session_id", "event_id", "confidence"


class RecollectMemoryService(BaseMemoryService):
    """A memory service for `google.adk.runners.Runner(memory_service=...)`.

    It can be used from several event loops and threads, and its store by several processes. Every call that writes is
    one commit, or none if there is nothing new.

    An answer that shares no word with the query is found if it follows what the query is about. Such hits are the ones
    that may be no answer, so they are returned only if their confidence is at least half of the best one.

    Attributes:
        memory: The memory, of all users and apps.
    """

    def __init__(
        self,
        memory: Place | None = None,
        *,
        uri: str | None = None,
        k: int = 5,
        min_confidence: MinConfidence = 0.05,
        agents_dir: str | None = None,
    ) -> None:
        """Open a memory service.

        Args:
            memory: The path or address of a memory, which `close` closes again, or a `Memory`, which stays open.
            uri: In its place, "recollect://" and a path or an address, as in a services.yaml:
                "recollect://agent.db", "recollect:///var/lib/agent.db", "recollect://unix:///run/recollect.sock".
            k: Maximum number of results of a search.
            min_confidence: Leave out results with a lower confidence, 0 to 1, or "auto" (see `Memory.recall`). Lower
                than "auto" by default, because in a large memory a right result has often less: one for a misspelt word
                about 0.2. Most questions that the memory cannot answer have no result nevertheless.
            agents_dir: Ignored. ADK passes it to every service of a services.yaml.

        Raises:
            InvalidArgumentError: Neither or both of `memory` and `uri` were passed, or an argument is invalid.
            RecollectError: The memory cannot be opened.
        """
        if (memory is None) == (uri is None):
            raise InvalidArgumentError("memory", memory, "or uri must be passed, and not both")
        Recall(question="any", k=k, min_confidence=min_confidence)  # checks them
        self._k, self._min_confidence = k, min_confidence
        self._opened = opened(_place(uri) if memory is None else memory)
        self.memory = self._opened.memory

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet. See `add_events_to_memory`."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events that have text and are not stored yet, as turns of their session.

        An event that is stored already is left as it is, or updated if its content has changed. One that was deleted or
        has expired stays away. What a policy of the memory rejects is not stored; the other events are.

        Args:
            app_name: The app, which is the agent of the records.
            user_id: The user.
            events: Events of the session, in any order: the timestamps are what counts.
            session_id: The session, which is the conversation of the records.
            custom_metadata: Returned with the events by a search. "ttl": the time after which they expire, as seconds,
                a timedelta, or a text such as "3600s".

        Raises:
            InvalidArgumentError: The app, the user or "ttl" is invalid.
            InvalidRecordError: An event exceeds a limit of the memory, or `custom_metadata` has other values than JSON.
            RuntimeError: The service is closed.
            StoreError: The store failed.

        Nothing is stored if this raises.

        Cost:
            In proportion to the number of events passed; a durable commit if any is new.
        """
        custom = dict(custom_metadata or {})
        ttl = _ttl(custom.pop(_TTL, None))
        turns = _turns(events, session_id, custom)
        if turns:
            await self._in_thread(lambda: self._add_turns(app_name, user_id, turns, ttl))

    def _add_turns(self, app_name: str, user_id: str, turns: dict[str, dict[str, Any]], ttl: Any) -> None:
        scope = self._scope(app_name, user_id)
        # What was stored once and is not there any more stays away. A batch has no history, so that is read before it;
        # a deletion that comes between has left a mark, which the batch sees.
        gone = {
            name
            for name, record in zip(turns, scope.get_all(turns), strict=True)
            if record is None and scope.history(name)
        }
        if not any(_differs(record, turns[name]) for name, record in _stored(scope, turns) if name not in gone):
            return
        with scope.batch(actor=_ACTOR) as batch:
            marks = dict(zip(turns, batch.get_all(map(_mark, turns)), strict=True))
            operations = [
                _remember(name, turns[name], ttl if record is None else None)
                for name, record in _stored(batch, turns)
                if name not in gone and marks[name] is None and _differs(record, turns[name])
            ]
            _store(batch, operations)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories that are no events, as records of the kind "knowledge".

        An entry with the id of a stored one takes its place. One without an id and with the same text and author as a
        stored one updates that. What a policy of the memory rejects is not stored; the other entries are.

        Args:
            app_name: The app.
            user_id: The user.
            memories: The entries. Those without text are left out.
            custom_metadata: For all entries; that of an entry precedes it. "ttl" as in `add_events_to_memory`.

        Raises:
            InvalidArgumentError: The app, the user or "ttl" is invalid.
            InvalidRecordError: An entry exceeds a limit of the memory, or has other values than JSON.
            RuntimeError: The service is closed.
            StoreError: The store failed.

        Nothing is stored if this raises.
        """
        operations = []
        for entry in memories:
            custom = {**(custom_metadata or {}), **entry.custom_metadata}
            ttl = _ttl(custom.pop(_TTL, None))
            fields = _fields_of(entry.content, entry.author, custom, kind="knowledge", time=_time(entry.timestamp))
            if fields is not None:
                fields["metadata"] |= {"id": entry.id, "timestamp": entry.timestamp}
                operations.append(_remember(entry.id and _record_id(entry.id), fields, ttl))
        if operations:

            def add() -> None:
                with self._scope(app_name, user_id).batch(actor=_ACTOR) as batch:
                    _store(batch, operations)

            await self._in_thread(add)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what answers a query, best first; nothing for a blank one.

        Each result has the id that `delete_memory` takes, and in `custom_metadata` the ids of its session and event and
        the confidence, the estimated probability that the memory can answer the query.

        Raises:
            InvalidArgumentError: The app or the user is invalid.
            RuntimeError: The service is closed.
            StoreError: The store failed.

        Cost:
            That of `Memory.recall`.
        """
        question = query.encode("utf-8", "replace")[:_MOST_QUERY_BYTES].decode("utf-8", "ignore")
        if not question.strip():
            return SearchMemoryResponse()
        hits = await self._in_thread(lambda: self._recall(app_name, user_id, question))
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])

    def _recall(self, app_name: str, user_id: str, question: str) -> list[Hit]:
        scope = self._scope(app_name, user_id)
        hits = scope.recall(question, k=self._k, min_confidence=self._min_confidence, concise=True)
        best = max((hit.confidence for hit in hits), default=0.0)
        return [hit for hit in hits if _matches(hit) or hit.confidence >= _LENT_PART * best]

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget a memory of this user and app; an unknown id is no error. It stays away if its session is added again.

        Its history remains in the log of the memory: `Memory.erase` removes the text from there, too.

        Raises:
            InvalidArgumentError: The app or the user is invalid.
            RuntimeError: The service is closed.
            StoreError: The store failed.
        """
        if memory_id:
            name = _record_id(memory_id)

            def forget() -> None:
                with self._scope(app_name, user_id).batch(actor=_ACTOR) as batch:
                    if batch.forget(name, missing="ignore") and name.startswith(_TURNS):
                        batch.remember("", id=_mark(name), kind=_DELETED, searchable=False, if_exists="update")

            await self._in_thread(forget)

    async def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        await asyncio.to_thread(self._opened.close)

    def _scope(self, app_name: str, user_id: str) -> Memory:
        return self.memory.scoped(user=user_id, agent=app_name)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """Return the result of a call of the memory.

        Raises:
            RuntimeError: The service is closed.
        """
        self._check_open()
        try:
            return await completed(call)
        except ClosedError:
            self._check_open()
            raise

    def _check_open(self) -> None:
        if self._opened.closed:
            raise RuntimeError("RecollectMemoryService is closed: create it again")


def _place(uri: str | None) -> str:
    """Return the path or the address in "recollect://PATH".

    Raises:
        InvalidArgumentError: It has another form.
    """
    scheme, separator, place = uri.partition("://") if isinstance(uri, str) else ("", "", "")
    if scheme != "recollect" or not separator or not place:
        raise InvalidArgumentError("uri", uri, 'must be "recollect://" and a path or an address')
    return place if "://" in place else unquote(place)


def _remember(name: str | None, fields: Mapping[str, Any], ttl: Any = None) -> Remember:
    others = {key: value for key, value in fields.items() if key != "content"}
    return Remember(content=fields["content"], id=name, if_exists="update", ttl=ttl, fields=others)


def _store(batch: Batch, operations: Sequence[Remember]) -> None:
    """Store records, except those that a policy of the memory rejects."""
    if not operations:
        return
    for failed in batch.execute(RememberAll(items=tuple(operations), on_error="report")).failed:
        if not isinstance(failed.reason, RejectedError):
            raise failed.reason


def _stored(calls: Memory | Batch, turns: Mapping[str, Any]) -> Iterator[tuple[str, Record | None]]:
    """Yield the id of each turn with its record."""
    return zip(turns, calls.get_all(turns), strict=True)


def _differs(record: Record | None, fields: Mapping[str, Any]) -> bool:
    """Return whether a turn is not stored, or with another content."""
    return record is None or record.metadata.get("content") != fields["metadata"]["content"]


def _mark(name: str) -> str:
    """Return the id of the record that says that a memory was deleted. It has nothing of its text, and stays."""
    return f"deleted-{_digest(name)}"


def _turns(events: Sequence[Event], session_id: str | None, custom: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the fields of the records of the events that say something, by id."""
    turns: dict[str, dict[str, Any]] = {}
    position = -1
    for event in sorted(events, key=lambda event: event.timestamp):
        if event.content is None or event.partial:  # a fragment, which the whole event repeats
            continue
        time = datetime.fromtimestamp(event.timestamp, UTC)
        fields = _fields_of(event.content, event.author, custom, kind="conversation", time=time)
        if fields is None:
            continue
        # Microseconds, so that events that are added later, in any order, get their place among the stored ones.
        position = max(int(event.timestamp * 1e6), position + 1)
        if session_id:
            fields |= {"conversation": _name(session_id), "position": position}
        fields["metadata"] |= {"session": session_id or None, "event": event.id or None}
        fields["role"] = "user" if event.author == "user" else "assistant"
        # Two sessions may have events with equal ids. An event gets its id when it is appended to a session.
        own = [event.id] if event.id else ["", event.author, event.timestamp, fields["content"]]
        turns[f"{_TURNS}{_digest(json.dumps([session_id or None, *own]))}"] = fields
    return turns


def _fields_of(
    content: types.Content, author: str | None, custom: Mapping[str, Any], **fields: Any
) -> dict[str, Any] | None:
    """Return the content and the fields of a record; None if the content has no text.

    Reasoning is not stored: it was not said, and ADK would put it into the prompt.
    """
    parts = [_without_data(part) for part in content.parts or () if not part.thought]
    text = _valid("\n".join(part.text for part in parts if part.text))
    if not text.strip():
        return None
    kept = types.Content(role=content.role, parts=parts).model_dump(mode="json", exclude_none=True)
    stored = json.loads(_valid(json.dumps(kept, ensure_ascii=False)))
    metadata = {_OURS: True, "content": _storable(stored), "custom": dict(custom)}
    return {"content": text, "speaker": author or None, "metadata": metadata, **fields}


def _valid(text: str) -> str:
    """Return a text without lone surrogates, which records and models cannot have."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _without_data(part: types.Part) -> types.Part:
    data = part.inline_data.data if part.inline_data else None
    return part.model_copy(update={"inline_data": None}) if data and len(data) > _MOST_DATA_BYTES else part


def _storable(value: dict[str, Any]) -> Any:
    """Return a JSON value as the metadata of a record can have it: as it is, or as JSON text."""
    try:
        Record(id="any", content="any", metadata=value)
    except InvalidRecordError:  # such as an integer of more than 64 bits
        return json.dumps(redact_json(value)[0])  # a policy that redacts could break the text
    return value


def _matches(hit: Hit) -> bool:
    """Return whether a hit itself has a word of the query, or its meaning, and not only a turn near it."""
    return hit.why.cosine is not None or any(word.own for word in hit.why.words)


def _entry(hit: Hit) -> MemoryEntry:
    """Return a hit as ADK returns memories."""
    record = hit.record
    metadata = dict(record.metadata) if record.metadata.get(_OURS) is True else {}
    content = metadata.get("content", {"parts": [{"text": record.text}]})
    custom = metadata.get("custom")
    source = {_SESSION: metadata.get("session"), _EVENT: metadata.get("event"), _CONFIDENCE: round(hit.confidence, 3)}
    return MemoryEntry(
        id=metadata.get("id") or record.id,
        content=types.Content.model_validate_json(content if isinstance(content, str) else json.dumps(content)),
        author=record.speaker,
        timestamp=metadata.get("timestamp") or (None if record.time is None else record.time.isoformat()),
        custom_metadata={
            **(custom if isinstance(custom, Mapping) else {}),
            **{name: value for name, value in source.items() if value is not None},
        },
    )


def _ttl(value: object) -> float | timedelta | None:
    """Return the time to live that `custom_metadata` states: seconds, a timedelta, or a text such as "3600s".

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if value is None or isinstance(value, timedelta):
        return value
    try:
        return float(value.removesuffix("s") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidArgumentError("ttl", value, 'must be seconds, a timedelta, or a text such as "3600s"') from None


def _time(timestamp: str | None) -> str | None:
    """Return the timestamp of an entry if it is ISO 8601. It may be any text, since ADK only shows it."""
    try:
        datetime.fromisoformat(timestamp or "")
    except ValueError:
        return None
    return timestamp


def _record_id(memory_id: str) -> str:
    """Return the id of the record of a memory: its id, or a digest of what cannot be the id of a record."""
    is_id = memory_id.isprintable() and len(memory_id.encode()) <= _MOST_ID_BYTES
    return memory_id if is_id and not memory_id.startswith(("@", "id-")) else f"id-{_digest(memory_id)}"


def _name(session_id: str) -> str:
    """Return the conversation of a session: its id, or a digest of what cannot be a name."""
    is_name = session_id.isprintable() and len(session_id.encode()) <= _MOST_NAME_BYTES
    return session_id if is_name else f"session-{_digest(session_id)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
