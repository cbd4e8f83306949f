"""The memory with the names of opencortex: its trees, objects, hashes, its file, and the memory of the process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.compat import opencortex
from recollect.compat.opencortex import (
    OpencortexMemory,
    cosine_similarity,
    file_name_nondirectory,
    find_headline_missing_id,
    memory_path,
    org_id_new,
    process,
)
from recollect.errors import (
    DamagedStoreError,
    ImportFormatError,
    InvalidArgumentError,
    NotAStoreError,
    RecollectError,
    StoreError,
    UnknownRecordError,
    UnsupportedError,
)
from recollect.models.embedding.base import Supplied


def headline(title: str, *contents: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "HEADLINE", "properties": {"TITLE": title, **properties}, "contents": [*contents]}


@pytest.fixture
def memory() -> Iterator[OpencortexMemory]:
    with OpencortexMemory(":memory:") as memory:
        yield memory


def known(memory: OpencortexMemory, object_id: str) -> opencortex.OrgObject:
    found = memory.lookup_object(object_id)
    assert found is not None
    return found


def hash_of(memory: OpencortexMemory, each: opencortex.OrgObject) -> str:
    """Return the hash of an object from its own values and the hashes of its children."""
    below = [known(memory, child).hash for child in each.children]
    return memory.compute_merkle_hash(each.id, each.type, each.attributes, each.content, below)


class TestTrees:
    def test_names_may_be_keywords_of_lisp(self, memory: OpencortexMemory) -> None:
        lisp = {
            ":TYPE": ":HEADLINE",
            ":PROPERTIES": {":TITLE": "Boats", ":ID": "a", ":TODO": "NEXT", ":effort": 1},
            ":RAW-CONTENT": "All boats.",
            ":CONTENTS": [{"TYPE": "HEADLINE", "Properties": {"title": "Sails", "id": "b"}}],
        }
        plain = headline("Boats", headline("Sails", ID="b"), ID="a", TODO="NEXT", effort=1)
        assert memory.ingest_ast(lisp) == "a"
        root = memory.memory.outline.root
        memory.ingest_ast({**plain, "raw_content": "All boats."})
        assert memory.memory.outline.root == root
        memory.ingest_ast(plain)
        assert memory.memory.outline.root != root

    def test_texts_among_the_contents_are_content(self, memory: OpencortexMemory) -> None:
        memory.ingest_ast(headline("Boats", "All boats.", headline("Sails", ID="b"), ID="a"))
        assert (known(memory, "a").content, known(memory, "a").children) == ("Boats\nAll boats.", ("b",))

    @pytest.mark.parametrize(
        "tree",
        [
            None,
            "text",
            [],
            {},
            {":TYPE": 3},
            {"type": "A", "properties": {"ID": "a", ":ID": "b"}},
            {"type": "A", "raw-content": "a", ":RAW-CONTENT": "b"},
            {"type": "A", "other": 1},
            {"type": "A", "contents": "text"},
            {"type": "A", "contents": [3]},
            {"type": "A", 3: 4},
        ],
    )
    def test_what_is_no_tree_is_refused_and_stores_nothing(self, memory: OpencortexMemory, tree: Any) -> None:
        with pytest.raises((InvalidArgumentError, ImportFormatError)):
            memory.ingest_ast(tree)
        assert memory.memory.outline.roots() == []
        memory.ingest_ast({"type": "A", "properties": {"ID": "a", ":ID": "a"}})

    def test_the_first_headline_without_an_id_is_found(self) -> None:
        tree = {"type": "DOCUMENT", "contents": ["text", headline("a", ID="a")]}
        assert find_headline_missing_id(tree) is None
        missing = {"type": "headline", "properties": {"ID": " "}, "contents": []}
        tree["contents"][1]["contents"] = [{"type": "SECTION"}, missing]  # type: ignore[index]
        tree["contents"].append({"type": "HEADLINE"})  # type: ignore[attr-defined]
        assert find_headline_missing_id(tree) is missing
        lisp = {":TYPE": ":HEADLINE", ":PROPERTIES": {":ID": "a"}}
        assert find_headline_missing_id(lisp) is None
        del lisp[":PROPERTIES"]
        assert find_headline_missing_id(lisp) is lisp
        deep: dict[str, Any] = {"type": "HEADLINE"}
        for _ in range(5000):
            deep = {"type": "SECTION", "contents": [deep]}
        assert find_headline_missing_id(deep) == {"type": "HEADLINE"}

    def test_a_tree_that_contains_itself_is_refused(self, memory: OpencortexMemory) -> None:
        below: dict[str, Any] = {"type": "HEADLINE", "properties": {"ID": "b"}, "contents": []}
        tree = {"type": "HEADLINE", "properties": {"ID": "a"}, "contents": [below, below]}
        below["contents"] += [tree, tree]
        calls: list[Callable[[Any], object]] = [
            memory.ingest_ast,
            memory.memory.outline.ingest,
            find_headline_missing_id,
        ]
        for call in calls:
            with pytest.raises(ImportFormatError):
                call(tree)
        twice = {"type": "HEADLINE", "properties": {"ID": "b"}}
        assert find_headline_missing_id({"type": "SECTION", "contents": [twice, twice]}) is None

    @pytest.mark.parametrize(
        "tree", [None, [], {}, {"type": 1}, {"type": "A", "contents": "x"}, {"type": "A", "contents": [1]}]
    )
    def test_what_is_no_tree_has_no_headlines(self, tree: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="must be an object"):
            find_headline_missing_id(tree)


class TestObjects:
    def test_an_object_has_its_fields(self, memory: OpencortexMemory) -> None:
        made = memory.ingest_ast(headline("Boats", headline("Sails", ID="b"), headline("Oars"), TODO="NEXT"))
        boats = known(memory, made)
        assert (boats.type, boats.parent_id, boats.content) == ("HEADLINE", None, "Boats\n")
        assert boats.attributes == {"TITLE": "Boats", "TODO": "NEXT"}
        assert (boats.children[0], len(boats.children)) == ("b", 2)
        assert known(memory, "b").attributes == {"ID": "b", "TITLE": "Sails"}
        assert (known(memory, "b").parent_id, known(memory, "b").children) == (made, ())
        assert memory.memory.outline.version(boats.version).id == made

    def test_the_hash_of_the_values_of_an_object_is_its_hash(self, memory: OpencortexMemory) -> None:
        memory.ingest_ast(
            {
                "type": "DOCUMENT",
                "properties": {"ID": "d"},
                "contents": [headline("a", "text", {"type": "SECTION", "properties": {"ID": "s"}}, ID="a", TODO="x")],
            }
        )
        memory.ingest_ast(headline("without a text", ID="b"))
        for each in "dasb":
            found = known(memory, each)
            assert found.hash == hash_of(memory, found) == memory.compute_merkle_hash(each)
        a = known(memory, "a")
        below = [known(memory, "s").hash]
        assert memory.compute_merkle_hash("a", "HEADLINE", {"TODO": "x", "TITLE": "z"}, a.content, below) == a.hash
        for changed in (
            ("b", "HEADLINE", a.attributes, a.content, below),
            ("a", "SECTION", a.attributes, a.content, below),
            ("a", "HEADLINE", {"TODO": "y"}, a.content, below),
            ("a", "HEADLINE", a.attributes, "a\ntext|", below),
            ("a", "HEADLINE", a.attributes, a.content, []),
        ):
            assert memory.compute_merkle_hash(*changed) != a.hash

    def test_the_order_of_attributes_does_not_matter_and_that_of_children_does(self) -> None:
        one, other = "a" * 64, "b" * 64
        hashed = opencortex.compute_merkle_hash
        assert hashed("x", "A", {"p": 1, "q": 2}) == hashed("x", "A", {"q": 2, "p": 1})
        assert hashed("x", "A", children=[one, other]) != hashed("x", "A", children=[other, one])

    @pytest.mark.parametrize(
        "arguments",
        [
            {"id": "x", "content": "without a type"},
            {"id": "x", "children": ["a" * 64]},
            {"id": "", "type": "A"},
            {"id": "x", "type": ""},
            {"id": "x", "type": 3},
            {"id": "x", "type": "A", "attributes": [1]},
            {"id": "x", "type": "A", "attributes": {1: 2}},
            {"id": "x", "type": "A", "content": b""},
            {"id": "x", "type": "A", "children": ["a"]},
            {"id": "x", "type": "A", "children": [3]},
        ],
    )
    def test_what_has_no_hash_is_refused(self, memory: OpencortexMemory, arguments: dict[str, Any]) -> None:
        with pytest.raises(RecollectError):
            memory.compute_merkle_hash(**arguments)

    def test_a_missing_object_has_no_hash(self, memory: OpencortexMemory) -> None:
        with pytest.raises(UnknownRecordError):
            memory.compute_merkle_hash("nope")

    def test_objects_are_listed_by_the_attributes_that_they_show(self, memory: OpencortexMemory) -> None:
        memory.ingest_ast(headline("Boats", headline("Sails", ID="b", TODO="NEXT"), headline("Oars", ID="c"), ID="a"))
        memory.ingest_ast(headline("Boats", TODO="DONE"))

        def listed(*arguments: Any) -> list[str]:
            return [each.attributes["TITLE"] for each in memory.list_objects_with_attribute(*arguments)]

        assert sorted(listed("TODO")) == ["Boats", "Sails"]
        assert listed(":TODO", "NEXT") == listed("TODO", "NEXT") == ["Sails"]
        assert listed("TODO", "LATER") == listed("absent") == []
        assert (listed("TITLE", "Boats"), len(listed("TITLE")), listed("TITLE", "x")) == (["Boats"] * 2, 4, [])
        assert (listed("ID", "c"), len(listed(":ID"))) == (["Oars"], 3)
        for wrong in ("", ":", None, 3):
            with pytest.raises(InvalidArgumentError):
                memory.list_objects_with_attribute(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError):
            memory.list_objects_by_type(None)  # type: ignore[arg-type]

    def test_a_failing_embedder_is_a_warning_and_the_words_are_used(self) -> None:
        class Failing(Supplied):
            def embed(self, *_: Any, **__: Any) -> list[Any]:
                raise RuntimeError("no connection")

        with recollect.open(":memory:", embedder=Failing("failing/1", 2, {})) as below:
            memory = OpencortexMemory(below)
            memory.ingest_ast(headline("Sails of cotton", ID="a"))
            with pytest.warns(recollect.RecollectWarning) as warned:
                found = memory.semantic_search("sails of cotton")
            assert any("no connection" in str(each.message) for each in warned)
            assert [each.object.id for each in found] == ["a"]

    def test_lengths_that_differ_have_no_cosine(self) -> None:
        assert cosine_similarity([1.0, 2.0], [2.0, 4.0]) == pytest.approx(1)
        with pytest.raises(InvalidArgumentError):
            cosine_similarity([1.0], [1.0, 2.0])

    def test_new_ids_are_never_the_same(self) -> None:
        assert len({org_id_new() for _ in range(1000)}) == 1000


class TestFiles:
    def test_the_path_is_that_of_the_variable_or_of_the_data_folder(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.delenv("MEMORY_SNAPSHOT_PATH", raising=False)
        monkeypatch.setenv("OPENCORTEX_MEMORY", str(tmp_path / "older.db"))
        assert memory_path() == tmp_path / "older.db"
        monkeypatch.setenv("MEMORY_SNAPSHOT_PATH", str(tmp_path / "own.db"))
        assert memory_path() == tmp_path / "own.db"
        monkeypatch.setenv("MEMORY_SNAPSHOT_PATH", "")
        monkeypatch.setenv("OPENCORTEX_MEMORY", "")
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        assert memory_path() == tmp_path / "data" / "opencortex" / "memory.db"
        with OpencortexMemory() as memory:  # its folder is created, and a missing file is an empty memory
            assert memory.list_objects_by_type("HEADLINE") == []
        monkeypatch.setenv("MINE", "~/m.db")
        assert memory_path("MINE") == Path.home() / "m.db"
        with pytest.raises(InvalidArgumentError):
            memory_path("")

    @pytest.mark.parametrize(
        ("path", "name"), [("/a/b.org", "b.org"), ("b.org", "b.org"), ("/a/", ""), ("", ""), (Path("a/b"), "b")]
    )
    def test_the_last_part_of_a_path_is_what_follows_the_last_slash(self, path: Any, name: str) -> None:
        assert file_name_nondirectory(path) == name

    @pytest.mark.parametrize("path", [None, 3, b"/a/b"])
    def test_what_is_no_path_has_no_last_part(self, path: Any) -> None:
        with pytest.raises(InvalidArgumentError):
            file_name_nondirectory(path)

    def test_a_copy_is_saved_and_loaded(self, tmp_path: Path) -> None:
        own, copy = tmp_path / "own.db", tmp_path / "copy.db"
        with OpencortexMemory(own) as memory:
            memory.ingest_ast(headline("Boats", ID="a"))
            assert memory.save_memory_to_disk() == memory.save_memory_to_disk(own) == own
            assert memory.save_memory_to_disk(copy) == copy
            memory.ingest_ast(headline("Cars", ID="b"))
            assert memory.load_memory_from_disk() == own
            assert known(memory, "b").content == "Cars\n"
            assert memory.load_memory_from_disk(copy) == copy
            assert (known(memory, "a").content, memory.lookup_object("b")) == ("Boats\n", None)
            assert memory.load_memory_from_disk() == copy

    @pytest.mark.parametrize(
        ("damage", "error"),
        [
            (lambda data: b"no memory at all" * 100, NotAStoreError),
            (lambda data: data.replace(b"Mend the sails", b"Burn the sails"), DamagedStoreError),
            (lambda data: data[: len(data) // 2], StoreError),
        ],
    )
    def test_a_damaged_file_is_an_error_and_what_was_open_stays(
        self, tmp_path: Path, damage: Callable[[bytes], bytes], error: type[Exception]
    ) -> None:
        with OpencortexMemory(tmp_path / "other.db") as other:
            other.ingest_ast(headline("Mend the sails", ID="b"))
            copy = other.save_memory_to_disk(tmp_path / "copy.db")
        data = copy.read_bytes()
        with OpencortexMemory(tmp_path / "own.db") as memory:
            memory.ingest_ast(headline("Boats", ID="a"))
            copy.write_bytes(damage(data))
            with pytest.raises(error):
                memory.load_memory_from_disk(copy)
            assert (known(memory, "a").content, memory.lookup_object("b")) == ("Boats\n", None)
            assert memory.load_memory_from_disk() == tmp_path / "own.db"
            copy.write_bytes(data)
            memory.load_memory_from_disk(copy)
            assert known(memory, "b").content == "Mend the sails\n"

    def test_a_memory_without_a_file_is_neither_saved_nor_loaded(self, memory: OpencortexMemory) -> None:
        for call in (memory.save_memory_to_disk, memory.load_memory_from_disk):
            with pytest.raises(UnsupportedError, match="not in a file"):
                call()

    def test_the_memory_of_a_program_stays_its_own(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db") as below:
            with OpencortexMemory(below) as memory:
                memory.ingest_ast(headline("Boats", ID="a"))
                with pytest.raises(UnsupportedError, match="belongs to"):
                    memory.load_memory_from_disk()
                assert memory.save_memory_to_disk() == tmp_path / "a.db"
            assert below.outline.get("a") is not None  # it is still open


class TestProcess:
    @pytest.fixture(autouse=True)
    def _fresh(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
        monkeypatch.setattr(process, "_memory", None)
        monkeypatch.setenv("MEMORY_SNAPSHOT_PATH", str(tmp_path / "folder" / "own.db"))
        yield
        if process._memory is not None:
            process._memory.close()

    def test_the_functions_have_the_arguments_of_the_methods(self) -> None:
        for name, method in inspect.getmembers(OpencortexMemory, inspect.isfunction):
            if not name.startswith("_") and name != "close":
                arguments = list(inspect.signature(method).parameters.values())[1:]
                assert list(inspect.signature(getattr(opencortex, name)).parameters.values()) == arguments
        assert set(opencortex.__all__) >= {"lookup_object", *FUNCTIONS}

    def test_the_functions_share_one_memory_that_is_opened_once(self, tmp_path: Path) -> None:
        opencortex.ingest_ast(headline("Boats", ID="a"))
        assert opencortex.lookup_object("a") is not None
        assert opencortex.process_memory() is opencortex.process_memory()
        assert opencortex.save_memory_to_disk() == tmp_path / "folder" / "own.db"

    def test_what_cannot_be_opened_is_tried_again(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "own.db").write_text("no memory at all" * 100)
        for call in (opencortex.snapshot_memory, opencortex.load_memory_from_disk):
            with pytest.raises(NotAStoreError):
                call()
        (tmp_path / "folder" / "own.db").unlink()
        assert opencortex.load_memory_from_disk() == tmp_path / "folder" / "own.db"

    def test_a_damaged_file_is_not_loaded_at_the_first_call_either(self, tmp_path: Path) -> None:
        path = tmp_path / "folder" / "own.db"
        opencortex.ingest_ast(headline("Mend the sails", ID="b"))
        copy = opencortex.save_memory_to_disk(tmp_path / "copy.db")
        opencortex.process_memory().close()
        process._memory = None
        path.write_bytes(copy.read_bytes().replace(b"Mend the sails", b"Burn the sails"))
        with pytest.raises(DamagedStoreError):
            opencortex.load_memory_from_disk()
        assert process._memory is None
        opencortex.load_memory_from_disk(copy)
        assert opencortex.lookup_object("b") is not None

    def test_loading_follows_the_variable(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        opencortex.ingest_ast(headline("Boats", ID="a"))
        monkeypatch.setenv("MEMORY_SNAPSHOT_PATH", str(tmp_path / "other.db"))
        assert opencortex.lookup_object("a") is not None  # only loading looks at it
        assert opencortex.load_memory_from_disk() == tmp_path / "other.db"
        assert opencortex.lookup_object("a") is None


#: The functions of opencortex's memory, with underscores.
FUNCTIONS = (
    "ingest_ast",
    "lookup_object",
    "compute_merkle_hash",
    "snapshot_memory",
    "rollback_memory",
    "save_memory_to_disk",
    "load_memory_from_disk",
    "semantic_search",
    "cosine_similarity",
    "list_objects_by_type",
    "list_objects_with_attribute",
    "org_id_new",
    "find_headline_missing_id",
    "file_name_nondirectory",
)
