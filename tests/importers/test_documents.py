"""Importing text and Markdown files."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory, Record
from recollect.errors import ImportFormatError
from recollect.importers import IMPORTERS, ImportReport
from recollect.importers.base import ImportedDocument
from recollect.text.markdown import sections

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]


@pytest.fixture
def run(run: Run, imported: list[tuple[str, Path]]) -> Run:
    def noted(name: str, path: Path, /, **options: Any) -> ImportReport:
        imported.append((name, path))
        return run(name, path, **options)

    return noted


@pytest.fixture
def imported() -> list[tuple[str, Path]]:
    return []


@pytest.fixture
def pieces(memory: Memory, imported: list[tuple[str, Path]]) -> Callable[[], list[Record]]:
    """The records of what was imported last, in the order of the source. There are no others."""

    def pieces() -> list[Record]:
        name, path = imported[-1]
        read = [each for each in IMPORTERS[name].read(path, UTC) if isinstance(each, ImportedDocument)]
        found = [memory.get(item.fields["id"]) for document in read for item in document.items]
        assert len(found) == memory.count()
        return [record for record in found if record is not None]

    return pieces


Pieces = Callable[[], list[Record]]


# Text


def test_each_paragraph_is_a_piece_of_knowledge(write: Write, run: Run, pieces: Pieces) -> None:
    path = write("notes.txt", "\n\nFirst line\nsecond line  \n \t \n\n  indented\n\nlast")
    assert run("text", path).created == 3
    stored = pieces()
    assert [piece.content for piece in stored] == ["First line\nsecond line", "  indented", "last"]
    assert [piece.id for piece in stored] == ["notes.txt#first-line", "notes.txt#indented", "notes.txt#last"]
    assert {(piece.kind, piece.source) for piece in stored} == {("knowledge", "notes.txt")}
    assert stored[1].metadata == {"source": "notes.txt", "chunk_index": 0}


def test_a_byte_order_mark_and_windows_line_ends_are_not_text(write: Write, run: Run, pieces: Pieces) -> None:
    run("text", write("notes.txt", b"\xef\xbb\xbfone\r\ntwo\r\n\r\nthree\rfour"))
    assert [piece.content for piece in pieces()] == ["one\ntwo", "three\nfour"]


def test_identical_paragraphs_stay_distinct_and_a_second_run_adds_nothing(
    write: Write, run: Run, memory: Memory
) -> None:
    path = write("notes.txt", "again\n\nagain\n\nagain")
    assert run("text", path).created == 3
    root = memory.root
    assert (run("text", path).unchanged, memory.root) == (3, root)
    write("notes.txt", "again\n\nagain\n\nagain\n\nagain")
    assert (run("text", path).created, memory.count()) == (1, 4)


def test_a_folder_is_read_in_order_with_its_subfolders_and_without_hidden_files(
    write: Write, run: Run, pieces: Pieces, tmp_path: Path
) -> None:
    for name in ("b.txt", "a/z.TXT", "a/.secret.txt", ".git/c.txt", "a/notes.md"):
        write(f"docs/{name}", f"This is {name}")
    report = run("text", tmp_path / "docs")
    assert (report.created, report.damaged) == (2, ())
    assert [piece.id for piece in pieces()] == ["a/z.TXT#this-is-a-z", "b.txt#this-is-b-txt"]


def test_files_of_a_folder_that_are_no_text_are_reported_and_the_rest_is_read(
    write: Write, run: Run, tmp_path: Path
) -> None:
    write("docs/a.txt", b"caf\xe9")
    write("docs/b.txt", "fine")
    write("docs/c.txt", b"\x00\x01\x02")
    (tmp_path / "docs" / "d.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "docs" / "e.txt")
    write("docs/f\n.txt", "a name that no source can have")
    (tmp_path / "docs" / "g.txt").mkdir()
    report = run("text", tmp_path / "docs")
    assert report.created == 1
    assert [damage.place for damage in report.damaged] == ["a.txt, byte 3", "c.txt", "d.txt", "e.txt", "f\\n.txt"]
    assert "UTF-8" in report.damaged[0].reason


def test_a_file_name_that_is_not_unicode_is_reported_printably(run: Run, tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"\xff.txt")).write_text("text")
    except OSError:
        pytest.skip("this file system takes only Unicode names")
    (damage,) = run("text", tmp_path).damaged
    assert damage.place == "\\udcff.txt"


def test_a_long_path_gives_a_short_id_that_stays_the_same(
    write: Write, run: Run, pieces: Pieces, tmp_path: Path
) -> None:
    deep = "/".join(["ä" * 60] * 4)
    write(f"docs/{deep}/one.txt", "one\n\none")
    write(f"docs/{deep}/two.txt", "two")
    report = run("text", tmp_path / "docs")
    assert (report.created, run("text", tmp_path / "docs").created) == (3, 0)
    assert all(len(piece.id.encode()) <= 255 for piece in pieces())
    assert [piece.source for piece in pieces()] == [f"{deep}/one.txt", f"{deep}/one.txt", f"{deep}/two.txt"]


def test_a_long_paragraph_is_divided_behind_its_sentences(write: Write, run: Run, pieces: Pieces) -> None:
    sentences = [f"This is sentence number {number} of a long one." for number in range(120)]
    run("text", write("notes.txt", " ".join(sentences)))
    texts = [piece.text for piece in pieces()]
    assert len(texts) > 1
    assert all(len(text) <= 2000 and text.endswith("one.") for text in texts)
    assert " ".join(texts) == " ".join(sentences)


@pytest.mark.parametrize(
    "text", ["x" * 7001, "word " * 1500, "字" * 1999 + "。" + "字" * 2001, "line\n" * 900, ". " * 3000]
)
def test_however_a_long_text_is_divided_nothing_but_white_space_is_lost(
    text: str, write: Write, run: Run, pieces: Pieces
) -> None:
    run("text", write("notes.txt", text))
    texts = [piece.text for piece in pieces()]
    assert all(len(each) <= 2000 for each in texts)
    assert "".join("".join(texts).split()) == "".join(text.split())


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_an_empty_file_holds_nothing_and_an_empty_folder_is_refused(
    form: str, write: Write, run: Run, tmp_path: Path
) -> None:
    assert run(form, write("empty.txt", " \n\n")).created == 0
    with pytest.raises(ImportFormatError):
        run(form, write("void/x.dat", "x").parent)
    with pytest.raises(ImportFormatError):
        run(form, tmp_path / "nowhere.txt")


# Markdown

GARDEN = """\
---
title: "The garden"
author: Ada
tags:
  - plants
# comment: no
text: |
  a block
---
Before any heading.

# Garden #

All about it.

## Roses
Cut in *March*.
```sh
# not a heading

echo done
```
Setext heading
over two lines
==============
~~~
## nor this
Under
-----
~~~

### Deep
#Not a heading
"""


def test_sections_are_pieces_with_the_path_of_their_headings(write: Write, run: Run, pieces: Pieces) -> None:
    run("markdown", write("garden.md", GARDEN))
    stored = pieces()
    assert [(piece.content, piece.metadata["headings"]) for piece in stored] == [
        ("Before any heading.", []),
        ("# Garden #\n\nAll about it.", ["Garden"]),
        ("## Roses\nCut in *March*.\n```sh\n# not a heading\n\necho done\n```", ["Garden", "Roses"]),
        (
            "Setext heading\nover two lines\n==============\n~~~\n## nor this\nUnder\n-----\n~~~",
            ["Setext heading over two lines"],
        ),
        ("### Deep\n#Not a heading", ["Setext heading over two lines", "Deep"]),
    ]
    front_matter = {"title": "The garden", "author": "Ada", "tags": ["plants"], "text": "a block\n"}
    assert all(piece.metadata["front_matter"] == front_matter for piece in stored)
    assert {(piece.metadata["title"], piece.tags) for piece in stored} == {("The garden", ("plants",))}
    names = ["top", "garden", "roses", "setext-heading-over-two-lines", "deep"]
    assert [piece.id for piece in stored] == [f"garden.md#{name}" for name in names]
    assert {(piece.kind, piece.source) for piece in stored} == {("knowledge", "garden.md")}


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("para\n\n---\n\nmore", [[]]),
        ("- item\n---\ntext", [[]]),
        ("text\n- item\n---", [[]]),
        ("> quote\n---", [[]]),
        ("    code\n    # code\n---", [[]]),
        ("| a |\n|---|\n| b |", [[]]),
        ("a\n---", [["a"]]),
        ("---\nno: end", [[]]),
        ("####### seven", [[]]),
        ("# C#\n## \n### x ###", [["C#"], ["C#", ""], ["C#", "", "x"]]),
        ("## b\n# a\n## c", [["b"], ["a"], ["a", "c"]]),
        ("# a\n```\n# open to the end", [["a"]]),
        ("- item\n\n      ```\n# no list any more\n      ```", [[], ["no list any more"]]),
        ("- item\n\n  ```\n  # in a list\n  ```", [[]]),
        ("<div>\n# in HTML\n</div>", [[]]),
        ("# *a* [b](c) `d`", [["a b d"]]),
        ("    ```\n\n# after code that shows a fence", [[], ["after code that shows a fence"]]),
        ("``` not ` a fence\n# h", [[], ["h"]]),
        ("````\n```\n# no\n````\n# yes", [[], ["yes"]]),
        ("```\na\n```\n```\nb\n```\n# h", [[], ["h"]]),
    ],
)
def test_headings_are_those_of_commonmark(text: str, headings: list[list[str]]) -> None:
    found = sections(text.split("\n"))
    assert [[*each.above, each.title] if each.level else [] for each in found] == headings


def test_long_sections_are_divided_at_paragraphs_and_each_part_keeps_its_heading(
    write: Write, run: Run, pieces: Pieces
) -> None:
    paragraphs = [f"Paragraph {number}." + " All of it matters." * 20 for number in range(20)]
    run("markdown", write("a.md", "# Top\n\n" + "\n\n".join(paragraphs) + "\n\n# Next\n\nshort"))
    *parts, last = [piece.text for piece in pieces()]
    assert len(parts) > 2
    assert all(part.startswith("# Top\n\nParagraph ") and len(part) <= 2000 for part in parts)
    reported = "\n\n".join(part.removeprefix("# Top\n\n") for part in parts)
    assert reported == "\n\n".join(paragraphs)
    assert last == "# Next\n\nshort"


def test_a_paragraph_too_long_for_a_part_is_divided_at_sentences(write: Write, run: Run, pieces: Pieces) -> None:
    run("markdown", write("a.md", "# Top\n\nBrief.\n\n" + "A sentence of it. " * 300 + "\n\nBrief."))
    texts = [piece.text for piece in pieces()]
    assert all(text.startswith("# Top\n") and len(text) <= 2000 for text in texts)
    assert sum(text.count("A sentence of it.") for text in texts) == 300


def test_fenced_code_is_never_divided(write: Write, run: Run, pieces: Pieces) -> None:
    code = "```py\n" + "\n\n".join(f"# step {number}" for number in range(400)) + "\n```"
    run("markdown", write("a.md", f"# Top\nBefore.\n{code}\nAfter.\n\nThe end."))
    texts = [piece.text for piece in pieces()]
    assert texts == ["# Top\nBefore.", f"# Top\n\n{code}", "# Top\n\nAfter.\n\nThe end."]


def test_a_markdown_folder_is_read_whole_and_twice_adds_nothing(
    write: Write, run: Run, memory: Memory, tmp_path: Path
) -> None:
    write("docs/a.md", "# A\none\n# A\none\n# A\ntwo\n# B\n## C")
    write("docs/sub/b.markdown", GARDEN)
    write("docs/sub/c.txt", "not this")
    report = run("markdown", tmp_path / "docs")
    root = memory.root
    assert (report.created, report.damaged) == (9, ())
    assert (run("markdown", tmp_path / "docs").unchanged, memory.root) == (9, root)
