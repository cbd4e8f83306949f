"""Misspelt names of speakers: their index finds what a comparison with each name does, is bounded and thread-safe."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.indexes.documents.row_data import Speakers
from recollect.text.likeness import LEAST_LETTERS, one_edit

WORDS = st.text("abäç", min_size=1, max_size=7)
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


@given(st.lists(NAMES, unique=True, max_size=12), st.lists(WORDS, min_size=1, max_size=4), st.integers(0, 12))
def test_the_index_of_misspellings_finds_what_a_comparison_with_each_name_does(
    names: list[str], asked: list[str], first: int
) -> None:
    speakers = Speakers((name, ()) for name in names[:first])
    for word in asked:  # also between additions
        speakers.almost(word)
    for name in names[first:]:
        speakers.add(name, ())
    for word in asked:
        expected = {
            number
            for number, name in enumerate(speakers.folded)
            if any(len(each) >= LEAST_LETTERS and one_edit(word, each) for each in name.split())
        }
        assert speakers.almost(word) == expected


def test_a_name_that_is_longer_than_any_word_of_a_question_takes_no_memory() -> None:
    speakers = Speakers((letter * 1000, ()) for letter in "abcdefgh")
    assert speakers.almost("a" * 64) == set()
    assert speakers.nbytes == 0
    speakers.add("melanie", ())
    assert speakers.almost("melanei") == {8}
    assert 1000 < speakers.nbytes < 5000


@pytest.fixture
def _switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_switching")
def test_threads_look_up_misspellings_while_names_are_added() -> None:
    speakers, errors = Speakers(), []
    added = threading.Event()

    def look_up() -> None:
        while not added.is_set():
            try:
                speakers.almost("melanie")
            except (RuntimeError, KeyError) as error:
                errors.append(error)
                return

    readers = [threading.Thread(target=look_up) for _ in range(3)]
    for reader in readers:
        reader.start()
    for at in range(3000):  # each without one letter is the same word, so its set grows while others read it
        speakers.add("melanie"[: at % 8] + chr(0x4E00 + at) + "melanie"[at % 8 :], ())
    added.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert len(speakers.almost("melanie")) == 3000
