"""The positions of turns that are merged: new ones follow those of this branch, and none takes the place of another.

A conversation is that of a user and an agent: turns of others that have its name are another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import takewhile
from typing import NamedTuple

from recollect.engine.write.drafts import is_turn
from recollect.engine.write.judging import LAST_POSITION
from recollect.filters.tree import Is
from recollect.ledger.commits import Branch
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import View

#: A time at which no record has expired.
_NEVER = 0


class _Conversation(NamedTuple):
    """What turns of a conversation have in common."""

    name: str
    user: str
    agent: str


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

    Cost:
        If the positions of both overlap, that of reading what this branch has changed since.
    """
    added = _by_conversation(puts[each] for each in new)
    last = {each: _last(view, ours, each) for each in added}
    overlapping = {each for each, turns in added.items() if _first(turns) <= last[each]}
    if not overlapping:
        return []
    out: list[Record] = []
    moved = _by_conversation(record for record_id, record in puts.items() if record_id not in new)
    for conversation in sorted(overlapping & _went_on(view, ours, theirs, since)):
        end = max([last[conversation], *map(_position, moved.get(conversation, ()))])
        turns = sorted(added[conversation], key=lambda turn: (_position(turn), turn.id))
        out += [_at(turn, number) for number, turn in enumerate(turns, end + 1)]
    return out


def _went_on(view: View, ours: Branch, theirs: Branch, since: int) -> set[_Conversation]:
    """Return the conversations in which this branch has turns that the other one does not have."""
    ids = view.changed(ours, since)
    there = view.several(theirs, ids)
    own = view.several(ours, [each for each in ids if each not in there])
    return set(_by_conversation(Record.load(each.payload) for each in own.values()))


def separated(view: View, ours: Branch, puts: Mapping[str, Record | None]) -> list[Record]:
    """Return the turns that get later positions because one that is new or was moved would share that of another one.

    From the first one that was moved on, turns are in the order of their times, so both branches number them alike.

    Args:
        view: The transaction, before anything is merged.
        ours: This branch.
        puts: What is stored, by id; None: it is removed.

    Cost:
        O(n) in the turns of a conversation after the first one that was moved.
    """
    out: list[Record] = []
    for conversation, taken in sorted(_by_conversation(puts.values()).items()):
        stored = view.several(ours, [each.id for each in taken])
        former = {each: Record.load(found.payload).position for each, found in stored.items()}
        moved = {each.id: each for each in taken if each.id not in former or each.position != former[each.id]}
        if not moved:
            continue
        first = min(min(_position(each), former.get(each.id, each.position) or 0) for each in moved.values())
        there = takewhile(lambda turn, first=first: _position(turn) >= first, _backwards(view, ours, conversation))  # type: ignore[misc]
        others = [each for each in there if each.id not in puts]
        others += [each for each in taken if each.id not in moved and _position(each) >= first]
        places = [_position(each) for each in moved.values()]
        if len(set(places)) == len(places) and not {_position(each) for each in others}.intersection(places):
            continue
        next_free = first
        for turn in sorted([*others, *moved.values()], key=_order):
            place = max(_position(turn), next_free)
            next_free = place + 1
            if place != turn.position:
                out.append(_at(turn, place))
    return out


def _last(view: View, branch: Branch, conversation: _Conversation) -> int:
    """Return the greatest position in a conversation; -1 if there is none."""
    return next(map(_position, _backwards(view, branch, conversation)), -1)


def _backwards(view: View, branch: Branch, conversation: _Conversation) -> Iterator[Record]:
    """Yield the turns of a conversation, the one with the greatest position first."""
    for record in view.select(branch, Is("conversation", (conversation.name,)), order="last", now=_NEVER):
        if is_turn(record) and _of(record) == conversation:
            yield record


def _order(turn: Record) -> tuple[int, int, str]:
    return -1 if turn.time is None else microseconds(turn.time), _position(turn), turn.id


def _at(turn: Record, place: int) -> Record:
    return turn.changed(position=min(place, LAST_POSITION))


def _position(turn: Record) -> int:
    return turn.position or 0


def _first(turns: Iterable[Record]) -> int:
    return min(map(_position, turns))


def _of(turn: Record) -> _Conversation:
    return _Conversation(turn.conversation or "", turn.user or "", turn.agent or "")


def _by_conversation(records: Iterable[Record | None]) -> dict[_Conversation, list[Record]]:
    out: dict[_Conversation, list[Record]] = {}
    for record in records:
        if record is not None and is_turn(record):
            out.setdefault(_of(record), []).append(record)
    return out
