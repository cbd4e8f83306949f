"""Records: every field has its rule, and a record that exists keeps to all of them."""

from __future__ import annotations

import copy
import dataclasses
import enum
import hashlib
import json
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.indexes import strategies as own

from recollect.errors import InvalidRecordError, RecollectError, UnknownArgumentError
from recollect.records.codec import RawField
from recollect.records.record import KINDS, EntityId, Record, _of_usual, checked, fields_from_json, instant

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXT_FIELDS = ("id", "kind", "media_type", "parent", *own.NAME_FIELDS)
LISTS = ("tags", "supersedes", "derived_from")
SURROGATE = "a\ud800b"


def make(**fields: Any) -> Record:
    return Record(**{"id": "r1", "content": "something said", **fields})


def refused(field: str, rule: str, **fields: Any) -> None:
    """The record cannot be made, and the error names the field and the rule."""
    with pytest.raises(InvalidRecordError) as caught:
        make(**fields)
    assert caught.value.field == field
    assert rule in str(caught.value)
    assert "nothing was changed" not in str(caught.value)  # making a record would change nothing anyway
    str(caught.value).encode("utf-8")  # the message can be printed
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


class TestNames:
    @pytest.mark.parametrize("field", TEXT_FIELDS)
    @pytest.mark.parametrize("value", [5, 1.5, True, b"bytes", ["a"], {"a": 1}, object()])
    def test_a_name_that_is_not_text_is_refused(self, field: str, value: object) -> None:
        refused(field, "must be text", **{field: value})

    @pytest.mark.parametrize("field", TEXT_FIELDS)
    def test_an_empty_name_is_refused(self, field: str) -> None:
        refused(field, "is empty", **{field: ""})

    @pytest.mark.parametrize("field", TEXT_FIELDS)
    def test_a_lone_surrogate_in_a_name_is_refused(self, field: str) -> None:
        refused(field, "lone surrogate", **{field: SURROGATE})

    @pytest.mark.parametrize("field", TEXT_FIELDS)
    @pytest.mark.parametrize("control", ["\0", "\t", "\n", "\r", "\x1b", "\x7f", "\x80", "\x85", "\x9f"])
    def test_a_control_character_in_a_name_is_refused(self, field: str, control: str) -> None:
        refused(field, "control character", **{field: f"a{control}b"})

    @pytest.mark.parametrize("field", ["media_type", *own.NAME_FIELDS])
    def test_a_name_may_have_a_thousand_bytes_and_no_more(self, field: str) -> None:
        assert getattr(make(**{field: "é" * 500}), field) == "é" * 500
        refused(field, "is longer than 1000 bytes", **{field: "é" * 500 + "x"})
        refused(field, "is longer than 1000 bytes", **{field: "x" * 10_000_000})

    @pytest.mark.parametrize("field", LISTS)
    @pytest.mark.parametrize("item", ["", SURROGATE, "a\nb", 5, None, b"a", "x" * 1001])
    def test_every_item_of_a_list_has_the_rules_of_a_name(self, field: str, item: object) -> None:
        with pytest.raises(InvalidRecordError) as caught:
            make(**{field: ["good", item]})
        assert caught.value.field == field

    @pytest.mark.parametrize("field", LISTS)
    @pytest.mark.parametrize("value", ["work", b"work", 5, None, {"work": 1}])
    def test_a_list_given_as_something_else_is_refused_and_not_taken_apart(self, field: str, value: object) -> None:
        refused(field, "must be a list of texts", **{field: value})

    @pytest.mark.parametrize("field", LISTS)
    def test_lists_sets_and_generators_are_lists_of_texts(self, field: str) -> None:
        for given_ in (["b", "a"], ("b", "a"), (name for name in "ba")):
            assert sorted(getattr(make(**{field: given_}), field)) == ["a", "b"]
        assert getattr(make(**{field: {"a"}}), field) == ("a",)

    def test_a_name_kept_in_an_enum_is_its_value(self) -> None:
        class Role(str, enum.Enum):  # noqa: UP042 - the form whose str() is not its value
            USER = "user"

        record = make(role=Role.USER, content=Role.USER, tags=[Role.USER], metadata={Role.USER: [Role.USER]})
        assert (record.role, record.content, record.tags) == ("user", "user", ("user",))
        assert record.metadata == {"user": ["user"]}
        assert [type(text) for text in (record.role, record.content, *record.metadata, *record.tags)] == [str] * 4

    def test_characters_beyond_ascii_and_blanks_are_part_of_names(self) -> None:
        assert make(user=" Zoë 🎈 ").user == " Zoë 🎈 "


class TestId:
    def test_the_id_is_composed(self) -> None:
        assert make(id="cafe\u0301").id == "caf\u00e9"
        assert make(id="\u212b").id == "\u00c5"  # ANGSTROM SIGN has a canonical equivalent

    @pytest.mark.parametrize("field", ["parent", "supersedes", "derived_from"])
    def test_ids_of_other_records_are_composed_too(self, field: str) -> None:
        given_ = "cafe\u0301"
        record = make(**{field: given_ if field == "parent" else [given_]})
        assert getattr(record, field) in ("caf\u00e9", ("caf\u00e9",))

    def test_equivalent_ids_in_a_list_are_one(self) -> None:
        assert make(supersedes=["b", "e\u0301", "\u00e9", "a"]).supersedes == ("b", "\u00e9", "a")

    def test_an_id_has_up_to_255_bytes(self) -> None:
        assert len(make(id="é" * 127 + "x").id.encode()) == 255
        refused("id", "is longer than 255 bytes", id="é" * 128)
        refused("parent", "is longer than 255 bytes", parent="x" * 256)

    def test_an_id_that_grows_past_255_bytes_when_composed_is_refused(self) -> None:
        # U+0958 (3 bytes) is excluded from composition: its composed form is U+0915 U+093C (6 bytes).
        assert make(id="\u0958" * 42).id == "\u0915\u093c" * 42
        refused("id", "once composed", id="\u0958" * 43)


class TestKind:
    def test_the_kind_is_folded(self) -> None:
        assert make(kind="User_FACT").kind == "user_fact"
        assert make(kind="Straße").kind == "strasse"

    def test_without_a_kind_it_is_knowledge(self) -> None:
        assert make().kind == "knowledge"

    def test_the_six_kinds_are_those_of_the_specification(self) -> None:
        assert KINDS == ("conversation", "entity", "knowledge", "user_fact", "task", "custom")

    def test_a_kind_of_over_100_bytes_is_refused(self) -> None:
        assert make(kind="k" * 100).kind == "k" * 100
        refused("kind", "is longer than 100 bytes", kind="k" * 101)

    def test_no_kind_at_all_is_refused(self) -> None:
        refused("kind", "must be text", kind=None)


class TestContent:
    @pytest.mark.parametrize("content", ["", " ", "\n\t ", "\u00a0\u2003"])
    def test_blank_content_is_refused(self, content: str) -> None:
        refused("content", "is empty", content=content)

    def test_a_lone_surrogate_in_content_is_refused(self) -> None:
        refused("content", "lone surrogate", content=SURROGATE)

    @pytest.mark.parametrize("content", [None, 5, ["a"], {"text": "a"}])
    def test_content_that_is_neither_text_nor_bytes_is_refused(self, content: object) -> None:
        refused("content", "must be text, or bytes", content=content)

    @pytest.mark.parametrize(
        "content", ["nul\0byte", "bell\a, escape\x1b[31m", "  blanks kept  ", "cafe\u0301", "\ufeffbom"]
    )
    def test_content_is_kept_exactly_as_given(self, content: str) -> None:
        assert make(content=content).content == content
        assert Record.from_bytes(make(content=content).to_bytes()).content == content

    def test_bytes_need_a_media_type(self) -> None:
        refused("media_type", "is required if content is bytes", content=b"\x89PNG")
        record = make(content=b"\x89PNG", media_type="image/png")
        assert (record.content, record.text) == (b"\x89PNG", "")

    def test_buffers_become_bytes_that_later_writes_do_not_reach(self) -> None:
        buffer = bytearray(b"abc")
        record = make(content=buffer, media_type="x/y")
        buffer[0] = 0
        assert record.content == b"abc"
        assert make(content=memoryview(b"abc"), media_type="x/y").content == b"abc"

    def test_no_bytes_are_content_too_and_differ_from_no_content(self) -> None:
        record = make(content=b"", media_type="x/y")
        assert Record.from_bytes(record.to_bytes()).content == b""


class TestNumbers:
    @pytest.mark.parametrize("field", ["position", "order"])
    @pytest.mark.parametrize("value", [True, False, 1.0, "1", [1]])
    def test_a_whole_number_is_an_int_and_no_bool(self, field: str, value: object) -> None:
        refused(field, "must be an integer", **{field: value})

    @pytest.mark.parametrize("field", ["position", "order"])
    def test_numbers_of_more_than_64_bits_are_refused(self, field: str) -> None:
        assert getattr(make(**{field: 2**63 - 1}), field) == 2**63 - 1
        refused(field, "does not fit in 64 bits", **{field: 2**63})
        refused(field, "does not fit in 64 bits", **{field: 10**5000})

    def test_a_position_is_0_or_more_and_an_order_may_be_less(self) -> None:
        assert (make(position=0).position, make(order=-(2**63)).order) == (0, -(2**63))
        refused("position", "must be at least 0", position=-1)
        refused("order", "does not fit in 64 bits", order=-(2**63) - 1)

    @pytest.mark.parametrize("field", ["importance", "trust"])
    @pytest.mark.parametrize("value", [True, False, "0.5", [0.5], 1j])
    def test_a_fraction_is_a_number_and_no_bool(self, field: str, value: object) -> None:
        refused(field, "must be a number in [0, 1]", **{field: value})

    @pytest.mark.parametrize("field", ["importance", "trust"])
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -0.1, 1.0000001, -5e-324, 2, 10**400])
    def test_a_fraction_out_of_range_is_refused(self, field: str, value: float) -> None:
        refused(field, "must be a number in [0, 1]", **{field: value})

    @pytest.mark.parametrize("field", ["importance", "trust"])
    def test_the_ends_of_the_range_belong_to_it_and_minus_zero_is_zero(self, field: str) -> None:
        assert [repr(getattr(make(**{field: value}), field)) for value in (0, 1, -0.0)] == ["0.0", "1.0", "0.0"]

    @pytest.mark.parametrize("value", [0, 1, "yes", None])
    def test_pinned_is_a_bool(self, value: object) -> None:
        refused("pinned", "must be True or False", pinned=value)


class Zone(tzinfo):
    """A time zone whose offset is a function of the time."""

    def __init__(self, offset: Callable[[datetime | None], timedelta | None]) -> None:
        self.offset = offset

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        return self.offset(when)

    def dst(self, when: datetime | None) -> timedelta | None:
        return None

    def tzname(self, when: datetime | None) -> str:
        return "of the test"


class TestTimes:
    @pytest.mark.parametrize("field", own.TIME_FIELDS)
    def test_a_naive_datetime_is_refused_by_name(self, field: str) -> None:
        refused(field, "is naive", **{field: datetime(2026, 3, 1)})
        refused(field, "is naive", **{field: datetime(2026, 3, 1, tzinfo=Zone(lambda when: None))})

    @pytest.mark.parametrize("field", own.TIME_FIELDS)
    @pytest.mark.parametrize("value", [1_700_000_000, b"2026-03-01", (2026, 3, 1), timedelta(1), True])
    def test_what_is_no_datetime_is_refused(self, field: str, value: object) -> None:
        refused(field, "must be a datetime", **{field: value})

    @pytest.mark.parametrize("field", own.TIME_FIELDS)
    def test_an_offset_of_parts_of_a_second_is_refused(self, field: str) -> None:
        half = Zone(lambda when: timedelta(hours=1, microseconds=500_000))
        refused(field, "not whole seconds", **{field: datetime(2026, 3, 1, tzinfo=half)})

    @pytest.mark.parametrize("field", own.TIME_FIELDS)
    @pytest.mark.parametrize("year", [1, 9999])
    def test_the_years_1_and_9999_are_refused(self, field: str, year: int) -> None:
        refused(field, "years 2 to 9998", **{field: datetime(year, 6, 1, tzinfo=UTC)})

    @pytest.mark.parametrize("hours", [-23, -5, 0, 5, 23])
    @pytest.mark.parametrize(
        "local", [datetime(2, 1, 1), datetime(2, 1, 1, 23), datetime(9998, 12, 31), datetime(9998, 12, 31, 23, 59, 59)]
    )
    def test_a_time_at_the_end_of_the_range_is_refused_or_can_be_read_back(self, local: datetime, hours: int) -> None:
        time = local.replace(tzinfo=timezone(timedelta(hours=hours)))
        try:
            record = make(time=time)
        except InvalidRecordError as error:
            assert "years 2 to 9998" in str(error)
            assert time.astimezone(UTC).year in (1, 9999)
        else:
            assert Record.from_bytes(record.to_bytes()).time == time

    def test_a_named_zone_becomes_the_offset_that_it_has_at_that_time(self) -> None:
        summer = Zone(lambda when: timedelta(hours=1 if when and when.month < 6 else 2))
        for month, hours in ((1, 1), (7, 2)):
            time = make(time=datetime(2026, month, 1, tzinfo=summer)).time
            assert time is not None
            assert isinstance(time.tzinfo, timezone)
            assert time.utcoffset() == timedelta(hours=hours)
            assert (time.year, time.month, time.hour) == (2026, month, 0)

    def test_what_was_true_cannot_end_before_it_began(self) -> None:
        refused("valid_to", "is before valid_from", valid_from=NOON, valid_to=NOON - timedelta(microseconds=1))
        make(valid_from=NOON, valid_to=NOON)
        # The instant decides, not the clock on the wall.
        east = NOON.astimezone(timezone(timedelta(hours=9)))
        make(valid_from=east, valid_to=NOON)
        make(valid_to=NOON - timedelta(days=1))


class TestMetadata:
    @pytest.mark.parametrize("value", [None, [], "a", 5, [("a", 1)]])
    def test_metadata_that_is_not_an_object_is_refused(self, value: object) -> None:
        refused("metadata", "must be an object", metadata=value)

    @pytest.mark.parametrize(
        ("value", "path"),
        [
            ({"a": object()}, "metadata['a']"),
            ({"a": {"b": [1, {2}]}}, "metadata['a']['b'][1]"),
            ({"a": b"bytes"}, "metadata['a']"),
            ({"a": NOON}, "metadata['a']"),
            ({"a": 1j}, "metadata['a']"),
        ],
    )
    def test_what_is_not_json_is_refused_with_its_path(self, value: dict[str, object], path: str) -> None:
        refused(path, "is not JSON", metadata=value)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_numbers_that_json_lacks_are_refused(self, value: float) -> None:
        refused("metadata['a'][0]", "is not a finite number", metadata={"a": [value]})

    def test_integers_of_more_than_64_bits_are_refused(self) -> None:
        assert make(metadata={"a": -(2**63), "b": 2**63 - 1}).metadata["a"] == -(2**63)
        refused("metadata['a']", "does not fit in 64 bits", metadata={"a": 2**63})

    @pytest.mark.parametrize("key", [1, None, True, 1.5, ("a",), b"a"])
    def test_keys_that_are_not_text_are_refused(self, key: object) -> None:
        refused("metadata key", "must be text", metadata={key: 1})
        refused("metadata['a'] key", "must be text", metadata={"a": {key: 1}})

    def test_lone_surrogates_are_refused_in_keys_and_values(self) -> None:
        refused("metadata key", "lone surrogate", metadata={SURROGATE: 1})
        refused("metadata['a']", "lone surrogate", metadata={"a": SURROGATE})

    @pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}], ids=["lists", "objects"])
    def test_it_may_be_64_levels_deep_and_no_deeper(self, wrap: Callable[[Any], Any]) -> None:
        record = make(metadata={"top": nested(63, wrap)})  # the object itself is the first of the 64
        assert Record.from_bytes(record.to_bytes()) == record
        with pytest.raises(InvalidRecordError, match="nested deeper than 64 levels"):
            make(metadata={"top": nested(64, wrap)})
        with pytest.raises(InvalidRecordError, match="nested deeper than 64 levels"):
            make(metadata={"top": nested(100_000, wrap)})

    def test_metadata_that_contains_itself_is_refused(self) -> None:
        loop: list[Any] = []
        loop += [loop, loop]
        with pytest.raises(InvalidRecordError, match="nested deeper"):
            make(metadata={"a": loop})

    def test_every_character_that_unicode_has_is_part_of_keys_and_values(self) -> None:
        metadata = {"": "", "nul\0": "\n\0", 'a.b["c"]': "🎈", "e\u0301": "\u00e9"}
        assert make(metadata=metadata).metadata == metadata

    def test_tuples_are_lists_and_minus_zero_is_zero(self) -> None:
        assert json.dumps(make(metadata={"a": (1, -0.0)}).metadata) == '{"a": [1, 0.0]}'


class TestUnknownFields:
    @pytest.mark.parametrize(
        "unknown",
        [
            None,
            "abc",
            5,
            [(31, 1)],
            [(31, 1, "text")],
            [(0, 1, b"")],
            [(1, 1, b"x")],
            [(2**63, 1, b"")],
            [(31, 256, b"")],
            [(31, -1, b"")],
            [(31, True, b"")],
            [(31, 1, b"a"), (31, 1, b"b")],
        ],
    )
    def test_what_no_later_release_could_have_written_is_refused(self, unknown: Any) -> None:
        with pytest.raises(InvalidRecordError) as caught:
            make(unknown=unknown)
        assert caught.value.field == "unknown"

    def test_they_are_kept_in_the_order_of_their_numbers(self) -> None:
        record = make(unknown=[(70, 1, b"z"), (31, 9, b"")])
        assert record.unknown == (RawField(31, 9, b""), RawField(70, 1, b"z"))
        assert Record.from_bytes(record.to_bytes()).unknown == record.unknown


def test_a_changed_record_of_a_subclass_is_one_of_the_subclass() -> None:
    class Note(Record):
        pass

    changed = Note(id="a", content="tea", tags=("x",)).changed(content="coffee")
    assert (type(changed), changed.content, changed.tags) == (Note, "coffee", ("x",))


class TestFrozen:
    RECORD = make(tags=["a"], metadata={"list": [1, [2]], "object": {"k": "v"}})

    @pytest.mark.parametrize("field", [item.name for item in dataclasses.fields(Record)])
    def test_no_attribute_can_be_set_or_deleted(self, field: str) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(self.RECORD, field, "x")
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(self.RECORD, field)

    @pytest.mark.parametrize(
        "change",
        [
            lambda d: d.__setitem__("a", 1),
            lambda d: d.__delitem__("list"),
            lambda d: d.clear(),
            lambda d: d.pop("list"),
            lambda d: d.popitem(),
            lambda d: d.setdefault("new", 1),
            lambda d: d.update(new=1),
            lambda d: d.__ior__({"new": 1}),
        ],
    )
    def test_no_object_in_metadata_can_be_changed(self, change: Callable[[Any], Any]) -> None:
        before = self.RECORD.to_bytes()
        for target in (self.RECORD.metadata, self.RECORD.metadata["object"]):
            with pytest.raises(TypeError, match="cannot be changed"):
                change(target)
        assert make(tags=["a"], metadata=self.RECORD.metadata).to_bytes() == before

    @pytest.mark.parametrize(
        "change",
        [
            lambda items: items.append(1),
            lambda items: items.extend([1]),
            lambda items: items.insert(0, 1),
            lambda items: items.pop(),
            lambda items: items.remove(items[0]),
            lambda items: items.clear(),
            lambda items: items.reverse(),
            lambda items: items.sort(),
            lambda items: items.__setitem__(0, 9),
            lambda items: items.__delitem__(0),
            lambda items: items.__iadd__([1]),
            lambda items: items.__imul__(2),
        ],
    )
    def test_no_list_in_metadata_can_be_changed(self, change: Callable[[Any], Any]) -> None:
        before = self.RECORD.to_bytes()
        for target in (self.RECORD.metadata["list"], self.RECORD.metadata["list"][1]):
            with pytest.raises(TypeError, match="cannot be changed"):
                change(target)
        assert make(tags=["a"], metadata=self.RECORD.metadata).to_bytes() == before

    def test_what_the_caller_keeps_of_its_arguments_does_not_reach_the_record(self) -> None:
        inner = [1]
        metadata: dict[str, Any] = {"a": inner}
        tags = ["b", "a"]
        record = make(metadata=metadata, tags=tags)
        inner.append(2)
        metadata["b"] = 1
        tags.append("c")
        assert (record.metadata, record.tags) == ({"a": [1]}, ("a", "b"))

    def test_metadata_is_json_for_everybody(self) -> None:
        assert json.loads(json.dumps(self.RECORD.metadata)) == {"list": [1, [2]], "object": {"k": "v"}}
        assert isinstance(self.RECORD.metadata, dict)
        assert self.RECORD.metadata == {"list": [1, [2]], "object": {"k": "v"}}

    @given(own.records)
    def test_copies_and_pickles_are_equal_records(self, record: Record) -> None:
        # To the bit, and frozen like the original.
        for again in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
            assert again == record
            assert again.to_bytes() == record.to_bytes()
            assert again.hash == record.hash
            with pytest.raises(TypeError, match="cannot be changed"):
                again.metadata["new"] = 1  # type: ignore[index]

    def test_a_copy_made_before_the_bytes_were_asked_for_gives_the_same_bytes(self) -> None:
        fresh = make(metadata={"a": [1]})
        again = pickle.loads(pickle.dumps(fresh))
        assert again.to_bytes() == make(metadata={"a": [1]}).to_bytes()


class TestEquality:
    def test_one_and_one_point_zero_in_metadata_make_different_records(self) -> None:
        values = [1, 1.0, True, "1"]
        made = [make(metadata={"a": value}) for value in values]
        assert len(set(made)) == len({record.hash for record in made}) == len(values)

    def test_one_instant_at_two_offsets_makes_different_records(self) -> None:
        east = NOON.astimezone(timezone(timedelta(hours=2)))
        assert east == NOON
        assert make(time=east) != make(time=NOON)

    def test_the_order_of_keys_and_of_tags_does_not_matter(self) -> None:
        one = make(metadata={"a": 1, "b": {"c": 1, "d": 2}}, tags=["x", "y", "x"])
        other = make(metadata={"b": {"d": 2, "c": 1}, "a": 1}, tags=["y", "x"])
        assert one == other
        assert (hash(one), one.hash) == (hash(other), other.hash)

    def test_tags_are_sorted_by_their_utf_8_bytes(self) -> None:
        # UTF-16 would put U+1F388 (a surrogate pair) before U+FF21.
        assert make(tags=["🎈", "Ａ", "a", "B", "é"]).tags == ("B", "a", "é", "Ａ", "🎈")

    def test_the_order_of_ids_in_lists_matters(self) -> None:
        assert make(supersedes=["a", "b"]) != make(supersedes=["b", "a"])

    def test_the_order_of_lists_in_metadata_matters(self) -> None:
        assert make(metadata={"a": [1, 2]}) != make(metadata={"a": [2, 1]})

    def test_composed_and_decomposed_content_differ(self) -> None:
        assert make(content="\u00e9") != make(content="e\u0301")

    def test_a_record_equals_no_other_thing(self) -> None:
        assert make() != make().to_bytes()
        assert make() != "r1"

    @given(own.record_fields())
    def test_equal_fields_make_equal_records(self, fields: dict[str, Any]) -> None:
        one, other = Record(**fields), Record(**copy.deepcopy(fields))
        assert one == other
        assert (hash(one), one.hash, one.to_bytes()) == (hash(other), other.hash, other.to_bytes())

    def test_the_hash_is_sha_256_behind_its_domain(self) -> None:
        record = make(metadata={"a": 1.5})
        assert record.hash == hashlib.sha256(b"recollect.record.1\x00" + record.to_bytes()).hexdigest()


class TestChanged:
    def test_a_change_makes_another_record_and_leaves_the_first(self) -> None:
        record = make(importance=0.5, unknown=[(31, 1, b"x")])
        record.to_bytes()
        changed = record.changed(importance=0.75, tags=["new"])
        assert (record.importance, record.tags) == (0.5, ())
        assert (changed.importance, changed.tags, changed.unknown) == (0.75, ("new",), record.unknown)
        assert changed == make(importance=0.75, tags=["new"], unknown=[(31, 1, b"x")])

    def test_a_change_is_checked_like_any_record(self) -> None:
        with pytest.raises(InvalidRecordError, match="must be a number in"):
            make().changed(importance=2)

    def test_an_unknown_field_is_refused_with_its_likeliest_name(self) -> None:
        with pytest.raises(UnknownArgumentError, match=r"no argument 'importence' \(did you mean 'importance'\?\)"):
            make().changed(importence=1)
        with pytest.raises(UnknownArgumentError):
            make().changed(_bytes=b"forged")


class TestJson:
    @given(own.records)
    def test_json_carries_a_record_without_loss(self, record: Record) -> None:
        wire = json.dumps(record.to_json(), allow_nan=False)
        again = Record.from_json(json.loads(wire))
        assert again.to_bytes() == record.to_bytes()

    @given(own.records | st.builds(make))
    def test_the_short_way_to_read_usual_json_gives_the_same_record(self, record: Record) -> None:
        data = json.loads(json.dumps(record.to_json()))
        short = _of_usual(data)
        assert short is None or (short == checked(**fields_from_json(data)) == record)
        usual = isinstance(record.content, str) and record.valid_to is None and not record.unknown
        assert (short is not None) == usual
        data.pop("kind")
        assert (short is None) == (_of_usual(data) is None)
        assert Record.from_json(data) == checked(**fields_from_json(data))

    def test_it_reads_as_a_person_would_write_it(self) -> None:
        record = make(
            kind="Task",
            tags=["b", "a"],
            time=datetime(2026, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=1))),
            metadata={"n": 1},
            pinned=True,
        )
        assert record.to_json() == {
            "id": "r1",
            "content": "something said",
            "kind": "task",
            "tags": ["a", "b"],
            "metadata": {"n": 1},
            "time": "2026-03-01T09:30:00+01:00",
            "pinned": True,
        }

    def test_bytes_travel_as_base64(self) -> None:
        record = make(content=b"\x00\xff", media_type="a/b")
        assert record.to_json()["data"] == "AP8="
        assert Record.from_json({"id": "r1", "data": "AP8=", "media_type": "a/b"}) == record

    @pytest.mark.parametrize(
        ("data", "field"),
        [
            ({"content": "x"}, "id"),
            ({"id": "a"}, "content"),
            ({}, "id"),
            ([], "record"),
            ("text", "record"),
            (None, "record"),
            ({"id": "a", "content": "x", "data": "YQ==", "media_type": "a/b"}, "data"),
            ({"id": "a", "data": "not base64!", "media_type": "a/b"}, "data"),
            ({"id": "a", "data": 5, "media_type": "a/b"}, "data"),
            ({"id": "a", "data": "é", "media_type": "a/b"}, "data"),
            ({"id": "a", "content": "x", "time": "yesterday"}, "time"),
            ({"id": "a", "content": "x", "time": "2026-03-01T09:61:00"}, "time"),
            ({"id": "a", "content": "x", "time": 5}, "time"),
            ({"id": "a", "content": "x", "time": "2026-03-01T09:30:00+01:00:00.500000"}, "time"),
            ({"id": "a", "content": "x", "unknown": {}}, "unknown"),
            ({"id": "a", "content": "x", "unknown": [[31, 1]]}, "unknown"),
            ({"id": "a", "content": "x", "unknown": [[31, 1, "!"]]}, "unknown"),
            ({"id": "a", "content": "x", "unknown": [[1, 1, "YQ=="]]}, "unknown"),
        ],
    )
    def test_json_that_is_no_record_is_refused_by_the_field(self, data: Any, field: str) -> None:
        with pytest.raises(InvalidRecordError) as caught:
            Record.from_json(data)
        assert caught.value.field == field

    def test_a_name_that_is_no_field_is_refused(self) -> None:
        with pytest.raises(UnknownArgumentError, match="speaker"):
            Record.from_json({"id": "a", "content": "x", "speakr": "Ana"})

    @given(
        st.dictionaries(st.sampled_from(["id", "content", "data", *own.TIME_FIELDS]) | own.any_texts, own.hostile_json)
    )
    def test_any_json_is_a_record_or_an_error_of_ours(self, data: dict[str, Any]) -> None:
        try:
            record = Record.from_json(data)
        except RecollectError as error:
            str(error).encode("utf-8")
        else:
            assert Record.from_bytes(record.to_bytes()) == record

    def test_times_are_read_with_any_iso_8601_offset(self) -> None:
        assert instant("time", "2026-03-01T09:30:00Z") == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
        assert instant("time", "2026-03-01T09:30:00.000001-05:30").utcoffset() == -timedelta(hours=5, minutes=30)

    @pytest.mark.parametrize("value", ["2026-03-01", "2026-03-01T00:00", "2026-03-01T00:00:00Z", date(2026, 3, 1)])
    @pytest.mark.parametrize("field", own.TIME_FIELDS)
    def test_a_text_without_offset_and_a_date_are_in_utc(self, field: str, value: Any) -> None:
        record = make(**{field: value})
        assert record.to_bytes() == make(**{field: datetime(2026, 3, 1, tzinfo=UTC)}).to_bytes()

    @pytest.mark.parametrize("value", ["", "yesterday", "03/01/2026", "1 March 2026", "2026-13-01", "2026-03-01\ud800"])
    def test_a_text_that_is_no_time_is_refused_with_an_example(self, value: str) -> None:
        refused("time", "is not an ISO 8601 time, such as 2026-03-01", time=value)


class TestEntityId:
    @pytest.mark.parametrize(
        ("name", "entity"),
        [
            ("  extra   spaces  ", "_extra_spaces_"),  # the specification's own example
            ("Ada Lovelace", "ada_lovelace"),
            ("ACME\t\nCorp.", "acme_corp."),
            ("already_an_id", "already_an_id"),
            ("ÉCOLE", "école"),
            ("", ""),
        ],
    )
    def test_the_id_of_a_name_is_lower_case_with_each_run_of_blanks_one_underscore(
        self, name: str, entity: str
    ) -> None:
        assert EntityId.from_name(name) == entity
        assert isinstance(EntityId.from_name(name), EntityId)

    def test_an_entity_id_in_a_record_is_plain_text(self) -> None:
        assert type(make(entity=EntityId("ada")).entity) is str


def test_the_text_of_a_record_says_what_is_in_it_in_bounded_space() -> None:
    record = make(content="x" * 10_000, metadata={"k": ["v"] * 10_000})
    assert repr(record).startswith("Record(id='r1', content='xxx")
    assert len(repr(record)) < 500


def test_a_kind_of_record_of_ones_own_is_loaded_as_that() -> None:
    class Own(Record):
        """With nothing of its own but its name."""

    record = Record(id="a", content="tea")
    assert type(Own.load(record.to_bytes())) is Own
    assert type(Record.load(record.to_bytes())) is Record
