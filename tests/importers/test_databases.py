"""Databases of other programs: read from a copy that has all that was committed, and refused where they are damaged."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests import foreign
from tests.exports import exported

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import ImportFormatError, StoreIOError
from recollect.importers import ImportReport, databases, import_path
from recollect.importers.databases import opened, quoted

Run = Callable[..., ImportReport]
Write = Callable[[str, Any], Path]


def history(path: Path) -> Path:
    texts = [f"fact {number} {'x' * 200}" for number in range(200)]
    return foreign.history(
        path, *({"memory_id": f"m{at}", "event": "ADD", "new_memory": text} for at, text in enumerate(texts))
    )


def store(path: Path) -> Path:
    values = [{"text": f"fact {number} {'x' * 200}"} for number in range(200)]
    return foreign.store(path, *({"prefix": "a", "key": f"k{at}", "value": each} for at, each in enumerate(values)))


def sessions(path: Path) -> Path:
    messages = [{"role": "user", "content": f"fact {number} {'x' * 200}"} for number in range(200)]
    return foreign.sessions(path, {"chat": messages})


def chroma(path: Path) -> Path:
    documents = [{"id": f"d{number}", "document": f"fact {number} {'x' * 200}"} for number in range(200)]
    return foreign.chroma(path, {"notes": documents})


MADE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "mem0": (history, "history"),
    "langgraph": (store, "store"),
    "openai-sessions": (sessions, "agent_messages"),
    "chroma": (chroma, "embeddings"),
}
EVERY = pytest.mark.parametrize("form", list(MADE))


def made(form: str, folder: Path) -> Path:
    return MADE[form][0](folder / "source.db")


def files(folder: Path) -> dict[str, str]:
    """The names of all files in a folder with digests of their bytes."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@EVERY
def test_a_second_import_of_a_file_changes_nothing(form: str, run: Run, memory: Memory, tmp_path: Path) -> None:
    path = made(form, tmp_path)
    first = run(form, path)
    assert (first.created, first.damaged) == (200, ())
    root = exported(memory)
    again = run(form, path)
    assert (again.created, again.updated, again.unchanged, again.differing) == (0, 0, 200, 0)
    assert exported(memory) == root


@EVERY
def test_what_was_imported_is_found(form: str, run: Run, memory: Memory, tmp_path: Path) -> None:
    run(form, made(form, tmp_path))
    assert "fact 7 " in memory.recall("fact 7", k=1)[0].record.text


@EVERY
@pytest.mark.promise("import.database-read-only")
def test_a_file_is_only_read_and_nothing_is_created_beside_it(form: str, run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "source"
    path = made(form, folder)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")  # where SQLite would create two more files to read this one
    before = files(folder)
    assert list(before) == ["source.db"]
    assert run(form, path).damaged == ()
    assert files(folder) == before


WRITER = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode=" + sys.argv[2])
database.execute("PRAGMA wal_autocheckpoint=0")
database.execute("PRAGMA cache_size=1")
database.execute("BEGIN")
for statement in sys.argv[3:]:
    database.execute(statement)
if sys.argv[2] == "WAL":
    database.execute("COMMIT")
os._exit(0)  # as where the program is killed
"""


@EVERY
@pytest.mark.promise("import.database-wal")
def test_what_is_only_in_the_write_ahead_log_is_imported(form: str, run: Run, memory: Memory, tmp_path: Path) -> None:
    path = made(form, tmp_path / "source")
    table = MADE[form][1]
    kept = {"mem0": "memory_id = 'm1'", "langgraph": "key = 'k1'", "openai-sessions": "id = 2", "chroma": "id = 2"}
    statement = f"DELETE FROM {table} WHERE NOT {kept[form]}"
    subprocess.run([sys.executable, "-c", WRITER, path, "WAL", statement], check=True)
    before = files(path.parent)
    assert "source.db-wal" in before
    assert run(form, path).created == 1
    assert "fact 1 " in memory.find()[0].text
    assert files(path.parent) == before
    alone = shutil.copy(path, tmp_path / "alone.db")
    with recollect.open(":memory:") as other:
        assert import_path(other, form, alone).created == 200, "control: without the log, the file has all rows"


def test_a_transaction_that_was_interrupted_is_undone_in_the_copy(run: Run, memory: Memory, tmp_path: Path) -> None:
    path = made("langgraph", tmp_path / "source")
    changed = 'UPDATE store SET value = \'{"text": "never committed"}\''
    subprocess.run([sys.executable, "-c", WRITER, path, "DELETE", changed], check=True)
    before = files(path.parent)
    assert "source.db-journal" in before
    assert b"never committed" in path.read_bytes(), "control: the pages are in the file"
    assert run("langgraph", path).created == 200
    assert not [record for record in memory.find() if "never" in record.text]
    assert files(path.parent) == before


@EVERY
def test_a_file_in_a_folder_that_cannot_be_written_is_read(form: str, run: Run, tmp_path: Path) -> None:
    path = made(form, tmp_path / "source")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        assert run(form, path).created == 200
    finally:
        path.parent.chmod(0o700)


@EVERY
def test_a_link_to_a_file_is_followed_to_its_log(form: str, run: Run, tmp_path: Path) -> None:
    path = made(form, tmp_path / "source")
    subprocess.run([sys.executable, "-c", WRITER, path, "WAL", f"DELETE FROM {MADE[form][1]}"], check=True)
    (tmp_path / "link.db").symlink_to(path)
    assert run(form, tmp_path / "link.db").created == 0


def truncated(path: Path, table: str) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwritten(path: Path, table: str) -> None:
    """Put other bytes in place of every page but those of the schema."""
    raw = bytearray(path.read_bytes())
    size = int.from_bytes(raw[16:18], "big")
    with closing(sqlite3.connect(path)) as database:
        roots = [
            root for (root,) in database.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = ?", (table,))
        ]
    for root in filter(None, roots):
        raw[(root - 1) * size : root * size] = b"\xa5" * size
    path.write_bytes(raw)


def without_schema(path: Path, table: str) -> None:
    raw = bytearray(path.read_bytes())
    raw[100:4096] = b"\xff" * (4096 - 100)
    path.write_bytes(raw)


@EVERY
@pytest.mark.parametrize("fault", [truncated, overwritten, without_schema])
def test_a_damaged_file_is_refused_with_a_code_and_changes_nothing(
    form: str, fault: Callable[[Path, str], None], run: Run, memory: Memory, tmp_path: Path
) -> None:
    path = made(form, tmp_path)
    fault(path, MADE[form][1])
    with pytest.raises(ImportFormatError, match="damaged SQLite file") as refused:
        run(form, path)
    assert refused.value.code == "import_format"
    assert memory.namespaces() == []


@EVERY
@pytest.mark.parametrize("other", [*MADE, "a table with the name only", "another table", "Recollect"])
def test_a_database_of_another_program_is_refused(
    form: str, other: str, run: Run, memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "other.db"
    if other == form:  # control
        assert run(form, made(form, tmp_path)).created == 200
        return
    if other in MADE:
        MADE[other][0](path)
    elif other == "Recollect":
        assert CliRunner().invoke(app, ["remember", "a fact", "--db", str(path)]).exit_code == 0
    else:
        foreign.made(path, f"CREATE TABLE {MADE[form][1] if 'name' in other else 'x'} (y)")
    with pytest.raises(ImportFormatError, match="is another SQLite file") as refused:
        run(form, path)
    assert "nothing was imported" in str(refused.value)
    assert memory.namespaces() == []


@EVERY
def test_a_view_of_that_name_is_not_read(form: str, run: Run, memory: Memory, tmp_path: Path) -> None:
    path, table = made(form, tmp_path), MADE[form][1]
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA legacy_alter_table=ON")
        database.execute(f"ALTER TABLE {table} RENAME TO renamed")
        if form != "openai-sessions":  # which finds its tables by their columns, whatever their names are
            database.execute(f"CREATE VIEW {table} AS SELECT * FROM renamed")
            database.commit()
            with pytest.raises(ImportFormatError, match=f"its table {table} is missing"):
                run(form, path)
            assert memory.namespaces() == []
            return
        database.execute("CREATE VIEW agent_messages AS SELECT * FROM renamed")
        database.commit()
    assert run(form, path).created == 200


def test_a_file_that_changes_while_it_is_copied_is_copied_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made("mem0", tmp_path)
    copies = []

    def copied_and_changed(source: str, target: str, copy: Any = databases._copy) -> None:
        copy(source, target)
        copies.append(source)
        if len(copies) == 2:
            with closing(sqlite3.connect(path)) as database:
                foreign.add(database, history=[{"id": "new", "memory_id": "new", "event": "ADD", "new_memory": "new"}])

    monkeypatch.setattr(databases, "_copy", copied_and_changed)
    assert run("mem0", path).created == 201
    assert len(copies) == 6


def test_a_file_that_changes_all_the_time_is_refused(
    run: Run, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made("mem0", tmp_path)

    def copied_and_changed(source: str, target: str, copy: Any = databases._copy) -> None:
        copy(source, target)
        path.write_bytes(path.read_bytes() + b"\0" * 4096)

    monkeypatch.setattr(databases, "_copy", copied_and_changed)
    with pytest.raises(ImportFormatError, match="is being changed by another program"):
        run("mem0", path)
    assert memory.namespaces() == []


def test_a_copy_without_room_is_an_error_of_the_machine_and_leaves_no_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made("mem0", tmp_path / "source")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(StoreIOError, match="has no room here"):
        run("mem0", path)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_copies_are_removed_and_are_for_their_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = made("mem0", tmp_path / "source")
    with opened(path) as database:
        (folder,) = (each for each in tmp_path.iterdir() if each.name != "source")
        assert folder.stat().st_mode & 0o077 == 0
        assert database.count("history") == 200
        assert database.count("none") == 0
    assert not folder.exists()


def test_names_of_tables_cannot_leave_their_quotes() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        name = 'a"; DROP TABLE b; --'
        database.execute(f"CREATE TABLE {quoted(name)} (x)")
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [(name,)]


@EVERY
def test_rows_of_tables_that_no_one_knows_are_named(form: str, run: Run, tmp_path: Path) -> None:
    path = made(form, tmp_path)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE notes (text); INSERT INTO notes VALUES ('a'), ('b'); CREATE TABLE none (x)"
        )
    report = run(form, path)
    assert report.left_out["rows of the table notes"] == 2
    assert "rows of the table none" not in report.left_out
    assert report.to_json()["left_out"] == report.left_out


@EVERY
def test_the_command_imports_and_names_what_is_left_out(form: str, tmp_path: Path) -> None:
    path = made(form, tmp_path)
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE notes (text); INSERT INTO notes VALUES ('a')")
    done = CliRunner().invoke(app, ["import", form, str(path), "--db", str(tmp_path / "a.db")])
    assert done.exit_code == 0, done.output
    assert "200 remembered" in done.output
    assert "rows of the table notes (1)" in done.output
    again = CliRunner().invoke(app, ["import", form, str(path), "--db", str(tmp_path / "a.db"), "--json"])
    (report,) = json.loads(again.output)
    assert (report["created"], report["unchanged"]) == (0, 200)
    refused = CliRunner().invoke(app, ["import", form, os.devnull, "--db", str(tmp_path / "none.db")])
    assert refused.exit_code != 0
    assert not (tmp_path / "none.db").exists()


def test_only_is_refused_for_formats_without_named_parts(write: Write, tmp_path: Path) -> None:
    path = write("chat.json", [{"role": "user", "content": "fine"}])
    done = CliRunner().invoke(app, ["import", "openai", str(path), "--only", "x", "--db", str(tmp_path / "a.db")])
    assert done.exit_code != 0
    assert "named parts" in done.output
