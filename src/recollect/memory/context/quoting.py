"""Quoting: stored text as an item of a list, so that it cannot pose as another item."""

from __future__ import annotations


def indented(text: str) -> str:
    r"""Return a text with each further line indented by two spaces. Every line separator of Unicode becomes "\n".

    >>> indented("one\n- two\n\nthree\u2028- four")
    'one\n  - two\n\n  three\n  - four'
    """
    first, *others = text.splitlines() or [""]
    return "\n".join([first, *(f"  {line}" if line else "" for line in others)])
