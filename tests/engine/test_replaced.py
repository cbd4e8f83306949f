"""A live record that another live record replaces is not valid from then on, in recall and in texts for a model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import recollect
from recollect import Batch, Memory
from recollect.engine.read import replaced
from recollect.memory.context.values import Style
from recollect.operations import ValidUntil
from recollect.stores.memory import MemoryStore
from recollect.testing import memory_on

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


pytestmark = pytest.mark.stores("memory", clock=lambda: NOW)


def ends(calls: Memory | Batch, ids: list[str]) -> dict[str, datetime]:
    """Return when records stop being valid."""
    found: dict[str, datetime] = calls.execute(ValidUntil(ids=tuple(ids)))
    return found


def chain(memory: Memory, **fields: object) -> None:
    """Rome, then Oslo, then Bergen; each replaces the one before, only by its link."""
    cities = (("Rome", "2026-01-01", ()), ("Oslo", "2026-03-01", ("Rome",)), ("Bergen", "2026-06-01", ("Oslo",)))
    for city, time, supersedes in cities:
        memory.remember(f"Ana has a flat in {city}", id=city, time=time, supersedes=supersedes, user="ana", **fields)  # type: ignore[arg-type]


def ids(memory: Memory, question: str, **arguments: object) -> list[str]:
    return [hit.record.id for hit in memory.recall(question, **arguments)]  # type: ignore[arg-type]


def test_a_link_ends_what_it_names_when_its_own_record_begins(memory: Memory) -> None:
    chain(memory)
    assert ends(memory, ["Rome", "Oslo", "Bergen", "none"]) == {
        "Rome": day("2026-03-01"),
        "Oslo": day("2026-06-01"),
    }
    assert ids(memory, "Where is Ana's flat?") == ["Bergen", "Oslo", "Rome"]
    first, second, _ = memory.recall("Where is Ana's flat?")
    assert second.score < 0.6 * first.score
    memory.remember("a", id="dated", valid_from="2025-05-05", time="2026-02-02", supersedes=["Bergen"], user="ana")
    assert ends(memory, ["Bergen"]) == {"Bergen": day("2025-05-05")}


def test_what_was_valid_at_the_time_in_question_comes_first(memory: Memory) -> None:
    chain(memory)
    assert ids(memory, "Where is Ana's flat?", reference=day("2026-04-01"))[0] == "Oslo"
    assert ids(memory, "Where was Ana's flat in February 2026?")[0] == "Rome"


def test_forgetting_what_replaces_a_record_makes_it_valid_again(memory: Memory) -> None:
    chain(memory)
    memory.forget("Bergen")
    assert ends(memory, ["Oslo"]) == {}
    assert ids(memory, "Where is Ana's flat?")[0] == "Oslo"


@pytest.mark.parametrize("reopened", [False, True])
def test_a_chain_gives_its_end_where_the_middle_was_forgotten(tmp_path: Path, reopened: bool) -> None:
    path = tmp_path / "a.db"
    memory = recollect.open(path, clock=lambda: NOW)
    chain(memory)
    memory.recall("flat")  # with the links cached
    memory.forget("Oslo")
    if reopened:
        memory.close()
        memory = recollect.open(path, clock=lambda: NOW)
    with memory:
        assert ends(memory, ["Rome", "Bergen"]) == {"Rome": day("2026-06-01")}
        assert ids(memory, "Where is Ana's flat?") == ["Bergen", "Rome"]
        assert "Rome" not in memory.context("Where is Ana's flat?", user="ana")
        memory.remember("She has a houseboat", id="boat", time="2026-07-01", supersedes=["Bergen"], user="ana")
        memory.forget("Bergen")
        assert ids(memory, "Is Ana's flat in Rome?")[0] == "boat"


def test_an_erased_middle_says_nothing_any_more(memory: Memory) -> None:
    chain(memory)
    memory.forget("Oslo")
    assert ends(memory, ["Rome"])
    memory.erase("Oslo")
    assert ends(memory, ["Rome"]) == {}


def test_a_record_without_a_time_replaces_always(memory: Memory) -> None:
    memory.remember("red", id="old")
    memory.remember("blue", id="new", supersedes=["old"])
    memory.update("new", time=None)
    assert ends(memory, ["old"])["old"].year == 1


def test_links_in_a_circle_replace_nothing_and_others_do(memory: Memory) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        memory.remember(f"kettle {name}", id=name, supersedes=[other])
    assert ends(memory, ["a", "b", "c"]) == {}
    memory.remember("kettle d", id="d", supersedes=["a"])
    memory.remember("kettle e", id="e", supersedes=["e"])
    assert ends(memory, ["a", "b", "c", "d", "e"]).keys() == {"a"}


def test_a_record_of_another_user_replaces_nothing(memory: Memory) -> None:
    chain(memory)
    memory.remember("Bob says Ana has a tent", id="tent", user="bob", supersedes=["Bergen"])
    assert ends(memory, ["Bergen"]) == {}
    memory.remember("Everybody knows: a tent", id="shared", supersedes=["Bergen"])
    assert ends(memory, ["Bergen"]).keys() == {"Bergen"}


def test_a_scope_sees_its_own_links_under_its_own_names(memory: Memory) -> None:
    for user in ("ana", "bob"):
        scope = memory.scoped(user=user)
        scope.remember(f"{user}: pier 3", id="pier", time="2026-01-01")
        scope.remember(f"{user}: pier 7", time="2026-05-01" if user == "ana" else "2026-06-01", supersedes=["pier"])
    assert ends(memory.scoped(user="ana"), ["pier"]) == {"pier": day("2026-05-01")}
    assert ends(memory.scoped(user="bob"), ["pier"]) == {"pier": day("2026-06-01")}
    stored = [record.id for record in memory.find("user=ana") if record.text.endswith("3")]
    assert ends(memory, stored) == {stored[0]: day("2026-05-01")}


@pytest.mark.parametrize("link", ["i" * 255, "@user=ana/pier"])
def test_a_link_that_no_scope_can_have_chosen_harms_no_question(memory: Memory, link: str) -> None:
    memory.remember("pier 3", id="i" * 255)
    memory.remember("pier 7", user="ana", supersedes=[link])
    assert len(memory.recall("pier")) == 2
    assert ends(memory, ["i" * 255]) == {}  # it has no user, so no record of a user replaces it


def test_the_past_has_the_links_of_then_and_a_batch_its_own(memory: Memory) -> None:
    memory.remember("pier 3", id="old", time="2026-01-01")
    before = memory.seq
    with memory.batch() as batch:
        batch.remember("pier 7", id="new", time="2026-05-01", supersedes=["old"])
        assert ends(batch, ["old"]) == {"old": day("2026-05-01")}
        assert "pier 3" not in batch.context("pier")
    assert ends(memory.at(before), ["old"]) == {}
    assert ends(memory.at(memory.seq), ["old"]) == {"old": day("2026-05-01")}


def test_changed_and_expired_records_change_what_is_replaced() -> None:
    now = [NOW]
    with memory_on(MemoryStore(), clock=lambda: now[0]) as memory:
        memory.remember("pier 3", id="old", time="2026-01-01")
        memory.remember("pier 7", id="new", time="2026-05-01", supersedes=["old"], expires=NOW + timedelta(hours=1))
        assert ends(memory, ["old"])
        memory.update("old", importance=0.5)  # is another document now
        assert ends(memory, ["old"]) == {"old": day("2026-05-01")}
        now[0] += timedelta(hours=2)
        assert ends(memory, ["old"]) == {}


def test_a_reader_that_ignores_links_gives_the_old_fact(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the code before let `supersedes` by itself end nothing."""
    from recollect.engine.read import queries, recall

    memory.remember("We move on 14 March", id="old", time="2026-01-05")
    memory.remember("The move is on the 21st of March", id="new", time="2026-02-08", supersedes=["old"])
    assert ids(memory, "When do we move?")[0] == "new"
    for module in (queries, recall):
        monkeypatch.setattr(module, "replaced", lambda view, branch, words: replaced.NONE_REPLACED)
    assert ids(memory, "When do we move?")[0] == "old"
    assert "14 March" in memory.context("When do we move?")


class TestTexts:
    def test_contexts_leave_out_what_is_not_valid_and_say_so(self, memory: Memory) -> None:
        chain(memory)
        context = memory.context("Where is Ana's flat?", user="ana")
        assert "Bergen" in context
        assert "Oslo" not in context
        assert "Rome" not in context
        assert {item.record.id: item.outcome for item in context.items}["Rome"] == "not valid"

    def test_history_stands_with_its_end(self, memory: Memory) -> None:
        chain(memory)
        styles: tuple[tuple[Style, str], ...] = (
            ("markdown", "- 2026-01-01, until 2026-03-01: Ana has a flat in Rome"),
            ("xml", '<fact time="2026-01-01" until="2026-03-01">Ana has a flat in Rome</fact>'),
            ("llm4s", "- Ana has a flat in Rome (until 2026-03-01)"),
        )
        for style, shown in styles:
            context = memory.context("Where was Ana's flat before?", user="ana", style=style)
            assert shown in context
            assert "2026-06-01" in context
            assert "Bergen" in context
        (item, *_) = memory.context("Where was Ana's flat in February 2026?", user="ana").items
        assert (item.record.id, item.outcome) == ("Rome", "whole")

    def test_what_will_be_valid_is_left_out_until_then(self, memory: Memory) -> None:
        memory.remember("The ferry leaves from pier 9", id="later", valid_from="2027-01-01")
        assert memory.context("ferry") == ""
        assert "pier 9" in memory.context("ferry", reference="2027-02-01")

    def test_facts_of_users_and_entities_and_turns_are_those_that_hold(self, memory: Memory) -> None:
        chain(memory, kind="user_fact", entity="ana")
        assert memory.user_context("ana") == "Known facts about the user:\n- Ana has a flat in Bergen"
        assert memory.entity_context("ana") == "Known facts about ana:\n- Ana has a flat in Bergen"
        memory.remember("I live in Rome", id="said", kind="conversation", conversation="c", role="user")
        memory.remember("No, in Oslo", kind="conversation", conversation="c", role="user", supersedes=["said"])
        assert memory.conversation_context("c") == "Previous conversation:\n[user]: No, in Oslo"

    def test_pinned_and_standing_records_that_were_replaced_are_left_out(self, memory: Memory) -> None:
        memory.remember("Always answer in French.", id="french", time="2026-01-01")
        memory.remember("Always answer in Dutch.", time="2026-02-01", supersedes=["french"])
        memory.remember("The office is in Graz", id="graz", pinned=True, time="2026-01-01")
        memory.remember("The office is in Linz", pinned=True, time="2026-02-01", supersedes=["graz"])
        context = memory.context("anything")
        assert "Dutch" in context
        assert "Linz" in context
        assert "French" not in context
        assert "Graz" not in context

    def test_a_neighbour_that_was_replaced_explains_nothing(self, memory: Memory) -> None:
        turns = [("user", "Which colour do you want for the garage door?"), ("user", "Green.")]
        memory.add_messages(
            [{"role": role, "content": text} for role, text in turns], conversation="c", user="ana", time="2026-01-01"
        )
        (question,) = memory.find("content~Which")
        assert "Which colour" in memory.context("the colour for the garage door", user="ana")
        memory.remember("Never mind the door", kind="conversation", user="ana", supersedes=[question.id])
        assert "Which colour" not in memory.context("the colour for the garage door", user="ana")
