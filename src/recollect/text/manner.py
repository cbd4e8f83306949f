"""The manner of a text: whether it asks, instructs or states a preference, and what it therefore counts for.

What a turn asks is seldom what a later question is after; what an assistant says is mostly longer and less telling than
what the user said; a standing instruction or preference governs many questions whose words it hardly shares. So each
text has a weight, fixed when it is stored, by which its score is multiplied. The rules are English; a text in another
language is a plain statement to them.
"""

from __future__ import annotations

import re
from fractions import Fraction

from recollect.text.words import terms

#: What an asking text loses of its weight, at most, and what the other manners multiply it by.
ASKING = Fraction(4, 10)
ASSISTANT = Fraction(6, 10)
INSTRUCTION = Fraction(16, 10)
PREFERENCE = Fraction(13, 10)

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
#: A question in which the asker speaks of themselves also tells something ("I moved to Oslo, where can I swim?").
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|mine|we|we're|we've|our|us)\b", re.IGNORECASE)
_INSTRUCTION = re.compile(
    r"(?:^|[.!?:;\n]\s*|,\s*(?:and|but|so)\s+)(?:please\s+|and\s+)?"
    r"(?:always|never|do not ever|don't ever|from now on|going forward|in (?:the )?future|whenever i|every time i|"
    r"each time i|remember (?:to|that i)|when(?:ever)? i ask)\b"
    r"|\bfrom now on\b|\bwhen(?:ever)? i ask\b|\bplease (?:always|never)\b|\bi want you to (?:always|never)\b"
    r"|\byou (?:should|must) (?:always|never)\b",
    re.IGNORECASE | re.MULTILINE,
)
_PREFERENCE = re.compile(
    r"\b(?:i|we)(?:'d| would| really| much| generally| usually| always| strongly| also| still|)*\s+(?:prefer|rather)\b"
    r"|\bmy preference\b|\bi(?:'m| am) (?:more comfortable|not a fan|a fan)\b|\bi (?:don't|do not) (?:like|want)\b"
    r"|\bi (?:hate|dislike|avoid)\b",
    re.IGNORECASE | re.MULTILINE,
)


def weight(text: str, *, assistant: bool) -> Fraction:
    """What a text counts for: 1 for a plain statement.

    >>> weight("The key is under the mat.", assistant=False), weight("Where is the key?", assistant=False)
    (Fraction(1, 1), Fraction(3, 5))
    """
    text = text.replace("\u2019", "'")
    out = 1 - ASKING * asking_share(text)
    if assistant:
        return out * ASSISTANT
    if instructs(text):
        out *= INSTRUCTION
    if prefers(text):
        out *= PREFERENCE
    return out


def asking_share(text: str) -> Fraction:
    """The share of a text's content words that stand in sentences which only ask."""
    asking = whole = 0
    for sentence in _SENTENCE_END.split(text):
        count = sum(1 for _ in terms(sentence))
        whole += count
        if sentence.rstrip("\"')* \t").endswith(("?", "？")) and not _FIRST_PERSON.search(sentence):
            asking += count
    return Fraction(asking, whole) if asking else Fraction(0)


def instructs(text: str) -> bool:
    """Whether a text gives a standing instruction ("always ...", "from now on ...")."""
    return _INSTRUCTION.search(text) is not None


def prefers(text: str) -> bool:
    """Whether a text states a preference of its author ("I prefer ...", "I don't like ...")."""
    return _PREFERENCE.search(text) is not None
