"""Alignment of a list with a conversation of which some turns were abandoned.

What was said in a branch that was left may be said again in the one that goes on, or the list comes back to the branch.
So the list is aligned with the turns that were not abandoned, with all turns, and as one that comes back. If it goes on
after the last turn that was not abandoned, it comes back to nothing; otherwise the alignment that explains most holds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from recollect.engine.write.alignment import align


def align_with_branches(
    stored: Sequence[Hashable],
    left: frozenset[int],
    passed: Sequence[Hashable],
    was_forgotten: Callable[[int, int], bool],
    *,
    one_exchange: bool,
) -> dict[int, int | None]:
    """Return which passed turns are known, as `align` does.

    Args:
        stored: The keys of the stored turns, in order.
        left: The indexes of those that were abandoned.
        passed: The keys of the passed turns, in order.
        was_forgotten: See `align`.
        one_exchange: See `align`.

    Cost:
        That of `align`; twice that if turns were abandoned.
    """
    found = align(stored, passed, was_forgotten, one_exchange=one_exchange)
    if not left:
        return found
    live = [place for place in range(len(stored)) if place not in left]
    ends = [*live, len(stored)]
    of_live = align(
        [stored[place] for place in live],
        passed,
        lambda at, near: was_forgotten(at, ends[near]),
        one_exchange=one_exchange,
    )
    goes_on = _goes_on(of_live, len(live), len(passed))
    if goes_on or len(of_live) >= len(found):
        found = {at: None if place is None else live[place] for at, place in of_live.items()}
    if goes_on:
        return found
    back = _way_back(stored, live, sorted(left), passed)
    mixes = not left.isdisjoint([place for place in found.values() if place is not None])
    return back if len(back) > len(found) or (mixes and len(back) == len(found)) else found


def _goes_on(found: Mapping[int, int | None], stored: int, passed: int) -> bool:
    """Return whether all new turns of a list follow the last stored one."""
    first = next((index for index in range(passed) if index not in found), 0)
    return any(place == stored - 1 and index < first for index, place in found.items())


def _way_back(
    stored: Sequence[Hashable], live: Iterable[int], abandoned: Iterable[int], passed: Sequence[Hashable]
) -> dict[int, int | None]:
    """Return which passed turns are known if the list begins as the conversation does and comes back to a branch."""
    found: dict[int, int | None] = {}
    for place in live:
        if len(found) == len(passed) or stored[place] != passed[len(found)]:
            break
        found[len(found)] = place
    shared = len(found)
    if not shared:
        return {}
    # A turn is stored after the one that it follows. Turns of other branches may stand between them.
    last = found[shared - 1] or 0
    for place in abandoned:
        if place > last and len(found) < len(passed) and stored[place] == passed[len(found)]:
            found[len(found)] = place
    return found if len(found) > shared else {}
