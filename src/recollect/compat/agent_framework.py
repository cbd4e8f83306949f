"""A memory for agents of Microsoft's Agent Framework: a provider of context that remembers what was said.

    from agent_framework import Agent
    from recollect.compat.agent_framework import RecollectContextProvider

    provider = RecollectContextProvider("agent.db", user="ana")
    agent = Agent(client=CLIENT, context_providers=[provider])

Before a run, the instructions get what the memory knows about the question; after it, what was said becomes turns. No
model is called, and nothing is in the state of a session.
"""

from __future__ import annotations

from typing import Any

import recollect
from recollect.compat.opening import Closing, Place, opened
from recollect.compat.searching import question_of
from recollect.compat.threads import completed
from recollect.compat.turns import append_turns
from recollect.errors import MissingExtraError

try:
    from agent_framework import AgentSession, ContextProvider, SessionContext
except ImportError as error:
    raise MissingExtraError("recollect.compat.agent_framework", "agent-framework", "agent-framework-core") from error

__all__ = ["RecollectContextProvider"]

_NAME = "agent-framework"


class RecollectContextProvider(Closing, ContextProvider):
    """Gives an agent what is known about the question, and remembers what was said.

    Args:
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server.
        source_id: The name of the provider in sessions.
        user: The user of the turns, and of whom the context tells; None: that of the scope, or none.
        agent: The agent; None as for `user`.
        max_tokens: Maximum size of the context, in tokens as the memory counts them.
        min_confidence: What the memory is less sure of is left out; 0 to 1, or "auto".
        remembers: Whether what was said is stored after each run.

    Raises:
        RecollectError: The memory cannot be opened.
    """

    def __init__(
        self,
        memory: Place = ":memory:",
        source_id: str = "recollect",
        *,
        user: str | None = None,
        agent: str | None = None,
        max_tokens: int = 1000,
        min_confidence: float | str = 0.0,
        remembers: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._opened = opened(memory)
        self._stated: dict[str, Any] = {"user": user, "agent": agent}
        self._context: dict[str, Any] = {"max_tokens": max_tokens, "min_confidence": min_confidence, "concise": True}
        self._remembers = remembers

    @property
    def memory(self) -> recollect.Memory:
        """The memory with all its calls: `history`, `context`, `erase` and others."""
        return self._opened.memory

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add what the memory knows about the messages of the user to the instructions.

        Raises:
            StoreError: The store failed.
        """
        question = "\n".join(_texts(context.input_messages, "user"))
        if question:
            stated = {**self._context, **self._stated}
            found = await completed(lambda: self._opened.memory.context(question_of(question), **stated))
            if found.items:
                context.extend_instructions(self.source_id, str(found))

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store the messages of the user and the answer, in one commit, as turns of the session.

        Raises:
            RejectedError: A policy of the memory refuses a secret.
            RecollectError: The memory refuses a message, or failed; nothing was stored.
        """
        answered = context.response.messages if context.response is not None else []
        said = [*context.input_messages, *answered]
        turns = [
            {"role": str(message.role), "content": text.strip()}
            for message in said
            if str(message.role) in ("user", "assistant") and (text := message.text or "").strip()
        ]
        if self._remembers and turns:
            await completed(self._add, turns, session.session_id)

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def _add(self, turns: list[dict[str, Any]], conversation: str) -> None:
        with self._opened.memory.batch(actor=_NAME, reason="after_run") as batch:
            append_turns(batch, turns, conversation, **self._stated)


def _texts(messages: Any, role: str) -> list[str]:
    return [text for message in messages if str(message.role) == role and (text := (message.text or "").strip())]
