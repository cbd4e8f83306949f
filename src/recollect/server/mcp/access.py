"""What an MCP client may reach: a memory, opened when it is first needed, and the settings of the server."""

from __future__ import annotations

from recollect.server.mcp.graph import SharedGraph
from recollect.server.served_memory import Opener, ServedMemory

#: Default maximum size of what a tool of the reference server returns, in tokens.
GRAPH_TOKENS = 20_000


class Access(ServedMemory):
    """The memory of a server and its settings. Thread-safe.

    Args:
        opener: Opens the memory.
        user: The user whose records a client can reach; None: all records of the namespace.
        read_only: Whether clients can only read.
        graph_tokens: Maximum size of a graph that a tool returns, in tokens.
    """

    def __init__(
        self,
        opener: Opener,
        *,
        user: str | None = None,
        read_only: bool = False,
        graph_tokens: int = GRAPH_TOKENS,
    ) -> None:
        super().__init__(
            opener, read_only=read_only, view=lambda memory: memory if user is None else memory.scoped(user=user)
        )
        self.user = user
        self.graph_tokens = graph_tokens
        self.graph = SharedGraph(self.reading)

    def signed(self, stated: str | None) -> str | None:
        """Return what commits name as the actor, of a client that states a name."""
        return stated
