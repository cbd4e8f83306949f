"""Checks of values, shared by every layer. A `check_...` raises InvalidArgumentError.

`is_integer` and `is_number` are for what raises another error: Python takes a truth value for an integer. The checks of
each call do not use them, so that they take one step.
"""

from __future__ import annotations

import base64
import math
import os
import sys
from array import array
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError

#: The longest `ttl`, in seconds: a hundred years.
MAX_TTL_S = 3_155_760_000
#: The longest time to wait for a lock or a commit, in seconds.
MAX_TIMEOUT_S = 86_400
#: The largest count: a database stores it, and it can be added to another.
MAX_COUNT = 2**62

#: How an address begins, also one that was taken for a path. A single letter is a drive.
_SCHEME = regex("([a-z][a-z0-9+.-]+):/")

F = TypeVar("F", bound=Callable[..., Any])


def is_integer(value: object, least: float = -math.inf, most: float = math.inf) -> TypeGuard[int]:
    """Return whether a value is an integer within limits. Truth values are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: object, least: float = -math.inf, most: float = math.inf) -> TypeGuard[float]:
    """Return whether a value is an integer or a float within limits. Truth values and NaN are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise InvalidArgumentError unless it is one of the choices."""
    if value not in choices:
        raise InvalidArgumentError(name, value, f"must be one of {', '.join(choices)}")


def check_count(name: str, value: object, *, least: int = 1, optional: bool = False) -> None:
    """Raise InvalidArgumentError unless it is an integer from `least` to 2^62, or None if that is allowed."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgumentError(name, value, f"must be an integer of at least {least}")
    if value > MAX_COUNT:
        raise InvalidArgumentError(name, value, f"must be at most {MAX_COUNT}")


def check_seconds(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is a valid `ttl`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidArgumentError(name, value, "must be seconds or a timedelta")
    if not 0 < value <= MAX_TTL_S:
        raise InvalidArgumentError(name, value, f"must be above 0 and at most {MAX_TTL_S} seconds (a hundred years)")


def check_number(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is a finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise InvalidArgumentError(name, value, "must be a finite number")


def check_share(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is a number from 0 to 1."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
        raise InvalidArgumentError(name, value, "must be a number from 0 to 1")


def check_timeout(value: object) -> None:
    """Raise InvalidArgumentError unless it is a valid timeout."""
    if not is_number(value, 0, MAX_TIMEOUT_S):
        raise InvalidArgumentError("timeout", value, f"must be seconds, 0 to {MAX_TIMEOUT_S}")


def check_flag(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is True or False."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(name, value, "must be true or false")


def check_label(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is Unicode text without NUL, which not every database can store."""
    check_text(name, value, blank=True)
    if isinstance(value, str) and "\0" in value:
        raise InvalidArgumentError(name, value, "contains a NUL character")


def check_key(key: object) -> None:
    """Raise InvalidArgumentError unless it is an idempotency key: 1 to 255 printable ASCII characters."""
    if not isinstance(key, str) or not 1 <= len(key) <= 255 or not (key.isascii() and key.isprintable()):
        raise InvalidArgumentError("idempotency_key", key, "must be 1 to 255 printable ASCII characters")


def check_text(name: str, value: object, *, blank: bool = False) -> None:
    """Raise InvalidArgumentError unless it is Unicode text, and not blank unless `blank` allows it."""
    if not isinstance(value, str):
        raise InvalidArgumentError(name, value, "must be text")
    if not blank and not value.strip():
        raise InvalidArgumentError(name, value, "is empty")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError(name, value, "contains a lone surrogate, which is not valid Unicode") from None


def file_path(name: str, value: object) -> str:
    """Return an argument as the absolute path of a file.

    Raises:
        InvalidArgumentError: It is not the path of a file.
    """
    try:
        path = os.fspath(value)  # type: ignore[call-overload]
        os.fsencode(path)
    except (TypeError, UnicodeError):
        raise InvalidArgumentError(name, value, "must be the path of a file") from None
    if not isinstance(path, str) or not path or "\0" in path or path == ":memory:":
        raise InvalidArgumentError(name, value, "must be the path of a file")
    scheme = _SCHEME.match(path)
    if scheme:  # without what follows it, which may contain a password
        raise InvalidArgumentError(name, f"{scheme[1]}:...", "must be the path of a file, and is an address")
    return os.path.abspath(path)


def is_vector_text(value: object) -> bool:
    """Return whether a value is a vector of a question as receipts have it, or ""."""
    if not isinstance(value, str):
        return False
    try:
        components = array("h", base64.b64decode(value, validate=True))
    except ValueError:
        return False
    if sys.byteorder == "big":
        components.byteswap()
    # Of length 1, but for what rounding takes from it; or no direction at all.
    squares = sum(each * each for each in components) / 2**28
    return squares == 0 or 0.98 < squares < 1.02
