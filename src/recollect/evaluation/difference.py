"""Comparison of two runs: the questions whose metric rose or fell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import ImportFormatError


class Moved(NamedTuple):
    """A question whose metric differs between two runs."""

    namespace: str
    category: str
    question: str
    before: float
    after: float


def differing(before: Path, after: Path, metric: str = "recall@10") -> list[Moved]:
    """List the questions whose metric differs between two `--per-question` files, the greatest losses first.

    Raises:
        ImportFormatError: A file is not such a file, or the two are about different questions.
    """
    one, other = _answers(before, metric), _answers(after, metric)
    if one.keys() != other.keys():
        only = len(one.keys() ^ other.keys())
        raise ImportFormatError(
            str(after), "", f"is not about the same questions as {before}: {only} are in only one of them"
        )
    moved = [
        Moved(key[0], answer["category"], key[1], answer[metric], other[key][metric]) for key, answer in one.items()
    ]
    return sorted(
        (each for each in moved if each.before != each.after), key=lambda each: (each.after - each.before, each)
    )


def _answers(path: Path, metric: str) -> dict[tuple[str, str, int], dict[str, Any]]:
    out: dict[tuple[str, str, int], dict[str, Any]] = {}
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            answer = json.loads(line)
            # A set can contain a question twice: the line number distinguishes them.
            out[answer["namespace"], answer["question"], number] = {
                "category": str(answer["category"]),
                metric: float(answer[metric]),
            }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportFormatError(str(path), "", f"is not a --per-question file with {metric} ({error})") from None
    return out
