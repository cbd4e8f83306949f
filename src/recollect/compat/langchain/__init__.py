"""A memory in LangChain: a retriever over all of it, a vector store that needs no embeddings, and histories of chats.

    from recollect.compat.langchain import RecollectVectorStore

    store = RecollectVectorStore("agent.db")
    store.add_texts(["Ana prefers window seats"], [{"page": 3}])
    store.similarity_search("Which seat should I book?", k=1)

All of them also take a `Memory`, an address of a store, or one of a server.
"""

from recollect.errors import MissingExtraError

try:
    import langchain_core  # noqa: F401 - is it there?
except ImportError as error:
    raise MissingExtraError("recollect.compat.langchain", "langchain", "langchain") from error

from recollect.compat.langchain.history import RecollectChatMessageHistory
from recollect.compat.langchain.retriever import RecollectRetriever
from recollect.compat.langchain.vector_store import RecollectVectorStore

__all__ = ["RecollectChatMessageHistory", "RecollectRetriever", "RecollectVectorStore"]
