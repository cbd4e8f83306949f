"""Outlines: trees are stored node by node, re-ingested by what differs, looked up, hashed and written back."""

from __future__ import annotations

import copy
import json
import threading
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import (
    ConflictError,
    ImportFormatError,
    InvalidArgumentError,
    InvalidRecordError,
    QuotaError,
    ReadOnlyMemoryError,
    UnknownRecordError,
    UnsupportedError,
)
from recollect.facets.outline.aligning import GAP, ranked
from recollect.facets.outline.outline import Outline
from recollect.facets.outline.text import org
from recollect.facets.outline.text.nodes import MAX_DEPTH, Node, from_json, node_hash, said_digest
from recollect.operations import Now
from recollect.stores.sqlite.view import SqliteView
from recollect.testing.loopback import beside

ORG = """#+TITLE: House
* Boats :sea:
All boats.
** Sails
:PROPERTIES:
:ID: s1
:Made: cotton
:END:
of cotton
** Oars
*** Left
* TODO Houses
"""

pytestmark = pytest.mark.stores("memory", "loopback")


@pytest.fixture
def outline(memory: Memory) -> Outline:
    return memory.outline


def node(title: str, *contents: dict[str, Any], text: str | None = None, **properties: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "HEADLINE", "properties": {"TITLE": title, **properties}, "contents": [*contents]}
    return out if text is None else {**out, "raw_content": text}


def titles(nodes: Any) -> list[str | None]:
    return [each.title for each in nodes]


def differences(done: Any) -> tuple[int, int, int, int]:
    return len(done.added), len(done.changed), len(done.moved), len(done.removed)


# Storing


def test_an_outline_is_stored_and_comes_back_as_it_was(outline: Outline) -> None:
    done = outline.ingest_text(ORG, "org", source="house.org")
    assert (differences(done), done.unchanged) == ((6, 0, 0, 0), 0)
    assert outline.to_text(done.root, "org") == ORG
    assert outline.tree(done.root) == org.parse(ORG)
    assert titles(outline.children(done.root)) == ["Boats", "Houses"]
    sails = outline.get("s1")
    assert sails is not None
    assert (sails.type, sails.title, sails.text, dict(sails.attributes)) == (
        "HEADLINE", "Sails", "of cotton\n", {"Made": "cotton"},
    )  # fmt: skip
    assert [each.id for each in outline.roots()] == [done.root]


def test_the_same_tree_again_adds_nothing_and_commits_nothing(outline: Outline, memory: Memory) -> None:
    tree = node("a", node("b", text=""), node("c", node("d")), node("c"))
    first = outline.ingest(tree)
    seq = beside(memory, "nodes").seq
    again = outline.ingest(copy.deepcopy(tree))
    assert (again.root, differences(again), again.unchanged) == (first.root, (0, 0, 0, 0), 5)
    assert beside(memory, "nodes").seq == seq


def test_nodes_without_an_id_get_unique_ones_in_the_same_moment(outline: Outline) -> None:
    done = outline.ingest(node("a", *(node("same") for _ in range(50)), node("b", node("same"))))
    other = outline.ingest(node("z", *(node("same") for _ in range(50))))
    assert len({*done.added, *other.added}) == 53 + 51
    assert titles(outline.without_id(done.root)) == ["a", *["same"] * 50, "b", "same"]


def test_only_what_differs_is_committed(outline: Outline, memory: Memory) -> None:
    root = outline.ingest_text(ORG, "org", source="house.org").root
    nodes = beside(memory, "nodes")
    done = outline.ingest_text(ORG.replace("of cotton", "of hemp"), "org", source="house.org", actor="ana")
    assert (differences(done), done.changed) == ((0, 1, 0, 0), ("s1",))
    (commit,) = nodes.log(1)
    assert ([change.id for change in commit.changes], commit.actor) == (["s1"], "ana")
    done = outline.ingest_text(ORG.replace("* TODO Houses\n", "* DONE Houses\n** New\n"), "org", source="house.org")
    assert differences(done) == (1, 2, 0, 0)
    assert len(nodes.log(1)[0].changes) == 3
    assert outline.to_text(root, "org") == ORG.replace("* TODO Houses\n", "* DONE Houses\n** New\n")


def test_a_removed_child_is_removed_with_all_below_it(outline: Outline) -> None:
    root = outline.ingest_text(ORG, "org", source="house.org").root
    done = outline.ingest_text(ORG.replace("** Oars\n*** Left\n", ""), "org", source="house.org")
    assert differences(done) == (0, 0, 0, 2)
    assert [titles(outline.find(kind=kind)) for kind in ("headline", "DOCUMENT")] == [
        titles(outline.find(kind="HEADLINE")), [None],
    ]  # fmt: skip
    assert all(outline.get(each) is None for each in done.removed)
    assert len(list(outline.tree(root).walk())) == 4


def test_a_move_is_visible_and_keeps_the_nodes(outline: Outline) -> None:
    before = outline.ingest(node("r", node("a", node("x", node("y", text="deep"))), node("b")), source="s")
    done = outline.ingest(node("r", node("a"), node("b", node("x", node("y", text="deep")))), source="s")
    assert differences(done) == (0, 0, 1, 0)
    (moved,) = done.moved
    assert moved in before.added
    assert outline.path(moved) == ["r", "b", "x"]
    named = outline.ingest(node("r", node("n", node("x", ID="x1")), node("m")), source="t")
    done = outline.ingest(node("r", node("n"), node("m", node("x, changed", ID="x1"))), source="t")
    assert (differences(done), done.moved, done.changed) == ((0, 1, 1, 0), ("x1",), ("x1",))
    assert named.root == done.root


def test_the_order_of_siblings_is_kept_with_few_writes(outline: Outline) -> None:
    names = [f"n{number}" for number in range(30)]
    root = outline.ingest(node("r", *map(node, names)), source="s").root
    last_first = [names[-1], *names[:-1]]
    assert differences(outline.ingest(node("r", *map(node, last_first)), source="s")) == (0, 0, 1, 0)
    assert titles(outline.children(root)) == last_first
    inserted = [*last_first[:5], "new", *last_first[5:]]
    assert differences(outline.ingest(node("r", *map(node, inserted)), source="s")) == (1, 0, 0, 0)
    assert titles(outline.children(root)) == inserted


def test_siblings_are_renumbered_when_no_rank_is_left_between_them(outline: Outline) -> None:
    names = ["first", "last"]
    root = outline.ingest(node("r", *map(node, names)), source="s").root
    renumbered = 0
    for number in range(30):
        names.insert(1, f"n{number}")
        done = outline.ingest(node("r", *map(node, names)), source="s")
        assert differences(done)[0] == 1
        renumbered += len(done.moved) > 0
        assert titles(outline.children(root)) == names
    assert 1 <= renumbered <= 3  # 2**20 halved twenty times


@given(st.lists(st.none() | st.integers(-3, 60), max_size=12))
@settings(max_examples=some(200))
def test_ranks_rise_and_keep_what_they_can(before: list[int | None]) -> None:
    after = ranked(before)
    assert all(one < other for one, other in pairwise(after))
    assert all(rank > 0 for rank in after)
    if before == sorted({each for each in before if each is not None and each > 0}):
        assert after == before
    assert ranked([None] * len(before)) == [GAP * (place + 1) for place in range(len(before))]


def test_nodes_without_text_are_allowed_and_missing_differs_from_empty(outline: Outline) -> None:
    plain: list[dict[str, Any]] = [
        {"type": "A"},
        {"type": "A", "raw_content": ""},
        {"type": "A", "raw_content": " \n"},
        {"type": "A", "properties": {"TITLE": ""}},
        {"type": "A", "properties": {"TITLE": ""}, "raw_content": ""},
        {"type": "A", "properties": {"TITLE": "t"}},
        {"type": "A", "properties": {"TITLE": "t"}, "raw_content": ""},
    ]
    tree = {"type": "ROOT", "contents": plain}
    root = outline.ingest(tree).root
    assert outline.tree(root) == from_json(tree)
    hashes = {outline.hash(each.id) for each in outline.children(root)}
    assert len(hashes) == len(plain)


@pytest.mark.parametrize(
    ("tree", "error"),
    [
        (None, InvalidArgumentError),
        ("text", InvalidArgumentError),
        ({"contents": []}, ImportFormatError),
        ({"type": "A", "contents": [{"type": "A"}, 3]}, ImportFormatError),
        (node("a", node("b", ID="x"), node("c", ID="x")), InvalidArgumentError),
        (node("a", node("b", ID="r"), ID="r"), InvalidArgumentError),
        (node("a", node("b", ID="x\ny")), InvalidRecordError),
        ({"type": "A", "properties": {"@node": 1}}, InvalidRecordError),
        (node("a", node("b", value={1: 2})), ImportFormatError),
        (node("a", value={1}), ImportFormatError),
        (node("a", value=b""), ImportFormatError),
        (node("a", value=datetime(2026, 1, 1)), ImportFormatError),
        (node("a", value=object()), ImportFormatError),
        (node("a", value=10**5000), ImportFormatError),
        ([10**5000], InvalidArgumentError),
        (node("a", value=float("nan")), ImportFormatError),
    ],
)
def test_a_tree_that_cannot_be_stored_is_an_error_and_stores_nothing(outline: Outline, tree: Any, error: Any) -> None:
    with pytest.raises(error):
        outline.ingest(tree)
    assert outline.roots() == []


def test_a_node_cannot_be_put_below_itself(outline: Outline) -> None:
    outline.ingest(node("top", node("mid", node("low", ID="low"), ID="mid"), ID="top"))
    with pytest.raises(InvalidArgumentError, match="above its root"):
        outline.ingest(node("low", node("top", ID="top"), ID="low"))
    done = outline.ingest(node("low", node("new"), ID="low"))
    assert differences(done) == (1, 0, 0, 0)
    assert outline.path("low") == ["top", "mid", "low"]  # where it was, and beside what was beside it


def test_a_node_of_another_outline_is_taken_over_with_its_history(outline: Outline) -> None:
    outline.ingest(node("one", node("x", node("below"), ID="x")), source="one")
    done = outline.ingest(node("two", node("x", ID="x")), source="two")
    assert (done.moved, len(done.removed)) == (("x",), 1)  # what was below it is not in the tree that is stored now
    assert titles(outline.children(outline.ingest(node("one"), source="one").root)) == []
    assert outline.path("x") == ["two", "x"]


# Looking up


def test_nodes_are_found_by_path_kind_attribute_and_place(outline: Outline) -> None:
    root = outline.ingest_text(ORG, "org", source="house.org").root
    assert outline.path("s1") == ["", "Boats", "Sails"]
    assert titles(outline.ancestors("s1")) == [None, "Boats"]
    found = outline.at_path(["Boats", "Oars", "Left"])
    assert found is not None
    assert outline.path(found.id) == ["", "Boats", "Oars", "Left"]
    assert outline.at_path(["Boats", "Left"]) is None
    assert outline.at_path(["Oars"], under=outline.at_path(["Boats"]).id) is not None  # type: ignore[union-attr]
    assert titles(outline.find(attribute="TODO")) == ["Houses"]
    assert titles(outline.find(attribute="Made", value="cotton")) == ["Sails"]
    assert outline.find(attribute="Made", value="hemp") == outline.find(kind="task") == []
    assert titles(outline.find(attribute="TODO", under=root)) == ["Houses"]
    assert outline.find(attribute="TODO", under="s1") == []
    assert titles(outline.without_id()) == [None, "Boats", "Oars", "Left", "Houses"]
    for call in (outline.path, outline.tree, outline.hash):
        with pytest.raises(UnknownRecordError):
            call("absent")
    assert outline.get("absent") is None
    assert outline.children("absent") == outline.ancestors("absent") == []
    for wrong in (lambda: outline.get(""), lambda: outline.at_path("x"), lambda: outline.find(value=1)):
        with pytest.raises(InvalidArgumentError):
            wrong()


def test_a_view_has_the_nodes_of_one_moment(outline: Outline) -> None:
    root = outline.ingest_text(ORG, "org", source="house.org").root
    view = outline.view()
    outline.ingest_text("* Other\n", "org", source="house.org")
    assert titles(view) == [None, "Boats", "Sails", "Oars", "Left", "Houses"]
    assert (len(view), titles(view.children()), titles(view.children(root))) == (6, [None], ["Boats", "Houses"])
    sails = view.get("s1")
    assert sails is not None
    assert (view.path("s1"), titles(view.ancestors("s1"))) == (["", "Boats", "Sails"], [None, "Boats"])
    assert titles(view.find(attribute="Made", value="cotton")) == ["Sails"]
    assert titles(view.find(kind="document")) == [None]
    assert view.find(attribute="Made", value="hemp") == view.ancestors("absent") == []
    assert view.get("absent") is None
    with pytest.raises(UnknownRecordError):
        view.path("absent")
    assert len(outline.view("absent")) == 0
    assert titles(outline.view(root)) == [None, "Other"]


def test_a_view_of_some_levels_has_the_hashes_of_what_it_does_not_show(outline: Outline) -> None:
    outline.ingest(node("r", node("a", node("x", ID="x"), ID="a"), node("b", ID="b"), ID="r"))
    outline.ingest(node("s", node("c", ID="c"), ID="s"))
    for depth, shown in ((0, "r"), (1, "rab"), (2, "raxb"), (9, "raxb")):
        view = outline.view("r", depth=depth)
        assert "".join(each.id for each in view) == shown
        assert all(view.hash(each) == outline.hash(each) for each in shown)
    assert {each.id for each in outline.view(depth=0)} == {"r", "s"}
    with pytest.raises(UnknownRecordError):
        outline.view("r", depth=0).hash("a")
    with pytest.raises(InvalidArgumentError):
        outline.view("r", depth=-1)


# The hash


def test_the_hash_of_a_subtree_is_that_of_its_definition_and_any_change_reaches_the_root(outline: Outline) -> None:
    tree = node("r", node("a", node("x", text="1"), ID="a"), node("b", ID="b"), ID="r")

    def defined(each: Node, node_id: str) -> bytes:
        below = [defined(child, child.id or "") for child in each.contents]
        return node_hash(node_id, said_digest(each.type, each.attributes, each.content), below)

    outline.ingest(node("r", node("a", ID="a"), node("b", ID="b"), ID="r"))
    plain = from_json(node("r", node("a", ID="a"), node("b", ID="b"), ID="r"))
    assert outline.hash("r") == defined(plain, "r").hex()
    first = {each: outline.hash(each) for each in "rab"}
    outline.ingest(tree)
    second = {each: outline.hash(each) for each in "rab"}
    assert second["b"] == first["b"]
    assert second["a"] != first["a"]
    assert second["r"] != first["r"]
    swapped = {**tree, "contents": tree["contents"][::-1]}
    outline.ingest(swapped)
    assert (outline.hash("a"), outline.hash("b")) == (second["a"], second["b"])
    assert outline.hash("r") != second["r"]  # the order of children matters
    shuffled = copy.deepcopy(swapped)
    shuffled["properties"] = dict(reversed(shuffled["properties"].items()))
    before = outline.hash("r")
    outline.ingest(shuffled)
    assert outline.hash("r") == before  # that of properties does not


# One engine


def test_history_past_moments_snapshots_and_rollback_reach_outlines(memory: Memory) -> None:
    outline = memory.outline
    root = outline.ingest_text(ORG, "org", source="house.org").root
    before, was = memory.execute(Now()), outline.hash(root)
    outline.ingest_text("* Gone\n", "org", source="house.org", snapshot=True)
    assert memory.at(before).outline.to_text(root, "org") == ORG
    assert memory.at(before).outline.hash(root) == was
    with pytest.raises(ReadOnlyMemoryError):
        memory.at(before).outline.ingest(node("a"))
    nodes = beside(memory, "nodes")
    nodes.rollback(index=0)
    assert (outline.hash(root), outline.to_text(root, "org")) == (was, ORG)
    assert nodes.check() == []


def test_scopes_see_their_own_outlines_and_recall_of_the_memory_none(memory: Memory) -> None:
    ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
    ana.outline.ingest(node("of ana", node("secret", ID="x"), ID="r"))
    bob.outline.ingest(node("of bob", node("other", ID="x"), ID="r"))
    assert [titles(each.outline.tree("r").walk()) for each in (ana, bob)] == [["of ana", "secret"], ["of bob", "other"]]
    assert bob.outline.remove("x") == 1
    assert ana.outline.get("x") is not None
    assert len(memory.recall("secret")) == len(memory.find()) == 0
    assert memory.namespaces() in ([], ["default"])


def test_outlines_count_towards_the_quota_and_a_full_one_stores_nothing(memory: Memory) -> None:
    memory.remember("one")
    memory.set_quota(records=4)
    memory.outline.ingest(node("a", node("b")))
    with pytest.raises(QuotaError):
        memory.outline.ingest(node("x", node("y"), node("z")))
    assert titles(memory.outline.roots()) == ["a"]


def test_removing_a_node_removes_its_subtree_in_one_commit(outline: Outline, memory: Memory) -> None:
    outline.ingest_text(ORG, "org", source="house.org")
    boats = outline.at_path(["Boats"])
    assert boats is not None
    seq = beside(memory, "nodes").seq
    assert outline.remove(boats.id) == 4
    assert outline.remove(boats.id) == 0
    assert beside(memory, "nodes").seq == seq + 1
    assert outline.get("s1") is None


def test_another_format_is_written_if_it_says_the_same_and_refused_if_not(outline: Outline) -> None:
    root = outline.ingest_text("intro\n\n# A\n\ntext\n\n## B\n", "markdown", source="a.md").root
    assert outline.to_text(root, "markdown") == "intro\n\n# A\n\ntext\n\n## B\n"
    assert outline.to_text(root, "org") == "intro\n\n* A\n\ntext\n\n** B\n"
    outline.ingest({"type": "A", "properties": {"ID": " "}})  # an empty ID is none
    root = outline.ingest_text("* TODO A\n", "org", source="a.org").root
    with pytest.raises(UnsupportedError, match="as markdown"):
        outline.to_text(root, "markdown")
    with pytest.raises(InvalidArgumentError, match="format"):
        outline.to_text(root, "rst")
    root = outline.ingest({"type": "DOCUMENT", "raw_content": "* looks like a headline\n"}).root
    with pytest.raises(UnsupportedError, match="as org"):
        outline.to_text(root, "org")


def test_a_subtree_is_written_as_a_document_of_its_own(outline: Outline) -> None:
    outline.ingest_text(ORG, "org", source="house.org")
    boats = outline.at_path(["Boats"])
    left = outline.at_path(["Boats", "Oars", "Left"])
    assert boats is not None
    assert left is not None
    text = outline.to_text(boats.id, "org")
    assert text == ORG[ORG.index("* Boats") : ORG.index("* TODO Houses")]
    assert org.parse(text) == Node("DOCUMENT", {}, "", [outline.tree(boats.id)])
    assert outline.to_text("s1", "org") == "* Sails\n:PROPERTIES:\n:ID: s1\n:Made: cotton\n:END:\nof cotton\n"
    assert [outline.to_text(left.id, each) for each in ("org", "markdown")] == ["* Left\n", "# Left\n"]
    assert from_json(json.loads(outline.to_text("s1", "json"))) == outline.tree("s1")
    with pytest.raises(UnsupportedError, match="as markdown"):
        outline.to_text("s1", "markdown")


def test_levels_and_states_of_a_subtree_are_written_so_that_it_is_read_the_same(outline: Outline) -> None:
    text = "#+TODO: NEXT | OLD\n* a\n***** NEXT b\n******** c\n****** d\n#+FILETAGS: :x:\n"
    root = outline.ingest_text(text, "org", source="a.org").root
    assert outline.to_text(root, "org") == text
    b = outline.at_path(["a", "b"])
    assert b is not None
    written = outline.to_text(b.id, "org")
    assert written == "#+TODO: NEXT\n* NEXT b\n******** c\n** d\n#+FILETAGS: :x:\n"
    (read,) = org.parse(written).contents
    del (tree := outline.tree(b.id)).properties["LEVEL"]
    assert read == tree


def test_a_heading_of_markdown_is_written_at_its_new_level(outline: Outline) -> None:
    text = "# A\n\n### *B* ###\n\nb\n\n#### [c](d)\n\n###### e\n\nF *f*\n---\n\nf\n\n### G\n"
    root = outline.ingest_text(text, "markdown", source="a.md").root
    assert outline.to_text(root, "markdown") == text
    b, f = (outline.at_path(["A", each]) for each in ("B", "F f"))
    assert b is not None
    assert f is not None
    assert outline.to_text(b.id, "markdown") == "# *B* ###\n\nb\n\n## [c](d)\n\n###### e\n\n"
    assert outline.to_text(f.id, "markdown") == "F *f*\n===\n\nf\n\n## G\n"


def test_the_tree_of_an_editor_is_written_where_texts_are_missing(outline: Outline) -> None:
    tree = node("a", node("b", node("c", ID="c"), TODO="TODO"), node("d", text="e\n"))
    root = outline.ingest(tree, source="s").root
    assert outline.to_text(root, "org") == "* a\n** TODO b\n*** c\n:PROPERTIES:\n:ID: c\n:END:\n** d\ne\n"
    root = outline.ingest({"type": "DOCUMENT", "contents": [node("a", node("b"))]}, source="t").root
    assert outline.to_text(root, "org") == "* a\n** b"
    assert outline.to_text(root, "markdown") == "# a\n## b\n"


def test_the_deepest_tree_is_written_and_read_again(outline: Outline) -> None:
    tree: dict[str, Any] = node("a")
    for _ in range(MAX_DEPTH - 1):
        tree = node("a", tree, text="")
    root = outline.ingest(tree, source="s").root
    assert outline.to_text(root, "org").count("\n") == MAX_DEPTH - 1
    again = outline.ingest_text(outline.to_text(root, "json"), "json", source="s")
    assert (differences(again), again.unchanged) == ((0, 0, 0, 0), MAX_DEPTH)
    with pytest.raises(UnsupportedError, match="as markdown"):
        outline.to_text(root, "markdown")


def test_a_level_that_no_text_has_is_refused(outline: Outline) -> None:
    root = outline.ingest(node("a", LEVEL=1, ID="top") | {"contents": [node("b", LEVEL=300_000_000)]}).root
    with pytest.raises(UnsupportedError, match="as org"):
        outline.to_text(root, "org")
    root = outline.ingest(node("a", node("b", LEVEL=102, text="")), source="s").root
    assert outline.to_text(root, "org") == f"* a\n{'*' * 102} b\n"


def test_a_file_of_windows_is_stored_and_written_with_its_line_ends(outline: Outline) -> None:
    for form, text in (("org", ORG), ("markdown", "---\ntags: x\n---\n# A\n\nb\n")):
        windows = "\ufeff" + text.replace("\n", "\r\n")
        root = outline.ingest_text(windows, form, source=form).root
        assert outline.to_text(root, form) == windows
        done = outline.ingest_text(windows, form, source=form)
        assert differences(done) == (0, 0, 0, 0)
    assert outline.get("s1") is not None
    done = outline.ingest_text(ORG, "org", source="org")
    assert (differences(done), done.changed) == ((0, 1, 0, 0), (done.root,))  # all but the root is as it was


def test_a_negative_zero_is_no_change(outline: Outline) -> None:
    outline.ingest(node("a", x=-0.0, y=[-0.0]), source="s")
    assert differences(outline.ingest(node("a", x=-0.0, y=[-0.0]), source="s")) == (0, 0, 0, 0)


# Others at the same time, and other processes


def test_an_ingest_that_meets_another_is_done_again_or_is_a_conflict(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    outline = memory.outline
    outline.ingest(node("r", node("a", text="1", ID="a"), ID="r"))
    real, meetings = Outline._write, [1]

    def meet(self: Outline, *args: Any) -> None:
        if meetings:
            number = meetings.pop()
            real(memory.outline, *_changed(memory, f"by another {number}"))
        real(self, *args)

    def _changed(memory: Memory, text: str) -> Any:
        from recollect.facets.outline.aligning import placed

        entries = {entry.id: entry for entry in memory.outline._entries("r")}
        tree = from_json(node("r", node("a", text=text, ID="a"), ID="r"))
        return [{}, [each for each in placed(tree, "r", entries) if each.id == "a"], [], None, "meet"]

    monkeypatch.setattr(Outline, "_write", meet)
    done = outline.ingest(node("r", node("a", text="mine", ID="a"), ID="r"))
    assert differences(done) == (0, 1, 0, 0)
    assert outline.get("a").text == "mine"  # type: ignore[union-attr]
    meetings += range(10)
    with pytest.raises(ConflictError):
        outline.ingest(node("r", node("a", text="again", ID="a"), ID="r"))
    assert outline.get("a").text.startswith("by another")  # type: ignore[union-attr]


def test_threads_that_ingest_outlines_of_their_own_lose_nothing(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:

        def work(number: int) -> None:
            for turn in range(5):
                memory.outline.ingest(
                    node(f"r{number}", *(node(f"{each}") for each in range(turn + 1))), source=f"{number}"
                )

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [len(memory.outline.children(each.id)) for each in memory.outline.roots()] == [5] * 4
    with recollect.open(tmp_path / "a.db") as memory:
        assert sorted(titles(memory.outline.roots())) == [f"r{number}" for number in range(4)]  # type: ignore[type-var]


@pytest.mark.files
def test_a_changed_line_is_read_and_written_in_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = node("r", *(node(f"h{at}", *(node(f"{at}.{each}", text="x") for each in range(20))) for at in range(50)))
    with recollect.open(tmp_path / "a.db") as memory:
        root = memory.outline.ingest(tree, source="s").root
        memory.outline.hash(root)
        rows = 0
        real_get, real_several, real_select = SqliteView.get, SqliteView.several, SqliteView.select

        def get(self: SqliteView, *args: Any) -> Any:
            nonlocal rows
            rows += 1
            return real_get(self, *args)

        def several(self: SqliteView, branch: Any, ids: Any) -> Any:
            nonlocal rows
            rows += len(ids)
            return real_several(self, branch, ids)

        def select(self: SqliteView, *args: Any, **kwargs: Any) -> Any:
            nonlocal rows
            for each in real_select(self, *args, **kwargs):
                rows += 1
                yield each

        monkeypatch.setattr(SqliteView, "get", get)
        monkeypatch.setattr(SqliteView, "several", several)
        monkeypatch.setattr(SqliteView, "select", select)
        tree["contents"][7]["contents"][3]["raw_content"] = "y"
        assert differences(memory.outline.ingest(tree, source="s")) == (0, 1, 0, 0)
        assert 1 <= rows <= 20
        rows = 0
        assert len(memory.outline.children(memory.outline.children(root)[7].id)) == 20
        assert 70 <= rows <= 80  # the 50 children of the root, and the 20 of one of them


@given(
    st.lists(st.recursive(st.sampled_from("abc"), lambda inner: st.lists(inner, max_size=3), max_leaves=8), max_size=6)
)
@settings(max_examples=some(60))
def test_whatever_was_stored_before_the_tree_is_the_last_one_ingested(trees: list[Any]) -> None:
    def built(each: Any, title: str = "r") -> dict[str, Any]:
        if isinstance(each, str):
            return node(each)
        return node(title, *(built(child, f"t{len(each)}") for child in each))

    with recollect.open(":memory:") as memory:
        for each in trees:
            tree = built(each)
            root = memory.outline.ingest(tree, source="s").root
            assert memory.outline.tree(root) == from_json(tree)
            again = memory.outline.ingest(tree, source="s")
            assert (differences(again), again.unchanged) == ((0, 0, 0, 0), len(list(from_json(tree).walk())))
            assert memory.outline.find() == sorted(memory.outline.find(), key=lambda each: each.id)
            assert len(memory.outline.find()) == again.unchanged


# The command line


def run(*arguments: str, text: str | None = None, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["outline", *arguments], input=text)
    assert done.exit_code == code, done.output
    return done.output


def walk(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [tree, *(below for each in tree["contents"] for below in walk(each))]


def without_ids(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a tree that `show --json` wrote as one that can be stored: with the IDs of its source only."""
    kept = {name: value for name, value in tree.items() if name != "id"}
    return {**kept, "contents": [without_ids(each) for each in tree["contents"]]}


@pytest.mark.files
def test_an_export_replaces_no_text_of_another_kind_unless_it_is_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_DB", "o.db")
    Path("house.org").write_text(ORG)
    run("import", "house.org")
    for name, form in (("a.py", "org"), ("a.md", "org"), ("a.org", "json")):
        Path(name).write_text("print(1)\n")
        done = run("export", "house.org", name, "--format", form, code=1)
        assert "is not an outline" in done
        assert "--force" in done
        assert Path(name).read_text() == "print(1)\n"
    Path("a.json").write_text("[1]")
    assert "is not an outline" in run("export", "house.org", "a.json", code=1)
    run("export", "house.org", "a.org")
    assert Path("a.org").read_text() == ORG
    run("export", "house.org", "a.py", "--format", "org", "--force")
    assert Path("a.py").read_text() == ORG
    assert "the store itself" in run("export", "house.org", "o.db", "--format", "org", "--force", code=1)


def test_the_commands_import_show_export_and_remove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_DB", "o.db")
    Path("house.org").write_text(ORG)
    assert "added: 6, changed: 0, moved: 0, removed: 0, unchanged: 0" in run("import", "house.org")
    again = json.loads(run("import", "house.org", "--json", "--snapshot"))
    assert (again["added"], again["unchanged"]) == (0, 6)
    shown = run("show", "house.org", "--depth", "1")
    assert ("Boats" in shown, "Sails" in shown, "nodes: 6" in shown) == (True, False, True)
    (tree,) = json.loads(run("show", "--json"))
    assert tree["id"] == again["root"]
    assert from_json(without_ids(tree)) == org.parse(ORG)
    ids = [each["id"] for each in walk(tree)]
    assert (len(ids), "s1" in ids) == (6, True)
    assert [each["id"] for each in walk(json.loads(run("show", ids[1], "--json"))[0])] == ids[
        1 : 1 + len(walk(tree["contents"][0]))
    ]
    (top,) = json.loads(run("show", "house.org", "--depth", "1", "--json"))
    assert [each["id"] for each in walk(top)] == [tree["id"], *(each["id"] for each in tree["contents"])]
    assert run("export", "house.org") == ORG
    run("export", again["root"], "copy.org")
    assert Path("copy.org").read_text() == ORG
    run("export", "house.org", "copy.json")
    assert from_json(json.loads(Path("copy.json").read_text())) == org.parse(ORG)
    other = run("import", "-", "--format", "json", "--source", "other", text=Path("copy.json").read_text())
    assert "added: 5, changed: 0, moved: 1, removed: 0, unchanged: 0" in other  # the node with an ID is one
    assert run("export", "s1", "-") == "* Sails\n:PROPERTIES:\n:ID: s1\n:Made: cotton\n:END:\nof cotton\n"
    assert run("remove", "s1") == "removed: 1\n"
    assert run("remove", "house.org") == "removed: 5\n"


@pytest.mark.parametrize("form", ["org", "markdown", "json"])
def test_the_commands_read_and_write_a_byte_order_mark_and_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_DB", "o.db")
    texts = {"org": "* A\r\nb\r\n", "markdown": "# A\r\nb\r\n", "json": '{"type": "HEADLINE"}'}
    data = b"\xef\xbb\xbf" + texts[form].encode()
    Path("a").write_bytes(data)
    run("import", "a", "--format", form)
    run("export", "a", "b", "--format", form)
    if form != "json":
        assert Path("b").read_bytes() == data


@pytest.mark.files
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("import", "absent.org"), 2, "does not exist"),
        (("import", "notes.txt"), 2, "--format"),
        (("import", "-", "--format", "org"), 2, "--source"),
        (("import", "bad.json"), 1, "is not JSON"),
        (("import", "bytes.org"), 1, "UTF-8"),
        (("show", "absent"), 1, "no record"),
        (("export", "absent"), 1, "no record"),
        (("export", "notes.org", "notes.txt", "--format", "json"), 1, "is not an outline"),
        (("export", "notes.org", "o.db", "--format", "org"), 1, "the store itself"),
        (("remove", "absent"), 1, "no record"),
    ],
)
def test_wrong_commands_say_what_is_wrong_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_DB", "o.db")
    Path("notes.org").write_text(ORG)
    Path("notes.txt").write_text("keep me")
    Path("bad.json").write_text("{")
    Path("bytes.org").write_bytes(b"\xff")
    run("import", "notes.org")
    assert said in run(*arguments, text="", code=code)
    assert Path("notes.txt").read_text() == "keep me"
    assert run("export", "notes.org") == ORG
