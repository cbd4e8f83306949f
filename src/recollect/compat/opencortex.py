"""Two helpers with the names of opencortex: the headline that lacks an ID, and the path of the memory.

    >>> tree = {"type": "HEADLINE", "properties": {"ID": "a", "TITLE": "Boats"}, "contents": [
    ...     {"type": "HEADLINE", "properties": {"TITLE": "Sails"}, "contents": []}]}
    >>> find_headline_missing_id(tree)["properties"]["TITLE"]
    'Sails'

The memory itself is `Memory.outline`, with `without_id` for all nodes that lack an ID.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.errors import ImportFormatError, InvalidArgumentError

_HEADLINE = "headline"


def find_headline_missing_id(tree: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first headline of a tree whose ID is missing or blank, in the order of the text, or None.

    Args:
        tree: {"type", "properties", "raw_content", "contents"}, as `Outline.ingest` reads it.

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
        properties = node.get("properties") if isinstance(node, Mapping) else None
        contents = node.get("contents") if isinstance(node, Mapping) else None
        if (
            not isinstance(node, Mapping)
            or not isinstance(node.get("type"), str)
            or not isinstance(properties, Mapping | None)
            or not isinstance(contents, Sequence | None)
            or isinstance(contents, (str, bytes))
        ):
            raise InvalidArgumentError("tree", node, "must be an object with a type, properties and contents")
        if id(node) in above:
            raise ImportFormatError("the outline", "", "contains itself")
        known = (properties or {}).get("ID")
        if node["type"].casefold() == _HEADLINE and not (isinstance(known, str) and known.strip()):
            found: Mapping[str, Any] = node
            return found
        above.add(id(node))
        waiting.append((node, True))
        waiting += [(each, False) for each in reversed(contents or ())]
    return None


def memory_path(variable: str = "OPENCORTEX_MEMORY") -> Path:
    """Return the path of the memory: the value of an environment variable, or a file in the user's data folder.

    The file need not exist: `recollect.open` starts with an empty memory.

    Args:
        variable: The name of the variable. "~" in its value is the user's folder; an empty one counts as not set.

    Raises:
        InvalidArgumentError: The name is no text, or is empty.
    """
    if not isinstance(variable, str) or not variable:
        raise InvalidArgumentError("variable", variable, "must be the name of an environment variable")
    if value := os.environ.get(variable):
        return Path(value).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("opencortex", appauthor=False)) / "memory.db"
