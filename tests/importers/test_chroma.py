"""Documents of Chroma: of its SQLite file, and of the JSON of `collection.get()`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests import foreign

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.cli.app import app
from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.importers import ImportReport, import_path

Run = Callable[..., ImportReport]
Write = Callable[[str, Any], Path]

KETTLE = {
    "id": "k1",
    "document": "The kettle is new",
    "uri": "file:///notes/kettle.txt",
    "metadata": {"room": "kitchen", "number": 2**40, "share": 1.5, "new": True, "old": False, "tags": ["a", "b"]},
}
LAMP = {"id": "l1", "document": "The lamp is old"}
# As `collection.get(include=[...])` of chromadb 1.5.9 returned it, saved by json.dump.
ANSWER = {
    "ids": ["b", "c", "d", "e"],
    "embeddings": None,
    "documents": ["two more", None, "four", ""],
    "uris": [None, None, "file:///d", None],
    "included": ["documents", "metadatas", "uris"],
    "data": None,
    "metadatas": [{"tags": ["p", "q"], "n": [1, 2]}, {"only": "meta"}, {"bl": [True, False], "x": 1}, None],
}


class TestTheFile:
    def test_a_document_is_a_record_with_all_that_chroma_knows_of_it(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        report = run("chroma", foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [KETTLE, LAMP]}))
        assert (report.created, report.damaged, report.left_out) == (2, (), {"embeddings": 2})
        record = memory.get("notes/k1")
        assert record is not None
        assert (record.text, record.kind, record.source) == (KETTLE["document"], "knowledge", KETTLE["uri"])
        assert record.time == datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
        wanted = {**KETTLE["metadata"], "chroma": {"collection": "notes", "id": "k1"}}  # type: ignore[dict-item]
        assert json.dumps(record.to_json()["metadata"], sort_keys=True) == json.dumps(wanted, sort_keys=True)

    def test_the_folder_is_taken_too(self, run: Run, tmp_path: Path) -> None:
        foreign.chroma(tmp_path / "db" / "chroma.sqlite3", {"notes": [LAMP]})
        assert run("chroma", tmp_path / "db").created == 1
        with pytest.raises(ImportFormatError, match="contains no chroma"):
            run("chroma", tmp_path)

    def test_a_link_out_of_the_folder_is_followed_only_where_that_is_asked_for(self, run: Run, tmp_path: Path) -> None:
        path = foreign.chroma(tmp_path / "private.db", {"notes": [LAMP]})
        (tmp_path / "db").mkdir()
        (tmp_path / "db" / "chroma.sqlite3").symlink_to(path)
        with pytest.raises(ImportFormatError, match="link to a file outside"):
            run("chroma", tmp_path / "db")
        assert run("chroma", tmp_path / "db", follow_links=True).created == 1

    def test_filters_reach_the_metadata_and_the_collection(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        run("chroma", foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [KETTLE, LAMP], "other": [LAMP]}))
        assert [record.id for record in memory.find(f.parse("meta.room=kitchen"))] == ["notes/k1"]
        assert memory.count(f.parse("meta[chroma][collection]=other")) == 1

    def test_equal_ids_of_two_collections_are_two_records(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        path = foreign.chroma(tmp_path / "chroma.sqlite3", {"one": [LAMP], "two": [LAMP]})
        assert run("chroma", path).created == 2
        assert {record.id for record in memory.find()} == {"one/l1", "two/l1"}

    def test_a_collection_of_another_database_has_its_name_before(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        run("chroma", foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [LAMP]}, database="work"))
        assert [record.id for record in memory.find()] == ["work%2Fnotes/l1"]

    def test_a_document_without_text_is_stored_and_not_searched(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        documents: list[Any] = [
            {"id": "a", "metadata": {"only": "meta"}},
            {"id": "b", "document": ""},
            {"id": "c", "document": " \n"},
        ]
        path = foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": documents})
        assert run("chroma", path).created == 3
        assert [record.searchable for record in memory.find()] == [False] * 3
        assert memory.count(f.parse("meta.only=meta")) == 1
        assert run("chroma", path).unchanged == 3

    def test_documents_that_chroma_changed_are_updated_and_others_stay(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        path = foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [KETTLE, LAMP]})
        run("chroma", path)
        memory.update("notes/l1", content="The lamp is broken")
        memory.update("notes/k1", tags=["mine"])
        changed = {**KETTLE, "document": "The kettle leaks", "metadata": {"room": "cellar"}}
        report = run("chroma", foreign.chroma(path, {"notes": [changed, LAMP]}))
        assert (report.updated, report.unchanged, report.differing) == (1, 1, 1)
        kettle, lamp = memory.get("notes/k1"), memory.get("notes/l1")
        assert kettle is not None
        assert lamp is not None
        assert (kettle.text, kettle.tags, kettle.metadata["room"]) == ("The kettle leaks", ("mine",), "cellar")
        assert lamp.text == "The lamp is broken"

    def test_changes_that_are_only_in_the_queue_are_reported(self, run: Run, tmp_path: Path) -> None:
        path = foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [LAMP], "other": [KETTLE]})
        with closing(sqlite3.connect(path)) as database:
            waiting = {"operation": 0, "topic": "persistent://default/default/c0", "id": "x"}
            foreign.add(database, embeddings_queue=[{"seq_id": 2, **waiting}, {"seq_id": 3, **waiting}])
        report = run("chroma", path)
        (damage,) = report.damaged  # the first is in the tables already
        assert (damage.place, damage.reason[:9]) == ("collection 'notes'", "1 changes")
        assert report.created == 2

    def test_tables_of_early_releases_without_flags_are_read(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        path = foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [LAMP]})
        with closing(sqlite3.connect(path)) as database:
            database.executescript(
                "DROP TABLE embedding_metadata_array; DROP TABLE collection_metadata; "
                "ALTER TABLE embedding_metadata DROP COLUMN bool_value; ALTER TABLE max_seq_id RENAME TO old; "
                "CREATE TABLE max_seq_id (segment_id TEXT PRIMARY KEY, seq_id BLOB NOT NULL);"
            )
            foreign.add(database, max_seq_id=[{"segment_id": "METADATA0", "seq_id": (9).to_bytes(8, "big")}])
            waiting = {"operation": 0, "topic": "persistent://default/default/c0", "id": "x"}
            foreign.add(database, embeddings_queue=[{"seq_id": 9, **waiting}])
        report = run("chroma", path)
        assert (report.created, report.damaged) == (1, ())
        assert memory.find()[0].text == "The lamp is old"

    def test_values_that_are_no_text_or_time_are_reported_and_the_others_imported(
        self, run: Run, tmp_path: Path
    ) -> None:
        path = foreign.chroma(
            tmp_path / "chroma.sqlite3", {"notes": [{"id": f"d{at}", "document": "x"} for at in range(6)]}
        )
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE embedding_metadata SET string_value = NULL, int_value = 5 WHERE id = 1")
            database.execute("UPDATE embedding_metadata SET string_value = CAST(x'ff' AS TEXT) WHERE id = 2")
            database.execute("UPDATE embeddings SET created_at = 'soon' WHERE id = 3")
            database.execute("UPDATE embeddings SET embedding_id = CAST(x'ff' AS TEXT) WHERE id = 4")
            foreign.add(database, embedding_metadata=[{"id": 5, "key": "x", "float_value": float("inf")}])
        report = run("chroma", path)
        assert (report.created, len(report.damaged)) == (1, 5)
        assert run("chroma", path).damaged == report.damaged


class TestOnly:
    def test_only_the_collection_that_is_named_is_imported(self, tmp_path: Path) -> None:
        path = foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [KETTLE, LAMP], "other": [LAMP]})
        command = ["import", "chroma", str(path), "--db", str(tmp_path / "m.db"), "--only"]
        done = CliRunner().invoke(app, [*command, "other"])
        assert done.exit_code == 0, done.output
        assert "1 remembered" in done.output
        assert "documents of other collections (2)" in done.output
        refused = CliRunner().invoke(app, [*command, "none"])
        assert refused.exit_code != 0
        assert "has no collection 'none': it has notes, other" in refused.output

    def test_names_must_be_a_list(self, run: Run, tmp_path: Path) -> None:
        path = foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [LAMP]})
        with pytest.raises(InvalidArgumentError, match="list of names"):
            run("chroma", path, only="notes")


class TestTheAnswer:
    def test_the_answer_of_get_is_read(self, run: Run, write: Write, memory: Memory) -> None:
        path = write("notes.json", ANSWER)
        report = run("chroma", path)
        assert (report.created, report.damaged, report.left_out) == (4, (), {})
        record = memory.get("notes/d")
        assert record is not None
        assert (record.text, record.source, record.metadata["x"]) == ("four", "file:///d", 1)
        assert run("chroma", path).unchanged == 4

    def test_it_gives_the_records_of_the_file(self, run: Run, write: Write, memory: Memory, tmp_path: Path) -> None:
        run("chroma", foreign.chroma(tmp_path / "chroma.sqlite3", {"notes": [KETTLE]}))
        lists = {f"{key}s": [KETTLE[key]] for key in ("id", "document", "metadata", "uri")}
        report = run("chroma", write("notes.json", lists))
        assert (report.unchanged, report.differing) == (1, 0)
        assert memory.count() == 1

    def test_lists_that_were_not_asked_for_may_be_missing_and_embeddings_are_named(
        self, run: Run, write: Write
    ) -> None:
        answer = {"ids": ["a"], "documents": ["text"], "metadatas": None, "embeddings": [[0.5, 1.0]]}
        report = run("chroma", write("notes.json", answer))
        assert (report.created, report.left_out) == (1, {"embeddings": 1})

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            ({"ids": [["a"]], "documents": [["x"]]}, "answer of query"),
            ({"ids": ["a", "b"], "documents": ["x"]}, '"documents"'),
            ({"ids": ["a"], "metadatas": {"a": 1}}, '"metadatas"'),
            ({"documents": ["x"]}, '"ids"'),
            (["a"], '"ids"'),
        ],
    )
    def test_other_json_is_refused(self, answer: Any, reason: str, run: Run, write: Write, memory: Memory) -> None:
        with pytest.raises(ImportFormatError, match=reason):
            run("chroma", write("notes.json", answer))
        assert memory.namespaces() == []

    def test_entries_of_another_form_are_reported(self, run: Run, write: Write) -> None:
        answer = {
            "ids": ["a", 2, "c", "d", "e"],
            "documents": ["x", "x", 5, "x", "half \ud800"],
            "metadatas": [None, None, None, "text", {"n": 10**30}],
        }
        report = run("chroma", write("notes.json", answer))
        assert (report.created, len(report.damaged)) == (1, 4)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | st.text(max_size=6)
METADATA = st.dictionaries(
    st.text(min_size=1, max_size=5).filter(lambda key: not key.startswith("chroma")),
    SCALARS | st.lists(st.text(max_size=4), min_size=1, max_size=3),
    max_size=4,
)
IDS = st.text("abcdeé/ ", min_size=1, max_size=4)
DOCUMENTS = st.lists(
    st.fixed_dictionaries({"id": IDS, "document": st.none() | st.text(max_size=8), "metadata": METADATA}),
    max_size=4,
    unique_by=lambda document: str(document["id"]),
)


@pytest.mark.in_process
@given(documents=DOCUMENTS)
def test_any_documents_come_back_from_the_file_and_from_the_answer(
    documents: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-chroma"
    path = foreign.chroma(folder / "chroma.sqlite3", {"notes": documents})
    (folder / "notes.json").write_text(
        json.dumps(
            {
                "ids": [each["id"] for each in documents],
                "documents": [each["document"] for each in documents],
                "metadatas": [each["metadata"] or None for each in documents],
            }
        )
    )
    wanted = sorted((each["id"], each["document"] or "", each["metadata"]) for each in documents)
    for source in (path, folder / "notes.json"):
        with recollect.open(":memory:") as memory:
            report = import_path(memory, "chroma", source)
            assert report.damaged == ()
            found = []
            for record in memory.find():
                metadata = dict(record.metadata)
                found.append((metadata.pop("chroma")["id"], record.text, metadata))
            assert json.dumps(sorted(found), sort_keys=True) == json.dumps(wanted, sort_keys=True)
            again = import_path(memory, "chroma", source)
            assert (again.created, again.updated, again.differing) == (0, 0, 0)
            assert memory.check() == []
