"""`python -m bench.messages`: what it costs to pass a growing list of messages again, beside one durable write.

For lists of several lengths: two new messages at the end of the whole list, and at the end of its last twenty. Each in
milliseconds, the median of 40 calls, with `remember` of one record measured in the same loop. Then `record_message` as
a multiple of `remember`, in alternation: of a plain record with the same text, and of the same turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import recollect
from recollect.agents import Manager

LENGTHS = (10, 100, 1000, 10_000)
_CALLS = 40
_WINDOW = 20
#: Calls of `record_message`.
_RECORDED = 600


def timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1000


def measured(memory: recollect.Memory, length: int) -> tuple[float, float, float]:
    """Return the medians of `remember`, of the whole list and of its end."""
    said = [
        {"role": ("user", "assistant")[number % 2], "content": f"message {number} about the house by the harbour"}
        for number in range(length)
    ]
    memory.add_messages(said, conversation=str(length))
    times: tuple[list[float], list[float], list[float]] = [], [], []
    for number in range(_CALLS):
        for at, window in ((1, None), (2, _WINDOW)):
            said += [
                {"role": "user", "content": f"{at} new {number}"},
                {"role": "assistant", "content": f"{at} re {number}"},
            ]
            passed = said if window is None else said[-window:]
            times[at].append(timed(lambda passed=passed: memory.add_messages(passed, conversation=str(length))))  # type: ignore[misc]
        times[0].append(timed(lambda number=number: memory.remember(f"note {length} {number}")))  # type: ignore[misc]
    first, whole, end = map(median, times)
    return first, whole, end


def recording(memory: recollect.Memory) -> tuple[float, float, float]:
    """Return the median of `Manager.record_message`, and its multiple of `remember` of a record and of a turn."""
    times: tuple[list[float], list[float], list[float]] = [], [], []
    manager = Manager(memory=memory, rate=False, contradictions="ignore")
    for number in range(_RECORDED):
        text = f"message {number} about the house by the harbour"
        calls: tuple[Callable[[], object], ...] = (
            lambda text=text: manager.record_message({"role": "user", "content": text}, "recorded", user="ana"),  # type: ignore[misc]
            lambda text=text: memory.remember(text, user="ana"),  # type: ignore[misc]
            lambda text=text: memory.remember(  # type: ignore[misc]
                text, kind="conversation", role="user", user="ana", conversation="remembered"
            ),
        )
        for turn in range(len(calls)):  # each is first as often as the others
            at = (number + turn) % len(calls)
            times[at].append(timed(calls[at]))
    recorded, record, turn_of = map(median, times)
    return recorded, recorded / record, recorded / turn_of


def main() -> None:
    print("messages  remember  whole list  last 20   (ms)")
    with TemporaryDirectory() as folder, recollect.open(Path(folder) / "bench.db") as memory:
        for length in LENGTHS:
            print("{:8}  {:8.2f}  {:10.2f}  {:7.2f}".format(length, *measured(memory, length)))
    with TemporaryDirectory() as folder, recollect.open(Path(folder) / "bench.db") as memory:
        line = "Manager.record_message {:.2f} ms: {:.2f} x remember, {:.2f} x remember of a turn"
        print(line.format(*recording(memory)))


if __name__ == "__main__":
    main()
