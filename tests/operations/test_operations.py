"""Operations as values: their JSON form, what they refuse, and what cannot travel."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filters import filter_trees
from tests.indexes import strategies as own

from recollect import filters as f
from recollect import operations as ops
from recollect.errors import (
    InvalidArgumentError,
    InvalidFilterError,
    InvalidOperationError,
    InvalidRecordError,
    RecollectError,
    UnknownArgumentError,
    UnsupportedError,
)
from recollect.operations import Operation, from_json
from recollect.records.codec import RawField
from recollect.records.record import Record

HASH = "0123456789abcdef" * 4
SURROGATE = "a\ud800b"
NAMES: dict[str, type[Operation]] = {
    "remember": ops.Remember,
    "remember_all": ops.RememberAll,
    "update": ops.Update,
    "forget": ops.Forget,
    "forget_where": ops.ForgetWhere,
    "clear": ops.Clear,
    "batch": ops.ExecuteBatch,
    "get": ops.Get,
    "find": ops.Find,
    "count": ops.Count,
    "recall": ops.Recall,
    "grep": ops.Grep,
    "changes": ops.Changes,
    "stats": ops.Stats,
    "namespaces": ops.Namespaces,
}

expects = st.none() | st.sampled_from(("absent", HASH))
counts = st.integers(1, 2**62)
questions = own.texts.filter(lambda text: bool(text.strip()))


@st.composite
def given_fields(draw: st.DrawFn, *, content: bool = False) -> dict[str, Any]:
    """Fields as a caller gives them in Python."""
    fields = draw(own.record_fields())
    if not fields.get("unknown"):
        fields.pop("unknown", None)
    if "language" in fields:  # a caller passes a tag; a record takes any name
        fields["language"] = draw(st.sampled_from(("de", "en-GB", "zh-Hant-TW")))
    return {name: value for name, value in fields.items() if name != "id" and (content or name != "content")}


remembers: st.SearchStrategy[Operation] = st.builds(
    ops.Remember,
    content=own.contents | st.binary(max_size=5),
    id=st.none() | own.names,
    fields=given_fields(),
    expect=expects,
    if_exists=st.sampled_from(("keep", "update", "error")),
)
exact_remembers: st.SearchStrategy[Operation] = st.builds(
    ops.Remember, content=own.contents, id=own.names, fields=given_fields(), exact=st.just(True)
)
remember_alls: st.SearchStrategy[Operation] = st.builds(
    ops.RememberAll, items=st.lists(remembers, max_size=2).map(tuple), on_error=st.sampled_from(("report", "raise"))
)
reads: st.SearchStrategy[Operation] = st.one_of(
    st.builds(ops.Get, id=own.names),
    st.builds(
        ops.Find,
        where=filter_trees.trees,
        limit=st.none() | counts,
        order=st.sampled_from(ops.ORDERS),
        after=st.none() | questions,
    ),
    st.builds(ops.Count, where=filter_trees.trees),
    st.builds(ops.Recall, question=questions, k=counts, where=filter_trees.trees),
    st.builds(ops.Grep, query=questions, limit=counts, where=filter_trees.trees),
    st.builds(ops.Stats),
    st.builds(ops.Namespaces),
)
writes: st.SearchStrategy[Operation] = st.one_of(
    remembers,
    exact_remembers,
    remember_alls,
    st.builds(
        ops.Update,
        id=own.names,
        changes=given_fields(content=True).map(lambda fields: {k: v for k, v in fields.items() if k != "unknown"}),
        expect=expects,
    ),
    st.builds(ops.Forget, id=own.names, expect=expects),
    st.builds(ops.ForgetWhere, where=filter_trees.trees),
    st.builds(ops.Clear),
)
operations: st.SearchStrategy[Operation] = st.one_of(
    reads,
    writes,
    st.builds(ops.Changes, since=st.integers(0, 2**62), limit=st.none() | counts),
    st.builds(
        ops.ExecuteBatch,
        operations=st.lists(reads | writes, max_size=3).map(tuple),
        actor=st.none() | own.texts,
        reason=st.none() | own.texts,
        expect_head=st.none() | st.integers(0, 2**62),
    ),
)


class TestJson:
    @given(operations)
    def test_json_carries_an_operation_without_loss(self, operation: Operation) -> None:
        wire = json.dumps(operation.to_json(), allow_nan=False)
        again = from_json(json.loads(wire))
        assert type(again) is type(operation)
        assert again == operation
        assert json.dumps(again.to_json()) == wire  # also what == does not see: 1 and 1.0, True and 1

    @given(given_fields())
    def test_fields_that_travelled_make_the_record_that_they_made_before(self, fields: dict[str, Any]) -> None:
        fields.setdefault("media_type", "a/b")
        there = from_json(json.loads(json.dumps(ops.Remember(content=b"\xff", fields=fields).to_json())))
        assert isinstance(there, ops.Remember)
        one = Record(id="a", content=b"\xff", **fields)
        assert Record(id="a", content=there.content, **there.fields).to_bytes() == one.to_bytes()

    def test_every_operation_is_known_by_its_name(self) -> None:
        for name, kind in NAMES.items():
            assert kind.name == name

    @pytest.mark.parametrize(
        ("operation", "form"),
        [
            (ops.Remember(content="x"), {"op": "remember", "content": "x"}),
            (
                ops.Remember(
                    content=b"\xff",
                    id="a",
                    fields={"tags": ["t"], "time": datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=1)))},
                    expect="absent",
                    if_exists="update",
                ),
                {
                    "op": "remember",
                    "content": {"base64": "/w=="},
                    "id": "a",
                    "fields": {"tags": ["t"], "time": "2026-03-01T00:00:00+01:00"},
                    "expect": "absent",
                    "if_exists": "update",
                },
            ),
            (
                ops.RememberAll(items=(ops.Remember(content="x"),), on_error="raise"),
                {"op": "remember_all", "items": [{"op": "remember", "content": "x"}], "on_error": "raise"},
            ),
            (
                ops.Update(id="a", changes={"content": b"\xff", "importance": None}),
                {"op": "update", "id": "a", "changes": {"content": {"base64": "/w=="}, "importance": None}},
            ),
            (ops.Forget(id="a", expect=HASH), {"op": "forget", "id": "a", "expect": HASH}),
            (ops.ForgetWhere(where=f.user("a")), {"op": "forget_where", "where": {"user": "a"}}),
            (ops.Clear(), {"op": "clear"}),
            (
                ops.ExecuteBatch(operations=(ops.Clear(),), actor="me", reason="why", expect_head=0),
                {"op": "batch", "operations": [{"op": "clear"}], "actor": "me", "reason": "why", "expect_head": 0},
            ),
            (ops.Get(id="a"), {"op": "get", "id": "a"}),
            (ops.Find(), {"op": "find"}),
            (
                ops.Find(where=~f.tag("t"), limit=5, order="id"),
                {"op": "find", "where": {"not": {"tag": "t"}}, "limit": 5, "order": "id"},
            ),
            (ops.Count(), {"op": "count"}),
            (ops.Recall(question="who?", k=3), {"op": "recall", "question": "who?", "k": 3}),
            (ops.Grep(query="who", limit=7), {"op": "grep", "query": "who", "limit": 7}),
            (ops.Changes(since=5), {"op": "changes", "since": 5}),
            (ops.Changes(limit=1, newest_first=True), {"op": "changes", "limit": 1, "newest_first": True}),
            (ops.Stats(), {"op": "stats"}),
            (ops.Namespaces(), {"op": "namespaces"}),
        ],
    )
    def test_the_form_is_the_one_pinned_here(self, operation: Operation, form: dict[str, Any]) -> None:
        assert operation.to_json() == form
        assert from_json(form) == operation

    def test_every_operation_has_a_pinned_form(self) -> None:
        marks = TestJson.test_the_form_is_the_one_pinned_here.pytestmark
        assert {form["op"] for _, form in marks[0].args[1]} == NAMES.keys()

    def test_unknown_fields_of_a_record_travel_as_they_do_in_records(self) -> None:
        operation = ops.Remember(content="x", fields={"unknown": (RawField(99, 1, b"\xff"),)})
        assert operation.to_json()["fields"] == {"unknown": [[99, 1, "/w=="]]}
        assert from_json(json.loads(json.dumps(operation.to_json()))) == operation

    def test_a_set_of_tags_travels_as_a_list(self) -> None:
        form = ops.Remember(content="x", fields={"tags": {"b", "a"}}).to_json()
        assert json.loads(json.dumps(form))["fields"] == {"tags": ["a", "b"]}

    def test_an_id_is_composed_in_every_operation(self) -> None:
        for operation in (
            ops.Get(id="e\u0301"),
            ops.Forget(id="e\u0301"),
            ops.Update(id="e\u0301", changes={"user": "a"}),
            ops.Remember(content="x", id="e\u0301"),
        ):
            assert operation.id == "\u00e9"

    @pytest.mark.parametrize(
        ("form", "error", "rule"),
        [
            (None, InvalidOperationError, "must be a JSON object"),
            ([], InvalidOperationError, "must be a JSON object"),
            ("clear", InvalidOperationError, "must be a JSON object"),
            ({}, InvalidOperationError, "is not one of add_messages, annotate_terms, apply_retention"),
            ({"op": None}, InvalidOperationError, "is not one of"),
            ({"op": ["clear"]}, InvalidOperationError, "is not one of"),
            ({"op": "drop"}, InvalidOperationError, "is not one of"),
            ({"op": "clear", "where": {"user": "a"}}, InvalidOperationError, "is not a field of clear"),
            ({"op": "get", "id": "a", "k": 1}, InvalidOperationError, "is not a field of get"),
            ({"op": "get"}, InvalidOperationError, "missing"),
            ({"op": "recall"}, InvalidOperationError, "missing"),
            ({"op": "remember"}, InvalidOperationError, "missing"),
            ({"op": "forget_where"}, InvalidOperationError, "missing"),
            ({"op": "get", "id": None}, InvalidRecordError, "must be text"),
            ({"op": "get", "id": ""}, InvalidRecordError, "is empty"),
            ({"op": "get", "id": SURROGATE}, InvalidRecordError, "lone surrogate"),
            ({"op": "remember", "content": "x", "fields": []}, InvalidOperationError, "must be a JSON object"),
            ({"op": "remember", "content": "x", "fields": {"usr": "a"}}, UnknownArgumentError, "did you mean 'user'"),
            ({"op": "remember", "content": "x", "fields": {"time": "noon"}}, InvalidRecordError, "ISO 8601"),
            ({"op": "remember", "content": "x", "fields": {"id": "b"}}, InvalidArgumentError, "an argument of its own"),
            (
                {"op": "remember", "content": "x", "fields": {"content": "y"}},
                InvalidArgumentError,
                "an argument of its own",
            ),
            (
                {"op": "remember", "content": "x", "fields": {"data": "YQ=="}},
                InvalidArgumentError,
                "an argument of its own",
            ),
            ({"op": "remember", "content": {"base64": "?"}}, InvalidRecordError, "is not base64"),
            ({"op": "remember", "content": "x", "if_exists": "replace"}, InvalidArgumentError, "keep, update, error"),
            ({"op": "remember", "content": "x", "if_exists": []}, InvalidArgumentError, "keep, update, error"),
            ({"op": "remember", "content": "x", "expect": "?"}, InvalidArgumentError, "64 hex digits"),
            ({"op": "remember_all", "items": {}}, InvalidOperationError, "list of operations"),
            ({"op": "remember_all", "items": [{"op": "clear"}]}, InvalidOperationError, "are remember operations"),
            ({"op": "remember_all", "items": [], "on_error": "stop"}, InvalidArgumentError, "report, raise"),
            ({"op": "update", "id": "a", "changes": {}}, InvalidArgumentError, "at least one field"),
            ({"op": "update", "id": "a", "changes": {"id": "b"}}, InvalidArgumentError, "cannot change"),
            ({"op": "update", "id": "a", "changes": {"usr": "b"}}, UnknownArgumentError, "did you mean 'user'"),
            ({"op": "update", "id": "a", "changes": None}, InvalidOperationError, "must be a JSON object"),
            ({"op": "forget_where", "where": {"usr": "a"}}, InvalidFilterError, "is not a filter"),
            ({"op": "forget_where", "where": None}, InvalidFilterError, "exactly one key"),
            ({"op": "find", "limit": 0}, InvalidArgumentError, "an integer of at least 1"),
            ({"op": "find", "limit": -1}, InvalidArgumentError, "an integer of at least 1"),
            ({"op": "find", "limit": True}, InvalidArgumentError, "an integer of"),
            ({"op": "find", "limit": 1.0}, InvalidArgumentError, "an integer of"),
            ({"op": "find", "limit": 2**63}, InvalidArgumentError, "at most 4611686018427387904"),
            ({"op": "find", "order": "random"}, InvalidArgumentError, "newest, oldest"),
            ({"op": "recall", "question": ""}, InvalidArgumentError, "is empty"),
            ({"op": "recall", "question": " \n"}, InvalidArgumentError, "is empty"),
            ({"op": "recall", "question": 5}, InvalidArgumentError, "must be text"),
            ({"op": "recall", "question": SURROGATE}, InvalidArgumentError, "lone surrogate"),
            ({"op": "recall", "question": "x", "k": 0}, InvalidArgumentError, "an integer of at least 1"),
            ({"op": "recall", "question": "x", "k": None}, InvalidArgumentError, "an integer of at least 1"),
            ({"op": "grep", "query": "", "limit": 1}, InvalidArgumentError, "is empty"),
            ({"op": "grep", "query": "x", "limit": None}, InvalidArgumentError, "an integer of at least 1"),
            ({"op": "changes", "since": -1}, InvalidArgumentError, "an integer of at least 0"),
            ({"op": "changes", "since": None}, InvalidArgumentError, "an integer of at least 0"),
            ({"op": "batch", "operations": None}, InvalidOperationError, "list of operations"),
            ({"op": "batch", "operations": [5]}, InvalidOperationError, "must be a JSON object"),
            ({"op": "batch", "operations": [{"op": "changes"}]}, InvalidOperationError, "cannot be part of a batch"),
            (
                {"op": "batch", "operations": [{"op": "batch", "operations": []}]},
                InvalidOperationError,
                "part of a batch",
            ),
            ({"op": "batch", "operations": [], "expect_head": -1}, InvalidArgumentError, "an integer of at least 0"),
            ({"op": "batch", "operations": [], "expect_head": "1"}, InvalidArgumentError, "an integer of"),
        ],
    )
    def test_json_that_is_no_operation_is_refused(self, form: Any, error: type[RecollectError], rule: str) -> None:
        with pytest.raises(error) as caught:
            from_json(form)
        assert rule in str(caught.value)
        assert "nothing was changed" not in str(caught.value)  # reading JSON changes nothing
        str(caught.value).encode("utf-8")

    @pytest.mark.parametrize(("op", "key"), [("batch", "operations"), ("remember_all", "items")])
    def test_operations_nested_too_deeply_are_refused_and_break_nothing(self, op: str, key: str) -> None:
        form: dict[str, Any] = {"op": "clear"}
        for _ in range(100_000):
            form = {"op": op, key: [form]}
        with pytest.raises(InvalidOperationError, match="nested too deeply"):
            from_json(form)

    def test_a_batch_may_hold_a_remember_all(self) -> None:
        inner = {"op": "remember_all", "items": [{"op": "remember", "content": "x"}]}
        assert from_json({"op": "batch", "operations": [inner]}).to_json() == {"op": "batch", "operations": [inner]}

    @given(own.hostile_json)
    def test_any_json_is_an_operation_or_an_error_of_ours(self, form: Any) -> None:
        read_or_refused(form)

    @given(st.sampled_from(sorted(NAMES)), st.data())
    def test_any_values_of_the_right_keys_are_an_operation_or_an_error_of_ours(
        self, op: str, data: st.DataObject
    ) -> None:
        keys = [item.name for item in dataclasses.fields(NAMES[op])]  # type: ignore[arg-type]
        form = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(keys, own.hostile_json)))
        read_or_refused({"op": op, **form})


def read_or_refused(form: Any) -> None:
    try:
        operation = from_json(form)
    except RecollectError as error:
        str(error).encode("utf-8")
        json.dumps(error.to_json())
    else:
        assert operation.name == form["op"]


class TestWhatCannotTravel:
    @pytest.mark.parametrize(
        "operation",
        [
            ops.Update(id="a", changes=lambda record: record.changed(user="b")),
            ops.Find(where=f.custom(bool)),
            ops.Count(where=~f.custom(bool)),
            ops.Recall(question="x", where=f.user("a") & f.custom(bool)),
            ops.Grep(query="x", where=f.custom(bool)),
            ops.ForgetWhere(where=f.custom(bool)),
            ops.ExecuteBatch(operations=(ops.ForgetWhere(where=f.custom(bool)),)),
            ops.ExecuteBatch(operations=(ops.Update(id="a", changes=lambda record: record),)),
        ],
        ids=lambda operation: operation.name,
    )
    def test_a_function_is_never_left_out_but_refused(self, operation: Operation) -> None:
        with pytest.raises(UnsupportedError, match="no JSON form"):
            operation.to_json()


class TestArguments:
    def test_expect_is_a_record_its_hash_absent_or_nothing(self) -> None:
        record = Record(id="a", content="x")
        assert ops.expectation(record) == record.hash
        assert ops.expectation(record.hash) == record.hash
        assert ops.expectation("absent") == ops.ABSENT == "absent"
        assert ops.expectation(None) is None
        assert ops.Forget(id="a", expect=record).expect == record.hash  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "value",
        ["", "Absent", HASH[:-1], HASH + "0", HASH.upper(), HASH[:-1] + "g", HASH + "\n", 5, True, b"absent", [HASH]],
    )
    def test_expect_is_nothing_else(self, value: object) -> None:
        with pytest.raises(InvalidArgumentError, match="expect"):
            ops.expectation(value)

    @pytest.mark.parametrize(
        "build",
        [
            lambda where: ops.Find(where=where),
            lambda where: ops.Count(where=where),
            lambda where: ops.Recall(question="x", where=where),
            lambda where: ops.Grep(query="x", where=where),
            lambda where: ops.ForgetWhere(where=where),
        ],
    )
    @pytest.mark.parametrize("where", [None, "user=a", {"user": "a"}, lambda record: True])
    def test_a_condition_must_be_a_filter(self, build: Callable[[Any], Operation], where: Any) -> None:
        # A function taken for a filter that always holds would make "forget what matches" forget everything.
        with pytest.raises(InvalidArgumentError, match="must be a filter"):
            build(where)

    def test_what_is_no_operation_is_refused_in_a_batch(self) -> None:
        for wrong in ({"op": "clear"}, None, ops.Changes(), ops.ExecuteBatch(operations=())):
            with pytest.raises(InvalidOperationError, match="cannot be part of a batch"):
                ops.ExecuteBatch(operations=(wrong,))  # type: ignore[arg-type]

    def test_operations_cannot_be_changed(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            ops.Get(id="a").id = "b"  # type: ignore[misc]

    def test_operations_with_the_same_arguments_are_equal(self) -> None:
        def find() -> ops.Find:
            return ops.Find(where=f.user("a") & f.after(datetime(2026, 1, 1, tzinfo=UTC)))

        assert find() == find()
        assert find() != ops.Find()
