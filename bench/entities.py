"""`python -m bench.entities DATA`: precision and recall of the rule-based extractor on hand-labelled turns.

A mention is right if its first and last character and its type are those of a label; "overlap" asks only that it
shares a character with a label of its type.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.labels import Turn, labels, turns
from recollect.text.entities import TYPES, entities

Span = tuple[int, int, str]
_NAMES = ("person", "organization", "place", "name")


class Figures(NamedTuple):
    """Precision and recall, and the numbers that they come from."""

    found: int
    labelled: int
    right: int
    overlapping: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.labelled if self.labelled else 1.0


def measured(data: Path, parity: int | None = None, name: str = "entities") -> dict[str, Figures]:
    """Return the figures by type and for "all".

    Args:
        data: The development data.
        name: The labels.
        parity: Only turns with an even (0) or an odd (1) number among those labelled; None: all.
    """
    known = turns(data)
    counts: Counter[tuple[str, str]] = Counter()
    for number, (turn_id, spans) in enumerate(labels(name).items()):
        if parity is None or number % 2 == parity:
            _count(counts, known[turn_id], [(start, end, kind) for start, end, kind in spans])
    return {
        kind: Figures(*(counts[kind, name] for name in ("found", "labelled", "right", "overlapping")))
        for kind in ("all", *TYPES)
    }


def _count(counts: Counter[tuple[str, str]], turn: Turn, spans: Sequence[Span]) -> None:
    speaker = None if turn.speaker in ("user", "assistant") else turn.speaker
    found = [(each.start, each.end, each.type) for each in entities(turn.text, speaker=speaker)]
    for start, end, kind in found:
        touching = any(one < end and start < other and same == kind for one, other, same in spans)
        for name in ("all", kind):
            counts[name, "found"] += 1
            counts[name, "right"] += (start, end, kind) in spans
            counts[name, "overlapping"] += touching
    for _, _, kind in spans:
        for name in ("all", kind):
            counts[name, "labelled"] += 1


def names_in_german(name: str) -> Figures:
    """Return how many of what is found in German texts are names, and of names are found: persons, places, others.

    A name is right if it is a labelled one or a part of it, or the reverse. The texts were written by a person who did
    not know the rules; half of them ("held-out") were only counted.
    """
    found = labelled = right = overlapping = 0
    for text in labels("german_entities"):
        if text["set"] == name:
            known = [each for each, _ in text["entities"]]
            names = [each.name for each in entities(text["text"]) if each.type in _NAMES]
            found, labelled = found + len(names), labelled + len(known)
            overlapping += sum(any(one in each or each in one for each in known) for one in names)
            right += sum(any(one in each or each in one for one in names) for each in known)
    return Figures(found, labelled, right, overlapping)


def main() -> None:
    for name in ("open", "held-out"):
        german = names_in_german(name)
        share = 100 * german.overlapping / german.found if german.found else 100.0
        print(f"German, {name}: {german.found} found, {share:.0f} % names; {german.right} of {german.labelled} names")
    data = Path(sys.argv[1])
    for title, parity, labelled in (
        ("all 200 turns", None, "entities"),
        ("the 100 turns that were not looked at", 1, "entities"),
        ("109 other turns, labelled by another person", None, "entities-2"),
    ):
        print(title)
        print(f"{'type':14}{'labels':>8}{'found':>8}{'precision':>11}{'recall':>8}{'overlap':>9}")
        for kind, each in measured(data, parity, labelled).items():
            if each.labelled or each.found:
                overlap = each.overlapping / each.found if each.found else 1.0
                row = f"{kind:14}{each.labelled:8}{each.found:8}{100 * each.precision:11.1f}{100 * each.recall:8.1f}"
                print(f"{row}{100 * overlap:9.1f}")


if __name__ == "__main__":
    main()
