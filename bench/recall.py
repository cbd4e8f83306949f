"""Recall with its defaults, ten hits, alternating with peers over the same texts and questions.

An explanation is computed when it is read: `recollect` reads none, `every_why_read` those of all hits.

Measurements begin when all are warm: the first questions load and complete indexes. They are reported separately.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import recollect
from bench import stores
from bench.corpus import Corpus, cache_folder, corpus, questions
from bench.dialogues import Dialogues, dialogues
from bench.measuring import milliseconds, percentiles, told, versions
from bench.peers import PEERS, K, Peer, PeerMissingError
from bench.stages import stages

WARM_UP = 40
#: Questions that an asker answers before it is the next one's turn.
BLOCK = 20

Ask = Callable[[str], object]


def warmed(memory: recollect.Memory, asked: Sequence[str]) -> str:
    """Ask each question once; the kernels that answered."""
    for question in asked:
        kernels = memory.recall(question, K).plan.kernels
    return kernels


def in_turn(askers: dict[str, Ask], asked: Sequence[str]) -> dict[str, list[float]]:
    """Milliseconds of each question with each asker.

    They take turns, and take turns in being first, a block of questions at a time: after every change the first answer
    pays for what another has left in the processor's caches, so one question more is asked then, which is not counted.
    """
    names = list(askers)
    out: dict[str, list[float]] = {name: [] for name in names}
    for turn, begin in enumerate(range(0, len(asked), BLOCK)):
        block = asked[begin : begin + BLOCK]
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            askers[name](block[-1])
            out[name] += [milliseconds(askers[name], question) for question in block]
    return out


def built(name: str, texts: Sequence[str], folder: Path) -> tuple[Peer, float]:
    """A peer that holds the texts, and how many seconds that took. Raises: PeerMissingError."""
    with told(f"setting up {name}"):
        began = time.perf_counter()
        return PEERS[name](texts, folder), time.perf_counter() - began


def _spaces(memory: recollect.Memory, namespaces: int) -> list[recollect.Memory]:
    return [memory.namespace(stores.namespace_of(number)) for number in range(namespaces)]


#: The numbers of questions after opening that are measured apart: nothing was asked before.
FIRST = 100, 200


def recalls(
    records: int, peers: Sequence[str], count: int = 200, kind: str = "sentences", namespaces: int = 1
) -> dict[str, Any]:
    """`count` questions put to a store of so many records and to the peers.

    The records are independent sentences, or turns of conversations with questions as people ask them
    ("conversations"); these may be spread over several namespaces, which are asked in turn, without peers.
    """
    if namespaces > 1 and kind != "conversations":
        raise SystemExit("--namespaces needs --corpus conversations: sentences are in one namespace")
    source: Corpus | Dialogues
    if kind == "conversations":
        source = dialogues()
        texts = [turn.text for turn in source.turns(records)]
        path = stores.of_dialogues(source, records, namespaces)
        asked, before = source.questions(count), source.questions(WARM_UP, seed=5)
        first = source.questions(max(FIRST), seed=7)
    else:
        source = corpus()
        texts = source.texts(records)
        path = stores.plain(source, records)
        asked, before = questions(texts, count), questions(texts, WARM_UP, seed=5)
        first = questions(texts, max(FIRST), seed=7)
    peer_figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder, recollect.open(path, read_only=True) as memory:
        spaces = cycle([memory] if namespaces == 1 else _spaces(memory, namespaces))

        def ask(question: str) -> recollect.Hits:
            return next(spaces).recall(question, K)

        def ask_why(question: str) -> list[recollect.Why]:
            hits = ask(question)
            return [hit.why for hit in (*hits, *hits.standing)]

        cold_ms = milliseconds(ask, before[0])
        first_ms = [milliseconds(ask, question) for question in first]
        askers: dict[str, Ask] = {}
        for name in peers if namespaces == 1 else ():
            try:
                peer, seconds = built(name, texts, Path(folder))
            except PeerMissingError as missing:
                print(f" {missing}", file=sys.stderr)
                peer_figures[name] = {"missing": str(missing)}
                continue
            askers[name] = peer.ask
            peer_figures[name] = {"set_up_s": seconds, "about": peer.about}
        kernel = ask(before[0]).plan.kernels
        askers = {"recollect": ask, "recollect_why": ask_why, **askers}
        for each in askers.values():
            for question in before:
                each(question)
        times = in_turn(askers, asked)
        by_stage = stages(ask, asked)
    figures = {name: percentiles(values) for name, values in times.items()}
    ours, explained = figures.pop("recollect"), figures.pop("recollect_why")
    at_first = {f"first_{number}": percentiles(first_ms[:number]) for number in FIRST}
    return {
        "command": "recall",
        "records": records,
        "namespaces": namespaces,
        "questions": count,
        "recollect": {**ours, "cold_ms": cold_ms, **at_first, "kernel": kernel, "stages_ms": by_stage},
        "every_why_read": {**explained, "ratio": explained["p50_ms"] / ours["p50_ms"]},
        **{name: {**figures.get(name, {}), **facts} for name, facts in peer_figures.items()},
        "ratio": {name: figure["p50_ms"] / ours["p50_ms"] for name, figure in figures.items()},
        **source.to_json(),
        "versions": versions(),
    }
