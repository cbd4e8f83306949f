"""Vectors in the life of a memory: made beside the writes, kept beside the store, one signal among the others."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import stat
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from recollect import Memory, filters
from recollect.cli.diagnosing import examine
from recollect.errors import (
    ClosedError,
    EmbedderError,
    EmbedderRefusedError,
    EmbedderUnavailableError,
    InvalidArgumentError,
    ReadOnlyStoreError,
    StoreIOError,
    UnsupportedError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import PUBLIC_KEY
from recollect.memory import RecollectWarning
from recollect.models.embedding.base import Floors, Supplied, text_digest
from recollect.models.embedding.hashed import Hashed
from recollect.operations import FindSimilar
from recollect.stores.derived.shared import VectorModel
from recollect.stores.derived.vectors import VectorFile
from recollect.testing.loopback import core_of, index_of

Open = Callable[..., Memory]
#: Words that mean nearly the same, as a model knows and letters do not.
MEANING = {"feline": "cat", "kitten": "cat", "automobile": "car", "vehicle": "car"}


class Meaning:
    """An embedder that knows what words mean, counts what it is asked, and fails on request.

    bad       texts that it refuses, whatever they come with
    failures  what it raises, in turn, before it works again
    """

    def __init__(self, name: str = "meaning/1", size: int = 64, **faults: Any) -> None:
        self.name = name
        self.dimension: int | None = size
        self._size = size
        self.floors = Floors(0.2, 0.5)
        self.texts: list[str] = []
        self.calls = 0
        self.bad: set[str] = faults.get("bad", set())
        self.failures: list[BaseException | None] = faults.get("failures", [])

    def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[list[float]]:
        self.calls += 1
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
        if self.bad & set(texts):
            raise EmbedderRefusedError(self.name, "too long")
        self.texts.extend(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        out = [0.0] * self._size
        for word in text.lower().split():
            out[sum(MEANING.get(word, word).encode()) % self._size] += 1.0
        return out


@pytest.fixture(params=["memory", "sqlite"])
def open_(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens a memory in this test's store; what is still open at the end is closed."""
    path = ":memory:" if request.param == "memory" else str(tmp_path / "a.db")
    made: list[Memory] = []

    def open_(embedder: Any = None, **options: Any) -> Memory:
        made.append(recollect.open(path, embedder=embedder, **options))
        return made[-1]

    yield open_
    for each in made:
        each.close()


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Open]:
    made: list[Memory] = []

    def on_disk(embedder: Any = None, **options: Any) -> Memory:
        made.append(recollect.open(tmp_path / "a.db", embedder=embedder, **options))
        return made[-1]

    yield on_disk
    for each in made:
        each.close()


def found(memory: Memory, question: str, **options: Any) -> list[tuple[str, dict[str, float]]]:
    return [(hit.record.id, dict(hit.why.shares)) for hit in memory.recall(question, **options)]


class TestRecall:
    def test_a_record_that_shares_no_word_is_found_by_its_meaning(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.remember("kitten", id="cat")
        memory.remember("vehicle", id="car")
        assert memory.recall("feline").hits == ()
        assert memory.embed_all() == 2
        hits = memory.recall("feline")
        assert [hit.record.id for hit in hits] == ["cat"]
        assert hits[0].why.shares == {"dense": hits[0].score}
        assert hits[0].score == pytest.approx(0.3 * (1.0 - 0.2), abs=1e-3)
        assert str(hits[0].why) == f"dense {hits[0].score:.3f} (close in meaning, 1.00)"
        assert hits.plan.notes == ()

    def test_its_share_is_one_summand_of_the_score_and_moves_no_other(self, open_: Open) -> None:
        texts = ["the kitten sleeps", "a vehicle in the kitten colour", "nothing of it"]
        memory = open_(Meaning())
        memory.remember_all(texts)
        before = dict(found(memory, "kitten sleeps"))
        memory.embed_all()
        for hit in memory.recall("kitten sleeps"):
            shares = dict(hit.why.shares)
            assert sum(shares.values()) == hit.score
            dense = shares.pop("dense", 0.0)
            assert shares == before[hit.record.id]
            assert dense >= 0.0

    def test_what_a_text_s_manner_counts_for_applies_to_its_meaning_too(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.remember("kitten", id="u", kind="conversation", conversation="c", role="user")
        memory.remember("kitten", id="a", kind="conversation", conversation="d", role="assistant")
        memory.embed_all()
        scores = {each: shares["dense"] for each, shares in found(memory, "feline")}
        assert scores["a"] == pytest.approx(0.6 * scores["u"], abs=1e-5)

    def test_below_its_floors_it_says_nothing(self, open_: Open) -> None:
        embedder = Meaning()
        embedder.floors = Floors(0.9, 0.95)
        memory = open_(embedder)
        memory.remember("kitten sleeps well", id="a")
        memory.embed_all()
        assert found(memory, "feline") == []
        assert [list(shares) for _, shares in found(memory, "sleeps feline")] == [["words"]]

    def test_a_filter_changes_no_score_and_has_the_last_word(self, open_: Open) -> None:
        memory = open_(Meaning())
        for number in range(20):
            memory.remember(f"kitten kitten {number}", id=str(number), user="ana" if number % 2 else "bob")
        memory.embed_all()
        whole = dict(found(memory, "feline", k=20))
        narrowed = found(memory, "feline", k=20, where=filters.user("ana"))
        assert len(narrowed) == 10
        assert all(whole[each] == shares for each, shares in narrowed)

    def test_without_an_embedder_nothing_is_different(self, on_disk: Open) -> None:
        memory = on_disk(Meaning())
        memory.remember_all(["the kitten sleeps", "a vehicle", "kitten and vehicle"])
        memory.embed_all()
        root = memory.root
        memory.close()
        plain = on_disk("none")
        fresh = recollect.open(":memory:")
        fresh.remember_all(plain.find())
        for question in ("kitten", "feline", "vehicle sleeps"):
            one, other = plain.recall(question), fresh.recall(question)
            assert [hit.to_json() for hit in one] == [hit.to_json() for hit in other]
            assert "dense" not in json.dumps(one.to_json())
            assert (one.plan.notes, one.plan.vectors) == ((), None)
        assert plain.root == root == fresh.root
        fresh.close()

    def test_the_same_records_and_vectors_give_the_same_scores_whatever_came_before(self, open_: Open) -> None:
        texts = [f"kitten number {number} sleeps" for number in range(30)]
        memory = open_(Meaning())
        memory.remember_all([{"content": text, "id": text} for text in reversed(texts)])
        memory.embed_all(batch_size=7)
        memory.recall("feline")
        for text in texts[:10]:
            memory.forget(text)
            memory.recall("feline")
        memory.remember_all([{"content": text, "id": text} for text in texts[:10]])
        memory.update(texts[3], content="something else")
        memory.update(texts[3], content=texts[3])
        other = recollect.open(":memory:", embedder=Meaning())
        other.remember_all([{"content": text, "id": text} for text in texts])
        other.embed_all()
        for question in ("feline", "kitten sleeps", "number 7"):
            assert dict(found(memory, question, k=50)) == dict(found(other, question, k=50))
        other.close()

    def test_a_forgotten_changed_or_expired_record_is_found_by_its_old_text_no_more(self, tmp_path: Path) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        with recollect.open(tmp_path / "a.db", clock=lambda: now, embedder=Meaning()) as memory:
            memory.remember("kitten one", id="forgotten")
            memory.remember("kitten two", id="changed")
            memory.remember("kitten three", id="due", expires=now + timedelta(hours=1))
            memory.remember("kitten four", id="stays")
            memory.embed_all()
            assert len(found(memory, "feline")) == 4
            memory.forget("forgotten")
            memory.update("changed", content="vehicle two")
            now += timedelta(hours=2)
            assert [each for each, _ in found(memory, "feline")] == ["stays"]
            assert found(memory, "automobile") == []  # it has no vector yet
            assert memory.embed_all() == 1
            assert [each for each, _ in found(memory, "automobile")] == ["changed"]
            memory.update("changed", content="kitten two")
            assert {each for each, _ in found(memory, "feline")} == {"stays", "changed"}  # the vector was kept
            assert memory.embed_all() == 0

    def test_a_new_record_with_a_known_text_has_its_vector_at_once(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.remember("kitten", id="a")
        memory.embed_all()
        memory.remember("kitten", id="b", kind="fact")
        assert {each for each, _ in found(memory, "feline")} == {"a", "b"}
        memory.remember("kitten", id="c", user="bob")  # else bob could learn that another user has said it
        assert {each for each, _ in found(memory, "feline")} == {"a", "b"}

    def test_what_an_attached_picture_shows_is_embedded_with_the_text(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember("look at this", metadata={"caption": "a kitten"}, id="a")
        memory.remember(b"\x00", media_type="image/png", metadata={"caption": "kitten"}, id="b")
        memory.remember(b"\x00\x01", media_type="image/png", id="c")
        assert memory.embed_all() == 2
        assert sorted(embedder.texts) == ["kitten", "look at this\na kitten"]

    def test_the_speaker_s_name_stands_before_what_was_said(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember("kitten", speaker="Mara", id="a")
        memory.remember("kitten", speaker="Tobias", id="b")
        memory.remember(b"\x00", media_type="image/png", speaker="Mara", id="c")
        assert memory.embed_all() == 2
        assert sorted(embedder.texts) == ["Mara: kitten", "Tobias: kitten"]

    def test_shares_are_the_same_to_the_bit_everywhere(self, open_: Open) -> None:
        memory = open_(Hashed())
        texts = {"a": "Ana prefers window seats", "b": "the lighthouse keeper sold his window"}
        memory.remember_all([{"id": each, "content": text} for each, text in texts.items()])
        memory.remember("seats by the windows", id="c")
        memory.embed_all()
        shares = {hit.record.id: hit.why.shares["dense"] * 2**30 for hit in memory.recall("window seat")}
        assert shares == {"a": 98433643, "b": 37121491, "c": 74583091}

    def test_inside_a_batch_no_model_is_asked_and_the_hits_say_so(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember("kitten sleeps")
        memory.embed_all()
        calls = embedder.calls
        with memory.batch() as batch:
            hits = batch.recall("sleeps feline")
            assert [list(hit.why.shares) for hit in hits] == [["words"]]
            assert "not used inside a batch" in hits.plan.notes[0]
        assert embedder.calls == calls


class TestFailingAtQuestionTime:
    @pytest.mark.parametrize(
        "failure", [EmbedderUnavailableError("meaning/1", "status 401"), ValueError("odd"), OSError("no network")]
    )
    def test_the_other_signals_answer_and_the_hits_say_what_happened(self, open_: Open, failure: Exception) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember("the kitten sleeps", id="a")
        memory.embed_all()
        embedder.failures = [failure]
        hits = memory.recall("kitten sleeps")
        assert [hit.record.id for hit in hits] == ["a"]
        assert "dense" not in hits[0].why.shares
        (note,) = hits.plan.notes
        assert "the dense signal is not used" in note
        assert str(failure.args[-1]) in note
        assert hits.to_json()["notes"] == [note]
        assert memory.recall("feline")[0].record.id == "a"  # and the next question is embedded again

    def test_a_question_without_a_sound_vector_is_reported_too(self, open_: Open) -> None:
        memory = open_(Supplied("mine/1", 2, {"kitten": [1.0, 0.0], "feline?": [1.0, 0.0]}))
        memory.remember("kitten", id="a")
        memory.embed_all()
        assert memory.recall("feline?")[0].why.shares == {"dense": pytest.approx(0.255, abs=1e-3)}
        hits = memory.recall("kitten and others")
        assert [hit.record.id for hit in hits] == ["a"]
        assert "there is no vector for it" in hits.plan.notes[0]

    def test_a_memory_without_any_vector_says_how_to_make_them(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.remember("kitten")
        assert "embed_all()" in memory.recall("kitten").plan.notes[0]

    @pytest.mark.files
    def test_vectors_that_cannot_be_read_silence_only_the_dense_signal(self, on_disk: Open, tmp_path: Path) -> None:
        memory = on_disk(Meaning())
        memory.remember("kitten", id="a")
        memory.embed_all()
        memory.close()
        (tmp_path / "a.db.index" / "vectors.db").write_bytes(b"no database" * 1000)
        for suffix in ("-wal", "-shm"):
            (tmp_path / "a.db.index" / f"vectors.db{suffix}").unlink(missing_ok=True)
        again = on_disk(Meaning())
        assert [hit.record.id for hit in again.recall("kitten")] == ["a"]
        assert again.embed_all() == 1
        assert [each for each, _ in found(again, "feline")] == ["a"]

    def test_the_doctor_tells_of_it(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember_all(["kitten", "vehicle"])
        finding = {each.what: each for each in examine(memory)}["signal dense"]
        assert finding.well
        assert "0 of 2 records have a vector (0%); `recollect embed`" in finding.finding
        memory.embed_all()
        finding = {each.what: each for each in examine(memory)}["signal dense"]
        assert "meaning/1, 64 dimensions, 2 of 2 records have a vector (100%)" in finding.finding
        embedder.failures = [OSError("no network")]
        finding = {each.what: each for each in examine(memory)}["signal dense"]
        assert not finding.well
        assert "no network" in finding.finding


class TestWaiting:
    def test_a_recall_that_waits_embeds_what_lacks_a_vector_and_finds_it_by_meaning(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember("the sea")
        memory.embed_all()
        memory.remember_all([f"text {number}" for number in range(150)])
        memory.remember("a cat", id="new")
        assert memory.recall("the sea").plan.vectors == 1
        hits = memory.recall("kitten", wait_for_vectors=True)
        assert [hit.record.id for hit in hits][:1] == ["new"]
        assert hits.plan.vectors == memory.seq
        assert memory.vector_stats()["coverage"] == 100.0
        calls = embedder.calls
        memory.recall("kitten", wait_for_vectors=True)
        assert embedder.calls == calls  # nothing is missing, and the question is cached

    def test_it_is_refused_without_an_embedder_and_in_a_batch(self, open_: Open) -> None:
        memory = open_(None)
        memory.remember("the sea")
        with pytest.raises(UnsupportedError, match="embedder"):
            memory.recall("the sea", wait_for_vectors=True)
        memory.close()
        memory = open_(Meaning())
        memory.remember("the sea")
        with memory.batch() as batch, pytest.raises(UnsupportedError, match="batch"):
            batch.recall("the sea", wait_for_vectors=True)

    def test_an_embedder_that_cannot_be_used_is_an_error_and_not_a_note(self, open_: Open) -> None:
        memory = open_(Meaning(failures=[EmbedderUnavailableError("meaning", "it is off")] * 9))
        memory.remember("the sea")
        with pytest.raises(EmbedderError, match="it is off"):
            memory.recall("the sea", wait_for_vectors=True)
        assert len(memory.recall("the sea")) == 1

    def test_texts_that_the_embedder_refuses_are_named_in_the_notes(self, open_: Open) -> None:
        memory = open_(Meaning(bad={"the sea"}))
        memory.remember_all(["the sea", "the hills"])
        notes = memory.recall("water", wait_for_vectors=True).plan.notes
        assert any("1 texts could not be embedded" in note and "too long" in note for note in notes)

    def test_within_a_scope_only_the_texts_of_the_scope_are_embedded(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember("the sea", user="ana")
        memory.remember("the hills", user="bob")
        memory.scoped(user="ana").recall("water", wait_for_vectors=True)
        assert "the hills" not in embedder.texts
        assert memory.vector_stats()["embedded"] == 1


class TestWorker:
    @pytest.mark.in_process
    def test_every_text_is_embedded_once_in_batches_and_progress_is_reported(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember_all([{"content": f"text {number % 20}", "id": str(number)} for number in range(50)])
        reported: list[tuple[int, int]] = []
        assert memory.embed_all(batch_size=8, progress=lambda done, total: reported.append((done, total))) == 20
        assert len(embedder.texts) == len(set(embedder.texts)) == 20
        assert embedder.calls == 3
        assert reported[0] == (0, 50)
        assert reported[-1] == (50, 50)
        assert reported == sorted(reported)
        assert memory.embed_all() == 0
        assert embedder.calls == 3

    @pytest.mark.in_process
    @pytest.mark.parametrize("killer", [KeyboardInterrupt, SystemExit])
    def test_a_run_that_is_killed_is_resumed_where_it_was(self, on_disk: Open, killer: type[BaseException]) -> None:
        embedder = Meaning(failures=[None, None, killer()])
        memory = on_disk(embedder)
        memory.remember_all([f"text {number}" for number in range(25)])
        with pytest.raises(killer):
            memory.embed_all(batch_size=5)
        assert memory.vector_stats()["embedded"] == 10
        assert memory.vector_stats()["watermark"] == 0
        memory.close()
        resumed = Meaning()
        again = on_disk(resumed)
        assert again.embed_all(batch_size=5) == 15
        assert not set(resumed.texts) & set(embedder.texts)
        stats = again.vector_stats()
        assert (stats["embedded"], stats["coverage"], stats["watermark"]) == (25, 100.0, again.seq)

    @pytest.mark.in_process
    def test_only_what_is_new_is_looked_at_again(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.remember_all([f"text {number}" for number in range(30)])
        memory.embed_all()
        memory.remember("one more", id="new")
        memory.forget(memory.find(limit=2)[1].id)
        reported: list[tuple[int, int]] = []
        assert memory.embed_all(progress=lambda done, total: reported.append((done, total))) == 1
        assert reported[-1] == (2, 2)
        assert memory.recall("x").plan.vectors == memory.seq == memory.vector_stats()["watermark"]

    def test_one_bad_text_costs_only_itself_and_is_named(self, open_: Open) -> None:
        texts = [f"text {number}" for number in range(40)]
        embedder = Meaning(bad={"text 7", "text 23"})
        memory = open_(embedder)
        memory.remember_all([{"content": text, "id": text} for text in texts])
        with pytest.warns(RecollectWarning, match="2 records have no vector, the first because too long"):
            assert memory.embed_all(batch_size=16) == 38
        stats = memory.vector_stats()
        assert stats["failed"] == [{"id": "text 23", "reason": "too long"}, {"id": "text 7", "reason": "too long"}]
        assert (stats["embedded"], stats["coverage"], stats["watermark"]) == (38, 95.0, 0)
        embedder.bad = set()
        assert memory.embed_all() == 2
        assert memory.vector_stats()["failed"] == []
        assert memory.vector_stats()["watermark"] == memory.seq

    def test_unsound_vectors_are_named_and_never_stored(self, open_: Open) -> None:
        class Odd(Meaning):
            def _vector(self, text: str) -> list[float]:
                odd = {"nan": [float("nan")] * 64, "short": [1.0], "huge": [1e300] * 64}
                return odd.get(text, super()._vector(text))

        memory = open_(Odd())
        memory.remember_all([{"content": text, "id": text} for text in ("nan", "short", "huge", "good")])
        with pytest.warns(RecollectWarning, match="3 records"):
            assert memory.embed_all() == 1
        assert [each["id"] for each in memory.vector_stats()["failed"]] == ["huge", "nan", "short"]
        assert memory.vector_stats()["embedded"] == 1

    def test_a_batch_that_fails_does_not_stop_the_others(self, open_: Open) -> None:
        embedder = Meaning(failures=[EmbedderError("meaning/1", "status 500, 4 times")])
        memory = open_(embedder)
        memory.remember_all([f"text {number}" for number in range(30)])
        with pytest.warns(RecollectWarning, match="10 records have no vector, the first because status 500"):
            assert memory.embed_all(batch_size=10) == 20
        assert memory.embed_all() == 10

    def test_an_embedder_that_goes_on_failing_is_given_up_and_what_was_made_stays(self, open_: Open) -> None:
        failures: list[BaseException | None] = [None, *(EmbedderError("meaning/1", "down") for _ in range(9))]
        embedder = Meaning(failures=failures)
        memory = open_(embedder)
        memory.remember_all([f"text {number}" for number in range(100)])
        with pytest.raises(EmbedderError, match="down"):
            memory.embed_all(batch_size=10)
        assert embedder.calls == 4
        assert memory.vector_stats()["embedded"] == 10

    def test_an_embedder_that_cannot_be_used_at_all_is_not_asked_again(self, open_: Open) -> None:
        embedder = Meaning(failures=[EmbedderUnavailableError("meaning/1", "status 401")])
        memory = open_(embedder)
        memory.remember_all([f"text {number}" for number in range(100)])
        with pytest.raises(EmbedderUnavailableError):
            memory.embed_all(batch_size=10)
        assert embedder.calls == 1

    def test_writes_go_on_while_the_model_thinks(self, open_: Open) -> None:
        class Slow(Meaning):
            def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[list[float]]:
                thinking.set()
                assert written.wait(10), "the writer was held up"
                return super().embed(texts, asking=asking)

        thinking, written = threading.Event(), threading.Event()
        memory = open_(Slow())
        memory.remember("kitten", id="a")
        worker = threading.Thread(target=memory.embed_all)
        worker.start()
        assert thinking.wait(10)
        memory.remember("vehicle", id="b")
        assert memory.count() == 2
        written.set()
        worker.join()
        assert memory.vector_stats()["embedded"] == 1
        assert memory.embed_all() == 1

    def test_a_question_does_not_hold_up_writes_either(self, open_: Open) -> None:
        class Slow(Meaning):
            def embed(self, texts: Sequence[str], *, asking: bool = False) -> list[list[float]]:
                if asking:
                    thinking.set()
                    assert written.wait(10), "the writer was held up"
                return super().embed(texts, asking=asking)

        thinking, written = threading.Event(), threading.Event()
        memory = open_(Slow())
        memory.remember("kitten", id="a")
        memory.embed_all()
        found_: list[str] = []
        asker = threading.Thread(target=lambda: found_.extend(hit.record.id for hit in memory.recall("feline")))
        asker.start()
        assert thinking.wait(10)
        memory.remember("vehicle", id="b")
        written.set()
        asker.join()
        assert found_ == ["a"]

    def test_two_runs_at_once_do_no_harm(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.remember_all([f"text {number}" for number in range(200)])
        workers = [threading.Thread(target=memory.embed_all, args=(5,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        stats = memory.vector_stats()
        assert (stats["embedded"], stats["models"][0]["vectors"]) == (200, 200)

    def test_an_empty_memory_has_nothing_to_embed(self, open_: Open) -> None:
        memory = open_(Meaning())
        assert memory.embed_all() == 0
        assert memory.vector_stats() == {
            "model": "meaning/1",
            "dimensions": 64,
            "total": 0,
            "embedded": 0,
            "coverage": 100.0,
            "failed": [],
            "watermark": 0,
            "models": [],
        }

    def test_wrong_arguments_are_refused(self, open_: Open) -> None:
        memory = open_(Meaning())
        for size in (0, -1, 1.5, True, "9"):
            with pytest.raises(InvalidArgumentError, match="batch_size"):
                memory.embed_all(size)  # type: ignore[arg-type]
        memory.remember_all(["one", "two"])
        assert memory.embed_all(1) == 2
        with pytest.raises(InvalidArgumentError, match="progress"):
            memory.embed_all(progress=3)  # type: ignore[arg-type]
        for wrong in (3, Meaning, "nope", object()):
            with pytest.raises(InvalidArgumentError, match="embedder"):
                recollect.open(":memory:", embedder=wrong)  # type: ignore[arg-type]

    def test_without_an_embedder_there_is_nothing_to_embed_with(self, open_: Open) -> None:
        memory = open_()
        memory.remember("kitten")
        assert memory._executor.embedder is None
        with pytest.raises(UnsupportedError, match="RECOLLECT_EMBEDDER"):
            memory.embed_all()
        stats = memory.vector_stats()
        assert (stats["model"], stats["total"], stats["embedded"], stats["coverage"]) == (None, 1, 0, 0.0)

    def test_a_closed_memory_embeds_nothing(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.close()
        with pytest.raises(ClosedError):
            memory.embed_all()

    def test_the_calls_can_be_awaited(self, open_: Open) -> None:
        async def run() -> tuple[int, float]:
            async with recollect.AsyncMemory(open_(Meaning())) as memory:
                await memory.remember("kitten")
                return await memory.embed_all(), (await memory.vector_stats())["coverage"]

        assert asyncio.run(run()) == (1, 100.0)


class TestModels:
    def test_two_models_live_side_by_side(self, on_disk: Open) -> None:
        texts = ["kitten", "vehicle"]
        with on_disk(Meaning()) as memory:
            memory.remember_all(texts)
            memory.embed_all()
        with on_disk(Hashed()) as memory:
            assert "no record that may be asked has a vector yet" in memory.recall("kittens").plan.notes[0]
            assert memory.embed_all() == 2
            assert memory.recall("kittens")[0].why.shares["dense"] > 0
            assert memory.recall("feline").hits == ()
            assert [(each["model"], each["vectors"]) for each in memory.vector_stats()["models"]] == [
                ("meaning/1", 2),
                ("hashed/1", 2),
            ]
        first = Meaning()
        with on_disk(first) as memory:
            assert memory.embed_all() == 0
            assert [hit.record.content for hit in memory.recall("feline")] == ["kitten"]

    def test_a_change_of_dimension_under_the_same_name_is_another_model(self, on_disk: Open) -> None:
        with on_disk(Meaning(size=64)) as memory:
            memory.remember("kitten")
            memory.embed_all()
        wider = Meaning(size=96)
        with on_disk(wider) as memory:
            assert memory.vector_stats()["embedded"] == 0
            assert memory.recall("feline").hits == ()
            assert memory.embed_all() == 1
            assert memory.vector_stats()["dimensions"] == 96
            assert len(memory.recall("feline")) == 1

    def test_a_search_embeds_again_what_has_vectors_of_another_dimension_only(self, on_disk: Open) -> None:
        for size in (64, 96):
            embedder = Meaning(size=size)
            embedder.dimension = None
            with on_disk(embedder) as memory:
                memory.remember("kitten", id="a")
                for question in ("feline", "cat"):
                    found = memory.execute(FindSimilar(text=question, embed=True))
                    assert (found.measure, [each.record.id for each in found.found]) == ("cosine", ["a"])
            assert embedder.texts.count("kitten") == 1
            assert embedder.texts.count("dimension") == 1  # the trial text

    def test_an_embedder_that_does_not_know_its_dimension_is_asked_for_it(self, on_disk: Open) -> None:
        embedder = Meaning()
        embedder.dimension = None
        with on_disk(embedder) as memory:
            memory.remember("kitten")
            assert memory.vector_stats()["dimensions"] is None
            assert memory.embed_all() == 1
            assert (memory.vector_stats()["dimensions"], memory.vector_stats()["embedded"]) == (64, 1)
            assert len(memory.recall("feline")) == 1
            assert memory.embed_all() == 0
        assert embedder.texts.count("kitten") == 1

    def test_an_embedder_is_named_by_text_or_by_the_variable(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RECOLLECT_EMBEDDER", "hashed")
        for wanted, name in ((None, "hashed/1"), ("hashed/1", "hashed/1"), ("ollama/m", "ollama/m"), ("none", None)):
            with recollect.open(tmp_path / "a.db", embedder=wanted) as memory:
                assert (memory._executor.embedder and memory._executor.embedder.name) == name

    def test_a_misspelt_variable_leaves_recall_by_words_and_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RECOLLECT_EMBEDDER", "nope/m")
        with recollect.open(tmp_path / "b.db") as memory:
            memory.remember("a kitten")
            hits = memory.recall("kitten")
            assert len(hits) == len(memory.find()) == 1
            assert "RECOLLECT_EMBEDDER = 'nope/m' failed: it must be one of minilm" in hits.plan.notes[0]
            for call in (memory.embed_all, lambda: memory.recall("kitten", wait_for_vectors=True)):
                with pytest.raises(EmbedderUnavailableError, match="RECOLLECT_EMBEDDER = 'nope/m'"):
                    call()
            assert memory.vector_stats()["embedded"] == 0

    def test_closing_a_memory_closes_its_embedder(self) -> None:
        class Closing(Meaning):
            closed = 0

            def close(self) -> None:
                self.closed += 1

        embedder = Closing()
        recollect.open(":memory:", embedder=embedder).close()
        assert embedder.closed == 1


class TestBoundaries:
    def test_a_namespace_has_vectors_of_its_own_and_knows_of_no_other(self, open_: Open) -> None:
        embedder = Meaning()
        first = open_(embedder)
        second = first.namespace("second")
        first.remember("kitten")
        second.remember("kitten")
        second.remember("vehicle")
        assert first.embed_all() == 1
        assert (second.vector_stats()["embedded"], second.vector_stats()["models"]) == (0, [])
        assert found(second, "feline") == []
        assert second.embed_all() == 2
        assert len(found(first, "automobile")) == 0
        assert len(found(second, "automobile")) == 1
        assert first.vector_stats()["models"][0]["vectors"] == 1

    def test_a_scope_finds_and_embeds_only_its_own(self, open_: Open) -> None:
        embedder = Meaning()
        memory = open_(embedder)
        memory.remember("kitten one", id="a", user="ana")
        memory.remember("kitten two", id="b", user="bob")
        ana = memory.scoped(user="ana")
        assert ana.embed_all() == 1
        assert embedder.texts == ["kitten one"]
        stats = ana.vector_stats()
        assert (stats["total"], stats["embedded"]) == (1, 1)
        assert not {"watermark", "models"} & set(stats)
        assert memory.vector_stats()["watermark"] == 0  # the others are yet to come
        memory.embed_all()
        assert [each for each, _ in found(ana, "feline")] == ["a"]
        assert [each for each, _ in found(memory.scoped(user="bob"), "feline")] == ["b"]
        assert memory.scoped(user="cleo").recall("feline").hits == ()

    def test_a_scope_does_not_learn_of_the_failures_of_others(self, open_: Open) -> None:
        memory = open_(Meaning(bad={"kitten two"}))
        memory.remember("kitten one", id="a", user="ana")
        memory.remember("kitten two", id="b", user="bob")
        with pytest.warns(RecollectWarning):
            memory.embed_all()
        assert memory.scoped(user="ana").vector_stats()["failed"] == []
        assert [each["id"] for each in memory.scoped(user="bob").vector_stats()["failed"]] == ["b"]

    def test_what_others_embed_changes_no_score_within_a_scope(self, open_: Open) -> None:
        memory = open_(Meaning())
        memory.remember("kitten one", id="a", user="ana")
        memory.embed_all()
        ana = memory.scoped(user="ana")
        before = found(ana, "feline one")
        memory.remember_all([{"content": f"kitten {number}", "user": "bob"} for number in range(10)])
        memory.embed_all()
        dense = [shares["dense"] for _, shares in found(ana, "feline one")]
        assert dense == [shares["dense"] for _, shares in before]


class TestMemoryLimit:
    NAMESPACES = tuple(f"space {number}" for number in range(40))

    @pytest.fixture
    def stored(self, tmp_path: Path) -> Path:
        path = tmp_path / "many.db"
        with recollect.open(path, embedder=Hashed()) as memory:
            for place, name in enumerate(self.NAMESPACES):
                space = memory.namespace(name)
                space.remember_all([f"boat {place + number} of the harbour {number}" for number in range(8)])
                space.embed_all()
        return path

    @staticmethod
    def answers(memory: Memory, name: str) -> list[tuple[str, dict[str, float]]]:
        hits = memory.namespace(name).recall("harbor boats")
        assert hits.plan.notes == ()
        return [(hit.record.text, dict(hit.why.shares)) for hit in hits]

    @staticmethod
    def cache(memory: Memory) -> Any:
        vectors = core_of(memory).vectors
        assert vectors is not None
        return vectors._cached

    def test_the_vectors_of_many_namespaces_stay_within_the_limit_and_rank_the_same(self, stored: Path) -> None:
        with recollect.open(stored, embedder=Hashed()) as memory:
            expected = {name: self.answers(memory, name) for name in self.NAMESPACES}
            assert any("dense" in shares for _, shares in expected["space 0"])
            cached = self.cache(memory)
            assert len(cached) == 40
            limit = 3 * (cached.nbytes // 40)
        with recollect.open(stored, embedder=Hashed(), vector_bytes=limit) as memory:
            cached = self.cache(memory)
            for name in [*self.NAMESPACES, *self.NAMESPACES[::-1]]:
                assert self.answers(memory, name) == expected[name]
                assert cached.nbytes <= limit
                assert len(cached) <= 3
            assert {branch.namespace for branch, _ in cached._entries} == {"space 0", "space 1", "space 2"}

    def test_the_vectors_of_one_namespace_stay_whatever_the_limit(
        self, stored: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RECOLLECT_VECTOR_BYTES", "1")
        with recollect.open(stored, embedder=Hashed()) as memory:
            for name in self.NAMESPACES[:3]:
                assert self.answers(memory, name)
                assert [branch.namespace for branch, _ in self.cache(memory)._entries] == [name]

    def test_threads_that_evict_each_others_vectors_get_the_same_answers(self, stored: Path) -> None:
        with recollect.open(stored, embedder=Hashed()) as memory:
            expected = {name: self.answers(memory, name) for name in self.NAMESPACES}
        with recollect.open(stored, embedder=Hashed(), vector_bytes=1) as memory, ThreadPoolExecutor(4) as threads:
            asked = self.NAMESPACES * 4
            for name, found in zip(asked, threads.map(lambda name: self.answers(memory, name), asked), strict=True):
                assert found == expected[name]
            assert len(self.cache(memory)) == 1

    def test_vectors_do_not_keep_an_evicted_index_in_memory(self, stored: Path) -> None:
        with recollect.open(stored, embedder=Hashed(), index_bytes=1) as memory:
            self.answers(memory, "space 0")
            rows = weakref.ref(index_of(memory, Branch("space 0")).documents.rows)
            self.answers(memory, "space 1")
            gc.collect()
            assert rows() is None

    @pytest.mark.parametrize("wrong", [0, True, "9"])
    def test_a_limit_that_is_no_positive_integer_is_refused(self, tmp_path: Path, wrong: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="vector_bytes must be an integer of at least 1"):
            recollect.open(tmp_path / "none.db", vector_bytes=wrong)


class TestFile:
    @pytest.mark.files
    def test_vectors_lie_beside_the_store_readable_only_by_its_owner_and_survive(
        self, on_disk: Open, tmp_path: Path
    ) -> None:
        memory = on_disk(Meaning())
        memory.remember("kitten")
        root = memory.root
        memory.embed_all()
        assert memory.root == root
        path = tmp_path / "a.db.index" / "vectors.db"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        memory.close()
        assert [len(on_disk(Meaning()).recall("feline")) for _ in range(2)] == [1, 1]

    @pytest.mark.files
    def test_deleting_the_folder_costs_embedding_again_and_nothing_else(self, on_disk: Open, tmp_path: Path) -> None:

        memory = on_disk(Meaning())
        memory.remember("kitten", id="a")
        memory.embed_all()
        before = found(memory, "feline kitten")
        memory.close()
        shutil.rmtree(tmp_path / "a.db.index")
        again = on_disk(Meaning())
        assert [each for each, _ in found(again, "kitten")] == ["a"]
        assert again.vector_stats()["watermark"] == 0
        assert again.embed_all() == 1
        assert found(again, "feline kitten") == before

    @pytest.mark.files
    def test_a_store_that_was_put_back_from_a_copy_is_embedded_where_it_differs(
        self, on_disk: Open, tmp_path: Path
    ) -> None:

        with on_disk(Meaning()) as memory:
            memory.remember("kitten", id="a")
        shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
        with on_disk(Meaning()) as memory:
            memory.remember("vehicle", id="b")
            memory.embed_all()
        shutil.copy(tmp_path / "copy.db", tmp_path / "a.db")
        with on_disk(Meaning()) as memory:
            memory.remember("another", id="b")
            assert memory.vector_stats()["watermark"] == 0  # the number would fit, the history does not
            assert memory.embed_all() == 1
            assert memory.vector_stats()["coverage"] == 100.0

    def test_another_process_s_vectors_are_seen(self, on_disk: Open) -> None:
        reader, writer = on_disk(Meaning()), on_disk(Meaning())
        reader.remember("kitten", id="a")
        assert reader.recall("feline").hits == ()
        writer.embed_all()
        assert [each for each, _ in found(reader, "feline")] == ["a"]

    @pytest.mark.files
    def test_a_store_that_is_only_read_uses_its_vectors_and_makes_none(self, on_disk: Open, tmp_path: Path) -> None:
        with on_disk(Meaning()) as memory:
            memory.remember("kitten", id="a")
            memory.embed_all()
            memory.remember("vehicle", id="b")
        reader = on_disk(Meaning(), read_only=True)
        assert [each for each, _ in found(reader, "feline")] == ["a"]
        with pytest.raises(ReadOnlyStoreError):
            reader.embed_all()
        reader.close()
        for each in (tmp_path / "a.db.index").iterdir():
            each.unlink()
        reader = on_disk(Meaning(), read_only=True)
        assert "no record that may be asked has a vector" in reader.recall("feline").plan.notes[0]
        assert list((tmp_path / "a.db.index").iterdir()) == []

    def test_the_vectors_of_another_store_in_that_folder_are_not_used(self, tmp_path: Path) -> None:
        one = VectorFile(str(tmp_path), "one", PUBLIC_KEY)
        model = VectorModel("m", 2)
        one.put(model, "n", {b"a": np.array([1, 0], dtype=np.float32)})
        one.close()
        other = VectorFile(str(tmp_path), "other", PUBLIC_KEY)
        assert other.models("n") == []
        other.close()

    @pytest.mark.files
    def test_a_folder_that_cannot_be_made_is_an_error_and_silences_the_signal(
        self, on_disk: Open, tmp_path: Path
    ) -> None:
        (tmp_path / "a.db.index").write_text("in the way")
        memory = on_disk(Meaning())
        memory.remember("kitten", id="a")
        with pytest.raises(StoreIOError):
            memory.embed_all()
        hits = memory.recall("kitten")
        assert len(hits) == 1
        assert "dense signal is not used" in hits.plan.notes[0]
        assert os.path.isfile(tmp_path / "a.db.index")

    @pytest.mark.files
    def test_a_file_that_was_deleted_while_it_was_open_is_rebuilt(self, on_disk: Open, tmp_path: Path) -> None:
        memory = on_disk(Meaning())
        memory.remember("kitten", id="a")
        assert memory.embed_all() == 1
        shutil.rmtree(tmp_path / "a.db.index")
        assert memory.vector_stats()["embedded"] == 0
        assert memory.embed_all() == 1
        assert (tmp_path / "a.db.index" / "vectors.db").exists()
        assert len(memory.recall("feline")) == 1

    def test_erasing_takes_the_vectors_of_every_model_and_of_this_namespace_only(self, tmp_path: Path) -> None:
        store = VectorFile(str(tmp_path), "u", PUBLIC_KEY)
        vector = np.array([1, 0], dtype=np.float32)
        models = [VectorModel("m", 2), VectorModel("n", 2)]
        for model in models:
            for namespace in ("one", "two"):
                store.put(model, namespace, {text_digest("a"): vector, text_digest("b"): vector})
        assert store.keep_only("one", lambda: {text_digest("b"), text_digest("unknown")}) == 2
        for model in models:
            assert store.embedded_digests(model, "one") == {text_digest("b")}
            assert len(store.embedded_digests(model, "two")) == 2
        store.close()


class TestCommand:
    @pytest.fixture
    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
        from click.testing import CliRunner

        from recollect.cli.app import app

        monkeypatch.setenv("RECOLLECT_DB", str(tmp_path / "a.db"))

        def run(*arguments: str, code: int = 0) -> Any:
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == code, result.output
            return result

        return run

    def test_embed_makes_vectors_and_recall_uses_them(self, run: Callable[..., Any]) -> None:
        run("remember", "Ana prefers window seats", "--id", "a")
        assert "no record that may be asked has a vector" in run("recall", "seat", "--embedder", "hashed").stderr
        done = json.loads(run("embed", "--embedder", "hashed", "--json").stdout)
        assert (done["done"], done["embedded"], done["coverage"], done["model"]) == (1, 1, 100.0, "hashed/1")
        assert "0 texts embedded by hashed/1, 256 dimensions" in run("--embedder", "hashed", "embed").stdout
        hits = json.loads(run("recall", "seat", "--embedder", "hashed", "--json").stdout)["hits"]
        assert hits[0]["why"]["shares"]["dense"] > 0
        assert "dense" not in run("recall", "seat", "--json").stdout

    def test_the_status_of_vectors_is_stated_and_nothing_is_embedded(self, run: Callable[..., Any]) -> None:
        run("remember", "Ana prefers window seats")
        run("embed", "--embedder", "hashed")
        run("remember", "Bob prefers the aisle")
        for _ in range(2):
            shown = run("embed", "--status", "--embedder", "hashed").stdout
            assert shown == "1 vectors of hashed/1, 256 dimensions\n1 of 2 records have a vector of hashed/1 (50%)\n"
        assert json.loads(run("embed", "--status", "--embedder", "hashed", "--json").stdout)["done"] == 0
        assert run("embed", "--status").stdout.startswith(
            "no embedder is set up, so no vectors are used: --embedder or RECOLLECT_EMBEDDER"
        )

    def test_embed_without_an_embedder_and_with_a_wrong_one_is_an_error(self, run: Callable[..., Any]) -> None:
        run("remember", "x")
        assert "no embedder is set up" in run("embed", code=1).stderr
        assert "PROVIDER/MODEL" in run("embed", "--embedder", "nope", code=1).stderr
        assert "OPENAI_API_KEY" in run("embed", "--embedder", "openai/m", code=1).stderr

    def test_records_that_cannot_be_embedded_are_named_and_make_the_exit_code_1(
        self, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run("remember", "good")
        run("remember", "bad", "--id", "the-bad-one")
        monkeypatch.setattr(
            Hashed,
            "embed",
            lambda self, texts, asking=False: [[float("nan") if text == "bad" else 1.0] * 256 for text in texts],
        )
        result = run("embed", "--embedder", "hashed", code=1)
        assert "1 texts embedded" in result.stdout
        assert "the-bad-one: its vector has a component that is not finite" in result.stderr

    @pytest.mark.files
    def test_the_doctor_tells_of_the_embedder(self, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        run("remember", "x")
        monkeypatch.setenv("RECOLLECT_EMBEDDER", "hashed")
        reported = {each["what"]: each for each in json.loads(run("doctor", "--json").stdout)}
        assert reported["signal dense"]["finding"].startswith("active: hashed/1, 256 dimensions, 0 of 1 records")
        monkeypatch.setenv("RECOLLECT_EMBEDDER", "openai/m")
        assert "OPENAI_API_KEY" in run("doctor", code=1).stdout
