"""Pages of the Merkle tries of a store, in memory: they never change, and their numbers are never used again."""

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
        self._guard = threading.Lock()

    def get(self, page: int) -> bytes | None:
        """Return a page; None if it is not in memory."""
        with self._guard:
            body = self._pages.get(page)
            if body is not None:
                self._pages.move_to_end(page)
            return body

    def put(self, pages: Mapping[int, bytes]) -> None:
        """Keep pages that are committed."""
        with self._guard:
            for page, body in pages.items():
                self._size += len(body) - len(self._pages.get(page, b""))
                self._pages[page] = body
            while self._size > self._limit:
                self._size -= len(self._pages.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget all pages, because the history is another one."""
        with self._guard:
            self._pages.clear()
            self._size = 0
