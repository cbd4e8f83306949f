"""Arguments as people write them: filters and times as text, and what a wrong call is told."""

from __future__ import annotations

import asyncio
import io
import json
import pickle
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import filters as f
from recollect import operations
from recollect.arguments.signatures import FILTERED
from recollect.engine.results import MemoryStats, QuotaUse, VectorCounts
from recollect.errors import (
    ClosedError,
    ConflictError,
    InvalidArgumentError,
    InvalidFilterError,
    UnknownArgumentError,
)
from recollect.filters.tree import TEXT_FIELDS
from recollect.importers import IMPORTERS, import_path, write_jsonl
from recollect.records.record import FIELD_NAMES, FieldChanges, Fields, located
from recollect.testing import TickingClock

pytestmark = pytest.mark.stores("memory", clock=TickingClock)


class TestFiltersAsText:
    @pytest.fixture
    def memory(self, memory: recollect.Memory) -> recollect.Memory:
        memory.remember("Ana likes window seats", id="a", user="ana", tags=["old"])
        memory.remember("O'Brien likes aisle seats", id="b", user="O'Brien")
        return memory

    def test_every_call_with_a_filter_takes_its_text_form(self, memory: recollect.Memory) -> None:
        where = "user=O'Brien and not tag=old"
        with memory.batch() as batch:
            for calls in (memory, batch):
                assert [hit.record.id for hit in calls.recall("seats", where=where)] == ["b"]
                assert [record.id for record in calls.grep("seats", where=where)] == ["b"]
                assert [record.id for record in calls.find(where)] == ["b"]
                assert [record.id for record in calls.find(where, limit=5)] == ["b"]
                assert calls.count(where) == 1
            assert batch.forget_where("content~'window'") == 1
        assert memory.forget_where(where) == 1
        assert memory.count() == 0

    def test_the_awaited_calls_take_it_too(self, memory: recollect.Memory) -> None:
        async def count() -> int:
            return await recollect.AsyncMemory(memory).count("user='ana'")

        assert asyncio.run(count()) == 1

    @pytest.mark.parametrize("text", ["", "  ", "usr=ana", "user='ana"])
    def test_a_text_that_is_no_filter_is_refused_and_forgets_nothing(self, memory: recollect.Memory, text: str) -> None:
        for call in (memory.find, memory.count, memory.forget_where):
            with pytest.raises(InvalidFilterError):
                call(text)
        with pytest.raises(InvalidArgumentError, match="pass a filter"):
            memory.forget_where(None)
        with pytest.raises(InvalidArgumentError, match="must be a filter"):
            memory.forget_where(5)  # type: ignore[arg-type]
        assert memory.count() == 2


class TestTimes:
    DAY = datetime(2026, 3, 1, tzinfo=UTC)

    @pytest.mark.parametrize("time", ["2026-03-01", "2026-03-01T00:00", "2026-03-01T01:00+01:00", date(2026, 3, 1)])
    def test_a_time_is_a_datetime_a_date_or_iso_8601_text(self, memory: recollect.Memory, time: str | date) -> None:
        made = memory.remember("Ana moved", time=time, valid_from=time, valid_to=time, expires="2099-01-01")
        assert (made.time, made.valid_from, made.valid_to) == (self.DAY, self.DAY, self.DAY)
        assert made.expires == datetime(2099, 1, 1, tzinfo=UTC)
        memory.update(made.id, time="2026-04-01", expires=None)
        changed = memory.get(made.id)
        assert changed is not None
        assert (changed.time, changed.expires) == (datetime(2026, 4, 1, tzinfo=UTC), None)
        report = memory.remember_all([{"content": "Bob moved", "time": time}])
        assert report.results[0].record is not None
        assert report.results[0].record.time == self.DAY
        assert [hit.record.content for hit in memory.recall("who moved yesterday?", reference="2026-03-02", k=1)] == [
            "Bob moved"
        ]
        assert len(memory.recall("who moved yesterday?", reference=date(2026, 3, 2))) == 2

    def test_a_ttl_is_seconds_or_a_timedelta(self, memory: recollect.Memory) -> None:
        for ttl in (86_400, timedelta(days=1)):
            made = memory.remember(f"Ana is away for {ttl}", ttl=ttl)
            assert made.expires is not None
            assert made.time is not None
            assert made.expires - made.time == timedelta(days=1)
        with pytest.raises(InvalidArgumentError, match="ttl must be above 0"):
            memory.remember("Bob is away", ttl=timedelta(0))

    def test_the_filters_of_times_take_them_too(self) -> None:
        assert f.after("2026-03-01") == f.after(date(2026, 3, 1)) != f.after(self.DAY)
        assert f.after("2026-03-01").located(UTC) == f.after(self.DAY)
        assert f.before("2026-03-01T02:00+02:00") == f.before(self.DAY)
        between = f.between("2026-03-01T00:00", "2026-03-01T00:00")
        assert between.located(UTC) == f.between(self.DAY, self.DAY)

    @pytest.mark.parametrize("end", ["2026-03-31", date(2026, 3, 31)])
    def test_between_includes_a_last_day_that_is_a_date(self, memory: recollect.Memory, end: str | date) -> None:
        memory.remember("late", time=datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC))
        memory.remember("later", time=datetime(2026, 4, 1, tzinfo=UTC))
        assert [record.content for record in memory.find(f.between("2026-03-01", end))] == ["late"]

    def test_what_is_no_time_is_refused_with_an_example(self, memory: recollect.Memory) -> None:
        for call in (
            lambda: memory.remember("a", time="last week"),
            lambda: memory.recall("a", reference="last week"),
            lambda: f.after("last week"),
            lambda: f.between("2026-03-01", "last week"),
        ):
            with pytest.raises(recollect.RecollectError, match="such as 2026-03-01 or 2026-03-01T09:30:00"):
                call()
        with pytest.raises(recollect.RecollectError, match=r"reference .* is naive"):
            memory.recall("a", reference=datetime(2026, 3, 1))

    def test_a_naive_datetime_does_not_become_a_text_that_is_taken_for_utc(self) -> None:
        for sent in (
            operations.Remember(content="a", fields={"valid_from": datetime(2026, 3, 1)}),
            operations.Update(id="a", changes={"valid_from": datetime(2026, 3, 1)}),
        ):
            with pytest.raises(recollect.RecollectError, match=r"valid_from .* is naive"):
                sent.to_json()

    def test_an_operation_with_a_date_passes_through_json(self) -> None:
        sent = operations.Remember(content="a", fields={"time": date(2026, 3, 1)}, ttl=timedelta(hours=1))  # type: ignore[arg-type]
        again = operations.from_json(sent.to_json())
        assert isinstance(again, operations.Remember)
        assert located("time", again.fields["time"], UTC) == self.DAY
        assert again.ttl == 3600.0
        asked = operations.Recall(question="a", reference="2026-03-01T09:00+01:00")  # type: ignore[arg-type]
        assert operations.from_json(asked.to_json()) == asked
        assert asked.reference == datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=1)))


class TestChoices:
    def test_the_typed_fields_are_those_of_a_record(self) -> None:
        assert {*Fields.__annotations__, "id", "content"} == set(FIELD_NAMES)
        assert {*FieldChanges.__annotations__, "id"} == set(FIELD_NAMES)

    @pytest.mark.parametrize("path", [":memory:", "a.db"])
    def test_an_unknown_durability_is_refused_for_every_store(self, tmp_path: Path, path: str) -> None:
        with pytest.raises(InvalidArgumentError, match="durability must be one of full, normal, got 'off'"):
            recollect.open(path if path == ":memory:" else tmp_path / path, durability="off")  # type: ignore[arg-type]
        assert list(tmp_path.iterdir()) == []

    def test_the_keys_of_stats_are_the_typed_ones(self, memory: recollect.Memory) -> None:
        memory.set_quota(records=5)
        memory.remember("a", user="ana")
        assert set(memory.stats()) == set(MemoryStats.__annotations__)
        assert set(memory.stats()["quota"]) == set(QuotaUse.__annotations__)
        assert set(memory.vector_stats()) == set(VectorCounts.__annotations__)
        scoped = memory.scoped(user="ana")
        assert set(scoped.stats()) == set(MemoryStats.__annotations__) - {"seq", "root", "quota", "store"}
        assert set(scoped.vector_stats()) == set(VectorCounts.__annotations__) - {"watermark", "models"}


class TestWrongCalls:
    @pytest.mark.parametrize(
        ("call", "argument", "meant"),
        [
            ("find", "k", "limit"),
            ("find", "cursor", "after"),
            ("recall", "limit", "k"),
            ("recall", "top_k", "k"),
            ("recall", "filters", "where"),
            ("find", "n", "limit"),
        ],
    )
    def test_a_name_from_another_call_is_answered_with_the_name_here(
        self, memory: recollect.Memory, call: str, argument: str, meant: str
    ) -> None:
        with pytest.raises(UnknownArgumentError, match=f"did you mean '{meant}'"):
            getattr(memory, call)(**{argument: 3})

    @pytest.mark.parametrize(
        ("call", "kind", "message"),
        [
            (
                lambda m: m.remember("x", "user_fact"),
                TypeError,
                r"remember() does not take 'user_fact' by position: pass it by name, such as kind=...",
            ),
            (
                lambda m: m.recall("x", 5, None, "now"),
                TypeError,
                "recall() does not take 'now' by position: pass it by name, such as user=...",
            ),
            (lambda m: m.stats("x"), TypeError, "stats() does not take 'x' by position: pass it by name"),
            (lambda m: m.remember(), TypeError, "remember() needs the argument 'content'"),
            (lambda m: m.update(importance=1.0), TypeError, "update() needs the argument 'id'"),
            (lambda m: m.update("a", id="b"), ValueError, "id 'b' is passed twice, by position and by name"),
            (
                lambda m: m.recall("x", user_id="ana"),
                TypeError,
                "recall() has no argument 'user_id' (did you mean 'user'?)",
            ),
            (
                lambda m: m.find(tag="old"),
                TypeError,
                "find() has no argument 'tag' (did you mean 'where=filters.tag(...)'?)",
            ),
            (
                lambda m: m.remember("x", user_id="ana"),
                TypeError,
                "remember() has no argument 'user_id' (did you mean 'user'?)",
            ),
        ],
    )
    def test_a_wrong_call_is_answered_with_what_to_write(
        self, memory: recollect.Memory, call: Callable[[Any], object], kind: type[Exception], message: str
    ) -> None:
        with memory.batch() as batch:
            for calls in (memory, batch):
                with pytest.raises(recollect.RecollectError) as caught:
                    call(calls)
                assert isinstance(caught.value, kind)
                assert message in str(caught.value)
        with pytest.raises(recollect.RecollectError, match=re.escape(message)):
            asyncio.run(call(recollect.AsyncMemory(memory)))  # type: ignore[arg-type]
        assert memory.count() == 0

    def test_an_import_takes_names_and_paths_as_text(self, memory: recollect.Memory, tmp_path: Path) -> None:
        path = tmp_path / "chat.json"
        path.write_text('[{"role": "user", "content": "Ana likes tea"}]')
        assert import_path(memory, "openai", str(path)).created == 1
        assert import_path(memory, IMPORTERS["openai"], path).unchanged == 1
        wrong: list[tuple[Any, ...]] = [
            (memory, "opanai", path, "importer must be an Importer, or one of openai, anthropic, chatgpt"),
            (memory, type(IMPORTERS["openai"]), path, "importer must be an Importer"),
            (memory, "openai", 5, "path must be the path of a file or folder"),
            (recollect.AsyncMemory(memory), "openai", path, "memory must be a Memory"),
        ]
        for *arguments, message in wrong:
            with pytest.raises(InvalidArgumentError, match=message):
                import_path(*arguments)

    def test_an_export_says_that_it_takes_a_file(self, memory: recollect.Memory, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError, match=r'file must be a file, such as open\(path, "w"'):
            write_jsonl(memory, str(tmp_path / "o.jsonl"))  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="memory must be a Memory"):
            write_jsonl(recollect.AsyncMemory(memory), io.StringIO())  # type: ignore[arg-type]

    def test_an_async_memory_wraps_a_memory(self, memory: recollect.Memory) -> None:
        for wrong in ("agent.db", recollect.AsyncMemory(memory), None):
            with pytest.raises(InvalidArgumentError, match=r"must be a Memory: AsyncMemory\(recollect.open\(path\)\)"):
                recollect.AsyncMemory(wrong)  # type: ignore[arg-type]

    @pytest.mark.parametrize(("name", "code"), [("german", "de"), ("English", "en"), ("klingon", None), ("de_A", None)])
    def test_a_language_is_a_tag_and_not_a_name(self, memory: recollect.Memory, name: str, code: str | None) -> None:
        hint = f"did you mean '{code}'" if code else "must be a BCP 47 tag"
        made = memory.remember("Ana mag Tee")
        for call in (
            lambda: recollect.open(":memory:", language=name),
            lambda: memory.remember("Ana mag Kaffee", language=name),
            lambda: memory.update(made.id, language=name),
            lambda: memory.recall("Tee", language=name),
        ):
            with pytest.raises(InvalidArgumentError, match=hint):
                call()
        assert memory.find() == [made]
        assert memory.remember("x", language="zh-Hant-TW").language == "zh-Hant-TW"

    def test_the_fields_that_suggest_a_filter_are_those_of_filters(self) -> None:
        assert set(FILTERED) == {*TEXT_FIELDS, "tag", "importance", "time", "content"}

    def test_a_warning_names_the_line_of_the_caller(self, memory: recollect.Memory) -> None:
        memory.remember("x", importance=0.5)
        with pytest.warns(recollect.RecollectWarning) as caught:
            memory.remember("x", importance=0.9)
        assert caught[0].filename == __file__


class TestTheStateThatAnErrorStates:
    READS: tuple[Callable[[Any], object], ...] = (
        lambda m: m.get(""),
        lambda m: m.find(order="x"),
        lambda m: m.recall("x", wait_for_vectors=True),
        lambda m: m.scoped(user="ana").head(),
        lambda m: m.execute(operations.Changes(since="x")),
    )
    WRITES: tuple[Callable[[Any], object], ...] = (
        lambda m: m.remember("x", kind="_internal"),
        lambda m: m.remember("x", id="a", if_exists="error", expect="absent"),
        lambda m: m.remember("Something else", id="a", if_exists="error"),
        lambda m: m.update("none", content="x"),
        lambda m: m.update("a", importance=5.0),
        lambda m: m.forget("none"),
        lambda m: m.remember_all(["", {"content": "x", "kind": "_internal"}], on_error="raise"),
        lambda m: m.scoped(user="ana").remember("x", user="bob"),
    )

    @pytest.mark.parametrize("call", READS)
    def test_a_call_that_reads_says_nothing_of_it(
        self, memory: recollect.Memory, call: Callable[[Any], object]
    ) -> None:
        with pytest.raises(recollect.RecollectError) as caught:
            call(memory)
        assert "nothing was changed" not in str(caught.value)

    @pytest.mark.parametrize("call", WRITES)
    def test_a_call_that_writes_says_that_nothing_was_changed(
        self, memory: recollect.Memory, call: Callable[[Any], object]
    ) -> None:
        memory.remember("Something", id="a")
        root = memory.root
        with pytest.raises(recollect.RecollectError, match="nothing was changed") as caught:
            call(memory)
        assert memory.root == root
        for again in (
            recollect.RecollectError.from_json(json.loads(json.dumps(caught.value.to_json()))),
            pickle.loads(pickle.dumps(caught.value)),
        ):
            assert (str(again), again.unchanged) == (str(caught.value), True)

    def test_a_closed_memory_says_it_only_of_writes(self, memory: recollect.Memory) -> None:
        memory.close()
        with pytest.raises(ClosedError, match="the memory is closed; nothing was changed: open it again"):
            memory.remember("x")
        with pytest.raises(ClosedError, match="the memory is closed: open it again"):
            memory.find()

    def test_a_batch_and_the_items_of_a_report_say_it(self, memory: recollect.Memory) -> None:
        with memory.batch() as batch:
            with pytest.raises(recollect.RecollectError, match="nothing was changed"):
                batch.update("none", content="x")
            with pytest.raises(recollect.RecollectError) as caught:
                batch.get("")
            assert "nothing was changed" not in str(caught.value)
        with pytest.raises(ConflictError, match="nothing was changed"), memory.batch(expect_head=99):
            pass
        items = [{"content": "Fine"}, {"content": "x", "kind": "_internal"}]
        with memory.batch() as batch:
            assert "nothing was changed" in str(batch.remember_all(items).failed[0].reason)
        assert "nothing was changed" in str(memory.remember_all(items).failed[0].reason)
