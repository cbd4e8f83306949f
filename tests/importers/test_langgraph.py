"""Items of LangGraph's store in SQLite, as our store for LangGraph would have stored them.

What that store returns after an import is in tests/frameworks/langgraph_store, which needs LangGraph.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import foreign

import recollect
from recollect import Memory, Record
from recollect import filters as f
from recollect.compat.langgraph_items import CREATED, id_of, namespace_in_metadata, stored_form
from recollect.compat.objects import value_of
from recollect.compat.stored_json import unlettered
from recollect.importers import ImportReport, import_path
from recollect.operations import GetPolicies

Run = Callable[..., ImportReport]
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)  # of the memory


def item(key: str, value: Any = None, prefix: str = "users.ana", **more: Any) -> dict[str, Any]:
    return {"prefix": prefix, "key": key, "value": {"text": key} if value is None else value, **more}


def get(memory: Memory, key: str, *namespace: str) -> Record:
    record = memory.get(id_of(namespace or ("users", "ana"), key))
    assert record is not None
    return record


def test_an_item_becomes_the_record_of_a_put_with_its_times(run: Run, memory: Memory, tmp_path: Path) -> None:
    times = {"created_at": "2026-05-04 09:30:00", "updated_at": "2026-05-05 10:00:00.5"}
    value = {"text": "Ana prefers window seats", "list": [1, {"a": None}], "big": 2**70, "half": "\ud800", "": {}}
    run("langgraph", foreign.store(tmp_path / "store.db", item("seat", value, **times)))
    record = get(memory, "seat")
    form = stored_form(("users", "ana"), "seat", value, ["$"], None, memory.execute(GetPolicies()))
    created, updated = datetime(2026, 5, 4, 9, 30, tzinfo=UTC), datetime(2026, 5, 5, 10, 0, 0, 500_000, tzinfo=UTC)
    metadata = {**form.fields["metadata"], CREATED: created.isoformat()}
    assert record == Record(id=form.id, time=updated, **{**form.fields, "metadata": metadata})
    assert value_of(record) == value


def test_texts_and_bytes_of_json_are_read(run: Run, memory: Memory, tmp_path: Path) -> None:
    rows = [item("a", '{"x": "é"}'), item("b", '{"x": "é"}'.encode())]
    assert run("langgraph", foreign.store(tmp_path / "store.db", *rows)).created == 2
    assert value_of(get(memory, "a")) == value_of(get(memory, "b")) == {"x": "é"}


def test_an_item_lives_as_long_as_in_the_source(run: Run, memory: Memory, tmp_path: Path) -> None:
    rows = [
        item("lives", expires_at="2026-11-01 13:00:00.25+00:00", ttl_minutes=90.0),
        item("renewed", expires_at="2026-11-01 12:00:01", ttl_minutes=1),
        item("over", expires_at="2026-11-01 12:00:00", ttl_minutes=1.0),
        item("stays"),
    ]
    report = run("langgraph", foreign.store(tmp_path / "store.db", *rows))
    assert (report.created, report.expired, report.damaged) == (3, 1, ())
    assert get(memory, "lives").expires == NOW + timedelta(hours=1, milliseconds=250)
    assert get(memory, "lives").metadata["ttl"] == 90.0
    assert get(memory, "renewed").expires == NOW + timedelta(seconds=1)
    assert get(memory, "stays").expires is None


def test_a_store_before_times_to_live_is_read(run: Run, memory: Memory, tmp_path: Path) -> None:
    schema = "CREATE TABLE store (prefix text, key text, value text, created_at, updated_at, PRIMARY KEY (prefix, key))"
    rows = [item("a", '{"text": "x"}', created_at=foreign.AT, updated_at=foreign.AT)]
    assert run("langgraph", foreign.made(tmp_path / "store.db", schema, store=rows)).created == 1


def test_a_later_put_of_the_source_replaces_an_item_and_an_earlier_one_does_not(
    run: Run, memory: Memory, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"

    def put(text: str, day: int, **more: Any) -> ImportReport:
        at = f"2026-05-0{day} 09:30:00"
        return run("langgraph", foreign.store(path, item("a", {"text": text}, created_at=at, updated_at=at, **more)))

    put("one", 4, expires_at="2026-12-01 00:00:00", ttl_minutes=5)
    report = put("two", 5)
    assert (report.created, report.updated) == (0, 1)
    record = get(memory, "a")
    assert (value_of(record), record.expires) == ({"text": "two"}, None)
    assert record.metadata[CREATED] == "2026-05-04T09:30:00+00:00", "as after two puts"
    report = put("older", 4)
    assert (report.unchanged, report.differing) == (1, 1)
    assert value_of(get(memory, "a")) == {"text": "two"}
    first, *_ = memory.history(record.id)
    assert first.record is not None
    assert value_of(first.record) == {"text": "one"}


def test_an_item_that_was_read_in_the_source_lives_longer(run: Run, memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    run("langgraph", foreign.store(path, item("a", expires_at="2026-11-01 13:00:00", ttl_minutes=60)))
    later = foreign.store(path, item("a", expires_at="2026-11-01 13:30:00", ttl_minutes=60))
    assert run("langgraph", later).updated == 1
    assert get(memory, "a").expires == NOW + timedelta(hours=1, minutes=30)
    assert run("langgraph", later).unchanged == 1


def test_rows_that_cannot_be_items_are_reported_and_the_others_are_imported(
    run: Run, memory: Memory, tmp_path: Path
) -> None:
    rows = [
        item("fine"),
        item("no JSON", "{"),
        item("a list", "[1]"),
        item("many digits", '{"a": ' + "9" * 5000 + "}"),
        item("deep", '{"a": ' * 900 + "1" + "}" * 900),
        item("bytes", b'{"a": "\xff"}'),
        item("no label", prefix="a..b"),
        item("no time", updated_at="soon"),
        item("lives never", expires_at="2026-12-01", ttl_minutes=-1),
        item("half \ud800"),
    ]
    path = foreign.store(tmp_path / "store.db", *rows)
    report = run("langgraph", path)
    assert report.created + len(report.damaged) == len(rows)
    assert {record.metadata["key"] for record in memory.find()} <= {"fine", "deep"}
    assert all(damage.place.startswith("item ") for damage in report.damaged)
    assert run("langgraph", path).damaged == report.damaged


def test_vectors_and_other_tables_are_left_out_and_named(run: Run, tmp_path: Path) -> None:
    vectors = [{"prefix": "users.ana", "key": "a", "field_name": "text", "embedding": b"\0" * 8}]
    path = foreign.store(tmp_path / "store.db", item("a"), store_vectors=vectors, store_migrations=[{"v": 1}])
    assert run("langgraph", path).left_out == {"vectors": 1}


def test_with_a_user_the_items_are_those_of_a_store_in_the_scope_of_the_user(
    run: Run, memory: Memory, tmp_path: Path
) -> None:
    path = foreign.store(tmp_path / "store.db", item("a"))
    run("langgraph", path)
    report = run("langgraph", path, defaults={"user": "ana", "tags": ["moved"], "session": "s"})
    assert report.created == 1
    scoped = memory.scoped(user="ana").get(id_of(("users", "ana"), "a"))
    assert scoped is not None
    assert (scoped.user, scoped.session, "moved" in scoped.tags) == ("ana", "s", True)
    assert get(memory, "a").user is None
    assert run("langgraph", path, defaults={"user": "ana"}).unchanged == 1


def test_into_the_scope_of_another_user_nothing_is_imported(memory: Memory, tmp_path: Path) -> None:
    path = foreign.store(tmp_path / "store.db", item("a"))
    report = import_path(memory.scoped(user="bob"), "langgraph", path, defaults={"user": "ana"})
    assert (report.created, len(report.damaged)) == (0, 1)
    assert import_path(memory.scoped(user="bob"), "langgraph", path).created == 1


def test_policies_apply_to_items_as_to_puts(run: Run, memory: Memory, tmp_path: Path) -> None:
    memory.set_policies(redaction="redact")
    path = foreign.store(tmp_path / "store.db", item("a", {"text": "write to ana@example.com"}))
    run("langgraph", path)
    assert value_of(get(memory, "a")) == {"text": "write to ***@***.***"}
    assert run("langgraph", path).unchanged == 1
    memory.set_policies(redaction="refuse")
    report = run("langgraph", foreign.store(path, item("b", {"text": "write to ana@example.com"}), item("c")))
    assert (report.created, len(report.damaged)) == (1, 1)


def test_what_is_not_worth_remembering_is_stored_for_the_store_and_not_recalled(
    run: Run, memory: Memory, tmp_path: Path
) -> None:
    memory.set_policies(salience="strict")
    assert run("langgraph", foreign.store(tmp_path / "store.db", item("a", {"text": "ok"}))).created == 1
    assert get(memory, "a").searchable is False


LABELS = st.text(min_size=1, max_size=6).filter(lambda text: "." not in text)
VALUES = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
ITEMS = st.dictionaries(
    st.tuples(st.lists(LABELS, min_size=1, max_size=3).map(tuple), st.text(max_size=6)), VALUES, max_size=5
)


@pytest.mark.in_process
@given(items=ITEMS)
def test_any_items_come_back_as_they_were(
    items: dict[tuple[tuple[str, ...], str], dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-store.db"
    rows = [item(key, value, ".".join(namespace)) for (namespace, key), value in items.items()]
    foreign.store(path, *rows)
    with recollect.open(":memory:") as memory:
        report = import_path(memory, "langgraph", path)
        assert report.damaged == ()
        found = {
            (namespace_in_metadata(record), unlettered(record.metadata["key"])): value_of(record)
            for record in memory.find(f.kind("item"))
        }
        assert json.dumps(sorted(found.items()), sort_keys=True) == json.dumps(sorted(items.items()), sort_keys=True)
        assert import_path(memory, "langgraph", path).unchanged == len(items)
        assert memory.check() == []
