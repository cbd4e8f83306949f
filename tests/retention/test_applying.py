"""Retention applied: a run removes what its plan shows, in small commits, and loses no change of another writer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.examples import in_full
from tests.retention.clock import START, Clock, later

import recollect
from recollect import AsyncMemory, Due, Memory, RecollectWarning, Retention, RetentionRule
from recollect import filters as f
from recollect.engine import retaining
from recollect.errors import DamagedStoreError, InvalidArgumentError, OriginError, ReadOnlyMemoryError, ScopeError
from recollect.operations import ExecuteBatch, GetRetention, Sweep
from recollect.testing.loopback import core_of

pytestmark = pytest.mark.stores("memory", "sqlite", clock=Clock)


def ids(memory: Memory, where: str | None = None) -> set[str]:
    return {each.id for each in memory.find(where)}


def counts(done: list[Due]) -> dict[str, int]:
    return {each.rule: each.count for each in done}


def causes(memory: Memory, since: int = 0) -> list[tuple[str | None, list[tuple[str, str]]]]:
    return [
        (commit.reason, [(change.id, change.cause) for change in commit.changes]) for commit in memory.changes(since)
    ]


class TestSettings:
    def test_the_retention_is_shown_as_it_was_set_and_removed_as_a_whole(self, memory: Memory) -> None:
        assert memory.retention() == Retention()
        rules = (RetentionRule("old", where="kind=conversation and origin<=tool", after="90d"),)
        memory.set_retention(rules, keep_versions="30d")
        assert memory.retention() == Retention(rules=rules, keep_versions="30d")
        assert memory.at(START).execute(GetRetention()) == memory.retention()  # it has no history
        memory.set_retention([rules[0].to_json()])
        assert memory.retention() == Retention(rules=rules)
        memory.set_retention()
        assert memory.retention() == Retention()

    def test_each_namespace_has_its_own(self, memory: Memory) -> None:
        other = memory.namespace("other")
        for each in (memory, other):
            each.remember("text", id="a")
        other.set_retention([RetentionRule("old", after="1d")])
        later(memory, days=2)
        assert memory.apply_retention() == []
        assert counts(other.apply_retention(dry_run=False)) == {"old": 1}
        assert (ids(memory), ids(other)) == ({"a"}, set())

    def test_who_is_less_than_the_user_and_who_is_a_scope_sets_and_applies_nothing(self, memory: Memory) -> None:
        memory.remember("text", user="ana")
        rules = [RetentionRule("old", after="1d")]
        memory.set_retention(rules)
        later(memory, days=2)
        tool, scoped = memory.as_origin("tool"), memory.scoped(user="ana")
        for refused in (lambda: tool.set_retention(), lambda: tool.apply_retention(dry_run=False)):
            with pytest.raises(OriginError):
                refused()
        for call in (lambda: scoped.set_retention(), scoped.retention, scoped.apply_retention, scoped.sweep):
            with pytest.raises(ScopeError):
                call()
        assert counts(tool.apply_retention()) == {"old": 1}  # to look changes nothing
        assert tool.sweep() == 0
        assert (memory.retention().rules, memory.count()) == (tuple(rules), 1)

    def test_the_past_can_be_asked_and_not_changed(self, memory: Memory) -> None:
        memory.remember("text")
        past = memory.at(1)
        for call in (lambda: past.set_retention(), past.apply_retention):
            with pytest.raises(ReadOnlyMemoryError):
                call()

    @pytest.mark.in_process
    def test_rules_that_were_damaged_in_the_store_are_an_error_and_remove_nothing(self, memory: Memory) -> None:
        memory.remember("text")
        store = core_of(memory).store
        with store.write(memory._branch) as transaction:
            transaction.set_setting("retention/default", '{"rules": [{"name": "a"}]}')
        for call in (memory.retention, memory.apply_retention, lambda: memory.apply_retention(dry_run=False)):
            with pytest.raises(DamagedStoreError, match="the retention of 'default' cannot be read"):
                call()
        memory.remember("ordinary writes do not look at it")
        assert memory.count() == 2


class TestApplying:
    @pytest.mark.promise("retention.plan")
    def test_the_plan_is_what_the_run_removes_and_then_nothing_is_due(self, memory: Memory) -> None:
        for number in range(3):
            memory.remember(f"chat {number}", id=f"c{number}", kind="conversation", role="user", user="ana")
        memory.remember("a fact", id="fact", pinned=True)
        later(memory, days=91)
        memory.remember("new", id="new", kind="conversation", role="user")
        memory.set_retention([RetentionRule("chats", where="kind=conversation", after="90d")])
        seq, plan = memory.seq, memory.apply_retention()
        assert [(each.rule, each.action, each.count, each.oldest) for each in plan] == [("chats", "forget", 3, START)]
        assert plan[0].samples == ("c0", "c1", "c2")
        assert plan[0].bytes == sum(len(each.to_bytes()) for each in memory.find("id in (c0, c1, c2)"))
        assert memory.seq == seq
        assert memory.apply_retention(dry_run=False, actor="steward") == plan
        assert causes(memory, seq) == [("retention: chats", [(f"c{number}", "expired") for number in range(3)])]
        assert memory.changes()[-1].actor == "steward"
        assert ids(memory) == {"fact", "new"}
        assert memory.apply_retention() == memory.apply_retention(dry_run=False) == []
        assert (memory.seq, memory.sweep()) == (seq + 1, 0)
        assert memory.check() == []

    def test_what_was_forgotten_by_a_rule_stays_in_the_history_and_comes_back_by_a_revert(self, memory: Memory) -> None:
        memory.remember("text", id="a")
        memory.set_retention([RetentionRule("old", after="1d")])
        later(memory, days=2)
        memory.apply_retention(dry_run=False)
        assert memory.get("a") is None
        assert memory.at(1).get("a") is not None
        memory.revert(memory.seq)
        assert ids(memory) == {"a"}

    def test_rules_can_be_tried_before_they_are_set(self, memory: Memory) -> None:
        memory.remember("text", id="a", user="ana")
        later(memory, days=2)
        tried = [RetentionRule("hers", where="user=ana", after="1d")]
        assert counts(memory.apply_retention(tried)) == {"hers": 1}
        assert memory.apply_retention() == memory.apply_retention([], keep_versions="1d") == []
        with pytest.raises(InvalidArgumentError, match="dry run"):
            memory.apply_retention(tried, dry_run=False)
        assert (memory.retention(), ids(memory)) == (Retention(), {"a"})

    def test_the_number_of_listed_ids_is_limited(self, memory: Memory) -> None:
        memory.remember_all([{"content": f"text {number}", "id": f"{number:02}"} for number in range(12)])
        later(memory, days=2)
        rules = [RetentionRule("old", after="1d")]
        for samples, expected in ((None, 12), (0, 0), (3, 3)):
            (due,) = memory.apply_retention(rules, samples=samples)
            assert (due.count, len(due.samples)) == (12, expected)
        assert len(memory.apply_retention(rules)[0].samples) == 10

    def test_the_last_use_counts_where_a_rule_says_so(self, memory: Memory) -> None:
        for name in ("a", "b", "c"):
            memory.remember(f"the {name} text", id=name)
        memory.set_retention([RetentionRule("old", after="7d", since="used")])
        later(memory, days=5)
        memory.get("a")
        memory.update("b", importance=0.9)
        later(memory, days=5)
        for since, expected in (("used", {"c"}), ("written", {"a", "c"}), ("time", {"a", "b", "c"})):
            (due,) = memory.apply_retention([RetentionRule("old", after="7d", since=since)])  # type: ignore[arg-type]
            assert set(due.samples) == expected
        assert memory.sweep() == 1
        assert ids(memory) == {"a", "b"}

    def test_uses_are_noted_only_while_a_rule_or_a_quota_needs_them(self, memory: Memory) -> None:
        by_use = [RetentionRule("old", after="7d", since="used")]
        memory.remember("text", id="a")
        later(memory, days=5)
        memory.get("a")
        later(memory, days=5)
        assert counts(memory.apply_retention(by_use)) == {"old": 1}
        memory.set_retention(by_use)
        assert memory.recall("text")
        assert memory.apply_retention() == []
        memory.set_retention()
        later(memory, days=8)
        memory.get("a")
        assert counts(memory.apply_retention(by_use)) == {"old": 1}

    def test_records_below_others_are_found_by_a_rule(self, memory: Memory) -> None:
        memory.remember("root", id="root")
        memory.remember("child", id="child", parent="root")
        memory.remember("grandchild", id="grandchild", parent="child")
        memory.remember("stranger", id="stranger")
        later(memory, days=2)
        (due,) = memory.apply_retention([RetentionRule("tree", where="under=root", after="1d")])
        assert set(due.samples) == {"child", "grandchild"}

    def test_what_has_expired_already_is_not_due_as_well(self, memory: Memory) -> None:
        memory.remember("short", id="short", ttl=60)
        memory.remember("long", id="long")
        memory.set_retention([RetentionRule("old", after="1d")])
        later(memory, days=2)
        assert counts(memory.apply_retention()) == {"old": 1}
        assert memory.sweep() == 2
        assert [reason for reason, _ in causes(memory)][-2:] == [None, "retention: old"]

    def test_a_sweep_has_its_limit_and_a_writer_below_the_user_removes_only_what_has_expired(
        self, memory: Memory
    ) -> None:
        memory.remember_all([{"content": f"text {number}"} for number in range(5)])
        memory.remember("short", ttl=60)
        memory.set_retention([RetentionRule("old", after="1d")])
        later(memory, days=2)
        assert memory.as_origin("assistant").sweep() == 1
        assert [memory.sweep(limit=2) for _ in range(4)] == [2, 2, 1, 0]
        with memory.batch() as batch:
            assert batch.execute(Sweep()) == 0
        assert memory.execute(ExecuteBatch(operations=(Sweep(),))) == [0]

    @pytest.mark.in_process
    @pytest.mark.promise("retention.plan")
    def test_a_commit_removes_at_most_a_limited_number_of_records(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert retaining.AT_ONCE == 1000
        monkeypatch.setattr(retaining, "AT_ONCE", 4)
        memory.remember_all([{"content": f"text {number}"} for number in range(10)])
        memory.remember_all([{"content": f"short {number}", "ttl": 60} for number in range(3)])
        memory.set_retention([RetentionRule("old", after="1d")])
        later(memory, days=2)
        seq = memory.seq
        assert counts(memory.apply_retention(dry_run=False)) == {"old": 10}
        assert [len(changes) for _, changes in causes(memory, seq)] == [4, 4, 2]

    @in_full
    def test_a_hundred_thousand_due_records_need_a_hundred_commits(self, memory: Memory) -> None:
        for begin in range(0, 100_000, 10_000):
            memory.remember_all([{"content": f"text {number}"} for number in range(begin, begin + 10_000)])
        memory.set_retention([RetentionRule("old", after="1d")])
        later(memory, days=2)
        seq = memory.seq
        assert counts(memory.apply_retention(dry_run=False)) == {"old": 100_000}
        assert (memory.seq - seq, memory.count()) == (100, 0)

    def test_a_record_in_quarantine_waits_for_a_decision_unless_a_rule_includes_pinned_ones(
        self, memory: Memory
    ) -> None:
        memory.set_policies(origins={"web": "quarantine"})
        with pytest.warns(RecollectWarning, match="quarantine"):
            memory.as_origin("web").remember("a page", id="page")
        memory.remember("text", id="a")
        later(memory, days=2)
        rule = RetentionRule("old", after="1d")
        assert memory.apply_retention([rule])[0].samples == ("a",)
        pinned_too = RetentionRule("old", after="1d", include_pinned=True)
        court = RetentionRule("court", where="origin=web", action="hold")
        assert memory.apply_retention([court, pinned_too])[0].samples == ("a",)
        memory.set_retention([pinned_too])
        plan = memory.apply_retention()
        assert set(plan[0].samples) == {"a", "page"}
        assert memory.apply_retention(dry_run=False) == plan
        assert (memory.count(), len(memory.quarantine), memory.apply_retention()) == (0, 0, [])
        assert memory.check() == []

    def test_records_of_one_user_are_erased_with_all_versions_and_their_names(self, memory: Memory) -> None:
        with memory.batch(reason="ana said so") as batch:
            batch.remember("first", id="ana-1", user="ana")
        memory.update("ana-1", content="second")
        memory.remember("his", id="bob-1", user="bob")
        later(memory, days=2)
        memory.set_retention([RetentionRule("hers", where="user=ana", after="1d", action="erase")])
        plan = memory.apply_retention()
        seq = memory.seq
        assert memory.apply_retention(dry_run=False) == plan
        assert counts(plan) == {"hers": 1}
        assert [(reason, [cause for _, cause in changes]) for reason, changes in causes(memory, seq)] == [
            ("retention: hers", ["erased"])
        ]
        assert "ana" not in repr([(commit.reason, commit.changes) for commit in memory.changes(0, seq)])
        assert memory.at(2).count() == 0
        assert ids(memory) == {"bob-1"}
        assert memory.apply_retention() == []
        report = memory.check()
        assert (list(report), report.erased) == ([], 2)

    def test_a_rule_that_erases_reaches_the_quarantine(self, memory: Memory) -> None:
        memory.set_policies(origins={"web": "quarantine"})
        with pytest.warns(RecollectWarning, match="quarantine"):
            memory.as_origin("web").remember("a page", id="page")
        later(memory, days=2)
        memory.set_retention([RetentionRule("pages", after="1d", action="erase", include_pinned=True)])
        assert counts(memory.apply_retention(dry_run=False)) == {"pages": 1}
        assert (len(memory.quarantine), memory.apply_retention()) == (0, [])
        assert memory.check() == []


def chat(memory: Memory, conversation: str, count: int) -> None:
    memory.add_messages(
        [
            {"role": "user", "content": f"The meeting about {conversation} number {n} is in room {n}."}
            for n in range(count)
        ],
        conversation=conversation,
    )


class TestConsolidation:
    def test_groups_become_summaries_and_what_is_in_no_group_is_counted_as_left(self, memory: Memory) -> None:
        chat(memory, "work", 70)
        chat(memory, "garden", 12)
        memory.remember("alone", id="alone", kind="custom")
        later(memory, days=91)
        memory.set_retention([RetentionRule("chats", after="90d", action="consolidate")])
        (plan,) = memory.apply_retention()
        assert (plan.action, plan.count, plan.left, len(plan.samples)) == ("consolidate", 82, 1, 10)
        seq = memory.seq
        assert memory.apply_retention(dry_run=False) == [plan]
        assert {reason for reason, _ in causes(memory, seq)} == {"retention: chats"}
        assert memory.count() == 4  # two summaries of "work", one of "garden", and what is in no group
        assert sorted(each.metadata.get("consolidated_from", 0) for each in memory.find()) == [0, 12, 20, 50]
        (rest,) = memory.apply_retention()
        assert (rest.count, rest.left, rest.samples) == (0, 1, ())
        assert memory.apply_retention(dry_run=False) == [rest]
        assert memory.check() == []

    def test_too_few_records_for_a_summary_stay(self, memory: Memory) -> None:
        chat(memory, "work", 9)
        later(memory, days=2)
        memory.set_retention([RetentionRule("chats", after="1d", action="consolidate")])
        (due,) = memory.apply_retention(dry_run=False)
        assert (due.count, due.left, due.bytes, memory.count()) == (0, 9, 0, 9)

    def test_a_sweep_consolidates_too(self, memory: Memory) -> None:
        chat(memory, "work", 12)
        later(memory, days=2)
        memory.set_retention([RetentionRule("chats", after="1d", action="consolidate")])
        assert (memory.sweep(), memory.sweep(), memory.count()) == (12, 0, 1)


@pytest.mark.in_process
class TestOtherWriters:
    """What others commit between the plan and the commits of a run."""

    @pytest.fixture
    def between(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Return what calls a function once, before the first commit of the next run."""

        def arranged(call: Any) -> None:
            core, writing = core_of(memory), core_of(memory).writing
            left = [call]

            @contextmanager
            def first(*arguments: Any, **named: Any) -> Iterator[Any]:
                monkeypatch.setattr(core, "writing", writing)
                while left:
                    left.pop()()
                with writing(*arguments, **named) as opened:
                    yield opened

            monkeypatch.setattr(core, "writing", first)

        for number in range(4):
            memory.remember(f"text {number}", id=str(number))
        later(memory, days=2)
        return arranged

    @pytest.mark.parametrize("action", ["forget", "erase"])
    def test_what_was_changed_meanwhile_stays(self, memory: Memory, between: Any, action: Any) -> None:
        memory.set_retention([RetentionRule("old", after="1d", action=action)])
        between(lambda: memory.update("2", content="changed", time=START))
        assert counts(memory.apply_retention(dry_run=False)) == {"old": 3}
        assert ids(memory) == {"2"}
        assert counts(memory.apply_retention(dry_run=False)) == {"old": 1}

    @pytest.mark.parametrize("action", ["forget", "erase"])
    def test_a_hold_that_is_set_meanwhile_ends_the_run(self, memory: Memory, between: Any, action: Any) -> None:
        rule = RetentionRule("old", after="1d", action=action)
        memory.set_retention([rule])
        between(lambda: memory.set_retention([RetentionRule("court", action="hold"), rule]))
        assert memory.apply_retention(dry_run=False) == []
        assert memory.count() == 4

    def test_a_rule_that_keeps_the_newest_waits_if_others_may_be_the_newest_now(
        self, memory: Memory, between: Any
    ) -> None:
        memory.set_retention([RetentionRule("newest", keep_newest=2)])
        between(lambda: memory.forget("3"))
        assert memory.apply_retention(dry_run=False) == []
        assert counts(memory.apply_retention(dry_run=False)) == {"newest": 1}
        assert ids(memory) == {"1", "2"}

    @pytest.mark.parametrize("action", ["forget", "erase"])
    def test_its_own_commits_do_not_make_a_rule_wait(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch, action: Any
    ) -> None:
        monkeypatch.setattr(retaining, "AT_ONCE", 2)
        monkeypatch.setattr("recollect.engine.erasing.AT_ONCE", 2)
        memory.remember_all([{"content": f"text {number}"} for number in range(9)])
        memory.set_retention([RetentionRule("newest", keep_newest=2, action=action)])
        assert counts(memory.apply_retention(dry_run=False)) == {"newest": 7}
        assert memory.count() == 2


def test_ordinary_writes_and_reads_do_not_look_at_the_retention(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember("text", id="a")
    memory.set_retention([RetentionRule("old", after="1s")], keep_versions="1s")
    later(memory, days=2)
    assert memory.recall("text")  # whether uses must be noted is known for a minute
    monkeypatch.setattr("recollect.engine.settings.Retention", None)  # what reads it fails
    memory.remember("more", id="b")
    memory.update("a", importance=0.1)
    assert memory.recall("text")
    assert ids(memory) == {"a", "b"}
    with pytest.raises(DamagedStoreError):  # the control
        memory.sweep()


def test_awaited_calls_are_the_same(memory: Memory) -> None:
    async def calls(awaited: AsyncMemory) -> tuple[Any, ...]:
        await awaited.remember("text")
        await awaited.set_retention([RetentionRule("old", after="1d")])
        later(memory, days=2)
        found, plan = await awaited.retention(), await awaited.apply_retention()
        return found.rules, counts(plan), await awaited.sweep(), await awaited.apply_retention(dry_run=False)

    assert asyncio.run(calls(AsyncMemory(memory))) == ((RetentionRule("old", after="1d"),), {"old": 1}, 1, [])


@pytest.mark.files
def test_rules_are_in_the_file_and_in_its_backups(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.db", tmp_path / "a.backup"
    with recollect.open(path, clock=Clock()) as memory:
        memory.remember("text", id="a")
        memory.set_retention([RetentionRule("old", where=f.user("ana"), after="1d")], keep_versions="30d")
        stated = memory.retention()
        memory.backup(copy)
    recollect.restore(copy, tmp_path / "b.db")
    for each in (path, tmp_path / "b.db"):
        with recollect.open(each, clock=Clock()) as memory:
            assert memory.retention() == stated
