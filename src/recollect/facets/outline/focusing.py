"""An outline as text for a prompt: one node in focus, it and what is similar to it in full, the rest by title.

    - Boats
      > Mend the sails
        : TODO: TODO
        | They are of cotton.
      - Paint the hull

"-" begins the title of a node and ">" that of the focused one, ":" an attribute and "|" a line of text, each behind two
blanks for each level. Titles and values are one line, so no text can look like another node. Without a focus it is a
skeleton: titles, the uppermost first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from recollect.facets.outline.operations import TreeEntry
from recollect.facets.outline.text.line_ends import AS_WRITTEN
from recollect.facets.outline.text.markdown import FRONT_MATTER, HEADING
from recollect.facets.outline.text.org import LEVEL
from recollect.facets.outline.values import OutlineNode

#: Attributes that say nothing but how the node is written.
_HIDDEN = frozenset((LEVEL, HEADING, FRONT_MATTER)) | AS_WRITTEN
#: What stands for the rest of a text.
_CUT = "[...]"
#: A text of more characters for each token of the budget is cut before it is counted.
_MOST_PER_TOKEN = 100
#: Titles are added until this many in a row do not fit.
_MOST_FAILED = 50


class Focusing:
    """An outline that is being written with a focus.

    Args:
        entries: The nodes that may be shown, each before its children.
        focus: The focused node, one of them; None: no node is.
        max_tokens: The budget, 1 or more.
        size: Returns the size of a part in tokens, not rounded.
    """

    def __init__(
        self, entries: Sequence[TreeEntry], focus: OutlineNode | None, max_tokens: int, size: Callable[[str], float]
    ) -> None:
        self._entries = {entry.id: entry for entry in entries}
        self._focus = focus
        self._left: float = max_tokens
        self._longest = max_tokens * _MOST_PER_TOKEN
        self._size = size
        self._levels: dict[str, int] = {}
        for entry in entries:
            self._levels[entry.id] = self._levels[entry.parent] + 1 if entry.parent in self._levels else 0
        self._lines: dict[str, str] = {}  # of the chosen nodes, in the order in which they were chosen
        self._bodies: dict[str, str] = {}

    def fill(self, similar: Sequence[OutlineNode]) -> None:
        """Choose: the focus, what is above it, what is similar, and titles, the nearest first."""
        if self._focus is not None:
            if not self._add_titles([self._focus.id]):
                return
            self._add_body(self._focus, cut=True)
            for each in self._above(self._focus.id):
                self._add_titles([each])
        for node in similar:
            path = (*reversed(self._above(node.id)), node.id)
            missing = [each for each in path if each not in self._lines]
            if self._add_titles(missing):
                self._add_body(node, cut=False)
        failed = 0
        for each in self._by_distance():
            parent = self._entries[each].parent
            if each not in self._lines and (parent not in self._entries or parent in self._lines):
                failed = 0 if self._add_titles([each]) else failed + 1
                if failed == _MOST_FAILED:
                    return

    def text(self) -> str:
        """Return the text, in the order of the outline."""
        chosen = (self._lines[each] + self._bodies.get(each, "") for each in self._entries if each in self._lines)
        return "".join(chosen).rstrip("\n")

    def shorten(self, tokens: float) -> bool:
        """Remove what was chosen last, about this many tokens; return False if there is nothing left to remove."""
        while tokens > 0 and self._lines:
            last = next(reversed(self._lines))
            body = self._bodies.pop(last, "")
            is_focus = self._focus is not None and last == self._focus.id
            line = "" if is_focus and body else self._lines.pop(last)
            tokens -= max(self._size(line + body), 1)
        return bool(self._lines)

    @property
    def full(self) -> tuple[str, ...]:
        """The nodes whose texts were chosen."""
        return tuple(self._bodies)

    @property
    def titles(self) -> tuple[str, ...]:
        """The nodes of which only the titles were chosen."""
        return tuple(each for each in self._lines if each not in self._bodies)

    def _add_titles(self, ids: Sequence[str]) -> bool:
        """Choose all of some titles, if there is room."""
        lines = {each: self._line(each) for each in ids}
        size = sum(map(self._size, lines.values()))
        if size > self._left:
            return False
        self._left -= size
        self._lines |= lines
        return True

    def _add_body(self, node: OutlineNode, *, cut: bool) -> bool:
        """Choose the attributes and the text of a node, if there is room; or as many of its lines as there is room."""
        indent = "  " * (self._levels[node.id] + 1)
        lines = [f"{indent}: {name}: {value}\n" for name, value in _attributes(node.attributes)]
        text = (node.text or "").strip("\n")
        short = text[: self._longest]
        lines += [f"{indent}| {line}".rstrip() + "\n" for line in short.splitlines()]
        if len(short) < len(text):
            lines.append(f"{indent}| {_CUT}\n")
        whole = "".join(lines)
        if (len(short) < len(text) and not cut) or self._size(whole) > self._left:
            if not cut:
                return False
            end = f"{indent}| {_CUT}\n"
            low = self._most(len(lines), lambda count: "".join(lines[:count]) + end)
            head, line = "".join(lines[:low]), lines[low].rstrip("\n") if low < len(lines) else ""
            part = self._most(len(line), lambda count: f"{head}{line[:count].rstrip()} {_CUT}\n")
            if part > len(indent) + 2:
                whole = f"{head}{line[:part].rstrip()} {_CUT}\n"
            elif low:
                whole = head + end
            else:
                return False
        self._left -= self._size(whole)
        self._bodies[node.id] = whole
        return True

    def _most(self, count: int, text: Callable[[int], str]) -> int:
        """Return the greatest number, up to `count`, of which the text fits; 0 if none does."""
        low, high = 0, count
        while low < high:
            middle = (low + high + 1) // 2
            if self._size(text(middle)) <= self._left:
                low = middle
            else:
                high = middle - 1
        return low

    def _line(self, node_id: str) -> str:
        entry = self._entries[node_id]
        title = f"({entry.kind})" if entry.title is None else " ".join(entry.title.split())
        sign = ">" if self._focus is not None and node_id == self._focus.id else "-"
        return f"{'  ' * self._levels[node_id]}{sign} {title}".rstrip() + "\n"

    def _above(self, node_id: str) -> list[str]:
        """Return the nodes above a node, the nearest first."""
        out: dict[str, None] = {}
        parent = self._entries[node_id].parent
        while parent is not None and parent in self._entries and parent not in out:
            out[parent] = None
            parent = self._entries[parent].parent
        return list(out)

    def _by_distance(self) -> list[str]:
        """Return the nodes by the number of steps from the focus, or from the top; the same number in their order."""
        near: dict[str | None, list[str]] = {}
        for entry in self._entries.values():
            near.setdefault(entry.parent if entry.parent in self._entries else None, []).append(entry.id)
        level = [self._focus.id] if self._focus is not None else list(near.get(None, ()))
        found = dict.fromkeys(level)
        place = {each: number for number, each in enumerate(self._entries)}
        while level:
            parents = (self._entries[each].parent for each in level)
            up = {each for each in parents if each in self._entries}
            reached = {each for node_id in level for each in near.get(node_id, ())} | up
            level = sorted(reached - found.keys(), key=place.__getitem__)
            found |= dict.fromkeys(level)
        return [*found, *(each for each in self._entries if each not in found)]


def _attributes(attributes: Mapping[str, Any]) -> list[tuple[str, str]]:
    shown = ((name, value) for name, value in attributes.items() if name not in _HIDDEN)
    return [
        (" ".join(name.split()), " ".join((value if isinstance(value, str) else json.dumps(value)).split()))
        for name, value in shown
    ]
