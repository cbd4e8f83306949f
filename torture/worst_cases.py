"""Texts that are as expensive as possible for their length: characters of every kind in Unicode, repeated and
alternated.

The cost of a character follows from its properties: category, combining class, decomposition, direction, whether it is
part of words and of which kind, number of bytes. There is one character here for each combination that occurs in
Unicode 14, so a fault that depends on a property is found without anyone having thought of it. The yardstick is
`plain`: distinct words of as many bytes.
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
import unicodedata
from collections.abc import Iterator
from functools import cache
from io import StringIO
from types import FrameType
from typing import NamedTuple

from recollect.filters import contains, matches
from recollect.importers import write_jsonl
from recollect.stores.memory import MemoryStore
from recollect.testing.machine import memory_on
from recollect.text.unicode import fold, is_known
from recollect.text.words import runs

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: A character of each group, and how it is put beside others.
_SHAPES = ("{0}", "{0} ", "a{0}", "{0}'", "a{0}{1}", "{0}{1}")
#: What ASCII has that rules look for, and that runs of nothing else are made of.
_WRITTEN = (
    "a", "a ", "A a ", "a'", "'", "1", "1 ", "1-", "12:30 ", "2023-01-01 ", "1 May ", "yesterday ", "the last week ",
    "i ", "? ", "q? ", ".\n", "\n", "\t", "'s ", "o'b ", "always ", "i don't ", "don't ", "(", "a.b", "a-b ", "\0",
)  # fmt: skip


class Case(NamedTuple):
    """A text that may be dear: one that is repeated, or characters that stand in any order.

    unit   what is repeated
    block  characters of about the same length in UTF-8, as a language has them
    """

    name: str
    unit: str = ""
    block: str = ""

    def text(self, size: int) -> str:
        """It in about so many bytes; at least one of its unit or block."""
        if self.block:
            count = max(1, size // len(self.block[0].encode("utf-8")))
            return "".join(random.Random(self.name).choices(self.block, k=count))
        repeated = self.unit * max(1, size // len(self.unit.encode("utf-8")))
        return repeated if repeated.strip() else f"a{repeated}"


def plain(size: int, seed: int = 0) -> str:
    """Distinct words of random letters, of so many bytes."""
    rng = random.Random(seed)
    out: list[str] = []
    length = 0
    while length < size:
        out.append("".join(rng.choices(_LETTERS, k=rng.randrange(3, 10))))
        length += len(out[-1]) + 1
    return " ".join(out)[:size].rstrip()


#: Where characters are as their neighbours are: every so many are looked at.
_UNIFORM, _EVERY = (range(0x3400, 0xD800), range(0xE000, 0xF900), range(0x17000, 0x18D00), range(0x20000, 0x110000)), 97


def _points() -> Iterator[int]:
    """Code points beyond ASCII but surrogates, few of where many are alike."""
    uniform = sorted(
        point for each in _UNIFORM for point in each if point % _EVERY == 0 or unicodedata.decomposition(chr(point))
    )
    various = set(range(0x80, 0x110000)).difference(range(0xD800, 0xE000), *_UNIFORM)
    yield from sorted(various.union(uniform))


@cache
def representatives() -> tuple[str, ...]:
    """A known character beyond ASCII of each combination of properties."""
    found: dict[tuple[object, ...], str] = {}
    for char in map(chr, _points()):
        if not is_known(char):
            found.setdefault(("unknown", len(char.encode("utf-8")), ord(char) >> 16), char)
            continue
        decomposed = unicodedata.normalize("NFKD", char)
        folded = fold(char)
        kind = (
            unicodedata.category(char),
            unicodedata.combining(char),
            unicodedata.bidirectional(char),
            unicodedata.decomposition(char).partition(" ")[0] if unicodedata.decomposition(char)[:1] == "<" else "",
            len(decomposed),
            unicodedata.combining(decomposed[0]),
            unicodedata.combining(decomposed[-1]),
            len(folded),
            len(folded.split()),
            tuple(unspaced for _, unspaced in runs(char)),
            len(char.encode("utf-8")),
        )
        found.setdefault(kind, char)
    return tuple(found.values())


def cases(seed: int = 0) -> list[Case]:
    """Every representative in every shape, what ASCII has, and what blocks have.

    seed  decides which others a character is alternated with
    """
    rng = random.Random(seed)
    units = list(_WRITTEN)
    everyone = representatives()
    marks = [char for char in everyone if unicodedata.combining(char)]
    for char in everyone:
        other = rng.choice(marks if unicodedata.combining(char) else everyone)
        units += [shape.format(char, other) for shape in _SHAPES]
    out = [Case(ascii(unit), unit) for unit in units]
    for low in range(0x80, 0x30000, 0x400):
        block = [char for char in map(chr, range(low, low + 0x400)) if char.isprintable() and is_known(char)]
        if block:
            out.append(Case(f"from U+{low:04X}", block="".join(block)))
    return out


class Work(NamedTuple):
    """What a text cost.

    calls    of Python's functions and of those in C: as many on every machine
    bytes    of Python's memory, the most at a time
    seconds  of the processor's time, with those counted
    """

    calls: int
    bytes: int
    seconds: float


def use(text: str) -> None:
    """Make every call that reads a text: keep it, under its id and without, index, grep, filter and export it.

    Raises: RecollectError where it is refused.
    """
    with memory_on(MemoryStore()) as memory, memory_on(MemoryStore()) as other:
        memory.remember(text, id="a")
        other.remember(text)
        memory.recall("tea")
        memory.grep("tea")
        memory.find(contains("tea") | matches("tea"))
        memory.update("a", content=f"{text}.")
        memory.recall("tea")
        write_jsonl(memory, StringIO())


def work(text: str) -> Work:
    """What `use` of a text costs. Raises: RecollectError where it is refused."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    traced = tracemalloc.is_tracing()
    if not traced:
        tracemalloc.start()
    tracemalloc.reset_peak()
    stored = tracemalloc.get_traced_memory()[0]
    began, before = time.thread_time(), sys.getprofile()
    sys.setprofile(count)
    try:
        use(text)
    finally:
        sys.setprofile(before)
        seconds = time.thread_time() - began
        peak = tracemalloc.get_traced_memory()[1]
        if not traced:
            tracemalloc.stop()
    return Work(calls, peak - stored, seconds)


#: A text may cost so many times what plain words cost; and in any case so much.
MOST_TIMES = 2.0
SPARE = Work(20_000, 2**20, 0.5)
#: Time is compared with a wider margin, as a machine has other work: this finds what is quadratic.
_MOST_TIMES_OF_TIME = 5.0


def too_dear(cost: Work, of_plain: Work, *, timed: bool = True) -> str:
    """What is wrong with the cost of a text beside that of plain words of as many bytes; "" for nothing.

    timed  whether time counts, which is not the same on every run
    """
    if cost.calls > MOST_TIMES * of_plain.calls + SPARE.calls:
        return f"it took {cost.calls} calls, {of_plain.calls} for plain words"
    if cost.bytes > MOST_TIMES * of_plain.bytes + SPARE.bytes:
        return f"it took {cost.bytes} bytes of memory, {of_plain.bytes} for plain words"
    if timed and cost.seconds > _MOST_TIMES_OF_TIME * of_plain.seconds + SPARE.seconds:
        return f"it took {cost.seconds:.2f} s, {of_plain.seconds:.2f} for plain words"
    return ""
