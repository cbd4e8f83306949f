"""Which moment a page shows: that of now, by the clock, unless it is asked for another one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.http.serving import Server, served
from tests.inspector.pages import Reader

import recollect

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that stands, and is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def on(clock: Clock, folder: Path, **options: Any) -> Any:
    """Serve the inspector of a memory that has a clock."""

    def opened(*, create: bool, read_only: bool) -> recollect.Memory:
        return recollect.open(folder / "served.db", embedder="none", clock=clock)

    return served(folder, ui=True, opened=opened, **options)


def reading(server: Server, right: Any = None, **scope: Any) -> Reader:
    return Reader(server, None if right is None else server.token(right, right, **scope))


def test_what_has_expired_is_not_shown_though_no_commit_has_removed_it(clock: Clock, tmp_path: Path) -> None:
    with on(clock, tmp_path) as server, recollect.open(tmp_path / "served.db", clock=clock, embedder="none") as memory:
        memory.remember("The door code is 4711", id="code", user="ana", ttl=60, tags=["x"])
        memory.remember("The door is blue", id="blue", user="ana", tags=["x"])
        clock.now += timedelta(hours=1)
        reader = reading(server)
        assert [each["id"] for each in reader.json("records")["records"]] == ["blue"]
        assert [each["record"]["id"] for each in reader.json("search", q="door code")["hits"]] == ["blue"]
        assert "4711" not in reader.get("context", q="door code").words
        assert "4711" not in reader.get("me", person="ana").words
        page = reader.get("forget", tag="x")
        assert "1 record would be forgotten" in page.words
        reader.send(page.form("forget_where"))
        assert memory.count() == 0
        assert reader.json("records", at="1")["count"] == 1


def test_a_question_is_asked_now_and_not_at_the_newest_commit(clock: Clock, tmp_path: Path) -> None:
    with on(clock, tmp_path) as server, recollect.open(tmp_path / "served.db", clock=clock, embedder="none") as memory:
        memory.remember("I went swimming", time=NOON - timedelta(days=1))
        clock.now += timedelta(days=100)
        shown = reading(server).json("search", q="swimming yesterday")
        assert shown["reference"] == memory.recall("swimming yesterday").reference.isoformat()  # type: ignore[union-attr]


@pytest.mark.parametrize("right", ["admin", "own"])
def test_commits_ahead_of_the_clock_are_shown_to_a_user(clock: Clock, tmp_path: Path, right: str) -> None:
    with on(clock, tmp_path, tokens=True) as server:
        with recollect.open(tmp_path / "served.db", clock=clock, embedder="none") as memory:
            clock.now += timedelta(days=1000)
            memory.remember("from the future", id="future", user="ana")
            clock.now = NOON
            assert memory.scoped(user="ana").count() == 1
        page = "records" if right == "admin" else "me"
        assert reading(server, right, user="ana").json(page)["count"] == 1


def test_a_record_is_shown_as_of_a_moment_without_what_came_later(clock: Clock, tmp_path: Path) -> None:
    with on(clock, tmp_path) as server, recollect.open(tmp_path / "served.db", clock=clock, embedder="none") as memory:
        memory.remember("other", id="other")
        memory.remember("first", id="a")
        memory.update("a", content="second")
        reader = reading(server)
        reader.get("record", 404, id="a", at="1")
        assert [each["cause"] for each in reader.json("record", id="a", at="2")["versions"]] == ["written"]
        assert "second" not in reader.get("record", id="a", at="2").texts


def test_a_moment_that_is_no_moment_is_refused(clock: Clock, tmp_path: Path) -> None:
    with on(clock, tmp_path) as server, recollect.open(tmp_path / "served.db", clock=clock, embedder="none") as memory:
        memory.remember("a text", id="a")
        reader = reading(server)
        for at in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "9" * 5000, "²", "x"):
            for page in ("records", "log", "search", "record"):
                assert reader.answer(
                    f"{page}?{urlencode({'at': at, 'id': 'a'} if page == 'record' else {'at': at})}"
                ).status in (400, 404), (page, at[:20])
            assert reader.answer(f"diff?{urlencode({'a': at})}").status in (400, 404)
            assert reader.answer(f"log?{urlencode({'before': at})}").status in (400, 404)
        assert reader.answer("download?at=1").status == 400
        assert "as of" in reader.get("records", at="2026-03-01T12:00").words.lower()
        assert reader.get("records", at=(NOON + timedelta(days=1)).isoformat()).answer.status == 200


def test_older_commits_of_a_user_come_once(clock: Clock, tmp_path: Path) -> None:
    with on(clock, tmp_path, tokens=True) as server:
        with recollect.open(tmp_path / "served.db", clock=clock, embedder="none") as memory:
            for number in range(170):
                memory.remember(f"text {number}", id=f"n{number}", user="ana" if number % 2 else "bob")
        for reader, count in ((reading(server, "read", user="ana"), 85), (reading(server, "write"), 170)):
            seen: list[str] = []
            before: Any = ""
            while before is not None:
                page = reader.json("log", **({"before": before} if before else {}))
                seen += [change["id"] for commit in page["commits"] for change in commit["changes"]]
                before = page["older"]
            assert len(seen) == len(set(seen)) == count
