"""Validity in recall: what is true at the time in question comes before what it replaced, which stays a hit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.engine.read import recall as recalling
from recollect.engine.read import validity
from recollect.records.codec import microseconds
from recollect.text.dates import named

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)

pytestmark = pytest.mark.stores("memory", clock=lambda: NOW)


def replace(memory: Memory, old: str, new: str, text: str, at: str = "2026-03-01") -> None:
    """Do as `supersede`, with a chosen id."""
    with memory.batch() as batch:
        batch.update(old, valid_to=at)
        batch.remember(text, id=new, supersedes=[old], valid_from=at)


def move(memory: Memory) -> None:
    memory.remember("Ana lives in Rome, near the Tiber", id="rome", valid_from="2024-05-01")
    replace(memory, "rome", "oslo", "Her flat is in Oslo now", "2026-02-01")
    memory.remember("Ben likes to read about Rome", id="ben")


def ids(memory: Memory, question: str, **arguments: object) -> list[str]:
    return [hit.record.id for hit in memory.recall(question, **arguments)]  # type: ignore[arg-type]


def test_what_replaced_a_fact_comes_first_even_if_it_shares_no_word_with_the_question(memory: Memory) -> None:
    move(memory)
    first, second = memory.recall("Does Ana live near the Tiber?")[:2]
    assert (first.record.id, second.record.id) == ("oslo", "rome")
    assert first.score == pytest.approx(2 * second.score, rel=1e-6)
    assert first.why.replaces == ("rome",)
    assert set(first.why.shares) == {"replaces"}
    assert sum(first.why.shares.values()) == first.score
    assert str(first.why).endswith("; replaces rome")
    assert second.why.replaces == ()


def test_the_past_is_asked_with_a_time_in_the_question_or_with_a_reference(memory: Memory) -> None:
    move(memory)
    assert ids(memory, "Did Ana live near the Tiber in 2025?")[0] == "rome"
    assert ids(memory, "Does Ana live near the Tiber?", reference=datetime(2025, 3, 5, tzinfo=UTC))[0] == "rome"
    assert ids(memory, "Did Ana live near the Tiber yesterday?")[0] == "oslo"


def test_the_last_of_several_replacements_inherits_from_the_first(memory: Memory) -> None:
    move(memory)
    replace(memory, "oslo", "boat", "She moved to a boat")
    hits = memory.recall("Does Ana live near the Tiber?")
    assert [hit.record.id for hit in hits][:2] == ["boat", "rome"]
    assert hits[0].why.replaces == ("oslo",)
    memory.forget("boat")
    assert ids(memory, "Does Ana live near the Tiber?")[0] == "rome"  # nothing that is valid replaces it


def test_links_in_a_circle_end(memory: Memory) -> None:
    memory.remember("The kettle is red", id="a", supersedes=["b"], valid_to="2026-01-01")
    memory.remember("The kettle is blue", id="b", supersedes=["a"], valid_to="2026-01-01")
    assert sorted(ids(memory, "Which colour is the kettle?")) == ["a", "b"]


def test_a_fact_that_is_not_true_yet_or_no_longer_counts_half(memory: Memory) -> None:
    for id_, fields in (("was", {"valid_to": "2026-01-01"}), ("is", {}), ("will be", {"valid_from": "2027-01-01"})):
        memory.remember("The kettle is red", id=id_, **fields)  # type: ignore[arg-type]
    scores = {hit.record.id: hit.score for hit in memory.recall("kettle")}
    assert scores["was"] == scores["will be"] == pytest.approx(scores["is"] / 2, rel=1e-6)


def test_a_filter_changes_no_score(memory: Memory) -> None:
    move(memory)
    question = "Does Ana live near the Tiber?"
    everything = {hit.record.id: hit for hit in memory.recall(question)}
    for where in (f.id("rome"), f.id("oslo"), f.supersedes("rome"), f.valid_at(NOW), f.has("valid_to")):
        for hit in memory.recall(question, where=where):
            assert hit == everything[hit.record.id]
    assert ids(memory, question, where=f.supersedes("rome")) == ["oslo"]


def test_a_short_cut_for_few_records_that_are_not_valid_changes_no_answer(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    move(memory)
    for place in range(30):
        memory.remember(f"The kettle number {place} is red" + " indeed" * place, id=f"kettle {place}")
        if place % 3 == 0:
            memory.supersede(f"kettle {place}", f"It is blue: number {place}", at="2026-03-01")
    questions = ("Is the kettle red?", "kettle number 3", "Does Ana live near the Tiber?", "Ben", "blue")
    by_short_cut = [memory.recall(question, k) for question in questions for k in (1, 3, 50)]
    monkeypatch.setattr(recalling, "_FEW_LAPSED", -1)
    whole = [memory.recall(question, k) for question in questions for k in (1, 3, 50)]
    assert [hits.hits for hits in by_short_cut] == [hits.hits for hits in whole]


@pytest.mark.parametrize("few", [1000, -1], ids=["short cut", "whole"])
def test_the_place_of_a_standing_record_and_the_number_reached_do_not_depend_on_k(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(recalling, "_FEW_LAPSED", few)
    for place in range(20):
        memory.remember(f"The harbour, number {place}", id=f"harbour {place:02}")
    memory.remember("A harbour that was closed, after" + " long" * 30 + " years", id="old", valid_to="2025-01-01")
    memory.remember("Always answer in French", id="new", supersedes=["old"])
    memory.remember("Never call me at night", id="other")
    found = [memory.recall("harbour", k) for k in (3, 30)]
    assert [hits.plan.passed for hits in found] == [21, 21]
    assert found[0].standing == found[1].standing
    assert [(hit.record.id, hit.score) for hit in found[0].standing] == [("new", 0), ("other", 0)]
    assert ids(memory, "harbour", k=30)[-2:] == ["new", "old"]


def test_what_is_reached_by_its_month_stays_a_hit_beside_what_replaces_it(memory: Memory) -> None:
    memory.remember("Rome", id="rome", valid_to="2024-01-01", time="2024-05-03")
    memory.remember("Paris", id="paris", time="2024-05-04")
    memory.remember("Oslo", id="oslo", supersedes=["rome"], time="2026-01-01", valid_from="2024-01-01")
    assert set(ids(memory, "what happened in May 2024")) == {"paris", "oslo", "rome"}


def test_a_filter_changes_no_share_of_a_member(memory: Memory) -> None:
    for place, text in enumerate(["A harbour", "Our cat lay in the harbour", "A boat", "Our cat lay in the boat"]):
        memory.remember(text, id=f"{place}", kind="note")
    memory.remember("A boat of long ago", id="old", valid_to="2025-01-01")
    question = "Which pets were in the boat or in the harbour?"
    everything = {hit.record.id: hit for hit in memory.recall(question)}
    assert {each for each, hit in everything.items() if "member" in hit.why.shares} == {"1", "3"}
    for where in (f.kind("note"), f.id("1", "3"), f.id("3")):
        for hit in memory.recall(question, where=where):
            assert hit == everything[hit.record.id]


def test_an_instruction_that_was_replaced_no_longer_stands(memory: Memory) -> None:
    memory.remember("Always answer in French.", id="french")
    assert [hit.record.id for hit in memory.recall("kettle").standing] == ["french"]
    replace(memory, "french", "german", "Always answer in German.")
    assert [hit.record.id for hit in memory.recall("Always answer kettle").standing] == ["german"]


def test_what_replaces_is_shown_in_the_json_form_and_within_a_scope(memory: Memory) -> None:
    scoped = memory.scoped(user="ana")
    scoped.remember("The kettle is red", id="a")
    replace(scoped, "a", "b", "It is blue")
    hits = scoped.recall("Is the kettle red?")
    assert [(hit.record.id, hit.why.replaces) for hit in hits] == [("b", ("a",)), ("a", ())]
    assert recollect.Hits.from_json(hits.to_json()) == hits
    assert "replaces" not in hits.to_json()["hits"][1]["why"]


@pytest.mark.parametrize(
    ("question", "first", "end"),
    [
        ("in 2025", datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)),
        ("in May and June 2025", datetime(2025, 5, 1, tzinfo=UTC), datetime(2025, 7, 1, tzinfo=UTC)),
        ("on 3 May 2025", datetime(2025, 5, 3, tzinfo=UTC), datetime(2025, 5, 4, tzinfo=UTC)),
        ("last week", datetime(2026, 2, 23, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)),
        ("now", NOW, NOW),
    ],
)
def test_the_time_in_question_is_the_named_one_or_the_reference(question: str, first: datetime, end: datetime) -> None:
    found = validity.time_in_question(named(question, NOW.date()), NOW)
    assert found == (microseconds(first), microseconds(end) + (first == end))


def test_a_month_of_no_year_is_no_time(memory: Memory) -> None:
    assert validity.time_in_question(named("in May", NOW.date()), NOW) is None
