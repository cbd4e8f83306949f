"""Derived ids: UUIDv5 (RFC 9562, section 5.5) over length-prefixed parts, worked out here a second time."""

from __future__ import annotations

import hashlib
import itertools
import unicodedata
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.indexes import strategies as own

from recollect.records.identity import SCOPE, derived_id, derived_ids, numbered_ids, same_fact, same_text
from recollect.records.record import Record

SCOPES = ("user", "agent", "conversation", "session", "speaker", "role", "entity", "source", "parent")


def uuid5(namespace: bytes, name: bytes) -> str:
    """RFC 9562: SHA-1 of namespace and name, 128 bits of it, with version 5 and variant 10 put in."""
    digest = bytearray(hashlib.sha1(namespace + name).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def leb128(number: int) -> bytes:
    return bytes([number & 127 | 128]) + leb128(number >> 7) if number > 127 else bytes([number])


def expected_id(record: Record, ordinal: int) -> str:
    namespace = bytes.fromhex(
        uuid5(bytes.fromhex("6ba7b8109dad11d180b400c04fd430c8"), b"record.recollect").replace("-", "")
    )
    texts = [record.kind, *(getattr(record, name) or "" for name in SCOPES)]
    parts = [unicodedata.normalize("NFC", text).encode() for text in texts]
    content = record.content
    parts.append(content if isinstance(content, bytes) else unicodedata.normalize("NFC", content).encode())
    return uuid5(namespace, b"".join(leb128(len(part)) + part for part in parts) + leb128(ordinal))


def make(**fields: Any) -> Record:
    return Record(**{"id": "x", "content": "ok", **fields})


def test_the_uuid_of_the_rfc_comes_out() -> None:
    # RFC 9562, appendix A.4: "www.example.com" in the DNS name space.
    dns = uuid.NAMESPACE_DNS.bytes
    assert uuid5(dns, b"www.example.com") == "2ed6657d-e927-568b-95e1-2665a8aea6a2"


# Characters whose normalisation no version of Unicode has changed since 14, so that `unicodedata` may be the judge.
stable = st.text(
    st.characters(max_codepoint=0x2FF) | st.sampled_from("é日本e\u0301한\u1112\u1161\u11ab"), min_size=1, max_size=9
)
named = stable.filter(lambda text: all(unicodedata.category(char) != "Cc" for char in text))


@given(
    st.fixed_dictionaries(
        {"content": stable.filter(lambda text: bool(text.strip()))},
        optional={"kind": named, **dict.fromkeys(SCOPES, named)},
    ),
    st.integers(0, 1000),
)
def test_a_derived_id_is_the_uuid_of_kind_scope_text_and_ordinal(fields: dict[str, Any], ordinal: int) -> None:
    record = make(**fields)
    assert derived_id(record, ordinal) == expected_id(record, ordinal)
    assert uuid.UUID(derived_id(record, ordinal)).version == 5


def test_derived_ids_never_change() -> None:
    # What stores of the first format hold: a change here would let every fact be remembered twice.
    assert derived_id(make()) == "ca16e21f-0145-501b-a26c-c9f0f30fbe2c"
    assert (
        derived_id(make(kind="user_fact", user="ana", content="Ana prefers window seats"))
        == "182fb4b2-503c-5607-a21d-11f3f739251e"
    )


@pytest.mark.parametrize("name", ["kind", *SCOPES])
def test_every_part_of_the_scope_makes_another_id(name: str) -> None:
    assert SCOPE == SCOPES
    ids = {derived_id(make(**fields)) for fields in ({}, {name: "a"}, {name: "b"})}
    assert len(ids) == 3


def test_one_value_in_two_places_makes_two_ids() -> None:
    assert len({derived_id(make(**{name: "ana"})) for name in SCOPES}) == len(SCOPES)


def test_text_bytes_and_ordinal_are_part_of_the_id() -> None:
    made = [derived_id(make(content="ok")), derived_id(make(content="Ok")), derived_id(make(content="ok "))]
    made += [derived_id(make(content="ok"), ordinal) for ordinal in (1, 2, 127, 128, 129, 16384)]
    made += [derived_id(make(content=b"\xff\x00", media_type="a/b"))]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize(
    "fields",
    [
        {"position": 3},
        {"importance": 0.7},
        {"metadata": {"a": 1}},
        {"tags": ("t",)},
        {"media_type": "text/plain"},
        {"language": "en"},
        {"id": "another"},
    ],
)
def test_what_only_describes_a_fact_is_no_part_of_its_id(fields: dict[str, Any]) -> None:
    assert derived_id(make(**fields)) == derived_id(make())


def test_each_part_stands_behind_its_length() -> None:
    assert derived_id(make(user="ab", agent="c")) != derived_id(make(user="a", agent="bc"))
    assert derived_id(make(parent="ab", content="c")) != derived_id(make(parent="a", content="bc"))
    assert derived_id(make(kind="ab", user="c")) != derived_id(make(kind="a", user="bc"))
    # A content that ends as the next ordinal would begin.
    assert derived_id(make(content="ok\x01"), 0) != derived_id(make(content="ok"), 1)


@given(st.data())
def test_two_facts_share_an_id_only_where_they_are_the_same(data: st.DataObject) -> None:
    names = st.sampled_from(["a", "ab", "b", "ba"])
    fields = st.fixed_dictionaries({"content": names}, optional=dict.fromkeys(("kind", *SCOPES), names))
    one, other = data.draw(fields), data.draw(fields)
    one.setdefault("kind", "a")
    other.setdefault("kind", "a")
    assert (derived_id(make(**one)) == derived_id(make(**other))) == (one == other)


def test_one_letter_typed_in_two_ways_is_one_letter() -> None:
    composed, decomposed = "caf\u00e9 \u1e69 \uac00", "cafe\u0301 s\u0307\u0323 \u1100\u1161"
    assert unicodedata.normalize("NFC", decomposed) == composed
    assert derived_id(make(content=decomposed)) == derived_id(make(content=composed))
    assert derived_id(make(user=decomposed)) == derived_id(make(user=composed))
    assert same_text(make(content=decomposed), make(content=composed))
    assert same_fact(make(content=decomposed), make(content=composed))


def test_a_letter_and_its_likeness_are_two() -> None:
    # Compatibility variants and case are differences of the text.
    assert derived_id(make(content="ﬁne")) != derived_id(make(content="fine"))
    assert not same_text(make(content="ﬁne"), make(content="fine"))


def test_text_and_bytes_are_never_the_same_text() -> None:
    assert not same_text(make(content="ok"), make(content=b"ok", media_type="text/plain"))


@pytest.mark.parametrize("name", ["kind", *SCOPES])
def test_a_fact_of_another_scope_is_another_fact(name: str) -> None:
    assert not same_fact(make(**{name: "a"}), make(**{name: "b"}))


def test_the_place_of_a_turn_is_no_part_of_what_it_says() -> None:
    assert same_fact(make(position=3), make(position=4))


def test_derived_ids_count_the_ordinal_up() -> None:
    first = list(itertools.islice(derived_ids(make()), 300))
    assert first == [expected_id(make(), ordinal) for ordinal in range(300)]


def test_numbered_ids_begin_with_the_id_itself_and_count_from_2() -> None:
    assert list(itertools.islice(numbered_ids("note"), 4)) == ["note", "note-2", "note-3", "note-4"]


@given(own.names.map(lambda text: Record(id=text[:60] * 5 if len(text.encode()) < 50 else text, content="x").id))
def test_numbered_ids_are_ids_themselves(wanted: str) -> None:
    for candidate in itertools.islice(numbered_ids(wanted), 15):
        assert Record(id=candidate, content="x").id == candidate


@pytest.mark.parametrize("letter", ["x", "é", "木", "🎈"])
def test_a_long_id_is_shortened_at_a_whole_character_to_make_room(letter: str) -> None:
    wanted = letter * (255 // len(letter.encode()))
    ids = list(itertools.islice(numbered_ids(wanted), 1200))
    assert len(set(ids)) == 1200
    assert all(len(each.encode()) <= 255 for each in ids)
    assert all(each.rstrip("0123456789").rstrip("-") == letter * each.count(letter) for each in ids)
    assert len(ids[1].encode()) > 255 - 2 - len(letter.encode())  # no shorter than it must be
