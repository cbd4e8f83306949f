"""Which records and former versions are due: pure functions, compared with their definition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import RetentionRule
from recollect.engine.retention import ResolvedRule, Times, deciding, due_records, possibly_due
from recollect.operations.retention import SINCE
from recollect.records.codec import microseconds
from recollect.records.record import Record

START = datetime(2026, 3, 1, tzinfo=UTC)
NOW = microseconds(START + timedelta(days=10))
DAY = 86_400_000_000


def resolved(*rules: RetentionRule) -> list[ResolvedRule]:
    return [ResolvedRule(rule, rule.condition) for rule in rules]


def record(record_id: str, days: int | None = 0, **fields: object) -> Record:
    """Return a record whose time is some days after the start."""
    time = None if days is None else START + timedelta(days=days)
    return Record(id=record_id, content="text", time=time, **fields)  # type: ignore[arg-type]


def due(
    rules: Sequence[ResolvedRule],
    records: Sequence[Record],
    written: dict[str, int] | None = None,
    used: dict[str, int] | None = None,
) -> dict[str, list[str]]:
    stated = written or {}
    times = Times(lambda ids: {each: stated[each] for each in ids if each in stated}, lambda: used or {})
    return {name: [each.id for each in found] for name, found in due_records(rules, records, times, NOW).items()}


def test_a_record_is_due_at_the_age_and_not_a_microsecond_before() -> None:
    exactly, later = record("exactly", 3), record("later", 3)
    later = later.changed(time=later.time + timedelta.resolution)  # type: ignore[operator]
    assert due(resolved(RetentionRule("old", after="7d")), [later, exactly]) == {"old": ["exactly"]}


def test_the_first_rule_that_applies_decides_whether_the_record_is_due_or_not() -> None:
    rules = resolved(
        RetentionRule("ana", where="user=ana", after="30d"),
        RetentionRule("all", after="1d"),
    )
    records = [record("hers", user="ana"), record("his", user="bob")]
    assert due(rules, records) == {"all": ["his"]}
    assert due(rules[::-1], records) == {"all": ["hers", "his"]}


@pytest.mark.promise("retention.hold")
def test_what_is_on_hold_is_not_due_by_any_later_rule() -> None:
    rules = resolved(
        RetentionRule("court", where="user=ana", action="hold"),
        RetentionRule("all", after="1d", include_pinned=True),
    )
    records = [record("a", user="ana"), record("b", user="ana", pinned=True), record("c", pinned=True)]
    assert due(rules, records) == {"all": ["c"]}
    assert due(rules[1:], records) == {"all": ["a", "b", "c"]}


def test_a_rule_leaves_out_pinned_records_and_the_next_one_decides() -> None:
    rules = resolved(RetentionRule("all", after="1d"), RetentionRule("pinned", after="5d", include_pinned=True))
    records = [record("a", 0, pinned=True), record("b", 8, pinned=True), record("c", 8)]
    assert due(rules, records) == {"all": ["c"], "pinned": ["a"]}


def test_what_a_page_has_pinned_is_not_exempt() -> None:
    rules = resolved(RetentionRule("all", after="1d"))
    assert due(rules, [record("page", pinned=True, origin="web")]) == {"all": ["page"]}


def test_the_newest_records_of_a_rule_stay_whatever_their_age() -> None:
    records = [record(str(number), number) for number in range(5)]
    assert due(resolved(RetentionRule("all", keep_newest=2)), records) == {"all": ["0", "1", "2"]}
    assert due(resolved(RetentionRule("all", keep_newest=2, after="9d")), records) == {"all": ["0", "1"]}
    assert due(resolved(RetentionRule("all", keep_newest=5)), records) == {}


def test_the_age_counts_from_the_time_the_writing_or_the_last_use() -> None:
    records = [record("a", 0), record("b", 9), record("undated", None)]
    written, used = dict.fromkeys(("a", "b", "undated"), NOW - 5 * DAY), {"a": NOW - DAY, "b": NOW - 6 * DAY}
    expected = {"time": ["a", "undated"], "written": ["a", "b", "undated"], "used": ["b", "undated"]}
    for since in SINCE:
        rules = resolved(RetentionRule("all", after="2d", since=since))
        assert due(rules, records, written, used) == {"all": expected[since]}


def test_a_summary_is_not_consolidated_again() -> None:
    rules = resolved(RetentionRule("all", after="1d", action="consolidate"))
    assert due(rules, [record("a"), record("b", metadata={"consolidated_from": 12})]) == {"all": ["a"]}


RULES = st.lists(
    st.builds(
        RetentionRule,
        st.sampled_from("abcd"),
        where=st.sampled_from(("everything", "user=ana", "kind=knowledge", "not user", "tag=x and user=bob")),
        after=st.sampled_from(("1d", "5d", "11d")),
        keep_newest=st.none() | st.integers(1, 3),
        since=st.sampled_from(SINCE),
        include_pinned=st.booleans(),
    )
    | st.builds(RetentionRule, st.sampled_from("efg"), where=st.just("user=bob"), action=st.just("hold")),
    max_size=3,
    unique_by=lambda each: each.name,
)
RECORDS = st.lists(
    st.builds(
        record,
        st.sampled_from([f"r{number}" for number in range(12)]),
        st.none() | st.integers(-5, 12),
        user=st.sampled_from((None, "ana", "bob")),
        kind=st.sampled_from(("custom", "knowledge")),
        pinned=st.booleans(),
        tags=st.sampled_from(((), ("x",))),
        origin=st.sampled_from((None, "web")),
    ),
    max_size=12,
    unique_by=lambda each: each.id,
)


@given(rules=RULES, records=RECORDS, ages=st.lists(st.integers(0, 15), min_size=24, max_size=24))
def test_due_records_are_those_of_the_definition_also_among_what_is_possibly_due(
    rules: list[RetentionRule], records: list[Record], ages: list[int]
) -> None:
    written = {f"r{number}": NOW - ages[number] * DAY for number in range(12)}
    used = {f"r{number}": NOW - ages[number + 12] * DAY for number in range(12) if ages[number + 12] < 12}

    def since(rule: RetentionRule, one: Record) -> int:
        if rule.since == "time" and one.time is not None:
            return microseconds(one.time)
        return max(written[one.id], used.get(one.id, 0)) if rule.since == "used" else written[one.id]

    def applies(rule: RetentionRule, one: Record) -> bool:
        is_pinned = one.pinned and one.has_authority
        return rule.condition.matches(one) and (rule.action == "hold" or rule.include_pinned or not is_pinned)

    expected: dict[str, list[str]] = {}
    for rule in rules:
        own = [one for one in records if next((each.name for each in rules if applies(each, one)), None) == rule.name]
        newest = sorted(own, key=lambda one: (since(rule, one), one.id), reverse=True)
        old = [
            one
            for one in newest[rule.keep_newest or 0 :]
            if since(rule, one) + rule.age / timedelta(days=1) * DAY <= NOW
        ]
        if old and rule.action != "hold":
            expected[rule.name] = [one.id for one in reversed(old)]
    assert due(resolved(*rules), records, written, used) == expected
    where = possibly_due(resolved(*rules), NOW)
    found = [] if where is None else [one for one in records if where.matches(one)]
    assert due(resolved(*rules), found, written, used) == expected


def test_control_the_decision_depends_on_the_order_of_the_rules() -> None:
    rules = resolved(RetentionRule("a", after="1d"), RetentionRule("b", after="1d"))
    decided = [deciding(each, record("r")) for each in (rules, rules[::-1], [])]
    assert [None if each is None else each.name for each in decided] == ["a", "b", None]
