"""The design of sdr-memory, line by line.

Lines that other tests have in the same words are not repeated here: codes, scores and the table (`tests/facets/sdr`),
the time of 100,000 texts (`bench/sdrs.py`, docs/benchmarks.md), the salience of texts at each door
(`tests/policies/test_salience.py`), the lines of the socket (`tests/server/test_actions.py`), and the names and the
daemon of the page (`docs/sdr-memory.md`, whose blocks run).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.mcp.clients import in_process
from tests.paths import ROOT

import recollect
from recollect.errors import RejectedError
from recollect.sdr import SDRMemory, read_table, rule_score, write_table
from recollect.sdr import encode as code

PAGE = (ROOT / "docs" / "sdr-memory.md").read_text("utf-8")
TEXT = "The class FooBarBaz is in /Srv/App"


def test_a_text_is_answered_as_it_was_stored_and_normalised_in_the_table_only(tmp_path: Path) -> None:
    with recollect.open(":memory:") as memory, in_process(memory, ["sdr"]) as server:
        assert memory.sdr.store(TEXT) == 1
        (hit,) = memory.sdr.query("where is foobarbaz?")
        stored = memory.sdr.get(1)
        assert stored is not None
        assert {hit["text"], stored["text"], server.ok("find_texts", text="foobarbaz")["texts"][0]["text"]} == {TEXT}
        write_table(tmp_path / "texts.sqlite", memory.sdr.texts())
    with closing(sqlite3.connect(tmp_path / "texts.sqlite")) as table:
        ((column,),) = table.execute("SELECT text FROM memories").fetchall()
    assert column == TEXT.lower()
    (row,) = read_table(tmp_path / "texts.sqlite")
    assert (row["id"], row["text"]) == (1, TEXT.lower())


def test_a_text_passes_through_the_salience_filter_before_it_is_stored() -> None:
    with SDRMemory(":memory:") as memory:
        memory.memory.set_policies(salience="normal")
        with pytest.raises(RejectedError, match="narrates"):
            memory.store("let me check the logs")
        assert memory.store(TEXT) == 1
        assert memory.query("let me check the logs", rule=True)[0]["text"] == TEXT


def test_by_the_rule_the_score_falls_and_as_many_come_as_are_asked_for() -> None:
    with SDRMemory(":memory:") as memory:
        for number in range(8):
            memory.store(f"Error {number}: the pool of database {number * 7} is exhausted")
        hits = memory.query("pool exhausted", limit=5, rule=True)
        scores = [hit["score"] for hit in hits]
        assert len(scores) == 5
        assert scores == sorted(scores, reverse=True)
        best = max(rule_score(code("pool exhausted", rule=True), code(each["text"], rule=True)) for each in hits)
        assert scores[0] == best


def test_the_names_that_have_no_class_here_are_said_with_what_takes_their_place() -> None:
    for name in ("MemoryStore", "MemoryDaemon"):
        assert f"| `{name}`" in PAGE
    assert "NumPy is the only dependency" in PAGE
