"""Importing LoCoMo's conversations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
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


def sample(name: Any = "conv-1", **sessions: Any) -> dict[str, Any]:
    return {"sample_id": name, "conversation": {"speaker_a": "Ada", "speaker_b": "Ben", **sessions}, "qa": []}


def turn(number: int, session: int = 1, **fields: Any) -> dict[str, Any]:
    return {"speaker": "Ada", "dia_id": f"D{session}:{number}", "text": f"turn {number} of {session}", **fields}


WHEN = "1:56 pm on 8 May, 2023"


def test_each_conversation_becomes_a_namespace_of_turns_in_order(write: Write, run: Run, turns: Turns) -> None:
    path = write(
        "data.json",
        [
            sample(
                session_10=[turn(1, 10)],
                session_10_date_time="12:09 am on 13 September, 2023",
                session_2=[turn(1, 2), turn(2, 2)],
                session_2_date_time=WHEN,
            ),
            sample("conv-2", session_1=[turn(1)], session_1_date_time=WHEN),
        ],
    )
    report = run("locomo", path)
    assert (report.created, report.damaged, report.namespaces) == (4, (), {"conv-1": 3, "conv-2": 1})
    stored = turns("conv-1")
    assert [(t.id, t.session, t.position) for t in stored] == [
        ("D2:1", "session_2", 0),
        ("D2:2", "session_2", 1),
        ("D10:1", "session_10", 2),
    ]
    assert [t.time.isoformat() for t in stored if t.time] == [
        "2023-05-08T13:56:00+00:00",
        "2023-05-08T13:56:00+00:00",
        "2023-09-13T00:09:00+00:00",
    ]
    first = stored[0]
    assert (first.kind, first.speaker, first.conversation, first.role) == ("conversation", "Ada", "conv-1", None)


def test_a_session_time_is_taken_in_the_zone_that_the_user_names(write: Write, run: Run, turns: Turns) -> None:
    path = write("data.json", [sample(session_1=[turn(1)], session_1_date_time=WHEN)])
    run("locomo", path, zone=ZoneInfo("Asia/Tokyo"))
    assert turns("conv-1")[0].time == datetime(2023, 5, 8, 13, 56, tzinfo=ZoneInfo("Asia/Tokyo"))


@pytest.mark.parametrize(
    ("written", "hour"),
    [("12:00 am on 1 May, 2023", 0), ("12:00 pm on 1 May, 2023", 12), ("11:59 PM on 1 May 2023", 23)],
)
def test_the_twelve_hour_clock_is_read_without_a_locale(
    written: str, hour: int, write: Write, run: Run, turns: Turns
) -> None:
    run("locomo", write("data.json", [sample(session_1=[turn(1)], session_1_date_time=written)]))
    time = turns("conv-1")[0].time
    assert time is not None
    assert (time.month, time.day, time.hour) == (5, 1, hour)


@pytest.mark.parametrize(
    "written", ["13:00 pm on 1 May, 2023", "1:00 pm on 31 June, 2023", "1:00 pm on 1 Mai, 2023", 7]
)
def test_a_session_time_that_cannot_be_read_is_reported_and_its_turns_are_kept(
    written: Any, write: Write, run: Run
) -> None:
    report = run("locomo", write("data.json", [sample(session_1=[turn(1)], session_1_date_time=written)]))
    assert report.created == 1
    assert [damage.place for damage in report.damaged] == ["conv-1, session_1_date_time"]


def test_text_is_kept_exactly_and_a_picture_keeps_its_caption_and_address(write: Write, run: Run, turns: Turns) -> None:
    path = write(
        "data.json",
        [
            sample(
                session_1=[
                    turn(1, text="  two\n spaces "),
                    turn(2, blip_caption="a red boat", img_url=["https://example.org/boat.jpg"], query="boat"),
                    turn(3, text="", blip_caption="a cat on a wall"),
                ],
                session_1_date_time=WHEN,
            )
        ],
    )
    assert run("locomo", path).damaged == ()
    exact, picture, bare = turns("conv-1")
    assert exact.content == "  two\n spaces "
    assert picture.content == "turn 2 of 1"
    assert picture.metadata == {"caption": "a red boat", "images": ["https://example.org/boat.jpg"]}
    assert (bare.content, bare.metadata) == ("[image: a cat on a wall]", {"caption": "a cat on a wall"})


@pytest.mark.in_process
def test_damaged_turns_in_the_middle_are_reported_by_their_place_and_the_rest_is_stored(
    write: Write, run: Run, turns: Turns
) -> None:
    bad: list[Any] = [
        "no turn",
        turn(3, text=None),
        turn(4, text=5),
        turn(5, speaker=9),
        turn(6, dia_id=6),
        turn(7, text="\ud800"),
        turn(8, img_url=[float("nan")]),
    ]
    path = write("data.json", [sample(session_1=[turn(1), *bad, turn(9)], session_1_date_time=WHEN)])
    report = run("locomo", path)
    assert [damage.place for damage in report.damaged] == [f"conv-1, session_1, turn {n}" for n in range(2, 9)]
    assert all(damage.reason for damage in report.damaged)
    assert [(t.id, t.position) for t in turns("conv-1")] == [("D1:1", 0), ("D1:9", 8)]


def test_a_mended_turn_is_the_only_new_one(write: Write, run: Run) -> None:
    def file_of(second: Any) -> Path:
        return write("data.json", [sample(session_1=[turn(1), second, turn(3)], session_1_date_time=WHEN)])

    assert run("locomo", file_of(None)).created == 2
    report = run("locomo", file_of(turn(2)))
    assert (report.created, report.unchanged, report.differing) == (1, 2, 0)


def test_running_twice_adds_nothing_and_a_longer_list_only_what_is_new(write: Write, run: Run, memory: Memory) -> None:
    def file_of(count: int) -> Path:
        # Without ids, and the same text again and again: only the position tells these turns apart.
        anonymous = [{"speaker": "Ben", "text": "ok" if n % 50 == 0 else f"line {n}"} for n in range(count)]
        return write(
            "data.json",
            [sample(session_1=[turn(n) for n in range(1200)], session_2=anonymous, session_1_date_time=WHEN)],
        )

    assert run("locomo", file_of(1100)).created == 2300
    root = memory.namespace("conv-1").root
    again = run("locomo", file_of(1100))
    assert (again.created, again.unchanged, memory.namespace("conv-1").root) == (0, 2300, root)
    longer = run("locomo", file_of(1103))
    assert (longer.created, longer.unchanged) == (3, 2300)


def test_two_turns_of_one_id_are_both_stored(write: Write, run: Run, turns: Turns) -> None:
    path = write("data.json", [sample(session_1=[turn(1, text="ok"), turn(1, text="ok")], session_1_date_time=WHEN)])
    assert run("locomo", path).created == 2
    assert run("locomo", path).created == 0
    assert [(t.content, t.position) for t in turns("conv-1")] == [("ok", 0), ("ok", 1)]


def test_conversations_and_sessions_of_the_wrong_shape_are_reported(write: Write, run: Run) -> None:
    path = write(
        "data.json",
        [
            5,
            {"sample_id": "conv-9"},
            sample(None),
            sample("a\nb"),
            sample(session_1="no list", session_two=[turn(1)], session_2=[turn(1, 2)], session_2_date_time=WHEN),
            sample(session_1=[turn(1)]),
        ],
    )
    report = run("locomo", path)
    assert report.namespaces == {"conv-1": 1}
    assert [damage.place for damage in report.damaged] == [
        "conversation 1",
        "conversation 2",
        "conversation 3",
        "conversation 4",
        "conv-1, session_two",
        "conv-1, session_1",
        "conversation 6",
    ]


@pytest.mark.parametrize("data", [{}, [], 5, [{"messages": []}], {"conversation": {}}])
def test_a_file_that_is_not_locomo_is_refused_whole(data: Any, write: Write, run: Run, memory: Memory) -> None:
    with pytest.raises(ImportFormatError):
        run("locomo", write("data.json", data))
    assert memory.namespaces() == []


def test_all_turns_of_the_five_development_conversations_are_imported(data_folder: Path, memory: Memory) -> None:
    path = data_folder / "locomo" / "locomo5-dev.json"
    report = import_path(memory, DATASET_IMPORTERS["locomo"], path)
    assert (report.created, report.damaged) == (2760, ())
    assert report.namespaces == {"conv-26": 419, "conv-30": 369, "conv-41": 663, "conv-42": 629, "conv-43": 680}
    again = import_path(memory, DATASET_IMPORTERS["locomo"], path)
    assert (again.created, again.unchanged, again.differing) == (0, 2760, 0)
