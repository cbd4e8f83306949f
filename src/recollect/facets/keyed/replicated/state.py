"""The base of all replicated states, their canonical JSON, and the checks of its contents.

The byte form of a state is JSON in UTF-8 with sorted keys, no spaces and no escapes that are not needed. Decoding
builds the state, which checks its fields, encodes it again and compares: this comparison refuses another order,
spacing or form of a number, and a key that is there twice.
"""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeVar

from recollect.errors import InvalidArgumentError

#: Largest count and largest whole time: what fits in 64 bits with a sign.
LARGEST = 2**63 - 1
_NOT_CHANGED = "; nothing was changed"

Built = TypeVar("Built", bound="State")


class State(Protocol):
    """A value that replicas merge. Merging is commutative, associative and idempotent."""

    def merge(self: Built, other: Built, own: str | None = None) -> Built:
        """Return what both know.

        Args:
            other: The state of another replica.
            own: The local replica: a state that claims more of it than this one knows is refused.

        Raises:
            InvalidArgumentError: It is refused, or has another type.
        """

    def to_bytes(self) -> bytes:
        """Return the one byte form."""

    @classmethod
    def from_bytes(cls: type[Built], data: bytes) -> Built:
        """Return the state of these bytes.

        Raises:
            InvalidArgumentError: They are not the byte form of a state of this type.
        """


def encoded(kind: str, **fields: object) -> bytes:
    """Return the byte form of a state of a kind with these fields."""
    form = {"type": kind, **fields}
    return json.dumps(form, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("utf-8")


def decoded(kind: str, data: object, *names: str) -> list[Any]:
    """Return the fields with these names, not checked any further.

    Raises:
        InvalidArgumentError: The bytes are no JSON object of this kind with just these fields.
    """
    if not isinstance(data, bytes):
        raise InvalidArgumentError("data", data, f"must be the bytes of a {kind}{_NOT_CHANGED}")
    try:
        form = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError
        raise malformed(kind, data) from None
    if not isinstance(form, dict) or form.keys() != {"type", *names} or form["type"] != kind:
        raise malformed(kind, data)
    return [form[name] for name in names]


def malformed(kind: str, data: bytes) -> InvalidArgumentError:
    """Return the error for bytes that are no state of this kind."""
    return InvalidArgumentError("data", data, f"is not the canonical form of a {kind}{_NOT_CHANGED}")


def forged(other: object, claim: str) -> InvalidArgumentError:
    """Return the error for a state that claims what cannot be."""
    return InvalidArgumentError("other", other, f"is forged: {claim}{_NOT_CHANGED}")


def checked_text(name: str, value: object, *, empty: bool = True) -> str:
    """Return a text of valid Unicode.

    Raises:
        InvalidArgumentError: The value is not text, or is empty where it must not be.
    """
    if type(value) is not str or not (value or empty):
        raise InvalidArgumentError(name, value, "must be text" + ("" if empty else " that is not empty"))
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError(name, value, "contains a lone surrogate, which is not valid Unicode") from None
    return value


def checked_number(name: str, value: object, least: int = 0, most: int = LARGEST) -> int:
    """Return an integer of these limits.

    Raises:
        InvalidArgumentError: The value is invalid.
    """
    if type(value) is not int or not least <= value <= most:
        raise InvalidArgumentError(name, value, f"must be an integer from {least} to {most}")
    return value


def checked_time(time: object) -> int | float:
    """Return a time as an integer where it is whole, so that equal times have one byte form.

    Raises:
        InvalidArgumentError: The value is not a finite number, or does not fit in 64 bits.
    """
    if type(time) not in (int, float) or not -LARGEST <= time <= LARGEST:  # type: ignore[operator]  # NaN fails, too
        raise InvalidArgumentError("time", time, "must be a number that fits in 64 bits")
    assert isinstance(time, (int, float))
    return int(time) if time == int(time) else time


def checked_same(mine: Built, other: object) -> None:
    """Check that a state to merge has the same type.

    Raises:
        InvalidArgumentError: It has another.
    """
    if type(other) is not type(mine):
        raise InvalidArgumentError("other", other, f"must be a {type(mine).__name__}{_NOT_CHANGED}")
