"""The part of the store contract about reading a branch as it was after one of its commits."""

from __future__ import annotations

from recollect.ledger.commits import Head
from recollect.ledger.merkle import Root
from recollect.stores.base import Store, View
from recollect.testing.commits import BRANCH, OTHER, note, write, write_into


class PastContract:
    """The tests. `StoreContract` includes them."""

    def test_the_past_is_read_by_seq_and_by_root(self, store: Store) -> None:
        def versions(view: View) -> dict[str, bytes]:
            return {record_id: each.version for record_id, each in view.versions(BRANCH)}

        states: list[dict[str, bytes]] = [{}]
        commits = []
        for puts, drops in (
            ([note("a"), note("b")], []),
            ([note("a", "changed"), note("c")], []),
            ([], ["b"]),
            ([note("a")], []),
            ([note("b")], ["c"]),
        ):
            commits.append(write(store, puts, drops))
            with store.read() as view:
                states.append(versions(view))
        write(store, [note("a", "elsewhere")], branch=OTHER)
        ids = ["a", "b", "c", "never"]
        known = [set[str](), {"a", "b"}, *[{"a", "b", "c"}] * 4]
        with store.write(BRANCH) as transaction, store.read() as view:
            reading: View
            for reading in (view, transaction):  # a transaction reads the past as a view does
                assert [reading.head_at(BRANCH, seq) for seq in range(7)] == [
                    None,
                    *(Head(each.seq, Root(each.root.hash), each.micros, each.parts) for each in commits),
                    None,
                ]
                for seq, state in enumerate(states):
                    expected = {each: state.get(each) for each in ids if each in known[seq]}
                    assert reading.versions_at(BRANCH, ids, seq) == expected
                    for since, earlier in enumerate(states[: seq + 1]):
                        assert reading.net_changes(BRANCH, since, seq) == {
                            each: (earlier.get(each), state.get(each))
                            for each in ids
                            if earlier.get(each) != state.get(each)
                        }
                assert commits[0].root.hash == commits[4].root.hash
                assert [reading.newest_with(BRANCH, each.root.hash) for each in commits] == [5, 2, 3, 4, 5]
                assert reading.newest_with(BRANCH, bytes(32)) is None
            commit = write_into(transaction, store.key, [note("d")])
            assert transaction.head_at(BRANCH, 6) == Head(6, Root(commit.root.hash), commit.micros, commit.parts)
            assert transaction.versions_at(BRANCH, ["d"], 6) == {"d": commit.changes[0].after}
            assert transaction.net_changes(BRANCH, 5, 6) == {"d": (None, commit.changes[0].after)}

    def test_a_view_tells_whether_commits_since_erased_a_record(self, store: Store) -> None:
        write(store, [note("a"), note("b")])
        with store.write(BRANCH) as transaction:
            write_into(transaction, store.key, [], ["a"], drop_cause="erased")
        write(store, drops=["b"])
        with store.read() as view:
            assert [view.has_erased(BRANCH, seq) for seq in range(4)] == [True, True, False, False]
