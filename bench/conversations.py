"""Recall over turns of conversations, alternating with recall over the same texts as independent records.

A turn also receives words from the turns around it and from its session, so a word of a question leads to several
times as many candidates. The conversations are synthetic: the sentences of this machine, as turns of two speakers in
sessions of 25 and conversations of 500, which are about the lengths of LoCoMo's.
"""

from __future__ import annotations

from typing import Any

import recollect
from bench import stores
from bench.corpus import corpus, questions
from bench.measuring import percentiles, versions
from bench.recall import WARM_UP, in_turn, warmed


def conversations(records: int, count: int = 200) -> dict[str, Any]:
    """`count` questions put to a store of this many turns, and to one of as many independent records."""
    source = corpus()
    texts = source.texts(records)
    asked, before = questions(texts, count), questions(texts, WARM_UP, seed=5)
    paths = {"independent": stores.plain(source, records), "turns": stores.of_conversations(source, records)}
    memories = {name: recollect.open(path, read_only=True) for name, path in paths.items()}
    kernels = [warmed(memory, before) for memory in memories.values()]
    times = in_turn({name: memory.recall for name, memory in memories.items()}, asked)
    for memory in memories.values():
        memory.close()
    figures = {name: percentiles(values) for name, values in times.items()}
    return {
        "command": "conversations",
        "records": records,
        "questions": count,
        **figures,
        "ratio": figures["turns"]["p50_ms"] / figures["independent"]["p50_ms"],
        "kernels": kernels[-1],
        **source.to_json(),
        "versions": versions(),
    }
