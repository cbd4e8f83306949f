"""Bad input: for any bytes, the outcome is one of our errors or a result, quickly and within a bound of memory.

A text of any characters costs at most a multiple of plain words (`worst_cases`). Inputs are randomly changed examples:
bytes and bits, pieces removed, duplicated and moved, tokens of the format inserted, JSON values exchanged, nesting
deepened. `coverage` has mutations that are guided by the code they reach.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from recollect.errors import RecollectError
from torture.fuzz_targets import Target, targets
from torture.trials import Trial
from torture.worst_cases import cases, plain, too_dear, use, work

#: Inputs for each seed, and texts that may be dear, of so many bytes.
INPUTS = 60
TEXTS, TEXT_BYTES = 10, 2**13
#: An input of n bytes takes at most this many, beside what is there before, and this many for each of its bytes.
BASE_BYTES, BYTES_A_BYTE = 8 * 2**20, 400
#: An input takes at most so much of the processor's time. (They have some kilobytes; this is for what never ends.)
MOST_S = 20
_TOKENS = [
    *(
        each.encode()
        for each in "{ } [ ] ( ) \" ' , : = < > * ? \\ - -- and or not null true NaN 1e999 -0 \ud7ff".split()
    ),
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbf\xbf", b"\xf4\x90\x80\x80", "\u202e".encode(), "e\u0301".encode()),
    *(b"9" * 30, b"-9223372036854775809", b"0001-01-01T00:00:00", b"9999-12-31T23:59:59-23:59", b"\\ud800"),
]
_VALUES: list[Any] = [None, True, -1, 2**63, 10**400, 1.5, "", "x" * 300, "\ud800", [], {}, [[]], {"": {}}, "absent"]


class TooLongError(Exception):
    """An input took more time than any may."""


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The data, changed in one to six places."""
    if rng.random() < 0.5:
        other = _other_value(data, rng)
        if other != data and rng.random() < 0.7:
            return other
    for _ in range(rng.randrange(1, 7)):
        at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        to = min(to, at + rng.choice((1, 8, 64, 4096)))
        match rng.randrange(8):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]
            case 2:
                data = data[:at] + data[to:]
            case 3:
                data = data[:to] + data[at:to] * rng.choice((1, 2, 50)) + data[to:]
            case 4:
                data = data[:at]
            case 5:
                data = data[:at] + bytes(to - at) + data[to:]
            case 6:
                data = data[:at] + rng.choice(_TOKENS) * rng.choice((1, 1, 1, 1000)) + data[at:]
            case _:
                data = data[:at] + rng.choice(_TOKENS) + data[to:]
    return data[: 2**16] if len(data) < 2**17 else data


def _other_value(data: bytes, rng: random.Random) -> bytes:
    """JSON with one of its values exchanged, taken away or nested; other data as it is."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    places: list[tuple[Any, Any]] = []

    def walk(within: Any) -> None:
        items = within.items() if isinstance(within, dict) else enumerate(within) if isinstance(within, list) else ()
        for key, inner in items:
            places.append((within, key))
            walk(inner)

    walk(value)
    if not places:
        return json.dumps(rng.choice(_VALUES)).encode()
    within, key = rng.choice(places)
    match rng.randrange(4):
        case 0:
            del within[key]
        case 1:
            other, place = rng.choice(places)
            within[key] = json.loads(json.dumps(other[place])) if place in other or isinstance(other, list) else None
        case 2:
            for _ in range(rng.choice((1, 50, 2000))):
                within[key] = [within[key]]
            try:
                return json.dumps(value).encode()
            except RecursionError:
                return b"[" * 5000 + b"]" * 5000
        case _:
            within[key] = rng.choice(_VALUES)
    return json.dumps(value).encode()


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise TooLongError in what takes more of the processor's time."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TooLongError(f"it took more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def tried(target: Target, data: bytes, folder: Path) -> tuple[str, str]:
    """Give a target some input: "taken" or "refused", and what was wrong with how it did so, "" for nothing."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    said, problem = "refused", ""
    try:
        with bounded(MOST_S):
            said = "taken" if target.call(data, folder) else said
    except RecollectError as error:
        if not str(error):
            problem = f"{type(error).__name__} says nothing"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        problem = f"{type(error).__name__}: {error}"
    taken = tracemalloc.get_traced_memory()[1] - before if tracemalloc.is_tracing() else 0
    if not problem and taken > BASE_BYTES + BYTES_A_BYTE * len(data):
        problem = f"{len(data)} bytes took {taken} bytes of memory"
    return said, problem and f"{problem}; the input was {data[:200]!r}"


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """Many inputs to one target, then texts that may be dear."""
    with _without_compiler():
        rng = random.Random(seed)
        yield from _inputs(seed, rng, folder)
        yield from _dear_texts(seed, rng)


def _inputs(seed: int, rng: random.Random, folder: Path) -> Iterator[Trial]:
    """Many inputs to one target."""
    name = rng.choice(sorted(targets()))
    target = targets()[name]
    for example in target.examples:
        said, problem = tried(target, example, folder)
        yield Trial(seed, f"{name}: examples", problem or ("" if said == "taken" else f"refused: {example[:80]!r}"))
    tracemalloc.start()
    try:
        for _ in range(INPUTS):
            said, problem = tried(target, mutated(rng.choice(target.examples), rng), folder)
            yield Trial(seed, f"{name}: {said}", problem)
    finally:
        tracemalloc.stop()


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Let no thread load compiled kernels: its memory would count as an input's, and it reads the environment.

    Inputs change variables of the environment, and a thread inside LLVM that reads them meanwhile can crash.
    """
    assert not any(thread.name == "recollect-kernels" for thread in threading.enumerate()), "loaded before the trials"
    before = os.environ.get("RECOLLECT_KERNELS")
    os.environ["RECOLLECT_KERNELS"] = "numpy"
    try:
        yield
    finally:
        del os.environ["RECOLLECT_KERNELS"]
        if before is not None:
            os.environ["RECOLLECT_KERNELS"] = before


def _dear_texts(seed: int, rng: random.Random) -> Iterator[Trial]:
    """Some of the texts that may be dear, beside plain words."""
    use("é 我 각 \U0001f600 \U000323b0 \u0301 tea " * 20)  # what is made once for all texts
    of_plain = work(plain(TEXT_BYTES, seed))
    for case in rng.sample(cases(seed), TEXTS):
        text = case.text(TEXT_BYTES)
        try:
            # What is wrong is so each time; a thread that an earlier trial left may take memory once.
            problem = too_dear(work(text), of_plain) and too_dear(work(text), of_plain)
        except RecollectError as error:  # characters that no text may have
            problem = "" if str(error) else f"{type(error).__name__} says nothing"
        yield Trial(seed, "texts", problem and f"{case.name}: {problem}")
