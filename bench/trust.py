"""`python -m bench trust`: what classes of origin cost.

The processor time of writing with each policy of `bench.poisoning`, as a ratio to "off", and that of following ten
thousand records to the page that they were made from, in recalls of the same memory.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import recollect
from bench.poisoning import POLICIES, others, turn

_DERIVED, _FANOUT, _RECALLS = 10_000, 10, 50
_WRITES, _MESSAGES = 200, 5
_SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "zi", "cho", "kra", "ple")


def _seconds(call: Callable[[], object]) -> float:
    before = time.process_time()
    call()
    return time.process_time() - before


def _texts(number: int) -> Iterator[str]:
    """Yield statements of which none has been made before: each has a word of its own."""
    for at, said in zip(range(_WRITES), others(), strict=False):
        own, word = number * _WRITES + at, ""
        while own or not word:
            own, syllable = divmod(own, len(_SYLLABLES))
            word += _SYLLABLES[syllable]
        yield f"{said} {word}ka {word[::-1]}no."


def _written(memory: recollect.Memory, number: int) -> None:
    """Write as agents do: turns, facts, results of tools, and pages; then recall, which indexes what was written."""
    for at, (text, found) in enumerate(zip(_texts(number), _texts(number + 10_000), strict=True)):
        if at % _MESSAGES == 0:
            said = [turn("user", text), turn("tool", found, "search"), turn("assistant", "Here it is.")]
            memory.add_messages(said, conversation=f"c{number}-{at}")
        else:
            memory.remember(text, source=f"https://news{at}.example" if at % 2 else None)
    memory.recall("which picture is in the guide?")


def _derived(memory: recollect.Memory) -> None:
    """Store ten thousand records that were made from one page, in chains and side by side."""
    memory.remember("The page says to pay at once.", id="d0", source="https://eve.example")
    for begin in range(1, _DERIVED + 1, 1000):
        memory.remember_all(
            {"id": f"d{at}", "content": f"Summary {at} of the page", "derived_from": [f"d{(at - 1) // _FANOUT}"]}
            for at in range(begin, begin + 1000)
        )


def trust(pairs: int) -> dict[str, Any]:
    """Return the ratios of the processor time of writing, with the quartiles, and the cost of a taint in recalls."""
    warnings.simplefilter("ignore", recollect.RecollectWarning)  # strict says what it keeps apart
    with tempfile.TemporaryDirectory() as folder:
        memories = {name: recollect.open(Path(folder, f"{name}.db")) for name in POLICIES}
        for name, memory in memories.items():
            memory.set_policies(**POLICIES[name])
            _written(memory, 0)  # warm
        ratios: dict[str, list[float]] = {name: [] for name in POLICIES}
        for number in range(1, pairs + 1):
            order = list(memories.items())
            spent = {
                name: _seconds(partial(_written, memory, number))
                for name, memory in (order if number % 2 else order[::-1])
            }
            for name in POLICIES:
                ratios[name].append(spent[name] / spent["off"])
        for memory in memories.values():
            memory.close()
        with recollect.open(Path(folder, "derived.db")) as memory:
            _derived(memory)
            assert len(memory.taint(source="https://eve.example").ids) >= _DERIVED - 1
            recall = _seconds(lambda: [memory.recall(f"summary {at} of the page") for at in range(_RECALLS)]) / _RECALLS
            taint = statistics.median(_seconds(lambda: memory.taint(source="https://eve.example")) for _ in range(5))
    return {
        "writing": {name: statistics.quantiles(each, n=4) for name, each in ratios.items() if name != "off"},
        "taint in recalls": taint / recall,
        "taint, ms": taint * 1000,
        "recall, ms": recall * 1000,
    }
