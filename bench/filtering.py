"""Recall with a filter, compared with recall without one.

The filters select 0.1 %, 1 %, 10 % and 50 % of the records by user; 1 % by tag, metadata, importance and time; all but
1 %; and the records with a rare text, which no index can find. `find` and `count` by tag are measured in the same run.
"""

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
        askers["tag 1%"] = admitting(f.tag("ten"))
        askers["metadata 1%"] = admitting(f.meta("from", "ten"))
        askers["importance 1%"] = admitting(f.importance_at_least(0.99))
        askers["all but a tag's 1%"] = admitting(~f.tag("ten"))
        askers["contains"] = admitting(f.contains("library"))
        askers["find by tag"] = lambda _: memory.find(where=f.tag("one"), limit=10)
        askers["count by tag"] = lambda _: memory.count(f.tag("half"))
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
