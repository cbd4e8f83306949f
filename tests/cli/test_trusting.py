"""The commands on who said what (docs/trust.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import Run, parsed

PAGE = "https://pages.example/museum"


@pytest.fixture
def told(run: Run) -> Run:
    """A store with the word of the user, of a page, and what was made from that."""
    run("remember", "The museum opens at ten.", "--id", "said", "--user", "ana")
    run("remember", "The museum opens at nine.", "--id", "page", "--source", PAGE)
    run("remember", "Museum: nine o'clock.", "--id", "note", "--derived-from", "page")
    return run


def test_proposals_are_listed_and_several_are_endorsed_at_once(told: Run) -> None:
    told("remember", "Always answer in French", "--id", "wish", "--origin", "assistant")
    assert "`recollect endorse` makes it so" in told("remember", "Use tables", "--pinned", "--origin", "web").output
    proposed = told("update", "said", "--content", "It opens at six.", "--origin", "assistant").output
    assert "instead of said, which is of a higher class" in proposed
    listed = parsed(told("endorse", "--json"))
    assert [each["ids"] for each in listed] == [[], [], ["said"]]
    assert "proposals: 3" in told("endorse").output
    assert "findings: 3" in told("audit", "--signal", "proposal").output
    told("endorse", *(each["id"] for each in listed[:2]), "--reason", "Ana says so")
    assert [each["ids"] for each in parsed(told("endorse", "--json"))] == [["said"]]
    newest = parsed(told("log", "--json", "--limit", "1"))[0]
    assert (newest["reason"], len(newest["changes"])) == ("Ana says so", 2)


def test_several_are_endorsed_or_none(told: Run) -> None:
    told("endorse", "page", "missing", code=1)
    assert "word of the web" not in told("endorse", "page", "--as", "document").output
    read = parsed(told("get", "page", "--json"))["hash"]
    told("endorse", "page", "--expect", "0" * 64, code=1)
    told("endorse", "page", "note", "--expect", read, code=2)
    said = told("endorse", "page", "--expect", read).output
    assert said == "page is the word of the user: The museum opens at nine.\n"
    assert told("endorse", "page", "--as", "web").output.startswith("page is already the word of the user")
    assert told("endorse", "page", "--as", "owner").output.startswith("page is the word of the owner")


def test_what_something_was_made_from_is_shown(told: Run) -> None:
    shown = told("lineage", "note").output
    assert "note [web] Museum: nine o'clock." in shown
    assert "  derived_from: page [web] The museum opens at nine." in shown
    assert "least class of origin: web" in shown


def test_what_was_made_from_a_page_is_shown_and_forgotten_and_comes_back(told: Run) -> None:
    assert parsed(told("taint", "--source", PAGE, "--json"))["by_depth"] == [["page"], ["note"]]
    done = told("taint", "page", "--forget", "--reason", "a lie").output
    assert "forgotten: 2; `recollect revert" in done
    assert [each["id"] for each in parsed(told("find", "--json"))["records"]] == ["said"]
    seq = parsed(told("log", "--json", "--limit", "1"))[0]["seq"]
    told("revert", str(seq))
    assert len(parsed(told("find", "--json"))["records"]) == 3
    told("taint", code=2)


def test_what_a_policy_keeps_apart_is_listed_released_and_rejected(told: Run) -> None:
    told("policies", "--origin", "web=quarantine")
    for name in ("one", "two"):
        kept = told("remember", f"The museum of {name} is shut.", "--id", name, "--source", PAGE).output
        assert "a policy keeps it apart: `recollect quarantine` lists it" in kept
    assert {each["id"] for each in parsed(told("quarantine", "--json"))} == {"one", "two"}
    assert "is not in quarantine" in told("quarantine", "--release", "three", code=1).output
    assert told("quarantine", "--release", "one", "--reject", "two").output == "released: 1 (one), rejected: 1\n"
    assert parsed(told("quarantine", "--json")) == []
    assert told("get", "two", code=1)


def test_questions_and_contexts_take_a_least_class_and_tables_show_what_is_below_the_user(told: Run) -> None:
    question = "When does the museum open?"
    rows = told("recall", question).output
    assert "[web] The museum opens at nine." in rows
    assert "[web] Museum: nine o'clock." in rows
    assert "[user]" not in rows
    assert [
        hit["record"]["id"] for hit in parsed(told("recall", question, "--min-origin", "user", "--json"))["hits"]
    ] == ["said"]
    assert "nine" in told("context", question, "--user", "ana").output
    assert "nine" not in told("context", question, "--user", "ana", "--min-origin", "user").output
    told("recall", question, "--min-origin", "stranger", code=2)
    told("remember", "Opens late.", "--role", "assistant", "--conversation", "c")
    assert "[assistant]" not in told("find").output, "the role says so"


def test_imported_items_are_of_the_class_of_their_format_or_of_the_stated_one(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "facts.jsonl"
    source.write_text('{"content": "likes tea"}\n{"content": "a page", "source": "https://pages.example/a"}\n', "utf-8")
    run("import", "jsonl", str(source))
    assert {each["origin"] for each in parsed(run("find", "--json"))["records"]} == {"unknown"}
    run("forget", "--where", "origin=unknown", "--yes")
    run("import", "jsonl", str(source), "--as-origin", "user", "--tag", "mine")
    assert [each.get("origin") for each in parsed(run("find", "--json", "--where", "tag=mine"))["records"]] == [
        None,
        None,
    ]
    assert len(parsed(run("find", "--json", "--where", "tag=mine", "--where", "origin=web"))["records"]) == 1
    refused = run("import", "jsonl", str(source), "--as-origin", "user", "--origin", "web", code=1)
    assert "the class 'user'" in refused.output


def test_an_import_says_what_is_of_a_lower_class_than_it_was(run: Run, tmp_path: Path) -> None:
    run("remember", "The house is mine.", "--origin", "owner")
    run("remember", "likes tea")
    run("export", str(tmp_path / "all.jsonl"))
    lowered = "of a lower class of origin than in the export, above that of --origin"
    assert f"{lowered}: 1" in run("import", "jsonl", str(tmp_path / "all.jsonl"), "--db", str(tmp_path / "b.db")).output
    again = run("import", "jsonl", str(tmp_path / "all.jsonl"), "--db", str(tmp_path / "c.db"), "--origin", "owner")
    assert lowered not in again.output


def test_a_class_that_could_not_be_given_is_said(run: Run) -> None:
    said = run("remember", "Opens at nine.", "--source", PAGE, "--origin", "user").output
    assert "(as the word of the web: neither what it is from, nor a token, has more)" in said
    assert "as the word of" not in run("remember", "Opens at ten.", "--origin", "user").output
