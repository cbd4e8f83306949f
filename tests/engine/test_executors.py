"""Every public call is an operation, with one handler, and gives the same results through JSON bytes."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import filters as f
from recollect import operations as ops
from recollect.arguments.json_form import form_named
from recollect.engine.branch_results import BranchInfo, Merged
from recollect.engine.handlers import Handler, Reads, Writes, handler_of
from recollect.engine.results import Export, Moment, Report, result_from_json, result_to_json
from recollect.errors import (
    InvalidArgumentError,
    InvalidOperationError,
    RecollectError,
    UnknownRecordError,
    UnsupportedError,
)
from recollect.facets.glossary.glossary import Glossary
from recollect.facets.keyed.keyed import Keyed
from recollect.facets.outline.outline import Outline
from recollect.facets.quarantine.quarantine import Quarantine
from recollect.facets.sdr.sdr import Sdr
from recollect.ledger.commits import Snapshot
from recollect.ledger.merkle import EMPTY
from recollect.memory import Batch, Memory
from recollect.memory.awaited import (
    AsyncBatch,
    AsyncGlossary,
    AsyncKeyed,
    AsyncMemory,
    AsyncOutline,
    AsyncQuarantine,
    AsyncSdr,
)
from recollect.models.embedding.hashed import Hashed
from recollect.operations import GetQuota, base
from recollect.operations.base import all_operations
from recollect.operations.branches import CHOICES, ON_CONFLICT
from recollect.operations.retention import SINCE, RetentionRule
from recollect.policies import LEVELS
from recollect.records.messages import Turn
from recollect.records.record import Fields, Record
from recollect.stores.memory import MemoryStore
from recollect.testing import filters, memory_on, records
from recollect.testing.loopback import _through_bytes
from recollect.testing.strategies import names, texts, times

#: Operation -> the method that creates it, where it has another name.
METHODS = {
    "create_branch": "branch",
    "export": "open_export",
    "get_retention": "retention",
    "pin": "at",
    "receipt": "recall",
}
#: Operations that have no method: `execute` takes them.
BY_EXECUTE = {"get_policies", "get_quota", "now", "probe", "valid_until", "wait", "zone"}
#: Public names of a memory that execute no operation.
LOCAL = {
    "branch_name",
    "close",
    "name",
    "namespace",
    "scope",
    "scoped",
    "batch",
    "execute",
    "listen",
    "subscribe",
    "tools",
    "as_origin",
    "quarantine",
}
PARTS = [kind for kind in all_operations().values() if kind.in_batch]
IDS = st.sampled_from([f"r{number}" for number in range(4)])
BRANCHES = st.sampled_from(["one", "two"])
WHERE = filters(custom=False)
FIELDS = Fields.__annotations__.keys() - {"expires"}
expects = st.none() | st.just("absent")


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


def remember(record: Record, own: bool, if_exists: ops.IfExists) -> ops.Remember:
    fields = {name: getattr(record, name) for name in record.present() if name in FIELDS}
    return ops.Remember(content=record.content, id=record.id if own else None, fields=fields, if_exists=if_exists)


remembers = st.builds(remember, records(IDS), st.booleans(), st.sampled_from(("keep", "update", "error")))
rules = st.lists(
    st.builds(
        RetentionRule,
        st.sampled_from("abc"),
        where=WHERE,
        after=st.sampled_from(("1s", "90d")),
        since=st.sampled_from(SINCE),
        keep_newest=st.none() | st.integers(1, 2),
        action=st.sampled_from(("forget", "erase")),
    )
    | st.builds(RetentionRule, st.just("hold"), where=WHERE, action=st.just("hold")),
    max_size=2,
    unique_by=lambda each: each.name,
).map(tuple)
STRATEGIES: dict[type[ops.Operation], st.SearchStrategy[ops.Operation]] = {
    ops.Remember: remembers,
    ops.RememberAll: st.builds(
        ops.RememberAll,
        items=st.lists(remembers | st.just(ops.Remember(content=" ")), max_size=3).map(tuple),
        on_error=st.sampled_from(("report", "raise")),
    ),
    ops.AddMessages: st.builds(
        ops.AddMessages,
        turns=st.lists(
            st.builds(
                Turn,
                role=st.sampled_from(("user", "assistant", "system")),
                speaker=st.none() | names,
                content=texts | st.just(" "),
                time=st.none() | st.just(datetime(2026, 3, 1, tzinfo=UTC)),
                metadata=st.just({}) | st.just({"parts": [{"type": "image"}]}),
            ),
            max_size=4,
        ).map(tuple),
        fields=st.fixed_dictionaries({}, optional={"user": names, "conversation": names, "tags": st.just(["x"])}),
    ),
    ops.Update: st.builds(
        ops.Update, id=IDS, changes=st.fixed_dictionaries({"content": texts}, optional={"user": names}), expect=expects
    ),
    ops.ValidUntil: st.builds(ops.ValidUntil, ids=st.lists(IDS, max_size=3).map(tuple)),
    ops.Supersede: st.builds(
        ops.Supersede,
        id=IDS,
        content=texts,
        at=st.none() | times,
        fields=st.fixed_dictionaries({}, optional={"user": names, "tags": st.just(["x"])}),
    ),
    ops.Merge: st.builds(
        ops.Merge,
        content=texts,
        sources=st.dictionaries(IDS, st.none() | st.just("0" * 64), min_size=1, max_size=2),
        fields=st.fixed_dictionaries({}, optional={"user": names, "tags": st.just(["x"])}),
    ),
    ops.Forget: st.builds(ops.Forget, id=IDS, expect=expects, missing=st.sampled_from(ops.MISSING_IDS)),
    ops.ForgetAll: st.builds(ops.ForgetAll, ids=st.lists(IDS, max_size=3).map(tuple)),
    ops.ForgetWhere: st.builds(ops.ForgetWhere, where=WHERE),
    ops.Clear: st.builds(ops.Clear),
    ops.Touch: st.builds(ops.Touch, ids=st.lists(IDS, max_size=3).map(tuple), ttl=st.floats(1, 1e6)),
    ops.Sweep: st.builds(ops.Sweep, limit=st.integers(1, 9)),
    ops.SetQuota: st.builds(
        ops.SetQuota,
        records=st.integers(3, 9),
        when_full=st.sampled_from(ops.WHEN_FULL),
        per=st.none() | st.just("user"),
    )
    | st.builds(
        ops.SetQuota,
        records=st.integers(3, 9),
        when_full=st.sampled_from(ops.WHEN_FULL[1:]),
        low_water=st.floats(0, 1, exclude_min=True),
    ),
    ops.SetPolicies: st.builds(
        ops.SetPolicies,
        redaction=st.sampled_from(("keep", "redact", "refuse")),
        categories=st.sampled_from(((), ("email",), ("card", "secret"))),
        salience=st.sampled_from(LEVELS),
    ),
    ops.GetRetention: st.builds(ops.GetRetention),
    ops.SetRetention: st.builds(ops.SetRetention, rules=rules, keep_versions=st.none() | st.just("1d")),
    ops.ApplyRetention: st.builds(ops.ApplyRetention, dry_run=st.booleans(), samples=st.none() | st.just(1))
    | st.builds(ops.ApplyRetention, rules=rules),
    ops.Erase: st.builds(ops.Erase, id=IDS, redact=st.booleans())
    | st.builds(ops.Erase, where=WHERE, redact=st.booleans(), derived=st.booleans()),
    ops.Endorse: st.builds(ops.Endorse, id=IDS, origin=st.sampled_from(("owner", "user", "tool"))),
    ops.Release: st.builds(ops.Release, ids=st.lists(IDS, max_size=3).map(tuple)),
    ops.Audit: st.builds(ops.Audit, since=st.integers(0, 4), where=WHERE, limit=st.integers(1, 9)),
    ops.TraceLineage: st.builds(ops.TraceLineage, id=IDS, limit=st.integers(1, 9)),
    ops.TraceTaint: st.builds(ops.TraceTaint, ids=st.lists(IDS, min_size=1, max_size=3).map(tuple), where=WHERE),
    ops.Get: st.builds(ops.Get, id=IDS),
    ops.GetAll: st.builds(ops.GetAll, ids=st.lists(IDS, max_size=3).map(tuple)),
    ops.Find: st.builds(ops.Find, where=WHERE, limit=st.none() | st.integers(1, 4), order=st.sampled_from(ops.ORDERS)),
    ops.Count: st.builds(ops.Count, where=WHERE),
    ops.DistinctValues: st.builds(
        ops.DistinctValues,
        field=st.sampled_from(("tag", "user", "kind", "meta.a", "meta[a][b]")),
        prefix=st.sampled_from(("", "a")),
        where=WHERE,
        limit=st.none() | st.integers(1, 3),
        after=st.none() | st.sampled_from((1, True, "a")),
    ),
    ops.Recall: st.builds(ops.Recall, question=texts, k=st.integers(1, 5), where=WHERE, wait_for_vectors=st.booleans()),
    ops.Grep: st.builds(ops.Grep, query=texts, where=WHERE),
    ops.ReadHead: st.builds(ops.ReadHead, log=st.booleans()),
    ops.Prove: st.builds(ops.Prove, id=IDS, at=st.none() | st.integers(0, 4)),
    ops.ProveLog: st.builds(ops.ProveLog, old=st.integers(0, 4), new=st.none() | st.integers(0, 4)),
    ops.Receipt: st.builds(
        ops.Receipt,
        operation=st.builds(ops.Recall, question=texts, where=WHERE, reference=times),
        time=times,
        seq=st.integers(0, 4),
        root=st.just("0" * 64) | st.just(EMPTY.hex()),
        hits=st.lists(st.tuples(IDS, st.integers(0, 9)), max_size=2),
    ),
    ops.Replay: st.builds(ops.Replay, receipt=st.just({}) | st.just({"receipt": 1})),  # test_receipts.py has real
    ops.Stats: st.builds(ops.Stats),
    ops.GetQuota: st.builds(ops.GetQuota),
    ops.GetPolicies: st.builds(ops.GetPolicies),
    ops.Entities: st.builds(ops.Entities, type=st.none() | st.just("person"), limit=st.integers(1, 3)),
    ops.RecallTerms: st.builds(ops.RecallTerms, agent=names, question=texts, typos=st.booleans()),
    ops.AnnotateTerms: st.builds(ops.AnnotateTerms, agent=names, text=texts),
    ops.SharedNames: st.builds(ops.SharedNames, agent=names),
    ops.FindSimilar: st.builds(
        ops.FindSimilar, text=texts, k=st.integers(1, 5), minimum=st.floats(0, 1), where=WHERE, embed=st.booleans()
    ),
    ops.RecallSdrs: st.builds(
        ops.RecallSdrs, text=texts, limit=st.integers(1, 5), minimum=st.floats(0, 1), rule=st.booleans()
    ),
    ops.ReadVersion: st.builds(ops.ReadVersion, hash=st.text("0123456789abcdef", min_size=64, max_size=64)),
    ops.ReadTree: st.builds(ops.ReadTree, id=st.none() | IDS, depth=st.none() | st.integers(0, 2)),
    ops.EntityOf: st.builds(ops.EntityOf, entity=names),
    ops.Neighbours: st.builds(ops.Neighbours, entity=names, depth=st.integers(1, 2)),
    ops.Paths: st.builds(ops.Paths, source=names, target=names),
    ops.Namespaces: st.builds(ops.Namespaces),
    ops.Changes: st.builds(
        ops.Changes,
        since=st.integers(0, 4),
        limit=st.none() | st.integers(1, 3),
        newest_first=st.booleans(),
        where=WHERE,
    ),
    ops.Wait: st.builds(ops.Wait, since=st.integers(0, 9), timeout=st.just(0)),
    ops.OpenExport: st.builds(ops.OpenExport),
    ops.EmbedAll: st.builds(ops.EmbedAll, batch_size=st.integers(1, 3)),
    ops.VectorStats: st.builds(ops.VectorStats),
    ops.Check: st.builds(ops.Check),
    ops.Compact: st.builds(ops.Compact),
    ops.BackUp: st.builds(ops.BackUp, path=st.just("/nowhere/a.backup"), verify=st.booleans()),
    ops.Probe: st.builds(ops.Probe),
    ops.Now: st.builds(ops.Now),
    ops.Zone: st.builds(ops.Zone),
    ops.TakeSnapshot: st.builds(ops.TakeSnapshot, label=st.none() | names),
    ops.Snapshots: st.builds(ops.Snapshots),
    ops.DropSnapshot: st.builds(ops.DropSnapshot, label=names),
    ops.Rollback: st.builds(ops.Rollback, moment=st.just("none")),  # tests/engine/test_history.py has real moments
    ops.Revert: st.builds(ops.Revert, seq=st.integers(1, 6)),
    ops.Diff: st.builds(ops.Diff, old=st.just("none"), new=st.just("none")),
    ops.History: st.builds(ops.History, id=IDS),
    ops.CreateBranch: st.builds(ops.CreateBranch, branch=BRANCHES),
    ops.ListBranches: st.builds(ops.ListBranches, sizes=st.booleans()),
    ops.MergeBranch: st.builds(
        ops.MergeBranch,
        branch=BRANCHES,
        on_conflict=st.sampled_from(ON_CONFLICT),
        resolutions=st.lists(
            st.tuples(st.just("records"), IDS, st.sampled_from(CHOICES) | records(IDS)), max_size=1
        ).map(tuple),
        ours=st.none() | st.integers(0, 3),
        dry_run=st.booleans(),
    ),
    ops.DropBranch: st.builds(ops.DropBranch, branch=BRANCHES),
    ops.ProveMerge: st.builds(ops.ProveMerge, seq=st.integers(1, 6)),
    ops.Pin: st.builds(ops.Pin, seq=st.integers(-1, 6))
    | st.builds(ops.Pin, time=st.just(datetime(2026, 3, 1, tzinfo=UTC)))
    | st.builds(ops.Pin, named=st.sampled_from(("0" * 64, "friday")))
    | st.builds(ops.Pin, index=st.integers(0, 2)),
}
part = st.one_of([STRATEGIES[kind] for kind in PARTS])
STRATEGIES[ops.At] = st.builds(ops.At, moment=st.just("none"), operation=part)  # test_past.py has real ones
STRATEGIES[ops.ExecuteBatch] = st.builds(
    ops.ExecuteBatch, operations=st.lists(part, max_size=3).map(tuple), reason=st.none() | names, expect_head=st.none()
)


def seen(call: Callable[[], Any]) -> Any:
    """Return the result or the error of a call, in a form that can be compared."""
    try:
        return comparable(call())
    except RecollectError as error:
        return type(error), error.args


def comparable(result: Any) -> Any:
    if isinstance(result, Report):
        return result.results, [(each.index, type(each.reason), each.reason.args) for each in result.failed]
    if isinstance(result, Export):
        with result:
            return result.root, result.count, list(result.records)
    if isinstance(result, BranchInfo):
        return replace(result, created=None)
    if isinstance(result, Snapshot):
        return result.name, result.seq, result.root
    if isinstance(result, Moment):
        return result.time  # the token has the key of the store
    if isinstance(result, list):
        return [comparable(each) for each in result]
    if isinstance(result, dict) and "store" in result:
        return {name: value for name, value in result.items() if name != "store"}  # with a uuid
    return result


#: The operations that a memory has on its glossary, with the names of their calls.
OF_THE_GLOSSARY = {"recall_terms": "recall", "annotate_terms": "annotate", "shared_names": "shared_names"}


def handler_for(kind: type[ops.Operation]) -> Handler:
    """Return how operations of a class are executed."""
    return handler_of(object.__new__(kind))


class TestEveryCallIsAnOperation:
    def test_each_operation_has_a_handler_and_a_form_of_its_result(self) -> None:
        assert set(all_operations().values()) == STRATEGIES.keys()
        for kind in all_operations().values():
            assert isinstance(handler_for(kind), Handler)
            assert kind.result or kind in (ops.ExecuteBatch, ops.At)
            assert not kind.result or callable(form_named(kind.result).to_json), kind.name

    def test_what_has_a_past_can_be_executed_there_and_nothing_else_can(self) -> None:
        """Reads that are written once for all readers have a past; nothing else can have one."""
        for kind in all_operations().values():
            assert kind.in_past is isinstance(handler_for(kind), Reads), kind.name

    def test_what_can_be_part_of_a_batch_has_a_handler_for_it_and_nothing_else_has(self) -> None:
        for kind in all_operations().values():
            handler = handler_for(kind)
            if not isinstance(handler, Reads):
                assert isinstance(handler, Writes) is kind.in_batch, kind.name

    def test_each_operation_has_a_method_on_both_memories(self) -> None:
        of_facets = {"read_tree", "read_version", "find_similar", "recall_sdrs", "release"}
        for name in all_operations().keys() - OF_THE_GLOSSARY.keys() - of_facets - BY_EXECUTE:
            assert hasattr(Memory, METHODS.get(name, name))
            assert hasattr(AsyncMemory, METHODS.get(name, name))
        for name in OF_THE_GLOSSARY.values():
            assert callable(getattr(Glossary, name))

    def test_the_awaited_twins_have_the_same_calls(self) -> None:
        assert public(AsyncMemory) == public(Memory)
        assert public(AsyncBatch) == public(Batch)
        for name in public(Batch) - LOCAL | {"execute"}:
            assert inspect.signature(getattr(AsyncBatch, name)) == inspect.signature(getattr(Batch, name))
            assert inspect.iscoroutinefunction(getattr(AsyncBatch, name))
        assert public(AsyncGlossary) == public(Glossary)
        for name in public(Glossary) - {"by"}:  # executes nothing
            assert inspect.signature(getattr(AsyncGlossary, name)) == inspect.signature(getattr(Glossary, name))
            assert inspect.iscoroutinefunction(getattr(AsyncGlossary, name))
        for twin, own in ((AsyncOutline, Outline), (AsyncSdr, Sdr), (AsyncKeyed, Keyed), (AsyncQuarantine, Quarantine)):
            assert public(twin) == public(own)
            for name in public(own) - {"by"}:  # executes nothing
                if isinstance(getattr(own, name), property):
                    assert inspect.iscoroutinefunction(getattr(twin, name))
                    continue
                assert inspect.signature(getattr(twin, name)) == inspect.signature(getattr(own, name))
                assert inspect.iscoroutinefunction(getattr(twin, name))

    def test_each_public_call_executes_only_operations(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """With an executor that can do nothing else, every call works."""

        class OnlyExecute:
            def __init__(self, executor: Any) -> None:
                self.executed: list[str] = []
                self._executor = executor

            def execute(self, operation: ops.Operation, *arguments: Any) -> Any:
                self.executed.append(operation.name)
                return self._executor.execute(operation, *arguments)

            @contextmanager
            def batch(self, *arguments: Any) -> Iterator[OnlyExecute]:
                """A batch, of which `execute` is all that is used."""
                with self._executor.batch(*arguments) as opened:
                    inside = OnlyExecute(opened)
                    inside.executed = self.executed
                    yield inside

        memory = memory_on(MemoryStore())
        memory._executor = spy = OnlyExecute(memory._executor)  # type: ignore[assignment]
        arguments: dict[str, tuple[Any, ...]] = {
            "remember": ("tea",),
            "remember_all": (["tea"],),
            "add_messages": ([{"role": "user", "content": "tea"}],),
            "record_entity_fact": ("ana", "Ana", "tea"),
            "record_user_fact": ("tea",),
            "record_knowledge": ("tea",),
            "record_task": ("tea", "done", True),
            "context": ("tea",),
            "entity_context": ("ana",),
            "user_context": ("ana",),
            "conversation_context": ("c",),
            "recall": ("tea",),
            "grep": ("tea",),
            "get": ("a",),
            "forget_where": (f.user("x"),),
            "set_quota": (),
            "forget": ("none",),
            "supersede": ("none", "tea"),
            "touch": (["none"], 60),
            "get_all": (["a"],),
            "values": ("tag",),
            "forget_all": (["none"],),
            "merge": (["none"], "tea"),
            "entity": ("ana",),
            "resolve": (None,),
            "neighbours": ("ana",),
            "paths": ("ana", "bob"),
            "relate": ("ana", "knows", "bob"),
            "merge_entities": ("ana", "bob"),
            "extract_entities": ("Ada Lovelace likes tea",),
            "update": ("none", lambda record: record),
            "backup": ("x",),
            "prove": ("a",),
            "replay": ({},),
            "prove_log": (0,),
            "prove_merge": (1,),
            "drop_snapshot": ("a",),
            "history": ("a",),
            "diff": (0, 0),
            "rollback": (0,),
            "revert": (1,),
            "erase": ("a",),
            "endorse": ("a",),
            "lineage": ("a",),
            "taint": ("a",),
            "at": (0,),
            "bisect": ("tea", 0, 1),
            "branch": ("one",),
            "on": ("one",),
            "merge_branch": ("one",),
            "resolve_merge": (Merged(branch="one"), {}),
            "drop_branch": ("none",),
        }
        several = {
            "bisect": ["pin", "at", "pin", "at", "pin", "at", "pin", "at"],
            "consolidate": ["now", "find"],
            "context": ["zone", "recall", "find"],
            "diff": ["pin", "pin", "diff"],
            "duplicates": ["find", "find"],
            "merge": ["get", "merge"],
            "extract_entities": ["find", "remember_all"],
            "rollback": ["pin", "rollback"],
            "sweep": ["sweep", "apply_retention"],
        }
        of_terms: dict[str, tuple[Any, ...]] = {
            "agents": (),
            "memorize": ("tea", "a drink", "", "a"),
            "get": ("tea", "a"),
            "recall": ("tea", "a"),
            "annotate": ("tea", "a"),
            "forget": ("tea", "a"),
            "history": ("tea", "a"),
            "expiry": ("tea", "a"),
            "set_expiry": ("absent", "a", 60),
            "from_csv": ("key,value\ntea,a drink\n", "a"),
            "from_json": ('[{"key": "tea", "value": "a drink"}]', "a"),
        }
        for name in sorted(public(Glossary) - {"by"}):
            spy.executed.clear()
            getattr(memory.glossary, name)(*of_terms.get(name, ("a",)))
            assert len(spy.executed) == 1, name
        tree = {"type": "DOCUMENT", "properties": {"ID": "a"}, "raw_content": ""}
        of_nodes: dict[str, tuple[Any, ...]] = {
            "ingest": (tree,),
            "ingest_text": ("* a", "org", "s"),
            "at_path": (["a"],),
            "to_text": ("a", "org"),
            "rollback": (0,),
            "diff": (0,),
            "erase": ("a",),
        }
        for name in sorted(
            public(Outline),
            key=lambda name: (name in ("drop_snapshot", "remove", "erase", "rollback"), name != "ingest", name),
        ):
            spy.executed.clear()
            no_arguments = {"roots", "find", "view", "without_id", "snapshots", "log"}
            if name == "remove":
                memory.outline.ingest(tree)  # what was erased
            if name == "version":
                of_nodes[name] = (memory.outline.history("a")[0].record.hash,)  # type: ignore[union-attr]
            called = getattr(memory.outline, name)
            if callable(called):
                called(*of_nodes.get(name, () if name in no_arguments else ("a",)))
            assert spy.executed, name
        of_texts: dict[str, tuple[Any, ...]] = {
            "store": ("tea",),
            "store_many": ([("tea", None)],),
            "query": ("tea",),
            "explain": ("tea", 1),
            "restore": ([{"id": 9, "text": "tea", "metadata": {}, "created_ts": 1, "updated_ts": 1}],),
            "stats": (),
            "texts": (),
        }
        for name in sorted(public(Sdr) - {"by"}, key=lambda name: (name == "forget", name != "store", name)):
            spy.executed.clear()
            getattr(memory.sdr, name)(*of_texts.get(name, (1,)))
            assert spy.executed, name
        of_keys: dict[str, tuple[Any, ...]] = {
            "write": ("a", b"tea"),
            "cas": ("a", b"tea", b"coffee"),
            "set_limits": (),
            "events": (),
            "stats": (),
            "keys": (),
        }
        for name in sorted(public(Keyed) - {"by", "subscribe"}, key=lambda name: (name != "write", name)):
            spy.executed.clear()
            getattr(memory.keyed, name)(*of_keys.get(name, ("a",)))
            assert spy.executed, name
        for call, needed in (("__call__", ()), ("__len__", ()), ("release", (["a"],)), ("reject", (["a"],))):
            spy.executed.clear()
            with suppress(UnknownRecordError):  # of a release
                getattr(memory.quarantine, call)(*needed)
            assert spy.executed, call
        # resolve: two updates, tests/memory/test_contradictions.py; distinguish: tests/memory/test_distinctions.py
        for name in sorted(public(Memory) - LOCAL - {"resolve", "distinguish", "glossary", "outline", "sdr", "keyed"}):
            spy.executed.clear()
            try:
                called = getattr(memory, name)
                if callable(called):
                    called(*arguments.get(name, ()))
            except RecollectError:
                pass  # refused, by an operation
            assert spy.executed == several[name] if name in several else len(spy.executed) == 1, name

    def test_an_unknown_operation_is_refused(self) -> None:
        class Dance(ops.Operation, name="dance"):
            pass

        base._IMPORTED.pop("dance")
        memory = memory_on(MemoryStore())
        with pytest.raises(InvalidOperationError):
            memory.execute(Dance())
        with pytest.raises(InvalidOperationError), memory.batch() as batch:
            batch.execute(Dance())

    def test_what_cannot_be_part_of_a_batch_is_refused_and_the_batch_goes_on(self) -> None:
        memory = memory_on(MemoryStore())
        needed: dict[type[ops.Operation], dict[str, Any]] = {
            ops.BackUp: {"path": "x"},
            ops.Wait: {"since": 0},
            ops.Receipt: {
                "operation": ops.Recall(question="tea", reference=datetime(2026, 3, 1, tzinfo=UTC)),
                "time": datetime(2026, 3, 1, tzinfo=UTC),
                "seq": 0,
                "root": EMPTY.hex(),
            },
            ops.Replay: {"receipt": {}},
            ops.Prove: {"id": "a"},
            ops.ProveLog: {"old": 0},
            ops.ProveMerge: {"seq": 1},
            ops.ExecuteBatch: {"operations": ()},
            ops.DropSnapshot: {"label": "a"},
            ops.CreateBranch: {"branch": "a"},
            ops.MergeBranch: {"branch": "a"},
            ops.DropBranch: {"branch": "a"},
            ops.Rollback: {"moment": "none"},
            ops.Revert: {"seq": 1},
            ops.Erase: {"id": "a"},
            ops.Diff: {"old": "none", "new": "none"},
            ops.History: {"id": "a"},
            ops.Pin: {"seq": 0},
            ops.At: {"moment": "none", "operation": ops.ReadHead()},
        }
        for kind in set(all_operations().values()) - set(PARTS):
            operation = kind(**needed.get(kind, {}))
            with pytest.raises(InvalidOperationError, match="cannot be part of a batch"):
                ops.ExecuteBatch(operations=(operation,))
            with memory.batch() as batch:
                with pytest.raises(InvalidArgumentError, match="cannot be part of a batch"):
                    batch.execute(operation)
                batch.remember(f"after {kind.name}")
        assert memory.count() == len(all_operations()) - len(PARTS)


def is_of(result: object, annotation: str) -> bool:
    """Return whether a result has the type that its operation states, by name."""
    if annotation.endswith(" | None"):
        return result is None or is_of(result, annotation.removesuffix(" | None"))
    if annotation.startswith("list["):
        return isinstance(result, list) and all(is_of(each, annotation[5:-1]) for each in result)
    if annotation.startswith("dict[str, "):
        return isinstance(result, dict) and all(is_of(each, annotation[10:-1]) for each in result.values())
    names = {each.__name__ for each in type(result).__mro__[: 1 if isinstance(result, bool) else None]}
    return annotation in (names | {"None"} if result is None else names)


def test_a_result_of_another_type_is_noticed() -> None:
    right = ((1, "int"), (None, "None"), (None, "str | None"), (["a"], "list[str]"), ({"a": 1}, "dict[str, int]"))
    assert all(is_of(*each) for each in right)
    wrong = ((True, "int"), (1, "str"), (None, "int"), ([1], "list[str]"), ({"a": 1}, "dict[str, str]"), ("a", "None"))
    assert not any(is_of(*each) for each in wrong)


class TestThroughBytes:
    @pytest.mark.parametrize("kind", all_operations().values(), ids=lambda kind: kind.name)
    @given(data=st.data())
    @settings(max_examples=some(40))
    def test_an_operation_and_its_result_come_back_equal(self, kind: type[ops.Operation], data: st.DataObject) -> None:
        stored = data.draw(st.lists(remembers, max_size=5))
        user = data.draw(st.none() | names)
        whole = memory_on(MemoryStore())
        for each in stored:
            seen(lambda each=each: whole.execute(each))  # type: ignore[misc]
        memory = whole.scoped(user=user) if user else whole
        operation = data.draw(STRATEGIES[kind])
        sent = operation.to_json()
        assert ops.from_json(_through_bytes(sent)).to_json() == sent
        try:
            result = memory.execute(operation)
        except RecollectError as error:
            again = RecollectError.from_json(_through_bytes(error.to_json()))
            assert (type(again), again.args) == (type(error), error.args)
            return
        is_batch = isinstance(operation, ops.ExecuteBatch)
        parts = operation.operations if isinstance(operation, ops.ExecuteBatch) else (operation,)
        for part, each in zip(parts, result if is_batch else (result,), strict=True):
            stated = part.operation.result if isinstance(part, ops.At) else part.result
            assert is_of(each, stated), (part.name, stated, type(each))
        if isinstance(result, Export):
            sent = result_to_json(operation, result)
            assert comparable(result_from_json(operation, _through_bytes(sent))) == comparable(memory.open_export())
            return
        assert comparable(result_from_json(operation, _through_bytes(result_to_json(operation, result)))) == comparable(
            result
        )

    @given(operations=st.lists(st.one_of(list(STRATEGIES.values())), max_size=12))
    @settings(max_examples=some(100))
    def test_a_memory_behind_bytes_behaves_like_one_in_this_process(self, operations: list[ops.Operation]) -> None:
        direct, behind = memory_on(MemoryStore()), memory_on(MemoryStore(), loopback=True)
        for each in operations:
            assert seen(lambda: direct.execute(each)) == seen(lambda: behind.execute(each))  # noqa: B023
        assert direct.root == behind.root

    def test_a_batch_a_listener_and_an_error_pass_through_bytes(self) -> None:
        memory = memory_on(MemoryStore(), loopback=True)
        heard: list[recollect.Commit] = []
        with memory.listen(heard.append) as listener:
            with memory.batch(actor="ana") as batch:
                batch.remember("tea", id="a")
                assert batch.recall("tea")[0].record.id == "a"
                with pytest.raises(recollect.errors.UnknownRecordError):
                    batch.update("b", content="x")
            listener.drain()
        assert heard == memory.changes()
        with pytest.raises(recollect.errors.ConflictError) as caught:
            memory.remember("coffee", id="a", expect="absent")
        record = memory.get("a")
        assert record is not None
        assert caught.value.current == record.hash

    def test_what_cannot_be_sent_is_refused_and_nothing_is_changed(self, tmp_path: Path) -> None:
        memory = memory_on(MemoryStore(), loopback=True)
        memory.remember("tea", id="a")
        refused: list[Callable[[], Any]] = [
            lambda: memory.update("a", lambda record: record),
            lambda: memory.find(f.custom(lambda record: True)),
            lambda: memory.forget_where(f.custom(lambda record: True) | f.user("ana")),
            lambda: memory.embed_all(progress=print),
            lambda: memory.remember("x", metadata={"k": object()}),
            lambda: memory.remember("x", importance=float("nan")),
            lambda: memory.remember("x", metadata={"k": b"bytes"}),
            lambda: memory.remember("x", metadata={1: "x"}),  # type: ignore[dict-item]
            lambda: memory.remember("x", metadata={"k": {"when": datetime(2026, 1, 1, tzinfo=UTC)}}),
        ]
        for call in refused:
            with pytest.raises(UnsupportedError):
                call()
        assert [record.id for record in memory.find()] == ["a"]
        report = memory.remember_all(["one", {"content": "two", "metadata": {"k": object()}}, " ", "three"])
        assert (len(report.results), [failed.index for failed in report.failed]) == (2, [1, 2])


def test_the_awaited_calls_of_a_batch_and_a_memory_are_those_of_the_memory(tmp_path: Path) -> None:
    async def run() -> None:
        opened = recollect.open(tmp_path / "a.db", embedder=Hashed())
        async with AsyncMemory(opened) as memory:
            await memory.remember("tea", id="a")
            assert await memory.head() == opened.head()
            assert (await memory.seq(), await memory.root()) == opened.head()[:2]
            await memory.set_quota(records=5)
            quota = await memory.execute(GetQuota())
            assert quota is not None
            assert quota.records == 5
            assert await memory.embed_all() == 1
            assert (await memory.backup(tmp_path / "b.db", verify=True)).verified
            with pytest.raises(recollect.errors.UnknownArgumentError, match="user"):
                await memory.remember("x", usr="ana")  # type: ignore[call-arg]
            async with memory.batch() as batch:
                assert await batch.get("a") is not None

    asyncio.run(run())


@pytest.mark.parametrize("path", [":memory:", "a.db"])
def test_a_memory_with_an_open_export_can_be_closed(path: str, tmp_path: Path) -> None:
    memory = recollect.open(path if path == ":memory:" else tmp_path / path)
    memory.remember_all(f"fact {number}" for number in range(3))
    dropped, kept = memory.open_export(), memory.open_export()
    next(dropped.records)
    next(kept.records)
    del dropped
    memory.close()
    for _ in range(2):
        with pytest.raises(recollect.errors.ClosedError):
            next(kept.records)


@pytest.mark.parametrize("path", [":memory:", "a.db"])
def test_others_read_and_write_while_an_export_is_open_and_it_shows_its_snapshot(path: str, tmp_path: Path) -> None:
    with recollect.open(path if path == ":memory:" else tmp_path / path) as memory:
        memory.remember_all([{"content": f"fact {number}", "id": str(number)} for number in range(3)])
        with memory.open_export() as export:
            memory.remember("in between")
            thread = threading.Thread(target=lambda: memory.update("1", content="changed"))
            thread.start()
            thread.join()
            assert memory.count() == 4
            assert [record.text for record in export.records] == ["fact 0", "fact 1", "fact 2"]
            assert export.count == 3


def test_an_error_does_not_end_an_export_as_if_it_were_complete() -> None:
    def failing() -> Iterator[Record]:
        yield Record(id="a", content="a")
        raise recollect.errors.StoreBusyError("x", "for now")

    export = Export("", 3, failing())
    assert next(export.records).id == "a"
    for _ in range(2):
        with pytest.raises(recollect.errors.StoreBusyError):
            next(export.records)


def test_cancelling_the_reading_of_an_export_loses_no_record(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncMemory(recollect.open(tmp_path / "a.db")) as memory:
            await memory.remember_all([f"fact {number}" for number in range(600)])
            seen = 0
            async with memory.open_export() as export:
                while seen < 600:
                    waiting = asyncio.ensure_future(anext(export.records))
                    await asyncio.sleep(0)
                    waiting.cancel()
                    (result,) = await asyncio.gather(waiting, return_exceptions=True)
                    seen += isinstance(result, Record)
                    if not isinstance(result, Record):
                        await anext(export.records)
                        seen += 1
            with pytest.raises(recollect.errors.ClosedError):
                await anext(export.records)

    asyncio.run(run())


def test_an_export_that_was_closed_is_not_read_on(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        memory.remember_all(f"fact {number}" for number in range(3))
        with memory.open_export() as export:
            assert next(export.records)
        with pytest.raises(recollect.errors.ClosedError):
            next(export.records)
        export.close()
