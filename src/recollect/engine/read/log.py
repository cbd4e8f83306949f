"""The log of a memory as a scope sees it: its commits, with the commits to other parts that they follow.

A commit to another part, such as a glossary, is followed by one of the memory that changes no record. The log of the
memory is read with both together.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from recollect.common.deadlines import check
from recollect.engine.cursors import Cursors
from recollect.engine.family import chosen
from recollect.engine.feed import PAGE
from recollect.engine.scope import Scope
from recollect.errors import DamagedStoreError
from recollect.filters.tree import EVERYTHING, Everything, Filter
from recollect.ledger.commits import KEPT, RESERVED, Branch, Change, Commit, Head, ScopedCommit
from recollect.ledger.merkle import Root
from recollect.operations import Changes
from recollect.records.record import Record
from recollect.stores.base import ReadView, Store
from recollect.stores.write_queue import repeated

#: Commits that `changes` reads at a time.
_COMMITS_PAGE = 256


@dataclass(frozen=True, slots=True)
class VisibleLog:
    """The commits of a branch that a reader may see, without the changes that are hidden from it.

    Attributes:
        view: A view of the store.
        branch: The branch of the records, or of one part of a memory.
        scope: The scope of the reader.
        cursors: The cursors of the store.
        parts: The parts whose changes are seen, by name; None: all.
        where: Only changes of records that match before or after are seen.
        id: Only commits that changed the record with this id are seen.
    """

    view: ReadView
    branch: Branch
    scope: Scope
    cursors: Cursors
    parts: Collection[str] | None = None
    where: Filter = EVERYTHING
    id: str | None = None

    @property
    def every(self) -> bool:
        """True if no part, scope, filter or id hides a change. Then commits without changes are seen, too."""
        is_whole = isinstance(self.where, Everything) and self.id is None
        return self.parts is None and is_whole and not self.scope.fixed

    def of(self, commit: Commit) -> Commit | None:
        """Return a commit as it is seen, with those to other parts that it follows; None if nothing of it is seen."""
        chosen_parts = chosen(self.branch, self.parts)
        own = self._own(commit) if self.branch in chosen_parts.values() else None
        others = [part for part in chosen_parts.values() if part != self.branch]
        followed = []
        if others and commit.parts:
            followed = [each for part in part_commits(self.view, commit) if (each := self._own(part, others))]
        if own is None or not (own.changes or followed or self.every):
            if not followed:
                return None
            own = _without_changes(commit, self.scope, self.cursors)
        return replace(own, part_commits=tuple(followed)) if followed else own

    def _own(self, commit: Commit, parts: Collection[Branch] | None = None) -> Commit | None:
        """Return a commit without the changes of other parts that it follows."""
        if parts is not None and Branch(commit.namespace, commit.branch) not in parts:
            return None
        seen = visible_part(commit, self.view, self.scope, self.cursors)
        if seen is not None and seen.touches(self.id):
            seen = matching_part(seen, self.view, self.scope, self.where)
        return seen if seen is not None and seen.touches(self.id) else None


def changes(operation: Changes, view: ReadView, branch: Branch, scope: Scope, cursors: Cursors) -> Iterator[Commit]:
    """Yield the commits after a cursor as a scope sees them; with an id, those that changed that record."""
    since = cursors.reached(operation.since, branch, scope, view.head(branch).seq)
    seen = VisibleLog(view, branch, scope, cursors, operation.parts, operation.where, operation.id)
    page = operation.limit if replace(seen, id=None).every else None  # otherwise more commits are read than returned
    read = partial(in_pages, view, branch, since, page, newest_first=operation.newest_first)
    if operation.id is None or operation.parts is not None:
        commits = read(None)
    else:  # the id of a record
        each = map(read, scope.stored_ids(operation.id, partial(view.known, branch)))
        merged = heapq.merge(*each, key=lambda commit: commit.seq, reverse=operation.newest_first)
        commits = (next(same) for _, same in groupby(merged, key=lambda commit: commit.seq))
    return (found for commit in commits if (found := seen.of(commit)) is not None)


def part_commits(view: ReadView, commit: Commit) -> list[Commit]:
    """Return the commits to other parts of a memory that one of the memory follows."""
    branch = Branch(commit.namespace, commit.branch)
    before = view.head_at(branch, commit.seq - 1) or Head()
    # The first one, and one after a commit that states no parts, states the commits of earlier releases, too.
    known = None if commit.seq == 1 or before.parts is None else {each.name: each.seq for each in before.parts}
    found: list[Commit] = []
    for each in commit.parts or ():
        if each.name not in RESERVED:  # a later release has further parts
            continue
        since = each.seq - 1 if known is None else known.get(each.name, 0)
        if since < each.seq:
            found += view.commits(branch.reserved(each.name), since, each.seq - since)
    return [each for each in found if known is not None or each.micros == commit.micros]


def together(view: ReadView, commit: Commit) -> list[Commit]:
    """Return the commits of one transaction: one of a memory, and those to other parts that it follows.

    Args:
        commit: Any of them. Where nothing follows it, as in a store of format 3, it is the only one.

    Cost:
        O(log commits).
    """
    branch = Branch(commit.namespace, commit.branch)
    if not branch.is_reserved:
        return [commit, *part_commits(view, commit)]

    def time_of(seq: int) -> int:
        head = view.head_at(branch.owner, seq)
        assert head is not None, "the log has no gaps"
        return head.micros

    before = bisect_left(range(1, view.head(branch.owner).seq + 1), commit.micros, key=time_of)
    for following in view.commits(branch.owner, before, 1):
        followed = part_commits(view, following)
        if (commit.part, commit.seq) in {(each.part, each.seq) for each in followed}:
            return [following, *followed]
    return [commit]


def _without_changes(commit: Commit, scope: Scope, cursors: Cursors) -> Commit:
    """Return a commit as a scope sees it, without changes."""
    if not scope.fixed:
        return replace(commit, root=Root(commit.root.hash), changes=())
    return _scoped(commit, (), scope, cursors)


def visible_part(commit: Commit, view: ReadView, scope: Scope, cursors: Cursors) -> Commit | None:
    """Return a commit as a scope sees it: only its changes to records in the scope. None if there are none."""
    if not scope.fixed:
        return replace(commit, root=Root(commit.root.hash))  # the page is a detail of the store
    branch = Branch(commit.namespace, commit.branch)

    def seen(version: bytes | None) -> bytes | None:
        payload = None if version is None else view.payload(branch, version)
        return version if payload is not None and scope.admits(Record.load(payload)) else None

    changes = tuple(
        Change(scope.shown_id(change.id), before, after, change.cause)
        for change in commit.changes
        for before, after in [(seen(change.before), seen(change.after))]
        if before != after  # otherwise a version outside the scope was erased
    )
    return _scoped(commit, changes, scope, cursors) if changes else None


def _scoped(commit: Commit, changes: tuple[Change, ...], scope: Scope, cursors: Cursors) -> ScopedCommit:
    branch = Branch(commit.namespace, commit.branch)
    return ScopedCommit(
        namespace=commit.namespace,
        branch=commit.branch,
        seq=0,
        parents=(),
        micros=commit.micros,
        actor=None,
        reason=None,
        root=Root(),
        changes=changes,
        token=cursors.at(commit.seq, branch, scope),
    )


def matching_part(commit: Commit, view: ReadView, scope: Scope, where: Filter) -> Commit | None:
    """Return a commit with only its changes to records that match before or after; None if there are none."""
    if isinstance(where, Everything):
        return commit
    branch = Branch(commit.namespace, commit.branch)

    def matches(version: bytes | None) -> bool:
        payload = None if version is None else view.payload(branch, version)
        return payload is not None and where.matches(scope.shown(Record.load(payload)))

    changes = tuple(change for change in commit.changes if matches(change.after) or matches(change.before))
    return replace(commit, changes=changes) if changes else None


def last_effect(view: ReadView, branch: Branch, record_id: str) -> tuple[Commit, Change] | None:
    """Return the newest change of a record, with its commit, except that a merge has kept it; None if there is none."""
    before: int | None = None
    while True:
        commits = view.commits(branch, record_id=record_id, before=before, newest_first=True, limit=1)
        newest = next(iter(commits), None)
        if newest is None:
            return None
        for change in newest.changes:
            if change.id == record_id and change.cause != KEPT:
                return newest, change
        before = newest.seq


def in_pages(
    view: ReadView, branch: Branch, since: int, limit: int | None, record_id: str | None, *, newest_first: bool
) -> Iterator[Commit]:
    """Yield the commits after `since`, reading a page of them at a time: the caller may need only the first."""
    size = _COMMITS_PAGE if limit is None else min(limit, _COMMITS_PAGE)
    before: int | None = None
    while True:
        check()
        page = list(view.commits(branch, since, size, record_id, before=before, newest_first=newest_first))
        yield from page
        if len(page) < size:
            return
        if newest_first:
            before = page[-1].seq
        else:
            since = page[-1].seq


# The log of a branch as a scope sees it, read in pages by listeners and streams.


class Log:
    """The commits of a branch as a scope sees them.

    Args:
        scope: The scope of the reader.
        cursors: The cursors of the store.
        parts: The parts whose changes are read; None: all.
    """

    def __init__(
        self, store: Store, branch: Branch, scope: Scope, cursors: Cursors, parts: Collection[str] | None = None
    ) -> None:
        chosen(branch, parts)  # checks them
        self.branch = branch
        self._parts = parts
        self._store = store
        self._scope = scope
        self._cursors = cursors

    def head(self) -> int:
        """Return the seq of the newest commit."""
        with self._store.read() as view:
            return view.head(self.branch).seq

    def start(self, since: int | str | None) -> int:
        """Return the seq of a cursor, or that of the newest commit for None, if the store can be read."""
        head = self.head()  # also with a cursor: raises if the store is closed or forked
        return head if since is None else self._cursors.reached(since, self.branch, self._scope, head)

    def seq(self, cursor: int | str) -> int:
        """Return the seq of a cursor (see `Cursors.seq`)."""
        return self._cursors.seq(cursor, self.branch, self._scope)

    def read(self, since: int) -> list[tuple[int, Commit | None]]:
        """Return up to `PAGE` commits after a seq, each with its seq; None for one that the scope does not see."""
        try:
            return self._read(since)
        except DamagedStoreError as error:  # another SQLite may have written its pages
            return repeated(lambda: self._read(since), error, self._store.renew)

    def _read(self, since: int) -> list[tuple[int, Commit | None]]:
        with self._store.read() as view:
            seen = VisibleLog(view, self.branch, self._scope, self._cursors, self._parts)
            return [(commit.seq, seen.of(commit)) for commit in view.commits(self.branch, since, PAGE)]
