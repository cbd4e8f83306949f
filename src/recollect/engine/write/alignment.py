"""Alignment of a list of turns with the turns of a conversation that are stored: which of them are new.

Agents pass their whole list of messages again after each one, or its end if they trim it; sometimes the last answer was
generated again, or a summary replaces the beginning. The list overlaps with what is stored; only the rest is new.

An agent may also pass nothing but new turns, and people repeat themselves: a single "ok" that equals a stored turn is
new. So an overlap counts only if it is the beginning of the conversation, reaches its end, or has several turns.

The model: the stored turns S and the passed list P are sequences of keys (author and text). A passed turn is known if
it is mapped to a stored one. The mapping is not unique, since turns repeat, so the rules are tried from the surest:

1. P begins with S, or S with P: the list has grown, or is the same. This is the usual case and one comparison.
2. At least six turns, and more than half of P, are both the end of S and the beginning of P: the list was trimmed. The
   longest such run is found in linear time, by the failure function of Knuth, Morris and Pratt.
3. An equal run (`_Block`) ends at or shortly before the end of S. What precedes it in P lies before it in S, or at the
   end of S (it was new last time); what follows it goes on in order. Of all such runs, the one that explains most of P
   counts. A full alignment (longest common subsequence) would be quadratic, and would match single turns that were said
   twice; only runs near the end can be the place where an agent goes on.
4. Otherwise only the common beginning is known, if it is more than one turn or the conversation is one exchange: this
   is another answer to the same messages.

Invariants: no stored turn is used twice by an overlap, and a turn that was forgotten is known (it maps to None), so it
does not come back. So that a list that is passed twice stores nothing the second time, `align` tries it without the
last n stored turns, if every new turn has the text of a stored one: if exactly these n are new then, the list added
them.

The cost of a wrong answer is not symmetric. A repetition that is taken for new is stored twice and can be forgotten; of
a new turn that is taken for known, nothing says that it was said again. So an overlap needs more than one equal turn.

Source:
    Knuth, Morris, Pratt: Fast pattern matching in strings, SIAM Journal on Computing 6, 1977 (rule 2). The other rules
    come from the lists that agents pass; docs/decisions.md has the reasons.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

#: How many turns at the end of the conversation may be missing in the list: an answer that was generated again, with
#: its calls of tools.
_MOST_REPLACED = 50
#: How many turns a conversation may have for its first turn to be an overlap by itself: a question, and its answer.
_FIRST_EXCHANGE = 4
#: How many turns must both end the conversation and begin the list, more than half of it, so that it simply goes on.
#: Fewer may be what was said twice.
_LEAST_CONTINUED = 6
#: How many turns at the end of the conversation are tried as those that the same list has added before.
_MOST_APPENDED = 32
#: How many places of a key in the list are tried, how many turns of each are compared at first, and how many overlaps
#: are then compared as a whole.
_MOST_PLACES, _COMPARED_FIRST, _MOST_BLOCKS = 32, 32, 32


class _Block(NamedTuple):
    """Equal runs of both lists: `stored[first:first + length]` and `passed[start:start + length]`."""

    first: int
    start: int
    length: int


def align(
    stored: Sequence[Hashable],
    passed: Sequence[Hashable],
    was_forgotten: Callable[[int, int], bool],
    *,
    one_exchange: bool = False,
) -> dict[int, int | None]:
    """Return which passed turns are known: their index -> the index of the stored turn, or None if it was forgotten.

    A list of several turns whose new turns would be those at the end of the conversation was passed before: all of
    its turns are known.

    Args:
        stored: The keys of the stored turns, in order.
        passed: The keys of the passed turns, in order.
        was_forgotten: Returns whether the passed turn with an index was stored once and then forgotten. Its second
            argument is the index that the turn would have among the stored ones.
        one_exchange: Whether the stored turns are a question and what followed it, so that the first turn is then an
            overlap. They are, if they are few.

    Cost:
        O(turns) comparisons of keys, or O(turns * _MOST_APPENDED) if the text of every new turn is stored already;
        `was_forgotten` is called for few turns if most of the passed ones are stored.
    """
    shorter = min(len(stored), len(passed))
    is_beginning = stored[:shorter] == passed[:shorter]  # as usually: the list has grown
    same = 0 if is_beginning else _continued(stored, passed)
    if same >= _LEAST_CONTINUED and 2 * same > len(passed):
        return {index: len(stored) - same + index for index in range(same)} | _following(
            stored, passed, len(stored), same, was_forgotten
        )
    one_exchange = one_exchange or len(stored) <= _FIRST_EXCHANGE
    found = _aligned(stored, passed, was_forgotten, one_exchange)
    new = [index for index in range(len(passed)) if index not in found]
    if new and len(passed) > 1 and {passed[index] for index in new} <= set(stored):
        for count in range(1, min(len(passed), len(stored), _MOST_APPENDED) + 1):
            before = len(stored) - count
            earlier = _aligned(stored[:before], passed, was_forgotten, one_exchange or before <= _FIRST_EXCHANGE)
            added = [index for index in range(len(passed)) if index not in earlier]
            if [passed[index] for index in added] == list(stored[before:]):
                return earlier | dict(zip(added, range(before, len(stored)), strict=True))
    return found


def _continued(stored: Sequence[Hashable], passed: Sequence[Hashable]) -> int:
    """Return the length of the longest run that ends the stored turns and begins the passed ones: rule 2."""
    borders = [0] * len(passed)  # of the beginning up to each index: the longest proper one that also ends it
    length = 0
    for index in range(1, len(passed)):
        while length and passed[index] != passed[length]:
            length = borders[length - 1]
        length += passed[index] == passed[length]
        borders[index] = length
    length = 0
    for key in stored[max(len(stored) - len(passed), 0) :]:
        while length and (length == len(passed) or key != passed[length]):
            length = borders[length - 1]
        length += length < len(passed) and key == passed[length]
    return length


def _aligned(
    stored: Sequence[Hashable],
    passed: Sequence[Hashable],
    was_forgotten: Callable[[int, int], bool],
    one_exchange: bool,
) -> dict[int, int | None]:
    """Return which passed turns are known, unless the list was passed before and its new turns are at the end."""
    found: dict[int, int | None] = {}
    at = first = 0  # in `passed`, and in `stored`
    if stored == passed[: len(stored)]:  # usually the list has grown
        at = first = len(stored)
        found = dict(enumerate(range(first)))
    while at < len(passed):
        if first < len(stored) and stored[first] == passed[at]:
            found[at] = first
            first += 1
        elif was_forgotten(at, first):
            found[at] = None
        else:
            break
        at += 1
    if not first:
        at, found = 0, {}  # with nothing but forgotten turns, it is not the beginning of the conversation
    elif first == len(stored):
        return found
    elif at == len(passed):  # the beginning of the conversation; a single turn is a repetition
        return found if len(passed) > 1 else {}
    rest = _around_overlap(stored, passed, first, at, was_forgotten)
    if rest is not None:
        return found | rest
    # Another answer to the same messages.
    return found if len(passed) > 1 and (first > 1 or one_exchange) else {}


def _around_overlap(
    stored: Sequence[Hashable],
    passed: Sequence[Hashable],
    first: int,
    at: int,
    was_forgotten: Callable[[int, int], bool],
) -> dict[int, int | None] | None:
    """Return which of `passed[at:]` are known, by the overlap with `stored[first:]` that explains most of them.

    None if there is no overlap at the end of `stored` or shortly before.
    """
    forgotten = lru_cache(maxsize=None)(was_forgotten)
    places: dict[Hashable, list[int]] = {}
    for index in range(at, len(passed)):
        places.setdefault(passed[index], []).append(index)
    where: dict[Hashable, list[int]] | None = None  # the places of the passed turns in `stored`, when they are needed
    best: dict[int, int | None] | None = None
    for block in _blocks(stored, passed, first, at, places):
        end, length = block.first + block.length - 1, block.length
        newest = max(end + 1, len(stored) - (len(passed) - at - length))
        used: Counter[Hashable] = Counter()
        found: dict[int, int | None] = {}
        if where is None and block.start > at:
            where = {}
            for index, key in enumerate(stored):
                if key in places:
                    where.setdefault(key, []).append(index)
        for index in range(at, block.start):
            assert where is not None
            # What precedes the overlap was stored before it, or was new when the list was passed last time: then it
            # is at the end.
            equal = where.get(passed[index], [])
            before, after = bisect_left(equal, block.first), bisect_left(equal, newest)
            if after < len(equal):
                found[index] = equal[min(after + used[passed[index]], len(equal) - 1)]
                used[passed[index]] += 1
            elif before:
                found[index] = equal[before - 1]
            elif forgotten(index, block.first):
                found[index] = None
        before_known = len(found) == block.start - at
        found |= {block.start + each: block.first + each for each in range(length)}
        found |= _following(stored, passed, end + 1, block.start + length, forgotten)
        if first and len(set(found.values()) - {None}) == len(stored) - first:
            enough = True  # the list has all stored turns; one that could not be stored may be among them
        elif end < len(stored) - 1:
            enough = length > 2 or (length == 2 and len(passed) > 2)
        else:  # one turn is enough if the list has others, and nothing before it is new
            enough = length > 1 or (len(passed) > 1 and before_known)
        known = [place for place in found.values() if place is not None]
        if not enough or len(set(known)) < len(known):
            continue
        if best is None or len(found) > len(best):
            best = found
    return best


def _blocks(
    stored: Sequence[Hashable],
    passed: Sequence[Hashable],
    first: int,
    at: int,
    places: dict[Hashable, list[int]],
) -> list[_Block]:
    """Return the longest runs that end at or shortly before the end of `stored`, at most `_MOST_BLOCKS` of them.

    Of a key that occurs often, only the last places are tried, and lengths are compared up to a limit first, so that
    lists of equal turns take no longer than others.
    """
    tried: list[tuple[int, int, int]] = []
    for end in range(len(stored) - 1, max(first, len(stored) - 1 - _MOST_REPLACED) - 1, -1):
        for place in places.get(stored[end], ())[-_MOST_PLACES:][::-1]:
            tried.append((_run(stored, passed, first, at, end, place, _COMPARED_FIRST), end, place))
    tried.sort(key=lambda each: (-each[0], -each[1], -each[2]))
    out = []
    for _, end, place in tried[:_MOST_BLOCKS]:
        length = _run(stored, passed, first, at, end, place, len(passed))
        out.append(_Block(end + 1 - length, place + 1 - length, length))
    return sorted(out, key=lambda block: (-block.first - block.length, -block.start - block.length))


def _run(
    stored: Sequence[Hashable], passed: Sequence[Hashable], first: int, at: int, end: int, place: int, limit: int
) -> int:
    """Return how many turns before and at two places are equal, at most `limit`."""
    length, most = 1, min(end - first + 1, place - at + 1, limit)
    while length < most and stored[end - length] == passed[place - length]:
        length += 1
    return length


def _following(
    stored: Sequence[Hashable],
    passed: Sequence[Hashable],
    first: int,
    at: int,
    was_forgotten: Callable[[int, int], bool],
) -> dict[int, int | None]:
    """Return which of `passed[at:]` are known from `stored[first:]`, up to the first that is new.

    An answer that was generated again was stored after the one it replaced.
    """
    found: dict[int, int | None] = {}
    rest = set(stored[first:])
    for index in range(at, len(passed)):
        if passed[index] in rest:
            with suppress(ValueError):
                found[index] = first = stored.index(passed[index], first)
                first += 1
                continue
        if not was_forgotten(index, first):
            break
        found[index] = None
    return found
