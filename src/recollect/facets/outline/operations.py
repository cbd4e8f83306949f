"""The operations that read outlines: trees, and a version of a node. They are executed on the reserved namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from recollect.arguments.checks import check_count, check_text
from recollect.arguments.json_form import is_result
from recollect.common.regexes import regex
from recollect.errors import InvalidArgumentError
from recollect.operations.base import READ, Operation

_HASH = regex("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class ReadTree(Operation, name="read_tree", right=READ, result="list[TreeEntry]"):
    """Read a node and all below it, without their texts. The result is a list of `TreeEntry`, parents first.

    Attributes:
        id: The id of the node; None: all outlines.
        depth: How many levels below the node, or which levels of the outlines: 0 gives the node, or no more than the
            roots. None: all.
        expect: Raise ConflictError unless the subtree has this hash ("absent": unless there is no such node), so that
            a batch that begins with it writes only if the subtree has not changed since it was read.
    """

    id: str | None = None
    depth: int | None = None
    expect: str | None = None

    def __post_init__(self) -> None:
        if self.id is not None:
            check_text("id", self.id)
        if self.depth is not None:
            check_count("depth", self.depth, least=0)
        if self.expect is not None:
            check_text("expect", self.expect)
            if self.id is None:
                raise InvalidArgumentError("expect", self.expect, "requires the id of a node")


@dataclass(frozen=True, kw_only=True)
class ReadVersion(Operation, name="read_version", right=READ, result="Record | None"):
    """Read a node in the version with a hash. The result is its record, or None.

    None if no node had this version, or its content was erased.

    Attributes:
        hash: The hash of the version as the log has it, or that of the record, as 64 hex digits.
    """

    hash: str

    def __post_init__(self) -> None:
        if not isinstance(self.hash, str) or not _HASH.fullmatch(self.hash):
            raise InvalidArgumentError("hash", self.hash, "must be 64 hex digits")


# Results of reading outlines.


@is_result("an entry of a tree")
class TreeEntry(NamedTuple):
    """A node in its tree, without its text.

    Attributes:
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
