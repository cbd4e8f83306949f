"""Filters: what each condition means, that trees of them mean what logic says, and their JSON form."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filters import filter_trees as own
from tests.indexes.strategies import any_texts, hostile_json

from recollect import filters as f
from recollect.errors import InvalidFilterError, RecollectError, UnsupportedError
from recollect.filters import Filter, from_json
from recollect.filters.tree import LINK_FIELDS, MAX_DEPTH, TEXT_FIELDS, AllOf, AnyOf, Everything, Not, Nothing
from recollect.records.record import Record

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MICRO = timedelta(microseconds=1)


def make(**fields: Any) -> Record:
    return Record(**{"id": "r1", "content": "I like JavaScript, not Straßen", "kind": "note", **fields})


BARE = make()
BYTES = make(content=b"java", media_type="a/b")
TEXT_FILTERS: list[tuple[str, Callable[..., Filter]]] = [
    ("role", f.role),
    ("speaker", f.speaker),
    ("user", f.user),
    ("agent", f.agent),
    ("conversation", f.conversation),
    ("session", f.session),
    ("entity", f.entity),
    ("source", f.source),
]


def meta(**values: Any) -> Record:
    return make(metadata=values)


class TestMeaning:
    def test_a_text_that_is_nothing_but_the_words_has_them(self) -> None:
        where = f.matches("green tea")
        assert where.matches(Record(id="1", content="Tea, green"))
        assert where.matches(Record(id="2", content="a green cup of tea"))
        assert not where.matches(Record(id="3", content="tea"))

    @pytest.mark.parametrize(("field", "condition"), TEXT_FILTERS)
    def test_a_text_field_is_one_of_the_values_exactly(self, field: str, condition: Callable[..., Filter]) -> None:
        ana = make(**{field: "ana"})
        assert condition("ana").matches(ana)
        assert condition("bob", "ana").matches(ana)
        for other in ("Ana", "an", "anab", "a%", "an_", " ana"):
            assert not condition(other).matches(ana)

    @pytest.mark.parametrize(("field", "condition"), TEXT_FILTERS)
    def test_a_record_without_the_field_never_matches_so_its_negation_does(
        self, field: str, condition: Callable[..., Filter]
    ) -> None:
        assert not condition("ana").matches(BARE)
        assert (~condition("ana")).matches(BARE)
        assert not (~condition("ana")).matches(make(**{field: "ana"}))

    TIME = make(time=NOON, importance=0.5, tags=["work", "a%"])

    @pytest.mark.parametrize(
        ("condition", "record", "expected"),
        [
            (f.everything(), BARE, True),
            (f.nothing(), BARE, False),
            (f.all_of(), BARE, True),
            (f.any_of(), BARE, False),
            (~f.all_of(), BARE, False),
            (~f.any_of(), BARE, True),
            # ids and kinds, as records hold them
            (f.id("r1"), BARE, True),
            (f.id("R1"), BARE, False),
            (f.id("r2", "r1"), BARE, True),
            (f.id("cafe\u0301"), make(id="cafe\u0301"), True),
            (f.id("caf\u00e9"), make(id="cafe\u0301"), True),
            (f.kind("NOTE"), BARE, True),
            (f.kind("task", "Note"), BARE, True),
            (f.kind("knowledge"), BARE, False),
            (f.kind("STRASSE"), make(kind="Straße"), True),
            # tags
            (f.tag("work"), TIME, True),
            (f.tag("Work"), TIME, False),
            (f.tag("wor"), TIME, False),
            (f.tag("a%"), TIME, True),
            (f.tag("work"), BARE, False),
            (~f.tag("work"), BARE, True),
            # importance
            (f.importance_at_least(0.5), TIME, True),
            (f.importance_at_least(0.5000001), TIME, False),
            (f.importance_at_least(0), TIME, True),
            (f.importance_at_least(0), BARE, False),
            (f.importance_at_least(-1), BARE, False),
            (~f.importance_at_least(0.9), BARE, True),
            (~f.importance_at_least(0), BARE, True),
            (f.importance_at_least(float("-inf")), TIME, True),
            (f.importance_at_least(0), make(importance=0.0), True),
            # time: after and before leave their moment out, between holds both ends
            (f.after(NOON), TIME, False),
            (f.after(NOON - MICRO), TIME, True),
            (f.before(NOON), TIME, False),
            (f.before(NOON + MICRO), TIME, True),
            (f.between(NOON, NOON), TIME, True),
            (f.between(NOON - MICRO, NOON), TIME, True),
            (f.between(NOON, NOON + MICRO), TIME, True),
            (f.between(NOON + MICRO, NOON - MICRO), TIME, False),
            (f.after(NOON.astimezone(timezone(timedelta(hours=5)))), TIME, False),
            (f.between(NOON.astimezone(timezone(timedelta(hours=5))), NOON), TIME, True),
            (f.after(NOON), BARE, False),
            (f.before(NOON), BARE, False),
            (f.between(NOON, NOON), BARE, False),
            (~f.after(NOON), BARE, True),
            (~f.before(NOON), BARE, True),
            (~f.between(NOON, NOON), BARE, True),
            # what is true at a time: from its start on, until before its end
            (f.valid_at(NOON), BARE, True),
            (f.valid_at(NOON), make(valid_from=NOON), True),
            (f.valid_at(NOON - MICRO), make(valid_from=NOON), False),
            (f.valid_at(NOON), make(valid_to=NOON), False),
            (f.valid_at(NOON - MICRO), make(valid_to=NOON), True),
            (f.valid_at(NOON), make(valid_from=NOON, valid_to=NOON), False),
            (f.valid_at(NOON), make(valid_from=NOON, valid_to=NOON + MICRO), True),
            (f.valid_at(NOON + MICRO), make(valid_from=NOON, valid_to=NOON + MICRO), False),
            (f.valid_at(NOON.astimezone(timezone(timedelta(hours=5)))), make(valid_from=NOON), True),
            (~f.valid_at(NOON), make(valid_to=NOON), True),
            (f.has("valid_to"), make(valid_from=NOON), False),
            (f.has("valid_to"), make(valid_to=NOON), True),
            # links to other records
            (f.derived_from("a"), make(derived_from=["b", "a"]), True),
            (f.derived_from("a"), make(supersedes=["a"]), False),
            (f.derived_from("a", "c"), make(derived_from=["b", "c"]), True),
            (f.derived_from("A"), make(derived_from=["a"]), False),
            (f.derived_from("a"), BARE, False),
            (~f.derived_from("a"), BARE, True),
            (f.supersedes("cafe\u0301"), make(supersedes=["caf\u00e9"]), True),
            (f.supersedes("caf\u00e9"), make(supersedes=["cafe\u0301"]), True),
            (f.has("derived_from"), make(derived_from=["a"]), True),
            (f.has("derived_from"), make(supersedes=["a"]), False),
            # content
            (f.contains("javascript"), BARE, True),
            (f.contains("java"), BARE, True),
            (f.contains("STRASSEN"), BARE, True),
            (f.contains("ﬁ"), make(content="finer"), True),
            (f.contains("javascript", case_sensitive=True), BARE, False),
            (f.contains("JavaScript", case_sensitive=True), BARE, True),
            (f.contains("ﬁ", case_sensitive=True), make(content="finer"), False),
            (f.contains("%"), BARE, False),
            (f.contains("_"), BARE, False),
            (f.contains("I_like"), BARE, False),
            (f.contains(""), BARE, True),
            (f.contains("\0"), make(content="nul\0byte"), True),
            (f.contains("e\u0301"), make(content="caf\u00e9"), True),
            (f.contains("e\u0301", case_sensitive=True), make(content="caf\u00e9"), False),
            (f.contains("java"), BYTES, False),
            (f.contains(""), BYTES, False),
            (~f.contains("java"), BYTES, True),
            (f.contains("java", case_sensitive=True), BYTES, False),
            # whole words
            (f.matches("java"), BARE, False),
            (f.matches("javascript"), BARE, True),
            (f.matches("NOT like"), BARE, True),
            (f.matches("not, like!"), BARE, True),
            (f.matches("like python"), BARE, False),
            (f.matches("strassen"), BARE, True),
            (f.matches("java"), BYTES, False),
            (~f.matches("java"), BYTES, True),
            # metadata
            (f.meta("a"), meta(a=None), True),
            (f.meta("a"), BARE, False),
            (~f.meta("a"), BARE, True),
            (f.meta("a", None), meta(a=None), True),
            (f.meta("a", None), BARE, False),
            (f.meta("a", "x"), meta(a="x"), True),
            (f.meta("a", "X"), meta(a="x"), False),
            (f.meta("a", "x%"), meta(a="xy"), False),
            (f.meta("a", 1), meta(a=1.0), True),
            (f.meta("a", 1), meta(a="1"), False),
            (f.meta("a", [1, {"b": None}]), meta(a=[1, {"b": None}]), True),
            (f.meta("a", [1]), meta(a=[1, 2]), False),
            (~f.meta("a", "x"), BARE, True),
            (f.meta("a.b"), make(metadata={"a.b": 1}), True),
            (f.meta("a.b"), meta(a={"b": 1}), False),
            (f.meta('k"e:y$'), make(metadata={'k"e:y$': 1}), True),
            (f.meta(""), make(metadata={"": 1}), True),
            (f.meta("a", contains="ELL"), meta(a="hello"), True),
            (f.meta("a", contains="%"), meta(a="hello"), False),
            (f.meta("a", contains=""), meta(a="hello"), True),
            (f.meta("a", contains=1), meta(a="1"), False),
            (f.meta("a", contains="x"), meta(a=["x", "y"]), True),
            (f.meta("a", contains="X"), meta(a=["x", "y"]), False),
            (f.meta("a", contains=[1]), meta(a=[[1]]), True),
            (f.meta("a", contains="k"), meta(a={"k": 1}), True),
            (f.meta("a", contains="v"), meta(a={"k": "v"}), False),
            (f.meta("a", contains=1), meta(a={"1": 1}), False),
            (f.meta("a", contains=1), meta(a=1), False),
            (f.meta("a", contains=None), meta(a=None), False),
            (f.meta("a", contains="x"), BARE, False),
            (~f.meta("a", contains="x"), BARE, True),
            (f.meta("a", one_of=["x", 1]), meta(a=1.0), True),
            (f.meta("a", one_of=["x", 1]), meta(a="1"), False),
            (f.meta("a", one_of=[[1], None]), meta(a=None), True),
            (f.meta("a", one_of=[]), meta(a="x"), False),
            (~f.meta("a", one_of=["x"]), BARE, True),
            (f.meta("a", above=6), meta(a=7), True),
            (f.meta("a", above=6), meta(a="7"), False),
            (f.meta("a", above=6), meta(a=6), False),
            (f.meta("a", above=6), BARE, False),
            (f.meta("a", above=0), meta(a=True), False),
            (f.meta("a", at_least=6), meta(a=6.0), True),
            (f.meta("a", below=2**53 + 1), meta(a=2.0**53), True),
            (f.meta("a", above=2.0**53), meta(a=2**53 + 1), True),
            (f.meta("a", at_most="red"), meta(a="blue"), True),
            (f.meta("a", below="b"), meta(a="a\U0001f600"), True),
            (f.meta("a", below="B"), meta(a="a"), False),
            (f.meta("a", below="z"), meta(a=1), False),
            (f.meta("a", below="z"), meta(a=["a"]), False),
            (f.meta("a", at_most=6), meta(a=None), False),
            (f.meta("a", at_least=1, below=5), meta(a=5), False),
            (f.meta("a", at_least=1, below=5), meta(a=1), True),
            (f.meta("a", any_of=["x", 3]), meta(a=["y", 3]), True),
            (f.meta("a", any_of=["x"]), meta(a="x"), False),
            (f.meta("a", any_of=[]), meta(a=["x"]), False),
            (f.meta("a", all_of=["x", 3]), meta(a=["y", 3, "x"]), True),
            (f.meta("a", all_of=["x", 3]), meta(a=["x"]), False),
            (f.meta("a", all_of=[]), meta(a=[]), True),
            (f.meta("a", empty=True), meta(a=None), True),
            (f.meta("a", empty=True), meta(a=[]), True),
            (f.meta("a", empty=True), meta(a=""), True),
            (f.meta("a", empty=True), meta(a={}), True),
            (f.meta("a", empty=True), meta(a=0), False),
            (f.meta("a", empty=True), BARE, False),
            (f.meta("a", empty=False), meta(a=0), True),
            (f.meta("a", empty=False), BARE, False),
            (f.meta(["a"], 1), meta(a=1), True),
            (f.meta(["a", "b"], 1), meta(a={"b": 1}), True),
            (f.meta(["a", "b"]), make(metadata={"a.b": 1}), False),
            (f.meta(["a", "b"]), meta(a={"c": 1}), False),
            (f.meta(["a", "b"]), meta(a=["b"]), False),
            (f.meta(["a", "b", "c"], above=1), meta(a={"b": {"c": 2}}), True),
            # has
            (f.has("user"), make(user="ana"), True),
            (f.has("user"), BARE, False),
            (~f.has("user"), BARE, True),
            (f.has("importance"), make(importance=0.0), True),
            (f.has("pinned"), make(pinned=True), True),
            (f.has("pinned"), BARE, False),
            # custom
            (f.custom(lambda record: record.kind == "note"), BARE, True),
            (f.custom(lambda record: record.tags), BARE, False),
            (~f.custom(lambda record: record.tags), BARE, True),
        ],
    )
    def test_each_condition_means_what_its_name_says(self, condition: Filter, record: Record, expected: bool) -> None:
        assert condition.matches(record) is expected

    @given(own.trees, own.trees, own.records())
    def test_trees_are_boolean_algebra(self, one: Filter, other: Filter, record: Record) -> None:
        a, b = one.matches(record), other.matches(record)
        assert (one & other).matches(record) is (a and b)
        assert (one | other).matches(record) is (a or b)
        assert (~one).matches(record) is f.not_(one).matches(record) is (not a)
        assert (~(one & other)).matches(record) is (~one | ~other).matches(record)
        assert f.all_of(one, other, one).matches(record) is (a and b)
        assert f.any_of(one, other, one).matches(record) is (a or b)
        assert (~~one).matches(record) is a


A, B, C = f.user("a"), f.user("b"), f.user("c")


class TestShape:
    def test_combining_does_not_nest_a_kind_in_itself(self) -> None:
        assert A & B & C == A & (B & C) == f.all_of(A, f.all_of(B, C)) == AllOf((A, B, C))
        assert A | B | C == A | (B | C) == f.any_of(A, f.any_of(B, C)) == AnyOf((A, B, C))
        assert AnyOf((AllOf((A, B)), C)) == (A & B) | C
        assert AllOf((AnyOf((A, B)), C)) == (A | B) & C

    def test_one_part_is_the_part_itself_and_none_is_everything_or_nothing(self) -> None:
        assert f.all_of(A) is A
        assert f.any_of(A) is A
        assert f.all_of() == Everything()
        assert f.any_of() == Nothing()

    def test_two_negations_by_operator_are_none(self) -> None:
        assert ~~A is A
        assert ~A == Not(A) == f.not_(A)

    def test_filters_combine_with_filters_only(self) -> None:
        for wrong in (None, True, "user=a", lambda record: True):
            with pytest.raises(TypeError):
                A & wrong  # type: ignore[operator]
            with pytest.raises(TypeError):
                A | wrong  # type: ignore[operator]
            for combined in (f.all_of, f.any_of):
                with pytest.raises(InvalidFilterError, match="is not a filter"):
                    combined(wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidFilterError, match="is not a filter"):
                f.not_(wrong)  # type: ignore[arg-type]

    def test_the_words_and_or_not_are_refused(self) -> None:
        for combined in (lambda: A and A, lambda: A or A, lambda: not A):
            with pytest.raises(InvalidFilterError, match="one & other"):
                combined()
        with pytest.raises(InvalidFilterError, match="takes one test"):
            f.meta("a", 1, contains=2)

    @given(own.trees)
    def test_equal_filters_have_equal_hashes_and_filters_can_be_pickled(self, tree: Filter) -> None:
        again = pickle.loads(pickle.dumps(tree))
        assert again == tree
        assert hash(again) == hash(tree)

    @pytest.mark.parametrize("count", [1, 7, 8, 9, 2000])
    @pytest.mark.parametrize("name", [*TEXT_FIELDS, *LINK_FIELDS, "tag"])
    def test_many_values_mean_what_few_do_and_are_compared_at_once(self, name: str, count: int) -> None:
        values = [f"v{number}" for number in range(count)]
        parts = [f.tag(value) if name == "tag" else getattr(f, name)(value) for value in values]
        filters = [f.any_of(*parts), f.any_of(*parts, f.everything() & f.custom(lambda record: False))]
        if name != "tag":
            filters.append(getattr(f, name)(*values))

        def record_of(value: str) -> Record:
            one = name in TEXT_FIELDS or name == "parent"
            return make(**{"tags" if name == "tag" else name: value if one else (value,)})

        for where in filters:
            before = (repr(where), hash(where), None if where is filters[1] else pickle.dumps(where))
            for value in ("v0", values[-1], "w", "v"):
                for record in (make(tags=(value,)), record_of(value)):
                    assert where.matches(record) == any(part.matches(record) for part in parts)
            assert not where.matches(make())
            assert before == (repr(where), hash(where), None if where is filters[1] else pickle.dumps(where))
            if where is not filters[1]:
                again = pickle.loads(pickle.dumps(where))
                assert again == where
                assert again.to_json() == where.to_json() == from_json(where.to_json()).to_json()
                assert again.matches(record_of("v0"))

    def test_values_are_compared_by_a_set_and_not_one_by_one(self) -> None:
        compared = 0

        class Counted(str):
            __hash__ = str.__hash__

            def __eq__(self, other: object) -> bool:
                nonlocal compared
                compared += 1
                return str.__eq__(self, other)

        where = f.user(*(Counted(f"v{number}") for number in range(1000)))
        either = f.any_of(*(f.user(Counted(f"v{number}")) for number in range(1000)))
        for each in (where, either):
            each.matches(make(user="x"))
            compared = 0
            assert not any(each.matches(make(user=f"w{number}")) for number in range(100))
            assert compared < 100

    def test_filters_that_mean_the_same_of_numbers_are_equal_with_equal_hashes(self) -> None:
        for one, other in ((1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([True], [1]), (0.0, -0.0)):
            assert f.meta("k", one) == f.meta("k", other)
            assert hash(f.meta("k", one)) == hash(f.meta("k", other))
        assert len({f.meta("k", 1), f.meta("k", 1.0), f.meta("k", "1"), f.meta("k")}) == 3

    def test_a_filter_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError):
            A.values = ("b",)  # type: ignore[attr-defined]
        stored = [1]
        condition = f.meta("a", stored)
        stored.append(2)
        assert condition.matches(meta(a=[1]))

    def test_filters_may_be_nested_60_levels_deep_and_no_deeper(self) -> None:
        assert MAX_DEPTH == 60
        deep: Filter = A
        for level in range(2, 61):
            deep = f.not_(deep) if level % 2 else deep & B if level % 4 else deep | B
        assert deep.depth == 60
        assert isinstance(deep.matches(BARE), bool)
        assert f.from_json(json.loads(json.dumps(deep.to_json()))) == deep
        for wrap in (f.not_, lambda part: f.all_of(part, C) if isinstance(part, AnyOf) else f.any_of(part, C)):
            with pytest.raises(InvalidFilterError, match="nested deeper than 60 levels"):
                wrap(deep)

    def test_ten_thousand_conditions_side_by_side_are_not_deep(self) -> None:
        wide = f.any_of(*(f.user(str(number)) for number in range(10_000)))
        assert wide.depth == 2
        assert wide.matches(make(user="9999"))
        assert f.from_json(wide.to_json()) == wide


class TestRefusals:
    @pytest.mark.parametrize("condition", [each for _, each in TEXT_FILTERS] + [f.id, f.kind])
    def test_a_text_condition_needs_values_and_they_must_be_text(self, condition: Callable[..., Filter]) -> None:
        with pytest.raises(InvalidFilterError, match="at least one value"):
            condition()
        for wrong in ("", None, 5, b"a", ["a"], "\ud800"):
            with pytest.raises(InvalidFilterError):
                condition("good", wrong)

    @pytest.mark.parametrize(
        "build",
        [
            lambda: f.tag(""),
            lambda: f.tag(5),  # type: ignore[arg-type]
            lambda: f.tag("\ud800"),
            lambda: f.meta(5),  # type: ignore[arg-type]
            lambda: f.meta("\ud800"),
            lambda: f.meta("a", object()),
            lambda: f.meta("a", float("nan")),
            lambda: f.meta("a", "\ud800"),
            lambda: f.meta("a", 2**63),
            lambda: f.meta("a", contains={1: 2}),
            lambda: f.has("content"),
            lambda: f.has("id"),
            lambda: f.has(None),  # type: ignore[arg-type]
            lambda: f.has(["user"]),  # type: ignore[arg-type]
            lambda: f.importance_at_least("0.5"),  # type: ignore[arg-type]
            lambda: f.importance_at_least(True),
            lambda: f.importance_at_least(None),  # type: ignore[arg-type]
            lambda: f.importance_at_least(float("nan")),
            lambda: f.importance_at_least(10**400),
            lambda: f.after(datetime(2026, 1, 1)),
            lambda: f.before(None),  # type: ignore[arg-type]
            lambda: f.between(NOON, datetime(2026, 1, 1)),
            lambda: f.between("2026", NOON),
            lambda: f.after(datetime(1, 1, 1, tzinfo=UTC)),
            lambda: f.contains(None),  # type: ignore[arg-type]
            lambda: f.contains("\ud800"),
            lambda: f.matches(""),
            lambda: f.matches("... !"),
            lambda: f.matches(5),  # type: ignore[arg-type]
            lambda: f.custom("not a function"),  # type: ignore[arg-type]
        ],
    )
    def test_a_value_that_no_record_could_be_asked_for_is_refused(self, build: Callable[[], Filter]) -> None:
        with pytest.raises(InvalidFilterError, match=r"^invalid filter "):
            build()

    def test_a_time_that_is_naive_is_refused_by_name(self) -> None:
        with pytest.raises(InvalidFilterError, match="after is naive"):
            f.after(datetime(2026, 1, 1))

    @given(any_texts)
    def test_no_text_breaks_a_condition(self, text: str) -> None:
        for build in (f.user, f.kind, f.id, f.tag, f.contains, f.matches, f.meta):
            try:
                condition = build(text)
            except InvalidFilterError as error:
                str(error).encode("utf-8")
            else:
                assert isinstance(condition.matches(BARE), bool)


class TestJson:
    @given(own.trees)
    def test_json_carries_a_filter_without_loss(self, tree: Filter) -> None:
        wire = json.dumps(tree.to_json(), allow_nan=False)
        again = f.from_json(json.loads(wire))
        assert again == tree
        assert json.dumps(again.to_json()) == wire  # also where == would not see it: 1 and 1.0

    @pytest.mark.parametrize(
        ("tree", "form"),
        [
            (f.everything(), {"everything": True}),
            (f.nothing(), {"nothing": True}),
            (f.user("ana"), {"user": "ana"}),
            (f.user("ana", "bob"), {"user": ["ana", "bob"]}),
            (f.kind("Task"), {"kind": "task"}),
            (f.tag("x"), {"tag": "x"}),
            (f.meta("a.b"), {"meta": {"key": "a.b"}}),
            (f.meta("a", None), {"meta": {"key": "a", "equals": None}}),
            (f.meta("a", contains=[1]), {"meta": {"key": "a", "contains": [1]}}),
            (f.has("user"), {"has": "user"}),
            (f.importance_at_least(0.5), {"importance_at_least": 0.5}),
            (f.after(NOON), {"after": "2026-03-01T12:00:00+00:00"}),
            (f.before(NOON), {"before": "2026-03-01T12:00:00+00:00"}),
            (f.between(NOON, NOON), {"between": ["2026-03-01T12:00:00+00:00"] * 2}),
            (f.contains("x"), {"contains": "x"}),
            (f.contains("x", case_sensitive=True), {"contains": {"text": "x", "case_sensitive": True}}),
            (f.matches("a b"), {"matches": "a b"}),
            (A & ~B, {"all_of": [{"user": "a"}, {"not": {"user": "b"}}]}),
            (A | B, {"any_of": [{"user": "a"}, {"user": "b"}]}),
        ],
    )
    def test_the_form_is_the_one_pinned_here(self, tree: Filter, form: dict[str, Any]) -> None:
        assert tree.to_json() == form
        assert f.from_json(form) == tree

    @pytest.mark.parametrize(
        "form",
        [
            None,
            5,
            "user=ana",
            [],
            [{"user": "a"}],
            {},
            {"user": "a", "kind": "b"},
            {"unheard_of": 1},
            {"content": "x"},
            {"custom": "x"},
            {"user": []},
            {"user": ""},
            {"user": None},
            {"user": 5},
            {"user": ["a", 5]},
            {"user": {"a": 1}},
            {"everything": False},
            {"everything": 1},
            {"nothing": None},
            {"not": None},
            {"not": []},
            {"all_of": {}},
            {"all_of": {"user": "a"}},
            {"any_of": [None]},
            {"any_of": None},
            {"tag": None},
            {"tag": ["a"]},
            {"meta": "a"},
            {"meta": {}},
            {"meta": {"key": 5}},
            {"meta": {"equals": 5}},
            {"meta": {"key": "a", "equals": 1, "contains": 1}},
            {"meta": {"key": "a", "like": 1}},
            {"meta": {"key": "a", "equals": float("nan")}},
            {"meta": {"key": "a", "equals": 10**30}},
            {"importance_at_least": None},
            {"importance_at_least": "1"},
            {"importance_at_least": True},
            {"importance_at_least": 10**400},
            {"after": 5},
            {"after": "yesterday"},
            {"after": "2026-01-32"},
            {"after": []},
            {"after": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"]},
            {"after": ["2026-01-01T00:00:00Z", 5]},
            {"between": "2026-01-01T00:00:00Z"},
            {"between": ["2026-01-01T00:00:00Z"]},
            {"between": ["2026-01-01T00:00:00Z", None, "2026-01-01T00:00:00Z"]},
            {"contains": None},
            {"contains": {"text": "a"}},
            {"contains": {"text": "a", "case_sensitive": 1}},
            {"contains": {"text": "a", "case_sensitive": True, "more": 1}},
            {"matches": ""},
            {"matches": None},
        ],
    )
    def test_json_that_is_no_filter_is_refused(self, form: Any) -> None:
        with pytest.raises(InvalidFilterError):
            f.from_json(form)

    @given(hostile_json)
    def test_any_json_is_a_filter_or_an_error_of_ours(self, form: Any) -> None:
        try:
            tree = f.from_json(form)
        except RecollectError as error:
            str(error).encode("utf-8")
        else:
            assert isinstance(tree.matches(BARE), bool)

    @given(
        st.dictionaries(
            st.sampled_from(
                ["user", "meta", "after", "between", "contains", "not", "all_of", "importance_at_least", "kind"]
            ),
            hostile_json,
            min_size=1,
            max_size=1,
        )
    )
    def test_any_value_of_a_known_condition_is_a_filter_or_an_error_of_ours(self, form: Any) -> None:
        try:
            tree = f.from_json(form)
        except InvalidFilterError as error:
            str(error).encode("utf-8")
        else:
            assert isinstance(tree.matches(BARE), bool)

    @pytest.mark.parametrize("wrap", [lambda inner: {"not": inner}, lambda inner: {"all_of": [inner]}])
    def test_json_that_is_nested_too_deeply_is_refused_and_breaks_nothing(self, wrap: Callable[[Any], Any]) -> None:
        form: Any = {"user": "a"}
        for _ in range(100_000):
            form = wrap(form)
        with pytest.raises(InvalidFilterError, match="nested deeper than 60 levels"):
            f.from_json(form)

    def test_a_custom_filter_cannot_travel_wherever_it_stands(self) -> None:
        odd = f.custom(lambda record: True)
        for tree in (odd, ~odd, A & odd, A | (B & ~odd)):
            with pytest.raises(UnsupportedError, match="a Python function has no JSON form"):
                tree.to_json()

    def test_an_infinite_importance_cannot_travel(self) -> None:
        with pytest.raises(UnsupportedError, match="JSON has no infinity"):
            f.importance_at_least(float("inf")).to_json()
