"""The validators on small traces made by hand: one that satisfies each, and one that breaks it in each way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import ImportFormatError
from recollect.sim.validators import SCENARIOS, Validation, validate_events, validate_trace

Line = dict[str, Any]


def trace(*lines: Line, byzantine: tuple[str, ...] = (), **limits: float) -> list[Line]:
    """A trace of these events, one a tick where they have no time, with a header and counted memory events."""
    out: list[Line] = [{"kind": "scenario", "ts": 0.0, "limits": limits, "byzantine": list(byzantine)}]
    writes = seq = 0
    for ts, line in enumerate(lines, 1):
        line = {"ts": float(ts), "size": 5, **line}
        if "key" in line:
            seq += 1
            line["seq"] = seq
        if line["kind"] == "written":
            writes += 1
            line["version"] = writes
        out.append(line)
    return out


def wrote(agent: str, key: str, **more: Any) -> Line:
    return {"kind": "written", "agent": agent, "key": key, **more}


def swapped(agent: str, key: str, was: int, **more: Any) -> Line:
    return wrote(agent, key, cas=True, was=was, **more)


def read(agent: str, key: str, version: int, **more: Any) -> Line:
    return {"kind": "read", "agent": agent, "key": key, "version": version, **more}


def hit(agent: str, key: str, version: int, rank: int = 1, score: float = 0.5) -> Line:
    return {"kind": "recalled", "agent": agent, "key": key, "version": version, "rank": rank, "score": score}


def gone(kind: str, key: str, **more: Any) -> Line:
    return {"kind": kind, "agent": "", "key": key, **more}


def verdicts(lines: list[Line]) -> dict[str, Validation]:
    """All memory validators: two scenarios have all of them together."""
    found = validate_events(lines, "memory_swarm") + validate_events(lines, "poisoned_recall")
    return {each.name: each for each in found}


def failing(lines: list[Line]) -> set[str]:
    return {name for name, each in verdicts(lines).items() if not each.passed}


def assert_fails(lines: list[Line], name: str, detail: str) -> None:
    """This validator fails, and no other."""
    assert failing(lines) == {name}
    assert detail in verdicts(lines)[name].detail


def sent(agent: str, to: str, message: str) -> Line:
    return {"kind": "send", "agent": agent, "to": to, "msg": message, "ts": 1.0}


def market(*messages: tuple[str, str, str]) -> list[Validation]:
    return validate_events([sent(*each) for each in messages], "marketplace")


class TestMarketplace:
    def test_it_has_three_validators_in_this_order(self) -> None:
        found = market(("b", "s", "buy:apple:50"), ("s", "b", "sold:apple:50"))
        assert [each.name for each in found] == [
            "marketplace_no_double_sell",
            "marketplace_all_responded",
            "marketplace_price_agreement",
        ]
        assert all(each.passed for each in found)

    def test_a_product_sold_to_two_buyers_is_named(self) -> None:
        found = market(("s", "b0", "sold:product-0:5"), ("s", "b1", "sold:product-0:5|sig:x"))[0]
        assert not found.passed
        assert "product-0" in found.detail

    def test_the_same_product_of_two_sellers_or_twice_to_one_buyer_is_fine(self) -> None:
        assert market(("s", "b0", "sold:p:5"), ("t", "b1", "sold:p:5"), ("s", "b0", "sold:p:5"))[0].passed

    @pytest.mark.parametrize("count", [1, 2])
    def test_unanswered_requests_are_counted(self, count: int) -> None:
        asked = [("b", f"s{number}", "buy:p:5") for number in range(count)]
        found = market(*asked, ("s0", "another", "sold:p:5"), ("another", "b", "reject:p:5"))[1]
        assert not found.passed
        assert found.detail.startswith(f"{count} unanswered buy request")

    def test_a_reject_is_an_answer(self) -> None:
        assert market(("b", "s", "buy:p:5"), ("s", "b", "reject:p:9"))[1].passed

    @pytest.mark.parametrize("suffix", ["", "|sig:abc", "|sig:a:b"])
    def test_a_price_that_was_not_offered_is_named(self, suffix: str) -> None:
        found = market(("b", "s", "buy:p:50" + suffix), ("s", "b", "sold:p:99" + suffix))[2]
        assert not found.passed
        assert "99" in found.detail

    def test_the_counter_of_a_reject_is_an_offer_and_only_before_the_sale(self) -> None:
        before = [("b", "s", "buy:p:50"), ("s", "b", "reject:p:40"), ("s", "b", "sold:p:40")]
        assert market(*before)[2].passed
        assert not market(before[0], before[2], before[1])[2].passed

    def test_a_sale_without_an_offer_says_so(self) -> None:
        for others in ([], [("another", "s", "buy:p:5")], [("b", "another", "buy:p:5")], [("b", "s", "buy:q:5")]):
            found = market(*others, ("s", "b", "sold:p:5"))[2]
            assert not found.passed
            assert "without an offer" in found.detail

    def test_only_the_last_suffix_is_cut_off(self) -> None:
        assert market(("b", "s", "buy:p|sig:q:50|sig:x"), ("s", "b", "sold:p|sig:q:50|sig:y"))[1].passed

    def test_other_events_and_messages_do_not_count(self) -> None:
        lines = [{**sent("b", "s", "buy:p:5"), "kind": kind} for kind in ("receive", "dropped", "broadcast")]
        lines += [{"kind": "send"}, {"kind": "send", "msg": 5}, sent("b", "s", "buy:p"), sent("b", "s", "hello"), {}]
        assert all(each.passed for each in validate_events(lines, "marketplace"))


class TestTraces:
    def test_an_unknown_scenario_has_no_validators(self, tmp_path: Path) -> None:
        assert validate_trace(tmp_path / "any", "unheard of") == []

    def test_a_trace_is_read_from_its_file(self, tmp_path: Path) -> None:
        path = tmp_path / "t.jsonl"
        lines = [sent("b", "s", "buy:p:5"), sent("s", "b", "sold:p:6")]
        path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
        assert [each.passed for each in validate_trace(path, "marketplace")] == [True, True, False]
        assert validate_trace(str(path), "marketplace") == validate_trace(path, "marketplace")

    @pytest.mark.parametrize("text", [b"{", b"[]\n", b'{"kind":"start"}\n5\n', b"\xff\xfe", b"[" * 100_000])
    def test_a_file_that_is_no_trace_is_an_error(self, tmp_path: Path, text: bytes) -> None:
        path = tmp_path / "t.jsonl"
        path.write_bytes(text)
        with pytest.raises(ImportFormatError):
            validate_trace(path, "marketplace")
        with pytest.raises(ImportFormatError, match="cannot be read"):
            validate_trace(tmp_path / "absent", "marketplace")

    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_missing_and_odd_fields_are_no_error(self, scenario: str) -> None:
        odd: list[Any] = [None, 5, "x", [], {}, True, -1, 1.5]
        lines: list[Line] = [{"kind": "scenario", "limits": 5, "byzantine": "x", "memory": "semantic"}]
        for kind in ("scenario", "start", "crash", "restart", "stop", "send", "receive", "written", "read", "recalled"):
            lines += [{"kind": kind}, *({"kind": kind, "agent": "a", "key": each, "version": each} for each in odd)]
        for other in ("forgotten", "evicted", "expired", "cas_failed", "unheard of", None):
            lines += [
                {"kind": other, "key": "k", name: each} for each in odd for name in ("ts", "size", "was", "score")
            ]
        validate_events(lines, scenario)

    def test_a_detail_names_the_first_faults_and_counts_the_others(self) -> None:
        lines = trace(wrote("a", "k"), *(read("a", "k", -1) for _ in range(5)))
        assert verdicts(lines)["no_lost_write"].detail.endswith("; and 2 more")


class TestNoLostWrite:
    def test_entries_that_were_removed_or_are_due_may_be_absent(self) -> None:
        removed = [
            line for kind in ("forgotten", "evicted", "expired") for line in (gone(kind, kind), read("a", kind, 0))
        ]
        lines = trace(*(wrote("a", kind) for kind in ("forgotten", "evicted", "expired", "new")), *removed)
        assert verdicts(lines)["no_lost_write"].passed
        due = trace(wrote("a", "k", ts=1), read("a", "k", 0, ts=11), read("b", "k", 0, ts=12), ttl=10)
        assert failing(due) == set()

    def test_a_write_that_is_not_found_is_lost(self) -> None:
        assert_fails(trace(wrote("a", "k"), read("b", "k", 0)), "no_lost_write", "found nothing at 'k'")
        early = trace(wrote("a", "k", ts=1), read("b", "k", 0, ts=10.5), ttl=10)
        assert_fails(early, "no_lost_write", "found nothing at 'k'")

    def test_a_write_of_which_only_older_ones_are_found_is_lost(self) -> None:
        begin = [wrote("a", "k"), wrote("a", "k"), read("b", "k", 1)]
        assert_fails(trace(*begin), "no_lost_write", "write 2 of 'k' was never found")
        assert_fails(trace(*begin, wrote("a", "k"), read("b", "k", 3)), "no_lost_write", "write 2")
        assert failing(trace(*begin, read("b", "k", 2))) == set()  # late, but not lost

    def test_a_value_that_was_not_written_is_a_fault(self) -> None:
        assert_fails(trace(wrote("a", "k"), read("b", "k", -1)), "no_lost_write", "that was never written")
        assert_fails(trace(read("b", "k", -1)), "no_lost_write", "that was never written")
        assert_fails(trace(wrote("a", "k"), hit("b", "k", -1)), "no_lost_write", "that was never written")


class TestMonotoneReads:
    def test_an_older_version_after_a_newer_one_is_a_fault_for_one_agent_only(self) -> None:
        begin = [wrote("a", "k"), wrote("a", "k"), read("a", "k", 2)]
        assert_fails(trace(*begin, read("a", "k", 1), read("a", "k", 2)), "monotone_reads", "version 1 at 'k', after")
        assert failing(trace(*begin, read("b", "k", 1), read("b", "k", 2))) == set()

    def test_an_older_hit_of_a_recall_is_one_too(self) -> None:
        lines = trace(wrote("a", "k"), wrote("a", "k"), read("a", "k", 2), hit("a", "k", 1), read("a", "k", 2))
        assert_fails(lines, "monotone_reads", "version 1")

    def test_a_forgotten_entry_that_comes_back_is_a_fault(self) -> None:
        lines = trace(wrote("a", "k"), gone("forgotten", "k", agent="a"), read("a", "k", 0), read("a", "k", 1))
        assert_fails(lines, "monotone_reads", "after version 1 was gone")

    def test_an_entry_that_is_found_and_then_not_is_a_fault(self) -> None:
        lines = trace(wrote("a", "k"), read("b", "k", 1), read("b", "k", 0))
        assert failing(lines) == {"no_lost_write", "monotone_reads"}  # it is both

    def test_absence_and_newer_versions_after_a_removal_are_fine(self) -> None:
        lines = trace(
            read("a", "k", 0),
            wrote("b", "k"),
            read("a", "k", 1),
            gone("evicted", "k"),
            read("a", "k", 0),
            wrote("b", "k"),
            read("a", "k", 2),
        )
        assert verdicts(lines)["monotone_reads"].passed


class TestCas:
    def test_each_success_replaces_what_it_expected(self) -> None:
        failed = {"kind": "cas_failed", "agent": "b", "key": "k", "was": 1}
        assert failing(trace(swapped("a", "k", 0), swapped("a", "k", 1), failed, swapped("b", "k", 2))) == set()

    @pytest.mark.parametrize(
        "lines",
        [
            [wrote("a", "k"), swapped("a", "k", 1), swapped("b", "k", 1)],  # two replace the same one
            [wrote("a", "k"), swapped("b", "k", 0)],  # expected none
            [swapped("b", "k", 7)],  # there was none
            [wrote("a", "k"), gone("evicted", "k"), swapped("b", "k", 1)],
            [wrote("a", "k"), swapped("b", "k", -1)],  # what was not written
        ],
    )
    def test_a_success_that_replaces_another_version_is_a_fault(self, lines: list[Line]) -> None:
        found = verdicts(trace(*lines))["cas_linearizable"]
        assert not found.passed
        assert "replaced version" in found.detail

    def test_a_failure_though_the_key_had_what_was_expected_is_a_fault(self) -> None:
        failed = {"kind": "cas_failed", "agent": "a", "key": "k", "was": 1}
        assert_fails(trace(wrote("a", "k"), failed), "cas_linearizable", "but failed")
        assert failing(trace(wrote("a", "k"), {**failed, "was": 0})) == set()
        assert failing(trace(wrote("b", "x"), wrote("a", "x"), {**failed, "was": 0})) == set()  # cannot create

    def test_where_the_trace_does_not_say_it_a_counter_expects_what_was_read(self) -> None:
        lines = [wrote("a", "counter/n"), read("a", "counter/n", 1), read("b", "counter/n", 1)]
        race = [wrote("a", "counter/n", cas=True), wrote("b", "counter/n", cas=True)]
        assert_fails(trace(*lines, *race), "cas_linearizable", "expected 1")
        assert failing(trace(*lines, race[0], read("b", "counter/n", 2), race[1])) == set()
        assert_fails(
            trace(*lines, {"kind": "cas_failed", "agent": "a", "key": "counter/n"}), "cas_linearizable", "failed"
        )


class TestCapacity:
    def test_evictions_may_come_before_or_after_the_write(self) -> None:
        before = trace(
            wrote("a", "x"), wrote("a", "y"), gone("evicted", "x"), wrote("a", "z"), read("a", "z", 3), capacity=2
        )
        after = trace(
            wrote("a", "x"), wrote("a", "y"), wrote("a", "z"), gone("evicted", "x"), read("a", "z", 3), capacity=2
        )
        assert failing(before) == failing(after) == set()
        assert "at most 2 entries and 12 bytes" in verdicts(before)["capacity_respected"].detail
        assert "the capacity of 2 entries" in verdicts(before)["capacity_respected"].detail

    def test_more_entries_or_bytes_than_the_limit_are_a_fault(self) -> None:
        lines = [wrote("a", "x"), wrote("a", "é"), wrote("a", "z")]
        assert_fails(trace(*lines, capacity=2), "capacity_respected", "3 entries")
        assert_fails(trace(*lines, capacity_bytes=18), "capacity_respected", "19 bytes")
        assert failing(trace(*lines, capacity=3, capacity_bytes=19)) == set()

    def test_what_was_overwritten_or_is_due_takes_no_room(self) -> None:
        assert failing(trace(wrote("a", "x"), wrote("a", "x"), wrote("a", "x"), capacity=1)) == set()
        assert failing(trace(wrote("a", "x", ts=1), wrote("a", "y", ts=11), capacity=1, ttl=10)) == set()

    def test_an_evicted_entry_that_is_found_is_a_fault(self) -> None:
        lines = [wrote("a", "x"), gone("evicted", "x"), wrote("a", "y"), read("b", "x", 1)]
        assert_fails(trace(*lines, capacity=1), "capacity_respected", "which had been evicted")
        again = [*lines[:3], gone("evicted", "y"), wrote("a", "x"), read("b", "x", 3)]
        assert failing(trace(*again, capacity=1)) == set()

    def test_each_agent_has_the_capacity_where_each_has_a_memory(self) -> None:
        lines = trace(wrote("a", "x"), wrote("b", "x"), read("a", "x", 1), read("b", "x", 2), capacity=1)
        lines[0]["per_agent"] = True
        assert verdicts(lines)["capacity_respected"].passed
        lines += [{**wrote("b", "y"), "ts": 9.0}]
        assert not verdicts(lines)["capacity_respected"].passed
        lines.insert(-1, {**gone("evicted", "x", owner="b"), "ts": 9.0})
        assert verdicts(lines)["capacity_respected"].passed
        assert verdicts(lines)["eviction_rate"].passed


class TestEvictionRate:
    def test_an_eviction_without_need_is_a_fault(self) -> None:
        lines = [wrote("a", "x"), gone("evicted", "x"), wrote("a", "y")]
        assert_fails(trace(*lines, capacity=2), "eviction_rate", "'x' was evicted for 'y', but 2 entries are within")
        assert_fails(trace(*lines), "eviction_rate", "no capacity")
        assert_fails(trace(*lines, capacity_bytes=12), "eviction_rate", "evicted for 'y'")
        assert failing(trace(*lines, capacity_bytes=11)) == set()
        assert_fails(trace(wrote("a", "x"), gone("evicted", "x"), capacity=1), "eviction_rate", "nothing was written")
        lines = [wrote("a", "x"), gone("evicted", "x"), read("a", "x", 0)]
        assert_fails(trace(*lines, capacity=1), "eviction_rate", "nothing was written")

    def test_more_evictions_than_needed_are_a_fault(self) -> None:
        begin = [wrote("a", "x"), wrote("a", "y"), gone("evicted", "x"), gone("evicted", "y"), wrote("a", "z")]
        assert_fails(trace(*begin, capacity=2), "eviction_rate", "'y' was evicted for 'z'")

    def test_an_overwrite_needs_no_room(self) -> None:
        lines = [wrote("a", "x"), wrote("a", "y"), gone("evicted", "x"), wrote("a", "y")]
        assert_fails(trace(*lines, capacity=2), "eviction_rate", "'x' was evicted for 'y'")

    @pytest.mark.parametrize("use", [read("a", "x", 1), hit("a", "x", 1), wrote("a", "x")])
    def test_the_least_recently_used_entry_goes(self, use: Line) -> None:
        begin = [wrote("a", "x"), wrote("a", "y"), use]
        right = [*begin, gone("evicted", "y"), wrote("a", "z")]
        wrong = [*begin, gone("evicted", "x"), wrote("a", "z")]
        after = [*begin, wrote("a", "z"), gone("evicted", "x")]
        assert failing(trace(*right, capacity=2)) == set()
        for lines in (wrong, after):
            assert_fails(trace(*lines, capacity=2), "eviction_rate", "'x' was evicted, but 'y' was used less recently")

    def test_the_order_is_not_judged_where_another_one_is_set(self) -> None:
        lines = trace(wrote("a", "x"), wrote("a", "y"), gone("evicted", "y"), wrote("a", "z"), capacity=2)
        lines[0]["limits"]["evict"] = "least important"
        assert failing(lines) == set()

    def test_the_detail_states_the_rate(self) -> None:
        lines = trace(wrote("a", "x"), gone("evicted", "x"), wrote("a", "y"), capacity=1)
        assert "1 evictions for 2 writes (0.50 a write)" in verdicts(lines)["eviction_rate"].detail


class TestExpiry:
    def test_an_entry_expires_at_its_age_and_not_before(self) -> None:
        assert failing(trace(wrote("a", "x", ts=1), gone("expired", "x", ts=11), ttl=10)) == set()
        early = trace(wrote("a", "x", ts=1), gone("expired", "x", ts=10.5), ttl=10)
        assert_fails(early, "expiry_exact", "expired at an age of 9.5, before 10")
        assert_fails(trace(wrote("a", "x"), gone("expired", "x")), "expiry_exact", "no time to live is set")
        assert_fails(trace(wrote("a", "x"), gone("expired", "y"), ttl=1), "expiry_exact", "there was no such entry")

    def test_an_overwrite_begins_again_and_a_read_does_not(self) -> None:
        late = [wrote("a", "x", ts=1), wrote("a", "x", ts=6), gone("expired", "x", ts=11)]
        assert_fails(trace(*late, ttl=10), "expiry_exact", "age of 5")
        used = [wrote("a", "x", ts=1), read("a", "x", 1, ts=6), gone("expired", "x", ts=11)]
        assert failing(trace(*used, ttl=10)) == set()

    @pytest.mark.parametrize(
        ("use", "detail"),
        [
            (read("a", "x", 1, ts=11), "'x' was read at an age of 10"),
            ({**hit("a", "x", 1), "ts": 11}, "recalled at an age of 10"),
            (gone("forgotten", "x", agent="a", ts=11), "forgotten at an age of 10"),
            (swapped("a", "x", 1, ts=11), "written at an age of 10"),
        ],
    )
    def test_a_due_entry_is_not_used(self, use: Line, detail: str) -> None:
        assert_fails(trace(wrote("a", "x", ts=1), use, ttl=10), "expiry_exact", detail)
        assert failing(trace(wrote("a", "x", ts=1), {**use, "ts": 10.9}, ttl=10)) == set()

    def test_an_entry_that_had_expired_is_not_found(self) -> None:
        lines = trace(wrote("a", "x", ts=1), gone("expired", "x", ts=11), read("b", "x", 1, ts=12), ttl=10)
        assert_fails(lines, "expiry_exact", "which had expired")

    def test_no_live_entry_is_evicted_while_a_due_one_stays(self) -> None:
        begin = [wrote("a", "old", ts=1), wrote("a", "new", ts=5), read("a", "old", 1, ts=6)]
        squats = [*begin, gone("evicted", "new", ts=11), wrote("a", "z", ts=11)]
        assert "expiry_exact" in failing(trace(*squats, capacity=2, ttl=10))
        swept = [*begin, gone("expired", "old", ts=11), wrote("a", "z", ts=11)]
        assert failing(trace(*swept, capacity=2, ttl=10)) == set()
        evicted = [wrote("a", "old", ts=1), gone("evicted", "old", ts=11), wrote("a", "z", ts=11)]
        assert_fails(trace(*evicted, capacity=1, ttl=10), "expiry_exact", "evicted at an age of 10")


class TestConvergence:
    begin = (wrote("a", "k"), wrote("a", "k"))

    def test_honest_agents_end_with_the_same(self) -> None:
        late = trace(*self.begin, read("b", "k", 1), read("b", "k", 2), read("c", "k", 2))
        assert failing(late) == set()
        assert "1 keys" in verdicts(late)["convergence"].detail

    def test_two_that_end_differently_are_a_fault(self) -> None:
        lines = trace(*self.begin, read("b", "k", 2), read("c", "k", 1))
        assert_fails(lines, "convergence", "c last found version 1 of 'k', b version 2")

    def test_reads_before_the_last_change_and_those_of_liars_do_not_count(self) -> None:
        assert failing(trace(self.begin[0], read("b", "k", 1), self.begin[1], read("c", "k", 2))) == set()
        lies = trace(*self.begin, read("b", "k", 2), read("c", "k", 1), byzantine=("c",))
        assert "convergence" not in failing(lies)
        removed = trace(
            *self.begin, read("b", "k", 2), gone("evicted", "k"), wrote("b", "x"), read("c", "k", 0), capacity=1
        )
        assert failing(removed) == set()


class TestLiveness:
    def test_a_run_without_memory_fails(self) -> None:
        assert_fails(trace(), "liveness", "no honest agent used memory")
        assert_fails(trace(sent("a", "b", "hello"), wrote("liar", "k"), byzantine=("liar",)), "liveness", "no honest")

    def test_each_life_of_an_honest_agent_acts(self) -> None:
        start = [{"kind": "start", "agent": each, "ts": 0.0} for each in ("a", "b")]
        idle = [*start, *(wrote("a", "k") for _ in range(9))]
        assert_fails(trace(*idle), "liveness", "b did nothing after 0")
        assert failing(trace(*idle, byzantine=("b",))) == set()
        assert failing(trace(*idle, sent("b", "a", "hello"))) == set()
        assert failing(trace(*idle, {"kind": "crash", "agent": "b"})) == set()
        again = [*idle[:2], wrote("b", "k"), {"kind": "crash", "agent": "b"}, {"kind": "restart", "agent": "b"}]
        assert_fails(trace(*again, *idle[2:]), "liveness", "b did nothing after 5")
        assert failing(trace(*again, wrote("b", "k"), *idle[2:])) == set()
        assert failing(trace(*idle[:2], *(wrote("b", "k") for _ in range(50)), wrote("a", "k"), *again[3:])) == set()

    def test_an_agent_whose_every_cas_fails_is_shut_out(self) -> None:
        failed = {"kind": "cas_failed", "agent": "b", "key": "k", "was": 1}
        begin = [wrote("a", "k"), wrote("a", "k"), failed, failed]
        assert_fails(trace(*begin), "liveness", "each cas of b failed, 2 in all")
        assert failing(trace(*begin, swapped("b", "k", 2))) == set()


class TestCrossAgentReads:
    def test_owners_read_their_notes_and_others_find_nothing(self) -> None:
        lines = trace(wrote("a", "private/a/x"), read("a", "private/a/x", 1), read("b", "private/c/x", 0))
        assert failing(lines) == set()
        assert "1 private values shown" in verdicts(lines)["no_cross_agent_read"].detail

    @pytest.mark.parametrize("kind", ["read", "recalled", "notified"])
    @pytest.mark.parametrize("reader", ["b", "liar", "a2"])
    def test_a_value_shown_to_another_agent_is_a_fault(self, kind: str, reader: str) -> None:
        lines = trace(wrote("a", "private/a/x"), {**hit(reader, "private/a/x", 1), "kind": kind}, byzantine=("liar",))
        assert_fails(lines, "no_cross_agent_read", f"{reader} was shown 'private/a/x'")


class TestRecallHonest:
    keys = (wrote("a", "truth"), wrote("liar", "junk"))

    def recalls(self, honest_first: int, honest_second: int, junk_only: int) -> list[Line]:
        both = [("truth", 1), ("junk", 2)]
        out: list[Line] = []
        for found in [both] * honest_first + [both[::-1]] * honest_second + [both[1:]] * junk_only:
            out += [hit("a", key, version, rank) for rank, (key, version) in enumerate(found, 1)]
        return trace(*self.keys, *out, byzantine=("liar",))

    def test_within_the_bounds_it_passes_and_states_them(self) -> None:
        found = verdicts(self.recalls(40, 25, 35))["recall_honest"]
        assert found.passed
        assert "of 100 recalls" in found.detail
        assert "65 contain an honest hit (at least 60%)" in found.detail
        assert "40 begin with one (at least 35%)" in found.detail

    def test_too_few_recalls_with_an_honest_hit_are_a_fault(self) -> None:
        assert_fails(self.recalls(59, 0, 41), "recall_honest", "59 of 100 recalls contain an honest hit")

    def test_too_few_recalls_that_begin_with_an_honest_hit_are_a_fault(self) -> None:
        assert_fails(self.recalls(34, 66, 0), "recall_honest", "34 of 100 recalls begin with an honest hit")

    def test_junk_before_an_honest_hit_of_a_higher_score_is_a_fault(self) -> None:
        ranked = [hit("a", "truth", 1), hit("a", "junk", 2, 2, 0.4), hit("a", "truth", 1, 3, 0.45)]
        begin = [hit("a", "truth", 1)] * 5
        assert_fails(
            trace(*self.keys, *begin, *ranked, byzantine=("liar",)), "recall_honest", "shown junk of score 0.4"
        )
        ranked[2]["score"] = 0.4
        assert failing(trace(*self.keys, *begin, *ranked, byzantine=("liar",))) == set()

    def test_what_liars_recall_does_not_count_and_a_recall_that_finds_nothing_finds_nothing_honest(self) -> None:
        none = {"kind": "recalled", "agent": "a", "key": "", "version": 0, "rank": 0, "score": 0.0}
        lines = trace(*self.keys, none, none, hit("liar", "junk", 2), byzantine=("liar",))
        assert verdicts(lines)["recall_honest"].detail.startswith("0 of 2 recalls")
        assert failing(lines) == {"recall_honest"}
        assert failing(trace(*self.keys, hit("liar", "junk", 2), byzantine=("liar",))) == set()
