"""Kernels on arrays that a file can contain: whatever passes the checks of a segment leads to no index out of bounds.

In a build that checks every index (`make test-checked`) such an index ends the process; elsewhere these tests only
show that the kernels end and agree.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import fresh
from tests.examples import some
from tests.text.conversations import document

from recollect.indexes.documents.columns import COLUMNS, NONE, Document
from recollect.indexes.kernels import blocks, choose
from recollect.indexes.kernels import with_numpy as numpy_kernels
from recollect.indexes.kernels.native import kernels as native_kernels
from recollect.indexes.kernels.native import library
from recollect.indexes.kernels.types import About, Wanted
from recollect.indexes.scoring.scores import weighed
from recollect.indexes.scoring.signals import read
from recollect.indexes.words.index import WordIndex
from recollect.indexes.words.segment import Builder, Segment, check_arrays

WORDS = "tea boat red cat harbour".split()
#: The columns that lead kernels from one place to another, or decide what they add up.
_CHANGED = (
    "session",
    "speaker",
    "before",
    "after",
    "length",
    "weight",
    "offers",
    "standing",
    "asks",
    "micros",
    "civil",
)
#: In a checked build, an occurrence of a document that does not exist.
_OUT_OF_BOUNDS = """
import numpy as np
from recollect.indexes.kernels.native.kernels import NativeKernels
from recollect.indexes.words.index import WordIndex
from recollect.indexes.words.postings import Postings
table = WordIndex().view().table
spans, lengths = np.array([[0, 1, 0, 0]]), np.ones(1, dtype=np.uint16)
postings = Postings(np.array([500 << 16]), np.zeros(0, dtype=np.int64), spans, lengths)
NativeKernels().tally(postings, table)
"""


def _segment(turns: list[tuple[str, int]]) -> Segment:
    builder = Builder()
    for at, (text, session) in enumerate(turns):
        place: dict[str, Any] = {"session": f"s{session}", "position": at} if session else {}
        builder.add(document(f"r{at}", text, **place))
    return builder.segment()


def _hostile(segment: Segment, data: st.DataObject) -> Segment | None:
    """Return the segment with other values in its columns; None if the checks refuse them."""
    arrays = {name: array.copy() for name, array in segment.arrays.items()}
    bounds = {
        "session": (NONE, segment.session_count - 1),
        "speaker": (NONE, len(segment.speakers) - 1),
        **dict.fromkeys(("before", "after"), (NONE, segment.count - 1)),
        "length": (0, 2**31 - 1),
        "asks": (0, 1),
    }
    for name in data.draw(st.sets(st.sampled_from(_CHANGED), min_size=1)):
        kind = np.dtype(COLUMNS[name])
        least, most = bounds[name] if name in bounds else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
        beyond = data.draw(st.sampled_from([0, 0, 0, 1])) if name in bounds and name not in ("asks", "length") else 0
        values = st.integers(least - beyond, most + beyond)
        arrays[name][:] = data.draw(st.lists(values, min_size=segment.count, max_size=segment.count))
    try:
        check_arrays(arrays, segment.speakers)
    except ValueError:
        return None
    return Segment(arrays, segment.speakers)


@settings(max_examples=some(150), deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), st.integers(0, 2)), min_size=1),
    st.data(),
)
def test_arrays_that_pass_the_checks_lead_to_no_index_out_of_bounds(
    turns: list[tuple[str, int]], data: st.DataObject
) -> None:
    segment = _hostile(_segment(turns), data)
    if segment is None:
        return
    index = WordIndex(segment)
    later: list[Document] = [document("later", "tea boat", session="s1", position=99)]
    index.apply(["r0"], later if data.draw(st.booleans()) else [])
    view = index.view()
    asked = read("the red boat and the tea", view, date(2026, 1, 1))
    about = About(data.draw(st.sampled_from([NONE, 0])), data.draw(st.sampled_from([(), (1, 2)])))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(choose, "LEAST", 0)
        patched.setattr(choose, "CHANGED", 1)
        patched.setattr(choose, "FEW", 0)
        patched.setattr(blocks, "BITS", 2)
        for kernels in (native_kernels.NativeKernels(), numpy_kernels.KERNELS):
            with np.errstate(all="ignore"):
                patched.setattr("recollect.indexes.scoring.scores.chosen", lambda kernels=kernels: kernels)
                query = weighed(view, asked.asked, asked.sequence)
                found = query.reach_best(about, Wanted(2, 2))
                kernels.best_of(found, np.zeros(0, dtype=np.int64), view.table, about, 2)
                factors = np.full(len(found.numbers), 1 << 16)
                where = query.postings, view.table, query.weights, found.numbers
                kernels.matched(*where)
                kernels.explained(*where, factors, np.arange(len(query.terms)))
                query.reach(np.zeros(0, dtype=np.int64))


@pytest.mark.skipif(not library.lib.rc_checked(), reason="the build does not check indexes: make test-checked")
def test_a_checked_build_ends_the_process_at_an_index_out_of_bounds(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"index 500 is out of bounds of \d+ elements"):
        fresh.run(_OUT_OF_BOUNDS, tmp_path)
