"""The sizes of results, in tokens, and what a budget has room for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect.server.mcp.tools import compact

#: The shortest part of a text that is worth showing, in tokens.
_LEAST = 20


def tokens_of(text: str) -> int:
    """Return the estimated number of tokens of a text: a quarter of its UTF-8 bytes, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def fitting(items: Iterable[dict[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """Return the first items that fit in a budget, at least one. The "content" of the last one may be shortened.

    Args:
        items: JSON objects with a "content".
        max_tokens: The budget.

    Returns:
        The items. One with a shortened content has "shortened": the number of characters of the whole content.
    """
    out: list[dict[str, Any]] = []
    rest = max_tokens
    for item in items:
        size = tokens_of(compact(item))
        if size <= rest:
            out.append(item)
            rest -= size
            continue
        shortened = _shortened(item, rest)
        if shortened is not None or not out:
            out.append(shortened or _shortened(item, rest, least=0) or item)
        break
    return out


def _shortened(item: dict[str, Any], max_tokens: int, least: int = _LEAST) -> dict[str, Any] | None:
    """Return an item with the part of its content that fits; None if that is less than `least` tokens."""
    content = item["content"]
    room = max_tokens - tokens_of(compact({**item, "content": "", "shortened": len(content)}))
    while room >= least:
        part = {**item, "content": beginning(content, max(room, 1)), "shortened": len(content)}
        excess = tokens_of(compact(part)) - max_tokens  # of characters that JSON escapes
        if excess <= 0 or room <= 0:
            return part
        room -= excess
    return None


def beginning(text: str, max_tokens: int) -> str:
    """Return the beginning of a text that has at most a number of tokens, without a part of a character."""
    return text.encode("utf-8")[: 4 * max_tokens].decode("utf-8", "ignore")
