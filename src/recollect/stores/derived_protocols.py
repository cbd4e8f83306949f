"""Protocols of what is derived from a store: index files, the full-text index, uses, vectors and tiles of the log.

A store gives a factory for them (`Store.derived`). They can be next to the store, in memory, or in the database of the
store. Everything but the vectors is rebuilt if it is deleted.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.words.segment import Segment
from recollect.ledger.commits import Branch
from recollect.ledger.log_tiles import CompleteTile

Floats = NDArray[np.float32]


def keyed(digest: bytes, key: bytes) -> bytes:
    """Return the digest under which the vectors of a text are stored, from a digest of the text and a store's key."""
    return hmac.digest(key, b"recollect.vector.1\0" + digest, "sha256")


class Made(NamedTuple):
    """What a segment was built from.

    Attributes:
        rules: Identifies everything that determines the segment of given records.
        seq: The commit that it reflects.
        root: The root hash after that commit, in hex.
    """

    rules: str
    seq: int
    root: str

    @property
    def root_hash(self) -> bytes:
        """The root; b"" if it is not valid hex."""
        try:
            return bytes.fromhex(self.root)
        except ValueError:
            return b""


class Segments(Protocol):
    """The saved segments of the word indexes of a store."""

    def made(self, branch: Branch, rules: str) -> Made | None:
        """Return what the segment of a branch claims to be built from; None if there is no usable one.

        Cost:
            Does not read the segment: `read` verifies it.
        """
        ...

    def read(self, branch: Branch, rules: str) -> tuple[Segment, Made] | None:
        """Return the segment of a branch and what it was built from; None if there is no usable one."""
        ...

    def write(self, branch: Branch, segment: Segment, made: Made, usable: Callable[[], bool] = lambda: True) -> bool:
        """Save a segment, replacing the previous one. Return False if it cannot be saved.

        Args:
            branch: The branch.
            segment: The segment.
            made: What it was built from.
            usable: Returns whether the segment may still be saved. It is called while no other process can `remove`.
        """
        ...

    def remove(self, branch: Branch) -> bool:
        """Remove the segment of a branch. Return False if another process is writing one."""
        ...


class Updates(NamedTuple):
    """The changes since the state that a full-text index reflects.

    Attributes:
        seq: The commit that these changes lead to.
        root: The root after that commit.
        complete: The index reflects another history (the store was restored from a copy): `changed` has all texts, and
            the branch must be reindexed.
        changed: The changed ids, each with its text, or None if the record is not live any more.
    """

    seq: int
    root: bytes
    complete: bool
    changed: Iterable[tuple[str, str | None]]


#: Returns the updates since the seq and root that the index reflects (0 and None if it is empty).
UpdatesSince = Callable[[int, bytes | None], Updates]


class FullTextIndex(Protocol):
    """The full-text index of a store."""

    def search(self, branch: Branch, query: str, updates_since: UpdatesSince) -> list[str]:
        """Catch up, then return the ids of the texts that match, in no particular order.

        Args:
            branch: The branch.
            query: The query.
            updates_since: Opens a view of the newest state of the store and returns what is newer than the index. The
                result of the search belongs to the view of its last call. It is usually called once, and again if the
                index has to be caught up or another process has updated it.

        Raises:
            InvalidQueryError: The query is invalid.
            ClosedError: The store is closed.
            StoreError: The index cannot be used.
        """
        ...

    def clear(self) -> bool:
        """Remove everything, so that a later search indexes all texts again. Return False if others prevent that.

        Raises:
            StoreError: The index cannot be written.
        """
        ...

    def close(self) -> None:
        """Release its resources. A later search raises ClosedError."""
        ...


class Uses(Protocol):
    """When the records of a store were last used, in microseconds since 1970. It may lose the newest uses."""

    def note(self, branch: Branch, record_ids: Iterable[str], micros: int) -> None:
        """Note that records were used at `micros`.

        Each one counts as used after all uses and commits that were noted before, also where the clock stands still.
        """
        ...

    def committed(self, branch: Branch, record_ids: Collection[str], micros: int) -> int:
        """Note that a commit of the time `micros` wrote records, and return when they count as used, as in `note`."""
        ...

    def new(self, branch: Branch) -> dict[str, int]:
        """Return the uses noted since the last call, and those that other processes have written since."""
        ...

    def of(self, branch: Branch) -> dict[str, int]:
        """Return all known uses. Those of other processes are included once they have written them."""
        ...

    def known(self, branch: Branch) -> int:
        """Return the number of uses found at the last read, without reading again."""
        ...

    def keep_only(self, branch: Branch, live: Container[str]) -> None:
        """Remove the uses of records that are not in `live`."""
        ...

    def forget(self, branch: Branch, live: Container[str]) -> None:
        """Remove the buffered uses of records that are not in `live`."""
        ...

    def erase(self, branch: Branch, live: Container[str]) -> bool:
        """Remove the uses of records that are not in `live`, also from the unused parts of the file.

        Returns:
            Whether that is complete. False if others prevent it.
        """
        ...

    def write(self) -> None:
        """Write the buffered uses."""
        ...


class LogTiles(Protocol):
    """The complete tiles of the log trees of a store (`ledger.log_tiles`)."""

    def saved(self, branch: Branch) -> tuple[int, bytes]:
        """Return the number of entries that the tiles of a branch cover, and their tree hash; (0, b"") at first."""
        ...

    def tops(self, branch: Branch, level: int, first: int) -> list[bytes]:
        """Return the hashes over the tiles of a level, in order, from number `first` to the last one without a gap."""
        ...

    def hashes(self, branch: Branch, level: int, number: int) -> bytes | None:
        """Return the hashes of a tile; None if there is none."""
        ...

    def save(self, branch: Branch, tiles: Sequence[CompleteTile], size: int, tree: bytes) -> None:
        """Add tiles, so that all of them cover `size` entries with this tree hash. What cannot be saved is cached."""
        ...

    def clear(self, branch: Branch) -> None:
        """Remove the tiles of a branch."""
        ...

    def close(self) -> None:
        """Release its resources."""
        ...


class VectorModel(NamedTuple):
    """An embedding model. A model whose dimension changes counts as another model.

    Attributes:
        name: The embedder's name.
        dimension: The number of components of its vectors.
    """

    name: str
    dimension: int


class Vectors(Protocol):
    """The vectors of the texts of a store, by namespace, model and the digest of the text.

    Attributes:
        life: Changes when vectors have been removed, so that readers know that they must start again.
    """

    life: int

    def absent(self, model: VectorModel, namespace: str, digests: Iterable[bytes]) -> list[bytes]:
        """Return those of the digests that have no vector, in their order."""
        ...

    def put(
        self,
        model: VectorModel,
        namespace: str,
        vectors: Mapping[bytes, Floats],
        wanted: Callable[[], Container[bytes]] | None = None,
    ) -> None:
        """Store vectors by the digests of their texts, atomically.

        Args:
            model: The model.
            namespace: The namespace of the texts.
            vectors: The vectors.
            wanted: Returns the digests whose vectors may be stored. It is called while no other process can `erase`.

        Raises:
            ReadOnlyStoreError: They must not be written.
            StoreError: Writing failed.
        """
        ...

    def newer(self, model: VectorModel, namespace: str, seen: int) -> Iterator[tuple[int, dict[bytes, Floats]]]:
        """Yield the vectors stored after number `seen` (0: all), in pages, each with the number of its last vector."""
        ...

    def embedded_digests(self, model: VectorModel, namespace: str) -> set[bytes]:
        """Return the digests of all texts that have a vector."""
        ...

    def models(self, namespace: str) -> list[tuple[VectorModel, int]]:
        """Return the models of a namespace in the order of their first use, each with its number of vectors."""
        ...

    def reached(self, model: VectorModel, branch: Branch) -> tuple[int, bytes]:
        """Return the seq and root up to which every text has been embedded; (0, b"") at first."""
        ...

    def reach(self, model: VectorModel, branch: Branch, seq: int, root: bytes) -> None:
        """Note that every text up to this commit has been embedded."""
        ...

    def keep_only(self, namespace: str, wanted: Callable[[], Container[bytes]]) -> int:
        """Delete vectors of a namespace, from every model, and return their number. Used to erase texts.

        Args:
            namespace: The namespace.
            wanted: Returns the digests whose vectors stay. No vector is stored between its call and the deletion.
        """
        ...

    def purge(self) -> bool:
        """Remove what was erased also from the unused parts of the file. Return False if others prevent that."""
        ...

    def close(self) -> None:
        """Release its resources."""
        ...


class Derived(Protocol):
    """Creates what is derived from a store. Each call returns a new object, which the caller closes."""

    def segments(self) -> Segments | None:
        """Return the saved segments of the word indexes; None if they are not saved."""
        ...

    def full_text(self) -> FullTextIndex:
        """Return the full-text index."""
        ...

    def uses(self) -> Uses:
        """Return the uses of the records."""
        ...

    def vectors(self) -> Vectors:
        """Return the vectors of the texts."""
        ...

    def log_tiles(self) -> LogTiles:
        """Return the tiles of the log trees."""
        ...
