"""Two copies of a store that went on in both places are merged into one, and nothing is lost."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.branches.devices import Device
from tests.branches.test_proofs_of_merges import both
from tests.examples import in_full

import recollect
from recollect.engine import joining, known_erasures
from recollect.errors import (
    BranchExistsError,
    DamagedStoreError,
    InvalidArgumentError,
    OriginError,
    RecollectError,
    ScopeError,
    StoreError,
    StoreFullError,
    UnsupportedError,
    WrongSecretError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.verifying import verify
from recollect.operations import Update
from recollect.records.record import Record
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.checksums import connect
from recollect.testing.faults import FaultyStore
from recollect.testing.machine import memory_on

pytestmark = pytest.mark.in_process


def test_what_both_have_stored_is_in_both(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    laptop.memory.remember("Cy sails", id="sail")
    laptop.memory.update("city", content="Ana lives in Oslo")
    [done] = home.take(laptop)
    assert (done.branch, done.into, done.commits, done.erased) == ("laptop", "main", 2, 0)
    assert done.merged is not None
    assert (done.merged.taken, done.merged.conflicts) == (2, ())
    assert home.texts() == {
        "seat": "Ana prefers window seats",
        "city": "Ana lives in Oslo",
        "tea": "Bo likes tea",
        "sail": "Cy sails",
    }
    assert [each.copy_of for each in home.memory.branches()] == [None, "main"]
    assert home.entries("laptop") == laptop.entries("main")  # what was proved of the copy stays true here


def test_copies_that_merge_each_other_become_equal_and_then_write_nothing(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    home.memory.keyed.write("k", b"home")
    laptop.memory.glossary.memorize("EBITDA", "earnings before all", "finance", agent_id="bot")
    laptop.memory.remember("Cy sails", id="sail")
    home.take(laptop)
    [done] = laptop.take(home)
    assert done.branch == "home"
    assert home.texts() == laptop.texts()
    assert home.memory.root == laptop.memory.root
    assert laptop.memory.keyed.read("k") == b"home"
    assert "EBITDA" in str(home.memory.glossary.recall("what is EBITDA?", agent_id="bot"))
    seqs = home.memory.seq, laptop.memory.seq
    for _ in range(2):
        assert not any(each.merged for each in home.take(laptop))
        assert not any(each.merged for each in laptop.take(home))
    assert (home.memory.seq, laptop.memory.seq) == seqs


def test_a_copy_that_was_not_written_goes_on_with_the_same_commits(home: Device, laptop: Device) -> None:
    laptop.memory.remember("Cy sails", id="sail")
    laptop.memory.snapshot("at sea")
    laptop.memory.namespace("work").remember("Di swims", id="swim")
    laptop.memory.branch("what-if").remember("El sings", id="sing")
    done = home.take(laptop)
    assert [(each.namespace, each.branch, each.merged) for each in done] == [
        ("default", "main", None),
        ("default", "what-if", None),
        ("work", "main", None),
    ]
    assert home.memory.root == laptop.memory.root
    assert home.memory.head() == laptop.memory.head()
    assert home.texts("what-if") == laptop.texts("what-if")
    assert home.texts(namespace="work") == {"swim": "Di swims"}
    assert [each.name for each in home.memory.snapshots()] == ["at sea"]
    assert home.take(laptop) == []
    home.memory.remember("Fi flies", id="fly")
    [back] = laptop.take(home)
    assert (back.branch, laptop.memory.root) == ("main", home.memory.root)


def test_later_commits_extend_the_branch_of_the_copy(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    for number in range(3):
        laptop.memory.remember(f"note {number}", id=f"n{number}")
        [done] = home.take(laptop)
        assert (done.branch, done.commits) == ("laptop", 1)
        assert home.texts()[f"n{number}"] == f"note {number}"
    laptop.memory.update("n0", content="note 0 again")
    home.memory.remember("Gu digs", id="dig")
    home.take(laptop)
    assert home.texts()["n0"] == "note 0 again"  # what was merged before is no conflict
    assert [each.name for each in home.memory.branches()] == ["main", "laptop"]


def test_conflicts_are_listed_and_then_decided(home: Device, laptop: Device) -> None:
    home.memory.update("seat", content="Ana takes any seat")
    laptop.memory.update("seat", content="Ana prefers aisle seats")
    [done] = home.take(laptop)
    assert done.merged is not None
    assert [each.id for each in done.merged.conflicts] == ["seat"]
    assert home.texts()["seat"] == "Ana takes any seat"
    home.memory.resolve_merge(done.merged, {"seat": "theirs"})
    assert home.texts()["seat"] == "Ana prefers aisle seats"
    assert not any(each.merged for each in home.take(laptop))
    home.take(laptop)
    laptop.take(home)
    assert home.texts() == laptop.texts()


def test_a_rule_decides_conflicts(home: Device, laptop: Device) -> None:
    home.memory.update("seat", content="Ana takes any seat")
    laptop.memory.update("seat", content="Ana prefers aisle seats")
    home.take(laptop, on_conflict="newest")
    assert home.texts()["seat"] == "Ana prefers aisle seats"


def test_branches_of_both_are_merged_into_those_of_their_name(home: Device) -> None:
    home.memory.branch("plan").remember("Plan A", id="plan")
    laptop = home.copied("laptop")
    home.memory.on("plan").remember("by train", id="train")
    laptop.memory.on("plan").remember("by boat", id="boat")
    laptop.memory.remember("Cy sails", id="sail")
    home.memory.remember("Bo likes tea", id="tea")
    done = {each.into: each for each in home.take(laptop)}
    assert {name: each.branch for name, each in done.items()} == {"main": "laptop", "plan": "plan@laptop"}
    assert home.texts("plan").keys() == {"seat", "city", "plan", "train", "boat"}
    home.memory.drop_branch("plan@laptop")
    home.memory.drop_branch("plan")
    assert [each.into for each in home.take(laptop)] == ["plan"]
    with pytest.raises(BranchExistsError):
        home.memory.branch("plan")
    laptop.memory.close()


def test_a_branch_that_was_dropped_unchanged_stays_dropped(home: Device) -> None:
    home.memory.branch("plan").remember("Plan A", id="plan")
    laptop = home.copied("laptop")
    home.memory.drop_branch("plan")
    assert home.take(laptop) == []
    laptop.memory.on("plan").remember("Plan B", id="b")
    [done] = home.take(laptop)
    assert (done.branch, done.into, done.merged) == ("plan@laptop", "plan", None)
    assert home.texts("plan@laptop") == laptop.texts("plan")
    laptop.memory.close()


def test_a_merge_of_a_copy_is_proved_by_another_implementation(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    laptop.memory.remember("Cy sails", id="sail")
    published = laptop.memory.head().log or ""
    [done] = home.take(laptop)
    assert done.merged is not None
    assert done.merged.seq is not None
    proof = home.memory.prove_merge(done.merged.seq)
    assert both(proof, home.memory.head().log or "")
    assert both(proof, published, home.memory.head().log or "")
    assert home.memory.on("laptop").head().log == published
    assert verify(home.memory.on("laptop").prove("sail"), laptop.memory.root)


# Erasures

SECRET = "Ana's PIN is xyzzyplugh"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[[], tuple[Device, Device]]]:
    """Two copies that have a secret, and have both gone on."""
    opened: list[Device] = []

    def make() -> tuple[Device, Device]:
        (tmp_path / "home").mkdir()
        first = Device(tmp_path / "home" / "home.db")
        first.memory.remember(SECRET, id="pin", user="ana")
        first.memory.remember("Bo likes tea", id="tea")
        other = first.copied("laptop")
        opened.extend([first, other])
        first.memory.remember("Di swims", id="swim")
        other.memory.remember("Cy sails", id="sail")
        return first, other

    yield make
    for each in opened:
        each.memory.close()


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_what_the_copy_has_erased_is_erased_here(
    pair: Callable[[], tuple[Device, Device]], redact: bool, taken: bool
) -> None:
    home, laptop = pair()
    if taken:
        home.take(laptop)
    home.memory.update("pin", content=SECRET + "2")
    home.memory.branch("what-if").update("pin", content=SECRET + "3")
    laptop.memory.erase("pin", redact=redact)
    done = home.take(laptop)[0]
    assert done.erased == 1
    assert "pin" not in home.texts()
    assert "pin" not in home.texts("what-if")
    assert not home.has("xyzzyplugh")
    names = {change.id for commit in home.memory.changes() for change in commit.changes}
    assert ("pin" in names) == (not redact)
    assert home.take(laptop) == []
    laptop.take(home)
    assert laptop.texts() == home.texts()
    assert home.take(laptop)[0].branch == "laptop"  # its log is still the one of the copy


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("taken", [False, True])
def test_what_was_erased_here_does_not_come_back(
    pair: Callable[[], tuple[Device, Device]], redact: bool, taken: bool
) -> None:
    home, laptop = pair()
    if taken:
        home.take(laptop)
    home.memory.erase("pin", redact=redact)
    laptop.memory.execute(Update(id="pin", changes={"content": SECRET + "2"}), reason="xyzzyplugh")
    laptop.memory.remember("Fi flies", id="fly")
    home.take(laptop)
    for each in home.memory.branches():
        assert "pin" not in home.texts(each.name)
    assert home.texts()["fly"] == "Fi flies"
    assert not home.has("xyzzyplugh2")
    if redact:
        assert not home.has("xyzzyplugh")
        assert "pin" not in {change.id for commit in home.memory.changes() for change in commit.changes}
    laptop.take(home)
    assert laptop.texts() == home.texts()
    assert not laptop.has("xyzzyplugh2")
    laptop.memory.remember("Gu digs", id="dig")
    home.take(laptop)
    laptop.take(home)
    assert home.texts() == laptop.texts()
    assert home.memory.root == laptop.memory.root


def test_control_without_the_erasures_of_this_store_it_comes_back(
    pair: Callable[[], tuple[Device, Device]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = known_erasures.erasures_of_both
    monkeypatch.setattr(joining, "erasures_of_both", lambda *given: whole(*given)._replace(unknown={}))
    with pytest.raises((AssertionError, RecollectError)):
        test_what_was_erased_here_does_not_come_back(pair, redact=False, taken=False)


def test_what_was_stored_again_after_an_erasure_stays(pair: Callable[[], tuple[Device, Device]]) -> None:
    home, laptop = pair()
    laptop.memory.erase("pin")
    laptop.memory.remember("Ana has no PIN", id="pin")
    home.take(laptop)
    assert home.texts()["pin"] == "Ana has no PIN"
    laptop.memory.update("pin", content="Ana has no PIN any more")
    home.take(laptop)
    assert home.texts()["pin"] == "Ana has no PIN any more"
    laptop.take(home)
    assert laptop.texts() == home.texts()
    assert not home.has("xyzzyplugh")


@pytest.mark.parametrize("redact", [False, True])
def test_an_erasure_of_what_only_the_branch_of_the_copy_has_reaches_the_copy(
    home: Device, laptop: Device, redact: bool
) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    laptop.memory.remember(SECRET, id="pin")
    laptop.memory.forget("pin")
    home.take(laptop)
    assert home.memory.erase("pin", redact=redact).ids == ("pin",)
    laptop.take(home)
    assert not laptop.has(SECRET)
    laptop.memory.remember("stored again", id="pin")
    home.take(laptop)
    assert home.texts()["pin"] == "stored again"


def test_what_both_have_erased_and_stored_again_is_a_conflict(pair: Callable[[], tuple[Device, Device]]) -> None:
    home, laptop = pair()
    for device, text in ((home, "Ana has no PIN"), (laptop, "Ana uses a key")):
        device.memory.erase("pin")
        device.memory.remember(text, id="pin")
    [done] = home.take(laptop)
    assert done.merged is not None
    assert [each.id for each in done.merged.conflicts] == ["pin"]
    assert home.texts()["pin"] == "Ana has no PIN"
    assert home.texts("laptop")["pin"] == "Ana uses a key"


def test_an_erasure_reaches_a_third_copy_once(pair: Callable[[], tuple[Device, Device]]) -> None:
    """Copies merge with the one at home, as in a plan with a folder or a server."""
    home, laptop = pair()
    phone = home.copied("phone")
    phone.memory.remember("Hy hums", id="hum")
    laptop.memory.erase("pin")
    home.take(laptop)
    phone.take(home)
    assert not phone.has("xyzzyplugh")
    phone.memory.remember("Ana uses a phone", id="pin")
    home.take(phone)
    laptop.take(home)
    assert home.texts()["pin"] == laptop.texts()["pin"] == "Ana uses a phone"
    home.take(laptop)
    phone.take(home)
    assert home.texts() == laptop.texts() == phone.texts()
    phone.memory.close()


def test_many_erasures_between_merges_do_not_exhaust_the_branches(home: Device, laptop: Device) -> None:
    home.memory.remember("begin", id="begin")
    for number in range(20):
        home.memory.remember(f"secret {number}", id="secret")
        laptop.memory.remember(f"note {number}", id=f"n{number}")
        home.take(laptop)
        laptop.take(home)
        home.memory.erase("secret")
    laptop.memory.remember("end", id="end")
    home.take(laptop)
    laptop.take(home)
    assert home.texts() == laptop.texts()


# Any operations


def _erase(device: Device, record_id: str, redact: bool) -> bool:
    try:
        return bool(device.memory.erase(record_id, redact=redact).ids)
    except RecollectError:
        return False


class Model:
    """What records of two copies are merged to.

    Attributes:
        base: What both had when they were last merged.
        own: What each has.
        erased: What each has erased since.
    """

    def __init__(self, base: dict[str, str]) -> None:
        self.base = base
        self.own = [dict(base), dict(base)]
        self.erased: list[set[str]] = [set(), set()]

    def merged(self) -> dict[str, str]:
        """Return what the first one has after a merge of the second, whose changes count more."""
        ours, theirs = self.own
        out = {}
        for record_id in {*ours, *theirs}:
            erased = [record_id in each for each in self.erased]
            base = None if any(erased) else self.base.get(record_id)
            own, other = ours.get(record_id), theirs.get(record_id)
            if erased == [True, False]:
                other = None
            if erased == [False, True]:
                own = None
            result = own if other == base else other
            if result is not None:
                out[record_id] = result
        return out


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=in_full) for seed in range(1, 8))])
@pytest.mark.parametrize("rounds", [1, 5])
def test_copies_that_went_on_with_a_thousand_operations_merge_to_what_a_model_has(
    home: Device, seed: int, rounds: int
) -> None:
    rng = random.Random(f"{seed} {rounds}")
    for number in range(30):
        home.memory.remember(f"first {number}", id=f"r{number}")
    laptop = home.copied("laptop")
    model = Model(home.texts())
    for turn in range(rounds):
        for index, device in enumerate((home, laptop)):
            for number in range(1000 // rounds):
                record_id = f"r{rng.randrange(60)}"
                kind = rng.choices(["remember", "forget", "erase"], [6, 2, 1])[0]
                if kind == "remember":
                    text = f"{device.path.stem} {turn} {number}"
                    device.memory.remember(text, id=record_id, if_exists="update")
                    model.own[index][record_id] = text
                elif kind == "forget":
                    device.memory.forget(record_id, missing="ignore")
                    model.own[index].pop(record_id, None)
                elif _erase(device, record_id, rng.random() < 0.3):
                    model.own[index].pop(record_id, None)
                    model.erased[index].add(record_id)
        if turn % 2 == 0:
            home.memory.compact()  # the pages of the roots that both have are dropped
        home.take(laptop, on_conflict="theirs")
        expected = model.merged()
        assert home.texts() == expected
        laptop.take(home, on_conflict="theirs")
        assert laptop.texts() == expected
        assert laptop.memory.root == home.memory.root
        model = Model(expected)
    laptop.memory.close()


def test_copies_of_an_encrypted_store_are_merged(tmp_path: Path) -> None:
    secret = bytes(range(32))
    with recollect.open(tmp_path / "home.db", secret=secret, embedder="none") as home:
        home.remember("Ana lives in Bergen", id="city")
        home.backup(tmp_path / "laptop.db")
        home.remember("Bo likes tea", id="tea")
        with recollect.open(tmp_path / "laptop.db", secret=secret, embedder="none") as laptop:
            laptop.remember("Cy sails", id="sail")
            laptop.erase("city")
        with pytest.raises(WrongSecretError):
            recollect.merge_copy(home, tmp_path / "laptop.db", secret=bytes(32))
        recollect.merge_copy(home, tmp_path / "laptop.db", secret=secret)
        assert {each.id for each in home.find(limit=None)} == {"tea", "sail"}
        assert home.check() == []


def stored_texts(device: Device) -> set[str]:
    """All texts that a store has, of any version in any branch."""
    with device.memory._executor.core.store.read() as view:  # type: ignore[attr-defined]
        return {str(Record.load(payload).content) for payload in view.all_versions(Branch("default"))}


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=in_full) for seed in range(6, 200))])
def test_what_any_copy_has_erased_is_in_none_that_has_merged_it(home: Device, seed: int) -> None:
    """Copies write, branch, erase and merge each other in any order, all with one record."""
    rng = random.Random(seed)
    home.memory.remember("text 0", id="r")
    devices = [home, *(home.copied(name) for name in ("laptop", "phone"))]
    erased: dict[Path, set[str]] = {each.path: set() for each in devices}
    for number in range(1, 24):
        device, other = rng.sample(devices, 2)
        kind = rng.choices(["write", "forget", "branch", "elsewhere", "erase", "take"], [4, 1, 1, 2, 2, 5])[0]
        own = [each.name for each in device.memory.branches()[1:] if each.copy_of is None]
        if kind == "write" or (kind == "elsewhere" and own):
            memory = device.memory if kind == "write" else device.memory.on(rng.choice(own))
            memory.remember(f"text {number}", id="r", if_exists="update")
        elif kind == "forget":
            device.memory.forget("r", missing="ignore")
        elif kind == "branch":
            device.memory.branch(f"b{number}")
        elif kind == "erase":
            before = stored_texts(device)
            _erase(device, "r", rng.random() < 0.5)
            erased[device.path] |= before - stored_texts(device)
        else:
            try:
                device.take(other, on_conflict=rng.choice(["ours", "theirs", "list", "newest"]))
            except UnsupportedError as error:
                assert "redacted here" in str(error)
                continue
            assert not stored_texts(device) & (erased[device.path] | erased[other.path])
    for each in devices[1:]:
        each.memory.close()


def test_an_erasure_outlives_the_branch_in_which_it_was_made(home: Device) -> None:
    home.memory.branch("plan").remember(SECRET, id="pin")
    laptop = home.copied("laptop")
    home.memory.on("plan").erase("pin")
    home.memory.drop_branch("plan")
    laptop.memory.on("plan").remember("Cy sails", id="sail")
    home.take(laptop)
    assert not home.has(SECRET)
    laptop.take(home)
    assert not laptop.has(SECRET)
    laptop.memory.close()


def test_former_versions_that_were_thinned_are_no_erasure(home: Device, laptop: Device) -> None:
    home.memory.update("city", content="Ana lives in Oslo")
    home.memory.close()
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    home.memory = recollect.open(home.path, embedder="none", clock=lambda: tomorrow)
    home.memory.set_retention([], keep_versions="1h")
    home.memory.sweep()
    assert not home.has("Bergen")
    home.memory.branch("plan", at=2).remember("by train", id="train")
    laptop.memory.update("city", content="Ana lives in Rome")
    laptop.take(home, on_conflict="ours")
    assert laptop.texts()["city"] == "Ana lives in Rome"


def test_a_snapshot_that_was_moved_in_the_copy_is_moved_here(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    for number in range(2):
        laptop.memory.remember(f"note {number}")
        if number:
            laptop.memory.drop_snapshot("latest")
        laptop.memory.snapshot("latest")
        home.take(laptop)
        assert [each.seq for each in home.memory.on("laptop").snapshots()] == [laptop.memory.seq]


def test_a_branch_that_is_called_as_the_device_is_another_one(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    laptop.memory.remember("Cy sails", id="sail")
    home.take(laptop)
    laptop.memory.branch("laptop").remember("only in the branch", id="b")
    home.take(laptop)
    assert "b" not in home.texts()
    assert "b" not in home.texts("laptop")
    assert "b" in home.texts("laptop@laptop")


def test_a_merge_that_was_interrupted_after_the_commits_were_written_goes_on(home: Device, laptop: Device) -> None:
    home.memory.update("seat", content="Ana takes any seat")
    laptop.memory.update("seat", content="Ana prefers aisle seats")
    assert home.take(laptop)[0].merged is not None
    home.memory.erase("city")  # also in the branch of the copy
    [done] = home.take(laptop, on_conflict="theirs")
    assert (done.commits, bool(done.merged)) == (0, True)
    assert home.texts() == {"seat": "Ana prefers aisle seats"}


def test_what_was_merged_before_the_branch_of_the_copy_was_dropped_is_not_merged_again(
    home: Device, laptop: Device
) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    laptop.memory.remember("Cy sails", id="sail")
    home.take(laptop)
    home.memory.forget("sail")
    home.memory.drop_branch("laptop")
    laptop.memory.remember("Di swims", id="swim")
    home.take(laptop)
    assert home.texts().keys() == {"seat", "city", "tea", "swim"}


@pytest.mark.parametrize("both", [False, True])
def test_copies_of_a_store_of_format_3_are_merged_once_both_are_migrated(tmp_path: Path, both: bool) -> None:
    first = tmp_path / "first.db"
    shutil.copy(Path(__file__).parents[1] / "golden" / "format-3.db", first)
    with recollect.open(first, embedder="none") as memory:
        memory.keyed.write("old", b"state of before")
    paths = [tmp_path / name for name in ("home.db", "laptop.db")]
    for path in paths:
        shutil.copy(first, path)
    with recollect.open(paths[0], embedder="none") as memory, pytest.raises(UnsupportedError, match="format 3"):
        recollect.merge_copy(memory, paths[1])
    for path in paths:
        recollect.migrate(path)
    with recollect.open(paths[1], embedder="none") as memory:
        memory.keyed.write("berth", b"kept")
        memory.remember("Cy sails", id="sail")
    with recollect.open(paths[0], embedder="none") as memory:
        if both:
            memory.remember("Bo likes tea", id="tea")
        recollect.merge_copy(memory, paths[1])
        assert memory.get("sail") is not None
        assert (memory.keyed.read("old"), memory.keyed.read("berth")) == (b"state of before", b"kept")
        assert memory.check() == []


def test_with_a_quota_or_policies_commits_of_a_copy_are_examined(home: Device, laptop: Device) -> None:
    home.memory.set_quota(records=2)
    laptop.memory.remember("Cy sails", id="sail")
    laptop.memory.namespace("work").remember("Di swims", id="swim")
    with pytest.raises(recollect.errors.QuotaError):
        home.take(laptop)
    assert "sail" not in home.texts()
    assert home.texts(namespace="work") == {"swim": "Di swims"}  # the other namespaces are merged all the same


def test_branches_that_were_dropped_here_and_go_on_in_the_copy_do_not_exhaust_the_depth(home: Device) -> None:
    home.memory.branch("plan").remember("Plan A", id="plan")
    laptop = home.copied("laptop")
    home.memory.drop_branch("plan")
    home.memory.remember("Bo likes tea", id="tea")
    for number in range(20):
        laptop.memory.on("plan").remember(f"stop {number}", id="stop", if_exists="update")
        home.take(laptop)
        home.memory.erase("stop")
    laptop.memory.close()


# Errors


def test_what_is_no_copy_is_refused_and_changes_nothing(home: Device, tmp_path: Path) -> None:
    other = Device(tmp_path / "other.db")
    other.memory.remember("Cy sails")
    with pytest.raises(InvalidArgumentError, match="another id"):
        home.take(other)
    with pytest.raises(InvalidArgumentError, match="itself"):
        home.take(home)
    with pytest.raises(InvalidArgumentError, match="device"):
        home.take(other, device="main")
    other.memory.close()
    laptop = home.copied("laptop")
    laptop.memory.remember("Di swims")
    with pytest.raises(ScopeError):
        recollect.merge_copy(home.memory.scoped(user="ana"), laptop.path)
    with pytest.raises(UnsupportedError):
        recollect.merge_copy(home.memory.at(1), laptop.path)
    with pytest.raises(OriginError):
        recollect.merge_copy(home.memory.as_origin("tool"), laptop.path)
    assert home.memory.seq == 2
    assert [each.name for each in home.memory.branches()] == ["main"]
    laptop.memory.close()


def test_a_copy_that_is_corrupt_is_refused_and_changes_nothing(home: Device, laptop: Device) -> None:
    laptop.memory.remember("Cy sails", id="sail")
    for number in range(50):
        laptop.memory.remember(f"note {number} " + "x" * 500, id=f"n{number}")
    laptop.memory.close()
    whole = laptop.path.read_bytes()
    before = home.memory.head()
    refused = 0
    for size in range(0, len(whole), len(whole) // 12):  # it was read before all of it was there
        laptop.path.write_bytes(whole[:size])
        with pytest.raises(StoreError):
            home.take(laptop)
        refused += 1
    assert refused > 10
    assert home.memory.head() == before
    assert [each.name for each in home.memory.branches()] == ["main"]
    assert home.memory.check() == []
    laptop.path.write_bytes(whole)
    home.take(laptop)
    assert home.texts()["sail"] == "Cy sails"
    laptop.memory = recollect.open(laptop.path, embedder="none")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE versions SET payload = CAST(replace(CAST(payload AS TEXT), 'sails', 'lords') AS BLOB)",
        "UPDATE versions SET payload = NULL WHERE number = (SELECT max(number) FROM versions)",
        "UPDATE commits SET entry = randomblob(32) WHERE seq = 3",
        "UPDATE commits SET actor = 'someone' WHERE seq = 3",
        "UPDATE changes SET after = NULL WHERE seq = 3",
        "UPDATE changes SET id = 'other' WHERE seq = 3",
        "DELETE FROM changes WHERE seq = 3",
    ],
)
def test_a_copy_that_was_changed_by_hand_is_refused_and_changes_nothing(
    home: Device, laptop: Device, statement: str
) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    laptop.memory.remember("Cy sails", id="sail")
    laptop.memory.close()
    connection = connect(str(laptop.path))  # keeps the checksums
    connection.execute(statement).fetchall()
    connection.close()
    with pytest.raises(DamagedStoreError):
        home.take(laptop)
    assert [each.name for each in home.memory.branches()] == ["main"]
    assert home.memory.check() == []
    laptop.memory = recollect.open(laptop.path, embedder="none")


def test_a_quota_refuses_the_merge_and_nothing_is_lost(home: Device, laptop: Device) -> None:
    home.memory.set_quota(records=2)
    home.memory.update("city", content="Ana lives in Oslo")
    laptop.memory.remember("Cy sails", id="sail")
    with pytest.raises(recollect.errors.QuotaError):
        home.take(laptop)
    assert "sail" in home.texts("laptop")
    home.memory.set_quota()
    assert [bool(each.merged) for each in home.take(laptop)] == [True]
    assert "sail" in home.texts()


def test_a_join_that_failed_at_any_step_has_written_nothing_or_all(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    laptop.memory.erase("city")
    for number in range(3):
        laptop.memory.remember(f"note {number}", id=f"n{number}")
    home.memory.close()
    before = shutil.copy(home.path, home.path.with_suffix(".before"))
    names: set[str] = set()
    step = 0
    while True:
        step += 1
        shutil.copy(before, home.path)
        with closing(SqliteStore(home.path, create=False)) as store:
            faulty = FaultyStore(store, fail_at=step)
            try:
                recollect.merge_copy(memory_on(faulty), laptop.path)
            except StoreFullError:
                names.add(faulty.failed_in or "")
                with store.read() as view:
                    joined = [each.seq for each in view.continuing("default")]
                    assert joined in ([], [laptop.memory.seq])
                assert store.check() == []
                recollect.merge_copy(memory_on(store), laptop.path)
            else:
                assert step > 20
                break
            with store.read() as view:
                assert view.head(Branch("default", "laptop")).seq == laptop.memory.seq
                assert view.get(Branch("default"), "city") is None
            assert store.check() == []
    assert {"append", "put", "set_setting"} <= names
    home.memory = recollect.open(home.path, embedder="none")


_KILLED = """
import os, signal, sys
import recollect
from recollect.stores.sqlite.view import SqliteTransaction

path, copy, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
written, steps = SqliteTransaction._write, 0

def write(self, *arguments):
    global steps
    steps += 1
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return written(self, *arguments)

SqliteTransaction._write = write
with recollect.open(path, embedder="none") as memory:
    recollect.merge_copy(memory, copy)
print(steps)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@in_full
def test_a_merge_of_a_copy_that_was_killed_at_any_step_goes_on(home: Device, laptop: Device) -> None:
    home.memory.remember("Bo likes tea", id="tea")
    home.say("from home")
    laptop.memory.erase("city")
    laptop.say("from the laptop")
    laptop.memory.branch("what-if").remember("Cy sails", id="sail")
    home.memory.close()
    before = shutil.copy(home.path, home.path.with_suffix(".before"))

    def run(step: int) -> subprocess.CompletedProcess[str]:
        for each in home.path.parent.glob(f"{home.path.name}*"):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        shutil.copy(before, home.path)
        command = [sys.executable, "-c", _KILLED, str(home.path), str(laptop.path), str(step)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    steps = int(run(0).stdout)
    assert steps > 20
    with recollect.open(home.path, embedder="none") as memory:
        expected = memory.root, memory.on("what-if").root
    for step in range(1, steps + 1, 3):
        assert run(step).returncode == -signal.SIGKILL
        with recollect.open(home.path, embedder="none") as memory:
            assert memory.check() == []
            recollect.merge_copy(memory, laptop.path)
            assert memory.check() == []
            assert (memory.root, memory.on("what-if").root) == expected
    home.memory = recollect.open(home.path, embedder="none")


def test_a_copy_is_merged_into_a_memory_only(home: Device) -> None:
    memory: Any = None

    with pytest.raises(InvalidArgumentError, match="memory must be a memory"):
        recollect.merge_copy(memory, "nope.db")
