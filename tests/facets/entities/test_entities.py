"""Entities: the index of mentions, views, aliases, relations, graphs, and facts that are extracted from texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import Memory
from recollect.errors import EmbedderError, InvalidArgumentError
from recollect.facets.entities.operations import Edge, EntityGraph, EntityView
from recollect.records.record import Record
from recollect.testing.loopback import core_of
from recollect.text.entities import entities
from recollect.text.facts import Extracted, blended, facts_in, rule_importance

START = datetime(2026, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.stores("memory")


@pytest.fixture
def memory_of_people(memory: Memory) -> Memory:
    texts = [
        "I met Ada Lovelace in London.",
        "Ada Lovelace works with Charles Babbage.",
        "Charles Babbage moved to Oslo.",
        "it rained all day",
    ]
    for day, text in enumerate(texts):
        memory.remember(text, id=f"r{day}", time=START + timedelta(days=day))
    return memory


# The index


def test_entities_are_listed_by_how_many_records_mention_them(memory_of_people: Memory) -> None:
    found = [(each.id, each.name, each.type, each.records) for each in memory_of_people.entities()]
    assert found == [
        ("ada_lovelace", "Ada Lovelace", "person", 2),
        ("charles_babbage", "Charles Babbage", "person", 2),
        ("london", "London", "place", 1),
        ("oslo", "Oslo", "place", 1),
    ]
    assert [each.id for each in memory_of_people.entities("place")] == ["london", "oslo"]
    assert [each.id for each in memory_of_people.entities(limit=1)] == ["ada_lovelace"]


def test_an_entity_has_a_timeline_and_those_together_with_it(memory_of_people: Memory) -> None:
    view = memory_of_people.entity("ada lovelace")
    assert view is not None
    assert [(each.id, each.time) for each in view.timeline] == [("r0", START), ("r1", START + timedelta(days=1))]
    assert view.together == (("charles_babbage", 1), ("london", 1))
    assert memory_of_people.entity("Ada Lovelace", limit=1).timeline == view.timeline[1:]  # type: ignore[union-attr]
    assert memory_of_people.entity("nobody in particular") is None
    assert EntityView.from_json(view.to_json()) == view


def test_the_index_follows_the_log(memory_of_people: Memory) -> None:
    assert memory_of_people.entity("Oslo") is not None
    memory_of_people.update("r2", content="Charles Babbage moved to Rome.")
    assert memory_of_people.entity("Oslo") is None
    assert memory_of_people.entity("Rome") is not None
    seq = memory_of_people.seq
    memory_of_people.forget("r2")
    assert memory_of_people.entity("Rome") is None
    memory_of_people.revert(seq + 1)
    assert memory_of_people.entity("Rome") is not None
    memory_of_people.erase("r2", redact=True)
    assert memory_of_people.entity("Rome") is None
    assert [each.records for each in memory_of_people.entities("person")] == [2, 1]


def test_the_index_is_that_of_all_records_and_is_caught_up_not_read_again(
    memory_of_people: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_of_people.entities()

    def never(*args: Any) -> Any:
        raise AssertionError("all records were read again")

    monkeypatch.setattr(core_of(memory_of_people).facets["mentions"], "start", never)
    memory_of_people.remember("Grace Hopper moved to Oslo")
    assert [each.records for each in memory_of_people.entities() if each.id == "oslo"] == [2]


def test_what_has_expired_is_not_mentioned(tmp_path: Path) -> None:
    now = [START]
    with recollect.open(tmp_path / "m.db", clock=lambda: now[0]) as memory:
        memory.remember("Ada Lovelace was here", ttl=60)
        assert memory.entity("Ada Lovelace") is not None
        now[0] += timedelta(seconds=61)
        assert memory.entity("Ada Lovelace") is None
        assert memory.entities() == []


def test_a_scope_sees_the_mentions_of_its_own_records(memory: Memory) -> None:
    memory.remember("Ada Lovelace in Paris", user="ana", id="a")
    memory.remember("Ada Lovelace in Rome", user="bob", id="b")
    memory.merge_entities("The Countess", "Ada Lovelace", user="bob")
    scoped = memory.scoped(user="ana")
    assert [each.id for each in scoped.entities()] == ["ada_lovelace", "paris"]
    view = scoped.entity("Ada Lovelace")
    assert view is not None
    assert view.together == (("paris", 1),)
    assert view.entity.aliases == ()
    assert scoped.entity("Rome") is None
    scoped.remember("Rome it is", id="mine")
    assert [each.id for each in scoped.entity("Rome").timeline] == ["mine"]  # type: ignore[union-attr]


def test_a_batch_and_the_past_have_their_own_mentions(memory_of_people: Memory) -> None:
    seq = memory_of_people.seq
    with memory_of_people.batch() as batch:
        batch.remember("Grace Hopper moved to Bergen")
        assert batch.entity("Bergen") is not None
        assert memory_of_people.entity("Bergen") is None
    assert memory_of_people.entity("Bergen") is not None
    past = memory_of_people.at(seq)
    assert past.entity("Bergen") is None
    assert [each.id for each in past.entities()] == ["ada_lovelace", "charles_babbage", "london", "oslo"]
    assert past.paths("London", "Oslo") == memory_of_people.paths("London", "Oslo")


def test_what_is_not_cached_is_read_within_the_scope_only(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.remember("Ada Lovelace in Paris", user="ana")
    memory.remember("Charles Babbage in Rome", user="bob")
    read: list[str] = []

    def noted(text: str, **how: Any) -> Any:
        read.append(text)
        return entities(text, **how)

    monkeypatch.setattr("recollect.facets.entities.mentions.entities", noted)
    scoped = memory.scoped(user="ana")
    assert [each.id for each in scoped.at(datetime.now(UTC)).entities()] == ["ada_lovelace", "paris"]
    with scoped.batch() as batch:
        batch.remember("Grace Hopper")
        assert [each.id for each in batch.entities()] == ["ada_lovelace", "grace_hopper", "paris"]
    assert {*read} == {"Ada Lovelace in Paris", "Grace Hopper"}


texts = st.sampled_from(["Ada Lovelace", "Charles Babbage", "Oslo", "Ada Lovelace in Oslo", "nothing"])
steps = st.lists(st.tuples(st.sampled_from("abc"), st.none() | texts), max_size=12)


@pytest.mark.promise("entities.follows")
@settings(max_examples=some(60), deadline=None)
@given(steps=steps)
def test_after_any_writes_the_index_is_what_reading_all_records_gives(steps: list[tuple[str, str | None]]) -> None:
    with recollect.open(":memory:") as memory:
        for id_, text in steps:
            if text is None:
                if memory.get(id_) is not None:
                    memory.forget(id_)
            elif memory.get(id_) is not None:
                memory.update(id_, content=text)
            else:
                memory.remember(text, id=id_)
            followed = memory.entities()
            with memory.batch() as batch:
                assert batch.entities() == followed


# Aliases, relations and graphs


def test_an_alias_counts_as_the_entity_until_the_record_that_says_so_is_forgotten(memory_of_people: Memory) -> None:
    memory_of_people.remember("The Countess of Lovelace likes tea", id="c")
    said = memory_of_people.merge_entities("Countess of Lovelace", "Ada Lovelace")
    view = memory_of_people.entity("Countess of Lovelace")
    assert view is not None
    assert (view.entity.id, view.entity.name, view.entity.aliases) == (
        "ada_lovelace",
        "Ada Lovelace",
        ("countess_of_lovelace",),
    )
    assert sorted(each.id for each in view.timeline) == ["c", "r0", "r1"]
    assert memory_of_people.merge_entities("Countess of Lovelace", "Ada Lovelace") == said
    memory_of_people.forget(said.id)
    assert [each.id for each in memory_of_people.entity("Ada Lovelace").timeline] == ["r0", "r1"]  # type: ignore[union-attr]


def test_chains_and_circles_of_aliases_end(memory: Memory) -> None:
    memory.remember("Ada Lovelace", id="a")
    memory.merge_entities("Countess", "Lady Ada")
    memory.merge_entities("Lady Ada", "Ada Lovelace")
    assert memory.entity("countess").entity.id == "ada_lovelace"  # type: ignore[union-attr]
    memory.merge_entities("Ada Lovelace", "Countess")
    assert {memory.entity(name).entity.id for name in ("countess", "lady_ada", "ada_lovelace")} == {  # type: ignore[union-attr]
        "ada_lovelace"
    }


def test_relations_are_records_of_their_own_kind_and_show_in_views(memory_of_people: Memory) -> None:
    record = memory_of_people.relate("Ada Lovelace", "admires", "Mary Somerville", user="ana")
    assert (record.kind, record.user, record.content) == ("relation", "ana", "Ada Lovelace admires Mary Somerville")
    assert memory_of_people.relate("Ada Lovelace", "admires", "Mary Somerville", user="ana") == record
    view = memory_of_people.entity("Mary Somerville")
    assert view is not None
    assert view.relations == (Edge("ada_lovelace", "mary_somerville", "admires", 1),)


def test_a_graph_has_the_nearest_entities_and_what_connects_them(memory_of_people: Memory) -> None:
    near = memory_of_people.neighbours("London")
    assert [each.id for each in near.nodes] == ["london", "ada_lovelace"]
    assert near.edges == (Edge("ada_lovelace", "london", "", 1),)
    far = memory_of_people.neighbours("London", depth=3)
    assert [each.id for each in far.nodes] == ["london", "ada_lovelace", "charles_babbage", "oslo"]
    assert len(far.edges) == 3
    assert EntityGraph.from_json(far.to_json()) == far
    assert [each.id for each in memory_of_people.neighbours("London", depth=3, limit=1).nodes] == [
        "london",
        "ada_lovelace",
    ]
    assert memory_of_people.neighbours("Atlantis") == EntityGraph((), ())


def test_paths_are_found_up_to_a_length_shortest_first(memory_of_people: Memory) -> None:
    memory_of_people.relate("London", "far from", "Oslo")
    assert memory_of_people.paths("London", "Oslo") == [
        ["london", "oslo"],
        ["london", "ada_lovelace", "charles_babbage", "oslo"],
    ]
    assert memory_of_people.paths("London", "Oslo", longest=2) == [["london", "oslo"]]
    assert memory_of_people.paths("London", "Oslo", limit=1) == [["london", "oslo"]]
    assert memory_of_people.paths("London", "London") == [["london"]]
    assert memory_of_people.paths("London", "Atlantis") == []


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.entities(limit=0),
        lambda m: m.entities(type=""),
        lambda m: m.entity(""),
        lambda m: m.entity(7),
        lambda m: m.neighbours("x", depth=0),
        lambda m: m.paths("x", "y", longest=0),
        lambda m: m.relate("x", "", "y"),
        lambda m: m.relate("x", "is", "y", kind="other"),
        lambda m: m.merge_entities("Ada", "ada"),
        lambda m: m.extract_entities(7),
        lambda m: m.extract_entities("x", default_importance=2),
        lambda m: m.extract_entities("x", extractor=lambda text: ["x"]),
        lambda m: m.extract_entities("x", importance=0.5),
    ],
)
def test_invalid_arguments_are_errors(call: Any, memory: Memory) -> None:
    with pytest.raises(InvalidArgumentError):
        call(memory)


# Facts


def test_the_deterministic_importance_is_that_of_the_specification() -> None:
    assert rule_importance("Alice prefers tea", "person") == pytest.approx(0.8)
    assert blended(0.9, rule_importance("Alice prefers tea", "person")) == pytest.approx(0.87)
    assert rule_importance("drinks tea", "place") == 0.5
    assert rule_importance("has 2 cats", "place") == pytest.approx(0.55)
    assert rule_importance("x" * 80, "unknown") == pytest.approx(0.55)
    assert rule_importance("must always pay 5 euros by the deadline " + "x" * 80, "organization", 0.9) == 1.0
    assert rule_importance("mustard is nevermore", "unknown") == 0.5  # whole words


@pytest.mark.parametrize("word", "prefers always never requires critical important deadline allergy must".split())
def test_each_weighty_word_counts_once(word: str) -> None:
    assert rule_importance(f"it {word.upper()} {word} x", "unknown") == pytest.approx(0.7)


def test_facts_are_extracted_by_rules_and_stored_once(memory: Memory) -> None:
    text = "Ada Lovelace prefers tea. She likes rain. Is Bob there? Ada Lovelace prefers tea."
    report = memory.extract_entities(text, user="ana", conversation="chat")
    (outcome,) = report.results
    record = outcome.record
    assert record is not None
    assert (record.kind, record.entity, record.content) == ("entity", "ada_lovelace", "Ada Lovelace prefers tea.")
    assert (record.user, record.conversation, record.importance) == ("ana", "chat", 0.8)
    assert record.metadata["entity_type"] == "person"
    assert memory.extract_entities("Ada Lovelace prefers TEA. Nothing else.", user="ana").results == ()
    assert memory.extract_entities("").results == ()


def test_a_sentence_about_two_entities_is_stored_once_and_known_of_both(memory: Memory) -> None:
    (outcome,) = memory.extract_entities("Ada Lovelace moved to London.").results
    record = outcome.record
    assert record is not None
    assert (record.entity, record.metadata["also_about"]) == ("ada_lovelace", ["london"])
    assert memory.extract_entities("ada lovelace MOVED to London.").results == ()
    for entity in ("ada_lovelace", "london"):
        assert "moved to London" in memory.entity_context(entity)
    assert memory.entity_context("london").startswith("Known facts about london:")  # the name is of the other entity
    memory.extract_entities("London is a city.")
    assert memory.entity_context("london").startswith("Known facts about London:")
    assert memory.entity_context("paris") == ""


def test_what_is_stored_for_one_user_is_still_stored_for_another(memory: Memory) -> None:
    for user in ("ana", "bob", None):
        fields: Any = {} if user is None else {"user": user}
        assert memory.extract_entities("Ada Lovelace prefers tea.", **fields).count("created") == 1
        assert memory.extract_entities("Ada Lovelace prefers tea.", **fields).results == ()
    scoped = memory.scoped(user="ana")
    assert scoped.extract_entities("Ada Lovelace prefers tea.").results == ()


def test_facts_of_an_extractor_are_deduplicated_and_weighted(memory: Memory) -> None:
    facts = [
        Extracted("Alice", "person", "Alice prefers tea", 0.9),
        Extracted("ALICE", "person", "alice prefers TEA", 0.1),
        Extracted("Bob", "person", "drinks coffee"),
    ]
    report = memory.extract_entities("any", extractor=lambda text: facts)
    stored = [outcome.record for outcome in report.results if outcome.record]
    assert [(each.content, each.importance) for each in stored] == [
        ("Alice prefers tea", 0.87),
        ("drinks coffee", 0.6),
    ]
    again = [Extracted("alice", "person", "ALICE PREFERS TEA"), Extracted("Bob", "person", "likes rain")]
    assert [
        o.record.content for o in memory.extract_entities("any", extractor=lambda text: again).results if o.record
    ] == ["likes rain"]


def test_an_extractor_that_fails_stores_nothing(memory: Memory) -> None:
    def failing(text: str) -> list[Extracted]:
        raise EmbedderError("model", "broken")

    with pytest.raises(EmbedderError):
        memory.extract_entities("Ada Lovelace", extractor=failing)
    assert memory.count() == 0


def test_a_fact_is_the_sentence_word_for_word() -> None:
    assert [each.fact for each in facts_in("Wow! Ada Lovelace moved. It was Ada.")] == [
        "Ada Lovelace moved.",
        "It was Ada.",
    ]


def test_bytes_and_records_without_text_mention_nothing(memory: Memory) -> None:
    memory.remember_all([Record(id="b", content=b"Ada Lovelace", media_type="text/plain")])
    assert memory.entities() == []
