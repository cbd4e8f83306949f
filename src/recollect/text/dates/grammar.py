"""A cascade of rules over the words of a question: each rule replaces a sequence of words by one that means more.

A word has one or more categories, each with a value ("second" is an ordinal number and a unit). The set of categories
of a word is written as one character, and a question as a string of them, so a rule is a regular expression over
categories; where it matches, its action makes one new word of the words that it took, or declines. Rules are applied in
their order, and after each one that matched, all of them again.

Source:
    S. Abney, Partial parsing via finite-state cascades, Natural Language Engineering 2 (1996).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias


class PhraseWord(NamedTuple):
    """A word of a question, or what rules made of several.

    Attributes:
        of: Its categories with their values.
        begin: The index of its first character in the text.
        end: The index after its last character.
    """

    of: Mapping[str, Any]
    begin: int
    end: int


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
    """

    pattern: str
    action: Callable[..., Made]
    order: tuple[int, ...] = ()


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

    def reduced(self, words: list[PhraseWord], context: object) -> list[PhraseWord]:
        """Return the words after all rules; of the places where a rule matches, the last is replaced first."""
        written = _EDGE + "".join([self._chars[frozenset(word.of)] for word in words]) + _EDGE
        number = 0
        while number < len(self._rules):
            pattern, groups, action = self._rules[number]
            number += 1
            if pattern.search(written) is None:
                continue
            for found in reversed(list(pattern.finditer(written))):
                spans = map(found.span, groups)
                try:
                    made = action(context, *[words[begin - 1] if begin < end else None for begin, end in spans])
                except (ValueError, OverflowError):  # there is no such day
                    continue
                if made is not None:
                    begin, end = found.span("all")
                    words[begin - 1 : end - 1] = [PhraseWord(made, words[begin - 1].begin, words[end - 2].end)]
                    written = written[:begin] + self._chars[frozenset(made)] + written[end:]
                    number = 0
                    break
        return words

    def _compiled(self, rule: Rule) -> tuple[re.Pattern[str], Sequence[int], Callable[..., Made]]:
        out, groups, number = [], [], 1  # group 1 is "all"
        items = rule.pattern.split()
        whole = "<" not in items
        for item in ["<", *items, ">"] if whole else items:
            if item in "<>":
                out.append("(?P<all>" if item == "<" else ")")
                continue
            *_, categories, count = re.fullmatch(r"(~?[\w|]+)([?*+]?)", item).groups()  # type: ignore[union-attr]
            chosen = self._class(categories)
            if categories.isupper():
                number += 1
                groups.append(number)
                out.append(f"({chosen}){count}")
            else:
                out.append(f"{chosen}{count}")
        return re.compile("".join(out)), [groups[at] for at in rule.order] or groups, rule.action

    def _class(self, categories: str) -> str:
        """Return an expression for the characters of words that have one of some categories."""
        wanted = set(categories.lstrip("~").upper().split("|"))
        chars = [char for of, char in self._chars.items() if not wanted.isdisjoint(of)]
        if "OTHER" in wanted:
            chars.append(_OTHER)
        listed = "".join(map(re.escape, chars))
        if categories.startswith("~"):
            return f"[^{listed}]" if listed else "."
        return f"[{listed}]" if listed else "(?!)"
