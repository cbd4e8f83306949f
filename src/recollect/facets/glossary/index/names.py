"""The names that occur in a question, all of them: also those within others, which the automaton leaves out.

A trie over tokens, changed with each term, so that a question after a change costs no more than any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Depth of the trie, in tokens. A longer name whose beginning occurs is searched for as a whole.
DEPTH = 32
#: The key of the names that end at a node, or that are longer. No token is empty.
_HERE = ""

Spelt = tuple[str, ...]


class NameTrie:
    """Names, as sequences of tokens. Changed in place: a caller locks it.

    >>> names = NameTrie()
    >>> names.add(("private", "data"))
    >>> names.add(("data",))
    >>> sorted(names.within(["my", "private", "data"]))
    [('data',), ('private', 'data')]
    """

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._numbers: dict[Spelt, int] = {}  # as a tuple computes its hash each time that it is looked up
        self._next = 0

    def add(self, name: Spelt) -> None:
        """Insert a name of at least one token."""
        node = self._root
        for token in name[:DEPTH]:
            node = node.setdefault(token, {})
        node.setdefault(_HERE, {})[self._next] = name
        self._numbers[name] = self._next
        self._next += 1

    def remove(self, name: Spelt) -> None:
        """Remove a name that was inserted."""
        path = [self._root]
        for token in name[:DEPTH]:
            path.append(path[-1][token])
        del path[-1][_HERE][self._numbers.pop(name)]
        if not path[-1][_HERE]:
            del path[-1][_HERE]
        for token, above, node in zip(reversed(name[:DEPTH]), reversed(path[:-1]), reversed(path[1:]), strict=True):
            if node:
                return
            del above[token]

    def within(self, tokens: Sequence[str]) -> list[Spelt]:
        """Return the names that occur in a sequence of tokens, each once.

        Cost:
            `DEPTH` steps for each token at most, and one search of the tokens for each longer name that may occur.
        """
        said = tuple(tokens)
        found: dict[int, Spelt] = {}
        for start in range(len(said)):
            node = self._root
            for token in said[start : start + DEPTH]:
                node = node.get(token)  # type: ignore[assignment]
                if node is None:
                    break
                if _HERE in node:
                    found |= node[_HERE]
        longer = [name for name in found.values() if len(name) > DEPTH]
        return [name for name in found.values() if len(name) <= DEPTH] + _occurring(longer, said)


def _occurring(names: list[Spelt], said: Spelt) -> list[Spelt]:
    """Return those of some names that occur in tokens: as texts of one character for each token, which are searched."""
    symbols: dict[str, str] = {}
    written = ["".join(symbols.setdefault(token, chr(len(symbols) + 1)) for token in name) for name in names]
    text = "".join(symbols.get(token, "\0") for token in said)
    return [name for name, symbol in zip(names, written, strict=True) if symbol in text]
