"""Watching a folder: what changes in it is imported, as the test or the file system says."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory
from recollect.errors import ImportFormatError, InvalidArgumentError, MissingExtraError
from recollect.importers import IMPORTERS, ImportReport
from recollect.importers.run import _changes, watch

Write = Callable[[str, Any], Path]
MARKDOWN = IMPORTERS["markdown"]


class Folder:
    """A folder that is watched: each step changes files and says so."""

    def __init__(self, memory: Memory, path: Path, *steps: Callable[[], set[str]], **options: Any) -> None:
        self.path, self.steps = path, steps
        self.reports = list(watch(memory, MARKDOWN, path, changes=self._changes(), **options))

    def _changes(self) -> Iterator[set[str]]:
        yield set()
        for step in self.steps:
            yield {os.path.join(os.path.realpath(self.path), name) for name in step()}
            yield set()


def counts(reports: list[ImportReport]) -> list[tuple[int, int, int, int, int]]:
    return [(each.created, each.updated, each.unchanged, each.forgotten, len(each.damaged)) for each in reports]


@pytest.fixture
def folder(write: Write) -> Path:
    write("docs/a.md", "# A\n\none\n\n# B\n\ntwo\n")
    return write("docs/sub/c.md", "# C\n\nthree\n").parent.parent


def test_a_folder_is_imported_and_then_what_changes_in_it(write: Write, memory: Memory, folder: Path) -> None:
    def edited() -> set[str]:
        write("docs/a.md", "# A\n\none\n\n# B\n\nmore\n")
        write("docs/sub/c.md", "# C\n\nnot said to have changed\n")
        return {"a.md", "notes.bin", ".hidden.md"}

    def added() -> set[str]:
        write("docs/new/d.md", "# D\n\nfour\n")
        return {"new"}

    watched = Folder(memory, folder, edited, added, lambda: {"nothing.txt"})
    assert counts(watched.reports) == [(3, 0, 0, 0, 0), (0, 1, 1, 0, 0), (1, 0, 0, 0, 0)]
    assert {record.source for record in memory.find()} == {"a.md", "sub/c.md", "new/d.md"}


def test_what_changes_during_the_first_import_is_imported(write: Write, memory: Memory, folder: Path) -> None:
    def changes() -> Iterator[set[str]]:
        yield {str(folder / "a.md")}

    assert len(list(watch(memory, MARKDOWN, folder, changes=changes()))) == 2


def test_a_half_written_file_ends_nothing_and_is_imported_when_it_is_complete(
    write: Write, memory: Memory, folder: Path
) -> None:
    def half() -> set[str]:
        write("docs/a.md", "# A\n\none and é".encode()[:-1])
        write("docs/sub/c.md", "# C\n\nedited\n")
        return {"a.md", "sub/c.md"}

    def complete() -> set[str]:
        assert memory.count() == 3
        write("docs/a.md", "# A\n\none and é\n")
        return {"a.md"}

    watched = Folder(memory, folder, half, complete)
    assert counts(watched.reports) == [(3, 0, 0, 0, 0), (0, 1, 0, 0, 1), (0, 1, 0, 1, 0)]
    assert {record.text for record in memory.find()} == {"# A\n\none and é", "# C\n\nedited"}


def test_deleted_files_are_forgotten_on_request(write: Write, memory: Memory, folder: Path) -> None:
    def deleted() -> set[str]:
        (folder / "a.md").unlink()
        return {"a.md"}

    assert counts(Folder(memory, folder, deleted, name="docs").reports) == [(3, 0, 0, 0, 0)]
    write("docs/a.md", "# A\n\none\n\n# B\n\ntwo\n")
    watched = Folder(memory, folder, deleted, name="docs", forget_deleted=True)
    assert counts(watched.reports) == [(0, 0, 3, 0, 0), (0, 0, 0, 2, 0)]


def test_what_cannot_be_watched_is_refused(
    memory: Memory, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgumentError, match="only folders are watched"):
        next(watch(memory, MARKDOWN, folder / "a.md"))
    with pytest.raises(InvalidArgumentError, match="does not import documents"):
        next(watch(memory, IMPORTERS["jsonl"], folder))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportFormatError, match="contains no file"):
        next(watch(memory, MARKDOWN, tmp_path / "empty", changes=[set()]))
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtraError, match=r"recollect\[watch\]"):
        next(watch(memory, MARKDOWN, folder))
    assert memory.count() == 0


def test_the_file_system_says_what_changes(write: Write, memory: Memory, folder: Path) -> None:
    pytest.importorskip("watchfiles")
    bounded = islice(_changes(os.path.realpath(folder)), 600)  # sets of no change come every 200 ms
    reports = watch(memory, MARKDOWN, folder, changes=bounded)
    assert next(reports).created == 3
    write("docs/a.md", "# A\n\none\n\n# B\n\nmore\n")
    assert next(reports).updated == 1
