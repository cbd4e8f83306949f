"""Cleanup after an erasure: everything but the ledger drops the erased contents, at once or when nothing prevents it.

The commit of an erasure removes the payloads from the ledger, and notes in the same transaction what is left to do: the
index file, the full-text index, the uses, the vectors, and former states of the store's own files. `finish` does it and
removes the note. Each step can be repeated, so a process that dies leaves the rest to the next one that writes, opens
or closes the store.

Other processes notice an erasure in the log, before they read or write, and drop what they have cached. Where the
derived data are those of one machine, they also remove there what was erased. What machines share of them is cleaned
with the note, by the process that erases or the next one.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from recollect.common.deadlines import within
from recollect.engine.follower import in_history
from recollect.engine.index.document_of import digest_of
from recollect.engine.index.keeper import IndexKeeper
from recollect.engine.index.past import PastIndexes
from recollect.engine.index.vectors import VectorKeeper
from recollect.errors import DamagedStoreError, RecollectError
from recollect.ledger.commits import MAIN, Branch, Commit, Head
from recollect.records.record import Record
from recollect.stores.base import Store, Transaction, View
from recollect.stores.derived.cleaned import CleanedFile
from recollect.stores.derived.fulltext import FullText
from recollect.stores.derived.usage import UsageFile
from recollect.stores.derived.vectors import VectorFile
from recollect.stores.write_queue import repeated

_log = logging.getLogger("recollect")
#: The settings with the notes of what is left to do: `erasing/NAMESPACE` each, and `erasing` of earlier releases.
_NOTES, _NOTES_END = "erasing", "erasing0"


@dataclass(frozen=True)
class _Live:
    """The ids that are live in a view, as a container."""

    view: View
    branch: Branch

    def __contains__(self, record_id: object) -> bool:
        assert isinstance(record_id, str)
        seq = self.view.head(self.branch).seq
        return self.view.versions_at(self.branch, [record_id], seq).get(record_id) is not None


class Erasures:
    """The erasures of a store.

    Args:
        keeper: The word indexes.
        past: The word indexes of past moments.
        fulltext: The full-text index.
        uses: When records were last used.
        vectors: The stored vectors.
        embedding: What caches vectors; None without an embedder.
        drop: Discards what else is cached of a branch.
        cleaned: Up to which commits this machine has removed what was erased; None: who erases does it for all.
    """

    def __init__(
        self,
        store: Store,
        keeper: IndexKeeper,
        past: PastIndexes,
        fulltext: FullText,
        uses: UsageFile,
        vectors: VectorFile,
        embedding: VectorKeeper | None,
        drop: Callable[[Branch], None],
        cleaned: CleanedFile | None,
    ) -> None:
        self._store = store
        self._keeper = keeper
        self._past = past
        self._fulltext = fulltext
        self._uses = uses
        self._vectors = vectors
        self._embedding = embedding
        self._drop = drop
        self._cleaned = cleaned
        self._unclean: set[Branch] = set()  # of this machine, after it could not be cleaned
        self._of_base: dict[Branch, tuple[int, bytes]] = {}  # those of the base of a branch without own heads
        self._seen: dict[Branch, tuple[int, bytes]] = {}  # the commits up to which readers have noticed erasures
        self._written: dict[Branch, tuple[int, bytes]] = {}  # the commits up to which writers have noticed erasures
        self._finishing = threading.Lock()
        #: Whether something may be left to do. Others may have erased something: it is read again when the store opens.
        self.pending = False

    # Noticing

    def notice(self, view: View, branch: Branch) -> None:
        """Drop what is cached of a branch if something was erased since the last call. Called before each read.

        Cost:
            Proportional to the commits of other processes since.
        """
        if branch.name != MAIN:
            self._notice_base(view, branch)
        head = view.head(branch)
        seen = self._seen.get(branch) or self._cleaned_before(branch, head)
        lost = self._cleaned is not None and seen is not None and head.seq < seen[0] and self._has_lost(branch, seen)
        if lost or self._is_news(view, branch, seen):
            if self._cleaned is not None:
                self._clean_machine(self._cleaned, branch, head)
            self._forget(view, branch)
        if lost or head.seq >= self._seen.get(branch, (0, b""))[0]:
            self._seen[branch] = (head.seq, head.root.hash)

    def _notice_base(self, view: View, branch: Branch) -> None:
        """Drop what is cached of a branch without own heads if something was erased in the one that it continues."""
        base = view.base(branch)
        if base is None or base.own_heads:
            self._of_base.pop(branch, None)
            return
        head, seen = view.head(base.branch), self._of_base.get(branch)
        if self._is_news(view, base.branch, seen):
            self._forget(view, branch)
        if seen is None or head.seq >= seen[0]:
            self._of_base[branch] = (head.seq, head.root.hash)

    def _has_lost(self, branch: Branch, seen: tuple[int, bytes]) -> bool:
        """Return whether the server has lost a commit that was seen; otherwise the view is an older one."""
        with self._store.read() as newest:
            return newest.head(branch).seq < seen[0]

    def _cleaned_before(self, branch: Branch, head: Head) -> tuple[int, bytes] | None:
        """Return the commit up to which earlier processes of this machine have removed what was erased."""
        if self._cleaned is None:
            return None
        found = self._cleaned.get(branch)
        if found is None:  # nothing has been derived from it here
            self._cleaned.put(branch, head.seq, head.root.hash)
        return found

    def _clean_machine(self, cleaned: CleanedFile, branch: Branch, head: Head) -> None:
        """Remove from the derived data of this machine what another one has erased, unless that is done."""
        if cleaned.get(branch) == (head.seq, head.root.hash):
            return
        try:
            with within(None):
                done = self._clean_derived([branch], shared=False)
        except RecollectError as error:
            _log.warning("what another machine has erased may still be in files here, until the next start: %s", error)
            done = False
        if done:
            cleaned.put(branch, head.seq, head.root.hash)
            self._unclean.discard(branch)
        else:  # other processes of this machine may use the files; the next process does it
            self._unclean.add(branch)

    def notice_in(self, transaction: Transaction, branch: Branch) -> None:
        """Drop what writing uses if something was erased since the last transaction of this process."""
        if self._is_news(transaction, branch, self._written.get(branch)):
            self._drop(branch)
            self._uses.forget(branch, _Live(transaction, branch))
        head = transaction.head(branch)
        if branch not in self._written:
            self._cleaned_before(branch, head)
        # Also if nothing is committed: what writing caches is of this commit.
        self._written[branch] = (head.seq, head.root.hash)

    @staticmethod
    def _is_news(view: View, branch: Branch, seen: tuple[int, bytes] | None) -> bool:
        """Return whether something was erased since a commit, or the history is another one."""
        head = view.head(branch)
        if seen is None or seen == (head.seq, head.root.hash) or head.seq < seen[0]:
            return False
        begins_alike = not seen[0] or in_history(view, branch, *seen)  # every history begins empty
        return not begins_alike or view.has_erased(branch, seen[0])

    def committed(self, branch: Branch, before: bytes, commit: Commit) -> None:
        """Note a durable commit of this process that erased nothing, so that it is not examined."""
        self._written[branch] = (commit.seq, commit.root.hash)
        if self._seen.get(branch) == (commit.seq - 1, before):
            self._seen[branch] = (commit.seq, commit.root.hash)

    def _forget(self, view: View, branch: Branch) -> None:
        self._drop(branch)
        self._past.clear()
        if self._embedding is not None:
            self._embedding.forget_erased()
        self._uses.forget(branch, _Live(view, branch))
        base = None if branch.name == MAIN else view.base(branch)
        if base is not None and not base.own_heads:
            self._keeper.drop(branch)  # its own log does not say what was erased
        self._keeper.remove_erased(view, branch)

    def close(self) -> None:
        """Drop the buffered uses of what others have erased, before they are written, and finish what is left."""
        for branch in list(self._seen):
            try:
                with self._store.read() as view:
                    self.notice(view, branch)
                if self._cleaned is not None and branch not in self._unclean:
                    self._cleaned.put(branch, *self._seen[branch])
            except RecollectError as error:
                _log.debug("it is not known whether something was erased: %s", error)
        self.try_to_finish()
        if self._cleaned is not None:
            self._cleaned.close()

    # Finishing

    def begin(self) -> None:
        """Finish what another process has left to do, when the store is opened."""
        try:
            with self._store.read() as view:
                noted = bool(view.setting_names(_NOTES, _NOTES_END, 1))
            self.pending = noted and not self._store.facts().get("read_only")
        except RecollectError as error:
            _log.debug("it is not known whether an erasure is complete: %s", error)
        self.try_to_finish()

    @staticmethod
    def note(transaction: Transaction, branches: Sequence[Branch]) -> None:
        """Note in the transaction of an erasure what follows it. The note says nothing of what was erased.

        Args:
            branches: Those of the namespace whose derived data may have what was erased.
        """
        name = f"{_NOTES}/{branches[0].owner.namespace}"
        note = _decoded(transaction.setting(name))
        own = [list(each) for each in branches]
        note["branches"] = [*(each for each in note["branches"] if each not in own), *own]
        note["derived"] = note["rewritten"] = False
        transaction.set_setting(name, json.dumps(note))

    def erased(self, branches: Sequence[Branch]) -> bool:
        """Do what follows an erasure that this process has committed. Return whether it is complete.

        Args:
            branches: Those in which it has a commit.

        An error leaves the rest for the next time: the erasure itself is committed. What is cached is forgotten before
        the next read, as after an erasure of another process.

        Raises:
            DamagedStoreError: The store is corrupt.
        """
        try:
            return self._follow(branches)
        except DamagedStoreError:
            raise
        except RecollectError as error:
            _log.warning("an erasure is not complete yet, and will be continued: %s", error)
            return False

    def _follow(self, branches: Sequence[Branch]) -> bool:
        with self._store.read() as view:
            heads = {branch: view.head(branch) for branch in branches}
        done = self.try_to_finish(wait=True)
        for branch, head in heads.items():
            if self._cleaned is not None:
                # Another machine may have removed the note when it had cleaned itself.
                self._clean_machine(self._cleaned, branch, head)
                done = done and branch not in self._unclean
        with self._store.read() as view:  # afterwards: it makes the worker save a new index file, which stays
            for branch in branches:
                self._forget(view, branch)
        if self._cleaned is not None:
            self._seen.update({branch: (head.seq, head.root.hash) for branch, head in heads.items()})
        return done

    def try_to_finish(self, *, wait: bool = False) -> bool:
        """Do what is left, if anything is. Return whether nothing is left; an error leaves it for the next time.

        Args:
            wait: Wait for another thread that does it. Otherwise it is left to that thread.
        """
        if not self.pending or not self._finishing.acquire(blocking=wait):
            return not self.pending
        try:
            try:
                self.pending = not self._finish()
            except DamagedStoreError as error:  # another SQLite may have written pages
                self.pending = not repeated(self._finish, error, self._store.renew)
        except RecollectError as error:
            _log.warning("an erasure is not complete yet, and will be continued: %s", error)
        finally:
            self._finishing.release()
        return not self.pending

    def _finish(self) -> bool:
        with self._store.read() as view:
            written = view.settings(_NOTES, _NOTES_END)
        if not written:
            return True
        notes = {name: _decoded(text) for name, text in written.items()}
        for note in notes.values():
            # Once: a long reader prevents only the last step, and every write tries that one again.
            note["derived"] = note["derived"] or self._clean_derived({Branch(*each) for each in note["branches"]})
        # Rewritten, because `secure_delete` does not reach copies of rows that SQLite has moved between pages.
        rewritten = all(note["rewritten"] for note in notes.values())
        truncated = self._store.truncate() if rewritten else self._store.compact()
        complete = True
        for name, note in notes.items():
            done = truncated and note["derived"]
            left = None if done else json.dumps({**note, "rewritten": True})
            replaced = left == written[name] or self._replace(name, written[name], left)
            complete = complete and done and replaced
        return complete

    def _clean_derived(self, branches: Collection[Branch], *, shared: bool = True) -> bool:
        """Remove what was erased from all derived data. Return False if others prevent a part of it.

        Args:
            shared: Whether this process is to remove it also from what machines share. Otherwise that is tried, since a
                release that does not know what is shared may have erased it.
        """
        done = [self._remove_derived(branch) for branch in branches]
        for branch in branches:
            with self._tried(shared):
                self._keeper.remove_shared(branch)
            # What is shared first: afterwards no vector of an erased text can come from there.
            with self._tried(shared):
                self._vectors.keep_only_shared(branch.namespace, partial(self._digests, branch))
            self._vectors.keep_only(branch.namespace, partial(self._digests, branch))
        done.append(self._vectors.purge())
        done.append(self._fulltext.clear())
        return all(done)

    @staticmethod
    @contextmanager
    def _tried(required: bool) -> Iterator[None]:
        """Raise an error of the block only if it is required."""
        try:
            yield
        except RecollectError as error:
            if required:
                raise
            _log.debug("what is shared was not cleaned by this machine: %s", error)

    def _digests(self, branch: Branch) -> set[bytes]:
        """Return the digests of all texts of a namespace that were not erased, of live and former versions."""
        with self._store.read() as view:
            return {digest_of(Record.load(payload), self._store.key) for payload in view.all_versions(branch)}

    def _remove_derived(self, branch: Branch) -> bool:
        removed = self._keeper.remove_file(branch)
        with self._store.read() as view:
            return self._uses.erase(branch, _Live(view, branch)) and removed

    def _replace(self, name: str, written: str, note: str | None) -> bool:
        """Replace a note, unless another erasure has changed it meanwhile."""
        with self._store.write(Branch(name.partition("/")[2] or name)) as transaction:
            if transaction.setting(name) != written:
                return False
            transaction.set_setting(name, note)
            return True


def _decoded(written: str | None) -> dict[str, Any]:
    """Return a note: the branches, and which steps are done. Those of earlier releases have digests besides.

    Raises:
        DamagedStoreError: It is corrupt.
    """
    note: dict[str, Any] = {"branches": [], "derived": False, "rewritten": False}
    try:
        note |= {} if written is None else json.loads(written)
        note.pop("vectors", None)
        named = all(len(each) == 2 and all(isinstance(name, str) for name in each) for each in note["branches"])
        if not named:
            raise ValueError("it does not name branches")
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedStoreError("the store", f"the note of an erasure cannot be read: {error}") from None
    return note
