"""The tags that a source gives a node: in attributes, in `#+FILETAGS:` lines and in front matter.

Tags decide what is private. So every form is read in which editors write them, and where front matter cannot be parsed,
each of its words is a tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.common.regexes import regex
from recollect.text.unicode import fold

#: What separates tags: white space, control characters, and the signs of lists in Org, YAML, TOML and JSON.
_BETWEEN = r"\s\x00-\x1f\x7f-\x9f:,;|<>()\[\]{}\"'`"
#: A tag; "#" and "-" before it are signs of a list.
WORD = regex(rf"[^{_BETWEEN}#-][^{_BETWEEN}]*+")
_FILE_TAGS, _TAGS = "#+filetags", "tags"
#: Maximum size of front matter that is parsed, in characters, and its maximum depth.
_LONGEST, _DEEPEST = 16_384, 20
_FENCES = ("---", "+++", "...")


def words(text: str) -> list[str]:
    """Return the tags of a text.

    >>> words(":work:private:"), words("[work, '#private']"), words("work private")
    (['work', 'private'], ['work', 'private'], ['work', 'private'])
    """
    return WORD.findall(text)


def of_value(value: Any) -> list[str]:
    """Return the tags of a JSON value: of all texts in it, the keys of objects included.

    >>> of_value(["a", ":b:c:", {"d": True}])
    ['a', 'b', 'c', 'd']
    """
    found: list[str] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            found += words(each)
        elif isinstance(each, Mapping):
            waiting += reversed([part for item in each.items() for part in item])
        elif isinstance(each, (list, tuple)):
            waiting += reversed(each)
    return found


def of_lines(text: str) -> list[str]:
    """Return the tags of the `#+FILETAGS:` lines of a text, in any case and with any indentation.

    >>> of_lines("  #+filetags: :a:b:\\nx\\n")
    ['a', 'b']
    """
    if _FILE_TAGS not in text.lower():
        return []
    parts = [line.lstrip().partition(":") for line in text.split("\n")]
    return [tag for name, _, rest in parts if name.lower() == _FILE_TAGS for tag in words(rest)]


def of_front_matter(front: str) -> list[str]:
    """Return the tags of front matter in YAML or TOML: all that is below a key `tags`, at any depth, each once.

    Comments beside them count, as "#private" is one in YAML. If it is longer than 16,384 characters, deeper than 20
    levels or not in its format, and has the word "tag", each of its words is a tag.

    >>> of_front_matter("---\\ntitle: x\\ntags: [a,\\n  b]\\n---\\n")
    ['a', 'b']

    Args:
        front: The front matter, with or without the lines around it.
    """
    lines = front.split("\n")
    is_toml = lines[0].strip() == "+++"
    if lines[0].strip() in _FENCES:
        del lines[0]
    while lines and lines[-1].strip() in ("", *_FENCES):
        del lines[-1]
    inside = "\n".join(lines) + "\n"
    found: list[str] | None = None
    if len(inside) <= _LONGEST:
        found = _of_toml(inside) if is_toml else _of_yaml(inside)
    if found is None:
        found = words(inside) if "tag" in fold(inside) else []
    return list(dict.fromkeys(found))


def _of_toml(text: str) -> list[str] | None:
    """Return the tags of a text in TOML; None if it is not TOML."""
    import tomllib

    try:
        waiting: list[Any] = [tomllib.loads(text)]
    except (ValueError, RecursionError):
        return None
    found: list[str] = []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found += [tag for key, value in each.items() if _is_tags(key) for tag in of_value(value)]
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return found


def _of_yaml(text: str) -> list[str] | None:
    """Return the tags of a mapping in YAML; None if the text is no such thing."""
    import yaml

    try:
        if _is_too_deep(text):  # composing is recursive
            return None
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError):  # the last two for a character such as "\UFFFFFFFF"
        return None
    if not isinstance(root, yaml.MappingNode):
        return None if text.strip() else []
    found: list[str] = []
    for node in _nodes(root):
        if not isinstance(node, yaml.MappingNode):
            continue
        bounds = [key.start_mark.index for key, _ in node.value] + [node.end_mark.index]
        for (key, value), end in zip(node.value, bounds[1:], strict=True):
            if isinstance(key.value, str) and _is_tags(key.value):
                found += words(text[key.end_mark.index : end])  # comments included
                found += [tag for each in _nodes(value) if isinstance(each.value, str) for tag in words(each.value)]
    return found


def _is_too_deep(text: str) -> bool:
    """Return whether a text in YAML is deeper than what is parsed. It is not read further than to that depth."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            return True
    return False


def _nodes(root: Any) -> list[Any]:
    """Return a YAML node and all below it, each once: an alias is the node that it names."""
    found: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        if not isinstance(node.value, str):
            waiting += [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]
    return list(found.values())


def _is_tags(key: str) -> bool:
    return fold(key.strip()) == _TAGS
