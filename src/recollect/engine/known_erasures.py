"""What two copies of a store have erased, and which erasures each of them knows of.

The main branch of a namespace has a commit for every erasure, from whichever branch it is made. A copy knows of an
erasure if its main branch has that commit, or one that repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cached_property
from typing import NamedTuple

from recollect.engine.family import chosen
from recollect.engine.read.targets import seq_in
from recollect.engine.settings import repeated_by
from recollect.ledger.commits import Branch, Commit
from recollect.ledger.merkle import is_redacted, redacted_id
from recollect.ledger.parts import RECORDS
from recollect.stores.base import View

#: A record by the part of the memory that it belongs to, and its id as a redacted log has it.
Item = tuple[str, str]


class ErasedItem(NamedTuple):
    """The erasure of a record.

    Attributes:
        id: Its id, as the log has it.
        entries: The entries of the commits that erased it first: one that repeats them names those.
    """

    id: str
    entries: frozenset[bytes]


class ErasuresOfBoth(NamedTuple):
    """The erasures of two copies, since what both have in common.

    Two erasures of a record are concurrent if neither copy knew of the one of the other when it made its own: then what
    either has stored since stays.

    Attributes:
        learned: Those that only the other copy knows of, by record.
        unknown: Those that only this one knows of.
        kept: The records of those that were learned which this copy has erased concurrently.
        ends: The records of the unknown ones which the other copy has erased concurrently, each with the commit of its
            main branch.
    """

    learned: Mapping[Item, ErasedItem]
    unknown: Mapping[Item, ErasedItem]
    kept: Set[Item]
    ends: Mapping[Item, int]


def erasures_of_both(here: View, there: View, main: Branch, common: int) -> ErasuresOfBoth:
    """Return the erasures that one copy knows of and the other one does not.

    Args:
        main: The main branch of a namespace.
        common: How many commits of it both have.
    """
    ours, theirs = _Known(here, main, common), _Known(there, main, common)
    learned, unknown = theirs.without(ours), ours.without(theirs)
    kept = {item for item in learned if ours.concurrent(item, theirs, theirs.last(item, ours))}
    ends = {item: theirs.concurrent(item, ours, ours.last(item, theirs)) for item in unknown}
    return ErasuresOfBoth(learned, unknown, kept, {item: seq for item, seq in ends.items() if seq})


class _Known:
    """The erasures that a copy knows of, since what both have in common."""

    def __init__(self, view: View, main: Branch, common: int) -> None:
        self._view = view
        self._main = main
        self._repeats = repeated_by(view, main)
        # By record, the number of the commit, and the erasure.
        self._erased: dict[Item, list[tuple[int, ErasedItem]]] = {}
        for commit, parts in commits_with_parts(view, main, common):
            repeats = self._repeats.get(commit.seq, {})
            for item, record_id in erased_in(commit, parts):
                erased = ErasedItem(record_id, repeats.get(key(item), frozenset((commit.entry,))))
                self._erased.setdefault(item, []).append((commit.seq, erased))

    @cached_property
    def _entries(self) -> frozenset[bytes]:
        repeated = (entries for items in self._repeats.values() for entries in items.values())
        return frozenset(self._view.entries(self._main, 0)).union(*repeated)

    def without(self, other: _Known) -> dict[Item, ErasedItem]:
        """Return those that the other copy does not know of, by record: redacted if one of them is."""
        found: dict[Item, ErasedItem] = {}
        for item, several in self._erased.items():
            for _, erased in several:
                if unknown := erased.entries - other._entries:
                    earlier = found.get(item, ErasedItem(erased.id, frozenset()))
                    record_id = earlier.id if is_redacted(earlier.id) else erased.id
                    found[item] = ErasedItem(record_id, earlier.entries | unknown)
        return found

    def last(self, item: Item, other: _Known) -> int:
        """Return the newest commit that erases a record and that the other copy does not know of."""
        return max(seq for seq, erased in self._erased[item] if erased.entries - other._entries)

    def concurrent(self, item: Item, other: _Known, seq: int) -> int:
        """Return the first commit that erases a record and that the other copy did not know at one; 0 for none."""
        known = frozenset[bytes]().union(*(each.entries for at, each in other._erased[item] if at < seq))
        return next((at for at, each in self._erased.get(item, ()) if each.entries - known), 0)


def key(item: Item) -> str:
    """Return how a repeated erasure names a record. See `settings.repeated_by`."""
    return f"{item[0]}:{item[1]}"


def erased_in(commit: Commit, parts: list[Commit]) -> Iterator[tuple[Item, str]]:
    """Yield the records that a commit of a memory has erased, with its parts: each with its id in the log."""
    for each in (commit, *parts):
        for change in each.changes:
            if change.cause == "erased":
                yield (each.part, redacted_id(change.id)), change.id


def commits_with_parts(
    view: View, memory: Branch, since: int, known: Mapping[str, int] | None = None
) -> Iterator[tuple[Commit, list[Commit]]]:
    """Yield the commits of a memory after one, each with those to other parts that it states.

    Args:
        since: The number of that commit.
        known: The newest commit before them of each other part. Default: as of that commit; in a log of format 3, which
            does not state it, of its time.
    """
    heads = dict(known or {})
    if known is None:
        others = ((name, part) for name, part in chosen(memory, None).items() if name != RECORDS)
        heads = {name: seq_in(view, part, memory, since) for name, part in others}
    parts = {name: view.commits(memory.reserved(name), since=seq) for name, seq in heads.items()}
    for commit in view.commits(memory, since=since):
        own: list[Commit] = []
        for part in commit.parts or ():
            while heads[part.name] < part.seq:
                own.append(next(parts[part.name]))
                heads[part.name] = own[-1].seq
        yield commit, own
