"""`python -m bench.changed_facts`: facts that change, as people say it in four languages, and pairs that only look so.

Each pair is two messages of a user, months apart. A changed one is found if `Memory.contradictions` reports it; one
that has not changed and is reported is a false alarm. The pairs were written without knowledge of the rules, and
none is from a data set: "tester" are those that a tester of this project used, "open" and "open-2" were looked at while
rules were written, "held-out" (of the writer of "open", who says things indirectly) and "held-out-2" only counted.
"misleading" are pairs of two testers who looked for false alarms in the finished rules; they were looked at, too.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import recollect
from bench.labels import FOLDER

#: The sets, in the order in which they are shown.
SETS = ("tester", "open", "open-2", "held-out", "held-out-2", "misleading")
LANGUAGES = ("en", "de", "es", "fr")
_DAYS = ("2026-01-05", "2026-06-05")


class Alarms(NamedTuple):
    """How many changed pairs there are and were found, and how many others there are and were reported."""

    changed: int
    found: int
    others: int
    false: int

    @property
    def precision(self) -> float:
        """The share of reported pairs that have changed."""
        return self.found / (self.found + self.false) if self.found else 1.0


def pairs() -> list[dict[str, Any]]:
    """Return the pairs: language, kind, first, second, changed, set."""
    return list(tomllib.loads((FOLDER / "changed_facts.toml").read_text(encoding="utf-8"))["pair"])


def reported(pair: dict[str, Any]) -> bool:
    """Return whether a memory with both messages reports that something disagrees."""
    with recollect.open(":memory:") as memory:
        for text, day in zip((pair["first"], pair["second"]), _DAYS, strict=True):
            said = {"conversation": day, "time": day, "user": "ana", "speaker": "Ana"}
            memory.remember_all([{"content": text, "kind": "conversation", "role": "user", **said}])
        return bool(memory.contradictions())


def measured() -> dict[tuple[str, str], Alarms]:
    """Return the counts by set and language, and by set and "all"."""
    counts: Counter[tuple[str, str, bool, bool]] = Counter()
    for pair in pairs():
        found = reported(pair)
        for language in (pair["language"], "all"):
            counts[pair["set"], language, pair["changed"], found] += 1
    out = {}
    for name in SETS:
        for language in (*LANGUAGES, "all"):
            right, missed = counts[name, language, True, True], counts[name, language, True, False]
            false, left = counts[name, language, False, True], counts[name, language, False, False]
            if right + missed + false + left:
                out[name, language] = Alarms(right + missed, right, false + left, false)
    return out


def shown(figures: dict[tuple[str, str], Alarms]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield "| set | language | changed | found | not changed | false alarms |"
    yield "|---|---|---:|---:|---:|---:|"
    for (name, language), each in figures.items():
        yield f"| {name} | {language} | {each.changed} | {each.found} | {each.others} | {each.false} |"


if __name__ == "__main__":
    print("\n".join(shown(measured())))
