"""Conversations as people have them, and the questions that they ask about them.

The turns are those of LoCoMo's development conversations where the folder of RECOLLECT_DATA has them, and seeded
variations of these: other speakers, a tenth of the words exchanged for words of about the same frequency, and rare
words for new ones. Without that data, a seeded generator writes dialogues with the same statistics: lengths of turns
and sessions, the share of stop words, and a vocabulary that grows as texts do.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from recollect.text.languages import stop_words
from recollect.text.words import terms

#: The environment variable with the folder of the data sets.
DATA_VARIABLE = "RECOLLECT_DATA"
_FILE = Path("locomo", "locomo5-dev.json")
_WORD = re.compile(r"[A-Za-z]+")
#: The share of the words that a variation exchanges, and how far apart the ranks of the two may be.
_EXCHANGED, _RANKS = 0.1, 30
#: What LoCoMo's turns are like: words of a turn (median, spread of the logarithm, maximum), turns of a session,
#: sessions of a conversation, the share of words that are no stop words, and that of these which are new.
_MEDIAN, _SPREAD, _MOST = 20, 0.55, 80
_TURNS, _SESSIONS, _CONTENT, _NEW = 22, 26, 0.52, 0.06
_WRITTEN = 5
_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu bra cle dri flo gru".split()


class Turn(NamedTuple):
    """A turn of a conversation."""

    conversation: str
    session: str
    speaker: str
    text: str


class Dialogues:
    """Turns, as many as are asked for, and questions about them.

    origin  "LoCoMo" or "generated"
    """

    def __init__(self, written: list[Turn], asked: list[str], origin: str) -> None:
        self._written, self._asked, self.origin = written, asked, origin

    @property
    def identity(self) -> str:
        """A hash of what the turns are made from."""
        return hashlib.sha256(json.dumps([self._written, _EXCHANGED, _RANKS]).encode()).hexdigest()

    def turns(self, wanted: int) -> list[Turn]:
        """The first turns: as they were written, then variation after variation."""
        return list(islice(self._all(), wanted))

    def _all(self) -> Iterator[Turn]:
        yield from self._written
        for number in count(1):
            rng = random.Random(number)
            names = {name: _invented(rng).title() for name in sorted({turn.speaker for turn in self._written})}
            for turn in self._written:
                text = _WORD.sub(partial(self._other, names, rng), turn.text)
                conversation, session = f"{turn.conversation}/{number}", f"{turn.session}/{number}"
                yield Turn(conversation, session, names[turn.speaker], text)

    @cached_property
    def _ranked(self) -> list[str]:
        words = Counter(word.lower() for turn in self._written for word in _WORD.findall(turn.text))
        return sorted(words, key=lambda word: (-words[word], word))

    @cached_property
    def _rank(self) -> dict[str, int]:
        return {word: rank for rank, word in enumerate(self._ranked)}

    def _other(self, names: dict[str, str], rng: random.Random, found: re.Match[str]) -> str:
        word = found[0]
        if word in names:
            return names[word]
        rank = self._rank[word.lower()]
        if rng.random() > _EXCHANGED or word.lower() in stop_words("en"):
            return word
        if rank > len(self._ranked) // 2:  # it occurs once or twice, as new words do
            return _invented(rng)
        return self._ranked[min(max(0, rank + rng.randint(-_RANKS, _RANKS)), len(self._ranked) - 1)]

    def questions(self, wanted: int, seed: int = 2) -> list[str]:
        """Questions as people ask them, in a seeded order, again from the first if there are not as many."""
        asked = list(self._asked)
        random.Random(seed).shuffle(asked)
        return (asked * (wanted // len(asked) + 1))[:wanted]

    def to_json(self) -> dict[str, Any]:
        return {"corpus": f"conversations ({self.origin})", "questions_known": len(self._asked)}


def dialogues() -> Dialogues:
    """The conversations of this machine."""
    path = Path(os.environ.get(DATA_VARIABLE, ""), _FILE)
    if not os.environ.get(DATA_VARIABLE) or not path.is_file():
        written = list(_generated(random.Random(1)))
        return Dialogues(written, list(_asked_of(written, random.Random(2))), "generated")
    samples = json.loads(path.read_text("utf-8"))
    written = [
        Turn(sample["sample_id"], f"{sample['sample_id']} {session}", turn["speaker"], turn["text"])
        for sample in samples
        for session, turns in sample["conversation"].items()
        if isinstance(turns, list)
        for turn in turns
    ]
    return Dialogues(written, [each["question"] for sample in samples for each in sample["qa"]], "LoCoMo")


def _generated(rng: random.Random) -> Iterator[Turn]:
    """Turns of generated conversations."""
    plain, used = sorted(stop_words("en")), [_invented(rng) for _ in range(10)]
    for conversation in range(_WRITTEN):
        speakers = _invented(rng).title(), _invented(rng).title()
        for session in range(_SESSIONS):
            for place in range(_TURNS):
                words = []
                for _ in range(max(2, min(_MOST, round(_MEDIAN * math.exp(rng.gauss(0, _SPREAD)))))):
                    if rng.random() > _CONTENT:
                        words.append(rng.choice(plain))
                        continue
                    # A word is said again the oftener, the oftener it was said.
                    words.append(_invented(rng) if rng.random() < _NEW else rng.choice(used))
                    used.append(words[-1])
                text = " ".join(words).capitalize() + rng.choice((".", ".", "!", "?"))
                yield Turn(f"g{conversation}", f"g{conversation} {session}", speakers[place % 2], text)


def _asked_of(turns: list[Turn], rng: random.Random) -> Iterator[str]:
    """Questions about generated turns."""
    for turn in rng.sample(turns, len(turns) // 4):
        content = [word for _, word in terms(turn.text) if word]
        if len(content) > 2:
            one, other, third = rng.sample(content, 3)
            yield f"What did {turn.speaker} say about the {one} and the {other} of the {third}?"


def _invented(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(2, 4)))
