"""`python -m bench.ablation DATA`: the contribution of each part of recall, measured by removing it, on both
development sets.

    python -m bench.ablation DATA           without a model
    python -m bench.ablation DATA minilm    the parts of meaning, with a model whose extra is installed

DATA is the folder with locomo/ and beam/. Every row is the full configuration without one part: recall@10 and nDCG@10
in per cent over all questions with evidence. J is the mean of the four.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scripts.fit_confidence import Once

import recollect
from recollect.engine.read import queries
from recollect.engine.read import recall as recalling
from recollect.evaluation import datasets
from recollect.evaluation.run import evaluate
from recollect.indexes.documents.columns import Ints
from recollect.indexes.documents.table import Table
from recollect.indexes.fixed_point import ONE
from recollect.indexes.kernels import factors
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.scoring import dense, members, order_and_summary, scores, signals, speakers, times
from recollect.indexes.words import fuzzy, novelty
from recollect.indexes.words import index as words
from recollect.models.embedding.base import Embedder
from recollect.models.embedding.environment import NO_EMBEDDER, embedder_from
from recollect.text import dates, manner
from recollect.text import words as text_words
from recollect.text.answers import ASKS, INSTRUCTION, Kind
from recollect.text.frames import Frame

Change = tuple[Any, str, Any]


def _without_kinds(*kinds: int) -> list[Change]:
    return [(factors, "BY_KIND", {**factors.BY_KIND, **dict.fromkeys(kinds, (1, 1))})]


def _without_wish(tag: str) -> list[Change]:
    return [(manner, "WISHES", {**manner.WISHES, tag: Fraction(1), manner.SAID_TAGS[tag]: Fraction(1)})]


#: Part -> what makes it have no effect.
PARTS: dict[str, list[Change]] = {
    "nothing": [],
    "context": [
        (numpy_kernels, "FROM_BEFORE", (0, 0, 0, 0)),
        (numpy_kernels, "FROM_AFTER", (0, 0, 0, 0)),
        (numpy_kernels, "AFTER_QUESTION", 0),
    ],
    "the question bonus of context": [(numpy_kernels, "AFTER_QUESTION", 0)],
    "the donor cap of context": [(numpy_kernels, "DONOR_CAP", 10**6)],
    "session": [(numpy_kernels, "SESSION_SHARE", 0)],
    "pair": [(scores, "PAIR_SHARE", 0)],
    "date": [(times, "_SHARE", 0)],
    "times of the day": [(dates, "windows_in", lambda question: ())],
    "speaker": [(signals, "SPEAKER", ONE), (signals, "SPEAKING_ASSISTANT", ONE)],
    "the assistant that a question asks": [(signals, "ASSISTANT", "")],
    "what I said about another person": [(signals, "asks_what_i_said", lambda words: False)],
    "the admitted speaker": [(signals, "SAID_SHARE", 0), (signals, "NAMED_SHARE", 0)],
    "the kind of answer": _without_kinds(Kind.TIME, Kind.NUMBER, Kind.NAME),
    "reasons": _without_kinds(Kind.REASON),
    "the past": _without_kinds(Kind.PAST),
    "instructions in recollections": _without_kinds(INSTRUCTION),
    "members of classes": [(signals, "members_in", lambda text, view: ())],
    "the words of requests": [(signals, "subject_of", lambda text, request: text)],
    "the opening of sessions": [(order_and_summary, "OPENING", (0, 1))],
    "the spread of orders": [(order_and_summary, "SPREAD", (1, 1))],
    "assistants in summaries": [(order_and_summary, "SUMMARIZED_ASSISTANT", (1, 1))],
    "'kind of' in questions": [(signals, "without_kind", lambda text: text)],
    "frames of questions": [(signals, "frame_of", lambda *arguments: Frame())],
    "titles": [(numpy_kernels, "TITLE_MASS", 0)],
    "the asking factor": [(manner, "ASKING", Fraction(0))],
    "the assistant factor": [(manner, "ASSISTANT", Fraction(1))],
    "the factor of one's own": [(manner, "OWN", Fraction(1))],
    "the instruction factor": _without_wish(manner.INSTRUCTION),
    "the preference factor": _without_wish(manner.PREFERENCE),
    "texts that only ask": _without_kinds(ASKS),
    "rivals": [(recalling, "_contest", lambda question, view, span: None)],
    "the limit of neighbours": [(signals, "limits", lambda found, best: scores.NOTHING)],
    "new words": [(novelty, "NOVEL", (0, 1))],
    "general language": [(each, "background_of", lambda language: None) for each in (members, words)],
    "likeness of unknown words": [(words.WordView, "similar", lambda self, word, stem: [])],
    "the limit of likeness": [(fuzzy, "may_stand_for", lambda known, unknown: True)],
    "the parts of mixed words": [(text_words, "_MIXED", re.compile("(?!)"))],
}


def _not_lent(table: Table, numbers: Ints, above: Ints, unit: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
    """Do what `scoring.dense.lent` does, but a turn has what it has by itself."""
    shares: Ints = np.zeros(table.count, dtype=np.int64)
    of, out_of = unit
    shares[numbers] = above * of // out_of
    return shares, numbers, above


#: The same for the parts of meaning.
MEANING: dict[str, list[Change]] = {
    "nothing": [],
    "names left out of the question": [(queries, "without_names", lambda text, view: text)],
    "names of what is no speaker": [(speakers, "COMMON", 10**9)],
    "what turns lend": [(dense, "lent", _not_lent)],
    "hits by meaning alone": [(dense.Dense, "admitted", property(lambda self: scores.NOTHING))],
    "floors that rise": [(dense, "FEW_VECTORS", 10**9)],
    "new words": PARTS["new words"],
    "general language": PARTS["general language"],
}


@contextmanager
def without(changes: list[Change]) -> Iterator[None]:
    """The package with some of its constants changed, walked by NumPy: what is compiled has its constants in it."""
    manner._weight.cache_clear()
    patches: list[Any] = [patch.object(where, name, value) for where, name, value in changes]
    patches.append(patch.object(scores, "chosen", lambda: numpy_kernels.KERNELS))
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
        manner._weight.cache_clear()


def measured(data: datasets.DataSet, embedder: Embedder | None = None) -> tuple[float, float]:
    """recall@10 and nDCG@10 in per cent."""
    with recollect.open(":memory:", embedder=embedder or NO_EMBEDDER) as memory:
        overall = evaluate(data, memory).summary()["overall"]
    return 100 * overall["recall@10"], 100 * overall["ndcg@10"]


def main(folder: Path, model: str = NO_EMBEDDER, *, say: Callable[[str], object] = print) -> None:
    """Print a row of Markdown for each part."""
    embedder = None if model == NO_EMBEDDER else Once(embedder_from(model))
    sets = (datasets.locomo(folder / "locomo" / "locomo5-dev.json"), datasets.beam(folder / "beam" / "100K"))
    say("| without | J | LoCoMo recall@10 / nDCG@10 | BEAM recall@10 / nDCG@10 |\n|---|---|---|---|")
    for part, changes in (PARTS if embedder is None else MEANING).items():
        with without(changes):
            (one, first), (other, second) = (measured(data, embedder) for data in sets)
        mean = float(np.mean([one, first, other, second]))
        say(f"| {part} | {mean:.1f} | {one:.1f} / {first:.1f} | {other:.1f} / {second:.1f} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
