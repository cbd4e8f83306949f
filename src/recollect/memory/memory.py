"""`Memory`, the object that `recollect.open` returns: one namespace of a store, or a scoped view of it.

A memory is thread-safe. Namespaces and scopes opened from one memory share its store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from recollect.arguments.signatures import all_named
from recollect.calls.calls import Calls
from recollect.calls.history import PastExecutor
from recollect.common.uncopied import Uncopied
from recollect.engine.history_results import Replayed
from recollect.engine.results import Export
from recollect.errors import InvalidArgumentError, OriginError, RecollectError, ScopeError
from recollect.ledger.commits import MAIN, Branch
from recollect.ledger.proofs import Proof
from recollect.memory.batch import Batch
from recollect.memory.bisection.calls import Bisection
from recollect.memory.retention import RetentionCalls
from recollect.memory.shared import MemoryCalls
from recollect.memory.upkeep import Upkeep
from recollect.operations import (
    ExecuteBatch,
    Namespaces,
    OpenExport,
    Prove,
    ProveLog,
    ProveMerge,
    Replay,
)
from recollect.records.origins import RANKS, USER, Origin, check_origin, least
from recollect.records.record import record_id

if TYPE_CHECKING:
    from recollect.memory.tools import ToolSet


@all_named
class Memory(MemoryCalls, Upkeep, RetentionCalls, Bisection, Uncopied):
    """One namespace of a store, or a scoped view of it. Created by `recollect.open`.

    Use it as a context manager to close the store at the end:

        with recollect.open("agent.db") as memory:
            memory.remember("Ana prefers window seats", user="ana")

    A memory is thread-safe. Memories returned by `namespace` and `scoped` share its store. Calls that use the store
    raise ClosedError after it was closed, ForkedError in a fork of the process that opened it, and StoreError if it
    fails.
    """

    def prove(self, id: str, *, at: int | None = None, part: str | None = None) -> Proof:  # noqa: A002 - the field's name
        """Return a proof that the record with an id is present, or that the id is absent, as plain JSON.

            proof = memory.prove("note")
            assert recollect.verify(proof, memory.root)

        Anyone who has the root, or the head of the log, can verify the proof without the store (`recollect.verify`). It
        contains the record in full, and discloses no other record, nor actor and reason of the commit. A record that
        has expired is present until a commit removes it.

        Args:
            at: The seq of the commit after which it is proved; default: the newest.
            part: The part of the memory: "records", or the name of what a facet keeps ("nodes" of outlines, "terms" of
                glossaries, "sdrs", "keys"). Default: the first one that has the id, or else the records. The proof says
                of which part it speaks.

        Raises:
            InvalidArgumentError: There is no such commit or part, or the part is empty.
            ScopeError: This memory is scoped.
            DamagedStoreError: The store cannot prove it, because it is corrupt.
            StoreError: The store failed.

        Cost:
            O(log n) pages of the trie, and that of `head`.
        """
        proof: Proof = self.execute(Prove(id=id, at=at, part=part))
        return proof

    def prove_log(self, old: int, new: int | None = None) -> Proof:
        """Return a proof that the log after one commit begins with the log after an earlier one, as plain JSON.

        Anyone who kept a head of the log (`head().log`) can verify, with the proof and a newer head, that no commit
        before it was changed.

        Args:
            old: The seq of the earlier commit.
            new: The seq of the later commit; default: the newest.

        Raises:
            InvalidArgumentError: There is no such commit, or `old` is after `new`.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            That of `head`.
        """
        proof: Proof = self.execute(ProveLog(old=old, new=new))
        return proof

    def prove_merge(self, seq: int) -> Proof:
        """Return a proof that a commit merges one of another branch, as plain JSON.

            merged = memory.merge_branch("what-if")
            proof = memory.prove_merge(merged.seq)
            assert recollect.verify(proof, (memory.on("what-if").head().log, memory.head().log))

        It shows the merge in the log of this branch, the commit that was merged in the log of the other one, and that
        the first states the entry of the second.

        Args:
            seq: The number of the merge (`Merged.seq`).

        Raises:
            InvalidArgumentError: There is no such commit, or it is no merge.
            UnknownBranchError: The branch that was merged was dropped.
            ScopeError: This memory is scoped.
            DamagedStoreError: The store cannot prove it, because it is corrupt.
            StoreError: The store failed.

        Cost:
            That of `head`, for both branches.
        """
        proof: Proof = self.execute(ProveMerge(seq=seq))
        return proof

    def replay(self, receipt: Mapping[str, Any]) -> Replayed:
        """Ask the question of a receipt again, as of its commit, and compare the answers.

            receipt = memory.recall("Which seat does Ana prefer?").receipt
            assert memory.replay(receipt).status == "same"

        It works on the store that wrote the receipt and on every copy of it, such as a restored backup, whatever was
        committed since. Vectors have no history: those that are stored now are used.

        Args:
            receipt: The receipt (`Hits.receipt`).

        Returns:
            The status ("same", "different" or "rules changed") and every difference.

        Raises:
            InvalidArgumentError: The receipt is invalid, was changed since it was written, or is of another namespace.
            ScopeError: This memory is scoped.
            StoreError: The store failed.

        Cost:
            That of the first recall as of a past moment (see `at`), and that of `head`.
        """
        replayed: Replayed = self.execute(Replay(receipt=receipt))
        return replayed

    @contextmanager
    def batch(
        self, *, actor: str | None = None, reason: str | None = None, expect_head: int | None = None
    ) -> Iterator[Batch]:
        """Combine several calls into one atomic commit. Each call sees the effects of the calls before it.

            with memory.batch(actor="importer", reason="spring clean") as batch:
                batch.forget("a")
                batch.remember("b")

        The batch holds the store's write lock until the block ends. Inside the block, write with the calls of the
        batch: a write with a memory of the same store from the same thread raises StoreBusyError. An exception that
        leaves the block undoes all of it.

        Args:
            actor: Who makes the changes; recorded in the commit.
            reason: Why the changes are made; recorded in the commit.
            expect_head: Compare-and-set: start only if the newest commit has this seq.

        Raises:
            ConflictError: `expect_head` is not met; the block is not entered.
            ScopeError: `expect_head` was passed to a scoped memory.
            StoreBusyError: Another writer held the lock until the timeout.
        """
        # Creating the operation checks the arguments.
        checked = ExecuteBatch(operations=(), actor=actor, reason=reason, expect_head=expect_head)
        with self._executor.batch(self._place._replace(actor=actor, reason=reason), checked.expect_head) as opened:
            batch = Batch(opened, self._scope)
            yield batch
            batch._check_complete()

    def _one_commit(self) -> AbstractContextManager[Calls]:
        return self.batch()

    def scoped(self, *, user: str | None = None, agent: str | None = None, conversation: str | None = None) -> Memory:
        """Return a view of this memory that is restricted to one user, agent or conversation.

        Only records with these field values can be read or written through it, and it behaves as if no others existed.
        An id chosen here is stored in a qualified form ("@user=ana/note") and returned as it was chosen. Calls that
        concern the whole namespace (head, root, seq, prove, prove_log, check, backup, sweep, set_quota,
        set_retention, namespace) raise ScopeError, and so does `close`: close the memory that this view was made from.

        Args:
            user: The user that records must have.
            agent: The agent that records must have.
            conversation: The conversation that records must have.

        Raises:
            InvalidArgumentError: No value was passed, or one is not a non-empty text.
            ScopeError: This memory is already scoped to another value.
        """
        if user is None and agent is None and conversation is None:
            raise InvalidArgumentError("scope", None, "name a user, an agent or a conversation")
        scope = self._scope.narrowed(user=user, agent=agent, conversation=conversation)
        return Memory(self._executor, self._branch, scope, self._place.origin)

    def as_origin(self, origin: Origin) -> Memory:
        """Return this memory as a writer of a class of origin: what it stores is the word of that class at most.

            pages = memory.as_origin("web")
            pages.remember("The museum opens at nine.")

        From the most trusted: "owner", "user", "assistant", "tool", "document", "web", "unknown". A memory writes as
        "user" if nothing else is stated. It changes no record of a higher class than its own: an update, a replacement
        or a merge of one is stored as a proposal, until it is endorsed (`endorse`). It reads everything.

        A memory that was opened in this process can have any class, and one of a server at most that of its token. One
        that writes as less than the user can only be lowered further: pass it to code that you trust less.

        Args:
            origin: The class.

        Raises:
            InvalidArgumentError: There is no such class.
            OriginError: This memory writes as less than that, and less than the user.
        """
        check_origin("origin", origin)
        own = self._place.origin
        if RANKS[own] < RANKS[USER] and RANKS[origin] > RANKS[own]:
            raise OriginError(f"the class {origin!r}", own, "use the memory that this one was made from")
        view = Memory(self._executor, self._branch, self._scope, origin)
        view._is_view = True
        return view

    def tools(
        self,
        prefix: str = "",
        *,
        only: Collection[str] | None = None,
        read_only: bool = False,
        origin: Origin = "assistant",
    ) -> ToolSet:
        """Return the calls of this memory as function tools for a model, with a dispatcher.

            tools = memory.scoped(user="ana").tools()
            tools.openai(), tools.anthropic()
            tools.call("recall", {"question": "Which seat?"})

        The tools are remember, recall, search (by similarity of meaning), context, update, forget, history, entity,
        contradictions, judge_text, and for the glossary define_term, recall_terms, terms_in_text and forget_term. They
        read and write what this memory may: pass them one that is scoped to the user.

        Args:
            prefix: Put before each name, such as "memory_".
            only: The names of the tools to return, without the prefix; default: all.
            read_only: Leave out the tools that write.
            origin: The class of origin of what they write (docs/trust.md), at most that of this memory: a model calls
                them, and may do so because a page asks it to.

        Raises:
            InvalidArgumentError: `prefix` has other characters than letters, digits, "_" and "-", or there is no tool
                of a name in `only`.
        """
        from recollect.memory.tools import ToolSet

        lower = least((self._place.origin, check_origin("origin", origin)))
        return ToolSet(self.as_origin(lower), prefix, only, read_only=read_only)

    def namespace(self, name: str) -> Memory:
        """Return another namespace of the same store, as a memory that shares the store with this one.

        Args:
            name: The name; the rules of an id apply.

        Raises:
            InvalidArgumentError: The name is invalid.
            ScopeError: This memory is scoped.
        """
        if self._scope.fixed:
            raise ScopeError(f"namespace {name!r}", str(self._scope))
        return Memory(self._executor, Branch(namespace_name(name)), origin=self._place.origin)

    def namespaces(self) -> list[str]:
        """Return the sorted names of the namespaces that have a commit; within a scope only the name of this one."""
        names: list[str] = self.execute(Namespaces())
        return names

    def open_export(self, *, parts: Collection[str] | None = None) -> Export:
        """Open a snapshot of all live records and of what facets keep, to be read one by one by ascending id.

            with memory.open_export() as export:
                print(export.root, export.count)
                for record in export.records: ...
                for part in export.parts:
                    for record in part.records: ...

        The root hashes are those of `head().parts`, unless there are expired records that no commit has removed yet.

        Args:
            parts: The parts of the memory, by name: "records", or what facets keep ("terms", "nodes", "sdrs", "keys").
                Default: all.

        Returns:
            The export. Close it, or leave its `with` block: until then it keeps a view of the store open.

        Cost:
            Reads each record when the loop reaches it. Within a scope, all records are in memory.
        """
        export: Export = self.execute(OpenExport(parts=parts))
        return export

    def close(self) -> None:
        """Close the store, also for all namespaces and scopes that share it.

        Commits are delivered to the listeners first, and calls in progress are waited for. Streams end. Closing twice
        is allowed.

        Raises:
            ScopeError: This memory is scoped: close the memory that it was created from.
            ReadOnlyMemoryError: This memory is that of a past moment: close the memory that it was created from.
            StoreBusyError: This thread is inside a batch of the store.
        """
        if self._scope.fixed:
            raise ScopeError("closing the store, which is shared,", str(self._scope))
        self._executor.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._shares_store:
            self.close()

    @property
    def _shares_store(self) -> bool:
        """True if the store belongs to the memory that this one was created from."""
        return self._is_view or bool(self._scope.fixed) or isinstance(self._executor, PastExecutor)

    def __repr__(self) -> str:
        scope = f" scoped to {self._scope}" if self._scope.fixed else ""
        branch = "" if self.branch_name == MAIN else f", branch {self.branch_name!r},"
        return f"<Memory {self.name!r}{branch} of {self._executor.location}{scope}>"


def namespace_name(value: object) -> str:
    """Return `value` as the name of a namespace. The rules of an id apply.

    Raises:
        InvalidArgumentError: It is not a valid name.
    """
    try:
        return record_id(value, "namespace")
    except RecollectError as error:
        raise InvalidArgumentError("namespace", value, str(error.args[2])) from None
