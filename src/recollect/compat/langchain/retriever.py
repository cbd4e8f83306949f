"""A retriever over a whole memory: conversations, facts, knowledge and documents, each with why it was found."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from recollect import Hit
from recollect.compat.opening import Opened, opened
from recollect.compat.searching import found_metadata, question_of
from recollect.compat.threads import completed
from recollect.filters import Filter


class RecollectRetriever(BaseRetriever):
    """Retrieves records of a memory. It returns what answers the question, so it may be fewer than `k` documents.

    The metadata of a document is that of its record, with its fields (`kind`, `user`, `speaker`, `time` and others),
    and `score`, `confidence` (the estimated probability that the memory can answer the question) and `why` (the words
    and signals of the score).

    Attributes:
        memory: A memory, also of `recollect.connect`; a path or address that `recollect.open` takes; or the address of
            a server. A path is opened here, and closed by `close`.
        k: Maximum number of documents. `invoke(question, k=3)` states another one.
        user: Only records of this user, and of none.
        agent: Only records of this agent, and of none.
        conversation: Only records of this conversation, and of none.
        where: A filter (docs/filters.md), also as text.
        min_confidence: Documents with a lower confidence are left out; 0 to 1, or "auto".
        concise: Leave out documents that add nothing to those before them.

    Raises:
        RecollectError: The memory cannot be opened.
    """

    memory: Any = Field(repr=False, exclude=True)  # an address may have a password
    k: int = 4
    user: str | None = None
    agent: str | None = None
    conversation: str | None = None
    where: Filter | str | None = None
    min_confidence: float | str = 0.0
    concise: bool = False

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")
    _opened: Opened = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Open the memory."""
        super().model_post_init(context)
        self._opened = opened(self.memory)

    def close(self) -> None:
        """Close the memory if it was opened here and no other adapter uses it. Closing twice does nothing."""
        self._opened.close()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, **options: Any
    ) -> list[Document]:
        """Return what answers a query, best first; nothing for a blank one.

        Args:
            query: What to look for, as for `Memory.recall`.
            run_manager: Of LangChain.
            k: Maximum number of documents; default: that of the retriever.
            **options: Other arguments of `Memory.recall`, such as `reference=` or `user=`, instead of the retriever's.
        """
        if not query.strip():
            return []
        stated = ("user", "agent", "conversation", "where", "min_confidence", "concise")
        own = {name: getattr(self, name) for name in stated}
        hits = self._opened.memory.recall(question_of(query), k=self.k if k is None else k, **{**own, **options})
        return [document_of(hit) for hit in hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await completed(
            lambda: self._get_relevant_documents(query, run_manager=run_manager.get_sync(), **options)
        )


def document_of(hit: Hit) -> Document:
    """Return a hit as a document."""
    return Document(id=hit.record.id, page_content=hit.record.text, metadata=found_metadata(hit))
