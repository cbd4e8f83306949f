"""Org-mode as an outline: headlines with TODO states, priorities, tags, planning lines, property drawers and text.

A headline becomes a node of the type HEADLINE. Its properties are those of its drawer and, under Org's names of special
properties, TODO, PRIORITY, TAGS (a list), SCHEDULED, DEADLINE and CLOSED (timestamps as they are written). Everything
else below it, lists, blocks and other drawers included, is its text. What cannot be written back from properties, such
as a drawer with a name twice or an empty one, stays in the text. White space in these lines that writing would not give
is kept beside them (HEAD_AS_WRITTEN) for as long as they say the same: what is changed is written with tags after one
space and without indentation. There are at most 100 stars more than the depth of a headline.

`#+FILETAGS:` lines below the first headline count for the whole file, so the root has their tags as the property
FILETAGS. A byte-order mark and line ends with a CR are properties, too (`line_ends`).

Headlines and drawers are read by Org's syntax (orgmode.org/worg/org-syntax.html), by line: a star at the beginning of a
line always begins a headline, also within a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from recollect.common.regexes import regex
from recollect.facets.outline.text import tags as tags_in
from recollect.facets.outline.text.line_ends import (
    AS_WRITTEN,
    HEAD,
    OWN_ENDS,
    joined,
    note_ends,
    with_line_feeds,
    with_mark,
    with_own_ends,
    without_mark,
)
from recollect.facets.outline.text.nodes import ID, TITLE, Node, copied, lines_of

DOCUMENT, HEADLINE = "DOCUMENT", "HEADLINE"
#: The properties that have a place of their own in a headline.
TODO, PRIORITY, TAGS, LEVEL = "TODO", "PRIORITY", "TAGS", "LEVEL"
#: The tags of the whole file that are below its first headline, a property of the root.
FILE_TAGS = "FILETAGS"
_PLANNED = ("CLOSED", "DEADLINE", "SCHEDULED")
_SPECIAL = frozenset({TODO, PRIORITY, TAGS, LEVEL, TITLE, FILE_TAGS, *AS_WRITTEN, *_PLANNED})
#: The states of tasks, unless a file has others in a #+TODO line.
_STATES = ("TODO", "DONE")
_STATES_LINES = ("#+todo", "#+seq_todo", "#+typ_todo")
#: How many levels a headline may leave out. More make a text of nothing but stars.
_MOST_LEFT_OUT = 100
_BLANKS = " \t"
_COOKIE = regex(r"\[#([A-Za-z0-9]{1,2})\] ?")
_TAG = regex(r"[\w@#%]++")


def parse(text: str) -> Node:
    """Return the tree of an Org file. Its root is a node of the type DOCUMENT, with the text above all headlines.

    >>> node = parse("* TODO Call Bob :work:\\n:PROPERTIES:\\n:ID: b1\\n:END:\\nAbout the boat.\\n").contents[0]
    >>> node.id, node.title, node.properties["TODO"], node.properties["TAGS"], node.raw_content
    ('b1', 'Call Bob', 'TODO', ['work'], 'About the boat.\\n')
    """
    root = Node(DOCUMENT)
    lines = lines_of(with_line_feeds(without_mark(text, root), root))
    heads = [at for at, line in enumerate(lines) if _stars(line)]
    states = _states(lines)
    above_all = lines[: heads[0] if heads else len(lines)]
    _note_head(root, 0, above_all[: _read_body(root, above_all, first=0)])
    # The stars that a headline has, the level that it is written with, and the headline.
    path: list[tuple[int, int, Node]] = [(0, 0, root)]
    for at, end in pairwise([*heads, len(lines)]):
        stars = _stars(lines[at])
        node = Node(HEADLINE)
        _read_headline(node, lines[at].rstrip("\r\n")[stars + 1 :], states)
        while path[-1][0] >= stars:
            path.pop()
        above, level = path[-1][1], min(stars, len(path) + _MOST_LEFT_OUT)
        if level != above + 1:
            node.properties[LEVEL] = level  # levels were left out
        _note_head(node, level, lines[at : at + _read_body(node, lines[at:end], first=1)])
        if not lines[at].endswith("\n"):
            node.raw_content = None  # the file ends with the title
        path[-1][2].contents.append(node)
        path.append((stars, level, node))
    root.properties.update(_file_tags(root))
    return root


def document_of(tree: Node) -> Node:
    """Return the document as which a tree is written: itself, or one that has it as its only headline.

    That headline is of the first level, and the text above it names the states of tasks that are not TODO and DONE. The
    lines of a headline that is written by itself have no white space of their own and end with LF, those of its text
    are as they were.
    """
    if tree.type == DOCUMENT:
        document = Node(DOCUMENT, _without(tree, FILE_TAGS), tree.raw_content, tree.contents)
    else:
        states = dict.fromkeys(str(node.properties[TODO]) for node in tree.walk() if node.properties.get(TODO))
        above = "" if set(states) <= set(_STATES) else f"#+TODO: {' '.join(states)}\n"
        only = copied(tree, lambda node: _without(node, HEAD, OWN_ENDS, *([LEVEL] if node is tree else [])))
        document = Node(DOCUMENT, {}, above, [only])
    document.properties.update(_file_tags(document))
    return document


def _without(node: Node, *names: str) -> dict[str, Any]:
    return {name: value for name, value in node.properties.items() if name not in names}


def write(root: Node) -> str:
    """Return the text of a tree, from which `parse` reads the same tree.

    Nodes of other types are written as headlines, too.
    """
    out: list[str] = []
    for node, level in _levelled(root):
        if out and out[-1] and not out[-1].endswith("\n"):
            out.append("\n")
        out.append(_written(node, level))
    text = "".join(out)
    return with_mark(with_own_ends(text, root), root) if root.type == DOCUMENT else text


def _levelled(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield each node with the level that it is written with, before its children; 0 for a document."""
    waiting = [(root, 0, 0)]
    while waiting:
        node, above, depth = waiting.pop()
        level = 0
        if node is not root or root.type != DOCUMENT:
            own, depth = node.properties.get(LEVEL), depth + 1
            level = own if isinstance(own, int) and above < own <= depth + _MOST_LEFT_OUT else above + 1
        yield node, level
        waiting += [(child, level, depth) for child in reversed(node.contents)]


def _file_tags(root: Node) -> dict[str, list[str]]:
    """Return the property FILETAGS of a root, if it has one."""
    below = [tag for node in root.walk() if node is not root for tag in tags_in.of_lines(node.raw_content or "")]
    return {FILE_TAGS: list(dict.fromkeys(below))} if below else {}


def _stars(line: str) -> int:
    """Return how many stars a headline has; 0 for a line that is none."""
    rest = line.lstrip("*")
    return len(line) - len(rest) if rest.startswith(" ") else 0


def _states(lines: list[str]) -> frozenset[str]:
    """Return the states of tasks that the lines of a file name, or else TODO and DONE."""
    keywords = [line.lstrip(_BLANKS).partition(":") for line in lines if line.lstrip(_BLANKS).startswith("#+")]
    named = [rest for name, _, rest in keywords if name.lower() in _STATES_LINES]
    words = " ".join(named).replace("|", " ").split()
    # A word may have a key for its selection behind it: "NEXT(n)".
    plain = [word.partition("(")[0] if word.endswith(")") else word for word in words]
    return frozenset(filter(None, plain)) or frozenset(_STATES)


def _read_headline(node: Node, text: str, states: frozenset[str]) -> None:
    """Read what follows the stars: "TODO [#A] Title :tag:"."""
    word, _, rest = text.partition(" ")
    if word in states:
        node.properties[TODO], text = word, rest
    if found := _COOKIE.match(text):
        node.properties[PRIORITY], text = found[1], text[found.end() :]
    plain = text.rstrip("\r" + _BLANKS)
    start = max(plain.rfind(blank) for blank in _BLANKS) + 1
    if tags := _tags(plain[start:]):
        node.properties[TAGS], text = tags, plain[:start].rstrip(_BLANKS)
    node.properties[TITLE] = text


def _tags(word: str) -> list[str]:
    """Return the tags of a word such as ":work:private:"; [] if it is none."""
    before, *tags, after = word.split(":") if ":" in word else ("", "")
    return tags if not before and not after and all(map(_TAG.fullmatch, tags)) else []


def _headline(node: Node) -> str:
    state, priority, tags = (node.properties.get(name) for name in (TODO, PRIORITY, TAGS))
    parts = [str(state)] if state else []
    parts += [f"[#{priority}]"] if priority else []
    parts += [node.title] if node.title else []
    parts += [f":{':'.join(map(str, tags))}:"] if tags else []
    return " ".join(parts)


def _read_body(node: Node, lines: list[str], *, first: int) -> int:
    """Read what follows a title: the planning line of a headline, a drawer of properties, and text.

    Returns the number of lines above the text.

    Args:
        lines: The title and all lines up to the next one.
        first: The first line after the title: 1, or 0 for a document, which has none.
    """
    at = first
    if first and len(lines) > at and (plans := _plans(lines[at])):
        node.properties.update(plans)
        at += 1
    end = _end_of_drawer(lines, at)
    if end is not None:
        found = [each for line in lines[at + 1 : end] if (each := _property(line))]
        names = [name.upper() for name, _ in found]
        if names and len(set(names)) == len(names) and not _SPECIAL.intersection(names):
            node.properties.update((ID if name.upper() == ID else name, value) for name, value in found)
            at = end + 1
    node.raw_content = "".join(lines[at:])
    note_ends(node, lines[:at])
    return at


def _note_head(node: Node, level: int, lines: list[str]) -> None:
    """Note the lines above the text of a node, with LF as their ends, if they would be written in another way."""
    if level and _stars(lines[0]) != level:
        return  # with fewer stars, it is another headline
    head = "\n".join(line.rstrip("\r\n") for line in lines)
    if lines and (lines[-1].endswith("\n") or (level and len(lines) == 1)):  # a title may end the file
        head += "\n"
    if "".join(_head(node, level)) != head:
        node.properties[HEAD] = head


def _noted_head(node: Node, level: int) -> list[str] | None:
    """Return the noted lines above the text of a node, if they still say what its properties do; otherwise None."""
    noted = node.properties.get(HEAD)
    if not isinstance(noted, str) or (level and _stars(noted) != level):
        return None
    lines = [f"{line}\n" for line in noted.removesuffix("\n").split("\n")]
    read = Node(node.type)
    if level:
        state = node.properties.get(TODO)
        _read_headline(read, lines[0][level + 1 : -1], frozenset([str(state)] if state else ()))
    if _read_body(read, lines, first=1 if level else 0) != len(lines):
        return None
    said = {name: value for name, value in node.properties.items() if name not in (LEVEL, FILE_TAGS, *AS_WRITTEN)}
    if read.properties != said:
        return None
    if not noted.endswith("\n") and not node.raw_content:
        lines[-1] = lines[-1].removesuffix("\n")
    return lines


def _plans(line: str) -> dict[str, str]:
    """Return the timestamps of a planning line by their names; {} if it is none, or has a name twice."""
    out: dict[str, str] = {}
    rest = line.strip("\r\n" + _BLANKS)
    while rest:
        name, _, rest = rest.partition(":")
        rest = rest.lstrip(_BLANKS)
        size = _size_of_stamp(rest)
        if name not in _PLANNED or name in out or not size:
            return {}
        if rest.startswith("--", size) and (second := _size_of_stamp(rest[size + 2 :])):
            size += 2 + second
        out[name], rest = rest[:size], rest[size:].lstrip(_BLANKS)
    return out


def _size_of_stamp(text: str) -> int:
    """Return the size of the timestamp at the beginning of a text, such as "<2026-01-01>"; 0 if there is none."""
    open_, close = text[:1], {"<": ">", "[": "]"}.get(text[:1])
    end = text.find(close) if close else -1
    return end + 1 if end > 1 and open_ not in text[1:end] else 0


def _end_of_drawer(lines: list[str], at: int) -> int | None:
    """Return the last line of the drawer of properties that begins at a line; None if there is none."""
    if at >= len(lines) or not _is_line(lines[at], ":properties:"):
        return None
    for end in range(at + 1, len(lines)):
        if _is_line(lines[end], ":end:"):
            return end
        if not _property(lines[end]):
            return None
    return None


def _is_line(line: str, sign: str) -> bool:
    return line.strip("\r\n" + _BLANKS).lower() == sign


def _property(line: str) -> tuple[str, str] | None:
    """Return the name and the value of a line ":NAME: value"; None if it is no such line, or adds to a value."""
    text = line.strip("\r\n" + _BLANKS)
    name, colon, value = text[1:].partition(":")
    if not text.startswith(":") or not colon or name.split() != [name] or "+" in (name[0], name[-1]):
        return None
    return (name, value.strip(_BLANKS)) if not value or value[0] in _BLANKS else None


def _written(node: Node, level: int) -> str:
    """Return the text of a node without its children; of a document at level 0, what is above all headlines."""
    lines = _noted_head(node, level) or _head(node, level)
    if level and len(lines) == 1 and node.raw_content is None:
        lines[0] = lines[0].removesuffix("\n")  # the file ends with the title
    return joined(node, lines) + (node.raw_content or "")


def _head(node: Node, level: int) -> list[str]:
    """Return the lines above the text of a node."""
    lines = [f"{'*' * level} {_headline(node)}\n"] if level else []
    plans = [f"{name}: {value}" for name, value in node.properties.items() if name in _PLANNED]
    if plans and level:
        lines.append(" ".join(plans) + "\n")
    drawer = {name: value for name, value in node.properties.items() if name not in _SPECIAL}
    if drawer:
        own = [f":{name}: {value}\n" if value != "" else f":{name}:\n" for name, value in drawer.items()]
        lines += [":PROPERTIES:\n", *own, ":END:\n"]
    return lines
