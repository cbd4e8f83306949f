"""What people change by the forms as the pages have them: ordinary operations with an actor, a reason and an undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.inspector.pages import FORM, Form, Page, Reader, filled, inspected

import recollect
from recollect.server.ui.actions import ACTIONS


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Reader, recollect.Memory]]:
    with inspected(tmp_path) as (reader, memory):
        filled(memory)
        yield reader, memory


def undone(reader: Reader, memory: recollect.Memory, done: Page, root: str) -> None:
    """Press the button that takes a change back, and check that everything is as it was."""
    assert memory.root != root
    commit = memory.log(1)[0]
    assert commit.actor == "inspector"
    assert commit.reason
    assert parse_qs(urlsplit(done.path).query)["seq"] == [str(commit.seq)]
    again = reader.send(done.form("revert"))
    assert "taken back" in again.words
    assert memory.root == root
    assert memory.log(1)[0].reason == "undone"


def test_a_record_is_corrected_with_what_was_read_and_the_change_can_be_undone(
    opened: tuple[Reader, recollect.Memory],
) -> None:
    reader, memory = opened
    root = memory.root
    page = reader.get("record", id="seat")
    done = reader.send(page.form("update"), content="Ana prefers seats near the door", reason="Ana said so")
    assert "was corrected" in done.words
    found = memory.get("seat")
    assert found is not None
    assert (found.content, found.tags, found.importance) == ("Ana prefers seats near the door", ("travel",), 0.8)
    assert memory.log(1)[0].reason == "Ana said so"
    undone(reader, memory, done, root)


def test_a_record_that_was_changed_meanwhile_is_not_overwritten_and_both_texts_are_shown(
    opened: tuple[Reader, recollect.Memory],
) -> None:
    reader, memory = opened
    page = reader.get("record", id="seat")
    memory.update("seat", content="Ana has no preference")
    conflict = reader.send(page.form("update"), 409, content="Ana prefers seats near the door")
    assert {"Ana has no preference"} <= set(conflict.texts)
    assert conflict.form("update").fields["content"] == "Ana prefers seats near the door"
    assert memory.get("seat").content == "Ana has no preference"  # type: ignore[union-attr]
    reader.send(conflict.form("update"))
    assert memory.get("seat").content == "Ana prefers seats near the door"  # type: ignore[union-attr]
    for action in ("forget", "supersede"):
        old = reader.get("record", id="seat")
        memory.update("seat", content=f"changed before {action}")
        assert "conflict" in reader.send(old.form(action), 409).words


@pytest.mark.parametrize(
    "text", ["one\ntwo", "one\r\ntwo", "one\rtwo", "\n\none", " <b>&amp;</b> ", "a\u202eb", "%0D%0A"]
)
def test_a_text_that_is_stored_as_it_was_shown_is_unchanged(tmp_path: Path, text: str) -> None:
    with inspected(tmp_path) as (reader, memory):
        memory.remember(text, id="a")
        seq = memory.seq
        form = reader.get("record", id="a").form("update")
        # A browser reads every end of a line of a text area as a line feed.
        form.fields["content"] = form.fields["content"].replace("\r\n", "\n").replace("\r", "\n")
        reader.send(form)
        assert memory.get("a").content == text  # type: ignore[union-attr]
        assert memory.seq == seq


def test_forgetting_one_record_and_all_that_match_can_be_undone(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    root = memory.root
    done = reader.send(reader.get("record", id="seat").form("forget"))
    assert memory.get("seat") is None
    assert "Ana prefers aisle seats" in done.texts  # its last version
    undone(reader, memory, done, root)
    page = reader.get("forget", user="ana", kind="user_fact")
    assert "2 records would be forgotten" in page.words
    memory.record_user_fact("I like tea", user="ana")
    assert "conflict" in reader.send(page.form("forget_where"), 409).words
    assert memory.count("kind=user_fact") == 3
    root = memory.root
    done = reader.send(reader.get("forget", user="ana", kind="user_fact").form("forget_where"))
    assert memory.count("kind=user_fact") == 0
    undone(reader, memory, done, root)


def test_a_fact_is_replaced_and_the_old_one_stays(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    root = memory.root
    rome = next(each for each in memory.find("kind=user_fact") if "Rome" in each.content)
    form = reader.get("record", id=rome.id).form("supersede")
    done = reader.send(form, content="I live in Bergen", since="2027-01-01")
    new = memory.find("content~Bergen")[0]
    assert new.supersedes == (rome.id,)
    assert memory.get(rome.id).valid_to == new.valid_from  # type: ignore[union-attr]
    undone(reader, memory, done, root)


def test_a_review_resolves_merges_and_keeps_both(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    first = reader.get("review")
    assert "Case 1 of 2" in first.words
    root = memory.root
    done = reader.send(first.form("resolve"))
    assert memory.contradictions() == []
    undone(reader, memory, done, root)
    done = reader.send(reader.get("review").form("distinguish"))
    assert memory.contradictions() == []
    assert "Case 1 of 1" in done.words
    undone(reader, memory, done, root)
    second = reader.get("review", n="2")
    done = reader.send(second.form("merge"), merged="x", content="The office opens at nine")
    assert memory.find("derived_from=office-1")[0].content == "The office opens at nine"
    assert memory.get("office-1") is None
    undone(reader, memory, done, root)
    stale = reader.get("review", n="2")
    memory.update("office-1", content="the office opens at NINE o'clock every day")
    for action in ("merge", "distinguish"):
        assert "conflict" in reader.send(stale.form(action), 409).words
    stale = reader.get("review")
    memory.record_user_fact("I live in Bergen", user="ana")
    assert "conflict" in reader.send(stale.form("resolve"), 409).words or memory.contradictions()


def test_two_names_become_one_entity(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    root = memory.root
    done = reader.send(reader.get("entity", id="bea").form("merge_entities"), alias="Beatrice")
    assert memory.entity("Beatrice").entity.id == "bea"  # type: ignore[union-attr]
    undone(reader, memory, done, root)


def test_a_commit_is_taken_back_and_the_memory_rolled_back(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    seq, root = memory.seq, memory.root
    memory.remember("a mistake", id="mistake")
    done = reader.send(reader.get("diff", a=str(seq), b=str(seq + 1)).form("revert"))
    assert memory.root == root
    memory.update("seat", content="changed")
    memory.glossary.forget("SLA", agent_id="bot")
    page = reader.get("diff", a=str(seq))
    memory.remember("another one", id="another")
    assert "conflict" in reader.send(page.form("rollback"), 409).words
    before = memory.root
    done = reader.send(reader.get("diff", a=str(seq)).form("rollback"))
    assert memory.root == root
    undone(reader, memory, done, before)


def test_erasing_shows_what_it_would_remove_asks_for_the_name_and_proves_it(
    opened: tuple[Reader, recollect.Memory],
) -> None:
    reader, memory = opened
    head = memory.seq
    page = reader.get("erase", id="seat")
    assert "2" in page.words
    assert memory.seq == head
    refused = reader.send(page.form("erase"), 400, confirm="sea")
    assert "nothing was erased" in refused.words
    assert memory.get("seat") is not None
    done = reader.send(page.form("erase"), confirm="seat", reason="asked by Ana")
    assert memory.get("seat") is None
    assert "Proved and verified" in done.words
    assert [each.record for each in memory.history("seat")] == [None] * 3
    assert memory.log(1)[0].reason == "asked by Ana"
    assert memory.check() == []
    proof = reader.json("erased", id="seat")["proofs"][0]["proof"]
    assert recollect.verify(proof, memory.root)
    page = reader.get("erase", user="ana")
    reader.send(page.form("erase"), confirm="ana")
    assert memory.count("user=ana") == 0
    again = reader.get("erase", where="kind=conversation or user=bob")
    reader.send(again.form("erase"), confirm="1")
    assert memory.get("nuts") is None
    assert "nothing to erase" in reader.get("erase", user="nobody").words


def test_what_erasing_would_leave_is_said(opened: tuple[Reader, recollect.Memory], tmp_path: Path) -> None:
    reader, memory = opened
    memory.remember("derived from the seat", id="child", derived_from=["seat"])
    memory.backup(tmp_path / "backup.db")
    page = reader.get("erase", id="seat")
    assert "1 records derive" in page.words or "derive" in page.words
    done = reader.send(page.form("erase"), confirm="seat")
    assert "backup.db" in done.words
    page = reader.get("erase", id="child")
    assert page.has_form("erase")


def test_quota_and_policies_are_set_and_set_back(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    done = reader.send(reader.get("settings").form("set_quota"), records="1000", when_full="oldest", per="user")
    quota = memory.stats()["quota"]
    assert (quota["records"], quota["when_full"], quota["per"]) == (1000, "oldest", "user")
    reader.send(done.form("set_quota"))
    assert "quota" not in memory.stats()
    done = reader.send(reader.get("settings").form("set_policies"), redaction="redact", categories="email\ncard")
    policies = memory.execute(recollect.operations.GetPolicies())
    assert (policies.redaction, policies.categories) == ("redact", ("email", "card"))
    reader.send(done.form("set_policies"))
    policies = memory.execute(recollect.operations.GetPolicies())
    assert policies == recollect.Policies()


def test_parts_can_be_corrected_and_forgotten(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    term = memory._part("terms").find()[0]
    reader.send(reader.get("record", part="terms", id=term.id).form("forget"))
    assert memory.glossary.list_all("bot") == []


def test_a_change_that_is_no_action_of_the_pages_is_refused(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, memory = opened
    root = memory.root
    assert reader.send(Form("do", "post", {"action": "backup", "path": "/tmp/x"}), 403).words
    assert reader.send(Form("do", "post", {"action": "update", "id": "seat"}), 400).words
    past = Form("do", "post", {"action": "forget", "id": "seat", "at": "2"})
    assert "past" in reader.send(past, 400).words
    for headers in (
        {"Content-Type": FORM, "Sec-Fetch-Site": "cross-site"},
        {"Content-Type": FORM, "Sec-Fetch-Site": "same-site"},
        {"Content-Type": FORM, "Sec-Fetch-Site": "none"},
        {"Content-Type": FORM, "Origin": "https://evil.example"},
        {"Content-Type": FORM, "Origin": "null"},
        {"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"},
    ):
        answer = reader.answer("do", "POST", b"action=forget&id=seat", headers)
        assert answer.status in (400, 403), headers
    assert reader.answer("do").status == 404  # GET changes nothing
    assert memory.root == root


def test_every_action_is_on_some_page(opened: tuple[Reader, recollect.Memory]) -> None:
    reader, _ = opened
    looked = [
        reader.get("record", id="seat"), reader.get("review"), reader.get("review", n="2"), reader.get("settings"),
        reader.get("forget", user="bob"), reader.get("entity", id="bea"), reader.get("diff", a="1"),
        reader.get("diff", a="1", b="2"), reader.get("erase", user="bob"),
        reader.get("record", id=reader.json("records", kind="user_fact")["records"][0]["id"]),
        reader.get("record", id="seat", v="1"),
    ]  # fmt: skip
    assert {form.fields.get("action") for page in looked for form in page.forms} - {None} == set(ACTIONS)
