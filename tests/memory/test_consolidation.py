"""Consolidation: groups, their cut, provenance, one commit, refusal and taking it back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.exports import exported

import recollect
from recollect import Memory
from recollect.errors import ConflictError, InvalidArgumentError, ReadOnlyMemoryError, SummaryError
from recollect.memory.consolidation import Consolidated, Summary
from recollect.text.summaries import LONGEST, extractive

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)

pytestmark = pytest.mark.stores("memory", clock=lambda: NOW)


def chat(memory: Memory, count: int, name: str = "chat", **fields: Any) -> list[str]:
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"{name} says item {n}."} for n in range(count)]
    report = memory.add_messages(messages, conversation=name, time=START, **fields)
    return [outcome.record.id for outcome in report.results if outcome.record]


def joined(texts: Sequence[str]) -> str:
    return f"{len(texts)} texts"


# What the specification says


def test_a_summary_has_the_provenance_of_the_specification(memory: Memory) -> None:
    for n in range(10):
        memory.record_entity_fact(
            "ada",
            "Ada",
            f"fact {n}",
            importance=n / 10,
            time=START + timedelta(days=n),
            metadata={"first": n, f"own{n}": n},
            tags=[f"t{n % 2}"],
        )
    originals = memory.find(order="oldest")
    (group,) = memory.consolidate(NOW, summariser=joined).groups
    record = group.record
    assert record is not None
    assert memory.find() == [record]
    assert (record.kind, record.content, record.entity) == ("entity", "10 texts", "ada")
    assert (record.time, record.importance) == (START + timedelta(days=9), 0.9)
    assert set(record.tags) == {"t0", "t1"}
    assert record.derived_from == tuple(each.id for each in originals) == group.sources
    metadata = dict(record.metadata)
    assert metadata.pop("original_ids") == [each.id for each in originals]
    assert metadata.pop("consolidated_from") == 10
    assert metadata.pop("consolidated_at") == NOW.isoformat()
    assert metadata.pop("consolidation_method") == "summariser"
    assert metadata == {
        "entity_id": "ada",
        "entity_name": "Ada",
        "entity_type": "unknown",
        "first": 0,
        **{f"own{n}": n for n in range(10)},
    }


def test_the_groups_are_those_of_the_specification(memory: Memory) -> None:
    chat(memory, 4, "one")
    chat(memory, 4, "two")
    for n in range(3):
        memory.record_entity_fact("ada", "Ada", f"fact {n}")
        memory.record_user_fact(f"fact {n}", user="ana")
        memory.record_user_fact(f"fact {n}", user="bob")
        memory.remember(f"page {n}", kind="knowledge", source="book")
        memory.record_task(f"task {n}", "done", True)
        memory.record_task(f"task {n}", "lost", False)
        memory.remember(f"recipe {n}", kind="recipe")  # custom: never
        memory.remember(f"no user {n}", kind="user_fact")  # without the value: no group with each other
        memory.remember(f"no source {n}", kind="knowledge")
        memory.remember(f"no conversation {n}", kind="conversation")
    done = memory.consolidate(min_count=3, summariser=joined, dry_run=True)
    assert [(each.kind, each.key, len(each.sources)) for each in done.groups] == [
        ("conversation", "one", 4),
        ("conversation", "two", 4),
        ("entity", "ada", 3),
        ("knowledge", "book", 3),
        ("task", "false", 3),
        ("task", "true", 3),
        ("user_fact", "ana", 3),
        ("user_fact", "bob", 3),
    ]


def test_a_group_is_cut_to_fifty_its_newest_of_a_conversation_its_oldest(memory: Memory) -> None:
    turns = chat(memory, 60)
    facts = [memory.record_user_fact(f"fact {n}", user="ana", time=START + timedelta(hours=n)).id for n in range(60)]
    first, second = memory.consolidate(dry_run=True).groups
    assert list(first.sources) == turns[:50]
    assert list(second.sources) == facts[10:]


def test_min_count_applies_after_the_cut(memory: Memory) -> None:
    chat(memory, 60)
    assert memory.consolidate(min_count=51, dry_run=True).groups == ()
    assert len(memory.consolidate(min_count=50, dry_run=True).groups) == 1


def test_a_group_is_cut_to_the_maximum_of_the_call(memory: Memory) -> None:
    turns = chat(memory, 60)
    (largest,) = memory.consolidate(max_count=60, dry_run=True).groups
    (smaller,) = memory.consolidate(min_count=5, max_count=5, dry_run=True).groups
    assert (list(largest.sources), list(smaller.sources)) == (turns, turns[:5])
    assert memory.consolidate(max_count=9).groups == ()


def test_records_at_the_limit_are_old_enough_and_younger_ones_are_not(memory: Memory) -> None:
    for n in range(4):
        memory.record_user_fact(f"fact {n}", user="ana", time=START + timedelta(days=n))
    (group,) = memory.consolidate(START + timedelta(days=2), 2, dry_run=True).groups
    assert len(group.sources) == 3
    assert memory.consolidate(NOW - START - timedelta(days=2), 2, dry_run=True).groups == (group,)
    assert memory.consolidate(START, 2, dry_run=True).groups == ()


@pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")  # of a proposal
def test_records_of_different_owners_pinned_ones_and_standing_instructions_stay_apart(memory: Memory) -> None:
    for user in ("ana", "bob"):
        for n in range(3):
            memory.record_entity_fact("ada", "Ada", f"{user} knows {n}", user=user)
    memory.record_entity_fact("ada", "Ada", "pinned", user="ana", pinned=True)
    memory.record_entity_fact("ada", "Ada", "standing", user="ana", tags=["standing:preference"])
    memory.record_entity_fact("ada", "Ada", "former", user="ana", valid_to=START)
    groups = memory.consolidate(min_count=2, dry_run=True).groups
    assert [len(each.sources) for each in groups] == [3, 3]
    for each in groups:
        assert len({record.user for record in map(memory.get, each.sources) if record}) == 1


# One commit, in the log, and back


@pytest.mark.promise("consolidate.commit")
def test_it_is_one_commit_with_the_cause_superseded_that_revert_takes_back(memory: Memory) -> None:
    chat(memory, 12, "one")
    chat(memory, 12, "two")
    root, seq = memory.root, memory.seq
    done = memory.consolidate(actor="night", reason="tidy")
    assert (done.replaced, done.seq, memory.seq) == (24, seq + 1, seq + 1)
    (commit,) = memory.changes(seq)
    assert (commit.actor, commit.reason) == ("night", "tidy")
    assert sorted(change.cause for change in commit.changes) == ["superseded"] * 24 + ["written"] * 2
    assert memory.history(done.groups[0].sources[0])[-1].cause == "superseded"
    assert done.seq is not None
    memory.revert(done.seq)
    assert memory.root == root


def test_a_dry_run_changes_nothing_and_shows_the_summaries_of_the_built_in_method(memory: Memory) -> None:
    chat(memory, 12)
    before = exported(memory)
    dry = memory.consolidate(dry_run=True)
    assert exported(memory) == before
    done = memory.consolidate()
    assert [each.text for each in dry.groups] == [each.text for each in done.groups]
    assert dry.seq is None
    assert all(each.record is None for each in dry.groups)

    def never(texts: Sequence[str]) -> str:
        raise AssertionError("a dry run calls no model")

    memory.consolidate(min_count=2, summariser=never, dry_run=True)


@pytest.mark.promise("consolidate.changed")
def test_a_record_that_another_writer_changed_meanwhile_stays_with_its_group(memory: Memory) -> None:
    one, two = chat(memory, 3, "one"), chat(memory, 3, "two")

    def slow(texts: Sequence[str]) -> str:
        memory.update(one[1], importance=1.0)
        return joined(texts)

    done = memory.consolidate(min_count=3, summariser=slow)
    first, second = done.groups
    assert first.record is None
    assert "changed meanwhile" in first.reason
    assert second.sources == tuple(two)
    assert second.record is not None
    assert done.failed == (first,)
    assert all(memory.get(each) is not None for each in one)


def test_a_forgotten_record_is_not_brought_back(memory: Memory) -> None:
    ids = chat(memory, 3)

    def slow(texts: Sequence[str]) -> str:
        memory.forget(ids[0])
        return joined(texts)

    assert memory.consolidate(min_count=3, summariser=slow).replaced == 0
    assert memory.count() == 2


def test_a_full_quota_has_room_because_the_sources_go_first(memory: Memory) -> None:
    chat(memory, 12)
    memory.set_quota(records=12)
    assert memory.consolidate().replaced == 12


def test_the_rest_of_a_long_conversation_follows_and_a_list_that_is_passed_again_adds_nothing(memory: Memory) -> None:
    chat(memory, 60)
    assert [memory.consolidate().replaced, memory.count()] == [50, 11]
    chat(memory, 62)
    assert memory.count() == 13  # only the two new turns
    newest = memory.find(order="newest", limit=20)
    assert sum("item" in str(each.content) and each.role != "system" for each in newest) == 12
    assert memory.conversation_context("chat").startswith("Previous conversation:\n[system]: ")
    assert memory.consolidate().replaced == 13  # the summary is summarised with the turns after it
    assert memory.count() == 1


def test_a_scope_consolidates_its_own_records(memory: Memory) -> None:
    chat(memory, 10, "a", user="ana")
    chat(memory, 10, "b", user="bob")
    done = memory.scoped(user="ana").consolidate()
    assert (done.replaced, done.seq, memory.count("user=bob")) == (10, None, 10)


def test_the_past_can_be_asked_what_would_be_done(memory: Memory) -> None:
    chat(memory, 10)
    seq = memory.seq
    memory.clear()
    assert len(memory.at(seq).consolidate(dry_run=True).groups) == 1
    with pytest.raises(ReadOnlyMemoryError):
        memory.at(seq).consolidate()


# Summaries that fail


@pytest.mark.parametrize(
    ("summariser", "reason"),
    [
        (lambda texts: "", "no text"),
        (lambda texts: " \n", "no text"),
        (lambda texts: None, "no text"),
        (lambda texts: "x" * 2001, "2001 characters"),
        (lambda texts: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_failed_summary_leaves_the_originals_or_raises_if_strict(
    summariser: Any, reason: str, memory: Memory
) -> None:
    chat(memory, 10)
    before = exported(memory)
    (group,) = memory.consolidate(summariser=summariser).failed
    assert reason in group.reason
    with pytest.raises(SummaryError, match=reason):
        memory.consolidate(summariser=summariser, strict=True)
    assert exported(memory) == before


def test_one_failed_group_does_not_keep_the_others(memory: Memory) -> None:
    chat(memory, 10, "bad")
    chat(memory, 10, "good")

    def picky(texts: Sequence[str]) -> str:
        if "bad" in texts[0]:
            raise RuntimeError("no")
        return joined(texts)

    done = memory.consolidate(summariser=picky)
    assert [each.key for each in done.failed] == ["bad"]
    assert done.replaced == 10
    assert memory.count() == 11


def test_only_the_texts_that_fit_in_the_window_are_replaced(memory: Memory) -> None:
    ids = chat(memory, 10)

    class Small:
        name = "small/1"

        def fitting(self, texts: Sequence[str]) -> int:
            return 6

        def __call__(self, texts: Sequence[str]) -> str:
            return joined(texts)

    (group,) = memory.consolidate(min_count=5, summariser=Small()).groups
    assert group.record is not None
    assert (group.sources, group.record.content) == (tuple(ids[:6]), "6 texts")
    assert group.record.metadata["consolidation_method"] == "small/1"
    memory.revert(memory.seq)
    (group,) = memory.consolidate(min_count=7, summariser=Small()).failed
    assert "only 6 of the texts fit" in group.reason


def test_a_summariser_gets_no_secrets(memory: Memory) -> None:
    memory.record_user_fact("my password is hunter2", user="ana")
    memory.record_user_fact("lives in Oslo", user="ana")
    seen: list[str] = []

    def spy(texts: Sequence[str]) -> str:
        seen.extend(texts)
        return joined(texts)

    memory.consolidate(min_count=2, summariser=spy)
    assert "my password is ***REDACTED***" in seen


def test_a_summary_that_a_policy_refuses_leaves_its_group(memory: Memory) -> None:
    chat(memory, 10)
    memory.set_policies(redaction="refuse")
    (group,) = memory.consolidate(summariser=lambda texts: "token=abc").failed
    assert "a policy does not allow it" in group.reason
    assert memory.count() == 10


@pytest.mark.parametrize(
    "arguments",
    [
        {"min_count": 1},
        {"min_count": True},
        {"max_count": 1},
        {"max_count": True},
        {"max_count": "many"},
        {"older_than": "soon"},
        {"summariser": "gpt"},
        {"older_than": 7},
    ],
)
def test_invalid_arguments_are_errors(arguments: dict[str, Any], memory: Memory) -> None:
    with pytest.raises((InvalidArgumentError, recollect.errors.InvalidRecordError)):
        memory.consolidate(**arguments)


def test_results_have_a_json_form(memory: Memory) -> None:
    chat(memory, 10)
    done = memory.consolidate()
    assert tuple(map(Summary.from_json, done.to_json()["groups"])) == done.groups
    assert isinstance(done, Consolidated)
    assert "10 records" in repr(done)


# Merging


def test_merging_takes_over_what_the_sources_have_in_common(memory: Memory) -> None:
    one = memory.remember("Ana likes tea", user="ana", kind="user_fact", importance=0.3, tags=["a"])
    two = memory.remember("Ana likes green tea", user="ana", kind="user_fact", agent="x", importance=0.6, tags=["b"])
    merged = memory.merge([one, two.id], "Ana likes tea, green tea most", importance=0.7)
    assert (merged.user, merged.agent, merged.importance, merged.tags) == ("ana", None, 0.7, ("a", "b"))
    assert merged.derived_from == (one.id, two.id)
    assert memory.find() == [merged]


def test_merging_what_was_changed_or_is_not_there_changes_nothing(memory: Memory) -> None:
    one, two = memory.remember("one"), memory.remember("two")
    memory.update(one.id, importance=0.5)
    with pytest.raises(ConflictError):
        memory.merge([one, two], "both")
    with pytest.raises(recollect.errors.UnknownRecordError):
        memory.merge([two, "nothing"], "both")
    with memory.batch() as batch:
        with pytest.raises(ConflictError):
            batch.merge([one, two], "both")
        batch.remember("three")
    assert memory.count() == 3


@pytest.mark.parametrize("sources", [[], "one", None, 7, [7]])
def test_merging_needs_a_list_of_records(sources: Any, memory: Memory) -> None:
    with pytest.raises((InvalidArgumentError, recollect.errors.InvalidRecordError)):
        memory.merge(sources, "text")


# The built-in summary


@settings(max_examples=some(100))
@given(texts=st.lists(st.text(max_size=300), max_size=8), limit=st.integers(1, 300))
def test_an_extractive_summary_consists_of_sentences_of_the_texts_and_fits(texts: list[str], limit: int) -> None:
    summary = extractive(texts, limit)
    assert len(summary) <= limit
    assert all(any(line in text for text in texts) for line in summary.splitlines() if line)
    assert extractive(texts, limit) == summary


def test_a_summary_says_once_what_is_repeated_and_prefers_what_several_texts_say() -> None:
    texts = ["We ship on Friday. The weather is mild.", "We ship on Friday.", "I had soup. We ship on Friday, then."]
    assert extractive(texts, 25).splitlines() == ["We ship on Friday."]


def test_a_summary_has_at_most_two_thousand_characters_and_uses_them() -> None:
    texts = [f"Sentence number {n} tells of the thing called thing{n}." for n in range(200)]
    assert 1900 < len(extractive(texts)) <= LONGEST


def test_a_long_text_without_sentences_gives_no_summary() -> None:
    assert extractive(["x" * 30_000]) == ""
    assert extractive([]) == ""
