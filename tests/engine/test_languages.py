"""Languages other than English: recognised, stemmed, mixed, and never guessed from nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import recollect
from recollect.errors import InvalidArgumentError
from recollect.stores.memory import MemoryStore
from recollect.testing.machine import memory_on
from recollect.text.languages import CODES, detected, known, stemmer, stop_words
from recollect.text.words import language_of, terms

#: A sentence, its language, a question, in which no word stands as it does in the sentence.
SAID = {
    "da": ("Vi mødte gamle venner af os på havnen, og de havde fisk med", "hvem mødte vi ved havne, en ven?"),
    "de": ("Wir haben die alten Häuser am Hafen für die Kinder gekauft", "welches Haus haben wir für das Kind?"),
    "es": ("Los niños comieron las manzanas en el jardín de la abuela", "¿qué niño comió la manzana?"),
    "fi": ("Kävelimme eilen rannalla ja ostimme kaksi kissaa, mutta ei koiraa", "milloin me olimme rannoilla, kissat?"),
    "fr": ("Nous avons acheté deux maisons dans le village et une voiture", "quelle maison est dans les villages?"),
    "it": ("I bambini hanno mangiato le mele nel giardino della nonna", "quale bambino era nei giardini?"),
    "nl": ("We hebben de oude huizen aan de haven gekocht voor de kinderen", "welk huis is er bij havens?"),
    "no": ("Vi har kjøpt de gamle husene på havna og to båter", "hvor er husa og båten vår?"),
    "pt": ("Os meninos comeram as maçãs no jardim da avó e não dormiram", "qual menino comeu uma maçã?"),
    "ru": ("Мы купили старые дома у моря и две лодки для детей", "где наш дом и лодка?"),
    "sv": ("Vi har köpt de gamla husen vid hamnen och två båtar", "var är huset och båten?"),
}


@pytest.mark.parametrize("code", SAID)
def test_a_sentence_tells_its_language(code: str) -> None:
    assert language_of(SAID[code][0]) == code


@pytest.mark.parametrize("code", SAID)
def test_a_question_finds_what_was_said_in_other_forms(code: str) -> None:
    said, asked = SAID[code]
    memory = memory_on(MemoryStore())
    wanted = memory.remember(said, id="wanted")
    for other, (text, _) in SAID.items():
        if other != code and not {other, code} <= {"da", "no", "sv"}:  # which share words
            memory.remember(text, id=other)
    hits = memory.recall(asked, language=code)
    assert hits[0].record == wanted
    assert any(not word.like for word in hits[0].why.words)  # by a stem, not by likeness


@pytest.mark.parametrize("text", ["", "tea", "42", "Ana Bob", "def f(x): return x", "la la la la la"])
def test_what_is_too_short_to_tell_is_english(text: str) -> None:
    assert language_of(text) == "en"


def test_english_conversation_is_not_taken_for_another_language() -> None:
    for text in (
        "I was in Den Haag as a child and am on my way to the Las Vegas of old",
        "Die Hard is on, so come over and we can see it",
        "He was born in Les Deux Alpes, and he is from La Paz now",
    ):
        assert language_of(text) == "en"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wir heizen mit Gas.", "de"),
        ("Je joue du piano.", "fr"),
        ("Der Hund bellt nachts im Garten.", "de"),
        ("Wir heizen", "en"),
    ],
)
def test_two_function_words_are_enough_if_they_are_half_of_a_text(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    "text", ["Ana de la Cruz", "Jean de la Fontaine", "Du Pont de Nemours", "La La Land", "Rio de Janeiro", "Da Vinci"]
)
def test_names_are_of_no_language(text: str) -> None:
    assert language_of(text) == "en"


def test_tags_are_read_by_their_primary_part() -> None:
    assert [known(tag) for tag in ("de-AT", "NB", "xx", "", None)] == ["de", "no", None, None, None]


@pytest.mark.parametrize("code", CODES)
def test_every_language_has_a_stemmer_and_folded_function_words(code: str) -> None:
    assert isinstance(stemmer(code).stemWord("x"), str)
    words = stop_words(code)
    assert len(words) > 30
    assert detected(sorted(words)[:30]) in (code, None, "no", "da")  # those two share most of theirs


def test_a_language_that_is_set_is_kept_with_the_record_and_serves_the_question() -> None:
    with recollect.open(":memory:", language="de") as memory:
        record = memory.remember("Häuser")
        assert record.language == "de"
        assert memory.remember("houses", language="en").language == "en"
        assert memory.recall("Haus")[0].record == record
    for wrong in ("", "d", "de_AT", 7):
        with pytest.raises(InvalidArgumentError, match="language"):
            recollect.open(":memory:", language=wrong)  # type: ignore[arg-type]


def test_the_language_of_most_records_serves_a_question_that_does_not_tell() -> None:
    memory = memory_on(MemoryStore())
    memory.remember(SAID["de"][0], id="a")
    assert [hit.record.id for hit in memory.recall("Haus")] == ["a"]
    assert memory.recall("Haus")[0].why.words[0].like == ""


def test_a_word_that_tells_no_language_is_tried_in_those_that_are_spoken() -> None:
    memory = memory_on(MemoryStore())
    train = memory.remember("Der Zug nach Hamburg fährt um neun", language="de")
    memory.remember("hello world")
    memory.remember("bonjour tout le monde")
    assert [hit.record for hit in memory.recall("Züge")] == [train]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("我下周去杭州看园艺展览。", "园艺展览在哪里？"),
        ("来週、京都の友達に会います。", "京都で誰に会いますか"),
        ("ฉันชอบกินข้าวผัดกุ้ง", "ข้าวผัดอะไร"),
        ("우리는 내일 부산에 갑니다", "부산에 언제 가나요"),
        ("Ana 喜欢 window seats 在飞机上", "飞机上 which seat?"),
    ],
)
def test_scripts_without_spaces_and_mixed_texts_are_found(said: str, asked: str) -> None:
    memory = memory_on(MemoryStore())
    memory.remember_all(["今天天气很好", "今日は寒いです", "วันนี้อากาศดี", "오늘은 춥다", "a plain line"])
    wanted = memory.remember(said)
    assert memory.recall(asked)[0].record == wanted


def test_likeness_does_not_depend_on_what_others_said_or_what_is_forgotten() -> None:
    memory = memory_on(MemoryStore())
    ana = memory.scoped(user="ana")
    ana.remember("kitten schläft", language="de")
    before = [(hit.record.id, hit.score) for hit in ana.recall("kiten")]
    assert before
    other = memory_on(MemoryStore())
    other.remember("a kitten", language="en", user="bob", id="b")
    other.scoped(user="ana").remember("kitten schläft", language="de")
    assert [(hit.record.id, hit.score) for hit in other.scoped(user="ana").recall("kiten")] == before
    other.forget("b")
    assert [hit.record.content for hit in other.recall("kiten")] == ["kitten schläft"]


def test_terms_are_a_pure_function_of_text_and_language() -> None:
    def of(language: str) -> Callable[[str], list[str]]:
        return lambda text: [term for term, _ in terms(text, language)]

    assert of("de")("Die Häuser und das Haus") == ["haus", "haus"]
    assert of("en")("Die Häuser") == ["die", "hauser"]
