"""The clauses of a text: its sentences, divided where another statement begins.

"I don't eat meat, I'm a vegetarian" says two things. A clause begins after a comma, or after "but" and the like, if it
has a subject of its own, or a verb in the first person in languages that leave the subject out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.common.regexes import regex
from recollect.text.pieces import SENTENCE_END

#: Where a clause begins that has a subject, or a verb in the first person where the subject is left out.
_BEGIN = regex(
    r"[,;:–—] +(?=(?:(?:and|but|so|because|since|und|aber|weil|denn|y|pero|porque|et|mais|car)\s+)?"
    r"(?:i|i['’]m|i['’]ve|i['’]d|we|we['’]re|my|our|it['’]?s?|he|she|they|ich|wir|mein|meine|unser|unsere|es|er|sie"
    r"|yo|mi|nosotros|soy|estoy|tengo|vivo|como|trabajo|je|j['’]\w+|nous|mon|ma|notre|il|elle|c['’]est)\b)",
    re.IGNORECASE,
)
#: Titles, whose stop ends no sentence, and the number of a day before its month: "am 3. Mai".
_ABBREVIATED = regex(r"\b(?:M|Mr|Mrs|Ms|Dr|Dra|Sr|Sra|Hr|Fr|Prof|St)\.\s*\Z")
_ORDINAL = regex(r"(?<![0-9.])[0-9]{1,2}\.\Z")
_MONTH = regex(r"\s+(?:jän|jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)", re.IGNORECASE)
#: The longest of them.
_LOOK_BACK = 8
_LINE = regex(r"[^\r\n]+")


def sentences_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a text, each with its place; a line ends one."""
    for line in _LINE.finditer(text):
        start = line.start()
        for end in SENTENCE_END.finditer(line[0]):
            stop = line.start() + end.end()
            before = max(start, stop - _LOOK_BACK)
            if _ABBREVIATED.search(text, before, stop):
                continue
            if _ORDINAL.search(text, before, stop) and _MONTH.match(text, stop):
                continue
            yield start, text[start:stop]
            start = stop
        if text[start : line.end()].strip():
            yield start, text[start : line.end()]


def clauses_in(start: int, sentence: str) -> Iterator[tuple[int, str]]:
    """Yield the clauses of a sentence that begins at a place, each with its place.

    >>> [clause for _, clause in clauses_in(0, "I don't eat meat, I'm a vegetarian.")]
    ["I don't eat meat", "I'm a vegetarian."]
    """
    at = 0
    for joint in _BEGIN.finditer(sentence):
        yield start + at, sentence[at : joint.start()]
        at = joint.end()
    yield start + at, sentence[at:]
