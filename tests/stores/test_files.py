"""The file: what is made, what is refused, what the schema promises, and format 1 for ever."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import sqlite3
import stat
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.paths import GOLDEN

import recollect
from recollect import filters as f
from recollect.errors import (
    DamagedStoreError,
    InvalidQueryError,
    NewerFormatError,
    NotAStoreError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreMissingError,
    WrongKeyError,
)
from recollect.filters.tree import Filter
from recollect.ledger.commits import Branch
from recollect.stores.sql.filters import rest
from recollect.stores.sqlite.schema import APPLICATION_ID, TABLES
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.checksums import connect
from recollect.stores.values import SortKey
from recollect.testing.commits import NOW
from recollect.testing.loopback import full_text_of


def test_a_new_file_is_for_its_owner_only_and_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("x")
        memory.grep("x")
        for made in (path, tmp_path / "a.db-wal", tmp_path / "a.db.index" / "text.db"):
            assert stat.S_IMODE(made.stat().st_mode) == 0o600
    header = path.read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(header[60:64], "big") == 4
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.db", "a.db.index"]


def test_the_index_folder_may_be_deleted_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("a lighthouse")
        assert len(memory.grep("lighthouse")) == 1
    shutil.rmtree(tmp_path / "a.db.index")
    with recollect.open(path) as memory:
        assert len(memory.grep("lighthouse")) == 1
    index = tmp_path / "a.db.index" / "text.db"
    for damage in (b"damaged" * 1000, index.read_bytes()[:8192] + b"\xff" * (index.stat().st_size - 8192)):
        index.write_bytes(damage)
        with recollect.open(path) as memory:
            assert len(memory.grep("lighthouse")) == 1


def test_a_text_index_that_belongs_to_another_store_is_rebuilt(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        with recollect.open(tmp_path / name) as memory:
            memory.remember(f"the lighthouse of {name}")
            memory.grep("lighthouse")
    shutil.rmtree(tmp_path / "a.db.index")
    (tmp_path / "b.db.index").rename(tmp_path / "a.db.index")
    with recollect.open(tmp_path / "a.db") as memory:
        assert [record.content for record in memory.grep("lighthouse")] == ["the lighthouse of a.db"]


def refused(path: Path, kind: type[Exception], match: str, **arguments: Any) -> None:
    """Opening raises, and the file is as it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(kind, match=match):
        recollect.open(path, **arguments)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_foreign_files_are_refused_by_name_and_not_touched(tmp_path: Path) -> None:
    refused(tmp_path, NotAStoreError, "it is a folder")
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 2000)
    refused(picture, NotAStoreError, r"picture\.png is not a Recollect store \(it is not an SQLite file; .*\)")
    short = tmp_path / "short.db"
    short.write_bytes(b"SQLite format 3\0")
    refused(short, NotAStoreError, "not an SQLite file")
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    refused(other, NotAStoreError, "another application")
    (tmp_path / "empty.db").touch()
    refused(tmp_path / "empty.db", NotAStoreError, "it is empty", create=False)
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", NotAStoreError, "not a regular file")
    refused(tmp_path / "absent.db", StoreMissingError, "no store", create=False)
    refused(tmp_path / "absent.db", StoreMissingError, "no store", read_only=True)


def changed(path: Path, sql: str) -> None:
    connection = connect(str(path))
    connection.execute(sql)
    connection.close()


def test_newer_files_are_refused_by_name_or_opened_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    recollect.open(path).remember("x")
    changed(path, "UPDATE meta SET value = 6 WHERE name = 'least_writer'")
    with recollect.open(path) as memory:
        assert memory.count() == 1
        with pytest.raises(ReadOnlyStoreError, match="writing to it needs format 6"):
            memory.remember("y")
    changed(path, "UPDATE meta SET value = 6 WHERE name = 'least_reader'")
    refused(path, NewerFormatError, "newer Recollect.*needs format 6")


def test_a_store_that_lost_its_tables_is_damaged_and_not_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("x")
    changed(path, "DELETE FROM meta WHERE name = 'uuid'")
    refused(path, DamagedStoreError, "its table meta lacks")
    changed(path, "INSERT INTO meta VALUES ('uuid', 'u'); DROP TABLE heads")
    with recollect.open(path) as memory, pytest.raises(DamagedStoreError):
        memory.count()


def test_a_file_that_is_marked_read_only_is_read_and_never_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("a lighthouse")
    path.chmod(0o444)
    before = path.read_bytes()
    with recollect.open(path) as memory:
        assert memory.recall("lighthouse")[0].record.content == "a lighthouse"
        assert len(memory.grep("lighthouse")) == 1
        with pytest.raises(ReadOnlyStoreError, match=r"marked read-only.*nothing was changed"):
            memory.remember("more")
    assert path.read_bytes() == before


def test_a_store_on_read_only_media_is_read_without_a_file_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a b%.db"  # what an address would have to escape
    with recollect.open(path) as memory:
        memory.remember("x", id="x")
    shutil.rmtree(f"{path}.index", ignore_errors=True)
    os.utime(path, (0, 0))
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)
    with recollect.open(path, read_only=True) as memory:
        assert memory.get("x") is not None
        assert len(memory.recall("x")) == 1
        assert list(tmp_path.iterdir()) == [path]
        with pytest.raises(ReadOnlyStoreError):
            memory.remember("y")


def test_text_that_is_not_utf_8_any_more_is_damage_and_is_reported_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("stripes", id="zebra")
    path.write_bytes(path.read_bytes().replace(b"zebra", b"z\xffbra"))
    with recollect.open(path) as memory:
        assert memory.check() != []
        with pytest.raises(DamagedStoreError):
            memory.recall("stripes")


def test_a_store_opened_for_reading_sees_what_others_write(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as writer:
        writer.remember("one")
        with recollect.open(path, read_only=True) as reader:
            assert reader.count() == 1
            writer.remember("two")
            assert reader.count() == 2
            with pytest.raises(ReadOnlyStoreError, match="reading only"):
                reader.remember("three")


def test_a_store_with_a_key_of_its_own_has_other_roots_and_asks_for_the_key(tmp_path: Path) -> None:
    key = b"sixteen bytes or more"
    with recollect.open(tmp_path / "a.db") as public, recollect.open(tmp_path / "b.db", key=key) as private:
        for memory in (public, private):
            memory.remember("x", time=datetime(2026, 1, 1, tzinfo=UTC))
        assert [each.content for each in public.find()] == [each.content for each in private.find()]
        assert public.find()[0].id != private.find()[0].id
        public.remember("y", id="y", time=datetime(2026, 1, 1, tzinfo=UTC))
        private.remember("y", id="y", time=datetime(2026, 1, 1, tzinfo=UTC))
        assert public.root != private.root
    with pytest.raises(WrongKeyError):
        recollect.open(tmp_path / "b.db")
    with recollect.open(tmp_path / "b.db", key=key) as memory:
        assert memory.check() == []


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    with recollect.open(path) as memory:
        memory.remember("x")
    with recollect.open(f"sqlite:///{path}") as memory:
        assert memory.count() == 1


def test_the_default_path_is_the_variable_and_then_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_DB", str(tmp_path / "named.db"))
    recollect.open().close()
    assert (tmp_path / "named.db").exists()
    monkeypatch.delenv("RECOLLECT_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    recollect.open().close()
    assert list(tmp_path.rglob("recollect/memory.db"))


# The schema


def test_payloads_are_never_updated() -> None:
    """No statement changes a version: a payload is removed, or stored again after that; the log is only redacted."""
    from recollect.stores.sql import transaction, view
    from recollect.stores.sqlite import store as sqlite
    from recollect.stores.sqlite import view as sqlite_view

    source = "".join(map(inspect.getsource, (sqlite, sqlite_view, transaction, view)))
    assert set(re.findall("UPDATE versions SET [^W]*", source)) == {"UPDATE versions SET payload = NULL "}
    commits = {
        "UPDATE commits SET page = NULL, replaced = NULL ",
        "UPDATE commits SET {name} = NULL ",
    }
    assert set(re.findall("UPDATE commits SET [^W]*", source)) == commits
    assert set(re.findall("UPDATE changes [^W]*", source)) == {"UPDATE changes INDEXED BY changes_by_id SET id = ? "}
    assert source.count("DO UPDATE SET") == 4  # heads, which point; meta, twice; and versions
    assert "DO UPDATE SET payload = excluded.payload WHERE versions.payload IS NULL" in source
    assert "payload" not in source.split("_PUT_HEAD = (")[1].split(")\n")[0]
    assert "STRICT" in TABLES


INDEXED: dict[str, tuple[Filter, str]] = {
    "kind": (f.kind("user_fact"), "heads_by_kind"),
    "user": (f.user("ana"), "heads_by_user"),
    "conversation": (f.conversation("c"), "heads_by_conversation"),
    "entity": (f.entity("e"), "heads_by_entity"),
    "id": (f.id("a", "b"), "sqlite_autoindex_heads_1"),
    "time": (f.after(datetime(2026, 1, 1, tzinfo=UTC)), "heads_by_time"),
    "kind and more": (f.kind("user_fact") & ~f.tag("x") & f.custom(bool), "heads_by_kind"),
}


@pytest.mark.parametrize("name", INDEXED)
def test_a_filter_uses_its_index(tmp_path: Path, name: str) -> None:
    where, index = INDEXED[name]
    store = SqliteStore(tmp_path / "a.db")
    with store.read() as view:
        for order in ("newest", "id"):
            sql, parameters = view.select_sql(Branch("n"), where, order, NOW)
            plan = " ".join(str(row[3]) for row in view._execute(f"EXPLAIN QUERY PLAN {sql}", (1, *parameters[1:])))
            if order == "newest":
                assert f"SEARCH h USING INDEX {index}" in plan
            assert "SCAN h" not in plan
    store.close()


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("name", [None, "kind", "user", "entity"])
def test_a_page_by_time_is_read_from_where_it_begins(tmp_path: Path, name: str | None, order: str) -> None:
    """Its start is found in the index: rows before it are not read, however many there are."""
    where, index = (f.everything(), "heads_by_time") if name is None else INDEXED[name]
    store = SqliteStore(tmp_path / "a.db")
    with store.read() as view:
        for part in rest(order, (NOW, 3, "a"), where):
            sql, parameters = view.select_sql(Branch("n"), where, order, NOW, part)
            plan = " ".join(str(row[3]) for row in view._execute(f"EXPLAIN QUERY PLAN {sql}", (1, *parameters[1:])))
            assert re.search(rf"SEARCH h USING INDEX {index} \([^)]*time[<>=]", plan), plan
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan  # only records of one time are sorted
    store.close()


@pytest.mark.parametrize("after", [None, ("c", 3, NOW, "a")])
def test_the_last_turns_of_a_conversation_are_read_from_its_end(tmp_path: Path, after: SortKey | None) -> None:
    """Its other turns are neither read nor sorted; those of several conversations are."""
    store = SqliteStore(tmp_path / "a.db")
    with store.read() as view:

        def plans(where: Filter) -> list[str]:
            found = []
            for part in rest("last", after, where):
                sql, parameters = view.select_sql(Branch("n"), where, "last", NOW, part)
                rows = view._execute(f"EXPLAIN QUERY PLAN {sql}", (1, *parameters[1:]))
                found.append(" ".join(str(row[3]) for row in rows))
            return found

        one, several = plans(f.kind("turn") & f.conversation("c")), plans(f.conversation("c", "d"))
        assert all("SEARCH h USING INDEX heads_by_conversation" in plan for plan in one), one
        sorted_by_position = ("FOR ORDER BY", "FOR LAST 3 TERMS OF ORDER BY")
        assert not any(terms in plan for plan in one for terms in sorted_by_position), one
        assert any(terms in plan for plan in several for terms in sorted_by_position), several
    store.close()


def test_the_turns_at_a_place_are_found_without_walking_the_namespace(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    asked: list[str] = []
    with store.read() as view:
        execute = view._execute

        def note(sql: str, parameters: tuple[object, ...] = ()) -> object:
            asked.append(sql)
            return execute(sql, parameters)

        view._execute = note  # type: ignore[assignment]
        view.turns_at(Branch("n"), "c", 3)
        plan = " ".join(str(row[3]) for row in execute(f"EXPLAIN QUERY PLAN {asked[-1]}", (1, "c", 3)))
    assert "SEARCH h USING INDEX heads_by_conversation (branch=? AND conversation=? AND position=?)" in plan
    store.close()


# Formats 3 and 4, for ever


@pytest.mark.parametrize("number", [3, 4])
def test_the_golden_file_of_a_format_opens_and_has_what_it_had(tmp_path: Path, number: int) -> None:
    """Each golden file was written once (scripts/make_golden.py) and is never written again."""
    wanted = json.loads((GOLDEN / f"format-{number}.json").read_text(encoding="utf-8"))
    path = tmp_path / "golden.db"
    shutil.copy(GOLDEN / f"format-{number}.db", path)
    os.chmod(path, 0o600)
    with recollect.open(path) as store:
        assert store.namespaces() == sorted(wanted)
        for name, stored in wanted.items():
            memory = store.namespace(name)
            assert memory.root == stored["root"]
            assert memory.head().parts == stored.get("parts", {"records": memory.root})
            assert memory.head().log == stored.get("log_head", memory.head().log)
            assert [record.to_json() for record in memory.find(order="id")] == stored["records"]
            assert [commit.to_json() for commit in memory.changes()] == stored["log"]
            assert memory.recall("lighthouse boat 喜欢")
            if number > 3:
                assert [term["value"] for term in memory.glossary.list_all("bot")] == [
                    "turning the bow through the wind"
                ]
                assert [hit.node.title for hit in memory.outline.search("sails cotton")] == ["Sails"]
                assert memory.sdr.query("halyard frayed")[0]["text"] == "the halyard is frayed"
                assert memory.keyed.read("plan") == b"leave at dawn"
        assert store.check() == []
        store.remember("and it can be written")


def test_a_migrated_golden_store_binds_its_parts_from_the_next_commit_on(tmp_path: Path) -> None:
    path = tmp_path / "golden.db"
    shutil.copy(GOLDEN / "format-3.db", path)
    os.chmod(path, 0o600)
    with recollect.open(path) as memory:
        memory.keyed.write("plan", b"leave at dawn")
        before = memory.root
        assert memory.head().parts == {"records": before}  # its commits cannot state the entries
        old = memory.prove("bytes")
    assert recollect.migrate(path).steps
    with recollect.open(path) as memory:
        assert memory.root == before
        assert recollect.verify(old, memory.head().log or "")
        memory.remember("the first commit of format 4")
        assert sorted(memory.head().parts) == ["keys", "records"]
        assert recollect.verify(memory.prove("bytes"), memory.root)
        assert recollect.verify(memory.prove("bytes", at=1), before) is False
        assert memory.check() == []


@pytest.mark.parametrize("query", ["(" * 300 + "alpha" + ")" * 300, "alpha" + " and (beta" * 250 + ")" * 250])
def test_a_query_that_is_nested_too_deeply_is_refused_and_the_index_stays(tmp_path: Path, query: str) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("alpha")
        assert len(memory.grep("alpha")) == 1
        index = tmp_path / "a.db.index" / "text.db"
        before = index.stat().st_ino
        with pytest.raises(InvalidQueryError, match="nested too deeply"):
            memory.grep(query)
        assert len(memory.grep("alpha")) == 1
        assert index.stat().st_ino == before


def test_an_index_that_another_process_brings_up_is_not_deleted_under_it(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("alpha")
        memory.grep("alpha")
        index = tmp_path / "a.db.index" / "text.db"
        before = index.stat().st_ino
        with closing(apsw.Connection(str(index))) as other:
            other.execute("BEGIN IMMEDIATE")
            assert len(memory.grep("alpha")) == 1  # there is nothing new, so it need not be written to
            memory.remember("alpha again")
            full_text_of(memory)._idle[0].set_busy_timeout(10)
            with pytest.raises(StoreBusyError):
                memory.grep("alpha")
        assert index.stat().st_ino == before
        assert len(memory.grep("alpha")) == 2
