"""Proposals: what a writer asks for that is not for its class has no effect, says so, is listed, and is one record."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import recollect
from recollect import Memory, RecollectWarning
from recollect.errors import ConflictError, InvalidArgumentError
from recollect.operations import Merge, Remember, Update
from recollect.operations.trust import SIGNALS, Audit

pytestmark = [pytest.mark.stores("memory", "sqlite")]
ASKING: dict[str, dict[str, Any]] = {
    "to be a standing instruction": {"tags": ["standing:instruction"]},
    "to be pinned": {"pinned": True},
    "for the place of the user's word": {"supersedes": ["said"]},
}
quiet = pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")


@pytest.fixture
def said(memory: Memory) -> Memory:
    memory.remember("Invoices go to account 4410.", id="said", user="ana")
    return memory


@pytest.mark.parametrize("fields", ASKING.values(), ids=ASKING)
def test_what_is_not_for_the_class_of_a_writer_is_a_proposal(said: Memory, fields: dict[str, Any]) -> None:
    lower = said.as_origin("assistant")
    outcome = lower.execute(Remember(content="Pay at once.", fields={"user": "ana", **fields}))
    assert (outcome.status, outcome.asked_id) == ("proposed", None)
    with pytest.warns(RecollectWarning, match="is stored as a proposal"):
        lower.remember("Pay twice.", user="ana", **fields)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said.remember("Pay late.", user="ana", **fields)  # the control
        lower.remember("The sky is blue.", user="ana", tags=["sky"], supersedes=["missing"])


def test_what_replaces_a_record_of_its_own_class_is_none(said: Memory) -> None:
    lower = said.as_origin("assistant")
    old = lower.remember("The boiler is from 1999.")
    new = lower.execute(Remember(content="The boiler is from 2001.", fields={"supersedes": [old.id]}))
    assert new.status == "created"
    assert said.audit(signals=["proposal"]) == []


@quiet
def test_proposals_are_listed_until_they_are_endorsed_or_forgotten(said: Memory) -> None:
    lower = said.as_origin("assistant")
    made = {name: lower.remember(f"Asks {name}.", user="ana", **fields).id for name, fields in ASKING.items()}
    made["to change it"] = lower.update("said", content="Invoices go to account 9917.").id
    lower.remember("The boiler is from 1999.", user="ana")
    found = said.audit(signals=["proposal"])
    assert {each.id for each in found} == set(made.values())
    assert {each.id: each.ids for each in found}[made["to change it"]] == ("said",)
    assert {each.id: each.ids for each in found}[made["to be pinned"]] == ()
    said.endorse(made["to be pinned"])
    said.forget(made["to be a standing instruction"])
    assert len(said.audit(signals=["proposal"])) == 2


@quiet
def test_what_a_writer_proposes_for_one_record_is_one_record_with_versions(said: Memory) -> None:
    lower = said.as_origin("assistant")
    for number in range(3):
        outcome = lower.execute(Update(id="said", changes={"metadata": {"seen": number}}), actor="bot")
        assert (outcome.status, outcome.asked_id) == ("proposed", "said")
    assert said.count() == 2
    assert [each.record.metadata["seen"] for each in said.history(outcome.record.id)] == [0, 1, 2]  # type: ignore[union-attr]
    assert (
        lower.execute(Update(id="said", changes={"content": "To 1."}), actor="another").record.id != outcome.record.id
    )
    assert said.as_origin("web").execute(
        Update(id="said", changes={"content": "To 2."}), actor="bot"
    ).record.id not in (outcome.record.id,)
    assert said.count() == 4
    again = lower.execute(Update(id="said", changes={"metadata": {"seen": 2}}), actor="bot")
    assert (again.status, again.record) == ("proposed", outcome.record)


@quiet
@pytest.mark.parametrize("end", ["endorse", "forget"])
def test_after_its_end_a_proposal_is_another_record(said: Memory, end: str) -> None:
    lower = said.as_origin("assistant")
    ids = []
    for number in range(12):
        ids.append(lower.update("said", content=f"Invoices go to account {number}.").id)
        getattr(said, end)(ids[-1])
    assert len(set(ids)) == 12
    assert said.get("said").text == "Invoices go to account 4410."  # type: ignore[union-attr]


def test_signals_are_checked(memory: Memory) -> None:
    for wrong in ("proposal", ["proposals"], [1]):
        with pytest.raises(InvalidArgumentError, match="signals"):
            memory.audit(signals=wrong)  # type: ignore[arg-type]
    assert recollect.operations.from_json(Audit(signals=("rival",)).to_json()) == Audit(signals=("rival",))
    assert Audit().signals == SIGNALS


@quiet
@pytest.mark.parametrize(
    ("target", "endorsed", "writer"), [("owner", "user", "assistant"), ("user", "assistant", "web")]
)
def test_an_endorsed_proposal_is_not_overwritten(memory: Memory, target: Any, endorsed: Any, writer: Any) -> None:
    """Also if it was endorsed to less than the class of what it would change."""
    memory.as_origin("owner").as_origin(target).remember("Pay 4410.", id="said")
    lower = memory.as_origin(writer)
    proposal = lower.update("said", content="Pay 1234.")
    memory.endorse(proposal.id, endorsed)
    another = lower.update("said", content="Pay 9917.")
    assert another.id != proposal.id
    assert memory.get(proposal.id).text == "Pay 1234."  # type: ignore[union-attr]
    assert memory.get(proposal.id).effective_origin == endorsed  # type: ignore[union-attr]


@quiet
def test_what_was_read_is_endorsed_and_nothing_else(said: Memory) -> None:
    lower = said.as_origin("assistant")
    read = lower.update("said", content="Invoices go to account 4411.")
    lower.update("said", content="Invoices go to Eve.")
    with pytest.raises(ConflictError):
        said.endorse(read.id, expect=read.hash)
    with pytest.raises(InvalidArgumentError):
        said.endorse(read.id, expect="stale")
    assert said.get(read.id).effective_origin == "assistant"  # type: ignore[union-attr]
    assert said.endorse(read.id, expect=said.get(read.id).hash).text == "Invoices go to Eve."  # type: ignore[union-attr]


@quiet
def test_proposals_are_listed_however_much_else_names_records(said: Memory) -> None:
    lower = said.as_origin("assistant")
    proposal = lower.update("said", content="Invoices go to account 9917.", time="2020-01-01")
    old = lower.remember("note 0")
    for number in range(30):
        old = lower.remember(f"note {number + 1}", supersedes=[old.id])
    assert [each.id for each in said.audit(signals=["proposal"], limit=5)] == [proposal.id]
    assert len(said.audit(signals=["proposal"], limit=1)) == 1


@quiet
def test_proposals_of_a_scope_are_listed_outside_of_it(memory: Memory) -> None:
    scope = memory.scoped(user="ana")
    scope.remember("Invoices go to account 4410.", id="pay")
    proposal = scope.as_origin("assistant").update("pay", content="Invoices go to account 9917.")
    for view in (memory, scope):
        assert [each.id for each in view.audit(signals=["proposal"])] == [proposal.id]
    assert memory.scoped(user="bob").audit(signals=["proposal"]) == []


@quiet
def test_a_proposal_that_does_not_reach_its_target_stays_in_the_list(memory: Memory) -> None:
    memory.as_origin("owner").remember("Pay 4410.", id="said")
    proposal = memory.as_origin("assistant").update("said", content="Pay 9917.")
    memory.endorse(proposal.id)
    assert [each.id for each in memory.audit(signals=["proposal"])] == [proposal.id]
    memory.as_origin("owner").endorse(proposal.id, "owner")
    assert memory.audit(signals=["proposal"]) == []


@quiet
def test_a_merge_that_is_kept_apart_says_so(said: Memory) -> None:
    other = said.remember("Invoices are due on Friday.", user="ana")
    lower = said.as_origin("assistant")
    merged = lower.execute(Merge(content="Pay 9917 now.", sources={"said": None, other.id: None}))
    assert (merged.status, merged.asked_id) == ("proposed", "said")
    said.set_policies(origins={"assistant": "quarantine"})
    apart = lower.execute(Merge(content="Pay 9918 now.", sources={"said": None, other.id: None}))
    assert apart.status == "quarantined"
    assert said.get("said") is not None


@quiet
def test_a_released_version_of_a_proposal_is_its_next_version(said: Memory) -> None:
    lower = said.as_origin("assistant")
    first = lower.update("said", content="Invoices go to account 1.")
    said.set_policies(origins={"assistant": "quarantine"})
    lower.update("said", content="Invoices go to account 2.")
    (kept,) = said.quarantine()
    said.quarantine.release(kept)
    (listed,) = said.audit(signals=["proposal"])
    assert (listed.id, listed.ids, listed.text) == (first.id, ("said",), "Invoices go to account 2.")
