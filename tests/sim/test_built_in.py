"""The built-in scenarios run, really use memory, and give the same bytes for the same seed everywhere."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from tests.examples import FULL
from tests.sim.worlds import Events, of_kind

from recollect.compat.nest import SemanticMemory
from recollect.errors import InvalidArgumentError
from recollect.sim import Agent, RecordedModel, Recorder, Scenario, read_trace, run, scenario_names
from recollect.sim.trace import MEMORY_KINDS
from recollect.sim.validators import validate_events

#: What each scenario must show, beside writes and reads.
KINDS = {
    "concurrent_writers": "cas_failed notified dropped",
    "eviction_storm": "evicted recalled",
    "expiration_storm": "expired forgotten recalled crash restart",
    "marketplace": "recalled send receive",
    "memory_swarm": "broadcast cas_failed dropped evicted expired forgotten notified recalled",
    "poisoned_recall": "dropped evicted recalled",
}
PINNED = "677532a041582d721cee5a61036ed5c23345a7fb20fabbfdef36b5ee9034c24c"
_HASHES = """
import sys
from recollect.sim import Scenario, run, scenario_names
for name in scenario_names():
    print(name, run(Scenario.load(name), trace=sys.argv[1]).sha256)
"""


class Run(NamedTuple):
    """A run of a scenario: the bytes of its trace, and the hash that it said they have."""

    trace: bytes
    sha256: str


@cache
def run_of(name: str) -> Run:
    """The run of a built-in scenario, made once for all tests that look at it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        sha256 = run(Scenario.load(name), trace=path).sha256
        return Run(path.read_bytes(), sha256)


@cache
def events_of(name: str) -> Events:
    return [json.loads(line) for line in run_of(name).trace.splitlines()]


@pytest.mark.parametrize("name", KINDS)
def test_a_built_in_scenario_uses_memory_in_every_way_that_it_shows(name: str) -> None:
    counts = Counter(event["kind"] for event in events_of(name))
    for kind in ("written", "read", *KINDS[name].split()):
        assert counts[kind] > 0, kind
    assert counts["stop"] == counts["start"] > 0


@pytest.mark.parametrize("name", KINDS)
def test_no_memory_event_of_a_built_in_scenario_has_the_text_of_a_value(name: str) -> None:
    # Every value that an agent writes ends with a stamp, "[agent number]".
    for event in of_kind(events_of(name), *MEMORY_KINDS):
        assert not any("[" in text for text in event.values() if isinstance(text, str)), event


@pytest.mark.parametrize("name", KINDS)
def test_every_value_that_is_read_was_written(name: str) -> None:
    versions = [event["version"] for event in of_kind(events_of(name), "read", "recalled", "notified")]
    assert -1 not in versions


def test_all_built_in_scenarios_are_tested() -> None:
    assert scenario_names() == sorted(KINDS)


def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed_is(tmp_path: Path) -> None:
    here = {}
    for name in scenario_names():
        here[name] = hashlib.sha256(run_of(name).trace).hexdigest()
        assert run_of(name).sha256 == here[name]
    for seed in ("0", "1") if FULL else ("0",):
        done = subprocess.run(
            [sys.executable, "-c", _HASHES, str(tmp_path / "there.jsonl")],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert dict(line.split() for line in done.stdout.splitlines()) == here


def test_the_bytes_are_the_same_on_every_version_of_python() -> None:
    # Computed once, on Python 3.11, 3.12 and 3.13. It changes only with the scenario, its agents or the trace.
    data = {"name": "x", "agents": {"count": 12}, "task": {"type": "memory_swarm", "config": {"rounds": 8}}}
    failures = {
        "message_drop": 0.1,
        "message_duplicate": 0.1,
        "message_reorder": 0.1,
        "message_delay": {"least": 0, "most": 3},
        "byzantine_agents": 0.2,
        "byzantine": {"behaviours": ["lie", "equivocate", "replay", "flood", "poison"]},
        "crashes": [{"share": 0.1, "at": 9, "restart_after": 2}],
    }
    layers = {"memory": {"use": "semantic", "capacity": 30, "ttl": 12}}
    assert run({**data, "failures": failures, "layers": layers}, 5, io.StringIO()).sha256 == PINNED


def test_another_seed_gives_another_trace() -> None:
    made = Scenario.load("poisoned_recall")
    assert made.seed not in (1, 2)
    traces = {run(made, seed, trace=io.StringIO()).sha256 for seed in (1, 2)}
    assert len(traces | {run_of("poisoned_recall").sha256}) == 3


def test_turning_on_a_failure_changes_no_draw_of_an_agent() -> None:
    # Buyers draw their pauses, sellers and prices: the first offers are the same ones.
    def first_offers(**failures: Any) -> list[str]:
        data = {"name": "x", "agents": {"count": 20}, "task": {"type": "marketplace"}, "failures": failures}
        file = io.StringIO()
        run(data, trace=file)
        events = [json.loads(line) for line in file.getvalue().splitlines()]
        return sorted(event["msg"] for event in of_kind(events, "send") if event["ts"] < 3)

    assert first_offers() == first_offers(message_duplicate=0.5, message_drop=0.5) != []


def test_a_trace_is_one_object_a_line_with_sorted_keys_and_no_spaces(tmp_path: Path) -> None:
    data = run_of("eviction_storm").trace
    assert data.endswith(b"}\n")
    assert b"\r" not in data
    for line in data.decode("ascii").splitlines():
        assert line == json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"))
    path = tmp_path / "trace.jsonl"
    path.write_bytes(data)
    assert next(read_trace(path))["kind"] == "scenario"


def test_times_do_not_go_back_and_memory_events_are_numbered() -> None:
    events = events_of("memory_swarm")
    times = [event["ts"] for event in events]
    assert times == sorted(times)
    numbers = [event["seq"] for event in of_kind(events, *MEMORY_KINDS)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_concurrent_writers_lose_no_change() -> None:
    events = events_of("concurrent_writers")
    written = [each for each in of_kind(events, "written") if not each["key"].startswith("private/")]
    assert len(written) == 32 * 16
    last: dict[str, int] = defaultdict(int)
    for event in written:  # each one builds on the last one of its key
        assert event["was"] == last[event["key"]]
        last[event["key"]] = event["version"]


def test_an_entry_is_read_one_tick_before_it_expires_and_never_at_the_tick() -> None:
    written: dict[int, float] = {}
    ages = set()
    for event in of_kind(events_of("expiration_storm"), "written", "read", "recalled", "expired"):
        if event["kind"] == "written":
            written[event["version"]] = event["ts"]
        elif event["kind"] == "expired":
            assert event["ts"] - event["written_at"] >= 20.0
        elif event["version"]:
            ages.add(event["ts"] - written[event["version"]])
    assert max(ages) == 19.0
    # Entries expire together: many at few moments.
    expired = of_kind(events_of("expiration_storm"), "expired")
    assert len({event["ts"] for event in expired}) < 60 < len(expired)


def test_the_eviction_storm_stays_within_both_limits() -> None:
    entries: dict[str, int] = {}
    most = most_bytes = 0
    for event in of_kind(events_of("eviction_storm"), "written", "evicted"):
        if event["kind"] == "evicted":
            del entries[event["key"]]
        else:
            entries[event["key"]] = event["size"] + len(event["key"])
        most, most_bytes = max(most, len(entries)), max(most_bytes, sum(entries.values()))
    assert (most, most_bytes <= 6500) == (120, True)
    assert most_bytes > 6400


def test_the_marketplace_answers_every_offer_at_an_agreed_price_and_sells_nothing_twice() -> None:
    asked: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    open_: Counter[tuple[str, str, str]] = Counter()
    buyers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for event in of_kind(events_of("marketplace"), "send"):
        verb, product, price = event["msg"].split(":")
        if verb == "buy":
            asked[event["agent"], event["to"], product].add(price)
            open_[event["agent"], event["to"], product] += 1
            continue
        deal = (event["to"], event["agent"], product)
        open_[deal] -= 1
        if verb == "sold":
            assert price in asked[deal]
            buyers[event["agent"], product].add(event["to"])
        else:
            assert verb == "reject"
            asked[deal].add(price)
    assert set(open_.values()) == {0}
    assert {len(each) for each in buyers.values()} == {1}


def test_roles_without_agents_and_few_agents_run() -> None:
    for name in scenario_names():
        made = Scenario.load(name)
        for count in (0, 1, 2, 3):
            run(
                {"name": "x", "agents": {"count": count}, "task": {"type": made.task}, "layers": {"memory": "semantic"}}
            )


def test_a_chat_is_recorded_and_replayed_to_the_same_trace(tmp_path: Path) -> None:
    data = {
        "name": "x",
        "agents": {"count": 3, "brain": "chat"},
        "task": {"type": "chat", "config": {"rounds": 2}},
        "layers": {"memory": "semantic"},
    }
    asked = []

    def chat(messages: list[dict[str, str]]) -> str:
        asked.append(messages)
        return f"Answer {len(asked)} to: {messages[-1]['content'][-40:]}"

    path = tmp_path / "recording.jsonl"
    first = run(data, trace=tmp_path / "a.jsonl", chat=Recorder(chat, path))
    assert len(asked) == 6
    again = run(data, trace=tmp_path / "b.jsonl", chat=RecordedModel(path))
    assert len(asked) == 6
    assert first.sha256 == again.sha256
    assert again.counts["written"] == 6


def test_a_recording_gives_the_answers_of_a_question_in_order_and_refuses_another_one(tmp_path: Path) -> None:
    from recollect.errors import ImportFormatError, InvalidArgumentError

    answers = iter(["one", "two"])
    path = tmp_path / "recording.jsonl"
    question = [{"role": "user", "content": "again?"}]
    recorder = Recorder(lambda _: next(answers), path)
    assert [recorder(question), recorder(question)] == ["one", "two"]
    recorded = RecordedModel(path)
    assert [recorded(question) for _ in range(3)] == ["one", "two", "two"]
    with pytest.raises(InvalidArgumentError, match="record it again"):
        recorded([{"role": "user", "content": "what?"}])
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(ImportFormatError, match="line 1"):
        RecordedModel(path)


@pytest.mark.parametrize("task", ["memory_swarm", "poisoned_recall"])
def test_a_task_that_recalls_needs_a_memory_that_does_and_a_failed_run_keeps_the_former_trace(
    task: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("former")
    with pytest.raises(InvalidArgumentError, match="choose semantic"):
        run({"name": "x", "task": {"type": task}}, trace=path)

    class Broken(Agent):
        async def on_start(self, ctx: Any) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run({"name": "x"}, trace=path, agents=lambda seat: Broken())
    assert [each.name for each in tmp_path.iterdir()] == ["trace.jsonl"]
    assert path.read_text() == "former"


@pytest.mark.parametrize(
    ("options", "name"),
    [({"agents": 1}, "agents"), ({"memory": "semantic"}, "memory"), ({"chat": 1}, "chat"), ({"trace": 5}, "trace")],
)
def test_an_invalid_argument_is_named(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        run({"name": "x"}, **options)
    with pytest.raises(InvalidArgumentError, match="agents"):
        run({"name": "x"}, agents=lambda seat: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidArgumentError, match=r"agents\.brain"):
        run({"name": "x", "agents": {"brain": "chat"}, "task": {"type": "marketplace"}}, chat=lambda messages: "")


def test_a_plugin_whose_recall_finds_nothing_fails() -> None:
    class Blind(SemanticMemory):
        async def recall(self, query: str, k: int = 5, min_score: float = 0.0) -> list[Any]:
            return []

    trace = io.StringIO()
    run(Scenario.load("poisoned_recall"), trace=trace, memory=Blind)
    events = [json.loads(line) for line in trace.getvalue().splitlines()]
    assert [each.name for each in validate_events(events, "poisoned_recall") if not each.passed] == ["recall_honest"]


@pytest.mark.parametrize("task", ["memory_swarm", "concurrent_writers", "eviction_storm", "expiration_storm"])
def test_a_plugin_whose_writes_hang_in_the_middle_of_a_run_fails(task: str) -> None:
    class Hangs(SemanticMemory):
        writes = 0

        async def write(self, key: str, value: bytes, *, importance: float | None = None) -> None:
            Hangs.writes += 1
            if Hangs.writes > 300:
                await asyncio.Event().wait()
            await super().write(key, value, importance=importance)

        async def cas(self, key: str, expected: bytes | None, new: bytes, *, importance: float | None = None) -> bool:
            Hangs.writes += 1
            if Hangs.writes > 300:
                await asyncio.Event().wait()
            return await super().cas(key, expected, new, importance=importance)

    trace = io.StringIO()
    run(Scenario.load(task), trace=trace, memory=Hangs)
    events = [json.loads(line) for line in trace.getvalue().splitlines()]
    failed = {each.name for each in validate_events(events, task) if not each.passed}
    assert "liveness" in failed


def test_a_plugin_that_forgets_nothing_fails() -> None:
    class Stubborn(SemanticMemory):
        async def forget(self, key: str) -> bool:
            return False

    trace = io.StringIO()
    run(Scenario.load("memory_swarm"), trace=trace, memory=Stubborn)
    events = [json.loads(line) for line in trace.getvalue().splitlines()]
    assert [each.name for each in validate_events(events, "memory_swarm") if not each.passed] == ["no_lost_write"]
