"""The store contract as tests: the behaviour that every store must have.

Subclass `StoreContract` and define a `store` fixture. Tests that restart the store use `reopened`, which a durable
store overrides.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect import filters as f
from recollect.errors import ClosedError, UnsupportedError
from recollect.filters.tree import Filter
from recollect.ledger.commits import Branch, Head
from recollect.ledger.log_tiles import TILE_SIZE, CompleteTile
from recollect.ledger.merkle import check, root_of
from recollect.operations import ORDERS
from recollect.records.codec import datetime_of, microseconds
from recollect.records.record import Record
from recollect.stores.base import Store, View
from recollect.stores.derived.fulltext import Updates
from recollect.stores.derived.shared import VectorModel
from recollect.stores.values import Resolved, expired, in_order, sort_key, tally_of
from recollect.testing.commits import BRANCH, EARLY, NOW, OTHER, note, stored, write, write_into
from recollect.testing.erasure_contract import ErasureContract
from recollect.testing.past_contract import PastContract
from recollect.testing.roots_contract import RootsContract
from recollect.testing.strategies import START, filters, records
from recollect.testing.transactions_contract import TransactionsContract


class Boom(Exception):
    """An error that a test raises inside a transaction."""


#: Examples of a property: those of the Hypothesis profile that is loaded when this module is imported.
_EXAMPLES = settings().max_examples


def everything_of(view: View, branch: Branch = BRANCH) -> object:
    """Everything a view returns about a branch, to compare before and after."""
    return (
        view.branches(),
        view.head(branch),
        dict(view.versions(branch)),
        list(view.commits(branch)),
        list(view.select(branch, f.everything(), order="id", now=EARLY)),
    )


class StoreContract(RootsContract, PastContract, ErasureContract, TransactionsContract):
    """The tests. A subclass defines the fixture `store`; all tests must pass."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError("give a store fixture")

    def reopened(self, store: Store) -> Store | None:
        """Return the store after a restart; None if it does not outlive its process."""
        return None

    def test_a_new_store_is_empty(self, store: Store) -> None:
        with store.read() as view:
            assert view.branches() == []
            assert view.head(BRANCH) == Head()
            assert view.get(BRANCH, "a") is None
            assert not view.known(BRANCH, "a")
            assert view.last_position(BRANCH, "c") is None
            assert list(view.commits(BRANCH)) == []

    def test_a_record_is_read_back_byte_for_byte(self, store: Store) -> None:
        record = note("ключ'\"%_", "nul\0 and \U0001f600", tags=["x"], metadata={"a.b": [1, 1.0, None]})
        write(store, [record])
        with store.read() as view:
            current = view.get(BRANCH, record.id)
            assert current == stored(record, store.key)
            assert list(view.select(BRANCH, f.everything(), now=NOW)) == [record]

    def test_a_transaction_that_raises_leaves_nothing(self, store: Store) -> None:
        write(store, [note("a"), note("b")])
        with store.read() as view:
            before = everything_of(view)
        with pytest.raises(Boom), store.write(BRANCH) as transaction:
            write_into(transaction, store.key, [note("a", "changed"), note("c")], ["b"])
            raise Boom
        with store.read() as view:
            assert everything_of(view) == before
            assert not view.known(BRANCH, "c")
            assert view.payload(BRANCH, stored(note("c"), store.key).version) is None
        write(store, [note("c")])  # and the store goes on

    def test_a_transaction_sees_what_it_wrote(self, store: Store) -> None:
        write(store, [note("a")])
        with store.write(BRANCH) as transaction:
            write_into(transaction, store.key, [note("b", position=3, conversation="c")], ["a"])
            assert transaction.get(BRANCH, "a") is None
            assert [each.id for each in transaction.select(BRANCH, f.everything(), now=NOW)] == ["b"]
            assert transaction.last_position(BRANCH, "c") == 3
            assert transaction.known(BRANCH, "b")
            assert transaction.head(BRANCH).seq == 2

    def test_an_open_transaction_is_invisible_to_others(self, store: Store) -> None:
        write(store, [note("a")])
        with store.read() as view:
            before = everything_of(view)
        with store.write(BRANCH) as transaction:
            write_into(transaction, store.key, [note("a", "changed"), note("b")])
            with store.read() as view:
                assert everything_of(view) == before
                assert not view.known(BRANCH, "b")
        with store.read() as view:
            assert view.known(BRANCH, "b")

    def test_a_view_does_not_change_while_another_writes(self, store: Store) -> None:
        write(store, [note("a")])
        with store.read() as view:
            before = everything_of(view)
            writer = threading.Thread(target=lambda: write(store, [note("b")], ["a"]))
            writer.start()
            assert everything_of(view) == before
        writer.join()
        with store.read() as view:
            assert everything_of(view) != before

    def test_the_log_lists_every_commit_in_order(self, store: Store) -> None:
        commits = [
            write(store, [note("a")], reason="first"),
            write(store, [note("a", "changed"), note("b")]),
            write(store, drops=["a"]),
        ]
        with store.read() as view:
            assert list(view.commits(BRANCH)) == commits
            roots = [view.root_at(BRANCH, seq) for seq in range(len(commits) + 2)]
            assert roots == [None, *(commit.root.hash for commit in commits), None]
            assert list(view.commits(BRANCH, since=1, limit=1)) == commits[1:2]
            assert list(view.commits(BRANCH, before=3)) == commits[:2]
            assert list(view.commits(BRANCH, since=1, newest_first=True)) == commits[:0:-1]
            assert list(view.commits(BRANCH, before=3, newest_first=True, limit=1)) == commits[1:2]
            assert list(view.commits(BRANCH, since=3)) == []
            assert view.head(BRANCH) == Head(3, commits[-1].root, commits[-1].micros, commits[-1].parts)

    def test_turns_are_found_by_their_position(self, store: Store) -> None:
        def turn(record_id: str, position: int | None, conversation: str = "c") -> Record:
            return note(record_id, conversation=conversation, position=position)

        def at(view: View, position: int) -> list[str]:
            return [Record.load(each.payload).id for each in view.turns_at(BRANCH, "c", position)]

        write(store, [turn("a", 0), turn("b", 7), turn("c", 7), turn("d", None), turn("e", 9, "other")])
        with store.write(BRANCH) as transaction:
            assert transaction.last_position(BRANCH, "c") == 7
            write_into(transaction, store.key, [turn("b", 3)], ["c"])
            assert transaction.last_position(BRANCH, "c") == 3
            assert (at(transaction, 3), at(transaction, 7)) == (["b"], [])
            write_into(transaction, store.key, [turn("f", 3)])
        with store.read() as view:
            assert (at(view, 3), at(view, 7)) == (["b", "f"], [])
            assert (view.last_position(BRANCH, "c"), view.last_position(BRANCH, "other")) == (3, 9)
            assert view.last_position(OTHER, "c") is None

    def test_nbytes_is_the_size_of_the_live_payloads(self, store: Store) -> None:
        texts = {"a": note("a", "x" * 5000), "b": note("b", "tea"), "c": note("c", expires=START)}
        write(store, texts.values())
        write(store, [note("d", "of another branch")], branch=OTHER)

        def size(*ids: str) -> int:
            return sum(len(texts[each].to_bytes()) for each in ids)

        with store.write(BRANCH) as transaction:
            assert transaction.nbytes(BRANCH) == size("a", "b", "c")
            texts["e"] = note("e", "new")
            write_into(transaction, store.key, [texts["e"]], ["a"])
            assert transaction.nbytes(BRANCH) == size("b", "c", "e")
        with store.read() as view:
            assert view.nbytes(BRANCH) == size("b", "c", "e")
            assert view.nbytes(Branch("none")) == 0

    def test_any_id_reports_whether_an_id_begins_with_a_character(self, store: Store) -> None:
        write(store, [note("@a"), note("b"), note("é")])
        with store.write(BRANCH) as transaction:
            assert [transaction.any_id(BRANCH, each) for each in "@bé?a"] == [True, True, True, False, False]
            write_into(transaction, store.key, [note("?c")], ["@a", "b"])
            assert [transaction.any_id(BRANCH, each) for each in "@bé?a"] == [False, False, True, True, False]
        with store.read() as view:
            assert [view.any_id(BRANCH, each) for each in "@bé?a"] == [False, False, True, True, False]
            assert not view.any_id(OTHER, "é")

    def test_the_last_position_can_be_restricted_by_a_filter(self, store: Store) -> None:
        ana, bob = f.user("ana"), f.user("bob") | f.custom(lambda record: record.user == "bob")
        write(store, [note("a", user="ana", conversation="c", position=1)])
        write(store, [note("b", user="bob", conversation="c", position=2**63 - 1)])
        with store.write(BRANCH) as transaction:
            last = [transaction.last_position(BRANCH, "c", each) for each in (ana, bob, f.user("cleo"))]
            assert last == [1, 2**63 - 1, None]
            write_into(transaction, store.key, [note("d", user="ana", conversation="c", position=7)])
            write_into(transaction, store.key, [note("e", user="cleo", conversation="c", position=3)], ["b"])
            last = [transaction.last_position(BRANCH, "c", each) for each in (ana, bob, f.user("cleo"), f.everything())]
            assert last == [7, None, 3, 7]
        with store.read() as view:
            assert [view.last_position(BRANCH, "c", each) for each in (ana, bob)] == [7, None]

    def test_changed_lists_each_id_since_a_commit_once(self, store: Store) -> None:
        write(store, [note("a"), note("b")])
        write(store, [note("a", "2")])
        write(store, [note("a", "3")], ["b"])
        with store.read() as view:
            assert sorted(view.changed(BRANCH, 0)) == ["a", "b"]
            assert view.changed(BRANCH, 1).count("a") == 1
            assert view.changed(BRANCH, 3) == []
            times = {commit.seq: commit.micros for commit in view.commits(BRANCH)}
            assert view.last_touched(BRANCH, 0) == {"a": times[3], "b": times[3]}
            assert view.last_touched(BRANCH, 2) == {"a": times[3], "b": times[3]}
            assert view.last_touched(BRANCH, 3) == view.last_touched(OTHER, 0) == {}
        write(store, [note("b")])
        with store.read() as view:
            assert view.last_touched(BRANCH, 0) == {"a": times[3], "b": view.head(BRANCH).micros}

    def test_the_last_commit_of_a_record_is_that_of_its_last_change(self, store: Store) -> None:
        write(store, [note("a"), note("b")])
        write(store, [note("a", "2"), note("c")])
        write(store, [], ["c"])
        with store.read() as view:
            times = {commit.seq: commit.micros for commit in view.commits(BRANCH)}
            assert view.last_commits(BRANCH, ["a", "b", "c", "d"]) == {"a": times[2], "b": times[1], "c": times[3]}
            assert view.last_commits(BRANCH, ["a", "c", "b"], 1) == {"a": times[1], "b": times[1]}
            many = [f"x{number}" for number in range(250)]
            assert view.last_commits(BRANCH, [*many, "b"]) == {"b": times[1]}
            assert view.last_commits(BRANCH, []) == view.last_commits(OTHER, ["a"]) == {}

    def test_old_versions_stay_and_are_found_by_their_hash(self, store: Store) -> None:
        old, new = note("a", "old"), note("a", "new")
        write(store, [old])
        write(store, [new])
        write(store, drops=["a"])
        with store.read() as view:
            for record in (old, new):
                assert view.payload(BRANCH, stored(record, store.key).version) == record.to_bytes()
            assert view.known(BRANCH, "a")
            assert view.get(BRANCH, "a") is None

    def test_a_version_that_is_stored_again_is_the_same_version(self, store: Store) -> None:
        write(store, [note("a", "one")])
        write(store, [note("a", "two")])
        commit = write(store, [note("a", "one")])
        with store.read() as view:
            first = next(iter(view.commits(BRANCH)))
        assert commit.root.hash == first.root.hash
        assert commit.changes[0].after == first.changes[0].after

    def test_nothing_crosses_namespaces_or_branches(self, store: Store) -> None:
        side = Branch(BRANCH.namespace, "side")
        for branch, text in ((BRANCH, "mine"), (OTHER, "theirs"), (side, "aside")):
            write(store, [note("a", text, user="u", conversation="c", position=len(text))], branch=branch)
        write(store, drops=["a"], branch=OTHER)
        with store.read() as view:
            assert view.branches() == sorted((BRANCH, OTHER, side))
            for branch, text in ((BRANCH, "mine"), (side, "aside")):
                found = list(view.select(branch, f.user("u"), now=NOW))
                assert [each.content for each in found] == [text]
                assert view.count(branch, f.everything(), now=NOW) == 1
                assert view.last_position(branch, "c") == len(text)
                assert view.head(branch).seq == 1
            assert list(view.select(OTHER, f.everything(), now=NOW)) == []
            mine = stored(note("a", "mine", user="u", conversation="c", position=4), store.key).version
            assert view.payload(BRANCH, mine) is not None
            assert view.payload(OTHER, mine) is None

    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def test_select_returns_each_order_and_limit_as_defined(self, store: Store, data: st.DataObject) -> None:
        current = self._replaced(store, data)
        order, limit = data.draw(st.sampled_from(ORDERS)), data.draw(st.none() | st.integers(1, 5))
        # A page also begins after a record that has been forgotten or has expired.
        after = data.draw(st.sampled_from([None, *current, *data.draw(st.lists(records(), max_size=2))]))
        key = None if after is None else sort_key(after, order)
        with store.read() as view:
            found = list(view.select(BRANCH, f.everything(), order=order, limit=limit, after=key, now=NOW))
        live = [record for record in current if not expired(record, NOW)]
        assert found == in_order(live, order, key)[:limit]

    @settings(max_examples=3 * _EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data(), where=filters())
    def test_every_filter_means_what_its_predicate_says(self, store: Store, data: st.DataObject, where: Filter) -> None:
        current = self._replaced(store, data)
        wanted = [record for record in current if where.matches(record) and not expired(record, NOW)]
        with store.read() as view:
            assert list(view.select(BRANCH, where, order="id", now=NOW)) == in_order(wanted, "id")
            assert view.count(BRANCH, where, now=NOW) == len(wanted)
            assert view.tally(BRANCH, where, now=NOW) == tally_of(wanted)
            ids = [record.id for record in current]
            assert view.several(BRANCH, [*ids, "nobody"]) == {each: view.get(BRANCH, each) for each in ids}

    @staticmethod
    def _replaced(store: Store, data: st.DataObject) -> list[Record]:
        """Replace the contents of the store by some drawn records."""
        current = data.draw(st.lists(records(), max_size=8, unique_by=lambda record: record.id))
        with store.read() as view:
            drops = {record_id for record_id, _ in view.versions(BRANCH)} - {record.id for record in current}
        write(store, current, sorted(drops))
        return current

    def test_no_query_returns_a_record_that_has_expired(self, store: Store) -> None:
        due = datetime(2026, 1, 4, tzinfo=UTC)
        write(store, [note("a", expires=due)])
        with store.read() as view:
            for now, there in ((microseconds(due) - 1, 1), (microseconds(due), 0)):
                assert len(list(view.select(BRANCH, f.everything(), now=now))) == there
                assert view.count(BRANCH, f.everything(), now=now) == there
            assert view.get(BRANCH, "a") is not None  # an expired record stays stored until it is swept

    def test_due_lists_expired_ids_by_age_and_id_staged_ones_too(self, store: Store) -> None:
        days = {name: datetime(2026, 1, day, tzinfo=UTC) for name, day in (("d", 4), ("b", 3), ("a", 4), ("c", 5))}
        write(store, [note(name, expires=day) for name, day in days.items()] + [note("e")])
        now = microseconds(days["d"])
        with store.read() as view:
            assert view.due(BRANCH, now, 10) == ["b", "a", "d"]
            assert view.due(BRANCH, now, 2) == ["b", "a"]
            assert view.due(BRANCH, now - 1, 10) == ["b"]
        with store.write(BRANCH) as transaction:
            write_into(transaction, store.key, [note("b"), note("f", expires=days["b"])], ["a"])
            assert transaction.due(BRANCH, now, 10) == ["f", "d"]
        with store.read() as view:
            assert view.due(BRANCH, now, 10) == ["f", "d"]
            assert view.due(Branch("other"), now, 10) == []

    def test_the_next_expiry_is_the_first_after_a_time(self, store: Store) -> None:
        days = {name: datetime(2026, 1, day, tzinfo=UTC) for name, day in (("b", 3), ("a", 4))}
        write(store, [note("c")])
        with store.read() as view:
            assert view.next_expiry(BRANCH, 0) is None
            assert view.latest_time() is None  # nothing expires
        write(store, [note(name, expires=day) for name, day in days.items()])
        soon, late = microseconds(days["b"]), microseconds(days["a"])
        with store.read() as view:
            assert [view.next_expiry(BRANCH, after) for after in (0, soon - 1, soon, late)] == [soon, soon, late, None]
            assert view.next_expiry(Branch("other"), 0) is None
            assert view.latest_time() == view.head(BRANCH).micros
        write(store, [note("d")], branch=OTHER)
        with store.read() as view:
            assert view.latest_time() == max(view.head(BRANCH).micros, view.head(OTHER).micros)

    def test_only_versions_that_a_commit_names_are_stored(self, store: Store) -> None:
        passing = note("a", "passing")
        gone = note("b", "gone")
        with store.write(BRANCH) as transaction:
            for record in (passing, gone):
                transaction.put(BRANCH, record, stored(record, store.key))
            transaction.drop(BRANCH, "b")
            write_into(transaction, store.key, [note("a", "final")])
        with store.read() as view:
            assert view.payload(BRANCH, stored(note("a", "final"), store.key).version) is not None
            for record in (passing, gone):
                assert view.payload(BRANCH, stored(record, store.key).version) is None

    def test_reads_between_writes_do_not_change_what_is_stored(self, store: Store) -> None:
        long = "long " * 20_000
        texts = {text: note("a", text) for text in ("held", "passing", "passing again", "named", "final", long)}
        versions = {text: stored(record, store.key) for text, record in texts.items()}
        write(store, [texts["held"]])
        with store.write(BRANCH) as transaction:
            for text in ("passing", "held", long, "passing again"):
                transaction.put(BRANCH, texts[text], versions[text])
                assert list(transaction.select(BRANCH, f.everything(), now=NOW)) == [texts[text]]
                assert transaction.payload(BRANCH, versions[text].version) == versions[text].payload
            write_into(transaction, store.key, [texts["named"]])
            write_into(transaction, store.key, [texts["final"]])
            assert [commit.seq for commit in transaction.commits(BRANCH)] == [1, 2, 3]
        with store.read() as view:
            kept = {text for text, version in versions.items() if view.payload(BRANCH, version.version) is not None}
            assert kept == {"held", "named", "final"}
            assert list(view.select(BRANCH, f.everything(), now=NOW)) == [texts["final"]]

    def test_positions_are_right_while_turns_are_added_dropped_and_moved_in_a_transaction(self, store: Store) -> None:
        def turn(record_id: str, position: int, conversation: str = "c") -> Record:
            return note(record_id, conversation=conversation, position=position)

        write(store, [turn("a", 0), turn("b", 1), turn("z", 5, "d")])
        with store.write(BRANCH) as transaction:

            def put(record: Record) -> tuple[int | None, int | None]:
                transaction.get(BRANCH, record.id)
                transaction.put(BRANCH, record, stored(record, store.key))
                return last()

            def last() -> tuple[int | None, int | None]:
                return transaction.last_position(BRANCH, "c"), transaction.last_position(BRANCH, "d")

            assert last() == (1, 5)
            assert put(turn("c", 2)) == (2, 5)
            assert put(turn("e", 1)) == (2, 5)
            assert put(turn("c", 6, "d")) == (1, 6)
            transaction.drop(BRANCH, "c")
            assert last() == (1, 5)
            assert put(turn("c", 9)) == (9, 5)
            assert [Record.load(each.payload).id for each in transaction.turns_at(BRANCH, "c", 1)] == ["b", "e"]
            assert put(turn("b", 3)) == (9, 5)
            assert [Record.load(each.payload).id for each in transaction.turns_at(BRANCH, "c", 1)] == ["e"]
            current = dict(transaction.versions(BRANCH))
            assert set(current) == {"a", "b", "c", "e", "z"}
            assert last() == (9, 5)
            write_into(transaction, store.key, [])

    def test_pages_are_stored_and_the_trie_has_the_live_versions(self, store: Store) -> None:
        current = {f"id {number}": note(f"id {number}", f"text {number}") for number in range(50)}
        for record in current.values():
            write(store, [record])
        for record_id in list(current)[::3]:
            write(store, drops=[record_id])
            del current[record_id]
        versions = {record_id: stored(record, store.key).version for record_id, record in current.items()}
        with store.write(BRANCH) as transaction:
            head = transaction.head(BRANCH)
            assert head.root.hash == root_of(versions)
            live = {each: found for each, found in transaction.lives(BRANCH, 0, head.seq).items() if found is not None}
            assert {each: found.version for each, found in live.items()} == versions
            assert check(head.root, live, transaction) == ""
            assert transaction.add_node(b"page") > 0

    def test_settings_are_stored_and_are_part_of_the_transaction(self, store: Store) -> None:
        with store.write(BRANCH) as transaction:
            assert transaction.setting("one") is None
            transaction.set_setting("one", "1")
            transaction.set_setting("two", "2")
            assert transaction.setting("one") == "1"
        with pytest.raises(RuntimeError), store.write(BRANCH) as transaction:
            transaction.set_setting("one", "changed")
            transaction.set_setting("two", None)
            assert transaction.setting("two") is None
            raise RuntimeError
        with store.write(BRANCH) as transaction:
            transaction.set_setting("two", None)
        with store.read() as view:
            assert (view.setting("one"), view.setting("two")) == ("1", None)
        again = self.reopened(store)
        if again is not None:
            with again.read() as view:
                assert view.setting("one") == "1"
            again.close()

    def test_several_ids_are_resolved_as_each_is_by_itself(self, store: Store) -> None:
        due = note("due", expires=datetime_of(NOW))
        write(store, [note("a"), note("gone"), due, note("later", expires=datetime_of(NOW + 1))])
        write(store, drops=["gone"])
        write(store, [note("of another branch")], branch=OTHER)
        ids = ["a", "gone", "due", "later", "of another branch", "never", *map(str, range(250))]

        def one_by_one(view: View) -> dict[str, Resolved]:
            return {each: Resolved(view.known(BRANCH, each), view.get(BRANCH, each), each == "due") for each in ids}

        with store.read() as view:
            resolved = view.resolve(BRANCH, ids, NOW)
            assert resolved == one_by_one(view)
            assert (resolved["gone"], resolved["never"]) == (Resolved(True, None, False), Resolved(False, None, False))
            assert not view.resolve(BRANCH, ["due"], NOW - 1)["due"].due
            assert view.resolve(BRANCH, [], NOW) == {}
            assert view.resolve(Branch("none"), ["a"], NOW) == {"a": Resolved(False, None, False)}
        with store.write(BRANCH) as transaction:
            write_into(transaction, store.key, [note("never"), note("a", "changed")], ["later", "due"])
            ids.remove("due")
            assert transaction.resolve(BRANCH, ids, NOW) == one_by_one(transaction)
            assert transaction.resolve(BRANCH, ["due"], NOW)["due"] == Resolved(True, None, False)

    def test_a_payload_is_found_from_every_branch_of_its_namespace_and_from_no_other(self, store: Store) -> None:
        record = note("a", "of the side branch")
        version = stored(record, store.key).version
        side = Branch(BRANCH.namespace, "side")
        with store.write(side) as transaction:
            write_into(transaction, store.key, [record], branch=side)
            assert transaction.payload(BRANCH, version) == record.to_bytes()
        write(store, [note("b")])
        with store.read() as view:
            assert view.payload(side, version) == view.payload(BRANCH, version) == record.to_bytes()
            assert view.payload(OTHER, version) is None
            assert not view.known(BRANCH, "a")

    # Capabilities

    def test_a_transaction_may_ask_to_share_a_commit_whether_the_store_can_or_not(self, store: Store) -> None:
        with store.write(BRANCH, shared=True) as transaction:
            write_into(transaction, store.key, [note("a")])
        with pytest.raises(Boom), store.write(BRANCH, shared=True) as transaction:
            write_into(transaction, store.key, [note("b")])
            raise Boom
        with store.read() as view:
            assert [record_id for record_id, _ in view.versions(BRANCH)] == ["a"]

    def test_a_store_is_copied_or_refuses_to_be(self, store: Store, tmp_path: Path) -> None:
        write(store, [note("a")])
        path = tmp_path / "copy"
        if store.capabilities.copying:
            assert store.back_up(str(path), verify=True, force=False).branches[BRANCH].records == 1
        else:
            with pytest.raises(UnsupportedError):
                store.back_up(str(path), verify=True, force=False)
        assert path.exists() is store.capabilities.copying

    def test_one_transaction_is_open_at_a_time_for_the_store_or_for_each_family(self, store: Store) -> None:
        assert store.capabilities.writers in ("store", "family")
        entered, errors = threading.Event(), []

        def second() -> None:
            try:
                with store.write(OTHER):
                    entered.set()
            except BaseException as error:  # noqa: BLE001 - the test reports it
                errors.append(error)

        thread = threading.Thread(target=second)
        with store.write(BRANCH):
            thread.start()
            if store.capabilities.writers == "family":
                assert entered.wait(60)
            else:
                assert not entered.wait(0.05)
        thread.join()
        assert entered.is_set()
        assert not errors

    def test_the_store_gives_a_factory_for_what_is_derived_from_it(self, store: Store) -> None:
        derived = store.derived()
        vectors, uses, full_text = derived.vectors(), derived.uses(), derived.full_text()
        model = VectorModel("model", 2)
        vectors.put(model, "default", {b"d" * 32: np.array([1.0, 0.0], dtype=np.float32)})
        assert vectors.embedded_digests(model, "default") == {b"d" * 32}
        uses.note(BRANCH, ["a", "b"], 7)
        assert uses.of(BRANCH) == {"a": 7, "b": 8}
        updates = Updates(1, b"root", False, [("a", "a red boat")])
        assert full_text.search(BRANCH, "boat", lambda seq, root: updates) == ["a"]
        tiles = derived.log_tiles()
        tile = CompleteTile(0, 0, b"t" * 32, b"h" * 32 * TILE_SIZE)
        assert tiles.saved(BRANCH) == (0, b"")
        tiles.save(BRANCH, [tile], TILE_SIZE, b"t" * 32)
        assert tiles.saved(BRANCH) == (TILE_SIZE, b"t" * 32)
        assert tiles.tops(BRANCH, 0, 0) == [b"t" * 32]
        assert tiles.hashes(BRANCH, 0, 0) == b"h" * 32 * TILE_SIZE
        assert tiles.hashes(OTHER, 0, 0) is None
        tiles.clear(BRANCH)
        assert tiles.saved(BRANCH) == (0, b"")
        assert tiles.tops(BRANCH, 0, 0) == []
        tiles.close()
        vectors.close()
        full_text.close()
        with pytest.raises(ClosedError):
            full_text.search(BRANCH, "boat", lambda seq, root: updates)

    def test_the_version_of_a_watched_store_changes_with_every_commit(self, store: Store) -> None:
        if not store.capabilities.watched:
            with pytest.raises(UnsupportedError):
                store.version()
            return
        versions = [store.version()]
        for number, branch in enumerate((BRANCH, OTHER, BRANCH)):
            write(store, [note(f"r{number}")], branch=branch)
            versions.append(store.version())
        assert all(before != after for before, after in pairwise(versions))
        store.close()
        with pytest.raises(ClosedError):
            store.version()

    def test_a_closed_store_raises_and_closing_twice_is_allowed(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(ClosedError), store.read():
            pass
        with pytest.raises(ClosedError), store.write(BRANCH):
            pass

    def test_facts_describe_the_store_and_check_finds_no_problem(self, store: Store) -> None:
        write(store, [note("a")])
        facts = store.facts()
        assert {"store", "uuid", "zone", "durability"} <= facts.keys()
        assert store.zone == facts["zone"]
        assert store.check() == []
        store.probe()

    def test_a_durable_store_has_the_same_contents_after_a_restart(self, store: Store) -> None:
        write(store, [note("a"), note("b")])
        write(store, [note("a", "changed")], ["b"])
        with store.read() as view:
            before = everything_of(view)
        again = self.reopened(store)
        assert store.capabilities.durable is (again is not None)
        if again is None:
            assert store.facts()["durability"].startswith("none")  # it says so
            return
        with again.read() as view:
            assert everything_of(view) == before
        again.close()
