"""Texts with sparse codes: stored under numbers, found by their trigrams, moved to and from the table of sdr-memory."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some
from tests.mcp.clients import in_process

import recollect
from recollect import Memory
from recollect.cli.app import app
from recollect.errors import (
    ImportFormatError,
    InvalidArgumentError,
    InvalidRecordError,
    QuotaError,
    ReadOnlyMemoryError,
    RecollectError,
    RecordExistsError,
    StoreIOError,
    UnknownRecordError,
)
from recollect.facets.sdr.index.texts import LONGEST, split
from recollect.facets.sdr.operations import RecallSdrs
from recollect.operations import Now
from recollect.sdr import SDRMemory, SdrText, encode, explain, hamming, overlap, read_table, rule_score, write_table
from recollect.testing.loopback import beside

#: The example of the specification: by Hamming distance, the short text that shares nothing wins.
TEXTS = ("Error 500", "DNS timeout was the root cause of the outage", "Database connection pool exhausted")
texts = st.text(st.sampled_from("abcd é鍵"), min_size=1, max_size=30).filter(str.strip)

pytestmark = pytest.mark.stores("memory", "loopback")


def ids(found: list[Any]) -> list[int]:
    return [each["id"] for each in found]


class TestCodes:
    def test_the_code_of_hello_is_the_pinned_one(self) -> None:
        # FNV-1a 64 of the seven trigrams, modulo 4096, computed by hand from the published constants.
        def fnv(data: bytes) -> int:
            value = 0xCBF29CE484222325
            for byte in data:
                value = (value ^ byte) * 0x100000001B3 % 2**64
            return value

        bits = {fnv(gram) % 4096 for gram in (b"  h", b" he", b"hel", b"ell", b"llo", b"lo ", b"o  ")}
        code = encode("hello")
        assert len(code) == 512
        assert {at for at in range(4096) if code[at // 8] >> (7 - at % 8) & 1} == bits
        assert sorted(bits) == [676, 750, 1151, 2350, 3152, 3320, 3614]

    def test_the_same_text_has_the_same_code_whatever_the_hash_seed_is(self) -> None:
        program = "import sys, recollect.sdr; print(recollect.sdr.encode('Où est la clé ? 鍵はどこ').hex())"
        found = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("0", "1")
        }
        assert found == {encode("Où est la clé ? 鍵はどこ").hex() + "\n"}

    @given(texts, texts)
    def test_overlap_and_distance_count_bits(self, one: str, other: str) -> None:
        a, b = encode(one), encode(other)
        flags = [{at for at in range(4096) if code[at // 8] >> (7 - at % 8) & 1} for code in (a, b)]
        assert overlap(a, b) == len(flags[0] & flags[1])
        assert hamming(a, b) == len(flags[0] ^ flags[1])
        assert rule_score(a, b) == 1 - hamming(a, b) / 4096

    def test_the_rule_keeps_the_80_lowest_bits(self) -> None:
        text = " ".join(map(str, range(100, 200)))
        whole, rule = (int.from_bytes(encode(text, rule=each), "big") for each in (False, True))
        assert rule.bit_count() == 80 < whole.bit_count()
        assert rule == whole >> (4096 - rule_end(whole)) << (4096 - rule_end(whole))

    @pytest.mark.parametrize("wrong", [b"", b"x" * 511, "text", None])
    def test_what_is_no_code_is_refused(self, wrong: Any) -> None:
        for call in (overlap, hamming, rule_score):
            with pytest.raises(InvalidArgumentError, match="512 bytes"):
                call(encode("a"), wrong)

    @pytest.mark.parametrize("wrong", [3, None, b"x", "\ud800"])
    def test_what_is_no_text_is_refused(self, wrong: Any) -> None:
        for call in (encode, lambda text: explain(text, "a"), lambda text: explain("a", text)):
            with pytest.raises(InvalidArgumentError):
                call(wrong)
        with pytest.raises(InvalidArgumentError):
            encode("a", rule=1)  # type: ignore[arg-type]


def rule_end(whole: int) -> int:
    """Return the place after the 80th bit from the left."""
    left = [at for at in range(4096) if whole >> (4095 - at) & 1]
    return left[79] + 1


class TestSplitting:
    @given(st.text(st.sampled_from("ab .!\n"), max_size=3 * LONGEST))
    def test_pieces_are_short_and_have_every_word_character(self, text: str) -> None:
        pieces = split(text)
        assert all(0 < len(piece) <= LONGEST for piece in pieces)
        assert "".join("".join(pieces).split()) == "".join(text.split())

    def test_a_piece_ends_after_a_sentence(self) -> None:
        text = ("A sentence of some words that is here. " * 30).strip()
        assert all(piece.endswith(".") for piece in split(text))


class TestStore:
    def test_a_text_is_found_by_its_wording(self, memory: Memory) -> None:
        numbers = memory.sdr.store_many([(text, {"n": at}) for at, text in enumerate(TEXTS)])
        assert numbers == [1, 2, 3]
        found = memory.sdr.query("database timeout")
        assert ids(found) == [3, 2]  # the one without a common trigram is not found
        assert set(found[0]) == {"id", "text", "score", "metadata", "rule_score", "shared"}
        assert found[0]["metadata"] == {"n": 2}
        assert found[0]["text"] == TEXTS[2]
        assert "dat" in found[0]["shared"]
        assert all(0 < each["score"] <= 1 for each in found)

    def test_by_the_rule_the_short_text_wins(self, memory: Memory) -> None:
        memory.sdr.store_many([(text, None) for text in TEXTS])
        found = memory.sdr.query("database timeout", rule=True)
        assert ids(found)[0] == 1
        for each in found:
            assert each["score"] == each["rule_score"]
            assert each["score"] == rule_score(encode("database timeout", rule=True), encode(each["text"], rule=True))

    def test_scores_are_a_useful_threshold(self, memory: Memory) -> None:
        memory.sdr.store_many([(text, None) for text in TEXTS])
        assert ids(memory.sdr.query("conection pool exausted", minimum=0.5)) == [3]
        assert memory.sdr.query("the weather in Oslo", minimum=0.5) == []
        exact = memory.sdr.query(TEXTS[1], 1)[0]
        assert exact["score"] > 0.99
        assert ids(memory.sdr.query(TEXTS[1], minimum=exact["score"])) == [2]  # inclusive

    def test_a_long_text_is_found_by_any_part_of_it(self, memory: Memory) -> None:
        filler = [f"Line {number} says that nothing happened at all in hour {number % 24}." for number in range(200)]
        needle = "The quick database migration failed."
        memory.sdr.store(" ".join([*filler[:100], needle, *filler[100:]]))
        memory.sdr.store("The quick brown fox failed to jump.")
        assert memory.sdr.query("database migration failed", 1)[0]["id"] == 1

    def test_the_same_text_again_is_a_further_one_and_ties_go_by_number(self, memory: Memory) -> None:
        assert [memory.sdr.store("same"), memory.sdr.store("same"), memory.sdr.store("same")] == [1, 2, 3]
        assert ids(memory.sdr.query("same", 2)) == [1, 2]
        assert ids(memory.sdr.query("same", 2, rule=True)) == [1, 2]

    def test_a_number_is_never_given_twice(self, memory: Memory) -> None:
        memory.sdr.store_many([("a", None), ("b", None)])
        assert memory.sdr.forget(2)
        assert not memory.sdr.forget(2)
        assert memory.sdr.get(2) is None
        assert memory.sdr.store("c") == 3
        assert memory.sdr.stats() == {"memories": 2, "last_id": 3, "bits": 4096}

    def test_a_text_changes_and_its_history_stays(self, memory: Memory) -> None:
        number = memory.sdr.store("tea", {"a": 1})
        before = memory.execute(Now())
        assert memory.sdr.update(number, "coffee")
        known = memory.sdr.get(number)
        assert known is not None
        assert (known["text"], known["metadata"]) == ("coffee", {"a": 1})
        assert known["updated_ts"] >= known["created_ts"] > 0
        assert memory.sdr.update(number, metadata={"b": [2]})
        known = memory.sdr.get(number)
        assert known is not None
        assert (known["text"], known["metadata"]) == ("coffee", {"b": [2]})
        assert ids(memory.sdr.query("coffee")) == [number]
        assert memory.sdr.query("tea") == []
        assert ids(memory.at(before).sdr.query("tea")) == [number]
        assert len(beside(memory, "sdrs").history(str(number))) == 3
        assert not memory.sdr.update(9, "x")
        with pytest.raises(ReadOnlyMemoryError):
            memory.at(before).sdr.store("x")

    def test_a_text_expires(self) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        with recollect.open(":memory:", clock=lambda: now[0]) as memory:
            memory.sdr.store("tea", ttl=timedelta(minutes=1))
            memory.sdr.store("tea for two", ttl=600)
            assert ids(memory.sdr.query("tea")) == [1, 2]
            now[0] += timedelta(minutes=2)
            assert ids(memory.sdr.query("tea")) == [2]
            assert ids(memory.sdr.query("tea", rule=True)) == [2]

    def test_explain_gives_the_trigrams_that_both_share(self, memory: Memory) -> None:
        number = memory.sdr.store("Database connection pool")
        assert memory.sdr.explain("pool", number) == explain("pool", "Database connection pool")
        with pytest.raises(UnknownRecordError):
            memory.sdr.explain("pool", 99)

    @pytest.mark.parametrize("limit", [0, -1, "5", 1.5, True, None])
    def test_a_limit_that_is_no_count_is_refused(self, memory: Memory, limit: Any) -> None:
        with pytest.raises(InvalidArgumentError, match="limit"):
            memory.sdr.query("a", limit)

    def test_a_limit_that_is_too_large_is_refused_with_the_largest(self, memory: Memory) -> None:
        assert memory.sdr.query("a", 2**62) == []
        with pytest.raises(InvalidArgumentError, match=f"at most {2**62}"):
            memory.sdr.query("a", 2**63)

    def test_a_question_has_the_same_limit_now_then_and_in_a_batch(self, memory: Memory) -> None:
        memory.sdr.store("a")
        before = memory.execute(Now())
        limit = 2**16  # bytes: the default of Limits.question_bytes
        with beside(memory, "sdrs").batch() as batch:
            for ask in (
                memory.sdr.query,
                memory.at(before).sdr.query,
                lambda text: batch.execute(RecallSdrs(text=text)),
            ):
                assert len(ask("a" * limit)) == 1
                with pytest.raises(InvalidArgumentError, match=f"cap of {limit} bytes"):
                    ask("a" * (limit + 1))

    @pytest.mark.parametrize("text", ["", "  ", None, 3, b"x"])
    def test_what_is_no_text_is_refused(self, memory: Memory, text: Any) -> None:
        for call in (
            memory.sdr.store,
            memory.sdr.query,
            lambda text: memory.sdr.store_many([("a", None), (text, None)]),
        ):
            with pytest.raises(InvalidArgumentError):
                call(text)
        assert memory.sdr.stats()["memories"] == 0

    @pytest.mark.parametrize("metadata", [[], "x", {"@sdr": 1}, {"a": float("nan")}, {1: 2}, {"a": object()}])
    def test_what_is_no_metadata_is_refused(self, memory: Memory, metadata: Any) -> None:
        with pytest.raises(RecollectError):
            memory.sdr.store("a", metadata)
        assert memory.sdr.stats()["last_id"] == 0

    @pytest.mark.parametrize("number", [0, -1, "1", True, 2**40, None])
    def test_what_is_no_number_is_refused(self, memory: Memory, number: Any) -> None:
        for call in (memory.sdr.get, memory.sdr.forget, memory.sdr.update, lambda each: memory.sdr.explain("a", each)):
            with pytest.raises(InvalidArgumentError, match="id must be an integer"):
                call(number)

    def test_a_quota_refuses_all_or_nothing(self, memory: Memory) -> None:
        memory.set_quota(records=3)
        memory.sdr.store("one")  # and the record that counts
        with pytest.raises(QuotaError):
            memory.sdr.store_many([("two", None), ("three", None)])
        assert memory.sdr.stats()["memories"] == 1
        assert memory.sdr.store("two") == 2

    def test_texts_of_a_scope_have_numbers_of_their_own_and_are_seen_there_only(self, memory: Memory) -> None:
        ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
        assert [ana.sdr.store("green tea"), bob.sdr.store("black tea"), ana.sdr.store("tea")] == [1, 1, 2]
        assert [each["text"] for each in bob.sdr.query("tea")] == ["black tea"]
        assert ids(ana.sdr.query("tea")) == [2, 1]
        assert memory.sdr.query("tea") == []
        assert memory.recall("tea").hits == ()

    def test_threads_and_processes_never_share_a_number(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with SDRMemory(path) as memory, SDRMemory(path) as other:
            numbers: list[int] = []

            def work(own: SDRMemory) -> None:
                for _ in range(8):
                    numbers.append(own.store("text of a thread"))
                    assert own.query("text of a thread", 1)

            threads = [threading.Thread(target=work, args=(own,)) for own in (memory, memory, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(numbers) == list(range(1, 25))
            assert ids(other.query("text of a thread", 50)) == list(range(1, 25))

    @pytest.mark.parametrize("scoped", [False, True])
    def test_texts_that_many_threads_store_at_the_same_time_are_all_stored(self, memory: Memory, scoped: bool) -> None:
        sdr = (memory.scoped(user="ana") if scoped else memory).sdr
        start = threading.Barrier(8)

        def work(_: int) -> list[int]:
            start.wait()
            return [sdr.store("text of a thread") for _ in range(25)]

        with ThreadPoolExecutor(8) as pool:
            numbers = [number for each in pool.map(work, range(8)) for number in each]
        assert sorted(numbers) == list(range(1, 201))
        assert sdr.stats()["memories"] == 200

    def test_the_commits_name_who_changes_texts_and_why(self, memory: Memory) -> None:
        sdr = memory.sdr.by("ana", "an incident")
        sdr.store("one")
        sdr.update(1, "two")
        sdr.restore([{"id": 7, "text": "seven", "metadata": {}, "created_ts": 1, "updated_ts": 1}])
        sdr.forget(1)
        commits = beside(memory, "sdrs").changes()
        assert [(each.actor, each.reason) for each in commits] == [("ana", "an incident")] * 4

    def test_after_the_highest_number_nothing_is_stored(self, memory: Memory) -> None:
        memory.sdr.restore([{"id": 2**40 - 1, "text": "last", "metadata": {}, "created_ts": 1, "updated_ts": 1}])
        with pytest.raises(InvalidArgumentError, match="number"):
            memory.sdr.store("one more")
        assert memory.sdr.stats()["memories"] == 1

    @settings(max_examples=some(30), deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from(["store", "update", "forget"]), texts, st.integers(1, 6)), max_size=12),
        texts,
        st.booleans(),
    )
    def test_the_followed_index_answers_as_one_that_is_built_afterwards(
        self, steps: list[tuple[str, str, int]], question: str, rule: bool
    ) -> None:
        with recollect.open(":memory:") as memory, recollect.open(":memory:") as copy:
            for step, text, number in steps:
                if step == "store":
                    memory.sdr.store(text)
                elif step == "update":
                    memory.sdr.update(number, text)
                else:
                    memory.sdr.forget(number)
                memory.sdr.query(question, rule=rule)
            copy.sdr.restore(memory.sdr.texts())
            found = memory.sdr.query(question, 50, rule=rule)
            assert found == copy.sdr.query(question, 50, rule=rule)
            if rule:
                every = memory.sdr.texts()
                scores = {e["id"]: rule_score(encode(question, rule=True), encode(e["text"], rule=True)) for e in every}
                assert ids(found) == sorted(scores, key=lambda each: (-scores[each], each))


class TestSDRMemory:
    def test_it_opens_a_file_by_its_path_and_keeps_it(self, tmp_path: Path) -> None:
        with SDRMemory(tmp_path / "a.db") as memory:
            number = memory.store("Error 500", {"code": 500})
            assert memory.memory.sdr.get(number) == memory.get(number)
        with SDRMemory(str(tmp_path / "a.db")) as memory:
            assert [each["text"] for each in memory.query("error")] == ["Error 500"]
        with recollect.open(tmp_path / "a.db") as opened:
            assert opened.recall("error 500").hits == ()
            assert opened.sdr.stats()["memories"] == 1


class TestTable:
    def test_texts_come_back_with_their_numbers_and_times(self, tmp_path: Path) -> None:
        with SDRMemory(":memory:") as memory, SDRMemory(":memory:") as other:
            memory.store_many([("Error  500", {"a": [1, "é"]}), ("gone", None), ("third", None)])
            memory.forget(2)
            memory.update(3, "third again")
            assert write_table(tmp_path / "t.sqlite", memory.texts()) == 2
            rows = read_table(tmp_path / "t.sqlite")
            assert other.restore(rows) == 2
            assert other.restore(rows) == 0
            assert [each["text"] for each in other.texts()] == ["error 500", "third again"]  # the table is normalised
            for own, copy in zip(memory.texts(), other.texts(), strict=True):
                assert {**own, "text": ""} == {**copy, "text": ""}
            assert other.store("next") == 4
        assert sorted(each.name for each in tmp_path.iterdir()) == ["t.sqlite"]

    def test_the_table_is_that_of_the_specification(self, tmp_path: Path) -> None:
        with SDRMemory(":memory:") as memory:
            memory.store(" ".join(map(str, range(100, 200))), {"k": 1})
            write_table(tmp_path / "t.sqlite", memory.texts())
            (text,) = memory.texts()
        with closing(sqlite3.connect(tmp_path / "t.sqlite")) as database:
            assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            columns = [name for _, name, *_ in database.execute("PRAGMA table_info(memories)")]
            assert columns == ["id", "text", "bitvec", "active_bits", "metadata_json", "created_ts", "updated_ts"]
            (row,) = database.execute("SELECT * FROM memories")
        assert row[2] == encode(text["text"], rule=True)
        assert (row[0], row[3], json.loads(row[4]), row[5]) == (1, 80, {"k": 1}, text["created_ts"])

    def test_another_text_under_a_number_is_refused_and_nothing_is_stored(self) -> None:
        with SDRMemory(":memory:") as memory:
            memory.store("one")
            row: Any = {"id": 1, "text": "other", "metadata": {}, "created_ts": 1.0, "updated_ts": 1.0}
            with pytest.raises(RecordExistsError):
                memory.restore([row | {"id": 2}, row])
            with pytest.raises(InvalidArgumentError, match="different numbers"):
                memory.restore([row | {"id": 5}, row | {"id": 5}])
            wrong: Any
            for wrong in ({"id": 0}, {"created_ts": 1e300}, {"text": ""}, {"metadata": 3}):
                with pytest.raises((InvalidArgumentError, InvalidRecordError)):
                    memory.restore([row | {"id": 7} | wrong])
            assert memory.stats() == {"memories": 1, "last_id": 1, "bits": 4096}

    @pytest.mark.parametrize("wrong", [None, 3, "x", [5], ["x"], [None], [{}], [{"id": 1, "text": "a"}]])
    def test_what_are_no_texts_is_neither_stored_nor_written(self, tmp_path: Path, wrong: Any) -> None:
        with SDRMemory(":memory:") as memory:
            for call in (memory.restore, lambda texts: write_table(tmp_path / "t.sqlite", texts)):
                with pytest.raises(InvalidArgumentError, match="texts"):
                    call(wrong)
            assert memory.stats()["last_id"] == 0
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("wrong", "match"),
        [
            ({"id": "1"}, r"texts\[1\].id"),
            ({"id": 0}, r"texts\[1\].id"),
            ({"id": 2**63}, r"texts\[1\].id"),
            ({"text": 5}, r"texts\[1\].text"),
            ({"text": "\ud800"}, r"texts\[1\].text"),
            ({"metadata": []}, r"texts\[1\].metadata"),
            ({"created_ts": "now"}, r"texts\[1\].created_ts"),
            ({"updated_ts": 10**400}, r"texts\[1\].updated_ts"),
            ({"updated_ts": float("nan")}, r"texts\[1\].updated_ts"),
        ],
    )
    def test_the_text_with_a_wrong_value_is_named(self, tmp_path: Path, wrong: dict[str, Any], match: str) -> None:
        row: Any = {"id": 1, "text": "one", "metadata": {}, "created_ts": 1.0, "updated_ts": 1.0}
        with SDRMemory(":memory:") as memory:
            for call in (memory.restore, lambda texts: write_table(tmp_path / "t.sqlite", texts)):
                with pytest.raises(InvalidArgumentError, match=match):
                    call([row, row | {"id": 2} | wrong])
            assert memory.stats()["memories"] == 0
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("wrong", [None, 3, [5], [("a",)]])
    def test_what_are_no_pairs_is_not_stored(self, wrong: Any) -> None:
        with SDRMemory(":memory:") as memory:
            with pytest.raises(InvalidArgumentError, match="pairs"):
                memory.store_many(wrong)
            assert memory.store_many([]) == []

    def test_an_export_is_known_to_its_own_store(self, tmp_path: Path) -> None:
        with SDRMemory(":memory:") as memory:
            memory.store_many([("Error  500", {"a": [1, "é"]}), ("Straße", None)])
            write_table(tmp_path / "t.sqlite", memory.texts())
            assert memory.restore(read_table(tmp_path / "t.sqlite")) == 0
            assert [each["text"] for each in memory.texts()] == ["Error  500", "Straße"]
            (first, _) = read_table(tmp_path / "t.sqlite")
            wrong: Any
            for wrong in ({"text": "error 501"}, {"metadata": {"a": [1]}}):
                with pytest.raises(RecordExistsError):
                    memory.restore([{**first, **wrong}])

    def test_a_text_without_metadata_is_known_when_it_is_restored_again(self) -> None:
        text: Any = {"id": 3, "text": "one", "metadata": None, "created_ts": 1.0, "updated_ts": 1.0}
        with SDRMemory(":memory:") as memory:
            assert [memory.restore([text]), memory.restore([text])] == [1, 0]

    @pytest.mark.parametrize(
        ("statement", "match"),
        [
            ("UPDATE memories SET text = ' '", "the row with the id 1: has no text"),
            ("UPDATE memories SET metadata_json = '[]'", "JSON object"),
            ("UPDATE memories SET metadata_json = '{'", "JSON object"),
            ("UPDATE memories SET metadata_json = '[NaN]'", "JSON object"),
            ("UPDATE memories SET metadata_json = '{\"a\": NaN}'", "JSON object"),
            ("UPDATE memories SET created_ts = 'now'", "the row with the id 1: created_ts must be seconds"),
            ("UPDATE memories SET updated_ts = 1e300", "the row with the id 1: updated_ts must be seconds"),
            ("UPDATE memories SET updated_ts = 9e999", "the row with the id 1: updated_ts must be seconds"),
            ("UPDATE memories SET id = -5", "t.sqlite, the row with the id -5: id must be an integer"),
            ("UPDATE memories SET id = 0", "t.sqlite, the row with the id 0: id must be an integer"),
            ("UPDATE memories SET id = 1 << 40", "the row with the id 1099511627776: id must be an integer"),
            ("CREATE TABLE a AS SELECT * FROM memories; INSERT INTO a SELECT * FROM a", "the id of another row"),
            ("ALTER TABLE memories DROP COLUMN bitvec", "no table"),
        ],
    )
    def test_a_damaged_table_is_refused(self, tmp_path: Path, statement: str, match: str) -> None:
        path = tmp_path / "t.sqlite"
        with SDRMemory(":memory:") as memory:
            memory.store("one")
            write_table(path, memory.texts())
        with closing(sqlite3.connect(path)) as database, database:
            database.executescript(statement)
        with pytest.raises(ImportFormatError, match=match):
            read_table(path)

    def test_what_is_no_sqlite_file_is_neither_read_nor_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "t.sqlite"
        path.write_text("precious")
        with pytest.raises(ImportFormatError, match="is no SQLite file"):
            read_table(path)
        with pytest.raises(StoreIOError):
            read_table(tmp_path / "absent")
        with pytest.raises(InvalidArgumentError, match="not replaced"):
            write_table(path, [])
        assert path.read_text() == "precious"
        with pytest.raises(StoreIOError):
            write_table(tmp_path / "absent" / "t.sqlite", [])
        assert write_table(tmp_path / "own.sqlite", []) == 0
        assert write_table(tmp_path / "own.sqlite", []) == 0  # its own is replaced

    def test_a_table_that_a_daemon_is_writing_is_read_with_its_wal(self, tmp_path: Path) -> None:
        path = tmp_path / "t.sqlite"
        write_table(path, [])
        with closing(sqlite3.connect(path)) as database:
            database.execute("INSERT INTO memories VALUES (7, 'new', x'00', 0, '{}', 1, 2)")
            database.commit()
            assert [each["id"] for each in read_table(path)] == [7]

    @pytest.mark.parametrize("path", [None, 3, "", b"t.sqlite"])
    def test_what_is_no_path_is_refused(self, path: Any) -> None:
        for call in (read_table, lambda each: write_table(each, [])):
            with pytest.raises(InvalidArgumentError, match="path"):
                call(path)

    def test_a_folder_is_neither_read_nor_replaced(self, tmp_path: Path) -> None:
        with pytest.raises(StoreIOError, match="is a folder"):
            read_table(tmp_path)
        with pytest.raises(InvalidArgumentError, match="is a folder"):
            write_table(tmp_path, [])

    def test_an_id_twice_is_named_and_the_file_is_as_it_was(self, tmp_path: Path) -> None:
        path = tmp_path / "t.sqlite"
        write_table(path, [row(1, "former")])
        with pytest.raises(InvalidArgumentError, match=r"texts\[2\].id 7 is the id of another text"):
            write_table(path, [row(7, "one"), row(8, "two"), row(7, "three")])
        assert [each["text"] for each in read_table(path)] == ["former"]

    def test_a_table_with_the_wal_of_a_program_that_was_killed_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "t.sqlite"
        killed(path, "PRAGMA journal_mode = WAL; " + insert(7))
        assert (tmp_path / "t.sqlite-wal").stat().st_size > 0
        assert [each["id"] for each in read_table(path)] == [7]
        write_table(path, [row(1, "new")])
        assert [each["text"] for each in read_table(path)] == ["new"]
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT text FROM memories").fetchall() == [("new",)]

    def test_a_table_that_is_in_use_is_not_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "t.sqlite"
        write_table(path, [])
        with closing(sqlite3.connect(path)) as database:
            database.executescript(insert(7))
            with pytest.raises(InvalidArgumentError, match=r"is in use.*t.sqlite-shm.*nothing was replaced"):
                write_table(path, [row(1, "new")])
            database.executescript(insert(8))
        assert [each["id"] for each in read_table(path)] == [7, 8]
        assert write_table(path, [row(1, "new")]) == 1
        assert [each["text"] for each in read_table(path)] == ["new"]

    @pytest.mark.parametrize("suffix", ["-wal", "-journal"])
    def test_nothing_is_written_beside_the_changes_of_a_file_that_is_gone(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / "t.sqlite"
        (tmp_path / f"t.sqlite{suffix}").write_bytes(b"changes")
        with pytest.raises(InvalidArgumentError, match=f"t.sqlite{suffix}"):
            write_table(path, [row(1, "new")])
        assert [each.name for each in tmp_path.iterdir()] == [f"t.sqlite{suffix}"]

    def test_what_a_killed_program_did_not_commit_is_neither_read_nor_lost(self, tmp_path: Path) -> None:
        path = tmp_path / "t.sqlite"
        write_table(path, [row(1, "committed")])
        killed(path, "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN;" + insert(*range(2, 400)))
        assert (tmp_path / "t.sqlite-journal").stat().st_size > 0
        with pytest.raises(StoreIOError, match="interrupted"):
            read_table(path)
        with pytest.raises(InvalidArgumentError, match=r"t\.sqlite-journal"):
            write_table(path, [])
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT text FROM memories").fetchall() == [("committed",)]
        assert [each["text"] for each in read_table(path)] == ["committed"]

    def test_a_table_that_a_program_is_writing_with_a_journal_is_read_as_it_was(self, tmp_path: Path) -> None:
        path = tmp_path / "t.sqlite"
        write_table(path, [row(1, "committed")])
        with closing(sqlite3.connect(path)) as database:
            database.executescript("PRAGMA journal_mode = DELETE; BEGIN;" + insert(2))
            assert [each["id"] for each in read_table(path)] == [1]
            with pytest.raises(InvalidArgumentError, match="in use"):
                write_table(path, [])
            database.commit()
        assert [each["id"] for each in read_table(path)] == [1, 2]


def row(number: int, text: str) -> SdrText:
    return {"id": number, "text": text, "metadata": {}, "created_ts": 1.0, "updated_ts": 1.0}


def insert(*numbers: int) -> str:
    """Return the SQL that stores texts under these numbers."""
    return "".join(f"INSERT INTO memories VALUES ({each}, '{each:01000}', x'00', 0, '{{}}', 1, 2);" for each in numbers)


def killed(path: Path, statements: str) -> None:
    """Write to a table in a process that ends without closing it."""
    if not path.exists():
        write_table(path, [])
    program = (
        "import os, sqlite3, sys; database = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "[database.execute(each) for each in sys.stdin.read().split(';')]; os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], input=statements, text=True, check=True)


def test_the_commands_store_find_and_move(tmp_path: Path) -> None:
    def run(*arguments: str, db: str = "a.db") -> Any:
        done = CliRunner().invoke(
            app, ["sdr", *arguments, "--db", str(tmp_path / db), "--json"], catch_exceptions=False
        )
        assert done.exit_code == 0, done.output
        return json.loads(done.output)

    assert run("store", "Error 500", "--metadata", '{"a": 1}') == {"id": 1}
    assert run("store", "Disk full") == {"id": 2}
    assert ids(run("query", "eror 500")) == [1]
    assert ids(run("query", "eror 500", "--rule")) == [1, 2]
    assert run("forget", "2") == {"forgotten": True}
    assert run("export", str(tmp_path / "t.sqlite"))["texts"] == 1
    assert run("import", str(tmp_path / "t.sqlite"), db="b.db") == {"imported": 1, "known": 0}
    assert run("stats", db="b.db")["memories"] == 1


def test_an_agent_finds_texts_over_mcp(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory, in_process(memory, ["sdr"]) as server:
        assert server.ok("store_text", text="Error 500") == {"id": 1}
        assert ids(server.ok("find_texts", text="eror 500", k=1)["texts"]) == [1]
        assert server.ok("forget_text", id=1) == {"forgotten": True}
        commits = beside(memory, "sdrs").changes()
        assert [(each.actor, each.reason) for each in commits] == [("mcp", "store_text"), ("mcp", "forget_text")]
