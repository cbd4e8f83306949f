"""Copies of a store that have merged older states of each other: they become equal, and no decision is lost."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.branches.devices import Device
from tests.examples import in_full

import recollect
from recollect.engine import meeting, merging
from recollect.errors import BranchInUseError, InvalidArgumentError, UnknownRecordError
from recollect.ledger.commits import Branch
from recollect.testing.loopback import core_of

pytestmark = pytest.mark.in_process


@pytest.fixture
def home(home: Device) -> Device:
    home.say("hello")
    return home


def take_older(home: Device, laptop: Device, **arguments: object) -> None:
    """Let each merge the state that the other one had before."""
    before = home.backup(), laptop.backup()
    home.take(before[1], device="laptop", **arguments)
    laptop.take(before[0], device="home", **arguments)


def take_all(*devices: Device) -> None:
    for device in devices:
        for other in devices:
            if other is not device:
                device.take(other)


def test_turns_that_both_have_added_are_numbered_alike(home: Device, laptop: Device) -> None:
    home.say("from home")
    laptop.say("from the laptop", "and more")
    home.take(laptop)
    laptop.take(home)
    assert home.said() == [(0, "hello"), (1, "from home"), (2, "from the laptop"), (3, "and more")]
    assert laptop.memory.root == home.memory.root


@pytest.mark.parametrize("later", ["home", "laptop"])
def test_turns_that_both_have_added_are_numbered_alike_after_merges_of_older_copies(
    home: Device, laptop: Device, later: str
) -> None:
    start = datetime(2026, 5, 1, tzinfo=UTC)
    home.say("h1", "h2", at=start + timedelta(hours=later == "home"))
    laptop.say("l1", "l2", "l3", at=start + timedelta(hours=later == "laptop"))
    take_older(home, laptop)
    assert [text for _, text in home.said()] == ["hello", "h1", "h2", "l1", "l2", "l3"]
    assert [text for _, text in laptop.said()] == ["hello", "l1", "l2", "l3", "h1", "h2"]
    take_all(home, laptop)
    texts = ["h1", "h2", "l1", "l2", "l3"] if later == "laptop" else ["l1", "l2", "l3", "h1", "h2"]
    assert [text for _, text in home.said()] == ["hello", *texts]
    assert len({position for position, _ in home.said()}) == 6
    assert home.memory.root == laptop.memory.root


def test_what_was_said_in_both_is_there_twice_whoever_merges_first(home: Device, laptop: Device) -> None:
    home.say("ok", "h2", at=datetime(2026, 5, 1, tzinfo=UTC))
    laptop.say("ok", "l2", at=datetime(2026, 5, 2, tzinfo=UTC))
    take_older(home, laptop)
    take_all(home, laptop, home)
    assert sorted(str(text) for _, text in home.said()) == ["h2", "hello", "l2", "ok", "ok"]
    assert len({position for position, _ in home.said()}) == 5
    assert home.memory.root == laptop.memory.root


@pytest.mark.parametrize("how", ["ours", "theirs", "by hand"])
def test_different_decisions_about_one_conflict_are_a_conflict(home: Device, laptop: Device, how: str) -> None:
    home.memory.update("seat", content="an aisle")
    laptop.memory.update("seat", content="any seat")
    if how == "by hand":
        before = home.backup(), laptop.backup()
        for device, other, name in ((home, before[1], "laptop"), (laptop, before[0], "home")):
            [done] = device.take(other, device=name)
            assert done.merged is not None
            assert device.memory.resolve_merge(done.merged, {"seat": "ours"})
    else:
        take_older(home, laptop, on_conflict=how)
    texts = {"an aisle", "any seat"}
    assert {home.texts()["seat"], laptop.texts()["seat"]} == texts
    [done] = home.take(laptop)
    assert done.merged is not None
    [conflict] = done.merged.conflicts
    assert (conflict.id, conflict.fields) == ("seat", ("content",))
    assert conflict.base is not None
    assert conflict.base.content == "Ana prefers window seats"
    home.memory.resolve_merge(done.merged, {"seat": "ours"})
    laptop.take(home)
    assert home.memory.root == laptop.memory.root
    assert home.texts()["seat"] in texts
    take_all(home, laptop)
    assert home.memory.seq == laptop.memory.seq


def test_a_decision_that_keeps_a_record_is_in_the_log(home: Device, laptop: Device) -> None:
    home.memory.update("seat", content="an aisle")
    laptop.memory.update("seat", content="any seat")
    laptop.memory.update("city", content="Ana lives in Oslo")
    home.take(laptop, on_conflict="ours")
    newest = home.memory.changes(newest_first=True, limit=1)[0]
    assert {each.id: each.cause for each in newest.changes} == {"seat": "kept", "city": "written"}
    [*_, last] = home.memory.history("seat")
    assert (last.cause, last.record is not None and last.record.content) == ("kept", "an aisle")
    assert home.memory.at(home.memory.seq).get("seat") == home.memory.get("seat")


def test_the_same_decision_of_both_is_no_conflict(home: Device, laptop: Device) -> None:
    home.memory.update("seat", content="an aisle")
    laptop.memory.update("seat", content="any seat")
    before = home.backup(), laptop.backup()
    home.take(before[1], device="laptop", on_conflict="ours")
    laptop.take(before[0], device="home", on_conflict="theirs")
    take_all(home, laptop)
    assert home.texts()["seat"] == laptop.texts()["seat"] == "an aisle"
    assert home.memory.root == laptop.memory.root


def test_a_removal_that_was_kept_meets_a_text_that_was_kept(home: Device, laptop: Device) -> None:
    home.memory.forget("seat")
    laptop.memory.update("seat", content="any seat")
    take_older(home, laptop, on_conflict="ours")
    assert ("seat" in home.texts(), laptop.texts()["seat"]) == (False, "any seat")
    [done] = home.take(laptop)
    assert done.merged is not None
    assert [each.id for each in done.merged.conflicts] == ["seat"]


def test_the_newest_change_counts_in_both(home: Device, laptop: Device) -> None:
    home.memory.update("seat", content="an aisle")
    laptop.memory.update("seat", content="any seat")
    take_older(home, laptop, on_conflict="newest")
    assert home.texts()["seat"] == laptop.texts()["seat"] == "any seat"
    take_all(home, laptop)
    assert home.memory.root == laptop.memory.root


def test_a_change_after_a_merge_of_older_copies_is_no_conflict(home: Device, laptop: Device) -> None:
    home.memory.update("city", content="Ana lives in Oslo")
    laptop.memory.update("seat", content="any seat")
    take_older(home, laptop)
    home.memory.update("seat", content="no seat")
    laptop.memory.forget("city")
    take_all(home, laptop)
    assert home.texts()["seat"] == laptop.texts()["seat"] == "no seat"
    assert "city" not in home.texts()
    assert home.memory.root == laptop.memory.root


def test_what_a_branch_has_merged_is_merged_with_it(home: Device) -> None:
    """In one store: main has merged a branch, and with it a second one, which main merges later."""
    memory = home.memory
    first, second = memory.branch("first"), memory.branch("second")
    second.update("seat", content="any seat")
    first.merge_branch("second")
    older = second.branch("older")
    second.remember("Cy sails", id="sail")
    memory.merge_branch("first")
    memory.forget("seat")
    older.remember("older", id="older")
    for name, taken in (("second", 1), ("older", 1)):
        merged = memory.merge_branch(name)
        assert (merged.taken, merged.conflicts) == (taken, ())
    assert "seat" not in home.texts()
    third = memory.branch("third", at=1)
    third.merge_branch("older")
    third.forget("seat")
    assert third.merge_branch("second").conflicts == ()
    assert third.get("seat") is None


def test_three_copies_that_merge_each_other_in_a_ring_agree(home: Device, laptop: Device) -> None:
    phone = home.copied("phone")
    laptop.memory.update("seat", content="any seat")
    phone.take(laptop)
    home.take(phone)
    home.memory.forget("seat")
    assert [each.merged for each in home.take(laptop)] == []
    assert "seat" not in home.texts()  # home has the change of the laptop from the phone, and has forgotten it since
    laptop.memory.remember("Cy sails", id="sail")
    home.take(laptop)
    assert "seat" not in home.texts()
    take_all(phone, laptop, home)
    take_all(phone, laptop, home)
    assert home.memory.root == laptop.memory.root == phone.memory.root
    seqs = [each.memory.seq for each in (home, laptop, phone)]
    take_all(phone, laptop, home)
    assert [each.memory.seq for each in (home, laptop, phone)] == seqs
    phone.memory.close()


def test_sparse_codes_of_one_number_are_kept_both_under_two(home: Device, laptop: Device) -> None:
    home.memory.sdr.store("a text of home")
    laptop.memory.sdr.store("a text of the laptop")
    [done] = home.take(laptop)
    assert done.merged is not None
    assert [(each.part, each.id) for each in done.merged.conflicts] == [("sdrs", "1")]
    home.memory.resolve_merge(done.merged, {("sdrs", "1"): "both"})
    laptop.take(home)
    for device in (home, laptop):
        assert {each["id"]: each["text"] for each in device.memory.sdr.texts()} == {
            1: "a text of home",
            2: "a text of the laptop",
        }
        assert [each["id"] for each in device.memory.sdr.query("text of the laptop")][:1] == [2]
        assert device.memory.sdr.store("a further one") == 3
    assert home.memory.check() == []


def test_sparse_codes_that_were_imported_without_their_counter_are_kept_both(home: Device, laptop: Device) -> None:
    for device in (home, laptop):
        texts = device.memory._part("sdrs")
        texts.remember(f"a text of {device.path.stem}", id="1", kind="sdr")
    [done] = home.take(laptop)
    assert done.merged is not None
    home.memory.resolve_merge(done.merged, {each.key: "both" for each in done.merged.conflicts})
    texts_of_both = {each["id"]: each["text"] for each in home.memory.sdr.texts()}
    assert texts_of_both == {1: "a text of home", 2: "a text of laptop"}
    assert home.memory.sdr.store("a further one") == 3


def test_a_term_or_a_key_cannot_be_both(home: Device, laptop: Device) -> None:
    for device in (home, laptop):
        device.memory.glossary.memorize("SDK", f"the kit of {device.path.stem}", category="", agent_id="a")
        device.memory.keyed.write("k", device.path.stem.encode())
    [done] = home.take(laptop)
    assert done.merged is not None
    for conflict in done.merged.conflicts:
        with pytest.raises(InvalidArgumentError, match="only one can have its name"):
            home.memory.resolve_merge(done.merged, {(conflict.part, conflict.id): "both"})
    assert home.memory.keyed.read("k") == b"home"
    assert home.memory.resolve_merge(done.merged, {(each.part, each.id): "theirs" for each in done.merged.conflicts})
    assert home.memory.keyed.read("k") == b"laptop"


def test_control_a_merge_that_goes_by_the_newer_state_alone_loses_a_decision(
    home: Device, laptop: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newer(*arguments: Any) -> meeting.Meeting:
        found = meeting.meeting_of(*arguments)
        return found._replace(bases=found.bases[-1:])

    monkeypatch.setattr(merging, "meeting_of", newer)
    home.memory.update("seat", content="an aisle")
    laptop.memory.update("seat", content="any seat")
    take_older(home, laptop, on_conflict="ours")
    [done] = home.take(laptop)
    assert done.merged is not None
    assert (done.merged.conflicts, home.texts()["seat"]) == ((), "any seat")


def test_a_third_copy_knows_what_another_one_has_merged(home: Device, laptop: Device) -> None:
    """Home has what the laptop has changed from the phone, and forgets it; what the laptop has since is new."""
    phone = home.copied("phone")
    laptop.memory.update("seat", content="any seat")
    phone.take(laptop)
    home.take(phone)
    home.memory.forget("seat")
    laptop.memory.remember("Cy sails", id="sail")
    [done] = home.take(laptop)
    assert done.merged is not None
    assert (done.merged.taken, done.merged.conflicts) == (1, ())
    assert "seat" not in home.texts()
    laptop.take(home)
    phone.take(laptop)
    assert home.memory.root == laptop.memory.root == phone.memory.root
    phone.memory.close()


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=in_full) for seed in range(4, 400))])
def test_copies_that_merge_each_other_in_any_order_agree_at_last(home: Device, seed: int) -> None:
    rng = random.Random(seed)
    devices = [home, *(home.copied(name) for name in ("laptop", "phone")[: 1 + seed % 2])]
    copies: list[tuple[Device, Path]] = []
    for step in range(30):
        device = rng.choice(devices)
        number = rng.randrange(6)
        match rng.choice(["remember", "remember", "forget", "say", "tag", "copy", "merge", "merge"]):
            case "remember":
                device.memory.remember(f"{device.path.stem} {step}", id=f"r{number}", if_exists="update")
            case "forget":
                device.memory.forget(f"r{number}", missing="ignore")
            case "tag":
                if device.memory.get("city") is not None:
                    device.memory.update("city", tags=[f"{device.path.stem}{number}"])
            case "say":
                device.say(f"{device.path.stem} says {step}")
            case "copy":
                copies.append((device, device.backup()))
            case "merge":
                others = [each for each in devices if each is not device]
                other = rng.choice(others)
                older = [path for owner, path in copies if owner is other]
                path = rng.choice([*older, other.path])
                device.take(path, device=other.path.stem, on_conflict="newest")
    for _ in range(2 * len(devices)):
        before = [each.memory.seq for each in devices]
        for device in devices:
            for other in devices:
                if other is not device:
                    device.take(other, on_conflict="newest")
        if before == [each.memory.seq for each in devices]:
            break
    else:
        pytest.fail("they still change each other")
    assert len({each.memory.root for each in devices}) == 1
    positions = [position for position, _ in home.said()]
    assert len(set(positions)) == len(positions)
    for device in devices[1:]:
        device.memory.close()


@pytest.mark.parametrize("how", ["none", "erase", "drop"])
def test_a_decision_is_not_lost_when_the_branch_of_a_copy_was_replaced(home: Device, laptop: Device, how: str) -> None:
    """A record that was stored after the copies parted, and was forgotten in one: as it was when they parted."""
    home.memory.remember("old", id="z")
    home.memory.remember("B", id="new")
    laptop.memory.remember("x", id="x")
    for _ in range(2):
        home.take(laptop)
        laptop.take(home)
    home.memory.forget("new")
    laptop.memory.update("new", content="C")
    take_older(home, laptop, on_conflict="ours")
    if how == "erase":
        home.memory.erase("z")
    if how == "drop":
        home.memory.drop_branch("laptop")
        laptop.memory.drop_branch("home")
    [done] = home.take(laptop)
    assert done.merged is not None
    assert [each.id for each in done.merged.conflicts] == ["new"]
    [done] = laptop.take(home)
    assert done.merged is not None
    assert [each.id for each in done.merged.conflicts] == ["new"]
    assert laptop.texts()["new"] == "C"


def test_a_base_that_was_thinned_is_no_new_record(home: Device) -> None:
    memory = home.memory
    memory.remember("Ana base", id="r")
    memory.remember("a turn", id="t", kind="conversation", conversation="d")
    branch = memory.branch("what-if")
    branch.update("r", content="Ana theirs")
    branch.update("t", content="turn theirs")
    memory.forget("r")
    memory.update("t", content="turn ours")
    with core_of(memory).store.write(Branch("default")) as transaction:
        base = transaction.versions_at(Branch("default"), ["r", "t"], branch.branches()[-1].base_seq)
        for record_id, version in base.items():
            assert version is not None
            transaction.thin(Branch("default"), record_id, [version])
    merged = memory.merge_branch("what-if")
    assert [each.id for each in merged.conflicts] == ["r", "t"]
    assert memory.get("r") is None


class TestPositions:
    def test_turns_of_others_with_the_same_name_are_another_conversation(self, home: Device) -> None:
        memory = home.memory
        for number in range(3):
            memory.remember(f"ana {number}", kind="conversation", conversation="d", user="ana", position=number)
        branch = memory.branch("what-if")
        for number in range(2):
            branch.remember(f"bo {number}", kind="conversation", conversation="d", user="bo", position=number)
        memory.remember("ana 3", kind="conversation", conversation="d", user="ana", position=3)
        memory.merge_branch("what-if")
        for user, count in (("ana", 4), ("bo", 2)):
            turns = memory.find(f"conversation=d and user={user}", order="position")
            assert [each.position for each in turns] == list(range(count))

    def test_turns_that_share_a_position_on_purpose_keep_it(self, home: Device) -> None:
        memory = home.memory
        for text, position in (("t10", 10), ("t20", 20), ("t20b", 20), ("t30", 30)):
            memory.remember(text, kind="conversation", conversation="d", position=position)
        branch = memory.branch("what-if")
        branch.remember("t15", kind="conversation", conversation="d", position=15)
        memory.merge_branch("what-if")
        turns = memory.find("conversation=d", order="position")
        assert [(each.position, each.content) for each in turns] == [
            (10, "t10"),
            (15, "t15"),
            (20, "t20"),
            (20, "t20b"),
            (30, "t30"),
        ]

    def test_positions_may_be_as_great_as_any(self, home: Device) -> None:
        memory = home.memory
        memory.remember("last", kind="conversation", conversation="d", position=2**63 - 1)
        branch = memory.branch("what-if")
        branch.remember("next", kind="conversation", conversation="d", position=1)
        memory.remember("one more", kind="conversation", conversation="d", position=2)
        assert memory.merge_branch("what-if").taken == 1
        assert memory.check() == []


def test_a_record_that_was_kept_is_no_event_and_nothing_to_take_back(home: Device, laptop: Device) -> None:
    for device in (home, laptop):
        device.memory.keyed.write("k", device.path.stem.encode())
        device.memory.update("seat", content=device.path.stem)
    stats, events = home.memory.keyed.stats(), list(home.memory.keyed.events(0))
    home.take(laptop, on_conflict="ours")
    assert home.memory.keyed.stats()["writes"] == stats["writes"]
    assert list(home.memory.keyed.events(0)) == events
    seq = home.memory.seq
    home.memory.update("seat", content="later")
    reverted = home.memory.revert(seq)
    assert (reverted.conflicts, reverted.changed) == ((), 0)


class TestOutlines:
    BOATS = "* Boats\n** Mend\n*** Sub\n* Houses\n"

    def ingest(self, memory: recollect.Memory, text: str) -> None:
        memory.outline.ingest_text(text, "org", source="boats.org")

    def titles(self, memory: recollect.Memory) -> list[str]:
        """Return the headlines of all documents, in order."""
        texts = [memory.outline.to_text(each.id, "org") for each in memory.outline.roots()]
        return [line for text in texts for line in text.splitlines() if line.startswith("*")]

    @pytest.mark.parametrize("older", [False, True])
    @pytest.mark.parametrize("removed_at_home", [False, True])
    def test_a_headline_with_a_new_one_below_it_is_not_removed(
        self, home: Device, older: bool, removed_at_home: bool
    ) -> None:
        self.ingest(home.memory, self.BOATS)
        laptop = home.copied("laptop")
        removes, adds = (home, laptop) if removed_at_home else (laptop, home)
        self.ingest(removes.memory, "* Boats\n* Houses\n")
        self.ingest(adds.memory, self.BOATS.replace("*** Sub\n", "*** Sub\n*** New\n"))
        if older:
            take_older(home, laptop)
        take_all(home, laptop, home)
        assert self.titles(home.memory) == self.titles(laptop.memory) == ["* Boats", "** Mend", "*** New", "* Houses"]
        assert home.memory.root == laptop.memory.root
        laptop.memory.close()

    @pytest.mark.parametrize("older", [False, True])
    def test_headlines_that_were_moved_under_each_other_are_in_no_circle(self, home: Device, older: bool) -> None:
        a, b = (f"{{}} {name}\n:PROPERTIES:\n:ID: {name}\n:END:\n" for name in ("one", "two"))
        self.ingest(home.memory, a.format("*") + b.format("*"))
        laptop = home.copied("laptop")
        self.ingest(home.memory, a.format("*") + b.format("**"))
        self.ingest(laptop.memory, b.format("*") + a.format("**"))
        if older:
            take_older(home, laptop)
        take_all(home, laptop, home)
        assert {each.lstrip("* ") for each in self.titles(home.memory)} == {"one", "two"}
        assert self.titles(home.memory) == self.titles(laptop.memory)
        assert home.memory.root == laptop.memory.root
        laptop.memory.close()


def _anything(rng: random.Random, device: Device, others: list[Device], copies: list[tuple[Device, Path]]) -> None:
    """Do anything that a program does with a copy: write, erase, decide, and merge any state of another one."""
    memory, record_id = device.memory, f"r{rng.randrange(4)}"
    match rng.choice(["remember", "remember", "forget", "erase", "say", "ingest", "drop", "copy", "merge", "merge"]):
        case "remember":
            memory.remember(f"{device.path.stem} {rng.random()}", id=record_id, if_exists="update")
        case "forget":
            memory.forget(record_id, missing="ignore")
        case "erase":
            with suppress(UnknownRecordError):
                memory.erase(record_id, redact=rng.random() < 0.4)
        case "say":
            device.say(f"{device.path.stem} says {rng.random()}")
        case "ingest":
            nodes = rng.sample(range(5), rng.randint(1, 5))
            lines = (f"{'*' * rng.randint(1, 3)} h{each}\n:PROPERTIES:\n:ID: n{each}\n:END:\n" for each in nodes)
            memory.outline.ingest_text("".join(lines), "org", source="p.org")
        case "drop":
            for branch in memory.branches()[::-1]:
                if branch.copy_of is not None and rng.random() < 0.5:
                    with suppress(BranchInUseError):
                        memory.drop_branch(branch.name)
        case "copy":
            copies.append((device, device.backup()))
        case "merge":
            other = rng.choice(others)
            path = rng.choice([*(path for owner, path in copies if owner is other), other.path])
            rule = rng.choice(["ours", "theirs", "newest", "list"])
            device.take(path, device=other.path.stem, on_conflict=rule)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=in_full) for seed in range(3, 200))])
def test_copies_that_decide_erase_and_drop_agree_at_last(home: Device, seed: int) -> None:
    rng = random.Random(seed)
    devices = [home, *(home.copied(name) for name in ("laptop", "phone")[: 1 + seed % 2])]
    copies: list[tuple[Device, Path]] = []
    for _ in range(26):
        device = rng.choice(devices)
        _anything(rng, device, [each for each in devices if each is not device], copies)
    for _ in range(3):
        for device in devices[1:]:
            home.take(device, on_conflict="ours")
        for device in devices[1:]:
            device.take(home, on_conflict="theirs")
    assert len({each.memory.root for each in devices}) == 1
    positions = [position for position, _ in home.said()]
    assert len(set(positions)) == len(positions)
    for device in devices[1:]:
        device.memory.close()
