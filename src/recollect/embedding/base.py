"""The embedder protocol, and the one door through which vectors come in.

An embedder is a model: texts in, vectors out. It is never on the write path, may be slow, may fail, and may give
nonsense; `embedded` asks one and lets through only vectors of the right size whose components are all finite, with a
reason for each text that has none. Whoever stores or compares vectors gets them from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from recollect.errors import EmbedderError, InvalidArgumentError, RecollectError

Floats = NDArray[np.float32]
#: A vector as an embedder may give it; None where it has none for that text.
Given = Sequence[float] | NDArray[np.floating[Any]] | None


class Floors(NamedTuple):
    """Where the cosines of a model begin to mean something.

    share   what counts is how far a cosine lies above this; at or below it, nothing
    alone   from here on, a record is a hit though it shares no word with the question

    Models differ: unrelated texts have cosines of about 0 to 0.2 in all-MiniLM-L6-v2 and text-embedding-3-small, and
    of 0.6 and more in E5 and text-embedding-ada-002, which need floors of their own.
    """

    share: float = 0.2
    alone: float = 0.5


@runtime_checkable
class Embedder(Protocol):
    """A model that gives vectors for texts. Equal names must mean equal vectors for equal texts.

    An embedder may also have `floors` (`Floors`), where the usual ones do not fit its model, and `close()`, which a
    memory that is closed calls; embedding again must still be possible, as others may share it.
    """

    @property
    def name(self) -> str:
        """Provider, model and revision: vectors are kept under this name, so another model needs another one."""
        ...

    @property
    def dimension(self) -> int | None:
        """How many components its vectors have; None where that is not known before it is first asked."""
        ...

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> Sequence[Given] | NDArray[np.floating[Any]]:
        """A vector for each text, in order.

        asking  the texts are questions; models that tell questions from documents embed them otherwise

        Raises: EmbedderError and MissingExtraError; what else it raises is taken for an EmbedderError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """What became of texts, by their place: a vector each, or the reason why there is none."""

    vectors: Mapping[int, Floats]
    refused: Mapping[int, str]


def embedded(
    embedder: Embedder, texts: Sequence[str], *, asking: bool = False, dimension: int | None = None
) -> Embedded:
    """Ask an embedder for vectors and sort out those that cannot be used.

    dimension  what size they must have; default: what the embedder says, else that of the first

    Raises: EmbedderError, MissingExtraError: there is no answer, or not one for each text.
    """
    try:
        given = embedder.embed(texts, asking=asking)
        count = len(given)
    except RecollectError:
        raise
    except Exception as error:
        raise EmbedderError(embedder.name, f"{type(error).__name__}: {error}") from error
    if count != len(texts):
        raise EmbedderError(embedder.name, f"it gave {count} vectors for {len(texts)} texts")
    dimension = dimension or embedder.dimension
    vectors: dict[int, Floats] = {}
    refused: dict[int, str] = {}
    for place, each in enumerate(given):
        vector, reason = _sound(each, dimension)
        if vector is None:
            refused[place] = reason
        else:
            vectors[place] = vector
            dimension = len(vector)
    return Embedded(vectors, refused)


def _sound(given: Given, dimension: int | None) -> tuple[Floats | None, str]:
    """A vector as it is stored, or the reason why it cannot be."""
    if given is None:
        return None, "there is no vector for it"
    try:
        with np.errstate(over="ignore"):  # what is too great becomes infinite, which is refused below
            vector = np.array(given, dtype="<f4")
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
    """The floors of an embedder: its own, or the usual ones."""
    return check_floors(getattr(embedder, "floors", Floors()))


def check_floors(floors: object) -> Floors:
    """Raises: InvalidArgumentError where they are not floors of cosines."""
    if not isinstance(floors, Floors) or not 0.0 <= floors.share <= floors.alone <= 1.0:
        raise InvalidArgumentError("floors", floors, "must be Floors with 0 <= share <= alone <= 1")
    return floors


def text_digest(text: str) -> bytes:
    """The SHA-256 of a text: what its vectors are kept under, so that equal texts are embedded once."""
    return hashlib.sha256(text.encode("utf-8")).digest()


class Supplied:
    """An embedder whose vectors the caller brings: a vector for each text, records' and questions' alike.

    >>> own = Supplied("mine/1", 2, {"a text": [1.0, 0.0]})
    >>> own.put("another", [0.0, 1.0])
    >>> own.embed(["another", "unknown"])
    [[0.0, 1.0], None]
    """

    def __init__(
        self,
        name: str,
        dimension: int,
        vectors: Mapping[str, Given] | None = None,
        *,
        floors: Floors = Floors(),  # noqa: B008 - a constant
    ) -> None:
        self._name = name
        self._dimension = dimension
        self.floors = check_floors(floors)
        self._vectors: dict[str, Given] = {}
        for text, vector in (vectors or {}).items():
            self.put(text, vector)

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimension(self) -> int:
        return self._dimension

    def put(self, text: str, vector: Given) -> None:
        """Bring the vector of a text. Raises: InvalidArgumentError where it is none of this size, or not finite."""
        sound, reason = _sound(vector, self._dimension)
        if sound is None:
            raise InvalidArgumentError("vector", text, reason)
        self._vectors[text] = vector

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[Given]:
        return [self._vectors.get(text) for text in texts]

    def __repr__(self) -> str:
        return f"<Supplied {self._name!r}: {len(self._vectors)} vectors of {self._dimension}>"
