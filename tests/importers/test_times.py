"""When something was is not when it was imported: times that a source states elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.importers import import_path

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SAID = datetime(2023, 5, 3, 10, tzinfo=UTC)


def times_of(tmp_path: Path, form: str, name: str, content: object) -> tuple[dict[str, datetime | None], int]:
    """The times of the records of a file by their texts, and how many took theirs from elsewhere."""
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with recollect.open(":memory:", clock=lambda: NOW, embedder="none", zone="UTC") as memory:
        report = import_path(memory, form, path)
        assert report.damaged == ()
        assert import_path(memory, form, path).created == 0
        return {str(record.content): record.time for record in memory.find()}, report.dated


def chat(*times: str | None, created: str | None = None) -> dict[str, Any]:
    messages = [
        {"uuid": f"m{at}", "sender": "human", "text": f"message {at}", **({"created_at": time} if time else {})}
        for at, time in enumerate(times)
    ]
    return {"uuid": "c", "name": "a chat", "chat_messages": messages, **({"created_at": created} if created else {})}


def test_a_message_without_a_time_is_of_the_one_before_it(tmp_path: Path) -> None:
    times, dated = times_of(
        tmp_path, "anthropic", "c.json", [chat("2023-05-03T10:00:00Z", None, "2023-06-01T10:00:00Z")]
    )
    assert (times["message 1"], dated) == (SAID, 1)


def test_the_first_message_without_a_time_is_of_the_one_after_it(tmp_path: Path) -> None:
    times, dated = times_of(tmp_path, "anthropic", "c.json", [chat(None, None, "2023-05-03T10:00:00Z")])
    assert (set(times.values()), dated) == ({SAID}, 2)


def test_messages_without_any_time_are_of_their_conversation(tmp_path: Path) -> None:
    times, dated = times_of(tmp_path, "anthropic", "c.json", [chat(None, None, created="2023-05-03T10:00:00Z")])
    assert (set(times.values()), dated) == ({SAID}, 2)


def test_control_messages_of_a_source_without_any_time_are_of_the_import(tmp_path: Path) -> None:
    times, dated = times_of(tmp_path, "anthropic", "c.json", [chat(None)])
    assert (set(times.values()), dated) == ({NOW}, 0)


def node(name: str, parent: str | None, time: float | None) -> dict[str, Any]:
    message = {"id": name, "author": {"role": "user"}, "content": {"content_type": "text", "parts": [name]}}
    return {"id": name, "parent": parent, "message": {**message, "create_time": time}}


def test_a_message_of_another_branch_is_of_the_turn_that_it_leaves(tmp_path: Path) -> None:
    nodes = [node("a", None, SAID.timestamp()), node("b", "a", SAID.timestamp() + 60), node("other", "a", None)]
    tree = {"title": "t", "current_node": "b", "create_time": 1.0, "mapping": {each["id"]: each for each in nodes}}
    times, dated = times_of(tmp_path, "chatgpt", "conversations.json", [tree])
    assert (times["other"], dated) == (SAID, 1)


@pytest.mark.parametrize(
    ("name", "text", "day", "dated"),
    [
        ("2026-11-20.md", "Tea with Ana", "2026-11-20", 1),
        ("2026-11-20 Friday.md", "Tea with Ana", "2026-11-20", 1),
        ("20261120.md", "Tea with Ana", "2026-11-20", 1),
        ("tea.md", "---\ncreated: 2026-11-20\n---\nTea with Ana", "2026-11-20", 0),
        ("tea.md", "---\ndate: 2026-11-20\ncreated: 2025-01-01\n---\nTea with Ana", "2026-11-20", 0),
        ("tea.md", "+++\ndate = 2026-11-20\ntitle = 'Tea'\n+++\nTea with Ana", "2026-11-20", 0),
        ("tea.md", "+++\ndate = 2026-11-20T00:00:00Z\n+++\nTea with Ana", "2026-11-20", 0),
        ("2025-01-01.md", "---\ndate: 2026-11-20\n---\nTea with Ana", "2026-11-20", 0),
        ("tea.md", "Tea with Ana", "2026-11-28", 0),
    ],
)
def test_a_note_is_of_its_own_day(tmp_path: Path, name: str, text: str, day: str, dated: int) -> None:
    times, count = times_of(tmp_path, "markdown", name, text)
    assert {str(time)[:10] for time in times.values()} == {day}
    assert count == dated


def test_toml_front_matter_has_tags_and_a_title_and_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text('+++\ntitle = "Tea"\n[taxonomies]\ntags = ["drinks"]\n+++\nWith Ana.\n')
    with recollect.open(":memory:") as memory:
        import_path(memory, "markdown", tmp_path / "a.md")
        (record,) = memory.find()
        assert (record.content, record.tags, record.metadata["title"]) == ("With Ana.", ("drinks",), "Tea")


def test_toml_that_cannot_be_read_is_reported_and_imported_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("+++\ntitle = \n+++\nWith Ana.\n")
    with recollect.open(":memory:") as memory:
        report = import_path(memory, "markdown", tmp_path / "a.md")
        assert [("TOML" in each.reason) for each in report.damaged] == [True]
        assert any("title" in str(record.content) for record in memory.find())


def test_loose_messages_go_on_after_a_conversation_between_them(tmp_path: Path) -> None:
    lines = [
        {"role": "user", "content": "one", "created_at": "2023-05-03T10:00:00Z"},
        {"messages": [{"role": "user", "content": "two", "created_at": "2024-01-01T10:00:00Z"}]},
        {"role": "user", "content": "three"},
    ]
    times, dated = times_of(tmp_path, "openai", "c.jsonl", "\n".join(map(json.dumps, lines)))
    assert (times["three"], dated) == (SAID, 1)


def test_a_later_export_that_dates_a_turn_otherwise_is_no_difference(tmp_path: Path) -> None:
    with recollect.open(":memory:", clock=lambda: NOW) as memory:
        for written in ([None, "2023-05-03T10:00:00Z"], ["2023-05-02T10:00:00Z", None]):
            path = tmp_path / "c.json"
            path.write_text(json.dumps([chat(*written)]))
            report = import_path(memory, "claude", path)
        assert (report.unchanged, report.differing) == (2, 1)  # the first, whose time is stated now, and is another


def test_created_that_is_no_time_is_no_damage_and_a_bad_date_hides_no_good_one(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    with recollect.open(":memory:", clock=lambda: NOW) as memory:
        path.write_text("---\ncreated: by Ana\n---\nfirst\n")
        assert import_path(memory, "markdown", path).damaged == ()
        path.write_text("---\ndate: some day\ncreated: 2023-05-03T10:00:00Z\n---\nsecond\n")
        assert [each.place for each in import_path(memory, "markdown", path).damaged] == ["note.md, line 1"]
        assert memory.find()[0].time == SAID
