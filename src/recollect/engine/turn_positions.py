"""The positions of turns of conversations that are merged: new ones follow those of this branch, and none share one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from recollect.engine.write.drafts import is_turn
from recollect.ledger.commits import Branch
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import View


def renumbered(
    view: View, ours: Branch, theirs: Branch, since: int, puts: Mapping[str, Record], new: Set[str]
) -> list[Record]:
    """Return the new turns of the other branch that get other positions, as they follow turns that it does not have.

    Args:
        view: The transaction, before anything is merged.
        ours: This branch.
        theirs: The other branch.
        since: The newest commit of this branch that the other one has.
        puts: The records that are taken from the other branch, by id.
        new: Those of them that are new here.
    """
    added = _by_conversation(puts[each] for each in new)
    last = {each: found for each in added if (found := view.last_position(ours, each)) is not None}
    overlapping = {each for each, turns in added.items() if each in last and _first(turns) <= last[each]}
    if not overlapping:
        return []
    out: list[Record] = []
    moved = _by_conversation(record for record_id, record in puts.items() if record_id not in new)
    for conversation in sorted(overlapping & _went_on(view, ours, theirs, since)):
        end = max([last[conversation], *(turn.position or 0 for turn in moved.get(conversation, ()))])
        turns = sorted(added[conversation], key=lambda turn: (turn.position or 0, turn.id))
        out += [turn.changed(position=number) for number, turn in enumerate(turns, end + 1)]
    return out


def _went_on(view: View, ours: Branch, theirs: Branch, since: int) -> set[str | None]:
    """Return the conversations in which this branch has turns that the other one does not have."""
    ids = view.changed(ours, since)
    there = view.several(theirs, ids)
    own = view.several(ours, [each for each in ids if each not in there])
    return {turn.conversation for each in own.values() if is_turn(turn := Record.load(each.payload))}


def separated(view: View, ours: Branch, puts: Mapping[str, Record | None]) -> list[Record]:
    """Return the turns that get other positions because two would share one: both branches have moved some.

    From the first one that was moved on, turns are in the order of their times, so both branches number them alike.

    Args:
        view: The transaction, before anything is merged.
        ours: This branch.
        puts: What is stored, by id; None: it is removed.

    Cost:
        O(n) in the turns of a conversation after the first one that is stored.
    """
    out: list[Record] = []
    for conversation, taken in sorted(_by_conversation(puts.values()).items()):
        stored = view.several(ours, [each.id for each in taken])
        former = {each: Record.load(found.payload).position for each, found in stored.items()}
        moved = [each for each in taken if each.id not in former or each.position != former[each.id]]
        if not moved:
            continue
        first = min(min(each.position or 0, former.get(each.id, each.position) or 0) for each in moved)
        last = view.last_position(ours, conversation)
        there = [
            Record.load(each.payload)
            for position in range(first, (-1 if last is None else last) + 1)
            for each in view.turns_at(ours, conversation, position)
        ]
        turns = [each for each in taken if (each.position or 0) >= first]
        turns += [each for each in there if each.id not in puts and is_turn(each)]
        if len({turn.position for turn in turns}) == len(turns):
            continue
        turns.sort(key=lambda turn: (-1 if turn.time is None else microseconds(turn.time), turn.position or 0, turn.id))
        numbered = enumerate(turns, first)
        out += [turn.changed(position=number) for number, turn in numbered if turn.position != number]
    return out


def _first(turns: Iterable[Record]) -> int:
    return min(turn.position or 0 for turn in turns)


def _by_conversation(records: Iterable[Record | None]) -> dict[str, list[Record]]:
    out: dict[str, list[Record]] = {}
    for record in records:
        if record is not None and record.conversation is not None and is_turn(record):
            out.setdefault(record.conversation, []).append(record)
    return out
