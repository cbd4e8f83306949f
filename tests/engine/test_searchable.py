"""Records that are stored and not searched: `searchable=False`."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.errors import InvalidRecordError
from recollect.operations import FindSimilar
from recollect.records.record import Record
from recollect.text.manner import STANDING_TAGS


def filled(memory: Memory) -> None:
    memory.remember("Ana keeps her bicycle in the cellar", id="seen", conversation="c", position=0, speaker="ben")
    memory.remember(
        "Where was it? The bicycle key lies under the stone",
        id="hidden",
        searchable=False,
        conversation="c",
        position=1,
        speaker="zoe",
        tags=list(STANDING_TAGS),
    )
    memory.remember("It rained all night", id="other", conversation="c", position=2, speaker="ben")


def test_recall_and_contexts_never_return_it(memory: Memory) -> None:
    filled(memory)
    assert "hidden" not in [hit.record.id for hit in memory.recall("where is the bicycle key?", k=10)]
    assert "stone" not in str(memory.context("where is the bicycle key?"))
    similar = memory.execute(FindSimilar(text="The bicycle key lies under the stone"))
    assert similar.found
    assert "hidden" not in [each.record.id for each in similar.found]


def test_get_find_count_and_grep_return_it(memory: Memory) -> None:
    filled(memory)
    record = memory.get("hidden")
    assert record is not None
    assert not record.searchable
    assert [each.id for each in memory.find(f.speaker("zoe"))] == ["hidden"]
    assert [each.id for each in memory.find(~f.has("searchable"))] == ["hidden"]
    assert memory.count(f.has("searchable")) == 2
    assert [each.id for each in memory.find(f.matches("stone"))] == ["hidden"]


def test_scores_are_as_if_it_were_not_stored(memory: Memory, tmp_path: Path) -> None:
    filled(memory)
    with recollect.open(tmp_path / "without.db") as without:
        for record in memory.find(f.has("searchable")):
            without.remember(
                record.content,
                **{name: getattr(record, name) for name in ("id", "conversation", "position", "speaker", "time")},
            )
        for question in ("where is the bicycle key?", "what did zoe say?", "it", "what about the night?"):
            ours, theirs = memory.recall(question), without.recall(question)
            assert [(hit.record.id, hit.score, hit.confidence) for hit in ours] == [
                (hit.record.id, hit.score, hit.confidence) for hit in theirs
            ]


def test_it_becomes_searchable_and_back_by_an_update(memory: Memory) -> None:
    filled(memory)
    memory.update("hidden", searchable=True)
    assert memory.recall("where is the bicycle key?")[0].record.id == "hidden"
    memory.update("hidden", searchable=False)
    assert "hidden" not in [hit.record.id for hit in memory.recall("where is the bicycle key?", k=10)]
    memory.update("hidden", searchable=None)
    record = memory.get("hidden")
    assert record is not None
    assert record.searchable


def test_only_such_a_record_can_be_blank(memory: Memory) -> None:
    assert memory.remember("", id="empty", searchable=False).content == ""
    with pytest.raises(InvalidRecordError, match="is empty"):
        memory.remember(" \n")
    with pytest.raises(InvalidRecordError, match="is empty"):
        memory.update("empty", searchable=True)
    with pytest.raises(InvalidRecordError, match="must be True or False"):
        memory.remember("x", searchable=0)  # type: ignore[arg-type]


def test_its_json_and_bytes_state_it_and_those_of_others_do_not() -> None:
    hidden, seen = Record(id="a", content="x", searchable=False), Record(id="a", content="x", searchable=True)
    assert seen.to_bytes() == Record(id="a", content="x").to_bytes()
    assert "searchable" not in seen.to_json()
    assert hidden.to_json()["searchable"] is False
    assert hidden != seen
    for record in (hidden, Record(id="a", content="", searchable=False)):
        assert Record.from_json(record.to_json()) == Record.from_bytes(record.to_bytes()) == record
        assert Record.load(record.to_bytes()) == record
