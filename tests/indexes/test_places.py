"""The occurrences in some documents, which are looked up for frequent terms and compared for others."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.indexes.test_novelty import some_turns
from tests.indexes.test_segments import built

from recollect.indexes.documents.columns import Document
from recollect.indexes.words import segment as segments
from recollect.indexes.words.segment import POSITION_BITS
from recollect.indexes.words.titles import is_word


@pytest.mark.parametrize("frequent", [1, 3, 4096])
@pytest.mark.parametrize("most_ranges", [0, 2, 8])
@pytest.mark.parametrize("part", [1, 5, 2**16])
@pytest.mark.parametrize("near", [1, 2, 256])
@given(st.data(), some_turns.filter(bool))
def test_they_are_those_of_the_documents(
    frequent: int, most_ranges: int, part: int, near: int, data: st.DataObject, turns: list[Document]
) -> None:
    segment = built(turns)
    numbers = sorted(data.draw(st.sets(st.integers(0, segment.count - 1), min_size=1)))

    with patch.multiple(segments, _FREQUENT=frequent, _MOST_RANGES=most_ranges, _PART=part, _NEAR=near):
        found = segment.places_in(np.array(numbers))

    owners = (segment.occurrences >> POSITION_BITS).tolist()
    assert sorted(found.tolist()) == [at for at, owner in enumerate(owners) if owner in numbers]


@given(some_turns.filter(bool))
def test_whether_a_term_is_a_word_is_the_same_when_it_is_asked_again(turns: list[Document]) -> None:
    segment = built(turns)
    terms = np.arange(len(segment.frequencies)).repeat(2)

    wanted = [is_word(segment.terms[term]) for term in terms.tolist()]
    assert segment.are_words(terms).tolist() == wanted
    assert segment.are_words(terms[::-1]).tolist() == wanted[::-1]
