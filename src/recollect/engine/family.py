"""The parts of a memory that an operation concerns: its records, and what facets keep.

An operation on a memory concerns all of its parts, unless it names some (`parts`). One on a part itself, as a facet
executes it, concerns only that part.
"""

from __future__ import annotations

from collections.abc import Collection

from recollect.engine.facets import FACETS
from recollect.errors import InvalidArgumentError
from recollect.filters.tree import AllOf, Filter, Is, Not
from recollect.ledger.commits import RESERVED, Branch
from recollect.ledger.parts import RECORDS
from recollect.records.record import Record

#: Maximum number of digits of what a record counts to.
_MOST_DIGITS = 18


def chosen(branch: Branch, parts: Collection[str] | None) -> dict[str, Branch]:
    """Return the branches of the parts that an operation concerns, by name: the records first, then by name.

    Args:
        branch: The branch of the operation.
        parts: The parts that it names; None: all.

    Raises:
        InvalidArgumentError: It names another part than there are, or is an operation on a part itself.
    """
    if branch.is_reserved:
        if parts is not None:
            raise InvalidArgumentError("parts", tuple(parts), "are those of a memory, and this is one of its parts")
        return {branch.reserved_name: branch}
    known = (RECORDS, *RESERVED)
    if parts is not None and (unknown := [each for each in parts if each not in known]):
        raise InvalidArgumentError("parts", unknown[0], f"must be some of {', '.join(known)}")
    names = known if parts is None else [each for each in known if each in parts]
    return {name: branch if name == RECORDS else branch.reserved(name) for name in names}


def kept_kinds(branch: Branch) -> tuple[str, ...]:
    """Return the kinds of records that stay whatever is forgotten or restored, such as a counter (`Facet.kept`)."""
    return next((facet.kept for facet in FACETS if facet.reserved and facet.reserved == branch.reserved_name), ())


def without_kept(where: Filter, branch: Branch) -> Filter:
    """Return a filter without what stays in any case (`kept_kinds`)."""
    kept = kept_kinds(branch)
    return AllOf.of(where, Not(Is("kind", kept))) if kept else where


def goes_back(existing: Record, new: Record, branch: Branch) -> bool:
    """Return whether an older record would replace one that counts (`kept_kinds`), as in an import."""
    if existing.kind not in kept_kinds(branch):
        return False
    return existing.kind != new.kind or counted(new) < counted(existing)


def counted(record: Record) -> int:
    """Return the number that a record counts to; 0 if its text is none, as after an import."""
    text = record.content
    is_number = isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else 0
