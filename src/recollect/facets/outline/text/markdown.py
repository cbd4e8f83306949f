"""Markdown as an outline: each heading with the text below it, lists and code included, and the front matter.

A heading becomes a node of the type HEADLINE with its plain title; the property HEADING is its source where that says
more than the title and the depth. The front matter, in YAML between "---" or in TOML between "+++", is the property
FRONT_MATTER of the root, word for word. Writing gives the same text again, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect.facets.outline.text.line_ends import with_mark, without_mark
from recollect.facets.outline.text.nodes import TITLE, Node, copied, lines_of
from recollect.facets.outline.text.org import DOCUMENT, HEADLINE, LEVEL
from recollect.text.markdown import front_matter_end, sections

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
    root = Node(DOCUMENT, raw_content="")
    kept = lines_of(without_mark(text, root))
    plain = [line.rstrip("\n").replace("\r", " ").replace("\0", "\ufffd") for line in kept]
    start = front_matter_end(plain) if plain else 0
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


def document_of(tree: Node) -> Node:
    """Return the document as which a tree is written: itself, or one that has it as its only heading.

    That heading is of the first level, and the sources of the headings (HEADING) are those of their new levels.
    """
    if tree.type == DOCUMENT:
        return tree
    properties = {name: value for name, value in tree.properties.items() if name != LEVEL}
    document = Node(DOCUMENT, {}, "", [Node(tree.type, properties, tree.raw_content, tree.contents)])
    levels = {id(node): level for node, level in _levelled(document)}
    return copied(document, lambda node: _properties_at(node, levels[id(node)]))


def write(root: Node) -> str:
    """Return the text of a tree, from which `parse` reads the same tree. More than six levels are written as six."""
    out: list[str] = []
    for node, level in _levelled(root):
        if not level:
            out += [str(node.properties.get(FRONT_MATTER, "")), node.raw_content or ""]
            continue
        if out and out[-1] and not out[-1].endswith("\n"):
            out.append("\n")
        source = node.properties.get(HEADING)
        out += [source if isinstance(source, str) else _heading(level, node.title or ""), node.raw_content or ""]
    text = "".join(out)
    return with_mark(text, root) if root.type == DOCUMENT else text


def _levelled(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield each node with the level that it is written with, before its children; 0 for a document."""
    waiting = [(root, 0)]
    while waiting:
        node, above = waiting.pop()
        level = 0
        if node is not root or root.type != DOCUMENT:
            own = node.properties.get(LEVEL)
            level = own if isinstance(own, int) and above < own <= _DEEPEST else min(above + 1, _DEEPEST)
        yield node, level
        waiting += [(child, level) for child in reversed(node.contents)]


def _properties_at(node: Node, level: int) -> dict[str, Any]:
    """Return the properties of a node as it is written at a level."""
    source = node.properties.get(HEADING)
    return {**node.properties, HEADING: _source_at(source, level)} if isinstance(source, str) else node.properties


def _source_at(source: str, level: int) -> str:
    """Return the source of a heading at another level; as it is, if that level cannot be underlined.

    >>> _source_at("### *A*\\n", 1), _source_at("A\\n---\\n", 1)
    ('# *A*\\n', 'A\\n===\\n')
    """
    plain, sign = source.lstrip(" "), {1: "=", 2: "-"}.get(level)
    title, line_feed, underline = source.removesuffix("\n").rpartition("\n")
    if not line_feed and plain.startswith("#"):
        return source[: len(source) - len(plain)] + "#" * level + plain.lstrip("#")
    if not line_feed or not sign:
        return source
    end = "\n" if source.endswith("\n") else ""
    return f"{title}\n{underline.replace('=', sign).replace('-', sign)}{end}"


def _heading(level: int, title: str) -> str:
    return f"{'#' * level} {title}".rstrip() + "\n"
