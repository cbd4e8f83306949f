"""A tracer provider that keeps the spans, and a call of each operation that has a span."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import recollect
from recollect import operations as ops
from recollect.observe import traced


class Recorded:
    """A tracer provider whose spans can be looked at.

    Attributes:
        provider: The tracer provider.
    """

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**options)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def taken(self) -> list[ReadableSpan]:
        """Return the spans that have ended since the last time, in the order in which they began."""
        spans = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return sorted(spans, key=lambda span: span.start_time or 0)

    def one(self) -> ReadableSpan:
        """Return the only span that has ended since the last time."""
        (span,) = self.taken()
        return span

    def memory(self, **options: Any) -> recollect.Memory:
        """Return a traced memory, which is new and empty."""
        return traced(recollect.open(":memory:", embedder="hashed"), self.provider, **options)


def said(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


def is_child(span: ReadableSpan, of: ReadableSpan) -> bool:
    """Return whether a span is the child of another one, in one trace."""
    own, other = span.get_span_context(), of.get_span_context()
    assert own is not None
    assert other is not None
    return span.parent is not None and (own.trace_id, span.parent.span_id) == (other.trace_id, other.span_id)


# What nobody but the owner of the memory is to read. None of it is a part of an English word or of a name of ours.
CONTENT, CHANGED = "Quetzals moulted", "Quetzals nested"
QUESTION, ID, USER, METADATA = "did quetzals moult?", "note-qz7", "ximena", "plumage-qz7"
BRANCH, OTHER = "branch-qz7", "other-qz7"
ACTOR, REASON, NAMESPACE, TERM, SNAPSHOT = "actor-qz7", "reason-qz7", "tenant-qz7", "QZT", "snapshot-qz7"
SECRETS = ("uetzal", "moult", "nested", "qz7", USER, TERM)


class Case(NamedTuple):
    """A call that makes one span.

    Attributes:
        call: Makes the call. It takes the memory, and a folder.
        span: The name of the span.
        says: Attributes of it; `...` stands for any value.
        in_contents: What of the secrets the span has with contents.
    """

    call: Callable[[recollect.Memory, Path], object]
    span: str
    says: Mapping[str, Any] = {}
    in_contents: str = NAMESPACE


def filled(memory: recollect.Memory) -> recollect.Memory:
    """Return a namespace of a memory with a record, a term, a snapshot and a branch."""
    out = memory.namespace(NAMESPACE)
    out.remember(CONTENT, id=ID, user=USER, metadata={"about": METADATA})
    out.set_policies(origins={"unknown": "quarantine"})
    out.execute(ops.Remember(content="kept apart", id="apart", fields={"origin": "unknown"}))
    out.set_policies()
    out.glossary.memorize(TERM, CONTENT, "birds", agent_id="bot")
    out.sdr.store(CONTENT)
    out.snapshot(SNAPSHOT)
    out.execute(ops.CreateBranch(branch=OTHER))
    return out


def _run(operation: ops.Operation) -> Callable[[recollect.Memory, Path], object]:
    return lambda memory, _folder: memory.execute(operation, actor=ACTOR, reason=REASON)


def _released(memory: recollect.Memory, _folder: Path) -> object:
    return memory.execute(ops.Release(ids=("apart",)), actor=ACTOR, reason=REASON)


def _merged(memory: recollect.Memory, _folder: Path) -> object:
    return memory.execute(ops.MergeBranch(branch=OTHER), actor=ACTOR, reason=REASON)


_COUNT, _K, _SEQ, _ROOT = "gen_ai.memory.record.count", "recollect.k", "recollect.seq", "recollect.root"
_TURNS = [{"role": "user", "content": CHANGED}, {"role": "assistant", "content": CONTENT}]
_FOUND = {_COUNT: 1, _SEQ: ..., _ROOT: ..., "recollect.hits": 1, "recollect.top_confidence": ...}
#: A case for each operation that has a span, and for `context`.
CASES = {
    "recall": Case(
        lambda memory, _: memory.recall(QUESTION, k=3, where=recollect.filters.user(USER)),
        "search_memory",
        {**_FOUND, _K: 3, "recollect.plan.narrowed": 1},
        QUESTION,
    ),
    "context": Case(
        lambda memory, _: memory.context(QUESTION, user=USER),
        "search_memory",
        {_COUNT: 1, "recollect.context.tokens": ..., "recollect.context.left_out": 0},
        METADATA,
    ),
    "find_similar": Case(_run(ops.FindSimilar(text=CONTENT, k=2)), "search_memory", {_COUNT: 1, _K: 2}, METADATA),
    "grep": Case(_run(ops.Grep(query="quetzals")), "search_memory", {_COUNT: 1}, "quetzals"),
    "recall_terms": Case(
        lambda memory, _: memory.glossary.recall(f"what is {TERM}?", agent_id="bot"),
        "search_memory",
        {_COUNT: 1, "recollect.part": "terms"},
        TERM,
    ),
    "annotate_terms": Case(
        lambda memory, _: memory.glossary.annotate(f"the {TERM} flew", agent_id="bot"),
        "search_memory",
        {_COUNT: 1, "recollect.part": "terms"},
        TERM,
    ),
    "recall_sdrs": Case(
        lambda memory, _: memory.sdr.query(CONTENT), "search_memory", {_COUNT: 1, "recollect.part": "sdrs"}, CONTENT
    ),
    "remember": Case(
        lambda memory, _: memory.remember(CHANGED, user=USER),
        "upsert_memory",
        {_COUNT: 1, "recollect.status": "created"},
        CHANGED,
    ),
    "remember_all": Case(
        lambda memory, _: memory.remember_all([CHANGED, f"{CHANGED} again"]),
        "upsert_memory",
        {_COUNT: 2, "recollect.failed": 0},
        f"{CHANGED} again",
    ),
    "add_messages": Case(
        lambda memory, _: memory.add_messages(_TURNS, user=USER, conversation="c"),
        "upsert_memory",
        {_COUNT: 2, "recollect.failed": 0},
        CHANGED,
    ),
    "supersede": Case(
        _run(ops.Supersede(id=ID, content=CHANGED)),
        "upsert_memory",
        {_COUNT: 1, "recollect.status": "created"},
        CHANGED,
    ),
    "merge": Case(
        _run(ops.Merge(content=CHANGED, sources={ID: None})),
        "upsert_memory",
        {_COUNT: 1, "recollect.status": "created"},
        CHANGED,
    ),
    "update": Case(
        lambda memory, _: memory.update(ID, content=CHANGED),
        "update_memory",
        {_COUNT: 1, "recollect.status": "updated"},
        CHANGED,
    ),
    "touch": Case(_run(ops.Touch(ids=(ID, "other"), ttl=60.0)), "update_memory", {_COUNT: 2}),
    "endorse": Case(_run(ops.Endorse(id=ID)), "update_memory", {_COUNT: 1, "recollect.status": "unchanged"}, ID),
    "release": Case(_released, "upsert_memory", {_COUNT: 1, "recollect.failed": 0}),
    "forget": Case(
        lambda memory, _: memory.forget(ID), "delete_memory", {_COUNT: 1, "recollect.status": "forgotten"}, ID
    ),
    "forget_all": Case(_run(ops.ForgetAll(ids=(ID, "other"))), "delete_memory", {_COUNT: 2}),
    "forget_where": Case(_run(ops.ForgetWhere(where=recollect.filters.user(USER))), "delete_memory", {_COUNT: 1}),
    "clear": Case(_run(ops.Clear(parts=["records"])), "delete_memory", {_COUNT: 1}),
    "sweep": Case(_run(ops.Sweep()), "delete_memory", {_COUNT: 0}),
    "erase": Case(_run(ops.Erase(id=ID)), "delete_memory", {_COUNT: 1}),
    "batch": Case(_run(ops.ExecuteBatch(operations=(), actor=ACTOR, reason=REASON)), "recollect.batch"),
    "snapshot": Case(lambda memory, _: memory.snapshot(f"2 {SNAPSHOT}"), "recollect.snapshot", {_SEQ: 4, _ROOT: ...}),
    "drop_snapshot": Case(
        lambda memory, _: memory.drop_snapshot(SNAPSHOT), "recollect.drop_snapshot", {_SEQ: 4, _ROOT: ...}
    ),
    "rollback": Case(lambda memory, _: memory.rollback(0), "recollect.rollback", {_SEQ: 5}),
    "revert": Case(lambda memory, _: memory.revert(1), "recollect.revert", {_SEQ: 5}),
    "embed_all": Case(_run(ops.EmbedAll()), "recollect.embed_all"),
    "set_quota": Case(lambda memory, _: memory.set_quota(records=9), "recollect.set_quota"),
    "set_policies": Case(_run(ops.SetPolicies(redaction="redact")), "recollect.set_policies"),
    "create_branch": Case(_run(ops.CreateBranch(branch=BRANCH)), "recollect.create_branch"),
    "merge_branch": Case(_merged, "recollect.merge_branch"),
    "drop_branch": Case(_run(ops.DropBranch(branch=OTHER)), "recollect.drop_branch"),
    "set_retention": Case(
        _run(ops.SetRetention(rules=[{"name": "old", "after": "90d"}])),  # type: ignore[arg-type]
        "recollect.set_retention",
    ),
    "apply_retention": Case(_run(ops.ApplyRetention(dry_run=False)), "recollect.apply_retention"),
    "check": Case(_run(ops.Check()), "recollect.check"),
    "compact": Case(_run(ops.Compact()), "recollect.compact"),
    "probe": Case(_run(ops.Probe()), "recollect.probe"),
    "backup": Case(lambda memory, folder: memory.backup(folder / "2-qz7.db"), "recollect.backup"),
}
