"""The record cache: bounded by bytes; what was not read for the longest time is evicted first."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from tests.indexes import strategies as own

from recollect.engine.index.caches import MOST_BYTES, MOST_OF_ONE, RecordCache
from recollect.engine.read.record_loader import memory_bytes
from recollect.records.frozen import unchecked
from recollect.records.record import Record


def taken(value: Any) -> int:
    """Return the memory of a value, all that it refers to included."""
    if value is None or isinstance(value, bool):
        return 0  # there is one of each
    nbytes = sys.getsizeof(value)
    if isinstance(value, Record):
        return nbytes + sum(taken(getattr(value, name)) for name in Record.__slots__)
    if isinstance(value, Mapping):
        return nbytes + sum(taken(key) + taken(item) for key, item in value.items())
    return nbytes + sum(map(taken, value)) if isinstance(value, (tuple, list)) else nbytes


class TestMemo:
    def test_what_was_neither_given_nor_asked_for_lately_is_let_go_first(self) -> None:
        cache: RecordCache[str] = RecordCache()
        size = MOST_BYTES // 8
        cache.keep((number, str(number), size) for number in range(8))
        assert cache.nbytes == MOST_BYTES
        assert cache.known([0, 9]) == {0: "0"}  # there was no room among the young, so the other old ones went first
        assert list(cache.known(range(10))) == [0, 4, 5, 6, 7]
        cache.keep((number, str(number), size) for number in range(10, 14))
        assert len(cache.known(range(10, 14))) == 4
        assert cache.nbytes <= MOST_BYTES

    def test_what_is_kept_again_is_counted_once_and_what_is_large_is_not_kept(self) -> None:
        cache: RecordCache[str] = RecordCache()
        cache.keep([(1, "a", 100), (1, "b", 300), (2, "large", MOST_OF_ONE + 1)])
        assert (cache.nbytes, cache.known([1, 2])) == (300, {1: "b"})

    def test_threads_leave_it_counted_right(self) -> None:
        cache: RecordCache[int] = RecordCache()

        def work(seed: int) -> None:
            for at in range(2000):
                number = (at * seed) % 97
                assert cache.known([number]).get(number, number) == number
                cache.keep([(number, number, MOST_BYTES // 50)])

        threads = [threading.Thread(target=work, args=(seed,)) for seed in (3, 5, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert cache.nbytes == len(cache) * (MOST_BYTES // 50) <= MOST_BYTES


@given(own.record_fields())
def test_a_record_takes_no_more_than_it_is_counted_as(fields: dict[str, Any]) -> None:
    record = Record.load(Record(**fields).to_bytes())
    assert taken(record) <= memory_bytes(record)


@pytest.mark.parametrize("text", ["x", "é", "木", "\U0001f600"])
def test_a_record_of_many_short_texts_takes_no_more_than_it_is_counted_as(text: str) -> None:
    """A text of one letter that is not ASCII takes some 75 bytes more than it has."""
    fields: dict[str, Any] = dict.fromkeys((*own.NAME_FIELDS, "kind", "media_type", "parent"), text)
    record = Record.load(Record(id=text, content=text.encode(), **fields).to_bytes())
    assert taken(record) <= memory_bytes(record)


@pytest.mark.parametrize("text", ["x" * 5000, "\U0001f600" + "x" * 5000, "é" * 3000])
def test_a_long_record_takes_no_more_than_it_is_counted_as(text: str) -> None:
    record = Record.load(Record(id="a", content=text, tags=tuple("t" * at for at in range(1, 90))).to_bytes())
    assert taken(record) <= memory_bytes(record)


class TestUnchecked:
    @given(own.record_fields())
    def test_a_record_made_unchecked_is_the_record_and_as_frozen(self, fields: dict[str, Any]) -> None:
        record = Record(**fields)
        loaded = Record.load(record.to_bytes())
        assert type(loaded) is Record
        checked = Record.from_bytes(record.to_bytes())
        assert (loaded, hash(loaded), repr(loaded)) == (record, hash(record), repr(checked))
        with pytest.raises(AttributeError):
            loaded.content = "another"  # type: ignore[misc]

    def test_what_has_no_default_must_be_given(self) -> None:
        with pytest.raises(TypeError):
            unchecked(Record)(id="a")
