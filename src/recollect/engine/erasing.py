"""Execution of an erasure: what it selects, and its commits.

Every version that the caller can read loses its payload. The log keeps the hashes, so roots and proofs stay valid.
Records are selected among all versions, live and former, in a view, so that no writer waits. Each commit then examines
what has changed since. What follows the commits is in `engine.erasures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from recollect.engine.answers import erase_answers
from recollect.engine.core import Core
from recollect.engine.erasures import Erasures
from recollect.engine.family import chosen, without_kept
from recollect.engine.history_results import Erased
from recollect.engine.read.log import together
from recollect.engine.scope import QUALIFIED_PREFIX, Place, Scope, scopes_of
from recollect.engine.write.writer import Writer
from recollect.errors import CodecError, InvalidArgumentError, OriginError, UnknownRecordError
from recollect.filters.tree import Nothing
from recollect.ledger.commits import MAIN, Branch, Commit
from recollect.ledger.entries import note_hashes
from recollect.ledger.merkle import redacted_id
from recollect.operations import Erase
from recollect.records.origins import RANKS, USER
from recollect.records.record import Record
from recollect.stores.base import Transaction, View

#: Maximum number of records that one commit erases.
AT_ONCE = 1000
#: Returns which of some records may be erased, asked in the transaction of each commit.
Allowed: TypeAlias = Callable[[Transaction, set[str]], set[str]]


def erase(core: Core, place: Place, operation: Erase, allowed: Allowed | None = None) -> Erased:
    """Permanently remove the contents of records; with a filter, in all parts of the memory, unless it names some.

    Args:
        allowed: Which of the selected records may still be erased, asked in each transaction; None: all.

    Raises:
        OriginError: The caller is less than the user.
        UnknownRecordError: The caller can read no version of the record that is named.
    """
    if RANKS[place.origin] < RANKS[USER]:
        raise OriginError("what cannot be taken back", place.origin)
    if operation.id is not None and operation.parts is None:
        return _erase(core, place, operation, allowed)
    branches = chosen(place.branch, operation.parts)
    if operation.id is not None and len(branches) > 1:
        raise InvalidArgumentError("parts", operation.parts, "must be one part: an id is that of a record in it")
    parts: dict[str, int] = {}
    erased: Erased | None = None
    for name, branch in branches.items():
        kept = operation if operation.where is None else replace(operation, where=without_kept(operation.where, branch))
        done = _erase(core, place._replace(branch=branch), kept, allowed)
        if branch == place.branch or len(branches) == 1:
            erased = done
            continue
        if done.ids:
            parts[name] = len(done.ids)
        erased = erased or Erased(ids=(), versions=0, dry_run=operation.dry_run)
        erased = replace(
            erased,
            versions=erased.versions + done.versions,
            derived=tuple(sorted({*erased.derived, *done.derived}, key=str.encode)),
            pending=erased.pending or done.pending,
            copies=tuple(sorted({*erased.copies, *done.copies})),
        )
    assert erased is not None
    return replace(erased, parts=parts)


def _erase(core: Core, place: Place, operation: Erase, allowed: Allowed | None) -> Erased:
    """Permanently remove the contents of records of a branch."""
    core.now()
    branch, scope = place.branch, place.scope
    with core.read(branch) as view:
        selection = _Selection(view, branch, scope, operation)
        selection.examine(record for payload in view.all_versions(branch) if (record := _decoded(payload)))
        lines = lines_of(view, branch)
        seqs = {each: view.head(each).seq for each in lines}
        selected = selection.selected()
        if operation.dry_run and (selected or operation.id is None):
            found = _found(view, lines, scope, selected, operation)
            return _erased(core, branch, scope, selection, found, dry_run=True)
    if operation.id is not None and not selected:
        raise UnknownRecordError(operation.id, branch.owner.namespace)
    run = _Run(branch, scope, operation.redact, core.store.key)
    while selected - run.examined:
        with core.writing(place) as writing:
            transaction = writing.transaction
            lines = lines_of(transaction, branch)
            for each in lines:
                for record_id in set(transaction.changed(each, seqs.get(each, 0))) - run.examined:
                    selection.examine(_readable(transaction, lines, record_id, scope).records)
            selected = selection.selected()
            if allowed is not None:
                selected = allowed(transaction, selected)
            writers = {each: writing.in_part(each) for each in lines}
            run.erase(transaction, {each: opened.writer for each, opened in writers.items()}, selected)
        run.touched.update(each for each, opened in writers.items() if opened.writer.erases)
        if writing.writer.erases:
            run.commits.append(writing.seq)
        seqs = {each: opened.seq for each, opened in writers.items()}
    pending = bool(run.touched) and not core.erasures.erased(sorted(run.touched))
    erased = _erased(core, branch, scope, selection, run.erased)
    return replace(erased, pending=pending, commits=() if scope.fixed else tuple(run.commits))


def lines_of(view: View, branch: Branch) -> list[Branch]:
    """Return the branches of a namespace that have commits or heads of their own, this one first.

    Each of them gets a commit of its own for an erasure. Without own heads, a branch is a view of the past of another
    one, which does not show what was erased.
    """
    named = (Branch(branch.namespace), *(each.branch for each in view.continuing(branch.namespace)))
    own = [each for each in named if (base := view.base(each)) is None or base.own_heads]
    return list(dict.fromkeys((branch, *own)))


def _erased(
    core: Core,
    branch: Branch,
    scope: Scope,
    selection: _Selection,
    found: Mapping[str, list[bytes]],
    *,
    dry_run: bool = False,
) -> Erased:
    """Return the result for versions by their ids."""
    return Erased(
        ids=_shown(found, scope),
        versions=sum(map(len, found.values())),
        derived=_shown(selection.derived(), scope),
        copies=core.store.copies_with(branch, [version for own in found.values() for version in own]),
        dry_run=dry_run,
    )


def _found(
    view: View, lines: Sequence[Branch], scope: Scope, selected: Iterable[str], operation: Erase
) -> dict[str, list[bytes]]:
    """Return the versions that would be erased, by id; an id without any would be redacted."""
    own = {each: _readable(view, lines, each, scope) for each in selected}
    return {each: found.versions for each, found in own.items() if found.versions or (operation.redact and found.all)}


def _shown(record_ids: Iterable[str], scope: Scope) -> tuple[str, ...]:
    return tuple(sorted({scope.shown_id(each) for each in record_ids}, key=str.encode))


def _decoded(payload: bytes) -> Record | None:
    """Return the record of a payload; None if it is corrupt."""
    try:
        return Record.from_bytes(payload)
    except CodecError:
        return None


class _Readable(NamedTuple):
    """The versions of an id that a scope can read and that were not erased.

    Attributes:
        versions: Their hashes.
        records: Their records, without those that are corrupt.
        all: Whether they are all that the id has ever had, or what else it had was erased and the scope is the whole
            namespace.
    """

    versions: list[bytes]
    records: list[Record]
    all: bool


def _readable(view: View, lines: Sequence[Branch], record_id: str, scope: Scope) -> _Readable:
    """Return the versions of an id in all of some branches."""
    stored = dict.fromkeys(each for branch in lines for each in view.versions_of(branch, record_id))
    decoded = [(each.version, _decoded(each.payload)) for each in stored if each.payload is not None]
    own = [(version, record) for version, record in decoded if record is not None and scope.admits(record)]
    records = [record for _, record in own]
    if not scope.fixed:  # also what is corrupt
        return _Readable([version for version, _ in decoded], records, all=True)
    return _Readable([version for version, _ in own], records, all=len(own) == len(stored))


class _Selection:
    """The records that are erased, and those that derive from them. All ids are stored ids."""

    def __init__(self, view: View, branch: Branch, scope: Scope, operation: Erase) -> None:
        self._scope = scope
        self._operation = operation

        lines = lines_of(view, branch)

        def known(record_id: str) -> bool:
            return any(view.known(each, record_id) for each in lines)

        self._where = Nothing() if operation.where is None else scope.stored_form(operation.where, known)
        self._named = set() if operation.id is None else set(scope.stored_ids(operation.id, known))
        # Outside of scopes, an id of which everything was erased is known, too.
        self._matching = {each for each in self._named if known(each)} if not scope.fixed else set()
        self._qualified: set[str] = set()
        self._links: dict[str, set[tuple[str, tuple[Scope, ...]]]] = {}  # id as stated -> what derives, and its scopes

    def examine(self, records: Iterable[Record]) -> None:
        """Examine versions of records, in any order. Those outside the scope are left out."""
        for record in records:
            if record.id.startswith(QUALIFIED_PREFIX):
                self._qualified.add(record.id)
            if not self._scope.admits(record):
                continue
            if record.id in self._named or self._where.matches(record):
                self._matching.add(record.id)
            for stated in record.derived_from:
                self._links.setdefault(stated, set()).add((record.id, tuple(scopes_of(record))))

    def selected(self) -> set[str]:
        """Return the ids of the records that are erased."""
        return self._matching | self.derived() if self._operation.derived else self._matching

    def derived(self) -> set[str]:
        """Return the ids of the records that derive from those that were named or match, directly or through others."""
        found: set[str] = set()
        pending = list(self._matching)
        while pending:
            record_id = pending.pop()
            new = self._derived_from(record_id) - found - self._matching
            found |= new
            pending.extend(new)
        return found

    def _derived_from(self, record_id: str) -> set[str]:
        """Return the ids of the records that derive from a stored id directly.

        A record states ids as its writer saw them: one that was chosen in a scope of the record without its qualifier.
        """
        plain = {
            each
            for each, scopes in self._links.get(record_id, ())
            if not any(stored in self._qualified for scope in scopes for stored in self._qualified_in(scope, record_id))
        }
        if not record_id.startswith(QUALIFIED_PREFIX):
            return plain
        stated = record_id.partition("/")[2]
        return plain | {
            each
            for each, scopes in self._links.get(stated, ())
            if any(scope.shown_id(record_id) == stated for scope in scopes)
        }

    def _qualified_in(self, scope: Scope, record_id: str) -> list[str]:
        """Return the stored ids that a scope shows as this id, except the id itself."""
        return [each for each in scope.stored_ids(record_id, self._qualified.__contains__) if each != record_id]


@dataclass(frozen=True)
class _Run:
    """The commits of an erasure.

    Attributes:
        scope: The scope of the caller.
        redact: Whether to redact what the log says of the records.
        key: The store key.
        examined: The ids that need no further commit.
        erased: The versions that were erased, by id; an id without any was redacted.
        commits: The numbers of the commits in the branch.
        touched: The branches that got commits.
    """

    branch: Branch
    scope: Scope
    redact: bool
    key: bytes
    examined: set[str] = field(default_factory=set)
    erased: dict[str, list[bytes]] = field(default_factory=dict)
    commits: list[int] = field(default_factory=list)
    touched: set[Branch] = field(default_factory=set)

    def erase(self, transaction: Transaction, writers: Mapping[Branch, Writer], selected: set[str]) -> None:
        """Erase the next records, with a commit in each branch that has any of them."""
        lines = list(writers)
        commits: dict[tuple[Branch, int], Commit] = {}
        for record_id in sorted(selected - self.examined, key=str.encode)[:AT_ONCE]:
            self.examined.add(record_id)
            found = _readable(transaction, lines, record_id, self.scope)
            redact = self.redact and found.all  # otherwise the id is also that of a record outside the scope
            if not found.versions and not redact:
                continue
            if redact:
                commits |= commits_with(transaction, lines, record_id)
            for each in parts_with(transaction, lines, record_id):
                writers[each].erase(record_id, found.versions, redact=redact)
            self.erased[record_id] = found.versions
        for commit in commits.values():
            self._redact_notes(transaction, commit, selected)
        if any(writer.erases for writer in writers.values()):
            others = [each.branch for each in transaction.continuing(self.branch.namespace)]
            Erasures.note(transaction, list(dict.fromkeys((*lines, *others))))
            erase_answers(transaction, self.branch, self.key)

    def _redact_notes(self, transaction: Transaction, commit: Commit, selected: set[str]) -> None:
        """Redact the actor and the reason of a commit, which those of its transaction have, too.

        Within a scope, only of this commit, and only if it changed nothing else.
        """
        own = selected | set(map(redacted_id, selected))
        if self.scope.fixed and not own.issuperset(change.id for change in commit.changes):
            return
        redact_notes(transaction, [commit] if self.scope.fixed else together(transaction, commit), self.key)


def parts_with(view: View, lines: Sequence[Branch], record_id: str) -> list[Branch]:
    """Return the branches that get a commit for the erasure of a record: those that know it, and the main branch.

    The log of the main branch has all erasures: in it, another copy of the store sees what to erase.

    Args:
        lines: The branches of the namespace, or of a part of it.
    """
    return [each for each in lines if each.name == MAIN or view.known(each, record_id)]


def commits_with(view: View, lines: Iterable[Branch], record_id: str) -> dict[tuple[Branch, int], Commit]:
    """Return the commits of some branches of a namespace that changed a record, by branch and number."""
    found: dict[tuple[Branch, int], Commit] = {}
    for each in lines:
        if view.known(each, record_id):
            # Those that a branch continues are found in the other one.
            since = 0 if (base := view.base(each)) is None else base.seq
            found |= {(each, commit.seq): commit for commit in view.commits(each, since, record_id=record_id)}
    return found


def redact_notes(transaction: Transaction, commits: Iterable[Commit], key: bytes) -> None:
    """Redact the actors and the reasons of commits that have any."""
    for each in commits:
        commitments = note_hashes(each, key)
        if commitments:
            transaction.redact(Branch(each.namespace, each.branch), each.seq, commitments)
