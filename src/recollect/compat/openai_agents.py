"""Sessions of the OpenAI Agents SDK in a memory: the history of a conversation, which `recall` also finds later.

    from agents import Agent, Runner
    from recollect.compat.openai_agents import RecollectSession

    session = RecollectSession("chat-1", "agent.db", user="ana")
    await Runner.run(Agent(name="assistant"), "I am allergic to peanuts.", session=session)

A session stores each item losslessly in the metadata of a record. A message is a turn of the conversation, so that
another conversation can recall it: `memory.context(question, user="ana")`. Items
without text, such as calls of functions, their outputs and reasoning, are stored with `searchable=False`.

This needs the extra `openai-agents`. Everything else about a memory is left to `recollect.Memory`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from recollect import Batch, Record
from recollect import filters as f
from recollect.compat.opening import Place, opened
from recollect.compat.stored_json import loaded, stored
from recollect.compat.storing import store_all
from recollect.compat.threads import completed
from recollect.errors import ClosedError, InvalidArgumentError, MissingExtraError
from recollect.operations import GetPolicies, Remember

try:
    from agents import SessionSettings
except ImportError as error:
    raise MissingExtraError("recollect.compat.openai_agents", "openai-agents", "openai-agents") from error

if TYPE_CHECKING:
    from agents import TResponseInputItem

__all__ = ["RecollectSession"]

T = TypeVar("T")

#: The kinds of the records of a session: messages are turns, as everywhere in a memory, and other items are none.
_TURN, _OTHER = "conversation", "session_item"
#: The source of the records of sessions, which others of the same conversation do not have.
_SOURCE = "openai-agents"
_ACTOR = "openai-agents"
#: The key of the metadata that has an item as JSON text.
_ITEM = "item"
#: What the name of a conversation begins with if the id of the session cannot be one.
_DIGEST = "sha256:"
_MAX_NAME_BYTES = 1000
#: The SDK and Recollect have different names for it.
_ROLES = {"developer": "system"}
#: The owner that speaks in a role.
_SPEAKERS = {"user": "user", "assistant": "agent"}
#: The record of an item without text.
_UNSEARCHABLE = {"content": "", "searchable": False}


class RecollectSession:
    """The history of one conversation, for `Runner.run(..., session=session)`.

    It can be used from several event loops, threads and processes at the same time. `add_items` stores all of its items
    or none, and items that are added at the same time stay together, in the order of their commits.

    Attributes:
        session_id: The id of the session.
        session_settings: The settings of the session, such as the `limit` of `get_items`.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        db_path: Place = ":memory:",
        session_settings: SessionSettings | dict[str, Any] | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
    ) -> None:
        """Open a session.

        Args:
            session_id: The id of the conversation, any text. Sessions of different users or agents are different, even
                if their ids are equal.
            db_path: The path or address of a memory, which `close` closes again, or a `Memory`, which stays open.
            session_settings: The settings, also as a dictionary.
            user: The user to whom the items belong; default: that of a scoped memory, or else none.
            agent: The agent to whom the items belong; default: that of a scoped memory, or else none.

        Raises:
            InvalidArgumentError: `user` or `agent` is not a non-empty text, or `session_id` is not a text.
            ScopeError: The memory is scoped to another user or agent.
            TypeError: There are no such settings.
            RecollectError: The memory cannot be opened.
        """
        if not isinstance(session_id, str):
            raise InvalidArgumentError("session_id", session_id, "must be text")
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self._opened = opened(db_path)
        try:
            owners = self._owners(user=user, agent=agent)
        except BaseException:
            self._opened.close()
            raise
        conversation = _conversation(session_id)
        self._fields = {"kind": _OTHER, "source": _SOURCE, "conversation": conversation} | owners
        self._where = f.all_of(
            f.source(_SOURCE),
            f.conversation(conversation),
            # Without an owner, a session may not read the items of those who have one.
            *(f.user(owners[name]) if name == "user" else f.agent(owners[name]) for name in owners),
            *(~f.has(name) for name in ("user", "agent") if name not in owners),
        )
        # A digest, since ids are shorter than names and are normalised, which names of conversations are not.
        named = json.dumps([owners.get("user"), owners.get("agent"), session_id])
        self._ids = f"session-{hashlib.sha256(named.encode()).hexdigest()[:40]}"

    def _owners(self, **named: str | None) -> dict[str, str]:
        """Return the user and the agent of the session.

        Raises:
            InvalidArgumentError: One is not a non-empty text.
            ScopeError: The memory is scoped to another one.
        """
        memory = self._opened.memory
        if any(value is not None for value in named.values()):
            memory = memory.scoped(**named)  # only to check the names
        return {name: value for name, value in memory.scope.items() if name in named}

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the latest items, oldest first.

        Args:
            limit: Maximum number of items; default: the limit of the settings, or else all. Below 0: all.

        Raises:
            RuntimeError: The session is closed.
            StoreError: The store failed.

        Cost:
            In proportion to the number of items returned, and without a limit to that of the session.
        """
        if limit is None:
            limit = _settings(self.session_settings).limit
        if limit == 0:
            self._check_open()
            return []
        records = await asyncio.to_thread(self._checked, lambda: self._latest(limit))
        return [_item(record) for record in records]

    def _latest(self, limit: int | None) -> list[Record]:
        memory = self._opened.memory
        if limit is None or limit < 0:
            return list(memory.find(self._where, order="position"))
        return list(reversed(memory.find(self._where, limit=limit, order="last")))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all of them or none, in one commit.

        If the caller is cancelled while they are written, the write is completed first.

        Args:
            items: The items: values with a JSON form.

        Raises:
            RuntimeError: The session is closed.
            TypeError: An item has no JSON form.
            InvalidRecordError: An item exceeds a limit of the memory (`Limits`).
            RejectedError: A policy of the memory refuses a secret in an item.
            QuotaError: The items do not fit in the quota.
            StoreError: The store failed.
        """
        self._check_open()
        # In the caller's thread, so that items that change afterwards are stored as they were.
        texts = [json.dumps(item) for item in items]
        if texts:
            await self._completed("add_items", lambda batch: self._append(batch, texts))

    def _append(self, batch: Batch, texts: list[str]) -> None:
        policies = batch.execute(GetPolicies())
        values = [_fields_of(json.loads(text), self._fields, policies) for text in texts]
        # Inside the batch, which has the write lock of the store: no other process appends at the same position.
        last = batch.find(self._where, limit=1, order="last")
        first = _position(last[0]) + 1 if last else 0

        def operation(index: int, values: Mapping[str, Any]) -> Remember:
            fields = {**values, "position": first + index}
            content = fields.pop("content")
            return Remember(content=content, id=f"{self._ids}-{first + index}", expect="absent", fields=fields)

        store_all(batch, [operation(index, each) for index, each in enumerate(values)])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; None if there is none.

        If the caller is cancelled while it is removed, the write is completed first.

        Raises:
            RuntimeError: The session is closed.
            StoreError: The store failed.
        """
        return await self._completed("pop_item", self._pop)

    def _pop(self, batch: Batch) -> TResponseInputItem | None:
        last = batch.find(self._where, limit=1, order="last")
        if not last:
            return None
        batch.forget(last[0].id)
        return _item(last[0])

    async def clear_session(self) -> None:
        """Remove all items of the session, in one commit. Their history remains in the log of the memory.

        If the caller is cancelled while they are removed, the write is completed first.

        Raises:
            RuntimeError: The session is closed.
            StoreError: The store failed.
        """
        await self._completed("clear_session", lambda batch: batch.forget_where(self._where, parts=("records",)))

    def close(self) -> None:
        """Close the session, and the memory if it was opened here and no other session uses it.

        A write that has started is completed first. Closing twice does nothing.
        """
        self._opened.close()

    async def _completed(self, reason: str, change: Callable[[Batch], T]) -> T:
        """Return the result of a change that is one commit; if the caller is cancelled, await its end first."""

        def committed() -> T:
            with self._opened.memory.batch(actor=_ACTOR, reason=reason) as batch:
                return change(batch)

        return await completed(self._checked, committed)

    def _checked(self, call: Callable[[], T]) -> T:
        """Return the result of a call of the memory.

        Raises:
            RuntimeError: The session is closed.
        """
        self._check_open()
        try:
            return call()
        except ClosedError:
            self._check_open()
            raise

    def _check_open(self) -> None:
        if self._opened.closed:
            raise RuntimeError(f"{type(self).__name__} is closed, session {self.session_id!r}: create it again")


def _settings(settings: SessionSettings | dict[str, Any] | None) -> SessionSettings:
    return settings if isinstance(settings, SessionSettings) else SessionSettings().resolve(settings)


def _conversation(session_id: str) -> str:
    """Return the name of the conversation of a session: its id, or a digest of what cannot be a name."""
    encoded = session_id.encode("utf-8", "surrogatepass")
    is_name = session_id.isprintable() and 0 < len(encoded) <= _MAX_NAME_BYTES
    if is_name and not session_id.startswith(_DIGEST):
        return session_id
    return f"{_DIGEST}{hashlib.sha256(encoded).hexdigest()}"


def _fields_of(item: Any, fields: Mapping[str, Any], policies: Any) -> dict[str, Any]:
    """Return the content and the fields of the record of an item."""
    own: dict[str, Any] = {**fields, "metadata": {_ITEM: stored(item, policies)}}
    role = item.get("role") if isinstance(item, Mapping) else None
    if not isinstance(role, str) or not role:
        return own | _UNSEARCHABLE
    own["role"] = _ROLES.get(role, role)
    speaker = fields.get(_SPEAKERS.get(role, ""))
    if speaker is not None:
        own["speaker"] = speaker
    # JSON has lone surrogates, and the content of a record has not.
    text = "\n".join(_texts(item)).encode("utf-8", "replace").decode("utf-8")
    return own | ({"content": text, "kind": _TURN} if text.strip() else _UNSEARCHABLE)


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts that a message says: its content, or the texts and refusals of its parts."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    for part in parts:
        if isinstance(part, Mapping):
            values = (part.get("text"), part.get("refusal"))
            yield from (value for value in values if isinstance(value, str))


def _item(record: Record) -> Any:
    return loaded(record.metadata[_ITEM])


def _position(record: Record) -> int:
    assert record.position is not None  # every record of a session has one
    return record.position
