"""Execution of the operations on the history: snapshots, differences, versions, rollback and revert."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.engine.core import Core, check_branch
from recollect.engine.cursors import Cursors
from recollect.engine.family import chosen
from recollect.engine.history_results import ChangedRecord, Deviation, Difference, RecordVersion, Replayed, Restored
from recollect.engine.meeting import Point, line_upto
from recollect.engine.read import rules
from recollect.engine.read.log import part_commits, visible_part
from recollect.engine.read.targets import PastPoint, point_in, point_of
from recollect.engine.readers import Past
from recollect.engine.reads import recall
from recollect.engine.receipts import listed, model_of, root_at
from recollect.engine.results import scored
from recollect.engine.scope import Place, Scope
from recollect.engine.write.batch import Writing
from recollect.errors import DamagedStoreError, InvalidArgumentError, RecollectError, UnknownTargetError
from recollect.ledger import receipts
from recollect.ledger.commits import Branch, Snapshot
from recollect.ledger.merkle import is_redacted
from recollect.ledger.proofs import leaf_changes
from recollect.operations import Diff, DropSnapshot, History, Recall, Replay, Revert, Rollback, Snapshots, TakeSnapshot
from recollect.operations import from_json as operation_from_json
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import Transaction, View
from recollect.stores.roots import UNNAMED_SNAPSHOTS, release
from recollect.text.unicode import nfc

#: Two moments are compared by their tries if there are at least this many changes between them.
_MANY_CHANGES = 200
#: What differs: (None, record before, record after), or (id, None, None) if a version was erased.
_Pair = tuple[str | None, Record | None, Record | None]


def take_snapshot(core: Core, place: Place, operation: TakeSnapshot) -> Snapshot:
    """Mark the newest commit.

    Raises:
        InvalidArgumentError: There is a snapshot with this name.

    Cost:
        One durable write.
    """
    branch, micros = place.branch, microseconds(core.now())
    with core.store.write(branch, shared=True) as transaction:
        snapshots = transaction.snapshots(branch)
        if operation.label is not None and any(_is_named(each, operation.label) for each in snapshots):
            raise InvalidArgumentError(
                "name",
                operation.label,
                "is the name of another snapshot: choose another name, or drop that one first (drop_snapshot)",
            )
        head = transaction.head(branch)
        number = max((each.number for each in snapshots), default=0) + 1
        # Not before what lies beside the records, also where the clock stands still.
        micros = max(micros, *(transaction.head(each).micros for each in branch.family))
        snapshot = Snapshot(
            number=number, name=operation.label, seq=head.seq, root=head.memory_root.hex(), micros=micros
        )
        transaction.put_snapshot(branch, snapshot)
        core.note_time(transaction, branch, micros)
        for each in [each for each in snapshots if each.name is None][UNNAMED_SNAPSHOTS - 1 :]:
            if operation.label is None:
                _drop(transaction, branch, each)
    return snapshot


def _is_named(snapshot: Snapshot, label: str) -> bool:
    return snapshot.name is not None and nfc(snapshot.name) == nfc(label)


def _drop(transaction: Transaction, branch: Branch, snapshot: Snapshot) -> None:
    """Remove a snapshot, and what it kept of its commit, unless something else marks this commit."""
    transaction.drop_snapshot(branch, snapshot.number)
    release(transaction, branch, snapshot.seq)


def snapshots_of(core: Core, place: Place, operation: Snapshots) -> list[Snapshot]:
    """Return the snapshots, newest first."""
    with core.read(place.branch) as view:
        return view.snapshots(place.branch)


def drop_snapshot(core: Core, place: Place, operation: DropSnapshot) -> Snapshot:
    """Remove a snapshot.

    Raises:
        UnknownTargetError: There is none with this name.
    """
    branch = place.branch
    with core.store.write(branch, shared=True) as transaction:
        found = next((each for each in transaction.snapshots(branch) if _is_named(each, operation.label)), None)
        if found is None:
            raise UnknownTargetError(operation.label, "there is no such snapshot")
        _drop(transaction, branch, found)
    return found


def rollback(core: Core, place: Place, operation: Rollback) -> Restored:
    """Restore the state of a moment, in a new commit."""
    branch = place.branch
    point = point_of(operation.moment, branch, core.cursors)

    def versions(view: View) -> Iterator[tuple[Branch, bytes | None]]:
        for part in chosen(branch, operation.parts).values():
            seq = point_in(view, part, branch, point).seq
            yield from ((part, before) for before, _ in view.net_changes(part, seq, view.head(part).seq).values())

    def attempt(unreadable: Set[bytes]) -> Restored:
        with core.writing(place) as writing:
            parts = writing.parts(operation.parts)
            restored = writing.rollback(point, operation.parts, unreadable)
        return _numbered(restored, writing, parts)

    return _without_unreadable(core, versions, attempt)


def revert(core: Core, place: Place, operation: Revert) -> Restored:
    """Take back the changes of one commit, in a new commit."""
    branch = place.branch

    def versions(view: View) -> Iterator[tuple[Branch, bytes | None]]:
        for each in view.commits(branch, operation.seq - 1, 1):
            for commit in (each, *part_commits(view, each)):
                part = Branch(commit.namespace, commit.branch)
                yield from ((part, change.before) for change in commit.changes)

    def attempt(unreadable: Set[bytes]) -> Restored:
        with core.writing(place) as writing:
            restored = writing.revert(operation.seq, unreadable)
            parts = writing.parts([*restored.parts]) if restored.parts else {}
        return _numbered(restored, writing, parts)

    return _without_unreadable(core, versions, attempt)


def _numbered(restored: Restored, writing: Writing, parts: Mapping[str, Writing]) -> Restored:
    """Return what was restored with the number of the newest commit, which is known at the end of the transaction."""
    others = {name: replace(each, seq=parts[name].seq) for name, each in restored.parts.items()}
    return replace(restored, seq=writing.seq, parts=others)


def _without_unreadable(
    core: Core,
    versions: Callable[[View], Iterator[tuple[Branch, bytes | None]]],
    attempt: Callable[[Set[bytes]], Restored],
) -> Restored:
    """Restore versions; if some cannot be read, restore the others.

    An error of reading ends a transaction of SQLite. So what cannot be read is found out in views, and only then.

    Args:
        versions: Returns the versions that are to be restored.
        attempt: Restores them, except those that it is passed.
    """
    try:
        return attempt(frozenset())
    except DamagedStoreError:
        unreadable = set()
        with core.store.read() as view:
            left = [(part, version) for part, version in versions(view) if version is not None]
        while left:
            try:
                with core.store.read() as view:
                    while left:
                        view.payload(*left[-1])
                        left.pop()
            except DamagedStoreError:
                unreadable.add(left.pop()[1])
        if not unreadable:
            raise
    return attempt(unreadable)


def diff(core: Core, place: Place, operation: Diff) -> Difference:
    """Compare two moments, as a scope could read them then."""
    branch, scope = place.branch, place.scope
    other = branch if operation.branch is None else Branch(branch.namespace, operation.branch)
    found: dict[Branch, Difference] = {}
    with core.read(branch) as view:
        check_branch(view, other)
        old, new = point_of(operation.old, branch, core.cursors), point_of(operation.new, other, core.cursors)
        for point, each in ((old, branch), (new, other)):
            point.head_in(view, each)  # the history is the same
        parts = chosen(branch, operation.parts)
        for part in parts.values():
            theirs = Branch(part.namespace, other.name)
            first = part, point_in(view, part, branch, old).seq
            last = theirs, point_in(view, theirs, other, new).seq
            if part == theirs:
                differing = _differing(view, part, first[1], last[1])
            else:
                differing = _between_branches(view, first, last)
            found[part] = _difference(differing, scope)
    own = found.pop(branch, Difference(added=(), changed=(), removed=()))
    return replace(own, parts={name: found[part] for name, part in parts.items() if found.get(part)})


def _difference(differing: Iterable[_Pair], scope: Scope) -> Difference:
    """Return what differs, as a scope sees it."""
    added: list[Record] = []
    changed: list[ChangedRecord] = []
    removed: list[Record] = []
    erased: list[str] = []
    for record_id, before, after in differing:
        pair = [_visible(each, scope) for each in (before, after)]
        if record_id is not None:
            if not scope.fixed:  # otherwise it is not known whose record it was
                erased.append(record_id)
        elif pair[0] is not None and pair[1] is not None:
            changed.append(ChangedRecord(before=pair[0], after=pair[1]))
        elif pair[1] is not None:
            added.append(pair[1])
        elif pair[0] is not None:
            removed.append(pair[0])

    def by_id(record: Record | ChangedRecord) -> bytes:
        return record.id.encode("utf-8")

    return Difference(
        added=tuple(sorted(added, key=by_id)),
        changed=tuple(sorted(changed, key=by_id)),
        removed=tuple(sorted(removed, key=by_id)),
        erased=tuple(sorted(erased, key=str.encode)),
    )


def _visible(record: Record | None, scope: Scope) -> Record | None:
    return None if record is None or not scope.admits(record) else scope.shown(record)


def _differing(view: View, branch: Branch, old: int, new: int) -> Iterator[_Pair]:
    """Yield what differs between two commits of a part of a memory.

    Cost:
        Proportional to the difference, if both roots have stored pages; otherwise, and if there are few, to the changes
        between.
    """
    first, last = sorted((old, new))
    roots = [view.stored_root(branch, each) for each in (old, new)]
    if view.count_changes(branch, first, last, _MANY_CHANGES) == _MANY_CHANGES and all(
        seq == each for (seq, _), each in zip(roots, (old, new), strict=True)
    ):
        pairs = list(leaf_changes(roots[0][1], roots[1][1], view.node))
        stored = view.numbered(branch, [leaf.number for pair in pairs for leaf in pair if leaf is not None])
        payloads = [[None if leaf is None else stored[leaf.number].payload for leaf in pair] for pair in pairs]
        if all(
            (leaf is None) == (payload is None)
            for pair, each in zip(pairs, payloads, strict=True)
            for leaf, payload in zip(pair, each, strict=True)
        ):
            for before, after in payloads:
                yield None, _loaded(before), _loaded(after)
            return  # otherwise a version was erased, and only the log knows the id
    for record_id, versions in view.net_changes(branch, first, last).items():
        yield _pair(view, branch, record_id, versions if old <= new else versions[::-1])


def _between_branches(view: View, old: Point, new: Point) -> Iterator[_Pair]:
    """Yield what differs between commits of two branches of a part of a memory.

    Cost:
        Proportional to the changes of both since the last commit that both have.
    """
    own, other = line_upto(view, old[0]), line_upto(view, new[0])
    common = max((min(seq, other[branch]) for branch, seq in own.items() if branch in other), default=0)
    common = min(common, old[1], new[1])
    ids = sorted({*view.net_changes(old[0], common, old[1]), *view.net_changes(new[0], common, new[1])})
    before, after = (view.versions_at(branch, ids, seq) if seq else {} for branch, seq in (old, new))
    for record_id in ids:
        versions = before.get(record_id), after.get(record_id)
        if versions[0] != versions[1]:
            yield _pair(view, new[0], record_id, versions)


def _pair(view: View, branch: Branch, record_id: str, versions: tuple[bytes | None, bytes | None]) -> _Pair:
    found = [None if each is None or is_redacted(record_id) else view.payload(branch, each) for each in versions]
    if any(version is not None and payload is None for version, payload in zip(versions, found, strict=True)):
        return record_id, None, None
    return None, _loaded(found[0]), _loaded(found[1])


def _loaded(payload: bytes | None) -> Record | None:
    return None if payload is None else Record.load(payload)


def history(core: Core, place: Place, operation: History) -> list[RecordVersion]:
    """Return the versions that a record had, oldest first, as a scope could read them."""
    branch, scope = place.branch, place.scope
    with core.read(branch) as view:
        found = [
            (commit.seq, version)
            for stored_id in scope.stored_ids(operation.id, lambda each: view.known(branch, each))
            for commit in view.commits(branch, record_id=stored_id)
            for version in _version(view, branch, scope, core.cursors, stored_id, commit)
        ]
    return [version for _, version in sorted(found, key=lambda each: each[0])]


def _version(
    view: View, branch: Branch, scope: Scope, cursors: Cursors, record_id: str, commit: Any
) -> Iterator[RecordVersion]:
    """Yield what a commit did to a record, if the scope saw it."""
    own = replace(commit, changes=tuple(change for change in commit.changes if change.id == record_id))
    seen = visible_part(own, view, scope, cursors)
    if seen is None:
        return
    (change,) = seen.changes
    payload = None if change.after is None else view.payload(branch, change.after)
    record = None if payload is None else scope.shown(Record.load(payload))
    yield RecordVersion(
        commit=seen, cause=change.cause, record=record, erased=change.after is not None and payload is None
    )


# Replaying receipts: the question is asked again as of its commit, and the answers are compared.


def replay(core: Core, place: Place, operation: Replay) -> Replayed:
    """Ask the question of a receipt again, as of its commit, and compare.

    Raises:
        InvalidArgumentError: The receipt is of another namespace, or was changed.
    """
    branch, given = place.branch, receipts.checked(operation.receipt)
    if Branch(given["namespace"], given["branch"]) != branch:
        raise InvalidArgumentError("receipt", given["namespace"], "is the receipt of another namespace")
    question, time = _question(given)
    changed = given["rules"] != rules.digest(core.zone)
    found: list[Deviation] = []
    with core.store.read() as view:
        root = root_at(view, branch, given["seq"])
        if root is None:
            newest = view.head(branch).seq
            found.append(Deviation("seq", None, given["seq"], newest, "the store has no such commit"))
            return Replayed(rules_changed=changed, deviations=tuple(found))
        log = core.log_trees.head(view, branch, given["seq"])
    for name, now in (("root", root.hex()), ("log", log)):
        if given[name] != now:
            found.append(Deviation(name, None, given[name], now, "the history was rewritten"))
    model = None if core.vectors is None else model_of(core.vectors.embedder)
    if given["embedder"] is not None and given["embedder"] != model:
        reason = "the memory was opened without an embedder" if model is None else "the memory has another embedder"
        found.append(Deviation("embedder", None, given["embedder"], model, reason))
    if given["embedder"] is None and given["vectors"] is not None:
        found.append(
            Deviation("vectors", None, given["vectors"], None, "an answer without an embedder uses no vectors")
        )
    # Receipts of earlier releases have no vector.
    if "vector" in given and (given["embedder"] is None) != (given["vector"] is None):
        found.append(Deviation("vector", None, given["vector"], None, "an answer has a vector if it has an embedder"))
    point = PastPoint(given["seq"], root, microseconds(time))
    past = Past(core, place, point, dense=given["embedder"] is not None, question_vector=given.get("vector"))
    hits = recall(past, question)
    with core.store.read() as view:
        for name, again in (("hits", hits.hits), ("standing", hits.standing)):
            found_again = listed(view, branch, given["seq"], scored(again))
            found += _compared(name, given[name], found_again, view, branch)
    reach = hits.plan.vectors or 0
    if found and model == given["embedder"] and given["vectors"] is not None and reach < given["vectors"]:
        found.insert(0, Deviation("vectors", None, given["vectors"], reach, "fewer texts have a vector: embed them"))
    return Replayed(rules_changed=changed, deviations=tuple(found))


def _question(given: receipts.Receipt) -> tuple[Recall, datetime]:
    """Return the question of a receipt, in the language that the memory had, and its time."""
    try:
        question = operation_from_json(json.loads(given["operation"]))
        time = datetime.fromisoformat(given["time"])
    except (ValueError, TypeError, RecollectError) as error:
        raise InvalidArgumentError("receipt", "...", f"has a question that cannot be read: {error}") from None
    if not isinstance(question, Recall) or question.reference is None or time.tzinfo is None:
        raise InvalidArgumentError("receipt", question, "has no question with a reference time")
    return replace(question, language=question.language or given["language"], wait_for_vectors=False), time


def _compared(name: str, given: list[Any], again: list[dict[str, Any]], view: View, branch: Branch) -> list[Deviation]:
    """Return how two lists of hits differ, rank by rank."""
    found = []
    for place in range(max(len(given), len(again))):
        one = given[place] if place < len(given) else None
        other = again[place] if place < len(again) else None
        if one != other:
            found.append(Deviation(name, place, one, other, _reason(one, view, branch)))
    return found


def _reason(hit: Any, view: View, branch: Branch) -> str:
    """Return why a hit of a receipt may be missing: its text was erased, or "" if it is stored."""
    try:
        version = bytes.fromhex(hit["version"])
    except (TypeError, LookupError, ValueError):
        return ""
    return "erased" if len(version) == 32 and view.payload(branch, version) is None else ""
