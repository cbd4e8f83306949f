"""Results and errors have a JSON form from which the same value is rebuilt."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import errors
from recollect import filters as f
from recollect.arguments.json_form import form_of
from recollect.engine.results import Export, Failed, Hits, NamespaceHead, Outcome, Report
from recollect.engine.settings import Quota
from recollect.errors import InvalidOperationError, InvalidRecordError, RecollectError
from recollect.facets.entities.operations import EntitySummary
from recollect.ledger.commits import Commit, ScopedCommit
from recollect.operations import Remember
from recollect.quoting import plain
from recollect.records.record import Record
from recollect.stores.memory import MemoryStore
from recollect.stores.values import Backup
from recollect.testing import filters, memory_on, records
from recollect.testing.strategies import names, texts

KINDS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, RecollectError) and each is not RecollectError
]


def travelled(value: Any) -> Any:
    """A JSON form as it comes out of bytes."""
    return json.loads(json.dumps(value.to_json()).encode("utf-8"))


distinct = st.lists(records(), min_size=1, max_size=6, unique_by=lambda record: record.id)


@given(stored=distinct, question=texts, where=filters(custom=False), user=st.none() | names)
def test_hits_come_back_equal(stored: list[Record], question: str, where: Any, user: str | None) -> None:
    whole = memory_on(MemoryStore())
    whole.remember_all(stored)
    memory = whole.scoped(user=user) if user else whole
    hits = memory.recall(question, where=where)
    assert Hits.from_json(travelled(hits)) == hits
    assert Hits.from_json(travelled(hits)).cursor == hits.cursor


@given(stored=distinct, again=distinct)
def test_reports_and_outcomes_come_back_equal(stored: list[Record], again: list[Record]) -> None:
    memory = memory_on(MemoryStore())
    items: list[Any] = [
        *stored,
        "a text",
        {"content": "", "user": "ana"},
        {"content": "x", "importance": 7},
        Remember(content=" "),
    ]
    report = memory.remember_all([*items, *again])
    assert report.failed
    again_report = Report.from_json(travelled(report))
    assert again_report.results == report.results
    assert [parts(failed) for failed in again_report.failed] == [parts(failed) for failed in report.failed]
    for outcome in report.results:
        assert Outcome.from_json(travelled(outcome)) == outcome


@given(stored=distinct, user=names)
def test_commits_come_back_equal_also_those_of_a_scope(stored: list[Record], user: str) -> None:
    memory = memory_on(MemoryStore())
    with memory.batch(actor="ana", reason="why") as batch:
        for record in stored:
            batch.remember(record.content, **_fields(record))
    memory.forget_where(f.user(user))
    for each in (memory, memory.scoped(user=user)):
        commits = each.changes()
        assert [Commit.from_json(travelled(commit)) for commit in commits] == commits
        assert all(isinstance(commit, ScopedCommit) for commit in commits) or each is memory


def parts(failed: Failed) -> tuple[Any, ...]:
    """Return the parts of a failure. (Errors are never equal.)"""
    return failed.item, failed.index, type(failed.reason), failed.reason.args


def _fields(record: Record) -> dict[str, Any]:
    return {"user": record.user, "media_type": record.media_type, "id": record.id}


def arguments(kind: type[RecollectError], text: st.SearchStrategy[str]) -> Iterator[st.SearchStrategy[Any]]:
    """Values for the parameters of an error."""
    for parameter in inspect.signature(kind.__init__).parameters.values():
        if parameter.name not in ("self", "args", "kwargs"):
            annotation = str(parameter.annotation)
            yield st.integers(0, 9) if "int" in annotation else st.booleans() if "bool" in annotation else text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_errors_come_back_as_the_same_class_with_the_same_fields(
    kind: type[RecollectError], data: st.DataObject
) -> None:
    text = st.text(st.characters(codec="utf-8"), max_size=200).filter(lambda each: plain(each) == each)  # no passwords
    error = kind(*(data.draw(each) for each in arguments(kind, text)))
    again = RecollectError.from_json(travelled(error))
    assert (type(again), again.args, str(again)) == (kind, error.args, str(error))


def test_an_error_of_an_unknown_code_keeps_its_message() -> None:
    error = RecollectError.from_json({"error": "of_tomorrow", "message": "it rained", "args": [1, 2]})
    assert (type(error), str(error), error.code) == (RecollectError, "it rained", "of_tomorrow")
    assert RecollectError.code == "error"


def test_an_error_whose_fields_are_those_of_another_release_keeps_its_message() -> None:
    error = RecollectError.from_json({"error": "scope", "message": "outside", "args": [1, 2, 3]})
    assert (type(error), str(error), error.code) == (RecollectError, "outside", "scope")


@pytest.mark.parametrize("kind", [Hits, Report, Outcome, Commit, Quota, Backup, NamespaceHead, Export])
@pytest.mark.parametrize("data", [None, [], {}, "x", {"hits": 1}, {"branches": [1]}])
def test_json_of_something_else_is_refused(kind: Any, data: Any) -> None:
    if kind is Quota and data == {}:
        return  # a quota without limits
    with pytest.raises(InvalidOperationError, match="is not the JSON form"):
        form_of(kind).from_json(data)


def test_fields_that_a_later_release_adds_to_results_are_ignored() -> None:
    memory = memory_on(MemoryStore())
    memory.remember("Ada Lovelace lives in London", id="a")
    hits, (commit,), summaries = memory.recall("Where does Ada live?"), memory.changes(), memory.entities()
    for kind, value in ((Hits, hits), (Commit, commit), (list[EntitySummary], summaries)):
        form = form_of(kind)
        assert form.to_json(form.from_json(extended(form.to_json(value)))) == form.to_json(value)


def extended(data: Any) -> Any:
    """Add a field to every object of a result, except records, which state all of theirs, and dictionaries."""
    if isinstance(data, list):
        return [*map(extended, data)]
    if not isinstance(data, dict):
        return data
    fixed = {"record", "shares"}
    return {**{name: each if name in fixed else extended(each) for name, each in data.items()}, "of_tomorrow": 1}


@pytest.mark.parametrize("data", [None, [], {}, {"error": "scope"}, {"error": "scope", "message": "", "args": 1}])
def test_what_is_no_error_is_refused(data: Any) -> None:
    with pytest.raises(InvalidOperationError):
        RecollectError.from_json(data)


def test_a_record_whose_hash_differs_is_refused() -> None:
    memory = memory_on(MemoryStore())
    data = travelled(memory.execute(Remember(content="tea")))
    data["record"]["content"] = "coffee"
    with pytest.raises(InvalidRecordError, match="hash must be that of the record"):
        Outcome.from_json(data)


def test_an_item_without_a_json_form_comes_back_as_its_description() -> None:
    items: list[Any] = [object(), {"content": object()}]
    report = memory_on(MemoryStore()).remember_all(items)
    shown = [failed.item for failed in Report.from_json(travelled(report)).failed]
    assert all(isinstance(each, str) and "object" in each for each in shown)
    assert isinstance(Report.from_json(travelled(report)).failed[0], Failed)
