"""Former versions lose their texts when they were replaced or removed long enough ago, and moments since stay whole."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.retention.clock import START, Clock, later

from recollect import Due, Memory, RetentionRule
from recollect.engine import retaining, retention

pytestmark = pytest.mark.stores("memory", "sqlite", clock=Clock)

HOLD = RetentionRule("court", where="user=ana", action="hold")


def texts(memory: Memory, record_id: str) -> list[str | None]:
    """Return the texts of the versions of a record, oldest first; None for one that has lost it."""
    return [None if each.record is None else each.record.text for each in memory.history(record_id)]


def thinned(done: list[Due]) -> int:
    assert all((each.rule, each.action) == ("keep_versions", "thin") for each in done)
    return sum(each.count for each in done)


def test_a_version_is_thinned_when_it_was_replaced_so_long_ago_and_not_when_it_was_written(memory: Memory) -> None:
    memory.set_retention(keep_versions="30d")
    memory.remember("first", id="a")
    later(memory, days=40)
    memory.update("a", content="second")
    assert memory.apply_retention() == []
    later(memory, days=29)
    assert memory.apply_retention() == []
    later(memory, days=1)
    seq, plan = memory.seq, memory.apply_retention()
    assert [(each.rule, each.action, each.count, each.samples) for each in plan] == [
        ("keep_versions", "thin", 1, ("a",))
    ]
    assert plan[0].oldest == memory.changes()[-1].time
    assert memory.apply_retention(dry_run=False) == plan
    assert texts(memory, "a")[-2:] in ([None, "second"], ["second", None])
    assert memory.seq == seq  # there is no commit
    assert memory.apply_retention() == memory.apply_retention(dry_run=False) == []
    report = memory.check()
    assert (list(report), report.thinned, report.erased) == ([], 1, 0)


@pytest.mark.promise("retention.moments")
def test_what_was_live_at_any_moment_of_the_time_can_be_read_at_it(memory: Memory) -> None:
    memory.remember("first", id="a")
    memory.remember("gone", id="b")
    later(memory, days=10)
    memory.update("a", content="second")
    memory.forget("b")
    later(memory, days=10)
    memory.update("a", content="first")  # the first version is live again
    later(memory, days=10)
    memory.update("a", content="third")
    memory.set_retention(keep_versions="15d")
    assert thinned(memory.apply_retention(dry_run=False)) == 1  # "gone"
    assert [each.text for each in memory.at(START + timedelta(days=15)).find()] == ["second"]
    assert memory.at(START + timedelta(days=25)).get("a").text == "first"  # type: ignore[union-attr]
    later(memory, days=10)
    assert thinned(memory.apply_retention(dry_run=False)) == 1  # "second"
    later(memory, days=10)
    assert thinned(memory.apply_retention(dry_run=False)) == 1
    assert memory.at(START + timedelta(days=1)).find() == []
    assert [each.text for each in memory.find()] == ["third"]
    assert memory.check() == []


def test_versions_of_forgotten_and_expired_records_are_thinned_too(memory: Memory) -> None:
    memory.remember("forgotten", id="a")
    memory.remember("short", id="b", ttl=60)
    memory.forget("a")
    later(memory, days=1)
    memory.set_retention([RetentionRule("old", after="1d")], keep_versions="10d")
    memory.remember("old", id="c", time=START)
    assert memory.sweep() == 1  # the commit before has removed "b"
    assert memory.count() == 0
    later(memory, days=10, minutes=1)
    assert thinned(memory.apply_retention(dry_run=False)) == 3
    assert all(texts(memory, each).count(None) >= 1 for each in "abc")


@pytest.mark.promise("retention.hold")
def test_what_a_hold_applies_to_or_did_apply_to_keeps_its_versions_until_the_hold_ends(memory: Memory) -> None:
    for name, user in (("hers", "ana"), ("his", "bob"), ("moved", "ana")):
        memory.remember(f"{name} first", id=name, user=user)
        memory.update(name, content=f"{name} second")
    memory.update("moved", user="bob")
    memory.forget("hers")
    later(memory, days=11)
    memory.set_retention([HOLD], keep_versions="10d")
    plan = memory.apply_retention()
    assert memory.apply_retention(dry_run=False) == plan
    assert (thinned(plan), plan[0].samples) == (1, ("his",))
    assert memory.apply_retention() == []
    memory.set_retention(keep_versions="10d")
    plan = memory.apply_retention()
    assert memory.apply_retention(dry_run=False) == plan
    assert (thinned(plan), set(plan[0].samples)) == (4, {"hers", "moved"})


def test_other_parts_of_the_memory_are_thinned_as_well(memory: Memory) -> None:
    memory.keyed.write("k", b"first")
    memory.keyed.write("k", b"second")
    memory.glossary.memorize("tea", "a drink", "", "a")
    memory.glossary.forget("tea", "a")
    memory.set_retention(keep_versions="1d")
    later(memory, days=2)
    plan = memory.apply_retention()
    assert thinned(plan) >= 2
    assert memory.apply_retention(dry_run=False) == plan
    assert memory.keyed.read("k") == b"second"
    assert memory.apply_retention() == []
    assert memory.check() == []


def test_a_thinned_version_is_not_restored_and_one_that_is_stored_again_has_its_text(memory: Memory) -> None:
    memory.remember("first", id="a", time=START)
    memory.update("a", content="second")
    memory.set_retention(keep_versions="1d")
    later(memory, days=2)
    memory.apply_retention(dry_run=False)
    restored = memory.rollback(1)
    assert (restored.erased, [each.text for each in memory.find()]) == (("a",), ["second"])
    memory.update("a", content="first")
    assert texts(memory, "a").count(None) == 0
    report = memory.check()
    assert (list(report), report.thinned) == ([], 0)


def test_an_erasure_after_it_leaves_nothing_of_the_record(memory: Memory) -> None:
    memory.remember("first", id="a")
    memory.update("a", content="second")
    memory.set_retention(keep_versions="1d")
    later(memory, days=2)
    memory.apply_retention(dry_run=False)
    assert memory.erase("a", redact=True).versions == 1
    report = memory.check()
    assert (list(report), report.thinned, report.erased) == ([], 1, 1)


def test_what_a_rule_erases_is_not_counted_as_former_versions_too(memory: Memory) -> None:
    memory.remember("first", id="a")
    memory.update("a", content="second")
    memory.set_retention([RetentionRule("old", after="1d", action="erase")], keep_versions="1d")
    later(memory, days=2)
    plan = memory.apply_retention()
    assert [(each.rule, each.count) for each in plan] == [("old", 1)]
    assert memory.apply_retention(dry_run=False) == plan
    assert memory.apply_retention() == []


@pytest.mark.in_process
def test_a_cached_past_does_not_keep_the_text(memory: Memory) -> None:
    memory.remember("a teapot", id="a")
    memory.update("a", content="a kettle")
    assert memory.at(1).recall("teapot")
    memory.set_retention(keep_versions="1d")
    later(memory, days=2)
    memory.apply_retention(dry_run=False)
    assert not memory.at(1).recall("teapot")


@pytest.mark.in_process
def test_a_long_log_is_examined_in_pieces_and_only_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "EXAMINED_AT_ONCE", 3)
    monkeypatch.setattr(retaining, "_NOTED_AFTER", 2)
    memory.set_retention(keep_versions="1d")
    for number in range(10):
        memory.remember(f"text {number}", id=str(number % 4), if_exists="update")
    later(memory, days=2)
    plan = memory.apply_retention()
    assert memory.apply_retention(dry_run=False) == plan
    assert thinned(plan) == 6
    examined: list[int] = []
    piece = retention.FormerVersions.piece

    def noted(self: retention.FormerVersions, view: object, since: int) -> object:
        examined.append(since)
        return piece(self, view, since)  # type: ignore[arg-type]

    monkeypatch.setattr(retention.FormerVersions, "piece", noted)
    memory.remember("last", id="0", if_exists="update")
    later(memory, days=2)
    assert thinned(memory.apply_retention(dry_run=False)) == 1
    assert examined == [10]
    for number in range(3):
        memory.remember(f"new {number}")
    later(memory, days=2)
    for _ in range(2):  # nothing is due, and the second time nothing is examined
        assert memory.apply_retention(dry_run=False) == []
    assert examined == [10, 11]


def test_a_limited_run_continues_where_it_has_ended(memory: Memory) -> None:
    for number in range(6):
        memory.remember(f"text {number}", id="a", if_exists="update")
    memory.set_retention(keep_versions="1d")
    later(memory, days=2)
    assert [memory.sweep(limit=2) for _ in range(4)] == [0, 0, 0, 0]
    assert memory.check().thinned == 5
    assert memory.apply_retention() == []
