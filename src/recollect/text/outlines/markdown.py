"""Markdown as an outline: each heading with the text below it, lists and code included, and the front matter.

A heading becomes a node of the type HEADLINE with its plain title; the property HEADING is its source where that says
more than the title and the depth. The front matter is the property FRONT_MATTER of the root, word for word. Writing
gives the same text again, to the byte.
"""

from __future__ import annotations

from recollect.text.markdown import front_matter_end, sections
from recollect.text.outlines.nodes import TITLE, Node, lines_of
from recollect.text.outlines.org import DOCUMENT, HEADLINE, LEVEL

FRONT_MATTER, HEADING = "FRONT_MATTER", "HEADING"
_DEEPEST = 6


def parse(text: str) -> Node:
    """Return the tree of a Markdown text. Its root is a node of the type DOCUMENT, with the text above all headings.

    >>> root = parse("Intro\\n\\n# Boats\\n\\nTwo *boats*.\\n\\n## Sails\\n")
    >>> root.raw_content, root.contents[0].title, root.contents[0].raw_content
    ('Intro\\n\\n', 'Boats', '\\nTwo *boats*.\\n\\n')
    >>> [child.title for child in root.contents[0].contents]
    ['Sails']
    """
    kept = lines_of(text)
    plain = [line.rstrip("\n").replace("\r", " ").replace("\0", "\ufffd") for line in kept]
    start = front_matter_end(plain) if plain else 0
    root = Node(DOCUMENT, raw_content="")
    if start:
        root.properties[FRONT_MATTER] = "".join(kept[:start])
    path: list[tuple[int, Node]] = [(0, root)]
    for each in sections(plain, start) if start < len(plain) else []:
        body = "".join(kept[each.body : each.end])
        if not each.level:
            root.raw_content = body
            continue
        node = Node(HEADLINE, {TITLE: each.title}, body)
        while path[-1][0] >= each.level:
            path.pop()
        source = "".join(kept[each.first : each.body])
        if source != _heading(each.level, each.title):
            node.properties[HEADING] = source
        if each.level != path[-1][0] + 1:
            node.properties[LEVEL] = each.level
        path[-1][1].contents.append(node)
        path.append((each.level, node))
    return root


def write(root: Node) -> str:
    """Return the text of a tree, from which `parse` reads the same tree. More than six levels are written as six."""
    out: list[str] = []
    waiting = [(root, 0)]
    while waiting:
        node, above = waiting.pop()
        if node.type == DOCUMENT and not above:
            out += [str(node.properties.get(FRONT_MATTER, "")), node.raw_content or ""]
            waiting += [(child, 0) for child in reversed(node.contents)]
            continue
        own = node.properties.get(LEVEL)
        level = own if isinstance(own, int) and above < own <= _DEEPEST else min(above + 1, _DEEPEST)
        if out and out[-1] and not out[-1].endswith("\n"):
            out.append("\n")
        source = node.properties.get(HEADING)
        out += [source if isinstance(source, str) else _heading(level, node.title or ""), node.raw_content or ""]
        waiting += [(child, level) for child in reversed(node.contents)]
    return "".join(out)


def _heading(level: int, title: str) -> str:
    return f"{'#' * level} {title}".rstrip() + "\n"
