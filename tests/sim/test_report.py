"""The report of a trace counts what happened, its picture is well-formed SVG, and the commands print both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from tests.sim.worlds import of_kind

from recollect.cli.app import app
from recollect.errors import ImportFormatError, StoreIOError
from recollect.sim import Scenario, read_trace, run
from recollect.sim.report import report_of, svg_of

SMALL = """
name: "small <&> one"
agents: {roles: [{name: writer, count: 3}, {name: reader, count: 2}]}
layers: {memory: {use: semantic, capacity: 10}}
task: {type: eviction_storm, config: {rounds: 5, burst: 3}}
failures: {message_drop: 0.5, byzantine_agents: 0.2}
duration: "ticks: 100"
seed: 3
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.fixture
def trace(small: Path, tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    run(Scenario.load(small), trace=path)
    return path


def call(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["sim", *map(str, arguments)], env={"COLUMNS": "140"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def test_a_report_counts_messages_losses_and_memory_events_by_role(trace: Path) -> None:
    events = list(read_trace(trace))
    found = report_of(trace)
    assert found.messages["writer"]["send"] == len(of_kind(events, "send")) == 15
    lost = len(of_kind(events, "dropped"))
    assert found.losses == {"drop": lost}
    assert found.messages["reader"] == {"dropped": lost, "receive": 15 - lost}
    assert found.memory["(memory)"] == {"evicted": len(of_kind(events, "evicted"))}
    assert sum(kinds.get("written", 0) for kinds in found.memory.values()) == len(of_kind(events, "written"))
    assert found.sizes[-1][1] == 10
    assert max(entries for _, entries, _ in found.sizes) == 10
    assert len(found.agents) == 5


def test_a_report_follows_the_bytes_of_what_is_written_again_and_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    header = {"kind": "scenario", "name": "x", "seed": 0, "limits": {}, "byzantine": [], "roles": {"a-0": "a"}, "ts": 0}
    changes = [
        ("written", "k", 5),
        ("written", "l", 1),
        ("written", "k", 2),
        ("forgotten", "k", 2),
        ("expired", "l", 1),
    ]
    lines = [header]
    for ts, (kind, key, size) in enumerate(changes, 1):
        lines.append({"kind": kind, "agent": "a-0", "key": key, "size": size, "ts": ts})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert report_of(path).sizes == ((0.0, 0, 0), (1.0, 1, 5), (2.0, 2, 6), (3.0, 2, 3), (4.0, 1, 1), (5.0, 0, 0))


def test_a_picture_is_well_formed_and_the_same_each_time(trace: Path) -> None:
    picture = svg_of(report_of(trace))
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "small <&> one, seed 3: 5 agents" in texts
    assert {"writer-0", "reader-1", "capacity 10"} <= set(texts)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 1
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 1
    assert picture == svg_of(report_of(trace))


@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_picture_has_room_for_any_number_of_agents(count: int, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    data = {"name": "x", "agents": {"count": count}, "task": {"type": "concurrent_writers", "config": {"rounds": 1}}}
    run(data, trace=path)
    root = ElementTree.fromstring(svg_of(report_of(path)))
    assert int(root.attrib["height"]) < 1200


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1"),
        ("{}\n", "line 1"),
        ('{"kind":"start","ts":0.0}\n', "line 1"),
        ("not json\n", "line 1"),
        ('{"kind":"x","ts":true}\n', "line 1"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_line(text: str, where: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ImportFormatError, match=where):
        report_of(path)


def test_run_writes_a_trace_and_says_its_hash(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    shown = call("run", small, "-o", out)
    assert "5 agents, seed 3" in shown.stdout
    assert "evicted" in shown.stdout
    first = out.read_bytes()
    said: Any = json.loads(call("run", small, "-o", out, "--json").stdout)
    assert out.read_bytes() == first
    assert said["sha256"] in shown.stdout
    other: Any = json.loads(call("run", small, "--seed", 4, "-o", out, "--json").stdout)
    assert (other["seed"], other["sha256"] == said["sha256"]) == (4, False)


def test_run_does_not_overwrite_another_file(small: Path, tmp_path: Path) -> None:
    before = small.read_text("utf-8")
    assert "is not a trace" in call("run", small, "-o", small, code=1).stderr
    assert small.read_text("utf-8") == before


def test_run_names_a_wrong_field(small: Path) -> None:
    small.write_text(SMALL.replace("message_drop: 0.5", "message_drop: 1.5"), encoding="utf-8")
    assert call("run", small, code=1).stderr == "error: failures.message_drop must be from 0 to 1, got 1.5\n"
    assert "no built-in scenario" in call("run", "no-such", code=1).stderr
    call("run", small, "--seed", -1, code=2)


def test_run_writes_what_the_scenario_names(small: Path, tmp_path: Path) -> None:
    named = {"trace": str(tmp_path / "traces" / "t.jsonl"), "report": str(tmp_path / "pictures" / "p.svg")}
    small.write_text(SMALL + f"output: {json.dumps(named)}\n", encoding="utf-8")
    call("run", small)
    ElementTree.parse(tmp_path / "pictures" / "p.svg")
    assert report_of(tmp_path / "traces" / "t.jsonl").seed == 3


def test_list_shows_the_built_in_scenarios() -> None:
    assert "memory_swarm" in call("list").stdout
    assert json.loads(call("list", "--json").stdout)[0]["name"] == "concurrent_writers"


def test_report_prints_tables_and_writes_a_picture(trace: Path, tmp_path: Path) -> None:
    shown = call("report", trace, "-o", tmp_path / "a.svg").stdout
    for text in ("writer", "reader", "evicted", "lost: drop", "capacity 10", "entries"):
        assert text in shown
    picture = (tmp_path / "a.svg").read_text("utf-8")
    said = json.loads(call("report", trace, "-o", tmp_path / "folder", "--json").stdout)
    assert said["memory"]["(memory)"]["evicted"] > 0
    assert (tmp_path / "folder" / "memory.svg").read_text("utf-8") == picture
    assert json.loads((tmp_path / "folder" / "report.json").read_text("utf-8"))["name"] == "small <&> one"
    call("report", trace, "-o", tmp_path / "folder")  # its own files are replaced
    (tmp_path / "mine.svg").write_text("mine", encoding="utf-8")
    assert "is not a picture" in call("report", trace, "-o", tmp_path / "mine.svg", code=1).stderr
    assert "is not an event of a trace" in call("report", tmp_path / "a.svg", code=1).stderr


def test_run_replays_a_recording(tmp_path: Path) -> None:
    scenario = tmp_path / "chat.yaml"
    text = "{name: x, agents: {count: 2, brain: chat}, task: {type: chat, config: {rounds: 1}}}"
    scenario.write_text(text, encoding="utf-8")
    from recollect.sim import Recorder

    run(Scenario.load(scenario), chat=Recorder(lambda _: "Hello.", tmp_path / "r.jsonl"))
    assert "written" in call("run", scenario, "--recording", tmp_path / "r.jsonl").stdout
    assert "chat" in call("run", scenario, code=1).stderr


def test_check_judges_a_trace_and_exits_with_1_if_a_validator_fails(tmp_path: Path) -> None:
    path = tmp_path / "market.jsonl"
    call("run", "marketplace", "-o", path)
    assert "passed  marketplace_all_responded" in call("check", path).stdout
    sold = {"agent": "seller-0", "corr": "x", "kind": "send", "msg": "sold:product-1:7", "size": 16, "to": "buyer-0"}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**sold, "ts": 9999.0}) + "\n")
    said = json.loads(call("check", path, "--json", code=1).stdout)
    assert {each["name"]: each["passed"] for each in said}["marketplace_price_agreement"] is False
    assert "is not the task of this trace" in call("check", path, "--scenario", "no-such", code=1).stderr


def test_check_refuses_a_trace_that_is_empty_cut_off_or_has_a_gap(tmp_path: Path) -> None:
    path, whole = tmp_path / "trace.jsonl", tmp_path / "whole.jsonl"
    call("run", "concurrent_writers", "-o", whole)
    lines = whole.read_text().splitlines(keepends=True)
    memory = next(number for number, line in enumerate(lines) if '"seq":7,' in line)
    negative = lines[memory].replace('"ts":', '"ts":-')
    for text, said in (
        ("", "has no events"),
        ("".join(lines[:-3]), "is cut off"),
        ("".join(lines[:memory] + lines[memory + 1 :]), "by its place"),
        ("".join([*lines[:memory], negative, *lines[memory + 1 :]]), "cannot be right"),
    ):
        path.write_text(text)
        assert said in call("check", path, "--scenario", "concurrent_writers", code=1).stderr


def test_options_of_a_store_are_refused(tmp_path: Path) -> None:
    assert "layers.memory" in call("run", "marketplace", "--db", tmp_path / "a.db", code=1).stderr
    assert "brain is chat" in call("run", "marketplace", "--recording", __file__, code=1).stderr


def test_a_trace_that_cannot_be_written_is_an_error_that_names_it(small: Path, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "trace.jsonl"
    assert str(path) in call("run", small, "-o", path, code=1).stderr
    with pytest.raises(StoreIOError, match="missing"):
        run(Scenario.load(small), trace=path)
