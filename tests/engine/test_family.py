"""Every call on a memory concerns all of its parts, unless it names some."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.family import CALLS, PARTS, WRONG, changed, counts, fill, ids, roots, write

from recollect import Difference, Memory
from recollect import filters as f
from recollect.errors import InvalidArgumentError

on_all = pytest.mark.stores("memory", "sqlite", "loopback")
#: What a call is limited to.
CHOICES: dict[str, Any] = {"all": None, "one": ["keys"], "the records": ["records"], "several": ("terms", "records")}
chosen = pytest.mark.parametrize("choice", CHOICES)


def of(choice: str) -> tuple[str, ...]:
    """Return the parts of a choice."""
    parts = CHOICES[choice]
    return PARTS if parts is None else tuple(each for each in PARTS if each in parts)


def differing(found: Difference) -> dict[str, Difference]:
    """Return the differences of the parts that differ themselves."""
    return {part: each for part, each in found.each() if each.added or each.changed or each.removed}


@on_all
@pytest.mark.parametrize("call", CALLS)
def test_parts_that_a_memory_does_not_have_are_refused_before_anything_happens(memory: Memory, call: str) -> None:
    fill(memory)
    before = memory.head()
    for wrong in WRONG.values():
        with pytest.raises(InvalidArgumentError) as refused:
            CALLS[call](memory, wrong)
        assert refused.value.args[0] == "parts"
    with pytest.raises(InvalidArgumentError, match="must be some of records, keys, nodes, quarantined, sdrs, terms"):
        CALLS[call](memory, WRONG["unknown"])
    assert memory.head() == before


@on_all
@chosen
def test_statistics_count_each_part(memory: Memory, choice: str) -> None:
    fill(memory)
    fill(memory, "b")
    memory.keyed.write("c", b"\xff")
    found = memory.stats(parts=CHOICES[choice])
    expected = counts(memory)
    assert expected == {"records": 2, "keys": 3, "nodes": 2, "sdrs": 2, "terms": 2}
    assert found["parts"] == {part: expected[part] for part in of(choice)}
    assert found["records"] == 2


@on_all
@chosen
def test_the_log_has_the_commits_to_each_part_in_their_order(memory: Memory, choice: str) -> None:
    fill(memory)
    with memory.batch(actor="ana", reason="both") as batch:
        batch.remember("both", id="both")
        batch.clear(parts=["keys"])
    expected = [*[(part,) for part in PARTS], ("records", "keys")]
    expected = [tuple(part for part in each if part in of(choice)) for each in expected]
    commits = memory.changes(parts=CHOICES[choice])
    assert changed(commits) == [each for each in expected if each]
    assert memory.log(None, parts=CHOICES[choice]) == commits[::-1]
    assert [each.seq for each in commits] == [number for number, each in enumerate(expected, 1) if each]
    last = [each for each in commits if each.reason == "both"]
    for commit in last:
        for each in commit.part_commits:
            assert (each.actor, each.reason, each.micros) == (commit.actor, commit.reason, commit.micros)
            stated = next(part for part in commit.parts or () if part.name == each.part)
            assert (stated.seq, stated.root, stated.entry) == (each.seq, each.root.hash, each.entry)


@on_all
def test_a_page_of_the_log_with_parts_is_followed_by_the_next(memory: Memory) -> None:
    for number in range(12):
        write(memory, PARTS[number % 2], f"n{number}")
    found, since = [], 0
    while page := memory.changes(since, 2, parts=["keys"]):
        found += page
        since = page[-1].seq
    assert found == memory.changes(parts=["keys"])
    assert [each.seq for each in found] == [2, 4, 6, 8, 10, 12]
    assert [each.seq for each in memory.log(2, parts=["keys"])] == [12, 10]


@on_all
def test_the_log_of_an_id_looks_for_it_in_the_parts_that_are_named(memory: Memory) -> None:
    write(memory, "records", "a")
    write(memory, "keys", "a")
    write(memory, "keys", "b")
    assert [each.seq for each in memory.changes(id="a")] == [1]
    assert [each.seq for each in memory.changes(id="a", parts=["keys"])] == [2]
    assert [each.seq for each in memory.changes(id="a", parts=["keys", "records"])] == [1, 2]
    assert [each.seq for each in memory.changes(where=f.kind("nothing"))] == []


@on_all
@chosen
def test_a_difference_names_what_differs_in_each_part(memory: Memory, choice: str) -> None:
    fill(memory)
    start = memory.seq
    fill(memory, "b")
    memory.keyed.write("a", b"changed")
    memory.keyed.write("a", b"")
    found = memory.diff(start, parts=CHOICES[choice])
    each = differing(found)
    assert set(each) == set(of(choice))
    for part, difference in each.items():
        new = [record.id for record in difference.added if record.kind != "sdr_counter"]
        assert len(new) == 1
        assert new[0] in ids(memory, part)
        assert [record.id for record in difference.changed] == {"keys": ["a"], "sdrs": ["last"]}.get(part, [])
    back = memory.diff(memory.seq, start, parts=CHOICES[choice])
    assert {part: difference.removed for part, difference in differing(back).items()} == {
        part: difference.added for part, difference in each.items()
    }
    assert not memory.diff(start, start, parts=CHOICES[choice])


@on_all
@chosen
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a batch"])
def test_clearing_leaves_nothing_in_the_parts_and_all_else(memory: Memory, choice: str, inside: bool) -> None:
    fill(memory)
    fill(memory, "b")
    before, seq = roots(memory), memory.seq
    if inside:
        with memory.batch() as batch:
            done = batch.clear(parts=CHOICES[choice])
    else:
        done = memory.clear(parts=CHOICES[choice])
    assert (done, done.parts) == (2 * len(of(choice)), dict.fromkeys(of(choice), 2))
    assert counts(memory) == {part: 0 if part in of(choice) else 2 for part in PARTS}
    assert {part: root for part, root in roots(memory).items() if part not in of(choice)} == {
        part: root for part, root in before.items() if part not in of(choice)
    }
    assert memory.seq == seq + 1, "one commit"
    assert memory.clear(parts=CHOICES[choice]) == 0
    assert memory.seq == seq + 1


@on_all
@chosen
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a batch"])
def test_forgetting_what_matches_looks_into_the_parts(memory: Memory, choice: str, inside: bool) -> None:
    for user in ("ana", "bo"):
        fill(memory.scoped(user=user), user)
    fill(memory, "shared")
    before = counts(memory)
    seq = memory.seq
    if inside:
        with memory.batch() as batch:
            done = batch.forget_where(user="ana", parts=CHOICES[choice])
    else:
        done = memory.forget_where(f.user("ana"), parts=CHOICES[choice])
    assert (done, done.parts) == (len(of(choice)), dict.fromkeys(of(choice), 1))
    assert memory.seq == seq + 1
    assert counts(memory) == {part: before[part] - (part in of(choice)) for part in PARTS}
    assert memory.scoped(user="bo").stats()["parts"] == dict.fromkeys(PARTS, 1)


@on_all
@chosen
def test_an_erasure_by_a_filter_reaches_the_parts(memory: Memory, choice: str) -> None:
    for user in ("ana", "bo"):
        fill(memory.scoped(user=user), user)
    before = counts(memory)
    done = memory.erase(f.user("ana"), parts=CHOICES[choice])
    own = of(choice)
    if len(own) == 1:
        assert (len(done.ids), done.parts) == (1, {})
    else:
        assert len(done.ids) == ("records" in own)
        assert done.parts == {part: 1 for part in own if part != "records"}
    assert counts(memory) == {part: before[part] - (part in own) for part in PARTS}
    assert memory.check() == []


@on_all
def test_an_erasure_of_an_id_looks_into_one_part(memory: Memory) -> None:
    write(memory, "records", "a")
    write(memory, "keys", "a")
    with pytest.raises(InvalidArgumentError, match="must be one part"):
        memory.erase("a", parts=["records", "keys"])
    assert memory.erase("a", parts=["keys"]).ids == ("a",)
    assert (memory.keyed.read("a"), memory.get("a") is None) == (None, False)
    assert memory.erase("a").ids == ("a",)
    assert memory.get("a") is None


@on_all
@chosen
def test_an_export_has_the_parts_and_their_roots(memory: Memory, choice: str) -> None:
    fill(memory)
    fill(memory, "b")
    expected, heads = counts(memory), roots(memory)
    with memory.open_export(parts=CHOICES[choice]) as export:  # read in order, as over HTTP
        own = [record.id for record in export.records]
        found = {
            each.name: [record.id for record in each.records if record.kind != "sdr_counter"] for each in export.parts
        }
        assert {each.name: each.root for each in export.parts} == {
            part: heads[part] for part in of(choice) if part != "records"
        }
        assert (export.root == heads["records"], export.count, len(own)) == (
            (True, expected["records"], 2) if "records" in of(choice) else (False, 0, 0)
        )
    assert found == {part: ids(memory, part) for part in of(choice) if part != "records"}


@on_all
def test_a_batch_counts_what_it_has_written_to_each_part(memory: Memory) -> None:
    fill(memory)
    with memory.batch() as batch:
        batch.remember("b", id="b")
        assert batch.stats()["parts"] == {"records": 2, "keys": 1, "nodes": 1, "sdrs": 1, "terms": 1}
        assert batch.forget_where(f.kind("nothing"), parts=["keys"]) == 0
        assert batch.clear(parts=["keys", "records"]).parts == {"records": 2, "keys": 1}
        assert batch.stats(parts=["keys", "terms"])["parts"] == {"terms": 1}
        with pytest.raises(InvalidArgumentError, match="must be some of records"):
            batch.clear(parts=["outlines"])
    assert memory.stats()["parts"] == {"records": 0, "nodes": 1, "sdrs": 1, "terms": 1}
