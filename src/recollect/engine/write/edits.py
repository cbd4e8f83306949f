"""Edits: what a list of messages says about the stored turns that it lacks.

New turns where the stored ones go on differently are another branch: a message was edited, or an answer was generated
again. The turns of the former branch are abandoned, until a list has them again. One new message in the place of
several stored ones, before those that follow, is a summary of them. So is a system prompt that says that it is one.

Only what the list shows is concluded. New turns that follow all stored ones abandon nothing, nor does a list without a
new turn. If nothing overlaps, the list is another branch only if the conversation is short and the first message of the
list restates that of the conversation with other details.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from recollect.common.regexes import regex
from recollect.engine.write.alignment import align
from recollect.engine.write.replay import TOOL, USER, StoredTurn
from recollect.records.messages import Turn
from recollect.records.record import Record
from recollect.text.asking import only_asks
from recollect.text.words import runs

#: How many words, and what share of the longer one, two messages have in common if one is the other, edited, and how
#: many words a clause has that is in both and says something of its author: it is not said twice. Sentences that only
#: resemble each other ("add milk to the list") and requests with the same frame are two messages.
_COMMON_WORDS, _COMMON_SHARE, _CLAUSE_WORDS = 8, (3, 5), 4
_CLAUSE_END = regex(r"[,;.!?\n]+(?!\d)")
_OF_AUTHOR = regex(
    r"\b(?:i|we|ich|wir|je|nous|yo|nosotr[oa]s|io|noi|eu|nós|ik|wij)\b"
    r"(?!'d| (?:would|want|need|wish|möchten?|will|wollen|brauchen?)\b)|\bj'|我|私",
    re.IGNORECASE,
)
#: How many turns a conversation may have for a single first message to be the edited one. Agents that pass nothing but
#: new messages pass one that resembles the first sooner or later.
_MOST_RESTATED = 4
#: What a system prompt begins with if it is a summary, in the languages that are read. One that asks for a summary says
#: so elsewhere.
_SUMMARY = regex(
    r"""\A[\W_]*(?:
    (?:(?:here|this|below|following|what|follows|is|a|the|brief|short|concise|running|current|updated)[\s_]+|here's\s+){0,6}
    (?:(?:conversation|chat|session|context|history|previous|earlier)[\s_]+){0,2}
    (?:summary|recap|zusammenfassung|resumen|résumé|riassunto|riepilogo|resumo|samenvatting)(?:\s+\d+)?
    (?:[*_ ]*(?:[:(>\]*_\n\-\u2013\u2014]|\Z) | \s+(?:so|up)\b
    | \s+(?:of|der|des|de|del|du|della|dei|da|do|van)\s+(?:\w+\s+|l['\u2019]){0,4}?
      (?:conversations?|chats?|discussions?|dialog(?:ue)?|sessions?|messages|history|turns|gesprächs?|unterhaltung|verlaufs?
      |conversación|conversaciones|diálogo|échanges?|entretien|conversazion[ei]|dialogo|conversas?|gesprek|nachrichten)\b)
    | (?:(?:the|our|this)\s+)?(?:conversation|chat|discussion)\s+(?:so\s+far|to\s+date)\s*(?:[:\n]|(?:was|is)\b)
    | bisheriges\ gespräch\b
    | \w{0,6}?(?:摘要|总结|要約)(?:です)?\s*[:\uff1a\n>\]])
    | \b(?:conversation|session|chat)\ (?:is|was|has\ been)\ summari[sz]ed\b""",
    re.IGNORECASE | re.VERBOSE,
)
_BEGINNING = 120


class Edits(NamedTuple):
    """The conclusions from a list about the stored turns.

    Attributes:
        abandoned: The indexes of stored turns of a branch that the list has left.
        summaries: The indexes of passed turns that stand for several stored ones.
        cut: The indexes of passed results of tools that programs have shortened, each with that of the stored one.
    """

    abandoned: frozenset[int] = frozenset()
    summaries: frozenset[int] = frozenset()
    cut: Mapping[int, int] = MappingProxyType({})


NO_EDITS = Edits()


def edits(
    stored: Sequence[StoredTurn], left: Collection[int], passed: Sequence[Turn], found: Mapping[int, int | None]
) -> Edits:
    """Return what a list says about the stored turns.

    Args:
        stored: The stored turns, in order.
        left: The indexes of those that were abandoned before.
        passed: The passed turns, in order.
        found: The passed turns that are known, as `align` returns them.

    Cost:
        O(passed turns + stored turns from the first one on that the list has).
    """
    if not stored or len(found) == len(passed):
        return NO_EDITS
    places = [(index, place) for index, place in sorted(found.items()) if place is not None]
    if not places:
        live = [place for place in range(len(stored)) if place not in left]
        is_other = not found and 0 < len(live) <= _MOST_RESTATED and _restates(stored[live[0]].record, passed[0])
        return Edits(frozenset(live)) if is_other else NO_EDITS
    comes_back = any(place in left for _, place in places)
    abandoned: set[int] = set()
    summaries: set[int] = set()
    shortened: dict[int, int] = {}
    before = -1, -1
    for index, place in [*places, (len(passed), len(stored))]:
        new = [each for each in range(before[0] + 1, index) if each not in found]
        old = [each for each in range(before[1] + 1, place) if each not in left]
        is_end = index == len(passed)
        if new and old:
            pairs = list(zip(new[:1] if is_end else new, old, strict=False))
            same_roles = all(passed[each].role == stored[other].record.role for each, other in pairs)
            # Programs cut the results of old calls of tools; that is no edit.
            cut = all(passed[each].role == TOOL for each in new) and not is_end
            if cut and same_roles and len(new) == len(old):
                shortened.update((each, at) for each, at in pairs if _is_shorter(passed[each], stored[at].record))
            if (is_end and comes_back) or (same_roles and not cut and (is_end or len(new) == len(old))):
                abandoned.update(old)
            elif len(new) < len(old) and not cut and not is_end:
                summaries.add(new[0])
        elif place in left and before[1] >= 0:  # what was said in place of a turn that the list comes back to
            abandoned.update(old)
        before = index, max(place, before[1])
    return Edits(frozenset(abandoned), frozenset(summaries), shortened)


def is_summary_prompt(text: str) -> bool:
    """Return whether a system prompt begins as a summary of a conversation does.

    >>> is_summary_prompt("Summary of the conversation so far: they talked.")
    True
    >>> is_summary_prompt("You are a tutor. End with a summary of the conversation.")
    False
    """
    return _SUMMARY.search(text[:_BEGINNING]) is not None


def _is_shorter(turn: Turn, stored: Record) -> bool:
    return len(turn.content) < len(stored.content)


def _restates(stored: Record, other: Turn) -> bool:
    """Return whether a message states the same as a stored one, with other details."""
    text = stored.text
    if not stored.role == other.role == USER or text == other.content or only_asks(text):
        return False
    one, two = (Counter(run for run, _ in runs(each)) for each in (text, other.content))
    common, (share, of) = (one & two).total(), _COMMON_SHARE
    if common < _COMMON_WORDS or common * of < max(one.total(), two.total()) * share:
        return False
    return any(map(_OF_AUTHOR.search, _clauses(text) & _clauses(other.content)))


def _clauses(text: str) -> set[str]:
    """Return the clauses of a text that have enough words."""
    clauses = (clause.strip() for clause in _CLAUSE_END.split(text))
    return {clause for clause in clauses if len(clause.split()) >= _CLAUSE_WORDS}


# Alignment of a list with a conversation of which some turns were abandoned.
#
# What was said in a branch that was left may be said again in the one that goes on, or the list comes back to the
# branch. So the list is aligned with the turns that were not abandoned, with all turns, and as one that comes back. If
# it goes on after the last turn that was not abandoned, it comes back to nothing; otherwise the alignment that
# explains most holds.


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
