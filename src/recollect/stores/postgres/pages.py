"""Pages of the Merkle tries of a store, in memory: they never change, and their numbers are never used again.

That is so as long as the server loses nothing. After a failover or a crash, commits that a node has seen may be gone,
and the numbers of their pages are used for others. So the pages are those of one run of one server.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

#: Maximum size of the pages in memory, in bytes.
PAGE_BYTES = 64 * 2**20


class PageCache:
    """The pages that were read or written last."""

    def __init__(self, limit: int = PAGE_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._pages: OrderedDict[int, bytes] = OrderedDict()
        self._server: str | None = None
        self._guard = threading.Lock()

    def get(self, server: str, page: int) -> bytes | None:
        """Return a page; None if it is not in memory.

        Args:
            server: The run of the server that the caller reads from.
            page: The number of the page.
        """
        with self._guard:
            if server != self._server:
                return None
            body = self._pages.get(page)
            if body is not None:
                self._pages.move_to_end(page)
            return body

    def put(self, server: str, pages: Mapping[int, bytes]) -> None:
        """Keep pages that are committed. Those of another run of the server are evicted."""
        with self._guard:
            if not self._limit:
                return
            if server != self._server:
                self._pages.clear()
                self._size, self._server = 0, server
            for page, body in pages.items():
                self._size += len(body) - len(self._pages.get(page, b""))
                self._pages[page] = body
            while self._size > self._limit:
                self._size -= len(self._pages.popitem(last=False)[1])
