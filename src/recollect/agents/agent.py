"""`MemoryAwareAgent`: any chat model, with memory. It shows the model what is known, and records what both sides say.

The message of the user is durable before the model is called, so a model that fails loses nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from typing import Any

from recollect import filters as f
from recollect.agents.echoes import without_echoes
from recollect.agents.learned import LearnReport
from recollect.agents.learning import Learner, LearningBeside
from recollect.agents.manager import Manager, Recorded
from recollect.arguments.checks import check_count
from recollect.errors import InvalidArgumentError
from recollect.memory import Memory
from recollect.memory.context.validity import still_valid
from recollect.records.factories import OTHER_BRANCH
from recollect.records.record import Record

#: A message of a chat: {"role": ..., "content": ...}.
Message = dict[str, str]
#: What a chat model returns: a text, or its parts one after the other; awaited or not.
Reply = str | Iterable[str] | AsyncIterator[str] | Awaitable[Any]
_INTRODUCTION = "What is remembered follows."


class MemoryAwareAgent:
    """A chat model with memory.

        agent = MemoryAwareAgent(chat, memory, user="ana", conversation="today")
        print(agent.ask("Which seat should I book?"))

    Args:
        chat: A function from a list of messages ({"role", "content"}, the last one of the user) to the reply: a text,
            an iterator over parts of it, or a coroutine or async iterator of these.
        memory: The memory. Facts that only repeat what it answered are not stored again (`without_echoes`).
        conversation: The name of the conversation.
        user: The user; the agent reads and writes only what belongs to this user.
        agent: The name of the agent, stored with the records.
        instructions: The system prompt.
        max_tokens: Size of the context that is put into the prompt.
        turns: How many of the newest turns are sent with each question.
        learn: A model, a function from a prompt to a reply, or "provider/model" text, which states facts out of the
            conversation (`Learner`): every `learn_every` turns of the user, beside the conversation, and at the end of
            a `with` block. None: nothing is learned.
        learn_every: The number of turns of the user after which what is new is read.
        settings: Settings of the `Manager` that records: extract, extractor, contradictions, consolidate_above, keep,
            summariser, max_count, strict, rate.

    Raises:
        InvalidArgumentError: An argument is invalid.
    """

    def __init__(
        self,
        chat: Callable[[list[Message]], Reply],
        memory: Memory,
        *,
        conversation: str,
        user: str | None = None,
        agent: str | None = None,
        instructions: str = "",
        max_tokens: int = 1000,
        turns: int = 10,
        learn: Any = None,
        learn_every: int = 10,
        **settings: Any,
    ) -> None:
        if not isinstance(memory, Memory):
            raise InvalidArgumentError("memory", memory, "must be a memory, as recollect.open returns it")
        if not callable(chat):
            raise InvalidArgumentError("chat", chat, "must be a function from messages to a reply")
        if not isinstance(conversation, str) or not conversation:
            raise InvalidArgumentError("conversation", conversation, "must be text that is not empty")
        for name, value in (("max_tokens", max_tokens), ("turns", turns)):
            check_count(name, value)
        check_count("learn_every", learn_every, least=1)
        known = {name for name in Manager.__dataclass_fields__ if name[0] != "_" and name != "memory"}
        unknown = settings.keys() - known
        if unknown:
            raise InvalidArgumentError("settings", sorted(unknown)[0], "is no setting of a Manager")
        guarded = without_echoes(memory)
        self.memory = guarded if user is None else guarded.scoped(user=user)
        self.manager = Manager(memory=self.memory, **settings)
        self._chat = chat
        self._conversation = conversation
        self._fields = {} if agent is None else {"agent": agent}
        self._instructions = instructions
        self._max_tokens = max_tokens
        self._turns = turns
        self._learning: LearningBeside | None = None
        if learn is not None:
            # Not the guarded memory: what the model repeats of a context is compared with what is known.
            learner = Learner(memory if user is None else memory.scoped(user=user), learn)
            self._learning = LearningBeside(learner, conversation, learn_every)

    def learn(self) -> LearnReport:
        """Let the model read the turns that it has not read yet, and return what became of the facts that it states.

        Raises:
            InvalidArgumentError: The agent was created without `learn`.
            StoreError: The store failed.
        """
        if self._learning is None:
            raise InvalidArgumentError(
                "learn", None, 'must be passed to MemoryAwareAgent: a model, a function or "provider/model"'
            )
        return self._learning.finish()

    def __enter__(self) -> MemoryAwareAgent:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        """Learn from the turns that were not read yet, if the agent learns and the block did not fail."""
        if self._learning is None:
            return
        if kind is None:
            self._learning.finish()
        else:
            self._learning.wait()

    def ask(self, text: str) -> str:
        """Send a message of the user to the model with what is remembered, record both, and return the reply.

        Raises:
            InvalidArgumentError: The message is empty, or the model returns a coroutine: use `ask_async`.
            Exception: What the model raises; the message of the user is recorded.
        """
        return "".join(self.stream(text))

    def stream(self, text: str) -> Generator[str, None, None]:
        """As `ask`, yielding the parts of the reply as they come. It is recorded when the last part was taken.

        A reply that is cut short, by an error or because the caller stops, is recorded as far as it came, with
        `incomplete` in its metadata.
        """
        reply = self._chat(self._prompt(text))
        if inspect.isawaitable(reply) or isinstance(reply, AsyncIterator):
            if inspect.iscoroutine(reply):
                reply.close()
            raise InvalidArgumentError("chat", reply, "is asynchronous: use ask_async or stream_async")
        parts: list[str] = []
        complete = False
        try:
            for part in _parts_of(reply):
                parts.append(_checked(part))
                yield part
            complete = True
        finally:
            self._record_reply(parts, complete=complete)

    async def ask_async(self, text: str) -> str:
        """As `ask`, for a model that returns a coroutine or an async iterator; one that does not is called, too."""
        return "".join([part async for part in self.stream_async(text)])

    async def stream_async(self, text: str) -> AsyncIterator[str]:
        """As `stream`, for a model that returns a coroutine or an async iterator."""
        reply: Any = self._chat(self._prompt(text))
        if inspect.isawaitable(reply):
            reply = await reply
        parts: list[str] = []
        complete = False
        try:
            if isinstance(reply, AsyncIterator):
                async for part in reply:
                    parts.append(_checked(part))
                    yield part
            else:
                for part in _parts_of(reply):
                    parts.append(_checked(part))
                    yield part
            complete = True
        finally:
            self._record_reply(parts, complete=complete)

    # Parts

    def _prompt(self, text: str) -> list[Message]:
        """Record the message of the user, and return the messages for the model."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgumentError("text", text, "must be text that is not empty")
        sent = self._newest_turns()
        # What is sent anyway is no part of the context; earlier turns of this conversation can be.
        elsewhere = ~f.id(*(turn.id for turn in sent)) if sent else None
        known = self.memory.context(text, max_tokens=self._max_tokens, where=elsewhere)
        self._record("user", text)
        system = "\n\n".join(filter(None, (self._instructions, f"{_INTRODUCTION}\n\n{known}" if known else "")))
        return [
            *([{"role": "system", "content": system}] if system else []),
            *_messages(still_valid(self.memory, sent), sent),
            {"role": "user", "content": text},
        ]

    @property
    def _here(self) -> f.Filter:
        return f.kind("conversation") & f.conversation(self._conversation)

    def _newest_turns(self) -> list[Record]:
        """Return the newest turns of the conversation, oldest first."""
        newest = self.memory.find(self._here & ~f.tag(OTHER_BRANCH), order="newest", limit=self._turns)
        return sorted(newest, key=lambda each: each.position or 0)

    def _record(self, role: str, text: str, **metadata: Any) -> Recorded:
        message: dict[str, Any] = {"role": role, "content": text}
        recorded = self.manager.record_message(message, self._conversation, **self._fields)
        if metadata:
            self.memory.update(recorded.record.id, metadata={**recorded.record.metadata, **metadata})
        return recorded

    def _record_reply(self, parts: list[str], *, complete: bool) -> None:
        text = "".join(parts)
        if text.strip():
            self._record("assistant", text, **({} if complete else {"incomplete": True}))
        if self._learning is not None:
            self._learning.said()


def _messages(valid: list[Record], turns: list[Record]) -> list[Message]:
    """Return the turns that are valid as messages, without the answers to those that are not."""
    ids = {turn.id for turn in valid}
    out: list[Message] = []
    answered = bool(turns) and not turns[0].position  # whether what is answered is among them, if there is such a turn
    for turn in turns:
        is_user = (turn.role or "user") == "user"
        answered = turn.id in ids if is_user else answered
        if turn.id in ids and answered:
            out.append({"role": turn.role or "user", "content": str(turn.content)})
    return out


def _parts_of(reply: Any) -> Iterable[Any]:
    """Return the parts of a reply.

    Raises:
        InvalidArgumentError: The reply is not text or an iterator over texts.
    """
    if isinstance(reply, str):
        return [reply]
    if isinstance(reply, (Mapping, bytes)) or not isinstance(reply, Iterable):
        raise InvalidArgumentError("chat", reply, "must return text, or an iterator over texts")
    return reply


def _checked(part: object) -> str:
    if not isinstance(part, str):
        raise InvalidArgumentError("chat", part, "must return text, or an iterator over texts")
    return part
