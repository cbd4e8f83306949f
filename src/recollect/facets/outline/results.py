"""Results of reading outlines."""

from __future__ import annotations

from typing import NamedTuple

from recollect.arguments.json_form import is_result


@is_result("an entry of a tree")
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
