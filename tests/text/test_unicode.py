"""Normalisation and folding: what Unicode 14 says, on every Python."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import FULL, some

from recollect.text import _unicode14, words
from recollect.text import unicode as ours
from recollect.text.folding import folded
from recollect.text.unicode import (
    LONG_RUN,
    PIECE,
    UNICODE_VERSION,
    Form,
    around_unknown,
    character_class,
    fold,
    has_surrogate,
    in_parts,
    nfc,
    normalized,
    occurs,
    one_of,
    words_in,
)
from recollect.text.words import runs, terms

POINTS = 0x110000
SURROGATES = range(0xD800, 0xE000)


def unpacked(table: str) -> Iterator[int]:
    """The code points of a table, by its description: pairs `gap.length` in base 36."""
    end = 0
    for pair in table.split():
        gap, length = pair.split(".")
        start = end + int(gap, 36)
        end = start + int(length, 36)
        yield from range(start, end + 1)


UNKNOWN = frozenset(unpacked(_unicode14.UNKNOWN))
WORD = frozenset(unpacked(_unicode14.WORD))
JOINING = frozenset(unpacked(_unicode14.JOINING))
KNOWN = [point for point in range(POINTS) if point not in UNKNOWN and point not in SURROGATES]


def tried(points: Iterable[int]) -> list[int]:
    """Return the code points that slow tests try: by default, few of the large blocks whose characters are alike."""

    def various(point: int) -> bool:
        return point < 0x3400 or 0xA480 <= point < 0xAC00 or 0xD7A4 <= point < 0xE000 or 0xF900 <= point < 0x20000

    return [point for point in points if FULL or various(point) or point % 97 == 0]


#: Characters on which folding and composing are hard: they change length, order, or once more when done again.
HARD = (
    "İıŉſẞßǅǰΐΰᾳᾼῼͅϴϓϔẛẞÅΩKﬁﬅŸÿʼnΣςσÅé각가ㆎﾡ゙かがﷺ①Ⅷª²ﬃ¼ÞþꙊꭰᏸᎠ"
    "\u0301\u0323\u0307\u0345\u0308\u093c\u0958\u1100\u1161\u11a8\u0f71\u0f72\u0f73\u2126\u00ad\u200d\u034f"
)
hard_texts = st.text(st.sampled_from(HARD) | st.characters(), max_size=12)

#: Assigned after Unicode 14 (in 15.0 and 15.1), each with a property that would act if Python's own tables were asked:
#: a mark that would be reordered, letters, digits, an ideograph.
LATER = ["\U0001e08f", "\U00010efd", "\u0cf3", "\U00011f04", "\U00011f50", "\U0001e4d0", "\U0001e4ec"]
LATER += ["\U0002ebf0", "\u2ffc"]


class TestTables:
    def test_the_tables_are_those_of_unicode_14(self) -> None:
        assert UNICODE_VERSION == "14.0.0"
        # 144,697 characters (unicode.org/versions/Unicode14.0.0), with 65 controls and 137,468 for private use.
        assert len(KNOWN) == 144_697 + 65 + 137_468
        categories = {point: unicodedata.category(chr(point)) for point in range(POINTS)}
        if unicodedata.unidata_version == UNICODE_VERSION:
            assert {point for point, category in categories.items() if category == "Cn"} == UNKNOWN
            assert {point for point, category in categories.items() if category[0] in "LMN"} == WORD
        else:  # a later Unicode knows more and forgets nothing
            assert {point for point, category in categories.items() if category == "Cn"} < UNKNOWN

    def test_words_are_made_of_known_characters(self) -> None:
        assert not WORD & UNKNOWN

    def test_the_regular_expressions_have_the_tables_to_the_character(self) -> None:
        among = set(tried(range(POINTS)))
        everything = "".join(map(chr, sorted(among)))
        for table, points in ((_unicode14.WORD, WORD), (_unicode14.UNKNOWN, UNKNOWN), (_unicode14.JOINING, JOINING)):
            assert set(re.findall(f"[{character_class(table)}]", everything)) == set(map(chr, points & among))
            assert set(re.findall(one_of(table), everything)) == set(map(chr, points & among))
            assert set(re.findall(one_of(table, astral=False), everything)) == {
                chr(point) for point in points & among if point <= 0xFFFF
            }

    def test_what_joins_what_is_before_it_is_in_the_table(self) -> None:
        """Wherever else a text is divided, its normal forms are those of its parts."""
        before = ["e", "\u09c7", "\u1100", "\uac00", "\u0915", "\u304b", "\u0dd9", "\U00011347", "\u1b05"]
        for char in map(chr, tried(KNOWN)):
            if ord(char) not in JOINING:
                for form in ("NFC", "NFD", "NFKC", "NFKD"):
                    alone = unicodedata.normalize(form, char)
                    apart = "".join(unicodedata.normalize(form, each) + alone for each in before)
                    assert unicodedata.normalize(form, "".join(each + char for each in before)) == apart

    def test_letters_marks_and_digits_make_words_and_signs_do_not(self) -> None:
        assert set(map(ord, "aZ09éßжΩ木かกि\u0301٣Ⅷ²ª")) <= WORD
        assert not WORD & set(map(ord, " _-'’.,!?@#%&€+=🎈\u200d\0\n"))


class TestEveryCodePoint:
    """The same bits on Python 3.11 (Unicode 14), 3.12 (15.0) and 3.13 (15.1): no other test may see other bits."""

    def test_composing_and_folding_give_the_bits_pinned_here(self) -> None:
        digest = hashlib.sha256()
        for char in map(chr, KNOWN):
            digest.update(f"{nfc(char)}\0{fold(char)}\0".encode())
        assert digest.hexdigest() == "c40c4ad28be34c6e9503b88006e72082b055936fcd619972b869b8e1d3830fe2"

    def test_what_else_is_asked_of_pythons_tables_gives_the_bits_pinned_here(self) -> None:
        # str.lower in EntityId.from_name, str.isalpha in the vocabulary, str.isspace in stripping.
        digest = hashlib.sha256()
        for char in map(chr, KNOWN):
            digest.update(f"{char.lower()}\0{char.isalpha():d}{char.isspace():d}\0".encode())
        assert digest.hexdigest() == "e16e1cd13e2ef1922b012ebf40942e97bdf351be0985b01c9ed9ebd723580465"

    @pytest.mark.skipif(unicodedata.unidata_version != UNICODE_VERSION, reason="Python's own tables are the judge")
    def test_they_are_those_of_python_where_its_tables_are_of_unicode_14(self) -> None:
        for char in map(chr, tried(KNOWN)):
            assert nfc(char) == unicodedata.normalize("NFC", char)
            assert fold(char) == python_fold(char)

    def test_folding_once_is_enough(self) -> None:
        for char in map(chr, tried(KNOWN)):
            once = fold(char)
            assert fold(once) == once

    def test_what_unicode_14_does_not_know_stays_as_it_is(self) -> None:
        unknown = "".join(map(chr, sorted(UNKNOWN)))
        assert nfc(unknown) == fold(unknown) == unknown

    def test_the_ascii_short_cut_gives_what_the_long_way_gives(self) -> None:
        for char in map(chr, range(128)):
            assert nfc(char) == nfc(char + "é")[:-1] == char
            assert fold(char) == fold(char + "é")[:-1] == python_fold(char)


def python_fold(text: str) -> str:
    """NFKC_Casefold less the removal of default-ignorables, by Python's own tables."""
    for _ in range(3):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return text


class TestFold:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("ABC xyz 123", "abc xyz 123"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("ẞ", "ss"),
            ("ＡＢＣ１２", "abc12"),
            ("ﬁne", "fine"),
            ("ΜΆΪΟΣ", "μάϊοσ"),
            ("μάϊος", "μάϊοσ"),
            ("İ", "i\u0307"),
            ("I", "i"),  # not Turkish
            ("ı", "ı"),
            ("\u212b", "å"),
            ("K", "k"),
            ("cafe\u0301", "caf\u00e9"),
            ("①²ª", "12a"),
            ("ㄱ", "ᄀ"),
            ("ｶﾞ", "ガ"),
            ("ŉ", "ʼn"),
            ("Ꭰꭰ", "ᎠᎠ"),  # Cherokee folds to its capitals
            ("🎈", "🎈"),
        ],
    )
    def test_known_examples(self, text: str, expected: str) -> None:
        assert fold(text) == expected

    @given(hard_texts)
    @example("ΐ\u0345")
    @example("\u0345\u0301\u03b1")
    def test_folding_is_idempotent_and_composed(self, text: str) -> None:
        once = fold(text)
        assert fold(once) == once
        assert nfc(once) == once

    @given(st.text(st.sampled_from(HARD) | st.characters(max_codepoint=0x17F), max_size=12))
    def test_case_and_compatibility_do_not_matter(self, text: str) -> None:
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            assert fold(unicodedata.normalize(form, text)) == fold(text)
        assert fold(text.casefold()) == fold(text)

    @given(st.text(st.characters(max_codepoint=127)))
    def test_ascii_folds_as_a_part_of_any_text_does(self, text: str) -> None:
        assert fold(text) == fold(text + " é")[:-2]
        assert nfc(text) == text


class TestNfc:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # From NormalizationTest.txt
            ("\u1e0a", "\u1e0a"),
            ("D\u0307", "\u1e0a"),
            ("\u1e0a\u0323", "\u1e0c\u0307"),
            ("D\u0307\u0323", "\u1e0c\u0307"),
            ("\u212b", "\u00c5"),
            ("\u0958", "\u0915\u093c"),
            ("\u1100\u1161\u11a8", "\uac01"),
            ("\uf900", "\u8c48"),
            ("ﬁ", "ﬁ"),
        ],
    )
    def test_known_examples(self, text: str, expected: str) -> None:
        assert nfc(text) == expected

    @given(hard_texts)
    def test_composing_is_idempotent(self, text: str) -> None:
        assert nfc(nfc(text)) == nfc(text)


#: Marks of many classes, those that are two or become none, and what stands among them.
MARKS = (
    "\u0301\u0316\u0323\u0327\u0345\u0334\u05b0\u0591\u064b\u093c\u0f71\u0f72\u3099\uff9e\U0001d165\U0001e8d0"
    "\u0344\u0f73\u0f75\u0f81\u034f\u20d0\ufe20"
)
marked_texts = st.lists(
    st.tuples(
        st.text(st.sampled_from("aeιώǰΐ¨かᄀ\u1161각\U000323b0 " + MARKS), max_size=3),
        st.text(st.sampled_from(MARKS), max_size=4),
        st.integers(0, 40),
    ),
    max_size=4,
).map(lambda parts: "".join(begin + marks * times for begin, marks, times in parts))


def most_unordered(form: str, text: str) -> int:
    """The longest run of non-starters, decomposed one by one for a form, that is not in canonical order."""
    decomposition: Form = "NFKD" if "K" in form else "NFD"
    classes = [unicodedata.combining(mark) for char in text for mark in unicodedata.normalize(decomposition, char)]
    runs = [list(run) for starts, run in groupby(classes, key=lambda each: each == 0) if not starts]
    return max((len(run) for run in runs if run != sorted(run)), default=0)


class TestRunsOfMarks:
    """Canonical ordering in Python is quadratic in a run of marks, so long runs are put in their order before."""

    @given(marked_texts, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
    @example("a" + "\u0301\u0316" * 15, "NFC")
    @example("ΐ" + "\u0344\u0316" * 12, "NFKD")
    @settings(max_examples=some(500))
    @example("a" + "\u0316\u0301" * 100, "NFC")
    def test_every_text_is_normalised_as_python_does(self, text: str, form: Form) -> None:
        text = text.replace("\U000323b0", "")
        assert normalized(form, text) == unicodedata.normalize(form, text)

    @given(marked_texts, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
    @example("a" + "\u0301\u0316" * 14 + "\u0301\u0344\u0316" * 20, "NFC")
    @settings(max_examples=some(500))
    def test_doing_it_again_changes_nothing(self, text: str, form: Form) -> None:
        once = normalized(form, text.replace("\U000323b0", ""))
        assert normalized(form, once) == once
        assert nfc(nfc(text)) == nfc(text)
        assert fold(fold(text)) == fold(text)

    @given(marked_texts)
    def test_no_mark_is_lost(self, text: str) -> None:
        decomposed = sorted(unicodedata.normalize("NFD", nfc(text)))
        assert decomposed == sorted("".join(unicodedata.normalize("NFD", char) for char in text))

    @pytest.mark.parametrize(
        "marks", ["\u0301\u0316", "\u0316\u0301", "\u0344\u0316", "\uff9e\u0301", "\u05b0\u0591\u0301"]
    )
    def test_python_is_never_given_a_long_run_that_is_not_in_order(
        self, monkeypatch: pytest.MonkeyPatch, marks: str
    ) -> None:
        given_: list[tuple[str, str]] = []

        def noted(form: str, text: str) -> str:
            given_.append((form, text))
            return unicodedata.normalize(form, text)  # type: ignore[arg-type]

        monkeypatch.setattr(ours, "unicodedata", SimpleNamespace(normalize=noted, combining=unicodedata.combining))
        for text in ("a" + marks * 1500, marks * 1500, f"a{marks * 9}" * 200, f"か{marks * 30} " * 50):
            nfc(text)
            folded(text)
            words_in(text)
        assert max(most_unordered(*each) for each in given_) <= 2 * LONG_RUN
        assert most_unordered("NFKC", "a" + marks * 1500) > 2 * LONG_RUN
        given_.clear()
        nfc("é" * 10 * PIECE)
        folded("ﷺ" * 10 * PIECE)
        assert max(len(text) for _, text in given_) <= 20 * PIECE


class TestLongTexts:
    """Long texts are worked on in pieces, which nobody can tell by what comes out."""

    @given(st.text(st.sampled_from(HARD + MARKS + " '-1a"), max_size=60), st.integers(1, 7))
    @settings(max_examples=some(300))
    def test_pieces_change_nothing(self, text: str, piece: int) -> None:
        whole = nfc(text), fold(text), folded(text), runs(text), words_in(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ours, "PIECE", piece)
            patch.setattr(words, "PIECE", piece)
            assert (nfc(text), fold(text)) == whole[:2]
            assert runs(text) == whole[3]
            assert words_in(text) == whole[4]

    @given(st.text("ab' 😀", max_size=40), st.integers(1, 5))
    def test_parts_divide_no_run_and_lose_nothing(self, text: str, piece: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ours, "PIECE", piece)
            parts = list(in_parts(text, str.upper, re.compile("[AB']*+")))
        assert "".join(parts) == text.upper()
        assert re.findall("[AB']+", text.upper()) == [run for part in parts for run in re.findall("[AB']+", part)]

    @given(st.text("no w", max_size=60), st.integers(1, 9))
    @example("now" + "o" * 10, 1)
    def test_a_pattern_occurs_where_it_is_found(self, text: str, piece: int) -> None:
        for pattern in (re.compile(r"\bnow\b"), re.compile(r"(?<=[no]\s)[wo]\b"), re.compile("no+w")):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ours, "PIECE", piece)
                assert occurs(pattern, text) == (pattern.search(text) is not None)


class TestLaterUnicode:
    """Code points that Unicode 14 does not know are neither changed nor passed over, whatever Python knows."""

    def test_the_examples_are_unknown_to_unicode_14(self) -> None:
        assert all(ord(char) in UNKNOWN for char in LATER)

    @pytest.mark.parametrize("later", [*LATER, "\u0378", "\U000e0fff", "\U0010ffff"], ids=ascii)
    def test_a_later_character_is_kept_and_keeps_its_neighbours_apart(self, later: str) -> None:
        if later == "\U0010ffff":
            assert ord(later) in UNKNOWN  # a noncharacter
        assert nfc(f"e{later}\u0301") == f"e{later}\u0301"
        assert nfc(f"e\u0301{later}e\u0301") == f"é{later}é"
        assert fold(f"É{later}A\u030a") == f"é{later}å"
        # Marks on both sides are not put in another order.
        assert nfc(f"a\u0307{later}\u0323") == f"\u0227{later}\u0323"
        assert nfc(f"a{later}\u0323\u0307") == f"a{later}\u0323\u0307"
        assert folded(f"é{later}\u0bcd") == f"e{later}\u0bcd"

    @pytest.mark.parametrize("later", [char for char in LATER if char not in "\U0002ebf0\u0cf3"], ids=ascii)
    def test_a_later_character_is_no_part_of_a_word(self, later: str) -> None:
        assert [word for _, word in terms(f"blå{later}hus")] == ["bla", "hus"]
        assert [word for _, word in terms(f"boat{later}house")] == ["boat", "house"]
        assert [word for _, word in terms(f"é\u0b95{later}\u0bcd\u0b99")] == ["e\u0b95", "\u0bcd\u0b99"]

    def test_what_stands_between_later_characters_is_transformed_once(self) -> None:
        seen: list[str] = []

        def noted(part: str) -> str:
            seen.append(part)
            return part.upper()

        later = LATER[0]
        text = f"é{later}b{later}{later}" * 1000 + "é"
        assert around_unknown(text, noted) == text.replace("é", "É").replace("b", "B")
        assert sorted(seen) == ["b", "é"]

    @given(hard_texts, st.sampled_from(LATER), hard_texts)
    def test_a_later_character_divides_a_text_into_two(self, left: str, later: str, right: str) -> None:
        assert nfc(left + later + right) == nfc(left) + later + nfc(right)
        assert fold(left + later + right) == fold(left) + later + fold(right)


class TestSurrogates:
    @pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\ud83d\ude00", "é\udc80"])
    def test_lone_surrogates_are_found(self, text: str) -> None:
        assert has_surrogate(text)

    @given(st.text(st.characters()))
    def test_a_text_has_one_where_utf_8_cannot_carry_it(self, text: str) -> None:
        assert has_surrogate(text) == any(ord(char) in SURROGATES for char in text)


def test_a_table_is_divided_by_a_character_class() -> None:
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x20000), 0x2F800, 0x30000, 0x3134B)))
    block = "b-d\u3005\u3400-\u4dbf\U00020000-\U0003134f"

    def found(**only: str) -> set[str]:
        return set(re.findall(one_of(_unicode14.WORD, **only), everything))  # type: ignore[arg-type]

    inside = set(re.findall(f"[{block}]", everything))
    assert {"b", "\u3005", "\u4dbf", "\U00030000"} <= found(within=block)
    assert found(within=block) == found() & inside
    assert found(without=block) == found() - inside
    in_plane = set(re.findall(one_of(_unicode14.WORD, astral=False, within=block), everything))
    assert in_plane == {char for char in found(within=block) if char <= "\uffff"}
