"""The operation that reads the trees of outlines. It is executed on the reserved namespace that has them."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.operations.base import Operation
from recollect.operations.checks import check_count, check_text


@dataclass(frozen=True, kw_only=True)
class ReadTree(Operation, name="read_tree"):
    """Read a node and all below it, without their texts. The result is a list of `TreeEntry`, parents first.

    Attributes:
        id: The id of the node; None: all outlines.
        depth: How many levels below the node, or which levels of the outlines: 0 gives the node, or no more than the
            roots. None: all.
    """

    id: str | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        if self.id is not None:
            check_text("id", self.id)
        if self.depth is not None:
            check_count("depth", self.depth, least=0)
