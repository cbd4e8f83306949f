"""Names in both Unicode forms, NFC and NFD, are one: users, agents, conversations, tags, keys, terms.

`golden/names-3.db` was written by a release that kept names as they were passed. Everything in it is stored twice: by
"José", "Zoë", "déjà", "été" and "café" in NFC, and by the same names in NFD.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from click.testing import CliRunner
from tests import paths

import recollect
from recollect import Memory, filters
from recollect.cli.app import app
from recollect.errors import InvalidArgumentError, InvalidRecordError, ScopeError
from recollect.facets.entities.graph import Relation, node, relation
from recollect.facets.keyed.records import former_id_of
from recollect.facets.keyed.values import Event
from recollect.importers import import_path, write_jsonl
from recollect.records.names import NAMES
from recollect.records.record import Record, stored_names
from recollect.text.unicode import Form

NAME = "Zoë é 각"
FORMS = [pytest.param(form, id=form) for form in ("NFC", "NFD")]
OTHER: dict[Form, Form] = {"NFC": "NFD", "NFD": "NFC"}


def named(field: str, value: str) -> Any:
    """A field as a keyword argument."""
    return {field: value}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store of format 3 with names in both forms."""
    return Path(shutil.copy(paths.GOLDEN / "names-3.db", tmp_path / "old.db"))


class TestNewNames:
    @pytest.mark.stores("memory", "sqlite", "loopback")
    @pytest.mark.parametrize("field", sorted(NAMES - {"media_type", "language"}))
    @pytest.mark.parametrize("form", FORMS)
    def test_what_is_stored_under_one_form_is_found_by_the_other(self, memory: Memory, field: str, form: Form) -> None:
        stored = memory.remember("Likes tea", **named(field, normalize(form, NAME)))
        assert getattr(stored, field) == NAME
        where = getattr(filters, field)(normalize(OTHER[form], NAME))
        assert memory.find(where) == [stored]
        assert [hit.record for hit in memory.recall("tea", where=where)] == [stored]
        if field != "conversation":  # whose turns may be equal
            assert memory.remember("Likes tea", **named(field, normalize(OTHER[form], NAME))) == stored

    @pytest.mark.parametrize("form", FORMS)
    def test_tags_are_one_tag(self, memory: Memory, form: Form) -> None:
        record = memory.remember("Likes tea", tags=[NAME, normalize("NFD", NAME), "b"])
        assert record.tags == (NAME, "b")
        assert memory.count(filters.tag(normalize(form, NAME))) == 1
        prefix = normalize(form, "Zoë")
        assert [each.value for each in memory.values("tag", prefix=prefix)] == [NAME]

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("field", ["user", "agent", "conversation"])
    def test_owners_and_scopes_have_no_form(self, memory: Memory, field: str, form: Form) -> None:
        memory.remember("Likes tea", **named(field, NAME))
        name = normalize(form, NAME)
        assert len(memory.recall("tea", **named(field, name))) == 1
        scoped = memory.scoped(**named(field, name))
        assert [each.text for each in scoped.find()] == ["Likes tea"]
        assert scoped.remember("Likes milk", **named(field, normalize(OTHER[form], NAME)))
        assert scoped.scoped(**named(field, normalize(OTHER[form], NAME))).count() == 2
        with pytest.raises(ScopeError):
            scoped.remember("Likes rum", **named(field, "Zoe"))

    def test_a_conversation_goes_on_under_the_other_form(self, memory: Memory) -> None:
        turns = [{"role": "user", "content": "I moved to Porto"}, {"role": "assistant", "content": "Noted"}]
        memory.add_messages(turns[:1], user=NAME, conversation=NAME)
        other = normalize("NFD", NAME)
        memory.add_messages(turns, user=other, conversation=other)
        assert [each.position for each in memory.find(order="position")] == [0, 1]

    @pytest.mark.parametrize("form", FORMS)
    def test_keys_and_terms_have_no_form(self, memory: Memory, form: Form) -> None:
        name, other = normalize(form, NAME), normalize(OTHER[form], NAME)
        memory.keyed.write(name, b"one")
        assert memory.keyed.cas(other, b"one", b"two")
        assert (memory.keyed.keys(), memory.keyed.read(name)) == ([NAME], b"two")
        with memory.keyed.subscribe(other) as events:
            memory.keyed.write(name, b"three")
            (event,) = [next(iter(events))]
            assert isinstance(event, Event)
            assert event.key == NAME
        assert memory.keyed.forget(other)
        memory.glossary.memorize(name, "a name", "", name, [normalize(OTHER[form], "Ôé")])
        memory.glossary.memorize(other, "the same name", "", other)
        assert [each["value"] for each in memory.glossary.list_all(name)] == ["the same name"]
        assert memory.glossary.agents() == {NAME: 1}
        assert len(memory.glossary.annotate(f"({other})", name)) == 1
        assert memory.glossary.forget(other, name) == 1

    def test_different_names_stay_different(self, memory: Memory) -> None:
        for user in ("José", "Jose", "josé", "José "):
            memory.remember("Likes tea", user=user)
            memory.keyed.write(user, user.encode())
        assert [memory.count(filters.user(user)) for user in ("José", "Jose", "josé", "José ")] == [1, 1, 1, 1]
        assert len(memory.keyed.keys()) == 4

    def test_a_name_is_measured_as_it_is_stored(self) -> None:
        assert len(Record(id="a", content="b", user="é" * 500).user or "") == 500
        with pytest.raises(InvalidRecordError, match="once composed"):
            Record(id="a", content="b", user="\u0958" * 333)  # U+0958 becomes two characters


class TestOlderStores:
    @pytest.mark.parametrize("migrated", [False, True])
    @pytest.mark.parametrize("form", FORMS)
    def test_both_forms_are_read_as_one(self, old: Path, migrated: bool, form: Form) -> None:
        if migrated:
            recollect.migrate(old)

        def name(text: str) -> str:
            return normalize(form, text)

        with recollect.open(old, read_only=True) as memory:
            assert memory.check() == []
            assert memory.count(filters.user(name("José"))) == 6
            assert memory.count(~filters.user(name("José"))) == 0
            assert memory.count(filters.tag(name("été"))) == memory.count(filters.entity(name("café"))) == 2
            said = memory.find(filters.conversation(name("déjà")), order="position")
            assert [each.text for each in said][:2] == ["I moved to Porto", "I moved to Faro"]
            pages = memory.find(filters.conversation(name("déjà")), order="position", limit=3)
            rest = memory.find(filters.conversation(name("déjà")), order="position", limit=3, after=pages.cursor)
            assert [*pages, *rest] == said
            assert {hit.record.text for hit in memory.recall("what does he like?", user=name("José"), k=2)} == {
                "Likes tea",
                "Likes coffee",
            }
            assert memory.scoped(agent=name("Zoë")).count() == 2
            assert [each.value for each in memory.values("user")] == ["José"]
            assert (memory.keyed.read(name("clé")), memory.keyed.read(name("ключ й"))) == (b"one", b"two")
            assert memory.keyed.keys() == ["clé", "ключ й"]
            assert memory.glossary.agents() == {"Zoë": 2}
            assert all(memory.glossary.get(name(key), name("Zoë")) for key in ("Été", "Août"))
            assert len(memory.glossary.annotate(name("en août et en été"), name("Zoë"))) == 2

    def test_the_bytes_stay_as_they_were_stored(self, old: Path) -> None:
        def state() -> tuple[str, set[str]]:
            with recollect.open(old, read_only=True) as memory:
                return memory.root, {each.hash for each in memory.find()}

        before = state()
        recollect.migrate(old)
        assert state() == before
        with recollect.open(old, read_only=True) as memory:
            for record in memory.find():
                assert Record.from_json(json.loads(json.dumps(record.to_json()))) == record
                assert Record.from_bytes(record.to_bytes()) == record

    def test_writes_go_on_under_the_composed_names(self, old: Path) -> None:
        with recollect.open(old) as memory:
            decomposed = normalize("NFD", "José")
            stored = memory.find(filters.user("José") & filters.contains("coffee"))[0]
            tags = ["été", "a"]
            assert memory.remember("Likes coffee", user="José", agent="Zoë", entity="café", tags=tags).id == stored.id
            assert decomposed.encode() in memory.update(stored.id, importance=0.5).to_bytes()
            assert decomposed.encode() not in memory.update(stored.id, user="José").to_bytes()
            assert memory.keyed.cas("ключ й", b"two", b"three")
            assert memory.keyed.keys() == ["clé", "ключ й"]
            memory.glossary.memorize("août", "August", "", "Zoë")
            assert memory.glossary.agents() == {"Zoë": 2}
            assert memory.check() == []

    def test_doctor_reports_them_until_they_are_migrated(self, old: Path) -> None:
        def names() -> list[str]:
            result = CliRunner().invoke(app, ["--db", str(old), "doctor", "--json"])
            return [each["finding"] for each in json.loads(result.output) if each["what"] == "names"]

        assert names()[0].startswith("4 records have names in another Unicode form than NFC")
        recollect.migrate(old)
        assert names() == []


class TestOtherNames:
    @pytest.mark.parametrize("form", FORMS)
    def test_snapshots_outlines_and_entities_have_no_form(self, memory: Memory, form: Form) -> None:
        name, other = normalize(form, NAME), normalize(OTHER[form], NAME)
        memory.remember("Likes tea")
        memory.snapshot(name)
        memory.forget_where("everything")
        assert memory.at(other).count() == 1
        with pytest.raises(InvalidArgumentError, match="is the name of another snapshot"):
            memory.snapshot(other)
        memory.drop_snapshot(other)
        first = memory.outline.ingest_text(f"* {name}\n", "org", source=name)
        again = memory.outline.ingest_text(f"* {name}\n", "org", source=other)
        assert (again.root, again.added) == (first.root, ())
        assert memory.outline.at_path(["", other]) is not None
        assert node(name, "person") == node(other, "person")
        assert relation(Relation(name, "Bob", "knows")) == relation(Relation(other, "Bob", "knows"))


class TestOlderRecordsElsewhere:
    def test_an_export_of_an_older_store_is_imported_with_its_hashes_and_roots(self, old: Path, tmp_path: Path) -> None:
        exported = tmp_path / "old.jsonl"
        with recollect.open(old) as memory, exported.open("w", encoding="utf-8", newline="\n") as file:
            write_jsonl(memory, file)
            hashes = {each.hash for each in memory.find()}
        with recollect.open(tmp_path / "new.db") as memory:
            report = import_path(memory, "jsonl", exported)
            assert (report.damaged, report.roots) == ((), {"default": True})
            assert {each.hash for each in memory.find()} == hashes
            assert memory.count(filters.user("José")) == 6
            assert memory.check() == []
            assert import_path(memory, "jsonl", exported).created == 0

    def test_forgetting_and_erasing_a_key_leaves_no_other_form_of_it(self, old: Path) -> None:
        with recollect.open(old) as memory:
            memory.keyed.write("ключ й", b"new")
            former = memory.keyed._entries
            former.remember("an old value", id=former_id_of("é") or "", kind="entry", metadata={"key": "e\u0301"})
            memory.keyed.forget("é")
            assert memory.keyed.read("é") is None
            memory.keyed.erase("é")
            assert memory.keyed.keys() == ["clé", "ключ й"]

    def test_a_change_of_another_field_keeps_the_bytes_of_the_names(self, old: Path) -> None:
        with recollect.open(old, read_only=True) as memory:
            record = next(each for each in memory.find() if stored_names(each))
            assert record.changed() == record
            assert record.changed(importance=0.5).changed(importance=record.importance) == record
            assert stored_names(record.changed(user="Bob")).keys() == stored_names(record).keys() - {"user"}
