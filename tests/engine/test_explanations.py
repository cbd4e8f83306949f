"""Explanations and records of hits: computed when they are read, and the same as if that had been done at once."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import Hit, Hits, Memory, Record
from recollect.common.deadlines import Deadline, within
from recollect.engine.read import explaining
from recollect.engine.read.explaining import MOST_UNREAD, Explanations
from recollect.engine.results import payload_of
from recollect.errors import DamagedStoreError, InvalidRecordError
from recollect.indexes.documents.row_data import Rows
from recollect.records.codec import begins_with_id

QUESTION = "where does Ana keep the blue bicycle?"


def say(memory: Memory) -> None:
    texts = (
        "Ana keeps the bicycle in the cellar.",
        "And where is the blue one?",
        "It is in the shed behind the house.",
        "The blue bicycle was sold to Ben in spring.",
    )
    for number, text in enumerate(texts):
        memory.remember(text, id=f"t{number}", kind="conversation", conversation="c", speaker="Ana", position=number)
    memory.remember("Always answer in English.", id="s", tags=["standing:instruction"])


def has_why(hit: Hit) -> bool:
    """Return whether a hit has its explanation already."""
    try:
        object.__getattribute__(hit, "why")
    except AttributeError:
        return False
    return True


def waiting() -> int:
    """The answers that keep an index."""
    gc.collect()
    return sum(each._scores is not None for each in gc.get_objects() if isinstance(each, Explanations))


@pytest.mark.in_process
class TestReading:
    def test_it_is_not_computed_before_it_is_read_and_then_for_all_hits(self, memory: Memory) -> None:
        say(memory)
        hits = memory.recall(QUESTION)
        assert len(hits) > 2
        assert not any(map(has_why, hits))
        source = hits[0]._unread[0]  # type: ignore[attr-defined]
        words = hits[0].why.words
        assert words
        assert source._scores is None
        assert has_why(hits[0])
        assert hits[0].why.words is words

    def test_it_is_that_of_the_answer_whatever_was_written_since(self, tmp_path: Path) -> None:
        with recollect.open(tmp_path / "a.db") as memory:
            say(memory)
            expected = memory.recall(QUESTION).to_json()
            hits = memory.recall(QUESTION)
            memory.forget("t1")
            memory.remember("The blue bicycle", id="t4", kind="conversation", conversation="c", position=1)
            memory.update("t0", content="Ana keeps the car in the cellar.")
            memory.erase("t3", reason="asked")
            assert memory.recall(QUESTION).to_json()["hits"] != expected["hits"]
        assert hits.to_json()["hits"] == expected["hits"]
        assert hits.to_json()["standing"] == expected["standing"]

    def test_copies_pickles_and_equality_have_it(self, memory: Memory) -> None:
        say(memory)
        read = memory.recall(QUESTION)
        expected = [hit.why for hit in read]
        made: tuple[Callable[[Hits], Hits], ...] = (
            copy.copy,
            copy.deepcopy,
            lambda hits: pickle.loads(pickle.dumps(hits)),
        )
        for make in made:
            hits = make(memory.recall(QUESTION))
            assert hits == read
            assert [hit.why for hit in hits] == expected
        again = replace(memory.recall(QUESTION)[0], score=0.5)
        assert (again.why, again.score) == (expected[0], 0.5)
        assert memory.recall(QUESTION)[0] != replace(read[0], why=expected[1])
        assert Hits.from_json(memory.recall(QUESTION).to_json()) == read

    def test_a_misspelt_attribute_is_none(self, memory: Memory) -> None:
        say(memory)
        hit = memory.recall(QUESTION)[0]
        assert not hasattr(hit, "wy")
        with pytest.raises(AttributeError, match="'Hit' object has no attribute 'scoer'"):
            hit.scoer  # type: ignore[attr-defined]  # noqa: B018
        with pytest.raises(AttributeError):
            hit.why = None  # type: ignore[misc,assignment]

    def test_threads_read_the_same(self, memory: Memory) -> None:
        say(memory)
        expected = [hit.why for hit in memory.recall(QUESTION)]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(50):
                hits = memory.recall(QUESTION)
                assert all(pool.map(lambda at, hits=hits: hits[at].why == expected[at], [*range(len(hits))] * 4))

    def test_a_thread_that_comes_late_gets_what_another_one_has_computed(self, memory: Memory) -> None:
        say(memory)
        hit = memory.recall(QUESTION)[0]
        for name in ("why", "record"):
            value = getattr(hit, name)
            assert Hit.__getattr__(hit, name) is value  # type: ignore[attr-defined]

    def test_a_thread_that_is_overtaken_gets_the_same(self, memory: Memory) -> None:
        say(memory)
        expected = [hit.why for hit in memory.recall(QUESTION)]
        hits = memory.recall(QUESTION)
        made = explaining._latest[-1]()
        assert made is not None
        explanations, scores = made, made._scores

        class Overtaken:
            """The scores, whose explanations another thread makes while this one begins to."""

            def __getattr__(self, name: str) -> Any:
                if not explanations._whys:
                    explanations._scores = scores
                    explanations.compute()
                return getattr(scores, name)

        explanations._scores = Overtaken()  # type: ignore[assignment]
        assert [hit.why for hit in hits] == expected

    def test_the_time_for_the_recall_does_not_matter_any_more(self, memory: Memory) -> None:
        say(memory)
        expected = [hit.why for hit in memory.recall(QUESTION)]
        limit = Deadline(3600.0)
        with within(limit):
            hits = memory.recall(QUESTION)
        limit.cancel()
        assert [hit.why for hit in hits] == expected

    def test_a_scope_shows_its_own_ids(self, memory: Memory) -> None:
        ana = memory.scoped(user="ana")
        ana.remember("The key is under the mat.", id="t0", kind="conversation", conversation="c", position=0)
        ana.remember("Thanks!", id="t1", kind="conversation", conversation="c", position=1)
        hits = ana.recall("where is the key?")
        assert {hit.record.id for hit in hits} == {"t0", "t1"}
        lent = next(hit for hit in hits if hit.record.id == "t1").why.words[0].lent_by
        assert lent == ("t0",)


@pytest.mark.in_process
class TestWaiting:
    def test_only_the_latest_answers_keep_an_index(self, memory: Memory) -> None:
        say(memory)
        expected = memory.recall(QUESTION).to_json()["hits"]
        answers = [memory.recall(QUESTION) for _ in range(MOST_UNREAD + 20)]
        assert waiting() <= MOST_UNREAD
        assert not any(map(has_why, answers[0]))  # it was computed, and is read below
        assert all(hits.to_json()["hits"] == expected for hits in answers)
        assert waiting() == 0

    def test_without_a_bound_all_would(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        """The control."""
        say(memory)
        monkeypatch.setattr(explaining, "MOST_UNREAD", 10**6)
        answers = [memory.recall(QUESTION) for _ in range(MOST_UNREAD + 20)]
        assert waiting() > MOST_UNREAD
        del answers
        assert waiting() == 0

    def test_an_answer_that_nobody_has_is_not_explained(self, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        say(memory)
        for _ in range(MOST_UNREAD):
            memory.recall(QUESTION)
        computed: list[Explanations] = []
        monkeypatch.setattr(Explanations, "compute", computed.append)
        for _ in range(2 * MOST_UNREAD):
            memory.recall(QUESTION)
        assert computed == []

    def test_one_that_cannot_be_computed_stops_no_other_recall(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        say(memory)
        broken = memory.recall(QUESTION)
        made = Explanations._made
        monkeypatch.setattr(Explanations, "_made", _raising)
        answers = [memory.recall(QUESTION) for _ in range(2 * MOST_UNREAD)]
        with pytest.raises(ZeroDivisionError):
            broken[0].why  # noqa: B018
        monkeypatch.setattr(Explanations, "_made", made)
        assert [hit.why for hit in broken] == [hit.why for hit in answers[-1]]

    def test_an_answer_without_hits_does_not_wait(self, memory: Memory) -> None:
        say(memory)
        before = len(explaining._latest)
        assert not memory.recall("xylophone zebra")
        assert len(explaining._latest) == before


def _raising(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.in_process
class TestRecords:
    def test_a_record_is_decoded_when_it_is_read_and_once(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        say(memory)
        memory.recall(QUESTION)  # the standing record is cached
        load, loaded = Record.load, []

        def noted(data: bytes) -> Record:
            loaded.append(data)
            return load(data)

        monkeypatch.setattr(Record, "load", noted)
        hits = memory.recall(QUESTION)
        assert [hit.why.replaces for hit in hits] == [()] * len(hits)
        assert loaded == []
        assert hits[0].record is hits[0].record
        assert len(loaded) == 1
        assert payload_of(hits[1]) == hits[1].record.to_bytes()
        assert len(loaded) == 2

    def test_what_a_record_replaces_is_known(self, memory: Memory) -> None:
        say(memory)
        memory.remember("The blue bicycle is in the garden.", id="new", supersedes=["t2"])
        found = {hit.record.id: hit.why.replaces for hit in memory.recall(QUESTION)}
        assert found["new"] == ("t2",)
        assert set(found.values()) == {(), ("t2",)}

    def test_a_record_of_another_id_in_the_index_is_read_from_the_store(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        say(memory)
        expected = [(hit.record, hit.why) for hit in memory.recall(QUESTION)]
        other = memory.get("s")
        assert other is not None
        monkeypatch.setattr(Rows, "payloads", lambda rows, numbers: dict.fromkeys(numbers, other.to_bytes()))
        assert [(hit.record, hit.why) for hit in memory.recall(QUESTION)] == expected

    def test_a_record_that_cannot_be_decoded_is_an_error_when_it_is_read(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        say(memory)
        real = Rows.payloads
        broken = lambda rows, numbers: {at: data[:-1] for at, data in real(rows, numbers).items()}  # noqa: E731
        monkeypatch.setattr(Rows, "payloads", broken)
        hit = memory.recall(QUESTION)[0]
        with pytest.raises(DamagedStoreError, match="a record in its file cannot be decoded"):
            hit.record  # noqa: B018


@given(st.text(min_size=1, max_size=200).filter(lambda text: text.isprintable() and not text.isspace()))
def test_the_beginning_of_a_record_says_its_id(record_id: str) -> None:
    try:
        record = Record(id=record_id, content="x")
    except InvalidRecordError:
        return
    assert begins_with_id(record.to_bytes(), record.id) is (len(record.id.encode()) < 128)
    assert not begins_with_id(record.to_bytes(), record.id + "x")
    assert not begins_with_id(record.to_bytes(), record.id[1:] or "y")
