"""The byte-order mark, the line ends and the white space of a file, which attributes of its nodes remember.

A file whose lines all end with CR LF is read as if they ended with LF; its root has the attribute LINE_ENDS, "CRLF".
In a file with both ends, the text of a node keeps its own, and if another of its lines ends with a CR, the node has the
attribute OWN_LINE_ENDS, the ends of all of these lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.facets.outline.text.nodes import Node

#: The attributes; that of the byte-order mark is true.
BOM, LINE_ENDS, OWN_ENDS = "BYTE_ORDER_MARK", "LINE_ENDS", "OWN_LINE_ENDS"
#: The lines above the text of a node of Org, if `org.write` would write them in another way.
HEAD = "HEAD_AS_WRITTEN"
#: Attributes that say nothing but how a file is written.
AS_WRITTEN = frozenset((BOM, LINE_ENDS, OWN_ENDS, HEAD))
_CRLF = "CRLF"
_MARK = "\ufeff"


def without_mark(text: str, root: Node) -> str:
    """Return a text without a byte-order mark; note in the root of its tree that there was one."""
    if text.startswith(_MARK):
        root.properties[BOM] = True
    return text.removeprefix(_MARK)


def with_mark(text: str, root: Node) -> str:
    """Return a text with the byte-order mark that the root of its tree notes."""
    return _MARK + text if root.properties.get(BOM) is True else text


def with_line_feeds(text: str, root: Node) -> str:
    """Return a text with LF for CR LF if no line ends otherwise; note it in the root of its tree."""
    if "\r\n" not in text or text.count("\r\n") != text.count("\n"):
        return text
    root.properties[LINE_ENDS] = _CRLF
    return text.replace("\r\n", "\n")


def with_own_ends(text: str, root: Node) -> str:
    """Return a text with the line ends that the root of its tree notes."""
    return text.replace("\n", "\r\n") if root.properties.get(LINE_ENDS) == _CRLF else text


def end_of(line: str) -> str:
    """Return how a line ends.

    >>> end_of("a\\r\\n"), end_of("a")
    ('\\r\\n', '')
    """
    return line[len(line.rstrip("\r\n")) :]


def note_ends(node: Node, lines: Sequence[str]) -> None:
    """Note in a node how its lines end, apart from its text, if one ends with a CR."""
    ends = [end_of(line) for line in lines]
    if any("\r" in end for end in ends):
        node.properties[OWN_ENDS] = ends


def joined(node: Node, lines: Sequence[str]) -> str:
    """Return lines that end with LF with the ends that a node notes, if it notes as many."""
    ends = node.properties.get(OWN_ENDS)
    if not isinstance(ends, list) or len(ends) != len(lines) or any(end not in ("", "\n") for end in map(_plain, ends)):
        return "".join(lines)
    return "".join(line.removesuffix("\n") + end for line, end in zip(lines, ends, strict=True))


def _plain(end: object) -> object:
    return end.lstrip("\r") if isinstance(end, str) else end
