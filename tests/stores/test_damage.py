"""Damage: what is corrupt is named, nothing is answered wrongly, and what is intact is saved."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from click.testing import CliRunner
from tests.examples import FULL, some, spread
from tests.exports import exported
from tests.stores.rescues import records_by_namespace, roots_are_same
from torture import damage

import recollect
from recollect.cli.app import app
from recollect.errors import (
    DamagedStoreError,
    InvalidArgumentError,
    NotAStoreError,
    RecollectError,
    StoreError,
    StoreMissingError,
    StoreReplacedError,
    WrongKeyError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import EMPTY
from recollect.operations import GetQuota
from recollect.stores.sqlite.header import check_size
from recollect.stores.sqlite.identity import FileIdentity
from recollect.stores.sqlite.pages import TABLE_LEAF, FilePages
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite.view import SqliteView
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base.checksums import connect
from recollect.testing import memory_on


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    """The damage test on a store of a tenth of the size."""
    before, damage.RECORDS = damage.RECORDS, 1000
    damage.whole.cache_clear()
    yield
    damage.RECORDS = before
    damage.whole.cache_clear()


@pytest.mark.promise("damage.trials")
@pytest.mark.parametrize("seed", range(28) if FULL else [14])
def test_a_damaged_store_is_described_read_and_rescued_rightly(tmp_path: Path, small: None, seed: int) -> None:
    assert [trial.problem for trial in damage.trials(seed, tmp_path)] == [""]


def test_the_damage_test_corrupts_in_every_way(tmp_path: Path, small: None) -> None:
    done = set()
    for seed in range(28):
        folder = tmp_path / str(seed)
        folder.mkdir()
        done.add(damage.hurt_copy(seed, folder)[1])
    assert done == set(damage.HURTS)


def test_the_damage_test_notices_a_blind_check_a_wrong_answer_and_a_careless_rescue(
    tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, corrupt, _ = damage.hurt_copy(0, tmp_path)
    right = damage.whole().behind
    assert damage.wrong({**right, "count": 7, "find": DamagedStoreError("x")}, right) == ["count"]
    assert damage.wrong({**right, "get": KeyError("x")}, right) == ["get"]
    late = damage.whole().answers
    assert damage.log_problem(right) == damage.log_problem(late) == ""
    assert "not that of the newest commit" in damage.log_problem({**late, "root": right["root"]})
    with monkeypatch.context() as patched:
        patched.setattr("recollect.memory.Memory.check", lambda memory: [])
        patched.setattr(damage, "answers", lambda memory: {**right, "count": StoreError("x")})
        patched.setattr(damage, "_rescue_problem", lambda *_: "")
        patched.setattr(damage, "_open", lambda path: recollect.open(":memory:"))
        assert "the check found nothing" in damage.problem_in(path, tmp_path, corrupt)
    with monkeypatch.context() as patched:
        patched.setattr("recollect.stores.maintenance.rescue._proved", lambda saved, _: saved.live.clear() or [])
        assert "was not saved" in damage.problem_in(path, tmp_path, corrupt)


# Copies that broke off


class Live(NamedTuple):
    """A store with newer pages in its WAL, as files: the file has pages that the WAL has, too, and others."""

    file: bytes
    wal: bytes
    records: int


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Live:
    path = tmp_path_factory.mktemp("live") / "a.db"
    with recollect.open(path, embedder="none") as memory:
        memory.remember_all([f"note {number}" for number in range(400)])
        with closing(connect(str(path))) as connection:
            connection.execute("SELECT 1 FROM meta").fetchall()
            connection.wal_checkpoint()
        memory.remember_all([f"late {number}" for number in range(150)])
        return Live(path.read_bytes(), Path(f"{path}-wal").read_bytes(), memory.count())


def put(path: Path, file: bytes, wal: bytes) -> Path:
    path.write_bytes(file)
    Path(f"{path}-wal").write_bytes(wal)
    return path


@pytest.mark.promise("damage.copies")
def test_a_file_that_was_cut_anywhere_beside_its_wal_is_whole_or_damaged(tmp_path: Path, live: Live) -> None:
    pages = len(live.file) // 4096
    cuts = [4096 * page + into for page in range(pages) for into in (0, 1, 3600, 4095)]
    opened = []
    for cut in cuts[1:]:
        path = put(tmp_path / "cut.db", live.file[:cut], live.wal)
        try:
            with recollect.open(path, embedder="none") as memory:
                assert (memory.count(), len(memory.find())) == (live.records, live.records)
                opened.append(cut)
        except (DamagedStoreError, NotAStoreError) as error:
            assert "cut" in str(error) or cut < 4096
            # Nothing was carried from the WAL into the file: that would give it its whole length again.
            assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == (live.file[:cut], live.wal)
        for each in tmp_path.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    assert len(opened) < len(cuts) / 2


@pytest.mark.promise("damage.copies")
def test_the_file_of_a_later_moment_beside_an_older_wal_is_damaged(tmp_path: Path, live: Live) -> None:
    path = put(tmp_path / "a.db", live.file, live.wal)
    with recollect.open(path, embedder="none") as memory:
        memory.remember_all([f"later {number}" for number in range(400)])
    later = path.read_bytes()
    with pytest.raises(DamagedStoreError, match="fewer pages"):
        recollect.open(put(tmp_path / "b.db", later, live.wal))
    # All pages in the WAL: nothing of the file is read, and a store may shrink where it was rewritten.
    assert len(later) > len(live.file)
    check_size(str(put(tmp_path / "c.db", live.file, live.wal)), live.file[:100], len(live.file) // 4096)


@pytest.mark.promise("damage.copies")
def test_a_file_that_is_cut_while_it_is_open_is_damaged_at_the_next_read_and_write(tmp_path: Path) -> None:
    memory = recollect.open(tmp_path / "a.db", embedder="none")
    memory.remember_all([f"note {number}" for number in range(400)])
    memory.close()
    memory = recollect.open(tmp_path / "a.db", embedder="none")
    assert memory.count() == 400
    size = (tmp_path / "a.db").stat().st_size
    os.truncate(tmp_path / "a.db", size - 100)
    for call in (memory.count, lambda: memory.remember("x"), memory.find):
        with pytest.raises(DamagedStoreError, match="was cut"):
            call()
    memory.close()


@pytest.mark.promise("damage.copies")
def test_a_store_that_is_refused_keeps_what_is_only_in_its_wal_there(tmp_path: Path, live: Live) -> None:
    path = put(tmp_path / "a.db", live.file, live.wal)
    with pytest.raises(WrongKeyError):
        recollect.open(path, embedder="none", key=b"sixteen bytes or more")
    assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == (live.file, live.wal)
    recollect.open(path, embedder="none").close()
    assert not Path(f"{path}-wal").exists()


@pytest.mark.promise("damage.copies")
def test_a_smaller_store_that_takes_the_place_of_an_open_one_keeps_all_it_has(tmp_path: Path) -> None:
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    with recollect.open(other, embedder="none") as memory:
        memory.remember_all([f"small {number}" for number in range(30)])
        root = memory.root
    memory = recollect.open(path, embedder="none")
    memory.remember_all([f"note {number}" for number in range(400)])
    with closing(connect(str(path))) as connection:
        connection.execute("SELECT 1 FROM meta").fetchall()
        connection.wal_checkpoint()
    memory.remember_all([f"only in the WAL {number}" for number in range(400)])
    assert memory.count() == 800
    os.link(path, tmp_path / "old.db")
    os.replace(other, path)
    with pytest.raises(StoreReplacedError):
        memory.count()
    memory.close()
    for _ in range(2):
        with recollect.open(path, embedder="none") as memory:
            assert (memory.root, memory.count(), memory.check()) == (root, 30, [])
    with recollect.open(tmp_path / "old.db", embedder="none") as memory:
        assert (memory.count(), memory.check()) == (800, [])


# Every byte


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A small store with everything in it, in one file."""
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember_all([{"content": f"fact {number}", "id": f"r{number}", "user": "ana"} for number in range(30)])
        with memory.batch(actor="somebody", reason="a reason") as batch:
            batch.update("r1", importance=0.5)
            batch.forget("r2")
        memory.remember("turn", kind="conversation", conversation="c", id="turn", entity="e")
        memory.remember("long " * 3000, id="long", expires=datetime(2999, 1, 1, tzinfo=UTC))
        memory.namespace("other").remember("of another", id="r1")
    return path


def found(path: Path) -> list[str]:
    """Return the findings of the check, or the error that came before it."""
    try:
        with recollect.open(path) as memory:
            return memory.check()
    except StoreError as error:
        return [str(error)]


@pytest.mark.promise("damage.every-byte")
def test_any_changed_byte_is_found(store: Path) -> None:
    whole = store.read_bytes()
    assert found(store) == []
    rng = random.Random(1)
    places = [*range(16, 100, 3), *(rng.randrange(len(whole)) for _ in range(some(300)))]
    for place in places:
        data = bytearray(whole)
        data[place] ^= rng.randrange(1, 256)
        store.write_bytes(data)
        assert found(store) != [], place
        store.with_name("a.db-wal").unlink(missing_ok=True)
        store.with_name("a.db-shm").unlink(missing_ok=True)


TAMPERING = {
    "a head's copied field": ("UPDATE heads SET user = 'eve' WHERE id = 'r3'", "record 'r3' has another user"),
    "a head's version": ("UPDATE heads SET version = 1 WHERE id = 'r3'", "names a version of record 'r0'"),
    "a head": ("DELETE FROM heads WHERE id = 'r3'", "the head of record 'r3' is missing"),
    "a head of what was forgotten": (
        "INSERT INTO heads SELECT 999, branch, 'r2', version, kind, role, speaker, user, agent, conversation, session, "
        "position, entity, source, time, importance, expires FROM heads WHERE id = 'r3'",
        "the head of record 'r2' differs from the log",
    ),
    "a payload": ("UPDATE versions SET payload = CAST('x' AS BLOB) WHERE number = 3", "version 3 of record"),
    "a payload that is gone": ("UPDATE versions SET payload = NULL WHERE number = 3", "has lost its payload"),
    "a version's hash": ("UPDATE versions SET hash = zeroblob(32) WHERE number = 3", "named by no commit"),
    "a version": ("DELETE FROM versions WHERE number = 2", "versions that commits name are missing"),
    "a cause": ("UPDATE changes SET cause = 'whim' WHERE id = 'r2'", "has the unknown cause 'whim'"),
    "a change": ("DELETE FROM changes WHERE seq = 2 AND place = 0", "commit 2 lacks a change"),
    "a change's version": ("UPDATE changes SET after = zeroblob(32) WHERE seq = 3", "differs from the log"),
    "a change's version before": (
        "UPDATE changes SET before = NULL WHERE id = 'r2'",
        "does not start from the version",
    ),
    "a change without its commit": (
        "DELETE FROM commits WHERE branch = 1 AND seq = 3",
        "to commit 3, which is missing",
    ),
    "a commit's time": ("UPDATE commits SET time = 0 WHERE branch = 1 AND seq = 3", "not later than the previous one"),
    "a commit's root": ("UPDATE commits SET root = zeroblob(32) WHERE seq = 2", "which has another hash than its root"),
    "a commit's actor": ("UPDATE commits SET actor = 'someone' WHERE seq = 2", "does not match its entry"),
    "a commit's entry": ("UPDATE commits SET entry = randomblob(32) WHERE seq = 2", "2 does not match its entry"),
    "what a commit replaced": ("UPDATE commits SET replaced = x'01' WHERE seq = 3", "the pages that it has replaced"),
    "a root's pages": ("UPDATE commits SET page = NULL WHERE seq = 2", "has lost the pages of its root"),
    "a page that belongs to no root": ("INSERT INTO nodes VALUES (100000, zeroblob(4))", "belongs to no root"),
    "a removed payload": ("INSERT INTO removed_payloads VALUES (2, 'erased', 'r1')", "has a payload although"),
    "a snapshot's commit": ("INSERT INTO snapshots VALUES (1, 1, 'a', 99, 0)", "is of commit 99, which is missing"),
    "a branch's base": ("UPDATE branches SET base_branch = 7, base_seq = 1", "continues branch 7, which is missing"),
    "a commit's parents": ("UPDATE commits SET parents = '{}' WHERE seq = 2", "parents"),
    "a page of the trie": ("UPDATE nodes SET body = zeroblob(4) WHERE place = 1", "page 1, which has another hash"),
    "a branch": ("UPDATE branches SET namespace = 9 WHERE number = 2", "namespace 9, which is missing"),
    "a name in meta": ("UPDATE meta SET name = 'feature' WHERE name = 'probe' OR name = 'uuid'", "lacks"),
    "the header's format": ("PRAGMA user_version = 9", "the header says format 9"),
    "an index": ("DROP INDEX heads_by_user", "heads_by_user is missing"),
    "a table that nobody made": ("CREATE TABLE more (x)", "more does not belong to a store"),
}


@pytest.mark.promise("damage.rows-agree")
@pytest.mark.parametrize("what", TAMPERING)
def test_a_change_in_the_tables_is_found_and_named(store: Path, what: str) -> None:
    statement, expected = TAMPERING[what]
    connection = connect(str(store))  # keeps the checksums, so that these do not tell it
    connection.execute(statement).fetchall()
    connection.close()
    problems = found(store)
    assert any(expected in problem for problem in problems), problems


def leaf_holding(path: Path, text: bytes) -> int:
    pages = FilePages(path.read_bytes())
    return next(
        each
        for each in range(1, pages.count + 1)
        if pages.kind(each) == TABLE_LEAF and any(text in bytes(str(row.values), "utf-8") for row in pages.rows(each))
    )


def corrupt(path: Path, place: int, with_bytes: bytes | None = None) -> None:
    data = bytearray(path.read_bytes())
    if with_bytes is None:
        data[place] ^= 0xFF
    else:
        data[place : place + len(with_bytes)] = with_bytes
    path.write_bytes(data)


def corrupt_text(path: Path, text: bytes) -> None:
    """Change a text wherever it stands, also where SQLite has left it behind."""
    path.write_bytes(path.read_bytes().replace(text, text[:-1] + b"\xff"))


@pytest.mark.promise("damage.named")
def test_what_cannot_be_read_is_named_with_its_namespace_and_id(store: Path) -> None:
    corrupt_text(store, b"fact 17")
    problems = found(store)
    assert any("of versions, does not match its checksum" in problem for problem in problems)
    assert any("namespace 'default', record 'r17': its version does not match" in problem for problem in problems)


@pytest.mark.promise("damage.no-wrong-answer")
def test_a_page_of_zeros_in_the_middle_of_a_long_text_is_no_answer(store: Path) -> None:
    """Its checksum would be right: that of zeros is zero."""
    pages = FilePages(store.read_bytes())
    leaf = leaf_holding(store, b"long long long")
    first = max(pages.overflows(leaf), key=lambda each: len(list(pages.chain(each))))
    *_, last = pages.chain(first)
    corrupt(store, (last - 1) * 4096, bytes(4096))
    with recollect.open(store) as memory:
        assert memory.get("r1") is not None
        with pytest.raises(DamagedStoreError, match="does not match its hash"):
            memory.get("long")
        with pytest.raises(DamagedStoreError):
            memory.find()
        assert memory.check() != []


def test_without_checksums_payloads_are_hashed_when_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "available", lambda: False)
    path = tmp_path / "plain.db"
    with recollect.open(path) as memory:
        memory.remember("stripes", id="zebra", user="ana")
        assert memory.stats()["store"]["checksums"] is False
    data = path.read_bytes()
    path.write_bytes(data.replace(b"stripes", b"strides"))
    with recollect.open(path) as memory:
        for call in (
            lambda: memory.get("zebra"),
            memory.find,
            lambda: memory.recall("stripes"),
            lambda: exported(memory),
        ):
            with pytest.raises(DamagedStoreError, match="does not match its hash"):
                call()
        assert "does not match its hash" in memory.check()[0]


def test_a_store_with_checksums_is_only_read_where_they_cannot_be_kept(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksums, "available", lambda: False)
    with recollect.open(store) as memory:
        assert memory.get("r1") is not None
        with pytest.raises(RecollectError, match="checksums, which this SQLite cannot write"):
            memory.remember("more")


def test_a_custom_file_system_has_no_checksums(tmp_path: Path) -> None:
    before = apsw.vfs_names()[0]
    own = apsw.VFS("of my own", base="", makedefault=True)
    try:
        with recollect.open(tmp_path / "own.db") as memory:
            memory.remember("x")
            assert memory.stats()["store"]["checksums"] is False
            assert memory.check() == []
    finally:
        apsw.set_default_vfs(before)
        own.unregister()
    with recollect.open(tmp_path / "own.db") as memory:
        memory.remember("y")
        assert memory.check() == []


# Rescue


@pytest.mark.promise("damage.rescued")
def test_the_rescue_saves_every_record_that_is_whole_and_lists_the_rest(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.update("r5", content="fact 5, put right")
        stored = {record.id: record.to_bytes() for record in memory.find()}
    corrupt_text(store, b"fact 5, put right")
    before = store.read_bytes()
    report = recollect.rescue(store, tmp_path / "new.db")
    assert store.read_bytes() == before
    assert [(each.namespace, each.name) for each in report.lost] == [("default", "r5")]
    assert "does not match its hash" in report.lost[0].reason
    assert "its other readable versions are" in report.lost[0].reason  # the one before it
    assert roots_are_same(report) == {"default": False, "other": True}
    with recollect.open(tmp_path / "new.db") as memory:
        assert {record.id: record.to_bytes() for record in memory.find()} == {
            each: payload for each, payload in stored.items() if each != "r5"
        }
        assert memory.check() == []
        log = memory.changes()
        assert [commit.actor for commit in log[1:2]] == ["somebody"]  # the history up to what is corrupt
        assert log[-1].actor == "recollect rescue"
        assert memory.namespace("other").count() == 1


def test_the_rescue_copies_quotas_and_says_which_history_it_cannot_keep(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.set_quota(records=100, when_full="least recent")
        memory.namespace("other").set_quota(bytes=5_000)
        commits = memory.seq
        memory.update("r5", content="fact 5, put right")
        for number in range(5):
            memory.remember(f"later fact {number}")
    corrupt_text(store, b"fact 5, put right")
    report = recollect.rescue(store, tmp_path / "new.db")
    assert report.settings == ("quota/default", "quota/other")
    saved = report.branches[Branch("default")]
    assert (saved.commits, saved.without_history, saved.same_root) == (commits, 6, False)
    assert [each.what for each in report.lost] == ["record"]
    with recollect.open(tmp_path / "new.db") as memory:
        assert memory.seq == commits + 1
        quota = memory.execute(GetQuota())
        assert quota is not None
        assert (quota.records, quota.when_full) == (100, "least recent")
        other = memory.namespace("other").execute(GetQuota())
        assert other is not None
        assert other.bytes == 5_000


def test_the_rescue_leaves_out_a_quota_that_cannot_be_read_and_the_store_can_be_written(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "a.db")) as store:
        memory_on(store).remember("kept")
        with store.write(Branch("default")) as transaction:
            transaction.set_setting("quota/default", "no quota")
            transaction.set_setting("probe", "x")
    report = recollect.rescue(tmp_path / "a.db", tmp_path / "new.db")
    assert (report.settings, [each.what for each in report.lost]) == ((), ["settings"])
    with recollect.open(tmp_path / "new.db") as memory:
        assert memory.remember("and more")
        assert memory.count() == 2


def test_the_rescue_names_settings_that_may_be_lost(store: Path, tmp_path: Path) -> None:
    with recollect.open(store) as memory:
        memory.set_quota(records=100)
    corrupt_text(store, b"setting/quota/default")
    report = recollect.rescue(store, tmp_path / "new.db")
    assert [each.what for each in report.lost] == ["settings"]
    with recollect.open(tmp_path / "new.db") as memory:
        assert memory.execute(GetQuota()) is None
        assert memory.count() == report.branches[Branch("default")].records


def test_the_rescue_of_a_whole_store_is_the_same_store_with_its_history(store: Path, tmp_path: Path) -> None:
    report = recollect.rescue(store, tmp_path / "new.db")
    assert (report.lost, set(roots_are_same(report).values())) == ((), {True})
    with recollect.open(store) as old, recollect.open(tmp_path / "new.db") as new:
        assert [each.to_json() for each in new.changes()] == [each.to_json() for each in old.changes()]
        assert new.root == old.root
        assert new.check() == []


def test_the_rescue_takes_what_is_only_in_the_log(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("in the log", id="late")
        report = recollect.rescue(tmp_path / "a.db", tmp_path / "new.db")
    assert records_by_namespace(report) == {"default": 1}


def test_the_rescue_through_a_link_takes_what_is_only_in_the_log(store: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.db").symlink_to(store)
    with recollect.open(store) as memory:
        memory.remember("in the log", id="late")
        recollect.rescue(tmp_path / "elsewhere" / "link.db", tmp_path / "new.db")
        with recollect.open(tmp_path / "new.db") as new:
            assert new.root == memory.root


@pytest.mark.parametrize("page", [1, 2, 3, 5, 7, 8, 10, 12])
def test_the_rescue_finds_records_without_the_first_page_of_any_table(store: Path, tmp_path: Path, page: int) -> None:
    corrupt(store, (page - 1) * 4096, bytes(4096))
    report = recollect.rescue(store, tmp_path / "new.db")
    assert report.records + len([each for each in report.lost if each.what == "record"]) >= 32
    assert found(tmp_path / "new.db") == []


def test_the_rescue_refuses_what_it_must_not_do(store: Path, tmp_path: Path) -> None:
    (tmp_path / "there.db").write_bytes(b"x")
    with pytest.raises(InvalidArgumentError, match="already exists"):
        recollect.rescue(store, tmp_path / "there.db")
    with pytest.raises(StoreMissingError):
        recollect.rescue(tmp_path / "absent.db", tmp_path / "new.db")
    (tmp_path / "picture").write_bytes(b"\x89PNG" * 5000)
    with pytest.raises(NotAStoreError, match="no part of a store"):
        recollect.rescue(tmp_path / "picture", tmp_path / "new.db")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotAStoreError, match="not a regular file"):
        recollect.rescue(tmp_path / "fifo", tmp_path / "new.db")
    key = b"sixteen bytes or more"
    with recollect.open(tmp_path / "private.db", key=key) as memory:
        memory.remember("x")
    with pytest.raises(WrongKeyError):
        recollect.rescue(tmp_path / "private.db", tmp_path / "new.db")
    report = recollect.rescue(tmp_path / "private.db", tmp_path / "new.db", key=key)
    assert records_by_namespace(report) == {"default": 1}
    assert not list(tmp_path.glob("*.part*"))


def test_the_rescue_gives_one_whole_file_though_closing_could_not_carry_its_log(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close(identity: FileIdentity, connections: Iterable[apsw.Connection]) -> None:
        for connection in connections:  # as where the disk is full: SQLite says nothing of it
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close()

    monkeypatch.setattr(FileIdentity, "close", close)
    recollect.rescue(store, tmp_path / "new.db")
    monkeypatch.undo()
    with recollect.open(store) as old, recollect.open(tmp_path / "new.db") as new:
        assert new.root == old.root
    assert found(tmp_path / "new.db") == []


def test_what_a_killed_rescue_left_beside_is_not_taken_for_part_of_the_new_one(store: Path, tmp_path: Path) -> None:
    with recollect.open(tmp_path / f"new.db.{os.getpid()}.part", "another") as stale:
        stale.remember("of another run")
    recollect.rescue(store, tmp_path / "new.db")
    with recollect.open(tmp_path / "new.db") as memory:
        assert "another" not in memory.namespaces()


def test_a_root_that_lies_in_a_page_of_zeros_is_no_root_and_one_that_ends_in_zeros_is() -> None:
    view = SqliteView(apsw.Connection(":memory:"), "a.db")
    entry, ends_in_zeros = b"e" * 32, b"x" * 24 + bytes(8)
    assert view._root(ends_in_zeros, entry, 77).page == 77
    assert view._root(ends_in_zeros, entry, None).page == 0
    assert view._root(EMPTY, entry, 0).hash == EMPTY
    for digest, after, place in (
        (b"x" * 29 + bytes(3), bytes(32), 0),
        (b"x" * 32, ends_in_zeros, 1),
        (b"x" * 32, ends_in_zeros, None),
        (bytes(32), entry, 0),
        (b"", entry, 5),
    ):
        with pytest.raises(DamagedStoreError, match="lost its root"):
            view._root(digest, after, place)


def test_a_namespace_that_lost_its_name_is_not_given_that_of_another(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", "first") as memory:
        memory.remember("of the first")
        memory.namespace("namespace-1").remember("of another")
    connection = connect(str(tmp_path / "a.db"))
    connection.execute("DELETE FROM namespaces WHERE name = 'first'")
    connection.close()
    report = recollect.rescue(tmp_path / "a.db", tmp_path / "new.db")
    assert records_by_namespace(report) == {"namespace-1": 1, "namespace-1-lost": 1}


# The commands


def run(*arguments: str) -> tuple[int, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, json.loads(result.stdout) if result.stdout else json.loads(result.stderr)


@pytest.mark.parametrize("place", [lambda data: data.rindex(b"fact 17"), lambda data: 4096 + 200, lambda data: 18])
def test_the_doctor_names_what_is_corrupt_also_where_the_store_cannot_be_opened(
    store: Path, place: Callable[[bytes], int]
) -> None:
    assert run("doctor", "--check", "--db", str(store))[0] == 0
    corrupt(store, place(store.read_bytes()))
    code, expected = run("doctor", "--check", "--db", str(store))
    assert code == 1
    assert any(each["what"] == "check" and not each["well"] for each in expected)


def test_the_command_rescue_says_what_is_lost_with_its_exit_code(store: Path, tmp_path: Path) -> None:
    assert run("rescue", str(store), str(tmp_path / "one.db"))[0] == 0
    corrupt_text(store, b"fact 17")
    code, expected = run("rescue", str(store), str(tmp_path / "two.db"))
    assert (code, [each["name"] for each in expected["lost"]]) == (1, ["r17"])
    shown = CliRunner().invoke(app, ["rescue", str(store), str(tmp_path / "three.db")])
    assert "lost: namespace 'default', record 'r17'" in shown.stderr


def test_an_error_in_reading_is_reported_as_what_it_is(store: Path) -> None:
    """Not as that of the end of the view, which SQLite has ended by then."""
    corrupt(store, (leaf_holding(store, b"fact 17") - 1) * 4096 + 2000)
    opened = SqliteStore(store)
    with pytest.raises(DamagedStoreError, match="a page does not match its checksum"), opened.read() as view:
        for line in view.branches():
            list(view.versions(line))
    opened.close()


# Pages that have changed places


def leaves(path: Path) -> dict[str, list[int]]:
    """The leaves of the two tables that hold what is live, by the shape of their rows."""
    pages = FilePages(path.read_bytes())
    out: dict[str, list[int]] = {"heads": [], "versions": []}
    for number in range(1, pages.count + 1):
        if pages.kind(number) == TABLE_LEAF:
            shapes = {len(row.values) for row in pages.rows(number)}
            of_versions = all(isinstance(row.values[2], bytes) for row in pages.rows(number) if len(row.values) == 4)
            if shapes == {17}:
                out["heads"].append(number)
            elif shapes == {4} and of_versions:
                out["versions"].append(number)
    return out


def exchanged(path: Path, one: int, two: int) -> None:
    data = bytearray(path.read_bytes())
    begin, end = (one - 1) * 4096, (two - 1) * 4096
    data[begin : begin + 4096], data[end : end + 4096] = data[end : end + 4096], data[begin : begin + 4096]
    path.write_bytes(data)


READS_ALL: dict[str, Callable[[recollect.Memory], Any]] = {
    "find": lambda memory: memory.find(order="id"),
    "find by kind": lambda memory: memory.find(recollect.filters.kind("task"), order="id"),
    "find by user": lambda memory: memory.find(recollect.filters.user("ana"), order="id"),
    "get": lambda memory: [memory.get(f"r{number}") for number in range(120)],
    "grep": lambda memory: sorted(memory.grep("fact", 200), key=lambda record: record.id),
    "recall": lambda memory: sorted((hit.record for hit in memory.recall("fact", 200)), key=lambda record: record.id),
    "held": lambda memory: exported(memory)[1],
}


@pytest.mark.promise("damage.exchanged")
@pytest.mark.parametrize(("table", "name"), spread(("heads", "versions"), tuple(READS_ALL), every=4))
def test_pages_of_records_that_changed_places_are_noticed_when_they_are_read(
    tmp_path: Path, name: str, table: str
) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember_all(
            {
                "content": f"fact {number} " + "and so on " * 30,
                "id": f"r{number}",
                "kind": "task" if number % 3 else "note",
                "user": "ana",
            }
            for number in range(120)
        )
        memory.grep("fact")
        right = READS_ALL[name](memory)
    whole, numbers = path.read_bytes(), leaves(path)[table]
    assert len(numbers) > 1
    for one, two in zip(numbers, numbers[1:] + numbers[:1], strict=True):
        path.write_bytes(whole)
        exchanged(path, one, two)
        with recollect.open(path) as memory:
            assert memory.check() != []
            with pytest.raises(DamagedStoreError):
                READS_ALL[name](memory)
        path.write_bytes(whole)
        with recollect.open(path) as memory:
            assert READS_ALL[name](memory) == right  # the negative control
