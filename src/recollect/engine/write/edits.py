"""Edits: what a list of messages says about the stored turns that it lacks.

New turns where the stored ones go on differently are another branch: a message was edited, or an answer was generated
again. The turns of the former branch are abandoned, until a list has them again. One new message in the place of
several stored ones, before those that follow, is a summary of them. So is a system prompt that says that it is one.

Only what the list shows is concluded. New turns that follow all stored ones abandon nothing. If nothing overlaps, the
list is another branch only if its first message restates the first one of the conversation with other details.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from recollect.engine.write.replay import StoredTurn
from recollect.messages import Turn
from recollect.text.asking import only_asks
from recollect.text.words import runs

#: How many words, and what share of the longer one, two messages have in common if one is the other, edited. Short
#: sentences that only resemble each other ("add milk to the list") are two messages.
_COMMON_WORDS, _COMMON_SHARE = 8, (3, 5)
#: What the beginning of a system prompt says if it is a summary, in the languages that are read.
_SUMMARY = re.compile(
    r"\b(?:summary|summari[sz]ed|conversation so far|(?:earlier|previous|prior) (?:conversation|messages|turns)"
    r"|zusammenfassung|bisheriges gespräch|resumen|résumé|riassunto|riepilogo|resumo|samenvatting)\b"
    r"|摘要|总结|要約",
    re.IGNORECASE,
)
_BEGINNING = 120


class Edits(NamedTuple):
    """What a list says about the stored turns.

    Attributes:
        abandoned: The indexes of stored turns of a branch that the list has left.
        summaries: The indexes of passed turns that stand for several stored ones.
    """

    abandoned: frozenset[int] = frozenset()
    summaries: frozenset[int] = frozenset()


NO_EDITS = Edits()


def edits(stored: Sequence[StoredTurn], passed: Sequence[Turn], found: Mapping[int, int | None]) -> Edits:
    """Return what a list says about the stored turns.

    Args:
        stored: The stored turns, in order.
        passed: The passed turns, in order.
        found: The passed turns that are known, as `align` returns them.

    Cost:
        O(passed turns), and O(stored turns) if some are abandoned.
    """
    if not stored or len(found) == len(passed):
        return NO_EDITS
    places = [(index, place) for index, place in sorted(found.items()) if place is not None]
    if not places:
        is_other = not found and _restates(stored[0].record.role, stored[0].record.text, passed[0])
        return Edits(frozenset(range(len(stored)))) if is_other else NO_EDITS
    abandoned: set[int] = set()
    summaries: set[int] = set()
    before = -1, -1
    for index, place in [*places, (len(passed), len(stored))]:
        new = [each for each in range(before[0] + 1, index) if each not in found]
        old = range(before[1] + 1, place)
        is_end = index == len(passed)
        if new and len(old):
            pairs = list(zip(new[:1] if is_end else new, old, strict=False))
            same_roles = all(passed[each].role == stored[other].record.role for each, other in pairs)
            if same_roles and (is_end or len(new) == len(old)):
                abandoned.update(old)
            elif len(new) < len(old) and not is_end:
                summaries.add(new[0])
        before = index, max(place, before[1])
    return Edits(frozenset(abandoned), frozenset(summaries))


def says_to_summarise(text: str) -> bool:
    """Return whether the beginning of a system prompt says that it summarises a conversation.

    >>> says_to_summarise("Summary of the conversation so far: they talked."), says_to_summarise("You are a tutor.")
    (True, False)
    """
    return _SUMMARY.search(text[:_BEGINNING]) is not None


def _restates(role: str | None, text: str, other: Turn) -> bool:
    """Return whether a message states the same as another one with other details.

    >>> said = "My flight to Oslo is on Friday at 7:40, and I am allergic to nuts."
    >>> edited = "My flight to Rome is on Sunday at 9:10, and I am allergic to nuts."
    >>> _restates("user", said, Turn("user", None, edited))
    True
    >>> _restates("user", said, Turn("user", None, "My train to Rome is on Sunday."))
    False
    """
    if role != other.role or role != "user" or text == other.content or only_asks(text):
        return False
    one, two = (Counter(run for run, _ in runs(each)) for each in (text, other.content))
    common, (share, of) = (one & two).total(), _COMMON_SHARE
    return common >= _COMMON_WORDS and common * of >= max(one.total(), two.total()) * share
