"""`python -m bench.rules FILE`: the cost of the rules for texts and questions, with and without their prefilters.

A prefilter decides from the letters and words of a text that a rule cannot match, so that its regular expression need
not run. FILE is a LoCoMo JSON file: its turns are the texts, its questions the questions. Prints microseconds for each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.measuring import milliseconds
from recollect.text import answers, dates, manner

ROUNDS = 5


def microseconds(rule: Callable[[str], object], texts: list[str]) -> float:
    """The least time of some rounds, for each text."""

    def all_of_them() -> None:
        for text in texts:
            rule(text)

    return min(milliseconds(all_of_them) for _ in range(ROUNDS)) / len(texts) * 1000


def main(path: Path) -> None:
    samples = json.loads(path.read_text("utf-8"))
    turns = [
        turn for each in samples for part in each["conversation"].values() if isinstance(part, list) for turn in part
    ]
    texts = [turn["text"] for turn in turns]
    questions = [asked["question"] for each in samples for asked in each["qa"]]

    def named(question: str) -> object:
        return dates.named(question, date(2024, 1, 1))

    measured: list[tuple[str, Callable[[str], object], list[str], object, Any]] = [
        ("standing tags", manner.standing_tags, texts, manner, {"_may_instruct": bool, "_may_prefer": bool}),
        ("kinds of answers", answers.offered, texts, answers, {"letters": lambda text: None}),
        ("dates of a question", named, questions, dates, {"letters": lambda text: None}),
    ]
    for name, rule, over, module, without in measured:
        filtered = microseconds(rule, over)
        with patch.multiple(module, **without):
            plain = microseconds(rule, over)
        print(f"{name}: {filtered:.1f} us with the prefilter, {plain:.1f} us without")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
