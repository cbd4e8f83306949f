"""The class of origin of a record, at every entry point and by every class of writer (docs/trust.md)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import Memory
from recollect.agents import Manager
from recollect.errors import InvalidArgumentError, OriginError
from recollect.importers import import_path
from recollect.operations import Remember
from recollect.records.origins import ORIGINS, RANKS, at_least, implied, least

pytestmark = [pytest.mark.stores("memory", "sqlite"), pytest.mark.filterwarnings("ignore::recollect.RecollectWarning")]
PAGE = "https://pages.example/a"


def _messages(*messages: dict[str, Any], pick: int = -1, **arguments: Any) -> Callable[[Any, Path], str]:
    def store(memory: Any, folder: Path) -> str:
        report = memory.add_messages(messages, conversation="c", **arguments)
        return str(report.results[pick].record.id)

    return store


def _imported(name: str, content: str, importer: str) -> Callable[[Any, Path], str]:
    def store(memory: Any, folder: Path) -> str:
        path = folder / name
        path.write_text(content, encoding="utf-8")
        import_path(memory, importer, path)
        (record,) = memory.find(recollect.filters.contains("imported"))
        return str(record.id)

    return store


def _batch(memory: Any, folder: Path) -> str:
    with memory.batch() as batch:
        return str(batch.remember("x").id)


def _superseded(memory: Any, folder: Path) -> str:
    old = memory.remember("old", kind="user_fact")
    return str(memory.supersede(old.id, "new").id)


def _merged(memory: Any, folder: Path) -> str:
    return str(memory.merge([memory.remember("one"), memory.remember("two")], "one and two").id)


def _consolidated(memory: Any, folder: Path) -> str:
    memory.add_messages([{"role": "user", "content": f"Number {number}."} for number in range(4)], conversation="c")
    return str(memory.consolidate(min_count=3).groups[0].record.id)


def _updated(memory: Any, folder: Path) -> str:
    return str(memory.update(memory.remember("x").id, content="y").id)


def _extracted(memory: Any, folder: Path) -> str:
    Manager(memory=memory, extract=True).record_message({"role": "user", "content": "Anna Berg lives in Graz."}, "c")
    return str(memory.find("kind=entity")[0].id)


def _tool(memory: Any, folder: Path) -> str:
    return str(memory.tools().call("remember", {"content": "x"})["id"])


ASK = {"role": "user", "content": "What is on?"}
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "web_search"}}]}
#: Entry point -> what stores a record and returns its id, and the class of the record if a user writes.
ENTRIES: dict[str, tuple[Callable[[Any, Path], str], str]] = {
    "remember": (lambda memory, folder: memory.remember("x").id, "user"),
    "remember a turn": (lambda memory, folder: memory.remember("x", role="user", conversation="c").id, "user"),
    "remember a tool's turn": (lambda memory, folder: memory.remember("x", role="tool", conversation="c").id, "tool"),
    "remember an answer": (lambda memory, folder: memory.remember("x", role="assistant").id, "assistant"),
    "remember a prompt": (lambda memory, folder: memory.remember("x", role="system").id, "assistant"),
    "remember a page": (lambda memory, folder: memory.remember("x", source=PAGE).id, "web"),
    "remember a file": (lambda memory, folder: memory.remember("x", source="a.pdf").id, "document"),
    "remember as stated": (lambda memory, folder: memory.remember("x", origin="unknown").id, "unknown"),
    "remember_all": (lambda memory, folder: memory.remember_all(["x"]).results[0].record.id, "user"),
    "remember_all of records": (
        lambda memory, folder: (
            memory.remember_all([recollect.Record(id="a", content="x", source=PAGE)]).results[0].record.id
        ),
        "web",
    ),
    "execute": (lambda memory, folder: memory.execute(Remember(content="x")).record.id, "user"),
    "batch": (_batch, "user"),
    "record_user_fact": (lambda memory, folder: memory.record_user_fact("x", user="ana").id, "user"),
    "record_entity_fact": (lambda memory, folder: memory.record_entity_fact("e", "E", "x").id, "assistant"),
    "record_knowledge": (
        lambda memory, folder: memory.record_knowledge("x", source="a.md").results[0].record.id,
        "document",
    ),
    "record_task": (lambda memory, folder: memory.record_task("do", "done", True).id, "assistant"),
    "add_messages": (_messages(ASK), "user"),
    "add_messages of an answer": (_messages(ASK, {"role": "assistant", "content": "Much."}), "assistant"),
    "add_messages of a tool": (_messages(ASK, {"role": "tool", "content": "x", "name": "calendar"}), "tool"),
    "add_messages of a search": (_messages(ASK, CALL, {"role": "tool", "content": "x", "tool_call_id": "1"}), "web"),
    "add_messages of a stated tool": (
        _messages(ASK, {"role": "tool", "content": "x", "name": "wiki"}, tool_origins={"wiki": "document"}),
        "document",
    ),
    "add_messages of an answer after a tool": (
        _messages(
            ASK, {"role": "tool", "content": "x", "name": "fetch"}, {"role": "assistant", "content": "It says x."}
        ),
        "web",
    ),
    "add_messages after the user has spoken again": (
        _messages(
            ASK, {"role": "tool", "content": "x", "name": "fetch"}, ASK, {"role": "assistant", "content": "Nothing."}
        ),
        "assistant",
    ),
    "supersede": (_superseded, "user"),
    "merge": (_merged, "user"),
    "consolidate": (_consolidated, "assistant"),
    "update": (_updated, "user"),
    "extraction": (_extracted, "assistant"),
    "a model's tool": (_tool, "assistant"),
    "import markdown": (_imported("a.md", "# Notes\n\nimported", "markdown"), "document"),
    "import text": (_imported("a.txt", "imported", "text"), "document"),
    "import csv": (_imported("a.csv", "content\nimported\n", "csv"), "document"),
    "import lines of JSON": (_imported("a.jsonl", json.dumps({"content": "imported"}), "jsonl"), "unknown"),
    "import messages": (_imported("a.json", json.dumps([{"role": "user", "content": "imported"}]), "openai"), "user"),
    "import a tool's message": (
        _imported("a.json", json.dumps([ASK, {"role": "tool", "content": "imported"}]), "openai"),
        "tool",
    ),
}


@pytest.mark.parametrize("writer", ORIGINS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_record_is_of_the_class_of_its_entry_and_never_above_its_writer(
    memory: Memory, tmp_path: Path, entry: str, writer: Any
) -> None:
    store, of_user = ENTRIES[entry]
    record_id = store(memory.as_origin(writer), tmp_path)
    record = memory.get(record_id)
    assert record is not None
    assert RANKS[record.effective_origin] <= RANKS[writer]
    if writer != "owner":
        assert record.effective_origin == least((of_user, writer))
        assert (record.origin is None) == (record.effective_origin == implied(record.role, record.source, record.kind))


@pytest.mark.parametrize("entry", ["remember", "remember_all", "execute", "batch", "record_user_fact", "update"])
def test_what_the_owner_states_without_a_role_or_source_is_the_owners(
    memory: Memory, tmp_path: Path, entry: str
) -> None:
    record = memory.get(ENTRIES[entry][0](memory.as_origin("owner"), tmp_path))
    assert record is not None
    assert record.origin == record.effective_origin == "owner"


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("writer", ORIGINS)
def test_a_class_above_the_writer_cannot_be_stated(memory: Memory, writer: Any, origin: Any) -> None:
    view = memory.as_origin(writer)
    if RANKS[origin] > RANKS[writer]:
        with pytest.raises(OriginError, match="nothing was changed"):
            view.remember("x", origin=origin)
        assert memory.count() == 0
    else:
        assert view.remember("x", origin=origin).effective_origin == origin


def test_a_page_stays_one_whatever_class_is_stated(memory: Memory) -> None:
    with pytest.raises(OriginError, match="endorse"):
        memory.remember("x", source=PAGE, origin="user")


@pytest.mark.parametrize("source", ORIGINS)
@pytest.mark.parametrize("how", ["derived", "merged", "extracted by an update", "copied"])
def test_what_derives_from_a_record_is_not_above_it(memory: Memory, source: Any, how: str) -> None:
    first = memory.as_origin(source).remember("the museum opens at nine", id="first")
    if how == "derived":
        made = memory.remember("nine", derived_from=["first"])
    elif how == "merged":
        made = memory.as_origin("owner").merge([first, memory.remember("said by a user")], "both")
    elif how == "copied":
        copy = recollect.Record(id="copy", content="nine", derived_from=("first",))
        made = memory.remember_all([copy]).results[0].record  # type: ignore[assignment]
    else:
        made = memory.update(memory.remember("nine").id, derived_from=["first"])
    assert made.effective_origin == least((source, "user"))
    chained = memory.remember("nine again", derived_from=[made.id])
    assert chained.effective_origin == least((source, "user"))


def test_what_derives_from_nothing_that_is_there_is_of_unknown_origin(memory: Memory) -> None:
    assert memory.remember("x", derived_from=["missing"]).effective_origin == "unknown"


@pytest.mark.parametrize("end", ["forgotten", "merged away"])
def test_a_source_that_is_gone_still_counts(memory: Memory, end: str) -> None:
    page = memory.remember("a page", source=PAGE)
    if end == "forgotten":
        memory.forget(page.id)
    else:
        memory.merge([page, memory.remember("a note")], "both")
    assert memory.remember("x", derived_from=[page.id]).effective_origin == "web"


def test_a_source_that_was_erased_counts_as_unknown(memory: Memory) -> None:
    page = memory.remember("a page", source="a.pdf")
    kept = memory.remember("x", derived_from=[page.id])
    memory.erase(page.id)
    assert memory.remember("y", derived_from=[page.id]).effective_origin == "unknown"
    assert memory.get(kept.id) == kept


def test_a_tools_result_does_not_become_a_users_fact_by_an_update(memory: Memory) -> None:
    report = memory.add_messages([ASK, {"role": "tool", "content": "x"}], conversation="c")
    turn = report.results[1].record
    assert turn is not None
    changed = memory.update(turn.id, role=None, kind="user_fact")
    assert (changed.kind, changed.effective_origin, changed.origin) == ("user_fact", "tool", "tool")


def test_an_answer_in_a_call_of_its_own_has_the_class_of_the_results_before_it(memory: Memory) -> None:
    memory.add_messages([ASK, {"role": "tool", "content": "x", "name": "fetch"}], conversation="c")
    report = memory.add_messages({"role": "assistant", "content": "It says x."}, conversation="c")
    assert report.results[0].record is not None
    assert report.results[0].record.effective_origin == "web"


def test_one_tool_turn_does_not_lower_the_summary_of_a_conversation(memory: Memory) -> None:
    said = [{"role": "user", "content": f"Number {number}."} for number in range(5)]
    memory.add_messages([*said, {"role": "tool", "content": "x", "name": "calendar"}], conversation="c")
    memory.consolidate(min_count=3)
    classes = sorted(record.effective_origin for record in memory.find("conversation=c"))
    assert classes == ["assistant", "tool"]


def test_a_repeated_text_of_another_class_changes_no_class(memory: Memory) -> None:
    first = memory.as_origin("web").remember("the museum opens at nine")
    outcome = memory.execute(Remember(content="the museum opens at nine"))
    assert (outcome.status, outcome.record, outcome.differing) == ("unchanged", first, ("origin",))
    lower = memory.as_origin("unknown").execute(Remember(content="the museum opens at nine", if_exists="update"))
    assert (lower.status, lower.record, lower.differing) == ("unchanged", first, ("origin",))


def test_records_without_a_stated_class_have_the_bytes_of_earlier_releases(memory: Memory) -> None:
    for fields in ({}, {"role": "tool"}, {"source": PAGE}, {"source": "a.pdf"}, {"kind": "task"}):
        record = memory.remember("x", **fields)  # type: ignore[arg-type]
        assert b"\x1d" not in record.to_bytes()[:40]
        assert "origin" not in record.to_json()


def test_a_lowered_memory_can_only_be_lowered_further(memory: Memory) -> None:
    web = memory.as_origin("web")
    assert web.as_origin("unknown").remember("x").effective_origin == "unknown"
    for origin in at_least("document"):
        with pytest.raises(OriginError):
            web.as_origin(origin)
    with pytest.raises(InvalidArgumentError):
        memory.as_origin("stranger")  # type: ignore[arg-type]


def test_the_class_of_a_memory_reaches_its_scopes_batches_and_namespaces(memory: Memory) -> None:
    web = memory.as_origin("web")
    assert web.scoped(user="ana").remember("x").effective_origin == "web"
    with web.batch() as batch:
        assert batch.remember("y").effective_origin == "web"
    assert web.namespace("other").remember("z").effective_origin == "web"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert web.outline.ingest_text("# Notes\n\nText\n", "markdown", "a.md").added


@pytest.mark.parametrize("writer", ["user", "web"])
def test_what_facets_keep_has_the_class_of_its_writer(memory: Memory, writer: Any) -> None:
    view = memory.as_origin(writer)
    view.glossary.memorize("AP", "access point", "abbreviation", "a")
    view.keyed.write("k", b"v")
    view.sdr.store("some text here")
    for part in ("terms", "keys", "sdrs"):
        classes = {record.effective_origin for record in memory._beside(part).find()}
        assert classes == {writer}, part


def test_a_policy_turns_classes_off(memory: Memory) -> None:
    memory.set_policies(record_origins=False)
    web = memory.as_origin("web")
    first = web.remember("x")
    assert (first.origin, first.effective_origin) == (None, "user")
    assert memory.remember("y", derived_from=["missing"]).effective_origin == "user"
    owned = memory.remember("z")
    assert web.update(owned.id, content="changed").id == owned.id
