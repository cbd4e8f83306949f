"""Recall with a filter that selects a thousandth, a hundredth, a tenth and half of the records, by user, and the newest
hundredth, by time; beside one without."""

from __future__ import annotations

from typing import Any

import recollect
from bench import stores
from bench.corpus import corpus, questions
from bench.measuring import percentiles, versions
from bench.recall import Ask, in_turn, warmed
from recollect import filters as f


def filters(records: int, count: int = 100) -> dict[str, Any]:
    """`count` questions, each asked with every filter and without, in turn."""
    source = corpus()
    path = stores.with_users(source, records)
    texts = source.texts(records)
    asked, before = questions(texts, count), questions(texts, 40, seed=5)
    with recollect.open(path, read_only=True) as memory:

        def admitting(where: f.Filter) -> Ask:
            return lambda question: memory.recall(question, where=where)

        first_of_newest = memory.find(order="newest", limit=records // 100)[-1].time
        assert first_of_newest is not None
        askers: dict[str, Ask] = {"unfiltered": memory.recall}
        askers |= {f"{share / 10:g}%": admitting(f.user(user)) for user, share in stores.SHARES.items()}
        askers["newest 1%"] = admitting(f.after(first_of_newest))
        warmed(memory, before)
        for ask in askers.values():
            ask(before[0])
        figures = {name: percentiles(times) for name, times in in_turn(askers, asked).items()}
    whole = figures["unfiltered"]["p50_ms"]
    return {
        "command": "filters",
        "records": records,
        "questions": count,
        **figures,
        "ratio": {name: each["p50_ms"] / whole for name, each in figures.items() if name != "unfiltered"},
        **source.to_json(),
        "versions": versions(),
    }
