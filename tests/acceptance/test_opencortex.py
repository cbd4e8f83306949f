"""The design of versioned memory, line by line, through the names of opencortex.

Lines that tests of outlines have in the same words are not repeated here: the search by the vectors of a model
(`tests/facets/outline/test_outline_search.py`), texts in Org and Markdown (`test_formats.py`), tools of agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.compat import opencortex
from recollect.compat.opencortex import OrgObject, process
from recollect.errors import InvalidArgumentError, RecollectError, UnknownRecordError, UnknownTargetError


@pytest.fixture(autouse=True)
def _process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Give each test a process with a memory of its own."""
    monkeypatch.setenv("MEMORY_SNAPSHOT_PATH", str(tmp_path / "memory.db"))
    monkeypatch.setattr(process, "_memory", None)
    yield
    if process._memory is not None:
        process._memory.close()


def headline(title: str, *contents: Any, text: str | None = None, **properties: Any) -> dict[str, Any]:
    out = {"type": "HEADLINE", "properties": {"TITLE": title, **properties}, "contents": [*contents]}
    return out if text is None else {**out, "raw-content": text}


def known(object_id: str) -> OrgObject:
    found = opencortex.lookup_object(object_id)
    assert found is not None
    return found


def restarted() -> None:
    """Let the next call find the process as it is after a start."""
    opencortex.process_memory().close()
    process._memory = None


# The graph and its hashes


def test_a_look_up_gives_the_object_and_none_for_a_missing_id() -> None:
    opencortex.ingest_ast(headline("Boats", text="All boats.", ID="a"))
    assert (known("a").id, known("a").type, known("a").content) == ("a", "HEADLINE", "Boats\nAll boats.")
    assert opencortex.lookup_object("nope") is None


def test_the_content_of_a_headline_is_its_title_a_line_break_and_its_text() -> None:
    opencortex.ingest_ast(headline("Version 1", ID="a"))
    assert known("a").content == "Version 1\n"
    opencortex.process_memory().memory.outline.ingest(headline("Version 2", ID="b"))
    assert known("b").content == "Version 2\n"
    opencortex.ingest_ast({"type": "SECTION", "properties": {"ID": "c"}, "raw-content": "only text"})
    assert known("c").content == "only text"


def test_equal_objects_have_equal_hashes_whatever_the_order_of_their_attributes() -> None:
    opencortex.ingest_ast(headline("x", ID="a", p=1, q=2))
    before = known("a").hash
    opencortex.ingest_ast({"type": "HEADLINE", "properties": {"q": 2, "p": 1, "ID": "a", "TITLE": "x"}})
    assert known("a").hash == before
    opencortex.ingest_ast({"type": "HEADLINE", "properties": {"q": 2, "p": 3, "ID": "a", "TITLE": "x"}})
    assert known("a").hash != before


def test_a_change_of_a_leaf_reaches_the_root_and_no_sibling() -> None:
    def tree(text: str) -> dict[str, Any]:
        return headline(
            "r", headline("a", headline("leaf", ID="leaf", text=text), ID="a"), headline("b", ID="b"), ID="r"
        )

    opencortex.ingest_ast(tree("one"))
    before = {each: known(each).hash for each in ("r", "a", "b", "leaf")}
    opencortex.ingest_ast(tree("two"))
    changed = {each for each, hash_ in before.items() if known(each).hash != hash_}
    assert changed == {"r", "a", "leaf"}
    opencortex.ingest_ast(tree("one"))
    assert {each: known(each).hash for each in before} == before


def test_no_content_poses_as_another_object() -> None:
    hashed = opencortex.compute_merkle_hash
    assert hashed("a|b", "c") != hashed("a", "b|c")
    assert hashed("a", "b", content="c|d") != hashed("a", "b|c", content="d")
    assert hashed("a", "b", content="") != hashed("a", "b", content=None)


def test_one_root_covers_the_whole_state_and_proves_each_object() -> None:
    memory = opencortex.process_memory().memory
    roots = {memory.root}
    for number, each in enumerate(("a", "b")):
        opencortex.ingest_ast(headline(each, ID=each))
        roots.add(memory.root)
        assert len(roots) == number + 2
    proof = memory.prove("a", part="nodes")
    assert recollect.verify(proof, memory.root)
    opencortex.ingest_ast(headline("a, changed", ID="a"))
    assert not recollect.verify(proof, memory.root)
    assert memory.head().parts["nodes"] == memory.outline.root


# Ingesting


def test_a_tree_becomes_a_child_of_the_parent_that_is_named() -> None:
    opencortex.ingest_ast(headline("top", headline("first", ID="first"), ID="top"))
    made = opencortex.ingest_ast(headline("new", ID="new"), "top")
    assert (made, known("top").children, known("new").parent_id) == ("new", ("first", "new"), "top")
    root = known("top").hash
    opencortex.ingest_ast(headline("new", ID="new"), "top")
    opencortex.ingest_ast(headline("new", ID="new"))  # it stays where it is
    assert (known("top").children, known("top").hash) == (("first", "new"), root)
    for parent, error in (("nope", UnknownRecordError), ("new", InvalidArgumentError)):
        with pytest.raises(error):
            opencortex.ingest_ast(headline("new", ID="new"), parent)
    assert known("top").hash == root


def test_objects_without_an_id_get_unique_ones_within_one_second() -> None:
    made = [opencortex.ingest_ast(headline("r", *(headline("same") for _ in range(20)), n=each)) for each in range(5)]
    ids = [child for each in made for child in (each, *known(each).children)]
    assert len(set(ids)) == 5 * 21


def test_the_same_tree_again_adds_nothing() -> None:
    tree = headline("r", "some text", headline("a", text="x"), headline("b"))
    made = opencortex.ingest_ast(tree)
    outline = opencortex.process_memory().memory.outline
    before = (outline.root, len(outline.log()))
    assert opencortex.ingest_ast(tree) == made
    assert (outline.root, len(outline.log())) == before
    opencortex.ingest_ast(headline("r", "some text", headline("a", text="y"), headline("b")))
    assert len(outline.log()) == before[1] + 1


def test_raw_content_is_read_in_both_spellings_and_texts_are_no_children() -> None:
    opencortex.ingest_ast({"type": "HEADLINE", "properties": {"ID": "a", "TITLE": "t"}, "raw-content": "x"})
    opencortex.ingest_ast({"type": "HEADLINE", "properties": {"ID": "b", "TITLE": "t"}, "raw_content": "x"})
    opencortex.ingest_ast(headline("t", "x", ID="c"))
    opencortex.ingest_ast(headline("t", "left out", text="x", ID="d"))
    assert {known(each).content for each in "abcd"} == {"t\nx"}
    assert {known(each).children for each in "abcd"} == {()}


def test_notes_that_are_not_ascii_are_stored_and_have_hashes() -> None:
    opencortex.ingest_ast(headline("Überschrift 見出し", ID="ä-漢字", text="naïve ☂"))
    assert known("ä-漢字").content == "Überschrift 見出し\nnaïve ☂"
    assert known("ä-漢字").hash == opencortex.compute_merkle_hash("ä-漢字")


# History, snapshots and rollback


def test_every_version_stays_and_is_found_by_its_hash() -> None:
    outline = opencortex.process_memory().memory.outline
    versions = []
    for text in ("one", "two", "three"):
        opencortex.ingest_ast(headline("a", text=text, ID="a"))
        versions.append(known("a").version)
    outline.remove("a")
    assert opencortex.lookup_object("a") is None
    assert [outline.version(each).text for each in versions] == ["one", "two", "three"]
    assert len(outline.history("a")) == 4
    with pytest.raises(UnknownRecordError):
        outline.version("0" * 64)
    with pytest.raises(UnknownRecordError):
        outline.history("nope")


def test_a_rollback_restores_the_live_state_exactly_and_can_be_repeated_and_undone() -> None:
    outline = opencortex.process_memory().memory.outline
    opencortex.ingest_ast(headline("Version 1", headline("child", ID="c"), ID="a"))
    opencortex.snapshot_memory()
    first = {each: known(each).hash for each in "ac"}
    opencortex.ingest_ast(headline("Version 2", ID="a"))
    second = (outline.root, len(outline.log()))
    for _ in range(2):
        opencortex.rollback_memory()
        assert {each: known(each).hash for each in "ac"} == first
        assert known("a").content == "Version 1\n"
    assert outline.history("a")[1].record is not None  # version 2 is still in the history
    outline.rollback(second[1])
    assert (outline.root, known("a").content, opencortex.lookup_object("c")) == (second[0], "Version 2\n", None)


def test_a_snapshot_is_not_changed_by_what_is_stored_later() -> None:
    opencortex.ingest_ast(headline("one", ID="a"))
    for text in ("two", "three"):
        opencortex.snapshot_memory()
        opencortex.ingest_ast(headline(text, ID="a"))
    opencortex.rollback_memory(1)
    assert known("a").content == "one\n"
    opencortex.rollback_memory(0)
    assert known("a").content == "two\n"


def test_twenty_snapshots_stay_and_a_missing_one_is_an_error_that_changes_nothing() -> None:
    for number in range(25):
        opencortex.ingest_ast(headline(str(number), ID="a"))
        opencortex.snapshot_memory()
    outline = opencortex.process_memory().memory.outline
    assert len(outline.snapshots()) == 20
    before = (outline.root, len(outline.log()))
    for index in (20, 99, -1):
        with pytest.raises(UnknownTargetError):
            opencortex.rollback_memory(index)
    assert (outline.root, len(outline.log()), known("a").content) == (*before, "24\n")
    opencortex.rollback_memory(19)
    assert known("a").content == "5\n"


# The file


def test_everything_is_there_after_a_restart_without_saving(tmp_path: Path) -> None:
    opencortex.ingest_ast(headline("one", ID="a"))
    opencortex.snapshot_memory()
    opencortex.ingest_ast(headline("two", ID="a"))
    before = known("a")
    restarted()
    assert known("a") == before
    opencortex.rollback_memory()
    assert known("a").content == "one\n"
    assert opencortex.save_memory_to_disk() == tmp_path / "memory.db"


def test_a_saved_copy_is_loaded_and_a_damaged_one_never_by_half(tmp_path: Path) -> None:
    opencortex.ingest_ast(headline("one", ID="a"))
    copy = opencortex.save_memory_to_disk(tmp_path / "copy.db")
    opencortex.ingest_ast(headline("two", ID="a"))
    opencortex.load_memory_from_disk(copy)
    assert known("a").content == "one\n"
    opencortex.load_memory_from_disk(tmp_path / "memory.db")
    copy.write_bytes(b'(:format "memex")')
    with pytest.raises(RecollectError):
        opencortex.load_memory_from_disk(copy)
    assert (copy.read_bytes(), known("a").content) == (b'(:format "memex")', "two\n")


# Looking up


def test_objects_are_listed_by_type_and_by_attribute() -> None:
    below = [headline("a", ID="a", TODO="NEXT"), headline("b", ID="b", TODO="DONE")]
    opencortex.ingest_ast({"type": "DOCUMENT", "properties": {"ID": "d"}, "contents": below})
    listed = opencortex.list_objects_with_attribute
    assert [each.id for each in opencortex.list_objects_by_type("HEADLINE")] == ["a", "b"]
    assert [each.id for each in opencortex.list_objects_by_type(":document")] == ["d"]
    assert [each.id for each in listed("TODO")] == ["a", "b"]
    assert [each.id for each in listed("TODO", "DONE")] == ["b"]
    assert listed("EFFORT") == opencortex.list_objects_by_type("SECTION") == []


def test_a_search_gives_at_most_ten_objects_of_at_least_the_similarity_best_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDER", "hashed")
    below = [headline(f"Sails of cotton {each}", ID=f"s{each}") for each in range(12)]
    opencortex.ingest_ast(headline("Ropes", *below, headline("Bread and butter", ID="bread"), ID="r"))
    found = opencortex.semantic_search("sails of cotton")
    assert len(found) == 10
    assert all(each.similarity >= 0.5 and each.object.id not in ("bread", "r") for each in found)
    similarities = [each.similarity for each in found]
    assert similarities == sorted(similarities, reverse=True)
    assert len(opencortex.semantic_search("sails of cotton", 3)) == 3
    assert len(opencortex.semantic_search("sails of cotton", 20, 0.0)) > 12
    best = found[0].similarity
    assert opencortex.semantic_search("sails of cotton", minimum=best)[0].similarity == best
    assert opencortex.semantic_search("sails of cotton", minimum=best + (1 - best) / 2) == []


def test_only_marked_objects_are_searched_where_marking_is_used() -> None:
    opencortex.ingest_ast(headline("Sails of cotton", headline("Sails of hemp", ID="b"), ID="a"))
    assert {each.object.id for each in opencortex.semantic_search("sails", minimum=0.0)} == {"a", "b"}
    opencortex.ingest_ast(headline("Sails of cotton", headline("Sails of hemp", ID="b", EMBED="t"), ID="a"))
    assert {each.object.id for each in opencortex.semantic_search("sails", minimum=0.0)} == {"b"}


def test_the_helpers_give_ids_paths_cosines_and_headlines() -> None:
    assert opencortex.org_id_new() != opencortex.org_id_new()
    assert opencortex.file_name_nondirectory("/home/ana/notes.org") == "notes.org"
    assert opencortex.cosine_similarity([1.0, 0.0], [1.0, 0.0]) == 1.0
    with pytest.raises(InvalidArgumentError):
        opencortex.cosine_similarity([1.0], [1.0, 0.0])
    missing = headline("b")
    assert opencortex.find_headline_missing_id(headline("a", missing, ID="a")) is missing
    missing["properties"]["ID"] = opencortex.org_id_new()
    assert opencortex.find_headline_missing_id(headline("a", missing, ID="a")) is None
