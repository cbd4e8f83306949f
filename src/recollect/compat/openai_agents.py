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
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from recollect import Batch
from recollect.compat.opening import Place, opened
from recollect.compat.session_items import NAME, session_log
from recollect.compat.threads import completed
from recollect.errors import ClosedError, MissingExtraError

try:
    from agents import SessionSettings
except ImportError as error:
    raise MissingExtraError("recollect.compat.openai_agents", "openai-agents", "openai-agents") from error

if TYPE_CHECKING:
    from agents import TResponseInputItem

__all__ = ["RecollectSession"]

T = TypeVar("T")


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
        self._opened = opened(db_path)
        try:
            self._log = session_log(self._opened.memory, session_id, user=user, agent=agent)
            self.session_settings = _settings(session_settings)
        except BaseException:
            self._opened.close()
            raise
        self.session_id = session_id

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
        return await asyncio.to_thread(self._checked, lambda: self._log.items(limit))

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
            await self._completed("add_items", lambda batch: self._log.append(batch, map(json.loads, texts)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it; None if there is none.

        If the caller is cancelled while it is removed, the write is completed first.

        Raises:
            RuntimeError: The session is closed.
            StoreError: The store failed.
        """
        return await self._completed("pop_item", self._log.pop)

    async def clear_session(self) -> None:
        """Remove all items of the session, in one commit. Their history remains in the log of the memory.

        If the caller is cancelled while they are removed, the write is completed first.

        Raises:
            RuntimeError: The session is closed.
            StoreError: The store failed.
        """
        await self._completed("clear_session", self._log.clear)

    def close(self) -> None:
        """Close the session, and the memory if it was opened here and no other session uses it.

        A write that has started is completed first. Closing twice does nothing.
        """
        self._opened.close()

    async def _completed(self, reason: str, change: Callable[[Batch], T]) -> T:
        """Return the result of a change that is one commit; if the caller is cancelled, await its end first."""

        def committed() -> T:
            with self._opened.memory.batch(actor=NAME, reason=reason) as batch:
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
