"""Typing errors: seeded misspellings of questions, the same in every run."""

from __future__ import annotations

import random
import re
import string

from recollect.text.english import STOP_WORDS

_WORD = re.compile(r"[^\W\d_]{5,}")


def mistyped(text: str, chance: float, seed: int = 0) -> str:
    """The text with one random edit (a letter replaced, deleted, inserted, or two swapped) in content words.

    chance  of each content word of five letters or more to be hit

    >>> mistyped("Where is the telescope?", 0.0)
    'Where is the telescope?'
    >>> mistyped("Where is it?", 1.0), mistyped("Where is the telescope?", 1.0) == "Where is the telescope?"
    ('Where is it?', False)
    """
    dice = random.Random(f"{seed}:{text}")

    def edited(found: re.Match[str]) -> str:
        word = found.group()
        if word.lower() in STOP_WORDS or dice.random() >= chance:
            return word
        return _edited(word, dice)

    return _WORD.sub(edited, text)


def _edited(word: str, dice: random.Random) -> str:
    while True:
        at = dice.randrange(len(word))
        letter = dice.choice(string.ascii_lowercase)
        match dice.randrange(4):
            case 0:
                out = word[:at] + letter + word[at + 1 :]
            case 1:
                out = word[:at] + word[at + 1 :]
            case 2:
                out = word[:at] + letter + word[at:]
            case _:
                out = word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]
        if out != word:
            return out
