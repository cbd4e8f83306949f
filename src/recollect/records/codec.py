"""Canonical bytes of a record: each set of fields has exactly one encoding, which never changes.

A record is a sequence of fields in ascending order of their numbers. A field is

    number (varint) · type (1 byte) · length of value (varint) · value

Absent fields are omitted, so a field added by a later release does not change the hash of an old record. A field that
this release does not know is preserved byte for byte. A varint is an unsigned LEB128 number in its shortest form. Every
value has exactly one encoding and the decoder rejects all others, so different records have different bytes, and
`encode(decode(b)) == b` for every accepted `b`. docs/file-format.md describes the types with worked examples.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from operator import methodcaller
from typing import Any, NamedTuple

from recollect.errors import CodecError
from recollect.records.frozen import MAX_DEPTH, FrozenDict, FrozenList

TEXT, BYTES, INT, FLOAT, BOOL, TIME, TEXTS, JSON, OFF = range(1, 10)

#: Field name -> (number, type). A number is never reused.
FIELDS: dict[str, tuple[int, int]] = {
    "id": (1, TEXT),
    "kind": (2, TEXT),
    "text": (3, TEXT),  # `content` if it is text
    "data": (4, BYTES),  # `content` if it is bytes
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
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: The instants that a `datetime` can represent at every offset: years 2 to 9998.
TIMES = range(
    (datetime(2, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
    (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND,
)
_DAY_S = 86_400
#: The encoding of a time: microseconds since 1970, and the offset in seconds.
_TIME = struct.Struct(">qi")


class RawField(NamedTuple):
    """A field that this release does not know, as it was read.

    Attributes:
        number: The number of the field.
        value: The encoded value.
    """

    number: int
    type: int
    value: bytes


def microseconds(instant: datetime) -> int:
    """Return the microseconds from 1970-01-01T00:00Z to an aware `instant`."""
    return (instant - _EPOCH) // _MICROSECOND


def datetime_of(micros: int, offset_s: int = 0) -> datetime:
    """Return the aware datetime `micros` microseconds after 1970-01-01T00:00Z, with an offset of `offset_s` seconds."""
    instant = _EPOCH + timedelta(0, 0, micros)
    return instant.astimezone(timezone(timedelta(seconds=offset_s))) if offset_s else instant


def encode(fields: Mapping[str, Any], unknown: tuple[RawField, ...] = ()) -> bytes:
    """Encode `fields` (by the names of `FIELDS`, without absent fields) and the unknown fields."""
    items = []
    for name, value in fields.items():
        number, head, encoder = _WRITTEN[name]
        raw = encoder(value)
        size = len(raw)
        items.append((number, head + (_BYTE[size] if size < 0x80 else varint(size)) + raw))
    for number, kind, raw in unknown:
        items.append((number, varint(number) + _BYTE[kind] + varint(len(raw)) + raw))
    items.sort()
    return b"".join([item for _, item in items])


def decode(data: bytes) -> tuple[dict[str, Any], tuple[RawField, ...]]:
    """Decode the fields by name, and the fields that this release does not know.

    Raises:
        CodecError: The bytes are not a canonical encoding.
    """
    fields: dict[str, Any] = {}
    unknown: list[RawField] = []
    at, previous, size = 0, 0, len(data)
    by_head = _BY_HEAD.get
    while at < size:
        # Nearly every number, type and size takes one byte, and nearly every field is known: read them without a call.
        known = by_head(data[at : at + 2])
        if known is not None and at + 2 < size and known[0] > previous:
            end = at + 3 + data[at + 2]
            if data[at + 2] < 0x80 and end <= size:
                previous, name, decoder = known
                try:
                    fields[name] = decoder(data[at + 3 : end])
                except (CodecError, ValueError, struct.error, OverflowError) as error:
                    raise _in_field(name, error, at) from None
                at = end
                continue
        at, previous = _decode_field(data, at, previous, fields, unknown)
    return fields, tuple(unknown)


def begins_with_id(data: bytes, record_id: str) -> bool:
    """Return whether bytes begin as a record with an id does; False also for an id of more than 127 bytes."""
    raw = record_id.encode("utf-8")
    return len(raw) < 0x80 and data.startswith(_ID_HEAD + _BYTE[len(raw)] + raw)


def may_supersede(data: bytes) -> bool:
    """Return whether the bytes of a record may have the field `supersedes`; False if they do not."""
    return _SUPERSEDES_HEAD in data


def _in_field(name: str, error: Exception, at: int) -> CodecError:
    rule = error.args[0] if isinstance(error, CodecError) else str(error)
    return CodecError(f"field {name!r}: {rule}", at)


def _decode_field(
    data: bytes, start: int, previous: int, fields: dict[str, Any], unknown: list[RawField]
) -> tuple[int, int]:
    """Decode the field at an offset, whatever its form; return the offset after it, and its number."""
    number, at = read_varint(data, start)
    if number <= previous:
        raise CodecError("field numbers do not rise", start)
    if at >= len(data):
        raise CodecError("a field is cut off", at)
    kind = data[at]
    length, at = read_varint(data, at + 1)
    end = at + length
    if end > len(data):
        raise CodecError("a value is cut off", at)
    known = _BY_NUMBER.get(number)
    if known is None:
        unknown.append(RawField(number, kind, data[at:end]))
    elif kind != known[1]:
        raise CodecError(f"field {known[0]!r} has type {kind} instead of {known[1]}", start)
    else:
        try:
            fields[known[0]] = known[2](data[at:end])
        except (CodecError, ValueError, struct.error, OverflowError) as error:
            raise _in_field(known[0], error, start) from None
    return end, number


_BYTE = [bytes((number,)) for number in range(256)]


def varint(number: int) -> bytes:
    """Encode a number >= 0 as LEB128."""
    if number < 0x80:
        return _BYTE[number]
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode the number at offset `at`, at most 63 bits in shortest form; return it and the offset after it."""
    number = shift = 0
    while True:
        if at >= len(data):
            raise CodecError("a number is cut off", at)
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:
                raise CodecError("a number is not in its shortest form", at - 1)
            return number, at
        shift += 7
        if shift > 56:
            raise CodecError("a number is too large", at)


def length_prefixed(*parts: bytes) -> bytes:
    """Join parts with length prefixes: different lists of parts have different encodings."""
    return b"".join([varint(len(part)) + part for part in parts])


def _encode_int(value: int) -> bytes:
    return struct.pack(">q", value)


def _decode_int(raw: bytes) -> int:
    return int(struct.unpack(">q", raw)[0])


def _encode_float(value: float) -> bytes:
    return struct.pack(">d", value + 0.0)


def _decode_float(raw: bytes) -> float:
    value = float(struct.unpack(">d", raw)[0])
    # A record never contains NaN, an infinity or -0.0.
    if value - value != 0.0 or _encode_float(value) != raw:
        raise CodecError("a number is not finite, or is minus zero", 0)
    return value


def _encode_bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _decode_bool(raw: bytes) -> bool:
    if raw != b"\x01":  # false is an absent field
        raise CodecError("a flag is not 1", 0)
    return True


def _decode_off(raw: bytes) -> bool:
    if raw != b"\x00":  # true is an absent field
        raise CodecError("a flag is not 0", 0)
    return False


def _encode_time(value: datetime) -> bytes:
    if value.tzinfo is UTC:  # most are
        return _TIME.pack(microseconds(value), 0)
    offset = value.utcoffset() or timedelta()
    return _TIME.pack(microseconds(value), offset // timedelta(seconds=1))


def _decode_time(raw: bytes) -> datetime:
    micros, offset_s = _TIME.unpack(raw)
    if micros not in TIMES or not -_DAY_S < offset_s < _DAY_S:
        raise CodecError("a time is out of range", 0)
    return datetime_of(micros, offset_s)


def _encode_texts(value: tuple[str, ...]) -> bytes:
    return length_prefixed(*(item.encode("utf-8") for item in value))


def _decode_texts(raw: bytes) -> tuple[str, ...]:
    out, at = [], 0
    while at < len(raw):
        length, at = read_varint(raw, at)
        if at + length > len(raw):
            raise CodecError("a text is cut off", at)
        out.append(raw[at : at + length].decode("utf-8"))
        at += length
    if not out:
        raise CodecError("an empty list is not left out", 0)
    return tuple(out)


# A JSON value is a type letter and its content; lists and objects begin with their number of items.


def encode_json(value: Any) -> bytes:
    """Encode a JSON value: objects in ascending order of the UTF-8 of their keys, integers distinct from floats."""
    out = bytearray()
    _write_json(value, out)
    return bytes(out)


def _write_json(value: Any, out: bytearray) -> None:
    if value is None:
        out += b"n"
    elif value is True:
        out += b"t"
    elif value is False:
        out += b"f"
    elif isinstance(value, str):
        raw = value.encode("utf-8")
        out += b"s" + varint(len(raw)) + raw
    elif isinstance(value, int):
        out += b"i" + _encode_int(value)
    elif isinstance(value, float):
        out += b"d" + _encode_float(value)
    elif isinstance(value, (dict, Mapping)):  # a dict first: asking an ABC is slow
        out += b"o" + varint(len(value))
        for key, item in sorted((key.encode("utf-8"), item) for key, item in value.items()) if value else ():
            out += varint(len(key)) + key
            _write_json(item, out)
    else:
        out += b"a" + varint(len(value))
        for item in value:
            _write_json(item, out)


def _decode_json(raw: bytes) -> Any:
    value, at = _read_json(raw, 0, 0)
    if at != len(raw):
        raise CodecError("bytes follow a JSON value", at)
    if value == {}:
        raise CodecError("an empty object is not left out", 0)
    return value


def _read_text(raw: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_varint(raw, at)
    if at + length > len(raw):
        raise CodecError("a text is cut off", at)
    return raw[at : at + length], at + length


def _read_json(raw: bytes, at: int, depth: int) -> tuple[Any, int]:
    if at >= len(raw) or depth > MAX_DEPTH:
        raise CodecError("a JSON value is cut off or nested too deeply", at)
    letter, at = raw[at : at + 1], at + 1
    if letter == b"n":
        return None, at
    if letter in b"tf":
        return letter == b"t", at
    if letter in b"id":
        if at + 8 > len(raw):
            raise CodecError("a number is cut off", at)
        return (_decode_int if letter == b"i" else _decode_float)(raw[at : at + 8]), at + 8
    if letter == b"s":
        text, at = _read_text(raw, at)
        return text.decode("utf-8"), at
    if letter == b"a":
        count, at = read_varint(raw, at)
        items = []
        for _ in range(count):
            item, at = _read_json(raw, at, depth + 1)
            items.append(item)
        return FrozenList(items), at
    if letter == b"o":
        count, at = read_varint(raw, at)
        members: dict[str, Any] = {}
        previous = None
        for _ in range(count):
            key, at = _read_text(raw, at)
            if previous is not None and key <= previous:
                raise CodecError("the keys of an object do not rise", at)
            previous = key
            members[key.decode("utf-8")], at = _read_json(raw, at, depth + 1)
        return FrozenDict(members), at
    raise CodecError("an unknown kind of JSON value", at - 1)


_ENCODERS: dict[int, Any] = {
    TEXT: str.encode,  # as UTF-8
    BYTES: bytes,
    INT: _encode_int,
    FLOAT: _encode_float,
    BOOL: _encode_bool,
    TIME: _encode_time,
    TEXTS: _encode_texts,
    JSON: encode_json,
    OFF: _encode_bool,
}
#: Field name -> number, the bytes before the length of the value, the encoder of the value.
_WRITTEN = {name: (number, varint(number) + _BYTE[kind], _ENCODERS[kind]) for name, (number, kind) in FIELDS.items()}
_DECODERS: dict[int, Any] = {
    TEXT: methodcaller("decode"),  # UTF-8, without a Python function in between
    BYTES: bytes,
    INT: _decode_int,
    FLOAT: _decode_float,
    BOOL: _decode_bool,
    TIME: _decode_time,
    TEXTS: _decode_texts,
    JSON: _decode_json,
    OFF: _decode_off,
}
#: Field number -> name, type, the decoder of the value.
_BY_NUMBER = {number: (name, kind, _DECODERS[kind]) for name, (number, kind) in FIELDS.items()}
#: The number and type of the id, which is the first field.
_ID_HEAD = bytes(FIELDS["id"])
#: That of `supersedes`, which other bytes of a record can equal.
_SUPERSEDES_HEAD = bytes(FIELDS["supersedes"])
#: The two bytes of the number and type of each field -> its number, name and decoder.
_BY_HEAD = {
    bytes((number, kind)): (number, name, decoder)
    for number, (name, kind, decoder) in _BY_NUMBER.items()
    if number < 0x80
}
