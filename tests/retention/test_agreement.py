"""In any state, a run removes exactly what the plan before it lists, and a second plan is empty."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.examples import some
from tests.retention.clock import START, Clock

from recollect import RetentionRule
from recollect.stores.memory import MemoryStore
from recollect.testing import memory_on

IDS = st.sampled_from([f"r{number}" for number in range(6)])
USERS = st.sampled_from((None, "ana", "bob"))
WHERE = st.sampled_from(("everything", "user=ana", "user=bob", "kind=knowledge", "not user"))
HOLD = st.builds(RetentionRule, st.just("hold"), where=WHERE, action=st.just("hold"))
RULES = st.builds(
    RetentionRule,
    st.sampled_from(("a", "b", "c")),
    where=WHERE,
    after=st.sampled_from(("1d", "5d")),
    since=st.sampled_from(("time", "written", "used")),
    keep_newest=st.none() | st.integers(1, 2),
    action=st.sampled_from(("forget", "erase")),
    include_pinned=st.booleans(),
)


class Agreement(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.clock = Clock()
        self.memory = memory_on(MemoryStore(), clock=self.clock)
        for number, user in enumerate((None, "ana", "bob", "ana")):
            kind = "knowledge" if number % 2 else "custom"
            self.memory.remember("water", id=f"r{number}", user=user, kind=kind, pinned=number == 3)

    @rule(
        record_id=IDS,
        text=st.sampled_from(("tea", "coffee")),
        user=USERS,
        kind=st.sampled_from(("custom", "knowledge")),
        days=st.none() | st.integers(-9, 3),
        pinned=st.booleans(),
        ttl=st.none() | st.just(86_400),
    )
    def remember(
        self, record_id: str, text: str, user: str | None, kind: str, days: int | None, pinned: bool, ttl: int | None
    ) -> None:
        fields: dict[str, Any] = {} if days is None else {"time": START + timedelta(days=days)}
        self.memory.remember(
            text, id=record_id, user=user, kind=kind, pinned=pinned, ttl=ttl, if_exists="update", **fields
        )

    @rule(record_id=IDS)
    def forget(self, record_id: str) -> None:
        self.memory.forget_where(f"id={record_id}")

    @rule(record_id=IDS)
    def use(self, record_id: str) -> None:
        self.memory.get(record_id)

    @rule(hours=st.integers(1, 60))
    def wait(self, hours: int) -> None:
        self.clock.time += timedelta(hours=hours)

    @rule(
        rules=st.lists(RULES | HOLD, min_size=1, max_size=3, unique_by=lambda each: each.name),
        keep_versions=st.none() | st.sampled_from(("1d", "5d")),
        hours=st.integers(0, 150),
    )
    def apply(self, rules: list[RetentionRule], keep_versions: str | None, hours: int) -> None:
        self.memory.set_retention(rules, keep_versions=keep_versions)
        self.clock.time += timedelta(hours=hours)
        before = {each.id for each in self.memory.find()}
        on_hold = {
            each.id
            for one in self.memory.retention().rules[:1]
            if one.action == "hold"
            for each in self.memory.find(one.condition)
        }
        seq = self.memory.seq
        plan = self.memory.apply_retention(samples=None)
        assert self.memory.seq == seq
        done = self.memory.apply_retention(dry_run=False, samples=None)
        assert done == plan
        removed = [each for due in plan if due.action != "thin" for each in due.samples]
        assert len(removed) == len(set(removed)) == sum(each.count for each in plan if each.action != "thin")
        assert {each.id for each in self.memory.find()} == before - set(removed)
        assert on_hold.isdisjoint(removed)
        assert self.memory.seq == seq + len({each.rule for each in plan if each.action != "thin"})
        seq = self.memory.seq
        # What was removed at this very moment is no former version that is due: that takes a second at least.
        assert self.memory.apply_retention() == self.memory.apply_retention(dry_run=False) == []
        assert self.memory.seq == seq

    @invariant()
    def the_store_is_intact(self) -> None:
        assert self.memory.check() == []


TestAgreement = Agreement.TestCase
TestAgreement.settings = settings(max_examples=some(60), stateful_step_count=25)
