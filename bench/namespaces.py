"""Recall in one of very many namespaces of a file, alternating with a store that has only that namespace.

Nothing crosses a namespace, so the other namespaces should cost nothing.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import recollect
from bench import stores
from bench.corpus import corpus, questions
from bench.measuring import milliseconds, percentiles, versions
from bench.recall import Ask, in_turn

CHOSEN, QUESTIONS_EACH = 5, 60


def many_namespaces(namespaces: int) -> dict[str, Any]:
    """`namespaces` of a hundred records each; some of them are asked."""
    source = corpus()
    path = stores.with_namespaces(source, namespaces)
    texts = source.texts(namespaces * stores.PER_NAMESPACE)
    among: list[float] = []
    alone: list[float] = []
    first_ms: list[float] = []
    alone_first_ms: list[float] = []
    with recollect.open(path, read_only=True) as memory, tempfile.TemporaryDirectory() as folder:
        for number in random.Random(4).sample(range(namespaces), min(CHOSEN, namespaces)):
            mine = stores.namespace_texts(texts, number)
            with recollect.open(Path(folder) / f"{number}.db", str(number)) as single:
                single.remember_all(mine)
            with recollect.open(Path(folder) / f"{number}.db", str(number), read_only=True) as single:
                one = memory.namespace(str(number))
                asked, before = questions(mine, QUESTIONS_EACH), questions(mine, 20, seed=5)
                first_ms.append(milliseconds(one.recall, before[0]))
                alone_first_ms.append(milliseconds(single.recall, before[0]))
                askers: dict[str, Ask] = {"among": one.recall, "alone": single.recall}
                in_turn(askers, before)
                times = in_turn(askers, asked)
            among += times["among"]
            alone += times["alone"]
    return {
        "command": "namespaces",
        "namespaces": namespaces,
        "records": namespaces * stores.PER_NAMESPACE,
        "among": {**percentiles(among), "first_p50_ms": percentiles(first_ms)["p50_ms"]},
        "alone": {**percentiles(alone), "first_p50_ms": percentiles(alone_first_ms)["p50_ms"]},
        "ratio": percentiles(among)["p50_ms"] / percentiles(alone)["p50_ms"],
        **source.to_json(),
        "versions": versions(),
    }
