"""`recollect size` prints a plan or a simulation as tables and as JSON, and refuses what it would not use."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from recollect.cli.app import app
from recollect.sizing import Load, Needs, plan_of, simulate

SMALL = ("--simulate", "--records", "200_000", "--namespaces", "1e3", "--nodes", "3", "--interval", "20", "--zipf", "1")


def run(*arguments: str, code: int = 0) -> Result:
    found = CliRunner().invoke(app, ["size", *arguments])
    assert found.exit_code == code, found.output
    return found


def test_a_plan_is_printed_as_a_table() -> None:
    text = run("--records", "1e9", "--namespaces", "1e6", "--vectors", "384", "--active", "0.05").output
    assert "1,000,000,000 records in 1,000,000 namespaces" in text
    assert [line.split() for line in text.splitlines() if line.startswith("heads")] == [
        ["heads", "186.3", "GiB", "200", "186.3", "GiB"]  # 200 bytes times 10^9
    ]
    assert "note: one primary of 2 to 4 TB" in text


def test_a_plan_is_printed_as_json() -> None:
    options = ("--records", "1000000", "--writes-per-second", "5", "--node-memory", "8G", "--spare", "0", "--batched")
    needs = Needs(records=10**6, writes_per_s=5.0, node_memory=8 * 2**30, spare=0, batched=True)
    assert json.loads(run(*options, "--json").stdout) == json.loads(json.dumps(plan_of(needs).to_json()))


def test_a_simulation_is_printed_as_a_table() -> None:
    text = run(*SMALL, "--event", "die", "--event", "nodes=5").output
    assert [line.split() for line in text.splitlines() if line.startswith("nodes ")] == [["nodes", "3", "2", "5"]]


def test_a_simulation_is_printed_as_json() -> None:
    found = json.loads(run(*SMALL, "--node-memory", "0.5GiB", "--seed", "4", "--by-load", "--json").stdout)
    load = Load(**{**found["load"], "events": tuple(found["load"]["events"])})
    assert (load.seed, load.by_load, load.nodes, load.zipf, load.events) == (4, True, 3, 1.0, ("die", "join"))
    assert found == json.loads(json.dumps(simulate(load).to_json()))


def test_an_overload_is_noted() -> None:
    busy = (*SMALL, "--recalls-per-second", "5000", "--event", "nodes=1")
    assert "its queue grows" in run(*busy).output
    assert "its queue grows" not in run(*SMALL).output


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        ((), "Missing option '--records'", 2),
        (("--records", "many"), "'many' is not a count, such as 1000000 or 1e9", 2),
        (("--records", "1.5"), "'1.5' is not a count", 2),
        (("--records", "9", "--node-memory", "large"), "'large' is not a number of bytes", 2),
        (("--records", "0"), "records must be a number from 1 to 10,000,000,000,000, got 0", 1),
        (("--records", "9", "--active", "2"), "active must be a number from 0 to 1, got 2.0", 1),
        (("--records", "9", "--nodes", "4"), "--nodes requires --simulate", 2),
        (("--records", "9", "--active", "1", "--zipf", "1"), "--active cannot be used with --zipf", 2),
        (("--records", "9", "--hit-rate", "0.5"), "--hit-rate requires --zipf", 2),
        ((*SMALL, "--vectors", "384"), "--vectors cannot be used with --simulate", 2),
        (("--records", "9", "--batched", "--simulate"), "--batched cannot be used with --simulate", 2),
        (("--records", "9", "--namespaces", "10"), "records must be at least one for each of 10 namespaces, got 9", 1),
        (("--records", "9", "--node-memory", "8"), "node_memory must be a number from 536,870,912 to", 1),
        ((*SMALL, "--event", "explode"), "event must be die, join or nodes=K", 1),
        (("--records", "9", "--db", "a.db"), "cannot be used here: no store is opened", 1),
    ],
)
def test_what_is_wrong_is_an_error(options: tuple[str, ...], message: str, code: int) -> None:
    assert message in run(*options, code=code).output.replace("\n", " ")


def test_zero_is_a_value_and_not_the_default() -> None:
    plan = json.loads(run("--records", "1000", "--spare", "0", "--active", "0", "--json").stdout)
    assert (plan["needs"]["spare"], plan["needs"]["active"], plan["nodes"]) == (0, 0.0, 1)
