"""`python -m bench.contradictions DATA`: attributes and contradictions found in hand-labelled turns.

Two turns of a conversation contradict each other if they state the same attribute of the same subject with values that
disagree. A false alarm is a pair that is reported and not labelled.

"facts-2" and "facts-3" are 109 and 150 other turns, labelled by another person, who did not know the rules: the places
of the values of all that has one value at a time, whatever it is called. A statement found is right if its value is at
such a place.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from bench.labels import labels, turns
from recollect.text.attributes import same_value, stated


class Figures(NamedTuple):
    """The counts: of turns, statements found, labelled and right, and of pairs reported, labelled and false alarms."""

    turns: int
    found: int
    labelled: int
    right: int
    reported: int
    contradictions: int
    false_alarms: int

    @property
    def false_share(self) -> float:
        """False alarms per turn."""
        return self.false_alarms / self.turns


def measured(data: Path) -> Figures:
    """Return the counts on the labelled turns."""
    known, wanted = turns(data), labels("contradictions")
    facts = [
        (turn_id, fact)
        for turn_id in wanted["turns"]
        for fact in stated(known[turn_id].text, speaker=known[turn_id].speaker)
    ]
    right = sum(fact.attribute in wanted["turns"][turn_id] for turn_id, fact in facts)
    reported = {
        (one, other)
        for (one, first), (other, second) in combinations(facts, 2)
        if one.rpartition("/")[0] == other.rpartition("/")[0]
        and one != other
        and (first.subject or "").casefold() == (second.subject or "").casefold()
        and first.attribute == second.attribute
        and not same_value(first.value, second.value)
    }
    labelled = {(one, other) for one, other in wanted["pairs"]}
    return Figures(
        len(wanted["turns"]),
        len(facts),
        sum(map(len, wanted["turns"].values())),
        right,
        len(reported),
        len(labelled),
        len(reported - labelled),
    )


class Statements(NamedTuple):
    """How many statements were found in turns, were right, and were labelled."""

    turns: int
    found: int
    right: int
    labelled: int


def stated_in(data: Path, name: str) -> Statements:
    """Return the counts on the turns of a set of labels, "facts-2" or "facts-3"."""
    known, wanted = turns(data), labels(name)
    found = right = 0
    for turn_id, spans in wanted.items():
        text = known[turn_id].text
        for fact in stated(text, speaker=known[turn_id].speaker):
            at = text.find(fact.value, fact.start)
            found += 1
            right += any(at < end and start < at + len(fact.value) for start, end in spans)
    return Statements(len(wanted), found, right, sum(map(len, wanted.values())))


def main() -> None:
    found = measured(Path(sys.argv[1]))
    print(
        f"{found.turns} turns: {found.found} statements found, {found.right} of them labelled ({found.labelled} labels)"
    )
    print(
        f"contradictions: {found.reported} reported, {found.contradictions} labelled, "
        f"{found.false_alarms} false alarms ({100 * found.false_share:.1f} % of the turns)"
    )
    for name in ("facts-2", "facts-3"):
        others = stated_in(Path(sys.argv[1]), name)
        print(f"{others.turns} other turns: {others.found} statements found, {others.right} right")


if __name__ == "__main__":
    main()
