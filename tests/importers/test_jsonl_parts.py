"""Exports of all parts of a memory, and importing them again."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.engine.family import PARTS, WRONG, counts, fill, ids, roots

import recollect
from recollect import Memory
from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.importers import ImportReport, import_path, write_jsonl

Write = Callable[[str, Any], Path]


def exported(*memories: Memory, **options: Any) -> list[dict[str, Any]]:
    """The lines of an export."""
    file = io.StringIO()
    for memory in memories:
        write_jsonl(memory, file, **options)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def imported(lines: list[Any], write: Write, memory: Memory, **options: Any) -> ImportReport:
    """Import lines; those that are no text are objects."""
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    return import_path(memory, "jsonl", write("export.jsonl", text.encode()), **options)


def headers(lines: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    """The part, the format and the number of records of each header."""
    found = [line["recollect"] for line in lines if "recollect" in line]
    return [(each.get("part", "records"), each["format"], each["records"]) for each in found]


def filled(memory: Memory) -> Memory:
    """Fill a memory with two of each, and what is hard to export."""
    fill(memory)
    fill(memory, "b")
    memory.keyed.write("#", bytes(range(256)))
    memory.keyed.write("", b"")
    memory.scoped(user="ana").keyed.write("plan", "drei \u00c4pfel".encode())
    memory.scoped(user="ana").sdr.store("the text of Ana")
    return memory


@pytest.mark.parametrize("key", [None, b"k" * 32], ids=["public", "private"])
def test_an_export_of_all_parts_imported_again_gives_the_same_root(
    memory: Memory, write: Write, tmp_path: Path, key: bytes | None
) -> None:
    with recollect.open(tmp_path / "from.db", key=key) as source, recollect.open(tmp_path / "to.db", key=key) as target:
        lines = exported(filled(source))
        report = imported(lines, write, target)
        assert (report.damaged, report.roots) == ((), {"default": True})
        assert report.parts == {"records": 2, "keys": 5, "nodes": 2, "sdrs": 5, "terms": 2}
        assert (target.root, roots(target)) == (source.root, roots(source))
        assert target.keyed.read("#") == bytes(range(256))
        assert target.scoped(user="ana").keyed.read("plan") == source.scoped(user="ana").keyed.read("plan")
        assert target.scoped(user="ana").sdr.texts() == source.scoped(user="ana").sdr.texts()
        assert target.glossary.list_all("bot") == source.glossary.list_all("bot")
        again = imported(lines, write, target)
        assert (again.unchanged, again.created, again.updated) == (sum(report.parts.values()), 0, 0)
    if key is None:  # into another kind of store
        assert imported(lines, write, memory).roots == {"default": True}


def test_a_store_with_another_key_has_another_root_and_the_same_contents(write: Write, tmp_path: Path) -> None:
    with (
        recollect.open(tmp_path / "from.db", key=b"a" * 32) as source,
        recollect.open(":memory:", key=b"b" * 32) as target,
    ):
        assert imported(exported(filled(source)), write, target).roots == {"default": False}
        assert counts(target) == counts(source)
        assert target.keyed.read("#") == bytes(range(256))


def test_expired_keys_are_not_exported_and_those_that_expire_later_are_left_out(write: Write) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with (
        recollect.open(":memory:", clock=lambda: now) as source,
        recollect.open(":memory:", clock=lambda: now) as target,
        recollect.open(":memory:", clock=lambda: now + timedelta(hours=1)) as late,
    ):
        fill(source)
        source.keyed.write("soon", b"x", ttl=60)
        source.keyed.write("later", b"x", ttl=600)
        now += timedelta(seconds=120)
        lines = exported(source)
        assert headers(lines)[1] == ("keys", 2, 2)
        assert source.stats()["parts"]["keys"] == 2
        assert imported(lines, write, target).roots == {"default": True}
        assert target.keyed.keys() == source.keyed.keys() == ["a", "later"]
        report = imported(lines, write, late)
        assert (report.expired, report.roots, late.keyed.keys()) == (1, {"default": False}, ["a"])


def test_each_part_has_a_header_that_releases_without_parts_refuse(memory: Memory) -> None:
    fill(memory)
    found = headers(exported(memory))
    assert found == [("records", 1, 1), ("keys", 2, 1), ("nodes", 2, 1), ("sdrs", 2, 2), ("terms", 2, 1)]
    lines = exported(memory)
    heads = {line["recollect"].get("part", "records"): line["recollect"] for line in lines if "recollect" in line}
    assert {part: head["root"] for part, head in heads.items()} == roots(memory)
    assert "part" not in heads["records"], "as before"


@pytest.mark.parametrize("parts", [["keys"], ["records"], ("terms", "nodes"), ["sdrs", "records"]], ids=str)
def test_only_the_parts_that_are_named_are_exported_or_imported(memory: Memory, write: Write, parts: list[str]) -> None:
    fill(memory)
    whole = exported(memory)
    some = exported(memory, parts=parts)
    assert [part for part, _, _ in headers(some)] == [part for part in PARTS if part in parts]
    for lines, options in ((some, {}), (whole, {"parts": parts}), (some, {"parts": parts})):
        with recollect.open(":memory:") as target:
            report = imported(lines, write, target, **options)
            assert (set(report.parts), report.roots) == (set(parts), {"default": True})
            assert counts(target) == {part: int(part in parts) for part in PARTS}
            expected = roots(memory)
            assert {part: root for part, root in roots(target).items() if part in parts} == {
                part: root for part, root in expected.items() if part in parts
            }


@pytest.mark.parametrize("wrong", WRONG)
def test_parts_that_there_are_not_are_refused_by_both(memory: Memory, write: Write, wrong: str) -> None:
    fill(memory)
    lines, file = exported(memory), io.StringIO()
    with pytest.raises(InvalidArgumentError, match="parts"):
        write_jsonl(memory, file, parts=WRONG[wrong])
    assert file.getvalue() == ""
    with recollect.open(":memory:") as target:
        with pytest.raises(InvalidArgumentError, match="parts") as refused:
            imported(lines, write, target, parts=WRONG[wrong])
        assert target.seq == 0
    if wrong == "unknown":
        assert "must be some of records, keys, nodes, quarantined, sdrs, terms" in str(refused.value)


def test_an_export_of_a_part_that_is_empty_is_imported_as_nothing(memory: Memory, write: Write) -> None:
    memory.remember("a record")
    lines = exported(memory, parts=["keys"])
    assert [part for part, _, _ in headers(exported(memory))] == ["records"]
    with recollect.open(":memory:") as target:
        assert imported(lines, write, target) == ImportReport()
        assert headers(lines) == [("keys", 2, 0)]
        assert target.seq == 0


def test_namespaces_of_one_file_get_their_parts(memory: Memory, write: Write) -> None:
    other = memory.namespace("other")
    fill(memory)
    fill(other, "b")
    other.keyed.write("c", b"c")
    with recollect.open(":memory:") as target:
        report = imported(exported(memory, other), write, target)
        assert (report.roots, report.damaged) == ({"default": True, "other": True}, ())
        assert report.namespaces == {"default": 6, "other": 7}
        assert report.parts == {"records": 2, "keys": 3, "nodes": 2, "sdrs": 4, "terms": 2}
        assert (target.root, target.namespace("other").root) == (memory.root, other.root)
        assert target.namespace("other").keyed.keys() == ["b", "c"]


def test_a_scope_exports_its_own_parts_and_imports_into_its_own(memory: Memory, write: Write) -> None:
    for user in ("ana", "bo"):
        fill(memory.scoped(user=user), user)
    ana = memory.scoped(user="ana")
    ana.keyed.write("#", b"of Ana")
    lines = exported(ana)
    assert {line["recollect"]["root"] for line in lines if "recollect" in line} == {None}
    assert "bo" not in json.dumps(lines).replace("bot", "").replace("boats", "")
    with recollect.open(":memory:") as target:
        report = imported(lines, write, target.scoped(user="ana"))
        assert (report.damaged, report.roots) == ((), {})
        assert counts(target.scoped(user="ana")) == counts(ana) == {**dict.fromkeys(PARTS, 1), "keys": 2}
        assert target.scoped(user="ana").keyed.read("#") == b"of Ana"
        assert target.scoped(user="bo").stats()["parts"] == {"records": 0}


BAD: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "a line cut off": (lambda line: json.dumps(line)[:-9], "is not JSON"),
    "another tag": (lambda line: {**line, "tags": ["other"]}, "its hash is"),
    "no id": (lambda line: {name: value for name, value in line.items() if name != "id"}, "has no id"),
    "not an object": (lambda line: [line], "is a list"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_line_of_a_part_is_reported_and_the_rest_is_stored(
    memory: Memory, write: Write, part: str, bad: str
) -> None:
    fill(memory)
    fill(memory, "b")
    lines: list[Any] = exported(memory)
    at = next(
        n for n, line in enumerate(lines) if "recollect" in line and line["recollect"].get("part", "records") == part
    )
    change, reason = BAD[bad]
    lines[at + 1] = change(lines[at + 1])
    with recollect.open(":memory:") as target:
        report = imported(lines, write, target)
        assert [(each.place, reason in each.reason) for each in report.damaged] == [(f"line {at + 2}", True)]
        assert report.roots == {"default": False}
        assert counts(target) == {**counts(memory), part: 1}


HEADERS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown part": ({"part": "outlines", "format": 2}, "is a header of a part"),
    "a part that is no text": ({"part": ["keys"], "format": 2}, "is a header of"),
    "a part with the format of records": ({"part": "keys", "format": 1}, "is a header of format 1"),
    "records with the format of parts": ({"format": 2}, "is a header of format 2"),
    "a later format": ({"part": "keys", "format": 3}, "is a header of format 3"),
    "no number": ({"part": "keys", "format": 2, "records": "two"}, "is not a header"),
}


@pytest.mark.parametrize("bad", HEADERS)
def test_the_lines_below_a_header_that_cannot_be_read_go_to_no_part(memory: Memory, write: Write, bad: str) -> None:
    fill(memory)
    lines = exported(memory)
    at = next(n for n, line in enumerate(lines) if line.get("recollect", {}).get("part") == "keys")
    stated, reason = HEADERS[bad]
    base = {name: value for name, value in lines[at]["recollect"].items() if name != "part"}
    lines[at] = {"recollect": {**base, **stated}}
    with recollect.open(":memory:") as target:
        report = imported(lines, write, target.namespace("default"))
        assert [each.place for each in report.damaged] == [f"line {at + 1}", f"line {at + 2}"]
        assert reason in report.damaged[0].reason
        assert counts(target) == {**counts(memory), "keys": 0}
        with pytest.raises(ImportFormatError, match=reason):
            imported(lines[at:], write, target)


@pytest.mark.parametrize("part", PARTS)
def test_a_file_that_ends_in_the_middle_of_a_part_is_reported(memory: Memory, write: Write, part: str) -> None:
    fill(memory)
    fill(memory, "b")
    lines = exported(memory)
    at = next(
        n for n, line in enumerate(lines) if "recollect" in line and line["recollect"].get("part", "records") == part
    )
    with recollect.open(":memory:") as target:
        report = imported(lines[: at + 2], write, target)
        (damage,) = report.damaged
        assert damage.place == f"line {at + 1}"
        assert "but 1 lines follow" in damage.reason
        assert report.roots == {"default": False}
        later = PARTS[PARTS.index(part) + 1 :]
        assert all(counts(target)[each] == 0 for each in later)
        assert imported(lines, write, target).roots == {"default": True}
        assert roots(target) == roots(memory)


def test_a_redacted_export_replaces_what_is_private_in_every_part(memory: Memory, write: Write) -> None:
    secret = "write to ana@example.org"
    memory.remember(secret, id="a")
    memory.keyed.write("a", secret.encode())
    memory.sdr.store(secret)
    memory.glossary.memorize("ana", secret, "", agent_id="bot")
    memory.outline.ingest_text(f"* {secret}\n", "org", "a.org")
    assert json.dumps(exported(memory)).count("example.org") >= 4
    lines = exported(memory, redact=True)
    assert "example.org" not in json.dumps(lines)
    assert {line["recollect"]["root"] for line in lines if "recollect" in line} == {None}
    with recollect.open(":memory:") as target:
        report = imported(lines, write, target)
        assert (report.damaged, report.roots) == ((), {})
        assert counts(target) == counts(memory)


def test_a_file_without_parts_is_imported_as_before(memory: Memory, write: Write) -> None:
    fill(memory)
    lines = exported(memory, parts=["records"])
    assert headers(lines) == [("records", 1, 1)]
    with recollect.open(":memory:") as target:
        fill(target, "b", ["keys"])
        report = imported(lines, write, target)
        assert report == ImportReport(
            created=1, namespaces={"default": 1}, parts={"records": 1}, roots={"default": True}
        )
        assert ids(target, "keys") == ["b"]
