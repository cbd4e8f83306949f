"""Checks of the arguments of operations. Each raises InvalidArgumentError."""

from __future__ import annotations

import math
import re
from datetime import datetime

from recollect.errors import InvalidArgumentError, RecollectError
from recollect.filters.tree import Filter
from recollect.records.record import unlocated

#: The longest `ttl`, in seconds: a hundred years.
MAX_TTL_S = 3_155_760_000
#: The longest time to wait for a lock or a commit, in seconds.
MAX_TIMEOUT_S = 86_400
#: The largest count: a database stores it, and it can be added to another.
_MAX_COUNT = 2**62
# BCP 47 reserves languages of four letters and has registered none of five to eight: they are names, such as "german".
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise InvalidArgumentError unless it is one of the choices."""
    if value not in choices:
        raise InvalidArgumentError(name, value, f"must be one of {', '.join(choices)}")


def check_count(name: str, value: object, *, least: int = 1, optional: bool = False) -> None:
    """Raise InvalidArgumentError unless it is an integer from `least` to 2^62, or None if that is allowed."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(name, value, f"must be an integer of at least {least}")
    if value > _MAX_COUNT:
        raise InvalidArgumentError(name, value, f"must be at most {_MAX_COUNT}")


def check_seconds(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is a valid `ttl`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidArgumentError(name, value, "must be seconds or a timedelta")
    if not 0 < value <= MAX_TTL_S:
        raise InvalidArgumentError(name, value, f"must be above 0 and at most {MAX_TTL_S} seconds (a hundred years)")


def check_number(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidArgumentError(name, value, "must be a finite number")


def check_share(name: str, value: object) -> None:
    """Raise InvalidArgumentError unless it is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidArgumentError(name, value, "must be a number from 0 to 1")


def check_timeout(value: object) -> None:
    """Raise InvalidArgumentError unless it is a valid timeout."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_TIMEOUT_S:
        raise InvalidArgumentError("timeout", value, f"must be seconds, 0 to {MAX_TIMEOUT_S}")


def check_instant(name: str, value: object) -> datetime:
    """Return an aware datetime, a text or a date as a time; a naive one if it has no time zone (`Operation.located`).

    Raises:
        InvalidArgumentError: It is none of these.
    """
    try:
        return unlocated(name, value)
    except RecollectError as error:
        raise InvalidArgumentError(name, value, str(error.args[2])) from None


def check_flag(name: str, value: object) -> None:
    """Check that a value is True or False."""
    if not isinstance(value, bool):
        raise InvalidArgumentError(name, value, "must be True or False")


def check_filter(where: object) -> None:
    """Raise InvalidArgumentError unless it is a filter."""
    if not isinstance(where, Filter):
        raise InvalidArgumentError(
            "where", where, 'must be a filter (see recollect.filters) or its text form, such as "user=ana"'
        )


def check_tag(language: object) -> None:
    """Raise InvalidArgumentError unless it has the form of a BCP 47 tag."""
    if not isinstance(language, str) or not _TAG.fullmatch(language):
        from recollect.text.languages import code_of

        code = code_of(language) if isinstance(language, str) else None
        hint = f" (did you mean {code!r}?)" if code else ""
        raise InvalidArgumentError("language", language, f'must be a BCP 47 tag, such as "en" or "de-AT"{hint}')


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
