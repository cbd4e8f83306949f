"""Exporting a memory as JSON lines and importing it again."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect import Memory, Record
from recollect.errors import ImportFormatError
from recollect.importers import IMPORTERS, ImportReport, import_path, write_jsonl
from recollect.records.codec import RawField
from recollect.stores.memory import MemoryStore
from recollect.testing.machine import memory_on

Write = Callable[[str, Any], Path]
Run = Callable[..., ImportReport]

WHEN = datetime(2026, 3, 1, 9, 30, 0, 123456, timezone(timedelta(hours=5, minutes=45)))


def exported(memory: Memory) -> str:
    file = io.StringIO()
    write_jsonl(memory, file)
    return file.getvalue()


def fill(memory: Memory) -> None:
    memory.remember("Plain", time=WHEN)
    memory.remember(
        "  \x00 control \x1f\x7f\u2028 characters\r\n", id="control", time=WHEN, tags=["b", "a"], pinned=True
    )
    memory.remember(bytes(range(256)), id="bytes", media_type="application/octet-stream", time=WHEN)
    memory.remember(
        "数字 🦜 é", id="numbers", metadata={"int": 1, "float": 1.0, "big": 2**63 - 1, "tiny": 5e-324, "e": {}}
    )
    memory.remember_all([{"content": "later", "id": "unknown", "unknown": (RawField(999, 7, b"\x00\xff"),)}])
    for text in ("ok", "ok", "fine"):
        memory.remember(text, kind="conversation", conversation="c", role="user", time=WHEN, importance=0.25)
    memory.remember(
        "a fact",
        id="fact",
        valid_from=WHEN,
        valid_to=WHEN,
        derived_from=["bytes"],
        supersedes=["numbers", "gone"],
        parent="control",
        order=-3,
    )
    memory.update("fact", time=None)  # remember would date it


def test_an_export_imported_into_an_empty_store_gives_the_same_root(write: Write, memory: Memory) -> None:
    fill(memory)
    path = write("export.jsonl", exported(memory))
    with recollect.open(":memory:") as other:  # another clock
        report = import_path(other, IMPORTERS["jsonl"], path)
        assert (report.created, report.damaged, report.namespaces) == (9, (), {"default": 9})
        assert other.root == memory.root
        assert other.find(order="id") == memory.find(order="id")
        assert exported(other) == exported(memory)
        assert other.check() == []
        again = import_path(other, IMPORTERS["jsonl"], path)
        assert (again.created, again.updated, again.unchanged, other.seq) == (0, 0, 9, 1)


def test_the_export_has_a_header_and_a_record_on_each_line(memory: Memory) -> None:
    b = memory.remember("é", id="b", time=WHEN).hash
    a = memory.remember("x", id="a", time=WHEN).hash
    assert exported(memory).splitlines() == [
        '{"recollect":{"format":1,"namespace":"default","records":2,"root":"' + memory.head().parts["records"] + '"}}',
        f'{{"content":"x","hash":"{a}","id":"a","kind":"knowledge","time":"2026-03-01T09:30:00.123456+05:45"}}',
        f'{{"content":"é","hash":"{b}","id":"b","kind":"knowledge","time":"2026-03-01T09:30:00.123456+05:45"}}',
    ]


def test_an_altered_line_is_found_by_its_hash(write: Write, tmp_path: Path, memory: Memory) -> None:
    memory.remember("a Saab 900", id="car")
    path = write("altered.jsonl", exported(memory).replace("900", "901"))
    with recollect.open(":memory:") as other:
        report = import_path(other, IMPORTERS["jsonl"], path)
        assert [damage.place for damage in report.damaged] == ["line 2"]
        assert other.count() == 0


def test_an_import_makes_stored_records_what_they_were(write: Write, run: Run, memory: Memory) -> None:
    fill(memory)
    path, root = write("export.jsonl", exported(memory)), memory.root
    memory.update("numbers", content="other", tags=["new"], metadata={}, user="ana")
    memory.update("unknown", importance=1.0)
    memory.forget("control")
    memory.remember("  \x00 control \x1f\x7f\u2028 characters\r\n", id="control-2", time=WHEN)
    report = run("jsonl", path)
    assert (report.created, report.updated, report.unchanged) == (1, 2, 6)
    assert memory.forget("control-2")
    assert memory.root == root


def test_namespaces_of_one_file_go_where_their_headers_say(write: Write, memory: Memory) -> None:
    for name in ("one", "two"):
        memory.namespace(name).remember(f"in {name}", time=WHEN)
    both = "".join(exported(memory.namespace(name)) for name in ("one", "two"))
    single = write("single.jsonl", exported(memory.namespace("one")))
    with recollect.open(":memory:", namespace="mine") as other:
        assert import_path(other, IMPORTERS["jsonl"], single).namespaces == {"mine": 1}
        report = import_path(other, IMPORTERS["jsonl"], write("both.jsonl", both))
        assert report.namespaces == {"one": 1, "two": 1}
        assert [other.namespace(name).root for name in ("one", "two")] == [
            memory.namespace(name).root for name in ("one", "two")
        ]


def test_a_file_larger_than_a_batch_is_imported_whole(write: Write, run: Run, memory: Memory) -> None:
    with recollect.open(":memory:") as other:
        other.remember_all([{"content": f"fact {number}", "time": WHEN} for number in range(2345)])
        path, root = write("export.jsonl", exported(other)), other.root
    done: list[int] = []
    assert run("jsonl", path, progress=done.append).created == 2345
    assert (memory.root, done) == (root, [1000, 2000, 2345])


HEADER = {"recollect": {"format": 1, "namespace": "default", "root": None, "records": 3}}
GOOD = {"id": "good", "content": "good"}


def lines_of(*lines: Any) -> bytes:
    return b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)


@pytest.mark.parametrize(
    "bad",
    [
        b"{broken",
        b"\xff\xfe",
        b"[1]",
        b"5",
        b"[" * 100_000,
        b'{"id": "a", "content": "x", "position": ' + b"9" * 5000 + b"}",
        b'{"id": "a", "content": "x", "importance": NaN}',
        b'{"id": "a", "content": "\\ud800"}',
        {"content": "no id"},
        {"id": "a"},
        {"id": "a", "content": "both", "data": "AAAA"},
        {"id": "a", "data": "not base64!", "media_type": "a/b"},
        {"id": "a", "data": "AAAA"},
        {"id": "a", "content": "x", "time": "yesterday"},
        {"id": "a", "content": "x", "time": "2026-01-01T00:61:00"},
        {"id": "a", "content": "x", "time": 5},
        {"id": "a", "content": "x", "colour": "red"},
        {"id": "a", "content": "x", "metadata": {"n": 2**70}},
        {"id": "a", "content": "x", "unknown": [[1, 2, "AAAA"]]},
        {"id": "a", "content": "x", "kind": "_internal"},
        {"id": "a", "content": "x", "hash": "0" * 64},
        {"id": "a", "content": "x", "hash": 5},
    ],
)
def test_a_damaged_line_in_the_middle_is_reported_and_the_rest_is_stored(
    bad: Any, write: Write, run: Run, memory: Memory
) -> None:
    path = write("export.jsonl", lines_of(HEADER, GOOD, bad, {**GOOD, "id": "last"}))
    report = run("jsonl", path)
    assert [damage.place for damage in report.damaged] == ["line 3"]
    assert [record.id for record in memory.find(order="id")] == ["good", "last"]


def test_a_hash_that_is_right_is_no_damage(write: Write, run: Run) -> None:
    record = Record(id="a", content="x", time=WHEN)
    line = {**record.to_json(), "hash": record.hash}
    assert run("jsonl", write("export.jsonl", lines_of(HEADER, GOOD, b"", GOOD, line))).damaged == ()


@pytest.mark.parametrize("count", [2, 4])
def test_a_file_with_more_or_fewer_lines_than_its_header_says_is_reported(count: int, write: Write, run: Run) -> None:
    report = run("jsonl", write("export.jsonl", lines_of(HEADER, *[GOOD] * count)))
    assert [damage.place for damage in report.damaged] == ["line 1"]
    assert "3 records" in report.damaged[0].reason


@pytest.mark.parametrize("bad", [{"recollect": 5}, b'{"recollect": {"format": 1, "names'])
def test_records_under_a_damaged_header_go_to_no_namespace(bad: Any, write: Write, run: Run, memory: Memory) -> None:
    three = [{**GOOD, "id": str(number)} for number in range(3)]
    report = run("jsonl", write("export.jsonl", lines_of(HEADER, *three, bad, GOOD, HEADER, *three)))
    assert [damage.place for damage in report.damaged] == ["line 5", "line 6"]
    assert (report.created, report.unchanged, memory.get("good") is not None) == (3, 3, False)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        lines_of({**GOOD, "hash": "h"}),
        lines_of({"recollect": {"format": 2, "namespace": "a", "records": 0}}),
        lines_of({"recollect": {"format": 1, "records": 0}}),
        lines_of({"recollect": {"format": 1, "namespace": "", "records": 0}}),
        bytes(range(256)),
    ],
)
def test_a_file_without_a_header_first_is_refused_whole(data: bytes, write: Write, run: Run, memory: Memory) -> None:
    with pytest.raises(ImportFormatError):
        run("jsonl", write("export.jsonl", data))
    assert memory.namespaces() == []


def test_a_byte_order_mark_and_empty_lines_are_passed_over(write: Write, run: Run) -> None:
    header = {"recollect": {**HEADER["recollect"], "records": 1}}
    report = run("jsonl", write("export.jsonl", b"\xef\xbb\xbf\n" + lines_of(b"", header, b" ", GOOD)))
    assert (report.created, report.damaged) == (1, ())


def test_lines_longer_than_any_record_are_reported(write: Write, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.importers.jsonl._LONGEST_LINE", 200)
    path = write("export.jsonl", lines_of(HEADER, GOOD, {"id": "long", "content": "x" * 5000}, {**GOOD, "id": "last"}))
    report = run("jsonl", path)
    assert (report.created, [damage.place for damage in report.damaged]) == (2, ["line 3"])


def test_a_scoped_memory_exports_what_it_sees_and_imports_into_its_scope(write: Write, memory: Memory) -> None:
    memory.remember("Ana's", user="ana", id="hers", time=WHEN)
    memory.remember("Ben's", user="ben", id="his", time=WHEN)
    ana = memory.scoped(user="ana")
    text = exported(ana)
    assert json.loads(text.splitlines()[0])["recollect"]["root"] is None
    assert len(text.splitlines()) == 2
    with recollect.open(":memory:") as other:
        report = import_path(
            other.scoped(user="eve"), IMPORTERS["jsonl"], write("mine.jsonl", lines_of(HEADER, GOOD, GOOD, GOOD))
        )
        assert (report.created, report.unchanged, report.damaged) == (1, 2, ())
        assert [record.user for record in other.find()] == ["eve"]
        refused = import_path(other.scoped(user="eve"), IMPORTERS["jsonl"], write("hers.jsonl", text))
        assert [damage.place for damage in refused.damaged] == ["line 2"]


def test_the_roots_that_an_export_promises_are_compared(write: Write, tmp_path: Path) -> None:
    with memory_on(MemoryStore(), clock=lambda: WHEN) as memory:
        memory.remember("lasting", id="a")
        memory.remember("due by the time of the export", id="b", expires=WHEN)
        file = io.StringIO()
        assert write_jsonl(memory, file) == 1
        path = write("all.jsonl", file.getvalue())
    with memory_on(MemoryStore(), clock=lambda: WHEN) as memory:  # whose record has expired meanwhile
        late = write("late.jsonl", file.getvalue())
        text = late.read_text(encoding="utf-8").replace('"id":"a"', f'"expires":"{WHEN.isoformat()}","id":"a"')
        late.write_text(re.sub(r'"hash":"[0-9a-f]+",', "", text), encoding="utf-8")
        report = import_path(memory, IMPORTERS["jsonl"], late)
        assert (report.created, report.expired, report.damaged, memory.seq) == (0, 1, (), 0)
    for other, promised in (
        (recollect.open(":memory:"), True),
        (recollect.open(":memory:", key=b"a key of one's own"), False),
    ):
        with other:
            assert import_path(other, IMPORTERS["jsonl"], path).roots == {"default": promised}
            other.remember("more")
            assert import_path(other, IMPORTERS["jsonl"], path).roots == {"default": False}
            mine = other.namespace("mine").scoped(user="ana")
            assert import_path(mine, IMPORTERS["jsonl"], path).roots == {}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=8,
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip()))


@given(
    contents=st.lists(TEXT | st.binary(), max_size=4),
    metadata=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON, max_size=3),
)
def test_any_content_and_metadata_come_back_to_the_bit(
    contents: list[str | bytes], metadata: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    with recollect.open(":memory:") as memory, recollect.open(":memory:") as other:
        memory.remember_all(
            [
                {"content": content, "id": str(number), "media_type": "a/b", "metadata": metadata}
                for number, content in enumerate(contents)
            ]
        )
        with path.open("w", encoding="utf-8", newline="\n") as file:
            assert write_jsonl(memory, file) == len(contents)
        assert import_path(other, IMPORTERS["jsonl"], path, zone=UTC).damaged == ()
        assert other.root == memory.root
