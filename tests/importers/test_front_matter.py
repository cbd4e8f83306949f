"""Front matter: YAML, and what documents get of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Memory
from recollect import filters as f
from recollect.importers import ImportReport
from recollect.importers.front_matter import parse, tags_of, time_of, title_of
from recollect.records.messages.values import UnreadableError

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("tags:\n  - db\n  - ops", {"tags": ["db", "ops"]}),
        ("a: 'x: y'\nb: |\n  one\n  two\n", {"a": "x: y", "b": "one\ntwo\n"}),
        (
            "a: no\nb: on\nc: 12:30\nd: 007\ne: 0x10\nf: 2026-03-01",
            dict(zip("abcdef", ("no", "on", "12:30", "007", "0x10", "2026-03-01"), strict=True)),
        ),
        (
            "a: true\nb: -3\nc: 1.5\nd: ~\ne:\nf: ''\ng: .inf",
            {"a": True, "b": -3, "c": 1.5, "d": None, "e": None, "f": "", "g": ".inf"},
        ),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: 99999999999999999999", {"a": "99999999999999999999"}),
        ("1: one\n'null': two", {"1": "one", "null": "two"}),
        ("a: !!python/object/apply:os.system [x]\nb: !!int x", {"a": ["x"], "b": "x"}),
        ("名: 值", {"名": "值"}),
        ("# a comment", {}),
        ("", {}),
    ],
)
def test_values_are_those_of_the_core_schema_of_yaml(text: str, values: dict[str, Any]) -> None:
    assert parse(text) == values


@pytest.mark.parametrize("text", ["plain text", "- a\n- b", "'quoted'"])
def test_what_is_no_mapping_is_no_front_matter(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [1", r"is not YAML: .*\(line 2\)"),
        ("ok: 1\n\tb: 2", r"is not YAML: .*\(line 3\)"),
        ("a: 1\n---\nb: 2", "is not YAML"),
        ("a: \x01", "is not YAML"),
        ("a: 1\na: 2", "has the key 'a' twice"),
        ("[a]: 1", "has a key that is not text"),
        ("a: " + "[" * 21 + "]" * 21, "nested more than 20 levels"),
        ("a: " + "[" * 8000, "nested more than 20 levels"),
        ("a: &a [*a]", "aliases that never end"),
        ("a: &a [" + "0," * 40 + "]\nb: [" + "*a," * 40 + "]", "more than 1,000"),
        ("a: " + "x" * 20_000, "longer than 16,384 characters"),
    ],
)
def test_what_is_malformed_or_too_large_is_named(text: str, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        parse(text)


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from("a: - [ ] { } & * ! | > ' \" # \n \t ? , % @ ` 1".split(" ")), max_size=30).map("".join)
)
def test_any_text_is_parsed_or_named(text: str) -> None:
    try:
        values = parse(text)
    except UnreadableError:
        return
    assert values is None or all(isinstance(key, str) for key in values)


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=EAST)),
        ("2026-03-01T09:30:00Z", datetime(2026, 3, 1, 9, 30, tzinfo=UTC)),
        ("2026-03-01 09:30", datetime(2026, 3, 1, 9, 30, tzinfo=EAST)),
        ("2026-03-01 09:30:00 -0500", datetime(2026, 3, 1, 14, 30, tzinfo=UTC)),
        ("2001-12-14 21:59:43.10 -5", datetime(2001, 12, 15, 2, 59, 43, 100_000, tzinfo=UTC)),
        ("2026-3-1", datetime(2026, 3, 1, tzinfo=EAST)),
        ("", None),
        (None, None),
    ],
)
def test_a_date_is_iso_text_or_a_yaml_timestamp(value: object, time: datetime | None) -> None:
    assert time_of({"date": value}, EAST) == time


@pytest.mark.parametrize("value", ["spring", "2026-02-30", 2026, ["2026-03-01"], True])
def test_what_is_no_date_is_named(value: object) -> None:
    with pytest.raises(UnreadableError, match="date"):
        time_of({"date": value}, UTC)


def test_tags_are_a_list_or_text_with_commas_and_a_title_is_text() -> None:
    assert tags_of({"tags": "db, the ops,, db"}) == ["db", "the ops"]
    assert tags_of({"tags": ["db", 7, None, " a  b "]}) == ["db", "7", "a b"]
    assert title_of({"title": 1984}) == "1984"
    assert (title_of({"title": ["a"]}), title_of({})) == ("", "")
    for wrong in ({"a": 1}, [["a"]], 7):
        with pytest.raises(UnreadableError, match="tags"):
            tags_of({"tags": wrong})


def test_tags_date_and_title_become_those_of_every_section(write: Write, run: Run, memory: Memory) -> None:
    text = "---\ntitle: Garden\ntags: [plants, home]\ndate: 2026-03-01\nauthor: Ada\n---\nTop.\n# Roses\nRed.\n"
    report = run("markdown", write("a.md", text), zone=EAST)
    assert (report.created, report.damaged) == (2, ())
    for record in memory.find(f.tag("plants") & f.tag("home")):
        assert record.time == datetime(2026, 3, 1, tzinfo=EAST)
        assert record.metadata["title"] == "Garden"
        assert record.metadata["front_matter"]["author"] == "Ada"
    assert memory.count(f.tag("home")) == 2


def test_malformed_front_matter_is_named_and_kept_as_text(write: Write, run: Run, memory: Memory) -> None:
    report = run("markdown", write("a.md", "---\na: [1\nwords: here\n---\nText.\n# B\nmore"))
    (damage,) = report.damaged
    assert damage.place == "a.md, line 1"
    assert "imported as text" in damage.reason
    texts = {record.content for record in memory.find()}
    assert texts == {"---\na: [1\nwords: here\n---", "Text.", "# B\nmore"}


def test_a_wrong_date_and_wrong_tags_are_named_and_stay_in_the_metadata(write: Write, run: Run, memory: Memory) -> None:
    report = run("markdown", write("a.md", "---\ndate: soon\ntags: {a: 1}\n---\nText.\n"))
    assert len(report.damaged) == 2
    (record,) = memory.find()
    assert record.metadata["front_matter"] == {"date": "soon", "tags": {"a": 1}}


def test_two_thematic_breaks_are_no_front_matter(write: Write, run: Run, memory: Memory) -> None:
    assert run("markdown", write("a.md", "---\n- a\n- b\n\n---\ntext")).damaged == ()
    (record,) = memory.find()
    assert record.content == "---\n- a\n- b\n\n---\ntext"
