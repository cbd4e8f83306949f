"""An erasure reaches every branch of a namespace, whatever its commits and caches have."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect.engine import erasing
from recollect.errors import UnknownRecordError
from recollect.ledger.commits import Branch
from recollect.stores.base import View

SECRET = "Ana's PIN is xyzzyplugh"


def finds(memory: recollect.Memory) -> list[str]:
    """The ways in which a memory still shows the secret."""
    ways = {
        "get": memory.get("pin") is not None,
        "find": any("xyzzyplugh" in str(record.content) for record in memory.find(limit=None)),
        "recall": any("xyzzyplugh" in str(hit.record.content) for hit in memory.recall("xyzzyplugh PIN")),
        "grep": bool(memory.grep("xyzzyplugh")),
        "past": any("xyzzyplugh" in str(each.content) for each in memory.at(1).find(limit=None)),
        "history": any(each.record and "xyzzyplugh" in str(each.record.content) for each in memory.history("pin")),
        "export": any("xyzzyplugh" in line.to_json()["content"] for line in memory.open_export().records),
    }
    return [way for way, found in ways.items() if found]


def branches_of(memory: recollect.Memory) -> list[recollect.Memory]:
    """The secret is in main; branches have it as it was, have changed it, have forgotten it, and have never had it."""
    memory.remember(SECRET, id="pin")
    memory.remember("Bo likes tea", id="tea")
    unwritten, written, changed, forgotten = (memory.branch(name) for name in ("a", "b", "c", "d"))
    written.remember("Cy sails")
    changed.update("pin", content="Ana's PIN is xyzzyplugh2")
    forgotten.forget("pin")
    before = memory.branch("e", at=0)
    before.remember("Di swims")
    return [memory, unwritten, written, changed, forgotten, before]


@pytest.mark.stores("memory", "sqlite", "loopback")
@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("where", range(5))
def test_an_erasure_in_one_branch_reaches_all(memory: recollect.Memory, where: int, redact: bool) -> None:
    every = branches_of(memory)
    for each in every:
        finds(each)  # fills the caches
    erased = every[where].erase("pin", redact=redact)
    assert (erased.ids, erased.versions) == (("pin",), 2)
    for each in every:
        assert finds(each) == [], each.branch_name
    assert [each.count() for each in every] == [1, 1, 2, 1, 1, 1]
    assert memory.check() == []
    every[1].remember("El sings")  # and the unwritten one goes on
    assert finds(every[1]) == []
    assert memory.check() == []
    with pytest.raises(UnknownRecordError):
        memory.erase("none")


def test_each_branch_that_knew_the_record_has_a_commit_of_the_erasure(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        every = branches_of(memory)
        seqs = [each.seq for each in every]
        assert memory.erase("pin").commits == (3,)
        assert [each.seq - seq for each, seq in zip(every, seqs, strict=True)] == [1, 0, 1, 1, 1, 0]
        for each in (every[0], every[2], every[3], every[4]):
            assert each.log(1)[0].changes[0].cause == "erased"


def test_another_process_stops_serving_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as one, recollect.open(path) as other:
        branches_of(one)
        theirs = [other, *(other.on(name) for name in "abcde")]
        assert [bool(finds(each)) for each in theirs] == [True, True, True, True, True, False]
        one.erase("pin")
        assert [finds(each) for each in theirs] == [[]] * 6


def test_no_file_of_the_store_has_it_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        for each in branches_of(memory):
            finds(each)
        memory.erase("pin")
    left = [each.name for each in tmp_path.rglob("*") if each.is_file() and b"xyzzyplugh" in each.read_bytes()]
    assert left == []


def test_an_erasure_in_one_branch_alone_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: as erasures were before, the other branches go on with the text, or break."""

    def alone(view: View, branch: Branch) -> list[Branch]:
        return [branch]

    monkeypatch.setattr(erasing, "lines_of", alone)
    with recollect.open(":memory:") as memory:
        every = branches_of(memory)
        memory.erase("pin")
        problems = memory.check()
        assert any(finds(each) for each in every[2:4]) or problems


@pytest.mark.parametrize("part", ["keys", "terms", "sdrs", "nodes"])
@pytest.mark.parametrize("has_main", [False, True])
def test_an_erasure_reaches_a_part_that_was_empty_when_the_branch_began(
    memory: recollect.Memory, part: str, has_main: bool
) -> None:
    def write(into: recollect.Memory, text: str) -> None:
        match part:
            case "keys":
                into.keyed.write("key", text.encode())
            case "terms":
                into.glossary.memorize("term", text, category="", agent_id="bot")
            case "sdrs":
                into.sdr.store(text)
            case "nodes":
                into.outline.ingest_text(f"# {text}\n", "markdown", "plan")

    def texts(of: recollect.Memory) -> list[str]:
        found = of._part(part).find(limit=None)
        return [record.text for record in found if record.kind != "sdr_counter"]

    memory.remember("base")
    branch = memory.branch("what-if")
    write(branch, "a secret of the branch")
    if has_main:
        write(memory, "what main has")
    memory._part(part).erase(recollect.filters.everything())
    assert texts(branch) == texts(memory) == []
    assert memory.check() == []
    write(branch, "a later secret")
    memory.merge_branch("what-if")
    memory._part(part).erase(recollect.filters.everything())
    assert texts(branch) == texts(memory) == []
    assert memory.check() == []


def test_a_branch_that_is_dropped_takes_along_what_only_its_parts_had(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db", embedder="none") as memory:
        memory.remember("base")
        branch = memory.branch("what-if")
        branch.keyed.write("key", SECRET.encode())
        branch.glossary.memorize("PIN", SECRET, category="", agent_id="bot")
        memory.drop_branch("what-if")
        memory.compact()
        assert memory.check() == []
    assert not any(b"xyzzyplugh" in each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
