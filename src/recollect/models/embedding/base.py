"""The embedder protocol, and the validation that all vectors pass through.

An embedder is a model: texts in, vectors out. It is never called on the write path, may be slow, may fail, and may
return invalid vectors. `embedded` calls an embedder and accepts only vectors of the right size whose components are all
finite; for each other text it returns the reason. All code that stores or compares vectors gets them from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderError, EmbedderUnavailableError, InvalidArgumentError, RecollectError

Floats = NDArray[np.float32]
#: A vector as an embedder returns it; None if it has no vector for that text.
VectorLike = Sequence[float] | NDArray[np.floating[Any]] | None


class Floors(NamedTuple):
    """The cosines from which on similarities are significant for a model.

    Models differ: unrelated texts have cosines of about 0 to 0.2 in all-MiniLM-L6-v2 and text-embedding-3-small, and of
    0.6 and more in E5 and text-embedding-ada-002, which need other floors.

    Attributes:
        share: The score increases with the amount by which a cosine exceeds this value. A cosine at or below it adds
            nothing.
        alone: From this cosine on, a record is a hit even if it shares no word with the question. What the turns around
            it lend counts, too.
        weight: What a cosine of 1 above `share` would add to a score.
    """

    share: float = 0.15
    alone: float = 0.4
    weight: float = 0.3


@runtime_checkable
class Embedder(Protocol):
    """A model that returns vectors for texts. Equal names must mean equal vectors for equal texts.

    An embedder may also have `floors` (`Floors`), if the default ones do not fit its model, and `close()`, which
    `Memory.close` calls. Embedding must still be possible after `close()`, since other memories may share the embedder.
    """

    @property
    def name(self) -> str:
        """Provider, model and revision. Vectors are stored under this name, so each model needs its own."""

    @property
    def dimension(self) -> int | None:
        """Number of components of its vectors; None if it is not known before the first call."""

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike] | NDArray[np.floating[Any]]:
        """Return a vector for each text, in order.

        Args:
            texts: The texts to embed.
            asking: Whether the texts are questions. Models that distinguish questions from documents embed them
                differently.

        Raises:
            EmbedderError: No vectors can be returned. Any other exception is converted to this one.
            MissingExtraError: A library is not installed.
        """


@dataclass(frozen=True, slots=True)
class Embedded:
    """The result for each text, by its index: a vector, or the reason why there is none.

    Attributes:
        vectors: Valid vectors by the index of their text.
        refused: Reasons by the index of the text.
    """

    vectors: Mapping[int, Floats]
    refused: Mapping[int, str]


def embedded(
    embedder: Embedder, texts: Sequence[str], *, asking: bool = False, dimension: int | None = None
) -> Embedded:
    """Embed texts and separate valid vectors from invalid ones.

    Args:
        embedder: The embedder to call.
        texts: The texts to embed.
        asking: Whether the texts are questions.
        dimension: The required size of the vectors. Default: the dimension of the embedder, or else that of the first
            valid vector.

    Raises:
        EmbedderError: The embedder failed, or did not return one vector for each text.
        MissingExtraError: A library is not installed.
    """
    try:
        results = embedder.embed(texts, asking=asking)
        count = len(results)
    except RecollectError:
        raise
    except Exception as error:
        raise EmbedderError(embedder.name, f"{type(error).__name__}: {error}") from error
    if count != len(texts):
        raise EmbedderError(embedder.name, f"it returned {count} vectors for {len(texts)} texts")
    dimension = dimension or embedder.dimension
    vectors: dict[int, Floats] = {}
    refused: dict[int, str] = {}
    for index, each in enumerate(results):
        vector, reason = _validated(each, dimension)
        if vector is None:
            refused[index] = reason
        else:
            vectors[index] = vector
            dimension = len(vector)
    return Embedded(vectors, refused)


def _validated(result: VectorLike, dimension: int | None) -> tuple[Floats | None, str]:
    """Return a vector in its stored form, or the reason why it is invalid."""
    if result is None:
        return None, "there is no vector for it"
    try:
        with np.errstate(over="ignore"):  # values that overflow become infinite, which is rejected below
            vector = np.array(result, dtype="<f4")
    except (TypeError, ValueError, OverflowError):
        return None, "its vector is not a list of numbers"
    if vector.ndim != 1 or not len(vector):
        return None, f"its vector has the shape {vector.shape}"
    if dimension is not None and len(vector) != dimension:
        return None, f"its vector has {len(vector)} components, not {dimension}"
    if not np.isfinite(vector).all():
        return None, "its vector has a component that is not finite"
    return vector, ""


def floors_of(embedder: Embedder) -> Floors:
    """Return the floors of an embedder: its own, or the default ones."""
    return check_floors(getattr(embedder, "floors", Floors()))


def check_floors(floors: object) -> Floors:
    """Return `floors` if they are valid.

    Raises:
        InvalidArgumentError: They are not `Floors` with 0 <= share <= alone <= 1 and 0 <= weight <= 10.
    """
    if (
        not isinstance(floors, Floors)
        or not 0.0 <= floors.share <= floors.alone <= 1.0
        or not 0.0 <= floors.weight <= 10.0
    ):
        raise InvalidArgumentError("floors", floors, "must be Floors with 0 <= share <= alone <= 1, 0 <= weight <= 10")
    return floors


def text_digest(text: str) -> bytes:
    """Return the SHA-256 of a text. Vectors are stored under it, so that equal texts are embedded once."""
    return hashlib.sha256(text.encode("utf-8")).digest()


class Supplied:
    """An embedder whose vectors the caller supplies, for the texts of records and for questions alike.

    >>> own = Supplied("mine/1", 2, {"a text": [1.0, 0.0]})
    >>> own.put("another", [0.0, 1.0])
    >>> own.embed(["another", "unknown"])
    [[0.0, 1.0], None]
    """

    def __init__(
        self,
        name: str,
        dimension: int,
        vectors: Mapping[str, VectorLike] | None = None,
        *,
        floors: Floors = Floors(),  # noqa: B008 - a constant
    ) -> None:
        self._name = name
        self._dimension = dimension
        self.floors = check_floors(floors)
        self._vectors: dict[str, VectorLike] = {}
        for text, vector in (vectors or {}).items():
            self.put(text, vector)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimension(self) -> int:
        return self._dimension

    def put(self, text: str, vector: VectorLike) -> None:
        """Set the vector of a text.

        Raises:
            InvalidArgumentError: The vector has another size or a component that is not finite.
        """
        valid, reason = _validated(vector, self._dimension)
        if valid is None:
            raise InvalidArgumentError("vector", text, reason)
        self._vectors[text] = vector

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[VectorLike]:
        return [self._vectors.get(text) for text in texts]

    def __repr__(self) -> str:
        return f"<Supplied {self._name!r}: {len(self._vectors)} vectors of {self._dimension}>"


class Unusable:
    """An embedder that cannot be created from what names it. Recall works without it; embedding a text is an error.

    Args:
        name: What names it.
        reason: Why it cannot be created.
    """

    dimension: int | None = None

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.error = EmbedderUnavailableError(name, reason)

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[VectorLike]:
        raise EmbedderUnavailableError(*self.error.args)

    def __repr__(self) -> str:
        return f"<Unusable {self.name}>"
