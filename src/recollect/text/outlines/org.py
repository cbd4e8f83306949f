"""Org-mode as an outline: headlines with TODO states, priorities, tags, planning lines, property drawers and text.

A headline becomes a node of the type HEADLINE. Its properties are those of its drawer and, under Org's names of special
properties, TODO, PRIORITY, TAGS (a list), SCHEDULED, DEADLINE and CLOSED (timestamps as they are written). Everything
else below it, lists, blocks and other drawers included, is its text. What cannot be written back from properties, such
as a drawer with a name twice, stays in the text. Writing gives one form of white space: tags after one space, and
drawers and planning lines without indentation.

Headlines and drawers are read by Org's syntax (orgmode.org/worg/org-syntax.html), by line: a star at the beginning of a
line always begins a headline, also within a block.
"""

from __future__ import annotations

import re
from itertools import pairwise

from recollect.text.outlines.nodes import ID, TITLE, Node, lines_of

DOCUMENT, HEADLINE = "DOCUMENT", "HEADLINE"
#: The properties that have a place of their own in a headline.
TODO, PRIORITY, TAGS, LEVEL = "TODO", "PRIORITY", "TAGS", "LEVEL"
_PLANNED = ("CLOSED", "DEADLINE", "SCHEDULED")
_SPECIAL = frozenset({TODO, PRIORITY, TAGS, LEVEL, TITLE, *_PLANNED})
#: The states of tasks, unless a file has others in a #+TODO line.
_STATES = ("TODO", "DONE")
_STARS = re.compile(r"(\*+) (.*)", re.DOTALL)
_STATES_LINE = re.compile(r"#\+(?:TODO|SEQ_TODO|TYP_TODO):(.*)", re.IGNORECASE)
_COOKIE = re.compile(r"\[#([A-Za-z0-9]{1,2})\] ?(.*)", re.DOTALL)
_TAGGED = re.compile(r"(?:(.*?)[ \t]+|):((?:[\w@#%]+:)+)[ \t]*", re.DOTALL)
_STAMP = r"(?:<[^<>\n]+>|\[[^\[\]\n]+\])(?:--(?:<[^<>\n]+>|\[[^\[\]\n]+\]))?"
_PLANNING = re.compile(rf"[ \t]*(?:(?:CLOSED|DEADLINE|SCHEDULED):[ \t]*{_STAMP}[ \t]*)+")
_PLAN = re.compile(rf"(CLOSED|DEADLINE|SCHEDULED):[ \t]*({_STAMP})")
_DRAWER = re.compile(r"[ \t]*:PROPERTIES:[ \t]*", re.IGNORECASE)
_END = re.compile(r"[ \t]*:END:[ \t]*", re.IGNORECASE)
_PROPERTY = re.compile(r"[ \t]*:([^\s:+](?:[^\s:]*[^\s:+])?):(?:[ \t]+(.*?))?[ \t]*")


def parse(text: str) -> Node:
    """Return the tree of an Org file. Its root is a node of the type DOCUMENT, with the text above all headlines.

    >>> node = parse("* TODO Call Bob :work:\\n:PROPERTIES:\\n:ID: b1\\n:END:\\nAbout the boat.\\n").contents[0]
    >>> node.id, node.title, node.properties["TODO"], node.properties["TAGS"], node.raw_content
    ('b1', 'Call Bob', 'TODO', ['work'], 'About the boat.\\n')
    """
    lines = lines_of(text)
    heads = [at for at, line in enumerate(lines) if _STARS.fullmatch(line.rstrip("\n"))]
    states = _states(lines)
    root = Node(DOCUMENT)
    _read_body(root, lines[: heads[0] if heads else len(lines)], planned=False)
    path: list[tuple[int, Node]] = [(0, root)]
    for at, end in pairwise([*heads, len(lines)]):
        found = _STARS.fullmatch(lines[at].rstrip("\n"))
        assert found is not None
        level = len(found[1])
        node = Node(HEADLINE)
        _read_headline(node, found[2], states)
        while path[-1][0] >= level:
            path.pop()
        if level != path[-1][0] + 1:
            node.properties[LEVEL] = level  # levels were left out
        _read_body(node, lines[at + 1 : end], planned=True)
        if not lines[at].endswith("\n"):
            node.raw_content = None  # the file ends with the title
        path[-1][1].contents.append(node)
        path.append((level, node))
    return root


def write(root: Node) -> str:
    """Return the text of a tree, from which `parse` reads the same tree.

    Nodes of other types are written as headlines, too.
    """
    out = [_body(root, 0)] if root.type == DOCUMENT else []
    levels = {id(root): 0} if root.type == DOCUMENT else {}
    above = {id(child): node for node in root.walk() for child in node.contents}
    for node in root.walk():
        if id(node) in levels:
            continue
        parent = above.get(id(node))
        own = node.properties.get(LEVEL)
        least = 1 + (levels[id(parent)] if parent is not None else 0)
        level = own if isinstance(own, int) and own > least else least
        levels[id(node)] = level
        if out and out[-1] and not out[-1].endswith("\n"):
            out.append("\n")
        out.append(f"{'*' * level} {_headline(node)}{_body(node, level)}")
    return "".join(out)


def _states(lines: list[str]) -> frozenset[str]:
    named = [found[1] for line in lines if (found := _STATES_LINE.match(line))]
    words = " ".join(named).replace("|", " ").split()
    return frozenset(re.sub(r"\(.*\)$", "", word) for word in words) or frozenset(_STATES)


def _read_headline(node: Node, text: str, states: frozenset[str]) -> None:
    """Read what follows the stars: "TODO [#A] Title :tag:"."""
    word, _, rest = text.partition(" ")
    if word in states:
        node.properties[TODO], text = word, rest
    if found := _COOKIE.fullmatch(text):
        node.properties[PRIORITY], text = found[1], found[2]
    if found := _TAGGED.fullmatch(text):
        node.properties[TAGS], text = found[2].split(":")[:-1], found[1] or ""
    node.properties[TITLE] = text


def _headline(node: Node) -> str:
    state, priority, tags = (node.properties.get(name) for name in (TODO, PRIORITY, TAGS))
    parts = [str(state)] if state else []
    parts += [f"[#{priority}]"] if priority else []
    parts += [node.title] if node.title else []
    parts += [f":{':'.join(map(str, tags))}:"] if tags else []
    return " ".join(parts)


def _read_body(node: Node, lines: list[str], *, planned: bool) -> None:
    """Read what follows a headline: a planning line, a drawer of properties, and text."""
    at = 0
    if planned and lines and _PLANNING.fullmatch(lines[0].rstrip("\n")):
        plans = _PLAN.findall(lines[0])
        if len({name for name, _ in plans}) == len(plans):
            node.properties.update(plans)
            at = 1
    end = _end_of_drawer(lines, at)
    if end is not None:
        found = [_PROPERTY.fullmatch(line.rstrip("\n")) for line in lines[at + 1 : end]]
        names = [each[1].upper() for each in found if each]
        if len(names) == len(found) and len(set(names)) == len(names) and not _SPECIAL.intersection(names):
            node.properties.update((ID if each[1].upper() == ID else each[1], each[2] or "") for each in found if each)
            at = end + 1
    node.raw_content = "".join(lines[at:])


def _end_of_drawer(lines: list[str], at: int) -> int | None:
    """Return the last line of the drawer that begins at a line; None if there is none."""
    if at >= len(lines) or not _DRAWER.fullmatch(lines[at].rstrip("\n")):
        return None
    for end in range(at + 1, len(lines)):
        line = lines[end].rstrip("\n")
        if _END.fullmatch(line):
            return end
        if not _PROPERTY.fullmatch(line):
            return None
    return None


def _body(node: Node, level: int) -> str:
    """Return what follows the title of a headline, or all of a document's own text."""
    out = ["\n"] if level and (node.raw_content is not None or _has_lines(node)) else []
    plans = [f"{name}: {node.properties[name]}" for name in _PLANNED if name in node.properties]
    if plans and level:
        out.append(" ".join(plans) + "\n")
    drawer = {name: value for name, value in node.properties.items() if name not in _SPECIAL}
    if drawer:
        lines = "".join(f":{name}: {value}".rstrip() + "\n" for name, value in drawer.items())
        out.append(f":PROPERTIES:\n{lines}:END:\n")
    return "".join(out) + (node.raw_content or "")


def _has_lines(node: Node) -> bool:
    return any(name not in _SPECIAL or name in _PLANNED for name in node.properties)
