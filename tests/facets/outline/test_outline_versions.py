"""The history of outlines: versions by their hash, the root of all, the log, differences and snapshots."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.facets.outline.test_outlines import node, run, titles

import recollect
from recollect import Memory
from recollect.errors import InvalidArgumentError, ScopeError, UnknownRecordError, UnknownTargetError
from recollect.facets.outline.outline import Outline

pytestmark = pytest.mark.stores("memory", "loopback")


@pytest.fixture
def outline(memory: Memory) -> Outline:
    return memory.outline


def texts(outline: Outline, *versions: str) -> None:
    for text in versions:
        outline.ingest(node("a", text=text, ID="a"))


class TestVersions:
    def test_each_version_of_a_node_is_found_by_its_hash(self, outline: Outline) -> None:
        texts(outline, "one", "two", "three")
        outline.ingest(node("b", ID="b"))
        outline.remove("a")
        versions = outline.history("a")
        assert [each.cause for each in versions] == ["written"] * 3 + ["forgotten"]
        for version, text in zip(versions, ("one", "two", "three"), strict=False):
            assert version.record is not None
            (change,) = version.commit.changes
            assert change.after is not None
            for hash_ in (version.record.hash, change.after.hex()):
                found = outline.version(hash_)
                assert (found.id, found.text, found.version) == ("a", text, version.record.hash)
        assert outline.version(outline.get("b").version) == outline.get("b")  # type: ignore[union-attr]

    @pytest.mark.parametrize("hash_", ["0" * 64, "f" * 64])
    def test_a_hash_that_no_version_had_is_an_error(self, outline: Outline, hash_: str) -> None:
        texts(outline, "one")
        with pytest.raises(UnknownRecordError):
            outline.version(hash_)
        with pytest.raises(UnknownRecordError):
            outline.version(outline.hash("a"))  # that of a subtree is not stored

    @pytest.mark.parametrize("hash_", ["", "a", "0" * 63, "G" * 64, None, 3])
    def test_what_is_no_hash_is_refused(self, outline: Outline, hash_: str) -> None:
        with pytest.raises(InvalidArgumentError):
            outline.version(hash_)

    def test_a_past_moment_has_no_later_versions(self, outline: Outline, memory: Memory) -> None:
        texts(outline, "one")
        moment = memory.at(datetime.now(UTC) + timedelta(days=1))
        first = outline.history("a")[0]
        texts(outline, "two")
        last = outline.history("a")[-1]
        for version, is_there in ((first, True), (last, False)):
            assert version.record is not None
            (change,) = version.commit.changes
            assert change.after is not None
            for hash_ in (version.record.hash, change.after.hex()):
                if is_there:
                    assert moment.outline.version(hash_).text == "one"
                else:
                    with pytest.raises(UnknownRecordError):
                        moment.outline.version(hash_)

    def test_a_scope_finds_versions_of_its_own_only(self, memory: Memory, outline: Outline) -> None:
        ana, bob = memory.scoped(user="ana").outline, memory.scoped(user="bob").outline
        texts(ana, "secret")
        own, whole = ana.get("a"), outline.get("@user=ana/a")
        assert own is not None
        assert whole is not None
        (change,) = outline.history("@user=ana/a")[0].commit.changes
        assert change.after is not None
        assert ana.version(own.version) == own
        assert ana.version(change.after.hex()) == own
        assert outline.version(whole.version) == whole
        for hash_ in (own.version, whole.version, change.after.hex()):
            with pytest.raises(UnknownRecordError):
                bob.version(hash_)

    def test_what_was_erased_is_found_no_more(self, outline: Outline) -> None:
        texts(outline, "one")
        hash_ = outline.get("a").version  # type: ignore[union-attr]
        outline.erase("a")
        with pytest.raises(UnknownRecordError):
            outline.version(hash_)

    def test_a_record_of_the_memory_is_no_node(self, outline: Outline, memory: Memory) -> None:
        memory.remember("x", id="x")
        with pytest.raises(UnknownRecordError):
            outline.version(memory.get("x").hash)  # type: ignore[union-attr]

    def test_the_history_of_what_never_was_is_an_error(self, outline: Outline) -> None:
        with pytest.raises(UnknownRecordError):
            outline.history("nope")
        texts(outline, "one")
        outline.remove("a")
        assert len(outline.history("a")) == 2  # that of what was removed is not


class TestTheWhole:
    def test_the_root_is_that_of_the_part_and_changes_with_any_node(self, outline: Outline, memory: Memory) -> None:
        roots = {outline.root}
        texts(outline, "one", "two")
        roots.add(outline.root)
        outline.ingest(node("b", ID="b"))
        assert outline.root == memory.head().parts["nodes"]
        roots.add(outline.root)
        whole = memory.root
        memory.remember("tea")
        assert (outline.root in roots, memory.root != whole) == (True, True)
        assert len(roots) == 3
        outline.remove("b")
        assert outline.root in roots

    def test_equal_outlines_have_equal_roots_in_whatever_order_they_were_stored(self) -> None:
        trees = [node("a", node("x", ID="x"), ID="a"), node("b", ID="b")]
        roots = set()
        for order in (trees, trees[::-1]):
            with recollect.open(":memory:", clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as memory:
                for tree in order:
                    memory.outline.ingest(tree)
                roots.add(memory.outline.root)
        assert len(roots) == 1

    def test_a_node_is_proved_by_the_root_of_the_memory(self, outline: Outline, memory: Memory) -> None:
        texts(outline, "one")
        proof = memory.prove("a", part="nodes")
        assert recollect.verify(proof, memory.root)
        assert "one" in str(proof)
        before = memory.root
        texts(outline, "two")
        assert not recollect.verify(memory.prove("a", part="nodes"), before)

    def test_the_log_has_the_newest_commits_first_and_a_difference_says_what_changed(self, outline: Outline) -> None:
        texts(outline, "one", "two")
        outline.ingest(node("b", ID="b"), reason="because")
        log = outline.log()
        assert [each.seq for each in log] == [3, 2, 1]
        assert (log[0].reason, [change.id for change in log[0].changes]) == ("because", ["b"])
        assert ([each.seq for each in outline.log(1)], [each.seq for each in outline.log(since=2)]) == ([3], [3])
        found = outline.diff(1)
        assert ([each.id for each in found.added], [each.id for each in found.changed]) == (["b"], ["a"])
        assert not outline.diff(3)

    def test_an_awaited_outline_has_the_same_root(self, outline: Outline, memory: Memory) -> None:
        texts(outline, "one")
        root = outline.root

        async def awaited() -> str:
            async with recollect.AsyncMemory(memory) as twin:
                return await twin.outline.root()

        assert asyncio.run(awaited()) == root

    def test_a_scope_has_no_root(self, memory: Memory) -> None:
        with pytest.raises(ScopeError):
            _ = memory.scoped(user="ana").outline.root


class TestSnapshots:
    def test_a_snapshot_is_rolled_back_to_and_nothing_is_lost(self, outline: Outline) -> None:
        texts(outline, "one")
        outline.snapshot("before")
        was = outline.root
        texts(outline, "two")
        outline.snapshot()
        outline.ingest(node("b", ID="b"))
        assert [each.name for each in outline.snapshots()] == [None, "before"]
        outline.rollback("before")
        assert (outline.root, titles(outline.roots())) == (was, ["a"])
        outline.rollback(index=0)
        assert outline.get("a").text == "two"  # type: ignore[union-attr]
        outline.rollback(3)  # undone
        assert titles(outline.roots()) == ["a", "b"]
        assert len(outline.history("a")) == 4

    def test_of_those_without_a_name_the_newest_twenty_stay(self, outline: Outline) -> None:
        outline.snapshot("named")
        for number in range(25):
            texts(outline, str(number))
            outline.snapshot()
        kept = outline.snapshots()
        assert (len(kept), kept[0].seq, kept[19].seq, kept[20].name) == (21, 25, 6, "named")
        before = outline.root
        with pytest.raises(UnknownTargetError):
            outline.rollback(index=99)
        assert (outline.root, len(outline.log())) == (before, 25)

    def test_the_snapshots_of_the_memory_are_others(self, outline: Outline, memory: Memory) -> None:
        outline.snapshot("x")
        assert memory.snapshots() == []
        memory.snapshot("x")  # the name is free there
        with pytest.raises(InvalidArgumentError):
            outline.snapshot("x")
        assert outline.drop_snapshot("x").name == "x"
        assert (outline.snapshots(), len(memory.snapshots())) == ([], 1)
        with pytest.raises(UnknownTargetError):
            outline.drop_snapshot("x")
        with pytest.raises(ScopeError):
            memory.scoped(user="ana").outline.snapshot()


def test_the_commands_take_list_drop_and_roll_back_to_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_DB", "o.db")
    Path("a.org").write_text("* A\n")
    Path("b.org").write_text("* B\n")
    run("import", "a.org")
    assert "first" in run("snapshot", "first")
    run("import", "b.org", "--parent", "a.org")
    assert "B" in run("show", "a.org")
    run("snapshot")
    assert "first" in run("snapshots")
    assert '"name": "first"' in run("snapshots", "--json")
    assert "recollect outline rollback 2" in run("rollback", "first")
    assert "B" not in run("show", "a.org")
    run("rollback", "2", "--reason", "undo")
    assert "B" in run("show", "a.org")
    run("snapshot", "first", "--drop")
    assert "first" not in run("snapshots", "--json")
    assert "no such" in run("rollback", "first", code=1)
    assert "NAME" in run("snapshot", "--drop", code=2)
    assert "no record" in run("import", "b.org", "--parent", "nope", code=1)
