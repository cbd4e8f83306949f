"""`python -m bench.standing DATA`: how often the rules for standing instructions and preferences tag a sentence.

DATA is the folder with sciad/, whose sentences are from papers and contain neither: every tag there is wrong. The
tagged turns of the conversations in locomo/ and beam/ are counted too, and printed, for a reader to judge.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import recollect
from recollect.evaluation import datasets
from recollect.text.manner import SAID_TAGS, STANDING_TAGS, standing_tags


def of_papers(folder: Path) -> tuple[int, Counter[str]]:
    """How many sentences there are, and how many have each mark."""
    sentences = [" ".join(each["tokens"]) for each in json.loads((folder / "dev-first-3000.json").read_text())]
    return len(sentences), Counter(tag for sentence in sentences for tag in standing_tags(sentence))


def of_conversations(data: datasets.DataSet) -> tuple[int, dict[str, list[str]]]:
    """How many records a data set has, and the texts that have each mark."""
    marked: dict[str, list[str]] = {tag: [] for tag in STANDING_TAGS}
    count = 0
    with recollect.open(":memory:") as memory:
        data.fill(memory)
        for name in memory.namespaces():
            for record in memory.namespace(name).find():
                count += 1
                for tag in STANDING_TAGS:
                    if tag in record.tags or SAID_TAGS[tag] in record.tags:  # the importers mark them as said
                        marked[tag].append(record.text)
    return count, marked


def main(folder: Path) -> None:
    count, found = of_papers(folder / "sciad")
    print(f"papers: {count} sentences; " + ", ".join(f"{tag} {found[tag]}" for tag in STANDING_TAGS))
    for data in (
        datasets.locomo(folder / "locomo" / "locomo5-dev.json"),
        datasets.beam(folder / "beam" / "100K"),
    ):
        count, marked = of_conversations(data)
        print(f"{data.name}: {count} records; " + ", ".join(f"{tag} {len(marked[tag])}" for tag in STANDING_TAGS))
        for tag, texts in marked.items():
            for text in texts:
                print(f"  {tag}: {' '.join(text.split())[:100]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
