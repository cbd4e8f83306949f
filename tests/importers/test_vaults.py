"""Vaults of Obsidian and other Markdown with links, aliases and pictures."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory, filters
from recollect.importers import ImportReport
from recollect.importers.embeds import links_of, without_base64_media

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
URI = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"


@pytest.fixture
def vault(write: Write) -> Path:
    write("vault/.obsidian/app.json", "{}")
    write("vault/assets/oven plan.png", PICTURE)
    write("vault/assets/unused.png", PICTURE)
    write(
        "vault/Kitchen renovation.md",
        "---\naliases: [Kitchen plan, KR]\ncreated: 2026-03-01\ntags: [home]\n---\n"
        "The oven comes [[Ines|from the carpenter]].\n\n![[oven plan.png|300]]\n\n"
        "See [[Budget#Total]] and `[[code]]`.\n",
    )
    write("vault/daily/2026-11-20.md", "Met [Ines](../Ines.md).\n\n![[oven plan.png]]\n")
    write("vault/Ines.md", "# Ines\n\nShe is a carpenter.\n")
    return write("vault/Empty.md", "").parent


def test_a_vault_becomes_notes_with_links_aliases_dates_and_pictures(run: Run, memory: Memory, vault: Path) -> None:
    report = run("markdown", vault)
    assert report.damaged == ()
    assert report.files == {
        "Ines.md": {"created": 1},
        "Kitchen renovation.md": {"created": 1},
        "assets/oven plan.png": {"created": 1},
        "daily/2026-11-20.md": {"created": 1},
    }
    note = memory.find(filters.source("Kitchen renovation.md"))[0]
    assert note.metadata["aliases"] == ["Kitchen plan", "KR"]
    assert note.metadata["title"] == "Kitchen renovation"
    assert note.metadata["links"] == ["Ines", "Budget"]
    assert note.metadata["embedded"] == ["oven plan.png"]
    assert note.time is not None
    assert note.time.date().isoformat() == "2026-03-01"
    daily = memory.find(filters.source("daily/2026-11-20.md"))[0]
    assert (daily.time and daily.time.date().isoformat(), daily.metadata["links"]) == ("2026-11-20", ["../Ines.md"])
    picture = memory.find(filters.source("assets/oven plan.png"))[0]
    assert (picture.content, picture.media_type, picture.time) == (PICTURE, "image/png", note.time)
    assert [hit.record.id for hit in memory.recall("oven plan", k=3, where='source="assets/oven plan.png"')] == [
        picture.id
    ]
    assert memory.recall("KR", k=1)[0].record.id == note.id
    assert run("markdown", vault).unchanged == 4


def test_a_title_or_a_heading_of_its_own_comes_before_the_name_of_the_file(
    run: Run, memory: Memory, vault: Path
) -> None:
    run("markdown", vault)
    assert "title" not in memory.find(filters.source("Ines.md"))[0].metadata


def test_base64_becomes_one_record_with_the_bytes_and_not_text(run: Run, write: Write, memory: Memory) -> None:
    path = write("note.md", f'# Oven\n\nBefore ![The plan]({URI}) after.\n\n<img alt="Second" src="{URI}">\n')
    report = run("markdown", path)
    assert (report.created, report.damaged) == (3, ())
    section = memory.get("note.md#oven")
    assert section is not None
    assert "Before ![The plan](#media-1) after." in section.text
    first, second = memory.get("note.md#media-1"), memory.get("note.md#media-2")
    assert first is not None
    assert second is not None
    assert (first.content, first.media_type, first.metadata["caption"]) == (PICTURE, "image/png", "The plan")
    assert second.metadata["caption"] == "Second"
    assert memory.recall("second", k=1)[0].record.id == second.id
    assert run("markdown", path).unchanged == 3
    write("note.md", "# Oven\n\nBefore and after.\n")
    assert run("markdown", path).forgotten == 2


def test_short_base64_stays_and_damaged_base64_is_reported(run: Run, write: Write, memory: Memory) -> None:
    short = "![x](data:image/png;base64,AAAA)"
    path = write("note.md", f"{short}\n\n![y](data:image/png;base64,{'A' * 2001})\n")
    report = run("markdown", path)
    assert [(each.place, each.reason) for each in report.damaged] == [
        ("note.md, line 3", "its base64 is damaged, and was left out")
    ]
    assert memory.find()[0].text == f"{short}\n\n![y](#omitted-2001-characters)"


def test_a_picture_outside_of_the_folder_is_not_read(run: Run, write: Write, memory: Memory, tmp_path: Path) -> None:
    write("secret.png", PICTURE)
    write("notes/a.md", "![x](../secret.png) ![[secret.png]] ![[link.png]]\n")
    (tmp_path / "notes" / "link.png").symlink_to(tmp_path / "secret.png")
    report = run("markdown", tmp_path / "notes")
    assert [each.file for each in report.damaged] == ["link.png"]
    assert memory.count() == 1
    assert run("markdown", tmp_path / "notes", follow_links=True).created == 1


def test_what_counts_as_a_link() -> None:
    text = (
        "[[A b#c|d]] [e](f%20g.md#h 'T') [i](<j k.md>) ![[l.png|m]] [[A b]] [n](https://o.p) `[[q]]`\n```\n[[r]]\n```\n"
    )
    assert [(link.target, link.text, link.embedded) for link in links_of(text)] == [
        ("A b", "d", False),
        ("f g.md", "e", False),
        ("j k.md", "i", False),
        ("l.png", "m", True),
    ]
    assert list(links_of("no links [x] (y) [[]] [z]()")) == []
    assert without_base64_media("no data: here;base64,AAAA") == ("no data: here;base64,AAAA", [])


def test_names_of_pictures_have_no_unicode_form_and_their_text_is_the_caption(
    run: Run, write: Write, memory: Memory, tmp_path: Path
) -> None:
    write("notes/Jose\u0301.png", PICTURE)
    write("notes/a.md", "![[José.png|The portrait|300x200]]\n")
    assert run("markdown", tmp_path / "notes").created == 2
    assert memory.recall("portrait", k=1, where='source="José.png"')[0].record.metadata["caption"] == "The portrait"


@pytest.mark.parametrize(
    ("matter", "day", "tags"),
    [
        ("Date: 2026-03-05\nTags: [Home]", "2026-03-05", ("Home",)),
        ("date created: 2026-03-05\ntag: home", "2026-03-05", ("home",)),
        ("created: by Ana", None, ()),
    ],
)
def test_front_matter_is_read_as_people_write_it(
    run: Run, write: Write, memory: Memory, matter: str, day: str | None, tags: tuple[str, ...]
) -> None:
    report = run("markdown", write("a.md", f"---\n{matter}\n---\ntext\n"))
    (record,) = memory.find()
    assert report.damaged == ()
    assert record.tags == tags
    assert day is None or (record.time is not None and record.time.date().isoformat() == day)


def test_a_creation_date_that_cannot_be_read_is_reported(run: Run, write: Write) -> None:
    report = run("markdown", write("a.md", "---\ncreated: 05.03.2024\n---\ntext\n"))
    assert "its date '05.03.2024' is neither" in report.damaged[0].reason


def test_a_note_with_a_decomposed_name_is_replaced_and_not_forgotten(
    run: Run, write: Write, memory: Memory, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"name": "notes", "forget_deleted": True}
    path = write("notes/Cafe\u0301.md", "# One\n\nhello\n\n# Two\n\nbye\n")
    assert (run("markdown", tmp_path / "notes", **options).created, memory.count()) == (2, 2)
    path.write_text("# One\n\nhello again\n")
    report = run("markdown", tmp_path / "notes", **options)
    assert (report.updated, report.forgotten, report.replaced, memory.count()) == (1, 1, 1, 1)
    path.unlink()
    write("notes/b.md", "text\n")
    assert run("markdown", tmp_path / "notes", **options).forgotten == 1


def test_one_file_brings_only_pictures_beside_it(run: Run, write: Write, memory: Memory) -> None:
    write("dl/private/passport.jpg", PICTURE)
    write("dl/beside.png", PICTURE)
    path = write("dl/e.md", "![](passport.jpg) ![[passport.jpg]] ![](beside.png)\n")
    assert run("markdown", path).created == 2
    assert memory.count(filters.source("beside.png")) == 1


def test_a_path_that_leads_nowhere_finds_no_other_file_of_the_name(run: Run, write: Write, tmp_path: Path) -> None:
    write("v/old/q.png", PICTURE)
    write("v/a.md", "![](img/q.png)\n")
    assert run("markdown", tmp_path / "v").created == 1
    write("v/b.md", "![[q.png]]\n")
    assert run("markdown", tmp_path / "v").created == 2


@pytest.mark.parametrize(
    "hostile", ["`" * 100_000, "[" * 100_000, "![[" * 30_000, "[a](b '" * 20_000, "~~~\n" * 20_000]
)
def test_signs_of_links_that_never_end_are_no_links(hostile: str) -> None:
    assert list(links_of(hostile)) == []  # read in linear time: with a pattern that tries each end, this took minutes
