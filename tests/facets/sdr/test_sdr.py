"""SDRs: the bits of a text are those of the rule, one by one and many at once, on every machine."""

from __future__ import annotations

import hashlib
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.facets.sdr.index.encoding import (
    RULE,
    WHOLE,
    Encoder,
    bit_of,
    encoded,
    encoded_all,
    grams,
    normalised,
    packed,
    shared,
    unpacked,
)

ENCODERS = st.sampled_from([RULE, WHOLE])

#: Texts of every width in UTF-8, with what folding changes, what Unicode 14 does not know, and blanks.
CHARACTERS = st.sampled_from("abcAB Éßİﬁ 我喜ñ🎈\U0001e08f\u2ffc\u3000\t\u00a8\u0345") | st.characters(
    exclude_categories=["Cs"]
)
TEXTS = st.text(CHARACTERS, max_size=30)
#: Bits, those at the ends among them.
ROWS = st.frozensets(st.integers(0, 24) | st.sampled_from([4094, 4095]), max_size=12)


def bits_by_the_rule(text: str, most: int = 80) -> list[int]:
    """The rule, written out once more from its description and nothing of ours, for texts of known characters."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = "  " + " ".join(text.split()) + "  "
    active = set()
    for at in range(len(text) - 2):
        value = 14695981039346656037
        for byte in text[at : at + 3].encode("utf-8"):
            value = ((value ^ byte) * 1099511628211) % 2**64
        active.add(value % 4096)
    return sorted(active)[:most]


def bytes_by_the_rule(bits: list[int]) -> bytes:
    return sum(1 << 4095 - bit for bit in bits).to_bytes(512, "big")


LONG = (
    "The outage began when the primary database stopped answering; the connection pool was exhausted within a minute, "
    "retries made it worse, and only after the second replica was promoted did the queue drain and the alarms stop."
)


class TestEncoders:
    def test_hello_has_the_seven_trigrams_of_the_rule(self) -> None:
        assert grams("hello") == ["  h", " he", "hel", "ell", "llo", "lo ", "o  "]
        assert encoded("hello", RULE) == [676, 750, 1151, 2350, 3152, 3320, 3614]

    @pytest.mark.parametrize("text", ["hello", "Database timeout", "Straße ＡＢＣ", "我喜欢 🎈", "  a\t b\n", LONG])
    def test_bits_are_those_of_the_rule_written_out_once_more(self, text: str) -> None:
        assert encoded(text, RULE) == bits_by_the_rule(text)
        assert encoded(text, WHOLE) == bits_by_the_rule(text, 4096)
        assert packed(encoded(text, RULE)) == bytes_by_the_rule(bits_by_the_rule(text))

    @pytest.mark.parametrize(
        ("text", "digest"),
        [
            ("hello", "5265d58a3bac5c60"),
            ("Database connection pool exhausted", "a07b3471deb90afb"),
            ("Où est la clé ? 鍵はどこ", "e75535dc9905b446"),
            (LONG, "fd49870078853abc"),
        ],
    )
    def test_golden_rows_never_change(self, text: str, digest: str) -> None:
        assert hashlib.sha256(packed(encoded(text, RULE))).hexdigest()[:16] == digest

    def test_the_rule_keeps_the_lowest_80_and_the_better_encoder_all(self) -> None:
        assert len(grams(LONG)) > 150
        whole = encoded(LONG, WHOLE)
        assert encoded(LONG, RULE) == whole[:80]
        assert len(whole) > 150

    @given(st.lists(TEXTS, max_size=8), ENCODERS)
    @example(["", "x", " ", "é" * 300], RULE)
    def test_many_at_once_are_as_one_by_one(self, texts: list[str], encoder: Encoder) -> None:
        found = encoded_all(texts, encoder)
        assert [found.row(at).tolist() for at in range(len(texts))] == [encoded(text, encoder) for text in texts]
        assert len(found.offsets) == len(texts) + 1

    def test_many_at_once_are_as_one_by_one_over_the_border_of_a_portion(self) -> None:
        texts = [f"number {at} of many" for at in range(2100)]
        found = encoded_all(iter(texts))
        assert all(found.row(at).tolist() == encoded(text) for at, text in enumerate(texts))
        assert encoded_all(["ab " * 700_000, "b"]).row(1).tolist() == encoded("b")

    @given(TEXTS)
    def test_case_white_space_and_compatibility_variants_do_not_count(self, text: str) -> None:
        assert normalised(normalised(text)) == normalised(text)
        assert encoded(f" \t{text}\u3000\n") == encoded(text)
        if text.isascii():
            assert encoded(text.upper()) == encoded(text)
        assert encoded("ＤＢ　timeout") == encoded("db Timeout")

    def test_white_space_is_what_it_was_in_unicode_14(self) -> None:
        """`str.split` asks Python's own tables: where this fails, a later Unicode has more of it."""
        blank = [point for point in range(sys.maxunicode + 1) if chr(point).isspace()]
        assert blank == [
            *(*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)),
            *(0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
        ]

    def test_a_blank_text_has_no_bits(self) -> None:
        assert encoded("") == encoded(" \n\u3000") == []

    def test_a_lone_surrogate_is_an_error_both_ways(self) -> None:
        for call in (lambda: encoded("a\ud800"), lambda: encoded_all(["a\ud800"])):
            with pytest.raises(UnicodeEncodeError):
                call()

    @given(ROWS)
    def test_a_packed_row_has_512_bytes_the_first_bit_most_significant(self, row: frozenset[int]) -> None:
        data = packed(sorted(row))
        assert data == bytes_by_the_rule(sorted(row))
        assert unpacked(data) == sorted(row)
        with pytest.raises(ValueError, match="512"):
            unpacked(data[1:])

    def test_a_hit_is_explained_by_the_trigrams_that_both_have_and_keep(self) -> None:
        assert shared("db pool", ["The DB", "", "poodle"]) == [[" db", "db "], [], [" po", "poo"]]
        kept = shared("the alarms stop", [LONG], RULE)[0]
        assert len(kept) < len(shared("the alarms stop", [LONG], WHOLE)[0]) == len(grams("the alarms stop")) - 2
        assert set(kept) <= {gram for gram in grams(LONG) if bit_of(gram) in encoded(LONG, RULE)}
