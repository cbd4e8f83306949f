"""A cascade of rules over the words of a question: each rule replaces a sequence of words by one that means more.

A word has one or more categories, each with a value ("second" is an ordinal number and a unit). The set of categories
of a word is written as one character, and a question as a string of them, so a rule is a regular expression over
categories; where it matches, its action makes one new word of the words that it took, or declines. Rules are applied in
their order, and after each one that matched, all of them again.

A word may be a list ("Monday and Friday"): its members have the same categories, so rules match it as one of them. The
action is called for each member, and what it makes is a list, too.

Source:
    S. Abney, Partial parsing via finite-state cascades, Natural Language Engineering 2 (1996).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import or_
from typing import Any, NamedTuple, TypeAlias


class PhraseWord(NamedTuple):
    """A word of a question, or what rules made of several.

    Attributes:
        of: Its categories with their values.
        begin: The index of its first character in the text.
        end: The index after its last character.
        others: The categories with their values of the further members, if it is a list.
    """

    of: Mapping[str, Any]
    begin: int
    end: int
    others: tuple[Mapping[str, Any], ...] = ()

    @property
    def members(self) -> tuple[PhraseWord, ...]:
        """The members of a list, or the word itself."""
        return (self, *(PhraseWord(of, self.begin, self.end) for of in self.others)) if self.others else (self,)


#: What an action returns: the categories of the new word with their values, or None to leave the words as they are. It
#: may raise ValueError or OverflowError for a day that does not exist, which leaves them, too.
Made: TypeAlias = Mapping[str, Any] | None


class Rule(NamedTuple):
    """A rule.

    Attributes:
        pattern: Items separated by blanks, each some categories joined by "|", or "~" before those that a word must not
            have, with "?", "*" or "+" as in regular expressions. Words of items in capital letters are passed to the
            action, those in small letters are only required. "<" and ">" stand around what is replaced, if that is not
            all.
        action: Called with the context and a word or None for each item in capital letters.
        order: The order in which they are passed, if it is not that of the pattern.
        listing: Whether it makes a list: its action gets lists as such, and returns the members of one or None.
    """

    pattern: str
    action: Callable[..., Any]
    order: tuple[int, ...] = ()
    listing: bool = False


class _Compiled(NamedTuple):
    """A rule as a regular expression, with the groups of the words that its action gets."""

    pattern: re.Pattern[str]
    groups: Sequence[int]
    action: Callable[..., Any]
    listing: bool
    #: The characters of two items, of each of which a text must have one: those with the fewest.
    needed: tuple[str, str]


#: The character of a word that is in no lexicon, at the begin and end of a text, and the first for the others.
_OTHER, _EDGE, _FIRST = "\x00", "\x01", 0x100


class Cascade:
    """Rules over the categories of a language.

    Args:
        rules: The rules in their order.
        sets: All sets of categories that words have, or that actions return.
    """

    def __init__(self, rules: Sequence[Rule], sets: Iterable[frozenset[str]]) -> None:
        distinct = sorted({*sets} - {frozenset()}, key=sorted)
        self._chars = {frozenset[str](): _OTHER, **{of: chr(_FIRST + at) for at, of in enumerate(distinct)}}
        self._rules = [self._compiled(rule) for rule in rules]
        #: For each character the rules, as bits, that need it or one of those beside it.
        self._needing: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for number, rule in enumerate(self._rules):
            for needing, chars in zip(self._needing, rule.needed, strict=True):
                for char in chars:
                    needing[char] = needing.get(char, 0) | 1 << number

    def reduced(self, words: list[PhraseWord], context: object) -> list[PhraseWord]:
        """Return the words after all rules; of the places where a rule matches, the last is replaced first."""
        written = _EDGE + "".join([self._chars[frozenset(word.of)] for word in words]) + _EDGE
        possible = self._possible(written)
        while possible:
            number = (possible & -possible).bit_length() - 1
            possible &= possible - 1
            rule = self._rules[number]
            if rule.pattern.search(written) is None:
                continue
            for found in reversed(list(rule.pattern.finditer(written))):
                spans = map(found.span, rule.groups)
                taken = [words[begin - 1] if begin < end else None for begin, end in spans]
                made = _made(rule, context, taken)
                if made:
                    begin, end = found.span("all")
                    words[begin - 1 : end - 1] = [
                        PhraseWord(made[0], words[begin - 1].begin, words[end - 2].end, tuple(made[1:]))
                    ]
                    written = written[:begin] + self._chars[frozenset(made[0])] + written[end:]
                    possible = self._possible(written)
                    break
        return words

    def _possible(self, written: str) -> int:
        """Return as bits the rules of which a text has a character of both items that they need."""
        first, second = ([needing.get(char, 0) for char in written] for needing in self._needing)
        return reduce(or_, first) & reduce(or_, second)

    def _compiled(self, rule: Rule) -> _Compiled:
        out, groups, number = [], [], 1  # group 1 is "all"
        needed = []
        items = rule.pattern.split()
        whole = "<" not in items
        for item in ["<", *items, ">"] if whole else items:
            if item in "<>":
                out.append("(?P<all>" if item == "<" else ")")
                continue
            *_, categories, count = re.fullmatch(r"(~?[\w|]+)([?*+]?)", item).groups()  # type: ignore[union-attr]
            chosen = self._class(categories)
            if count not in ("?", "*") and not categories.startswith("~"):
                needed.append(self._chars_of(categories))
            if categories.isupper():
                number += 1
                groups.append(number)
                out.append(f"({chosen}){count}")
            else:
                out.append(f"{chosen}{count}")
        needed.sort(key=len)
        return _Compiled(
            re.compile("".join(out)),
            [groups[at] for at in rule.order] or groups,
            rule.action,
            rule.listing,
            (needed[0], needed[min(1, len(needed) - 1)]),
        )

    def _chars_of(self, categories: str) -> str:
        """Return the characters of words that have one of some categories."""
        wanted = set(categories.lstrip("~").upper().split("|"))
        chars = [char for of, char in self._chars.items() if not wanted.isdisjoint(of)]
        if "OTHER" in wanted:
            chars.append(_OTHER)
        return "".join(chars)

    def _class(self, categories: str) -> str:
        """Return an expression for the characters of words that have one of some categories."""
        listed = "".join(map(re.escape, self._chars_of(categories)))
        if categories.startswith("~"):
            return f"[^{listed}]" if listed else "."
        return f"[{listed}]" if listed else "(?!)"


def _made(rule: _Compiled, context: object, words: Sequence[PhraseWord | None]) -> Sequence[Mapping[str, Any]]:
    """Return what a rule makes of some words: the members of a list, or one; none if it declines."""
    try:
        if rule.listing:
            return rule.action(context, *words) or ()
        if not any(word is not None and word.others for word in words):
            made = rule.action(context, *words)
            return () if made is None else (made,)
        parts = [(None,) if word is None else word.members for word in words]
        all_made = [rule.action(context, *chosen) for chosen in product(*parts)]
    except (ValueError, OverflowError):  # there is no such day
        return ()
    if any(made is None or made.keys() != all_made[0].keys() for made in all_made):
        return ()
    return all_made
