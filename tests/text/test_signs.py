"""Which texts are searched for tokens with signs: an expression that is fast on texts without any decides."""

from __future__ import annotations

import re
from itertools import product

import pytest

from recollect.text import signs

#: The same as `signs._ANY_SIGN`, as one would say it.
PLAIN = re.compile(r"[+#@$€£¥%&/\\=<>~^|]|(?<!\w)[.-]+\w|\w[.:]\w|\d-|-\d|\w-(?!\w)")


def texts(longest: int) -> list[str]:
    """Return all texts of so many characters, of the kinds that the expressions tell apart."""
    return ["".join(each) for length in range(longest + 1) for each in product("a1.-:+ ", repeat=length)]


def test_the_fast_expression_finds_in_any_text_what_the_plain_one_finds() -> None:
    for text in texts(6):
        assert bool(signs._ANY_SIGN.search(text)) == bool(PLAIN.search(text)), text


@pytest.mark.parametrize("left_out", [r"(?<!:)", r"(?<!\w[.-])", r"(?<=\d-)|", r"|(?<=\w-)(?!\w)"])
def test_any_part_less_would_be_noticed(left_out: str) -> None:
    assert left_out in signs._ANY_SIGN.pattern
    other = re.compile(signs._ANY_SIGN.pattern.replace(left_out, ""))

    assert any(bool(other.search(text)) != bool(PLAIN.search(text)) for text in texts(4))
