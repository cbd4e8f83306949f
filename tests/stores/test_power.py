"""The state after a power cut, and controls that the harness would notice another one."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.examples import FULL, in_torture
from torture import power
from torture.disk import FOLDER, MODES, SECTOR, Disk, Event
from torture.power import Recording
from torture.recording import recorded
from torture.script import Script, Step
from torture.trials import fast_folder

from recollect.engine.index import keeper as indexing
from recollect.errors import RecollectError
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.stores import files
from recollect.stores.derived.fulltext import FullText
from recollect.stores.derived.vectors import VectorFile
from recollect.stores.sqlite import store as sqlite
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.checksums import connect
from recollect.stores.values import Durability
from recollect.stores.write_queue import Ticket

SEED = 1


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with fast_folder(tmp_path) as fast:
        yield fast


@pytest.fixture
def run(folder: Path) -> Path:
    """Where a run is recorded, beside which its cuts are made."""
    path = folder / "run"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    with fast_folder(tmp_path_factory.mktemp("full")) as fast:
        yield power.record(SEED, fast)


def problems(recording: Recording, folder: Path, count: int = 40, *, full: bool = True, **options: object) -> list[str]:
    cuts = power.cuts(recording, random.Random(SEED), folder, count, full=full, **options)  # type: ignore[arg-type]
    return [problem for _, problem in cuts if problem]


# What is promised


@pytest.mark.promise("power.acknowledged")
@pytest.mark.parametrize("seed", range(2 if FULL else 1))
@in_torture
def test_a_power_cut_loses_nothing_acknowledged_and_leaves_nothing_half(folder: Path, seed: int) -> None:
    done = list(power.trials(seed, folder))
    assert [trial for trial in done if trial.problem] == []
    assert {trial.where for trial in done} > {f"full: {mode}" for mode in MODES}


@pytest.mark.promise("power.creation")
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_power_cut_while_a_file_is_made_leaves_none_or_one_that_can_be_used(
    folder: Path, run: Path, durability: Durability
) -> None:
    """Cut after every single event, in every way, until the first commit is acknowledged."""
    recording = power.record(SEED, run, durability)
    acknowledges = next(
        place for place, event in enumerate(recording.events) if event.kind == "acknowledge" and event.at
    )
    disk, seen, wrong = Disk(), set(), []
    for place, event in enumerate(recording.events[: acknowledges + 2]):
        for mode in MODES:
            cut = disk.cut(random.Random(place), mode)
            acknowledged = disk.acknowledged if durability == "full" else 0
            if (key := (acknowledged, *cut.items())) not in seen:
                seen.add(key)
                if not FULL and len(seen) % 6:
                    continue
                with power.left_by(cut, folder) as path, power.quiet():
                    wrong.append(power.problem_in(path, recording.states, acknowledged))
        disk.take(event)
    assert disk.acknowledged
    assert set(wrong) == {""}


@pytest.mark.promise("power.normal")
def test_the_faster_mode_may_lose_the_newest_commits_and_nothing_else(folder: Path, run: Path) -> None:
    recording = power.record(SEED, run, "normal")
    assert recording.problem == ""
    # Whatever is there is the log's beginning, sound and whole ...
    assert problems(recording, folder, 60 if FULL else 20, full=False) == []
    # ... and by the measure of "full" some of what was acknowledged is not there, each time the newest.
    lost = problems(recording, folder, 60 if FULL else 20, modes=("lost",))
    assert lost
    assert all("were acknowledged" in problem for problem in lost)


@pytest.mark.promise("power.index")
def test_an_index_file_that_a_power_cut_tore_is_noticed_and_rebuilt(
    full: Recording, folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is there, and of its contents what the disk had got to."""
    segments = [
        (place, event)
        for place, event in enumerate(full.events)
        if event.kind == "name" and any(path.endswith(".seg") and number for path, number in event.names)
    ]
    assert segments
    place, named = segments[-1]
    disk = Disk()
    for event in full.events[: place + 1]:
        disk.take(event)
    left = disk.cut(random.Random(0), "kept")
    torn = next(path for path, _ in named.names if path.endswith(".seg"))
    whole = left[torn]
    assert whole is not None
    monkeypatch.setattr(logging.getLogger("recollect"), "level", logging.WARNING)
    for keep in (0, SECTOR, len(whole) // 2 // SECTOR * SECTOR, len(whole) - 1):
        caplog.clear()
        zeroed = whole[:keep] + bytes(len(whole) - keep)
        for contents in (zeroed, whole[:keep]):
            with power.left_by({**left, torn: contents}, folder) as path:
                assert power.problem_in(path, full.states, disk.acknowledged) == ""
        assert "recall rebuilds it" in caplog.text


@pytest.mark.promise("power.folder")
def test_the_folders_that_opening_makes_are_durable_before_anything_is_in_them(folder: Path) -> None:
    with recorded(folder) as recorder:
        files.make_folder(str(folder / "a"), lasting=True)
        files.make_folder(str(folder / "b"))
    disk = Disk()
    for event in recorder.events:
        disk.take(event)
    assert disk.cut(random.Random(0), "lost") == {"a": None}


# What was found by it


@pytest.mark.promise("power.grep")
def test_the_full_text_index_never_says_that_it_has_texts_which_a_power_cut_took(
    folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows a little and is closed, over and over, so that old and new pages of one file can be mixed."""

    def step(_rng: random.Random, number: int) -> Step:
        match number % 3:
            case 0:
                return Step("remember", lambda memory: memory.remember(f"fact {number} of the harbour"))
            case 1:
                return Step("grep", lambda memory: memory.grep("fact"))
        return Step("reopen", reopens=True)

    monkeypatch.setattr("torture.script._step", step)
    recording = power.record(SEED, run)
    for part in range(4 if FULL else 1):
        cuts = power.cuts(recording, random.Random(part), folder, 30)
        assert [problem for _, problem in cuts if problem] == []
    # Without its syncs, the same run is seen to fail.
    texts = {number for event in recording.events for path, number in event.names if "text.db" in path and number}
    syncs = [place for place in recording.syncs() if recording.events[place].file in texts]
    blind = recording.without(*syncs)
    found = (problem for part in range(8) for _, problem in power.cuts(blind, random.Random(part), folder, 30))
    assert any("recall or grep" in problem for problem in found)


def lost_writes(recording: Recording, folder: Path) -> list[str]:
    """Cut the power at each moment before there is a WAL, each time without one unsynced write; return the faults."""
    events = recording.events
    found = []
    for moment in range(
        1, next(at for at, event in enumerate(events) if any("-wal" in name for name, _ in event.names))
    ):
        for lost in (place for place in range(moment) if events[place].kind == "write"):
            later = events[lost + 1 : moment]
            if any(each.kind == "sync" and each.file == events[lost].file and each.at > lost for each in later):
                continue
            disk = Disk()
            for event in recording.without(lost).events[:moment]:
                disk.take(event)
            with power.left_by(disk.cut(random.Random(SEED), "kept"), folder) as path, power.quiet():
                problem = power.problem_in(path, recording.states, 0)
            found += [f"{moment} without {lost}: {problem}"] if problem else []
    return found


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_store_whose_creation_lost_a_write_is_created_again(folder: Path, run: Path, durability: Durability) -> None:
    assert lost_writes(power.record(SEED, run, durability), folder) == []


def test_without_a_second_sync_of_the_journal_a_lost_write_would_be_played_back(
    folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Connection(apsw.Connection):
        def execute(self, statements: str, *values: Any, **options: Any) -> apsw.Cursor:
            return super().execute(statements.replace("synchronous = FULL", "synchronous = NORMAL"), *values, **options)

    monkeypatch.setattr(apsw, "Connection", Connection)
    assert any("NotAStoreError" in problem for problem in lost_writes(power.record(SEED, run, "normal"), folder))


def test_the_files_beside_the_store_are_synced_at_their_checkpoints(folder: Path) -> None:
    text = FullText(str(folder), "uuid")._connect()
    vectors = VectorFile(str(folder), "uuid", PUBLIC_KEY)._connect()
    normal = 1
    assert (text.pragma("synchronous"), vectors.pragma("synchronous")) == (normal, normal)
    text.close()
    vectors.close()


# That the harness would see it


def test_with_syncing_switched_off_it_finds_losses(full: Recording, folder: Path) -> None:
    assert problems(full, folder) == []
    found = problems(full.without(*full.syncs()), folder)
    assert any("were acknowledged" in problem or "is gone" in problem for problem in found)


def test_a_store_that_does_not_sync_is_caught(folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sqlite.DURABILITY, "full", "OFF")
    assert problems(power.record(SEED, run), folder)


def test_the_faster_mode_passed_off_as_the_other_is_caught(
    folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sqlite.DURABILITY, "full", "NORMAL")
    assert problems(power.record(SEED, run), folder)


@pytest.mark.parametrize("what", ["a commit's", "a checkpoint's"] if FULL else ["a commit's"])
def test_a_single_sync_that_is_dropped_is_caught(full: Recording, folder: Path, what: str) -> None:
    """Each of a few of them, by itself, cut where it matters: before the next sync of any file."""
    # Most syncs of a checkpoint do not matter, as another repeats them; how threads met decides it: hence several runs.
    caught = Counter[bool]()
    for seed in range(SEED, SEED + 5):
        caught += _caught(full if seed == SEED else _recorded(seed, folder), folder, what)
        if caught[True] >= 3:
            return
    raise AssertionError(caught)


def _recorded(seed: int, folder: Path) -> Recording:
    with fast_folder(folder) as fast:
        return power.record(seed, fast)


def _caught(full: Recording, folder: Path, what: str) -> Counter[bool]:
    """How many syncs were caught when they were dropped, and how many were not."""
    database = next(number for event in full.events for path, number in event.names if path == power.NAME)
    ends = [place for place in full.syncs() if full.events[place].kind == "sync"]
    caught = Counter[bool]()
    for this, following in pairwise(ends):
        if not FULL and caught[True] >= 3:
            break
        of_database = full.events[this].file == database
        acknowledges = any(event.kind == "acknowledge" for event in full.events[this:following])
        if of_database if what == "a checkpoint's" else (acknowledges and not of_database):
            end = following if what == "a commit's" else len(full.events)
            dropped = Recording(full.without(this).events[:end], full.states)
            caught[_is_caught(dropped, this, folder)] += 1
    return caught


def _is_caught(recording: Recording, since: int, folder: Path) -> bool:
    rng = random.Random(since)
    last = len(recording.events)
    for moment in sorted({last, *(rng.randrange(since, last) for _ in range(6))}):
        disk = Disk()
        for event in recording.events[:moment]:
            disk.take(event)
        for mode in ("lost", "reordered"):
            with power.left_by(disk.cut(rng, mode), folder) as path, power.quiet():
                if power.problem_in(path, recording.states, disk.acknowledged):
                    return True
    return False


def test_a_savepoint_that_is_dropped_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that fails inside a shared transaction leaves there what it had written."""
    run = SqliteStore._run
    monkeypatch.setattr(SqliteStore, "_run", lambda self, sql: None if sql.endswith(" part") else run(self, sql))
    assert _wrong(folder)


def test_a_commit_in_place_of_a_rollback_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undo: Callable[..., None] = SqliteStore._undo

    def commit(self: SqliteStore, ticket: Ticket, error: BaseException) -> None:
        if ticket.has_lock and ticket.shared is not None and self._writer.in_transaction and not ticket.inside:
            self._writer.execute("COMMIT")
        undo(self, ticket, error)

    monkeypatch.setattr(SqliteStore, "_undo", commit)
    assert _wrong(folder)


def _wrong(folder: Path) -> bool:
    """Return whether one of a few runs is seen to go wrong."""
    for seed in range(4):
        place = folder / str(seed)
        place.mkdir()
        try:
            if power.record(seed, place).problem:
                return True
        except RecollectError:
            return True
    return False


def test_a_batch_that_is_there_in_part_is_caught(full: Recording, folder: Path) -> None:
    disk = Disk()
    for event in full.events:
        disk.take(event)
    with power.left_by(disk.cut(random.Random(0), "kept"), folder) as path:
        connection = connect(str(path))
        connection.execute("DELETE FROM heads WHERE number = (SELECT max(number) FROM heads)")
        connection.close()
        assert "do not have the root of the newest commit" in power.problem_in(path, full.states, 0)


def test_what_lies_beside_the_records_and_is_not_as_stored_is_caught(full: Recording, folder: Path) -> None:
    disk = Disk()
    for event in full.events:
        disk.take(event)
    last = full.states[-1]
    assert all(last.seqs)
    for at in range(1, len(last.seqs)):
        wrong = [each._replace(roots=(*each.roots[:at], "00" * 32, *each.roots[at + 1 :])) for each in full.states]
        with power.left_by(disk.cut(random.Random(0), "kept"), folder) as path:
            assert "not the beginning of the logs" in power.problem_in(path, wrong, 0)


# The disk itself


def test_a_disk_keeps_what_was_synced_and_of_the_rest_what_it_had_got_to() -> None:
    disk = Disk()
    events = [
        Event("name", names=(("folder", FOLDER),)),
        Event("name", names=(("folder/a", 1),)),
        Event("write", 1, 0, b"x" * 1000),
        Event("sync", 1, 3),
        Event("sync_folder", at=4),
        Event("sync_folder", at=5, path="folder"),
        Event("write", 1, 500, b"y" * 1000),
    ]
    for event in events:
        disk.take(event)
    old, new = b"x" * 1000, b"x" * 500 + b"y" * 1000
    assert disk.cut(random.Random(0), "lost") == {"folder": None, "folder/a": old}
    assert disk.cut(random.Random(0), "kept") == {"folder": None, "folder/a": new}
    torn = {disk.cut(random.Random(seed), "torn")["folder/a"] for seed in range(100)}
    assert {old, new} < torn
    for each in torn:
        assert each is not None
        for begin in (500, 512, 1024):  # each sector is the old one or the new one
            end = min(1500, begin - begin % SECTOR + SECTOR)
            assert each[begin:end].rstrip(b"\0") in (old[begin:end], new[begin:end], b"")


def test_a_sync_covers_what_was_written_before_it_began() -> None:
    disk = Disk()
    for event in (
        Event("name", names=(("a", 1),)),
        Event("sync_folder", at=1),
        Event("write", 1, 0, b"before"),
        Event("write", 1, 6, b" while"),
        Event("sync", 1, 3),
    ):
        disk.take(event)
    assert disk.cut(random.Random(0), "lost") == {"a": b"before"}


def test_a_file_without_a_durable_name_is_lost_and_a_renamed_one_has_one_name() -> None:
    disk = Disk()
    disk.take(Event("name", names=(("draft", 1),)))
    disk.take(Event("write", 1, 0, b"new"))
    disk.take(Event("sync", 1, 2))
    assert disk.cut(random.Random(0), "lost") == {}
    disk.take(Event("sync_folder", at=3))
    disk.take(Event("name", names=(("kept", 1), ("draft", None))))
    assert {tuple(disk.cut(random.Random(seed), "reordered")) for seed in range(20)} == {("draft",), ("kept",)}


def test_the_same_seed_has_the_same_steps_and_roots() -> None:
    assert Script(5).roots() == Script(5).roots() != Script(6).roots()


def test_a_run_makes_and_keeps_indexes_and_begins_its_log_again(full: Recording) -> None:
    """Its object must be there."""
    names = [path for event in full.events for path, number in event.names if number]
    assert any(path.endswith(".seg") for path in names)
    assert any(path.endswith("text.db") for path in names)
    assert names.count(f"{power.NAME}-wal") > 1
    assert indexing.KEPT_FROM == 100, "the harness puts back what it made small"
