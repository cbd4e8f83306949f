"""`RecollectMemoryStore` beside the store in memory of the harness: versions, operations, paths and agents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai_harness")

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness import Memory
from pydantic_ai_harness.memory import (
    InMemoryStore,
    MemoryConflictError,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)
from tests.frameworks.serving import Child

import recollect
from recollect import filters as f
from recollect.compat.pydantic_ai import RecollectMemoryStore
from recollect.errors import InvalidArgumentError, InvalidRecordError, RejectedError, ScopeError

run = asyncio.run


@pytest.fixture
def store() -> Iterator[RecollectMemoryStore]:
    with RecollectMemoryStore() as store:
        yield store


def text(store: RecollectMemoryStore, path: str) -> str | None:
    file = run(store.read(path, max_chars=100_000))
    return None if file is None else file.content


def test_it_is_a_store_with_all_extensions(store: RecollectMemoryStore) -> None:
    assert isinstance(store, MemoryStore)
    assert isinstance(store, MetadataMemoryStore)
    assert isinstance(store, SearchableMemoryStore)


def test_a_file_changes_only_from_the_version_that_was_read(place: recollect.Memory) -> None:
    store = RecollectMemoryStore(place)
    first = run(store.write("ana/MEMORY.md", "Ana likes tea", expected_version=None))
    assert (first.replayed, first.existed) == (False, False)
    file = run(store.read("ana/MEMORY.md", max_chars=5))
    assert file is not None
    assert (file.content, file.version, file.truncated, file.operation_id) == ("Ana l", first.version, True, None)
    for wrong in (None, "0"):
        with pytest.raises(MemoryConflictError):
            run(store.write("ana/MEMORY.md", "x", expected_version=wrong))
        with pytest.raises(MemoryConflictError):
            run(store.delete("ana/MEMORY.md", expected_version=wrong))
    second = run(store.write("ana/MEMORY.md", "Ana likes cocoa", expected_version=first.version))
    assert (second.existed, second.version != first.version) == (True, True)
    gone = run(store.delete("ana/MEMORY.md", expected_version=second.version))
    assert (gone.version, gone.existed) == (None, True)
    assert run(store.read("ana/MEMORY.md", max_chars=5)) is None
    assert run(store.delete("ana/MEMORY.md", expected_version=None)).existed is False


def test_a_version_does_not_come_back_with_its_text(store: RecollectMemoryStore) -> None:
    versions: list[str | None] = [None]
    for content in ("a", "b", "a", "a"):
        versions.append(run(store.write("n.md", content, expected_version=versions[-1])).version)
    run(store.delete("n.md", expected_version=versions[-1]))
    versions.append(run(store.write("n.md", "a", expected_version=None)).version)
    assert len(set(versions)) == 6


def test_a_repeated_operation_has_happened_once(place: recollect.Memory) -> None:
    store = RecollectMemoryStore(place)
    operation = MemoryOperation("op-1", "print")
    assert run(store.get_operation(operation)) is None
    first = run(store.write("n.md", "a", expected_version=None, operation=operation))
    seq = place.seq
    for again in (
        run(store.write("n.md", "a", expected_version=None, operation=operation)),
        run(store.write("n.md", "other", expected_version="wrong", operation=operation)),
        run(store.get_operation(operation)),
    ):
        assert again == MemoryMutation(version=first.version, replayed=True, existed=False)
    assert place.seq == seq
    assert text(store, "n.md") == "a"
    file = run(store.read("n.md", max_chars=9))
    assert file is not None
    assert file.operation_id == "op-1"
    for call in (
        store.get_operation(MemoryOperation("op-1", "other")),
        store.delete("n.md", expected_version=first.version, operation=MemoryOperation("op-1", "other")),
    ):
        with pytest.raises(MemoryOperationConflictError):
            run(call)


def test_a_receipt_and_its_change_are_one_commit(store: RecollectMemoryStore) -> None:
    run(store.write("n.md", "a", expected_version=None, operation=MemoryOperation("op-1", "print")))
    (commit,) = store.memory.log()
    assert (commit.actor, commit.reason, len(commit.changes)) == ("pydantic-ai", "write", 2)
    with pytest.raises(InvalidRecordError):
        run(store.write("m.md", "\ud800", expected_version=None, operation=MemoryOperation("op-2", "print")))
    assert run(store.get_operation(MemoryOperation("op-2", "print"))) is None


def test_metadata_are_those_of_the_last_write(store: RecollectMemoryStore) -> None:
    note = {"by": "ana", "ü": "\ud800"}
    first = run(store.write_with_metadata("n.md", "a", expected_version=None, metadata=note))
    file = run(store.read("n.md", max_chars=9))
    assert file is not None
    assert file.metadata == note
    run(store.write("n.md", "b", expected_version=first.version))
    file = run(store.read("n.md", max_chars=9))
    assert file is not None
    assert file.metadata is None
    with pytest.raises(TypeError):
        run(store.write_with_metadata("m.md", "a", expected_version=None, metadata={"n": 1}))  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="longer than"):
        run(store.write_with_metadata("m.md", "a", expected_version=None, metadata={"n": "x" * 5000}))


@pytest.mark.parametrize(
    "path", ["", "/", "../x", "a/../b", "a/./b", "a//b", "a b", "ä.md", "/a", "a/", "x" * 201, "a\n"]
)
def test_what_is_no_path_is_refused(store: RecollectMemoryStore, path: str) -> None:
    for call in (
        store.read(path, max_chars=9),
        store.write(path, "x", expected_version=None),
        store.delete(path, expected_version=None),
    ):
        with pytest.raises(ValueError, match="path"):
            run(call)
    assert store.memory.count() == 0


@pytest.mark.parametrize("root", ["", "memories", None, "/", "/a/", "/a//b", "/a/../b", "/caf\u00e9"])
def test_what_is_no_root_is_refused_at_once(root: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="root"):
        RecollectMemoryStore(root=root)


def test_numbers_that_are_not_positive_are_refused(store: RecollectMemoryStore) -> None:
    with pytest.raises(ValueError, match="max_chars"):
        run(store.read("n.md", max_chars=0))
    with pytest.raises(ValueError, match="limit"):
        run(store.list_paths(limit=0))
    none = run(store.search("", "x", limit=0, max_files=1, max_chars=1, max_file_chars=1))
    assert (none.matches, none.scanned, none.truncated) == ([], 0, False)


def test_a_file_is_no_folder(store: RecollectMemoryStore) -> None:
    run(store.write("a/n.md", "x", expected_version=None))
    for path in ("a", "a/n.md/m.md"):
        with pytest.raises(ValueError, match="folder"):
            run(store.write(path, "x", expected_version=None))


def test_empty_blank_and_long_texts_come_back(store: RecollectMemoryStore) -> None:
    for number, content in enumerate(["", " \n", "x" * (2**20 + 1), "Grüße\r\n\x00"]):
        run(store.write(f"{number}.md", content, expected_version=None))
        file = run(store.read(f"{number}.md", max_chars=2**22))
        assert file is not None
        assert file.content == content


class SameAsInMemory(RuleBasedStateMachine):
    """Calls on ours and on the store in memory of the harness give the same, but for the names of versions."""

    paths = st.sampled_from(["a/MEMORY.md", "a/x.md", "a/b/y.md", "ab/z.md", "MEMORY.md"])
    operations = st.none() | st.builds(MemoryOperation, st.sampled_from("opq"), st.sampled_from("fg"))

    def __init__(self) -> None:
        super().__init__()
        self.ours, self.theirs = RecollectMemoryStore(), InMemoryStore()
        self.versions: dict[str | None, str | None] = {None: None, "wrong": "wrong"}

    def teardown(self) -> None:
        self.ours.close()

    def both(self, call: Any) -> None:
        results = []
        for store in (self.ours, self.theirs):
            try:
                results.append(run(call(store)))
            except (MemoryConflictError, MemoryOperationConflictError) as error:
                results.append(type(error))
        one, other = results
        if isinstance(one, MemoryMutation) and isinstance(other, MemoryMutation):
            assert (one.replayed, one.existed, one.version is None) == (
                other.replayed,
                other.existed,
                other.version is None,
            )
            if not one.replayed:
                self.versions[other.version] = one.version
            assert self.versions[other.version] == one.version
        else:
            assert one == other

    def version(self, store: Any, path: str, right: bool) -> str | None:
        if not right:
            return "wrong"
        file = run(store.read(path, max_chars=9))
        return None if file is None else file.version

    @rule(path=paths, content=st.sampled_from(["", "tea", "cocoa"]), operation=operations, right=st.booleans())
    def write(self, path: str, content: str, operation: MemoryOperation | None, right: bool) -> None:
        self.both(
            lambda store: store.write(
                path, content, expected_version=self.version(store, path, right), operation=operation
            )
        )

    @rule(path=paths, operation=operations, right=st.booleans())
    def delete(self, path: str, operation: MemoryOperation | None, right: bool) -> None:
        self.both(
            lambda store: store.delete(path, expected_version=self.version(store, path, right), operation=operation)
        )

    @rule(operation=operations.filter(bool))
    def ask(self, operation: MemoryOperation) -> None:
        self.both(lambda store: store.get_operation(operation))

    @invariant()
    def lists_and_texts_are_the_same(self) -> None:
        for prefix, limit in (("", 9), ("a", 9), ("a/", 9), ("a/", 1), ("a/b", 9)):
            listed = [run(store.list_paths(prefix, limit=limit)) for store in (self.ours, self.theirs)]
            assert listed[0] == listed[1]
        for path in run(self.theirs.list_paths(limit=9)):
            files = [run(store.read(path, max_chars=2)) for store in (self.ours, self.theirs)]
            assert files[0] is not None
            assert files[1] is not None
            assert (files[0].content, files[0].truncated, files[0].operation_id) == (
                files[1].content,
                files[1].truncated,
                files[1].operation_id,
            )


TestSameAsInMemory = SameAsInMemory.TestCase
TestSameAsInMemory.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


# --- search ---


def test_files_that_answer_are_found_best_first_and_then_those_named_like_it(place: recollect.Memory) -> None:
    store = RecollectMemoryStore(place)
    files = {
        "ana/travel.md": "# Travel\n\nAna prefers window seats\nand trains",
        "ana/seats.md": "nothing of interest",
        "ana/dogs.md": "Ana has a dog",
        "ana/deep/seats.md": "window seats of another",
        "bob/travel.md": "Bob prefers window seats",
    }
    for path, content in files.items():
        run(store.write(path, content, expected_version=None))

    def search(query: str, **bounds: int) -> Any:
        options = {"limit": 9, "max_files": 9, "max_chars": 1000, "max_file_chars": 1000} | bounds
        return run(store.search("ana/", query, **options))

    found = search("prefers seats")
    assert [match.path for match in found.matches] == ["ana/travel.md", "ana/seats.md"]
    assert found.matches[0].snippet == "...Ana prefers window seats\nand trains"
    assert (found.scanned, found.truncated) == (3, False)
    assert search("prefers seats", limit=1).truncated is True
    brief = search("prefers seats", max_chars=20)
    assert sum(len(match.snippet) + len(match.path.removeprefix("ana/")) for match in brief.matches) <= 20
    assert search("submarine").matches == []


def test_a_search_below_the_root_finds_what_lies_there(store: RecollectMemoryStore) -> None:
    run(store.write("n.md", "Ana likes tea", expected_version=None))
    run(store.write("a/m.md", "Ana likes tea", expected_version=None))
    found = run(store.search("", "tea", limit=9, max_files=9, max_chars=99, max_file_chars=99))
    assert [match.path for match in found.matches] == ["n.md"]


# --- others ---


def test_owners_have_files_of_their_own(place: recollect.Memory) -> None:
    stores = [
        RecollectMemoryStore(place),
        RecollectMemoryStore(place, user="ana"),
        RecollectMemoryStore(place.scoped(user="bob")),
    ]
    operation = MemoryOperation("op", "print")
    for number, store in enumerate(stores):
        assert run(store.write("n.md", str(number), expected_version=None, operation=operation)).replayed is False
    assert [text(store, "n.md") for store in stores] == ["0", "1", "2"]
    assert [run(store.list_paths(limit=9)) for store in stores] == [["n.md"]] * 3
    with pytest.raises(ScopeError):
        RecollectMemoryStore(place.scoped(user="bob"), user="ana")


def test_secrets_are_redacted_in_texts_and_metadata_or_refused(store: RecollectMemoryStore) -> None:
    store.memory.set_policies(redaction="redact")
    mail = "ana@example.com"
    run(store.write_with_metadata("n.md", f"write to {mail}", expected_version=None, metadata={"by": mail}))
    file = run(store.read("n.md", max_chars=99))
    assert mail not in str(file)
    store.memory.set_policies(redaction="refuse")
    with pytest.raises(RejectedError):
        run(store.write("m.md", f"write to {mail}", expected_version=None))


def test_only_one_of_many_writers_of_a_version_wins(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with RecollectMemoryStore(path) as store:
        version = run(store.write("n.md", "0", expected_version=None)).version
        program = """
import asyncio, sys
from recollect.compat.pydantic_ai import RecollectMemoryStore
from pydantic_ai_harness.memory import MemoryConflictError
store = RecollectMemoryStore(sys.argv[1])
print("ready", flush=True); input()
try:
    asyncio.run(store.write("n.md", sys.argv[3], expected_version=sys.argv[2]))
    print("won")
except MemoryConflictError:
    print("lost")
"""
        children = [Child(program, path, version, name) for name in "abc"]
        for child in children:
            child.wait_until_ready()
        with ThreadPoolExecutor(3) as pool:
            said = list(pool.map(Child.result, children))
        assert sorted(each.strip() for each in said) == ["lost", "lost", "won"]


def test_an_agent_keeps_a_notebook_that_recall_finds(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    seen: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(str(messages))
        if "window seats" in str(messages):
            return ModelResponse([TextPart("Noted.")])
        call = ToolCallPart("write_memory", {"file": "MEMORY.md", "content": "Ana prefers window seats"})
        return ModelResponse([call])

    with RecollectMemoryStore(path, user="ana") as store:
        agent = Agent(FunctionModel(model), capabilities=[Memory(store)])
        assert run(agent.run("Remember my seat")).output == "Noted."
        paths = run(store.list_paths(limit=9))
        assert len(paths) == 1
        assert paths[0].endswith("/MEMORY.md")
        (hit,) = store.memory.recall("Which seats does Ana prefer?", where=f.kind("memory_file"), user="ana")
        assert "window seats" in hit.record.text
        assert run(agent.run("What do you know?")).output == "Noted."
        assert "Ana prefers window seats" in seen[-1]
