"""Proofs: what they prove is verified, and nothing else is, by this package and by a verifier that knows only the page.

`tests/engine/independent_verifier.py` was written from docs/proofs.md and imports nothing of the package.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.docs.pages import run_python
from tests.engine import independent_verifier as independent
from tests.examples import FULL, some, spread
from tests.paths import ROOT as REPOSITORY

import recollect
from recollect import Memory, verify
from recollect.cli.app import app
from recollect.errors import DamagedStoreError, InvalidArgumentError
from recollect.ledger.log_tree import head_of
from recollect.ledger.merkle import EMPTY, leaf_hash_at, node_hash, path_of, salted_version
from recollect.stores.sqlite_base import checksums

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = b"a private key of 16 or more bytes"
Proof = dict[str, Any]


@pytest.fixture(params=["memory", "sqlite", "sqlite with a private key"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    path, key = (":memory:" if request.param == "memory" else tmp_path / "a.db"), None
    if "private" in request.param:
        key = KEY
    with recollect.open(path, clock=lambda: START, key=key) as opened:
        yield opened


def both(proof: object, *trusted: str) -> bool:
    """Return the answer of both verifiers, which must be the same."""
    found = verify(proof, trusted if len(trusted) > 1 else trusted[0])
    assert independent.verified(proof, trusted if len(trusted) > 1 else trusted[0]) is found  # type: ignore[arg-type]
    return found


def filled(memory: Memory) -> None:
    memory.remember("Ana prefers window seats", id="ana")
    with memory.batch(actor="importer", reason="two at once") as batch:
        batch.remember("tea", id="tea")
        batch.remember("coffee", id="coffee")
    memory.update("ana", content="Ana prefers aisle seats")
    memory.forget("coffee")
    memory.remember("Bo is allergic to nuts", id="bo")


class TestWhatIsProved:
    def test_records_are_present_with_their_content_and_other_ids_are_absent(self, memory: Memory) -> None:
        memory.remember_all({"content": f"fact {number}", "id": f"r{number}"} for number in range(200))
        head = memory.head()
        assert head.log is not None
        for number in range(200):
            proof = memory.prove(f"r{number}")
            assert both(proof, head.root)
            assert both(proof, head.log)
            record = memory.get(f"r{number}")
            assert record is not None
            assert bytes.fromhex(proof["payload"]) == record.to_bytes()
        ends = set()
        for number in range(200, 300):
            proof = memory.prove(f"r{number}")
            assert both(proof, head.root)
            assert both(proof, head.log)
            ends.add(proof["leaf"] is None)
        assert ends == {True, False}

    def test_a_proof_of_absence_discloses_no_other_id(self, memory: Memory) -> None:
        memory.remember_all({"content": f"fact {number}", "id": f"secret-{number}"} for number in range(40))
        for number in range(40):
            proof = memory.prove(f"absent-{number}")
            assert proof["proof"] == "recollect/absence/2"
            assert "secret" not in json.dumps(proof)
            assert "fact" not in str(bytes.fromhex(proof["log"]["changes"]))

    def test_every_state_of_the_past_is_proved_against_its_root_and_the_head_of_today(self, memory: Memory) -> None:
        filled(memory)
        present = [
            set(),
            {"ana"},
            {"ana", "tea", "coffee"},
            {"ana", "tea", "coffee"},
            {"ana", "tea"},
            {"ana", "tea", "bo"},
        ]
        roots = [memory.at(0).root, *(commit.memory_root.hex() for commit in memory.changes())]
        log = memory.head().log
        assert log is not None
        for seq, ids in enumerate(present):
            for each in ("ana", "tea", "coffee", "bo", "zoe"):
                proof = memory.prove(each, at=seq)
                assert proof["proof"] == f"recollect/{'presence' if each in ids else 'absence'}/2"
                if seq:
                    assert both(proof, log)
                    assert proof["log"]["seq"] == seq
                assert both(proof, roots[seq])
                assert not both(proof, roots[seq - 1]) or roots[seq] == roots[seq - 1]
        old, new = (bytes.fromhex(memory.prove("ana", at=seq)["payload"]) for seq in (2, 3))
        assert b"window" in old
        assert b"aisle" in new

    def test_a_log_is_proved_to_extend_every_earlier_one(self, memory: Memory) -> None:
        heads = [memory.head().log]
        for number in range(20):
            memory.remember("ok", id=f"r{number}")
            heads.append(memory.head().log)
        logs = [head for head in heads if head is not None]
        for old in range(21):
            for new in range(old, 21):
                proof = memory.prove_log(old, new)
                assert both(proof, logs[new])
                assert both(proof, logs[old], logs[new])
                assert proof["old"]["head"] == logs[old]
                assert not both(proof, logs[new - 1]) or not new or old == new == 0
                assert not both(proof, logs[new], logs[old]) or old == new
        assert memory.prove_log(3) == memory.prove_log(3, 20)

    def test_the_head_of_the_log_binds_its_size(self, memory: Memory) -> None:
        filled(memory)
        assert memory.head().log is not None
        for proof in (memory.prove("ana"), memory.prove("ana", at=1)):
            for size in range(1, 20):
                changed = copy.deepcopy(proof)
                changed["log"]["size"] = size
                assert both(changed, proof["root"]) is both(changed, proof["log"]["head"]) is (size == 5)

    def test_only_what_was_requested_is_in_a_head(self, memory: Memory) -> None:
        filled(memory)
        assert memory.execute(recollect.operations.ReadHead()) == (5, memory.root, None, memory.head().parts)
        assert memory.head()[:2] == (memory.seq, memory.root)

    def test_an_unknown_commit_is_refused(self, memory: Memory) -> None:
        filled(memory)
        refused: list[Callable[[], object]] = [
            lambda: memory.prove("ana", at=6),
            lambda: memory.prove("ana", at=-1),
            lambda: memory.prove("ana", at="5"),  # type: ignore[arg-type]
            lambda: memory.prove_log(6),
            lambda: memory.prove_log(3, 2),
            lambda: memory.prove_log(3, 6),
            lambda: memory.prove_log(True),
        ]
        for call in refused:
            with pytest.raises(InvalidArgumentError):
                call()

    def test_an_expired_record_is_present_until_a_commit_removes_it(self) -> None:
        now = [START]
        with recollect.open(":memory:", clock=lambda: now[0]) as memory:
            memory.remember("tea", id="tea", ttl=60)
            now[0] = datetime(2026, 1, 2, tzinfo=UTC)
            assert memory.get("tea") is None
            assert both(memory.prove("tea"), memory.root)
            assert "payload" in memory.prove("tea")
            memory.sweep()
            assert memory.prove("tea")["proof"] == "recollect/absence/2"
            assert both(memory.prove("tea"), memory.root)

    def test_a_namespace_has_a_log_of_its_own(self, memory: Memory) -> None:
        memory.remember("tea", id="tea")
        other = memory.namespace("other")
        assert both(other.prove("tea"), other.root)
        assert other.prove("tea")["proof"] == "recollect/absence/2"
        assert other.head().log == head_of(0, hashlib.sha256(b"").digest()).hex()
        assert memory.head().log != other.head().log


def erased(path: Path, *ids: str) -> Memory:
    """A memory in which the payloads of the forgotten versions of these ids have been erased."""
    with recollect.open(path) as memory:
        filled(memory)
        versions = [
            each.after
            for commit in memory.changes()
            for each in commit.changes
            if each.id in ids and each.after is not None
        ]
        live = memory.get(ids[0])
        assert live is None
    connection = checksums.connect(str(path))
    connection.executemany("UPDATE versions SET payload = NULL WHERE hash = ?", [(each,) for each in versions])
    connection.close()
    return recollect.open(path)


@pytest.mark.files
class TestErasedPayloads:
    def test_a_record_whose_payload_was_erased_is_proved_to_have_been_present(self, tmp_path: Path) -> None:
        with erased(tmp_path / "a.db", "coffee") as memory:
            proof = memory.prove("coffee", at=3)
            assert proof["erased"] is True
            assert "payload" not in proof
            assert both(proof, proof["root"])
            assert both(proof, memory.head().log or "")
            assert both(memory.prove("coffee"), memory.root)
            assert "erased" not in memory.prove("tea", at=3)

    def test_the_content_is_not_disclosed_by_the_salt(self, tmp_path: Path) -> None:
        with erased(tmp_path / "a.db", "coffee") as memory:
            assert "salt" not in memory.prove("coffee", at=3)


# Proofs that are none


def part_at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


def replaced(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    """A copy of a value with another part at the end of a way; `DELETED` removes it."""
    out = copy.deepcopy(value)
    outer = part_at(out, way[:-1])
    if new is DELETED:
        del outer[way[-1]]
    else:
        outer[way[-1]] = new
    return out


def is_exactly(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; 1, 1.0 and true are not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_exactly(each, other[key]) for key, each in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_exactly, one, other))
    return bool(one == other)


DELETED = object()
DIGITS = set(b"0123456789abcdef")


def parts(value: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a JSON value but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in items:
        yield (*steps, step)
        yield from parts(each, (*steps, step))


@pytest.fixture(scope="module")
def proofs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Proof]:
    """A proof of each form."""
    path = tmp_path_factory.mktemp("proofs") / "a.db"
    with erased(path, "coffee") as memory:
        found = {
            "presence": memory.prove("tea"),
            "of two parents": memory.prove("tea", at=2),
            "erased": memory.prove("coffee", at=2),
            "absence": memory.prove("zoe"),
            "absence at another leaf": memory.prove("none"),
            "absence at the only leaf": memory.prove("zoe", at=1),
            "absence from nothing": memory.prove("zoe", at=0),
            "consistency": memory.prove_log(3),
            "consistency with a power of two": memory.prove_log(2),
            "consistency with nothing": memory.prove_log(0),
            "consistency with itself": memory.prove_log(5),
        }
        without_log = dict(found["presence"])
        del without_log["log"]
        found["presence without a log"] = without_log
    return found


FORMS = (
    "presence",
    "of two parents",
    "erased",
    "absence",
    "absence at another leaf",
    "absence at the only leaf",
    "absence from nothing",
    "consistency",
    "consistency with a power of two",
    "consistency with nothing",
    "consistency with itself",
    "presence without a log",
)


def anchors(proof: Proof) -> list[str]:
    """The hashes against which a proof is verified."""
    if "new" in proof:
        return [proof["new"]["head"]]
    return [proof["root"], *([proof["log"]["head"]] if "log" in proof else [])]


JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**63,
    10**5000,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "0" * 64,
    "F" * 64,
    " " * 64,
    "\ud800",
    "é" * 64,
    "٠" * 64,
    [],
    {},
    [[]],
    {"": None},
    ["0" * 64],
    ["main", 1],
    EMPTY.hex(),
]


class TestWhatIsNoProof:
    @pytest.mark.files
    @pytest.mark.promise("proof.exact")
    def test_each_form_of_a_proof_is_verified(self, proofs: dict[str, Proof]) -> None:
        assert tuple(proofs) == FORMS
        for proof in proofs.values():
            for trusted in anchors(proof):
                assert both(proof, trusted)
            assert not both(proof, "0" * 64)

    @pytest.mark.files
    @pytest.mark.promise("proof.bytes")
    @pytest.mark.parametrize("form", FORMS)
    def test_a_proof_with_any_other_byte_is_refused(self, proofs: dict[str, Proof], form: str) -> None:
        """Every byte becomes every other one. By default only some do in a long proof, and fewer of its hex digits."""
        proof = proofs[form]
        raw = json.dumps(proof, separators=(",", ":"), ensure_ascii=False).encode()
        trusted = anchors(proof)
        tried = 0
        for at, byte in enumerate(raw):
            spare = not FULL and len(raw) > 300 and at % 64
            if spare and at % 4 and set(raw[at - 1 : at + 1]) <= DIGITS:
                continue
            for other in (byte ^ 1, byte ^ 0x20) if spare else range(256):
                if other == byte:
                    continue
                try:
                    value = json.loads(raw[:at] + bytes([other]) + raw[at + 1 :])
                except ValueError:
                    continue
                if value == proof:
                    continue
                tried += 1
                for each in trusted:
                    assert not verify(value, each), (at, other)
                    assert not independent.verified(value, each), (at, other)
        assert tried > len(raw)

    @pytest.mark.files
    @pytest.mark.promise("proof.exact")
    @pytest.mark.parametrize("form", spread(list(FORMS), every=2))
    def test_both_verifiers_agree_on_proofs_with_changed_parts(self, proofs: dict[str, Proof], form: str) -> None:
        proof = proofs[form]
        values = [*JUNK, *(part for other in proofs.values() for part in (other, *other.values()))]
        ways = list(parts(proof))
        rng = random.Random(form)
        mutants: list[Any] = [{**proof, "more": 1}]
        for way in ways:
            part = part_at(proof, way)
            others = [DELETED, *values]
            if isinstance(part, list):
                others += [part[::-1], [*part, "0" * 64], part + part, part[1:], part[:-1]]
            elif isinstance(part, dict):
                others.append({**part, "more": 1})
            elif isinstance(part, str):
                others += [part.upper(), part + "0", part + "00", "0" + part, part[:-1], part[:-2], part + "\n"]
            elif type(part) is int:
                others += [part + 1, part - 1, -part, float(part), str(part), bool(part), part + 2**64]
            mutants += [replaced(proof, way, other) for other in others]
        for _ in range(some(3000)):  # two changes at once
            first, second = rng.choice(ways), rng.choice(ways)
            if first != second[: len(first)] and second != first[: len(second)]:
                once = replaced(proof, first, rng.choice(values))
                mutants.append(replaced(once, second, rng.choice(values)))
        # What is proved with the log is proved without it, too.
        valid = [*proofs.values(), {key: value for key, value in proof.items() if key != "log"}]
        for mutant in mutants:
            proved = [both(mutant, trusted) for trusted in anchors(proof)]
            assert not any(proved) or any(is_exactly(mutant, each) for each in valid), mutant

    def test_any_json_value_is_refused_and_none_raises(self) -> None:
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        long = {"proof": "recollect/presence/1", "id": "a" * 10**6, "root": "0" * 64, "levels": "1" * 10**6}
        for proof in (*JUNK, deep, {"proof": deep}, {"proof": "recollect/presence/2"}, long):
            assert not verify(proof, "0" * 64)
        for levels in ("1" * 257, "2" * 64, "10", "0"):
            assert not verify({**long, "levels": levels, "siblings": [], "version": "0" * 64, "erased": True}, "0" * 64)
        deeply = {
            "proof": "recollect/absence/2",
            "id": "a",
            "root": "0" * 64,
            "levels": "",
            "siblings": [],
            "leaf": deep,
        }
        assert not verify(deeply, "0" * 64)

    def test_a_way_that_is_longer_than_a_path_is_refused(self) -> None:
        proof = {"proof": "recollect/presence/1", "id": "a", "root": "0" * 64, "version": "0" * 64, "erased": True}
        for levels in (256, 257, 1000):
            assert not both({**proof, "levels": "1" * levels, "siblings": ["1" * 64] * levels}, "0" * 64)

    @pytest.mark.files
    def test_an_older_log_without_entries_has_the_hash_of_none(self, proofs: dict[str, Proof]) -> None:
        proof = proofs["consistency with nothing"]
        head, new = head_of(0, bytes(32)).hex(), proof["new"]["head"]
        wrong = {**proof, "old": {"size": 0, "hash": "0" * 64, "head": head}}
        assert not both(wrong, new)
        assert not both(wrong, head, new)

    @pytest.mark.files
    def test_what_is_no_root_is_an_error(self, proofs: dict[str, Proof]) -> None:
        wrong: list[Any] = [None, "", "0" * 63, "0" * 66, "A" * 64, b"", b"r" * 31, 5, [], ["0" * 64] * 3, {}]
        wrong += [object(), 10**5000, ("0" * 64, None), recollect.NamespaceHead(1, "0" * 64, "0" * 64)]
        for proof in (proofs["presence"], proofs["consistency"], None):
            for root in wrong:
                with pytest.raises(InvalidArgumentError, match="must be a root or the head of a log"):
                    verify(proof, root)
        assert verify(proofs["presence"], bytes.fromhex(proofs["presence"]["root"]))
        assert not verify(proofs["presence"], (proofs["presence"]["root"],) * 2)

    @pytest.mark.files
    def test_a_proof_of_one_thing_proves_no_other(self, proofs: dict[str, Proof]) -> None:
        trusted = {each for proof in proofs.values() for each in anchors(proof)}
        for proof in proofs.values():
            assert {each for each in trusted if both(proof, each)} == set(anchors(proof))


class TestDishonestRoots:
    """The author of a root may bind anything to it. What a proof states is nevertheless so."""

    def root_over(self, path: bytes, node: bytes, siblings: list[bytes]) -> str:
        bits = f"{int.from_bytes(path):0256b}"[: len(siblings)]
        for bit, sibling in reversed(list(zip(bits, siblings, strict=True))):
            node = node_hash(sibling, node) if bit == "1" else node_hash(node, sibling)
        return node.hex()

    def proof(self, kind: str, siblings: list[bytes], **more: Any) -> Proof:
        levels = "".join("0" if each == EMPTY else "1" for each in siblings)
        listed = [each.hex() for each in siblings if each != EMPTY]
        if kind == "absence":
            more["path"] = path_of("a").hex()
        return {"proof": f"recollect/{kind}/1", "id": "a", "levels": levels, "siblings": listed, **more}

    def test_the_content_of_another_id_is_refused(self) -> None:
        for record_id, proved in (("a", True), ("b", False), ("ab", False)):
            payload = recollect.Record(id=record_id, content="x").to_bytes()
            version = salted_version(b"s" * 32, payload)
            root = self.root_over(path_of("a"), leaf_hash_at(path_of("a"), version), [])
            content = {"version": version.hex(), "salt": (b"s" * 32).hex(), "payload": payload.hex()}
            assert both(self.proof("presence", [], root=root, **content), root) is proved

    def test_a_leaf_in_the_wrong_place_is_no_proof_of_absence(self) -> None:
        own = path_of("a")
        siblings = [b"1" * 32, b"2" * 32, b"3" * 32]
        for bit in range(4):
            other = bytearray(own)
            other[0] ^= 0x80 >> bit
            root = self.root_over(own, leaf_hash_at(bytes(other), b"v" * 32), siblings)
            leaf = {"path": other.hex(), "version": (b"v" * 32).hex()}
            assert both(self.proof("absence", siblings, root=root, leaf=leaf), root) is (bit == 3)

    def test_its_own_leaf_is_no_proof_of_absence(self) -> None:
        root = leaf_hash_at(path_of("a"), b"v" * 32).hex()
        leaf = {"path": path_of("a").hex(), "version": (b"v" * 32).hex()}
        assert not both(self.proof("absence", [], root=root, leaf=leaf), root)
        assert both(self.proof("presence", [], root=root, version=leaf["version"], erased=True), root)

    def test_a_leaf_that_is_not_pulled_up_is_refused(self) -> None:
        leaf = leaf_hash_at(path_of("a"), b"v" * 32)
        for siblings in ([EMPTY], [b"1" * 32, EMPTY], [EMPTY, b"1" * 32]):
            root = self.root_over(path_of("a"), leaf, siblings)
            proof = self.proof("presence", siblings, root=root, version=(b"v" * 32).hex(), erased=True)
            assert both(proof, root) is (siblings[-1] != EMPTY)

    def test_an_empty_sibling_that_is_listed_is_refused(self) -> None:
        siblings = [EMPTY, b"1" * 32]
        root = self.root_over(path_of("a"), EMPTY, siblings)
        proof = self.proof("absence", siblings, root=root, leaf=None)
        assert both(proof, root)
        listed = {**proof, "levels": "11", "siblings": [EMPTY.hex(), *proof["siblings"]]}
        assert not both(listed, root)

    @pytest.mark.files
    def test_a_node_of_the_log_is_no_entry(self, proofs: dict[str, Proof]) -> None:
        """An inclusion path that ends one level too early or too late leads nowhere."""
        proof = proofs["of two parents"]
        for path in (proof["log"]["path"][1:], proof["log"]["path"][:-1], [*proof["log"]["path"], "0" * 64]):
            for size in range(1, 20):
                changed = {**proof, "log": {**proof["log"], "path": path, "size": size}}
                assert not both(changed, proof["log"]["head"])


class TestThePage:
    def test_its_vectors_are_those_of_both_verifiers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names: dict[str, Any] = {}
        monkeypatch.setattr("tests.docs.pages.exec", lambda code, _: exec(code, names), raising=False)
        run_python(REPOSITORY / "docs" / "proofs.md")
        for name in ("presence", "absence", "past"):
            assert both(names[name], names[name]["root"])
            assert both(names[name], names["log"])
        assert both(names["consistency"], names["log"])
        assert both(names["consistency"], names["consistency"]["old"]["head"], names["log"])
        assert both(names["merge"], names["merge"]["merge"]["log"]["head"])
        assert both(names["merge"], names["merge"]["merged"]["log"]["head"], names["merge"]["merge"]["log"]["head"])

    def test_the_independent_verifier_is_short_and_imports_nothing_of_the_package(self) -> None:
        text = Path(independent.__file__).read_text()
        assert len(text.splitlines()) < 190
        imports = {
            name.name.split(".")[0] if isinstance(node, ast.Import) else node.module
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in node.names
        }
        assert imports == {"re", "hashlib", "typing"}

    @pytest.mark.files
    def test_it_runs_on_its_own(self, proofs: dict[str, Proof]) -> None:
        code = "import json, sys, independent_verifier as own; print(own.verified(json.load(sys.stdin), sys.argv[1]))"
        for root, found in ((proofs["absence"]["root"], "True"), ("0" * 64, "False")):
            done = subprocess.run(
                [sys.executable, "-P", "-c", code, root],
                input=json.dumps(proofs["absence"]),
                text=True,
                stdout=subprocess.PIPE,
                env={"PYTHONPATH": str(Path(independent.__file__).parent)},
                check=True,
            )
            assert done.stdout.strip() == found

    @pytest.mark.files
    def test_what_is_no_hash_is_refused_by_both(self, proofs: dict[str, Proof]) -> None:
        for wrong in ("", "0" * 63, "0" * 65, "g" * 64, "A" * 64):
            for verifier in (verify, independent.verified):
                with pytest.raises(ValueError, match=r"\w"):
                    verifier(proofs["absence"], wrong)


@pytest.mark.files
class TestDamagedStores:
    def test_a_damaged_page_is_an_error_and_no_proof(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path) as memory:
            memory.remember_all({"content": f"fact {number}", "id": f"r{number}"} for number in range(100))
        connection = checksums.connect(str(path))
        connection.execute("UPDATE nodes SET body = (SELECT body FROM nodes WHERE place = 1)").fetchall()
        connection.close()
        with recollect.open(path) as memory, pytest.raises(DamagedStoreError):
            memory.prove("r7")

    def test_a_payload_of_another_version_is_an_error_and_no_proof(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path) as memory:
            filled(memory)
            versions = [each.after for each in memory.changes()[1].changes]
        connection = checksums.connect(str(path))
        payload = connection.execute("SELECT payload FROM versions WHERE hash = ?", (versions[0],)).fetchall()[0][0]
        connection.execute("UPDATE versions SET payload = ? WHERE hash = ?", (payload, versions[1])).fetchall()
        connection.close()
        with recollect.open(path) as memory:
            with pytest.raises(DamagedStoreError, match="does not lead to the root of commit 2"):
                memory.prove("coffee", at=2)
            assert both(memory.prove("tea", at=2), memory.head().log or "")

    def test_a_version_that_the_log_does_not_have_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path) as memory:
            filled(memory)
        connection = checksums.connect(str(path))
        connection.execute("UPDATE changes SET after = zeroblob(32) WHERE id = 'coffee'").fetchall()
        connection.close()
        with recollect.open(path) as memory, pytest.raises(DamagedStoreError):
            memory.prove("coffee", at=2)


class TestCommands:
    def run(self, *arguments: str, input: str | None = None) -> Any:  # noqa: A002 - its name in click
        return CliRunner().invoke(app, arguments, input=input)

    def test_a_proof_is_printed_and_verified_without_the_store(self, tmp_path: Path) -> None:
        store, proof = str(tmp_path / "a.db"), tmp_path / "proof.json"
        with recollect.open(store) as memory:
            filled(memory)
            root, log, consistency = memory.root, memory.head().log or "", memory.prove_log(2)
        printed = self.run("prove", "ana", "--db", store)
        assert printed.exit_code == 0
        proof.write_text(printed.output)
        for trusted, code in ((root, 0), (log, 0), ("0" * 64, 1)):
            assert self.run("verify", str(proof), "--root", trusted).exit_code == code
        assert "not proved" in self.run("verify", str(proof), "--root", "0" * 64).output
        assert json.loads(self.run("verify", str(proof), "--root", root, "--json").output) == {"proved": True}
        past = self.run("prove", "ana", "--at", "1", "--db", store).output
        assert self.run("verify", "-", "--root", log, input=past).exit_code == 0
        text, old = json.dumps(consistency), consistency["old"]["head"]
        assert self.run("verify", "-", "--root", log, input=text).exit_code == 0
        assert self.run("verify", "-", "--root", old, "--root", log, input=text).exit_code == 0
        assert self.run("verify", "-", "--root", log, "--root", old, input=text).exit_code == 1

    def test_what_is_no_proof_or_no_root_is_refused_in_one_line(self, tmp_path: Path) -> None:
        for text in ("", "{", '{"a": 1, "a": 1}', "[" * 100_000, "1" * 5000, "\xff"):
            result = self.run("verify", "-", "--root", "0" * 64, input=text)
            assert (result.exit_code, result.output.count("\n")) == (1, 1), text[:20]
            assert "error: proof" in result.output
        result = self.run("verify", "-", "--root", "root", input="{}")
        assert result.exit_code == 1
        assert "error: root must be" in result.output
        assert self.run("verify", str(tmp_path / "none.json"), "--root", "0" * 64).exit_code == 2
        assert self.run("verify", "-", input="{}").exit_code == 2
        result = self.run("prove", "ana", "--at", "9", "--db", str(tmp_path / "none.db"))
        assert result.exit_code == 1
