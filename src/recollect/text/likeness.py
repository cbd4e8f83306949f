"""Likeness of words: how many edits make one of another, and whether one can stand for the other.

An unknown word of a question may be misspelt, or another form of a known one. Common letters do not suffice:
"fridge" and "friday" share half of them, and one is no typing error for the other.
"""

from __future__ import annotations

#: Shorter words stand for none. Of others one edit makes a known word that may stand for the unknown one, or as many as
#: here, by the letters of the shorter word, if both have the same first two letters.
LEAST_LETTERS = 4
_EDITS = ((13, 3), (8, 2))
#: Of two forms of a word, one begins with the other, or both with all but this many letters of the shorter one.
_ENDING, _LEAST_COMMON = 3, 5


def edits(word: str, other: str, most: int) -> int:
    """Return how many letters must be changed, added, removed or swapped with their neighbour; `most` + 1 if more.

    >>> edits("melanei", "melanie", 2), edits("fridge", "friday", 2), edits("kitten", "sitting", 2)
    (1, 2, 3)

    Cost:
        O(letters of one x `most`).
    """
    if abs(len(word) - len(other)) > most:
        return most + 1
    far = most + 1
    before: list[int] = []
    last = [min(column, far) for column in range(len(other) + 1)]
    for row, letter in enumerate(word, 1):
        this = [min(row, far), *[far] * len(other)]
        for column in range(max(1, row - most), min(len(other), row + most) + 1):
            same = letter == other[column - 1]
            least = min(last[column] + 1, this[column - 1] + 1, last[column - 1] + (not same))
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == other[column - 1]:
                least = min(least, before[column - 2] + 1)
            this[column] = min(least, far)
        if min(this) > most:
            return far
        before, last = last, this
    return last[-1]


def one_edit(word: str, other: str) -> bool:
    """Return whether two words are the same, or one edit makes one of the other (`edits`).

    >>> one_edit("melanei", "melanie"), one_edit("ben", "ken"), one_edit("fridge", "friday")
    (True, True, False)

    Cost:
        O(letters in common at the beginning).
    """
    if abs(len(word) - len(other)) > 1 or (word[:1] != other[:1] and word[-1:] != other[-1:] and len(word) > 2):
        return False  # an edit does not reach from one end of a word to the other
    start = next((at for at, (one, its) in enumerate(zip(word, other, strict=False)) if one != its), len(word))
    mine, its = word[start:], other[start:]
    return mine[1:] == its[1:] or mine[1:] == its or mine == its[1:] or (mine[1::-1], mine[2:]) == (its[:2], its[2:])


def may_stand_for(known: str, unknown: str) -> bool:
    """Return whether a known word can be meant by an unknown one: a typing error lies between them, or an ending.

    >>> may_stand_for("friday", "fridge"), may_stand_for("fridge", "firdge"), may_stand_for("painter", "paintings")
    (False, True, True)
    """
    shorter = min(len(known), len(unknown))
    if shorter < LEAST_LETTERS:
        return known == unknown
    if one_edit(known, unknown):
        return True
    if known[:2] != unknown[:2]:
        return False
    if known.startswith(unknown[: max(_LEAST_COMMON, shorter - _ENDING)]) and shorter >= _LEAST_COMMON:
        return True
    allowed = next((count for letters, count in _EDITS if shorter >= letters), 1)
    return allowed > 1 and edits(known, unknown, allowed) <= allowed
