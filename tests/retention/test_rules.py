"""Rules of retention are values that are checked when they are made, and have a JSON form."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect import Retention, RetentionRule
from recollect import filters as f
from recollect.arguments.durations import duration, duration_text
from recollect.errors import InvalidArgumentError, InvalidFilterError, InvalidOperationError, UnsupportedError
from recollect.operations import ApplyRetention, SetRetention, from_json
from recollect.operations.retention import MOST_RULES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45s", timedelta(seconds=45)),
        ("30m", timedelta(minutes=30)),
        ("36h", timedelta(hours=36)),
        ("90d", timedelta(days=90)),
        ("2w", timedelta(days=14)),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, expected: timedelta) -> None:
    assert duration(duration_text("after", text)) == expected
    assert duration(duration_text("after", expected)) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        "90",
        "d",
        "-1d",
        "0d",
        "1.5d",
        "1y",
        "1 d",
        "٣d",
        "9999999w",
        90,
        None,
        True,
        timedelta(0),
        timedelta(days=-1),
        timedelta(milliseconds=1),
        timedelta(days=36_526),
    ],
)
def test_what_is_no_duration_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="must be a duration such as '90d'"):
        duration_text("after", value)


def test_a_rule_has_a_json_form_from_which_an_equal_rule_is_made() -> None:
    rules = [
        RetentionRule("hold", where="user=ana", action="hold"),
        RetentionRule("chats", where="kind=conversation and origin<=tool", after=timedelta(days=90), since="used"),
        RetentionRule("newest", keep_newest=100, action="erase", include_pinned=True),
    ]
    for rule in rules:
        data = json.loads(json.dumps(rule.to_json()))
        assert RetentionRule.from_json(data) == rule
    assert rules[0].to_json() == {"name": "hold", "where": {"user": "ana"}, "action": "hold"}
    assert RetentionRule.from_json({"name": "hold", "where": "user=ana", "action": "hold"}) == rules[0]
    retention = Retention(rules=tuple(rules), keep_versions="30d")
    assert Retention.from_json(json.loads(json.dumps(retention.to_json()))) == retention
    operation = SetRetention(rules=tuple(rules), keep_versions="30d")
    assert from_json(json.loads(json.dumps(operation.to_json()))) == operation
    plan = ApplyRetention(rules=tuple(rules), samples=None)
    assert from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_time_without_a_zone_in_a_filter_is_one_of_the_memory() -> None:
    operation = SetRetention(rules=(RetentionRule("before 2020", where="time<2020-01-01", after="1d"),))
    located = operation.located(UTC)
    assert located.rules[0].where == f.before(datetime(2020, 1, 1, tzinfo=UTC))
    plan = ApplyRetention(rules=operation.rules).located(UTC)
    assert plan.rules == located.rules


@pytest.mark.parametrize(
    ("arguments", "error", "rule"),
    [
        ({}, InvalidArgumentError, "must be stated, such as '90d'"),
        ({"after": "soon"}, InvalidArgumentError, "must be a duration"),
        ({"after": "1d", "action": "drop"}, InvalidArgumentError, "forget, erase, consolidate, hold"),
        ({"after": "1d", "since": "read"}, InvalidArgumentError, "time, written, used"),
        ({"after": "1d", "keep_newest": 0}, InvalidArgumentError, "at least 1"),
        ({"after": "1d", "include_pinned": 1}, InvalidArgumentError, "true or false"),
        ({"action": "hold", "after": "1d"}, InvalidArgumentError, "ends with no age"),
        ({"action": "hold", "keep_newest": 1}, InvalidArgumentError, "ends with no age"),
        ({"action": "hold", "since": "used"}, InvalidArgumentError, "ends with no age"),
        ({"after": "1d", "where": "usr=ana"}, InvalidFilterError, "usr"),
        ({"after": "1d", "where": 5}, InvalidArgumentError, "must be a filter"),
        ({"after": "1d", "where": f.custom(lambda record: True)}, UnsupportedError, "custom"),
    ],
)
def test_an_invalid_rule_is_refused(arguments: dict[str, Any], error: type[Exception], rule: str) -> None:
    with pytest.raises(error, match=rule):
        RetentionRule("a", **arguments)


@pytest.mark.parametrize("name", ["", " ", "a\0b", "\ud800", "keep_versions", 5])
def test_a_name_that_no_plan_can_show_is_refused(name: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="name"):
        RetentionRule(name, after="1d")


def test_rules_that_are_no_list_of_rules_are_refused() -> None:
    rule = RetentionRule("a", after="1d")
    for rules, expected in (
        (rule, "must be a list of rules"),
        ("a", "must be a list of rules"),
        (rule.to_json(), "must be a list of rules"),
        ([5], "must be a rule"),
        ([rule, RetentionRule("a", after="2d")], "is the name of two rules"),
        ([RetentionRule(str(number), after="1d") for number in range(MOST_RULES + 1)], "more than 100"),
    ):
        with pytest.raises(InvalidArgumentError, match=expected):
            Retention(rules=rules)  # type: ignore[arg-type]
    for broken in ({}, {"name": "a", "age": "1d"}, {"after": "1d"}):
        with pytest.raises(InvalidOperationError, match="not the JSON form of a rule"):
            Retention(rules=[broken])  # type: ignore[arg-type]


def test_rules_are_tried_in_a_dry_run_and_set_before_anything_else() -> None:
    rule = RetentionRule("a", after="1d")
    with pytest.raises(InvalidArgumentError, match="are for a dry run: set them first"):
        ApplyRetention(rules=(rule,), dry_run=False)
    with pytest.raises(InvalidArgumentError, match="keep_versions"):
        Retention(keep_versions="soon")
    assert not Retention()
    assert Retention(rules=(rule,))
    assert Retention(keep_versions="1d")
