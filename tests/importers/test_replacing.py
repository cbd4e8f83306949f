"""Importing a document again: it takes the place of what it was, and nothing else changes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import InvalidArgumentError
from recollect.importers import IMPORTERS, ImportReport, import_path
from recollect.importers.base import ImportedDocument
from recollect.records.factories import knowledge

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]
GUIDE = "# Guide\n\nHello.\n\n## Install\n\nRun it.\n\n## Use\n\nCall it.\n"


def bytes_of(memory: Memory) -> dict[str, bytes]:
    return {record.id: record.to_bytes() for record in memory.find()}


def test_an_edited_section_is_updated_and_the_others_stay(write: Write, run: Run, memory: Memory) -> None:
    path = write("guide.md", GUIDE)
    run("markdown", path)
    before, seq = bytes_of(memory), memory.seq
    write("guide.md", GUIDE.replace("Run it.", "Run it twice."))
    report = run("markdown", path)
    assert (report.created, report.updated, report.unchanged, report.forgotten, report.replaced) == (0, 1, 2, 0, 1)
    after = bytes_of(memory)
    assert [record_id for record_id in before if before[record_id] != after[record_id]] == ["guide.md#install"]
    assert memory.seq == seq + 1
    changes = [change.id for commit in memory.changes(since=seq) for change in commit.changes]
    assert changes == ["guide.md#install"]
    assert len(memory.changes(id="guide.md#install")) == 2


def test_a_document_that_a_user_has_is_also_stored_for_all(write: Write, run: Run, memory: Memory) -> None:
    path = write("guide.md", GUIDE)
    run("markdown", path, defaults={"user": "ana"})
    assert run("markdown", path).created == 3
    assert [memory.count(f.user("ana")), memory.count()] == [3, 6]
    assert run("markdown", path).unchanged == 3


def test_a_section_that_is_gone_is_forgotten_and_a_new_one_stored(write: Write, run: Run, memory: Memory) -> None:
    path = write("guide.md", GUIDE)
    run("markdown", path)
    write("guide.md", "# Guide\n\nHello.\n\n## Ask\n\nWrite us.\n\n## Use\n\nCall it.\n")
    report = run("markdown", path)
    assert (report.created, report.updated, report.unchanged, report.forgotten) == (1, 0, 2, 1)
    assert sorted(bytes_of(memory)) == ["guide.md#ask", "guide.md#guide", "guide.md#use"]
    write("guide.md", "")
    assert (run("markdown", path).forgotten, memory.count()) == (3, 0)
    assert memory.changes(id="guide.md#install")[-1].changes[0].id == "guide.md#install"


def test_sections_that_move_stay_what_they_are(write: Write, run: Run, memory: Memory) -> None:
    path = write("log.md", "# 2\n\n## Fixed\n\ntwo\n\n# 1\n\n## Fixed\n\none\n")
    run("markdown", path)
    before = bytes_of(memory)
    write("log.md", "# 3\n\n## Fixed\n\nthree\n\n# 2\n\n## Fixed\n\ntwo\n\n# 1\n\n## Fixed\n\none\n")
    report = run("markdown", path)
    assert (report.created, report.unchanged, report.updated, report.forgotten) == (1, 2, 0, 0)
    assert before.items() <= bytes_of(memory).items()
    write("log.md", "# 3\n\n## Fixed\n\nthree and more\n\n# 2\n\n## Fixed\n\ntwo\n\n# 1\n\n## Fixed\n\none\n")
    report = run("markdown", path)
    assert (report.created, report.unchanged, report.updated, report.forgotten) == (0, 2, 1, 0)
    assert before.items() <= bytes_of(memory).items()


def test_a_title_that_changes_reaches_the_sections_below_it(write: Write, run: Run, memory: Memory) -> None:
    path = write("guide.md", GUIDE)
    run("markdown", path)
    assert not memory.recall("handbook")
    write("guide.md", GUIDE.replace("# Guide", "# Handbook", 1))
    report = run("markdown", path)
    assert (report.created, report.updated, report.forgotten) == (1, 2, 1)
    assert {hit.record.id for hit in memory.recall("handbook")} == set(bytes_of(memory))


@pytest.mark.parametrize(
    ("form", "name", "text"),
    [("text", "a.txt", "Rain falls here.\n\nSun shines there."), ("markdown", "a.md", "Rain falls here.\n# B\nSun.")],
)
def test_records_of_an_earlier_release_are_replaced(
    form: str, name: str, text: str, write: Write, run: Run, memory: Memory
) -> None:
    for number, content in enumerate(["# B", "Rain falls here.", "Snow lies everywhere."]):
        memory.remember(id=f"{name}#{number}", **knowledge(content, source=name, chunk_index=number))
    path = write(name, text)
    report = run(form, path)
    assert (report.forgotten, report.created, memory.count()) == (2, 1, 2)
    root = memory.root
    assert (run(form, path).unchanged, memory.root) == (2, root)


def test_what_the_importer_did_not_make_stays(write: Write, run: Run, memory: Memory) -> None:
    path = write("guide.md", GUIDE)
    run("markdown", path)
    own = [
        memory.remember("A note on it.", source="guide.md", metadata={"headings": ["Guide"]}),
        memory.remember("Mine.", id="mine", source="guide.md", metadata={"chunk_index": 0}),
        memory.remember("Said.", kind="conversation", conversation="c", source="guide.md", metadata={"chunk_index": 0}),
        memory.remember("Hers.", id="guide.md#hers", user="ana", source="guide.md", metadata={"chunk_index": 0}),
    ]
    other = memory.namespace("other")
    import_path(other, IMPORTERS["markdown"], path)
    root = other.root
    write("guide.md", "# New\n\nAll of it.\n")
    report = run("markdown", path)
    assert (report.forgotten, report.created) == (3, 1)
    assert all(memory.get(record.id) == record for record in own)
    assert other.root == root


def test_a_scope_replaces_only_its_own_documents(write: Write, memory: Memory) -> None:
    path = write("guide.md", GUIDE)
    ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
    for each in (ana, bob, memory):
        import_path(each, IMPORTERS["markdown"], path)
    write("guide.md", "# Guide\n\nHello.\n")
    report = import_path(ana, IMPORTERS["markdown"], path)
    assert (report.unchanged, report.forgotten) == (1, 2)
    assert (ana.count(), bob.count(), memory.count()) == (1, 3, 7)
    report = import_path(memory, IMPORTERS["markdown"], path)
    assert (report.forgotten, ana.count(), bob.count(), memory.count()) == (2, 1, 3, 5)


def test_what_was_added_to_a_section_stays_and_the_files_own_tags_follow_it(
    write: Write, run: Run, memory: Memory
) -> None:
    path = write("a.md", "---\ntags: [old, both]\n---\n# A\n\none\n")
    run("markdown", path)
    record = memory.find()[0]
    memory.update("a.md#a", tags=[*record.tags, "mine"], importance=0.9, metadata={**record.metadata, "seen": True})
    root = memory.root
    run("markdown", path)
    assert memory.root == root
    write("a.md", "---\ntags: [new, both]\ndate: 2026-01-02\n---\n# A\n\ntwo\n")
    assert run("markdown", path).updated == 1
    (record,) = memory.find()
    assert (record.tags, record.importance, record.metadata["seen"]) == (("both", "mine", "new"), 0.9, True)
    assert (record.text, record.time) == ("# A\n\ntwo", datetime(2026, 1, 2, tzinfo=UTC))


def test_a_file_that_cannot_be_read_leaves_what_it_was(write: Write, run: Run, memory: Memory) -> None:
    path = write("docs/a.md", GUIDE)
    run("markdown", path.parent)
    before = bytes_of(memory)
    path.write_bytes(b"# Guide \xff")
    assert len(run("markdown", path.parent).damaged) == 1
    assert bytes_of(memory) == before


def test_a_section_that_is_refused_leaves_what_it_was(write: Write, tmp_path: Path) -> None:
    limits = recollect.Limits(content_bytes=100)
    with recollect.open(":memory:", limits=limits) as memory:
        path = write("a.md", "# A\n\none\n\n# B\n\ntwo\n")
        import_path(memory, IMPORTERS["markdown"], path)
        write("a.md", "# A\n\n" + "long " * 40 + "\n\n# B\n\nthree\n")
        report = import_path(memory, IMPORTERS["markdown"], path)
        assert ([damage.place for damage in report.damaged], report.updated) == (["a.md, line 1"], 1)
        assert {record.text for record in memory.find()} == {"# A\n\none", "# B\n\nthree"}


def test_equal_paths_of_two_folders_are_distinguished_by_a_name(write: Write, run: Run, memory: Memory) -> None:
    one, other = write("one/README.md", "# One\n\nfirst").parent, write("other/README.md", "# Other\n\nsecond").parent
    run("markdown", one)
    report = run("markdown", other)
    assert (report.replaced, report.forgotten, memory.count()) == (1, 1, 1)
    memory.clear()
    run("markdown", one, name="one")
    report = run("markdown", other, name="other/")
    assert (report.replaced, report.forgotten, memory.count()) == (0, 0, 2)
    assert {record.source for record in memory.find()} == {"one/README.md", "other/README.md"}


def test_documents_of_deleted_files_are_forgotten_on_request(write: Write, run: Run, memory: Memory) -> None:
    folder = write("docs/a.md", GUIDE).parent
    gone = write("docs/sub/b.md", "# B\n\ntext\n\n# C\n\ntext")
    write("docs/c.txt", "plain")
    for form, path, name in [
        ("markdown", folder, "docs"),
        ("text", folder, "docs"),
        ("markdown", folder, None),
        ("markdown", folder, "docs2"),
    ]:
        run(form, path, name=name)
    mine = memory.remember("mine", source="docs/sub/b.md")
    before = memory.count()
    gone.unlink()
    (folder / "c.txt").unlink()
    assert run("markdown", folder, name="docs").forgotten == 0
    report = run("markdown", folder, name="docs", forget_deleted=True)
    assert (report.forgotten, memory.count()) == (2, before - 2)
    assert memory.get(mine.id) == mine
    assert memory.count(f.source("docs/c.txt", "sub/b.md", "docs2/sub/b.md")) == 5
    assert run("markdown", folder, name="docs", forget_deleted=True).forgotten == 0


def test_deleted_files_are_forgotten_of_a_named_folder_only(write: Write, run: Run) -> None:
    path = write("docs/a.md", GUIDE)
    for wrong, name in ((path.parent, None), (path, "docs")):
        with pytest.raises(InvalidArgumentError, match="needs a folder and a name"):
            run("markdown", wrong, forget_deleted=True, name=name)
    with pytest.raises(InvalidArgumentError, match="not for openai"):
        run("openai", write("chat.json", []), name="docs")
    with pytest.raises(InvalidArgumentError, match="control character"):
        run("markdown", path, name="a\nb")


TEXTS = ("one", "two", "Hello there.\n\nMore of it.", "```\n# code\n```", "long words " * 300)
parts = st.tuples(st.sampled_from(["# A", "# B", "## A", "### C", "## ?"]), st.sampled_from(TEXTS))


def stored(memory: Memory, folder: Path, part: list[tuple[str, str]]) -> ImportReport:
    text = "".join(f"{heading}\n\n{body}\n\n" for heading, body in part)
    (folder / "a.md").write_text(text, "utf-8")
    return import_path(memory, IMPORTERS["markdown"], folder / "a.md")


def contents(folder: Path) -> list[str]:
    read = IMPORTERS["markdown"].read(folder / "a.md", UTC)
    (document,) = (each for each in read if isinstance(each, ImportedDocument))
    return sorted(item.fields["content"] for item in document.items)


@given(st.lists(st.lists(parts, max_size=6), min_size=1, max_size=4))
def test_after_any_edits_the_records_are_those_of_the_file(versions: list[list[tuple[str, str]]]) -> None:
    with tempfile.TemporaryDirectory() as name, recollect.open(":memory:") as memory:
        folder = Path(name)
        for part in versions:
            report = stored(memory, folder, part)
            assert sorted(record.text for record in memory.find()) == contents(folder)
            assert report.damaged == ()
            root = memory.root
            again = stored(memory, folder, part)
            assert (again.unchanged, again.replaced, memory.root) == (memory.count(), 0, root)


@given(st.lists(parts, min_size=1, max_size=6), st.data())
def test_an_edit_of_one_section_changes_only_its_record(part: list[tuple[str, str]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name, recollect.open(":memory:") as memory:
        stored(memory, Path(name), part)
        before = bytes_of(memory)
        at = data.draw(st.integers(0, len(part) - 1))
        short = [each for each in TEXTS if len(each) < 100 and each != part[at][1]]
        edited = [*part[:at], (part[at][0], data.draw(st.sampled_from(short))), *part[at + 1 :]]
        stored(memory, Path(name), edited)
        after = bytes_of(memory)
        changed = {record_id for record_id in {*before, *after} if before.get(record_id) != after.get(record_id)}
        assert len({record_id.partition("/")[0] for record_id in changed}) == 1
        assert {*before} - {*after} <= changed
        assert not {*after} - {*before}


@pytest.mark.parametrize(
    ("before", "after"),
    [("Rain falls here today.", "Rain falls here today and tomorrow."), ("一二三。" * 30, "一二三。" * 31)],
)
def test_a_paragraph_of_text_that_goes_on_as_it_began_is_updated(
    before: str, after: str, write: Write, run: Run, memory: Memory
) -> None:
    path = write("a.txt", f"first\n\n{before}\n\nlast")
    run("text", path)
    write("a.txt", f"new\n\nfirst\n\n{after}\n\nlast")
    report = run("text", path)
    assert (report.created, report.updated, report.unchanged, report.forgotten) == (1, 1, 2, 0)
