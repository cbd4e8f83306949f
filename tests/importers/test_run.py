"""Running importers: batches, reports, failures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.errors import (
    ImportFormatError,
    InvalidArgumentError,
    InvalidRecordError,
    ScopeError,
    StoreFullError,
    UnknownArgumentError,
)
from recollect.evaluation import DATASET_IMPORTERS
from recollect.importers import IMPORTERS, Damage, Importer, ImportReport, Item, import_path
from recollect.ledger.commits import Branch
from recollect.testing.loopback import core_of

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]


class Listed:
    """An importer of items that a test lists."""

    name = "listed"
    summary = "items of a test"

    def __init__(self, *items: Item | Damage) -> None:
        self.items = items

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        yield from self.items


def item(text: Any, namespace: str | None = None, **fields: Any) -> Item:
    return Item(namespace=namespace, fields={"content": text, **fields}, place=f"the item {text!r}")


def test_every_importer_has_its_name_and_a_line_of_summary() -> None:
    assert list(DATASET_IMPORTERS) == ["locomo", "beam"]
    assert list(IMPORTERS) == [
        "openai",
        "anthropic",
        "chatgpt",
        "claude",
        "claude-code",
        "codex",
        "mem0",
        "mcp-memory",
        "langgraph",
        "openai-sessions",
        "chroma",
        "text",
        "markdown",
        "csv",
        "jsonl",
    ]
    for name, importer in {**DATASET_IMPORTERS, **IMPORTERS}.items():
        assert importer.name == name
        assert importer.summary
        assert "\n" not in importer.summary


def test_importing_the_importers_loads_no_numpy() -> None:
    code = "import sys, recollect.importers; sys.exit('numpy' in sys.modules or 'apsw' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_items_of_the_users_namespace_and_of_their_own_are_counted_apart(tmp_path: Path) -> None:
    with recollect.open(":memory:", namespace="mine") as memory:
        importer = Listed(item("a"), item("b", "other"), item("c", "other"), item("d"), item("a"))
        report = import_path(memory, importer, tmp_path)
        assert report == ImportReport(created=4, unchanged=1, namespaces={"mine": 3, "other": 2}, parts={"records": 5})
        assert memory.namespaces() == ["mine", "other"]


def test_progress_tells_the_items_done_after_each_batch(memory: Memory, tmp_path: Path) -> None:
    done: list[int] = []
    items = [item(f"text {number}") for number in range(2001)]
    import_path(memory, Listed(*items, item("x", "other")), tmp_path, progress=done.append)
    assert done == [1000, 2000, 2001, 2002]
    assert memory.seq == 3


def test_damaged_items_are_reported_in_the_order_of_the_source(memory: Memory, tmp_path: Path) -> None:
    importer: Importer = Listed(
        item("good"), item(""), Damage("line 3", "torn"), item("x", "bad\nname"), item("y", importance=7), item("fine")
    )
    report = import_path(memory, importer, tmp_path)
    assert [damage.place for damage in report.damaged] == ["the item ''", "line 3", "the item 'x'", "the item 'y'"]
    assert (report.created, report.namespaces) == (2, {"default": 2})
    assert "importance" in report.damaged[3].reason


def test_what_is_stored_with_other_values_or_under_another_id_is_counted(memory: Memory, tmp_path: Path) -> None:
    memory.remember("a fact", id="fact", importance=0.5)
    importer = Listed(item("a fact", id="fact", importance=0.9), item("another", id="fact"))
    report = import_path(memory, importer, tmp_path)
    counted = ImportReport(created=1, unchanged=1, differing=1, renumbered=1)
    assert report == replace(counted, namespaces={"default": 2}, parts={"records": 2})
    assert report.to_json() == {
        "created": 1,
        "unchanged": 1,
        "updated": 0,
        "replaced": 0,
        "forgotten": 0,
        "differing": 1,
        "moved": 0,
        "renumbered": 1,
        "expired": 0,
        "dated": 0,
        "proposed": 0,
        "quarantined": 0,
        "lowered": 0,
        "damaged": [],
        "left_out": {},
        "namespaces": {"default": 2},
        "parts": {"records": 2},
        "files": {tmp_path.name: {"unchanged": 1, "created": 1}},
        "roots": {},
        "zone_assumed": None,
    }


@pytest.mark.parametrize("exact", [False, True])
def test_a_failing_store_is_raised_and_a_second_run_goes_on_from_there(
    exact: bool, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importer = Listed(*(replace(item(f"text {number}", id=str(number)), exact=exact) for number in range(2500)))
    store = core_of(memory).store
    write, commits = store.write, iter([True, False])

    def failing(branch: Branch, *, shared: bool, ids: Sequence[str]) -> Any:
        if not next(commits):
            raise StoreFullError("disk")
        return write(branch, shared=shared, ids=ids)

    with monkeypatch.context() as patch, pytest.raises(StoreFullError):
        patch.setattr(store, "write", failing)
        import_path(memory, importer, tmp_path)
    assert memory.count() == 1000
    report = import_path(memory, importer, tmp_path)
    assert (report.created, report.unchanged, report.damaged) == (1500, 1000, ())


def test_a_scoped_memory_refuses_namespaces_of_the_source(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(ScopeError):
        import_path(memory.scoped(user="ana"), Listed(item("x", "other")), tmp_path)


def test_a_file_of_another_format_leaves_the_store_as_it_was(memory: Memory, write: Write) -> None:
    memory.remember("before")
    seq = memory.seq
    with pytest.raises(ImportFormatError) as caught:
        import_path(memory, IMPORTERS["openai"], write("photo.json", b"\x89PNG\r\n\x1a\n"))
    assert memory.seq == seq
    assert "nothing was imported from it" in str(caught.value)


def test_defaults_fill_what_an_item_lacks_and_tags_are_added(memory: Memory, tmp_path: Path) -> None:
    importer = Listed(item("a"), item("b", user="bo", tags=["own"]), item("c", session=None))
    defaults = {"user": "ana", "session": "s", "tags": ["chat"], "agent": None}
    import_path(memory, importer, tmp_path, defaults=defaults)
    found = {record.content: record for record in memory.find()}
    assert [(found[each].user, found[each].session, found[each].tags) for each in "abc"] == [
        ("ana", "s", ("chat",)),
        ("bo", "s", ("chat", "own")),
        ("ana", "s", ("chat",)),
    ]
    assert import_path(memory, importer, tmp_path, defaults=defaults).unchanged == 3


def test_invalid_defaults_are_refused_before_anything_is_stored(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(UnknownArgumentError, match="did you mean 'user'"):
        import_path(memory, Listed(item("a")), tmp_path, defaults={"usr": "ana"})
    with pytest.raises(InvalidRecordError):
        import_path(memory, Listed(item("a")), tmp_path, defaults={"user": "two\nlines"})
    with pytest.raises(InvalidArgumentError, match="export"):
        import_path(memory, Listed(replace(item("a", id="a"), exact=True)), tmp_path, defaults={"user": "ana"})
    assert memory.count() == 0


def test_a_default_conversation_names_the_turns_and_is_part_of_their_ids(memory: Memory, write: Write) -> None:
    path = write("chat.json", [{"role": "user", "content": "hello", "id": "m1"}, {"role": "user", "content": "there"}])
    import_path(memory, "openai", path, defaults={"conversation": "first"})
    report = import_path(memory, "openai", path, defaults={"conversation": "second"})
    assert report.created == 2
    found = memory.find(order="position", where="conversation=second")
    assert [(each.content, each.position) for each in found] == [("hello", 0), ("there", 1)]
    assert found[0].id == "second/m1"
    named = write("named.json", {"id": "own", "messages": [{"role": "user", "content": "hello"}]})
    import_path(memory, "openai", named, defaults={"conversation": "third"})
    assert memory.count("conversation=own") == 1


def test_the_zone_counts_as_assumed_only_if_a_time_has_no_offset(run: Run, write: Write, memory: Memory) -> None:
    zone = timezone(timedelta(hours=2))
    message = {"role": "user", "content": "hello"}
    assert not run("openai", write("a.json", [message]), zone=zone).zone_assumed
    aware = [message | {"timestamp": "2026-03-01T09:30:00Z"}, message | {"timestamp": 1.5}]
    assert not run("openai", write("b.json", aware), zone=zone).zone_assumed
    assert run("openai", write("c.json", [message | {"timestamp": "2026-03-01T09:30:00"}]), zone=zone).zone_assumed
    (record,) = memory.find("conversation=c")
    assert record.time == datetime(2026, 3, 1, 9, 30, tzinfo=zone)


def test_the_same_files_are_imported_for_each_user(memory: Memory, tmp_path: Path) -> None:
    chat = tmp_path / "c.json"
    chat.write_text('[{"id": "m1", "role": "user", "content": "hi"}]')
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n\none\n\n# B\n\ntwo\n")
    for user in ("ana", "bob"):
        for name, path, count in (("openai", chat, 1), ("markdown", notes, 2)):
            assert import_path(memory, name, path, defaults={"user": user}).created == count
            assert import_path(memory, name, path, defaults={"user": user}).unchanged == count
        assert memory.scoped(user=user).count() == 3
    (notes / "a.md").write_text("# A\n\nother\n\n# B\n\ntwo\n")
    report = import_path(memory, "markdown", notes, defaults={"user": "bob"})
    assert (report.updated, report.unchanged, report.forgotten) == (1, 1, 0)
    assert sorted(each.text.split()[-1] for each in memory.find("user=ana and kind=knowledge")) == ["one", "two"]
