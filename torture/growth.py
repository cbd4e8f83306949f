"""How the cost of an input grows with its length, for each kind of token and each call that reads it.

Twice the tokens may cost twice as much, or a little more (sorting). Work on the whole for each part costs four times as
much. The measure is exact, so it is the same on every machine: the functions of Python that are called, and the lengths
of the texts and lists that they are passed and return. That counts work in C, too, as long as it is done on a whole
text that a function is passed. What is passed with positions, and read only there, is listed (`_BY_POSITION`).
`python -m bench repeats` measures the time of the processor, at the limits.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from recollect import policies
from recollect.errors import RecollectError
from recollect.filters import contains, matches
from recollect.filters import from_json as filter_from_json
from recollect.importers import IMPORTERS, import_path
from recollect.memory import Memory
from recollect.stores.memory import MemoryStore
from recollect.testing.machine import memory_on
from torture.repeats import TOKENS, distinct, repeated

#: Functions that are passed a whole text and read a part of it, by the name of their module and their own; and the
#: constructors of named tuples, which only refer to it.
_BY_POSITION = frozenset(
    [
        ("<string>", "<lambda>"),
        *(("lexicon", name) for name in "_longest_entry _longest_at _is_name".split()),
        *(("naming", name) for name in "_accepted _is_meant".split()),
        *(("extraction", name) for name in "_begins _run _trimmed _type _is_called".split()),
    ]
)
#: Where each function is when it is called.
_begins: dict[CodeType, int] = {}
_SIZED = (str, bytes, list, tuple, dict, set, frozenset)
#: A call has costs that do not depend on its input: what is below counts as this much.
LEAST_WORK = 10_000
#: Twice the input may cost this many times as much. A kind that costs 4 times as much is quadratic.
MOST_GROWTH = 2.6
#: Each form of a text: its tokens alike, and each another one.
FORMS: dict[str, Callable[[str, int], str]] = {"alike": repeated, "distinct": distinct}


class Surface(NamedTuple):
    """A call that reads a text.

    Attributes:
        call: Makes it, on a memory that has some records.
        limit: The most bytes that it takes; None if it is only limited by the size of a record.
        is_write: Whether it changes the memory, so that each text needs one of its own.
    """

    call: Callable[[Memory, str], object]
    limit: int | None = None
    is_write: bool = False


def _imported(name: str, suffix: str) -> Surface:
    def call(memory: Memory, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"source{suffix}"
            path.write_bytes(text.encode("utf-8"))
            import_path(memory, IMPORTERS[name], path)

    return Surface(call, is_write=True)


def _stored_twice(work: Callable[[Memory], object]) -> Surface:
    """Return what is done with two records of a text and a little more."""

    def call(memory: Memory, text: str) -> None:
        memory.remember(text, id="one", user="u")
        memory.remember(f"{text} again", id="two", user="u")
        work(memory)

    return Surface(call, is_write=True)


def _aligned(memory: Memory, text: str) -> None:
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "yes"}]
    memory.add_messages(turns, conversation="long")
    memory.add_messages([*turns, {"role": "user", "content": f"{text}!"}], conversation="long")


def _called(memory: Memory, text: str) -> None:
    function = {"name": "look", "arguments": json.dumps({"what": text})}
    turn = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    memory.add_messages([turn, {"role": "tool", "tool_call_id": "1", "content": text}], conversation="long")


def _wide(text: str) -> list[str]:
    return text.split() or [text]


def _explained(memory: Memory, text: str) -> None:
    memory.glossary.memorize("tea", text, "c", agent_id="a", description=text)
    memory.glossary.annotate("tea " * 20, agent_id="a")
    memory.glossary.recall("tea", agent_id="a")


def _named(memory: Memory, text: str) -> None:
    names = [text[at : at + 200] for at in range(0, min(len(text), 10_000), 200)]
    memory.glossary.memorize(text[:900], "a drink", "c", agent_id="a", aliases=names)
    memory.glossary.annotate(text, agent_id="a")


def _any_of(memory: Memory, text: str) -> None:
    values = _wide(text)
    memory.find(filter_from_json({"any_of": [{"user": value} for value in values]}))
    memory.find(filter_from_json({"all_of": [{"not": {"tag": value}} for value in values]}))


def _deep(memory: Memory, text: str) -> None:
    value: Any = text
    for _ in range(50):
        value = {"a": [value]}
    memory.remember("x", metadata={"wide": {f"{at}{each}": each for at, each in enumerate(_wide(text))}, "deep": value})
    memory.find("meta.wide=1")


SURFACES: dict[str, Surface] = {
    "recall": Surface(lambda memory, text: memory.recall(text), 2**16),
    "context": Surface(lambda memory, text: memory.context(text, max_tokens=300), 2**16),
    "grep": Surface(lambda memory, text: memory.grep(text), 2**13),
    "contains": Surface(lambda memory, text: memory.find(contains(text)), 2**16),
    "matches": Surface(lambda memory, text: memory.find(matches(text)), 2**13),
    "filter as text": Surface(lambda memory, text: memory.find(text), 2**16),
    "filter, quoted": Surface(lambda memory, text: memory.find(f"content~{json.dumps(text)}"), 2**16),
    "filter, wide": Surface(_any_of, 2**13),
    "keyed.recall": Surface(lambda memory, text: memory.keyed.recall(text), 2**16),
    "sdr.query": Surface(lambda memory, text: memory.sdr.query(text), 2**16),
    "glossary.recall": Surface(lambda memory, text: memory.glossary.recall(text, agent_id="a"), 2**16),
    "glossary.annotate": Surface(lambda memory, text: memory.glossary.annotate(text, agent_id="a")),
    "outline.search": Surface(lambda memory, text: memory.outline.search(text), 2**16),
    "redact": Surface(lambda _, text: policies.redact(text)),
    "salience": Surface(lambda _, text: policies.judge(text)),
    "remember": Surface(lambda memory, text: (memory.remember(text), memory.recall("tea")), is_write=True),
    "metadata": Surface(_deep, is_write=True),
    "messages": Surface(_aligned, is_write=True),
    "tool calls": Surface(_called, is_write=True),
    "duplicates": _stored_twice(lambda memory: memory.duplicates()),
    "contradictions": _stored_twice(lambda memory: memory.contradictions()),
    "consolidate": _stored_twice(lambda memory: memory.consolidate(min_count=2)),
    "entities": Surface(lambda memory, text: memory.extract_entities(text), is_write=True),
    "knowledge": Surface(lambda memory, text: memory.record_knowledge(text, source="s"), is_write=True),
    "context of it": Surface(
        lambda memory, text: (memory.remember(text), memory.context("tea", max_tokens=200)), is_write=True
    ),
    "glossary text": Surface(_explained, is_write=True),
    "glossary names": Surface(_named, is_write=True),
    **{
        f"outline, {name}": Surface(
            lambda memory, text, name=name: memory.outline.ingest_text(text, name),  # type: ignore[misc]
            is_write=True,
        )
        for name in ("org", "markdown", "json")
    },
    **{
        f"import, {name}": _imported(name, suffix)
        for name, suffix in (("markdown", ".md"), ("text", ".txt"), ("csv", ".csv"), ("jsonl", ".jsonl"))
    },
}


def a_memory() -> Memory:
    """Return a memory with turns, facts, terms, an outline and a sparse code."""
    memory = memory_on(MemoryStore())
    turns = [f"Where is the harbour {number}? Ana likes tea on 7 May 2023." for number in range(10)]
    memory.add_messages([{"role": "user", "content": each, "name": "Ana"} for each in turns], conversation="c")
    memory.remember_all([f"text {number} of the harbour after the wedding" for number in range(10)])
    memory.glossary.memorize("tea", "a warm drink", "c", agent_id="a")
    memory.outline.ingest_text("* tea\n** cup\n* harbour\nwhere it is\n", "org")
    memory.sdr.store("tea is warm")
    return memory


def _size(value: object) -> int:
    return len(value) if type(value) in _SIZED else 0  # type: ignore[arg-type]


@cache
def _arguments_of(code: CodeType) -> tuple[str, ...]:
    """Return the names of the arguments of a function whose sizes count."""
    if (Path(code.co_filename).stem, code.co_name) in _BY_POSITION:
        return ()
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def work_of(call: Callable[[], object]) -> int:
    """Return the exact measure of a call's work. An error of ours ends it like a result."""
    work = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal work
        if event == "call":
            work += 1
            # A generator is called once, and then again for each item: it is at the place of its first call only once.
            if _begins.setdefault(frame.f_code, frame.f_lasti) == frame.f_lasti:
                values = frame.f_locals
                work += sum(_size(values.get(name)) for name in _arguments_of(frame.f_code))
        elif event == "return":
            work += _size(argument)
        elif event == "c_call":
            work += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        with suppress(RecollectError):
            call()
    finally:
        sys.setprofile(before)
    return work


class Grown(NamedTuple):
    """How the work for a kind of token grew.

    Attributes:
        surface, kind, form: What was measured.
        growth: The ratio of the work for twice the input to that for the input.
        work: The work for twice the input.
    """

    surface: str
    kind: str
    form: str
    growth: float
    work: int


def growth_of(surface: str, kind: str, form: str, size: int) -> Grown:
    """Measure an input of `size` bytes, and one of twice as many."""
    small, large = (_work(surface, FORMS[form](TOKENS[kind], bytes_)) for bytes_ in (size, 2 * size))
    return Grown(surface, kind, form, max(large, LEAST_WORK) / max(small, LEAST_WORK), large)


def _work(surface: str, text: str) -> int:
    call, _, is_write = SURFACES[surface]
    with a_memory() if is_write else _reading() as memory:
        return work_of(lambda: call(memory, text))


@contextmanager
def _reading() -> Iterator[Memory]:
    """Provide the memory of all reads."""
    yield _shared()


@cache
def _shared() -> Memory:
    return a_memory()


def all_growth(surface: str, size: int) -> Iterator[Grown]:
    """Measure every kind of token in every form at a surface."""
    for form in FORMS:
        for kind in TOKENS:
            yield growth_of(surface, kind, form, size)
