"""Lineage and taint: what a record was made from, and what was made from some."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect import Memory, Taint
from recollect.errors import InvalidArgumentError, UnknownRecordError, UnsupportedError
from recollect.operations import from_json

pytestmark = [pytest.mark.stores("memory", "sqlite"), pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")]
PAGE = "https://pages.example/a"


@pytest.fixture
def derived(memory: Memory) -> Memory:
    """A page, a note of it, a summary of the note and of what a user said, and something else."""
    memory.remember("the museum opens at nine", id="page", source=PAGE)
    memory.remember("museum: nine", id="note", derived_from=["page"])
    memory.remember("the user likes museums", id="said")
    memory.remember("museums, nine", id="summary", derived_from=["note", "said"])
    memory.remember("the ferry is late", id="other", derived_from=["said"])
    return memory


def test_a_lineage_names_all_that_a_record_was_made_from(derived: Memory) -> None:
    found = derived.lineage("summary")
    assert [(each.id, each.depth, each.origin, each.state, each.child) for each in found.records] == [
        ("summary", 0, "web", "live", ""),
        ("note", 1, "web", "live", "summary"),
        ("said", 1, "user", "live", "summary"),
        ("page", 2, "web", "live", "note"),
    ]
    assert found.least == "web"
    assert [each.seq for each in found.records] == [4, 2, 3, 1]
    assert found.records[1].link == "derived_from"


def test_a_lineage_goes_through_what_is_gone(derived: Memory) -> None:
    derived.forget("note")
    with derived.batch(actor="ana", reason="tidy") as batch:
        merged = batch.merge(derived.get_all(["page", "said"]), "both")  # type: ignore[arg-type]
    derived.erase("page")
    states = {each.id: each.state for each in derived.lineage("summary").records}
    assert states == {"summary": "live", "note": "former", "said": "former", "page": "erased"}
    above = derived.lineage(merged.id).records
    assert {(each.id, each.actor, each.reason) for each in above[1:] if each.state == "former"} == {
        ("said", "ana", "tidy")
    }


def test_a_lineage_names_what_was_replaced(memory: Memory) -> None:
    memory.remember("Ana lives in Rome", id="rome", kind="user_fact")
    new = memory.supersede("rome", "Ana lives in Oslo")
    (own, old) = memory.lineage(new.id).records
    assert (old.id, old.link, old.child) == ("rome", "supersedes", own.id)


def test_a_lineage_ends_in_a_circle_and_at_its_limit(memory: Memory) -> None:
    memory.remember("a", id="a", derived_from=["b"])
    memory.remember("b", id="b", derived_from=["a"])
    assert [each.id for each in memory.lineage("a").records] == ["a", "b"]
    assert memory.lineage("a", 1).truncated
    assert not memory.lineage("a", 2).truncated
    with pytest.raises(UnknownRecordError):
        memory.lineage("missing")
    with pytest.raises(InvalidArgumentError):
        memory.lineage("a", 10_001)


@pytest.mark.parametrize("by", ["id", "record", "source", "filter"])
def test_a_taint_is_all_that_was_made_from_some_records(derived: Memory, by: str) -> None:
    found: dict[str, Any] = {
        "id": lambda: derived.taint("page"),
        "record": lambda: derived.taint(derived.get("page")),  # type: ignore[arg-type]
        "source": lambda: derived.taint(source=PAGE),
        "filter": lambda: derived.taint(where="source=?" and f'source="{PAGE}"'),
    }
    tainted = found[by]()
    assert tainted.by_depth == (("page",), ("note",), ("summary",))
    assert tainted.ids == ("page", "note", "summary")
    assert len(tainted) == 3
    assert not tainted.truncated


def test_forgetting_a_taint_is_one_commit_that_can_be_taken_back(derived: Memory) -> None:
    seq = derived.seq
    before = derived.root
    assert derived.taint("page").forget("a page that lies", actor="ana") == 3
    commit = derived.changes(newest_first=True, limit=1)[0]
    assert (commit.seq, commit.actor, commit.reason) == (seq + 1, "ana", "a page that lies")
    assert {record.id for record in derived.find()} == {"said", "other"}
    derived.revert(commit.seq)
    assert derived.root == before


def test_erasing_a_taint_removes_the_texts(derived: Memory) -> None:
    assert set(derived.taint(source=PAGE).erase().ids) == {"page", "note", "summary"}
    assert derived.history("note")[0].erased
    assert {record.id for record in derived.find()} == {"said", "other"}


@pytest.mark.parametrize("gone", ["page", "note"])
@pytest.mark.parametrize("by", ["id", "source"])
def test_a_taint_goes_through_what_was_forgotten(derived: Memory, gone: str, by: str) -> None:
    derived.forget(gone)
    tainted = derived.taint("page") if by == "id" else derived.taint(source=PAGE)
    assert {"summary"} <= set(tainted.ids)
    assert "other" not in tainted.ids
    assert tainted.forget() == 2
    assert {record.id for record in derived.find()} == {"said", "other"}


def test_a_page_that_was_merged_taints_the_merged_record(memory: Memory) -> None:
    page = memory.remember("nine", source=PAGE)
    merged = memory.merge([page, memory.remember("ten")], "nine or ten")
    assert memory.taint(source=PAGE).ids == (page.id, merged.id)
    assert memory.taint(page.id).ids == (page.id, merged.id)


def test_the_pieces_of_a_document_are_one_text(memory: Memory) -> None:
    report = memory.record_knowledge("# A\n\nOne.\n\n# B\n\nTwo.\n", source="a.md", format="markdown")
    ids = {outcome.record.id for outcome in report.results if outcome.record is not None}
    assert len(ids) > 1
    note = memory.remember("a note", derived_from=[min(ids)])
    assert set(memory.taint(max(ids)).ids) == {*ids, note.id}


def test_a_scope_sees_its_own(memory: Memory) -> None:
    ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
    for view in (ana, bob):
        view.remember("a page", id="page", source=PAGE)
        view.remember("a note", id="note", derived_from=["page"])
        view.remember("a generated id", derived_from=["note"])
    for view in (ana, bob):
        tainted = view.taint("page")
        assert tainted.by_depth[:2] == (("page",), ("note",))
        assert len(tainted) == 3
        assert len(view.lineage("note").records) == 2
        assert view.lineage("note").records[0].seq == 0
    assert len(memory.taint(source=PAGE)) == 6
    assert ana.taint(source=PAGE).forget() == 3
    assert bob.count() == 3


def test_a_taint_has_limits(memory: Memory) -> None:
    memory.remember("a page", id="page")
    for number in range(5):
        memory.remember(f"note {number}", derived_from=["page"])
    part = memory.taint("page", limit=3)
    assert (len(part), part.truncated) == (3, True)
    with pytest.raises(UnsupportedError, match="there are more records"):
        part.forget()
    with pytest.raises(InvalidArgumentError):
        memory.taint()
    assert memory.taint("missing").ids == ()


def test_results_travel(derived: Memory) -> None:
    tainted = derived.taint("page")
    assert Taint.from_json(tainted.to_json()) == tainted
    with pytest.raises(UnsupportedError):
        Taint.from_json(tainted.to_json()).forget()
    lineage = derived.lineage("summary")
    assert recollect.Lineage.from_json(lineage.to_json()) == lineage
    assert pickle.loads(pickle.dumps(lineage)) == lineage
    operation = recollect.operations.TraceTaint(ids=("a",), where=recollect.filters.tag("x"))
    assert from_json(operation.to_json()) == operation


def test_a_batch_and_the_past_read_their_own(derived: Memory) -> None:
    seq = derived.seq
    with derived.batch() as batch:
        batch.remember("a further note", id="further", derived_from=["summary"])
        assert batch.taint("page").ids[-1] == "further"
    assert "further" in derived.taint("page").ids
    assert "further" not in derived.at(seq).taint("page").ids
    assert [each.id for each in derived.at(2).lineage("note").records] == ["note", "page"]


@settings(max_examples=40)
@given(
    links=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=25),
    gone=st.sets(st.integers(0, 11), max_size=4),
    start=st.integers(0, 11),
)
def test_a_taint_is_the_closure_of_the_links(links: list[tuple[int, int]], gone: set[int], start: int) -> None:
    """Compared with a walk over a dictionary, in which forgotten records still link."""
    above = {number: sorted({source for record, source in links if record == number}) for number in range(12)}
    with recollect.open(":memory:", embedder="none") as memory:
        for number in range(12):
            memory.remember(f"text {number}", id=f"r{number}", derived_from=[f"r{source}" for source in above[number]])
        for number in sorted(gone):
            memory.forget(f"r{number}")
        reached, level = {start}, {start}
        while level:
            level = {number for number in range(12) if level & set(above[number])} - reached
            reached |= level
        found = {int(each[1:]) for each in memory.taint(f"r{start}").ids}
        assert found - gone - {start} == reached - gone - {start}


@settings(max_examples=40)
@given(
    links=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    classes=st.lists(
        st.sampled_from(["owner", "user", "assistant", "tool", "document", "web"]), min_size=10, max_size=10
    ),
    merged=st.lists(st.sets(st.integers(0, 9), min_size=2, max_size=3), max_size=3),
)
def test_no_record_is_above_what_it_was_made_from(
    links: list[tuple[int, int]], classes: list[Any], merged: list[set[int]]
) -> None:
    from recollect.records.origins import RANKS

    with recollect.open(":memory:", embedder="none") as memory:
        for number in range(10):
            sources = [f"r{source}" for record, source in links if record == number and source < number]
            memory.as_origin(classes[number]).remember(f"text {number}", id=f"r{number}", derived_from=sources)
        for some in merged:
            records = [record for number in sorted(some) if (record := memory.get(f"r{number}")) is not None]
            if len(records) > 1:
                memory.as_origin("owner").merge(records, " ".join(record.text for record in records))
        for record in memory.find():
            least = memory.lineage(record.id).least
            assert RANKS[record.effective_origin] <= RANKS[least]
