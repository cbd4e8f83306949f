"""The rules of retention: how long records stay, what happens to them then, and the operations that set and apply them.

A rule is a value. Which records it makes due is decided in `engine.retention`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal, TypeAlias, get_args

from recollect.arguments.checks import check_choice, check_count, check_flag, check_label, check_text
from recollect.arguments.durations import duration, duration_text
from recollect.arguments.json_form import JsonForm, json_form
from recollect.errors import InvalidArgumentError
from recollect.filters.text_form import Where, as_filter, check_filter
from recollect.filters.tree import EVERYTHING, Filter, from_json
from recollect.operations.base import ADMIN, READ, WRITE, Operation
from recollect.records.frozen import altered

#: From when the age of a record counts.
Since: TypeAlias = Literal["time", "written", "used"]
SINCE: tuple[Since, ...] = get_args(Since)
#: What happens to a record that is due.
RetentionAction: TypeAlias = Literal["forget", "erase", "consolidate", "hold"]
ACTIONS: tuple[RetentionAction, ...] = get_args(RetentionAction)
#: Maximum number of rules of a namespace: each is compared with each record.
MOST_RULES = 100
#: What a plan names the former versions, beside the rules.
FORMER_VERSIONS = "keep_versions"


@dataclass(frozen=True, slots=True)
class RetentionRule(JsonForm, what="a rule of retention"):
    """One rule of retention.

        RetentionRule("old chats", where="kind=conversation and origin<=tool", after="90d")
        RetentionRule("court order", where="user=ana", action="hold")

    Attributes:
        name: Its name, in the plan and in the reason of each commit. No other rule has it.
        where: The records that it applies to: a filter, or the text form of one. Default: all.
        after: The age at which a record is due: "90d", in s, m, h, d or w, or a timedelta.
        since: From when the age counts. "time": when it happened (a record without a time: when it was written).
            "written": when its newest version was written. "used": when it was last written, got or recalled; uses are
            noted from a minute after the rule is set, by each machine for itself.
        keep_newest: The number of records that stay whatever their age: the newest of those that the rule applies to.
            Without `after`, all others are due.
        action: What happens to a record that is due. "forget": it is removed, and its history stays. "erase": its text
            is removed for ever, with all versions. "consolidate": groups of records are replaced by summaries, as
            `Memory.consolidate` does without a model. "hold": nothing happens to the records that the rule applies to,
            whatever their age, nor to their former versions (legal hold).
        include_pinned: Apply it to pinned records, too.

    Raises:
        InvalidArgumentError: A value is invalid.
        InvalidFilterError: The text form of a filter is invalid.
        UnsupportedError: `where` contains a custom filter.
    """

    name: str
    _: KW_ONLY
    where: Where = EVERYTHING
    after: str | timedelta | None = None
    since: Since = "time"
    keep_newest: int | None = None
    action: RetentionAction = "forget"
    include_pinned: bool = False

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_label("name", self.name)
        if self.name == FORMER_VERSIONS:
            raise InvalidArgumentError("name", self.name, "stands for the former versions in a plan: choose another")
        condition = as_filter(self.where)
        check_filter(condition)
        condition.to_json()  # raises UnsupportedError for a custom filter, which cannot be stored
        object.__setattr__(self, "where", condition)
        check_choice("action", self.action, ACTIONS)
        check_choice("since", self.since, SINCE)
        check_flag("include_pinned", self.include_pinned)
        check_count("keep_newest", self.keep_newest, optional=True)
        if self.after is not None:
            object.__setattr__(self, "after", duration_text("after", self.after))
        has_end = self.after is not None or self.keep_newest is not None
        if self.action == "hold" and (has_end or self.since != SINCE[0]):
            raise InvalidArgumentError("action", "hold", "ends with no age: leave out after, since and keep_newest")
        if self.action != "hold" and not has_end:
            raise InvalidArgumentError("after", None, "must be stated, such as '90d', unless keep_newest is")

    @property
    def condition(self) -> Filter:
        """`where` as a filter."""
        return as_filter(self.where)

    @property
    def age(self) -> timedelta:
        """The age at which a record is due."""
        return timedelta(0) if self.after is None else duration(str(self.after))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without the fields that have their default."""
        stated = {
            "after": self.after,
            "since": self.since,
            "keep_newest": self.keep_newest,
            "action": self.action,
            "include_pinned": self.include_pinned,
        }
        where = {} if self.condition == EVERYTHING else {"where": self.condition.to_json()}
        others = {name: value for name, value in stated.items() if value != _DEFAULTS[name]}
        return {"name": self.name, **where, **others}

    @classmethod
    @json_form("a rule of retention")
    def from_json(cls, data: Mapping[str, Any]) -> RetentionRule:
        """Rebuild a rule from its JSON form. `where` may also be the text form of a filter."""
        stated = dict(data)
        where = stated.pop("where", EVERYTHING)
        name = stated.pop("name")
        return cls(name, where=from_json(where) if isinstance(where, Mapping) else where, **stated)


_DEFAULTS = {"after": None, "since": "time", "keep_newest": None, "action": "forget", "include_pinned": False}


def checked_rules(rules: object) -> tuple[RetentionRule, ...]:
    """Return rules, of which some may be in their JSON form.

    Raises:
        InvalidArgumentError: They are not several rules, two have the same name, or there are too many.
        InvalidOperationError: One is not the JSON form of a rule.
    """
    if isinstance(rules, (str, bytes, Mapping, RetentionRule)) or not isinstance(rules, Iterable):
        raise InvalidArgumentError("rules", rules, "must be a list of rules (RetentionRule)")
    found: list[RetentionRule] = []
    for each in rules:
        rule = RetentionRule.from_json(each) if isinstance(each, Mapping) else each
        if not isinstance(rule, RetentionRule):
            raise InvalidArgumentError("rules", each, "must be a rule (RetentionRule)")
        if any(rule.name == other.name for other in found):
            raise InvalidArgumentError("rules", rule.name, "is the name of two rules")
        found.append(rule)
    if len(found) > MOST_RULES:
        raise InvalidArgumentError("rules", len(found), f"are more than {MOST_RULES}")
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention(JsonForm, what="the retention of a namespace"):
    """How long records of a namespace stay. Returned by `Memory.retention`.

    Attributes:
        rules: The rules. The first one that applies to a record decides, whether the record is due or not.
        keep_versions: The time for which former versions stay after they were replaced or removed, such as "30d"; None:
            they stay.

    Raises:
        InvalidArgumentError: A value is invalid.
    """

    rules: tuple[RetentionRule, ...] = ()
    keep_versions: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", checked_rules(self.rules))
        if self.keep_versions is not None:
            object.__setattr__(self, "keep_versions", duration_text("keep_versions", self.keep_versions))

    def __bool__(self) -> bool:
        return bool(self.rules) or self.keep_versions is not None

    def located(self, zone: tzinfo) -> Retention:
        """Return it with the times in filters that have no time zone in this one."""
        return Retention(
            rules=tuple(replace(each, where=each.condition.located(zone)) for each in self.rules),
            keep_versions=self.keep_versions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Due(JsonForm, what="what is due by a rule"):
    """What is due by a rule of retention, or what was done with it. Returned by `Memory.apply_retention`.

    Attributes:
        rule: The name of the rule; "keep_versions" for former versions.
        action: What happens to it: "forget", "erase" or "consolidate", or "thin": a former version loses its text.
        count: The number of records; of former versions, that of versions.
        bytes: Their size, in bytes of their canonical encoding.
        oldest: The time from which the age of the oldest counts; None if nothing is due.
        samples: The ids of the first ones, oldest first.
        left: Of a rule that consolidates, the number of records that are old enough and stay, because they are in no
            group of at least 10 records that a summary can replace.
    """

    rule: str
    action: str
    count: int
    bytes: int
    oldest: datetime | None
    samples: tuple[str, ...] = ()
    left: int = 0


@dataclass(frozen=True, kw_only=True)
class SetRetention(Operation, name="set_retention", right=ADMIN, result="None", in_batch=False):
    """Set the retention of the namespace (`Retention`), all of it."""

    rules: tuple[RetentionRule, ...] = ()
    keep_versions: str | None = None

    def __post_init__(self) -> None:
        checked = Retention(rules=self.rules, keep_versions=self.keep_versions)
        object.__setattr__(self, "rules", checked.rules)
        object.__setattr__(self, "keep_versions", checked.keep_versions)

    @property
    def retention(self) -> Retention:
        """The retention that is set."""
        return Retention(rules=self.rules, keep_versions=self.keep_versions)

    def located(self, zone: tzinfo) -> SetRetention:
        """Return the operation with its times that have no time zone in this one."""
        return altered(self, rules=self.retention.located(zone).rules)


@dataclass(frozen=True, kw_only=True)
class GetRetention(Operation, name="get_retention", right=READ, result="Retention"):
    """Read the retention of the namespace. The result is a `Retention`."""


@dataclass(frozen=True, kw_only=True)
class ApplyRetention(Operation, name="apply_retention", right=WRITE, result="list[Due]", in_batch=False, atomic=False):
    """Apply the retention of the namespace. The result is a list with a `Due` for each rule by which something is due.

    What a rule consolidates is only listed, as records that are old enough: `Memory.apply_retention` consolidates them.

    Attributes:
        dry_run: Change nothing.
        rules: In a dry run, these rules and `keep_versions`, instead of those of the namespace; None: those.
        keep_versions: See `Retention`.
        samples: Maximum number of ids that a `Due` lists; None: all.
        limit: Maximum number of records that are forgotten or erased, and of versions that are thinned; None: all.
    """

    dry_run: bool = True
    rules: tuple[RetentionRule, ...] | None = None
    keep_versions: str | None = None
    samples: int | None = 10
    limit: int | None = None

    def __post_init__(self) -> None:
        check_flag("dry_run", self.dry_run)
        check_count("samples", self.samples, least=0, optional=True)
        check_count("limit", self.limit, optional=True)
        if self.rules is not None or self.keep_versions is not None:
            if not self.dry_run:
                raise InvalidArgumentError("rules", self.rules, "are for a dry run: set them first (set_retention)")
            checked = Retention(rules=self.rules or (), keep_versions=self.keep_versions)
            object.__setattr__(self, "rules", checked.rules)
            object.__setattr__(self, "keep_versions", checked.keep_versions)

    @property
    def planned(self) -> Retention | None:
        """The retention that a dry run shows instead of that of the namespace."""
        return None if self.rules is None else Retention(rules=self.rules, keep_versions=self.keep_versions)

    def located(self, zone: tzinfo) -> ApplyRetention:
        """Return the operation with its times that have no time zone in this one."""
        return self if self.planned is None else altered(self, rules=self.planned.located(zone).rules)
