"""Outlines of scopes, of several writers, with quotas and erasures: no one shows, changes or loses those of others."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.facets.outline.test_outlines import differences, node, titles

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import ConflictError, InvalidArgumentError, ScopeError, UnknownRecordError
from recollect.facets.outline.outline import Outline
from recollect.facets.outline.reading import OutlineReads

SOURCE = "notes.org"

pytestmark = pytest.mark.stores("memory", "loopback")


@pytest.fixture
def outline(memory: Memory) -> Outline:
    return memory.outline


class TestScopes:
    def test_outlines_of_the_same_source_in_several_scopes_are_several_outlines(self, memory: Memory) -> None:
        ana = memory.scoped(user="ana")
        views = [memory, ana, memory.scoped(user="bob"), ana.scoped(conversation="c")]
        texts = [f"* of {number}\n** below {number}\n" for number in range(len(views))]
        done = [view.outline.ingest_text(text, "org", SOURCE) for view, text in zip(views, texts, strict=True)]
        again = [view.outline.ingest_text(text, "org", SOURCE) for view, text in zip(views, texts, strict=True)]
        assert [differences(each) for each in again] == [(0, 0, 0, 0)] * len(views)
        for view, text, each in zip(views, texts, done, strict=True):
            assert view.outline.to_text(each.root, "org") == text
            assert len(view.outline.view(each.root)) == 3

    def test_the_whole_memory_shows_the_outline_of_a_scope_with_what_is_below_it(self, memory: Memory) -> None:
        root = memory.scoped(user="ana").outline.ingest_text("* a\n** b\n", "org", SOURCE).root
        memory.outline.ingest_text("* c\n", "org", SOURCE)
        shown = f"@user=ana/{root}"
        assert memory.outline.to_text(shown, "org") == "* a\n** b\n"
        (first,) = memory.outline.children(shown)
        (second,) = memory.outline.children(first.id)
        assert (memory.outline.path(second.id), second.parent) == (["", "a", "b"], first.id)
        assert {each.id for each in memory.outline.roots()} == {root, shown}
        assert [each.node.id for each in memory.outline.search("b", under=shown)] == [second.id]
        assert memory.outline.remove(shown) == 3
        assert memory.scoped(user="ana").outline.roots() == []
        assert titles(memory.outline.find()) == [None, "c"] or titles(memory.outline.find()) == ["c", None]

    def test_an_id_that_looks_like_that_of_a_scope_is_refused(self, memory: Memory) -> None:
        memory.scoped(user="ana").outline.ingest(node("mine", ID="x"))
        with pytest.raises(InvalidArgumentError, match="begins with @"):
            memory.outline.ingest(node("r", node("taken", ID="@user=ana/x")))
        assert memory.scoped(user="ana").outline.get("x").title == "mine"  # type: ignore[union-attr]


def meeting(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Let somebody else do something between the reading and the writing of the next ingest."""
    real, waiting = Outline._write, [other]

    def meet(self: Outline, *args: Any) -> None:
        if waiting:
            waiting.pop()()
        real(self, *args)

    monkeypatch.setattr(Outline, "_write", meet)


class TestOthersAtTheSameTime:
    def test_a_node_whose_parent_is_removed_meanwhile_does_not_become_an_orphan(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outline.ingest(node("a", ID="a"))
        meeting(monkeypatch, lambda: memory.outline.remove("a"))
        outline.ingest(node("a", node("new"), ID="a"))
        assert outline.path(outline.find()[-1].id)[0] == "a"
        assert len(outline.view("a")) == len(outline.find()) == 2

    def test_two_that_put_each_other_below_themselves_make_no_circle(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outline.ingest(node("a", ID="a"))
        outline.ingest(node("b", ID="b"))
        meeting(monkeypatch, lambda: memory.outline.ingest(node("b", node("a", ID="a"), ID="b")))
        with pytest.raises(InvalidArgumentError, match="above its root"):
            outline.ingest(node("a", node("b", ID="b"), ID="a"))
        assert [each.id for each in outline.roots()] == ["b"]
        assert len(outline.view()) == 2

    def test_of_two_versions_of_one_source_the_later_one_stays(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outline.ingest_text("* A\n* B\n", "org", SOURCE)
        meeting(monkeypatch, lambda: memory.outline.ingest_text("* A2\n* B\n* C\n", "org", SOURCE))
        root = outline.ingest_text("* A\n* B2\n* D\n", "org", SOURCE).root
        assert outline.to_text(root, "org") == "* A\n* B2\n* D\n"

    def test_what_is_read_is_of_one_commit(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = outline.ingest_text("* A\none\n* B\n", "org", SOURCE).root
        real, waiting = OutlineReads._several, [1]

        def several(self: Outline, ids: Any) -> Any:
            if waiting and ids:
                waiting.pop()
                memory.outline.ingest_text("* B\n* A\ntwo\n", "org", SOURCE)
            return real(self, ids)

        monkeypatch.setattr(OutlineReads, "_several", several)
        assert outline.to_text(root, "org") == "* B\n* A\ntwo\n"
        waiting += [1]
        assert titles(outline.view(root)) == [None, "B", "A"]

    def test_what_changes_each_time_that_it_is_read_is_a_conflict(
        self, memory: Memory, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = outline.ingest_text("* A\n", "org", SOURCE).root
        real, numbers = OutlineReads._several, iter(range(1000))

        def several(self: Outline, ids: Any) -> Any:
            found = real(self, ids)
            if ids:
                monkeypatch.undo()
                memory.outline.ingest_text(f"* A {next(numbers)}\n", "org", SOURCE)
                monkeypatch.setattr(OutlineReads, "_several", several)
            return found

        monkeypatch.setattr(OutlineReads, "_several", several)
        with pytest.raises(ConflictError, match="again and again"):
            outline.view(root)


class TestWhichNodeIsWhich:
    def test_a_node_without_an_id_never_takes_that_of_a_node_that_has_one(self, outline: Outline) -> None:
        outline.ingest(node("A", node("Tea", ID="x"), ID="A"))
        outline.ingest(node("A", node("Coffee"), ID="A"))
        outline.ingest(node("B", node("Tea", ID="x"), ID="B"))
        assert titles(outline.children("A")) == ["Coffee"]
        assert [each.id for each in outline.children("B")] == ["x"]

    def test_an_id_that_is_added_or_removed_is_a_change(self, outline: Outline) -> None:
        named = "* a\n:PROPERTIES:\n:ID: new\n:END:\nx\n"
        for text in ("* a\nx\n", named, "* a\nx\n"):
            root = outline.ingest_text(text, "org", SOURCE).root
            assert outline.to_text(root, "org") == text
            assert [each.title for each in outline.without_id(root)] == [None] if "ID" in text else [None, "a"]

    def test_an_id_that_was_made_can_be_written_into_the_file(self, outline: Outline) -> None:
        root = outline.ingest_text("* a\nx\n", "org", SOURCE).root
        made = outline.children(root)[0].id
        text = f"* a\n:PROPERTIES:\n:ID: {made}\n:END:\nx\n"
        done = outline.ingest_text(text, "org", SOURCE)
        assert (done.changed, done.added) == ((made,), ())
        assert outline.to_text(root, "org") == text
        assert titles(outline.without_id(root)) == [None]

    def test_the_same_words_in_another_form_are_a_change(self, outline: Outline) -> None:
        forms: list[dict[str, Any]] = [
            {"type": "H", "properties": {"ID": "a", "TITLE": "t"}, "raw_content": "b"},
            {"type": "H", "properties": {"ID": "a"}, "raw_content": "t\nb"},
            {"type": "H", "properties": {"TITLE": "t\nb", "ID": "a"}},
        ]
        for tree in forms:
            outline.ingest(tree)
            assert outline.tree("a").to_json() == {"contents": [], **tree}

    def test_a_made_id_that_is_elsewhere_now_is_not_made_again(self, outline: Outline) -> None:
        notes = node("Notes")
        outline.ingest(node("A", node("p", notes, ID="p"), ID="A"))
        moved = outline.children("p")[0].id
        outline.ingest(node("B", node("p", ID="p"), node("Q", notes, ID="Q"), ID="B"))
        assert [each.id for each in outline.children("Q")] == [moved]
        done = outline.ingest(node("A", node("p", notes, ID="p"), ID="A"))
        assert len(done.added) == 1
        assert titles(outline.children("p")) == titles(outline.children("Q")) == ["Notes"]

    def test_many_equal_siblings_get_ids_in_as_many_steps(
        self, outline: Outline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[str] = []
        real = uuid.uuid5

        def counted(*args: Any) -> uuid.UUID:
            made.append("")
            return real(*args)

        monkeypatch.setattr(uuid, "uuid5", counted)
        outline.ingest_text("* same\n" * 500, "org", SOURCE)
        assert len(made) <= 510


class TestWhatGoes:
    def test_a_node_whose_parent_was_evicted_is_at_the_top(self, memory: Memory, outline: Outline) -> None:
        memory.set_quota(records=5, when_full="least recent")
        outline.ingest(node("A", node("B", ID="b"), node("C", ID="c"), ID="a"))
        outline.ingest(node("D", node("E", ID="e"), node("F", ID="f"), ID="d"))
        left = {each.id for each in outline.find()}
        assert len(left) == 5
        assert {each.id for each in outline.view()} == left

    @pytest.mark.files
    def test_a_filter_erases_what_lies_beside_the_records_too(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path) as memory:
            for user in ("ana", "bob"):
                own = memory.scoped(user=user)
                own.remember(f"secretrecord of {user}")
                own.outline.ingest(node(f"secretnode of {user}", ID="n"))
                own.sdr.store(f"secrettext of {user}")
                own.glossary.memorize("key", f"secretterm of {user}", "", "bot")
            erased = memory.erase(f.user("ana"))
            assert (len(erased.ids), dict(erased.parts)) == (1, {"nodes": 1, "sdrs": 1, "terms": 1})
            assert memory.scoped(user="ana").outline.get("n") is None
            assert memory.scoped(user="bob").outline.get("n") is not None
            assert memory.scoped(user="ana").sdr.store("another") == 2  # a number is never given twice
        data = path.read_bytes()
        assert b"of ana" not in data
        assert data.count(b"of bob") >= 4

    @pytest.mark.files
    def test_a_subtree_is_erased_with_its_history(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path) as memory:
            memory.outline.ingest(node("r", node("first secret", node("deep secret"), ID="a"), ID="r"))
            memory.outline.ingest(node("r", node("second secret", node("deep secret"), ID="a"), ID="r"))
            assert len(memory.outline.erase("a").ids) == 2
            assert len(memory.outline.view()) == 1
            with pytest.raises(UnknownRecordError):
                memory.outline.erase("never")
        assert b"secret" not in path.read_bytes()

    def test_a_snapshot_before_an_ingest_is_rolled_back_to(self, memory: Memory, outline: Outline) -> None:
        root = outline.ingest_text("* one\n", "org", SOURCE).root
        outline.ingest_text("* two\n", "org", SOURCE, snapshot=True)
        assert len(outline.snapshots()) == 1
        assert len(outline.history(outline.children(root)[0].id)) == 2
        outline.rollback(index=0)
        assert outline.to_text(root, "org") == "* one\n"
        with pytest.raises(ScopeError):
            memory.scoped(user="ana").outline.rollback(index=0)


class TestPrivacy:
    TEXT = "* Boats\nhulls\n* Diary :private:\nmy boats\n** Deep\nboats too\n"

    def test_no_tool_of_a_model_shows_a_private_node_or_what_is_below_it(self, memory: Memory) -> None:
        memory.outline.ingest_text(self.TEXT, "org", SOURCE)
        found = memory.tools().call("search_outline", {"text": "boats", "k": 10})["results"]
        assert [each["title"] for each in found] == ["Boats"]
        assert titles(memory.outline.view(private=["PRIVATE", "private"])) == [None, "Boats"]
        diary = memory.outline.find(attribute="TAGS")[0].id
        deep = memory.outline.children(diary)[0].id
        assert [len(memory.outline.view(each, private=["private"])) for each in (diary, deep)] == [0, 0]

    def test_a_node_that_becomes_private_meanwhile_is_not_shown(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outline = memory.outline
        root = outline.ingest_text("* Boats\n* Mine\nmy boats\n", "org", SOURCE).root
        real = Outline.search

        def search(self: Outline, *args: Any, **kwargs: Any) -> Any:
            monkeypatch.undo()
            memory.outline.ingest_text("* Boats\n* Mine :private:\nmy boats, secret\n", "org", SOURCE)
            return real(self, *args, **{**kwargs, "private": ()})

        monkeypatch.setattr(Outline, "search", search)
        text = outline.focus(outline.children(root)[0].id, question="my boats", minimum=0)
        assert "secret" not in text
        assert "Mine" not in text


def test_wrong_arguments_are_refused(outline: Outline) -> None:
    outline.ingest(node("a", ID="a"))
    calls: list[Callable[[], object]] = [
        lambda: outline.search("x", marked=1),  # type: ignore[arg-type]
        lambda: outline.search("x", private=None),  # type: ignore[arg-type]
        lambda: outline.focus("a", question=5),  # type: ignore[arg-type]
        lambda: outline.ingest(node("a"), snapshot="yes"),  # type: ignore[arg-type]
        lambda: outline.view(private="private"),
    ]
    for call in calls:
        with pytest.raises(InvalidArgumentError):
            call()


def test_a_path_leads_back_to_its_node(outline: Outline) -> None:
    outline.ingest_text("* a\n** b\n", "org", SOURCE)
    outline.ingest(node("top", node("a", node("b", ID="n"))))
    for each in outline.view():
        assert outline.at_path(outline.path(each.id)) == each
    assert outline.at_path(["top", "a", "b"]).id == "n"  # type: ignore[union-attr]


def test_ids_are_compared_in_the_form_that_ids_have(outline: Outline) -> None:
    outline.ingest(node("a", node("b"), ID="e\u0301"))
    assert outline.tree("e\u0301").title == "a"
    assert titles(outline.find(under="e\u0301")) == ["b"]
    assert outline.find(attribute="TITLE") == outline.find(attribute="@node") == []
