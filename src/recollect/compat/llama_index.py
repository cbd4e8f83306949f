"""A memory in LlamaIndex: a block of long-term memory for agents, and a retriever over all of a memory.

    from llama_index.core.memory import Memory
    from recollect.compat.llama_index import RecollectMemoryBlock

    block = RecollectMemoryBlock(memory="agent.db", user="ana")
    memory = Memory.from_defaults(session_id="chat-1", token_limit=30_000, memory_blocks=[block])

The messages that leave the short-term memory become turns, and each question gets a context from all that the memory
knows of the user: conversations, facts, knowledge and documents.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from recollect.compat.opening import Opened, Place, opened
from recollect.compat.searching import found_metadata, question_of
from recollect.compat.threads import completed
from recollect.compat.turns import add_turns, append_turns
from recollect.errors import MissingExtraError
from recollect.filters import Filter

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
    from llama_index.core.llms import ChatMessage, MessageRole
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise MissingExtraError("recollect.compat.llama_index", "llama-index", "llama-index-core") from error

__all__ = ["RecollectMemoryBlock", "RecollectNodeRetriever"]

_NAME = "llama-index"
#: Other names for a role of Recollect.
_ROLES = {"chatbot": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
#: What LlamaIndex puts into the additional arguments of a message.
_SESSION = "session_id"
#: Contexts whose questions are known, so that they can be made again with fewer tokens.
_KNOWN_CONTEXTS = 64
#: A context of fewer tokens says nothing.
_FEWEST_TOKENS = 40


class RecollectMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory of an agent: it stores the messages that it is given, and answers with a context.

    No model is called. If the prompt becomes too long, the context is made again with fewer tokens.

    Attributes:
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server. A path is opened here, and closed by `close`.
        user: The user to whom the turns belong, and of whom the context tells; None: that of the scope, or none.
        agent: The agent; None as for `user`.
        max_tokens: Maximum size of the context, in tokens as the memory counts them.
        window: The number of latest messages that are the question.
        min_confidence: What the memory is less sure of is left out of the context; 0 to 1, or "auto".

    Raises:
        RecollectError: The memory cannot be opened.
    """

    name: str = "recollect"
    priority: int = 1
    memory: Any = Field(repr=False, exclude=True)  # an address may have a password
    user: str | None = None
    agent: str | None = None
    max_tokens: int = 1000
    window: int = Field(default=1, ge=1)
    min_confidence: float | str = 0.0

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    _opened: Opened = PrivateAttr()
    _asked: OrderedDict[str, tuple[str, int]] = PrivateAttr(default_factory=OrderedDict)

    def model_post_init(self, context: Any) -> None:
        """Open the memory."""
        super().model_post_init(context)
        self._opened = opened(self.memory)

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    async def _aget(self, messages: Sequence[ChatMessage] | None = None, **options: Any) -> str:
        """Return a context for the latest messages; "" if there is none.

        Args:
            messages: The messages; those of the system are no question.
            **options: Of LlamaIndex, such as `session_id`: the context tells of all sessions.
        """
        said = [text for message in messages or () if _role(message) != "system" and (text := _text(message))]
        question = "\n".join(said[-self.window :])
        return await completed(self._context, question, self.max_tokens) if question else ""

    async def _aput(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages in one commit, after those that their session has. Those of the system are left out.

        LlamaIndex passes each message once. Messages without a session are stored if they are not stored yet.

        Raises:
            RejectedError: A policy of the memory refuses a secret.
            RecollectError: The memory refuses a message, or failed; nothing was stored.
        """
        said = [message for message in messages if _role(message) != "system" and _text(message)]
        if said:
            await completed(self._add, said)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the context with fewer tokens; None if too few are left for one."""
        question, tokens = self._asked.get(content, ("", 0))
        size = tokens - tokens_to_truncate
        if size < _FEWEST_TOKENS:
            return None
        return await completed(self._context, question, size) or None

    def _context(self, question: str, max_tokens: int) -> str:
        stated: dict[str, Any] = {"user": self.user, "agent": self.agent, "min_confidence": self.min_confidence}
        context = self._opened.memory.context(question_of(question), max_tokens, concise=True, **stated)
        if not context.items:
            return ""
        text = str(context)
        self._asked[text] = (question, context.tokens)
        while len(self._asked) > _KNOWN_CONTEXTS:
            self._asked.popitem(last=False)
        return text

    def _add(self, messages: Sequence[ChatMessage]) -> None:
        with self._opened.memory.batch(actor=_NAME, reason="put") as batch:
            for conversation in dict.fromkeys(message.additional_kwargs.get(_SESSION) for message in messages):
                own = [each for each in messages if each.additional_kwargs.get(_SESSION) == conversation]
                turns = [{"role": _role(message), "content": _text(message)} for message in own]
                if conversation is None:
                    add_turns(batch, turns, user=self.user, agent=self.agent)
                else:
                    append_turns(batch, turns, conversation, user=self.user, agent=self.agent)


class RecollectNodeRetriever(BaseRetriever):
    """Retrieves records of a memory as nodes. It returns what answers the question, so it may be nothing.

    The score of a node is the confidence, 0 to 1. Its metadata is that of its record, with its fields, the score and
    `why`: the words and signals of the score.

    Args:
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server. A path is opened here, and closed by `close`.
        similarity_top_k: Maximum number of nodes.
        user: Only records of this user, and of none.
        agent: Only records of this agent, and of none.
        where: A filter (docs/filters.md), also as text.
        min_confidence: Nodes with a lower confidence are left out; 0 to 1, or "auto".
        **options: Arguments of LlamaIndex's `BaseRetriever`.

    Raises:
        RecollectError: The memory cannot be opened.
    """

    def __init__(
        self,
        memory: Place,
        similarity_top_k: int = 4,
        *,
        user: str | None = None,
        agent: str | None = None,
        where: Filter | str | None = None,
        min_confidence: float | str = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._opened = opened(memory)
        self._count = similarity_top_k
        self._stated: dict[str, Any] = {"user": user, "agent": agent, "where": where, "min_confidence": min_confidence}

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question = query_bundle.query_str
        if not question.strip():
            return []
        hits = self._opened.memory.recall(question_of(question), k=self._count, **self._stated)
        return [
            NodeWithScore(
                node=TextNode(id_=hit.record.id, text=hit.record.text, metadata=found_metadata(hit)),
                score=hit.confidence,
            )
            for hit in hits
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await completed(self._retrieve, query_bundle)


def _role(message: ChatMessage) -> str:
    role = message.role.value if isinstance(message.role, MessageRole) else str(message.role)
    return _ROLES.get(role, role)


def _text(message: ChatMessage) -> str:
    return (message.content or "").strip()
