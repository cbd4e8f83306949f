"""The inspector shows any branch that the client may reach, and changes that one alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.inspector.pages import Reader, inspected

import recollect


@pytest.fixture
def branched(tmp_path: Path) -> Iterator[tuple[Reader, recollect.Memory]]:
    """A store with a branch that has changed what main has."""
    with inspected(tmp_path) as (reader, memory):
        memory.remember("Ana lives in Bergen", id="home", user="ana")
        memory.branch("what-if").update("home", content="Ana lives in Oslo")
        yield reader, memory


def test_branches_are_listed_and_each_is_shown(branched: tuple[Reader, recollect.Memory]) -> None:
    reader, _ = branched
    first = reader.get("")
    assert "what-if commit 2" in first.words
    assert "Bergen" in reader.get("records").words
    link = next(each for each in first.links if "branch=what-if" in each)
    page = reader.get(link)
    assert "Branch what-if" in page.words
    assert all("branch=what-if" in each for each in page.links if each.startswith(("records", "search", "log")))
    assert "Oslo" in reader.get("records", branch="what-if").words
    assert "Oslo" in reader.get("me", branch="what-if", person="ana").words
    assert "Bergen" in reader.get("records", branch="what-if", at="1").words
    assert reader.json("search", branch="what-if", q="Where does Ana live?")["hits"][0]["record"]["content"].endswith(
        "Oslo"
    )


def test_a_change_is_made_in_the_branch_that_is_shown(branched: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = branched
    page = reader.get("record", branch="what-if", id="home")
    after = reader.send(page.form("update"), content="Ana lives in Rome")
    assert "Branch what-if" in after.words
    assert memory.on("what-if").get("home").content == "Ana lives in Rome"  # type: ignore[union-attr]
    assert memory.get("home").content == "Ana lives in Bergen"  # type: ignore[union-attr]
    reader.send(after.form("revert"))
    assert memory.on("what-if").get("home").content == "Ana lives in Oslo"  # type: ignore[union-attr]


def test_the_calls_of_a_search_name_the_branch(branched: tuple[Reader, recollect.Memory]) -> None:
    reader, _ = branched
    calls = reader.json("search", branch="what-if", q="Where?")["calls"]
    assert calls["python"].startswith("memory.on('what-if').recall(")
    assert "--branch what-if" in calls["command"]
    assert "'Recollect-Branch: what-if'" in calls["curl"]


def test_a_branch_that_is_none_or_is_not_allowed_is_refused(tmp_path: Path) -> None:
    with inspected(tmp_path, tokens=True) as (reader, memory):
        memory.remember("Ana lives in Bergen", id="home")
        memory.branch("what-if").update("home", content="Ana lives in Oslo")
        reader.token = reader.server.token("main-alone", "write")
        assert "Bergen" in reader.get("records").words
        assert "what-if" not in reader.get("").words
        assert "Oslo" not in reader.get("records", 403, branch="what-if").words
        reader.token = reader.server.token("both", "write", branches=("main", "what-if", "none"))
        assert "what-if" in reader.get("").words
        assert "Oslo" in reader.get("records", branch="what-if").words
        assert "no branch 'none'" in reader.get("records", 404, branch="none").words
