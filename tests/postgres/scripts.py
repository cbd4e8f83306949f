"""Random scripts of operations: what they return, and what they leave, in a form that two stores can be compared by."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Literal

from recollect import filters as f
from recollect.errors import InvalidArgumentError, RecollectError
from recollect.memory import Memory
from recollect.operations import ORDERS
from recollect.testing.loopback import core_of

_WORDS = "tea coffee boat harbour Ana Bob Åse Übung naïve 東京 привет z Z a-b red green blue night".split()
_IDS = ("a", "B", "b", "é", "z", "Z", "ключ", "\U0001f600", "~", "_")
_KINDS = ("user_fact", "task", "preference")
#: What differs although nothing is wrong: tokens that contain the store's uuid, and paths.
_OWN = ("cursor", "path", "uuid", "next", "copies", "pending")


def run(memory: Memory, seed: int, length: int = 40) -> list[str]:
    """Execute a script, and return a line for each result and for everything that the store has afterwards."""
    random_ = random.Random(seed)
    lines: list[str] = []
    for _ in range(length):
        name = random_.choice(list(_STEPS))
        try:
            result = _STEPS[name](memory, random_)
        except RecollectError as error:
            result = f"{type(error).__name__} {error.code}"
        lines.append(f"{name} {_line(result)}")
    lines += contents(memory)
    return lines


def contents(memory: Memory) -> list[str]:
    """Return a line for each commit, record, hit and snapshot."""
    lines = []
    with core_of(memory).store.read() as view:
        for branch in view.branches():
            head = view.head(branch)
            lines.append(f"head {branch} {head.seq} {head.memory_root.hex()} {head.micros}")
            for commit in view.commits(branch):
                redactions = {name: value.hex() for name, value in view.redactions(branch, commit.seq).items()}
                lines.append(f"commit {commit.seq} {commit.entry.hex()} {commit.changes} {redactions}")
            for order in ORDERS:
                found = view.select(branch, f.everything(), order=order, now=0)
                lines.append(f"{order} {[record.id for record in found]}")
        settings = view.settings("", "\U0010ffff").items()
        # A thread notes the time of a read, and an erasure is finished when the store can.
        lines.append(f"settings {[each for each in settings if not each[0].startswith(('clock', 'erasing'))]}")
    for question in ("tea", "Ana boat", "привет 東京", "naïve Übung red"):
        lines.append(f"recall {_line(memory.recall(question, k=20))}")
        lines.append(f"context {_line(memory.context(question))}")
    lines.append(f"snapshots {_line(memory.snapshots())}")
    return lines


def _line(result: Any) -> str:
    return json.dumps(_plain(result), ensure_ascii=False, sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):
        value = value.to_json()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name not in _OWN}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _text(random_: random.Random) -> str:
    return " ".join(random_.choices(_WORDS, k=random_.randint(1, 9)))


def _fields(random_: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if random_.random() < 0.8:
        fields["id"] = random_.choice(_IDS)
    if random_.random() < 0.4:
        fields["user"] = random_.choice(("ana", "Ana", "bob", "Åse"))
    if random_.random() < 0.4:
        fields["kind"] = random_.choice(_KINDS)
    if random_.random() < 0.3:
        fields["importance"] = random_.choice((0.0, 0.25, 0.5, 1.0))
    if random_.random() < 0.2:
        fields["ttl"] = random_.choice((5, 50, 500))
    if random_.random() < 0.2:
        fields["tags"] = random_.sample(_WORDS, 2)
    return fields


def _remember(memory: Memory, random_: random.Random) -> Any:
    choices: list[Literal["keep", "update", "error"]] = ["keep", "update", "error"]
    return memory.remember(_text(random_), if_exists=random_.choice(choices), **_fields(random_))


def _messages(memory: Memory, random_: random.Random) -> Any:
    turns = [{"role": random_.choice(("user", "assistant")), "content": _text(random_)} for _ in range(4)]
    return memory.add_messages(turns, conversation=random_.choice(("c", "C", "é")))


def _batch(memory: Memory, random_: random.Random) -> Any:
    out: list[Any]
    with memory.batch(reason=_text(random_)) as batch:
        out = [batch.remember(_text(random_), **_fields(random_) | {"id": f"batch {number}"}) for number in range(3)]
        out.append(batch.find(limit=3))
        if random_.random() < 0.3:
            raise InvalidArgumentError("batch", "", "undone")
    return out


def _rollback(memory: Memory, random_: random.Random) -> Any:
    return memory.rollback(max(1, memory.head().seq - random_.randint(0, 5)))


_STEPS: dict[str, Callable[[Memory, random.Random], Any]] = {
    "remember": _remember,
    "remember again": _remember,
    "remember all": lambda memory, random_: memory.remember_all(
        [_text(random_) for _ in range(random_.randint(1, 30))]
    ),
    "messages": _messages,
    "update": lambda memory, random_: memory.update(random_.choice(_IDS), content=_text(random_)),
    "forget": lambda memory, random_: memory.forget(random_.choice(_IDS)),
    "supersede": lambda memory, random_: memory.supersede(random_.choice(_IDS), _text(random_)),
    "erase": lambda memory, random_: memory.erase(random_.choice(_IDS), redact=random_.random() < 0.5),
    "snapshot": lambda memory, random_: memory.snapshot(),
    "rollback": _rollback,
    "batch": _batch,
    "recall": lambda memory, random_: memory.recall(_text(random_), k=5),
    "find": lambda memory, random_: memory.find(f.user("ana", "Åse") | f.kind("task"), limit=random_.randint(1, 5)),
    "count": lambda memory, random_: memory.count(~f.user("Ana")),
    "grep": lambda memory, random_: memory.grep(random_.choice(_WORDS)),
    "term": lambda memory, random_: memory.glossary.memorize(
        random_.choice(_WORDS), _text(random_), "term", "agent", (random_.choice(_WORDS),)
    ),
    "terms": lambda memory, random_: memory.glossary.recall(_text(random_), "agent"),
    "quota": lambda memory, random_: memory.set_quota(records=random_.randint(20, 60), when_full="oldest"),
    "no quota": lambda memory, random_: memory.set_quota(),
    "history": lambda memory, random_: memory.history(random_.choice(_IDS)),
    "other": lambda memory, random_: memory.namespace("other").remember(_text(random_)),
}
