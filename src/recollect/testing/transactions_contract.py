"""The part of the store contract about transactions: what one sees of others, of itself, and of what was erased before.

Each test is a way in which a store lost or damaged something although it passed all other tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from recollect import filters as f
from recollect.errors import DamagedStoreError
from recollect.ledger.commits import Branch
from recollect.ledger.merkle import Root, root_of
from recollect.ledger.proofs import Walk
from recollect.records.codec import microseconds
from recollect.stores.base import Store
from recollect.testing.commits import BRANCH, NOW, OTHER, note, stored, write, write_into
from recollect.testing.erasure_contract import erase
from recollect.testing.strategies import START


def together(*calls: Callable[[], object]) -> None:
    """Run each call in a thread of its own, and raise the first error."""
    errors: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class TransactionsContract:
    """The tests. `StoreContract` includes them."""

    def another(self, store: Store) -> Store | None:
        """Return a second store over the same contents, as another process would open it; None if it cannot be."""
        return None

    @pytest.mark.parametrize("shared", [False, True])
    def test_each_writer_goes_on_from_the_commit_of_the_one_before(self, store: Store, shared: bool) -> None:
        second = self.another(store)
        stores = [store, store, store if second is None else second]

        def writes(which: Store, name: int) -> Callable[[], object]:
            def run() -> None:
                for number in range(8):
                    with which.write(BRANCH, shared=shared) as transaction:
                        counted = int(transaction.setting("count/tenant") or 0)
                        write_into(transaction, store.key, [note(f"{name} {number}")])
                        transaction.set_setting("count/tenant", str(counted + 1))

            return run

        together(*(writes(which, name) for name, which in enumerate(stores)))
        with store.read() as view:
            assert view.head(BRANCH).seq == 24
            assert [commit.seq for commit in view.commits(BRANCH)] == list(range(1, 25))
            assert view.setting("count/tenant") == "24"
            assert view.head(BRANCH).root.hash == root_of(
                {record_id: each.version for record_id, each in view.versions(BRANCH)}
            )
        assert store.check() == []
        if second is not None:
            second.close()

    def test_parts_of_a_memory_have_one_writer_at_a_time(self, store: Store) -> None:
        part = BRANCH.reserved("terms")

        def writes(branch: Branch) -> Callable[[], object]:
            def run() -> None:
                for number in range(8):
                    with store.write(branch) as transaction:
                        live = sum(transaction.count(each, f.everything(), now=NOW) for each in (BRANCH, part))
                        write_into(transaction, store.key, [note(f"{live} {number}")], branch=branch)
                        counts.append(live)

            return run

        counts: list[int] = []
        together(writes(BRANCH), writes(part))
        assert sorted(counts) == list(range(16))

    def test_a_redacted_record_can_be_stored_again_as_it_was(self, store: Store) -> None:
        write(store, [note("a", "same"), note("b")])
        write(store, [], ["a"])
        erase(store, "a", redact=True)
        with store.write(BRANCH) as transaction:
            assert transaction.resolve(BRANCH, ["a"], NOW)["a"].known is False
            write_into(transaction, store.key, [note("a", "same")])
        with store.read() as view:
            assert view.get(BRANCH, "a") == stored(note("a", "same"), store.key)
            numbers = {each: live.number for each, live in view.lives(BRANCH, 0, 4).items() if live is not None}
            assert set(view.numbered(BRANCH, list(numbers.values()))) == set(numbers.values())
        report = store.check()
        assert (list(report), report.erased) == ([], 0)

    def test_what_expires_is_due_also_when_it_was_put_before_a_query_of_everything(self, store: Store) -> None:
        write(store, [note("a")])
        with store.write(BRANCH) as transaction:
            assert transaction.due(BRANCH, NOW, 10) == []
            write_into(transaction, store.key, [note("b", expires=START)])
            assert transaction.count(BRANCH, f.everything(), now=NOW) == 1
            assert transaction.due(BRANCH, NOW, 10) == ["b"]
            write_into(transaction, store.key, [], ["b"])
            assert transaction.count(BRANCH, f.everything(), now=NOW) == 1
            assert transaction.due(BRANCH, NOW, 10) == []
            assert transaction.due(BRANCH, microseconds(START + timedelta(days=99)), 10) == []

    def test_pages_of_the_trie_are_read_together_as_one_by_one(self, store: Store) -> None:
        root = write(store, [note(f"id {number}") for number in range(2500)]).root
        with store.write(BRANCH) as transaction:
            pages = [*Walk(transaction.node).pages_only_in(root, Root()), transaction.add_node(b"a staged page")]
            assert len(pages) > 500
            assert transaction.nodes(pages) == {page: transaction.node(page) for page in pages}
            assert transaction.nodes([]) == {}
        with store.read() as view:
            assert view.nodes(pages[:-1]) == {page: view.node(page) for page in pages[:-1]}
            for missing in (lambda: view.node(2**40), lambda: view.nodes([*pages, 2**40])):
                with pytest.raises(DamagedStoreError, match="Merkle trie"):
                    missing()

    def test_a_long_log_is_read_as_it_was_written(self, store: Store) -> None:
        commits = []
        for number in range(70):
            puts = [note(f"id {each}", f"{number}") for each in range(number % 3)]
            commits.append(write(store, [*puts, note("x", f"{number}")], reason=f"{number}"))
        with store.read() as view:
            assert list(view.commits(BRANCH)) == commits
            assert list(view.commits(BRANCH, since=3, before=66, newest_first=True)) == commits[64:2:-1]
            assert list(view.commits(BRANCH, record_id="id 1")) == [each for each in commits if each.touches("id 1")]

    def test_settings_are_listed_and_removed_by_their_names(self, store: Store) -> None:
        names = ["a", "a/", "a/b", "a/é", "a0", "b"]
        with store.write(BRANCH) as transaction:
            for name in names:
                transaction.set_setting(name, name.upper())
            assert transaction.settings("a", "a0") == {name: name.upper() for name in names[:4]}
            transaction.set_setting("a/", None)
            assert list(transaction.settings("a", "a0")) == ["a", "a/b", "a/é"]
        with store.write(OTHER) as transaction:
            assert transaction.remove_settings("a/", "a0", 1) == 1
            assert transaction.remove_settings("a/", "a0") == 1
            assert transaction.remove_settings("a/", "a0") == 0
        with store.read() as view:
            assert view.settings("", "z") == {"a": "A", "a0": "A0", "b": "B"}
            assert view.setting_names("", "z", 2) == ["a", "a0"]
