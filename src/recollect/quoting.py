"""What messages show of values: on one line, quoted and short, and without the passwords of addresses.

Messages quote file names, texts, addresses and replies of servers, and go to terminals, logs and other programs.
"""

from __future__ import annotations

import logging
import re
import string
from typing import Any


def printable(text: object) -> str:
    """Escape a text from outside for use in a message: the result is one line of valid Unicode.

    >>> printable("a" + chr(10) + "b" + chr(0xD800) + chr(27))
    'a\\\\nb\\\\ud800\\\\x1b'
    """
    valid = str(text).encode("utf-8", "backslashreplace").decode("utf-8")
    if valid.isprintable():
        return valid
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in valid)


def as_message(text: str) -> str:
    """Return a text as a message may have it: on one line, without passwords."""
    return printable(without_passwords(text))


def _printable(record: logging.LogRecord) -> bool:
    """Escape control characters in log lines too: they quote file names and servers, and may reach a terminal."""
    record.msg, record.args = as_message(record.getMessage()), ()
    return True


logging.getLogger("recollect").addFilter(_printable)


def plain(arg: object) -> Any:
    """Return a field of an error as JSON, without passwords; what JSON has no value for is quoted."""
    if isinstance(arg, str) and not isinstance(arg, Shown) and ("://" in arg or "passw" in arg.lower()):
        return without_passwords(arg)
    return arg if isinstance(arg, (str, int, float, bool, type(None))) else shown(arg)


#: What is examined of a long text; no message shows more of one.
_EXAMINED = 4096
#: Where a list of addresses has its commas, and parameters that are secrets.
_COMMA = re.compile(r",(?=[a-z][a-z0-9+.-]{0,20}://)", re.IGNORECASE)
#: A port and a path, after a host.
_PORT = re.compile(r"\d{1,5}[/?#]")
_SECRET = re.compile(r"(passw(?:or)?d\s*=\s*|(?:pwd|token|secret|_key)=)(?!\.\.\.)('[^']*'|[^&\s'),]+)", re.IGNORECASE)


def without_passwords(text: str, *, whole: bool = False) -> str:
    """Return a text with `***` in place of what may be a password of an address in it, valid or not.

    >>> without_passwords("http://a,postgresql://ana:secret@db/x?sslpassword=y and 10:30")
    'http://a,postgresql://ana:***@db/x?sslpassword=*** and 10:30'

    Args:
        whole: Whether the text is one address or a list of addresses, so that a password may contain spaces and need
            not follow a scheme.

    Cost:
        In proportion to its length.
    """
    if "@" in text and ":" in text:
        words = [text] if whole else re.split(r"(\s+)", text)
        text = "".join(",".join(_without_password(each, whole=whole) for each in _COMMA.split(word)) for word in words)
    return _SECRET.sub(r"\1***", text) if "=" in text else text


def _without_password(address: str, *, whole: bool) -> str:
    before, at, after = address.rpartition("@")
    scheme, mark, user = before.partition(":/")
    if not mark:
        if not whole:
            return address  # such as an id
        scheme, user = "", before
    slashes = len(user) - len(user.lstrip("/"))
    start, user = f"{scheme}{mark}{user[:slashes]}", user[slashes:]
    name, colon, secret = user.partition(":")
    if not whole and ("/" in name or _PORT.match(secret)):  # the path of a page, which may have an @
        return address
    if at and colon:
        return f"{start}{name}:***@{after}"
    if at and scheme.lower().endswith(("http", "https")):
        return f"{start}***@{after}"
    return address


class Shown(str):
    """A value that `shown` has already quoted, so that unpickling an error does not quote it twice."""

    __slots__ = ()


def shown(value: object, limit: int = 80) -> str:
    """Return the `repr` of a value for a message, cut to `limit` characters.

    Never raises, and takes no time on long values. Lone surrogates are escaped, so that the message can be printed.
    """
    if isinstance(value, Shown):
        return value
    if isinstance(value, (str, bytes, list, tuple)) and len(value) > limit:
        value = value[:limit]
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ must not replace the error that is being reported
        text = f"<{type(value).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return Shown(text if len(text) <= limit else text[: limit - 3] + "...")


def without_passwords_in(value: object, *, address: bool) -> object:
    """Return a value, or a list of values, without the passwords of addresses.

    Args:
        address: Whether it is to be an address.
    """
    if isinstance(value, str) and not isinstance(value, Shown):
        start = value[:_EXAMINED]
        return without_passwords(start, whole=True) if address or "://" in start else value
    if address and type(value) in (list, tuple):
        return [without_passwords_in(each, address=True) for each in value[:_EXAMINED]]  # type: ignore[index]
    return value


class _Formatter(string.Formatter):
    """Formats messages; the conversion `!q` quotes a value as `shown` does."""

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        return shown(value) if conversion == "q" else super().convert_field(value, conversion)


FORMATTER = _Formatter()
