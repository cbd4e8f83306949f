"""A scenario is read from YAML or a mapping, and a wrong value is an error that names its field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.errors import ImportFormatError, InvalidArgumentError
from recollect.sim import Scenario, run, scenario_names

BUILT_IN = [
    "concurrent_writers",
    "eviction_storm",
    "expiration_storm",
    "marketplace",
    "memory_swarm",
    "poisoned_recall",
]
#: What the published simulator's own scenario file has.
PUBLISHED = """
name: marketplace
description: "50 buyers and 50 sellers."
tier: 1
seed: 42
agents:
  count: 4
  brain: state-machine
  roles:
    - {name: buyer, count: 2}
    - {name: seller, count: 2, prompt_template: seller_v1}
layers: {transport: in_memory, identity: did_key, memory: blackboard, datafacts: datafacts_v1}
task:
  type: marketplace
  config: {catalog_size: 200, rounds: 3}
failures: {message_drop: 0.0}
duration: "ticks: 10000"
metrics: [success_rate, mean_latency]
output: {trace: ./traces/marketplace.jsonl}
"""
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": None}, "name"),
    ({"nmae": "x"}, "nmae"),
    ({"tier": 3}, "tier"),
    ({"seed": -1}, "seed"),
    ({"seed": True}, "seed"),
    ({"duration": "1000"}, "duration"),
    ({"duration": "ticks: 0"}, "duration"),
    ({"duration": "ticks: -5"}, "duration"),
    ({"duration": 1000}, "duration"),
    ({"agents": {"roles": [{"name": "buyer", "count": -1}]}}, "agents.roles[0].count"),
    ({"agents": {"roles": [{"count": 1}]}}, "agents.roles[0].name"),
    ({"agents": {"count": -1}}, "agents.count"),
    ({"agents": {"count": 9, "roles": [{"name": "buyer", "count": 2}]}}, "agents.count"),
    ({"agents": {"roles": [{"name": "buyer"}, {"name": "buyer"}]}}, "agents.roles[1].name"),
    ({"agents": {"brain": "gut"}}, "agents.brain"),
    ({"agents": []}, "agents"),
    ({"failures": {"message_drop": 1.5}}, "failures.message_drop"),
    ({"failures": {"message_drop": float("nan")}}, "failures.message_drop"),
    ({"failures": {"message_drop": "0.1"}}, "failures.message_drop"),
    ({"failures": {"byzantine_agents": -0.1}}, "failures.byzantine_agents"),
    ({"failures": {"message_duplicate": 2}}, "failures.message_duplicate"),
    ({"failures": {"message_reorder": 2}}, "failures.message_reorder"),
    ({"failures": {"mesage_drop": 0.1}}, "failures.mesage_drop"),
    ({"failures": {"message_delay": {"least": 5, "most": 2}}}, "failures.message_delay.most"),
    ({"failures": {"message_delay": {"least": -1}}}, "failures.message_delay.least"),
    ({"failures": {"byzantine": {"behaviours": ["lie", "sing"]}}}, "failures.byzantine.behaviours[1]"),
    ({"failures": {"byzantine": {"flood": 0}}}, "failures.byzantine.flood"),
    ({"failures": {"network_partition": {"groups": "ab"}}}, "failures.network_partition.groups"),
    ({"failures": {"network_partition": {"groups": ["ab"]}}}, "failures.network_partition.groups[0]"),
    ({"failures": {"network_partition": {"groups": [["agent-0"]]}}}, "failures.network_partition.groups"),
    (
        {"failures": {"network_partition": [{"groups": [["a"], ["b"]], "from": 5, "until": 5}]}},
        "failures.network_partition[0].until",
    ),
    ({"failures": {"crashes": [{"at": 5}]}}, "failures.crashes[0]"),
    ({"failures": {"crashes": [{"agent": "a", "role": "b", "at": 5}]}}, "failures.crashes[0]"),
    ({"failures": {"crashes": [{"agent": "a"}]}}, "failures.crashes[0].at"),
    ({"failures": {"crashes": [{"share": 1.1, "at": 5}]}}, "failures.crashes[0].share"),
    ({"failures": {"crashes": [{"agent": "a", "at": 5, "restart_after": 0}]}}, "failures.crashes[0].restart_after"),
    ({"layers": {"memory": 5}}, "layers.memory"),
    ({"layers": {"memory": {"capacity": 5}}}, "layers.memory.use"),
    ({"layers": {"memory": {"use": "semantic", "capacity": 0}}}, "layers.memory.capacity"),
    ({"layers": {"memory": {"use": "semantic", "ttl": 0}}}, "layers.memory.ttl"),
    ({"layers": {"memory": {"use": "semantic", "ttl": -1}}}, "layers.memory.ttl"),
    ({"layers": {"memory": {"use": "semantic", "per_agent": 1}}}, "layers.memory.per_agent"),
    ({"output": {"trce": "x"}}, "output.trce"),
    ({"metrics": "all"}, "metrics"),
    ({"task": {"type": 5}}, "task.type"),
]
#: Wrong values that only the task, the plugin or the agents can tell.
WRONG_TO_RUN: list[tuple[dict[str, Any], str]] = [
    ({"task": {"type": "chess"}}, "task.type"),
    ({"task": {"type": "marketplace", "config": {"round": 5}}}, "task.config.round"),
    ({"task": {"type": "marketplace", "config": {"rounds": -5}}}, "task.config.rounds"),
    ({"agents": {"roles": [{"name": "thief"}]}}, "agents.roles[0].name"),
    ({"agents": {"roles": [{"name": "buyer", "config": {"rounds": "x"}}]}}, "agents.roles[0].config.rounds"),
    ({"layers": {"memory": "clay"}}, "layers.memory"),
    ({"layers": {"memory": "pgvector"}}, "layers.memory"),
    ({"layers": {"memory": {"use": "blackboard", "capacity": 5}}}, "layers.memory.capacity"),
    ({"layers": {"memory": {"use": "recollect", "ttl": 5}}}, "layers.memory.ttl"),
    ({"layers": {"memory": {"use": "semantic", "evict": "newest"}}}, "layers.memory.evict"),
    ({"layers": {"memory": {"use": "semantic", "capacty": 5}}}, "layers.memory.capacty"),
    ({"failures": {"crashes": [{"agent": "thief-0", "at": 5}]}}, "failures.crashes[0].agent"),
    ({"failures": {"crashes": [{"role": "thief", "at": 5}]}}, "failures.crashes[0].role"),
    ({"failures": {"network_partition": {"groups": [["thief"], []]}}}, "failures.network_partition.groups[0][0]"),
    (
        {"failures": {"network_partition": {"groups": [["buyer"], ["buyer-0"]]}}},
        "failures.network_partition.groups[1][0]",
    ),
    ({"agents": {"brain": "chat"}}, "chat"),
]


def named(error: InvalidArgumentError) -> str:
    """The field that an error names, of which its message begins."""
    assert str(error).startswith(str(error.args[0])), str(error)
    return str(error.args[0])


@pytest.mark.parametrize(("change", "field"), WRONG, ids=lambda each: each if isinstance(each, str) else "")
def test_a_wrong_value_is_an_error_that_names_its_field(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        Scenario.read({"name": "x", **change})
    assert isinstance(caught.value, InvalidArgumentError)
    assert named(caught.value) == field


@pytest.mark.parametrize(("change", "field"), WRONG_TO_RUN, ids=lambda each: each if isinstance(each, str) else "")
def test_what_does_not_fit_the_task_or_the_plugin_is_an_error_before_anything_runs(
    change: dict[str, Any], field: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run({"name": "x", **change}, trace=tmp_path / "trace.jsonl")
    assert named(caught.value) == field
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", ["auction", "consensus", "reputation", "supply_chain", "voting"])
def test_a_task_of_nest_is_refused_with_what_runs_it(task: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"memory_swarm.*; it is a task of NEST.*`nest run`"):
        run({"name": "x", "task": {"type": task}}, trace=tmp_path / "trace.jsonl")


def test_a_misspelled_field_is_answered_with_the_right_one() -> None:
    with pytest.raises(InvalidArgumentError, match="did you mean message_drop"):
        Scenario.read({"name": "x", "failures": {"mesage_drop": 0.1}})


def test_all_fields_are_read() -> None:
    made = Scenario.read(
        {
            "name": "x",
            "description": "d",
            "tier": 2,
            "agents": {"roles": [{"name": "writer", "count": 3, "config": {"rounds": 2}}]},
            "layers": {"memory": {"use": "semantic", "capacity": 5, "ttl": 7, "per_agent": True}, "trust": {"a": 1}},
            "task": {"type": "concurrent_writers", "config": {"rounds": 1}},
            "failures": {
                "message_drop": 0.1,
                "message_duplicate": 0.2,
                "message_reorder": 1,
                "message_delay": {"least": 0, "most": 4},
                "byzantine_agents": 0.5,
                "byzantine": {"behaviours": ["poison", "lie"], "flood": 3, "poison": 1},
                "network_partition": {"groups": [["writer-0"], ["writer-1"]], "from": 2, "until": 8},
                "crashes": [{"agent": "writer-0", "at": 3, "restart_after": 2}],
            },
            "duration": "ticks: 50",
            "metrics": ["m"],
            "output": {"trace": "t", "report": "r"},
            "seed": 9,
        }
    )
    failures = made.failures
    assert (made.count, made.roles[0].config, made.ticks, made.seed) == (3, {"rounds": 2}, 50, 9)
    assert (made.memory.options, made.memory.per_agent, made.layers) == (
        {"capacity": 5, "ttl": 7},
        True,
        {"trust": {"a": 1}},
    )
    assert (failures.delay, failures.behaviours, failures.flood, failures.poison) == ((0, 4), ("lie", "poison"), 3, 1)
    assert (failures.partitions[0].begin, failures.partitions[0].until) == (2.0, 8.0)
    assert (failures.crashes[0].at, failures.crashes[0].restart_after) == (3.0, 2.0)
    assert (made.trace, made.report, made.metrics, made.tier) == ("t", "r", ("m",), 2)


def test_only_the_name_is_required() -> None:
    made = Scenario.read({"name": "x"})
    assert (made.memory.use, made.ticks, made.failures.message_drop) == ("blackboard", 10_000, 0.0)


def test_a_file_of_the_published_simulator_is_read_and_runs(tmp_path: Path) -> None:
    path = tmp_path / "marketplace.yaml"
    path.write_text(PUBLISHED, encoding="utf-8")
    result = run(Scenario.load(path))
    assert (result.agents, result.seed, result.ended) == (4, 42, "quiet")
    assert result.counts["written"] > 0


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"name: [", "is not YAML"),
        (b"\xff\xfe\x00", "is not YAML"),
        (b"!!python/object/apply:os.system ['true']", "is not YAML"),
        (b"[" * 5000, "is not YAML"),
        (b"name: a\nagents: &a [1]\nlayers: *a\n", "line 3: is not YAML: aliases are not supported"),
        (b"name: a\nfailures:\n  message_drop: 1\n  message_drop: 0\n", "line 3: is not YAML: a name occurs twice"),
        (b"x" * (1 << 21), "larger than"),
    ],
)
def test_a_file_that_is_no_yaml_is_an_error_that_names_it(data: bytes, rule: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(data)
    with pytest.raises(ImportFormatError, match=rule) as caught:
        Scenario.load(path)
    assert caught.value.args[0] == str(path)


def test_yaml_that_is_no_mapping_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("- a\n", encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="the scenario must be a mapping"):
        Scenario.load(path)


def test_a_file_that_is_not_there_is_answered_with_the_built_in_names() -> None:
    with pytest.raises(ImportFormatError, match="memory_swarm"):
        Scenario.load("no-such-scenario")


def test_the_built_in_scenarios_are_these_and_each_says_what_it_shows() -> None:
    assert scenario_names() == BUILT_IN
    for name in BUILT_IN:
        made = Scenario.load(name)
        assert (made.name, made.description[:5]) == (name, "Shows")
        assert len(made.description) <= 300, "the command line would cut it"
