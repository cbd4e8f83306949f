"""Outlines that are stored below a given node: at its end, once, and never in a circle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.facets.outline.test_outline_isolation import meeting
from tests.facets.outline.test_outlines import differences, node, titles

import recollect
from recollect import Memory
from recollect.errors import ImportFormatError, InvalidArgumentError, RecollectError, UnknownRecordError
from recollect.facets.outline.outline import Outline
from recollect.facets.outline.text.nodes import MAX_DEPTH
from recollect.testing.loopback import beside

pytestmark = pytest.mark.stores("memory", "loopback")


@pytest.fixture
def outline(memory: Memory) -> Outline:
    """An outline "top" with the nodes "a" and "b" below it."""
    memory.outline.ingest(node("top", node("a", ID="a"), node("b", ID="b"), ID="top"))
    return memory.outline


def below(outline: Outline, node_id: str) -> list[str | None]:
    return titles(outline.children(node_id))


class TestStoring:
    def test_a_tree_becomes_the_last_child_and_again_adds_nothing(self, outline: Outline, memory: Memory) -> None:
        tree = node("x", node("y"), ID="x")
        done = outline.ingest(tree, parent="top")
        assert (differences(done), below(outline, "top"), outline.path("x")) == (
            (2, 0, 0, 0), ["a", "b", "x"], ["top", "x"],
        )  # fmt: skip
        seq = beside(memory, "nodes").seq
        again = outline.ingest(tree, parent="top")
        assert (differences(again), again.unchanged, beside(memory, "nodes").seq) == ((0, 0, 0, 0), 2, seq)

    def test_the_root_of_another_outline_is_moved_with_all_below_it(self, outline: Outline) -> None:
        tree = node("x", node("y", ID="y"), ID="x")
        outline.ingest(tree)
        done = outline.ingest(tree, parent="a")
        assert (done.moved, differences(done)) == (("x",), (0, 0, 1, 0))
        assert outline.path("y") == ["top", "a", "x", "y"]
        assert [each.id for each in outline.roots()] == ["top"]
        assert outline.ingest(tree, parent="b").moved == ("x",)
        assert (below(outline, "a"), below(outline, "b")) == ([], ["x"])

    def test_without_a_parent_a_root_stays_where_it_is(self, outline: Outline) -> None:
        outline.ingest(node("x", ID="x"), parent="a")
        outline.ingest_text("* Tea\n", "org", "tea.org", parent="b")
        assert outline.ingest(node("x, changed", ID="x")).changed == ("x",)
        assert differences(outline.ingest_text("* Tea\n", "org", "tea.org")) == (0, 0, 0, 0)
        assert (below(outline, "a"), below(outline, "b")) == (["x, changed"], [None])
        assert [each.id for each in outline.roots()] == ["top"]

    def test_a_child_keeps_its_place_among_the_children(self, outline: Outline) -> None:
        done = outline.ingest(node("a", node("new"), ID="a"), parent="top")
        assert (differences(done), below(outline, "top")) == ((1, 0, 0, 0), ["a", "b"])

    def test_a_tree_without_a_name_is_stored_once_below_each_parent(self, outline: Outline) -> None:
        for parent in ("a", "b", "a", "b"):
            outline.ingest(node("Buy milk"), parent=parent)
        assert (below(outline, "a"), below(outline, "b")) == (["Buy milk"], ["Buy milk"])

    def test_a_node_of_the_tree_that_is_elsewhere_comes_along(self, outline: Outline) -> None:
        done = outline.ingest(node("x", node("a", ID="a"), ID="x"), parent="b")
        assert (done.added, done.moved, below(outline, "top")) == (("x",), ("a",), ["b"])
        assert outline.path("a") == ["top", "b", "x", "a"]

    def test_the_tree_of_the_outline_above_replaces_what_was_stored_below_it(self, outline: Outline) -> None:
        outline.ingest(node("x", node("y"), ID="x"), parent="a")
        done = outline.ingest(node("top", node("a", ID="a"), node("b", ID="b"), ID="top"))
        assert ("x" in done.removed, len(done.removed)) == (True, 2)

    def test_a_scope_stores_below_nodes_of_its_own(self, memory: Memory, outline: Outline) -> None:
        ana = memory.scoped(user="ana").outline
        with pytest.raises(UnknownRecordError):
            ana.ingest(node("x", ID="x"), parent="top")
        ana.ingest(node("own", ID="top"))
        ana.ingest(node("x", ID="x"), parent="top")
        assert (ana.path("x"), below(outline, "top")) == (["own", "x"], ["a", "b"])
        outline.ingest(node("of the memory", ID="z"), parent="@user=ana/x")
        assert outline.path("z") == ["own", "x", "of the memory"]
        assert below(ana, "x") == []


class TestRefusing:
    @pytest.mark.parametrize(
        ("tree", "parent", "error"),
        [
            (node("x", ID="x"), "nope", UnknownRecordError),
            (node("x", ID="x"), "", InvalidArgumentError),
            (node("x", ID="x"), 3, InvalidArgumentError),
            (node("top", node("a", ID="a"), ID="top"), "a", InvalidArgumentError),  # in the tree
            (node("top", ID="top"), "a", InvalidArgumentError),  # below it so far
            (node("top", ID="top"), "top", InvalidArgumentError),
            (node("x", node("a", ID="a")), "a", InvalidArgumentError),
            (node("x", node("top", ID="top")), "a", InvalidArgumentError),  # above the parent
        ],
    )
    def test_what_cannot_be_below_the_parent_is_an_error_and_stores_nothing(
        self, outline: Outline, tree: Any, parent: Any, error: type[RecollectError]
    ) -> None:
        before, snapshots = outline.root, outline.snapshots()
        with pytest.raises(error):
            outline.ingest(tree, parent=parent, snapshot=True)
        if error is UnknownRecordError:
            with pytest.raises(error):
                outline.ingest_text("* x\n", "org", "x.org", parent=parent)
        assert (outline.root, len(outline.view())) == (before, 3)
        assert parent != "nope" or outline.snapshots() == snapshots
        outline.ingest(node("x", ID="x"), parent="a")  # what can be is stored
        assert outline.root != before

    def test_nothing_gets_deeper_than_a_tree_may_be(self, outline: Outline) -> None:
        def deep(nodes: int) -> dict[str, Any]:
            tree = node("last")
            for _ in range(nodes - 1):
                tree = node("n", tree)
            return tree

        with pytest.raises(ImportFormatError, match="deeper than"):
            outline.ingest(deep(MAX_DEPTH - 1), parent="a")
        outline.ingest(deep(MAX_DEPTH - 2), parent="a")
        assert outline.to_text("top", "json").count('"last"') == 1

    def test_a_parent_that_is_removed_meanwhile_gets_no_child(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        meeting(monkeypatch, lambda: memory.outline.remove("a"))
        with pytest.raises(UnknownRecordError):
            outline.ingest(node("x", ID="x"), parent="a")
        assert outline.get("x") is None

    @pytest.mark.parametrize(
        "other",
        [
            lambda outline: outline.ingest(node("other", ID="other"), parent="a"),
            lambda outline: outline.ingest(node("a", node("other", ID="other"), ID="a")),
        ],
    )
    def test_two_that_are_stored_below_one_node_at_the_same_time_are_both_there(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch, other: Callable[[Outline], object]
    ) -> None:
        meeting(monkeypatch, lambda: other(memory.outline))
        outline.ingest(node("x", ID="x"), parent="a")
        assert below(outline, "a") == ["other", "x"]

    def test_a_parent_that_is_moved_below_the_tree_meanwhile_makes_no_circle(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outline.ingest(node("x", ID="x"))
        meeting(monkeypatch, lambda: memory.outline.ingest(node("a", ID="a"), parent="x"))
        with pytest.raises(InvalidArgumentError):
            outline.ingest(node("x", ID="x"), parent="a")
        assert outline.path("a") == ["x", "a"]


NAMES = st.sampled_from("abcd")


@given(st.lists(st.tuples(NAMES, st.lists(NAMES, max_size=2), st.none() | NAMES), max_size=8))
@settings(max_examples=some(60))
def test_whatever_is_stored_below_what_no_node_is_lost_in_a_circle(steps: list[Any]) -> None:
    with recollect.open(":memory:") as memory:
        outline = memory.outline
        for root, children, parent in steps:
            tree = node(root, *(node(each, ID=each) for each in children), ID=root)
            before = outline.root
            try:
                outline.ingest(tree, parent=parent)
            except (InvalidArgumentError, UnknownRecordError):
                assert outline.root == before
                continue
            assert titles(outline.children(root)) == children
            assert parent is None or outline.get(root).parent == parent  # type: ignore[union-attr]
            assert differences(outline.ingest(tree, parent=parent)) == (0, 0, 0, 0)
            assert len(outline.view()) == len(outline.find())
