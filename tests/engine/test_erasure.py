"""Erasure: what was erased is in no file of the store, and everything else is as before, even after a crash."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import fresh
from tests.examples import in_torture
from torture.run import run_part

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.engine.erasing import AT_ONCE
from recollect.engine.index.vectors import VectorKeeper
from recollect.errors import (
    DamagedStoreError,
    QuotaError,
    ReadOnlyStoreError,
    StoreFullError,
    StoreIOError,
    UnknownRecordError,
)
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import is_redacted, redacted_id
from recollect.models.embedding.hashed import Hashed
from recollect.operations import FindSimilar
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite import copies
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base.checksums import connect
from recollect.testing.faults import FaultyStore
from recollect.testing.loopback import core_of
from recollect.testing.machine import memory_on

SECRET = "zanzibarsecret"
LONG = f"{SECRET} " + "overflowsecret " * 2000


def found_in(folder: Path, *needles: str) -> set[str]:
    """The names of the files of a folder that contain one of these texts, read by another process.

    Reading them here would release the locks that SQLite has on them.
    """
    patterns = [part for needle in needles for part in ("-e", needle)]
    while True:
        done = subprocess.run(["grep", "-rlaF", *patterns, str(folder)], capture_output=True, text=True, check=False)
        if done.returncode in (0, 1):
            return {Path(each).name for each in done.stdout.splitlines()}
        # A thread that saves an index has renamed its file meanwhile: search again.
        assert "No such file" in done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "store"
    out.mkdir()
    return out


@pytest.fixture
def memory(folder: Path) -> Iterator[Memory]:
    with recollect.open(folder / "a.db", embedder=Hashed()) as memory:
        yield memory


@pytest.fixture(params=["file", "memory"])
def either(request: pytest.FixtureRequest, folder: Path) -> Iterator[Memory]:
    with recollect.open(folder / "a.db" if request.param == "file" else ":memory:", embedder="none") as memory:
        yield memory


def everywhere(memory: Memory) -> None:
    """Store texts with the secret in every file that a store has: as live, updated, forgotten and long ones."""
    memory.set_quota(records=100_000, when_full="least recent")
    memory.remember_all([{"content": f"harbour number {number}", "id": f"n{number}"} for number in range(1200)])
    memory.remember(f"{SECRET} first", id="a", user="ana", tags=[f"{SECRET}tag"], metadata={SECRET: 1})
    memory.update("a", content=f"{SECRET} second")
    memory.remember(LONG, id="long", user="ana")
    memory.remember(f"{SECRET} forgotten", id="gone", user="ana")
    memory.forget("gone")
    memory.embed_all()
    memory.recall(f"which {SECRET}?")
    memory.grep(SECRET)
    core = core_of(memory)
    core.uses.write()
    core.keeper._schedule_merge(core_branch(memory))
    while core.keeper._merging:
        threading.Event().wait(0.01)


def core_branch(memory: Memory) -> Any:
    return memory._branch


class TestTheBytes:
    @pytest.mark.promise("erase.bytes")
    def test_they_are_in_no_file_while_the_store_is_open_nor_afterwards(self, memory: Memory, folder: Path) -> None:
        everywhere(memory)
        before = found_in(folder, SECRET, "overflowsecret")
        assert {"a.db-wal", "text.db-wal"} & before  # the search finds them
        assert any(name.endswith(".seg") for name in before)
        digests = {name for name in before if name.startswith("words-")}
        assert digests
        vectors = sum(len(page) for _, page in _stored(memory))
        erased = memory.erase(f.user("ana"))
        assert (erased.ids, erased.versions, erased.pending) == (("a", "gone", "long"), 4, False)
        assert found_in(folder, SECRET, "overflowsecret") == set()
        assert sum(len(page) for _, page in _stored(memory)) < vectors
        assert not any(SECRET in hit.record.text for hit in memory.recall(SECRET))
        assert not memory.grep(SECRET)
        assert memory.check() == []
        assert memory.count() == 1200
        memory.recall("harbour")
        memory.close()
        assert found_in(folder, SECRET, "overflowsecret") == set()

    def test_the_vectors_of_erased_texts_are_gone(self, memory: Memory, folder: Path) -> None:
        memory.remember("the same text", id="a", user="ana")
        memory.remember("the same text", id="b", user="ana")
        memory.remember("a former text", id="c")
        memory.embed_all()
        memory.update("c", content="another text")
        memory.embed_all()
        raw = {digest: each.astype("<f4").tobytes() for _, page in _stored(memory) for digest, each in page.items()}
        assert len(raw) == 3
        shared = _digest_of(memory, "a")

        def stored() -> set[bytes]:
            return {digest for _, page in _stored(memory) for digest in page}

        memory.erase("a")
        assert stored() == raw.keys()  # the other record has the same text
        memory.erase("b")
        assert stored() == raw.keys() - {shared}  # with that of the former version, which can be read in the past
        memory.close()
        assert raw[shared] not in (folder / "a.db.index" / "vectors.db").read_bytes()  # closed: no process has locks
        with recollect.open(folder / "a.db", embedder=Hashed()) as again:
            assert again.embed_all() == 0

    def test_vectors_under_digests_of_earlier_releases_get_keyed_ones(self, memory: Memory, folder: Path) -> None:
        memory.remember("a text", id="a", user="ana")
        memory.embed_all()
        (digest,) = [digest for _, page in _stored(memory) for digest in page]
        memory.close()
        path = folder / "a.db.index" / "vectors.db"
        plain = hashlib.sha256(json.dumps(["ana", None, None, "a text"]).encode()).digest()
        with closing(connect(str(path))) as connection:
            connection.execute(
                "UPDATE vectors SET text = ?; UPDATE about SET value = '1' WHERE name = 'layout'", (plain,)
            )
        with recollect.open(folder / "a.db", embedder=Hashed(), read_only=True) as reader:
            assert reader.vector_stats()["embedded"] == 1
        assert plain in path.read_bytes()
        with recollect.open(folder / "a.db", embedder=Hashed()) as again:
            assert again.vector_stats()["embedded"] == 1
            assert [digest for _, page in _stored(again) for digest in page] == [digest]
            assert again.embed_all() == 0
        assert plain not in path.read_bytes()

    def test_a_vector_that_is_computed_during_the_erasure_is_not_stored(self, folder: Path) -> None:
        reached, go = threading.Event(), threading.Event()

        class Slow(Hashed):
            def embed(self, texts: Any, *args: Any, **options: Any) -> Any:
                if any(SECRET in text for text in texts):
                    reached.set()
                    assert go.wait(30)
                return super().embed(texts, *args, **options)

        with recollect.open(folder / "a.db", embedder=Slow()) as memory:
            memory.remember(f"{SECRET} text", id="a")
            memory.remember("another", id="b")
            thread = threading.Thread(target=memory.embed_all)
            thread.start()
            assert reached.wait(30)
            memory.erase("a")
            go.set()
            thread.join()
            assert [digest for _, page in _stored(memory) for digest in page] == [_digest_of(memory, "b")]

    def test_a_text_that_is_erased_before_a_search_embeds_it_is_not_embedded(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        embedded: list[str] = []

        class Noting(Hashed):
            def embed(self, texts: Any, *args: Any, **options: Any) -> Any:
                embedded.extend(texts)
                return super().embed(texts, *args, **options)

        with recollect.open(folder / "a.db", embedder=Noting()) as memory:
            memory.remember(f"{SECRET} text", id="a")
            memory.remember("another", id="b")
            embed_records = VectorKeeper.embed_records

            def erased_before(*args: Any) -> Any:
                memory.erase("a")
                return embed_records(*args)

            monkeypatch.setattr(VectorKeeper, "embed_records", erased_before)
            memory.execute(FindSimilar(text="text", embed=True))
            assert "another" in embedded
            assert not any(SECRET in text for text in embedded)
            assert [digest for _, page in _stored(memory) for digest in page] == [_digest_of(memory, "b")]

    def test_ids_reasons_and_actors_are_in_no_file_once_they_are_redacted(self, folder: Path) -> None:
        with recollect.open(folder / "a.db", embedder="none") as memory:
            for start in range(0, 3000, 500):  # enough that rows move between pages
                ids = [f"zzid-{number * 7919 % 3001:04d}-x" for number in range(start, start + 500)]
                memory.remember_all([{"content": f"text {each}", "id": each, "user": f"u{each}"} for each in ids])
            with memory.batch(actor="zzactor", reason="zzreason") as batch:
                batch.remember("of ana", id="zzid-ana", user="ana")
            memory.set_quota(records=10_000, when_full="least recent")
            memory.get("zzid-ana")
            memory.grep("ana")
            core_of(memory).uses.write()
            assert {"a.db"} <= {name.removesuffix("-wal") for name in found_in(folder, "zzactor", "zzreason")}
            victims = [f"zzid-{number:04d}-x" for number in range(1, 3000, 3)]
            erased = memory.erase(f.id(*victims), redact=True)
            assert len(erased.ids) == 999
            assert memory.erase("zzid-ana", redact=True, reason="asked for").ids == ("zzid-ana",)
            assert memory.check() == []
            assert memory.changes(newest_first=True, limit=1)[0].reason == "asked for"
        assert found_in(folder, *victims, "zzid-ana", "zzactor", "zzreason") == set()

    def test_copies_next_to_the_store_are_named_and_not_touched(self, memory: Memory, folder: Path) -> None:
        memory.backup(folder / "before")
        memory.remember(f"{SECRET} text", id="a")
        memory.backup(folder / "after")
        recollect.rescue(folder / "after", folder / "rescued")
        (folder / "other").write_bytes(bytes(4096))
        assert memory.erase("a").copies == (str(folder / "after"), str(folder / "rescued"))
        assert found_in(folder, SECRET) == {"after", "rescued"}

    @pytest.mark.parametrize("lost", ["folder", "file"])
    def test_a_folder_that_cannot_be_listed_is_named_and_a_file_that_disappears_is_not(
        self, memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch, lost: str
    ) -> None:
        memory.remember(SECRET, id="a")
        (folder / "gone").write_bytes(bytes(512))

        class Entry:
            """The entry of a file that another program removes meanwhile."""

            path, name = str(folder / "gone"), "gone"

            def is_file(self, *, follow_symlinks: bool) -> bool:
                return True

            def stat(self) -> None:
                raise FileNotFoundError

        def scan(path: str) -> Any:
            if lost == "folder":
                raise PermissionError
            return nullcontext([Entry()])

        monkeypatch.setattr(copies, "os", SimpleNamespace(**{**vars(os), "scandir": scan}))
        assert memory.erase("a").copies == ((str(folder),) if lost == "folder" else ())


def _stored(memory: Memory) -> list[Any]:
    vectors = core_of(memory).vectors
    assert vectors is not None
    return [each for model, _ in vectors.store.models("default") for each in vectors.store.newer(model, "default", 0)]


def _digest_of(memory: Memory, record_id: str) -> bytes:
    from recollect.engine.index.document_of import digest_of

    record = memory.get(record_id)
    assert record is not None
    return digest_of(record, core_of(memory).store.key)


class TestWhatIsErased:
    def test_all_versions_of_an_id_whatever_became_of_them(self, either: Memory) -> None:
        either.remember("one", id="a")
        either.update("a", content="two")
        either.forget("a")
        either.remember("three", id="b", expires="2020-01-01T00:00:00+00:00")
        either.sweep()
        assert either.erase("a", actor="dpo", reason="asked for").versions == 2
        assert either.erase("b").versions == 1
        newest = either.changes(newest_first=True, limit=2)[1]
        assert (newest.actor, newest.reason) == ("dpo", "asked for")
        assert [(each.id, each.before, each.after, each.cause) for each in newest.changes] == [
            ("a", None, None, "erased")
        ]
        assert [each.erased for each in either.history("a")] == [True, True, False, False]
        assert either.check() == []

    @pytest.mark.parametrize("redact", [False, True])
    def test_a_dry_run_says_what_would_be_erased_and_changes_nothing(self, either: Memory, redact: bool) -> None:
        either.remember("ana's", id="a", user="ana")
        either.update("a", content="ana's again")
        either.remember("from it", id="d", derived_from=["a"])
        either.remember("forgotten", id="b", user="ana")
        either.forget("b")
        either.remember("bob's", id="c", user="bob")
        before = either.root, either.seq, either.find(), either.history("a")
        for what in ("a", f.user("ana"), f.nothing()):
            for derived in (False, True):
                would = either.erase(what, redact=redact, derived=derived, dry_run=True)
                assert (either.root, either.seq, either.find(), either.history("a")) == before
                assert (would.dry_run, would.pending, would.commits) == (True, False, ())
        with pytest.raises(UnknownRecordError):
            either.erase("never", dry_run=True)
        would = either.erase(f.user("ana"), redact=redact, derived=True, dry_run=True)
        done = either.erase(f.user("ana"), redact=redact, derived=True)
        assert (would.ids, would.versions, would.derived, would.parts) == (
            done.ids,
            done.versions,
            done.derived,
            done.parts,
        )
        assert would.ids == ("a", "b", "d")

    def test_erasing_twice_changes_nothing_and_an_unknown_id_raises(self, either: Memory) -> None:
        either.remember("one", id="a")
        either.erase("a")
        seq = either.seq
        again = either.erase("a")
        assert (again.ids, again.versions, either.seq) == ((), 0, seq)
        with pytest.raises(UnknownRecordError):
            either.erase("b")
        assert either.erase(f.user("nobody")).ids == ()
        assert either.seq == seq

    def test_a_filter_selects_by_former_versions_too(self, either: Memory) -> None:
        either.remember("ana's", id="a", user="ana")
        either.update("a", user="bob", content="bob's")
        either.remember("forgotten", id="b", user="ana")
        either.forget("b")
        either.remember("bob's alone", id="c", user="bob")
        assert either.erase(f.user("ana")).ids == ("a", "b")
        assert [record.id for record in either.find()] == ["c"]
        assert either.at(1).find() == []

    @pytest.mark.promise("erase.scope")
    def test_within_a_scope_only_its_versions_are_erased(self, either: Memory) -> None:
        either.remember("ana's", id="a", user="ana")
        either.update("a", user="bob", content="bob's")
        either.remember("bob's own", id="b", user="bob")
        ana, bob = either.scoped(user="ana"), either.scoped(user="bob")
        seen = bob.changes(), bob.find(), bob.history("a")
        with pytest.raises(UnknownRecordError):
            ana.erase("b")
        erased = ana.erase("a", redact=True)
        assert (erased.ids, erased.versions, erased.commits) == (("a",), 1, ())
        assert (bob.changes(), bob.find(), bob.history("a")) == seen
        assert either.get("a") is not None  # the id is also that of bob's version: it is not redacted
        assert either.history("a")[0].erased
        assert either.check() == []

    def test_ids_are_shown_as_in_the_scope(self, either: Memory) -> None:
        ana = either.scoped(user="ana")
        ana.remember("ana's", id="note")
        ana.remember("derived", id="from", derived_from=["note"])
        either.remember("of another", id="note", user="bob")
        either.remember("derived from that", id="from", user="bob", derived_from=["note"])
        erased = ana.erase("note", redact=True)
        assert (erased.ids, erased.derived) == (("note",), ("from",))
        assert [record.content for record in either.find(order="id")] == ["derived", "derived from that", "of another"]

    def test_what_derives_is_listed_and_erased_if_asked(self, either: Memory) -> None:
        either.remember("source", id="s")
        either.remember("summary", id="t", derived_from=["s"])
        either.remember("summary of it", id="u", derived_from=["t"])
        either.remember("of something else", id="v", derived_from=["x"])
        either.forget("u")
        assert either.erase("s").derived == ("t", "u")
        assert either.get("t") is not None
        either.remember("source", id="s")
        erased = either.erase("s", derived=True)
        assert (erased.ids, erased.derived) == (("s", "t", "u"), ("t", "u"))
        assert [record.id for record in either.find()] == ["v"]

    def test_a_thousand_at_a_time(self, either: Memory) -> None:
        either.remember_all([{"content": f"text {number}", "id": f"{number}"} for number in range(AT_ONCE + 5)])
        seq = either.seq
        erased = either.erase(f.everything())
        assert len(erased.ids) == AT_ONCE + 5
        assert erased.commits == (seq + 1, seq + 2)
        assert either.count() == 0
        assert either.check() == []

    def test_a_quota_does_not_block_it_and_counts_the_rest_afterwards(self, either: Memory) -> None:
        either.set_quota(records=2)
        either.remember("a", id="a")
        either.remember("b", id="b")
        for redact in (False, True):
            either.erase("a", redact=redact)
            either.remember("a", id="a")
            with pytest.raises(recollect.errors.QuotaError):
                either.remember("c")

    def test_a_read_only_store_refuses(self, folder: Path) -> None:
        with recollect.open(folder / "a.db") as memory:
            memory.remember("a", id="a")
        with recollect.open(folder / "a.db", read_only=True) as memory, pytest.raises(ReadOnlyStoreError):
            memory.erase("a")


class TestTheHistory:
    @pytest.mark.promise("erase.proofs")
    def test_old_roots_and_proofs_still_verify_and_say_erased(self, either: Memory) -> None:
        with either.batch(actor="bob", reason="a reason") as batch:
            batch.remember("one", id="a")
        either.remember("two", id="b")
        roots, logs = [either.at(1).root, either.root], [str(either.at(1).head().log), str(either.head().log)]
        entries = [commit.entry for commit in either.changes()]
        for redact in (False, True):
            either.erase("a", redact=redact)
            proof = either.prove("a", at=1)
            assert proof["erased"] is True
            assert recollect.verify(proof, roots[0])
            assert recollect.verify(proof, str(either.head().log))
            assert recollect.verify(either.prove("b", at=2), roots[1])
            assert recollect.verify(either.prove("a"), either.root)
            assert recollect.verify(either.prove_log(1), (logs[0], str(either.head().log)))
            assert [commit.entry for commit in either.changes()][:2] == entries
            assert either.check() == []
        first = either.changes()[0]
        assert (first.actor, first.reason) == (None, None)
        assert first.changes[0].id == redacted_id("a")

    def test_the_past_lacks_it_and_rollback_lists_it(self, either: Memory) -> None:
        either.remember("one harbour", id="a")
        either.remember("two harbours", id="b")
        then = either.at(2)
        assert len(then.recall("harbour")) == 2  # now its index is cached
        either.erase("a")
        assert [hit.record.id for hit in then.recall("harbour")] == ["b"]
        assert then.get("a") is None
        assert [record.id for record in then.grep("harbour or harbours")] == ["b"]
        assert either.diff(0).added[0].id == "b"
        assert either.diff(1).erased == ("a",)
        either.forget("b")
        restored = either.rollback(2)
        assert (restored.changed, restored.erased) == (1, ("a",))
        assert either.revert(3).erased == ("a",)
        assert either.check() == []

    def test_the_same_record_can_be_remembered_again(self, either: Memory) -> None:
        record = either.remember("one", id="a")
        for redact in (False, True):
            either.erase("a", redact=redact)
            assert either.get("a") is None
            assert either.remember_all([record]).results[0].record == record
            assert either.get("a") == record
            assert (either.at(1).get("a") == record) is not redact  # a redacted id stays erased
            assert either.at(1).find() == ([] if redact else [record])
            assert either.check().erased == 0
            assert either.check() == []

    @pytest.mark.parametrize("redact", [False, True])
    @pytest.mark.parametrize("within", ["neither", "first", "again", "both"])
    def test_a_turn_does_not_come_back_when_its_conversation_is_passed_again(
        self, either: Memory, redact: bool, within: str
    ) -> None:
        turns = [{"role": "user", "content": text} for text in ("hello", SECRET, "bye")]

        def add(where: str, messages: list[dict[str, str]]) -> recollect.Report:
            if within in (where, "both"):
                return either.scoped(user="ana").add_messages(messages, conversation="c")
            return either.add_messages(messages, conversation="c", user="ana")

        add("first", turns)
        [secret] = [record.id for record in either.find() if record.content == SECRET]
        either.erase(secret, redact=redact)
        assert add("again", turns).count("unchanged") == 3
        assert add("again", [*turns, {"role": "user", "content": "more"}]).count("created") == 1
        assert [record.content for record in either.find(order="position")] == ["hello", "bye", "more"]
        either.remember(SECRET, user="ana")  # on purpose
        assert either.count() == 4

    def test_an_update_after_a_redaction_is_another_history(self, either: Memory) -> None:
        either.remember("one", id="a")
        either.erase("a", redact=True)
        assert either.history("a") == []
        either.remember("two", id="a")
        assert [each.cause for each in either.history("a")] == ["written"]
        restored = either.rollback(1)
        assert len(restored.erased) == 1
        assert is_redacted(restored.erased[0])
        assert either.find() == []

    @pytest.mark.promise("erase.rescue")
    def test_rescue_and_backup_carry_the_whole_history_past_it(self, folder: Path, tmp_path: Path) -> None:
        with recollect.open(folder / "a.db") as memory:
            with memory.batch(actor="bob", reason="zzreason") as batch:
                batch.remember("one", id="a")
            memory.remember("two", id="b")
            memory.remember("three", id="c")
            memory.erase("a", redact=True)
            memory.forget("c")
            memory.erase("c")
            memory.remember("four", id="d")
            seq, root, log, records = memory.seq, memory.root, memory.head().log, memory.find(order="id")
            memory.backup(tmp_path / "backup", verify=True)
        report = recollect.rescue(folder / "a.db", tmp_path / "rescued")
        (branch,) = report.branches.values()
        assert (branch.commits, branch.without_history, branch.same_root, report.lost) == (seq, 0, True, ())
        for path in (tmp_path / "rescued", tmp_path / "backup"):
            with recollect.open(path) as copy:
                assert (copy.seq, copy.root, copy.head().log, copy.find(order="id")) == (seq, root, log, records)
                assert copy.check() == []
                assert copy.check().erased == 2
                assert recollect.verify(copy.prove("a", at=1), copy.at(1).root)

    def test_check_finds_a_payload_that_no_commit_erased(self, folder: Path) -> None:
        with recollect.open(folder / "a.db") as memory:
            memory.remember("one", id="a")
            memory.forget("a")
        with SqliteStore(folder / "a.db")._connect(writing=True) as connection:
            connection.execute(
                "UPDATE versions SET payload = NULL; INSERT INTO removed_payloads VALUES (1, 'erased', 'a')"
            )
        with recollect.open(folder / "a.db") as memory:
            assert "no commit erased it" in "; ".join(memory.check())


_OTHER = textwrap.dedent(
    """
    import sys, recollect
    from recollect.testing.loopback import core_of
    memory = recollect.open(sys.argv[1], embedder="none")
    assert memory.recall("zanzibarsecret") and memory.at(1).recall("zanzibarsecret")
    print("warm", flush=True)
    sys.stdin.readline()
    memory.get("n1")
    core = core_of(memory)
    index = core.keeper.entries.peek(memory._branch).value.index
    raw = b"".join(array.tobytes() for array in index.segment.arrays.values()) + repr(index.segment.speakers).encode()
    payloads = [index.documents.rows.payload(number) for number in range(index.documents.count)]
    assert b"zanzibarsecret" not in raw + b"".join(payloads), "the index still has it"
    assert not len(core.past._entries)
    assert not memory.recall("zanzibarsecret") and not memory.at(1).recall("zanzibarsecret")
    print("dropped", flush=True)
    memory.close()
    """
)


class TestOtherProcesses:
    @pytest.mark.promise("erase.processes")
    def test_one_with_a_warm_index_drops_it_when_it_reads_next(self, folder: Path) -> None:
        with recollect.open(folder / "a.db", embedder="none") as memory:
            memory.remember(f"{SECRET} text", id="a", speaker=SECRET)
            memory.remember_all([{"content": f"harbour {number}", "id": f"n{number}"} for number in range(300)])
            with subprocess.Popen(
                [sys.executable, "-c", _OTHER, str(folder / "a.db")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as other:
                assert other.stdout is not None
                assert other.stdin is not None
                assert other.stdout.readline() == "warm\n"
                assert memory.erase("a").versions == 1
                other.stdin.write("\n")
                other.stdin.flush()
                assert other.stdout.readline() == "dropped\n"
            assert other.returncode == 0
        assert found_in(folder, SECRET) == set()

    def test_one_that_has_written_nothing_counts_its_quota_without_it(self, folder: Path) -> None:
        with recollect.open(folder / "a.db") as memory, recollect.open(folder / "a.db") as other:
            memory.set_quota(records=2)
            memory.remember_all([{"content": text, "id": text} for text in "ab"])
            with pytest.raises(QuotaError):
                other.remember("c")
            memory.erase("a", redact=True)
            assert other.remember("c").id in {each.id for each in memory.find()}

    @pytest.mark.promise("erase.processes")
    def test_uses_that_another_one_has_buffered_are_not_written(self, folder: Path) -> None:
        with recollect.open(folder / "a.db") as memory, recollect.open(folder / "a.db") as other:
            second = other.namespace("second")
            for each in (memory, second):
                each.set_quota(records=10_000, when_full="least recent")
            memory.remember("text", id=SECRET)
            assert other.get(SECRET) is not None
            core_of(memory).uses.write()
            memory.erase(SECRET, redact=True)
            second.remember_all([{"content": f"n{number}", "id": f"n{number}"} for number in range(1100)])
            for number in range(1100):
                second.get(f"n{number}")  # enough that they are written
            assert core_of(other).uses.of(core_branch(second))
            assert found_in(folder, SECRET) == set()
        assert found_in(folder, SECRET) == set()

    @pytest.mark.promise("erase.pending")
    def test_a_long_reader_makes_it_pending_and_the_next_write_finishes_it(self, folder: Path) -> None:
        with recollect.open(folder / "a.db", embedder="none") as memory:
            memory.remember(f"{SECRET} text", id="a")
            with memory.open_export():
                assert memory.erase("a").pending
                assert found_in(folder, SECRET)
                memory.remember("b", id="b")
                assert found_in(folder, SECRET)
            memory.remember("c", id="c")
            assert found_in(folder, SECRET) == set()
            with memory.open_export():
                memory.erase("b")
            assert core_of(memory).erasures.pending
        assert _note_of(folder / "a.db") is None  # closing finishes it, too

    def test_a_disk_that_fails_after_the_commit_makes_it_pending_and_nothing_returns_the_contents(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with recollect.open(folder / "a.db", embedder="none") as memory:
            memory.remember(f"{SECRET} text", id="a")
            assert memory.recall(SECRET)
            erasures = core_of(memory).erasures

            def failing(branch: Branch) -> bool:
                raise StoreIOError("a.db", "the disk is away")

            monkeypatch.setattr(erasures, "_follow", failing)
            erased = memory.erase("a")
            assert (erased.ids, erased.pending, erasures.pending) == (("a",), True, True)
            assert memory.get("a") is None
            assert list(memory.recall(SECRET)) == []
            monkeypatch.undo()
            memory.remember("b", id="b")
            assert not erasures.pending
            assert found_in(folder, SECRET) == set()

    def test_while_it_is_pending_a_write_tries_only_the_step_that_is_left(self, folder: Path) -> None:
        with recollect.open(folder / "a.db", embedder=Hashed()) as memory:
            memory.remember(f"{SECRET} text", id="a")
            memory.remember("harbour", id="b")
            memory.embed_all()
            with memory.open_export():
                assert memory.erase("a").pending
                memory.embed_all()
                memory.grep("harbour")
                before = [(folder / "a.db.index" / each).stat().st_mtime_ns for each in ("text.db", "vectors.db")]
                memory.remember("c", id="c")
                after = [(folder / "a.db.index" / each).stat().st_mtime_ns for each in ("text.db", "vectors.db")]
                assert before == after
                assert core_of(memory).erasures.pending
            memory.remember("d", id="d")
            assert not core_of(memory).erasures.pending
            assert found_in(folder, SECRET) == set()

    def test_what_a_killed_process_left_is_finished_when_the_store_is_opened(self, folder: Path) -> None:
        code = textwrap.dedent(
            f"""
            import os, signal, sys, recollect
            memory = recollect.open(sys.argv[1], embedder="none")
            memory.remember("{SECRET} text", id="a")
            memory.grep("{SECRET}")
            reader = memory.open_export()
            assert memory.erase("a").pending
            os.kill(os.getpid(), signal.SIGKILL)
            """
        )
        done = subprocess.run([sys.executable, "-c", code, str(folder / "a.db")], check=False)
        assert done.returncode == -signal.SIGKILL
        assert found_in(folder, SECRET)
        assert _note_of(folder / "a.db") is not None
        with recollect.open(folder / "a.db", embedder="none") as memory:
            assert found_in(folder, SECRET) == set()
            assert memory.check() == []
        assert _note_of(folder / "a.db") is None

    def test_a_backup_of_a_pending_erasure_has_no_contents_and_finishes_when_it_is_opened(
        self, folder: Path, tmp_path: Path
    ) -> None:
        with recollect.open(folder / "a.db", embedder="none") as memory:
            memory.remember(f"{SECRET} text", id="a")
            with memory.open_export():
                assert memory.erase("a").pending
                memory.backup(tmp_path / "b.db")
        copy = tmp_path / "b.db"
        assert found_in(copy, SECRET) == set()
        with recollect.open(copy, embedder="none") as memory:
            assert memory.check() == []
        assert _note_of(copy) is None


def test_erasures_of_several_namespaces_and_of_an_earlier_release_are_finished(folder: Path) -> None:
    path = folder / "a.db"
    with recollect.open(path, embedder="none") as memory:
        store = core_of(memory).store
        memory.remember("one", id="a")
        note = json.dumps({"branches": [["default", "main"]], "derived": False, "rewritten": False})
        for name in ("erasing", "erasing/default", "erasing/another"):
            with store.write(Branch("any")) as transaction:
                transaction.set_setting(name, note)
    with recollect.open(path, embedder="none") as memory, core_of(memory).store.read() as view:
        assert view.settings("erasing", "erasing0") == {}
        assert memory.count() == 1


def test_two_namespaces_note_their_erasures_apart(folder: Path) -> None:
    with recollect.open(folder / "a.db", "one", embedder="none") as one, one.namespace("two") as two:
        for memory in (one, two):
            memory.remember("text", id="a")
        with one.open_export():  # a reader keeps both from being complete
            assert one.erase("a").pending
            assert two.erase("a").pending
            with core_of(one).store.read() as view:
                assert list(view.settings("erasing", "erasing0")) == ["erasing/one", "erasing/two"]
        one.remember("text", id="b")
        with core_of(one).store.read() as view:
            assert view.settings("erasing", "erasing0") == {}


def _note_of(path: Path) -> str | None:
    """The note of what is left to do, read without finishing it."""
    store = SqliteStore(path, read_only=True)
    try:
        with store.read() as view:
            return view.setting("erasing/default")
    finally:
        store.close()


NOTES = ["nonsense", "[1]", '{"branches": [1]}', '{"branches": [["a"]]}', '{"branches": 7}']


@pytest.mark.parametrize("note", NOTES)
def test_a_corrupt_note_of_an_erasure_is_reported_and_stops_no_other_call(
    folder: Path, note: str, caplog: pytest.LogCaptureFixture
) -> None:
    with recollect.open(folder / "a.db") as memory:
        memory.remember("one", id="a")
        with core_of(memory).store.write(Branch("default")) as transaction:
            transaction.set_setting("erasing/default", note)
    with recollect.open(folder / "a.db") as memory:
        memory.remember("two", id="b")
        assert memory.count() == 2
        with pytest.raises(DamagedStoreError, match="note of an erasure"):
            memory.erase("a")
        assert memory.get("a") is not None
    assert "note of an erasure" in caplog.text


class TestFaults:
    def test_an_error_at_any_step_leaves_nothing_or_all_erased(self, tmp_path: Path) -> None:
        for step in range(1, 100):
            folder = tmp_path / str(step)
            folder.mkdir()
            faulty = FaultyStore(SqliteStore(folder / "a.db"), fail_at=0)
            memory = memory_on(faulty)
            memory.remember(f"{SECRET} text", id="a")
            memory.remember(f"{SECRET} other", id="b")
            memory.forget("b")
            memory.grep(SECRET)
            failing = FaultyStore(faulty.inner, fail_at=step)
            memory = memory_on(failing)
            pending, raised = False, False
            try:
                pending = memory.erase(f.contains(SECRET), redact=bool(step % 2)).pending
            except StoreFullError:
                raised = True
            assert memory.check() == []
            if raised:
                assert memory.get("a") is not None
                assert len(memory.history("b")) == 2
            else:
                assert memory.get("a") is None
                memory_on(faulty.inner).remember("c", id="c")  # a process that opens the store continues
                assert found_in(folder, SECRET) == set()
            memory.close()
            if failing.failed_in is None:
                assert not pending
                assert step > 5
                return
            if failing.failed_in in ("compact", "truncate"):
                assert pending
        raise AssertionError("there are more steps than expected")


def test_an_erasure_drops_what_facets_cached_of_its_branch_only() -> None:
    memory = recollect.open(":memory:")
    chosen = memory.remember("Ana met Bo")
    memory.namespace("other").remember("Cy met Di")
    memory.entities()
    memory.namespace("other").entities()
    cached = core_of(memory).facets["mentions"].entries
    assert [key.branch.namespace for key in cached] == ["default", "other"]
    memory.erase(chosen.id)
    assert [key.branch.namespace for key in cached] == ["other"]


@pytest.mark.parametrize("redact", [False, True])
def test_a_store_in_memory_drops_what_it_had(redact: bool) -> None:
    store = MemoryStore()
    memory = memory_on(store)
    memory.remember(f"{SECRET} text", id="chosen")
    memory.erase("chosen", redact=redact)
    assert SECRET not in repr(store._contents)
    assert ("chosen" in repr(store._contents)) is not redact


def test_the_command_erases_everything_of_a_person(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from recollect.cli.app import app

    monkeypatch.setenv("RECOLLECT_USER", "bob")  # it is no default of what is erased
    path = str(folder / "a.db")
    with recollect.open(path) as memory:
        memory.remember(f"{SECRET} text", id="a", user="ana", agent="x")
        memory.remember("summary", id="s", derived_from=["a"])
        memory.remember("bob's", id="b", user="bob")

    def run(*arguments: str, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [*arguments, "--db", path])
        assert result.exit_code == code, result.output
        return result

    exported = run("export", "--user", "ana").stdout
    assert SECRET in exported
    assert "bob" not in exported
    assert len(run("export", "--user", "ana", "--agent", "y").stdout.splitlines()) == 1
    assert "--yes" in run("erase", "--user", "ana", code=2).stderr
    assert "either" in run("erase", "--yes", code=2).stderr
    result = run("erase", "--user", "ana", "--redact", "--yes", "--reason", "asked for")
    assert result.stdout == "erased: 1 records, 1 versions\n"
    assert "s (erase it with --derived)" in result.stderr
    assert found_in(folder, SECRET) == set()
    assert '"ids": []' in run("erase", "--where", "user=ana", "--yes", "--json", code=1).stdout
    assert "nothing was erased" in run("erase", "--user", "ana", "--yes", code=1).stderr
    assert run("erase", "b", "--yes").stdout == "erased: 1 records, 1 versions\n"
    assert "no record" in run("erase", "zz", "--yes", code=1).stderr
    monkeypatch.delenv("RECOLLECT_USER")
    assert "\u241a" in run("log").stdout  # a redacted id begins with a control character
    assert "\x1a" not in run("log").stdout


@pytest.mark.promise("erase.killed")
@in_torture
def test_a_killed_erasure_is_complete_or_has_not_happened() -> None:
    done = list(run_part("erase", [1]))
    assert [trial for trial in done if trial.problem] == []
    assert any(trial.where.startswith("inside an erasure") for trial in done)


def test_the_harness_notices_bytes_that_are_left_and_an_erasure_that_is_lost(tmp_path: Path) -> None:
    code = """
from torture.erasing import run, problem_in, steps_of
steps = steps_of(1)
done, _ = run(steps, folder)
print(problem_in(folder, steps, done))
word = next(step.text for step in steps if step.record_id == "r0" and step.kind == "write")
(folder / "copy").write_text(word)
print(problem_in(folder, steps, done))
print(problem_in(folder, steps[:-1], done - 1))
(folder / "copy").unlink()
import recollect
from recollect import filters as f
from torture.erasing import NAME, Step, play
more = [Step("write", "r7", 900), *(Step("beside", "r7", number) for number in range(901, 905))]
with recollect.open(folder / NAME, embedder="none") as memory:
    for step in more:
        play(step, memory)
    memory.erase(f.user("r7"), parts=["terms"])  # before the other parts, as no erasure of all does
print(problem_in(folder, [*steps, *more, Step("erase where", "r7", 1)], done + len(more)))
"""
    well, left, lost, disordered = fresh.run(code, tmp_path).split("\n")
    assert well == ""
    assert "still in a file" in left
    assert lost != ""
    assert "what is live is not" in disordered
