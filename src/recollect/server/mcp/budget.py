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
        max_tokens: The budget. The first item exceeds it if there is no room for its other fields and a short text.

    Returns:
        The items. One with a shortened content has "shortened": the number of characters of the whole content.
    """
    out: list[dict[str, Any]] = []
    rest = max_tokens
    for item in items:
        size = tokens_of(compact(item))
        if size > rest:
            room = rest - tokens_of(compact({**item, "content": "", "shortened": len(item["content"])}))
            if room >= _LEAST or not out:
                out.append(_shortened(item, max(room, _LEAST)))
            break
        out.append(item)
        rest -= size
    return out


def _shortened(item: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    """Return an item with the beginning of its content that has at most a number of tokens as JSON."""
    content = item["content"]
    room = max_tokens
    part = beginning(content, room)
    while (excess := tokens_of(compact(part)) - 1 - max_tokens) > 0:  # JSON adds quotes, and escapes characters
        room -= max(excess // 6, 1)
        part = beginning(content, room)
    return item if part == content else {**item, "content": part, "shortened": len(content)}


def beginning(text: str, max_tokens: int) -> str:
    """Return the beginning of a text that has at most a number of tokens, without a part of a character."""
    return text.encode("utf-8")[: 4 * max_tokens].decode("utf-8", "ignore")
