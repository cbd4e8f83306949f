"""The part of the store contract about erasing payloads and redacting the log."""

from __future__ import annotations

from dataclasses import replace

from recollect.ledger.commits import Change, Commit
from recollect.ledger.entries import entry_hash, note_hash
from recollect.ledger.merkle import path_of, redacted_id
from recollect.stores.base import Store
from recollect.stores.values import RemovedPayload
from recollect.testing.commits import BRANCH, note, stored, write


def erase(store: Store, record_id: str, *, redact: bool = False) -> Commit:
    """Erase all versions of an id that is not live, as the engine would."""
    with store.write(BRANCH) as transaction:
        head = transaction.head(BRANCH)
        commit = Commit(
            namespace=BRANCH.namespace,
            branch=BRANCH.name,
            seq=head.seq + 1,
            parents=((BRANCH.name, head.seq),),
            micros=head.micros + 1,
            actor=None,
            reason="erased",
            root=head.root,
            changes=(Change(record_id, None, None, "erased"),),
        )
        versions = [each.version for each in transaction.versions_of(BRANCH, record_id) if each.payload is not None]
        commit = replace(commit, entry=entry_hash(commit, store.key))
        transaction.append(commit)
        transaction.erase(BRANCH, record_id, versions, redact=redact)
    return commit


class ErasureContract:
    """The tests. `StoreContract` includes them."""

    def test_an_erased_version_has_no_payload_and_stays_in_the_log(self, store: Store) -> None:
        first, second = note("a", "first"), note("a", "second")
        write(store, [first, note("b")])
        write(store, [second])
        write(store, [], ["a"])
        with store.read() as view:
            hashes = {stored(each, store.key).version for each in (first, second)}
            assert {each.version for each in view.versions_of(BRANCH, "a")} == hashes
            assert set(view.all_versions(BRANCH)) == {each.to_bytes() for each in (first, second, note("b"))}
            assert not view.has_erased(BRANCH, 0)
            log = list(view.commits(BRANCH))
        erase(store, "a")
        with store.read() as view:
            assert {each.version for each in view.versions_of(BRANCH, "a")} == hashes
            assert [each.payload for each in view.versions_of(BRANCH, "a")] == [None, None]
            assert list(view.all_versions(BRANCH)) == [note("b").to_bytes()]
            assert [view.payload(BRANCH, each) for each in hashes] == [None, None]
            assert list(view.commits(BRANCH))[:3] == log
            assert view.has_erased(BRANCH, 3)
            assert not view.has_erased(BRANCH, 4)
            assert view.known(BRANCH, "a")
        report = store.check()
        assert (list(report), report.erased) == ([], 2)

    def test_a_version_that_is_stored_again_has_its_payload_again(self, store: Store) -> None:
        write(store, [note("a")])
        write(store, [], ["a"])
        erase(store, "a")
        write(store, [note("a")])
        with store.read() as view:
            assert [each.payload for each in view.versions_of(BRANCH, "a")] == [note("a").to_bytes()]
        report = store.check()
        assert (list(report), report.erased) == ([], 0)

    def test_a_thinned_version_has_no_payload_and_no_commit_says_so(self, store: Store) -> None:
        first, second, third = note("a", "first"), note("a", "second"), note("a", "third")
        for each in (first, second, third):
            write(store, [each])
        with store.read() as view:
            log, head = list(view.commits(BRANCH)), view.head(BRANCH)
        former = [stored(each, store.key).version for each in (first, second)]
        with store.write(BRANCH) as transaction:
            transaction.thin(BRANCH, "a", former[:1])
        for _ in range(2):  # the second time, one of them has no payload
            with store.write(BRANCH) as transaction:
                transaction.thin(BRANCH, "a", former)
        with store.read() as view:
            assert (list(view.commits(BRANCH)), view.head(BRANCH)) == (log, head)
            assert list(view.all_versions(BRANCH)) == [third.to_bytes()]
            assert view.removed(BRANCH, former) == dict.fromkeys(former, RemovedPayload("thinned", "a"))
            assert not view.has_erased(BRANCH, 0)
        report = store.check()
        assert (list(report), report.erased, report.thinned) == ([], 0, 2)
        write(store, [first])
        with store.read() as view:
            assert view.payload(BRANCH, former[0]) == first.to_bytes()
            assert view.removed(BRANCH, former) == {former[1]: RemovedPayload("thinned", "a")}
        report = store.check()
        assert (list(report), report.thinned) == ([], 1)

    def test_the_id_of_a_thinned_version_is_redacted_with_its_record(self, store: Store) -> None:
        first = note("a", "first")
        write(store, [first])
        write(store, [note("a", "second")])
        write(store, [], ["a"])
        former = stored(first, store.key).version
        with store.write(BRANCH) as transaction:
            transaction.thin(BRANCH, "a", [former])
        erase(store, "a", redact=True)
        with store.read() as view:
            assert view.removed(BRANCH, [former]) == {former: RemovedPayload("thinned", None)}
        report = store.check()
        assert (list(report), report.erased, report.thinned) == ([], 1, 1)

    def test_a_redacted_id_keeps_its_path_and_every_entry(self, store: Store) -> None:
        write(store, [note("a"), note("b")], reason="because of a")
        write(store, [], ["a"])
        with store.read() as view:
            first = next(view.commits(BRANCH))
        erased = erase(store, "a", redact=True)
        commitment = note_hash("reason", "because of a", first.seq, first.micros, store.key)
        with store.write(BRANCH) as transaction:
            transaction.redact(BRANCH, 1, {"reason": commitment})
        hidden = redacted_id("a")
        assert path_of("a").hex() in hidden
        with store.read() as view:
            assert not view.known(BRANCH, "a")
            assert view.known(BRANCH, hidden)
            assert [each.seq for each in view.commits(BRANCH, record_id=hidden)] == [1, 2, 3]
            assert view.changed(BRANCH, 2) == [hidden]
            found = next(view.commits(BRANCH))
            assert (found.actor, found.reason, found.entry) == ("tester", None, first.entry)
            redactions = view.redactions(BRANCH, 1)
            assert redactions == {"reason": commitment}
            assert view.redactions(BRANCH, 2) == {}
            assert entry_hash(found, store.key, redactions) == first.entry
            assert next(view.commits(BRANCH, 2)).entry == erased.entry
            assert set(view.lives(BRANCH, 0, 2)) == {hidden, "b"}
        assert store.check() == []

    def test_files_can_be_rewritten_and_truncated(self, store: Store) -> None:
        write(store, [note("a")])
        write(store, [], ["a"])
        erase(store, "a")
        assert store.compact()
        assert store.truncate()
        assert store.copies_with(BRANCH, []) == ()
        assert store.check() == []
