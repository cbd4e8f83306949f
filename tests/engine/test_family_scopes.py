"""Within a scope, all parts of a memory show only what is of the scope."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.engine.family import PARTS, changed, counts, fill, write

from recollect import Memory
from recollect import filters as f
from recollect.errors import ScopeError
from recollect.ledger.commits import ScopedCommit

on_all = pytest.mark.stores("memory", "sqlite", "loopback")


@pytest.fixture
def ana(memory: Memory) -> Memory:
    """A scope, where others have written before, between and after it to each part."""
    for name in ("one", "two"):
        for part in PARTS:
            write(memory.scoped(user="zoe"), part, f"zoe{name}")
            write(memory.scoped(user="ana"), part, f"ana{name}")
            write(memory, part, f"shared{name}")
    fill(memory.scoped(user="zoe"), "zoelast")
    return memory.scoped(user="ana")


def texts(found: Any) -> str:
    """Return everything that a result says, as text."""
    return json.dumps(found, default=lambda each: each.to_json())


def shown_by(memory: Memory) -> Iterator[Any]:
    """Yield what each reading call gives."""
    yield memory.stats()
    for parts in (None, *([part] for part in PARTS)):
        yield [each.to_json() for each in memory.changes(parts=parts)]
        yield [each.to_json() for each in memory.log(3, parts=parts)]
        with memory.open_export(parts=parts) as export:
            yield export.to_json()
    first = memory.changes()[0].cursor
    yield memory.diff(first).to_json()


@on_all
def test_no_call_shows_what_others_have_in_a_part(memory: Memory, ana: Memory) -> None:
    assert "zoe" in texts(list(shown_by(memory.scoped(user="zoe")))), "the control"
    for found in shown_by(ana):
        assert "zoe" not in texts(found)
        assert "shared" not in texts(found)
    assert ana.stats()["parts"] == dict.fromkeys(PARTS, 2)
    assert changed(ana.changes()) == [(part,) for part in PARTS] * 2
    found = ana.diff(ana.changes()[4].cursor)
    assert {part: len(each.added) for part, each in found.each()} == dict.fromkeys(PARTS, 1)
    assert ana.stats(parts=["keys"])["parts"] == {"keys": 2}


@on_all
def test_what_others_write_changes_nothing_that_a_scope_sees(memory: Memory, ana: Memory) -> None:
    before = list(shown_by(ana))
    fill(memory.scoped(user="zoe"), "later")
    memory.scoped(user="zoe").clear()
    memory.forget_where(user="zoe")
    fill(memory, "more")
    assert list(shown_by(ana)) == before


@on_all
def test_commits_to_parts_show_neither_numbers_nor_names(ana: Memory) -> None:
    seen = 0
    for commit in ana.changes():
        for each in (commit, *commit.part_commits):
            assert isinstance(each, ScopedCommit)
            assert (each.seq, each.actor, each.reason, each.entry, each.parts) == (0, None, None, b"", None)
            assert not {"seq", "actor", "reason", "root", "entry", "parts"} & each.to_json().keys()
            seen += each is not commit
    assert seen == 8
    with pytest.raises(ScopeError):
        ana.rollback(0)


@on_all
def test_clearing_and_forgetting_in_a_scope_leave_what_others_have(memory: Memory, ana: Memory) -> None:
    whole = counts(memory)
    assert ana.forget_where(f.everything(), parts=["keys", "records"]).parts == {"records": 2, "keys": 2}
    assert ana.clear().parts == {"nodes": 2, "sdrs": 2, "terms": 2}
    assert ana.clear() == 0
    assert counts(memory) == {part: count - 2 for part, count in whole.items()}
    assert memory.scoped(user="zoe").stats()["parts"] == dict.fromkeys(PARTS, 3)
    assert memory.forget_where(user="zoe").parts == dict.fromkeys(PARTS, 3)
    assert memory.stats()["parts"] == dict.fromkeys(PARTS, 2)


@on_all
def test_an_erasure_in_a_scope_reaches_its_parts_alone(memory: Memory, ana: Memory) -> None:
    whole = counts(memory)
    done = ana.erase(f.everything(), redact=True)
    assert (len(done.ids), done.parts, done.commits) == (2, dict.fromkeys(PARTS[1:], 2), ())
    left = {
        change.id for commit in memory.changes() for each in (commit, *commit.part_commits) for change in each.changes
    }
    assert {each for each in left if "ana" in each} == {"@user=ana/last"}  # the record that counts is kept
    assert counts(memory) == {part: count - 2 for part, count in whole.items()}
    assert memory.check() == []


@on_all
def test_a_scope_listens_to_its_parts(memory: Memory, ana: Memory) -> None:
    with ana.subscribe(parts=["keys", "terms"]) as stream:
        for part in PARTS:
            write(memory.scoped(user="zoe"), part, "other")
            write(ana, part, "own")
        found = [next(stream), next(stream)]
    assert changed(found) == [("keys",), ("terms",)]
    assert "zoe" not in texts([each.to_json() for each in found])


@on_all
def test_the_past_of_a_scope_has_its_parts(memory: Memory, ana: Memory) -> None:
    cursor = ana.changes()[6].cursor  # after a record and a key of the second round
    past = ana.at(cursor)
    assert past.stats()["parts"] == {"records": 2, "keys": 2, "nodes": 1, "sdrs": 1, "terms": 1}
    with past.open_export() as export:
        assert {each.name: each.count for each in export.parts} == {"keys": 2, "nodes": 1, "sdrs": 2, "terms": 1}
        assert "zoe" not in texts([export])
    assert len(past.changes()) == 7
