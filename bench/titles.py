"""`python -m bench.titles FOLDER...`: how well sections are found, by the mass of a word in a title.

FOLDER is a folder of Markdown files. The questions are made of their sections, at most 400 of each kind: the first
title above a section with its heading, or with two words of its text; and, to see what titles cost, three words of its
text, or its heading with one. For each mass, the mean reciprocal rank of the section among the first ten is printed.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import recollect
from recollect import Memory, Record
from recollect.importers import IMPORTERS, import_path
from recollect.indexes.fixed_point import ONE
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.text.words import terms

#: Masses in tenths.
MASSES = (0, 3, 5, 7, 10, 13)
_MOST = 400


def questions_of(records: list[Record]) -> dict[str, list[tuple[str, str]]]:
    """Return questions by kind, each with the id of the section that it was made of."""
    words = {record.id: list(dict.fromkeys(word for _, word in terms(_body(record)) if word)) for record in records}
    frequency = Counter(word for each in words.values() for word in each)
    chosen = random.Random(7)
    out: dict[str, list[tuple[str, str]]] = {
        "title+heading": [],
        "title+2 words": [],
        "3 words": [],
        "heading+word": [],
    }
    for record in records:
        headings = record.metadata["headings"]
        above = [title for title in (record.metadata.get("title"), *headings[:-1]) if title]
        rare = [word for word in words[record.id] if frequency[word] < len(records) / 4]
        if not above or not headings or record.metadata["chunk_index"] or len(rare) < 4:
            continue
        some = chosen.sample(rare, 3)
        out["title+heading"].append((f"{above[0]} {headings[-1]}", record.id))
        out["title+2 words"].append((f"{above[0]} {some[0]} {some[1]}", record.id))
        out["3 words"].append((" ".join(some), record.id))
        out["heading+word"].append((f"{headings[-1]} {some[0]}", record.id))
    return {kind: chosen.sample(each, min(_MOST, len(each))) for kind, each in out.items()}


def _body(record: Record) -> str:
    return record.text.partition("\n")[2]


def mean_reciprocal_rank(memory: Memory, questions: list[tuple[str, str]]) -> float:
    """Return the mean of 1 / rank of the right section, 0 if it is not among the first ten."""
    total = 0.0
    for question, answer in questions:
        ids = [hit.record.id for hit in memory.recall(question)]
        total += 1 / (ids.index(answer) + 1) if answer in ids else 0.0
    return total / len(questions)


def main(folders: list[str]) -> None:
    with recollect.open(":memory:") as memory:
        for folder in folders:
            import_path(memory, IMPORTERS["markdown"], Path(folder), name=Path(folder).name)
        questions = questions_of(memory.find(order="id"))
        sizes = ", ".join(f"{len(each)} {kind}" for kind, each in questions.items())
        print(f"{memory.count()} sections; questions: {sizes}")
        for tenths in MASSES:
            # NumPy: what is compiled has its constants in it.
            with (
                patch.object(numpy_kernels, "TITLE_MASS", tenths * ONE // 10),
                patch("recollect.indexes.scoring.scores.chosen", lambda: numpy_kernels.KERNELS),
            ):
                found = {kind: mean_reciprocal_rank(memory, each) for kind, each in questions.items()}
            print(f"{tenths / 10:.1f}", *(f"{kind} {value:.3f}" for kind, value in found.items()), sep="  ")


if __name__ == "__main__":
    main(sys.argv[1:])
