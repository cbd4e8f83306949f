"""From text to terms: English, other alphabets, scripts without spaces, and all of them at once."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.text import answers, words
from recollect.text.answers import Kind, offered
from recollect.text.english import IRREGULAR, STOP_WORDS
from recollect.text.folding import folded
from recollect.text.unicode import nfc
from recollect.text.words import MAX_WORD, ends_with_question, letters, marked_runs, ngrams, runs, stem, terms, trigrams

# From the sample vocabulary of the English stemmer at snowballstem.org, and the exceptions that its page lists.
SNOWBALL = """
consign consign, consigned consign, consigning consign, consignment consign, consist consist, consisted consist,
consistency consist, consistent consist, consistently consist, consisting consist, consists consist,
consolation consol, consolations consol, consolatory consolatori, console consol, consoled consol, consoles consol,
consolidate consolid, consolidated consolid, consolidating consolid, consoling consol, consolingly consol,
consols consol, consonant conson, consort consort, consorted consort, consorting consort, conspicuous conspicu,
conspicuously conspicu, conspiracy conspiraci, conspirator conspir, conspirators conspir, conspire conspir,
conspired conspir, conspiring conspir, constable constabl, constables constabl, constance constanc,
constancy constanc, constant constant, knack knack, knackeries knackeri, knacks knack, knag knag, knave knave,
knaves knave, knavish knavish, kneaded knead, kneading knead, knee knee, kneel kneel, kneeled kneel, kneeling kneel,
kneels kneel, knees knee, knell knell, knelt knelt, knick knick, knif knif, knight knight, knightly knight,
knights knight, knit knit, knits knit, knitted knit, knitting knit, knob knob, knobs knob, knock knock, knocked knock,
knocker knocker, knockers knocker, knocking knock, knocks knock, knopp knopp, knot knot, knots knot,
skis ski, skies sky, idly idl, gently gentl, ugly ugli, early earli, singly singl, sky sky, news news, howe howe,
atlas atlas, cosmos cosmos, bias bias, andes andes, inning inning, outing outing, canning canning, herring herring,
earring earring, proceed proceed, exceed exceed, succeed succeed, generate generat, generates generat,
general general, communication communic, arsenal arsenal, ties tie, cries cri, gas gas, kiwis kiwi, gaps gap,
hopping hop, hoping hope, luxuriated luxuri, by by, say say, cry cri
"""


#: Parts of texts, of which some together tell a time or a number.
WORDS_OF_ANSWERS = (
    "last next every year Week summer ago Since one twelve half 19 20 2024 12:30 7: : \u2019s \u00e9 _ 3".split()
)
WORDS_OF_ANSWERS += [" ", "  ", "\n"]


def of(text: str) -> list[str]:
    return [term for term, _ in terms(text)]


class TestEnglish:
    @pytest.mark.parametrize(("word", "expected"), [pair.split() for pair in SNOWBALL.split(",")])
    def test_words_have_the_stems_that_snowball_publishes(self, word: str, expected: str) -> None:
        assert stem(word) == expected

    @pytest.mark.parametrize(
        ("forms", "base"),
        [
            ("go went gone going", "go"),
            ("buy bought buys buying", "buy"),
            ("think thought thinking", "think"),
            ("child children kid kids", "child"),
            ("mouse mice", "mous"),
            ("leave leaves left leaving", "leav"),  # of leaving people tell more than of leaves
            ("live lives lived", "live"),
            ("leave left", "leav"),
            ("run ran running runs", "run"),
            ("drive drove driven driving drives", "drive"),
        ],
    )
    def test_irregular_forms_meet_their_base(self, forms: str, base: str) -> None:
        assert {stem(form) for form in forms.split()} == {base}

    def test_every_irregular_form_has_the_stem_of_its_base(self) -> None:
        assert all(stem(form) == stem(base) for form, base in IRREGULAR.items() if IRREGULAR.get(base, base) == base)
        assert len(IRREGULAR) == 210

    @pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u2018", "\u02bc", "\uff07"])
    def test_apostrophes_of_every_kind_are_one(self, apostrophe: str) -> None:
        assert of(f"Caroline{apostrophe}s cats don{apostrophe}t") == ["carolin", "cat"]
        assert of(f"Zoë{apostrophe}s cats don{apostrophe}t") == ["zoe", "cat"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("I've been thinking about what you'd said", ["think", "say"]),
            ("won't can't it's that's", []),
            ("that'll, who'd've", []),  # no stop-words themselves, but what is left of them is
            ("The cat sat on the mat", ["cat", "sit", "mat"]),
            ("rock'n'roll", ["rock", "roll"]),
            ("dogs' dinner", ["dog", "dinner"]),
            ("'quoted' words", ["quot", "word"]),
            ("5'10 tall", ["5", "10", "tall"]),
            ("version 3.14 of a1b2, C++ and e-mail", ["version", "3", "14", "a1b2", "c", "e", "mail"]),
            ("foo_bar", ["foo", "bar"]),
            ("user@example.com", ["user", "exampl", "com"]),
            ("", []),
            (" \n\t!?", []),
            ("2026-03-01", ["2026", "03", "01"]),
        ],
    )
    def test_words_of_a_text(self, text: str, expected: list[str]) -> None:
        assert of(text) == expected

    def test_stop_words_are_the_182_of_the_specification_and_none_is_a_term(self) -> None:
        assert len(STOP_WORDS) == 182
        assert {"a", "yourselves", "shan't", "re", "ve", "ll"} <= STOP_WORDS
        assert of(" ".join(sorted(STOP_WORDS))) == []
        assert of(" ".join(sorted(STOP_WORDS)).upper().replace("'", "\u2019")) == []

    def test_each_term_says_which_word_it_came_from(self) -> None:
        assert [tuple(term) for term in terms("Running mice")] == [("run", "running"), ("mous", "mice")]

    def test_a_word_is_counted_as_often_as_it_stands_there(self) -> None:
        assert of("tea, Tea and TEA") == ["tea", "tea", "tea"]


class TestOtherAlphabets:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("café Ångström façade coöperate", ["cafe", "angstrom", "facad", "cooper"]),
            ("cafe\u0301", ["cafe"]),
            ("Straße", ["strass"]),
            ("łódź", ["łodz"]),  # the stroke is part of the letter
            ("ΕΛΛΗΝΙΚΆ ελληνικά Ελληνικα", ["ελληνικα"] * 3),
            ("ὁδός ὉΔΌΣ", ["οδοσ"] * 2),
            ("Москва МОСКВА", ["москва"] * 2),
            ("ёлка елка", ["елка"] * 2),
            ("שלום עולם", ["שלום", "עולם"]),
            ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
            ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
            ("ＡＢＣ１２３", ["abc123", "abc", "123"]),
            ("ﬁnding", ["find"]),
            ("x² ½", ["x2", "2", "1", "2"]),
        ],
    )
    def test_words_are_folded_and_accents_taken_off(self, text: str, expected: list[str]) -> None:
        assert of(text) == expected


class TestWithoutSpaces:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("我喜欢猫", ["我", "喜", "欢", "猫", "我喜", "喜欢", "欢猫"]),
            ("猫", ["猫"]),
            ("东西，南北。", ["东", "西", "东西", "南", "北", "南北"]),
            ("東京タワー", ["東", "京", "た", "わ", "ー", "東京", "京た", "たわ", "わー"]),
            ("ｶﾀｶﾅ", ["か", "た", "か", "な", "かた", "たか", "かな"]),
            ("ジョン・スミス", ["じ", "ょ", "ん", "じょ", "ょん", "す", "み", "す", "すみ", "みす"]),
            ("한국어를 좋아해", ["한국", "국어", "어를", "좋아", "아해"]),
            ("네", ["네"]),
            ("집을 집에서 집", ["집을", "집", "집에", "에서", "집", "집"]),
            ("ภาษาไทย", ["ภาษ", "าษา", "ษาไ", "าไท", "ไทย"]),
            ("ฉัน", ["ฉัน"]),
            ("ฉ", ["ฉ"]),
            ("ລາວ", ["ລາວ"]),
            ("ខ្មែរ។ខ្មែ", ["ខ្ម", "្មែ", "មែរ", "ខ្ម", "្មែ"]),
        ],
    )
    def test_runs_give_their_n_grams(self, text: str, expected: list[str]) -> None:
        assert of(text) == expected

    def test_any_part_of_a_sentence_has_its_terms_in_the_sentence(self) -> None:
        sentence = "昨天我和小王在上海喝茶"
        for start in range(len(sentence)):
            for end in range(start + 1, len(sentence) + 1):
                assert set(of(sentence[start:end])) <= set(of(sentence))

    def test_an_n_gram_came_from_no_word(self) -> None:
        assert {word for _, word in terms("我喜欢 ภาษา 한국")} == {""}


class TestMixed:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("I like 寿司 and 라면!", ["like", "寿", "司", "寿司", "라면"]),
            ("iPhone的价格", ["iphon", "的", "价", "格", "的价", "价格"]),
            ("漢字and kana", ["漢", "字", "漢字", "kana"]),
            ("🎈party🎉 time", ["🎈", "parti", "🎉", "time"]),
            ("👩‍👩‍👧 family", ["👩", "👩", "👧", "famili"]),
            ("naïve🎈coöp", ["naiv", "🎈", "coop"]),
            ("한글 hangul ひらがな", ["한글", "hangul", "ひ", "ら", "が", "な", "ひら", "らが", "がな"]),
        ],
    )
    def test_scripts_keep_apart(self, text: str, expected: list[str]) -> None:
        assert of(text) == expected

    @given(st.text(st.characters(max_codepoint=127), max_size=30))
    @example("5'10 rock'n5 o'clock3")
    def test_what_stands_elsewhere_in_a_text_does_not_change_a_word(self, text: str) -> None:
        alone = of(text)
        for more in ("🎈", "é", "我"):
            assert of(f"{text} {more}") == alone + of(more)


class TestAnyText:
    @given(st.text(st.characters()))
    def test_no_text_is_too_odd(self, text: str) -> None:
        for term, word in terms(text):
            assert term
            assert len(term) <= MAX_WORD
            assert not any(char.isspace() for char in term)
            assert word not in STOP_WORDS or any(run.partition("'")[0] != word for run in marked_runs(text))
            assert term.encode("utf-8")

    @given(
        st.text(st.characters(codec="utf-8") | st.sampled_from("éÅ\u0301\u0323각ᄀ\u1161が\u3099\u0958\u212b\u1fc1İ'"))
    )
    def test_composed_and_decomposed_texts_have_the_same_terms(self, text: str) -> None:
        expected = list(terms(text))
        for form in ("NFC", "NFD"):
            if not _later(text):
                assert list(terms(unicodedata.normalize(form, text))) == expected

    @given(st.text(st.sampled_from("aAbé É'\u2019?.我ほ한ภ \n")))
    def test_runs_are_pieces_of_the_folded_text_in_their_order(self, text: str) -> None:
        whole, at = folded(text), 0
        for run, _ in runs(text):
            at = whole.index(run, at) + len(run)

    @given(st.text(st.characters()))
    def test_folding_for_words_is_idempotent(self, text: str) -> None:
        assert folded(folded(text)) == folded(text)

    @pytest.mark.parametrize(
        "text", ["x" * 1_000_000, "é" * 1_000_000, "a'" * 500_000, "'" * 1_000_000, "é'" * 300_000]
    )
    def test_very_long_runs_are_read(self, text: str) -> None:
        assert all(len(term) <= MAX_WORD for term in of(text))

    def test_a_run_that_is_no_word_counts_by_its_beginning(self) -> None:
        assert of("x" * 1000) == of("x" * MAX_WORD) == ["x" * MAX_WORD]
        assert len(of("我" * 10_000)) == 19_999


def _later(text: str) -> bool:
    """Return whether a text has characters that only Unicodes after 14 know, whose normal forms are Python's affair."""
    return nfc(text) != unicodedata.normalize("NFC", text)


class TestParts:
    @given(st.text() | st.text(alphabet=st.sampled_from("abZ09'\u2019 .\n"), max_size=12))
    def test_letters_are_runs_of_ascii_letters_and_single_digits(self, text: str) -> None:
        plain = text.replace("\u2019", "'")
        expected = frozenset(re.findall(r"[a-z]+|[0-9]", plain.lower())) if plain.isascii() else None
        assert letters(text) == expected

    @given(st.lists(st.sampled_from(WORDS_OF_ANSWERS) | st.text(max_size=2), max_size=6).map("".join))
    def test_what_a_text_offers_is_what_its_rules_find(self, text: str) -> None:
        assert (Kind.TIME in offered(text)) == (answers._TIME.search(text) is not None)
        assert (Kind.NUMBER in offered(text)) == (answers._NUMBER.search(text) is not None)

    @given(st.text(alphabet=st.sampled_from("aAZ\u00e9\u00c9 \n\t,;')(\".'_9"), max_size=10))
    def test_a_name_is_a_capital_that_begins_no_sentence(self, text: str) -> None:
        named = re.search(r"(?<=[\w,;')]\s)[\"'(]?[A-Z]\w", text) is not None
        if named or text.isascii():
            assert (Kind.NAME in offered(text)) == named

    @pytest.mark.parametrize("text", ["Why?", "Why? ", "Why?\n", "为什么？", "لماذا؟", "Really⁇", "?"])
    def test_a_text_that_asks_ends_with_a_question_mark(self, text: str) -> None:
        assert ends_with_question(text)

    @pytest.mark.parametrize("text", ["", "Why", "Why?!", "Why? Because.", "(why?)", '"Why?"'])
    def test_others_do_not(self, text: str) -> None:
        assert not ends_with_question(text)

    @pytest.mark.parametrize(
        ("word", "expected"),
        [
            ("cat", {"#ca", "cat", "at#"}),
            ("a", {"#a#"}),
            ("", set()),
            ("aaaa", {"#aa", "aaa", "aa#"}),
            ("été", {"#ét", "été", "té#"}),
        ],
    )
    def test_trigrams_are_those_of_the_marked_word(self, word: str, expected: set[str]) -> None:
        assert trigrams(word) == expected

    @given(st.text(st.characters(exclude_characters="#"), min_size=1))
    def test_a_word_has_as_many_trigrams_as_letters_at_most(self, word: str) -> None:
        assert 1 <= len(trigrams(word)) <= len(word)
        assert all(len(gram) == 3 for gram in trigrams(word))

    @pytest.mark.parametrize(
        ("run", "expected"),
        [
            ("我", ["我"]),
            ("我喜", ["我", "喜", "我喜"]),
            ("한", ["한"]),
            ("한국", ["한국"]),
            ("ภา", ["ภา"]),
            ("ภาษ", ["ภาษ"]),
        ],
    )
    def test_n_grams_are_as_long_as_the_script_asks(self, run: str, expected: list[str]) -> None:
        assert ngrams(run) == expected


def test_the_words_of_a_long_text_are_not_kept_for_the_next_who_asks() -> None:
    for text, kept in (("tea and boats " * 10, 1), ("tea and boats " * 1000, 0)):
        words._kept_runs.cache_clear()
        words._kept_letters.cache_clear()
        words.analyzed(text)
        words.letters(text)
        assert words._kept_runs.cache_info().currsize == kept
        assert words._kept_letters.cache_info().currsize == kept


@pytest.mark.parametrize("sign", ["\ufdfa", "\ufdfb", "\u3316", "\u33af", "\ufdfa ", "a\u3316"])
def test_signs_that_stand_for_phrases_give_no_more_terms_than_a_text_has_bytes(sign: str) -> None:
    for count in (20_000, 40_000):
        text = sign * count
        size = len(text.encode())
        assert len(terms(text)) <= size + words._SPARE
        assert sum(len(run) for run, _ in runs(text)) <= 1.5 * size + words._SPARE
    assert terms(f"{sign * 50} tea")[-1] == ("tea", "tea")


@given(st.text(st.characters(max_codepoint=0x2FF) | st.sampled_from("我喜欢かなภาษา한국"), max_size=400))
def test_a_text_as_people_write_it_is_read_to_its_end(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "_SPARE", 4)  # for what a few signs as short as "½" become longer by
        assert terms(text.replace("½", "").replace("¼", "").replace("¾", "") + " tea")[-1] == ("tea", "tea")
