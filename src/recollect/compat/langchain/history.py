"""The messages of a chat, for `RunnableWithMessageHistory` and whatever else takes a `BaseChatMessageHistory`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from recollect import Batch
from recollect.compat.item_log import ItemLog, SpokenText
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.threads import completed

T = TypeVar("T")

_NAME = "langchain"
_ROLES = {"human": "user", "HumanMessageChunk": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


class RecollectChatMessageHistory(Closing, BaseChatMessageHistory):
    """The history of one conversation. Messages come back as they were added, whatever their type.

    What was said is found by `recall` and in contexts, in other conversations of the same user, too. It can be used
    from several threads, event loops and processes at the same time.

    Args:
        session_id: The id of the conversation, any text. Those of different users or agents are different, even if
            their ids are equal.
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server.
        user: The user to whom the messages belong; default: that of a scoped memory, or else none.
        agent: The agent to whom they belong; default as for `user`.
        limit: Maximum number of messages that `messages` returns, the latest; default: all.

    Raises:
        InvalidArgumentError: `user` or `agent` is not a non-empty text, or `session_id` is not a text.
        ScopeError: The memory is scoped to another user or agent.
        RecollectError: The memory cannot be opened.
    """

    def __init__(
        self,
        session_id: str,
        memory: Place = ":memory:",
        *,
        user: str | None = None,
        agent: str | None = None,
        limit: int | None = None,
    ) -> None:
        self.session_id = session_id
        self.limit = limit
        self._opened = opened(memory)
        try:
            self._log = ItemLog(
                self._opened.memory, session_id, source=_NAME, ids=_NAME, said=_said, user=user, agent=agent
            )
        except BaseException:
            self._opened.close()
            raise

    @property
    def messages(self) -> list[BaseMessage]:
        """The latest messages, oldest first. Cost: in proportion to their number."""
        return _messages(self._log.items(self.limit))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, all of them or none, in one commit.

        Raises:
            TypeError: A message has no JSON form.
            InvalidRecordError: A message exceeds a limit of the memory (`Limits`).
            RejectedError: A policy of the memory refuses a secret in a message.
            QuotaError: The messages do not fit in the quota.
            StoreError: The store failed.
        """
        items = [message_to_dict(message) for message in messages]
        if items:
            self._change("add_messages", lambda batch: self._log.append(batch, items))

    def clear(self) -> None:
        """Remove all messages, in one commit. Their history remains in the log of the memory."""
        self._change("clear", self._log.clear)

    async def aget_messages(self) -> list[BaseMessage]:
        """Return what `messages` is."""
        return _messages(await asyncio.to_thread(self._log.items, self.limit))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages as `add_messages` does. If this is cancelled, a write that began is completed."""
        await completed(self.add_messages, list(messages))

    async def aclear(self) -> None:
        """Remove all messages as `clear` does. If this is cancelled, a write that began is completed."""
        await completed(self.clear)

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def _change(self, reason: str, change: Callable[[Batch], T]) -> T:
        with self._opened.memory.batch(actor=_NAME, reason=reason) as batch:
            return change(batch)


def _messages(items: list[Any]) -> list[BaseMessage]:
    messages: list[BaseMessage] = messages_from_dict(items)
    return messages


def _said(item: Any) -> SpokenText | None:
    """Return what a message says: the texts of its content. A call of a tool says nothing."""
    content = item["data"].get("content")
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    kind = item["data"].get("role") or item["type"]
    return SpokenText(_ROLES.get(kind, kind), "\n".join(text for text in texts if isinstance(text, str)))
