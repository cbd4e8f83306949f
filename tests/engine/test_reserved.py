"""Reserved namespaces: what facets keep beside the records of a namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect import Memory
from recollect.errors import InvalidArgumentError, QuotaError
from recollect.ledger.commits import RESERVED, Branch
from recollect.operations import GetQuota

pytestmark = pytest.mark.stores("memory", "sqlite")


def reserved(memory: Memory, what: str = "terms") -> Memory:
    return Memory(memory._executor, memory._branch.reserved(what), memory._scope)


def test_each_namespace_has_its_own_and_they_belong_to_it() -> None:
    branch = Branch("team", "draft")
    # by facets; stores have records under these names
    assert RESERVED == ["keys", "nodes", "quarantined", "sdrs", "terms"]
    assert len({*branch.family}) == 1 + len(RESERVED)
    for what in RESERVED:
        own = branch.reserved(what)
        assert (own.owner, own.name, own.is_reserved, own.family) == (branch, "draft", True, branch.family)
        assert own != Branch("other", "draft").reserved(what)
    assert (branch.owner, branch.is_reserved) == (branch, False)


def test_they_are_listed_nowhere_and_no_caller_can_name_one(memory: Memory) -> None:
    memory.remember("one")
    reserved(memory).remember("a term", id="term")
    assert memory.namespaces() == ["default"]
    assert memory.at(1).namespaces() == ["default"]
    assert (memory.count(), len(memory.recall("term"))) == (1, 0)
    with pytest.raises(InvalidArgumentError):
        memory.namespace(memory._branch.reserved("terms").namespace)
    assert memory.check() == []


def test_their_records_have_a_history_and_are_seen_in_scopes(memory: Memory) -> None:
    terms = reserved(memory)
    terms.scoped(user="ana").remember("hers", id="term")
    terms.remember("everybody's", id="term", user="bo")
    assert reserved(memory.scoped(user="ana")).get("term") == terms.scoped(user="ana").get("term")
    assert reserved(memory.scoped(user="zoe")).count() == 0
    terms.rollback(1)
    assert terms.count() == 1


def test_what_they_store_counts_towards_the_quota_of_their_owner(memory: Memory) -> None:
    memory.set_quota(records=3)
    memory.remember("one")
    reserved(memory).remember("a term")
    reserved(memory, "keys").remember("a key")
    for full in (memory, reserved(memory), reserved(memory, "nodes")):
        with pytest.raises(QuotaError, match="is 3 records, and this write would make it 4"):
            full.remember("too much")
    reserved(memory, "keys").forget_where(recollect.filters.custom(lambda record: True))
    memory.remember("two")
    memory.set_quota()
    reserved(memory).remember("another term")
    assert memory.namespace("other").execute(GetQuota()) is None


def test_a_write_evicts_records_of_its_own_namespace_only(memory: Memory) -> None:
    memory.set_quota(records=4, when_full="least recent")
    for number in range(2):
        memory.remember(f"note {number}")
        reserved(memory).remember(f"term {number}")
    memory.remember("note 2")
    assert sorted(record.text for record in memory.find()) == ["note 1", "note 2"]
    assert reserved(memory).count() == 2
    reserved(memory).remember_all(["term 2", "term 3"])
    assert sorted(record.text for record in reserved(memory).find()) == ["term 2", "term 3"]
    assert memory.count() == 2


def test_a_backup_and_a_rescue_have_them(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember("one")
        reserved(memory).remember("a term", id="term")
        memory.backup(tmp_path / "b.db", verify=True)
    recollect.rescue(tmp_path / "a.db", tmp_path / "c.db")
    for copy in ("b.db", "c.db"):
        with recollect.open(tmp_path / copy) as memory:
            assert reserved(memory).get("term") is not None
            assert memory.namespaces() == ["default"]
