"""Receipts: what they bind is noticed if it changes, and the same question gives the same answer as of its commit."""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import json
import pickle
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.paths import GOLDEN

import recollect
from recollect import Memory
from recollect import filters as f
from recollect.cli.app import app
from recollect.engine.read import rules
from recollect.engine.results import Hits
from recollect.errors import InvalidArgumentError, InvalidOperationError, ScopeError, UnsupportedError
from recollect.indexes import parameters
from recollect.indexes.scoring import signals
from recollect.ledger.receipts import checked, digest_of, sealed
from recollect.models.embedding.base import Floats
from recollect.models.embedding.hashed import Hashed
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.stores.sqlite_base import checksums
from recollect.testing import TickingClock, memory_on

QUESTION = "which seat does Ana prefer?"
Receipt = dict[str, Any]


@pytest.fixture(params=["memory", "file", "loopback"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    store = SqliteStore(tmp_path / "a.db") if request.param == "file" else MemoryStore()
    with memory_on(store, clock=TickingClock(), loopback=request.param == "loopback") as opened:
        fill(opened)
        yield opened


def fill(memory: Memory) -> None:
    memory.remember("Ana prefers window seats", id="window", user="ana")
    memory.remember("Bob prefers the aisle seat", id="aisle", user="bob")
    memory.remember("Always answer Ana in French", id="french", user="ana", tags=["standing:instruction"])
    memory.remember("A seat that is gone tomorrow", id="gone", ttl=timedelta(days=1))


class TestWhatIsBound:
    def test_a_receipt_has_the_state_of_the_recall_whatever_was_committed_since(self, memory: Memory) -> None:
        head = memory.head()
        at_once, later = memory.recall(QUESTION), memory.recall(QUESTION, reference="2026-01-01")
        receipt = at_once.receipt
        memory.update("window", content="Ana prefers to stand")
        memory.forget("aisle")
        for found in (receipt, later.receipt):
            assert (found["seq"], found["root"], found["log"]) == (head.seq, head.parts["records"], head.log)
            assert [each["id"] for each in found["hits"]] == [hit.record.id for hit in at_once]
            assert [each["score"] / 2**30 for each in found["hits"]] == [hit.score for hit in at_once]
            assert [each["id"] for each in found["standing"]] == ["french"]
        versions = {change.id: change.after for commit in memory.changes()[:4] for change in commit.changes}
        for each in receipt["hits"] + receipt["standing"]:
            version = versions[each["id"]]
            assert version is not None
            assert each["version"] == version.hex()
        assert (at_once.receipt, receipt["digest"]) == (receipt, digest_of(receipt))
        question = json.loads(receipt["operation"])
        assert (question["op"], question["question"]) == ("recall", QUESTION)
        assert json.loads(later.receipt["operation"])["reference"] == "2026-01-01T00:00:00+00:00"

    def test_the_digest_can_be_computed_without_this_package(self, memory: Memory) -> None:
        receipt = memory.recall("wer mag den Fensterplatz? \u2028 \x7f \U0001f4ba").receipt
        fields = {name: receipt[name] for name in sorted(receipt) if name != "digest"}
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        assert receipt["digest"] == hashlib.sha256(b"recollect.receipt.1\0" + text.encode()).hexdigest()

    def test_every_change_of_a_field_is_noticed(self, memory: Memory) -> None:
        receipt = memory.recall(QUESTION, where=f.user("ana")).receipt
        assert memory.replay(receipt).status == "same"
        changes = list(_changed(receipt))
        assert len(changes) > 40
        for changed in changes:
            with pytest.raises(InvalidArgumentError):
                memory.replay(changed)

    def test_a_constant_that_decides_a_score_is_part_of_the_rules(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = rules.digest()
        # The same object has the same form: made once, and not for each of 650 digests.
        form, kept = rules._form, [value for _, value in rules.constants()]
        forms = {id(value): form(value) for value in kept}
        monkeypatch.setattr(rules, "_form", lambda value: forms.get(id(value)) or form(value))
        assert rules.digest() == before
        numbers = [name for name, value in vars(parameters).items() if name.isupper() and isinstance(value, int)]
        assert len(numbers) > 15
        for name in numbers:
            with monkeypatch.context() as patch:
                patch.setattr(parameters, name, getattr(parameters, name) + 1)
                assert rules.digest() != before, name
        for name, _ in rules.constants():
            module, _, constant = name.rpartition(".")
            with monkeypatch.context() as patch:
                patch.setattr(f"{module}.{constant}", ["another"])
                assert rules.digest() != before, name
        assert rules.digest() == before

    def test_a_constant_without_a_canonical_form_is_an_error_and_not_left_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(parameters, "NEW", object(), raising=False)
        with pytest.raises(TypeError, match="canonical form"):
            rules.digest()

    def test_equal_constants_have_equal_forms_and_others_do_not(self) -> None:
        values: list[Any] = [1, 1.5, "1", b"1", None, True, (1,), ((1,),), {1}, {1: 2}, np.array([1]), np.array([1, 2])]
        forms = [rules._form(value) for value in values]
        assert len(set(forms)) == len(forms)
        assert rules._form({"b", "a", "c"}) == rules._form({"c", "b", "a"})

    def test_the_revision_follows_the_scores(self) -> None:
        """Where this fails, scores have changed: raise `rules._REVISION`, unless a constant that changed covers it."""
        golden = GOLDEN / "results.txt"
        assert (rules._REVISION, hashlib.sha256(golden.read_bytes()).hexdigest()[:16]) == (15, "67087e5112665ba9")


def _changed(value: Any) -> Iterator[Any]:
    """Every copy of a JSON value with one part changed, removed or added."""
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
            for changed in _changed(value[key]):
                yield {**value, key: changed}
        yield {**value, "more": 1}
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield value[:at] + value[at + 1 :]
            for changed in _changed(item):
                yield [*value[:at], changed, *value[at + 1 :]]
        yield [*value, "more"]
    elif isinstance(value, str):
        yield value + "x"
        yield "x" + value[1:] if value[:1] != "x" else "y" + value[1:]
        yield None
    elif value is None:
        yield 0
        yield ""
    else:
        yield value + 1
        yield float(value)
        yield str(value)


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=2)))
def test_no_value_but_a_receipt_is_one(value: Any) -> None:
    fields: dict[str, Any] = dict.fromkeys(("namespace", "branch", "operation", "language", "rules", "time"), "x")
    fields |= {"embedder": {}, "vectors": 5, "vector": "AEA=", "seq": 5, "root": "x", "log": "x"}
    good = sealed({**fields, "hits": [], "standing": []})
    assert checked(good) == good
    for wrong in (
        value,
        {**good, "hits": value},
        {**good, "vector": value},
        {**good, "digest": value},
        {"receipt": value},
    ):
        if wrong != good:
            with pytest.raises(InvalidArgumentError):
                checked(wrong)


class TestReplaying:
    def test_it_is_the_same_after_a_thousand_commits(self, memory: Memory) -> None:
        hits = memory.recall(QUESTION, where="user=ana or not user", min_confidence=0.01, language="en")
        receipt = hits.receipt
        for number in range(1000):
            memory.remember(f"note {number} on seats and Ana", id=f"n{number % 50}", if_exists="update")
        memory.update("window", content="Ana prefers to stand")
        replayed = memory.replay(receipt)
        assert (replayed.status, replayed.deviations, bool(replayed)) == ("same", (), True)
        assert memory.replay(memory.recall(QUESTION).receipt)

    def test_it_is_the_same_on_a_restored_backup_and_different_on_an_older_copy(self, tmp_path: Path) -> None:
        path, copied, older = (tmp_path / name for name in ("a.db", "copy.db", "older.db"))
        with recollect.open(path) as memory:
            fill(memory)
            memory.backup(older)
            memory.remember("Ana likes a seat at the front")
            receipt = json.loads(json.dumps(memory.recall(QUESTION).receipt))
            memory.backup(copied)
        with recollect.open(copied) as copy_:
            assert copy_.replay(receipt).status == "same"
        with recollect.open(older) as other:
            assert [each.what for each in other.replay(receipt).deviations] == ["seq"]
            other.remember("Another history of a seat")
            replayed = other.replay(receipt)
            assert replayed.status == "different"
            assert {each.what for each in replayed.deviations} == {"root", "log", "hits", "standing"}

    def test_a_record_counts_as_expired_by_the_time_of_the_answer(self) -> None:
        now = [datetime(2026, 1, 1, tzinfo=UTC)]
        memory = memory_on(MemoryStore(), clock=lambda: now[0])
        fill(memory)
        before = memory.recall(QUESTION)
        now[0] += timedelta(days=1)
        after = memory.recall(QUESTION)
        receipts = before.receipt, after.receipt
        assert "gone" in {hit.record.id for hit in before} - {hit.record.id for hit in after}
        assert receipts[0]["seq"] == receipts[1]["seq"]
        memory.sweep()
        assert [memory.replay(each).status for each in receipts] == ["same", "same"]

    def test_an_answer_that_was_not_given_is_different(self, memory: Memory) -> None:
        receipt = memory.recall(QUESTION).receipt
        hits = receipt["hits"]
        assert len(hits) > 1
        forged: list[tuple[dict[str, Any], str, int | None]] = [
            ({"hits": hits[::-1]}, "hits", 0),
            ({"hits": hits[:-1]}, "hits", len(hits) - 1),
            ({"hits": [{**hits[0], "score": hits[0]["score"] + 1}, *hits[1:]]}, "hits", 0),
            ({"hits": [*hits, {**hits[0], "id": "never"}]}, "hits", len(hits)),
            ({"standing": []}, "standing", 0),
            ({"root": "0" * 64}, "root", None),
            ({"log": "0" * 64}, "log", None),
        ]
        for change, what, rank in forged:
            replayed = memory.replay(sealed({**receipt, **change}))
            assert replayed.status == "different", change
            first = replayed.deviations[0]
            assert (first.what, first.rank) == (what, rank)

    def test_changed_rules_are_reported_and_the_answer_is_compared_nevertheless(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        receipt = memory.recall(QUESTION).receipt
        other = sealed({**receipt, "rules": "0" * 64})
        assert memory.replay(other).to_json() == {"status": "rules changed", "rules_changed": True, "deviations": []}
        monkeypatch.setattr(signals, "SPEAKER", 1)
        assert memory.replay(receipt).status == "rules changed"
        # A rewritten history is different, whatever the rules are.
        assert memory.replay(sealed({**other, "log": "0" * 64})).status == "different"
        score = receipt["hits"][0]["score"]
        changed = sealed({**other, "hits": [{**receipt["hits"][0], "score": score + 1}, *receipt["hits"][1:]]})
        replayed = memory.replay(changed)
        assert (replayed.status, replayed.deviations[0].rank) == ("rules changed", 0)

    def test_a_hit_whose_text_was_erased_is_different_and_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path) as memory:
            fill(memory)
            receipt = memory.recall(QUESTION).receipt
            memory.forget("window")
            assert memory.replay(receipt)
        erase_payload(path, next(each["version"] for each in receipt["hits"] if each["id"] == "window"))
        with recollect.open(path) as memory:
            replayed = memory.replay(receipt)
        assert replayed.status == "different"
        assert any(each.reason == "erased" and each.receipt["id"] == "window" for each in replayed.deviations)

    def test_vectors_are_bound_with_their_model_and_watermark(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path, embedder=Hashed()) as memory:
            fill(memory)
            without = memory.recall(QUESTION).receipt
            assert (without["embedder"], without["vectors"]) == (None, None)
            memory.embed_all()
            receipt = memory.recall(QUESTION).receipt
            assert receipt["embedder"] == {"name": Hashed().name, "floors": [*map(repr, Hashed().floors)]}
            assert receipt["vectors"] == receipt["seq"]
            memory.remember("A seat for Ana, again")
            memory.embed_all()
            assert [memory.replay(each).status for each in (receipt, without)] == ["same", "same"]
        with recollect.open(path) as memory:
            assert memory.replay(without).status == "same"
            assert memory.replay(receipt).deviations[0].what == "embedder"
            memory.backup(tmp_path / "b.db")
        with recollect.open(tmp_path / "b.db", embedder=Hashed()) as memory:  # a backup has no vectors
            assert memory.replay(receipt).deviations[0].what == "vectors"
            memory.embed_all()
            assert memory.replay(receipt).status == "same"

    def test_an_answer_replays_where_the_model_computes_a_question_differently(self, tmp_path: Path) -> None:
        class Elsewhere(Hashed):
            """The same model on another machine."""

            def embed(self, texts: Sequence[str], *, asking: bool = False) -> Floats:
                out = super().embed(texts, asking=asking)
                return out + np.float32(0.001) * out.std() if asking else out

        path = tmp_path / "a.db"
        with recollect.open(path, embedder=Hashed()) as memory:
            fill(memory)
            memory.embed_all()
            receipt = memory.recall(QUESTION).receipt
        assert len(base64.b64decode(receipt["vector"])) == 2 * Hashed().dimension
        older = {name: value for name, value in receipt.items() if name not in ("vector", "digest")}
        older["receipt"] = 1  # earlier releases state no vector, so the model is asked
        older["digest"] = digest_of(older)
        with recollect.open(path, embedder=Hashed()) as memory:
            assert [memory.replay(each).status for each in (receipt, older)] == ["same", "same"]
        with recollect.open(path, embedder=Elsewhere()) as memory:
            assert [hit.score for hit in memory.recall(QUESTION)] != [hit["score"] / 2**30 for hit in receipt["hits"]]
            assert [memory.replay(each).status for each in (receipt, older)] == ["same", "different"]

    def test_the_language_of_the_memory_is_that_of_the_answer(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        with recollect.open(path, language="de") as memory:
            memory.remember("Ana mag den Platz am Fenster")
            receipt = memory.recall("Welche Plätze mag Ana?").receipt
        assert receipt["language"] == "de"
        with recollect.open(path, language="en") as memory:
            assert memory.replay(receipt).status == "same"

    def test_an_empty_memory_has_receipts_too(self) -> None:
        memory = memory_on(MemoryStore())
        receipt = memory.recall(QUESTION).receipt
        assert (receipt["seq"], receipt["hits"]) == (0, [])
        memory.remember("Ana prefers window seats")
        assert memory.replay(receipt).status == "same"

    def test_a_receipt_of_the_past_is_that_of_its_moment(self, memory: Memory) -> None:
        hits = memory.recall(QUESTION, reference="2026-01-01")
        memory.forget("window")
        past = memory.at(hits.watermark).recall(QUESTION, reference="2026-01-01").receipt
        present = hits.receipt
        assert {name for name in present if present[name] != past[name]} <= {"time", "digest"}
        assert memory.replay(past)


class TestWhoHasNone:
    def test_scopes_batches_copies_and_custom_filters(self, memory: Memory) -> None:
        scoped = memory.scoped(user="ana")
        with pytest.raises(ScopeError):
            _ = scoped.recall(QUESTION).receipt
        with pytest.raises(ScopeError):
            scoped.replay(memory.recall(QUESTION).receipt)
        with memory.batch() as batch:
            hits = batch.recall(QUESTION)
            with pytest.raises(UnsupportedError, match="batch"):
                _ = hits.receipt
        hits = memory.recall(QUESTION)
        for again in (Hits.from_json(json.loads(json.dumps(hits.to_json()))), pickle.loads(pickle.dumps(hits))):
            assert (again, again.time, again.reference) == (hits, hits.time, hits.reference)
            with pytest.raises(UnsupportedError):
                _ = again.receipt
        assert copy.deepcopy(hits) == hits

    def test_a_custom_filter_cannot_travel(self) -> None:
        memory = memory_on(MemoryStore())
        with pytest.raises(UnsupportedError, match="custom filter"):
            _ = memory.recall(QUESTION, where=f.custom(lambda record: True)).receipt

    def test_another_namespace_refuses_it(self, memory: Memory) -> None:
        with pytest.raises(InvalidArgumentError, match="another namespace"):
            memory.namespace("other").replay(memory.recall(QUESTION).receipt)

    def test_an_operation_of_another_kind_is_no_question(self, memory: Memory) -> None:
        receipt = memory.recall(QUESTION).receipt
        for question in ('{"op":"clear"}', "{", '{"op":"recall","question":"x"}', "null"):
            with pytest.raises((InvalidArgumentError, InvalidOperationError)):
                memory.replay(sealed({**receipt, "operation": question}))
        assert memory.count() == 4

    def test_a_recall_whose_receipt_is_not_read_executes_nothing_else(self, memory: Memory) -> None:
        executed: list[str] = []
        execute = memory._executor.execute

        def spy(operation: Any, *arguments: Any) -> Any:
            executed.append(operation.name)
            return execute(operation, *arguments)

        memory._executor.execute = spy  # type: ignore[method-assign, assignment]
        hits = memory.recall(QUESTION)
        assert executed == ["recall"]
        assert hits.receipt
        assert executed == ["recall", "receipt"]


def test_it_can_be_awaited(tmp_path: Path) -> None:
    async def run() -> str:
        async with recollect.AsyncMemory(recollect.open(tmp_path / "a.db")) as memory:
            await memory.remember("Ana prefers window seats")
            hits = await memory.recall(QUESTION)
            return (await memory.replay(hits.receipt)).status

    assert asyncio.run(run()) == "same"


def test_the_command_exits_with_0_1_or_2(tmp_path: Path) -> None:
    db, receipt, other = (str(tmp_path / name) for name in ("a.db", "receipt.json", "other.json"))

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments, "--db", db])

    for text in ("Ana prefers window seats", "Bob prefers the aisle"):
        assert run("remember", text).exit_code == 0
    assert run("recall", QUESTION, "--receipt", receipt).exit_code == 0
    run("remember", "Ana prefers to stand")
    result = run("replay", receipt)
    assert (result.exit_code, result.stdout) == (0, "same: the store gives the same answer\n")
    value = json.loads(Path(receipt).read_text("utf-8"))
    value["hits"][0]["score"] += 1
    Path(other).write_text(json.dumps(value))
    result = run("replay", other)
    assert result.exit_code == 2
    assert "changed since it was written" in result.stderr
    Path(other).write_text(json.dumps(sealed(value)))
    result = run("replay", other)
    assert result.exit_code == 1
    assert result.stdout.startswith("different: receipt -> store\n  hits 1: ")
    assert json.loads(run("replay", other, "--json").stdout)["status"] == "different"
    Path(other).write_text("{")
    assert run("replay", other).exit_code == 2
    assert run("replay", str(tmp_path / "none")).exit_code == 2


_OF_EACH_TYPE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    5,
    2**53,
    0.5,
    "",
    "x",
    "0" * 64,
    [],
    [1],
    {},
    {"name": "x", "floors": []},
)


def test_a_changed_receipt_with_a_new_digest_is_an_error_or_differs_and_never_the_same(memory: Memory) -> None:
    """One answer has one receipt: no other value of any field, of whatever type, is that of the same answer."""
    receipt = memory.recall("where do we moor the boats?").receipt
    kinds = set()
    for name in receipt.keys() - {"digest"}:
        for value in _OF_EACH_TYPE:
            if value == receipt[name] and type(value) is type(receipt[name]):
                continue
            fields = {**receipt, name: value}
            changed = {**fields, "digest": digest_of(fields)}
            try:
                found = memory.replay(changed)
                assert found.status != "same", name
                assert found.rules_changed is (name == "rules")
                kinds.add("different")
            except InvalidArgumentError:
                kinds.add("refused")
    assert kinds == {"different", "refused"}


def erase_payload(path: Path, version: str) -> None:
    """Remove the text of a version from the file of a closed store, as an erasure will."""
    connection = checksums.connect(str(path))
    connection.execute("UPDATE versions SET payload = NULL WHERE hash = ?", (bytes.fromhex(version),))
    connection.close()
