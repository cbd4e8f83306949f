"""Results of reading outlines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from recollect.arguments.checks import json_form


class TreeEntry(NamedTuple):
    """A node in its tree, without its text.

    Attributes:
        id: Its id.
        parent: The id of its parent; None for a root.
        order: Its rank among its siblings.
        kind: Its type, in folded case.
        title: Its title, or None.
        named: Whether its source gives its ID.
        said: The digest of what it says, in hex.
        form: The digest of the form in which it says it, in hex.
        hash: The hash of the subtree that begins with it, in hex.
    """

    id: str
    parent: str | None
    order: int
    kind: str
    title: str | None
    named: bool
    said: str
    form: str
    hash: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self._asdict()

    @classmethod
    @json_form("an entry of a tree")
    def from_json(cls, data: Mapping[str, Any]) -> TreeEntry:
        """Rebuild it from its JSON form."""
        return cls(**data)
