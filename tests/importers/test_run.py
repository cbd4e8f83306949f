"""Running importers: batches, reports, failures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.errors import ImportFormatError, ScopeError, StoreFullError
from recollect.evaluation import DATASET_IMPORTERS
from recollect.importers import IMPORTERS, Damage, Importer, ImportReport, Item, import_path
from recollect.ledger.commits import Branch
from recollect.testing.internals import core_of

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]


class Listed:
    """An importer of items that a test lists."""

    name = "listed"
    summary = "items of a test"
    exact = False

    def __init__(self, *items: Item | Damage) -> None:
        self.items = items

    def read(self, path: Path, zone: tzinfo, *, follow_links: bool = False) -> Iterator[Item | Damage]:
        yield from self.items


def item(text: Any, namespace: str | None = None, **fields: Any) -> Item:
    return Item(namespace=namespace, fields={"content": text, **fields}, place=f"the item {text!r}")


def test_every_importer_has_its_name_and_a_line_of_summary() -> None:
    assert list(DATASET_IMPORTERS) == ["locomo", "beam"]
    assert list(IMPORTERS) == ["openai", "anthropic", "text", "markdown", "jsonl"]
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
        assert report == ImportReport(created=4, unchanged=1, namespaces={"mine": 3, "other": 2})
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


def test_what_is_held_with_other_values_or_under_another_id_is_counted(memory: Memory, tmp_path: Path) -> None:
    memory.remember("a fact", id="fact", importance=0.5)
    importer = Listed(item("a fact", id="fact", importance=0.9), item("another", id="fact"))
    report = import_path(memory, importer, tmp_path)
    assert report == ImportReport(created=1, unchanged=1, differing=1, renumbered=1, namespaces={"default": 2})
    assert report.to_json() == {
        "created": 1,
        "unchanged": 1,
        "updated": 0,
        "replaced": 0,
        "forgotten": 0,
        "differing": 1,
        "renumbered": 1,
        "expired": 0,
        "damaged": [],
        "namespaces": {"default": 2},
        "roots": {},
    }


@pytest.mark.parametrize("exact", [False, True])
def test_a_failing_store_is_raised_and_a_second_run_goes_on_from_there(
    exact: bool, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    importer = Listed(*(item(f"text {number}", id=str(number)) for number in range(2500)))
    importer.exact = exact
    store = core_of(memory).store
    write, commits = store.write, iter([True, False])

    def failing(branch: Branch, *, shared: bool) -> Any:
        if not next(commits):
            raise StoreFullError("disk")
        return write(branch, shared=shared)

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
