"""Scopes: a caller in one learns nothing of others, and meets nothing of theirs.

The rule is a comparison. Two memories do the same in a scope: in one of them others write beside it, with the same ids,
conversations, positions and texts; in the other there is no one else. Every public call must give the same, fail in the
same way, and count the same. What may differ, and why, is in `DIFFERS` and in docs/concepts.md.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import some

import recollect
from recollect import filters as f
from recollect.engine.scope import Scope, scopes_of
from recollect.engine.write.naming import Naming
from recollect.engine.write.writer import Writer
from recollect.errors import InvalidArgumentError, RecollectError, RecordExistsError, ScopeError
from recollect.memory import Memory
from recollect.memory.context.values import STYLES
from recollect.operations import ABSENT, ORDERS, GetQuota, IfExists, Pin, Remember, ValidUntil, Wait
from recollect.records.record import Record
from recollect.stores.memory import MemoryStore
from recollect.stores.sqlite.store import SqliteStore
from recollect.testing import memory_on

START = datetime(2026, 3, 1, tzinfo=UTC)
SCOPES: dict[str, dict[str, str]] = {
    "user": {"user": "ana"},
    "conversation": {"conversation": "c"},
    "both": {"user": "ana", "conversation": "c"},
}
#: Public names of a memory that are not compared, with the reason.
DIFFERS = {
    "set_quota": "is refused in a scope, and a quota of the namespace counts what others have (`per` does not)",
    "embed_all": "needs an embedder, and is compared in test_embedding: equal texts of two scopes share no vector",
    "tools": "is compared in test_tools",
    "quarantine": "is compared in tests/trust/test_quarantine.py",
    "scoped": "makes the memories that are compared",
    "branch_name": "is a name that the caller has chosen",
}
REFUSED: dict[str, Callable[[Memory], Any]] = {
    "root": lambda m: m.root,
    "seq": lambda m: m.seq,
    "head": lambda m: m.head(),
    "prove": lambda m: m.prove("a"),
    "prove_log": lambda m: m.prove_log(0),
    "prove_merge": lambda m: m.prove_merge(1),
    "quota": lambda m: m.execute(GetQuota()),
    "check": lambda m: m.check(),
    "compact": lambda m: m.compact(),
    "receipt": lambda m: m.recall("tea").receipt,
    "replay": lambda m: m.replay({}),
    "close": lambda m: m.close(),
    "backup": lambda m: m.backup("x"),
    "sweep": lambda m: m.sweep(),
    "set_quota": lambda m: m.set_quota(records=1),
    "set_policies": lambda m: m.set_policies(redaction="redact"),
    "set_retention": lambda m: m.set_retention([{"name": "old", "after": "1d"}]),
    "retention": lambda m: m.retention(),
    "apply_retention": lambda m: m.apply_retention(),
    "namespace": lambda m: m.namespace("other"),
    "expect_head": lambda m: m.batch(expect_head=0).__enter__(),
    "a seq": lambda m: m.changes(since=1),
    "a past seq": lambda m: m.at(1),
    "a past root": lambda m: m.at("0" * 64),
    "a snapshot of the past": lambda m: m.at(index=0),
    "snapshot": lambda m: m.snapshot("a"),
    "snapshots": lambda m: m.snapshots(),
    "drop_snapshot": lambda m: m.drop_snapshot("a"),
    "rollback": lambda m: m.rollback(START),
    "revert": lambda m: m.revert(1),
    "a difference of seqs": lambda m: m.diff(1, 2),
    "bisect": lambda m: m.bisect("tea", START),
    "branch": lambda m: m.branch("one"),
    "branches": lambda m: m.branches(),
    "on": lambda m: m.on("main"),
    "merge_branch": lambda m: m.merge_branch("one"),
    "resolve_merge": lambda m: m.resolve_merge(recollect.Merged(branch="one"), {}),
    "drop_branch": lambda m: m.drop_branch("one"),
}


class Clock:
    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


class World:
    """A memory, a scope of it, and who else writes there."""

    def __init__(self, store: Any, scope: dict[str, str]) -> None:
        self.clock = Clock()
        self.whole = memory_on(store, clock=self.clock)
        self.scoped = self.whole.scoped(**scope)
        self.cursors: list[str] = []


def worlds(fixed: str) -> tuple[World, World]:
    """Two that are alike; others will write to the first."""
    return World(MemoryStore(), SCOPES[fixed]), World(MemoryStore(), SCOPES[fixed])


TEXTS = ("tea with honey", "the harbour at night", "ok", "green tea", "a letter from the harbour")
NAMES = ("note", "a", "note-2", "@user=ana/note", "@conversation=c/a", "@user=bob/a", "\u0338mark")
CONVERSATIONS = (None, "c", "d")
texts, names = st.sampled_from(TEXTS), st.sampled_from(NAMES)
users = st.sampled_from((None, "ana", "bob"))
positions = st.sampled_from((None, 0, 3, 2**63 - 2, 2**63 - 1))


def derived(text: str, **fields: Any) -> str:
    return memory_on(MemoryStore()).remember(text, **fields).id


#: Ids that records of the scopes will get, which others can compute as well.
DERIVED = tuple(
    derived(text, **fields)
    for text in TEXTS[:3]
    for fields in ({"user": "ana"}, {"conversation": "c", "kind": "conversation", "user": "ana"})
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "user": users,
        "conversation": st.sampled_from(CONVERSATIONS),
        "kind": st.sampled_from(("conversation", "knowledge")),
        "position": positions,
        "importance": st.sampled_from((0.1, 0.9)),
        "tags": st.just(["t"]),
        "supersedes": st.just(["note"]),
    },
)
wheres = st.sampled_from(
    (
        f.everything(),
        f.id("note", "a"),
        ~f.id("note"),
        f.id("@user=ana/note") | f.tag("t"),
        f.custom(lambda record: record.id in ("note", "a")),
        f.user("bob"),
        f.conversation("c"),
        f.contains("tea"),
    )
)


def fields_of(text: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"content": text, **{name: value for name, value in given.items() if value is not None}}


def call(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


def _remember(m: Memory, text: str, id: str | None, given: dict[str, Any], how: IfExists, expect: Any) -> Any:  # noqa: A002
    fields = {name: value for name, value in given.items() if value is not None}
    return m.execute(Remember(content=text, id=id, fields=fields, if_exists=how, expect=expect))


def _current(m: Memory, record_id: str, stale: bool) -> str:
    record = m.get(record_id)
    return ABSENT if record is None else "0" * 64 if stale else record.hash


def _batch(m: Memory, text: str, id: str, fails: bool) -> Any:  # noqa: A002
    with m.batch() as batch:
        out: list[Any] = [
            batch.remember(text, id=id),
            batch.get(id),
            batch.find(f.id(id)),
            batch.count(),
            batch.recall(text, 3),
        ]
        out += [batch.grep("tea"), batch.remember_all([text, {"content": text, "id": id}])]
        if fails:
            batch.forget("unknown")
    return out


def _result(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", "content": text}


def _heard(m: Memory, cursor: Any) -> Any:
    heard: list[Any] = []
    with m.listen(heard.append, since=cursor) as listening:
        listening.drain()
    return heard


def _streamed(m: Memory, cursor: Any) -> Any:
    with m.subscribe(since=cursor) as stream:
        return list(iter(lambda: stream.wait(0), None))


def _seen(m: Memory, text: str, where: Any, id: str) -> Any:  # noqa: A002
    """Return the answers of a memory of the past."""
    return m.get(id), m.find(where), m.count(where), m.recall(text, 3, where), m.grep("tea"), m.stats(), m.changes()


#: name -> what it does in a scope, and with which arguments. A cursor is one that the world gave before.
CALLS: dict[str, tuple[Callable[..., Any], st.SearchStrategy[tuple[str, dict[str, Any]]]]] = {}


def does(name: str, run: Callable[..., Any], **arguments: st.SearchStrategy[Any]) -> None:
    CALLS[name] = (run, call(name, **arguments))


hows = st.sampled_from(("keep", "keep", "update", "error"))
ids = st.none() | names


def _export(memory: Memory) -> tuple[str, int, list[Record]]:
    with memory.open_export() as export:
        return export.root, export.count, list(export.records)


does("remember", _remember, text=texts, id=ids, given=fields, how=hows, expect=st.none())
does(
    "remember on condition",
    lambda m, text, id, given, stale: _remember(m, text, id, given, "keep", _current(m, id, stale)),  # noqa: A006
    text=texts,
    id=names,
    given=fields,
    stale=st.booleans(),
)
does(
    "remember_all",
    lambda m, items: m.remember_all([fields_of(*item) for item in items]),
    items=st.lists(st.tuples(texts, fields), max_size=4),
)
does(
    "remember_all of turns",
    lambda m, said: m.remember_all([{"content": text, "kind": "conversation", "conversation": "c"} for text in said]),
    said=st.lists(st.sampled_from(TEXTS[:3]), max_size=5),
)
does(
    "add_messages",
    lambda m, said, chat: m.add_messages(
        [{"role": role, "content": text} for role, text in said], **({} if chat is None else {"conversation": chat})
    ),
    said=st.lists(st.tuples(st.sampled_from(["user", "system"]), st.sampled_from(TEXTS[:3])), max_size=5),
    chat=st.none() | st.just("c"),
)
words = st.sampled_from(("tea", "Tea", "green tea", "boat"))
entities, successes = st.sampled_from(("e", "f")), st.booleans()
whom = st.none() | st.sampled_from(("ana", "bob"))
does(
    "add_messages of tools",
    lambda m, said, user: m.add_messages(
        [{"role": "user", "content": [_result(text) for text in said]}], conversation="c", user=user
    ),
    said=st.lists(texts, min_size=1, max_size=2),
    user=whom,
)
does("record_entity_fact", lambda m, entity, text: m.record_entity_fact(entity, "E", text), entity=entities, text=texts)
does("record_user_fact", lambda m, text, user: m.record_user_fact(text, user=user), text=texts, user=whom)
does(
    "record_knowledge",
    lambda m, said, source, user: m.record_knowledge("\n\n".join(said), source=source, user=user),
    said=st.lists(texts, min_size=1, max_size=3),
    source=st.none() | st.just("a.txt"),
    user=whom,
)
does("record_task", lambda m, text, success: m.record_task(text, "done", success), text=texts, success=successes)
does(
    "context",
    lambda m, text, user, style: m.context(text, 300, user=user, style=style).to_json(),
    text=texts,
    user=whom,
    style=st.sampled_from(STYLES),
)
does("entity_context", lambda m, entity: m.entity_context(entity), entity=entities)
does(
    "execute valid_until",
    lambda m, ids: m.execute(ValidUntil(ids=tuple(ids))),
    ids=st.lists(names | st.sampled_from(DERIVED), max_size=3),
)
does("user_context", lambda m, user: m.user_context(user), user=whom)
does("conversation_context", lambda m, limit: m.conversation_context("c", limit), limit=st.integers(1, 3))
does("copy", lambda m: m.remember_all(m.find()))
does("update", lambda m, id, text: m.update(id, content=text), id=names, text=texts)  # noqa: A006
does("update to another", lambda m, id: m.update(id, user="bob"), id=names)  # noqa: A006
does(
    "update by a function",
    lambda m, id: m.update(id, lambda record: record.changed(content=f"{record.id} {record.text}"[:60])),  # noqa: A006
    id=names,
)
does(
    "update on condition",
    lambda m, id, text, stale: m.update(id, content=text, expect=_current(m, id, stale)),  # noqa: A006
    id=names,
    text=texts,
    stale=st.booleans(),
)
does("touch", lambda m, one, two: m.touch([one, two], 3600), one=names | st.sampled_from(DERIVED), two=names)
does(
    "supersede",
    lambda m, id, text, minutes: m.supersede(id, text, at=START + timedelta(minutes=minutes)),  # noqa: A006
    id=names | st.sampled_from(DERIVED),
    text=texts,
    minutes=st.integers(0, 3),
)
does(
    "merge",
    lambda m, one, two, text: m.merge([one, two], text),
    one=names | st.sampled_from(DERIVED),
    two=names,
    text=texts,
)
does(
    "consolidate",
    lambda m, dry: m.consolidate(min_count=2, dry_run=dry).to_json()["groups"],
    dry=st.booleans(),
)
does("distinguish", lambda m, one, two: m.distinguish([one, two]), one=names, two=names)
does("duplicates", lambda m: [each.to_json() for each in m.duplicates(turns=True)])
does("contradictions", lambda m: [each.to_json() for each in m.contradictions()])
does(
    "contradictions of a record",
    lambda m: [each.to_json() for each in m.contradictions(record=Record(id="x", content="I live in Oslo"))],
)
does("as_origin", lambda m, text: m.as_origin("web").remember(text), text=texts)
does("endorse", lambda m, id: m.endorse(id), id=names | st.sampled_from(DERIVED))  # noqa: A006
does("audit", lambda m: m.audit())
does("lineage", lambda m, id: m.lineage(id).to_json(), id=names | st.sampled_from(DERIVED))  # noqa: A006
does("taint", lambda m, id: m.taint(id).to_json(), id=names | st.sampled_from(DERIVED))  # noqa: A006
does("resolve", lambda m: [m.resolve(each) for each in m.contradictions()[:1]])
does("entities", lambda m: m.entities())
does("entity", lambda m: m.entity("Ana") and m.entity("Ana").to_json())
does("neighbours", lambda m: m.neighbours("Ana", depth=2).to_json())
does("paths", lambda m: m.paths("Ana", "Bob"))
does("relate", lambda m, one, two: m.relate(one, "knows", two), one=texts, two=texts)
does("merge_entities", lambda m, one, two: m.merge_entities(one, two), one=texts, two=texts)
does("extract_entities", lambda m: m.extract_entities("Ana likes Oslo").results)
does("glossary: memorize", lambda m, key, text: m.glossary.memorize(key, f"v {text}", "", "a"), key=words, text=texts)
does(
    "outline: ingest",
    lambda m, key, text: m.outline.ingest(
        {"type": "A", "properties": {"ID": key}, "contents": [{"type": "B", "raw_content": text}]}
    ),
    key=words,
    text=texts,
)
does(
    "outline: ingest below",
    lambda m, key, parent: m.outline.ingest({"type": "A", "properties": {"ID": key}}, parent=parent),
    key=words,
    parent=words,
)
does("outline: remove", lambda m, key: m.outline.remove(key), key=words)
does("outline: get", lambda m, key: (m.outline.get(key), m.outline.children(key), m.outline.ancestors(key)), key=words)


def _keyed_events(m: Memory) -> Any:
    return [(each.kind, each.key, each.size, each.value) for each in m.keyed.events()]


does("keyed: write", lambda m, id, text: m.keyed.write(id, text.encode()), id=names, text=words)  # noqa: A006
does(
    "keyed: cas",
    lambda m, id, old, text: m.keyed.cas(id, old and old.encode(), text.encode()),  # noqa: A006
    id=names,
    old=st.none() | words,
    text=words,
)
does("keyed: forget", lambda m, id: m.keyed.forget(id), id=names)  # noqa: A006
does("keyed: read", lambda m, id: (m.keyed.read(id), m.keyed.keys(), m.keyed.stats()), id=names)  # noqa: A006
does("keyed: recall", lambda m, text: m.keyed.recall(text), text=words)
does("keyed: events", _keyed_events)
does("sdr: store", lambda m, text: m.sdr.store(text, {"said": text}), text=words)
does("sdr: update", lambda m, number, text: m.sdr.update(number, text), number=st.integers(1, 4), text=words)
does("sdr: forget", lambda m, number: m.sdr.forget(number), number=st.integers(1, 4))
does("sdr: get", lambda m, number: (m.sdr.get(number), m.sdr.stats(), m.sdr.texts()), number=st.integers(1, 4))
does("sdr: query", lambda m, text: (m.sdr.query(text), m.sdr.query(text, rule=True)), text=words)
does(
    "outline: search",
    lambda m, key, text: (
        [(each.node.id, each.similarity) for each in m.outline.search(text, private=("x",))],
        [str(m.outline.focus(each.id, 50)) for each in m.outline.roots()],
        str(m.outline.focus(max_tokens=50)),
    ),
    key=words,
    text=words,
)
does("outline: all", lambda m: ([m.outline.hash(each.id) for each in m.outline.roots()], m.outline.find(kind="b")))
does("outline: version", lambda m, key: (node := m.outline.get(key)) and m.outline.version(node.version), key=words)
does("glossary: forget", lambda m, key: m.glossary.forget(key, "a"), key=words)
does("glossary: recall", lambda m, text: m.glossary.recall(text, "a"), text=texts)
does("glossary: annotate", lambda m, text: m.glossary.annotate(text, "a"), text=texts)
does(
    "glossary: list",
    lambda m: (m.glossary.agents(), m.glossary.list_all("a"), m.glossary.shared_names("a")),
)
does("supersede for another", lambda m, id: m.supersede(id, "tea", user="bob"), id=names)  # noqa: A006
does("forget", lambda m, id: m.forget(id), id=names | st.sampled_from(DERIVED))  # noqa: A006
does("forget on condition", lambda m, id, s: m.forget(id, expect=_current(m, id, s)), id=names, s=st.booleans())  # noqa: A006
VALUED = ("tag", "user", "kind", "source", "meta.a")
does("values", lambda m, field, where: m.values(field, where=where), field=st.sampled_from(VALUED), where=wheres)
does("forget_all", lambda m, one, two: m.forget_all([one, two]), one=names | st.sampled_from(DERIVED), two=names)
does("forget_where", lambda m, where: m.forget_where(where), where=wheres)
does("clear", lambda m: m.clear())
does(
    "erase",
    lambda m, id, redact, derived: m.erase(id, redact=redact, derived=derived),  # noqa: A006
    id=names | st.sampled_from(DERIVED),
    redact=st.booleans(),
    derived=st.booleans(),
)
does("erase by a filter", lambda m, where, redact: m.erase(where, redact=redact), where=wheres, redact=st.booleans())
does("get_all", lambda m, one, two: m.get_all([one, two, one]), one=names | st.sampled_from(DERIVED), two=names)
does("get", lambda m, id: (m.get(id), m.history(id)), id=names | st.sampled_from(DERIVED))  # noqa: A006
does(
    "find",
    lambda m, where, limit, order: m.find(where, limit, order),
    where=wheres,
    limit=st.sampled_from((None, 2)),
    order=st.sampled_from(ORDERS),
)
does(
    "the next page",
    lambda m, limit, order: m.find(limit=2, order=order, after=m.find(limit=limit, order=order).cursor),
    limit=st.integers(1, 3),
    order=st.sampled_from(ORDERS),
)
does("count", lambda m, where: m.count(where), where=wheres)
does("recall", lambda m, text, where: m.recall(text, 4, where), text=texts, where=wheres)
does("recall an unknown word", lambda m, least: m.recall("harbor lettre", 3, min_confidence=least), least=st.just(0.1))
does("grep", lambda m, where: m.grep("tea or harbour", where=where), where=wheres)
does("stats", lambda m: m.stats())
does("vector_stats", lambda m: m.vector_stats())
does("open_export", _export)
does("namespaces", lambda m: (m.namespaces(), m.name))
does("changes", lambda m, cursor: m.changes(cursor), cursor=st.integers(0, 50))
does("changes of an id", lambda m, cursor, id: m.changes(cursor, 3, id), cursor=st.integers(0, 50), id=names)  # noqa: A006
does("log", lambda m, cursor, where: m.log(3, cursor, where), cursor=st.integers(0, 50), where=wheres)
does("listen", lambda m, cursor: _heard(m, cursor), cursor=st.integers(0, 50))
does("subscribe", lambda m, cursor: _streamed(m, cursor), cursor=st.integers(0, 50))
does("execute wait", lambda m: m.execute(Wait(since=0, timeout=0)))
does("batch", _batch, text=texts, id=names, fails=st.booleans())
does("narrower", lambda m, id: m.scoped(agent="x").remember("in a narrower scope", id=id), id=names)  # noqa: A006
does("of a narrower one", lambda m: m.scoped(agent="x").find(order="id"))
does("execute", lambda m, where: m.execute(recollect.operations.Find(where=where)), where=wheres)
does(
    "at",
    lambda m, minutes, text, where, id: _seen(m.at(START + timedelta(minutes=minutes)), text, where, id),  # noqa: A006
    minutes=st.integers(-1, 15),
    text=texts,
    where=wheres,
    id=names,
)
does(
    "at a cursor",
    lambda m, cursor, text: _seen(m.at(cursor or START), text, f.everything(), "a"),
    cursor=st.integers(0, 50),
    text=texts,
)
does("history", lambda m, id: m.history(id), id=names | st.sampled_from(DERIVED))  # noqa: A006
does(
    "diff",
    lambda m, one, other: m.diff(START + timedelta(minutes=one), START + timedelta(minutes=other)),
    one=st.integers(-1, 15),
    other=st.integers(-1, 15),
)
for name, refused in REFUSED.items():
    does(f"refused: {name}", lambda m, refused=refused: refused(m))

calls = st.one_of([strategy for _, strategy in CALLS.values()])
others = st.one_of(
    call(
        "write",
        text=texts,
        id=ids | st.sampled_from(DERIVED),
        given=fields,
        within=st.sampled_from((None, {"user": "bob"}, {"conversation": "d"}, {"agent": "x"})),
    ),
    call("forget", which=st.integers(0, 9)),
    call("turns", count=st.integers(1, 12)),
    call("elsewhere", text=texts),
)
steps = st.lists(st.tuples(st.just("ours"), calls) | st.tuples(st.just("others"), others), max_size=14)


def act_as_others(world: World, scope: Scope, act: str, arguments: dict[str, Any]) -> None:
    """The steps of others, never in the scope."""
    memory = world.whole
    try:
        match act:
            case "write":
                memory = memory.scoped(**arguments["within"]) if arguments["within"] else memory
                given = {name: value for name, value in arguments["given"].items() if value is not None}
                whole = {**given, **(arguments["within"] or {})}
                if all(whole.get(name) == value for name, value in scope.fixed):
                    return
                memory.remember(arguments["text"], id=arguments["id"], if_exists="update", **given)
            case "forget":
                theirs = [record for record in memory.find(order="id") if not scope.admits(record)]
                if theirs:
                    memory.forget(theirs[arguments["which"] % len(theirs)].id)
            case "turns":
                turn = {"kind": "conversation", "conversation": "c" if "user" in dict(scope.fixed) else "d"}
                memory.scoped(user="bob").remember_all(
                    [fields_of(f"turn {n}", turn) for n in range(arguments["count"])]
                )
            case "elsewhere":
                memory.namespace("other").remember(arguments["text"])
    except RecollectError:
        pass  # of those who are outside, much is refused


def plain(value: Any) -> Any:
    """A result as JSON, without the cursors."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "to_json"):
        return [plain(each) for each in value]
    if hasattr(value, "to_json"):
        out = value.to_json()
        if hasattr(value, "plan"):
            out["plan"] = repr(value.plan)
        if hasattr(value, "results"):
            out["results"] = [each.to_json() for each in value.results]
        return json.loads(re.sub(r'"cursor": "[\w-]{32,}"', '"cursor": "..."', json.dumps(out)))
    return value


def answer(world: World, name: str, arguments: dict[str, Any]) -> Any:
    """Return the result of a call in the scope, or its error."""
    arguments = dict(arguments)
    if "cursor" in arguments:
        arguments["cursor"] = world.cursors[arguments["cursor"] % len(world.cursors)] if world.cursors else 0
    try:
        found = CALLS[name][0](world.scoped, **arguments)
    except RecollectError as error:
        return type(error).__name__, plain(error)
    for each in found if isinstance(found, list) else [found]:
        if getattr(each, "cursor", "0") != "0":
            world.cursors.append(each.cursor)
    return plain(found)


def compare(crowded: World, alone: World, scope: Scope, steps: list[Any]) -> None:
    moment = START
    for whose, (name, arguments) in steps:
        moment += timedelta(minutes=1)
        crowded.clock.time = alone.clock.time = moment
        if whose == "others":
            act_as_others(crowded, scope, name, arguments)
        else:
            assert answer(crowded, name, arguments) == answer(alone, name, arguments), (name, arguments)
    shown = [record.id for record in crowded.scoped.find()]
    assert len(shown) == len(set(shown)), "one id, two records"


@pytest.mark.promise("scope.alone")
@pytest.mark.parametrize("fixed", SCOPES)
@given(steps=steps)
@settings(max_examples=some(150), suppress_health_check=[HealthCheck.too_slow])
def test_a_scope_is_as_if_there_were_nothing_else(fixed: str, steps: list[Any]) -> None:
    compare(*worlds(fixed), Scope().narrowed(**SCOPES[fixed]), steps)


@pytest.mark.promise("scope.alone")
@given(steps=steps)
@settings(max_examples=some(25), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_a_scope_of_a_file_is_as_if_there_were_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("scopes")
    crowded, alone = (
        World(SqliteStore(folder / name, durability="normal"), SCOPES["user"]) for name in ("crowded.db", "alone.db")
    )
    compare(crowded, alone, Scope().narrowed(**SCOPES["user"]), steps)
    assert crowded.whole.check() == []
    for world in (crowded, alone):
        world.whole.close()


def test_every_public_call_is_compared_or_on_the_list() -> None:
    public = {name for name, _ in inspect.getmembers(Memory) if not name.startswith("_")}
    compared = {re.split(r" |: ", name.removeprefix("refused: "))[0] for name in CALLS} | {"name", "scope"}
    assert public <= compared | DIFFERS.keys()


def _free_of_all(naming: Naming, record_id: str, wanted: Any) -> str:
    return record_id if naming.live(record_id) is None else f"{record_id}-2"


def _positioned_behind_all(writer: Writer, record: Record) -> Record:
    last = writer._tx.last_position(writer._branch, "c")
    return record.changed(position=0 if last is None else last + 1)


LEAKS: dict[str, tuple[str, Any]] = {
    "ids": ("recollect.engine.write.naming.Naming.free", _free_of_all),
    "positions": ("recollect.engine.write.writer.Writer._with_position", _positioned_behind_all),
    "records": ("recollect.engine.scope.Scope.filter", f.everything()),
    "commits": ("recollect.engine.scope.Scope.admits", lambda scope, record: True),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_the_comparison_notices_a_leak(monkeypatch: pytest.MonkeyPatch, leak: str) -> None:
    turn = {"kind": "conversation", "conversation": "c"}
    theirs = {"user": "bob", "position": 9, **turn}
    steps: list[Any] = [
        ("others", ("write", {"text": "ok", "id": "note", "given": theirs, "within": None})),
        ("ours", ("remember", {"text": "tea", "id": "note", "given": {}, "how": "keep", "expect": None})),
        ("ours", ("remember", {"text": "tea", "id": None, "given": turn, "how": "keep", "expect": None})),
        ("ours", ("changes", {"cursor": 0})),
        ("ours", ("count", {"where": f.everything()})),
    ]
    scope = Scope().narrowed(user="ana")
    compare(*worlds("user"), scope, steps)
    monkeypatch.setattr(*LEAKS[leak])
    with pytest.raises(AssertionError):
        compare(*worlds("user"), scope, steps)


# Ids


@pytest.fixture
def memory() -> Memory:
    return memory_on(MemoryStore())


@pytest.mark.in_process
@pytest.mark.promise("scope.ids")
def test_an_id_chosen_in_a_scope_reads_back_as_chosen_and_is_qualified_outside(memory: Memory) -> None:
    ana, bob = memory.scoped(user="ana"), memory.scoped(user="bob")
    for each in (ana, bob):
        assert each.remember("mine", id="note").id == "note"
        assert each.update("note", lambda record: record.changed(content=record.text + "!")).id == "note"
        assert [record.id for record in each.find(f.id("note"))] == ["note"]
        assert [hit.record.id for hit in each.recall("mine")] == ["note"]
        assert [change.id for commit in each.changes(id="note") for change in commit.changes] == ["note", "note"]
    assert [record.id for record in memory.find(order="id")] == ["@user=ana/note", "@user=bob/note"]
    assert ana.scoped(conversation="c").get("note") is None
    assert memory.forget("@user=bob/note")
    assert bob.get("note") is None
    assert bob.remember("again", id="note").id == "note"


@pytest.mark.promise("scope.ids")
def test_records_that_had_their_ids_before_keep_them_in_the_scope(memory: Memory) -> None:
    memory.remember("from outside", id="note", user="ana")
    ana = memory.scoped(user="ana")
    assert ana.get("note") is not None
    assert ana.update("note", content="changed").id == "note"
    assert ana.remember("another", id="note").id == "note-2"
    assert ana.forget("note")
    assert ana.remember("new", id="note").id == "note"
    assert {record.id for record in memory.find()} == {"@user=ana/note", "@user=ana/note-2"}


@pytest.mark.promise("scope.ids")
def test_no_call_outside_gives_a_scope_two_records_of_one_id(memory: Memory) -> None:
    ana = memory.scoped(user="ana")
    ana.remember("hers", id="note")
    assert memory.remember("from outside", id="note", user="ana").id == "note-2"
    memory.remember("nobody's", id="note")
    with pytest.raises(RecordExistsError, match="@user=ana/note"):
        memory.update("note", user="ana")
    with pytest.raises(RecordExistsError, match="@user=ana/note"):
        memory.remember("exactly", id="other", user="ana", expect="absent") and memory.execute(
            Remember(content="x", id="note", fields={"user": "ana"}, if_exists="update", exact=True)
        )
    memory.update("@user=ana/note", user="bob")  # it leaves her scope, and she may use the id again
    assert ana.get("note") is None
    assert ana.remember("hers again", id="note").id == "note"
    assert memory.get("@user=ana&2/note") is not None
    with pytest.raises(RecordExistsError, match="&2/note"):
        memory.update("@user=ana/note", user="ana")


@pytest.mark.promise("scope.ids")
@pytest.mark.parametrize("if_exists", ["update", "error"])
def test_an_id_that_a_scope_uses_is_not_evaded_by_asking_for_just_that_one(memory: Memory, if_exists: IfExists) -> None:
    memory.scoped(user="ana").remember("likes tea", id="profile")
    for text in ("likes tea", "likes coffee"):
        with pytest.raises(RecordExistsError, match="@user=ana/profile"):
            memory.remember(text, id="profile", user="ana", if_exists=if_exists)
    assert memory.count() == 1
    assert memory.remember("likes milk", id="profile", user="bob", if_exists=if_exists).id == "profile"


@pytest.mark.promise("scope.ids")
def test_a_scope_moves_no_record_over_another_of_a_narrower_one(memory: Memory) -> None:
    ana = memory.scoped(user="ana")
    inner = ana.scoped(conversation="c")
    memory.remember("plain", id="note", user="ana")
    inner.remember("inner", id="note")
    with pytest.raises(RecordExistsError, match="conversation=c"):
        ana.update("note", conversation="c")
    assert [(record.id, record.content) for record in inner.find()] == [("note", "inner")]


@pytest.mark.promise("scope.ids")
def test_a_record_that_comes_from_another_scope_takes_no_id_from_this_one(memory: Memory) -> None:
    ana, talk = memory.scoped(user="ana"), memory.scoped(conversation="c")
    memory.remember("hers", id="note", user="ana")
    talk.remember("of the talk", id="note")
    assert ana.update("note", conversation="c").conversation == "c"  # refusing would tell what the talk has
    hers, of_the_talk = memory.get("note"), memory.get("@conversation=c/note")
    assert hers is not None
    assert of_the_talk is not None
    assert talk.get("note") == of_the_talk.changed(id="note")
    assert talk.update("note", importance=0.5).content == "of the talk"
    assert ana.get("note") == hers
    assert talk.forget("note")
    assert talk.get("note") == hers


def test_an_id_that_looks_qualified_cannot_be_chosen_in_a_scope(memory: Memory) -> None:
    ana = memory.scoped(user="ana")
    cases: list[tuple[IfExists, str | None]] = [("keep", None), ("update", None), ("keep", "absent")]
    for if_exists, expect in cases:
        with pytest.raises(recollect.errors.InvalidRecordError, match="begins with @"):
            ana.remember("x", id="@conversation=c&user=ana/note", if_exists=if_exists, expect=expect)
    memory.remember("x", id="@user=ana/@note", user="ana")
    assert [record.id for record in ana.find()] == ["@user=ana/@note"]
    assert ana.get("@user=ana/@note") is not None
    assert ana.get("@note") is None


@pytest.mark.promise("scope.ids")
@given(
    st.dictionaries(st.sampled_from(("user", "agent", "conversation")), st.text(min_size=1, max_size=60), min_size=1),
    st.text(min_size=1, max_size=20),
    st.integers(1, 12),
)
def test_qualified_ids_are_read_back_only_by_their_own_scope(fixed: dict[str, str], chosen: str, number: int) -> None:
    try:
        record_id = Record(id=chosen, content="x").id
    except RecollectError:
        return
    scope = Scope().narrowed(**fixed)
    if record_id.startswith("@"):
        with pytest.raises(recollect.errors.InvalidRecordError):
            scope.qualified(record_id, number)
        return
    stored = scope.qualified(record_id, number)
    assert Record(id=stored, content="x").id == stored
    assert scope.shown_id(stored) == record_id
    for other in ({"user": "somebody else"}, {**fixed, "user": "one more"}, {"agent": "a"}):
        if other != fixed:
            assert Scope().narrowed(**other).shown_id(stored) == stored


def test_an_id_that_is_too_long_for_its_qualifier_is_refused_with_the_length_that_is_not(memory: Memory) -> None:
    ana = memory.scoped(user="ana")
    assert ana.remember("x", id="i" * 245).id == "i" * 245
    assert ana.get("i" * 255) is None
    with pytest.raises(recollect.errors.InvalidRecordError, match="longer than 245 bytes"):
        ana.remember("x", id="i" * 246)
    long = memory.scoped(user="é" * 400)
    assert long.remember("x", id="note").id == "note"
    assert len(memory.find(f.user("é" * 400))[0].id) < 60


def test_every_scope_of_a_record_is_listed_once() -> None:
    record = Record(id="a", content="x", user="u", agent="a", conversation="c")
    assert len(set(scopes_of(record))) == 7
    assert all(scope.admits(record) for scope in scopes_of(record))


# Positions, cursors, history


@pytest.mark.promise("scope.alone")
def test_a_position_at_the_end_blocks_no_one(memory: Memory) -> None:
    turn = {"kind": "conversation", "conversation": "c"}
    memory.scoped(user="bob").remember("the last", position=2**63 - 1, **turn)  # type: ignore[arg-type]
    ana = memory.scoped(user="ana")
    assert [ana.remember(text, **turn).position for text in ("hi", "ok")] == [0, 1]  # type: ignore[arg-type]
    assert memory.remember("of nobody", **turn).position == 2**63 - 1  # type: ignore[arg-type]
    assert memory.remember("of nobody, later", **turn).position == 2**63 - 1  # type: ignore[arg-type]


@pytest.mark.promise("scope.cursors")
def test_cursors_go_on_where_they_stand_and_tell_nothing(tmp_path: Path) -> None:
    with recollect.open(tmp_path / "a.db") as memory:
        ana = memory.scoped(user="ana")
        for number in range(5):
            memory.remember(f"of others {number}")
            ana.remember(f"hers {number}", id=f"r{number}")
        commits = ana.changes()
        assert [commit.seq for commit in commits] == [0] * 5
        assert len({commit.cursor for commit in commits}) == 5
        for at, commit in enumerate(commits):
            assert re.fullmatch("[0-9a-f]{32}", commit.cursor)
            assert ana.changes(commit.cursor) == commits[at + 1 :]
        assert ana.recall("hers").watermark == 0
        assert ana.changes(ana.recall("hers").cursor) == []
        assert memory.changes(memory.recall("hers").cursor) == []
        assert [commit.cursor for commit in memory.changes(8)] == ["9", "10"]
        assert memory.changes("8") == memory.changes(8)
        cursor = commits[2].cursor
        for other in (
            memory,
            memory.scoped(user="bob"),
            ana.scoped(agent="x"),
            memory.namespace("n").scoped(user="ana"),
        ):
            with pytest.raises(InvalidArgumentError, match="cursor"):
                other.changes(cursor)
        for wrong in ("3", "x", "0" * 32, cursor.upper() + "0"):
            with pytest.raises(InvalidArgumentError, match="cursor"):
                ana.changes(wrong)
    with recollect.open(tmp_path / "a.db") as memory:
        assert len(memory.scoped(user="ana").changes(cursor)) == 2


@pytest.mark.promise("scope.history")
def test_two_cursors_of_the_present_do_not_show_whether_others_wrote_in_between() -> None:
    times = (START + timedelta(seconds=number) for number in range(100))
    memory = recollect.open(":memory:", clock=lambda: next(times))
    bob = memory.scoped(user="bob")
    bob.remember("tea")
    before = {bob.recall("tea").cursor for _ in range(3)}
    memory.remember("coffee", user="ana")
    assert len({bob.recall("tea").cursor for _ in range(3)} | before) == 6
    assert all(bob.changes(cursor) == [] for cursor in before)


def test_the_moment_before_the_first_commit_does_not_show_when_others_wrote_it(memory: Memory) -> None:
    bob = memory.scoped(user="bob")
    times = {bob.execute(Pin(seq=0)).time}
    memory.remember("coffee", user="ana")
    assert times == {bob.execute(Pin(seq=0)).time}


def test_versions_from_before_a_record_moved_in_are_not_shown(memory: Memory) -> None:
    memory.remember("bob's secret", id="a", user="bob")
    memory.update("a", content="for ana", user="ana")
    memory.update("a", content="bob's again", user="bob")
    ana = memory.scoped(user="ana")
    shown = [(change.before, change.after is not None) for commit in ana.changes() for change in commit.changes]
    assert [after for _, after in shown] == [True, False]
    assert shown[0][0] is None
    assert shown[1][0] is not None


@pytest.mark.promise("scope.refused")
@pytest.mark.parametrize("name", REFUSED)
def test_what_tells_of_the_whole_namespace_is_refused(memory: Memory, name: str) -> None:
    with pytest.raises(ScopeError):
        REFUSED[name](memory.scoped(user="ana"))
    assert memory.count() == 0


def test_leaving_the_block_of_a_scope_leaves_the_memory_open(memory: Memory) -> None:
    with memory.scoped(user="ana") as ana:
        ana.remember("hers")
    assert memory.count() == ana.count() == 1


def test_a_memory_says_to_what_it_is_scoped() -> None:
    with recollect.open(":memory:") as memory:
        assert memory.scope == {}
        assert memory.scoped(user="ana").scoped(agent="a").scope == {"user": "ana", "agent": "a"}
        assert recollect.AsyncMemory(memory.scoped(user="ana")).scope == {"user": "ana"}
