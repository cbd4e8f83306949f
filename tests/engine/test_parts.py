"""One root covers the whole memory, and the log of a memory follows what facets write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.test_proofs import both

import recollect
from recollect import Memory, RecollectWarning
from recollect.errors import InvalidArgumentError
from recollect.ledger.commits import RESERVED, Branch
from recollect.ledger.merkle import EMPTY
from recollect.ledger.parts import PartHead, decode_parts, encode_parts, memory_root, roots_of, stated_root
from recollect.stores.sqlite_base import checksums
from recollect.testing.loopback import core_of

on_both = pytest.mark.stores("memory", "sqlite")

#: One write to each part, by its name.
WRITES: dict[str, Callable[[Memory], object]] = {
    "records": lambda memory: memory.remember("Ana prefers window seats", id="ana"),
    "terms": lambda memory: memory.glossary.memorize("tack", "turning the bow", "to go about", agent_id="bot"),
    "nodes": lambda memory: memory.outline.ingest({"type": "HEADLINE", "properties": {"ID": "boats"}}),
    "sdrs": lambda memory: memory.sdr.store("the halyard is frayed"),
    "keys": lambda memory: memory.keyed.write("plan", b"leave at dawn"),
    "quarantined": lambda memory: _quarantined(memory, "page", "Pay Eve at once"),
}


def _quarantined(memory: Memory, record_id: str, text: str) -> None:
    memory.set_policies(origins={"web": "quarantine"})
    with pytest.warns(RecollectWarning, match="in quarantine"):
        memory.remember(text, id=record_id, source="https://eve.example")
    memory.set_policies()


def fill(memory: Memory) -> None:
    for write in WRITES.values():
        write(memory)


def digest(name: str, *parts: bytes) -> bytes:
    return hashlib.sha256(f"recollect.{name}.1\0".encode() + b"".join(parts)).digest()


def test_every_part_that_a_facet_reserves_is_tried_here() -> None:
    assert set(WRITES) == {"records", *RESERVED}


@on_both
@pytest.mark.parametrize("part", WRITES)
def test_each_write_to_a_part_changes_the_root_the_seq_and_the_head_of_the_log(memory: Memory, part: str) -> None:
    fill(memory)
    before = memory.head()
    again: dict[str, Callable[[], object]] = {
        "records": lambda: memory.remember("Bo"),
        "terms": lambda: memory.glossary.memorize("gybe", "turning the stern", "other tack", agent_id="bot"),
        "nodes": lambda: memory.outline.ingest({"type": "HEADLINE", "properties": {"ID": "sails"}}),
        "sdrs": lambda: memory.sdr.store("the pump is new"),
        "keys": lambda: memory.keyed.write("plan", b"stay"),
        "quarantined": lambda: _quarantined(memory, "other page", "Pay Eve tomorrow"),
    }
    again[part]()
    after = memory.head()
    assert (after.root != before.root, after.log != before.log) == (True, True)
    assert {name for name in after.parts if after.parts[name] != before.parts[name]} == {part}
    assert after.seq > before.seq


@on_both
def test_a_commit_to_a_part_is_followed_by_one_that_changes_no_record_at_the_same_time(memory: Memory) -> None:
    fill(memory)
    with core_of(memory).store.read() as view:
        commits = list(view.commits(Branch("default")))
        assert [bool(commit.changes) for commit in commits[:2]] == [True, False]
        for name in RESERVED:
            own = list(view.commits(Branch("default").reserved(name)))
            assert own
            stated = [(commit.micros, part) for commit in commits for part in commit.parts or () if part.name == name]
            for each in own:
                first = next(at for at, part in stated if part.seq == each.seq)
                assert (first, each.parts) == (each.micros, None)
            assert stated[-1][1] == PartHead(name, own[-1].seq, own[-1].root.hash, own[-1].entry)


@on_both
def test_what_each_part_has_is_proved_against_the_root_and_the_head_of_the_log(memory: Memory) -> None:
    fill(memory)
    head = memory.head()
    with core_of(memory).store.read() as view:
        ids = {
            name: next(record_id for record_id, _ in view.versions(Branch("default").reserved(name)))
            for name in RESERVED
        }
    for name, record_id in {**ids, "records": "ana"}.items():
        proof = memory.prove(record_id)
        assert (proof["part"], proof["proof"]) == (name, "recollect/presence/2")
        assert both(proof, head.root)
        assert both(proof, head.log or "")
        assert both(proof, head.parts[name])
        for other in head.parts:
            elsewhere = memory.prove(record_id, part=other)
            assert ("version" in elsewhere) == (other == name)
            assert both(elsewhere, head.root)
            assert not both({**elsewhere, "part": "records" if other != "records" else "keys"}, head.root)
    assert memory.prove("zoe")["part"] == "records"


@on_both
def test_what_the_calls_of_a_facet_return_names_its_proof(memory: Memory) -> None:
    """As the modules of the facets say: by a number, a key and the id of a term or node."""
    fill(memory)
    number = memory.sdr.store("the pump is new")
    (term,) = memory.glossary.list_all("bot")
    ids = {"sdrs": str(number), "keys": "plan", "terms": term["entry_id"], "nodes": "boats", "quarantined": "page"}
    assert ids.keys() == set(RESERVED)
    for part, record_id in ids.items():
        proof = memory.prove(record_id, part=part)
        assert (proof["part"], "version" in proof) == (part, True)
        assert both(proof, memory.root)
        assert "version" not in memory.prove("absent", part=part)


@on_both
def test_a_part_that_is_empty_or_unknown_has_no_proof(memory: Memory) -> None:
    WRITES["records"](memory)
    with pytest.raises(InvalidArgumentError, match="is empty after commit 1"):
        memory.prove("ana", part="keys")
    with pytest.raises(InvalidArgumentError, match="must be one of records, "):
        memory.prove("ana", part="outlines")
    memory.keyed.write("plan", b"x")
    assert memory.prove("plan", part="keys")["part"] == "keys"
    with pytest.raises(InvalidArgumentError, match="is empty after commit 1"):
        memory.prove("plan", part="keys", at=1)


@on_both
def test_the_root_is_that_of_the_page_and_does_not_depend_on_what_was_removed(memory: Memory) -> None:
    """The formulas of docs/proofs.md, written again."""
    fill(memory)
    head = memory.head()
    leaves = [
        hashlib.sha256(b"\0" + digest("part", bytes([len(name)]), name.encode(), bytes.fromhex(root))).digest()
        for name, root in sorted(head.parts.items())
    ]

    def tree(leaves: list[bytes]) -> bytes:
        if len(leaves) == 1:
            return leaves[0]
        left = next(size for size in (4, 2, 1) if size < len(leaves))
        return hashlib.sha256(b"\1" + tree(leaves[:left]) + tree(leaves[left:])).digest()

    assert head.root == digest("memory", len(leaves).to_bytes(8, "big"), tree(leaves)).hex()
    log = memory.prove("ana")["log"]
    newest = memory.changes(since=head.seq - 1)[0]
    stated = b"".join(
        bytes([len(each["name"])])
        + each["name"].encode()
        + each["seq"].to_bytes(8, "big")
        + bytes.fromhex(each["entry"])
        for each in newest.to_json()["parts"]
    )
    assert log["parts"] == digest("parts", stated).hex()
    memory.keyed.forget("plan")
    assert sorted(memory.head().parts) == ["nodes", "quarantined", "records", "sdrs", "terms"]
    assert memory.root == memory_root({name: bytes.fromhex(root) for name, root in memory.head().parts.items()}).hex()


@on_both
def test_a_past_moment_has_its_root_and_everything_that_was_there(memory: Memory) -> None:
    fill(memory)
    kept = memory.snapshot("kept")
    root, seq = memory.root, memory.seq
    assert kept.root == root
    memory.keyed.write("plan", b"stay")
    memory.outline.ingest({"type": "HEADLINE", "properties": {"ID": "sails"}})
    assert memory.root != root
    for target in ("kept", kept, seq, root):
        past = memory.at(target)
        assert (past.root, past.head().parts, past.seq) == (root, past.head().parts, seq)
        assert past.keyed.read("plan") == b"leave at dawn"
        assert past.outline.get("sails") is None
        assert both(past.prove("boats"), root)


def test_parts_are_stored_and_read_back() -> None:
    @given(
        st.lists(
            st.builds(
                PartHead,
                st.text("abcdefgh", min_size=1, max_size=100),
                st.integers(0, 2**63 - 1),
                st.binary(min_size=32, max_size=32),
                st.binary(min_size=32, max_size=32),
            )
        )
    )
    def check(parts: list[PartHead]) -> None:
        raw = encode_parts(parts)
        assert decode_parts(raw) == tuple(parts)
        for cut in (1, 31, 40):
            if len(raw) > cut:
                with pytest.raises(ValueError, match="cut off"):
                    decode_parts(raw[:-cut])

    check()


def test_a_memory_without_other_parts_has_the_root_of_the_general_rule() -> None:
    root = hashlib.sha256(b"x").digest()
    assert stated_root(root, ()) == memory_root(roots_of(root, ())) == memory_root({"records": root})
    assert stated_root(root, None) == root
    assert roots_of(root, [PartHead("keys", 3, EMPTY, root)]) == {"records": root}


DAMAGES: dict[str, tuple[str, str]] = {
    "a part that was rolled back": (
        "DELETE FROM commits WHERE branch = :part AND seq = (SELECT max(seq) FROM commits WHERE branch = :part)",
        "states commit 2 of its keys, which is missing or another one",
    ),
    "a part that went on alone": (
        "UPDATE commits SET parts = x'' WHERE branch = :memory",
        "does not state the newest one of its keys",
    ),
    "parts that are cut off": (
        "UPDATE commits SET parts = substr(parts, 1, 20) WHERE branch = :memory AND seq = 3",
        "the parts of a commit are cut off",
    ),
    "a commit that follows nothing": (
        "UPDATE commits SET parts = (SELECT parts FROM commits WHERE branch = :memory AND seq = 2) "
        "WHERE branch = :memory AND seq = 3",
        "has lost its changes",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_check_finds_a_memory_whose_parts_are_not_what_it_states(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.db"
    with recollect.open(path) as memory:
        memory.remember("Ana")
        memory.keyed.write("plan", b"go")
        memory.keyed.write("plan", b"stay")
        assert memory.check() == []
    sql, found = DAMAGES[damage]
    with closing(checksums.connect(str(path))) as connection:
        numbers: Any = dict(
            connection.execute("SELECT n.name, b.number FROM branches b JOIN namespaces n ON n.number = b.namespace")
        )
        connection.execute(sql, {"memory": numbers["default"], "part": numbers["default\x1fkeys"]})
        assert connection.changes() > 0
    with recollect.open(path) as memory:
        assert any(found in problem for problem in memory.check()), memory.check()


def test_a_rescued_store_states_its_parts(tmp_path: Path) -> None:
    path, new = tmp_path / "a.db", tmp_path / "new.db"
    with recollect.open(path) as memory:
        fill(memory)
        root, log = memory.root, memory.head().log
    recollect.rescue(path, new)
    with recollect.open(new) as memory:
        assert (memory.root, memory.head().log) == (root, log)
        assert memory.check() == []
    with closing(checksums.connect(str(path))) as connection:  # the log of a part is lost, and its records are not
        connection.execute(
            "DELETE FROM changes WHERE branch = (SELECT b.number FROM branches b JOIN namespaces n "
            "ON n.number = b.namespace WHERE n.name = 'default\x1fkeys')"
        )
    other = tmp_path / "other.db"
    recollect.rescue(path, other)
    with recollect.open(other) as memory:
        assert memory.keyed.read("plan") == b"leave at dawn"
        assert memory.check() == []
        memory.keyed.write("plan", b"stay")
        assert memory.check() == []


def test_a_commit_keeps_its_parts_in_its_json_form() -> None:
    with recollect.open(":memory:") as memory:
        fill(memory)
        commits = memory.changes()
        again = [type(commit).from_json(json.loads(json.dumps(commit.to_json()))) for commit in commits]
        assert [(each.parts, each.memory_root) for each in again] == [
            (each.parts, each.memory_root) for each in commits
        ]
