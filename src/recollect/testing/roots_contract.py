"""The part of the store contract about roots: their pages, which are dropped in the end, and snapshots."""

from __future__ import annotations

import pytest

from recollect.ledger.merkle import EMPTY, Live, Root
from recollect.ledger.proofs import Walk
from recollect.stores import roots as stored_roots
from recollect.stores.base import Store
from recollect.stores.roots import pages_at
from recollect.stores.values import Trimmed, Version
from recollect.testing.commits import BRANCH, OTHER, note, snapshot, stored, write, write_into


class RootsContract:
    def test_a_version_has_the_same_number_whenever_it_is_put(self, store: Store) -> None:
        one, two = note("a", "one"), note("a", "two")
        with store.write(BRANCH) as transaction:
            first = transaction.put(BRANCH, one, stored(one, store.key))
            second = transaction.put(BRANCH, two, stored(two, store.key))
            assert first != second
            assert transaction.put(BRANCH, one, stored(one, store.key)) == first
            write_into(transaction, store.key, [one])
        for _ in range(2):
            write(store, drops=["a"])
            with store.write(BRANCH) as transaction:
                assert transaction.put(BRANCH, one, stored(one, store.key)) == first
                write_into(transaction, store.key, [one])
        with store.read() as view:
            lives = view.lives(BRANCH, 0, view.head(BRANCH).seq)
            assert lives == {"a": Live(stored(one, store.key).version, first)}
            assert view.lives(BRANCH, 1, 2) == {"a": None}
            assert view.numbered(BRANCH, [first, 999]) == {first: Version(*stored(one, store.key))}
            assert view.numbered(OTHER, [first]) == {}
            assert list(view.entries(BRANCH, 1)) == [commit.entry for commit in view.commits(BRANCH, 1)]
            assert view.lives(BRANCH, 2, 2) == {}

    def test_the_pages_of_old_roots_can_be_dropped_and_the_roots_recomputed(self, store: Store) -> None:
        commits = [write(store, [note(f"id {number % 40}", f"text {number}")]) for number in range(60)]
        with store.write(BRANCH) as transaction:
            assert transaction.trimmed(BRANCH) == Trimmed()
            found = transaction.untrimmed(BRANCH, 0, 61)
            assert [each.seq for each in found] == list(range(1, 61))
            assert all(each.changes == 1 and each.page == commits[each.seq - 1].root.page for each in found)
            assert [each.seq for each in transaction.untrimmed(BRANCH, 58, 59)] == [58, 59]
            walk = Walk(transaction.node)
            for each, before in zip(found[1:], commits, strict=False):
                differing = walk.pages_only_in(before.root, commits[each.seq - 1].root)
                assert sorted(each.replaced) == sorted(differing)
            pages = [page for each in found[1:] for page in each.replaced]
            transaction.drop_roots(BRANCH, range(1, 60), pages, Trimmed(60, 0, 60))
            assert transaction.trimmed(BRANCH) == Trimmed(60, 0, 60)
        with store.read() as view:
            assert view.trimmed(BRANCH) == Trimmed(60, 0, 60)
            assert view.stored_root(BRANCH, 59) == (0, Root())
            assert view.stored_root(BRANCH, 60) == view.stored_root(BRANCH, 7, newer=True) == (60, commits[59].root)
            assert view.stored_root(BRANCH, 61, newer=True) == (0, Root())
            for seq in (0, 1, 30, 59, 60):
                root, _ = pages_at(view, BRANCH, seq)
                assert root.hash == (commits[seq - 1].root.hash if seq else EMPTY)
            assert [commit.root.page != 0 for commit in view.commits(BRANCH)] == [False] * 59 + [True]
        assert store.check() == []
        write(store, [note("id 0", "another")])
        assert store.check() == []

    def test_trimming_keeps_the_newest_root_and_those_of_snapshots(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stored_roots, "STEP_COMMITS", 7)
        monkeypatch.setattr(stored_roots, "KEPT_EVERY", 25)
        commits = []
        for number in range(90):
            if number % 10 == 3:
                write(store, drops=[f"id {number % 30 - 1}"])
            commits.append(write(store, [note(f"id {number % 30}", f"text {number}")]))
            if number in (20, 21, 50):
                with store.write(BRANCH) as transaction:
                    head = transaction.head(BRANCH)
                    transaction.put_snapshot(BRANCH, snapshot(number, head))
            if number % 8 == 0:
                stored_roots.trim(store, BRANCH)
        while stored_roots.trim(store, BRANCH):
            pass
        assert not stored_roots.trim(store, BRANCH)
        with store.read() as view:
            roots = {commit.seq: commit.root for commit in view.commits(BRANCH)}
            kept = [seq for seq, root in roots.items() if root.page]
            seqs = [each.seq for each in view.snapshots(BRANCH)]
            assert set(seqs) <= set(kept)
            assert kept[-1] == view.head(BRANCH).seq
            assert len(kept) < 10
            for seq, root in roots.items():
                assert pages_at(view, BRANCH, seq)[0].hash == root.hash
        assert store.check() == []
        for number, seq in zip((50, 21, 20), seqs, strict=True):
            with store.write(BRANCH) as transaction:
                transaction.drop_snapshot(BRANCH, number)
                stored_roots.release(transaction, BRANCH, seq)
            assert store.check() == []
        with store.read() as view:
            assert view.snapshots(BRANCH) == []
            # Two roots next to each other are not both needed to recompute others.
            assert len([commit for commit in view.commits(BRANCH) if commit.root.page]) < len(kept)
            for seq, root in roots.items():
                assert pages_at(view, BRANCH, seq)[0].hash == root.hash

    def test_changes_are_counted_up_to_a_limit(self, store: Store) -> None:
        for number in range(5):
            write(store, [note("a", f"text {number}"), note("b", f"text {number}")])
        with store.read() as view:
            assert view.count_changes(BRANCH, 1, 4, 100) == 6
            assert view.count_changes(BRANCH, 0, 5, 7) == 7
            assert view.count_changes(BRANCH, 5, 5, 7) == 0

    def test_snapshots_are_part_of_the_transaction(self, store: Store) -> None:
        write(store, [note("a")])
        with store.write(BRANCH) as transaction:
            head = transaction.head(BRANCH)
            transaction.put_snapshot(BRANCH, snapshot(1, head, "first"))
            transaction.put_snapshot(BRANCH, snapshot(2, head))
            assert [each.number for each in transaction.snapshots(BRANCH)] == [2, 1]
        with pytest.raises(RuntimeError), store.write(BRANCH) as transaction:
            transaction.drop_snapshot(BRANCH, 1)
            assert [each.number for each in transaction.snapshots(BRANCH)] == [2]
            raise RuntimeError
        with store.read() as view:
            assert view.snapshots(BRANCH) == [snapshot(2, head), snapshot(1, head, "first")]
            assert view.snapshots(OTHER) == []
