"""The language of short sentences in 85 languages, from the translations that Django carries."""

from __future__ import annotations

import gettext
import random
import re
from collections.abc import Iterator
from pathlib import Path

import django
import pytest

from recollect.text import languages
from recollect.text.languages import CODES, detected, stop_words
from recollect.text.words import marked_runs, terms

SENTENCES = 20
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd]|<[^>]*>|&\w+;")


def catalogs() -> Iterator[tuple[str, dict[str, str]]]:
    for path in sorted(Path(django.__file__).parent.glob("**/locale/*/LC_MESSAGES/django.mo")):
        with path.open("rb") as file:
            translations = gettext.GNUTranslations(file)
        yield path.parts[-3], {key: text for key, text in translations._catalog.items() if isinstance(key, str)}  # type: ignore[attr-defined]


def sentences() -> dict[str, list[str]]:
    """Twenty sentences of five to twelve words for each language that has as many."""
    found: dict[str, set[str]] = {}
    for code, texts in catalogs():
        for original, text in texts.items():
            plain = _PLACEHOLDER.sub("", text).strip()
            if original and text != original and 5 <= len(plain.split()) <= 12 and "\n" not in plain:
                found.setdefault(code, set()).add(plain)
    enough = {code: sorted(texts) for code, texts in sorted(found.items()) if len(texts) >= SENTENCES}
    return {code: random.Random(1).sample(texts, SENTENCES) for code, texts in enough.items()}


def language(code: str) -> str:
    """The language of a folder: Bokmål and Nynorsk have one stemmer."""
    primary = code.split("_")[0]
    return "no" if primary in ("nb", "nn") else primary


def test_a_language_is_stated_wrongly_for_two_sentences_in_a_hundred_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    said = sentences()
    assert len(said) >= 80

    def wrong() -> list[tuple[str, str]]:
        stated = [(code, detected(marked_runs(text))) for code, texts in said.items() for text in texts]
        return [(code, found) for code, found in stated if found is not None and found != language(code)]

    count = sum(map(len, said.values()))
    assert 100 * len(wrong()) <= 2 * count
    monkeypatch.setattr(languages, "_OTHERS", {})
    languages._languages_of.cache_clear()
    assert 100 * len(wrong()) > 4 * count  # the control: without the languages that have no stemmer
    languages._languages_of.cache_clear()


def test_a_third_of_short_sentences_of_a_language_with_a_stemmer_are_recognised() -> None:
    said = {code: texts for code, texts in sentences().items() if language(code) in CODES and language(code) != "en"}
    right = sum(detected(marked_runs(text)) == language(code) for code, texts in said.items() for text in texts)
    assert len(said) >= 15
    assert 3 * right >= sum(map(len, said.values()))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tôi sống ở Hà Nội", ["toi", "song", "o", "ha", "noi"]),
        ("Cô ấy và tôi đi Đà Nẵng", ["co", "ay", "va", "toi", "đi", "đa", "nang"]),
        ("Živim u Nišu već dve godine", ["zivim", "nisu", "vec", "dve", "godin"]),
        ("Nama saya Dedi dan saya tinggal di Bandung", ["dedi", "tinggal", "bandung"]),
    ],
)
def test_no_content_word_of_a_language_without_a_stemmer_is_dropped(text: str, words: list[str]) -> None:
    assert detected(marked_runs(text)) is None
    assert set(words) <= {term for term, _ in terms(text)}


def test_a_stop_word_of_another_language_with_other_accents_is_none() -> None:
    assert "noi" in stop_words("it")
    assert [term for term, _ in terms("Nội", "it")] == ["noi"]
    assert [term for term, _ in terms("noi", "it")] == []
