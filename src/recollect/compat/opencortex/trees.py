"""Trees as editors send them, also with the keywords of Lisp for names: `:RAW-CONTENT` is `raw_content`.

>>> tree = {"type": "HEADLINE", "properties": {"ID": "a", "TITLE": "Boats"}, "contents": [
...     "All boats.", {":TYPE": "HEADLINE", ":PROPERTIES": {":TITLE": "Sails"}}]}
>>> find_headline_missing_id(tree)
{':TYPE': 'HEADLINE', ':PROPERTIES': {':TITLE': 'Sails'}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.facets.outline.text.nodes import ID, MAX_DEPTH, TITLE, Node, from_json

#: The type of a headline, in folded case.
HEADLINE = "headline"


def find_headline_missing_id(tree: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first headline of a tree whose ID is missing or blank, in the order of the text, or None.

    Args:
        tree: {"type", "properties", "raw_content", "contents"}, as `ingest_ast` reads it.

    Raises:
        InvalidArgumentError: The value is not such a tree.
        ImportFormatError: It contains itself.

    Cost:
        O(nodes).
    """
    above: set[int] = set()  # the nodes whose contents are being read
    waiting: list[tuple[Any, bool]] = [(tree, False)]
    while waiting:
        node, is_read = waiting.pop()
        if is_read:
            above.remove(id(node))
            continue
        fields = with_plain_names(node) if isinstance(node, Mapping) else {}
        kind, properties, contents = (fields.get(name) for name in ("type", "properties", "contents"))
        if (
            not isinstance(kind, str)
            or not isinstance(properties, Mapping | None)
            or not isinstance(contents, Sequence | None)
            or isinstance(contents, (str, bytes))
        ):
            raise InvalidArgumentError("tree", node, "must be an object with a type, properties and contents")
        if id(node) in above:
            raise ImportFormatError("the outline", "", "contains itself")
        known = with_plain_names(properties or {}, of_property).get(ID)
        if plain(kind).casefold() == HEADLINE and not (isinstance(known, str) and known.strip()):
            found: Mapping[str, Any] = node
            return found
        above.add(id(node))
        waiting.append((node, True))
        waiting += [(each, False) for each in reversed(contents or ()) if not isinstance(each, str)]
    return None


def as_node(tree: Mapping[str, Any]) -> Node:
    """Return a tree as a node. A headline with a title and without a text has an empty text.

    So the content of each headline is its title, a line break and its text.

    Raises:
        InvalidArgumentError: The value is not an object.
        ImportFormatError: It is not such a tree; the message says where.
    """
    if not isinstance(tree, Mapping):
        raise InvalidArgumentError("ast", tree, "must be an object with a type")
    root = from_json(_with_plain_trees(tree))
    for node in root.walk():
        if node.type.casefold() == HEADLINE and node.title is not None and node.raw_content is None:
            node.raw_content = ""
    return root


def _with_plain_trees(tree: Mapping[str, Any]) -> Any:
    """Return a tree with the names of JSON in all of its nodes. What is no node stays, and is judged by its reader."""
    top: list[Any] = []
    waiting: list[tuple[Any, list[Any], int]] = [(tree, top, 1)]
    while waiting:
        value, siblings, depth = waiting.pop()
        if not isinstance(value, Mapping):
            siblings.append(value)
            continue
        if depth > MAX_DEPTH:
            raise ImportFormatError("the outline", "", f"is deeper than {MAX_DEPTH} nodes")
        node = with_plain_names(value)
        if isinstance(node.get("type"), str):
            node["type"] = plain(node["type"])
        if isinstance(node.get("properties"), Mapping):
            node["properties"] = with_plain_names(node["properties"], of_property)
        contents = node.get("contents")
        if isinstance(contents, Sequence) and not isinstance(contents, (str, bytes)):
            node["contents"] = []
            waiting += [(each, node["contents"], depth + 1) for each in reversed(contents)]
        siblings.append(node)
    return top[0]


def plain(name: str) -> str:
    """Return a keyword of Lisp without its colon."""
    return name.removeprefix(":")


def of_property(name: str) -> str:
    """Return the name of a property as it is stored: without a colon, and the id and the title in upper case.

    >>> of_property(":title"), of_property(":TODO"), of_property("effort")
    ('TITLE', 'TODO', 'effort')
    """
    name = plain(name)
    return name.upper() if name.upper() in (ID, TITLE) else name


def _of_field(name: str) -> str:
    return plain(name).lower().replace("-", "_")


def with_plain_names(given: Mapping[Any, Any], renamed: Callable[[str], str] = _of_field) -> dict[Any, Any]:
    """Return an object with other names.

    Raises:
        ImportFormatError: Two names become one, and have different values.
    """
    out: dict[Any, Any] = {}
    for name, value in given.items():
        new = renamed(name) if isinstance(name, str) else name
        if new in out and out[new] != value:
            raise ImportFormatError("the outline", "", f"has {new} twice, with values that differ")
        out[new] = value
    return out
