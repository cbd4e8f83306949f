"""Real conversations in, answers out: LoCoMo's development file through the command line, as a user would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.examples import FULL

import recollect

#: Places in the first conversation's list of questions: of several categories, each with one evidence turn.
ASKED = (0, 3, 5, 6, 8, 9, 82, 83, 84, 86, 152, 153) if FULL else (6, 152)
#: At least this many more questions are taken from the file itself, by rule: those with one evidence turn.
MORE = 40


class Imported(NamedTuple):
    """The file, and the store that the command made of it."""

    file: Path
    store: Path
    report: dict[str, Any]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory, data_folder: Path) -> Imported:
    file = data_folder / "locomo" / "locomo5-dev.json"
    store = tmp_path_factory.mktemp("locomo") / "locomo.db"
    return Imported(file, store, json.loads(command(store, "import", "locomo", str(file), "--json"))[0])


def command(store: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "--db", str(store), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_an_import_makes_a_namespace_for_each_conversation_and_again_adds_nothing(imported: Imported) -> None:
    assert imported.report["damaged"] == []
    assert set(imported.report["namespaces"]) == {"conv-26", "conv-30", "conv-41", "conv-42", "conv-43"}
    again = json.loads(command(imported.store, "import", "locomo", str(imported.file), "--json"))[0]
    assert (again["created"], again["unchanged"]) == (0, imported.report["created"])


def test_a_question_on_the_command_line_finds_its_turn_by_the_dialogue_id(imported: Imported) -> None:
    conversation = json.loads(imported.file.read_text(encoding="utf-8"))[0]
    for place in ASKED:
        question = conversation["qa"][place]
        (turn,) = question["evidence"]
        answer = command(imported.store, "recall", question["question"], "-n", "conv-26", "-k", "5", "--json")
        assert turn in [hit["record"]["id"] for hit in json.loads(answer)["hits"]], question["question"]


def test_most_questions_with_one_evidence_turn_are_answered_among_the_first_five(imported: Imported) -> None:
    conversation = json.loads(imported.file.read_text(encoding="utf-8"))[0]
    asked = [
        (question["question"], question["evidence"][0])
        for question in conversation["qa"]
        if question["category"] == 4 and len(question["evidence"]) == 1
    ][:MORE]
    assert len(asked) == MORE
    with recollect.open(imported.store, conversation["sample_id"]) as memory:
        found = [turn in {hit.record.id for hit in memory.recall(question, k=5)} for question, turn in asked]
    # A floor, so that a broken signal is noticed; quality itself is measured by the evaluation.
    assert sum(found) >= 0.75 * MORE
