"""Sparse codes of texts: 512 bytes, the first bit is the most significant of the first byte."""

from __future__ import annotations

from recollect.arguments.checks import check_flag, check_text
from recollect.errors import InvalidArgumentError
from recollect.facets.sdr.index.encoding import BITS, BYTES, RULE, WHOLE, encoded, packed, shared


def encode(text: str, *, rule: bool = False) -> bytes:
    """Return the sparse code of a text.

    The text is put into NFKC and folded case, its white space is collapsed, two spaces are added on each side, and each
    of its trigrams sets the bit FNV-1a 64 of its UTF-8, modulo 4096. A blank text has no bits.

    Args:
        text: The text.
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
