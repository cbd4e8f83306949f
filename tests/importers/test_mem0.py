"""Memories of mem0 as points of Qdrant and from its history, which is the same record as from its JSON."""

from __future__ import annotations

import json
import pickle
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import foreign
from tests.exports import exported

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.compat.mem0 import Memory as CompatibleMemory
from recollect.errors import ImportFormatError
from recollect.importers import ImportReport, import_path
from recollect.importers.mem0 import EXPORT

Run = Callable[..., ImportReport]
Write = Callable[[str, Any], Path]

# As `client.scroll` of qdrant-client 1.20.0 returned them after `Memory.add` and `update` of mem0ai 2.2.1.
SEATS: dict[str, Any] = {
    "id": "5d30d706-5f48-401e-92ee-8feebaff6a64",
    "payload": {
        "app": "booking",
        "user_id": "ana",
        "agent_id": "bot",
        "run_id": "r1",
        "role": "user",
        "data": "Prefers aisle seats",
        "hash": "c4e51c8018e326922406d376b21c6900",
        "created_at": "2026-11-29T01:26:00.711898+00:00",
        "updated_at": "2026-11-29T01:26:00.721415+00:00",
        "text_lemmatized": "Prefers aisle seats",
    },
    "vector": [0.8, 0.16, 0.32, 0.48],
    "shard_key": None,
    "order_value": None,
}
DOG = {"id": "3fcf478b-e168-49ad-a9cf-78fcf1119fec", "payload": {"user_id": "ana", "data": "Has a dog"}}
TEA = {"id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "payload": {"user_id": "ana", "data": "Drinks tea"}}
CREATED = datetime(2026, 11, 29, 1, 26, 0, 711898, tzinfo=UTC)


def page(*points: Any, following: Any = None) -> dict[str, Any]:
    return {"result": {"points": list(points), "next_page_offset": following}, "status": "ok", "time": 0.1}


def lines(*values: Any) -> str:
    return "\n".join(map(json.dumps, values)) + "\n"


class TestPoints:
    @pytest.mark.parametrize(
        "text",
        [
            json.dumps(page(SEATS, DOG, TEA)),
            lines(page(SEATS, following="b"), page(DOG, TEA)),
            json.dumps(page(SEATS, following="b"), indent=2) + json.dumps(page(DOG, TEA), indent=2),
            json.dumps([page(SEATS, following="b"), page(DOG, TEA)]),
            json.dumps([SEATS, DOG, TEA]),
            lines(SEATS, DOG, TEA),
            json.dumps({"points": [SEATS, DOG, TEA], "next_page_offset": None}),
            json.dumps({"results": [SEATS, DOG, TEA]}),
        ],
        ids=["a page", "lines of pages", "pages", "a list of pages", "a list", "lines", "only the points", "results"],
    )
    def test_points_are_read_in_all_forms_in_which_they_are_exported(
        self, text: str, run: Run, write: Write, memory: Memory
    ) -> None:
        path = write("points.json", text)
        report = run("mem0", path)
        assert (report.created, report.damaged) == (3, ())
        assert report.left_out == {"vectors": 1, "texts for mem0's keyword search": 1}
        record = memory.get(SEATS["id"])
        assert record is not None
        assert (record.text, record.kind, record.time) == ("Prefers aisle seats", "user_fact", CREATED)
        assert (record.user, record.agent, record.session, record.role) == ("ana", "bot", "r1", "user")
        assert dict(record.metadata) == {
            "app": "booking",
            "hash": "c4e51c8018e326922406d376b21c6900",
            "updated_at": "2026-11-29T01:26:00.721415+00:00",
        }
        assert run("mem0", path).unchanged == 3

    def test_a_last_page_that_names_another_one_is_reported(self, run: Run, write: Write) -> None:
        report = run("mem0", write("points.json", page(SEATS, following="b")))
        assert [damage.place for damage in report.damaged] == ["next"]

    def test_what_is_no_memory_is_reported_with_its_place(self, run: Run, write: Write) -> None:
        without = {"id": "x", "payload": {"user_id": "ana"}}
        numbered = {"id": 7, "payload": {"data": 5}}
        report = run("mem0", write("points.json", lines(SEATS, without, numbered, "text", None)))
        assert report.created == 1
        assert [damage.place for damage in report.damaged] == ["line 2", "line 3", "line 4", "line 5"]

    def test_entities_are_left_out_and_named(self, run: Run, write: Write) -> None:
        entity = {"id": "e", "payload": {"data": "Ana", "entity_type": "PERSON", "linked_memory_ids": ["a"]}}
        report = run("mem0", write("points.json", [DOG, entity]))
        assert (report.created, report.left_out) == (1, {"entities that mem0 found in memories": 1})

    def test_a_memory_is_true_until_the_end_of_its_last_day(self, run: Run, write: Write, memory: Memory) -> None:
        def ending(point: dict[str, Any], day: str) -> dict[str, Any]:
            return {**point, "payload": {**point["payload"], "expiration_date": day}}

        report = run("mem0", write("points.json", [ending(DOG, "2026-11-01"), ending(SEATS, "soon")]))
        assert "expiration_date" in report.damaged[0].reason
        (record,) = memory.find()
        assert record.valid_to == datetime(2026, 11, 2, tzinfo=UTC)
        assert record.metadata["expiration_date"] == "2026-11-01"


def qdrant(folder: Path, *, evil: bytes = b"") -> Path:
    """A folder of Qdrant's local mode: its points are pickled."""
    path = folder / "qdrant" / "collection" / "mem0" / "storage.sqlite"
    foreign.made(path, "CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)", points=[{"id": "a", "point": evil}])
    return folder / "qdrant"


def test_our_layer_with_the_names_of_mem0_returns_what_mem0_returned(run: Run, write: Write, memory: Memory) -> None:
    # As `get_all` of mem0ai 2.2.1 returned them.
    seats: dict[str, Any] = {
        "id": "5d30d706-5f48-401e-92ee-8feebaff6a64",
        "memory": "Prefers aisle seats",
        "hash": "c4e51c8018e326922406d376b21c6900",
        "metadata": {"app": "booking"},
        "created_at": "2026-11-29T01:26:00.711898+00:00",
        "user_id": "ana",
        "agent_id": "bot",
        "run_id": "r1",
        "role": "user",
    }
    dog: dict[str, Any] = {
        "id": "3fcf478b-e168-49ad-a9cf-78fcf1119fec",
        "memory": "Has a dog",
        "hash": "883a39b040a8a589937fb7064fb5f7e6",
        "created_at": "2026-11-29T01:26:00.732303+00:00",
        "user_id": "ana",
        "role": "user",
        "expiration_date": "2099-01-01",
    }
    run("mem0", write("all.json", {"results": [seats, dog]}))
    found = CompatibleMemory(memory=memory).get_all(filters={"user_id": "ana"})["results"]
    for wanted in (seats, dog):
        (shown,) = (each for each in found if each["id"] == wanted["id"])
        for key, value in wanted.items():
            if key == "metadata":
                assert value.items() <= shown[key].items()
            else:
                assert shown[key] == value


class TestQdrantsLocalMode:
    @pytest.mark.parametrize("below", ["", "collection/mem0", "collection/mem0/storage.sqlite"])
    def test_a_pickle_is_never_loaded(self, below: str, run: Run, memory: Memory, tmp_path: Path) -> None:
        class Evil:
            def __reduce__(self) -> Any:
                return (Path.touch, (tmp_path / "ran",))

        evil = pickle.dumps(Evil())
        folder = qdrant(tmp_path, evil=evil)
        with pytest.raises(ImportFormatError, match="pickled"):
            run("mem0", folder / below)
        assert memory.namespaces() == []
        assert not (tmp_path / "ran").exists()
        pickle.loads(evil)
        assert (tmp_path / "ran").exists(), "control: loading it does run"

    def test_the_command_of_the_error_exports_the_points(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = qdrant(tmp_path / "a folder's")
        with pytest.raises(ImportFormatError) as refused:
            run("mem0", folder)
        command = str(refused.value).partition("where mem0 is installed: ")[2].partition("; nothing was")[0]
        assert command.endswith(" > points.json")
        # In place of qdrant-client: `scroll` as it is there, which reads pickles. (By hand, with the real one.)
        (tmp_path / "qdrant_client.py").write_text(
            "from types import SimpleNamespace\n"
            "class QdrantClient:\n"
            '    def __init__(self, path): assert path.endswith("a folder\'s/qdrant"), path\n'
            "    def scroll(self, collection_name, limit):\n"
            "        assert (collection_name, limit) == ('mem0', 10**9)\n"
            "        points = [SimpleNamespace(id='a', payload={'data': 'Likes \\u00e9clairs\\n', 'user_id': 'ana'})]\n"
            "        return points * 2, None\n"
            "    def close(self): pass\n"
        )
        python = shlex.quote(sys.executable)
        subprocess.run(["sh", "-c", command.replace("python", python, 1)], cwd=tmp_path, check=True)
        report = run("mem0", tmp_path / "points.json")
        assert (report.created, report.damaged) == (2, ())

    def test_the_page_shows_the_same_program(self) -> None:
        page = Path(recollect.__file__).parents[2] / "docs" / "importing.md"
        assert EXPORT in page.read_text("utf-8")

    def test_a_folder_that_is_something_else_is_refused(self, run: Run, tmp_path: Path) -> None:
        with pytest.raises(ImportFormatError, match="is a folder"):
            run("mem0", tmp_path)


def added(text: str, memory_id: str = "m", **more: Any) -> dict[str, Any]:
    at = "2026-05-04T09:30:00+00:00"
    return {"memory_id": memory_id, "event": "ADD", "new_memory": text, "updated_at": at, **more}


def updated(text: str, old: str, memory_id: str = "m", **more: Any) -> dict[str, Any]:
    at = "2026-05-05T09:30:00+00:00"
    event = {"memory_id": memory_id, "event": "UPDATE", "old_memory": old, "new_memory": text, "updated_at": at}
    return event | more


def deleted(old: str, memory_id: str = "m") -> dict[str, Any]:
    return {"memory_id": memory_id, "event": "DELETE", "old_memory": old, "new_memory": None, "is_deleted": 1}


def texts(memory: Memory, record_id: str = "m") -> list[str | None]:
    """The texts that a record had."""
    return [None if each.record is None else each.record.text for each in memory.history(record_id)]


class TestHistory:
    def test_the_texts_of_a_memory_are_the_versions_of_its_record(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        events = [added("tea", role="user"), added("dog", "d"), updated("green tea", "tea"), updated("mate", "x")]
        path = foreign.history(tmp_path / "history.db", *events)
        report = run("mem0", path)
        assert (report.created, report.updated, report.damaged) == (2, 2, ())
        assert texts(memory) == ["tea", "green tea", "mate"]
        record = memory.get("m")
        assert record is not None
        assert (record.text, record.kind, record.time) == ("mate", "user_fact", datetime(2026, 5, 4, 9, 30, tzinfo=UTC))
        assert record.metadata["updated_at"] == "2026-05-05T09:30:00+00:00"
        assert run("mem0", path).unchanged == 4
        assert texts(memory) == ["tea", "green tea", "mate"]

    def test_a_memory_that_was_deleted_is_not_stored_and_is_counted(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        events = [added("tea"), added("dog", "d"), deleted("tea"), added("cat", "c"), deleted("cat", "c")]
        report = run("mem0", foreign.history(tmp_path / "history.db", *events))
        assert (report.created, report.left_out) == (1, {"memories that mem0 deleted": 2})
        assert [record.text for record in memory.find()] == ["dog"]

    def test_a_memory_that_was_added_again_is_there(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        run("mem0", foreign.history(tmp_path / "history.db", added("tea"), deleted("tea"), added("coffee")))
        assert [record.text for record in memory.find()] == ["coffee"]

    def test_a_history_that_begins_with_an_update_has_the_text_before_it(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        run("mem0", foreign.history(tmp_path / "history.db", updated("green tea", "tea")))
        assert texts(memory) == ["tea", "green tea"]

    def test_a_later_import_adds_only_the_later_texts(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        path = foreign.history(tmp_path / "history.db", added("tea"))
        run("mem0", path, defaults={"user": "ana"})
        memory.update("m", tags=["drink"], metadata={"seen": True})
        foreign.history(path, added("tea"), updated("green tea", "tea"))
        report = run("mem0", path, defaults={"user": "ana"})
        assert (report.created, report.updated, report.unchanged) == (0, 1, 1)
        record = memory.get("m")
        assert record is not None
        assert (record.text, record.tags, record.user) == ("green tea", ("drink",), "ana")
        assert record.metadata["seen"] is True

    def test_what_was_changed_here_stays_and_is_counted(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        path = foreign.history(tmp_path / "history.db", added("tea"), updated("green tea", "tea"))
        run("mem0", path)
        memory.update("m", content="black tea")
        report = run("mem0", path)
        assert (report.unchanged, report.differing) == (2, 1)
        assert texts(memory) == ["tea", "green tea", "black tea"]

    def test_the_three_sources_agree_on_one_record(
        self, run: Run, write: Write, memory: Memory, tmp_path: Path
    ) -> None:
        point = {"id": "m", "payload": {"data": "green tea", "user_id": "ana", "app": "shop"}}
        run("mem0", write("points.json", [point]))
        found = {"results": [{"id": "m", "memory": "green tea", "user_id": "ana"}]}
        assert run("mem0", write("all.json", found)).unchanged == 1
        events = added("tea"), updated("green tea", "tea"), updated("mate", "green tea")
        run("mem0", foreign.history(tmp_path / "history.db", *events))
        (record,) = memory.find()
        assert (record.id, record.text, record.user, record.metadata["app"]) == ("m", "mate", "ana", "shop")

    def test_a_history_without_users_and_what_names_them_are_one_record(
        self, run: Run, write: Write, memory: Memory, tmp_path: Path
    ) -> None:
        run("mem0", foreign.history(tmp_path / "history.db", added("tea"), updated("mate", "tea")))
        found = {"results": [{"id": "m", "memory": "mate", "user_id": "ana"}]}
        run("mem0", write("all.json", found))
        (record,) = memory.find()
        assert (record.id, record.text, record.user) == ("m", "mate", "ana")
        assert run("mem0", write("all.json", found)).unchanged == 1

    def test_another_record_that_has_the_id_by_chance_is_not_changed(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        memory.remember("Bob has a dog", id="m", user="bob", kind="user_fact")
        run("mem0", foreign.history(tmp_path / "history.db", added("tea"), updated("mate", "tea")))
        assert texts(memory) == ["Bob has a dog"]
        assert {(record.user, record.text) for record in memory.find()} == {("bob", "Bob has a dog"), (None, "mate")}

    def test_a_policy_that_redacts_makes_no_new_versions(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        memory.set_policies(redaction="redact")
        events = added("write to ana@example.com"), updated("write to bob@example.com now", "x")
        path = foreign.history(tmp_path / "history.db", *events)
        run("mem0", path)
        assert texts(memory) == ["write to ***@***.***", "write to ***@***.*** now"]
        root = exported(memory)
        assert run("mem0", path).unchanged == 2
        assert exported(memory) == root

    @pytest.mark.parametrize(
        ("schema", "names"),
        [
            (
                "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, prev_value TEXT, new_value TEXT, "
                "event TEXT, timestamp DATETIME, is_deleted INTEGER)",
                ("prev_value", "new_value", "timestamp"),
            ),
            (
                "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, "
                "new_value TEXT, event TEXT, created_at DATETIME, is_deleted INTEGER, chat INTEGER)",
                ("old_memory", "new_memory", "created_at"),
            ),
        ],
        ids=["first", "second"],
    )
    def test_the_tables_of_earlier_releases_are_read(
        self, schema: str, names: tuple[str, str, str], run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        old, new, time = names
        at = "2024-08-01T10:00:00-07:00"
        rows: list[dict[str, Any]] = [
            {"id": "1", "memory_id": "m", new: "tea", "event": "ADD", time: at},
            {"id": "2", "memory_id": "m", old: "tea", new: "mate", "event": "UPDATE", time: at},
        ]
        if "chat" in schema:
            rows = [{**row, "chat": 7} for row in rows]
        assert run("mem0", foreign.made(tmp_path / "old.db", schema, history=rows)).created == 1
        assert dict(memory.find()[0].metadata) == ({"chat": 7} if "chat" in schema else {})
        assert texts(memory) == ["tea", "mate"]
        assert memory.find()[0].time == datetime(2024, 8, 1, 17, tzinfo=UTC)

    def test_a_row_that_cannot_be_read_is_reported_and_the_others_are_imported(
        self, run: Run, memory: Memory, tmp_path: Path
    ) -> None:
        events = [
            added("tea"),
            added("late", "l", created_at="yesterday"),
            {"memory_id": "n", "event": "ADD"},
            {"memory_id": None, "event": "ADD", "new_memory": "of no memory"},
            added("", "e"),
            added("half \ud800 of a pair", "s"),
            {"memory_id": "b", "event": "ADD", "new_memory": b"\xff\xfe"},
            {"memory_id": "i", "event": "ADD", "new_memory": 10**30},
            {"memory_id": b"bytes", "event": "ADD", "new_memory": b"text as bytes"},
        ]
        report = run("mem0", foreign.history(tmp_path / "history.db", *events))
        assert {record.text for record in memory.find()} == {"tea", str(10**30), "text as bytes"}
        assert len(report.damaged) == 6
        assert run("mem0", tmp_path / "history.db").damaged == report.damaged

    def test_the_last_messages_are_turns_of_their_conversation(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        scope = "agent_id=bot&run_id=r1&user_id=a%26b"
        said = [("user", "I like tea", 1), ("assistant", "Noted", 2), ("user", "Which tea?", 3)]
        messages = [
            {
                "id": f"x{at}",
                "session_scope": scope,
                "role": role,
                "content": text,
                "name": "Ana" if role == "user" else None,
                "created_at": f"2026-05-04T09:30:0{at}",
            }
            for role, text, at in said
        ]
        path = foreign.history(tmp_path / "history.db", messages=messages[:2])
        run("mem0", path, zone=UTC)
        foreign.history(path, messages=messages[1:])  # mem0 keeps the last ten
        report = run("mem0", path, zone=UTC)
        assert (report.created, report.unchanged) == (1, 1)
        turns = memory.find(f.conversation(scope), order="position")
        assert [turn.speaker for turn in turns] == ["Ana", None, "Ana"]
        assert [(turn.role, turn.text) for turn in turns] == [(role, text) for role, text, _ in said]
        assert {(turn.user, turn.agent, turn.session) for turn in turns} == {("a&b", "bot", "r1")}

    def test_a_memory_of_another_user_gets_an_id_of_its_own(self, run: Run, memory: Memory, tmp_path: Path) -> None:
        path = foreign.history(tmp_path / "history.db", added("tea"), updated("mate", "tea"))
        run("mem0", path, defaults={"user": "ana"})
        report = run("mem0", path, defaults={"user": "bob"})
        assert (report.created, report.renumbered, len(report.damaged)) == (1, 1, 1)
        assert {(record.user, record.text) for record in memory.find()} == {("ana", "mate"), ("bob", "mate")}
        assert run("mem0", path, defaults={"user": "bob"}).unchanged == 1


EVENTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["tea", "mate", "dog", "cat", None])), max_size=12
)  # None: deleted


@pytest.mark.in_process
@given(events=EVENTS, cut=st.integers(0, 12))
def test_any_history_imported_in_two_parts_has_the_state_of_mem0(
    events: list[tuple[str, str | None]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-history.db"
    rows = [deleted("x", name) if text is None else added(text, name) for name, text in events]
    with recollect.open(":memory:") as memory:
        for part in (rows[:cut], rows, rows):
            foreign.history(path, *part)
            import_path(memory, "mem0", path)
        state: dict[str, str] = {}
        for name, text in events:
            if text is None:
                state.pop(name, None)
            else:
                state[name] = text
        found = {record.id: record.text for record in memory.find()}
        assert state.items() <= found.items()  # and what mem0 deleted since stays
        assert memory.check() == []
        with recollect.open(":memory:") as once:
            foreign.history(path, *rows)
            import_path(once, "mem0", path)
            assert {record.id for record in once.find()} == set(state)
            for name in state:
                wanted = [text for each, text in events if each == name and text is not None]
                assert texts(once, name) == [text for text, _ in groupby(wanted)]


def test_thousands_of_versions_need_few_commits(run: Run, memory: Memory, tmp_path: Path) -> None:
    events = [added(f"state {version} of {number}", f"m{number}") for version in range(3) for number in range(1500)]
    path = foreign.history(tmp_path / "history.db", *events)
    assert run("mem0", path).created == 1500
    assert memory.head().seq < 20
    assert texts(memory, "m1499") == [f"state {version} of 1499" for version in range(3)]
