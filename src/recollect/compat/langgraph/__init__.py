"""A store for LangGraph on a memory: agents, LangMem and `create_agent(store=)` keep their items in it.

    from recollect.compat.langgraph import RecollectStore

    with RecollectStore("agent.db") as store:
        store.put(("users", "ana"), "seat", {"text": "Ana prefers window seats"})
        store.search(("users",), query="which seat should I book?")

Search needs no embedding model, items have a history, and `store.memory` is the memory with all its calls.
"""

from recollect.errors import MissingExtraError

try:
    import langgraph.store.base  # noqa: F401 - is it there?
except ImportError as error:
    raise MissingExtraError("a store for LangGraph", "langgraph", "langgraph") from error

from recollect.compat.langgraph.aio import AsyncRecollectStore
from recollect.compat.langgraph.store import RecollectStore

__all__ = ["AsyncRecollectStore", "RecollectStore"]
