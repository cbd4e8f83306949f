"""`python -m bench.salience DATA`: how many turns of conversations `policies.judge` would reject, and how many
of those are evidence for a question.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import recollect
from recollect.evaluation.datasets import DataSet, beam, locomo, memdaily
from recollect.policies import Level, judge


class Figures(NamedTuple):
    """The counts of one data set: of turns, rejected turns, evidence turns, rejected ones, and reasons."""

    turns: int
    rejected: int
    evidence: int
    lost: int
    reasons: Counter[str]


def measured(data: DataSet, level: Level) -> Figures:
    """Return the counts at a level."""
    evidence = {(each.namespace, turn) for each in data.asked for turn in each.evidence}
    turns = rejected = lost = found = 0
    reasons: Counter[str] = Counter()
    with recollect.open(":memory:") as memory:
        data.fill(memory)
        for name in memory.namespaces():
            for record in memory.namespace(name).find():
                verdict = judge(record.text, level)
                is_evidence = (name, record.id) in evidence
                turns += 1
                found += is_evidence
                if not verdict.accepted:
                    rejected += 1
                    lost += is_evidence
                    reasons[verdict.reason] += 1
    return Figures(turns, rejected, found, lost, reasons)


def main() -> None:
    root = Path(sys.argv[1])
    chinese = sorted((root / "memdaily-zh").glob("*.json"))
    sets = [locomo(next((root / "locomo").glob("*.json"))), beam(root / "beam" / "100K")]
    sets += [memdaily(*chinese)] if chinese else []
    levels: tuple[Level, ...] = ("normal", "strict")
    for level in levels:
        for data in sets:
            found = measured(data, level)
            print(
                f"{level} {data.name}: {found.rejected} of {found.turns} turns rejected "
                f"({100 * found.rejected / found.turns:.1f} %), {found.lost} of {found.evidence} evidence turns "
                f"({100 * found.lost / max(found.evidence, 1):.1f} %); {dict(found.reasons)}"
            )


if __name__ == "__main__":
    main()
