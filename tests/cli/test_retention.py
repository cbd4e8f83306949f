"""The commands of retention: rules are set after their plan was shown, and a run removes what the plan lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import Run

CHATS = ("--rule", "chats", "--where", "user=ana", "--after", "90d")


@pytest.fixture
def chats(run: Run) -> None:
    """A store with two old records of Ana and one of Bob."""
    for number, user in enumerate(("ana", "ana", "bob")):
        run("remember", f"text {number}", "--id", f"r{number}", "--user", user, "--time", f"2020-01-0{number + 1}")


def parsed(run: Run, *arguments: str) -> Any:
    return json.loads(run("retention", *arguments, "--json").stdout)


@pytest.mark.usefixtures("chats")
def test_rules_are_set_planned_and_run(run: Run) -> None:
    assert "stay until they are forgotten" in run("retention", "show").stdout
    out = run("retention", "set", *CHATS, "--yes").stdout
    assert "due: 2 records, 0 former versions" in out
    assert "90d since time" in out
    plan = parsed(run, "plan")
    assert [(each["rule"], each["count"], each["samples"]) for each in plan] == [("chats", 2, ["r0", "r1"])]
    assert "2020-01-01" in run("retention", "plan").stdout
    assert parsed(run, "plan", "--samples", "1")[0]["samples"] == ["r0"]
    assert parsed(run, "run") == plan
    assert "removed: 0 records" in run("retention", "run").stdout
    found = run("find", "--json").stdout
    assert [f"r{number}" in found for number in range(3)] == [False, False, True]
    last = json.loads(run("log", "--json").stdout)
    assert "retention: chats" in json.dumps(last)
    assert "recollect retention" in json.dumps(last)


@pytest.mark.usefixtures("chats")
def test_a_rule_by_which_something_is_due_at_once_must_be_confirmed(run: Run) -> None:
    refused = run("retention", "set", *CHATS, code=2)
    assert "due: 2 records" in refused.stdout
    assert "--yes" in refused.stderr
    assert parsed(run, "show") == {"rules": [], "keep_versions": None}
    later = ("--rule", "later", "--after", "5000w")
    assert "due: 0 records" in run("retention", "set", *later).stdout  # nothing is due, nothing to confirm


@pytest.mark.usefixtures("chats")
def test_one_rule_is_put_in_its_place_and_the_others_stay(run: Run) -> None:
    run("retention", "set", *CHATS, "--yes")
    run("retention", "set", "--rule", "rest", "--keep-newest", "5", "--since", "written", "--include-pinned", "--yes")
    run("retention", "set", "--rule", "court", "--where", "user=ana", "--action", "hold", "--first")
    run("retention", "set", "--rule", "chats", "--after", "10d", "--action", "erase", "--yes", "--keep-versions", "30d")
    found = parsed(run, "show")
    assert found == {
        "rules": [
            {"name": "court", "where": {"user": "ana"}, "action": "hold"},
            {"name": "chats", "after": "10d", "action": "erase"},
            {"name": "rest", "since": "written", "keep_newest": 5, "include_pinned": True},
        ],
        "keep_versions": "30d",
    }
    shown = run("retention", "show").stdout
    assert "former versions stay for 30d" in shown
    assert "but the newest 5" in shown
    assert [each["name"] for each in parsed(run, "set", "--drop", "chats")["rules"]] == ["court", "rest"]
    assert parsed(run, "set", "--keep-versions", "none")["keep_versions"] is None
    assert parsed(run, "set", "--none") == {"rules": [], "keep_versions": None, "plan": []}


@pytest.mark.usefixtures("chats")
def test_rules_come_from_a_file_as_show_prints_them(run: Run, tmp_path: Path) -> None:
    run("retention", "set", *CHATS, "--yes", "--keep-versions", "30d")
    path = tmp_path / "rules.json"
    path.write_text(run("retention", "show", "--json").stdout, "utf-8")
    run("retention", "set", "--none")
    run("retention", "set", "--rules", str(path), "--yes")
    assert parsed(run, "show") == json.loads(path.read_text("utf-8"))
    listed = '[{"name": "chats", "where": "user=bob", "after": "90d"}]'
    run("retention", "set", "--rules", "-", "--yes", input=listed)
    assert parsed(run, "show")["rules"] == [{"name": "chats", "where": {"user": "bob"}, "after": "90d"}]


@pytest.mark.usefixtures("chats")
@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        ((), "pass --rules, --rule, --drop, --keep-versions or --none", 2),
        (("--after", "90d"), "are for --rule NAME", 2),
        (("--none", *CHATS), "pass either --rules", 2),
        (("--rule", "a"), "must be stated, such as '90d'", 1),
        (("--rule", "a", "--after", "soon"), "must be a duration", 1),
        (("--rule", "a", "--action", "hold", "--after", "1d"), "ends with no age", 1),
        (("--drop", "a"), "is not the name of a rule: none", 1),
        (("--keep-versions", "soon"), "must be a duration", 1),
    ],
)
def test_what_makes_no_rule_is_refused_and_sets_nothing(
    run: Run, arguments: tuple[str, ...], message: str, code: int
) -> None:
    assert message in run("retention", "set", *arguments, code=code).stderr
    assert parsed(run, "show")["rules"] == []


@pytest.mark.usefixtures("chats")
@pytest.mark.parametrize("text", ["{", "5", "[5]", '[{"name": "a"}]', '{"rule": []}', '[{"after": "1d"}]'])
def test_a_file_that_has_no_rules_is_refused(run: Run, text: str) -> None:
    assert "error" in run("retention", "set", "--rules", "-", "--yes", input=text, code=1).stderr
    assert parsed(run, "show")["rules"] == []
