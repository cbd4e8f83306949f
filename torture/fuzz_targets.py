"""The entry points for input from outside, each as a function of bytes, with examples of valid input.

A target may reject its input with one of our errors, or accept it. Accepted input must then be usable: filters match,
records encode to the bytes they were read from, memories answer and pass their check. Any other outcome is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from recollect.cli.app import app
from recollect.engine.index import keeper as indexing
from recollect.evaluation import DATASET_IMPORTERS
from recollect.filters import Filter, parse
from recollect.filters import from_json as filter_from_json
from recollect.importers import IMPORTERS, import_path, write_jsonl
from recollect.memory import Memory
from recollect.memory.opening import open as open_memory
from recollect.operations import from_json as operation_from_json
from recollect.records.record import Record
from recollect.stores.memory import MemoryStore
from recollect.testing.machine import memory_on
from torture.power import quiet
from torture.worst_cases import use

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
RECORD = Record(
    id="a",
    content="Ana prefers window seats",
    kind="user_fact",
    user="ana",
    tags=("travel",),
    metadata={"n": 1, "deep": {"list": [1.5, None, True]}},
    time=NOW,
    importance=0.5,
    supersedes=("b",),
)
_MESSAGES = [{"role": "user", "content": "where is the harbour?"}, {"role": "assistant", "content": "Beyond the mole."}]


#: What a text is dear of: marks of two classes in turn, signs that stand for phrases, what is unknown to Unicode 14,
#: marks of direction, joiners, jamo, scripts without spaces, what rules look for.
_UNITS = (
    "a\u0301\u0316", "\u0344\u0316", "\ufdfa", "\u3316", "\U000323b0", "\u0378a", "\u200f", "a\u200d", "a'", "q? ",
    "\u1100\u1161\u11a8", "\u6211\u559c", "\u0e01\u0e34", "\uff76\uff9e", "\U0001f469\u200d\U0001f680", "\u00bd ",
    "yesterday ",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """Something that takes input.

    call      takes it; whether it was taken (or refused with an error of ours)
    examples  that it takes
    """

    call: Callable[[bytes, Path], bool]
    examples: Sequence[bytes]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _json(data: bytes) -> object:
    """The value of a JSON text; of what is none, the text itself, which is refused as well as it may be."""
    try:
        return json.loads(_text(data))
    except (ValueError, RecursionError):
        return _text(data)


def _agrees(where: Filter, folder: Path) -> None:
    """A filter means the same to SQLite as to Python, and none is so large that the store is called damaged."""
    path = folder / "filtered.db"
    with open_memory(path, durability="normal", embedder="none") as memory:
        if not memory.count():
            memory.remember_all([RECORD, "The harbour lies beyond the mole."])
        matching = [record for record in memory.find(order="id") if where.matches(record)]
        assert memory.find(where, order="id") == matching
        assert memory.count(where) == len(matching)


def _filter_text(data: bytes, folder: Path) -> bool:
    _agrees(parse(_text(data)), folder)
    return True


def _filter_json(data: bytes, folder: Path) -> bool:
    found = filter_from_json(_json(data))
    _agrees(found, folder)
    assert filter_from_json(json.loads(json.dumps(found.to_json()))).to_json() == found.to_json()
    return True


def _codec(data: bytes, _folder: Path) -> bool:
    assert Record.from_bytes(data).to_bytes() == data
    return True


def _scratch() -> Memory:
    memory = memory_on(MemoryStore())
    memory.remember_all([RECORD, "The harbour lies beyond the mole."])
    return memory


def _operation(data: bytes, _folder: Path) -> bool:
    operation = operation_from_json(_json(data))
    json.dumps(operation.to_json())
    with _scratch() as memory:
        memory.execute(operation)
        assert memory.check() == []
    return True


def _fields(data: bytes, _folder: Path) -> bool:
    item: Any = _json(data)
    with _scratch() as memory:
        memory.remember_all([item], on_error="raise")
    return True


def _question(data: bytes, _folder: Path) -> bool:
    with _scratch() as memory:
        memory.recall(_text(data), min_confidence=0.0)
    return True


def _content(data: bytes, _folder: Path) -> bool:
    use(_text(data))
    return True


def _grep(data: bytes, _folder: Path) -> bool:
    with _scratch() as memory:
        memory.grep(_text(data))
    return True


def _arguments(data: bytes, folder: Path) -> bool:
    arguments = [_text(each) for each in data.split(b"\0")]
    if arguments[:1] in (["bench"], ["demo"], ["eval"], ["embed"]) or "--db" in arguments:
        return False  # long ones; and another's file is not to be touched
    path = folder / "arguments.db"
    os.environ["RECOLLECT_DB"] = str(path)
    for suffix in ("", "-wal", "-shm"):
        (folder / f"arguments.db{suffix}").unlink(missing_ok=True)
    with open_memory(path, durability="normal", embedder="none") as memory:
        memory.remember_all([RECORD])
    with _inside(folder):
        done = CliRunner().invoke(app, arguments, input="text\n")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code in (0, 1, 2), f"exit code {done.exit_code}"
    return done.exit_code == 0


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """In that folder, so that files that are named by chance are made there."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _importer(name: str, suffix: str) -> Callable[[bytes, Path], bool]:
    def call(data: bytes, folder: Path) -> bool:
        path = Path(f"{folder / 'source'}{suffix}")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        with memory_on(MemoryStore()) as memory:
            report = import_path(memory, {**DATASET_IMPORTERS, **IMPORTERS}[name], path)
            assert memory.check() == []
        return not report.damaged

    return call


def _file(suffix: str) -> Callable[[bytes, Path], bool]:
    """A store of which one file is as given: it is read, written to and checked."""

    def call(data: bytes, folder: Path) -> bool:
        store = folder / "store"
        shutil.rmtree(store, ignore_errors=True)
        store.mkdir()
        for name, kept in _store_files().items():
            path = store / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data if name.endswith(suffix) else kept)
        with quiet(), open_memory(store / "a.db", embedder="none") as memory:
            expected = suffix != "a.db"  # an index file that is damaged changes no answer
            found = [hit.record.id for hit in memory.recall("which text is of the harbour?", 3)]
            assert not expected or len(found) == 3
            grepped = memory.grep("harbour", 40)
            assert not expected or len(grepped) == 30
            memory.find()
            memory.changes()
            memory.check()
            memory.remember("one more")
        return True

    return call


_MADE: dict[str, bytes] = {}


def _store_files() -> dict[str, bytes]:
    """The files of a small store with an index, made once: name -> bytes."""
    if not _MADE:
        kept, indexing.KEPT_FROM = indexing.KEPT_FROM, 10
        try:
            with tempfile.TemporaryDirectory() as made:
                path = Path(made) / "a.db"
                with open_memory(path, embedder="none", clock=lambda: NOW) as memory:
                    memory.remember_all([RECORD, *(f"text {number} of the harbour" for number in range(30))])
                    memory.set_quota(records=99, when_full="least recent")
                    memory.recall("harbour")
                    memory.grep("harbour")
                _MADE.update(
                    {
                        str(each.relative_to(made)): each.read_bytes()
                        for each in Path(made).rglob("*.*")
                        if each.is_file()
                    }
                )
        finally:
            indexing.KEPT_FROM = kept
    return _MADE


def _export() -> bytes:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file, _scratch() as memory:
        write_jsonl(memory, file)
        file.seek(0)
        return file.read().encode()


def _made() -> dict[str, Target]:
    record = {"content": "x", "tags": ["a"], "metadata": {"n": [1, 2.5]}, "importance": 0.5, "user": "ana", "ttl": 60}
    filters = ["user=ana and not tag=old", "kind=user_fact or importance>=0.5", "meta.n=1"]
    many = [{"any_of": [{"user": f"{one} {two}"} for two in range(9)]} for one in range(60)]
    remembered = {"op": "remember", "content": "text", "fields": {"user": "ana"}}
    operations = [
        remembered,
        {"op": "recall", "question": "which seat?", "k": 3, "where": {"kind": "user_fact"}},
        {"op": "batch", "operations": [remembered, {"op": "forget", "id": "a"}]},
        {"op": "update", "id": "a", "changes": {"importance": 0.9, "expires": "2030-01-01T00:00:00+00:00"}},
        {"op": "find", "where": {"all_of": [{"user": "ana"}, {"not": {"tag": "old"}}]}, "order": "newest"},
        {"op": "set_quota", "records": 1, "when_full": "least recent"},
    ]
    arguments = [
        ["remember", "a text", "--user", "ana", "--tag", "x", "--meta", "n=1", "--time", "2026-03-01"],
        ["recall", "which text?", "-k", "3", "--where", "user=ana", "--json"],
        ["update", "a", "--importance", "0.5", "--drop", "tags"],
        ["forget", "--where", "user=ana", "--yes"],
        ["quota", "--records", "3", "--when-full", "least-recent"],
        ["find", "--json"],
        ["log", "a"],
        ["grep", "text"],
        ["stats"],
    ]
    sources = {
        "openai": (".json", {"messages": _MESSAGES}),
        "anthropic": (".json", {"system": "be brief", "messages": _MESSAGES}),
        "locomo": (
            ".json",
            [
                {
                    "sample_id": "c",
                    "conversation": {
                        "speaker_a": "Ana",
                        "speaker_b": "Ben",
                        "session_1": [{"speaker": "Ana", "dia_id": "D1:1", "text": "The harbour is closed."}],
                        "session_1_date_time": "1:56 pm on 8 May, 2023",
                    },
                }
            ],
        ),
        "beam": (
            "/chat.json",
            [
                {
                    "batch_number": 1,
                    "time_anchor": None,
                    "turns": [
                        [
                            {"role": "user", "id": 1, "content": "The harbour? ->-> 1,1", "time_anchor": "May-08-2024"},
                            {"role": "assistant", "id": 2, "content": "Closed."},
                        ]
                    ],
                }
            ],
        ),
    }
    targets = {
        "filter text": Target(_filter_text, [each.encode() for each in filters]),
        "filter JSON": Target(
            _filter_json,
            [
                json.dumps(each).encode()
                for each in (*(parse(each).to_json() for each in filters[:2]), {"any_of": many})
            ],
        ),
        "codec": Target(_codec, [RECORD.to_bytes()]),
        "operation": Target(_operation, [json.dumps(each).encode() for each in operations]),
        "fields": Target(_fields, [json.dumps(record).encode()]),
        "question": Target(_question, [b"Which seat did Ana want last week, on 3 May 2023?", b"Wo ist der Hafen?"]),
        "text": Target(_content, [unit.encode() * 40 for unit in _UNITS]),
        "grep": Target(_grep, [b'"window seats" OR harb* -mole', b"1-" * 30 + b" or " + b"a* " * 100]),
        "arguments": Target(_arguments, ["\0".join(each).encode() for each in arguments]),
        "import jsonl": Target(_importer("jsonl", ".jsonl"), [_export()]),
        "import text": Target(_importer("text", ".txt"), [b"First paragraph.\n\nSecond one, of the harbour.\n"]),
        "import markdown": Target(
            _importer("markdown", ".md"), [b"---\ntags: [a, b]\n---\n# One\ntext\n## Two\n- a\n"]
        ),
        "database": Target(_file("a.db"), [_store_files()["a.db"]]),
        "full-text file": Target(_file("text.db"), [_store_files()["a.db.index/text.db"]]),
        "file of uses": Target(_file("usage.db"), [_store_files()["a.db.index/usage.db"]]),
        "index file": Target(_file(".seg"), [data for name, data in _store_files().items() if name.endswith(".seg")]),
    }
    for name, (suffix, value) in sources.items():
        targets[f"import {name}"] = Target(_importer(name, suffix), [json.dumps(value).encode()])
    return targets


_TARGETS: dict[str, Target] = {}


def targets() -> dict[str, Target]:
    """All targets by name, made once."""
    if not _TARGETS:
        _TARGETS.update(_made())
    return _TARGETS
