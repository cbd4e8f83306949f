"""Files of others in the place of a store or of its index: no hang, no raw error, no write to another file."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from click.testing import CliRunner
from tests.examples import FULL, spread

import recollect
from recollect.cli.app import app
from recollect.engine.index import keeper as indexing
from recollect.errors import DamagedStoreError, NotAStoreError, OlderFormatError, RecollectError, StoreError
from recollect.indexes.words.segment import Segment
from recollect.memory import Memory
from recollect.models.embedding.hashed import Hashed
from recollect.stores.derived import database as derived
from recollect.stores.derived.segment_files import _decoded, _encoded
from recollect.stores.sqlite import schema
from recollect.stores.sqlite_base import checksums
from recollect.stores.sqlite_base import connections as sqlite_tables

NOW = datetime(2026, 3, 1, tzinfo=UTC)
#: Far longer than anything here takes: what waits for ever fails after it.
PATIENCE_S = 120
INDEX_FILES = ("words", "text.db", "vectors.db", "usage.db", "log.db", "lock")
BESIDE_INDEX_FILES = ("text.db-wal", "text.db-shm", "vectors.db-wal", "usage.db-journal", "log.db-journal")


class TooPatientError(Exception):
    """Something waited for what never comes."""


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    def end(*_: object) -> None:
        raise TooPatientError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that has every file of an index."""
    folder = tmp_path_factory.mktemp("made")
    kept, indexing.KEPT_FROM = indexing.KEPT_FROM, 10
    try:
        with opened(folder / "a.db") as memory:
            memory.set_quota(records=60, when_full="least recent")
            memory.remember_all(
                {"content": f"fact {number} of the harbour", "id": f"r{number}", "user": "ana", "tags": ["t"]}
                for number in range(50)
            )
            for number in range(260):  # more than a tile of the log
                memory.update("r1", metadata={"number": number})
            answers(memory)
            memory.embed_all()
    finally:
        indexing.KEPT_FROM = kept
    assert {each.name.split("-")[0] for each in (folder / "a.db.index").iterdir()} == set(INDEX_FILES)
    return folder


@pytest.fixture
def path(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that store."""
    monkeypatch.setattr(indexing, "KEPT_FROM", 10)
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy" / "a.db"


def opened(path: Path, **named: Any) -> Memory:
    return recollect.open(path, embedder=Hashed(), clock=lambda: NOW, **named)


def index_file(path: Path, name: str) -> Path:
    (found,) = [each for each in Path(f"{path}.index").iterdir() if each.name.split("-")[0] == name]
    return found


def answers(memory: Memory) -> dict[str, Any]:
    """Return the answers that do not depend on vectors."""
    return {
        "recall": {hit.record.id for hit in memory.recall("fact 7 of the harbour", 100)},
        "grep": {record.id for record in memory.grep("fact", 100)},
        "find": [record.id for record in memory.find(recollect.filters.tag("t"), order="importance", limit=60)],
        "count": memory.count(recollect.filters.tag("t")),
        "get": memory.get("r7"),
        "log": memory.prove_log(9, 260),
    }


def used(path: Path, **named: Any) -> dict[str, Any]:
    """The answers, after everything that an index file is for has been done."""
    with opened(path, **named) as memory:
        first = answers(memory)
        memory.vector_stats()
        if not named:
            memory.remember("one more", id="more")
            memory.embed_all()
            memory.forget("more")
        assert answers(memory) == first
        assert memory.check() == []
    return first


# Something else in the place of an index file


def fifo(place: Path, beside: Path) -> None:
    os.mkfifo(place)


def folder(place: Path, beside: Path) -> None:
    (place / "within").mkdir(parents=True)


def device(place: Path, beside: Path) -> None:
    place.symlink_to("/dev/zero")


def loop(place: Path, beside: Path) -> None:
    place.symlink_to(place)


def dangling(place: Path, beside: Path) -> None:
    place.symlink_to(beside / "not there")


def link(place: Path, beside: Path) -> None:
    (beside / "somebody's").write_bytes(b"somebody's")
    place.symlink_to(beside / "somebody's")


def link_to_pipe(place: Path, beside: Path) -> None:
    os.mkfifo(beside / "pipe")
    place.symlink_to(beside / "pipe")


def link_to_the_file_itself(place: Path, beside: Path) -> None:
    place.rename(beside / "moved") if place.exists() else (beside / "moved").write_bytes(b"")
    place.symlink_to(beside / "moved")


def a_socket(place: Path, beside: Path) -> None:
    before = os.getcwd()
    os.chdir(place.parent)  # its name may have a hundred bytes
    try:
        with closing(socket.socket(socket.AF_UNIX)) as made:
            made.bind(place.name)
    finally:
        os.chdir(before)


STRANGE = (fifo, folder, device, loop, dangling, link, link_to_pipe, link_to_the_file_itself, a_socket)


@pytest.mark.promise("index.strange")
@pytest.mark.parametrize(
    ("name", "put", "read_only"), spread((*INDEX_FILES, *BESIDE_INDEX_FILES), STRANGE, (False, True), every=16)
)
def test_whatever_is_in_the_place_of_an_index_file_the_answers_are_the_same(
    path: Path, tmp_path: Path, put: Callable[[Path, Path], None], name: str, read_only: bool
) -> None:
    with opened(path) as memory:
        right = answers(memory)
    place = index_file(path, name) if name in INDEX_FILES else Path(f"{path}.index", name)
    if put is not link_to_the_file_itself:
        place.unlink(missing_ok=True)
    put(place, tmp_path)
    names = set(tmp_path.iterdir())
    before = {each: each.read_bytes() for each in names if each.is_file()}
    try:
        assert used(path, **({"read_only": True} if read_only else {})) == right
    except StoreError as error:
        # A folder cannot be deleted for it; the vectors, which are not rebuilt unasked, say so.
        assert (put, name[:10], read_only) == (folder, "vectors.db", False), error
    assert {each: each.read_bytes() for each in before} == before, "it was written through a link"
    assert set(tmp_path.iterdir()) == names, "a file was made through a link"


@pytest.mark.promise("index.strange")
@pytest.mark.parametrize("put", STRANGE)
def test_whatever_is_in_the_place_of_the_folder_the_answers_are_the_same(
    path: Path, tmp_path: Path, put: Callable[[Path, Path], None]
) -> None:
    with opened(path) as memory:
        right = answers(memory)
    place = Path(f"{path}.index")
    shutil.rmtree(place)
    put(place, tmp_path)
    with recollect.open(path, clock=lambda: NOW) as memory:  # vectors have nowhere to be
        assert answers(memory) == right
        memory.remember("one more")
        assert memory.check() == []


# Wrong rows, with the right checksums

#: Whether each column gets every value; else a quarter of them, in turn, which is all of them over the columns.
VALUES: list[Any] = [None, 7, -1, 2**63 - 1, 1.5, float("inf"), "text", "", "7", b"", b"\xff" * 3, b"\0" * 32]


def columns() -> Iterator[tuple[str, str, str]]:
    """Every column of every table of the SQLite files beside a store."""
    from recollect.stores.derived import fulltext, log_tiles, usage, vectors

    for name, tables in (
        ("text.db", fulltext._TABLES),
        ("vectors.db", vectors._TABLES),
        ("usage.db", usage._TABLES),
        ("log.db", log_tiles._TABLES),
    ):
        with closing(derived.in_memory(tables)) as connection:
            for table, made in sqlite_tables.structure(connection).items():
                if made.type == "table" and not (made.sql or "").startswith("CREATE VIRTUAL"):
                    for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)):
                        yield name, table, column


def sweep(name: str, table: str, column: str) -> Iterator[tuple[Any, bool, bool]]:
    """The values for a column, whether all rows get them, and whether this is tried only where nothing was so far."""
    begin = list(columns()).index((name, table, column)) % 24
    for at, (value, all_rows) in enumerate(product(VALUES, (False, True))):
        yield value, all_rows, not FULL and at % 24 != begin


def wrong(file: Path, table: str, column: str, value: Any, *, all_rows: bool) -> bool:
    """Return whether some rows have that value there now."""
    with closing(checksums.connect(str(file))) as connection:
        where = "" if all_rows else f" WHERE rowid = (SELECT min(rowid) FROM {table})"
        try:
            connection.execute(f'UPDATE OR IGNORE {table} SET "{column}" = ?{where}', (value,)).fetchall()
        except apsw.Error:
            return False  # no such row can be
        return connection.changes() > 0


@pytest.mark.promise("index.rows")
@pytest.mark.parametrize(("name", "table", "column"), list(columns())[:: 1 if FULL else 4])
def test_rows_of_any_type_beside_the_store_change_no_answer_and_raise_nothing(
    path: Path, tmp_path: Path, name: str, table: str, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as memory:
        right = answers(memory)
    file = index_file(path, name)
    whole = file.read_bytes()
    done = 0
    for value, all_rows, spare in sorted(sweep(name, table, column), key=lambda each: each[2]):
        if spare and done:
            break
        file.write_bytes(whole)
        for left in derived._BESIDE:
            Path(f"{file}{left}").unlink(missing_ok=True)
        with suppress(apsw.Error):
            if not wrong(file, table, column, value, all_rows=all_rows):
                continue
        done += 1
        caplog.clear()
        found = used(path)
        # Rows that merely name another text, or none, are not noticed: see docs/architecture.md.
        assert found["grep"] <= right["grep"]
        assert found | {"grep": 0} == right | {"grep": 0}, (value, all_rows)
        assert len([each for each in caplog.records if "cannot be used" in each.message]) <= 1, caplog.text
        used(path, read_only=True)
    assert done, "nothing could be changed"


@pytest.mark.promise("index.rows")
@pytest.mark.parametrize("value", [None, 7, "text", b"", b"\0\0\0", np.full(256, np.nan, dtype="<f4").tobytes()])
def test_an_invalid_vector_is_noticed_once_and_recall_answers_by_the_other_signals(
    path: Path, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    file = index_file(path, "vectors.db")
    assert wrong(file, "vectors", "vector", value, all_rows=False)
    with opened(path) as memory:
        for _ in range(3):
            hits = memory.recall("fact 7 of the harbour")
            assert hits[0].record.id == "r7"
            assert "is not used" in str(hits.plan)
            memory.vector_stats()
        assert len([each for each in caplog.records if "cannot be used" in each.message]) == 1
        assert memory.embed_all() == 50
        assert "dense" in str([hit.why.shares for hit in memory.recall("fact 7 of the harbour")])


TABLES_OF_OTHERS = {
    "a view without end": "WITH RECURSIVE n(name) AS (SELECT 1 UNION ALL SELECT name + 1 FROM n) "
    "SELECT name, name AS value FROM n",
    "a view of much": "WITH RECURSIVE n(name) AS (SELECT 1 UNION ALL SELECT name + 1 FROM n LIMIT 100000000) "
    "SELECT name, zeroblob(1000000) AS value FROM n",
}


def with_view(file: Path, table: str, select: str) -> None:
    """Let a table be a view, as a stranger could: its indexes go with it."""
    with closing(apsw.Connection(str(file), vfs=checksums.NAME)) as connection:
        try:
            connection.execute(f"DROP TABLE {table}").fetchall()
        except apsw.SQLError:  # one that another is made of
            connection.execute("PRAGMA writable_schema = ON").fetchall()
            connection.execute("DELETE FROM sqlite_schema WHERE name = ?1 OR tbl_name = ?1", (table,)).fetchall()
            connection.execute("PRAGMA writable_schema = RESET").fetchall()
        connection.execute(f"CREATE VIEW {table} AS {select}").fetchall()


@pytest.mark.promise("index.strange")
@pytest.mark.parametrize(
    ("of", "view"),
    spread(
        [
            *(("text.db", each) for each in ("about", "reached", "texts", "words", "words_data", "words_config")),
            *(("vectors.db", each) for each in ("about", "sets", "vectors", "reached")),
            ("usage.db", "uses"),
            *(("log.db", each) for each in ("logs", "tiles")),
        ],
        tuple(TABLES_OF_OTHERS),
        every=4,
    ),
)
def test_a_view_in_the_place_of_a_table_of_the_index_is_never_asked(
    path: Path, of: tuple[str, str], view: str, caplog: pytest.LogCaptureFixture
) -> None:
    name, table = of
    with opened(path) as memory:
        right = answers(memory)
    caplog.clear()
    with_view(index_file(path, name), table, TABLES_OF_OTHERS[view])
    assert used(path) == right
    assert "its tables are not the expected ones" in caplog.text
    caplog.clear()
    assert used(path) == right
    assert caplog.text == "", "it was rebuilt"


# Segments


@pytest.mark.promise("index.rows")
@pytest.mark.parametrize("name", ["ids", "sessions", "terms", "values"])
@pytest.mark.parametrize("how", ["no text", "cut in a character"])
def test_a_segment_with_the_right_digest_whose_texts_are_none_is_rebuilt(
    path: Path, name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as memory:
        memory.remember_all(
            {
                "content": f"喜{number} harbour",
                "id": f"喜{number}",
                "user": "喜喜",
                "conversation": "喜喜",
                "session": f"喜{number}",
            }
            for number in range(9)
        )
        memory.recall("harbour")
    shutil.rmtree(f"{path}.index")
    with opened(path) as memory:
        right = answers(memory)

    def forged(arrays: dict[str, Any]) -> None:
        blob, ends = arrays[f"{name}.blob"].copy(), arrays[f"{name}.ends"].copy()
        at = int(np.flatnonzero(blob >= 0xC0)[0])
        if how == "no text":
            blob[at] = 0xFF
        else:
            ends[np.flatnonzero(ends > at)[0]] = at + 1
            ends[:] = np.maximum.accumulate(ends)
        arrays[f"{name}.blob"], arrays[f"{name}.ends"] = blob, ends

    forge(index_file(path, "words"), forged)
    caplog.clear()
    assert used(path) == right
    assert re.search(f"its {name} are not all text|its column {name}.ends does not ascend", caplog.text)


@pytest.mark.promise("index.rows")
@pytest.mark.parametrize("byte", [0, 1, 0x41, 0xFF])
def test_an_invalid_or_wrong_record_in_a_segment_is_read_from_the_store(path: Path, byte: int) -> None:
    with opened(path) as memory:
        right = answers(memory)

    def forged(arrays: dict[str, Any]) -> None:
        arrays["payloads.blob"] = np.full_like(arrays["payloads.blob"], byte)

    forge(index_file(path, "words"), forged)
    assert used(path) == right


def forge(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the arrays of a segment file, and let all its digests be right again."""
    header, arrays = _decoded(np.fromfile(file, dtype=np.uint8))
    arrays = dict(arrays)
    change(arrays)
    segment = Segment.__new__(Segment)
    segment.arrays, segment.speakers = arrays, header["speakers"]
    file.write_bytes(b"".join(bytes(part) for part in _encoded(segment, header["about"])))


# The store itself


def store_of(folder: Path, number: int) -> Path:
    """A store whose header and table meta state a format."""
    path = folder / "a.db"
    with recollect.open(path) as memory:
        memory.remember("a text", id="a")
    with closing(checksums.connect(str(path))) as connection:
        connection.execute(f"PRAGMA user_version = {number}").fetchall()
        connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (number,))
    return path


TABLES = [name for name, made in sqlite_tables.made_by(schema.TABLES).items() if made.type == "table"]


@pytest.mark.promise("damage.foreign")
@pytest.mark.parametrize(
    ("table", "view", "number"), spread(TABLES, tuple(TABLES_OF_OTHERS), (1, schema.FORMAT), every=2)
)
def test_a_store_with_a_view_in_the_place_of_a_table_is_refused_at_once(
    tmp_path: Path,
    table: str,
    view: str,
    number: int,
) -> None:
    path = store_of(tmp_path, number)
    with_view(path, table, TABLES_OF_OTHERS[view])
    other = tmp_path / "other.db"
    for call in (
        lambda: recollect.open(path),
        lambda: recollect.open(path, read_only=True),
        lambda: recollect.restore(path, other),
        lambda: recollect.migrate(path),
        lambda: recollect.migrate(path, dry_run=True),
    ):
        with pytest.raises(DamagedStoreError, match=f"its table {table} is not that of a store"):
            call()
    assert not other.exists()
    with suppress(NotAStoreError, OlderFormatError):  # it reads pages, and asks SQLite for nothing
        recollect.rescue(path, other)
    done = CliRunner().invoke(app, ["doctor", "--check", "--db", str(path)])
    assert done.exit_code == 1
    with recollect.open(tmp_path / "good.db") as memory:
        memory.remember("good")
        with pytest.raises(RecollectError):
            memory.backup(path, verify=True)  # over what is there


@pytest.mark.promise("damage.foreign")
@pytest.mark.parametrize("version", [1, 2, 3, 7])
def test_no_number_in_the_header_lets_a_view_pass(tmp_path: Path, version: int) -> None:
    path = store_of(tmp_path, schema.FORMAT)
    with closing(checksums.connect(str(path))) as connection:
        connection.execute(f"PRAGMA user_version = {version}").fetchall()
    with_view(path, "meta", TABLES_OF_OTHERS["a view without end"])
    with pytest.raises(DamagedStoreError, match="its table meta"):
        recollect.open(path)


@pytest.mark.promise("damage.foreign")
def test_where_the_comparison_is_blind_nothing_is_run_for_long_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two guards behind it: no connection knows views, and what does not end is interrupted."""
    path = store_of(tmp_path, schema.FORMAT)
    with_view(path, "meta", TABLES_OF_OTHERS["a view without end"])
    monkeypatch.setattr("recollect.stores.sqlite.store.differing_table", lambda *_, **__: "")
    with pytest.raises(DamagedStoreError, match=r"access to view|no such table"):
        recollect.open(path)
    real = checksums.connect

    def knows_views(*arguments: Any, **named: Any) -> apsw.Connection:
        connection = real(*arguments, **named)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 1)
        return connection

    monkeypatch.setattr(checksums, "connect", knows_views)
    with pytest.raises(DamagedStoreError, match="takes too long"):
        recollect.open(path)


@pytest.mark.promise("damage.foreign")
def test_a_foreign_trigger_is_named_by_the_check_and_never_run(tmp_path: Path) -> None:
    path = store_of(tmp_path, schema.FORMAT)
    with closing(checksums.connect(str(path))) as connection:
        connection.execute("CREATE TRIGGER sly AFTER INSERT ON commits BEGIN DELETE FROM heads; END")
    with recollect.open(path) as memory:
        assert any("sly" in each for each in memory.check())
        memory.remember("another", id="b")
        assert {record.id for record in memory.find()} == {"a", "b"}


def test_what_belongs_to_a_store_is_there_and_nothing_of_it_is_strange(tmp_path: Path) -> None:
    with closing(checksums.connect(str(store_of(tmp_path, schema.FORMAT)))) as connection:
        assert sqlite_tables.structure(connection) == sqlite_tables.made_by(schema.TABLES)
        assert sqlite_tables.differing_table(sqlite_tables.structure(connection), schema.TABLES) == ""
