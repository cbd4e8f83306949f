"""Ask eighty questions of eight small memories: what part of the returned facts answers, and what part is missing.

    python -m bench.precision                       recall as it is, concise, with a threshold, and with both
    python -m bench.precision --embedder minilm     with a model, whose extra is installed

Precision is the part of the returned facts that answer, the mean over questions; where the memory does not know the
answer, it is 1 if nothing is returned and 0 otherwise. Recall is the part of the facts that answer which is returned,
over the questions with an answer. The sets were made up for this purpose, before any figure was looked at.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import recollect
from recollect.models.embedding.base import Embedder
from recollect.models.embedding.environment import NO_EMBEDDER, embedder_from

MEMORIES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("memories.toml").read_text("utf-8"))["memory"]
#: The ways to ask, by their names: arguments of `recall`.
WAYS: dict[str, dict[str, Any]] = {
    "ten hits": {},
    "confident": {"min_confidence": "auto"},
    "concise": {"concise": True},
    "concise and confident": {"concise": True, "min_confidence": "auto"},
}


class Answer(NamedTuple):
    """What a question got.

    Attributes:
        kind: The kind of the case.
        returned: How many facts were returned.
        precision: The part of them that answer.
        recall: The part of the facts that answer which was returned; None if the memory does not know the answer.
    """

    kind: str
    returned: int
    precision: float
    recall: float | None


def filled(given: dict[str, Any], embedder: Embedder | None) -> recollect.Memory:
    """Return a memory with the facts."""
    memory = recollect.open(":memory:", embedder=embedder or NO_EMBEDDER)
    for number, (fact, text) in enumerate(given["facts"].items()):
        ended = given.get("ends", {}).get(fact)
        user = given.get("of", {}).get(fact, given.get("user"))
        time = f"2026-02-{number + 1:02}"
        memory.remember(text, id=fact, user=user, time=time, supersedes=[ended] if ended else [])
    if embedder is not None:
        memory.embed_all()
    return memory


def answers(way: dict[str, Any], embedder: Embedder | None = None) -> Iterator[Answer]:
    """Yield what each question gets."""
    for given in MEMORIES:
        with filled(given, embedder) as memory:
            for kind, question, right in given["cases"]:
                hits = memory.recall(question, user=given.get("user") if kind == "scope" else None, **way)
                found = {hit.record.id for hit in hits}
                good = len(found & {*right})
                precision = good / len(found) if found else float(not right)
                yield Answer(kind, len(found), precision, good / len(right) if right else None)


def across(embedder: Embedder | None = None) -> tuple[int, int]:
    """Return how many questions in another language have their answer in the first three hits, and how many exist."""
    found = total = 0
    for given in MEMORIES:
        with filled(given, embedder) as memory:
            for question, right in given.get("across", ()):
                total += 1
                found += right in [hit.record.id for hit in memory.recall(question, k=3)]
    return found, total


class Apart(NamedTuple):
    """What questions get that share hardly a word with the fact that answers them.

    Attributes:
        first: How many have it first.
        three: How many have it in the first three.
        asked: How many were asked.
        unknown: How many questions that no fact answers got a fact.
        of: How many of those were asked.
    """

    first: int
    three: int
    asked: int
    unknown: int
    of: int


def apart(embedder: Embedder | None = None) -> Apart:
    """Ask the questions of `apart.toml`."""
    given = tomllib.loads(Path(__file__).with_name("apart.toml").read_text("utf-8"))
    with recollect.open(":memory:", embedder=embedder or NO_EMBEDDER) as memory:
        memory.remember_all(given["facts"])
        if embedder is not None:
            memory.embed_all()
        found = [
            [given["facts"][right] == hit.record.content for hit in memory.recall(question, k=3)]
            for question, right in given["questions"]
        ]
        unknown = sum(len(memory.recall(question)) > 0 for question in given["unknown"])
    return Apart(
        sum(each[:1] == [True] for each in found), sum(map(any, found)), len(found), unknown, len(given["unknown"])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default=NO_EMBEDDER)
    name = parser.parse_args().embedder
    embedder = None if name == NO_EMBEDDER else embedder_from(name)
    print("                        precision  recall  facts returned")
    for way, arguments in WAYS.items():
        found = list(answers(arguments, embedder))
        recalls = [each.recall for each in found if each.recall is not None]
        print(
            f"{way:24}{mean(each.precision for each in found):9.3f}{mean(recalls):8.3f}"
            f"{mean(each.returned for each in found):16.2f}"
        )
        for kind in dict.fromkeys(each.kind for each in found):
            of = [each for each in found if each.kind == kind]
            parts = [each.recall for each in of if each.recall is not None]
            recalled = f"{mean(parts):8.3f}" if parts else "       -"
            returned = mean(each.returned for each in of)
            print(f"  {kind:22}{mean(each.precision for each in of):9.3f}{recalled}{returned:16.2f}")
    print("questions in another language, answered in the first three: {} of {}".format(*across(embedder)))
    print(
        "questions that share hardly a word with their answer: {} first, {} in the first three of {}; {} of {} that "
        "nothing answers get a fact".format(*apart(embedder))
    )


if __name__ == "__main__":
    main()
