"""The sizes of results, in tokens, what a budget has room for, and the pages of what it has no room for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect.arguments.tools import Schema, integer, string
from recollect.quoting import shown as quoted
from recollect.server.mcp.tools import ToolError, compact

#: The largest budget that a client can ask for, in tokens.
MOST_TOKENS = 20_000
#: The arguments of a tool whose results have pages, and the cursor in its results.
CURSOR = string("Pass it as `cursor` for the next page; absent on the last one")
PAGE = string("The cursor of the page before")
#: The shortest part of a text that is worth showing, in tokens.
_LEAST = 20


def budget(default: int) -> Schema:
    """Return the schema of the argument "max_tokens"."""
    return integer(f"Maximum size of the result, in tokens. Default: {default}", minimum=50, maximum=MOST_TOKENS)


def page_of(arguments: dict[str, Any]) -> tuple[int, str]:
    """Return the start of a page and the state of the memory at the first page, from its cursor.

    Raises:
        ToolError: It is not a cursor.
    """
    start, _, state = arguments.get("cursor", "0.").partition(".")
    if not (start.isascii() and start.isdigit() and len(start) < 7):
        cursor = quoted(arguments["cursor"])
        raise ToolError(f"cursor {cursor} is not one that this tool returned: leave it out to begin")
    return int(start), state


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
