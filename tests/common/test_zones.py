"""The time zone of a memory: its days, its dates without an offset, what it shows, and how a store gets it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw
import pytest
from tests.stores.test_files import changed

import recollect
from recollect import filters as f
from recollect.cli.app import app
from recollect.common import zones
from recollect.common.zones import name_of, rules_of, zone_of
from recollect.engine.index.document_of import rules as indexed
from recollect.engine.read.rules import digest
from recollect.errors import InvalidArgumentError, InvalidFilterError, InvalidRecordError, UnsupportedError
from recollect.importers.run import import_path
from recollect.memory import opening
from recollect.operations import Now, Recall, Zone
from recollect.stores.maintenance.rescue import rescue

WEST = "America/Los_Angeles"
EAST = "Asia/Tokyo"


def clock(text: str) -> Callable[[], datetime]:
    return lambda: datetime.fromisoformat(text)


def found(memory: recollect.Memory, question: str, **options: object) -> list[str]:
    return [hit.record.text for hit in memory.recall(question, **options)]  # type: ignore[arg-type]


class TestNames:
    @pytest.mark.parametrize(
        ("stated", "name"),
        [
            ("Europe/Berlin", "Europe/Berlin"),
            ("europe/berlin", "Europe/Berlin"),
            ("utc", "UTC"),
            ("Etc/UTC", "UTC"),
            ("Z", "UTC"),
            ("+05:30", "+05:30"),
            ("-0330", "-03:30"),
            ("+00:00", "UTC"),
            (UTC, "UTC"),
            (timezone(timedelta(hours=-8)), "-08:00"),
            (ZoneInfo("Asia/Tokyo"), "Asia/Tokyo"),
        ],
    )
    def test_a_zone_has_one_name(self, stated: object, name: str) -> None:
        assert name_of(stated) == name  # type: ignore[arg-type]
        assert name_of(zone_of(name)) == name

    @pytest.mark.parametrize(
        "wrong",
        ["", "Mars/Olympus", "CET-1CEST", "../zone1970", "+25:00", "+2", 2, None, timezone(timedelta(seconds=1))],
    )
    def test_what_is_no_zone_is_refused(self, wrong: object) -> None:
        with pytest.raises(InvalidArgumentError, match="time zone"):
            name_of(wrong)  # type: ignore[arg-type]

    def test_the_rules_are_those_of_the_package_and_not_of_the_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("zoneinfo.TZPATH", ())
        zone_of.cache_clear()
        assert datetime(2026, 7, 1, tzinfo=zone_of("Europe/Madrid")).utcoffset() == timedelta(hours=2)

    def test_other_rules_have_another_digest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = rules_of(zone_of(WEST))
        assert rules_of(zone_of(WEST)) == before != rules_of(zone_of(EAST))
        monkeypatch.setattr(zones, "_file", lambda key: Path(__file__))
        assert rules_of(zone_of(WEST)) != before


class TestStores:
    def test_it_is_written_when_the_store_is_made(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", zone=WEST) as memory:
            assert (
                memory.execute(Zone())
                == memory.namespace("b").execute(Zone())
                == memory.stats()["store"]["zone"]
                == WEST
            )
        with recollect.open(tmp_path / "a.db") as memory, recollect.open(tmp_path / "a.db", zone=WEST) as again:
            assert memory.execute(Zone()) == again.execute(Zone()) == WEST

    def test_another_one_is_refused_and_changes_nothing(self, tmp_path: Path) -> None:
        recollect.open(tmp_path / "a.db", zone=WEST).close()
        with pytest.raises(InvalidArgumentError, match=f"created with the time zone {WEST}"):
            recollect.open(tmp_path / "a.db", zone=EAST)
        with recollect.open(tmp_path / "a.db") as memory:
            assert memory.execute(Zone()) == WEST

    def test_a_wrong_one_makes_no_store(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match="time zone"):
            recollect.open(tmp_path / "a.db", zone="Mars/Olympus")
        assert not list(tmp_path.iterdir())

    def test_without_one_it_is_that_of_the_variable_or_the_machine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RECOLLECT_ZONE", EAST)
        with recollect.open(tmp_path / "a.db") as memory:
            assert memory.execute(Zone()) == EAST
        monkeypatch.setenv("RECOLLECT_ZONE", "Mars/Olympus")
        with pytest.raises(InvalidArgumentError, match="RECOLLECT_ZONE"):
            recollect.open(tmp_path / "b.db")
        assert not (tmp_path / "b.db").exists()
        monkeypatch.delenv("RECOLLECT_ZONE")
        monkeypatch.setattr(opening, "zone_of_machine", lambda: WEST)
        with recollect.open(tmp_path / "b.db") as memory, recollect.open(":memory:") as other:
            assert (memory.execute(Zone()), other.execute(Zone())) == (WEST, "UTC")

    def test_a_store_of_the_variable_is_no_mistake_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recollect.open(tmp_path / "a.db", zone=WEST).close()
        monkeypatch.setenv("RECOLLECT_ZONE", EAST)
        with recollect.open(tmp_path / "a.db") as memory:
            assert memory.execute(Zone()) == WEST

    @pytest.mark.parametrize(
        ("variable", "shown"),
        [
            ("America/New_York", "America/New_York"),
            ("CET-1CEST,M3.5.0,M10.5.0/3", "RECOLLECT_ZONE"),
            ("EST5EDT", "EST5EDT"),
            (":Asia/Tokyo", "Asia/Tokyo"),
            ("Foo/Bar", "'Foo/Bar' has no name"),
            ("", "UTC"),
            ("UTC", "UTC"),
        ],
    )
    def test_the_machine_is_asked_for_the_name_of_its_zone(self, variable: str, shown: str) -> None:
        script = "from recollect.common.zones import zone_of_machine; print(zone_of_machine())"
        run = subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "TZ": variable}, capture_output=True, text=True
        )
        assert shown in run.stdout + run.stderr

    def test_a_store_that_has_none_is_in_utc(self, tmp_path: Path) -> None:
        recollect.open(tmp_path / "a.db", zone=WEST).close()
        changed(tmp_path / "a.db", "DELETE FROM meta WHERE name = 'zone'")
        with recollect.open(tmp_path / "a.db") as memory:
            assert memory.execute(Zone()) == "UTC"
            assert memory.check() == []

    def test_a_zone_that_this_machine_does_not_know_is_said(self, tmp_path: Path) -> None:
        recollect.open(tmp_path / "a.db", zone=WEST).close()
        changed(tmp_path / "a.db", "UPDATE meta SET value = 'Moon/Tycho' WHERE name = 'zone'")
        with pytest.raises(UnsupportedError, match="upgrade tzdata"):
            recollect.open(tmp_path / "a.db")

    def test_copies_have_it(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", zone=WEST) as memory:
            memory.remember("tea")
            memory.backup(tmp_path / "b.db")
        rescue(tmp_path / "a.db", tmp_path / "c.db")
        for name in ("b.db", "c.db"):
            with recollect.open(tmp_path / name, read_only=True) as copy:
                assert copy.execute(Zone()) == WEST

    def test_a_checked_store_has_no_strange_entry(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", zone=EAST) as memory:
            memory.remember("tea")
            assert memory.check() == []
        rows = apsw.Connection(str(tmp_path / "a.db")).execute("SELECT value FROM meta WHERE name = 'zone'").fetchall()
        assert rows == [(EAST,)]


class TestDays:
    def test_what_was_said_in_the_evening_was_said_on_that_day(self, tmp_path: Path) -> None:
        said = {"2026-10-06T19:00:00-07:00": "I paid the plumber", "2026-10-07T08:00:00-07:00": "I ironed shirts"}
        for at, text in said.items():
            with recollect.open(tmp_path / "a.db", zone=WEST, clock=clock(at)) as memory:
                memory.remember(text)
        asked = "What did I do yesterday?"
        with recollect.open(tmp_path / "a.db", clock=clock("2026-10-07T17:00:00+00:00")) as memory:
            assert found(memory, asked, k=1) == ["I paid the plumber"]
            assert found(memory, "What did I do today?", k=1) == ["I ironed shirts"]
            assert found(memory, asked, k=1, reference="2026-10-07T23:30") == ["I paid the plumber"]
            assert found(memory, asked, k=1, reference="2026-10-08T06:00:00Z") == ["I paid the plumber"]

    def test_the_day_does_not_depend_on_the_offset_of_a_record(self) -> None:
        with recollect.open(":memory:", zone=EAST, clock=clock("2026-10-08T12:00:00+09:00")) as memory:
            memory.remember("I paid the plumber", time="2026-10-06T19:00:00-07:00")  # the 7th in Tokyo
            memory.remember("I ironed shirts", time="2026-10-06T12:00:00Z")
            assert found(memory, "What did I do yesterday?", k=1) == ["I paid the plumber"]
            assert found(memory, "What did I do on October 6?", k=1) == ["I ironed shirts"]

    def test_hours_are_hours_when_the_clocks_change(self) -> None:
        # On 1 November 2026 Los Angeles has the hour from 1:00 to 2:00 twice.
        with recollect.open(":memory:", zone=WEST, clock=clock("2026-11-01T03:30:00-08:00")) as memory:
            memory.remember("the alarm rang", time="2026-11-01T01:30:00-08:00")
            memory.remember("the alarm was tested", time="2026-11-01T01:30:00-07:00")
            assert found(memory, "what alarm was there two hours ago?", k=1) == ["the alarm rang"]
            assert found(memory, "what alarm was there three hours ago?", k=1) == ["the alarm was tested"]

    def test_a_day_is_whole_when_the_clocks_change(self) -> None:
        with recollect.open(":memory:", zone=WEST, clock=clock("2026-11-02T09:00:00-08:00")) as memory:
            memory.remember("late tea", time="2026-11-01T23:59")
            memory.remember("early tea", time="2026-11-01T00:00")
            memory.remember("tea of the 2nd", time="2026-11-02T00:00")
            assert set(found(memory, "which tea yesterday?", k=2)) == {"late tea", "early tea"}

    def test_the_machine_does_not_matter(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db", zone="Pacific/Auckland") as memory:
            for day in range(1, 28):
                for hour in (1, 11, 23):
                    memory.remember(f"tea {day} {hour}", time=f"2026-03-{day:02}T{hour:02}:00:00Z")
        script = """if True:
            import sys, recollect
            with recollect.open(sys.argv[1], read_only=True) as memory:
                for question in ("tea on 5 March", "tea yesterday", "tea last week"):
                    hits = memory.recall(question, reference="2026-03-20T09:00")
                    print([(hit.record.text, hit.score) for hit in hits])
        """
        answers = {
            subprocess.run(
                [sys.executable, "-c", script, tmp_path / "a.db"],
                env={**os.environ, "TZ": zone, "PYTHONTZPATH": path},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            for zone, path in (("UTC", "/usr/share/zoneinfo"), (WEST, ""), ("Asia/Kolkata", "/nowhere"))
        }
        assert len(answers) == 1
        assert "tea 4 23" in answers.pop()  # already the 5th in Auckland

    def test_a_receipt_holds_on_the_store_of_a_zone(self) -> None:
        with recollect.open(":memory:", zone=WEST) as memory:
            memory.remember("tea", time="2026-10-06T23:00")
            receipt = memory.recall("tea on October 6", reference="2026-10-07").receipt
            assert memory.replay(receipt).status == "same"

    def test_a_past_moment_has_the_days_of_the_zone(self) -> None:
        times = iter(["2026-10-06T19:00:00-07:00"] * 2 + ["2026-10-07T17:00:00+00:00"] * 50)
        with recollect.open(":memory:", zone=WEST, clock=lambda: datetime.fromisoformat(next(times))) as memory:
            memory.remember("I paid the plumber")
            memory.remember("I ironed shirts", time="2026-10-05T19:00:00-07:00")
            memory.remember("marker", time="2026-10-01")
            past = memory.at(memory.seq)
            assert past.execute(Zone()) == WEST
            assert found(past, "What did I do yesterday?", k=1) == ["I paid the plumber"]
            assert past.execute(Now()).utcoffset() == timedelta(hours=-7)


class TestTimesWithoutAnOffset:
    """A date, and a text without an offset, are of the memory's zone wherever they are passed."""

    NOON = datetime.fromisoformat("2026-10-06T12:00:00+09:00")

    @pytest.fixture
    def memory(self) -> recollect.Memory:
        return recollect.open(":memory:", zone=EAST, clock=clock("2026-10-08T12:00:00+09:00"))

    def test_of_records(self, memory: recollect.Memory) -> None:
        made = memory.remember("tea", time="2026-10-06T12:00", expires=date(2027, 1, 1))
        assert (made.time, made.expires) == (self.NOON, datetime.fromisoformat("2027-01-01T00:00:00+09:00"))
        memory.remember_all([{"id": "many", "content": "cake", "time": "2026-10-06T12:00"}])
        memory.update("many", valid_from="2026-10-06T12:00")
        many = memory.get("many")
        assert many is not None
        assert many.time == many.valid_from == self.NOON
        new = memory.supersede("many", "bread", at="2026-10-07")
        old = memory.get("many")
        assert old is not None
        assert new.valid_from == old.valid_to == datetime.fromisoformat("2026-10-07T00:00:00+09:00")
        with memory.batch() as batch:
            assert batch.remember("soup", time="2026-10-06T12:00").time == self.NOON

    def test_of_messages(self, memory: recollect.Memory) -> None:
        message = {"role": "user", "content": "hi", "timestamp": "2026-10-06T12:00"}
        memory.add_messages([message, {"role": "assistant", "content": "hello"}], conversation="c")
        memory.add_messages([{"role": "user", "content": "hi"}], conversation="d", time="2026-10-06T12:00")
        first, second, third = memory.find(order="position")
        assert self.NOON in (first.time, second.time)
        assert [each.time for each in memory.find(f.conversation("d"))] == [self.NOON]
        assert third is not None

    def test_of_filters(self, memory: recollect.Memory) -> None:
        memory.remember("early", time="2026-10-05T15:30:00Z")  # 0:30 on the 6th in Tokyo
        memory.remember("late", time="2026-10-06T14:30:00Z")
        memory.remember("next", time="2026-10-06T15:00:00Z", valid_from="2026-10-07")
        of_day = {"early", "late"}
        for where in (
            f.between("2026-10-06", "2026-10-06"),
            f.between(date(2026, 10, 6), date(2026, 10, 6)),
            f.before("2026-10-07") & ~f.before("2026-10-06"),
            f.any_of(f.between("2026-10-06", "2026-10-06"), f.nothing()),
            "time >= 2026-10-06 and time < 2026-10-07",
        ):
            assert {each.text for each in memory.find(where)} == of_day
            assert memory.count(where) == 2
            assert {hit.record.text for hit in memory.recall("early late next", where=where)} == of_day
            assert {hit.text for hit in memory.grep("t", where=where)} <= of_day
        assert memory.find("valid_at=2026-10-06 and valid_from") == []
        assert [each.text for each in memory.find(f.valid_at("2026-10-07") & f.has("valid_from"))] == ["next"]
        assert "late" not in memory.context("early late next", where=f.before("2026-10-06T12:00"))
        with memory.batch() as batch:
            assert batch.count(f.between("2026-10-06", "2026-10-06")) == 2
            assert batch.forget_where("time < 2026-10-07") == 2

    def test_of_filters_outside_a_memory(self) -> None:
        record = recollect.Record(id="a", content="tea", time="2026-10-06T00:00:00Z")  # type: ignore[arg-type]
        assert f.between("2026-10-06", "2026-10-06").matches(record)
        assert not f.after("2026-10-06").matches(record)
        assert f.valid_at("2026-10-06").matches(record)

    def test_of_operations_that_travel(self, memory: recollect.Memory) -> None:
        asked = Recall(question="tea", reference="2026-10-06T12:00", where=f.after("2026-10-06"))  # type: ignore[arg-type]
        again = recollect.operations.from_json(asked.to_json())
        assert again == asked == pickle.loads(pickle.dumps(asked))
        assert asked.to_json()["reference"] == "2026-10-06T12:00:00"
        assert memory.execute(again).reference == self.NOON

    def test_of_moments(self, memory: recollect.Memory) -> None:
        memory.remember("tea")  # at 12:00 on the 8th
        assert memory.diff(0, datetime.fromisoformat("2026-10-08T12:00:00+09:00")).added
        assert memory.recall("tea", reference="2026-10-06T12:00").reference == self.NOON

    def test_a_naive_datetime_is_refused_everywhere(self, memory: recollect.Memory) -> None:
        naive = datetime(2026, 10, 6)
        with pytest.raises(InvalidRecordError, match="naive"):
            memory.remember("tea", time=naive)
        with pytest.raises(InvalidArgumentError, match="naive"):
            memory.recall("tea", reference=naive)
        with pytest.raises(InvalidFilterError, match="naive"):
            f.after(naive)

    def test_a_time_that_the_clocks_leave_out_is_moved_and_one_that_is_there_twice_is_the_first(self) -> None:
        with recollect.open(":memory:", zone=WEST) as memory:
            gap = memory.remember("gap", time="2026-03-08T02:30")
            twice = memory.remember("twice", time="2026-11-01T01:30")
            assert gap.time == datetime(2026, 3, 8, 10, 30, tzinfo=UTC)
            assert twice.time == datetime(2026, 11, 1, 8, 30, tzinfo=UTC)

    def test_the_first_and_the_last_hours_of_the_calendar_are_times_in_every_zone(self) -> None:
        ends = ("0002-01-01T00:00:00+00:00", "9998-12-31T23:59:59+00:00")
        for end, zone in ((end, zone) for end in ends for zone in ("+14:00", "-12:00", WEST)):
            with recollect.open(":memory:", zone=zone, clock=clock(end)) as memory:
                memory.remember("tea", time=end)
                assert found(memory, "which tea two hours ago?", reference=end) == ["tea"]

    def test_a_message_shows_a_time_as_it_was_written(self) -> None:
        with (
            recollect.open(":memory:", zone="+14:00") as memory,
            pytest.raises(InvalidFilterError, match="'0002-01-01T00:00:00'"),
        ):
            memory.find("time>0002-01-01")

    def test_years_that_no_record_has_are_refused(self, memory: recollect.Memory) -> None:
        for wrong in ("0001-01-01", "9999-12-31"):
            with pytest.raises(InvalidRecordError, match="years 2 to 9998"):
                memory.remember("tea", time=wrong)
            with pytest.raises(InvalidFilterError, match="years 2 to 9998"):
                memory.find(f.after(wrong))


class TestWhatIsShown:
    def test_a_context_has_one_zone(self) -> None:
        with recollect.open(":memory:", zone=WEST) as memory:
            turns = ("2026-10-07T02:00:00+00:00", "2026-10-07T04:30:00+02:00")
            for number, time in enumerate(turns):
                memory.remember(f"tea {number}", conversation="c", session="s", role="user", time=time)
            memory.remember("tea is hot", time="2026-10-07T01:15:00+00:00")
            for style in ("markdown", "xml", "messages"):
                shown = memory.context("tea", style=style)
                assert "2026-10-06 19:00" in shown
                assert "19:30" in shown
                assert "2026-10-06 18:15" in shown
                assert "2026-10-07" not in shown

    def test_now_and_new_records_are_in_it(self) -> None:
        with recollect.open(":memory:", zone=EAST, clock=clock("2026-10-07T20:00:00+00:00")) as memory:
            assert memory.execute(Now()).isoformat() == "2026-10-08T05:00:00+09:00"
            record = memory.remember("tea")
            assert record.time is not None
            assert record.time.isoformat() == "2026-10-08T05:00:00+09:00"

    def test_an_import_says_which_one_it_used(self, tmp_path: Path) -> None:
        source = tmp_path / "notes.jsonl"
        source.write_text('{"content": "tea", "time": "2026-10-06T12:00"}\n')
        with recollect.open(":memory:", zone=EAST) as memory:
            report = import_path(memory, "jsonl", source)
            assert (report.zone_assumed, report.to_json()["zone_assumed"]) == (EAST, EAST)
            assert [each.time for each in memory.find()] == [datetime.fromisoformat("2026-10-06T12:00:00+09:00")]
        with recollect.open(":memory:", zone=EAST) as memory:
            assert import_path(memory, "jsonl", source, zone=zone_of(WEST)).zone_assumed == WEST

    def test_commands_show_it_and_read_times_in_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("RECOLLECT_ZONE", EAST)
        monkeypatch.setenv("COLUMNS", "140")

        def run(*arguments: str) -> str:
            with pytest.raises(SystemExit) as ended:
                app(["--db", str(tmp_path / "a.db"), *arguments])
            assert ended.value.code == 0
            return capsys.readouterr().out

        run("remember", "tea", "--id", "tea", "--time", "2026-10-06T12:00")
        monkeypatch.setenv("RECOLLECT_ZONE", "UTC")
        run("remember", "cake", "--id", "cake", "--time", "2026-10-06T23:00:00-02:00")
        shown = run("list")
        assert "2026-10-06 12:00" in shown
        assert "2026-10-07 10:00" in shown
        assert "2026-10-07 10:00" in run("recall", "what cake yesterday?", "--reference", "2026-10-08T09:00")
        assert "cake" not in run("list", "--where", "time < 2026-10-07T10:00")
        assert "tea" in run("recall", "tea yesterday", "--reference", "2026-10-06T20:00", "--tz", "UTC")
        assert "2026-10-07T10:00:00+09:00" in run("show", "cake")


def test_indexes_and_receipts_of_other_rules_of_a_zone_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(name: str) -> tuple[str, str]:
        return indexed(False, zone_of(name)), digest(zone_of(name))

    before = of(WEST)
    assert len({*before, *of(EAST), *of("UTC")}) == 6
    assert of(WEST) == before
    monkeypatch.setattr(zones, "_file", lambda key: Path(__file__))  # as after an upgrade of tzdata
    assert not {*before} & {*of(WEST)}
    assert of("UTC") == (indexed(False, UTC), digest())
