"""Bad input of every kind: one clear error that names the thing, and nothing changes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import filters as f
from recollect.errors import ClosedError, RecollectError
from recollect.importers import write_jsonl
from recollect.stores.memory import MemoryStore
from recollect.testing import memory_on

Call = Callable[[recollect.Memory], object]
NAN = float("nan")

REFUSED: dict[str, tuple[Call, str]] = {
    "an empty text": (lambda m: m.remember(""), "content"),
    "a blank text": (lambda m: m.remember(" \n\t "), "content"),
    "no text at all": (lambda m: m.remember(None), "content"),  # type: ignore[arg-type]
    "a number for a text": (lambda m: m.remember(7), "content"),  # type: ignore[arg-type]
    "a lone surrogate": (lambda m: m.remember("a \ud800 b"), "content"),
    "a lone surrogate in an id": (lambda m: m.remember("a", id="\udfff"), "id"),
    "a lone surrogate in metadata": (lambda m: m.remember("a", metadata={"k": ["\ud800"]}), "metadata"),
    "a lone surrogate in a question": (lambda m: m.recall("\ud800"), "question"),
    "bytes without a media type": (lambda m: m.remember(b"\x89PNG"), "media_type"),
    "a naive time": (lambda m: m.remember("a", time=datetime(2026, 1, 1)), "time"),
    "a text for a time": (lambda m: m.remember("a", time="1 Jan 2026"), "time"),
    "NaN importance": (lambda m: m.remember("a", importance=NAN), "importance"),
    "importance above 1": (lambda m: m.remember("a", importance=1.5), "importance"),
    "importance as text": (lambda m: m.remember("a", importance="high"), "importance"),  # type: ignore[arg-type]
    "an unknown keyword": (lambda m: m.remember("a", colour="red"), "colour"),  # type: ignore[call-arg]
    "a misspelt keyword": (lambda m: m.remember("a", importence=1.0), "importance"),  # type: ignore[call-arg]
    "tags as one text": (lambda m: m.remember("a", tags="red"), "tags"),
    "metadata that is no object": (lambda m: m.remember("a", metadata=[1]), "metadata"),  # type: ignore[arg-type]
    "metadata that is no JSON": (lambda m: m.remember("a", metadata={"k": object()}), "metadata"),
    "an internal kind": (lambda m: m.remember("a", kind="_key"), "kind"),
    "an empty id": (lambda m: m.remember("a", id=""), "id"),
    "a long id": (lambda m: m.remember("a", id="x" * 256), "id"),
    "an id with a line break": (lambda m: m.remember("a", id="x\ny"), "id"),
    "an unknown if_exists": (lambda m: m.remember("a", if_exists="replace"), "if_exists"),  # type: ignore[arg-type]
    "an expectation that is no hash": (lambda m: m.remember("a", expect="abc"), "expect"),
    "one text for many": (lambda m: m.remember_all("hey"), "items"),
    "one mapping for many": (lambda m: m.remember_all({"content": "x"}), "items"),
    "a number for many": (lambda m: m.remember_all(5), "items"),  # type: ignore[arg-type]
    "an unknown on_error": (lambda m: m.remember_all(["a"], on_error="skip"), "on_error"),  # type: ignore[arg-type]
    "an unknown id to update": (lambda m: m.update("nope", content="x"), "nope"),
    "an unknown id to forget": (lambda m: m.forget("nope"), "nope"),
    "a number for an id": (lambda m: m.get(7), "id"),  # type: ignore[arg-type]
    "k = 0": (lambda m: m.recall("a", k=0), "k must be an integer of at least 1, got 0"),
    "k = -1": (lambda m: m.recall("a", k=-1), "k must be an integer of at least 1, got -1"),
    "k as text": (lambda m: m.recall("a", k="5"), "k must be an integer of at least 1, got '5'"),  # type: ignore[arg-type]
    "k as a flag": (lambda m: m.recall("a", k=True), "k must be an integer of at least 1, got True"),
    "k as a float": (lambda m: m.recall("a", k=2.0), "k must be an integer of at least 1, got 2.0"),  # type: ignore[arg-type]
    "an empty question": (lambda m: m.recall("  "), "question"),
    "a question that is no text": (lambda m: m.recall(None), "question"),  # type: ignore[arg-type]
    "a filter that is none": (lambda m: m.recall("a", where={"user": "ana"}), "where"),  # type: ignore[arg-type]
    "a filter of the wrong parts": (lambda m: m.find(f.all_of(f.user("a"), "b")), "filter"),  # type: ignore[arg-type]
    "a filter with a naive time": (lambda m: m.find(f.after(datetime(2026, 1, 1))), "after"),
    "an unknown order": (lambda m: m.find(order="random"), "order"),  # type: ignore[arg-type]
    "limit = 0": (lambda m: m.find(limit=0), "limit"),
    "an unreadable grep": (lambda m: m.grep('"open'), "quotation"),
    "a grep of nothing": (lambda m: m.grep("()"), "nothing before it"),
    "a negative since": (lambda m: m.changes(since=-1), "since"),
    "an operation that is none": (lambda m: m.execute({"op": "clear"}), "operation"),  # type: ignore[arg-type]
    "a callback that is none": (lambda m: m.listen("print"), "callback"),  # type: ignore[arg-type]
}


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[recollect.Memory]:
    with recollect.open(":memory:" if request.param == "memory" else tmp_path / "a.db") as opened:
        opened.remember("held", id="held")
        yield opened


#: What has no JSON form is refused before the name of its field is known.
WITHOUT_JSON = {"NaN importance", "metadata that is no JSON"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.in_process if name in WITHOUT_JSON else ()) for name in REFUSED],
)
def test_bad_input_is_refused_by_name_and_changes_nothing(memory: recollect.Memory, name: str) -> None:
    call, named = REFUSED[name]
    root, seq = memory.root, memory.seq
    with pytest.raises(RecollectError) as caught:
        call(memory)
    assert named in str(caught.value)
    str(caught.value).encode("utf-8")  # can always be printed
    assert (memory.root, memory.seq) == (root, seq)
    assert memory.remember("and it goes on")


@pytest.mark.parametrize("named", ["actor", "reason"])
@pytest.mark.parametrize("value", [b"x", object(), "\ud800", "a\0b", 5])
def test_an_actor_or_reason_that_is_no_text_is_refused(memory: recollect.Memory, named: str, value: Any) -> None:
    with pytest.raises(RecollectError, match=named), memory.batch(**{named: value}):
        pytest.fail("the batch must not begin")
    with pytest.raises(RecollectError, match=named):
        memory.execute(recollect.operations.Clear(), **{named: value})
    assert memory.count() == 1


def test_a_filter_of_very_many_parts_is_answered(memory: recollect.Memory) -> None:
    many = f.any_of(*(f.user(str(number)) for number in range(1500)), f.id("held"))
    assert [record.id for record in memory.find(many)] == ["held"]
    assert memory.find(f.all_of(*(~f.user(str(number)) for number in range(1500))))
    assert len(memory.recall("held", where=many)) == 1


def test_a_text_above_the_cap_is_refused_and_one_at_the_cap_is_stored() -> None:
    memory = memory_on(MemoryStore(), limits=recollect.Limits(content_bytes=100))
    assert memory.remember("é" * 50)
    with pytest.raises(RecollectError, match="the cap of 100 bytes"):
        memory.remember("é" * 50 + "x")
    with pytest.raises(RecollectError, match="cap"):
        memory.update(memory.find(limit=1)[0].id, content="x" * 101)
    with pytest.raises(RecollectError, match="1048576"):
        recollect.open(":memory:").remember("x" * (2**20 + 1))
    with pytest.raises(RecollectError, match="10485760"):
        recollect.open(":memory:").remember(b"x" * (10 * 2**20 + 1), media_type="image/png")


def test_a_text_above_the_cap_that_a_store_has_is_used_as_before(tmp_path: Path) -> None:
    long = "the harbour " * 100_000
    with recollect.open(tmp_path / "a.db", limits=recollect.Limits(content_bytes=2**21)) as memory:
        memory.remember(long, id="long")
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("tea", id="short")
        assert [hit.record.id for hit in memory.recall("harbour")] == ["long"]
        assert memory.grep("harbour")[0].content == long
        assert memory.check() == []
        out = io.StringIO()
        assert write_jsonl(memory, out) == 2
        with pytest.raises(RecollectError, match="larger limits"):
            memory.update("long", importance=0.5)


def test_control_characters_inside_a_text_are_kept_as_they_are(memory: recollect.Memory) -> None:
    text = "nul \0, bell \a, escape \x1b[31m, delete \x7f, return \r\n, bom \ufeff, next line \x85"
    memory.remember(text, id="a")
    stored = memory.get("a")
    assert stored is not None
    assert stored.content == text
    assert memory.find(f.contains("\0, BELL"))[0].id == "a"
    assert memory.recall("escape bell")[0].record.content == text


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.remember("x"),
        lambda m: m.recall("x"),
        lambda m: m.get("x"),
        lambda m: m.find(),
        lambda m: m.grep("x"),
        lambda m: m.stats(),
        lambda m: m.root,
        lambda m: m.namespace("other").count(),
        lambda m: m.scoped(user="u").count(),
    ],
)
def test_a_closed_memory_says_that_it_is_closed(memory: recollect.Memory, call: Call) -> None:
    memory.close()
    memory.close()
    with pytest.raises(ClosedError, match=r"the memory is closed.*: open it again"):
        call(memory)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"namespace": ""}, "namespace"),
        ({"clock": 7}, "clock"),
        ({"key": b"short"}, "key"),
        ({"key": "text of sixteen characters"}, "key"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": NAN}, "timeout"),
        ({"durability": "fast"}, "durability"),
        ({"limits": 7}, "limits"),
    ],
)
def test_open_refuses_bad_arguments_by_name(tmp_path: Path, arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(RecollectError, match=named):
        recollect.open(tmp_path / "a.db", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.files
@pytest.mark.parametrize("path", ["", "a\0b", 7, "postgres://host/db", "sqlite:///"])
def test_open_refuses_what_is_no_path(path: Any) -> None:
    with pytest.raises(RecollectError):
        recollect.open(path)


def test_a_clock_that_gives_naive_times_is_refused() -> None:
    memory = recollect.open(":memory:", clock=lambda: datetime(2026, 1, 1))
    with pytest.raises(RecollectError, match="clock"):
        memory.remember("x")


def test_a_clock_that_goes_back_does_not_take_the_log_back() -> None:
    times = [datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC)]
    memory = recollect.open(":memory:", clock=lambda: times.pop(0) if len(times) > 1 else times[0])
    for text in ("a", "b", "c"):
        memory.remember(text)
    stamps = [commit.time for commit in memory.changes()]
    assert stamps == sorted(set(stamps))
