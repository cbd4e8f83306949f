"""JSON texts of outlines, read and written without recursion, as outlines may be deeper than Python recurses."""

from __future__ import annotations

import json
from typing import Any

from recollect.common.regexes import regex
from recollect.facets.outline.text.nodes import Node

_BLANKS = regex(r"[ \t\n\r]*+")
_decoded = json.JSONDecoder().raw_decode


def loads(text: str) -> Any:
    """Return the value of a JSON text of any depth, as `json.loads` does.

    Raises:
        ValueError: It is not JSON.
    """
    text = text.removeprefix("\ufeff")  # which RFC 8259 lets parsers ignore
    try:
        return json.loads(text)
    except RecursionError:
        return _Reader(text).read()


class _Reader:
    """A JSON text that is being read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> Any:
        """Return the value of the text."""
        top: list[Any] = []
        path: list[list[Any] | dict[str, Any]] = [top]
        name = ""
        while True:
            sign = self._next()
            inner: Any = {} if sign == "{" else [] if sign == "[" else None
            value = self._scalar() if inner is None else inner
            holder = path[-1]
            if isinstance(holder, dict):
                holder[name] = value
            else:
                holder.append(value)
            if inner is not None:
                self._at += 1
                path.append(inner)
            is_first = inner is not None
            while len(path) > 1 and self._next() == ("}" if isinstance(path[-1], dict) else "]"):
                self._at += 1
                path.pop()
                is_first = False
            if len(path) == 1:
                if self._next():
                    raise self._wrong("Extra data")
                return top[0]
            if not is_first:
                self._expect(",")
            if isinstance(path[-1], dict):
                if self._next() != '"':
                    raise self._wrong("Expecting property name enclosed in double quotes")
                name = self._scalar()
                self._expect(":")

    def _next(self) -> str:
        """Return the next character that is not blank; "" at the end."""
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _scalar(self) -> Any:
        value, self._at = _decoded(self._text, self._at)
        return value

    def _expect(self, sign: str) -> None:
        if self._next() != sign:
            raise self._wrong(f"Expecting {sign!r} delimiter")
        self._at += 1

    def _wrong(self, why: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(why, self._text, self._at)


def dumps(root: Node) -> str:
    """Return the JSON text of a tree, as `json.dumps` writes it with an indentation of one blank."""
    out: list[str] = []
    # Texts, and nodes with the depth of their braces.
    waiting: list[str | tuple[Node, int]] = [(root, 0)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            out.append(each)
            continue
        node, depth = each
        fields: dict[str, Any] = {"type": node.type, "properties": node.properties}
        if node.raw_content is not None:
            fields["raw_content"] = node.raw_content
        between = "\n" + " " * (depth + 1)
        said = json.dumps(fields, ensure_ascii=False, indent=1).removesuffix("\n}").replace("\n", between[:-1])
        out.append(f'{said},{between}"contents": [')
        steps: list[str | tuple[Node, int]] = []
        for at, child in enumerate(node.contents):
            steps += [f"{',' if at else ''}{between} ", (child, depth + 2)]
        steps.append(f"{between if node.contents else ''}]{between[:-1]}}}")
        waiting += reversed(steps)
    return "".join(out) + "\n"
