"""The vectors of a machine where machines share them: the file of this machine, and behind it what others have stored.

What is embedded here is stored for all; what others have embedded is fetched when it is needed, and then read from the
file. An error of what is shared is a warning, and the file goes on without it. The exception is an erasure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import apsw

from recollect.errors import RecollectError
from recollect.ledger.commits import Branch
from recollect.stores.derived.database import writing
from recollect.stores.derived.shared import Fetch, Floats, SharedVectors, VectorModel
from recollect.stores.derived.vectors import VectorFile, asked

_log = logging.getLogger("recollect")
#: Number of vectors that are fetched at a time.
_PAGE = 1000


class _Fetched(NamedTuple):
    """What was fetched for a branch: up to which number, and which texts had no vector then."""

    life: int
    number: int
    absent: frozenset[bytes]


class SharedVectorFile(VectorFile):
    """The vectors of a store whose machines share them.

    Args:
        folder: The folder of this machine.
        uuid: The uuid of the store.
        key: The store's key.
        shared: What machines share.
    """

    def __init__(self, folder: str | None, uuid: str, key: bytes, shared: SharedVectors) -> None:
        super().__init__(folder, uuid, key)
        self._shared = shared
        self._fetched: dict[tuple[VectorModel, Branch], _Fetched] = {}

    # Fetching

    def fetch(self, model: VectorModel, branch: Branch, digests: Callable[[], Iterable[bytes]]) -> bool:
        """Store here what others have stored of the vectors of some texts, and return whether there was anything new.

        Cost:
            A round trip for each thousand texts that are asked for the first time, and one for all others together.
        """
        if not self._shared.usable:
            return False
        before = self._fetched.get((model, branch))
        if before is not None and before.life != self.life:
            before = None  # the file was deleted, or something was removed from it
        absent = {each for each in digests() if each}
        if not absent:
            return False
        asked_now = sorted(absent if before is None else absent - before.absent)
        number = 0 if before is None else before.number
        stored: set[bytes] = set()
        with self._tried("fetched"):
            for start in range(0, max(len(asked_now), 1), _PAGE):
                found, read_to = self._page(model, branch, asked_now[start : start + _PAGE], number, before is None)
                number = min(number, read_to) if start else read_to  # more may be stored between two pages
                stored |= found
            self._fetched[model, branch] = _Fetched(self.life, number, frozenset(absent - stored))
        return bool(stored)

    def _page(
        self, model: VectorModel, branch: Branch, digests: list[bytes], after: int, is_first: bool
    ) -> tuple[set[bytes], int]:
        """Fetch the vectors of some texts, and those that are newer than a number; return what was stored."""
        stored: set[bytes] = set()
        while True:

            def read(
                connection: apsw.Connection, fetch: Fetch, digests: list[bytes] = digests, after: int = after
            ) -> int:
                # It is read while no other process can erase from this file, which is cleaned after what is shared.
                # So nothing comes back that was erased.
                with writing(connection):
                    found = asked(lambda: fetch(model, branch, digests, after, 0 if is_first else _PAGE))
                    self._insert(connection, model, branch.namespace, found.vectors)
                    reached = found.reached
                    if reached[0]:
                        set_number = self._set(connection, model, branch.namespace)
                        row = (set_number, branch.name, *reached)
                        connection.execute(
                            "INSERT OR REPLACE INTO reached SELECT ?, ?, ?, ? WHERE NOT EXISTS "
                            "(SELECT 1 FROM reached WHERE vectors = ? AND branch = ? AND seq > ?)",
                            (*row, set_number, branch.name, reached[0]),
                        ).fetchall()
                stored.update(found.vectors)
                return found.newest if is_first else min(found.number, found.newest)

            with self._shared.fetching() as fetch:  # before the lock of the file, which others may wait for
                number = self._do(partial(read, fetch=fetch))
            if is_first or number <= after:
                # Numbers go back if the server has lost commits.
                return stored, number
            after, digests = number, []

    def absent(self, model: VectorModel, namespace: str, digests: Iterable[bytes]) -> list[bytes]:
        """Return those of the digests that have no vector here or elsewhere, in their order. Fetch the others."""
        missing = super().absent(model, namespace, digests)
        if not self._shared.usable:
            return missing
        found: set[bytes] = set()
        with self._tried("fetched"):
            for start in range(0, len(missing), _PAGE):
                found |= self._page(model, Branch(namespace), missing[start : start + _PAGE], 0, True)[0]
        return [each for each in missing if each not in found]

    # Storing

    def put(
        self,
        model: VectorModel,
        namespace: str,
        vectors: Mapping[bytes, Floats],
        wanted: Callable[[], Container[bytes]] | None = None,
    ) -> None:
        """Store vectors here and for others. Of two machines that embed a text at once, both store the same vector."""
        with self._tried("stored for others"):
            vectors = {**vectors, **self._shared.put(model, namespace, vectors, wanted or vectors.keys)}
        super().put(model, namespace, vectors, wanted)

    def reach(self, model: VectorModel, branch: Branch, seq: int, root: bytes) -> None:
        """Note that every text up to this commit has been embedded."""
        super().reach(model, branch, seq, root)
        with self._tried("stored for others"):
            self._shared.reach(model, branch, seq, root)

    # Facts

    def has_any(self, name: str, namespace: str) -> bool:
        """Return whether a namespace has a vector of a model with this name, here or elsewhere."""
        if super().has_any(name, namespace):
            return True
        with self._tried("fetched"):
            return any(model.name == name for model, _ in self._shared.models(namespace))
        return False

    def embedded_digests(self, model: VectorModel, namespace: str) -> set[bytes]:
        """Return the digests of all texts that have a vector, here or elsewhere."""
        here = super().embedded_digests(model, namespace)
        with self._tried("fetched"):
            return here | self._shared.digests(model, namespace)
        return here

    def models(self, namespace: str) -> list[tuple[VectorModel, int]]:
        """Return the models of a namespace in the order of their first use, each with its number of vectors."""
        counts = dict(super().models(namespace))
        with self._tried("fetched"):
            for model, count in self._shared.models(namespace):
                counts[model] = max(count, counts.get(model, 0))
        return list(counts.items())

    # Erasing

    def keep_only_shared(self, namespace: str, wanted: Callable[[], Iterable[bytes]]) -> int:
        """Delete vectors of a namespace from what machines share.

        Raises:
            StoreError: They could not be deleted.
        """
        return self._shared.keep_only(namespace, wanted)

    @contextmanager
    def _tried(self, done: str) -> Iterator[None]:
        """Run the block; an error of what is shared is a warning."""
        try:
            yield
        except RecollectError as error:
            _log.warning("vectors were not %s, so texts may be embedded more than once: %s", done, error)
