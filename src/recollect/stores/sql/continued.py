"""A branch that continues another one, as views of SQL tables read it.

The tables have only what is its own. Its log is that of the other branch, the base, up to a commit, and then its own
commits. Its records are its own heads; until its first write it has none, and its records are those that the base had
after that commit: the heads of the base now, except for what has changed since.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import Protocol

from recollect.filters.tree import EVERYTHING, AllOf, Filter, Is
from recollect.ledger.commits import Branch, Commit, Head, Snapshot, Stored
from recollect.ledger.merkle import Live, Root, is_redacted
from recollect.records.codec import microseconds
from recollect.records.record import Record
from recollect.stores.base import View
from recollect.stores.values import (
    Resolved,
    SortKey,
    Tally,
    Untrimmed,
    Version,
    ascending,
    expired,
    in_order,
    net,
    sort_key,
    tally_of,
)

#: A position or an expiry that nothing reaches.
_END = 2**62
#: What the name begins with by which a view reads only what is a branch's own. No caller can use it in a name.
OWN = "\x1f"


class SpanView(View, Protocol):
    """A view that also reads spans of the log that end before the newest commit."""

    def last_touched(self, branch: Branch, since: int, upto: int = _END) -> dict[str, int]:
        """Return the same as `View.last_touched`, of the commits up to a seq."""

    def newest_with(self, branch: Branch, root: bytes, upto: int = _END) -> int | None:
        """Return the same as `View.newest_with`, of the commits up to a seq."""

    def erased_between(self, branch: Branch, since: int, upto: int) -> bool:
        """Return whether a commit after `since` and up to `upto` erased a record."""

    def expiring_at(self, branch: Branch, end: int) -> list[str]:
        """Return the ids of the live records that expire at a time, in microseconds since 1970."""


class Continued:
    """A branch that continues another one.

    Its methods are those of the view, for this branch.

    Args:
        view: The view that it is read from.
        branch: The branch.
        base: The branch that it continues.
        seq: The commit of the base that it continues.
        own_heads: Whether it has heads of its own.
    """

    def __init__(self, view: SpanView, branch: Branch, base: Branch, seq: int, *, own_heads: bool) -> None:
        self.base = base
        self.seq = seq
        self.own_heads = own_heads
        self.own = branch._replace(name=OWN + branch.name)
        self._branch = branch
        self._view = view

    # Its log

    def known(self, record_id: str) -> bool:
        return self._view.known(self.own, record_id) or bool(self._view.versions_at(self.base, [record_id], self.seq))

    def commits(
        self,
        since: int,
        limit: int | None,
        record_id: str | None,
        *,
        before: int | None,
        newest_first: bool,
    ) -> Iterator[Commit]:
        end = self.seq + 1 if before is None else min(before, self.seq + 1)
        spans: list[tuple[Branch, int | None]] = [(self.base, end)] if since < self.seq else []
        spans.append((self.own, before))
        left = limit
        for branch, stop in reversed(spans) if newest_first else spans:
            found = self._view.commits(branch, since, left, record_id, before=stop, newest_first=newest_first)
            for commit in found:
                left = None if left is None else left - 1
                yield self._named(commit)
            if left == 0:
                return

    def _named(self, commit: Commit) -> Commit:
        """Return a commit of the log as one of this branch. Its parents stay those that its entry binds."""
        if commit.branch != self.own.name:
            return replace(commit, branch=self._branch.name)
        parents = tuple((self._branch.name if name == self.own.name else name, *rest) for name, *rest in commit.parents)
        return replace(commit, branch=self._branch.name, parents=parents)

    def changed(self, since: int) -> list[str]:
        before = [] if since >= self.seq else self._view.lives(self.base, since, self.seq)
        return list(dict.fromkeys((*before, *self._view.changed(self.own, since))))

    def last_touched(self, since: int, upto: int) -> dict[str, int]:
        before = {} if since >= self.seq else self._view.last_touched(self.base, since, min(upto, self.seq))
        return before if upto <= self.seq else before | self._view.last_touched(self.own, since, upto)

    def last_commits(self, record_ids: Sequence[str], upto: int) -> dict[str, int]:
        before = self._view.last_commits(self.base, record_ids, min(upto, self.seq))
        return before | self._view.last_commits(self.own, record_ids, upto)

    def root_at(self, seq: int) -> bytes | None:
        return self._view.root_at(self._where(seq), seq)

    def head_at(self, seq: int) -> Head | None:
        return self._view.head_at(self._where(seq), seq)

    def redactions(self, seq: int) -> dict[str, bytes]:
        return self._view.redactions(self._where(seq), seq)

    def _where(self, seq: int) -> Branch:
        """Return the branch whose rows have a commit."""
        return self.base if seq <= self.seq else self.own

    def entries(self, since: int) -> Iterator[bytes]:
        if since < self.seq:
            yield from islice(self._view.entries(self.base, since), self.seq - since)
        yield from self._view.entries(self.own, since)

    def newest_with(self, root: bytes, upto: int) -> int | None:
        found = self._view.newest_with(self.own, root, upto)
        return self._view.newest_with(self.base, root, min(upto, self.seq)) if found is None else found

    def versions_at(self, record_ids: Sequence[str], seq: int) -> dict[str, bytes | None]:
        before = self._view.versions_at(self.base, record_ids, min(seq, self.seq))
        return before if seq <= self.seq else before | self._view.versions_at(self.own, record_ids, seq)

    def net_changes(self, since: int, until: int) -> dict[str, tuple[bytes | None, bytes | None]]:
        spans = []
        if since < self.seq:
            spans.append(self._view.net_changes(self.base, since, min(until, self.seq)))
        if until > self.seq:
            spans.append(self._view.net_changes(self.own, since, until))
        return net((record_id, *pair) for span in spans for record_id, pair in span.items())

    def lives(self, after: int, upto: int) -> dict[str, Live | None]:
        before = {} if after >= self.seq else self._view.lives(self.base, after, min(upto, self.seq))
        return before if upto <= self.seq else before | self._view.lives(self.own, after, upto)

    def has_erased(self, since: int) -> bool:
        return self.erased_between(since, _END)

    def erased_between(self, since: int, upto: int) -> bool:
        before = since < self.seq and self._view.erased_between(self.base, since, min(upto, self.seq))
        return before or self._view.erased_between(self.own, since, upto)

    def versions_of(self, record_id: str) -> list[Version]:
        """Return the versions that an id has or had here or in the base, also after the common commit."""
        found = chain(self._view.versions_of(self.base, record_id), self._view.versions_of(self.own, record_id))
        return list(dict.fromkeys(found))

    # The pages of its roots

    def untrimmed(self, first: int, last: int) -> list[Untrimmed]:
        # The roots before are those of the base. Trimming begins after the last of them, which it only looks at.
        found, root = self._view.stored_root(self.base, self.seq)
        page = root.page if found == self.seq else 0
        begin = [Untrimmed(self.seq, page, (), 0)] if 0 < self.seq <= last and first <= self.seq else []
        return begin + self._view.untrimmed(self.own, first, last)

    def stored_root(self, seq: int, *, newer: bool) -> tuple[int, Root]:
        if newer:
            found = self._view.stored_root(self.base, seq, newer=True) if seq <= self.seq else (0, Root())
            return found if 0 < found[0] <= self.seq else self._view.stored_root(self.own, seq, newer=True)
        found = self._view.stored_root(self.own, seq)
        return found if found[0] else self._view.stored_root(self.base, min(seq, self.seq))

    def count_changes(self, after: int, upto: int, limit: int) -> int:
        before = 0
        if after < self.seq:
            before = self._view.count_changes(self.base, after, min(upto, self.seq), limit)
        return min(limit, before + self._view.count_changes(self.own, after, upto, limit))

    def snapshot_of(self, number: int, name: str | None, seq: int, micros: int) -> Snapshot:
        head = (self.head_at(seq) if seq else None) or Head()
        return Snapshot(number=number, name=name, seq=seq, root=head.memory_root.hex(), micros=micros)

    # Its records

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The ids that the base has changed since the common commit, while this branch has no heads of its own."""
        return frozenset(self._view.changed(self.base, self.seq))

    def _former(self, record_ids: Iterable[str]) -> dict[str, Stored]:
        """Return what the base had of some ids after the common commit, without what was erased."""
        found = self._view.versions_at(self.base, list(record_ids), self.seq).items()
        # What is stored again under an id that was redacted is another record.
        versions = {each: version for each, version in found if version is not None and not is_redacted(each)}
        payloads = self._view.payloads(self.base, list(versions.values()))
        return {each: Stored(version, payloads[version]) for each, version in versions.items() if version in payloads}

    def several(self, record_ids: Sequence[str]) -> dict[str, Stored]:
        return self._view.several(self.own, record_ids) if self.own_heads else self._former(record_ids)

    def get(self, record_id: str) -> Stored | None:
        return self._view.get(self.own, record_id) if self.own_heads else self._former([record_id]).get(record_id)

    def resolve(self, record_ids: Sequence[str], now: int) -> dict[str, Resolved]:
        if self.own_heads:
            found = self._view.resolve(self.own, record_ids, now)
            unknown = [each for each, resolved in found.items() if not resolved.known]
            known = self._view.versions_at(self.base, unknown, self.seq) if unknown else {}
            return found | {each: found[each]._replace(known=True) for each in known}
        former = self._former(record_ids)
        out = {}
        for record_id in record_ids:
            stored = former.get(record_id)
            due = stored is not None and expired(Record.load(stored.payload), now)
            out[record_id] = Resolved(stored is not None or self.known(record_id), stored, due)
        return out

    def select(self, where: Filter, order: str, limit: int | None, after: SortKey | None, now: int) -> Iterator[Record]:
        if self.own_heads:
            yield from self._view.select(self.own, where, order=order, limit=limit, after=after, now=now)
            return
        former = (Record.load(stored.payload) for stored in self._former(self._changed).values())
        matching = (record for record in former if not expired(record, now) and where.matches(record))
        present = self._view.select(self.base, where, order=order, after=after, now=now)
        merged = heapq.merge(
            in_order(matching, order, after),
            (record for record in present if record.id not in self._changed),
            key=lambda record: ascending(sort_key(record, order), order),
        )
        yield from islice(merged, limit)

    def count(self, where: Filter, now: int) -> int:
        if self.own_heads:
            return self._view.count(self.own, where, now=now)
        return sum(1 for _ in self.select(where, "id", None, None, now))

    def tally(self, where: Filter, now: int) -> Tally:
        if self.own_heads:
            return self._view.tally(self.own, where, now=now)
        return tally_of(self.select(where, "id", None, None, now))

    def versions(self) -> Iterator[tuple[str, Stored]]:
        if self.own_heads:
            yield from self._view.versions(self.own)
            return
        yield from ((each, stored) for each, stored in self._view.versions(self.base) if each not in self._changed)
        yield from self._former(self._changed).items()

    def nbytes(self) -> int:
        if self.own_heads:
            return self._view.nbytes(self.own)
        return sum(len(stored.payload) for _, stored in self.versions())

    def _turns(self, conversation: str, within: Filter = EVERYTHING) -> Iterator[Record]:
        of_conversation = AllOf.of(Is("conversation", (conversation,)), within)
        return self.select(of_conversation, "last", None, None, -_END)

    def last_position(self, conversation: str, within: Filter) -> int | None:
        if self.own_heads:
            return self._view.last_position(self.own, conversation, within)
        positions = (turn.position for turn in self._turns(conversation, within) if turn.position is not None)
        return max(positions, default=None)

    def turns_at(self, conversation: str, position: int) -> list[Stored]:
        if self.own_heads:
            return self._view.turns_at(self.own, conversation, position)
        turns = self._former([turn.id for turn in self._turns(conversation) if turn.position == position])
        return [turns[each] for each in sorted(turns)]

    def due(self, now: int, limit: int) -> list[str]:
        if self.own_heads:
            return self._view.due(self.own, now, limit)
        present = self._view.due(self.base, now, limit + len(self._changed))
        found = self._former({*present, *self._changed})
        records = (Record.load(stored.payload) for stored in found.values())
        ends = [(microseconds(each.expires), each.id) for each in records if each.expires is not None]
        return [record_id for end, record_id in sorted(ends) if end <= now][:limit]

    def next_expiry(self, after: int) -> int | None:
        if self.own_heads:
            return self._view.next_expiry(self.own, after)
        records = (Record.load(stored.payload) for stored in self._former(self._changed).values())
        ends = [end for each in records if each.expires and (end := microseconds(each.expires)) > after]
        present = self._view.next_expiry(self.base, after)
        while present is not None and self._changed.issuperset(self._view.expiring_at(self.base, present)):
            present = self._view.next_expiry(self.base, present)
        ends += [] if present is None else [present]
        return min(ends, default=None)

    def any_id(self, first: str) -> bool:
        if self.own_heads:
            return self._view.any_id(self.own, first)
        return any(record_id.startswith(first) for record_id, _ in self.versions())
