"""The frequencies of words in general language: what the files say, and what they are for."""

from __future__ import annotations

import struct
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import pytest
from tests.paths import ROOT

import recollect
from recollect.text.background import DIGESTS, background_of, file_of
from recollect.text.languages import CODES
from recollect.text.words import stem


def read(path: Path) -> dict[int, tuple[int, int]]:
    """The file by the words of its description: the hash of each stem, its texts and its occurrences, times 16."""
    data = path.read_bytes()
    assert data[:16] == b"recollect.words\0"
    levels, stems = struct.unpack_from("<2I", data, 16)
    texts = struct.unpack_from(f"<{levels}I", data, 24)
    occurrences = struct.unpack_from(f"<{levels}I", data, 24 + 4 * levels)
    keys = struct.unpack_from(f"<{stems}I", data, 24 + 8 * levels)
    level = data[24 + 8 * levels + 4 * stems :]
    assert len(level) == stems
    return {key: (texts[at], occurrences[at]) for key, at in zip(keys, level, strict=True)}


@pytest.mark.parametrize("language", CODES)
def test_a_file_is_small_sorted_and_the_one_that_the_rules_name(language: str) -> None:
    path = file_of(language)
    assert path.stat().st_size <= 60_000
    assert sha256(path.read_bytes()).hexdigest()[:16] == DIGESTS[language]
    found = read(path)
    assert list(found) == sorted(found)
    assert len(found) > 5000
    assert all(0 < texts <= occurrences and texts <= 300 * 16 for texts, occurrences in found.values())
    background = background_of(language)
    assert background is not None
    assert background.expected("qqqqqqq") == (0, 0)
    if sample := {"en": "work", "de": "Arbeit", "es": "casas", "ru": "работа"}.get(language):
        term = stem(sample.lower(), language)
        assert background.expected(term) == found[crc32(term.encode())]


def test_every_language_with_a_stemmer_has_a_background_and_no_other_has() -> None:
    assert sorted(DIGESTS) == sorted(CODES)
    assert background_of("ja") is None


@pytest.mark.parametrize(
    ("language", "word", "frequency"),
    # Of wordfreq 3.1.1, among the words that are no function words; the levels are quarters of a power of 2.
    [("en", "want", 3.06e-3), ("en", "boat", 1.43e-4), ("en", "tea", 1.10e-4), ("de", "haus", 9.43e-4)],
)
def test_a_word_is_as_frequent_as_in_the_lists(language: str, word: str, frequency: float) -> None:
    background = background_of(language)
    assert background is not None
    texts, occurrences = background.expected(word)
    assert occurrences / 16 == pytest.approx(300 * 40 * frequency, rel=0.1)
    assert texts / 16 == pytest.approx(300 * (1 - (1 - frequency) ** 40), rel=0.1)


def test_a_frequent_word_counts_less_than_a_rare_one_that_as_few_records_have() -> None:
    memory = recollect.open(":memory:")
    memory.remember_all(["I want a new desk", "The cluster runs Kubernetes", "Ana has a cat"])
    want, kubernetes = memory.recall("do they want Kubernetes?")[::-1]
    assert (want.record.text, kubernetes.record.text) == ("I want a new desk", "The cluster runs Kubernetes")
    assert kubernetes.score > 1.5 * want.score


def test_the_licence_is_named_where_the_files_are_and_in_the_wheel() -> None:
    notice = (ROOT / "NOTICE").read_text("utf-8")
    for text in (notice, file_of("en").with_name("LICENSE.txt").read_text("utf-8")):
        assert "wordfreq 3.1.1" in text
        assert "https://creativecommons.org/licenses/by-sa/4.0/" in text
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'license-files = ["LICENSE", "NOTICE"]' in project
    assert '"*.bin"' in project
