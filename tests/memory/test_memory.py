"""The library: ids and their five cases, conditions, batches, scopes, namespaces, listeners."""

from __future__ import annotations

import asyncio
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import filters as f
from recollect import operations
from recollect.engine.results import Outcome
from recollect.engine.write.writer import Writer
from recollect.errors import (
    ClosedError,
    ConflictError,
    InvalidArgumentError,
    RecollectError,
    RecordExistsError,
    ScopeError,
    StoreBusyError,
    UnknownArgumentError,
    UnknownRecordError,
    UnsupportedError,
)
from recollect.memory.awaited import _in_own_thread
from recollect.records.factories import user_fact
from recollect.records.record import Record
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.view import SqliteView
from recollect.testing import TickingClock, memory_on
from recollect.testing.loopback import core_of
from recollect.testing.strategies import records

pytestmark = pytest.mark.stores("memory", "sqlite", clock=TickingClock)


def turn(text: str, speaker: str = "ana", **fields: Any) -> dict[str, Any]:
    return {"content": text, "kind": "conversation", "conversation": "c", "speaker": speaker, **fields}


class TestIds:
    def test_the_same_fact_again_changes_nothing(self, memory: recollect.Memory) -> None:
        first = memory.remember("Ana prefers window seats", kind="user_fact", user="ana")
        root, seq = memory.root, memory.seq
        assert memory.remember("Ana prefers window seats", kind="user_fact", user="ana") == first
        assert (memory.root, memory.seq) == (root, seq)

    def test_one_letter_typed_in_two_ways_is_the_same_fact(self, memory: recollect.Memory) -> None:
        first = memory.remember("Zo\u00eb sings")
        assert memory.remember("Zoe\u0308 sings") == first
        assert first.content == "Zo\u00eb sings"

    def test_the_same_words_of_another_user_are_another_fact(self, memory: recollect.Memory) -> None:
        memory.remember("likes tea", user="ana")
        memory.remember("likes tea", user="bob")
        assert memory.count() == 2

    def test_differing_importance_and_metadata_are_kept_and_reported(self, memory: recollect.Memory) -> None:
        first = memory.remember("a fact", importance=0.5, metadata={"n": 1})
        with pytest.warns(recollect.RecollectWarning, match="kept its metadata, importance"):
            assert memory.remember("a fact", importance=0.9, metadata={"n": 1.0}) == first
        report = memory.remember_all([{"content": "a fact", "importance": 0.9}])
        assert (report.results[0].status, report.results[0].differing) == ("unchanged", ("importance",))

    def test_differing_fields_are_updated_when_asked(self, memory: recollect.Memory) -> None:
        first = memory.remember("a fact", importance=0.5, tags=["x"])
        got = memory.remember("a fact", importance=0.9, if_exists="update")
        assert (got.id, got.importance, got.tags) == (first.id, 0.9, ("x",))

    def test_the_same_fact_again_is_an_error_when_asked(self, memory: recollect.Memory) -> None:
        first = memory.remember("a fact")
        with pytest.raises(RecordExistsError, match=first.hash):
            memory.remember("a fact", if_exists="error")
        memory.remember("another", id="n")
        with pytest.raises(RecordExistsError):
            memory.remember("and another", id="n", if_exists="error")

    def test_an_id_that_another_text_holds_gets_a_counter(self, memory: recollect.Memory) -> None:
        memory.remember("one", id="note")
        two = memory.remember("two", id="note")
        three = memory.remember("three", id="note")
        assert (two.id, three.id) == ("note-2", "note-3")
        assert memory.remember("two", id="note") == two  # and is found again there
        assert memory.count() == 3

    def test_an_id_that_another_text_holds_is_given_over_when_asked(self, memory: recollect.Memory) -> None:
        memory.remember("one", id="note", tags=["x"])
        got = memory.remember("two", id="note", if_exists="update")
        assert (got.id, got.content, got.tags) == ("note", "two", ("x",))
        assert memory.count() == 1

    def test_a_derived_id_whose_text_changed_leaves_the_text_free_to_be_said_again(
        self, memory: recollect.Memory
    ) -> None:
        first = memory.remember("the sky is blue")
        memory.update(first.id, content="the sky is grey")
        again = memory.remember("the sky is blue")
        assert again.id != first.id
        assert memory.remember("the sky is blue") == again
        assert {record.content for record in memory.find()} == {"the sky is blue", "the sky is grey"}

    def test_forgotten_and_remembered_again_is_the_same_id_and_a_new_version(self, memory: recollect.Memory) -> None:
        first = memory.remember("a fact")
        memory.forget(first.id)
        again = memory.remember("a fact")
        assert again.id == first.id
        history = [change for commit in memory.changes() for change in commit.changes]
        assert [change.cause for change in history] == ["written", "forgotten", "written"]
        assert history[0].after != history[2].after  # it happened at another time

    def test_a_repeated_turn_is_stored_each_time_it_was_said(self, memory: recollect.Memory) -> None:
        turns = [memory.remember(**turn(text)) for text in ("ok", "well", "ok", "ok")]
        assert len({each.id for each in turns}) == 4
        assert [each.position for each in turns] == [0, 1, 2, 3]
        assert [memory.remember(**turn("ok")).position for _ in range(20)] == list(range(4, 24))
        assert memory.count() == 24

    def test_a_turn_with_a_place_is_the_same_turn_when_it_is_passed_again(self, memory: recollect.Memory) -> None:
        for _ in range(2):
            memory.remember_all([turn("ok", position=0), turn("ok", position=1), turn("ok", "bob", position=2)])
        assert memory.count() == 3

    def test_a_conversation_passed_again_as_a_longer_list_adds_only_the_new_turns(
        self, memory: recollect.Memory
    ) -> None:
        passed = [turn("hi"), turn("ok", "bob"), turn("hi"), turn("ok", "bob")]
        memory.remember_all(passed)
        assert memory.remember_all(passed).count("unchanged") == 4
        report = memory.remember_all([*passed, turn("ok", "bob"), turn("bye")])
        assert (report.count("unchanged"), report.count("created")) == (4, 2)
        said = [record.content for record in memory.find(order="position")]
        assert said == ["hi", "ok", "hi", "ok", "ok", "bye"]

    def test_a_turn_that_was_forgotten_stays_so_when_the_conversation_is_passed_again(
        self, memory: recollect.Memory
    ) -> None:
        passed = [turn(text) for text in ("hello", "a secret", "how are you?", "hello")]
        secret = memory.remember_all(passed).results[1].record
        assert secret is not None
        memory.forget(secret.id)
        assert memory.remember_all([*passed, turn("bye")]).count("created") == 1
        assert [record.content for record in memory.find(order="position")] == ["hello", "how are you?", "hello", "bye"]
        memory.clear()
        assert memory.remember_all(passed).count("created") == 4  # nothing of it is stored: it is remembered again

    def test_a_conversation_longer_than_a_commit_is_known_when_passed_again(self, memory: recollect.Memory) -> None:
        passed = [turn(f"turn {number % 7}") for number in range(2100)]
        memory.remember_all(passed)
        assert memory.remember_all([*passed, turn("the end")]).count("created") == 1
        assert memory.count() == 2101

    def test_an_id_that_another_user_has_gets_a_counter_even_for_the_same_text(self, memory: recollect.Memory) -> None:
        first = memory.remember("tea", id="fav", user="ana")
        second = memory.remember("tea", id="fav", user="bob")
        assert (first.id, second.id, second.user) == ("fav", "fav-2", "bob")
        assert memory.remember("tea", id="fav", user="bob") == second
        assert memory.remember("tea", id="fav") == first  # a field that is not passed is not compared

    def test_the_next_turns_of_a_conversation_are_added_though_they_repeat_words(
        self, memory: recollect.Memory
    ) -> None:
        memory.remember_all([turn("hi"), turn("ok"), turn("fine")])
        report = memory.remember_all([turn("ok"), turn("bye")])
        assert report.count("created") == 2
        assert memory.remember_all([turn("hi")]).count("created") == 1  # one turn is one more turn
        assert memory.remember_all([turn("bye"), turn("hi"), turn("ok")]).count("created") == 1  # the end of the list
        assert memory.count() == 7

    @pytest.mark.promise("concurrent.import")
    @given(st.lists(st.booleans(), max_size=14), st.integers(2, 50))
    @settings(max_examples=some(40))
    def test_a_conversation_that_two_store_at_once_is_stored_once(self, order: list[bool], size: int) -> None:
        """Whatever the order in which their commits come; the second list may be longer."""
        texts = [f"turn {number % 17}" for number in range(50)]
        store = MemoryStore()
        memories = [memory_on(store), memory_on(store)]
        turns = Turns(order)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("recollect.engine.bulk.BULK", 10)
            threads = []
            for number, (memory, count) in enumerate(zip(memories, (size, 50), strict=True)):
                turns.wait_before_each_commit(memory, number)
                passed = [{"content": text, "kind": "conversation", "conversation": "c"} for text in texts[:count]]
                threads.append(threading.Thread(target=lambda m=memory, t=passed, n=number: turns.run(m, t, n)))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = [record.content for record in memories[0].find(f.conversation("c"), order="position")]
        assert found == texts

    def test_ids_are_composed_so_that_either_form_finds_the_record(self, memory: recollect.Memory) -> None:
        memory.remember("text", id="e\u0301")
        assert memory.get("\u00e9") is not None
        assert memory.get("e\u0301") is not None


class Turns:
    """Two threads take turns at committing, in a given order; then the one that is left goes on."""

    def __init__(self, order: list[bool]) -> None:
        self._order = [int(second) for second in order]
        self._changed = threading.Condition()
        self._done: set[int] = set()

    def wait_before_each_commit(self, memory: recollect.Memory, number: int) -> None:
        writing = core_of(memory).writing

        def waiting(*arguments: Any, **given: Any) -> Any:
            with self._changed:
                self._changed.wait_for(lambda: self._is_next(number))
            return writing(*arguments, **given)

        core_of(memory).writing = waiting  # type: ignore[method-assign]

    def _is_next(self, number: int) -> bool:
        while self._order and self._order[0] in self._done:
            self._order.pop(0)
        if self._order and self._order[0] == number:
            self._order.pop(0)
            self._changed.notify_all()
            return True
        return not self._order

    def run(self, memory: recollect.Memory, items: list[dict[str, str]], number: int) -> None:
        try:
            memory.remember_all(items)
        finally:
            with self._changed:
                self._done.add(number)
                self._changed.notify_all()


class TestCopies:
    @given(st.lists(records(st.sampled_from("abcde")), unique_by=lambda record: record.id, max_size=5))
    def test_copied_records_are_just_what_they_were(self, given: list[Record]) -> None:
        """Also where a turn has no position, an instruction no tag, and a record no time."""
        one, other = memory_on(MemoryStore()), memory_on(MemoryStore(), language="de")
        given = [record.changed(expires=None) for record in given]
        assert one.remember_all(given).failed == ()
        assert one.find(order="id") == sorted(given, key=lambda record: record.id)
        assert other.remember_all(one.find()).count("created") == len(given)
        assert other.root == one.root
        assert other.remember_all(given).count("unchanged") == len(given)

    def test_a_mark_that_was_taken_away_stays_away(self, memory: recollect.Memory) -> None:
        record = memory.remember("Always answer in French.", id="a")
        assert record.tags
        bare = memory.update("a", tags=None, time=None)
        other = memory_on(MemoryStore())
        other.remember_all([bare])
        assert other.get("a") == bare

    def test_an_exact_copy_names_its_record(self) -> None:
        for wrong in ({}, {"id": "a", "ttl": 1.0}):
            with pytest.raises(InvalidArgumentError, match="exact"):
                operations.Remember(content="x", exact=True, **wrong)  # type: ignore[arg-type]


class TestConditions:
    def test_a_lock_that_lasts_a_while_tells_a_retry_that_it_is_already_as_asked_for(
        self, memory: recollect.Memory
    ) -> None:
        first = memory.remember("by me", id="lock", expect="absent", ttl=60)
        with pytest.raises(ConflictError) as caught:
            memory.remember("by me", id="lock", expect="absent", ttl=60)
        assert caught.value.satisfied
        with pytest.raises(ConflictError) as caught:
            memory.remember("by another", id="lock", expect="absent", ttl=60)
        assert not caught.value.satisfied
        longer = memory.remember("by me", id="lock", expect=first, ttl=600)  # and its holder can renew it
        assert longer.expires is not None
        assert first.expires is not None
        assert longer.expires > first.expires

    def test_a_stale_expectation_names_the_current_hash_and_changes_nothing(self, memory: recollect.Memory) -> None:
        old = memory.remember("one", id="a")
        new = memory.update("a", content="two")
        root = memory.root
        for call in (
            lambda: memory.update("a", content="three", expect=old),
            lambda: memory.forget("a", expect=old.hash),
            lambda: memory.remember("three", id="a", expect=old),
            lambda: memory.remember("three", id="a", expect=recollect.ABSENT),
        ):
            with pytest.raises(ConflictError) as caught:
                call()
            assert caught.value.current == new.hash
            assert new.hash in str(caught.value)
        assert memory.root == root

    def test_an_expectation_that_holds_lets_the_write_through(self, memory: recollect.Memory) -> None:
        one = memory.remember("one", id="a", expect="absent")
        two = memory.remember("two", id="a", expect=one, tags=["t"])
        assert (two.content, two.tags) == ("two", ("t",))
        three = memory.update("a", content="three", expect=two.hash)
        assert memory.forget("a", expect=three)

    @pytest.mark.in_process
    @pytest.mark.promise("concurrent.compare-and-set")
    def test_a_state_that_already_is_as_asked_for_is_a_conflict_that_says_so(self, memory: recollect.Memory) -> None:
        one = memory.remember("one", id="a", tags=["t"])
        two = memory.update("a", content="two")
        satisfied: dict[str, Callable[[Any], object]] = {
            "remember": lambda expect: memory.remember("two", id="a", tags=["t"], expect=expect),
            "update": lambda expect: memory.update("a", content="two", tags=["t"], expect=expect),
        }
        other: dict[str, Callable[[Any], object]] = {
            "remember": lambda expect: memory.remember("two", id="a", expect=expect),  # would take the tag away
            "update": lambda expect: memory.update("a", content="three", expect=expect),
            "a function": lambda expect: memory.update("a", lambda record: record, expect=expect),
            "forget": lambda expect: memory.forget("a", expect=expect),
        }
        root = memory.root
        for calls, expected in ((satisfied, True), (other, False)):
            for call in calls.values():
                for stale in (one, "absent", "0" * 64):
                    with pytest.raises(ConflictError) as caught:
                        call(stale)
                    assert (caught.value.satisfied, caught.value.current) == (expected, two.hash)
        for call in satisfied.values():
            call(two)  # the expectation holds, and there is nothing to change
        assert memory.root == root
        memory.forget("a", expect=two)
        for name, call in (other | satisfied).items():
            with pytest.raises(ConflictError) as caught:
                call(two)
            assert (caught.value.satisfied, caught.value.current) == (name == "forget", "absent")

    @pytest.mark.promise("concurrent.compare-and-set")
    def test_of_two_that_ask_for_the_same_change_one_makes_it(self, memory: recollect.Memory) -> None:
        seen = memory.remember("0", id="n", metadata={"n": 0})
        memory.update("n", metadata={"n": 1}, expect=seen)
        with pytest.raises(ConflictError):
            memory.update("n", metadata={"n": 1}, expect=seen)
        memory.remember("lock", id="lock", expect="absent")
        with pytest.raises(ConflictError) as caught:
            memory.remember("lock", id="lock", expect="absent")
        assert caught.value.satisfied
        assert memory.forget("lock", expect=caught.value.current)

    def test_what_is_replaced_on_condition_is_replaced_whole(self, memory: recollect.Memory) -> None:
        one = memory.remember("one", id="a", tags=["t"], user="ana")
        two = memory.remember("one", id="a", user="ana", expect=one)
        assert two.tags == ()
        assert memory.execute(operations.Remember(content="one", id="a", fields={"user": "ana"}, expect=two.hash)) == (
            Outcome(two, "unchanged")
        )

    def test_an_expectation_of_a_record_that_is_not_there_names_its_absence(self, memory: recollect.Memory) -> None:
        with pytest.raises(ConflictError) as caught:
            memory.remember("one", id="a", expect="0" * 64)
        assert caught.value.current == "absent"

    def test_only_one_of_many_threads_wins_a_condition(self, memory: recollect.Memory) -> None:
        won: list[int] = []
        ready = threading.Barrier(8)

        def work(worker: int) -> None:
            ready.wait()
            try:
                memory.remember(f"worker {worker}", id="leader", expect="absent")
            except ConflictError:
                return
            won.append(worker)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        leader = memory.get("leader")
        assert leader is not None
        assert leader.content == f"worker {won[0]}"


@pytest.mark.in_process
def test_a_bulk_write_keeps_few_payloads_of_the_records_that_it_looks_up(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        large = [{"content": f"{number} " + "x" * 300_000, "id": str(number)} for number in range(60)]
        memory.remember_all(large)
        kept: list[int] = []
        real = Writer.look_up

        def looked_up(writer: Writer, drafts: Any) -> None:
            real(writer, drafts)
            kept.append(sum(len(each.stored.payload) for each in writer._resolved.values() if each.stored))

        with patch.object(Writer, "look_up", looked_up):
            report = memory.remember_all(large)
        assert report.count("unchanged") == 60
        assert 0 < max(kept) <= 2**22


class TestReadingAndWriting:
    @pytest.mark.in_process
    def test_update_takes_fields_or_a_function_and_none_takes_a_field_away(self, memory: recollect.Memory) -> None:
        memory.remember("text", id="a", tags=["x"], importance=0.5, metadata={"k": 1}, pinned=True)
        assert memory.update("a", tags=None, importance=None, metadata=None, pinned=None).to_json().keys() == {
            "id",
            "kind",
            "content",
            "time",
        }
        assert memory.update("a", lambda record: record.changed(content=record.text + "!")).content == "text!"

    @pytest.mark.in_process
    def test_update_of_an_unknown_id_or_field_is_an_error_by_name(self, memory: recollect.Memory) -> None:
        with pytest.raises(UnknownRecordError, match="no record 'nope'"):
            memory.update("nope", content="x")
        memory.remember("text", id="a")
        with pytest.raises(TypeError, match="did you mean 'importance'"):
            memory.update("a", importence=0.5)  # type: ignore[call-arg]
        with pytest.raises(InvalidArgumentError):
            memory.update("a")
        with pytest.raises(RecollectError, match="must return a record"):
            memory.update("a", lambda record: "text")  # type: ignore[arg-type,return-value]
        with pytest.raises(RecollectError, match="cannot change"):
            memory.update("a", lambda record: record.changed(id="b"))

    def test_forgetting_twice_is_no_error_and_an_unknown_id_is(self, memory: recollect.Memory) -> None:
        memory.remember("text", id="a")
        assert memory.forget("a") is True
        assert memory.forget("a") is False
        with pytest.raises(UnknownRecordError):
            memory.forget("never held")

    def test_forgetting_many_skips_what_is_missing_and_is_one_commit(self, memory: recollect.Memory) -> None:
        memory.remember_all([{"content": f"text {number}", "id": str(number)} for number in range(4)])
        memory.forget("0")
        before = memory.seq
        assert memory.forget_all(["0", "1", "never", "2", "1"]) == 2
        assert (memory.seq, [record.id for record in memory.find()]) == (before + 1, ["3"])
        assert memory.forget_all([]) == memory.forget_all(iter(["never"])) == 0
        assert memory.seq == before + 1
        with pytest.raises(InvalidArgumentError, match="several ids"):
            memory.forget_all("3")
        assert memory.get("3") is not None

    def test_a_missing_id_can_be_ignored_and_an_expectation_still_counts(self, memory: recollect.Memory) -> None:
        assert memory.forget("never", missing="ignore") is False
        with memory.batch() as batch:
            batch.remember("text", id="a")
            assert batch.forget("never", missing="ignore") is False
        assert memory.count() == 1
        with pytest.raises(ConflictError):
            memory.forget("a", expect="0" * 64, missing="ignore")
        with pytest.raises(InvalidArgumentError, match="missing"):
            memory.forget("a", missing="skip")  # type: ignore[arg-type]
        assert memory.count() == 1

    def test_the_records_of_several_ids_come_in_their_order(self, memory: recollect.Memory) -> None:
        memory.remember_all([{"content": f"text {number}", "id": str(number)} for number in range(250)])
        memory.forget("7")
        memory.remember("soon gone", id="due", ttl=1e-6)
        ids = ["3", "7", "never", "3", "due", *map(str, range(200, 250))]
        found = memory.get_all(ids)
        assert [record and record.id for record in found] == ["3", None, None, "3", None, *map(str, range(200, 250))]
        assert memory.get_all([]) == []
        with pytest.raises(InvalidArgumentError, match="several ids"):
            memory.get_all("3")

    def test_a_scope_gets_and_forgets_only_its_own_among_several(self, memory: recollect.Memory) -> None:
        memory.remember("of bob", id="b", user="bob")
        ana = memory.scoped(user="ana")
        own = ana.remember("of ana", id="a")
        assert ana.get_all(["a", "b"]) == [own, None]
        assert ana.forget_all(["a", "b"]) == 1
        assert memory.count() == 1

    def test_values_are_listed_with_the_number_of_records_that_have_them(self, memory: recollect.Memory) -> None:
        colors: list[Any] = ["red", "blue", 1, True, None, ["red", "green", "red"], {"red": 1}, 2.5]
        memory.remember_all(
            [
                {
                    "content": f"text {number} {'x' * 3000 if number == 1 else ''}",  # one that no index has whole
                    "tags": ["all", f"ns:{number % 3}"],
                    "user": ("ana", "bob")[number % 2],
                    "metadata": {"color": color, "in": {"a": number // 4}},
                }
                for number, color in enumerate(colors)
            ]
        )
        memory.remember("soon gone", tags=["gone"], ttl=1e-6)
        assert memory.values("tag") == [("all", 8), ("ns:0", 3), ("ns:1", 3), ("ns:2", 2)]
        assert memory.values("tag", prefix="ns:", limit=1) == [("ns:0", 3)]
        assert memory.values("tag", prefix="ns:", after="ns:0") == [("ns:1", 3), ("ns:2", 2)]
        expected = [(True, 1), (1, 1), (2.5, 1), ("blue", 1), ("green", 1), ("red", 2)]
        assert memory.values("meta.color") == expected
        assert [type(each.value) for each in memory.values("meta.color", limit=2)] == [bool, int]
        assert memory.values("meta.color", after=True) == expected[1:]
        assert memory.values("meta[in][a]") == [(0, 4), (1, 4)]
        assert memory.values("user", where="tag=ns:0") == [("ana", 2), ("bob", 1)]
        assert memory.values("user", where="content~text") == [("ana", 4), ("bob", 4)]  # no index decides it
        assert memory.scoped(user="ana").values("tag", prefix="ns:") == [("ns:0", 2), ("ns:1", 1), ("ns:2", 1)]
        assert memory.values("session") == []
        with memory.batch() as batch:
            batch.remember("new", tags=["new"])
            assert batch.values("tag", prefix="n")[0] == ("new", 1)
        for wrong in ("meta[", "meta.'tis"):
            with pytest.raises(InvalidArgumentError, match="field"):
                memory.values(wrong)
        for after in (float("inf"), ["a"]):
            with pytest.raises(InvalidArgumentError, match="after"):
                memory.values("tag", after=after)  # type: ignore[arg-type]
        for wrong in ("id", "meta", "colour"):
            with pytest.raises(InvalidArgumentError, match=r"must be one of tag, .*, or meta.KEY"):
                memory.values(wrong)

    def test_which_of_two_equal_numbers_is_listed_does_not_depend_on_their_order(self) -> None:
        listed = []
        for order in ((1, 1.0, 2.5, 2**60), (2**60, 2.5, 1.0, 1)):
            memory = recollect.open(":memory:")
            memory.remember_all([{"content": f"{number!r}", "metadata": {"n": number}} for number in order])
            listed.append([repr(each.value) for each in memory.values("meta.n")])
        assert listed == [["1", "2.5", str(2**60)]] * 2

    @pytest.mark.in_process
    def test_what_questions_decode_counts_as_memory_of_the_index(self, memory: recollect.Memory) -> None:
        memory.remember_all([{"content": f"text {at}", "metadata": {"n": [str(at)] * 20}} for at in range(2000)])
        memory.recall("text 7")
        before = core_of(memory).keeper.use.nbytes
        assert memory.count(f.meta("n", any_of=["7"])) == 1
        memory.recall("text 8")
        assert core_of(memory).keeper.use.nbytes > before + 2000 * 20 * 30

    def test_recent_find_and_count_agree(self, memory: recollect.Memory) -> None:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        for day in range(5):
            memory.remember(f"day {day}", time=start + timedelta(days=day), importance=day / 4)
        assert [record.content for record in memory.find(limit=2)] == ["day 4", "day 3"]
        assert [record.content for record in memory.find(f.importance_at_least(0.75), order="oldest")] == [
            "day 3",
            "day 4",
        ]
        assert memory.count(f.before(start + timedelta(days=2))) == 2
        assert memory.forget_where(f.after(start + timedelta(days=2))) == 2
        assert memory.clear() == 3
        assert memory.stats()["records"] == 0

    @pytest.mark.in_process
    def test_forgetting_by_a_custom_filter_forgets_just_those(self, memory: recollect.Memory) -> None:
        memory.remember_all(["keep this", "drop this", "keep that"])
        assert memory.forget_where(f.custom(lambda record: "drop" in record.content)) == 1
        assert memory.count() == 2

    @pytest.mark.in_process
    def test_a_predicate_that_raises_forgets_nothing(self, memory: recollect.Memory) -> None:
        memory.remember_all(["one", "two"])
        with pytest.raises(ZeroDivisionError):
            memory.forget_where(f.custom(lambda record: 1 / 0))
        assert memory.count() == 2

    def test_what_expires_is_gone_at_its_instant_from_every_read(self) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        memory = memory_on(MemoryStore(), clock=lambda: now[0])
        memory.remember("a brief notice", id="a", expires=now[0] + timedelta(hours=1), user="u")
        memory.remember("a lasting notice", id="b", user="u")
        assert len(memory.recall("notice")) == 2
        before = memory.recall("lasting notice")[0].score
        now[0] += timedelta(hours=1)
        assert [hit.record.id for hit in memory.recall("notice")] == ["b"]
        assert memory.get("a") is None
        assert (memory.count(), len(memory.grep("notice")), len(memory.find(limit=5))) == (1, 1, 1)
        assert memory.stats()["records"] == 1
        fresh = memory_on(MemoryStore())
        fresh.remember("a lasting notice", id="b", user="u")
        assert memory.recall("lasting notice")[0].score == fresh.recall("lasting notice")[0].score != before

    def test_a_touch_lets_records_expire_later_in_one_commit(self) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        memory = memory_on(MemoryStore(), clock=lambda: now[0])
        for name in ("a", "b", "c"):
            memory.remember(f"entry {name}", id=name, ttl=100)
        now[0] += timedelta(seconds=50)
        seq = memory.seq
        assert memory.touch(["a", "b", "a", "gone"], ttl=100) == 2
        assert memory.seq == seq + 1
        assert {each.id for each in memory.changes(seq)[0].changes} == {"a", "b"}
        assert memory.touch(["a"], timedelta(seconds=105)) == 1  # less than a tenth: not worth a commit
        assert memory.seq == seq + 1
        now[0] += timedelta(seconds=60)
        assert [record.id for record in memory.find(order="id")] == ["a", "b"]
        assert memory.touch(["c"], ttl=100) == 0
        with memory.batch() as batch:
            assert batch.touch(["a"], ttl=30) == 1  # sooner, too
        assert memory.get("a").expires == now[0] + timedelta(seconds=30)  # type: ignore[union-attr]

    @pytest.mark.parametrize("when_full", ["refuse", "least recent", "least important", "oldest"])
    @pytest.mark.parametrize("in_batch", [False, True])
    def test_a_touch_evicts_nothing_and_is_not_refused_by_a_full_quota(self, when_full: Any, in_batch: bool) -> None:
        memory = memory_on(MemoryStore())
        ids = [memory.remember(f"fact number {number}", id=f"r{number}").id for number in range(4)]
        memory.set_quota(bytes=10**6)
        memory.set_quota(bytes=memory.stats()["quota"]["bytes_used"] + 1, when_full=when_full)
        with memory.batch() if in_batch else nullcontext(memory) as writer:
            assert writer.touch(ids, ttl=1000) == 4
        assert [record.expires is not None for record in memory.find(order="id")] == [True] * 4
        used = memory.stats()["quota"]["bytes_used"]
        assert used == sum(len(record.to_bytes()) for record in memory.find())  # it counts what it added

    @pytest.mark.parametrize(
        ("ids", "ttl"), [("abc", 1), (None, 1), ([""], 1), (["a"], 0), (["a"], "x"), (["a"], None)]
    )
    def test_a_touch_of_something_else_is_refused(self, ids: Any, ttl: Any) -> None:
        memory = memory_on(MemoryStore())
        with pytest.raises(RecollectError):
            memory.touch(ids, ttl)
        assert memory.seq == 0

    def test_the_next_commit_sweeps_out_what_is_due(self) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        memory = memory_on(MemoryStore(), clock=lambda: now[0])
        memory.remember("brief", id="a", expires=now[0] + timedelta(hours=1))
        memory.remember("as brief", id="b", expires=now[0] + timedelta(hours=1))
        now[0] += timedelta(hours=1)
        seq = memory.seq
        memory.remember("lasting", id="c", time=now[0])
        assert [(each.id, each.cause) for each in memory.changes(seq)[0].changes] == [
            ("c", "written"),
            ("a", "expired"),
            ("b", "expired"),
        ]
        fresh = memory_on(MemoryStore())
        fresh.remember("lasting", id="c", time=now[0])
        assert memory.root == fresh.root
        memory.remember("gone as soon as it is there", id="d", expires=now[0])
        assert [each.cause for each in memory.changes(id="d")[0].changes] == ["written"]
        assert memory.clear() == 1
        assert [commit.seq for commit in memory.changes(id="d")] == [3 + 1, 3 + 2]
        assert memory.root == memory_on(MemoryStore()).root

    def test_forgetting_takes_what_is_due_along(self, memory: recollect.Memory) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        for store in (MemoryStore(), core_of(memory).store):
            memory = memory_on(store, "due", clock=lambda: now[0])
            for way in ("forget", "forget_where", "scoped", "batch"):
                now[0] = datetime(2026, 1, 1, tzinfo=UTC)
                due = {"id": way, "user": "ana", "expires": now[0] + timedelta(seconds=5)}
                if way != "batch":
                    memory.remember("a secret", **due)  # type: ignore[arg-type]
                now[0] += timedelta(seconds=10)
                if way == "forget":
                    assert memory.forget(way) is False
                elif way == "forget_where":
                    assert memory.forget_where(f.user("ana")) == 0
                elif way == "scoped":
                    assert memory.scoped(user="ana").clear() == 0
                else:
                    with memory.batch() as batch:
                        batch.remember("a secret", **due)  # type: ignore[arg-type]
                        batch.clear()
                now[0] -= timedelta(seconds=9)  # another process's clock
                assert memory.find() == []
                assert memory.root == memory_on(MemoryStore()).root

    def test_an_id_that_no_commit_names_was_never_stored(self, memory: recollect.Memory) -> None:
        turn = {"kind": "conversation", "conversation": "c"}
        for each in (memory, memory_on(MemoryStore())):
            with each.batch() as batch:
                batch.remember("x", id="x")
                batch.forget("x")
            with pytest.raises(UnknownRecordError):
                each.forget("x")
            each.remember("hi", **turn)  # type: ignore[arg-type]
            with each.batch() as batch:
                batch.forget(batch.remember("bye", **turn).id)  # type: ignore[arg-type]
            report = each.remember_all([{"content": text, **turn} for text in ("hi", "bye")])
            assert [outcome.status for outcome in report.results] == ["unchanged", "created"]

    def test_the_history_of_an_id_tells_a_scope_nothing_of_others(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch:
            batch.remember("private", id="bobs", user="bob")
            batch.remember("ana's", id="anas", user="ana")
        ana = memory.scoped(user="ana")
        assert ana.changes(id="bobs") == []
        assert len(ana.changes(id="anas")) == 1

    def test_a_listener_loses_nothing_when_its_reading_fails_once(self, memory: recollect.Memory) -> None:
        for listening in (memory, memory.scoped(user="ana")):
            heard: list[str] = []
            failed: list[int] = []
            real = core_of(memory).store.read

            def read(real: Any = real, failed: list[int] = failed) -> Any:
                if threading.current_thread().name == "recollect-listener" and not failed:
                    failed.append(1)
                    raise StoreBusyError("x", "for now")
                return real()

            with listening.listen(lambda commit: heard.extend(each.id for each in commit.changes)) as subscription:  # noqa: B023
                subscription.drain()
                core_of(memory).store.read = read  # type: ignore[method-assign]
                names = [memory.remember(f"{text} {listening!r}", user="ana").id for text in ("one", "two")]
                core_of(memory).store.read = real  # type: ignore[method-assign]
                subscription.wake()
                subscription.drain()
                assert isinstance(subscription.error, StoreBusyError) == bool(failed)
            assert heard == names

    @pytest.mark.in_process
    def test_a_filter_that_writes_while_it_is_asked_does_no_harm(self) -> None:
        memory = memory_on(MemoryStore())
        memory.remember_all(["one", "two"])

        def noting(record: recollect.Record) -> bool:
            memory.remember(f"seen {record.id}", id=f"seen-{record.id}")
            return True

        assert len(memory.find(f.custom(noting))) == 2

    def test_standing_instructions_are_tagged_and_come_in_a_list_of_their_own(self, memory: recollect.Memory) -> None:
        rule = memory.remember("Always format dates as year-month-day.", user="ana")
        assert rule.tags == ("standing:instruction",)
        wish = memory.remember("I don't eat meat", user="ana", tags=["food"])
        assert set(wish.tags) == {"food", "standing:preference"}
        memory.remember("Always at your service.", role="assistant")
        memory.remember("When is the ferry? It is on 3 May.", user="ana")
        hits = memory.recall("when does the ferry leave?", k=1)
        assert {hit.record.id for hit in hits.standing} == {rule.id, wish.id}
        assert [hit.record.content for hit in hits] == ["When is the ferry? It is on 3 May."]
        assert memory.recall("ferry", where=f.tag("food")).standing[0].record == wish
        assert memory.scoped(user="bob").recall("ferry").standing == ()
        # A tag is the user's to take away and to give, in any language.
        assert memory.update(rule.id, tags=[]).tags == ()
        memory.remember("Svar altid på dansk", tags=["standing:instruction"], user="ana")
        found = [hit.record.content for hit in memory.recall("ferry").standing]
        assert found == ["Svar altid på dansk", "I don't eat meat"]
        assert memory.update(wish.id, content="I eat anything").tags == ("food",)
        again = memory.remember("Always answer in French.", id="rule")
        assert memory.update("rule", content="Always answer in German.").tags == again.tags == ("standing:instruction",)
        memory.update("rule", tags=["x"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kept = memory.remember("Always answer in German.", id="rule", tags=["x"])
        assert kept.tags == ("x",)
        taken = memory.remember("Always answer in German.", id="rule", tags=["x"], if_exists="update", importance=0.5)
        assert taken.tags == ("x",)

    def test_hits_below_the_least_confidence_are_left_out(self, memory: recollect.Memory) -> None:
        memory.remember_all(["the ferry leaves at nine", "the ferry is green", "nine green bottles"])
        hits = memory.recall("when does the ferry leave?")
        assert len(hits) > 1
        least = hits[0].confidence
        assert [hit.record for hit in memory.recall("when does the ferry leave?", min_confidence=least)] == [
            hit.record for hit in hits if hit.confidence >= least
        ]
        assert memory.recall("when does the ferry leave?", min_confidence=1.0).hits == ()
        for wrong in (-0.1, 1.1, "high", True, float("nan")):
            with pytest.raises(InvalidArgumentError, match="min_confidence"):
                memory.recall("x", min_confidence=wrong)  # type: ignore[arg-type]

    def test_yesterday_counts_from_the_reference_time(self, memory: recollect.Memory) -> None:
        day = datetime(2026, 5, 4, 12, tzinfo=UTC)
        for number in range(3):
            memory.remember(f"soup number {number}", id=f"s{number}", time=day + timedelta(days=number))
        for number in range(3):
            hits = memory.recall("which soup did we eat yesterday?", reference=day + timedelta(days=number + 1))
            assert hits[0].record.id == f"s{number}"
            assert hits[0].why.shares["date"] > 0
        with pytest.raises(InvalidArgumentError, match="reference"):
            memory.recall("x", reference=datetime(2026, 1, 1))
        with pytest.raises(InvalidArgumentError, match="language"):
            memory.recall("x", language="de!")
        far = timezone(timedelta(hours=12))  # where it is the 5th already, and the 4th in UTC
        here = memory_on(MemoryStore(), clock=lambda: datetime(2026, 5, 5, 8, tzinfo=far))
        here.remember("we had soup")
        assert here.recall("what did we eat today?")[0].why.shares["date"] > 0

    def test_what_is_reported_together_keeps_its_order(self, memory: recollect.Memory) -> None:
        memory.remember_all([f"turn {number}" for number in range(8)])
        assert [record.content for record in memory.find(limit=3)] == ["turn 7", "turn 6", "turn 5"]
        with memory.batch() as batch:
            for number in range(8, 12):
                batch.remember(f"turn {number}")
        assert [record.content for record in memory.find(order="oldest")] == [f"turn {number}" for number in range(12)]
        said = datetime(2026, 1, 1, tzinfo=UTC)
        chat = memory.namespace("chat")
        chat.remember_all(
            {"content": f"turn {number}", "kind": "conversation", "conversation": "c", "time": said}
            for number in range(8)
        )
        assert [record.content for record in chat.find(limit=2)] == ["turn 7", "turn 6"]

    def test_a_keyword_that_a_call_does_not_have_is_our_error(self, memory: recollect.Memory) -> None:
        with pytest.raises(UnknownArgumentError, match=r"recall\(\).*'wher'.*'where'"):
            memory.recall("x", wher=f.everything())  # type: ignore[call-arg]
        with pytest.raises(UnknownArgumentError, match="namespace"):
            recollect.open(":memory:", namspace="x")  # type: ignore[call-arg]
        with memory.batch() as batch, pytest.raises(UnknownArgumentError, match="actr"):
            batch.execute(operations.Stats(), actr="x")  # type: ignore[call-arg]
        assert inspect.iscoroutinefunction(recollect.AsyncMemory.recall)
        with pytest.raises(UnknownArgumentError, match="user"):
            memory.scoped(usr="ana")  # type: ignore[call-arg]

    def test_the_report_of_many_names_item_place_and_reason(self, memory: recollect.Memory) -> None:
        items: list[Any] = [
            "fine",
            "",
            {"content": "x", "importance": 7},
            {"no": "content"},
            42,
            user_fact("good", user="u"),
        ]
        report = memory.remember_all(items)
        assert [failed.index for failed in report.failed] == [1, 2, 3, 4]
        assert [failed.item for failed in report.failed] == items[1:5]
        assert all(isinstance(failed.reason, RecollectError) for failed in report.failed)
        assert [outcome.status for outcome in report.results] == ["created", "created"]
        root = memory.root
        with pytest.raises(RecollectError):
            memory.remember_all(["also fine", ""], on_error="raise")
        assert memory.root == root

    def test_many_are_one_commit_for_each_thousand(self, memory: recollect.Memory) -> None:
        memory.remember_all(f"text {number}" for number in range(2500))
        assert [len(commit.changes) for commit in memory.changes()] == [1000, 1000, 500]


class TestBatches:
    def test_a_batch_is_one_commit_and_sees_its_own_writes(self, memory: recollect.Memory) -> None:
        memory.remember("old lighthouse", id="old")
        with memory.batch(actor="tester", reason="tidy") as batch:
            batch.remember("a new lighthouse", id="new")
            batch.forget("old")
            assert [record.id for record in batch.find()] == ["new"]
            assert [hit.record.id for hit in batch.recall("lighthouse")] == ["new"]
            batch.update("new", content="a new harbour")
            assert len(batch.recall("lighthouse")) == 0
            assert [hit.record.id for hit in batch.recall("harbour")] == ["new"]
        commit = memory.changes(since=1)
        assert len(commit) == 1
        assert (commit[0].actor, commit[0].reason) == ("tester", "tidy")
        assert {(change.id, change.cause) for change in commit[0].changes} == {("new", "written"), ("old", "forgotten")}

    def test_the_memory_itself_sees_a_batch_only_once_it_is_committed(self, memory: recollect.Memory) -> None:
        memory.remember("a lighthouse", id="a")
        with memory.batch() as batch:
            batch.forget("a")
            batch.remember("a second lighthouse", id="b")
            assert [hit.record.id for hit in memory.recall("lighthouse")] == ["a"]
            assert [hit.record.id for hit in batch.recall("lighthouse")] == ["b"]
            assert (memory.count(), memory.get("b") is not None) == (1, False)
        assert [hit.record.id for hit in memory.recall("lighthouse")] == ["b"]

    def test_an_exception_undoes_the_batch_and_its_words_are_not_found(self, memory: recollect.Memory) -> None:
        memory.remember("kept lighthouse")
        scores = [hit.score for hit in memory.recall("lighthouse harbour")]
        with pytest.raises(KeyError), memory.batch() as batch:
            batch.remember("a harbour")
            batch.recall("harbour")
            raise KeyError
        assert [hit.score for hit in memory.recall("lighthouse harbour")] == scores
        assert memory.seq == 1

    def test_a_batch_that_searched_and_was_given_up_leaves_no_trace_in_any_index(
        self, memory: recollect.Memory
    ) -> None:
        memory.remember("a lighthouse keeper", id="a")  # nothing is indexed yet
        with pytest.raises(KeyError), memory.batch() as batch:
            batch.update("a", content="zebra")
            batch.remember("giraffe", id="g")
            assert [hit.record.id for hit in batch.recall("zebra")] == ["a"]
            assert [record.id for record in batch.grep("zebra or giraffe")] == ["g", "a"]
            assert batch.grep("lighthouse") == []
            assert [hit.record.id for hit in memory.recall("lighthouse")] == ["a"]
            assert [record.id for record in memory.grep("lighthouse")] == ["a"]
            raise KeyError
        assert [hit.record.id for hit in memory.recall("lighthouse")] == ["a"]
        assert [record.id for record in memory.grep("lighthouse")] == ["a"]
        assert memory.recall("zebra giraffe").hits == ()
        assert memory.grep("zebra or giraffe") == []

    def test_many_in_a_batch_are_reported_or_the_batch_is_given_up(self, memory: recollect.Memory) -> None:
        memory.remember("held", id="t")
        taken = {"content": "x", "id": "t", "if_exists": "error"}
        with memory.batch() as batch:
            report = batch.remember_all(["first", taken, "third"])
            assert ([each.index for each in report.failed], len(report.results)) == ([1], 2)
        assert memory.count() == 3
        with pytest.raises(RecordExistsError), memory.batch() as batch:
            with pytest.raises(RecordExistsError):
                batch.remember_all(["fourth", taken], on_error="raise")
            batch.remember("fifth")
        assert memory.count() == 3

    def test_a_batch_is_no_part_of_a_batch(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch, pytest.raises(InvalidArgumentError):
            batch.execute(operations.ExecuteBatch(operations=(operations.Clear(),)))

    @pytest.mark.in_process
    def test_closing_from_inside_a_batch_is_refused_and_does_not_hang(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch:
            with pytest.raises(RecollectError, match="inside a batch"):
                memory.close()
            batch.remember("goes on")
        assert memory.count() == 1

    def test_a_write_beside_the_batch_of_its_thread_is_refused_at_once(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch:
            for write in (lambda: memory.remember("beside it"), lambda: memory.batch().__enter__(), memory.clear):
                with pytest.raises(StoreBusyError, match=r"the batch's own calls.*nothing was changed"):
                    write()
            assert memory.count() == 0  # it may read
            batch.remember("goes on")
        memory.remember("after it")
        assert memory.count() == 2

    def test_a_batch_that_comes_to_nothing_is_no_commit(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch:
            record = batch.remember("gone again")
            batch.forget(record.id)
        assert (memory.seq, memory.count()) == (0, 0)

    def test_a_refused_call_leaves_the_batch_as_it_was(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch:
            batch.remember("one", id="a")
            with pytest.raises(UnknownRecordError):
                batch.forget("nope")
            with pytest.raises(RecollectError):
                batch.remember("")
        assert memory.count() == 1

    def test_a_batch_that_has_ended_refuses(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch:
            pass
        with pytest.raises(RecollectError, match="the batch is closed"):
            batch.remember("late")

    def test_operations_as_values_are_one_commit_or_none(self, memory: recollect.Memory) -> None:
        wanted = operations.ExecuteBatch(
            operations=(
                operations.Remember(content="one", id="a"),
                operations.Update(id="a", changes={"content": "two"}),
                operations.Count(),
            ),
            reason="together",
        )
        assert operations.from_json(wanted.to_json()) == wanted
        assert memory.execute(wanted)[2] == 1
        assert [commit.reason for commit in memory.changes()] == ["together"]
        failing = operations.ExecuteBatch(operations=(operations.Clear(), operations.Forget(id="nope")))
        with pytest.raises(UnknownRecordError):
            memory.execute(failing)
        assert memory.count() == 1


class TestScopes:
    @pytest.fixture
    def ana(self, memory: recollect.Memory) -> recollect.Memory:
        memory.remember("Ana's tea is green", id="hers", user="ana", importance=0.5)
        memory.remember("Bob's tea is black", id="his", user="bob", importance=0.5)
        return memory.scoped(user="ana")

    def test_reads_see_only_what_lies_in_the_scope(self, memory: recollect.Memory, ana: recollect.Memory) -> None:
        assert [hit.record.id for hit in ana.recall("tea")] == ["hers"]
        assert [record.id for record in ana.find(f.everything() | f.user("bob"))] == ["hers"]
        assert [record.id for record in ana.grep("tea")] == ["hers"]
        assert (ana.count(), ana.get("his"), ana.get("his") is not None) == (1, None, False)
        stats = ana.stats()
        assert (stats["records"], stats["users"], "root" in stats) == (1, 1, False)

    def test_writes_stay_in_the_scope(self, memory: recollect.Memory, ana: recollect.Memory) -> None:
        assert ana.remember("likes honey").user == "ana"
        with pytest.raises(ScopeError):
            ana.remember("a forgery", user="bob")
        with pytest.raises(ScopeError):
            ana.update("hers", user="bob")
        for call in (lambda: ana.update("his", content="x"), lambda: ana.forget("his")):
            with pytest.raises(UnknownRecordError):
                call()
        assert ana.remember("x", id="his", if_exists="update").id == "his"  # of her own
        assert memory.get("his").user == "bob"  # type: ignore[union-attr]
        assert ana.forget_where(f.everything()) == 3
        assert [record.id for record in memory.find()] == ["his"]

    def test_a_scope_cannot_be_lifted_or_widened(self, memory: recollect.Memory, ana: recollect.Memory) -> None:
        with pytest.raises(ScopeError):
            ana.scoped(user="bob")
        with pytest.raises(ScopeError):
            ana.namespace("other")
        assert ana.scoped(conversation="c").count() == 0
        memory.namespace("secret").remember("x")
        assert ana.namespaces() == ["default"]

    def test_the_log_of_a_scope_names_only_its_own_changes(
        self, memory: recollect.Memory, ana: recollect.Memory
    ) -> None:
        memory.forget("his")
        memory.forget("hers")
        assert [change.id for commit in ana.changes() for change in commit.changes] == ["hers", "hers"]
        heard: list[str] = []
        with ana.listen(lambda commit: heard.extend(change.id for change in commit.changes), since=0):
            pass
        assert heard == ["hers", "hers"]

    def test_context_comes_only_from_turns_that_the_scope_may_see(self, memory: recollect.Memory) -> None:
        memory.remember(**turn("the secret lighthouse?", user="bob"))
        memory.remember(**turn("beyond the bay", user="ana"))
        assert len(memory.recall("secret lighthouse")) == 2
        assert len(memory.scoped(user="ana").recall("secret lighthouse")) == 0
        mixed = memory.scoped(user="ana").recall("lighthouse bay")
        assert ["context" in hit.why.shares for hit in mixed] == [False]
        assert "lighthouse" not in str(mixed[0].why)

    def test_the_words_and_the_log_of_others_do_not_leak_through_a_scope(self, memory: recollect.Memory) -> None:
        memory.remember("schizophrenia", user="bob")
        with memory.batch(actor="dr", reason="bob's diagnosis") as batch:
            batch.remember("a restaurannt", user="bob")
            batch.remember("a good restaurant", user="ana", id="r")
        ana = memory.scoped(user="ana")
        assert [term.like for term in ana.recall("schizofrenia").plan.terms] == [""]
        assert [hit.record.id for hit in ana.recall("restaurannt")] == ["r"]
        assert [(commit.actor, commit.reason) for commit in ana.changes()] == [(None, None)]
        assert ana.recall("restaurant").root == ""
        for tell in (lambda: ana.root, lambda: ana.seq):
            with pytest.raises(ScopeError):
                tell()

    def test_a_scope_needs_a_field(self, memory: recollect.Memory) -> None:
        with pytest.raises(InvalidArgumentError):
            memory.scoped()
        with pytest.raises(InvalidArgumentError):
            memory.scoped(user="")


class TestNamespaces:
    def test_nothing_crosses_a_namespace(self, memory: recollect.Memory) -> None:
        other = memory.namespace("other")
        memory.remember("lighthouse", id="a")
        assert (other.count(), len(other.recall("lighthouse")), other.get("a"), other.grep("lighthouse")) == (
            0,
            0,
            None,
            [],
        )
        other.remember("harbour", id="a")
        assert memory.get("a") != other.get("a")
        assert memory.namespaces() == ["default", "other"]
        other.clear()
        assert memory.count() == 1

    def test_one_tenants_words_do_not_change_anothers_scores(self, memory: recollect.Memory) -> None:
        memory.remember("the lighthouse is lit")
        score = memory.recall("lighthouse")[0].score
        memory.namespace("other").remember_all(f"lighthouse number {number}" for number in range(50))
        assert memory.recall("lighthouse")[0].score == score

    @pytest.mark.parametrize("name", ["", "a\nb", "x" * 256, "\ud800", 7])
    def test_a_bad_name_is_refused(self, memory: recollect.Memory, name: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="namespace"):
            memory.namespace(name)


class TestChanges:
    def test_the_newest_first_are_the_same_the_other_way_round(self, memory: recollect.Memory) -> None:
        for number in range(600):  # more than are read at a time
            memory.remember(
                f"text {number}", id=f"r{number % 7}", user="ana" if number % 3 else "bob", if_exists="update"
            )
        for each in (memory, memory.scoped(user="ana")):
            assert each.changes(newest_first=True) == each.changes()[::-1]
            assert each.changes(0, 5, newest_first=True) == each.changes()[:-6:-1]
            some_id = each.find(order="id")[0].id
            assert each.changes(id=some_id, newest_first=True) == each.changes(id=some_id)[::-1]
            since = each.changes()[100].cursor
            assert each.changes(since, 3, newest_first=True) == each.changes()[:-4:-1]
            assert each.changes(since, newest_first=True) == each.changes(since)[::-1]

    @pytest.mark.files
    def test_what_is_read_grows_with_the_limit_and_not_with_the_log(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        statements: list[str] = []
        real = SqliteView._sql
        with recollect.open(tmp_path / "a.db", durability="normal") as memory:
            for number in range(50):
                memory.remember(f"text {number}", id=f"r{number % 7}", if_exists="update")

            def counted(view: SqliteView, sql: str, *rest: Any) -> Any:
                statements.append(sql)
                return real(view, sql, *rest)

            monkeypatch.setattr(SqliteView, "_sql", counted)
            for record_id, newest_first in ((None, False), (None, True), ("r3", False), ("r3", True)):
                statements.clear()
                assert len(memory.changes(0, 2, record_id, newest_first=newest_first)) == 2
                assert len([sql for sql in statements if sql.startswith("SELECT seq, id, before")]) == 1


class TestListening:
    def test_a_listener_hears_each_commit_once_and_in_order(self, memory: recollect.Memory) -> None:
        memory.remember("before")
        heard: list[int] = []
        with memory.listen(lambda commit: heard.append(commit.seq)) as subscription:
            for number in range(20):
                memory.remember(f"text {number}")
            subscription.drain()
            assert heard == list(range(2, 22))
        memory.remember("after")
        assert heard == list(range(2, 22))

    def test_a_listener_can_begin_in_the_past(self, memory: recollect.Memory) -> None:
        memory.remember_all(["a", "b"])
        memory.remember("c")
        heard: list[int] = []
        memory.listen(lambda commit: heard.append(commit.seq), since=0).close()
        assert heard == [1, 2]

    def test_a_failing_listener_delays_no_other_and_hears_on(self, memory: recollect.Memory) -> None:
        heard: list[int] = []

        def callback(commit: recollect.Commit) -> None:
            heard.append(commit.seq)
            raise ValueError("mine")

        with memory.listen(callback) as subscription:
            memory.remember("a")
            memory.remember("b")
            subscription.drain()
            assert isinstance(subscription.error, ValueError)
        assert heard == [1, 2]

    def test_a_callback_that_ends_its_thread_does_not_hang_the_others(self, memory: recollect.Memory) -> None:
        def callback(commit: recollect.Commit) -> None:
            subscription.drain()
            raise SystemExit

        subscription = memory.listen(callback)
        memory.remember("a")
        subscription.drain()
        assert isinstance(subscription.error, SystemExit)
        subscription.close()

    def test_a_listener_may_write_and_close_from_its_callback(self, memory: recollect.Memory) -> None:
        done = threading.Event()

        def callback(commit: recollect.Commit) -> None:
            memory.remember("an echo")
            subscription.close()
            done.set()

        subscription = memory.listen(callback)
        memory.remember("a call")
        assert done.wait(30)
        assert memory.count() == 2

    def test_closing_the_memory_delivers_what_is_committed(self, tmp_path: Path) -> None:
        memory = recollect.open(tmp_path / "a.db")
        heard: list[int] = []
        memory.listen(lambda commit: heard.append(commit.seq))
        memory.remember("a")
        memory.close()
        assert heard == [1]


class TestAsync:
    def test_the_same_calls_are_awaited(self) -> None:
        async def run() -> None:
            async with recollect.AsyncMemory(recollect.open(":memory:")) as memory:
                await asyncio.gather(*(memory.remember(f"fact {number}") for number in range(20)))
                assert await memory.count() == 20
                assert len(await memory.recall("fact", k=3)) == 3
                async with memory.batch(reason="tidy") as batch:
                    await batch.remember("inside", id="a")
                    inside = await batch.get("a")
                    assert inside is not None
                    assert inside.content == "inside"
                assert (await memory.changes(since=20))[0].reason == "tidy"
                with pytest.raises(KeyError):
                    async with memory.batch() as batch:
                        await batch.remember("undone", id="b")
                        raise KeyError
                assert await memory.get("b") is None
                await memory.update("a", content="changed")
                assert await memory.forget("a")
                assert (await memory.stats())["records"] == 20
                assert await memory.scoped(user="u").count() == 0
                assert await memory.check() == []

        asyncio.run(run())

    def test_a_closed_memory_says_so_and_closing_twice_is_no_error(self) -> None:
        async def run() -> None:
            async with recollect.AsyncMemory(recollect.open(":memory:")) as memory:
                await memory.close()
                with pytest.raises(ClosedError):
                    await memory.recall("x")

        asyncio.run(run())

    def test_a_batch_that_was_cancelled_while_it_waited_gives_the_lock_back(self) -> None:
        async def run() -> None:
            async with recollect.AsyncMemory(recollect.open(":memory:")) as memory:
                async with memory.batch() as first:
                    waiting = asyncio.create_task(memory.batch().__aenter__())
                    await asyncio.sleep(0)
                    await first.remember("a")
                    waiting.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await waiting
                await memory.remember("b")
                assert await memory.count() == 2

        asyncio.run(run())

    def test_a_block_that_was_cancelled_before_it_was_entered_is_exited_by_its_thread(self) -> None:
        """After the end of the thread, another one could have its number, and be taken for that of the block."""
        may_enter, exited = threading.Event(), threading.Event()
        threads = []

        @contextmanager
        def block() -> Iterator[None]:
            assert may_enter.wait(30)
            threads.append(threading.current_thread())
            try:
                yield
            finally:
                threads.append(threading.current_thread())
                exited.set()

        async def run() -> None:
            entering = asyncio.create_task(_in_own_thread(block).__aenter__())
            await asyncio.sleep(0)
            entering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await entering
            may_enter.set()
            assert await asyncio.to_thread(exited.wait, 30)

        asyncio.run(run())
        assert len(threads) == 2
        assert threads[0] is threads[1]

    def test_an_export_is_read_page_by_page_and_ends_with_its_block(self, memory: recollect.Memory) -> None:
        async def run() -> None:
            awaited = recollect.AsyncMemory(memory)
            memory.remember_all([f"text {number}" for number in range(450)])
            async with awaited.open_export() as export:
                got = [record async for record in export.records]
            assert (export.root, export.count, got) == (memory.head().parts["records"], 450, memory.find(order="id"))
            with pytest.raises(KeyError):
                async with awaited.open_export() as export:
                    async for _ in export.records:
                        raise KeyError
            assert await awaited.clear() == 450  # no view is left open that would keep a writer out

        asyncio.run(run())

    def test_every_call_of_a_memory_is_there(self) -> None:
        sync_only = {"name", "root", "seq", "execute"}
        names = {name for name in dir(recollect.Memory) if not name.startswith("_")} - sync_only
        assert names <= set(dir(recollect.AsyncMemory))


class TestOperations:
    def test_what_cannot_travel_says_so(self) -> None:
        with pytest.raises(UnsupportedError, match="a function: it has no JSON form"):
            operations.Update(id="a", changes=lambda record: record).to_json()
        with pytest.raises(UnsupportedError):
            operations.ForgetWhere(where=f.custom(bool)).to_json()

    def test_every_call_can_be_made_from_json(self, memory: recollect.Memory) -> None:
        def call(data: dict[str, Any]) -> Any:
            return memory.execute(operations.from_json(data))

        record = call({"op": "remember", "content": "tea", "id": "a", "fields": {"user": "ana"}}).record
        assert call({"op": "get", "id": "a"}) == record
        assert call({"op": "recall", "question": "tea", "where": {"user": "ana"}})[0].record == record
        assert call({"op": "count", "where": {"not": {"user": "ana"}}}) == 0
        assert call({"op": "update", "id": "a", "changes": {"importance": 1.0}}).record.importance == 1.0
        assert call({"op": "find", "order": "oldest", "limit": 1})[0].id == "a"
        assert call({"op": "grep", "query": "te*"})[0].id == "a"
        assert len(call({"op": "changes", "since": 1})) == 1
        assert call({"op": "namespaces"}) == ["default"]
        assert call({"op": "stats"})["records"] == 1
        assert call({"op": "forget", "id": "a"}).status == "forgotten"
        assert call({"op": "forget_where", "where": {"everything": True}}) == 0
        assert call({"op": "clear"}) == 0
        report = call({"op": "remember_all", "items": [{"op": "remember", "content": "x"}], "on_error": "raise"})
        assert report.count("created") == 1
