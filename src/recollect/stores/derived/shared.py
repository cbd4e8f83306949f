"""What the derived data of several machines share, where the ledger is on a server: segments of indexes, and vectors.

A machine keeps files of its own, as it does without these, and looks here for what it lacks. What is shared can be
missing, old or corrupt: the reader checks it as it checks a file. An error of these calls never makes a recall or a
write fail; only an erasure depends on them, which is not complete before what was erased is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.ledger.commits import Branch

Floats = NDArray[np.float32]


class Made(NamedTuple):
    """The source of a segment: the state from which it was built.

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


class VectorModel(NamedTuple):
    """An embedding model. A model whose dimension changes counts as another model.

    Attributes:
        name: The embedder's name.
        dimension: The number of components of its vectors.
    """

    name: str
    dimension: int


class SharedSegments(Protocol):
    """The segments that machines share: at most one for each branch and rules, as the bytes of its file."""

    def read(self, branch: Branch, rules: str, newest: int) -> NDArray[np.uint8] | None:
        """Return the bytes of a segment that reflects the commit `newest` or an earlier one; None if there is none.

        Cost:
            A round trip, and one for each part of some megabytes.
        """

    def accepts(self, branch: Branch, made: Made) -> bool:
        """Return whether a segment is so much newer than the one that is there that it is worth writing."""

    def write(self, branch: Branch, made: Made, parts: Iterator[bytes]) -> bool:
        """Write a segment in place of the former one, atomically.

        Returns:
            Whether it was written: not if another machine is writing one, or something was erased since the commit.
        """

    def remove_erased(self, branch: Branch) -> None:
        """Remove the segments of a branch that may contain what was erased. What this raises is left to do.

        A segment that is being written meanwhile is either removed, or not written.
        """


class Fetched(NamedTuple):
    """Vectors that were read.

    Attributes:
        vectors: Each by the digest of its text.
        number: The number up to which the vectors of the model were read; numbers grow.
        newest: The number of the newest vector of the model.
        reached: The seq and root up to which every text of the branch has a vector; (0, b"") if that is not known.
    """

    vectors: dict[bytes, Floats]
    number: int
    newest: int
    reached: tuple[int, bytes]


class Fetch(Protocol):
    """A function that returns the vectors of some texts, and at most `limit` of those with a number above `after`."""

    def __call__(self, model: VectorModel, branch: Branch, digests: list[bytes], after: int, limit: int) -> Fetched:
        """Return them as they are at the moment of the call."""


class SharedVectors(Protocol):
    """The vectors that machines share, by model, namespace and digest as `VectorFile` has them.

    A vector is never replaced: of two machines that embed a text at once, both use the vector that was stored first.
    """

    @property
    def usable(self) -> bool:
        """Whether there is anything to read."""

    def fetching(self) -> AbstractContextManager[Fetch]:
        """Provide a function that fetches vectors while the block runs. It waits for no connection: the block has one.

        Cost:
            One round trip for each call.
        """

    def put(
        self,
        model: VectorModel,
        namespace: str,
        vectors: Mapping[bytes, Floats],
        wanted: Callable[[], Container[bytes]],
    ) -> dict[bytes, Floats]:
        """Store vectors, atomically, and return those that others have stored before under the same digests.

        Args:
            wanted: Returns the digests whose vectors may be stored. It is called while no other machine can erase.
        """

    def keep_only(self, namespace: str, wanted: Callable[[], Iterable[bytes]]) -> int:
        """Delete vectors of a namespace, from every model, and return their number. Used to erase texts.

        Args:
            wanted: Returns the digests whose vectors stay. No vector is stored between its call and the deletion.
        """

    def digests(self, model: VectorModel, namespace: str) -> set[bytes]:
        """Return the digests of all texts that have a vector."""

    def models(self, namespace: str) -> list[tuple[VectorModel, int]]:
        """Return the models of a namespace in the order of their first use, each with its number of vectors."""

    def reach(self, model: VectorModel, branch: Branch, seq: int, root: bytes) -> None:
        """Note that every text up to this commit has a vector."""
