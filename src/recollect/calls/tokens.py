"""Counting the tokens of a text, for calls that fill a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from numbers import Integral
from typing import TypeAlias

from recollect.errors import InvalidArgumentError

#: Converts a text to its tokens, or to their number.
Tokenizer: TypeAlias = Callable[[str], int | Sized]


def counter(tokenizer: Tokenizer | None) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text: by default a quarter of its UTF-8 bytes, rounded up.

    Raises:
        InvalidArgumentError: The tokenizer is not a function. Its result raises the same if it is no number of tokens.

    >>> counter(None)("naïve"), counter(str.split)("two tokens"), counter(len)("abc")
    (2, 2, 3)
    """
    if tokenizer is None:
        return lambda text: math.ceil(len(text.encode("utf-8")) / 4)
    if not callable(tokenizer):
        raise InvalidArgumentError("tokenizer", tokenizer, "must be a function of a text")

    def count(text: str) -> int:
        try:
            found = tokenizer(text)
        except Exception as error:
            reason = f"failed for a text of {len(text)} characters: {type(error).__name__}: {error}"
            raise InvalidArgumentError("tokenizer", tokenizer, reason) from error
        number = int(found) if isinstance(found, Integral) else len(found) if isinstance(found, Sized) else -1
        # A mapping has an item for each of several lists, not for each token.
        if isinstance(found, (bool, Mapping)) or not 0 <= number < 2**62:
            raise InvalidArgumentError("tokenizer", found, "must return the tokens of the text, or their number")
        return number

    return count
