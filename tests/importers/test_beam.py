"""Importing BEAM's chats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from recollect import Memory, Record
from recollect.errors import ImportFormatError
from recollect.evaluation import DATASET_IMPORTERS
from recollect.importers import ImportReport, import_path

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]
Turns = Callable[..., list[Record]]


def message(number: int, content: str = "hello", role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"role": role, "id": number, "content": content, **fields}


def batch(number: int, *messages: Any) -> dict[str, Any]:
    return {"batch_number": number, "time_anchor": None, "turns": [list(messages)]}


def test_a_chat_folder_becomes_a_namespace_of_its_messages(write: Write, run: Run, turns: Turns) -> None:
    chat = [
        batch(
            1,
            message(0, "Plan my garden. ->-> 1,1", time_anchor="March-15-2024", index="1,1"),
            message(1, "Gladly. ->-> 1,1", "assistant"),
        ),
        batch(
            2,
            message(2, "And the hedge? ->-> 2,N/A"),
            message(3, "Trim it ->-> then water", time_anchor="April-05-2024"),
        ),
    ]
    path = write("7/chat.json", chat)
    report = run("beam", path.parent)
    assert (report.created, report.damaged, report.namespaces) == (4, (), {"beam-7": 4})
    stored = turns("beam-7")
    assert [(t.id, t.role, t.content, t.session, t.position) for t in stored] == [
        ("0", "user", "Plan my garden.", "batch-1", 0),
        ("1", "assistant", "Gladly. ->-> 1,1", "batch-1", 1),
        ("2", "user", "And the hedge?", "batch-2", 2),
        ("3", "user", "Trim it ->-> then water", "batch-2", 3),
    ]
    assert {(t.conversation, t.speaker, t.kind) for t in stored} == {("beam-7", None, "conversation")}
    assert all(t.metadata == {} for t in stored)


def test_a_date_holds_until_the_next_one_and_for_its_batch_only(write: Write, run: Run, turns: Turns) -> None:
    path = write(
        "c/chat.json",
        [
            batch(
                1,
                message(0),
                message(1, time_anchor="March-15-2024"),
                message(2),
                message(3, time_anchor="May-01-2024"),
            ),
            {"batch_number": 2, "time_anchor": "June-02-2024", "turns": [[message(4)], [message(5)]]},
            batch(3, message(6)),
        ],
    )
    run("beam", path, zone=ZoneInfo("Europe/Berlin"))
    now = "2026-11-01T12:00:00{}+00:00"  # a record without a time gets that of its import, in their order
    assert [t.time.isoformat() for t in turns("beam-c") if t.time] == [
        now.format(""),
        "2024-03-15T00:00:00+01:00",
        "2024-03-15T00:00:00+01:00",
        "2024-05-01T00:00:00+02:00",
        "2024-06-02T00:00:00+02:00",
        "2024-06-02T00:00:00+02:00",
        now.format(".000006"),
    ]


def test_a_folder_of_chats_is_imported_chat_by_chat_and_bad_ones_are_reported(
    write: Write, run: Run, tmp_path: Path
) -> None:
    for name in ("1", "2", "10"):
        write(f"all/{name}/chat.json", [batch(1, message(0))])
    write("all/3/chat.json", "{not json")
    (tmp_path / "all" / "4").mkdir()
    (tmp_path / "all" / ".hidden").mkdir()
    report = run("beam", tmp_path / "all")
    assert list(report.namespaces) == ["beam-1", "beam-2", "beam-10"]
    assert [damage.place for damage in report.damaged] == ["3/chat.json", "4/chat.json"]


def test_the_namespace_is_the_folders_name_however_the_path_is_given(
    write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("5/chat.json", [batch(1, message(0))])
    monkeypatch.chdir(path.parent)
    for given in (Path("chat.json"), Path()):
        assert list(run("beam", given).namespaces) == ["beam-5"]


def test_damaged_messages_in_the_middle_are_reported_by_their_place(write: Write, run: Run, turns: Turns) -> None:
    chat: list[Any] = [
        batch(
            1,
            message(0),
            None,
            message(2, content=None),  # type: ignore[arg-type]
            message(3, " ->-> 1,4"),
            message(4, role=7),  # type: ignore[arg-type]
            message(5, time_anchor="Someday"),
            message([], "an id that is a list"),  # type: ignore[arg-type]
            message(7, "\ud83d"),
            message(8),
        ),
        {"batch_number": 2},
        {"batch_number": 3, "turns": [message(9)]},
    ]
    report = run("beam", write("1/chat.json", chat))
    turn = "beam-1, batch 1, turn 1, message"
    assert [damage.place for damage in report.damaged] == [
        *(f"{turn} {number}" for number in range(2, 9)),
        "beam-1, batch 2",
        "beam-1, batch 3, turn 1",
    ]
    assert [(t.id, t.position) for t in turns("beam-1")] == [("0", 0), ("8", 8)]


def test_running_twice_adds_nothing_and_a_longer_chat_only_its_new_messages(write: Write, run: Run) -> None:
    def file_of(count: int) -> Path:
        return write("1/chat.json", [batch(1, *(message(number, "ok") for number in range(count)))])

    assert run("beam", file_of(2500)).created == 2500
    assert run("beam", file_of(2500)).created == 0
    assert run("beam", file_of(2502)).created == 2


def test_messages_of_one_id_in_two_batches_are_both_stored(write: Write, run: Run) -> None:
    path = write("1/chat.json", [batch(1, message(0, "ok")), batch(2, message(0, "ok"))])
    assert run("beam", path).created == 2
    assert run("beam", path).created == 0


@pytest.mark.parametrize("data", [{}, [], [[]], [{"turns": {}}], "null"])
def test_a_file_that_is_not_a_chat_is_refused_whole(data: Any, write: Write, run: Run, memory: Memory) -> None:
    with pytest.raises(ImportFormatError):
        run("beam", write("1/chat.json", data))
    assert memory.namespaces() == []


def test_a_folder_without_chats_is_refused(tmp_path: Path, run: Run) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportFormatError):
        run("beam", tmp_path)


def test_all_ten_chats_are_imported(data_folder: Path, memory: Memory) -> None:
    report = import_path(memory, DATASET_IMPORTERS["beam"], data_folder / "beam" / "100K")
    assert (report.created, report.damaged, len(report.namespaces)) == (2432, (), 10)
    records = [record for name in memory.namespaces() for record in memory.namespace(name).find()]
    assert not [record.id for record in records if record.role == "user" and "->->" in record.text]
    assert all(record.time and record.time.year == 2024 for record in records)
    assert import_path(memory, DATASET_IMPORTERS["beam"], data_folder / "beam" / "100K").created == 0
