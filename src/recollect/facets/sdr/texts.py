"""`SdrText`, a text with its number and times, as it leaves a store and enters another, and the checks of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict

from recollect.arguments.checks import check_flag, check_text, is_integer, is_number
from recollect.errors import InvalidArgumentError
from recollect.facets.sdr.index.encoding import BITS, BYTES, RULE, WHOLE, encoded, packed, shared
from recollect.facets.sdr.records import MAX_NUMBER


class SdrText(TypedDict):
    """A text as it is stored.

    Attributes:
        id: Its number.
        metadata: What was stored with it.
        created_ts: When it was stored, in seconds since 1970.
        updated_ts: When it was changed last.
    """

    id: int
    text: str
    metadata: dict[str, Any]
    created_ts: float
    updated_ts: float


_FIELDS = tuple(SdrText.__annotations__)


def checked_texts(texts: object) -> list[SdrText]:
    """Return texts that a caller passed, with {} for metadata that is None.

    Raises:
        InvalidArgumentError: A text is invalid; the message says which, counted from 0.
    """
    if not isinstance(texts, Iterable):
        raise InvalidArgumentError("texts", texts, f"must be texts with {', '.join(_FIELDS)}")
    return [checked_text(f"texts[{at}]", each) for at, each in enumerate(texts)]


def checked_text(name: str, text: object) -> SdrText:
    """Return a text that a caller passed, with {} for metadata that is None.

    Args:
        name: What the caller calls it, for messages.

    Raises:
        InvalidArgumentError: The text is invalid.
    """
    if not isinstance(text, Mapping):
        raise InvalidArgumentError(name, text, f"must be a text with {', '.join(_FIELDS)}")
    for field in _FIELDS:
        if field not in text:
            raise InvalidArgumentError(name, text, f"has no {field}")
    check_text(f"{name}.text", text["text"])
    for field in ("created_ts", "updated_ts"):
        moment(f"{name}.{field}", text[field])
    return {
        "id": checked_number(f"{name}.id", text["id"]),
        "text": text["text"],
        "metadata": dict(checked_metadata(f"{name}.metadata", text["metadata"])),
        "created_ts": text["created_ts"],
        "updated_ts": text["updated_ts"],
    }


def checked_number(name: str, number: object) -> int:
    """Return the number of a text.

    Raises:
        InvalidArgumentError: `number` is not the number of a text.
    """
    if not is_integer(number, 1, MAX_NUMBER - 1):
        raise InvalidArgumentError(name, number, f"must be an integer from 1 to {MAX_NUMBER - 1}")
    return number


def checked_metadata(name: str, metadata: object) -> Mapping[str, Any]:
    """Return metadata, {} for None. Its values are checked when a record is made of it.

    Raises:
        InvalidArgumentError: `metadata` is not a mapping.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidArgumentError(name, metadata, "must be a JSON object")
    return metadata


def moment(name: str, seconds: object) -> datetime:
    """Return seconds since 1970 as a time.

    Raises:
        InvalidArgumentError: `seconds` is not a number, or its year is not one from 1 to 9999.
    """
    if is_number(seconds):
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            pass
    raise InvalidArgumentError(name, seconds, "must be seconds since 1970, in the years 1 to 9999")


# Sparse codes of texts: 512 bytes, the first bit is the most significant of the first byte.


def encode(text: str, *, rule: bool = False) -> bytes:
    """Return the sparse code of a text.

    The text is put into NFKC and folded case, its white space is collapsed, two spaces are added on each side, and each
    of its trigrams sets the bit FNV-1a 64 of its UTF-8, modulo 4096. A blank text has no bits.

    Args:
        rule: Keep the 80 lowest bits only, as the rule of sdr-memory says. A long text then loses most of its words.

    Returns:
        512 bytes.

    Raises:
        InvalidArgumentError: `text` is not text, or contains a lone surrogate.

    >>> code = encode("hello")
    >>> len(code), sum(byte.bit_count() for byte in code), code == encode("  HELLO ")
    (512, 7, True)
    """
    check_text("text", text, blank=True)
    check_flag("rule", rule)
    return packed(encoded(text, RULE if rule else WHOLE))


def overlap(a: bytes, b: bytes) -> int:
    """Return the number of bits that two codes share.

    >>> overlap(encode("pool"), encode("pools"))
    4
    """
    return (_code("a", a) & _code("b", b)).bit_count()


def hamming(a: bytes, b: bytes) -> int:
    """Return the number of bits in which two codes differ.

    >>> hamming(encode("pool"), encode("pools")), hamming(encode("pool"), encode("pool"))
    (5, 0)
    """
    return (_code("a", a) ^ _code("b", b)).bit_count()


def rule_score(a: bytes, b: bytes) -> float:
    """Return 1 - hamming / 4096, the score of sdr-memory.

    >>> rule_score(encode("pool"), encode("pool"))
    1.0
    """
    return 1 - hamming(a, b) / BITS


def explain(question: str, text: str) -> list[str]:
    """Return the trigrams that two texts share, in their order in the first.

    >>> explain("pool", "connection pool")
    [' po', 'poo', 'ool', 'ol ', 'l  ']
    """
    for name, value in (("question", question), ("text", text)):
        check_text(name, value, blank=True)
    return shared(question, [text])[0]


def _code(name: str, value: object) -> int:
    if not isinstance(value, bytes) or len(value) != BYTES:
        raise InvalidArgumentError(name, value, f"must be a code of {BYTES} bytes")
    return int.from_bytes(value, "big")
