"""The canonical bytes, against an encoder of their own that knows only the description of the format.

tests/golden/records.json holds records as JSON with their bytes and hashes, made by that encoder: it is never made
again, since what it pins is what stores hold.
"""

from __future__ import annotations

import base64
import calendar
import dataclasses
import hashlib
import json
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import paths
from tests.indexes import strategies as own

from recollect.errors import CodecError
from recollect.records import codec
from recollect.records.codec import RawField
from recollect.records.record import Record

GOLDEN = json.loads((paths.GOLDEN / "records.json").read_text("utf-8"))

TEXT, BYTES, INT, FLOAT, BOOL, TIME, TEXTS, JSON, OFF = 1, 2, 3, 4, 5, 6, 7, 8, 9
#: Written by hand: numbers are given once and for ever, so this table only ever grows.
NUMBERS = {
    "id": (1, TEXT),
    "kind": (2, TEXT),
    "text": (3, TEXT),
    "data": (4, BYTES),
    "media_type": (5, TEXT),
    "role": (6, TEXT),
    "speaker": (7, TEXT),
    "user": (8, TEXT),
    "agent": (9, TEXT),
    "conversation": (10, TEXT),
    "session": (11, TEXT),
    "position": (12, INT),
    "entity": (13, TEXT),
    "source": (14, TEXT),
    "tags": (15, TEXTS),
    "metadata": (16, JSON),
    "time": (17, TIME),
    "valid_from": (18, TIME),
    "valid_to": (19, TIME),
    "importance": (20, FLOAT),
    "expires": (21, TIME),
    "supersedes": (22, TEXTS),
    "derived_from": (23, TEXTS),
    "parent": (24, TEXT),
    "order": (25, INT),
    "language": (26, TEXT),
    "pinned": (27, BOOL),
    "trust": (28, FLOAT),
    "origin": (29, TEXT),
    "searchable": (30, OFF),
}


# The format once more, in as few lines as it takes.


def leb128(number: int) -> bytes:
    groups = [number & 127]
    while number := number >> 7:
        groups.append(number & 127)
    return bytes([group | 128 for group in groups[:-1]] + groups[-1:])


def prefixed(data: bytes) -> bytes:
    return leb128(len(data)) + data


def field(number: int, kind: int, value: bytes) -> bytes:
    return leb128(number) + bytes([kind]) + prefixed(value)


def json_bytes(value: Any) -> bytes:
    if isinstance(value, bool) or value is None:
        return {None: b"n", True: b"t", False: b"f"}[value]
    if isinstance(value, int):
        return b"i" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"d" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"s" + prefixed(value.encode())
    if isinstance(value, list):
        return b"a" + leb128(len(value)) + b"".join(json_bytes(item) for item in value)
    keys = sorted(value, key=lambda key: key.encode())
    return b"o" + leb128(len(value)) + b"".join(prefixed(key.encode()) + json_bytes(value[key]) for key in keys)


def time_bytes(iso: str) -> bytes:
    time = datetime.fromisoformat(iso)
    micros = calendar.timegm(time.astimezone(UTC).timetuple()) * 1_000_000 + time.microsecond
    offset = time.utcoffset()
    assert offset is not None
    return struct.pack(">qi", micros, offset.days * 86_400 + offset.seconds)


def independent_bytes(form: Mapping[str, Any]) -> bytes:
    """The canonical bytes of a record in its JSON form, whose values are already canonical (NFC, sorted, folded)."""
    writers: dict[int, Callable[[Any], bytes]] = {
        TEXT: str.encode,
        BYTES: base64.b64decode,
        INT: lambda value: struct.pack(">q", value),
        FLOAT: lambda value: struct.pack(">d", value),
        BOOL: lambda value: b"\x01",
        OFF: lambda value: b"\x00",
        TIME: time_bytes,
        TEXTS: lambda value: b"".join(prefixed(item.encode()) for item in value),
        JSON: json_bytes,
    }
    fields = []
    for name, value in form.items():
        if name == "unknown":
            fields += [(number, kind, base64.b64decode(raw)) for number, kind, raw in value]
        else:
            number, kind = NUMBERS["text" if name == "content" else name]
            fields.append((number, kind, writers[kind](value)))
    return b"".join(field(*each) for each in sorted(fields))


def minimal(*more: bytes) -> bytes:
    """A record of id "a", kind "k" and text "t", with more fields behind."""
    return field(1, TEXT, b"a") + field(2, TEXT, b"k") + field(3, TEXT, b"t") + b"".join(more)


class TestGolden:
    def test_there_are_enough_of_them(self) -> None:
        assert len(GOLDEN) >= 8
        named = {name for item in GOLDEN for name in item["record"]}
        assert named >= (NUMBERS.keys() - {"text"}) | {"content", "unknown"}

    @pytest.mark.parametrize("item", GOLDEN, ids=[item["name"] for item in GOLDEN])
    def test_file_description_and_package_agree_to_the_bit(self, item: dict[str, Any]) -> None:
        stored = bytes.fromhex(item["bytes"])
        assert independent_bytes(item["record"]) == stored
        record = Record.from_json(item["record"])
        assert record.to_bytes() == stored
        assert record.to_json() == item["record"]
        assert Record.from_bytes(stored) == record
        assert Record.load(stored) == record
        assert hashlib.sha256(b"recollect.record.1\x00" + stored).hexdigest() == item["hash"] == record.hash

    def test_one_of_them_by_hand(self) -> None:
        # id "a" · kind "task" · text "ok" · position 300 · pinned
        by_hand = "01 01 01 61  02 01 04 7461736b  03 01 02 6f6b  0c 03 08 000000000000012c  1b 05 01 01"
        record = Record(id="a", kind="task", content="ok", position=300, pinned=True)
        assert record.to_bytes() == bytes.fromhex(by_hand)


class TestNumbers:
    def test_the_table_of_fields_is_the_one_pinned_here(self) -> None:
        assert codec.FIELDS == NUMBERS

    def test_no_number_is_given_twice(self) -> None:
        assert len({number for number, _ in codec.FIELDS.values()}) == len(codec.FIELDS)

    @given(st.integers(0, 2**63 - 1))
    def test_varints_are_leb128_in_its_shortest_form(self, number: int) -> None:
        assert codec.varint(number) == leb128(number)
        assert codec.read_varint(b"\xff" + leb128(number) + b"\x80", 1) == (number, 1 + len(leb128(number)))

    @pytest.mark.parametrize(
        ("number", "encoded"),
        [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (624485, "e58e26"), (2**63 - 1, "ffffffffffffffff7f")],
    )
    def test_varints_as_the_dwarf_standard_and_others_print_them(self, number: int, encoded: str) -> None:
        assert codec.varint(number).hex() == encoded

    @given(st.lists(st.binary(max_size=3), max_size=4), st.lists(st.binary(max_size=3), max_size=4))
    def test_different_lists_never_meet_behind_their_lengths(self, one: list[bytes], other: list[bytes]) -> None:
        assert (codec.length_prefixed(*one) == codec.length_prefixed(*other)) == (one == other)


class TestRoundTrip:
    @given(own.records)
    def test_a_record_comes_back_from_its_bytes(self, record: Record) -> None:
        again = Record.from_bytes(record.to_bytes())
        assert again == record
        assert again.to_json() == record.to_json()
        for name in own.TIME_FIELDS:
            one, other = getattr(record, name), getattr(again, name)
            assert one == other
            assert one is None or one.utcoffset() == other.utcoffset()

    @given(own.records)
    def test_loading_gives_what_reading_gives(self, record: Record) -> None:
        loaded, read = Record.load(record.to_bytes()), Record.from_bytes(record.to_bytes())
        for item in dataclasses.fields(Record):
            assert getattr(loaded, item.name) == getattr(read, item.name)
            assert type(getattr(loaded, item.name)) is type(getattr(read, item.name))
        assert loaded == record
        assert loaded.changed(language="en") == record.changed(language="en")

    @given(own.records)
    def test_the_bytes_are_those_of_the_description(self, record: Record) -> None:
        assert record.to_bytes() == independent_bytes(record.to_json())

    @given(own.records, own.records)
    def test_two_different_records_never_share_their_bytes(self, one: Record, other: Record) -> None:
        said = [json.dumps(record.to_json(), sort_keys=True) for record in (one, other)]
        assert (one.to_bytes() == other.to_bytes()) == (said[0] == said[1])

    @given(st.data())
    def test_moving_text_between_fields_always_shows(self, data: st.DataObject) -> None:
        names = st.sampled_from(["a", "ab", "b", "\u0101"])
        said = st.sampled_from(["a", "b", "a\x02\x01\x01b", "a\x08\x01\x01b"])  # the last two forge a field behind it
        fields: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
            {"id": names, "content": said, "kind": names, "tags": st.lists(names, max_size=2, unique=True).map(sorted)},
            optional={"user": names, "agent": names},
        )
        one, other = data.draw(fields), data.draw(fields)
        assert (Record(**one).to_bytes() == Record(**other).to_bytes()) == (one == other)

    def test_missing_and_empty_text_of_bytes_and_text_differ(self) -> None:
        as_text = Record(id="a", content="x", media_type="m")
        as_bytes = Record(id="a", content=b"x", media_type="m")
        assert as_text.to_bytes() != as_bytes.to_bytes()

    def test_every_kind_of_json_value_has_bytes_of_its_own(self) -> None:
        values: list[Any] = [None, True, False, 0, 0.0, 1, 1.0, "", "0", [], {}, [[]], [{}], {"": None}, [None], "n"]
        assert len({codec.encode_json(value) for value in values}) == len(values)

    @given(own.json_values)
    def test_json_values_are_written_as_the_description_says(self, value: Any) -> None:
        assert codec.encode_json(value) == json_bytes(
            json.loads(json.dumps(value), parse_float=lambda s: float(s) + 0.0)
        )


class TestUnknownFields:
    @given(own.records)
    def test_fields_of_a_later_release_are_kept_byte_for_byte(self, record: Record) -> None:
        later = field(31, 200, b"\x00\xff") + field(300, 1, b"not UTF-8: \xff") + field(2**62, 0, b"")
        known = record.changed(unknown=())
        stored = Record.from_bytes(known.to_bytes() + later)
        assert stored.to_bytes() == known.to_bytes() + later
        assert stored.unknown == (
            RawField(31, 200, b"\x00\xff"),
            RawField(300, 1, b"not UTF-8: \xff"),
            RawField(2**62, 0, b""),
        )
        assert stored.changed(language="en").to_bytes().endswith(later)
        assert Record.from_json(json.loads(json.dumps(stored.to_json()))).to_bytes() == stored.to_bytes()

    def test_they_stand_in_the_order_of_their_numbers_whatever_is_added(self) -> None:
        unknown = (RawField(900, 1, b"z"), RawField(33, 2, b""), RawField(128, 3, b"y"))
        record = Record(id="a", content="t", kind="k", trust=1.0, unknown=unknown)
        tail = field(28, FLOAT, struct.pack(">d", 1.0)) + field(33, 2, b"") + field(128, 3, b"y") + field(900, 1, b"z")
        assert record.to_bytes() == minimal() + tail

    def test_a_field_that_is_absent_leaves_no_trace(self) -> None:
        assert Record(id="a", content="t", kind="k", tags=(), metadata={}, pinned=False).to_bytes() == minimal()


def nested_json(depth: int) -> bytes:
    return b"o\x01\x01a" + b"a\x01" * (depth - 1) + b"n"


NAN = struct.pack(">d", float("nan"))
ONE_F = struct.pack(">d", 1.0)
EPOCH_UTC = struct.pack(">qi", 0, 0)


class TestRefusals:
    def test_the_record_that_the_others_vary_is_read(self) -> None:
        assert Record.from_bytes(minimal()) == Record(id="a", kind="k", content="t")

    @pytest.mark.parametrize(
        ("data", "rule"),
        [
            # the frame
            (minimal(b"\x00"), "do not rise"),
            (minimal(b"\x1b"), "cut off"),
            (minimal(b"\x1b\x05"), "cut off"),
            (minimal(b"\x1b\x05\x01"), "cut off"),
            (minimal(b"\x9b"), "cut off"),
            (minimal(b"\x1b\x05\x81"), "cut off"),
            (minimal()[:-1], "cut off"),
            (minimal(field(27, BOOL, b"\x01"), b"trailing"), ""),
            (field(2, TEXT, b"k") + field(1, TEXT, b"a") + field(3, TEXT, b"t"), "do not rise"),
            (minimal(field(3, TEXT, b"t")), "do not rise"),
            (minimal(field(40, 1, b"x"), field(40, 1, b"x")), "do not rise"),
            (minimal(field(40, 1, b"x"), field(39, 1, b"x")), "do not rise"),
            (field(0, TEXT, b"") + minimal(), "do not rise"),
            (b"\x81\x00" + minimal()[1:], "shortest form"),
            (minimal(b"\x1b\x05\x81\x00\x01"), "shortest form"),
            (minimal(b"\xff" * 9 + b"\x01"), "too large"),
            (minimal(b"\x1b\x05" + b"\xff" * 9 + b"\x01"), "too large"),
            (minimal(b"\x1b\x05" + b"\xff" * 8 + b"\x7f"), "cut off"),
            # types
            (minimal(field(27, INT, b"\x01")), "has type 3 instead of 5"),
            (field(1, BYTES, b"a") + field(2, TEXT, b"k") + field(3, TEXT, b"t"), "has type 2 instead of 1"),
            # text
            (field(1, TEXT, b"\xff") + field(2, TEXT, b"k") + field(3, TEXT, b"t"), "utf-8"),
            (field(1, TEXT, b"a") + field(2, TEXT, b"k") + field(3, TEXT, b"\xc0\xaf"), "utf-8"),  # overlong
            (field(1, TEXT, b"a") + field(2, TEXT, b"k") + field(3, TEXT, b"\xed\xa0\x80"), "utf-8"),  # a surrogate
            (field(1, TEXT, b"a") + field(2, TEXT, b"k") + field(3, TEXT, b"\xf4\x90\x80\x80"), "utf-8"),  # U+110000
            # what a record does not take
            (b"", "id"),
            (field(2, TEXT, b"k") + field(3, TEXT, b"t"), "id"),
            (field(1, TEXT, b"a") + field(3, TEXT, b"t"), "canonical"),  # the kind is never left out
            (field(1, TEXT, b"a") + field(2, TEXT, b"k"), "content"),
            (minimal(field(4, BYTES, b"x"), field(5, TEXT, b"m")), "occurs twice"),
            (field(1, TEXT, b"a") + field(2, TEXT, b"k") + field(4, BYTES, b"x"), "media_type"),
            (field(1, TEXT, b"") + field(2, TEXT, b"k") + field(3, TEXT, b"t"), "is empty"),
            (field(1, TEXT, b"a") + field(2, TEXT, b"K") + field(3, TEXT, b"t"), "canonical"),
            (field(1, TEXT, "e\u0301".encode()) + field(2, TEXT, b"k") + field(3, TEXT, b"t"), "canonical"),
            (minimal(field(24, TEXT, "e\u0301".encode())), "canonical"),
            (minimal(field(12, INT, struct.pack(">q", -1))), "at least 0"),
            # numbers
            (minimal(field(12, INT, b"\x00" * 7)), "position"),
            (minimal(field(12, INT, b"\x00" * 9)), "position"),
            (minimal(field(20, FLOAT, NAN)), "not finite"),
            (minimal(field(20, FLOAT, struct.pack(">d", float("inf")))), "not finite"),
            (minimal(field(20, FLOAT, struct.pack(">d", -0.0))), "minus zero"),
            (minimal(field(20, FLOAT, struct.pack(">d", 1.5))), "must be a number in [0, 1]"),
            (minimal(field(20, FLOAT, ONE_F[:7])), "importance"),
            (minimal(field(27, BOOL, b"\x00")), "not 1"),
            (minimal(field(27, BOOL, b"\x02")), "not 1"),
            (minimal(field(27, BOOL, b"")), "not 1"),
            (minimal(field(30, OFF, b"\x01")), "not 0"),
            (minimal(field(30, BOOL, b"\x00")), "type"),
            (minimal(field(27, BOOL, b"\x01\x01")), "not 1"),
            # times
            (minimal(field(17, TIME, EPOCH_UTC[:11])), "time"),
            (minimal(field(17, TIME, EPOCH_UTC + b"\x00")), "time"),
            (minimal(field(17, TIME, struct.pack(">qi", 2**63 - 1, 0))), "out of range"),
            (minimal(field(17, TIME, struct.pack(">qi", -(2**63), 0))), "out of range"),
            (minimal(field(17, TIME, struct.pack(">qi", 0, 86_400))), "out of range"),
            (minimal(field(17, TIME, struct.pack(">qi", 0, -86_400))), "out of range"),
            (minimal(field(17, TIME, time_bytes("0002-01-01T00:00:00+00:00")[:8] + struct.pack(">i", -1))), "years"),
            (
                minimal(
                    field(18, TIME, struct.pack(">qi", 1, 0)),
                    field(19, TIME, EPOCH_UTC),
                ),
                "is before",
            ),
            # lists
            (minimal(field(15, TEXTS, b"")), "empty list"),
            (minimal(field(15, TEXTS, b"\x01b\x01a")), "canonical"),
            (minimal(field(15, TEXTS, b"\x01a\x01a")), "canonical"),
            (minimal(field(15, TEXTS, b"\x02a")), "cut off"),
            (minimal(field(15, TEXTS, b"\x81\x00a")), "shortest form"),
            (minimal(field(15, TEXTS, b"\x01\xff")), "utf-8"),
            (minimal(field(15, TEXTS, b"\x00")), "is empty"),
            (minimal(field(22, TEXTS, b"\x01a\x01a")), "canonical"),
            # JSON
            (minimal(field(16, JSON, b"")), "cut off"),
            (minimal(field(16, JSON, b"o\x00")), "empty object"),
            (minimal(field(16, JSON, b"a\x00")), "must be an object"),
            (minimal(field(16, JSON, b"n")), "must be an object"),
            (minimal(field(16, JSON, b"o\x01\x01anx")), "bytes follow"),
            (minimal(field(16, JSON, b"o\x02\x01bn\x01an")), "do not rise"),
            (minimal(field(16, JSON, b"o\x02\x01an\x01an")), "do not rise"),
            (minimal(field(16, JSON, b"o\x02\x01an")), "cut off"),
            (minimal(field(16, JSON, b"o\x01\x05an")), "cut off"),
            (minimal(field(16, JSON, b"o\x01\x01a")), "cut off"),
            (minimal(field(16, JSON, b"o\x01\x01ai\x00")), "cut off"),
            (minimal(field(16, JSON, b"o\x01\x01as\x05x")), "cut off"),
            (minimal(field(16, JSON, b"o\x01\x01ax")), "unknown kind"),
            (minimal(field(16, JSON, b"o\x01\x01\xffn")), "utf-8"),
            (minimal(field(16, JSON, b"o\x01\x01as\x01\xff")), "utf-8"),
            (minimal(field(16, JSON, b"o\x01\x01ad" + NAN)), "not finite"),
            (minimal(field(16, JSON, b"o\x01\x01ad" + struct.pack(">d", -0.0))), "minus zero"),
            (minimal(field(16, JSON, b"o\x81\x00\x01an")), "shortest form"),
            (minimal(field(16, JSON, b"o\x01\x01aa" + b"\xff" * 8 + b"\x7f")), "cut off"),
            (minimal(field(16, JSON, nested_json(65))), "nested too deeply"),
            (minimal(field(16, JSON, nested_json(100_000))), "nested too deeply"),
        ],
    )
    def test_whatever_is_not_the_one_encoding_is_refused(self, data: bytes, rule: str) -> None:
        with pytest.raises(CodecError) as caught:
            Record.from_bytes(data)
        assert rule in str(caught.value)
        assert str(caught.value).endswith("the bytes were left as they are")

    def test_the_deepest_json_that_a_record_takes_is_read(self) -> None:
        data = minimal(field(16, JSON, nested_json(64)))
        assert Record.from_bytes(data).to_bytes() == data

    def test_the_error_says_at_which_byte(self) -> None:
        with pytest.raises(CodecError) as caught:
            Record.from_bytes(minimal(field(27, BOOL, b"\x00")))
        assert caught.value.args[1] == len(minimal())


def accepted_or_refused(data: bytes) -> None:
    try:
        record = Record.from_bytes(data)
    except CodecError as error:
        str(error).encode("utf-8")
    else:
        assert record.to_bytes() == data
        # What was read stands on its own: made again from its fields it gives the same bytes.
        assert Record.from_json(json.loads(json.dumps(record.to_json()))).to_bytes() == data


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """The bytes of a record, changed in a few places."""
    data = bytearray(draw(own.records).to_bytes())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 5)):
            case 0:
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                del data[at : at + draw(st.integers(1, 9))]
            case 2:
                data[at:at] = draw(st.binary(min_size=1, max_size=3))
            case 3 if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case 4:
                data[at:at] = data[at : at + draw(st.integers(1, 12))]
            case _:
                data[at:at] = field(draw(st.integers(0, 40)), draw(st.integers(0, 9)), draw(st.binary(max_size=9)))
    return bytes(data)


@st.composite
def assembled(draw: st.DrawFn) -> bytes:
    """Fields of the right types in their order, whose values are any bytes: what gets past the frame."""
    out = minimal()
    for number in sorted(draw(st.sets(st.integers(4, 31), max_size=4))):
        kind = next((kind for at, kind in NUMBERS.values() if at == number), 1)
        out += field(number, kind, draw(st.binary(max_size=14)))
    return out


class TestFuzz:
    @given(st.binary(max_size=60))
    def test_any_bytes_are_refused_or_canonical(self, data: bytes) -> None:
        accepted_or_refused(data)

    @given(damaged())
    def test_damaged_bytes_are_refused_or_another_record(self, data: bytes) -> None:
        accepted_or_refused(data)

    @given(assembled())
    def test_well_framed_fields_of_any_value_are_refused_or_canonical(self, data: bytes) -> None:
        accepted_or_refused(data)

    @given(st.binary(max_size=40))
    def test_any_json_value_is_refused_or_canonical(self, raw: bytes) -> None:
        accepted_or_refused(minimal(field(16, JSON, b"o\x01\x01a" + raw)))

    @given(own.records, st.data())
    def test_a_record_cut_short_is_refused_or_a_shorter_record(self, record: Record, data: st.DataObject) -> None:
        whole = record.to_bytes()
        accepted_or_refused(whole[: data.draw(st.integers(0, len(whole)))])
